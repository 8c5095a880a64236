"""The page itself: what is said about the rows, put into page.html, escaped by Jinja whatever a record holds.

The page carries its own Content-Security-Policy: it may fetch nothing from anywhere, and of scripts only those whose
digests it names are run, so that no record can bring one of its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.colours import phase_colour
from harness.comparison import Comparison
from harness.errors import UNMEASURED, Refusal
from harness.fairness import given_sheet, identity_notes, outside, shown_by
from harness.findings import findings
from harness.legend import Legend, status_text
from harness.report.cells import TableColumn, columns_of
from harness.report.charts import charts_of
from harness.report.figures import Figures, figures_of
from harness.report.sections import (
    best_of_each_task,
    corpora_of,
    environments_of,
    proofs_of,
    statuses_of,
    tiles_of,
)
from harness.report.shown import Shown, shown_of
from harness.reproduction import command_of
from harness.rows import Row
from harness.side_by_side import Sets, comparison_of, comparison_sheet
from harness.units import count_text

Records = Sequence[Mapping[str, Any]]

HERE = Path(__file__).parent
_SCRIPTS = ("table.js", "charts.js")
_FILTERED = ("set", "data", "vocab size", "pattern", "counting", "threads", "interpreter", "host", "status")
"""The columns that have a filter of their own, where their cells differ."""


def page(
    sets: Mapping[str, Records],
    library: str,
    *,
    relative_to: str | None = None,
    compared: Sets | None = None,
) -> str:
    """The page about sets of records, by the names of the sets; `library` is the script that draws the charts.

    The same records give the same page, whenever and wherever it is made. `compared` are the two sets of a page about
    two, put side by side.
    """
    jinja = _jinja()
    shown = shown_of(sets)
    figures = figures_of(shown, _ratios(shown, compared))
    scripts = [library, *((HERE / name).read_text(encoding="utf-8") for name in _SCRIPTS)]
    for script in scripts:
        if "</script" in script.lower() or "<!--" in script:
            raise Refusal("the script of the charts cannot stand in a page; install another version", UNMEASURED)
    columns = columns_of(shown, relative_to)
    # A caption begins with a line for each corpus.
    caption, corpora = shown.legend.caption(), len({row.corpus.get("sha256") for row in shown.rows if row.corpus})
    return str(
        jinja.get_template("page.html").render(
            title=_title(shown, sets),
            on_corpora=caption[:corpora],
            caption=caption[corpora:],
            digest=_digest(sets),
            policy=_policy(scripts),
            style=(HERE / "page.css").read_text(encoding="utf-8"),
            scripts=scripts,
            tiles=tiles_of(shown, sum(map(len, sets.values()))),
            best=best_of_each_task(shown),
            labels=shown.labels,
            brief=shown.brief,
            rows=shown.rows,
            columns=columns,
            filters=_filters(columns),
            details=[_details(shown, place) for place in range(len(shown.rows))],
            notes=_notes(sets, relative_to),
            charts=[chart.name for chart in charts_of(figures)],
            described={chart.name: chart for chart in charts_of(figures)},
            drawing=_drawing(shown, figures),
            proofs=proofs_of(shown),
            corpora=corpora_of(shown),
            environments=environments_of(shown),
            statuses=statuses_of(shown),
            comparison=comparison_sheet(compared) if compared is not None else None,
            given=given_sheet(shown.legend) if outside(shown.rows) else None,
        )
    )


def _ratios(shown: Shown, compared: Sets | None) -> dict[int, Comparison]:
    """The comparison of each row of the right set that has one of the left beside it, by the row's place."""
    found: dict[int, Comparison] = {}
    for pair in compared.pairing.pairs if compared is not None else ():
        comparison = comparison_of(pair)
        if compared is not None and comparison is not None:
            right = [place for place, name in enumerate(shown.sets) if name == compared.names[1]]
            found[next(place for place in right if shown.rows[place] == pair.right)] = comparison
    return found


def _jinja() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise Refusal(absent("jinja2"), UNMEASURED) from error
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def absent(module: str) -> str:
    return (
        f"the page needs {module}, which is not installed; run python -m pip install 'bpe-harness[report]', in a "
        "checkout .venv/bin/python -m pip install -e '.[report]'"
    )


def _title(shown: Shown, sets: Mapping[str, Records]) -> str:
    counting_only = bool(shown.rows) and all(row.counting_only for row in shown.rows)
    subject = "Counting words" if counting_only else "BPE training"
    if len(sets) > 1:
        return f"{subject}: {' beside '.join(sets)}"
    corpora = list(dict.fromkeys(str(row.corpus.get("name")) for row in shown.rows if row.corpus))
    on = ", ".join(corpora) if len(corpora) <= 3 else f"{len(corpora)} corpora"
    return f"{subject} on {on}" if on else subject


