"""What the README shows is what its commands print."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from stored_tables import BLOCK, charts, main
from workbench import first_fast

from harness.records.file import read_records

CHECKOUT = Path(__file__).resolve().parent.parent
README = CHECKOUT / "README.md"
ALGORITHMS = CHECKOUT / "docs/explanation/algorithms.md"
PAGES = [
    page for page in sorted(CHECKOUT.glob("results/*/README.md")) if BLOCK.search(page.read_text())
]
LONG = ("sweep",)
"""Pages whose tables read some thousand records: they come last, and are slow ones."""
PAGES.sort(key=lambda page: page.parent.name in LONG)
SVG = re.compile(r"harness\.plot [^`]*--output (results/[^`]*\.svg)")
PICTURED = [
    page for page in sorted(CHECKOUT.glob("results/*/README.md")) if SVG.search(page.read_text())
]


@pytest.fixture(autouse=True)
def in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's commands name files from the top of the checkout."""
    monkeypatch.chdir(CHECKOUT)


@pytest.mark.parametrize(
    ("page", "number"), [(README, 1), (ALGORITHMS, 3)], ids=["README", "algorithms"]
)
def test_every_table_is_what_its_command_prints(page: Path, number: int) -> None:
    assert main([str(page), "--check"]) == 0
    assert len(BLOCK.findall(page.read_text())) == number


@pytest.mark.parametrize(
    "page", first_fast(PAGES, len(PAGES) - len(LONG)), ids=lambda page: page.parent.name
)
def test_the_tables_of_every_page_of_results_are_what_their_commands_print(page: Path) -> None:
    assert main([str(page), "--check"]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("page", PICTURED, ids=lambda page: page.parent.name)
def test_the_pictures_of_every_page_of_results_are_what_their_commands_draw(page: Path) -> None:
    assert list(charts(page, page.read_text()))
    assert main([str(page), "--check"]) == 0


def test_stored_records_are_proved_and_name_no_place_of_a_machine() -> None:
    packed = sorted(CHECKOUT.glob("results/sweep/*/records.jsonl.gz"))
    assert all(path.stat().st_size < 400_000 for path in packed)
    for path in [*packed, *CHECKOUT.glob("results/readme/*/records.jsonl")]:
        for record in read_records([path]):
            assert not re.search(r'"[^"]*(/home/|/root|/tmp|/usr)', json.dumps(dict(record)))
            assert record["status"] in ("ok", "extrapolated", "timeout", "skipped")
            assert (
                record["status"] != "ok"
                or record["cell"] == "count"
                or record["identity"]["kind"] == "identical"
            )


def test_a_stale_page_is_reported_and_rewritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    table = "python -m harness.table tests/fixtures/records/sweep.jsonl --format markdown"
    page.write_text(f"before\n<!-- BEGIN one: {table} -->\nold\n<!-- END one -->\nafter\n")
    assert main([str(page), "--check"]) == 1
    assert capsys.readouterr().err == f"stale: {page}\n"
    assert main([str(page)]) == 0
    assert "old" not in page.read_text()
    assert "| variant |" in page.read_text()
    assert main([str(page), "--check"]) == 0


def test_a_stale_chart_is_reported_and_redrawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    records = CHECKOUT / "tests/fixtures/records/sweep.jsonl"
    page, picture = tmp_path / "page.md", tmp_path / "one.svg"
    monkeypatch.chdir(tmp_path)
    command = f"`python -m harness.plot {records} --kind race --output one.svg`"
    page.write_text(
        f"![the ladder](one.svg)\n\n{command}, `python -m harness.plot --output not_shown.svg`\n"
    )
    assert main([str(page), "--check"]) == 1
    assert "stale: one.svg" in capsys.readouterr().err
    assert main([str(page)]) == 0
    assert main([str(page), "--check"]) == 0
    drawn = picture.read_text()
    for changed in (
        drawn.replace(">heap<", ">hexp<"),
        re.sub(r'( d="M )(\d)', r"\g<1>9\2", drawn, count=1),
        "no picture",
    ):
        assert changed != drawn
        picture.write_text(changed)
        assert main([str(page), "--check"]) == 1
    # another release of matplotlib may write so
    picture.write_text(drawn.replace("stroke-width", "stroke-width "))
    assert main([str(page), "--check"]) == 0
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".svg"] == ["one.svg"]


def test_the_ratios_of_the_algorithms_are_those_of_their_records() -> None:
    total = {
        record["variant"]: record["seconds"]["total"]
        for record in read_records(["results/readme/english"])
        if record["cell"] == "train"
    }
    ratios = (
        f"{total['naive'] / total['heap']:.1f} : {total['incremental'] / total['heap']:.2f} : 1"
    )
    assert f"naive : incremental : heap = {ratios}" in ALGORITHMS.read_text()
