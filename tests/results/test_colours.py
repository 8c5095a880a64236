"""A variant looks the same everywhere, no two look alike, and every colour is legible on its page."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from harness.common import registry
from harness.common.registry import VariantCard
from harness.results.colours import HUES, PHASES, SHAPES, counter_look, dark_of, look_of

CHECKOUT = Path(__file__).resolve().parents[2]
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


def linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(light: np.ndarray) -> np.ndarray:
    """CIE L*a*b*, in which a distance of 2 is just seen and one of 10 is seen at a glance."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(np.clip(to_xyz @ light / np.array([0.9505, 1.0, 1.089]), 1e-6, None))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(colour: str, page: str) -> float:
    """As the accessibility guidelines of the web define it."""
    first, second = sorted(float(np.array([0.2126, 0.7152, 0.0722]) @ linear(each)) for each in (colour, page))
    return (second + 0.05) / (first + 0.05)


@pytest.fixture
def other_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, VariantCard]]:
    """A registry that a test may change, with nothing remembered from another."""
    from harness.results import colours

    cards = dict(registry.variants())
    monkeypatch.setattr(registry, "variants", lambda: cards)
    colours._looks.cache_clear()
    yield cards
    colours._looks.cache_clear()


def test_no_two_variants_look_alike() -> None:
    looks = [look_of(name) for name in registry.variants()]
    assert len(set(looks)) == len(looks)
    assert {look.shape for look in looks} <= set(SHAPES)


def test_a_look_is_the_same_in_every_process() -> None:
    line = "from harness.results.colours import look_of; print([look_of(name) for name in ('heap', 'nobody knows')])"
    seen = {
        subprocess.run(
            [sys.executable, "-c", line],
            cwd=CHECKOUT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "12"
    }
    assert seen == {f"{[look_of(name) for name in ('heap', 'nobody knows')]}\n"}


def test_an_outside_trainer_changes_nobodys_look(other_registry: dict[str, VariantCard]) -> None:
    from harness.results import colours

    before = {name: look_of(name) for name in other_registry}
    for name in ("aardvark", "zebra"):
        other_registry[name] = VariantCard(name, f"{name}.trainer:train", tags=("external",))
    colours._looks.cache_clear()
    ours = [name for name in before if "peer" not in other_registry[name].tags]
    assert [name for name in ours if look_of(name) != before[name]] == []
    assert look_of("aardvark") not in before.values()


def test_sixty_more_variants_still_differ(other_registry: dict[str, VariantCard]) -> None:
    from harness.results import colours

    for number in range(60):
        other_registry[f"x{number}"] = VariantCard(f"x{number}", "x:train", family="crowd")
    colours._looks.cache_clear()
    assert len({look_of(f"x{number}") for number in range(60)}) == 60


@pytest.mark.parametrize("vision", COLOUR_VISIONS)
@pytest.mark.parametrize("page", ["light", "dark"])
def test_hues_and_phases_are_told_apart_with_any_colour_vision(vision: str, page: str) -> None:
    for palette in (HUES, tuple(PHASES.values())):
        seen = [lab(COLOUR_VISIONS[vision] @ linear(getattr(colour, page))) for colour in palette]
        nearest = min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(seen, 2))
        assert nearest >= 12, f"two colours are only {nearest:.1f} apart"


@pytest.mark.parametrize(("page", "card"), [("light", "#ffffff"), ("dark", "#0d1117")])
def test_what_is_drawn_as_a_point_or_a_line_stands_out_from_the_page(page: str, card: str) -> None:
    looks = [look_of(name) for name in registry.variants()] + [counter_look(name) for name in registry.counters()]
    faint = [look for look in looks if contrast(getattr(look.colour, page), card) < 2.5]
    assert faint == []


def test_a_light_colour_has_one_dark_colour() -> None:
    pairs = [*PHASES.values(), *HUES, *(look_of(name).colour for name in registry.variants())]
    assert {colour.light: colour.dark for colour in pairs}.items() <= dark_of().items()
    for colour in pairs:
        assert dark_of()[colour.light] == colour.dark
