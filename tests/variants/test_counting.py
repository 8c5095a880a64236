"""The word counters where the conformance suite does not reach: streaming, cutting, processes that
fail, tallies.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tracemalloc
from collections import Counter
from pathlib import Path

import psutil
import pytest
import regex
from exploring import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from scanned_texts import BAD, PIECES, SPECIAL_TOKENS
from workbench import corpus_of

from variants.contract import GPT2_PATTERN, Corpus, InvalidText, LeftOut, Meter
from variants.counting import pretokenize, processes
from variants.counting.native import native
from variants.counting.pretokenize import serial, split_documents

REPOSITORY = Path(__file__).parents[2]
any_files = st.lists(st.sampled_from([*map(str.encode, PIECES), *BAD]), max_size=40).map(b"".join)
one_call = examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def words_by_definition(
    content: bytes, special_tokens: tuple[str, ...], errors: str
) -> list[tuple[bytes, int]]:
    """Semantics 1 to 4 on the whole text at once; the words in the order in which they first
    occur.
    """
    text = content.decode("utf-8", errors)
    longest_first = map(regex.escape, sorted(special_tokens, key=len, reverse=True))
    documents = regex.split("|".join(longest_first), text) if special_tokens else [text]
    words = Counter(
        match.group().encode() for part in documents for match in regex.finditer(GPT2_PATTERN, part)
    )
    return list(words.items())


def counted_by_ranges(corpus: Corpus, number: int) -> tuple[list[tuple[bytes, int]], int]:
    """What `processes` does with the ranges it cuts, in this process: words in order, and
    documents.
    """
    size = Path(corpus.path).stat().st_size
    ranges = pretokenize.cut(corpus, size, number) or [(0, size)]
    assert [start for start, _ in ranges[1:]] == [stop for _, stop in ranges[:-1]]
    assert (ranges[0][0], ranges[-1][1]) == (0, size)
    processes.share([0] * (len(ranges) + 1))
    summed: dict[bytes, int] = {}
    documents = 0
    for place, (start, stop) in enumerate(ranges):
        documents += processes.add_table(summed, processes.count_range(corpus, place, start, stop))
    return list(summed.items()), documents


@given(
    any_files,
    st.sampled_from(SPECIAL_TOKENS),
    st.integers(1, 9),
    st.sampled_from(["strict", "replace"]),
)
@one_call
def test_serial_is_the_definition_at_any_chunk_size(
    tmp_path: Path, content: bytes, special_tokens: tuple[str, ...], chunk_bytes: int, errors: str
) -> None:
    corpus = corpus_of(tmp_path, content, special_tokens, errors=errors)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pretokenize, "CHUNK_BYTES", chunk_bytes)
        try:
            want = words_by_definition(content, special_tokens, errors)
        except UnicodeDecodeError as error:
            with pytest.raises(InvalidText) as raised:
                serial(corpus)
            assert raised.value.offset == error.start  # noqa: PT017
        else:
            assert list(serial(corpus).items()) == want


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


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"(\w)(\w*)|(\s)", [(b"ab", 2), (b" ", 2), (b"c", 1)]),
        (r"\w*", [(b"ab", 2), (b"c", 1)]),
        (r"(?=a)|c", [(b"c", 1)]),
        (r"a\Kb", [(b"b", 2)]),
        (r"(?r)\w", [(b"c", 1), (b"b", 2), (b"a", 2)]),
        (None, [(b"ab ab c", 1)]),
    ],
)
def test_whole_matches_that_are_not_empty_are_the_words(
    tmp_path: Path, pattern: str | None, words: list[tuple[bytes, int]]
) -> None:
    corpus = corpus_of(tmp_path, b"ab ab c", (), pattern, partial=True)
    assert list(serial(corpus).items()) == words


def test_tallies_are_of_the_file_as_it_lies_there(tmp_path: Path) -> None:
    for content in (
        b"ab cd<|e|>ab<|e|>",
        b"<|e|> \n <|e|>a",
        b"",
        b"<|e|>",
        b"a\xff<|e|>b\xe4\xb8",
    ):
        meter = Meter()
        serial(corpus_of(tmp_path, content, ("<|e|>",), errors="replace"), meter)
        documents = sum(bool(part.strip()) for part in content.split(b"<|e|>"))
        assert meter.tallies == {"bytes_scanned": len(content), "documents": documents}


# ---- patterns that leave text out


@given(
    any_files,
    st.sampled_from(SPECIAL_TOKENS),
    st.sampled_from([r"\w+", r"[^\s]+", r"\p{L}+|\s+", r"(?r)[^ab]+", r"x|\b"]),
)
@one_call
def test_the_first_text_that_a_pattern_leaves_out_is_named(
    tmp_path: Path, content: bytes, special_tokens: tuple[str, ...], pattern: str
) -> None:
    text = content.decode(errors="replace")
    path = corpus_of(tmp_path, text.encode()).path
    expected = first_left_out(text, special_tokens, pattern)
    for count in (serial, native):
        if expected is None:
            assert count(Corpus(path, special_tokens, pattern)) == count(
                Corpus(path, special_tokens, pattern, partial=True)
            )
            continue
        with pytest.raises(LeftOut) as raised:
            count(Corpus(path, special_tokens, pattern))
        assert (raised.value.offset, raised.value.text) == expected
        words = [
            word.decode() for word in count(Corpus(path, special_tokens, pattern, partial=True))
        ]
        assert all(regex.search(pattern, word) for word in words)


def first_left_out(
    text: str, special_tokens: tuple[str, ...], pattern: str
) -> tuple[int, str] | None:
    """By definition: the first character between two special tokens that no match covers, and what
    follows it.
    """
    for content, offset in split_documents([text.encode()], special_tokens):
        document = content.decode()
        covered = {
            place for match in regex.finditer(pattern, document) for place in range(*match.span())
        }
        gap = regex.search(
            " +", "".join("x" if place in covered else " " for place in range(len(document)))
        )
        if gap:
            start, stop = gap.span()
            return offset + len(document[:start].encode()), document[start : min(stop, start + 40)]
    return None


def test_text_left_out_late_is_found_when_all_is_counted(tmp_path: Path) -> None:
    content = b"ab cd <|e|>" * 2000 + "é!<|e|>".encode() + b"ab cd!<|e|>" * 2000
    corpus = corpus_of(tmp_path, content, ("<|e|>",), r"[\w ]+")
    with pytest.raises(
        LeftOut, match=r"leaves out text, first '!' at byte 22002; .* pattern\.partial=true"
    ):
        processes.processes(corpus, threads=2, smallest_range=1)
    meter = Meter()
    # one that matches nothing is noticed before all is counted
    with pytest.raises(LeftOut, match="first 'ab cd "):
        serial(Corpus(corpus.path, (), "Q+"), meter)
    assert meter.done == 0


# ---- cutting


@given(
    any_files,
    st.sampled_from(SPECIAL_TOKENS),
    st.integers(2, 9),
    st.integers(1, 9),
    st.sampled_from(["strict", "replace"]),
    st.sampled_from([GPT2_PATTERN, None]),
)
@examples(200, parent=one_call)
def test_ranges_have_the_words_of_the_whole_file(
    tmp_path: Path,
    content: bytes,
    special_tokens: tuple[str, ...],
    number: int,
    chunk_bytes: int,
    errors: str,
    pattern: str | None,
) -> None:
    corpus = corpus_of(tmp_path, content, special_tokens, pattern, errors)
    meter = Meter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pretokenize, "CHUNK_BYTES", chunk_bytes)
        patch.setattr(processes, "_scanned", None)
        try:
            want = list(serial(corpus, meter).items()), meter.tallies["documents"]
        except InvalidText as error:
            with pytest.raises(InvalidText) as raised:
                counted_by_ranges(corpus, number)
            assert raised.value.offset == error.offset  # noqa: PT017
        else:
            assert counted_by_ranges(corpus, number) == want


# ---- processes

CONTENT = (
    "".join(f"word{number % 7} 一{number}\r\n <|e|>" for number in range(40)).encode() + b"tail"
)


def test_small_file_stays_in_one_process_and_widths_below_one_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(processes, "ProcessPoolExecutor")
    corpus = corpus_of(tmp_path, CONTENT, ("<|e|>",))
    assert processes.processes(corpus, threads=16) == serial(corpus)
    for threads, smallest_range in ((0, 1), (1, 0), (2, -1)):
        with pytest.raises(ValueError, match="is a number of 1 or more"):
            processes.processes(corpus, threads=threads, smallest_range=smallest_range)


# The pattern takes for ever on the long run of letters, so a process is certainly at work when it
# is killed.
COUNT_FOR_EVER = r"""
import sys
from variants.contract import Corpus
from variants.counting.processes import processes

