"""Texts as token ids, compiled: a text is scanned as for counting, each distinct word is encoded
once, and the ids of a word are copied wherever it occurs.

The plain encoder of the harness is the definition; this one gives the same ids or is not available.
It wants a pattern that the scanner has compiled in, and merges each of whose halves is a byte or
made by an earlier merge, no token made twice: then merging by rank is making every merge in turn.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from variants.contract import Merge, Unavailable
from variants.counting.character_classes import character_classes
from variants.counting.patterns import compiled
from variants.flat import FIRST_BYTE, ids_of
from variants.native import built


def encoder(
    ids: Mapping[bytes, int],
    merges: Sequence[Merge],
    special_tokens: Mapping[str, int],
    pattern: str | None,
    last_id: int,
    *,
    ignore_merges: bool = False,
    sizes: Mapping[str, int] = MappingProxyType({}),
) -> Any:
    """The compiled encoder of a tokenizer: `encode(text)`, `encode_batch(texts, threads)` and
    `last_cut(text)`.

    `ids` are those of all tokens but the special ones; with `ignore_merges` a pre-token that is one
    of them becomes it. Ids have two bytes if `last_id`, the greatest of the vocabulary, has.
    `sizes` are for tests. Raises Unavailable, with the reason, if the encoder cannot be had.
    """
    scanner = built("_scanner")
    slots = compiled(pattern)
    if slots is None:
        raise Unavailable("its pattern is not one that the compiled scanner knows")

    lefts, rights = ids_of(merges)
    if len(lefts) < len(merges):
        raise Unavailable("its merges are not in the order in which they were made")

    by_symbol = array("I", [0] * FIRST_BYTE + [ids[bytes((byte,))] for byte in range(256)])
    by_symbol.extend(ids[left + right] for left, right in merges)

    specials = {token.encode(): number for token, number in special_tokens.items()}
    path = scanner.supported_paths()[-1]
    whole = ids if ignore_merges else {}
    return built("_encoder").Encoder(
        lefts, rights, by_symbol, whole, specials, slots, character_classes(), path, last_id, sizes
    )


def decoder(vocab: Mapping[int, bytes]) -> Any:
    """The compiled decoder of a vocabulary: `decode(ids)` takes an iterable or an array.

    It raises KeyError, with the place and the id, for an unknown id. Raises Unavailable if it
    cannot be had.
    """
    return built("_encoder").Decoder(vocab)
