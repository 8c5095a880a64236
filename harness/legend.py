"""What is said around a table or a plot: what its rows share, what tells them apart, and what their marks mean."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.record import BY_ITSELF
from harness.record_keys import WRONG
from harness.rows import Row
from harness.units import bytes_text, count_text, duration_text, one_line, token_text

NOT_MEASURED = "-"
REUSED = "*"
SAMPLED = "~"
UNCONFIRMED = "?"


@dataclass(frozen=True)
class Setting:
    """Something that rows share or differ in: the title of its column, its text, and how it is said of all rows."""

    title: str
    text: Callable[[Row], str | None]
    said: Callable[[Row], str]


class Legend:
    """The words for a list of rows: a name for each, the settings in which they differ, a caption, notes.

    A setting is said once, in the caption, where all rows share it; where they differ it is a column of a table
    (`columns`) and part of a row's full name (`labels`). Where a row does not know a setting, it does not differ in it.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.names = [row.name + _params_text(row, rows) + (f" x{row.runs}" if row.runs > 1 else "") for row in rows]
        self._settings = _settings(rows)
        differing = [setting for setting in self._settings if len(_values(setting, rows)) > 1]
        self.columns = {setting.title: [setting.text(row) or NOT_MEASURED for row in rows] for setting in differing}

    def labels(self) -> list[str]:
        """Each row's name with all settings in which rows differ, for a picture, which has no columns."""
        return [self._label(place, self.columns) for place in range(len(self.rows))]

    def short_labels(self) -> list[str]:
        """Each row's name with as many settings as tell it from the others of that name, for sentences."""
        labels = []
        for place, name in enumerate(self.names):
            rivals = [other for other, same in enumerate(self.names) if same == name]
            needed = []
            for title, texts in self.columns.items():
                alike = [other for other in rivals if texts[other] == texts[place]]
                if len(alike) < len(rivals):
                    needed.append(title)
                    rivals = alike
            labels.append(self._label(place, needed))
        return labels

    def _label(self, place: int, titles: Iterable[str]) -> str:
        told = [(title, self.columns[title][place]) for title in titles]
        return ", ".join([self.names[place], *(f"{title} {text}" for title, text in told if text != NOT_MEASURED)])

    def caption(self) -> list[str]:
        """What was measured, on what, when: a line for each corpus, one for the task, one for the machine."""
        corpora = {str(row.corpus.get("sha256")): self._corpus(row) for row in self.rows if row.corpus}
        task: list[str] = []
        machine: list[str] = []
        for setting in self._settings:
            sharing = [row for row in self.rows if setting.text(row) is not None]
            if sharing and setting.title not in ("data", *self.columns):
                part = machine if setting.title in ("counting", "threads", "interpreter", "host") else task
                part.append(setting.said(sharing[0]))
        days = sorted({str(row.record["started"])[:10] for row in self.rows if row.record.get("started")})
        machine += [" to ".join(dict.fromkeys([days[0], days[-1]]))] if days else []
        lines = (*corpora.values(), *(", ".join(filter(None, parts)) for parts in (task, machine)))
        return [line for line in lines if line]

    def _corpus(self, row: Row) -> str:
        """The facts of the row's corpus on which all rows agree: its words depend on the pattern, which may differ."""
        same = [other.corpus for other in self.rows if other.corpus.get("sha256") == row.corpus.get("sha256")]
        facts = []
        for name in ("bytes", "documents", "pre_tokens", "words"):
            values = {corpus[name] for corpus in same if corpus.get(name) is not None}
            facts += [_fact(values.pop(), name.replace("_", "-"))] if len(values) == 1 else []
        return f"{_corpus_name(row, self.rows)}: {', '.join(facts)}"

    def notes(self) -> list[str]:
        """A sentence for everything that is not a plain time: failures by name, marks by meaning."""
        labelled = zip(self.rows, self.short_labels(), strict=True)
        return [f"{label}: {failure_text(row)}." for row, label in labelled if row.status != "ok"] + self.marks()

    def marks(self) -> list[str]:
        """What the marks on figures mean, and what else a reader of the times has to know."""
        ok = [(row, label) for row, label in zip(self.rows, self.short_labels(), strict=True) if row.status == "ok"]
        told: dict[str, list[str]] = {}
        for row, label in ok:
            for sentence in _remarks(row):
                told.setdefault(sentence, []).append(label if not row.disputed else f"{label} ({row.digest})")
        notes = [f"{sentence}: {'; '.join(labels)}." for sentence, labels in told.items()]
        if any(row.counts_reused for row, _ in ok):
            notes.append(f"{REUSED} reading and counting were measured in an earlier run; its word counts were reused.")
        if any(row.memory_is_sampled for row, _ in ok):
            notes.append(f"{SAMPLED} the peak of several processes together, sampled while they ran.")
        if any(row.runs > 1 for row, _ in ok):
            notes.append("xN: each figure is the median of N records; the total is the sum of the phases' medians.")
        return notes


