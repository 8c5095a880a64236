"""Identity: what makes a reference, what it decides, and what is said where nothing can be decided."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from workbench import HEAP, NAIVE, TESTS, cell_of, first_fast, reading_of, settings_for, unruly

from harness.common import registry
from harness.common.errors import MISMATCH, OK
from harness.common.registry import VariantCard
from harness.measure.process import Limits
from harness.proof import compiled_replay
from harness.runs import store
from harness.runs.cells import TrainCell
from harness.runs.record import Record
from harness.runs.running import exit_code
from harness.runs.schedule import Run
from harness.runs.store import Reference
from harness.runs.verdict import Claim, agreement, find_reference, first_divergence, verdict
from variants.contract import Merge

pytestmark = pytest.mark.usefixtures("measured_once")

RIGHT: list[Merge] = [(b"a", b"b"), (b"ab", b"c"), (b"\x00", b"\xff")]
WRONG: list[Merge] = [(b"a", b"b"), (b"b", b"c"), (b"\x00", b"\xff")]
OTHER: list[Merge] = [(b"z", b"z")]
runs = itertools.count()


def claim(name: str, merges: Sequence[Merge], family: str = "", asked: int = 3, whole: bool = True) -> Claim:
    return Claim(name, family or name, merges, asked, whole)


def judge(name: str, family: str = "") -> VariantCard:
    return VariantCard(name, f"{name}:train", family=family or name)


class Reruns:
    """Runs judges without running anything, and remembers which were asked for how much."""

    def __init__(self, **answers: Sequence[Merge] | None) -> None:
        self.answers = answers
        self.asked: list[tuple[str, int]] = []

    def __call__(self, card: VariantCard, num_merges: int) -> Claim | None:
        self.asked.append((card.name, num_merges))
        merges = self.answers[card.name]
        return None if merges is None else Claim(card.name, card.family, merges, num_merges, True)


# What two families agree on is the reference.


def test_two_families_of_one_run_need_nobody_else() -> None:
    reruns = Reruns()
    made, disagreed = find_reference([claim("one", RIGHT), claim("two", RIGHT)], [judge("three")], reruns)
    assert made == Reference(RIGHT, False, ("one", "two"))
    assert not disagreed
    assert reruns.asked == []


def test_a_single_run_is_held_against_a_judge_of_another_family() -> None:
    reruns = Reruns(cousin=WRONG, stranger=RIGHT)
    made, _ = find_reference([claim("one", RIGHT, "f")], [judge("cousin", "f"), judge("stranger")], reruns)
    assert made == Reference(RIGHT, False, ("one", "stranger"))
    assert reruns.asked == [("stranger", 3)]


def test_variants_of_one_family_are_one_voice() -> None:
    made, disagreed = find_reference([claim("one", RIGHT, "f"), claim("two", RIGHT, "f")], [], Reruns())
    assert (made, disagreed) == (None, False)


def test_a_third_family_decides_between_two() -> None:
    reruns = Reruns(third=RIGHT, fourth=RIGHT)
    made, disagreed = find_reference(
        [claim("one", WRONG), claim("two", RIGHT)], [judge("third"), judge("fourth")], reruns
    )
    assert made == Reference(RIGHT, False, ("two", "third"))
    assert disagreed
    assert reruns.asked == [("third", 3)]


def test_a_judge_that_fails_is_passed_over() -> None:
    made, _ = find_reference([claim("one", RIGHT)], [judge("ill"), judge("well")], Reruns(ill=None, well=RIGHT))
    assert made is not None
    assert made.by == ("one", "well")


def test_where_all_differ_nobody_is_right() -> None:
    made, disagreed = find_reference([claim("one", WRONG), claim("two", RIGHT)], [judge("third")], Reruns(third=OTHER))
    assert (made, disagreed) == (None, True)


def test_as_many_families_on_both_sides_settle_nothing() -> None:
    voices = [claim("one", RIGHT), claim("two", RIGHT), claim("three", WRONG), claim("four", WRONG)]
    assert agreement(voices) is None
    assert agreement([*voices, claim("five", RIGHT)]) == Reference(RIGHT, False, ("one", "two", "five"))


def test_a_variant_that_contradicts_itself_is_outvoted() -> None:
    voices = [claim("one", RIGHT), claim("one", WRONG), claim("two", RIGHT)]
    assert agreement(voices) == Reference(RIGHT, False, ("one", "two"))


def test_the_longest_is_asked_for() -> None:
    reruns = Reruns(judge=[*RIGHT, *OTHER])
    claims = [
        claim("one", RIGHT),
        claim("two", [*RIGHT, *OTHER], asked=4),
        claim("three", RIGHT[:1], whole=False, asked=9),
    ]
    made, _ = find_reference(claims, [judge("judge")], reruns)
    assert made == Reference([*RIGHT, *OTHER], False, ("two", "judge"))
    assert reruns.asked == [("judge", 4)]


def test_where_all_were_stopped_a_judge_goes_as_far_as_the_longest_of_them() -> None:
    claims = [claim(name, RIGHT[:made], whole=False, asked=9) for name, made in (("one", 1), ("two", 2))]
    reruns = Reruns(judge=RIGHT[:2])
    assert find_reference(claims, [judge("judge")], reruns) == (Reference(RIGHT[:2], False, ("two", "judge")), False)
    assert reruns.asked == [("judge", 2)]
    nothing = claim("one", [], whole=False)
    assert find_reference([nothing], [judge("judge")], reruns) == (None, False)


def test_fewer_merges_than_asked_for_are_all_there_are() -> None:
    made = agreement([claim("one", RIGHT, asked=100), claim("two", RIGHT, asked=100)])
    assert made is not None
    assert made.exhausted
    assert made.covers(10**6)


def test_no_merges_at_all_are_a_reference_too() -> None:
    assert agreement([claim("one", [], asked=0), claim("two", [], asked=0)]) == Reference([], False, ("one", "two"))


# What a reference decides.


@pytest.mark.parametrize(
    ("given", "state", "merge"),
    [
        (claim("one", RIGHT), "reference", None),
        (claim("new", RIGHT), "confirmed", None),
        (claim("new", RIGHT[:2], asked=2), "confirmed", None),
        (claim("new", [], asked=0), "confirmed", None),
        (claim("new", RIGHT[:1], whole=False), "confirmed", None),
        (claim("new", [], whole=False), "unconfirmed", None),
        (claim("new", WRONG), "mismatch", 2),
        (claim("new", WRONG[:2], whole=False), "mismatch", 2),
        (claim("new", RIGHT[:2]), "mismatch", 3),
        (claim("new", RIGHT, asked=2), "mismatch", 3),
        (claim("one", WRONG), "mismatch", 2),
        (claim("new", [*RIGHT, *OTHER], asked=4), "unconfirmed", None),
        (claim("new", [*RIGHT, *OTHER], whole=False), "unconfirmed", None),
    ],
)
def test_verdicts(given: Claim, state: str, merge: int | None) -> None:
    told = verdict(given, Reference(RIGHT, False, ("one", "two")))
    assert told.state == state
    assert (told.first_divergence or {}).get("merge") == merge
    assert told.by == (() if state == "unconfirmed" else ("one", "two"))


def test_an_exhausted_reference_decides_about_any_size() -> None:
    exhausted = Reference(RIGHT, True, ("one", "two"))
    assert verdict(claim("new", RIGHT, asked=1000), exhausted).state == "confirmed"
    assert verdict(claim("new", [*RIGHT, *OTHER], asked=1000), exhausted).first_divergence == {
        "merge": 4,
        "got": ["7a", "7a"],
        "want": None,
    }


def test_without_a_reference_everything_is_unconfirmed() -> None:
    assert verdict(claim("one", RIGHT), None).state == "unconfirmed"


def test_a_wrong_token_of_any_length_is_told_in_few_bytes() -> None:
    found = first_divergence([(b"a" * 10_000_000, b"b")], []) or {}
    assert len(found["got"][0]) == 8192


def test_the_first_divergence_shows_both_sides_in_hexadecimal() -> None:
    assert first_divergence(RIGHT, RIGHT) is None
    assert first_divergence(WRONG, RIGHT) == {"merge": 2, "got": ["62", "63"], "want": ["6162", "63"]}
    assert first_divergence([], RIGHT) == {"merge": 1, "got": None, "want": ["61", "62"]}


# The same, measured.


@pytest.fixture(autouse=True)
def unruly_trainers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


def proved(folder: Path, *cells: TrainCell) -> tuple[int, dict[str, Record], Run]:
    """Measure and prove; returns the exit code, the trainers' records by variant, and the run."""
    run = Run(cells, settings_for(folder), folder / f"jobs{next(runs)}")
    run.measure_all()
    run.prove()
    records = run.records()
    by_variant = {record["variant"]: record for record in records if record["cell"] == "train"}
    return exit_code(records, run.disagreements), by_variant, run


