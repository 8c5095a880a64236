"""The verdict: what a gate's observations mean, and nothing else. A replay comes here with what was stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.common.units import bytes_text, count_text, share_text
from harness.gate import verdict
from harness.gate.card import Card, card_in
from harness.gate.evidence import CONFIRM, HEAD, TRIAGE, Evidence, Observation, blocks_of
from harness.gate.rule import ESCALATE, Decision, Effect, decide, slower_phase
from harness.gate.snapshot import change
from harness.gate.verdict import Finding, Verdict, verdict_of
from harness.proof import IDENTICAL, UNPROVED, UP_TO_TIES, WRONG

IDENTITY, WORK, TIME = "identity", "work", "time"
PROVED = (IDENTICAL, UP_TO_TIES)
SAME_CODE = "the same code in base and head"
WHOLE_CALL = "whole call"
"""The phase of a tally that a trainer, as compiled ones do, tells at its end."""
STATES = {ESCALATE: verdict.INCONCLUSIVE}


def judged(evidence: Evidence) -> Verdict:
    """The verdict that follows from what was seen."""
    card = card_in(evidence.head)
    findings = [
        *(merges_found(each, card.known_wrong.get(each["variant"])) for each in evidence.of("identity")),
        *(finding for each in evidence.of("tallies") for finding in tallies(each, bool(evidence.of("accepted")))),
        *(instructions(card, each) for each in evidence.of("instructions")),
        *comparisons(card, evidence),
        *(told(each) for each in evidence.of("note")),
    ]
    excused = (WORK, TIME) if evidence.head.get("no_base") else ()
    missing = [tier for tier in card.tiers if tier not in excused and not measured(tier, findings)]
    return verdict_of([*findings, *(unmeasured(tier, findings) for tier in missing)])


def measured(tier: str, findings: Sequence[Finding]) -> bool:
    """Whether a tier that was asked for said anything: the same code in base and head is an answer, too.

    A tier of which it is already told that it could not be measured needs no second word.
    """
    states = {finding.state for finding in findings if finding.tier == tier}
    same = any(finding.tier == tier and finding.message.endswith(SAME_CODE) for finding in findings)
    elsewhere = any(finding.state != verdict.ABSENT for finding in findings)
    return bool(states - {verdict.ABSENT}) or (same and elsewhere)


def unmeasured(tier: str, findings: Sequence[Finding]) -> Finding:
    """A tier that was asked for and has not a single figure."""
    reasons = [finding.message for finding in findings if finding.tier == tier]
    others = f" (and {count_text(len(reasons) - 1)} more like it)" if len(reasons) > 1 else ""
    why = f"{reasons[0]}{others}" if reasons else "the card has no corpus for what was chosen"
    return Finding(tier, verdict.UNMEASURED, verdict.ALL, f"{tier} was not measured: {why}")


def told(observation: Observation) -> Finding:
    """What was not even tried, and why."""
    return Finding(
        observation["tier"],
        observation["state"],
        observation["variant"],
        observation["reason"],
        observation.get("corpus"),
    )


def merges_found(observation: Observation, known_wrong: str | None = None) -> Finding:
    """One variant's merges on one corpus; wrong ones of an outside trainer that is known for them are told only."""
    name, corpus = observation["variant"], observation["corpus"]
    subject = f"{name} on {corpus}"
    if observation["status"] == "skipped":
        return Finding(IDENTITY, verdict.ABSENT, name, f"{subject}: {observation['reason']}", corpus)
    if observation["status"] != "ok":
        return Finding(
            IDENTITY, verdict.UNMEASURED, name, f"{subject}: {observation['status']}: {observation['reason']}", corpus
        )
    identity = identity_in(observation)
    if identity["kind"] == WRONG:
        message = f"{subject}: {divergence(identity)}"
        if known_wrong is not None:
            details = {"known": known_wrong}
            return Finding(IDENTITY, verdict.ABSENT, name, f"{message}; known: {known_wrong}", corpus, details=details)
        return Finding(IDENTITY, verdict.MISMATCH, name, message, corpus)
    if identity["kind"] not in PROVED:
        why = identity["reason"] or observation["reason"] or "no reason was stored"
        return Finding(IDENTITY, verdict.UNMEASURED, name, f"{subject}: unproved, {why}", corpus)
    message = f"{subject}: {count_text(observation['merges'])} merges are right"
    return Finding(IDENTITY, verdict.PASS, name, message, corpus)


