"""The first two tiers in one pass: every variant once on every corpus, for its merges and for its counts of work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.common import registry
from harness.common.progress import Show
from harness.common.registry import VariantCard
from harness.gate.evidence import EvidenceFile
from harness.gate.sides import Side
from harness.gate.snapshot import Snapshot, Tallies, accept, changes, read_snapshot, write_snapshot
from harness.gate.tasks import Arm, Laboratory, Sampled, Task, at_a_time, why
from harness.proof import WRONG


def chosen_for(corpus_variants: Sequence[str] | None, chosen: Sequence[VariantCard]) -> list[VariantCard]:
    """Those of the chosen variants that a corpus is for."""
    if corpus_variants is None:
        return list(chosen)
    names = {card.name for card in registry.select(corpus_variants)}
    return [card for card in chosen if card.name in names]


class Deterministic:
    """Identity and work of the chosen variants, as head has them."""

    def __init__(self, laboratory: Laboratory, head: Side, tiers: Sequence[str]) -> None:
        self.laboratory = laboratory
        self.head = head
        self.tiers = tiers
        self.path = Path(laboratory.card.work.counters)
        self.snapshot = read_snapshot(self.path) if "work" in tiers else None
        self.measured: dict[tuple[str, str], Tallies] = {}
        self.wrong: set[tuple[str, str]] = set()
        self.corpora: dict[str, dict[str, Any]] = {}

    def observe(self, chosen: Sequence[VariantCard], whole: bool, evidence: EvidenceFile, show: Show) -> None:
        """Run everything; `whole` if these are all variants there are, so that others in the snapshot are gone."""
        for corpus, said in self.laboratory.card.corpora.items():
            variants = chosen_for(said.variants, chosen)
            if variants and said.say:
                self.observe_corpus(self.laboratory.task(corpus, said.say), variants, evidence, show)
        if whole and self.snapshot is not None:
            for name in sorted(self.gone(chosen)):
                evidence.add("tallies", variant=name, corpus=None, tallies=None, expected=None, snapshot=True)

    def gone(self, chosen: Sequence[VariantCard]) -> set[str]:
        known = set(self.snapshot.counters) if self.snapshot else set()
        return known - {card.name for card in chosen}

    def observe_corpus(self, task: Task, variants: Sequence[VariantCard], evidence: EvidenceFile, show: Show) -> None:
        sampled: list[tuple[VariantCard, Sampled]] = []
        with at_a_time() as sampling:
            samples = sampling.map(lambda card: self.sample(card, task), variants)
            for place, card in enumerate(variants):
                show(f"identity and work on {task.name}", card.name, place, len(variants))
                sampled.append((card, next(samples)))
        self.corpora[task.name] = task.described
        if "identity" in self.tiers:
            show(f"identity and work on {task.name}", "the replay", len(variants), len(variants))
            for (card, each), identity in zip(sampled, self.laboratory.prove(task, sampled), strict=True):
                if identity is not None and identity.kind == WRONG:
                    self.wrong.add((card.name, task.name))
                evidence.add(
                    "identity",
                    variant=card.name,
                    corpus=task.name,
                    status=each.answer["status"],
                    reason=why(each, task) if identity is None else None,
                    merges=None if each.merges is None else len(each.merges),
                    merges_sha256=each.digest,
                    identity=None if identity is None else asdict(identity),
                )
        if "work" in self.tiers:
            for card, each in sampled:
                if each.digest is not None:
                    self.observe_work(card.name, task.name, each.answer["tallies"], evidence)

    def sample(self, card: VariantCard, task: Task) -> Sampled:
        return self.laboratory.sample(Arm(self.head, card), task, phased=True)

    def observe_work(self, variant: str, corpus: str, tallies: Tallies, evidence: EvidenceFile) -> None:
        left_out = self.laboratory.card.work.left_out
        counted = {name: number for name, number in sorted(tallies.items()) if name.rpartition("/")[2] not in left_out}
        self.measured[variant, corpus] = counted
        expected = self.snapshot.of(variant, corpus) if self.snapshot else None
        of_another = self.snapshot is not None and self.snapshot.corpora.get(corpus) != self.corpora[corpus]
        evidence.add(
            "tallies",
            variant=variant,
            corpus=corpus,
            tallies=counted,
            expected=expected,
            snapshot=self.snapshot is not None,
            **({"other_corpus": True} if of_another and expected is not None else {}),
        )

    def accept(self, chosen: Sequence[VariantCard], whole: bool) -> list[str]:
        """Write what was measured into the snapshot, but of wrong merges nothing.

        Returns what changed by how much, a line each.
        """
        gone = self.gone(chosen) if whole else set()
        measured = {each: counted for each, counted in self.measured.items() if each not in self.wrong}
        after = accept(self.snapshot, self.corpora, measured, gone)
        said = changes(self.snapshot or Snapshot(), after)
        if said or self.snapshot is None or after != self.snapshot:
            write_snapshot(self.path, after)
        return said
