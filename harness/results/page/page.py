"""The page itself: what is said about the rows, put into page.html, escaped by Jinja whatever a record holds.

The page carries its own Content-Security-Policy: it may fetch nothing from anywhere, and of scripts only those whose
digests it names are run, so that no record can bring one of its own.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import itertools
import marshal
import operator
import statistics
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from harness.common.comparison import Comparison
from harness.common.errors import UNMEASURED, Refusal
from harness.common.units import count_text
from harness.results.charts.seconds import MOST_RUNS
from harness.results.chosen import IN_NO_PICTURE
from harness.results.columns import proof_text
from harness.results.fairness import given_sheet, identity_notes, outside, shown_by
from harness.results.legend import Legend, status_text
from harness.results.matches import Sets, comparison_of, comparison_sheet
from harness.results.notes import findings
from harness.results.page.figures import drawing, figures_of
from harness.results.page.headline import headlines
from harness.results.page.page_rows import PageRows, rows_of_page
from harness.results.page.sections import (
    best_of_each_task,
    corpora_of,
    environments_of,
    proofs_of,
    statuses_of,
    tiles_of,
)
from harness.results.page.table import TableColumn, columns_of
from harness.results.rows import Row
from harness.runs.fields import COLUMNS
from harness.runs.reproduction import command_of

Records = Sequence[Mapping[str, Any]]


def exactly(value: Any) -> bytes:
    """The same bytes for equal JSON alone: to Python 1, 1.0 and true are equal."""
    return marshal.dumps(value, 2)


HERE = Path(__file__).parent
_SCRIPTS = ("table.js", "charts.js")
_FILTERED = ("set", "status", *(field.title for field in COLUMNS))
"""The columns that have a filter of their own, where their cells differ."""


def page(
    sets: Mapping[str, Records],
    library: str,
    *,
    page_rows: PageRows | None = None,
    relative_to: str | None = None,
    compared: Sets | None = None,
) -> str:
    """The page about sets of records, by the names of the sets; `library` is the script that draws the charts.

    The same records give the same page, whenever and wherever it is made. `page_rows` are their rows, if somebody has
    them. `compared` are the two sets of a page about two, put side by side.
    """
    jinja = _jinja()
    page_rows = page_rows or rows_of_page(sets)
    figures = figures_of(page_rows, _ratios(page_rows, compared))
    scripts = [library, *((HERE / name).read_text(encoding="utf-8") for name in _SCRIPTS)]
    for script in scripts:
        if "</script" in script.lower() or "<!--" in script:
            raise Refusal("the script of the charts cannot stand in a page; install another version", UNMEASURED)
    columns = columns_of(page_rows, relative_to)
    # A caption begins with a line for each corpus.
    caption, corpora = (
        page_rows.legend.caption(),
        len({row.corpus.get("sha256") for row in page_rows.rows if row.corpus}),
    )
    return str(
        jinja.get_template("page.html").render(
            title=_title(page_rows, sets),
            on_corpora=caption[:corpora],
            caption=caption[corpora:],
            digest=_digest(sets),
            policy=_policy(scripts),
            style=(HERE / "page.css").read_text(encoding="utf-8"),
            scripts=scripts,
            tiles=tiles_of(page_rows, sum(map(len, sets.values()))),
            headlines=headlines(page_rows),
            best=best_of_each_task(page_rows),
            labels=page_rows.labels,
            brief=page_rows.brief,
            rows=page_rows.rows,
            columns=columns,
            filters=_filters(columns),
            details=[_details(page_rows, place) for place in range(len(page_rows.rows))],
            notes=_notes(sets, page_rows, relative_to),
            figures=figures,
            drawing=drawing(page_rows, figures),
            proofs=proofs_of(page_rows),
            corpora=corpora_of(page_rows),
            environments=environments_of(page_rows),
            statuses=statuses_of(page_rows),
            comparison=comparison_sheet(compared) if compared is not None else None,
            given=given_sheet(page_rows.legend) if outside(page_rows.rows) else None,
        )
    )


def _ratios(page_rows: PageRows, compared: Sets | None) -> dict[int, Comparison]:
    """The comparison of each row of the right set that has one of the left beside it, by the row's place."""
    comparisons: dict[int, Comparison] = {}
    for match in compared.matching.matches if compared is not None else ():
        comparison = comparison_of(match)
        if compared is not None and comparison is not None:
            right = [place for place, name in enumerate(page_rows.sets) if name == compared.names[1]]
            comparisons[next(place for place in right if page_rows.rows[place] == match.right)] = comparison
    return comparisons


def _jinja() -> Any:
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise Refusal(absent("jinja2"), UNMEASURED) from error
    return _templates()


