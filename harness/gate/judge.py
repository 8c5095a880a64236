"""The verdict: findings from a gate's evidence, the exit code, and the texts for people and programs.

`judge` is a pure function of the evidence, so `--replay` gives the same verdict again.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.common import errors
from harness.common.console import markdown_text, workflow_command
from harness.common.units import bytes_text, count_text, counted_text, share_text
from harness.gate import rule
from harness.gate.evidence import CONFIRM, HEAD, TRIAGE, Evidence, Observation, blocks_of, change_text
from harness.gate.rule import TIERS, Block, Card, Decision, Effect, decide, slower_phase, stored_card
from harness.proof import IDENTICAL, UP_TO_TIES, WRONG

PASS, MISMATCH, DRIFT, REGRESSION = "pass", "mismatch", "drift", "regression"
UNMEASURED, INCONCLUSIVE, ABSENT = "unmeasured", "inconclusive", "absent"
STATES = (MISMATCH, DRIFT, REGRESSION, UNMEASURED, INCONCLUSIVE, ABSENT, PASS)
"""The gravest first. `absent` cannot run here, or has nothing to be compared with: neither good nor bad."""
CODES = {
    MISMATCH: errors.MISMATCH,
    DRIFT: errors.MISMATCH,
    REGRESSION: errors.REGRESSION,
    UNMEASURED: errors.UNMEASURED,
    INCONCLUSIVE: errors.INCONCLUSIVE,
}
TREATED = {"pass": errors.OK, "fail": errors.REGRESSION, "neutral": errors.INCONCLUSIVE}
IDENTITY, WORK, TIME = TIERS
ALL = "all"
"""In place of a variant: the finding is about a whole tier."""
PROVED = (IDENTICAL, UP_TO_TIES)
SAME_CODE = "the same code in base and head"
WHOLE_CALL = "whole call"
"""The phase of a tally that a trainer reports at its end, as compiled ones do."""
SCHEMA = 1
HEADINGS = {
    PASS: "passed",
    MISMATCH: "wrong merges",
    DRIFT: "counts of work changed",
    REGRESSION: "regression",
    UNMEASURED: "could not measure",
    INCONCLUSIVE: "inconclusive",
    ABSENT: "measured nothing",
}
MOST_LISTED = 40
MOST_NAMES = 12


@dataclass(frozen=True)
class Finding:
    """One thing that was checked: of which variant, corpus and phase, and by how much it changed."""

    tier: str
    state: str
    variant: str
    message: str
    corpus: str | None = None
    phase: str | None = None
    metric: str | None = None
    before: float | None = None
    after: float | None = None
    share: float | None = None
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

    def exit_code(self, treat_inconclusive: str = "neutral", advisory: bool = False) -> int:
        """The command's exit code; it is never 0 if nothing was measured, except with `advisory`.

        >>> GateVerdict([]).exit_code(), GateVerdict([]).exit_code(advisory=True)
        (22, 0)
        """
        state = self.state()
        if advisory or state == PASS:
            return errors.OK
        if state == ABSENT:
            return errors.UNMEASURED
        return TREATED[treat_inconclusive] if state == INCONCLUSIVE else CODES[state]

    def tiers(self) -> list[str]:
        present = {finding.tier for finding in self.findings}
        return [tier for tier in TIERS if tier in present]

    def numbers(self, tier: str) -> Counter[str]:
        """How many findings of a tier are in each state."""
        return Counter(finding.state for finding in self.findings if finding.tier == tier)


def judge(evidence: Evidence) -> GateVerdict:
    """Return the verdict that follows from the evidence."""
    card = stored_card(evidence.head)
    accepted = bool(evidence.of("accepted"))
    samples: dict[str, list[Observation]] = {}
    for sample in evidence.of("sample"):
        samples.setdefault(sample["comparison"], []).append(sample)
    findings = [
        *(merges_finding(each, card.known_wrong.get(each["variant"])) for each in evidence.of("identity")),
        *(finding for each in evidence.of("tallies") for finding in tally_findings(each, accepted)),
        *(instructions_finding(card, each) for each in evidence.of("instructions")),
        *(time_finding(card, each, samples.get(each["comparison"], [])) for each in evidence.of("comparison")),
        *(note_finding(each) for each in evidence.of("note")),
    ]
    excused = (WORK, TIME) if evidence.head.get("no_base") else ()
    missing = [tier for tier in card.tiers if tier not in excused and not is_measured(tier, findings)]
    findings += [tier_not_measured(tier, findings) for tier in missing]
    return GateVerdict(sorted(findings, key=lambda finding: STATES.index(finding.state)))


def is_measured(tier: str, findings: Sequence[Finding]) -> bool:
    """Whether a requested tier has a result; the same code in base and head is one if anything else was measured."""
    states = {finding.state for finding in findings if finding.tier == tier}
    same_code = any(finding.tier == tier and finding.message.endswith(SAME_CODE) for finding in findings)
    elsewhere = any(finding.state != ABSENT for finding in findings)
    return bool(states - {ABSENT}) or (same_code and elsewhere)


def tier_not_measured(tier: str, findings: Sequence[Finding]) -> Finding:
    reasons = [finding.message for finding in findings if finding.tier == tier]
    more = f" (and {count_text(len(reasons) - 1)} more)" if len(reasons) > 1 else ""
    why = f"{reasons[0]}{more}" if reasons else "the card has no corpus for these variants"
    return Finding(tier, UNMEASURED, ALL, f"{tier} was not measured: {why}")


def note_finding(note: Observation) -> Finding:
    """Something that was not measured, with the reason."""
    return Finding(note["tier"], note["state"], note["variant"], note["reason"], note.get("corpus"))


def merges_finding(observation: Observation, known_wrong: str | None = None) -> Finding:
    """One variant's merges on one corpus; an outside trainer that the card knows to be wrong fails nothing."""
    name, corpus = observation["variant"], observation["corpus"]
    identity = observation["identity"] or {}

    def finding(state: str, message: str, **details: str) -> Finding:
        return Finding(IDENTITY, state, name, f"{name} on {corpus}: {message}", corpus, details=details or None)

    if observation["status"] == "skipped":
        return finding(ABSENT, observation["reason"])
    if observation["status"] != "ok":
        return finding(UNMEASURED, f"{observation['status']}: {observation['reason']}")
    if identity["kind"] == WRONG:
        reason = identity["reason"] or "its merges are wrong"
        if known_wrong is not None:
            return finding(ABSENT, f"{reason}; known: {known_wrong}", known=known_wrong)
        return finding(MISMATCH, reason)
    if identity["kind"] not in PROVED:
        return finding(UNMEASURED, f"unproved, {identity['reason'] or observation['reason']}")
    return finding(PASS, f"{count_text(observation['merges'])} merges are right")


