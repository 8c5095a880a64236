"""A fetched corpus is what its card describes, whatever the server does; nothing of a package is
run.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
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
from packaging.licenses import canonicalize_license_expression
from rows import parquet_of, rows_beside
from workbench import CHECKOUT, first_fast, heed_signals, wait_until

from harness.common import registry
from harness.common.cards import Debian, Npm, Packaged, PackageIndex
from harness.common.errors import OK, UNMEASURED, Refusal
from harness.corpora import fetch, files, packages
from harness.corpora.__main__ import main
from harness.corpora.cards import FETCHED, YOURS, cards
from harness.corpora.download import Download
from harness.corpora.packages import join

OTHER = CONTENT[::-1]


def test_cards_are_complete() -> None:
    sources: dict[str, tuple[object, object]] = {}
    for name, content in cards().items():
        source, licence = content["source"], content["licence"]
        assert content["about"], name
        assert content["language"] or source["kind"] in YOURS, name
        assert "files" not in source or content["facts"]["sha256"], name
        if source["kind"] in FETCHED:
            text = source, content["facts"].get("sha256")
            assert sources.setdefault(source["file"], text) == text, "one file has two sources"
            assert licence, name
            assert registry.cards("data")[name]["special_tokens"] == [END]
        if re.fullmatch(r"[A-Z][A-Za-z0-9.+-]+( (WITH|AND|OR) [A-Za-z0-9.+-]+)*", licence):
            assert canonicalize_license_expression(licence) == licence


# One file


def test_corpus_is_fetched_verified_and_found(
    capsys: pytest.CaptureFixture[str], server: Server, tmp_path: Path, cache_folder: Path
) -> None:
    source = {"kind": "url", "url": f"{server.address}/known.txt", "file": "known.txt"}
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "known.yaml").write_text(json.dumps({"source": source, "facts": facts()}))
    place = cache_folder / "corpora" / "yours" / "known.txt"

    def ran(command: str) -> tuple[int, str, str]:
        code = main([command, "known", "--config-dir", str(tmp_path)])
        return code, *capsys.readouterr()

    server.script[:] = [refuse(404)]
    assert ran("fetch")[0] == UNMEASURED
    assert ran("fetch")[0] == OK
    assert ran("fetch") == (OK, "", f"known is at {place}, as its card says\n")
    assert len(server.requests) == 2
    assert (place.read_bytes(), left(cache_folder)) == (CONTENT, [])
    code, shown, _ = ran("verify")
    assert code == OK
    assert f"sha256  {facts()['sha256']}  as the card says" in shown
    assert ran("path") == (OK, f"{place}\n", "")

    place.write_bytes(OTHER)
    os.utime(place, (0, 0))
    for command in ("fetch", "verify", "path"):
        code, _, sentence = ran(command)
        assert code == UNMEASURED
        assert f"its card says {facts()['sha256']}; it is another file or damaged" in sentence
    assert place.read_bytes() == OTHER
    files.remember(place, facts()["sha256"])  # as if the disk had changed it
    code, _, sentence = ran("verify")
    assert code == UNMEASURED
    assert "is damaged, though its times are unchanged" in sentence


def test_file_that_differs_from_its_card_is_discarded(server: Server, cache_folder: Path) -> None:
    server.content = OTHER
    sentence = refusal_of(url(server), cache_folder)
    assert f"its card says {facts()['sha256']}; it was discarded" in sentence
    server.content = gzip.compress(CONTENT)[:-20]
    assert "get or make it again" in refusal_of(url(server, "known.txt.gz"), cache_folder)
    assert left(cache_folder) == []

    server.content = gzip.compress(CONTENT)
    place, messages = get(url(server, "known.txt.gz", facts={}))
    assert (place.read_bytes(), left(cache_folder)) == (CONTENT, [])
    unsaid = f"its card does not say: sha256 {facts()['sha256']}, bytes {len(CONTENT)}"
    assert messages[-1].endswith(unsaid)


def test_hugging_face_parquet_becomes_text(
    server: Server, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.content = parquet_of('{"text": ["one", "", "二"], "id": [1, 2, 3]}'.encode())
    monkeypatch.setenv("HF_ENDPOINT", f"{server.address}/")
    monkeypatch.setenv("HF_TOKEN", "secret")
    files = {"revision": "main", "paths": ["c/1.parquet", "2.parquet"]}
    form = {"column": "text", "separator": END}
    data = card({"kind": "hugging_face", "repository": "a/b", **files, **form}, facts={})
    digest = hashlib.sha256(server.content).hexdigest()

    data["source"]["sha256"] = [digest, "0" * 64]
    assert f"has sha256 {digest}, not 000" in refusal_of(data, cache_folder)
    data["source"]["sha256"] = [digest, None]
    place, messages = get(data)
    assert place.read_text() == f"one{END}{END}二{END}" * 2
    # the first file was kept
    assert messages[0] == f"fetching {server.address}/datasets/a/b/resolve/main/2.parquet"
    assert [headers["Authorization"] for headers in server.requests] == ["Bearer secret"] * 3


def in_another_process(data: dict[str, Any], before: str = "") -> list[str]:
    code = f"""import sys; {before}
