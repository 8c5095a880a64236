"""What a tokenizer is made of, put together from what any of its forms says, or refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from harness.common.errors import Refusal
from harness.tokenizers.gpt2_form import read_spelling, spelled
from variants.contract import Merge, vocab_of

BYTES = [bytes((byte,)) for byte in range(256)]


class Learned(NamedTuple):
    """`vocab` numbers the tokens, `special_tokens` says which of them are special, `pattern` is None for raw bytes.

    With `ignore_merges` a pre-token that is a token is that token, whatever the merges make of it. Hugging Face calls
    it so; tiktoken always works that way. Ours never need it.
    """

    vocab: dict[int, bytes]
    merges: list[Merge]
    special_tokens: dict[str, int]
    pattern: str | None
    ignore_merges: bool = False

    def token_ids(self) -> dict[bytes, int]:
        """The id of every token but the special ones; a special token may have the same bytes as one of them."""
        special = set(self.special_tokens.values())
        return {token: number for number, token in self.vocab.items() if number not in special}


def trained(merges: Sequence[Merge], special_tokens: Sequence[str], pattern: str | None) -> Learned:
    """What training has learned, numbered as the contract says. Raises Refusal for merges that make no tokenizer."""
    check_special_tokens(special_tokens)
    special_ids = {text: number for number, text in enumerate(special_tokens, 256)}
    learned = Learned(vocab_of(merges, special_tokens), list(merges), special_ids, pattern)
    if len(learned.token_ids()) + len(special_ids) < len(learned.vocab):
        raise Refusal("two merges make the same token, which can have one id only; train with a variant that conforms")
    if (unmade := first_unmade(merges)) is not None:
        raise Refusal(f"{unmade}; train with a variant that conforms")
    return learned


def extended_by(old: Learned, learned: Learned) -> Learned:
    """What was learned, with every id of the tokenizer that was extended; the new tokens are numbered behind them all.

    Raises Refusal if it has not all the merges of the old one, in their order.
    """
    if learned.merges[: len(old.merges)] != old.merges:
        raise Refusal("the merges that were extended are not all there, so their ids cannot stay")
    known, vocab = set(old.token_ids()), dict(old.vocab)
    new = [left + right for left, right in learned.merges if left + right not in known]
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
    """Give every byte, merge and special token its id out of `ids`, which are by GPT-2's spelling.

    Raises ValueError for what is missing or numbered twice, and, unless `others` allows it, for what is left over.
    """
    left_over = dict(ids)
    tokens = dict.fromkeys([*BYTES, *(left + right for left, right in merges)])
    for token in tokens:
        if spelled(token) not in left_over:
            raise ValueError(f"it gives no id to {spelled(token)!r}")
    vocab = {left_over.pop(spelled(token)): token for token in tokens}
    strange = {spelling: number for spelling, number in left_over.items() if spelling not in special_tokens}
    if strange and not others:
        raise ValueError(f"{next(iter(strange))!r} is no byte, no merge makes it, and no special token is called so")
    vocab.update({number: _bytes_of(spelling) for spelling, number in strange.items()})
    vocab.update({number: text.encode() for text, number in special_tokens.items()})
    if len(vocab) < len(tokens) + len(strange) + len(special_tokens):
        raise ValueError("it gives one id to two tokens")
    return Learned(dict(sorted(vocab.items())), list(merges), dict(special_tokens), pattern, ignore_merges)


def first_unmade(merges: Sequence[Merge]) -> str | None:
    """What is wrong with the first merge that joins a token which is no byte and which no merge makes."""
    made = {*BYTES, *(left + right for left, right in merges)}
    for number, merge in enumerate(merges, 1):
        for token in merge:
            if token not in made:
                return f"merge {number} joins {spelled(token)!r}, which nothing makes"
    return None


def check_special_tokens(special_tokens: Iterable[str]) -> None:
    """Raises Refusal for a special token that is empty, stands twice, or has no UTF-8."""
    listed = list(special_tokens)
    for number, text in enumerate(listed):
        if not text or text in listed[:number]:
            raise Refusal(f"special tokens {listed} hold an empty one, or one twice; name each once")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise Refusal(f"special token {text!r} is not UTF-8; leave it out") from error


def _bytes_of(spelling: str) -> bytes:
    """A token that nothing makes: in GPT-2's characters if it keeps to them, else the text itself."""
    try:
        return read_spelling(spelling)
    except KeyError:
        return spelling.encode()
