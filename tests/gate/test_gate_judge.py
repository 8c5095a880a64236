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
from gating import OTHER, RUN, STARTED, gate_cell, timed
from msgspec import structs
from workbench import CHECKOUT

from harness.common import registry
from harness.common.errors import Refusal
from harness.common.registry import VariantCard
from harness.gate.card import GateCard, Stage, TimeRule, read_gate_card
from harness.gate.evidence import (
    accept,
    accepted_changes,
    evidence_of,
    new_log,
    read_evidence,
    read_snapshot,
)
from harness.gate.judge import Finding, GateVerdict, judge
from harness.gate.observe import Arm, Arms, Sampler, observe_instructions
from harness.gate.show import as_json, lines, summary_of
from harness.measure import callgrind
from harness.measure.process import Answer, ProcessOptions
from harness.records.file import Record
from harness.records.log import RunLog
from harness.records.schema import GateQuestion, Note, Proof, StoredIdentity
from harness.runs.cells import Side

RULE = TimeRule(triage=Stage(8, 0.015), confirm=Stage(12, 0.025))
Observed = tuple[str, dict[str, Any]]
"""A tier, tallies, a note, the snapshot or the card, and what differs."""
IDENTICAL = StoredIdentity(kind="identical")
PROVED: Observed = ("identity", {})
WRONG: Observed = (
    "identity",
    {
        "identity": StoredIdentity(kind="wrong", reason="merge 7, 'a'+'b', occurs once"),
        "status": "mismatch",
        "reason": "wrong",
    },
)


def note(reason: str, **of_note: Any) -> Observed:
    values = {"tier": "time", "state": "absent", "variant": "mine", "reason": reason}
    return "note", {**values, **of_note}


NO_BASE = note("times were not compared: no base", variant="all")
NO_MODULE = note("mine, time: base was error: no such module")
UNCHANGED = note("other, time: the same code in base and head", variant="other")
ALL_TIERS: Observed = ("card", {"tiers": ["identity", "work", "time"]})


def failed(tier: str, status: str, reason: str = "it broke") -> Observed:
    return tier, {"status": status, "reason": reason, "merges_sha256": None}


def tallies(counted: dict[str, int], stored: dict[str, int] | None) -> list[Observed]:
    """Counts of work, and the snapshot, which may lack the trainer."""
    snapshot = {} if stored is None else {"mine": {"letters": stored}}
    return [("snapshot", snapshot), ("tallies", {"tallies": counted})]


def instructions(base: Sequence[int], head: Sequence[int]) -> list[Observed]:
    observed: list[Observed] = []
    for side, counts in (("base", base), ("head", head)):
        for layout, number in enumerate(counts):
            count = {"count": number, "path": "x86_64", "tool": "callgrind"}
            observed.append(("work", {"side": side, "block": layout, "instructions": count}))
    return observed


def times(
    ratio: float,
    confirm: float | None = None,
    *,
    of_head: dict[str, Any] | None = None,
    last: str = "head",
    **of_last: Any,
) -> list[Observed]:
    """A comparison whose head takes `ratio` times as long, and in the blocks of confirmation
    `confirm` times; `of_head` is of every sample of head, `of_last` of the last of one side.
    """
    observed: list[Observed] = []
    ratios = [ratio] * 8 + ([] if confirm is None else [confirm] * 12)
    for block, slower in enumerate(ratios):
        for side, seconds in (("base", 1.0), ("again", 1.0), ("head", slower)):
            sample = {"side": side, "block": block, "wall": seconds, "cpu_wait_seconds": 0.0}
            sample |= (of_head or {}) if side == "head" else {}
            observed.append(("time", sample))
    [*_, changed] = [sample for _, sample in observed if sample["side"] == last]
    changed |= of_last
    return observed


