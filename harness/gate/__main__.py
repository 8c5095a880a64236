"""python -m harness.gate: has a change made a trainer wrong, busier, slower or larger?

python -m harness.gate                                  this checkout against its base
python -m harness.gate heap flat --tiers identity,work  some of it
python -m harness.gate my_module:train                  your trainer, in your checkout
python -m harness.gate my_module:train --card quick     the same within two minutes
python -m harness.gate my_module:train --workflow bpe-harness    the CI job for pull requests
python -m harness.gate my_module:train --base old/bin/python --head new/bin/python
python -m harness.gate heap_opt --against-variant heap  one variant against another
python -m harness.gate --accept                         accept changed counts of work
python -m harness.gate --replay results/local/gate      the verdict of a run, again
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.common.console import Parser, json_text, tell
from harness.common.errors import OK, UNMEASURED, Refusal, guarded, reason
from harness.common.files import write_whole
from harness.common.registry import unknown
from harness.gate.evidence import SUMMARY, VERDICT, Evidence, read_evidence
from harness.gate.judge import (
    ABSENT,
    ACCEPTED,
    PASS,
    TREATED,
    GateVerdict,
    as_json,
    judge,
    lines,
    markdown,
)
from harness.gate.observe import observe
from harness.gate.rule import DEFAULT_CARD, TIERS, stored_card

EXIT_CODES = """exit code:
  0   something was measured, and nothing is worse
  20  slower, larger, or more instructions, confirmed
  21  wrong merges, or counts of work that are not in the snapshot
  22  a requested tier or variant could not be measured, or nothing was
  23  inconclusive: the machine is too noisy to tell (see --treat-inconclusive)
  2   usage; 130 interrupted
"""
OUTPUT = Path("results", "local", "gate")
REPORT = ("output", "json", "summary", "treat_inconclusive")
HEEDED = {
    "workflow": ("targets",),
    "replay": ("overrides", "advisory", *REPORT),
    "accept": ("targets", "card", "overrides", "concurrent", *REPORT),
}
"""The options that have an effect with the option of a mode."""
JOB = Path(__file__).with_name("workflow.yaml")
INTERRUPTED = "what was observed until then is in the output folder"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    options = _parser().parse_args(arguments)
    return guarded(lambda: run(options), INTERRUPTED)


def run(options: argparse.Namespace) -> int:
    """Measure, replay, or print a CI job. Raises Refusal for options that contradict each other."""
    refuse_contradictions(options)
    if options.summary is not None:
        append(options.summary, "")  # a file that cannot be written is refused before anything is measured
    if options.workflow is not None:
        print(workflow(options.targets, options.workflow), end="")  # noqa: T201
        return OK
    if options.replay is not None:
        evidence = read_evidence(options.replay)
        evidence.question.card = msgspec.to_builtins(stored_card(evidence.question.card, options.overrides))
    else:
        evidence = observe(options)
    verdict = judge(evidence)
    if options.accept:
        accepted = [finding.message for finding in verdict.findings if finding.message.endswith(ACCEPTED)]
        tell("\n".join(accepted) or "the snapshot is unchanged")
    return report(verdict, evidence, options)


def report(verdict: GateVerdict, evidence: Evidence, options: argparse.Namespace) -> int:
    """Print the verdict, write its files, and return the exit code."""
    code = verdict.exit_code(options.treat_inconclusive, options.advisory)
    values = as_json(verdict, evidence, code)
    if options.json:
        print(json_text(values))  # noqa: T201
    else:
        tell("\n".join(lines(verdict)))
        if options.advisory and verdict.state() not in (PASS, ABSENT):
            tell("advisory: the exit code is 0")
    if options.replay is None or options.output != OUTPUT:
        content = json.dumps(values, ensure_ascii=False, indent=1) + "\n"
        write_whole(options.output / VERDICT, content.encode(), exit_code=UNMEASURED)
        write_whole(options.output / SUMMARY, markdown(verdict, evidence).encode(), exit_code=UNMEASURED)
    if options.summary is not None:
        append(options.summary, markdown(verdict, evidence))
    return code


def append(path: Path, text: str) -> None:
    try:
        with path.open("a") as file:
            file.write(text)
    except OSError as error:
        raise Refusal(f"cannot write {path} ({reason(error)}); choose another file with --summary") from error


def refuse_contradictions(options: argparse.Namespace) -> None:
    if options.head is not None and options.base is None:
        raise Refusal("--head is the Python of one environment; use --base for the one to compare it with")
    for tier in [] if options.tiers is None else options.tiers.split(","):
        if tier not in TIERS:
            raise Refusal(unknown("tier", tier, TIERS))
    if options.no_base and "time" in (options.tiers or ""):
        raise Refusal("--no-base leaves nothing to compare times with; remove it, or time from --tiers")
    defaults = vars(_parser().parse_args([]))
    for mode, heeded in HEEDED.items():
        if getattr(options, mode) == defaults[mode]:
            continue
        for name, value in vars(options).items():
            if value != defaults[name] and name not in (mode, *heeded):
                option = {"targets": "a target", "overrides": "--set"}.get(name, f"--{name.replace('_', '-')}")
                raise Refusal(f"{option} has no effect with --{mode}; remove it")


def workflow(targets: Sequence[str], requirement: str) -> str:
    """Return a GitHub Actions workflow that gates one trainer, package.module:function, and what pip installs in it."""
    if len(targets) != 1 or ":" not in targets[0]:
        raise Refusal("--workflow is for one trainer of yours; pass package.module:function")
    return JOB.read_text().replace("TARGET", targets[0]).replace("REQUIREMENT", requirement)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m harness.gate",
        description=(__doc__ or "").partition("\n")[0].partition(": ")[2].capitalize(),
        epilog="examples:\n" + (__doc__ or "").partition("\n\n")[2] + "\n" + EXIT_CODES,
    )
    add = parser.add_argument
    add("targets", nargs="*", metavar="target", help="variant, tag or package.module:function (default: the card's)")
    add("--card", default=DEFAULT_CARD, metavar="NAME|FILE", help="of conf/gate, or a file (default: %(default)s)")
    add("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="of the card")
    add("--tiers", metavar="A,B", help=f"only these of {','.join(TIERS)}")
    base = parser.add_mutually_exclusive_group().add_argument
    base("--against", metavar="COMMIT", help="the base is where HEAD departs from this (default: the main branch)")
    base("--against-variant", metavar="NAME", help="the base is another variant, in the same code")
    base("--base", metavar="PYTHON", help="the base is what this environment has installed")
    base("--no-base", action="store_true", help="measure only what needs no base, as for a first commit")
    add("--head", metavar="PYTHON", help="with --base: the environment that is gated (default: this one)")
    add("--accept", action="store_true", help="write the measured counts of work into the snapshot")
    add("--advisory", action="store_true", help="report everything, and exit with 0")
    add("--treat-inconclusive", default="neutral", choices=list(TREATED), help="as 0, 20 or 23 (default: %(default)s)")
    add("--replay", type=Path, metavar="FILE", help="judge stored samples again, without measuring")
    add("--output", type=Path, default=OUTPUT, metavar="FOLDER", help="of evidence (default: %(default)s)")
    add("--workflow", metavar="REQUIREMENT", help="print a CI job that installs this and gates a trainer of yours")
    add("--json", action="store_true", help="print the verdict as one JSON object")
    add("--summary", type=Path, metavar="FILE", help="append a Markdown summary, as for $GITHUB_STEP_SUMMARY")
    add("--concurrent", action="store_true", help="measure although another run is being timed on this machine")
    return parser


if __name__ == "__main__":
    sys.exit(main())
