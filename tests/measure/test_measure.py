"""One measurement survives what it measures, reports what happened, and believes no answer that is contradicted."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import forgers
import pytest
from workbench import BRIEF, CHECKOUT, SUPPORT, is_running, limits_wait, wait_until

from harness.common.errors import guarded
from harness.measure import process
from harness.measure.guarded import GuardedProcess
from harness.measure.process import Answer, Limits, measure
from harness.worker import word_store
from harness.worker.calling import arguments_for, expect_merges
from harness.worker.merges_bytes import unpacked
from variants.contract import Meter, TieBreak, WordCounts
from variants.heap import train

pytestmark = pytest.mark.xdist_group("one after the other")
WORDS = WordCounts.from_items([(b"low", 5), (b"lower", 2), (b"widest", 3), (b"newest", 6), (b"\x00\xff\x00\xff", 2)])
NUM_MERGES = 8
MERGES = train(WORDS, NUM_MERGES)
Measure = Callable[..., tuple[Answer, Path]]


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measure:
    """Measures a trainer of unruly.py or forgers.py (or any target) on the words; returns its answer and folder."""
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    monkeypatch.setenv("UNRULY_CHILD", str(tmp_path / "child"))
    word_store.write(tmp_path / "words", WORDS)

    def run(target: str, limits: Limits | None = None, **others: Any) -> tuple[Answer, Path]:
        job = {
            "kind": "train",
            "target": target if ":" in target else f"{'forgers' if hasattr(forgers, target) else 'unruly'}:{target}",
            "params": {},
            "threads": 1,
            "words": str(tmp_path / "words"),
            "num_merges": NUM_MERGES,
            "tie_break": "greatest_bytes",
            "min_count": 1,
            **others,
        }
        return measure(job, tmp_path / "output", limits or Limits(wall_seconds=30)), tmp_path / "output"

    return run


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    """Measures a word counter on a small file."""
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    (tmp_path / "text").write_text("low low lower")

    def run(target: str, limits: Limits | None = None) -> Answer:
        corpus = {"path": str(tmp_path / "text"), "special_tokens": [], "pattern": "[a-z]+", "partial": True}
        job = {"kind": "count", "target": target, "params": {}, "threads": 1, "corpus": corpus}
        return measure(job, tmp_path / "output", limits or Limits(wall_seconds=30))

    return run


@pytest.fixture
def looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a trainer know how many times its processes were looked at."""
    path = tmp_path / "looks"
    path.touch()
    monkeypatch.setenv("FORGERS_LOOKS", str(path))
    find, look = GuardedProcess.find_members, GuardedProcess.look

    def find_and_tell(process: GuardedProcess) -> None:
        find(process)
        with path.open("ab") as file:
            file.write(b".")

    def look_and_tell(process: GuardedProcess, limit: int | None = None) -> bool:
        over = look(process, limit)
        with path.open("ab") as file:
            file.write(b".")
        return over

    monkeypatch.setattr(GuardedProcess, "find_members", find_and_tell)
    monkeypatch.setattr(GuardedProcess, "look", look_and_tell)


# Every trick and its outcome.


class Row(NamedTuple):
    """A trainer, and the answer to it: its status, a pattern of its reason, bounds of some of its figures."""

    trick: str
    status: str = "ok"
    reason: str = "None"
    least: dict[str, float] = {}  # noqa: RUF012 - of a tuple
    slow: bool = False
    job: dict[str, Any] = {}  # noqa: RUF012


PLACE = r" \(\w+\.py:\d+, in \w+\)"
NO_ANSWER = "its answer is invalid: "
NOT_IN_ITS_CALL = r"0\.\d+ s of CPU time {}; at most 0\.\d+ s is allowed"

