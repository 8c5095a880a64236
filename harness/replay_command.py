"""The command python -m harness.replay: a verdict on a file of merges, for people, for programs, merge by merge."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.__main__ import guarded
from harness.errors import MISMATCH, OK
from harness.merges_files import FORMS, MergesFile, read_merges_file
from harness.progress import bar
from harness.replay import DUPLICATE, MAXIMUM, TIE, TOO_RARE, UNKNOWN, WRONG, Best, Replay, Step, replay
from harness.units import count_text
from harness.words_asked import WordsAsked, add_words_arguments, words_asked
from variants.contract import Merge, TieBreak

DESCRIPTION = f"""\
Hold a file of merges against the true counts of a data set, merge by merge. Each was the
most frequent pair of its moment, one of several as frequent (and under which tie-breaks
the choice is right), or wrong; those that join unknown tokens, come twice, or stand below
min_count are told apart. The file is any of: {FORMS}."""
EPILOG = """\
examples:
  python -m harness.replay merges.txt --data book.txt
  python -m harness.replay tokenizer.json data=stdlib tie_break=huggingface
  python -m harness.replay ranks.tiktoken --data book.txt pattern=gpt4 --format csv

tie_break=NAME asks that ties, too, are broken that way; without it any choice among equals
is right. vocab_size=N asks for all merges up to that size: fewer are an error as long as
pairs are left. min_count=N holds here as in training.

