"""A fetched corpus is what its card describes, whatever the server does; nothing of a package is
run.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow
import pytest
from fetched import CONTENT, END, card, facts, get, impatient, left, refusal_of, url
from local_server import (
    Behaviour,
    Server,
    another_range,
    cut_after,
    no_ranges,
    now_another_version,
    refuse,
    stall_after,
)
from pyarrow import parquet
from workbench import CHECKOUT, heed_signals, wait_until

from harness.common.cards import Debian, Npm, Packaged, PackageIndex
from harness.common.errors import UNMEASURED, Refusal
from harness.corpora import fetch, packages
from harness.corpora.download import Download
from harness.corpora.packages import join

OTHER = CONTENT[::-1]


def test_corpus_is_fetched_once(server: Server, cache_folder: Path) -> None:
    place, messages = get(url(server, facts={}))
    assert messages[-1].endswith(
        f"its card does not say: sha256 {facts()['sha256']}, bytes {len(CONTENT)}"
    )
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


def test_hugging_face_parquet_becomes_text(
    server: Server, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = io.BytesIO()
    parquet.write_table(pyarrow.table({"text": ["one", "", "二"], "id": [1, 2, 3]}), file)
    server.content = file.getvalue()
    monkeypatch.setenv("HF_ENDPOINT", f"{server.address}/")
    monkeypatch.setenv("HF_TOKEN", "secret")
    source = {
        "kind": "hugging_face",
        "repository": "a/b",
        "revision": "main",
        "paths": ["c/1.parquet", "2.parquet"],
    }
    data = card({**source, "column": "text", "separator": END}, facts={})
    digest = hashlib.sha256(server.content).hexdigest()
    data["source"]["sha256"] = [digest, "0" * 64]
    assert f"has sha256 {digest}, not 000" in refusal_of(data, cache_folder)
    data["source"]["sha256"] = [digest, None]
    place, messages = get(data)
    assert place.read_text() == f"one{END}{END}二{END}" * 2
    assert messages[0] == f"fetching {server.address}/datasets/a/b/resolve/main/2.parquet"
    # the first file was kept
    assert [headers["Authorization"] for headers in server.requests] == ["Bearer secret"] * 3


def in_another_process(data: dict[str, Any], before: str = "") -> list[str]:
    code = f"""import sys; {before}
