"""Train one tokenizer for several languages so that all come out alike: parity-aware BPE."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from harness.common.arguments import Parser
from harness.common.ending import UNCHANGED, exit_code_of
from harness.common.errors import OK, Refusal
from harness.common.registry import at_least, one_of, parse_vocab_size
from harness.common.sheet import Column, Sheet, print_sheets
from harness.common.units import count_text
from harness.proof.compiled_replay import tokens_left
from harness.tokenizer import add_training_options, save_and_report, special_tokens
from harness.tokenizers.folder import check_place
from harness.tokenizers.learned import pattern_named, trained
from harness.tokenizers.model import Tokenizer
from harness.tokenizers.training import counted_file, merges_for, showing
from variants import parity
from variants.contract import Corpus, Merge, WordCounts

Tables = Sequence[WordCounts]
Value = TypeVar("Value")
HEADINGS = ("language", "merges served", "bytes", "tokens", "bytes per token")
SETTINGS = ("min_count", "window", "alpha", "warmup_merges")
EPILOG = """\
Before every merge the language that needs most tokens on its dev text is chosen, and its best pair is merged in all
languages. Dev texts have to be parallel: the same sentences in each language. Without them the training texts decide,
or --ratio: how many times shorter each language should become, relative to the others.

exit code: 0; 2 for a usage error or bad input; 22 if a file cannot be read or written."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return exit_code_of(lambda: command(_parser().parse_args(arguments)), UNCHANGED)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m harness.parity", description=__doc__, epilog=EPILOG)
    parser.add_argument(
        "texts", metavar="LANGUAGE=FILE", nargs="+", help="train each language on this text"
    )
    parser.add_argument(
        "--dev",
        metavar="LANGUAGE=FILE",
        nargs="+",
        default=[],
        help="compare the languages on these texts",
    )
    parser.add_argument(
        "--ratio",
        metavar="LANGUAGE=NUMBER",
        nargs="+",
        default=[],
        help="set how short each should become, instead of --dev",
    )

    add_training_options(parser, next(iter(parity.TIE_BREAKS)))
    parser.add_argument(
        "--window", metavar="N", type=int, default=0, help="limit shares of the last N choices"
    )
    parser.add_argument(
        "--alpha", type=float, default=2.0, help="set that limit in equal shares (default: 2)"
    )
    parser.add_argument(
        "--warmup-merges",
        metavar="N",
        type=int,
        default=0,
        help="choose the first N merges by all languages",
    )
    return parser


def command(options: argparse.Namespace) -> int:
    texts = _named("", options.texts, str)
    dev = _named("--dev ", options.dev, str)
    ratio = _named("--ratio ", options.ratio, float)
    for option, values in (("--dev", dev), ("--ratio", ratio)):
        if values and values.keys() != texts.keys():
            both = f"{', '.join(values)}, and the training texts are for {', '.join(texts)}"
            raise Refusal(f"{option} is for {both}; give both for the same languages")
    one_of("tie-break", options.tie_break, list(parity.TIE_BREAKS))
    at_least("--min-count", options.min_count, 1)
    check_place(options.save, options.overwrite)

    corpus = Corpus("", tuple(special_tokens(options)), pattern_named(options.pattern))
    size = parse_vocab_size(options.vocab_size)
    num_merges = merges_for(size, corpus)
    settings = {name: getattr(options, name) for name in SETTINGS}
    settings["ratio"] = [ratio[language] for language in texts if ratio]
    with showing("training", num_merges, "merges", True) as meter:
        tables = _tables(texts, texts, corpus)
        measured = _tables(texts, dev, corpus) if dev else []
        tie_break = parity.TIE_BREAKS[options.tie_break]
        served = parity.train(
            tables, num_merges, meter, dev=measured, tie_break=tie_break, **settings
        )

    merges = [merge for merge, _ in served]
    languages = [language for _, language in served]
    _show(list(texts), tables, measured, merges, languages)
    origin = {"variant": "parity", "languages": list(texts), "dev": bool(dev), **settings}
    origin |= {"vocab_size_asked": size, "tie_break": options.tie_break}
    learned = trained(merges, corpus.special_tokens, corpus.pattern)
    save_and_report(Tokenizer(learned, origin), options.save)
    return OK


def _named(option: str, arguments: Iterable[str], read: Callable[[str], Value]) -> dict[str, Value]:
    """The values by language. Raises Refusal for what cannot be read, and for a language twice."""
    values: dict[str, Value] = {}
    for text in arguments:
        language, _, value = text.partition("=")
        if language in values:
            raise Refusal(f"{option}{language} is given twice; give each language one text")
        if not (language and value):
            raise Refusal(f"{option}{text} is not of the form LANGUAGE=VALUE, such as en=en.txt")
        try:
            values[language] = read(value)
        except ValueError as error:
            raise Refusal(f"{option}{text} is not a number") from error
    return values


def _tables(languages: Iterable[str], files: Mapping[str, str], corpus: Corpus) -> Tables:
    """The words of each language's file. Raises Refusal for a file without words."""
    tables = []
    for language in languages:
        file = files[language]
        words, _ = counted_file([file], corpus, 1, False)
        if not len(words):
            advice = "leave the language out or pass another text"
            raise Refusal(f"{language}={file} has no words; {advice}")
        tables.append(words)
    return tables


def _show(
    languages: list[str],
    tables: Tables,
    dev: Tables,
    merges: Sequence[Merge],
    served: list[int | None],
) -> None:
    """Print a row for each language; with dev texts, a warning if they cannot be parallel."""
    rows = []
    for index, table in enumerate(dev or tables):
        size, tokens = tokens_left(table, ()), tokens_left(table, merges)
        counts = map(count_text, (served.count(index), size, tokens))
        rows.append([languages[index], *counts, f"{size / tokens:.3f}"])
    columns = []
    for heading, cells in zip(HEADINGS, zip(*rows, strict=True), strict=True):
        columns.append(Column(heading, cells, heading != HEADINGS[0]))

    notes = [f"figures are of the {'dev' if dev else 'training'} texts"]
    if None in served:
        number = count_text(served.count(None))
        notes.append(f"{number} merges were made by the counts of all languages together")
    lines = [sum(word.count(b"\n") * count for word, count in table.items()) for table in dev]
    if len(set(lines)) > 1:
        of = "lines, so they are not parallel; give every language the same sentences"
        notes.append(f"the dev texts have {', '.join(map(count_text, lines))} {of}")
    print_sheets([Sheet([f"{count_text(len(merges))} merges"], columns, notes=notes)])


if __name__ == "__main__":
    sys.exit(main())
