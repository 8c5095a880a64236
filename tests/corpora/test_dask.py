"""counting=dask: the parts have the words of the text, wherever it is cut, whoever dies, and
wherever files are.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import psutil
import pyarrow
import pytest
from exploring import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pyarrow import parquet
from scanned_texts import COMPILED, random_content
from workbench import cells, wait_until

from harness.__main__ import main
from harness.common.errors import UNMEASURED, Refusal
from harness.corpora import dask, local
from harness.corpora.generators import random_text
from harness.worker import exchange
from variants.contract import GPT2_PATTERN, Corpus, InvalidText
from variants.counting.native import native
from variants.counting.pretokenize import serial

END = "<|endoftext|>"
OWN_PATTERN = r"\w+|\W"  # not compiled in
ALONE = {"scheduler": None, "workers": 1, "part": "1MiB"}
needs_fsspec = pytest.mark.skipif(
    find_spec("fsspec") is None, reason="pip install -e '.[distributed]' has it"
)


def count_here(
    path: Any, params: dict[str, Any], before: Callable[[], object] = bool, **how: Any
) -> dict[bytes, int]:
    """The words that tasks in this process return; `before` is called when the text has been
    divided.
    """

    def run_tasks(
        _: Any, __: Any, parts: Sequence[Any], memory: int | None
    ) -> Iterator[tuple[Any, bytes]]:
        before()
        return ((part, dask.count_part(part, memory)) for part in parts)

    corpus = Corpus("", **{"special_tokens": (END,), "pattern": GPT2_PATTERN, **how})
    nobody = contextlib.nullcontext((None, None))
    with mock.patch.multiple(dask, workers=lambda _: nobody, run_tasks=run_tasks, SMALLEST_PART=1):
        table = dask.counted_table({"path": str(path)}, corpus, params, None, None, False)
    words = dict(exchange.read_words(table.path)[0])
    shutil.rmtree(table.path)  # or the next would take these words
    return words


@needs_fsspec
@given(
    seed=st.integers(0, 2**32),
    pattern=st.sampled_from([*COMPILED, OWN_PATTERN]),
    errors=st.sampled_from(["strict", "replace"]),
)
@examples(30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_parts_of_a_text_have_its_words(
    tmp_path: Path, seed: int, pattern: str | None, errors: str
) -> None:
    chance = random.Random(seed)
    content, special_tokens = random_content(chance)
    text = tmp_path / f"{time.monotonic_ns()}.txt"
    text.write_bytes(content)
    how: dict[str, Any] = {
        "special_tokens": special_tokens,
        "pattern": pattern,
        "errors": errors,
        "partial": True,
    }
    least = 1 + len(content) // 30
    params = {**ALONE, "part": chance.randint(least, least + 200)}
    try:
        want = dict(serial(Corpus(str(text), **how)))
    except InvalidText as error:
        with pytest.raises(Refusal, match=f"{text}: invalid UTF-8 at byte {error.offset}"):
            count_here(text, params, **how)
    else:
        assert count_here(text, params, **how) == want


def mixed_files(folder: Path) -> Path:
    """Text, Parquet and JSON Lines, compressed or not."""
    folder.mkdir()
    rows = ["the cat sat", f"on the mat{END}", "", " low lower\n", "é日本 7 "] * 20
    (folder / "a.txt").write_text("".join(f"one {row} two\n" for row in rows))
    parquet.write_table(pyarrow.table({"text": rows}), folder / "b.parquet", row_group_size=7)
    lines = "".join(json.dumps({"text": row, "more": 1}) + "\n" for row in reversed(rows))
    (folder / "c.jsonl.zst").write_bytes(pyarrow.compress(lines.encode(), "zstd", asbytes=True))
    (folder / "cc.jsonl").write_text(lines + "\n" + lines.rstrip())
    (folder / "d.txt").write_text("no end of a line")
    (folder / "e.csv").write_text('id,text\n1,"low, lower\nand ""new"""\n2,widest\n')
    return folder


