"""Tables bigger than memory: whatever is spilled, and by whom, the counts are those of the
definition.
"""

from __future__ import annotations

import errno
import itertools
import mmap
import os
import signal
import subprocess
import sys
from array import array
from pathlib import Path
from typing import Any

import psutil
import pytest
from exploring import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from workbench import cells, corpus_of, first_fast, reading_of, wait_until

from variants.contract import GPT2_PATTERN, Corpus, InvalidText, LeftOut, Meter, WordCounts
from variants.counting.native import native
from variants.counting.pretokenize import serial
from variants.counting.processes import processes
from variants.counting.spilling import Spill
from variants.native import built

pytest.importorskip("variants.native._word_runs", reason="the compiled part is not built")

END, LINE = "<|endoftext|>", r"[^\n]*\n|[^\n]+"
texts = st.lists(
    st.sampled_from(["a", "b", " ", "\n", "'s", "é", "日本", "7", END, "<|end", "zz" * 20]),
    max_size=200,
)
quick = examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])


# Runs and their sum


some_words = st.builds(
    bytes.__add__,
    st.sampled_from([b"", b"abcdefg", b"abcdefgh"]),
    st.binary(min_size=1, max_size=9),
)


@given(st.lists(st.lists(st.tuples(some_words, st.integers(1, 2**50)), max_size=8), max_size=6))
@quick
def test_the_sum_of_runs_is_the_sum_of_their_tables(tables: list[list[tuple[bytes, int]]]) -> None:
    spill = Spill()
    for table in tables:
        spill.add(WordCounts.from_items(table))
    expected: dict[bytes, int] = {}
    for word, count in (item for table in tables for item in table):
        expected[word] = expected.get(word, 0) + count
    assert list(spill.merged().items()) == sorted(expected.items())


@pytest.mark.parametrize("offsets", [[0, 2**44], [-1, 2], [2, 1]])
def test_damaged_runs_are_refused(tmp_path: Path, offsets: list[int]) -> None:
    word_runs = built("_word_runs")
    columns = memoryview(b"ab"), memoryview(array("q", offsets)), memoryview(array("Q", [1]))
    with (tmp_path / "run").open("wb") as file:
        one = file.fileno()
        with pytest.raises(ValueError, match="offsets do not rise"):
            word_runs.write_run(*columns, one)
        with pytest.raises(ValueError, match="offsets do not rise"):
            word_runs.merge([columns], one, one, one)


@pytest.mark.parametrize("memory", ["of Python", "a private mapping"])
def test_merging_leaves_the_memory_of_its_caller_as_it_was(memory: str, tmp_path: Path) -> None:
    words = WordCounts.from_items([(b"%08d" % number, number) for number in range(50_000)])
    columns = [words.data.tobytes(), words.offsets.tobytes(), words.counts.tobytes()]
    held: list[Any] = columns
    if memory == "a private mapping":
        held = [mmap.mmap(-1, len(column), flags=mmap.MAP_PRIVATE) for column in columns]
        for mapping, column in zip(held, columns, strict=True):
            mapping[:] = column
    views: list[Any] = [memoryview(held[0])]
    views += [memoryview(held[1]).cast("q"), memoryview(held[2]).cast("Q")]
    with (tmp_path / "sum").open("wb") as file:
        built("_word_runs").merge([views], file.fileno(), file.fileno(), file.fileno())
    assert [view.tobytes() for view in views] == columns


@pytest.mark.skipif(
    not hasattr(psutil.Process, "memory_maps"), reason="the system does not tell what is resident"
)
def test_pages_of_runs_that_have_been_read_are_given_back() -> None:
    spill = Spill()
    for first in (0, 1):
        spill.add(
            WordCounts.from_items([(b"%08d" % number, 1) for number in range(first, 400_000, 2)])
        )
    runs = list(spill.runs)
    written = sum(column.nbytes for run in runs for column in (run.data, run.offsets, run.counts))
    before = resident_bytes_of_runs()
    assert len(spill.merged()) == 400_000
    assert before <= resident_bytes_of_runs() < before + written / 4
    assert bytes(runs[1].data[:8]) == b"00000001"


def resident_bytes_of_runs(process: int | None = None) -> int:
    """What a process, by default this one, has in memory of the files that hold its runs."""
    return sum(
        each.rss for each in psutil.Process(process).memory_maps() if "/spilled/" in each.path
    )


# Counters


@given(
    texts.map("".join),
    st.integers(1, 400),
    st.integers(1, 5),
    st.sampled_from([GPT2_PATTERN, LINE, None]),
)
@quick
def test_counters_spill_exactly(
    tmp_path: Path, text: str, buffer: int, threads: int, pattern: str | None
) -> None:
    corpus = corpus_of(tmp_path, text, pattern=pattern)
    whole, spilled, serially = Meter(), Meter(), Meter()
    expected = serial(corpus, whole)
    found = native(corpus, spilled, threads=threads, smallest_range=40, buffer=buffer, memory=1)
    assert dict(found) == dict(serial(corpus, serially, memory=8 * buffer)) == dict(expected)
    assert (
        spilled.tallies["documents"] == serially.tallies["documents"] == whole.tallies["documents"]
    )
    if text.replace(END, ""):
        assert spilled.tallies["runs_spilled"] >= 1
        assert list(found) == sorted(expected)


