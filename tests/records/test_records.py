"""What a record holds, and lines of records: appended whole, read one by one, joined and exported.

What the command prints is in rows of fixtures/command_rows/records.toml.
"""

import csv
import gzip
import io
import itertools
import json
import os
import random
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet
import pytest
from exploring import seeds
from gating import new_repository
from measured import append, measured, stored
from msgspec import structs
from mutated import mutated_json
from rows import Row, each_row, rows_beside
from workbench import (
    CHECKOUT,
    NAIVE,
    SUPPORT,
    Call,
    cell_of,
    full_disk,
    reading_of,
    recorded_run,
    unruly,
)

from harness import report, table
from harness.common.errors import UNMEASURED, Refusal
from harness.measure import machine
from harness.records import __main__ as records
from harness.records.file import Joined, Record, RunLog, read_records
from harness.records.lines import FILE_NAME, RecordFile, decoded_line
from harness.records.schema import Data
from harness.runs.jobs import without_paths

pytestmark = pytest.mark.xdist_group("records")  # the run that most look at is made once
RUN = "2026-11-21T11:20:00+00:00"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Record]:
    """The records of a run with trainers that end in every way, by variant."""
    folder = tmp_path_factory.mktemp("run with spaces")
    reading = reading_of(folder)
    names = "takes_two raises raises_a_path segfaults is_unavailable returns_one_too_few"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BPE_HARNESS_CACHE", str(folder / "cache"))
        patch.setenv("PYTHONPATH", str(SUPPORT))
        patch.setenv("UNRULY_SECRET", "an-environment-variable")
        trainers = [NAIVE, *map(unruly, names.split())]
        cells = [cell_of(reading, trainer) for trainer in trainers]
        run = recorded_run(folder, cells, concurrent=True)
    path = stored(folder / FILE_NAME, run.records())
    return {record.cell.variant or "": record for record in read_records([path])}


# The content of a record


def test_every_key_that_people_script_against_is_there(made: dict[str, Record]) -> None:
    keys = Path(__file__).with_name("keys.txt").read_text().split()
    for variant in ("naive", "raises"):
        for key in keys:
            outer, _, inner = key.partition(".")
            value = made[variant][outer]
            assert not inner or value is None or inner in value, key


def test_what_was_not_measured_is_null_and_a_mismatch_says_where_and_why(
    made: dict[str, Record],
) -> None:
    failed, wrong = made["raises"], made["returns_one_too_few"]
    assert (failed["status"], failed["merges"], failed["tallies"]) == ("error", None, None)
    assert failed["seconds"]["total"] is failed["seconds"]["update"] is None
    assert made["takes_two"]["seconds"]["update"] is None  # it has no meter to tell
    assert (wrong["status"], wrong["reason"]) == ("mismatch", wrong["identity"]["reason"])
    assert wrong["reason"].startswith("it ended after 9 merges, with pairs left that occur ")
    assert (wrong["identity"]["merge"], wrong["identity"]["got"]) == (10, None)


def test_a_record_names_no_place_host_or_variable_of_this_machine(
    made: dict[str, Record], tmp_path: Path
) -> None:
    text = json.dumps([dict(record) for record in made.values()], ensure_ascii=False)
    reasons = str([(record["reason"], record["stderr_tail"]) for record in made.values()])
    assert "missing.bin" in reasons
    assert "in raises" in reasons
    secret, host = "an-environment-variable", os.uname().nodename
    for private in (CHECKOUT, tmp_path.parent, sys.prefix, Path.home(), host, secret):
        assert not re.search(rf"(?<!\w){re.escape(str(private))}(?!\w)", text)
    assert not re.search(r"(?<![\w.~>/])/(?:[\w.-]+/)+", reasons)

    url = "see https://example.org/a/b and and/or 1/2/3"
    places = f"/elsewhere/deep/down/book.txt: gone; {Path.cwd()}/variants/heap.py failed; {url}"
    assert without_paths(places, reading_of(tmp_path)) == f"book.txt: gone; heap.py failed; {url}"


