"""What a reader must know besides the figures: one list of notes for tables, charts and pages."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from harness.common.units import count_text, no_pair_text, one_line, seconds_text, share_text
from harness.proof import BY_DESIGN, UP_TO_TIES
from harness.records.file import unfinished_note
from harness.results.fields import together
from harness.results.legend import labelled
from harness.results.ratios import Against, is_slower
from harness.results.rows import Row
from harness.results.writing import UNPROVED_MARK, failure_text, join_names

MUCH_STEAL, MUCH_IDLE, MUCH_IMPORT_CPU_SECONDS = 0.05, 0.05, 1.0
Labelled = Sequence[tuple[Row, str]]
Pairs = Iterator[tuple[str, str]]
"""Sentences without an end, each with the label of a row that it is about."""


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
    pairs = labelled(rows)
    runs = dict.fromkeys(row.record.run.run for row in rows if row.record.unfinished)
    found = [f"R{unfinished_note(run)[1:]}." for run in runs]
    found += [*failures(pairs, drawn), *_sentences(_doubts(pairs)), *_exhausted(rows)]
    if of_time:
        found += _sentences([*_too_close(pairs), *_disturbances(pairs)])
    return [*found, *_sentences(_explanations(pairs, compared))]


def at_most(number: int, notes: Sequence[str], where: str) -> list[str]:
    rest = len(notes) - number + 1
    return list(notes) if rest < 2 else [*notes[: number - 1], f"{rest} more notes: see {where}."]


def failures(pairs: Labelled, drawn: Sequence[Row] = ()) -> list[str]:
    """A sentence for each way in which rows failed, wrong merges first; rows that are `drawn` only
    if wrong, or if some of their blocks failed.
    """
    wrong, others = [], []
    for row, label in pairs:
        failed = row.reason if row.status == "ok" else row not in drawn
        if row.status == "mismatch":
            wrong.append((failure_text(row), label))
        elif failed:
            others.append((failure_text(row), label))
    reasons = together([*wrong, *others])
    return [f"{join_names(labels)}: {reason}." for reason, labels in reasons.items()]


def _sentences(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """A sentence for each text, with the labels of the rows that share it."""
    return [f"{text}: {join_names(labels)}." for text, labels in together(pairs).items()]


def _exhausted(rows: Sequence[Row]) -> list[str]:
    """Say that a text has fewer merges than requested; if rows made different numbers, a column has
    them.
    """
    learned = {(row.merges, row.requested_merges) for row in rows if row.status == "ok"}
    if len(learned) != 1 or not any(row.exhausted for row in rows):
        return []
    ((merges, requested),) = learned
    done = f"{count_text(merges or 0)} of {count_text(requested or 0)} merges"
    why = {no_pair_text(row.record.cell.min_count or 1) for row in rows}
    return [f"{text[0].upper()}{text[1:]} after {done}." for text in sorted(why)]


def _doubts(pairs: Labelled) -> Pairs:
    """Name rows whose merges contradict each other, or are not proved."""
    for row, label in pairs:
        if row.disputed:
            differ = f"{UNPROVED_MARK} These differ in their merges, so not all are right"
            yield differ, f"{label} ({row.digest})"
    for row, label in pairs:
        if row.status == "ok" and not row.proved and not row.by_design:
            reason = row.identity.reason
            yield f"{UNPROVED_MARK} Not proved{f' ({one_line(reason)})' if reason else ''}", label


def _disturbances(pairs: Labelled) -> Pairs:
    """Name rows whose times hold something other than their work, or are not of all their runs."""
    for row, label in pairs:
        if (row.idle or 0.0) > MUCH_IDLE:
            yield f"Waited {share_text(row.idle or 0.0)} of its time", label
        unknown = {sample.cpu_wait_unknown for sample in row.samples} - {None}
        if unknown and row.threads == 1:
            yield f"Wall time, for {unknown.pop()}", label
        if row.was_cut_short:
            yield "Left out (of a block that was cut short)", label

        # something was prepared, or a large library loaded
        spent = (row.record.measurement.witness or {}).get("import_cpu_seconds") or 0.0
        if row.status == "ok" and spent > max(MUCH_IMPORT_CPU_SECONDS, row.total or 0.0):
            longer = "Loading the module took longer than the total, which excludes it"
            yield longer, f"{label} {seconds_text(spent)}"

        busy = [each.kept_waiting or (each.steal or 0.0) > MUCH_STEAL for each in row.samples]
        if any(busy):
            runs = f"{label} in {sum(busy)} of {len(busy)} runs"
            yield "Machine busy, so wall times may be too long", runs


def _too_close(pairs: Labelled) -> Pairs:
    """Rows of one task on one machine that cannot be ranked before the next slower one."""
    timed = [(row, label) for row, label in pairs if row.total is not None and not row.by_design]
    tasks = together([((row.question, row.record.run.host), (row, label)) for row, label in timed])
    for task in tasks.values():
        task.sort(key=lambda pair: pair[0].total or 0.0)
        for (row, label), (slower, slower_label) in itertools.pairwise(task):
            if not is_slower(slower, row):
                yield "Too close to rank", f"{label} and {slower_label}"


def _explanations(pairs: Labelled, compared: Sequence[Against]) -> Pairs:
    """Say why merges are right that are not plainly identical, and why a row has no ratio."""
    for (row, label), comparison in zip(pairs, compared, strict=False):
        kind, reason = row.identity.kind, row.identity.reason
        if kind in (UP_TO_TIES, BY_DESIGN) and reason:
            own = f"; on its own words {row.identity.of_own_words}" * row.is_right_on_its_words
            yield f"{label}, {kind.replace('_', ' ')}", one_line(reason) + own
        if comparison.refused is not None:
            base, why = comparison.refused
            yield f"Not comparable with {base} ({why})", label
