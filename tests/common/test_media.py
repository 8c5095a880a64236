"""Whatever a record holds, no terminal obeys it, no spreadsheet evaluates it, and no page renders
it as markup.
"""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured import changed, measured, stopped, stored
from workbench import Call

from harness import tokenizer
from harness.__main__ import main
from harness.common.printing import (
    csv_text,
    html_text,
    markdown_text,
    terminal_lines,
    terminal_text,
)

OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
EVALUATED = ("=", "+", "-", "@")
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
FORMS = ["", "--work", "--notes", "--pivot variant data", "--format markdown", "--format csv"]


@pytest.mark.parametrize("form", FORMS)
def test_no_control_sequence_reaches_a_reader(form: str, tmp_path: Path, call: Call) -> None:
    path = stored(tmp_path / "r.jsonl", RECORDS)
    printed = call(f"table {form}", path)
    assert printed.code == 0
    assert "calc" in printed.out
    assert OBEYED.search((printed.out + printed.err).replace("\r\n", "\n")) is None

    if form == "--format csv":
        check_no_formula(printed.out)
        assert call("records export --output", tmp_path / "r.csv", path).code == 0
        check_no_formula((tmp_path / "r.csv").read_text())
        return
    assert not re.search(r"^\s*(new \||::)", printed.out, re.MULTILINE)
    if form == "--format markdown":
        tables = re.findall(r"(?:^\|.*\n)+", printed.out, re.MULTILINE)
        assert sum(text.count("\n") - 2 for text in tables) == len(RECORDS)  # a head and a rule
        for text in tables:
            columns = {len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines()}
            assert len(columns) == 1


def check_harmless(text: str) -> None:
    """Nothing in it is a command to a terminal or a log."""
    assert OBEYED.search(text) is None
    assert not re.search(r"^\s*::|##\[", text, re.MULTILINE)


def check_no_formula(text: str) -> None:
    cells = [cell for line in csv.reader(io.StringIO(text)) for cell in line]
    assert any("calc" in cell for cell in cells)
    assert not [cell for cell in cells if cell.startswith(EVALUATED)]
    assert OBEYED.search(text) is None


@pytest.mark.parametrize(
    "command",
    [
        [f"variant={QUOTED}"],
        [f"data.path={QUOTED}"],
        ["conformance", HOSTILE],
        ["conformance", f"no_such_module:{HOSTILE}"],
        ["conformance", "raises_when_imported:train"],
        ["plot", HOSTILE, "--output", "a.svg"],
        ["replay", HOSTILE, "--data", HOSTILE],
        ["table", "broken.jsonl"],
        ["table", HOSTILE],
    ],
)
def test_what_a_command_repeats_is_no_command_to_a_terminal_or_a_log(
    command: list[str],
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.syspath_prepend(str(here))
    Path("raises_when_imported.py").write_text(f"raise ValueError({HOSTILE!r})\n")
    path = stored(here / "broken.jsonl", [measured("heap", 1.0)])
    path.write_text(path.read_text().replace('"threads":1', f'"threads":{json.dumps(HOSTILE)}'))

    try:
        code: Any = main(command)
    except SystemExit as ended:
        code = ended.code
    assert code in (2, 22), code
    printed = "".join(capfd.readouterr())
    assert printed
    check_harmless(printed)


@pytest.mark.usefixtures("here")
def test_no_token_is_obeyed_by_a_terminal(call: Call) -> None:
    tokenizer.train([HOSTILE[1:] * 9], 300, special_tokens=[HOSTILE]).save("given")
    Path("text.txt").write_text("low")
    pruned = call("tokenizer prune given --data text.txt")
    encoded = call("tokenizer encode given --data text.txt --output a.npy --separator x")
    assert (pruned.code, encoded.code) == (0, 2)
    printed = "".join(pruned[1:] + encoded[1:])
    assert "\\x1b" in printed
    assert "calc" in printed
    check_harmless(printed)


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_no_medium_holds_anything_that_is_obeyed(text: str) -> None:
    on_a_line = terminal_text(text), markdown_text(text), html_text(text)
    check_harmless(terminal_lines(text))
    for written in (*on_a_line, csv_text(text)):
        assert OBEYED.search(written) is None
        written.encode()
    assert "\n" not in "".join(on_a_line)
    assert not csv_text(text).startswith(EVALUATED)
    if text.isprintable() and "::" not in text and "##[" not in text:
        assert terminal_text(text) == text
