"""Words around tables and charts: what rows share and differ in, what happened to rows without a
time, and notes.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from harness.common.sheet import Column
from harness.common.units import bytes_text, count_text, counted_text, duration_text, one_line
from harness.proof import BY_DESIGN, UP_TO_TIES, WRONG
from harness.records.file import unfinished_note
from harness.results.fields import COLUMNS, FIELD, Field, together
from harness.results.rows import MOST_UNSURE, NOT_MEASURED, UNPROVED_MARK, Row, is_slower

MOST_NOTES, MOST_NAMED = 3, 4
MUCH_STEAL, MUCH_IMPORT_CPU_SECONDS = 0.05, 1.0


class Legend:
    """Names, columns and captions for rows; `among` are all rows of the command, which have tables
    beside this one.

    A field that all rows share is in the caption; one in which they differ is a column.
    """

    def __init__(self, rows: Sequence[Row], among: Sequence[Row] = ()) -> None:
        self.rows, self._among, self._corpora = rows, among, _corpus_names(rows)
        self.names = [
            f"{row.name}{params}" for row, params in zip(rows, _params_texts(rows), strict=True)
        ]
        self._namesakes = together(
            [(name, place) for place, name in enumerate(self.names)]
        ).values()
        words = [row.words for row in rows]
        texts = {
            field: [own[field.name].text if field.name in own else None for own in words]
            for field in COLUMNS
        }
        texts[FIELD["data"]] = self._corpora
        numbers = {field: len({*texts[field]} - {None}) for field in COLUMNS}
        self._shared = [field for field in COLUMNS if numbers[field] == 1]
        self.columns = {
            field.title: Column(
                field.title, [text or NOT_MEASURED for text in texts[field]], field.figure
            )
            for field in COLUMNS
            if numbers[field] > 1
        }
        self.labels = list(self.names)
        """Each row's name with the fields that distinguish it from other rows of that name."""
        for places in self._namesakes:
            self._distinguish(places)

    def _distinguish(self, places: Sequence[int]) -> None:
        chosen: list[Column] = []
        for column in self.columns.values():
            cells = [tuple(each.cells[place] for each in (*chosen, column)) for place in places]
            if len(set(cells)) > len({known[:-1] for known in cells}):
                chosen.append(column)
        for place in places:
            texts = [
                f"{each.heading} {each.cells[place]}"
                for each in chosen
                if each.cells[place] != NOT_MEASURED
            ]
            self.labels[place] = ", ".join([self.names[place], *texts])

    def labelled(self, *statuses: str) -> list[tuple[Row, str]]:
        """The rows of these statuses, or all, each with its label."""
        pairs = zip(self.rows, self.labels, strict=True)
        return [(row, label) for row, label in pairs if not statuses or row.status in statuses]

    def titles(self) -> list[str]:
        """The fields that are worth a column: how words were counted and ties broken only between
        namesakes.
        """
        odd = {FIELD["tie_break"].title, FIELD["counting"].title}
        namesakes = {
            title
            for title, column in self.columns.items()
            if any(len({column.cells[place] for place in places}) > 1 for places in self._namesakes)
        }
        return [title for title in self.columns if title not in odd or title in namesakes]

    def caption(self, panels: int = 1) -> list[str]:
        """The corpus and the vocabulary, then what is not the default with the machine and the day.

        Of several panels, which have titles of their own, the last line alone.
        """
        corpora, fields = (
            self._corpora_lines(),
            [field for field in self._shared if field.name != "data"],
        )
        vocabulary = [self._phrase(field) for field in fields if field.name == "vocab_size"]
        others = [self._phrase(field) for field in fields if field.name != "vocab_size"]
        days = sorted(
            {str(row.record["started"])[:10] for row in self.rows if row.record.get("started")}
        )
        others += [" to ".join(dict.fromkeys([days[0], days[-1]]))] if days else []
        parts = [[*corpora, *vocabulary], others]
        if len(corpora) != 1:
            parts = [*([corpus] for corpus in corpora), [*vocabulary, *others]]
        lines = [", ".join(filter(None, part)) for part in parts]
        return list(filter(None, lines))[0 if panels == 1 else -1 :]

    def _corpora_lines(self) -> list[str]:
        """A line for each corpus, with the facts on which its rows agree: its words depend on the
        pattern as well.
        """
        lines = []
        pairs = [
            (row.corpus["sha256"], place)
            for place, row in enumerate(self.rows)
            if row.corpus.get("sha256")
        ]
        for places in together(pairs).values():
            texts = []
            for fact in ("bytes", "words"):
                numbers: set[Any] = {self.rows[place].corpus.get(fact) for place in places} - {None}
                texts += (
                    [counted_text(numbers.pop(), fact.removesuffix("s"))]
                    if len(numbers) == 1
                    else []
                )
            lines.append(f"{self._corpora[places[-1]]}: {', '.join(texts)}")
        return lines

    def _phrase(self, field: Field) -> str:
        """What the rows share, in words; empty if it is the default, unless another table has
        another value.
        """
        row = next(row for row in self.rows if field.name in row.words)
        if len({each.words[field.name] for each in self._among if field.name in each.words}) < 2:
            if field.name == "counting" and not row.record.get("counting_chosen"):
                return ""
            if field.default is not None and field.value(row.record) == field.default:
                return ""
        phrase = row.words[field.name].phrase
        if field.name != "vocab_size":
            return phrase
        made = {own.merges for own in self.rows} - {None} or {
            own.requested_merges for own in self.rows
        } - {None}
        return f"{phrase} ({count_text(made.pop() or 0)} merges)" if len(made) == 1 else phrase


