from collections.abc import Iterable

def write_run(data: memoryview, offsets: memoryview, counts: memoryview, file: int) -> None: ...
def write_runs(data: memoryview, offsets: memoryview, counts: memoryview, partitions: int, file: int) -> list[int]: ...
def merge(
    tables: Iterable[tuple[memoryview, memoryview, memoryview]],
    data: int,
    offsets: int,
    counts: int,
    mapped: bool = False,
    hashed: bool = False,
) -> None: ...
