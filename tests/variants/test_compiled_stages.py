"""What all compiled trainers share: columns they refuse, how they stop, what they raise, threads,
memory, loading.
"""

from __future__ import annotations

import functools
import importlib
import os
import random
import shutil
import subprocess
import sys
from array import array
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from workbench import first_fast

from variants import cpp, cython_stages, flat, flat_file, heap, naive, vetoes
from variants.contract import LARGEST_COUNT, Corpus, Merge, Meter, TieBreak, Unavailable, WordCounts
from variants.counting import native

pytest.importorskip("variants.native._flat", reason="the compiled part is not built")

REPOSITORY = Path(__file__).resolve().parents[2]
Train = Callable[..., Sequence[Merge]]
COMPILED: list[Train] = [flat.train, cpp.train, cython_stages.typed]
STAGES = ("fine_grained", "no_copy", "opt", "loop", "typed")
CYTHON: dict[str, Train] = {name: getattr(cython_stages, name) for name in STAGES}
each_compiled = pytest.mark.parametrize("train", COMPILED, ids=lambda train: train.__module__)


class Recorder(Meter):
    """Notes every call of progress; at the second one, the first while C++ works, it does
    something.
    """

    def __init__(self, at_second: Any) -> None:
        super().__init__()
        self.at_second = at_second
        self.heard: list[tuple[int, int]] = []

    def progress(self, done: int) -> bool:
        self.heard.append((done, len(self.followed)))
        return bool(self.at_second()) if len(self.heard) == 2 else True


def interrupt() -> bool:
    raise KeyboardInterrupt


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


def one_word(length: int, seed: int = 3) -> WordCounts:
    return WordCounts.from_items([(bytes(random.Random(seed).choices(b"ACGT", k=length)), 1)])


@each_compiled
@pytest.mark.parametrize(
    ("offsets", "counts", "reason"),
    [
        ([0, 2, 1, 3], [1, 1, 1], "offsets do not rise"),
        ([-1, 1, 2], [1, 1], "offsets do not rise"),
        ([0, 10**9], [1], "offsets do not rise"),
        ([5, 3], [1], "offsets do not rise"),
        ([], [], "0 counts need 1 offsets, not 0"),
        (
            [0, 3],
            [2**63 - 1],
            r"more than 2\*\*63 - 1 adjacent positions by weight; divide the counts",
        ),
        ([0, 1, 3], [1, 2**64 - 1], r"more than 2\*\*63 - 1 adjacent positions"),
    ],
)
def test_invalid_columns_are_refused(
    train: Train, offsets: list[int], counts: list[int], reason: str
) -> None:
    given = WordCounts.from_items([(b"ab", 1)])
    given.data, given.offsets = memoryview(b"abc"), memoryview(array("q", offsets))
    given.counts = memoryview(array("Q", counts))
    with pytest.raises(ValueError, match=reason):
        train(given, 5)


@each_compiled
def test_bounds_of_any_size(train: Train) -> None:
    words = WordCounts.from_items([(b"abc", 2), (b"bcd", 1)])
    for num_merges in (-1, 0, 1, 2, 3, 2**40, 2**70):
        for min_count in (-1, 0, 1, 2, 3, 2**70):
            expected = naive.train(words, num_merges, min_count=min_count)
            assert train(words, num_merges, min_count=min_count) == expected
    without_weight_or_pairs = WordCounts.from_columns(
        [b"", b"a", b"xy", b"ab"], [5, LARGEST_COUNT, 0, 1]
    )
    assert train(without_weight_or_pairs, 9) == [(b"a", b"b")]
    for weight in (2**32 + 1, 2**62, LARGEST_COUNT):
        others = [(b"bab", 1), (b"ba", 5)] if weight < LARGEST_COUNT else []
        words = WordCounts.from_items([(b"ab", weight), *others])
        assert train(words, 10) == naive.train(words, 10)


@pytest.mark.parametrize(
    ("train", "length"),
    [
        (flat.train, 2_000_000),
        (functools.partial(flat.train, veto=vetoes.superbpe), 700_000),
        (cython_stages.typed, 150_000),
        *((functools.partial(cpp.train, words=words), 150_000) for words in ("columns", "objects")),
        (functools.partial(cpp.train, maximum="openmp_region", threads=2), 100_000),
    ],
)
def test_meter_stops_training_and_its_exceptions_come_through(train: Train, length: int) -> None:
    words, meter = one_word(length), Recorder(lambda: False)
    try:
        merges = train(words, 10**6, meter)
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert len(meter.heard) == 2
    assert len(merges) < length
    assert merges == train(words, len(merges))
    assert all(done == followed for done, followed in meter.heard)
    with pytest.raises(KeyboardInterrupt):
        train(words, 10**6, Recorder(interrupt))
    never = Mock(Meter, progress=lambda done: done > 0)
    assert train(one_word(10), 5, never) == []


