"""Conformance from a shell calls a trainer in a process of its own: what it does there reaches no judge."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ill_mannered
import meddlers
import pytest
import unruly

from harness import conformance
from harness.common import errors
from harness.measure import apart
from harness.measure.apart import Apart, BrokeDown, Finding, NotImportable
from harness.proof.checks import Outcome, outcome_of
from harness.proof.trainer import properties, worked_examples
from variants import vetoes
from variants.contract import Corpus, InvalidText, TieBreak, Unavailable, WordCounts

WORDS = WordCounts.from_items([(b"low", 5), (b"lower", 2), (b"newest", 6)])
SAYING = [name for name in vars(meddlers) if name.startswith("says_")]
GREATEST = TieBreak.GREATEST_BYTES


def called(name: str, *arguments: Any, module: Any = meddlers, **keywords: Any) -> Any:
    with Apart(f"{module.__name__}:{name}") as subject:
        return subject(*(arguments or (WORDS, 3)), **keywords)


@pytest.fixture(autouse=True)
def found_where_the_tests_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """As from a shell, the first place is the script's own; here it is what pytest has collected last."""
    monkeypatch.syspath_prepend(Path(__file__).parent)


@pytest.fixture
def a_few_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = worked_examples([GREATEST])[:5]
    monkeypatch.setattr(conformance, "trainer_checks", lambda *_, **__: checks)


@pytest.mark.usefixtures("a_few_checks")
def test_a_trainer_that_replaces_its_judge_does_not_conform(capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main(["meddlers:replaces_the_judge"]) == errors.MISMATCH
    assert "does not conform: 5 failed" in capsys.readouterr().out


@pytest.mark.usefixtures("a_few_checks")
def test_a_trainer_that_breaks_down_is_one_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main(["unruly:segfaults"]) == errors.MISMATCH
    shown = capsys.readouterr().out
    assert shown.count("FAILED") == 1
    assert "its process was ended by SIGSEGV\n    asked for 23 merges" in shown
    assert "4 checks more were not made" in shown
    assert "from unruly import segfaults" in shown, "the test to be pasted shows it"


@pytest.mark.usefixtures("a_few_checks")
def test_what_a_trainer_prints_is_told_when_all_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    conformance.main(["unruly:prints"])
    shown = capsys.readouterr()
    assert shown.err.startswith("it printed, at last: ")
    assert "passed" in shown.out.splitlines()[-1]


@pytest.mark.parametrize("name", ["hangs_without_letting_go", "hangs_and_will_not_be_ended"])
def test_a_call_has_a_limit_of_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "SECONDS_FOR_A_CALL", 0.3)
    with pytest.raises(BrokeDown, match=r"^a call of it took over 0\.3 s$"):
        called(name, module=unruly)


def test_a_call_has_a_limit_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "MEMORY_BYTES", 1 << 28)
    with pytest.raises((BrokeDown, Finding), match=r"held over|MemoryError"):
        called("allocates_without_end", module=unruly)


@pytest.mark.parametrize("name", SAYING)
def test_what_is_said_in_the_place_of_an_answer_is_not_believed(name: str) -> None:
    with pytest.raises(BrokeDown, match="no answer"):
        called(name)


def test_an_answer_to_a_call_that_was_not_made_is_none() -> None:
    with Apart("meddlers:answers_unasked") as subject:
        with pytest.raises(BrokeDown, match="answers no call"):
            subject(WORDS, 3)
        with pytest.raises(BrokeDown, match="answers no call"):
            subject(WORDS, 3)


def test_a_line_that_is_cut_is_told() -> None:
    with pytest.raises(BrokeDown, match=r"its process ended|closed the line"):
        called("closes_its_lines")


def test_a_copy_of_the_process_answers_nothing() -> None:
    with Apart("meddlers:forks_and_returns_twice") as subject:
        assert subject(WORDS, 3) == subject(WORDS, 3) == [(b"w", b"e"), (b"l", b"o"), (b"we", b"s")]


def test_what_has_no_words_is_a_finding() -> None:
    with pytest.raises(Finding, match="no words for it"):
        called("returns_what_shows_badly")


def test_offsets_that_lead_out_of_the_words_are_not_followed() -> None:
    with pytest.raises(BrokeDown, match="its offsets"):
        called("count_out_of_bounds", Corpus(__file__))


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("no_such_module:train", "ModuleNotFoundError"),
        ("unruly:no_such_trainer", "AttributeError"),
        ("ends:train", "SystemExit: 7"),
        ("dies:train", "exit status 7"),
    ],
)
def test_what_cannot_be_imported_is_told(
    target: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ends.py").write_text("raise SystemExit(7)\n")
    (tmp_path / "dies.py").write_text("import os\nos._exit(7)\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotImportable, match=said), Apart(target):
        pass


def test_what_is_raised_and_what_is_asked_go_through(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="install it"):
        called("is_unavailable", module=unruly)
    with Apart("variants.naive:train") as subject:
        short = subject(WORDS, 9, veto=vetoes.Longest(2, "bytes"))
        assert max(len(left + right) for left, right in short) == 2
        with pytest.raises(ValueError, match="inherited"):
            subject(WORDS, 0, inherited=[(b"l", b"o")])
    (tmp_path / "broken.txt").write_bytes(b"ab\xff")
    with Apart("sabotaged_counters:honest") as subject, pytest.raises(InvalidText) as invalid:
        subject(Corpus(str(tmp_path / "broken.txt")))
    assert invalid.value.offset == 2


def outcomes(subject: Callable[..., Any]) -> list[Outcome]:
    return [outcome_of(check, subject) for check in properties(GREATEST)]


@pytest.mark.parametrize("name", ["changes_its_input", "follows_when_all_is_over"])
def test_checks_come_to_the_same_apart_as_here(name: str) -> None:
    with Apart(f"ill_mannered:{name}") as subject:
        assert outcomes(subject) == outcomes(getattr(ill_mannered, name))