def tally_findings(observation: Observation, accepted: bool = False) -> Iterator[Finding]:
    """One variant's counts of work on one corpus against the snapshot, unless they were accepted into it."""
    name, corpus = observation["variant"], observation["corpus"]
    counted, expected = observation["tallies"], observation["expected"]

    def finding(state: str, message: str) -> Finding:
        return Finding(WORK, state, name, f"{name} on {corpus}: {message}", corpus)

    if accepted:
        yield finding(PASS, "counts of work are accepted")
    elif counted is None:
        message = f"{name}: in the snapshot, but there is no such variant; --accept removes it"
        yield Finding(WORK, DRIFT, name, message)
    elif expected is None and not counted:
        yield finding(ABSENT, "the trainer counts nothing of its work")
    elif expected is None and observation["snapshot"]:
        yield finding(DRIFT, "not in the snapshot of counts of work; --accept adds it")
    elif expected is None:
        yield finding(ABSENT, "there is no snapshot of counts of work; --accept writes one")
    elif observation.get("other_corpus"):
        yield finding(DRIFT, "the snapshot was counted on another corpus; --accept replaces its counts")
    elif counted == expected:
        yield finding(PASS, f"{counted_text(len(counted), 'count')} of work as in the snapshot")
    else:
        for tally in sorted({*counted, *expected}):
            if counted.get(tally) != expected.get(tally):
                yield drift(name, corpus, tally, expected.get(tally), counted.get(tally))


