"""CS336's first assignment: the tokenizer that it asks for, and the figures to hand in, measured."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from harness.common import registry
from harness.common.command import Parser, exit_code_of
from harness.common.errors import MISMATCH, OK, UNMEASURED, Refusal
from harness.common.files import temporary_folder
from harness.common.printing import print_stdout
from harness.common.units import (
    bytes_text,
    counted_text,
    rate_text,
    seconds_text,
    share_text,
    token_text,
)
from harness.common.values import read_json
from harness.records.file import Record
from harness.results.rows import Row, rows
from harness.runs.cells import Plan
from harness.runs.plan import planned
from harness.runs.run import run_plan
from harness.tokenizers import forms
from harness.tokenizers.folder import parse
from harness.tokenizers.learned import put_together
from harness.tokenizers.model import Tokenizer, load
from variants.contract import COUNTING_PHASES, GPT2_PATTERN, Merge

PILE_BYTES = 825_000_000_000
DOCUMENTS = 10
MOST_SAMPLED_BYTES = 10_000_000
BLOCK = 1 << 16  # characters
SECONDS_OF_ENCODING = 1.0
EPILOG = """\
examples:
  python -m harness.cs336 my_bpe:train_bpe data=tinystories vocab_size=10000
  python -m harness.cs336 my_bpe:train_bpe --tokenizer my_bpe:Tokenizer

exit code: 0; 2 for a usage error; 21 if merges or ids are wrong; 22 if it could not be measured."""


class AssignmentTokenizer:
    """A tokenizer with the methods of the assignment; `ours` is the same with all of ours.

    >>> vocab = {byte: bytes([byte]) for byte in range(256)} | {256: b"th"}
    >>> tokenizer = AssignmentTokenizer(vocab, [(b"t", b"h")], ["<|endoftext|>"])
    >>> tokenizer.encode("the<|endoftext|>"), tokenizer.decode([256, 101, 257])
    ([256, 101, 257], 'the<|endoftext|>')
    """

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Iterable[Merge],
        special_tokens: Iterable[str] | None = None,
    ) -> None:
        """Take what `train_bpe` returns; a special token that is not in `vocab` gets the next id."""
        self.ours = Tokenizer.from_vocab(vocab, merges, special_tokens)

    @classmethod
    def from_files(
        cls,
        vocab_filepath: str | Path,
        merges_filepath: str | Path,
        special_tokens: Iterable[str] | None = None,
    ) -> AssignmentTokenizer:
        """Read vocab.json and merges.txt, as `save=FOLDER` writes them. Raises Refusal for a file
        that cannot be used.
        """
        vocab_path = Path(vocab_filepath)
        ids: dict[str, int] = parse(vocab_path, partial(read_json, kind=dict[str, int]))
        merges: Sequence[Merge] = parse(Path(merges_filepath), forms.read_merges)
        learned = parse(vocab_path, lambda _: put_together(ids, merges, {}, GPT2_PATTERN))
        return cls(learned.vocab, merges, special_tokens)

    def encode(self, text: str) -> list[int]:
        return self.ours.encode(text)

    def encode_iterable(self, iterable: Iterable[str]) -> Iterator[int]:
        """Yield the ids of a text that comes in parts, such as an open file, in bounded memory."""
        return self.ours.encode_iterable(iterable)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of some ids, with U+FFFD for bytes that are not UTF-8."""
        return self.ours.decode_text(ids, errors="replace")


Encode = Callable[[str], Sequence[int]]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = Parser(
        prog="python -m harness.cs336",
        description="Measure a train_bpe of CS336 and print the figures to hand in.",
        epilog=EPILOG,
    )
    parser.add_argument("trainer", metavar="MODULE:FUNCTION", help="such as my_bpe:train_bpe")
    parser.add_argument(
        "overrides", metavar="NAME=VALUE", nargs="*", help="as for python -m harness"
    )
    about = "encode with this class, called with (vocab, merges, special_tokens); default: ours"
    parser.add_argument("--tokenizer", metavar="MODULE:CLASS", help=about)
    return exit_code_of(lambda: command(parser.parse_intermixed_args(arguments)))


