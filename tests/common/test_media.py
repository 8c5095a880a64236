"""Whatever a record holds, no terminal obeys it, no spreadsheet evaluates it, and no page renders
it as markup.
"""

from __future__ import annotations

import csv
import importlib
import io
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured import changed, measured, stopped, stored

from harness import table
from harness.common.escape import csv_text, html_text, markdown_text, terminal_lines, terminal_text
from harness.records import __main__ as records

OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
HOSTILE = "##[group]=cmd|' /C calc'!A0\x1b]0;title\x07\x1b[2J\x9b31m\u202egnp.\u2066\nnew | line\r::stop-commands::x"
QUOTED = "'" + HOSTILE.replace("'", "") + "'"
NAMED = measured(
    HOSTILE,
    {"update": 1.0, HOSTILE: 1e-7},
    params={"push": HOSTILE},
    tallies={HOSTILE: 3},
    host=HOSTILE,
)
RECORDS = [
    changed(
        NAMED,
        pattern=HOSTILE,
        special_tokens=[HOSTILE],
        data={**NAMED["data"], "name": HOSTILE},
    ),
    measured("heap", 2.0, environment={"cpu": HOSTILE}),
    stopped(HOSTILE, 9, reason=HOSTILE, stderr_tail=HOSTILE),
]


@pytest.fixture
def path(tmp_path: Path) -> str:
    stored(tmp_path / "r.jsonl", RECORDS)
    return str(tmp_path / "r.jsonl")


@pytest.mark.parametrize(
    "form", [[], ["--work"], ["--notes"], ["--pivot", "variant", "data"], ["--format", "markdown"]]
)
def test_no_control_sequence_reaches_a_reader(
    form: list[str], path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert table.main([path, *form]) == 0
    printed = capsys.readouterr()
    assert "calc" in printed.out
    assert OBEYED.search(printed.out + printed.err) is None
    assert not any(line.lstrip().startswith(("new |", "::")) for line in printed.out.splitlines())


def test_a_table_of_markdown_keeps_its_lines(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    table.main([path, "--format", "markdown"])
    blocks = re.findall(r"(?:^\|.*\n)+", capsys.readouterr().out, re.MULTILINE)
    tables = [block.splitlines() for block in blocks]
    # each table has a head and a rule
    assert sum(len(lines) - 2 for lines in tables) == len(RECORDS)
    for lines in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1


@pytest.mark.parametrize("command", ["table", "records"])
def test_no_csv_cell_is_a_formula(
    command: str, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if command == "table":
        assert table.main([path, "--format", "csv"]) == 0
        text = capsys.readouterr().out
    else:
        assert records.main(["export", path, "--output", str(tmp_path / "r.csv")]) == 0
        text = (tmp_path / "r.csv").read_text()
    cells = [cell for line in csv.reader(io.StringIO(text)) for cell in line]
    assert any("calc" in cell for cell in cells)
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
    assert OBEYED.search(text) is None


def test_a_broken_line_is_reported_without_its_content(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stored(tmp_path / "r.jsonl", [measured("heap", 1.0)])
    path.write_text(path.read_text().replace('"threads":1', f'"threads":{json.dumps(HOSTILE)}'))
    assert table.main([str(tmp_path / "r.jsonl")]) == 22
    assert OBEYED.search(capsys.readouterr().err) is None
    assert table.main([f"no {HOSTILE}"]) == 22
    assert OBEYED.search(capsys.readouterr().err) is None


COMMANDS = [
    ("harness.__main__", "variant=" + QUOTED),
    ("harness.__main__", "data.path=" + QUOTED),
    ("harness.conformance", HOSTILE),
    ("harness.conformance", "no_such_module:" + HOSTILE),
    ("harness.conformance", "raises_when_imported:train"),
    ("harness.plot", HOSTILE, "--output", "a.svg"),
    ("harness.replay", HOSTILE, "--data", HOSTILE),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_command_repeats_is_no_command_to_a_terminal_or_a_log(
    command: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raises_when_imported.py").write_text(f"raise ValueError({HOSTILE!r})\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        code = importlib.import_module(command[0]).main(command[1:])
    except SystemExit as ended:
        code = ended.code
    assert code in (2, 22), code
    printed = capfd.readouterr()
    assert printed.err
    assert OBEYED.search(printed.out + printed.err) is None
    assert not [
        line for line in (printed.out + printed.err).splitlines() if line.lstrip().startswith("::")
    ]
    assert "##[" not in printed.out + printed.err


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_no_medium_holds_anything_that_is_obeyed(text: str) -> None:
    for written in (terminal_text(text), markdown_text(text), html_text(text), csv_text(text)):
        assert OBEYED.search(written) is None
        written.encode()
    assert OBEYED.search(terminal_lines(text)) is None
    for line in terminal_lines(text).split("\n"):
        assert not line.lstrip().startswith("::")
        assert "##[" not in line
    assert "\n" not in terminal_text(text) + markdown_text(text) + html_text(text)
    assert not csv_text(text).startswith(("=", "+", "-", "@"))
    if text.isprintable() and "::" not in text and "##[" not in text:
        assert terminal_text(text) == text
