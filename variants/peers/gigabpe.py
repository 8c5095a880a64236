"""gigabpe: `train_bpe`, which reads the file itself, as Hugging Face's own way with files does.

It looks for pre-tokens line by line, so that blanks before a line's end make other words than in the whole text, and
takes special tokens for text. Under the pattern gpt2_lines, which cuts any text so, its merges are everybody's.
"""

from __future__ import annotations

from variants.contract import (
    GPT2_LINES_PATTERN,
    GPT2_PATTERN,
    NULL_METER,
    Corpus,
    Merge,
    Meter,
    TieBreak,
    Unavailable,
)
from variants.feeding import Feeding
from variants.peers import Peer, spelled

PEER = Peer(
    "gigabpe",
    "gigabpe",
    "train_bpe, the file, line by line",
    "the smallest ids, as Hugging Face's trainer",
    pre_tokens="itself, GPT-2's pattern built in, in each line for itself",
    special_tokens="none: their text is counted as text",
    reads_file=True,
)


def train(
    corpus: Corpus,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak | None = None,
    min_count: int = 1,
    threads: int = 1,
) -> list[Merge]:
    """Train on a file. Raises Unavailable if the package is missing or lacks a needed feature.

    Its alphabet is that of the bytes that it meets, so that a vocabulary for all 256 has room for more merges, which
    are left out here.
    """
    if corpus.pattern not in (GPT2_PATTERN, GPT2_LINES_PATTERN):
        raise Unavailable("gigabpe trains with GPT-2's pattern only; leave out the pattern, or set pattern=gpt2_lines")
    PEER.check(corpus, tie_break, min_count)
    _, learned = PEER.package.train_bpe([corpus.path], 256 + num_merges, pretokenizer="bytelevel", threads=threads)
    merges = [(spelled(left), spelled(right)) for left, right in learned[:num_merges]]
    meter.follow(merges)
    return merges


def feeding(corpus: Corpus) -> Feeding:
    fed = PEER.feeding(corpus)
    if corpus.pattern == GPT2_LINES_PATTERN and not corpus.special_tokens:
        return fed
    why = "it cuts the text into lines before it looks for pre-tokens, and takes special tokens for text"
    return fed._replace(by_design=why, own_words=GPT2_LINES_PATTERN)
