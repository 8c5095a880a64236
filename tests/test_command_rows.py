"""Every command as people call it: a row of command_rows/*.toml (tests/support/rows.py: rows_of) is a
command line and what its user relies on.

    run       the command line. Of several, all but the last prepare the row and end with 0
    name      the sentence that it proves, unless the command line and its refusal say it
    write     files that are written before, by name (tests/support/rows.py: write_files)
    exit      the exit code, 0 unless given
    out       texts of standard output, in this order
    rows      what lines of standard output start with, in this order: the rows of a table
    err       texts of standard error, in any order. A refusal is one sentence and prints nothing else
    measured  how many measurements the records of results/local gained, 0 unless given
    files     patterns of the files that were written besides the records; each must match, and no
              others are written
    holds     texts that a written file holds
    folder    "plain", the files of command_rows/folder with those of fixtures/records, or "trained":
              heap and naive have been run there on text.txt, and their tokenizers saved as
              tokenizers/heap and tokenizers/naive
    given     standard input
    process   in a process of its own
    slow      left to the slow tests

A list of one text may be that text. A row runs its module as `python -m ...` does.
"""

import fnmatch
import os
import re
import runpy
import shlex
import shutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import msgspec
import pytest
from msgspec.structs import replace
from rows import rows_of, write_files
from workbench import Outcome, contents, ran

from harness.records.file import read_records

FIXTURES = Path(__file__).resolve().parent / "fixtures"
TRAIN = (
    "-m harness variants=[heap,naive] data.path=text.txt vocab_size=270"
    " save=tokenizers measure=quick threads=1"
)
COLUMNS = {"COLUMNS": "200"}
MADE = (".svg", ".png", ".html", ".md")
RECORDS = "results/local/records.jsonl"
LISTS = {"run", "out", "rows", "err", "files"}


class Row(msgspec.Struct, forbid_unknown_fields=True):
    """A command line and what its user relies on."""

    run: list[str]
    name: str = ""
    write: dict[str, str] = {}
    exit: int = 0
    out: list[str] = []
    rows: list[str] = []
    err: list[str] = []
    measured: int = 0
    files: list[str] = []
    holds: dict[str, list[str]] = {}
    folder: Literal["plain", "trained"] = "plain"
    given: str = ""
    process: bool = False
    slow: bool = False

    @property
    def command(self) -> str:
        return shlex.split(self.run[-1])[2]


def read_rows() -> Iterator[Row]:
    for path in sorted((FIXTURES / "command_rows").glob("*.toml")):
        for written in rows_of(path):
            for name in LISTS & written.keys():
                if isinstance(written[name], str):
                    written[name] = [written[name]]
            row = msgspec.convert(written, Row)
            row.name = f"{row.command}: {row.name or row.run[-1]}"
            yield row


ROWS = list(read_rows())


