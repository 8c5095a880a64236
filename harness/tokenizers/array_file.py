"""Token ids as a NumPy array: as narrow as they fit, in memory or written to a .npy file while they come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import readable, whole_file

if TYPE_CHECKING:
    import numpy as np

Show = Callable[[int], None]
BLOCK = 1 << 20


def type_for(largest: int) -> str:
    """The NumPy type for ids up to the largest.

    >>> type_for(65_535), type_for(65_536)
    ('uint16', 'uint32')
    """
    return "uint16" if largest < 1 << 16 else "uint32"


def array_of(
    encode: Callable[[Iterable[bytes]], Iterator[list[int]]],
    path: Path,
    output: Path | str | None,
    dtype: str,
    on_progress: Show | None,
) -> np.ndarray[Any, Any]:
    """The ids that `encode` makes of a file's blocks. Raises Refusal if a file cannot be read or written."""
    import numpy as np  # only here: nothing else about a tokenizer needs it

    batches = (np.array(batch, dtype=dtype) for batch in encode(_blocks(path, on_progress or _ignored)))
    if output is None:
        return np.concatenate([np.empty(0, dtype), *batches])
    output = Path(output)
    instead = "choose another place for the ids"
    with whole_file(output, instead, UNMEASURED) as part, part.open("wb") as file:
        header = _write_header(file, 0, dtype)
        number = 0
        for batch in batches:
            file.write(batch.tobytes())
            number += len(batch)
        file.seek(0)
        # NumPy leaves room in its header for a length that grows.
        assert _write_header(file, number, dtype) == header
    return np.load(output, mmap_mode="r") if number else np.empty(0, dtype)


def _write_header(file: IO[bytes], number: int, dtype: str) -> int:
    import numpy as np

    described = {
        "descr": np.lib.format.dtype_to_descr(np.dtype(dtype)),
        "fortran_order": False,
        "shape": (number,),
    }
    np.lib.format.write_array_header_1_0(file, described)
    return file.tell()


def _blocks(path: Path, show: Show) -> Iterator[bytes]:
    done = 0
    try:
        with readable(path) as file:
            while block := file.read(BLOCK):
                yield block
                done += len(block)
                show(done)
    except OSError as error:
        raise Refusal(
            f"cannot read {path} ({error.strerror or error}); name a file that can be read", UNMEASURED
        ) from error


def _ignored(_: int) -> None:
    pass
