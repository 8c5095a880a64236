"""The verdict for people and for programs: Markdown for a pull request, JSON with every number behind it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence, Set
from typing import Any

from harness.common.console import markdown_text, workflow_command
from harness.common.units import count_text, counted_text
from harness.gate import verdict
from harness.gate.evidence import Evidence
from harness.gate.verdict import ABSENT, PASS, Finding, Verdict

SCHEMA = 1
HEADINGS = {
    verdict.PASS: "passed",
    verdict.MISMATCH: "wrong merges",
    verdict.DRIFT: "counts of work changed",
    verdict.REGRESSION: "regression",
    verdict.UNMEASURED: "could not measure",
    verdict.INCONCLUSIVE: "inconclusive",
    verdict.ABSENT: "measured nothing",
}
NUMBERS = {2: "two", 3: "three"}
MOST_LISTED = 40
MOST_ABSENT = 12


def headline(conclusion: Verdict) -> str:
    """The verdict in a few words, with how much was looked at."""
    passed = sum(finding.state == PASS for finding in conclusion.findings)
    bad = sum(finding.state not in (PASS, ABSENT) for finding in conclusion.findings)
    checks = counted_text(passed, "check")
    counts = f"{count_text(passed)} of {count_text(passed + bad)} checks passed" if bad else checks
    missing = unmeasured_tiers(conclusion)
    told = [f"gate: {HEADINGS[conclusion.state()]}", counts, *without(conclusion, set(missing))]
    return "; ".join([*told, *([because(missing)] if missing else [])])


def unmeasured_tiers(conclusion: Verdict) -> dict[str, str]:
    """The tiers of which nothing was measured, each with the reasons."""
    missing = {}
    for tier in conclusion.tiers():
        of_tier = [finding for finding in conclusion.findings if finding.tier == tier]
        if all(finding.state == ABSENT for finding in of_tier):
            reasons = (finding.message.partition(": ")[2] or finding.message for finding in of_tier)
            first, *others = dict.fromkeys(reasons)
            missing[tier] = " and ".join([first, *others[:1]]) + (" and more" if others[1:] else "")
    return missing


def because(missing: Mapping[str, str]) -> str:
    """
    >>> because({"time": "there is no base"})
    'time was not measured, because there is no base'
    >>> because({"work": "there is no snapshot", "time": "there is no base"})
    'two tiers were not measured: work, because there is no snapshot; time, because there is no base'
    """
    if len(missing) == 1:
        ((tier, reason),) = missing.items()
        return f"{tier} was not measured, because {reason}"
    told = "; ".join(f"{tier}, because {reason}" for tier, reason in missing.items())
    return f"{NUMBERS[len(missing)]} tiers were not measured: {told}"


def without(conclusion: Verdict, tiers: Set[str]) -> list[str]:
    """Which parts of tiers were not measured, and why, but for some `tiers`; those of one reason together."""
    by_reason: dict[str, list[str]] = {}
    for finding in conclusion.findings:
        if finding.variant == verdict.ALL and finding.tier not in tiers:
            what, _, reason = finding.message.partition(": ")
            by_reason.setdefault(reason, []).append(f"{finding.tier} ({what})")
    return [f"{' and '.join(what)}: {reason}" for reason, what in by_reason.items()]


def lines(conclusion: Verdict) -> list[str]:
    """For a terminal: the headline, a line for each tier, then what did not pass, the gravest first."""
    said = [headline(conclusion)]
    for tier in conclusion.tiers():
        numbers = conclusion.numbers(tier)
        counts = [
            f"{count_text(numbers[state])} {HEADINGS[state] if state != ABSENT else 'not measured'}"
            for state in verdict.STATES
            if numbers[state]
        ]
        said.append(f"  {tier:<9}{', '.join(counts)}")
    return [*said, *(f"{finding.state:<13}{finding.message}" for finding in listed(conclusion))]


def listed(conclusion: Verdict) -> list[Finding]:
    """What did not pass, which variants are absent from a tier, a line for each reason, and the times that passed."""
    bad = [finding for finding in conclusion.findings if finding.state not in (PASS, ABSENT)]
    elsewhere = {(finding.tier, finding.variant) for finding in conclusion.findings if finding.state != ABSENT}
    absent = condensed(
        [
            finding
            for finding in conclusion.findings
            if finding.state == ABSENT
            and (finding.details or finding.metric or (finding.tier, finding.variant) not in elsewhere)
        ]
    )
    rest = [_more(bad[MOST_LISTED:])] if len(bad) > MOST_LISTED else []
    timed = [finding for finding in conclusion.findings if (finding.state, finding.tier) == (PASS, "time")]
    return [*bad[:MOST_LISTED], *rest, *absent, *timed[:MOST_LISTED]]


def _more(findings: Sequence[Finding]) -> Finding:
    return Finding("", findings[0].state, "", f"and {count_text(len(findings))} more, all in the JSON verdict")


def condensed(absent: Sequence[Finding]) -> list[Finding]:
    """One line for each reason, with the variants that have it."""
    by_reason: dict[str, list[Finding]] = {}
    for finding in absent:
        reason = finding.message.partition(": ")[2] or finding.message
        by_reason.setdefault(reason, []).append(finding)
    said = []
    for reason, findings in by_reason.items():
        names = list(dict.fromkeys(finding.variant for finding in findings))
        shown = ", ".join(names[:MOST_ABSENT]) + (
            f" and {len(names) - MOST_ABSENT} more" if len(names) > MOST_ABSENT else ""
        )
        message = reason if names == ["all"] else f"{shown}: {reason}"
        said.append(Finding(findings[0].tier, ABSENT, "", message))
    return said


def markdown(conclusion: Verdict, evidence: Evidence) -> str:
    """The summary of a pull request."""
    sign = {PASS: "✅", verdict.INCONCLUSIVE: "❔", ABSENT: "❔"}.get(conclusion.state(), "❌")
    said = [f"### {sign} {markdown_text(headline(conclusion))}", ""]
    said += ["| tier | passed | not passed | not measured |", "|---|---:|---:|---:|"]
    for tier in conclusion.tiers():
        numbers = conclusion.numbers(tier)
        bad = numbers.total() - numbers[PASS] - numbers[ABSENT]
        said.append(f"| {tier} | {numbers[PASS]} | {bad} | {numbers[ABSENT]} |")
    said.append("")
    said += [f"- **{finding.state}** {markdown_text(finding.message)}" for finding in listed(conclusion)]
    machine = evidence.head["environment"]
    base = next((each["described"] for each in evidence.of("base")), "none")
    base, head, cpu = map(markdown_text, (base, evidence.head["head"], machine["cpu"]))
    known = f"{machine['cores']} processors, {markdown_text(machine['python'])}, {evidence.head['started'][:10]}."
    said += ["", f"Base: {base}; head: {head}. {cpu}, {known}"]
    return "\n".join(said) + "\n"


def github_lines(conclusion: Verdict, how: str) -> list[str]:
    """What GitHub shows beside a change, a line for each finding that did not pass."""
    bad = [finding for finding in conclusion.findings if finding.state not in (PASS, ABSENT)]
    return [workflow_command(how, finding.message) for finding in bad[:MOST_LISTED]]


def as_json(conclusion: Verdict, evidence: Evidence, exit_code: int) -> dict[str, Any]:
    """Everything that a program may want to know; the samples stand in the file that --replay reads."""
    return {
        "schema": SCHEMA,
        "verdict": conclusion.state(),
        "exit_code": exit_code,
        "tiers": {tier: conclusion.state(tier) for tier in conclusion.tiers()},
        "base": next((each["described"] for each in evidence.of("base")), None),
        "head": evidence.head["head"],
        "started": evidence.head["started"],
        "findings": [dataclasses.asdict(finding) for finding in conclusion.findings],
        "card": evidence.head["card"],
        "environment": evidence.head["environment"],
    }
