"""The result of a comparison in one sentence: the title of its chart, and of its page."""

from __future__ import annotations

from collections.abc import Sequence

from harness.common import registry
from harness.results.legend import labelled
from harness.results.ratios import is_slower, ratio_of
from harness.results.rows import Row, is_wrong
from harness.results.writing import join_names, time_text, times_text


def headline(task: Sequence[Row]) -> str:
    """The result with the verdict on the merges, such as "flat: 0.0102 s, 44 times as fast as heap;
    all 10 identical".
    """
    return "; ".join(filter(None, [claim(task), _verdict(task)])) or "no times"


def claim(rows: Sequence[Row]) -> str:
    """The result, such as "flat: 0.0102 s, 44 times as fast as heap"; empty without a time, or for
    several tasks.
    """
    timed = [(row, label) for row, label in labelled(rows) if row.total and not row.other_merges]
    if not timed or len({row.question for row in rows}) > 1:
        return ""
    timed.sort(key=lambda pair: (pair[0].doubtful, pair[0].total or 0.0))
    (first, name), *others = timed
    slower, tied = [], []
    for row, label in others:
        if row.doubtful and not first.doubtful:
            continue  # nothing is faster than what may be wrong
        if is_slower(row, first):
            slower.append((row, label))
        else:
            tied.append(label)

    text = f"{name}: {time_text(first.time)}"
    if tied:
        text += f", tied with {join_names(tied[:2])}"
    for row, label in [*slower[:1], *slower[1:][-1:]]:
        times = times_text(ratio_of(row, first), "", interval=False)
        text += f", {times} times as fast as {label}"
    return text


def _verdict(task: Sequence[Row]) -> str:
    """Return how many rows are proved to have learned the defined merges, and how many learned
    wrong ones.
    """
    if len(task) < 2 or task[0].counting_only:
        return ""
    proved = [row for row in task if row.confirmed]
    kind = "identical" if len({row.digest for row in proved}) == 1 else "proved"
    number = "all" if len(proved) == len(task) else f"{len(proved)} of"
    text = f"{number} {len(task)} {kind}"

    wrong = 0
    for row in task:
        wrong += is_wrong([row])
    return f"{text}, {wrong} wrong" if wrong else text


def is_ours(name: str) -> bool:
    """Return whether a trainer is of this project or of its user, and not an outside one."""
    card = registry.variants().get(name)
    return card is None or registry.OUTSIDE not in card.tags
