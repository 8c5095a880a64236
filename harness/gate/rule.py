"""The inputs of a gate's verdict, which are its card, its evidence and the file of accepted changes,
and the rule that decides about time.

conf/gate/usual.yaml explains each key of the card. Evidence is the records of one run, written as
they come, so an interrupted gate leaves what it observed; the verdict is a function of them. What is
accepted is committed with the code.

`decide` is a pure function of the card and of samples in blocks. A few blocks (triage) decide
whether to look longer; only blocks measured afterwards (confirmation) can fail a change. Ratios are
taken within blocks, since what disturbs a machine lasts longer than a block. The control compares
base with itself; if that differs, the machine is too noisy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Annotated, Any, NamedTuple, get_args

from msgspec import Meta, structs
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from harness.common import registry
from harness.common.cards import Number, Strict, fitted
from harness.common.comparison import CONFIDENCE, Comparison, Sample, compare
from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import ELSEWHERE, check_output, write_output
from harness.common.units import one_line, share_text
from harness.common.values import unknown_text
from harness.records.file import Joined, Record, RunLog, files_read
from harness.records.lines import FILE_NAME, RecordFile
from harness.records.schema import AcceptedChange, Gated, GateQuestion, Note, Run, State, Tier
from harness.results.fields import together

TIERS: tuple[Tier, ...] = get_args(Tier)
DEFAULT_CARD = "usual"
ADVICE = "conf/gate/usual.yaml explains every key"
Share = Annotated[float, Meta(ge=0, lt=1)]
Seconds = Annotated[float, Meta(gt=0)]
CorpusName = Annotated[str, Meta(pattern=r"^\S+$")]
"""Without a blank, because a line of accepted counts has it."""
BLOCKS_LEFT = 10
"""Without as many blocks that are undisturbed, or all of a shorter stage, nothing is decided."""
CONTROL_EVERY = 5
"""In which blocks base runs a second time, as the control: two of them may differ by as much as head
in triage.
"""
LARGER_SHARE, LARGER_BYTES = 0.05, 2_000_000
"""A peak of memory is higher if it is higher by more than both."""
CERTAINTY = 0.99
"""Of the interval that excludes 1 before a regression is reported, and of the control's. At 95 %, one
A/A run in forty would be reported on a machine whose times differ by ten per cent.
"""
VERDICT, SUMMARY = "verdict.json", "summary.md"
FILES = (FILE_NAME, VERDICT, SUMMARY)
ALL = "all"  # in place of a variant: it is about a whole tier
Counts = dict[str, int]


# The card


class CorpusRule(Strict, frozen=True):
    overrides: tuple[str, ...]
    variants: tuple[str, ...] = ()
    """Those that it is for; all if there are none."""


class ProcessLimits(Strict, frozen=True):
    wall: Seconds
    memory: str | int


class InstructionsRule(Strict, frozen=True):
    overrides: tuple[str, ...]
    max_increase: Share


class Stage(Strict, frozen=True):
    blocks: Number
    max_slowdown: Share


class TimeRule(Strict, frozen=True):
    overrides: tuple[str, ...]
    triage: Stage
    confirm: Stage
    max_missed_slowdown: Share
    max_seconds: Seconds


class GateCard(Strict, frozen=True):
    tiers: tuple[Tier, ...]
    variants: tuple[str, ...]
    corpora: dict[CorpusName, CorpusRule]
    known_wrong: dict[str, str]
    limits: ProcessLimits
    instructions: InstructionsRule
    time: TimeRule
    build: str

    @property
    def compared_tiers(self) -> list[Tier]:
        """The tiers that need a base."""
        return [tier for tier in self.tiers if tier != "identity"]


def read_gate_card(name: str, overrides: Sequence[str] = ()) -> GateCard:
    """Return the card of a name or file, over the usual one, with `key=value` overrides. Raises
    Refusal.
    """
    return merged_card(f"gate card {name}", map(registry.read_card, card_paths(name)), overrides)


def card_paths(name: str) -> list[Path]:
    """Return the files of a card, the usual one first. Raises Refusal for an unknown name."""
    files = registry.card_files("gate")
    file = files.get(name, Path(name))
    if not file.is_file():
        raise Refusal(f"{unknown_text('gate card', name, files)}; or pass the name of a file")
    return list(dict.fromkeys([files[DEFAULT_CARD], file]))


def merged_card(
    source: str, layers: Iterable[Mapping[str, Any]], overrides: Sequence[str] = ()
) -> GateCard:
    """Return the card of mappings laid over each other: mappings are merged, other values replaced.
    Raises Refusal for what is not one.
    """
    try:
        settings = OmegaConf.merge(*layers, OmegaConf.from_dotlist(list(overrides)))
        content = OmegaConf.to_container(settings)
    except (OmegaConfBaseException, YAMLError) as error:
        raise Refusal(f"{source}: {one_line(str(error))}; {ADVICE}") from error
    return fitted(content, GateCard, f"{source}: ", ADVICE)


# The evidence


@dataclass(frozen=True)
class Evidence:
    """A gate's run, what it measured, and what it did not."""

    run: Run
    question: GateQuestion
    records: Sequence[Record]
    notes: Sequence[Note]

    def of(self, tier: Tier) -> list[Record]:
        return [record for record in self.records if gated(record)["tier"] == tier]