def command(options: argparse.Namespace) -> int:
    plan = planned([f"variants={options.trainer}", *options.overrides])
    if len(plan.cells) != 1:
        raise Refusal("pass one trainer, one data set and one vocab_size")
    reading = plan.cells[0].reading
    special_tokens = reading.corpus.special_tokens
    documents = []
    if special_tokens and not reading.file.table:
        documents = sample(reading.file.path, special_tokens[0])
    if not documents:
        advice = "pass a text, and the special token between its documents"
        raise Refusal(f"{reading.file.name} has no documents to encode; {advice}")

    row, ours = measured(plan)
    encode: Encode = ours.encode
    if options.tokenizer is not None:
        make = registry.resolve(options.tokenizer)
        encode = make(dict(ours.vocab), list(ours.merges), list(special_tokens)).encode
    for number, document in enumerate(documents, 1):
        if list(encode(document)) != ours.encode(document):
            what = f"{options.tokenizer} gives wrong ids for document {number}"
            advice = "compare them with those of harness.cs336.AssignmentTokenizer"
            raise Refusal(f"{what}, {document[:40]!r}...; {advice}", MISMATCH)

    lines = training_lines(row, ours)
    lines += [encoding_line(documents, encode), throughput_line(reading.file.path, encode)]
    print_stdout("\n".join(lines))
    return OK


def measured(plan: Plan) -> tuple[Row, Tokenizer]:
    """Return the row of a plan's only trainer, and its tokenizer. Raises Refusal unless its merges
    are right.
    """
    records: list[Record] = []
    with temporary_folder() as folder:
        save = plan.settings.save or str(folder / "saved")
        saving = plan._replace(settings=replace(plan.settings, save=save))
        run_plan(saving, folder, lambda found, _: records.extend(found))
        (row,) = rows(records)
        if row.status != "ok":
            code = MISMATCH if row.status == "mismatch" else UNMEASURED
            raise Refusal(f"{row.name}: {row.status}, {row.reason}", code)
        return row, load(save)


def training_lines(row: Row, tokenizer: Tokenizer) -> list[str]:
    """Sentences about the training: its proof, time, memory, pre-tokenization, longest token."""
    data = f"{row.corpus.name} ({bytes_text(row.corpus.bytes or 0)})"
    merges = counted_text(len(tokenizer.merges), "merge")
    lines = [
        f"{row.name} on {data}: all {merges} are right ({row.identity.kind.replace('_', ' ')})."
    ]

    if row.exhausted:
        size = counted_text(len(tokenizer.vocab), "token")
        lines.append(f"No pair was left, so the vocabulary has {size}: fewer than vocab_size.")

    memory = bytes_text(row.peak_rss_bytes) if row.peak_rss_bytes else "an unknown amount"
    lines.append(f"Training took {seconds_text(row.total or 0)} and {memory} of memory.")

    counting = sum(row.seconds.get(phase, 0.0) for phase in COUNTING_PHASES)
    if counting and row.total:
        lines.append(f"Pre-tokenization took {share_text(counting / row.total)} of that time.")
    else:
        lines.append(
            "The share of pre-tokenization is unknown: give the function a parameter meter and call "
            'meter.lap("count") after it, or run it with profile=cprofile.'
        )

    special = {text.encode() for text in tokenizer.special_tokens}
    ordinary = [token for token in tokenizer.vocab.values() if token not in special]
    longest = max(ordinary, key=len)
    size = counted_text(len(longest), "byte")
    lines.append(f"Longest token: {token_text(longest, 80)} ({size}).")
    return lines


def sample(path: Path, separator: str) -> list[str]:
    """Return the first ten documents of a text, of its first ten million bytes."""
    with path.open("rb") as file:
        content = file.read(MOST_SAMPLED_BYTES)

    # What is cut here may end within a character.
    documents = content.decode(errors="ignore").split(separator)
    return [document for document in documents if document.strip()][:DOCUMENTS]


def encoding_line(documents: Sequence[str], encode: Encode) -> str:
    size = sum(len(document.encode()) for document in documents)
    tokens = sum(len(encode(document)) for document in documents)
    return (
        f"{counted_text(len(documents), 'document')} with {counted_text(size, 'byte')}: "
        f"{rate_text(size / tokens)} bytes per token."
    )


def throughput_line(path: Path, encode: Encode) -> str:
    """Encode the text from its start for a second, a block at a time."""
    encoded = 0
    seconds = 0.0
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        while seconds < SECONDS_OF_ENCODING and (block := file.read(BLOCK)):
            started = time.perf_counter()
            encode(block)
            seconds += time.perf_counter() - started
            encoded += len(block.encode())

    rate = encoded / seconds
    pile = seconds_text(PILE_BYTES / rate)
    return (
        f"Encoding {bytes_text(encoded)} took {seconds_text(seconds)}, {bytes_text(int(rate))}/s: "
        f"the Pile (825 GB) would take {pile}."
    )


if __name__ == "__main__":
    sys.exit(main())
