"""counting=dask: workers die, the scheduler goes, the disk is full, files are bad or behind a URL; words stay right."""

from __future__ import annotations

import contextlib
import gzip
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
import urllib.request
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from test_parts import END, OWN_PATTERN, how, mixed_files
from worker_killer import MOST_TWICE, came_of, killing, write_text

from harness.__main__ import main
from harness.common import files
from harness.common.errors import UNMEASURED, Refusal
from harness.corpora import local
from harness.corpora.parts import engine, shards
from harness.corpora.parts.dividing import divided
from harness.corpora.parts.places import members
from harness.corpora.parts.tasks import count_part, words_of
from harness.worker import word_store
from variants.contract import Corpus
from variants.counting.native import native

pytestmark = [
    # Not importorskip: importing it takes a second, in every process that collects tests.
    pytest.mark.skipif(find_spec("distributed") is None, reason="pip install -e '.[cluster]' has what workers need"),
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # Dask's threads outlive what they had open
    pytest.mark.xdist_group("dask"),  # several clusters at once are more than two cores bear
]


@pytest.fixture(autouse=True)
def workers_find_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))


def digest_of(path: Path) -> str:
    return word_store.digest(native(Corpus(str(path), (END,))))


def mixed(folder: Path) -> tuple[Path, str]:
    """A folder with files of all kinds, and the digest of their words, counted by one thread."""
    texts = folder / "texts"
    texts.mkdir()
    mixed_files(texts)
    write_text(texts / "e.txt", 40_000_000)
    _, whole, _ = local.local_corpus({"path": str(texts)}, [END])
    return texts, digest_of(whole)


def test_killed_workers_cost_no_word(tmp_path: Path) -> None:
    texts, want = mixed(tmp_path)
    kills = round_ = 0
    while kills < 8:
        round_ += 1
        assert round_ < 20
        with killing(6, 0.4, round_) as killed:
            came = came_of(str(texts), tmp_path / str(round_), 500_000)
        kills += len(killed)
        assert came.sha256 == want
        assert came.twice <= MOST_TWICE


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A scheduler of its own with two workers: its address and its process."""
    file = folder / "scheduler.json"
    with (folder / "log").open("wb") as log:
        quiet: dict[str, Any] = {"stdout": log, "stderr": log, "cwd": folder}
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
        scheduler = subprocess.Popen([*command, "--host", "127.0.0.1", "--scheduler-file", str(file)], **quiet)
        command = [sys.executable, "-m", "distributed.cli.dask_worker", "--nworkers", "2", "--nthreads", "1"]
        workers = None
        try:
            until(lambda: file.exists() and file.read_text().strip().endswith("}"))
            workers = subprocess.Popen([*command, "--no-dashboard", "--scheduler-file", str(file)], **quiet)
            yield json.loads(file.read_text())["address"], scheduler
        finally:
            for process in filter(None, (workers, scheduler)):
                process.terminate()
                process.wait(30)


def until(is_so: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_after_a_lost_scheduler_the_same_goes_on_from_the_shards(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    write_text(text, 6_000_000)
    scratch = tmp_path / "scratch"
    with cluster(tmp_path) as (address, scheduler):

        def kill() -> None:
            until(lambda: len(list(scratch.glob(f"*/*{shards.SUFFIX}"))) >= 3)
            scheduler.send_signal(signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(Refusal, match=r"was lost; \d+ of \d+ parts are counted and stay in .*run the same"):
            came_of(str(text), scratch, 150_000, address, pattern=OWN_PATTERN)
        killer.join()
    there = {path.name: path.stat().st_mtime_ns for path in scratch.glob(f"*/*{shards.SUFFIX}")}
    assert len(there) >= 3
    came = came_of(str(text), scratch, 150_000, pattern=OWN_PATTERN)
    assert came.twice == 0
    after = {path.name: path.stat().st_mtime_ns for path in scratch.glob(f"*/*{shards.SUFFIX}")}
    assert after.items() > there.items()
    other = came_of(str(text), tmp_path / "other", 5_000_000, pattern=OWN_PATTERN)
    assert came.sha256 == other.sha256


def test_a_scheduler_that_is_there_is_taken_and_raised_in_what_it_allows(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    write_text(text, 3_000_000)
    with cluster(tmp_path) as (address, _):
        assert came_of(str(text), tmp_path / "scratch", 300_000, address).sha256 == digest_of(text)


def test_a_full_disk_ends_with_a_sentence_and_the_same_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # what is imported meanwhile would be kept cut short
    text = tmp_path / "text.txt"
    write_text(text, 3_000_000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, hard))  # what is started now has it too
    try:
        with pytest.raises(Refusal, match=r"cannot take the shards of the words .*make room or set counting\.params"):
            came_of(str(text), tmp_path / "scratch", 300_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert came_of(str(text), tmp_path / "scratch", 300_000).sha256 == digest_of(text)


def test_a_part_that_cannot_be_read_is_told_and_the_others_are_counted(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    mixed_files(texts)
    (texts / "bad.txt").write_bytes(b"a good beginning \xff")
    command = [f"data.path={texts}", "variant=flat", "counting=dask", "vocab_size=300"]
    command += [f"counting.params.scratch={tmp_path / 'scratch'}", f"results={tmp_path / 'results'}"]
    assert main(command) == UNMEASURED
    told = capfd.readouterr().err
    assert f"{texts}/bad.txt: invalid UTF-8 at byte 17; mend the file" in told
    assert "the other parts are counted and stay in" in told
    assert len(list((tmp_path / "scratch").glob(f"*/*{shards.SUFFIX}"))) == 5


def test_no_scheduler_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "SECONDS_TO_CONNECT", 1)
    text = tmp_path / "text.txt"
    text.write_text("low")
    with pytest.raises(Refusal, match=r"there is no scheduler at tcp://127.*counting\.params\.scheduler=tcp"):
        came_of(str(text), tmp_path / "scratch", 100_000, "tcp://127.0.0.1:1")


# Behind URLs


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A bucket of a server that speaks as S3 does, on this machine."""
    server_of_moto = pytest.importorskip("moto.server", reason="pip install -e '.[cluster]' has it")
    s3fs = pytest.importorskip("s3fs", reason="pip install -e '.[cluster]' has it")
    server = server_of_moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    urllib.request.urlopen(f"http://{host}:{port}/moto-api/reset", b"").close()  # its buckets are the whole process's
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    s3fs.S3FileSystem.clear_instance_cache()
    system = s3fs.S3FileSystem()
    system.mkdir("bucket")
    try:
        yield system
    finally:
        s3fs.S3FileSystem.clear_instance_cache()
        server.stop()


