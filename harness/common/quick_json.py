"""JSON as Python's own reader reads it, and three times as quickly where orjson is installed.

What orjson refuses and Python takes (half a character, numbers beyond a double) is read by Python; whole numbers beyond
64 bits, of which orjson makes doubles, are beyond what a record may hold in either form.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

_loads: Callable[[bytes], Any] = json.loads
with contextlib.suppress(ImportError):
    import orjson

    _loads = orjson.loads


def read_json(content: bytes) -> Any:
    """The value. Raises ValueError, or RecursionError, with Python's words where it is no JSON."""
    try:
        return _loads(content)
    except ValueError:
        return json.loads(content)