def drift(name: str, corpus: str, tally: str, before: int | None, after: int | None) -> Finding:
    """One tally that differs from the snapshot."""
    phase, _, metric = tally.rpartition("/")
    phase = phase or WHOLE_CALL
    share = after / before - 1 if before and after is not None else None
    change = change_text(before, after)
    message = f"{name} on {corpus}, phase {phase}, tally {metric}: {change}; --accept accepts it"
    return Finding(WORK, DRIFT, name, message, corpus, phase, metric, before, after, share)


def instructions_finding(card: Card, observation: Observation) -> Finding:
    """Instructions of head against those of base, each counted in the same layouts of memory."""
    name = observation["variant"]
    if not observation["base"] or not observation["head"]:
        message = f"{name}, instructions: {observation['reason']}"
        return Finding(WORK, observation["state"], name, message, metric="instructions")
    before, after, layouts = max(observation["base"]), min(observation["head"]), len(observation["head"])
    share, most = relative_increase(observation["base"], observation["head"]), card.work.instructions.most
    change = f"{count_text(before)} -> {count_text(after)} ({signed(share, 2)})"
    ranges = f", the maximum of base and the minimum of head in {layouts} layouts of memory" if layouts > 1 else ""
    message = f"{name}, {WHOLE_CALL}, instructions: {change}{ranges}; at most {signed(most)}"
    state = REGRESSION if share > most else PASS
    return Finding(WORK, state, name, message, None, WHOLE_CALL, "instructions", before, after, share)


def relative_increase(base: Sequence[int], head: Sequence[int]) -> float:
    """By which share head takes more than base in every layout of memory: its minimum against base's maximum.

    >>> round(relative_increase([1000, 1020], [1071, 1080]), 6)
    0.05
    """
    return min(head) / max(base) - 1


def time_finding(card: Card, comparison: Observation, samples: Sequence[Observation]) -> Finding:
    """One variant's times, unless a sample failed or made other merges."""
    name, corpus, threads = comparison["variant"], comparison["corpus"], comparison["threads"]
    subject = f"{comparison['comparison']} on {corpus}"
    for sample in samples:
        arm, where = sample["arm"], f"in block {sample['block']} of {sample['stage']}"
        if sample["status"] != "ok":
            message = f"{subject}: {arm} was {sample['status']} {where}: {sample['reason']}"
            return Finding(TIME, UNMEASURED if arm == HEAD else ABSENT, name, message, corpus)
        if sample["merges_sha256"] != comparison["merges_sha256"]:
            message = f"{subject}: {arm} made other merges than the proved ones {where}"
            tier, state = (IDENTITY, MISMATCH) if arm == HEAD else (TIME, ABSENT)
            return Finding(tier, state, name, message, corpus)
    first, fresh = (blocks_of(samples, stage, threads) for stage in (TRIAGE, CONFIRM))
    return decision_finding(decide(card.time, first, fresh), name, subject, corpus, fresh or first)


