"""The verdict: findings from a gate's evidence, the exit code, and the texts for people and programs.

`judge` is a pure function of the evidence, so `--replay` gives the same verdict again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args
from xml.etree import ElementTree

import msgspec

from harness.common.errors import INCONCLUSIVE, MISMATCH, OK, REGRESSION, UNMEASURED
from harness.common.printing import markdown_text, terminal_text, wrap
from harness.common.units import bytes_text, count_text, counted_text, share_text
from harness.gate.rule import (
    ACCEPTED,
    ALL,
    TIERS,
    Counts,
    Decision,
    Evidence,
    GateCard,
    by_comparison,
    decide,
    gated,
    merged_card,
    of_side,
)
from harness.proof import PROVED, WRONG
from harness.records.file import Record
from harness.records.schema import GateQuestion, State, Tier

STATES: tuple[State, ...] = get_args(State)
CODES: dict[State, int] = {
    "mismatch": MISMATCH,
    "drift": MISMATCH,
    "regression": REGRESSION,
    "accepted": OK,
    "pass": OK,
}
TREATED = {"pass": OK, "fail": REGRESSION, "neutral": INCONCLUSIVE}
SAME_CODE = "the same code in base and head"
NEW = "new in head: not compared; --base-target TARGET names it in the base"
MEASURED = ("ok", "mismatch")
HEADINGS = {
    "mismatch": "wrong merges",
    "drift": "counts of work changed",
    "regression": "regression",
    "unmeasured": "could not measure",
    "inconclusive": "inconclusive",
    "absent": "not measured",
    "accepted": "accepted",
    "pass": "passed",
}
SIGNS = {"pass": "✅", "accepted": "✅", "inconclusive": "❔", "absent": "❔"}
ELEMENTS = {
    "pass": "system-out",
    "accepted": "system-out",
    "unmeasured": "error",
    "absent": "skipped",
    "inconclusive": "skipped",
}
"""The elements of JUnit; all else is a failure."""
WIDTH, INDENT = 100, 13


@dataclass(frozen=True)
class Finding:
    """One thing that was checked, of a variant and perhaps of a corpus, and why it is as it is."""

    tier: Tier | None
    state: State
    variant: str
    reason: str
    corpus: str | None = None
    decision: Decision | None = None
    accepting: str = ""
    """The line that would accept it."""

    @property
    def subject(self) -> str:
        return f"{self.variant} on {self.corpus}" if self.corpus else self.variant

    @property
    def message(self) -> str:
        """The reason with its subject."""
        return self.reason if self.variant == ALL else f"{self.subject}: {self.reason}"


@dataclass(frozen=True)
class GateVerdict:
    """All findings, the gravest first."""

    findings: Sequence[Finding]

    def state(self, tier: Tier | None = None) -> State:
        """The gravest state of a tier, or of all; absent if there is no other finding."""
        for finding in self.findings:
            if tier in (None, finding.tier) and finding.state != "absent":
                return finding.state
        return "absent"

    def exit_code(self, treat_inconclusive: str = "neutral") -> int:
        """Return the command's exit code; it is never 0 if nothing was measured."""
        codes = {**CODES, "inconclusive": TREATED[treat_inconclusive]}
        return codes.get(self.state(), UNMEASURED)


def judge(evidence: Evidence) -> GateVerdict:
    """Return the verdict that follows from the evidence."""
    question = evidence.question
    card = merged_card("the stored card", [question["card"]])
    findings = list(counted_findings(card, evidence))
    for name, records in by_comparison(evidence.of("work")).items():
        findings.append(instructions_finding(card, name, records))
    for name, records in by_comparison(evidence.of("time")).items():
        findings.append(time_finding(card, name, records))
    for note in evidence.notes:
        findings.append(Finding(note.tier, note.state, note.variant, note.reason))

    for tier in card.tiers:
        findings += tier_not_measured(tier, findings)
    if change := question.get("card_change"):
        reason = f"the change edits the card of its own gate: {change}"
        findings.append(Finding(None, "absent", ALL, reason))
    findings = [with_acceptance(finding, question) for finding in findings]
    return GateVerdict(sorted(findings, key=lambda finding: STATES.index(finding.state)))


def with_acceptance(finding: Finding, question: GateQuestion) -> Finding:
    """Return a regression as accepted if a line says so, else with that line."""
    if finding.state != "regression" or "commit" not in question:
        return finding

    for change in question.get("accepted", []):
        if (change["variant"], change["tier"]) == (finding.variant, finding.tier):
            reason = f"{finding.reason}; accepted: {change['reason']}"
            return replace(finding, state="accepted", reason=reason)
    line = f"{question['commit'][:12]} {finding.variant} {finding.tier} REASON"
    return replace(finding, accepting=line)


def tier_not_measured(tier: Tier, findings: Sequence[Finding]) -> list[Finding]:
    """A finding of a requested tier without a result; that a trainer is new is one."""
    of_tier = [finding for finding in findings if finding.tier == tier]
    for finding in of_tier:
        if finding.state != "absent" or finding.variant == ALL or finding.reason == NEW:
            return []

    causes = of_tier + [one for one in findings if one.state in ("mismatch", "unmeasured")]
    why = causes[0].message if causes else "the card has no corpus for these variants"
    return [Finding(tier, "unmeasured", ALL, f"{tier} was not measured: {why}")]


