"""How a tokenizer encodes and decodes: by compiled code where it has some, else by the plain one,
which gives the same. A text that comes in parts is cut where that changes no word, so memory stays
bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from harness.tokenizers.learned import Learned
from harness.tokenizers.plain import PlainDecoder, PlainEncoder
from variants import encoding
from variants.contract import Unavailable

# bytes that a thread encodes at a time; a document without a safe cut is encoded whole
WINDOW = 1 << 20


def streamed(
    encoder: PlainEncoder, parts: Iterable[bytes], threads: int = 1
) -> Iterator[memoryview]:
    """The ids of one text that comes in parts, as they come."""
    for stretch in stretches(encoder, parts, threads * WINDOW):
        ids, _ = encoder.encode_batch([stretch], threads)
        yield memoryview(ids)


def stretches(encoder: PlainEncoder, parts: Iterable[bytes], window: int) -> Iterator[bytes]:
    """The parts joined, and cut where that changes no word. What later text could change waits
    for it.
    """
    waiting, enough = bytearray(), window
    for part in windows(parts, window):
        waiting += part
        if len(waiting) < enough:
            continue

        cut = encoder.last_cut(bytes(waiting))
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


def encoder_of(learned: Learned, special_tokens: bool = True) -> PlainEncoder:
    """The encoder of a tokenizer, compiled or with the methods of the plain one, which says why."""
    try:
        encoder: PlainEncoder = compiled_encoder(learned, special_tokens)
        return encoder
    except Unavailable as error:
        return PlainEncoder(learned, special_tokens, str(error))


def decoder_of(learned: Learned) -> PlainDecoder:
    """The decoder of a tokenizer, compiled or with the methods of the plain one."""
    try:
        decoder: PlainDecoder = encoding.decoder(learned.vocab)
        return decoder
    except Unavailable:
        return PlainDecoder(learned.vocab)
