"""The compiled counter gives the definition's words, on every path, at every width, wherever a
buffer ends.

The slow tests fuzz for longer and run the scanner under the compiler's sanitizers.
"""

import itertools
import os
import random
import shutil
import struct
import subprocess
import sys
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest
from exploring import seeds
from pattern_family import all_slots, spelling
from rows import Row, each_row, write_files
from sanitizers import classes_in, compiled, output_of
from scanned_texts import (
    BAD,
    COMPILED,
    PATHS,
    WIDTHS,
    counted,
    expect_definition,
    random_content,
)
from workbench import corpus_of, ran, written

from variants.contract import Corpus, Meter
from variants.counting import character_classes, native
from variants.counting.pretokenize import serial

END = ("<|e|>",)
MEMBERS = all_slots()


@pytest.mark.parametrize("block", seeds(50))
def test_random_texts_are_counted_as_the_definition_counts_them(tmp_path: Path, block: int) -> None:
    """Every compiled pattern, and some of the family, whole, in small buffers and in several
    ranges.
    """
    chance = random.Random(block)
    for _ in range(8):
        content, special_tokens = random_content(chance)
        errors = chance.choice(("strict", "strict", "strict", "replace"))
        small = {"buffer": chance.choice((8, 16, 64, 65, 100, 300))}
        ranges = {**small, "threads": chance.choice(WIDTHS), "smallest_range": 1}
        members = [spelling(slots, chance) for slots in chance.sample(MEMBERS, 3)]
        for pattern in [*COMPILED, *members]:
            how = {"errors": errors, "instructions": chance.choice(PATHS)}
            for way in ({}, small, ranges):
                expect_definition(tmp_path, content, special_tokens, pattern, **how, **way)


ACROSS = ["'ll", "'s", "'re'", " '", "  x", "\u3000\u3000x", "\u00a0x", " \u2028"]
ACROSS += ["é", "中", "😀", "<|e|>", "1a", "!\n\n", "!/\r\n", "?\n/a"]


def test_piece_may_lie_anywhere_across_a_block(tmp_path: Path) -> None:
    for offset in (62, 63, 64):
        content = b""
        for piece, filler in itertools.product(ACROSS, "a 1!'"):
            content += (filler * offset + piece + filler * 3).encode()
            content += filler.encode() * (-len(content) % 64)
        for pattern in COMPILED:
            expect_definition(tmp_path, content, END, pattern)


