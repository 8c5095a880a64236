"""The Cython stages do the work that their names say, and the last of them without a Python object in its loop."""

from __future__ import annotations

import html
import random
import re
from pathlib import Path
from typing import Any

import pytest
from workbench import first_fast

from variants import cython_fine_grained, cython_loop, cython_no_copy, cython_opt, cython_typed, heap
from variants.contract import Meter, TieBreak, WordCounts

NATIVE = Path(__file__).parents[2] / "variants" / "native"


pytest.importorskip("variants.native._typed", reason="the compiled part is not built")


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


@pytest.mark.slow
def test_no_object_is_touched_in_the_inner_functions_of_the_typed_stage(tmp_path: Path) -> None:
    compiler = pytest.importorskip("Cython.Compiler.Main", reason="Cython is not installed")
    page = tmp_path / "_typed.html"
    source = tmp_path / "_typed.pyx"
    for name in ("_typed.pyx", "columns.pxi", "learned.pxi"):
        (tmp_path / name).write_bytes((NATIVE / name).read_bytes())
    options = compiler.CompilationOptions(compiler.default_options, cplus=True, annotate=True, language_level=3)
    assert compiler.compile(str(source), options).num_errors == 0
    touching = lines_that_touch_objects(page.read_text())
    code = source.read_text().splitlines()
    inner = code.index("    cdef void count_pairs(self) noexcept nogil:") + 1
    assert [number for number in touching if number >= inner] == []
    assert touching, "the page is read wrongly: __init__ and learn do touch objects"


def lines_that_touch_objects(page: str) -> list[int]:
    """The numbers of the lines that `cython --annotate` shows in yellow."""
    lines = re.findall(r'<pre class="cython line score-(\d+)"[^>]*>(.*?)</pre>', page, re.DOTALL)
    texts = [(int(score), html.unescape(re.sub("<[^>]+>", "", text))) for score, text in lines]
    numbered = [(score, re.match(r"\W*(\d+):", text)) for score, text in texts]
    assert all(found for _, found in numbered)
    return [int(found[1]) for score, found in numbered if score and found]
