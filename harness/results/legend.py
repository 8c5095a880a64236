"""What is said around a table or a plot: what its rows share, what tells them apart, and what their marks mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from harness.common.units import bytes_text, count_text, counted_text, duration_text, one_line, token_text
from harness.proof import IDENTICAL, WRONG
from harness.records.schema import BY_ITSELF
from harness.results.rows import Row
from harness.runs.fields import COLUMNS, FIELD

NOT_MEASURED = "-"
SAMPLED = "~"
UNCONFIRMED = "?"
TELLS_NOTHING = 1000
"""Where the ends of an interval are further apart than by this factor, only the lower one is worth its ink."""


class Legend:
    """The words for a list of rows: a name for each, the fields in which they differ, a caption, notes.

    A field is said once, in the caption, where all rows share it; where they differ it is a column of a table
    (`columns`) and part of a row's full name (`labels`). Where a row does not know a field, it does not differ in it.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.variants = [f"{row.name}{told}" for row, told in zip(rows, _params_texts(rows), strict=True)]
        self.names = [
            f"{name}{f' x{row.runs}' if row.runs > 1 else ''}" for row, name in zip(rows, self.variants, strict=True)
        ]
        texts = {
            field: [row.words[field.name].text if field.name in row.words else None for row in rows]
            for field in COLUMNS
        } | {FIELD["data"]: _corpus_names(rows)}
        self._shared = [field for field in COLUMNS if len({*texts[field]} - {None}) == 1]
        self.differing = [field for field in COLUMNS if len({*texts[field]} - {None}) > 1]
        self.columns = {field.title: [text or NOT_MEASURED for text in texts[field]] for field in self.differing}

    def labels(self, unsaid: Mapping[str, str] | None = None) -> list[str]:
        """Each row's name with the fields in which rows differ, but for what is `unsaid`: a picture has no columns."""
        told = [
            [title for title, texts in self.columns.items() if texts[place] != (unsaid or {}).get(title)]
            for place in range(len(self.rows))
        ]
        return [self._label(place, titles) for place, titles in enumerate(told)]

    def usual(self) -> dict[str, str]:
        """How words were counted for most rows where a few differ, so that it can be said once."""
        title = FIELD["counting"].title
        text, times = Counter(self.columns.get(title, [NOT_MEASURED])).most_common(1)[0]
        return {title: text} if text != NOT_MEASURED and 2 * times > len(self.rows) else {}

    def short_labels(self) -> list[str]:
        """Each row's name with as many fields as tell it from the others of that name, for sentences."""
        labels = [""] * len(self.rows)
        for places in _together(self.names).values():
            self._tell_apart(places, list(self.columns), (), labels)
        return labels

    def _tell_apart(
        self, places: Sequence[int], titles: Sequence[str], told: tuple[str, ...], labels: list[str]
    ) -> None:
        """Label rows that are alike but for what `titles` say: by the first of these that splits them, and so on."""
        for number, title in enumerate(titles):
            if len(places) == 1:
                break
            texts = self.columns[title]
            groups = _together([texts[place] for place in places])
            if len(groups) > 1:
                for group in groups.values():
                    self._tell_apart([places[one] for one in group], titles[number + 1 :], (*told, title), labels)
                return
        for place in places:
            labels[place] = self._label(place, told)

    def _label(self, place: int, titles: Iterable[str]) -> str:
        told = [(title, self.columns[title][place]) for title in titles]
        return ", ".join([self.names[place], *(f"{title} {text}" for title, text in told if text != NOT_MEASURED)])

    def caption(self) -> list[str]:
        """What was measured, on what, when: a line for each corpus, one for the task, one for the machine."""
        task: list[str] = []
        machine: list[str] = []
        for field in self._shared:
            if field.name == "data":
                continue  # each corpus has a line of its own
            said = next(row.words[field.name].said for row in self.rows if field.name in row.words)
            merges = _merges_text_of(self.rows) if field.name == "vocab_size" else ""
            (task if field.decides_merges else machine).append(f"{said}{merges}")
        days = sorted({str(row.record["started"])[:10] for row in self.rows if row.record.get("started")})
        machine += [" to ".join(dict.fromkeys([days[0], days[-1]]))] if days else []
        lines = (*_corpora(self.rows), *(", ".join(filter(None, parts)) for parts in (task, machine)))
        return [line for line in lines if line]

    def notes(self) -> list[str]:
        """A sentence for everything that is not a plain time: failures by name, marks by meaning."""
        return self.failures() + self.marks()

    def failures(self) -> list[str]:
        """Of each row without times what became of it."""
        labelled = zip(self.rows, self.short_labels(), strict=True)
        return [f"{label}: {failure_text(row)}." for row, label in labelled if row.status != "ok"]

    def marks(self) -> list[str]:
        """What the marks on figures mean, and what else a reader of the times has to know."""
        places = [place for place, row in enumerate(self.rows) if row.status == "ok"]
        ok = [self.rows[place] for place in places]
        told: dict[str, list[int]] = {}
        for place in places:
            for sentence in _remarks(self.rows[place]):
                told.setdefault(sentence, []).append(place)
        notes = [f"{sentence}: {'; '.join(self._named(some, places))}." for sentence, some in told.items()]
        if any(row.memory_is_sampled for row in ok):
            notes.append(f"{SAMPLED} the peak of several processes together, sampled while they ran.")
        if any(row.runs > 1 for row in ok):
            notes.append("xN: each figure is the median of N records; the total is the sum of the phases' medians.")
        return notes

    def _named(self, some: Sequence[int], places: Sequence[int]) -> Iterator[str]:
        """The rows at some of these places: where these are all rows of a variant, its name says so."""
        labels = self.short_labels()
        all_of = Counter(self.variants[place] for place in places)
        for variant, group in _together([self.variants[place] for place in some]).items():
            rows = [(self.rows[some[number]], labels[some[number]]) for number in group]
            if 1 < len(rows) == all_of[variant] and not any(row.disputed for row, _ in rows):
                yield variant
            else:
                yield from (label if not row.disputed else f"{label} ({row.digest})" for row, label in rows)


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
    """What became of a row that has no times.

    >>> failure_text(Row({"vocab_size": 999, "merges_done": 311}, "timeout", "over 20 s", 1))
    'timeout: over 20 s, after 311 of 743 merges'
    """
    if row.status == "mismatch":
        wrong = row.identity.get("reason") if row.identity["kind"] == WRONG else row.reason
        return f"its merges are wrong, so no time is shown: {one_line(wrong or divergence_text(row))}"
    reason, done, requested = one_line(row.reason), row.record.get("merges_done"), row.requested_merges
    told = f"{status_text(row)}: {reason}" if reason else status_text(row)
    if done and requested is not None and done < requested:
        told += f", after {count_text(done)} of {count_text(requested)} merges"
    return f"{told}{_extrapolation_text(row)}"


