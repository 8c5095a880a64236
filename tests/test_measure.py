"""One measurement survives what it measures, says what happened, and believes no answer that witnesses contradict."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import forgers
import pytest
from workbench import BRIEF, CHECKOUT, TESTS, is_running, limits_wait, wait_until

from harness.common.errors import guarded
from harness.measure import process
from harness.measure.control_group import ControlGroup
from harness.measure.process import Answer, Attended, Limits, measure
from harness.measure.processes import JobProcesses
from harness.worker import word_store
from harness.worker.__main__ import Measured
from harness.worker.calling import arguments_for, expect_merges
from harness.worker.channel import Channel
from harness.worker.merges_bytes import unpacked
from variants.contract import Meter, TieBreak, WordCounts
from variants.heap import train

pytestmark = pytest.mark.xdist_group("one after the other")
WORDS = WordCounts.from_items([(b"low", 5), (b"lower", 2), (b"widest", 3), (b"newest", 6), (b"\x00\xff\x00\xff", 2)])
NUM_MERGES = 8
MERGES = train(WORDS, NUM_MERGES)

ALIKE = {
    "unruly:cannot_write_files",
    "leaves_a_number_without_end",
    "raises_the_unspeakable",
    "ends_well_without_an_answer",
    "unruly:nothing",
    "leaves_a_pipe_for_an_answer",
    "leaves_endless_zeros_for_merges",
    "puts_a_link_in_the_place_of_its_folder",
    "calls_sys_exit",
    "raises_a_keyboard_interrupt",
    "aborts",
    "raises_what_is_not_text",
    "recurses",
    "returns_a_generator",
    "returns_promises",
    "returns_it_in_words",
    "returns_an_impostor",
    "leaves_half_an_answer",
    "leaves_nested_brackets",
    "leaves_another_status",
}
"""Trainers whose end, or whose answer, is told as that of another is: slow tests have them all."""

Measure = Callable[..., tuple[Answer, Path]]


def without_those_alike(*cases: tuple[str, ...]) -> list[Any]:
    return [pytest.param(*case, marks=pytest.mark.slow if case[0] in ALIKE else ()) for case in cases]


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measure:
    """Measures a trainer of unruly.py (or any target) on the words; returns the answer and the folder it left."""
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
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
def looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a trainer know how often its processes were looked at."""
    path = tmp_path / "looks"
    path.touch()
    monkeypatch.setenv("FORGERS_LOOKS", str(path))
    look = JobProcesses.look

    def look_and_tell(processes: JobProcesses) -> None:
        look(processes)
        with path.open("ab") as file:
            file.write(b".")

    monkeypatch.setattr(JobProcesses, "look", look_and_tell)


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    """Measures a word counter on a small file."""
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    (tmp_path / "text").write_text("low low lower")

    def run(target: str, limits: Limits | None = None) -> Answer:
        corpus = {"path": str(tmp_path / "text"), "special_tokens": [], "pattern": "[a-z]+", "partial": True}
        job = {"kind": "count", "target": target, "params": {}, "threads": 1, "corpus": corpus}
        return measure(job, tmp_path / "output", limits or Limits(wall_seconds=30))

    return run


# Ends.


@pytest.mark.parametrize(
    ("trainer", "status", "reason"),
    without_those_alike(
        ("segfaults", "killed", "its process was ended by SIGSEGV"),
        ("kills_itself", "killed", "its process was ended by signal 40"),
        ("ends_at_once", "error", "its process ended without an answer, exit status 7"),
        ("calls_sys_exit", "error", "SystemExit: no more today"),
        (
            "raises_the_unspeakable",
            "error",
            "Unspeakable: an exception that cannot be put into words",
        ),
        ("raises_the_unbearable", "error", "Unbearable: an exception that cannot be put into words"),
        ("raises_a_keyboard_interrupt", "error", "KeyboardInterrupt"),
        ("aborts", "killed", "its process was ended by SIGABRT"),
        (
            "ends_well_without_an_answer",
            "error",
            "its process ended without an answer, exit status 0",
        ),
        ("raises_what_is_not_text", "error", "half a character: \udcff"),
        ("recurses", "error", "RecursionError: maximum recursion depth exceeded"),
        ("is_unavailable", "skipped", "needs a library that is not there; install it"),
        ("wants_more", "error", "TypeError: wants_more() missing 1 required keyword-only argument: 'temperature'"),
        (
            "unruly:nothing",
            "error",
            "AttributeError: module 'unruly' has no attribute 'nothing'",
        ),
        ("not_there:train", "error", "ModuleNotFoundError: No module named 'not_there'"),
    ),
)
def test_every_end_has_its_status_and_its_reason(measured: Measure, trainer: str, status: str, reason: str) -> None:
    answer, output = measured(trainer)
    # What never ran has no place.
    said = answer["reason"] if trainer in ("wants_more", "not_there:train") else without_place(answer["reason"])
    assert (answer["status"], said) == (status, reason)
    assert not (output / "merges").exists()


