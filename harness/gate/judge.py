"""The verdict: findings from a gate's evidence, and the exit code.

`judge` is a pure function of the evidence, so `--replay` gives the same verdict again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from harness.common import errors
from harness.common.units import bytes_text, count_text, counted_text, share_text
from harness.gate.card import GateCard, merged_card
from harness.gate.evidence import ALL, Counts, Evidence, by_comparison, gated, paired_blocks
from harness.gate.rule import Decision, decide
from harness.proof import PROVED, WRONG
from harness.records.file import Record
from harness.records.schema import GateQuestion, State, Tier

STATES: tuple[State, ...] = get_args(State)
CODES: dict[State, int] = {
    "mismatch": errors.MISMATCH,
    "drift": errors.MISMATCH,
    "regression": errors.REGRESSION,
    "accepted": errors.OK,
    "pass": errors.OK,
}
TREATED = {"pass": errors.OK, "fail": errors.REGRESSION, "neutral": errors.INCONCLUSIVE}
SAME_CODE = "the same code in base and head"
NEW = "new in head: not compared; --base-target TARGET names it in the base"
MEASURED = ("ok", "mismatch")


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
    def message(self) -> str:
        """The reason with its subject."""
        if self.variant == ALL:
            return self.reason
        subject = f"{self.variant} on {self.corpus}" if self.corpus else self.variant
        return f"{subject}: {self.reason}"


@dataclass(frozen=True)
class GateVerdict:
    """All findings, the gravest first."""

    findings: Sequence[Finding]

    def state(self, tier: Tier | None = None) -> State:
        """The gravest state of a tier, or of all; absent if there is no other finding."""
        states = {finding.state for finding in self.findings if tier in (None, finding.tier)}
        return next((state for state in STATES if state in states - {"absent"}), "absent")

    def exit_code(self, treat_inconclusive: str = "neutral") -> int:
        """Return the command's exit code; it is never 0 if nothing was measured."""
        if self.state() == "inconclusive":
            return TREATED[treat_inconclusive]
        return CODES.get(self.state(), errors.UNMEASURED)


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
        findings += list(tier_not_measured(tier, findings))
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


def tier_not_measured(tier: Tier, findings: Sequence[Finding]) -> Iterator[Finding]:
    """A finding of a requested tier without a result; that a trainer is new is one."""
    of_tier = [finding for finding in findings if finding.tier == tier]
    for finding in of_tier:
        if finding.state != "absent" or finding.variant == ALL or finding.reason == NEW:
            return

    failed = [finding for finding in findings if finding.state in ("mismatch", "unmeasured")]
    causes = [finding.message for finding in of_tier + failed]
    why = [*causes, "the card has no corpus for these variants"][0]
    more = f" (and {count_text(len(of_tier) - 1)} more)" if len(of_tier) > 1 else ""
    yield Finding(tier, "unmeasured", ALL, f"{tier} was not measured: {why}{more}")


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
            yield merges_finding(card, record)
        if "work" in card.tiers and record.status in MEASURED:
            yield tally_finding(record, snapshot, accepted)


def merges_finding(card: GateCard, record: Record) -> Finding:
    """One variant's merges on one corpus; an outside trainer that the card knows to be wrong fails
    nothing.
    """
    identity, status, reason = record.identity, record.status, record.measurement.reason
    known_wrong = card.known_wrong.get(str(record.cell.variant))
    if status == "skipped":
        return finding_on_corpus("identity", "absent", record, reason)
    if status not in MEASURED or identity is None:
        return finding_on_corpus("identity", "unmeasured", record, f"{status}: {reason}")
    if identity.kind == WRONG and known_wrong is not None:
        known = f"wrong merges, as the card knows: {known_wrong}"
        return finding_on_corpus("identity", "absent", record, known)
    if identity.kind == WRONG:
        return finding_on_corpus("identity", "mismatch", record, identity.reason)
    if identity.kind not in PROVED:
        doubt = f"unproved, {identity.reason or reason}"
        return finding_on_corpus("identity", "unmeasured", record, doubt)
    merges = count_text(record.measurement.merges or 0)
    return finding_on_corpus("identity", "pass", record, f"{merges} merges are right")


def finding_on_corpus(tier: Tier, state: State, record: Record, reason: str | None) -> Finding:
    return Finding(tier, state, str(record.cell.variant), f"{reason}", gated(record)["corpus"])


def tally_finding(
    record: Record, snapshot: Mapping[str, Mapping[str, Counts]] | None, accepted: bool
) -> Finding:
    """One variant's counts of work on one corpus against the accepted ones."""
    counted = record.measurement.tallies or {}
    stored = (snapshot or {}).get(str(record.cell.variant), {})
    expected = stored.get(gated(record)["corpus"], {})
    if not counted and not expected:
        nothing = "the trainer counts nothing of its work"
        return finding_on_corpus("work", "absent", record, nothing)
    if counted == expected:
        fact = f"{counted_text(len(counted), 'count')} of work as accepted"
        return finding_on_corpus("work", "pass", record, fact)

    changes = []
    for name in sorted({*expected, *counted}):
        before, after = expected.get(name), counted.get(name)
        if before != after:
            changes.append(f"{name} {change_text(before, after)}")
    fact = ", ".join(changes)
    if accepted:
        return finding_on_corpus("work", "accepted", record, fact)
    if snapshot is None:
        none = "no counts of work are accepted yet; --accept writes them"
        return finding_on_corpus("work", "absent", record, none)
    return finding_on_corpus("work", "drift", record, f"{fact}; --accept accepts that")


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
        found, side = merges_finding(card, record), gated(record)["side"]
        if found.state == "mismatch" and side == "head":
            return found
        if found.state != "pass":
            state: State = found.state if side == "head" else "absent"
            return Finding(tier, state, name, f"{side}: {found.reason}", found.corpus)
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
    counts = [r.measurement.instructions for r in records if gated(r)["side"] == side]
    return [count["count"] for count in counts if count is not None]


def time_finding(card: GateCard, name: str, records: Sequence[Record]) -> Finding:
    """One variant's times, unless a sample failed or made other merges."""
    if trouble := trouble_of(card, "time", name, records):
        return trouble

    decision = decide(card.time, paired_blocks(records))
    state: State = "inconclusive" if decision.state == "escalate" else decision.state
    reason = f"{decision.why}{effect_text(decision)}"
    return Finding("time", state, name, reason, gated(records[0])["corpus"], decision)


def effect_text(decision: Decision) -> str:
    """What decided, in brackets: memory, or times with their interval and blocks; nothing if no
    block was undisturbed.
    """
    effect, memory = decision.effect, decision.memory
    if decision.state == "regression" and memory is not None and decision.is_larger:
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
