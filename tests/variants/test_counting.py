"""The word counters where the conformance suite does not reach: streaming, cutting, processes that
fail, tables bigger than memory.
"""

import errno
import functools
import gc
import itertools
import mmap
import os
import random
import re
import subprocess
import sys
import tracemalloc
from array import array
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import regex
from exploring import seeds
from present import function_of
from rows import Row, answer_of, each_row
from scanned_texts import Counted, counted, random_content
from workbench import CHECKOUT, corpus_of, ran, wait_until

from harness.proof.cases import words_from
from variants.contract import (
    GPT2_PATTERN,
    Corpus,
    LeftOut,
    Meter,
    WordCounts,
)
from variants.counting import pretokenize, processes
from variants.counting.native import native
from variants.counting.pretokenize import serial, split_documents
from variants.counting.spilling import Spill
from variants.native import built

END = ("<|e|>",)


def words_by_definition(
    content: bytes, special_tokens: tuple[str, ...], errors: str, pattern: str | None
) -> Counted:
    """Semantics 1 to 4 on the whole text at once; words are in the order in which they first
    occur.
    """
    text = content
    if pattern is not None:
        try:
            text = content.decode(errors=errors).encode()
        except UnicodeDecodeError as error:
            return error.start
    longest_first = sorted(map(str.encode, special_tokens), key=len, reverse=True)
    divider = b"|".join(map(re.escape, longest_first))
    documents = re.split(divider, text) if divider else [text]

    words = Counter[bytes]()
    for document in documents:
        found = [document]
        if pattern is not None:
            found = [word.encode() for word in regex.findall(pattern, document.decode())]
        words.update(filter(None, found))
    number = sum(bool(document.strip()) for document in documents)
    return list(words.items()), {"bytes_scanned": len(content), "documents": number}


def pool_of_threads(threads: int, _: object, **how: Any) -> ThreadPoolExecutor:
    """Threads in place of processes, which would take a second each to start."""
    return ThreadPoolExecutor(threads, **how)


def by_bytes(found: Counted) -> Any:
    """The words in the order of their bytes, spilled or not; an offset as it is."""
    if isinstance(found, int):
        return found
    words, tallies = found
    return sorted(words), {**tallies, "runs_spilled": 0}


@pytest.mark.parametrize("block", seeds(8))
def test_counters_are_the_definition_in_any_parts(
    tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "ProcessPoolExecutor", pool_of_threads)
    chance = random.Random(block)
    for _ in range(40):
        content, special_tokens = random_content(chance)
        content += chance.choice((b"", b"", b"\xff"))
        errors = chance.choice(("strict", "replace"))
        pattern = chance.choice((GPT2_PATTERN, r"[^\n]*\n|[^\n]+", None))
        corpus = corpus_of(tmp_path, content, special_tokens, pattern, errors)
        expected = words_by_definition(content, special_tokens, errors, pattern)

        monkeypatch.setattr(pretokenize, "CHUNK_BYTES", chance.randint(1, 9))
        narrow: Any = {"threads": chance.randint(1, 9), "smallest_range": 1}
        in_processes = functools.partial(processes.processes, **narrow)
        in_threads = functools.partial(native, buffer=chance.randint(1, 400), **narrow)
        for count in (serial, in_processes, in_threads):
            assert counted(count, corpus) == expected
            assert by_bytes(counted(count, corpus, memory=100)) == by_bytes(expected)
    gc.collect()  # the error of a refused text holds the files of its frames


