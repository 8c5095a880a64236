"""A trained tokenizer: load it and use it from Python, or encode, decode, convert, check and judge it by command.

    python -m harness.tokenizer encode my_tokenizer "def train(words):"
    python -m harness.tokenizer convert my_tokenizer --to huggingface --output elsewhere
    python -m harness.tokenizer check my_tokenizer --data book.txt
    python -m harness.tokenizer stats my_tokenizer another --data book.txt

Encoding itself stands in harness/tokenizers/plain.py and merging.py.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import EllipsisType
from typing import Any, NamedTuple

from rich.console import Console

from harness.common.errors import MISMATCH, OK, UNCHANGED, UNMEASURED, Refusal, guarded
from harness.common.files import write_whole
from harness.common.progress import bar
from harness.common.sheet import Column, Sheet, print_sheet, sheet_to_markdown
from harness.common.streams import Parser, tell
from harness.common.units import bytes_text, count_text, parse_bytes
from harness.tokenizers import checking, statistics
from harness.tokenizers.engines import engines, version_of
from harness.tokenizers.folder import check_writable, save
from harness.tokenizers.forms import FORMS, convert
from harness.tokenizers.mixed_text import mixed_parts
from harness.tokenizers.plain import Tokenizer
from harness.tokenizers.reading import Found, SpecialTokens, read_tokenizer

__all__ = ["Tokenizer", "check_writable", "load", "main", "save"]

BLOCK = 1 << 20
MIXED = "mixed text"
MIXED_SIZE = "1MB"
EPILOG = """\
examples:
  python -m harness.tokenizer encode my_tokenizer "def train(words):"
  python -m harness.tokenizer encode my_tokenizer --data book.txt --output ids.npy
  python -m harness.tokenizer decode my_tokenizer "1 2 3"
  python -m harness.tokenizer convert my_tokenizer --to huggingface --output elsewhere
  python -m harness.tokenizer convert cl100k_base.tiktoken --pattern gpt4 \\
      --special-token '<|endoftext|>=100257' --to ours --output cl100k
  python -m harness.tokenizer check my_tokenizer --data book.txt
  python -m harness.tokenizer stats my_tokenizer tiktoken:o200k_base --data book.txt \\
      --picture stats.svg

