"""The keys of a record, schema 1: which there are, of what type and unit, and what must hold between them.

A reader of schema N takes records of schema N: keys that it does not know are let be, keys that are missing were not
known when the record was made. Within a schema keys are only added; a key that goes, or means something else, is N + 1.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

STATUSES = (
    *("ok", "mismatch", "error", "timeout", "out_of_memory", "killed", "rejected", "skipped"),
    "extrapolated",
)
CELLS = ("count", "train")
PROOFS = ("reference", "confirmed", "replayed", "unconfirmed", "mismatch")
IDENTICAL, UP_TO_TIES, BY_DESIGN, WRONG = "identical", "identical_up_to_ties", "different_by_design", "wrong"
IDENTITIES = (IDENTICAL, UP_TO_TIES, BY_DESIGN, WRONG)
FEEDING = ("program", "way_in", "pre_tokens", "special_tokens", "ties", "by_design")
PRESSURES = ("cpu", "memory", "io")
PHASES = ("read", "count", "convert", "init", "copy", "max", "update", "other")
DIGEST = re.compile(r"[0-9a-f]{64}")
# Sums of the same numbers in another order differ in their last digits.
ROUNDING_SECONDS = 1e-6


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
    return type(value) in (int, float) and math.isfinite(value)


TEXT = Type("text", lambda value: isinstance(value, str))
WHOLE = Type("a whole number, 0 or more", lambda value: type(value) is int and value >= 0)
NUMBER = Type("a number, 0 or more", lambda value: finite(value) and value >= 0)
# A sum of what was measured one by one can fall short of the whole by a clock's tolerance.
SIGNED = Type("a number", finite)
YES_OR_NO = Type("true or false", lambda value: isinstance(value, bool))
TEXTS = Type("a list of texts", lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value))
CORES = Type("a list of cores", lambda value: isinstance(value, list) and all(type(each) is int for each in value))
LIST = Type("a list", lambda value: isinstance(value, list))
MAPPING = Type("a mapping", lambda value: isinstance(value, dict))
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
    "seconds": Key(MAPPING, required=True, null=False),
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
    "words_sha256": Key(SHA256),
    "merges": Key(WHOLE),
    "merges_sha256": Key(SHA256),
    "merges_done": Key(WHOLE),
    "proof": Key(MAPPING),
    "proof.state": Key(one_of(*PROOFS), null=False),
    "proof.by": Key(TEXTS, null=False),
    "identity": Key(MAPPING),
    "identity.kind": Key(one_of(*IDENTITIES), null=False),
    "identity.tie_break": Key(TEXT),
    "identity.reason": Key(TEXT),
    "identity.merge": Key(WHOLE),
    **{f"identity.{side}": Key(TEXTS) for side in ("got", "want")},
    **{f"identity.{side}_count": Key(WHOLE) for side in ("got", "want")},
    "identity.smallest": Key(MAPPING),  # text, merge, reason, num_merges
    "feeding": Key(MAPPING),
    **{f"feeding.{name}": Key(TEXT) for name in FEEDING},
    "takes_threads": Key(YES_OR_NO),
    "first_divergence": Key(MAPPING),
    "source_sha256": Key(SHA256),
    **{f"seconds.{phase}": Key(NUMBER, "seconds") for phase in PHASES if phase != "other"},
    "seconds.other": Key(SIGNED, "seconds"),
    "seconds.total": Key(NUMBER, "seconds"),
    "curve": Key(LIST),
    "cpu_seconds": Key(NUMBER, "seconds"),
    "counts_reused": Key(YES_OR_NO),
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
    "disturbance": Key(MAPPING),
    **{f"disturbance.{of}psi_{kind}_seconds": Key(NUMBER, "seconds") for of in ("", "group_") for kind in PRESSURES},
    "disturbance.steal_seconds": Key(NUMBER, "seconds"),
    "disturbance.throttled_seconds": Key(NUMBER, "seconds"),
    **{f"disturbance.{way}_switches": Key(WHOLE) for way in ("voluntary", "involuntary")},
    **{f"disturbance.{size}_faults": Key(WHOLE) for size in ("minor", "major")},
    "laps": Key(WHOLE),
    "clock_cost_seconds": Key(NUMBER, "seconds"),
    "affinity": Key(CORES),
    "limits": Key(MAPPING),
    "limits.wall_seconds": Key(NUMBER, "seconds"),
    "limits.memory_bytes": Key(WHOLE, "bytes"),
    "last_phase": Key(TEXT),
    "stderr_tail": Key(TEXT),
    "extrapolated": Key(MAPPING),
    **{f"extrapolated.{end}_seconds": Key(NUMBER, "seconds") for end in ("total", "low", "high")},
    "extrapolated.exponent": Key(SIGNED),
    "extrapolated.merges_done": Key(WHOLE),
    "extrapolated.from": Key(Type("anything", lambda _: True)),
    "interpreter": Key(TEXT),
    "measure": Key(TEXT),
    "block": Key(WHOLE),
    "repeat": Key(WHOLE),
    "block_whole": Key(YES_OR_NO),
    "warm_up": Key(YES_OR_NO),
    "concurrent": Key(YES_OR_NO),
    "host": Key(TEXT),
    "environment": Key(MAPPING),
}
OPEN = ("params", "tallies", "environment", "first_divergence")
"""Mappings whose names are not the record's: parameters, counts of work, what a machine says of itself."""


def complaints(record: Mapping[str, Any]) -> Iterator[str]:
    """Everything that is wrong with a record, a sentence each."""
    for name, key in KEYS.items():
        there, value = value_of(record, name)
        if not there:
            if key.required:
                yield f"{name} is missing"
        elif value is None:
            if not key.null:
                yield f"{name} is null"
        elif not key.type.fits(value):
            yield f"{name} is {shown(value)}, not {key.type.name}{f' ({key.unit})' if key.unit else ''}"
    yield from disagreements(record)


def disagreements(record: Mapping[str, Any]) -> Iterator[str]:
    """What does not fit together: a total and its phases, a status and what it promises."""
    seconds = record.get("seconds")
    total = seconds.get("total") if isinstance(seconds, dict) else None
    if isinstance(seconds, dict) and finite(total):
        spent = sum(seconds[phase] for phase in PHASES if finite(seconds.get(phase)))
        if abs(spent - float(total or 0)) > ROUNDING_SECONDS:
            yield f"seconds.total is {total:.6f}, its phases add up to {spent:.6f}"
        if record.get("status") not in ("ok", "mismatch", None):
            yield f"seconds.total stands beside status {record.get('status')}"
    if record.get("status") not in ("ok", None) and not record.get("reason"):
        yield f"status {record.get('status')} has no reason"
    if record.get("cell") == "train" and not isinstance(record.get("variant"), str):
        yield "variant is missing where a trainer was measured"


def unknown_keys(record: Mapping[str, Any]) -> list[str]:
    """The keys that are not described here, as those of a later program are."""
    described = {name.partition(".")[0] for name in KEYS}
    inner = {name.partition(".")[0] for name in KEYS if "." in name}
    found = [name for name in record if name not in described]
    for name in inner - set(OPEN):
        if isinstance(record.get(name), dict):
            found += [f"{name}.{part}" for part in record[name] if f"{name}.{part}" not in KEYS]
    return sorted(found)


def value_of(record: Mapping[str, Any], name: str) -> tuple[bool, Any]:
    """Whether there is such a key, and what stands there; where there is nothing around it, it is not missed."""
    outer, _, inner = name.partition(".")
    around = record if not inner else record.get(outer)
    last = inner or outer
    return (True, around[last]) if isinstance(around, dict) and last in around else (False, None)


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
