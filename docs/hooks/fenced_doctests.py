"""griffe, which reads docstrings for mkdocstrings, takes doctests for prose: this fences them
first.
"""

from __future__ import annotations

from typing import Any

import griffe
from documentation import fenced


class FencedDoctests(griffe.Extension):
    """Fences the doctests of every object that is documented."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
