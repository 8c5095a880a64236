"""A page says the result first, has everything in it, and nothing of a record is more than text."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from measured import RECORDS, measured, records_of
from rows import Row, each_row

import harness
from harness.records.file import read_records
from harness.report import page
from harness.results.rows import rows
from harness.results.tables import tables

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


@each_row(__file__, "report.toml")
def test_page_has_the_passages_of_its_row(row: Row) -> None:
    content = page(rows(records_of(row["mine"])))
    for passage in row["page"]:
        assert passage in content
        content = content.partition(passage)[2]


@pytest.mark.parametrize("name", ["forms", "repeats", "counting"])
def test_page_is_the_same_again_with_every_row_and_unique_ids(name: str) -> None:
    shown = rows(read_records([RECORDS / f"{name}.jsonl"]))
    content = page(shown)
    assert content == page(shown)
    assert content.count('<th scope="row"') == len(shown)

    ids = re.findall(r'\bid="([^"]*)"', content)
    assert len(ids) == len(set(ids))
    references = re.findall(r'(?:href="|url\()#([^")]*)', content)
    assert set(references) <= set(ids)


def test_whatever_a_record_holds_is_text_and_fetches_nothing() -> None:
    bad = '<script>alert(1)</script>\x1b[2J\u202e"'
    records = [
        measured(bad, 1.0, params={bad: bad}, environment={bad: bad}, data=bad),
        measured("x", {}, status="error", reason=bad, data=bad),
    ]
    content = page(rows(records))
    assert content.count("<script") == 1
    assert not {"\x1b", "\u202e"} & set(content)
    assert "\\x1b[2J\\u202e" in html.unescape(re.sub(r"<[^>]*>", " ", content))

    policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', content)[0]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert not re.findall(r"""(?:src|href)=["'](?!#)""", content)


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs Chromium: apt-get install chromium")
def test_table_sorts_and_filters_in_a_browser(tmp_path: Path) -> None:
    records = [
        measured("b", 10.0),
        measured("a", 2.0),
        measured("c", {}, status="error", reason="x"),
    ]
    act = """
      const show = () => [...table.tBodies[0].rows].filter(row => !row.hidden).map(row => row.cells[0].textContent);
      const total = [...table.tHead.rows[0].cells].find(cell => cell.textContent === "total"), seen = [];
      total.click(); seen.push(show()); total.click(); seen.push(show());
      const filter = document.querySelector("#filter");
      filter.value = "error"; filter.dispatchEvent(new Event("input")); seen.push(show());
      document.title = JSON.stringify(seen);
    """
    content = re.sub("<meta http-equiv[^>]*>", "", page(rows(records)))
    path = tmp_path / "page.html"
    path.write_text(content.replace("</body>", f"<script>{act}</script></body>"))

    command = [str(BROWSER), "--headless", "--no-sandbox", "--dump-dom", path.as_uri()]
    shown = subprocess.check_output(command, env={"HOME": str(tmp_path)}, text=True)
    found = html.unescape(re.findall("<title>(.*?)</title>", shown)[0])
    assert json.loads(found) == [["a", "b", "c"], ["c", "b", "a"], ["c"]]


def test_notebook_shows_what_the_terminal_shows_and_can_be_read_without_seeing_it() -> None:
    (sheet,) = tables(rows(read_records([RECORDS / "forms.jsonl"])))
    shown = harness.read(str(RECORDS / "forms.jsonl"))._repr_html_()
    part = ElementTree.fromstring(f"<div>{shown}</div>")
    lines = [["".join(cell.itertext()) for cell in line] for line in part.iter("tr")]
    cells = zip(*(column.cells for column in sheet.columns), strict=True)
    assert lines == [[column.heading for column in sheet.columns], *map(list, cells)]
    assert ["".join(item.itertext()) for item in part.iter("li")] == list(sheet.notes)

    scopes = [head.get("scope") for head in part.iter("th")]
    assert scopes == ["col"] * len(lines[0]) + ["row"] * (len(lines) - 1)
    (region,) = part.iterfind(".//*[@role='region']")
    assert region.get("tabindex") == "0"
    assert region.get("aria-label")


def test_notebook_needs_nothing_and_its_style_touches_nothing_else() -> None:
    shown = harness.read(str(RECORDS / "forms.jsonl"))._repr_html_()
    assert not re.search(r"https?:|url\(|@import|<script|<link|<img|src=", shown)
    style = shown.partition("<style>")[2].partition("</style>")[0]
    selectors = re.findall(r"(?:^|[{}])\s*([^@{};]+?)\s*\{", style)
    assert len(selectors) > 10
    assert {selector.split()[0].partition(",")[0] for selector in selectors} == {".bpe-harness"}
