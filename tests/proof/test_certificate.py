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
from typing import Any

import pytest
from workbench import first_fast

from harness.__main__ import main as harness
from harness.common.errors import OK
from harness.corpora.__main__ import main as corpora
from harness.proof import IDENTICAL, prove
from harness.proof.calls import CheckFailed, TrainerCall
from harness.proof.certificate import certificate, digest_line, table_lines
from harness.proof.trainer_checks import random_extension
from harness.proof.wrong_lists import WAYS, judged, word_counts, wrong_list
from harness.replay import main as replay
from variants.contract import TieBreak, WordCounts

OUTSIDE = Path(prove.__file__).parent / "outside"
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "certificate.md"
ACCEPTED = 0, "accepted"
Check = Callable[[bytes, bytes], tuple[int, str]]


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Check:
    """Both checkers, alone in a folder: the exit code for a table and a certificate, and the
    answer. Fails unless they give the same.
    """
    folder = tmp_path_factory.mktemp("outside")
    compiler = shutil.which("cc") or pytest.skip("needs a compiler")
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-fsanitize=address,undefined"]
    in_c = folder / "check_certificate"
    subprocess.run([compiler, *flags, "-o", in_c, OUTSIDE / "check_certificate.c"], check=True)
    in_python = shutil.copy(OUTSIDE / "check_certificate.py", folder)
    commands: list[list[Any]] = [[in_c], [sys.executable, "-I", "-S", in_python]]

    def check(table: bytes, claims: bytes) -> tuple[int, str]:
        (folder / "table").write_bytes(table)
        (folder / "certificate").write_bytes(claims)
        answers = []
        for command in commands:
            ended = subprocess.run(
                [*command, "table", "certificate"], capture_output=True, text=True, cwd=folder
            )
            assert ended.stderr == ""
            answers.append((ended.returncode, ended.stdout.rstrip()))
        assert answers[0] == answers[1], (table, claims)
        return answers[0]

    return check


def plain(words: WordCounts) -> bytes:
    return b"".join(table_lines(words))


def test_the_example_of_the_page_is_what_we_write_and_what_both_accept(check: Check) -> None:
    table, claims = re.findall(r"^```text\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    call = TrainerCall({b"aaa": 1, b"ab": 2, b"xy": 2}, 10)
    words = word_counts(call)
    replayed = judged(call, call.defined())
    assert plain(words) == table.encode()
    assert certificate(words, replayed, TieBreak.GREATEST_BYTES, "none", 10) == claims.encode()
    assert check(table.encode(), claims.encode()) == ACCEPTED


def test_right_lists_are_accepted_under_every_rule(check: Check) -> None:
    """After inherited merges, under vetoes, with a minimum count; under `any`, each choice among
    equals is right.
    """
    for seed in range(25):
        rule = [*TieBreak, None][seed % 5]
        call = random_extension(seed, rule or TieBreak.RAW_BYTES)
        words = word_counts(call)
        replayed = judged(call, call.defined())
        claims = certificate(words, replayed, rule, call.veto, call.num_merges)
        assert check(plain(words), claims) == ACCEPTED, call


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


@pytest.mark.parametrize("seeds", first_fast([range(4), range(4, 100)]))
def test_both_checkers_say_the_same_of_whatever_they_get(check: Check, seeds: range) -> None:
    for seed in seeds:
        for words, claims in forgeries(seed):
            check(words, claims)


@pytest.mark.parametrize("seeds", first_fast([range(len(WAYS)), range(len(WAYS), 1000)]))
def test_each_way_of_being_wrong_is_named_at_its_merge(check: Check, seeds: range) -> None:
    """Both checkers, the proof and conformance name the same merge."""
    for seed in seeds:
        wrong = wrong_list(seed)
        words = word_counts(wrong.call)
        code, answer = check(plain(words), wrong.certificate)
        assert code == (1 if wrong.merge else 2)
        assert re.match(rf"wrong: merge {wrong.merge}\b" if wrong.merge else "unreadable", answer)

        call, options = wrong.call, wrong.call.keywords()
        options.pop("tie_break", None)
        listed = prove.MergeList("", wrong.merges, call.num_merges, call.tie_break)
        identity = prove.prove(words, listed, **options)
        if wrong.way.startswith("forged"):  # a right list
            assert identity.kind == IDENTICAL
            continue
        assert identity.merge == wrong.merge, wrong

        merges = list(wrong.merges)
        with pytest.raises(CheckFailed, match=rf"^first difference at merge {wrong.merge}:"):
            call.expect_definition(lambda *_, merges=merges, **__: merges)


@pytest.mark.slow
def test_commands_write_what_both_accept(check: Check, here: Path) -> None:
    (here / "text.txt").write_text("low low lower lowest newest: né 1234 aaaa aaaaaaa\n" * 3)
    assert corpora(["counts", "text.txt", "--table", "text.table"]) == OK
    run = ["data.path=text.txt", "vocab_size=290", "results=results", "variants=heap,flat"]
    assert harness([*run, "certificate=both", "save=saved"]) == OK
    command = ["--data", "text.txt", "vocab_size=290", "--certificate", "same"]
    assert replay(["saved/heap", *command]) == OK

    paths = sorted(Path("both").iterdir())
    assert [path.name for path in paths] == ["flat.certificate.gz", "heap.certificate.gz"]
    claims = Path("same").read_bytes()
    for path in paths:
        assert gzip.decompress(path.read_bytes()) == claims
    assert check(Path("text.table").read_bytes(), claims) == ACCEPTED
