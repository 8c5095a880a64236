"""The C++ grid: one loop whose hash map, hash, index, maximum and update are chosen, each from the
series' choices.

Parts 5 to 9 and 11 of the series, whose programs were a file for each combination. Against heap and
its forerunners nothing changes but the language and the containers, and those one at a time:
variants/native/grid.hpp lists the choices. Presets of them in conf/family/cpp.yaml bear the names
of the series' programs behind `cpp_`.

`reuse_returned` decides by what `-=` returns instead of looking a pair up again (part 7); `push`
says which pairs go to the heap, `all` of a rewritten window or only those `grown` (part 9's opt);
`threads`, `schedule` and `chunk` are the OpenMP scans'. `words` says how the words get to C++: by
`columns`, which is next to nothing, or as the `objects` that part 11 passed, a list of integers for
each word, or `indexed`, with the pairs counted and indexed in Python as well (v9). The phase
`convert` is what that costs.

A point that was not compiled, or whose library is absent, never runs as another.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from variants.contract import (
    GREATEST_BYTES,
    LARGEST_COUNT,
    NULL_METER,
    Merge,
    Meter,
    TieBreak,
    Unavailable,
    WordCounts,
)
from variants.incremental import index_words
from variants.native import built, loading, why_missing
from variants.words import count_pairs

OPENMP = ("openmp_lock", "openmp_critical", "openmp_slots", "openmp_region")
SCHEDULES = ("static", "dynamic", "guided", "auto")
PUSHES, PASSED_AS = ("all", "grown"), ("columns", "objects", "indexed")
# By whole names, so that the digest of what a variant runs can follow them.
MODULES = {
    "std": "variants.native._grid_std",
    "dense": "variants.native._grid_dense",
    "boost": "variants.native._grid_boost",
    "absl": "variants.native._grid_absl",
    "openmp": "variants.native._grid_openmp",
}
CHOICES = {
    "hash_map": ("std", "dense", "boost", "absl"),
    "hash": ("weak", "boost", "strong", "absl"),
    "index": ("node_set", "dense_set", "inline_set"),
    "maximum": ("iterator_scan", "bucket_scan", "copied_scan", "heap", *OPENMP),
    "update": ("coarse", "fine_grained"),
}

before_the_clock = loading("_grid", optional=MODULES.values())


def train(
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = GREATEST_BYTES,
    min_count: int = 1,
    threads: int = 1,
    hash_map: str = "std",
    hash: str = "boost",
    index: str = "node_set",
    maximum: str = "iterator_scan",
    update: str = "coarse",
    reuse_returned: bool = False,
    push: str = "all",
    schedule: str = "dynamic",
    chunk: int = 1000,
    words: str = "columns",
) -> Sequence[Merge]:
    """Learn merges with one point of the grid, compiled; the GIL is free meanwhile.

    Raises Unavailable where its library was absent when this was built, ValueError for what does
    not exist or was not compiled, with what was, and for a table that cannot be trained on.
    """
    named = (hash_map, hash, index, maximum, update)
    choices = (*CHOICES.items(), ("push", PUSHES), ("schedule", SCHEDULES), ("words", PASSED_AS))

    for (name, allowed), value in zip(choices, (*named, push, schedule, words)):
        if value not in allowed:
            raise ValueError(f"{name} is {value!r}; it is one of {', '.join(allowed)}")

    for name, number in (("threads", threads), ("chunk", chunk)):
        if not 1 <= number < 2**31:
            raise ValueError(f"{name} is {number}; it is 1 or more, and below 2**31")

    grid, capsule, point = _point(named)
    return grid.train(  # type: ignore[no-any-return]
        capsule,
        point,
        word_counts,
        min(max(num_merges, 0), LARGEST_COUNT),
        meter,
        tie_break=list(TieBreak).index(tie_break),
        min_count=min(max(min_count, 1), LARGEST_COUNT),
        reuse_returned=reuse_returned,
        push_grown=push == "grown",
        threads=threads,
        schedule=SCHEDULES.index(schedule),
        chunk=chunk,
        objects=None if words == "columns" else _objects(word_counts, words == "indexed", meter),
    )


def _point(names: tuple[str, ...]) -> tuple[Any, Any, int]:
    """The extension module, the module that holds a point, and its place there."""
    grid, library = built("_grid"), "openmp" if names[3] in OPENMP else names[0]
    try:
        capsule = importlib.import_module(MODULES[library]).members
    except ImportError as error:
        raise Unavailable(why_missing(f"_grid_{library}")) from error
    points = grid.points(capsule)
    if names not in points:
        nearest = "/".join(max(points, key=lambda point: sum(map(str.__eq__, point, names))))
        # tables show all of it
        how = f"A line in variants/native/grid_{library}.cpp and a build add it"
        raise ValueError(f"{'/'.join(names)} is not compiled; the nearest is {nearest}. {how}")
    return grid, capsule, points.index(names)


def _objects(word_counts: WordCounts, indexed: bool, meter: Meter) -> tuple[Any, ...]:
    """The words as Python holds them, with their pairs if `indexed`: work that belongs to no
    conversion.
    """
    held = [(list(word), weight) for word, weight in word_counts.items() if word and weight]
    lists, weights = [word for word, _ in held], [weight for _, weight in held]
    pairs = (count_pairs(lists, weights, NULL_METER), index_words(lists)) if indexed else ()
    meter.lap("init")
    return lists, weights, *pairs
