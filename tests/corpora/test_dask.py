"""counting=dask: the parts have the words of the text, wherever it is cut, whoever dies, and
wherever files are.
"""

import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import psutil
import pytest
import tomllib
from exploring import examples
from fetched import END, card_with, prepared
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st
from rows import Row, each_row, write_files
from scanned_texts import COMPILED, random_content
from workbench import CHECKOUT, cells, full_disk, started, wait_until, written

from harness.common.errors import Refusal
from harness.corpora import dask
from harness.corpora.formats import HEAD_BYTES, is_binary
from harness.worker import exchange
from variants.contract import Corpus, InvalidText
from variants.counting.native import native
from variants.counting.pretokenize import serial

OWN_PATTERN = r"\w+|\W"  # not compiled in
NO_SCHEDULER = "tcp://127.0.0.1:9"
INSTALLED = find_spec("distributed") is not None and find_spec("cryptography") is not None
pytestmark = pytest.mark.skipif(
    not INSTALLED, reason="pip install -e '.[distributed]' has distributed, cryptography and fsspec"
)


def count(
    path: Any,
    part: int = 1 << 20,
    scheduler: str | None = None,
    like: Path | None = None,
    **how: Any,
) -> dict[bytes, int]:
    """The words of what data.path names, counted again in parts of so many bytes; its text must be
    as long as the file `like`.
    """
    corpus = Corpus("", **{"special_tokens": (END,), **how})
    card = card_with("file", path=str(path), skip_nulls=True)
    with mock.patch.object(dask, "PART_BYTES", part):
        table = dask.counted_table(card, corpus, scheduler, None, None, False)
    assert like is None or table.bytes == like.stat().st_size
    words = dict(exchange.read_words(table.path)[0])
    shutil.rmtree(table.path)  # or the next would take these words
    return words


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
    assume(not is_binary(content[:HEAD_BYTES]))
    text = tmp_path / f"{time.monotonic_ns()}.txt"
    text.write_bytes(content)
    how: Any = {"special_tokens": special_tokens, "pattern": pattern, "errors": errors}
    how["partial"] = True
    part = chance.randint(0, 200) + 1 + len(content) // 30

    try:
        want = dict(serial(Corpus(str(text), **how)))
    except InvalidText as error:
        with pytest.raises(Refusal, match=f"{text}: invalid UTF-8 at byte {error.offset}"):
            count(text, part, **how)
    else:
        assert count(text, part, like=text, **how) == want


@pytest.fixture
def memory() -> Iterator[Any]:
    """A file system of fsspec's in this process."""
    import fsspec

    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A folder of text, Parquet, JSON Lines and CSV, compressed or not."""
    table = tomllib.loads(Path(__file__).with_name("dask.toml").read_text())
    write_files(tmp_path / "texts", table["texts"])
    return tmp_path / "texts"


@pytest.mark.parametrize("size", [100, 1 << 20])
def test_files_of_all_kinds_have_the_words_of_the_joined_text(
    texts: Path, memory: Any, size: int, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in texts.iterdir():
        memory.pipe_file(f"/texts/{path.name}", path.read_bytes())
    memory.pipe_file("/texts/.hidden", b"not this")
    joined = prepared(texts, skip_nulls=True).path
    want = dict(serial(Corpus(str(joined))))
    capsys.readouterr()
    for place in (texts, "memory://texts/", f"[{texts}/[ad].txt,memory://texts/[bce]*]"):
        assert count(place, size, like=joined) == want
        assert capsys.readouterr().err.count("left out 1 row without a text") == 1


def test_words_of_a_part_are_kept_by_all_that_they_depend_on(
    tmp_path: Path, cache_folder: Path
) -> None:
    text = written(tmp_path, "low low lower")
    changes: list[dict[str, Any]] = [{}, {"pattern": OWN_PATTERN}, {"special_tokens": ("a",)}, {}]
    with mock.patch.object(dask, "merge_parts", side_effect=Refusal("no room")):
        for number, how in enumerate(changes, 1):
            with pytest.raises(Refusal, match="no room"):
                count(text, **how)
            assert len(list((cache_folder / "parts").glob("*/*"))) == number
            os.utime(text, ns=(number // 3, number // 3))


@pytest.mark.usefixtures("memory")
@each_row(__file__, "dask.toml")
def test_unreadable_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: Row
) -> None:
    write_files(tmp_path, row.get("files", {}))
    divide = dask.divide

    def divided(*arguments: Any) -> Any:
        if row.get("happens") == "changed":
            os.utime(tmp_path / "a.txt", ns=(1, 1))
        elif row.get("happens") == "removed":
            (tmp_path / "a.txt").unlink()
        return divide(*arguments)

    monkeypatch.setattr(dask, "divide", divided)
    with pytest.raises(Refusal, match=re.escape(row["refused"])):
        count(row.get("source", tmp_path))


@pytest.mark.parametrize(
    ("module", "needed"),
    [("distributed", "counting.params.scheduler"), ("fsspec", "counting=dask")],
)
def test_what_is_not_installed_is_named(
    book: str, monkeypatch: pytest.MonkeyPatch, module: str, needed: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(Refusal, match=rf"{needed} needs {module}, .*\[distributed\]"):
        cells("counting=dask", book, "vocab_size=300", f"counting.params.scheduler={NO_SCHEDULER}")


def with_dask(test: Any) -> Any:
    """Mark a test as slow; one after another, because several clusters at once are more than two
    cores bear.
    """
    quiet = pytest.mark.filterwarnings("ignore")  # Dask's threads outlive what they had open
    return pytest.mark.slow(pytest.mark.xdist_group("dask")(quiet(test)))


NUMBERS = " ".join(map(str, range(5000))) + END


def native_words(path: Path) -> dict[bytes, int]:
    return dict(native(Corpus(str(path), (END,))))


CLUSTER = """
import distributed, sys
cluster = distributed.LocalCluster(n_workers=2, host="127.0.0.1", dashboard_address=None)
print(cluster.scheduler_address, flush=True)
sys.stdin.read()
"""


Cluster = tuple[subprocess.Popen[str], str]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A scheduler with two workers, and its address."""
    with started(CHECKOUT, "-c", CLUSTER, stdin=subprocess.PIPE, stderr=None) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()


