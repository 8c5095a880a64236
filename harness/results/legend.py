"""Words around tables and charts: what rows share and differ in, what happened to rows without a time, and notes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from harness.common.comparison import Sample, compare
from harness.common.units import bytes_text, count_text, counted_text, duration_text, one_line, share_text, token_text
from harness.proof import BY_DESIGN, IDENTICAL, UP_TO_TIES, WRONG
from harness.records.schema import BY_ITSELF
from harness.results.fields import TELLS_NOTHING
from harness.results.rows import Row
from harness.runs.fields import COLUMNS, FIELD, WORK, Record
from variants.contract import GREATEST_BYTES

NOT_MEASURED, SAMPLED, UNPROVED_MARK = "-", "~", "?"
MOST_NOTES = 3
MOST_NAMED = 8
LONGEST_TOKEN = 20
ONE_RUN_CANNOT_TELL = 0.1
"""Single runs on a quiet machine differ by up to this share in either direction."""
MUCH_SPREAD = 0.2
MUCH_STEAL = 0.05
MUCH_IMPORT_CPU_SECONDS = 1.0
USUAL = {
    "pattern": "gpt2",
    "special_tokens": ["<|endoftext|>"],
    "tie_break": GREATEST_BYTES.value,
    "min_count": 1,
    "counting": None,
}
"""Defaults of the configuration, which a caption leaves out; how words were counted is among the details."""
EXPLAINED = {
    IDENTICAL: "each merge is the defined one; the tie-break is in parentheses unless it is greatest_bytes",
    UP_TO_TIES: "each merge was one of the most frequent pairs, but no single tie-break chooses all of them",
    BY_DESIGN: "other merges, on purpose",
    WRONG: "not the defined merges, by a replay against the true counts",
}


class Legend:
    """Names, columns and captions for rows; `among` are all rows of the command, which have tables beside this one.

    A field that all rows share is in the caption; one in which they differ is a column.
    """

    def __init__(self, rows: Sequence[Row], among: Sequence[Row] | None = None) -> None:
        self.rows = rows
        self.names = [f"{row.name}{params}" for row, params in zip(rows, _params_texts(rows), strict=True)]
        texts = {
            field: [row.words[field.name].text if field.name in row.words else None for row in rows]
            for field in COLUMNS
        } | {FIELD["data"]: _corpus_names(rows)}
        self._shared = [field for field in COLUMNS if len({*texts[field]} - {None}) == 1]
        self.differing = [field for field in COLUMNS if len({*texts[field]} - {None}) > 1]
        self.columns = {field.title: [text or NOT_MEASURED for text in texts[field]] for field in self.differing}
        self._varied = {
            field
            for field in COLUMNS
            if len({row.words[field.name] for row in among or () if field.name in row.words}) > 1
        }

    def short_labels(self) -> list[str]:
        """Each row's name with the fields that distinguish it from other rows of that name."""
        labels = list(self.names)
        for places in together(self.names).values():
            titles: list[str] = []
            keys: dict[int, tuple[str, ...]] = dict.fromkeys(places, ())
            for title, texts in self.columns.items():
                longer = {place: (*keys[place], texts[place]) for place in places}
                if len(set(longer.values())) > len(set(keys.values())):
                    titles, keys = [*titles, title], longer
            for place in places:
                fields = [(title, self.columns[title][place]) for title in titles]
                known = [f"{title} {text}" for title, text in fields if text != NOT_MEASURED]
                labels[place] = ", ".join([self.names[place], *known])
        return labels

    def distinguishes(self, title: str) -> bool:
        """Whether a field is worth a column: how words were counted and ties were broken only between namesakes."""
        if title not in (FIELD["tie_break"].title, FIELD["counting"].title):
            return True
        texts = self.columns[title]
        return any(len({texts[place] for place in places}) > 1 for places in together(self.names).values())

    def caption(self) -> list[str]:
        """The corpus and the vocabulary, then what is not as usual with the machine and the day."""
        corpora, task, machine = self._parts(
            lambda field, row: _is_usual(field.name, row) and field not in self._varied
        )
        vocabulary = [part for part in task if part.startswith("vocabulary ")]
        settings = [part for part in task if part not in vocabulary]
        if len(corpora) != 1:
            corpora, settings = [*corpora], [*vocabulary, *settings]
        else:
            corpora = [", ".join([*corpora, *vocabulary])]
        return [line for line in (*corpora, ", ".join([*settings, *machine])) if line]

    def details(self) -> list[str]:
        """The same with every fact and every setting, defaults included."""
        corpora, task, machine = self._parts(lambda _, __: False, ("bytes", "documents", "pre_tokens", "words"))
        return [line for line in (*corpora, ", ".join(task), ", ".join(machine)) if line]

    def _parts(
        self, is_left_out: Callable[[Any, Row], bool], facts: Sequence[str] = ("bytes", "words")
    ) -> tuple[list[str], list[str], list[str]]:
        task: list[str] = []
        machine: list[str] = []
        for field in self._shared:
            row = next(row for row in self.rows if field.name in row.words)
            if field.name == "data" or is_left_out(field, row):
                continue  # each corpus has a line of its own
            merges = _merges_text_of(self.rows) if field.name == "vocab_size" else ""
            (task if field.decides_merges else machine).append(f"{row.words[field.name].said}{merges}")
        days = sorted({str(row.record["started"])[:10] for row in self.rows if row.record.get("started")})
        machine += [" to ".join(dict.fromkeys([days[0], days[-1]]))] if days else []
        return _corpora(self.rows, facts), [*filter(None, task)], [*filter(None, machine)]


