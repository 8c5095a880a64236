"""The result of a comparison in one sentence: the title of its chart, and of its page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter

from harness.results.legend import labelled, names_of
from harness.results.ratios import is_slower, leader, ratio_of
from harness.results.rows import Row, is_one_variant, is_wrong
from harness.results.selection import tasks_of
from harness.results.writing import digits_text, join_names, time_text, times_text


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
    timed.sort(key=lambda pair: pair[0].order)
    (first, name), *others = timed
    slower, tied = [], []
    for row, label in others:
        if row.doubtful and not first.doubtful:
            continue  # nothing is faster than what may be wrong
        if is_slower(row, first):
            slower.append((row, label))
        else:
            tied.append(label)

    text = f"{name}: {time_text(first.time, digits_text)}"
    if tied:
        text += f", tied with {join_names(tied[:2])}"
    for row, label in [*slower[:1], *slower[1:][-1:]]:
        times = times_text(ratio_of(row, first), "", interval=False, number_text=digits_text)
        text += f", {times} times as fast as {label}"
    return text


def finding(rows: Sequence[Row]) -> tuple[str, object]:
    """What the rows show in a sentence, if several trainers were measured, and the trainer that it
    is about, as in `Row.configured`.
    """
    tasks = tasks_of(rows, without=("tie_break", "counting"))
    if len(tasks) == 1:
        timed = [row for row in rows if row.total and not row.other_merges]
        return claim(rows), min(timed, key=attrgetter("order")).configured if timed else None
    if is_one_variant(rows):
        return "", rows[0].configured

    names = dict(zip([row.configured for row in rows], names_of(rows), strict=True))
    firsts = Counter[str]()
    for task in tasks:
        first = leader(task)
        if first is not None:
            firsts[names[first.configured]] += 1
    is_of_texts = len({task[0].corpus.sha256 for task in tasks}) == len(tasks)
    text, name = firsts_text(firsts, len(tasks), "texts" if is_of_texts else "tasks")
    return text, next((configured for configured in names if names[configured] == name), None)


def firsts_text(firsts: Counter[str], number: int, noun: str) -> tuple[str, str]:
    """In how many of so many cells which trainer is first, in a sentence, and that trainer."""
    if not firsts:
        return f"Too close to rank in all {number} {noun}", ""
    ((name, times),) = firsts.most_common(1)
    return f"{name} is fastest in {times} of {number} {noun}", name


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
