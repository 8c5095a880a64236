"""python -m harness.gate: has a change made a trainer wrong, busier, slower or larger?

python -m harness.gate                                  this checkout against its base
python -m harness.gate heap flat --tiers identity,work  some of it
python -m harness.gate my_module:train                  your trainer, in your checkout
python -m harness.gate my_module:train --card quick     the same within two minutes
python -m harness.gate my_module:train --workflow       the CI job for pull requests
python -m harness.gate my_module:train --base old/bin/python --head new/bin/python
python -m harness.gate heap_opt --against-variant heap  one variant against another
python -m harness.gate --accept                         accept changed counts of work
python -m harness.gate --replay results/local/gate      the verdict of a run, again
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.common.console import Parser, json_text, tell
from harness.common.errors import OK, UNMEASURED, Refusal, guarded
from harness.common.files import temporary_folder, write_whole
from harness.gate import verdict
from harness.gate.card import TIERS, USUAL, card_in
from harness.gate.evidence import SUMMARY, VERDICT, Evidence, read_evidence, readable
from harness.gate.judging import judged
from harness.gate.running import Asked, Gate
from harness.gate.summary import as_json, github_lines, lines, markdown
from harness.gate.verdict import TREATED, Verdict
from harness.gate.workflow import workflow

EXIT_CODES = """exit code:
  0   something was measured, and nothing of it is worse
  20  slower, larger, or more instructions, confirmed
  21  wrong merges, or counts of work that are not in the snapshot
  22  something could not be measured, a tier that was asked for was not, or nothing was
  23  inconclusive: the machine is too noisy to tell (see --treat-inconclusive)
  2   usage; 130 interrupted
