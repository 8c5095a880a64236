"""Train one tokenizer for several languages so that all come out alike: parity-aware BPE."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterable, Sequence

from harness.common.console import Parser
from harness.common.errors import OK, UNCHANGED, Refusal, guarded
from harness.common.registry import at_least, one_of, parse_vocab_size
from harness.common.sheet import Column, Sheet, print_sheets
from harness.common.units import count_text
from harness.proof.prove import tokens_left
from harness.tokenizer import add_training_options, save_and_report, special_tokens
from harness.tokenizers.folder import check_place
from harness.tokenizers.learned import trained
from harness.tokenizers.model import Tokenizer
from harness.tokenizers.training import counted_file, merges_for, pattern_named, showing
from variants.contract import Corpus, Merge, WordCounts

Tables = Sequence[WordCounts]
RULE = importlib.import_module("variants.parity")  # what has the trainer and its tie-breaks
EPILOG = """\
Before every merge the language that needs most tokens on its dev text is chosen, and its best pair is merged in all
languages. Dev texts have to be parallel: the same sentences in each language. Without them the training texts decide,
or --ratio: how many times shorter each language should become, relative to the others.

exit code: 0; 2 for a usage error or bad input; 22 if a file cannot be read or written."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return guarded(lambda: _command(_parser().parse_args(arguments)), UNCHANGED)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m harness.parity", description=__doc__, epilog=EPILOG)
    parser.add_argument(
        "texts", metavar="LANGUAGE=FILE", nargs="+", help="the text to train on, for each language"
    )
    parser.add_argument(
        "--dev", metavar="LANGUAGE=FILE", nargs="+", default=[], help="the text to compare them on"
    )
    parser.add_argument(
        "--ratio", metavar="LANGUAGE=NUMBER", nargs="+", default=[], help="instead of --dev"
    )
    add_training_options(parser, next(iter(RULE.TIE_BREAKS)))
    parser.add_argument(
        "--window", metavar="N", type=int, default=0, help="limit shares of the last N choices"
    )
    parser.add_argument(
        "--alpha", type=float, default=2.0, help="that limit, in equal shares (default: 2)"
    )
    parser.add_argument(
        "--together", metavar="N", type=int, default=0, help="make the first N merges by all counts"
    )
    return parser


def _command(options: argparse.Namespace) -> int:
    texts, dev, ratio = (_named(given) for given in (options.texts, options.dev, options.ratio))
    for option, given in (("--dev", dev), ("--ratio", ratio)):
        if given and given.keys() != texts.keys():
            languages = f"{', '.join(given)}, and the training texts are for {', '.join(texts)}"
            raise Refusal(f"{option} is for {languages}; give both for the same languages")
    one_of("tie-break", options.tie_break, list(RULE.TIE_BREAKS))
    corpus = Corpus("", tuple(special_tokens(options)), pattern_named(options.pattern))
    size = parse_vocab_size(options.vocab_size)
    num_merges = merges_for(size, corpus)
    check_place(options.save, options.overwrite)
    at_least("--min-count", options.min_count, 1)
    settings = {"window": options.window, "alpha": options.alpha, "together": options.together}
    settings |= {"ratio": [_number(language, ratio[language]) for language in texts if ratio]}
    with showing("training", num_merges, "merges", True) as meter:
        tables = [_words(language, texts[language], corpus) for language in texts]
        measured = [_words(language, dev[language], corpus) for language in texts if dev]
        how = {
            "dev": measured,
            "tie_break": RULE.TIE_BREAKS[options.tie_break],
            "min_count": options.min_count,
        }
        served = RULE.train(tables, num_merges, meter, **how, **settings)
    merges = [merge for merge, _ in served]
    _show(list(texts), tables, measured, merges, [language for _, language in served])
    origin = {
        "vocab_size_asked": size,
        "tie_break": options.tie_break,
        "min_count": options.min_count,
        **settings,
    }
    origin |= {"variant": "parity", "languages": list(texts), "dev": bool(dev)}
    save_and_report(
        Tokenizer(trained(merges, corpus.special_tokens, corpus.pattern), origin), options.save
    )
    return OK


def _named(given: Iterable[str]) -> dict[str, str]:
    """The values by language. Raises Refusal for what has no name, or one twice."""
    values: dict[str, str] = {}
    for text in given:
        language, equals, value = text.partition("=")
        if not (language and equals and value):
            raise Refusal(f"{text!r} is not of the form LANGUAGE=VALUE, such as en=en.txt")
        if language in values:
            raise Refusal(f"{language} is given twice; give each language one text")
        values[language] = value
    return values


def _number(language: str, value: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise Refusal(f"--ratio {language}={value} is not a number") from error


def _words(language: str, file: str, corpus: Corpus) -> WordCounts:
    words, _ = counted_file([file], corpus, 1, False)
    if not len(words):
        raise Refusal(
            f"{language}={file} has no words; leave the language out or pass another text"
        )
    return words


def _show(
    languages: list[str],
    tables: Tables,
    dev: Tables,
    merges: Sequence[Merge],
    served: list[int | None],
) -> None:
    """Print a row for each language; with dev texts, a warning if they cannot be parallel."""
    sizes, after = ([tokens_left(table, made) for table in dev or tables] for made in ((), merges))
    columns = [
        Column("language", languages, figures=False),
        Column(
            "merges served", [count_text(served.count(place)) for place in range(len(languages))]
        ),
        Column("bytes", list(map(count_text, sizes))),
        Column("tokens", list(map(count_text, after))),
        Column(
            "bytes per token",
            [f"{size / tokens:.3f}" for size, tokens in zip(sizes, after, strict=True)],
        ),
    ]
    notes = [f"figures are of the {'dev' if dev else 'training'} texts"]
    if None in served:
        notes.append(
            f"{count_text(served.count(None))} merges were made by the counts of all languages together"
        )
    lines = [sum(word.count(b"\n") * count for word, count in table.items()) for table in dev]
    if len(set(lines)) > 1:
        of = "lines, so they are not parallel; give every language the same sentences"
        notes.append(f"the dev texts have {', '.join(map(count_text, lines))} {of}")
    print_sheets([Sheet([f"{count_text(len(merges))} merges"], columns, notes=notes)])


if __name__ == "__main__":
    sys.exit(main())