def test_the_commit_of_a_project_that_we_are_only_installed_in_is_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "CHECKOUT", new_repository(tmp_path))
    assert len(machine.checkout_state()["commit"]) == 12
    (tmp_path / "site-packages").mkdir()
    monkeypatch.setattr(machine, "CHECKOUT", tmp_path / "site-packages")
    assert machine.checkout_state() == {"commit": "unavailable", "dirty": "unavailable"}


# The file


def test_records_are_read_back_in_order_and_what_they_share_is_stored_once(tmp_path: Path) -> None:
    store = RecordFile(tmp_path / "results")
    with pytest.raises(Refusal, match=f"{tmp_path / FILE_NAME} .No such file"):
        read_records([tmp_path])
    unusual = measured("heap", 2.0, block=1, stderr_tail="中文 \n\u2028")
    given = [measured("heap", 0.0), unusual, measured("naive", 3.0, block=2)]
    append(store, given[:2])
    append(store, given[2:])

    found = read_records([store.path.parent])
    for key in ("variant", "block", "stderr_tail"):
        assert [record[key] for record in found] == [record[key] for record in given]
    assert found[0]["environment"] is found[2]["environment"]
    kinds = [json.loads(line)["kind"] for line in store.path.read_bytes().splitlines()]
    of_a_cell = ["cell", "proof", "measurement"]
    assert kinds == ["run", *of_a_cell, "measurement", *of_a_cell]
    assert read_records([store.path, store.path.parent]) == found
    store.path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(store.path.read_bytes()))
    assert read_records([store.path.parent]) == found * 2


def test_a_record_says_which_attempt_made_it_and_what_was_ended(tmp_path: Path) -> None:
    """Counters come first, then the warm-up, then the other blocks."""
    store, heap = RecordFile(tmp_path), measured("heap", 1.0)
    warm_up = measured("heap", 2.0, warm_up=True).measurement
    counter = measured("", 3.0, variant=None, cell="count", identity=None)
    log = RunLog(store, RUN)
    log.add(heap.cell, heap.measurement, closes=(0, False))
    log.add(heap.cell, warm_up)
    assert [record["unfinished"] for record in read_records([tmp_path])] == [True, True]

    log = RunLog(store, RUN, lines=[line for line, _ in Joined().read_sound(store.path)])
    log.add(heap.cell, warm_up, closes=(0, True))
    log.add(counter.cell, counter.measurement)
    log.finish()
    found = read_records([tmp_path])
    keys = ("cell", "warm_up", "attempt", "block_whole")
    assert [tuple(record[key] for key in keys) for record in found] == [
        ("count", False, 2, False),
        ("train", True, 1, False),
        ("train", True, 2, True),
        ("train", False, 1, True),
    ]
    assert "unfinished" not in found[0]


def test_a_name_that_is_not_text_is_recorded_all_the_same(tmp_path: Path) -> None:
    heap = measured("heap", 1.0)
    cell = structs.replace(heap.cell, data=Data(name="caf\udce9"), params={"share": 1 / 3})
    measurement = structs.replace(heap.measurement, cpu_seconds=1 / 3)
    RunLog(RecordFile(tmp_path), RUN).add(cell, measurement)
    (found,) = read_records([tmp_path])
    assert found["data"]["name"] == "caf\\udce9"
    assert (found["params"], found["cpu_seconds"]) == ({"share": 1 / 3}, round(1 / 3, 12))


@each_row(__file__, "least_lines.toml")
def test_what_a_line_leaves_out_is_what_it_was_when_it_was_written(row: Row) -> None:
    content = row["line"].encode()
    line = decoded_line(content)
    assert not isinstance(line, str)
    assert {name: getattr(line, name) for name in row["left_out"]} == row["left_out"]
    assert msgspec.json.encode(line) == content