def decision_finding(decision: Decision, name: str, subject: str, corpus: str, blocks: Sequence[Block]) -> Finding:
    """A decision in words; a regression names the phase that grew most."""
    state = INCONCLUSIVE if decision.state == rule.ESCALATE else decision.state
    effect, phase = decision.effect, slower_phase(blocks)
    effects = {"effect": effect, "control": decision.control}
    details = {name: value and vars(value) for name, value in effects.items()} | {"memory": decision.memory}
    share = effect.share if effect else None
    if decision.metric == "memory" and decision.memory is not None:
        share, more = decision.memory
        message = f"{subject}, {WHOLE_CALL}, peak of memory: {signed(share)} ({bytes_text(round(more))} more)"
        return Finding(TIME, state, name, message, corpus, WHOLE_CALL, "peak_rss_bytes", share=share, details=details)
    metric = "seconds" if effect is None else f"{effect.clock} time"
    if state != REGRESSION or effect is None:
        measured = "" if effect is None else f" ({effect_text(effect)})"
        message = f"{subject}, {metric}: {decision.why}{measured}"
        return Finding(TIME, state, name, message, corpus, metric=metric, share=share, details=details)
    where = f"phase {phase[0]}" if phase else "no single phase"
    grown = f"; {where} {1000 * phase[1]:.1f} -> {1000 * phase[2]:.1f} ms" if phase else ""
    message = f"{subject}, {where}, {metric}: {effect_text(effect)}{grown}"
    return Finding(TIME, state, name, message, corpus, phase and phase[0], metric, share=share, details=details)


def effect_text(effect: Effect) -> str:
    """An effect with its interval and its blocks."""
    interval = f", between {signed(effect.low)} and {signed(effect.high)}" if effect.low is not None else ""
    of = "" if effect.blocks == effect.of else f" of {effect.of}"
    return f"{signed(effect.share)}{interval}, slower in {share_text(effect.slower)} of {effect.blocks}{of} blocks"


def signed(share: float | None, decimals: int = 1) -> str:
    """
    >>> signed(0.0512), signed(-0.004), signed(None)
    ('+5.1 %', '-0.4 %', 'unknown')
    """
    return "unknown" if share is None else f"{100 * share:+.{decimals}f} %"


# The verdict as text


def headline(verdict: GateVerdict) -> str:
    """The verdict in a few words, with how much was checked and what was not."""
    passed = sum(finding.state == PASS for finding in verdict.findings)
    bad = sum(finding.is_bad for finding in verdict.findings)
    checks = (
        f"{count_text(passed)} of {count_text(passed + bad)} checks passed" if bad else counted_text(passed, "check")
    )
    missing = tiers_without_results(verdict)
    by_reason: dict[str, list[str]] = {}
    for finding in verdict.findings:
        if finding.variant == ALL and finding.tier not in missing:
            what, _, reason = finding.message.partition(": ")
            by_reason.setdefault(reason, []).append(what)
    notes = [f"{' and '.join(what)}: {reason}" for reason, what in by_reason.items()]
    notes += [f"{tier} was not measured: {reason}" for tier, reason in missing.items()]
    return "; ".join([f"gate: {HEADINGS[verdict.state()]}", checks, *notes])


def tiers_without_results(verdict: GateVerdict) -> dict[str, str]:
    """The tiers of which nothing was measured, each with up to two reasons."""
    missing = {}
    for tier in verdict.tiers():
        findings = [finding for finding in verdict.findings if finding.tier == tier]
        if all(finding.state == ABSENT for finding in findings):
            first, *others = dict.fromkeys(reason_of(finding) for finding in findings)
            missing[tier] = "; ".join([first, *others[:1]]) + ("; and more" if others[1:] else "")
    return missing


def reason_of(finding: Finding) -> str:
    return finding.message.partition(": ")[2] or finding.message


def lines(verdict: GateVerdict) -> list[str]:
    """For a terminal: the headline, a line for each tier, then what did not pass, the gravest first."""
    tiers = []
    for tier in verdict.tiers():
        numbers = verdict.numbers(tier)
        names = {**HEADINGS, ABSENT: "not measured"}
        counts = [f"{count_text(numbers[state])} {names[state]}" for state in STATES if numbers[state]]
        tiers.append(f"  {tier:<9}{', '.join(counts)}")
    return [headline(verdict), *tiers, *(f"{each.state:<13}{each.message}" for each in listed(verdict))]


