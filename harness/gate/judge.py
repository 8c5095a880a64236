"""The verdict: findings from a gate's evidence, the exit code, and the texts for people and
programs.

`judge` is a pure function of the evidence, so `--replay` gives the same verdict again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from harness.common import errors
from harness.common.comparison import Comparison
from harness.common.console import markdown_text
from harness.common.units import bytes_text, count_text, counted_text, share_text
from harness.gate import evidence as store
from harness.gate.evidence import (
    ABSENT,
    ALL,
    DRIFT,
    INCONCLUSIVE,
    MISMATCH,
    PASS,
    REGRESSION,
    UNMEASURED,
    Evidence,
)
from harness.gate.rule import ESCALATE, TIERS, Card, decide, is_larger, stored_card
from harness.proof import PROVED, WRONG

HEADINGS = {
    MISMATCH: "wrong merges",
    DRIFT: "counts of work changed",
    REGRESSION: "regression",
    UNMEASURED: "could not measure",
    INCONCLUSIVE: "inconclusive",
    ABSENT: "measured nothing",
    PASS: "passed",
}
"""The gravest first."""
STATES = tuple(HEADINGS)
CODES = {
    MISMATCH: errors.MISMATCH,
    DRIFT: errors.MISMATCH,
    REGRESSION: errors.REGRESSION,
    PASS: errors.OK,
}
TREATED = {"pass": errors.OK, "fail": errors.REGRESSION, "neutral": errors.INCONCLUSIVE}
IDENTITY, WORK, TIME = TIERS
SAME_CODE = "the same code in base and head"
ACCEPTED = "; accepted"


@dataclass(frozen=True)
class Finding:
    """One thing that was checked, of a variant and perhaps of a corpus."""

    tier: str
    state: str
    variant: str
    message: str
    corpus: str | None = None
    details: Mapping[str, Any] | None = None

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
        """Return the states of each tier that has findings."""
        found: dict[str, list[str]] = {}
        for tier in TIERS:
            states = [finding.state for finding in self.findings if finding.tier == tier]
            if states:
                found[tier] = states
        return found


def judge(evidence: Evidence) -> GateVerdict:
    """Return the verdict that follows from the evidence."""
    card = stored_card(evidence.question.card)
    accepted = bool(evidence.of(store.Accepted))
    measured = {each.variant for each in evidence.of(store.Merges) if each.status != "skipped"}
    samples: dict[str, list[store.Sample]] = {}
    for sample in evidence.of(store.Sample):
        samples.setdefault(sample.comparison, []).append(sample)

    findings = []
    for merges in evidence.of(store.Merges):
        if (
            merges.status != "skipped" or merges.variant not in measured
        ):  # on a corpus that suits it
            findings.append(merges_finding(merges, card.known_wrong.get(merges.variant)))
    for tallies in evidence.of(store.Tallies):
        findings += tally_findings(tallies, accepted)
    for counted in evidence.of(store.Instructions):
        findings.append(instructions_finding(card, counted))
    for timed in evidence.of(store.Timed):
        findings.append(time_finding(card, timed, samples.get(timed.comparison, [])))
    for note in evidence.of(store.Note):
        findings.append(Finding(note.tier, note.state, note.variant, note.reason))

    for tier in card.tiers:
        findings += list(tier_not_measured(tier, findings))
    return GateVerdict(sorted(findings, key=lambda finding: STATES.index(finding.state)))


def tier_not_measured(tier: str, findings: Sequence[Finding]) -> Iterator[Finding]:
    """A finding of a requested tier without a result; the same code is one if anything else was
    measured.
    """
    of_tier = [finding for finding in findings if finding.tier == tier]
    if any(finding.state != ABSENT or finding.variant == ALL for finding in of_tier):
        return

    same_code = any(finding.message.endswith(SAME_CODE) for finding in of_tier)
    is_measured = any(finding.state != ABSENT for finding in findings)
    why = "the card has no corpus for these variants"
    if of_tier:
        why = of_tier[0].message
    if len(of_tier) > 1:
        why += f" (and {count_text(len(of_tier) - 1)} more)"
    state = ABSENT if same_code and is_measured else UNMEASURED
    yield Finding(tier, state, ALL, f"{tier} was not measured: {why}")


def merges_finding(merges: store.Merges, known_wrong: str | None = None) -> Finding:
    """One variant's merges on one corpus; an outside trainer that the card knows to be wrong fails
    nothing.
    """
    identity = merges.identity
    if merges.status == "skipped":
        state, message = ABSENT, merges.reason
    elif merges.status != "ok" or identity is None:
        state, message = UNMEASURED, f"{merges.status}: {merges.reason}"
    elif identity.kind == WRONG and known_wrong is not None:
        state, message = ABSENT, f"{identity.reason}; known: {known_wrong}"
    elif identity.kind == WRONG:
        state, message = MISMATCH, identity.reason
    elif identity.kind not in PROVED:
        state, message = UNMEASURED, f"unproved, {identity.reason or merges.reason}"
    else:
        state, message = PASS, f"{count_text(merges.merges or 0)} merges are right"

    subject = f"{merges.variant} on {merges.corpus}"
    return Finding(IDENTITY, state, merges.variant, f"{subject}: {message}", merges.corpus)


def tally_findings(observed: store.Tallies, accepted: bool) -> Iterator[Finding]:
    """One variant's counts of work on one corpus against the snapshot."""
    subject = f"{observed.variant} on {observed.corpus}"
    counted, expected = observed.tallies, observed.expected
    if expected is None and not counted:
        found = [(ABSENT, f"{subject}: the trainer counts nothing of its work", "")]
    elif expected is None and observed.snapshot:
        found = [(DRIFT, f"{subject}: not in the snapshot of counts of work", "adds it")]
    elif expected is None:
        found = [(ABSENT, f"{subject}: no snapshot of counts of work", "writes one")]
    elif counted == expected:
        counts = counted_text(len(counted), "count")
        found = [(PASS, f"{subject}: {counts} of work as in the snapshot", "")]
    else:
        found = []
        for tally in sorted({*expected, *counted}):
            before, after = expected.get(tally), counted.get(tally)
            if before != after:
                change = f"{subject}, {tally}: {change_text(before, after)}"
                found.append((DRIFT, change, "accepts it"))

    for state, fact, accepting in found:
        advice = f"; --accept {accepting}" if accepting else ""
        if accepted and accepting:
            state, advice = PASS, ACCEPTED
        yield Finding(WORK, state, observed.variant, fact + advice, observed.corpus)


