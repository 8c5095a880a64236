"""What the gate has seen, one line of JSON each: first what it was asked, then every observation in its order.

Lines are written as they come, so that an interrupted run leaves what it saw; the verdict is a function of the file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from harness.common.comparison import Sample
from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import ELSEWHERE, make_results_folder, read_whole
from harness.gate.rule import Blocked, Timed

SCHEMA = 1
KIND = "gate"
FILE_NAME, VERDICT, SUMMARY = "samples.jsonl", "verdict.json", "summary.md"
TRIAGE, CONFIRM = "triage", "confirm"
BASE, HEAD, AGAIN = "base", "head", "again"
Observation = dict[str, Any]
Read = TypeVar("Read")
Found = TypeVar("Found")


@dataclass(frozen=True)
class Evidence:
    """A gate's question (`head`) and what it observed."""

    head: dict[str, Any]
    observations: list[Observation] = field(default_factory=list)

    def of(self, *kinds: str) -> list[Observation]:
        return [each for each in self.observations if each["kind"] in kinds]


class EvidenceFile:
    """Where a gate that is running puts what it sees."""

    def __init__(self, path: Path, head: Mapping[str, Any]) -> None:
        """Begin the file anew. Raises Refusal if it cannot be written."""
        self.path = path
        self.evidence = Evidence({"schema": SCHEMA, "kind": KIND, **head})
        try:
            make_results_folder(path.parent)
            path.write_text(line_of(self.evidence.head))
            for name in (VERDICT, SUMMARY):  # of samples that are no more
                path.with_name(name).unlink(missing_ok=True)
        except OSError as error:
            raise Refusal(f"cannot write to {path.parent} ({error.strerror}); {ELSEWHERE}", UNMEASURED) from error

    def add(self, kind: str, **observed: Any) -> Observation:
        observation = {"kind": kind, **observed}
        self.evidence.observations.append(observation)
        with self.path.open("a") as file:
            file.write(line_of(observation))
        return observation


def line_of(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace").decode() + "\n"


def read_evidence(path: Path) -> Evidence:
    """Read a file again; a last line that was cut off is left out. Raises Refusal if it is no gate's."""
    path = path / FILE_NAME if path.is_dir() else path
    try:
        first, *lines = read_whole(path).decode().split("\n")
        head = json.loads(first)
        if head.get("schema") != SCHEMA or head.get("kind") != KIND:
            raise ValueError(f"its first line is not a gate's of schema {SCHEMA}")
        return Evidence(head, [_observation(line) for line in lines[:-1]])
    except OSError as error:
        raise Refusal(f"cannot read {path} ({error.strerror or error}); --replay takes what a gate wrote") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise Refusal(f"{path} is not what a gate wrote ({error})", UNMEASURED) from error


def _observation(line: str) -> Observation:
    observation = json.loads(line)
    if not isinstance(observation, dict) or not isinstance(observation.get("kind"), str):
        raise ValueError("a line of it is no observation")
    return observation


def sample_line(timed: Timed) -> dict[str, Any]:
    """A sample as an observation has it."""
    return {
        "wall_seconds": timed.sample.wall_seconds,
        "cpu_seconds": timed.sample.cpu_seconds,
        "pressure": timed.sample.pressure,
        "steal": timed.sample.steal,
        "peak_bytes": timed.peak_bytes,
        "seconds": dict(timed.seconds),
    }


def timed_of(observation: Observation, threads: int) -> Timed:
    """The sample of a line, as `sample_line` wrote it."""
    sample = Sample(
        "gate",
        observation["block"],
        observation["wall_seconds"],
        observation["cpu_seconds"],
        threads,
        observation["pressure"],
        observation["steal"],
    )
    return Timed(sample, observation["peak_bytes"], tuple(observation["seconds"].items()))


def blocks_of(observations: Sequence[Observation], stage: str, threads: int) -> list[Blocked]:
    """The whole blocks among the samples of one comparison, in order; one that was cut short is none."""
    arms: dict[int, dict[str, Timed]] = {}
    for each in observations:
        if each["stage"] == stage:
            arms.setdefault(each["block"], {})[each["arm"]] = timed_of(each, threads)
    return [
        Blocked(found[BASE], found[HEAD], found.get(AGAIN))
        for _, found in sorted(arms.items())
        if BASE in found and HEAD in found
    ]


def readable(judge: Callable[[Read], Found], read: Read, path: Path) -> Found:
    """Judge what was read from a file. Raises Refusal if it lacks what it should have."""
    try:
        return judge(read)
    except (KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise Refusal(f"{path} is not what a gate wrote ({error!r})", UNMEASURED) from error
