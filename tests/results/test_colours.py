"""A variant looks the same everywhere, no two look alike, and every colour is legible on its page."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from harness.common import registry
from harness.results.chart import CARD, HUES, OTHER_PHASE, PHASES, look_of

# Machado, Oliveira and Fernandes 2009: what someone without one of the three kinds of cones sees, in linear light.
COLOUR_VISIONS = {
    "usual": np.eye(3),
    "no red cones": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "no green cones": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
    ),
    "no blue cones": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]]
    ),
}


# What the filter of a dark page makes of a colour, after inverting it: the hue turned by half a circle.
HUE_ROTATION = np.array([[-0.574, 1.43, 0.144], [0.426, 0.43, 0.144], [0.426, 1.43, -0.856]])


def linear(colour: str, page: str = "light") -> np.ndarray:
    channels = np.array([int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)])
    if page == "dark":
        channels = np.clip(HUE_ROTATION @ (0.93 - 0.86 * channels), 0, 1)
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(light: np.ndarray) -> np.ndarray:
    """CIE L*a*b*, in which a distance of 2 is just seen and one of 10 is seen at a glance."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(np.clip(to_xyz @ light / np.array([0.9505, 1.0, 1.089]), 1e-6, None))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(colour: str, page: str) -> float:
    """With the page, as the accessibility guidelines of the web define it."""
    weights = np.array([0.2126, 0.7152, 0.0722])
    first, second = sorted(float(weights @ linear(each, page)) for each in (colour, CARD))
    return (second + 0.05) / (first + 0.05)


def test_no_two_variants_look_alike() -> None:
    names = list(registry.variants())
    assert len({look_of(name) for name in names}) == len(names)
    assert look_of("nobody knows") == ("#7018ac", "d")  # by its digest, so in every process


@pytest.mark.parametrize("vision", COLOUR_VISIONS)
@pytest.mark.parametrize("page", ["light", "dark"])
def test_hues_and_phases_differ_with_any_colour_vision(vision: str, page: str) -> None:
    for palette in (tuple(PHASES.values()), *([HUES] if page == "light" else [])):  # hues have markers as well
        seen = [lab(COLOUR_VISIONS[vision] @ linear(colour, page)) for colour in palette]
        nearest = min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(seen, 2))
        assert nearest >= 12, f"two colours are only {nearest:.1f} apart"


@pytest.mark.parametrize("page", ["light", "dark"])
def test_points_and_lines_stand_out_from_the_page(page: str) -> None:
    names = [*registry.variants(), *registry.counters()]
    colours = [*(look_of(name).colour for name in names), OTHER_PHASE]
    assert [colour for colour in colours if contrast(colour, page) < 2.5] == []
