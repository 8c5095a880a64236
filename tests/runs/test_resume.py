"""The same command continues an interrupted run from its records: nothing measured is lost, and
nothing is doubled.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import os
import random
import signal
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from measured import changed, measured
from workbench import (
    HEAP,
    NAIVE,
    SUPPORT,
    cell_of,
    reading_of,
    recorded_run,
    settings_for,
    unruly,
    wait_until,
)

from harness import report, table
from harness.common.comparison import interval
from harness.common.files import cache_folder
from harness.common.registry import VariantCard
from harness.records import __main__ as records
from harness.records import lines as record_file
from harness.records.file import Record, read_records
from harness.records.lines import FILE_NAME
from harness.runs import blocks, run, session
from harness.runs.cells import Plan, TrainCell, make_tasks
from harness.runs.jobs import Trained
from harness.runs.plan import redacted_override
from harness.runs.resume import RUNNING, blocks_needed, hold, pending, plan_key
from harness.worker.exchange import packed
from variants import heap
from variants.counting.pretokenize import serial

pytestmark = [
    pytest.mark.usefixtures("measured_once"),
    pytest.mark.xdist_group("one after the other"),
]
OTHER = VariantCard("heap_again", "variants.heap:train", family="another")


class Killed(BaseException):
    """Ends a run at a write, as kill -9 would: nothing is done about it."""


def killed_at(
    monkeypatch: pytest.MonkeyPatch, write: int, part: float, measure: Callable[[], Any]
) -> bool:
    """Measure until a write, of which a part reaches the disk; False if the run finished before."""
    append = record_file.append_whole
    writes = itertools.count()

    def fail(opened: io.FileIO, content: bytes) -> None:
        if next(writes) == write:
            append(opened, content[: int(part * len(content))])
            raise Killed
        append(opened, content)

    with monkeypatch.context() as patched:
        patched.setattr(record_file, "append_whole", fail)
        try:
            measure()
        except Killed:
            return True
    return False


def stored(folder: Path) -> list[Record]:
    return [record for record in read_records([folder / "results"]) if record["cell"] == "train"]


def three(folder: Path) -> list[TrainCell]:
    reading = reading_of(folder)
    return [cell_of(reading, variant) for variant in (HEAP, NAIVE, OTHER)]


# A kill at every write.


@pytest.mark.parametrize("part", [0.0, 0.5, 1.0], ids=["before", "within", "after"])
@pytest.mark.parametrize("repeat", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_kill_at_any_write_loses_only_the_measurement_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repeat: int, part: float
) -> None:
    names: list[str] = []
    train = blocks.train

    def train_and_count(cell: TrainCell, *others: Any) -> Trained:
        names.append(cell.variant.name)
        return train(cell, *others)

    monkeypatch.setattr(blocks, "train", train_and_count)
    for write in itertools.count():
        folder = tmp_path / str(write)
        folder.mkdir()
        cells = three(folder)
        was_killed = killed_at(
            monkeypatch,
            write,
            part,
            lambda: recorded_run(folder, cells, repeat=repeat),  # noqa: B023
        )
        before = len(names)
        if was_killed and '"kind":"end"' not in (folder / "results" / FILE_NAME).read_text():
            recorded_run(folder, cells, repeat=repeat)
        whole = Counter((record["variant"], record["block"]) for record in stored(folder))
        assert set(whole) == {
            (cell.variant.name, block) for cell in cells for block in range(repeat)
        }
        # the interrupted block is measured again as a whole, and its earlier records pair with
        # nothing
        if repeat > 1:
            whole = Counter(
                (one["variant"], one["block"]) for one in stored(folder) if one["block_whole"]
            )
            assert len(stored(folder)) <= len(whole) + 2
        assert set(whole.values()) == {1}
        assert {record["identity"]["kind"] for record in stored(folder)} == {"identical"}
        assert len({record["run_id"] for record in stored(folder)}) == 1 or write == 0
        assert not list((folder / "results").glob(f"{RUNNING}*"))
        assert len(names) - before <= 3 * repeat
        if not was_killed:
            assert write > 3 * repeat
            return
        names.clear()


def test_runs_of_one_plan_share_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A finished run starts anew, so does one with rerun=true, and one beside a run that is still
    going on.
    """
    cells = three(tmp_path)

    def runs() -> list[str]:
        return list(dict.fromkeys(record["run_id"] for record in stored(tmp_path)))

    recorded_run(tmp_path, cells)
    assert killed_at(monkeypatch, 2, 1.0, lambda: recorded_run(tmp_path, cells))
    (plan,) = {record["plan"] for record in stored(tmp_path)}
    with contextlib.ExitStack() as opened:
        assert hold(tmp_path / "results" / f"{RUNNING}{plan}", opened)
        recorded_run(tmp_path, cells)
    assert len(runs()) == 3
    assert killed_at(monkeypatch, 2, 1.0, lambda: recorded_run(tmp_path, cells))
    recorded_run(tmp_path, cells, rerun=True)
    assert [
        sum(record["run_id"] == run_id for record in stored(tmp_path)) for run_id in runs()
    ] == [3, 2, 3, 2, 3]


