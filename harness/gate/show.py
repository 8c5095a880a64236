"""The texts of a verdict, for people and programs."""

from __future__ import annotations

import textwrap
from typing import Any
from xml.etree import ElementTree

import msgspec

from harness.common.escape import markdown_text, terminal_text
from harness.common.units import count_text, counted_text
from harness.gate.evidence import (
    ABSENT,
    ACCEPTED,
    ALL,
    INCONCLUSIVE,
    PASS,
    TIME,
    UNMEASURED,
    Evidence,
)
from harness.gate.judge import HEADINGS, SAME_CODE, STATES, GateVerdict


def lines(verdict: GateVerdict) -> list[str]:
    """Return the lines for a terminal: the headline, the tiers, then what did not pass, the gravest
    first.

    Variants that are absent for the same reason, or unchanged, share a line. Times are shown also if
    they passed.
    """
    passed = [finding for finding in verdict.findings if finding.state == PASS]
    bad = [finding for finding in verdict.findings if finding.state not in (PASS, ABSENT)]
    of_all: dict[str, str] = {}
    alike: dict[tuple[str, str], dict[str, None]] = {}
    for finding in verdict.findings:
        if finding.variant == ALL:
            of_all[finding.reason] = finding.message
        elif finding.state == ABSENT or finding.reason == SAME_CODE:
            alike.setdefault((finding.state, finding.reason), {})[finding.variant] = None

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
        if finding.variant == ALL:
            continue  # the headline has it
        text.append(f"{finding.state:<13}{finding.message}")
        if finding.advice:
            advice, _, line = finding.advice.partition(": ")
            text += [f"{'':<13}{advice}:", f"{'':<13}{line}"]  # a line to copy stays whole
    for (state, reason), variants in alike.items():
        text.append(f"{state:<13}{', '.join(variants)}: {reason}")
    for finding in passed:
        if finding.tier == TIME and finding.reason != SAME_CODE:
            text.append(f"{PASS:<13}{finding.message}")
    return text


def wrapped(line: str) -> str:
    """Break a line at 100 columns; what belongs to a finding stays below it."""
    indent = " " * 13
    return "\n".join(
        textwrap.wrap(
            line, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
    )


def summary_of(verdict: GateVerdict, evidence: Evidence) -> str:
    """Return the summary of a pull request: the lines of the terminal, what was compared, and
    where.
    """
    sign = {PASS: "✅", ACCEPTED: "✅", INCONCLUSIVE: "❔", ABSENT: "❔"}.get(verdict.state(), "❌")
    first, *rest = lines(verdict)
    question, environment = evidence.question, evidence.run.environment
    facts = [environment.get("cpu"), environment.get("python"), evidence.run.run[:10]]
    sides = f"Base: {question.get('base', 'none')}; head: {question['head']}."
    text = [f"### {sign} {markdown_text(first)}", "", "```text", *map(wrapped, rest), "```", ""]
    return "\n".join([*text, markdown_text(f"{sides} {', '.join(filter(None, facts))}")]) + "\n"


def as_json(verdict: GateVerdict, evidence: Evidence, exit_code: int) -> dict[str, Any]:
    """Return the verdict with every number behind it, for programs; the samples are in the file
    that --replay reads.
    """
    return {
        "schema": 1,
        "verdict": verdict.state(),
        "exit_code": exit_code,
        "tiers": {tier: verdict.state(tier) for tier in verdict.tiers()},
        "base": evidence.question.get("base"),
        "head": evidence.question["head"],
        "started": evidence.run.run,
        "findings": msgspec.to_builtins(verdict.findings),
        "card": evidence.question["card"],
        "environment": evidence.run.environment,
    }


def junit(verdict: GateVerdict) -> str:
    """Return the verdict as JUnit's XML, a test case for each finding."""
    suite = ElementTree.Element("testsuite", name="gate", tests=str(len(verdict.findings)))
    for finding in verdict.findings:
        name = " on ".join(filter(None, (finding.variant, finding.corpus)))
        case = ElementTree.SubElement(suite, "testcase", classname=finding.tier, name=name)
        message = terminal_text(finding.message)
        kind = {UNMEASURED: "error", ABSENT: "skipped", INCONCLUSIVE: "skipped"}
        if finding.state in (PASS, ACCEPTED):
            ElementTree.SubElement(case, "system-out").text = message
        else:
            element = kind.get(finding.state, "failure")
            ElementTree.SubElement(case, element, type=finding.state, message=message)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode")
