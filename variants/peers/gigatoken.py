"""gigatoken: `train_bpe`, which reads the file itself and takes one special token, as what
separates documents.
"""

from __future__ import annotations

from variants.contract import GPT2_PATTERN, Corpus, Merge, TieBreak, Unavailable
from variants.peers import Peer, wait_for_other_threads

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
    patterns={"gpt2": GPT2_PATTERN},
    pre_tokens="itself, GPT-2's pattern built in",
    special_tokens="one, as what separates documents",
    reads_file=True,
)
feeding = PEER.feeding


@PEER.trainer
def train(
    corpus: Corpus, num_merges: int, *, tie_break: TieBreak = TieBreak.HUGGINGFACE
) -> list[Merge]:
    """Train on a file.

    When no pair is left it goes on with pairs that are not there, so that its merges are then
    wrong.
    """
    specials = list(corpus.special_tokens)
    if len(specials) > 1:
        raise Unavailable(
            f"gigatoken takes one special token between documents, not {len(specials)}"
        )
    source = PEER.package.TextFileSource([corpus.path], specials[0] if specials else None)
    vocab_size = 256 + len(specials) + num_merges
    _, merges = PEER.package.train_bpe(source, vocab_size, specials, tie_breaking=RULES[tie_break])
    wait_for_other_threads()  # with more than one, some go on freeing memory for seconds
    return merges  # type: ignore[no-any-return]
