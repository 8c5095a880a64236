"""What a tokenizer consists of, how files spell its tokens, and what its merges make of one
pre-token.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import count, pairwise, takewhile
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from harness.common import registry
from harness.common.errors import Refusal
from harness.common.units import token_text
from harness.common.values import special_texts, unknown_text, whole_number
from variants.contract import GPT2_CHARACTERS, Merge, vocab_of

Ids = Mapping[str, int]
IDS = 1 << 32
Id = Annotated[int, msgspec.Meta(ge=0, lt=IDS)]
ID_KEYS = ("pad_id", "ids", "sep", "cls")
"""What has ids in a tokenizer.json: padding, a template, and the pairs of a text and its id."""
BYTES = [bytes((byte,)) for byte in range(256)]
_CHARACTERS = dict(enumerate(GPT2_CHARACTERS))
RankOf = Callable[[Any], int | None]
_BYTES = {character: byte for byte, character in _CHARACTERS.items()}


class Around(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a tokenizer.json says beside the ids of a text. It is carried as it is from one
    tokenizer.json to another, with the ids of a cut.
    """

    truncation: dict[str, Any] | None = None
    padding: dict[str, Any] | None = None
    post_processor: dict[str, Any] | None = None
    ordinary: list[str] = []
    """The added tokens that are not special, so that `decode` keeps them."""
    unk_token: str | None = None
    roles: dict[str, str] = {}
    """The end, begin or padding token, if it is named by more than its text."""

    def names(self) -> list[str]:
        """What changes the ids that `tokenizers` gives for a text, by its name in the file."""
        parts = {
            "post_processor": ids_in(self.post_processor),
            "truncation": self.truncation,
            "padding": self.padding,
        }
        return [name for name, part in parts.items() if part]

    def ids(self) -> list[Any]:
        """The ids that it adds."""
        return ids_in([self.padding, self.post_processor])

    def moved(self, new_id: Callable[[Any], Any]) -> Around:
        """The same with other ids."""
        padding, processor = moved([self.padding, self.post_processor], new_id)
        return replace(self, padding=padding, post_processor=processor)


NOTHING_AROUND = Around()
"""One object, because a manifest omits a default that is the same."""


def ids_in(part: Any) -> list[Any]:
    """The ids in a part of a tokenizer.json."""
    found = list[Any]()
    moved(part, found.append)
    return found


def moved(part: Any, new_id: Callable[[Any], Any], is_id: bool = False) -> Any:
    """A part of a tokenizer.json whose ids have changed: what is under ID_KEYS, but for texts there.
    The rest of it is not looked at.
    """
    if isinstance(part, list):
        return [moved(one, new_id, is_id) for one in part]
    if isinstance(part, dict):
        return {key: moved(value, new_id, key in ID_KEYS) for key, value in part.items()}
    return new_id(part) if is_id and not isinstance(part, str) else part


class Learned(NamedTuple):
    """`vocab` maps ids to tokens, `special_tokens` texts to ids; `pattern` is None for raw bytes.

    With `ignore_merges`, a pre-token that is a token becomes that token without merging. Hugging
    Face has this as an option, and tiktoken always works that way. Tokenizers trained here never
    need it.
    """

    vocab: dict[int, bytes]
    merges: list[Merge]
    special_tokens: dict[str, int]
    pattern: str | None
    ignore_merges: bool = False
    around: Around = NOTHING_AROUND

    def token_ids(self) -> dict[bytes, int]:
        """The id of every token except the special ones, which may have the same bytes as one of
        them.
        """
        special = set(self.special_tokens.values())
        return {token: number for number, token in self.vocab.items() if number not in special}

    def type_code(self) -> Literal["H", "I"]:
        """The code of the numbers in an array of ids: two bytes if all ids fit, else four."""
        return "H" if max(self.vocab) < 1 << 16 else "I"

    def sha256(self) -> str:
        """The digest of all that decides a text's ids."""
        vocab = sorted(self.vocab.items())
        content = [vocab, self.merges, self.special_tokens, self.pattern, self.ignore_merges]
        return hashlib.sha256(json.dumps(content, default=bytes.hex).encode()).hexdigest()