def gated(record: Record) -> Gated:
    """For which question of the gate a record was measured."""
    assert record.cell.gate is not None, "the run of a gate has cells of a gate"
    return record.cell.gate


def by_comparison(records: Iterable[Record]) -> dict[str, list[Record]]:
    """The records by the comparison that each was measured for."""
    return together((gated(record)["comparison"], record) for record in records)


def of_side(records: Iterable[Record], side: str) -> list[Record]:
    return [record for record in records if gated(record)["side"] == side]


def note(log: RunLog, tiers: Iterable[Tier], variant: str, state: State, reason: str) -> None:
    """Write why a variant, or ALL, has no result in these tiers."""
    for tier in tiers:
        log.append(Note(run=log.run.run, tier=tier, variant=variant, state=state, reason=reason))


def new_log(folder: Path, started: str, question: GateQuestion) -> RunLog:
    """Start the records of a gate that runs now. Raises Refusal if the folder has other records."""
    path = folder / FILE_NAME
    check_output(folder, names=FILES)
    if path.exists() and path.stat().st_size:
        lines = Joined().read(path)
        questions = [line.question for _, _, line in lines if isinstance(line, Run)]
        if not questions or not all(questions):
            raise Refusal(f"{path} has records of other measurements; {ELSEWHERE}")

    for name in FILES:  # of an earlier gate
        path.with_name(name).unlink(missing_ok=True)
    log = RunLog(RecordFile(folder, instead=ELSEWHERE), started)
    log.run = structs.replace(log.run, question=question)
    log.append()
    return log


def read_evidence(path: Path) -> Evidence:
    """Read the newest gate of a file or folder of records. Raises Refusal if there is none."""
    lines, run = Joined(), None
    for file in files_read([path]):
        list(lines.read(file))
    for line in lines.shared.values():
        if isinstance(line, Run) and line.question:
            run = line
    if run is None:
        raise Refusal(f"{path} has no records of a gate; pass --replay a gate's output", UNMEASURED)

    records = [record for record in lines.records() if record.run.run == run.run]
    notes = []
    for line in lines.others.values():
        if isinstance(line, Note) and line.run == run.run:
            notes.append(line)
    return Evidence(run, run.question or {}, records, notes)


# What is accepted


ACCEPTED = Path("results", "accepted.txt")
CHANGE = re.compile(r"([0-9a-f]{7,40})\s+(\S+)\s+(work|time)\s+(\S.*)")
"""A change for the worse. It is valid for one base: after the merge, the base of the next change is
another commit.
"""
COUNT = re.compile(r"([^#\s]\S*) (\S+) (\S.*) (\d+)")
"""A variant's count of work on a corpus. It is equal on every machine, so another one is a change of the
algorithm.
"""


class Accepted(NamedTuple):
    """Counts of work by variant and corpus, and changes against one base."""

    counts: dict[str, dict[str, Counts]]
    changes: list[AcceptedChange]


def read_accepted(path: Path, commit: str = "") -> Accepted:
    """Read what a file accepts, of changes those against this commit; nothing without a file. Raises
    Refusal for other lines.
    """
    accepted = Accepted({}, [])
    for number, line in enumerate(map(str.strip, text_of(path).splitlines()), 1):
        change, count = CHANGE.fullmatch(line), COUNT.fullmatch(line)

        if change:
            base, variant, tier, reason = change.groups()
            if commit.startswith(base):
                accepted.changes.append({"variant": variant, "tier": tier, "reason": reason})
        elif count:
            variant, corpus, name, value = count.groups()
            accepted.counts.setdefault(variant, {}).setdefault(corpus, {})[name] = int(value)
        elif line and not line.startswith("#"):
            raise Refusal(
                f"{path}, line {number}: write BASE VARIANT TIER REASON, where BASE is the base's "
                "commit and TIER is work or time; --accept writes VARIANT CORPUS NAME COUNT",
                UNMEASURED,
            )
    return accepted


