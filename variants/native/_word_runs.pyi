from collections.abc import Iterable

def write_run(data: memoryview, offsets: memoryview, counts: memoryview, file: int) -> None: ...
def merge(
    tables: Iterable[tuple[memoryview, memoryview, memoryview]],
    data: int,
    offsets: int,
    counts: int,
    mapped: bool = False,
) -> None: ...
