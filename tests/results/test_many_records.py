"""Twice the records cost about twice the work, in calls of functions, whatever is made of them."""

import cProfile
from pathlib import Path

import pytest

from harness.__main__ import main

SWEEP = Path(__file__).parents[1] / "fixtures/records/sweep.jsonl"
RUN = '"2026-11-21T11:20:00+00:00"'
MOST = 2.6
"""Times the calls for twice the records."""


def records(runs: int) -> str:
    """The records of so many runs, each with a text of its own."""
    sweep = SWEEP.read_text()
    texts = []
    for number in range(runs):
        started = f'"2026-11-21T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}+00:00"'
        named = sweep.replace('"name":"stdlib"', f'"name":"text{number}"')
        texts.append(named.replace(RUN, started))
    return "".join(texts)


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "table many.jsonl",
        "table many.jsonl --format csv",
        "table many.jsonl --pivot variant data",
        "table many.jsonl --profile",
        "plot many.jsonl --kind dots --output many.svg",
        "report many.jsonl --output many.html",
        "records merge many.jsonl --output merged",
    ],
)
def test_twice_the_records_take_at_most_2_6_times_the_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    calls = []
    for runs in (1, 25, 50):  # the first imports what is needed
        folder = tmp_path / str(runs)
        folder.mkdir()
        monkeypatch.chdir(folder)
        Path("many.jsonl").write_text(records(runs))
        profile = cProfile.Profile()
        assert profile.runcall(main, line.split()) == 0
        calls.append(sum(entry.callcount for entry in profile.getstats()))
    assert calls[2] <= MOST * calls[1]
