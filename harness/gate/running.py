"""One gate: what is gated and against what, tier after tier, every observation written as it comes."""

from __future__ import annotations

import contextlib
import datetime
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from harness.common import registry
from harness.common.console import say
from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import temporary_folder
from harness.common.progress import Show
from harness.common.progress import stage_bar as showing
from harness.common.registry import VariantCard
from harness.gate import verdict
from harness.gate.base import NoBase, base_side
from harness.gate.card import KEYS, card_of
from harness.gate.comparing import comparisons_of
from harness.gate.deterministic import Deterministic
from harness.gate.evidence import FILE_NAME, Evidence, EvidenceFile
from harness.gate.expected import expected_line
from harness.gate.named import refuse_mistyped
from harness.gate.sides import Side, installed_side, package_of, working_side
from harness.gate.tasks import Laboratory
from harness.gate.timing import Timing
from harness.gate.work import observe_instructions
from harness.measure import lock
from harness.measure.environment import environment, host


@dataclass(frozen=True)
class Asked:
    """What the command line says."""

    targets: tuple[str, ...] = ()
    card: str = "usual"
    said: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()
    against: str | None = None
    against_variant: str | None = None
    base: str | None = None
    head: str | None = None
    no_base: bool = False
    output: Path = Path("results", "local", "gate")
    accept: bool = False
    concurrent: bool = False


