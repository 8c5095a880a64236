"""A data set is placed whole and as its card says, or not at all."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import zstandard
from fetched import CONTENT, END, card, facts, get, impatient, left, refusal_of, url
from local_server import Server, corrupted, cut_after, stall_after
from workbench import CHECKOUT, heed_signals, wait_until

from harness.common.errors import UNMEASURED, Refusal
from harness.corpora import fetch
from harness.corpora.cards import check_source


def test_corpus_is_fetched_once(server: Server, cache_folder: Path) -> None:
    place, messages = get(url(server, facts={}))
    assert messages[-1].endswith(f"its card does not say: {len(CONTENT)} bytes, sha256 {facts()['sha256']}")
    assert place == cache_folder / "corpora" / "known.txt"
    assert place.read_bytes() == CONTENT
    assert left(cache_folder) == []
    assert get(url(server)) == (place, [f"known is there, as its card says: {place}"])
    assert len(server.requests) == 1


def test_file_that_differs_from_its_card_is_discarded(server: Server, cache_folder: Path) -> None:
    server.script[:] = [corrupted]
    message = refusal_of(url(server), cache_folder)
    found = bytearray(CONTENT)
    found[len(found) // 2] ^= 1
    assert f"sha256 {hashlib.sha256(found).hexdigest()} where it says {facts()['sha256']}" in message
    assert "it was discarded" in message
    assert left(cache_folder) == []
    assert get(url(server))[0].read_bytes() == CONTENT


def test_other_file_in_its_place_is_left_alone(server: Server, cache_folder: Path) -> None:
    place = cache_folder / "corpora" / "known.txt"
    place.parent.mkdir(parents=True)
    place.write_text("mine")
    with pytest.raises(Refusal, match=r"has 4 bytes, its card says .*; remove it and fetch it again"):
        get(url(server))
    assert place.read_text() == "mine"
    assert server.requests == []


@pytest.mark.parametrize(
    ("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstandard.compress)]
)
def test_compressed_corpus_is_unpacked(server: Server, suffix: str, pack: Any, cache_folder: Path) -> None:
    server.content = pack(CONTENT)
    assert get(url(server, f"known.txt{suffix}"))[0].read_bytes() == CONTENT
    assert left(cache_folder) == []


@pytest.mark.parametrize("file", ["../known.txt", "/known.txt", "a/known.txt", ".."])
def test_card_cannot_place_its_file_outside_the_cache(server: Server, file: str) -> None:
    card = url(server)
    for wrong in (card | {"source": {**card["source"], "file": file}}, card | {"name": file}):
        for use in (check_source, get):
            with pytest.raises(Refusal, match=r"(file|name) is .*; it must be a plain file name"):
                use(wrong)
    with pytest.raises(Refusal, match="the card of known: source is 5; it must be a mapping"):
        check_source(card | {"source": 5})
    assert server.requests == []


@pytest.mark.parametrize("damage", [lambda packed: packed[:-20], lambda packed: b"no" + packed[2:]])
def test_a_damaged_compressed_file_is_not_kept(server: Server, cache_folder: Path, damage: Any) -> None:
    server.content = damage(gzip.compress(CONTENT))
    assert "get or make it again" in refusal_of(url(server, "known.txt.gz"), cache_folder)
    assert left(cache_folder) == []


def test_parquet_becomes_text(server: Server, cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    file = io.BytesIO()
    parquet.write_table(pyarrow.table({"text": ["one", "", "二"], "id": [1, 2, 3]}), file)
    server.content = file.getvalue()
    monkeypatch.setenv("HF_ENDPOINT", server.address)
    source = {"kind": "hugging_face", "repository": "a/b", "revision": "main", "paths": ["1.parquet", "2.parquet"]}
    data = card({**source, "column": "text", "separator": END}, facts={})
    digest = hashlib.sha256(server.content).hexdigest()
    data["source"]["sha256"] = [digest, "0" * 64]
    assert f"has sha256 {digest}, not 000" in refusal_of(data, cache_folder)
    data["source"]["sha256"] = [digest, None]
    assert get(data)[0].read_text() == f"one{END}{END}二{END}" * 2
    assert len(server.requests) == 3  # the first file was kept
    data["source"]["file"] = "other.txt"
    with pytest.raises(Refusal, match="has no column 'words', there are: text, id"):
        get({**data, "source": {**data["source"], "column": "words"}})


def test_hugging_face_dataset_is_requested_at_its_revision(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"{server.address}/")
    monkeypatch.setenv("HF_TOKEN", "secret")
    messages = get(card({"kind": "hugging_face", "repository": "a/b", "revision": "abc", "paths": ["c/d.txt"]}))[1]
    assert messages[0] == f"fetching {server.address}/datasets/a/b/resolve/abc/c/d.txt"
    assert server.requests[0]["Authorization"] == "Bearer secret"


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
    assert sum(line.startswith("known is there") for line in messages) == 3
    assert "another process is fetching known; waiting for it" in messages
