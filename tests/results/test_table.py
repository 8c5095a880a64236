"""Tables say what the records say: to the letter, in every form that an outcome can take."""

import csv
import io
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from measured import RECORDS, records_of, stored
from rich.cells import cell_len
from rows import abridged, rows_beside
from workbench import CHECKOUT, Call, ran

from harness.common.errors import MISMATCH, OK

FILES = {
    "mine": "mine.jsonl",
    "old": "old.jsonl",
    "new": "new.jsonl",
    "local": "results/local/records.jsonl",
}
TABLES = ("tables", "pivot", "profile", "two_sets")
ROWS = [row for name in TABLES for row in rows_beside(__file__, f"{name}.toml")]


@pytest.mark.parametrize("row", ROWS)
def test_command_prints_the_text_of_its_row(row: dict[str, Any], here: Path, call: Call) -> None:
    Path("records").symlink_to(RECORDS)
    for name in FILES.keys() & row.keys():
        path = here / FILES[name]
        path.parent.mkdir(parents=True, exist_ok=True)
        stored(path, records_of(row[name]))

    code, out, err = call("table", *shlex.split(row["run"]))
    text = "".join(f"{line.rstrip()}\n" for line in out.splitlines())
    assert code == row.get("exit", OK), err
    assert row["err"] in err if "err" in row else err == ""
    shows = row.get("shows", text)
    assert abridged(text, shows) == shows
    for part in row.get("holds", []):
        assert part in text

    if "notes" in row:
        below = "\n\n".join(text.split("\n\n")[2:])
        assert below.splitlines() == row["notes"]
    if "lines" in row:
        lines = []
        for line, expected in zip(csv.DictReader(io.StringIO(out)), row["lines"], strict=True):
            lines.append({name: line[name] for name in expected})
        assert lines == row["lines"]


@pytest.mark.parametrize("width", [80, 50])
def test_narrow_terminal_continues_below_and_cuts_nothing_off(
    width: int, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    words = set(re.findall(r"[\w.]+", call("table --work", RECORDS / "sweep.jsonl").out))

    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    coloured = call("table --work", RECORDS / "sweep.jsonl").out
    narrow = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert max(map(cell_len, narrow.splitlines())) <= width
    assert words - set(re.findall(r"[\w.]+", narrow)) == set()

    code, out, _ = call("table", RECORDS / "forms.jsonl")
    assert code == MISMATCH
    assert "\x1b[31m" in out, "wrong merges are red"


def test_table_loads_no_pandas_and_needs_no_unicode() -> None:
    code = (
        "import sys; from harness.table import main; main(sys.argv[1:]);"
        " print({'pandas', 'matplotlib'} & {*sys.modules})"
    )
    ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    ended = ran(CHECKOUT, "-c", code, str(RECORDS / "sweep.jsonl"), variables=ascii_only)
    assert "Traceback" not in ended.stderr
    assert ended.stdout.endswith("\nset()\n")
