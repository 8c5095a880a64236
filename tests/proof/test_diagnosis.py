"""The answer of conformance names the fault that is there, on words as small as they can be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.__main__ import main
from harness.common.errors import MISMATCH
from harness.conformance import trainer_checks
from harness.proof.checks import TrainerCall, outcome_of, smallest_failure
from harness.proof.diagnosis import fault_of
from variants import naive
from variants.contract import Merge, WordCounts

CHECKS = {check.name: check for check in trainer_checks()}
LONG = "check_run_of_70000"


def with_merges(change: Callable[[list[Merge]], Any]) -> Callable[..., Any]:
    """A trainer that changes the right merges."""

    def train(word_counts: WordCounts, num_merges: int) -> Any:
        return change(naive.train(word_counts, num_merges))

    return train


def refuses_long_words(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    if max(map(len, word_counts), default=0) > 4096:
        raise ValueError("too long")
    return naive.train(word_counts, num_merges)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda merges: [list(merge) for merge in merges], "merge 1 is a list, [b"),
        (lambda merges: merges[:-1], "is missing: "),
        (lambda merges: [*merges, *merges[-1:]], "is one too many: the list ends after "),
        (
            lambda merges: merges and [(b"q", b"q"), *merges[1:]],
            "merge 1 does not occur: (b'q', b'q'); ",
        ),
        (lambda _: None, "it returned NoneType, not a list of merges"),
    ],
)
def test_the_fault_of_the_smallest_words_is_named(
    change: Callable[[list[Merge]], Any], fault: str
) -> None:
    wrong = with_merges(change)
    named, _ = smallest_failure(outcome_of(CHECKS["check_worked_example[C18]"], wrong), wrong)
    assert fault in named


@pytest.mark.parametrize(
    ("words", "got", "fault"),
    [
        (
            {b"abc": 2},
            [(b"a", b"b")],
            "merge 1 breaks a tie otherwise: (b'a', b'b') and (b'b', b'c') have count 2, and"
            " greatest_bytes takes (b'b', b'c')",
        ),
        (
            {b"ab": 1, b"cd": 2},
            [(b"a", b"b")],
            "merge 1 is less frequent: (b'a', b'b') has count 1, and (b'c', b'd') has count 2",
        ),
        ({b"aaa": 1}, [(b"a", b"a")], "merge 2 is missing: (b'aa', b'a') has count 1"),
    ],
)
def test_a_wrong_merge_is_explained_by_the_counts_at_its_moment(
    words: dict[bytes, int], got: list[Merge], fault: str
) -> None:
    want = naive.train(WordCounts.from_items(words.items()), 9)
    assert fault_of(words, got, want, "greatest_bytes") == fault


def test_an_error_keeps_its_type_and_its_line_and_the_test_stays_short() -> None:
    outcome = outcome_of(CHECKS[LONG], refuses_long_words)
    fault, test = smallest_failure(outcome, refuses_long_words)
    assert fault.startswith("raised ValueError: too long (test_diagnosis.py:")
    assert "[(b'a' * " in test
    assert max(map(len, test.splitlines())) < 120
    assert len(test.splitlines()) < 12


def test_a_test_of_many_merges_asserts_the_first_that_differs() -> None:
    words = {b"abcdefghijklmnop": 1}
    call = TrainerCall(words, 99)
    right = call.defined()
    got = [*right[:9], (b"q", b"q")]
    test = call.as_test(["from variants.naive import train"], "train", [], got)
    assert f"assert merges[9:10] == [{right[9]}]" in test


OF_A_STUDENT = """
from collections import Counter
from pathlib import Path

from variants import naive
from variants.contract import WordCounts


def {count_words}(corpus):
    return WordCounts.from_items(Counter(Path(corpus.path).read_bytes().split()).items())


def train(corpus, num_merges):
    return naive.train({count_words}(corpus), num_merges)
"""


@pytest.mark.parametrize(
    ("count_words", "reason"),
    [
        ("count_words", "its words differ in 5 words: 'low' has count 60, not 20; merge "),
        (
            "words",
            "it reads the text itself, so usually its words differ: compare them with python",
        ),
    ],
)
def test_words_of_a_trainer_that_reads_the_text_are_compared_first(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    count_words: str,
    reason: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    Path("mine.py").write_text(OF_A_STUDENT.replace("{count_words}", count_words))
    Path("book.txt").write_text("low low low lower lower\n" * 20)
    assert main(["variants=mine:train", "data.path=book.txt", "vocab_size=262"]) == MISMATCH
    assert reason in capsys.readouterr().out
