"""A picture as a file: whole or not at all, small, and with the same bytes for the same figure."""

from __future__ import annotations

import io
import math
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from harness.common.errors import Refusal
from harness.common.files import write_whole
from harness.results.charts.layout import styled
from harness.results.colours import dark_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SVG = "http://www.w3.org/2000/svg"
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
SUFFIXES = (".svg", ".png")
FONTS = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"


def check_suffix(path: Path) -> None:
    if path.suffix.lower() not in SUFFIXES:
        raise Refusal(f"cannot draw into {path}; name a file that ends in .svg or .png")


def save(figure: Figure, path: Path, follow: bool = True) -> None:
    """Write the figure as its suffix says; with `follow` an SVG is dark where its reader prefers that."""
    check_suffix(path)
    kind = path.suffix.lower().removeprefix(".")
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    picture = io.BytesIO()
    with styled():
        figure.savefig(picture, format=kind, dpi=160, metadata=metadata)
    content = picture.getvalue()
    if kind == "svg":
        svg = titled(slim(content.decode()), figure.texts[0].get_text() if figure.texts else path.stem)
        content = (following(svg) if follow else svg).encode()
    write_whole(path, content)


def titled(svg: str, title: str) -> str:
    """The drawing with a title for those who have it read to them."""
    return re.sub(r"(<svg [^>]*)>", lambda tag: f'{tag[1]} role="img">\n<title>{escape(title)}</title>', svg, count=1)


def alike(one: Path, other: Path) -> bool:
    """Whether two pictures say the same words and have everything that has a name at the same place.

    Bytes may differ between releases of matplotlib; a place may by half a point.
    """
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
    words = [element.text or "" for element in root.iter(f"{{{_SVG}}}text")]
    places: dict[str, list[float]] = {}
    for group in root.iter(f"{{{_SVG}}}g"):
        if re.fullmatch(r"[a-z]+(-[\w-]+)+", group.get("id") or "") and not (group.get("id") or "").startswith("panel"):
            texts = [element.get(name) or "" for element in group.iter() for name in ("x", "y")]
            texts += [element.get("d") or "" for element in group if element.tag == f"{{{_SVG}}}path"]
            places[group.get("id") or ""] = [float(number) for text in texts for number in _NUMBER.findall(text)]
    return words, places


def slim(svg: str) -> str:
    """The same drawing in fewer bytes: a thousandth of a point is enough, and a font is named once.

    >>> slim('<path d="M 1.23456 2 \\nL 3 4.5000001 \\n"/>')
    '<path d="M 1.234 2 L 3 4.500"/>'
    """
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\.\d{3})\d+", r"\1", tag[0]), svg)
    svg = re.sub(r' d="([^"]*)"', lambda path: f' d="{" ".join(path[1].split())}"', svg)
    svg = re.sub(r' transform="rotate\(-0 [^"]*\)"', "", svg)
    svg = re.sub(
        r"(<use [^>]*?fill: #[0-9a-f]{6}[^>]*?); stroke: [^\">]*", r"\1", svg
    )  # its path has a stroke of its own
    svg = svg.replace("; stroke-linejoin: miter", "")
    svg = re.sub(r"font-family: [^;\"]*; ?", "", svg)
    svg = re.sub(r"^ +", "", svg, flags=re.MULTILINE)
    return svg.replace('<style type="text/css">', f'<style type="text/css">text{{font-family: {FONTS}}} ', 1)


def following(svg: str) -> str:
    """A light SVG with a style sheet that takes the dark half of every colour where the reader prefers dark pages.

    What is drawn stays light for programs that know no style sheets. Text in a bar is legible on the bar's dark colour
    as well, since the two halves of a colour of data are close.
    """
    used = {light: dark for light, dark in dark_of().items() if light in svg and light != dark}
    rules = [
        f'[style*="{attribute}: {light}"]{{{attribute}:{dark} !important}}'
        for light, dark in sorted(used.items())
        for attribute in ("fill", "stroke")
        if f"{attribute}: {light}" in svg
    ]
    sheet = "\n".join(["@media (prefers-color-scheme: dark) {", *rules, "}"])
    return svg.replace("</style>", f"\n{sheet}\n</style>", 1)