# Merges, and counts of work


def counted_findings(card: GateCard, evidence: Evidence) -> Iterator[Finding]:
    """What the merges and the counts of work of each variant on each corpus show."""
    records = evidence.of("identity")
    able = {record.cell.variant for record in records if record.status != "skipped"}
    accepted = any(note.state == "accepted" for note in evidence.notes)
    snapshot = evidence.question.get("snapshot")

    for record in records:
        is_elsewhere = record.status == "skipped" and record.cell.variant in able
        if "identity" in card.tiers and not is_elsewhere:  # else it has corpora that suit it
            yield on_corpus("identity", record, *merges_state(card, record))
        if "work" in card.tiers and record.status in MEASURED:
            yield on_corpus("work", record, *work_state(record, snapshot, accepted))


def on_corpus(tier: Tier, record: Record, state: State, reason: str | None) -> Finding:
    return Finding(tier, state, str(record.cell.variant), f"{reason}", gated(record)["corpus"])


def merges_state(card: GateCard, record: Record) -> tuple[State, str | None]:
    """What the merges of a record are, and why; an outside trainer that the card knows to be wrong
    fails nothing.
    """
    identity, status, reason = record.identity, record.status, record.measurement.reason
    known_wrong = card.known_wrong.get(str(record.cell.variant))
    if status == "skipped":
        return "absent", reason
    if status not in MEASURED or identity is None:
        return "unmeasured", f"{status}: {reason}"

    if identity.kind == WRONG and known_wrong is not None:
        return "absent", f"wrong merges, as the card knows: {known_wrong}"
    if identity.kind == WRONG:
        return "mismatch", identity.reason
    if identity.kind not in PROVED:
        return "unmeasured", f"unproved, {identity.reason or reason}"
    return "pass", f"{count_text(record.measurement.merges or 0)} merges are right"


def work_state(
    record: Record, snapshot: Mapping[str, Mapping[str, Counts]] | None, accepted: bool
) -> tuple[State, str]:
    """What the counts of work of a record are against the accepted ones, and why."""
    counted = record.measurement.tallies or {}
    stored = (snapshot or {}).get(str(record.cell.variant), {})
    expected = stored.get(gated(record)["corpus"], {})
    if not counted and not expected:
        return "absent", "the trainer counts nothing of its work"
    if counted == expected:
        return "pass", f"{counted_text(len(counted), 'count')} of work as accepted"

    changes = []
    for name in sorted({*expected, *counted}):
        before, after = expected.get(name), counted.get(name)
        if before != after:
            changes.append(f"{name} {change_text(before, after)}")
    fact = ", ".join(changes)
    if accepted:
        return "accepted", fact
    if snapshot is None:
        return "absent", "no counts of work are accepted yet; --accept writes them"
    return "drift", f"{fact}; --accept accepts that"


def change_text(before: int | None, after: int | None) -> str:
    """
    >>> change_text(1000, 1100), change_text(None, 5), change_text(0, 5)
    ('1,000 -> 1,100 (+10.0 %)', 'none -> 5', '0 -> 5')
    """
    sides = ["none" if number is None else count_text(number) for number in (before, after)]
    change = f" ({signed(after / before - 1)})" if before and after is not None else ""
    return " -> ".join(sides) + change


# Head against base


def trouble_of(card: GateCard, tier: Tier, name: str, records: Sequence[Record]) -> Finding | None:
    """What follows from the first of these that failed or made wrong merges; a base that does is
    only absent.
    """
    for record in records:
        (state, reason), about = merges_state(card, record), gated(record)
        if state == "mismatch" and about["side"] == "head":
            return on_corpus("identity", record, state, reason)
        if state != "pass":
            state = state if about["side"] == "head" else "absent"
            return Finding(tier, state, name, f"{about['side']}: {reason}", about["corpus"])
    return None


def instructions_finding(card: GateCard, name: str, records: Sequence[Record]) -> Finding:
    """Instructions of head against those of base, each counted in the same layouts of memory: head
    takes more if its minimum is above base's maximum.
    """
    if trouble := trouble_of(card, "work", name, records):
        return trouble

    base, head = instructions_of(records, "base"), instructions_of(records, "head")
    share, limit = min(head) / max(base) - 1, card.instructions.max_increase
    reason = f"instructions {count_text(max(base))} -> {count_text(min(head))} ({signed(share, 2)})"
    if len(head) > 1:
        reason += f", the maximum of base and the minimum of head in {len(head)} layouts of memory"
    reason += f"; at most {signed(limit)}"
    return Finding("work", "regression" if share > limit else "pass", name, reason)


def instructions_of(records: Sequence[Record], side: str) -> list[int]:
    measured = [record.measurement.instructions for record in of_side(records, side)]
    return [each["count"] for each in measured if each]


