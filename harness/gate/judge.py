"""The verdict: findings from a gate's evidence, and the exit code.

`judge` is a pure function of the evidence, so `--replay` gives the same verdict again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.common import errors
from harness.common.units import bytes_text, count_text, counted_text, share_text
from harness.gate.card import TIERS, GateCard, stored_card
from harness.gate.evidence import (
    ABSENT,
    ACCEPTED,
    ACCEPTED_CHANGES,
    ALL,
    BASE,
    DRIFT,
    HEAD,
    IDENTITY,
    INCONCLUSIVE,
    MISMATCH,
    PASS,
    REGRESSION,
    TIME,
    UNMEASURED,
    WORK,
    Counts,
    Evidence,
    gated,
    paired_blocks,
)
from harness.gate.rule import ESCALATE, Decision, decide, is_larger, split
from harness.proof import IDENTICAL, PROVED, WRONG
from harness.records.file import Record
from harness.records.schema import GateQuestion

HEADINGS = {
    MISMATCH: "wrong merges",
    DRIFT: "counts of work changed",
    REGRESSION: "regression",
    UNMEASURED: "could not measure",
    INCONCLUSIVE: "inconclusive",
    ABSENT: "measured nothing",
    ACCEPTED: "accepted",
    PASS: "passed",
}
"""The gravest first."""
STATES = tuple(HEADINGS)
CODES = {
    MISMATCH: errors.MISMATCH,
    DRIFT: errors.MISMATCH,
    REGRESSION: errors.REGRESSION,
    ACCEPTED: errors.OK,
    PASS: errors.OK,
}
TREATED = {"pass": errors.OK, "fail": errors.REGRESSION, "neutral": errors.INCONCLUSIVE}
SAME_CODE = "the same code in base and head"
NEW = "new in head: not compared; --base-target TARGET names it in the base"
MEASURED = ("ok", "mismatch")


@dataclass(frozen=True)
class Finding:
    """One thing that was checked, of a variant and perhaps of a corpus."""

    tier: str
    state: str
    variant: str
    message: str
    corpus: str | None = None
    details: Mapping[str, Any] | None = None
    advice: str = ""

    @property
    def reason(self) -> str:
        """The message without its subject."""
        return self.message.partition(": ")[2] or self.message


@dataclass(frozen=True)
class GateVerdict:
    """All findings, the gravest first."""

    findings: Sequence[Finding]

    def state(self, tier: str | None = None) -> str:
        """The gravest state of a tier, or of all; absent if there is no other finding."""
        states = {finding.state for finding in self.findings if tier in (None, finding.tier)}
        return next((state for state in STATES if state in states - {ABSENT}), ABSENT)

    def exit_code(self, treat_inconclusive: str = "neutral") -> int:
        """Return the command's exit code; it is never 0 if nothing was measured."""
        return {**CODES, INCONCLUSIVE: TREATED[treat_inconclusive]}.get(
            self.state(), errors.UNMEASURED
        )

    def tiers(self) -> dict[str, list[str]]:
        """Return the states of each tier that has findings: of variants, if it has any of them."""
        found: dict[str, list[str]] = {}
        for tier in TIERS:
            findings = [finding for finding in self.findings if finding.tier == tier]
            of_variants = [finding for finding in findings if finding.variant != ALL]
            if findings:
                found[tier] = [finding.state for finding in of_variants or findings]
        return found


def judge(evidence: Evidence) -> GateVerdict:
    """Return the verdict that follows from the evidence."""
    card = stored_card(evidence.question["card"])
    findings = list(counted_findings(card, evidence))
    for name, records in evidence.compared(WORK).items():
        findings.append(instructions_finding(card, name, records))
    for name, records in evidence.compared(TIME).items():
        findings.append(time_finding(card, name, records))
    for note in evidence.notes:
        if note.state != ACCEPTED:
            findings.append(Finding(note.tier, note.state, note.variant, note.reason))

    for tier in card.tiers:
        findings += list(tier_not_measured(tier, findings))
    if change := evidence.question.get("card_change"):
        message = f"the change edits the card of its own gate: {change}"
        findings.append(Finding("card", ABSENT, ALL, message))
    findings = [with_acceptance(finding, evidence.question) for finding in findings]
    return GateVerdict(sorted(findings, key=lambda finding: STATES.index(finding.state)))


def with_acceptance(finding: Finding, question: GateQuestion) -> Finding:
    """Return a finding as accepted if a line says so, else with that line."""
    if finding.state not in (REGRESSION, DRIFT) or "commit" not in question:
        return finding

    variant = finding.variant.partition(" against ")[0]
    for change in question.get("accepted", []):
        if (change["variant"], change["tier"]) == (variant, finding.tier):
            message = f"{finding.message}; accepted: {change['reason']}"
            return replace(finding, state=ACCEPTED, message=message)
    if finding.state == DRIFT:
        return finding  # the snapshot accepts it
    line = f"{question['commit'][:12]} {variant} {finding.tier} REASON"
    return replace(finding, advice=f"if that is on purpose, commit in {ACCEPTED_CHANGES}: {line}")


