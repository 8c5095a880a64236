"""What a page says around its table and charts: who is fastest, which merges agree, whence corpora and machines are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.common import registry
from harness.common.units import bytes_text, count_text, decimals_for, ratio_text
from harness.results.columns import mark_of
from harness.results.legend import divergence_text, failure_text, status_text
from harness.results.notes import told_apart
from harness.results.page.page_rows import PageRows
from harness.results.page.ranking import comparable_groups, from_the_fastest
from harness.results.rows import Row
from harness.runs.fields import DECISIVE
from harness.worker.calling import OWN

STATUSES = {
    "ok": "measured to the end, its merges proved by a replay against the true counts; only these rows have times",
    "mismatch": "its merges are wrong, or its runs contradict each other, so no time is shown",
    "error": "the trainer or counter failed",
    "timeout": "over limits.wall, too early to say what all of it would take",
    "out_of_memory": "over limits.memory",
    "killed": "ended by a signal from outside",
    "rejected": "its clock and those of its witnesses contradict each other, so its time is worth nothing",
    "skipped": "could not run here, for the reason given",
    "extrapolated": "ended by limits.wall; what all of it would take is estimated from runs on small parts",
}
UNCONFIRMED = "ok, but its merges are not proved; figures bear a question mark"
_NO_CARD = "not known: no card of conf/data has this name"


@dataclass(frozen=True)
class Best:
    """The fastest of some rows, and those that what was measured cannot tell from it; places of rows."""

    task: str
    timed: int
    fastest: int
    seconds: str
    rivals: Sequence[int]
    slowest: str


@dataclass(frozen=True)
class Answer:
    """A list of merges by its digest, and who came to it."""

    digest: str
    state: str
    places: Sequence[int]


@dataclass(frozen=True)
class Proof:
    """What was asked, every answer to it, and what went wrong; more than one answer is a contradiction."""

    question: str
    answers: Sequence[Answer]
    wrong: Sequence[tuple[int, str]]


def best_of_each_task(page_rows: PageRows) -> list[Best]:
    """The fastest of all confirmed rows that may be ranked together, with those that one run cannot tell from it."""
    ranked = page_rows.rows
    return [_best(page_rows, ranked, group) for group in comparable_groups(page_rows)]


def _best(page_rows: PageRows, ranked: Sequence[Row], group: Sequence[int]) -> Best:
    ordered = from_the_fastest(ranked, group)
    first, last = (ranked[place] for place in (ordered[0], ordered[-1]))
    least, most = first.total or 0.0, last.total or 0.0
    return Best(
        ", ".join(filter(None, (page_rows.tasks[group[0]], _where(page_rows, group[0])))),
        len(group),
        ordered[0],
        f"{least:,.{decimals_for([least])}f}{mark_of(first)}",
        [place for place in ordered[1:] if not told_apart(first, ranked[place])],
        f"{page_rows.brief[ordered[-1]]}, {ratio_text(most / least)} times as long"
        if last is not first and told_apart(first, last)
        else "",
    )


def _where(page_rows: PageRows, place: int) -> str:
    """Whose rows and on which machine, where there are several."""
    hosts = page_rows.legend.columns.get("host")
    return ", ".join(filter(None, (page_rows.sets[place], f"host {hosts[place]}" if hosts else "")))


def proofs_of(page_rows: PageRows) -> list[Proof]:
    """Which rows came to the same merges, question by question."""
    questions: dict[Any, list[int]] = {}
    for place, row in enumerate(page_rows.rows):
        if not row.counting_only and row.status in ("ok", "mismatch"):
            questions.setdefault(row.asked, []).append(place)
    return [_proof(page_rows, places) for places in questions.values()]


def _proof(page_rows: PageRows, places: Sequence[int]) -> Proof:
    rows, right = page_rows.rows, dict[str, list[int]]()
    for place in places:
        if rows[place].status == "ok":
            right.setdefault(str(rows[place].record.get("merges_sha256")), []).append(place)
    own_ties = rows[places[0]].record.get("tie_break") == OWN
    contradicted = len(right) > 1 and not own_ties
    answers = [
        Answer(digest, _state([rows[place] for place in who], contradicted), who) for digest, who in right.items()
    ]
    wrong = [(place, divergence_text(rows[place])) for place in places if rows[place].status == "mismatch"]
    return Proof(_question(rows[places[0]]), answers, wrong)


def _state(rows: Sequence[Row], contradicted: bool) -> str:
    if contradicted:
        return "contradicted: these rows differ in their merges, so not all are right"
    if all(row.confirmed for row in rows):
        return "right, by a replay against the true counts"
    return "different by design" if all(row.by_design for row in rows) else "unproved"


def _question(row: Row) -> str:
    sentences = [row.words[field.name].said for field in DECISIVE if field.name in row.words]
    return ", ".join(
        filter(None, (str(row.corpus.get("name")), f"sha256 {str(row.corpus.get('sha256'))[:8]}", *sentences))
    )


def corpora_of(page_rows: PageRows) -> list[dict[str, str]]:
    """Every corpus with its facts, its licence and whence it comes, as its card says."""
    cards = registry.cards("data")
    corpora: dict[str, dict[str, str]] = {}
    for row in page_rows.rows:
        corpus = row.corpus
        if not corpus:
            continue
        name = str(corpus.get("name"))
        card = cards.get(name.partition("(")[0] if corpus.get("generated") else name, {})
        facts = corpora.setdefault(
            str(corpus.get("sha256")),
            {
                "corpus": name,
                "licence": str(card.get("licence") or _NO_CARD),
                "about": str(card.get("about") or ""),
                "language": str(card.get("language") or ""),
                "sha256": str(corpus.get("sha256")),
            },
        )
        for fact in ("bytes", "documents", "pre_tokens", "words"):
            if corpus.get(fact) is not None:
                facts.setdefault(fact, count_text(corpus[fact]))
    return list(corpora.values())


@dataclass(frozen=True)
class Environments:
    """What machines and software the records say of themselves: what all share, and in what each differs.

    `heads` name the environments; `differing` has a text for each of them.
    """

    heads: Sequence[str]
    shared: Sequence[tuple[str, str]]
    differing: Sequence[tuple[str, Sequence[str]]]


def environments_of(page_rows: PageRows) -> Environments:
    """Every environment of the rows, in order of first appearance."""
    groups: dict[str, tuple[dict[str, str], list[Row]]] = {}
    for row in page_rows.rows:
        environment = {"host": row.record.get("host"), **(row.record.get("environment") or {})}
        key = json.dumps(environment, sort_keys=True, default=str)
        groups.setdefault(key, (dict(_flat(environment)), []))[1].append(row)
    environments = [facts for facts, _ in groups.values()]
    names = list(dict.fromkeys(name for facts in environments for name in facts))
    values = {name: [facts.get(name, "-") for facts in environments] for name in names}
    heads = [f"{_days(rows)}, {len(rows)} {_plural('row', len(rows))}" for _, rows in groups.values()]
    return Environments(
        heads,
        [(name, texts[0]) for name, texts in values.items() if len(set(texts)) == 1],
        [(name, texts) for name, texts in values.items() if len(set(texts)) > 1],
    )


def _flat(values: Mapping[str, Any], outer: str = "") -> Iterable[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{outer}{name}.")
        elif value is None or isinstance(value, bool):
            yield f"{outer}{name}", {None: "-", True: "yes", False: "no"}[value]
        elif name.endswith("memory_bytes") and isinstance(value, int):
            yield f"{outer}{name.removesuffix('_bytes')}", bytes_text(value)
        elif isinstance(value, list):
            yield f"{outer}{name}", "; ".join(map(_item, value))
        else:
            yield f"{outer}{name}", str(value)


def _item(value: Any) -> str:
    """An item of a list of facts on one line."""
    return ", ".join(f"{name} {text}" for name, text in _flat(value)) if isinstance(value, Mapping) else str(value)


def _days(rows: Sequence[Row]) -> str:
    days = sorted(str(row.record["started"])[:10] for row in rows if row.record.get("started"))
    return " to ".join(dict.fromkeys([days[0], days[-1]])) if days else "at an unknown time"


def statuses_of(page_rows: PageRows) -> list[tuple[str, str, list[tuple[int, str]]]]:
    """Each status that occurs: its name, what it means, and the rows that have it, with what became of each."""
    statuses: dict[str, list[tuple[int, str]]] = {}
    for place, row in enumerate(page_rows.rows):
        if row.status == "ok":
            statuses.setdefault("ok" if row.confirmed else "unconfirmed", [])
        else:
            statuses.setdefault(row.status, []).append((place, failure_text(row)))
    meanings = {**STATUSES, "unconfirmed": UNCONFIRMED}
    return [(name.replace("_", " "), meanings.get(name, ""), rows) for name, rows in statuses.items()]


def tiles_of(page_rows: PageRows, number_of_records: int) -> list[tuple[str, str]]:
    """The page in a few numbers."""
    rows = page_rows.rows
    counts: dict[str, int] = {}
    for row in rows:
        name = "unconfirmed" if row.status == "ok" and not row.confirmed else status_text(row)
        counts[name] = counts.get(name, 0) + 1
    kind = "counter" if rows and all(row.counting_only for row in rows) else "variant"
    numbers = [
        (len(rows), "row"),
        (len({row.name for row in rows}), kind),
        (len({row.corpus.get("sha256") for row in rows if row.corpus}), "corpus"),
        (len({row.record.get("host") for row in rows}), "machine"),
        (number_of_records, "record"),
    ]
    plain = [(count_text(number), _plural(noun, number)) for number, noun in numbers]
    return [*plain, *((count_text(number), name) for name, number in counts.items())]


def _plural(noun: str, number: int) -> str:
    return noun if number == 1 else {"corpus": "corpora"}.get(noun, f"{noun}s")
