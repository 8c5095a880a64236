"""Twice the input costs about twice the work, whatever the shape of the words or the text.

Of a trainer what it reports is counted, not time: slots passed in tables of pairs, entries visited
in text, lists and queue, and bytes of tokens moved. Of encoder, decoder and counter instructions
are, by callgrind, and of what is written in Python its lines.
"""

from __future__ import annotations

import itertools
import random
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import growth
import pytest
import regex
from growing_words import MOST, SHAPES, Shape, expect_growth, one_word
from random_tokenizers import case_of
from sanitizers import compiled
from tokenizers_made import PATTERNS
from workbench import CHECKOUT, first_fast

from harness.proof.checks import TrainerCall
from harness.tokenizers.extension import ExtensionSettings, extension_of
from harness.tokenizers.folder import save
from harness.tokenizers.learned import Learned, trained
from variants import flat
from variants.contract import Corpus, Meter, WordCounts
from variants.counting.character_classes import character_classes

pytest.importorskip("variants.native._flat", reason="the compiled part is not built")

SIZES = (8_000, 16_000, 32_000, 64_000)
VISITED = ("positions_visited", "table_updates", "queue_pushes", "queue_moves", "queue_sorted")
KINDS = {"slots passed": ("probes",), "entries visited": VISITED, "bytes moved": ("token_bytes",)}


SLOW = "superwords to the end"
"""The shape that takes as long as all others."""
FAST = [shape for shape in growth.SHAPES if shape != SLOW]


@pytest.mark.parametrize("shape", first_fast([*FAST, SLOW], len(FAST)))
def test_twice_the_input_takes_at_most_2_6_times_the_work(shape: str) -> None:
    works = []
    for size in SIZES:
        _, tallies = growth.train(shape, size)
        works.append({kind: sum(tallies[name] for name in KINDS[kind]) for kind in KINDS})

    for smaller, larger in itertools.pairwise(works):
        assert sum(larger.values()) <= MOST * sum(smaller.values()), works
    # One kind alone grows by steps, as memory is doubled now and then: so over all sizes.
    for kind in KINDS:
        assert works[-1][kind] <= MOST ** (len(SIZES) - 1) * works[0][kind], (kind, works)


