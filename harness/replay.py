"""The command python -m harness.replay: judge a file of merges, alone or beside another list."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.common.console import Parser, tell
from harness.common.errors import MISMATCH, OK, UNCHANGED, Refusal, guarded
from harness.common.progress import bar
from harness.common.units import count_text
from harness.proof.explain import (
    COLUMNS,
    TEXTS,
    as_row,
    by_tie_break,
    difference_as_json,
    difference_described,
    first_difference,
    rest,
    shown,
    some_merges,
    step_described,
)
from harness.proof.true_counts import MAXIMUM, TIE, WRONG, Replay, replay
from harness.runs.words import CorpusWords, add_words_arguments, corpus_words, is_variant, merges_of_variant
from harness.tokenizers.merges_file import FORMS, MergesFile, read_merges_file
from harness.worker.calling import OWN
from variants.contract import Merge, TieBreak

DESCRIPTION = f"""\
Check a file of merges against the true counts of a data set, one merge after another. At its
moment each was the most frequent pair, one of several equally frequent pairs (right under
some tie-breaks, which are named), or wrong. A merge of unknown tokens, one that comes twice,
and one below min_count are reported as such. The file is one of: {FORMS}.
--against says where two lists part instead, and why: the other list is a file, or a variant
that is trained on the data set now."""
EPILOG = """\
examples:
  python -m harness.replay merges.txt --data book.txt
  python -m harness.replay tokenizer.json data=stdlib tie_break=huggingface
  python -m harness.replay ranks.tiktoken --data book.txt pattern=gpt4 --format csv
  python -m harness.replay merges.txt --against heap --data book.txt

With tie_break=NAME ties have to be broken that way; without it, any choice among equals is
right. With vocab_size=N all merges up to that size have to be there, unless no pair is left.
min_count=N means the same as in training. With --against, a variant breaks ties in its own way
unless tie_break=NAME is given, and makes as many merges as the file unless vocab_size=N is.

exit code: 0 if every merge is right; 21 if one is not, or if they stop too early or go on
too long; with --against 0 if the lists are equal, 21 if they differ; 2 for a file that cannot
be read as merges; 22 if a variant made no merges."""
SHOWN = 10


def parser() -> argparse.ArgumentParser:
    made = Parser(
        prog="python -m harness.replay",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    made.add_argument("merges", metavar="MERGES", type=Path, help="a file of merges, or a folder that holds one")
    made.add_argument("--against", metavar="OTHER", help="a file of merges, or a variant, to find where the two part")
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
    return guarded(lambda: command(parser().parse_intermixed_args(argv)), UNCHANGED)


def command(asked: argparse.Namespace) -> int:
    if asked.against is not None and asked.format == "csv":
        raise Refusal("--against has no CSV; use --format json")
    if asked.against is not None:
        is_variant(asked.against)  # refuses a name that is neither a variant nor a file
    read = read_merges_file(asked.merges)
    words = corpus_words(asked)
    if words.cell.tie_break == OWN:
        raise Refusal(f"tie_break={OWN} is a trainer's own; name the one that these merges are to keep, or none")
    replayed = replayed_with_bar(asked.merges.name, read.merges, words)
    if asked.against is not None:
        return compare(asked, read, words, replayed)
    found = objections(replayed, words)
    if asked.format == "terminal":
        lines = [*described(asked.merges, read, words, replayed, asked.show), *found, verdict(replayed, found)]
        tell("\n".join(lines))
    elif asked.format == "json":
        json.dump(as_json(asked.merges, read, words, replayed, found), sys.stdout, indent=1)
        sys.stdout.write("\n")
    else:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in map(as_row, replayed.steps):
            writer.writerow({**row, "right_under": " ".join(row["right_under"])}.values())
    return MISMATCH if found else OK


def replayed_with_bar(name: str, merges: Sequence[Merge], words: CorpusWords) -> Replay:
    keywords = words.cell.extension.keywords()
    with bar(f"replaying {name}", len(merges), "merges") as show:
        return replay(words.word_counts, merges, min_count=words.cell.min_count, on_progress=show, **keywords)


def compare(asked: argparse.Namespace, read: MergesFile, words: CorpusWords, mine: Replay) -> int:
    """Say where the merges part from another list, and why."""
    if is_variant(asked.against):
        other = merges_of_variant(asked.against, words, len(read.merges))
    else:
        other = read_merges_file(Path(asked.against))
    theirs = replayed_with_bar(asked.against, other.merges, words)
    found = first_difference(mine, theirs)
    if asked.format == "json":
        json.dump({"data": words.record(), **difference_as_json(found, mine, theirs)}, sys.stdout, indent=1)
        sys.stdout.write("\n")
    else:
        lines = [f"A: {asked.merges}, {count_text(len(read.merges))} merges ({read.form})"]
        lines += [f"B: {asked.against}, {count_text(len(other.merges))} merges ({other.form})", words.described()]
        lines += ["the lists are equal"] if found is None else difference_described(found, mine, theirs)
        for side, each in (("A", mine), ("B", theirs)):
            lines += [f"{side}: {text}" for text in faults(each) or [verdict(each, [])]]
        tell("\n".join(lines))
    return OK if found is None else MISMATCH


def faults(replayed: Replay) -> list[str]:
    wrong = replayed.faults
    return [f"{some_merges(len(wrong))} not right, the first is merge {wrong[0].number}"] if wrong else []


def objections(replayed: Replay, words: CorpusWords) -> list[str]:
    """A sentence for each thing that a trainer asked for this would have done otherwise; none if it is all right."""
    found = faults(replayed)
    tie_break = TieBreak(words.cell.tie_break)
    if words.sets("tie_break") and (step := replayed.first_against(tie_break)) and step.judgement == TIE:
        found.append(
            f"merge {step.number} is a tie that {tie_break.value} breaks otherwise: it takes "
            f"{shown(step.best.choices[tie_break])}, not {shown(step.merge)}"
        )
    if words.sets("vocab_size"):
        asked, made = words.cell.num_merges, len(replayed.steps)
        if replayed.stops_too_early(asked):
            found.append(
                f"they stop too early: vocab_size={words.cell.vocab_size} asks for {count_text(asked)} merges, "
                f"and {rest(replayed.rest)}"
            )
        elif made > asked:
            found.append(
                f"they go on too long: vocab_size={words.cell.vocab_size} asks for {count_text(asked)} merges, "
                f"they are {count_text(made)}"
            )
    return found


def described(path: Path, read: MergesFile, words: CorpusWords, replayed: Replay, most: int) -> Iterator[str]:
    """What the merges came to, for people."""
    yield f"{path}: {count_text(len(read.merges))} merges ({read.form})"
    yield words.described()
    for judgement, told in TEXTS.items():
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


def as_json(path: Path, read: MergesFile, words: CorpusWords, replayed: Replay, found: Sequence[str]) -> dict[str, Any]:
    return {
        "file": path.name,
        "form": read.form,
        "merges": len(read.merges),
        "data": words.record(),
        "min_count": replayed.min_count,
        "right": not found,
        "objections": list(found),
        "judgements": {name: sum(step.judgement == name for step in replayed.steps) for name in TEXTS},
        "tie_breaks": [tie_break.value for tie_break in replayed.tie_breaks],
        "rest": {"count": replayed.rest.count, "tied": replayed.rest.tied, **by_tie_break(replayed.rest)},
        "tokens": replayed.tokens,
        "bytes": replayed.bytes,
        "steps": [
            {**as_row(step), **(by_tie_break(step.best) if step.judgement != MAXIMUM else {})}
            for step in replayed.steps
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
