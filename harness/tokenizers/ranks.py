"""tiktoken's ranks: a line for each token, in base64, with its rank, which is its id; patterns stand elsewhere.

tiktoken joins two neighbours by the rank of what they become, whichever two they are, and takes a whole pre-token that
is a token at once; ours and Hugging Face's make the merge that was learned. The two agree on every text if and only if
the bytes of each token, merged by the merges before its own, come down to the two tokens that its merge joins: what
stands between two boundaries of a text is merged as it is alone, so no other two can ever be neighbours there.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.common.units import token_text
from harness.tokenizers.learned import BYTES, Learned
from harness.tokenizers.merges_files import merges_behind, read_ranks
from harness.tokenizers.merging import join
from variants.contract import Merge

FILE = "ranks.tiktoken"
LONGEST_SHOWN = 60


class Spelling(NamedTuple):
    """A token that tiktoken puts together otherwise: from the parts that its bytes come down to, or at once."""

    merge: Merge
    parts: list[bytes]

    @property
    def token(self) -> bytes:
        return self.merge[0] + self.merge[1]

    def __str__(self) -> str:
        left, right = (token_text(part, LONGEST_SHOWN) for part in self.merge)
        parts = "+".join(token_text(part) for part in self.parts[:4]) + ("+…" if len(self.parts) > 4 else "")
        return f"{token_text(self.token, LONGEST_SHOWN)} (merge {left}+{right}, its bytes come down to {parts})"


def spelled_otherwise(learned: Learned) -> Iterator[Spelling]:
    """The tokens that tiktoken would make where our merges do not, in order; none if the two agree on every text."""
    merging = _Alone(learned.merges)
    for rank, merge in enumerate(learned.merges):
        parts = merging.parts(merge, rank)
        if parts not in ([*merge], [merge[0] + merge[1]]) and not merging.is_last(merge):
            yield Spelling(merge, parts)


class _Alone:
    """What the bytes of a token come down to where nothing stands beside them."""

    def __init__(self, merges: Sequence[Merge]) -> None:
        self.made = [left + right for left, right in merges]
        self.ranks = {merge: rank for rank, merge in reversed([*enumerate(merges)])}

    def parts(self, merge: Merge, limit: int) -> list[bytes]:
        """By the merges of ranks below `limit`."""
        token = merge[0] + merge[1]
        return join([token[place : place + 1] for place in range(len(token))], self.ranks, self.made, limit)

    def is_last(self, merge: Merge) -> bool:
        """Whether all the other merges leave the two tokens that it joins, so that it is made, and made last."""
        rank = self.ranks.pop(merge)
        try:
            return self.parts(merge, len(self.made)) == [*merge]
        finally:
            self.ranks[merge] = rank


def why_not(learned: Learned) -> str | None:
    """Why tiktoken would not give the same ids; None if it does on every text that its pattern splits alike."""
    ids = learned.token_ids()
    by_rank = [ids[left + right] for left, right in learned.merges]
    if any(later < earlier for earlier, later in zip(by_rank, by_rank[1:], strict=False)):
        return "the ids of its tokens are not in the order of its merges, and tiktoken merges in the order of ids"
    if learned.ignore_merges:
        return None if _same_when_whole(learned) else "its merges make other tokens than its ids' order does"
    made = {left + right for left, right in learned.merges}
    if extra := next((token for token in ids if len(token) > 1 and token not in made), None):
        return f"its token {token_text(extra, LONGEST_SHOWN)} is made by no merge, and tiktoken would use it"
    if spellings := [str(each) for _, each in zip(range(3), spelled_otherwise(learned), strict=False)]:
        return (
            "tiktoken merges by the rank of what two tokens become, not of the two, and gives other ids to texts with "
            + " or ".join(spellings)
        )
    return None


def ranks_text(learned: Learned) -> bytes:
    """The content of the file of ranks. Raises ValueError for a tokenizer that tiktoken would use otherwise."""
    if (why := why_not(learned)) is not None:
        raise ValueError(why)
    lines = [
        base64.b64encode(token) + f" {number}\n".encode()
        for token, number in sorted(learned.token_ids().items(), key=lambda entry: entry[1])
    ]
    return b"".join(lines)


def read_ranks_text(content: bytes, special_tokens: Mapping[str, int], pattern: str | None) -> Learned:
    """The tokenizer that ranks, special tokens and a pattern make. Raises ValueError for what is not of one piece."""
    return of_ranks(read_ranks(content), special_tokens, pattern)


def of_ranks(ranks: Mapping[bytes, int], special_tokens: Mapping[str, int], pattern: str | None) -> Learned:
    """The same from ranks that are read already.

    A token that merging by rank never makes is met only where it is a whole pre-token; then `ignore_merges` is true.
    """
    numbered = {number: token for token, number in ranks.items()}
    if taken := [text for text, number in special_tokens.items() if number in numbered]:
        number = special_tokens[taken[0]]
        raise ValueError(f"special token {taken[0]!r} has the id {number} of {token_text(numbered[number])}")
    vocab = {**numbered, **{number: text.encode() for text, number in special_tokens.items()}}
    if len(vocab) < len(numbered) + len(special_tokens):
        raise ValueError("two special tokens have the same id")
    merges = merges_behind(ranks)
    return Learned(
        dict(sorted(vocab.items())), merges, dict(special_tokens), pattern, len(merges) < len(ranks) - len(BYTES)
    )


def _same_when_whole(learned: Learned) -> bool:
    """Whether ranks would be read as the merges that this tokenizer makes; those it lists and never makes are none."""
    merging = _Alone(learned.merges)
    return [merge for merge in learned.merges if merging.is_last(merge)] == merges_behind(learned.token_ids())