@functools.cache
def _templates() -> Any:
    """Once, because a page's template takes longer to compile than most pages to fill."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@functools.cache
def library() -> str:
    """The script that draws the charts, Vega, Vega-Lite and Vega-Embed in one, as vl-convert carries them along.

    Nothing is downloaded, and it is the same for as long as the same package is installed.
    """
    try:
        import vl_convert
    except ImportError as error:
        raise Refusal(absent("vl-convert-python"), UNMEASURED) from error
    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def absent(module: str) -> str:
    return (
        f"the page needs {module}, which is not installed; run python -m pip install 'bpe-harness[report]', in a "
        "checkout .venv/bin/python -m pip install -e '.[report]'"
    )


def _title(page_rows: PageRows, sets: Mapping[str, Records]) -> str:
    counting_only = bool(page_rows.rows) and all(row.counting_only for row in page_rows.rows)
    subject = "Counting words" if counting_only else "BPE training"
    if len(sets) > 1:
        return f"{subject}: {' beside '.join(sets)}"
    corpora = list(dict.fromkeys(str(row.corpus.get("name")) for row in page_rows.rows if row.corpus))
    on = ", ".join(corpora) if len(corpora) <= 3 else f"{len(corpora)} corpora"
    return f"{subject} on {on}" if on else subject


def _digest(sets: Mapping[str, Records]) -> str:
    """Of what a page takes from its records, so that two pages can be told to be about the same.

    Key by key for many records at a time: what all of them share is spelled once.
    """
    digest = hashlib.sha256()
    for name in sorted(sets):
        digest.update(exactly(name))
        for start in range(0, len(sets[name]), _AT_ONCE):
            part = sets[name][start : start + _AT_ONCE]
            for key in sorted({*chain.from_iterable(part)} - _NOT_IN_DIGEST):
                digest.update(exactly(key))
                digest.update(_in_turn(_shown_of(key, [record.get(key) for record in part])))
    return digest.hexdigest()


_AT_ONCE = 1000
_NOT_IN_DIGEST = {name for name, kept in IN_NO_PICTURE.items() if not kept}


def _shown_of(key: str, values: list[Any]) -> list[Any]:
    """What is shown of records' values."""
    kept = IN_NO_PICTURE.get(key)
    return [value and {inner: value[inner] for inner in kept if inner in value} for value in values] if kept else values


def _in_turn(values: list[Any]) -> bytes:
    """The bytes of each, one after the other, made once where all are one.

    >>> _in_turn([one := {"a": 1.5}, one]) == _in_turn([{"a": 1.5}, {"a": 1.5}]) == 2 * exactly(one)
    True
    """
    alike = all(map(operator.is_, values, itertools.repeat(values[0])))
    return exactly(values[0]) * len(values) if alike else exactly(values)[_HEAD_OF_A_LIST:]


_HEAD_OF_A_LIST = len(exactly([]))


def _policy(scripts: Sequence[str]) -> str:
    allowed = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    sources = " ".join(f"'sha256-{digest}'" for digest in allowed)
    # Charts set styles of their own; without any source a style can fetch nothing.
    rules = ("default-src 'none'", f"script-src {sources}", "style-src 'unsafe-inline'", "img-src data:")
    return "; ".join((*rules, "base-uri 'none'", "form-action 'none'"))


def _filters(columns: Sequence[TableColumn]) -> list[tuple[int, str, list[str]]]:
    """For each column with a filter its place, its heading and its texts, sorted as its cells are."""
    filters = []
    for place, column in enumerate(columns):
        if column.heading in _FILTERED and len(set(column.cells)) > 1:
            keys = dict(zip(column.cells, column.keys, strict=True))
            filters.append(
                (place, column.heading, sorted(keys, key=lambda text: (keys[text] is None, keys[text] or 0)))
            )
    return filters


def _notes(
    sets: Mapping[str, Records], page_rows: PageRows, relative_to: str | None
) -> list[tuple[str, list[str], list[str]]]:
    """What `harness.table` says below its table, set by set: of rows without times, and the rest."""
    notes_of_sets = []
    for name, records in sets.items():
        legend = Legend(rows_of_page({"": records}).rows) if len(sets) > 1 else page_rows.legend
        failures, labels = legend.failures(), legend.short_labels()
        rest = legend.marks() + identity_notes(legend) + findings(legend.rows, labels, relative_to)
        notes_of_sets.append((name, failures, rest))
    return [notes for notes in notes_of_sets if notes[1] or notes[2]]


def _details(page_rows: PageRows, place: int) -> dict[str, Any]:
    """What the table has no column for: the command that measures the row again, and facts by name."""
    row = page_rows.rows[place]
    record, environment = row.record, row.record.get("environment") or {}
    tallies = [f"{name.replace('_', ' ')} {count_text(number)}" for name, number in row.tallies.items()]
    facts = {
        "task": page_rows.tasks[place],
        "outcome": status_text(row) + (f": {row.reason}" if row.reason else ""),
        "merges": record.get("merges_sha256"),
        "proof": None if row.counting_only else proof_text(row),
        "shown by": shown_by(row) if row.identity.get("reason") else None,
        "corpus": f"{row.corpus.get('name')}, sha256 {row.corpus.get('sha256')}" if row.corpus else None,
        "parameters": ", ".join(f"{name}={value}" for name, value in (record.get("params") or {}).items()),
        "runs": _runs(row),
        "work": ", ".join(tallies),
        "measured": ", ".join(filter(None, (record.get("started"), _beside(row)))),
        "code": _code(environment),
        "source": record.get("source_sha256"),
    }
    return {"command": command_of(record), "facts": [(name, str(text)) for name, text in facts.items() if text]}


def _runs(row: Row) -> str | None:
    """Every total; of very many the ends and the middle."""
    seconds = [sample.wall_seconds for sample in row.samples]
    if len(seconds) > MOST_RUNS:
        low, middle, high = min(seconds), statistics.median(seconds), max(seconds)
        return f"{low:.4g} to {high:.4g} s, half of {count_text(len(seconds))} below {middle:.4g} s"
    return f"{' / '.join(f'{each:.4g}' for each in seconds)} s" if len(seconds) > 1 else None


def _beside(row: Row) -> str:
    return "beside other timed runs" if row.record.get("concurrent") else ""


def _code(environment: Mapping[str, Any]) -> str | None:
    commit, dirty = environment.get("commit"), environment.get("dirty")
    if not commit:
        return None
    return f"commit {commit}" + (" with changes" if dirty is True else "")
