"""Merges as any tool writes them. The content decides the form, not the file's name.

- GPT-2's merges.txt: two tokens a line in GPT-2's characters, with or without the line `#version`; CS336's, too.
- tokenizer.json of Hugging Face: the merges of its model, as pairs or as lines.
- tiktoken's ranks: a token in base64 and its rank a line. Each merge is inferred by encoding the token's bytes with
  the tokens of lower rank.
- hexadecimal: two tokens a line in hexadecimal digits, as an executable writes them.
- minbpe's .model: two token ids a line below the pattern and the special tokens.
- a folder that `save=FOLDER` or another library has written, which holds one of these.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from harness.common.errors import Refusal, reason
from harness.tokenizers.learned import BYTES, merges_behind, read_json, read_spelling, spelled
from variants.contract import Merge

FORMS = "GPT-2's merges.txt, tokenizer.json, tiktoken's ranks, hexadecimal lines, minbpe's .model"
IN_A_FOLDER = ("merges.txt", "tokenizer.json")
HEADER = "#version: 0.2"
MINBPE = b"minbpe v1\n"
Value = TypeVar("Value")


class MergesFile(NamedTuple):
    """Merges in order, and the form they were read from."""

    merges: Sequence[Merge]
    form: str


def read_merges_file(path: Path) -> MergesFile:
    """Read a file of any of the forms. Raises Refusal, with the line, for a file of no form or a broken one."""
    if path.is_dir():
        path = _in_folder(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Refusal(f"cannot read {path} ({reason(error)}); pass a file of merges") from error
    content = content.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
    form, read = _form_of(path, content)
    try:
        return MergesFile(read(content), form)
    except ValueError as error:
        raise Refusal(f"{path}, read as {form}: {error}; it can be {FORMS}") from error


def _in_folder(folder: Path) -> Path:
    for name in IN_A_FOLDER:
        if (folder / name).is_file():
            return folder / name
    raise Refusal(f"{folder} holds none of {', '.join(IN_A_FOLDER)}; pass a file of merges")


def _form_of(path: Path, content: bytes) -> tuple[str, Callable[[bytes], list[Merge]]]:
    if path.suffix == ".json" or _is_json(content):
        return "tokenizer.json", from_tokenizer_json
    if content.startswith(MINBPE):
        return "minbpe's .model", from_minbpe
    # The first merge joins single bytes, which are single characters in GPT-2's form.
    if re.match(rb"[0-9a-fA-F]{2} [0-9a-fA-F]{2}\b", content):
        return "hexadecimal lines", from_hexadecimal
    if re.match(rb"[A-Za-z0-9+/]{2,}={0,2} [0-9]+\b", content):
        return "tiktoken's ranks", from_ranks
    return "GPT-2's merges.txt", read_merges


def _is_json(content: bytes) -> bool:
    """Whether it is a JSON object; a list of merges may start with a brace as well."""
    try:
        return content.lstrip().startswith(b"{") and bool(read_json(content))
    except ValueError:
        return False


def merge_line(merge: Merge) -> str:
    """A merge as a line of merges.txt.

    >>> merge_line((b" t", b"he"))
    'Ġt he'
    """
    return f"{spelled(merge[0])} {spelled(merge[1])}"


def merges_text(merges: Sequence[Merge]) -> bytes:
    """The content of merges.txt."""
    return "".join(f"{line}\n" for line in [HEADER, *map(merge_line, merges)]).encode()


def read_merges(content: bytes) -> list[Merge]:
    """The merges in merges.txt; the header may be missing. Raises ValueError for a line that is not a merge."""

    def read(line: bytes) -> Merge:
        left, right = map(read_spelling, line.decode().split(" "))
        return left, right

    return list(_each_line(content, read, "is not a merge", 2 if content.startswith(b"#version") else 1))


def _each_line(content: bytes, read: Callable[[bytes], Value], wrong: str, first: int = 1) -> Iterator[Value]:
    """What `read` makes of each line. Raises ValueError, with the line, for one that it cannot read."""
    for number, line in enumerate(content.rstrip(b"\n").split(b"\n"), 1):
        if number < first or not content.strip(b"\n"):
            continue
        try:
            yield read(line)
        except (KeyError, ValueError) as error:
            raise ValueError(f"line {number} {wrong}: {line[:80].decode(errors='replace')!r}") from error


def from_hexadecimal(content: bytes) -> list[Merge]:
    """Lines of two tokens in hexadecimal digits.

    >>> from_hexadecimal(b"74 68\\n7468 65\\n")
    [(b't', b'h'), (b'th', b'e')]
    """

    def read(line: bytes) -> Merge:
        left, right = map(bytes.fromhex, line.decode().split(" "))
        return left, right

    return list(_each_line(content, read, "is not two tokens in hexadecimal digits"))


def from_tokenizer_json(content: bytes) -> list[Merge]:
    """The merges of a tokenizer.json. Raises ValueError if they are not merges of bytes."""
    try:
        model = read_json(content)["model"]
        entries = model["merges"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError("it is not a JSON object with model.merges") from error
    check_model(model)
    if not isinstance(entries, list):
        raise ValueError("model.merges is not a list")
    return [_json_merge(number, entry) for number, entry in enumerate(entries, 1)]


def check_model(model: Mapping[str, Any]) -> None:
    """Raises ValueError for the model of a tokenizer.json whose tokens are not bytes."""
    if model.get("type", "BPE") != "BPE":
        raise ValueError(f"its model is {model['type']}; ours is byte-level BPE")
    for key in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(key):
            raise ValueError(f"its {key} is {model[key]!r}; ours has none")


def _json_merge(number: int, entry: Any) -> Merge:
    try:
        left, right = entry.split(" ") if isinstance(entry, str) else entry
        merge = (read_spelling(left), read_spelling(right))
    except KeyError as error:
        raise ValueError(
            f"merge {number} is {entry!r}, where {error} is not a byte; only byte-level BPE can be replayed"
        ) from error
    except (ValueError, TypeError) as error:
        raise ValueError(f"merge {number} is not a pair of tokens: {entry!r}") from error
    if not all(merge):
        raise ValueError(f"merge {number} joins an empty token: {entry!r}")
    return merge


def from_ranks(content: bytes) -> list[Merge]:
    """The merges behind ranks: every token of several bytes is its own last merge."""
    ranks = read_ranks(content)
    merges = merges_behind(ranks)
    joined = {left + right for left, right in merges if max(ranks[left], ranks[right]) < ranks[left + right]}
    if alone := next((token for token in ranks if len(token) > 1 and token not in joined), None):
        raise ValueError(f"{alone!r} of rank {ranks[alone]} is not joined from two tokens of lower rank")
    return merges


def read_ranks(content: bytes) -> dict[bytes, int]:
    """The rank of every token. Raises ValueError for a broken line, or if a byte has no rank."""
    ranks: dict[bytes, int] = {}

    def read(line: bytes) -> int:
        token, rank = line.split(b" ")
        return ranks.setdefault(base64.b64decode(token, validate=True), int(rank))

    lines = len(list(_each_line(content, read, "is not a token in base64 and its rank")))
    if len(ranks) < lines:
        raise ValueError("two lines have the same token")
    if len(set(ranks.values())) < len(ranks):
        raise ValueError("two tokens have the same rank")
    if missing := [token for token in BYTES if token not in ranks]:
        raise ValueError(f"byte {missing[0][0]} has no rank; a byte-level vocabulary holds all 256")
    return ranks


def from_minbpe(content: bytes) -> list[Merge]:
    """Pairs of ids below the pattern, a number of special tokens, and these."""
    try:
        specials = int(content.split(b"\n")[2])
    except (IndexError, ValueError) as error:
        raise ValueError("line 3 is not a number of special tokens") from error
    tokens = dict(enumerate(BYTES))

    def read(line: bytes) -> Merge:
        left, right = (tokens[int(number)] for number in line.split(b" "))
        tokens[len(tokens)] = left + right
        return left, right

    return list(_each_line(content, read, "is not two ids of earlier tokens", 4 + specials))
