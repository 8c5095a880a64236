"""python -m harness.board: the rank, what is not ranked and why, and the page with its charts."""

from pathlib import Path

import pytest
from measured import records_of, stored
from rows import Row, each_row
from workbench import CHECKOUT, Call

from harness.board import page_of
from harness.common.errors import OK, USAGE
from harness.results.selection import records_of as records_in


@each_row(__file__, "board.toml")
def test_board_has_the_passages_of_its_row_or_is_refused(row: Row, here: Path, call: Call) -> None:
    folder = here / "board"
    stored(folder / "records.jsonl", records_of(row["mine"]))

    code, _, err = call("board board")
    written = sorted(path.name for path in folder.iterdir())
    written.remove("records.jsonl")
    assert written == row.get("files", [])
    if "refused" in row:
        assert code == USAGE
        assert row["refused"] in err
        return

    assert code == OK
    page = (folder / "README.md").read_text()
    assert row.get("lacks", "\0") not in page
    for passage in row["page"]:
        assert passage in page
        page = page.partition(passage)[2]


@pytest.mark.slow
def test_stored_board_is_what_its_records_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CHECKOUT)
    folder = Path("results/board")
    page, _ = page_of(records_in([str(folder)]), folder)
    assert (folder / "README.md").read_text() == page