def counted_findings(card: GateCard, evidence: Evidence) -> Iterator[Finding]:
    """What the merges and the counts of work of each variant on each corpus show."""
    records = evidence.of(IDENTITY)
    able = {record.cell.variant for record in records if record.status != "skipped"}
    accepted = any(note.state == ACCEPTED for note in evidence.notes)
    snapshot = evidence.question.get("snapshot")

    for record in records:
        is_elsewhere = record.status == "skipped" and record.cell.variant in able
        if IDENTITY in card.tiers and not is_elsewhere:  # else it has corpora that suit it
            yield merges_finding(record, card.known_wrong.get(str(record.cell.variant)))
    for record in records:
        if WORK in card.tiers and record.status in MEASURED:
            yield from tally_findings(record, snapshot, accepted)


def tier_not_measured(tier: str, findings: Sequence[Finding]) -> Iterator[Finding]:
    """A finding of a requested tier without a result; that a trainer is new is one if anything else
    was measured.
    """
    of_tier = [finding for finding in findings if finding.tier == tier]
    if any(finding.state != ABSENT or finding.variant == ALL for finding in of_tier):
        return

    # evidence of earlier versions has what is the same as absent
    has_no_other = any(finding.reason in (SAME_CODE, NEW) for finding in of_tier)
    if has_no_other and any(finding.state != ABSENT for finding in findings):
        yield Finding(tier, ABSENT, ALL, f"{tier} was not measured")
        return

    failed = [finding for finding in findings if finding.state in (MISMATCH, UNMEASURED)]
    why = "the card has no corpus for these variants"
    if failed:
        why = "wrong merges" if failed[0].state == MISMATCH else "no run succeeded"
    if of_tier:
        why = of_tier[0].message
    if len(of_tier) > 1:
        why += f" (and {count_text(len(of_tier) - 1)} more)"
    yield Finding(tier, UNMEASURED, ALL, f"{tier} was not measured: {why}")


def merges_finding(record: Record, known_wrong: str | None = None) -> Finding:
    """One variant's merges on one corpus; an outside trainer that the card knows to be wrong fails
    nothing.
    """
    identity, status, reason = record.identity, record.status, record.measurement.reason
    if status == "skipped":
        state, message = ABSENT, reason
    elif status not in MEASURED or identity is None:
        state, message = UNMEASURED, f"{status}: {reason}"
    elif identity.kind == WRONG and known_wrong is not None:
        state, message = ABSENT, f"wrong merges, as the card knows: {known_wrong}"
    elif identity.kind == WRONG:
        state, message = MISMATCH, identity.reason
    elif identity.kind not in PROVED:
        state, message = UNMEASURED, f"unproved, {identity.reason or reason}"
    else:
        state, message = PASS, f"{count_text(record.measurement.merges or 0)} merges are right"
    return finding_on_corpus(IDENTITY, state, record, f": {message}")


def finding_on_corpus(tier: str, state: str, record: Record, message: str) -> Finding:
    variant, corpus = str(record.cell.variant), gated(record)["corpus"]
    return Finding(tier, state, variant, f"{variant} on {corpus}{message}", corpus)


def tally_findings(
    record: Record, snapshot: Mapping[str, Mapping[str, Counts]] | None, accepted: bool
) -> Iterator[Finding]:
    """One variant's counts of work on one corpus against the snapshot."""
    counted = record.measurement.tallies or {}
    stored = (snapshot or {}).get(str(record.cell.variant), {})
    expected = stored.get(gated(record)["corpus"])
    if expected is None and not counted:
        found = [(ABSENT, ": the trainer counts nothing of its work", "")]
    elif expected is None and snapshot is not None:
        found = [(DRIFT, ": not in the snapshot of counts of work", "adds it")]
    elif expected is None:
        found = [(ABSENT, ": no snapshot of counts of work", "writes one")]
    elif counted == expected:
        counts = counted_text(len(counted), "count")
        found = [(PASS, f": {counts} of work as in the snapshot", "")]
    else:
        found = []
        for tally in sorted({*expected, *counted}):
            before, after = expected.get(tally), counted.get(tally)
            if before != after:
                found.append((DRIFT, f", {tally}: {change_text(before, after)}", "accepts it"))

    for state, fact, accepting in found:
        advice = f"; --accept {accepting}" if accepting else ""
        if accepted and accepting:
            state, advice = PASS, f"; {ACCEPTED}"
        yield finding_on_corpus(WORK, state, record, fact + advice)


def change_text(before: int | None, after: int | None) -> str:
    """
    >>> change_text(1000, 1100), change_text(None, 5), change_text(0, 5)
    ('1,000 -> 1,100 (+10.0 %)', 'none -> 5', '0 -> 5')
    """
    sides = " -> ".join(
        "none" if number is None else count_text(number) for number in (before, after)
    )
    return f"{sides} ({signed(after / before - 1)})" if before and after is not None else sides