def notes(rows: Sequence[Row], labels: Sequence[str]) -> list[str]:
    """What changes a conclusion: failures, doubtful merges, ranks that mean nothing, a busy machine; at most three."""
    found = _conclusive(rows, labels)
    rest = len(found) - MOST_NOTES + 1
    return found if rest < 2 else [*found[: MOST_NOTES - 1], f"{rest} more notes: see --notes."]


def _conclusive(rows: Sequence[Row], labels: Sequence[str]) -> list[str]:
    kinds = (failures, _doubtful, _exhausted, _too_close, _loading, _busy)
    return [note for kind in kinds for note in kind(rows, labels)]


def all_notes(rows: Sequence[Row], labels: Sequence[str], legend: Legend) -> list[str]:
    """Everything worth knowing about rows, for `--notes`."""
    first = _conclusive(rows, labels)
    remarks: dict[str, list[str]] = {}
    for row, label in zip(rows, labels, strict=True):
        for remark in _remarks(row):
            remarks.setdefault(remark, []).append(label)
    more = [f"{remark}: {join_names(named)}." for remark, named in remarks.items()]
    return [*first, *more, *_identities(rows, labels), *legend.details()]


def failures(rows: Sequence[Row], labels: Sequence[str], drawn: Sequence[Row] = ()) -> list[str]:
    """A sentence for each way in which rows failed, wrong merges first; rows that are `drawn` only if wrong."""
    reasons: dict[str, list[str]] = {}
    by_weight = sorted(zip(rows, labels, strict=True), key=lambda named: named[0].status != "mismatch")
    for row, label in by_weight:
        if row.status == "mismatch" or (row.status != "ok" and row not in drawn):
            reasons.setdefault(failure_text(row), []).append(label)
    return [f"{join_names(named)}: {reason}." for reason, named in reasons.items()]


def _doubtful(rows: Sequence[Row], labels: Sequence[str]) -> Iterator[str]:
    named = [(row, label) for row, label in zip(rows, labels, strict=True) if row.status == "ok"]
    disputed = [f"{label} ({row.digest})" for row, label in named if row.disputed]
    if disputed:
        yield f"{UNPROVED_MARK} These differ in their merges, so not all are right: {join_names(disputed)}."
    reasons: dict[str, list[str]] = {}
    for row, label in named:
        if not row.proved and not row.by_design:
            reasons.setdefault(one_line(row.identity.get("reason") or ""), []).append(label)
    for why, unproved in reasons.items():
        yield f"{UNPROVED_MARK} Not proved{f' ({why})' if why else ''}: {join_names(unproved)}."


