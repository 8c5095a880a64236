"""The Cython stages do the work that their names say, and the last of them without a Python object in its loop."""

from __future__ import annotations

import html
import random
import re
import sys
import threading
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from meters import Recorder, ends_in_memory_error, interrupt
from workbench import first_fast

from variants import cpp, cython_fine_grained, cython_loop, cython_no_copy, cython_opt, cython_typed, flat, heap
from variants.contract import Meter, TieBreak, Unavailable, WordCounts

NATIVE = Path(__file__).parent.parent / "variants" / "native"
STAGES = (cython_fine_grained, cython_no_copy, cython_opt, cython_loop, cython_typed)

pytest.importorskip("variants.native._typed", reason="the compiled part is not built")


COLUMNS_THAT_ARE_NONE = [
    ([0, 2, 1, 3], [1, 1, 1], "offsets do not rise"),
    ([0, -1, 3], [1, 1], "offsets do not rise"),
    ([0, 10**9], [1], "offsets do not rise"),
    ([5, 3], [1], "offsets do not rise"),
    ([], [], "0 counts need 1 offsets, not 0"),
    ([0, 3], [2**63 - 1], "more than 2\\*\\*63 - 1 adjacent positions"),
    ([0, 3], [2**63], "more than 2\\*\\*63 - 1 adjacent positions"),
    ([0, 1, 3], [1, 2**63], "more than 2\\*\\*63 - 1 adjacent positions"),
]


@pytest.mark.parametrize("train", [cython_typed.train, flat.train, cpp.train])
@pytest.mark.parametrize(("offsets", "counts", "reason"), COLUMNS_THAT_ARE_NONE)
def test_columns_that_are_none_are_refused_at_one_door(
    train: Callable[..., Any], offsets: list[int], counts: list[int], reason: str
) -> None:
    given = WordCounts.from_items([(b"ab", 1)])
    given.data, given.offsets = memoryview(b"abc"), memoryview(array("q", offsets))
    given.counts = memoryview(array("Q", counts))
    with pytest.raises(ValueError, match=reason):
        train(given, 5)


def table(seed: int, words: int = 400) -> WordCounts:
    """Words over few symbols, NUL among them, so that pairs repeat, adjoin and tie."""
    dice = random.Random(seed)
    made = (bytes(dice.choices(b"\x00abc\xff", k=dice.randint(1, 30))) for _ in range(words))
    return WordCounts.from_items((word, dice.choice((1, 2, 2**33))) for word in made)


def run(train: Any, words: WordCounts, **keywords: Any) -> tuple[Any, dict[str, int]]:
    meter = Meter()
    return train(words, 500, meter, **keywords), meter.tallies


@pytest.mark.parametrize("tie_break", TieBreak)
@pytest.mark.parametrize("stage", [cython_fine_grained, cython_no_copy])
def test_until_the_pushes_change_the_work_is_that_of_heap(stage: Any, tie_break: TieBreak) -> None:
    words = table(1, 200)
    assert run(stage.train, words, tie_break=tie_break) == run(heap.train, words, tie_break=tie_break)


@pytest.mark.parametrize("tie_break", TieBreak)
@pytest.mark.parametrize("stage", [cython_opt, cython_loop])
def test_then_it_is_that_of_heap_with_only_the_grown_pairs(stage: Any, tie_break: TieBreak) -> None:
    words = table(2, 200)
    expected = run(heap.train, words, tie_break=tie_break, push="grown")
    assert run(stage.train, words, tie_break=tie_break) == expected


@pytest.mark.parametrize("tie_break", TieBreak)
@pytest.mark.parametrize("seed", first_fast(range(5)))
def test_the_typed_stage_differs_only_in_the_words_it_looks_at_in_vain(seed: int, tie_break: TieBreak) -> None:
    words = table(seed)
    merges, work = run(heap.train, words, tie_break=tie_break, push="grown")
    typed_merges, typed_work = run(cython_typed.train, words, tie_break=tie_break)
    assert typed_merges == merges
    assert typed_work.pop("positions_visited") >= work.pop("positions_visited")
    assert typed_work == work


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.__name__)
def test_without_the_compiled_part_it_is_not_available(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_typed_updates", "_uncopied_updates", "_grown_updates", "_loop", "_typed"):
        monkeypatch.setitem(sys.modules, f"variants.native.{name}", None)
    with pytest.raises(Unavailable, match=r"pip install -e \."):
        stage.train(table(0), 5)


@pytest.mark.slow
def test_no_object_is_touched_in_the_inner_functions_of_the_typed_stage(tmp_path: Path) -> None:
    compiler = pytest.importorskip("Cython.Compiler.Main", reason="Cython is not installed")
    page = tmp_path / "_typed.html"
    source = tmp_path / "_typed.pyx"
    for name in ("_typed.pyx", "columns.pxi"):
        (tmp_path / name).write_bytes((NATIVE / name).read_bytes())
    options = compiler.CompilationOptions(compiler.default_options, cplus=True, annotate=True, language_level=3)
    assert compiler.compile(str(source), options).num_errors == 0
    touching = lines_that_touch_objects(page.read_text())
    code = source.read_text().splitlines()
    inner = code.index("    cdef bint worth_going_on(self) noexcept nogil:") + 1
    assert [number for number in touching if number >= inner] == []
    assert touching, "the page is read wrongly: __init__ and learn do touch objects"


def lines_that_touch_objects(page: str) -> list[int]:
    """The numbers of the lines that `cython --annotate` shows in yellow."""
    lines = re.findall(r'<pre class="cython line score-(\d+)"[^>]*>(.*?)</pre>', page, re.DOTALL)
    texts = [(int(score), html.unescape(re.sub("<[^>]+>", "", text))) for score, text in lines]
    numbered = [(score, re.match(r"\W*(\d+):", text)) for score, text in texts]
    assert all(found for _, found in numbered)
    return [int(found[1]) for score, found in numbered if score and found]


def test_the_typed_stage_stops_when_the_meter_says_so_with_what_it_has() -> None:
    words = WordCounts.from_items([(bytes(random.Random(3).choices(b"ACGT", k=300_000)), 1)])
    meter = Recorder(lambda: False)
    merges = cython_typed.train(words, 10**6, meter)
    assert len(meter.heard) == 2
    assert merges == cython_typed.train(words, len(merges))
    with pytest.raises(KeyboardInterrupt):
        cython_typed.train(words, 10**6, Recorder(interrupt))


def test_several_threads_run_the_typed_stage_at_once() -> None:
    tables = [table(seed) for seed in range(4)]
    learned: dict[int, Any] = {}

    def train(number: int) -> None:
        learned[number] = cython_typed.train(tables[number], 300)

    threads = [threading.Thread(target=train, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [learned[number] for number in range(4)] == [heap.train(words, 300) for words in tables]


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the data segment are Linux's")
def test_memory_that_runs_out_is_an_error_not_a_crash() -> None:
    ends_in_memory_error("variants.cython_typed")
