"""How a tokenizer encodes and decodes: by compiled code where it has some, else by the plain one,
which gives the same; and the ids of documents in a file.

The plain encoder says what a text's ids are by definition, in Python. A text is split at special
tokens, the longest first, then by the pattern, and each pre-token is merged by rank. Bytes that are
not UTF-8 are lone surrogates in it, as in Python's own arguments. A text that comes in parts is cut
where that changes no word, so memory stays bounded.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import regex

from harness.common.errors import UNMEASURED, Refusal, reason
from harness.common.files import followed, output_files, readable
from harness.common.units import counted_text
from harness.common.values import read_json
from harness.tokenizers.learned import BYTES, Learned, join, tokens_made
from harness.tokenizers.pre_tokenizer import compiled_pattern
from variants import encoding
from variants.contract import Pair, Unavailable

if TYPE_CHECKING:
    import numpy as np

WORDS_CACHED = 1 << 14
# bytes that a thread encodes at a time; a document without a safe cut is encoded whole
WINDOW = 1 << 20


class PlainEncoder:
    """A tokenizer's encoder. Raises Refusal for a pattern that is not a regular expression, and for
    a token without an id. `why_plain` says why there is no compiled one.
    """

    def __init__(self, learned: Learned, special_tokens: bool = True, why_plain: str = "") -> None:
        self.pattern = compiled_pattern(learned.pattern)
        self.type_code, self.why_plain = learned.type_code(), why_plain

        ids = learned.token_ids()
        self.byte_ids = [ids[byte] for byte in BYTES]
        self.id_of_rank = [ids[token] for token in tokens_made(learned.merges)]
        self.whole = ids if learned.ignore_merges else {}
        self.ranks: dict[Pair, int] = {}
        for rank, (left, right) in enumerate(learned.merges):
            self.ranks.setdefault((ids[left], ids[right]), rank)
        self.cached_ids = functools.lru_cache(WORDS_CACHED)(self.merged)

        self.special_ids = learned.special_tokens if special_tokens else {}
        longest_first = sorted(self.special_ids, key=len, reverse=True)
        one_of_them = "|".join(map(re.escape, longest_first)) or "(?!)"
        self.special = re.compile(f"({one_of_them})")
        self.longest_special = max(map(len, longest_first), default=1)

    def encode(self, text: str | bytes) -> list[int]:
        """The ids of a whole text."""
        whole = as_bytes(text).decode(errors="surrogateescape")
        ids = list[int]()
        for stretch in self.special.split(whole):
            if stretch in self.special_ids:
                ids.append(self.special_ids[stretch])
            else:
                ids += self.plain(stretch)
        return ids

    def encode_batch(self, texts: Sequence[str | bytes], _: int) -> tuple[array[int], list[int]]:
        """The ids of texts in one array, and where each text ends."""
        ids, ends = array(self.type_code), []
        for text in texts:
            ids.extend(self.encode(text))
            ends.append(len(ids))
        return ids, ends

    def last_cut(self, text: bytes) -> int:
        """The end of the last special token that no text behind it could make longer; 0 for none."""
        whole, cut = text.decode(errors="surrogateescape"), 0
        for special in self.special.finditer(whole):
            if special.start() + self.longest_special <= len(whole):
                cut = special.end()
        return len(whole[:cut].encode(errors="surrogateescape"))

    def plain(self, stretch: str) -> list[int]:
        """The ids of text without special tokens."""
        ids: list[int] = []
        for piece in pre_tokens_of(self.pattern, stretch):
            ids += self.cached_ids(piece)
        return ids

    def merged(self, piece: str) -> list[int]:
        """The ids of one pre-token."""
        content = piece.encode(errors="surrogateescape")
        if content in self.whole:
            return [self.whole[content]]
        return join([self.byte_ids[byte] for byte in content], self.ranks.get, self.id_of_rank)


class PlainDecoder:
    """A vocabulary's decoder, by definition."""

    def __init__(self, vocab: Mapping[int, bytes]) -> None:
        self.vocab = vocab

    def decode(self, ids: Iterable[int]) -> bytes:
        """The bytes of some ids. Raises KeyError, with its place and the id, for an unknown one, and
        TypeError for what is not a number.
        """
        tokens = []
        for place, number in enumerate(ids):
            token = self.vocab.get(index(number))
            if token is None:
                raise KeyError(place, number)
            tokens.append(token)
        return b"".join(tokens)


def pre_tokens_of(pattern: regex.Pattern[str] | None, stretch: str) -> list[str]:
    """The pre-tokens, and between them what the pattern passes over, so that nothing is lost."""
    if pattern is None:
        return [stretch]

    # Sorted, because a pattern may say (?r) and be matched from the end.
    spans = sorted(match.span() for match in pattern.finditer(stretch))
    found, end = [], 0
    for start, stop in [*spans, (len(stretch), len(stretch))]:
        found += [stretch[end:start], stretch[start:stop]]
        end = stop
    return list(filter(None, found))