def test_an_unfinished_run_is_read_and_marked_by_every_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert killed_at(monkeypatch, 2, 1.0, lambda: recorded_run(tmp_path, three(tmp_path)))
    (run_id,) = {record["run_id"] for record in stored(tmp_path)}
    note = f"un {run_id[:16]} was interrupted: run the same command to finish it"
    page = tmp_path / "page.html"
    commands: dict[Any, list[str]] = {
        records: ["check"],
        table: [],
        report: ["--output", str(page)],
    }
    for marked in (True, False):
        for command, options in commands.items():
            assert command.main([*options, str(tmp_path / "results")]) == 0
        assert (capsys.readouterr().out.count(note), page.read_text().count(note)) == (
            (2, 1) if marked else (0, 0)
        )
        recorded_run(tmp_path, three(tmp_path))


def test_an_interrupted_run_is_resumed_after_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = three(tmp_path)
    recorded_run(tmp_path, cells)
    earlier = "2001-01-01T00:00:00.000000+00:00"
    with monkeypatch.context() as patched:
        patched.setattr(session, "now", lambda: earlier)
        assert killed_at(patched, 2, 1.0, lambda: recorded_run(tmp_path, cells))
    recorded_run(tmp_path, cells)
    assert sum(record["run_id"] == earlier for record in stored(tmp_path)) == len(cells)
    assert len(stored(tmp_path)) == 2 * len(cells)


@pytest.mark.parametrize("repeat", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_figures_that_fit_no_record_are_an_error_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repeat: int
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    reading = reading_of(tmp_path)
    cells = [cell_of(reading, variant) for variant in (unruly("tallies_half_a_character"), HEAP)]
    assert killed_at(monkeypatch, 2, 1.0, lambda: recorded_run(tmp_path, cells, repeat=repeat))
    recorded_run(tmp_path, cells, repeat=repeat)
    ends = {(record["variant"], record["status"], record["reason"]) for record in stored(tmp_path)}
    assert ends == {
        ("heap", "ok", None),
        (
            "tallies_half_a_character",
            "error",
            r"its figures are invalid: '\ud800' is not Unicode text",
        ),
    }
    assert len({record["run_id"] for record in stored(tmp_path)}) == 1
    assert records.main(["check", str(tmp_path / "results")]) == 0


def test_a_tokenizer_is_saved_at_once_and_another_folder_is_another_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def saved(name: str) -> int:
        plan = Plan(make_tasks(three(tmp_path)), settings_for(tmp_path, save=tmp_path / name))
        killed_at(
            monkeypatch,
            2,
            1.0,
            lambda: run.run_plan(plan, tmp_path / f"jobs {name}", lambda *_: None),
        )
        return len(list((tmp_path / name).iterdir()))

    assert [saved("a"), saved("b"), len({record["run_id"] for record in stored(tmp_path)})] == [
        2,
        2,
        2,
    ]
    assert [saved("a"), len(stored(tmp_path))] == [3, 5]


@pytest.mark.parametrize(
    ("repeat", "planted"), [(1, False), (1, True), pytest.param(2, False, marks=pytest.mark.slow)]
)
def test_a_trainer_that_searches_files_and_processes_finds_no_merges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repeat: int, planted: bool
) -> None:
    """The attack: a trainer looks for those of the one before it, in results, cache, temporary
    folders and /proc.
    """
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    monkeypatch.setenv("UNRULY_SEARCH", f"{tmp_path}{os.pathsep}{cache_folder()}")
    reading = reading_of(tmp_path)
    if planted:
        (cache_folder("counts") / "merges").write_bytes(
            packed(heap.train(serial(reading.corpus), 10))
        )
    recorded_run(
        tmp_path,
        [cell_of(reading, HEAP), cell_of(reading, unruly("searches_for_merges"))],
        repeat=repeat,
    )
    searched = [record for record in stored(tmp_path) if record["variant"] == "searches_for_merges"]
    assert [(record["status"], record["tallies"].get("found", 0)) for record in searched] == [
        ("ok", planted)
    ] * repeat
    assert all(record["tallies"]["searched"] > 3 for record in searched)


