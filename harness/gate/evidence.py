"""What a gate observed, one line of JSON each, and the snapshot of counts of work that is committed with the code.

The first line of evidence is the question, then comes every observation in its order. Lines are written as they come,
so an interrupted run leaves what it observed; the verdict is a function of the file.

The snapshot has the tallies of every variant on the gate's corpora, by phase: `update/pair_updates`. They are equal on
every machine, so any difference is a change of the algorithm, and must be accepted by writing the snapshot again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.common.comparison import Sample
from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import ELSEWHERE, make_results_folder, read_whole, write_whole
from harness.common.units import count_text
from harness.gate.rule import Block, Timed

SCHEMA = 1
KIND = "gate"
FILE_NAME, VERDICT, SUMMARY = "samples.jsonl", "verdict.json", "summary.md"
TRIAGE, CONFIRM = "triage", "confirm"
BASE, HEAD, AGAIN = "base", "head", "again"
Observation = dict[str, Any]
Tallies = dict[str, int]


@dataclass(frozen=True)
class Evidence:
    """A gate's question (`head`) and its observations."""

    head: dict[str, Any]
    observations: list[Observation] = field(default_factory=list)

    def of(self, kind: str) -> list[Observation]:
        return [observation for observation in self.observations if observation["kind"] == kind]


class EvidenceFile:
    """The file of a gate that is running, and what is in it."""

    def __init__(self, path: Path, head: Mapping[str, Any]) -> None:
        """Start the file again. Raises Refusal if it cannot be written."""
        self.path = path
        self.evidence = Evidence({"schema": SCHEMA, "kind": KIND, **head})
        try:
            make_results_folder(path.parent)
            path.write_text(_line(self.evidence.head))
            for name in (VERDICT, SUMMARY):  # of samples that are no more
                path.with_name(name).unlink(missing_ok=True)
        except OSError as error:
            raise Refusal(f"cannot write to {path.parent} ({error.strerror}); {ELSEWHERE}", UNMEASURED) from error

    def add(self, kind: str, **observed: Any) -> Observation:
        observation = {"kind": kind, **observed}
        self.evidence.observations.append(observation)
        with self.path.open("a") as file:
            file.write(_line(observation))
        return observation


def _line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace").decode() + "\n"


def read_evidence(path: Path) -> Evidence:
    """Read a stored file without a last line that was cut short. Raises Refusal if it is not a gate's."""
    path = path / FILE_NAME if path.is_dir() else path
    try:
        first, *lines = read_whole(path).decode().split("\n")
        head = json.loads(first)
        if head.get("schema") != SCHEMA or head.get("kind") != KIND:
            raise ValueError(f"its first line is not a gate's of schema {SCHEMA}")
        return Evidence(head, [_observation(line) for line in lines[:-1]])
    except OSError as error:
        raise Refusal(f"cannot read {path} ({error.strerror or error}); pass --replay a gate's output") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise not_evidence(path, error) from error


def not_evidence(path: Path, error: Exception) -> Refusal:
    return Refusal(f"{path} is not evidence of a gate ({error}); pass --replay a gate's output", UNMEASURED)


def _observation(line: str) -> Observation:
    observation = json.loads(line)
    if not isinstance(observation, dict) or not isinstance(observation.get("kind"), str):
        raise ValueError("a line of it is not an observation")
    return observation


def blocks_of(observations: Sequence[Observation], stage: str, threads: int) -> list[Block]:
    """The blocks of one comparison that have both sides, in order."""
    arms: dict[int, dict[str, Timed]] = {}
    for observation in observations:
        if observation["stage"] == stage:
            arms.setdefault(observation["block"], {})[observation["arm"]] = _timed(observation, threads)
    return [
        Block(block[BASE], block[HEAD], block.get(AGAIN))
        for _, block in sorted(arms.items())
        if BASE in block and HEAD in block
    ]


def _timed(observation: Observation, threads: int) -> Timed:
    wall, cpu = observation["wall_seconds"], observation["cpu_seconds"]
    pressure, steal = observation["pressure"], observation["steal"]
    sample = Sample("gate", observation["block"], wall, cpu, threads, pressure, steal)
    return Timed(sample, observation["peak_bytes"], tuple(observation["seconds"].items()))