def log_of(folder: Path, observed: Sequence[Observed]) -> RunLog:
    """The records of a gate that observed this."""
    kinds = dict(observed)
    tiers = [
        tier for kind, tier in (("identity", "identity"), ("tallies", "work")) if kind in kinds
    ]
    card = {**msgspec.to_builtins(GateCard(time=RULE)), "tiers": tiers, **kinds.get("card", {})}
    question: GateQuestion = {"card": card, "head": "the working tree"}
    if "snapshot" in kinds:
        question["snapshot"] = kinds["snapshot"]
    log = new_log(folder / "gate", STARTED, question)
    for kind, values in observed:
        if kind == "note":
            log.append(Note(run=STARTED, **values))
        elif kind not in ("snapshot", "card"):
            add(log, "identity" if kind == "tallies" else kind, **values)
    return log


def add(
    log: RunLog,
    tier: str,
    side: str = "head",
    block: int = 0,
    wall: float = 1.0,
    identity: StoredIdentity | None = IDENTICAL,
    **figures: Any,
) -> None:
    measurement = structs.replace(timed(block, wall, **figures).measurement, merges=9)
    digest, proof = measurement.merges_sha256, None
    if tier != "work" and identity is not None and digest is not None:
        proof = Proof(run=STARTED, cell=0, merges_sha256=digest, identity=identity)
    log.add(gate_cell(tier, side), measurement, proof)


def judged(log: RunLog) -> GateVerdict:
    """The verdict; the same as from the file."""
    evidence = evidence_of(log)
    assert evidence is not None
    assert log.store is not None
    verdict, stored = judge(evidence), read_evidence(log.store.path)
    again = as_json(judge(stored), stored, 0)
    assert json.dumps(again) == json.dumps(as_json(verdict, evidence, 0))
    return verdict


CASES: list[tuple[list[Observed], str, str]] = [
    ([], "absent 22", "gate: measured nothing; 0 checks"),
    ([NO_BASE, failed("identity", "skipped", "no Boost")], "unmeasured 22", "letters: no Boost"),
    ([*tallies({"steps": 5}, {"steps": 5}), NO_BASE], "pass 0", "times were not compared"),
    ([*times(2.0, 2.0), WRONG], "mismatch 21", "mine on letters: merge 7, 'a'+'b', occurs once"),
    *(
        ([PROVED, failed("identity", status)], "unmeasured 22", f"{status}: it broke")
        for status in ("error", "killed", "timeout", "out_of_memory", "rejected")
    ),
    (
        [("identity", {"identity": StoredIdentity(kind="unproved", reason="no replay")})],
        "unmeasured 22",
        "unproved, no replay",
    ),
    (
        [PROVED, WRONG, ("card", {"known_wrong": {"mine": "it documents that"}})],
        "pass 0",
        "absent       mine: wrong merges, as the card knows: it documents that",
    ),
    # counts of work
    (tallies({"a": 11}, {"a": 10}), "drift 21", "letters, a: 10 -> 11 (+10.0 %); --accept accepts"),
    (tallies({"new": 4}, {"new": 4, "old": 3}), "drift 21", "letters, old: 3 -> none"),
    (tallies({"steps": 4}, None)[1:], "unmeasured 22", "mine on letters: no snapshot"),
    (tallies({"steps": 4}, None), "drift 21", "mine on letters: not in the snapshot"),
    (
        [*tallies({"steps": 4}, {"steps": 3}), note("", tier="work", state="accepted")],
        "pass 0",
        "steps: 3 -> 4 (+33.3 %); accepted",
    ),
    # instructions
    (instructions([1000], [1006]), "regression 20", "1,000 -> 1,006 (+0.60 %); at most +0.5 %"),
    (instructions([1000], [1005]), "pass 0", "gate: passed; 1 check"),
    (instructions([1000, 1020], [1040, 1027]), "regression 20", "1,020 -> 1,027 (+0.69 %), t"),
    (instructions([1000, 1020], [1040, 1025]), "pass 0", "gate: passed; 1 check"),
    ([PROVED, failed("work", "skipped", "no valgrind")], "pass 0", "no valgrind"),
    # times
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
        "mine on letters, time: head was killed: SIGSEGV",
    ),
    (
        [PROVED, *times(1.0, last="base", status="error", reason="it broke")],
        "pass 0",
        "mine: base was error: it broke",
    ),
    # waiting is slower unless it is for a CPU
    (times(1.06, 1.06, of_head={"cpu": 1.0}), "regression 20", "net time: head is slower"),
    (
        times(1.56, 1.56, of_head={"cpu": 1.0, "cpu_wait_seconds": 0.5}),
        "regression 20",
        "net time: head is slower",
    ),
    (
        times(1.5, 1.5, of_head={"cpu": 1.0, "cpu_wait_seconds": 0.5}),
        "pass 0",
        "net time: no slower",
    ),
    (
        times(
            1.06,
            1.06,
            of_head={"cpu": 1.0, "cpu_wait_seconds": None, "cpu_wait_unknown": "a thread"},
        ),
        "regression 20",
        "wall time: head is slower",
    ),
    # a requested tier without a result, and its true reason
    ([WRONG, ALL_TIERS], "mismatch 21", "; time was not measured: wrong merges\n"),
    ([failed("identity", "error"), ALL_TIERS], "unmeasured 22", "measured: no run succeeded\n"),
    (
        [*tallies({"a": 1}, {"a": 1}), NO_MODULE, ALL_TIERS],
        "unmeasured 22",
        "2 of 3 checks passed; time was not measured: mine, time: base was error: no such module",
    ),
    (
        [*tallies({"a": 1}, {"a": 1}), NO_MODULE, UNCHANGED, ALL_TIERS],
        "pass 0",
        "gate: passed; 2 checks; time was not measured\n",
    ),
    # a trainer that was measured elsewhere is not absent, and those of one reason share a line
    ([failed("identity", "skipped", "other ties")], "unmeasured 22", "mine: other ties"),
    (
        [
            failed("identity", "skipped", "other ties"),
            PROVED,
            *(note(f"v{number}, time: no Boost", variant=f"v{number}") for number in range(3)),
        ],
        "pass 0",
        "  identity 1 passed\n  time     3 not measured\nabsent       v0, v1, v2: no Boost",
    ),
]


