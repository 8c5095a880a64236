"""How a tokenizer encodes: by the compiled encoder where it has one, else by the plain one, which
gives the same ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from harness.tokenizers.learned import Learned
from harness.tokenizers.plain import PlainEncoder, windows
from variants import encoding
from variants.contract import Unavailable

# bytes that a thread encodes at a time; a document without a safe cut is encoded whole
WINDOW = 1 << 20


class CompiledEncoder:
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
        self.encode: Callable[[str | bytes], list[int]] = self.native.encode

    def together(
        self, texts: Sequence[str | bytes], threads: int = 1
    ) -> tuple[memoryview, list[int]]:
        """The ids of texts as one array of numbers of two or four bytes, and where each text ends."""
        parts, ends = self.native.encode_batch(list(texts), threads)
        whole = parts[0] if len(parts) == 1 else b"".join(parts)
        return memoryview(whole).cast("B").cast(self.type_code), ends

    def streamed(self, parts: Iterable[bytes], threads: int = 1) -> Iterator[memoryview]:
        """The same for one text that comes in parts, as they come."""
        for stretch in self.stretches(parts, threads * WINDOW):
            yield self.together([stretch], threads)[0]

    def batches(self, parts: Iterable[bytes]) -> Iterator[list[int]]:
        """The ids of the parts joined, as they come."""
        return map(self.encode, self.stretches(parts, WINDOW))

    def stretches(self, parts: Iterable[bytes], window: int) -> Iterator[bytes]:
        """The parts joined, and cut where that changes no word. What later text could change waits
        for it.
        """
        waiting, size, enough = list[bytes](), 0, window
        for part in chain(windows(parts, window), [None]):
            if part is not None:
                waiting.append(part)
                size += len(part)
                if size < enough:
                    continue

            text = b"".join(waiting)
            cut = len(text) if part is None else self.native.last_cut(text)
            yield text[:cut]
            waiting, size = [text[cut:]], len(text) - cut
            # If nothing could be cut, looking after each part would cost the square of the length.
            enough = max(window, 2 * size)


Encoder = CompiledEncoder | PlainEncoder


def encoder_of(learned: Learned, special_tokens: bool = True) -> tuple[Encoder, str]:
    """The encoder of a tokenizer, and why it is the plain one; nothing if it is compiled."""
    try:
        return CompiledEncoder(learned, special_tokens), ""
    except Unavailable as error:
        return PlainEncoder(learned, special_tokens), str(error)
