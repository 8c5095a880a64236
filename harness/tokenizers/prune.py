"""Take tokens out of a vocabulary that a corpus never uses, or too rarely, without breaking it.

Only leaves go: tokens that no remaining merge joins with another. So a text whose ids hold no removed
token keeps its tokens. Proof for one pre-token, since neither pre-tokens nor special tokens change:
each token that merging makes is in the result, or is part of a token that is made later. If a token
was removed, all merges that use it as a part had gone before, and so had the tokens that they make.
So if merging makes a removed token, the result holds one. If the result holds none, merging makes
none, and every merge that it applies remains. At each step, the remaining pairs keep their order, the
chosen pair is among them, and no pair is new. So the choice is the same, and the last step leaves no
pair to merge, as before. With `ignore_merges`, a pre-token that is a token is its own result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from itertools import compress, islice
from typing import NamedTuple

from harness.common.errors import MISMATCH, UNMEASURED, Refusal
from harness.common.sheet import Sheet
from harness.common.units import count_text, token_text
from harness.tokenizers.check import columns_under, readable_token
from harness.tokenizers.encoding import stretches
from harness.tokenizers.learned import BYTES, Learned, closed_up
from harness.tokenizers.model import Tokenizer

COMPARED_BYTES = 1 << 6
TOKENS_SHOWN = 30
Texts = Callable[[], Iterable[Iterable[bytes]]]
"""Returns the texts, each in blocks, as many times as it is called."""


class Pruning(NamedTuple):
    """The smaller tokenizer, the removed ids with their occurrences, and the new id of each other."""

    tokenizer: Tokenizer
    removed: Mapping[int, int]
    new_ids: Mapping[int, int]


def prune(
    tokenizer: Tokenizer, texts: Texts, at_least: int = 1, keep: Collection[bytes] = ()
) -> Pruning:
    """Remove leaves that occur fewer than `at_least` times, again and again until none is left.

    Special tokens, single bytes, the tokens in `keep`, and those that a post-processor or padding
    adds stay. Raises Refusal for a token in `keep` that is not in the vocabulary, and for an empty text.
    """
    learned = tokenizer.learned
    ids = learned.token_ids()
    stay = set(learned.around.ids())
    stay.update(map(ids.__getitem__, BYTES))
    tokens = {*tokenizer.vocab.values()}
    for token in keep:
        if token not in tokens:
            raise Refusal(f"{token_text(token)} is not a token of this tokenizer; do not keep it")
        stay.add(ids.get(token, -1))  # special tokens stay anyway

    removed = dict[int, int]()
    pruned, new_ids = tokenizer, {number: number for number in tokenizer.vocab}
    counts = counts_of(tokenizer, texts)
    if not counts:
        raise Refusal("the text is empty, so it would remove every token; pass another", UNMEASURED)
    while rare := rare_leaves(learned, counts, at_least, stay, removed.keys()):
        removed.update(rare)
        pruned, new_ids = without(tokenizer, removed.keys())
        new_counts = counts_of(pruned, texts)
        counts = Counter({old: new_counts[new] for old, new in new_ids.items()})
    return Pruning(pruned, removed, new_ids)


def counts_of(tokenizer: Tokenizer, texts: Texts) -> Counter[int]:
    """The number of times that each id occurs."""
    counts = Counter[int]()
    for text in texts():
        counts.update(tokenizer.encode_iterable(text))
    return counts


def rare_leaves(
    learned: Learned,
    counts: Mapping[int, int],
    at_least: int,
    stay: Set[int],
    removed: Set[int],
) -> dict[int, int]:
    """The occurrences of each rare token that is part of no other remaining one."""
    ids = learned.token_ids()
    excluded = stay | removed
    for left, right in learned.merges:
        if ids[left + right] not in removed:
            excluded |= {ids[left], ids[right]}

    leaves = {*ids.values()} - excluded
    return {number: counts[number] for number in sorted(leaves) if counts[number] < at_least}


def without(tokenizer: Tokenizer, removed: Set[int]) -> tuple[Tokenizer, dict[int, int]]:
    """The tokenizer without some ids and their merges, and the new id of each other."""
    old, ids = tokenizer.learned, tokenizer.learned.token_ids()
    stays = [ids[left + right] not in removed for left, right in old.merges]
    smaller, new_ids = closed_up(old, removed, list(compress(old.merges, stays)))

    origin = dict(tokenizer.origin)
    if inherited := origin.get("inherited_merges", 0):
        origin["inherited_merges"] = sum(stays[:inherited])
    origin["pruned_from"] = {"vocab_size": len(old.vocab), "merges": len(old.merges)}
    return Tokenizer(smaller, origin), new_ids


def check_texts(tokenizer: Tokenizer, pruning: Pruning, texts: Texts) -> tuple[int, int]:
    """Compare the tokens of each text without a removed token before and after; returns how many
    such texts there are, and of how many.

    A long text is compared in parts. Raises Refusal for a difference, which the proof above excludes.
    """
    before, after = tokenizer.encoder(), pruning.tokenizer.encoder()
    same = number = 0

    for text in texts():
        for part in stretches(before, text, COMPARED_BYTES):
            number += 1
            ids = before.encode(part)
            if not pruning.removed.keys().isdisjoint(ids):
                continue

            if after.encode(part) != [pruning.new_ids[old] for old in ids]:
                beginning = readable_token(part)
                raise Refusal(
                    f"pruning changes the tokens of {beginning}, which is a bug; report it",
                    MISMATCH,
                )
            same += 1
    return same, number


def removed_sheet(tokenizer: Tokenizer, removed: Mapping[int, int]) -> Sheet:
    """A row for each of the first removed tokens."""
    rows = []
    for number, count in islice(removed.items(), TOKENS_SHOWN):
        rows.append([str(number), readable_token(tokenizer.vocab[number]), count_text(count)])
    rest = len(removed) - len(rows)
    notes = [f"and {count_text(rest)} more"] if rest else []
    return Sheet([], columns_under(["id", "token", "occurrences"], rows), notes=notes)