@pytest.mark.parametrize(("observed", "result", "text"), CASES)
def test_verdict(tmp_path: Path, observed: list[Observed], result: str, text: str) -> None:
    verdict = judged(log_of(tmp_path, observed))
    assert f"{verdict.state()} {verdict.exit_code()}" == result
    messages = [finding.message for finding in verdict.findings]
    assert text in "\n".join([*lines(verdict), *messages])


@pytest.mark.parametrize(
    ("tier", "observed", "code"),
    [
        ("time", times(1.1, 1.08), 0),
        ("work", instructions([1000], [1006]), 0),
        ("work", tallies({"steps": 4}, {"steps": 3}), 0),
        ("time", instructions([1000], [1006]), 20),
        ("work", [WRONG], 21),
    ],
)
def test_change_is_accepted_by_a_line_for_its_base(
    tmp_path: Path, tier: str, observed: list[Observed], code: int
) -> None:
    path = tmp_path / "accepted.txt"
    path.write_text(f"# reasons\n\n0123456789 mine {tier} it checks its input\n")
    commit = "0123456789ab" + "0" * 28
    log = log_of(tmp_path, observed)
    assert log.run.question is not None
    log.run.question["commit"] = commit
    log.append()
    verdict = judged(log)
    advice = "if that is on purpose, commit in results/accepted.txt: 0123456789ab mine "
    assert (advice in "\n".join(lines(verdict))) == (verdict.exit_code() == 20)

    log.run.question["accepted"] = accepted_changes(path, commit)
    log.append()
    verdict = judged(log)
    assert verdict.exit_code() == code
    assert ("; accepted: it checks its input" in "\n".join(lines(verdict))) == (code == 0)
    assert accepted_changes(path, "9" * 40) == []  # of another base


@pytest.mark.parametrize(
    "line", ["abc mine time short", "0123456789 mine identity never", "0123456789 mine time"]
)
def test_line_that_accepts_nothing_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "accepted.txt"
    path.write_text(f"\n{line}\n")
    with pytest.raises(Refusal, match=r"accepted\.txt, line 2: write BASE VARIANT TIER REASON"):
        accepted_changes(path, "0" * 40)