class Gate:
    """A gate that is about to run."""

    def __init__(self, asked: Asked, folder: Path) -> None:
        """Understand what is asked. Raises Refusal before anything runs."""
        of_card = [each for each in asked.said if each.lstrip("+~").partition("=")[0].split(".")[0] in KEYS]
        others = [each for each in asked.said if each not in of_card]
        self.asked = asked
        self.folder = folder
        self.card = card_of(asked.card, of_card)
        tiers = ("identity", "work") if asked.accept else asked.tiers  # wrong merges are not to be acknowledged
        if tiers:
            self.card = card_of(asked.card, [*of_card, f"tiers=[{','.join(tiers)}]"])
        if asked.against is not None:
            self.card = replace(self.card, base=replace(self.card.base, against=[asked.against]))
        self.named = bool(asked.targets)
        self.params, overrides = parameters(others)
        self.chosen = [self.with_params(card) for card in chosen(asked.targets or tuple(self.card.variants))]
        self.against = chosen((asked.against_variant,))[0] if asked.against_variant else None
        self.installed_base: Side | None = None
        self.laboratory = Laboratory(self.card, overrides, folder)

    def with_params(self, card: VariantCard) -> VariantCard:
        return replace(card, params={**card.params, **self.params})

    @property
    def whole(self) -> bool:
        """Whether these are all the variants that there are."""
        return not self.named and {card.name for card in self.chosen} >= set(registry.variants())

    def run(self) -> tuple[Evidence, list[str]]:
        """Observe every tier; returns what was seen, and what --accept changed.

        The base is made before anything of head runs, and in a place that head is not told.
        """
        head = self.head_side()
        refuse_mistyped(self.cards(), head)
        if self.asked.base is not None:
            installed = installed_side("base", self.asked.base, self.packages(), self.folder)
            self.installed_base = replace(installed, frozen=True)
        evidence = EvidenceFile(self.asked.output / FILE_NAME, self.described(head))
        accepted: list[str] = []
        say(expected_line(self.card, len(self.chosen), self.whole))
        with showing() as show, self.base(head, evidence, show) as base:
            if {"identity", "work"} & set(self.card.tiers):
                tiers = Deterministic(self.laboratory, head, self.card.tiers)
                tiers.observe(self.chosen, self.whole, evidence, show)
                if self.asked.accept and not self.changed(evidence):
                    accepted = tiers.accept(self.chosen, self.whole)
                    evidence.add("accepted", changes=accepted)
                    return evidence.evidence, accepted
            if base is not None:
                self.compare(head, base, evidence, show)
            self.changed(evidence)
        return evidence.evidence, accepted

    @contextlib.contextmanager
    def base(self, head: Side, evidence: EvidenceFile, show: Show) -> Iterator[Side | None]:
        """The base where a tier needs it and there is one; why there is none is told."""
        with contextlib.ExitStack() as stack:
            base = None
            if self.asked.no_base:
                self.note(evidence, NoBase("there is no base, by --no-base"), verdict.ABSENT)
            elif {"work", "time"} & set(self.card.tiers) and not self.asked.accept:
                show("the base", "", 0, 0)
                try:
                    base = stack.enter_context(self.base_side(head))
                except (NoBase, Refusal) as reason:
                    self.note(evidence, reason)
                else:
                    evidence.add("base", described=base.described)
                    for place in base.untouchable():
                        self.laboratory.watched.add(place)
            yield base

    def compare(self, head: Side, base: Side, evidence: EvidenceFile, show: Show) -> None:
        """What needs a base: instructions, and time."""
        compared = comparisons_of(self.chosen, base, head, self.against, self.params)
        if "work" in self.card.tiers:
            observe_instructions(self.laboratory, compared, evidence, show)
        if "time" in self.card.tiers:
            try:
                with lock.timing(self.asked.concurrent):
                    Timing(self.laboratory, evidence, show).observe(compared, self.named)
            except Refusal as reason:  # somebody else is measuring; what was seen before stays
                self.note(evidence, reason, tiers=("time",))

    def changed(self, evidence: EvidenceFile) -> bool:
        """Whether the base, the words or the judges are not what they were; then nothing that was seen is believed."""
        changed = self.laboratory.watched.changed()
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        for tier in self.card.tiers if changed else ():
            reason = (
                f"{changed[0]}{more}, of the base or of what the gate compares by, was changed while head's code ran"
            )
            said = f"what was seen is not believed: {reason}"
            evidence.add("note", tier=tier, variant=verdict.ALL, state=verdict.UNMEASURED, reason=said)
        return bool(changed)

    def note(
        self,
        evidence: EvidenceFile,
        reason: NoBase | Refusal,
        state: str = verdict.UNMEASURED,
        tiers: Sequence[str] = ("work", "time"),
    ) -> None:
        """Say why the tiers that are wanted and need a base were not compared with one."""
        if isinstance(reason, Refusal) and reason.exit_code != UNMEASURED:
            raise reason
        for tier in tiers:
            if tier in self.card.tiers:
                said = f"{'instructions' if tier == 'work' else 'times'} were not compared: {reason}"
                evidence.add("note", tier=tier, variant=verdict.ALL, state=state, reason=said)

    def cards(self) -> list[VariantCard]:
        return [*self.chosen, *([self.against] if self.against else [])]

    def packages(self) -> set[str]:
        return {package_of(card.target) for card in self.cards()}

    def head_side(self) -> Side:
        if self.asked.base is None and self.asked.head is None:
            return working_side("head", self.packages(), self.folder)
        return installed_side("head", self.asked.head or sys.executable, self.packages(), self.folder)

    @contextlib.contextmanager
    def base_side(self, head: Side) -> Iterator[Side]:
        if self.against is not None:
            yield replace(head, name="base", described=f"the variant {self.against.name}")
        elif self.installed_base is not None:
            yield self.installed_base
        else:
            targets = [card.target for card in self.cards()]
            with temporary_folder() as folder, base_side(targets, self.card.base, folder) as side:
                yield side

    def described(self, head: Side) -> dict[str, Any]:
        known = environment()
        return {
            "started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "variants": [card.name for card in self.chosen],
            "said": list(self.asked.said),
            "head": head.described,
            "concurrent": self.asked.concurrent,
            "no_base": self.asked.no_base,
            "card": asdict(self.card),
            "host": host(known),
            "environment": known,
        }


def chosen(targets: Sequence[str]) -> list[VariantCard]:
    """The variants of these names, tags and targets. Raises Refusal for one that is none, or if there are none."""
    cards: dict[str, VariantCard] = {}
    for target in targets:
        found = [VariantCard(target, target)] if ":" in target else registry.select([target])
        cards.update({card.name: card for card in found})
    if not cards:
        raise Refusal("the card names no variants; name some: a name, a tag, or package.module:function")
    return list(cards.values())


def parameters(overrides: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """The parameters of variants among the overrides, as YAML reads them, and the other overrides."""
    params: dict[str, Any] = {}
    others = []
    for override in overrides:
        name, equals, value = override.partition("=")
        if name.startswith("variant.params.") and equals:
            try:
                params[name.removeprefix("variant.params.")] = yaml.safe_load(value)
            except yaml.YAMLError as error:
                raise Refusal(f"--set {override} is not YAML: {' '.join(str(error).split())}") from error
        else:
            others.append(override)
    return params, others