def _params_texts(rows: Sequence[Row]) -> list[str]:
    """The parameters in which rows of the same name differ, as `(push=grown)`; not what most of
    them have in common.
    """
    siblings = together([(row.name, row.configured) for row in rows])
    texts = []
    for row in rows:
        own = {*siblings[row.name]}
        odd = [
            f"{key}={value}"
            for key, value in row.params.items()
            if sum((key, value) in each for each in own) <= len(own) / 2
        ]
        texts.append(f"({', '.join(odd)})" if odd else "")
    return texts


def _corpus_names(rows: Sequence[Row]) -> list[str | None]:
    """Each row's corpus; if several have one name also its size, or its digest if their sizes do
    not differ.
    """
    corpora = {
        (row.corpus.get("name"), row.corpus.get("sha256")): row.corpus.get("bytes") or 0
        for row in rows
    }

    def text(name: str, digest: str | None) -> str:
        sizes = [bytes_text(size) for (other, _), size in corpora.items() if other == name]
        own = bytes_text(corpora[name, digest])
        return f"{name} {own if sizes.count(own) == 1 else str(digest)[:8]}"

    names = Counter(name for name, _ in corpora)
    facts = [(row.corpus.get("name"), row.corpus.get("sha256")) for row in rows]
    return [
        None if name is None else name if names[name] == 1 else text(name, digest)
        for name, digest in facts
    ]


# Notes


def notes(legend: Legend, every: bool = False) -> list[str]:
    """What changes a conclusion: failures, doubtful merges, ranks that mean nothing, a busy
    machine; at most three.

    With `every` all of them, and why merges that are right are not plainly identical.
    """
    measured = legend.labelled("ok")
    left_out = [
        (f"Left out ({one_line(lost)})", label) for row, label in measured for lost in row.lost
    ]
    others = _sentences([*left_out, *_too_close(measured), *_loading(measured), *_busy(measured)])
    found = [
        *unfinished(legend.rows),
        *failures(legend),
        *doubtful(legend),
        *_exhausted(legend),
        *others,
    ]
    if not every:
        return at_most(MOST_NOTES, found, "--notes")
    return found + [
        f"{label}, {row.identity['kind'].replace('_', ' ')}: {one_line(row.identity['reason'])}."
        for row, label in legend.labelled()
        if row.identity["kind"] in (UP_TO_TIES, BY_DESIGN) and row.identity.get("reason")
    ]


def at_most(number: int, notes: Sequence[str], where: str) -> list[str]:
    rest = len(notes) - number + 1
    return list(notes) if rest < 2 else [*notes[: number - 1], f"{rest} more notes: see {where}."]


