"""Memory is made ready before a call, as much as the call took before, and freed ahead of the process that needs it."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.measure import process, warm_memory
from harness.measure.process import Answer, Limits, measure
from harness.measure.processes import resident_bytes
from harness.measure.warm_memory import MOST_BEFORE_ANY, WarmMemory, bytes_besides, expected_bytes, remember
from harness.worker import word_store
from variants.contract import WordCounts

MEGABYTE = 1 << 20
WORDS = WordCounts.from_items([(b"low", 5), (b"lower", 2)])


@pytest.fixture(autouse=True)
def of_no_earlier_run(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(warm_memory, "taken_before", {})
    warm_memory.limit_of_container.cache_clear()
    yield
    warm_memory.limit_of_container.cache_clear()


def test_it_is_touched_and_freed_piece_by_piece() -> None:
    before = resident_bytes(os.getpid())
    memory = WarmMemory(64 * MEGABYTE)
    assert memory.held == 64 * MEGABYTE
    assert resident_bytes(os.getpid()) - before > 60 * MEGABYTE
    memory.keep(20 * MEGABYTE)
    assert 16 * MEGABYTE < resident_bytes(os.getpid()) - before < 30 * MEGABYTE
    memory.keep(40 * MEGABYTE)
    assert memory.held == 20 * MEGABYTE
    memory.close()
    memory.close()
    assert resident_bytes(os.getpid()) - before < 8 * MEGABYTE


def test_what_is_freed_lies_ahead_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_memory, "AHEAD_BYTES", 8 * MEGABYTE)
    memory = WarmMemory(32 * MEGABYTE)
    held = []
    for taken in (0, 10 * MEGABYTE, 5 * MEGABYTE, 100 * MEGABYTE):
        memory.free_ahead_of(taken)
        held.append(memory.held // MEGABYTE)
    assert held == [24, 14, 14, 0]
    memory.close()


@pytest.mark.parametrize(
    ("free", "limit", "room"),
    [
        (8 << 30, None, 2 << 30),
        (8 << 30, 1 << 30, 256 * MEGABYTE),
        (64 << 30, 60 << 30, warm_memory.MOST_BYTES),
        (None, None, 0),
    ],
)
def test_nobody_lacks_memory_because_of_it(
    free: int | None, limit: int | None, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_memory, "memory_bytes", {"MemAvailable": free}.get)
    monkeypatch.setattr(warm_memory, "container", lambda: {"memory_bytes": limit})
    assert warm_memory.room() == room


def test_where_there_is_no_room_nothing_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_memory, "room", lambda: 0)
    memory = WarmMemory(64 * MEGABYTE)
    memory.free_ahead_of(0)
    memory.close()
    assert memory.held == 0
    assert warm_memory.seconds_to_touch(MEGABYTE) is None


def test_what_a_job_took_is_expected_of_it_again_and_of_no_other(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_bytes(b"x" * 1000)
    job = {"kind": "train", "target": "module:train", "params": {}, "threads": 1, "num_merges": 9}
    first = {**job, "corpus": {"path": str(text)}, "output": "1"}
    assert expected_bytes(first) == warm_memory.LEAST_BEFORE_ANY + 1000 * warm_memory.FOR_A_BYTE_BEFORE_ANY
    remember(first, 77 * MEGABYTE)
    assert expected_bytes({**first, "output": "2"}) == 77 * MEGABYTE
    assert expected_bytes({**first, "num_merges": 10}) < 77 * MEGABYTE
    assert expected_bytes({**job, "corpus": None, "words": str(tmp_path / "none")}) == warm_memory.LEAST_BEFORE_ANY
    with text.open("r+b") as file:
        file.truncate(1 << 40)
    assert expected_bytes({**first, "threads": 2}) == MOST_BEFORE_ANY


@pytest.mark.parametrize(("size", "besides"), [(0, 16 << 20), (1 << 20, 48 << 20), (1 << 30, 256 << 20)])
def test_the_larger_a_corpus_the_more_is_touched_besides(size: int, besides: int, tmp_path: Path) -> None:
    with (tmp_path / "text").open("wb") as file:
        file.truncate(size)
    assert bytes_besides({"corpus": {"path": str(tmp_path / "text")}}) == besides
    assert bytes_besides({"corpus": None, "words": str(tmp_path / "none")}) == 16 << 20


@pytest.fixture
def job(tmp_path: Path) -> dict[str, Any]:
    words = tmp_path / "words"
    word_store.write(words, WORDS)
    return {
        "kind": "train",
        "target": "variants.heap:train",
        "params": {},
        "threads": 1,
        "words": str(words),
        "num_merges": 2,
        "tie_break": "greatest_bytes",
        "min_count": 1,
    }


def test_a_call_begins_with_as_much_as_it_took_before(
    job: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, taken = [], []

    def warm(size: int) -> WarmMemory:
        asked.append(size)
        return WarmMemory(size)

    def noted(what: dict[str, Any], size: int) -> None:
        taken.append(size)
        remember(what, size)

    monkeypatch.setattr(process, "WarmMemory", warm)
    monkeypatch.setattr(process, "remember", noted)
    answers = [measure(job, tmp_path / str(number), Limits()) for number in range(2)]
    assert [answer["status"] for answer in answers] == ["ok", "ok"]
    # Between the two, or after them, an empty job may be run to see what starting takes.
    first, *others = (size - bytes_besides(job) for size in asked)
    assert first == warm_memory.expected_bytes({**job, "num_merges": 3})
    assert any(size in others for size in taken)
    assert all(0 <= size < answers[0]["peak_rss_bytes"] - 5 * MEGABYTE for size in taken), (
        "Python's own is not the call's"
    )


@pytest.mark.slow
def test_making_it_ready_is_in_no_time_and_under_no_limit(
    job: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch: Callable[[mmap.mmap], None] = warm_memory.touch

    def touch_slowly(mapping: mmap.mmap) -> None:
        time.sleep(4)
        touch(mapping)

    monkeypatch.setattr(warm_memory, "touch", touch_slowly)
    answer: Answer = measure(job, tmp_path / "output", Limits(wall_seconds=3.5))
    assert answer["status"] == "ok"
    assert answer["total"] < 2
