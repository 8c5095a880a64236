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


def notes(rows: Sequence[Row], drawn: Sequence[Row] = (), of_time: bool = True) -> list[str]:
    """What changes a conclusion, the worst first: failures, doubtful merges, and `of_time` also
    ranks that mean nothing and a busy machine.

    Rows that are `drawn` although they were stopped are not named as failures.
    """
    pairs = labelled(rows)
    measured = [(row, label) for row, label in pairs if row.status == "ok"]
    severe = [*unfinished_runs(rows), *failures(pairs, drawn), *_sentences(_doubtful(measured))]
    if not of_time:
        return [*severe, *_exhausted(rows)]
    others = itertools.chain(
        _cut_short(measured), _too_close(measured), _loading(measured), _busy(measured)
    )
    return [*severe, *waiting(pairs), *_exhausted(rows), *_sentences(others)]


def at_most(number: int, notes: Sequence[str], where: str) -> list[str]:
    rest = len(notes) - number + 1
    return list(notes) if rest < 2 else [*notes[: number - 1], f"{rest} more notes: see {where}."]


def reasons(rows: Sequence[Row]) -> list[str]:
    """Explain merges that are right and not plainly identical."""
    found = []
    for row, label in labelled(rows):
        kind, reason = row.identity.kind, row.identity.reason
        if kind in (UP_TO_TIES, BY_DESIGN) and reason:
            text = f"{label}, {kind.replace('_', ' ')}: {one_line(reason)}"
            if row.is_right_on_its_words:
                text += f"; on its own words {row.identity.of_own_words}"
            found.append(f"{text}.")
    return found


def refusals(compared: Sequence[Against], labels: Sequence[str]) -> list[str]:
    """Explain missing ratios; rows with the same reason are named together."""
    pairs = []
    for comparison, label in zip(compared, labels, strict=True):
        if comparison.refused is not None:
            base, reason = comparison.refused
            pairs.append((f"Not comparable with {base} ({reason})", label))
    return _sentences(dict.fromkeys(pairs))


def unfinished_runs(rows: Sequence[Row]) -> list[str]:
    """A sentence for each run of these rows that has no end."""
    runs = dict.fromkeys(row.record.run.run for row in rows if row.record.unfinished)
    return [f"R{unfinished_note(run)[1:]}." for run in runs]


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


def waiting(pairs: Labelled) -> list[str]:
    """Name rows that waited for something other than a CPU, and rows of one thread for which the
    wait for a CPU is unknown.
    """
    found = []
    for row, label in pairs:
        idle = row.idle or 0.0
        if idle > MUCH_IDLE:
            found.append((f"Waited {share_text(idle)} of its time", label))
        unknown = {sample.cpu_wait_unknown for sample in row.samples} - {None}
        if unknown and row.threads == 1:
            found.append((f"Wall time, for {unknown.pop()}", label))
    return _sentences(found)


def _sentences(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """A sentence for each text, with the labels of the rows that share it."""
    return [f"{text}: {join_names(labels)}." for text, labels in together(pairs).items()]


def _exhausted(rows: Sequence[Row]) -> list[str]:
    """Say that a text has fewer merges than requested; if rows made different numbers, a column has
    them.
    """
    learned = {(row.merges, row.requested_merges) for row in rows if row.status == "ok"}
    if len(learned) != 1:
        return []
    ((merges, requested),) = learned
    if merges is None or requested is None or merges >= requested:
        return []
    why = {no_pair_text(row.record.cell.min_count or 1) for row in rows}
    done = f"{count_text(merges)} of {count_text(requested)} merges"
    return [f"{text[0].upper()}{text[1:]} after {done}." for text in sorted(why)]


def _doubtful(measured: Labelled) -> Pairs:
    """Name rows whose merges contradict each other, or are not proved."""
    for row, label in measured:
        if row.disputed:
            differ = f"{UNPROVED_MARK} These differ in their merges, so not all are right"
            yield differ, f"{label} ({row.digest})"
    for row, label in measured:
        if not row.proved and not row.by_design:
            reason = row.identity.reason
            yield f"{UNPROVED_MARK} Not proved{f' ({one_line(reason)})' if reason else ''}", label


def _cut_short(measured: Labelled) -> Pairs:
    """Runs that are in no figure, although others of their cell are."""
    for row, label in measured:
        if row.was_cut_short:
            yield "Left out (of a block that was cut short)", label


def _too_close(measured: Labelled) -> Pairs:
    """Rows of one task on one machine that cannot be ranked before the next slower one."""
    timed = [(row, label) for row, label in measured if row.total is not None and not row.by_design]
    tasks = together([((row.question, row.record.run.host), (row, label)) for row, label in timed])
    for task in tasks.values():
        task.sort(key=lambda pair: pair[0].total or 0.0)
        for (row, label), (slower, slower_label) in itertools.pairwise(task):
            if not is_slower(slower, row):
                yield "Too close to rank", f"{label} and {slower_label}"


def _loading(measured: Labelled) -> Pairs:
    """Name rows that worked longer before their call than in it: on something prepared, or to load
    a large library.
    """
    longer = "Loading the module took longer than the total, which excludes it"
    for row, label in measured:
        spent = (row.record.measurement.witness or {}).get("import_cpu_seconds") or 0.0
        if spent > max(MUCH_IMPORT_CPU_SECONDS, row.total or 0.0):
            yield longer, f"{label} {seconds_text(spent)}"


def _busy(measured: Labelled) -> Pairs:
    """Name rows whose wall times are too long, because other programs had the CPU."""
    for row, label in measured:
        disturbed = 0
        for sample in row.samples:
            disturbed += sample.kept_waiting or (sample.steal or 0.0) > MUCH_STEAL
        if disturbed:
            runs = f"{label} in {disturbed} of {len(row.samples)} runs"
            yield "Machine busy, so wall times may be too long", runs
