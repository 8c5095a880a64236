"""A page of HTML holds the same cells as the terminal, can be read without seeing it, and needs nothing else."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from shown import to_html

from harness.common.errors import MISMATCH, USAGE
from harness.common.sheet import Column, Sheet, sheets_to_html
from harness.records.file import read_records
from harness.results.rows import rows
from harness.results.tables import tables
from harness.table import main

RECORDS = Path(__file__).parents[1] / "fixtures" / "records" / "forms.jsonl"
FORMS = read_records([RECORDS])


class Read(HTMLParser):
    """Reads the page back: its tables' cells, its list items, and that every element is closed where it should be."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.items: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append((tag, dict(attrs)))
        self.open += [tag] if tag != "meta" else []
        self.rows += [[]] if tag == "tr" else []
        self.items += [""] if tag == "li" else []
        if tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("th", "td"):
            self.rows[-1][-1] += data
        if self.open and self.open[-1] == "li":
            self.items[-1] += data


def test_the_page_says_what_the_terminal_says_and_can_be_read_without_seeing_it() -> None:
    (sheet,), page = tables(rows(FORMS)), Read(to_html(FORMS))
    cells = zip(*(column.cells for column in sheet.columns), strict=True)
    assert page.rows == [[column.heading for column in sheet.columns], *map(list, cells)]
    assert page.items == list(sheet.notes)
    scopes = [attributes.get("scope") for tag, attributes in page.attributes if tag == "th"]
    assert scopes == ["col"] * len(page.rows[0]) + ["row"] * (len(page.rows) - 1)
    table = next(attributes for tag, attributes in page.attributes if tag == "table")
    assert any(attributes.get("id") == table["aria-describedby"] for _, attributes in page.attributes)
    region = next(attributes for _, attributes in page.attributes if attributes.get("role") == "region")
    assert region["tabindex"] == "0"
    assert region["aria-label"]


def test_the_page_needs_nothing_and_its_style_touches_nothing_else() -> None:
    page = to_html(FORMS, work=True)
    assert not re.search(r"https?:|url\(|@import|<script|<link|<img|src=", page)
    selectors = re.findall(r"(?:^|[{}])\s*([^@{};]+?)\s*\{", page.partition("<style>")[2].partition("</style>")[0])
    assert len(selectors) > 10
    assert [each for each in selectors if not each.startswith((".bpe-harness", "body"))] == []


def test_html_in_records_is_text() -> None:
    nasty = "<b>&amp;</b> \"'"
    page = Read(sheets_to_html([Sheet([nasty], [Column(nasty, [nasty], figures=False)], ["red"], [nasty])], nasty))
    assert page.rows == [[nasty], [nasty]]
    assert page.items == [nasty]
    assert Read(sheets_to_html([Sheet([], [], [], ["No work was counted."])], "x")).items == ["No work was counted."]


@pytest.mark.parametrize(
    ("name", "start"),
    [("t.html", "<!DOCTYPE html>"), ("t.md", "stdlib: "), ("t.csv", "cell,"), ("t.txt", "stdlib: "), ("t.tex", "% ")],
)
def test_a_file_is_written_in_the_format_of_its_name(
    tmp_path: Path, name: str, start: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(RECORDS), "--output", str(tmp_path / "below" / name)]) == MISMATCH
    assert capsys.readouterr().out == ""
    text = (tmp_path / "below" / name).read_text()
    assert text.startswith(start)
    assert "\x1b" not in text
    assert [path.name for path in (tmp_path / "below").iterdir()] == [name]


def test_a_file_that_cannot_be_written_is_a_sentence_and_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.html").mkdir()
    assert main([str(RECORDS), "--output", str(tmp_path / "t.html")]) == USAGE
    assert re.fullmatch(r"cannot write .*t\.html \(.*\); choose another place with --output\n", capsys.readouterr().err)
    assert [path.name for path in tmp_path.iterdir()] == ["t.html"]
