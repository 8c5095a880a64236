"""Lines of records: appended whole, read one by one, joined, checked, merged and exported."""

from __future__ import annotations

import contextlib
import copy
import csv
import gzip
import io
import json
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet
import pytest
from measured import append, measured, stored
from workbench import CHECKOUT, NAIVE, SUPPORT, cell_of, reading_of, run_of, unruly

from harness import report, table
from harness.common.errors import UNMEASURED, Refusal
from harness.records import __main__ as records
from harness.records.file import FILE_NAME, PACKED, RecordFile, Splitter, read_lines, read_records
from harness.records.schema import KINDS, Block

pytestmark = pytest.mark.xdist_group("records")  # the run that most look at is made once
Record = dict[str, Any]
FOLDER = CHECKOUT / "tests/fixtures/records"
RUN = "2026-11-21T11:20:00+00:00"


def texts_of(given: list[Record]) -> list[str]:
    splitter = Splitter()
    return [msgspec.json.encode(line).decode() for record in given for line in splitter.lines(record)]


def same(left: list[Record], right: list[Record]) -> bool:
    """Whether records say the same; null is the same as a missing key."""

    def held(value: Any) -> Any:
        if isinstance(value, dict):
            parts = {
                name: held(part) for name, part in value.items() if name not in ("block_whole", "unfinished", "schema")
            }
            return {name: part for name, part in parts.items() if part not in (None, {}, [], "", False)}
        if isinstance(value, float):
            return round(value, 9)
        return [held(part) for part in value] if isinstance(value, list) else value

    return [held(record) for record in left] == [held(record) for record in right]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """Records of every kind of end, as a run stores them."""
    folder = tmp_path_factory.mktemp("made")
    reading = reading_of(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BPE_HARNESS_CACHE", str(folder / "cache"))
        patch.setenv("PYTHONPATH", str(SUPPORT))
        trainers = [NAIVE, *map(unruly, ["takes_two", "raises", "segfaults", "is_unavailable", "returns_one_too_few"])]
        run = run_of(folder, [cell_of(reading, trainer) for trainer in trainers])
        return read_records([stored(folder / FILE_NAME, run.records())])


# The file.


def test_records_are_read_back_in_order_and_what_they_share_is_stored_once(tmp_path: Path) -> None:
    store = RecordFile(tmp_path / "results")
    texts = measured("heap", 2.0, block=1, stderr_tail="中文 \n\u2028")
    append(store, [measured("heap", 1.0), texts])
    append(store, [])
    append(store, [measured("naive", 3.0, block=2)])
    found = read_records([tmp_path / "results"])
    assert [(record["variant"], record["block"], record["stderr_tail"]) for record in found] == [
        ("heap", 0, ""),
        ("heap", 1, "中文 \n\u2028"),
        ("naive", 2, ""),
    ]
    assert found[0]["environment"] is found[2]["environment"]
    kinds = [json.loads(line)["kind"] for line in store.path.read_text().strip().split("\n")]
    assert kinds == ["run", "cell", "proof", "measurement", "measurement", "cell", "proof", "measurement"]
    assert read_records([store.path, tmp_path / "results"])[3:] == found


def test_a_record_of_a_run_survives_the_file(made: list[Record], tmp_path: Path) -> None:
    assert {record["status"] for record in made} >= {"ok", "error", "killed", "skipped", "mismatch"}
    assert read_records([stored(tmp_path / "again.jsonl", made)]) == [{**one, "block_whole": False} for one in made]


def test_a_block_is_whole_if_a_line_says_that_one_attempt_measured_it(tmp_path: Path) -> None:
    blocks = [(1, 0), (2, 0), (2, 1)]
    path = stored(tmp_path / FILE_NAME, [measured("heap", 1.0, attempt=tries, block=block) for tries, block in blocks])
    RecordFile(tmp_path).append_lines([Block(run=RUN, attempt=2)])
    assert [record["block_whole"] for record in read_records([path])] == [False, True, False]


def test_a_name_that_is_not_text_is_recorded_all_the_same(tmp_path: Path) -> None:
    stored(tmp_path / FILE_NAME, [{**measured("heap", 1.0), "data": {"name": "caf\udce9"}}])
    assert read_records([tmp_path])[0]["data"]["name"] == "caf\\udce9"


BROKEN = {
    "torn": (b'{"kind": "measurement", "run": "2026', "malformed"),
    "list": (b"[1]", "Expected object, got array"),
    "no text": (b"\xff\xfe", "malformed"),
    "no kind": (b'{"schema": 2}', "missing required field kind"),
    "newer": (json.dumps({"kind": "run", "run": RUN, "schema": 3}).encode(), "schema: invalid enum value 3"),
    "deep": (b"[" * 100_000, ""),
    "two in one": (json.dumps({"kind": "end", "run": RUN}).encode() * 2, "malformed"),
    "without a cell": (
        json.dumps({"kind": "measurement", "run": RUN, "cell": 7, "started": RUN, "status": "ok"}).encode(),
        "its cell 7 has no line before it",
    ),
}


@pytest.mark.parametrize(("line", "complaint"), BROKEN.values(), ids=BROKEN.keys())
def test_a_line_that_is_broken_costs_only_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: bytes, complaint: str
) -> None:
    store = RecordFile(tmp_path)
    append(store, [measured("heap", 1.0)])
    with store.path.open("ab") as file:
        file.write(line + b"\n\n")
    append(store, [measured("naive", 2.0)])
    assert [record["variant"] for record in read_records([tmp_path])] == ["heap", "naive"]
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert complaint in printed
    assert printed.startswith(f"{store.path}, line 5: skipped")


