"""The colour and the shape of every variant, the colour of every phase and of the page: the same in every chart."""

from __future__ import annotations

import functools
import hashlib
from typing import NamedTuple

from harness.common import registry


class Colour(NamedTuple):
    """One colour as it is on a light page and on a dark one: `#rrggbb`."""

    light: str
    dark: str


class Look(NamedTuple):
    """How a variant is drawn; `shape` is one of SHAPES."""

    colour: Colour
    shape: str


class Theme(NamedTuple):
    """A page, light or dark: which half of every colour is drawn on it."""

    dark: bool

    def of(self, colour: Colour) -> str:
        return colour.dark if self.dark else colour.light


LIGHT, DARK = Theme(dark=False), Theme(dark=True)

CARD = Colour("#ffffff", "#0d1117")
INK = Colour("#1f2328", "#e6edf3")
FAINT = Colour("#59636e", "#9198a1")
LINE = Colour("#d8dee4", "#2f353d")
BAND = Colour("#eef1f4", "#1c2128")
WRONG = Colour("#c1121f", "#ff6b6b")
OURS = Colour("#267141", "#118f4a")
OTHERS = Colour("#aab2bb", "#606a75")
PAGE = (CARD, INK, FAINT, LINE, BAND, WRONG, OURS, OTHERS)
"""What a page is drawn in beside its data."""

PHASES = {
    "read": Colour("#cc79a7", "#cc79a8"),
    "count": Colour("#56b4e9", "#56b4ea"),
    "convert": Colour("#f0e442", "#e3d83a"),
    "init": Colour("#009e73", "#14a97e"),
    "copy": Colour("#e69f00", "#e69f01"),
    "max": Colour("#d55e00", "#dd6610"),
    "update": Colour("#0072b2", "#1f83c4"),
    "other": Colour("#444444", "#6e7681"),
}
"""Okabe and Ito's, and a dark grey: told apart with any colour vision."""

OTHER_PHASE = Colour("#24292f", "#57606a")
"""Of a phase that nobody knew when this was written."""

HUES = (
    Colour("#5c6470", "#a3adb8"),  # grey
    Colour("#582700", "#f2ac7c"),  # brown
    Colour("#349c78", "#63fcc5"),  # green
    Colour("#5e88e9", "#648eee"),  # blue
    Colour("#267141", "#118f4a"),  # dark green
    Colour("#7018ac", "#d7abf0"),  # violet
    Colour("#e2420e", "#e2420f"),  # orange
    Colour("#fb31b4", "#e80da4"),  # pink
    Colour("#7d8112", "#e5eb2d"),  # olive
    Colour("#681127", "#fe5074"),  # wine
    Colour("#890483", "#d037c6"),  # purple
    Colour("#6c68fc", "#6c68fd"),  # indigo
)
"""Chosen by search: any two are far apart for every kind of colour vision, on a light page and on a dark one."""

SHAPES = (
    *("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "star", "triangle-left"),
    *("triangle-right", "pentagon", "hexagon", "diamond-tall", "octagon"),
)
"""Names that Plotly knows as well. A slanting cross is not among them: it means that something is wrong."""


def look_of(variant: str) -> Look:
    """How a variant is drawn; one that is not in the registry gets a look by the digest of its name."""
    return _looks().get(variant) or _look(_number(variant))


def phase_colour(phase: str) -> Colour:
    return PHASES.get(phase, OTHER_PHASE)


def counter_look(counter: str) -> Look:
    """How a word counter is drawn: from the middle of the palette, so that it is not taken for the first variant."""
    known = [*registry.counters()]
    return _look(3 + (known.index(counter) if counter in known else len(known) + _number(counter)))


def dark_of() -> dict[str, str]:
    """Every colour of a light page with the one that takes its place on a dark page."""
    return {colour.light: colour.dark for colour in (*PAGE, *PHASES.values(), OTHER_PHASE, *HUES)}


@functools.cache
def _looks() -> dict[str, Look]:
    """Looks over the whole registry, so that no subset changes them; outside trainers come last there."""
    return {name: _look(place) for place, name in enumerate(registry.variants())}


def _look(number: int) -> Look:
    """Hues first, since they are told apart at a glance, then shapes."""
    return Look(HUES[number % len(HUES)], SHAPES[(number // len(HUES) + number % len(HUES)) % len(SHAPES)])


def _number(name: str) -> int:
    return int(hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:12], 16)
