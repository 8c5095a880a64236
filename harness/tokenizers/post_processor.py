"""What a tokenizer.json does around a text: tokens before and behind it, truncation, padding.

None of this changes the ids of the text itself. It is carried from one tokenizer.json to another,
with the ids of a cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

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


class _Named(_Known):
    id: str
    type_id: Id


class _Piece(_Known, omit_defaults=True):
    """A token or a text of a template, by the name of its one field."""

    token: _Named | None = msgspec.field(name="SpecialToken", default=None)
    text: _Named | None = msgspec.field(name="Sequence", default=None)


class _Template(_Known, tag="TemplateProcessing"):
    single: list[_Piece]
    pair: list[_Piece]
    special_tokens: dict[str, _Token]

    def __post_init__(self) -> None:
        """Refuse a template of unknown tokens, and one that drops or doubles the text."""
        for piece in [*self.single, *self.pair]:
            known = ("A", "B") if piece.token is None else self.special_tokens
            named = piece.token or piece.text
            if named is None or named.id not in known:
                raise ValueError("its template has a piece that is neither a text nor a token")
        if [piece.text.id for piece in self.single if piece.text] != ["A"]:
            raise ValueError("its template for a single text must contain A, the text, once")


class _Sequence(_Known, tag="Sequence"):
    processors: list[_ByteLevel | _Bert | _Roberta | _Template]


class _Fixed(_Known):
    length: Id = msgspec.field(name="Fixed")


class _Padding(_Known, kw_only=True):
    strategy: Literal["BatchLongest"] | _Fixed
    direction: Literal["Left", "Right"]
    pad_to_multiple_of: Id | None = None
    pad_id: Id
    pad_type_id: Id
    pad_token: str


class _Truncation(_Known, kw_only=True):
    direction: Literal["Left", "Right"] = "Right"
    max_length: Id
    strategy: Literal["LongestFirst", "OnlyFirst", "OnlySecond"]
    stride: Id


class Around(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parts of a tokenizer.json that leave a text as it is."""

    truncation: _Truncation | None = None
    padding: _Padding | None = None
    post_processor: _ByteLevel | _Bert | _Roberta | _Template | _Sequence | None = None

    def names(self) -> list[str]:
        """What changes the ids that `tokenizers` gives for a text, by its name in the file."""
        processor = self.post_processor
        parts = processor.processors if isinstance(processor, _Sequence) else [processor]
        adds_tokens = any(isinstance(part, _Bert | _Template) for part in parts)
        names = ["post_processor"] if adds_tokens else []
        names += [name for name in ("truncation", "padding") if getattr(self, name) is not None]
        return names

    def check(self, vocab: Mapping[int, bytes]) -> None:
        """Raises ValueError if it adds an id that no token has."""
        try:
            self.moved({number: number for number in vocab})
        except KeyError as error:
            what = f"its post_processor or padding adds the id {error}"
            raise ValueError(f"{what}, which no token has") from error

    def moved(self, ids: Mapping[int, int]) -> Around:
        """The same with other ids. Raises KeyError for one that is not left."""
        padding = self.padding
        if padding is not None:
            padding = replace(padding, pad_id=ids[padding.pad_id])
        return Around(self.truncation, padding, _moved(self.post_processor, ids))


NOTHING_AROUND = Around()


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
