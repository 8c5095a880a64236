from array import array
from collections.abc import Sequence
from typing import Any

from variants.contract import Merge, Meter

class Pieces:
    def __init__(self, inherited: tuple[array[int], array[int]]) -> None: ...
    def begin(self, parts: int) -> None: ...
    def take(self, part: int, data: memoryview, offsets: memoryview, counts: memoryview) -> None: ...

def met(columns: list[memoryview], meter: Meter, lefts: array[int], rights: array[int]) -> list[bool]: ...
def train(
    columns: list[memoryview] | Pieces,
    num_merges: int,
    meter: Meter,
    *,
    tie_break: int,
    min_count: int,
    threads: int,
    layout: bool,
    occurrence_lists: bool,
    accumulators: bool,
    pruning: bool,
    bucket_queue: bool,
    branch_free: bool,
    word_order: bool,
    guess_scale: float = 1.0,
    wide_symbols: bool = False,
    wide_positions: bool = False,
    part: int = 4194304,
    inherited: tuple[array[int], array[int]] | None = None,
    dropping: bool = False,
    veto: tuple[int, Any] = (0, 0),
) -> Sequence[Merge]: ...