"""
OF_REPLAY = ("replay", "set", "output", "json", "summary", "advisory", "treat_inconclusive")
KEPT = "what was observed up to then is in the output folder"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    asked = _parser().parse_args(arguments)
    return guarded(lambda: command(asked), KEPT)


def command(asked: argparse.Namespace) -> int:
    """Do what was asked. Raises Refusal for what cannot be done."""
    refuse_contradictions(asked)
    if asked.summary is not None:
        append(asked.summary, "")  # or it would be refused when everything has been measured
    if asked.workflow is not None:
        refuse_meaningless(asked, "--workflow", ("workflow", "target"))
        print(workflow(one_trainer(asked.target), asked.workflow or None), end="")  # noqa: T201
        return OK
    if asked.replay is not None:
        return replayed(asked)
    with temporary_folder() as folder:
        gate = Gate(asked_of(asked), Path(folder))
        evidence, accepted = gate.run()
    if asked.accept:
        say(accepted or [f"{gate.card.work.counters} is as it was"])
    return concluded(judged(evidence), evidence, asked, gate.asked.output)


def one_trainer(targets: Sequence[str]) -> str:
    if len(targets) != 1 or ":" not in targets[0]:
        raise Refusal("--workflow is for one trainer of your own; name it as package.module:function")
    return targets[0]


def replayed(asked: argparse.Namespace) -> int:
    """The verdict from a file, with other parameters where they are said."""
    evidence = read_evidence(asked.replay)
    if asked.set:
        evidence.head["card"] = asdict(card_in(evidence.head, asked.set))
    return concluded(readable(judged, evidence, asked.replay), evidence, asked, asked.output)


def concluded(conclusion: Verdict, evidence: Evidence, asked: argparse.Namespace, output: Path | None) -> int:
    """Say the verdict, write what is to be written, and return the exit code."""
    code = conclusion.exit_code(asked.treat_inconclusive, asked.advisory)
    told = as_json(conclusion, evidence, code)
    if asked.json:
        print(json_text(told))  # noqa: T201
    else:
        say(lines(conclusion))
        if os.environ.get("GITHUB_ACTIONS") == "true":
            print(*github_lines(conclusion, "warning" if asked.advisory else "error"), sep="\n")  # noqa: T201
        if asked.advisory and conclusion.state() not in (verdict.PASS, verdict.ABSENT):
            say(["advisory: the exit code is 0 all the same"])
    if output is not None:
        content = json.dumps(told, ensure_ascii=False, indent=1) + "\n"
        write_whole(output / VERDICT, content.encode(), exit_code=UNMEASURED)
        write_whole(output / SUMMARY, markdown(conclusion, evidence).encode(), exit_code=UNMEASURED)
    if asked.summary is not None:
        append(asked.summary, markdown(conclusion, evidence))
    return code


def append(path: Path, text: str) -> None:
    try:
        with path.open("a") as file:
            file.write(text)
    except OSError as error:
        raise Refusal(f"cannot write {path} ({error.strerror}); choose another place with --summary") from error


def asked_of(asked: argparse.Namespace) -> Asked:
    return Asked(
        targets=tuple(asked.target),
        card=asked.card,
        said=tuple(asked.set),
        tiers=tuple(asked.tiers.split(",")) if asked.tiers else (),
        against=asked.against,
        against_variant=asked.against_variant,
        base=asked.base,
        head=asked.head,
        no_base=asked.no_base,
        output=asked.output or Asked.output,
        accept=asked.accept,
        concurrent=asked.concurrent,
    )


def refuse_contradictions(asked: argparse.Namespace) -> None:
    ways = [name for name in ("against", "against_variant", "base", "no_base") if getattr(asked, name)]
    if len(ways) > 1:
        raise Refusal(f"{option(ways[0])} and {option(ways[1])} are two ways to say what the base is; choose one")
    if asked.head is not None and asked.base is None:
        raise Refusal("--head is the Python of one environment; use --base for the one to compare it with")
    if asked.no_base and "time" in (asked.tiers or "").split(","):
        raise Refusal("times are compared with those of a base, and --no-base says that there is none; choose one")
    if asked.accept and asked.tiers and "work" not in asked.tiers.split(","):
        raise Refusal("--accept is about counts of work; leave out --tiers, or name work among them")
    if asked.accept and asked.advisory:
        raise Refusal("--accept writes the snapshot and --advisory only looks; choose one")
    if asked.replay is not None:
        refuse_meaningless(asked, "--replay", OF_REPLAY)


def refuse_meaningless(asked: argparse.Namespace, way: str, meaningful: Sequence[str]) -> None:
    """Raises Refusal for an option that would be passed over."""
    usual = vars(_parser().parse_args([]))
    for name, value in vars(asked).items():
        if value != usual[name] and name not in meaningful:
            raise Refusal(f"{option(name)} means nothing to {way}; leave it out")


def option(name: str) -> str:
    return "a target" if name == "target" else f"--{name.replace('_', '-')}"


def say(sentences: Sequence[str]) -> None:
    for sentence in sentences:
        tell(sentence)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m harness.gate",
        description=(__doc__ or "").partition("\n")[0].partition(": ")[2].capitalize(),
        epilog="examples:\n" + (__doc__ or "").partition("\n\n")[2] + "\n" + EXIT_CODES,
    )
    add: Callable[..., Any] = parser.add_argument
    add("target", nargs="*", help="names or tags of variants, or package.module:function (default: the card's)")
    add("--card", default=USUAL, metavar="NAME|FILE", help="parameters, conf/gate/NAME.yaml (default: %(default)s)")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="a parameter of the card, or of the runs")
    add("--tiers", metavar="A,B", help=f"only these of {','.join(TIERS)}")
    add("--against", metavar="COMMIT", help="the base is where HEAD departs from this (default: the main branch)")
    add("--against-variant", metavar="NAME", help="the base is another variant, in the same code")
    add("--base", metavar="PYTHON", help="the base is what this environment has installed")
    add("--head", metavar="PYTHON", help="with --base: the environment that is gated (default: this one)")
    add("--no-base", action="store_true", help="there is no base, as at a first commit: only what needs none")
    add("--accept", action="store_true", help="write the counts of work that were measured into the snapshot")
    add("--advisory", action="store_true", help="say everything, and end with 0")
    add("--treat-inconclusive", default="neutral", choices=list(TREATED), help="as 0, 20 or 23 (default: %(default)s)")
    add("--replay", type=Path, metavar="FILE", help="the verdict from stored samples, measuring nothing")
    add("--output", type=Path, metavar="FOLDER", help=f"of samples and verdict (default: {Asked.output})")
    add("--workflow", nargs="?", const="", metavar="REQUIREMENT", help="print the CI job that gates a trainer of yours")
    add("--json", action="store_true", help="the verdict as one JSON object")
    add("--summary", type=Path, metavar="FILE", help="append a Markdown summary, as for $GITHUB_STEP_SUMMARY")
    add("--concurrent", action="store_true", help="measure although another run is being timed on this machine")
    return parser


if __name__ == "__main__":
    sys.exit(main())
