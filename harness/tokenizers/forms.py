"""The forms of merges and tokenizers: GPT-2's, Hugging Face's, tiktoken's and others, read, written
and opened.

A form that is written gives our ids, and one that is read means the same here; anything else is
refused by name.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from harness.common.errors import UNMEASURED, Refusal, reason
from harness.common.files import readable
from harness.common.units import token_text
from harness.common.values import BYTE_ORDER_MARK, read_json
from harness.tokenizers.learned import (
    BYTES,
    Around,
    Id,
    Learned,
    last_merges,
    merges_behind,
    put_together,
    read_spelling,
    spelled,
    surrounded,
    tokens_made,
)
from harness.tokenizers.pre_tokenizer import (
    BYTE_LEVEL,
    PreTokenizer,
    pattern_of,
    pre_tokenizer_of,
)
from variants.contract import Merge

RANKS_BEGIN = re.compile(rb"[A-Za-z0-9+/]{2,}={0,2} [0-9]+\b")
VOCAB, MERGES, MANIFEST = "vocab.json", "merges.txt", "manifest.json"
TOKENIZER_JSON, RANKS = "tokenizer.json", "ranks.tiktoken"
CONFIG = "tokenizer_config.json"
Value = TypeVar("Value")


def json_text(content: Any) -> bytes:
    """An object as JSON, one entry a line, so that two of them can be compared by eye."""
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


# Lines: merges.txt, as of GPT-2 and CS336, hexadecimal digits, as of an executable, tiktoken's ranks


def merges_text(merges: Sequence[Merge]) -> bytes:
    """The content of merges.txt."""
    lines = (f"{spelled(left)} {spelled(right)}\n" for left, right in merges)
    return "".join(["#version: 0.2\n", *lines]).encode()


def unix_lines(content: bytes) -> bytes:
    """The content without a byte order mark, and with line ends as on Unix."""
    return content.removeprefix(BYTE_ORDER_MARK).replace(b"\r\n", b"\n")


def _pairs(content: bytes, read: Callable[[str, str], Value], wrong: str) -> Iterator[Value]:
    """What `read` makes of the two parts of each line, but a first line `#version`. Raises
    ValueError, with the line, if it cannot read one.
    """
    text = unix_lines(content).rstrip(b"\n")
    for number, line in enumerate(text.split(b"\n") if text else [], 1):
        if number == 1 and line.startswith(b"#version"):
            continue
        try:
            left, right = line.decode().split(" ")
            yield read(left, right)
        except (KeyError, ValueError) as error:
            raise ValueError(
                f"line {number} {wrong}: {line[:80].decode(errors='replace')!r}"
            ) from error


def _merges(decode: Callable[[str], bytes], wrong: str, content: bytes) -> list[Merge]:
    """Read a merge from each line, whose two tokens `decode` turns into bytes."""
    return list(_pairs(content, lambda left, right: (decode(left), decode(right)), wrong))


read_merges = partial(_merges, read_spelling, "is not a merge")
from_hexadecimal = partial(_merges, bytes.fromhex, "is not two tokens in hexadecimal digits")


def from_ranks(content: bytes) -> list[Merge]:
    """The merges behind ranks: every token of several bytes is its own last merge."""
    ranks = read_ranks(content)
    merges = merges_behind(ranks)
    made = {*BYTES, *tokens_made(merges)}
    for token in ranks:
        if token not in made:
            raise ValueError(f"{token!r} of rank {ranks[token]} is not joined from two tokens")
    return merges


def begin_like_ranks(content: bytes) -> bool:
    """Whether a file begins with a token in base64 and its rank, whatever it is called."""
    return RANKS_BEGIN.match(content.removeprefix(BYTE_ORDER_MARK)) is not None


def read_ranks(content: bytes) -> dict[bytes, int]:
    """The rank of every token. Raises ValueError for a broken line, or if a byte has no rank."""
    decode = partial(base64.b64decode, validate=True)
    wrong = "is not a token in base64 and its rank"
    entries = list(_pairs(content, lambda token, rank: (decode(token), int(rank)), wrong))
    ranks = dict(entries)
    if len({*ranks.values()}) < len(entries):
        raise ValueError("two lines have the same token or the same rank")
    if missing := [token for token in BYTES if token not in ranks]:
        raise ValueError(f"byte {missing[0][0]} has no rank; a byte-level vocabulary holds all 256")
    return ranks


# tokenizer.json, Hugging Face's form.
#
# Four things must be right, or the file loads and silently encodes otherwise: the pattern is an
# isolated Split by a Regex before a ByteLevel without its own pattern; merges are pairs, so that
# spaces in tokens survive; special tokens are in the vocabulary as well as in added_tokens, which
# are otherwise renumbered; `ignore_merges` is false. tokenizers 1.0 compiles only the patterns that
# it knows by their text.


class _AddedToken(msgspec.Struct):
    id: Id
    content: str
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False
    special: bool = True


class _Model(msgspec.Struct):
    type: str = "BPE"
    dropout: float | None = None
    unk_token: str | None = None
    continuing_subword_prefix: str | None = None
    end_of_word_suffix: str | None = None
    fuse_unk: Any = False
    byte_fallback: bool = False
    ignore_merges: bool = False
    vocab: dict[str, Id] | list[Any] = {}  # a list in other models
    merges: list[tuple[str, str] | str] | None = None

    def __post_init__(self) -> None:
        """Refuse a model whose tokens are not bytes."""
        if self.type != "BPE":
            raise ValueError(f"its model is {self.type}; ours is byte-level BPE")
        if isinstance(self.vocab, list):
            raise ValueError("its vocab is a list; in BPE it is an object of ids")
        for key in ("continuing_subword_prefix", "end_of_word_suffix"):
            if value := getattr(self, key):
                raise ValueError(f"its {key} is {value!r}; ours has none")


class TokenizerJson(msgspec.Struct, kw_only=True):
    """What such a file has, in its order."""

    version: Any = "1.0"
    truncation: Any = None
    padding: Any = None
    added_tokens: list[_AddedToken] = []
    normalizer: PreTokenizer | None = None
    pre_tokenizer: PreTokenizer | None = None
    post_processor: Any = None
    decoder: Any = None
    model: _Model

    def merges(self) -> list[Merge]:
        """The merges of the model. Raises ValueError if they are not merges of bytes."""
        if self.model.merges is None:
            raise ValueError("its model has no merges")
        return [_json_merge(number, entry) for number, entry in enumerate(self.model.merges, 1)]

    def pattern(self) -> str | None:
        """What it splits a text by. Raises ValueError if it does anything with the text that ours
        cannot.
        """
        if self.normalizer is not None:
            raise ValueError(
                f"it changes the text first (normalizer {self.normalizer.type}); ours never does"
            )
        for key in ("byte_fallback", "dropout"):
            if value := getattr(self.model, key):
                raise ValueError(f"its {key} is {value!r}; ours has none")
        return pattern_of(self.pre_tokenizer)


def check_one_id(learned: Learned, name: str) -> None:
    """Raises Refusal if a special token is spelled like another token: the file `name` has one id
    for a spelling.
    """
    spellings = {spelled(token) for token in learned.token_ids()}
    if hidden := [text for text in learned.special_tokens if text in spellings]:
        why = f"special token {hidden[0]!r} is spelled like another token, and a spelling has one id there"
        raise Refusal(f"{name} cannot hold this tokenizer: {why}")


def spelled_ids(learned: Learned) -> dict[str, int]:
    """The id of each token by its spelling, without a special token that is spelled like another
    token.
    """
    ids = dict(learned.special_tokens)
    for token, number in learned.token_ids().items():
        ids[spelled(token)] = number
    return dict(sorted(ids.items(), key=itemgetter(1)))


def tokenizer_json(learned: Learned) -> bytes:
    """The content of tokenizer.json. Raises Refusal for a tokenizer that the form cannot hold."""
    check_one_id(learned, TOKENIZER_JSON)
    try:
        pre_tokenizer: Any = pre_tokenizer_of(learned.pattern)
    except ValueError as error:
        raise Refusal(f"{TOKENIZER_JSON} cannot hold this tokenizer: {error}") from error

    added = []
    for text, number in sorted(learned.special_tokens.items(), key=itemgetter(1)):
        is_special = text not in learned.around.ordinary
        added.append(_AddedToken(number, text, special=is_special))

    model = _Model(
        unk_token=learned.around.unk_token,
        ignore_merges=learned.ignore_merges,
        vocab=spelled_ids(learned),
        merges=[(spelled(left), spelled(right)) for left, right in learned.merges],
    )
    file = TokenizerJson(
        added_tokens=added,
        pre_tokenizer=pre_tokenizer,
        decoder=BYTE_LEVEL,
        model=model,
        truncation=learned.around.truncation,
        padding=learned.around.padding,
        post_processor=learned.around.post_processor,
    )
    return json_text(file)


# tokenizer_config.json, which says to transformers what a special token is for. It decides no ids.

ROLES = {
    "bos_token": ("<s>", "<bos>", "<|bos|>", "[BOS]", "<|begin_of_text|>", "<|startoftext|>"),
    "eos_token": ("</s>", "<eos>", "<|eos|>", "[EOS]", "<|end_of_text|>", "<|endoftext|>"),
    "pad_token": ("<pad>", "<|pad|>", "[PAD]", "<|padding|>"),
}
"""The special tokens that have a role by their text."""


def roles_of(learned: Learned) -> dict[str, str]:
    """The begin, end and padding token, of each the one that is named, or the only one whose text
    says so.
    """
    roles = {}
    for role, texts in ROLES.items():
        there = [text for text in texts if text in learned.special_tokens]
        if len(there) == 1:
            roles[role] = there[0]
    return roles | learned.around.roles


def config_json(learned: Learned) -> bytes:
    """The content of tokenizer_config.json."""
    unknown = learned.around.unk_token
    facts = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    facts |= roles_of(learned) | ({} if unknown is None else {"unk_token": unknown})
    return json_text(facts)


def read_roles(content: bytes, learned: Learned) -> dict[str, str]:
    """The begin, end and padding token that a tokenizer_config.json names, if their texts do not."""
    config = read_json(content, dict[str, Any])
    by_text, roles = roles_of(learned), {}
    for role in ROLES:
        token = config.get(role)
        text: Any = token.get("content") if isinstance(token, dict) else token
        if text in [*learned.special_tokens] and text != by_text.get(role):
            roles[role] = text
    return roles


def _json_merge(number: int, entry: tuple[str, str] | str) -> Merge:
    try:
        left, right = filter(None, entry.split(" ") if isinstance(entry, str) else entry)
    except ValueError as error:
        raise ValueError(f"merge {number} is not a pair of tokens: {entry!r}") from error
    try:
        return read_spelling(left), read_spelling(right)
    except KeyError as error:
        why = f"where {error} is not a byte; only byte-level BPE can be replayed"
        raise ValueError(f"merge {number} is {entry!r}, {why}") from error


def read_tokenizer_json(content: bytes) -> Learned:
    """The tokenizer in a tokenizer.json. Raises ValueError if it does what ours cannot."""
    file: TokenizerJson = read_json(content, TokenizerJson)
    merges = file.merges()
    pattern = file.pattern()
    ids = dict(file.model.vocab)
    following = len(ids)
    for token in file.added_tokens:
        for key in ("lstrip", "rstrip", "single_word"):
            if getattr(token, key):
                raise ValueError(
                    f"its added token {token.content!r} has {key}, which ours cannot have"
                )

        # Hugging Face numbers a token of added_tokens alone itself, whatever its id in the file.
        number = ids.setdefault(token.content, following)
        if number != token.id:
            raise ValueError(
                f"it gives the id {token.id} to {token.content!r}, and Hugging Face {number}"
            )
        following = max(following, number + 1)

    special_tokens = {token.content: token.id for token in file.added_tokens}
    learned = put_together(ids, merges, special_tokens, pattern, file.model.ignore_merges)
    return surrounded(learned, around_in(file))


def around_in(file: TokenizerJson) -> Around:
    """What the file says beside the ids. Raises ValueError for added tokens that Hugging Face finds
    in two passes with another result: those that are `normalized` after the others.
    """
    passes: dict[bool, list[str]] = {False: [], True: []}
    for token in file.added_tokens:
        passes[token.normalized].append(token.content)
    for first, second in product(*passes.values()):
        if may_overlap(first, second):
            raise ValueError(
                f"its added token {second!r} is normalized and may overlap {first!r}, which is not; "
                "ours are found in one pass"
            )

    ordinary = [token.content for token in file.added_tokens if not token.special]
    parts = msgspec.convert(file, Around, from_attributes=True)
    return replace(parts, ordinary=ordinary, unk_token=file.model.unk_token)


def may_overlap(first: str, second: str) -> bool:
    """Whether two texts can have characters of a text in common.

    >>> may_overlap("ab", "bc"), may_overlap("abc", "b"), may_overlap("<a>", "<b>")
    (True, True, False)
    """
    if first in second or second in first:
        return True
    lengths = range(1, min(len(first), len(second)))
    return any(first[-n:] == second[:n] or second[-n:] == first[:n] for n in lengths)


# tiktoken's ranks: a line for each token, in base64, with its rank, which is its id; the pattern is
# elsewhere.
#
# tiktoken joins two neighbours by the rank of their result, whichever two they are, and takes a
# whole pre-token that is a token at once. We and Hugging Face make the merge that was learned. Both
# agree on every text if and only if ids are in the order of merges and the bytes of each token
# alone become that token: what is between two boundaries of a text merges as it does alone, so no
# other two parts of a token are ever neighbours there.


def why_not(learned: Learned) -> str | None:
    """Why tiktoken would not give the same ids; None if it gives them on every text."""
    ids, made = learned.token_ids(), tokens_made(learned.merges)
    by_rank = [ids[token] for token in made]
    if by_rank != sorted(by_rank):
        return "the ids of its tokens are not in the order of its merges, and tiktoken merges in the order of ids"
    ranks = {merge: rank for rank, merge in enumerate(learned.merges)}
    last = last_merges(ids, ranks.get, made)
    if learned.ignore_merges:
        same = last == merges_behind(ids)
        return None if same else "its merges make other tokens than its ids' order does"
    alive = {*BYTES, *tokens_made(last)}
    if dead := [token for token in ids if token not in alive]:
        never = f"its merges never make, such as {token_text(dead[0], 60)}"
        return f"tiktoken merges by the rank of the result, not of the two tokens, and would use tokens that {never}"
    return None


def ranks_text(learned: Learned) -> bytes:
    """The content of the file of ranks. Raises Refusal for a tokenizer with which tiktoken gives
    other ids.
    """
    if (why := why_not(learned)) is not None:
        raise Refusal(f"{RANKS} cannot hold this tokenizer: {why}")
    by_id = sorted(learned.token_ids().items(), key=itemgetter(1))
    return b"".join(base64.b64encode(token) + f" {number}\n".encode() for token, number in by_id)


def of_ranks(
    ranks: Mapping[bytes, int], special_tokens: Mapping[str, int], pattern: str | None
) -> Learned:
    """The tokenizer of ranks, special tokens and a pattern. Raises ValueError if they do not fit
    each other.

    A token that merging by rank never makes is met only as a whole pre-token; then `ignore_merges`
    is true.
    """
    merges = merges_behind(ranks)
    ids = {spelled(token): rank for token, rank in ranks.items()}
    return put_together(ids, merges, special_tokens, pattern, len(merges) < len(ranks) - len(BYTES))


# Merges as any tool writes them: the content decides the form, not the file's name

_READERS: Mapping[str, tuple[bytes, Callable[[bytes], list[Merge]]]] = {
    "tokenizer.json": (
        rb'\s*\{\s*"[^"\n]*"\s*:',
        lambda content: read_json(content, TokenizerJson).merges(),
    ),
    # The first merge joins single bytes, which are single characters in GPT-2's form.
    "hexadecimal lines": (rb"[0-9a-fA-F]{2} [0-9a-fA-F]{2}\b", from_hexadecimal),
    "tiktoken's ranks": (RANKS_BEGIN.pattern, from_ranks),
    "GPT-2's merges.txt": (b"", read_merges),
}
"""How the content of each form begins, and what reads it."""
FORMS = ", ".join(_READERS)


class MergesFile(NamedTuple):
    """Merges in order, and the form they were read from."""

    merges: Sequence[Merge]
    form: str


def word_mark(merges: Sequence[Merge]) -> str | None:
    """What marks the words of a word-level list: a token with `</w>` or `##` that no merge made;
    None in a list of bytes.

    >>> word_mark([(b"l", b"ow</w>")]), word_mark([(b"<", b"/"), (b"</", b"w"), (b"</w", b">")])
    ('</w>', None)
    """
    tokens = set(BYTES)
    for left, right in merges:
        for token in {left, right} - tokens:
            if token.endswith(b"</w>"):
                return "</w>"
            if token.startswith(b"##"):
                return "##"
        tokens.add(left + right)
    return None


def not_merges(why: str) -> Refusal:
    return Refusal(f"{why}; pass a file of byte-level merges", UNMEASURED)


def read_merges_file(path: Path) -> MergesFile:
    """The merges in a file or folder. Raises Refusal, with the line, for a file of no form or a
    broken one.
    """
    if path.is_dir():
        names = [name for name in (MERGES, TOKENIZER_JSON) if (path / name).is_file()]
        if not names:
            raise not_merges(f"{path} holds none of {MERGES}, {TOKENIZER_JSON}")
        path /= names[0]

    try:
        content = readable(path).read_bytes()
    except OSError as error:
        raise not_merges(f"cannot read {path} ({reason(error)})") from error

    content = unix_lines(content)
    form = next(form for form, (beginning, _) in _READERS.items() if re.match(beginning, content))
    try:
        merges = _READERS[form][1](content)
    except ValueError as error:
        raise Refusal(f"{path}, read as {form}: {error}; it can be {FORMS}", UNMEASURED) from error
    if (mark := word_mark(merges)) is not None:
        raise not_merges(f"{path} holds merges of words that are marked by {mark}, not of bytes")
    return MergesFile(merges, form)
