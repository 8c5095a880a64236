"""From observations to the verdict: every state with its exit code, the same again from the file."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from harness.common.errors import Refusal
from harness.gate.card import Card, StageSaid, TimeSaid, card_of
from harness.gate.evidence import EvidenceFile, read_evidence
from harness.gate.expected import expected_line, expected_seconds
from harness.gate.judging import judged
from harness.gate.snapshot import Snapshot, accept, changes, read_snapshot, write_snapshot
from harness.gate.summary import as_json, lines, markdown
from harness.gate.verdict import Finding, Verdict

CARD = Card(tiers=[], time=TimeSaid(triage=StageSaid(8, 0.015), confirm=StageSaid(12, 0.025), fewest=8))
HEAD = {
    "card": asdict(CARD),
    "head": "the working tree",
    "started": "2026-01-01T00:00:00+00:00",
    "environment": {"cpu": "one", "cores": 2, "python": "CPython 3.12"},
}
PROVED: dict[str, Any] = {"identity": {"kind": "identical", "reason": None}}
WRONG: dict[str, Any] = {
    "identity": {"kind": "wrong", "reason": "merge 7, 'a'+'b', occurs once, others 2 times", "merge": 7},
}


@pytest.fixture
def evidence(tmp_path: Path) -> EvidenceFile:
    """Of a card that asks for no tier, so that none is missing."""
    return EvidenceFile(tmp_path / "samples.jsonl", HEAD)


def merges(evidence: EvidenceFile, status: str = "ok", reason: str | None = None, **proof: Any) -> None:
    known = {"identity": None, **proof}
    evidence.add("identity", variant="mine", corpus="letters", status=status, reason=reason, merges=9, **known)


def counts(evidence: EvidenceFile, counted: Any, expected: Any, snapshot: bool = True, **further: Any) -> None:
    told = {"tallies": counted, "expected": expected, "snapshot": snapshot, **further}
    evidence.add("tallies", variant="mine", corpus="letters", **told)


def times(evidence: EvidenceFile, ratio: float, confirm: float | None = None, **of_last: Any) -> None:
    """A comparison whose head takes `ratio` times as long; the last sample of head is changed by `of_last`."""
    asked = {"comparison": "mine", "variant": "mine", "corpus": "text", "threads": 1, "merges_sha256": "right"}
    evidence.add("comparison", **asked)
    stages = [("triage", 8, ratio)] + ([("confirm", 12, confirm)] if confirm is not None else [])
    for stage, number, slower in stages:
        for block in range(number):
            for arm, seconds in (("base", 1.0), ("again", 1.0), ("head", slower)):
                further = of_last if (arm, block) == ("head", number - 1) else {}
                evidence.add(
                    "sample",
                    **{
                        "comparison": "mine",
                        "stage": stage,
                        "block": block,
                        "arm": arm,
                        "status": "ok",
                        "reason": None,
                        "wall_seconds": seconds,
                        "cpu_seconds": seconds,
                        "pressure": 0.0,
                        "steal": 0.0,
                        "peak_bytes": 1000,
                        "seconds": {"update": 0.9 * seconds, "init": 0.1},
                        "merges_sha256": "right",
                        **further,
                    },
                )


def outcome(evidence: EvidenceFile) -> tuple[str, int, str]:
    """State, exit code and the gravest message; the same as from the file."""
    found = judged(evidence.evidence)
    again = judged(read_evidence(evidence.path))
    told, told_again = as_json(found, evidence.evidence, 0), as_json(again, read_evidence(evidence.path), 0)
    assert json.dumps(told_again) == json.dumps(told)
    return found.state(), found.exit_code(), found.findings[0].message if found.findings else ""


def test_nothing_measured_is_22(evidence: EvidenceFile) -> None:
    assert outcome(evidence) == ("absent", 22, "")
    evidence.add("note", tier="time", variant="all", state="absent", reason="times were not compared: no base")
    merges(evidence, "skipped", "Boost is not here")
    assert outcome(evidence)[:2] == ("absent", 22)


def test_right_merges_and_known_counts_pass_beside_what_is_not_here(evidence: EvidenceFile) -> None:
    merges(evidence, **PROVED)
    counts(evidence, {"update/steps": 5}, {"update/steps": 5})
    evidence.add("note", tier="identity", variant="other", state="absent", reason="other on letters: no Boost here")
    assert outcome(evidence)[:2] == ("pass", 0)
    assert "absent       other: no Boost here" in lines(judged(evidence.evidence))


def test_a_variant_that_is_measured_elsewhere_is_not_called_absent(evidence: EvidenceFile) -> None:
    merges(evidence, "skipped", "it breaks ties otherwise")
    assert any("breaks ties" in line for line in lines(judged(evidence.evidence)))
    merges(evidence, **PROVED)
    assert not any("breaks ties" in line for line in lines(judged(evidence.evidence)))


def test_wrong_merges_are_21_with_the_first_of_them(evidence: EvidenceFile) -> None:
    times(evidence, 2.0, 2.0)
    merges(evidence, **WRONG)
    state, code, message = outcome(evidence)
    assert (state, code) == ("mismatch", 21)
    assert message == "mine on letters: merge 7, 'a'+'b', occurs once, others 2 times"


def test_an_outside_trainer_that_is_known_to_be_wrong_is_told_and_fails_nothing(tmp_path: Path) -> None:
    card = {**HEAD["card"], "known_wrong": {"mine": "it says so itself"}}  # type: ignore[dict-item]
    evidence = EvidenceFile(tmp_path / "known.jsonl", {**HEAD, "card": card})
    merges(evidence, **PROVED)
    merges(evidence, **WRONG)
    assert outcome(evidence)[:2] == ("pass", 0)
    assert any(line.endswith("; known: it says so itself") for line in lines(judged(evidence.evidence)))


@pytest.mark.parametrize("status", ["error", "killed", "timeout", "out_of_memory", "rejected"])
def test_what_could_not_be_measured_is_22(evidence: EvidenceFile, status: str) -> None:
    merges(evidence, **PROVED)
    merges(evidence, status, "it broke")
    assert outcome(evidence) == ("unmeasured", 22, f"mine on letters: {status}: it broke")


def test_merges_that_nobody_confirms_are_22(evidence: EvidenceFile) -> None:
    merges(evidence, identity={"kind": "unproved", "reason": "the compiled replay is not built"})
    assert outcome(evidence)[:2] == ("unmeasured", 22)


def test_a_changed_count_is_21_and_names_variant_corpus_phase_tally_and_size(evidence: EvidenceFile) -> None:
    counts(evidence, {"update/pair_updates": 1100, "steps": 3}, {"update/pair_updates": 1000, "steps": 3})
    state, code, message = outcome(evidence)
    assert (state, code) == ("drift", 21)
    expected = "mine on letters, phase update, tally pair_updates: 1,000 -> 1,100 (+10.0 %); --accept acknowledges it"
    assert message == expected
    finding = judged(evidence.evidence).findings[0]
    assert (finding.phase, finding.metric, finding.before, finding.after) == ("update", "pair_updates", 1000, 1100)


def test_a_count_that_the_trainer_tells_at_its_end_is_of_the_whole_call(evidence: EvidenceFile) -> None:
    counts(evidence, {"steps": 4}, {"steps": 3})
    assert ", phase whole call, tally steps: 3 -> 4 (+33.3 %)" in outcome(evidence)[2]


def test_counts_that_come_and_go_are_drift(evidence: EvidenceFile) -> None:
    counts(evidence, {"max/new": 4}, {"max/old": 3})
    messages = [finding.message for finding in judged(evidence.evidence).findings]
    assert ["none -> 4" in message for message in messages].count(True) == 1
    assert ["3 -> none" in message for message in messages].count(True) == 1


def test_a_variant_that_the_snapshot_does_not_know_is_drift_and_without_a_snapshot_nothing(
    evidence: EvidenceFile,
) -> None:
    counts(evidence, {"steps": 4}, None, snapshot=False)
    assert outcome(evidence)[:2] == ("absent", 22)
    counts(evidence, {"steps": 4}, None)
    assert outcome(evidence)[:2] == ("drift", 21)


def test_a_variant_that_is_gone_and_a_corpus_that_changed_are_drift(evidence: EvidenceFile) -> None:
    counts(evidence, None, None)
    assert "there is no such variant" in outcome(evidence)[2]
    counts(evidence, {"steps": 4}, {"steps": 4}, other_corpus=True)
    assert judged(evidence.evidence).numbers("work")["drift"] == 2


def test_acknowledged_counts_pass(evidence: EvidenceFile) -> None:
    counts(evidence, {"steps": 4}, {"steps": 3})
    evidence.add("accepted", changes=["mine: steps"])
    assert outcome(evidence)[:2] == ("pass", 0)


@pytest.mark.parametrize(("head", "state", "code"), [(1006, "regression", 20), (1005, "pass", 0), (900, "pass", 0)])
def test_instructions_may_rise_by_half_a_percent(evidence: EvidenceFile, head: int, state: str, code: int) -> None:
    evidence.add("instructions", variant="mine", state="pass", reason=None, base=[1000], head=[head])
    assert outcome(evidence)[:2] == (state, code)


def test_instructions_of_several_layouts_are_judged_by_the_most_of_base_and_the_least_of_head(
    evidence: EvidenceFile,
) -> None:
    evidence.add("instructions", variant="mine", state="pass", reason=None, base=[1000, 1020], head=[1040, 1027])
    state, code, message = outcome(evidence)
    assert (state, code) == ("regression", 20)
    assert message == (
        "mine, whole call, instructions: 1,020 -> 1,027 (+0.69 %), the most and the least in 2 layouts of memory, "
        "at most +0.5 %"
    )


def test_one_layout_with_no_more_instructions_is_enough_to_pass(evidence: EvidenceFile) -> None:
    evidence.add("instructions", variant="mine", state="pass", reason=None, base=[1000, 1020], head=[1040, 1025])
    assert outcome(evidence)[:2] == ("pass", 0)


def test_without_valgrind_instructions_are_neither_good_nor_bad(evidence: EvidenceFile) -> None:
    merges(evidence, **PROVED)
    evidence.add("instructions", variant="mine", state="absent", reason="needs valgrind", base=[], head=[])
    assert outcome(evidence)[:2] == ("pass", 0)


def test_a_slower_head_is_20_and_names_variant_phase_metric_and_size(evidence: EvidenceFile) -> None:
    times(evidence, 1.1, 1.08)
    state, code, message = outcome(evidence)
    assert (state, code) == ("regression", 20)
    assert message.startswith("mine on text, phase update, CPU time: +8.0 %, between +8.0 % and +8.0 %")
    assert message.endswith("phase update 900.0 -> 972.0 ms")


def test_a_look_without_its_confirmation_is_inconclusive(evidence: EvidenceFile) -> None:
    times(evidence, 1.1)
    assert outcome(evidence)[:2] == ("inconclusive", 23)


def test_timing_never_turns_wrong_merges_into_a_pass(evidence: EvidenceFile) -> None:
    times(evidence, 1.0, merges_sha256="wrong")
    state, code, message = outcome(evidence)
    assert (state, code) == ("mismatch", 21)
    assert "head made other merges than the proved ones in block 7 of triage" in message


def test_a_sample_that_crashes_is_22(evidence: EvidenceFile) -> None:
    times(evidence, 1.0, status="killed", reason="its process was ended by SIGSEGV")
    assert outcome(evidence)[:2] == ("unmeasured", 22)


def test_a_base_that_fails_is_nothing_to_compare_with(evidence: EvidenceFile) -> None:
    merges(evidence, **PROVED)
    times(evidence, 1.0, arm="base", status="error", reason="no such module")
    assert outcome(evidence)[:2] == ("pass", 0)


def test_the_gravest_finding_decides() -> None:
    states = ["pass", "absent", "inconclusive", "unmeasured", "regression", "drift"]
    codes = [0, 0, 23, 22, 20, 21]
    for number, code in enumerate(codes, 1):
        found = Verdict([Finding("time", state, "mine", "") for state in states[:number]])
        assert found.exit_code() == code
        assert found.exit_code(advisory=True) == 0


@pytest.mark.parametrize(("treated", "code"), [("pass", 0), ("fail", 20), ("neutral", 23)])
def test_inconclusive_is_treated_as_is_wanted(treated: str, code: int) -> None:
    assert Verdict([Finding("time", "inconclusive", "mine", "")]).exit_code(treated) == code


def test_the_summary_is_markdown_in_which_nothing_is_lost(evidence: EvidenceFile) -> None:
    merges(evidence, **PROVED)
    counts(evidence, {"max/a|b": 2}, {"max/a|b": 1})
    text = markdown(judged(evidence.evidence), evidence.evidence)
    assert text.startswith("### ❌ gate: counts of work changed; 1 of 2 checks passed")
    assert "| identity | 1 | 0 | 0 |" in text
    assert r"tally a\|b: 1 -\> 2" in text
    assert "Base: none; head: the working tree" in text


def test_many_findings_are_counted_and_many_absent_ones_condensed(evidence: EvidenceFile) -> None:
    for number in range(60):
        evidence.add("note", tier="time", variant=f"v{number}", state="absent", reason=f"v{number}, time: no Boost")
        counts(evidence, {f"max/t{number}": 2}, {f"max/t{number}": 1})
    said = lines(judged(evidence.evidence))
    assert [line for line in said[1:] if "Boost" in line] == [
        f"absent       {', '.join(f'v{n}' for n in range(12))} and 48 more: no Boost"
    ]
    assert any("and 20 more" in line for line in said)


# Files


@pytest.mark.parametrize("content", ["", "{}", "not JSON", '{"schema": 1, "kind": "gate"}\n[]\n', "[]"])
def test_what_no_gate_wrote_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text(content)
    with pytest.raises(Refusal) as refusal:
        judged(read_evidence(path))
    assert refusal.value.exit_code == 22


def test_a_line_that_was_cut_off_is_left_out(evidence: EvidenceFile) -> None:
    merges(evidence, **PROVED)
    with evidence.path.open("a") as file:
        file.write('{"kind": "identity", "var')
    assert judged(read_evidence(evidence.path)).exit_code() == 0


def test_a_snapshot_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "counters.json"
    snapshot = Snapshot({"letters": {"sha256": "x"}}, {"b": {"letters": {"max/a": 1}}, "a": {"letters": {"n": 2}}})
    assert read_snapshot(path) is None
    write_snapshot(path, snapshot)
    assert read_snapshot(path) == snapshot
    assert path.read_text().index('"a"') < path.read_text().index('"b"')


@pytest.mark.parametrize("content", ["", "[]", '{"schema": 2}', '{"schema": 1, "corpora": {}, "counters": {"a": 1}}'])
def test_a_file_that_is_no_snapshot_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "counters.json"
    path.write_text(content)
    with pytest.raises(Refusal, match="is no snapshot of counts"):
        read_snapshot(path)


def test_accepting_rewrites_only_what_was_measured_and_says_what_changed() -> None:
    corpora = {"letters": {"sha256": "x"}}
    before = Snapshot(
        corpora,
        {"mine": {"letters": {"n": 10, "m": 1}}, "absent": {"letters": {"n": 5}}, "gone": {"letters": {"n": 1}}},
    )
    after = accept(before, corpora, {("mine", "letters"): {"n": 11, "m": 1}, ("new", "letters"): {"k": 3}}, {"gone"})
    assert after.counters == {
        "mine": {"letters": {"n": 11, "m": 1}},
        "absent": {"letters": {"n": 5}},
        "new": {"letters": {"k": 3}},
    }
    assert changes(before, after) == ["gone: gone", "mine on letters: n 10 -> 11 (+10.0 %)", "new: new, letters"]


# Cards


def test_the_cards_say_what_they_mean() -> None:
    usual, short = card_of("usual"), card_of("short")
    assert (usual.time.triage.blocks, usual.time.confirm.blocks) == (30, 90)
    assert (usual.time.triage.most, usual.time.confirm.most) == (0.015, 0.025)
    assert usual.work.instructions.most == 0.005
    assert short.tiers == ["time"]
    assert short.time.triage == usual.time.triage
    assert short.corpora == usual.corpora


def test_a_card_of_ones_own_says_only_what_is_different(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("like: usual\ntime: {threads: [1, 2]}\n")
    card = card_of(str(path), ["time.confirm.most=0.04"])
    assert (card.time.threads, card.time.confirm.most, card.time.confirm.blocks) == ([1, 2], 0.04, 90)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("time.triage.blocks=0", "time.triage.blocks=0"),
        ("time.triage.most=3", "is no share"),
        ("time.unchanged=perhaps", "unknown time.unchanged"),
        ("tiers=[speed]", "unknown tier 'speed'"),
        ("time.blocks=3", "blocks"),
        ("time.triage.blocks=many", "many"),
        ("time.threads=[0]", "time.threads"),
    ],
)
def test_a_card_that_cannot_be_meant_is_refused(said: str, told: str) -> None:
    with pytest.raises(Refusal, match=told) as refusal:
        card_of("usual", [said])
    assert refusal.value.exit_code == 2


@pytest.mark.parametrize("content", ["like: mine", "- a", "a: b: c", "time: 3"])
def test_a_file_that_is_no_card_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "mine"
    path.write_text(content.replace("mine", str(path)))
    with pytest.raises(Refusal):
        card_of(str(path))


def test_a_tier_that_was_asked_for_and_not_measured_is_22_and_named(evidence: EvidenceFile) -> None:
    evidence.evidence.head["card"] = asdict(Card())
    merges(evidence, **PROVED)
    counts(evidence, {"a": 1}, {"a": 1})
    evidence.add(
        "note", tier="time", variant="mine", state="absent", reason="mine, time: base was error: no such module"
    )
    found = judged(evidence.evidence)
    assert found.exit_code() == 22
    assert lines(found)[0] == (
        "gate: could not measure; 2 of 3 checks passed; "
        "time (time was not measured): mine, time: base was error: no such module"
    )
    evidence.add(
        "note", tier="time", variant="other", state="absent", reason="other, time: the same code in base and head"
    )
    assert judged(evidence.evidence).exit_code() == 0  # what did not change is not slower


def test_a_headline_says_which_tiers_were_not_measured_and_why() -> None:
    proved = Finding("identity", "pass", "mine", "mine on letters: as the reference")
    no_base = [
        Finding("work", "absent", "mine", "mine on letters: the trainer counts nothing"),
        Finding("time", "absent", "all", "times were not compared: there is no base"),
    ]
    assert lines(Verdict([proved, *no_base]))[0] == (
        "gate: passed; 1 check; two tiers were not measured: work, because the trainer counts nothing; "
        "time, because there is no base"
    )
    assert lines(Verdict([proved, proved, no_base[1]]))[0] == (
        "gate: passed; 2 checks; time was not measured, because there is no base"
    )


def test_the_quick_card_says_that_it_ends_within_two_minutes_for_one_trainer() -> None:
    quick, usual = card_of("quick"), card_of("usual")
    low, high = expected_seconds(quick, 1, whole=False)
    assert low < high <= 120
    assert expected_seconds(usual, 1, whole=False)[1] > 2 * high
    assert expected_line(quick, 1, whole=False).startswith("gate: 1 variant, tiers identity, work, time: about ")
    assert expected_seconds(usual, 90, whole=True)[0] < 300, "what has not changed is not timed"
