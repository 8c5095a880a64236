"""python -m harness.corpora: list, fetch, verify and find data sets; export counted words; the
cache.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import structs

from harness.common import cache, registry
from harness.common.command import Parser, exit_code_of
from harness.common.errors import OK, UNMEASURED, Refusal, extra, override
from harness.common.files import check_output, output_file
from harness.common.printing import print_stderr, print_stdout
from harness.common.units import bytes_text
from harness.corpora import card_of, prepare, state
from harness.corpora.fetch import fetch
from harness.worker import exchange
from variants.contract import WordCounts

EPILOG = """\
examples:
  python -m harness.corpora list                     what there is, and what is here
  python -m harness.corpora fetch tinystories_valid  download, unpack, check
  python -m harness variant=heap data=tinystories_valid
  python -m harness.corpora counts stdlib --parquet words.parquet
  python -m harness.corpora cache                    what is kept between runs
  head -c 1000 "$(python -m harness.corpora path big_txt)"

Files are in ~/.cache/bpe-harness, or in the folder that BPE_HARNESS_CACHE names. After an
interrupted fetch run the same command again; a file that is not what its card describes is never
placed.

exit code: 0; 2 for a usage error; 22 if a file is missing, cannot be fetched or is not what
its card describes; 130 if interrupted."""


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    options = parser().parse_args(argv)
    return exit_code_of(lambda: command(options))


def command(options: argparse.Namespace) -> int:
    registry.use_folder(options.config_dir)
    return options.do(options) or OK


def parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m harness.corpora",
        description="Data sets: what there is, and getting, checking and finding their files.",
        epilog=EPILOG,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for do in (list_all, fetch_all, info, verify, path, show_cache, counts):
        name = do.__name__.removesuffix("_all").removeprefix("show_")
        added = commands.add_parser(name, help=do.__doc__, description=do.__doc__)
        added.set_defaults(do=do, config_dir=None)
        if name != "cache":
            registry.folder_option(added)
        if name in ("info", "verify", "path"):
            added.add_argument("name", metavar="NAME")

    commands.choices["fetch"].add_argument("names", metavar="NAME", nargs="+")
    about = "remove all, or these: %(choices)s; what a run needs is made again"
    kinds = ["all", *cache.KINDS]
    commands.choices["cache"].add_argument(
        "--clear", nargs="+", choices=kinds, metavar="KIND", help=about
    )

    added = commands.choices["counts"]
    added.add_argument("name", metavar="NAME|FILE", help="a data set or a file")
    form = added.add_mutually_exclusive_group()
    about = "where to write columns (default: lines on the screen: the count, the word)"
    form.add_argument("--parquet", metavar="FILE", type=Path, help=about)
    about = "where to write the plain table that a certificate names: the count, the word in hexadecimal digits"
    form.add_argument("--table", metavar="FILE", type=Path, help=about)

    about = "without words that occur less often (default: %(default)s)"
    added.add_argument("--min-count", metavar="N", type=int, default=1, help=about)
    about = "as for python -m harness: pattern=line, 'special_tokens=[]', counting=serial, data.bytes=1MB"
    added.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help=about)
    return parser


def list_all(_: argparse.Namespace) -> None:
    """Every data set: what it is, its licence and size, whether it is here."""
    from harness.common.sheet import Column, Sheet, print_sheets  # late: rich is slow to import

    rows = [["name", "language", "bytes", "here", "licence", "what it is"]]
    for card in map(card_of, registry.names("data")):
        size = "" if card.facts.bytes is None else bytes_text(card.facts.bytes)
        texts = (card.name, card.language, size, state(card), card.licence, card.about)
        rows.append([text or "-" for text in texts])
    columns = zip(*rows, strict=True)
    print_sheets([Sheet([], [Column(head, below, figures=False) for head, *below in columns])])


def info(arguments: argparse.Namespace) -> None:
    """Everything that a data set's card says."""
    card = card_of(arguments.name)
    text, here = registry.card_files("data")[arguments.name].read_text(), state(card)
    path_hint = (
        "data.path=FILE"
        if here == "yours"
        else f"python -m harness.corpora path {card.name} prints its place"
    )
    print_stdout(f"{text.rstrip()}\n# here: {here}; {path_hint}")