def as_bytes(text: Any) -> bytes:
    """A text as UTF-8, bytes as they are. Raises UnicodeEncodeError for a text with lone
    surrogates, TypeError for anything else.
    """
    if isinstance(text, bytes):
        return text
    if isinstance(text, bytearray | memoryview):
        return bytes(text)
    if not isinstance(text, str):
        raise TypeError(f"a text is str or bytes, not {type(text).__name__}")
    return text.encode(errors="surrogateescape")


def refuse_frame(items: Any, name: str) -> None:
    """Raise TypeError for a data frame: the names of its columns, or the columns, would be
    taken for texts.
    """
    if hasattr(items, "columns"):
        raise TypeError(
            f"{name} is a {type(items).__name__}, not texts; pass one of its columns, such as frame['text']"
        )


# Compiled, or plain


def compiled_encoder(learned: Learned, special_tokens: bool = True) -> Any:
    """The compiled encoder, with the methods of the plain one. Raises Unavailable, with the reason,
    if the tokenizer has none.
    """
    return encoding.encoder(
        learned.token_ids(),
        learned.merges,
        learned.special_tokens if special_tokens else {},
        learned.pattern,
        max(learned.vocab),
        ignore_merges=learned.ignore_merges,
    )


def encoder_of(learned: Learned, special_tokens: bool = True) -> PlainEncoder:
    """The encoder of a tokenizer, compiled or with the methods of the plain one, which says why."""
    try:
        encoder: PlainEncoder = compiled_encoder(learned, special_tokens)
        return encoder
    except Unavailable as error:
        return PlainEncoder(learned, special_tokens, str(error))


def decoder_of(learned: Learned) -> PlainDecoder:
    """The decoder of a tokenizer, compiled or with the methods of the plain one."""
    try:
        decoder: PlainDecoder = encoding.decoder(learned.vocab)
        return decoder
    except Unavailable:
        return PlainDecoder(learned.vocab)


# Texts in parts


def streamed(
    encoder: PlainEncoder, parts: Iterable[bytes], threads: int = 1
) -> Iterator[memoryview]:
    """The ids of one text that comes in parts, as they come."""
    for stretch in stretches(encoder, parts, threads * WINDOW):
        ids, _ = encoder.encode_batch([stretch], threads)
        yield memoryview(ids)


def stretches(encoder: PlainEncoder, parts: Iterable[bytes], window: int) -> Iterator[bytes]:
    """The parts joined, and cut where that changes no word. What later text could change waits
    for it.
    """
    waiting, enough = bytearray(), window
    for part in windows(parts, window):
        waiting += part
        if len(waiting) < enough:
            continue

        cut = encoder.last_cut(bytes(waiting))
        yield bytes(waiting[:cut])
        del waiting[:cut]
        # If nothing could be cut, looking after each part would cost the square of the length.
        enough = max(window, 2 * len(waiting))
    yield bytes(waiting)


def windows(parts: Iterable[bytes], window: int) -> Iterator[bytes]:
    """The parts, cut so that each fits into a window."""
    for part in parts:
        for start in range(0, len(part), window):
            yield part[start : start + window]


# Files of ids, written and mapped: a NumPy array (.npy), or the bare numbers (.bin) with what they are
# beside them

Documents = Iterable[Iterator[bytes]]
NPY, BIN = ".npy", ".bin"
PLACES = ("after", "before", "between")


class Separator(NamedTuple):
    """The id that comes after, before or between documents; None for none."""

    id: int | None = None
    place: str = "after"


INSTEAD = "choose another place for the ids"
START = '{"documents": ['
HEADER_BYTES = 128
"""NumPy's header of a list of any length: it leaves room for one that grows."""


def outputs_of_ids(output: Path) -> list[Path]:
    """The files that ids are written to. Raises Refusal for the name of another kind of file."""
    if output.suffix not in (NPY, BIN):
        raise Refusal(
            f"{output} is neither {NPY} nor {BIN}; name the file of ids ids{NPY} or ids{BIN}"
        )
    description = description_of(output)
    return [output] if description is None else [output, description]


def description_of(output: Path) -> Path | None:
    """The file that says what the bare numbers of a .bin are."""
    if output.suffix != BIN:
        return None
    numbers = followed(output)
    return numbers.with_name(f"{numbers.name}.json")


def check_describes(path: Path) -> None:
    """Raises Refusal for a file that is not the description of ids; one that a power cut emptied
    may have been one.
    """
    with path.open("rb") as file:
        start = file.read(len(START)).decode(errors="replace")
    if start not in ("", START):
        raise Refusal(f"{path} does not describe ids; {INSTEAD}")