@each_row(__file__, "counting.toml")
def test_whole_matches_are_the_words_and_what_cannot_be_counted_is_refused(
    row: Row, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(processes, "ProcessPoolExecutor")  # a small file needs none
    (here / "text").write_text("ab ab c")
    tokens = tuple(row.get("special_tokens", ()))
    corpus = Corpus(row.get("file", "text"), tokens, row.get("pattern"), partial=True)
    count = function_of(row.get("counter", "serial"))
    answer = answer_of(count, corpus, **row.get("how", {}))

    if "refused" in row:
        assert answer.startswith(row["refused"])
    else:
        assert list(answer.items()) == list(words_from(row["words"]).items())


def test_serial_holds_a_document_not_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pretokenize, "CHUNK_BYTES", 1 << 14)
    largest = b"some words " * 2000
    document = largest + b"<|endoftext|>"
    # so that what is made on first use is not taken for the counter's
    serial(corpus_of(tmp_path, document))
    corpus = corpus_of(tmp_path, document * 30)

    tracemalloc.start()
    word_counts = serial(corpus)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert word_counts[b" words"] == 60_000
    # The buffer, the document cut out of it, its text and a chunk; the file is thirty documents.
    assert peak < 8 * len(largest)


# Patterns that leave text out

MATCHED = "\ue000"


def first_left_out(
    text: str, special_tokens: tuple[str, ...], pattern: str
) -> tuple[int, str] | None:
    """By definition: the first character between two special tokens that no match covers, and what
    follows it.
    """
    for content, offset in split_documents([text.encode()], special_tokens):
        document = content.decode()
        marked = regex.sub(pattern, lambda match: MATCHED * len(match.group()), document)
        if gap := regex.search(f"[^{MATCHED}]+", marked):
            return offset + len(document[: gap.start()].encode()), gap.group()[:40]
    return None


@pytest.mark.parametrize("pattern", [r"\w+", r"[^\s]+", r"\p{L}+|\s+", r"(?r)[^ab]+", r"x|\b"])
def test_first_text_that_a_pattern_leaves_out_is_named(tmp_path: Path, pattern: str) -> None:
    for seed in range(20):
        content, special_tokens = random_content(random.Random(seed))
        text = content.decode(errors="replace")
        corpus = corpus_of(tmp_path, text, special_tokens, pattern)
        words = words_by_definition(text.encode(), special_tokens, "strict", pattern)
        assert counted(serial, replace(corpus, partial=True)) == words

        left_out = None
        try:
            assert counted(serial, corpus) == words
        except LeftOut as error:
            left_out = error.offset, error.text
        assert left_out == first_left_out(text, special_tokens, pattern)


def test_text_left_out_late_is_found_when_all_is_counted(tmp_path: Path) -> None:
    content = b"ab cd <|e|>" * 2000 + "é!<|e|>".encode() + b"ab cd!<|e|>" * 2000
    corpus = corpus_of(tmp_path, content, END, r"[\w ]+")
    with pytest.raises(
        LeftOut, match=r"leaves out text, first '!' at byte 22002; .* pattern\.partial=true"
    ):
        processes.processes(corpus, threads=2, smallest_range=1)
    meter = Meter()
    # one that matches nothing is noticed before all is counted
    with pytest.raises(LeftOut, match="first 'ab cd "):
        serial(Corpus(corpus.path, (), "Q+"), meter)
    assert meter.done == 0


# Processes


def workers_at_work() -> list[psutil.Process]:
    """Those that have used some time: the first range is then done, and they are in the rest."""
    children = psutil.Process().children()
    workers = (child for child in children if "spawn_main" in " ".join(child.cmdline()))
    return [worker for worker in workers if worker.cpu_times().user >= 0.5]


@pytest.mark.slow
def test_killed_process_ends_the_run_with_the_bytes_not_counted(tmp_path: Path) -> None:
    content = b"ab " * 40 + b"<|e|>" + b"a" * 60 + b"!<|e|>" + b"a" * 60 + b"!"
    # This takes for ever on the long run of letters.
    corpus = corpus_of(tmp_path, content, END, r"(?:\w|\w\w)+[cd]", partial=True)
    workers: list[psutil.Process] = []

    def kill_one() -> None:
        wait_until(lambda: len(workers_at_work()) == 2, "two processes that count")
        workers.extend(workers_at_work())
        workers[0].kill()

    with ThreadPoolExecutor(1) as executor:
        executor.submit(kill_one)
        with pytest.raises(ChildProcessError) as died:
            processes.processes(corpus, threads=2, smallest_range=1)
    assert f"process died, bytes 120 to {len(content)} were not counted" in str(died.value)
    assert not any(worker.is_running() for worker in workers)


