"""What all compiled trainers share: which columns they refuse, how they stop, what they raise, threads and memory."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from array import array
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from meters import Recorder, ends_in_memory_error, interrupt

from variants import cpp, cython_fine_grained, cython_loop, cython_no_copy, cython_opt, cython_typed, flat, heap, naive
from variants.contract import LARGEST_COUNT, Merge, Meter, Unavailable, WordCounts

pytest.importorskip("variants.native._flat", reason="the compiled part is not built")

Train = Callable[..., Sequence[Merge]]
COMPILED: list[Train] = [flat.train, cpp.train, cython_typed.train]
each_compiled = pytest.mark.parametrize("train", COMPILED, ids=lambda train: train.__module__)


def one_word(length: int, seed: int = 3) -> WordCounts:
    return WordCounts.from_items([(bytes(random.Random(seed).choices(b"ACGT", k=length)), 1)])


@each_compiled
@pytest.mark.parametrize(
    ("offsets", "counts", "reason"),
    [
        ([0, 2, 1, 3], [1, 1, 1], "offsets do not rise"),
        ([0, -1, 3], [1, 1], "offsets do not rise"),
        ([-1, 1, 2], [1, 1], "offsets do not rise"),
        ([0, 10**9], [1], "offsets do not rise"),
        ([5, 3], [1], "offsets do not rise"),
        ([], [], "0 counts need 1 offsets, not 0"),
        ([0, 3], [2**63 - 1], r"more than 2\*\*63 - 1 adjacent positions by weight; divide the counts"),
        ([0, 3], [2**63], r"more than 2\*\*63 - 1 adjacent positions"),
        ([0, 1, 3], [1, 2**63], r"more than 2\*\*63 - 1 adjacent positions"),
        ([0, 1, 3], [1, 2**64 - 1], r"more than 2\*\*63 - 1 adjacent positions"),
    ],
)
def test_invalid_columns_are_refused(train: Train, offsets: list[int], counts: list[int], reason: str) -> None:
    given = WordCounts.from_items([(b"ab", 1)])
    given.data, given.offsets = memoryview(b"abc"), memoryview(array("q", offsets))
    given.counts = memoryview(array("Q", counts))
    with pytest.raises(ValueError, match=reason):
        train(given, 5)


@each_compiled
@pytest.mark.parametrize("num_merges", [-1, 0, 1, 2, 3, 2**40, 2**70])
@pytest.mark.parametrize("min_count", [-1, 0, 1, 2, 3, 2**70])
def test_bounds_of_any_size(train: Train, num_merges: int, min_count: int) -> None:
    words = WordCounts.from_items([(b"abc", 2), (b"bcd", 1)])
    expected = naive.train(words, num_merges, min_count=min_count)
    assert train(words, num_merges, min_count=min_count) == expected


@each_compiled
def test_words_without_weight_or_pairs_are_passed_over(train: Train) -> None:
    table = WordCounts.from_columns([b"", b"a", b"xy", b"ab"], [5, LARGEST_COUNT, 0, 1])
    assert train(table, 9) == [(b"a", b"b")]


@each_compiled
@pytest.mark.parametrize("weight", [2**32 + 1, 2**62, LARGEST_COUNT])
def test_weights_up_to_the_largest(train: Train, weight: int) -> None:
    words = WordCounts.from_items([(b"ab", weight)] + ([(b"bab", 1), (b"ba", 5)] if weight < LARGEST_COUNT else []))
    assert train(words, 10) == naive.train(words, 10)


@each_compiled
def test_a_meter_stops_training_with_what_it_has(train: Train) -> None:
    words = one_word(1_000_000 if train is flat.train else 200_000)
    meter = Recorder(lambda: False)
    merges = train(words, 10**6, meter)
    assert len(meter.heard) == 2
    assert len(merges) < 200_000
    assert merges == train(words, len(merges))
    assert all(done == followed for done, followed in meter.heard)


@each_compiled
def test_exceptions_of_the_meter_come_through(train: Train) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(one_word(1_000_000 if train is flat.train else 200_000), 10**6, Recorder(interrupt))


@each_compiled
def test_a_meter_stops_training_before_it_starts(train: Train) -> None:
    class Never(Meter):
        def progress(self, done: int) -> bool:
            return done > 0

    assert train(one_word(10), 5, Never()) == []


@each_compiled
def test_several_threads_train_at_once(train: Train) -> None:
    tables = [one_word(2_000, seed) for seed in range(4)]
    learned: dict[int, Sequence[Merge]] = {}

    def learn(number: int) -> None:
        learned[number] = train(tables[number], 100)

    threads = [threading.Thread(target=learn, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [learned[number] for number in range(4)] == [heap.train(table, 100) for table in tables]


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the data segment are Linux's")
@each_compiled
def test_memory_that_runs_out_is_an_error_and_not_a_crash(train: Train) -> None:
    ends_in_memory_error(train.__module__)


@pytest.mark.parametrize(
    ("stage", "module"),
    [
        (flat, "_flat"),
        (cython_fine_grained, "_typed_updates"),
        (cython_no_copy, "_uncopied_updates"),
        (cython_opt, "_grown_updates"),
        (cython_loop, "_loop"),
        (cython_typed, "_typed"),
        (cpp, "_grid"),
        (cpp, "_grid_std"),
    ],
)
def test_without_the_compiled_part_it_is_not_available(
    stage: Any, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, f"variants.native.{module}", None)
    monkeypatch.delattr(f"variants.native.{module}", raising=False)
    with pytest.raises(Unavailable, match=r"pip install -e \."):
        stage.train(one_word(10), 5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "call"),
    [
        *((f"from {train.__module__} import train", "train(words, 100_000)") for train in COMPILED),
        ("from harness.proof.prove import judge", "judge(words, claims, 100_000, tie_break=GREATEST_BYTES)"),
    ],
)
def test_a_daemon_thread_lets_the_interpreter_end(work: str, call: str) -> None:
    """It would ask for the GIL of an interpreter that is ending, whose end is held up for that."""
    program = f"""
import random, threading, time
from variants import flat
from variants.contract import GREATEST_BYTES, WordCounts
{work}
class Slow:
    def __del__(self, sleep=time.sleep): sleep(1.0)
kept = Slow()
chance = random.Random(1)
words = WordCounts.from_items((bytes(chance.choices(b"abcdefghijklmnop", k=10)), 1) for _ in range(200_000))
claims = flat.train(words, 100_000)
threading.Thread(target=lambda: {call}, daemon=True).start()
time.sleep(0.05)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
