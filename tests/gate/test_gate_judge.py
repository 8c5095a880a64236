"""From evidence to the verdict: every state with its exit code, the same again from the file, and
instructions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from gating import OTHER, STARTED, gate_cell, timed
from msgspec import structs
from workbench import CHECKOUT

from harness.common import registry
from harness.common.errors import Refusal
from harness.common.registry import VariantCard
from harness.gate.card import Card, Stage, TimeRule, read_card
from harness.gate.evidence import (
    IDENTITY,
    accept,
    accepted_changes,
    evidence_of,
    new_log,
    read_evidence,
    read_snapshot,
)
from harness.gate.judge import Finding, GateVerdict, judge
from harness.gate.observe import Arm, Arms, Sampler, observe_instructions
from harness.gate.show import as_json, lines, markdown
from harness.measure import callgrind
from harness.measure.process import Answer
from harness.records.log import RunLog
from harness.records.schema import GateQuestion, Note, Proof, Run, StoredIdentity
from harness.runs.cells import Side

MACHINE = {"cpu": "one", "python": "CPython 3.12"}

RULE = TimeRule(triage=Stage(8, 0.015), confirm=Stage(12, 0.025))
Observed = tuple[str, dict[str, Any]]
"""The kind of an observation: a tier, instructions, note or tallies, and what differs."""
IDENTICAL = {"kind": "identical"}
PROVED: Observed = ("identity", {"identity": IDENTICAL})
WRONG: Observed = (
    "identity",
    {
        "identity": {"kind": "wrong", "reason": "merge 7, 'a'+'b', occurs once, others 2 times"},
        "status": "mismatch",
        "reason": "wrong",
    },
)


def note(reason: str, **of_note: Any) -> Observed:
    return "note", {
        "tier": "time",
        "state": "absent",
        "variant": "mine",
        "reason": reason,
        **of_note,
    }


NO_BASE = note("times were not compared: no base", variant="all")


def failed(tier: str, status: str, reason: str = "it broke", **further: Any) -> Observed:
    return tier, {"status": status, "reason": reason, "merges_sha256": None, **further}


def tallies(counted: Any, expected: Any, **further: Any) -> Observed:
    return "tallies", {"tallies": counted, "expected": expected, **further}


def instructions(base: Sequence[int], head: Sequence[int]) -> list[Observed]:
    observed: list[Observed] = []
    for side, counts in (("base", base), ("head", head)):
        for layout, number in enumerate(counts):
            count = {"count": number, "path": "x86_64", "tool": "callgrind"}
            observed.append(("work", {"side": side, "block": layout, "instructions": count}))
    return observed


def times(ratio: float, confirm: float | None = None, **last: Any) -> list[Observed]:
    """A comparison whose head takes `ratio` times as long, and in the blocks of confirmation
    `confirm` times; `last` is of the last sample of head, or of another side.
    """
    observed: list[Observed] = []
    changed = last.pop("side", "head")
    ratios = [ratio] * 8 + ([] if confirm is None else [confirm] * 12)
    for block, slower in enumerate(ratios):
        for side, seconds in (("base", 1.0), ("again", 1.0), ("head", slower)):
            sample = {"side": side, "block": block, "wall": seconds, "cpu_wait_seconds": 0.0}
            is_changed = side == changed and block == len(ratios) - 1
            observed.append(("time", {**sample, **(last if is_changed else {})}))
    return observed


def log_of(folder: Path, observed: Sequence[Observed], **of_card: Any) -> RunLog:
    """The records of a gate with the tiers that were observed, or of that card."""
    names = {"identity": "identity", "tallies": "work"}
    tiers = [tier for kind, tier in names.items() if kind in dict(observed)]
    card = {**msgspec.to_builtins(Card(tiers=(), time=RULE)), "tiers": tiers, **of_card}
    question: GateQuestion = {"card": card, "head": "the working tree", "snapshot": {}}
    log = new_log(folder / "gate", STARTED, question)
    for kind, values in observed:
        add(log, kind, dict(values), question)
    return log


def add(log: RunLog, kind: str, values: dict[str, Any], question: GateQuestion) -> None:
    if kind == "note":
        log.append(Note(run=STARTED, **values))
        return

    variant, side = values.pop("variant", "mine"), values.pop("side", "head")
    if not values.pop("snapshot", True):
        question.pop("snapshot")
    expected = values.pop("expected", None)
    if expected is not None:
        question["snapshot"][variant] = {"letters": expected}
    log.run = Run(run=STARTED, schema=2, question=question, environment=MACHINE)

    tier = "identity" if kind == "tallies" else kind
    cell = gate_cell(tier, side, variant)
    identity = values.pop("identity", IDENTICAL if kind in ("time", "tallies") else None)
    measurement = timed(values.pop("block", 0), values.pop("wall", 1.0), **values).measurement
    digest, proof = measurement.merges_sha256, None
    if identity is not None and digest is not None:
        stored = StoredIdentity(**identity)
        proof = Proof(run=STARTED, cell=0, merges_sha256=digest, identity=stored)
    log.add(cell, structs.replace(measurement, merges=9), proof)


def judged(log: RunLog) -> GateVerdict:
    evidence = evidence_of(log)
    assert evidence is not None
    return judge(evidence)


@pytest.mark.parametrize(
    ("clocks", "expected", "clock"),
    [
        ({"wall": 1.06}, "regression", "net"),
        ({"wall": 1.56, "cpu_wait_seconds": 0.5}, "regression", "net"),
        ({"wall": 1.5, "cpu_wait_seconds": 0.5}, "pass", "net"),
        ({"wall": 1.06, "cpu_wait_seconds": None, "cpu_wait_unknown": "a thread"}, "regression", "wall"),
    ],
    ids=["sleeps", "sleeps on a busy machine", "waits for a CPU", "sleeps in a thread"],
)  # fmt: skip
def test_waiting_is_slower_unless_it_is_for_a_processor(
    tmp_path: Path, clocks: dict[str, Any], expected: str, clock: str
) -> None:
    observed = times(1.0, confirm=1.0)
    for _, sample in observed:
        if sample["side"] == "head":
            sample.update({**clocks, "cpu": 1.0})
    state, _, message = outcome(log_of(tmp_path, observed))
    assert (state, f"{clock} time" in message) == (expected, True)


def outcome(log: RunLog) -> tuple[str, int, str]:
    """State, exit code and the gravest message; the same as from the file."""
    evidence = evidence_of(log)
    assert evidence is not None
    assert log.store is not None
    verdict, stored = judge(evidence), read_evidence(log.store.path)
    assert json.dumps(as_json(judge(stored), stored, 0)) == json.dumps(
        as_json(verdict, evidence, 0)
    )
    message = verdict.findings[0].message if verdict.findings else ""
    return verdict.state(), verdict.exit_code(), message


CASES: list[tuple[list[Observed], str, str]] = [
    ([], "absent 22", ""),
    ([NO_BASE, failed("identity", "skipped", "no Boost")], "unmeasured 22", "letters: no Boost"),
    (
        [tallies({"update/steps": 5}, {"update/steps": 5}), NO_BASE],
        "pass 0",
        "times were not compared",
    ),
    (
        [*times(2.0, 2.0), WRONG],
        "mismatch 21",
        "mine on letters: merge 7, 'a'+'b', occurs once, others 2 times",
    ),
    *(
        ([PROVED, failed("identity", status)], "unmeasured 22", f"{status}: it broke")
        for status in ("error", "killed", "timeout", "out_of_memory", "rejected")
    ),
    (
        [("identity", {"identity": {"kind": "unproved", "reason": "no replay"}})],
        "unmeasured 22",
        "unproved, no replay",
    ),
    (
        [tallies({"update/a": 11}, {"update/a": 10})],
        "drift 21",
        "update/a: 10 -> 11 (+10.0 %); --accept",
    ),
    ([tallies({"steps": 4}, {"steps": 3})], "drift 21", "mine on letters, steps: 3 -> 4"),
    (
        [tallies({"max/new": 4}, {"max/new": 4, "max/old": 3})],
        "drift 21",
        "mine on letters, max/old: 3 -> none",
    ),
    (
        [tallies({"steps": 4}, None, snapshot=False)],
        "unmeasured 22",
        "mine on letters: no snapshot",
    ),
    ([tallies({"steps": 4}, None)], "drift 21", "mine on letters: not in the snapshot"),
    (
        [tallies({"steps": 4}, {"steps": 3}), note("", tier="work", state="accepted")],
        "pass 0",
        "steps: 3 -> 4 (+33.3 %); accepted",
    ),
    (
        instructions([1000], [1006]),
        "regression 20",
        "instructions: 1,000 -> 1,006 (+0.60 %); at most +0.5 %",
    ),
    (instructions([1000], [1005]), "pass 0", "mine, instructions: 1,000 -> 1,005"),
    (instructions([1000, 1020], [1040, 1027]), "regression 20", "1,020 -> 1,027 (+0.69 %), t"),
    (instructions([1000, 1020], [1040, 1025]), "pass 0", "1,020 -> 1,025"),
    ([PROVED, failed("work", "skipped", "no valgrind")], "pass 0", "no valgrind"),
    (
        times(1.1, 1.08),
        "regression 20",
        "mine on letters, net time: head is slower (+8.0 %, between +8.0 % and +8.0 %",
    ),
    (times(1.1), "inconclusive 23", "mine on letters, net time: head looks slower"),
    (
        times(1.0, merges_sha256=OTHER, identity=None),
        "mismatch 21",
        "head made other merges than the proved ones in block 7",
    ),
    (
        times(1.0, status="killed", reason="SIGSEGV"),
        "unmeasured 22",
        "mine on letters: head was killed in block 7 of triage: SIGSEGV",
    ),
    (
        [PROVED, *times(1.0, side="base", status="error", reason="it broke")],
        "pass 0",
        "mine on letters: base was error in block 7 of triage: it broke",
    ),
]


@pytest.mark.parametrize(("observed", "result", "message"), CASES)
def test_verdict(tmp_path: Path, observed: list[Observed], result: str, message: str) -> None:
    state, code, gravest = outcome(log_of(tmp_path, observed))
    assert f"{state} {code}" == result
    assert message in gravest


@pytest.mark.parametrize(
    ("tier", "observed", "accepted"),
    [
        ("time", times(1.1, 1.08), True),
        ("work", instructions([1000], [1006]), True),
        ("work", [tallies({"steps": 4}, {"steps": 3})], True),
        ("time", instructions([1000], [1006]), False),
        ("work", [WRONG], False),
    ],
)
def test_change_is_accepted_by_a_line_for_its_base(
    tmp_path: Path, tier: str, observed: list[Observed], accepted: bool
) -> None:
    path = tmp_path / "accepted.txt"
    path.write_text(f"# reasons\n\n0123456789 mine {tier} it checks its input\n")
    commit = "0123456789ab" + "0" * 28
    log = log_of(tmp_path, observed)
    assert log.run.question is not None
    log.run.question["commit"] = commit
    log.append()
    text = "\n".join(lines(judged(log)))
    assert ("\n             if that is on purpose, commit in results/accepted.txt: " in text) == (
        judged(log).exit_code() == 20
    )

    log.run.question["accepted"] = accepted_changes(path, commit)
    log.append()
    verdict = judged(log)
    assert (verdict.exit_code() == 0) == accepted
    assert ("; accepted: it checks its input" in "\n".join(lines(verdict))) == accepted
    assert accepted_changes(path, "9" * 40) == []  # of another base


def test_line_that_accepts_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "accepted.txt"
    for line in ("abc mine time short", "0123456789 mine identity never", "0123456789 mine time"):
        path.write_text(f"\n{line}\n")
        with pytest.raises(Refusal, match=r"accepted\.txt, line 2: write BASE VARIANT TIER REASON"):
            accepted_changes(path, "0" * 40)


@pytest.mark.parametrize(
    ("observed", "why"),
    [(WRONG, "wrong merges"), (failed("identity", "error"), "no run succeeded")],
)
def test_reason_of_a_tier_without_a_result_is_true(
    tmp_path: Path, observed: Observed, why: str
) -> None:
    log = log_of(tmp_path, [observed], tiers=["identity", "time"])
    assert lines(judged(log))[0].endswith(f"; time was not measured: {why}")


def test_outside_trainer_known_to_be_wrong_fails_nothing(tmp_path: Path) -> None:
    log = log_of(tmp_path, [PROVED, WRONG], known_wrong={"mine": "it documents that"})
    assert outcome(log)[:2] == ("pass", 0)
    absent = "absent       mine: wrong merges, as the card knows: it documents that"
    assert absent in lines(judged(log))


def test_requested_tier_without_a_result_is_22_and_named(tmp_path: Path) -> None:
    reason = "mine, time: base was error: no such module"
    observed = [tallies({"a": 1}, {"a": 1}), note(reason)]
    log = log_of(tmp_path, observed, tiers=["identity", "work", "time"])
    verdict = judged(log)
    assert verdict.exit_code() == 22
    assert lines(verdict)[0].endswith(f"checks passed; time was not measured: {reason}")
    same = note("other, time: the same code in base and head", variant="other")
    log.append(Note(run=STARTED, **same[1]))
    assert judged(log).exit_code() == 0  # what did not change is not slower


def test_gravest_finding_decides() -> None:
    states = ["pass", "absent", "inconclusive", "unmeasured", "regression", "drift"]
    verdicts = [
        GateVerdict([Finding("time", each, "mine", "") for each in states[: number + 1]])
        for number in range(6)
    ]
    assert [verdict.exit_code() for verdict in verdicts] == [0, 0, 23, 22, 20, 21]
    assert [verdicts[2].exit_code(treated) for treated in ("pass", "fail", "neutral")] == [
        0,
        20,
        23,
    ]


def test_markdown_loses_nothing(tmp_path: Path) -> None:
    log = log_of(tmp_path, [tallies({"max/a|b": 2}, {"max/a|b": 1})])
    evidence, verdict = evidence_of(log), judged(log)
    assert evidence is not None
    text = markdown(verdict, evidence)
    assert text.startswith("### ❌ gate: counts of work changed; ")
    assert "\n".join(["```text", *lines(verdict)[1:], "```"]) in text
    assert "Base: none; head: the working tree. one, CPython 3.12, 2026-01-01" in text


def test_absent_variants_share_a_line(tmp_path: Path) -> None:
    skipped = failed("identity", "skipped", "it breaks ties otherwise")
    assert any("breaks ties" in line for line in lines(judged(log_of(tmp_path, [skipped]))))
    notes = [note(f"v{number}, time: no Boost", variant=f"v{number}") for number in range(3)]
    text = lines(judged(log_of(tmp_path, [skipped, PROVED, *notes])))
    # it was measured elsewhere
    assert not any("breaks ties" in line for line in text)
    assert "absent       v0, v1, v2: no Boost" in text


@pytest.mark.parametrize("content", ["", "not JSON", '{"kind":"end","run":"2026-01-01T00:00:00Z"}'])
def test_file_that_is_not_evidence_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(content)
    with pytest.raises(Refusal) as refusal:
        read_evidence(path)
    assert refusal.value.exit_code == 22


def test_line_cut_short_is_skipped(tmp_path: Path) -> None:
    log = log_of(tmp_path, [PROVED])
    assert log.store is not None
    with log.store.path.open("a") as file:
        file.write('{"kind": "measurement", "var')
    assert judge(read_evidence(log.store.path)).exit_code() == 0


def test_new_gate_removes_an_older_one_and_no_other_records(tmp_path: Path) -> None:
    path = tmp_path / "gate" / "records.jsonl"
    log_of(tmp_path, [])
    for name in ("verdict.json", "summary.md"):
        path.with_name(name).write_text("of this gate")
    log_of(tmp_path, [])
    assert [other.name for other in path.parent.iterdir()] == ["records.jsonl"]

    content = path.read_text() + f'{{"kind":"run","run":"{STARTED}","schema":2}}\n'
    path.write_text(content)
    with pytest.raises(Refusal, match=r"records\.jsonl has records of other measurements; choose"):
        log_of(tmp_path, [])
    assert path.read_text() == content


def test_file_that_is_not_a_snapshot_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "counters.json"
    path.write_text('{"schema": 1, "counters": {"a": 1}}')
    with pytest.raises(Refusal, match="is not a snapshot of counts"):
        read_snapshot(path)


def test_accepting_rewrites_only_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "counters.json"
    counters = {
        "mine": {"letters": {"n": 10}},
        "absent": {"letters": {"n": 5}},
        "silent": {"letters": {"n": 1}},
    }
    path.write_text(json.dumps({"schema": 1, "counters": counters}))
    wrong = (WRONG[0], {**WRONG[1], "tallies": {"n": 12}})
    new, silent = (
        tallies({"k": 3}, None, variant="new"),
        tallies({}, {"n": 1}, variant="silent"),
    )
    evidence = evidence_of(log_of(tmp_path, [wrong, new, silent]))
    assert evidence is not None
    accept(path, evidence.of(IDENTITY))
    snapshot = read_snapshot(path)
    assert snapshot is not None
    assert snapshot.counters == {
        "mine": {"letters": {"n": 10}},  # its merges are wrong
        "absent": {"letters": {"n": 5}},
        "silent": {"letters": {}},
        "new": {"letters": {"k": 3}},
    }


def test_snapshot_of_this_project_has_no_variant_that_is_gone() -> None:
    snapshot = read_snapshot(CHECKOUT / "results" / "counters.json")
    assert snapshot is not None
    assert snapshot.counters.keys() <= registry.variants().keys()


def comparison(name: str) -> Arms:
    base, head = (
        Arm(Side(side, "", (side,)), VariantCard(name, f"{side}_module:train"))
        for side in ("base", "head")
    )
    return Arms(name, base, head)


@pytest.mark.parametrize(
    ("base", "head", "code", "layouts", "message"),
    [
        ([1000], [1005], 0, 1, "1,000 -> 1,005"),
        (
            [1000, 1010, 990, 1000, 1000],
            [1020, 1016, 1030, 1020, 1020],
            20,
            5,
            "1,010 -> 1,016 (+0.59 %)",
        ),
        ([1000, 1000], [1020, 1000], 0, 2, "in 2 layouts of memory"),
        ([1000, 1020], [1020, 1030], 0, 2, "in 2 layouts of memory"),
        ([1000, "error"], [1020, 1020], 22, 2, "second, instructions: base was error: because"),
        ([1000, 1000], [1020, "timeout"], 22, 2, "second, instructions: head was timeout: because"),
    ],
)
def test_instructions_are_counted_in_other_layouts_while_head_takes_more(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    base: list[int | str],
    head: list[int | str],
    code: int,
    layouts: int,
    message: str,
) -> None:
    used = set[int]()

    def counted(_: Any, output: Path, *__: Any, places: Any, layout: int, **___: Any) -> Answer:
        used.add(layout)
        output.mkdir(parents=True)
        count = {"base": base, "head": head}[places[0]][layout]
        if isinstance(count, str):
            return Answer(count, "because")
        shown = {"count": count, "path": "x86_64", "tool": "callgrind"}
        return Answer("ok", instructions=shown)

    monkeypatch.setattr(callgrind, "measure_instructions", counted)
    card = read_card("usual")
    question: GateQuestion = {"card": msgspec.to_builtins(Card(tiers=("work",))), "head": ""}
    log = new_log(tmp_path / "gate", STARTED, question)
    sampler = Sampler(card, tmp_path / "folder", log)
    observe_instructions(sampler, [comparison("first"), comparison("second")])
    verdict = judged(log)
    assert verdict.exit_code() == code
    assert {finding.variant for finding in verdict.findings} >= {"first", "second"}
    assert any(message in finding.message for finding in verdict.findings)
    assert used == set(range(layouts))
