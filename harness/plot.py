"""Records as a picture: each row's total, stacked from its phases.

    python -m harness.plot                                      results/local/phases.svg, the latest runs there
    python -m harness.plot a.jsonl b --output phases.png

Where one row takes many times as long as another, stacked bars would hide the small ones, and stacking on a log axis
would lie about every phase but the first. Then the totals stand on a log axis, and beside them what each is made of.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import Refusal
from harness.legend import REUSED, UNCONFIRMED, Legend, divergence_text, failure_text
from harness.record_arguments import DEFAULT_RESULTS, add_record_arguments, chosen_records
from harness.rows import Row, measured_phases, rows
from harness.table import exit_code
from harness.units import decimals_for, seconds_texts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Records = Sequence[Mapping[str, Any]]

COLOURS = {
    "read": "#CC79A7",
    "count": "#56B4E9",
    "convert": "#F0E442",
    "init": "#009E73",
    "copy": "#E69F00",
    "max": "#D55E00",
    "update": "#0072B2",
    "other": "#444444",
}
"""Okabe and Ito's, and a dark grey: told apart with any colour vision. A phase has the same in every picture."""

_CARD, _INK, _FAINT = "#ffffff", "#1f2328", "#59636e"
_STYLE: Any = {  # matplotlib names its settings in a type that changes with every release
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _FAINT,
    "ytick.color": _INK,
    "text.parse_math": False,  # a dollar in a name is a dollar
    "svg.fonttype": "none",  # text stays text: readable by programs and by those who cannot see
    "svg.hashsalt": "phases",  # equal records give equal bytes
}
_TOO_WIDE = 8
"""From this ratio of the longest total to the shortest on, the shortest bar is too short to show what it is made of."""

_LINE = 0.19
"""Inches from one line of text to the next."""


def draw(records: Records, *, title: str | None = None, log: bool = False) -> Figure:
    """The picture of these records' rows; `log` asks for totals on a log axis whatever their spread."""
    from matplotlib.figure import Figure

    shown = rows(records)
    legend = Legend(shown)
    caption = [part for line in legend.caption() for part in textwrap.wrap(line, 125)]
    notes = [part for line in legend.marks() for part in textwrap.wrap(line, 140)]
    totals = [row.total for row in shown if row.total]
    split = bool(totals) and (log or max(totals) > _TOO_WIDE * min(totals))
    above, below = _LINE * (len(caption) + 4.2), _LINE * (len(notes) + 1)
    labels = ["\n".join(textwrap.wrap(label, 30)) for label in legend.labels()]
    tallest = max((label.count("\n") for label in labels), default=0) + 1
    height = above + below + 0.5 + max(0.4, 0.16 * tallest) * len(shown)
    with _styled():
        figure = Figure(figsize=(9.6, height), facecolor=_CARD)
        room = (0.01, below / height, 0.98, 1 - (above + below) / height)
        figure.set_layout_engine("constrained", rect=room, w_pad=0.12)
        subject = "Counting words" if all(row.counting_only for row in shown) else "BPE training"
        _write(figure, [title or f"{subject}: seconds by phase"], height, height - _LINE, 12, _INK, "bold")
        _write(figure, caption, height, height - 2.3 * _LINE, 8.5, _FAINT)
        _write(figure, notes, height, below - 0.7 * _LINE, 8, _FAINT)
        if split:
            left, right = figure.subplots(1, 2, sharey=True, width_ratios=(2, 3))
            _draw_totals(left, shown)
            _draw_phases(right, shown, shares=True)
        else:
            left = right = figure.subplots()
            _draw_phases(right, shown, shares=False)
        left.set_yticks(range(len(shown)), labels)
        left.set_ylim(len(shown) - 0.5, -0.5)
        _draw_key(figure, shown, 1 - (above - 1.9 * _LINE) / height)
        _settle(figure)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write the figure as its suffix says, whole or not at all; the same figure always gives the same bytes."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("svg", "png"):
        raise Refusal(f"cannot draw into {path}; name a file that ends in .svg or .png")
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    picture = io.BytesIO()
    with _styled():
        figure.savefig(picture, format=kind, dpi=160, metadata=metadata)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(picture.getvalue())
        part.replace(path)
    except OSError as error:
        if part.exists():
            part.unlink()
        raise Refusal(f"cannot write {path} ({error.strerror}); choose another place with --output") from error


@contextlib.contextmanager
def _styled() -> Iterator[None]:
    import matplotlib

    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # A name in a script that matplotlib's font lacks: an SVG leaves the choice of font to its reader.
        warnings.filterwarnings("ignore", r"Glyph .* missing from font", UserWarning)
        yield


def _settle(figure: Figure) -> None:
    """Let the labels make their room once, then fix the panels: the solver's last digits differ from run to run."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        left, bottom, width, height = (round(float(bound), 4) for bound in axes.get_position().bounds)
        axes.set_position((left, bottom, width, height))


def _write(
    figure: Figure, lines: Sequence[str], height: float, top: float, size: float, colour: str, weight: str = "normal"
) -> None:
    """Lines of text from `top`, in inches from the figure's lower edge, downwards."""
    for number, line in enumerate(lines):
        y = (top - number * _LINE) / height
        figure.text(0.015, y, line, fontsize=size, color=colour, weight=weight, va="center")


