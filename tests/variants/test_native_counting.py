"""The compiled counter gives the definition's words, on every path, at every width, wherever a
buffer ends.

The slow tests fuzz for longer (`NATIVE_FUZZ_BYTES` and `NATIVE_FUZZ_SEED` say how long and from
where) and run the scanner under the compiler's sanitizers.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import regex
from sanitizers import compiled, sanitized

from variants.contract import GPT2_PATTERN, Corpus, InvalidText, Meter, Unavailable
from variants.counting import character_classes, native
from variants.counting.patterns import FAMILY, SUPERBPE, slots_of
from variants.counting.pretokenize import serial

_scanner = pytest.importorskip("variants.native._scanner")

from scanned_texts import (  # noqa: E402 - it needs the compiled scanner
    BAD,
    COMPILED,
    PATHS,
    WIDTHS,
    counted,
    expect_definition,
    random_content,
)

ROOT = Path(__file__).resolve().parents[2]
ACROSS = (
    "'ll",
    "'s",
    "'re'",
    " '",
    "  x",
    "\u3000\u3000x",
    "\u00a0x",
    " \u2028",
    "é",
    "中",
    "😀",
    "<|e|>",
    "1a",
)
TRAILING = ("!\n\n", "!/\r\n", "?\n/a")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("native") / "corpus.txt"


def expect_definition_of_random_content(file: Path, seed: int) -> int:
    """One random text in every compiled pattern, whole, in small buffers and in several ranges;
    returns the bytes.
    """
    chance = random.Random(seed)
    content, special_tokens = random_content(chance)
    errors = chance.choice(("strict", "strict", "strict", "replace"))
    for pattern in COMPILED:
        path = chance.choice(PATHS)
        ways: tuple[dict[str, Any], ...] = (
            {},
            {"buffer": chance.choice((8, 16, 64, 65, 100, 256))},
            {
                "threads": chance.choice(WIDTHS),
                "smallest_range": 1,
                "buffer": chance.choice((8, 64, 300)),
            },
        )
        for how in ways:
            expect_definition(
                file, content, special_tokens, pattern, errors=errors, instructions=path, **how
            )
    return len(content) * len(COMPILED) * 3


FUZZ_SEED = int(os.environ.get("NATIVE_FUZZ_SEED", "1000000"))
FUZZ_BYTES = int(os.environ.get("NATIVE_FUZZ_BYTES", "20000000"))


@pytest.mark.parametrize(
    ("seed", "size"), [(0, 215_000), pytest.param(FUZZ_SEED, FUZZ_BYTES, marks=pytest.mark.slow)]
)
def test_random_texts_are_counted_as_the_definition_counts_them(
    file: Path, seed: int, size: int
) -> None:
    while size > 0:
        size -= expect_definition_of_random_content(file, seed)
        seed += 1


@pytest.mark.parametrize("path", PATHS)
def test_a_piece_may_lie_anywhere_across_a_block(file: Path, path: str) -> None:
    trailing = [pattern for pattern in COMPILED if pattern and r"[\r\n" in pattern]
    for pattern, pieces in ((GPT2_PATTERN, ACROSS), *((pattern, TRAILING) for pattern in trailing)):
        for piece, offset, filler in itertools.product(
            pieces, (62, 63, 64), ("a", " ", "1", "!", "'")
        ):
            content = (filler * offset + piece + filler * 3).encode()
            expect_definition(file, content, ("<|e|>",), pattern, instructions=path)
    text = ("It's  a\u00a0tale, told by 1 idiot…\r\n中文 " * 8).encode()
    for length in range(0, 200, 3):
        content = text[:length].decode(errors="ignore").encode()
        expect_definition(file, content, (), GPT2_PATTERN, instructions=path)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "places", [(63, 127), pytest.param(range(50, 140), marks=pytest.mark.slow)], ids=str
)
def test_the_first_bad_byte_is_found_anywhere_in_a_block(
    file: Path, path: str, places: Sequence[int]
) -> None:
    for sequence, before, behind in itertools.product(BAD, places, ("x", "é", "中", "😀")):
        start = "é".encode() * (before // 2) + b"x" * (before % 2)
        file.write_bytes(start + sequence + behind.encode() * 200 + b"\xff")
        with pytest.raises(InvalidText) as raised:
            native.native(Corpus(str(file)), instructions=path)
        assert raised.value.offset == before, (sequence, behind)


def test_every_code_point_has_the_classes_that_regex_gives_it() -> None:
    numbers, pages = character_classes.character_classes()
    page_of = memoryview(numbers).cast("H")
    got = b"".join(pages[page * 128 : page * 128 + 128] for page in page_of)
    surrogates = range(0xD800, 0xE000)
    every = "".join(chr(number) for number in range(sys.maxunicode + 1) if number not in surrogates)
    for bit, expression in enumerate((r"\p{L}", r"\p{N}", r"\s")):
        want = set(map(ord, regex.findall(expression, every)))
        assert {number for number, classes in enumerate(got) if classes >> bit & 1} == want


NEIGHBOURS = (("a", "B"), ("1", " "), (" ", "'s"), ("'", "!"))
EXPRESSIONS = [
    pattern
    for pattern in COMPILED
    if (slots := slots_of(pattern)) is not None and slots.split in (FAMILY, SUPERBPE)
]


@pytest.mark.parametrize("last", [0x400, pytest.param(sys.maxunicode + 1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("pattern", EXPRESSIONS)
def test_characters_are_split_from_their_neighbours_as_regex_does(
    file: Path, pattern: str, last: int
) -> None:
    for number, (before, after) in enumerate(NEIGHBOURS):
        texts = (before + chr(code) + after for code in range(last) if not 0xD800 <= code < 0xE000)
        path = PATHS[number % len(PATHS)]
        expect_definition(
            file, "\n".join(texts).encode(), (), pattern, instructions=path, buffer=1 << 16
        )


def test_damaged_or_missing_class_cache_is_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = character_classes.character_classes.__wrapped__
    monkeypatch.setenv(character_classes.CACHE_VARIABLE, str(tmp_path / "cache"))
    tables = fresh()
    (kept,) = (tmp_path / "cache").iterdir()
    kept.write_bytes(kept.read_bytes()[:-1])
    assert fresh() == tables
    kept.write_bytes(kept.read_bytes()[:-1] + b"\xff")
    assert fresh() == tables
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv(character_classes.CACHE_VARIABLE, str(tmp_path / "file"))
    assert fresh() == tables


@pytest.mark.slow
def test_many_and_long_words_keep_the_order_of_the_definition_at_every_width(file: Path) -> None:
    chance = random.Random(0)
    words = [f" {chance.getrandbits(24):x}" for _ in range(40_000)]
    words += [f" {chance.getrandbits(90):030x}" for _ in range(9_000)]
    content = "<|e|>".join(" ".join(chance.choices(words, k=500)) for _ in range(120)).encode()
    for threads in WIDTHS:
        for pattern in (r"[^\n]*\n|[^\n]+", GPT2_PATTERN):
            expect_definition(
                file, content, ("<|e|>",), pattern, threads=threads, smallest_range=1 << 10
            )
    # The definition's engine keeps what it might go back to, and gives up at 6 MB of one line under
    # `superbpe`.
    content = b"a " + b"x" * 1_000_000 + b" b " + b"x" * 1_000_000
    for pattern in COMPILED:
        expect_definition(
            file, content, (), pattern, threads=3, buffer=1 << 12, smallest_range=1 << 10
        )


CONTENT = (
    "It's the tale's  end\r\n\t一二\uff0c三 \u2028 don't<|e|> 12345 ½ <|e|>\n\n<|e|>naïve 😀😀 "
    * 40
).encode()


def test_a_stream_of_many_buffers_is_counted_as_the_file_is(tmp_path: Path, file: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    file.write_bytes(CONTENT * 50)
    want = counted(serial, Corpus(str(file), ("<|e|>",)))
    for path, errors, threads in itertools.product(PATHS, ("strict", "replace"), (1, 2)):
        writer = threading.Thread(target=pipe.write_bytes, args=(CONTENT * 50,))
        writer.start()
        how = {"buffer": 999, "instructions": path, "threads": threads, "smallest_range": 1}
        assert counted(native.native, Corpus(str(pipe), ("<|e|>",), errors=errors), **how) == want
        writer.join()


def test_every_scan_hashes_with_a_seed_of_its_own(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_bytes(CONTENT)
    drawn = Mock(wraps=os.urandom)
    monkeypatch.setattr(os, "urandom", drawn)
    assert native.native(Corpus(str(file))) == native.native(Corpus(str(file)))
    assert [each.args for each in drawn.call_args_list] == [(32,), (32,)]


class Impatient(Meter):
    def progress(self, done: int) -> bool:
        return done < 0


def test_the_meter_can_stop_a_scan_that_waits_for_more(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    keep_open = os.open(pipe, os.O_RDWR)
    os.write(keep_open, b"low low")
    with pytest.raises(RuntimeError, match="stopped"):
        native.native(Corpus(str(pipe)), Impatient())
    os.close(keep_open)


def test_file_that_changes_while_it_is_counted_is_refused(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_bytes(b"low low" * 100)

    scan = _scanner.scan
    monkeypatch.setattr(
        _scanner,
        "scan",
        lambda *arguments, **_options: (scan(*arguments), file.write_bytes(b"low"))[0],
    )
    with pytest.raises(OSError, match="changed while it was being counted"):
        native.native(Corpus(str(file)))


@pytest.mark.parametrize("threads", [1, 4])
def test_receiver_of_parts_may_raise_and_meter_stop(
    file: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("BUFFER_BYTES", 64), ("SMALLEST_RANGE", 1), ("PART_BYTES", 1)):
        monkeypatch.setattr(native, name, value)
    file.write_bytes(b"low lower " * 400)
    with pytest.raises(LookupError, match="no more"):
        native.in_parts(
            Corpus(str(file)), Mock(take=Mock(side_effect=LookupError("no more"))), threads=threads
        )
    with pytest.raises(RuntimeError, match="stopped"):
        native.in_parts(
            Corpus(str(file)), Mock(take=lambda *_: time.sleep(0.15)), Impatient(), threads=threads
        )


def test_invalid_arguments_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"low")
    calls: tuple[tuple[type[Exception], str, dict[str, Any], tuple[str, ...]], ...] = (
        (ValueError, "it is a number of 1 or more", {"threads": 0}, ("text",)),
        (ValueError, "it is a number of 1 or more", {"buffer": -1}, ("text",)),
        (
            Unavailable,
            "no instructions 'mmx'; it has fastest, portable",
            {"instructions": "mmx"},
            ("text",),
        ),
        (ValueError, "special token of no bytes", {}, ("text", "")),
        (FileNotFoundError, "No such", {}, ("missing",)),
        (IsADirectoryError, "directory", {}, (".",)),
    )
    for error, message, how, (name, *special_tokens) in calls:
        with pytest.raises(error, match=message):
            native.native(Corpus(str(tmp_path / name), tuple(special_tokens)), **how)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"bounds": [0]}, "1 bounds make no range; give at least two"),
        ({"path": "mmx"}, "this machine has no path 'mmx'; it has portable"),
        ({"buffer": 0}, r"buffer is 0; it is from 1 to \d+ bytes"),
        ({"buffer": 2**63}, rf"buffer is {2**63}; it is from 1 to \d+ bytes"),
        ({"pattern": b"\0"}, "a pattern has one byte for each slot"),
        ({"specials": [b"<e>", b""]}, "a special token of no bytes matches everywhere"),
        ({"tables": (b"", b"")}, "the table of character classes is cut off"),
    ],
)
def test_the_compiled_scan_refuses_what_it_cannot_read(
    file: Path, changed: dict[str, Any], sentence: str
) -> None:
    file.write_bytes(b"low")
    arguments: dict[str, Any] = {
        "bounds": [0, 3],
        "pattern": b"\x03" + bytes(12),
        "specials": [],
        "tables": character_classes.character_classes(),
        "path": "portable",
        "buffer": 64,
        "progress": lambda _: True,
        **changed,
    }
    with file.open("rb") as opened, pytest.raises(ValueError, match=sentence):
        _scanner.scan(opened.fileno(), **arguments)


NO_THREADS = """
#include <errno.h>
int pthread_create(void *thread, const void *how, void *(*run)(void *), void *with) {
    return EAGAIN;
}
"""
COUNT_WITHOUT_THREADS = """
import sys
from variants.contract import Corpus
from variants.counting import native

