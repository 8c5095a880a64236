"""How many times one row's time every other takes, by the blocks in which both ran, with the interval of that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.columns import interval_text
from harness.comparison import CONFIDENCE, FEWEST_BLOCKS, MARGIN, Comparison, compare
from harness.errors import Refusal
from harness.legend import Legend
from harness.pictures import marks
from harness.pictures.page import EDGE, WIDTH, Page, label_room
from harness.pictures.questions import caption, grouped, lacking, panel_title
from harness.pictures.request import Request
from harness.pictures.scales import log_axis, log_range
from harness.pictures.theme import BAND
from harness.pictures.values import MEASURED, UNCONFIRMED, Value
from harness.rows import Row
from harness.units import ratio_text, share_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Pair(NamedTuple):
    """A row beside the baseline: the ratios within blocks, and what follows from them."""

    label: str
    row: Row
    comparison: Comparison


def draw(shown: Sequence[Row], request: Request) -> Figure:
    """A panel for each question, a line for each row that ran in blocks beside the baseline."""
    groups = grouped([row for row in shown if row.samples])
    panels = []
    for group in groups:
        base = _baseline(group, request.relative_to)
        pairs = pairs_of(group, base) if base is not None else []
        if base is not None and pairs:
            panels.append((group, base, pairs))
    if not panels:
        raise _refusal(shown, request)
    labels = [[pair.label for pair in pairs] for *_, pairs in panels]
    left = EDGE + label_room([label for each in labels for label in each], 8.5, 3.4)
    step = 0.3 if max(map(len, labels)) <= 24 else 0.18
    told = 2.35
    clocks = dict.fromkeys(pair.comparison.clock for *_, pairs in panels for pair in pairs)
    names = dict.fromkeys(base.name for _, base, _ in panels)
    page = Page(
        request.theme,
        request.title or f"How many times the time of {' or '.join(names)}, block by block",
        caption([row for group, *_ in panels for row in group]),
        _notes(panels, " or ".join(clocks)),
        0.02 + sum(step * len(each) + 0.85 for each in labels),
    )
    top = 0.3
    for place, ((group, base, pairs), own) in enumerate(zip(panels, labels, strict=True)):
        axes = page.rows_panel(left, top, WIDTH - EDGE - told - left, own, step, str(place))
        title = f"{panel_title(group, groups)}: times {base.name}"
        axes.set_title(title, fontsize=9, color=request.theme.ink, loc="left", weight="bold", pad=4)
        _draw_panel(axes, pairs, base, request, place)
        top += step * len(own) + 0.85
    return page.figure


def _baseline(group: Sequence[Row], name: str | None) -> Row | None:
    """The row of that name; without a name the one that took the least."""
    usable = [row for row in group if row.total is not None and (name is None or row.name == name)]
    return min(usable, key=lambda row: row.total or 0.0, default=None)


def pairs_of(group: Sequence[Row], base: Row) -> list[Pair]:
    """Every other row that shared two blocks or more with the baseline, the slowest first."""
    found = []
    for row, label in zip(group, Legend(group).short_labels(), strict=True):
        comparison = compare(row.samples, base.samples) if row is not base and row.total is not None else None
        if comparison is not None and comparison.pairs > 1:
            found.append(Pair(label, row, comparison))
    return sorted(found, key=lambda pair: -pair.comparison.ratio)


def _refusal(shown: Sequence[Row], request: Request) -> Refusal:
    names = dict.fromkeys(row.name for row in shown if row.samples)
    if request.relative_to is not None and request.relative_to not in names:
        return lacking(f"no time of {request.relative_to!r} to compare with; there are: {', '.join(names) or 'none'}")
    return lacking(
        "paired: no two rows ran together in two blocks or more; python -m harness measure=paired makes ten of them"
    )


def _notes(panels: Sequence[tuple[Sequence[Row], Row, Sequence[Pair]]], clocks: str) -> list[str]:
    pairs = [pair for *_, found in panels for pair in found]
    said = [
        f"Dots: the ratio of {clocks} seconds in each block. Marker: their median. Bar: the interval that holds the "
        f"true median with {share_text(CONFIDENCE)} confidence.",
        f"Grey band: differences of less than {share_text(MARGIN)}. "
        "A bar that touches 1, or lies in the band, is no difference; its marker is hollow.",
    ]
    few = [pair.label for pair in pairs if pair.comparison.low is None]
    if few:
        said.append(f"Without a bar: fewer than {FEWEST_BLOCKS} blocks that can be used ({', '.join(few)}).")
    left_out = sum(pair.comparison.left_out for pair in pairs)
    if left_out:
        said.append(f"Blocks left out because the machine was too busy for wall times: {left_out} in all.")
    return said


def _draw_panel(axes: Axes, pairs: Sequence[Pair], base: Row, request: Request, panel: int) -> None:
    theme = request.theme
    axes.axvspan(1 / (1 + MARGIN), 1 + MARGIN, color=theme.of(BAND), zorder=0)
    axes.axvline(1, color=theme.ink, linewidth=0.9, zorder=1)
    for place, pair in enumerate(pairs):
        look, name, found = marks.row_look(pair.row), f"{panel}-{place}", pair.comparison
        (dots,) = axes.plot(
            pair.comparison.ratios,
            [place] * len(pair.comparison.ratios),
            linestyle="none",
            marker="o",
            markersize=3.2,
            alpha=0.45,
            color=theme.of(look.colour),
            markeredgewidth=0,
            zorder=2,
        )
        dots.set_gid(f"blocks-{name}")
        value = Value(MEASURED if pair.row.confirmed else UNCONFIRMED, found.ratio, found.low, found.high)
        marks.bar(axes, value, place, look, theme, name, runs=2)
        style = marks.style_of(value.form, look, theme, 7)
        if not found.different:
            style |= {"markerfacecolor": theme.card, "markeredgecolor": theme.of(look.colour), "markeredgewidth": 1.2}
        (marker,) = axes.plot([found.ratio], [place], linestyle="none", zorder=4, **style)
        marker.set_gid(f"value-{name}")
        interval = f" ({interval_text(found)})" if found.low is not None else ""
        text = f"{ratio_text(found.ratio)}{interval}"
        axes.text(1.015, place, text, transform=axes.get_yaxis_transform(), fontsize=8, va="center", color=theme.ink)
    low, high = log_range(
        [1.0, *(ratio for pair in pairs for ratio in (*pair.comparison.ratios, *_ends(pair)))], 1.04, 1.04
    )
    log_axis(axes, "x", low, high, f"times {base.name}", most=8)


def _ends(pair: Pair) -> list[float]:
    return [end for end in (pair.comparison.low, pair.comparison.high) if end is not None and math.isfinite(end)]
