"""The job of a measured process, as the harness writes it and the process reads it.

Standard library only, and Python 3.9's: it runs in the measured process.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from harness.worker.calling import OWN
from variants.contract import Corpus

COUNT, TRAIN = "count", "train"


@dataclass(frozen=True)
class Setup:
    """What a process needs before it imports its target; the work is not among it."""

    target: str
    import_from: list[str]
    """The folders that the target may be in, before those of installed packages."""
    folder: str
    """Where the process works."""
    memory_limit: int | None = None
    counts_instructions: bool = False


@dataclass(frozen=True)
class Extending:
    """The packed merges that a trainer goes on from, and how it treats them."""

    merges: str
    inheriting: str
    veto: str


@dataclass(frozen=True)
class Job:
    """One call of a counter or trainer: the target, its input and its options."""

    kind: str
    target: str
    params: dict[str, Any]
    threads: int = 1
    corpus: Corpus | None = None
    """What reads the text gets this; None if the words came with their counts."""
    words: str = ""
    """The folder of the words that a trainer gets."""
    num_merges: int = 0
    tie_break: str = OWN
    min_count: int = 1
    extending: Extending | None = None
    interpreter: str | None = None
    counts_instructions: bool = False
    profile: str | None = None
    """The file for cProfile's statistics of the call."""


def written(part: Setup | Job) -> str:
    return json.dumps(asdict(part))


def read_setup(content: str) -> Setup:
    return Setup(**known(Setup, json.loads(content)))


def read_job(content: str) -> Job:
    values = known(Job, json.loads(content))
    corpus, extending = values["corpus"], values["extending"]
    if corpus is not None:
        special_tokens = tuple(corpus["special_tokens"])
        values["corpus"] = Corpus(**{**corpus, "special_tokens": special_tokens})
    if extending is not None:
        values["extending"] = Extending(**known(Extending, extending))
    return Job(**values)


def known(kind: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the fields that exist here: the gate measures a base with the base's own
    worker, which a later harness may hand more.
    """
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in values.items() if name in names}
