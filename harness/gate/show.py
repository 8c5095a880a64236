"""The texts of a verdict, for people and programs."""

from __future__ import annotations

from collections import Counter
from typing import Any
from xml.etree import ElementTree

import msgspec

from harness.common.printing import markdown_text, terminal_text, wrap
from harness.common.units import count_text, counted_text
from harness.gate.card import TIERS
from harness.gate.evidence import ACCEPTED, ALL, Evidence
from harness.gate.judge import SAME_CODE, GateVerdict

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