ENDS = [
    Row("segfaults", "killed", "its process was ended by SIGSEGV"),
    Row("kills_itself", "killed", "its process was ended by signal 40"),
    Row("aborts", "killed", "its process was ended by SIGABRT", slow=True),
    Row("ends_at_once", "error", "its process ended without an answer, exit status 7"),
    Row("ends_well_without_an_answer", "error", "its process ended without an answer, exit status 0", slow=True),
    Row("calls_sys_exit", "error", "SystemExit: no more today" + PLACE, slow=True),
    Row("raises", "error", r"LookupError: nothing here \(unruly\.py:\d+, in raises\)"),
    Row(
        "raises_the_unspeakable", "error", "Unspeakable: an exception that cannot be put into words" + PLACE, slow=True
    ),
    Row("raises_the_unbearable", "error", "Unbearable: an exception that cannot be put into words" + PLACE),
    Row("raises_a_keyboard_interrupt", "error", "KeyboardInterrupt" + PLACE, slow=True),
    Row("raises_what_is_not_text", "error", "half a character: \udcff", slow=True),
    Row("recurses", "error", "RecursionError: maximum recursion depth exceeded" + PLACE, slow=True),
    Row("is_unavailable", "skipped", "needs a library that is not there; install it"),
    Row("is_unavailable_without_a_word", "skipped", "it does not say why"),
    Row("wants_more", "error", r"TypeError: wants_more\(\) missing 1 required keyword-only argument: 'temperature'"),
    Row("unruly:nothing", "error", "AttributeError: module 'unruly' has no attribute 'nothing'", slow=True),
    Row("not_there:train", "error", "ModuleNotFoundError: No module named 'not_there'"),
    Row("takes_two", "error", r"cannot start none: No such file or directory", job={"interpreter": "none"}),
    Row("takes_two", "error", r"its process ended without an answer, .* 0", job={"interpreter": shutil.which("true")}),
    Row("takes_two", "error", "unruly:takes_two takes no tie_break, so .*", job={"tie_break": "raw_bytes"}),
    Row("takes_two", "error", "unruly:takes_two takes no min_count, so .*", job={"min_count": 2}),
]
RESULTS = [
    Row("returns_none", "error", "it returned NoneType, not a list of merges"),
    Row("returns_a_generator", "error", "it returned list_iterator, not a list of merges", slow=True),
    Row("returns_promises", "error", "it returned Lazy, not a list of merges", slow=True),
    Row("returns_integers", "error", "merge 1 is 1, not a pair of bytes"),
    Row("returns_it_in_words", "error", "it returned str, not a list of merges", slow=True),
    Row("returns_an_impostor", "error", "it returned Impostor, not a list of merges", slow=True),
    Row("returns_lazy_pairs", "error", "merge 1 is LazyPair of bytes and bytes; only a plain tuple of .*"),
    Row("returns_lazy_bytes", "error", "merge 1 is tuple of LazyBytes and bytes; only a plain tuple of .*"),
    Row("leaves_garbage", "error", NO_ANSWER + r"not JSON"),
    Row("leaves_half_an_answer", "error", NO_ANSWER + r"not JSON", slow=True),
    Row("leaves_nested_brackets", "error", NO_ANSWER + r"not JSON", slow=True),
    Row("leaves_a_list", "error", NO_ANSWER + r"Expected `object`, got `array`"),
    Row("leaves_another_status", "error", NO_ANSWER + r"Invalid enum value.*status`", slow=True),
    Row("leaves_a_bare_ok", "error", NO_ANSWER + r".*missing required field.*"),
    Row("leaves_numbers_that_are_none", "error", NO_ANSWER + r"Expected `float`.*total`"),
    Row("leaves_a_number_without_end", "error", NO_ANSWER + r".*peak_rss_bytes`", slow=True),
    Row("leaves_a_folder_for_an_answer", "error", NO_ANSWER + r"Is a directory"),
    Row("leaves_a_pipe_for_an_answer", "error", NO_ANSWER + r"answer.json is not a plain file", slow=True),
    Row("leaves_endless_zeros_for_an_answer", "error", NO_ANSWER + r"answer.json is not a plain file"),
    Row("leaves_a_pipe_for_merges", "error", NO_ANSWER + r"merges is not a plain file"),
    Row("leaves_endless_zeros_for_merges", "error", NO_ANSWER + r"merges is not a plain file", slow=True),
    Row("leaves_a_hole_for_merges", "error", NO_ANSWER + r"merges has 4398046511104 bytes, and at most .*"),
    Row("leaves_merges_that_are_none", "error", NO_ANSWER + r".*No such file or directory.*"),
    Row("unruly:cannot_write_files", "error", "its process ended without an answer, exit status 1", slow=True),
    Row("removes_its_folder", "error", "its process ended without an answer, exit status 1"),
    Row("puts_a_link_in_the_place_of_its_folder", "error", "its process ended without an answer, .* 0", slow=True),
    Row("locks_its_folder", "error", "its process ended without an answer, exit status 0"),
    Row("nests_folders"),
]
METERS = [
    Row("hands_over_no_number", "error", "it gave its meter nan seconds of update"),
    Row("hands_over_less_than_no_time", "error", "it gave its meter -5.0 seconds of update"),
    Row("tallies_less_than_nothing", "error", "it tallied -3 for pair_updates; a tally is a whole number, 0 or more"),
    Row("tallies_beyond_bounds", "error", r"it tallied over 2\*\*63 for pair_updates; a tally is a .*"),
    Row("tallies_what_cannot_be_counted", "error", ".*complex.*"),
    Row("tells_progress_in_words", "error", r"invalid literal for int\(\) with base 10: 'half way'"),
    Row("follows_nothing", "error", r"TypeError: object of type 'NoneType' has no len\(\)" + PLACE),
    Row("hands_over_too_much_time", "rejected", r"its phases claim 1000\.000 s of the .*"),
]
MANNERS = [
    *map(Row, ("prints", "closes_every_descriptor", "writes_to_every_descriptor", "leaves_a_thread", "takes_two")),
    Row("takes_anything"),
    *(
        Row(trick, slow=True)
        for trick in (
            "closes_standard_output",
            "reads_standard_input",
            "changes_folder",
            "returns_twice",
            "takes_keywords",
            "takes_no_meter",
            "takes_the_meter_by_name",
        )
    ),
]
CLOCKS = [
    Row("speeds_the_clock_up", "rejected", "time.perf_counter was replaced while it ran, so its phases mean nothing"),
    Row("stops_the_clock", "rejected", "time.perf_counter was replaced while it ran, so its phases mean nothing"),
    Row("shows_less_time_than_passed", "rejected", r"its clock shows 0\.0\d\d s, its parent saw \d+\.\d+ s pass"),
    Row("shows_more_time_than_passed", "rejected", r"its clock shows \d+\.\d+ s, its parent saw \d+\.\d+ s pass"),
    Row("forges_its_answer", "rejected", r"its clock shows 0\.001 s, its parent saw \d+\.\d+ s pass"),
    Row("turns_both_clocks_back", least={"total": 0.018}),  # of 0.02 s; its own clock went at a tenth of the speed
    Row("says_that_it_has_ended", least={"total": 0.3}),
    Row("replaces_clocks_that_nobody_reads", least={"total": 0.3}),
    Row("works_when_its_merges_are_packed", least={"total": 0.3}),
    Row("shows_less_cpu_time", least={"cpu_seconds": 0.4}),
    Row("shows_more_cpu_time"),
    Row("lets_a_child_work", least={"cpu_seconds": 0.3}),
    Row("lets_an_orphan_work", least={"cpu_seconds": 0.4}),
    Row("daemons_from_the_start:train", least={"cpu_seconds": 0.4}),
]
HIDDEN_WORK = [
    Row(
        "learns_while_its_answer_is_written", "rejected", "its merges are not those that it had when its call returned"
    ),
    Row("early_learners:train", "error", r"LookupError: there is no job yet: \[\]" + PLACE),
    Row(
        "early_learners:impatient",
        "rejected",
        NOT_IN_ITS_CALL.format("between receiving the job and starting the call"),
        slow=True,
    ),
    Row(
        "early_learners:described",
        "rejected",
        NOT_IN_ITS_CALL.format("between receiving the job and starting the call"),
        slow=True,
    ),
    Row("works_behind_its_call", "rejected", NOT_IN_ITS_CALL.format("after its call"), slow=True),
    Row("prepared:train"),
    Row("halts_its_guard", "rejected", "it halted its guard, without which nothing is known of its time", slow=True),
    Row("ends_its_guard", "rejected", "its guard ended before it, so nothing is known of its time", slow=True),
]