def _digest(sets: Mapping[str, Records]) -> str:
    """Of the records, so that two pages can be told to be about the same."""
    return hashlib.sha256(json.dumps(sets, sort_keys=True, default=str).encode()).hexdigest()


def _policy(scripts: Sequence[str]) -> str:
    allowed = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    sources = " ".join(f"'sha256-{digest}'" for digest in allowed)
    # Charts set styles of their own; without any source a style can fetch nothing.
    rules = ("default-src 'none'", f"script-src {sources}", "style-src 'unsafe-inline'", "img-src data:")
    return "; ".join((*rules, "base-uri 'none'", "form-action 'none'"))


def _filters(columns: Sequence[TableColumn]) -> list[tuple[int, str, list[str]]]:
    """For each column with a filter its place, its heading and its texts, sorted as its cells are."""
    found = []
    for place, each in enumerate(columns):
        if each.heading in _FILTERED and len(set(each.cells)) > 1:
            keys = dict(zip(each.cells, each.keys, strict=True))
            found.append((place, each.heading, sorted(keys, key=lambda text: (keys[text] is None, keys[text] or 0))))
    return found


def _notes(sets: Mapping[str, Records], relative_to: str | None) -> list[tuple[str, list[str], list[str]]]:
    """What `harness.table` says below its table, set by set: of rows without times, and the rest."""
    told = []
    for name, records in sets.items():
        legend = Legend(shown_of({"": records}).rows)
        failures = [note for note in legend.notes() if note not in legend.marks()]
        labels = legend.short_labels()
        rest = legend.marks() + identity_notes(legend) + findings(legend.rows, labels, relative_to)
        told.append((name, failures, rest))
    return [each for each in told if each[1] or each[2]]


def _details(shown: Shown, place: int) -> dict[str, Any]:
    """What the table has no column for: the command that measures the row again, and facts by name."""
    row = shown.rows[place]
    record, environment = row.record, row.record.get("environment") or {}
    tallies = [f"{name.replace('_', ' ')} {count_text(number)}" for name, number in row.tallies.items()]
    runs = [f"{sample.wall_seconds:.4g}" for sample in row.samples] if len(row.samples) > 1 else []
    told = {
        "task": shown.tasks[place],
        "outcome": status_text(row) + (f": {row.reason}" if row.reason else ""),
        "merges": record.get("merges_sha256"),
        "agreeing": ", ".join(row.agreeing),
        "identity": shown_by(row) if row.identity.get("reason") else None,
        "corpus": f"{row.corpus.get('name')}, sha256 {row.corpus.get('sha256')}" if row.corpus else None,
        "parameters": ", ".join(f"{name}={value}" for name, value in (record.get("params") or {}).items()),
        "runs": f"{' / '.join(runs)} s" if runs else None,
        "work": ", ".join(tallies),
        "measured": ", ".join(filter(None, (record.get("started"), _beside(row)))),
        "code": _code(environment),
        "source": record.get("source_sha256"),
    }
    return {"command": command_of(record), "facts": [(name, str(text)) for name, text in told.items() if text]}


def _beside(row: Row) -> str:
    return "beside other timed runs" if row.record.get("concurrent") else ""


def _code(environment: Mapping[str, Any]) -> str | None:
    commit, dirty = environment.get("commit"), environment.get("dirty")
    if not commit:
        return None
    return f"commit {commit}" + (" with changes" if dirty is True else "")


def _drawing(shown: Shown, figures: Figures) -> dict[str, Any]:
    """What the page's script draws from."""
    looks, charts = figures.names.values(), charts_of(figures)
    phases = [phase_colour(phase) for phase in figures.phases]
    return {
        "rows": figures.rows,
        "tasks": list(dict.fromkeys(shown.tasks)),
        "charts": [
            {
                "name": chart.name,
                "of_task": chart.of_task,
                "spec": chart.spec,
                "controls": [[put for _, put in control.options] for control in chart.controls],
            }
            for chart in charts
        ],
        "put": {
            "@names": list(figures.names),
            "@shapes": [look.shape for look in looks],
            "@phases": list(figures.phases),
        },
        "light": {
            "@colours": [look.colour.light for look in looks],
            "@phase_colours": [colour.light for colour in phases],
        },
        "dark": {
            "@colours": [look.colour.dark for look in looks],
            "@phase_colours": [colour.dark for colour in phases],
        },
    }
