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
import contextlib
import datetime
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from harness.common import errors, registry
from harness.common.console import Parser, print_stdout
from harness.common.errors import Refusal, guarded
from harness.common.files import temporary_folder, write_whole
from harness.common.registry import VariantCard
from harness.gate import evidence as store
from harness.gate.base import NoBase, Side, base_side, located_here, side_of
from harness.gate.evidence import ABSENT, ALL, BASE, HEAD, UNMEASURED, Evidence
from harness.gate.judge import ACCEPTED, TREATED, as_json, judge, lines, markdown
from harness.gate.observe import (
    Arm,
    Comparison,
    Sampler,
    observe_counts,
    observe_instructions,
    observe_times,
)
from harness.gate.rule import DEFAULT_CARD, TIERS, Card, read_card, stored_card
from harness.measure.machine import environment
from harness.measure.quiet import timing

EXIT_CODES = """exit code:
  0   something was measured, and nothing is worse
  20  slower, larger, or more instructions, confirmed
  21  wrong merges, or counts of work that are not in the snapshot
  22  a requested tier or variant could not be measured, or nothing was
  23  inconclusive: the machine is too noisy to tell (see --treat-inconclusive)
  2   usage; 130 interrupted
"""
OUTPUT = Path("results", "local", "gate")
COMPARED = ("work", "time")  # the tiers that need a base


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    options = _parser().parse_args(arguments)
    return guarded(lambda: run(options), "what was observed until then is in the output folder")


def run(options: argparse.Namespace) -> int:
    """Measure or replay, and report the verdict. Raises Refusal for options that contradict each
    other.
    """
    if options.accept and options.tiers:
        raise Refusal(
            "--tiers has no effect with --accept, which is about identity and work; remove it"
        )
    if options.replay is not None:
        if options.targets or options.tiers or options.concurrent or options.card != DEFAULT_CARD:
            raise Refusal(
                "targets, --card, --tiers and --concurrent have no effect with --replay; remove them"
            )
        evidence = store.read_evidence(options.replay)
        evidence.question.card = msgspec.to_builtins(
            stored_card(evidence.question.card, options.overrides)
        )
    else:
        evidence = observe(options)

    verdict = judge(evidence)
    code = verdict.exit_code(options.treat_inconclusive)
    if options.replay is None or options.output != OUTPUT:
        content = json.dumps(as_json(verdict, evidence, code), ensure_ascii=False, indent=1) + "\n"
        for name, text in ((store.VERDICT, content), (store.SUMMARY, markdown(verdict, evidence))):
            write_whole(options.output / name, text.encode(), exit_code=errors.UNMEASURED)

    if options.accept:
        accepted = [
            finding.message for finding in verdict.findings if finding.message.endswith(ACCEPTED)
        ]
        print_stdout("\n".join(accepted) or "the snapshot is unchanged")
    print_stdout("\n".join(lines(verdict)))
    return code


def observe(options: argparse.Namespace) -> Evidence:
    """Measure every tier. The base is made before anything of head runs, in a place that head is
    not given.
    """
    card = requested_card(options)
    variants = registry.select(options.targets or card.variants)
    if not variants:
        raise Refusal("the card names no variants; pass a name, a tag, or package.module:function")
    against = registry.select([options.against_variant])[0] if options.against_variant else None
    targets = [each.target for each in (*variants, against) if each]

    with temporary_folder() as folder:
        head = side_of(HEAD, "the working tree", located_here(targets), folder)
        started = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        question = store.Question(
            msgspec.to_builtins(card), 1, started, head.described, environment()
        )
        evidence = store.new_evidence(options.output / store.FILE_NAME, question)
        sampler = Sampler(card, folder, evidence)
        with base_for(sampler, head, options, against, targets) as base:
            if {"identity", "work"} & set(card.tiers):
                observe_counts(sampler, head, variants)
            if options.accept and not sampler.changed_files():
                store.accept(Path(card.work.counters), evidence)

            if base is not None:
                comparisons = [compared(each, head, base, against) for each in variants]
                if "work" in card.tiers:
                    observe_instructions(sampler, comparisons)
                if "time" in card.tiers:
                    with timing(options.concurrent):
                        observe_times(sampler, comparisons)

            if changed := ", ".join(sampler.changed_files()[:3]):
                reason = (
                    f"the results are not trusted: {changed}, of the base, changed while head ran"
                )
                note(sampler, TIERS, UNMEASURED, reason)
    return evidence


def requested_card(options: argparse.Namespace) -> Card:
    tiers = "identity,work" if options.accept else options.tiers  # wrong merges are never accepted
    for tier in tiers.split(",") if tiers else ():
        registry.one_of("tier", tier, TIERS)
    overrides = [*options.overrides, *([f"tiers=[{tiers}]"] if tiers else [])]
    overrides += [f"base.against=[{options.against}]"] if options.against else []
    return read_card(options.card, overrides)


@contextlib.contextmanager
def base_for(
    sampler: Sampler,
    head: Side,
    options: argparse.Namespace,
    against: VariantCard | None,
    targets: Sequence[str],
) -> Iterator[Side | None]:
    """Yield the base, if a tier needs it and there is one; else the evidence says why not."""
    evidence = sampler.evidence

    if options.no_base:
        note(sampler, COMPARED, ABSENT, "nothing was compared: no base, because of --no-base")
        yield None
    elif options.accept or not set(COMPARED) & set(sampler.card.tiers):
        yield None
    elif against is not None:
        base = replace(head, name=BASE, described=f"the variant {against.name}")
        evidence.add(store.BaseChosen(base.described))
        yield base
    else:
        try:
            with (
                temporary_folder() as folder,
                base_side(targets, sampler.card.base, folder, options.output) as base,
            ):
                sampler.freeze(folder)
                evidence.add(store.BaseChosen(base.described))
                yield base
        except NoBase as reason:
            note(sampler, COMPARED, UNMEASURED, f"nothing was compared: {reason}")
            yield None


def note(sampler: Sampler, tiers: Sequence[str], state: str, reason: str) -> None:
    """Note why whole tiers are without a result."""
    for tier in sampler.card.tiers:
        if tier in tiers:
            sampler.evidence.add(store.Note(tier, ALL, state, reason))


def compared(card: VariantCard, head: Side, base: Side, against: VariantCard | None) -> Comparison:
    """Return what a variant is compared with: another one, or itself with the parameters that
    base's checkout has.
    """
    if against is not None:
        return Comparison(
            f"{card.name} against {against.name}", Arm(base, against), Arm(head, card)
        )
    of_base = (registry.variant_at(Path(place, "conf"), card.name) for place in base.places)
    return Comparison(card.name, Arm(base, next(filter(None, of_base), card)), Arm(head, card))


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
    add(
        "--concurrent",
        action="store_true",
        help="measure although another run is being timed on this machine",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