# What is pending, by the records that exist.


def history(cells: Sequence[TrainCell], text: str) -> list[Record]:
    """`0a! 1b` is cell a in block 0, which is whole, and b in block 1; `w` is warm-up, `t` was
    stopped.
    """
    keys = dict(zip("abc", (cell.key for cell in cells), strict=True))
    return [
        measured(
            "a",
            1.0,
            run_key=keys[word[1]],
            block=int(word[0]),
            block_whole="!" in word,
            warm_up="w" in word,
            **({"status": "timeout", "reason": "late"} if "t" in word else {}),
        )
        for word in text.split()
    ]


@pytest.mark.parametrize(
    ("repeat", "warm_up", "there", "due"),
    [
        (1, 0, "", "0abc"),
        (1, 0, "0b", "0ac"),
        (1, 0, "0a 0b 0c", ""),
        (1, 0, "0a 0bt", "0c"),
        (2, 0, "0a 0b", "0abc 1abc"),
        (2, 0, "0a! 0b! 0c!", "1abc"),
        (2, 0, "0a! 0b! 0c! 1a 1b", "1abc"),
        (2, 0, "0a 0a! 0b! 0c! 1a! 1b! 1c!", ""),
        (2, 0, "0a! 0bt! 0c!", "1ac"),
        (1, 1, "0aw! 0bw! 0cw!", "0abc"),
        (1, 1, "0aw 0bw", "0abc 0abc"),
        (2, 0, "0at 0bt 0ct", ""),
    ],
)
def test_pending_cells_follow_from_the_records(
    tmp_path: Path, repeat: int, warm_up: int, there: str, due: str
) -> None:
    cells = three(tmp_path)
    settings = settings_for(tmp_path, repeat=repeat, warm_up=warm_up)
    todo = pending(cells, settings, history(cells, there))
    text = [
        f"{block.number}{''.join('abc'[cells.index(cell)] for cell in found)}"
        for block, found in todo
    ]
    assert " ".join(text) == due


# measure.precision.

TRUTH = math.log(1.5)


@pytest.mark.parametrize(
    "noise",
    [
        lambda order: order.gauss(0, 0.01),
        lambda order: order.gauss(0, 0.1),
        lambda order: 0.03 * math.tan(math.pi * (order.random() - 0.5)),
        lambda order: order.uniform(-0.1, 0.1),
        lambda order: order.gauss(0, 0.01) + order.choice((-0.2, 0.2)) * (order.random() < 0.1),
    ],
    ids=["little", "much", "heavy tails", "even", "often disturbed"],
)
def test_intervals_hold_and_ratios_have_no_bias_if_the_spread_decides_the_blocks(
    noise: Callable[[random.Random], float],
) -> None:
    order, number = random.Random(0), 1500
    held, ratios = 0, []
    for _ in range(number):
        logs = [TRUTH + noise(order) for _ in range(6)]
        logs += [TRUTH + noise(order) for _ in range(6, blocks_needed(logs, 0.05, 6, 20))]
        low, high = interval(logs)
        assert low is not None
        assert high is not None
        held += low <= TRUTH <= high
        ratios.append(statistics.median(logs))
    assert held / number >= 0.94
    error = statistics.stdev(ratios) / math.sqrt(number)
    assert abs(statistics.fmean(ratios) - TRUTH) < 4 * error


def test_the_spread_of_the_first_blocks_says_how_often_each_cell_is_measured(
    tmp_path: Path,
) -> None:
    """Cell a is the reference: it is measured as often as any of the others needs it."""
    cells, settings = three(tmp_path), settings_for(tmp_path, precision=0.05, repeat=6)

    def left(blocks: int, times_of_b: float, spread_of_c: float) -> str:
        """How often each cell is still measured, if b and c took so long and so differently."""
        records = history(
            cells, " ".join(f"{block}{name}!" for block in range(blocks) for name in "abc")
        )
        order = random.Random(0)
        for index, name in enumerate("abc" * blocks):
            spread = math.exp(order.gauss(0, spread_of_c)) if name == "c" else 1.0
            total = spread * (times_of_b if name == "b" else 1.0)
            seconds = {"update": total, "total": total}
            records[index] = changed(records[index], seconds=seconds, cpu_seconds=None)
        due = Counter(
            "abc"[cells.index(cell)]
            for _, found in pending(cells, settings, records)
            for cell in found
        )
        return " ".join(f"{number}{name}" for name, number in sorted(due.items()))

    assert left(0, 1.0, 0.0) == "6a 6b 6c"
    assert left(6, 1.0, 0.0) == ""
    assert left(6, 1.0, 0.06) == "7a 7c"
    assert left(6, 1.0, 1.0) == "14a 14c"
    assert left(1, 30.0, 0.0) == "5a 2b 5c"  # what is far slower is measured three times


