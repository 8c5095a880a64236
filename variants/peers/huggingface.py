"""Hugging Face tokenizers: `BpeTrainer`, fed whole documents.

Its own way with files cuts them into lines before it looks for pre-tokens, so spaces before a
line's end become other words. Given documents as strings it sees the text that everybody sees.
GPT-2's pattern is built into its byte-level pre-tokenizer; any other is a splitter before it.
"""

from __future__ import annotations

import json
import os
from typing import Any

from variants.contract import GPT2_PATTERN, Corpus, Merge, TieBreak, Unavailable
from variants.feeding import GPT2_ORDER, Feeding
from variants.peers import Peer, bytes_of_spelling, stretches

PEER = Peer(
    "Hugging Face tokenizers",
    "tokenizers",
    "train_from_iterator, a string for each document",
    GPT2_ORDER,
    [TieBreak.HUGGINGFACE],
    has_minimum=True,
)


@PEER.trainer
def train(corpus: Corpus, num_merges: int, *, min_count: int = 1, threads: int = 1) -> list[Merge]:
    """Train on the documents of a corpus."""
    tokenizers = PEER.package
    if not hasattr(tokenizers, "trainers"):
        raise Unavailable(
            f"tokenizers {tokenizers.__version__} has no trainers; python -m pip install 'tokenizers<1' installs one "
            "that has"
        )
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer(corpus)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=256 + num_merges,
        min_frequency=min_count,
        show_progress=False,
        # The specials are cut out already, so that none is in its way; all 256 bytes get the ids
        # that decide ties.
        special_tokens=[],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(stretches(corpus), trainer)
    learned = json.loads(tokenizer.to_str())["model"]["merges"]
    return [(bytes_of_spelling(left), bytes_of_spelling(right)) for left, right in learned]


def feeding(corpus: Corpus) -> Feeding:
    built_in = (
        "GPT-2's pattern built into ByteLevel"
        if corpus.pattern == GPT2_PATTERN
        else "the pattern as a splitter"
    )
    return PEER.feeding(corpus)._replace(pre_tokens=f"itself, {built_in}")


def pre_tokenizer(corpus: Corpus) -> Any:
    """What splits a document as the corpus' pattern does, then writes bytes as GPT-2's
    characters.
    """
    known = PEER.package.pre_tokenizers
    assert corpus.pattern is not None, "raw bytes were refused"
    if corpus.pattern == GPT2_PATTERN:
        return known.ByteLevel(add_prefix_space=False, use_regex=True)
    # Its expressions are Ruby's, in which the flag that lets a dot match a line's end is called m.
    expression = corpus.pattern.replace("(?s:", "(?m:")
    try:
        matches = known.Split(PEER.package.Regex(expression), behavior="removed", invert=True)
    except Exception as error:  # it raises no narrower one
        raise Unavailable(
            f"{PEER.name} cannot read the pattern {corpus.pattern!r}: {error}; choose another"
        ) from error
    return known.Sequence([matches, known.ByteLevel(add_prefix_space=False, use_regex=False)])
