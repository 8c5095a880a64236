"""Defects of outside trainers, each with the smallest case that shows it: results/peers/README.md
tells them.

A test that fails here says that a package has mended what it shows: the README and the adapter can
then say less.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from workbench import corpus_of

from harness.proof import IDENTICAL, WRONG
from harness.proof.prove import Identity, identity_of
from harness.proof.true_counts import replay
from harness.tokenizers.learned import read_spelling
from variants import heap
from variants.contract import Corpus, Merge, TieBreak, Unavailable, WordCounts
from variants.counting.pretokenize import serial
from variants.peers import (
    bpe_continue,
    bpeasy,
    fast_bpe_rs,
    flashbpe,
    gigatoken,
    huggingface,
    minibperust,
    rustbpe,
    sentencepiece,
    tiktoken,
    tinybpe,
    turbobpe,
)

SPECIAL = "<|endoftext|>"
COUNTS_IN_32_BITS = 2**31
PIECE = "a" * 2**16
PIECES = COUNTS_IN_32_BITS // (len(PIECE) - 1) + 1


def learn(module: Any, corpus: Corpus, num_merges: int) -> list[Merge]:
    """The peer's merges; skipped where its package is absent."""
    try:
        merges: list[Merge] = module.train(corpus, num_merges)
    except Unavailable as reason:
        pytest.skip(str(reason))
    return merges


def judged(merges: list[Merge], corpus: Corpus, num_merges: int) -> Identity:
    return identity_of(replay(serial(corpus), merges), num_merges)


# Exhaustion: what becomes of more merges than there are.


def test_gigatoken_makes_merges_of_pairs_that_are_not_there_when_none_is_left(
    tmp_path: Path,
) -> None:
    corpus = corpus_of(tmp_path, "aaaa bc bc")
    merges = learn(gigatoken, corpus, 10)
    assert merges[:4] == heap.train(serial(corpus), 10, tie_break=TieBreak.HUGGINGFACE)
    found = judged(merges, corpus, 10)
    assert (found.kind, found.merge) == (WRONG, 5)
    assert "no pair was left" in str(found.reason)


def test_tiktokens_educational_trainer_raises_an_error_when_no_pair_is_left(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, "ab")
    assert learn(tiktoken, corpus, 1) == [(b"a", b"b")]
    with pytest.raises(ValueError, match="empty"):
        tiktoken.train(corpus, 2)


@pytest.mark.parametrize(
    "module",
    [huggingface, rustbpe, bpeasy, turbobpe, flashbpe, minibperust, tinybpe, bpe_continue],
    ids=lambda module: module.PEER.name,
)
def test_the_others_end_when_no_pair_is_left(module: Any, tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, "aaaa bc bc")
    assert judged(learn(module, corpus, 10), corpus, 10).kind == IDENTICAL


# Runs of one token.


def test_fast_bpe_rs_does_not_replace_from_the_left_in_a_run_of_odd_length(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, "abbb")
    merges = learn(fast_bpe_rs, corpus, 3)
    found = judged(merges, corpus, 3)
    assert (found.kind, found.merge) == (WRONG, 2)
    assert merges[:2] == [(b"b", b"b"), (b"a", b"b")]
    assert "0 times; " in str(found.reason)


# Hugging Face called otherwise than here: special tokens counted as text, files cut into lines.


def test_hugging_face_counts_special_tokens_as_text_unless_they_are_cut_out_before(
    tmp_path: Path,
) -> None:
    text = f"ab{SPECIAL}ab{SPECIAL}"
    corpus = corpus_of(tmp_path, text)
    assert learn(huggingface, corpus, 3) == [(b"a", b"b")]
    tokenizer, trainer = untrained(3, [SPECIAL])
    tokenizer.add_special_tokens([SPECIAL])
    tokenizer.train_from_iterator([text], trainer)
    assert (b"<", b"|") in merges_in(tokenizer)


def test_hugging_face_cuts_files_into_lines_before_it_looks_for_pre_tokens(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, "a  \n  b\n" * 3)
    want = heap.train(serial(corpus), 4, tie_break=TieBreak.HUGGINGFACE)
    assert learn(huggingface, corpus, 4) == want
    tokenizer, trainer = untrained(4)
    tokenizer.train([corpus.path], trainer)
    by_line = sum(
        (Counter(dict(serial(corpus_of(tmp_path, line)))) for line in ["a  \n", "  b\n"] * 3),
        Counter(),
    )
    lines = heap.train(WordCounts.from_items(by_line.items()), 4, tie_break=TieBreak.HUGGINGFACE)
    assert merges_in(tokenizer) == lines != want


def untrained(num_merges: int, special_tokens: Sequence[str] = ()) -> tuple[Any, Any]:
    """A tokenizer of Hugging Face, and its trainer."""
    pytest.importorskip(
        "tokenizers.trainers", reason="it needs trainers; pip install 'tokenizers<1'"
    )
    tokenizers = huggingface.PEER.package
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(
        add_prefix_space=False, use_regex=True
    )
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=256 + len(special_tokens) + num_merges,
        show_progress=False,
        special_tokens=[*special_tokens],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )
    return tokenizer, trainer


def merges_in(tokenizer: Any) -> list[Merge]:
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return [(read_spelling(left), read_spelling(right)) for left, right in merges]


# Counts beyond 2**31 - 1.


@pytest.mark.slow
def test_no_merge_is_made_of_a_pair_that_occurs_two_thousand_million_times() -> None:
    forks = [learner for learner in (rustbpe, flashbpe) if learner.PEER.package is not None]
    if not forks:
        pytest.skip("rustbpe and flashbpe are not installed")
    for pieces, merges in ((2, [b"aa"]), (PIECES, [])):
        tokenizer, trainer = untrained(1)
        tokenizer.train_from_iterator((PIECE for _ in range(pieces)), trainer)
        assert [left + right for left, right in merges_in(tokenizer)] == merges
        for learner in forks:
            tokenizer = learner.PEER.package.Tokenizer()
            tokenizer.train_from_iterator((PIECE for _ in range(pieces)), 257, pattern="(?s:.+)")
            learned = [
                bytes(token) for token, rank in tokenizer.get_mergeable_ranks() if rank >= 256
            ]
            assert learned == merges


# Lines: what a default leaves out in silence.


def test_sentencepiece_leaves_out_lines_of_over_4192_bytes_by_default(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, "xy" * 3000 + "\n" + "ab ab ab cd ce cf\n" * 9)
    assert (b"x", b"y") in learn(sentencepiece, corpus, 40)
    model = tmp_path / "model"
    sentencepiece.PEER.package.SentencePieceTrainer.train(
        input=corpus.path, model_prefix=str(model), model_type="bpe", vocab_size=40, hard_vocab_limit=False,
        minloglevel=2,
    )  # fmt: skip
    processor = sentencepiece.PEER.package.SentencePieceProcessor(model_file=f"{model}.model")
    pieces = "".join(processor.id_to_piece(number) for number in range(processor.get_piece_size()))
    assert "ab" in pieces
    assert "x" not in pieces
