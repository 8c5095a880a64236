"""From evidence to the verdict: every state with its exit code, the same again from the file, and
instructions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from workbench import CHECKOUT

from harness.common import registry
from harness.common.errors import Refusal
from harness.common.registry import VariantCard
from harness.gate.base import Side
from harness.gate.evidence import (
    AnyObservation,
    Evidence,
    Question,
    accept,
    new_evidence,
    read_evidence,
    read_snapshot,
)
from harness.gate.judge import Finding, GateVerdict, as_json, judge, lines, markdown
from harness.gate.observe import Arm, Comparison, Result, Sampler, observe_instructions
from harness.gate.rule import Card, Stage, TimeRule, read_card
from harness.measure.process import Answer

CARD = Card(tiers=(), time=TimeRule(triage=Stage(8, 0.015), confirm=Stage(12, 0.025), fewest=8))
STARTED, MACHINE = "2026-01-01T00:00:00+00:00", {"cpu": "one", "python": "CPython 3.12"}
Line = tuple[str, dict[str, Any]]
"""The kind of an observation, and what differs from `DEFAULTS`."""
DEFAULTS: dict[str, dict[str, Any]] = {
    "identity": {
        "corpus": "letters",
        "status": "ok",
        "reason": None,
        "merges": 9,
        "identity": None,
    },
    "tallies": {"corpus": "letters", "tallies": {}, "expected": None, "snapshot": True},
    "instructions": {"state": "pass", "reason": None, "base": [1000], "head": [1000]},
    "note": {"tier": "time", "state": "absent", "reason": "mine, time: no Boost"},
}
PROVED: Line = ("identity", {"identity": {"kind": "identical", "reason": None}})
WRONG: Line = (
    "identity",
    {"identity": {"kind": "wrong", "reason": "merge 7, 'a'+'b', occurs once, others 2 times"}},
)
NO_BASE: Line = ("note", {"variant": "all", "reason": "times were not compared: no base"})


def question(**of_card: Any) -> Question:
    """Of a card without tiers, so that none is missing."""
    card = {**msgspec.to_builtins(CARD), **of_card}
    return Question(card, started=STARTED, head="the working tree", environment=MACHINE)


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    return new_evidence(tmp_path / "samples.jsonl", question())


def add(evidence: Evidence, *observations: Line) -> None:
    for kind, values in observations:
        line = {"kind": kind, "variant": "mine", **DEFAULTS.get(kind, {}), **values}
        evidence.add(msgspec.convert(line, AnyObservation))


def tallies(counted: Any, expected: Any, **further: Any) -> Line:
    return "tallies", {"tallies": counted, "expected": expected, **further}


def times(ratio: float, confirm: float | None = None, **last: Any) -> list[Line]:
    """A comparison whose head takes `ratio` times as long; the last sample of head is changed by
    `last`.
    """
    lines: list[Line] = [
        (
            "comparison",
            {"comparison": "mine", "corpus": "text", "threads": 1, "merges_sha256": "right"},
        )
    ]
    for stage, number, slower in [
        ("triage", 8, ratio),
        ("confirm", 0 if confirm is None else 12, confirm or 0.0),
    ]:
        for block in range(number):
            for arm, seconds in (("base", 1.0), ("again", 1.0), ("head", slower)):
                sample = {
                    "comparison": "mine",
                    "stage": stage,
                    "block": block,
                    "arm": arm,
                    "status": "ok",
                }
                sample |= {
                    "wall_seconds": seconds,
                    "cpu_seconds": seconds,
                    "cpu_wait_seconds": 0.0,
                    "pressure": 0.0,
                    "steal": 0.0,
                }
                sample |= {"peak_bytes": 1000, "merges_sha256": "right", "reason": None}
                changed = last if (arm, block) == (last.get("arm", "head"), number - 1) else {}
                lines.append(("sample", sample | changed))
    return lines


@pytest.mark.parametrize(
    ("clocks", "expected", "clock"),
    [
        ({"wall_seconds": 1.06}, "regression", "net"),
        ({"wall_seconds": 1.56, "cpu_wait_seconds": 0.5}, "regression", "net"),
        ({"wall_seconds": 1.5, "cpu_wait_seconds": 0.5}, "pass", "net"),
        ({"wall_seconds": 1.06, "cpu_wait_seconds": None, "cpu_wait_unknown": "a thread"}, "regression", "wall"),
    ],
    ids=["sleeps", "sleeps on a busy machine", "waits for a CPU", "sleeps in a thread"],
)  # fmt: skip
def test_waiting_is_slower_unless_it_is_for_a_processor(
    evidence: Evidence, clocks: dict[str, Any], expected: str, clock: str
) -> None:
    lines = times(1.0, confirm=1.0)
    for kind, sample in lines:
        if kind == "sample" and sample["arm"] == "head":
            sample.update(clocks)
    add(evidence, *lines)
    state, _, message = outcome(evidence)
    assert (state, f"{clock} time" in message) == (expected, True)


def outcome(evidence: Evidence) -> tuple[str, int, str]:
    """State, exit code and the gravest message; the same as from the file."""
    assert evidence.path is not None
    verdict, stored = judge(evidence), read_evidence(evidence.path)
    assert json.dumps(as_json(judge(stored), stored, 0)) == json.dumps(
        as_json(verdict, evidence, 0)
    )
    return (
        verdict.state(),
        verdict.exit_code(),
        verdict.findings[0].message if verdict.findings else "",
    )


CASES: list[tuple[list[Line], str, str]] = [
    ([], "absent 22", ""),
    (
        [NO_BASE, ("identity", {"status": "skipped", "reason": "no Boost"})],
        "absent 22",
        "letters: no Boost",
    ),
    (
        [PROVED, tallies({"update/steps": 5}, {"update/steps": 5}), NO_BASE],
        "pass 0",
        "times were not compared",
    ),
    (
        [*times(2.0, 2.0), WRONG],
        "mismatch 21",
        "mine on letters: merge 7, 'a'+'b', occurs once, others 2 times",
    ),
    *(
        (
            [PROVED, ("identity", {"status": status, "reason": "it broke"})],
            "unmeasured 22",
            f"{status}: it broke",
        )
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
    ([tallies({"steps": 4}, None, snapshot=False)], "absent 22", "mine on letters: no snapshot"),
    ([tallies({"steps": 4}, None)], "drift 21", "mine on letters: not in the snapshot"),
    (
        [tallies({"steps": 4}, {"steps": 3}), ("accepted", {})],
        "pass 0",
        "steps: 3 -> 4 (+33.3 %); accepted",
    ),
    (
        [("instructions", {"head": [1006]})],
        "regression 20",
        "instructions: 1,000 -> 1,006 (+0.60 %); at most +0.5 %",
    ),
    ([("instructions", {"head": [1005]})], "pass 0", "mine, instructions: 1,000 -> 1,005"),
    (
        [("instructions", {"base": [1000, 1020], "head": [1040, 1027]})],
        "regression 20",
        "1,020 -> 1,027 (+0.69 %), t",
    ),
    ([("instructions", {"base": [1000, 1020], "head": [1040, 1025]})], "pass 0", "1,020 -> 1,025"),
    (
        [PROVED, ("instructions", {"state": "absent", "reason": "no valgrind", "base": []})],
        "pass 0",
        "no valgrind",
    ),
    (
        times(1.1, 1.08),
        "regression 20",
        "mine on text, net time: head is slower (+8.0 %, between +8.0 % and +8.0 %",
    ),
    (times(1.1), "inconclusive 23", "mine on text, net time: head looks slower"),
    (
        times(1.0, merges_sha256="wrong"),
        "mismatch 21",
        "head made other merges than the proved ones in block 7",
    ),
    (
        times(1.0, status="killed", reason="SIGSEGV"),
        "unmeasured 22",
        "mine on text: head was killed in block 7 of tri",
    ),
    ([PROVED, *times(1.0, arm="base", status="error")], "pass 0", "mine on text: base was error"),
]


@pytest.mark.parametrize(("observations", "result", "message"), CASES)
def test_verdict(evidence: Evidence, observations: list[Line], result: str, message: str) -> None:
    add(evidence, *observations)
    state, code, gravest = outcome(evidence)
    assert f"{state} {code}" == result
    assert message in gravest


def test_outside_trainer_known_to_be_wrong_fails_nothing(tmp_path: Path) -> None:
    evidence = new_evidence(
        tmp_path / "known.jsonl", question(known_wrong={"mine": "it documents that"})
    )
    add(evidence, PROVED, WRONG)
    assert outcome(evidence)[:2] == ("pass", 0)
    assert any(line.endswith("; known: it documents that") for line in lines(judge(evidence)))


def test_requested_tier_without_a_result_is_22_and_named(evidence: Evidence) -> None:
    evidence.question.card = msgspec.to_builtins(Card())
    note = "mine, time: base was error: no such module"
    add(evidence, PROVED, tallies({"a": 1}, {"a": 1}), ("note", {"reason": note}))
    verdict = judge(evidence)
    assert verdict.exit_code() == 22
    assert (
        lines(verdict)[0]
        == f"gate: could not measure; 2 of 3 checks passed; time was not measured: {note}"
    )
    add(
        evidence,
        ("note", {"variant": "other", "reason": "other, time: the same code in base and head"}),
    )
    assert judge(evidence).exit_code() == 0  # what did not change is not slower


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


def test_markdown_loses_nothing(evidence: Evidence) -> None:
    add(evidence, PROVED, tallies({"max/a|b": 2}, {"max/a|b": 1}))
    text = markdown(judge(evidence), evidence)
    assert text.startswith("### ❌ gate: counts of work changed; 1 of 2 checks passed")
    assert "\n".join(["```text", *lines(judge(evidence))[1:], "```"]) in text
    assert "Base: none; head: the working tree. one, CPython 3.12, 2026-01-01" in text


def test_absent_variants_share_a_line(evidence: Evidence) -> None:
    add(evidence, ("identity", {"status": "skipped", "reason": "it breaks ties otherwise"}))
    assert any("breaks ties" in line for line in lines(judge(evidence)))
    add(evidence, PROVED)
    # it was measured elsewhere
    assert not any("breaks ties" in line for line in lines(judge(evidence)))
    for number in range(3):
        add(evidence, ("note", {"variant": f"v{number}", "reason": f"v{number}, time: no Boost"}))
    assert "absent       v0, v1, v2: no Boost" in lines(judge(evidence))


@pytest.mark.parametrize(
    "content", ["", "not JSON", '{"schema": 1, "kind": "gate", "card": {}}\n{"kind": "note"}\n']
)
def test_file_that_is_not_evidence_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text(content)
    with pytest.raises(Refusal) as refusal:
        read_evidence(path)
    assert refusal.value.exit_code == 22


def test_line_cut_short_is_skipped(evidence: Evidence) -> None:
    add(evidence, PROVED)
    assert evidence.path is not None
    with evidence.path.open("a") as file:
        file.write('{"kind": "identity", "var')
    assert judge(read_evidence(evidence.path)).exit_code() == 0


def test_new_run_removes_older_verdict(tmp_path: Path) -> None:
    for name in ("verdict.json", "summary.md"):
        (tmp_path / name).write_text("of an older run")
    new_evidence(tmp_path / "samples.jsonl", question())
    assert [path.name for path in tmp_path.iterdir()] == ["samples.jsonl"]


def test_file_that_is_not_a_snapshot_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "counters.json"
    path.write_text('{"schema": 1, "counters": {"a": 1}}')
    with pytest.raises(Refusal, match="is not a snapshot of counts"):
        read_snapshot(path)


def test_accepting_rewrites_only_what_was_measured(evidence: Evidence, tmp_path: Path) -> None:
    path = tmp_path / "counters.json"
    counters = {
        "mine": {"letters": {"n": 10}},
        "absent": {"letters": {"n": 5}},
        "silent": {"letters": {"n": 1}},
    }
    path.write_text(json.dumps({"schema": 1, "counters": counters}))
    add(evidence, WRONG, tallies({"n": 12}, {}), PROVED)
    add(evidence, tallies({"k": 3}, None, variant="new"), tallies({}, {"n": 1}, variant="silent"))
    accept(path, evidence)
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


class FakeSampler(Sampler):
    """Returns each side's counts, layout after layout; a text is a status without a count."""

    counts: Mapping[str, Sequence[int | str]]
    layouts: set[int]

    def task(self, *_: Any, **__: Any) -> Any:
        return None

    def run(self, arm: Arm, *given: Any, **_: Any) -> Result:
        layout = given[1].keywords["layout"]
        self.layouts.add(layout)
        count = self.counts[arm.side.name][layout]
        status = count if isinstance(count, str) else "ok"
        return Result(Answer(status, instructions={"count": count}), None, "because")