def identity_in(observation: Observation) -> Mapping[str, Any]:
    """The identity of the merges; for an observation of an earlier version, from its proof."""
    if "identity" in observation:
        return observation["identity"]  # type: ignore[no-any-return]
    kind = {"mismatch": WRONG, "unconfirmed": UNPROVED}.get(observation["proof"]["state"], IDENTICAL)
    return {"kind": kind, "reason": None, **(observation["first_divergence"] or {})}


def divergence(identity: Mapping[str, Any]) -> str:
    """The first merge that is wrong, in words."""
    if identity.get("reason"):
        return str(identity["reason"])
    if not identity.get("merge"):
        return "its merges are wrong"
    got, want = (
        "no more merges" if side is None else str(tuple(bytes.fromhex(part) for part in side))
        for side in (identity.get("got"), identity.get("want"))
    )
    return f"merge {count_text(identity['merge'])} is {got}, and {want} is right"


def tallies(observation: Observation, accepted: bool = False) -> Iterator[Finding]:
    """The counts of work of one variant on one corpus against the snapshot, unless they have become the snapshot."""
    name, corpus, counted, expected = (
        observation["variant"],
        observation["corpus"],
        observation["tallies"],
        observation["expected"],
    )
    if accepted:
        yield Finding(WORK, verdict.PASS, name, f"{name}: its counts of work are acknowledged", corpus)
        return
    if counted is None:
        message = f"{name}: the snapshot has counts of it, and there is no such variant; --accept removes them"
        yield Finding(WORK, verdict.DRIFT, name, message)
        return
    subject = f"{name} on {corpus}"
    if expected is None:
        state = verdict.DRIFT if observation["snapshot"] else verdict.ABSENT
        missing = "no counts of it in the snapshot" if observation["snapshot"] else "there is no snapshot of its counts"
        if not counted:
            yield Finding(WORK, verdict.ABSENT, name, f"{subject}: the trainer counts nothing of its work", corpus)
        else:
            yield Finding(WORK, state, name, f"{subject}: {missing}; --accept writes them", corpus)
        return
    if observation.get("other_corpus"):
        message = f"{subject}: the corpus is another than the snapshot's; --accept writes its counts"
        yield Finding(WORK, verdict.DRIFT, name, message, corpus)
        return
    changed = [tally for tally in sorted({*counted, *expected}) if counted.get(tally) != expected.get(tally)]
    for tally in changed:
        yield drift(name, corpus, tally, expected.get(tally), counted.get(tally))
    if not changed:
        number = f"{len(counted)} counts of work are" if len(counted) != 1 else "1 count of work is"
        yield Finding(WORK, verdict.PASS, name, f"{subject}: {number} as in the snapshot", corpus)


def drift(name: str, corpus: str, tally: str, before: int | None, after: int | None) -> Finding:
    """One tally that is not what the snapshot says."""
    phase, _, metric = tally.rpartition("/")
    phase = phase or WHOLE_CALL
    share = after / before - 1 if before and after is not None else None
    message = f"{name} on {corpus}, phase {phase}, tally {metric}: {change(before, after)}; --accept acknowledges it"
    return Finding(WORK, verdict.DRIFT, name, message, corpus, phase, metric, before, after, share)


def instructions(card: Card, observation: Observation) -> Finding:
    """Instructions of head against those of base; counted in several layouts of memory, the least against the most."""
    name = observation["variant"]
    if not observation["base"] or not observation["head"]:
        message = f"{name}, instructions: {observation['reason']}"
        return Finding(WORK, observation["state"], name, message, metric="instructions")
    before, after, layouts = max(observation["base"]), min(observation["head"]), len(observation["head"])
    share, most = surplus(observation["base"], observation["head"]), card.work.instructions.most
    change = f"{count_text(before)} -> {count_text(after)} ({signed(share, 2)})"
    ranges = f", the most and the least in {layouts} layouts of memory" if layouts > 1 else ""
    message = f"{name}, {WHOLE_CALL}, instructions: {change}{ranges}, at most {signed(most)}"
    state = verdict.REGRESSION if share > most else verdict.PASS
    return Finding(WORK, state, name, message, None, WHOLE_CALL, "instructions", before, after, share)