exit code: 0; 2 for a usage error or bad input; 21 if an engine gives other ids; 22 if an engine gave up
on a text or none could be tried, or a file cannot be read or written."""


def load(
    path: Path | str, *, pattern: str | EllipsisType | None = ..., special_tokens: SpecialTokens = None
) -> Tokenizer:
    """The tokenizer in a folder or a file: saved here, a tokenizer.json, vocab.json with merges.txt, tiktoken's ranks.

    `tiktoken:NAME` is an encoding of the tiktoken package. What does not say its pattern and special tokens itself,
    vocab.json with merges.txt and ranks, needs `pattern` (a regular expression, or None for raw bytes) and, if it has
    any, `special_tokens`: their texts, or for ranks a mapping from text to id.
    Raises Refusal, with what to do, for a file that is missing, damaged, or not of one piece with the others.
    """
    return Tokenizer(*read_tokenizer(path, pattern, special_tokens).learned)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    asked = _parser().parse_args(arguments)
    return guarded(lambda: int(asked.do(asked)), UNCHANGED)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m harness.tokenizer",
        description="Use a tokenizer that python -m harness save=FOLDER has written, or anyone else's.",
        epilog=EPILOG,
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="encode|decode|convert|check|stats")
    _add_encode(commands)
    _add_decode(commands)
    _add_convert(commands)
    _add_check(commands)
    _add_stats(commands)
    return parser


def _add(commands: Any, do: Any, name: str, about: str, *, several: bool = False) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=about, description=f"{about[0].upper()}{about[1:]}."
    )
    command.set_defaults(do=do)
    command.add_argument(
        "tokenizers" if several else "tokenizer",
        metavar="TOKENIZER",
        nargs="+" if several else None,
        help="a folder, a tokenizer.json, a file of ranks that ends with .tiktoken, or tiktoken:NAME",
    )
    command.add_argument(
        "--pattern", metavar="NAME|REGEX", help="where nothing says it: a name in conf/pattern, or your own"
    )
    command.add_argument(
        "--special-token",
        action="append",
        metavar="TOKEN[=ID]",
        help="where nothing says it: a special token, for ranks with its id; repeatable",
    )
    return command


def _read(asked: argparse.Namespace, path: str) -> Found:
    pattern = ... if asked.pattern is None else _pattern_named(asked.pattern)
    return read_tokenizer(path, pattern, _special_tokens(asked.special_token))


def _pattern_named(name: str) -> str | None:
    from harness.common import registry  # only here: a tokenizer is at work without the configuration

    card = registry.cards("pattern").get(name)
    return name if card is None else card["regex"]


def _name_of_pattern(expression: str | None) -> str | None:
    from harness.common import registry

    return next((name for name, card in registry.cards("pattern").items() if card["regex"] == expression), None)


def _special_tokens(said: Sequence[str] | None) -> SpecialTokens:
    """Texts, or texts with ids if every one says its own: `<|endoftext|>=100257`."""
    parted = [token.rpartition("=") for token in said or ()]
    if parted and all(text and number.isdecimal() for text, _, number in parted):
        return {text: int(number) for text, _, number in parted}
    return said


# encode, decode


def _add_encode(commands: Any) -> None:
    command = _add(commands, _encode, "encode", "print the ids of a text, or write those of a data set")
    command.add_argument("text", metavar="TEXT", nargs="?", help="the text; - reads standard input, any bytes")
    _add_data(command, "a data set or a file in place of TEXT", several=False)
    command.add_argument(
        "--output", metavar="FILE", type=Path, help="write a NumPy array there (.npy) in place of text"
    )


def _encode(asked: argparse.Namespace) -> int:
    if (asked.text is None) == (asked.data is None):
        raise Refusal("say either a TEXT (- for standard input) or --data NAME|FILE")
    if asked.output is not None and asked.data is None:
        raise Refusal("--output goes with --data")
    tokenizer = Tokenizer(*_read(asked, asked.tokenizer).learned)
    if asked.output is not None:
        text = _data(asked.data, asked.set)
        with bar(f"encoding {text.name}", text.size, "bytes") as show:
            ids = tokenizer.encode_file(text.path, asked.output, on_progress=show)
        tell(f"{asked.output}: {count_text(len(ids))} ids, {ids.dtype}")
        return OK
    if asked.data is not None:
        parts: Iterable[str | bytes] = _data(asked.data, asked.set).blocks()
    else:
        parts = [sys.stdin.buffer.read() if asked.text == "-" else asked.text]
    between = ""
    for number in tokenizer.encode_iterable(parts):
        sys.stdout.write(f"{between}{number}")
        between = " "
    sys.stdout.write("\n")
    return OK


def _add_decode(commands: Any) -> None:
    command = _add(commands, _decode, "decode", "write the bytes of ids")
    command.add_argument("ids", metavar="IDS", help='such as "1 2 3"; - reads standard input; a .npy file')


def _decode(asked: argparse.Namespace) -> int:
    tokenizer = Tokenizer(*_read(asked, asked.tokenizer).learned)
    sys.stdout.buffer.write(tokenizer.decode(_numbers(asked.ids)))
    if sys.stdout.isatty():
        sys.stdout.write("\n")
    return OK


def _numbers(said: str) -> Sequence[int]:
    if said.endswith(".npy"):
        import numpy as np

        try:
            return np.load(said).tolist()  # type: ignore[no-any-return]
        except (OSError, ValueError) as error:
            raise Refusal(f"cannot read {said} ({error}); name an array of ids", UNMEASURED) from error
    try:
        return [int(number) for number in (sys.stdin.read() if said == "-" else said).split()]
    except ValueError as error:
        raise Refusal(f"ids are whole numbers with blanks between them: {error}") from error


# convert


def _add_convert(commands: Any) -> None:
    command = _add(commands, _convert, "convert", "write a tokenizer in another form")
    command.add_argument("--to", choices=FORMS, required=True, metavar="FORM", help="; ".join(FORMS.values()))
    command.add_argument("--output", metavar="FOLDER", type=Path, help="where (default: where the tokenizer is)")
    command.add_argument("--overwrite", action="store_true", help="replace a form that lies there already")


def _convert(asked: argparse.Namespace) -> int:
    found = _read(asked, asked.tokenizer)
    source = Path(asked.tokenizer)
    if asked.output is None and not source.exists():
        raise Refusal(f"{asked.tokenizer} is no folder; use --output FOLDER")
    folder = asked.output or (source if source.is_dir() else source.parent)
    for line in convert(found, asked.to, folder, _name_of_pattern(found.learned.pattern), asked.overwrite):
        tell(line)
    return OK


# check


def _add_check(commands: Any) -> None:
    command = _add(commands, _check, "check", "encode a text with ours and every engine installed, compare all ids")
    _add_data(command, "a data set or a file; repeatable (default: made-up text of many scripts, with random bytes)")
    command.add_argument("--size", default=MIXED_SIZE, help="of the made-up text (default: %(default)s)")
    command.add_argument("--seed", type=int, default=0, help="of the made-up text (default: %(default)s)")
    command.add_argument(
        "--engine", metavar="NAME", action="append", help=f"only this one, of {', '.join(engines())}; repeatable"
    )
    command.add_argument("--format", choices=("terminal", "json"), default="terminal")


def _check(asked: argparse.Namespace) -> int:
    chosen = _engines(asked.engine)
    size = parse_bytes(asked.size, "--size")
    found = _read(asked, asked.tokenizer)
    tokenizer = Tokenizer(*found.learned)
    texts = [_data(data, asked.set) for data in asked.data or ()]
    whole = sum(text.size for text in texts) or size
    with (
        checking.every_form(found.learned, Path(asked.tokenizer)) as (folder, said),
        bar(f"checking {asked.tokenizer}", whole, "bytes") as show,
    ):
        checked = checking.check(tokenizer, _parts(texts, tokenizer, asked.seed, size), chosen, folder, show)
    if asked.format == "json":
        print(json.dumps(checking.as_record(checked), indent=1))  # noqa: T201
    else:
        _print_check(asked.tokenizer, found, checked, said)
    if checked.differing:
        return MISMATCH
    if any(verdict.gave_up for verdict in checked.verdicts):
        return UNMEASURED
    if not any(verdict.texts for verdict in checked.tried):
        raise Refusal("no engine could be tried, so nothing was compared", UNMEASURED)
    return OK


def _engines(asked: Sequence[str] | None) -> Mapping[str, Any]:
    from harness.common.registry import unknown

    existing = engines()
    for name in asked or ():
        if name not in existing:
            raise Refusal(unknown("engine", name, existing))
    return {name: engine for name, engine in existing.items() if not asked or name in asked}


def _parts(texts: Sequence[Text], tokenizer: Tokenizer, seed: int, size: int) -> Iterator[checking.Part]:
    for text in texts:
        yield from checking.parts_of(text.name, text.blocks())
    if not texts:
        start = 0
        for content in mixed_parts(seed, size, list(tokenizer.special_tokens)):
            yield checking.Part(f"{MIXED} (seed {seed})", start, content)
            start += len(content)


def _print_check(name: str, found: Found, checked: checking.Checked, said: Sequence[str]) -> None:
    verdicts = checked.verdicts
    columns = [
        Column("engine", [f"{each.engine} {version_of(each.engine)}".strip() for each in verdicts], figures=False),
        Column("bytes", [bytes_text(each.bytes) if each.texts else "-" for each in verdicts]),
        Column("ids", [count_text(each.ids) if each.texts else "-" for each in verdicts]),
        Column("texts", [count_text(each.texts) if each.texts else "-" for each in verdicts]),
        Column("differ", [count_text(each.differing) if each.texts else "-" for each in verdicts]),
    ]
    notes = []
    for each in verdicts:
        if each.unable is not None:
            notes.append(f"{each.engine}{'' if each.gave_up else ' was not tried'}: {each.unable}")
        if each.replaced:
            notes.append(
                f"{each.engine} was given U+FFFD in place of bytes that are not UTF-8, and ours as well: "
                f"{count_text(each.replaced)} texts"
            )
        if each.first is not None:
            notes += [f"{each.engine} differs first at", *checking.shown(each.first)]
    caption = [f"{name}, read from {found.form}: {count_text(len(found.learned.vocab))} tokens"]
    print_sheet(Sheet(caption, columns, [""] * len(verdicts), [*notes, *said]), Console())


# stats


def _add_stats(commands: Any) -> None:
    command = _add(commands, _stats, "stats", "say what tokenizers do with texts, side by side", several=True)
    _add_data(command, "a data set or a file; repeatable", required=True)
    command.add_argument("--format", choices=("terminal", "markdown", "csv", "json"), default="terminal")
    command.add_argument("--output", metavar="FILE", type=Path, help="write the table to this file")
    command.add_argument("--picture", metavar="FILE", type=Path, help="draw the figures (.svg or .png)")


def _stats(asked: argparse.Namespace) -> int:
    if asked.picture is not None:
        from harness.results.charts.files import check_suffix

        check_suffix(asked.picture)
    # A tokenizer is called like its folder or file, where that tells it from the others.
    short = {Path(name).name for name in asked.tokenizers}
    tokenizers = {
        Path(name).name if len(short) == len(set(asked.tokenizers)) else name: Tokenizer(*_read(asked, name).learned)
        for name in asked.tokenizers
    }
    texts = [_data(data, asked.set) for data in asked.data]
    figures = []
    for text in texts:
        for name, tokenizer in tokenizers.items():
            with bar(f"{name} on {text.name}", text.size, "bytes") as show:
                figures.append(statistics.figures_of(name, tokenizer, text.name, text.blocks(), show))
    _deliver(statistics.sheet(figures), [statistics.as_record(each) for each in figures], asked)
    if asked.picture is not None:
        from harness.results.charts.files import save as save_picture
        from harness.results.charts.layout import figure_of
        from harness.results.charts.tokenizers import describe

        save_picture(figure_of(describe(figures)), asked.picture)
    return OK


def _deliver(sheet: Sheet, records: Sequence[dict[str, Any]], asked: argparse.Namespace) -> None:
    if asked.format == "terminal" and asked.output is None:
        print_sheet(sheet, Console())
        return
    if asked.format == "terminal":
        page = io.StringIO()
        print_sheet(sheet, Console(file=page, force_terminal=False))
        text = page.getvalue()
    elif asked.format == "markdown":
        text = sheet_to_markdown(sheet)
    elif asked.format == "json":
        text = json.dumps(records, indent=1) + "\n"
    else:
        import pandas as pd

        flat = [{**record, "longest": " ".join(record["longest"])} for record in records]
        text = str(pd.DataFrame(flat).to_csv(index=False, lineterminator="\n"))
    if asked.output is None:
        sys.stdout.write(text)
    else:
        write_whole(asked.output, text.encode())


# The texts


class Text(NamedTuple):
    """A data set as one plain file."""

    name: str
    path: Path
    size: int

    def blocks(self) -> Iterator[bytes]:
        try:
            with self.path.open("rb") as file:
                while block := file.read(BLOCK):
                    yield block
        except OSError as error:
            raise Refusal(f"cannot read {self.path} ({error.strerror}); name another", UNMEASURED) from error


def _add_data(command: argparse.ArgumentParser, about: str, *, several: bool = True, required: bool = False) -> None:
    command.add_argument(
        "--data", metavar="NAME|FILE", action="append" if several else "store", required=required, help=about
    )
    command.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="as for python -m harness, of every --data: data.bytes=1MB, data.column=body; repeatable",
    )


def _data(data: str, further: Sequence[str]) -> Text:
    """What --data names, as python -m harness would read it."""
    from harness.runs.asked import data_override, only_cell

    if strange := [each for each in further if "=" not in each]:
        raise Refusal(f"{strange[0]!r} is not of the form NAME=VALUE")
    file = only_cell([*data_override(data), *further])[0].reading.file
    if file.table:
        raise Refusal(f"{file.name} is a table of words, not a text; name a text")
    return Text(file.name, file.path, file.bytes)


if __name__ == "__main__":
    sys.exit(main())