def change_text(before: int | None, after: int | None) -> str:
    """
    >>> change_text(1000, 1100), change_text(None, 5), change_text(0, 5)
    ('1,000 -> 1,100 (+10.0 %)', 'none -> 5', '0 -> 5')
    """
    sides = " -> ".join(
        "none" if number is None else count_text(number) for number in (before, after)
    )
    return f"{sides} ({signed(after / before - 1)})" if before and after is not None else sides


def instructions_finding(card: Card, counted: store.Instructions) -> Finding:
    """Instructions of head against those of base, each counted in the same layouts of memory."""
    name = counted.variant
    if not counted.base or not counted.head:
        return Finding(WORK, counted.state, name, f"{name}, instructions: {counted.reason}")
    before, after, layouts = max(counted.base), min(counted.head), len(counted.head)
    share, most = relative_increase(counted.base, counted.head), card.work.instructions.most
    change = f"{count_text(before)} -> {count_text(after)} ({signed(share, 2)})"
    ranges = (
        f", the maximum of base and the minimum of head in {layouts} layouts of memory"
        if layouts > 1
        else ""
    )
    message = f"{name}, instructions: {change}{ranges}; at most {signed(most)}"
    return Finding(WORK, REGRESSION if share > most else PASS, name, message)


def relative_increase(base: Sequence[int], head: Sequence[int]) -> float:
    """By which share head takes more than base in every layout of memory: its minimum against
    base's maximum.
    """
    return min(head) / max(base) - 1


def time_finding(card: Card, timed: store.Timed, samples: Sequence[store.Sample]) -> Finding:
    """One variant's times, unless a sample failed or made other merges."""
    subject = f"{timed.comparison} on {timed.corpus}"
    for sample in samples:
        is_head, where = sample.arm == store.HEAD, f"in block {sample.block} of {sample.stage}"
        if sample.status != "ok":
            message = f"{subject}: {sample.arm} was {sample.status} {where}: {sample.reason}"
            return Finding(
                TIME, UNMEASURED if is_head else ABSENT, timed.variant, message, timed.corpus
            )
        if sample.merges_sha256 != timed.merges_sha256:
            message = f"{subject}: {sample.arm} made other merges than the proved ones {where}"
            tier, state = (IDENTITY, MISMATCH) if is_head else (TIME, ABSENT)
            return Finding(tier, state, timed.variant, message, timed.corpus)

    first, fresh = (store.blocks_of(samples, stage) for stage in (store.TRIAGE, store.CONFIRM))
    decision = decide(card.time, first, fresh, timed.threads)
    state = INCONCLUSIVE if decision.state == ESCALATE else decision.state

    effect, memory = decision.effect, decision.memory
    if state == REGRESSION and memory is not None and is_larger(card.time, memory):
        message = (
            f"{subject}: {decision.why} ({signed(memory[0])}, {bytes_text(round(memory[1]))} more)"
        )
    elif effect is not None:
        message = f"{subject}, {effect.clock} time: {decision.why}{effect_text(effect)}"
    else:
        message = f"{subject}: {decision.why}"

    details = {"effect": effect, "control": decision.control, "memory": memory}
    return Finding(TIME, state, timed.variant, message, timed.corpus, details)


