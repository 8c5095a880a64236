"""The keys of a record, schema 1: which there are, of what type and unit, and what must hold between them.

A reader of schema N takes records of schema N: keys that it does not know are let be, keys that are missing were not
known when the record was made. Within a schema keys are only added; a key that goes, or means something else, is N + 1.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from harness.proof import IDENTITIES, WRONG
from variants import contract

STATUSES = (
    *("ok", "mismatch", "error", "timeout", "out_of_memory", "killed", "rejected", "skipped"),
    "extrapolated",
)
CELLS = ("count", "train")
OLD_PROOFS = ("reference", "confirmed", "replayed", "unconfirmed", "mismatch")
FEEDING = ("program", "way_in", "pre_tokens", "special_tokens", "ties", "by_design", "own_words")
PRESSURES = ("cpu", "memory", "io")
PHASES = (*contract.PHASES, "other")
"""In the order in which a run goes through them; what no phase covers comes last."""
_PHASES = frozenset(PHASES)
_SUMMED = _PHASES | {"total"}
DIGEST = re.compile(r"[0-9a-f]{64}")
# Sums of the same numbers in another order differ in their last digits.
ROUNDING_SECONDS = 1e-6
LARGEST = 2**63
"""Numbers are smaller, so that whatever reads records can keep them and reckon with them."""


class Type(NamedTuple):
    """What a value has to be, in words and as a test."""

    name: str
    fits: Callable[[Any], bool]


class Key(NamedTuple):
    """One key: its type, its unit if it has one, whether every record has it, and whether it may be null."""

    type: Type
    unit: str = ""
    required: bool = False
    null: bool = True


def is_moment(value: Any) -> bool:
    try:
        return datetime.datetime.fromisoformat(value).tzinfo is not None
    except (TypeError, ValueError):
        return False


def one_of(*values: str) -> Type:
    return Type(f"one of {', '.join(values)}", lambda value: value in values)


def finite(value: Any) -> bool:
    """Whether it is a number that can be added up and written: a record is text, so it may hold any."""
    return type(value) in (int, float) and abs(value) < LARGEST


def is_token(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"(?:[0-9a-f]{2})*", value) is not None


def is_merge(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(is_token, value))


def is_point(value: Any) -> bool:
    """Whether it is a point of a curve: how many merges were made by then, and in how many seconds by phase."""
    return type(value) is dict and finite(value.get("merges")) and is_seconds(value.get("seconds"))


def is_curve(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_point, value))


def is_seconds(value: Any) -> bool:
    return isinstance(value, dict) and all(spent is None or finite(spent) for spent in value.values())


TEXT = Type("text", lambda value: isinstance(value, str))
WHOLE = Type("a whole number, 0 or more", lambda value: type(value) is int and 0 <= value < LARGEST)
NUMBER = Type("a number, 0 or more", lambda value: type(value) in (int, float) and 0 <= value < LARGEST)
# A sum of what was measured one by one can fall short of the whole by a clock's tolerance.
SIGNED = Type("a number", finite)
YES_OR_NO = Type("true or false", lambda value: isinstance(value, bool))
TEXTS = Type("a list of texts", lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value))
CORES = Type("a list of cores", lambda value: isinstance(value, list) and all(type(each) is int for each in value))
CURVE = Type("a list of points", is_curve)
MERGE = Type("a merge: two tokens in hexadecimal digits", is_merge)
MAPPING = Type("a mapping", lambda value: isinstance(value, dict))
SECONDS = Type("a mapping of seconds by phase", is_seconds)
COUNTS = Type("whole numbers by name", lambda value: isinstance(value, dict) and all(map(WHOLE.fits, value.values())))
SHA256 = Type("64 hexadecimal digits", lambda value: isinstance(value, str) and DIGEST.fullmatch(value) is not None)
MOMENT = Type("a moment in ISO 8601 with its time zone", is_moment)

KEYS: dict[str, Key] = {
    "schema": Key(WHOLE, required=True, null=False),
    "cell": Key(one_of(*CELLS), required=True, null=False),
    "status": Key(one_of(*STATUSES), required=True, null=False),
    "run_key": Key(TEXT, required=True, null=False),
    "reason": Key(TEXT, required=True),
    "variant": Key(TEXT, required=True),
    "counting": Key(TEXT, required=True, null=False),
    "data": Key(MAPPING, required=True, null=False),
    "seconds": Key(SECONDS, required=True, null=False),
    "started": Key(MOMENT, required=True, null=False),
    "run_id": Key(MOMENT),
    "family": Key(TEXT),
    "params": Key(MAPPING, null=False),
    "counting_chosen": Key(YES_OR_NO),
    "threads": Key(WHOLE),
    "data.name": Key(TEXT, null=False),
    "data.sha256": Key(SHA256),
    "data.bytes": Key(WHOLE, "bytes"),
    "data.skip": Key(WHOLE, "bytes"),
    "data.documents": Key(WHOLE),
    "data.pre_tokens": Key(WHOLE),
    "data.words": Key(WHOLE),
    "data.generated": Key(MAPPING),
    "pattern": Key(TEXT),
    "pattern_partial": Key(YES_OR_NO),
    "special_tokens": Key(TEXTS),
    "errors": Key(TEXT),
    "tie_break": Key(TEXT),
    "min_count": Key(WHOLE),
    "vocab_size": Key(WHOLE),
    "extend": Key(SHA256),
    "extend_name": Key(TEXT),
    "extend_merges": Key(WHOLE),
    "inherited": Key(one_of("kept", "met")),
    "veto": Key(TEXT),
    "tokens": Key(WHOLE),
    "words_sha256": Key(SHA256),
    "merges": Key(WHOLE),
    "merges_sha256": Key(SHA256),
    "merges_done": Key(WHOLE),
    "proof": Key(MAPPING),
    "proof.state": Key(one_of(*OLD_PROOFS), null=False),
    "proof.by": Key(TEXTS, null=False),
    "identity": Key(MAPPING),
    "identity.kind": Key(one_of(*IDENTITIES), null=False),
    "identity.tie_break": Key(TEXT),
    "identity.reason": Key(TEXT),
    "identity.of_own_words": Key(TEXT),
    "identity.merge": Key(WHOLE),
    **{f"identity.{side}": Key(MERGE) for side in ("got", "want")},
    **{f"identity.{side}_count": Key(WHOLE) for side in ("got", "want")},
    "identity.smallest": Key(MAPPING),  # text, merge, reason, num_merges
    "feeding": Key(MAPPING),
    **{f"feeding.{name}": Key(TEXT) for name in FEEDING},
    "takes_threads": Key(YES_OR_NO),
    "first_divergence": Key(MAPPING),
    "first_divergence.merge": Key(WHOLE, null=False),
    **{f"first_divergence.{side}": Key(MERGE) for side in ("got", "want")},
    "source_sha256": Key(SHA256),
    **{f"seconds.{phase}": Key(NUMBER, "seconds") for phase in PHASES if phase != "other"},
    "seconds.other": Key(SIGNED, "seconds"),
    "seconds.total": Key(NUMBER, "seconds"),
    "curve": Key(CURVE),
    "cpu_seconds": Key(NUMBER, "seconds"),
    "tallies": Key(COUNTS),
    "instructions": Key(MAPPING),
    "instructions.count": Key(WHOLE, "instructions"),
    "instructions.path": Key(TEXT),
    "instructions.tool": Key(TEXT),
    "peak_rss_bytes": Key(WHOLE, "bytes"),
    "peak_private_bytes": Key(WHOLE, "bytes"),
    "memory_is_sampled": Key(YES_OR_NO),
    "witness": Key(MAPPING),
    "witness.wall_seconds": Key(NUMBER, "seconds"),
    "witness.cpu_seconds": Key(NUMBER, "seconds"),
    "witness.whole_process": Key(YES_OR_NO),
    "witness.import_cpu_seconds": Key(NUMBER, "seconds"),
    "disturbance": Key(MAPPING),
    **{f"disturbance.{of}psi_{kind}_seconds": Key(NUMBER, "seconds") for of in ("", "group_") for kind in PRESSURES},
    "disturbance.steal_seconds": Key(NUMBER, "seconds"),
    "disturbance.throttled_seconds": Key(NUMBER, "seconds"),
    **{f"disturbance.{way}_switches": Key(WHOLE) for way in ("voluntary", "involuntary")},
    **{f"disturbance.{size}_faults": Key(WHOLE) for size in ("minor", "major")},
    "laps": Key(WHOLE),
    "clock_cost_seconds": Key(NUMBER, "seconds"),
    "affinity": Key(CORES),
    "page_cache": Key(TEXT),
    "limits": Key(MAPPING),
    "limits.wall_seconds": Key(NUMBER, "seconds"),
    "limits.memory_bytes": Key(WHOLE, "bytes"),
    "last_phase": Key(TEXT),
    "stderr_tail": Key(TEXT),
    "extrapolated": Key(MAPPING),
    **{f"extrapolated.{end}_seconds": Key(NUMBER, "seconds") for end in ("total", "low", "high")},
    "extrapolated.exponent": Key(SIGNED),
    "extrapolated.merges_done": Key(WHOLE),
    "interpreter": Key(TEXT),
    "measure": Key(TEXT),
    "block": Key(WHOLE),
    "repeat": Key(WHOLE),
    "block_whole": Key(YES_OR_NO),
    "precision": Key(MAPPING),
    "precision.asked": Key(NUMBER, null=False),
    "precision.most": Key(WHOLE, "blocks", null=False),
    "precision.reference": Key(TEXT, null=False),
    "warm_up": Key(YES_OR_NO),
    "concurrent": Key(YES_OR_NO),
    "host": Key(TEXT),
    "environment": Key(MAPPING),
    **{f"environment.{name}": Key(TEXT) for name in ("cpu", "kernel", "architecture", "python", "commit")},
    **{f"environment.{name}": Key(WHOLE) for name in ("cores", "cores_usable", "memory_bytes")},
}
FORMER = {
    "counts_reused",
    "counting_kept",
    "extrapolated.from",
    *(f"precision.{name}" for name in ("blocks", "low", "high", "stopped")),
}
"""What records of earlier versions say as well."""
OPEN = ("params", "tallies", "environment", "first_divergence")
"""Mappings whose names are not the record's: parameters, counts of work, what a machine says of itself."""


