"""The word counters where the conformance suite does not reach: streaming, cutting, processes that
fail, tallies.
"""

from __future__ import annotations

import functools
import random
import tracemalloc
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import regex
from rows import rows_beside
from scanned_texts import counted, random_content
from workbench import corpus_of, first_fast, ran, wait_until

from harness.proof.cases import words_from
from variants.contract import GPT2_PATTERN, Corpus, LeftOut, Meter, Unavailable
from variants.counting import pretokenize, processes
from variants.counting.native import native
from variants.counting.pretokenize import serial, split_documents

END = ("<|e|>",)


def words_by_definition(
    content: bytes, special_tokens: tuple[str, ...], errors: str, pattern: str | None
) -> tuple[list[tuple[bytes, int]], dict[str, int]] | int:
    """Semantics 1 to 4 on the whole text at once: the words in the order in which they first occur,
    with the tallies, or the offset of the first bad byte.
    """
    # Raw bytes are read as so many characters.
    encoding = "utf-8" if pattern else "latin-1"
    try:
        text = content.decode(encoding, errors)
    except UnicodeDecodeError as error:
        return error.start
    longest_first = sorted((token.encode().decode(encoding) for token in special_tokens), key=len)
    divider = "|".join(map(regex.escape, reversed(longest_first)))
    documents = regex.split(divider, text) if divider else [text]

    words = Counter[str]()
    number = 0
    for document in documents:
        words.update(filter(None, regex.findall(pattern or "(?s:.+)", document)))
        number += bool(document.encode(encoding).strip())
    tallies = {"bytes_scanned": len(content), "documents": number}
    return [(word.encode(encoding), count) for word, count in words.items()], tallies


def one_process(*pool: Any, initializer: Any, initargs: Any) -> ThreadPoolExecutor:
    """Threads in place of processes, which would take a second each to start."""
    return ThreadPoolExecutor(pool[0], initializer=initializer, initargs=initargs)


@pytest.mark.parametrize("block", first_fast(range(20)))
def test_counters_are_the_definition_at_any_chunk_size_and_width(
    tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "ProcessPoolExecutor", one_process)
    chance = random.Random(block)
    for _ in range(80):
        content, special_tokens = random_content(chance)
        errors, pattern = chance.choice(("strict", "replace")), chance.choice((GPT2_PATTERN, None))
        monkeypatch.setattr(pretokenize, "CHUNK_BYTES", chance.randint(1, 9))
        narrow = {"threads": chance.randint(1, 9), "smallest_range": 1}

        expected = words_by_definition(content, special_tokens, errors, pattern)
        corpus = corpus_of(tmp_path, content, special_tokens, pattern, errors)
        assert counted(serial, corpus) == expected
        assert counted(processes.processes, corpus, **narrow) == expected
        assert counted(native, corpus, **narrow) == expected


@pytest.mark.parametrize("row", rows_beside(__file__, "counting.toml"))
def test_whole_matches_are_the_words_and_what_cannot_be_counted_is_refused(
    row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("ab ab c")
    tokens = tuple(row.get("special_tokens", ()))
    corpus = Corpus(row.get("file", "text"), tokens, row.get("pattern"), partial=True)
    counters = {"serial": serial, "native": native, "processes": processes.processes}
    count = functools.partial(counters[row.get("counter", "serial")], corpus, **row.get("how", {}))

    if "refused" in row:
        with pytest.raises((ValueError, OSError, Unavailable)) as refused:
            count()
        assert str(refused.value).startswith(row["refused"])
    else:
        assert list(count().items()) == list(words_from(row["words"]).items())


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


def test_small_file_stays_in_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(processes, "ProcessPoolExecutor")
    corpus = corpus_of(tmp_path, b"ab<|e|>" * 40, END)
    assert processes.processes(corpus, threads=16) == serial(corpus)


def workers_at_work() -> list[psutil.Process]:
    """Those that have used some time: the first range is then done, and they are in the rest."""
    children = psutil.Process().children()
    workers = (child for child in children if "spawn_main" in " ".join(child.cmdline()))
    return [worker for worker in workers if worker.cpu_times().user >= 0.5]


@pytest.mark.slow
def test_killed_process_ends_the_run_with_the_bytes_not_counted(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
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
    assert capfd.readouterr().err == ""
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