def effect_text(effect: Comparison) -> str:
    """An effect with its interval and its blocks, in brackets; nothing if no block was
    undisturbed.
    """
    if not effect.blocks:
        return ""
    interval = ""
    if effect.low is not None and effect.high is not None:
        interval = f", between {signed(effect.low - 1)} and {signed(effect.high - 1)}"
    of = f" of {effect.blocks + effect.left_out}" if effect.left_out else ""
    slower = share_text(sum(ratio > 1 for ratio in effect.ratios) / len(effect.ratios))
    return (
        f" ({signed(effect.ratio - 1)}{interval}, slower in {slower} of {effect.blocks}{of} blocks)"
    )


def signed(share: float, decimals: int = 1) -> str:
    """
    >>> signed(0.0512), signed(-0.004)
    ('+5.1 %', '-0.4 %')
    """
    return f"{100 * share:+.{decimals}f} %"


# The verdict as text


def lines(verdict: GateVerdict) -> list[str]:
    """Return the lines for a terminal: the headline, the tiers, then what did not pass, the gravest
    first.

    Variants that are absent for the same reason share a line. Times are shown also if they passed.
    """
    passed = [finding for finding in verdict.findings if finding.state == PASS]
    bad = [finding for finding in verdict.findings if finding.state not in (PASS, ABSENT)]
    of_all: dict[str, str] = {}
    absent: dict[str, dict[str, None]] = {}
    for finding in verdict.findings:
        if finding.variant == ALL:
            of_all[finding.reason] = finding.message
        elif finding.state == ABSENT:
            absent.setdefault(finding.reason, {})[finding.variant] = None

    checks = counted_text(len(passed), "check")
    if bad:
        checks = f"{count_text(len(passed))} of {count_text(len(passed + bad))} checks passed"
    text = ["; ".join([f"gate: {HEADINGS[verdict.state()]}", checks, *of_all.values()])]
    names = {**HEADINGS, ABSENT: "not measured"}
    for tier, states in verdict.tiers().items():
        numbers = {state: states.count(state) for state in STATES if state in states}
        counts = [f"{count_text(number)} {names[state]}" for state, number in numbers.items()]
        text.append(f"  {tier:<9}{', '.join(counts)}")

    for finding in bad:
        text.append(f"{finding.state:<13}{finding.message}")
    for reason, variants in absent.items():
        text.append(f"{ABSENT:<13}{', '.join(variants)}: {reason}")
    for finding in passed:
        if finding.tier == TIME:
            text.append(f"{PASS:<13}{finding.message}")
    return text


def markdown(verdict: GateVerdict, evidence: Evidence) -> str:
    """Return the summary of a pull request: the lines of the terminal, what was compared, and
    where.
    """
    sign = {PASS: "✅", INCONCLUSIVE: "❔", ABSENT: "❔"}.get(verdict.state(), "❌")
    first, *rest = lines(verdict)
    question = evidence.question
    facts = [
        question.environment.get("cpu"),
        question.environment.get("python"),
        question.started[:10],
    ]
    sides = f"Base: {base_of(evidence) or 'none'}; head: {question.head}."
    text = [f"### {sign} {markdown_text(first)}", "", "```text", *rest, "```", ""]
    return "\n".join([*text, markdown_text(f"{sides} {', '.join(filter(None, facts))}")]) + "\n"


def base_of(evidence: Evidence) -> str | None:
    return next((base.described for base in evidence.of(store.BaseChosen)), None)


def as_json(verdict: GateVerdict, evidence: Evidence, exit_code: int) -> dict[str, Any]:
    """Return the verdict with every number behind it, for programs; the samples are in the file
    that --replay reads.
    """
    return {
        "schema": 1,
        "verdict": verdict.state(),
        "exit_code": exit_code,
        "tiers": {tier: verdict.state(tier) for tier in verdict.tiers()},
        "base": base_of(evidence),
        "head": evidence.question.head,
        "started": evidence.question.started,
        "findings": msgspec.to_builtins(verdict.findings),
        "card": evidence.question.card,
        "environment": evidence.question.environment,
    }
