"""How a tokenizer encodes and decodes: by compiled code where it has some, else by the plain one,
which gives the same. A text that comes in parts is cut where that changes no word, so memory stays
bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from harness.tokenizers.learned import Learned
from harness.tokenizers.plain import PlainDecoder, PlainEncoder
from variants import encoding
from variants.contract import Unavailable

# bytes that a thread encodes at a time; a document without a safe cut is encoded whole
WINDOW = 1 << 20


class Encoder:
    """The methods of a compiled encoder or of the plain one, and those for a text in parts."""

    def __init__(self, engine: Any, type_code: Literal["H", "I"], why_plain: str = "") -> None:
        self.type_code, self.why_plain = type_code, why_plain
        # Without a method of Python between: a short text would notice it.
        self.encode: Callable[[str | bytes], list[int]] = engine.encode
        self.encode_batch, self.last_cut = engine.encode_batch, engine.last_cut

    def streamed(self, parts: Iterable[bytes], threads: int = 1) -> Iterator[memoryview]:
        """The ids of one text that comes in parts, as they come."""
        for stretch in self.stretches(parts, threads * WINDOW):
            ids, _ = self.encode_batch([stretch], threads)
            yield memoryview(ids)

    def stretches(self, parts: Iterable[bytes], window: int) -> Iterator[bytes]:
        """The parts joined, and cut where that changes no word. What later text could change waits
        for it.
        """
        waiting, enough = bytearray(), window
        for part in windows(parts, window):
            waiting += part
            if len(waiting) < enough:
                continue

            cut = self.last_cut(bytes(waiting))
            yield bytes(waiting[:cut])
            del waiting[:cut]
            # If nothing could be cut, looking after each part would cost the square of the length.
            enough = max(window, 2 * len(waiting))
        yield bytes(waiting)


def windows(parts: Iterable[bytes], window: int) -> Iterator[bytes]:
    """The parts, cut so that each fits into a window."""
    for part in parts:
        for start in range(0, len(part), window):
            yield part[start : start + window]


def compiled_encoder(learned: Learned, special_tokens: bool = True) -> Any:
    """The compiled encoder, with the methods of the plain one. Raises Unavailable, with the reason,
    if the tokenizer has none.
    """
    return encoding.encoder(
        learned.token_ids(),
        learned.merges,
        learned.special_tokens if special_tokens else {},
        learned.pattern,
        max(learned.vocab),
        ignore_merges=learned.ignore_merges,
    )


def encoder_of(learned: Learned, special_tokens: bool = True) -> Encoder:
    """The encoder of a tokenizer, which says why it is the plain one."""
    try:
        return Encoder(compiled_encoder(learned, special_tokens), learned.type_code())
    except Unavailable as error:
        return Encoder(PlainEncoder(learned, special_tokens), learned.type_code(), str(error))


def decoder_of(learned: Learned) -> PlainDecoder:
    """The decoder of a tokenizer, compiled or with the methods of the plain one."""
    try:
        decoder: PlainDecoder = encoding.decoder(learned.vocab)
        return decoder
    except Unavailable:
        return PlainDecoder(learned.vocab)
