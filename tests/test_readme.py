"""Every page shows what its own commands print and draw."""

import json
import re
from pathlib import Path

import pytest
from stored_tables import charts, main
from workbench import CHECKOUT, first_fast

from harness.records.file import read_records

PAGES = [CHECKOUT / "README.md", *CHECKOUT.glob("docs/*/*.md"), *CHECKOUT.glob("results/*/*.md")]
WITH_PARTS = {page for page in PAGES if "<!-- BEGIN " in page.read_text()}
LONG = {CHECKOUT / f"results/{study}/README.md" for study in ("frontier", "sweep")}
"""Pages whose tables and charts take seconds."""
QUICK = sorted(WITH_PARTS - LONG)
NUMBERS = {
    f"{CHECKOUT.name}/README.md": (2, 1),
    "explanation/algorithms.md": (3, 1),
    "reference/configuration.md": (8, 0),
}
"""How many tables and charts some pages show, so that none is lost."""
STALE = """before
<!-- BEGIN one: python -m harness.table {0} --format markdown -->
old
<!-- END one -->
after ![the ladder](one.svg)

`python -m harness.plot {0} --kind dots --output one.svg`, `python -m harness.plot --output not_shown.svg`
"""


@pytest.mark.parametrize(
    "page",
    first_fast([*QUICK, *sorted(LONG)], len(QUICK)),
    ids=lambda page: f"{page.parent.name}/{page.stem}",
)
def test_a_page_shows_what_its_commands_print_and_draw(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CHECKOUT)
    assert main([str(page), "--check"]) == 0
    content = page.read_text()
    shown = content.count("<!-- BEGIN "), len(list(charts(page, content)))
    assert shown == NUMBERS.get(f"{page.parent.name}/{page.name}", shown)


def test_stored_records_are_proved_and_name_no_path_of_a_machine() -> None:
    packed = sorted(CHECKOUT.glob("results/sweep/*/records.jsonl.gz"))
    assert all(path.stat().st_size < 400_000 for path in packed)
    for record in read_records([*packed, *CHECKOUT.glob("results/readme/*/records.jsonl")]):
        assert not re.search(r'"[^"]*(/home/|/root|/tmp|/usr)', json.dumps(dict(record)))
        assert record["status"] in ("ok", "timeout", "skipped")
        if record["status"] == "ok" and record["cell"] != "count":
            assert record["identity"]["kind"] == "identical"


@pytest.mark.slow
def test_a_stale_table_and_a_stale_chart_are_reported_and_rewritten(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, chart = here / "page.md", here / "one.svg"
    page.write_text(STALE.format(CHECKOUT / "tests/fixtures/records/sweep.jsonl"))
    assert main([str(page), "--check"]) == 1
    assert capsys.readouterr().err == f"stale: {page}, one.svg\n"
    assert main([str(page)]) == 0
    assert re.search(r"^before\n.*-->\n[^o].*\| variant \|.*\nafter", page.read_text(), re.S)
    assert main([str(page), "--check"]) == 0

    drawn = chart.read_text()
    moved = re.sub(r'( d="M )(\d)', r"\g<1>9\2", drawn, count=1)
    for changed in (drawn.replace(">heap<", ">hexp<"), moved, "no picture"):
        assert changed != drawn
        chart.write_text(changed)
        assert main([str(page), "--check"]) == 1
    # Another release of matplotlib may write it so.
    chart.write_text(drawn.replace("stroke-width", "stroke-width "))
    assert main([str(page), "--check"]) == 0
    assert [path.name for path in here.glob("*.svg")] == ["one.svg"]
