"""Tokenizers: train, load, encode, decode, convert, cut, check and compare them, from Python or by
command.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from harness.common.command import Parser, exit_code_of
from harness.common.errors import OK, Refusal
from harness.common.files import files_at
from harness.common.printing import print_stdout
from harness.common.progress import bar
from harness.common.registry import CARDS, use_folder
from harness.common.units import count_text, no_pair_text
from harness.common.values import at_least, one_of, parse_bytes, parse_vocab_size
from harness.corpora import blocks, named_inputs, text
from harness.tokenizers.encoding import BIN, NPY, ids_in_file
from harness.tokenizers.folder import FILES_OF, NEW_IDS, check_free, check_place, save
from harness.tokenizers.learned import with_end
from harness.tokenizers.model import Tokenizer, load
from harness.tokenizers.training import train, train_new_from_iterator

__all__ = ["Tokenizer", "load", "main", "train", "train_new_from_iterator"]

EPILOG = """\
examples:
  python -m harness.tokenizer train book.txt --vocab-size 32k --save mine
  python -m harness.tokenizer cut mine --vocab-size 8k,16k --output smaller
  python -m harness.tokenizer encode mine --data texts/ --output ids.bin
  python -m harness.tokenizer decode mine "1 2 3"
  python -m harness.tokenizer prune mine --data texts/ --output smaller
  python -m harness.tokenizer convert mine --to huggingface --output elsewhere
  python -m harness.tokenizer convert cl100k_base.tiktoken --pattern gpt4 \\
      --special-token '<|endoftext|>=100257' --to ours --output cl100k
  python -m harness.tokenizer stats mine tiktoken:o200k_base --data book.txt

