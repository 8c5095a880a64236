"""Files of records are joined without doubles, checked line by line, and exported with every value in its column."""

from __future__ import annotations

import copy
import csv
import gzip
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from measured import measured
from workbench import CHECKOUT, NAIVE, TESTS, cell_of, reading_of, settings_for, unruly

from harness import records
from harness.runs.record import FILE_NAME, PACKED, SCHEMA, RecordFile, read_records
from harness.runs.record_keys import complaints, unknown_keys
from harness.runs.schedule import Run

pytestmark = pytest.mark.xdist_group("records")  # the run that most look at is made once
Line = dict[str, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Line]:
    """Records of every kind of end, as a run makes them."""
    folder = tmp_path_factory.mktemp("made")
    reading = reading_of(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BPE_HARNESS_CACHE", str(folder / "cache"))
        patch.setenv("PYTHONPATH", str(TESTS))
        trainers = [NAIVE, *map(unruly, ["takes_two", "raises", "segfaults", "is_unavailable", "returns_one_too_few"])]
        run = Run([cell_of(reading, trainer) for trainer in trainers], settings_for(folder), folder / "jobs")
        run.measure_all()
        run.prove()
        return json.loads(json.dumps(run.records()))  # type: ignore[no-any-return]


def changed(record: Line, change: Callable[[Line], Any]) -> Line:
    other = copy.deepcopy(record)
    change(other)
    return other


def stored(path: Path, lines: list[Line]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


# The schema.


@pytest.mark.slow
def test_every_record_that_is_made_is_whole_and_described(made: list[Line]) -> None:
    assert {each["status"] for each in made} >= {"ok", "error", "killed", "skipped", "mismatch"}
    for each in made:
        assert list(complaints(each)) == []
        assert unknown_keys(each) == []


@pytest.mark.parametrize("path", sorted((CHECKOUT / "results").glob(f"readme/**/{FILE_NAME}")), ids=str)
def test_records_that_were_made_earlier_still_are_records(path: Path) -> None:
    for each in read_records([path]):
        assert list(complaints(each)) == []


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda record: record.pop("started"), "started is missing"),
        (lambda record: record.update(started="yesterday"), "started is 'yesterday', not a moment in ISO 8601"),
        (lambda record: record.update(started="2026-01-01T00:00:00"), "not a moment in ISO 8601 with its time zone"),
        (lambda record: record.update(status="splendid"), "status is 'splendid', not one of ok, mismatch, "),
        (lambda record: record.update(status="error", reason=None), "status error has no reason"),
        (lambda record: record.update(status="killed", reason="x"), "seconds.total stands beside status killed"),
        (lambda record: record.update(cell=None), "cell is null"),
        (lambda record: record.update(variant=None), "variant is missing where a trainer was measured"),
        (lambda record: record.update(merges=True), "merges is True, not a whole number"),
        (lambda record: record.update(merges=-1), "merges is -1, not a whole number"),
        (lambda record: record.update(merges_sha256="1b97242d"), "merges_sha256 is '1b97242d', not 64 hexadecimal"),
        (
            lambda record: record.update(cpu_seconds=float("nan")),
            "cpu_seconds is nan, not a number, 0 or more (seconds)",
        ),
        (lambda record: record.update(seconds=[]), "seconds is [], not a mapping"),
        (lambda record: record["seconds"].update(init="0.1"), "seconds.init is '0.1', not a number"),
        (lambda record: record["seconds"].update(other=5.0), "its phases add up to "),
        (lambda record: record["identity"].pop("reason"), None),
        (lambda record: record["identity"].update(kind="right"), "identity.kind is 'right', not one of "),
        (lambda record: record.update(tallies={"pair_updates": 1.5}), "not whole numbers by name"),
        (lambda record: record.update(affinity=["0"]), "affinity is ['0'], not a list of cores"),
        (lambda record: record.update(invented=1), None),
    ],
)
def test_what_is_wrong_with_a_record_is_said(
    made: list[Line], change: Callable[[Line], Any], complaint: str | None
) -> None:
    good = next(each for each in made if each["cell"] == "train" and each["status"] == "ok")
    found = list(complaints(changed(good, change)))
    assert found == [] if complaint is None else any(complaint in each for each in found), found


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(
        st.sampled_from(["schema", "status", "seconds", "identity", "started", "variant", "tallies", "environment"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["total", "init", "by", "x"]), inner),
        ),
    )
)
def test_any_mapping_is_answered_with_complaints(record: Line) -> None:
    assert all(isinstance(each, str) for each in [*complaints(record), *unknown_keys(record)])


# The command.


