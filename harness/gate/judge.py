"""The verdict: findings from a gate's evidence, the exit code, and the texts for people and programs.

`judge` is a pure function of the evidence, so `--replay` gives the same verdict again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from harness.common import errors
from harness.common.comparison import Comparison
from harness.common.console import markdown_text
from harness.common.units import bytes_text, count_text, counted_text, share_text
from harness.gate import evidence as lines_of
from harness.gate.evidence import CONFIRM, HEAD, TRIAGE, Evidence, Sample, blocks_of, change_text
from harness.gate.rule import ESCALATE, TIERS, Card, Decision, decide, stored_card
from harness.proof import IDENTICAL, UP_TO_TIES, WRONG

PASS, MISMATCH, DRIFT, REGRESSION = "pass", "mismatch", "drift", "regression"
UNMEASURED, INCONCLUSIVE, ABSENT = "unmeasured", "inconclusive", "absent"
HEADINGS = {
    MISMATCH: "wrong merges",
    DRIFT: "counts of work changed",
    REGRESSION: "regression",
    UNMEASURED: "could not measure",
    INCONCLUSIVE: "inconclusive",
    ABSENT: "measured nothing",
    PASS: "passed",
}
"""The gravest first. `absent` cannot run here, or has nothing to be compared with: neither good nor bad."""
STATES = tuple(HEADINGS)
CODES = {MISMATCH: errors.MISMATCH, DRIFT: errors.MISMATCH, REGRESSION: errors.REGRESSION, PASS: errors.OK}
TREATED = {"pass": errors.OK, "fail": errors.REGRESSION, "neutral": errors.INCONCLUSIVE}
IDENTITY, WORK, TIME = TIERS
ALL = "all"
"""In place of a variant: the finding is about a whole tier."""
PROVED = (IDENTICAL, UP_TO_TIES)
SAME_CODE = "the same code in base and head"
ACCEPTED = "; accepted"
SCHEMA = 1


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
    def is_bad(self) -> bool:
        return self.state not in (PASS, ABSENT)


@dataclass(frozen=True)
class GateVerdict:
    """All findings, the gravest first."""

    findings: Sequence[Finding]

    def state(self, tier: str | None = None) -> str:
        """The gravest state of a tier, or of all; absent if there is no other finding."""
        states = {finding.state for finding in self.findings if tier in (None, finding.tier)}
        return next((state for state in (*STATES[:-2], PASS) if state in states), ABSENT)

    def exit_code(self, treat_inconclusive: str = "neutral") -> int:
        """Return the command's exit code; it is never 0 if nothing was measured.

        >>> GateVerdict([]).exit_code()
        22
        """
        return {**CODES, INCONCLUSIVE: TREATED[treat_inconclusive]}.get(self.state(), errors.UNMEASURED)

    def tiers(self) -> list[str]:
        present = {finding.tier for finding in self.findings}
        return [tier for tier in TIERS if tier in present]

    def numbers(self, tier: str) -> Counter[str]:
        """How many findings of a tier are in each state."""
        return Counter(finding.state for finding in self.findings if finding.tier == tier)


def judge(evidence: Evidence) -> GateVerdict:
    """Return the verdict that follows from the evidence."""
    card = stored_card(evidence.question.card)
    samples: dict[str, list[Sample]] = {}
    for sample in evidence.of(Sample):
        samples.setdefault(sample.comparison, []).append(sample)
    accepted = bool(evidence.of(lines_of.Accepted))
    merges = evidence.of(lines_of.Merges)
    measured = {each.variant for each in merges if each.status != "skipped"}  # on a corpus that suits them
    findings = [
        *(
            merges_finding(each, card.known_wrong.get(each.variant))
            for each in merges
            if each.status != "skipped" or each.variant not in measured
        ),
        *(
            replace(finding, state=PASS, message=finding.message.partition(";")[0] + ACCEPTED)
            if accepted and "; --accept" in finding.message
            else finding
            for each in evidence.of(lines_of.Tallies)
            for finding in tally_findings(each)
        ),
        *(instructions_finding(card, each) for each in evidence.of(lines_of.Instructions)),
        *(time_finding(card, each, samples.get(each.comparison, [])) for each in evidence.of(lines_of.Timed)),
        *(Finding(each.tier, each.state, each.variant, each.reason) for each in evidence.of(lines_of.Note)),
    ]
    findings += [finding for tier in card.tiers for finding in tier_not_measured(tier, findings)]
    return GateVerdict(sorted(findings, key=lambda finding: STATES.index(finding.state)))


def tier_not_measured(tier: str, findings: Sequence[Finding]) -> Iterator[Finding]:
    """A finding of a requested tier without a result; the same code is one if anything else was measured."""
    own = [finding for finding in findings if finding.tier == tier]
    if any(finding.state != ABSENT or finding.variant == ALL for finding in own):
        return
    same_code = any(finding.message.endswith(SAME_CODE) for finding in own)
    state = ABSENT if same_code and any(finding.state != ABSENT for finding in findings) else UNMEASURED
    more = f" (and {count_text(len(own) - 1)} more)" if len(own) > 1 else ""
    why = f"{own[0].message}{more}" if own else "the card has no corpus for these variants"
    yield Finding(tier, state, ALL, f"{tier} was not measured: {why}")


def merges_finding(merges: lines_of.Merges, known_wrong: str | None = None) -> Finding:
    """One variant's merges on one corpus; an outside trainer that the card knows to be wrong fails nothing."""
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


