"""gigabpe: `train_bpe`, which reads the file itself, as Hugging Face's own way with files does.

It looks for pre-tokens line by line, so that spaces before a line's end make other words than in
the whole text, and takes special tokens for text. Under the pattern gpt2_lines, which cuts any text
so, its merges are everybody's.
"""

from __future__ import annotations

from variants.contract import GPT2_LINES_PATTERN, GPT2_PATTERN, Corpus, Merge
from variants.peers import Peer, bytes_of_spelling

PEER = Peer(
    "gigabpe",
    "gigabpe",
    "train_bpe, the file, line by line",
    "the smallest ids, as Hugging Face's trainer",
    patterns={"gpt2": GPT2_PATTERN, "gpt2_lines": GPT2_LINES_PATTERN},
    pre_tokens="itself, GPT-2's pattern built in, in each line for itself",
    special_tokens="none: their text is counted as text",
    reads_file=True,
)


@PEER.trainer
def train(corpus: Corpus, num_merges: int, *, threads: int = 1) -> list[Merge]:
    """Train on a file.

    Its alphabet is that of the bytes that it meets, so that a vocabulary for all 256 has room for
    more merges, which are left out here.
    """
    _, learned = PEER.package.train_bpe(
        [corpus.path], 256 + num_merges, pretokenizer="bytelevel", threads=threads
    )
    return [
        (bytes_of_spelling(left), bytes_of_spelling(right)) for left, right in learned[:num_merges]
    ]


feeding = PEER.feeding
