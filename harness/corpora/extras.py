"""Modules that only some corpora need: imported when such a corpus is asked for; what installs them."""

from __future__ import annotations

import importlib
from typing import Any

from harness.errors import UNMEASURED, Refusal


def extra(module: str, what: str) -> Any:
    """A module of the extra `data`. Raises Refusal, with the command that installs it, if it is not there."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise Refusal(
            f"{what} needs {module}, which is not installed; run python -m pip install 'bpe-harness[data]', in a "
            "checkout python -m pip install -e '.[data]'",
            UNMEASURED,
        ) from error