def test_script_without_a_guard_is_refused(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, b"ab<|e|>" * 40, END)
    script = tmp_path / "count.py"
    script.write_text(f"""
from variants.contract import Corpus
from variants.counting.processes import processes
processes({corpus!r}, threads=2, smallest_range=1)
""")
    done = ran(tmp_path, str(script))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"RuntimeError: counting in processes starts {script} again in each of them; put what it does under "
        'if __name__ == "__main__":'
    )


# Tables bigger than memory


@pytest.mark.parametrize(
    "count",
    [
        serial,
        native,
        functools.partial(native, threads=7, smallest_range=5000, buffer=4096),
        functools.partial(processes.processes, threads=2, smallest_range=5000),
    ],
)
def test_table_is_spilled_only_if_it_does_not_fit(tmp_path: Path, count: Any) -> None:
    words = (f"word{number} {number % 97}\n<|endoftext|>" for number in range(12_000))
    corpus, meter = corpus_of(tmp_path, "".join(words)), Meter()
    expected = list(serial(corpus).items())
    assert list(count(corpus, meter, memory=50_000_000).items()) == expected
    assert "runs_spilled" not in meter.tallies
    assert list(count(corpus, meter, memory=400_000).items()) == sorted(expected)
    assert meter.tallies["runs_spilled"] >= 1


def test_left_out_text_is_found_after_spilling(tmp_path: Path) -> None:
    left_out = "".join(f"a{number}b" for number in range(9000)) + "?"
    corpus = corpus_of(tmp_path, left_out, pattern="[a-z]+|[0-9]+")
    for count in (serial, native):
        with pytest.raises(LeftOut, match=f"first '\\?' at byte {len(left_out) - 1}"):
            count(corpus, memory=300)


def test_damaged_runs_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "sum").open("wb") as file:
        for offsets in ([0, 2**44], [-1, 2], [2, 1]):
            run = memoryview(b"ab"), memoryview(array("q", offsets)), memoryview(array("Q", [1]))
            with pytest.raises(ValueError, match="offsets do not rise"):
                built("_word_runs").merge([run], *[file.fileno()] * 3)


def test_merging_leaves_the_memory_of_its_caller_as_it_was(tmp_path: Path) -> None:
    words = WordCounts.from_items([(b"%08d" % number, number) for number in range(50_000)])
    private = mmap.mmap(-1, len(words.data), flags=mmap.MAP_PRIVATE)
    private[:] = words.data
    for data in (words.data, memoryview(private)):
        columns = data, words.offsets, words.counts
        before = [column.tobytes() for column in columns]
        with (tmp_path / "sum").open("wb") as file:
            built("_word_runs").merge([columns], *[file.fileno()] * 3)
        assert [column.tobytes() for column in columns] == before


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

COUNT_IN_LITTLE_ROOM = """
import os, resource, signal, sys
from variants.contract import Corpus
from variants.counting.native import native
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (280_000, 280_000))
sys.dont_write_bytecode = True  # what it imports would be kept cut short
before = os.listdir("/dev/fd")
try:
    native(Corpus(sys.argv[1]), threads=2, smallest_range=1000, memory=5_000_000, buffer=10_000)
except OSError as error:
    print(error)
print(len(os.listdir("/dev/fd")) - len(before))
"""


def test_full_disk_is_a_sentence_and_leaves_no_file_open(tmp_path: Path) -> None:
    """The first range has spilled runs already, and the last run of the second is too long."""
    letters = [*map("".join, itertools.product("abcdefghij", repeat=5))]
    many, few = " ".join(letters[:50_000]), " ".join(2000 * "x" + word for word in letters[:155])
    corpus = corpus_of(tmp_path, f"{many} <|endoftext|> {few}")
    sentence, left_open = ran(tmp_path, "-c", COUNT_IN_LITTLE_ROOM, corpus.path).stdout.splitlines()
    reason = os.strerror(errno.EFBIG)
    room = f"has no room for the words that counting.memory keeps out of memory ({reason})"
    assert room in sentence
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