# The snapshot


@dataclass
class Snapshot:
    """Tallies by variant and corpus, and what each corpus was."""

    corpora: dict[str, dict[str, Any]] = field(default_factory=dict)
    counters: dict[str, dict[str, Tallies]] = field(default_factory=dict)

    def of(self, variant: str, corpus: str) -> Tallies | None:
        return self.counters.get(variant, {}).get(corpus)


def read_snapshot(path: Path) -> Snapshot | None:
    """The snapshot in a file; None if there is no file. Raises Refusal if it is something else."""
    try:
        content = json.loads(path.read_text())
        if content.get("schema") != SCHEMA:
            raise ValueError(f"not of schema {SCHEMA}")
        return Snapshot(_mappings(content["corpora"]), _mappings(content["counters"]))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refusal(f"cannot read {path} ({error.strerror})", UNMEASURED) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refusal(
            f"{path} is not a snapshot of counts ({error}); remove it, --accept writes it", UNMEASURED
        ) from error


def _mappings(content: Any) -> dict[str, Any]:
    if not isinstance(content, dict) or not all(isinstance(part, dict) for part in content.values()):
        raise ValueError("not a mapping of mappings")
    return content


def write_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write the whole file or nothing, a line for each variant and corpus, so that a change is a line of a diff."""
    lines = ["{", f' "schema": {SCHEMA},', ' "corpora": {', _entries(snapshot.corpora, "  "), " },", ' "counters": {']
    variants = [
        f"  {json.dumps(name)}: {{\n{_entries(snapshot.counters[name], '   ')}\n  }}"
        for name in sorted(snapshot.counters)
    ]
    content = "\n".join([*lines, ",\n".join(variants), " }", "}"]) + "\n"
    write_whole(path, content.encode(), "choose another file with --set work.counters=FILE", UNMEASURED)


def _entries(entries: Mapping[str, Mapping[str, Any]], indent: str) -> str:
    return ",\n".join(
        f"{indent}{json.dumps(name)}: {json.dumps(entries[name], sort_keys=True)}" for name in sorted(entries)
    )


def accept(
    before: Snapshot, corpora: Mapping[str, dict[str, Any]], measured: Mapping[tuple[str, str], Tallies], gone: set[str]
) -> Snapshot:
    """The snapshot with the measured tallies in place of its own, and without the variants that are gone."""
    counters = {name: dict(entries) for name, entries in before.counters.items() if name not in gone}
    for (variant, corpus), tallies in measured.items():
        counters.setdefault(variant, {}).pop(corpus, None)
        if tallies:
            counters[variant][corpus] = tallies
    counters = {name: entries for name, entries in counters.items() if entries}
    used = {corpus for entries in counters.values() for corpus in entries}
    return Snapshot({name: facts for name, facts in {**before.corpora, **corpora}.items() if name in used}, counters)


def changes(before: Snapshot, after: Snapshot) -> list[str]:
    """The differences of two snapshots: a line for each tally of each variant on each corpus."""
    lines = []
    for variant in sorted({*before.counters, *after.counters}):
        if variant not in after.counters:
            lines.append(f"{variant}: gone")
            continue
        if variant not in before.counters:
            lines.append(f"{variant}: new, {', '.join(sorted(after.counters[variant]))}")
            continue
        for corpus in sorted({*before.counters[variant], *after.counters[variant]}):
            old, new = before.of(variant, corpus) or {}, after.of(variant, corpus) or {}
            lines += [
                f"{variant} on {corpus}: {tally} {change_text(old.get(tally), new.get(tally))}"
                for tally in sorted({*old, *new})
                if old.get(tally) != new.get(tally)
            ]
    return lines


def change_text(before: int | None, after: int | None) -> str:
    """
    >>> change_text(1000, 1100), change_text(None, 5), change_text(0, 5)
    ('1,000 -> 1,100 (+10.0 %)', 'none -> 5', '0 -> 5')
    """
    sides = " -> ".join("none" if number is None else count_text(number) for number in (before, after))
    return f"{sides} ({100 * (after / before - 1):+.1f} %)" if before and after is not None else sides