def test_a_line_cut_short_by_a_crash_does_not_swallow_the_next_record(tmp_path: Path) -> None:
    store = RecordFile(tmp_path)
    store.path.write_bytes(b'{"kind": "run", "ru')
    append(store, [measured("heap", 1.0)])
    append(store, [measured("heap", 2.0)])
    assert [record["cpu_seconds"] for record in read_records([tmp_path])] == [1.0, 2.0]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"started": None}, "Object missing required field `started`"),
        ({"started": "2026-01-01T00:00:00"}, "started"),
        ({"status": "splendid"}, "Invalid enum value 'splendid' - at `$.status`"),
        ({"status": "error"}, "reason is missing, but status is error"),
        ({"status": "killed", "reason": "x"}, "seconds.total must be missing if status is killed"),
        ({"variant": None}, "variant is missing, but role is train"),
        ({"vocab_size": "1000"}, "got `str` - at `$.vocab_size`"),
        ({"merges": True}, "got `bool` - at `$.merges`"),
        ({"merges": -1}, "Expected `int` >= 0"),
        ({"merges": 2**63}, "at `$.merges`"),
        ({"merges_sha256": "1b97242d"}, "at `$.merges_sha256`"),
        ({"cpu_seconds": "1"}, "at `$.cpu_seconds`"),
        ({"seconds": []}, "Expected `object`, got `array` - at `$.seconds`"),
        ({"seconds": {"update": 1.0, "other": 5.0, "total": 1.0}}, "its phases add up to 6.0"),
        ({"identity": {"kind": "right"}}, "at `$.identity.kind`"),
        ({"identity": {"kind": "wrong"}}, "identity.reason is missing, but identity.kind is wrong"),
        ({"identity": {"kind": "wrong", "reason": "x", "got": ["zz", ""]}}, "at `$.identity.got"),
        ({"tallies": {"pair_updates": 1.5}}, "at `$.tallies"),
        ({"environment": {"memory_bytes": "much"}}, "at `$.memory_bytes`"),
        ({"instructions": {"path": "x", "tool": "y"}}, "missing required field `count`"),
        ({"extrapolated": {"total_seconds": 1.0}}, "extrapolated.low_seconds is missing"),
        ({"curve": [{"merges": 1, "seconds": {"update": None}, "total": 1.0}]}, None),
        ({"curve": [{"merges": 1}]}, "at `$.curve[0]`"),
        ({"invented": 1}, None),
    ],
    ids=str,
)
def test_what_does_not_fit_the_schema_is_refused(change: Record, complaint: str | None) -> None:
    changed = {**measured("heap", 1.0), **change}
    if complaint is None:
        assert Splitter().lines(changed)
    else:
        with pytest.raises(msgspec.ValidationError) as refused:
            Splitter().lines(changed)
        assert complaint in str(refused.value)


