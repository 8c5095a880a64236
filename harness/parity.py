"""Train one tokenizer for several languages so that all come out alike: parity-aware BPE.

python -m harness.parity en=en.txt hi=hi.txt --dev en=en_dev.txt hi=hi_dev.txt --vocab-size 32k --save shared
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

from rich.console import Console

from harness.common.console import Parser
from harness.common.errors import OK, UNCHANGED, Refusal, guarded
from harness.common.progress import bar
from harness.common.registry import at_least, one_of
from harness.common.sheet import Column, Sheet, print_sheet
from harness.common.units import count_text, parse_vocab_size
from harness.proof.prove import tokens_left
from harness.tokenizer import add_training_options, checked_place, save_and_report, special_tokens
from harness.tokenizers.learned import BYTES, trained
from harness.tokenizers.model import Tokenizer
from harness.tokenizers.training import counted_file, pattern_named, refusing
from variants.contract import Corpus, Merge, Meter, WordCounts

RULE = importlib.import_module("variants.parity")
"""What has the trainers and their tie-breaks, by name."""
EPILOG = """\
Before every merge the language that needs most tokens on its dev text is chosen, and its best pair is merged in all
languages. Dev texts have to be parallel: the same sentences in each language. Without them the training texts decide,
or --ratio: how many times shorter each language should become, relative to the others.

exit code: 0; 2 for a usage error or bad input; 22 if a file cannot be read or written."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return guarded(lambda: _command(_parser().parse_args(arguments)), UNCHANGED)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m harness.parity", description=str(__doc__).partition("\n")[0], epilog=EPILOG)
    parser.add_argument("texts", metavar="LANGUAGE=FILE", nargs="+", help="the text to train on, for each language")
    parser.add_argument("--dev", metavar="LANGUAGE=FILE", nargs="+", default=[], help="the text to compare them on")
    parser.add_argument("--ratio", metavar="LANGUAGE=NUMBER", nargs="+", default=[], help="instead of --dev")
    add_training_options(parser, next(iter(RULE.TIE_BREAKS)))
    parser.add_argument("--variant", metavar="NAME", default=next(iter(RULE.VARIANTS)), help=", ".join(RULE.VARIANTS))
    parser.add_argument("--window", metavar="N", type=int, default=0, help="limit shares of the last N choices")
    parser.add_argument("--alpha", type=float, default=2.0, help="that limit, in equal shares (default: 2)")
    parser.add_argument("--together", metavar="N", type=int, default=0, help="make the first N merges by all counts")
    return parser


def _command(options: argparse.Namespace) -> int:
    texts, dev, ratio = _named(options.texts), _named(options.dev), _named(options.ratio)
    _check_languages(texts, dev, ratio)
    one_of("variant", options.variant, list(RULE.VARIANTS))
    one_of("tie-break", options.tie_break, list(RULE.TIE_BREAKS))
    special, size = tuple(special_tokens(options)), parse_vocab_size(options.vocab_size)
    num_merges = size - len(BYTES) - len(special)
    if num_merges < 0:
        raise Refusal(f"--vocab-size {size} has no room for 256 bytes and {len(special)} special tokens")
    corpus = Corpus("", special, pattern_named(options.pattern))
    Tokenizer(*trained([], special, corpus.pattern))  # refuses an impossible pattern or special token
    place = None if options.save is None else checked_place(options)
    for name, least in (("window", 0), ("together", 0), ("min_count", 1)):
        at_least(f"--{name.replace('_', '-')}", getattr(options, name), least)
    settings = {"window": options.window, "alpha": options.alpha, "together": options.together}
    settings |= {"ratio": [_number(language, ratio[language]) for language in texts if ratio]}
    with refusing(), bar("training", num_merges, "merges") as show:
        tables = [_words(language, file, corpus) for language, file in texts.items()]
        measured = [_words(language, dev[language], corpus) for language in texts if dev]
        served = RULE.VARIANTS[options.variant](
            tables, num_merges, Following(show),
            dev=measured, tie_break=RULE.TIE_BREAKS[options.tie_break], min_count=options.min_count, **settings,
        )  # fmt: skip
    merges = [merge for merge, _ in served]
    _show(list(texts), measured or tables, merges, [language for _, language in served], parallel=bool(dev))
    if place is not None:
        origin = {"vocab_size_asked": size, "tie_break": options.tie_break, "min_count": options.min_count, **settings}
        origin |= {"variant": f"parity {options.variant}", "languages": list(texts), "dev": bool(dev)}
        save_and_report(Tokenizer(*trained(merges, special, corpus.pattern), origin=origin), place)
    return OK