def surplus(base: Sequence[int], head: Sequence[int]) -> float:
    """By which share head takes more than base whatever the layout: the least of head against the most of base.

    >>> round(surplus([1000, 1020], [1071, 1080]), 6)
    0.05
    """
    return min(head) / max(base) - 1


def comparisons(card: Card, evidence: Evidence) -> Iterator[Finding]:
    """Every comparison of times."""
    samples: dict[str, list[Observation]] = {}
    for each in evidence.of("sample"):
        samples.setdefault(each["comparison"], []).append(each)
    for each in evidence.of("comparison"):
        yield comparison(card, each, samples.get(each["comparison"], []))


def comparison(card: Card, asked: Observation, samples: Sequence[Observation]) -> Finding:
    """One variant's times, unless a sample came to other merges, or failed."""
    name, corpus = asked["variant"], asked["corpus"]
    subject = f"{asked['comparison']} on {corpus}"
    for each in samples:
        state, tier = (verdict.UNMEASURED, TIME) if each["arm"] == HEAD else (verdict.ABSENT, TIME)
        where = f"in block {each['block']} of {each['stage']}"
        if each["status"] != "ok":
            said = f"{subject}: {each['arm']} was {each['status']} {where}: {each['reason']}"
            return Finding(tier, state, name, said, corpus)
        if each["merges_sha256"] != asked["merges_sha256"]:
            if each["arm"] == HEAD:
                state, tier = verdict.MISMATCH, IDENTITY
            said = f"{subject}: {each['arm']} made other merges than the proved ones {where}"
            return Finding(tier, state, name, said, corpus)
    triage, confirm = (blocks_of(samples, stage, asked["threads"]) for stage in (TRIAGE, CONFIRM))
    decision = decide(card.time, triage, confirm)
    phase = slower_phase(confirm or triage)
    return finding_of(decision, name, subject, corpus, phase)


def finding_of(
    decision: Decision, name: str, subject: str, corpus: str, phase: tuple[str, float, float] | None
) -> Finding:
    """A decision in words: of a regression also the phase that it is in."""
    state, effect = STATES.get(decision.state, decision.state), decision.effect
    details = {"effect": as_json(effect), "control": as_json(decision.control), "memory": decision.memory}
    if decision.metric == "memory" and decision.memory is not None:
        share, more = decision.memory
        message = f"{subject}, {WHOLE_CALL}, peak of memory: {signed(share)} ({bytes_text(round(more))} more)"
        return Finding(TIME, state, name, message, corpus, WHOLE_CALL, "peak_rss_bytes", share=share, details=details)
    metric = "seconds" if effect is None else f"{effect.clock} time"
    seen = "" if effect is None else f" ({effect_text(effect)})"
    if state != verdict.REGRESSION or effect is None:
        message = f"{subject}, {metric}: {decision.why}{seen}"
        return Finding(
            TIME, state, name, message, corpus, metric=metric, share=effect.share if effect else None, details=details
        )
    where = f"phase {phase[0]}" if phase else "no phase of its own"
    grown = f"; {where} {1000 * phase[1]:.1f} -> {1000 * phase[2]:.1f} ms" if phase else ""
    message = f"{subject}, {where}, {metric}: {effect_text(effect)}{grown}"
    return Finding(TIME, state, name, message, corpus, phase and phase[0], metric, share=effect.share, details=details)


def as_json(effect: Effect | None) -> dict[str, Any] | None:
    return None if effect is None else vars(effect)


def effect_text(effect: Effect) -> str:
    """An effect with its interval and the blocks it is of."""
    interval = f", between {signed(effect.low)} and {signed(effect.high)}" if effect.low is not None else ""
    left = "" if effect.blocks == effect.of else f" of {effect.of}"
    return f"{signed(effect.share)}{interval}, slower in {share_text(effect.slower)} of {effect.blocks}{left} blocks"


def signed(share: float | None, decimals: int = 1) -> str:
    """
    >>> signed(0.0512), signed(-0.004), signed(None)
    ('+5.1 %', '-0.4 %', 'unknown')
    """
    return "unknown" if share is None else f"{100 * share:+.{decimals}f} %"
