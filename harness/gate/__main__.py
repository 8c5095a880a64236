"""python -m harness.gate: check a change for wrong merges, more work, slower runs or more memory.

python -m harness.gate                                  this checkout against its base
python -m harness.gate heap flat --tiers identity,work  some of it
python -m harness.gate my_module:train                  your trainer, in your checkout
python -m harness.gate my_module:train --card quick     the same within two minutes
python -m harness.gate heap_opt --against-variant heap  one variant against another
python -m harness.gate my_new:train --base-target my_old:train  a trainer that was renamed
python -m harness.gate --accept                         accept changed counts of work
python -m harness.gate --replay results/local/gate      the verdict of a run, again
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from harness.common import registry
from harness.common.command import Parser, exit_code_of
from harness.common.errors import Refusal
from harness.common.files import check_output, temporary_folder, write_output
from harness.common.printing import print_stdout
from harness.common.registry import VariantCard
from harness.gate.base import base_side, changed_lines, located_here, side_of
from harness.gate.judge import TREATED, as_json, judge, junit, lines, summary_of
from harness.gate.observe import Compared, observe_tiers
from harness.gate.rule import (
    ACCEPTED,
    ALL,
    DEFAULT_CARD,
    SUMMARY,
    TIERS,
    VERDICT,
    Evidence,
    GateCard,
    accept,
    card_paths,
    merged_card,
    new_log,
    note,
    read_accepted,
    read_evidence,
    read_gate_card,
)
from harness.measure.process import PACKAGES
from harness.records.file import files_read
from harness.records.schema import GateQuestion
from harness.runs.cells import Side
from harness.runs.resume import WrongCode
from harness.runs.session import now

EXIT_CODES = """exit code:
  0   nothing is worse: it was measured, or the code is the same
  20  slower, larger, or more instructions, confirmed
  21  wrong merges, or counts of work that are not accepted
  22  a requested tier or variant could not be measured, or nothing was
  23  inconclusive: the machine is too noisy to tell (see --treat-inconclusive)
  2   usage; 130 interrupted
