"""The figures of a page: descriptions of charts, each with one or several views to choose from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.common.comparison import Comparison
from harness.results.charts.chart import Panel, Request, row_look
from harness.results.charts.compared import Compared, ratios_panel
from harness.results.charts.memory import memory_panel, with_both
from harness.results.charts.questions import questions
from harness.results.charts.seconds import MOST_RUNS, far_apart, phases_panel, totals_with_runs
from harness.results.charts.sizes import SIZES, series_of
from harness.results.charts.sizes import panels as size_panels
from harness.results.charts.values import value_of
from harness.results.charts.vega import view_of
from harness.results.colours import phase_colour
from harness.results.page.page_rows import PageRows
from harness.results.rows import Row, measured_phases

TOTALS = Request(seconds="total")


@dataclass(frozen=True)
class Figure:
    """A figure: what it is called and says of itself, and its panels, of which a reader sees those of one view.

    `of_task` if it has one task's rows and not those of all; `choice` names what the views differ in.
    """

    name: str
    title: str
    about: str
    panels: Sequence[Panel]
    choice: str = ""
    of_task: bool = True

    @property
    def views(self) -> list[str]:
        return list(dict.fromkeys(panel.view for panel in self.panels))


def figures_of(page_rows: PageRows, ratios: Mapping[int, Comparison] | None = None) -> list[Figure]:
    """Those for which the rows have something; `ratios` are to the row of another set, by the place of the row."""
    return [figure for figure in _figures(page_rows, ratios or {}) if any(panel.marks for panel in figure.panels)]


def _figures(page_rows: PageRows, ratios: Mapping[int, Comparison]) -> Iterator[Figure]:
    rows = page_rows.rows
    sets = [
        [row for row, owner in zip(rows, page_rows.sets, strict=True) if owner == name]
        for name in dict.fromkeys(page_rows.sets)
    ]
    groups = [group for own in sets for group in questions(own)]
    lines = [Compared(page_rows.brief[place], rows[place], comparison) for place, comparison in ratios.items()]
    if lines:
        about = "How many times the left set's time the right set takes; a line is the interval that holds the ratio."
        panel = ratios_panel("ratios", lines, "", "right / left")
        yield Figure("ratios", "Right against left", about, [panel])
    about = "From the fastest down. A tick is a single run; a dashed line is where an extrapolated total should lie."
    if any(len(row.samples) > MOST_RUNS for row in rows):
        about += f" Of more than {MOST_RUNS} runs so many have ticks, evenly from the shortest to the longest."
    yield Figure("totals", "Total seconds", about, [totals_with_runs(rows, page_rows.brief)])
    shares = [phases_panel(rows, page_rows.brief, shares=True), phases_panel(rows, page_rows.brief, shares=False)]
    about = "Each row's total by phase. Seconds are what the table says; shares show what short rows are made of."
    yield Figure("phases", "Where the time went", about, shares if far_apart(rows) else shares[::-1], "Bars show")
    about = "On the dashed line are the confirmed rows that no other of the same machine beats in both."
    both = [group for group in (with_both(group, TOTALS) for group in groups) if group]
    panels = [memory_panel(str(place), group, both, TOTALS) for place, group in enumerate(both)]
    yield Figure("memory", "Time against memory", about, panels)
    about = "Totals of cells that differ in one size alone, and the power of the size that fits what was measured."
    yield Figure("growth", "Growth", about, [*_grown(sets)], "Against", of_task=False)


def _grown(sets: Sequence[Sequence[Row]]) -> Iterator[Panel]:
    for size in SIZES:
        groups = [(group, series_of(group, TOTALS, size)) for rows in sets for group in questions(rows, size.without)]
        yield from size_panels([(group, series) for group, series in groups if series], size)


def drawing(page_rows: PageRows, figures: Sequence[Figure]) -> dict[str, Any]:
    """What the page's script draws from: rows, figures with their marks, and what stands for each `@` in them."""
    places = {id(row): place for place, row in enumerate(page_rows.rows)}
    looks = {row.name: row_look(row) for row in page_rows.rows}
    phases = {phase: phase_colour(phase) for phase in measured_phases(page_rows.rows)}
    return {
        "rows": [
            {
                "id": place,
                "label": page_rows.brief[place],
                "name": row.name,
                "task": page_rows.tasks[place],
                "status": row.status,
                "takes": value_of(row, "total").number,
            }
            for place, row in enumerate(page_rows.rows)
        ],
        "tasks": list(dict.fromkeys(page_rows.tasks)),
        "charts": [
            {
                "name": figure.name,
                "of_task": figure.of_task,
                "ranked": figure.name == "totals",
                "views": [
                    view_of([panel for panel in figure.panels if panel.view == view], places) for view in figure.views
                ],
            }
            for figure in figures
        ],
        "put": {
            "@names": list(looks),
            "@shapes": [look.shape for look in looks.values()],
            "@phases": list(phases),
        },
        **{
            dress: {
                "@colours": [getattr(look.colour, dress) for look in looks.values()],
                "@phase_colours": [getattr(colour, dress) for colour in phases.values()],
            }
            for dress in ("light", "dark")
        },
    }
