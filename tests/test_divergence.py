"""Two lists of merges: the first difference has a cause, and the command names it with the true counts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from harness.common import errors
from harness.divergence import main
from harness.proof import differential
from harness.proof.divergence import BY_TIES, ENDS, EQUAL, WRONG, divergence, drift_of
from variants.contract import Merge, TieBreak, WordCounts

TESTS = Path(__file__).parent
WORDS = WordCounts.from_items([(b"ab", 5), (b"cd", 5), (b"ef", 7), (b"gh", 2)])
AB, CD, EF, GH = (b"a", b"b"), (b"c", b"d"), (b"e", b"f"), (b"g", b"h")
BOOK = "ab ab cd cd aaaa aaaa aaaa xyz xyz"


@pytest.mark.parametrize(
    ("a", "b", "cause", "place"),
    [
        ([EF, CD, AB], [EF, CD, AB], EQUAL, None),
        ([], [], EQUAL, None),
        ([EF, CD, AB], [EF, AB, CD], BY_TIES, 1),
        ([EF, CD, AB], [EF, CD, GH], WRONG, 2),
        ([EF, CD], [EF, CD, AB], ENDS, 2),
        ([CD], [EF], WRONG, 0),
    ],
)
def test_the_first_difference_has_a_cause(a: list[Merge], b: list[Merge], cause: str, place: int | None) -> None:
    parted = divergence(WORDS, a, b)
    assert (parted.cause, parted.place) == (cause, place)
    mirrored = divergence(WORDS, b, a)
    assert (mirrored.cause, mirrored.candidates) == (cause, parted.candidates[::-1])


def test_how_far_lists_are_apart_is_counted() -> None:
    drift = drift_of(divergence(WORDS, [EF, CD, AB], [EF, AB, GH]))
    assert vars(drift) == {
        "merges_in_common": 2,
        "at_the_same_place": 1,
        "tokens_in_common": 2,
        "tokens_of_either": 4,
    }


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    some.dictionaries(
        some.lists(some.sampled_from(differential.ALPHABET), min_size=1, max_size=10).map(bytes),
        some.integers(1, 4),
        max_size=6,
    ),
    some.sampled_from(TieBreak),
    some.sampled_from(TieBreak),
)
def test_tie_breaks_set_lists_apart_by_ties_alone(words: dict[bytes, int], one: TieBreak, other: TieBreak) -> None:
    items = tuple(words.items())
    lists = [differential.defined_merges(items, 1000, tie_break, 1) for tie_break in (one, other)]
    parted = divergence(WordCounts.from_items(items), *lists)
    assert parted.only_ties
    assert parted.cause == (EQUAL if lists[0] == lists[1] else BY_TIES)
    assert parted.cause == EQUAL or one in (parted.candidates[0] or pytest.fail("it has ended")).right_under


# The command


@pytest.fixture
def book(tmp_path: Path) -> str:
    path = tmp_path / "book.txt"
    path.write_text(BOOK)
    return str(path)


def merges(folder: Path, name: str, *lines: str) -> str:
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def test_a_tie_is_told_with_the_rules_that_break_it(
    tmp_path: Path, book: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = merges(tmp_path, "a", "a a", "aa aa", "x y"), merges(tmp_path, "b", "a a", "aa aa", "Ġ aaaa")
    assert main([first, second, "--data", book]) == errors.MISMATCH
    shown = capsys.readouterr().out
    assert "first difference: merge 2, " not in shown
    assert "first difference: merge 3, 2 equal before it" in shown
    assert "A takes b'x' + b'y', 2 times: wrong" in shown
    assert "B takes b' ' + b'aaaa', 3 times: right, the most frequent pair" in shown
    assert "the most frequent is b' ' + b'aaaa', 3 times" in shown
    assert "A: 1 merge is not right, the first is merge 3" in shown


@pytest.mark.slow
def test_equal_lists_end_with_0_whatever_their_form(
    tmp_path: Path, book: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = merges(tmp_path, "a", "a a", "aa aa"), merges(tmp_path, "b", "61 61", "6161 6161")
    assert main([first, second, "--data", book]) == errors.OK
    assert "equal: 2 merges, one by one" in capsys.readouterr().out


@pytest.mark.slow
def test_a_variant_makes_as_many_merges_as_the_file_beside_it(
    tmp_path: Path, book: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = merges(tmp_path, "a", "a a", "aa aa")
    assert main(["heap", path, "--data", book, "--format", "json"]) == errors.OK
    told = json.loads(capsys.readouterr().out)
    assert (told["cause"], told["a"]["merges"], told["first_difference"]) == ("equal", 2, None)


@pytest.mark.slow
def test_each_side_has_overrides_of_its_own(book: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["heap", "heap", "--data", book, "vocab_size=264", "--b", "tie_break=raw_bytes", "--format", "json"]
    assert main(asked) == errors.MISMATCH
    told = json.loads(capsys.readouterr().out)
    assert (told["cause"], told["only_ties"]) == ("by_ties", True)
    first = told["first_difference"]
    assert first["a"]["count"] == first["b"]["count"] == first["best"]["count"]
    assert "raw_bytes" in first["b"]["right_under"]
    assert told["drift"]["merges_in_common"] <= 7


@pytest.mark.slow
def test_a_target_is_trained_in_a_process_of_its_own_and_found_wrong(tmp_path: Path) -> None:
    path = tmp_path / "book.txt"
    path.write_text("aaa aaa aaa bc bc bc bc\n" * 3)
    ended = subprocess.run(
        [sys.executable, "-m", "harness.divergence", "heap", "sabotaged:non_overlapping_count", "--data", str(path)],
        cwd=TESTS,
        env={**os.environ, "PYTHONPATH": str(TESTS.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (errors.MISMATCH, "")
    assert "B: " in ended.stdout
    assert "first difference: merge 1, no merge before it" in ended.stdout


@pytest.mark.slow
def test_a_trainer_takes_the_tie_break_that_is_its_own(book: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tokenizers")
    assert main(["peer_huggingface", "heap", "--data", book, "--b", "tie_break=huggingface"]) == errors.OK
    assert "A: peer_huggingface, 10 merges (trained with tie_break=huggingface," in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "code", "answer"),
    [
        (["heap", "no_such"], errors.USAGE, "unknown variant 'no_such'"),
        (["heap", "no_such.txt"], errors.USAGE, "there is no file of merges no_such.txt, and no variant of that name"),
        pytest.param(["heap", "no.such:train"], errors.UNMEASURED, "made no merges (", marks=pytest.mark.slow),
        (["heap", "heap", "--b", "pattern=line"], errors.USAGE, "reads the data set in another way; set it for both"),
        pytest.param(
            *(["heap", "heap", "--b", "interpreter=no_python"], errors.UNMEASURED, "heap made no merges ("),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_bad_input_is_answered_with_one_sentence(
    asked: list[str], code: int, answer: str, book: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*asked, f"data.path={book}"]) == code
    shown = capsys.readouterr()
    assert (shown.out, answer in shown.err, shown.err.count("\n")) == ("", True, 1)
