"""A page: title, caption, key, panels and notes, laid out in inches so that equal records give equal bytes anywhere."""

from __future__ import annotations

import contextlib
import textwrap
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from harness.pictures.theme import Theme

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 9.6
LINE = 0.19
"""Inches from one line of text to the next."""
EDGE = 0.15
_LETTER = 0.0082
"""Inches that a letter is wide, for each point of its size, in matplotlib's own font: the widest that readers have."""

_STYLE: Any = {  # matplotlib names its settings in a type that changes with every release
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "text.parse_math": False,  # a dollar in a name is a dollar
    "svg.fonttype": "none",  # text stays text: readable by programs and by those who cannot see
    "svg.hashsalt": "pictures",  # equal records give equal bytes
    "hatch.linewidth": 0.6,
    "path.simplify": False,
}


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """matplotlib's settings while something is drawn or written."""
    import matplotlib

    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # A name in a script that matplotlib's font lacks: an SVG leaves the choice of font to its reader.
        warnings.filterwarnings("ignore", r"Glyph .* missing from font", UserWarning)
        yield


def text_width(text: str, size: float) -> float:
    """About how many inches a line of text is wide.

    >>> text_width("heap", 10) < text_width("堆堆堆堆", 10)
    True
    """
    letters = sum(1.7 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
    return letters * _LETTER * size


def wrapped(lines: Sequence[str], size: float, width: float) -> list[str]:
    """The lines, those that are wider than `width` inches broken."""
    letters = max(20, int(width / (_LETTER * size)))
    return [part for line in lines for part in textwrap.wrap(line, letters)]


class Page:
    """A figure whose body is `height` inches high; panels are placed from the body's upper left corner."""

    def __init__(
        self,
        theme: Theme,
        title: str,
        caption: Sequence[str],
        notes: Sequence[str],
        height: float,
        key: Sequence[Artist] = (),
        width: float = WIDTH,
    ) -> None:
        from matplotlib.figure import Figure

        self.theme, self.width = theme, width
        inner = width - 2 * EDGE
        caption, notes = wrapped(caption, 8.5, inner), wrapped(notes, 8, inner)
        columns = self._columns(key)
        key_lines = -(-len(key) // columns) if key else 0
        above = LINE * (len(caption) + 2.4 + 1.05 * key_lines) + (0.08 if key else 0)
        below = LINE * (len(notes) + 0.9) if notes else 0.1
        self.height, self._above = above + height + below, above
        self.figure: Figure = Figure(figsize=(width, self.height), facecolor=theme.card)
        self._write([title], self.height - LINE, 12, theme.ink, "bold")
        self._write(caption, self.height - 2.3 * LINE, 8.5, theme.faint)
        self._write(notes, below - 0.9 * LINE, 8, theme.faint)
        if key:
            place = (EDGE / width - 0.004, (self.height - above + 1.05 * LINE * key_lines + 0.12) / self.height)
            legend = self.figure.legend(
                handles=list(key),
                loc="upper left",
                bbox_to_anchor=place,
                ncols=columns,
                frameon=False,
                fontsize=8,
                labelcolor=theme.ink,
                borderpad=0,
                handletextpad=0.5,
                columnspacing=1.4,
                handlelength=1.6,
            )
            legend.set_gid("key")

    def _columns(self, key: Sequence[Artist]) -> int:
        widest = max((text_width(str(artist.get_label()), 8) for artist in key), default=0.0) + 0.42
        return max(1, min(len(key), int((self.width - 2 * EDGE) / widest)))

    def _write(self, lines: Sequence[str], top: float, size: float, colour: str, weight: str = "normal") -> None:
        """Lines of text from `top`, in inches from the figure's lower edge, downwards."""
        for number, line in enumerate(lines):
            y = (top - number * LINE) / self.height
            self.figure.text(EDGE / self.width, y, line, fontsize=size, color=colour, weight=weight, va="center")

    def panel(self, left: float, top: float, width: float, height: float, name: str, title: str = "") -> Axes:
        """Axes whose upper left corner is that many inches from the body's."""
        bottom = self.height - self._above - top - height
        bounds = (left / self.width, bottom / self.height, width / self.width, height / self.height)
        axes = self.figure.add_axes(bounds, facecolor=self.theme.card)
        axes.set_gid(f"panel-{name}")
        axes.set_axisbelow(True)
        axes.tick_params(axis="both", color=self.theme.faint, labelsize=8.5, width=0.6)
        axes.tick_params(axis="x", labelcolor=self.theme.faint)
        axes.tick_params(axis="y", labelcolor=self.theme.faint)
        axes.xaxis.label.set_color(self.theme.ink)
        axes.yaxis.label.set_color(self.theme.ink)
        axes.xaxis.label.set_fontsize(8.5)
        axes.yaxis.label.set_fontsize(8.5)
        for side, spine in axes.spines.items():
            spine.set_visible(side in ("left", "bottom"))
            spine.set_color(self.theme.faint)
            spine.set_linewidth(0.6)
        if title:
            axes.set_title(title, fontsize=9, color=self.theme.ink, loc="left", pad=5, weight="bold")
        return axes

    def rows_panel(self, left: float, top: float, width: float, rows: Sequence[str], step: float, name: str) -> Axes:
        """A panel of one line for each name of `rows`, from above, `step` inches each."""
        axes = self.panel(left, top, width, step * len(rows), name)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_yticks(range(len(rows)), rows)
        axes.tick_params(axis="y", length=0, labelcolor=self.theme.ink, labelsize=8.5 if step > 0.17 else 7.5)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x", color=self.theme.line, linewidth=0.6)
        return axes


def label_room(labels: Sequence[str], size: float, most: float) -> float:
    """Inches that the widest of labels needs at the left of a panel, at most `most`."""
    widest = max((text_width(line, size) for label in labels for line in label.split("\n")), default=0.0)
    return min(most, widest) + 0.12


def broken(labels: Sequence[str], letters: int) -> list[str]:
    """Labels in lines of at most that many letters."""
    return ["\n".join(textwrap.wrap(label, letters, break_long_words=False)) or label for label in labels]