def test_the_wanted_precision_is_recorded(tmp_path: Path) -> None:
    records = recorded_run(tmp_path, three(tmp_path), precision=0.05, repeat=6).records()
    found = [record["precision"] for record in records if record["cell"] == "train"]
    assert found == [{"asked": 0.05, "max_blocks": 20, "reference": "heap"}] * 18


# What is the same plan.


def test_other_cells_code_settings_machines_are_another_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = reading_of(tmp_path)
    (tmp_path / "mine.py").write_text("def train(): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    mine = VariantCard("mine", "mine:train")

    def key(*cells: TrainCell, machine: str = "m", **settings: Any) -> str:
        own = cells or [cell_of(reading, mine)]
        return plan_key(Plan(make_tasks(own), settings_for(tmp_path, **settings)), machine)

    keys = [
        key(),
        key(repeat=2),
        key(seed=1),
        key(save=tmp_path),
        key(kind="proof"),
        key(warm_up=1),
        key(machine="n"),
    ]
    keys += [
        key(cell_of(reading, mine, 11)),
        key(cell_of(reading, VariantCard("mine", "mine:train", params={"a": 1}))),
        key(cell_of(reading_of(tmp_path, "other"), mine)),
    ]
    assert key() == keys[0]
    assert key(*three(tmp_path)) == key(*three(tmp_path)[::-1])
    (tmp_path / "mine.py").write_text("def train(): ...  # changed\n")
    assert len({key(), *keys}) == len(keys) + 1


def test_an_override_is_recorded_without_the_folders_of_a_path() -> None:
    for override, text in {
        "data.path=[/home/me/a.txt,'../b c.txt']": "data.path=[a.txt,'b c.txt']",
        "data.path=s3://bucket/folder/*.txt": "data.path=s3://bucket/folder/*.txt",
        "+save=~/tokenizers/mine": "+save=mine",
        "variant.params.command='/opt/t {text} --out {merges}'": "variant.params.command='t {text} --out {merges}'",
        "pattern.regex=/a/b/c": "pattern.regex=/a/b/c",
    }.items():
        assert redacted_override(override) == text


# A real end.


@pytest.mark.slow
def test_a_run_that_is_killed_from_outside_is_continued(tmp_path: Path) -> None:
    """Killed when so many measurements are on disk, and again after continuing; then it is left to
    finish.
    """
    reading_of(tmp_path)
    path = tmp_path / "results" / FILE_NAME
    environment = {
        **os.environ,
        "PYTHONPATH": f"{SUPPORT.parents[1]}{os.pathsep}{SUPPORT}",
        "UNRULY_RECORDS": str(path),
    }
    trainers = (
        "variant._target_=unruly:waits_to_be_ended,variants.naive:train,variants.incremental:train"
    )
    data = [f"data.path={tmp_path}/text.txt", f"results={tmp_path}/results"]
    arguments = [
        sys.executable,
        "-m",
        "harness",
        *data,
        "-m",
        trainers,
        "vocab_size=270",
        "repeat=2",
    ]

    def measured() -> int:
        return path.read_text().count('"kind":"measurement"') if path.exists() else 0

    for entries in (2, 5):
        own = {**environment, "UNRULY_ENOUGH": str(entries)}
        with subprocess.Popen(
            arguments, env=own, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            wait_until(lambda: measured() >= entries, f"{entries} measurements")  # noqa: B023
            process.kill()
        assert process.returncode == -signal.SIGKILL
    own = {**environment, "UNRULY_ENOUGH": "1000"}
    subprocess.run(arguments, env=own, cwd=tmp_path, stdout=subprocess.DEVNULL, check=True)
    trained = stored(tmp_path)
    whole = Counter((each["variant"], each["block"]) for each in trained if each["block_whole"])
    assert sorted(whole.values()) == [1] * 6
    assert len(trained) - 6 <= 2 * 2
    assert not list((tmp_path / "results").glob(f"{RUNNING}*"))