def time_finding(card: GateCard, name: str, records: Sequence[Record]) -> Finding:
    """One variant's times, unless a sample failed or made other merges."""
    if trouble := trouble_of(card, "time", name, records):
        return trouble

    decision = decide(card.time, records)
    reason = f"{decision.why}{effect_text(decision)}"
    return Finding("time", decision.state, name, reason, gated(records[0])["corpus"], decision)


def effect_text(decision: Decision) -> str:
    """What decided, in brackets: memory, or times with their interval and blocks; nothing if no
    block was undisturbed.
    """
    effect, memory = decision.effect, decision.memory
    if memory is not None:
        return f" ({signed(memory[0])}, {bytes_text(round(memory[1]))} more)"
    if effect is None or not effect.blocks:
        return ""
    text = f"{effect.clock} time, median {signed(effect.ratio - 1)}"
    if effect.low is not None and effect.high is not None:
        ends = f"{signed(effect.low - 1)} to {signed(effect.high - 1)}"
        text += f", {share_text(decision.certainty)} interval {ends}"
    longer = sum(ratio > 1 for ratio in effect.ratios)
    text += f"; head took longer in {longer} of {effect.blocks} blocks"
    if effect.left_out:
        text += f", {effect.left_out} left out as disturbed"
    return f" ({text})"


def signed(share: float, decimals: int = 1) -> str:
    """
    >>> signed(0.0512), signed(-0.004)
    ('+5.1 %', '-0.4 %')
    """
    return f"{100 * share:+.{decimals}f} %"


# The texts


def lines(verdict: GateVerdict) -> list[str]:
    """Return the lines for a terminal: the headline, the tiers, then what did not pass, the gravest
    first.

    Subjects with the same reason share a line. Times are shown even if they passed.
    """
    states = [finding.state for finding in verdict.findings if finding.state != "absent"]
    passed = f"{count_text(states.count('pass'))} of {counted_text(len(states), 'check')} passed"
    headline = dict.fromkeys([f"gate: {HEADINGS[verdict.state()]}", passed])
    subjects: dict[tuple[str, str], dict[str, None]] = {}
    advice = []
    for finding in verdict.findings:
        is_plain = finding.state == "absent" or finding.reason == SAME_CODE
        if finding.variant == ALL:
            headline[finding.message] = None
        elif is_plain or finding.state != "pass" or finding.tier == "time":
            subject = finding.variant if is_plain else finding.subject
            subjects.setdefault((finding.state, finding.reason), {})[subject] = None
        if finding.accepting:
            advice.append(f"{'':<{INDENT}}{finding.accepting}")

    text = ["; ".join(headline)]
    for tier in TIERS:
        of_tier = [one for one in verdict.findings if one.tier == tier and one.variant != ALL]
        counts = []
        for heading, number in Counter(HEADINGS[one.state] for one in of_tier).items():
            counts.append(f"{count_text(number)} {heading}")
        if counts:
            text.append(f"  {tier:<9}{', '.join(counts)}")

    for (state, reason), named in subjects.items():
        text.append(f"{state:<{INDENT}}{', '.join(named)}: {reason}")
    if advice:
        text.append(f"{'':<{INDENT}}if that is on purpose, commit in {ACCEPTED}:")
    return text + advice


def summary_of(verdict: GateVerdict, evidence: Evidence) -> str:
    """Return the summary of a pull request: the lines of the terminal, what was compared, and
    where.
    """
    sign = SIGNS.get(verdict.state(), "❌")
    first, *rest = lines(verdict)
    question, environment = evidence.question, evidence.run.environment
    facts = [environment.get("cpu"), environment.get("python"), evidence.run.run[:10]]
    sides = f"Base: {question.get('base', 'none')}; head: {question['head']}."
    fenced = wrap("\n".join(rest), WIDTH)
    text = [f"### {sign} {markdown_text(first)}", "", "```text", fenced, "```", ""]
    return "\n".join([*text, markdown_text(f"{sides} {', '.join(filter(None, facts))}")]) + "\n"


def as_json(verdict: GateVerdict, evidence: Evidence, exit_code: int) -> dict[str, Any]:
    """Return the verdict with every number behind it, for programs; the samples are in the file
    that --replay reads.
    """
    findings = []
    for finding in verdict.findings:
        findings.append({**msgspec.to_builtins(finding), "message": finding.message})

    return {
        "schema": 1,
        "verdict": verdict.state(),
        "exit_code": exit_code,
        "tiers": {tier: verdict.state(tier) for tier in TIERS},
        "base": None,
        **evidence.question,
        "started": evidence.run.run,
        "environment": evidence.run.environment,
        "findings": findings,
    }


def junit(verdict: GateVerdict) -> str:
    """Return the verdict as JUnit's XML, a test case for each finding."""
    suite = ElementTree.Element("testsuite", name="gate", tests=str(len(verdict.findings)))
    for finding in verdict.findings:
        case = ElementTree.SubElement(
            suite, "testcase", classname=finding.tier or "card", name=finding.subject
        )
        result = ElementTree.SubElement(case, ELEMENTS.get(finding.state, "failure"))
        result.text = terminal_text(finding.message)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode")
