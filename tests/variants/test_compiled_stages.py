"""What all compiled trainers share: columns they refuse, how they stop, what they raise, threads,
memory, loading, and the work of the Cython stages.
"""

import functools
import importlib
import itertools
import random
import re
import shutil
import sys
from array import array
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from growing_words import one_word
from rows import Row, each_row
from workbench import CHECKOUT, corpus_of, first_fast, ran, work_of

from harness.common import registry
from harness.proof.cases import random_words
from variants import cpp, cython_stages, flat, flat_file, heap, naive, vetoes
from variants.contract import LARGEST_COUNT, Merge, Meter, TieBreak, Unavailable, WordCounts

pytest.importorskip("variants.native._flat", reason="the compiled part is not built")

Train = Callable[..., Sequence[Merge]]
COMPILED: list[Train] = [flat.train, cpp.train, cython_stages.typed]
each_compiled = pytest.mark.parametrize("train", COMPILED, ids=lambda train: train.__module__)


@each_compiled
@each_row(__file__, "columns.toml")
def test_invalid_columns_are_refused(train: Train, row: Row) -> None:
    offsets = memoryview(array("q", row["offsets"]))
    counts = memoryview(array("Q", row["counts"]))
    given = Mock(WordCounts, data=memoryview(b"abc"), offsets=offsets, counts=counts)
    with pytest.raises(ValueError, match=re.escape(row["refused"])):
        train(given, 5)


@each_compiled
def test_any_number_of_merges_and_of_pairs(train: Train) -> None:
    words = WordCounts.from_items([(b"abc", 2), (b"bcd", 1)])
    # the same, and words without pairs or weight
    given = WordCounts.from_columns([b"", b"a", b"xy", b"abc", b"bcd"], [5, LARGEST_COUNT, 0, 2, 1])
    numbers = (-1, 0, 1, 2, 3, 2**40, 2**70)
    for num_merges, min_count in itertools.product(numbers, numbers):
        expected = naive.train(words, num_merges, min_count=min_count)
        assert train(given, num_merges, min_count=min_count) == expected


class Stopping(Meter):
    """Answers, or raises, at the second call of progress, the first while C++ works."""

    def __init__(self, *error: type[BaseException]) -> None:
        super().__init__()
        self.answers = Mock(side_effect=[True, *error, False])

    def progress(self, done: int) -> bool:
        assert done == len(self.followed)
        return bool(self.answers())


@each_row(__file__, "stopping.toml")
def test_meter_stops_training_and_its_exceptions_come_through(row: Row) -> None:
    params = row.get("params", {})
    if "veto" in row:
        params = {"veto": vetoes.named(row["veto"])}
    train = functools.partial(registry.resolve(row["train"]), **params)
    words, meter = one_word(row["length"]), Stopping()
    try:
        merges = train(words, 10**6, meter)
    except Unavailable as reason:
        pytest.skip(str(reason))

    assert meter.answers.call_count == 2
    assert len(merges) < row["length"]
    assert merges == train(words, len(merges))
    with pytest.raises(KeyboardInterrupt):
        train(words, 10**6, Stopping(KeyboardInterrupt))
    never = Mock(Meter, progress=lambda done: done > 0)
    assert train(one_word(10), 5, never) == []