from harness.common.ending import exit_code_of
from harness.corpora.fetch import fetch
sys.exit(exit_code_of(lambda: bool(fetch({data!r}) and 0)))"""
    return [sys.executable, "-c", code]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_interrupted_fetch_resumes(
    server: Server, cache_folder: Path, number: signal.Signals
) -> None:
    server.script[:] = [stall_after(20_000)]
    command = in_another_process(url(server))
    with subprocess.Popen(
        command, cwd=CHECKOUT, stderr=subprocess.PIPE, text=True, preexec_fn=heed_signals
    ) as process:
        part = cache_folder / "downloads" / "known" / "000-known.txt.part"
        wait_until(
            lambda: part.exists() and part.stat().st_size == 20_000, "the part that was sent"
        )
        process.send_signal(number)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL)
    assert "Traceback" not in stderr
    assert not any((cache_folder / "corpora").glob("*"))
    assert get(url(server))[0].read_bytes() == CONTENT
    assert server.ranges() == [None, "bytes=20000-"]


def test_full_disk_is_reported_and_the_part_stays(server: Server) -> None:
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)); "
    # what it imports would be kept cut short, for whoever comes next
    limited += "sys.dont_write_bytecode = True"
    done = subprocess.run(
        in_another_process(url(server), limited), cwd=CHECKOUT, stderr=subprocess.PIPE, text=True
    )
    assert done.returncode == UNMEASURED
    assert "(File too large); set BPE_HARNESS_CACHE to a folder" in done.stderr.splitlines()[-1]
    assert get(url(server))[0].read_bytes() == CONTENT
    assert server.ranges() == [None, "bytes=50000-"]


def test_missing_room_is_reported_at_once(
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
    with impatient(), mock.patch.object(fetch, "print_stderr", messages.append):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert server.ranges() == [None, "bytes=1000-", "bytes=2000-"]
    assert sum(line.startswith("known is at") for line in messages) == 4


def downloaded(server: Server, folder: Path, *script: Behaviour, **headers: str) -> bytes:
    server.script[:] = script
    place = folder / "corpus.txt"
    with impatient(0.5):
        Download(f"{server.address}/corpus.txt", place, lambda _, __: None, headers).run()
    assert [path.name for path in folder.iterdir() if "corpus" in path.name] == [place.name]
    return place.read_bytes()


def redirect(request: Any) -> None:
    refuse(302, Location=f"{request.server.address.replace('127.0.0.1', 'localhost')}/elsewhere")(
        request
    )


@pytest.mark.parametrize(
    ("script", "ranges"),
    [
        ([cut_after(50_000)], [None, "bytes=50000-"]),
        ([redirect, cut_after(500), redirect], [None, None, *["bytes=500-"] * 2]),
        ([cut_after(5000), no_ranges], [None, "bytes=5000-"]),
        ([cut_after(5000), another_range], [None, "bytes=5000-", None]),
        ([refuse(503), refuse(429)], [None] * 3),
    ],
)
def test_downloads_resume(
    server: Server, tmp_path: Path, script: list[Behaviour], ranges: list[str | None]
) -> None:
    assert downloaded(server, tmp_path, *script) == CONTENT
    assert server.ranges() == ranges


def test_versions_are_never_joined(server: Server, tmp_path: Path) -> None:
    for tag in (None, 'W/"first"'):  # nothing is resumed unless its version is certain
        server.tag = tag
        assert downloaded(server, tmp_path, cut_after(5000)) == CONTENT
    assert server.ranges() == [None] * 4
    server.tag = '"first"'
    assert downloaded(server, tmp_path, cut_after(5000), now_another_version(OTHER)) == OTHER
    assert server.requests[-1]["If-Range"] == '"first"'
    server.content, server.tag = CONTENT, '"first"'
    assert (
        downloaded(server, tmp_path, cut_after(5000), now_another_version(OTHER, cut_after(700)))
        == OTHER
    )


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        (
            [stall_after(1000), *[stall_after(0)] * 3],
            "(timed out); run the same command again to resume",
        ),
        ([refuse(401)], "(401 Unauthorized); it needs a login; for Hugging Face set HF_TOKEN"),
        ([refuse(404)], "(404 Not Found); put its new address on the card"),
        ("file:///etc/hostname", "(an address starts with https://)"),
        ("http://127.0.0.1:9/x", "(Connection refused); run the same command again"),
    ],
)
def test_failed_download_is_a_sentence(
    server: Server, tmp_path: Path, script: Any, sentence: str
) -> None:
    address = script if isinstance(script, str) else f"{server.address}/corpus.txt"
    server.script[:] = [] if isinstance(script, str) else script
    with (
        pytest.raises(Refusal, match=re.escape(f"{address} cannot be fetched {sentence}")),
        impatient(),
    ):
        Download(address, tmp_path / "corpus.txt", lambda _, __: None, {}).run()
    assert not (tmp_path / "corpus.txt").exists()


def test_secret_is_not_sent_to_a_redirect(server: Server, tmp_path: Path) -> None:
    downloaded(server, tmp_path, redirect, Authorization="Bearer secret")
    assert ["Authorization" in headers for headers in server.requests] == [True, False]


def tar(members: Mapping[str, bytes], mode: Any) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as file:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            file.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def wheel(members: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    about = {
        "known-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: known\nVersion: 1.0\n",
        "known-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(packed, "w") as file:
        for name, content in {**about, **members}.items():
            file.writestr(name, content)
    return packed.getvalue()


@pytest.fixture
def index(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server as a package index, and pip configured to use no other."""
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.address}/simple")
    return server


def package(index: Server, file: str, content: bytes, *files: str) -> dict[str, Any]:
    """The card of a package of which the index has one file."""
    page = f'<!DOCTYPE html><html><body><a href="/{file}">{file}</a></body></html>'.encode()
    index.content = content
    index.script[:] = [lambda request: request.answer(200, page, {"Content-Type": "text/html"})]
    form = "wheel" if file.endswith(".whl") else "source"
    source = {
        "kind": "package_index",
        "package": "known",
        "version": "1.0",
        "form": form,
        "files": list(files),
    }
    return card(source, facts={})


def test_files_of_packages_are_joined_and_nothing_is_built(
    index: Server, cache_folder: Path, tmp_path: Path
) -> None:
    content = wheel({"b.py": b"b", "a/z.py": b"z", "a.txt": b"no", "a/a.py": b"a"})
    place, _ = get(package(index, "known-1.0-py3-none-any.whl", content, "*.py"))
    assert (place.read_bytes(), left(cache_folder)) == (b"bza", [])
    place.unlink()
    setup = f"import setuptools\nopen({str(tmp_path / 'mark')!r}, 'w').close()\nsetuptools.setup(name='known')\n"
    names = {
        "setup.py": setup.encode(),
        "PKG-INFO": b"",
        "b/neg.txt": b"bad\n",
        "b/pos.txt": b"good\n",
    }
    content = tar({f"known-1.0/{name}": content for name, content in names.items()}, "w:gz")
    place, _ = get(package(index, "known-1.0.tar.gz", content, "*/b/*.txt"))
    assert (place.read_bytes(), left(cache_folder)) == (b"bad\ngood\n", [])
    assert not (tmp_path / "mark").exists()