def rows(*groups: list[Row]) -> list[Any]:
    named = [(row, "-".join([row.trick, *row.job])) for group in groups for row in group]
    return [pytest.param(row, id=name, marks=pytest.mark.slow if row.slow else ()) for row, name in named]


@pytest.mark.parametrize("row", rows(ENDS, RESULTS, METERS, MANNERS, CLOCKS, HIDDEN_WORK))
def test_every_trick_has_its_outcome(measured: Measure, monkeypatch: pytest.MonkeyPatch, row: Row) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")  # a process that cannot write what is buffered ends otherwise
    answer, output = measured(row.trick, **row.job)
    assert answer["status"] == row.status, answer
    assert re.fullmatch(row.reason, str(answer["reason"]))
    assert all(answer[name] > least for name, least in row.least.items()), answer
    assert answer.get("cpu_seconds") is None or answer["cpu_seconds"] < 10
    if row.status == "ok":
        assert unpacked((output / "merges").read_bytes()) == MERGES
    elif row.status == "error":
        assert not (output / "merges").is_file() or answer["reason"].startswith((NO_ANSWER, "its process ended"))
    shutil.rmtree(output)


def test_the_traceback_of_an_exception_is_kept(measured: Measure) -> None:
    assert "in raises" in measured("raises")[0]["stderr_tail"]


