"""Records as a run leaves them, with the figures that a test wants."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import tomllib

from harness.records.file import Joined, Record, RunLog
from harness.records.lines import RecordFile
from harness.records.schema import SCHEMA, Cell, End, Line, Measurement, Proof, Run

RECORDS = Path(__file__).parents[1] / "fixtures" / "records"
"""The folder of stored records."""
FILLED: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())


def measured(variant: str, seconds: dict[str, float] | float, /, **changes: Any) -> Record:
    """A training record; seconds without phases are spent on updates. `size` and `data` say which
    corpus it was, `corpus` what else is known of it.
    """
    phases = seconds if isinstance(seconds, dict) else {"update": seconds}
    name, size = changes.pop("data", "stdlib"), changes.pop("size", 1_000_000)
    vocab_size = changes.get("vocab_size", 1000)
    corpus = {
        "name": name,
        "bytes": size,
        "sha256": hashlib.sha256(f"{name} {size}".encode()).hexdigest(),
        **changes.pop("corpus", {}),
    }

    if changes.get("status", "ok") in ("ok", "mismatch"):
        phases = {**phases, "total": sum(phases.values())}
    keys = {
        **FILLED["record"],
        "variant": variant,
        "family": variant,
        "run_key": f"{variant} {corpus['sha256'][:8]} {vocab_size} {changes.get('threads', 1)}",
        "data": corpus,
        "vocab_size": vocab_size,
        "merges": vocab_size - 256,
        "merges_done": vocab_size - 256,
        "seconds": phases,
        "cpu_seconds": phases.get("total"),
        **changes,
    }
    return record_of(keys)


def record_of(keys: Mapping[str, Any]) -> Record:
    """The record that has these keys, as if it were read from a file. Raises
    msgspec.ValidationError if it does not fit the schema.
    """
    fields = {**keys, "run": keys["run_id"], "role": keys["cell"], "schema": SCHEMA, "cell": 0}
    run, cell, measurement = (line_of(kind, fields) for kind in (Run, Cell, Measurement))
    is_judged = keys.get("merges_sha256") and keys.get("identity")
    proof = line_of(Proof, fields) if is_judged else None
    whole = keys.get("block_whole")
    return Record(run, cell, measurement, proof, whole, keys.get("unfinished", False))


def line_of(kind: type[Line], fields: Mapping[str, Any]) -> Any:
    known = {name: fields[name] for name in kind.__struct_fields__ if fields.get(name) is not None}
    for name, value in known.items():
        if isinstance(value, Mapping) and name not in ("params", "environment"):
            known[name] = {key: inner for key, inner in value.items() if inner is not None}
    return msgspec.convert({"kind": kind.__struct_config__.tag, **known}, kind)


def changed(record: Record, **keys: Any) -> Record:
    """The record with other values of some keys."""
    return record_of({**record, **keys})


def stopped(variant: str, limit: float, **changes: Any) -> Record:
    """A record of a run that a limit ended."""
    keys = dict.fromkeys(("merges", "merges_sha256", "peak_rss_bytes"))
    keys |= {**FILLED["stopped"], "reason": f"over limits.wall={limit:g} s"}
    keys |= {"limits": {"wall_seconds": limit, "memory_bytes": None}}
    return measured(variant, {}, **{**keys, **changes})


def records_of(described: Iterable[Mapping[str, Any]]) -> list[Record]:
    """The records that the rows of a table describe, by the keys in which they differ from
    measured.toml.

    `blocks` has the seconds of one block each; `stopped` is the limit that ended a run; `wrong`
    merges are not the reference's; `without` names missing keys. Two letters name a whole digest.
    """
    records = []
    for row in described:
        of_wrong = FILLED["wrong"] if row.get("wrong") else {}
        keys = {**of_wrong, **row, **dict.fromkeys(row.get("without", ()))}
        if keys.get("merges_sha256") is not None:
            keys["merges_sha256"] *= 32
        variant, seconds = keys.pop("variant"), keys.pop("seconds", {})

        for block, of_block in enumerate(keys.pop("blocks", [seconds]), keys.pop("block", 0)):
            if "stopped" in keys:
                record = stopped(variant, keys["stopped"], block=block, **keys)
            else:
                record = measured(variant, of_block, block=block, **keys)
            records.append(record)
    return records


def append(store: RecordFile, records: Iterable[Record]) -> None:
    """Append records as lines; lines that the file has already are not repeated."""
    lines = [line for line, _ in Joined().read_sound(store.path)]
    for record in records:
        log = RunLog(store, record.run.run, lines=lines)
        log.run, log.attempt = record.run, record.measurement.attempt
        block = record.measurement.block, record.measurement.warm_up
        closes = block if record.block_whole else None
        log.add(record.cell, record.measurement, record.proof, closes)
        lines += log.shared.values()


def stored(path: Path, records: Iterable[Record]) -> Path:
    """The file with these records in it and no others."""
    path.unlink(missing_ok=True)
    store, records = RecordFile(path.parent, path.name), list(records)
    append(store, records)
    runs = dict.fromkeys(record["run_id"] for record in records)
    store.append_lines([End(run=run) for run in runs])
    return path