def status_text(row: Row) -> str:
    """A status as words.

    >>> status_text(Row({}, "out_of_memory", "", 1))
    'out of memory'
    """
    return row.status.replace("_", " ")


def divergence_text(row: Row, longest: int | None = None) -> str:
    """Where a mismatch departs from the reference, in a table's cell or (with no `longest` token) in a sentence.

    >>> wrong = {"first_divergence": {"merge": 12, "got": ["61", "ff20"], "want": None}}
    >>> divergence_text(Row(wrong, "mismatch", "", 1))
    "@merge 12: got 'a'+'\\\\xff ', want no merge"
    """
    divergence = row.record.get("first_divergence")
    if not divergence:
        return one_line(row.reason)
    got, want = (_merge_text(divergence.get(side), longest) for side in ("got", "want"))
    return f"@merge {count_text(divergence['merge'])}: got {got}, want {want}"


def _merge_text(merge: Sequence[str] | None, longest: int | None) -> str:
    return "no merge" if merge is None else "+".join(token_text(bytes.fromhex(token), longest) for token in merge)


def failure_text(row: Row) -> str:
    """What became of a row that has no times.

    >>> failure_text(Row({"vocab_size": 999, "merges_done": 311}, "timeout", "over 20 s", 1))
    'timeout: over 20 s, after 311 of 743 merges'
    """
    if row.status == "mismatch" and row.identity.get("kind") == WRONG:
        return f"its merges are wrong, so no time is shown: {one_line(row.identity['reason'])}{_smallest_text(row)}"
    if row.status == "mismatch":
        against = ", ".join((row.record.get("proof") or {}).get("by") or ())
        reference = f"the reference ({against})" if against else "the reference"
        return f"its merges differ from {reference}, so no time is shown: {divergence_text(row)}"
    reason, done, requested = one_line(row.reason), row.record.get("merges_done"), row.requested_merges
    told = f"{status_text(row)}: {reason}" if reason else status_text(row)
    if done and requested is not None and done < requested:
        told += f", after {count_text(done)} of {count_text(requested)} merges"
    return f"{told}{_extrapolation_text(row)}"


def _smallest_text(row: Row) -> str:
    """The smallest corpus that shows what is wrong."""
    smallest = row.identity.get("smallest")
    return f"; merge {smallest['merge']} on the text {smallest['text']!r} shows it" if smallest else ""


def _extrapolation_text(row: Row) -> str:
    """What the whole would have taken, and whether the merges made so far were right."""
    expected = row.extrapolated
    if expected.get("total_seconds") is None:
        return ""
    total, low, high = (duration_text(expected[f"{end}_seconds"]) for end in ("total", "low", "high"))
    source = f", from its {expected['from']}" if expected.get("from") else ""
    exponent = f"; over sizes, exponent {expected['exponent']:.2f}" if expected.get("exponent") is not None else ""
    proved = (row.record.get("proof") or {}).get("state") in ("reference", "confirmed")
    merges = "; its merges up to then are the reference's" if proved else ""
    return f"; all of them would take {total} ({low} to {high}{source}{exponent}){merges}"


def _remarks(row: Row) -> Iterable[str]:
    """What is to be said of a row that has times; rows of which the same is said are named together."""
    if row.by_design and not row.proved:
        yield f"{UNCONFIRMED} as they are meant to be others, nothing confirms the merges of"
    elif not row.proved:
        yield f"{UNCONFIRMED} no variant of another family has confirmed the merges of"
    if row.disputed:
        yield f"{UNCONFIRMED} these differ in their merges, so not all are right"
    if row.seconds and "count" not in row.seconds and row.record.get("counting") == BY_ITSELF:
        yield "The total is that of the whole way from the file to merges, which is not told by phases"
    elif row.seconds and "count" not in row.seconds:
        given = row.record.get("pattern") is None
        why = "The corpus is a table of words with their counts" if given else "Counting was not measured"
        yield f"{why}, so the total is without {'counting' if given else 'it'}"
    if row.exhausted and row.by_design:
        yield f"{count_text(row.merges or 0)} of {count_text(row.requested_merges or 0)} merges were made"
    elif row.merges is not None and row.requested_merges is not None and row.merges < row.requested_merges:
        made, requested = count_text(row.merges), count_text(row.requested_merges)
        yield f"{made} of {requested} merges, then no pair of count {row.record.get('min_count')} or more was left"
    for lost in row.lost:
        yield f"Some records were left out ({one_line(lost)})"


