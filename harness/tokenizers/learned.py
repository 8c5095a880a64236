"""What a tokenizer consists of, how its tokens are spelled in files, and what its merges make of one pre-token."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple, TypeVar

from harness.common.errors import Refusal
from harness.common.units import count_text, token_text
from variants.contract import GPT2_CHARACTERS, Merge, vocab_of

BYTES = [bytes((byte,)) for byte in range(256)]
_CHARACTERS = dict(enumerate(GPT2_CHARACTERS))
_BYTES = {character: byte for byte, character in _CHARACTERS.items()}


class Learned(NamedTuple):
    """`vocab` maps ids to tokens, `special_tokens` texts to ids; `pattern` is None for raw bytes.

    With `ignore_merges`, a pre-token that is a token becomes that token without merging. Hugging Face has this as an
    option, and tiktoken always works that way. Tokenizers trained here never need it.
    """

    vocab: dict[int, bytes]
    merges: list[Merge]
    special_tokens: dict[str, int]
    pattern: str | None
    ignore_merges: bool = False

    def token_ids(self) -> dict[bytes, int]:
        """The id of every token except the special ones, which may have the same bytes as one of them."""
        special = set(self.special_tokens.values())
        return {token: number for number, token in self.vocab.items() if number not in special}


def trained(merges: Sequence[Merge], special_tokens: Sequence[str], pattern: str | None) -> Learned:
    """A trained tokenizer with the contract's ids. Raises Refusal for merges that cannot be a tokenizer."""
    check_special_tokens(special_tokens)
    special_ids = {text: number for number, text in enumerate(special_tokens, 256)}
    learned = Learned(vocab_of(merges, special_tokens), list(merges), special_ids, pattern)
    if len(learned.token_ids()) + len(special_ids) < len(learned.vocab):
        raise Refusal("two merges make the same token, which can have one id only; train with a variant that conforms")
    if (unmade := first_unmade(merges)) is not None:
        raise Refusal(f"{unmade}; train with a variant that conforms")
    return learned


def extended_by(old: Learned, learned: Learned) -> Learned:
    """The extended tokenizer with every id of the old one; new tokens get the ids after the last.

    Raises Refusal if it does not start with the merges of the old one.
    """
    if learned.merges[: len(old.merges)] != old.merges:
        raise Refusal("the result does not start with the merges of the extended tokenizer, so ids cannot stay")
    present, vocab = set(old.token_ids()), dict(old.vocab)
    new = [left + right for left, right in learned.merges if left + right not in present]
    vocab.update(enumerate(new, max(vocab) + 1))
    return learned._replace(vocab=vocab, special_tokens=dict(old.special_tokens))


def put_together(
    ids: Mapping[str, int],
    merges: Sequence[Merge],
    special_tokens: Mapping[str, int],
    pattern: str | None,
    *,
    ignore_merges: bool = False,
    others: bool = False,
) -> Learned:
    """Give every byte, merge and special token its id from `ids`, whose keys are GPT-2's spellings.

    Raises ValueError if an id is missing or used twice, and, unless `others` is true, for ids of anything else.
    """
    left_over = dict(ids)
    tokens = dict.fromkeys([*BYTES, *(left + right for left, right in merges)])
    for token in tokens:
        if spelled(token) not in left_over:
            raise ValueError(f"it gives no id to {spelled(token)!r}")
    vocab = {left_over.pop(spelled(token)): token for token in tokens}
    strange = {spelling: number for spelling, number in left_over.items() if spelling not in special_tokens}
    if strange and not others:
        raise ValueError(f"{next(iter(strange))!r} is not a byte, no merge makes it, and it is not a special token")
    vocab.update({number: _bytes_of(spelling) for spelling, number in strange.items()})
    vocab.update({number: text.encode() for text, number in special_tokens.items()})
    if len(vocab) < len(tokens) + len(strange) + len(special_tokens):
        raise ValueError("it gives one id to two tokens")
    return Learned(dict(sorted(vocab.items())), list(merges), dict(special_tokens), pattern, ignore_merges)


def first_unmade(merges: Sequence[Merge]) -> str | None:
    """What is wrong with the first merge that joins a token which is not a byte and which no merge makes."""
    made = {*BYTES, *(left + right for left, right in merges)}
    for number, merge in enumerate(merges, 1):
        for token in merge:
            if token not in made:
                return f"merge {number} joins {spelled(token)!r}, which nothing makes"
    return None


def check_special_tokens(special_tokens: Iterable[str]) -> None:
    """Raises Refusal for a special token that is empty, repeated, or not UTF-8."""
    texts = list(special_tokens)
    for number, text in enumerate(texts):
        if not text or text in texts[:number]:
            raise Refusal(f"special tokens {texts} contain an empty or repeated one; name each once")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise Refusal(f"special token {text!r} is not UTF-8; leave it out") from error


