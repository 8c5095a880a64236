"""What a table's times do not say: which rows do not differ, and which were disturbed too much to be ranked."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from harness.common.comparison import CONFIDENCE, FEWEST_BLOCKS, MARGIN, MOST_PRESSURE, Comparison, Sample, compare
from harness.common.units import counted_text, share_text
from harness.results.baseline import Baseline
from harness.results.columns import interval_text
from harness.results.rows import Row

MUCH_SPREAD = 0.2
MUCH_STEAL = 0.05
MUCH_IMPORT_CPU_SECONDS = 1.0
ONE_RUN_CANNOT_TELL = 0.1
"""Within this share, single runs on a quiet machine come out in either order."""

MOST_NAMED = 8
"""More rows than these are counted, not named."""

ALL_ARE_COUNTED = 3
"""So many rows or more are not named where a sentence holds for all of them."""

_Named = tuple[Row, str]
_MORE_BLOCKS = f"repeat={FEWEST_BLOCKS} or more gives an interval"


def findings(rows: Sequence[Row], labels: Sequence[str], relative_to: str | None = None) -> list[str]:
    """The sentences below a table of times; `labels` name the rows."""
    timed = [(row, label) for row, label in zip(rows, labels, strict=True) if row.total is not None]
    said = ratios_explained(rows, labels, relative_to) if relative_to is not None else []
    # Who does other work is not ranked with the others.
    ranked = [(row, label) for row, label in timed if not row.by_design]
    return [*said, *ranking(ranked), *noise(timed), *early(timed), *counted(rows)]


def ratios_explained(rows: Sequence[Row], labels: Sequence[str], variant: str) -> list[str]:
    """How ratios within blocks were made; nothing where there are none."""
    baseline = Baseline(rows, variant)
    refused = baseline.refusals(labels)
    paired = [
        (comparison, label)
        for comparison, label in zip(baseline.comparisons, labels, strict=True)
        if comparison is not None and comparison.blocks + comparison.left_out > 1
    ]
    if not paired:
        return refused
    clocks = {comparison.clock for comparison, _ in paired}
    seconds = (
        f"{clocks.pop()} seconds" if len(clocks) == 1 else "CPU seconds where both ran one thread, else wall seconds"
    )
    interval = (
        f", with its {share_text(CONFIDENCE)} confidence interval"
        if any(comparison.different is not None for comparison, _ in paired)
        else f"; {_MORE_BLOCKS}"
    )
    said = [f"total / {variant}: the median over blocks of the ratio of {seconds}{interval}."]
    left_out = [
        f"{label}: {comparison.left_out} of {comparison.blocks + comparison.left_out}"
        for comparison, label in paired
        if comparison.left_out
    ]
    if left_out:
        said.append(f"Blocks left out of it because the machine was too busy for wall times: {listed(left_out)}.")
    return said + refused


def ranking(timed: Sequence[_Named]) -> Iterator[str]:
    """Where the order of rows that follow each other by total says nothing, or was not shown to say anything."""
    same, few, single = [], [], []
    for (row, label), (slower, other) in _neighbours(timed):
        names = f"{label} and {other}"
        doubt, comparison = _doubt(row, slower)
        if doubt == "same" and comparison is not None:
            same.append(f"{names} ({interval_text(comparison).partition(',')[0]})")
        elif doubt == "few":
            few.append(f"{names} ({_blocks(comparison)})")
        elif doubt == "single":
            single.append(names)
    if same:
        yield (
            f"No difference: {listed(same)}. The interval of their ratio contains 1 or lies within "
            f"{share_text(MARGIN)} of it, so their order means nothing."
        )
    if few:
        yield f"Times overlap, so their order means nothing yet: {listed(few)}. {_MORE_BLOCKS}."
    if single:
        yield (
            f"One run cannot rank rows within {share_text(ONE_RUN_CANNOT_TELL)} of each other: {listed(single)}. "
            f"{_MORE_BLOCKS}."
        )


def told_apart(row: Row, slower: Row) -> bool:
    """Whether what was measured shows that the second of two rows, which is no faster, takes longer."""
    return not _doubt(row, slower)[0]


def _doubt(row: Row, slower: Row) -> tuple[str, Comparison | None]:
    """Why the order of two rows means nothing, if it does: no difference, few blocks or single runs."""
    comparison = compare(slower.samples, row.samples)
    if comparison is not None and comparison.different is not None:
        return "" if comparison.different else "same", comparison
    if _overlap(row, slower):
        return "few", comparison
    close = (slower.total or 0) <= (1 + ONE_RUN_CANNOT_TELL) * (row.total or 0)
    return "single" if min(row.runs, slower.runs) == 1 and close else "", comparison


def _neighbours(timed: Sequence[_Named]) -> Iterator[tuple[_Named, _Named]]:
    """Rows that answer one question on one kind of machine, each with the next slower one."""

    def together(named: _Named) -> str:
        return f"{named[0].question} {named[0].record.get('host')}"

    for _, group in itertools.groupby(sorted(timed, key=together), key=together):
        yield from itertools.pairwise(sorted(group, key=lambda named: named[0].total or 0.0))


def _overlap(row: Row, slower: Row) -> bool:
    if min(len(row.samples), len(slower.samples)) < 2:
        return False
    return max(sample.wall_seconds for sample in row.samples) >= min(sample.wall_seconds for sample in slower.samples)


def _blocks(comparison: Comparison | None) -> str:
    usable = comparison.blocks if comparison is not None else 0
    return counted_text(usable, "block")


def noise(timed: Sequence[_Named]) -> Iterator[str]:
    """What disturbed the samples more than a time bears."""
    spread = [f"{label} {share_text(row.spread)}" for row, label in timed if row.spread and row.spread > MUCH_SPREAD]
    if spread:
        yield f"Totals spread by over {share_text(MUCH_SPREAD)} of their median: {listed(spread)}."
    pressed = _disturbed(timed, lambda sample: sample.kept_waiting)
    if pressed:
        yield (
            f"Something waited for a processor for over {share_text(MOST_PRESSURE)} of the time, so wall times are too "
            f"long: {pressed}."
        )
    stolen = _disturbed(timed, lambda sample: sample.steal is not None and sample.steal > MUCH_STEAL)
    if stolen:
        yield f"Other virtual machines took over {share_text(MUCH_STEAL)} of the time: {stolen}."


def early(timed: Sequence[_Named]) -> Iterator[str]:
    """Who worked longer before its call than in it: on what it found elsewhere, or to load a large library."""
    worked = [
        f"{label} {spent:.1f} s"
        for row, label in timed
        if (spent := (row.record.get("witness") or {}).get("import_cpu_seconds"))
        and spent > max(MUCH_IMPORT_CPU_SECONDS, row.total or 0.0)
    ]
    if worked:
        yield f"Loading its module took more CPU time than the total, which does not include it: {listed(worked)}."


def _disturbed(timed: Sequence[_Named], disturbed: Callable[[Sample], bool]) -> str:
    counts = [(sum(map(disturbed, row.samples)), len(row.samples), label) for row, label in timed]
    if len(counts) >= ALL_ARE_COUNTED and all(some == all_ for some, all_, _ in counts):
        return f"all runs of all {len(counts)} rows"
    return listed([f"{label} in {some} of {all_} runs" for some, all_, label in counts if some])


def listed(named: Sequence[str]) -> str:
    """
    >>> listed(["a", "b"]), listed([str(number) for number in range(20)])
    ('a; b', '0; 1; 2; 3; 4; 5; 6; 7; and 12 more')
    """
    rest = len(named) - MOST_NAMED
    return "; ".join([*named[:MOST_NAMED], f"and {rest} more"] if rest > 1 else named)


def counted(rows: Sequence[Row]) -> Iterator[str]:
    """What was counted as instructions, and by what."""
    how = [row.record.get("instructions") or {} for row in rows if row.instructions is not None]
    tools = dict.fromkeys(f"{each.get('tool')} on {each.get('path')}" for each in how)
    if tools:
        yield f"instructions: those of the trainer's call alone, by {'; by '.join(tools)}."