def failure_of(records: Sequence[Record]) -> tuple[str, str, str] | None:
    """The state that follows from the first of these that failed, its side, and how it failed; a
    base that fails, or what cannot run here, is only absent.
    """
    for record in records:
        if record.status not in MEASURED:
            side = gated(record)["side"]
            absent = record.status == "skipped" or side != HEAD
            what = f"was {record.status}: {record.measurement.reason}"
            return ABSENT if absent else UNMEASURED, side, what
    return None


def instructions_finding(card: GateCard, name: str, records: Sequence[Record]) -> Finding:
    """Instructions of head against those of base, each counted in the same layouts of memory."""
    if failure := failure_of(records):
        state, side, what = failure
        return Finding(WORK, state, name, f"{name}, instructions: {side} {what}")

    base, head = instructions_of(records, BASE), instructions_of(records, HEAD)
    before, after, layouts = max(base), min(head), len(head)
    share, most = relative_increase(base, head), card.instructions.max_increase
    change = f"{count_text(before)} -> {count_text(after)} ({signed(share, 2)})"
    ranges = (
        f", the maximum of base and the minimum of head in {layouts} layouts of memory"
        if layouts > 1
        else ""
    )
    message = f"{name}, instructions: {change}{ranges}; at most {signed(most)}"
    return Finding(WORK, REGRESSION if share > most else PASS, name, message)


def instructions_of(records: Sequence[Record], side: str) -> list[int]:
    counts = [r.measurement.instructions for r in records if gated(r)["side"] == side]
    return [count["count"] for count in counts if count is not None]


def relative_increase(base: Sequence[int], head: Sequence[int]) -> float:
    """By which share head takes more than base in every layout of memory: its minimum against
    base's maximum.
    """
    return min(head) / max(base) - 1


def time_finding(card: GateCard, name: str, records: Sequence[Record]) -> Finding:
    """One variant's times, unless a sample failed or made other merges."""
    if trouble := trouble_of(name, records):
        return trouble

    variant, corpus = variant_and_corpus(records)
    subject = f"{name} on {corpus}"
    decision = decide(card.time, *split(card.time, paired_blocks(records)))
    state = INCONCLUSIVE if decision.state == ESCALATE else decision.state
    effect, memory = decision.effect, decision.memory
    if state == REGRESSION and memory is not None and is_larger(memory):
        message = (
            f"{subject}: {decision.why} ({signed(memory[0])}, {bytes_text(round(memory[1]))} more)"
        )
    elif effect is not None:
        message = f"{subject}, {effect.clock} time: {decision.why}{effect_text(decision)}"
    else:
        message = f"{subject}: {decision.why}"

    details = {"effect": effect, "control": decision.control, "memory": memory}
    return Finding(TIME, state, variant, message, corpus, details)


def variant_and_corpus(records: Sequence[Record]) -> tuple[str, str]:
    """What a comparison is about: head's variant, on the corpus of both sides."""
    heads = [record for record in records if gated(record)["side"] == HEAD]
    record = [*heads, *records][0]
    return str(record.cell.variant), gated(record)["corpus"]


def trouble_of(name: str, records: Sequence[Record]) -> Finding | None:
    """Why the times of a comparison say nothing: a run failed, or its merges are not the right
    ones.
    """
    variant, corpus = variant_and_corpus(records)
    if failure := failure_of(records):
        state, side, what = failure
        message = f"{name} on {corpus}, time: {side} {what}"
        return Finding(TIME, state, variant, message, corpus)

    right, doubts = None, dict[str, None]()
    for record in records:
        identity = record.identity
        if identity is not None and identity.kind == IDENTICAL:
            right = right or record.measurement.merges_sha256
        doubts[f"{identity.kind}, {identity.reason}" if identity else "there are none"] = None
    if right is None:
        message = f"{name}, time: its merges are not proved: {'; '.join(doubts)}"
        return Finding(TIME, UNMEASURED, variant, message)

    for record in records:
        if record.measurement.merges_sha256 != right:
            side, block = gated(record)["side"], record.measurement.block
            fault = f"made other merges than the proved ones in block {block}"
            message = f"{name} on {corpus}: {side} {fault}"
            tier, state = (IDENTITY, MISMATCH) if side == HEAD else (TIME, ABSENT)
            return Finding(tier, state, variant, message, corpus)
    return None


def effect_text(decision: Decision) -> str:
    """An effect with the interval that decided and its blocks, in brackets; nothing if no block was
    undisturbed.
    """
    effect = decision.effect
    if effect is None or not effect.blocks:
        return ""
    interval = ""
    if effect.low is not None and effect.high is not None:
        low, high = signed(effect.low - 1), signed(effect.high - 1)
        interval = f", with {share_text(decision.certainty)} certainty {low} to {high}"
    slower = sum(ratio > 1 for ratio in effect.ratios)
    left_out = f", {effect.left_out} left out as disturbed" if effect.left_out else ""
    blocks = f"head took longer in {slower} of {effect.blocks} blocks{left_out}"
    return f" ({signed(effect.ratio - 1)}{interval}; {blocks})"


def signed(share: float, decimals: int = 1) -> str:
    """
    >>> signed(0.0512), signed(-0.004)
    ('+5.1 %', '-0.4 %')
    """
    return f"{100 * share:+.{decimals}f} %"
