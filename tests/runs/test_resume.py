"""The same command continues an interrupted run from its records: nothing measured is lost, and nothing is doubled."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from workbench import (
    CHECKOUT,
    HEAP,
    NAIVE,
    SUPPORT,
    cell_of,
    heed_signals,
    measuring,
    reading_of,
    settings_for,
    unruly,
    wait_until,
)

from harness.common.registry import VariantCard
from harness.records import __main__ as records_command
from harness.records.file import FILE_NAME, Record, RecordFile
from harness.records.load import read_records
from harness.results.rows import rows
from harness.runs import running
from harness.runs.cells import TrainCell
from harness.runs.resume import RUNNING, Block, held, pending, plan_key, without_folders
from harness.runs.schedule import Run
from harness.runs.settings import Preset, Rule

pytestmark = [pytest.mark.usefixtures("measured_once"), pytest.mark.xdist_group("one after the other")]
runs = itertools.count()
OTHER = VariantCard("heap_again", "variants.heap:train", family="another")


class Killed(BaseException):
    """What ends a run at a write, as kill -9 would: nothing is done about it."""


def finished(folder: Path, cells: Sequence[TrainCell], **settings: Any) -> Run:
    with measuring(cells, settings_for(folder, **settings), folder / f"jobs{next(runs)}") as run:
        pass
    return run


def killed_at(
    folder: Path, monkeypatch: pytest.MonkeyPatch, cells: Sequence[TrainCell], write: int, part: float, **settings: Any
) -> bool:
    """Run until a write, of which a part reaches the disk; False if the run finished before."""
    append = RecordFile.append_bytes
    writes = itertools.count()

    def fail(store: RecordFile, content: bytes) -> None:
        if next(writes) == write:
            append(store, content[: int(part * len(content))])
            raise Killed
        append(store, content)

    with monkeypatch.context() as patched:
        patched.setattr(RecordFile, "append_bytes", fail)
        try:
            finished(folder, cells, **settings)
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
def test_a_kill_at_any_write_loses_what_was_under_way_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repeat: int, part: float
) -> None:
    trained: list[tuple[str, int]] = []
    train = Run.train

    def train_and_tell(run: Run, cell: TrainCell, block: Block) -> Any:
        trained.append((cell.variant.name, block.number))
        return train(run, cell, block)

    monkeypatch.setattr(Run, "train", train_and_tell)
    for write in itertools.count():
        folder = tmp_path / str(write)
        folder.mkdir()
        cells = three(folder)
        was_killed = killed_at(folder, monkeypatch, cells, write, part, repeat=repeat)
        before = len(trained)
        if was_killed and '"kind":"end"' not in (folder / "results" / FILE_NAME).read_text():
            finished(folder, cells, repeat=repeat)
        whole = Counter((record["variant"], record["block"]) for record in stored(folder))
        assert set(whole) == {(cell.variant.name, block) for cell in cells for block in range(repeat)}
        if repeat == 1:
            assert set(whole.values()) == {1}
        else:  # the interrupted block is measured again as a whole, and what it had pairs with nothing
            closed = Counter((one["variant"], one["block"]) for one in stored(folder) if one["block_whole"])
            assert set(closed.values()) == {1}
            assert sum(whole.values()) <= len(whole) + 2
        assert {record["identity"]["kind"] for record in stored(folder)} == {"identical"}
        assert len({record["run_id"] for record in stored(folder)}) == 1 or write == 0
        assert not list((folder / "results").glob(f"{RUNNING}*"))
        assert len(trained) - before <= 3 * repeat
        if not was_killed:
            assert write > 3 * repeat
            return
        trained.clear()


def test_a_finished_run_starts_anew_and_so_does_rerun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = three(tmp_path)
    first, second = finished(tmp_path, cells), finished(tmp_path, cells)
    assert first.log.run_id != second.log.run_id
    assert killed_at(tmp_path, monkeypatch, cells, 2, 1.0)
    again = finished(tmp_path, cells, rerun=True)
    assert sum(record["run_id"] == again.log.run_id for record in stored(tmp_path)) == 3


def test_an_unfinished_run_is_read_by_every_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert killed_at(tmp_path, monkeypatch, three(tmp_path), 2, 1.0)
    assert [row.proved for row in rows(stored(tmp_path))] == [True, True]
    assert records_command.main(["check", str(tmp_path / "results")]) == 0
    assert "none broken" in capsys.readouterr().out


def test_two_runs_of_a_plan_at_once_share_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = three(tmp_path)
    assert killed_at(tmp_path, monkeypatch, cells, 2, 1.0)
    (unfinished,) = {record["run_id"] for record in stored(tmp_path)}
    with held(tmp_path / "results", unfinished) as free:
        assert free
        beside = finished(tmp_path, cells)
    assert beside.log.run_id != unfinished
    again = finished(tmp_path, cells).log.run_id
    assert again not in (unfinished, beside.log.run_id), "a finished run starts anew"


def test_words_that_are_gone_are_counted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = three(tmp_path)
    assert killed_at(tmp_path, monkeypatch, cells, 2, 1.0)
    monkeypatch.setenv("BPE_HARNESS_CACHE", str(tmp_path / "another"))
    finished(tmp_path, cells)
    assert Counter(record["variant"] for record in stored(tmp_path)) == {"heap": 1, "naive": 1, "heap_again": 1}


# What is pending, by what there is.


def history(cells: Sequence[TrainCell], text: str) -> list[Record]:
    """`0a! 1b` is cell a in block 0, which is whole, and b in block 1; `w` is warm-up, `t` was stopped."""
    names = dict(zip("abc", (cell.key() for cell in cells), strict=True))
    return [
        {
            "cell": "train",
            "run_key": names[word[1]],
            "block": int(word[0]),
            "block_whole": "!" in word,
            "warm_up": "w" in word,
            "status": "timeout" if "t" in word else "ok",
        }
        for word in text.split()
    ]


@pytest.mark.parametrize(
    ("repeat", "warm_up", "there", "missing", "block", "due"),
    [
        (1, 0, "", "", 0, "abc"),
        (1, 0, "0b", "", 0, "ac"),
        (1, 0, "0a 0b 0c", "", None, ""),
        (1, 0, "0a 0b 0c", "b", 0, "b"),
        (1, 0, "0a 0bt", "", 0, "c"),
        (2, 0, "0a 0b", "", 0, "abc"),
        (2, 0, "0a! 0b! 0c!", "", 1, "abc"),
        (2, 0, "0a! 0b! 0c! 1a 1b", "", 1, "abc"),
        (2, 0, "0a 0a! 0b! 0c! 1a! 1b! 1c!", "", None, ""),
        (2, 0, "0a! 0bt! 0c!", "", 1, "ac"),
        (2, 0, "0a! 0b! 0c!", "a", 0, "abc"),
        (1, 1, "0aw! 0bw! 0cw!", "", 0, "abc"),
        (1, 1, "0aw 0bw", "", 0, "abc"),
        (2, 0, "0at 0bt 0ct", "", None, ""),
    ],
)
def test_what_is_pending_follows_from_the_records(
    tmp_path: Path, repeat: int, warm_up: int, there: str, missing: str, block: int | None, due: str
) -> None:
    cells = three(tmp_path)
    settings = settings_for(tmp_path, repeat=repeat, measure=Preset("quick", warm_up=warm_up))
    lost = {cell.key() for cell, name in zip(cells, "abc", strict=True) if name in missing}
    found = pending(cells, settings, history(cells, there), lost)
    if block is None:
        assert found is None
    else:
        assert found is not None
        assert found[0].number == block
        assert [cell.key() for cell in found[1]] == [cells["abc".index(name)].key() for name in due]


def test_blocks_go_on_until_a_ratio_is_precise(tmp_path: Path) -> None:
    cells = three(tmp_path)
    settings = settings_for(tmp_path, repeat=6, measure=Preset("precise", precision=Rule(0.05)))
    whole = " ".join(f"{number}{name}!" for number in range(6) for name in "abc")
    for spread, block in ((0.001, None), (0.2, 6)):
        records = history(cells, whole)
        for record in records:
            total = 1.0 + spread * (record["block"] % 3 if record["run_key"] == cells[1].key() else 0)
            record |= {"seconds": {"total": total}, "run_id": "one", "threads": 1, "cpu_seconds": total}
        found = pending(cells, settings, records)
        assert (None if found is None else found[0].number) == block


# Tokenizers that are saved.


def test_a_tokenizer_is_saved_at_once_and_trained_again_if_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = three(tmp_path)
    plan = running.Plan(cells, settings_for(tmp_path, save=tmp_path / "saved"))
    append = RecordFile.append_bytes
    writes = itertools.count()

    def kill_third(store: RecordFile, content: bytes) -> None:
        append(store, content)
        if next(writes) == 2:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(RecordFile, "append_bytes", kill_third)
        with pytest.raises(Killed):
            running.records_of(plan, tmp_path / "jobs")
    names = sorted(path.name for path in (tmp_path / "saved").iterdir())
    assert len(names) == 2
    (tmp_path / "saved" / names[0]).rename(tmp_path / "elsewhere")
    running.records_of(plan, tmp_path / "jobs2")
    assert len(list((tmp_path / "saved").iterdir())) == 3
    assert sorted(Counter(record["variant"] for record in stored(tmp_path)).values()) == [1, 1, 2]
    assert (tmp_path / "saved" / names[0] / "merges.txt").read_bytes() == (
        tmp_path / "elsewhere" / "merges.txt"
    ).read_bytes()


# What lies where a trainer can read it.


@pytest.mark.parametrize("repeat", [1, 2])
def test_a_trainer_that_searches_files_and_processes_finds_no_merges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repeat: int
) -> None:
    """The attack: a trainer that looks for those of the one before it, in results, temporary folders and /proc."""
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    monkeypatch.setenv("UNRULY_SEARCH", str(tmp_path))
    reading = reading_of(tmp_path)
    cells = [cell_of(reading, HEAP), cell_of(reading, unruly("searches_for_merges"))]
    finished(tmp_path, cells, repeat=repeat)
    searched = [record for record in stored(tmp_path) if record["variant"] == "searches_for_merges"]
    assert [(record["status"], record["tallies"].get("found", 0)) for record in searched] == [("ok", 0)] * repeat
    assert all(record["tallies"]["searched"] > 3 for record in searched)


# What is the same plan.


@pytest.mark.parametrize(
    "changed",
    [
        {"repeat": 2},
        {"seed": 1},
        {"measure": Preset("other")},
        {"measure": Preset("quick", quiet_seconds=1)},
        {"affinity": (0,)},
        {"concurrent": True},
    ],
)
def test_other_settings_are_another_plan(tmp_path: Path, changed: dict[str, Any]) -> None:
    cells = three(tmp_path)
    assert plan_key(cells, settings_for(tmp_path), "m") != plan_key(cells, settings_for(tmp_path, **changed), "m")


def test_other_cells_code_limits_or_machines_are_another_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = reading_of(tmp_path)
    (tmp_path / "mine.py").write_text("def train(): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    mine = VariantCard("mine", "mine:train")
    settings = settings_for(tmp_path)
    key = plan_key([cell_of(reading, mine)], settings, "m")
    assert key == plan_key([cell_of(reading, mine)], settings, "m")
    assert key == plan_key([cell_of(reading, mine)], settings_for(tmp_path, save=tmp_path / "s"), "m")
    others = [
        plan_key([cell_of(reading, mine)], settings, "n"),
        plan_key([cell_of(reading, mine, 11)], settings, "m"),
        plan_key([cell_of(reading, VariantCard("mine", "mine:train", params={"a": 1}))], settings, "m"),
        plan_key([cell_of(reading_of(tmp_path, "other"), mine)], settings, "m"),
    ]
    (tmp_path / "mine.py").write_text("def train(): ...  # changed\n")
    others.append(plan_key([cell_of(reading, mine)], settings, "m"))
    assert key not in others
    assert len(set(others)) == len(others)


def test_the_order_in_which_cells_are_said_does_not_matter(tmp_path: Path) -> None:
    cells = three(tmp_path)
    assert plan_key(cells, settings_for(tmp_path), "m") == plan_key(cells[::-1], settings_for(tmp_path), "m")


@pytest.mark.parametrize(
    ("override", "text"),
    [
        ("data.path=[/home/me/a.txt,'../b c.txt']", "data.path=[a.txt,'b c.txt']"),
        ("+save=~/tokenizers/mine", "+save=mine"),
        ("interpreter=/opt/pypy/bin/pypy3", "interpreter=pypy3"),
        (
            "variant.params.command='/opt/tool {text} --out {merges}'",
            "variant.params.command='tool {text} --out {merges}'",
        ),
        ("pattern.regex=/a/b/c", "pattern.regex=/a/b/c"),
        ("variant=heap", "variant=heap"),
    ],
)
def test_an_override_is_kept_without_the_folders_of_a_path(override: str, text: str) -> None:
    assert without_folders(override) == text


# A real end.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "moments"),
    [(signal.SIGKILL, [1]), (signal.SIGKILL, [2, 5]), (signal.SIGKILL, [4, 4]), (signal.SIGINT, [3])],
)
def test_a_run_that_is_ended_from_outside_is_continued(
    tmp_path: Path, number: signal.Signals, moments: Sequence[int]
) -> None:
    """Ended when so many measurements are on disk, once or again after continuing; then it is left to finish."""
    reading_of(tmp_path)
    path = tmp_path / "results" / "records.jsonl"
    environment = {**os.environ, "PYTHONPATH": f"{CHECKOUT}{os.pathsep}{SUPPORT}", "UNRULY_RECORDS": str(path)}
    trainers = "variant._target_=unruly:waits_to_be_ended,variants.naive:train,variants.incremental:train"
    data = [f"data.path={tmp_path}/text.txt", f"results={tmp_path}/results"]
    arguments = [sys.executable, "-m", "harness", *data, "-m", trainers, "vocab_size=270", "repeat=2"]

    def measured_so_far() -> int:
        return path.read_text().count('"kind":"measurement"') if path.exists() else 0

    for entries in moments:
        process = subprocess.Popen(
            arguments,
            env={**environment, "UNRULY_ENOUGH": str(entries)},
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=heed_signals,
        )
        wait_until(lambda at=entries: measured_so_far() >= at, f"{entries} measurements")  # type: ignore[misc]
        assert process.poll() is None
        process.send_signal(number)
        process.wait(timeout=60)
    own = {**environment, "UNRULY_ENOUGH": "1000"}
    again = subprocess.run(arguments, env=own, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert "skipped" not in again.stderr
    trained = stored(tmp_path)
    whole = Counter((each["variant"], each["block"]) for each in trained if each["block_whole"])
    assert sorted(whole.values()) == [1] * 6
    assert len(trained) - 6 <= 2 * len(moments)
    assert not list((tmp_path / "results").glob(f"{RUNNING}*"))