def test_broken_lines_cost_only_themselves(
    tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row.values[0] for row in rows_beside(__file__, "broken_lines.toml")]
    rows.append({"line": "[" * 100_000, "complaint": ""})
    store = RecordFile(tmp_path)
    append(store, [measured("heap", 1.0)])
    with store.path.open("a") as file:
        file.writelines(f"{row['line']}\n" for row in rows)
    append(store, [measured("naive", 2.0)])

    assert [record["variant"] for record in read_records([tmp_path])] == ["heap", "naive"]
    skipped = re.findall("line . *: skipped|skipped .* more lines", capsys.readouterr().err)
    rest = f"skipped {len(rows) - 2} more lines"
    assert skipped[-3:] == ["line 5: skipped", "line 6: skipped", rest]
    checked = call("records check", tmp_path)
    assert checked.code == UNMEASURED
    _, *complaints, _ = checked.out.splitlines()
    for number, (row, complaint) in enumerate(zip(rows, complaints, strict=True), 5):
        assert complaint.startswith(f"{store.path}, line {number}: {row['complaint']}")


@pytest.mark.parametrize(
    "row",
    [
        *rows_beside(__file__, "invalid_figures.toml"),
        {"measurement": {"tallies": {"\ud800": 3}}, "complaint": r"'\ud800' is not Unicode text"},
    ],
)
def test_a_record_that_does_not_fit_becomes_an_error(row: dict[str, Any], tmp_path: Path) -> None:
    log = RunLog(RecordFile(tmp_path), RUN)
    heap, naive = measured("heap", 1.0), measured("naive", 2.0)
    cell = structs.replace(heap.cell, **row.get("cell", {}))
    measurement = structs.replace(heap.measurement, **row.get("measurement", {}))
    log.add(cell, measurement, heap.proof, (0, False))
    log.add(naive.cell, naive.measurement, naive.proof, (1, False))
    log.finish()

    invalid, sound = read_records([tmp_path])
    assert (invalid["variant"], invalid["status"]) == ("heap", "error")
    assert invalid["reason"].startswith(f"its figures are invalid: {row['complaint']}")
    assert invalid["seconds"]["total"] is invalid["tallies"] is None
    assert (sound["variant"], sound["status"]) == ("naive", "ok")
    assert records.main(["check", str(tmp_path)]) == 0


def test_on_a_full_disk_nothing_is_added_and_one_sentence_says_so(tmp_path: Path) -> None:
    store = RecordFile(tmp_path)
    append(store, [measured("heap", 1.0)])
    before = store.path.read_bytes()
    sentence = r"^cannot write records to .* \(File too large\)"
    with full_disk(4096), pytest.raises(Refusal, match=sentence) as full:  # what fits is written
        append(store, [measured("heap", 3.0, stderr_tail="x" * 8000)])

    assert full.value.exit_code == UNMEASURED
    assert store.path.read_bytes() == before
    append(store, [measured("heap", 4.0)])
    assert [record["cpu_seconds"] for record in read_records([tmp_path])] == [1.0, 4.0]


def test_a_doubled_measurement_is_named_and_counted_once(tmp_path: Path) -> None:
    path = stored(tmp_path / FILE_NAME, [measured("heap", 1.0)])
    path.write_bytes(path.read_bytes() * 3)
    assert records.main(["check", str(path)]) == UNMEASURED
    assert len(read_records([path])) == 1


def test_merges_at_once_double_nothing(tmp_path: Path) -> None:
    """Nor do they, or runs that append at the same time, lose anything of each other."""
    heaps = [measured("heap", 1.0, block=block, stderr_tail="x" * 9000) for block in range(50)]
    given = stored(tmp_path / "given.jsonl", heaps)
    runs = [f"2026-11-21T11:20:0{number}+00:00" for number in range(1, 5)]
    target = tmp_path / FILE_NAME

    def write(run: str) -> None:
        log = RunLog(RecordFile(tmp_path), run)
        for heap in heaps:
            log.add(heap.cell, heap.measurement)

    with ThreadPoolExecutor(10) as pool:
        merging = pool.map(lambda _: records.merge_files([given], target), range(6))
        list(itertools.chain(pool.map(write, runs), merging))
    found = [(record["run_id"], record["block"]) for record in read_records([target])]
    assert sorted(found) == list(itertools.product([RUN, *runs], range(50)))
    assert records.main(["check", str(target)]) == 0