def without_place(reason: str) -> str:
    return re.sub(r" \([\w.]+:\d+, in \w+\)$", "", reason)


def test_an_exception_is_told_with_the_place_where_it_was_raised_and_its_traceback_is_kept(measured: Measure) -> None:
    answer, _ = measured("raises")
    assert re.search(r"^LookupError: nothing here \(unruly\.py:\d+, in raises\)$", answer["reason"])
    assert "in raises" in answer["stderr_tail"]


def test_an_interpreter_that_is_not_there_is_an_error_with_its_name(measured: Measure) -> None:
    answer, _ = measured("takes_two", interpreter="no-such-python")
    assert answer["reason"] == "cannot start no-such-python: No such file or directory"


def test_an_interpreter_that_is_none_is_an_error(measured: Measure) -> None:
    answer, _ = measured("takes_two", interpreter=shutil.which("true"))
    assert answer["reason"] == "its process ended without an answer, exit status 0"


# Limits.


def test_a_trainer_over_its_time_is_stopped_with_the_merges_made_so_far(
    measured: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits_wait(monkeypatch, lambda merges: merges == 5)
    answer, output = measured("hangs_after_some_merges", BRIEF)
    assert (answer["status"], answer["reason"]) == ("timeout", "over limits.wall=0.3 s")
    assert answer["merges_done"] == 5
    assert unpacked((output / "merges").read_bytes()) == MERGES[:5]


def test_a_native_trainer_that_stops_when_told_is_no_finished_one(
    measured: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits_wait(monkeypatch, lambda merges: merges == 3)
    answer, output = measured("stops_when_told", BRIEF)
    assert (answer["status"], answer["merges_done"]) == ("timeout", 3)
    assert unpacked((output / "merges").read_bytes()) == MERGES[:3]


def test_a_trainer_that_has_everything_when_told_to_stop_is_a_finished_one(
    measured: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits_wait(monkeypatch, lambda merges: merges == NUM_MERGES)
    answer, _ = measured("stops_too_late", BRIEF)
    assert (answer["status"], answer["merges_done"]) == ("ok", NUM_MERGES)


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ["hangs_without_letting_go", "hangs_and_will_not_be_ended"])
def test_a_trainer_that_holds_the_interpreter_lock_is_ended_all_the_same(measured: Measure, trainer: str) -> None:
    answer, _ = measured(trainer, Limits(wall_seconds=0.4))
    assert answer["status"] == "timeout"
    assert "merges_done" not in answer
    assert answer["peak_rss_bytes"] > 0  # as the parent saw it


@pytest.mark.slow
def test_what_a_stopped_call_goes_on_with_is_not_held_against_it(measured: Measure) -> None:
    answer, _ = measured("lets_go_of_the_interpreter_seldom", Limits(wall_seconds=0.4))
    assert (answer["status"], answer["reason"]) == ("timeout", "over limits.wall=0.4 s")


def test_a_limit_that_is_over_at_once_is_a_timeout(measured: Measure) -> None:
    answer, _ = measured("hangs", Limits(wall_seconds=0.001))
    assert answer["status"] == "timeout"


def test_a_limit_that_is_over_before_the_call_begins_is_a_timeout_without_figures(measured: Measure) -> None:
    answer, _ = measured("slow_to_import:train", Limits(wall_seconds=0.001))
    assert (answer["status"], answer["reason"]) == ("timeout", "over limits.wall=0.001 s")
    assert not {"total", "seconds", "merges_done"} & set(answer)


def test_a_call_that_is_stopped_while_its_beginning_is_witnessed_has_no_figures() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        about_to_begin = Measured({"kind": "train", "output": "none"}, Channel(theirs.fileno()))
        assert about_to_begin.stopped() == {"status": "stopped", "reason": None}


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ["hangs_with_every_descriptor_closed", "talks_without_end", "prints_without_end"])
def test_a_limit_on_time_holds_whatever_is_said_meanwhile(measured: Measure, trainer: str) -> None:
    answer, output = measured(trainer, Limits(wall_seconds=0.8))
    # The one that says the clock's own words without end may find that they are held against it.
    assert answer["status"] in (("timeout", "rejected") if trainer == "talks_without_end" else ("timeout",))
    assert len(answer["stderr_tail"]) <= 2000
    assert sum(file.stat().st_size for file in output.rglob("*")) < 1 << 30


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


# Answers.


@pytest.mark.parametrize(
    ("trainer", "reason"),
    without_those_alike(
        ("returns_none", "it returned NoneType, not a list of merges"),
        ("returns_a_generator", "it returned list_iterator, not a list of merges"),
        ("returns_promises", "it returned Lazy, not a list of merges"),
        ("returns_integers", "merge 1 is 1, not a pair of bytes"),
        ("returns_it_in_words", "it returned str, not a list of merges"),
        ("returns_an_impostor", "it returned Impostor, not a list of merges"),
        ("returns_lazy_pairs", "merge 1 is LazyPair of bytes and bytes; only a plain tuple of plain bytes is a merge"),
        ("returns_lazy_bytes", "merge 1 is tuple of LazyBytes and bytes; only a plain tuple of plain bytes is a merge"),
    ),
)
def test_an_answer_of_another_form_is_an_error_that_shows_it(measured: Measure, trainer: str, reason: str) -> None:
    answer, output = measured(trainer)
    assert (answer["status"], answer["reason"]) == ("error", reason)
    assert not (output / "merges").exists()


@pytest.mark.parametrize(
    ("trainer", "reason"),
    without_those_alike(
        ("leaves_garbage", "what it left is no answer (not JSON)"),
        ("leaves_half_an_answer", "what it left is no answer (not JSON)"),
        ("leaves_nested_brackets", "what it left is no answer (not JSON)"),
        ("leaves_a_list", "what it left is no answer (no status)"),
        ("leaves_a_bare_ok", "what it left is no answer (no counted)"),
        ("leaves_another_status", "what it left is no answer (no status)"),
        ("leaves_numbers_that_are_none", "what it left is no answer (total)"),
        ("leaves_a_folder_for_an_answer", "what it left is no answer (Is a directory)"),
        (
            "leaves_a_pipe_for_an_answer",
            "what it left is no answer (answer.json is no plain file)",
        ),
        ("leaves_endless_zeros_for_an_answer", "what it left is no answer (answer.json is no plain file)"),
        ("leaves_a_pipe_for_merges", "what it left is no answer (merges is no plain file)"),
        (
            "leaves_endless_zeros_for_merges",
            "what it left is no answer (merges is no plain file)",
        ),
        (
            "leaves_a_hole_for_merges",
            "what it left is no answer (merges is of 4398046511104 bytes, and 1073741824 are the most)",
        ),
        ("leaves_a_number_without_end", "what it left is no answer (peak_rss_bytes)"),
        ("unruly:cannot_write_files", "its process ended without an answer, exit status 1"),
        ("removes_its_folder", "its process ended without an answer, exit status 1"),
        (
            "puts_a_link_in_the_place_of_its_folder",
            "its process ended without an answer, exit status 0",
        ),
        ("locks_its_folder", "its process ended without an answer, exit status 0"),
    ),
)
def test_garbage_in_the_place_of_an_answer_is_an_error(
    measured: Measure, monkeypatch: pytest.MonkeyPatch, trainer: str, reason: str
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")  # a process that cannot write what is buffered ends otherwise
    answer, output = measured(trainer)
    assert (answer["status"], answer["reason"]) == ("error", reason)
    shutil.rmtree(output)


def test_folders_in_folders_without_end_are_removed(measured: Measure) -> None:
    answer, output = measured("nests_folders")
    assert (answer["status"], answer["reason"]) == ("ok", None)
    shutil.rmtree(output)


def test_an_answer_that_speaks_of_merges_that_are_not_there_is_an_error(measured: Measure) -> None:
    answer, _ = measured("leaves_merges_that_are_none")
    assert answer["status"] == "error"
    assert "No such file or directory" in answer["reason"]


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


# Noise, leavings and meddling: the trainer's own affair, as long as its merges are right.


@pytest.mark.parametrize(
    "trainer",
    [
        "prints",
        pytest.param("closes_standard_output", marks=pytest.mark.slow),
        pytest.param("reads_standard_input", marks=pytest.mark.slow),
        "closes_every_descriptor",
        "writes_to_every_descriptor",
        pytest.param("changes_folder", marks=pytest.mark.slow),
        "leaves_a_thread",
        pytest.param("returns_twice", marks=pytest.mark.slow),
        "takes_two",
        "takes_anything",
        pytest.param("takes_keywords", marks=pytest.mark.slow),
        pytest.param("takes_no_meter", marks=pytest.mark.slow),
        pytest.param("takes_the_meter_by_name", marks=pytest.mark.slow),
    ],
)
def test_odd_manners_cost_nothing(measured: Measure, trainer: str) -> None:
    answer, output = measured(trainer)
    assert (answer["status"], answer["reason"]) == ("ok", None)
    assert unpacked((output / "merges").read_bytes()) == MERGES


def started_in(folder: Path) -> list[int]:
    """The processes whose numbers a trainer has left."""
    told = folder / "child"
    return [int(line) for line in told.read_text().split()] if told.exists() else []


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


@pytest.mark.parametrize(
    "trainer",
    ["leaves_a_child", "leaves_a_child_in_a_session_of_its_own", "leaves_a_daemon", "leaves_a_child_and_hangs"],
)
def test_no_process_is_left_behind(
    measured: Measure, trainer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits_wait(monkeypatch, lambda _: bool(started_in(tmp_path)))
    hangs = trainer.endswith("hangs")
    attend, ended_by = Attended.attend, []

    def attended_to(attended: Attended, *rest: Any) -> None:
        attend(attended, *rest)
        ended_by.append(attended.stopped_by)

    monkeypatch.setattr(Attended, "attend", attended_to)
    answer, _ = measured(trainer, BRIEF if hangs else None)
    assert answer["status"] == ("timeout" if hangs else "ok")
    assert ended_by[0] == ("wall" if hangs else None)  # after which an empty job may be looked at
    (child,) = started_in(tmp_path)
    wait_until(lambda: not is_running(child), f"the end of the process that {trainer}")


@pytest.mark.slow
def test_processes_that_multiply_are_all_ended(
    measured: Measure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits_wait(monkeypatch, lambda _: len(started_in(tmp_path)) > 20)
    answer, _ = measured("multiplies", BRIEF)
    assert answer["status"] == "timeout"
    started = started_in(tmp_path)
    wait_until(lambda: not any(map(is_running, started)), "the end of every process that was started")


def test_a_child_without_mark_and_session_is_ended_too(
    measured: Measure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits_wait(monkeypatch, lambda _: bool(started_in(tmp_path)))
    answer, _ = measured("lets_a_stranger_allocate", BRIEF)
    assert answer["status"] == "timeout"
    wait_until(lambda: not any(map(is_running, started_in(tmp_path))), "the end of the stranger")


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


def test_what_was_printed_is_kept_by_its_end_only(measured: Measure) -> None:
    tail = measured("prints")[0]["stderr_tail"]
    assert len(tail) <= 2000
    assert tail.endswith("and on standard error\n")


def test_a_measured_process_and_its_children_keep_to_the_cores_they_are_given(measured: Measure) -> None:
    core = max(os.sched_getaffinity(0))
    answer, _ = measured("tells_its_cores", affinity=[core])
    assert answer["status"] == "ok"
    assert answer["stderr_tail"].split() == [str([core])] * 2


def test_threads_reach_a_trainer_that_names_them(measured: Measure) -> None:
    assert measured("takes_threads", threads=2)[0]["takes_threads"] is True


@pytest.mark.parametrize(("name", "value"), [("tie_break", "raw_bytes"), ("min_count", 2)])
def test_a_trainer_without_an_option_is_not_run_as_if_it_had_it(measured: Measure, name: str, value: Any) -> None:
    answer, _ = measured("takes_two", **{name: value})
    assert answer["reason"] == f"unruly:takes_two takes no {name}, so it cannot run with another than the default"


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


# Witnesses.


@pytest.mark.parametrize("trainer", ["speeds_the_clock_up", "stops_the_clock"])
def test_a_trainer_that_replaces_the_clock_is_rejected(measured: Measure, trainer: str) -> None:
    answer, _ = measured(trainer)
    assert (answer["status"], answer["reason"]) == (
        "rejected",
        "time.perf_counter was replaced while it ran, so its phases mean nothing",
    )
    assert answer["total"] < 30  # the total is taken from a clock that cannot be replaced from outside


def test_phases_that_do_not_fit_into_the_total_are_rejected(measured: Measure) -> None:
    answer, _ = measured("hands_over_too_much_time")
    assert answer["status"] == "rejected"
    assert answer["reason"].startswith("its phases claim 1000.000 s of the ")


@pytest.mark.parametrize(
    ("trainer", "reason"),
    [
        ("hands_over_no_number", "it gave its meter nan seconds of update"),
        ("hands_over_less_than_no_time", "it gave its meter -5.0 seconds of update"),
        ("tallies_less_than_nothing", "it tallied -3 for pair_updates; a tally is a whole number, 0 or more"),
        ("tallies_beyond_bounds", "it tallied over 2**63 for pair_updates; a tally is a whole number, 0 or more"),
        ("tells_progress_in_words", "invalid literal for int() with base 10: 'half way'"),
        ("follows_nothing", "TypeError: object of type 'NoneType' has no len()"),
    ],
)
def test_a_meter_used_wrongly_is_the_trainers_error(measured: Measure, trainer: str, reason: str) -> None:
    answer, _ = measured(trainer)
    assert (answer["status"], without_place(answer["reason"])) == ("error", reason)


def test_what_is_unavailable_without_a_word_has_a_reason_all_the_same(measured: Measure) -> None:
    """A record without one would be broken."""
    answer, _ = measured("is_unavailable_without_a_word")
    assert (answer["status"], answer["reason"]) == ("skipped", "it does not say why")


def test_a_tally_that_is_no_number_is_the_trainers_error(measured: Measure) -> None:
    answer, _ = measured("tallies_what_cannot_be_counted")
    assert answer["status"] == "error"
    assert "complex" in answer["reason"]


@pytest.mark.parametrize(
    ("trainer", "reason"),
    [
        ("shows_less_time_than_passed", r"its clock shows 0\.0\d\d s, its parent saw \d+\.\d+ s pass"),
        ("shows_more_time_than_passed", r"its clock shows \d+\.\d+ s, its parent saw \d+\.\d+ s pass"),
        ("shows_less_cpu_time", r"it claims -?0\.\d+ s of CPU time, the kernel gave it \d+\.\d+ s"),
        ("shows_more_cpu_time", r"it claims \d+\.\d+ s of CPU time, the kernel gave it \d+\.\d+ s"),
        ("learns_while_its_answer_is_written", r"its merges are not those that it had when its call returned"),
        ("forges_its_answer", r"its clock shows 0\.001 s, its parent saw \d+\.\d+ s pass"),
    ],
)
def test_what_the_witnesses_contradict_is_rejected(measured: Measure, trainer: str, reason: str) -> None:
    answer, _ = measured(trainer)
    assert answer["status"] == "rejected"
    assert re.fullmatch(reason, answer["reason"])


def test_packing_the_merges_is_in_the_clock(measured: Measure) -> None:
    answer, _ = measured("works_when_its_merges_are_packed")
    assert answer["total"] > 0.3


def test_a_short_call_cannot_turn_both_clocks_back(measured: Measure) -> None:
    answer, _ = measured("turns_both_clocks_back")
    assert (answer["status"], answer["reason"]) == ("ok", None)
    assert answer["total"] > 0.018  # of 0.02 s; its own clock went at a tenth of the speed


def test_what_a_module_makes_once_is_made_before_the_clock(measured: Measure) -> None:
    assert measured("prepared:train")[0]["reason"] is None


def test_a_job_is_told_when_its_code_has_been_imported(measured: Measure) -> None:
    answer, _ = measured("early_learners:train")
    assert (answer["status"], without_place(answer["reason"])) == ("error", "LookupError: there is no job yet: []")


@pytest.mark.slow
def test_a_trainer_that_has_itself_told_its_job_while_it_is_imported_is_rejected(measured: Measure) -> None:
    answer, _ = measured("early_learners:impatient")
    assert answer["status"] == "rejected"
    assert re.fullmatch(r"it used 0\.\d+ s of CPU time when it knew its job, before its call", answer["reason"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trainer", "reason"),
    [
        ("halts_its_guard", "it halted its guard, without which nothing is known of its time"),
        ("has_its_guard_halted_without_end", "it halted its guard, without which nothing is known of its time"),
        ("ends_its_guard", "its guard ended before it, so nothing is known of its time"),
    ],
)
def test_a_trainer_whose_guard_cannot_watch_is_rejected(measured: Measure, trainer: str, reason: str) -> None:
    answer, _ = measured(trainer, Limits(wall_seconds=600))
    assert (answer["status"], answer["reason"]) == ("rejected", reason)


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ["late", "looked_up", "peeping"])
def test_work_while_being_imported_is_rejected(measured: Measure, trainer: str) -> None:
    """Of a trainer whose call is short, also what would be little beside a long one."""
    answer, _ = measured(f"early_learners:{trainer}")
    assert answer["status"] == "rejected"
    assert re.fullmatch(
        r"it used \d\.\d+ s of CPU time before its call, and importing it takes 0\.\d+ s", answer["reason"]
    )


@pytest.mark.slow
def test_work_while_somebody_looks_how_it_is_called_is_rejected(measured: Measure) -> None:
    answer, _ = measured("early_learners:described")
    assert answer["status"] == "rejected"
    assert re.fullmatch(r"it used 0\.\d+ s of CPU time when it knew its job, before its call", answer["reason"])


WORKS_AT_THE_START = """
import os, time
if not os.environ.get("BPE_HARNESS_JOB", "-import").endswith("-import"):
    while time.process_time() < 1.0:
        sum(range(1000))
"""


@pytest.mark.slow
def test_work_while_python_starts_is_rejected(
    measured: Measure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted" / "sitecustomize.py").write_text(WORKS_AT_THE_START)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'planted'}{os.pathsep}{TESTS}")
    answer, _ = measured("unruly:takes_two")
    assert answer["status"] == "rejected"
    assert re.fullmatch(
        r"it used \d\.\d+ s of CPU time before it was imported, and starting takes 0\.\d+ s", answer["reason"]
    )


WORKS_AT_THE_FIRST_START = """
import os, pathlib, time
seen = pathlib.Path(os.environ["PYTHONPATH"].split(os.pathsep)[-1], "seen")
if not os.environ.get("BPE_HARNESS_JOB", "-import").endswith("-import") and not seen.exists():
    seen.touch()
    while time.process_time() < 1.0:
        sum(range(1000))
"""


@pytest.mark.slow
def test_what_started_slowly_once_is_run_again(
    measured: Measure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted" / "sitecustomize.py").write_text(WORKS_AT_THE_FIRST_START)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (tmp_path / "planted", TESTS, tmp_path))))
    answer, output = measured("variants.heap:train")
    assert (tmp_path / "seen").exists()
    assert answer["status"] == "ok"
    assert unpacked((output / "merges").read_bytes()) == MERGES


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


@pytest.mark.slow
def test_a_module_that_takes_long_to_import_is_let_be(measured: Measure) -> None:
    answer, _ = measured("dear_to_import:train")
    assert (answer["status"], answer["reason"]) == ("ok", None)
    assert answer["witness"]["import_cpu_seconds"] > 0.25


@pytest.mark.slow
def test_nothing_kept_in_the_usual_places_is_found_again(
    measured: Measure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        answer, output = measured("keeps_its_merges_on_disk")
        assert answer["status"] == "ok"
        assert answer["cpu_seconds"] > 0.25
        shutil.rmtree(output)


def test_the_cpu_time_of_an_orphan_is_accounted(measured: Measure) -> None:
    answer, _ = measured("lets_an_orphan_work")
    assert (answer["status"], answer["reason"]) == ("ok", None)
    assert answer["cpu_seconds"] > 0.4


def test_the_cpu_time_of_a_daemon_from_before_the_call_is_accounted(measured: Measure) -> None:
    answer, _ = measured("daemons_from_the_start:train")
    assert (answer["status"], answer["reason"]) == ("ok", None)
    assert answer["cpu_seconds"] > 0.4


@pytest.mark.slow
def test_a_daemon_of_an_earlier_block_is_gone(measured: Measure) -> None:
    for _ in range(2):
        answer, output = measured("daemons:asks_that_of_an_earlier_block")
        assert (answer["status"], answer["stderr_tail"]) == ("ok", "was alone\n")
        shutil.rmtree(output)


def test_a_parent_that_ignores_its_children_measures_as_any(measured: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is ignored is inherited by a command that another program starts; and no control group may be made."""
    monkeypatch.setattr("harness.measure.control_group.own_groups", list)
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
def test_the_cpu_time_of_a_child_that_nobody_waits_for_is_accounted(measured: Measure) -> None:
    with ControlGroup() as group:
        if group.members is None:
            pytest.skip("no control group may be made here, and without one the kernel forgets such a child")
    assert measured("works_where_nobody_waits")[0]["cpu_seconds"] > 0.4


@pytest.mark.slow
@pytest.mark.usefixtures("looks")
def test_without_a_control_group_it_is_accounted_as_it_was_last_seen(
    measured: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.measure.control_group.own_groups", list)
    answer, _ = measured("works_where_nobody_waits")
    assert (answer["status"], answer["reason"]) == ("ok", None)
    assert answer["cpu_seconds"] > 0.4  # of 0.5 s, after which it was seen once more


@pytest.mark.slow
@pytest.mark.usefixtures("looks")
def test_memory_that_was_held_is_not_hidden(measured: Measure) -> None:
    answer, _ = measured("hides_its_memory")
    assert (answer["status"], answer["reason"]) == ("ok", None)
    assert answer["peak_rss_bytes"] > 100 << 20


@pytest.mark.parametrize("trainer", ["says_that_it_has_ended", "replaces_clocks_that_nobody_reads"])
def test_meddling_that_changes_nothing_is_let_be(measured: Measure, trainer: str) -> None:
    answer, _ = measured(trainer)
    assert (answer["status"], answer["reason"]) == ("ok", None)
    assert answer["total"] > 0.3  # it worked for 0.4 s by another clock


def test_both_witnesses_stand_beside_the_answer(measured: Measure) -> None:
    answer, _ = measured("works_for_half_a_second")
    witness = answer["witness"]
    assert answer["total"] <= witness["wall_seconds"]
    assert witness["cpu_seconds"] > 0
    assert witness["whole_process"] is False
    assert answer["laps"] > NUM_MERGES


def test_the_cpu_time_of_a_child_that_still_lives_is_accounted(measured: Measure) -> None:
    answer, _ = measured("lets_a_child_work")
    assert (answer["status"], answer["reason"]) == ("ok", None)
    assert answer["witness"]["cpu_seconds"] > 0.3  # it worked for half a second, of which the last tick may be missing


def test_what_disturbed_a_call_is_counted(measured: Measure) -> None:
    disturbance = measured("works_for_half_a_second")[0]["disturbance"]
    assert disturbance["minor_faults"] >= 0
    assert disturbance["voluntary_switches"] >= 0
    known = {name for name, value in disturbance.items() if value is not None}
    assert {name for name in known if disturbance[name] < 0} == set()
    if Path("/proc/pressure/cpu").exists():
        assert known >= {"psi_cpu_seconds", "psi_memory_seconds", "psi_io_seconds", "steal_seconds"}


def test_a_call_that_waits_has_given_way_of_itself(measured: Measure) -> None:
    assert measured("naps_often")[0]["disturbance"]["voluntary_switches"] >= 50


def test_a_process_whose_channel_is_closed_is_witnessed_as_a_whole(measured: Measure) -> None:
    answer, _ = measured("closes_every_descriptor")
    assert answer["status"] == "ok"
    assert answer["witness"]["whole_process"] is True
    assert answer["disturbance"] is None


# What a good answer holds.


def test_the_laps_of_a_trainer_add_up_to_no_more_than_its_total(measured: Measure) -> None:
    answer, _ = measured("works_for_half_a_second")
    assert set(answer["seconds"]) == {"init", "max", "update"}
    assert 0.5 <= answer["seconds"]["init"] <= sum(answer["seconds"].values()) <= answer["total"]
    assert answer["cpu_seconds"] > 0
    assert answer["peak_rss_bytes"] > answer["peak_private_bytes"] > 0
    last = answer["curve"][-1]
    assert (last["merges"], last["seconds"]) == (NUM_MERGES, answer["seconds"])
    assert last["total"] >= answer["total"]
    assert answer["tallies"]["heap_pushes"] > 0


def test_tallies_are_the_same_in_every_process(measured: Measure, tmp_path: Path) -> None:
    first, output = measured("variants.heap:train")
    shutil.rmtree(output)
    second, _ = measured("variants.heap:train")
    assert first["tallies"] == second["tallies"]
    assert (tmp_path / "output" / "merges").exists()


def test_several_processes_are_measured_together(measured: Measure) -> None:
    answer, _ = measured("works_beside_a_child")
    assert answer["memory_is_sampled"] is True


# Counters.


@pytest.mark.parametrize(
    ("counter", "status", "reason"),
    [
        ("counter_without_words", "error", "it returned dict, not WordCounts"),
        ("counter_that_dies", "killed", "its process was ended by SIGKILL"),
        ("counter_whose_offsets_fall", "error", "what it left is no answer (its offsets fall)"),
        (
            "counter_that_counts_when_its_words_are_written",
            "rejected",
            "its words are not those that it had when its call returned",
        ),
    ],
)
def test_a_counter_ends_as_a_trainer_does(
    counted: Callable[..., Answer], counter: str, status: str, reason: str
) -> None:
    answer = counted(f"unruly:{counter}")
    assert (answer["status"], answer["reason"]) == (status, reason)


@pytest.mark.slow
def test_a_counter_that_works_when_its_call_has_returned_is_rejected(counted: Callable[..., Answer]) -> None:
    answer = counted("unruly:counter_that_works_when_its_words_are_written")
    assert answer["status"] == "rejected"
    assert re.fullmatch(r"it used 0\.\d+ s of CPU time when its call had returned", answer["reason"])


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


# Another interpreter.


@pytest.mark.slow
def test_pypy_learns_the_same_merges(measured: Measure) -> None:
    pypy = shutil.which("pypy3")
    if pypy is None:
        pytest.skip("pypy3 is not installed")
    answer, output = measured("variants.heap:train", interpreter=pypy)
    assert (answer["status"], answer["interpreter"][:4]) == ("ok", "PyPy")
    assert unpacked((output / "merges").read_bytes()) == MERGES


def test_the_worker_asks_for_the_definition_of_a_tie_break_by_its_name(measured: Measure) -> None:
    answer, output = measured("variants.heap:train", tie_break="smallest_bytes")
    assert answer["status"] == "ok"
    expected = train(WORDS, NUM_MERGES, tie_break=TieBreak.SMALLEST_BYTES)
    assert unpacked((output / "merges").read_bytes()) == expected
