"""The ids in a file that `encode` wrote, mapped: a NumPy array (.npy), or the bare numbers (.bin)."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from harness.common.errors import UNMEASURED, Refusal, reason
from harness.common.files import readable
from harness.common.units import counted_text
from harness.common.values import read_json
from harness.tokenizers.writing import bare_numbers, description_of

if TYPE_CHECKING:
    import numpy as np


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
    """The numbers in a file, whatever they are. Raises OSError, ValueError, or what NumPy raises."""
    import numpy as np

    description = description_of(readable(path))
    if description is None:
        with np.errstate(over="raise"):
            return np.lib.format.open_memmap(path, mode="r")

    about: Description = read_json(description.read_bytes(), Description)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != about.sha256:
        what = f"{path} is not the file that {description.name} describes"
        raise Refusal(f"{what}; pass one that encode --output wrote", UNMEASURED)
    return bare_numbers(path, about.dtype)
