from collections.abc import Callable, Sequence

PATHS: dict[str, int]
UNTIL_END: int

Columns = tuple[memoryview, memoryview, memoryview]

def supported_paths() -> list[str]: ...
def first_cut(
    window: bytes, start: int, pattern: bytes, specials: Sequence[bytes], tables: tuple[bytes, bytes]
) -> int: ...
def scan(
    file: int,
    bounds: Sequence[int],
    pattern: bytes,
    specials: Sequence[bytes],
    tables: tuple[bytes, bytes],
    path: str,
    buffer: int,
    progress: Callable[[int], bool],
    take: Callable[[int, memoryview, memoryview, memoryview], object] | None = None,
    table_bytes: int = 0,
    takes_all: bool = False,
) -> tuple[Columns | None, int, int, tuple[float, float], int, bool]: ...