def _extrapolation_text(row: Row) -> str:
    """What the whole would have taken, and whether the merges made so far were right."""
    expected = row.extrapolated
    if expected.get("total_seconds") is None:
        return ""
    total, low, high = (duration_text(expected[f"{end}_seconds"]) for end in ("total", "low", "high"))
    exponent = f"; over sizes, exponent {expected['exponent']:.2f}" if expected.get("exponent") is not None else ""
    merges = "; its merges so far are right" if row.identity["kind"] == IDENTICAL else ""
    if expected["high_seconds"] > TELLS_NOTHING * expected["low_seconds"]:
        return f"; all would take over {low}; how much longer is unknown{merges}"
    return f"; all would take {total} ({low} to {high}{exponent}){merges}"


def _remarks(row: Row) -> Iterable[str]:
    """What is to be said of a row that has times; rows of which the same is said are named together."""
    if row.by_design and not row.proved:
        yield f"{UNCONFIRMED} meant to differ, so nothing proves the merges of"
    elif not row.proved:
        why = one_line(row.identity.get("reason") or "")
        yield f"{UNCONFIRMED} not proved{f' ({why})' if why else ''}"
    if row.disputed:
        yield f"{UNCONFIRMED} these differ in their merges, so not all are right"
    if row.seconds and "count" not in row.seconds and row.record.get("counting") == BY_ITSELF:
        yield "One total from the file to the merges, without phases"
    elif row.seconds and "count" not in row.seconds:
        given = row.record.get("pattern") is None
        why = "The corpus is a table of words with their counts" if given else "Counting was not measured"
        yield f"{why}, so the total excludes {'counting' if given else 'it'}"
    if row.exhausted and row.by_design:
        yield f"{count_text(row.merges or 0)} of {count_text(row.requested_merges or 0)} merges were made"
    elif row.merges is not None and row.requested_merges is not None and row.merges < row.requested_merges:
        made, requested = count_text(row.merges), count_text(row.requested_merges)
        yield f"{made} of {requested} merges, then no pair of count {row.record.get('min_count')} or more was left"
    for lost in row.lost:
        yield f"Some records were left out ({one_line(lost)})"


