"""The command python -m harness.replay: judge a file of merges, alone or beside another list."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.common.command import Parser, exit_code_of
from harness.common.errors import MISMATCH, OK, UNMEASURED, Refusal
from harness.common.files import check_writable, files_at
from harness.common.printing import print_stderr, print_stdout
from harness.common.registry import folder_option, use_folder
from harness.common.units import bytes_text, count_text, occasions_text
from harness.common.values import first_difference
from harness.proof.compiled_replay import Moment, Replay
from harness.proof.prove import (
    certificate,
    check_plain,
    describe,
    explained,
    merge_text,
    write_certificate,
)
from harness.runs.blocks import words_of
from harness.runs.cells import Reading, TrainCell
from harness.runs.overrides import quoted
from harness.runs.plan import plan_of_words
from harness.tokenizers.folder import read_tokenizer
from harness.tokenizers.forms import FORMS, MANIFEST, MERGES, TOKENIZER_JSON, read_merges_file
from harness.tokenizers.learned import Learned, pattern_name
from harness.worker.calling import OWN
from variants.contract import Merge, TieBreak, WordCounts

DESCRIPTION = f"""\
Check a file of merges against the true counts of a data set, one merge after another. At its
moment each was the most frequent pair, one of several equally frequent pairs (right under
some tie-breaks, which are named), or wrong. The first wrong merge is explained; those behind it
depend on it, and are not judged. The file is one of: {FORMS}."""
EPILOG = """\
examples:
  python -m harness.replay merges.txt --data book.txt
  python -m harness.replay tokenizer.json data=stdlib tie_break=huggingface
  python -m harness.replay ranks.tiktoken --data book.txt pattern=gpt4
  python -m harness.replay merges.txt --against tokenizer.json --data book.txt
  python -m harness.replay merges.txt --data book.txt --certificate book.certificate.gz

A saved tokenizer says its pattern, special tokens, min_count and the merges that it inherited;
what you set otherwise is named first. For other files, set pattern=NAME as in training.

With tie_break=NAME ties have to be broken that way; without it, any choice among equals is
right. With vocab_size=N all merges up to that size have to be there, unless no pair is left.
min_count=N means the same as in training.

