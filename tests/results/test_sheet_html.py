"""A page of HTML holds the same cells as the terminal, can be read without seeing it, and needs nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from harness.common.sheet import Column, Sheet, sheets_to_html_part
from harness.records.file import read_records
from harness.results.rows import rows
from harness.results.tables import tables

FORMS = read_records([Path(__file__).parents[1] / "fixtures" / "records" / "forms.jsonl"])


def read(sheets: Sequence[Sheet]) -> ElementTree.Element:
    """The part of a page, in which every element is closed where it should be."""
    return ElementTree.fromstring(f"<div>{sheets_to_html_part(sheets, 'x')}</div>")


def texts(part: ElementTree.Element, name: str) -> list[str]:
    return ["".join(element.itertext()) for element in part.iter(name)]


def test_the_page_says_what_the_terminal_says_and_can_be_read_without_seeing_it() -> None:
    (sheet,) = tables(rows(FORMS))
    part = read([sheet])
    cells = zip(*(column.cells for column in sheet.columns), strict=True)
    lines = [["".join(cell.itertext()) for cell in line] for line in part.iter("tr")]
    assert lines == [[column.heading for column in sheet.columns], *map(list, cells)]
    assert texts(part, "li") == list(sheet.notes)
    assert [head.get("scope") for head in part.iter("th")] == ["col"] * len(lines[0]) + ["row"] * (len(lines) - 1)
    (region,) = part.iterfind(".//*[@role='region']")
    assert region.get("tabindex") == "0"
    assert region.get("aria-label")


def test_the_page_needs_nothing_and_its_style_touches_nothing_else() -> None:
    page = sheets_to_html_part(tables(rows(FORMS)), "x")
    assert not re.search(r"https?:|url\(|@import|<script|<link|<img|src=", page)
    selectors = re.findall(r"(?:^|[{}])\s*([^@{};]+?)\s*\{", page.partition("<style>")[2].partition("</style>")[0])
    assert len(selectors) > 10
    assert [each for each in selectors if not each.startswith(".bpe-harness")] == []


def test_html_in_records_is_text() -> None:
    nasty = "<b>&amp;</b> \"'"
    part = read([Sheet([nasty], [Column(nasty, [nasty], figures=False)], ["red"], [nasty])])
    assert texts(part, "th") == [nasty, nasty]
    assert texts(part, "li") == [nasty]
