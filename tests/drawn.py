"""Figures read back from an SVG: where things were drawn, turned into numbers by the ticks beside them alone."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"
UNITS = {"": 1.0, "%": 0.01, "k": 1e3, "M": 1e6, "G": 1e9, "B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9}


def number_of(text: str) -> float:
    """What a tick says.

    >>> [number_of(text) for text in ("1,500", "0.01", "250 kB", "40%", "3M")]
    [1500.0, 0.01, 250000.0, 0.4, 3000000.0]
    """
    found = re.fullmatch(r"([\d.,]+) ?([A-Za-z%]*)", text)
    assert found, f"the tick {text!r} says no number"
    return float(found[1].replace(",", "")) * UNITS[found[2]]


@dataclass(frozen=True)
class Scale:
    """An axis: positions of ticks with what they say."""

    ticks: tuple[tuple[float, float], ...]
    log: bool

    def __call__(self, position: float) -> float:
        """The number at a position, by the first tick and the last."""
        (first, low), (last, high) = self.ticks[0], self.ticks[-1]
        share = (position - first) / (last - first)
        return float(low * (high / low) ** share) if self.log else low + (high - low) * share

    def check(self) -> None:
        """Every tick between stands where the scale says."""
        for position, said in self.ticks:
            assert math.isclose(self(position), said, rel_tol=0.004, abs_tol=1e-9), f"a tick says {said}"


class Drawing:
    """An SVG, its panels, and the figures in them."""

    def __init__(self, path: Path) -> None:
        self.root = ElementTree.parse(path).getroot()
        self.panels = {
            (element.get("id") or "").removeprefix("panel-"): Panel(element)
            for element in self.root.iter(f"{SVG}g")
            if (element.get("id") or "").startswith("panel-")
        }

    @property
    def texts(self) -> list[str]:
        return [text for element in self.root.iter(f"{SVG}text") if (text := (element.text or "").strip())]

    def values(self, prefix: str = "value-") -> dict[str, tuple[float | None, float | None]]:
        """Everything with such an id, as the numbers (x, y) where it is; None along an axis without numbers."""
        found = {}
        for panel in self.panels.values():
            for name in panel.names(prefix):
                x, y = panel.points(name)[0]
                found[name.removeprefix(prefix)] = (
                    panel.x(x) if panel.x is not None else None,
                    panel.y(y) if panel.y is not None else None,
                )
        return found


class Panel:
    """The axes of one panel: numbers along x, along y or both."""

    def __init__(self, element: ElementTree.Element) -> None:
        self.element = element
        self.x, self.y = self._scale("x"), self._scale("y")

    def names(self, prefix: str) -> list[str]:
        names = (element.get("id") or "" for element in self.element.iter(f"{SVG}g"))
        return [name for name in names if name.startswith(prefix)]

    def points(self, name: str) -> list[tuple[float, float]]:
        """The positions of the markers under an id, or else the corners of its path."""
        (element,) = [each for each in self.element.iter(f"{SVG}g") if each.get("id") == name]
        uses = [(float(use.get("x", "nan")), float(use.get("y", "nan"))) for use in element.iter(f"{SVG}use")]
        return uses or [corner for path in element.iter(f"{SVG}path") for corner in corners(path.get("d") or "")]

    def line(self, name: str) -> list[tuple[float, float]]:
        """The corners of the line under an id, as numbers."""
        assert self.x is not None
        assert self.y is not None
        (element,) = [each for each in self.element.iter(f"{SVG}g") if each.get("id") == name]
        path = next(path for path in element if path.tag == f"{SVG}path")
        return [(self.x(x), self.y(y)) for x, y in corners(path.get("d") or "")]

    def along_x(self, name: str) -> tuple[float, float]:
        """From where to where along x something reaches."""
        assert self.x is not None
        places = [x for x, _ in self.points(name)]
        return self.x(min(places)), self.x(max(places))

    def _scale(self, side: str) -> Scale | None:
        """The ticks that say numbers; None where they say names, or nothing."""
        ticks = []
        for element in self.element.iter(f"{SVG}g"):
            if not (element.get("id") or "").startswith(f"{side}tick_"):
                continue
            use = next(element.iter(f"{SVG}use"), None)
            said = "".join(text.text or "" for text in element.iter(f"{SVG}text")).strip()
            if use is None or not re.fullmatch(r"[\d.,]+ ?[A-Za-z%]{0,2}", said):
                return None
            ticks.append((float(use.get(side, "nan")), number_of(said)))
        if len(ticks) < 2:
            return None
        scale = Scale(tuple(ticks), self._is_log(side))
        scale.check()
        return scale

    def _is_log(self, side: str) -> bool:
        """What the axis says of itself: its label follows its ticks."""
        axis = next(
            element
            for element in self.element.iter(f"{SVG}g")
            if re.fullmatch(rf"matplotlib.axis_\d*[{'13579' if side == 'x' else '24680'}]", element.get("id") or "")
        )
        labels = [text.text or "" for group in axis if group.get("id", "").startswith("text_") for text in group]
        return any("(log" in label for label in labels)


def corners(path: str) -> Iterator[tuple[float, float]]:
    """The points of a path of straight lines."""
    for found in re.finditer(r"[ML] ([-\d.e]+) ([-\d.e]+)", path):
        yield float(found[1]), float(found[2])
