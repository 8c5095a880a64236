"""Charts as files: an SVG that follows its reader's theme, with a title for each named mark, or a PNG."""

from __future__ import annotations

import io
import math
import re
from pathlib import Path
from xml.etree import ElementTree

from harness.common.console import html_text
from harness.common.errors import Refusal
from harness.common.files import write_whole
from harness.results.chart import Chart
from harness.results.colours import LIGHT, Theme, dark_of
from harness.results.drawing import draw_chart, styled

SUFFIXES = (".svg", ".png")
FONTS = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"
_SVG = "http://www.w3.org/2000/svg"
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def check_suffix(path: Path) -> None:
    if path.suffix.lower() not in SUFFIXES:
        raise Refusal(f"cannot draw into {path}; name a file that ends in .svg or .png")


def save(chart: Chart, path: Path, theme: Theme = LIGHT, follow: bool = True) -> None:
    """Write the chart as its suffix says; with `follow` an SVG is dark if its reader prefers that."""
    check_suffix(path)
    if path.suffix.lower() == ".svg":
        write_whole(path, svg_of(chart, theme, follow).encode())
        return
    content = io.BytesIO()
    with styled():
        draw_chart(chart, theme).savefig(content, format="png", dpi=160, metadata={"Software": None})
    write_whole(path, content.getvalue())


def svg_of(chart: Chart, theme: Theme = LIGHT, follow: bool = True) -> str:
    """The chart as an SVG whose named marks have titles."""
    content = io.BytesIO()
    with styled():
        draw_chart(chart, theme).savefig(content, format="svg", metadata={"Date": None, "Creator": None})
    svg = _smaller(content.getvalue().decode())
    svg = re.sub(
        r"(<svg [^>]*)>", lambda tag: f'{tag[1]} role="img">\n<title>{html_text(chart.title)}</title>', svg, count=1
    )
    hovers = {mark.name: mark.hover for panel in chart.panels for mark in panel.marks if mark.name and mark.hover}

    def titled(tag: re.Match[str]) -> str:
        hover = hovers.get(tag[1])
        return f"{tag[0]}<title>{html_text(hover)}</title>" if hover else tag[0]

    svg = re.sub(r'<g id="([\w-]+)">', titled, svg)
    return _following(svg) if follow else svg


def same_picture(one: Path, other: Path) -> bool:
    """Whether two pictures have the same words, and the same named marks within half a point of each other."""
    if one.read_bytes() == other.read_bytes():
        return True
    try:
        (words, places), (other_words, other_places) = _content(one), _content(other)
    except ElementTree.ParseError:
        return False
    return (
        words == other_words
        and places.keys() == other_places.keys()
        and all(
            len(numbers) == len(other_places[name])
            and all(math.isclose(a, b, abs_tol=0.5) for a, b in zip(numbers, other_places[name], strict=True))
            for name, numbers in places.items()
        )
    )


def _content(path: Path) -> tuple[list[str], dict[str, list[float]]]:
    """The texts of an SVG, and the coordinates below every id of ours: those with a dash."""
    root = ElementTree.parse(path).getroot()
    words = [element.text or "" for tag in ("text", "title") for element in root.iter(f"{{{_SVG}}}{tag}")]
    places: dict[str, list[float]] = {}
    for group in root.iter(f"{{{_SVG}}}g"):
        if re.fullmatch(r"[a-z]+(-[\w-]+)+", group.get("id") or ""):
            texts = [element.get(name) or "" for element in group.iter() for name in ("x", "y")]
            texts += [element.get("d") or "" for element in group if element.tag == f"{{{_SVG}}}path"]
            places[group.get("id") or ""] = [float(number) for text in texts for number in _NUMBER.findall(text)]
    return words, places


def _smaller(svg: str) -> str:
    """The same drawing in fewer bytes: a thousandth of a point is enough, and a font is named once.

    >>> _smaller('<path d="M 1.23456 2 \\nL 3 4.5000001 \\n"/>')
    '<path d="M 1.234 2 L 3 4.500"/>'
    """
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\.\d{3})\d+", r"\1", tag[0]), svg)
    svg = re.sub(r' d="([^"]*)"', lambda path: f' d="{" ".join(path[1].split())}"', svg)
    svg = re.sub(r' transform="rotate\(-0 [^"]*\)"', "", svg)
    svg = svg.replace("; stroke-linejoin: miter", "")
    svg = re.sub(r"font-family: [^;\"]*; ?", "", svg)
    svg = re.sub(r"^ +", "", svg, flags=re.MULTILINE)
    return svg.replace('<style type="text/css">', f'<style type="text/css">text{{font-family: {FONTS}}} ', 1)


def _following(svg: str) -> str:
    """A light SVG with a style sheet for the dark half of every colour, for readers who prefer dark pages."""
    used = {light: dark for light, dark in dark_of().items() if light in svg and light != dark}
    rules = [
        f'[style*="{attribute}: {light}"]{{{attribute}:{dark} !important}}'
        for light, dark in sorted(used.items())
        for attribute in ("fill", "stroke")
        if f"{attribute}: {light}" in svg
    ]
    sheet = "\n".join(["@media (prefers-color-scheme: dark) {", *rules, "}"])
    return svg.replace("</style>", f"\n{sheet}\n</style>", 1)
