"""One gate: what is gated and against what, tier after tier. Every observation is written as it comes."""

from __future__ import annotations

import contextlib
import datetime
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from harness.common import registry
from harness.common.console import say
from harness.common.errors import Refusal
from harness.common.files import temporary_folder
from harness.common.progress import Show, stage_bar
from harness.common.registry import VariantCard
from harness.common.units import counted_text, duration_text
from harness.gate.base import NoBase, Side, base_side, installed_side, package_of, require_importable, working_side
from harness.gate.evidence import FILE_NAME, Evidence, EvidenceFile
from harness.gate.judge import ABSENT, ALL, UNMEASURED
from harness.gate.rule import CARD_KEYS, Card, read_card
from harness.gate.sampler import Arm, Sampler
from harness.gate.tiers import Comparison, CountsOfWork, Timing, observe_instructions
from harness.measure import lock
from harness.measure.machine import environment, host, usable_cores

PROCESS_SECONDS, CALLGRIND_SECONDS, SETUP_SECONDS = 0.4, 8.0, 3.0
"""Estimates for a fresh process, for one count of instructions, and for making the base or choosing a size."""


@dataclass(frozen=True)
class GateRequest:
    """The command line."""

    targets: Sequence[str] = ()
    card: str = "usual"
    overrides: Sequence[str] = ()
    tiers: Sequence[str] = ()
    against: str | None = None
    against_variant: str | None = None
    base: str | None = None
    head: str | None = None
    no_base: bool = False
    output: Path = Path("results", "local", "gate")
    accept: bool = False
    concurrent: bool = False


def observe(request: GateRequest) -> tuple[Evidence, list[str]]:
    """Measure every tier; returns the evidence, and what --accept changed. Raises Refusal before anything runs."""
    with temporary_folder() as folder:
        return Gate(request, folder).run()


class Gate:
    """A gate that is about to run."""

    def __init__(self, request: GateRequest, folder: Path) -> None:
        self.request = request
        self.folder = folder
        self.card, overrides = card_of(request)
        self.params, overrides = split_params(overrides)
        self.variants = [
            replace(card, params={**card.params, **self.params})
            for card in select(request.targets or tuple(self.card.variants))
        ]
        self.against = select((request.against_variant,))[0] if request.against_variant else None
        self.all_variants = not request.targets and {card.name for card in self.variants} >= set(registry.variants())
        self.sampler = Sampler(self.card, overrides, folder)

    def run(self) -> tuple[Evidence, list[str]]:
        """The base is made before anything of head runs, in a place that head is not given."""
        head, installed_base = self.sides()
        for card in self.cards():
            if card.name == card.target:
                require_importable(card, head)
        evidence = EvidenceFile(self.request.output / FILE_NAME, self.question(head))
        say(expected_line(self.card, len(self.variants), self.all_variants))
        with stage_bar() as show, self.base(head, installed_base, evidence, show) as base:
            if {"identity", "work"} & set(self.card.tiers):
                counts = CountsOfWork(self.sampler, self.card, self.variants, self.all_variants)
                counts.observe(head, evidence, show)
                if self.request.accept and not self.report_changed_files(evidence):
                    accepted = counts.accept()
                    evidence.add("accepted", changes=accepted)
                    return evidence.evidence, accepted
            if base is not None:
                self.compare(head, base, evidence, show)
            self.report_changed_files(evidence)
        return evidence.evidence, []

    def cards(self) -> list[VariantCard]:
        return [*self.variants, *([self.against] if self.against else [])]

    def sides(self) -> tuple[Side, Side | None]:
        """Head, and base if it is what an environment has installed."""
        packages = {package_of(card.target) for card in self.cards()}
        if self.request.base is None:
            return working_side("head", packages, self.folder), None
        head = installed_side("head", self.request.head or sys.executable, packages, self.folder)
        return head, replace(installed_side("base", self.request.base, packages, self.folder), frozen=True)

    @contextlib.contextmanager
    def base(self, head: Side, installed: Side | None, evidence: EvidenceFile, show: Show) -> Iterator[Side | None]:
        """The base, if a tier needs it and there is one; else the evidence says why not."""
        if self.request.no_base:
            self.note_no_base(evidence, ABSENT, "there is no base, by --no-base")
        if self.request.no_base or self.request.accept or not {"work", "time"} & set(self.card.tiers):
            yield None
            return
        show("the base", "", 0, 0)
        with contextlib.ExitStack() as stack:
            base = installed
            try:
                if self.against is not None:
                    base = replace(head, name="base", described=f"the variant {self.against.name}")
                elif base is None:
                    targets = [card.target for card in self.cards()]
                    base = stack.enter_context(
                        base_side(targets, self.card.base, stack.enter_context(temporary_folder()))
                    )
            except NoBase as reason:
                self.note_no_base(evidence, UNMEASURED, str(reason))
            if base is not None:
                evidence.add("base", described=base.described)
                for folder in base.frozen_folders():
                    self.sampler.freeze(folder)
            yield base

    def note_no_base(self, evidence: EvidenceFile, state: str, reason: str) -> None:
        for tier, what in (("work", "instructions"), ("time", "times")):
            if tier in self.card.tiers:
                message = f"{what} were not compared: {reason}"
                evidence.add("note", tier=tier, variant=ALL, state=state, reason=message)

    def report_changed_files(self, evidence: EvidenceFile) -> bool:
        """Whether the base or the words are not what they were; then nothing that was measured is trusted."""
        changed = self.sampler.changed_files()
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        for tier in self.card.tiers if changed else ():
            reason = f"the results are not trusted: {changed[0]}{more}, of the base, changed while head ran"
            evidence.add("note", tier=tier, variant=ALL, state=UNMEASURED, reason=reason)
        return bool(changed)

    def compare(self, head: Side, base: Side, evidence: EvidenceFile, show: Show) -> None:
        """What needs a base: instructions, and time."""
        comparisons = [
            Comparison(
                card.name if self.against is None else f"{card.name} against {self.against.name}",
                Arm(base, self.against or card_on(base, card, self.params)),
                Arm(head, card),
            )
            for card in self.variants
        ]
        if "work" in self.card.tiers:
            observe_instructions(self.sampler, comparisons, evidence, show)
        if "time" in self.card.tiers:
            with lock.timing(self.request.concurrent):
                Timing(self.sampler, evidence, show).observe(comparisons, named=bool(self.request.targets))

    def question(self, head: Side) -> dict[str, Any]:
        facts = environment()
        return {
            "started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "variants": [card.name for card in self.variants],
            "overrides": list(self.request.overrides),
            "head": head.described,
            "concurrent": self.request.concurrent,
            "no_base": self.request.no_base,
            "card": asdict(self.card),
            "host": host(facts),
            "environment": facts,
        }


