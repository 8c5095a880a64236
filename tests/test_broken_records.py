"""Lines of records that are broken in any way cost themselves and nothing else, and many records cost little."""

from __future__ import annotations

import copy
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from measured import measured
from workbench import CHECKOUT

from harness import records, report, table
from harness.common.errors import UNMEASURED, Refusal
from harness.results.chosen import IN_NO_TABLE
from harness.results.frame import frame_of
from harness.results.legend import Legend
from harness.results.page.page import page
from harness.results.rows import rows
from harness.results.tasks import sheets_of
from harness.runs.record import LONGEST_LINE, Line, Reader, RecordFile, lines_of, read_json, read_records
from harness.runs.record_keys import KEYS
from harness.table import csv, markdown

Record = dict[str, Any]
FOLDER = Path(__file__).parent / "records"
WHOLE = [record for name in ("forms", "sweep", "counting") for record in read_records([FOLDER / f"{name}.jsonl"])]
ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    10**400,
    float("nan"),
    "",
    "x",
    "\ud800",
    "a\nb",
    [],
    [1],
    [None],
    ["x"],
    {},
    {"x": 1},
    "61",
)
FORMS: tuple[list[str], ...] = (
    *([], ["--work"], ["--series", "--runs"], ["--format", "csv"], ["--format", "html"], ["--format", "markdown"]),
    *(["--relative-to", "heap"], ["--pivot", "variant", "data"], ["--sort", "total"]),
    ["--pivot", "data", "status", "--format", "csv"],
)