if __name__ == "__main__":
    try:
        processes(Corpus(sys.argv[1], ("<|e|>",), r"(?:\w|\w\w)+[cd]", partial=True), threads=2, smallest_range=1)
    except ChildProcessError as error:
        print(error)
"""


def test_a_killed_process_ends_the_run_with_the_bytes_not_counted(tmp_path: Path) -> None:
    content = b"ab " * 40 + b"<|e|>" + b"a" * 60 + b"!<|e|>" + b"a" * 60 + b"!"
    script = tmp_path / "count.py"
    script.write_text(COUNT_FOR_EVER)
    counting = subprocess.Popen(
        [sys.executable, str(script), corpus_of(tmp_path, content).path],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        workers = children_at_work(counting)
        workers[0].kill()
        output, noise = counting.communicate(timeout=60)
    finally:
        counting.kill()
    assert counting.returncode == 0
    assert (
        f"a counting process died, bytes 120 to {len(content)} were not counted" in output.decode()
    )
    assert noise == b""
    assert not any(worker.is_running() for worker in workers)


def test_script_without_a_guard_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "count.py"
    script.write_text(COUNT_FOR_EVER.replace('if __name__ == "__main__":', "if True:"))
    counting = [sys.executable, str(script), corpus_of(tmp_path, CONTENT).path]
    done = subprocess.run(
        counting, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"RuntimeError: counting in processes starts {script} again in each of them; put what it does under "
        'if __name__ == "__main__":'
    )


def children_at_work(parent: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The counting processes, once both have used some time: the first range is then done, and they
    are in the rest.
    """
    while parent.poll() is None:
        children = psutil.Process(parent.pid).children()
        workers = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
        if len(workers) == 2 and all(worker.cpu_times().user >= 0.5 for worker in workers):
            return workers
        time.sleep(0.05)
    raise AssertionError(parent.communicate())


def test_raw_bytes_are_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "corpus"
    path.write_bytes(b"a\xff<|e|>\xfe\xfe" * 3)
    corpus = Corpus(str(path), ("<|e|>",), None, "replace")
    expected = {b"a\xff": 1, b"\xfe\xfea\xff": 2, b"\xfe\xfe": 1}
    assert dict(serial(corpus)) == expected
    assert dict(processes.processes(corpus, threads=3, smallest_range=1)) == expected
    assert dict(native(corpus)) == expected
