"""Replaying merges: every count and every choice is what recounting all words says, whatever list is replayed."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from harness.common import errors
from harness.proof import trainer_checks as differential
from harness.proof.explain import BY_TIES, ENDS, first_difference
from harness.proof.true_counts import DUPLICATE, MAXIMUM, TIE, TOO_RARE, UNKNOWN, WRONG, Best, replay
from harness.replay import main
from harness.tokenizers.merges_file import merges_text
from variants.contract import Merge, TieBreak, WordCounts

Words = dict[bytes, int]
GREATEST = TieBreak.GREATEST_BYTES
TEXT = "low low low low low lower lower widest widest widest newest newest newest newest newest newest"

patiently = settings(suppress_health_check=[HealthCheck.too_slow])
words_of_few_letters = some.dictionaries(
    some.lists(some.sampled_from(differential.ALPHABET), min_size=1, max_size=12).map(bytes),
    some.integers(1, 6) | some.integers(2**40, 2**40 + 2),
    max_size=6,
)


def recounted(words: Words, merges: Sequence[Merge]) -> tuple[list[tuple[int, Best]], Best, int]:
    """The plain reference: before every merge all pairs of all words are counted again."""
    texts = [([bytes((byte,)) for byte in word], weight) for word, weight in words.items()]
    ids = {bytes((byte,)): byte for byte in range(256)}
    told = []
    for merge in merges:
        counts = counted(texts)
        told.append((counts.get(merge, 0), best_of(counts, ids)))
        ids.setdefault(merge[0] + merge[1], len(ids))
        texts = [(merged(tokens, merge), weight) for tokens, weight in texts]
    return told, best_of(counted(texts), ids), sum(len(tokens) * weight for tokens, weight in texts)


def counted(texts: Sequence[tuple[list[bytes], int]]) -> dict[Merge, int]:
    counts: dict[Merge, int] = {}
    for tokens, weight in texts:
        for pair in zip(tokens, tokens[1:], strict=False):
            counts[pair] = counts.get(pair, 0) + weight
    return counts


def best_of(counts: dict[Merge, int], ids: dict[bytes, int]) -> Best:
    most = max(counts.values(), default=0)
    tied = [pair for pair in counts if counts[pair] == most]

    def taken(tie_break: TieBreak) -> Merge:
        return max(tied, key=lambda pair: [tie_break.key(ids[token], token) for token in pair])

    return Best(most, len(tied), {tie_break: taken(tie_break) for tie_break in TieBreak} if tied else {})


def merged(tokens: list[bytes], merge: Merge) -> list[bytes]:
    found, place = [], 0
    while place < len(tokens):
        step = 2 if tuple(tokens[place : place + 2]) == merge else 1
        found.append(b"".join(tokens[place : place + step]))
        place += step
    return found


def trained(words: Words, tie_break: TieBreak = GREATEST) -> list[Merge]:
    return list(differential.defined_merges(tuple(words.items()), 1000, tie_break, 1))


@patiently
@given(words_of_few_letters, some.sampled_from(TieBreak))
def test_what_the_definition_learns_is_right_under_its_tie_break(words: Words, tie_break: TieBreak) -> None:
    replayed = replay(WordCounts.from_items(words.items()), trained(words, tie_break))
    assert replayed.faults == []
    assert tie_break in replayed.tie_breaks
    assert (replayed.rest, replayed.stops_too_early(1000)) == (Best(0, 0, {}), False)


@patiently
@given(words_of_few_letters, some.sampled_from(TieBreak), some.data())
def test_every_count_and_choice_is_that_of_counting_again(words: Words, tie_break: TieBreak, data: Any) -> None:
    """Lists with merges left out, repeated, swapped, and made of other halves, so that tokens are made twice."""
    merges = trained(words, tie_break)
    for _ in range(data.draw(some.integers(0, 4)) if merges else 0):
        place, other = (data.draw(some.integers(0, len(merges) - 1)) for _ in range(2))
        token = b"".join(merges[place])
        cut = data.draw(some.integers(1, len(token) - 1))
        change = data.draw(some.sampled_from(["drop", "repeat", "swap", "split"]))
        if change == "drop" and len(merges) > 1:
            del merges[place]
        elif change == "repeat":
            merges.insert(other, merges[place])
        elif change == "swap":
            merges[place], merges[other] = merges[other], merges[place]
        else:
            merges.insert(other, (token[:cut], token[cut:]))
    replayed = replay(WordCounts.from_items(words.items()), merges)
    steps, rest, tokens = recounted(words, merges)
    assert [(step.count, step.best) for step in replayed.steps] == steps
    assert (replayed.rest, replayed.tokens) == (rest, tokens)
    assert replayed.bytes == sum(len(word) * weight for word, weight in words.items())


@pytest.mark.parametrize("seed", range(5))
def test_long_words_with_runs_are_followed_as_well(seed: int) -> None:
    words = {differential.two_letter_word(300 + seed): 3, b"a" * (seed + 40): 2, b"ab" * 30: 1}
    merges = trained(words)
    replayed = replay(WordCounts.from_items(words.items()), merges)
    assert [(step.count, step.best) for step in replayed.steps] == recounted(words, merges)[0]


def test_every_kind_of_merge_is_told() -> None:
    words = WordCounts.from_items([(b"ab", 5), (b"cd", 5), (b"ef", 7), (b"gh", 2), (b"ij", 1)])
    merges = [
        (b"e", b"f"),
        (b"a", b"b"),
        (b"g", b"h"),
        (b"e", b"f"),
        (b"xy", b"z"),
        (b"c", b"f"),
        (b"c", b"d"),
        (b"i", b"j"),
    ]
    replayed = replay(words, merges, min_count=2)
    judged = [(step.judgement, step.count, step.best.count) for step in replayed.steps]
    assert judged == [
        (MAXIMUM, 7, 7),
        (TIE, 5, 5),
        (WRONG, 2, 5),
        (DUPLICATE, 0, 5),
        (UNKNOWN, 0, 5),
        (WRONG, 0, 5),
        (MAXIMUM, 5, 5),
        (TOO_RARE, 1, 1),
    ]
    assert replayed.steps[1].right_under == (TieBreak.SMALLEST_BYTES, TieBreak.HUGGINGFACE, TieBreak.RAW_BYTES)
    assert replayed.tie_breaks == ()


def test_a_list_can_be_right_up_to_ties_and_under_no_tie_break() -> None:
    words = WordCounts.from_items([(b"ab", 5), (b"cd", 5), (b"ef", 5)])
    replayed = replay(words, [(b"c", b"d"), (b"a", b"b"), (b"e", b"f")])
    assert (replayed.faults, replayed.tie_breaks) == ([], ())
    first = replayed.first_against(GREATEST)
    assert first is not None
    assert first.number == 1


def test_a_token_that_nothing_has_made_is_known_once_it_is_joined() -> None:
    words = WordCounts.from_items([(b"abc", 5)])
    replayed = replay(words, [(b"bc", b"d"), (b"bcd", b"a"), (b"a", b"b")])
    assert [step.judgement for step in replayed.steps] == [UNKNOWN, WRONG, TIE]


def test_merges_that_end_while_pairs_are_left_stop_too_early_unless_those_are_too_rare() -> None:
    words = WordCounts.from_items([(b"ab", 5), (b"cd", 3)])
    assert replay(words, [(b"a", b"b")]).stops_too_early(2)
    assert not replay(words, [(b"a", b"b")]).stops_too_early(1)
    assert not replay(words, [(b"a", b"b")], min_count=4).stops_too_early(2)
    assert not replay(words, [(b"a", b"b"), (b"c", b"d")]).stops_too_early(5)


def test_words_whose_bytes_pass_64_bits_are_counted() -> None:
    words = WordCounts.from_items([(b"ab", 2**63 - 1), (b"c", 2**63 - 1)])
    replayed = replay(words, [(b"a", b"b")])
    assert (replayed.tokens, replayed.bytes) == (2 * (2**63 - 1), 3 * (2**63 - 1))


def test_no_words_hold_no_pair() -> None:
    replayed = replay(WordCounts.from_items([]), [(b"a", b"b")])
    assert [(step.judgement, step.count, step.best) for step in replayed.steps] == [(WRONG, 0, Best(0, 0, {}))]


# The command


@pytest.fixture
def book(tmp_path: Path) -> str:
    path = tmp_path / "book.txt"
    path.write_text(TEXT)
    return str(path)


@pytest.fixture
def merges_of(tmp_path: Path) -> Callable[[TieBreak], Path]:
    """Writes what the definition learns from the book."""

    def write(tie_break: TieBreak) -> Path:
        first, *others = TEXT.split()
        words: Words = {first.encode(): 1}
        for word in others:
            words[f" {word}".encode()] = words.get(f" {word}".encode(), 0) + 1
        path = tmp_path / f"{tie_break.value}.txt"
        path.write_bytes(merges_text(trained(words, tie_break)))
        return path

    return write


@pytest.mark.slow
def test_programs_are_told_of_every_merge(
    book: str, merges_of: Callable[[TieBreak], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = merges_of(TieBreak.HUGGINGFACE)
    assert main([str(path), "--data", book, "--format", "json"]) == errors.OK
    told = json.loads(capsys.readouterr().out)
    assert main([str(path), "--data", book, "--format", "csv"]) == errors.OK
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert len(rows) == len(told["steps"]) == told["merges"]
    assert "huggingface" in told["tie_breaks"]
    for row, step in zip(rows, told["steps"], strict=True):
        assert row == {**{key: str(step[key]) for key in row}, "right_under": " ".join(step["right_under"])}
        assert (step["judgement"] == "maximum") == ("choices" not in step)


# --against

AB, CD, EF, GH = (b"a", b"b"), (b"c", b"d"), (b"e", b"f"), (b"g", b"h")


@pytest.mark.parametrize(
    ("a", "b", "cause", "place"),
    [
        ([EF, CD, AB], [EF, CD, AB], None, None),
        ([], [], None, None),
        ([EF, CD, AB], [EF, AB, CD], BY_TIES, 1),
        ([EF, CD, AB], [EF, CD, GH], WRONG, 2),
        ([EF, CD], [EF, CD, AB], ENDS, 2),
        ([CD], [EF], WRONG, 0),
    ],
)
def test_first_difference_has_a_cause(a: list[Merge], b: list[Merge], cause: str | None, place: int | None) -> None:
    words = WordCounts.from_items([(b"ab", 5), (b"cd", 5), (b"ef", 7), (b"gh", 2)])
    replayed = replay(words, a), replay(words, b)
    for one, other in (replayed, replayed[::-1]):
        found = first_difference(one, other)
        assert (found and found.cause, found and found.place) == (cause, place)


@patiently
@given(words_of_few_letters, some.sampled_from(TieBreak), some.sampled_from(TieBreak))
def test_tie_breaks_set_lists_apart_by_ties_alone(words: Words, one: TieBreak, other: TieBreak) -> None:
    lists = [trained(words, tie_break) for tie_break in (one, other)]
    a, b = (replay(WordCounts.from_items(words.items()), merges) for merges in lists)
    found = first_difference(a, b)
    assert (found is None) == (lists[0] == lists[1])
    assert found is None or found.cause == BY_TIES
    assert found is None or one in (found.steps[0] or pytest.fail("it has ended")).right_under


def test_the_first_difference_of_two_files_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (("book.txt", "ab ab cd cd aaaa aaaa aaaa xyz xyz"), ("a", "a a\naa aa\nx y\n")):
        (tmp_path / name).write_text(text)
    (tmp_path / "b").write_text("61 61\n6161 6161\n20 61616161\n")
    asked = [str(tmp_path / "a"), "--data", str(tmp_path / "book.txt"), "--against"]
    assert main([*asked, str(tmp_path / "b")]) == errors.MISMATCH
    shown = capsys.readouterr().out
    assert "first difference: merge 3, 2 equal before it" in shown
    assert "A merge 3: b'x' + b'y', 2 times; the most frequent is b' ' + b'aaaa', 3 times\n" in shown
    assert "B merge 3: b' ' + b'aaaa', 3 times, the most frequent pair of its moment" in shown
    assert "in common: 2 of 4 merges, 2 of 4 tokens" in shown
    assert "A: 1 merge is not right, the first is merge 3" in shown
    assert main([*asked, str(tmp_path / "a")]) == errors.OK
    assert "the lists are equal" in capsys.readouterr().out


@pytest.mark.slow
def test_a_variant_makes_as_many_merges_as_the_file(
    book: str, merges_of: Callable[[TieBreak], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [str(merges_of(GREATEST)), "--data", book, "--format", "json", "--against"]
    assert main([*asked, "heap"]) == errors.OK
    told = json.loads(capsys.readouterr().out)
    assert (told["first_difference"], told["a"]) == (None, told["b"])
    assert main([*asked, "heap", "tie_break=raw_bytes"]) == errors.MISMATCH
    first = json.loads(capsys.readouterr().out)["first_difference"]
    assert first["cause"] == "by_ties"
    assert "raw_bytes" in first["b"]["right_under"]


@pytest.mark.slow
def test_a_wrong_trainer_of_ones_own_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[1] / "support")
    (tmp_path / "book.txt").write_text("aaa aaa aaa bc bc bc bc\n" * 3)
    (tmp_path / "m.txt").write_text("a a\n")
    asked = [str(tmp_path / "m.txt"), "--data", str(tmp_path / "book.txt"), "--against"]
    assert main([*asked, "sabotaged:non_overlapping_count"]) == errors.MISMATCH
    assert "first difference: merge 1, 0 equal before it" in capsys.readouterr().out
    assert main([*asked, "no.such:train"]) == errors.UNMEASURED
    assert "no.such:train made no merges (" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (["absent.txt"], "cannot read absent.txt (No such file or directory); name a file of merges"),
        (["{merges}", "--data", "no_such_data"], "unknown data 'no_such_data'"),
        (["{merges}", "--data", "absent.txt"], "there is no file absent.txt, and no data set of that name"),
        (["{merges}", "no_such_data"], "'no_such_data' is not of the form NAME=VALUE"),
        (["{merges}", "tie_break=mine"], "unknown tie_break 'mine'"),
        (["{merges}", "tie_break=own"], "tie_break=own is a trainer's own; name the one"),
        (["{merges}", "vocab_size=3"], "vocab_size=3 is too small"),
        (["{merges}", "--against", "no_such"], "unknown variant 'no_such'"),
        (
            ["{merges}", "--against", "no_such.txt"],
            "there is no file of merges no_such.txt",
        ),
        (["{merges}", "--against", "heap", "--format", "csv"], "--against has no CSV; use --format json"),
    ],
)
def test_bad_input_is_answered_with_one_sentence_and_2(
    asked: list[str], answer: str, merges_of: Callable[[TieBreak], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = merges_of(GREATEST)
    assert main([argument.format(merges=path) for argument in asked]) == errors.USAGE
    shown = capsys.readouterr()
    assert (shown.out, answer in shown.err, shown.err.count("\n")) == ("", True, 1)