@contextlib.contextmanager
def small_files_only() -> Iterator[None]:
    """No file can grow beyond 4 KiB. So a full disk looks to a writer: what fits is written, then comes an error.

    Only round the writing: it holds for pytest's own output as well.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # it would be kept cut short
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = bytecode


def test_on_a_full_disk_nothing_is_added_and_one_sentence_says_so(tmp_path: Path) -> None:
    store = RecordFile(tmp_path)
    append(store, [measured("heap", 1.0)])
    with (
        small_files_only(),
        pytest.raises(Refusal, match=r"^cannot write records to .* \(File too large\); choose another") as refused,
    ):
        append(store, [measured("heap", 2.0), measured("heap", 3.0, stderr_tail="x" * 8000)])
    assert refused.value.exit_code == UNMEASURED
    append(store, [measured("heap", 4.0)])
    assert [record["cpu_seconds"] for record in read_records([tmp_path])] == [1.0, 4.0]


def test_a_results_folder_that_was_removed_is_made_again(tmp_path: Path) -> None:
    store = RecordFile(tmp_path / "results")
    store.path.unlink()
    store.path.parent.rmdir()
    append(store, [measured("heap", 1.0)])
    assert len(read_records([tmp_path / "results"])) == 1


def test_several_processes_lose_nothing_of_each_other(tmp_path: Path) -> None:
    program = (
        "import json, sys; from pathlib import Path; from harness.records.file import RecordFile, RunLog\n"
        "log, whole = RunLog(RecordFile(Path(sys.argv[1])), sys.argv[2]), json.loads(sys.argv[3])\n"
        "for number in range(100): log.add({**whole, 'block': number // 2, 'stderr_tail': 'x' * 20_000})"
    )
    runs = [f"2026-11-21T11:20:0{number}+00:00" for number in range(4)]
    arguments = [sys.executable, "-c", program, str(tmp_path)]
    whole = json.dumps(measured("heap", 1.0))
    writers = [subprocess.Popen([*arguments, run, whole], cwd=CHECKOUT) for run in runs]
    assert [writer.wait() for writer in writers] == [0] * 4
    found = read_records([tmp_path])
    for run in runs:
        assert [each["block"] for each in found if each["run_id"] == run] == [n for n in range(50) for _ in "ab"]


def test_what_is_not_a_file_of_records_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="python -m harness makes some"):
        list(read_lines(tmp_path / "nothing"))


# Broken lines, and those who read on.

LINES = [json.loads(line) for path in sorted(FOLDER.glob("*.jsonl")) for line in path.read_text().splitlines()]
ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 1.5, 10**400, float("nan"), "", "x", "\ud800", "a\nb", [], [1], [None], ["x"], {}, {"x": 1}),
    "61",
)
FORMS: tuple[list[str], ...] = (
    *([], ["--work"], ["--notes", "--phases"], ["--format", "csv"], ["--format", "markdown"]),
    *(["--relative-to", "heap"], ["--pivot", "variant", "data"], ["--sort", "total"]),
    ["--pivot", "data", "status", "--format", "markdown"],
)


def places_in(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a line that holds a value."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        yield (*place, name)
        yield from places_in(part, (*place, name))


def spoilt(line: Record, draw: random.Random) -> Record:
    """A line in which something is replaced or missing."""
    line = copy.deepcopy(line)
    *path, last = draw.choice(list(places_in(line)))
    around: Any = line
    for name in path:
        around = around[name]
    if draw.random() < 0.2:
        del around[last]
    else:
        around[last] = draw.choice(ODD)
    return line


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_no_broken_line_ends_a_table_or_a_report(seed: int, tmp_path: Path) -> None:
    draw, path, target = random.Random(seed), tmp_path / "r.jsonl", tmp_path / "shown.txt"
    for _ in range(3 if seed == 0 else 60):
        lines = [spoilt(line, draw) if draw.random() < 0.15 else line for line in LINES]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        for form in FORMS:
            assert table.main([str(path), *form, "--output", str(target)]) in (0, 2, 21, 22), form
        assert table.main(["--compare", str(path), str(FOLDER / "forms.jsonl"), "--unlike"]) in (0, 2, 21, 22)
        if seed:
            assert report.main([str(path), "--output", str(target.with_suffix(".html"))]) in (0, 2, 21, 22)


# The command.


def test_check_names_every_broken_line_and_ends_with_22(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, cell, proof, measurement = texts_of([measured("heap", 1.0)])
    path = tmp_path / FILE_NAME
    spoilt = measurement.replace('"status":"ok"', '"status":"fine"')
    path.write_text("\n".join([run, cell, proof, spoilt, '{"kind": "ru', "", measurement[:-1] + ',"new_key":1}', ""]))
    assert records.main(["check", str(tmp_path)]) == 22
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{path}, line 4: status: invalid enum value 'fine'"
    assert lines[1].startswith(f"{path}, line 5: ")
    assert lines[2] == f"{path}: run 2026-11-21T11:20 was interrupted: run the same command to finish it"
    assert lines[3] == "6 lines in 1 file, 2 of them broken"


def test_merge_doubles_nothing_and_loses_nothing(
    made: list[Record], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line with its keys in another order is the same line; a broken one is reported and skipped."""
    whole = stored(tmp_path / "whole.jsonl", made).read_text().splitlines()
    left, right = tmp_path / "left.jsonl", tmp_path / "deep" / "down" / FILE_NAME
    right.parent.mkdir(parents=True)
    left.write_text("\n".join(whole[:-3]) + "\n")
    turned = [json.dumps(dict(reversed(json.loads(line).items()))) for line in whole]
    right.write_text("\n".join([*turned, "broken", ""]))
    together = tmp_path / "together.jsonl"
    command = ["merge", str(left), str(tmp_path / "deep"), "--output", str(together)]
    assert records.main(command) == 0
    assert read_records([together]) == read_records([tmp_path / "whole.jsonl"])
    printed = capsys.readouterr()
    assert f"{right}, line {len(whole) + 1}: skipped" in printed.err
    assert f"{together}: 0 records before, {len(made)} added" in printed.out
    before = together.read_bytes()
    assert records.main(command) == 0
    assert together.read_bytes() == before
    assert records.main(["merge", str(together), str(together), "-o", str(tmp_path / "folder")]) == 0
    assert read_records([tmp_path / "folder"]) == read_records([together])
    assert records.main(["merge", str(left), str(together), "-o", str(left)]) == 0
    assert read_records([left]) == read_records([together])


