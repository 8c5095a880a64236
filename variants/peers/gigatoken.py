"""gigatoken: `train_bpe`, which reads the file itself and takes one special token, as what separates documents."""

from __future__ import annotations

from variants.contract import GPT2_PATTERN, NULL_METER, Corpus, Merge, Meter, TieBreak, Unavailable
from variants.feeding import Feeding
from variants.peers import (
    expect,
    expect_no_minimum,
    expect_strict,
    expect_tie_break,
    installed,
    use_threads,
    wait_for_other_threads,
    with_version,
)

NAME = "gigatoken"
gigatoken = installed("gigatoken")

RULES = {
    TieBreak.HUGGINGFACE: "huggingface",
    TieBreak.RAW_BYTES: "raw_token_ids",
    TieBreak.SMALLEST_BYTES: "assembled_bytes",
}


def train(
    corpus: Corpus,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = TieBreak.HUGGINGFACE,
    min_count: int = 1,
    threads: int = 1,
) -> list[Merge]:
    """Train on a file. Raises Unavailable where the package is absent or lacks what is asked.

    When no pair is left it goes on with pairs that are not there, so that its merges are then wrong.
    """
    expect(NAME, gigatoken)
    expect_tie_break(NAME, tie_break, RULES)
    expect_no_minimum(NAME, min_count)
    if corpus.pattern != GPT2_PATTERN:
        raise Unavailable(f"{NAME} trains with GPT-2's pattern only; leave out the pattern")
    expect_strict(NAME, corpus)
    if len(corpus.special_tokens) > 1:
        raise Unavailable(f"{NAME} takes one special token between documents, not {len(corpus.special_tokens)}")
    use_threads(threads)
    separator = corpus.special_tokens[0] if corpus.special_tokens else None
    source = gigatoken.TextFileSource([corpus.path], separator)
    specials = list(corpus.special_tokens)
    _, merges = gigatoken.train_bpe(source, 256 + len(specials) + num_merges, specials, tie_breaking=RULES[tie_break])
    wait_for_other_threads()  # with more than one, some go on freeing memory for seconds
    meter.follow(merges)
    return merges  # type: ignore[no-any-return]


def feeding(corpus: Corpus) -> Feeding:  # noqa: ARG001
    return Feeding(
        with_version(NAME),
        "train_bpe with TextFileSource, the file",
        "itself, GPT-2's pattern built in",
        "one, as what separates documents",
        "by tie_breaking, which follows tie_break",
    )
