"""The page in a real browser: what is filtered, sorted, pointed at and pressed does what it says."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Page, chromium, needs_browser

from harness.common.units import seconds_texts
from harness.records.load import read_records
from harness.results.rows import rows
from harness.runs.reproduction import command_of

RECORDS = Path(__file__).parent / "records"
PHONE, DESK = 360, 1280
ENTER, RIGHT, TAB = "\ue007", "\ue014", "\ue004"

pytestmark = [pytest.mark.slow, needs_browser]

Record = dict[str, Any]


def several_hundred() -> list[Record]:
    """Rows of four corpora at several sizes, as a sweep over everything makes them."""
    pattern = [record for record in read_records([RECORDS / "sweep.jsonl"]) if record["status"] == "ok"]
    made = []
    for corpus in ("stdlib", "a corpus with a very long name that no phone has room for", "诗", "one_word"):
        for size in (1, 2, 4, 8, 16, 32, 64, 128):
            for record in slower(pattern, size):
                digest = f"{corpus}{size}".encode().hex()[-64:].rjust(64, "0")
                record["data"] |= {"name": corpus, "bytes": 10_000 * size, "sha256": digest}
                record["merges_sha256"] = digest
                made.append(record)
    # More names than a key has room for.
    return made + [{**made[-1], "variant": f"variant_{number}"} for number in range(40)]


def slower(records: list[Record], times: float) -> list[Record]:
    """The same cells in another run, all of them so many times slower."""
    made = [copy.deepcopy(record) for record in records if record["status"] == "ok"]
    for record in made:
        record["seconds"] = {name: each and each * times for name, each in record["seconds"].items()}
        record["run_id"] = "2026-11-23T09:00:00+00:00"
    return made


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with chromium() as page:
        yield page


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    from harness.results.page.page import library, page

    folder = tmp_path_factory.mktemp("pages")
    sets = {name: read_records([RECORDS / f"{name}.jsonl"]) for name in ("forms", "repeats", "counting", "sweep")}
    made = {}
    for name, records in {**sets, "hundreds": several_hundred()}.items():
        made[name] = folder / f"{name}.html"
        made[name].write_text(page({"": records}, library()), encoding="utf-8")
    from harness.results.matches import side_by_side

    left, right = sets["sweep"], slower(sets["sweep"], 1.5)
    beside = side_by_side(left, right, ("old", "new"), None)
    made["compared"] = folder / "compared.html"
    made["compared"].write_text(page({"old": left, "new": right}, library(), compared=beside), encoding="utf-8")
    return made


def visible_rows(browser: Page) -> list[str]:
    """The names of the rows that are shown, in order."""
    found: list[str] = browser.run(
        "return [...document.querySelectorAll('#rows tbody')].filter(body => !body.hidden)"
        ".map(body => body.querySelector('.name').textContent)"
    )
    return found


def column(browser: Page, heading: str) -> list[str]:
    """The cells of a column, of the rows that are shown, in order."""
    found: list[str] = browser.run(
        "const at = [...document.querySelectorAll('#rows thead th')].findIndex(th => th.innerText === arguments[0]);"
        "return [...document.querySelectorAll('#rows tbody')].filter(body => !body.hidden)"
        ".map(body => body.rows[0].cells[at].textContent)",
        heading,
    )
    return found


def heading(browser: Page, name: str) -> Any:
    return next(button for button in browser.all("#rows thead button") if button.text == name)


def choose(browser: Page, label: str, option: str) -> None:
    from selenium.webdriver.support.ui import Select

    place = next(each for each in browser.all("label") if each.text == label).get_attribute("for")
    Select(browser.one(f"#{place}")).select_by_visible_text(option)
    browser.wait_for_charts()


def marks(browser: Page, chart: str, kind: str) -> list[Any]:
    """The marks of a kind in a chart: bars, points, texts."""
    return browser.all(f'#chart-{chart} .drawing [aria-roledescription="{kind}"]')


@pytest.mark.parametrize("name", ["forms", "repeats", "counting", "sweep", "hundreds", "compared"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_a_page_is_quiet_asks_for_nothing_and_is_no_wider_than_its_window(
    browser: Page, pages: dict[str, Path], name: str, dark: bool, width: int
) -> None:
    browser.requests()
    browser.console()
    browser.open(pages[name], width, dark)
    assert browser.console() == []
    asked = [address for address in browser.requests() if not address.startswith(("about:", "data:"))]
    assert set(asked) == {pages[name].as_uri()}
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.run("return document.querySelectorAll('.drawing svg').length") >= 2


def test_every_heading_sorts_by_its_figures_there_and_back(browser: Page, pages: dict[str, Path]) -> None:
    browser.open(pages["forms"])
    known = {
        row.name: row.total or row.extrapolated.get("low_seconds")
        for row in rows(read_records([RECORDS / "forms.jsonl"]))
    }
    ascending = [name for name, total in sorted(known.items(), key=lambda each: each[1] or 0) if total is not None]
    for direction, expected in (("ascending", ascending), ("descending", ascending[::-1])):
        heading(browser, "total").click()
        browser.wait_for_charts()
        assert browser.one("#rows th[aria-sort]").get_attribute("aria-sort") == direction
        names = [name.partition("(")[0].partition(" x")[0] for name in visible_rows(browser)]
        assert names[: len(expected)] == expected
        assert {known[name] for name in names[len(expected) :]} == {None}


def test_a_heading_sorts_by_keyboard_and_keeps_the_focus(browser: Page, pages: dict[str, Path]) -> None:
    browser.open(pages["sweep"])
    button = heading(browser, "variant")
    browser.run("arguments[0].focus()", button)
    browser.press(ENTER)
    assert browser.run("return document.activeElement === arguments[0]", button)
    assert visible_rows(browser) == sorted(visible_rows(browser), key=str.casefold)
    assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_filters_leave_the_rows_that_they_name_in_table_and_charts(browser: Page, pages: dict[str, Path]) -> None:
    browser.open(pages["forms"])
    everything = visible_rows(browser)
    choose(browser, "status", "ok")
    assert set(column(browser, "status")) == {"ok"}
    assert 0 < len(visible_rows(browser)) < len(everything)
    assert browser.one("#shown").text == f"{len(visible_rows(browser))} of {len(everything)} rows"
    assert len(marks(browser, "totals", "point")) == len(visible_rows(browser))
    browser.one("#filters button[type=reset]").click()
    browser.wait("return document.querySelectorAll('#rows tbody[hidden]').length === 0", "all rows back")
    assert visible_rows(browser) == everything


def test_a_search_finds_words_anywhere_in_a_row(browser: Page, pages: dict[str, Path]) -> None:
    browser.open(pages["sweep"])
    everything = visible_rows(browser)
    browser.one("#search").send_keys("HEAP stdlib")
    left = visible_rows(browser)
    assert 0 < len(left) < len(everything)
    browser.one("#search").send_keys(" nobody has this")
    browser.wait_for_charts()
    assert visible_rows(browser) == []
    assert browser.one("#nothing").is_displayed()
    assert "leave no row" in browser.one("#chart-totals .drawing").text
    browser.one("#clear").click()
    browser.wait("return document.getElementById('nothing').hidden", "rows again")
    assert visible_rows(browser) == everything


def test_a_mark_that_is_pointed_at_shows_the_figures_of_the_record(browser: Page, pages: dict[str, Path]) -> None:
    browser.open(pages["sweep"])
    row = rows(read_records([RECORDS / "sweep.jsonl"]))[0]
    total, parts = seconds_texts(list(row.seconds.values()), 3)
    written = dict(zip(row.seconds, parts, strict=True))
    (bar,) = [
        mark
        for mark in marks(browser, "phases", "bar")
        if mark.get_attribute("aria-label").startswith(f"{row.name}: update ")
    ]
    browser.point_at(bar)
    told = browser.wait("return document.querySelector('#vg-tooltip-element.visible')?.innerText", "figures at the bar")
    assert re.sub(r"\s+", " ", told) == f"row {row.name} phase update seconds {written['update']} total {total}"


def test_bars_are_as_long_as_their_seconds(browser: Page, pages: dict[str, Path]) -> None:
    browser.open(pages["sweep"])
    choose(browser, "Bars show", "seconds")
    seconds, widths = [], []
    for mark in marks(browser, "phases", "bar"):
        figures = browser.run("return arguments[0].__data__.datum", mark)
        seconds.append(figures["x2"] - figures["x"])
        widths.append(browser.run("return arguments[0].getBBox().width", mark))
    longest = max(seconds)
    pixels = max(widths) / longest
    assert widths == pytest.approx([each * pixels for each in seconds], abs=0.6)
    expected = [part for row in rows(read_records([RECORDS / "sweep.jsonl"])) for part in row.seconds.values() if part]
    assert sorted(seconds) == pytest.approx(sorted(expected))


def test_marks_are_read_by_the_arrow_keys_and_lead_to_their_rows(browser: Page, pages: dict[str, Path]) -> None:
    browser.open(pages["sweep"])
    browser.run("document.querySelector('#chart-totals .drawing').focus()")
    browser.press(RIGHT)
    first = browser.one("#chart-totals .reading").text
    browser.press(RIGHT)
    second = browser.one("#chart-totals .reading").text
    assert first.startswith("naive: total 34.3")
    assert second.startswith("incremental: total 11.054 s")
    browser.press(ENTER)
    opened = browser.wait(
        "return document.querySelector('#rows tbody.called')?.querySelector('.name').textContent", "a row"
    )
    assert opened == "incremental"
    assert browser.run("return document.activeElement.getAttribute('aria-expanded')") == "true"


def test_a_row_opens_and_its_command_is_copied(browser: Page, pages: dict[str, Path]) -> None:
    browser.open(pages["sweep"])
    assert not any(detail.is_displayed() for detail in browser.all("tr.detail"))
    browser.all("button.opens")[2].click()
    (detail,) = [detail for detail in browser.all("tr.detail") if detail.is_displayed()]
    expected = command_of(rows(read_records([RECORDS / "sweep.jsonl"]))[2].record)
    assert detail.find_element("css selector", "code").text == expected
    # What a page puts on the clipboard is read by pasting it.
    detail.find_element("css selector", "button.copy").click()
    browser.wait(
        "return [...document.querySelectorAll('button.copy')].some(each => each.textContent === 'Copied')", "a copy"
    )
    browser.one("#search").click()
    browser.paste()
    assert browser.one("#search").get_property("value") == expected


def test_a_link_leads_to_its_row_even_where_a_filter_hides_it(browser: Page, pages: dict[str, Path]) -> None:
    browser.open(pages["forms"])
    choose(browser, "status", "skipped")
    link = browser.all("#proofs a")[0]
    target = link.get_attribute("href").partition("#")[2]
    browser.run("arguments[0].click()", link)
    browser.wait(f"return !document.getElementById('{target}').hidden", "the row")
    assert browser.one("tbody.called").get_attribute("id") == target
    for link in browser.all("nav a"):
        link.click()
        name = link.get_attribute("href").partition("#")[2]
        assert browser.run("return location.hash") == f"#{name}"


def test_a_link_to_a_row_from_outside_opens_it(browser: Page, pages: dict[str, Path]) -> None:
    browser.open(pages["hundreds"], place="#row-200")
    opened = browser.wait("return document.querySelector('tbody.called')?.id", "the row")
    assert opened == "row-200"


def test_dress_follows_the_readers_choice_while_the_page_is_open(browser: Page, pages: dict[str, Path]) -> None:
    def inks() -> tuple[str, str]:
        page = browser.run("return getComputedStyle(document.body).backgroundColor")
        return page, browser.run(
            "return document.querySelector('#chart-totals .role-axis-label text').getAttribute('fill')"
        )

    browser.open(pages["sweep"])
    light = inks()
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.run("document.documentElement.dataset.drawn = ''")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    browser.wait_for_charts()
    assert light[0] == "rgb(255, 255, 255)"
    assert inks()[0] == "rgb(13, 17, 23)"
    assert inks()[1] not in (light[1], None)


def test_lines_of_growth_are_those_of_the_chosen_size(browser: Page, pages: dict[str, Path]) -> None:
    browser.open(pages["hundreds"])
    named = "#chart-growth .drawing .mark-text.role-mark text"
    assert browser.all(named) == []  # so many names would hide each other
    browser.one("#search").send_keys("incremental one_word")
    browser.wait_for_charts()
    assert len(browser.all(named)) == 1
    points = [browser.run("return arguments[0].__data__.datum", mark) for mark in marks(browser, "growth", "point")]
    assert sorted(point["x"] for point in points) == [10_000 * size for size in (1, 2, 4, 8, 16, 32, 64, 128)]
    assert {point["exponent"] for point in points} == {"n^1.00 ±0.00"}


def test_ratios_of_two_sets_are_drawn_where_they_are(browser: Page, pages: dict[str, Path]) -> None:
    browser.open(pages["compared"])
    points = marks(browser, "ratios", "point")
    timed = [row for row in rows(read_records([RECORDS / "sweep.jsonl"])) if row.total is not None]
    assert len(points) == len(timed)
    ratios = {round(browser.run("return arguments[0].__data__.datum.x", point), 6) for point in points}
    assert ratios == {1.5}
    browser.point_at(points[0])
    told = browser.wait(
        "return document.querySelector('#vg-tooltip-element.visible')?.innerText", "figures at the point"
    )
    assert re.sub(r"\s+", " ", told) == f"row {timed[0].name} · new right / left 1.50 interval -"
    choose(browser, "set", "new")
    assert set(column(browser, "set")) == {"new"}


def test_everything_can_be_reached_by_tab(browser: Page, pages: dict[str, Path]) -> None:
    browser.open(pages["forms"])
    seen: set[str] = set()
    for _ in range(200):
        browser.press(TAB)
        place = browser.run(
            "const it = document.activeElement;"
            "return it === document.body ? '' : it.id || it.classList[0] || it.innerText"
        )
        if not place and seen:
            break
        assert browser.run("return getComputedStyle(document.activeElement).outlineStyle !== 'none'"), place
        seen.add(place)
    assert {"search", "chart-phases-view", "opens", "drawing", "total", "skip"} <= seen


def test_without_scripts_everything_is_there_to_read(browser: Page, pages: dict[str, Path], tmp_path: Path) -> None:
    scripts = re.compile(r"<script>.*?</script>", re.DOTALL)
    plain = tmp_path / "plain.html"
    plain.write_text(scripts.sub("", pages["forms"].read_text(encoding="utf-8")), encoding="utf-8")
    browser.driver.get(plain.as_uri())
    assert all(detail.is_displayed() for detail in browser.all("tr.detail"))
    assert not any(each.is_displayed() for each in browser.all(".only-script"))