def accept(path: Path, records: Iterable[Record]) -> None:
    """Write the measured counts of work in place of the accepted ones, except those of wrong merges;
    sorted, below all other lines.
    """
    lines = text_of(path).splitlines()
    for record in records:
        if record.status == "ok":
            counted = f"{record.cell.variant} {gated(record)['corpus']} "
            lines = [line for line in lines if not line.startswith(counted)]
            for name, count in (record.measurement.tallies or {}).items():
                lines.append(f"{counted}{name} {count}")

    lines.sort(key=lambda line: line if COUNT.fullmatch(line) else "")
    content = "".join(f"{line}\n" for line in lines)
    write_output(path, content.encode(), instead="make its folder writable")


def text_of(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() else ""


# The decision


@dataclass(frozen=True)
class Decision:
    """The result of a stage, the reason, and what it was taken from: `memory` is an increase that
    is too large, `certainty` that of the interval of `effect`.
    """

    state: State
    why: str
    effect: Comparison | None = None
    control: Comparison | None = None
    memory: tuple[float, float] | None = None
    certainty: float = CONFIDENCE


def decide(rule: TimeRule, records: Iterable[Record]) -> Decision:
    """Return the decision of the blocks of triage, and if they do not pass of those of
    confirmation; the records are in the order of their blocks.
    """
    measured = [record for record in records if not record.measurement.warm_up]
    first = [record for record in measured if record.measurement.block < rule.triage.blocks]
    decision = look(rule, rule.triage, first)
    if decision.state == "pass":
        return decision

    fresh = measured[len(first) :]
    return confirm(rule, fresh) if fresh else replace(decision, state="inconclusive")


def look(rule: TimeRule, stage: Stage, records: Sequence[Record]) -> Decision:
    """What the blocks of a stage show: head against base, base against itself in the blocks that
    have it twice, and the increase of memory.
    """
    base, head, again = (samples_of(records, side) for side in ("base", "head", "again"))
    effect, control = compare(head, base), compare(again, base, CERTAINTY)
    measured = 0 if effect is None else effect.blocks + effect.left_out
    if effect is None or measured < stage.blocks:
        why = f"{measured} of {stage.blocks} blocks were measured"
        return Decision("inconclusive", why, effect, control)

    found = Decision("inconclusive", "", effect, control, memory_increase(records))
    if found.memory is not None:
        return replace(found, state="regression", why="the peak of memory is higher")
    if effect.blocks < min(BLOCKS_LEFT, stage.blocks):
        return replace(found, why=f"only {effect.blocks} of {measured} blocks were undisturbed")
    if effect.ratio > 1 + stage.max_slowdown:
        return replace(found, state="regression", why="head looks slower")
    if effect.high is None or effect.high > 1 + rule.max_missed_slowdown:
        why = f"a slow-down by {share_text(rule.max_missed_slowdown)} cannot be excluded"
        return replace(found, why=why)
    faster = f"faster by {share_text(1 - effect.ratio)}"
    return replace(found, state="pass", why=faster if effect.high < 1 else "no slower")


def confirm(rule: TimeRule, records: Sequence[Record]) -> Decision:
    """The decision of fresh blocks, the only one that can fail a change: a slow-down has to be
    certain, and base may not differ from itself by as much as head may in triage.
    """
    found = look(rule, rule.confirm, records)
    if found.state != "regression" or found.memory is not None:
        return found

    control, noise = found.control, rule.triage.max_slowdown
    if control is not None and control.different and abs(control.ratio - 1) > noise:
        limit = f"limit {share_text(noise)}; this machine is too noisy now"
        why = f"two measurements of base differ by {share_text(abs(control.ratio - 1))} ({limit})"
        return replace(found, state="inconclusive", why=why)

    certain = compare(samples_of(records, "head"), samples_of(records, "base"), CERTAINTY)
    if certain is not None and certain.low is not None:
        found = replace(found, effect=certain, certainty=CERTAINTY)
    effect = found.effect
    if effect is not None and effect.low is not None and effect.low > 1:
        return replace(found, why=f"head is slower by {share_text(effect.ratio - 1)}")
    why = "the machine is too noisy: the interval includes no slow-down at all"
    return replace(found, state="inconclusive", why=why)


def samples_of(records: Iterable[Record], side: str) -> list[Sample]:
    return [record.sample for record in of_side(records, side) if record.sample]


def memory_increase(records: Iterable[Record]) -> tuple[float, float] | None:
    """By which share and how many bytes head's median peak is higher; None if that is little, or
    was not measured.
    """
    medians = []
    for side in ("base", "head"):
        peaks = [record.measurement.peak_rss_bytes or 0 for record in of_side(records, side)]
        medians.append(median(peaks))
    base, head = medians

    is_larger = head - base > max(LARGER_SHARE * base, LARGER_BYTES)
    return (head / base - 1, head - base) if base and is_larger else None