def _exhausted(rows: Sequence[Row], _: Sequence[str]) -> Iterator[str]:
    """That a text has fewer merges than requested; where rows made different numbers, a column has them."""
    made = {(row.merges, row.requested_merges, row.exhausted) for row in rows if row.status == "ok"}
    if len(made) == 1 and (number := made.pop())[2] and number[0] is not None:
        yield f"No pair was left after {count_text(number[0])} of {count_text(number[1] or 0)} merges."


def _too_close(rows: Sequence[Row], labels: Sequence[str]) -> Iterator[str]:
    timed = [
        (row, label) for row, label in zip(rows, labels, strict=True) if row.total is not None and not row.by_design
    ]
    close = [
        f"{label} and {other}" for (row, label), (slower, other) in _neighbours(timed) if not is_slower(slower, row)
    ]
    if close:
        yield f"Too close to rank: {join_names(close)}."


def _loading(rows: Sequence[Row], labels: Sequence[str]) -> Iterator[str]:
    """Who worked longer before its call than in it: on what it found elsewhere, or to load a large library."""
    worked = [
        f"{label} {spent:.1f} s"
        for row, label in zip(rows, labels, strict=True)
        if (spent := (row.record.get("witness") or {}).get("import_cpu_seconds")) and row.status == "ok"
        if spent > max(MUCH_IMPORT_CPU_SECONDS, row.total or 0.0)
    ]
    if worked:
        yield f"Loading the module took longer than the total, which excludes it: {join_names(worked)}."


def is_slower(slower: Row, row: Row) -> bool:
    """Whether the measurements show that the first row takes longer than the second."""
    comparison = compare(slower.samples, row.samples)
    if comparison is not None and comparison.different is not None:
        return comparison.different
    if min(len(row.samples), len(slower.samples)) > 1:
        slowest = max(sample.wall_seconds for sample in row.samples)
        return slowest < min(sample.wall_seconds for sample in slower.samples)
    return (slower.total or 0.0) > (1 + ONE_RUN_CANNOT_TELL) * (row.total or 0.0)


def _neighbours(timed: Sequence[tuple[Row, str]]) -> Iterator[tuple[tuple[Row, str], tuple[Row, str]]]:
    """Rows of one task on one machine, each with the next slower one."""

    def task(named: tuple[Row, str]) -> str:
        return f"{named[0].question} {named[0].record.get('host')}"

    for _, group in itertools.groupby(sorted(timed, key=task), key=task):
        yield from itertools.pairwise(sorted(group, key=lambda named: named[0].total or 0.0))


def _busy(rows: Sequence[Row], labels: Sequence[str]) -> Iterator[str]:
    def is_disturbed(sample: Sample) -> bool:
        return sample.kept_waiting or (sample.steal is not None and sample.steal > MUCH_STEAL)

    counts = [(sum(map(is_disturbed, row.samples)), row, label) for row, label in zip(rows, labels, strict=True)]
    busy = [f"{label} in {number} of {len(row.samples)} runs" for number, row, label in counts if number]
    if busy:
        yield f"Machine busy, so wall times may be too long: {join_names(busy)}."


def _remarks(row: Row) -> Iterable[str]:
    """What holds for a row and changes no conclusion; rows with the same remark are named together."""
    if row.status != "ok":
        return
    if row.seconds and "count" not in row.seconds:
        if row.record.get("counting") == BY_ITSELF:
            yield "One total from the file to the merges, without phases"
        else:
            given = row.record.get("pattern") is None
            why = "the corpus is a table of words" if given else "it was not measured"
            yield f"The total excludes counting ({why})"
    if row.memory_is_sampled:
        yield f"{SAMPLED} The memory of several processes, sampled while they ran"
    if row.runs > 1:
        yield f"Medians of {row.runs} runs"
    if row.spread and row.spread > MUCH_SPREAD:
        yield f"Totals spread by over {share_text(MUCH_SPREAD)} of their median"
    counted = row.record.get("instructions") or {}
    if row.instructions is not None and counted:
        yield f"Instructions of the trainer's call alone, by {counted.get('tool')} on {counted.get('path')}"
    for lost in row.lost:
        yield f"Some records were left out ({one_line(lost)})"


