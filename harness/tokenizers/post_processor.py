"""What a tokenizer.json says beside the ids of a text: tokens before and behind it, truncation,
padding, and how added tokens are decoded.

None of this changes the ids of the text itself. It is carried as it is from one tokenizer.json to
another, with the ids of a cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

NewId = Callable[[Any], Any]
ID_KEYS = ("pad_id", "ids", "sep", "cls")
"""What has ids: padding, a template, and the pairs of a text and its id."""
Id = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]


class Flags(msgspec.Struct, frozen=True, omit_defaults=True):
    """An added token in a tokenizer.json: `decode` drops it if it is special."""

    special: bool = True
    normalized: bool = False


def flags_in_one_pass(flags: Mapping[str, Flags]) -> dict[str, Flags]:
    """Those that differ from the default. Raises ValueError for added tokens that Hugging Face
    finds in two passes with another result: those that are `normalized` after the others.
    """
    later = [text for text, flag in flags.items() if flag.normalized]
    for first, second in product(flags.keys() - later, later):
        if may_overlap(first, second):
            raise ValueError(
                f"its added token {second!r} is normalized and may overlap {first!r}, which is not; "
                "ours are found in one pass"
            )
    return {text: flag for text, flag in flags.items() if flag != Flags()}


def may_overlap(first: str, second: str) -> bool:
    """Whether two texts can have characters of a text in common.

    >>> may_overlap("ab", "bc"), may_overlap("abc", "b"), may_overlap("<a>", "<b>")
    (True, True, False)
    """
    if first in second or second in first:
        return True
    lengths = range(1, min(len(first), len(second)))
    return any(first[-n:] == second[:n] or second[-n:] == first[:n] for n in lengths)


class Around(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parts of a tokenizer.json that leave a text as it is."""

    truncation: dict[str, Any] | None = None
    padding: dict[str, Any] | None = None
    post_processor: dict[str, Any] | None = None
    flags: dict[str, Flags] = {}
    """Those of added tokens that have others than the default, by their texts."""
    unk_token: str | None = None
    roles: dict[str, str] = {}
    """The end, begin or padding token, if it is named by more than its text."""

    def names(self) -> list[str]:
        """What changes the ids that `tokenizers` gives for a text, by its name in the file."""
        parts = {
            "post_processor": ids_in(self.post_processor),
            "truncation": self.truncation,
            "padding": self.padding,
        }
        return [name for name, part in parts.items() if part]

    def ids(self) -> list[Any]:
        """The ids that it adds."""
        return ids_in([self.padding, self.post_processor])

    def moved(self, new_id: NewId) -> Around:
        """The same with other ids."""
        padding, processor = moved([self.padding, self.post_processor], new_id)
        return replace(self, padding=padding, post_processor=processor)


NOTHING_AROUND = Around()
"""One object, because a manifest omits a default that is the same."""


def ids_in(part: Any) -> list[Any]:
    """The ids in a part of the file."""
    found = list[Any]()
    moved(part, found.append)
    return found


def moved(part: Any, new_id: NewId, is_id: bool = False) -> Any:
    """A part of the file whose ids have changed: what is under ID_KEYS, but for texts there. The
    rest of it is not looked at.
    """
    if isinstance(part, list):
        return [moved(one, new_id, is_id) for one in part]
    if isinstance(part, dict):
        return {key: moved(value, new_id, key in ID_KEYS) for key, value in part.items()}
    return new_id(part) if is_id and not isinstance(part, str) else part
