"""The texts of a verdict, for people and programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree

import msgspec

from harness.common.escape import markdown_text, terminal_text
from harness.common.printing import wrap
from harness.common.units import count_text, counted_text
from harness.gate.card import TIERS
from harness.gate.evidence import ACCEPTED, ALL, Evidence
from harness.gate.judge import SAME_CODE, STATES, GateVerdict

HEADINGS = {
    "mismatch": "wrong merges",
    "drift": "counts of work changed",
    "regression": "regression",
    "unmeasured": "could not measure",
    "inconclusive": "inconclusive",
    "absent": "measured nothing",
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
BLANK = "\N{NO-BREAK SPACE}"


def lines(verdict: GateVerdict) -> list[str]:
    """Return the lines for a terminal: the headline, the tiers, then what did not pass, the gravest
    first.

    Variants that are absent for the same reason, or unchanged, share a line. Times are shown also if
    they passed.
    """
    headline = dict.fromkeys([f"gate: {HEADINGS[verdict.state()]}", checks_text(verdict)])
    text = []
    shared: dict[tuple[str, str], dict[str, None]] = {}
    for finding in verdict.findings:
        if finding.variant == ALL:
            headline[finding.message] = None
        elif finding.state == "absent" or finding.reason == SAME_CODE:
            shared.setdefault((finding.state, finding.reason), {})[finding.variant] = None
        elif finding.state != "pass" or finding.tier == "time":
            text.append(f"{finding.state:<{INDENT}}{finding.message}")
        if finding.accepting:
            advice = f"if that is on purpose, commit in {ACCEPTED}:"
            text += [f"{'':<{INDENT}}{line}" for line in (advice, finding.accepting)]
    for (state, reason), variants in shared.items():
        text.append(f"{state:<{INDENT}}{', '.join(variants)}: {reason}")

    names = {**HEADINGS, "absent": "not measured"}
    tiers = []
    for tier in TIERS:
        found = [one.state for one in verdict.findings if one.tier == tier and one.variant != ALL]
        counts = [
            f"{count_text(found.count(state))} {names[state]}" for state in STATES if state in found
        ]
        if counts:
            tiers.append(f"  {tier:<9}{', '.join(counts)}")
    return ["; ".join(headline), *tiers, *text]


def checks_text(verdict: GateVerdict) -> str:
    """Return how many checks passed."""
    states = [finding.state for finding in verdict.findings if finding.state != "absent"]
    passed = states.count("pass")
    if passed == len(states):
        return counted_text(passed, "check")
    return f"{count_text(passed)} of {count_text(len(states))} checks passed"


def wrapped(lines: Iterable[str], width: int = WIDTH) -> str:
    """Break lines at this width, but not before a per cent sign."""
    text = "\n".join(lines).replace(" %", f"{BLANK}%")
    return wrap(text, width).replace(BLANK, " ")


def summary_of(verdict: GateVerdict, evidence: Evidence) -> str:
    """Return the summary of a pull request: the lines of the terminal, what was compared, and
    where.
    """
    sign = SIGNS.get(verdict.state(), "❌")
    first, *rest = lines(verdict)
    question, environment = evidence.question, evidence.run.environment
    facts = [environment.get("cpu"), environment.get("python"), evidence.run.run[:10]]
    sides = f"Base: {question.get('base', 'none')}; head: {question['head']}."
    text = [f"### {sign} {markdown_text(first)}", "", "```text", wrapped(rest), "```", ""]
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
        "base": evidence.question.get("base"),
        "head": evidence.question["head"],
        "started": evidence.run.run,
        "findings": findings,
        "card": evidence.question["card"],
        "environment": evidence.run.environment,
    }


def junit(verdict: GateVerdict) -> str:
    """Return the verdict as JUnit's XML, a test case for each finding."""
    suite = ElementTree.Element("testsuite", name="gate", tests=str(len(verdict.findings)))
    for finding in verdict.findings:
        name = finding.message.partition(": ")[0]
        case = ElementTree.SubElement(
            suite, "testcase", classname=finding.tier or "card", name=name
        )
        result = ElementTree.SubElement(case, ELEMENTS.get(finding.state, "failure"))
        result.text = terminal_text(finding.message)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode")
