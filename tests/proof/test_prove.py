"""The proof: which identity each list of merges has, in few replays, compiled or not, alone and in a run."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from exploring import examples
from hypothesis import given
from hypothesis import strategies as st
from test_compiled_replay import lists, table_of
from workbench import HEAP, NAIVE, SUPPORT, TEXT, Measured, cell_of, first_fast, reading_of, run_of, unruly

from harness import run as run_command
from harness.common.errors import MISMATCH, OK, UNMEASURED
from harness.common.registry import VariantCard
from harness.measure.process import Limits
from harness.proof import BY_DESIGN, IDENTICAL, UNPROVED, UP_TO_TIES, WRONG, prove, true_counts
from harness.proof.prove import Identity, MergeList, identity_of
from harness.records.file import Record, Splitter
from harness.runs.cells import TrainCell
from harness.runs.run import exit_code
from harness.worker import word_store
from harness.worker.calling import OWN, feeding_of, own_tie_break
from harness.worker.merges_bytes import packed
from variants import heap, minbpe
from variants.contract import Merge, TieBreak, WordCounts

try:
    from harness.proof.native import _replay
except ImportError:
    _replay = None  # type: ignore[assignment]

pytestmark = pytest.mark.usefixtures("measured_once")

WORDS = WordCounts.from_items([(b"ab", 2), (b"cd", 2), (b"ef", 2), (b"gh", 1)])
GREATEST, SMALLEST = TieBreak.GREATEST_BYTES, TieBreak.SMALLEST_BYTES
jobs = itertools.count()


def pairs(*texts: str) -> list[Merge]:
    return [(text[:1].encode(), text[1:].encode()) for text in texts]


RIGHT = pairs("ef", "cd", "ab", "gh")


@pytest.fixture(params=["compiled", "in Python"])
def either_replay(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "in Python":
        monkeypatch.setattr(prove, "_replay", None)
    elif _replay is None:
        pytest.skip("the compiled part is not built")


def identity(merges: Sequence[Merge], num_merges: int = 4, tie_break: TieBreak | None = None, **how: Any) -> Identity:
    (found,) = prove.prove(WORDS, [MergeList("one", merges, num_merges, tie_break, **how)])
    return found


@pytest.mark.usefixtures("either_replay")
@pytest.mark.parametrize(
    ("claimed", "kind", "tie_break", "merge", "reason"),
    [
        ((RIGHT,), IDENTICAL, "greatest_bytes", None, None),
        ((RIGHT, 4, GREATEST), IDENTICAL, "greatest_bytes", None, None),
        ((RIGHT, 100), IDENTICAL, "greatest_bytes", None, None),
        ((RIGHT[:2], 2), IDENTICAL, "greatest_bytes", None, None),
        (([], 0), IDENTICAL, "greatest_bytes", None, None),
        ((pairs("ab", "cd", "ef", "gh"),), IDENTICAL, "smallest_bytes", None, None),
        ((pairs("ab", "cd", "ef", "gh"), 4, SMALLEST), IDENTICAL, "smallest_bytes", None, None),
        ((pairs("cd", "ab", "ef", "gh"),), UP_TO_TIES, None, 1, "2 of its merges are choices among equals"),
        ((pairs("ef", "ab", "cd", "gh"),), UP_TO_TIES, None, 2, "choices among equals"),
        (
            (pairs("ef", "ab", "cd", "gh"), 4, GREATEST), WRONG, None, 2,
            "merge 2, 'a'+'b', occurs 2 times, as 'c'+'d' does, which tie_break=greatest_bytes takes",
        ),
        ((pairs("ef", "gh", "cd", "ab"),), WRONG, None, 2, "merge 2, 'g'+'h', occurs once, others 2 times"),
        ((pairs("ef", "cd"),), WRONG, None, 3, "it ended after 2 merges, with pairs left that occur 2 times"),
        (([*RIGHT, *pairs("xy")], 5), WRONG, None, 5, "when no pair was left"),
        ((RIGHT, 3), WRONG, None, 4, "it made 4 merges, and 3 were requested"),
        ((pairs("ef", "ef", "cd", "ab"),), WRONG, None, 2, "is of a pair that does not occur"),
        (([*pairs("ef"), (b"xx", b"y")],), WRONG, None, 2, "is of a pair that does not occur"),
    ],
)  # fmt: skip
def test_identities(
    claimed: tuple[Any, ...], kind: str, tie_break: str | None, merge: int | None, reason: str | None
) -> None:
    found = identity(*claimed)
    assert (found.kind, found.tie_break, found.merge) == (kind, tie_break, merge)
    assert (found.reason is None) == (reason is None)
    assert (reason or "") in (found.reason or "")


@pytest.mark.usefixtures("either_replay")
def test_a_stopped_trainer_is_judged_as_far_as_it_came() -> None:
    assert identity(RIGHT[:2], 9, GREATEST, whole=False).kind == IDENTICAL
    assert identity(pairs("gh"), 9, GREATEST, whole=False).kind == WRONG
    assert identity([], 9, GREATEST, whole=False) == Identity(UNPROVED, reason="it was stopped before its first merge")


@pytest.mark.usefixtures("either_replay")
def test_a_reason_makes_other_merges_different_by_design_and_right_ones_not() -> None:
    other = identity(pairs("gh"), 1, by_design="it merges the rarest")
    assert (other.kind, str(other.reason)[:29]) == (BY_DESIGN, "it merges the rarest; merge 1")
    assert identity(pairs("ef"), 1, by_design="it merges the rarest").kind == IDENTICAL


@pytest.mark.usefixtures("either_replay")
def test_min_count_and_what_was_inherited_decide_as_well() -> None:
    one = MergeList("one", RIGHT[:3], 9)
    assert [each.kind for each in prove.prove(WORDS, [one], min_count=2)] == [IDENTICAL]
    assert [each.kind for each in prove.prove(WORDS, [one])] == [WRONG]
    inherited = replace(one, merges=pairs("gh", "ef"), num_merges=2)
    assert [each.kind for each in prove.prove(WORDS, [inherited], inherited=pairs("gh"))] == [IDENTICAL]
    (wrong,) = prove.prove(WORDS, [inherited], inherited=pairs("ef"))
    assert (wrong.kind, wrong.reason) == (WRONG, "merge 1, 'g'+'h', is not the inherited one")


def test_what_is_wrong_is_shown_with_its_counts_in_few_bytes() -> None:
    found = identity(pairs("ef", "gh", "cd", "ab"))
    assert (found.got, found.want, found.got_count, found.want_count) == (["67", "68"], ["63", "64"], 1, 2)
    assert len((identity([(b"a" * 10_000_000, b"b")], 1).got or [""])[0]) == 8192


def test_the_longest_is_replayed_and_its_beginnings_and_equals_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    replayed: list[int] = []

    def noted(words: WordCounts, claimed: MergeList, tie_break: TieBreak, how: Any) -> bool:
        replayed.append(len(claimed.merges))
        return is_right(words, claimed, tie_break, how)

    is_right = prove.is_right
    monkeypatch.setattr(prove, "is_right", noted)
    claimed = [MergeList("a", RIGHT[:2], 2), MergeList("b", RIGHT, 4), MergeList("c", RIGHT, 4)]
    claimed += [MergeList("d", RIGHT[:3], 9, whole=False), MergeList("e", RIGHT[:1], 2)]
    found = [each.kind for each in prove.prove(WORDS, claimed)]
    assert found == [IDENTICAL, IDENTICAL, IDENTICAL, IDENTICAL, WRONG]
    assert replayed == [4, 1]


def test_a_right_list_proves_none_that_ended_too_early_where_it_ends() -> None:
    claimed = [MergeList("two of two", RIGHT[:2], 2), MergeList("two of four", RIGHT[:2], 4)]
    assert [each.kind for each in prove.prove(WORDS, claimed)] == [IDENTICAL, WRONG]


def test_without_the_compiled_replay_what_is_large_is_unproved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prove, "_replay", None)
    monkeypatch.setattr(prove, "MOST_BYTES_IN_PYTHON", 7)
    found = identity(RIGHT)
    assert found.kind == UNPROVED
    assert "pip install -e . builds it" in str(found.reason)


def test_two_replays_that_disagree_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prove, "is_right", lambda *_: False)
    assert identity(RIGHT).kind == UNPROVED


def test_a_veto_of_ones_own_is_judged_in_python() -> None:
    (found,) = prove.prove(WORDS, [MergeList("one", RIGHT[1:], 4)], veto=lambda left, _: left == b"e")
    assert found.kind == IDENTICAL


@examples(60)
@given(
    st.dictionaries(st.binary(min_size=1, max_size=8), st.integers(1, 4), min_size=1, max_size=6),
    st.sampled_from(list(TieBreak)),
)
def test_ours_are_identical_under_the_tie_break_that_made_them(words: dict[bytes, int], tie_break: TieBreak) -> None:
    word_counts = WordCounts.from_items(words.items())
    merges = heap.train(word_counts, 30, tie_break=tie_break)
    told, untold = prove.prove(word_counts, [MergeList("x", merges, 30, each) for each in (tie_break, None)])
    assert (told, untold.kind) == (Identity(IDENTICAL, tie_break.value), IDENTICAL)


@pytest.mark.parametrize("block", first_fast(range(20)))
def test_both_replays_come_to_the_same_identities(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("harness.proof.native._replay", reason="the compiled part is not built")
    compiled, kinds = _replay, set()
    for seed in range(50 * block, 50 * block + 50):
        for words, merges, asked, tie_break, min_count in lists(5000 + seed):
            claimed = [MergeList("x", merges, asked, each) for each in (tie_break, None)]
            found = []
            for replay in (compiled, None):
                monkeypatch.setattr(prove, "_replay", replay)
                found.append(prove.prove(words, claimed, min_count))
            assert found[0] == found[1], (seed, merges)
            kinds |= {each.kind for each in found[0]}
    assert kinds == {IDENTICAL, UP_TO_TIES, WRONG}


def test_a_whole_replay_has_the_identity_of_one_that_ends_early() -> None:
    for seed in range(20):
        words = WordCounts.from_items(table_of(seed).items())
        merges = heap.train(words, 20, tie_break=SMALLEST)[::-1]
        whole, early = (true_counts.replay(words, merges, until_wrong=each) for each in (False, True))
        assert identity_of(whole, 20) == identity_of(early, 20)


# In a run.


@pytest.fixture(autouse=True)
def trainers_of_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))


def proved(folder: Path, *cells: TrainCell) -> tuple[int, dict[str, Record], Measured]:
    """Measure and prove; returns the exit code, the trainers' records by variant, and the run."""
    run = run_of(folder, cells)
    records = run.records()
    by_variant = {record["variant"]: record for record in records if record["cell"] == "train"}
    assert all(Splitter().lines(record) for record in by_variant.values())
    return exit_code(records, list(run.session.disagreements)), by_variant, run