"""
OUTPUT = Path("results", "local", "gate")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = Parser(
        prog="python -m harness.gate",
        description="Check a change for wrong merges, more work, slower runs or more memory.",
        epilog="examples:\n" + (__doc__ or "").partition("\n\n")[2] + "\n" + EXIT_CODES,
    )
    add = parser.add_argument
    add(
        "targets",
        nargs="*",
        metavar="target",
        help="variant, tag or package.module:function (default: the card's)",
    )
    add(
        "--card",
        default=DEFAULT_CARD,
        metavar="NAME|FILE",
        help="of conf/gate, or a file (default: %(default)s)",
    )
    add(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="of the card",
    )
    add("--tiers", metavar="A,B", help=f"only these of {','.join(TIERS)}")

    mode = parser.add_mutually_exclusive_group().add_argument
    mode(
        "--against",
        metavar="COMMIT",
        help="the base is where HEAD departs from this (default: the main branch)",
    )
    mode("--against-variant", metavar="NAME", help="the base is another variant, in the same code")
    mode(
        "--no-base",
        action="store_true",
        help="measure only what needs no base, as for a first commit",
    )
    mode("--accept", action="store_true", help="accept the measured counts of work")
    mode(
        "--replay", type=Path, metavar="FILE", help="judge stored samples again, without measuring"
    )
    add(
        "--base-target",
        metavar="TARGET",
        help="the trainer in the base, if this change has renamed it",
    )
    add("--format", default="text", choices=["text", "junit"], help="of what is printed")
    add(
        "--treat-inconclusive",
        default="neutral",
        choices=TREATED,
        help="as 0, 20 or 23 (default: %(default)s)",
    )
    add(
        "--output",
        type=Path,
        default=OUTPUT,
        metavar="FOLDER",
        help="of evidence (default: %(default)s)",
    )

    options = parser.parse_args(arguments)
    return exit_code_of(
        lambda: judge_change(options),
        "what was observed until then is in the output folder",
    )


def judge_change(options: argparse.Namespace) -> int:
    """Measure or replay, write the verdict, and print it."""
    check_options(options)
    evidence = measured(options) if options.replay is None else replayed(options)
    verdict = judge(evidence)
    code = verdict.exit_code(options.treat_inconclusive)

    if options.replay is None or options.output != OUTPUT:
        content = json.dumps(as_json(verdict, evidence, code), ensure_ascii=False, indent=1) + "\n"
        write_output(options.output / VERDICT, content.encode())
        write_output(options.output / SUMMARY, summary_of(verdict, evidence).encode())

    text = "\n".join([*lines(verdict), *next_step(options)])
    print_stdout(junit(verdict) if options.format == "junit" else text)
    return code


def check_options(options: argparse.Namespace) -> None:
    """Raise Refusal for options that contradict each other."""
    if options.accept and options.tiers:
        raise Refusal(
            "--tiers has no effect with --accept, which is about identity and work; remove it"
        )
    if options.base_target and (options.no_base or options.accept or options.against_variant):
        raise Refusal("--base-target is for a base that is a commit; remove it")
    of_measuring = options.targets or options.tiers or options.base_target
    if options.replay is not None and (of_measuring or options.card != DEFAULT_CARD):
        raise Refusal(
            "targets, --card, --tiers and --base-target have no effect with --replay; remove them"
        )


def next_step(options: argparse.Namespace) -> list[str]:
    """Return what to do after a measurement, as a line."""
    if options.replay is not None:
        return []
    if options.accept:
        return [f"next: commit {ACCEPTED}"]
    shows = f"python -m harness.table {options.output} shows every sample"
    return [f"next: {shows}; {options.output / SUMMARY} is for the pull request"]


def replayed(options: argparse.Namespace) -> Evidence:
    """Return stored evidence, with overrides of its card."""
    check_output(options.output, files_read([options.replay]), names=[VERDICT, SUMMARY])
    evidence = read_evidence(options.replay)
    card = merged_card("the stored card", [evidence.question["card"]], options.overrides)
    evidence.question["card"] = msgspec.to_builtins(card)
    return evidence


def measured(options: argparse.Namespace) -> Evidence:
    """Measure every tier. The base is made before anything of head runs, in a place that head is
    not given.
    """
    tiers = "identity,work" if options.accept else options.tiers  # wrong merges are never accepted
    overrides = [*options.overrides, *([f"tiers=[{tiers}]"] if tiers else [])]
    card = read_gate_card(options.card, overrides)
    variants = requested_variants(options, card)
    against = against_of(options, variants)
    targets = [variant.target for variant in (*variants, against) if variant]

    with temporary_folder() as folder:
        head = side_of("head", "the working tree", located_here(targets), folder)
        try:
            with contextlib.ExitStack() as opened:
                base = None
                if card.compared_tiers and options.against_variant:
                    described = f"the variant {options.against_variant}"
                    base = replace(head, name="base", described=described)
                elif card.compared_tiers and not (options.no_base or options.accept):
                    made = base_side(targets, options.against, card.build, options.output)
                    base = opened.enter_context(made)

                question = question_of(options, card, variants, head, base)
                log = new_log(options.output, now(), question)
                if options.no_base:
                    why = "nothing was compared: no base, because of --no-base"
                    note(log, card.compared_tiers, ALL, "absent", why)
                comparisons = [compared_with(base, head, one, against) for one in variants]
                observe_tiers(card, log, folder, comparisons)

                if options.accept:
                    accept(ACCEPTED, log.records())
                    reason = f"the counts of work are in {ACCEPTED}"
                    note(log, ["work"], ALL, "accepted", reason)
        except WrongCode as error:
            note(log, card.tiers, ALL, "unmeasured", f"the results are not trusted: {error}")
        log.finish()
    return read_evidence(options.output)


def requested_variants(options: argparse.Namespace, card: GateCard) -> list[VariantCard]:
    """Return what is gated. Raises Refusal if nothing is named: all variants are those of this
    project, so they are gated in a checkout of it only.
    """
    if not options.targets and "all" in card.variants and not Path.cwd().is_relative_to(PACKAGES):
        raise Refusal(
            "this folder is not a checkout of bpe-harness; name your trainer: "
            "python -m harness.gate my_package.my_module:train"
        )
    return registry.select(options.targets or card.variants)


def against_of(options: argparse.Namespace, variants: Sequence[VariantCard]) -> VariantCard | None:
    """Return the variant that head's are compared with; None for themselves."""
    if options.against_variant:
        return registry.select([options.against_variant])[0]
    target = options.base_target
    if target is None:
        return None
    if len(variants) > 1 or ":" not in target:
        raise Refusal("--base-target is package.module:function, for one trainer; name one")
    return registry.named_by_target(target)


def question_of(
    options: argparse.Namespace,
    card: GateCard,
    variants: Sequence[VariantCard],
    head: Side,
    base: Side | None,
) -> GateQuestion:
    """What the gate asks: its card, and what is accepted."""
    question: GateQuestion = {"card": msgspec.to_builtins(card), "head": head.described}
    accepted = read_accepted(ACCEPTED, base.commit if base else "")
    if accepted.counts:
        counts = {variant.name: accepted.counts.get(variant.name, {}) for variant in variants}
        question["snapshot"] = counts
    if base is None:
        return question

    question["base"] = base.described
    if base.commit:
        question["commit"] = base.commit
        question["accepted"] = accepted.changes
        paths = card_paths(options.card)
        question["card_change"] = changed_lines(Path(base.forbidden), base.commit, paths)
    return question


def compared_with(
    base: Side | None, head: Side, variant: VariantCard, against: VariantCard | None
) -> Compared:
    """Return what a variant is compared with: another one, or itself with the parameters that
    base's checkout has.
    """
    if against is not None:
        return Compared(f"{variant.name} against {against.name}", base, against, head, variant)
    before = variant
    for folder in base.import_folders if base else ():
        before = registry.variant_at(Path(folder, "conf"), variant.name) or before
    return Compared(variant.name, base, before, head, variant)


if __name__ == "__main__":
    sys.exit(main())