def _sentences(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """A sentence for each text, with the labels of the rows that share it."""
    return [f"{text}: {join_names(labels)}." for text, labels in together(pairs).items()]


def unfinished(rows: Sequence[Row]) -> list[str]:
    """A sentence for each run of these rows that has no end."""
    runs = dict.fromkeys(row.record["run_id"] for row in rows if row.record.get("unfinished"))
    return [f"R{unfinished_note(run)[1:]}." for run in runs]


def failures(legend: Legend, drawn: Sequence[Row] = ()) -> list[str]:
    """A sentence for each way in which rows failed, wrong merges first; rows that are `drawn` only
    if wrong.
    """
    others = [
        pair
        for pair in legend.labelled()
        if pair[0].status not in ("ok", "mismatch") and pair[0] not in drawn
    ]
    reasons = together(
        [(failure_text(row), label) for row, label in [*legend.labelled("mismatch"), *others]]
    )
    return [f"{join_names(labels)}: {reason}." for reason, labels in reasons.items()]


def doubtful(legend: Legend) -> list[str]:
    """Whose merges contradict each other, or are not proved."""
    measured = legend.labelled("ok")
    differ = f"{UNPROVED_MARK} These differ in their merges, so not all are right"
    pairs = [(differ, f"{label} ({row.digest})") for row, label in measured if row.disputed]
    for row, label in measured:
        if not row.proved and not row.by_design:
            why = f" ({one_line(row.identity['reason'])})" if row.identity.get("reason") else ""
            pairs.append((f"{UNPROVED_MARK} Not proved{why}", label))
    return _sentences(pairs)


def _exhausted(legend: Legend) -> list[str]:
    """That a text has fewer merges than requested; if rows made different numbers, a column has
    them.
    """
    made = {
        (row.merges or 0, row.requested_merges or 0) for row in legend.rows if row.status == "ok"
    }
    if len(made) != 1 or not any(row.exhausted for row in legend.rows):
        return []
    ((merges, requested),) = made
    return [f"No pair was left after {count_text(merges)} of {count_text(requested)} merges."]


Labelled = Sequence[tuple[Row, str]]
Pairs = Iterator[tuple[str, str]]


def _too_close(measured: Labelled) -> Pairs:
    """Rows of one task on one machine that cannot be ranked before the next slower one."""
    timed = [pair for pair in measured if pair[0].total is not None and not pair[0].by_design]
    for task in together(
        [((row.question, row.record.get("host")), (row, label)) for row, label in timed]
    ).values():
        task.sort(key=lambda pair: pair[0].total or 0.0)
        for (row, label), (slower, other) in itertools.pairwise(task):
            if not is_slower(slower, row):
                yield "Too close to rank", f"{label} and {other}"


def _loading(measured: Labelled) -> Pairs:
    """Who worked longer before its call than in it: on something prepared, or to load a large
    library.
    """
    for row, label in measured:
        spent = (row.record.get("witness") or {}).get("import_cpu_seconds") or 0.0
        if spent > max(MUCH_IMPORT_CPU_SECONDS, row.total or 0.0):
            yield (
                "Loading the module took longer than the total, which excludes it",
                f"{label} {spent:.1f} s",
            )


def _busy(measured: Labelled) -> Pairs:
    for row, label in measured:
        disturbed = [
            each for each in row.samples if each.kept_waiting or (each.steal or 0.0) > MUCH_STEAL
        ]
        if disturbed:
            runs = f"{label} in {len(disturbed)} of {len(row.samples)} runs"
            yield "Machine busy, so wall times may be too long", runs


def is_outside_table(rows: Sequence[Row]) -> bool:
    """Whether any row is of a trainer that reports how it was fed."""
    return any(row.record.get("feeding") for row in rows)


def failure_text(row: Row) -> str:
    """What happened to a row that has no times.

    >>> failure_text(Row({"vocab_size": 999, "merges_done": 311}, "timeout", "over 20 s", 1))
    'timeout: over 20 s, after 311 of 743 merges'
    """
    if row.status == "mismatch":
        wrong = row.identity.get("reason") if row.identity["kind"] == WRONG else row.reason
        return f"wrong merges, so no time is shown: {one_line(wrong or '')}"
    reason, done, requested = (
        one_line(row.reason),
        row.record.get("merges_done"),
        row.requested_merges,
    )
    text = f"{row.status_text}: {reason}" if reason else row.status_text
    if done and requested is not None and done < requested:
        text += f", after {count_text(done)} of {count_text(requested)} merges"
    expected = row.extrapolated
    if expected.get("total_seconds") is None:
        return text
    if expected["high_seconds"] > MOST_UNSURE * expected["low_seconds"]:
        return f"{text}; the total is over {duration_text(expected['low_seconds'])}"
    total, low, high = (
        duration_text(expected[f"{end}_seconds"]) for end in ("total", "low", "high")
    )
    return f"{text}; estimated total {total} ({low} to {high})"


def join_names(names: Sequence[str]) -> str:
    """
    >>> join_names(["a", "b"]), join_names([str(number) for number in range(20)])
    ('a; b', '0; 1; 2; 3; and 16 more')
    """
    rest = len(names) - MOST_NAMED
    return "; ".join([*names[:MOST_NAMED], f"and {rest} more"] if rest > 1 else names)