def write_ids(
    encoder: PlainEncoder,
    learned: Learned,
    documents: Documents,
    outputs: Sequence[Path],
    inputs: Sequence[Path],
    *,
    threads: int,
    separator: Separator,
    overwrite: bool,
) -> np.ndarray[Any, Any]:
    """Write the ids of documents into `outputs_of_ids`, whole or not at all, and map them.

    Memory is bounded by the longest document, as in `Tokenizer.encode_iterable`. Raises Refusal if
    the file cannot be written, is one of the `inputs`, or is a .bin without ids.
    """
    import numpy as np  # only here: nothing else about a tokenizer needs it

    dtype = np.dtype(learned.type_code())
    mark = np.array([] if separator.id is None else [separator.id], dtype)
    output = outputs[0]
    name = followed(output).name
    with (
        output_files(outputs, inputs, overwrite=overwrite, instead=INSTEAD) as folder,
        (folder / name).open("w+b") as file,
        (folder / f"{name}.json").open("w") as description,
    ):
        for path in filter(Path.exists, outputs[1:]):
            check_describes(path)
        if output.suffix == NPY:
            file.seek(HEADER_BYTES)
        description.write(START)

        digest, count = hashlib.sha256(), 0

        def write(ids: memoryview) -> None:
            nonlocal count
            file.write(ids)
            digest.update(ids)
            count += len(ids)

        place = separator.place
        for number, pieces in enumerate(encoded_documents(encoder, documents, threads)):
            if number and place == "between":
                write(mark.data)
            description.write(f", {count}" if number else f"{count}")
            if place == "before":
                write(mark.data)
            for ids in pieces:
                write(ids)
            if place == "after":
                write(mark.data)

        if output.suffix == BIN and not count:  # what cannot be mapped
            raise Refusal(
                "the text is empty, and nothing maps a .bin without ids; pass another text, or write .npy",
                UNMEASURED,
            )
        facts = {
            "dtype": dtype.name,
            "count": count,
            "sha256": digest.hexdigest(),
            "tokenizer_sha256": learned.sha256(),
        }
        description.write(f"], {json.dumps(facts)[1:]}\n")
        if output.suffix == NPY:
            file.seek(0)
            descr = np.lib.format.dtype_to_descr(dtype)
            header = {"descr": descr, "fortran_order": False, "shape": (count,)}
            np.lib.format.write_array_header_1_0(file, header)
            assert file.tell() == HEADER_BYTES
    return mapped(output, dtype.name)


def mapped(path: Path, dtype: str) -> np.ndarray[Any, Any]:
    """The numbers in a file, those of a .bin of this dtype. Raises OSError, ValueError, or whatever
    NumPy raises for a header.
    """
    import numpy as np

    if path.suffix == BIN:
        return np.memmap(path, dtype, mode="r")
    with np.errstate(over="raise"):
        return np.lib.format.open_memmap(path, mode="r")


def encoded_documents(
    encoder: PlainEncoder, documents: Documents, threads: int
) -> Iterator[Iterable[memoryview]]:
    """The ids of each document, in pieces.

    Documents that come in one block, as rows do, are encoded together.
    """
    short, size = list[bytes](), 0
    for blocks in documents:
        first, second = next(blocks, b""), next(blocks, None)
        if second is None:
            short.append(first)
            size += len(first)
        if second is not None or size >= threads * WINDOW:
            yield from encoded_together(encoder, short, threads)
            short, size = [], 0
        if second is not None:
            yield streamed(encoder, chain([first, second], blocks), threads)
    yield from encoded_together(encoder, short, threads)


def encoded_together(
    encoder: PlainEncoder, documents: list[bytes], threads: int
) -> Iterator[Iterable[memoryview]]:
    """The ids of each of some documents, which lie in one array."""
    ids, ends = encoder.encode_batch(documents, threads)
    array = memoryview(ids)
    for start, end in pairwise([0, *ends]):
        yield [array[start:end]]


# Reading


class Description(msgspec.Struct):
    """What the file beside a .bin says of its numbers."""

    dtype: Literal["uint16", "uint32"]
    sha256: str


def ids_in_file(path: Path) -> np.ndarray[Any, Any]:
    """The ids in a file. Raises Refusal for one that is not a list of whole numbers."""
    what = "pass one that encode --output wrote"
    try:
        array = numbers_in(path)
    except Refusal:
        raise
    except OSError as error:
        name = error.filename or path
        raise Refusal(f"cannot read {name} ({reason(error)}); {what}", UNMEASURED) from error
    except Exception as error:  # whatever NumPy raises for a header
        raise Refusal(f"{path} is not an array of ids; {what}", UNMEASURED) from error

    if array.ndim != 1 or array.dtype.kind not in "iu":
        kind = f"an array of {array.dtype} with {counted_text(array.ndim, 'dimension')}"
        raise Refusal(f"{path} is {kind}, not a list of ids; {what}", UNMEASURED)
    return array


def numbers_in(path: Path) -> np.ndarray[Any, Any]:
    """The numbers in a file, whatever they are. Raises as `mapped`."""
    description = description_of(readable(path))
    if description is None:
        return mapped(path, "")

    try:
        about: Description = read_json(description.read_bytes(), Description)
    except ValueError as error:
        what = f"{path} is not described by {description.name} ({error})"
        raise Refusal(f"{what}; pass one that encode --output wrote", UNMEASURED) from error

    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != about.sha256:
        raise Refusal(
            f"{path} is not the file that {description.name} describes; pass one that encode --output wrote",
            UNMEASURED,
        )
    return mapped(path, about.dtype)