def fetch_all(arguments: argparse.Namespace) -> None:
    """Download what is not here yet, check it, and put it in its place."""
    for card in [card_of(name) for name in arguments.names]:
        fetch(card)


def path(arguments: argparse.Namespace) -> None:
    """Only where the file is that a run would read, for scripts."""
    card = card_of(arguments.name)
    print_stdout(str(prepare(card, card.special_tokens).path))


def verify(arguments: argparse.Namespace) -> None:
    """Read the whole file, and compare its size and sha256 with the card."""
    card = card_of(arguments.name)
    corpus = prepare(structs.replace(card, bytes=None), card.special_tokens)
    # tables are always read to their end
    if not corpus.table and cache.digest_of(corpus.path) != corpus.sha256:
        raise Refusal(
            f"{corpus.path} is damaged, though its times are unchanged; remove it", UNMEASURED
        )
    print_stdout(f"{card.name}: {corpus.path}")
    for fact in ("bytes", "sha256"):
        is_stated = getattr(card.facts, fact) is not None
        says = "as the card says" if is_stated else "not on the card"
        print_stdout(f"  {fact:<8}{getattr(corpus, fact)}  {says}")


def show_cache(arguments: argparse.Namespace) -> None:
    """What is kept between runs, and how much room it takes; --clear removes it."""
    if arguments.clear:
        removed = cache.clear(list(cache.KINDS) if "all" in arguments.clear else arguments.clear)
        print_stdout(f"removed {bytes_text(sum(removed.values()))} in {len(removed)} entries")
        return
    print_stdout(str(cache.root()))
    for kind, about in cache.KINDS.items():
        if entries := cache.listing(kind):
            print_stdout(
                f"{kind:<10} {bytes_text(sum(entries.values())):>8} {len(entries):>5}  {about}"
            )
    print_stdout("--clear texts removes copies of texts, --clear all everything")


def set_option(name: str, value: object) -> str:
    """A setting of a run as this command takes it."""
    return f"--set {override(name, value)}"


def counts(arguments: argparse.Namespace) -> None:
    """Show the words of a text with their counts, the most frequent first, or write them."""
    from harness.proof.prove import table_lines
    from harness.runs.blocks import words_of  # late, as Hydra is slow to import
    from harness.runs.plan import plan_of_words

    path = arguments.parquet or arguments.table
    if arguments.parquet is not None:
        extra("pyarrow", "Parquet")
    try:
        plan = plan_of_words(arguments.name, arguments.set)
        if path is not None:
            check_output(path, plan.inputs)
        words, manifest = words_of(plan.cells[0], plan.settings)
    except Refusal as refusal:
        raise refusal.with_options(set_option) from refusal
    if arguments.min_count > 1:
        words = WordCounts.from_items(
            item for item in words.items() if item[1] >= arguments.min_count
        )
        manifest = exchange.facts(words)

    facts = f"{manifest['words']:,} words, {manifest['pre_tokens']:,} pre-tokens"
    if path is None:
        for word, count in sorted(words.items(), key=lambda item: (-item[1], item[0])):
            sys.stdout.write(f"{count}\t{word!r}\n")
        print_stderr(facts)
        return
    with output_file(path, plan.inputs, instead="choose another file") as temporary:
        if arguments.table is not None:
            temporary.write_bytes(b"".join(table_lines(words)))
        else:
            write_parquet(temporary, words, manifest["sha256"])
    print_stdout(f"{path}: {facts}, sha256 of the counts {manifest['sha256']}")


def write_parquet(path: Path, words: WordCounts, sha256: str) -> None:
    pa, parquet = extra("pyarrow", "Parquet"), extra("pyarrow.parquet", "Parquet")
    data, offsets, counts = map(pa.py_buffer, (words.data, words.offsets, words.counts))
    columns = {
        "word": pa.Array.from_buffers(pa.large_binary(), len(words), [None, offsets, data]),
        "count": pa.Array.from_buffers(pa.uint64(), len(words), [None, counts]),
    }
    table = pa.table(columns, metadata={"sha256": sha256})
    # Hardly a word comes twice, so a dictionary of them would only cost memory.
    parquet.write_table(table, path, 1 << 20, compression="zstd", use_dictionary=False)


if __name__ == "__main__":
    sys.exit(main())