exit code: 0 if every merge is right; 21 if one is not, or if they stop too early or go on
too long; 2 for a file that cannot be read as merges."""
SHOWN = 10
COLUMNS = ("merge", "left", "right", "judgement", "count", "greatest_count", "tied", "right_under")
TOLD = {
    MAXIMUM: "the most frequent pair of its moment",
    TIE: "one of several pairs that were as frequent",
    WRONG: "less frequent than another pair",
    TOO_RARE: "below min_count",
    UNKNOWN: "joining a token that nothing before it makes",
    DUPLICATE: "made before",
}


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m harness.replay",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("merges", metavar="MERGES", type=Path, help="a file of merges, or a folder that holds one")
    add_words_arguments(made)
    made.add_argument(
        "--format",
        choices=("terminal", "json", "csv"),
        default="terminal",
        help="json and csv tell of every merge, tokens in hexadecimal digits (default: %(default)s)",
    )
    made.add_argument(
        "--show", type=int, default=SHOWN, metavar="N", help="so many faults and ties in full (default: %(default)s)"
    )
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return guarded(lambda: command(parser().parse_intermixed_args(argv)), kept="nothing was changed")


def command(asked: argparse.Namespace) -> int:
    read = read_merges_file(asked.merges)
    words = words_asked(asked)
    with bar(f"replaying {asked.merges.name}", len(read.merges), "merges") as on_progress:
        replayed = replay(words.word_counts, read.merges, min_count=words.config["min_count"], on_progress=on_progress)
    found = objections(replayed, words)
    if asked.format == "terminal":
        lines = [*described(asked.merges, read, words, replayed, asked.show), *found, verdict(replayed, found)]
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    elif asked.format == "json":
        json.dump(as_json(asked.merges, read, words, replayed, found), sys.stdout, indent=1)
        sys.stdout.write("\n")
    else:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in map(as_row, replayed.steps):
            writer.writerow({**row, "right_under": " ".join(row["right_under"])}.values())
    return MISMATCH if found else OK


def objections(replayed: Replay, words: WordsAsked) -> list[str]:
    """A sentence for each thing that a trainer asked for this would have done otherwise; none if it is all right."""
    found = []
    if faults := replayed.faults:
        found.append(f"{some_merges(len(faults))} not right, the first is merge {faults[0].number}")
    tie_break = TieBreak(words.config["tie_break"])
    if words.is_said("tie_break") and (step := replayed.first_against(tie_break)) and step.judgement == TIE:
        found.append(
            f"merge {step.number} is a tie that {tie_break.value} breaks otherwise: it takes "
            f"{shown(step.best.choices[tie_break])}, not {shown(step.merge)}"
        )
    if words.is_said("vocab_size"):
        asked, made = words.cell.num_merges, len(replayed.steps)
        if replayed.stops_too_early(asked):
            found.append(
                f"they stop too early: vocab_size={words.config['vocab_size']} asks for {count_text(asked)} merges, "
                f"and {rest(replayed.rest)}"
            )
        elif made > asked:
            found.append(
                f"they go on too long: vocab_size={words.config['vocab_size']} asks for {count_text(asked)} merges, "
                f"they are {count_text(made)}"
            )
    return found


def described(path: Path, read: MergesFile, words: WordsAsked, replayed: Replay, most: int) -> Iterator[str]:
    """What the merges came to, for people."""
    yield f"{path}: {count_text(len(read.merges))} merges ({read.form})"
    yield words.described()
    for judgement, told in TOLD.items():
        steps = [step for step in replayed.steps if step.judgement == judgement]
        if steps or judgement in (MAXIMUM, TIE, WRONG):
            yield f"{count_text(len(steps)):>9}  {told}"
    if replayed.ties:
        yield from ties_described(replayed)
    for name, steps in (("not right", replayed.faults), ("ties", replayed.ties)):
        if steps and most > 0:
            yield f"{name}, the first {most} of {count_text(len(steps))}:" if len(steps) > most else f"{name}:"
            yield from (f"  {step_described(step)}" for step in steps[:most])
    if replayed.rest.count:
        yield f"after the last merge {rest(replayed.rest)}"
    elif read.merges:
        yield "after the last merge no pair is left"
    if replayed.bytes:
        yield f"tokens per byte of the words: {replayed.tokens / replayed.bytes:.4f}"


def ties_described(replayed: Replay) -> Iterator[str]:
    """For each tie-break how many of the choices among equals are its own."""
    for tie_break in replayed.judges:
        others = [step for step in replayed.ties if tie_break not in step.right_under]
        own = len(replayed.ties) - len(others)
        departs = f", not merge {others[0].number}" if others else ""
        yield f"{'':>9}  {tie_break.value}: {count_text(own)} of {count_text(len(replayed.ties))} ties{departs}"


def step_described(step: Step) -> str:
    """One merge, with what was true of it.

    >>> tied = {TieBreak.RAW_BYTES: (b"a", b"b"), TieBreak.GREATEST_BYTES: (b"c", b"d")}
    >>> step_described(Step(7, (b"a", b"b"), TIE, 3, Best(3, 2, tied)))
    "merge 7: b'a' + b'b', 3 times, as often as 1 other; right under raw_bytes; greatest_bytes takes b'c' + b'd'"
    """
    said = f"merge {step.number}: {shown(step.merge)}"
    if step.judgement in (UNKNOWN, DUPLICATE):
        return f"{said}, {TOLD[step.judgement]}"
    said += f", {times(step.count)}"
    if step.judgement == TOO_RARE:
        return f"{said}, {TOLD[TOO_RARE]}"
    if step.judgement == TIE:
        others = step.best.tied - 1
        said += f", as often as {count_text(others)} other{'s' if others > 1 else ''}"
        under = ", ".join(tie_break.value for tie_break in step.right_under)
        said += f"; right under {under}" if under else "; right under no tie-break of ours"
    return f"{said}; {choices(step)}" if step.best.count else f"{said}; no pair was left"


def choices(step: Step) -> str:
    """What the tie-breaks take instead, those together that take the same."""
    takers: dict[Merge, list[str]] = {}
    for tie_break, merge in step.best.choices.items():
        takers.setdefault(merge, []).append(tie_break.value)
    takers.pop(step.merge, None)
    if step.best.tied == 1:
        return f"the most frequent is {shown(*takers)}, {times(step.best.count)}"
    said = "; ".join(
        f"{', '.join(names)} {'take' if len(names) > 1 else 'takes'} {shown(merge)}" for merge, names in takers.items()
    )
    return (
        said if step.judgement == TIE else f"{count_text(step.best.tied)} pairs occur {times(step.best.count)}; {said}"
    )


def rest(best: Best) -> str:
    """What is left to merge."""
    merge = best.choices[TieBreak.GREATEST_BYTES]
    return f"{shown(merge)} is left with {times(best.count)}"


def verdict(replayed: Replay, found: Sequence[str]) -> str:
    if found:
        return "WRONG"
    if not replayed.steps:
        return "right: there are no merges"
    if not replayed.ties:
        return "right: every merge was the most frequent pair of its moment"
    names = ", ".join(tie_break.value for tie_break in replayed.tie_breaks)
    if names:
        return f"right: every merge was the most frequent pair of its moment, its ties broken by {names}"
    return "right up to ties: none of our tie-breaks makes all these choices among equals"


def as_json(path: Path, read: MergesFile, words: WordsAsked, replayed: Replay, found: Sequence[str]) -> dict[str, Any]:
    return {
        "file": path.name,
        "form": read.form,
        "merges": len(read.merges),
        "data": words.record(),
        "min_count": replayed.min_count,
        "right": not found,
        "objections": list(found),
        "judgements": {name: sum(step.judgement == name for step in replayed.steps) for name in TOLD},
        "tie_breaks": [tie_break.value for tie_break in replayed.tie_breaks],
        "rest": {"count": replayed.rest.count, "tied": replayed.rest.tied, **by_tie_break(replayed.rest)},
        "tokens": replayed.tokens,
        "bytes": replayed.bytes,
        "steps": [
            {**as_row(step), **(by_tie_break(step.best) if step.judgement != MAXIMUM else {})}
            for step in replayed.steps
        ],
    }


def as_row(step: Step) -> dict[str, Any]:
    left, right = in_hex(step.merge)
    under = [tie_break.value for tie_break in step.right_under]
    return dict(
        zip(
            COLUMNS,
            (step.number, left, right, step.judgement, step.count, step.best.count, step.best.tied, under),
            strict=True,
        )
    )


def by_tie_break(best: Best) -> dict[str, Any]:
    return {"choices": {tie_break.value: in_hex(merge) for tie_break, merge in best.choices.items()}}


def in_hex(merge: Merge) -> list[str]:
    return [token.hex() for token in merge]


def shown(merge: Merge) -> str:
    return " + ".join(repr(token) if len(token) <= 60 else f"{token[:60]!r}... ({len(token)} bytes)" for token in merge)


def times(count: int) -> str:
    return "once" if count == 1 else f"{count_text(count)} times"


def some_merges(number: int) -> str:
    return "1 merge is" if number == 1 else f"{count_text(number)} merges are"