def _params_text(row: Row, rows: Sequence[Row]) -> str:
    """The parameters in which rows of the same name differ, as `(push=grown)`; not what most of them have in common."""
    siblings = {json.dumps(_params(other)): _params(other) for other in rows if other.name == row.name}.values()
    names = dict.fromkeys(name for params in siblings for name in params)
    own = _params(row)
    told = []
    for name in names:
        alike = sum(params.get(name, ...) == own.get(name, ...) for params in siblings)
        if name in own and alike <= len(siblings) / 2:
            told.append(f"{name}={_as_given(own[name])}")
    return f"({', '.join(told)})" if told else ""


def _params(row: Row) -> Mapping[str, Any]:
    return row.record.get("params") or {}


def _as_given(value: Any) -> str:
    """As the override would be written on the command line."""
    return value if isinstance(value, str) else json.dumps(value)


def _settings(rows: Sequence[Row]) -> list[Setting]:
    """In the order in which their columns stand; those of training have no text where only counting was measured."""

    def of_training(name: str) -> Callable[[Row], str | None]:
        return lambda row: None if row.counting_only or row.record.get(name) is None else _shown(row.record[name])

    def of_all(name: str) -> Callable[[Row], str | None]:
        return lambda row: None if row.record.get(name) is None else _shown(row.record[name])

    def corpus_name(row: Row) -> str | None:
        return _corpus_name(row, rows) if row.corpus else None

    def special_tokens(row: Row) -> str | None:
        tokens = row.record.get("special_tokens")
        return None if tokens is None else " ".join(tokens) or "none"

    return [
        Setting("data", corpus_name, lambda row: f"data {corpus_name(row)}"),
        Setting("vocab size", of_training("vocab_size"), lambda row: _vocabulary(row, rows)),
        Setting("pattern", of_all("pattern"), _pattern),
        Setting("special tokens", special_tokens, lambda row: f"special tokens {special_tokens(row)}"),
        Setting("errors", of_all("errors"), _errors),
        Setting("tie-break", of_training("tie_break"), lambda row: f"tie-break {row.record['tie_break']}"),
        Setting("min_count", of_training("min_count"), lambda row: f"min_count {row.record['min_count']}"),
        Setting("counting", _counting, lambda row: f"counting {_counting(row)}"),
        Setting("threads", of_all("threads"), lambda row: _fact(row.record["threads"], "threads")),
        Setting("interpreter", of_all("interpreter"), lambda row: str(row.record["interpreter"])),
        Setting("host", lambda row: row.record.get("host"), _machine),
    ]


def _shown(value: Any) -> str:
    return count_text(value) if isinstance(value, int) else str(value)


def _values(setting: Setting, rows: Sequence[Row]) -> set[str]:
    return {text for text in map(setting.text, rows) if text is not None}


def _corpus_name(row: Row, rows: Sequence[Row]) -> str:
    """The corpus' name, beside others of that name with its size, or its digest if sizes do not tell them apart."""
    name = str(row.corpus.get("name"))
    same_name = {
        other.corpus.get("sha256"): other.corpus.get("bytes") for other in rows if other.corpus.get("name") == name
    }
    if len(same_name) == 1:
        return name
    sizes = {bytes_text(size) for size in same_name.values() if size is not None}
    if len(sizes) == len(same_name):
        return f"{name} {bytes_text(row.corpus['bytes'])}"
    return f"{name} {str(row.corpus.get('sha256'))[:8]}"


def _vocabulary(row: Row, rows: Sequence[Row]) -> str:
    made = {other.merges for other in rows} - {None} or {row.requested_merges}
    merges = f" ({_shown(made.pop())} merges)" if len(made) == 1 else ""
    return f"vocabulary {_shown(row.record['vocab_size'])}{merges}"


def _pattern(row: Row) -> str:
    left_out = " (leaves text out)" if row.record.get("pattern_partial") else ""
    return f"pattern {row.record['pattern']}{left_out}"


def _errors(row: Row) -> str:
    """Nothing for the default: invalid text is refused, so there is nothing to know about it."""
    return "" if row.record["errors"] == "strict" else f"errors {row.record['errors']}"


def _fact(number: int, plural: str) -> str:
    return f"1 {plural.removesuffix('s')}" if number == 1 else f"{count_text(number)} {plural}"


def _counting(row: Row) -> str | None:
    """The counter, and whether it was chosen on the command line over the one that the variant names."""
    counting = None if row.counting_only else row.record.get("counting")
    return f"{counting} (chosen)" if counting and row.record.get("counting_chosen") else counting


def _machine(row: Row) -> str:
    environment = row.record.get("environment") or {}
    cpu, cores = environment.get("cpu"), environment.get("cores")
    if not cpu:
        return f"host {row.record['host']}"
    return f"{cpu} ({cores} cores)" if cores else str(cpu)
