"""Trainers that get at who judges them in their own process, or end it."""

from __future__ import annotations

import gc
import os
import sys
from types import FunctionType

from variants.contract import Merge, WordCounts


def replaces_the_judge(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Learns nothing, and makes every function that compares anything say nothing."""
    del word_counts, num_merges
    for found in gc.get_objects():
        if isinstance(found, FunctionType) and found.__name__.startswith("expect_"):
            found.__code__ = (lambda *_, **__: None).__code__
    for module in list(sys.modules.values()):
        if hasattr(module, "registry"):
            module.registry.definition = lambda *_, **__: lambda *_, **__: []
    return []


def ends_its_process(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    os._exit(7 if word_counts and num_merges else 0)
