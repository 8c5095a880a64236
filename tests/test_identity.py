"""Identity classes: what each takes, and that a run decides them by replaying where no reference does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from exploring import examples
from hypothesis import given
from hypothesis import strategies as st
from workbench import HEAP, TESTS, cell_of, reading_of, settings_for

from harness.common.errors import MISMATCH, OK
from harness.common.registry import VariantCard
from harness.proof.true_counts import replay
from harness.runs import prove, smallest
from harness.runs.cells import TrainCell
from harness.runs.identity import Identity, identity_of
from harness.runs.record import Record
from harness.runs.record_keys import BY_DESIGN, IDENTICAL, UP_TO_TIES, WRONG, complaints
from harness.runs.running import exit_code
from harness.runs.schedule import Run
from harness.runs.smallest import search
from harness.runs.verdict import Claim, agreement
from harness.worker.calling import OWN, feeding_of, own_tie_break
from variants import heap, minbpe
from variants.contract import Merge, TieBreak, WordCounts

pytestmark = pytest.mark.usefixtures("measured_once")

WORDS = WordCounts.from_items([(b"ab", 2), (b"cd", 2), (b"ef", 2), (b"gh", 1)])


def pairs(*texts: str) -> list[Merge]:
    return [(text[:1].encode(), text[1:].encode()) for text in texts]


def identity(merges: Sequence[Merge], num_merges: int = 4, by_design: str | None = None) -> Any:
    return identity_of(replay(WORDS, merges), num_merges, by_design)


@pytest.mark.parametrize(
    ("merges", "kind", "tie_break"),
    [
        (pairs("ef", "cd", "ab", "gh"), IDENTICAL, "greatest_bytes"),
        (pairs("ab", "cd", "ef", "gh"), IDENTICAL, "smallest_bytes"),
        (pairs("cd", "ab", "ef", "gh"), UP_TO_TIES, None),
        (pairs("ef", "gh", "cd", "ab"), WRONG, None),
        (pairs("ef", "cd", "ab"), WRONG, None),
        (pairs("ef", "cd", "ab", "gh", "xy"), WRONG, None),
        (pairs("ef", "ef", "cd", "ab"), WRONG, None),
        ([*pairs("ef"), (b"xx", b"y")], WRONG, None),
    ],
)
def test_every_class_has_its_merges(merges: list[Merge], kind: str, tie_break: str | None) -> None:
    found = identity(merges)
    assert (found.kind, found.tie_break) == (kind, tie_break)
    assert (found.reason is None) == (kind == IDENTICAL)


def test_what_is_wrong_is_shown_with_the_true_counts() -> None:
    found = identity(pairs("ef", "gh", "cd", "ab"))
    assert (found.merge, found.got, found.want) == (2, ["67", "68"], ["63", "64"])
    assert (found.got_count, found.want_count) == (1, 2)
    assert found.reason == "merge 2, 'g'+'h', occurs once, others 2 times"


def test_what_is_a_choice_among_equals_is_shown_by_the_tie_break_that_went_along_longest() -> None:
    found = identity(pairs("ef", "ab", "cd", "gh"))
    assert (found.kind, found.merge) == (UP_TO_TIES, 2)
    assert (found.got_count, found.want_count) == (2, 2)
    assert "choices among equals" in found.reason


def test_too_few_and_too_many_merges_are_told_apart() -> None:
    assert identity(pairs("ef", "cd")).reason == "it ended after 2 merges, with pairs left that occur 2 times"
    assert "when no pair was left" in identity(pairs("ef", "cd", "ab", "gh", "xy"), 5).reason


def test_a_reason_makes_other_merges_different_by_design_and_right_ones_not() -> None:
    assert identity(pairs("gh"), 1, "it merges the rarest").kind == BY_DESIGN
    assert identity(pairs("gh"), 1, "it merges the rarest").reason.startswith("it merges the rarest; merge 1")
    assert identity(pairs("ef"), 1, "it merges the rarest").kind == IDENTICAL


@examples(60)
@given(
    st.dictionaries(st.binary(min_size=1, max_size=8), st.integers(1, 4), min_size=1, max_size=6),
    st.sampled_from(list(TieBreak)),
)
def test_ours_are_identical_under_the_tie_break_that_made_them(words: dict[bytes, int], tie_break: TieBreak) -> None:
    word_counts = WordCounts.from_items(words.items())
    merges = heap.train(word_counts, 30, tie_break=tie_break)
    replayed = replay(word_counts, merges)
    assert identity_of(replayed, 30).kind == IDENTICAL
    assert tie_break in replayed.tie_breaks


# The smallest text.


def sabotaged(text: str) -> Identity | None:
    return Identity(WRONG, merge=1) if "xyx" in text and text.count("z") > 1 else None


def test_a_text_is_cut_down_to_what_the_fault_needs() -> None:
    told: list[str] = []
    search(sabotaged, "qqq" * 300 + "zzz xyx and more" * 300, lambda: False, lambda text, _: told.append(text))
    assert sorted(told[-1]) == ["x", "x", "y", "z", "z"]
    assert [len(text) for text in told] == sorted((len(text) for text in told), reverse=True)


def test_a_search_ends_when_its_time_is_over_with_what_it_has() -> None:
    told: list[str] = []
    text = "zzxyx" * 100
    search(sabotaged, text, lambda: bool(told), lambda text, _: told.append(text))
    assert told == [text[:16]]


def test_a_text_without_a_fault_has_no_smallest() -> None:
    told: list[str] = []
    search(sabotaged, "ab" * 10_000, lambda: False, lambda text, _: told.append(text))
    assert told == []


@examples(40)
@given(st.text("ab ", max_size=12), st.text("ab ", max_size=12))
def test_what_is_told_always_has_the_fault(before: str, after: str) -> None:
    told: list[str] = []

    def twice(text: str) -> Identity | None:
        return Identity(WRONG, merge=1) if text.count("b") >= 2 else None

    search(twice, before + after, lambda: False, lambda text, _: told.append(text))
    assert all(twice(text) for text in told)
    assert bool(told) == ((before + after).count("b") >= 2)
    assert not told or len(told[-1]) == 2


# Who judges.


def test_outside_trainers_that_agree_with_each_other_prove_nothing() -> None:
    right, wrong = pairs("ab"), pairs("cd")
    outside = [Claim(name, name, wrong, 1, True, outside=True) for name in ("one", "two")]
    ours = [Claim(name, name, right, 1, True) for name in ("three", "four")]
    assert agreement(outside) is None
    assert agreement([*outside, ours[0]]) is None
    found = agreement([*outside, *ours])
    assert found is not None
    assert found.by == ("three", "four")
    confirmed = agreement([Claim("five", "five", right, 1, True, outside=True), ours[0]])
    assert confirmed is not None
    assert confirmed.by == ("five", "three")


# In a run.


@pytest.fixture(autouse=True)
def outside_trainers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


def outside(name: str) -> VariantCard:
    params = {"rarest": True} if name == "means_to_differ" else {}
    return VariantCard(name, f"outsiders:{name}", family=name, tags=("peer",), params=params)


def trained(folder: Path, *names: str, tie_break: str = OWN) -> tuple[list[Record], Run]:
    reading = reading_of(folder, "cd\nab\nef\n" * 3 + "xy")
    cells = [cell_of(reading, card, 6, tie_break=tie_break) for card in (HEAP, *map(outside, names))]
    run = Run(cells, settings_for(folder), folder / "jobs")
    run.measure_all()
    run.prove()
    records = [record for record in run.records() if record["cell"] == "train"]
    assert [complaint for record in records for complaint in complaints(record)] == []
    return records, run


def test_with_its_own_tie_break_each_trainer_goes_as_when_it_is_not_told(tmp_path: Path) -> None:
    (ours, raw, first), run = trained(tmp_path, "takes_raw_bytes", "takes_the_first")
    assert [record["tie_break"] for record in (ours, raw, first)] == ["greatest_bytes", "raw_bytes", OWN]
    assert [record["proof"]["state"] for record in (ours, raw, first)] == ["reference", "reference", "replayed"]
    kinds = [record["identity"]["kind"] for record in (ours, raw, first)]
    assert kinds == [IDENTICAL, IDENTICAL, UP_TO_TIES]
    assert raw["identity"]["tie_break"] == "raw_bytes"
    assert ours["feeding"] is None
    assert first["feeding"]["ties"] == "the first pair met"
    assert exit_code([ours, raw, first], run.disagreements) == OK


def test_wrong_merges_of_an_unknown_tie_break_are_a_mismatch_without_a_time(tmp_path: Path) -> None:
    (_, wrong), run = trained(tmp_path, "takes_the_rarest")
    assert (wrong["status"], wrong["identity"]["kind"]) == ("mismatch", WRONG)
    assert wrong["reason"] == wrong["identity"]["reason"]
    assert wrong["first_divergence"]["merge"] == wrong["identity"]["merge"] == 1
    smallest = wrong["identity"]["smallest"]
    assert smallest["merge"] == 1
    assert len(smallest["text"]) <= 4
    assert exit_code([wrong], run.disagreements) == MISMATCH


def test_the_smallest_text_is_looked_for_once_however_many_blocks_were_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def search_noted(cell: TrainCell) -> dict[str, Any]:
        asked.append(cell.variant.name)
        return {"text": "ab", "merge": 1}

    monkeypatch.setattr(prove, "smallest_text", search_noted)
    (_, wrong), run = trained(tmp_path, "takes_the_rarest")
    first = next(each for each in run.trained if each.cell.variant.name == "takes_the_rarest")
    second = replace(first, identity=None)
    run.trained.append(second)
    run.prove()
    assert asked == ["takes_the_rarest"] * 2, "once each time that all is proved"
    assert [each.identity.smallest for each in (first, second)] == [wrong["identity"]["smallest"]] * 2


def test_a_text_that_is_still_long_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = outside("takes_the_rarest")
    cell = cell_of(reading_of(tmp_path, "cd\nab\nef\n" * 3 + "xy"), card, 6, tie_break=OWN)
    found = smallest.smallest_text(cell)
    assert found is not None
    for longest, kept in ((len(found["text"]), found), (len(found["text"]) - 1, None)):
        monkeypatch.setattr(smallest, "LONGEST", longest)
        assert smallest.smallest_text(cell) == kept


def test_merges_that_are_different_by_design_are_neither_confirmed_nor_a_mismatch(tmp_path: Path) -> None:
    (_, other), run = trained(tmp_path, "means_to_differ")
    assert (other["status"], other["proof"]["state"]) == ("ok", "unconfirmed")
    assert other["identity"]["kind"] == BY_DESIGN
    assert other["identity"]["reason"].startswith("it takes the rarest pair")
    assert exit_code([other], run.disagreements) == OK


def test_a_tie_break_that_a_trainer_lacks_is_no_class(tmp_path: Path) -> None:
    (_, skipped), _ = trained(tmp_path, "takes_the_first", tie_break="raw_bytes")
    assert (skipped["status"], skipped["identity"]) == ("skipped", None)


def test_a_promised_tie_break_that_is_not_kept_is_a_mismatch_with_its_class(tmp_path: Path) -> None:
    (_, record), _ = trained(tmp_path, "promises_raw_bytes")
    assert (record["status"], record["tie_break"]) == ("mismatch", "raw_bytes")
    assert record["identity"]["kind"] == UP_TO_TIES


def test_the_tie_break_of_a_trainer_that_is_not_told_is_its_default() -> None:
    assert own_tie_break(heap.train) == "greatest_bytes"
    assert own_tie_break(minbpe.train) is None
    assert own_tie_break(max) == "greatest_bytes"


def test_who_does_not_say_how_it_is_fed_has_nothing_to_say() -> None:
    assert feeding_of(heap.train, None, {}) is None
    assert feeding_of(replace, None, {}) is None


def test_merges_of_words_of_its_own_are_judged_on_those(tmp_path: Path) -> None:
    pytest.importorskip("gigabpe")
    gigabpe = VariantCard("peer_gigabpe", "variants.peers.gigabpe:train", tags=("peer", "from_file"))
    text = "a  \n\n  b \n\n\n  c\n" * 9
    cell = replace(cell_of(reading_of(tmp_path, text), gigabpe, 6), tie_break=OWN)
    run = Run([cell], settings_for(tmp_path), tmp_path / "jobs")
    run.measure_all()
    run.prove()
    (trained,) = run.trained
    assert trained.identity.kind == BY_DESIGN
    assert trained.identity.of_own_words == "identical (huggingface)"
