"""The command python -m harness.divergence: the first difference of two lists of merges, explained."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.common.errors import MISMATCH, OK, UNCHANGED, guarded
from harness.common.streams import Parser, tell
from harness.common.units import count_text, share_text, times_text
from harness.proof.divergence import BY_TIES, ENDS, EQUAL, Divergence, divergence, drift_of
from harness.proof.shown import as_row, by_tie_break, choices, rest, shown, some_merges
from harness.proof.true_counts import RIGHT, TIE, Replay, Step
from harness.runs.asked import (
    MergesAsked,
    WordsAsked,
    add_words_arguments,
    is_variant,
    merges_in_file,
    merges_of_variant,
    words_asked,
)

DESCRIPTION = """\
Show where two lists of merges part, the true counts at that moment, and the consequences. A
and B are each a variant (a name in conf/variant, or package.module:function), which is trained
on the data set now, or a file of merges in any form that python -m harness.replay reads."""
EPILOG = """\
examples:
  python -m harness.divergence heap mine:train --data book.txt
  python -m harness.divergence flat peer_huggingface --data stdlib
  python -m harness.divergence merges.txt tokenizer.json --data book.txt pattern=gpt4
  python -m harness.divergence heap heap --b variant.params.push=grown

Without tie_break=NAME a trainer breaks ties in its own way. If one of the two is a file, the
other makes as many merges, unless vocab_size=N is given.

