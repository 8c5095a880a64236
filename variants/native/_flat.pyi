from array import array
from collections.abc import Sequence

from variants.contract import Merge, Meter
from variants.vetoes import Limits

class Pieces:
    def __init__(self, inherited: tuple[array[int], array[int]]) -> None: ...
    def begin(self, parts: int) -> None: ...
    def take(self, part: int, data: memoryview, offsets: memoryview, counts: memoryview) -> None: ...
    def met(self) -> list[bool]: ...

def are_whole(data: memoryview, offsets: memoryview, counts: memoryview) -> bool: ...
def train(
    columns: list[memoryview],
    num_merges: int,
    meter: Meter,
    *,
    tie_break: int,
    min_count: int,
    threads: int,
    ideas: int = 7,
    guess_scale: float = 1.0,
    wide_symbols: bool = False,
    part: int = 4194304,
    pieces: Pieces | None = None,
    dropping: bool = False,
    veto: Limits | None = None,
) -> Sequence[Merge]: ...
