"""What holds for a whole command, not for a cell: how often and for what cells are run, and where results go."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.common.comparison import FEWEST_BLOCKS
from harness.common.errors import Refusal
from harness.common.registry import at_least, one_of
from harness.measure.environment import usable_cores
from harness.measure.instructions import RUN_TRAINER


@dataclass(frozen=True)
class Rule:
    """How precisely ratios are wanted, as a share of them, and between which numbers of blocks."""

    within: float
    fewest: int = FEWEST_BLOCKS
    most: int = 20


@dataclass(frozen=True)
class Preset:
    """A way to measure, conf/measure/NAME.yaml: for what (a kind of kinds.py), and how carefully."""

    name: str
    kind: str = "time"
    warm_up: int = 0
    quiet_seconds: float = 0.0
    """The longest wait for a quiet machine before each cell."""
    precision: Rule | None = None
    """How precisely ratios are wanted; None: a fixed number of blocks."""

    @property
    def timed(self) -> bool:
        return self.kind == "time"

    def blocks(self, repeat: int) -> int:
        """How many blocks there may be at most, besides warm-up."""
        return repeat if self.precision is None else self.precision.most


@dataclass(frozen=True)
class Settings:
    """One command's settings."""

    results: Path
    save: Path | None
    repeat: int
    seed: int
    plan_only: bool
    measure: Preset
    rerun: bool = False
    overwrite: bool = False
    concurrent: bool = False
    affinity: tuple[int, ...] | None = None
    tokens: bool = False
    """Whether to count the tokens that are left of the text."""
    overrides: tuple[str, ...] = ()
    """The command's overrides as typed; of a path its last name alone."""


def settings_of(config: Mapping[str, Any]) -> Settings:
    """The command's settings. Raises Refusal for impossible ones."""
    preset = preset_of(config["measure"])
    repeat = config["repeat"] if config["repeat"] is not None else config["measure"]["repeat"]
    at_least("repeat", repeat)
    rule = rule_of(config["measure"]["precision"], repeat, config["measure"]["most"], timed=preset.timed)
    if rule is not None:
        preset, repeat = replace(preset, precision=rule), rule.fewest
    for name in ("results", "save"):
        if config[name] == "":
            raise Refusal(f"{name} is empty; set {name}=FOLDER")
    return Settings(
        results=Path(config["results"]),
        save=Path(config["save"]) if config["save"] is not None else None,
        repeat=repeat,
        seed=config["seed"],
        plan_only=config["plan"],
        measure=preset,
        rerun=config["rerun"],
        overwrite=config["overwrite"],
        concurrent=config["concurrent"],
        affinity=affinity_of(config["affinity"]),
        tokens=config["tokens"],
    )


def preset_of(composed: Mapping[str, Any]) -> Preset:
    one_of("measure.kind", composed["kind"], list(RUN_TRAINER))
    at_least("measure.warm_up", composed["warm_up"], 0)
    if not 0 <= composed["quiet"] < math.inf:
        raise Refusal(f"measure.quiet={composed['quiet']:g} is not a time; it is in seconds, 0 or more")
    return Preset(composed["name"], composed["kind"], composed["warm_up"], composed["quiet"])


def rule_of(precision: float | None, repeat: int, most: int, *, timed: bool) -> Rule | None:
    """The rule that is asked for, None if none is. Raises Refusal for an impossible one."""
    if precision is None:
        return None
    if not 0 < precision < 1:
        raise Refusal(f"measure.precision={precision:g} must be between 0 and 1; 0.05 is within 5 %")
    if not timed:
        raise Refusal("measure.precision is of times, and none are measured so; leave it out, or set measure=quick")
    fewest = max(FEWEST_BLOCKS, repeat)
    if most < fewest:
        raise Refusal(f"measure.most={most} is fewer than the {fewest} blocks that there are at least; set more")
    return Rule(precision, fewest, most)


def threads_of(asked: Any) -> int:
    """How many threads are asked for; `all` is as many as this process may use.

    >>> threads_of(2), threads_of("all") >= 1
    (2, True)
    """
    if asked == "all":
        return usable_cores()
    if type(asked) is not int:
        raise Refusal(f"threads={asked} must be a whole number, or all")
    at_least("threads", asked)
    return asked


def affinity_of(affinity: Any) -> tuple[int, ...] | None:
    """The cores that measured processes may run on, in order, each once; None for all that this process may use.

    >>> affinity_of(None) is None
    True
    """
    if affinity is None:
        return None
    cores = affinity if isinstance(affinity, list) else [affinity]
    if not cores or not all(type(core) is int for core in cores):
        raise Refusal(f"affinity={affinity} names no cores; it is a list of their numbers, such as affinity=[0]")
    if not hasattr(os, "sched_getaffinity"):
        raise Refusal("affinity needs Linux; leave it out here")
    usable = os.sched_getaffinity(0)
    if missing := sorted(set(cores) - usable):
        listed = ", ".join(map(str, sorted(usable)))
        raise Refusal(f"affinity={affinity}: there is no core {missing[0]} for this process; there are: {listed}")
    return tuple(sorted(set(cores)))