def _draw_totals(axes: Axes, shown: Sequence[Row]) -> None:
    """Totals as points on a log axis: the length of a bar would mean nothing there."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_xscale("log")
    totals = [(place, row.total, text) for place, (row, text) in enumerate(zip(shown, _texts(shown), strict=True))]
    measured = [(place, total, text[0]) for place, total, text in totals if total is not None]
    axes.scatter([total for _, total, _ in measured], [place for place, _, _ in measured], s=28, color=_INK, zorder=3)
    for place, total, text in measured:
        axes.annotate(text, (total, place), (6, 0), textcoords="offset points", va="center", fontsize=8.5)
    smallest, largest = min(total for _, total, _ in measured), max(total for _, total, _ in measured)
    # Room at the right for the text of the largest: a third of the axis, whatever its length.
    axes.set_xlim(smallest / 1.6, largest * 1.6 * (largest / smallest) ** 0.5)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if largest < 30 * smallest else (1,)))
    axes.xaxis.set_major_formatter(lambda seconds, _: f"{seconds:,g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("total, seconds (log scale)")
    _trim(axes)


def _draw_phases(axes: Axes, shown: Sequence[Row], shares: bool) -> None:
    """Stacked bars: seconds, or shares of the total with the seconds written in them."""
    longest = 1.0 if shares else max((row.total for row in shown if row.total), default=1.0)
    for place, (row, (total_text, texts)) in enumerate(zip(shown, _texts(shown), strict=True)):
        if row.total is None:
            told = f"≠ {divergence_text(row, 16)}" if row.status == "mismatch" else failure_text(row)
            wrapped = "\n".join(textwrap.wrap(told, 62 if shares else 90, max_lines=2, placeholder=" …"))
            axes.text(0.01 * longest, place, wrapped, va="center", fontsize=8, style="italic", color=_FAINT)
            continue
        scale, start = (row.total or 1.0) if shares else 1.0, 0.0
        for phase, text in texts.items():
            length = row.seconds[phase] / scale
            colour = COLOURS.get(phase, _INK)
            axes.barh(place, length, 0.66, start, color=colour, edgecolor=_CARD, linewidth=0.6)
            if length > 0.085 * longest:
                ink = _ink_on(colour)
                axes.text(start + length / 2, place, text, ha="center", va="center", fontsize=7.5, color=ink)
            start += length
        if not shares:
            axes.annotate(total_text, (start, place), (4, 0), textcoords="offset points", va="center", fontsize=8.5)
    axes.set_xlim(0, longest if shares else 1.16 * longest)
    axes.set_xlabel("share of the total (seconds in the bars)" if shares else "seconds")
    if shares:
        axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    _trim(axes)


def _draw_key(figure: Figure, shown: Sequence[Row], top: float) -> None:
    """One row of colours, for the phases in which some time was spent."""
    from matplotlib.patches import Patch

    spent = [phase for phase in measured_phases(shown) if any(row.seconds.get(phase) for row in shown)]
    patches = [Patch(color=COLOURS.get(phase, _INK), label=phase) for phase in spent]
    if patches:
        place = (0.002, top)
        figure.legend(handles=patches, loc="upper left", bbox_to_anchor=place, ncols=len(patches), frameon=False)


def _texts(shown: Sequence[Row]) -> list[tuple[str, dict[str, str]]]:
    """Each row's total with its marks, and its phases, written as the table writes them."""
    decimals = decimals_for(row.total for row in shown if row.total is not None)
    written = []
    for row in shown:
        total, parts = seconds_texts(list(row.seconds.values()), decimals)
        marks = (REUSED if row.counts_reused else "") + ("" if row.confirmed else UNCONFIRMED)
        written.append((f"{total} s{marks}", dict(zip(row.seconds, parts, strict=True))))
    return written


def _ink_on(colour: str) -> str:
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return _CARD if 0.299 * red + 0.587 * green + 0.114 * blue < 0.5 else _INK


def _trim(axes: Axes) -> None:
    axes.grid(axis="x", color="#d8dee4", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_FAINT)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m harness.plot",
        description="Draw records: seconds stacked by phase. A wrong or unfinished run is named, not drawn.",
        epilog="examples:\n"
        "  python -m harness.plot                                      the latest run of each cell in results/local\n"
        "  python -m harness.plot mine.jsonl yours/ --output both.png  joined, as a PNG\n\n"
        f"Where the longest total is more than {_TOO_WIDE} times the shortest, totals stand on a log axis, with the\n"
        "phases' shares beside them; --log asks for that always.\n"
        "exit code: 0; 21 if merges are wrong or rows contradict each other; 22 if there is nothing to draw.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_record_arguments(parser)
    output = Path(DEFAULT_RESULTS, "phases.svg")
    kinds = ".svg or .png (default: %(default)s)"
    parser.add_argument("--output", metavar="FILE", type=Path, default=output, help=kinds)
    parser.add_argument("--title", help="instead of the one that says what was measured")
    parser.add_argument("--log", action="store_true", help="totals on a log axis, phases as shares")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        chosen = chosen_records(arguments)
        save(draw(chosen, title=arguments.title, log=arguments.log), arguments.output)
    except Refusal as refusal:
        print(refusal, file=sys.stderr)  # noqa: T201
        return refusal.exit_code
    print(f"wrote {arguments.output}")  # noqa: T201
    return exit_code(chosen)


if __name__ == "__main__":
    sys.exit(main())