def tally_findings(observed: lines_of.Tallies) -> Iterator[Finding]:
    """One variant's counts of work on one corpus against the snapshot."""
    name, corpus, counted, expected = observed.variant, observed.corpus, observed.tallies, observed.expected
    if expected is None and not counted:
        state, message = ABSENT, "the trainer counts nothing of its work"
    elif expected is None and observed.snapshot:
        state, message = DRIFT, "not in the snapshot of counts of work; --accept adds it"
    elif expected is None:
        state, message = ABSENT, "no snapshot of counts of work; --accept writes one"
    elif counted == expected:
        state, message = PASS, f"{counted_text(len(counted), 'count')} of work as in the snapshot"
    else:
        for tally in sorted({*expected, *counted}):
            before, after = expected.get(tally), counted.get(tally)
            if before != after:
                message = f"{name} on {corpus}, {tally}: {change_text(before, after)}; --accept accepts it"
                yield Finding(WORK, DRIFT, name, message, corpus)
        return
    yield Finding(WORK, state, name, f"{name} on {corpus}: {message}", corpus)


def instructions_finding(card: Card, counted: lines_of.Instructions) -> Finding:
    """Instructions of head against those of base, each counted in the same layouts of memory."""
    name = counted.variant
    if not counted.base or not counted.head:
        return Finding(WORK, counted.state, name, f"{name}, instructions: {counted.reason}")
    before, after, layouts = max(counted.base), min(counted.head), len(counted.head)
    share, most = relative_increase(counted.base, counted.head), card.work.instructions.most
    change = f"{count_text(before)} -> {count_text(after)} ({signed(share, 2)})"
    ranges = f", the maximum of base and the minimum of head in {layouts} layouts of memory" if layouts > 1 else ""
    message = f"{name}, instructions: {change}{ranges}; at most {signed(most)}"
    return Finding(WORK, REGRESSION if share > most else PASS, name, message)


def relative_increase(base: Sequence[int], head: Sequence[int]) -> float:
    """By which share head takes more than base in every layout of memory: its minimum against base's maximum.

    >>> round(relative_increase([1000, 1020], [1071, 1080]), 6)
    0.05
    """
    return min(head) / max(base) - 1


def time_finding(card: Card, timed: lines_of.Timed, samples: Sequence[Sample]) -> Finding:
    """One variant's times, unless a sample failed or made other merges."""
    subject = f"{timed.comparison} on {timed.corpus}"
    for sample in samples:
        is_head, where = sample.arm == HEAD, f"in block {sample.block} of {sample.stage}"
        if sample.status != "ok":
            message = f"{subject}: {sample.arm} was {sample.status} {where}: {sample.reason}"
            return Finding(TIME, UNMEASURED if is_head else ABSENT, timed.variant, message, timed.corpus)
        if sample.merges_sha256 != timed.merges_sha256:
            message = f"{subject}: {sample.arm} made other merges than the proved ones {where}"
            tier, state = (IDENTITY, MISMATCH) if is_head else (TIME, ABSENT)
            return Finding(tier, state, timed.variant, message, timed.corpus)
    first, fresh = (blocks_of(samples, stage) for stage in (TRIAGE, CONFIRM))
    decision = decide(card.time, first, fresh, timed.threads)
    return decision_finding(decision, timed, subject)


