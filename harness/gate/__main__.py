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
import datetime
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
from msgspec import structs

from harness.common import registry
from harness.common.arguments import Parser
from harness.common.ending import exit_code_of
from harness.common.errors import Refusal
from harness.common.files import check_output, temporary_folder, write_output
from harness.common.printing import print_stdout
from harness.common.registry import EXTERNAL, VariantCard
from harness.common.values import one_of
from harness.gate import evidence as store
from harness.gate.base import (
    MAIN_BRANCHES,
    NoBase,
    base_side,
    changed_lines,
    has_trainer,
    located_here,
    side_of,
)
from harness.gate.card import DEFAULT_CARD, TIERS, GateCard, card_paths, read_gate_card, stored_card
from harness.gate.evidence import (
    ABSENT,
    ACCEPTED,
    ALL,
    BASE,
    HEAD,
    IDENTITY,
    TIME,
    UNMEASURED,
    WORK,
    Evidence,
    evidence_of,
)
from harness.gate.judge import NEW, TREATED, judge
from harness.gate.observe import (
    Arm,
    Arms,
    Sampler,
    observe_counts,
    observe_instructions,
    observe_times,
)
from harness.gate.show import as_json, junit, lines, summary_of, wrapped
from harness.measure.process import PACKAGES
from harness.measure.quiet import timing
from harness.records.schema import GateQuestion
from harness.runs.cells import Side
from harness.runs.resume import WrongCode

EXIT_CODES = """exit code:
  0   nothing is worse: it was measured, or the code is the same
  20  slower, larger, or more instructions, confirmed
  21  wrong merges, or counts of work that are not in the snapshot
  22  a requested tier or variant could not be measured, or nothing was
  23  inconclusive: the machine is too noisy to tell (see --treat-inconclusive)
  2   usage; 130 interrupted
"""
OUTPUT = Path("results", "local", "gate")
NOT_TRUSTED = "the results are not trusted"
COMPARED = (WORK, TIME)  # the tiers that need a base


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    options = _parser().parse_args(arguments)
    return exit_code_of(
        lambda: judge_change(options),
        "what was observed until then is in the output folder",
    )


def judge_change(options: argparse.Namespace) -> int:
    """Measure or replay, and report the verdict. Raises Refusal for options that contradict each
    other.
    """
    if options.accept and options.tiers:
        raise Refusal(
            "--tiers has no effect with --accept, which is about identity and work; remove it"
        )
    if options.base_target and (options.no_base or options.accept or options.against_variant):
        raise Refusal("--base-target is for a base that is a commit; remove it")
    if options.replay is not None:
        measuring_options = options.targets or options.tiers or options.base_target
        if measuring_options or options.card != DEFAULT_CARD:
            raise Refusal(
                "targets, --card, --tiers and --base-target have no effect with --replay; remove them"
            )
        written = [store.VERDICT, store.SUMMARY]
        check_output(options.output, [store.evidence_file(options.replay)], names=written)
        evidence = store.read_evidence(options.replay)
        card = stored_card(evidence.question["card"], options.overrides)
        evidence.question["card"] = msgspec.to_builtins(card)
    else:
        evidence = observe(options)

    verdict = judge(evidence)
    code = verdict.exit_code(options.treat_inconclusive)
    if options.replay is None or options.output != OUTPUT:
        content = json.dumps(as_json(verdict, evidence, code), ensure_ascii=False, indent=1) + "\n"
        for name, text in (
            (store.VERDICT, content),
            (store.SUMMARY, summary_of(verdict, evidence)),
        ):
            write_output(options.output / name, text.encode())

    if options.accept and options.format != "junit":
        accepted = [
            finding.message
            for finding in verdict.findings
            if finding.message.endswith(f"; {ACCEPTED}")
        ]
        print_stdout("\n".join(accepted) or "the snapshot is unchanged")
    text = "\n".join(map(wrapped, lines(verdict)))
    print_stdout(junit(verdict) if options.format == "junit" else text)
    return code


def observe(options: argparse.Namespace) -> Evidence:
    """Measure every tier. The base is made before anything of head runs, in a place that head is
    not given.
    """
    card = requested_card(options)
    variants = requested_variants(options, card)
    against = against_of(options, variants)
    targets = [variant.target for variant in (*variants, against) if variant]

    with temporary_folder() as folder:
        head = side_of(HEAD, "the working tree", located_here(targets), folder)
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds")
        question = question_of(card, [variant.name for variant in variants], head)
        log = store.new_log(options.output, now, question)
        sampler = Sampler(card, folder, log)

        with base_for(sampler, head, options, targets) as base:
            try:
                if base is not None:
                    question["base"] = base.described
                    if base.commit:
                        question["commit"] = base.commit
                        accepted = store.accepted_changes(store.ACCEPTED_CHANGES, base.commit)
                        question["accepted"] = accepted
                        root, paths = Path(base.forbidden), card_paths(options.card)
                        question["card_change"] = changed_lines(root, base.commit, paths)
                    log.run = structs.replace(log.run, question=question)
                observe_tiers(sampler, head, base, variants, against, options)
            except WrongCode as error:
                note(sampler, TIERS, UNMEASURED, f"{NOT_TRUSTED}: {error}")
            if changed := ", ".join(sampler.changed_files()[:3]):
                why = f"{changed}, of the base, changed while head ran"
                note(sampler, TIERS, UNMEASURED, f"{NOT_TRUSTED}: {why}")
        log.finish()

    evidence = evidence_of(log)
    assert evidence is not None, "the log of a gate has its run"
    return evidence