def pattern_name(pattern: str | None) -> str | None:
    """The name of a pattern in conf/pattern; None if it has none."""
    return next((name for name, regex in registry.patterns().items() if regex == pattern), None)


def pattern_named(pattern: str | None) -> str | None:
    """The regular expression of a name in conf/pattern, or the pattern itself."""
    existing = registry.patterns()
    if pattern in existing:
        return existing[pattern] or None
    if pattern is not None and re.fullmatch(r"[A-Za-z][\w-]+", pattern):
        raise Refusal(unknown_text("pattern", pattern, existing))
    return pattern


def trained(
    merges: Sequence[Merge],
    special_tokens: Sequence[str],
    pattern: str | None,
    extended: Learned | None = None,
) -> Learned:
    """A trained tokenizer with the contract's ids, or with those of an `extended` one, and new ones
    after its last.

    Raises Refusal for merges that cannot be a tokenizer, or do not start with those of the extended
    one.
    """
    texts = special_texts(special_tokens)
    special_ids = dict(zip(texts, count(256)))
    learned = Learned(vocab_of(merges, texts), list(merges), special_ids, pattern)
    try:
        if len(set(tokens_made(merges))) < len(merges):
            raise ValueError("two merges make the same token, which can have one id only")
        check_ids(learned)
    except ValueError as error:
        raise Refusal(f"{error}; train with a variant that conforms") from error
    if extended is None:
        return learned

    if learned.merges[: len(extended.merges)] != extended.merges:
        raise Refusal(
            "the result does not start with the merges of the extended tokenizer, so ids cannot stay"
        )
    present, vocab = set(extended.token_ids()), dict(extended.vocab)
    new = [token for token in tokens_made(merges) if token not in present]
    vocab.update(enumerate(new, max(vocab) + 1))
    return learned._replace(
        vocab=vocab, special_tokens=dict(extended.special_tokens), around=extended.around
    )


def put_together(
    ids: Ids,
    merges: Sequence[Merge],
    special_tokens: Ids,
    pattern: str | None,
    ignore_merges: bool = False,
) -> Learned:
    """The tokenizer with these ids, whose keys are GPT-2's spellings.

    Raises ValueError for a merge of a token that nothing makes, and if an id is missing or used
    twice.
    """
    for text, number in [*ids.items(), *special_tokens.items()]:
        if not (text and type(number) is int and 0 <= number < IDS):
            raise ValueError(f"it gives the id {number} to {text!r}")
    vocab = {
        number: read_spelling(text) if _BYTES.keys() >= {*text} else text.encode()
        for text, number in ids.items()
    }
    if len(vocab) < len(ids):
        raise ValueError("it gives one id to two tokens")

    for text, number in special_tokens.items():
        if number in vocab and ids.get(text) != number:
            raise ValueError(
                f"special token {text!r} has the id {number} of {token_text(vocab[number])}"
            )
        vocab[number] = text.encode()

    ordered = dict(sorted(vocab.items()))
    learned = Learned(ordered, list(merges), dict(special_tokens), pattern, ignore_merges)
    check_ids(learned)
    return learned


def of_vocab(
    vocab: Mapping[int, bytes],
    merges: Iterable[Merge],
    special_tokens: Iterable[str],
    pattern: str | None,
) -> Learned:
    """The tokenizer of a vocabulary and its merges; a special token that is not in the vocabulary
    gets the next id.

    Raises TypeError for ids, tokens or merges of other types, and ValueError as `put_together`.
    """
    for number, token in vocab.items():
        if not (isinstance(number, int) and isinstance(token, bytes)):
            raise TypeError(
                f"vocab maps {number!r} to {token!r}, not an id (int) to a token (bytes)"
            )
    pairs = list(merges)
    for rank, pair in enumerate(pairs, 1):
        if [type(token) for token in pair] != [bytes, bytes]:
            raise TypeError(f"merge {rank} is {pair!r}, not a pair of tokens (bytes)")

    ids = {token: number for number, token in vocab.items()}
    if len(ids) < len(vocab):
        raise ValueError("it gives two ids to one token")
    free = count(max(vocab, default=-1) + 1)
    special_ids = {}
    for text in special_texts(special_tokens):
        token = text.encode()
        special_ids[text] = ids.pop(token) if token in ids else next(free)
    return put_together(dict(zip(map(spelled, ids), ids.values())), pairs, special_ids, pattern)