NEEDED = {
    "proof": ("state",),
    "identity": ("kind",),
    "instructions": ("count",),
    "first_divergence": ("merge",),
}
"""What stands in a mapping that there is at all."""
_REQUIRED = {name for name, key in KEYS.items() if key.required}
_WITHIN: dict[str, dict[str, Key]] = {"": {}}
"""The keys of a record, and those of each of its mappings."""
for _name, _key in KEYS.items():
    _outer, _, _inner = _name.rpartition(".")
    _WITHIN.setdefault(_outer, {})[_inner] = _key
_FITS = {outer: {name: key.type.fits for name, key in keys.items()} for outer, keys in _WITHIN.items()}
_NEVER_NULL = {outer: {name for name, key in keys.items() if not key.null} for outer, keys in _WITHIN.items()}


def complaints(record: Mapping[str, Any], fresh: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Everything that is wrong with a record, a sentence each; `fresh` are its parts not yet known to be sound."""
    if fresh is None:
        fresh = record
    if not record.keys() >= _REQUIRED:
        yield from (f"{name} is missing" for name in KEYS if name in _REQUIRED and name not in record)
    yield from _complaints_within("", fresh)
    for outer, values in fresh.items():
        if outer in _WITHIN and isinstance(values, dict):
            yield from _complaints_within(outer, values)
            yield from (f"{outer}.{name} is missing" for name in NEEDED.get(outer, ()) if name not in values)
    yield from disagreements(record)


def _complaints_within(outer: str, values: Mapping[str, Any]) -> Iterator[str]:
    fits, never_null = _FITS[outer], _NEVER_NULL[outer]
    for name, value in values.items():
        if name in never_null if value is None else name in fits and not fits[name](value):
            key = _WITHIN[outer][name]
            wanted = f"{shown(value)}, not {key.type.name}{f' ({key.unit})' if key.unit else ''}"
            yield f"{outer}{outer and '.'}{name} is {'null' if value is None else wanted}"


def disagreements(record: Mapping[str, Any]) -> Iterator[str]:
    """What does not fit together: a total and its phases, a status and what it promises."""
    seconds = record.get("seconds")
    total = seconds.get("total") if isinstance(seconds, dict) else None
    if isinstance(seconds, dict) and finite(total):
        parts = [part for phase, part in seconds.items() if phase in _PHASES and part is not None]
        spent = sum(filter(finite, parts))
        if abs(spent - float(total or 0)) > ROUNDING_SECONDS:
            yield f"seconds.total is {total:.6f}, its phases add up to {spent:.6f}"
        if record.get("status") not in ("ok", "mismatch", None):
            yield f"seconds.total stands beside status {record.get('status')}"
    expected = record.get("extrapolated")
    if isinstance(expected, dict) and expected.get("total_seconds") is not None:
        yield from (
            f"extrapolated.{end}_seconds is missing beside the total"
            for end in ("low", "high")
            if expected.get(f"{end}_seconds") is None
        )
    identity = record.get("identity")
    if isinstance(identity, dict) and identity.get("kind") == WRONG and not identity.get("reason"):
        yield "identity.kind is wrong and has no reason"
    if record.get("status") not in ("ok", None) and not record.get("reason"):
        yield f"status {record.get('status')} has no reason"
    if record.get("cell") == "train" and not isinstance(record.get("variant"), str):
        yield "variant is missing where a trainer was measured"


def unknown_keys(record: Mapping[str, Any]) -> list[str]:
    """The keys that are not described here, as those of a later program are."""
    found = [] if record.keys() <= _KNOWN else list(record.keys() - _KNOWN)
    for outer, described in _CLOSED.items():
        if isinstance(values := record.get(outer), dict) and not values.keys() <= described:
            found += [f"{outer}.{name}" for name in values.keys() - described]
    return sorted(set(found) - FORMER)


_KNOWN = _WITHIN[""].keys() | _WITHIN.keys()
_CLOSED = {outer: set(described) for outer, described in _WITHIN.items() if outer not in OPEN}


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
