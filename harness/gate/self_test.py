"""How often the gate is wrong on this machine: A/A runs, planted slow-downs, failures, in quiet and under load.

The kernel is a hundred small trainings of one variant in a fresh process; the planted slow-downs are one, two or five
such trainings more, which their counts of work prove. What is measured is on disk at once, so that it can be made in
portions: the same command goes on where it was.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import random
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from harness.common import registry
from harness.common.comparison import Sample
from harness.common.errors import INCONCLUSIVE, OK, UNMEASURED, Refusal
from harness.common.files import temporary_folder, write_whole
from harness.common.progress import Show
from harness.common.progress import stage_bar as showing
from harness.common.registry import VariantCard
from harness.common.units import count_text, duration_text
from harness.gate import planted
from harness.gate.background import background_load
from harness.gate.card import Card, card_in, card_of
from harness.gate.evidence import readable
from harness.gate.failures import Failures, wanted
from harness.gate.self_test_page import aims_missed, page
from harness.gate.sides import working_side
from harness.gate.stream import AGAIN, BASE, KIND, SAME, Kind, Stream, planted_name
from harness.gate.tasks import Arm, Laboratory, hash_seed, timed, why
from harness.measure import lock
from harness.measure.environment import environment, host
from harness.runs.aa import Block, measured_block

SCHEMA = 1
CONDITIONS = ("quiet", "busy")
PARTS = ("failures", *CONDITIONS)
HEAD_NAME = "self_test.json"
FOLDER = Path("results", "local", "gate_self_test")
DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|h)")
SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}


class Enough(Exception):
    """The time that was given to a part is over."""


def self_test(asked: argparse.Namespace) -> int:
    """Make what is missing of the self-test and print its page. Returns the exit code: 23 if an aim is missed."""
    card = card_of(asked.card, asked.set)
    parts = parts_of(asked.only)
    until = time.monotonic() + seconds_of(asked.limit) if asked.limit else float("inf")
    output = asked.output or FOLDER
    with temporary_folder() as folder, lock.timing(asked.concurrent):
        test = SelfTest(card, output, Path(folder), asked.quick, asked.concurrent)
        print("\n".join(test.plan(parts)))  # noqa: T201
        with showing() as show:
            test.run(parts, until, show)
    show_page(output)
    return INCONCLUSIVE if aims_missed(output, head_of(output)) else OK


def parts_of(only: str | None) -> list[str]:
    parts = only.split(",") if only else list(PARTS)
    for part in parts:
        if part not in PARTS:
            raise Refusal(registry.unknown("part of the self-test", part, PARTS))
    return parts


def seconds_of(duration: str) -> float:
    """
    >>> seconds_of("20min"), seconds_of("1.5h")
    (1200.0, 5400.0)
    """
    found = DURATION.fullmatch(duration.strip())
    if found is None:
        raise Refusal(f"--limit {duration} is no duration; it is written 90s, 20min or 2h")
    return float(found[1]) * SECONDS[found[2]]


def show_page(folder: Path, overrides: Sequence[str] = ()) -> int:
    """Print what is known so far, as it would be by a card with these `key=value` overrides."""
    head = head_of(folder)
    if overrides:
        head["card"] = asdict(card_in(head, overrides))
    print(readable(lambda said: page(folder, said), head, folder / HEAD_NAME), end="")  # noqa: T201
    return OK


def head_of(folder: Path) -> dict[str, Any]:
    """What was asked of the self-test in a folder. Raises Refusal if there is none."""
    try:
        head: dict[str, Any] = json.loads((folder / HEAD_NAME).read_text())
        if (head["schema"], head["kind"]) != (SCHEMA, KIND):
            raise ValueError(f"it is not a self-test's of schema {SCHEMA}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Refusal(f"{folder} has no {HEAD_NAME} of a self-test ({error})", UNMEASURED) from error
    return head


class SelfTest:
    """The kernel, the kinds of runs, and where everything is kept."""

    def __init__(self, card: Card, output: Path, folder: Path, quick: bool, concurrent: bool) -> None:
        self.card = card
        self.output = output
        self.folder = folder
        self.quick = quick
        self.runs = card.self_test.quick if quick else card.self_test.runs
        self.concurrent = concurrent
        self.laboratory = Laboratory(card, [], folder)
        self.side = working_side("head", {"variants"}, folder)
        self.task = self.laboratory.task("self_test", card.self_test.say)
        self.kernel = kernel_of(card)
        self.order = random.Random(time.time_ns())
        self.expected = self.calibrated()
        self.sample_seconds = self.measured_cost()
        self.known = environment()
        self.write_head()

    def calibrated(self) -> dict[str, dict[str, int]]:
        """The counts of every program, each the kernel's by its units; proves that more is planted as said."""
        unit = self.counts(1)
        expected = {}
        for name, units in self.units().items():
            expected[name] = {tally: units * number for tally, number in unit.items()}
        if not unit:
            raise Refusal(
                f"{self.card.self_test.variant} counts nothing of its work, so nothing proves what is planted"
            )
        return expected

    def units(self) -> dict[str, int]:
        """How many trainings each program of a block makes."""
        base = self.card.self_test.units
        more = {planted_name(share): round(base * (1 + share)) for share in self.card.self_test.planted}
        return {BASE: base, AGAIN: base, SAME: base, **more}

    def counts(self, units: int) -> dict[str, int]:
        sampled = self.laboratory.sample(Arm(self.side, with_units(self.kernel, units)), self.task)
        if sampled.answer["status"] != "ok":
            raise Refusal(f"the kernel cannot be measured: {why(sampled, self.task)}", UNMEASURED)
        self.digest = sampled.digest
        return dict(sampled.answer["tallies"])

    def measured_cost(self) -> float:
        started = time.monotonic()
        for _ in range(5):
            self.counts(self.card.self_test.units)
        return (time.monotonic() - started) / 5

    def head(self, condition: str) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "kind": KIND,
            "condition": condition,
            "started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "kernel": self.described(),
            "host": host(self.known),
            "python": self.known["python"],
            "concurrent": self.concurrent,
        }

    def described(self) -> dict[str, Any]:
        said = self.card.self_test
        return {"variant": said.variant, "units": self.units(), "counts": self.expected[BASE], **self.task.described}

    def write_head(self) -> None:
        known = {
            **self.head("all"),
            "environment": self.known,
            "runs": asdict(self.runs),
            "quick": self.quick,
            "card": asdict(self.card),
        }
        content = json.dumps(known, indent=1) + "\n"
        write_whole(self.output / HEAD_NAME, content.encode(), exit_code=UNMEASURED)

    def kinds(self) -> list[Kind]:
        """The kinds of runs of a stream, as far as they are wanted."""
        planted_kinds = [
            Kind(planted_name(share), share, self.runs.planted, self.card.time) for share in self.planted()
        ]
        return [Kind(SAME, 0.0, self.runs.same, self.card.time), *planted_kinds]

    def planted(self) -> list[float]:
        return list(self.card.self_test.planted)

    def stream(self, condition: str) -> tuple[Stream, list[Kind]]:
        stream, kinds = Stream(self.output / f"{condition}.jsonl", self.head(condition)), self.kinds()
        for kind in kinds:
            kind.advance(stream.blocks)
        return stream, kinds

    def plan(self, parts: list[str]) -> list[str]:
        """What is still to be done, and how long it will take."""
        said = [f"A sample takes {1000 * self.sample_seconds:.0f} ms, its process included."]
        for part in parts:
            if part == "failures":
                left = self.failures().left(wanted(self.card, self.quick))
                said.append(f"failures: {left} runs to make")
                continue
            stream, kinds = self.stream(part)
            stream.file.close()
            samples = samples_left(kinds, self.card.time.control.every)
            slower = 2.0 if part == "busy" else 1.0
            made = ", ".join(f"{len(kind.states)} of {kind.wanted} {kind.name}" for kind in kinds)
            time_text = duration_text(slower * samples * self.sample_seconds)
            said.append(f"{part}: {made} made; {count_text(round(samples))} samples to go, some {time_text}")
        return said

    def failures(self) -> Failures:
        return Failures(self.output / "failures.jsonl", self.laboratory, self.side, self.task, self.kernel)

    def run(self, parts: list[str], until: float, show: Show) -> None:
        """Make every part; where the time is limited, each gets its share of what the parts before it have left."""
        for place, part in enumerate(parts):
            now = time.monotonic()
            share = now + (until - now) / (len(parts) - place)
            with contextlib.suppress(Enough):
                if part == "failures":
                    self.run_failures(share, show)
                else:
                    load = (
                        background_load(self.order.randrange(1 << 32)) if part == "busy" else contextlib.nullcontext()
                    )
                    with load:
                        self.run_stream(part, share, show)

    def run_failures(self, until: float, show: Show) -> None:
        failures, numbers = self.failures(), wanted(self.card, self.quick)
        total = sum(numbers.values())
        for fault in failures.run(numbers):
            if time.monotonic() > until:
                raise Enough
            show("self-test: failures", fault, total - failures.left(numbers), total)

    def run_stream(self, condition: str, until: float, show: Show) -> None:
        stream, kinds = self.stream(condition)
        try:
            while not all(kind.finished for kind in kinds):
                if time.monotonic() > until:
                    raise Enough
                done = len(stream.blocks)
                made = ", ".join(f"{len(kind.states)} {kind.name}" for kind in kinds)
                show(f"self-test: {condition}", made, done, done + round(max(kind.blocks_left for kind in kinds)))
                stream.file.add(self.block(done, [kind.name for kind in kinds if not kind.finished]))
                for kind in kinds:
                    kind.advance(stream.blocks[done:])
        finally:
            stream.file.close()

    def block(self, number: int, names: list[str]) -> Block:
        """One sample of every program that is still wanted, with one seed for all their hashes."""
        programs = [BASE, *names, *([AGAIN] if number % self.card.time.control.every == 0 else [])]
        seed = hash_seed(self.order)
        return measured_block(programs, lambda name: self.sample(name, number, seed), self.order)

    def sample(self, name: str, number: int, seed: Mapping[str, str]) -> Sample:
        program = with_units(self.kernel, self.units()[name])
        sampled = self.laboratory.sample(Arm(self.side, program), self.task, environment=seed)
        known = timed(sampled, number, 1)
        if sampled.answer["status"] != "ok" or known is None:
            raise Refusal(f"the kernel could not be measured: {why(sampled, self.task)}", UNMEASURED)
        if sampled.digest != self.digest or sampled.answer["tallies"] != self.expected[name]:
            raise Refusal(f"{name} came to other merges or counts than planned; that is a fault, please report it")
        return known.sample


def kernel_of(card: Card) -> VariantCard:
    """So many trainings of the card's variant, as one trainer."""
    selected = registry.select([card.self_test.variant])
    if len(selected) != 1:
        raise Refusal(f"self_test.variant={card.self_test.variant} are {len(selected)} variants; choose one")
    variant = selected[0]
    params = {"target": variant.target, "units": card.self_test.units}
    return VariantCard("kernel", f"{planted.__name__}:units", family=variant.family, params=params)


def with_units(kernel: VariantCard, units: int) -> VariantCard:
    return replace(kernel, params={**kernel.params, "units": units})


def samples_left(kinds: list[Kind], every: int) -> float:
    """How many samples are still to be taken: one of base and a share of a control in every block, one of each kind."""
    left = [kind.blocks_left for kind in kinds]
    return max(left, default=0.0) * (1 + 1 / every) + sum(left)