def surrounded(learned: Learned, around: Around) -> Learned:
    """The tokenizer with what a tokenizer.json does around a text. Raises ValueError for an id that
    no token has.
    """
    for number in around.ids():
        if number not in learned.vocab:
            raise ValueError(
                f"its post_processor or padding adds the id {number!r}, which no token has"
            )
    return learned._replace(around=around)


def with_end(learned: Learned, eos: str | None) -> Learned:
    """The tokenizer whose end token is `eos`; the same for None. Raises Refusal if it has none like
    it.
    """
    if eos is None:
        return learned
    if eos not in learned.special_tokens:
        raise Refusal(unknown_text("special token", eos, learned.special_tokens))
    roles = {**learned.around.roles, "eos_token": eos}
    return learned._replace(around=replace(learned.around, roles=roles))


def check_ids(learned: Learned) -> None:
    """Raises ValueError for a merge of a token that nothing makes, and if a token has no id."""
    known = dict.fromkeys([*BYTES, *tokens_made(learned.merges)])
    for rank, merge in enumerate(learned.merges, 1):
        for token in merge:
            if token not in known:
                raise ValueError(f"merge {rank} joins {spelled(token)!r}, which nothing makes")

    present = learned.token_ids()
    if missing := [token for token in known if token not in present]:
        raise ValueError(f"it gives no id to {spelled(missing[0])!r}")
    if (last := max(learned.vocab)) >= IDS:
        raise ValueError(f"its id {last} takes more than four bytes")


def shadowed(special_tokens: Iterable[str]) -> tuple[str, str] | None:
    """A special token and a longer one that begins with it; None if no two are like that."""
    pairs = pairwise(sorted(special_tokens))
    return next((pair for pair in pairs if pair[1].startswith(pair[0])), None)


def others(learned: Learned) -> list[bytes]:
    """The tokens that are neither a byte, nor special, nor made by a merge."""
    known = {*BYTES, *tokens_made(learned.merges)}
    return [token for token in learned.token_ids() if token not in known]


def tokens_made(merges: Iterable[Merge]) -> list[bytes]:
    """The token that each merge makes."""
    return [left + right for left, right in merges]


def check_spellings(special_tokens: Iterable[str]) -> None:
    """Raises Refusal, before training, for a special token that a tokenizer.json cannot hold beside
    the bytes.
    """
    for text in special_tokens:
        if text in _BYTES:
            raise Refusal(
                f"special token {text!r} cannot be saved: tokenizer.json spells byte {_BYTES[text]} like it; "
                "use a longer one"
            )


def with_fewer_merges(learned: Learned, vocab_size: int) -> Learned:
    """The tokenizer that training to the smaller `vocab_size` gives: bytes, special tokens and the
    first merges.

    Ids close up in their old order. Raises Refusal for a size that it cannot have, and for tokens
    that no merge makes.
    """
    vocab_size = whole_number("vocab_size", vocab_size)
    merged = list(dict.fromkeys(tokens_made(learned.merges)))
    least = len(BYTES) + len(learned.special_tokens)
    most = least + len(merged)
    if not least <= vocab_size <= most:
        raise Refusal(
            f"the tokenizer cannot be cut to {vocab_size} tokens; choose {least} to {most}"
        )

    ids = learned.token_ids()
    if extra := others(learned):
        raise Refusal(
            f"cannot cut: {len(extra)} of its tokens come from no merge, such as {token_text(extra[0], 60)}"
        )

    dropped = {ids[token] for token in merged[vocab_size - least :]}
    first = takewhile(lambda merge: ids[merge[0] + merge[1]] not in dropped, learned.merges)
    try:
        smaller, _ = closed_up(learned, dropped, list(first))
    except KeyError as error:
        raise Refusal(
            f"its post_processor or padding adds the token of id {error}, which the cut leaves out; "
            "choose a larger size"
        ) from error
    return smaller


