"""SentencePiece's BPE, fed the file: it reads lines, cuts them at blanks, scripts and digits, and
merges characters.

That is its own work and not the one that is defined, so its merges are others by design. What can
be made the same is: the text as it is, without normalisation and without a blank put before a line,
the 256 bytes in the vocabulary, special tokens that are never part of a token, and the size of the
vocabulary.
"""

from __future__ import annotations

import io
import re

from variants.contract import Corpus, Merge
from variants.peers import Peer, merges_of

PEER = Peer(
    "sentencepiece",
    "sentencepiece",
    "SentencePieceTrainer.train(input=FILE), line by line",
    "the shorter piece, then the smaller one",
    pre_tokens="itself: at blanks, and where script or kind of character changes; tokens of up to 16 characters",
    special_tokens="user_defined_symbols, never part of a token",
    reads_file=True,
)
BLANK = "\u2581"
BYTE_PIECE = re.compile(r"<0x[0-9A-F]{2}>")
LONGEST_LINE = 1 << 30


@PEER.trainer
def train(corpus: Corpus, num_merges: int, *, threads: int = 1) -> list[Merge]:
    """Train on a file. The vocabulary holds its characters as well as the bytes, so there is room
    for fewer merges.
    """
    model = io.BytesIO()
    PEER.package.SentencePieceTrainer.train(
        input=corpus.path,
        model_writer=model,
        model_type="bpe",
        vocab_size=256 + len(corpus.special_tokens) + num_merges,
        hard_vocab_limit=False,
        byte_fallback=True,
        user_defined_symbols=list(corpus.special_tokens),
        bos_id=-1,
        eos_id=-1,
        normalization_rule_name="identity",
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        max_sentence_length=LONGEST_LINE,  # it leaves out longer lines
        num_threads=threads,
        minloglevel=2,
    )

    processor = PEER.package.SentencePieceProcessor(model_proto=model.getvalue())
    return merges_of_pieces(
        [processor.id_to_piece(number) for number in range(processor.get_piece_size())], corpus
    )


def merges_of_pieces(pieces: list[str], corpus: Corpus) -> list[Merge]:
    """The merges behind its pieces, which stand in the order in which they were learned, the
    characters after them.
    """
    learned = [
        piece
        for piece in pieces[1:]  # the first is what it does not know
        if len(piece) > 1 and piece not in corpus.special_tokens and not BYTE_PIECE.fullmatch(piece)
    ]
    characters = sorted({character for piece in learned for character in piece})
    return [
        (bytes_of_piece(left), bytes_of_piece(right))
        for left, right in merges_of([*characters, *learned], len(characters))
    ]


def bytes_of_piece(piece: str) -> bytes:
    return piece.replace(BLANK, " ").encode()


feeding = PEER.feeding