from harness.common.ending import exit_code_of
from harness.corpora.fetch import fetch
sys.exit(exit_code_of(lambda: bool(fetch({data!r}) and 0)))"""
    return [sys.executable, "-c", code]


@pytest.mark.parametrize("number", first_fast([signal.SIGINT, signal.SIGKILL]))
def test_interrupted_fetch_resumes(
    server: Server, cache_folder: Path, number: signal.Signals
) -> None:
    server.script[:] = [stall_after(20_000)]
    command = in_another_process(url(server))
    part = cache_folder / "downloads" / "known" / "000-known.txt.part"
    with subprocess.Popen(
        command, cwd=CHECKOUT, stderr=subprocess.PIPE, text=True, preexec_fn=heed_signals
    ) as process:
        wait_until(lambda: part.exists() and part.stat().st_size == 20_000, "20,000 bytes")
        process.send_signal(number)
        _, stderr = process.communicate(timeout=60)

    assert process.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL)
    assert "Traceback" not in stderr
    assert not any((cache_folder / "corpora").glob("*"))
    assert get(url(server))[0].read_bytes() == CONTENT
    assert server.ranges() == [None, "bytes=20000-"]


def test_full_disk_is_reported_and_the_part_stays(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = shutil.disk_usage(CHECKOUT)._replace(free=len(CONTENT) - 1)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: free)
        with pytest.raises(Refusal, match="known needs "):
            get(url(server))
    assert server.requests == []

    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)); "
    # what it imports would be kept cut short, for whoever comes next
    limited += "sys.dont_write_bytecode = True"
    command = in_another_process(url(server), limited)
    done = subprocess.run(command, cwd=CHECKOUT, stderr=subprocess.PIPE, text=True)
    assert done.returncode == UNMEASURED
    assert "(File too large); set BPE_HARNESS_CACHE to a folder" in done.stderr.splitlines()[-1]
    assert get(url(server))[0].read_bytes() == CONTENT
    assert server.ranges() == [None, "bytes=50000-"]


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


# Servers


def downloaded(server: Server, folder: Path, *script: Behaviour, **headers: str) -> bytes:
    server.script[:] = script
    place = folder / "corpus.txt"
    with impatient(0.5):
        Download(f"{server.address}/corpus.txt", place, lambda _, __: None, headers).run()
    assert [path.name for path in folder.iterdir() if "corpus" in path.name] == [place.name]
    return place.read_bytes()


def redirect(request: Any) -> None:
    other_host = request.server.address.replace("127.0.0.1", "localhost")
    refuse(302, Location=f"{other_host}/elsewhere")(request)


@pytest.mark.parametrize(
    ("script", "ranges"),
    [
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

    for change in (now_another_version(OTHER), now_another_version(OTHER, cut_after(700))):
        server.content, server.tag = CONTENT, '"first"'
        assert downloaded(server, tmp_path, cut_after(5000), change) == OTHER
    assert server.requests[5]["If-Range"] == '"first"'


@pytest.mark.parametrize(
    ("script", "address", "sentence"),
    [
        (
            [stall_after(1000), *[stall_after(0)] * 3],
            "",
            "(timed out); run the same command again to resume",
        ),
        ([refuse(401)], "", "(401 Unauthorized); it needs a login; for Hugging Face set HF_TOKEN"),
        ([refuse(404)], "", "(404 Not Found); put its new address on the card"),
        ([], "file:///etc/hostname", "(an address starts with https://)"),
        ([], "http://127.0.0.1:9/x", "(Connection refused); run the same command again"),
    ],
)
def test_failed_download_is_a_sentence(
    server: Server, tmp_path: Path, script: list[Behaviour], address: str, sentence: str
) -> None:
    server.script[:] = script
    address = address or f"{server.address}/corpus.txt"
    expected = re.escape(f"{address} cannot be fetched {sentence}")
    with pytest.raises(Refusal, match=expected), impatient():
        Download(address, tmp_path / "corpus.txt", lambda _, __: None, {}).run()
    assert not (tmp_path / "corpus.txt").exists()


def test_secret_is_not_sent_to_a_redirect(server: Server, tmp_path: Path) -> None:
    downloaded(server, tmp_path, redirect, Authorization="Bearer secret")
    assert ["Authorization" in headers for headers in server.requests] == [True, False]


# Packages


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


SETUP = "import setuptools\nopen('{mark}', 'w').close()\nsetuptools.setup(name='known')\n"
CONTENTS = {
    "usr/src/linux.tar.xz": tar(
        {"linux/b.c": b"b", "linux/a.h": b"a", "linux/README": b"no"}, "w:xz"
    ),
    "usr/doc/new/rfc9.txt.gz": gzip.compress(b"nine"),
    "usr/doc/old/rfc10.txt.gz": gzip.compress(b"ten"),
    "usr/doc/dna.fasta": b">x\nAC\nGT\n",
    "usr/doc/poems.json": b'[\n    "one",\n    "two"\n]\n',
}


def test_files_of_packages_are_joined_and_nothing_is_built(
    server: Server, cache_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.address}/simple")

    def joined(form: str, file: str, content: bytes, pattern: str) -> bytes:
        """What is taken of a package of which the index has one file."""
        page = f'<!DOCTYPE html><html><body><a href="/{file}">{file}</a></body></html>'
        headers = {"Content-Type": "text/html"}
        server.content = content
        server.script[:] = [lambda request: request.answer(200, page.encode(), headers)]
        package = {"kind": "package_index", "package": "known", "version": "1.0", "form": form}
        place, _ = get(card({**package, "files": [pattern]}, facts={}))
        assert left(cache_folder) == []
        made = place.read_bytes()
        place.unlink()
        return made

    python = {"b.py": b"b", "a/z.py": b"z", "a.txt": b"no", "a/a.py": b"a"}
    assert joined("wheel", "known-1.0-py3-none-any.whl", wheel(python), "*.py") == b"bza"
    texts = {
        "known-1.0/setup.py": SETUP.format(mark=tmp_path / "mark").encode(),
        "known-1.0/PKG-INFO": b"",
        "known-1.0/b/neg.txt": b"bad\n",
        "known-1.0/b/pos.txt": b"good\n",
    }
    made = joined("source", "known-1.0.tar.gz", tar(texts, "w:gz"), "*/b/*.txt")
    assert made == b"bad\ngood\n"
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
    monkeypatch.setattr(shutil, "which", str)
    with pytest.raises(Refusal, match=sentence):
        packages.download(source, tmp_path)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(Refusal, match="is not installed; fetch this where it is"):
        packages.download(source, tmp_path)


def joined(folder: Path, archive: str, content: bytes, **rule: Any) -> str:
    """What a card takes of an archive."""
    (folder / "packages").mkdir()
    (folder / "packages" / archive).write_bytes(content)
    source = Npm(package="known", **{**COMMON, **rule})
    join(folder / "packages", source, folder / "text", lambda _: None)
    return (folder / "text").read_text()


@pytest.mark.parametrize("row", rows_beside(__file__, "packages.toml"))
def test_files_are_joined_by_the_card(tmp_path: Path, row: dict[str, Any]) -> None:
    package = tmp_path, "known.tar", tar(CONTENTS, "w")
    if "text" in row:
        assert joined(*package, **row["rule"]) == row["text"]
        return
    with pytest.raises(Refusal, match=re.escape(row["refused"])):
        joined(*package, **row["rule"])


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.tar", tar(CONTENTS, "w")[:700]), ("a.whl", wheel(CONTENTS)[:-9]), ("a.tgz", b"no")],
    ids=["tar", "wheel", "text"],
)
def test_damaged_archive_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    with pytest.raises(Refusal, match=r" is damaged \(.*; fetch it again"):
        joined(tmp_path, name, content)
    assert not (tmp_path / "text").exists()


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="no dpkg-deb here")
def test_debian_package_is_read(tmp_path: Path) -> None:
    control = b"Package: known\nVersion: 1.0\nArchitecture: all\nMaintainer: n <n@b.org>\nDescription: d\n"
    root, package = tmp_path / "root", tmp_path / "known.deb"
    for name, content in {"DEBIAN/control": control, **CONTENTS}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    command = ["dpkg-deb", "--build", "--root-owner-group", str(root), str(package)]
    subprocess.run(command, check=True, capture_output=True)
    rule = {"files": ["*.c", "*.h"], "inside": "usr/src/linux.tar.xz"}
    assert joined(tmp_path, "known.deb", package.read_bytes(), **rule) == "ba"