@pytest.mark.parametrize("kind", ["a named pipe", "a link"])
def test_records_are_not_added_to_what_is_not_a_file(kind: str, tmp_path: Path, call: Call) -> None:
    """And nothing waits for it."""
    path, elsewhere = tmp_path / "results" / FILE_NAME, tmp_path / "diary.txt"
    path.parent.mkdir()
    elsewhere.write_text("dear diary\n")
    why = "it is not a file"
    if kind == "a link":
        why = "it is a link"
        path.symlink_to(elsewhere)
    else:
        os.mkfifo(path)
        assert f"{FILE_NAME} (it is a named pipe)" in call("table", path.parent).err

    given = stored(tmp_path / "given.jsonl", [measured("heap", 1.0)])
    refused = f"cannot write records to {path} ({why}); pass another file with --output\n"
    assert call("records merge --output", path.parent, given) == (UNMEASURED, "", refused)
    assert elsewhere.read_text() == "dear diary\n"


def test_exports_hold_every_value_in_its_column(made: dict[str, Record], tmp_path: Path) -> None:
    statuses = {record.status for record in made.values()}
    assert statuses >= {"ok", "error", "killed", "skipped", "mismatch"}
    stored(tmp_path / FILE_NAME, made.values())
    for name in ("runs.parquet", "runs.csv", "runs.json"):
        assert records.main(["export", str(tmp_path), "--output", str(tmp_path / name)]) == 0
    exported = json.loads((tmp_path / "runs.json").read_text())
    assert exported == [dict(record) for record in made.values()]

    rows = pyarrow.parquet.read_table(tmp_path / "runs.parquet").to_pylist()
    assert not {"seconds", "disturbance", "witness", "identity"} & rows[0].keys()
    lines = csv.DictReader(io.StringIO((tmp_path / "runs.csv").read_text()))
    for record, row, line in zip(exported, rows, lines, strict=True):
        assert line == {key: "" if value is None else str(value) for key, value in row.items()}
        assert row["status"] == record["status"]
        assert row["seconds.total"] == record["seconds"]["total"]
        assert row["environment.packages.regex"] == record["environment"]["packages"]["regex"]
        assert json.loads(row["special_tokens"]) == record["special_tokens"]


# Lines with a value that is odd or missing, before those who read on

FOLDER = CHECKOUT / "tests/fixtures/records"
LINES = [line for path in sorted(FOLDER.glob("*.jsonl")) for line in path.read_text().splitlines()]
FORMS = """
--work
--notes --phases
--format csv
--format markdown
--profile
--relative-to heap
--sort total
--pivot variant data
--pivot data status --format markdown
"""


@pytest.mark.parametrize("seed", seeds(3))
def test_no_broken_line_ends_a_table_or_a_report(seed: int, tmp_path: Path) -> None:
    draw, path, target = random.Random(seed), tmp_path / "r.jsonl", tmp_path / "shown.txt"
    compare = ["--compare", str(path), str(FOLDER / "forms.jsonl")]
    for _ in range(20 if seed else 1):
        lines = [mutated_json(line, draw) if draw.random() < 0.15 else line for line in LINES]
        path.write_text("\n".join([*lines, ""]))
        codes = {table.main(compare)}
        for form in FORMS.splitlines():
            codes.add(table.main([str(path), *form.split(), "--output", str(target)]))
        if seed:
            codes.add(report.main([str(path), "--output", str(target.with_suffix(".html"))]))
        assert codes <= {0, 2, 21, 22}