def test_a_single_run_is_proved_by_replaying_its_merges(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    code, records, run = proved(tmp_path, cell_of(reading, NAIVE))
    assert (code, run.jobs) == (OK, 2)  # the counter and the trainer
    assert records["naive"]["proof"] == {"state": "reference", "by": ["naive", "replay"]}
    _, records, run = proved(tmp_path, cell_of(reading, HEAP))
    assert (records["heap"]["proof"], run.jobs) == ({"state": "confirmed", "by": ["naive", "replay"]}, 2)


@pytest.fixture
def without_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_replay, "_replay", None)


@pytest.mark.usefixtures("without_replay")
def test_a_single_run_makes_its_own_reference_untimed_and_keeps_it(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    code, records, run = proved(tmp_path, cell_of(reading, NAIVE))
    assert code == OK
    proof = records["naive"]["proof"]
    assert (proof["state"], proof["by"][0], len(proof["by"])) == ("reference", "naive", 2)
    judging = proof["by"][1]
    assert judging in {card.name for card in registry.judges()}
    assert [each["variant"] for each in run.records()] == [None, "naive"]
    assert run.jobs == 3  # the counter, the trainer, the judge
    _, records, run = proved(tmp_path, cell_of(reading, HEAP))
    assert records["heap"]["proof"] == {"state": "confirmed", "by": ["naive", judging]}
    assert run.jobs == 2


def test_a_kept_reference_is_a_prefix_of_a_longer_one_and_made_longer_when_needed(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    proved(tmp_path, cell_of(reading, HEAP, 5), cell_of(reading, NAIVE, 5))
    assert kept_merges(reading) == 5
    _, records, run = proved(tmp_path, cell_of(reading, NAIVE, 3))
    assert (records["naive"]["proof"]["state"], run.jobs) == ("reference", 2)
    proved(tmp_path, cell_of(reading, HEAP, 8), cell_of(reading, NAIVE, 8))
    assert kept_merges(reading) == 8


def kept_merges(reading: Any) -> int:
    reference = store.reference(reading, "greatest_bytes", 1)
    assert reference is not None
    return len(reference.merges)


def test_an_exhausted_reference_is_not_made_again(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, "abc abc")
    code, _, _ = proved(tmp_path, cell_of(reading, HEAP, 50), cell_of(reading, NAIVE, 50))
    assert code == OK
    _, records, run = proved(tmp_path, cell_of(reading, HEAP, 5000))
    assert (records["heap"]["proof"]["state"], run.jobs) == ("reference", 2)


def test_other_ties_and_other_minimal_counts_have_references_of_their_own(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    proved(tmp_path, cell_of(reading, HEAP), cell_of(reading, NAIVE))
    for others in ({"tie_break": "smallest_bytes"}, {"min_count": 6}):
        code, records, run = proved(tmp_path, cell_of(reading, HEAP, **others), cell_of(reading, NAIVE, **others))
        assert code == OK
        assert records["heap"]["proof"] == {"state": "reference", "by": records["naive"]["proof"]["by"]}
        assert run.jobs == 3
    assert len(list(store.folder_of(reading).glob("reference-*"))) == 3


def test_a_wrong_trainer_is_told_from_the_right_ones(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    code, records, run = proved(tmp_path, cell_of(reading, unruly("returns_the_last_twice")))
    record = records["returns_the_last_twice"]
    assert (code, record["status"], record["proof"]["state"]) == (MISMATCH, "mismatch", "mismatch")
    assert record["first_divergence"]["merge"] == 10
    assert record["first_divergence"]["got"] == ["00", "ff"]
    assert run.jobs == 4  # two judges had to be asked
    assert run.disagreements == []


def test_a_reference_that_a_trainer_writes_itself_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache_folder: Path
) -> None:
    monkeypatch.setenv("FORGERS_CACHE", str(cache_folder))
    reading = reading_of(tmp_path)
    forger = VariantCard("forger", "forgers:writes_the_reference_itself", family="forger")
    _, records, _ = proved(tmp_path, cell_of(reading, forger))
    assert records["forger"]["status"] == "mismatch"
    code, records, _ = proved(tmp_path, cell_of(reading, HEAP))
    assert (code, records["heap"]["status"]) == (OK, "ok")
    assert "naive" not in records["heap"]["proof"]["by"] or records["heap"]["proof"]["state"] == "confirmed"


@pytest.mark.parametrize("exhausted", [False, True])
def test_a_kept_reference_is_replayed_before_it_is_believed(tmp_path: Path, exhausted: bool) -> None:
    """Whoever runs code here could have written it: a trainer that conformance calls, or that a test imports."""
    reading = reading_of(tmp_path)
    _, records, _ = proved(tmp_path, cell_of(reading, HEAP))
    honest = store.reference(reading, "greatest_bytes", 1)
    assert honest is not None
    merges = honest.merges if exhausted else [*honest.merges[:-1], (b"q", b"q")]
    store.keep_reference(reading, "greatest_bytes", 1, store.Reference(merges, exhausted, ("naive", "flat")))
    code, records, _ = proved(tmp_path, cell_of(reading, HEAP, 12 if exhausted else 10))
    assert (code, records["heap"]["status"]) == (OK, "ok")


@pytest.mark.usefixtures("without_replay")
def test_where_nobody_can_decide_everybody_hears_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "judges", list)
    reading = reading_of(tmp_path)
    code, records, run = proved(tmp_path, cell_of(reading, HEAP), cell_of(reading, unruly("returns_one_too_few")))
    assert code == MISMATCH
    assert {(record["status"], record["proof"]["state"]) for record in records.values()} == {("ok", "unconfirmed")}
    (sentence,) = run.disagreements
    assert "heap, returns_one_too_few" in sentence or "returns_one_too_few, heap" in sentence
    assert store.reference(reading, "greatest_bytes", 1) is None


@pytest.mark.usefixtures("without_replay")
def test_alone_and_without_a_judge_a_run_is_unconfirmed_and_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "judges", list)
    code, records, _ = proved(tmp_path, cell_of(reading_of(tmp_path), HEAP))
    assert (code, records["heap"]["proof"]) == (OK, {"state": "unconfirmed", "by": []})


@pytest.mark.parametrize("trainer", first_fast(["stops_when_told", "hangs_after_some_merges"]))
def test_a_stopped_run_is_proved_as_far_as_it_came(tmp_path: Path, trainer: str) -> None:
    reading = reading_of(tmp_path)
    proved(tmp_path, cell_of(reading, HEAP), cell_of(reading, NAIVE))
    code, records, _ = proved(tmp_path, cell_of(reading, unruly(trainer), limits=Limits(wall_seconds=0.6)))
    record = records[trainer]
    assert (code, record["status"], record["proof"]["state"]) == (22, "timeout", "confirmed")
    assert 0 < record["merges_done"] < 10
    assert record["merges"] is None
    assert record["seconds"]["total"] is None


def flipped(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1],
        lambda _: b"",
        lambda content: b"[]\n" + content.partition(b"\n")[2],
        lambda content: b"7\n" + content.partition(b"\n")[2],
        lambda content: content.partition(b"\n")[0],
        lambda content: content.partition(b"\n")[2],
        flipped,
    ],
    ids=["one byte lost", "empty", "another head", "a number for a head", "head only", "headless", "one bit flipped"],
)
def test_a_damaged_reference_is_none_and_convicts_nobody(tmp_path: Path, damage: Any) -> None:
    reading = reading_of(tmp_path)
    reference = Reference(RIGHT, True, ("one", "two"))
    store.keep_reference(reading, "greatest_bytes", 1, reference)
    assert store.reference(reading, "greatest_bytes", 1) == reference
    assert store.reference(reading, "greatest_bytes", 2) is None
    (path,) = store.folder_of(reading).glob("reference-*")
    path.write_bytes(damage(path.read_bytes()))
    assert store.reference(reading, "greatest_bytes", 1) is None
    assert not path.exists()
