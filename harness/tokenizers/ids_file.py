"""The ids of documents in a file, written and mapped: a NumPy array (.npy), or the bare numbers
(.bin) with what they are beside them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from harness.common.errors import UNMEASURED, Refusal, reason
from harness.common.files import followed, output_files, readable
from harness.common.units import counted_text
from harness.common.values import read_json
from harness.tokenizers.encoding import WINDOW, PlainEncoder, streamed
from harness.tokenizers.learned import Learned

if TYPE_CHECKING:
    import numpy as np

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
