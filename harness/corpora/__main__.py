"""python -m harness.corpora: what data sets there are, and getting, checking and finding their files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from harness.common import cache
from harness.common.errors import OK, extra, guarded
from harness.common.files import cache_folder
from harness.common.streams import Parser, say, tell
from harness.common.units import bytes_text
from harness.corpora import prepare
from harness.corpora.cards import card_of, cards
from harness.corpora.exporting import without_rare, write_parquet
from harness.corpora.fetching import fetch
from harness.corpora.listing import described, list_as_csv, list_as_markdown, print_list
from harness.corpora.verifying import verify
from harness.runs.asked import counted_words
from harness.worker import word_store

EPILOG = """\
examples:
  python -m harness.corpora list                     what there is, and what is here
  python -m harness.corpora fetch tinystories_valid  download, unpack, check
  python -m harness variant=heap data=tinystories_valid
  python -m harness.corpora counts stdlib --parquet words.parquet
  python -m harness.corpora cache                    what is kept between runs
  head -c 1000 "$(python -m harness.corpora path big_txt)"

Files are kept in ~/.cache/bpe-harness, or where BPE_HARNESS_CACHE says. An interrupted
fetch goes on when it is called again; a file that is not what its card says is never placed.

exit code: 0; 2 for a usage error; 22 if a file is not there, cannot be had or is not what
its card says; 130 if it was interrupted."""


def list_all(arguments: argparse.Namespace) -> int:
    known = list(cards().values())
    if arguments.format == "terminal":
        print_list(known, Console())
    else:
        sys.stdout.write(list_as_csv(known) if arguments.format == "csv" else list_as_markdown(known))
    return OK


def info(arguments: argparse.Namespace) -> int:
    tell(described(card_of(arguments.name)))
    return OK


def fetch_all(arguments: argparse.Namespace) -> int:
    for card in [card_of(name) for name in arguments.names]:
        fetch(card, say)
    return OK


def verify_one(arguments: argparse.Namespace) -> int:
    lines, code = verify(card_of(arguments.name))
    tell("\n".join(lines))
    return code


def path(arguments: argparse.Namespace) -> int:
    card = card_of(arguments.name)
    tell(str(prepare(card, card["special_tokens"]).path))
    return OK


def show_cache(arguments: argparse.Namespace) -> int:
    """List what is kept, or clear it."""
    if arguments.clear:
        kinds = [kind for name in arguments.clear for kind in GROUPS_OF_KINDS.get(name, (name,))]
        gone, kept = cache.cleared(list(dict.fromkeys(kinds)))
        in_use = f"; {len(kept)} in use stay there" if kept else ""
        tell(f"removed {bytes_text(sum(entry.bytes for entry in gone))} in {len(gone)} entries{in_use}")
        return OK
    tell(str(cache_folder()))
    for kind, about in cache.KINDS.items():
        if found := cache.entries(kind):
            tell(f"{kind:<10} {bytes_text(sum(entry.bytes for entry in found)):>8} {len(found):>5}  {about}")
    tell(
        f"assembled and slices are copies; of more than {bytes_text(cache.limit())} ({cache.LIMIT_VARIABLE}) "
        "the longest unused go.\n--clear copies removes them, --clear all everything that nobody uses"
    )
    return OK


GROUPS_OF_KINDS = {"copies": (*cache.COPIES, cache.HALF_MADE), "all": tuple(cache.KINDS)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a data set, or file with --set data.path=FILE")
    parser.add_argument("--parquet", metavar="FILE", type=Path, required=True, help="where to write")
    parser.add_argument(
        "--least",
        metavar="N",
        type=int,
        default=1,
        help="without words that are seen less often (default: %(default)s)",
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="as for python -m harness: pattern=line, special_tokens=[], counting=serial, data.bytes=1MB",
    )


def export(arguments: argparse.Namespace) -> int:
    """Write the file and say what is in it."""
    extra("pyarrow", "Parquet")
    words = counted_words([f"data={arguments.name}", *arguments.set])
    word_counts, manifest = word_store.read(words)
    number, pre_tokens, digest = manifest["words"], manifest["pre_tokens"], manifest["sha256"]
    if arguments.least > 1:
        word_counts = without_rare(word_counts, arguments.least)
        number, pre_tokens, digest = len(word_counts), sum(word_counts.counts), word_store.digest(word_counts)
    write_parquet(arguments.parquet, word_counts, digest)
    tell(f"{arguments.parquet}: {number:,} words, {pre_tokens:,} pre-tokens, sha256 of the counts {digest}")
    return OK


def parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m harness.corpora",
        description="Data sets: what there is, and getting, checking and finding their files.",
        epilog=EPILOG,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, do: Callable[[argparse.Namespace], int], about: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
        added.set_defaults(do=do)
        return added

    listed = command("list", list_all, "every data set: what it is, its licence and size, whether it is here")
    formats = ("terminal", "markdown", "csv")
    listed.add_argument("--format", choices=formats, default=formats[0], help="(default: %(default)s)")
    fetched = command("fetch", fetch_all, "download what is not here yet, check it, and put it in its place")
    fetched.add_argument("names", metavar="NAME", nargs="+")
    for name, do, about in (
        ("info", info, "everything that a data set's card says"),
        ("verify", verify_one, "read the whole file and compare its size and sha256 with the card"),
        ("path", path, "only where the file is that a run would read, for scripts"),
    ):
        command(name, do, about).add_argument("name", metavar="NAME")
    kept = command("cache", show_cache, "what is kept between runs, and how much room it takes; --clear removes it")
    kept.add_argument(
        "--clear",
        nargs="+",
        choices=[*GROUPS_OF_KINDS, *cache.KINDS],
        metavar="KIND",
        help="remove copies, all, or one of: %(choices)s; what a run uses stays, the rest is made again when needed",
    )
    about = "the words of a data set with their counts as Parquet; counted first if they are not kept"
    add_arguments(command("counts", export, about))
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    arguments = parser().parse_args(argv)
    return guarded(lambda: arguments.do(arguments), kept="what has come is kept, the same command goes on from there")


if __name__ == "__main__":
    sys.exit(main())
