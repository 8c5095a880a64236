"""Twice the input costs about twice the work, whatever the shape of the words or the text.

Of a trainer what it reports is counted, not time: slots passed in tables of pairs, entries visited
in text, lists and queue, and bytes of tokens moved. Of encoder, decoder and counter instructions
are, by callgrind, and of what is written in Python its lines.
"""

import itertools
import random
import re
import shutil
import struct
import subprocess
import sys
import trace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import growth
import pytest
from growing_words import MOST, SHAPES, Shape, expect_growth, one_word
from random_tokenizers import case_of
from sanitizers import classes_in, compiled
from tokenizers_made import learned_in_stages
from workbench import first_fast, written

from harness.proof.checks import TrainerCall
from harness.tokenizer import train
from variants import flat
from variants.contract import Meter, WordCounts

pytest.importorskip("variants.native._flat", reason="the compiled part is not built")

SIZES = (8_000, 16_000, 32_000, 64_000)
VISITED = ("positions_visited", "table_updates", "queue_pushes", "queue_moves", "queue_sorted")
KINDS = {"slots passed": ("probes",), "entries visited": VISITED, "bytes moved": ("token_bytes",)}


@pytest.mark.parametrize("shape", first_fast(sorted(growth.SHAPES), len(growth.SHAPES) - 1))
def test_twice_the_input_takes_at_most_2_6_times_the_work(shape: str) -> None:
    """The last shape, superwords, takes as long as all others."""
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


TEXTS: dict[str, Callable[[int], bytes]] = {
    "distinct words": lambda size: b" ".join(made_words(size // 9, 8)),
    "twenty long words": lambda size: b" ".join(
        random.Random(size).choices(made_words(20, 1_500), k=size // 1_500)
    ),
    "as many special tokens as words": lambda size: b"".join(
        b"abc<|%d|>" % number for number in range(size // 12)
    ),
    "an end token behind each word": lambda size: b"abc<|e|>" * (size // 8),
    "a giant word": lambda size: one_word(size).data.tobytes(),
    "one letter": lambda size: b"a" * size,
}
"""Texts of a size; the end token is one of the counter's driver."""
ENCODED = [
    ("distinct words", ["gpt2"]),
    ("twenty long words", ["gpt2"]),
    ("as many special tokens as words", ["gpt2"]),
    ("a giant word", ["document"]),
    ("one letter", ["document"]),
    ("distinct words", ["gpt2", "superbpe"]),
]
"""Texts, and the patterns of the stages of the tokenizer that encodes them."""


def instructions(*command: str | Path) -> int:
    """What a program executes; options of valgrind before it say in which functions."""
    if shutil.which("valgrind") is None:
        pytest.skip("counting instructions needs valgrind: apt-get install valgrind")
    tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    ended = subprocess.run([*tool, *command], capture_output=True, text=True, check=True)

    collected = re.search(r"Collected : (\d+)", ended.stderr)
    assert collected, ended.stderr
    return int(collected[1])


def expect_growth_of(work: Callable[[int], int], smallest: int) -> None:
    """Fail if work grows too much from size to size, what it takes for nothing left out."""
    once, twice, four_times = (work(times * smallest) for times in (1, 2, 4))
    assert 0 < once <= twice, "nothing was counted"
    assert four_times - twice <= MOST * (twice - once), (once, twice, four_times)


@pytest.mark.slow
@pytest.mark.parametrize("of", ["encoder::EncoderOf*::encode_part*", "encoder::Decoder::write*"])
@pytest.mark.parametrize(("text", "patterns"), ENCODED)
def test_encoding_and_decoding_twice_the_text(
    tmp_path: Path, text: str, patterns: list[str], of: str
) -> None:
    driver = compiled("encoder_driver.cpp", tmp_path.parent, "-fno-inline")  # once for all cases
    sizes = [[1 << 17], [1 << 18], [600 << 10], [96 << 20]]

    def work(size: int) -> int:
        content = TEXTS[text](size)
        specials = dict.fromkeys(re.findall(r"<\|\d+\|>", content.decode()))
        one = learned_in_stages(content.decode(), patterns, 250, specials)
        cases = written(tmp_path, case_of(one, [content], random.Random(1), sizes))
        return instructions(f"--toggle-collect={of}", driver, classes_in(tmp_path), cases)

    expect_growth_of(work, 8_000)


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS)
def test_counting_twice_the_text(tmp_path: Path, text: str) -> None:
    driver = compiled("scanner_driver.cpp", tmp_path.parent)  # once for all cases

    def work(size: int) -> int:
        content = TEXTS[text](size)
        contents = written(tmp_path, struct.pack("<Q", len(content)) + content)
        return instructions(driver, classes_in(tmp_path), contents, "0")  # the path of any machine

    expect_growth_of(work, 32_000)  # threads share out the parts by chance


# Extensions and conformance: lines of Python


def lines_run(call: Callable[[], object]) -> int:
    """How many lines of Python a call runs, each time they are run."""
    before, tracer = sys.gettrace(), trace.Trace(trace=False)
    tracer.runfunc(call)
    sys.settrace(before)
    return sum(tracer.results().counts.values())


@pytest.mark.parametrize("setting", ["extend", "seeds", "protected"])
def test_going_on_from_twice_the_tokens(tmp_path: Path, setting: str) -> None:
    def work(number: int) -> int:
        words = dict.fromkeys(made_words(number, 8), 1)
        value: Any = [word.decode() for word in words]
        if setting == "extend":
            value = tmp_path / str(number)
            train(words, 256 + number, special_tokens=[]).save(value)
        extended = {"vocab_size": 10**6, "special_tokens": [], setting: value}
        return lines_run(lambda: train({"a": 1}, **extended))

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
