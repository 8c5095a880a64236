"""JSON that somebody else wrote: whatever is wrong with it is one ValueError."""

from __future__ import annotations

from typing import Any

import msgspec

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_json(content: bytes, kind: Any) -> Any:
    """Decode JSON as a type or struct. Raises ValueError, which names the field that does not fit."""
    try:
        return msgspec.json.decode(content.removeprefix(BYTE_ORDER_MARK), type=kind)
    except RecursionError as error:
        raise ValueError("its JSON is nested too deeply") from error