def test_a_single_run_is_proved_without_another_trainer(tmp_path: Path) -> None:
    code, records, run = proved(tmp_path, cell_of(reading_of(tmp_path), HEAP))
    assert (code, run.session.processes) == (OK, 2)  # the counter and the trainer
    assert (records["heap"]["identity"]["kind"], records["heap"]["identity"]["tie_break"]) == (
        IDENTICAL, "greatest_bytes",
    )  # fmt: skip


@pytest.mark.parametrize("others", [{"tie_break": "smallest_bytes"}, {"min_count": 6}])
def test_other_ties_and_other_minimal_counts_are_other_questions(tmp_path: Path, others: dict[str, Any]) -> None:
    reading = reading_of(tmp_path)
    cells = cell_of(reading, HEAP), cell_of(reading, NAIVE, **others)
    code, records, _ = proved(tmp_path, *cells)
    assert code == OK
    assert {record["identity"]["kind"] for record in records.values()} == {IDENTICAL}


@pytest.mark.parametrize("beside", [(), (HEAP,)])
def test_wrong_merges_have_no_time_whoever_is_beside_them(tmp_path: Path, beside: tuple[VariantCard, ...]) -> None:
    reading = reading_of(tmp_path)
    cells = [cell_of(reading, card) for card in (unruly("returns_the_last_twice"), *beside)]
    code, records, run = proved(tmp_path, *cells)
    record = records["returns_the_last_twice"]
    assert (code, record["status"], record["identity"]["kind"]) == (MISMATCH, "mismatch", WRONG)
    assert (record["identity"]["merge"], record["identity"]["got"]) == (10, ["00", "ff"])
    assert record["reason"] == record["identity"]["reason"]
    assert run.session.processes == 2 + len(beside)
    assert all(records[card.name]["status"] == "ok" for card in beside)