def _params_texts(rows: Sequence[Row]) -> list[str]:
    """The parameters in which rows of the same name differ, as `(push=grown)`; not what most of them have in common."""
    texts = [""] * len(rows)
    for places in _together([row.name for row in rows]).values():
        siblings = {tuple(sorted(rows[place].params.items())) for place in places}
        frequent = Counter(given for params in siblings for given in params)
        for place in places:
            told = [given for given in rows[place].params.items() if frequent[given] <= len(siblings) / 2]
            texts[place] = f"({', '.join(map('='.join, told))})" if told else ""
    return texts


def _together(values: Sequence[Any]) -> dict[Any, list[int]]:
    """The places of each value."""
    places: dict[Any, list[int]] = {}
    for place, value in enumerate(values):
        places.setdefault(value, []).append(place)
    return places


def _corpus_names(rows: Sequence[Row]) -> list[str | None]:
    """Each row's corpus: beside others of its name with its size, or its digest if sizes do not tell them apart."""
    sizes: dict[str, dict[Any, Any]] = {}
    for row in rows:
        sizes.setdefault(str(row.corpus.get("name")), {})[row.corpus.get("sha256")] = row.corpus.get("bytes")
    told_by_size = {
        name: len({bytes_text(size) for size in same_name.values() if size is not None}) == len(same_name)
        for name, same_name in sizes.items()
    }

    def name_of(corpus: Mapping[str, Any]) -> str:
        name = str(corpus.get("name"))
        if len(sizes[name]) == 1:
            return name
        return f"{name} {bytes_text(corpus['bytes']) if told_by_size[name] else str(corpus.get('sha256'))[:8]}"

    return [name_of(row.corpus) if row.corpus else None for row in rows]


def _corpora(rows: Sequence[Row]) -> list[str]:
    """A line for each corpus, of the facts on which its rows agree: its words depend on the pattern as well."""
    lines = []
    names = _corpus_names(rows)
    for places in _together([row.corpus.get("sha256") for row in rows]).values():
        there = [place for place in places if rows[place].corpus]
        facts = []
        for fact in ("bytes", "documents", "pre_tokens", "words"):
            values = {rows[place].corpus[fact] for place in there if rows[place].corpus.get(fact) is not None}
            facts += [counted_text(values.pop(), fact.replace("_", "-").removesuffix("s"))] if len(values) == 1 else []
        lines += [f"{names[there[-1]]}: {', '.join(facts)}"] if there else []
    return lines


def _merges_text_of(rows: Sequence[Row]) -> str:
    made = {row.merges for row in rows if row.merges is not None}
    made = made or {row.requested_merges for row in rows if row.requested_merges is not None}
    return f" ({count_text(made.pop())} merges)" if len(made) == 1 else ""