def card_of(request: GateRequest) -> tuple[Card, list[str]]:
    """The card with the request's settings, and the overrides that are for the runs."""
    of_card: list[str] = []
    others: list[str] = []
    for override in request.overrides:
        key = override.lstrip("+~").partition("=")[0].partition(".")[0]
        (of_card if key in CARD_KEYS else others).append(override)
    tiers = ("identity", "work") if request.accept else request.tiers  # wrong merges are never accepted
    if tiers:
        of_card.append(f"tiers=[{','.join(tiers)}]")
    card = read_card(request.card, of_card)
    if request.against is not None:
        card = replace(card, base=replace(card.base, against=[request.against]))
    return card, others


def select(targets: Sequence[str]) -> list[VariantCard]:
    """The variants of these names, tags and targets, each once. Raises Refusal if there are none."""
    cards: dict[str, VariantCard] = {}
    for target in targets:
        found = [VariantCard(target, target)] if ":" in target else registry.select([target])
        cards.update({card.name: card for card in found})
    if not cards:
        raise Refusal("the card names no variants; pass a name, a tag, or package.module:function")
    return list(cards.values())


def split_params(overrides: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """The parameters of variants among the overrides, as YAML reads them, and the other overrides."""
    params: dict[str, Any] = {}
    others = []
    for override in overrides:
        name, equals, value = override.partition("=")
        if not (name.startswith("variant.params.") and equals):
            others.append(override)
            continue
        try:
            params[name.removeprefix("variant.params.")] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise Refusal(f"--set {override} is not YAML: {' '.join(str(error).split())}") from error
    return params, others


def card_on(side: Side, card: VariantCard, params: Mapping[str, Any]) -> VariantCard:
    """A variant with the parameters of the side's own configuration, in a checkout or as installed, if it has one."""
    above = (side.place / package_of(card.target)).resolve().parent
    for conf in (above / "conf", above / "harness" / "conf"):
        if (own := registry.variant_at(conf, card.name)) is not None:
            return replace(own, params={**own.params, **params})
    return card


def expected_line(card: Card, variants: int, all_variants: bool) -> str:
    """How long the gate will take: from everything unchanged to every tier measured again."""
    low, high = expected_seconds(card, variants, all_variants)
    about = f"{duration_text(low)} to {duration_text(high)}" if high > 1.5 * low else duration_text(high)
    return f"gate: {counted_text(variants, 'variant')}, tiers {', '.join(card.tiers)}: about {about}"


def expected_seconds(card: Card, variants: int, all_variants: bool) -> tuple[float, float]:
    """The minimum and the maximum; of all variants those whose code has not changed are not timed."""
    changed = 0 if all_variants else variants
    cores = usable_cores()
    low = high = SETUP_SECONDS
    if {"identity", "work"} & set(card.tiers):
        corpora = sum(bool(corpus.say) for corpus in card.corpora.values() if all_variants or corpus.variants is None)
        low = high = SETUP_SECONDS + variants * corpora * PROCESS_SECONDS / min(cores, variants)
    if "work" in card.tiers:
        count = 2 * CALLGRIND_SECONDS / min(cores, 2 * variants)
        low += changed * count
        high += variants * count * (1 + card.work.instructions.layouts)
    if "time" in card.tiers:
        rule = card.time
        samples = 2 + 1 / rule.control.every
        low += changed * (SETUP_SECONDS + rule.triage.blocks * samples * (PROCESS_SECONDS + rule.sample.least))
        blocks = rule.triage.blocks + rule.confirm.blocks
        seconds = SETUP_SECONDS + blocks * samples * (PROCESS_SECONDS + rule.sample.most)
        high += min(variants * len(rule.threads) * seconds, max(rule.seconds, seconds))
    return low, high
