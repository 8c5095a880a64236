"""Certificates, and what checks them: a program that shares nothing with us, in a folder without the
package.
"""

import gzip
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from exploring import seeds
from growing_words import SHAPES, Shape, expect_growth
from rows import Row, each_row, rows_beside, write_files
from workbench import first_fast
from wrong_lists import WAYS, claimed, wrong_list

from harness.__main__ import main as harness
from harness.common.errors import OK
from harness.proof import prove
from harness.proof.cases import random_call
from harness.proof.checks import CheckFailed, TrainerCall
from harness.proof.compiled_replay import Replay
from harness.proof.prove import certificate, digest_line, table_lines
from harness.replay import main as replay
from variants import flat
from variants.contract import TieBreak, WordCounts

CHECKER = Path(prove.__file__).parent / "outside" / "check_certificate.py"
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "certificate.md"
Check = Callable[..., tuple[int, str]]


@pytest.fixture
def checker() -> Any:
    """The checker as a module of its own."""
    module = ModuleType("check_certificate")
    exec(CHECKER.read_text(), vars(module))
    return module


@pytest.fixture
def check(checker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """The checker in this process: its exit code for a table and a certificate, and its answer."""
    printed: list[bytes] = []
    monkeypatch.setattr(checker, "os", SimpleNamespace(write=lambda _, text: printed.append(text)))

    def check(table: bytes, claims: bytes) -> tuple[int, str]:
        (tmp_path / "table").write_bytes(table)
        (tmp_path / "certificate").write_bytes(claims)
        with pytest.raises(SystemExit) as ending:
            checker.check(str(tmp_path / "table"), str(tmp_path / "certificate"))
        return int(str(ending.value)), printed.pop().decode().rstrip()

    return check


def plain(words: WordCounts) -> bytes:
    return b"".join(table_lines(words))


def certificate_of(words: bytes, /, *merges: str, **head: object) -> bytes:
    """A certificate that claims these merges, with some fields of its head replaced."""
    facts: dict[str, object] = {
        "bpe-certificate": 1,
        "table": f"{len(words)} {digest_line(words)[7:-1].decode()}",
        "tie_break": "greatest_bytes",
        "min_count": 1,
        "wanted": len(merges),
    }
    lines = [*(f"{name} {value}" for name, value in (facts | head).items()), *merges]
    content = "".join(f"{line}\n" for line in lines).encode()
    return content + digest_line(content)


def test_the_example_of_the_page_is_what_we_write_and_what_is_accepted(tmp_path: Path) -> None:
    """By the checker alone in a folder, which says neither right nor wrong if it cannot answer."""
    table, claims = re.findall(r"^```text\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    call = TrainerCall({b"aaa": 1, b"ab": 2, b"xy": 2}, 10)
    assert plain(call.word_counts) == table.encode()
    assert claimed(call, call.defined()) == claims.encode()

    shutil.copy(CHECKER, tmp_path)
    write_files(tmp_path, {"table": table, "certificate": claims})
    for row in rows_beside(__file__, "checker.toml"):
        (ending,) = row.values
        ended = subprocess.run(
            f"{sys.executable} -I -S check_certificate.py {ending['arguments']}",
            shell=True,
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (ending["exit"], ending["out"], "")


def test_right_lists_are_accepted_under_every_rule(check: Check) -> None:
    """To their end and before it; without their last merge they are wrong."""
    calls = [random_call(seed, list(TieBreak)[seed // 2 % 4]) for seed in range(16)]
    # every byte, and a token, before another one that all have
    ties = {bytes((byte, 97)): 1 for byte in range(256)} | {b"xx": 9, b"xxa": 1}
    calls += [TrainerCall(ties, 300, tie_break) for tie_break in TieBreak]
    for call in (*calls, TrainerCall({b"ab": 4, b"cd": 9}, 5, min_count=5)):
        words, merges = plain(call.word_counts), call.defined()
        rule = f"tie_break {call.tie_break.value}, min_count {call.min_count}"
        answer = f"accepted: {len(merges)} of {call.num_merges} merges, {rule}"
        assert check(words, claimed(call, merges)) == (0, answer)

        start = merges[:-1]
        assert check(words, claimed(replace(call, num_merges=len(start)), start))[0] == 0
        if merges:
            missing = f"wrong: merge {len(merges)} is missing: a pair with that count is left"
            assert check(words, claimed(call, start)) == (1, missing)


@each_row(__file__, "unreadable.toml")
def test_what_cannot_be_right_is_named(check: Check, row: Row) -> None:
    table = row.get("table", "1 6162\n").format(many="9" * 1_000_000).encode()
    claims = certificate_of(table, *row.get("merges", []), **row.get("head", {}))
    if "instead" in row:
        claims = claims.replace(b"wanted 0", row["instead"].encode())
    code, printed = check(table, claims)
    assert row["answer"] in printed
    assert code == (1 if printed.startswith("wrong: ") else 2)


STRAYS = b"\x00\t\n\r 09:,.axz\xff"


@pytest.mark.parametrize("block", seeds(4))
def test_whatever_it_gets_it_answers_in_one_sentence(check: Check, block: int) -> None:
    codes: Counter[int] = Counter()
    for seed in range(10 * block, 10 * block + 10):
        dice, wrong = random.Random(seed), wrong_list(seed)
        words = plain(wrong.call.word_counts)
        body = claimed(wrong.call, wrong.call.defined())[: -len(digest_line(b""))]
        for _ in range(6):
            place, stray = dice.randrange(len(body)), bytes((dice.choice(STRAYS),))
            damaged = body[:place] + stray + body[place + dice.randrange(2) :]
            code, answer = check(words, damaged + digest_line(damaged))
            assert answer.startswith(("accepted: ", "wrong: merge ", "unreadable: ")[code])
            codes[code] += 1
    assert min(codes[1], codes[2]) > 0


@pytest.mark.parametrize("block", seeds(10))
def test_each_way_of_being_wrong_is_named_at_its_merge(check: Check, block: int) -> None:
    """The checker, the proof and conformance name the same merge."""
    for seed in range(len(WAYS) * block, len(WAYS) * (block + 1)):
        wrong = wrong_list(seed)
        words = wrong.call.word_counts
        if wrong.certificate is not None:
            code, answer = check(plain(words), wrong.certificate)
            assert code == 1
            assert re.match(rf"wrong: merge {wrong.merge}\b", answer), (wrong, answer)

        call, options = wrong.call, wrong.call.keywords()
        options.pop("tie_break", None)
        replayed = Replay(words, wrong.merges, call.num_merges, **options)
        identity = prove.prove(replayed, call.tie_break)
        assert identity.merge == wrong.merge, wrong

        merges = list(wrong.merges)
        with pytest.raises(CheckFailed, match=rf"^merge {wrong.merge}\b"):
            call.expect_definition(lambda *_, merges=merges, **__: merges)


# Work, counted: twice the words are at most 2.6 times the work


@pytest.fixture
def work(checker: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with each pair that the checker looks at, and with the bytes of tokens that it compares."""
    work = [0]

    pair_at, part = checker.Text.pair_at, checker.Spelling.part

    def counted_pair(*given: Any) -> Any:
        work[0] += 1
        return pair_at(*given)

    def counted_part(*given: Any) -> Any:
        found = part(*given)
        work[0] += 1 + len(found) // 64
        return found

    monkeypatch.setattr(checker.Text, "pair_at", counted_pair)
    monkeypatch.setattr(checker.Spelling, "part", counted_part)
    return work


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", first_fast([1000, 16000]))
def test_work_grows_with_the_words(check: Check, work: list[int], shape: Shape, size: int) -> None:
    def work_of(words: WordCounts) -> int:
        work[0] = 0
        merges = list(flat.train(words, 1_000_000))
        claims = certificate(words, merges, TieBreak.GREATEST_BYTES, 1, len(merges))
        assert check(plain(words), claims)[0] == 0
        return work[0]

    expect_growth(shape, size, work_of)


@pytest.mark.slow
def test_a_run_and_the_replay_of_its_merges_write_the_same_certificate(here: Path) -> None:
    (here / "text.txt").write_text("low low lower lowest newest: né 1234 aaaa aaaaaaa\n" * 3)
    run = ["data.path=text.txt", "vocab_size=290", "results=results", "variants=heap,flat"]
    assert harness([*run, "certificate=both", "save=saved"]) == OK
    command = ["--data", "text.txt", "vocab_size=290", "--certificate", "same"]
    assert replay(["saved/heap", *command]) == OK

    written = {path.name: gzip.decompress(path.read_bytes()) for path in Path("both").iterdir()}
    names = ["flat.certificate.gz", "heap.certificate.gz"]
    assert written == dict.fromkeys(names, Path("same").read_bytes())
