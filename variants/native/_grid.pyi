from collections.abc import Sequence
from typing import Any

from variants.contract import Merge, Meter, WordCounts

def points(capsule: Any) -> list[tuple[str, str, str, str, str]]: ...
def train(
    capsule: Any,
    point: int,
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter,
    *,
    tie_break: int,
    min_count: int,
    reuse_returned: bool,
    push_grown: bool,
    threads: int,
    schedule: int,
    chunk: int,
    objects: tuple[Any, ...] | None = None,
) -> Sequence[Merge]: ...
