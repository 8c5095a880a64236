"""Giving every trained cell of a run its verdict: corpus by corpus, with the reference that is kept or can be made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from harness import kept, registry
from harness.identity import Replays, identify, is_asked, verdict_of
from harness.outcome import STOPPED, Trained
from harness.plan import TrainCell
from harness.proof import Claim, find_reference, reach, verdict
from harness.record_keys import WRONG
from harness.registry import OUTSIDE, VariantCard
from harness.replayed_claims import replayed_claims
from harness.smallest import smallest_text

# A trainer whose merges are to be proved must have been measured to the end or stopped by the wall limit.
PROVABLE = ("ok", *STOPPED)

RunJudge = Callable[[TrainCell, VariantCard, int], Claim | None]


def prove_all(trained: Sequence[Trained], run_judge: RunJudge, interrupted: bool) -> list[str]:
    """Set the verdicts; returns a sentence for each corpus on which families disagree.

    After an interruption nothing more is run and nothing kept: what is there has to do.
    """
    replays = Replays()
    groups: dict[tuple[str, str, int], list[Trained]] = {}
    for each in trained:
        if each.answer["status"] in PROVABLE and each.merges is not None and each.tie_break is not None:
            groups.setdefault((each.cell.reading.key(), each.tie_break, each.cell.min_count), []).append(each)
    sentences = [
        sentence
        for (_, tie_break, _), group in groups.items()
        for sentence in prove_group(group, tie_break, run_judge, None if interrupted else replays)
    ]
    if not interrupted:
        identify_all(trained, replays)
    return sentences


def identify_all(trained: Sequence[Trained], replays: Replays) -> None:
    """Say of outside trainers how far their merges are those that are defined; the verdict where nothing else has."""
    for each in filter(is_asked, trained):
        each.identity = identify(each, replays)
        if each.identity.kind == WRONG and each.answer.get("from_file"):
            each.identity = replace(each.identity, smallest=smallest_text(each.cell))
        if each.tie_break is None:
            each.verdict = verdict_of(each.identity, each.verdict)


def prove_group(group: Sequence[Trained], tie_break: str, run_judge: RunJudge, replays: Replays | None) -> list[str]:
    """Hold the cells that answer one question against its reference, which is made if need be.

    Without `replays`, after an interruption, nothing is made but what the group itself agrees on, and that not kept.
    """
    claims = [claim_of(trained) for trained in group]
    longest = max((trained.cell for trained in group), key=lambda cell: cell.num_merges)
    cell = replace(longest, tie_break=tie_break)
    asked = cell.reading, cell.tie_break, cell.min_count
    reference = kept.reference(*asked)
    needed = max(map(reach, claims))
    disagreements = []
    if reference is None or not reference.covers(needed):
        judges = [] if replays is None else registry.judges()
        heard = claims if replays is None else [*claims, *replayed_claims(group, tie_break, replays)]
        made, disagree = find_reference(heard, judges, lambda judge, size: run_judge(cell, judge, size))
        if made is not None:
            reference = made
            if replays is not None:
                kept.keep_reference(*asked, made)
        elif disagree:
            names = ", ".join(dict.fromkeys(claim.variant for claim in claims))
            disagreements.append(
                f"{cell.reading.file.name}: {names} and the trainers they were held against disagree, and no "
                "two families agree; none of these merges is proved"
            )
    for trained, claim in zip(group, claims, strict=True):
        trained.verdict = verdict(claim, reference)
    return disagreements


def claim_of(trained: Trained) -> Claim:
    cell, whole = trained.cell, trained.answer["status"] == "ok"
    return Claim(
        cell.variant.name,
        cell.variant.family,
        trained.merges or [],
        cell.num_merges,
        whole,
        OUTSIDE in cell.variant.tags,
    )
