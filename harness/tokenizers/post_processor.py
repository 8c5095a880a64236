"""What a tokenizer.json does around a text: tokens before and behind it, truncation, padding.

None of this changes the ids of the text itself. It is carried from one tokenizer.json to another,
with the ids of a cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

Id = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]


class _Known(msgspec.Struct, forbid_unknown_fields=True):
    """A struct without other fields than those here."""


class _ByteLevel(_Known, tag="ByteLevel"):
    add_prefix_space: bool = True
    trim_offsets: bool = True
    use_regex: bool = True


class _Bert(_Known, tag="BertProcessing"):
    sep: tuple[str, Id]
    cls: tuple[str, Id]


class _Roberta(_Bert, tag="RobertaProcessing"):
    trim_offsets: bool = True
    add_prefix_space: bool = True


class _Token(_Known):
    id: str
    ids: list[Id]
    tokens: list[str]


class _Template(_Known, tag="TemplateProcessing"):
    single: list[dict[str, Any]]
    pair: list[dict[str, Any]]
    special_tokens: dict[str, _Token]


class _Sequence(_Known, tag="Sequence"):
    processors: list[_ByteLevel | _Bert | _Roberta | _Template]


class _Padding(_Known):
    strategy: str | dict[str, int]
    direction: str
    pad_to_multiple_of: int | None
    pad_id: Id
    pad_type_id: Id
    pad_token: str


class Around(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parts of a tokenizer.json that leave a text as it is."""

    truncation: dict[str, Any] | None = None
    padding: _Padding | None = None
    post_processor: _ByteLevel | _Bert | _Roberta | _Template | _Sequence | None = None

    def names(self) -> list[str]:
        """What changes the ids that `tokenizers` gives for a text, by its name in the file."""
        names = ["post_processor"] if _ids(self.post_processor) else []
        names += [name for name in ("truncation", "padding") if getattr(self, name) is not None]
        return names

    def check(self, vocab: Mapping[int, bytes]) -> None:
        """Raises ValueError if it adds an id that no token has."""
        for number in _ids(self.post_processor):
            if number not in vocab:
                raise ValueError(f"its post_processor adds the id {number}, which no token has")

    def moved(self, ids: Mapping[int, int]) -> Around:
        """The same with other ids. Raises KeyError for one that is not left."""
        padding = self.padding
        if padding is not None:
            padding = replace(padding, pad_id=ids[padding.pad_id])
        return Around(self.truncation, padding, _moved(self.post_processor, ids))


NOTHING_AROUND = Around()


def _ids(processor: Any) -> list[int]:
    """The ids that a post-processor puts around a text."""
    if isinstance(processor, _Sequence):
        return [number for part in processor.processors for number in _ids(part)]
    if isinstance(processor, _Template):
        return [number for token in processor.special_tokens.values() for number in token.ids]
    if isinstance(processor, _Bert):
        return [processor.sep[1], processor.cls[1]]
    return []


def _moved(processor: Any, ids: Mapping[int, int]) -> Any:
    if isinstance(processor, _Sequence):
        return replace(processor, processors=[_moved(part, ids) for part in processor.processors])
    if isinstance(processor, _Template):
        tokens = {}
        for name, token in processor.special_tokens.items():
            tokens[name] = replace(token, ids=[ids[number] for number in token.ids])
        return replace(processor, special_tokens=tokens)
    if isinstance(processor, _Bert):
        (sep, sep_id), (cls, cls_id) = processor.sep, processor.cls
        return replace(processor, sep=(sep, ids[sep_id]), cls=(cls, ids[cls_id]))
    return processor
