"""A page says the result first, has everything in it, and nothing of a record is more than text."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from measured import measured, stopped, wrong
from shown import FORMS, RECORDS

from harness.common.sheet import sheets_to_html_part
from harness.records.file import Record, read_records
from harness.results.page import page
from harness.results.rows import rows
from harness.results.tables import TableOptions, tables

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


def page_of(*records: Record) -> str:
    return page(rows(records))


def text_of(content: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", " ", content))


@pytest.mark.parametrize(
    ("seconds", "sentence"),
    [
        (
            (1.0, 2.0, 30.0),
            "a: 1.00 s, 2.00 times as fast as b, 30.0 times as fast as c; all 3 identical",
        ),
        ((1.0, 1.01), "a: 1.00 s, tied with b; all 2 identical"),
        ((1.0,), "a: 1.00 s"),
    ],
)
def test_the_headline_is_the_result(seconds: tuple[float, ...], sentence: str) -> None:
    records = [measured(name, spent) for name, spent in zip("abc", seconds, strict=False)]
    assert f"<h1>{sentence}</h1>" in page_of(*records)


def test_several_tasks_have_a_sentence_each_and_wrong_merges_are_counted() -> None:
    records = [measured(name, 1.0, size=size) for size in (1000, 2000) for name in ("a", "b")]
    text = text_of(page_of(*records, wrong("short", size=1000), stopped("slow", 60.0, size=1000)))
    assert "2 tasks, 6 rows" in text
    assert "stdlib (Python), 1.00 kB: a: 1.00 s, tied with b; 2 of 4 identical, 1 wrong" in text


def test_bars_come_before_the_table_and_the_environment_is_folded() -> None:
    overrides = ["variants=flat,heap", "data=stdlib"]
    flat = measured("flat", {"max": 1.0, "update": 1.0}, overrides=overrides)
    content = page_of(flat, measured("heap", 9.0, overrides=overrides))
    parts = ("<h1>", "<svg", '<input id="filter"', "<table", "<details>")
    order = [content.index(part) for part in parts]
    assert order == sorted(order)
    environment = "<details><summary>Environment of 2 rows</summary><pre>"
    assert "AMD EPYC" in content.partition(environment)[2].partition("</pre>")[0]
    assert "<pre>python -m harness variants=flat,heap data=stdlib</pre>" in content
    assert '<td data-key="2.0" class="figure">2.00 s</td>' in content


def test_equal_records_give_equal_pages_with_unique_ids() -> None:
    records = read_records([RECORDS / "sweep.jsonl"])
    content = page(rows(records))
    assert content == page(rows(records))
    ids = re.findall(r'\bid="([^"]*)"', content)
    assert len(ids) == len(set(ids))
    references = re.findall(r'(?:href="|url\()#([^")]*)', content)
    assert set(references) <= set(ids)


def test_whatever_a_record_holds_is_text() -> None:
    bad = '<script>alert(1)</script>\x1b[2J\u202e"'
    records = [
        measured(bad, 1.0, params={bad: bad}, environment={bad: bad}, data=bad),
        measured("x", {}, status="error", reason=bad, data=bad),
    ]
    content = page_of(*records)
    assert content.count("<script") == 1
    assert not {"\x1b", "\u202e"} & set(content)
    assert "\\x1b[2J\\u202e" in text_of(content)
    for name in ("forms", "repeats", "counting"):
        stored = rows(read_records([RECORDS / f"{name}.jsonl"]))
        assert len(re.findall('<th scope="row"', page(stored))) == len(stored)


def test_a_page_may_fetch_nothing() -> None:
    content = page_of(measured("flat", 1.0))
    policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', content)[0]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert not re.findall(r"""(?:src|href)=["'](?!#)""", content)


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs Chromium: apt-get install chromium")
def test_the_table_sorts_and_filters_in_a_browser(tmp_path: Path) -> None:
    content = page_of(
        measured("b", 10.0), measured("a", 2.0), measured("c", {}, status="error", reason="x")
    )
    act = """
      const show = () => [...table.tBodies[0].rows].filter(row => !row.hidden).map(row => row.cells[0].textContent);
      const total = [...table.tHead.rows[0].cells].find(cell => cell.textContent === "total"), seen = [];
      total.click(); seen.push(show()); total.click(); seen.push(show());
      const filter = document.querySelector("#filter");
      filter.value = "error"; filter.dispatchEvent(new Event("input")); seen.push(show());
      document.title = JSON.stringify(seen);
    """
    (tmp_path / "page.html").write_text(
        re.sub("<meta http-equiv[^>]*>", "", content).replace(
            "</body>", f"<script>{act}</script></body>"
        )
    )
    command = [
        str(BROWSER),
        "--headless",
        "--no-sandbox",
        "--dump-dom",
        (tmp_path / "page.html").as_uri(),
    ]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = html.unescape(re.findall("<title>(.*?)</title>", shown)[0])
    assert json.loads(found) == [["a", "b", "c"], ["c", "b", "a"], ["c"]]


# Sheets as a part of a page


def test_the_page_says_what_the_terminal_says_and_can_be_read_without_seeing_it() -> None:
    sheets = tables(rows(FORMS))
    (sheet,) = sheets
    part = ElementTree.fromstring(f"<div>{sheets_to_html_part(sheets, 'x')}</div>")
    lines = [["".join(cell.itertext()) for cell in line] for line in part.iter("tr")]
    cells = zip(*(column.cells for column in sheet.columns), strict=True)
    assert lines == [[column.heading for column in sheet.columns], *map(list, cells)]
    assert ["".join(item.itertext()) for item in part.iter("li")] == list(sheet.notes)

    scopes = [head.get("scope") for head in part.iter("th")]
    assert scopes == ["col"] * len(lines[0]) + ["row"] * (len(lines) - 1)
    (region,) = part.iterfind(".//*[@role='region']")
    assert region.get("tabindex") == "0"
    assert region.get("aria-label")


def test_the_page_needs_nothing_and_its_style_touches_nothing_else() -> None:
    page = sheets_to_html_part(tables(rows(FORMS)), "x")
    assert not re.search(r"https?:|url\(|@import|<script|<link|<img|src=", page)
    style = page.partition("<style>")[2].partition("</style>")[0]
    selectors = re.findall(r"(?:^|[{}])\s*([^@{};]+?)\s*\{", style)
    assert len(selectors) > 10
    assert {selector.split()[0].partition(",")[0] for selector in selectors} == {".bpe-harness"}


def test_a_page_has_the_notes_of_the_table() -> None:
    busy = {"disturbance": {"psi_cpu_seconds": 0.9}, "cpu_seconds": 0.5, "cpu_wait_seconds": None}
    records = [measured("a", 1.0, **busy), measured("b", 1.01)]
    (sheet,) = tables(rows(records), TableOptions(notes=True))
    named = {note.partition(":")[0] for note in sheet.notes}
    assert {"Too close to rank", "Machine busy, so wall times may be too long"} <= named
    assert [note for note in sheet.notes if f"<li>{note}</li>" not in page_of(*records)] == []