def cut(learned: Learned, vocab_size: int, *, keep_ids: bool = False) -> Learned:
    """The tokenizer that training to the smaller `vocab_size` gives: bytes, special tokens and the first merges.

    Ids close up in their old order, unless `keep_ids` leaves holes. Raises Refusal for a size that it cannot have, and,
    without `keep_ids`, for tokens that no merge makes.
    """
    room = vocab_size - len(BYTES) - len(learned.special_tokens)
    if room < 0:
        raise Refusal(
            f"a vocabulary of {vocab_size} has no room for 256 bytes and {len(learned.special_tokens)} special tokens; "
            f"cut to {vocab_size - room} or more"
        )
    made = list(dict.fromkeys(left + right for left, right in learned.merges))
    if room > len(made):
        most = vocab_size - room + len(made)
        raise Refusal(f"it has only {count_text(most)} tokens; cut to {count_text(most)} or fewer")
    ids = learned.token_ids()
    extra = ids.keys() - {*made, *BYTES}
    if extra and not keep_ids:
        raise Refusal(
            f"no merge makes {len(extra)} of its tokens, such as {token_text(min(extra), 60)}; "
            "--keep-ids (keep_ids=True) keeps them with their ids"
        )
    gone = set(made[room:])
    kept = [number for number, token in sorted(learned.vocab.items()) if ids.get(token) != number or token not in gone]
    new_ids = {number: number if keep_ids else place for place, number in enumerate(kept)}
    return learned._replace(
        vocab={new_ids[number]: learned.vocab[number] for number in kept},
        merges=list(takewhile(lambda merge: merge[0] + merge[1] not in gone, learned.merges)),
        special_tokens={text: new_ids[number] for text, number in learned.special_tokens.items()},
    )


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


def _bytes_of(spelling: str) -> bytes:
    """A token that no merge makes: in GPT-2's characters if it consists of them, else the text itself."""
    try:
        return read_spelling(spelling)
    except KeyError:
        return spelling.encode()


def json_text(content: Mapping[str, Any]) -> bytes:
    """An object as JSON, one entry a line, so that two of them can be compared by eye."""
    return (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode()


def read_json(content: bytes) -> dict[str, Any]:
    """A JSON object. Raises ValueError for anything else."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError("it is not JSON") from error
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    return value


def read_ids(content: bytes) -> dict[str, int]:
    """The ids that vocab.json gives to spelled tokens. Raises ValueError for anything else."""
    return checked_ids(read_json(content))


def checked_ids(ids: Any) -> dict[str, int]:
    if not isinstance(ids, dict) or not all(type(number) is int for number in ids.values()):
        raise ValueError("it does not map tokens to ids")
    return ids


# Merging: of all neighbours the pair that was learned first, the leftmost of equals, until no pair is left.
# For merges from training this is the same as making every merge in turn. Lists from elsewhere may differ.

Token = TypeVar("Token")

LONGEST_SCANNED = 24
"""With more tokens a heap is faster than looking through the ranks of all neighbours."""
_NEVER = 1 << 62
_PLACES = 40
_PLACE = (1 << _PLACES) - 1


def join(tokens: Sequence[Token], ranks: Mapping[tuple[Token, Token], int], made: Sequence[Token]) -> list[Token]:
    """The tokens after merging by rank; merge number n makes the token `made[n]`.

    >>> join([b"a", b"a", b"b"], {(b"a", b"b"): 0, (b"a", b"ab"): 1}, [b"ab", b"aab"])
    [b'aab']
    """
    return (by_heap if len(tokens) > LONGEST_SCANNED else by_scan)(tokens, ranks, made)


def by_scan(tokens: Sequence[Token], ranks: Mapping[tuple[Token, Token], int], made: Sequence[Token]) -> list[Token]:
    """Look through the ranks of all neighbours for each merge: the square of the length, but in C."""
    merged = list(tokens)
    found = [ranks.get(pair, _NEVER) for pair in zip(merged, merged[1:], strict=False)]
    while found and (rank := min(found)) < _NEVER:
        place = found.index(rank)
        merged[place : place + 2] = [made[rank]]
        del found[place]
        if place < len(found):
            found[place] = ranks.get((merged[place], merged[place + 1]), _NEVER)
        if place:
            found[place - 1] = ranks.get((merged[place - 1], merged[place]), _NEVER)
    return merged


def by_heap(tokens: Sequence[Token], ranks: Mapping[tuple[Token, Token], int], made: Sequence[Token]) -> list[Token]:
    """Keep (rank, place) in a heap and the tokens in a linked list.

    `found[place]` is the rank of the pair that begins there; an entry of the heap with another rank is out of date.
    """
    merged = list(tokens)
    end = len(merged)
    after, before = list(range(1, end + 1)), list(range(-1, end - 1))
    found = [ranks.get(pair, _NEVER) for pair in zip(merged, merged[1:], strict=False)]
    found.append(_NEVER)
    heap = [rank << _PLACES | place for place, rank in enumerate(found) if rank < _NEVER]
    heapq.heapify(heap)
    gone = bytearray(end)
    while heap:
        entry = heapq.heappop(heap)
        rank, place = entry >> _PLACES, entry & _PLACE
        if found[place] != rank:
            continue
        merged[place] = made[rank]
        right = after[place]
        gone[right] = 1
        found[right] = found[place] = _NEVER
        follower = after[place] = after[right]
        if follower < end:
            before[follower] = place
        for left, right in ((place, follower), (before[place], place)):
            if left >= 0 and right < end and (rank := ranks.get((merged[left], merged[right]), _NEVER)) < _NEVER:
                heapq.heappush(heap, rank << _PLACES | left)
                found[left] = rank
            elif left >= 0:
                found[left] = _NEVER
    return [token for token, away in zip(merged, gone, strict=True) if not away]