@pytest.fixture
def memory() -> Iterator[Any]:
    """A file system of fsspec's in this process."""
    fsspec = pytest.importorskip("fsspec", reason="pip install -e '.[distributed]' has it")
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()


@pytest.mark.parametrize("size", [100, 1 << 20])
def test_files_of_all_kinds_have_the_words_of_the_joined_text(
    tmp_path: Path, memory: Any, size: int
) -> None:
    texts = mixed_files(tmp_path / "texts")
    for path in texts.iterdir():
        memory.pipe_file(f"/texts/{path.name}", path.read_bytes())
    memory.pipe_file("/texts/.hidden", b"not this")
    want = dict(serial(Corpus(str(local.local_corpus({"path": str(texts)}, [END])[1]))))
    for place in (texts, "memory://texts/", f"[{texts}/[ad].txt,memory://texts/[bce]*]"):
        assert count_here(place, {**ALONE, "part": size}) == want


def test_listed_object_is_the_object_itself() -> None:
    """As S3 describes one in a listing, and alone."""
    alone = {
        "ETag": '"1"',
        "LastModified": datetime.datetime(2026, 1, 1),
        "size": 3,
        "VersionId": None,
    }
    listed, changed = {**alone, "Key": "b/a", "Size": 3, "type": "file"}, {**alone, "ETag": '"2"'}
    assert dask.member_at("s3://b/a", listed) == dask.member_at("s3://b/a", alone)
    assert dask.member_at("s3://b/a", listed) != dask.member_at("s3://b/a", changed)


@needs_fsspec
def test_words_of_a_part_are_kept_by_all_that_they_depend_on(
    tmp_path: Path, cache_folder: Path
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("low low lower")
    changes: list[dict[str, Any]] = [{}, {"pattern": OWN_PATTERN}, {"special_tokens": ("a",)}, {}]
    with mock.patch.object(dask, "merge", side_effect=Refusal("no room")):
        for number, how in enumerate(changes, 1):
            with pytest.raises(Refusal, match="no room"):
                count_here(text, ALONE, **how)
            assert len(list((cache_folder / "parts").glob("*/*"))) == number
            os.utime(text, ns=(number // 3, number // 3))


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.txt", b"low \xff low", "a.txt: invalid UTF-8 at byte 4"),
        (
            "a.jsonl",
            b'{"text": "low"}\n{"text": 7}\n',
            "a.jsonl, line 2: column 'text' holds int 7, which",
        ),
        ("a.txt.gz", b"no gzip", "a.txt.gz is damaged or not a gz file"),
        ("a.txt", None, "cannot read .*a.txt \\(FileNotFoundError: .*; check its place"),
        ("a.txt", b"changed", "a.txt was changed while it was counted"),
        ("memory://texts/none.txt", b"", "cannot read memory://texts/none.txt"),
        ("memory://texts/none*.txt", b"", r"memory://texts/none\*.txt not found"),
        (
            "nosuch://bucket/a.txt",
            b"",
            r"cannot read nosuch://bucket/a.txt \(ValueError: Protocol not known: nosuch\)",
        ),
    ],
)
def test_unreadable_file_is_named(
    tmp_path: Path, name: str, content: bytes | None, sentence: str
) -> None:
    path = tmp_path / name.rpartition("/")[2]
    path.write_bytes(content or b"low")
    before: dict[bytes | None, Any] = {
        None: path.unlink,
        b"changed": lambda: os.utime(path, ns=(1, 1)),
    }
    with pytest.raises(Refusal, match=sentence):
        count_here(name if "://" in name else path, ALONE, before.get(content, bool))


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        (
            "counting.params.part=1kB",
            "counting.params.part=1kB is too small; the minimum is 65.5 kB",
        ),
        (
            "plan=true",
            "the words of text.txt: 3 B in 1 part are not counted yet, and a plan counts nothing",
        ),
        (
            "special_tokens=[ab,bc]",
            "'ab' is between the files, and counting them separately needs a special token",
        ),
        (
            "counting.params.workers=1",
            r"counting=dask needs distributed, which is not.*bpe-harness\[distributed\]",
        ),
    ],
)
def test_bad_options_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argument: str, sentence: str
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    text = mixed_files(tmp_path / "texts") if "special" in argument else tmp_path / "text.txt"
    if not text.exists():
        text.write_text("low")
    with pytest.raises(Refusal, match=sentence):
        cells("counting=dask", f"data.path={text}", "vocab_size=300", argument)


