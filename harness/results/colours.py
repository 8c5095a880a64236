"""The colour and the shape of every variant, the colour of every phase and of the page: the same in every picture.

A family of variants that are written in one language has a hue, one of twelve that any colour vision tells apart.
Within it, parts of the series differ in shade and variants in shape. Looks are given out over the whole registry, so
that no subset changes them, and to outside trainers last, so that a new one changes nobody's but its fellows'.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from harness.common import registry
from harness.common.registry import VariantCard


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
BLACK_INK = Colour("#111418", "#111419")
WHITE_INK = Colour("#fefefe", "#fefeff")
"""What a page is drawn in beside its data; the last two are for text on a colour of data, which hardly changes."""


def ink_on(colour: Colour) -> Colour:
    """Black or white, whichever is legible on that colour."""
    return WHITE_INK if luminance(colour.light) < 0.19 else BLACK_INK


def luminance(colour: str) -> float:
    """How light a colour is, from 0 to 1, as the eye weighs it.

    >>> luminance("#ffffff"), luminance("#000000")
    (1.0, 0.0)
    """
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = [(part / 12.92) if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (red, green, blue)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


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

_LANGUAGES = ("python", "cython", "cpp")
_DARKEST, _LIGHTEST = -0.32, 0.12
"""How far the shades of one hue go towards black and towards white."""


def look_of(variant: str) -> Look:
    """How a variant is drawn; one that is not in the registry gets a look by the digest of its name."""
    return _looks().get(variant) or _stranger(variant)


def phase_colour(phase: str) -> Colour:
    return PHASES.get(phase, OTHER_PHASE)


def counter_look(counter: str) -> Look:
    """How a word counter is drawn: by its place in the registry; a program that stands beside them comes after."""
    known = [*registry.counters()]
    place = known.index(counter) if counter in known else len(known) + _number(counter) % (len(HUES) - len(known))
    # From the middle of the palette, so that a counter is not taken for the first variant of the series.
    return Look(HUES[(place + 3) % len(HUES)], SHAPES[place % len(SHAPES)])


def dark_of() -> dict[str, str]:
    """Every colour of a light page with the one that takes its place on a dark page."""
    page = (CARD, INK, FAINT, LINE, BAND, WRONG)
    colours = [*page, *PHASES.values(), OTHER_PHASE, *HUES, *(look.colour for look in _looks().values())]
    return {colour.light: colour.dark for colour in colours}


@functools.cache
def _looks() -> dict[str, Look]:
    looks: dict[str, Look] = {}
    for place, (_, cards) in enumerate(_groups(registry.variants().values()).items()):
        hue, taken = HUES[place % len(HUES)], set[Look]()
        parts = sorted({_part(card) for card in cards})
        for rank, card in enumerate(cards):
            shade = _shade(parts.index(_part(card)), len(parts))
            look = _first_free(hue, shade, place + rank, taken)
            taken.add(look)
            looks[card.name] = look
    return looks


def _groups(cards: Iterable[VariantCard]) -> dict[tuple[str, str], list[VariantCard]]:
    """The variants by family and language, outside trainers last."""
    groups: dict[tuple[str, str], list[VariantCard]] = {}
    for card in sorted(cards, key=_precedence):
        language = next((tag for tag in _LANGUAGES if tag in card.tags), "")
        groups.setdefault((card.family, language), []).append(card)
    return groups


def _precedence(card: VariantCard) -> tuple[bool, int, bool, bool, str]:
    """The series by its parts, then who is fit for a reference, then others of ours, then outside trainers."""
    external = "external" in card.tags
    outside = registry.OUTSIDE in card.tags or external
    return outside, _part(card), "reference" not in card.tags, external, "" if external else card.name


def _part(card: VariantCard) -> int:
    return 99 if card.part is None else card.part


def _shade(step: int, steps: int) -> float:
    return 0.0 if steps == 1 else _DARKEST + (_LIGHTEST - _DARKEST) * step / (steps - 1)


def _first_free(hue: Colour, shade: float, place: int, taken: set[Look]) -> Look:
    """The look at a place, or the next that nobody has: another shape, and after all of them a slightly other shade."""
    for attempt in range(len(SHAPES) * 8):
        further = 0.04 * (attempt // len(SHAPES))
        look = Look(_shaded(hue, shade - further), SHAPES[(place + attempt) % len(SHAPES)])
        if look not in taken:
            return look
    return look  # a hundred variants of one family and part look like others


def _shaded(hue: Colour, shade: float) -> Colour:
    return Colour(*(_mixed(colour, shade) for colour in hue))


def _mixed(colour: str, shade: float) -> str:
    """
    >>> _mixed("#804020", 0.0), _mixed("#804020", 0.5), _mixed("#804020", -0.5)
    ('#804020', '#c0a090', '#402010')
    """
    towards = 255 if shade > 0 else 0
    channels = [int(colour[start : start + 2], 16) for start in (1, 3, 5)]
    return "#" + "".join(f"{round(channel + (towards - channel) * abs(shade)):02x}" for channel in channels)


def _stranger(name: str) -> Look:
    number = _number(name)
    return Look(HUES[number % len(HUES)], SHAPES[number // len(HUES) % len(SHAPES)])


def _number(name: str) -> int:
    return int(hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:12], 16)