def _identities(rows: Sequence[Row], labels: Sequence[str]) -> Iterator[str]:
    """What the classes of merges mean, and the evidence for those that are not plain."""
    kinds = {row.identity["kind"] for row in rows if row.status in ("ok", "mismatch") and not row.counting_only}
    if kinds & {UP_TO_TIES, BY_DESIGN} or is_outside_table(rows):
        yield from (f"{kind.replace('_', ' ')}: {text}." for kind, text in EXPLAINED.items() if kind in kinds)
    for row, label in zip(rows, labels, strict=True):
        if row.identity.get("reason") and row.identity["kind"] in (UP_TO_TIES, BY_DESIGN):
            yield f"{label}, {row.identity['kind'].replace('_', ' ')}: {_evidence(row)}."


def _evidence(row: Row) -> str:
    identity = row.identity
    if identity["kind"] != UP_TO_TIES or not identity.get("want"):
        return one_line(identity["reason"])
    got, want = (_merge_text(identity[side], LONGEST_TOKEN) for side in ("got", "want"))
    count = count_text(identity["got_count"])
    return f"{one_line(identity['reason'])}; merge {identity['merge']} is {got} instead of {want}, {count} each"


def is_outside_table(rows: Sequence[Row]) -> bool:
    """Whether any row is of a trainer that reports how it was fed."""
    return any(row.record.get("feeding") for row in rows)


def incomparable(row: Row, base: Row) -> str | None:
    """Return why the times of two rows on one corpus are of different work, or None if they are comparable."""
    if row.work != base.work:
        return next(
            field.other_work for field, ours, theirs in zip(WORK, row.work, base.work, strict=True) if ours != theirs
        )
    if makes_other_merges(row) or makes_other_merges(base):
        return "different by design" if row.by_design else "the other is different by design"
    if row.by_design or base.by_design:
        return None
    if row.merges != base.merges and None not in (row.merges, base.merges) and not (row.exhausted and base.exhausted):
        return f"{count_text(row.merges or 0)} merges, not {count_text(base.merges or 0)}"
    return None


def makes_other_merges(row: Row) -> bool:
    """Whether it differs by design, and not only because its words do: then its time is that of other work."""
    return row.by_design and not str(row.identity.get("of_own_words") or "").startswith(IDENTICAL)


def threads_of(row: Row) -> int | None:
    """How many of the run's threads it could use; None if nobody recorded that."""
    takes, threads = row.record.get("takes_threads"), row.record.get("threads")
    return None if takes is None or threads is None else (threads if takes else 1)


def status_text(row: Row) -> str:
    """A status as words.

    >>> status_text(Row({}, "out_of_memory", "", 1))
    'out of memory'
    """
    return row.status.replace("_", " ")


def divergence_text(row: Row, longest: int = 1000) -> str:
    """Where wrong merges depart from the defined ones.

    >>> wrong = {"identity": {"kind": "wrong", "merge": 12, "got": ["61", "ff20"], "want": None}}
    >>> divergence_text(Row(wrong, "mismatch", "", 1))
    "@merge 12: got 'a'+'\\\\xff ', want no merge"
    """
    identity = row.identity
    if not (identity.get("got") or identity.get("want")):
        return one_line(identity.get("reason") or row.reason)
    got, want = (_merge_text(identity.get(side), longest) for side in ("got", "want"))
    return f"@merge {count_text(identity['merge'])}: got {got}, want {want}"


def _merge_text(merge: Sequence[str] | None, longest: int) -> str:
    return "no merge" if merge is None else "+".join(token_text(bytes.fromhex(token), longest) for token in merge)