def test_first_bad_byte_is_found_across_blocks(tmp_path: Path) -> None:
    for sequence, before, behind in itertools.product(BAD, (61, 63, 127), ("x", "é", "中", "😀")):
        start = "é".encode() * (before // 2) + b"x" * (before % 2)
        corpus = corpus_of(tmp_path, start + sequence + behind.encode() * 200 + b"\xff")
        for path in PATHS:
            assert counted(native.native, corpus, instructions=path) == before, (sequence, behind)


NEIGHBOURS = (("a", "B"), ("1", " "), (" ", "'s"), ("'", "!"))


@pytest.mark.parametrize("block", seeds(16))
@pytest.mark.parametrize("pattern", COMPILED)
def test_characters_are_split_from_their_neighbours_as_regex_does(
    tmp_path: Path, pattern: str, block: int
) -> None:
    """The first thousand between all neighbours, and every 64th of the others between some."""
    chance = random.Random(block)
    pieces = list(itertools.product(NEIGHBOURS, range(0x400)))
    for code in range(0x400 + block % 64, sys.maxunicode + 1, 64):
        if not 0xD800 <= code < 0xE000:
            pieces.append((chance.choice(NEIGHBOURS), code))
    text = "\n".join(f"{before}{chr(code)}{after}" for (before, after), code in pieces)
    path = chance.choice(PATHS)
    expect_definition(tmp_path, text.encode(), (), pattern, instructions=path, buffer=1 << 16)


def test_damaged_or_missing_class_cache_is_rebuilt(
    tmp_path: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = character_classes.character_classes.__wrapped__
    tables = fresh()
    (kept,) = cache_folder.iterdir()
    content = kept.read_bytes()
    kept.unlink()  # other tests share it
    kept.write_bytes(content[:-1] + b"\xff")
    assert fresh() == tables
    assert kept.read_bytes() == content

    (tmp_path / "file").touch()
    monkeypatch.setenv(character_classes.CACHE_VARIABLE, str(tmp_path / "file"))
    assert fresh() == tables


# Streams, meters, receivers

TEXT = "It's the tale's  end\r\n\t一二\uff0c三 \u2028 don't<|e|> 12345 ½ <|e|>\n\n<|e|>naïve 😀😀 "
CONTENT = TEXT.encode() * 40


def test_stream_of_many_buffers_is_counted_as_the_file_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    expected = counted(serial, corpus_of(tmp_path, CONTENT * 10, END))
    for path, errors in itertools.product(PATHS, ("strict", "replace")):
        writer = threading.Thread(target=pipe.write_bytes, args=(CONTENT * 10,))
        writer.start()
        how = {"buffer": 999, "instructions": path, "threads": 2, "smallest_range": 1}
        corpus = Corpus(str(pipe), END, errors=errors)
        assert counted(native.native, corpus, **how) == expected
        writer.join()


def test_every_scan_hashes_with_a_seed_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = corpus_of(tmp_path, CONTENT)
    drawn = Mock(wraps=os.urandom)
    monkeypatch.setattr(os, "urandom", drawn)
    assert native.native(corpus) == native.native(corpus)
    assert [each.args for each in drawn.call_args_list] == [(32,), (32,)]


def test_meter_can_stop_a_scan_that_waits_for_more(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    impatient = Mock(wraps=Meter(), progress=lambda _: False)
    with pipe.open("rb+", buffering=0) as keep_open:
        keep_open.write(b"low low")
        with pytest.raises(RuntimeError, match="stopped"):
            native.native(Corpus(str(pipe)), impatient)


def test_file_that_changes_while_it_is_counted_is_refused(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, "low low" * 100)

    meter = Mock(wraps=Meter(), lap=lambda _: corpus_of(tmp_path, "low"))
    with pytest.raises(OSError, match="changed while it was being counted"):
        native.native(corpus, meter)


def test_columns_are_read_only_and_outlive_the_words(tmp_path: Path) -> None:
    words = native.native(corpus_of(tmp_path, "<|e|>low low er<|e|>", END))
    columns = words.data, words.offsets, words.counts
    del words
    assert [column.tolist() for column in columns] == [list(b"low low er"), [0, 3, 7, 10], [1] * 3]
    assert all(column.readonly for column in columns)


NO_THREADS = """
#include <errno.h>
int pthread_create(void *thread, const void *how, void *(*run)(void *), void *with) {
    return EAGAIN;
}
"""
COUNT_WITHOUT_THREADS = """
from variants.contract import Corpus
from variants.counting import native

alone = native.native(Corpus("text"))
assert native.native(Corpus("text"), threads=3, smallest_range=1) == alone
try:
    native.native(Corpus("bad", errors="replace"))
except OSError as error:
    print(error)
"""


@pytest.mark.slow
def test_thread_that_cannot_be_started_is_done_without_or_named(tmp_path: Path) -> None:
    files = {"text": "low lower lowest " * 100, "bad": r"low \xff", "no_threads.c": NO_THREADS}
    write_files(tmp_path, files)
    source, library = tmp_path / "no_threads.c", tmp_path / "no_threads.so"
    compiler = shutil.which("cc") or pytest.skip("needs a compiler")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)

    ended = ran(tmp_path, "-c", COUNT_WITHOUT_THREADS, variables={"LD_PRELOAD": str(library)})
    assert (ended.stderr, ended.returncode) == ("", 0)
    assert ended.stdout == (
        "errors=replace decodes in a second thread, and this system starts none; raise its limit of "
        "processes (ulimit -u), or convert the text to UTF-8 first\n"
    )


# The scanner as a program of its own, tests/support/scanner_driver.cpp, compiled in other ways and
# for another machine.


@pytest.fixture(scope="module")
def scanned(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], str]:
    """The tables of classes and what is scanned on every path with every pattern and buffer, and what
    a plain build prints.
    """
    contents = [random_content(random.Random(seed))[0] for seed in range(60)]
    # words enough that an index grows
    growing = b" ".join(b"%x" % number for number in range(15_000))
    contents += [b"", b"x" * 100_000, b"a b" * 1000, growing]

    folder = tmp_path_factory.mktemp("scanned")
    listed = (struct.pack("<Q", len(text)) + text for text in contents)
    files = [classes_in(folder), written(folder, b"".join(listed))]
    return files, output_of(compiled("scanner_driver.cpp", folder, "-O2"), *files)


@pytest.mark.slow
@each_row(__file__, "scanner_builds.toml")
def test_every_build_counts_the_same(
    row: Row, tmp_path: Path, scanned: tuple[list[Path], str]
) -> None:
    files, digests = scanned
    compiler, emulator = row.get("compiler", "g++"), row.get("emulator", [])
    program = compiled("scanner_driver.cpp", tmp_path, *row["flags"], compiler=compiler)
    if emulator and shutil.which(emulator[0]) is None:
        pytest.skip(f"there is no {emulator[0]}: apt-get install qemu-user")

    command = [*emulator, program, *files, *row.get("arguments", [])]
    ended = subprocess.run(command, capture_output=True, text=True)
    if "refused" in row:
        assert (ended.stdout, ended.returncode) == ("", 1)
        assert row["refused"] in ended.stderr  # among warnings of the emulator
    else:
        assert (ended.stdout, ended.stderr) == (digests, "")