def test_gravest_finding_decides() -> None:
    findings = []
    codes = []
    for state in ("pass", "absent", "inconclusive", "unmeasured", "regression", "drift"):
        findings.append(Finding("time", state, "mine", ""))
        codes.append(GateVerdict(findings).exit_code())
    assert codes == [0, 0, 23, 22, 20, 21]
    noisy = GateVerdict(findings[:3])
    assert [noisy.exit_code(treated) for treated in ("pass", "fail", "neutral")] == [0, 20, 23]


def test_summary_loses_nothing(tmp_path: Path) -> None:
    log = log_of(tmp_path, tallies({"max/a|b": 2}, {"max/a|b": 1}))
    evidence, verdict = evidence_of(log), judged(log)
    assert evidence is not None
    evidence.run.environment.update({"cpu": "one", "python": "CPython 3.12"})
    text = summary_of(verdict, evidence)
    assert text.startswith("### ❌ gate: counts of work changed; ")
    assert "\n".join(["```text", *lines(verdict)[1:], "```"]) in text
    assert text.endswith("Base: none; head: the working tree. one, CPython 3.12, 2026-01-01\n")


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


def test_snapshot_is_of_variants_of_this_project(tmp_path: Path) -> None:
    snapshot = read_snapshot(CHECKOUT / "results" / "counters.json")
    assert snapshot is not None
    assert snapshot.counters.keys() <= registry.variants().keys()
    path = tmp_path / "counters.json"
    path.write_text('{"schema": 1, "counters": {"a": 1}}')
    with pytest.raises(Refusal, match="is not a snapshot of counts"):
        read_snapshot(path)


def test_accepting_rewrites_only_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "counters.json"
    counters = {name: {"letters": {"n": 1}} for name in ("wrong", "absent", "silent")}
    path.write_text(json.dumps({"schema": 1, "counters": counters}))
    records = []
    for variant, status, counted in (
        ("wrong", "mismatch", {"n": 2}),
        ("new", "ok", {"k": 3}),
        ("silent", "ok", {}),
    ):
        measurement = timed(0, 1.0, status=status, reason=status, tallies=counted).measurement
        records.append(Record(RUN, gate_cell("identity", variant=variant), measurement))
    accept(path, records)
    snapshot = read_snapshot(path)
    assert snapshot is not None
    changed = {"silent": {"letters": {}}, "new": {"letters": {"k": 3}}}
    assert snapshot.counters == {**counters, **changed}


def test_only_what_takes_more_is_counted_in_other_layouts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: dict[str, list[int | str]] = {
        "base": [1000] * 5,
        "same": [1005],
        "once": [1020, 1000],
        "often": [1020, 1016, 1030, 1020, 1020],
        "late": [1020, "timeout"],
    }
    layouts: dict[str, int] = {}

    def counted(_: Any, output: Path, __: Any, ___: Any, options: ProcessOptions) -> Answer:
        [name] = options.import_folders or ()
        layout = options.layout
        layouts[name] = layout + 1
        output.mkdir(parents=True)
        count = counts[name][layout]
        if isinstance(count, str):
            return Answer(count, "because")
        return Answer("ok", instructions={"count": count, "path": "", "tool": "callgrind"})

    def arm(name: str) -> Arm:
        return Arm(Side(name, "", (name,)), VariantCard(name, f"{name}:train"))

    monkeypatch.setattr(callgrind, "measure_instructions", counted)
    question: GateQuestion = {"card": msgspec.to_builtins(GateCard(tiers=("work",))), "head": ""}
    log = new_log(tmp_path / "gate", STARTED, question)
    sampler = Sampler(read_gate_card("usual"), tmp_path / "folder", log)
    observe_instructions(sampler, [Arms(name, arm("base"), arm(name)) for name in [*counts][1:]])
    assert layouts == {name: len(values) for name, values in counts.items()}
    verdict = judged(log)
    assert {finding.variant: finding.state for finding in verdict.findings} == {
        "same": "pass",
        "once": "pass",
        "often": "regression",
        "late": "unmeasured",
    }
    assert "late, instructions: head was timeout: because" in "\n".join(lines(verdict))
