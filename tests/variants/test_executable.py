"""A program in any language as a trainer: the page's own examples, and every way in which a program
can fail.
"""

from __future__ import annotations

import functools
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from workbench import cell_of, limits_wait, processes_that_mention, reading_of, run_of, wait_until

from harness import run
from harness.common.registry import VariantCard
from harness.conformance import check_conformance, trainer_checks
from harness.measure.machine import source_sha256
from harness.measure.process import WorkerLimits
from harness.proof.checks import outcome_of
from harness.runs.compose import compose
from variants import naive
from variants.contract import Meter, TieBreak, Unavailable, WordCounts
from variants.executable import read_merges, train

pytestmark = pytest.mark.usefixtures("measured_once")

EXAMPLES = Path(__file__).parents[1] / "fixtures" / "example_programs"
WORDS = WordCounts.from_items([(b"low", 5), (b"lower", 2), (b"\x00\xff", 3)])
GREATEST = [TieBreak.GREATEST_BYTES]
# Numbers in awk have 53 bits.
BEYOND_AWK = {"check_worked_example[past_2_to_53]", "check_worked_example[near_2_to_63]"}


def program(folder: Path, source: str, name: str = "program") -> str:
    """A program of this text, made to be run."""
    path = folder / name
    path.write_text(source)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def python(folder: Path, source: str) -> str:
    """A program in Python of which `source` has the words in `words`, writes to `merges`, and
    learns `number`.
    """
    head = f"#!{sys.executable}\nimport sys\nwords, merges, number = open(sys.argv[1]), sys.argv[2], int(sys.argv[3])\n"
    return program(folder, head + source)


@pytest.fixture
def shell(tmp_path: Path) -> str:
    return program(tmp_path, (EXAMPLES / "train.sh").read_text(), "train.sh")


@pytest.fixture
def compiled(tmp_path: Path) -> str:
    command = ["g++", "-O2", "-std=c++17", "-o", "compiled", str(EXAMPLES / "train.cpp")]
    subprocess.run([*command, "-Wall", "-Wextra", "-Werror"], cwd=tmp_path, check=True)
    return str(tmp_path / "compiled")


# The examples


def test_the_example_shell_program_gives_the_definition_s_merges(shell: str) -> None:
    assert train(WORDS, 3, command=shell) == naive.train(WORDS, 3)
    assert train(WORDS, 99, command=f"{shell} {{words}} {{merges}} {{num_merges}}") == naive.train(
        WORDS, 99
    )
    assert train(WordCounts.from_items([]), 5, command=shell) == []


@pytest.mark.slow
def test_the_example_programs_conform_up_to_the_numbers_of_awk(shell: str, compiled: str) -> None:
    check_conformance(functools.partial(train, command=compiled), tie_breaks=GREATEST)
    outcomes = [
        outcome_of(check, functools.partial(train, command=shell))
        for check in trainer_checks(GREATEST)
    ]
    assert {outcome.check for outcome in outcomes if outcome.status == "failed"} <= BEYOND_AWK


def test_a_program_is_measured_and_proved_beside_the_others(shell: str, tmp_path: Path) -> None:
    book = tmp_path / "book.txt"
    book.write_text("the cat sat on the mat. the cat sat on the hat.\n")
    overrides = [
        "variants=[heap,executable]",
        f"variant.params.command={shell}",
        f"data.path={book}",
    ]
    records = run(*overrides, "vocab_size=270", f"results={tmp_path}", "concurrent=true")
    heap, executable = records
    assert (executable["variant"], executable["status"]) == ("executable", "ok")
    assert executable["merges_sha256"] == heap["merges_sha256"]
    assert executable["identity"]["kind"] == "identical"
    assert executable["seconds"]["convert"] > 0
    assert executable["seconds"]["max"] is None
    assert executable["seconds"]["other"] > 0
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith("executable-")]


# The two files


def test_merges_are_read_with_and_without_the_last_line_s_end(tmp_path: Path) -> None:
    for content in (b"61 62\n6162 63\n", b"61 62\n6162 63", b"61 62\r\n6162 63\r\n"):
        (tmp_path / "merges").write_bytes(content)
        assert read_merges(tmp_path / "merges", whole=True) == [(b"a", b"b"), (b"ab", b"c")]
        assert len(read_merges(tmp_path / "merges", whole=False)) == content.count(b"\n")


# Commands


