"""The compiled parts and the one way to them: what is not built is not available, and nothing runs instead."""

from __future__ import annotations

import importlib
from typing import Any

from variants.contract import Unavailable


def built(module: str) -> Any:
    """The compiled module of that name. Raises Unavailable, with the command that builds it, where it is missing."""
    try:
        return importlib.import_module(f"variants.native.{module}")
    except ImportError as error:
        raise Unavailable("the compiled part is not built; python -m pip install -e . builds it") from error
