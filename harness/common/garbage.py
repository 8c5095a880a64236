"""Python's search for cyclic garbage, left out where a command holds millions of records, none of which is any."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def left_lying() -> Iterator[None]:
    """Each search would look at every record, a fifth of the time; what has cycles is given back afterwards."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
