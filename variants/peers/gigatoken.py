"""gigatoken: `train_bpe`, which reads the file itself and takes one special token, as what separates documents."""

from __future__ import annotations

from variants.contract import GPT2_PATTERN, NULL_METER, Corpus, Merge, Meter, TieBreak, Unavailable
from variants.peers import Peer, use_threads, wait_for_other_threads

RULES = {
    TieBreak.HUGGINGFACE: "huggingface",
    TieBreak.RAW_BYTES: "raw_token_ids",
    TieBreak.SMALLEST_BYTES: "assembled_bytes",
}
PEER = Peer(
    "gigatoken",
    "gigatoken",
    "train_bpe with TextFileSource, the file",
    "by tie_breaking, which follows tie_break",
    RULES,
    pre_tokens="itself, GPT-2's pattern built in",
    special_tokens="one, as what separates documents",
    reads_file=True,
)
feeding = PEER.feeding


def train(
    corpus: Corpus,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = TieBreak.HUGGINGFACE,
    min_count: int = 1,
    threads: int = 1,
) -> list[Merge]:
    """Train on a file. Raises Unavailable if the package is missing or lacks a needed feature.

    When no pair is left it goes on with pairs that are not there, so that its merges are then wrong.
    """
    if corpus.pattern != GPT2_PATTERN:
        raise Unavailable("gigatoken trains with GPT-2's pattern only; leave out the pattern")
    PEER.check(corpus, tie_break, min_count)
    if len(corpus.special_tokens) > 1:
        raise Unavailable(f"gigatoken takes one special token between documents, not {len(corpus.special_tokens)}")
    use_threads(threads)
    separator = corpus.special_tokens[0] if corpus.special_tokens else None
    source = PEER.package.TextFileSource([corpus.path], separator)
    specials = list(corpus.special_tokens)
    vocab_size = 256 + len(specials) + num_merges
    _, merges = PEER.package.train_bpe(source, vocab_size, specials, tie_breaking=RULES[tie_break])
    wait_for_other_threads()  # with more than one, some go on freeing memory for seconds
    meter.follow(merges)
    return merges  # type: ignore[no-any-return]