@pytest.mark.usefixtures("measured_once")
@pytest.mark.parametrize(
    "row",
    [pytest.param(row, id=row.name, marks=pytest.mark.slow if row.slow else ()) for row in ROWS],
)
def test_command(
    row: Row,
    folders_of_rows: dict[str, Path],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = Path(shutil.copytree(folders_of_rows[row.folder], tmp_path / "here"))
    if row.command == "harness.replay":  # all share the words that were counted before
        monkeypatch.setenv("BPE_HARNESS_CACHE", str(folders_of_rows["cache"]))
    monkeypatch.chdir(folder)
    write_files(folder, row.write)
    *before, last = row.run

    for line in before:
        prepared = call(line, row, capfd)
        assert prepared.code == 0, prepared.err
    files, measured = contents(folder), measurements(folder)
    outcome = call(last, row, capfd)

    expect_outcome(row, outcome, measurements(folder) - measured)
    expect_files(row, folder, files)


def test_every_command_has_a_row_and_no_two_rows_have_one_name() -> None:
    assert len({row.command for row in ROWS}) >= 12
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_a_row_that_is_not_as_expected_is_reported() -> None:
    outcome = Outcome(0, "│ heap │ 0.12 s\n naive 3 ms right\n", "")
    texts = ["heap │ 0.12 s naive 3 ms", "right"]
    right = Row(["python -m harness"], out=texts, rows=["heap", "naive"], measured=2)
    expect_outcome(right, outcome, 2)
    wrong: dict[str, Any] = {"exit": 2, "out": ["right", "heap"], "rows": ["hea"]}
    for name, value in {**wrong, "err": ["sentence"], "measured": 3}.items():
        with pytest.raises(AssertionError):
            expect_outcome(replace(right, **{name: value}), outcome, 2)


@pytest.fixture(scope="session")
def folders_of_rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The two folders that rows start from, made once and copied for each, and the cache of
    that.
    """
    above = tmp_path_factory.mktemp("rows")
    plain, trained, cache = above / "plain", above / "trained", above / "cache"
    shutil.copytree(FIXTURES / "command_rows" / "folder", plain)
    shutil.copytree(FIXTURES / "records", plain / "records")
    shutil.copytree(plain, trained)

    own = {"BPE_HARNESS_CACHE": str(cache), "BPE_HARNESS_LOCKS": str(above)}
    ran(trained, *TRAIN.split(), variables=own, check=True)
    return {"plain": plain, "trained": trained, "cache": cache}


def call(line: str, row: Row, capfd: pytest.CaptureFixture[str]) -> Outcome:
    """Run a command line with 200 columns: in this process, which is fast, or in one of its own."""
    _, _, module, *arguments = shlex.split(line)
    if row.process or row.given:
        done = ran(Path(), "-m", module, *arguments, variables=COLUMNS, input=row.given)
        return Outcome(done.returncode, done.stdout, done.stderr)

    capfd.readouterr()
    argv = mock.patch.object(sys, "argv", [module, *arguments])
    with mock.patch.dict(os.environ, COLUMNS), argv, warnings.catch_warnings():
        # of modules that were imported before they run
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(SystemExit) as ended:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    forget_modules_of(Path.cwd())
    return Outcome(int(ended.value.code or 0), *capfd.readouterr())


def forget_modules_of(folder: Path) -> None:
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]


def expect_outcome(row: Row, outcome: Outcome, measured: int) -> None:
    """Fail unless an outcome is as the row expects."""
    out, err = outcome.out, without_progress(outcome.err)
    assert outcome.code == row.exit, err or out
    assert measured == row.measured
    assert "Traceback" not in out + err
    assert [text for text in row.err if text not in err] == [], err
    if not row.err:
        assert err == ""
    elif row.exit and not row.out and not err.startswith("usage:"):
        assert (out, len(err.splitlines())) == ("", 1), err

    words = " ".join(out.split())
    for text in row.out:
        assert text in words, out
        words = words.partition(text)[2]
    lines = iter(re.sub(r"^[\s|│┃]+", "", line) for line in out.splitlines())
    for name in row.rows:
        whole = re.compile(re.escape(name) + r"(?![\w-])")
        assert any(map(whole.match, lines)), f"{name!r} starts no row of {out}"


def without_progress(err: str) -> str:
    """Without the lines of a command of several tasks, and those about long work, as on a busy
    machine.
    """
    return re.sub(r"^(?:task \d+ of \d+: .*|.* \d+ \w+ elapsed.*)\n", "", err, flags=re.MULTILINE)


def measurements(folder: Path) -> int:
    """How many trainings have a time."""
    path = folder / RECORDS
    records = read_records([path]) if path.exists() else []
    return sum(record.trains and "total" in record.measurement.seconds for record in records)


def expect_files(row: Row, folder: Path, before: dict[str, bytes]) -> None:
    """Fail unless the files are as the row expects; those of `results` are counted by
    measurements.
    """
    after = contents(folder)
    recorded = "results/local" if row.measured or row.exit not in (0, 2) else "nothing is recorded"
    written = set()
    for name, content in after.items():
        is_record = fnmatch.fnmatch(name, f"{recorded}/*") and not name.endswith(MADE)
        if before.get(name) != content and not is_record:
            written.add(name)

    assert before.keys() <= after.keys()
    assert after.get(RECORDS, b"").startswith(before.get(RECORDS, b""))
    expected = set[str]()
    for pattern in row.files:
        matching = fnmatch.filter(written, pattern)
        assert matching, f"{pattern} was not written"
        expected.update(matching)
    assert written == expected
    for name, texts in row.holds.items():
        content_of_file = after.get(name, b"").decode(errors="replace")
        assert [text for text in texts if text not in content_of_file] == [], name