def failure_text(row: Row) -> str:
    """What happened to a row that has no times.

    >>> failure_text(Row({"vocab_size": 999, "merges_done": 311}, "timeout", "over 20 s", 1))
    'timeout: over 20 s, after 311 of 743 merges'
    """
    if row.status == "mismatch":
        wrong = row.identity.get("reason") if row.identity["kind"] == WRONG else row.reason
        return f"wrong merges, so no time is shown: {one_line(wrong or divergence_text(row))}"
    reason, done, requested = one_line(row.reason), row.record.get("merges_done"), row.requested_merges
    text = f"{status_text(row)}: {reason}" if reason else status_text(row)
    if done and requested is not None and done < requested:
        text += f", after {count_text(done)} of {count_text(requested)} merges"
    expected = row.extrapolated
    if expected.get("total_seconds") is None:
        return text
    if expected["high_seconds"] > TELLS_NOTHING * expected["low_seconds"]:
        return f"{text}; the total is over {duration_text(expected['low_seconds'])}"
    total, low, high = (duration_text(expected[f"{end}_seconds"]) for end in ("total", "low", "high"))
    return f"{text}; estimated total {total} ({low} to {high})"


def join_names(names: Sequence[str]) -> str:
    """
    >>> join_names(["a", "b"]), join_names([str(number) for number in range(20)])
    ('a; b', '0; 1; 2; 3; 4; 5; 6; 7; and 12 more')
    """
    rest = len(names) - MOST_NAMED
    return "; ".join([*names[:MOST_NAMED], f"and {rest} more"] if rest > 1 else names)


def together(values: Sequence[Any]) -> dict[Any, list[int]]:
    """The places of each value."""
    places: dict[Any, list[int]] = {}
    for place, value in enumerate(values):
        places.setdefault(value, []).append(place)
    return places


def _is_usual(name: str, row: Row) -> bool:
    if name == "counting":
        return not row.record.get("counting_chosen")
    return name in USUAL and row.record.get(name) == USUAL[name]


def _params_texts(rows: Sequence[Row]) -> list[str]:
    """The parameters in which rows of the same name differ, as `(push=grown)`; not what most of them have in common."""
    texts = [""] * len(rows)
    for places in together([row.name for row in rows]).values():
        siblings = {tuple(sorted(rows[place].params.items())) for place in places}
        frequent = Counter(given for params in siblings for given in params)
        for place in places:
            own = [given for given in rows[place].params.items() if frequent[given] <= len(siblings) / 2]
            texts[place] = f"({', '.join(map('='.join, own))})" if own else ""
    return texts


def _corpus_names(rows: Sequence[Row]) -> list[str | None]:
    """Each row's corpus; if several have one name also its size, or its digest if their sizes do not differ."""
    sizes: dict[str, dict[Any, Any]] = {}
    for row in rows:
        sizes.setdefault(str(row.corpus.get("name")), {})[row.corpus.get("sha256")] = row.corpus.get("bytes")
    by_size = {
        name: len({bytes_text(size) for size in same_name.values() if size is not None}) == len(same_name)
        for name, same_name in sizes.items()
    }

    def name_of(corpus: Record) -> str:
        name = str(corpus.get("name"))
        if len(sizes[name]) == 1:
            return name
        return f"{name} {bytes_text(corpus['bytes']) if by_size[name] else str(corpus.get('sha256'))[:8]}"

    return [name_of(row.corpus) if row.corpus else None for row in rows]


def _corpora(rows: Sequence[Row], facts: Sequence[str]) -> list[str]:
    """A line for each corpus, with the facts on which its rows agree: its words depend on the pattern as well."""
    lines = []
    names = _corpus_names(rows)
    for places in together([row.corpus.get("sha256") for row in rows]).values():
        there = [place for place in places if rows[place].corpus]
        texts = []
        for fact in facts:
            values = {rows[place].corpus[fact] for place in there if rows[place].corpus.get(fact) is not None}
            texts += [counted_text(values.pop(), fact.replace("_", "-").removesuffix("s"))] if len(values) == 1 else []
        lines += [f"{names[there[-1]]}: {', '.join(texts)}"] if there else []
    return lines


def _merges_text_of(rows: Sequence[Row]) -> str:
    made = {row.merges for row in rows if row.merges is not None}
    made = made or {row.requested_merges for row in rows if row.requested_merges is not None}
    return f" ({count_text(made.pop())} merges)" if len(made) == 1 else ""