def with_dask(test: Any) -> Any:
    """Mark a test as slow; one after another, because several clusters at once are more than two
    cores bear.
    """
    # Not importorskip: importing it takes a second, in every process that collects tests.
    test = pytest.mark.skipif(
        find_spec("distributed") is None, reason="pip install -e '.[distributed]' has it"
    )(test)
    quiet = pytest.mark.filterwarnings("ignore")  # Dask's threads outlive what they had open
    return pytest.mark.slow(pytest.mark.xdist_group("dask")(quiet(test)))


def write_text(path: Path, size: int) -> None:
    """So many bytes of documents of 200 random words."""
    how: Any = {
        "alphabet": "etaoin",
        "letter_weights": [],
        "length_weights": [1, 2, 4, 4, 2, 1],
        "document": 200,
    }
    path.write_bytes(b"".join(random_text(seed=1, bytes=size, **how)))


@contextlib.contextmanager
def killing() -> Iterator[list[int]]:
    """Kill up to six workers of this process, one after 0.7 seconds on average; yields those killed
    so far.
    """
    chance, killed, stop = random.Random(0), list[int](), threading.Event()

    def kill() -> None:
        while len(killed) < 6 and not stop.wait(chance.expovariate(1 / 0.7)):
            child = chance.choice(psutil.Process().children() or [None])
            with contextlib.suppress(psutil.Error):  # it has just ended
                if child and "distributed.cli.dask_worker" in child.cmdline():
                    child.kill()
                    killed.append(child.pid)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield killed
    finally:
        stop.set()
        killer.join()


def test_a_lost_worker_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    before = {child.pid for child in psutil.Process().children()}
    with dask.processes("tcp://127.0.0.1:9", 1) as replace_dead:
        (worker,) = (child for child in psutil.Process().children() if child.pid not in before)
        replace_dead()
        assert capsys.readouterr().err == ""
        os.kill(worker.pid, signal.SIGKILL)
        while not (lost := capsys.readouterr().err):
            replace_dead()
            time.sleep(0.01)
    assert lost == "1 worker lost; what was not sent is counted again\n"


def count(
    path: Any, part_bytes: int, scheduler: str | None = None, pattern: str = GPT2_PATTERN
) -> str:
    """Count what data.path names again by two workers, or those of a scheduler; returns the digest
    of the words.
    """
    corpus = Corpus("", (END,), pattern)
    params = {"scheduler": scheduler, "workers": 2, "part": part_bytes}
    table = dask.counted_table({"path": path}, corpus, params, None, None, False)
    shutil.rmtree(table.path)  # or the next would take these words
    return table.sha256


