"""A fetched corpus is what its card describes, whatever the server does; else one sentence and nothing half-done."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow
import pytest
from exploring import examples
from fetched import CONTENT, END, card, facts, get, impatient, left, refusal_of, url
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from local_server import (
    Behaviour,
    Server,
    another_range,
    cut_after,
    no_ranges,
    now_another_version,
    refuse,
    serve,
    serving,
    stall_after,
)
from pyarrow import parquet
from workbench import CHECKOUT, heed_signals, wait_until

from harness.common.errors import UNMEASURED, Refusal
from harness.corpora import fetch
from harness.corpora.fetch import Download

OTHER = CONTENT[::-1]


def test_corpus_is_fetched_once(server: Server, cache_folder: Path) -> None:
    place, messages = get(url(server, facts={}))
    assert messages[-1].endswith(f"its card does not say: sha256 {facts()['sha256']}, bytes {len(CONTENT)}")
    assert place == cache_folder / "corpora" / "known.txt"
    assert (place.read_bytes(), left(cache_folder)) == (CONTENT, [])
    assert get(url(server)) == (place, [f"known is at {place}, as its card says"])
    assert len(server.requests) == 1
    place.write_text("mine")  # another file in its place is not overwritten
    with pytest.raises(Refusal, match=r"has bytes 4, its card says .*; remove it to get it again"):
        get(url(server))
    assert place.read_text() == "mine"


def test_file_that_differs_from_its_card_is_discarded(server: Server, cache_folder: Path) -> None:
    server.content = OTHER
    message = refusal_of(url(server), cache_folder)
    assert f"its card says {facts()['sha256']}; it was discarded" in message
    assert left(cache_folder) == []
    server.content = CONTENT
    assert get(url(server))[0].read_bytes() == CONTENT


def test_compressed_corpus_is_unpacked(server: Server, cache_folder: Path) -> None:
    server.content = gzip.compress(CONTENT)[:-20]
    assert "get or make it again" in refusal_of(url(server, "known.txt.gz"), cache_folder)
    server.content = gzip.compress(CONTENT)
    assert get(url(server, "known.txt.gz"))[0].read_bytes() == CONTENT
    assert left(cache_folder) == []


def test_parquet_of_hugging_face_becomes_text(
    server: Server, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = io.BytesIO()
    parquet.write_table(pyarrow.table({"text": ["one", "", "二"], "id": [1, 2, 3]}), file)
    server.content = file.getvalue()
    monkeypatch.setenv("HF_ENDPOINT", f"{server.address}/")
    monkeypatch.setenv("HF_TOKEN", "secret")
    source = {"kind": "hugging_face", "repository": "a/b", "revision": "main", "paths": ["c/1.parquet", "2.parquet"]}
    data = card({**source, "column": "text", "separator": END}, facts={})
    digest = hashlib.sha256(server.content).hexdigest()
    data["source"]["sha256"] = [digest, "0" * 64]
    assert f"has sha256 {digest}, not 000" in refusal_of(data, cache_folder)
    data["source"]["sha256"] = [digest, None]
    place, messages = get(data)
    assert place.read_text() == f"one{END}{END}二{END}" * 2
    assert messages[0] == f"fetching {server.address}/datasets/a/b/resolve/main/2.parquet"
    assert [headers["Authorization"] for headers in server.requests] == ["Bearer secret"] * 3  # the first file was kept


# Interruptions


def in_another_process(data: dict[str, Any], before: str = "") -> list[str]:
    code = (
        f"import json, sys; {before}\nfrom harness.common.errors import guarded\n"
        "from harness.corpora.fetch import fetch\n"
        f"sys.exit(guarded(lambda: bool(fetch(json.loads({json.dumps(data)!r})) and 0)))"
    )
    return [sys.executable, "-c", code]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_interrupted_fetch_resumes(server: Server, cache_folder: Path, number: signal.Signals) -> None:
    server.script[:] = [stall_after(20_000)]
    command = in_another_process(url(server))
    with subprocess.Popen(command, cwd=CHECKOUT, stderr=subprocess.PIPE, text=True, preexec_fn=heed_signals) as process:
        part = cache_folder / "downloads" / "known" / "000-known.txt.part"
        wait_until(lambda: part.exists() and part.stat().st_size == 20_000, "the part that was sent")
        process.send_signal(number)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL)
    assert "Traceback" not in stderr
    assert not any((cache_folder / "corpora").glob("*"))
    assert get(url(server))[0].read_bytes() == CONTENT
    assert server.ranges() == [None, "bytes=20000-"]


def test_full_disk_is_reported_and_the_part_stays(server: Server) -> None:
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)); "
    limited += "sys.dont_write_bytecode = True"  # what it imports would be kept cut short, for whoever comes next
    done = subprocess.run(in_another_process(url(server), limited), cwd=CHECKOUT, stderr=subprocess.PIPE, text=True)
    assert done.returncode == UNMEASURED
    assert "(File too large); set BPE_HARNESS_CACHE to a folder" in done.stderr.splitlines()[-1]
    assert get(url(server))[0].read_bytes() == CONTENT
    assert server.ranges() == [None, "bytes=50000-"]


def test_missing_room_is_reported_before_any_request(
    server: Server, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = shutil.disk_usage(CHECKOUT)._replace(free=len(CONTENT) - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    assert "known needs " in refusal_of(url(server), cache_folder)
    assert server.requests == []


def test_two_fetches_of_one_corpus_are_one(server: Server) -> None:
    messages: list[str] = []
    threads = [threading.Thread(target=fetch.fetch, args=(url(server),)) for _ in range(4)]
    server.script[:] = [cut_after(1000), stall_after(1000)]
    with impatient(), mock.patch.object(fetch, "say", messages.append):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert server.ranges() == [None, "bytes=1000-", "bytes=2000-"]
    assert sum(line.startswith("known is at") for line in messages) == 4


# One download


def download(server: Server, folder: Path, *script: Behaviour, **headers: str) -> bytes:
    server.script[:] = script
    place = folder / "corpus.txt"
    with impatient(0.5):
        Download(f"{server.address}/corpus.txt", place, lambda _, __: None, headers).run()
    assert [path.name for path in folder.iterdir() if "corpus" in path.name] == [place.name]
    return place.read_bytes()


def redirect(request: Any) -> None:
    refuse(302, Location=f"{request.server.address.replace('127.0.0.1', 'localhost')}/elsewhere")(request)


@pytest.mark.parametrize(
    ("script", "ranges"),
    [
        ([cut_after(0)], [None, None]),
        ([cut_after(50_000)], [None, "bytes=50000-"]),
        ([stall_after(1000)] * 2, [None, "bytes=1000-", "bytes=2000-"]),
        ([redirect, cut_after(500), redirect], [None, None, *["bytes=500-"] * 2]),
        ([cut_after(5000), no_ranges], [None, "bytes=5000-"]),
        ([cut_after(5000), another_range], [None, "bytes=5000-", None]),
        ([refuse(503), refuse(429)], [None] * 3),
    ],
)
def test_broken_download_is_resumed(
    server: Server, tmp_path: Path, script: list[Behaviour], ranges: list[str | None]
) -> None:
    assert download(server, tmp_path, *script) == CONTENT
    assert server.ranges() == ranges


def test_versions_are_never_joined(server: Server, tmp_path: Path) -> None:
    for tag in (None, 'W/"first"'):  # nothing is resumed unless its version is certain
        server.tag = tag
        assert download(server, tmp_path, cut_after(5000)) == CONTENT
    assert server.ranges() == [None] * 4
    server.tag = '"first"'
    assert download(server, tmp_path, cut_after(5000), now_another_version(OTHER)) == OTHER
    assert server.requests[-1]["If-Range"] == '"first"'


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ([stall_after(1000), *[stall_after(0)] * 3], "(timed out); run the same command again to resume"),
        ([refuse(503)] * 3, "(503 Service Unavailable); run the same command again to resume"),
        ([refuse(401)], "(401 Unauthorized); it needs a login; for Hugging Face set HF_TOKEN"),
        ([refuse(404)], "(404 Not Found); put its new address on the card"),
        ("corpus.txt", "(an address starts with https://)"),
        ("file:///etc/hostname", "(an address starts with https://)"),
        ("http://127.0.0.1:9/x", "(Connection refused); run the same command again"),
    ],
)
def test_failed_download_is_a_sentence(server: Server, tmp_path: Path, script: Any, sentence: str) -> None:
    address = script if isinstance(script, str) else f"{server.address}/corpus.txt"
    server.script[:] = [] if isinstance(script, str) else script
    with pytest.raises(Refusal, match=re.escape(f"{address} cannot be fetched {sentence}")), impatient():
        Download(address, tmp_path / "corpus.txt", lambda _, __: None, {}).run()
    assert not (tmp_path / "corpus.txt").exists()


def test_secret_is_not_sent_to_a_redirect(server: Server, tmp_path: Path) -> None:
    download(server, tmp_path, redirect, Authorization="Bearer secret")
    assert ["Authorization" in headers for headers in server.requests] == [True, False]


LENGTHS = st.integers(0, len(CONTENT))
BEHAVIOURS: st.SearchStrategy[Callable[..., None]] = st.one_of(
    LENGTHS.map(cut_after),
    st.sampled_from([serve, no_ranges, another_range, refuse(503), refuse(404), now_another_version(OTHER)]),
    LENGTHS.map(lambda length: now_another_version(OTHER, cut_after(length))),
)


@pytest.mark.slow
@given(st.lists(st.lists(BEHAVIOURS, max_size=5), min_size=1, max_size=3))
@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_file_is_one_whole_version(tmp_path_factory: pytest.TempPathFactory, calls: list[list[Behaviour]]) -> None:
    folder = tmp_path_factory.mktemp("download")
    place = folder / "corpus.txt"
    with serving(CONTENT) as server:
        for script in calls:
            with contextlib.suppress(Refusal):
                download(server, folder, *script)
            assert not place.exists() or place.read_bytes() in (CONTENT, OTHER)
            place.unlink(missing_ok=True)
        assert download(server, folder) == server.content