@each_compiled
def test_several_threads_train_at_once(train: Train) -> None:
    tables = [one_word(2_000, seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        learned = list(pool.map(lambda table: train(table, 100), tables))
    assert learned == [train(table, 100) for table in tables]


OUT_OF_MEMORY = """
import importlib, resource, sys
from variants.contract import WordCounts
train = getattr(importlib.import_module(sys.argv[1]), sys.argv[2])
words = WordCounts.from_items([(bytes(range(256)) * 40_000, 1)])
train(WordCounts.from_items([(b"ab", 1)]), 1)
held = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_DATA, (held + 30_000_000, held + 30_000_000))
try:
    train(words, 1000)
except MemoryError:
    print("MemoryError")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the data segment are Linux's")
@each_compiled
def test_exhausted_memory_is_an_error_and_not_a_crash(train: Train) -> None:
    ended = ran(CHECKOUT, "-c", OUT_OF_MEMORY, train.__module__, train.__name__)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("MemoryError\n", "", 0)


@pytest.mark.parametrize("train", [*COMPILED, cython_stages.loop, flat_file.train])
def test_modules_are_loaded_before_the_clock(
    train: Train, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given: Any = WordCounts.from_items([(b"low", 2), (b"lower", 1)])
    if train is flat_file.train:
        given = corpus_of(tmp_path, "low lower lowest")
    load = Mock(wraps=importlib.import_module)
    monkeypatch.setattr(importlib, "import_module", load)

    sys.modules[train.__module__].before_the_clock()
    loaded = {each.args[0] for each in load.call_args_list}
    load.reset_mock()
    assert train(given, 2) == [(b"o", b"w"), (b"l", b"ow")]
    load.assert_called()
    assert {each.args[0] for each in load.call_args_list} <= loaded


# The smallest module of each language, in a scratch folder of its own.
BUILD_TWO = """
import runpy, setuptools, sys
real, small = setuptools.setup, ("._updates", "._word_runs")
def setup(ext_modules, **more):
    real(ext_modules=[each for each in ext_modules if each.name.endswith(small)], **more)
setuptools.setup = setup
sys.argv[1:] = ["-q", "build_ext", "--inplace"]
runpy.run_path("setup.py")
"""


@pytest.mark.slow
def test_builds_in_different_folders_are_the_same(tmp_path: Path) -> None:
    """So that the gate knows a variant that a change left alone, and leaves it out."""
    not_copied = shutil.ignore_patterns(".*", "build", "results", "*.so")
    built = []
    for name in ("one", "another_folder"):
        folder = shutil.copytree(CHECKOUT, tmp_path / name, ignore=not_copied)
        ended = ran(folder, "-c", BUILD_TWO)
        assert ended.returncode == 0, ended.stderr
        built.append({module.name: module.read_bytes() for module in folder.rglob("*.so")})

    assert len(built[0]) == 2
    assert built[0] == built[1]


WORKS = {
    "flat": """
from variants.flat import train
work = lambda: train(words, 100_000)
""",
    "cpp": """
from variants.cpp import train
work = lambda: train(words, 100_000)
""",
    "typed": """
from variants.cython_stages import typed
work = lambda: typed(words, 100_000)
""",
    "replay": """
from harness.proof.compiled_replay import Replay
work = lambda: Replay(words, claims, 100_000).judged(GREATEST_BYTES)
""",
    "flat_file": r"""
import random
from variants import flat_file
from variants.contract import Corpus
from variants.counting import native
native.PART_BYTES, native.PARTS, native.SMALLEST_RANGE = 1 << 14, 1 << 10, 1000
dice = random.Random(0)
lines = ("".join(dice.choices("ab: c", k=60)) + "\n" for _ in range(20_000))
open("text", "w").writelines(lines)
corpus = Corpus("text", (), "[^\n]*\n|[^\n]+")
flat_file.before_the_clock()
def work():
    for _ in range(999): flat_file.train(corpus, 1000, threads=2, inherited=[(b"a", b"b")])
""",
}
ENDS_BEFORE_ITS_THREADS = """
import random, threading, time
from variants import flat
from variants.contract import GREATEST_BYTES, WordCounts
class Slow:
    def __del__(self, sleep=time.sleep): sleep(1.0)
kept = Slow()
chance = random.Random(1)
words = WordCounts.from_items((bytes(chance.choices(b"abcdefghijklmnop", k=10)), 1) for _ in range(200_000))
claims = flat.train(words, 100_000)
for _ in range(3): threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("work", WORKS)
def test_daemon_threads_let_the_interpreter_end(work: str, tmp_path: Path) -> None:
    """They would ask for the GIL of an interpreter that is ending, whose end is held up for
    that.
    """
    for _ in range(3):
        ended = ran(tmp_path, "-c", WORKS[work] + ENDS_BEFORE_ITS_THREADS)
        assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("tie_break", first_fast(TieBreak))
@pytest.mark.parametrize("stage", ["fine_grained", "no_copy", "opt", "loop", "typed"])
def test_work_of_a_cython_stage_is_that_of_heap(stage: str, tie_break: TieBreak) -> None:
    """Words over few symbols, NUL among them, so that pairs repeat, adjoin and tie."""
    dice = random.Random(len(stage))
    table = random_words(dice, b"\x00abc\xff", 150, 30)
    words = WordCounts.from_items(table.items())
    push = "all" if stage in ("fine_grained", "no_copy") else "grown"

    expected = work_of(heap.train, words, 400, tie_break=tie_break, push=push)
    work = work_of(getattr(cython_stages, stage), words, 400, tie_break=tie_break)
    if stage == "typed":  # it also looks at words that no longer hold the pair
        assert work.pop("positions_visited") >= expected.pop("positions_visited")
    assert work == expected
