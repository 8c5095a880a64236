"""Every variant as a dot, family by family: who is fast within an idea, and which idea is fast."""

from __future__ import annotations

from collections.abc import Sequence

from harness.common import registry
from harness.results.charts.chart import Axis, Chart, Mark, Panel, Request, Text, form_key, point_of
from harness.results.charts.questions import bars_explained, caption, failures, lacking, one_question
from harness.results.charts.race import time_text
from harness.results.charts.values import EXPLAINED, NOTHING, SPOKEN, WRONG, Value, log_range, value_of
from harness.results.legend import Legend
from harness.results.rows import Row, on_one_footing

OUTSIDE = "outside trainers"
"""The panel of those who are measured by their own programs, whatever they do inside."""


def families(rows: Sequence[Row], request: Request) -> Chart:
    """A panel for each family on one axis, that of the fastest row first; within it from the fastest down."""
    trainers = [row for row in rows if not row.counting_only]
    asked = one_question(trainers, "families", without=("tie_break",)) if trainers else []
    asked = on_one_footing(asked) if request.seconds == "total" else asked
    values = [(row, value_of(row, request.seconds)) for row in asked]
    drawn = [(row, value) for row, value in values if value.form not in (NOTHING, WRONG)]
    if not drawn:
        raise lacking(f"families: no row has {SPOKEN[request.seconds].lower()}; python -m harness measures some")
    drawn.sort(key=lambda drawn: drawn[1].number or 0.0)
    groups: dict[str, list[tuple[Row, Value]]] = {}
    for row, value in drawn:
        groups.setdefault(family_of(row), []).append((row, value))
    low, high = log_range(number for _, value in drawn for number in value.numbers)
    high *= (high / low) ** 0.09  # room for the text of the slowest
    labels = {
        id(row): label for (row, _), label in zip(drawn, Legend([row for row, _ in drawn]).short_labels(), strict=True)
    }
    panels = []
    for place, (family, group) in enumerate(groups.items()):
        marks: list[Mark] = []
        for line, (row, value) in enumerate(group):
            x = value.number or low
            marks.append(point_of(row, value, f"{place}-{line}", x, line, size=5))
            marks.append(Text(line, time_text(value), value.high or x, 5, 6.5))
        axis = Axis(f"{request.seconds}, seconds", low, high, bare=place < len(groups) - 1)
        panels.append(Panel(f"family-{place}", family, axis, [labels[id(row)] for row, _ in group], marks))
    return Chart(
        request.title or f"Every variant by family: {SPOKEN[request.seconds].lower()}, from the fastest down",
        caption([row for row, _ in drawn]),
        [
            *bars_explained([row for row, _ in drawn]),
            EXPLAINED[request.seconds],
            *failures(asked, [row for row, _ in drawn]),
        ],
        panels,
        form_key(value for _, value in drawn),
        step=0.27 if len(drawn) <= 16 else 0.165,
    )


def family_of(row: Row) -> str:
    """
    >>> family_of(Row({"variant": "mine", "family": "heap"}, "ok", "", 1))
    'heap'
    """
    card = registry.variants().get(row.name)
    outside = card is not None and registry.OUTSIDE in card.tags
    return OUTSIDE if outside else str(row.record.get("family") or row.name)
