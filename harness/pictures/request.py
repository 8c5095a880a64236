"""What is asked of a picture besides its records."""

from __future__ import annotations

from dataclasses import dataclass

from harness.pictures.theme import LIGHT, Theme


@dataclass(frozen=True)
class Request:
    """`seconds` is one of values.QUANTITIES; `relative_to` the variant that ratios are of."""

    theme: Theme = LIGHT
    title: str | None = None
    seconds: str = "training"
    relative_to: str | None = None
    log: bool = False
