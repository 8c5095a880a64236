"""Tables say what the records say: to the letter, in every form that an outcome can take."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from measured import RECORDS, measured, records_of, stored
from rich.cells import cell_len
from rows import abridged, rows_beside
from workbench import CHECKOUT, ran

from harness.common.errors import MISMATCH, OK
from harness.results.frame import hyperfine
from harness.results.rows import rows
from harness.table import main

FILES = {
    "mine": "mine.jsonl",
    "old": "old.jsonl",
    "new": "new.jsonl",
    "local": "results/local/records.jsonl",
}
TABLES = ("tables", "pivot", "profile", "two_sets")
ROWS = [row for name in TABLES for row in rows_beside(__file__, f"{name}.toml")]


@pytest.mark.parametrize("row", ROWS)
def test_command_prints_the_text_of_its_row(
    row: dict[str, Any],
    here: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("records").symlink_to(RECORDS)
    for name in FILES.keys() & row.keys():
        path = here / FILES[name]
        path.parent.mkdir(parents=True, exist_ok=True)
        stored(path, records_of(row[name]))

    code = main(shlex.split(row["run"]))
    out, err = capsys.readouterr()
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
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = [str(RECORDS / "sweep.jsonl"), "--work"]
    assert main(line) == OK
    words = set(re.findall(r"[\w.]+", capsys.readouterr().out))

    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(line) == OK
    narrow = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert max(map(cell_len, narrow.splitlines())) <= width
    assert words - set(re.findall(r"[\w.]+", narrow)) == set()

    assert main([str(RECORDS / "forms.jsonl")]) == MISMATCH
    assert "\x1b[31m" in capsys.readouterr().out, "wrong merges are red"


def test_table_loads_no_pandas_and_needs_no_unicode() -> None:
    code = (
        "import sys; from harness.table import main; main(sys.argv[1:]);"
        " print({'pandas', 'matplotlib'} & {*sys.modules})"
    )
    ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    ended = ran(CHECKOUT, "-c", code, str(RECORDS / "sweep.jsonl"), variables=ascii_only)
    assert "Traceback" not in ended.stderr
    assert ended.stdout.endswith("\nset()\n")


def test_benchmarks_that_differ_have_names_that_differ() -> None:
    settings: list[dict[str, Any]] = [
        {"pattern": "gpt4"},
        {"min_count": 3},
        {"tie_break": "huggingface"},
        {"counting": "native", "counting_chosen": True},
        {"vocab_size": 2000},
        {"threads": 2},
        {"params": {"push": "grown"}},
        {"host": "11aa22bb"},
        {},
    ]
    shown = rows([measured("heap", 1.0, **changes) for changes in settings])
    names = [result["command"] for result in json.loads(hyperfine(shown))["results"]]
    assert len(set(names)) == len(settings)
    alone = json.loads(hyperfine([shown[0]]))["results"]
    assert alone[0]["command"] == names[0]  # a tracker finds it again