COMMON: Any = {"version": "1", "files": ["*"], "file": "known.txt"}


@pytest.mark.parametrize(
    ("source", "command", "sentence"),
    [
        (
            PackageIndex(package="known", **COMMON),
            [packages.__name__, "--only-binary=:all:", "--", "known==1"],
            r"known==1 .*E: b\); check",
        ),
        (
            Debian(packages=["a", "b"], **COMMON),
            ["apt-get", "--", "b=1"],
            r"a=1 b=1 .*\(E: b\); it needs Debian",
        ),
        (
            Npm(package="known", **COMMON),
            ["npm", "--ignore-scripts", "--", "known@1"],
            r"\(E: b\); .*npm view",
        ),
    ],
)
def test_failure_of_a_client_is_quoted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: Packaged,
    command: list[str],
    sentence: str,
) -> None:
    def run(arguments: list[str], **_: Any) -> Any:
        assert set(command) <= set(arguments)
        return subprocess.CompletedProcess(arguments, 1, "", "E:\n b\n")

    monkeypatch.setattr(subprocess, "run", run)
    for program, expected in (
        (str, sentence),
        (lambda _: None, "is not installed; fetch this where it is"),
    ):
        monkeypatch.setattr(shutil, "which", program)
        with pytest.raises(Refusal, match=expected):
            packages.download(source, tmp_path)


RULE = {"files": ["*.c", "*.h"], "inside": "usr/src/linux.tar.xz"}


def joined(folder: Path, **rule: Any) -> bytes:
    """What a card takes of the archives in `folder`/packages."""
    source = Npm(package="known", **{**COMMON, **rule})
    join(folder / "packages", source, folder / "text", lambda _: None)
    return (folder / "text").read_bytes()


CONTENTS = {
    "usr/src/linux.tar.xz": tar(
        {"linux/b.c": b"b", "linux/a.h": b"a", "linux/README": b"no"}, "w:xz"
    ),
    "usr/doc/new/rfc9.txt.gz": gzip.compress(b"nine"),
    "usr/doc/old/rfc10.txt.gz": gzip.compress(b"ten"),
    "usr/doc/dna.fasta": b">x\nAC\nGT\n",
    "usr/doc/poems.json": b'[\n    "one",\n    "two"\n]\n',
}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (RULE, b"ba"),
        ({**RULE, "order": "name"}, b"ab"),
        ({"files": ["*/rfc*.txt.gz"], "order": "version"}, b"nineten"),
        ({"files": ["*/rfc*.txt.gz"], "order": "name"}, b"nineten"),
        ({"files": ["*.fasta"], "lines": "^([A-Z]+)$", "line_end": ""}, b"ACGT"),
        ({"files": ["*.json"], "lines": '^ {4}"(.*?)",?$'}, b"one\ntwo\n"),
        (
            {"files": ["*.py", "*.c"]},
            "no file matches *.py or *.c; the card is for another version",
        ),
        (
            {"files": ["*"], "inside": "usr/src/other.tar"},
            "no file matches *; the card is for another version",
        ),
    ],
)
def test_files_are_joined_by_the_card(
    tmp_path: Path, rule: dict[str, Any], expected: bytes | str
) -> None:
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "known.tar").write_bytes(tar(CONTENTS, "w"))
    if isinstance(expected, bytes):
        assert joined(tmp_path, **rule) == expected
        return
    with pytest.raises(Refusal, match=re.escape(expected)):
        joined(tmp_path, **rule)


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.tar", tar(CONTENTS, "w")[:700]), ("a.whl", wheel(CONTENTS)[:-9]), ("a.tgz", b"no")],
)
def test_damaged_archive_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / name).write_bytes(content)
    with pytest.raises(Refusal, match=r" is damaged \(.*; fetch it again"):
        joined(tmp_path)
    assert not (tmp_path / "text").exists()


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="no dpkg-deb here")
def test_debian_package_is_read(tmp_path: Path) -> None:
    control = b"Package: known\nVersion: 1.0\nArchitecture: all\nMaintainer: n <n@b.org>\nDescription: d\n"
    for name, content in {"DEBIAN/control": control, **CONTENTS}.items():
        (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / name).write_bytes(content)
    (tmp_path / "packages").mkdir()
    folders = str(tmp_path / "root"), str(tmp_path / "packages")
    subprocess.run(
        ["dpkg-deb", "--build", "--root-owner-group", *folders], check=True, capture_output=True
    )
    assert joined(tmp_path, **RULE) == b"ba"