def requested_variants(options: argparse.Namespace, card: GateCard) -> list[VariantCard]:
    """Return what is gated. Raises Refusal if nothing is named: all variants are those of this
    project, so they are gated in a checkout of it only.
    """
    if not options.targets and "all" in card.variants and not Path.cwd().is_relative_to(PACKAGES):
        raise Refusal(
            "this folder is not a checkout of bpe-harness; name your trainer: "
            "python -m harness.gate my_package.my_module:train"
        )
    variants = registry.select(options.targets or card.variants)
    if not variants:
        raise Refusal("the card names no variants; pass a name, a tag, or package.module:function")
    return variants


def against_of(options: argparse.Namespace, variants: Sequence[VariantCard]) -> VariantCard | None:
    """Return the variant that head's are compared with; None for themselves."""
    if options.against_variant:
        return registry.select([options.against_variant])[0]
    target = options.base_target
    if target is None:
        return None
    if len(variants) > 1 or ":" not in target:
        raise Refusal("--base-target is package.module:function, for one trainer; name one")
    return VariantCard(target, target, "named by its target", tags=(EXTERNAL,))


def question_of(card: GateCard, variants: Sequence[str], head: Side) -> GateQuestion:
    """What the gate asks: its card, and the stored counts of work of these variants."""
    question: GateQuestion = {"card": msgspec.to_builtins(card), "head": head.described}
    snapshot = store.read_snapshot(store.SNAPSHOT) if WORK in card.tiers else None
    if snapshot is not None:
        stored = snapshot.counters
        question["snapshot"] = {name: stored[name] for name in variants if name in stored}
    return question


def observe_tiers(
    sampler: Sampler,
    head: Side,
    base: Side | None,
    variants: Sequence[VariantCard],
    against: VariantCard | None,
    options: argparse.Namespace,
) -> None:
    """Measure what the card's tiers need."""
    card = sampler.card
    if {IDENTITY, WORK} & set(card.tiers):
        observe_counts(sampler, head, variants)
    if options.accept and not sampler.changed_files():
        evidence = evidence_of(sampler.log)
        store.accept(store.SNAPSHOT, evidence.of(IDENTITY) if evidence else [])
        sampler.note(WORK, ALL, ACCEPTED, "the counts of work are in the snapshot")
    if base is None:
        return

    comparisons = []
    for variant in variants:
        comparison = arms_of(variant, head, base, against)
        if has_trainer(base, comparison.base.variant.target):
            comparisons.append(comparison)
            continue
        for tier in set(COMPARED) & set(card.tiers):
            sampler.note(tier, comparison.name, ABSENT, f"{comparison.name}, {tier}: {NEW}")
    if WORK in card.tiers:
        observe_instructions(sampler, comparisons)
    if TIME in card.tiers:
        with timing():
            observe_times(sampler, comparisons)


def requested_card(options: argparse.Namespace) -> GateCard:
    tiers = "identity,work" if options.accept else options.tiers  # wrong merges are never accepted
    for tier in tiers.split(",") if tiers else ():
        one_of("tier", tier, TIERS)
    overrides = [*options.overrides, *([f"tiers=[{tiers}]"] if tiers else [])]
    return read_gate_card(options.card, overrides)


@contextlib.contextmanager
def base_for(
    sampler: Sampler,
    head: Side,
    options: argparse.Namespace,
    targets: Sequence[str],
) -> Iterator[Side | None]:
    """Yield the base, if a tier needs it and there is one; else the evidence says why not."""
    if options.no_base:
        note(sampler, COMPARED, ABSENT, "nothing was compared: no base, because of --no-base")
        yield None
    elif options.accept or not set(COMPARED) & set(sampler.card.tiers):
        yield None
    elif options.against_variant:
        yield replace(head, name=BASE, described=f"the variant {options.against_variant}")
    else:
        against = [options.against] if options.against else MAIN_BRANCHES
        try:
            with (
                temporary_folder() as folder,
                base_side(targets, against, sampler.card.build, folder, options.output) as base,
            ):
                sampler.freeze(folder)
                yield base
        except NoBase as reason:
            note(sampler, COMPARED, UNMEASURED, f"nothing was compared: {reason}")
            yield None


def note(sampler: Sampler, tiers: Sequence[str], state: str, reason: str) -> None:
    """Note why whole tiers are without a result."""
    for tier in sampler.card.tiers:
        if tier in tiers:
            sampler.note(tier, ALL, state, reason)


def arms_of(card: VariantCard, head: Side, base: Side, against: VariantCard | None) -> Arms:
    """Return what a variant is compared with: another one, or itself with the parameters that
    base's checkout has.
    """
    if against is not None:
        return Arms(f"{card.name} against {against.name}", Arm(base, against), Arm(head, card))
    of_base = (
        registry.variant_at(Path(folder, "conf"), card.name) for folder in base.import_folders
    )
    return Arms(card.name, Arm(base, next(filter(None, of_base), card)), Arm(head, card))


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m harness.gate",
        description=(__doc__ or "").partition("\n")[0].partition(": ")[2].capitalize(),
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
    mode(
        "--accept", action="store_true", help="write the measured counts of work into the snapshot"
    )
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
        choices=list(TREATED),
        help="as 0, 20 or 23 (default: %(default)s)",
    )
    add(
        "--output",
        type=Path,
        default=OUTPUT,
        metavar="FOLDER",
        help="of evidence (default: %(default)s)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
