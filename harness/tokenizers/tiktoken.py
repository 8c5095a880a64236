"""tiktoken's ranks: a line for each token, in base64, with its rank, which is its id; the pattern is elsewhere.

tiktoken joins two neighbours by the rank of their result, whichever two they are, and takes a whole pre-token that is a
token at once. We and Hugging Face make the merge that was learned. Both agree on every text if and only if ids are in
the order of merges and the bytes of each token alone become that token: what is between two boundaries of a text merges
as it does alone, so no other two parts of a token are ever neighbours there.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from harness.common.errors import UNMEASURED, Refusal, extra
from harness.common.units import token_text
from harness.tokenizers.learned import BYTES, Learned, last_merges, merges_behind

FILE = "ranks.tiktoken"
ANYTHING = "(?s:.+)"
"""Stands for no pattern, because tiktoken must have one."""


def why_not(learned: Learned) -> str | None:
    """Why tiktoken would not give the same ids; None if it gives them on every text."""
    ids = learned.token_ids()
    by_rank = [ids[left + right] for left, right in learned.merges]
    if any(later < earlier for earlier, later in pairwise(by_rank)):
        return "the ids of its tokens are not in the order of its merges, and tiktoken merges in the order of ids"
    last = last_merges(learned.merges, sorted((token for token in ids if len(token) > 1), key=ids.__getitem__))
    if learned.ignore_merges:
        same = [*last.values()] == merges_behind(ids)
        return None if same else "its merges make other tokens than its ids' order does"
    if dead := [token for token in ids if len(token) > 1 and token not in last]:
        return (
            "tiktoken merges by the rank of the result, not of the two tokens, and would use tokens that its merges "
            f"never make, such as {token_text(dead[0], 60)}"
        )
    return None


def ranks_text(learned: Learned) -> bytes:
    """The content of the file of ranks. Raises Refusal for a tokenizer with which tiktoken gives other ids."""
    if (why := why_not(learned)) is not None:
        raise Refusal(f"{FILE} cannot hold this tokenizer: {why}")
    by_id = sorted(learned.token_ids().items(), key=lambda entry: entry[1])
    return b"".join(base64.b64encode(token) + f" {number}\n".encode() for token, number in by_id)


def opened(learned: Learned) -> Any:
    """The `tiktoken.Encoding` of a tokenizer. Raises Refusal if tiktoken is missing or would give other ids."""
    ranks_text(learned)
    return encoding(learned.token_ids(), learned.special_tokens, learned.pattern)


def encoding(ranks: Mapping[bytes, int], special_tokens: Mapping[str, int], pattern: str | None) -> Any:
    """tiktoken's own object. Raises Refusal if tiktoken is missing."""
    return extra("tiktoken", FILE, "engines").Encoding(
        "ours",
        pat_str=ANYTHING if pattern is None else pattern,
        mergeable_ranks=dict(ranks),
        special_tokens=dict(special_tokens),
    )


def of_ranks(ranks: Mapping[bytes, int], special_tokens: Mapping[str, int], pattern: str | None) -> Learned:
    """The tokenizer of ranks, special tokens and a pattern. Raises ValueError if they do not fit each other.

    A token that merging by rank never makes is met only as a whole pre-token; then `ignore_merges` is true.
    """
    numbered = {number: token for token, number in ranks.items()}
    if taken := [text for text, number in special_tokens.items() if number in numbered]:
        number = special_tokens[taken[0]]
        raise ValueError(f"special token {taken[0]!r} has the id {number} of {token_text(numbered[number])}")
    vocab = {**numbered, **{number: text.encode() for text, number in special_tokens.items()}}
    if len(vocab) < len(numbered) + len(special_tokens):
        raise ValueError("two special tokens have the same id")
    merges = merges_behind(ranks)
    unmade = len(merges) < len(ranks) - len(BYTES)
    return Learned(dict(sorted(vocab.items())), merges, dict(special_tokens), pattern, unmade)


def of_package(name: str) -> Learned:
    """An encoding of the tiktoken package, whose ranks may have to be in that package's own cache."""
    tiktoken = extra("tiktoken", f"tiktoken:{name}", "engines")
    names = tiktoken.list_encoding_names()
    if name not in names:
        raise Refusal(f"tiktoken has no encoding {name!r}; there are: {', '.join(names)}")
    try:
        encoding = tiktoken.get_encoding(name)
    except Exception as error:  # whatever its way to the network raises
        raise Refusal(
            f"tiktoken cannot get the ranks of {name} here ({type(error).__name__}); set TIKTOKEN_CACHE_DIR to a "
            "folder that has them, or pass a file of ranks",
            UNMEASURED,
        ) from error
    return of_ranks(encoding._mergeable_ranks, encoding._special_tokens, encoding._pat_str)
