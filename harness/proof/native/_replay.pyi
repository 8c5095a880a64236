from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from variants.vetoes import Limits

class Judgement(NamedTuple):
    right: int
    too_few: bool
    merged: int
    work: int
    met: list[bool]
    counts: list[int]
    sharing: list[int]
    highest: int
    best: list[tuple[int, int]]
    asked: list[int]

def judge(
    data: memoryview,
    offsets: memoryview,
    counts: memoryview,
    lefts: Any,
    rights: Any,
    *,
    num_merges: int,
    min_count: int = ...,
    tie_break: int | None = ...,
    on_progress: Callable[[int], object] | None = ...,
    stays: bytes = ...,
    veto: Limits | None = ...,
    all_pairs: bool = ...,
    asked: Iterable[tuple[int, int]] = ...,
    guess_scale: float = ...,
    wide_symbols: bool = ...,
    wide_positions: bool = ...,
) -> Judgement: ...
def follow(table: Any, entry: int, steps: int) -> int: ...