exit code: 0 if every merge is right, with --against if the lists are equal; 21 if not, or if
they stop too early or go on too long; 2 for a usage error; 22 for a file that cannot be read."""


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = Parser(prog="python -m harness.replay", description=DESCRIPTION, epilog=EPILOG)
    add = parser.add_argument
    add("merges", metavar="MERGES", type=Path, help="a file of merges, or a folder that holds one")
    one_list = parser.add_mutually_exclusive_group()
    about = "compare with another file of merges"
    one_list.add_argument("--against", metavar="OTHER", type=Path, help=about)
    add(
        "overrides",
        metavar="NAME=VALUE",
        nargs="*",
        help="set what python -m harness sets: pattern=gpt4 ...",
    )
    add(
        "--data",
        metavar="NAME|FILE",
        help="name the text that the merges were learned from: a data set or a file",
    )
    about = "write what others need to check right merges without us; .gz is compressed"
    one_list.add_argument("--certificate", metavar="FILE", type=Path, help=about)
    add("--overwrite", action="store_true", help="replace that certificate")
    folder_option(parser)

    return exit_code_of(lambda: command(parser.parse_intermixed_args(argv)))


def command(options: argparse.Namespace) -> int:
    use_folder(options.config_dir)
    paths = [options.merges] if options.against is None else [options.merges, options.against]
    lists = [listed(path) for path in paths]
    keys = {re.split("[.=]", override.lstrip("+"))[0] for override in options.overrides}
    if options.data is None and "data" not in keys:
        raise Refusal(f"pass --data FILE, the text that {paths[0]} was learned from")

    plan = plan_of_words(options.data, [*lists[0].overrides(keys), *options.overrides])
    cell = plan.cells[0]
    if cell.tie_break == OWN:
        raise Refusal(
            f"tie_break={OWN} is a trainer's own; pass the tie-break of these merges, or none"
        )

    if options.certificate is not None:
        inputs = [*plan.inputs, *files_at(options.merges)]
        check_plain(cell.extension is None and not lists[0].inherited)
        check_writable(options.certificate, inputs, overwrite=options.overwrite)
    words = words_of(cell, plan.settings)[0]
    if len(lists) > 1:
        return print_comparison(lists, words, cell)
    return print_judgement(lists[0], words, cell, keys, options)


def print_comparison(lists: Sequence[Listed], words: WordCounts, cell: TrainCell) -> int:
    """Print where two lists differ, then what is wrong with each; returns the exit code."""
    replays = [one.replay(words, cell) for one in lists]
    different = list(differences_of_lists(*replays))
    lines = different or ["the lists are equal"]
    for side, merge_list in zip("AB", lists, strict=True):
        lines += [*merge_list.differing(cell), f"{side} {merge_list.title}"]
    lines.append(described(words, cell))

    for side, replay in zip("AB", replays, strict=True):
        for text in faults(replay) or [verdict(replay)]:
            lines.append(f"{side}: {text}")
    print_stdout("\n".join(lines))
    return MISMATCH if different else OK


def print_judgement(
    merge_list: Listed,
    words: WordCounts,
    cell: TrainCell,
    keys: Container[str],
    options: argparse.Namespace,
) -> int:
    """Print the verdict on a list, then what it follows from, and write the certificate of a right
    one; returns the exit code.
    """
    replay = merge_list.replay(words, cell)
    problems = objections(replay, cell, keys)
    differing = merge_list.differing(cell)
    hints = fitting(merge_list, cell) if problems and not differing else []

    lines = [verdict(replay, problems), *problems, *hints, *differing]
    if options.certificate is not None and not problems:
        lines.append(certified(options, replay, cell, keys))
    lines += [merge_list.title, described(words, cell), *account(replay)]
    print_stdout("\n".join(lines))
    return MISMATCH if problems else OK


def certified(
    options: argparse.Namespace, replay: Replay, cell: TrainCell, keys: Container[str]
) -> str:
    """Write the certificate of a right list, by the tie-break that was set or the first that fits;
    returns a note.
    """
    path = options.certificate
    tie_breaks = [TieBreak(cell.tie_break)] if "tie_break" in keys else fitting_ties(replay)
    if not tie_breaks:
        return f"no certificate {path}: none of our tie-breaks makes all these choices"
    wanted = cell.num_merges if "vocab_size" in keys else len(replay.merges)
    content = certificate(replay.words, replay.merges, tie_breaks[0], cell.min_count, wanted)
    write_certificate(path, content, overwrite=options.overwrite)
    return f"wrote {path}"


class Listed(NamedTuple):
    """A list of merges, and what a saved tokenizer says of their training; `learned` is None if
    nothing does.
    """

    path: Path
    merges: Sequence[Merge]
    form: str
    manifest: Path
    learned: Learned | None
    origin: Mapping[str, Any]

    @property
    def title(self) -> str:
        return f"{self.path}: {count_text(len(self.merges))} merges ({self.form})"

    @property
    def min_count(self) -> int:
        return int(self.origin.get("min_count", 1))

    @property
    def inherited(self) -> int:
        """How many of the first merges were inherited."""
        return int(self.origin.get("inherited_merges", 0))

    def replay(self, words: WordCounts, cell: TrainCell) -> Replay:
        extending = cell.extending() or {"inherited": self.merges[: self.inherited]}
        merges, name = self.merges, self.path.name
        return Replay(words, merges, len(merges), cell.min_count, name=name, **extending)

    def overrides(self, keys: Container[str]) -> list[str]:
        """The settings that it decides, but for those that the command sets."""
        if self.learned is None:
            return []

        special_tokens = ",".join(map(quoted, self.learned.special_tokens))
        pattern = pattern_name(self.learned.pattern)
        decided = {
            "pattern": f"pattern={pattern}" if pattern else f"pattern.regex={self.learned.pattern}",
            "special_tokens": f"special_tokens=[{special_tokens}]",
            "min_count": f"min_count={self.min_count}",
        }
        return [override for key, override in decided.items() if key not in keys]

    def differing(self, cell: TrainCell) -> list[str]:
        """A line that names what it says otherwise than the command; none if nothing differs."""
        if self.learned is None:
            return []

        reading = cell.reading
        pattern = pattern_name(self.learned.pattern) or repr(self.learned.pattern)
        special_tokens = shown(self.learned.special_tokens)
        facts = [
            ("pattern", pattern, reading.pattern_name),
            ("special tokens", special_tokens, shown(reading.corpus.special_tokens)),
            ("min_count", self.min_count, cell.min_count),
        ]
        data = self.origin.get("data") or {}
        if data.get("sha256"):
            says = text_name(str(data.get("name")), data["sha256"])
            facts.append(("data", says, text_name(reading.file.name, reading.file.sha256)))

        differing = [f"{name} {says}, not {used}" for name, says, used in facts if says != used]
        return [f"{self.manifest} says: {'; '.join(differing)}"] if differing else []


def text_name(name: str, sha256: str) -> str:
    return f"{name} (sha256 {sha256[:8]})"


def shown(special_tokens: Iterable[str]) -> str:
    return " ".join(special_tokens) or "none"


def listed(path: Path) -> Listed:
    """The merges of a file, with what the manifest of its folder, or a tokenizer.json, says of
    them. Raises Refusal if there are none.
    """
    file = read_merges_file(path)
    if not file.merges:
        why = "has no merge, so nothing in it is right or wrong"
        raise Refusal(f"{path} {why}; pass another", UNMEASURED)

    folder = path if path.is_dir() else path.parent
    says_more = path.is_dir() or path.name in (TOKENIZER_JSON, MERGES)
    names = (MANIFEST, TOKENIZER_JSON) if says_more else ()
    manifest = next((folder / name for name in names if (folder / name).is_file()), None)
    learned: Learned | None = None
    origin: Mapping[str, Any] = {}
    if manifest is not None:
        try:
            learned, origin = read_tokenizer(manifest, ..., None)
        except Refusal as refusal:
            print_stderr(f"{refusal}; judged by the settings of this command")
    return Listed(path, file.merges, file.form, manifest or path, learned, origin)


def fitting(merge_list: Listed, cell: TrainCell) -> list[str]:
    """Return the settings that a file confirms; if no file names the pattern, the one that was used."""
    if merge_list.learned is not None:
        return [f"{merge_list.manifest} says the same pattern, special tokens, min_count and data"]

    if cell.reading.file.table:
        return []
    how = how_read(cell.reading)
    return [
        f"no file says how the text was read, so it was by {how}; pass pattern=NAME for another"
    ]


def how_read(reading: Reading) -> str:
    return f"pattern {reading.pattern_name}, special tokens {shown(reading.corpus.special_tokens)}"


def described(word_counts: WordCounts, cell: TrainCell) -> str:
    """The data set in a line, for people."""
    file, words = cell.reading.file, f"{count_text(len(word_counts))} words"
    if file.table:
        return f"{file.name}: {words}, given with their counts"
    return f"{file.name}: {bytes_text(file.bytes)}, {words}, {how_read(cell.reading)}"


def differences_of_lists(a: Replay, b: Replay) -> Iterator[str]:
    """Yield the first difference of two lists, its reason, and how much they share; nothing if they
    are equal.
    """
    if a.merges == b.merges:
        return

    index = first_difference(a.merges, b.merges)
    yield f"first difference: merge {count_text(index + 1)}, {count_text(index)} equal before it"
    for side, replay in zip("AB", (a, b), strict=True):
        if index < len(replay.merges):
            yield f"  {side} {describe(explained(replay, index + 1))}"
        else:
            yield f"  {side} has ended; {rest_text(replay.end)}"

    tokens, others = ({left + right for left, right in each.merges} for each in (a, b))
    merges = f"{len({*a.merges} & {*b.merges}):,} of {len({*a.merges, *b.merges}):,} merges"
    yield f"in common: {merges}, {len(tokens & others):,} of {len(tokens | others):,} tokens"


def faults(replay: Replay) -> list[str]:
    """The first merge that no trainer may make, whatever its tie-break; none if all are right."""
    right = replay.up_to_ties.right
    return [describe(explained(replay, right + 1))] if right < len(replay.merges) else []


def objections(replay: Replay, cell: TrainCell, keys: Container[str]) -> list[str]:
    """A sentence for each thing that a trainer with these options would have done otherwise; none
    if all is right.
    """
    problems = faults(replay)
    tie_break = TieBreak(cell.tie_break)
    if "tie_break" in keys and (right := replay.reached[tie_break]) < replay.up_to_ties.right:
        step = explained(replay, right + 1)
        problems.append(
            f"merge {step.number} is a tie that {tie_break.value} breaks otherwise: it takes "
            f"{merge_text(step.choices[tie_break])}, not {merge_text(step.merge)}"
        )

    if "vocab_size" in keys:
        requested, number = cell.num_merges, len(replay.merges)
        size = f"vocab_size={cell.vocab_size} requests {count_text(requested)} merges"
        left = 0 if replay.end is None else replay.end.highest
        if number < requested and left >= cell.min_count:
            problems.append(f"they stop too early: {size}, and {rest_text(replay.end)}")
        elif number > requested:
            problems.append(f"they go on too long: {size}, they are {count_text(number)}")
    return problems


def account(replay: Replay) -> Iterator[str]:
    """How many merges were ties, what each tie-break makes of them, and what is left, in lines for
    people.
    """
    right, ties, judged = replay.up_to_ties.right, replay.ties, len(replay.up_to_ties.counts)
    if right > judged:
        yield f"{count_text(right - judged):>9}  inherited"
    yield f"{count_text(judged - ties):>9}  the most frequent pair of their moment"
    yield f"{count_text(ties):>9}  one of several most frequent pairs"
    if behind := len(replay.merges[right + 1 :]):
        yield f"{count_text(behind):>9}  not judged, behind the wrong one"

    if ties:
        for tie_break, reached in replay.reached.items():
            breaks = f"not merge {reached + 1}" if reached < right else "all of these ties"
            yield f"{'':>9}  {tie_break.value}: {breaks}"
        first = next(at for at, sharing in enumerate(replay.up_to_ties.sharing) if sharing > 1)
        yield f"the first tie is {describe(explained(replay, right - judged + first + 1))}"

    yield f"after the last merge {rest_text(replay.end)}"


def fitting_ties(replay: Replay) -> list[TieBreak]:
    """The tie-breaks under which every merge is right."""
    return [tie_break for tie_break in TieBreak if replay.reached[tie_break] == len(replay.merges)]


def rest_text(moment: Moment | None) -> str:
    """The pair that remains to be merged next."""
    if moment is None or not moment.best:
        return "no pair is left"
    pair = merge_text(moment.choice(TieBreak.GREATEST_BYTES))
    return f"{pair} is left with {occasions_text(moment.highest)}"


def verdict(replay: Replay, problems: Sequence[str] = ()) -> str:
    if problems:
        return "WRONG"
    names = ", ".join(tie_break.value for tie_break in fitting_ties(replay))
    if replay.ties and not names:
        return "right up to ties: none of our tie-breaks makes all these choices among equals"
    right = "right: every merge was the most frequent pair of its moment"
    return f"{right}, its ties broken by {names}" if replay.ties else right


if __name__ == "__main__":
    sys.exit(main())