exit code: 0; 2 for a usage error; 21 if an engine gives other ids or decodes otherwise; 22 if an
engine gave up on a text or none could be tried, or a file cannot be read, used or written."""
TOKENIZER = {"metavar": "TOKENIZER", "help": "a folder, tokenizer.json or tiktoken:NAME"}
DATA = "a data set or a file; repeatable"
LIST = "LIST|FILE"
EOS = "the end token in tokenizer_config.json, if its text does not say so"
Add = Callable[..., None]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    options = _parser().parse_args(arguments)
    return exit_code_of(lambda: command(options))


def command(options: argparse.Namespace) -> int:
    use_folder(getattr(options, "config_dir", None))
    try:
        return options.do(options) or OK
    except Refusal as refusal:
        raise refusal.with_options(partial(option, options)) from refusal


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m harness.tokenizer",
        description="Train a tokenizer, or use one: that python -m harness save=FOLDER has written, or anyone else's.",
        epilog=EPILOG,
    )
    commands = parser.add_subparsers(
        title="commands", required=True, metavar="train|encode|decode|..."
    )

    paths = "a file, folder or pattern, or a data set's name"
    add = _add(commands, _train, metavar="PATH", nargs="+", help=paths)
    add("--vocab-size", "N", "special tokens included, such as 32k", required=True)
    _add_folder(add, "--save", "where to write the tokenizer")
    add("--pattern", "NAME|REGEX", "default: %(default)s", default="gpt2")
    add(
        "--special-token",
        "TOKEN",
        "repeatable; default: <|endoftext|>; '' for none",
        action="append",
    )
    add("--tie-break", "RULE", "default: %(default)s", default="greatest_bytes")
    add("--min-count", "N", "merge no rarer pair", type=int, default=1)
    _add_set(add)
    add("--threads", "N", None, type=int, default=1)
    add("--errors", "HOW", "strict or replace, for bytes that are not UTF-8", default="strict")
    add("--extend", "TOKENIZER|FILE", "a tokenizer or merges to go on from")
    add(
        "--inherited",
        "HOW",
        "kept or met: whether all of its merges stay (default: %(default)s)",
        default="kept",
    )
    add(
        "--seeds",
        LIST,
        "tokens that exist before training: [A,B], or a file of JSON strings",
        default="none",
    )
    add(
        "--veto",
        "RULE",
        "merges that are not made, such as whole_characters or bytes:16",
        default="none",
    )
    add("--protected", LIST, "tokens that are not merged further, given like seeds", default="none")
    add("--eos", "TOKEN", EOS)

    add = _add(commands, _cut)
    add("--vocab-size", "N,N", "such as 8k,16k,32k", required=True)
    _add_folder(add, "--output", "gets a folder for each size")

    add = _add(commands, _prune)
    _add_data(add)
    _add_folder(
        add,
        "--output",
        "where to write it, with new_ids.json; default: print what would be removed",
        required=False,
    )
    add("--keep", LIST, "tokens that stay: [A,B], or a file of JSON strings", default="none")
    add(
        "--at-least",
        "N",
        "remove what occurs fewer times (default: %(default)s)",
        type=int,
        default=1,
    )

    add = _add(commands, _encode)
    add("text", "TEXT", "the text; - reads standard input, any bytes", nargs="?")
    add("--data", "NAME|FILE", "a data set or a file instead of TEXT")
    _add_set(add)
    _add_ordinary(add)
    add(
        "--output",
        "FILE",
        "where to write them: a NumPy array (.npy), or the bare numbers (.bin) with a .bin.json",
        type=Path,
    )
    add("--overwrite", None, "replace that file", action="store_true")
    add("--threads", "N", None, type=int, default=1)
    add(
        "--separator",
        "TOKEN",
        "a special token for each document (a row, or a file without rows); default: the only one",
        nargs="?",
        const=True,
        default=False,
    )
    add("--separate", "WHERE", "after, before or between documents (default: after)")

    add = _add(commands, _decode)
    add("ids", "IDS", 'such as "1 2 3"; - reads standard input; a .npy or .bin file')

    with_ranks = "a folder, tokenizer.json, tiktoken:NAME or ranks"
    add = _add(commands, _convert, help=with_ranks)
    forms = "; ".join(f"{form}: {', '.join(names)}" for form, names in FILES_OF.items())
    add("--to", "FORM", forms, choices=FILES_OF, required=True)
    _add_folder(add, "--output", "where to write these files")
    add("--pattern", "NAME|REGEX", "if the file lacks it: a name in conf/pattern, or your own")
    add(
        "--special-token",
        "TOKEN[=ID]",
        "if the file lacks them: a special token, for ranks with its id; repeatable",
        action="append",
    )
    add("--eos", "TOKEN", EOS)

    add = _add(commands, _check)
    _add_data(
        add, f"{DATA} (default: generated text of many scripts, with random bytes)", required=False
    )
    add("--size", None, "of the generated text (default: %(default)s)", default="1MB")

    add = _add(commands, _stats, nargs="+")
    _add_data(add)
    _add_ordinary(add)
    add("--format", None, None, choices=("terminal", "json"), default="terminal")
    return parser


def _add(commands: Any, do: Any, **given: Any) -> Add:
    """A command, as the function that adds an argument: its name, its metavar, its help."""
    name = do.__name__.strip("_")
    about = do.__doc__ or name
    help_text = f"{about[0].lower()}{about[1:-1]}"
    command: Parser = commands.add_parser(name, help=help_text, description=about)
    command.set_defaults(do=do)
    command.add_argument("given", **{**TOKENIZER, **given})

    def add(name: str, metavar: str | None, about: str | None, **more: Any) -> None:
        if metavar is not None:
            more["metavar"] = metavar
        command.add_argument(name, help=about, **more)

    return add


def _add_folder(add: Add, option: str, about: str, *, required: bool = True) -> None:
    """The folder that a tokenizer is written into."""
    add(option, "FOLDER", about, type=Path, required=required)
    add("--overwrite", None, "replace a tokenizer there", action="store_true")


def _add_data(add: Add, about: str = DATA, *, required: bool = True) -> None:
    """The texts."""
    add("--data", "NAME|FILE", about, action="append", default=[], required=required)
    _add_set(add)


def _add_set(add: Add) -> None:
    add(
        "--set",
        "NAME=VALUE",
        "as for python -m harness: data.bytes=1MB, data.column=body; repeatable",
        action="append",
        default=[],
    )
    add("--config-dir", "FOLDER", CARDS, type=Path)


def _add_ordinary(add: Add) -> None:
    add(
        "--no-special-tokens",
        None,
        "treat special tokens in the text as ordinary text",
        dest="special_tokens",
        action="store_false",
    )


KEYWORDS = (
    *("pattern", "tie_break", "min_count", "threads", "errors"),
    *("extend", "inherited", "seeds", "veto", "protected"),
)
"""What `train` takes, and this command by options of the same names."""


def _train(options: argparse.Namespace) -> None:
    """Train a tokenizer, without a benchmark."""
    source = options.given[0] if len(options.given) == 1 else list(map(Path, options.given))
    inputs = named_inputs(source, options.set)
    inputs += files_at(options.extend, options.seeds, options.protected)
    check_place(options.save, inputs, overwrite=options.overwrite)
    size = parse_vocab_size(options.vocab_size)
    how = {name: getattr(options, name) for name in KEYWORDS}
    how |= {"special_tokens": special_tokens(options), "settings": options.set}
    if options.eos is not None:
        one_of("special token", options.eos, how["special_tokens"])
    tokenizer = train(source, size, progress=True, **how)
    tokenizer.learned = with_end(tokenizer.learned, options.eos)

    fewer = ""
    if len(tokenizer) < size:
        fewer = f", fewer than {count_text(size)}: {no_pair_text(options.min_count)}"
        is_free = options.veto == options.protected == "none"
        fewer += "" if is_free else ", or the veto forbids it"
    save_and_report(tokenizer, options.save, fewer, overwrite=options.overwrite)
    folder = shlex.quote(str(options.save))
    print_stdout(f"next: python -m harness.tokenizer encode {folder} --data FILE --output ids.bin")


def option(options: argparse.Namespace, name: str, value: object) -> str:
    """A setting of a run as the option of a command; one that it has no option for is set.

    >>> train = argparse.Namespace(min_count=1)
    >>> option(train, "min_count", 2), option(train, "data.column", "NAME")
    ('--min-count 2', '--set data.column=NAME')
    >>> option(train, "special_tokens", ["<s>"])
    "--special-token '<s>'"
    """
    if isinstance(value, list):
        return " ".join(f"--special-token {shlex.quote(token)}" for token in value)
    if not hasattr(options, name):
        return f"--set {name}={value}"
    return f"--{name.replace('_', '-')} {value}".strip()


def special_tokens(options: argparse.Namespace, default: str = "<|endoftext|>") -> list[str]:
    """The special tokens. Raises Refusal for several in one option."""
    tokens = [token for token in options.special_token or [default] if token]
    if several := [token for token in tokens if re.search(r">\s*,\s*<", token)]:
        raise Refusal(f"{several[0]!r} is one token; pass --special-token for each")
    return tokens


def save_and_report(tokenizer: Tokenizer, folder: Path, remark: str = "", **how: Any) -> None:
    notes = save(folder, tokenizer.learned, tokenizer.origin, **how)
    lines = [f"saved {folder}: {count_text(len(tokenizer))} tokens{remark}", *notes]
    print_stdout("\n".join(lines))


def _cut(options: argparse.Namespace) -> None:
    """Write smaller vocabularies of a tokenizer, each as if trained to that size."""
    tokenizer = load(options.given)
    sizes = list(map(parse_vocab_size, options.vocab_size.split(",")))
    smaller = {options.output / str(size): tokenizer.cut(size) for size in sizes}
    for folder in smaller:
        check_free(folder, files_at(options.given), overwrite=options.overwrite)
    for folder, cut in smaller.items():
        save_and_report(cut, folder, overwrite=options.overwrite)
        report_moved(tokenizer, cut)


def report_moved(old: Tokenizer, new: Tokenizer) -> None:
    """Print the special tokens whose ids have changed."""
    for token, number in old.special_tokens.items():
        if new.special_tokens[token] != number:
            print_stdout(
                f"special token {token!r} has id {new.special_tokens[token]}, not {number}"
            )


def _prune(options: argparse.Namespace) -> None:
    """Take out tokens that texts never use, and map old ids to new."""
    # late, here and below: training needs no comparisons
    from harness.common.sheet import print_sheets
    from harness.tokenizers.extension import tokens_in
    from harness.tokenizers.prune import check_texts, prune, removed_sheet

    at_least("--at-least", options.at_least)
    if options.output is not None:
        inputs = files_at(options.given, options.keep)
        inputs += [path for data in options.data for path in named_inputs(data, options.set)]
        check_place(options.output, inputs, overwrite=options.overwrite)
    keep = [] if options.keep == "none" else tokens_in("keep", options.keep)
    tokenizer = load(options.given)
    tokens = [*tokenizer.special_tokens] or None
    files = [text(data, options.set, tokens) for data in options.data]
    texts = partial(map, blocks, files)
    pruning = prune(tokenizer, texts, options.at_least, keep)
    count = f"{count_text(len(pruning.removed))} of {count_text(len(tokenizer))} tokens"
    if options.output is None:
        print_sheets([removed_sheet(tokenizer, pruning.removed)])
        print_stdout(f"{count} can be removed; --output FOLDER removes them")
        return

    same, parts = check_texts(tokenizer, pruning, texts)
    how = {"overwrite": options.overwrite, "new_ids": pruning.new_ids}
    save_and_report(pruning.tokenizer, options.output, **how)
    print_stdout(
        f"removed {count}; {count_text(same)} of {count_text(parts)} parts of the text hold none of them, "
        f"and have the same tokens as before\n"
        f"{options.output / NEW_IDS} maps old ids to new; keep these rows of an embedding, in this order"
    )
    report_moved(tokenizer, pruning.tokenizer)


def _encode(options: argparse.Namespace) -> None:
    """Print the ids of a text, or write those of a data set."""
    files = [options.data, options.output]
    of_files = [*files, options.set, options.separator, options.separate]
    if any(of_files) if options.text is not None else None in files:
        raise Refusal(
            "pass either a TEXT (- for standard input), or --data NAME|FILE with --output FILE.npy"
        )
    tokenizer = load(options.given)
    if options.data is None:
        content = sys.stdin.buffer.read() if options.text == "-" else options.text
        ids = tokenizer.encode(content, special_tokens=options.special_tokens)
        print_stdout(" ".join(map(str, ids)))
        return

    array = tokenizer.encode_file(
        options.data,
        options.output,
        settings=options.set,
        threads=options.threads,
        separator=options.separator,
        separate=options.separate,
        inputs=files_at(options.given),
        special_tokens=options.special_tokens,
        overwrite=options.overwrite,
        progress=True,
    )
    call = f"numpy.load({str(options.output)!r}, mmap_mode='r')"
    if options.output.suffix == BIN:
        call = f"numpy.memmap({str(options.output)!r}, numpy.{array.dtype}, 'r')"
    print_stdout(f"{options.output}: {count_text(len(array))} ids, {array.dtype}")
    print_stdout(f"next: {call} reads them")


def _decode(options: argparse.Namespace) -> None:
    """Write the bytes of ids."""
    tokenizer, ids = load(options.given), _ids_in(options.ids)
    sys.stdout.buffer.write(tokenizer.decode(ids))
    if sys.stdout.isatty():
        sys.stdout.write("\n")


def _ids_in(ids: str) -> Any:
    """The ids in a file, in standard input, or in the text itself."""
    if ids.endswith((NPY, BIN)):
        return ids_in_file(Path(ids))
    words = (sys.stdin.read() if ids == "-" else ids).split()
    for word in words:
        if not re.fullmatch(r"-?[0-9]{1,20}", word):
            raise Refusal(
                f"{word[:40]!r} is not an id; write whole numbers with spaces between them"
            )
    return list(map(int, words))


def _convert(options: argparse.Namespace) -> None:
    """Write a tokenizer in another form."""
    pattern = ... if options.pattern is None else options.pattern
    tokens: Any = special_tokens(options, "") or None
    parted = [token.rpartition("=") for token in tokens or ()]
    if parted and all(text and number.isdecimal() for text, _, number in parted):
        tokens = {text: int(number) for text, _, number in parted}
    tokenizer, folder = load(options.given, pattern=pattern, special_tokens=tokens), options.output
    ended = with_end(tokenizer.learned, options.eos)
    check_free(folder, files_at(options.given), overwrite=options.overwrite)
    notes = save(folder, ended, tokenizer.origin, overwrite=options.overwrite, form=options.to)
    written = ", ".join(name for name in FILES_OF[options.to] if (folder / name).exists())
    print_stdout(
        "\n".join([f"wrote {folder}: {written} ({count_text(len(tokenizer))} tokens)", *notes])
    )


def _check(options: argparse.Namespace) -> int:
    """Encode a text with ours and every engine installed, compare all ids and the decoded text."""
    from harness.common.sheet import print_sheets
    from harness.tokenizers import check

    size = parse_bytes(options.size, "--size")
    tokenizer = load(options.given)
    files = [text(data, options.set) for data in options.data]
    texts = [(file.name, blocks(file)) for file in files]
    if not files:
        texts = [("mixed text", check.mixed_parts(size, [*tokenizer.special_tokens]))]

    source = Path(options.given)
    total = sum(file.bytes for file in files) or size
    with bar(f"checking {source}", total, "bytes") as show:
        verdicts, notes = check.check_engines(tokenizer, source, texts, check.ENGINES, show)

    caption = f"{options.given}: {count_text(len(tokenizer))} tokens"
    print_sheets([check.verdicts_sheet(verdicts, caption, notes)])
    return check.exit_code(verdicts)


def _stats(options: argparse.Namespace) -> None:
    """Compare how tokenizers compress texts."""
    from harness.common.sheet import print_sheets
    from harness.tokenizers.check import figures_of, figures_sheet

    tokenizers = {name: load(name) for name in options.given}
    figures = []
    for file in [text(data, options.set) for data in options.data]:
        for name, tokenizer in tokenizers.items():
            with bar(f"{name} on {file.name}", file.bytes, "bytes") as show:
                how = {"special_tokens": options.special_tokens}
                figures.append(figures_of(name, tokenizer, file.name, blocks(file), show, **how))
    if options.format == "json":
        print_stdout(json.dumps([row._asdict() for row in figures], indent=1))
    else:
        print_sheets([figures_sheet(figures)])


if __name__ == "__main__":
    sys.exit(main())
