"""Certificates, and what checks them: two programs that share nothing with us, in a folder without
the package.
"""

from __future__ import annotations

import gzip
import hashlib
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.__main__ import main as harness
from harness.common.errors import MISMATCH, OK, UNMEASURED, USAGE
from harness.corpora.__main__ import main as corpora
from harness.proof import IDENTICAL, prove
from harness.proof.certificate import certificate, digest_line, table_lines
from harness.proof.checks import CheckFailed, TrainerCall
from harness.proof.trainer_checks import random_extension
from harness.proof.wrong_lists import WAYS, judged, word_counts, wrong_list
from harness.proof.wrong_lists import main as wrong_lists
from harness.replay import main as replay
from variants.contract import Merge, TieBreak, WordCounts

OUTSIDE = Path(prove.__file__).parent / "outside"
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "certificate.md"
Check = Callable[[bytes, bytes], tuple[int, str]]


KINDS = "C", "Python"


@pytest.fixture(scope="module", params=KINDS)
def check(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Check:
    return checker(request.param, tmp_path_factory.mktemp("outside"))


def checker(kind: str, folder: Path) -> Check:
    """A checker alone in a folder: the exit code for a table and a certificate, and what it says."""
    table, certificate = folder / "table", folder / "certificate"
    if kind == "Python":
        program = shutil.copy(OUTSIDE / "check_certificate.py", folder)
        command = [sys.executable, "-I", "-S", program, table, certificate]
    else:
        command = [compiled(folder), table, certificate]

    def check(words: bytes, claims: bytes) -> tuple[int, str]:
        table.write_bytes(words)
        certificate.write_bytes(claims)
        ended = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        assert ended.stderr == ""
        return ended.returncode, ended.stdout.rstrip()

    return check


def compiled(folder: Path) -> Path:
    compiler = shutil.which("cc") or pytest.skip("needs a compiler")
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-fsanitize=address,undefined"]
    program = folder / "check_certificate"
    subprocess.run([compiler, *flags, "-o", program, OUTSIDE / "check_certificate.c"], check=True)
    return program


def plain(words: WordCounts) -> bytes:
    return b"".join(table_lines(words))


def test_the_example_of_the_page_is_what_we_write_and_what_both_accept(check: Check) -> None:
    table, claims = re.findall(r"^```text\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    call = TrainerCall({b"aaa": 1, b"ab": 2, b"xy": 2}, 10)
    words = word_counts(call)
    replayed = judged(call, call.defined())
    assert plain(words) == table.encode()
    assert certificate(words, replayed, TieBreak.GREATEST_BYTES, "none", 10) == claims.encode()
    assert check(table.encode(), claims.encode()) == (0, "accepted")


def test_right_lists_are_accepted_under_every_rule(check: Check) -> None:
    """After inherited merges, under vetoes, with a minimum count; under `any`, each choice among
    equals is right.
    """
    for seed in range(40):
        rule = [*TieBreak, None][seed % 5]
        call = random_extension(seed, rule or TieBreak.RAW_BYTES)
        words = word_counts(call)
        replayed = judged(call, call.defined())
        claims = certificate(words, replayed, rule, call.veto, call.num_merges)
        assert check(plain(words), claims) == (0, "accepted"), call


STRAYS = b"\x00\t\n\r 09:,.axz\xff"
VETOES = b"protected:61.zz protected:\xff protected:6.1 protected: bytes: bytes:+3 characters:0003 none,".split()


def forgeries(seed: int) -> Iterator[tuple[bytes, bytes]]:
    """A table and certificates with a stray byte, or another veto, and a digest that is right."""
    dice, wrong = random.Random(seed), wrong_list(seed)
    words = plain(word_counts(wrong.call))
    body = wrong.certificate[: -len(digest_line(b""))]
    for _ in range(4):
        place, stray = dice.randrange(len(body)), bytes((dice.choice(STRAYS),))
        damaged = body[:place] + stray + body[place + dice.randrange(2) :]
        yield words, damaged + digest_line(damaged)
    vetoed = re.sub(rb"\nveto .*", lambda _: b"\nveto " + dice.choice(VETOES), body)
    yield words, vetoed + digest_line(vetoed)
    place = dice.randrange(len(words) + 1)
    words = words[:place] + bytes((dice.choice(STRAYS),)) + words[place + 1 :]
    size_and_digest = f"{len(words)} {hashlib.sha256(words).hexdigest()}".encode()
    named = re.sub(rb"\ntable .*", b"\ntable " + size_and_digest, body)
    yield words, named + digest_line(named)


def test_both_checkers_say_the_same_of_whatever_they_get(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    checks = [checker(kind, tmp_path_factory.mktemp(kind)) for kind in KINDS]
    for seed in range(12):
        for words, claims in forgeries(seed):
            in_c, in_python = (check(words, claims) for check in checks)
            assert in_c == in_python, (words, claims)


def call_each(check: Check, seed: int) -> None:
    """Both checkers, the replay in Python and compiled, and conformance name the same merge."""
    wrong = wrong_list(seed)
    words = word_counts(wrong.call)
    code, answer = check(plain(words), wrong.certificate)
    want = (1, f"wrong: merge {wrong.merge}") if wrong.merge else (2, "unreadable")
    assert (code, re.match(r"wrong: merge \d+|\w+", answer)[0]) == want, (wrong, answer)  # type: ignore[index]

    call, options = wrong.call, wrong.call.keywords()
    options.pop("tie_break", None)
    listed = prove.MergeList("", wrong.merges, call.num_merges, call.tie_break)
    identity = prove.prove(words, listed, **options)
    if wrong.way.startswith("forged"):  # a right list
        assert identity.kind == IDENTICAL
        return
    assert identity.merge == wrong.merge, wrong
    if prove.can_judge(call.inherited, options.get("veto")):
        right, too_few = prove.judge(
            words, wrong.merges, call.num_merges, tie_break=call.tie_break, **options
        )
        assert (right, too_few) == (wrong.merge - 1, wrong.merge > len(wrong.merges))

    def train(*_: object, **__: object) -> list[Merge]:
        return list(wrong.merges)

    with pytest.raises(CheckFailed, match=rf"^first difference at merge {wrong.merge}:"):
        call.expect_definition(train)


def test_each_way_of_being_wrong_is_named_at_its_merge(check: Check) -> None:
    for seed in range(len(WAYS)):
        call_each(check, seed)


@pytest.mark.slow
def test_a_thousand_wrong_lists_are_named(check: Check) -> None:
    for seed in range(1000):
        call_each(check, seed)


def test_wrong_lists_are_written_for_others(check: Check, tmp_path: Path) -> None:
    folder = tmp_path / "wrong"
    assert wrong_lists([str(folder), "--number", str(len(WAYS))]) == OK
    rows = [line.split("\t") for line in (folder / "expected.tsv").read_text().splitlines()]
    assert [way for _, _, way in rows] == list(WAYS)
    for number, merge, way in rows:
        files = [folder / f"{number}.{kind}" for kind in ("table", "certificate")]
        _, answer = check(*[file.read_bytes() for file in files])
        assert merge in answer.replace(":", "").split(), way
    assert wrong_lists([str(folder)]) == USAGE


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("low low lower lowest newest: né 1234 aaaa aaaaaaa\n" * 3)
    assert corpora(["counts", "text.txt", "--table", "text.table"]) == OK


@pytest.mark.usefixtures("text")
def test_the_commands_write_what_both_accept(
    check: Check, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ["data.path=text.txt", "vocab_size=290", "results=results"]
    assert harness([*run, "variants=heap,flat", "certificate=both"]) == OK
    paths = sorted(Path("both").iterdir())
    assert [path.name for path in paths] == ["flat.certificate.gz", "heap.certificate.gz"]
    one, other = (gzip.decompress(path.read_bytes()) for path in paths)
    assert one == other
    table = Path("text.table").read_bytes()
    assert check(table, one) == (0, "accepted")

    assert harness([*run, "save=saved", "certificate=one.gz"]) == OK
    capsys.readouterr()
    for path in ("one.gz", "text.txt/one.gz"):  # before anything is measured
        assert harness([*run, f"certificate={path}"]) in (USAGE, UNMEASURED)
        output = capsys.readouterr()
        assert path in output.err
        assert "heap" not in output.out
    command = ["--data", "text.txt", "vocab_size=290", "--certificate"]
    assert replay(["saved", *command, "same"]) == OK
    assert Path("same").read_bytes() == one


@pytest.mark.usefixtures("text")
def test_wrong_merges_and_a_veto_of_ones_own_get_no_certificate(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("merges.txt").write_text("6c 6f\n61 61\n")
    command = ["merges.txt", "--data", "text.txt", "--certificate", "file"]
    assert replay(command) == MISMATCH
    assert replay([*command, "veto=harness.proof.checks:accepts"]) == USAGE
    assert "so none can check it" in capsys.readouterr().err
    assert not Path("file").exists()