def test_a_run_trains_on_what_lies_in_a_bucket(tmp_path: Path, bucket: Any, capfd: pytest.CaptureFixture[str]) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    mixed_files(texts)
    write_text(texts / "e.txt", 3_000_000)
    for path in texts.iterdir():
        bucket.put_file(str(path), f"bucket/texts/{path.name}")
    here, there = tmp_path / "here", tmp_path / "there"
    both = ["variant=flat", "vocab_size=400", f"results={tmp_path / 'results'}"]
    counting = ["counting=dask", "counting.params.part=500kB", "counting.params.workers=2"]
    assert main([*both, *counting, "data.path=s3://bucket/texts/*", f"save={there}"]) == 0
    assert main([*both, "counting=native", f"data.path={texts}", f"save={here}"]) == 0
    assert (there / "merges.txt").read_bytes() == (here / "merges.txt").read_bytes()
    assert "counting" in capfd.readouterr().err


def test_shards_may_lie_in_a_bucket(
    tmp_path: Path, bucket: Any, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "text.txt"
    write_text(text, 3_000_000)
    cached = tmp_path / "cache"
    monkeypatch.setenv(files.CACHE_VARIABLE, str(cached))
    command = [
        "variant=flat",
        "vocab_size=400",
        f"data.path={text}",
        f"results={tmp_path / 'results'}",
        "counting=dask",
    ]
    command += ["counting.params.part=500kB", "counting.params.workers=2", "counting.params.scratch="]
    assert main([*command[:-1], f"{command[-1]}s3://gone/scratch"]) == UNMEASURED
    assert "cannot use s3://gone/scratch" in capfd.readouterr().err
    assert main([*command[:-1], f"{command[-1]}s3://bucket/scratch"]) == 0
    assert bucket.find("bucket/scratch") == []
    (table,) = (cached / "tables").iterdir()
    assert word_store.read(table)[1]["sha256"] == digest_of(text)


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("s3://gone/texts/a.txt", "there is nothing at s3://gone/texts/a.txt"),
        ("s3://bucket/none*.txt", "there is no file at s3://bucket/none"),
        ("nosuch://bucket/a.txt", "nosuch://bucket/a.txt is of no kind that is known here"),
    ],
)
def test_what_is_not_there_is_a_sentence(
    bucket: Any, path: str, sentence: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["variant=flat", "counting=dask", f"data.path={path}", f"results={tmp_path}"]) == UNMEASURED
    told = capfd.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1
    assert bucket.exists("bucket")


def test_a_bucket_that_vanishes_after_it_was_listed_is_told_part_by_part(tmp_path: Path, bucket: Any) -> None:

    bucket.pipe_file("bucket/a.txt", b"low low lower")
    (part,) = divided(members("s3://bucket/a.txt"), how(), 1000, None)
    assert count_part(part, str(tmp_path)).made
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    bucket.rm("bucket", recursive=True)
    assert "there is nothing at s3://bucket/a.txt" in str(count_part(part, str(tmp_path)).failed)


class WithoutRanges(SimpleHTTPRequestHandler):
    """Sends whole files only, as many a server does."""

    def log_message(self, *_: Any) -> None:
        pass


def test_files_of_a_server_without_ranges_are_read_from_their_front(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "a.txt"
    write_text(text, 6_000_000)  # more than is asked for at once
    packed = random.Random(0).randbytes(6_000_000).hex()  # and this, when it is packed
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(packed.encode(), 1))
    (tmp_path / "c.jsonl").write_text('{"text": "low"}\n' * 400_000)
    monkeypatch.chdir(tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), WithoutRanges) as server:
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        place = f"http://127.0.0.1:{server.server_address[1]}"
        found = {
            each: divided(members(f"{place}/{each}"), how(), 1 << 30, None)[0]
            for each in ("a.txt", "b.txt.gz", "c.jsonl")
        }
        words = {each: words_of(found[each]) for each in ("a.txt", "b.txt.gz")}
        said = count_part(found["c.jsonl"], str(tmp_path)).failed
        server.shutdown()
        serving.join()
    assert word_store.digest(words["a.txt"]) == digest_of(text)
    assert sum(len(word) * count for word, count in words["b.txt.gz"].items()) == len(packed)
    assert (
        said
        == f"{place}/c.jsonl cannot be read in parts, as its server sends no ranges; fetch it and set data.path=FILE"
    )


def test_without_credentials_there_is_a_sentence(
    bucket: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    type(bucket).clear_instance_cache()
    assert main(["variant=flat", "counting=dask", "data.path=s3://bucket/a", f"results={tmp_path}"]) == UNMEASURED
    assert "s3://bucket/a may not be read with these credentials (NoCredentials" in capfd.readouterr().err
