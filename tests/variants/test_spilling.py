"""Tables bigger than memory: whatever is spilled, and by whom, the counts are those of the
definition.
"""

from __future__ import annotations

import errno
import functools
import itertools
import mmap
import os
import random
import subprocess
import sys
from array import array
from pathlib import Path
from typing import Any

import psutil
import pytest
from scanned_texts import random_content
from workbench import CHECKOUT, corpus_of, first_fast, ran, wait_until

from variants.contract import GPT2_PATTERN, InvalidText, LeftOut, Meter, WordCounts
from variants.counting.native import native
from variants.counting.pretokenize import serial
from variants.counting.processes import processes
from variants.counting.spilling import Spill
from variants.native import built

pytest.importorskip("variants.native._word_runs", reason="the compiled part is not built")

END = "<|endoftext|>"


@pytest.mark.parametrize("block", first_fast(range(10)))
def test_counters_spill_exactly(tmp_path: Path, block: int) -> None:
    chance = random.Random(block)
    for _ in range(40):
        content, special_tokens = random_content(chance)
        pattern = chance.choice((GPT2_PATTERN, r"[^\n]*\n|[^\n]+", None))
        corpus, whole = corpus_of(tmp_path, content, special_tokens, pattern, "replace"), Meter()
        expected = list(serial(corpus, whole).items())
        small = {"memory": 1, "smallest_range": 40, "threads": chance.randint(1, 7)}
        calls: list[tuple[Any, dict[str, int]]] = [
            (native, {"buffer": chance.randint(1, 400), **small}),
            (serial, {"memory": chance.randint(8, 3200)}),
        ]

        for count, how in calls:
            meter = Meter()
            found = list(count(corpus, meter, **how).items())
            is_spilled = meter.tallies.pop("runs_spilled", 0) > 0
            assert found == (sorted(expected) if is_spilled else expected)
            assert meter.tallies == whole.tallies
            assert is_spilled or count is serial or not expected


@pytest.mark.parametrize(
    "count",
    [
        serial,
        native,
        functools.partial(native, threads=2, smallest_range=5000, buffer=4096),
        functools.partial(processes, threads=2, smallest_range=5000),
    ],
)
def test_table_is_spilled_only_if_it_does_not_fit(tmp_path: Path, count: Any) -> None:
    words = (f"word{number} {number % 97}\n{END}" for number in range(4000))
    corpus, meter = corpus_of(tmp_path, "".join(words)), Meter()
    expected = list(serial(corpus).items())
    assert list(count(corpus, meter, memory=50_000_000).items()) == expected
    assert "runs_spilled" not in meter.tallies
    assert sorted(count(corpus, meter, memory=200_000).items()) == sorted(expected)
    assert meter.tallies["runs_spilled"] >= 1


def test_errors_are_found_after_spilling(tmp_path: Path) -> None:
    bad = corpus_of(tmp_path, b"word one\n" * 500 + b"\xff")
    for counter, memory in ((serial, 300), (native, 1)):
        with pytest.raises(InvalidText, match="at byte 4500"):
            counter(bad, memory=memory)

    left_out = "".join(f"a{number}b" for number in range(9000)) + "?"
    corpus = corpus_of(tmp_path, left_out, pattern="[a-z]+|[0-9]+")
    for counter in (serial, native):
        with pytest.raises(LeftOut, match=f"first '\\?' at byte {len(left_out) - 1}"):
            counter(corpus, memory=300)


# Runs and their sum


def test_damaged_runs_are_refused(tmp_path: Path) -> None:
    word_runs = built("_word_runs")
    with (tmp_path / "run").open("wb") as file:
        number = file.fileno()
        for offsets in ([0, 2**44], [-1, 2], [2, 1]):
            run = memoryview(b"ab"), memoryview(array("q", offsets)), memoryview(array("Q", [1]))
            for write in (
                functools.partial(word_runs.write_run, *run),
                functools.partial(word_runs.merge, [run], number, number),
            ):
                with pytest.raises(ValueError, match="offsets do not rise"):
                    write(number)


def test_merging_leaves_the_memory_of_its_caller_as_it_was(tmp_path: Path) -> None:
    words = WordCounts.from_items([(b"%08d" % number, number) for number in range(50_000)])
    columns: list[Any] = [words.data.tobytes(), words.offsets.tobytes(), words.counts.tobytes()]
    mappings = [mmap.mmap(-1, len(column), flags=mmap.MAP_PRIVATE) for column in columns]
    for mapping, column in zip(mappings, columns, strict=True):
        mapping[:] = column

    for data, offsets, counts in (columns, mappings):
        views = memoryview(data), memoryview(offsets).cast("q"), memoryview(counts).cast("Q")
        with (tmp_path / "sum").open("wb") as file:
            built("_word_runs").merge([views], *[file.fileno()] * 3)
        assert [view.tobytes() for view in views] == columns


def resident_bytes_of_runs(process: int | None = None) -> int:
    """What a process, by default this one, has in memory of the files that hold its runs."""
    maps = psutil.Process(process).memory_maps()
    return sum(each.rss for each in maps if "/spilled/" in each.path)


@pytest.mark.skipif(
    not hasattr(psutil.Process, "memory_maps"), reason="the system does not tell what is resident"
)
def test_pages_of_runs_that_have_been_read_are_given_back() -> None:
    spill = Spill()
    for first in (0, 1):
        words = ((b"%08d" % number, 1) for number in range(first, 200_000, 2))
        spill.add(WordCounts.from_items(words))
    runs = list(spill.runs)
    written = 200_000 * (8 + 8 + 8)

    before = resident_bytes_of_runs()
    assert len(spill.merged()) == 200_000
    assert before <= resident_bytes_of_runs() < before + written / 4
    assert bytes(runs[1].data[:8]) == b"00000001"


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


@pytest.mark.parametrize(
    ("module", "counter", "how"),
    [
        ("pretokenize", "serial", {"memory": 1}),
        # The first range has spilled runs already, and the last run of the second is too long.
        (
            "native",
            "native",
            {"threads": 2, "smallest_range": 1000, "memory": 5_000_000, "buffer": 10_000},
        ),
    ],
)
def test_full_disk_is_a_sentence_and_leaves_no_file_open(
    tmp_path: Path, module: str, counter: str, how: dict[str, int]
) -> None:
    letters = [*map("".join, itertools.product("abcdefghij", repeat=5))]
    many, few = " ".join(letters[:50_000]), " ".join(2000 * "x" + word for word in letters[:155])
    corpus = corpus_of(tmp_path, f"{many} {END} {few}")

    script = LIMITED.format(module=module, counter=counter, most=280_000, how=how)
    sentence, left_open = ran(tmp_path, "-c", script, corpus.path).stdout.splitlines()
    reason = os.strerror(errno.EFBIG)
    assert (
        f"has no room for the words that counting.memory keeps out of memory ({reason})" in sentence
    )
    assert left_open == "0"


def test_killed_counter_leaves_no_files(tmp_path: Path, cache_folder: Path) -> None:
    corpus = corpus_of(tmp_path, " ".join(map(str, range(400_000))))
    source = f"""
from variants.contract import Corpus
from variants.counting.pretokenize import serial
serial(Corpus({corpus.path!r}), memory=1)
"""
    counting = subprocess.Popen([sys.executable, "-c", source], cwd=CHECKOUT)
    try:
        wait_until(lambda: resident_bytes_of_runs(counting.pid) > 0, "a counter that has spilled")
    finally:
        counting.kill()
        counting.wait()
    assert list((cache_folder / "spilled").iterdir()) == []
