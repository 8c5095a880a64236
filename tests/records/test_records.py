"""What a record holds, and lines of records: appended whole, read one by one, joined, checked,
merged and exported.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import hashlib
import io
import json
import math
import os
import random
import re
import resource
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet
import pytest
import regex
from measured import append, measured, record_of, stored
from msgspec import structs
from workbench import CHECKOUT, NAIVE, SUPPORT, TEXT, cell_of, reading_of, run_of, unruly

from harness import report, table
from harness.common.errors import UNMEASURED, Refusal
from harness.measure import machine
from harness.records import __main__ as records
from harness.records.file import Record, read_records
from harness.records.lines import FILE_NAME, PACKED, RecordFile, read_lines
from harness.records.log import RunLog
from harness.records.schema import KINDS, Data, WholeBlock
from harness.runs.jobs import without_paths
from variants.contract import GPT2_PATTERN, WordCounts
from variants.naive import train

pytestmark = pytest.mark.xdist_group("records")  # the run that most look at is made once
FOLDER = CHECKOUT / "tests/fixtures/records"
RUN = "2026-11-21T11:20:00+00:00"


@pytest.fixture(scope="module")
def stored_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a run with trainers that end in every way."""
    folder = tmp_path_factory.mktemp("run with spaces")
    reading = reading_of(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BPE_HARNESS_CACHE", str(folder / "cache"))
        patch.setenv("PYTHONPATH", str(SUPPORT))
        patch.setenv("UNRULY_SECRET", "an-environment-variable")
        names = "takes_two raises raises_a_path segfaults is_unavailable returns_one_too_few prints"
        trainers = [NAIVE, *map(unruly, names.split())]
        run = run_of(folder, [cell_of(reading, trainer) for trainer in trainers])
        return stored(folder / FILE_NAME, run.records())


@pytest.fixture(scope="module")
def made(stored_run: Path) -> list[Record]:
    return read_records([stored_run])


def trained(records: list[Record], variant: str) -> Record:
    (found,) = (
        record for record in records if record["cell"] == "train" and record["variant"] == variant
    )
    return found


KEYS = """
run_key status reason variant params counting threads data pattern special_tokens tie_break vocab_size merges
merges_sha256 identity seconds cpu_seconds tallies instructions peak_rss_bytes limits merges_done stderr_tail
extrapolated interpreter block repeat started host environment cell witness disturbance"""
INNER_KEYS = {
    "data": "name sha256 bytes documents pre_tokens words",
    "seconds": "read count convert init max update other total",
    "witness": "wall_seconds cpu_seconds system_seconds import_cpu_seconds",
    "disturbance": "psi_cpu_seconds psi_memory_seconds psi_io_seconds steal_seconds",
}


# The content of a record.


def test_every_key_that_people_script_against_is_there(made: list[Record]) -> None:
    for record in made:
        if record["cell"] == "train":
            assert record.keys() >= {*KEYS.split()}
            assert record["seconds"].keys() == {*INNER_KEYS["seconds"].split()}
    naive = trained(made, "naive")
    for key, inner in INNER_KEYS.items():
        assert naive[key].keys() >= {*inner.split()}
    counted = made[0]
    for key in ("witness", "disturbance"):
        assert counted[key].keys() >= {*INNER_KEYS[key].split()}


def test_what_was_not_measured_is_null_and_a_mismatch_says_where_and_why(
    made: list[Record],
) -> None:
    failed, wrong = trained(made, "raises"), trained(made, "returns_one_too_few")
    assert (failed["status"], failed["merges"], failed["tallies"]) == ("error", None, None)
    assert (failed["seconds"]["total"], failed["seconds"]["update"]) == (None, None)
    assert trained(made, "takes_two")["seconds"]["update"] is None  # it has no meter to tell
    assert (wrong["status"], wrong["reason"]) == ("mismatch", wrong["identity"]["reason"])
    assert wrong["reason"].startswith("it ended after 9 merges, with pairs left that occur ")
    assert (wrong["identity"]["merge"], wrong["identity"]["got"]) == (10, None)


def test_a_record_names_no_place_host_or_variable_of_this_machine(
    made: list[Record], tmp_path: Path
) -> None:
    text = json.dumps([dict(record) for record in made], ensure_ascii=False)
    reasons = json.dumps([[record["reason"], record["stderr_tail"]] for record in made])
    assert "missing.bin" in reasons
    assert "in raises" in reasons
    secret, host = "an-environment-variable", os.uname().nodename
    for private in (str(CHECKOUT), str(tmp_path.parent), sys.prefix, host, secret):
        assert not re.search(rf"(?<!\w){re.escape(private)}(?!\w)", text)
    assert not re.search(r"(?<![\w.~>/])/(?:[\w.-]+/)+", reasons)


def test_the_digest_of_the_merges_can_be_made_by_anyone(made: list[Record]) -> None:
    words = WordCounts.from_items(
        (found.group().encode(), 1) for found in regex.finditer(GPT2_PATTERN, TEXT)
    )
    digest = hashlib.sha256()
    for left, right in train(words, 10):
        for token in (left, right):
            digest.update(struct.pack("<Q", len(token)))
            digest.update(token)
    assert trained(made, "naive")["merges_sha256"] == digest.hexdigest()


URL = "see https://example.org/a/b and and/or 1/2/3"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/elsewhere/deep/down/book.txt: gone", "book.txt: gone"),
        (f"{Path.cwd()}/variants/heap.py failed", "heap.py failed"),
        (URL, URL),
    ],
)
def test_places_become_names(tmp_path: Path, text: str, expected: str) -> None:
    assert without_paths(text, reading_of(tmp_path)) == expected


