"""The proof: which identity each list of merges has, in few replays, compiled or not, alone and in
a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from measured import record_of
from workbench import HEAP, NAIVE, cell_of, first_fast, reading_of, run_of, unruly

from harness.common import registry
from harness.common.errors import MISMATCH, OK, UNMEASURED
from harness.common.registry import VariantCard
from harness.measure.process import WorkerLimits
from harness.proof import BY_DESIGN, IDENTICAL, UNPROVED, UP_TO_TIES, WRONG, prove
from harness.proof.prove import Identity, MergeList
from harness.records.file import Record
from harness.runs.cells import TrainCell
from harness.runs.run import exit_code
from harness.worker.calling import OWN
from variants.contract import Merge, TieBreak, WordCounts

pytestmark = pytest.mark.usefixtures("measured_once", "unruly_trainers")

WORDS = WordCounts.from_items([(b"ab", 2), (b"cd", 2), (b"ef", 2), (b"gh", 1)])
GREATEST = TieBreak.GREATEST_BYTES
BY_REASON = {"by_design": "it merges the rarest"}


def pairs(*texts: str) -> list[Merge]:
    return [(text[:1].encode(), text[1:].encode()) for text in texts]


RIGHT = pairs("ef", "cd", "ab", "gh")


@pytest.fixture(params=["compiled", "in Python"])
def either_replay(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "in Python":
        monkeypatch.setattr(prove, "_replay", None)
    else:
        pytest.importorskip("harness.proof.native._replay", reason="the compiled part is not built")


def identity(
    merges: Sequence[Merge],
    num_merges: int = 4,
    tie_break: TieBreak | None = None,
    whole: bool = True,
    by_design: str | None = None,
    **options: Any,
) -> Identity:
    return prove.prove(
        WORDS, MergeList("one", merges, num_merges, tie_break, whole, by_design), **options
    )


@pytest.mark.usefixtures("either_replay")
@pytest.mark.parametrize(
    ("arguments", "kind", "tie_break", "merge", "reason"),
    [
        ((RIGHT,), IDENTICAL, "greatest_bytes", None, None),
        ((RIGHT, 100), IDENTICAL, "greatest_bytes", None, None),
        ((RIGHT[:2], 2), IDENTICAL, "greatest_bytes", None, None),
        (([], 0), IDENTICAL, "greatest_bytes", None, None),
        ((pairs("ab", "cd", "ef", "gh"),), IDENTICAL, "smallest_bytes", None, None),
        ((pairs("cd", "ab", "ef", "gh"),), UP_TO_TIES, None, 1, "2 of its merges are choices among equals"),
        (
            (pairs("ef", "ab", "cd", "gh"), 4, GREATEST), WRONG, None, 2,
            "merge 2: b'a' + b'b', 2 times, as often as 1 other; greatest_bytes takes b'c' + b'd'",
        ),
        ((pairs("ef", "gh", "cd", "ab"),), WRONG, None, 2, "merge 2: b'g' + b'h', once; 2 pairs occur 2 times;"),
        ((pairs("ef", "cd"),), WRONG, None, 3, "it ended after 2 merges, with pairs left that occur 2 times"),
        (([*RIGHT, *pairs("xy")], 5), WRONG, None, 5, "0 times; no pair was left"),
        ((RIGHT, 3), WRONG, None, 4, "it made 4 merges, and 3 were requested"),
        ((pairs("ef", "ef", "cd", "ab"),), WRONG, None, 2, "b'e' + b'f', made before"),
        (([*pairs("ef"), (b"xx", b"y")],), WRONG, None, 2, "of a token that no earlier merge makes"),
        ((RIGHT[:2], 9, GREATEST, {"whole": False}), IDENTICAL, "greatest_bytes", None, None),
        ((pairs("gh"), 9, GREATEST, {"whole": False}), WRONG, None, 1, "once; 3 pairs occur 2 times"),
        (([], 9, GREATEST, {"whole": False}), UNPROVED, None, None, "it was stopped before its first merge"),
        ((pairs("gh"), 1, None, BY_REASON), BY_DESIGN, None, 1, "it merges the rarest; merge 1"),
        ((pairs("ef"), 1, None, BY_REASON), IDENTICAL, "greatest_bytes", None, None),
        ((RIGHT[:3], 9, None, {"min_count": 2}), IDENTICAL, "greatest_bytes", None, None),
        ((RIGHT[:3], 9), WRONG, None, 4, "it ended after 3 merges, with pairs left that occur once"),
        ((pairs("gh", "ef"), 2, None, {"inherited": pairs("gh")}), IDENTICAL, "greatest_bytes", None, None),
        (
            (pairs("gh", "ef"), 2, None, {"inherited": pairs("ef")}), WRONG, None, 1,
            "merge 1: b'g' + b'h', in place of an inherited one",
        ),
        ((RIGHT[1:], 4, None, {"veto": lambda left, _: left == b"e"}), IDENTICAL, "greatest_bytes", None, None),
    ],
)  # fmt: skip
def test_identities(
    arguments: tuple[Any, ...],
    kind: str,
    tie_break: str | None,
    merge: int | None,
    reason: str | None,
) -> None:
    result = identity(*arguments[:3], **(arguments[3] if len(arguments) > 3 else {}))
    assert (result.kind, result.tie_break, result.merge) == (kind, tie_break, merge)
    assert (result.reason is None) == (reason is None)
    assert (reason or "") in (result.reason or "")


def test_wrong_merge_is_recorded_with_its_counts_in_few_bytes() -> None:
    result = identity(pairs("ef", "gh", "cd", "ab"))
    assert (result.got, result.want, result.got_count, result.want_count) == (
        ["67", "68"],
        ["63", "64"],
        1,
        2,
    )
    assert len((identity([(b"a" * 10_000_000, b"b")], 1).got or [""])[0]) == 8192


def test_replays_that_disagree_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prove, "judge", lambda *_, **__: (0, False))
    assert identity(RIGHT).kind == UNPROVED


# In a run


def proved(folder: Path, cell: TrainCell) -> tuple[int, Record]:
    """Measure and prove; returns the exit code, and the trainer's record."""
    records = run_of(folder, [cell]).records()
    (record,) = [record for record in records if record["cell"] == "train"]
    assert record_of(record).identity == record.identity
    return exit_code(records), record