def places_in(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a record at which something stands."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        yield (*place, name)
        yield from places_in(part, (*place, name))


def broken(draw: random.Random) -> Record:
    """A whole record in which one thing or two are something else, or are not there."""
    record = copy.deepcopy(draw.choice(WHOLE))
    for _ in range(draw.choice((1, 1, 2))):
        *path, last = draw.choice(list(places_in(record)))
        around: Any = record
        for name in path:
            around = around[name]
        if draw.random() < 0.2:
            del around[last]
        else:
            around[last] = draw.choice(ODD)
    return record


def write(path: Path, records: list[Record]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def shown_in_every_form(path: str, target: Path, reports: bool) -> None:
    for form in FORMS:
        assert table.main([path, *form, "--output", str(target)]) in (0, 2, 21, 22), form
    assert table.main(["--compare", path, str(FOLDER / "forms.jsonl"), "--unlike"]) in (0, 2, 21, 22)
    if reports:
        assert report.main([path, "--output", str(target.with_suffix(".html"))]) in (0, 2, 21, 22)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"vocab_size": "1000"}, "vocab_size is '1000', not a whole number"),
        (
            {"seconds": {"update": 1.0, "total": "x"}},
            "seconds is {'update': 1.0, 'total': 'x'}, not a mapping of seconds by phase",
        ),
        ({"peak_rss_bytes": 10**400}, "peak_rss_bytes is 1"),
        ({"instructions": {}}, "instructions.count is missing"),
        ({"first_divergence": {"merge": 1, "got": ["zz", ""]}}, "first_divergence.got is ['zz', '']"),
        ({"environment": {"memory_bytes": "much"}}, "environment.memory_bytes is 'much'"),
        ({"data": None}, "data is null"),
        ({"status": "fine"}, "status is 'fine'"),
        ({"run_key": None}, "run_key is null"),
    ],
    ids=str,
)
def test_a_broken_record_is_told_by_file_and_line_and_skipped(
    change: Record, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "r.jsonl", [measured("heap", 1.0), {**measured("naive", 2.0), **change}])
    assert table.main([path]) == 0
    said = capsys.readouterr()
    assert "naive" not in said.out
    assert "heap" in said.out
    assert said.err.startswith(f"{path}, line 2: skipped, {told}")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_no_broken_line_ends_a_table_or_a_report(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    for number in range(2 if seed == 0 else 60):
        records = [broken(draw) for _ in range(60 if number % 2 == 0 else 2)]
        path = write(tmp_path / "r.jsonl", records)
        shown_in_every_form(path, tmp_path / "shown", reports=seed > 0)


def line_of(record: Record) -> bytes:
    return json.dumps(record).encode() + b"\n"


def test_the_check_knows_every_key_at_once_or_beside_a_sound_record() -> None:
    """What a record shares with a sound one is not looked at again, and what is only equal to it is."""
    draw = random.Random(5)
    for _ in range(200):
        line, reader = line_of(broken(draw)), Reader(Path("of.jsonl"))
        reader.line(1, line_of(draw.choice(WHOLE)))
        alone = Reader(Path("of.jsonl")).line(2, line)
        assert reader.line(2, line) == alone
        assert alone.record is not None or alone.complaints
    first, reader = measured("heap", 1.0, threads=1), Reader(Path("of.jsonl"))
    reader.line(1, line_of(first))
    assert reader.line(2, line_of({**first, "threads": True})).complaints == (
        "threads is True, not a whole number, 0 or more",
    )
    assert {name.partition(".")[0] for name in KEYS} >= first.keys() - {"params"}


def test_what_two_lines_share_is_kept_once_and_only_if_it_is_exactly_that(tmp_path: Path) -> None:
    first = measured("heap", 1.0, params={"push": 1})
    path = Path(write(tmp_path / "r.jsonl", [first, first, {**first, "params": {"push": True}}]))
    one, two, three = (line.record for line in lines_of(path))
    assert one is not None
    assert two is not None
    assert three is not None
    assert two["environment"] is one["environment"]
    assert three["params"]["push"] is True


def calls_of(work: Any) -> int:
    """How many calls a piece of work makes: the same on every machine."""
    calls = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def on_a_page(number: int) -> int:
    records = [measured("heap", 1.0, params={"n": n}, vocab_size=300 + n) for n in range(number)]
    page({"": records}, "")
    return calls_of(lambda: page({"": records}, ""))


def test_the_words_around_a_table_grow_as_its_rows_do() -> None:
    def words(number: int) -> int:
        shown = rows([measured("heap", 1.0, params={"n": n}, data=f"corpus {n % 7}", size=n) for n in range(number)])

        def said() -> None:
            legend = Legend(shown)
            legend.notes()
            legend.caption()
            legend.labels()

        return calls_of(said)

    assert words(400) < 5 * words(100)
    assert on_a_page(80) < 5 * on_a_page(20)
    assert len(set(Legend(rows([measured("heap", 1.0, params={"n": n}) for n in range(50)])).short_labels())) == 50


@pytest.mark.slow
def test_two_hundred_thousand_records_of_one_cell_take_a_bounded_part_of_memory(tmp_path: Path) -> None:
    """Each record is kept once, its names with those of the others: 20,000 stand for them here."""
    number = 20_000
    one = {**measured("heap", 1.0), "environment": {"cpu": "x" * 2000}, "curve": [{"merges": 1}] * 20}
    with (tmp_path / "r.jsonl").open("w") as file:
        for block in range(number):
            file.write(json.dumps({**one, "block": block, "cpu_seconds": 1.0 + block}) + "\n")
    code = (
        "import resource, sys; from harness.table import main; main(['--columns', 'variant,total', sys.argv[1]]);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    empty, full = tmp_path / "one.jsonl", tmp_path / "r.jsonl"
    empty.write_text(json.dumps(one) + "\n")
    peaks = []
    for path in (empty, full):
        ended = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
        peaks.append(1024 * int(ended.stdout.split()[-1]))
    assert (peaks[1] - peaks[0]) / number < 5000, "more than 1 GB for 200,000 records"


def spelled(line: Line) -> str:
    return json.dumps([line.record, line.complaints])


def lines_alike_and_broken() -> list[str]:
    """A record, and lines that begin or end as it does."""
    whole = next(record for record in WHOLE if record.get("tallies") and record.get("environment"))
    texts = [json.dumps(record) for record in (whole, {**whole, "block": 7}, {**whole, "tallies": {"x": 1}})]
    end = texts[0][texts[0].rindex(', "environment": {') :]
    beginning = texts[0][: -len(end)]
    start = texts[0].index(', "seconds": {')
    head, rest = texts[0][:start], texts[0][start:]
    texts += [
        json.dumps({**whole, "status": "error", "reason": "x"}),
        json.dumps({**whole, "seconds": {"total": -1.0}}),
        json.dumps({**whole, "seconds": {"total": 10**400}}),
        json.dumps({**whole, "seconds": {"total": float("nan")}}),
        '{"params": {"x": 1, "seconds": {"y": 1}}, ' + texts[0][1:],
        '{"about": "' + head[1:].replace('"', '\\"') + '", ' + texts[0][1:],
        head + rest[:-1] + ', "status": "error", "reason": "x"}',
        head + rest[:-1] + ', "schema": 2}',
        head + ', "params": {"x": 1' + rest + "}",
        head + ', "threads": 2' + rest,
        head + "," + rest,
        head[:-1] + rest,
        head + rest[1:],
        head + end,
        "[" + head + rest,
        json.dumps({**whole, "tallies": {"x": 1.0}}),
        json.dumps({**whole, "tallies": {"x": True}}),
        json.dumps({**whole, "threads": 1.0}),
        beginning + end.replace("{", "{ "),
        beginning + ', "params": {"x": 1' + end + "}",
        beginning + ', "environment": 3' + end,
        "{" + end,
        beginning + "," + end,
        beginning[:-1] + end,
        beginning + end[:-1],
        beginning + ', "seconds": ' + texts[0] + end,
        beginning + ', "about": "' + end[1:].replace('"', '\\"') + '"' + end,
        beginning + end[:-1] + ', "params": {}}',
        beginning + end[:-1] + ', "threads": "x"}',
        "[" + texts[0] + end,
        "3" + end,
    ]
    return texts


def test_a_line_is_read_as_it_is_alone_whatever_the_line_before_shares_with_it() -> None:
    """What two lines share is read and checked once: not what only looks as if it were shared."""
    texts = lines_alike_and_broken()
    texts += texts[::-1]
    one = Reader(Path("of.jsonl"))
    for number, text in enumerate(texts, 1):
        line = text.encode() + b"\n"
        assert spelled(one.line(number, line)) == spelled(Reader(Path("of.jsonl")).line(number, line)), text[-200:]
        if one.before:
            assert spelled(one.line(number, line)) == spelled(Reader(Path("of.jsonl")).line(number, line))


def repeated(record: dict[str, Any], number: int) -> dict[str, Any]:
    """A further block of a cell, its figures others."""
    seconds = {name: None if spent is None else spent + number for name, spent in record["seconds"].items()}
    seconds["total"] = sum(spent or 0.0 for name, spent in seconds.items() if name != "total")
    return {
        **record,
        "block": number,
        "seconds": seconds,
        "cpu_seconds": 1.5 * number,
        "witness": {"wall_seconds": 0.5},
    }


SPOILT: list[dict[str, Any]] = [
    {"seconds": {"total": 1.0}},
    {"seconds": {"total": -1.0, "update": -1.0}},
    {"seconds": {"total": 2.0, "other": 1.0, "update": 1.0, "mine": "text"}},
    {"seconds": {"total": True}},
    {"seconds": None},
    {"block": 1.5},
    {"block": True},
    {"block": -1},
    {"block": 2**70},
    {"block": None},
    {"cpu_seconds": "1"},
    {"cpu_seconds": 10**400},
    {"cpu_seconds": float("inf")},
    {"witness": {"wall_seconds": -1.0}},
    {"witness": {"whole_process": 1}},
    {"witness": []},
    {"witness": {}},
    {"tallies": {"x": 1.0}},
    {"tallies": {"y": 1}},
    {"curve": [{"merges": 1, "seconds": {"update": "x"}}]},
    {"curve": [{"merges": 1}]},
    {"curve": [1]},
    {"curve": [{"merges": -1, "seconds": {"update": -0.5}}]},
    {"curve": [{"merges": 1, "seconds": {}}]},
    {"identity": {"kind": "wrong"}},
    {"extrapolated": {"total_seconds": 1.0}},
    {"instructions": {}},
    {"memory_is_sampled": 1},
    {"limits": {"wall_seconds": "x"}},
    {"last_phase": 1},
    {"started": "now"},
    {"peak_rss_bytes": 1.0},
    {"unheard_of": {"x": [1, {}]}},
]


@pytest.mark.parametrize("place", [3, 30])
def test_a_broken_line_among_equal_ones_is_reported_alone(tmp_path: Path, place: int) -> None:
    """What a record shares with the one before it is checked once."""
    whole = next(record for record in WHOLE if record.get("tallies") and record.get("environment"))
    sound = [repeated(whole, number) for number in range(60)]
    texts = [json.dumps(record) for record in sound]
    path = tmp_path / "of.jsonl"
    for text in [*(json.dumps({**sound[place], **spoilt}) for spoilt in SPOILT), *lines_alike_and_broken()]:
        written = [*texts[:place], text, *texts[place + 1 :], "", text, *texts[:20]]
        path.write_text("".join(f"{each}\n" for each in written))
        alone = [Reader(path).line(number, f"{each}\n".encode()) for number, each in enumerate(written, 1) if each]
        told = list(lines_of(path))
        assert [line.number for line in told] == [line.number for line in alone]
        assert list(map(spelled, told)) == list(map(spelled, alone)), text[-200:]


@pytest.mark.slow
def test_no_table_shows_what_is_left_out_when_records_are_read_for_one() -> None:
    for path in sorted(CHECKOUT.glob("results/**/records.jsonl*")):
        whole, part = rows(read_records([path])), rows(read_records([path], IN_NO_TABLE))
        assert csv(frame_of(whole)) == csv(frame_of(part)), path
        assert markdown(sheets_of(whole, work=True, every_run=True)) == markdown(
            sheets_of(part, work=True, every_run=True)
        )
        assert [row.samples for row in whole] == [row.samples for row in part]


@pytest.mark.parametrize(
    "text", ["{", '"\\udcff"', "NaN", "1e400", "-1e400", "[" * 1100 + "]" * 1100, "[1, 1.0, true]", "é"]
)
def test_json_is_read_as_by_python(text: str) -> None:
    for content in (text.encode(), text.encode("latin-1")):
        try:
            want = repr(json.loads(content))
        except (ValueError, RecursionError) as error:
            with pytest.raises(type(error), match=re.escape(str(error))):
                read_json(content)
        else:
            assert repr(read_json(content)) == want


def test_a_mapping_is_read_after_records_that_have_it_and_lack_it(tmp_path: Path) -> None:
    """What records share is kept once; one that has null between two that are alike is not what the third has."""
    whole = next(record for record in WHOLE if record.get("tallies"))
    records = [whole, {**whole, "tallies": None}, whole]
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert read_records([path]) == records


def test_what_is_no_file_of_records_is_told_and_nothing_is_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "sparse").touch()
    os.truncate(tmp_path / "sparse", LONGEST_LINE + 5)
    for name, said in (
        ("pipe", "nobody has written to it"),
        ("loop", "symbolic links"),
        ("/dev/zero", "neither a file nor a pipe"),
    ):
        with pytest.raises(Refusal, match=said):
            list(lines_of(tmp_path / name))
    assert records.main(["check", str(tmp_path / "loop")]) == UNMEASURED
    assert [line.complaints for line in lines_of(tmp_path / "sparse")] == [
        ("longer than 64 MiB, the limit for a record",)
    ]
    with pytest.raises(Refusal, match="is a pipe"):
        RecordFile(tmp_path, "pipe")


def test_a_pipe_that_is_written_to_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["/bin/sh", "-c", 'cat "$0" > pipe', FOLDER / "forms.jsonl"], cwd=tmp_path) as writer:
        descriptor = os.open(tmp_path / "pipe", os.O_RDONLY)
        assert read_records([Path(f"/dev/fd/{descriptor}")]) == read_records([FOLDER / "forms.jsonl"])
        os.close(descriptor)
    assert writer.returncode == 0


def test_totals_without_counting_are_skipped_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As records of earlier versions have them; where no time was taken, nothing is missing."""
    counted, borrowed = measured("a", 1.0), measured("b", 1.0, counts_reused=True)
    untimed = {**measured("c", {}, counts_reused=True), "seconds": {"total": None}}
    store = RecordFile(tmp_path)
    store.append([counted, borrowed, untimed, {**borrowed, "variant": "d"}])
    assert [record["variant"] for record in read_records([tmp_path])] == ["a", "c"]
    told = "skipped 2 records with words counted in an earlier run; measure them again\n"
    assert capsys.readouterr().err == f"{store.path}: {told}"
