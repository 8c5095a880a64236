"""The proof: which identity each list of merges has, alone and in a run."""

from pathlib import Path

import pytest
from measured import record_of
from rows import Row, each_row, merges_of
from workbench import cell_of, first_fast, limits_wait, reading_of, recorded_run, unruly

from harness.common import registry
from harness.common.errors import UNMEASURED
from harness.common.registry import VariantCard
from harness.measure.process import WorkerLimits
from harness.proof import BY_DESIGN, IDENTICAL, WRONG, prove
from harness.proof.compiled_replay import Replay
from harness.records.file import Record
from harness.runs.cells import TrainCell
from harness.runs.run import exit_code
from harness.worker.calling import OWN
from variants.contract import TieBreak, WordCounts

pytestmark = pytest.mark.usefixtures("measured_once", "unruly_trainers")

WORDS = WordCounts.from_items([(b"ab", 2), (b"cd", 2), (b"ef", 2), (b"gh", 1)])


@each_row(__file__, "identities.toml")
def test_identity(row: Row) -> None:
    options = {"num_merges": 4, "tie_break": None, **row.get("list", {})}
    if options["tie_break"] is not None:
        options["tie_break"] = TieBreak(options["tie_break"])
    rules = row.get("rules", {})
    if "inherited" in rules:
        rules = {**rules, "inherited": merges_of(rules["inherited"])}

    replay = Replay(WORDS, merges_of(row["merges"]), options.pop("num_merges"), **rules)
    identity = prove.prove(replay, **options)

    expected = {"tie_break": None, "merge": None, **row["identity"]}
    assert {name: getattr(identity, name) for name in expected} == expected
    assert (identity.reason is None) == ("reason" not in row)
    assert row.get("reason", "") in (identity.reason or "")


def test_long_wrong_merge_is_recorded_in_few_bytes() -> None:
    identity = prove.prove(Replay(WORDS, [(b"a" * 10_000_000, b"b")], 1))
    assert len((identity.got or [""])[0]) == 8192


# In a run


def proved(folder: Path, cell: TrainCell) -> tuple[int, Record]:
    """Measure and prove; returns the exit code, and the trainer's record."""
    records = recorded_run(folder, [cell]).records()
    (record,) = [record for record in records if record["cell"] == "train"]
    assert record_of(record).identity == record.identity
    return exit_code(records), record


@each_row(__file__, "judged_runs.toml")
def test_run_judges_each_trainer_under_its_rules(tmp_path: Path, row: Row) -> None:
    target = row["trainer"]
    card = VariantCard("judged", target, family=target, **row.get("card", {}))
    reading = reading_of(tmp_path, "cd\nab\nef\n" * 3 + "xy")

    code, record = proved(tmp_path, cell_of(reading, card, 6, **row.get("rules", {})))

    judged = {"tie_break": record["tie_break"], "status": record["status"], "exit": code}
    assert judged == row["judged"]
    identity = record["identity"] or {}
    expected = {"kind": None, "tie_break": None, **row.get("identity", {})}
    assert {name: identity.get(name) for name in expected} == expected
    if expected["kind"] == WRONG:
        assert record["reason"] == identity["reason"]
        differs = target.startswith("outsiders") and identity["got_count"] != identity["want_count"]
        assert ("compare them with python -m harness" in identity["reason"]) == differs


@pytest.mark.parametrize("trainer", first_fast(["stops_on_request", "hangs_after_some_merges"]))
def test_merges_of_a_stopped_run_are_proved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trainer: str
) -> None:
    limits_wait(monkeypatch, lambda done: done > 0)
    cell = cell_of(reading_of(tmp_path), unruly(trainer), limits=WorkerLimits(wall_seconds=0.6))
    code, record = proved(tmp_path, cell)
    assert (code, record["identity"]["kind"]) == (UNMEASURED, IDENTICAL)
    assert record["status"] == "timeout"
    assert 0 < record["merges_done"] < 10
    assert record["merges"] is record["seconds"]["total"] is None


def test_merges_of_other_words_are_judged_on_those(tmp_path: Path) -> None:
    pytest.importorskip("gigabpe")
    reading = reading_of(tmp_path, "a  \n\n  b \n\n\n  c\n" * 9)
    cell = cell_of(reading, registry.variants()["peer_gigabpe"], 6, tie_break=OWN)
    identity = proved(tmp_path, cell)[1]["identity"]
    assert (identity["kind"], identity["of_own_words"]) == (BY_DESIGN, "identical (huggingface)")