@pytest.mark.parametrize("trainer", first_fast(["stops_when_told", "hangs_after_some_merges"]))
def test_a_stopped_run_is_proved_as_far_as_it_came(tmp_path: Path, trainer: str) -> None:
    cell = cell_of(reading_of(tmp_path), unruly(trainer), limits=Limits(wall_seconds=0.6))
    code, records, _ = proved(tmp_path, cell)
    record = records[trainer]
    assert (code, record["identity"]["kind"]) == (UNMEASURED, IDENTICAL)
    assert record["status"] in ("timeout", "extrapolated")
    assert 0 < record["merges_done"] < 10
    assert (record["merges"], record["seconds"]["total"]) == (None, None)


def test_all_of_a_text_as_one_word_is_proved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("aaabaaaaac" * 20 + TEXT)  # a run of odd length has a left and a right end
    said = ("pattern=document", "vocab_size=270", "data.path=text", "special_tokens=[]", "min_count=2")
    both = run_command("-m", *said, "variant._target_=sabotaged:right_to_left,variants.heap:train")
    assert [record["status"] for record in both] == ["mismatch", "ok"]
    Path("text").write_text("")
    (trained,) = run_command(*said, "variant=heap")
    assert (trained["status"], trained["identity"]["kind"]) == ("ok", IDENTICAL)