path, bad = sys.argv[1:]
alone = native.native(Corpus(path))
assert native.native(Corpus(path), threads=3, smallest_range=1) == alone
try:
    native.native(Corpus(bad, errors="replace"))
except OSError as error:
    print(error)
"""


def test_a_thread_that_cannot_be_started_is_done_without_or_named(tmp_path: Path) -> None:
    source, library = tmp_path / "no_threads.c", tmp_path / "no_threads.so"
    source.write_text(NO_THREADS)
    compiler = shutil.which("cc") or pytest.skip("needs a compiler")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    text, bad = tmp_path / "text", tmp_path / "bad"
    text.write_bytes(b"low lower lowest " * 100)
    bad.write_bytes(b"low \xff")

    ended = subprocess.run(
        [sys.executable, "-c", COUNT_WITHOUT_THREADS, text, bad],
        cwd=ROOT,
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.stderr, ended.returncode) == ("", 0)
    assert ended.stdout == (
        "errors=replace decodes in a second thread, and this system starts none; raise its limit of "
        "processes (ulimit -u), or convert the text to UTF-8 first\n"
    )


def test_special_tokens_that_begin_alike_are_found_the_longest_first(file: Path) -> None:
    """A token that is the beginning of another, in a chain, and others between them."""
    chance = random.Random(0)
    specials = {"<", "<a", "<ab", "<abc", "<b", "<a>", ">", "é", "éé", "<ab\u00e9"}
    specials |= {"".join(chance.choices("<ab>é", k=chance.randint(1, 6))) for _ in range(60)}
    for _ in range(30):
        content = "".join(chance.choices("<abc>é x", k=300)).encode()
        expect_definition(file, content, tuple(specials), GPT2_PATTERN)


def test_the_columns_are_read_only_and_outlive_the_words(file: Path) -> None:
    file.write_bytes(b"<|e|>low low er<|e|>")
    words = native.native(Corpus(str(file), ("<|e|>",)))
    data, offsets, counts = words.data, words.offsets, words.counts
    del words
    assert (bytes(data), list(offsets), list(counts)) == (b"low low er", [0, 3, 7, 10], [1, 1, 1])
    assert data.readonly
    with pytest.raises(TypeError, match="read-only"):
        data[0] = 0


# -------------------- The scanner as a program of its own: tests/support/scanner_driver.cpp,
# compiled in other ways and for another machine.


def contents() -> list[bytes]:
    """What is scanned on every path with every pattern, buffer and width."""
    random_ones = [random_content(random.Random(seed))[0] for seed in range(60)]
    # words enough that an index grows
    growing = b" ".join(b"%x" % number for number in range(15_000))
    return [*random_ones, b"", b"x" * 100_000, b"a b" * 1000, growing]


def scanned(
    program: Path, texts: Sequence[bytes], *before: str, path: str = ""
) -> tuple[list[str], str]:
    """The digests that the driver prints, one for each text, and its messages; `before` emulates
    another machine.
    """
    if before and shutil.which(before[0]) is None:
        pytest.skip(f"there is no {before[0]}: apt-get install qemu-user")
    tables, listed = program.parent / "classes", program.parent / "contents"
    tables.write_bytes(b"".join(character_classes.character_classes()))
    with listed.open("wb") as file:
        file.writelines(struct.pack("<Q", len(text)) + text for text in texts)
    paths = [str(("portable", "avx2", "avx512", "neon").index(path))] if path else []
    command = [*before, str(program), str(tables), str(listed), *paths]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines(), ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize("sanitizers", ["address,undefined", "thread"])
def test_sanitizers_report_nothing(tmp_path: Path, sanitizers: str) -> None:
    digests, output = scanned(sanitized("scanner_driver.cpp", sanitizers, tmp_path), contents())
    assert (len(digests), output) == (len(contents()), "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("compiler", "flag", "emulator"),
    [("g++", "-DSCANNER_PORTABLE", ()), ("aarch64-linux-gnu-g++", "-static", ("qemu-aarch64",))],
)
def test_builds_without_vectors_and_for_arm64_count_the_same(
    tmp_path: Path, compiler: str, flag: str, emulator: Sequence[str]
) -> None:
    other = compiled("scanner_driver.cpp", tmp_path, "-O2", flag, compiler=compiler)
    here, _ = scanned(compiled("scanner_driver.cpp", tmp_path, "-O2"), contents())
    assert len(here) == len(contents())
    assert scanned(other, contents(), *emulator) == (here, "")


@pytest.mark.slow
@pytest.mark.skipif("avx2" not in PATHS, reason="this CPU is not x86-64 with AVX2")
def test_a_processor_that_lacks_one_instruction_set_does_not_take_avx2(tmp_path: Path) -> None:
    program = compiled("scanner_driver.cpp", tmp_path, "-O1", "-static")
    for lacking in ("abm", "bmi2", "popcnt", "aes"):
        with pytest.raises(AssertionError, match="no such path"):
            scanned(program, [CONTENT], "qemu-x86_64", "-cpu", f"Haswell,-{lacking}", path="avx2")
