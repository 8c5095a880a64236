"""How a tokenizer encodes and decodes: by compiled code where it has some, else by the plain one,
which gives the same.
"""

from __future__ import annotations

from harness.tokenizers.learned import Learned
from harness.tokenizers.plain import PlainDecoder, PlainEncoder
from harness.tokenizers.streaming import Streaming
from variants import encoding
from variants.contract import Unavailable


class CompiledEncoder(Streaming):
    """The compiled encoder with the methods of the plain one. Raises Unavailable, with the reason,
    if the tokenizer has none.
    """

    def __init__(self, learned: Learned, special_tokens: bool = True) -> None:
        self.native = encoding.encoder(
            learned.token_ids(),
            learned.merges,
            learned.special_tokens if special_tokens else {},
            learned.pattern,
            max(learned.vocab),
            ignore_merges=learned.ignore_merges,
        )
        self.type_code = learned.type_code()
        self.encode, self.last_cut = self.native.encode, self.native.last_cut
        # Without a method of Python between: a short text would notice it.
        self.encode_array = self.native.encode_array  # type: ignore[method-assign]
        self.together = self.native.encode_batch  # type: ignore[method-assign]


def encoder_of(learned: Learned, special_tokens: bool = True) -> tuple[Streaming, str]:
    """The encoder of a tokenizer, and why it is the plain one; nothing if it is compiled."""
    try:
        return CompiledEncoder(learned, special_tokens), ""
    except Unavailable as error:
        return PlainEncoder(learned, special_tokens), str(error)


def decoder_of(learned: Learned) -> PlainDecoder:
    """The decoder of a tokenizer, compiled or with the methods of the plain one."""
    try:
        decoder: PlainDecoder = encoding.decoder(learned.vocab)
        return decoder
    except Unavailable:
        return PlainDecoder(learned.vocab)
