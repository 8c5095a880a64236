"""tiktoken's ranks: a line for each token, in base64, with its rank, which is its id; the pattern is elsewhere.

tiktoken joins two neighbours by the rank of their result, whichever two they are, and takes a whole pre-token that is a
token at once. We and Hugging Face make the merge that was learned. Both agree on every text if and only if the bytes of
each token, merged by the earlier merges, come down to the two tokens that its merge joins: what is between two
boundaries of a text merges as it does alone, so no other two can ever be neighbours there.
"""

from __future__ import annotations

import base64
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from harness.common.errors import UNMEASURED, Refusal
from harness.common.units import token_text
from harness.tokenizers.learned import BYTES, Learned, join
from harness.tokenizers.merges_file import merges_behind, read_ranks
from variants.contract import Merge

FILE = "ranks.tiktoken"
ANYTHING = "(?s:.+)"
"""Stands for no pattern, because tiktoken must have one."""
LONGEST_SHOWN = 60


def spelled_otherwise(learned: Learned) -> Iterator[tuple[bytes, str]]:
    """The tokens that tiktoken makes where our merges do not, in order, and why; none if the two always agree."""
    made = [left + right for left, right in learned.merges]
    is_last = last_of(learned.merges)
    earlier: dict[Merge, int] = {}
    for rank, merge in enumerate(learned.merges):
        parts = join(split(made[rank]), earlier, made)
        if parts not in ([*merge], [made[rank]]) and not is_last(merge):
            token, left, right = (token_text(each, LONGEST_SHOWN) for each in (made[rank], *merge))
            rest = "+".join(map(token_text, parts[:4])) + ("+…" if len(parts) > 4 else "")
            yield made[rank], f"{token} (merge {left}+{right}, its bytes come down to {rest})"
        earlier.setdefault(merge, rank)


def last_of(merges: Sequence[Merge]) -> Callable[[Merge], bool]:
    """Tells whether all other merges leave the two tokens that a merge joins, so that it is made, and made last."""
    made = [left + right for left, right in merges]
    ranks = {merge: rank for rank, merge in reversed([*enumerate(merges)])}

    def is_last(merge: Merge) -> bool:
        rank = ranks.pop(merge)
        parts = join(split(merge[0] + merge[1]), ranks, made)
        ranks[merge] = rank
        return parts == [*merge]

    return is_last


def split(token: bytes) -> list[bytes]:
    return [token[place : place + 1] for place in range(len(token))]


def why_not(learned: Learned) -> str | None:
    """Why tiktoken would not give the same ids; None if it gives them on every text."""
    ids = learned.token_ids()
    by_rank = [ids[left + right] for left, right in learned.merges]
    if any(later < earlier for earlier, later in zip(by_rank, by_rank[1:], strict=False)):
        return "the ids of its tokens are not in the order of its merges, and tiktoken merges in the order of ids"
    if learned.ignore_merges:
        # Merges that are listed and never made do not matter.
        used = [*filter(last_of(learned.merges), learned.merges)]
        return None if used == merges_behind(ids) else "its merges make other tokens than its ids' order does"
    made = {left + right for left, right in learned.merges}
    if extra := next((token for token in ids if len(token) > 1 and token not in made), None):
        return f"its token {token_text(extra, LONGEST_SHOWN)} is made by no merge, and tiktoken would use it"
    if spellings := [why for _, why in islice(spelled_otherwise(learned), 3)]:
        return (
            "tiktoken merges by the rank of the result, not of the two tokens, and gives other ids to texts with "
            + " or ".join(spellings)
        )
    return None


def ranks_text(learned: Learned) -> bytes:
    """The content of the file of ranks. Raises ValueError for a tokenizer with which tiktoken gives other ids."""
    if (why := why_not(learned)) is not None:
        raise ValueError(why)
    by_id = sorted(learned.token_ids().items(), key=lambda entry: entry[1])
    return b"".join(base64.b64encode(token) + f" {number}\n".encode() for token, number in by_id)


def opened(learned: Learned, name: str = "ours") -> Any:
    """The `tiktoken.Encoding` of a tokenizer. Raises Refusal if tiktoken is missing or would give other ids."""
    if (why := why_not(learned)) is not None:
        raise Refusal(f"tiktoken cannot hold this tokenizer: {why}")
    pattern = ANYTHING if learned.pattern is None else learned.pattern
    return installed().Encoding(
        name, pat_str=pattern, mergeable_ranks=learned.token_ids(), special_tokens=learned.special_tokens
    )


def installed() -> Any:
    try:
        return importlib.import_module("tiktoken")
    except ImportError as error:
        raise Refusal("tiktoken is not installed; run python -m pip install tiktoken", UNMEASURED) from error


def read_ranks_text(content: bytes, special_tokens: Mapping[str, int], pattern: str | None) -> Learned:
    """The tokenizer of ranks, special tokens and a pattern. Raises ValueError if they do not fit each other."""
    return of_ranks(read_ranks(content), special_tokens, pattern)


def of_ranks(ranks: Mapping[bytes, int], special_tokens: Mapping[str, int], pattern: str | None) -> Learned:
    """The same from ranks as a mapping.

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
    tiktoken = installed()
    if name not in tiktoken.list_encoding_names():
        raise Refusal(f"tiktoken has no encoding {name!r}; there are: {', '.join(tiktoken.list_encoding_names())}")
    try:
        encoding = tiktoken.get_encoding(name)
    except Exception as error:  # whatever its way to the network raises
        raise Refusal(
            f"tiktoken cannot get the ranks of {name} here ({type(error).__name__}); set TIKTOKEN_CACHE_DIR to a "
            "folder that has them, or name a file of ranks",
            UNMEASURED,
        ) from error
    try:
        return of_ranks(encoding._mergeable_ranks, encoding._special_tokens, encoding._pat_str)
    except ValueError as error:
        raise Refusal(f"tiktoken's {name} cannot be used: {error}") from error