def test_check_names_every_broken_line_and_ends_with_22(
    made: list[Line], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stored(tmp_path / FILE_NAME, [made[0], changed(made[1], lambda record: record.pop("run_key"))])
    with path.open("ab") as file:
        file.write(b'{"schema": 1, "sta\n\n' + json.dumps({**made[0], "schema": SCHEMA + 1}).encode() + b"\n")
        file.write(json.dumps({**made[0], "new_key": 1}).encode() + b"\n")
    assert records.main(["check", str(tmp_path)]) == 22
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"{path}, line 2: run_key is missing"
    assert said[1].startswith(f"{path}, line 3: ")
    assert said[2] == f"{path}, line 5: schema 2 is newer than 1, which this program reads; update it"
    assert said[3] == "new_key is not described in this version; let be in 1 record"
    assert said[4] == "5 lines in 1 file, 3 of them broken"


def test_check_of_good_records_ends_with_0(
    made: list[Line], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(tmp_path / FILE_NAME, made)
    (tmp_path / "empty.jsonl").write_text("")
    assert records.main(["check", str(tmp_path), str(tmp_path / "empty.jsonl")]) == 0
    assert capsys.readouterr().out == f"{len(made)} lines in 2 files, none broken\n"


def test_merge_doubles_nothing_and_loses_nothing(
    made: list[Line], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same record with its keys in another order is the same; a broken line is reported and skipped."""
    left = stored(tmp_path / "left.jsonl", made[:4])
    (tmp_path / "deep" / "down").mkdir(parents=True)
    turned = [dict(reversed(each.items())) for each in made[2:]]
    right = stored(tmp_path / "deep" / "down" / FILE_NAME, turned)
    with right.open("a") as file:
        file.write("broken\n")
    together = tmp_path / "together.jsonl"
    command = ["merge", str(left), str(tmp_path / "deep"), "--output", str(together)]
    assert records.main(command) == 0
    assert read_records([together]) == made
    said = capsys.readouterr()
    assert f"{right}, line {len(turned) + 1}: skipped" in said.err
    assert said.out == f"{together}: 0 records before, {len(made)} added, 2 there or given twice\n"
    before = together.read_bytes()
    assert records.main(command) == 0
    assert together.read_bytes() == before
    assert records.main(["merge", str(together), "-o", str(tmp_path / "folder")]) == 0
    assert read_records([tmp_path / "folder"]) == made


def test_merge_says_what_is_given_more_than_once(
    made: list[Line], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = tmp_path / "left.jsonl"
    stored(left, made[:3])
    together = tmp_path / "together.jsonl"
    again = f"{tmp_path}/./left.jsonl"
    assert records.main(["merge", str(left), again, "-o", str(together)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"{left} is given more than once, and read once"
    assert said[1].endswith("0 records before, 3 added, 0 there or given twice")


def test_merge_into_one_of_its_own_inputs_adds_the_others(made: list[Line], tmp_path: Path) -> None:
    left, right = stored(tmp_path / "left.jsonl", made[:2]), stored(tmp_path / "right.jsonl", made[1:])
    assert records.main(["merge", str(left), str(right), "-o", str(left)]) == 0
    assert read_records([left]) == made


def test_packed_records_are_read_like_plain_ones(
    made: list[Line], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = tmp_path / "kept" / PACKED
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress("".join(f"{json.dumps(record)}\n" for record in made[:3]).encode(), mtime=0))
    assert read_records([packed]) == read_records([packed.parent]) == made[:3]
    RecordFile(packed.parent).append(made[3:])
    assert read_records([packed.parent]) == made
    assert records.main(["check", str(tmp_path)]) == 0
    assert f"{len(made)} lines in 2 files, none broken" in capsys.readouterr().out
    assert records.main(["merge", str(packed), "--output", str(packed.parent)]) == 0
    assert read_records([packed.parent]) == made
    assert records.main(["merge", str(packed), "--output", str(packed)]) == 2
    assert "pack it with gzip -n afterwards" in capsys.readouterr().err


def test_merge_adds_nothing_to_a_file_of_something_else(
    made: list[Line], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    RecordFile(tmp_path).append(made[:1])
    page = tmp_path / "page.md"
    page.write_text("# A page\n")
    assert records.main(["merge", str(tmp_path), "--output", str(page)]) == 2
    assert page.read_text() == "# A page\n"
    assert "has no records that can be read; name another file" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"no gzip", gzip.compress(b'{"schema": 1}\n' * 99, mtime=0)[:-20]])
def test_a_broken_pack_of_records_is_a_sentence(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / PACKED).write_bytes(content)
    assert records.main(["check", str(tmp_path)]) == 22
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_what_several_writers_add_at_once_is_merged_whole(tmp_path: Path) -> None:
    """Writers that append to one file while others merge into it."""
    line = measured("heap", 1.0)
    for writer in range(3):
        stored(tmp_path / f"{writer}.jsonl", [{**line, "by": writer, "number": number} for number in range(200)])
    commands = [
        [
            sys.executable,
            "-m",
            "harness.records",
            "merge",
            str(tmp_path / f"{writer}.jsonl"),
            "-o",
            str(tmp_path / "all"),
        ]
        for writer in range(3)
    ]
    processes = [subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.DEVNULL) for command in commands]
    for number in range(50):
        RecordFile(tmp_path / "all").append([{**line, "by": "me", "number": number}])
    assert [process.wait() for process in processes] == [0] * 3
    found = read_records([tmp_path / "all"])
    for by in (0, 1, 2, "me"):
        numbers = [each["number"] for each in found if each["by"] == by]
        assert numbers == list(range(50 if by == "me" else 200))


def test_exports_hold_every_value_in_its_column(made: list[Line], tmp_path: Path) -> None:
    stored(tmp_path / FILE_NAME, made)
    for name in ("runs.parquet", "runs.csv", "runs.json"):
        assert records.main(["export", str(tmp_path), "--output", str(tmp_path / "exports" / name)]) == 0
    table = pyarrow.parquet.read_table(tmp_path / "exports" / "runs.parquet").to_pydict()
    rows = list(csv.DictReader(io.StringIO((tmp_path / "exports" / "runs.csv").read_text())))
    assert json.loads((tmp_path / "exports" / "runs.json").read_text()) == made
    assert len(rows) == len(made)
    assert list(rows[0]) == list(table)
    for number, record in enumerate(made):
        total = record["seconds"]["total"]
        assert table["status"][number] == rows[number]["status"] == record["status"]
        assert table["seconds.total"][number] == total
        assert rows[number]["seconds.total"] == ("" if total is None else str(total))
        assert table["environment.packages.regex"][number] == record["environment"]["packages"]["regex"]
        assert table["special_tokens"][number] == record["special_tokens"]
        curve = table["curve"][number]
        assert (None if curve is None else json.loads(curve)) == record.get("curve")
    assert not {"seconds", "disturbance", "witness", "proof"} & table.keys()


def test_a_column_has_its_type_where_every_value_is_null(made: list[Line], tmp_path: Path) -> None:
    for name, lines in (("all", made), ("failed", [each for each in made if each["status"] == "killed"])):
        stored(tmp_path / f"{name}.jsonl", lines)
        assert records.main(["export", str(tmp_path / f"{name}.jsonl"), "-o", str(tmp_path / f"{name}.parquet")]) == 0
    whole, failed = (pyarrow.parquet.read_schema(tmp_path / f"{name}.parquet") for name in ("all", "failed"))
    for column in ("seconds.total", "seconds.update", "merges", "affinity", "reason", "limits.wall_seconds"):
        assert failed.field(column).type == whole.field(column).type


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.text()))))
def test_any_column_has_one_type_and_keeps_its_length(values: list[Any]) -> None:
    held = records.array_of(pyarrow, "x", values)
    there = [value for value in values if value is not None]
    assert [value is None for value in held.to_pylist()] == [value is None for value in values]
    if held.type == pyarrow.string() and any(not isinstance(value, str) for value in there):
        assert repr([json.loads(text) for text in held.drop_null().to_pylist()]) == repr(there)
    elif pyarrow.types.is_floating(held.type):
        assert repr(held.drop_null().to_pylist()) == repr(list(map(float, there)))
    else:
        assert held.drop_null().to_pylist() == there


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("seconds.total", [1, None], "double"),
        ("merges", [1, 2.5], "double"),
        ("merges", [True, 1], "string"),
        ("x", [2**80, 1], "string"),
        ("x", [["a", "\ud800"], None], "list<element: string>"),
        ("x", [[{"a": 1}]], "string"),
        ("affinity", [None], "list<element: int64>"),
    ],
)
def test_a_column_is_of_the_narrowest_type_that_holds_it(name: str, values: list[Any], kind: str) -> None:
    assert str(records.array_of(pyarrow, name, values).type).replace("item:", "element:") == kind


def test_an_absent_library_is_answered_with_the_command_that_installs_it(
    made: list[Line], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    stored(tmp_path / FILE_NAME, made)
    assert records.main(["export", str(tmp_path), "-o", str(tmp_path / "x.parquet")]) == 22
    assert "pip install -e '.[data]'" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["export", "FILE", "-o", "x.txt"], 2, "cannot tell a format from x.txt; end it with one of .parquet, .csv"),
        (["export", "FILE", "-o", "FILE/x.csv"], 22, "name another file"),
        (["export", "EMPTY", "-o", "x.csv"], 22, "no records in"),
        (["merge", "FILE", "-o", "FILE/deep/x.jsonl"], 22, "cannot write records to"),
        (["check", "missing.jsonl"], 22, "cannot read records from"),
        (["check", "nowhere/"], 22, "cannot read records from"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(
    made: list[Line],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    stored(tmp_path / "FILE", made)
    (tmp_path / "EMPTY").touch()
    assert records.main(arguments) == code
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["EMPTY", "FILE"]
