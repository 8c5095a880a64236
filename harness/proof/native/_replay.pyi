from collections.abc import Callable
from typing import Any

from variants.vetoes import Limits

def judge(
    data: memoryview,
    offsets: memoryview,
    counts: memoryview,
    lefts: Any,
    rights: Any,
    *,
    num_merges: int,
    min_count: int,
    tie_break: int,
    on_progress: Callable[[int], object],
    guess_scale: float = ...,
    wide_symbols: bool = ...,
    wide_positions: bool = ...,
    stays: bytes = ...,
    veto: Limits | None = ...,
) -> tuple[int, bool, int, int, int, list[bool]]: ...
def follow(table: Any, entry: int, steps: int) -> int: ...