def closed_up(
    learned: Learned, dropped: Set[int], merges: list[Merge]
) -> tuple[Learned, dict[int, int]]:
    """The tokenizer with fewer ids, which close up in their old order, and the new id of each.

    Raises KeyError for an id that a post-processor or padding adds.
    """
    remaining = sorted(learned.vocab.keys() - dropped)
    new_ids = dict(zip(remaining, range(len(remaining)), strict=True))
    vocab = {new: learned.vocab[old] for old, new in new_ids.items()}
    special_tokens = {text: new_ids[old] for text, old in learned.special_tokens.items()}

    around = learned.around.moved(new_ids.__getitem__)
    smaller = learned._replace(
        vocab=vocab, merges=merges, special_tokens=special_tokens, around=around
    )
    return smaller, new_ids


# Spelling: every byte of a token is one visible character, as in GPT-2's files


def spelled(token: bytes) -> str:
    """A token in GPT-2's visible characters.

    >>> spelled(b" the"), spelled("é".encode())
    ('Ġthe', 'Ã©')
    """
    return token.decode("latin-1").translate(_CHARACTERS)


def read_spelling(spelling: str) -> bytes:
    """The token that `spelled` wrote. Raises KeyError for a character that is not one of the 256.

    >>> read_spelling("Ġthe")
    b' the'
    """
    return bytes(_BYTES[character] for character in spelling)


# Merging: of all neighbours the pair that was learned first, the leftmost of equals, until no pair
# is left. For merges from training this is the same as making every merge in turn. Lists from
# elsewhere may differ.


def join(tokens: Sequence[Any], rank_of: RankOf, token_of_rank: Any) -> list[Any]:
    """The tokens after merging by rank, in a linked list; the pair of rank n makes the token
    `token_of_rank[n]`.

    An entry of the heap is out of date if the pair that begins at its place has another rank, or
    none.

    >>> join([b"a", b"a", b"b"], {(b"a", b"b"): 0, (b"a", b"ab"): 1}.get, [b"ab", b"aab"])
    [b'aab']
    """
    merged = list(tokens)
    ranks = enumerate(map(rank_of, pairwise(merged)))
    heap = [(rank, index) for index, rank in ranks if rank is not None]
    heapq.heapify(heap)

    end = len(merged)
    after = list(range(1, end + 1))
    before = list(range(-1, end - 1))
    while heap:
        rank, index = heapq.heappop(heap)
        right = after[index]
        if right == end or merged[index] is None or rank_of((merged[index], merged[right])) != rank:
            continue
        merged[index], merged[right] = token_of_rank[rank], None
        follower = after[index] = after[right]
        if follower < end:
            before[follower] = index
            if (new := rank_of((merged[index], merged[follower]))) is not None:
                heapq.heappush(heap, (new, index))
        if (left := before[index]) >= 0 and (
            new := rank_of((merged[left], merged[index]))
        ) is not None:
            heapq.heappush(heap, (new, left))
    return [token for token in merged if token is not None]


# What makes a token. What happens inside a stretch that no token leaves depends on the stretch
# alone. So a token is made somewhere if and only if all merges but its own leave two parts of its
# bytes that one of its own joins.


def last_merges(ids: Mapping[bytes, int], rank_of: RankOf, token_of_rank: Any) -> list[Merge]:
    """The merge that makes each token last, in the order of ids; none for a token that merging its
    own bytes does not make.
    """
    tokens = sorted((token for token in ids if len(token) > 1), key=ids.__getitem__)
    parts = [_parts(token, rank_of, token_of_rank) for token in tokens]
    return [two for two in parts if len(two) == 2 and rank_of(two) is not None]


def merges_behind(ranks: Mapping[bytes, int]) -> list[Merge]:
    """The merge of each token of several bytes, if any two that make a token are merged."""
    token_of_rank = {rank: token for token, rank in ranks.items()}
    return last_merges(ranks, lambda pair: ranks.get(b"".join(pair)), token_of_rank)


def _parts(token: bytes, rank_of: RankOf, token_of_rank: Any) -> Any:
    """What merging leaves of a token's bytes before the merge that makes the whole."""

    def inner(pair: Merge) -> int | None:
        return rank_of(pair) if len(pair[0]) + len(pair[1]) < len(token) else None

    return tuple(join([bytes((byte,)) for byte in token], inner, token_of_rank))