def comparison(name: str) -> Comparison:
    base, head = (
        Arm(Side(side, "", [side]), VariantCard(name, f"{side}_module:train"))
        for side in ("base", "head")
    )
    return Comparison(name, base, head)


@pytest.mark.parametrize(
    ("base", "head", "code", "layouts", "message"),
    [
        ([1000], [1005], 0, 1, "1,000 -> 1,005"),
        ([1000, 1010, 990], [1020, 1016, 1030], 20, 3, "1,010 -> 1,016 (+0.59 %)"),
        ([1000, 1000], [1020, 1000], 0, 2, "in 2 layouts of memory"),
        ([1000, 1020], [1020, 1030], 0, 2, "in 2 layouts of memory"),
        ([1000, "error"], [1020, 1020], 22, 2, "second, instructions: base was error: because"),
        ([1000, 1000], [1020, "timeout"], 22, 2, "second, instructions: head was timeout: because"),
    ],
)
def test_instructions_are_counted_in_other_layouts_while_head_takes_more(
    base: list[int | str], head: list[int | str], code: int, layouts: int, message: str
) -> None:
    card = read_card("usual", ["work.instructions.layouts=3"])
    evidence = Evidence(Question(msgspec.to_builtins(Card(tiers=("work",)))))
    sampler = FakeSampler(card, Path(), evidence)
    sampler.counts, sampler.layouts = {"base": base, "head": head}, set()
    observe_instructions(sampler, [comparison("first"), comparison("second")])
    verdict = judge(sampler.evidence)
    assert verdict.exit_code() == code
    assert {finding.variant for finding in verdict.findings} >= {"first", "second"}
    assert any(message in finding.message for finding in verdict.findings)
    assert sampler.layouts == set(range(layouts))
