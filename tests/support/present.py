"""Variants and word counters as their cards have them, and whether they can run on this machine.

The environment variable BPE_HARNESS_REQUIRE lists names and tags, separated by commas, that may not
be missing: whoever sets up a machine knows what must run there.
"""

import functools
import os
from collections.abc import Callable
from typing import Any

import pytest

from harness.common import registry
from harness.common.errors import Refusal
from variants.contract import Corpus, Unavailable, WordCounts

CARDS: dict[str, Any] = {**registry.counters(), **registry.variants()}
REQUESTED = [name for name in os.environ.get("BPE_HARNESS_REQUIRE", "").split(",") if name]
# refuses what does not exist
registry.select(name for name in REQUESTED if name not in registry.counters())


def is_required(name: str) -> bool:
    return not {name, *getattr(CARDS[name], "tags", ())}.isdisjoint(REQUESTED)


def function_of(name: str) -> Callable[..., Any]:
    """The card's function with its parameters, whether it can run or not."""
    return functools.partial(registry.resolve(CARDS[name].target), **CARDS[name].params)


@functools.cache
def missing(name: str) -> str | None:
    """Why a variant or counter cannot run on this machine, found by the smallest run there is; None
    if it can.
    """
    smallest: tuple[Any, ...] = (WordCounts.from_items([(b"ab", 1)]), 1)
    if name in registry.counters():
        smallest = (Corpus(__file__),)
    elif "from_file" in CARDS[name].tags:
        smallest = (Corpus(__file__), 100)
    try:
        function_of(name)(*smallest)
    except Unavailable as reason:
        return str(reason)
    except Refusal as refusal:
        if isinstance(refusal.__cause__, ImportError):  # a compiled module
            return str(refusal)
        raise
    return None


def present(name: str) -> Callable[..., Any]:
    """The card's function; skips the test if it cannot run here, fails it if it must."""
    if reason := missing(name):
        if is_required(name):
            pytest.fail(f"{name} must run here (BPE_HARNESS_REQUIRE) and does not: {reason}")
        pytest.skip(reason)
    return function_of(name)
