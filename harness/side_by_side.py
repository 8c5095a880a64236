"""Two sets of records as one table: each cell's time in either, and how many times as long the right one takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.apart import compare_runs, same_blocks
from harness.columns import at_least, column, interval_text, mark_of, settings
from harness.comparison import CONFIDENCE, Comparison
from harness.conditions import NAMES
from harness.figures import units_note
from harness.findings import listed
from harness.frame import frame_of
from harness.legend import NOT_MEASURED, Legend, status_text
from harness.likeness import Pair, Pairing, paired, require_alike, told
from harness.rows import Row, rows
from harness.sheet import Column, Sheet
from harness.units import bytes_text, decimals_for, ratio_text, share_text

if TYPE_CHECKING:
    import pandas as pd

Records = Sequence[Mapping[str, Any]]

MERGES_DIFFER = "≠"
SIDES = ("left", "right")


@dataclass(frozen=True)
class Sets:
    """Two sets of records under the names that they were given by, their rows put side by side."""

    names: tuple[str, str]
    pairing: Pairing

    @property
    def wrong(self) -> bool:
        """Whether any merges are wrong, or any pair was to learn the same and did not."""
        rows_of_both = [row for pair in self.pairing.pairs for row in (pair.left, pair.right)]
        alone = [*self.pairing.only_left, *self.pairing.only_right]
        return any(map(merges_differ, self.pairing.pairs)) or any(
            row.status == "mismatch" or row.disputed for row in (*rows_of_both, *alone)
        )


def side_by_side(left: Records, right: Records, names: tuple[str, str], allowed: Sequence[str] | None) -> Sets:
    """Pair the rows of two sets. Raises Refusal where they are unlike in what is not allowed; no name allows all."""
    sets = Sets(names, paired(rows(left), rows(right)))
    require_alike(sets.pairing, names, () if allowed is None else allowed or NAMES)
    return sets


def merges_differ(pair: Pair) -> bool:
    return (
        pair.same_question
        and not pair.left.counting_only
        and pair.left.status == pair.right.status == "ok"
        and pair.left.digest != pair.right.digest
    )


def comparison_of(pair: Pair) -> Comparison | None:
    """Right by left; None where one has no time, or where their merges differ, so that one of them is worth nothing."""
    return None if merges_differ(pair) else compare_runs(pair.right.samples, pair.left.samples)


def comparison_sheet(sets: Sets) -> Sheet:
    """A line for each pair, and below it what only one set has and in what the two are unlike."""
    pairs = sets.pairing.pairs
    sides = [pair.left for pair in pairs], [pair.right for pair in pairs]
    legends = Legend(sides[0]), Legend(sides[1])
    compared = [comparison_of(pair) for pair in pairs]
    decimals = decimals_for(row.total for row in (*sides[0], *sides[1]) if row.total is not None)
    columns = [Column("counter" if sides[0][0].counting_only else "variant", legends[0].names, figures=False)]
    columns += settings(legends[0])
    for side, shown in zip(SIDES, sides, strict=True):
        columns.append(Column(f"total {side}", [_total_text(row, decimals) for row in shown]))
    columns += [
        Column("right / left", [_ratio_text(pair, each) for pair, each in zip(pairs, compared, strict=True)]),
        Column("interval", [_interval_text(pair, each) for pair, each in zip(pairs, compared, strict=True)], False),
    ]
    for side, shown in zip(SIDES, sides, strict=True):
        columns.append(column(f"memory {side}", shown, lambda row: row.peak_rss_bytes, bytes_text))
    columns.append(Column("merges", [_merges_text(pair) for pair in pairs], figures=False))
    if any(pair.differences for pair in pairs):
        columns.append(Column("unlike in", [_unlike_text(pair) for pair in pairs], figures=False))
    caption = [
        f"{side}: {name}: {'; '.join(legend.caption())}"
        for side, name, legend in zip(SIDES, sets.names, legends, strict=True)
    ]
    styles = [_style(pair, each) for pair, each in zip(pairs, compared, strict=True)]
    return Sheet(caption, columns, styles, list(_notes(sets, legends, compared)))


def _total_text(row: Row, decimals: int) -> str:
    if row.total is not None:
        return f"{row.total:,.{decimals}f}{mark_of(row)}"
    return MERGES_DIFFER if row.status == "mismatch" else at_least(row) or status_text(row)


def _ratio_text(pair: Pair, comparison: Comparison | None) -> str:
    if merges_differ(pair):
        return MERGES_DIFFER
    return NOT_MEASURED if comparison is None else ratio_text(comparison.ratio)


def _interval_text(pair: Pair, comparison: Comparison | None) -> str:
    """The interval; where there is none, how few runs the ratio is of."""
    if comparison is None or comparison.different is not None:
        return NOT_MEASURED if comparison is None else interval_text(comparison)
    runs = min(len(pair.left.samples), len(pair.right.samples))
    return "one run" if runs == 1 else f"{runs} runs"


def _merges_text(pair: Pair) -> str:
    if merges_differ(pair):
        return f"{MERGES_DIFFER} {pair.left.digest}, {pair.right.digest}"
    if pair.left.status != "ok" or pair.right.status != "ok" or pair.left.counting_only:
        return NOT_MEASURED
    return f"= {pair.left.digest}" if pair.same_question else "another question"


def _unlike_text(pair: Pair) -> str:
    return ", ".join(difference.condition for difference in pair.differences) or NOT_MEASURED


def _style(pair: Pair, comparison: Comparison | None) -> str:
    if merges_differ(pair) or "mismatch" in (pair.left.status, pair.right.status):
        return "red"
    if comparison is None:
        return "dim"
    return "" if pair.left.confirmed and pair.right.confirmed else "yellow"


def _notes(sets: Sets, legends: tuple[Legend, Legend], compared: Sequence[Comparison | None]) -> Iterator[str]:
    pairs = sets.pairing.pairs
    labelled = list(zip(pairs, compared, legends[0].short_labels(), strict=True))
    wrong = [f"{label} ({pair.left.digest}, {pair.right.digest})" for pair, _, label in labelled if merges_differ(pair)]
    if wrong:
        yield f"{MERGES_DIFFER} left and right learned other merges from the same, so no ratio: {listed(wrong)}."
    for side, legend in zip(SIDES, legends, strict=True):
        yield from (f"{side}: {note}" for note in legend.notes())
    if sets.pairing.differences:
        yield f"Compared although unlike in {told(sets.pairing.differences)}."
    yield from _how_compared(labelled)
    for side, alone in zip(SIDES, (sets.pairing.only_left, sets.pairing.only_right), strict=True):
        if alone:
            yield f"Only {side}: {listed(Legend(alone).short_labels())}."
    yield units_note(["total left", "memory left"])


def _how_compared(labelled: Sequence[tuple[Pair, Comparison | None, str]]) -> Iterator[str]:
    """What each ratio is of, and how far it can be trusted."""
    known = [(pair, each, label) for pair, each, label in labelled if each is not None]
    clocks = dict.fromkeys(each.clock for _, each, _ in known)
    if known:
        mixed = "CPU seconds where all ran one thread, else wall seconds"
        clock = mixed if len(clocks) > 1 else f"{next(iter(clocks))} seconds"
        yield f"right / left: of {clock}; over 1 the right is slower."
    if any(each.different is not None for _, each, _ in known):
        yield f"The interval holds the ratio with {share_text(CONFIDENCE)} confidence."
    within = [label for pair, each, label in known if same_blocks(pair.right.samples, pair.left.samples)]
    apart = [label for pair, each, label in known if label not in within and each.different is not None]
    few = [label for _, each, label in known if each.different is None]
    if apart:
        yield (
            "Measured in different runs: the interval knows the noise within each, and not what changed on the machine "
            f"between them: {listed(apart)}."
        )
    if few:
        yield f"Too few runs for an interval, so a small difference means nothing: {listed(few)}."
    left_out = [f"{label}: {each.left_out}" for _, each, label in known if each.left_out]
    if left_out:
        yield f"Runs left out because the machine was too busy for wall times: {listed(left_out)}."


def comparison_frame(sets: Sets) -> pd.DataFrame:
    """A line for each cell of either set, raw figures of both sides, the ratio and what it rests on."""
    import pandas as pd  # only here: it costs half a second, and a table for the eye needs none of it

    pairs, alone = sets.pairing.pairs, (sets.pairing.only_left, sets.pairing.only_right)
    compared = [comparison_of(pair) for pair in pairs]
    left, right = frame_of([pair.left for pair in pairs]), frame_of([pair.right for pair in pairs])
    figures: dict[str, Sequence[Any]] = {
        "in": ["both"] * len(pairs),
        "merges_differ": [merges_differ(pair) for pair in pairs],
        "unlike": [" ".join(difference.condition for difference in pair.differences) or None for pair in pairs],
        "basis": [_basis(pair, each) for pair, each in zip(pairs, compared, strict=True)],
        **{name: [each and getattr(each, name) for each in compared] for name in ("ratio", "low", "high", "clock")},
    }
    both = pd.concat([pd.DataFrame(figures), left.add_prefix("left_"), right.add_prefix("right_")], axis="columns")
    lone = [
        frame_of(rows_alone).add_prefix(f"{side}_").assign(**{"in": side})
        for side, rows_alone in zip(SIDES, alone, strict=True)
        if rows_alone
    ]
    return pd.concat([both, *lone], ignore_index=True)


def _basis(pair: Pair, comparison: Comparison | None) -> str | None:
    """What the ratio was made of."""
    if comparison is None:
        return None
    if same_blocks(pair.right.samples, pair.left.samples):
        return "blocks"
    return "one run" if min(len(pair.left.samples), len(pair.right.samples)) == 1 else "runs apart"