def digest_of(path: Path) -> str:
    return exchange.digest(native(Corpus(str(path), (END,))))


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The address and the process of a scheduler with two workers."""
    file = folder / "scheduler.json"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def started(program: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{program}", *options, "--no-dashboard"]
        command += ["--scheduler-file", str(file)]
        null = subprocess.DEVNULL
        return subprocess.Popen(command, stdout=null, stderr=null, cwd=folder, env=environment)

    scheduler = started("dask_scheduler", "--port", "0", "--host", "127.0.0.1")
    workers = started("dask_worker", "--nworkers", "2", "--nthreads", "1")
    try:
        wait_until(
            lambda: file.exists() and file.read_text().strip().endswith("}"),
            "the scheduler's address",
        )
        yield json.loads(file.read_text())["address"], scheduler
    finally:
        # Dask's worker may wait for ever for a scheduler that was killed.
        for process in (workers, scheduler):
            for child in psutil.Process(process.pid).children(recursive=True):
                child.kill()
            process.kill()
            process.wait(120)


def listening(process: psutil.Process) -> set[str]:
    """The addresses at which a process listens."""
    connections = process.net_connections("inet")
    return {each.laddr.ip for each in connections if each.status == psutil.CONN_LISTEN}


@with_dask
def test_scheduler_and_workers_listen_on_this_machine_only() -> None:
    before = psutil.Process().children()
    with dask.workers({**ALONE, "workers": 2}) as (client, _):
        client.wait_for_workers(2, timeout=60)
        workers = [child for child in psutil.Process().children() if child not in before]
        assert len(workers) == 2
        assert {*map(frozenset, map(listening, workers))} == {frozenset({"127.0.0.1"})}
        assert listening(psutil.Process()) == {"127.0.0.1"}  # the scheduler


@with_dask
def test_killed_workers_change_no_count(tmp_path: Path) -> None:
    texts = mixed_files(tmp_path / "texts")
    write_text(texts / "e.txt", 40_000_000)
    want = digest_of(local.local_corpus({"path": str(texts)}, [END])[1])
    with killing() as killed:
        assert count(f"file://{texts}", 300_000) == want
    assert killed


@with_dask
def test_after_a_lost_scheduler_the_same_command_resumes(
    tmp_path: Path, cache_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text.txt"
    write_text(text, 6_000_000)

    def counted() -> int:
        return len(list((cache_folder / "parts").glob("*/[!.]*")))

    with cluster(tmp_path) as (address, scheduler):

        def kill() -> None:
            wait_until(lambda: counted() >= 3, "three counted parts")
            scheduler.send_signal(signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(
            Refusal, match=r"was lost; the words of counted parts are kept, run the same"
        ):
            count(str(text), 150_000, address, pattern=OWN_PATTERN)
        killer.join()
    before = counted()
    capsys.readouterr()
    resumed = count(str(text), 150_000, pattern=OWN_PATTERN)
    assert f", {before} of them counted before\n" in capsys.readouterr().err
    assert counted() == 0
    (tmp_path / "again").mkdir()
    with cluster(tmp_path / "again") as (address, _):
        assert resumed == count(str(text), 5_000_000, address, pattern=OWN_PATTERN)


@with_dask
def test_full_disk_is_a_sentence_and_the_same_command_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # what is imported in the meantime would be cut short
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    text = tmp_path / "text.txt"
    write_text(text, 3_000_000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, hard))  # workers inherit it
    try:
        with pytest.raises(
            Refusal, match=r"has no room for .*BPE_HARNESS_CACHE.*run the same command again"
        ):
            count(str(text), 300_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert count(str(text), 300_000) == digest_of(text)


@with_dask
def test_each_failure_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = mixed_files(tmp_path / "texts")
    (texts / "bad.txt").write_bytes(b"a good beginning \xff")
    command = [
        f"data.path={texts}",
        "variant=flat",
        "counting=dask",
        "vocab_size=300",
        f"results={tmp_path / 'r'}",
    ]
    assert main(command) == UNMEASURED
    assert f"{texts}/bad.txt: invalid UTF-8 at byte 17" in capfd.readouterr().err
    monkeypatch.setattr(dask, "SECONDS_TO_CONNECT", 1)
    assert main([*command, "counting.params.scheduler=tcp://127.0.0.1:1"]) == UNMEASURED
    assert "no scheduler answers at tcp://127.0.0.1:1" in capfd.readouterr().err
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert main(command) == UNMEASURED
    assert "workers cannot be started on this machine" in capfd.readouterr().err