def listed(verdict: GateVerdict) -> list[Finding]:
    """What did not pass, the variants that are absent from a tier, and the times that passed."""
    bad = [finding for finding in verdict.findings if finding.is_bad]
    measured = {(finding.tier, finding.variant) for finding in verdict.findings if finding.state != ABSENT}
    absent = [
        finding
        for finding in verdict.findings
        if finding.state == ABSENT
        and (finding.details or finding.metric or (finding.tier, finding.variant) not in measured)
    ]
    more = f"and {count_text(len(bad) - MOST_LISTED)} more, all in the JSON verdict"
    rest = [Finding("", bad[MOST_LISTED].state, "", more)] if bad[MOST_LISTED:] else []
    timed = [finding for finding in verdict.findings if (finding.state, finding.tier) == (PASS, TIME)]
    return [*bad[:MOST_LISTED], *rest, *condensed(absent), *timed[:MOST_LISTED]]


def condensed(absent: Sequence[Finding]) -> list[Finding]:
    """One finding for each reason, with the variants that have it."""
    variants: dict[str, dict[str, None]] = {}
    for finding in absent:
        variants.setdefault(reason_of(finding), {})[finding.variant] = None
    merged = []
    for reason, names in variants.items():
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        subject = "" if list(names) == [ALL] else f"{', '.join(list(names)[:MOST_NAMES])}{more}: "
        merged.append(Finding("", ABSENT, "", f"{subject}{reason}"))
    return merged


def markdown(verdict: GateVerdict, evidence: Evidence) -> str:
    """The summary of a pull request."""
    sign = {PASS: "✅", INCONCLUSIVE: "❔", ABSENT: "❔"}.get(verdict.state(), "❌")
    text = [f"### {sign} {markdown_text(headline(verdict))}", ""]
    text += ["| tier | passed | not passed | not measured |", "|---|---:|---:|---:|"]
    for tier in verdict.tiers():
        numbers = verdict.numbers(tier)
        bad = numbers.total() - numbers[PASS] - numbers[ABSENT]
        text.append(f"| {tier} | {numbers[PASS]} | {bad} | {numbers[ABSENT]} |")
    text += ["", *(f"- **{finding.state}** {markdown_text(finding.message)}" for finding in listed(verdict))]
    machine = evidence.head.get("environment") or {}
    cores = f"{machine['cores']} processors" if "cores" in machine else ""
    facts = [machine.get("cpu"), cores, machine.get("python"), str(evidence.head.get("started", ""))[:10]]
    sides = f"Base: {base_of(evidence) or 'none'}; head: {evidence.head.get('head')}."
    text += ["", markdown_text(f"{sides} {', '.join(str(fact) for fact in facts if fact)}")]
    return "\n".join(text) + "\n"


def base_of(evidence: Evidence) -> str | None:
    return next((base["described"] for base in evidence.of("base")), None)


def github_lines(verdict: GateVerdict, level: str) -> list[str]:
    """A line for each finding that did not pass, which GitHub shows beside the change."""
    bad = [finding for finding in verdict.findings if finding.is_bad]
    return [workflow_command(level, finding.message) for finding in bad[:MOST_LISTED]]


def as_json(verdict: GateVerdict, evidence: Evidence, exit_code: int) -> dict[str, Any]:
    """The verdict with every number behind it, for programs; the samples are in the file that --replay reads."""
    return {
        "schema": SCHEMA,
        "verdict": verdict.state(),
        "exit_code": exit_code,
        "tiers": {tier: verdict.state(tier) for tier in verdict.tiers()},
        "base": base_of(evidence),
        "head": evidence.head.get("head"),
        "started": evidence.head.get("started"),
        "findings": [dataclasses.asdict(finding) for finding in verdict.findings],
        "card": evidence.head.get("card"),
        "environment": evidence.head.get("environment"),
    }
