"""Tokenizers side by side: a panel for each figure, a group of bars for each text, a bar for each tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.results.charts.chart import Axis, Bar, Chart, Entry, Mark, Panel, Text
from harness.results.colours import HUES
from harness.tokenizers.statistics import Figures

PANELS: tuple[tuple[str, Callable[[Figures], float | None], str], ...] = (
    ("bytes per token", lambda figures: figures.bytes_per_token, "{:.2f}"),
    ("tokens per word", lambda figures: figures.tokens_per_word, "{:.2f}"),
    ("share of the vocabulary used", lambda figures: figures.share_used, "{:.0%}"),
)
# Blue, orange, green, violet and so on: neighbours that differ most.
ORDER = (3, 6, 2, 5, 8, 7, 1, 0)


def describe(figures: Sequence[Figures]) -> Chart:
    """All figures, those of one text together; a bar's number stands at its end."""
    names = list(dict.fromkeys(one.tokenizer for one in figures))
    texts = list(dict.fromkeys(one.text for one in figures))
    colours = {name: HUES[ORDER[place % len(ORDER)]] for place, name in enumerate(names)}
    # A text stands at the middle of its group, and an empty line between two groups.
    group = len(names) + 1
    lines = [""] * (group * len(texts) - 1)
    for number, text in enumerate(texts):
        lines[number * group + (len(names) - 1) // 2] = text
    panels = []
    for place, (title, value_of, form) in enumerate(PANELS):
        most = max((value_of(one) or 0.0 for one in figures), default=0.0) or 1.0
        marks: list[Mark] = []
        for one in figures:
            value, line = value_of(one), texts.index(one.text) * group + names.index(one.tokenizer)
            if value is not None:
                name = f"bar-{place}-{line}"
                marks.append(Bar(line, 0.0, value, one.tokenizer, colours[one.tokenizer], name=name))
                marks.append(Text(line, form.format(value), value, 3))
        unit = "share" if "%" in form else "number"
        axis = Axis("", 0.0, 1.25 * most, log=False, unit=unit)
        panels.append(Panel(f"figures-{place}", title, axis, lines, marks, named=place == 0))
    key = [Entry(name, colour) for name, colour in colours.items()]
    return Chart("Tokenizers on the same texts", [], [], panels, key, widths=(1.0, 1.0, 1.0))