def test_the_commit_of_a_project_that_we_are_only_installed_in_is_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message=theirs"], check=True)
    monkeypatch.setattr(machine, "CHECKOUT", tmp_path)
    assert len(machine.checkout_state()["commit"]) == 12
    (tmp_path / "site-packages").mkdir()
    monkeypatch.setattr(machine, "CHECKOUT", tmp_path / "site-packages")
    assert machine.checkout_state() == {"commit": "unavailable", "dirty": "unavailable"}


# The file.


def test_records_are_read_back_in_order_and_what_they_share_is_stored_once(tmp_path: Path) -> None:
    store = RecordFile(tmp_path / "results")
    append(
        store, [measured("heap", 1.0), measured("heap", 2.0, block=1, stderr_tail="中文 \n\u2028")]
    )
    append(store, [])
    append(store, [measured("naive", 3.0, block=2)])
    found = read_records([tmp_path / "results"])
    assert [(record["variant"], record["block"], record["stderr_tail"]) for record in found] == [
        ("heap", 0, ""),
        ("heap", 1, "中文 \n\u2028"),
        ("naive", 2, ""),
    ]
    assert found[0]["environment"] is found[2]["environment"]
    kinds = [json.loads(line)["kind"] for line in store.path.read_bytes().splitlines()]
    of_a_cell = ["cell", "proof", "measurement"]
    assert kinds == ["run", *of_a_cell, "measurement", *of_a_cell]
    assert read_records([store.path, tmp_path / "results"])[3:] == found


def test_a_record_of_a_run_survives_the_file(made: list[Record], tmp_path: Path) -> None:
    assert {record["status"] for record in made} >= {"ok", "error", "killed", "skipped", "mismatch"}
    assert read_records([stored(tmp_path / "again.jsonl", made)]) == made


def test_a_block_is_whole_if_a_line_says_that_one_attempt_measured_it(tmp_path: Path) -> None:
    blocks = [(1, 0), (2, 0), (2, 1)]
    records = [measured("heap", 1.0, attempt=attempt, block=block) for attempt, block in blocks]
    path = stored(tmp_path / FILE_NAME, records)
    RecordFile(tmp_path).append_lines([WholeBlock(run=RUN, attempt=2)])
    assert [record["block_whole"] for record in read_records([path])] == [False, True, False]


