"""What a self-test has shown, from its files alone: rates with their intervals, and what this machine resolves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from harness.common.units import count_text, share_text
from harness.gate.card import Card, card_in
from harness.gate.failures import FAULTS, read_failures
from harness.gate.rule import ESCALATE, INCONCLUSIVE, REGRESSION, decide
from harness.gate.stream import BASE, SAME, Kind, blocked, planted_name, read_stream
from harness.runs.aa import Block, rate_interval, windows

CONDITIONS = {"quiet": "nothing beside it", "busy": "none to three busy processes beside it"}
POWER = 0.99
"""How often a slow-down must be caught for the machine to be said to resolve it."""
STEP, LARGEST = 0.0025, 0.2
FEWEST_WINDOWS = 20
AIMS = {"same": (0.0, 0.01), "+5%": (0.99, 1.0), "+1%": (0.0, 0.05)}
"""Between which rates a kind of run is to be flagged."""
Runs = Mapping[str, tuple[list[Block], list[Kind]]]


def kinds_of(head: Mapping[str, Any], blocks: list[Block]) -> list[Kind]:
    """The runs that a stream holds."""
    card, runs = card_in(head), head["runs"]
    found = [Kind(SAME, 0.0, runs["same"], card.time)]
    found += [Kind(planted_name(share), share, runs["planted"], card.time) for share in card.self_test.planted]
    for kind in found:
        kind.advance(blocks)
    return found


def runs_of(folder: Path, head: Mapping[str, Any]) -> Runs:
    """The blocks of each condition that was measured, and the runs that they make."""
    read = {name: folder / f"{name}.jsonl" for name in CONDITIONS}
    streams = {name: read_stream(path)[1] for name, path in read.items() if path.exists()}
    return {name: (blocks, kinds_of(head, blocks)) for name, blocks in streams.items()}


def page(folder: Path, head: Mapping[str, Any]) -> str:
    """The tables as Markdown."""
    found, ended = runs_of(folder, head), read_failures(folder / "failures.jsonl")
    lines = [*said_first(head), ""]
    if found:
        lines += ["| beside it | runs | of | told slower | rate (95 % interval) | inconclusive | looked at twice |"]
        lines += ["|---|---|---:|---:|---|---:|---:|"]
        for condition, (_, kinds) in found.items():
            lines += [row(CONDITIONS[condition], kind) for kind in kinds]
        lines += ["", *resolved(head, found), ""]
    lines += ["| failure | runs | caught | rate (95 % interval) |", "|---|---:|---:|---|"]
    for fault in FAULTS:
        codes = ended.get(fault.name, [])
        caught = sum(code == fault.code for code in codes)
        lines.append(
            f"| {fault.name} (exit code {fault.code}) | {len(codes)} | {caught} | {rate(caught, len(codes))} |"
        )
    unfinished = [kind for _, kinds in found.values() for kind in kinds if not kind.finished]
    if unfinished or len(found) < len(CONDITIONS):
        lines += ["", "Not all runs that are wanted have been made; the same command makes the others."]
    if missed := missed_by(found, ended):
        lines += ["", f"Not as aimed at: {', '.join(missed)}."]
    return "\n".join(lines) + "\n"


def said_first(head: Mapping[str, Any]) -> list[str]:
    kernel, machine, card = head["kernel"], head["environment"], card_in(head)
    time = card.time
    return [
        f"A run compares {count_text(kernel['units'][BASE])} trainings of `{kernel['variant']}` with as many, or with "
        f"{', '.join(str(number) for name, number in kernel['units'].items() if name.startswith('+'))} of them: "
        f"{time.triage.blocks} blocks, slower by over {share_text(time.triage.most)}, then {time.confirm.blocks} "
        f"others, slower by over {share_text(time.confirm.most)}. {machine['cpu']}, {machine['cores']} processors, "
        f"{machine['kernel']}, {machine['python']}, {head['started'][:10]}."
        + (" Other runs were measured beside it." if head["concurrent"] else "")
    ]


def row(condition: str, kind: Kind) -> str:
    told = kind.states.count(REGRESSION)
    name = "A/A" if kind.name == SAME else f"{kind.name.replace('%', ' %')} planted"
    unsure = kind.states.count(INCONCLUSIVE)
    return (
        f"| {condition} | {name} | {len(kind.states)} | {told} | {rate(told, len(kind.states))} | {unsure} "
        f"| {kind.escalated} |"
    )


def rate(some: int, of: int) -> str:
    """
    >>> rate(0, 0), rate(0, 400)
    ('-', '0 % (0 % to 0.9 %)')
    """
    if not of:
        return "-"
    low, high = rate_interval(some, of)
    return f"{share_text(some / of)} ({share_text(low)} to {share_text(high)})"


def resolved(head: Mapping[str, Any], runs: Runs) -> list[str]:
    """The smallest slow-down that is caught nearly always, from A/A blocks with a slow-down added to their figures."""
    said = []
    for condition, (blocks, _) in runs.items():
        smallest, number = detectable(card_in(head), blocks)
        length = [block[BASE].cpu_seconds or 0.0 for block in blocks]
        told = "none up to 20 %" if smallest is None else f"+{share_text(smallest)}"
        if number < FEWEST_WINDOWS:
            told = f"unknown from {number} windows; it takes {FEWEST_WINDOWS}"
        said.append(
            f"With {CONDITIONS[condition]}, samples of {1000 * median(length):.0f} ms of CPU time: the smallest "
            f"slow-down caught {share_text(POWER)} of the time is {told} (in {number} windows of A/A blocks that "
            "share none, with a slow-down added to head's figures)."
            if length
            else f"With {CONDITIONS[condition]}: nothing yet."
        )
    return ["  \n".join(said)] if said else []


def detectable(card: Card, blocks: list[Block]) -> tuple[float | None, int]:
    """The smallest share that, added, is told in 99 of 100 windows; and how many windows there are."""
    first, whole = card.time.triage.blocks, card.time.triage.blocks + card.time.confirm.blocks
    compared = windows([block for block in blocks if SAME in block], whole)

    def caught(share: float) -> float:
        told = 0
        for window in compared:
            slower = blocked(window, SAME, share)
            decision = decide(card.time, slower[:first])
            if decision.state == ESCALATE:
                decision = decide(card.time, slower[:first], slower[first:])
            told += decision.state == REGRESSION
        return told / len(compared)

    steps = round(LARGEST / STEP)
    if len(compared) < FEWEST_WINDOWS or caught(LARGEST) < POWER:
        return None, len(compared)
    low, high = 0, steps
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if caught(middle * STEP) >= POWER else (middle, high)
    return high * STEP, len(compared)


def aims_missed(folder: Path, head: Mapping[str, Any]) -> list[str]:
    """The rates that are surely not what was aimed at, and failures that were not caught."""
    return missed_by(runs_of(folder, head), read_failures(folder / "failures.jsonl"))


def missed_by(runs: Runs, ended: Mapping[str, list[int]]) -> list[str]:
    """The same of what has been read: the runs, and with what each failure ended."""
    missed = []
    for condition, (_, kinds) in runs.items():
        for kind in kinds:
            least, most = AIMS.get(kind.name, (0.0, 1.0))
            if kind.states:
                low, high = rate_interval(kind.states.count(REGRESSION), len(kind.states))
                if high < least or low > most:
                    missed.append(f"{condition} {kind.name}")
    return missed + [fault.name for fault in FAULTS if any(code != fault.code for code in ended.get(fault.name, []))]
