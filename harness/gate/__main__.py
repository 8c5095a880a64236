"""python -m harness.gate: has a change made a trainer wrong, busier, slower or larger?

python -m harness.gate                                  this checkout against its base
python -m harness.gate heap flat --tiers identity,work  some of it
python -m harness.gate my_module:train                  your trainer, in your checkout
python -m harness.gate my_module:train --card quick     the same within two minutes
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

from harness.common.console import Parser, tell
from harness.common.errors import UNMEASURED, Refusal, guarded
from harness.common.files import write_whole
from harness.gate.evidence import SUMMARY, VERDICT, Evidence, read_evidence
from harness.gate.judge import ACCEPTED, TREATED, GateVerdict, as_json, judge, lines, markdown
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
UNUSED = {"replay": ("targets", "card", "tiers", "concurrent"), "accept": ("tiers",)}
"""The options without an effect in each mode."""
INTERRUPTED = "what was observed until then is in the output folder"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    options = _parser().parse_args(arguments)
    return guarded(lambda: run(options), INTERRUPTED)


def run(options: argparse.Namespace) -> int:
    """Measure or replay, and report the verdict. Raises Refusal for options that contradict each other."""
    refuse_unused(options)
    if options.replay is not None:
        evidence = read_evidence(options.replay)
        evidence.question.card = msgspec.to_builtins(stored_card(evidence.question.card, options.overrides))
    else:
        evidence = observe(options)
    verdict = judge(evidence)
    if options.accept:
        accepted = [finding.message for finding in verdict.findings if finding.message.endswith(ACCEPTED)]
        tell("\n".join(accepted) or "the snapshot is unchanged")
    tell("\n".join(lines(verdict)))
    code = verdict.exit_code(options.treat_inconclusive)
    if options.replay is None or options.output != OUTPUT:
        store(verdict, evidence, code, options.output)
    return code


def store(verdict: GateVerdict, evidence: Evidence, code: int, folder: Path) -> None:
    content = json.dumps(as_json(verdict, evidence, code), ensure_ascii=False, indent=1) + "\n"
    write_whole(folder / VERDICT, content.encode(), exit_code=UNMEASURED)
    write_whole(folder / SUMMARY, markdown(verdict, evidence).encode(), exit_code=UNMEASURED)


def refuse_unused(options: argparse.Namespace) -> None:
    defaults = _parser().parse_args([])
    for mode, names in UNUSED.items():
        for name in names if getattr(options, mode) else ():
            if getattr(options, name) != getattr(defaults, name):
                option = "a target" if name == "targets" else f"--{name}"
                raise Refusal(f"{option} has no effect with --{mode}; remove it")


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
    mode = parser.add_mutually_exclusive_group().add_argument
    mode("--against", metavar="COMMIT", help="the base is where HEAD departs from this (default: the main branch)")
    mode("--against-variant", metavar="NAME", help="the base is another variant, in the same code")
    mode("--no-base", action="store_true", help="measure only what needs no base, as for a first commit")
    mode("--accept", action="store_true", help="write the measured counts of work into the snapshot")
    mode("--replay", type=Path, metavar="FILE", help="judge stored samples again, without measuring")
    add("--treat-inconclusive", default="neutral", choices=list(TREATED), help="as 0, 20 or 23 (default: %(default)s)")
    add("--output", type=Path, default=OUTPUT, metavar="FOLDER", help="of evidence (default: %(default)s)")
    add("--concurrent", action="store_true", help="measure although another run is being timed on this machine")
    return parser


if __name__ == "__main__":
    sys.exit(main())