def test_what_was_printed_is_kept_by_its_end_only(measured: Measure) -> None:
    tail = measured("prints")[0]["stderr_tail"]
    assert len(tail) <= 2000
    assert tail.endswith("and on standard error\n")


@pytest.mark.parametrize(
    "wrong",
    [("a", "b"), (b"a", b"b", b""), (b"a",), (bytearray(b"a"), b"b"), b"ab", (97, 98), {b"a": 1, b"b": 2}, None],
)
def test_a_merge_is_a_pair_of_bytes(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"^merge 2 is .*, not a pair of bytes$"):
        expect_merges([(b"a", b"b"), wrong])


def test_a_long_wrong_merge_is_shown_shortened() -> None:
    with pytest.raises(ValueError, match=r"^merge 1 is 'x{199}\.\.\., not a pair of bytes$"):
        expect_merges(["x" * 10_000])


# Limits.


@pytest.mark.parametrize(
    ("trainer", "at", "status", "merges"),
    [
        ("hangs_after_some_merges", 5, "timeout", 5),
        ("stops_when_told", 3, "timeout", 3),
        ("stops_too_late", NUM_MERGES, "ok", NUM_MERGES),
    ],
)
def test_a_trainer_over_its_time_is_stopped_with_the_merges_made_so_far(
    measured: Measure, monkeypatch: pytest.MonkeyPatch, trainer: str, at: int, status: str, merges: int
) -> None:
    limits_wait(monkeypatch, lambda done: done == at)
    answer, output = measured(trainer, BRIEF)
    assert (answer["status"], answer["merges_done"]) == (status, merges)
    assert answer["reason"] == ("over limits.wall=0.3 s" if status == "timeout" else None)
    assert unpacked((output / "merges").read_bytes()) == MERGES[:merges]


@pytest.mark.parametrize(
    ("trainer", "seconds"),
    [
        ("hangs", 0.001),
        ("slow_to_import:train", 0.001),
        pytest.param("lets_go_of_the_interpreter_seldom", 0.4, marks=pytest.mark.slow),
        pytest.param("hangs_without_letting_go", 0.4, marks=pytest.mark.slow),
        pytest.param("hangs_and_will_not_be_ended", 0.4, marks=pytest.mark.slow),
        pytest.param("hangs_with_every_descriptor_closed", 0.8, marks=pytest.mark.slow),
        pytest.param("prints_without_end", 0.8, marks=pytest.mark.slow),
    ],
)
def test_a_limit_on_time_holds_whatever_a_trainer_does(measured: Measure, trainer: str, seconds: float) -> None:
    answer, output = measured(trainer, Limits(wall_seconds=seconds))
    assert (answer["status"], answer["reason"]) == ("timeout", f"over limits.wall={seconds:g} s")
    assert len(answer["stderr_tail"]) <= 2000
    assert sum(file.stat().st_size for file in output.rglob("*")) < 1 << 30
    if trainer == "slow_to_import:train":  # its call has not begun
        assert not {"total", "seconds", "merges_done"} & set(answer)
    if trainer == "hangs":
        assert answer.get("merges_done", 0) == 0
    if "without_letting_go" in trainer or "will_not" in trainer:
        assert "merges_done" not in answer
        assert answer["peak_rss_bytes"] > 0  # as the parent saw it


