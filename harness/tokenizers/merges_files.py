"""Merges as any tool writes them: the forms are told apart by what stands in the file, not by its name.

- GPT-2's merges.txt: two tokens a line in GPT-2's characters, with or without the line `#version`; CS336's, too.
- tokenizer.json of Hugging Face: the merges of its model, as pairs or as lines.
- tiktoken's ranks: a token in base64 and its rank a line. It names no merges; each token is joined from the two that
  encoding its bytes with the tokens of lower rank leaves.
- hexadecimal: two tokens a line in hexadecimal digits, as an executable writes them.
- minbpe's .model: two token ids a line below the pattern and the special tokens.
- a folder that `save=FOLDER` or another library has written, which holds one of these.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.common.errors import Refusal
from harness.common.files import read_whole
from harness.tokenizers.gpt2_form import read_merges, read_spelling
from variants.contract import Merge

FORMS = "GPT-2's merges.txt, tokenizer.json, tiktoken's ranks, hexadecimal lines, minbpe's .model"
IN_A_FOLDER = ("merges.txt", "tokenizer.json")
HEXADECIMAL = re.compile(rb"((?:[0-9a-fA-F]{2})+) ((?:[0-9a-fA-F]{2})+)")
RANK = re.compile(rb"((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==|[A-Za-z0-9+/](?:=|[A-Za-z0-9+/])))) ([0-9]{1,9})")
MINBPE = b"minbpe v1\n"
IDS = re.compile(r"([0-9]{1,9}) ([0-9]{1,9})")
BYTES = 256
NO_RANK = 1 << 62


class MergesFile(NamedTuple):
    """Merges in order, and the form they were read from."""

    merges: Sequence[Merge]
    form: str


def read_merges_file(path: Path) -> MergesFile:
    """Read a file of any of the forms. Raises Refusal, with the line, for what is none of them or broken."""
    if path.is_dir():
        path = _in_folder(path)
    try:
        content = read_whole(path)
    except OSError as error:
        raise Refusal(f"cannot read {path} ({error.strerror or error}); name a file of merges") from error
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
    raise Refusal(f"{folder} holds none of {', '.join(IN_A_FOLDER)}; name a file of merges")


def _form_of(path: Path, content: bytes) -> tuple[str, Callable[[bytes], list[Merge]]]:
    if path.suffix == ".json" or _is_json(content):
        return "tokenizer.json", from_tokenizer_json
    if content.startswith(MINBPE):
        return "minbpe's .model", from_minbpe
    first = content.partition(b"\n")[0]
    if RANK.fullmatch(first):
        return "tiktoken's ranks", from_ranks
    # In GPT-2's form the first merge joins single characters, and hexadecimal digits come in pairs.
    if HEXADECIMAL.fullmatch(first):
        return "hexadecimal lines", from_hexadecimal
    return "GPT-2's merges.txt", from_gpt2


def _is_json(content: bytes) -> bool:
    """Whether it is a JSON object; a list of merges may begin with a brace as well."""
    if not content.lstrip().startswith(b"{"):
        return False
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        return False
    return True


def from_gpt2(content: bytes) -> list[Merge]:
    stripped = content.rstrip(b"\n")
    return read_merges(stripped + b"\n" if stripped else b"")


def from_hexadecimal(content: bytes) -> list[Merge]:
    """Lines of two tokens in hexadecimal digits.

    >>> from_hexadecimal(b"74 68\\n7468 65\\n")
    [(b't', b'h'), (b'th', b'e')]
    """
    merges = []
    for number, line in enumerate(content.rstrip(b"\n").split(b"\n"), 1):
        found = HEXADECIMAL.fullmatch(line)
        if found is None:
            raise ValueError(f"line {number} is not two tokens in hexadecimal digits: {shown(line)}")
        left, right = (bytes.fromhex(token.decode()) for token in found.groups())
        merges.append((left, right))
    return merges


def from_tokenizer_json(content: bytes) -> list[Merge]:
    try:
        model = json.loads(content)["model"]
        listed = model["merges"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError("it is no JSON object with model.merges") from error
    if model.get("type", "BPE") != "BPE":
        raise ValueError(f"its model is {model['type']}, which has no merges of bytes")
    for key in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(key):
            raise ValueError(f"its {key} is {model[key]!r}; tokens of bytes have none")
    if not isinstance(listed, list):
        raise ValueError("model.merges is no list")
    merges = []
    for number, each in enumerate(listed, 1):
        try:
            left, right = each.split(" ") if isinstance(each, str) else each
            merges.append((read_spelling(left), read_spelling(right)))
        except KeyError as error:
            raise ValueError(
                f"merge {number} is {each!r}, where {error} stands for no byte; only byte-level BPE can be replayed"
            ) from error
        except (ValueError, TypeError) as error:
            raise ValueError(f"merge {number} is no pair of tokens: {each!r}") from error
        if not all(merges[-1]):
            raise ValueError(f"merge {number} joins an empty token: {each!r}")
    return merges


def from_ranks(content: bytes) -> list[Merge]:
    """The merges behind ranks: every token of several bytes is its own last merge."""
    ranks = read_ranks(content)
    merges = merges_behind(ranks)
    joined = {left + right for left, right in merges if max(ranks[left], ranks[right]) < ranks[left + right]}
    if alone := next((token for token in ranks if len(token) > 1 and token not in joined), None):
        raise ValueError(f"{alone!r} of rank {ranks[alone]} is not joined from two tokens of lower rank")
    return merges


def read_ranks(content: bytes) -> dict[bytes, int]:
    """The rank of every token. Raises ValueError for a line that gives none, or if a byte has none."""
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(content.rstrip(b"\n").split(b"\n"), 1):
        found = RANK.fullmatch(line)
        if found is None:
            raise ValueError(f"line {number} is not a token in base64 and its rank: {shown(line)}")
        token = base64.b64decode(found[1])
        if token in ranks:
            raise ValueError(f"line {number} holds a token that stood before: {shown(line)}")
        ranks[token] = int(found[2])
    if len(set(ranks.values())) < len(ranks):
        raise ValueError("two tokens have the same rank")
    if missing := [byte for byte in range(BYTES) if bytes((byte,)) not in ranks]:
        raise ValueError(f"byte {missing[0]} has no rank; a byte-level vocabulary holds all 256")
    return ranks


def merges_behind(ranks: Mapping[bytes, int]) -> list[Merge]:
    """The merge of each token of several bytes, in order; none for a token that merging by rank never makes.

    Whatever stands beside a token, its own bytes are merged as they are alone, or it is not made: so its one merge
    joins the two parts that its bytes alone come down to. In ranks that no training gave these may have higher ranks.
    """
    longer = sorted((token for token in ranks if len(token) > 1), key=ranks.__getitem__)
    return [merge for token in longer if (merge := _last_merge(token, ranks)) is not None]


def _last_merge(token: bytes, ranks: Mapping[bytes, int]) -> Merge | None:
    """The two parts that are left when a token's bytes are merged by rank; None if more are left."""
    parts = [bytes((byte,)) for byte in token]
    while len(parts) > 2:
        rank, place = min(
            (ranks.get(left + right, NO_RANK), place) for place, (left, right) in enumerate(zip(parts, parts[1:]))
        )
        if rank == NO_RANK:
            return None
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    left, right = parts
    return left, right


def from_minbpe(content: bytes) -> list[Merge]:
    lines = content.decode(errors="replace").rstrip("\n").split("\n")
    try:
        specials = int(lines[2])
    except (IndexError, ValueError) as error:
        raise ValueError("line 3 is no number of special tokens") from error
    tokens = [bytes((byte,)) for byte in range(BYTES)]
    merges = []
    for number, line in enumerate(lines[3 + specials :], 4 + specials):
        found = IDS.fullmatch(line)
        ids = [int(digits) for digits in found.groups()] if found else [len(tokens)]
        if max(ids) >= len(tokens):
            raise ValueError(f"line {number} is not two ids of tokens made before: {line[:80]!r}")
        left, right = (tokens[token_id] for token_id in ids)
        merges.append((left, right))
        tokens.append(left + right)
    return merges


def shown(line: bytes) -> str:
    return repr(line[:80].decode(errors="replace"))