@each_compiled
def test_several_threads_train_at_once(train: Train) -> None:
    tables = [one_word(2_000, seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        learned = list(pool.map(lambda table: train(table, 100), tables))
    assert learned == [heap.train(table, 100) for table in tables]


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the data segment are Linux's")
@each_compiled
def test_exhausted_memory_is_an_error_and_not_a_crash(train: Train) -> None:
    command = [sys.executable, "-c", OUT_OF_MEMORY, train.__module__, train.__name__]
    ended = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": "."},
    )
    assert (ended.stdout, ended.stderr, ended.returncode) == ("MemoryError\n", "", 0)


# ---- loading


@pytest.mark.parametrize(
    ("train", "module", "package"),
    [
        (flat.train, "_flat", ""),
        (cpp.train, "_grid", ""),
        (cpp.train, "_grid_std", ""),
        (functools.partial(cpp.train, hash_map="absl"), "_grid_absl", "libabsl-dev"),
        (functools.partial(cpp.train, hash_map="boost"), "_grid_boost", r"libboost1\.81-dev"),
        (functools.partial(cpp.train, maximum="openmp_lock"), "_grid_openmp", "libgomp"),
        *(
            (train, "_typed" if name == "typed" else "_updates", "")
            for name, train in CYTHON.items()
        ),
        (lambda *_: native.native(Corpus(__file__)), "_scanner", ""),
    ],
)
def test_what_runs_is_unavailable_without_its_module(
    train: Train, module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, f"variants.native.{module}", None)
    monkeypatch.delattr(f"variants.native.{module}", raising=False)
    with pytest.raises(Unavailable, match=rf"{package}.*pip install -e \. builds it"):
        train(one_word(10), 5)


WORD = WordCounts.from_items([(b"ab", 2)])
RULES: dict[str, int] = {"tie_break": 0, "min_count": 1}
GRID = {"threads": 1, "schedule": 0, "chunk": 1, "reuse_returned": 0, "push_grown": 0}


def compiled_flat(**rules: int) -> None:
    columns = [WORD.data, WORD.offsets, WORD.counts]
    importlib.import_module("variants.native._flat").train(
        columns, 1, Meter(), **{"threads": 1, **rules}
    )


def compiled_grid(**rules: int) -> None:
    grid, points = (
        importlib.import_module(f"variants.native.{name}") for name in ("_grid", "_grid_std")
    )
    grid.train(points.members, 0, WORD, 1, Meter(), **{**GRID, **rules})


def compiled_typed(min_count: int, tie_break: int) -> None:
    importlib.import_module("variants.native._typed").Typed(WORD, 1, min_count, tie_break)


def compiled_replay(**rules: int) -> None:
    claims, columns = array("I", [97]), (WORD.data, WORD.offsets, WORD.counts)
    importlib.import_module("harness.proof.native._replay").judge(
        *columns, claims, claims, num_merges=1, on_progress=print, **rules
    )


@pytest.mark.parametrize(
    ("train", "argument", "value"),
    [
        *(
            (train, argument, value)
            for train in (compiled_flat, compiled_grid, compiled_typed, compiled_replay)
            for argument, value in (("tie_break", -1), ("tie_break", 4), ("min_count", 0))
        ),
        (compiled_flat, "part", 0),
        (compiled_flat, "threads", 0),
        (compiled_grid, "threads", 0),
        (compiled_grid, "chunk", 0),
        (compiled_grid, "schedule", 4),
        (compiled_grid, "schedule", -1),
    ],
)
def test_compiled_functions_refuse_what_they_have_no_rule_for(
    train: Callable[..., None], argument: str, value: int
) -> None:
    bounds = "from 0 to 3" if argument in ("tie_break", "schedule") else "1 or more"
    with pytest.raises(ValueError, match=f"^{argument} is {value}; it is {bounds}$"):
        train(**{**RULES, argument: value})


@pytest.mark.parametrize("train", [*COMPILED, *CYTHON.values(), flat_file.train])
def test_modules_are_loaded_before_the_clock(
    train: Train, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("low lower lowest")
    words: Any = WordCounts.from_items([(b"low", 2), (b"lower", 1)])
    load = Mock(wraps=importlib.import_module)
    monkeypatch.setattr(importlib, "import_module", load)
    sys.modules[train.__module__].before_the_clock()
    loaded = {each.args[0] for each in load.call_args_list}
    load.reset_mock()
    assert train(Corpus(str(text)) if train is flat_file.train else words, 2) == [
        (b"o", b"w"),
        (b"l", b"ow"),
    ]
    load.assert_called()
    assert {each.args[0] for each in load.call_args_list} <= loaded


@pytest.mark.slow
def test_builds_in_different_folders_are_the_same(tmp_path: Path) -> None:
    """So that the gate knows a variant that a change left alone, and leaves it out."""
    built = []
    for name in ("one", "another_folder"):
        folder = tmp_path / name
        shutil.copytree(
            REPOSITORY,
            folder,
            ignore=lambda _, names: {n for n in names if n[0] == "." or n in ("build", "results")},
        )
        for old in folder.rglob("*.so"):
            old.unlink()
        # The smallest of each language; its own scratch folder, so that nothing is taken over.
        building = "import runpy, setuptools; real = setuptools.setup; "
        building += "setuptools.setup = lambda ext_modules, **more: real(ext_modules=[each for each in ext_modules "
        building += "if each.name.endswith(('._updates', '._word_runs'))], **more); runpy.run_path('setup.py')"
        arguments = ["-q", "build_ext", "--inplace"]
        subprocess.run(
            [sys.executable, "-c", building, *arguments],
            cwd=folder,
            check=True,
            capture_output=True,
        )
        built.append({module.name: module.read_bytes() for module in folder.rglob("*.so")})
    assert len(built[0]) == 2
    assert built[0] == built[1]


HAND_OVER = """
from variants import flat_file
from variants.contract import Corpus
from variants.counting import native
native.PART_BYTES, native.PARTS, native.SMALLEST_RANGE = 1 << 14, 1 << 10, 1000
corpus = Corpus({path!r}, (), "[^\\n]*\\n|[^\\n]+")
flat_file.before_the_clock()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "call"),
    [
        *(
            (f"from {train.__module__} import {train.__name__} as train", "train(words, 100_000)")
            for train in COMPILED
        ),
        (
            "from harness.proof.prove import judge",
            "judge(words, claims, 100_000, tie_break=GREATEST_BYTES)",
        ),
        (
            HAND_OVER,
            "[flat_file.train(corpus, 1000, threads=2, inherited=[(b'a', b'b')]) for _ in range(999)]",
        ),
    ],
)
def test_daemon_threads_let_the_interpreter_end(work: str, call: str, tmp_path: Path) -> None:
    """They would ask for the GIL of an interpreter that is ending, whose end is held up for
    that.
    """
    text, dice = tmp_path / "text", random.Random(0)
    text.write_text("".join("".join(dice.choices("ab: c", k=60)) + "\n" for _ in range(20_000)))
    program = f"""
import random, threading, time
from variants import flat
from variants.contract import GREATEST_BYTES, WordCounts
{work.format(path=str(text))}
class Slow:
    def __del__(self, sleep=time.sleep): sleep(1.0)
kept = Slow()
chance = random.Random(1)
words = WordCounts.from_items((bytes(chance.choices(b"abcdefghijklmnop", k=10)), 1) for _ in range(200_000))
claims = flat.train(words, 100_000)
for _ in range(3): threading.Thread(target=lambda: {call}, daemon=True).start()
time.sleep(0.1)
"""
    for _ in range(3):
        ended = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False
        )
        assert (ended.returncode, ended.stderr) == (0, "")


# ---- the Cython stages


@pytest.mark.parametrize("tie_break", first_fast(TieBreak))
@pytest.mark.parametrize("stage", CYTHON)
def test_work_of_a_cython_stage_is_that_of_heap(stage: str, tie_break: TieBreak) -> None:
    """Words over few symbols, NUL among them, so that pairs repeat, adjoin and tie."""
    dice = random.Random(len(stage))
    made = (bytes(dice.choices(b"\x00abc\xff", k=dice.randint(1, 30))) for _ in range(150))
    words = WordCounts.from_items((word, dice.choice((1, 2, 2**33))) for word in made)
    meter, expected = Meter(), Meter()
    push = "all" if stage in ("fine_grained", "no_copy") else "grown"
    merges = heap.train(words, 400, expected, tie_break=tie_break, push=push)
    assert CYTHON[stage](words, 400, meter, tie_break=tie_break) == merges
    if stage == "typed":  # it also looks at words that no longer hold the pair
        assert meter.tallies.pop("positions_visited") >= expected.tallies.pop("positions_visited")
    assert meter.tallies == expected.tallies