def test_every_place_is_filled(tmp_path: Path) -> None:
    source = (
        "open(merges, 'w').write(''.join(f'{word.encode().hex()} 61\\n' for word in sys.argv[3:]))"
    )
    places = "{words} {merges} {num_merges} {tie_break} {min_count} {threads} 'a b'"
    command = f"{python(tmp_path, source)} {places}"
    learned = train(WORDS, 7, tie_break=TieBreak.RAW_BYTES, min_count=2, threads=3, command=command)
    assert [left for left, _ in learned] == [b"7", b"raw_bytes", b"2", b"3", b"a b"]


@pytest.mark.parametrize(
    ("command", "error", "message"),
    [
        (
            "",
            Unavailable,
            r"set variant.params.command='./train \{words\} \{merges\} \{num_merges\}'",
        ),
        (
            "./absent",
            ValueError,
            r"cannot start ./absent \(No such file or directory\); a program in",
        ),
        ("./train '{words}", ValueError, "cannot be read: No closing quotation"),
        (
            "./train {word} {merges}",
            ValueError,
            r"has a place for \{word\}; there are: words, merges, num_merges, tie",
        ),
        ("./train {words}", ValueError, r"has no place for \{merges\}; use all of them, or none"),
    ],
)
def test_a_command_that_cannot_be_run_says_why(
    command: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        train(WORDS, 3, command=command)
    with pytest.raises(
        Unavailable,
        match=r"takes no {min_count}, so it runs with the default only|runs a program of",
    ):
        train(WORDS, 3, command=command, min_count=2)


def test_places_in_braces_come_through_hydra() -> None:
    command = "./t {words} {merges} {num_merges}"
    for override in (f"variant.params.command={command}", f"++variant.params.command='{command}'"):
        (composed,) = compose(["variant=executable", override])
        assert composed.variant.params["command"] == command


# Programs that fail


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("sys.exit(3)", "ended with exit status 3; "),
        ("import os; os.kill(os.getpid(), 9)", "was ended by SIGKILL"),
        ("pass", "ended well and wrote no merges; it is to write them to the file {merges}"),
        (
            "open(merges, 'w').write('61 62\\nlow er\\n')",
            "line 2 of its merges is not two tokens in hexadecimal",
        ),
        ("open(merges, 'w').write('61 6\\n')", "line 1 of its merges is not two tokens"),
        ("open(merges, 'wb').write(b'\\xff\\x00' * 99)", "line 1 of its merges is not two tokens"),
        (
            "open(merges, 'w').write('61 62\\n\\n')",
            "line 2 of its merges is not two tokens in hexadecimal digits: ''",
        ),
    ],
)
def test_a_program_that_fails_is_an_error_that_says_how(
    tmp_path: Path, source: str, message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        train(WORDS, 3, command=python(tmp_path, source))


def test_a_program_over_the_limit_is_stopped_with_its_merges_and_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = f"""
import subprocess, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)", "{tmp_path}"])
with open(merges, "w") as file:
    file.write("61 74\\n")
time.sleep(3600)
"""
    limits_wait(monkeypatch, lambda merges: merges >= 1)
    card = VariantCard(
        "executable", "variants.executable:train", params={"command": python(tmp_path, source)}
    )
    cell = cell_of(reading_of(tmp_path), card, limits=WorkerLimits(wall_seconds=0.1))
    trained = run_of(tmp_path, [cell]).records()[-1]
    assert trained["status"] in ("timeout", "extrapolated")
    assert trained["merges_done"] == 1
    wait_until(
        lambda: not processes_that_mention(str(tmp_path)), "the program's own child to be gone"
    )
    assert not list(tmp_path.rglob("executable-*"))


def test_a_meter_that_says_stop_is_heard(tmp_path: Path) -> None:
    class Stopping(Meter):
        def progress(self, done: int) -> bool:
            super().progress(done)
            return done < 1

    source = "import time\nwith open(merges, 'w') as file:\n    file.write('74 68\\n74')\ntime.sleep(3600)"
    assert train(WORDS, 3, Stopping(), command=python(tmp_path, source)) == [(b"t", b"h")]


def test_a_changed_program_is_another_one(tmp_path: Path) -> None:
    digest = functools.partial(source_sha256, "variants.executable:train")
    first, without = (
        digest({"command": f"{program(tmp_path, 'a')} x"}),
        digest({"command": "awk x"}),
    )
    assert digest({"command": f"{program(tmp_path, 'b')} x"}) != first
    assert without == digest() != first