exit code: 0 if they are equal, 21 if they differ, 2 for a usage error, 22 if a variant made
no merges."""


def parser() -> argparse.ArgumentParser:
    made = Parser(
        prog="python -m harness.divergence",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    for name in ("A", "B"):
        made.add_argument(name.lower(), metavar=name, help="a variant, or a file of merges")
    add_words_arguments(made)
    for name in ("A", "B"):
        made.add_argument(
            f"--{name.lower()}", dest=f"of_{name.lower()}", metavar="NAME=VALUE", action="append", default=[],
            help=f"an override for {name} alone, where it is a variant",
        )  # fmt: skip
    made.add_argument("--format", choices=("terminal", "json"), default="terminal", help="(default: %(default)s)")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return guarded(lambda: command(parser().parse_intermixed_args(argv)), UNCHANGED)


def command(asked: argparse.Namespace) -> int:
    variants = [is_variant(name) for name in (asked.a, asked.b)]
    words = words_asked(asked)
    a, b = both(asked, variants, words)
    parted = divergence(
        words.word_counts, a.merges, b.merges, min_count=words.cell.min_count, **words.cell.extension.keywords()
    )
    if asked.format == "json":
        json.dump(as_json(a, b, words, parted), sys.stdout, indent=1)
        sys.stdout.write("\n")
    else:
        tell("\n".join(described(a, b, words, parted)))
    return OK if parted.cause == EQUAL else MISMATCH


def both(asked: argparse.Namespace, variants: Sequence[bool], words: WordsAsked) -> list[MergesAsked]:
    """The two lists, those in files first: they say how many merges a trainer is to make."""
    names, own = (asked.a, asked.b), (asked.of_a, asked.of_b)
    found = [None if trains else merges_in_file(name) for name, trains in zip(names, variants, strict=True)]
    longest = max((len(each.merges) for each in found if each is not None), default=None)
    return [
        merges_of_variant(name, words, overrides, longest) if each is None else each
        for each, name, overrides in zip(found, names, own, strict=True)
    ]


def described(a: MergesAsked, b: MergesAsked, words: WordsAsked, parted: Divergence) -> Iterator[str]:
    """All there is to say, for people."""
    for side, each in (("A", a), ("B", b)):
        yield f"{side}: {each.name}, {count_text(len(each.merges))} merges ({each.origin})"
    yield words.described()
    if parted.place is None:
        yield f"equal: {count_text(len(a.merges))} merges, one by one"
        yield from (f"A and B: {told}" for told in faults(parted.a))
        return
    before = "no merge before it" if not parted.place else f"{count_text(parted.place)} equal before it"
    yield f"first difference: merge {count_text(parted.place + 1)}, {before}"
    for side, step, replayed in zip("AB", parted.candidates, (parted.a, parted.b), strict=True):
        yield f"  {side} {candidate(step, replayed)}"
    yield f"  {cause(parted)}"
    yield "what became of it"
    yield from (f"  {name:<24}{told}" for name, told in drift(parted).items())
    for side, replayed in (("A", parted.a), ("B", parted.b)):
        yield from (f"  {side}: {told}" for told in faults(replayed))


def candidate(step: Step | None, replayed: Replay) -> str:
    """What one of the two has at the first difference."""
    if step is None:
        left = f"; {rest(replayed.rest)}" if replayed.rest.count else "; no pair is left"
        return f"has ended{left}"
    said = f"takes {shown(step.merge)}, {times_text(step.count)}: "
    if step.judgement not in RIGHT:
        return f"{said}{step.judgement.replace('_', ' ')}"
    if step.judgement != TIE:
        return f"{said}right, the most frequent pair"
    under = ", ".join(tie_break.value for tie_break in step.right_under)
    return f"{said}right under {under}" if under else f"{said}as frequent as any, right under no tie-break of ours"


def cause(parted: Divergence) -> str:
    best = parted.best
    assert best is not None, "where they differ one of them takes something"
    if parted.cause == BY_TIES:
        return f"a tie: {count_text(best.tied)} pairs occur {times_text(best.count)}"
    if parted.cause == ENDS:
        ended = parted.a if parted.candidates[0] is None else parted.b
        if ended.rest.count >= ended.min_count:
            return "one ended while pairs were left"
        return "one went on when no pair was left" if not ended.rest.count else "one went on below min_count"
    step = next(step for step in parted.candidates if step is not None and step.judgement not in RIGHT)
    return choices(step)


def drift(parted: Divergence) -> dict[str, str]:
    """How far the lists are from each other in the end."""
    found = drift_of(parted)
    most = max(len(parted.a.steps), len(parted.b.steps))
    told = {
        "merges in common": f"{count_text(found.merges_in_common)} of {count_text(most)} "
        f"({share_text(found.merges_in_common / most)}), {count_text(found.at_the_same_place)} at the same place",
        "tokens in common": f"{count_text(found.tokens_in_common)} of the {count_text(found.tokens_of_either)} "
        f"that either has ({share_text(found.tokens_in_common / found.tokens_of_either)})",
    }
    if parted.a.bytes:
        per_byte = [each.tokens / each.bytes for each in (parted.a, parted.b)]
        change = 100 * (per_byte[1] / per_byte[0] - 1)
        told["tokens per byte"] = f"A {per_byte[0]:.4f}, B {per_byte[1]:.4f} ({change:+.3f} %)"
    return told


def faults(replayed: Replay) -> Iterator[str]:
    """Whether a list is right by itself."""
    if wrong := replayed.faults:
        yield f"{some_merges(len(wrong))} not right, the first is merge {count_text(wrong[0].number)}"
        return
    names = ", ".join(tie_break.value for tie_break in replayed.tie_breaks)
    yield f"every merge is right, ties broken by {names or 'none of our rules'}"


def as_json(a: MergesAsked, b: MergesAsked, words: WordsAsked, parted: Divergence) -> dict[str, Any]:
    sides: list[Mapping[str, Any]] = [
        {
            "name": each.name,
            "origin": each.origin,
            "merges": len(each.merges),
            "faults": len(replayed.faults),
            "first_fault": replayed.faults[0].number if replayed.faults else None,
            "tie_breaks": [tie_break.value for tie_break in replayed.tie_breaks],
            "tokens": replayed.tokens,
            "bytes": replayed.bytes,
        }
        for each, replayed in ((a, parted.a), (b, parted.b))
    ]
    first = None
    if parted.place is not None and parted.best is not None:
        mine, theirs = (None if step is None else as_row(step) for step in parted.candidates)
        best = {"count": parted.best.count, "tied": parted.best.tied, **by_tie_break(parted.best)}
        first = {"merge": parted.place + 1, "a": mine, "b": theirs, "best": best}
    return {
        "cause": parted.cause,
        "only_ties": parted.only_ties,
        "data": words.record(),
        "a": sides[0],
        "b": sides[1],
        "first_difference": first,
        "drift": vars(drift_of(parted)),
    }


if __name__ == "__main__":
    sys.exit(main())
