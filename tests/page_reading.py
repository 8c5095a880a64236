"""A page as a reader without a browser has it: its elements in order, each with its attributes and its text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


@dataclass
class Element:
    """An element: what stands in it, text and elements in order."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    inside: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text in it, with one blank for each run of white space."""
        return " ".join("".join(self._texts()).split())

    def _texts(self) -> Iterator[str]:
        for part in self.inside:
            if isinstance(part, str):
                yield part
            elif part.tag not in ("script", "style"):
                yield from part._texts()

    def all(self, tag: str | None = None, **attributes: str) -> list[Element]:
        """The elements of this tag below it that have these attributes, in order; `class_` is one of several."""
        found = []
        for part in self.inside:
            if isinstance(part, Element):
                if (tag is None or part.tag == tag) and part.has(**attributes):
                    found.append(part)
                found += part.all(tag, **attributes)
        return found

    def one(self, tag: str | None = None, **attributes: str) -> Element:
        (found,) = self.all(tag, **attributes)
        return found

    def has(self, **attributes: str) -> bool:
        classes = attributes.pop("class_", "").split()
        return set(classes) <= set(self.attributes.get("class", "").split()) and all(
            self.attributes.get(name) == value for name, value in attributes.items()
        )


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("page")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].inside.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].inside.append(data)


def read(content: str) -> Element:
    """The page as a tree. Fails where a tag is not closed in order."""
    reader = _Reader()
    reader.feed(content)
    reader.close()
    assert [element.tag for element in reader.open] == ["page"]
    return reader.open[0]


def marks_of(tree: Element, figure: str, kind: str, view: int = 0) -> list[dict[str, Any]]:
    """The marks of a kind in a view of a figure, in order, each by the names of its values; `of` is a row's place."""
    (chart,) = [chart for chart in drawing(tree)["charts"] if chart["name"] == figure]
    return [
        dict(zip(layer["fields"], mark, strict=True))
        for layer in chart["views"][view]["layers"]
        if layer["spec"]["mark"]["type"] == kind
        for mark in layer["marks"]
    ]


def drawing(tree: Element) -> dict[str, Any]:
    """What the page gives its charts."""
    (script,) = tree.all("script", id="drawing")
    content: dict[str, Any] = json.loads("".join(part for part in script.inside if isinstance(part, str)))
    return content