@pytest.mark.slow
def test_a_limit_on_time_holds_for_one_that_says_the_words_of_the_clock_without_end(measured: Measure) -> None:
    assert measured("talks_without_end", Limits(wall_seconds=0.8))[0]["status"] in ("timeout", "rejected")


@pytest.mark.parametrize(
    ("trainer", "reason"),
    [
        pytest.param(
            "maps_without_end", "its processes held over limits.memory=100000000 bytes", marks=pytest.mark.slow
        ),
        ("lets_children_allocate", "its processes held over limits.memory=100000000 bytes"),
        pytest.param(
            "lets_a_stranger_allocate", "its processes held over limits.memory=100000000 bytes", marks=pytest.mark.slow
        ),
        ("allocates_without_end", "its processes held over limits.memory=100000000 bytes"),
        ("allocates_at_once", "an allocation failed under the memory limit"),
    ],
)
def test_a_trainer_over_its_memory_is_ended(measured: Measure, trainer: str, reason: str) -> None:
    answer, _ = measured(trainer, Limits(wall_seconds=30, memory_bytes=100_000_000))
    assert (answer["status"], answer["reason"]) == ("out_of_memory", reason)


def test_several_processes_are_measured_together(measured: Measure) -> None:
    assert measured("works_beside_a_child")[0]["memory_is_sampled"] is True


@pytest.mark.slow
@pytest.mark.usefixtures("looks")
def test_memory_that_was_held_is_not_hidden(measured: Measure) -> None:
    answer, _ = measured("hides_its_memory")
    assert (answer["status"], answer["reason"]) == ("ok", None)
    assert answer["peak_rss_bytes"] > 100 << 20


# Nothing is left: no process, no file.


def started_in(folder: Path) -> list[int]:
    """The processes whose numbers a trainer has left."""
    told = folder / "child"
    return [int(line) for line in told.read_text().split()] if told.exists() else []