def test_a_name_that_is_not_text_is_recorded_all_the_same(tmp_path: Path) -> None:
    heap = measured("heap", 1.0)
    cell = structs.replace(heap.cell, data=Data(name="caf\udce9"))
    RunLog(RecordFile(tmp_path), RUN).add(cell, heap.measurement)
    assert read_records([tmp_path])[0]["data"]["name"] == "caf\\udce9"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"kind": "measurement", "run": "2026', "malformed"),
        ("[1]", "Expected object, got array"),
        ("[" * 100_000, ""),
        (
            f'{{"kind": "run", "run": "{RUN}", "schema": 3}}',
            "not of schema 2, which this version reads",
        ),
        (f'{{"kind": "end", "run": "{RUN}"}}' * 2, "malformed"),
        (
            f'{{"kind": "measurement", "run": "{RUN}", "cell": 7, "started": "{RUN}", "status": "ok"}}',
            "its cell 7 has no line before it",
        ),
    ],
    ids=["torn", "list", "deep", "newer", "two in one", "without a cell"],
)
def test_a_line_that_is_broken_costs_only_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, complaint: str
) -> None:
    store = RecordFile(tmp_path)
    append(store, [measured("heap", 1.0)])
    with store.path.open("ab") as file:
        file.write(f"{line}\n\n".encode())
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
        ({"status": "splendid"}, "Invalid enum value 'splendid' - at `$.status`"),
        ({"status": "error"}, "reason is missing, but status is error"),
        ({"status": "killed", "reason": "x"}, "seconds.total must be missing if status is killed"),
        ({"variant": None}, "variant is missing, but role is train"),
        ({"seconds": {"update": 1.0, "other": 5.0, "total": 1.0}}, "its phases add up to 6.0"),
        ({"identity": {"kind": "wrong"}}, "identity.reason is missing, but identity.kind is wrong"),
        ({"identity": {"kind": "wrong", "reason": "x", "got": ["zz", ""]}}, "at `$.identity.got"),
        (
            {"extrapolated": {"total_seconds": 1.0}},
            "extrapolated.low_seconds or high_seconds is missing",
        ),
    ],
    ids=str,
)
def test_what_does_not_fit_the_schema_is_refused(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(msgspec.ValidationError) as refused:
        record_of({**measured("heap", 1.0), **change})
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"tallies": {"\ud800": 3}}, r"'\ud800' is not Unicode text"),
        ({"tallies": {"pairs": -1}}, "tallies[...]: expected int >= 0"),
        ({"tallies": {"pairs": 2**70}}, "tallies[...]: expected int <= 9223372036854775807"),
        ({"disturbance": {"steal_seconds": -0.5}}, "disturbance.steal_seconds: expected"),
        ({"witness": {"wall_seconds": math.inf}}, "witness.wall_seconds: expected float, got null"),
        ({"feeding": {"program": 7}}, "feeding.program: expected str, got int"),
    ],
    ids=str,
)
def test_a_record_that_does_not_fit_becomes_an_error(
    change: dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    log = RunLog(RecordFile(tmp_path), RUN)
    heap, naive = measured("heap", 1.0), measured("naive", 2.0)
    cell, measurement = heap.cell, heap.measurement
    if "feeding" in change:
        cell = structs.replace(cell, **change)
    else:
        measurement = structs.replace(measurement, **change)
    log.add(cell, measurement, heap.proof, (0, False))
    log.add(naive.cell, naive.measurement, naive.proof, (1, False))
    log.finish()
    invalid, sound = read_records([tmp_path])
    assert (invalid["variant"], invalid["status"]) == ("heap", "error")
    assert invalid["reason"].startswith(f"its figures are invalid: {complaint}")
    assert (invalid["seconds"]["total"], invalid["tallies"]) == (None, None)
    assert (sound["variant"], sound["status"]) == ("naive", "ok")
    assert check(tmp_path) == 0


@contextlib.contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """As on a full disk: what fits is written, then comes an error."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_on_a_full_disk_nothing_is_added_and_one_sentence_says_so(tmp_path: Path) -> None:
    store = RecordFile(tmp_path)
    append(store, [measured("heap", 1.0)])
    with (
        files_up_to(4096),
        pytest.raises(Refusal, match=r"^cannot write records to .* \(File too large\)") as refused,
    ):
        append(store, [measured("heap", 3.0, stderr_tail="x" * 8000)])
    assert refused.value.exit_code == UNMEASURED
    append(store, [measured("heap", 4.0)])
    assert [record["cpu_seconds"] for record in read_records([tmp_path])] == [1.0, 4.0]


WRITER = """
import sys; from pathlib import Path; from msgspec import structs; from measured import measured
from harness.records.lines import RecordFile; from harness.records.log import RunLog
log, heap = RunLog(RecordFile(Path(sys.argv[1])), sys.argv[2]), measured('heap', 1.0)
for number in range(100):
    log.add(heap.cell, structs.replace(heap.measurement, block=number, stderr_tail='x' * 20_000))
"""


def test_several_processes_lose_nothing_of_each_other(tmp_path: Path) -> None:
    runs = [f"2026-11-21T11:20:0{number}+00:00" for number in range(4)]
    environment = {**os.environ, "PYTHONPATH": f"{CHECKOUT}{os.pathsep}{SUPPORT}"}
    writers = []
    for run in runs:
        command = [sys.executable, "-c", WRITER, str(tmp_path), run]
        writers.append(subprocess.Popen(command, env=environment))
    assert [writer.wait() for writer in writers] == [0] * 4

    blocks: dict[str, list[int]] = {run: [] for run in runs}
    for record in read_records([tmp_path]):
        blocks[record["run_id"]].append(record["block"])
    assert blocks == {run: [*range(100)] for run in runs}


def test_what_is_not_a_file_of_records_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Refusal, match="python -m harness makes some"):
        list(read_lines(tmp_path / "nothing"))
    book = tmp_path / "book.txt"
    book.write_text("a line\n" * 80)
    assert table.main([str(book)]) == UNMEASURED
    lines = capsys.readouterr().err.splitlines()
    assert lines[2:3] == [
        f"{book}: skipped 78 more lines; python -m harness.records check names each"
    ]
    assert len(lines) == 4


# Broken lines, and those who read on.

LINES = [line for path in sorted(FOLDER.glob("*.jsonl")) for line in path.read_text().splitlines()]
VALUE = re.compile(r'(?<=":)(?:"[^"]*"|[\w.+-]+|\[[^][]*\]|\{[^{}]*\})')
ODD = ["null", "true", "-1", "0", "1.5", "1" + "0" * 400, "NaN", '""', '"x"', '"61"', r'"\ud800"']
ODD += [r'"a\nb"', "[]", "[1]", "[null]", '["x"]', "{}", '{"x":1}']
FORMS = ["", "--work", "--notes --phases", "--format csv", "--format markdown", "--profile"]
FORMS += ["--relative-to heap", "--sort total", "--pivot variant data"]
FORMS += ["--pivot data status --format markdown"]


def spoilt(line: str, draw: random.Random) -> str:
    """A line in which a value is replaced."""
    value = draw.choice(list(VALUE.finditer(line)))
    return line[: value.start()] + draw.choice(ODD) + line[value.end() :]


@pytest.mark.parametrize(
    "seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)
def test_no_broken_line_ends_a_table_or_a_report(seed: int, tmp_path: Path) -> None:
    draw, path, target = random.Random(seed), tmp_path / "r.jsonl", tmp_path / "shown.txt"
    compare = ["--compare", str(path), str(FOLDER / "forms.jsonl"), "--allow-different"]
    for _ in range(3 if seed == 0 else 60):
        lines = [spoilt(line, draw) if draw.random() < 0.15 else line for line in LINES]
        path.write_text("\n".join([*lines, ""]))
        codes = {table.main(compare)}
        for form in FORMS:
            codes.add(table.main([str(path), *form.split(), "--output", str(target)]))
        if seed:
            codes.add(report.main([str(path), "--output", str(target.with_suffix(".html"))]))
        assert codes <= {0, 2, 21, 22}


# The command.


def check(path: Path) -> int:
    return records.main(["check", str(path)])


def merge(*paths: Path, into: Path) -> int:
    return records.main(["merge", *map(str, paths), "--output", str(into)])


def test_check_names_every_broken_line_and_ends_with_22(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    heap = measured("heap", 1.0)
    parts = (heap.run, heap.cell, heap.proof, heap.measurement)
    *others, measurement = (msgspec.json.encode(line).decode() for line in parts)
    spoilt = measurement.replace('"status":"ok"', '"status":"fine"')
    later = measurement[:-1] + ',"new_key":1}'
    path = tmp_path / FILE_NAME
    path.write_text("\n".join([*others, spoilt, '{"kind": "ru', "", later, ""]))

    assert check(tmp_path) == 22
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "6 lines in 1 file, 2 of them broken"
    assert lines[1] == f"{path}, line 4: status: invalid enum value 'fine'"
    assert lines[2].startswith(f"{path}, line 5: ")
    advice = "run the same command to finish it"
    assert lines[3] == f"{path}: run 2026-11-21T11:20 was interrupted: {advice}"


def test_merge_doubles_nothing_and_loses_nothing(
    made: list[Record], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line with its keys in another order is the same line; a broken one is reported and
    skipped.
    """
    whole = stored(tmp_path / "whole.jsonl", made).read_text().splitlines()
    left, right = tmp_path / "left.jsonl", tmp_path / "deep" / "down" / FILE_NAME
    right.parent.mkdir(parents=True)
    left.write_text("\n".join(whole[:-3]) + "\n")
    turned = [json.dumps(dict(reversed(json.loads(line).items()))) for line in whole]
    right.write_text("\n".join([*turned, "broken", ""]))

    together = tmp_path / "together.jsonl"
    assert merge(left, tmp_path / "deep", into=together) == 0
    assert read_records([together]) == made
    printed = capsys.readouterr()
    assert f"{right}, line {len(whole) + 1}: skipped" in printed.err
    assert f"{together}: 0 records before, {len(made)} added" in printed.out
    before = together.read_bytes()
    assert merge(left, tmp_path / "deep", into=together) == 0
    assert together.read_bytes() == before

    # into a folder, and into one of the files themselves
    assert merge(together, together, into=tmp_path / "folder") == 0
    assert read_records([tmp_path / "folder"]) == made
    assert merge(left, together, into=left) == 0
    assert read_records([left]) == made


def test_merge_copies_each_line_as_it_is(tmp_path: Path) -> None:
    """Also keys that this version does not know, the order of keys, and spaces."""
    given, together = tmp_path / "given.jsonl", tmp_path / "together.jsonl"
    text = stored(given, [measured("heap", 1.0)]).read_text()
    given.write_text(text.replace('{"kind"', '{ "key of a later version": [1.50], "kind"'))
    assert merge(given, into=together) == 0
    assert together.read_bytes() == given.read_bytes()


def test_merge_keeps_the_environment_of_each_measurement(tmp_path: Path) -> None:
    """Of a run that was resumed on another machine and then on the first one again."""
    given, together = tmp_path / "given.jsonl", tmp_path / "together.jsonl"
    for block, cpu in enumerate("ABA"):
        record = measured("heap", 1.0, block=block, environment={"cpu": cpu})
        append(RecordFile(tmp_path, given.name), [record])
    assert merge(given, into=together) == merge(given, into=together) == 0
    for path in (given, together):
        assert [record["environment"]["cpu"] for record in read_records([path])] == ["A", "B", "A"]

    # The first two are there, under the environment of the second.
    started = tmp_path / "started.jsonl"
    started.write_bytes(b"".join(given.read_bytes().splitlines(keepends=True)[:6]))
    assert merge(given, into=started) == 0
    assert started.read_bytes() == given.read_bytes()


def test_merges_at_once_double_nothing(tmp_path: Path) -> None:
    runs = [f"2026-11-21T11:20:{second:02}+00:00" for second in range(60)]
    given = stored(tmp_path / "given.jsonl", [measured("heap", 1.0, run_id=run) for run in runs])
    command = [sys.executable, "-m", "harness.records", "merge"]
    command += [str(given), "-o", str(tmp_path / "all.jsonl")]
    merges = [subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.DEVNULL) for _ in range(3)]
    assert [process.wait() for process in merges] == [0, 0, 0]
    assert len(read_records([tmp_path / "all.jsonl"])) == len(runs)
    assert check(tmp_path / "all.jsonl") == 0