def open_to_others() -> tuple[list[Any], list[Any]]:
    """What this process listens on, for other processes, and its children."""
    this = psutil.Process()
    addresses = [each.laddr for each in this.net_connections("all")]
    return list(filter(None, addresses)), this.children()


def test_threads_of_the_command_listen_on_nothing(tmp_path: Path) -> None:
    text = written(tmp_path, "low low lower")
    before, seen, count_part = open_to_others(), [], dask.count_part

    def look(*arguments: Any) -> Any:
        seen.append(open_to_others())
        return count_part(*arguments)

    with mock.patch.object(dask, "count_part", look):
        assert count(text) == {b"low": 1, b" low": 1, b" lower": 1}
    assert seen == [before]


def test_file_named_twice_counts_twice(tmp_path: Path) -> None:
    text = written(tmp_path, "low")
    assert count(f"[{text},{text}]") == {b"low": 2}


def test_a_refused_part_stops_the_others(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("low\n")
    started = threading.Event()

    def endless(*_: Any) -> Iterator[Iterator[bytes]]:
        while True:
            yield iter([b"low\n" * 1000])
            started.set()

    def refuse_one(*arguments: Any) -> Any:
        if str(arguments[-1].member).endswith("b.txt"):
            return counted(*arguments)
        assert started.wait(60)
        raise Refusal("a.txt is damaged")

    counted = dask.count_part
    with (
        mock.patch.object(dask, "documents_in", endless),
        mock.patch.object(dask, "count_part", refuse_one),
        mock.patch.object(dask, "usable_cores", return_value=2),
        pytest.raises(Refusal, match=r"a\.txt is damaged"),
    ):
        count(tmp_path)


@with_dask
def test_scheduler_of_yours_is_asked_with_the_certificate_of_the_configuration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    distributed = import_module("distributed")
    monkeypatch.setattr(dask, "SECONDS_TO_CONNECT", 1)
    key = distributed.Security.temporary()
    tls = {
        "ca-file": key.tls_ca_file,
        "client.cert": key.tls_client_cert,
        "client.key": key.tls_client_key,
    }
    with distributed.LocalCluster(
        n_workers=0, host="127.0.0.1", security=key, dashboard_address=None
    ) as cluster:
        address = cluster.scheduler_address
        with (
            pytest.raises(Refusal, match=rf"no scheduler answers at {address} \(.*TLS expects"),
            dask.client_of(address),
        ):
            pass
        with (
            import_module("dask").config.set(
                {f"distributed.comm.tls.{name}": tls[name] for name in tls}
            ),
            dask.client_of(address) as client,
        ):
            assert client.scheduler.address == address


@with_dask
def test_workers_of_a_scheduler_find_the_same_words(cluster: Cluster, texts: Path) -> None:
    want = native_words(prepared(texts, skip_nulls=True).path)
    assert count(f"file://{texts}", 100, cluster[1]) == want


@with_dask
def test_after_a_lost_scheduler_the_same_command_resumes(
    cluster: Cluster,
    tmp_path: Path,
    cache_folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    process, address = cluster
    text = written(tmp_path, 250 * NUMBERS)
    whole = count(text, 5_000_000, address, pattern=OWN_PATTERN)

    def parts() -> int:
        return len(list((cache_folder / "parts").glob("*/[!.]*")))

    def kill() -> None:
        wait_until(lambda: parts() >= 3, "three counted parts")
        process.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(Refusal, match=r"was lost .*the words of counted parts are kept, run the"):
        count(text, 150_000, address, pattern=OWN_PATTERN)
    killer.join()

    before = parts()
    capsys.readouterr()
    assert count(text, 150_000, pattern=OWN_PATTERN) == whole
    assert f", {before} of them counted before\n" in capsys.readouterr().err
    assert parts() == 0


@with_dask
def test_full_disk_is_a_sentence_and_the_same_command_resumes(tmp_path: Path) -> None:
    text = written(tmp_path, 120 * NUMBERS)
    sentence = r"has no room for .*BPE_HARNESS_CACHE.*run the same command again"
    with full_disk(4_000), pytest.raises(Refusal, match=sentence):
        count(text, 300_000)
    assert count(text, 300_000) == native_words(text)
