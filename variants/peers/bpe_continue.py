"""bpe-continue: `continue_training`, fed whole documents. It goes on from a tokenizer of Hugging
Face, here one with the inherited merges, or of the 256 bytes alone.

It keeps every inherited merge, as `inherited=kept` does, and takes the smallest ids among equals.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from variants.contract import GPT2_CHARACTERS, Corpus, Merge, TieBreak, Unavailable
from variants.extending import check_inherited
from variants.peers import BYTES, Peer, bytes_of_spelling, huggingface, stretches

PEER = Peer(
    "bpe-continue",
    "bpe_continue",
    "continue_training, a string for each document",
    "the smallest ids, which the tokenizer that it continues has by our tie_break",
    [TieBreak.RAW_BYTES, TieBreak.HUGGINGFACE],
    has_minimum=True,
)
feeding = PEER.feeding


@PEER.trainer
def train(
    corpus: Corpus,
    num_merges: int,
    *,
    tie_break: TieBreak = TieBreak.RAW_BYTES,
    min_count: int = 1,
    inherited: Sequence[Merge] = (),
    inheriting: str = "kept",
) -> list[Merge]:
    """Train on the documents of a corpus, going on from the inherited merges."""
    if inheriting != "kept":
        raise Unavailable(f"{PEER.name} keeps every inherited merge; set inherited=kept")
    check_inherited(inherited, inheriting, num_merges)
    if num_merges == len(inherited):  # it refuses to learn nothing
        return list(inherited)
    extended = PEER.package.continue_training(
        tokenizer_of(corpus, tie_break, inherited),
        texts=stretches(corpus),
        vocab_size=256 + num_merges,
        min_frequency=min_count,
        show_progress=False,
    )
    learned = json.loads(extended.to_str())["model"]["merges"]
    return [(bytes_of_spelling(left), bytes_of_spelling(right)) for left, right in learned]


def tokenizer_of(corpus: Corpus, tie_break: TieBreak, merges: Sequence[Merge]) -> Any:
    """A tokenizer of Hugging Face with these merges; its ids break ties by our tie-break."""
    tokenizers = huggingface.PEER.package
    single = BYTES if tie_break == TieBreak.RAW_BYTES else sorted(BYTES, key=visible)
    tokens = [*single, *(left + right for left, right in merges)]
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.BPE(
            vocab={visible(token): number for number, token in enumerate(tokens)},
            merges=[(visible(left), visible(right)) for left, right in merges],
        )
    )
    tokenizer.pre_tokenizer = huggingface.pre_tokenizer(corpus)
    return tokenizer


def visible(token: bytes) -> str:
    """A token in GPT-2's characters, whose order is that of Hugging Face's ids."""
    return "".join(GPT2_CHARACTERS[byte] for byte in token)