def test_packed_records_are_read_like_plain_ones(
    made: list[Record], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = tmp_path / "kept" / PACKED
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress("\n".join(texts_of(made[:3])).encode(), mtime=0))
    assert same(read_records([packed]), made[:3])
    append(RecordFile(packed.parent), made[3:])
    assert same(read_records([packed.parent]), made)
    assert records.main(["check", str(tmp_path)]) == 0
    assert "in 2 files, none broken" in capsys.readouterr().out
    assert records.main(["merge", str(packed), "--output", str(packed.parent)]) == 0
    assert same(read_records([packed.parent]), made)
    assert records.main(["merge", str(packed), "--output", str(packed)]) == 2
    assert "pass a folder or a file that ends in .jsonl" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"no gzip", gzip.compress(b'{"schema": 2}\n' * 99, mtime=0)[:-20]])
def test_a_broken_pack_of_records_is_a_sentence(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / PACKED).write_bytes(content)
    assert records.main(["check", str(tmp_path)]) == 22
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_exports_hold_every_value_in_its_column(made: list[Record], tmp_path: Path) -> None:
    stored(tmp_path / FILE_NAME, made)
    for name in ("runs.parquet", "runs.csv", "runs.json"):
        assert records.main(["export", str(tmp_path), "--output", str(tmp_path / "exports" / name)]) == 0
    columns = pyarrow.parquet.read_table(tmp_path / "exports" / "runs.parquet").to_pydict()
    lines = list(csv.DictReader(io.StringIO((tmp_path / "exports" / "runs.csv").read_text())))
    assert same(json.loads((tmp_path / "exports" / "runs.json").read_text()), made)
    assert len(lines) == len(made)
    assert list(lines[0]) == list(columns)
    for number, record in enumerate(made):
        total = record["seconds"].get("total")
        assert columns["status"][number] == lines[number]["status"] == record["status"]
        assert columns["seconds.total"][number] == total
        assert lines[number]["seconds.total"] == ("" if total is None else str(total))
        assert columns["environment.packages.regex"][number] == record["environment"]["packages"]["regex"]
        for name in ("special_tokens", "curve"):
            value = columns[name][number]
            assert (None if value is None else json.loads(value)) == record[name]
    assert not {"seconds", "disturbance", "witness", "identity"} & columns.keys()


def test_values_of_several_types_in_a_column_are_json_text() -> None:
    frame = records.frame_of([{"params": {"a": value}, "n": n} for value, n in (("x", 1), (1, None), (True, 2))])
    assert list(frame["params.a"]) == ['"x"', "1", "true"]
    assert str(frame["n"].dtype) == "Int64"


def test_an_absent_library_is_answered_with_the_command_that_installs_it(
    made: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    stored(tmp_path / FILE_NAME, made)
    assert records.main(["export", str(tmp_path), "-o", str(tmp_path / "x.parquet")]) == 22
    assert "pip install -e '.[data]'" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_every_key_has_a_meaning() -> None:
    _, parts = msgspec.json.schema_components(KINDS)
    inner = {"Point", "Environment"}
    keys = {
        (part, name): key
        for part, described in parts.items()
        if part not in inner
        for name, key in described["properties"].items()
    }
    assert len(keys) > 100
    assert [key for key, described in keys.items() if "description" not in described and key[1] != "kind"] == []
