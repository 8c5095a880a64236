from variants.contract import Merge, Meter

def train(
    columns: list[memoryview],
    num_merges: int,
    meter: Meter,
    *,
    tie_break: int,
    min_count: int,
    threads: int,
    batch: int,
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
    part: int = 1048576,
) -> list[Merge]: ...