@pytest.mark.parametrize("shape", SHAPES)
def test_going_on_from_merges_takes_work_in_proportion(shape: Shape) -> None:
    """Bytes are not counted, as memory is doubled now and then."""

    def work(words: WordCounts) -> int:
        merges, meter = flat.train(words, 10**6), Meter()
        inherited = merges[: len(merges) // 2]
        assert flat.train(words, 10**6, meter, inherited=inherited) == merges
        return sum(meter.tallies[name] for name in (*VISITED, "probes"))

    expect_growth(shape, SIZES[0], work)


# Encoder, decoder and counter: programs of their own under callgrind


def made_words(number: int, length: int) -> list[bytes]:
    dice = random.Random(number)
    return [bytes(dice.choices(b"abcdefghij", k=length)) for _ in range(number)]


def distinct_words(size: int) -> bytes:
    return b" ".join(made_words(size // 9, 8))


def long_words(size: int) -> bytes:
    """Twenty words, again and again."""
    return b" ".join(random.Random(size).choices(made_words(20, 1_500), k=size // 1_500))


def special_tokens(size: int) -> bytes:
    """As many special tokens as other words."""
    return b"".join(b"abc<|%d|>" % number for number in range(size // 12))


def end_tokens(size: int) -> bytes:
    """A special token of the counter's driver behind each word."""
    return b"abc<|e|>" * (size // 8)


def giant_word(size: int) -> bytes:
    return one_word(size).data.tobytes()


def one_letter(size: int) -> bytes:
    return b"a" * size


COUNTED = (distinct_words, long_words, end_tokens, giant_word, one_letter)
ENCODED = [
    (distinct_words, "gpt2"),
    (long_words, "gpt2"),
    (special_tokens, "gpt2"),
    (giant_word, "document"),
    (one_letter, "document"),
    (distinct_words, "superbpe"),
]


def tokenizer_for(text: bytes, pattern: str) -> Learned:
    """A tokenizer of the words in a text, and then of pieces if its pattern has pieces of words."""
    specials = list(dict.fromkeys(re.findall(r"<\|\d+\|>", text.decode())))
    learned: Sequence[Any] = ()
    for name in ["gpt2", pattern] if pattern == "superbpe" else [pattern]:
        words = regex.findall(PATTERNS[name], text.decode())
        counts = WordCounts.from_items((word.encode(), 1) for word in dict.fromkeys(words))
        learned = flat.train(counts, len(learned) + 250, inherited=learned)
    return trained(list(learned), specials, PATTERNS[pattern])


def instructions(of: str, program: Path, *arguments: Path) -> int:
    """What a program executes within the functions of this name, or in all if it is empty."""
    if shutil.which("valgrind") is None:
        pytest.skip("counting instructions needs valgrind: apt-get install valgrind")
    within = [f"--toggle-collect={of}"] if of else []
    tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *within]
    ended = subprocess.run([*tool, program, *arguments], capture_output=True, text=True, check=True)

    collected = re.search(r"Collected : (\d+)", ended.stderr)
    assert collected, ended.stderr
    return int(collected[1])


def expect_growth_of(work: Callable[[int], int], smallest: int) -> None:
    """Fail if work grows too much from size to size, what it takes for nothing left out."""
    once, twice, four_times = (work(times * smallest) for times in (1, 2, 4))
    assert 0 < once <= twice, "nothing was counted"
    assert four_times - twice <= MOST * (twice - once), (once, twice, four_times)


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("classes") / "classes"
    path.write_bytes(b"".join(character_classes()))
    return path


@pytest.fixture(scope="module")
def encoding(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("encoder_driver.cpp", tmp_path_factory.mktemp("driver"), "-fno-inline")


@pytest.mark.slow
@pytest.mark.parametrize("of", ["encoder::EncoderOf*::encode_part*", "encoder::Decoder::write*"])
@pytest.mark.parametrize(("make", "pattern"), ENCODED)
def test_encoding_and_decoding_twice_the_text(
    tmp_path: Path,
    classes: Path,
    encoding: Path,
    make: Callable[[int], bytes],
    pattern: str,
    of: str,
) -> None:
    cases = tmp_path / "cases"
    sizes = [[1 << 17], [1 << 18], [600 << 10], [96 << 20]]

    def work(size: int) -> int:
        text = make(size)
        cases.write_text(case_of(tokenizer_for(text, pattern), [text], random.Random(1), sizes))
        return instructions(of, encoding, classes, cases)

    expect_growth_of(work, 8_000)


@pytest.fixture(scope="module")
def counting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("scanner_driver.cpp", tmp_path_factory.mktemp("driver"))


@pytest.mark.slow
@pytest.mark.parametrize("make", COUNTED)
def test_counting_twice_the_text(
    tmp_path: Path, classes: Path, counting: Path, make: Callable[[int], bytes]
) -> None:
    contents = tmp_path / "contents"

    def work(size: int) -> int:
        text = make(size)
        contents.write_bytes(struct.pack("<Q", len(text)) + text)
        return instructions("", counting, classes, contents, Path("0"))  # the path of any machine

    expect_growth_of(work, 64_000)  # threads share out the parts by chance


# Extensions and conformance: lines of Python


def lines_run(call: Callable[[], object]) -> int:
    """How many lines of the variants and of the harness a call runs, each time they are run."""
    lines = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines
        lines += event == "line"
        is_ours = frame.f_code.co_filename.startswith(str(CHECKOUT))
        return trace if is_ours else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.parametrize("setting", ["extend", "seeds", "protected"])
def test_going_on_from_twice_the_tokens(tmp_path: Path, setting: str) -> None:
    def work(number: int) -> int:
        words = [*dict.fromkeys(made_words(number, 8))]
        counts = WordCounts.from_items((word, 1) for word in words)
        value: Any = [word.decode() for word in words]
        if setting == "extend":
            value = str(tmp_path / str(number))
            save(Path(value), trained(list(flat.train(counts, number)), [], PATTERNS["gpt2"]), {})
        settings = ExtensionSettings(**{setting: value})
        corpus = Corpus("none", (), PATTERNS["gpt2"])
        return lines_run(lambda: extension_of(settings, corpus, 10**6, "greatest_bytes"))

    work(10)  # imports what is needed
    expect_growth_of(work, 200)


def test_explaining_a_wrong_merge_in_twice_the_words() -> None:
    def work(number: int) -> int:
        call = TrainerCall(dict.fromkeys(made_words(number, 8), 1), number)
        want = list(flat.train(call.word_counts, number))
        got = [*want[:-1], (b"a", b"\xff")]
        return lines_run(lambda: call.fault(got, want))

    work(10)  # imports what is needed
    expect_growth_of(work, 200)