def test_a_doubled_measurement_is_named_and_counted_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stored(tmp_path / FILE_NAME, [measured("heap", 1.0)])
    path.write_bytes(path.read_bytes() * 3)
    assert check(path) == UNMEASURED
    advice = "python -m harness.records merge copies each once"
    assert capsys.readouterr().out.splitlines() == [
        "15 lines in 1 file, 2 of them broken",
        f"{path}, line 9: an earlier line is the same measurement; {advice}",
        f"{path}, line 14: an earlier line is the same measurement; {advice}",
    ]
    assert len(read_records([path])) == 1
    assert merge(path, into=tmp_path / "once.jsonl") == check(tmp_path / "once.jsonl") == 0


def test_check_names_one_line_of_a_file_that_holds_no_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book = tmp_path / "book.txt"
    book.write_text("a line\n" * 3203)
    assert check(book) == UNMEASURED
    assert capsys.readouterr().out.splitlines() == [
        "3,203 lines in 1 file, 3,203 of them broken",
        f"{book}, line 1: JSON is malformed: invalid character (byte 0)",
        f"{book}: none of its 3,203 lines is a record",
    ]


@pytest.mark.parametrize("kind", ["a named pipe", "a link"])
def test_records_are_not_added_to_what_is_not_a_file(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And nothing waits for it."""
    folder, elsewhere = tmp_path / "results", tmp_path / "diary.txt"
    folder.mkdir()
    elsewhere.write_text("dear diary\n")
    if kind == "a link":
        (folder / FILE_NAME).symlink_to(elsewhere)
    else:
        os.mkfifo(folder / FILE_NAME)
        assert table.main([str(folder)]) == UNMEASURED
        assert f"{FILE_NAME} (it is a named pipe)" in capsys.readouterr().err
    given = stored(tmp_path / "given.jsonl", [measured("heap", 1.0)])
    assert merge(given, into=folder) == UNMEASURED
    why = "it is a link" if kind == "a link" else "it is not a file"
    refused = (
        f"cannot write records to {folder / FILE_NAME} ({why}); pass another file with --output\n"
    )
    assert capsys.readouterr().err == refused
    assert elsewhere.read_text() == "dear diary\n"


def test_packed_records_are_read_like_plain_ones(
    made: list[Record], stored_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = tmp_path / PACKED
    packed.write_bytes(gzip.compress(stored_run.read_bytes(), mtime=0))
    assert read_records([packed]) == read_records([tmp_path]) == made
    assert check(tmp_path) == 0
    assert "in 1 file, none broken" in capsys.readouterr().out
    assert merge(packed, into=tmp_path) == 0
    assert read_records([tmp_path]) == made
    assert merge(packed, into=packed) == 2
    assert "pass a folder or a file that ends in .jsonl" in capsys.readouterr().err
    for content in (b"no gzip", packed.read_bytes()[:-20]):
        packed.write_bytes(content)
        assert check(tmp_path) == 22
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_exports_hold_every_value_in_its_column(made: list[Record], tmp_path: Path) -> None:
    stored(tmp_path / FILE_NAME, made)
    for name in ("runs.parquet", "runs.csv", "runs.json"):
        assert records.main(["export", str(tmp_path), "--output", str(tmp_path / "x" / name)]) == 0
    columns = pyarrow.parquet.read_table(tmp_path / "x" / "runs.parquet").to_pydict()
    lines = list(csv.DictReader(io.StringIO((tmp_path / "x" / "runs.csv").read_text())))
    exported = json.loads((tmp_path / "x" / "runs.json").read_text())
    assert exported == [dict(record) for record in made]
    assert len(lines) == len(made)
    assert list(lines[0]) == list(columns)
    assert not {"seconds", "disturbance", "witness", "identity"} & columns.keys()

    for number, (record, line) in enumerate(zip(made, lines, strict=True)):
        total = record["seconds"].get("total")
        assert columns["status"][number] == line["status"] == record["status"]
        assert columns["seconds.total"][number] == total
        assert line["seconds.total"] == ("" if total is None else str(total))
        version = record["environment"]["packages"]["regex"]
        assert columns["environment.packages.regex"][number] == version
        assert json.loads(columns["special_tokens"][number]) == record["special_tokens"]


def test_values_of_several_types_in_a_column_are_json_text() -> None:
    frame = records.frame_of(
        [{"params": {"a": value}, "n": n} for value, n in (("x", 1), (1, None), (True, 2))]
    )
    assert list(frame["params.a"]) == ['"x"', "1", "true"]
    assert str(frame["n"].dtype) == "Int64"


def test_every_key_has_a_meaning() -> None:
    _, parts = msgspec.json.schema_components(KINDS)
    described = 0
    for part, schema in parts.items():
        for name, key in schema["properties"].items():
            assert "description" in key or name == "kind", f"{part}.{name}"
            described += 1
    assert described > 100
