"""The colours of a page, light or dark, and how a light SVG turns dark for readers who prefer that."""

from __future__ import annotations

from typing import NamedTuple

from harness.colours import Colour, dark_of


class Theme(NamedTuple):
    """What a page is drawn in; `dark` says which half of every colour."""

    dark: bool

    def of(self, colour: Colour) -> str:
        return colour.dark if self.dark else colour.light

    @property
    def card(self) -> str:
        return self.of(CARD)

    @property
    def ink(self) -> str:
        return self.of(INK)

    @property
    def faint(self) -> str:
        return self.of(FAINT)

    @property
    def line(self) -> str:
        return self.of(LINE)

    @property
    def wrong(self) -> str:
        return self.of(WRONG)

    def ink_on(self, colour: str) -> str:
        """Black or white, whichever is legible on that colour."""
        return WHITE_INK.light if luminance(colour) < 0.19 else BLACK_INK.light


CARD = Colour("#ffffff", "#0d1117")
INK = Colour("#1f2328", "#e6edf3")
FAINT = Colour("#59636e", "#9198a1")
LINE = Colour("#d8dee4", "#2f353d")
BAND = Colour("#eef1f4", "#1c2128")
WRONG = Colour("#c1121f", "#ff6b6b")
BLACK_INK = Colour("#111418", "#111419")
WHITE_INK = Colour("#fefefe", "#fefeff")

LIGHT, DARK = Theme(dark=False), Theme(dark=True)


def luminance(colour: str) -> float:
    """How light a colour is, from 0 to 1, as the eye weighs it.

    >>> luminance("#ffffff"), luminance("#000000")
    (1.0, 0.0)
    """
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = [(part / 12.92) if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (red, green, blue)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def following(svg: str) -> str:
    """A light SVG with a style sheet that takes the dark half of every colour where the reader prefers dark pages.

    What is drawn stays light for programs that know no style sheets. Text in a bar is legible on the bar's dark colour
    as well, since the two halves of a colour of data are close.
    """
    pairs = {**dark_of(), **{pair.light: pair.dark for pair in (CARD, INK, FAINT, LINE, BAND, WRONG)}}
    used = {light: dark for light, dark in pairs.items() if light in svg and light != dark}
    rules = [
        f'[style*="{attribute}: {light}"]{{{attribute}:{dark} !important}}'
        for light, dark in sorted(used.items())
        for attribute in ("fill", "stroke")
        if f"{attribute}: {light}" in svg
    ]
    sheet = "\n".join(["@media (prefers-color-scheme: dark) {", *rules, "}"])
    return svg.replace("</style>", f"\n{sheet}\n</style>", 1)