def outsider(name: str, **card: Any) -> VariantCard:
    return VariantCard(name, f"outsiders:{name}", family=name, **card)


@pytest.mark.parametrize(
    ("card", "rules", "own", "status", "kind", "under"),
    [
        (HEAP, {}, "greatest_bytes", "ok", IDENTICAL, "greatest_bytes"),
        (
            NAIVE,
            {"tie_break": "smallest_bytes"},
            "smallest_bytes",
            "ok",
            IDENTICAL,
            "smallest_bytes",
        ),
        (NAIVE, {"min_count": 3}, "greatest_bytes", "ok", IDENTICAL, "greatest_bytes"),
        (HEAP, {"tie_break": OWN}, "greatest_bytes", "ok", IDENTICAL, "greatest_bytes"),
        (unruly("returns_the_last_twice"), {}, "greatest_bytes", "mismatch", WRONG, None),
        (
            outsider("takes_raw_bytes"),
            {"tie_break": OWN},
            "raw_bytes",
            "ok",
            IDENTICAL,
            "raw_bytes",
        ),
        (outsider("takes_the_first"), {"tie_break": OWN}, OWN, "ok", UP_TO_TIES, None),
        (outsider("takes_the_rarest"), {"tie_break": OWN}, OWN, "mismatch", WRONG, None),
        (
            outsider("takes_the_rarest", by_design="it takes the rarest"),
            {"tie_break": OWN},
            OWN,
            "ok",
            BY_DESIGN,
            None,
        ),
        (outsider("promises_raw_bytes"), {"tie_break": OWN}, "raw_bytes", "mismatch", WRONG, None),
        (
            outsider("takes_the_first"),
            {"tie_break": "raw_bytes"},
            "raw_bytes",
            "skipped",
            None,
            None,
        ),
    ],
)
def test_run_judges_each_trainer_under_its_rules(
    tmp_path: Path,
    card: VariantCard,
    rules: dict[str, Any],
    own: str,
    status: str,
    kind: str | None,
    under: str | None,
) -> None:
    cell = cell_of(reading_of(tmp_path, "cd\nab\nef\n" * 3 + "xy"), card, 6, **rules)
    code, record = proved(tmp_path, cell)
    identity = record["identity"] or {"kind": None, "tie_break": None}
    assert (record["tie_break"], record["status"]) == (own, status)
    assert (identity["kind"], identity["tie_break"]) == (kind, under)
    if kind == WRONG:
        assert record["reason"] == identity["reason"]
        reads_text = card.target.startswith("outsiders")
        assert ("compare them with python -m harness" in identity["reason"]) == reads_text
    assert code == {"ok": OK, "mismatch": MISMATCH, "skipped": UNMEASURED}[status]


@pytest.mark.parametrize("trainer", first_fast(["stops_on_request", "hangs_after_some_merges"]))
def test_merges_of_a_stopped_run_are_proved(tmp_path: Path, trainer: str) -> None:
    cell = cell_of(reading_of(tmp_path), unruly(trainer), limits=WorkerLimits(wall_seconds=0.6))
    code, record = proved(tmp_path, cell)
    assert (code, record["identity"]["kind"]) == (UNMEASURED, IDENTICAL)
    assert record["status"] in ("timeout", "extrapolated")
    assert 0 < record["merges_done"] < 10
    assert (record["merges"], record["seconds"]["total"]) == (None, None)


def test_merges_of_other_words_are_judged_on_those(tmp_path: Path) -> None:
    pytest.importorskip("gigabpe")
    gigabpe = registry.variants()["peer_gigabpe"]
    cell = replace(
        cell_of(reading_of(tmp_path, "a  \n\n  b \n\n\n  c\n" * 9), gigabpe, 6), tie_break=OWN
    )
    identity = proved(tmp_path, cell)[1]["identity"]
    assert (identity["kind"], identity["of_own_words"]) == (BY_DESIGN, "identical (huggingface)")