def test_spilled_counts_are_the_same_at_any_width(tmp_path: Path) -> None:
    text = "".join(
        f"word{number} and {number % 97} é{number % 13}\n{END}" for number in range(4000)
    )
    corpus = corpus_of(tmp_path, text)
    expected = dict(serial(corpus))
    narrow = {"smallest_range": 5000, "buffer": 4096, "memory": 1}
    cases: list[tuple[Any, dict[str, int]]] = [
        (native, {"threads": width, **narrow}) for width in (1, 2, 7, 16)
    ]
    for counter, how in [
        *cases,
        (processes, {"threads": 2, "smallest_range": 1000, "memory": 200_000}),
    ]:
        meter = Meter()
        assert dict(counter(corpus, meter, **how)) == expected
        assert meter.tallies["runs_spilled"] >= how["threads"]
        assert meter.tallies["documents"] == 4000


@pytest.mark.parametrize("counter", [serial, native])
def test_a_table_that_fits_is_not_spilled(tmp_path: Path, counter: Any) -> None:
    corpus, meter = corpus_of(tmp_path, " ".join(map(str, range(40_000)))), Meter()
    assert [*counter(corpus, meter, memory=50_000_000).items()] == [*serial(corpus).items()]
    assert "runs_spilled" not in meter.tallies
    counter(corpus, meter, memory=1_000_000)
    assert meter.tallies["runs_spilled"] > 0


def test_errors_are_found_after_spilling(tmp_path: Path) -> None:
    bad = corpus_of(tmp_path, b"word one\n" * 500 + b"\xff")
    left_out = "".join(f"a{number}b" for number in range(9000)) + "?"
    for counter, memory in ((serial, 300), (native, 1)):
        with pytest.raises(InvalidText, match="at byte 4500"):
            counter(bad, memory=memory)
    for counter in (serial, native):
        with pytest.raises(LeftOut):
            counter(corpus_of(tmp_path, left_out, pattern="[a-z]+|[0-9]+"), memory=300)
        with pytest.raises(ValueError, match="memory is 0"):
            counter(bad, memory=0)


# A full disk, an interruption


LIMITED = """
import os, resource, signal, sys
from variants.contract import Corpus
from variants.counting.{module} import {counter}
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))
sys.dont_write_bytecode = True  # what it imports would be kept cut short
before = os.listdir("/dev/fd")
try:
    {counter}(Corpus(sys.argv[1]), **{how})
except OSError as error:
    print(error)
print(len(os.listdir("/dev/fd")) - len(before))
"""


def sentence_of_a_full_disk(corpus: Corpus, **values: Any) -> str:
    """What a counter says when a file may have no more than `most` bytes; no file is left open."""
    command = [sys.executable, "-c", LIMITED.format(**values), corpus.path]
    sentence, left_open = subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert left_open == "0"
    return sentence


def test_a_full_disk_is_a_sentence_and_leaves_no_file_open(tmp_path: Path) -> None:
    room, corpus = (
        "has no room for the words that counting",
        corpus_of(tmp_path, " ".join(map(str, range(5000)))),
    )
    serially = sentence_of_a_full_disk(
        corpus, module="pretokenize", counter="serial", most=3000, how={"memory": 1}
    )
    assert f"{room}.memory keeps out of memory" in serially
    assert os.strerror(errno.EFBIG) in serially
    # Here the first range has spilled runs already, and the last run of the second is too long.
    letters = [*map("".join, itertools.product("abcdefghij", repeat=5))]
    many, few = " ".join(letters[:50_000]), " ".join(2000 * "x" + word for word in letters[:155])
    corpus = corpus_of(tmp_path, f"{many} {END} {few}")
    how = {"threads": 2, "smallest_range": 1000, "memory": 5_000_000, "buffer": 10_000}
    assert room in sentence_of_a_full_disk(
        corpus, module="native", counter="native", most=280_000, how=how
    )


def test_killed_counter_leaves_no_files(tmp_path: Path, cache_folder: Path) -> None:
    corpus = corpus_of(tmp_path, " ".join(map(str, range(400_000))))
    source = (
        "from variants.contract import Corpus\nfrom variants.counting.pretokenize import serial\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", f"{source}serial(Corpus({corpus.path!r}), memory=1)"]
    )
    try:
        wait_until(
            lambda: resident_bytes_of_runs(child.pid) > 0, "a counter that has spilled words"
        )
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert list((cache_folder / "spilled").iterdir()) == []


# Messages


@pytest.mark.parametrize("counting", first_fast(["serial", "native", "processes", "own"]))
def test_counting_memory_reaches_the_counter(tmp_path: Path, counting: str) -> None:
    path = reading_of(tmp_path).file.path
    (cell,) = cells(f"data.path={path}", f"counting={counting}", "counting.memory=2GB")
    assert cell.count.counter.params["memory"] == 2_000_000_000
    (same,) = cells(f"data.path={path}", f"counting={counting}", "counting.params.memory=2GB")
    assert same.key == cell.key