@pytest.mark.parametrize(
    ("trainer", "processes"),
    [
        ("leaves_a_child", 1),
        ("leaves_a_child_in_a_session_of_its_own", 1),
        ("leaves_a_daemon", 1),
        ("leaves_a_child_and_hangs", 1),
        ("lets_a_stranger_allocate", 1),
        pytest.param("multiplies", 20, marks=pytest.mark.slow),
    ],
)
def test_no_process_is_left_behind(
    measured: Measure, trainer: str, processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits_wait(monkeypatch, lambda _: len(started_in(tmp_path)) >= processes)
    hangs = not trainer.startswith("leaves") or trainer.endswith("hangs")
    answer, _ = measured(trainer, BRIEF if hangs else None)
    assert answer["status"] == ("timeout" if hangs else "ok")
    started = started_in(tmp_path)
    assert len(started) >= processes
    wait_until(lambda: not any(map(is_running, started)), f"the end of the processes that {trainer}")


def test_an_interruption_is_heeded_in_every_thread(
    measured: Measure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python itself tells the main thread alone."""
    asked: list[int] = []
    monkeypatch.setattr(process, "asked_to_end", asked)
    with ThreadPoolExecutor() as threads:
        measuring = threads.submit(measured, "leaves_a_child_and_hangs")
        wait_until(lambda: bool(started_in(tmp_path)), "a trainer that has started its child")
        asked.append(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            measuring.result()
    assert not any(is_running(number) for number in started_in(tmp_path))


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(
    "trainer",
    [
        "hangs_with_every_descriptor_closed",
        pytest.param("holds_the_lock_beside_a_stranger", marks=pytest.mark.slow),
    ],
)
def test_a_process_that_hears_nothing_ends_when_its_parent_is_killed(tmp_path: Path, trainer: str) -> None:
    """Its parent's pipe cannot tell it, for it is closed, or because nothing in it can run; nor can any signal."""
    job = {"kind": "train", "target": f"unruly:{trainer}", "params": {}, "threads": 1}
    job |= {"words": str(tmp_path / "words"), "num_merges": 1, "tie_break": "greatest_bytes", "min_count": 1}
    program = (
        "import json, sys; from pathlib import Path; from harness.measure.process import Limits, measure\n"
        "measure(json.loads(sys.argv[1]), Path(sys.argv[2]), Limits())"
    )
    command = [sys.executable, "-c", program, json.dumps(job), str(tmp_path / "output")]
    number = 2 if trainer == "holds_the_lock_beside_a_stranger" else 1
    with subprocess.Popen(command, cwd=CHECKOUT) as parent:
        wait_until(lambda: len(started_in(tmp_path)) == number, "the hanging")
        parent.kill()
    wait_until(lambda: not any(map(is_running, started_in(tmp_path))), "the end of the measured process and its child")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trainer", "said"),
    [("daemons:asks_that_of_an_earlier_block", "was alone\n"), ("keeps_its_merges_on_disk", "")],
)
def test_nothing_of_an_earlier_block_is_found(
    measured: Measure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trainer: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        answer, output = measured(trainer)
        assert (answer["status"], answer["stderr_tail"]) == ("ok", said)
        assert said or answer["cpu_seconds"] > 0.25
        shutil.rmtree(output)


@pytest.mark.slow
def test_code_planted_where_python_looks_at_its_start_is_not_run_in_a_later_block(
    measured: Measure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_no_environment = getattr(sys, "_base_executable", sys.executable)  # others have no packages of a user's own
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        answer, output = measured("planting:plants_code_for_a_later_start", interpreter=of_no_environment)
        assert (answer["status"], answer["stderr_tail"]) == ("ok", "planted it\n")
        shutil.rmtree(output)


# How a target is called.


def test_a_compiled_function_without_a_signature_is_taken_to_keep_the_contract() -> None:
    meter, offered = Meter(), {"threads": 2, "min_count": 1}
    assert arguments_for(min, [1, 2], meter, offered, {"key": 3}) == ([1, 2, meter], {"min_count": 1, "key": 3})


def test_the_meter_is_not_put_where_something_else_belongs() -> None:
    def with_a_rate(word_counts: Any, num_merges: int, rate: float = 0.5) -> None: ...

    def with_a_meter_of_another_name(word_counts: Any, num_merges: int, watch: Any, **options: Any) -> None: ...

    meter = Meter()
    assert arguments_for(with_a_rate, [{}, 1], meter, {"threads": 1}, {}) == ([{}, 1], {})
    assert arguments_for(with_a_meter_of_another_name, [{}, 1], meter, {}, {"rate": 1}) == (
        [{}, 1, meter],
        {"rate": 1},
    )


def test_threads_reach_a_trainer_that_names_them(measured: Measure) -> None:
    assert measured("takes_threads", threads=2)[0]["takes_threads"] is True


def test_a_measured_process_and_its_children_keep_to_the_cores_they_are_given(measured: Measure) -> None:
    core = max(os.sched_getaffinity(0))
    answer, _ = measured("tells_its_cores", affinity=[core])
    assert answer["status"] == "ok"
    assert answer["stderr_tail"].split() == [str([core])] * 2


def test_a_tie_break_reaches_a_trainer_by_its_name(measured: Measure) -> None:
    answer, output = measured("variants.heap:train", tie_break="smallest_bytes")
    assert answer["status"] == "ok"
    expected = train(WORDS, NUM_MERGES, tie_break=TieBreak.SMALLEST_BYTES)
    assert unpacked((output / "merges").read_bytes()) == expected


@pytest.mark.slow
def test_pypy_learns_the_same_merges(measured: Measure) -> None:
    pypy = shutil.which("pypy3")
    if pypy is None:
        pytest.skip("pypy3 is not installed")
    answer, output = measured("variants.heap:train", interpreter=pypy)
    assert (answer["status"], answer["interpreter"][:4]) == ("ok", "PyPy")
    assert unpacked((output / "merges").read_bytes()) == MERGES


# The account beside an answer.


def test_a_parent_that_ignores_its_children_measures_as_any(measured: Measure) -> None:
    """What is ignored is inherited by a command that another program starts."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        answer, _ = measured("lets_an_orphan_work")
        assert guarded(lambda: subprocess.run(["false"], check=False).returncode) == 1
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert (answer["status"], answer["reason"]) == ("ok", None)
    assert answer["cpu_seconds"] > 0.4


@pytest.mark.slow
@pytest.mark.usefixtures("looks")
def test_a_child_that_nobody_waits_for_is_accounted_as_it_was_last_seen(measured: Measure) -> None:
    answer, _ = measured("works_where_nobody_waits")
    assert (answer["status"], answer["reason"]) == ("ok", None)
    assert answer["cpu_seconds"] > 0.4  # of 0.5 s, after which it was seen once more


def test_an_answer_has_its_account(measured: Measure) -> None:
    answer, _ = measured("works_for_half_a_second")
    witness, seconds, disturbance = answer["witness"], answer["seconds"], answer["disturbance"]
    assert set(seconds) == {"init", "max", "update"}
    assert 0.5 <= seconds["init"] <= sum(seconds.values()) <= answer["total"] <= witness["wall_seconds"]
    assert answer["cpu_seconds"] == witness["cpu_seconds"] > 0
    assert witness["whole_process"] is False
    assert answer["peak_rss_bytes"] > answer["peak_private_bytes"] > 0
    assert answer["laps"] > NUM_MERGES
    last = answer["curve"][-1]
    assert (last["merges"], last["seconds"]) == (NUM_MERGES, seconds)
    assert last["total"] >= answer["total"] - 0.01
    assert answer["tallies"]["heap_pushes"] > 0
    assert min(value for value in disturbance.values() if value is not None) >= 0
    assert disturbance["minor_faults"] is not None
    if Path("/proc/pressure/cpu").exists():
        assert None not in [disturbance[name] for name in ("psi_cpu_seconds", "psi_io_seconds", "steal_seconds")]


def test_a_call_that_waits_has_given_way_of_itself(measured: Measure) -> None:
    assert measured("naps_often")[0]["disturbance"]["voluntary_switches"] >= 50


def test_a_process_whose_channel_is_closed_is_accounted_as_a_whole(measured: Measure) -> None:
    answer, _ = measured("closes_every_descriptor")
    assert answer["status"] == "ok"
    assert answer["witness"]["whole_process"] is True
    assert answer["disturbance"] is None


def test_tallies_are_the_same_in_every_process(measured: Measure, tmp_path: Path) -> None:
    first, output = measured("variants.heap:train")
    shutil.rmtree(output)
    second, _ = measured("variants.heap:train")
    assert first["tallies"] == second["tallies"]
    assert (tmp_path / "output" / "merges").exists()


def test_a_module_that_takes_long_to_import_is_let_be(measured: Measure) -> None:
    answer, _ = measured("dear_to_import:train")
    assert (answer["status"], answer["reason"]) == ("ok", None)
    assert answer["witness"]["import_cpu_seconds"] > 0.25


# Counters.


@pytest.mark.parametrize(
    ("counter", "status", "reason"),
    [
        ("counter_without_words", "error", "it returned dict, not WordCounts"),
        ("counter_that_dies", "killed", "its process was ended by SIGKILL"),
        ("counter_whose_offsets_fall", "error", r"its answer is invalid: its offsets fall"),
        (
            "counter_that_counts_when_its_words_are_written",
            "rejected",
            "its words are not those that it had when its call returned",
        ),
        pytest.param(
            "counter_that_works_when_its_words_are_written",
            "rejected",
            NOT_IN_ITS_CALL.format("after its call"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_counter_ends_as_a_trainer_does(
    counted: Callable[..., Answer], counter: str, status: str, reason: str
) -> None:
    answer = counted(f"unruly:{counter}")
    assert answer["status"] == status
    assert re.fullmatch(reason, answer["reason"])


def test_what_a_counter_says_of_its_words_is_not_believed(counted: Callable[..., Answer]) -> None:
    answer = counted("unruly:counter_that_tells_of_other_words")
    words = WordCounts.from_items([(b"low", 2), (b"lower", 1)])
    assert {name: answer["words"][name] for name in ("words", "pre_tokens", "sha256")} == word_store.facts(words)


def test_a_counter_that_stops_when_told_has_not_counted(counted: Callable[..., Answer], tmp_path: Path) -> None:
    answer = counted("unruly:counter_that_stops_when_told", Limits(wall_seconds=0.6))
    assert answer["status"] == "timeout"
    assert not (tmp_path / "output" / "words").exists()


def test_words_pass_from_process_to_process(counted: Callable[..., Answer], tmp_path: Path) -> None:
    answer = counted("variants.counting.pretokenize:serial")
    assert (answer["words"]["words"], answer["words"]["pre_tokens"]) == (2, 3)
    words, manifest = word_store.read(tmp_path / "output" / "words")
    assert dict(words) == {b"low": 2, b"lower": 1}
    assert manifest["sha256"] == answer["words"]["sha256"]
