"""Print the keys of every kind of line in a file of records, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import inspect

from harness.records.schema import KINDS


class Key(NamedTuple):
    """A key of a line: its name with those around it, its type in words, and what it holds."""

    name: str
    type: str
    required: bool
    meaning: str


def main(_: Sequence[str] = ()) -> int:
    """Print every kind of line with its keys."""
    for kind in KINDS:
        print(f"### `{kind.__struct_config__.tag}`\n\n{(kind.__doc__ or '').strip()}\n")
        print("| key | type | always there | meaning |\n| --- | --- | --- | --- |")
        for key in keys_of(inspect.type_info(kind)):
            print(
                f"| `{key.name}` | {key.type} | {'yes' if key.required else ''} | {key.meaning} |"
            )
        print("")
    return 0


def keys_of(described: Any, before: str = "") -> Iterator[Key]:
    """The keys of a line or of a mapping in it, each followed by those within it."""
    for field in described.fields:
        kind: Any = field.type
        meaning = ""
        if isinstance(kind, inspect.Metadata):
            kind, meaning = kind.type, (kind.extra_json_schema or {}).get("description", "")
        if isinstance(kind, inspect.UnionType):
            kind = next(one for one in kind.types if not isinstance(one, inspect.NoneType))
        name = f"{before}{field.encode_name}"
        yield Key(name, type_in_words(kind), field.required, meaning)
        if isinstance(kind, inspect.TypedDictType | inspect.StructType):
            yield from keys_of(kind, f"{name}.")


def type_in_words(kind: Any) -> str:
    if isinstance(kind, inspect.Metadata):
        return type_in_words(kind.type)
    if isinstance(kind, inspect.LiteralType):
        return " or ".join(f"`{value}`" for value in kind.values)
    if isinstance(kind, inspect.StrType) and kind.pattern is not None:
        return "time in ISO 8601" if "T" in kind.pattern else "hexadecimal digits"
    if isinstance(kind, inspect.ListType):
        item = type_in_words(kind.item_type)
        return (
            "list of points"
            if item == "mapping"
            else f"list of {item}s".replace("digitss", "digits")
        )
    return _WORDS.get(type(kind), "mapping")


_WORDS: Mapping[type, str] = {
    inspect.StrType: "text",
    inspect.IntType: "whole number",
    inspect.FloatType: "number",
    inspect.BoolType: "true or false",
}


if __name__ == "__main__":
    main()
