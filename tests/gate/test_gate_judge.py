"""From a gate's records to the verdict: every state with its exit code, as --replay gives it."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from measured import records_of
from msgspec import structs
from rows import Row, each_row, write_files
from workbench import CHECKOUT, Call

from harness.common import registry
from harness.common.errors import Refusal
from harness.common.registry import VariantCard
from harness.gate import judge
from harness.gate.observe import Compared, observe_instructions, session_of
from harness.gate.rule import new_log, read_accepted, read_gate_card
from harness.measure.process import Answer, ProcessOptions
from harness.records.file import RunLog
from harness.records.schema import Note
from harness.runs import blocks
from harness.runs.cells import Side

STARTED = "2026-01-01T00:00:00+00:00"
BLOCKS = ["time.triage.blocks=8", "time.confirm.blocks=12"]
CARD = msgspec.to_builtins(read_gate_card("usual", BLOCKS))


@each_row(__file__, "verdicts.toml")
def test_replay_gives_the_verdict_of_its_row(
    row: Row,
    here: Path,
    call: Call,
) -> None:
    store_gate(here / "gate", row)

    code, out, err = call("gate --replay gate --output again", *row.get("options", []))
    assert code == row.get("exit", 0)
    if "refused" in row:
        assert row["refused"] in err
        return

    verdict = json.loads(Path("again", "verdict.json").read_text())
    assert (verdict["verdict"], verdict["exit_code"]) == (row["verdict"], code)
    messages = [finding["message"] for finding in verdict["findings"]]
    assert " ".join(row["out"].split()) in " ".join("\n".join([out, *messages]).split())
    summary = Path("again", "summary.md").read_text()
    assert summary == row.get("summary", summary)
    assert max(map(len, summary.split("```")[1].splitlines())) <= 100


def store_gate(folder: Path, row: Row) -> None:
    """Write the records of a gate that measured what a row says."""
    card = {**CARD, "tiers": row.get("tiers", ()), **row.get("card", {})}
    question: Any = {"card": card, "head": "the working tree"}
    for name in ("snapshot", "commit", "accepted"):
        if name in row:
            question[name] = row[name]
    log = new_log(folder, STARTED, question)
    log.run = structs.replace(log.run, environment=row.get("environment", {}))

    for tier in ("identity", "work"):
        for figures in row.get(tier, []):
            add(log, tier, **figures)
    for side, counts in row.get("instructions", {}).items():
        for layout, count in enumerate(counts):
            counted = {"count": count, "path": "x86_64", "tool": "callgrind"}
            add(log, "work", side, block=layout, instructions=counted)
    add_times(log, row)
    for note in row.get("notes", []):
        log.append(Note(run=STARTED, **note))


def add_times(log: RunLog, row: Row) -> None:
    """Add the samples of time, block by block: base, base again, and head."""
    heads = in_blocks(row.get("triage", []), 8) + in_blocks(row.get("confirm", []), 12)
    agains = in_blocks(1.0, 8) + in_blocks(row.get("again", 1.0), 12)
    pressures = in_blocks(row.get("pressure", 0.0), len(heads))
    common = {"cpu_wait_seconds": 0.0, "threads": row.get("threads", 1)}

    for block, head in enumerate(heads):
        for side, wall in {"base": 1.0, "again": agains[block], "head": head}.items():
            figures = {**common, "block": block, "wall": wall, **row.get(f"of_{side}", {})}
            if side == "base":
                figures["pressure"] = pressures[block]
            if block == len(heads) - 1:
                figures |= row.get(f"last_{side}", {})
            add(log, "time", side, **figures)


def in_blocks(value: Any, blocks: int) -> list[float]:
    """One number of every block, or those of each."""
    return list(value) if isinstance(value, list) else [value] * blocks


def add(
    log: RunLog,
    tier: str,
    side: str = "head",
    wall: float = 1.0,
    threads: int = 1,
    pressure: float = 0.0,
    **figures: Any,
) -> None:
    """Add a record of a gate; it is right and proved unless it says more."""
    row = {
        "variant": "mine",
        "run_id": STARTED,
        "merges": 9,
        "gate": {"tier": tier, "corpus": "letters", "comparison": "mine", "side": side},
        "seconds": wall,
        "cpu_seconds": wall * threads,
        "threads": threads,
        "disturbance": {"psi_cpu_seconds": pressure * wall},
    }
    (record,) = records_of([{**row, **figures}])
    log.add(record.cell, record.measurement, record.proof)


# The file of what is accepted, and the folder of a gate


def test_lines_accept_changes_against_one_base_and_counts_or_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "accepted.txt"
    path.write_text("# reasons\n\n0123456789 mine time it checks\nmine letters pairs left 12\n")
    change = {"variant": "mine", "tier": "time", "reason": "it checks"}
    counts = {"mine": {"letters": {"pairs left": 12}}}
    assert read_accepted(path, "0123456789ab") == (counts, [change])
    assert read_accepted(path, "0123456788ab") == read_accepted(path) == (counts, [])

    for line in ("abc mine time short", "0123456789 mine identity never", "0123456789 mine time"):
        path.write_text(f"\n{line}\n")
        with pytest.raises(Refusal, match=r"accepted\.txt, line 2: write BASE VARIANT TIER REASON"):
            read_accepted(path)


def test_new_gate_removes_an_older_one(tmp_path: Path) -> None:
    store_gate(tmp_path, {})
    write_files(tmp_path, {"verdict.json": "of this gate", "summary.md": "of this gate"})
    store_gate(tmp_path, {})
    assert [*tmp_path.iterdir()] == [tmp_path / "records.jsonl"]


def test_accepted_counts_are_of_variants_of_this_project() -> None:
    accepted = read_accepted(CHECKOUT / "results" / "accepted.txt")
    assert accepted.counts.keys() <= registry.variants().keys()
    assert accepted.counts


# Instructions


def test_only_what_takes_more_is_counted_in_other_layouts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: dict[str, list[int]] = {
        "base": [1000] * 8,
        "same": [1005],
        "once": [1020, 1000],
        "often": [1020, 1016, 1030, 1020, 1020],
    }

    def counted(_: Any, output: Path, __: Any, ___: Any, options: ProcessOptions) -> Answer:
        [name] = options.import_folders or ()
        output.mkdir(parents=True)
        instructions = {"count": counts[name].pop(0), "path": "", "tool": "callgrind"}
        return Answer("ok", instructions=instructions)

    monkeypatch.setattr(blocks, "measure_instructions", counted)
    monkeypatch.setattr(judge, "trouble_of", lambda *_: None)  # about merges, of which it has none
    session = session_of(RunLog(None, STARTED), tmp_path, "instructions", 5)
    mine = VariantCard("mine", "mine:train")
    base, *heads = (Side(name, "", (name,)) for name in counts)
    compared = [Compared(head.name, base, mine, head, mine) for head in heads]
    observe_instructions(read_gate_card("usual"), session, compared)
    assert not any(counts.values())