@pytest.mark.parametrize("planted", [False, True])
def test_a_trainer_does_not_find_the_merges_of_others(tmp_path: Path, planted: bool) -> None:
    """It looks beside its mapped and open files, and in the scratch folder; it would find what is planted there."""
    (tmp_path / "text").mkdir()
    reading = reading_of(tmp_path / "text")
    finder = cell_of(reading, VariantCard("finder", "unruly:finds_the_merges_of_others", family="finder"))
    proved(tmp_path, cell_of(reading, HEAP))
    if planted:
        words = word_store.read(reading.folder)[0]
        (reading.folder.parent / "merges").write_bytes(packed(heap.train(words, 10)))
    records = run_of(tmp_path, [cell_of(reading, HEAP), finder], repeat=3).records()
    kinds = {record["identity"]["kind"] for record in records if record["variant"] == "finder"}
    assert kinds == {IDENTICAL if planted else WRONG}


# Outside trainers, in a run.


def outside(folder: Path, *names: str, tie_break: str = OWN) -> tuple[int, dict[str, Record]]:
    reading = reading_of(folder, "cd\nab\nef\n" * 3 + "xy")
    cards = [
        VariantCard(
            name, f"outsiders:{name}", family=name, params={"rarest": True} if name == "means_to_differ" else {}
        )
        for name in names
    ]
    code, records, _ = proved(folder, *(cell_of(reading, card, 6, tie_break=tie_break) for card in (HEAP, *cards)))
    return code, records


@pytest.mark.parametrize(
    ("name", "tie_break", "status", "kind", "under"),
    [
        ("takes_raw_bytes", "raw_bytes", "ok", IDENTICAL, "raw_bytes"),
        ("takes_the_first", OWN, "ok", UP_TO_TIES, None),
        ("takes_the_rarest", OWN, "mismatch", WRONG, None),
        ("means_to_differ", OWN, "ok", BY_DESIGN, None),
        ("promises_raw_bytes", "raw_bytes", "mismatch", WRONG, None),
    ],
)
def test_an_outside_trainer_is_judged_under_its_own_tie_break(
    tmp_path: Path, name: str, tie_break: str, status: str, kind: str, under: str | None
) -> None:
    code, records = outside(tmp_path, name)
    record = records[name]
    assert (record["tie_break"], record["status"]) == (tie_break, status)
    assert (record["identity"]["kind"], record["identity"]["tie_break"]) == (kind, under)
    assert (records["heap"]["identity"]["kind"], records["heap"]["feeding"]) == (IDENTICAL, None)
    assert code == (MISMATCH if status == "mismatch" else OK)


def test_a_tie_break_that_a_trainer_lacks_is_not_judged(tmp_path: Path) -> None:
    _, records = outside(tmp_path, "takes_the_first", tie_break="raw_bytes")
    assert (records["takes_the_first"]["status"], records["takes_the_first"]["identity"]) == ("skipped", None)


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
    cell = replace(cell_of(reading_of(tmp_path, "a  \n\n  b \n\n\n  c\n" * 9), gigabpe, 6), tie_break=OWN)
    _, records, _ = proved(tmp_path, cell)
    assert records["peer_gigabpe"]["identity"]["kind"] == BY_DESIGN
    assert records["peer_gigabpe"]["identity"]["of_own_words"] == "identical (huggingface)"