def decision_finding(decision: Decision, timed: lines_of.Timed, subject: str) -> Finding:
    """Return a decision in words."""
    state = INCONCLUSIVE if decision.state == ESCALATE else decision.state
    effect, memory = decision.effect, decision.memory
    clock = f", {effect.clock} time" if effect and decision.metric == "time" else ""
    message = f"{subject}{clock}: {decision.why}"
    if decision.metric == "memory" and memory is not None:
        message += f" ({signed(memory[0])}, {bytes_text(round(memory[1]))} more)"
    elif effect is not None and effect.blocks:
        message += f" ({effect_text(effect)})"
    details = {"effect": effect, "control": decision.control, "memory": memory}
    return Finding(TIME, state, timed.variant, message, timed.corpus, details)


def effect_text(effect: Comparison) -> str:
    """An effect with its interval and its blocks."""
    interval = ""
    if effect.low is not None and effect.high is not None:
        interval = f", between {signed(effect.low - 1)} and {signed(effect.high - 1)}"
    of = f" of {effect.blocks + effect.left_out}" if effect.left_out else ""
    slower = share_text(sum(ratio > 1 for ratio in effect.ratios) / len(effect.ratios))
    return f"{signed(effect.ratio - 1)}{interval}, slower in {slower} of {effect.blocks}{of} blocks"


def signed(share: float, decimals: int = 1) -> str:
    """
    >>> signed(0.0512), signed(-0.004)
    ('+5.1 %', '-0.4 %')
    """
    return f"{100 * share:+.{decimals}f} %"


# The verdict as text


def headline(verdict: GateVerdict) -> str:
    """Return the verdict in a few words, with how much was checked and which tiers were not measured."""
    passed = sum(finding.state == PASS for finding in verdict.findings)
    bad = sum(finding.is_bad for finding in verdict.findings)
    checks = (
        f"{count_text(passed)} of {count_text(passed + bad)} checks passed" if bad else counted_text(passed, "check")
    )
    whole = {reason_of(finding): finding.message for finding in verdict.findings if finding.variant == ALL}
    return "; ".join([f"gate: {HEADINGS[verdict.state()]}", checks, *whole.values()])


def reason_of(finding: Finding) -> str:
    return finding.message.partition(": ")[2] or finding.message


def lines(verdict: GateVerdict) -> list[str]:
    """Return the lines for a terminal: the headline, the tiers, then what did not pass, the gravest first."""
    tiers = []
    for tier in verdict.tiers():
        numbers = verdict.numbers(tier)
        names = {**HEADINGS, ABSENT: "not measured"}
        counts = [f"{count_text(numbers[state])} {names[state]}" for state in STATES if numbers[state]]
        tiers.append(f"  {tier:<9}{', '.join(counts)}")
    return [headline(verdict), *tiers, *(f"{state:<13}{message}" for state, message in listed(verdict))]


def listed(verdict: GateVerdict) -> list[tuple[str, str]]:
    """Return state and message of what did not pass, of variants absent from a tier, and of times that passed."""
    bad = [(finding.state, finding.message) for finding in verdict.findings if finding.is_bad]
    timed = [(PASS, each.message) for each in verdict.findings if (each.state, each.tier) == (PASS, TIME)]
    return [*bad, *((ABSENT, line) for line in absent_lines(verdict)), *timed]


def absent_lines(verdict: GateVerdict) -> list[str]:
    """Return one line for each reason to be absent, with the variants that have it."""
    variants: dict[str, dict[str, None]] = {}
    for finding in verdict.findings:
        if finding.state == ABSENT and finding.variant != ALL:
            variants.setdefault(reason_of(finding), {})[finding.variant] = None
    return [f"{', '.join(names)}: {reason}" for reason, names in variants.items()]


def markdown(verdict: GateVerdict, evidence: Evidence) -> str:
    """Return the summary of a pull request: the lines of the terminal, what was compared, and where."""
    sign = {PASS: "✅", INCONCLUSIVE: "❔", ABSENT: "❔"}.get(verdict.state(), "❌")
    first, *rest = lines(verdict)
    question = evidence.question
    facts = [question.environment.get("cpu"), question.environment.get("python"), question.started[:10]]
    sides = f"Base: {base_of(evidence) or 'none'}; head: {question.head}."
    text = [f"### {sign} {markdown_text(first)}", "", "```text", *rest, "```", ""]
    return "\n".join([*text, markdown_text(f"{sides} {', '.join(filter(None, facts))}")]) + "\n"


def base_of(evidence: Evidence) -> str | None:
    return next((base.described for base in evidence.of(lines_of.BaseChosen)), None)


def as_json(verdict: GateVerdict, evidence: Evidence, exit_code: int) -> dict[str, Any]:
    """Return the verdict with every number behind it, for programs; the samples are in the file that --replay reads."""
    return {
        "schema": SCHEMA,
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