class Following(Meter):
    """Shows how many merges a trainer has made."""

    def __init__(self, show: Callable[[int], None]) -> None:
        super().__init__()
        self.show = show

    def lap(self, phase: str) -> None:
        super().lap(phase)
        self.show(len(self.followed))


def _named(given: Iterable[str]) -> dict[str, str]:
    """The values by language. Raises Refusal for what has no name, or one twice."""
    values: dict[str, str] = {}
    for each in given:
        language, equals, value = each.partition("=")
        if not (language and equals and value):
            raise Refusal(f"{each!r} is not of the form LANGUAGE=VALUE, such as en=en.txt")
        if language in values:
            raise Refusal(f"{language} is given twice; give each language one text")
        values[language] = value
    return values


def _check_languages(texts: Mapping[str, str], dev: Mapping[str, str], ratio: Mapping[str, str]) -> None:
    if dev and ratio:
        raise Refusal("--dev and --ratio exclude each other; leave one out")
    for option, given in (("--dev", dev), ("--ratio", ratio)):
        if unknown := [language for language in given if language not in texts]:
            language = unknown[0]
            raise Refusal(f"{option} {language}={given[language]} has no training text; add {language}=FILE")
        if given and (missing := [language for language in texts if language not in given]):
            raise Refusal(f"{option} has nothing for {missing[0]}; give it for every language, or leave {option} out")


def _number(language: str, value: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise Refusal(f"--ratio {language}={value} is not a number") from error


def _words(language: str, file: str, corpus: Corpus) -> WordCounts:
    words, _ = counted_file([file], corpus, 1, False)
    if not len(words):
        raise Refusal(f"{language}={file} has no words; leave the language out or name another text")
    return words


def _show(
    languages: Sequence[str],
    tables: Sequence[WordCounts],
    merges: Sequence[Merge],
    served: Sequence[int | None],
    *,
    parallel: bool,
) -> None:
    """Print a row for each language; with dev texts, a warning if they cannot be parallel."""
    sizes = [tokens_left(table, []) for table in tables]
    after = [tokens_left(table, merges) for table in tables]
    columns = [
        Column("language", list(languages), figures=False),
        Column("merges served", [count_text(served.count(place)) for place in range(len(languages))]),
        Column("bytes", list(map(count_text, sizes))),
        Column("tokens", list(map(count_text, after))),
        Column("bytes per token before", ["1.000"] * len(languages)),
        Column("after", [f"{size / tokens:.3f}" for size, tokens in zip(sizes, after, strict=True)]),
    ]
    notes = [f"figures are of the {'dev' if parallel else 'training'} texts"]
    if None in served:
        notes.append(f"{count_text(served.count(None))} merges were made by the counts of all languages together")
    lines = [sum(word.count(b"\n") * count for word, count in table.items()) for table in tables]
    if parallel and len(set(lines)) > 1:
        notes.append(
            f"the dev texts have {', '.join(map(count_text, lines))} lines, so they are not parallel; give every "
            "language the same sentences"
        )
    print_sheet(Sheet([f"{count_text(len(merges))} merges"], columns, [""] * len(languages), notes), Console())


if __name__ == "__main__":
    sys.exit(main())
