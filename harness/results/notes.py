"""Sentences about rows, the same in tables, charts and pages: the result, and what a reader needs to
know beside the figures.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from harness.common.units import count_text, no_pair_text, one_line, seconds_text, share_text
from harness.proof import BY_DESIGN, UP_TO_TIES
from harness.records.file import unfinished_note
from harness.results.fields import together
from harness.results.ratios import Against, base_name, is_slower, leader, ratio_of, tasks_of
from harness.results.rows import Row, is_one_variant, is_wrong
from harness.results.writing import (
    UNPROVED_MARK,
    digits_text,
    failure_text,
    join_names,
    labels_of,
    names_of,
    time_text,
    times_text,
)

MUCH_STEAL, MUCH_IDLE, MUCH_IMPORT_CPU_SECONDS = 0.05, 0.05, 1.0
Pairs = Iterable[tuple[str, str]]
"""Texts, each with the label of a row that it is about."""


def notes(
    rows: Sequence[Row],
    drawn: Sequence[Row] = (),
    of_time: bool = True,
    compared: Sequence[Against] = (),
) -> list[str]:
    """What changes a conclusion, the worst first: failures, doubtful merges, and `of_time` also
    ranks that mean nothing and a busy machine; then what explains right merges and missing ratios.

    Rows that are `drawn` although they were stopped are not named as failures.
    """
    labels = dict(zip(rows, labels_of(rows), strict=True))
    runs = dict.fromkeys(row.record.run.run for row in rows if row.record.unfinished)
    found = [f"R{unfinished_note(run)[1:]}." for run in runs]

    failures = []
    for row in sorted(rows, key=lambda row: row.status != "mismatch"):
        is_drawn = row in drawn and row.status != "mismatch"
        if row.reason if row.status == "ok" else not is_drawn:
            failures.append((failure_text(row), labels[row]))
    found += [f"{join_names(names)}: {text}." for text, names in together(failures).items()]

    doubts = []
    for row, label in labels.items():
        if row.disputed:
            differ = f"{UNPROVED_MARK} These differ in their merges, so not all are right"
            doubts.append((differ, f"{label} ({row.digest})"))
        if row.status == "ok" and not row.proved and not row.by_design:
            reason = row.identity.reason
            why = f" ({one_line(reason)})" if reason else ""
            doubts.append((f"{UNPROVED_MARK} Not proved{why}", label))
    found += [*_sentences(doubts), *_exhausted(rows)]
    if of_time:
        found += _sentences([*_too_close(labels), *_disturbances(labels)])

    explanations = []
    for (row, label), comparison in zip(labels.items(), compared, strict=False):
        kind, reason = row.identity.kind, row.identity.reason
        if kind in (UP_TO_TIES, BY_DESIGN) and reason:
            own = f"; on its own words {row.identity.of_own_words}" * row.is_right_on_its_words
            explanations.append((f"{label}, {kind.replace('_', ' ')}", one_line(reason) + own))
        if comparison.refused is not None:
            base, why = comparison.refused
            explanations.append((f"Not comparable with {base} ({why})", label))
    return [*found, *_sentences(explanations)]


def at_most(number: int, notes: Sequence[str], where: str) -> list[str]:
    rest = len(notes) - number + 1
    return list(notes) if rest < 2 else [*notes[: number - 1], f"{rest} more notes: see {where}."]


def _sentences(pairs: Pairs) -> list[str]:
    """A sentence for each text, with the labels of the rows that share it."""
    return [f"{text}: {join_names(labels)}." for text, labels in together(pairs).items()]


def _exhausted(rows: Sequence[Row]) -> list[str]:
    """Say that a text has fewer merges than requested; if rows made different numbers, a column has
    them.
    """
    ends = set()
    for row in rows:
        if row.status == "ok":
            ends.add((row.merges, row.requested_merges, row.record.cell.min_count))
    if len(ends) != 1 or not any(row.exhausted for row in rows):
        return []

    ((merges, requested, min_count),) = ends
    done = f"{count_text(merges or 0)} of {count_text(requested or 0)} merges"
    return [f"{no_pair_text(min_count or 1).capitalize()} after {done}."]


def _disturbances(labels: Mapping[Row, str]) -> Pairs:
    """Name rows whose times hold something other than their work, or are not of all their runs."""
    for row, label in labels.items():
        if (row.idle or 0.0) > MUCH_IDLE:
            yield f"Waited {share_text(row.idle or 0.0)} of its time", label
        unknown = {sample.cpu_wait_unknown for sample in row.samples} - {None}
        if unknown and row.threads == 1:
            yield f"Wall time, for {unknown.pop()}", label

        # something was prepared, or a large library loaded
        spent = (row.record.measurement.witness or {}).get("import_cpu_seconds") or 0.0
        if row.status == "ok" and spent > max(MUCH_IMPORT_CPU_SECONDS, row.total or 0.0):
            longer = "Loading the module took longer than the total, which excludes it"
            yield longer, f"{label} {seconds_text(spent)}"

        busy = [each.kept_waiting or (each.steal or 0.0) > MUCH_STEAL for each in row.samples]
        if any(busy):
            runs = f"{label} in {sum(busy)} of {len(busy)} runs"
            yield "Machine busy, so wall times may be too long", runs


def _too_close(labels: Mapping[Row, str]) -> Pairs:
    """Rows of one task on one machine that cannot be ranked before the next slower one."""
    for task in tasks_of([row for row in labels if row.total and not row.by_design]):
        task.sort(key=lambda row: row.total or 0.0)
        for row, slower in itertools.pairwise(task):
            if not is_slower(slower, row):
                yield "Too close to rank", f"{labels[row]} and {labels[slower]}"


# The result


def headline(rows: Sequence[Row]) -> str:
    """The finding with the verdict on the merges, such as "flat: 0.0102 s, 44 times as fast as heap;
    all 10 identical".
    """
    text, _ = finding(rows)
    return "; ".join(filter(None, [text, _verdict(rows)])) or "no times"


def finding(rows: Sequence[Row]) -> tuple[str, object]:
    """What the rows show in a sentence, if several trainers were measured, and the trainer that it
    is about, as in `Row.configured`.
    """
    tasks = tasks_of(rows)
    if len(tasks) == 1:
        return _finding_of_task(rows)
    if is_one_variant(rows):
        return "", rows[0].configured

    firsts = Counter[object]()
    for task in tasks:
        first = leader(task)
        if first is not None:
            firsts[first.configured] += 1
    trainer = max(firsts, key=firsts.__getitem__, default=None)

    trainers: list[object] = [row.configured for row in rows]
    names = dict(zip(trainers, names_of(rows), strict=True))
    texts = {_text_of(task[0]) for task in tasks}
    noun = "texts" if len(texts) == len(tasks) else "tasks"
    return firsts_text(names.get(trainer, ""), firsts[trainer], len(tasks), noun), trainer


def _finding_of_task(task: Sequence[Row]) -> tuple[str, object]:
    """The fastest row with its ratio to the next and to the last one, such as "flat: 0.0102 s, 44
    times as fast as heap"; empty without a time.
    """
    labels = zip(task, labels_of(task), strict=True)
    timed = [(row, label) for row, label in labels if row.total and not row.other_merges]
    if not timed:
        return "", None
    (first, name), *others = sorted(timed, key=lambda pair: pair[0].order)
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
        times = times_text(ratio_of(row, first), "", brief=True)
        text += f", {times} times as fast as {label}"
    return text, first.configured


def firsts_text(name: str, times: int, number: int, noun: str) -> str:
    """In how many of so many cells the trainer that leads most is first, in a sentence."""
    if not times:
        return f"Too close to rank in all {number} {noun}"
    return f"{name} is fastest in {times} of {number} {noun}"


def _text_of(row: Row) -> str:
    """The name of the row's text; slices and shuffles of a text count as that text."""
    return str((row.corpus.generated or {}).get("of", base_name(row)))


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

    wrong = sum(is_wrong([row]) for row in task)
    return f"{text}, {wrong} wrong" if wrong else text
