"""Files of packages become a corpus, and nothing of a package is run."""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from fetched import END, card, facts, get, left, refusal_of
from local_server import Server

from harness.common.errors import Refusal
from harness.corpora.packages import from_debian, from_npm, from_package_index


def wheel(folder: Path, **members: bytes) -> Path:
    place = folder / "known-1.0-py3-none-any.whl"
    with zipfile.ZipFile(place, "w") as file:
        file.writestr("known-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: known\nVersion: 1.0\n")
        file.writestr("known-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        for name, content in members.items():
            file.writestr(name.replace("__", "/").replace("_py", ".py"), content)
    return place


def source_distribution(mark: Path) -> bytes:
    """A package whose build would leave a mark."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as file:
        setup = f"import setuptools\nopen({str(mark)!r}, 'w').close()\nsetuptools.setup(name='known', version='1.0')\n"
        for name, content in (
            ("setup.py", setup.encode()),
            ("PKG-INFO", b""),
            ("b/neg.txt", b"bad\n"),
            ("b/pos.txt", b"good\n"),
        ):
            entry = tarfile.TarInfo(f"known-1.0/{name}")
            entry.size = len(content)
            file.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


@pytest.fixture
def index(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server as a package index, and pip told to ask no other."""
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.address}/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    return server


def page(name: str) -> Any:
    body = f'<!DOCTYPE html><html><body><a href="/{name}">{name}</a></body></html>'.encode()
    return lambda request: request.answer(200, body, {"Content-Type": "text/html"})


def package(form: str, *files: str, **further: Any) -> dict[str, Any]:
    source = {"kind": "package_index", "package": "known", "version": "1.0", "form": form, "files": list(files)}
    return card({**source, **further}, facts={})


def test_files_of_a_wheel_are_joined(index: Server, tmp_path: Path, cache_folder: Path) -> None:
    place = wheel(tmp_path, b_py=b"b", a__z_py=b"z", a_txt=b"no", a__a_py=b"a")
    index.content, index.script[:] = place.read_bytes(), [page(place.name)]
    assert get(package("wheel", "*.py"))[0].read_bytes() == b"bza"
    assert left(cache_folder) == []


def test_a_source_distribution_is_read_without_running_it(index: Server, tmp_path: Path) -> None:
    mark = tmp_path / "was run"
    index.content, index.script[:] = source_distribution(mark), [page("known-1.0.tar.gz")]
    assert get(package("source", "*/b/*.txt", separator=END))[0].read_bytes() == f"bad\n{END}good\n{END}".encode()
    assert not mark.exists()


def test_missing_version_is_reported(index: Server, cache_folder: Path) -> None:
    index.script[:] = [page("known-2.0-py3-none-any.whl")]
    message = refusal_of(package("wheel", "*.py"), cache_folder)
    assert message.startswith(
        "known==1.0 cannot be downloaded (No matching distribution found for known==1.0); check that"
    )


def test_a_package_without_such_files_is_refused(index: Server, tmp_path: Path, cache_folder: Path) -> None:
    place = wheel(tmp_path, a_txt=b"no")
    index.content, index.script[:] = place.read_bytes(), [page(place.name)]
    assert "no file matches *.py" in refusal_of(package("wheel", "*.py"), cache_folder)


def debian_package(folder: Path) -> Path:
    if shutil.which("dpkg-deb") is None:
        pytest.skip("no dpkg-deb here")
    root = folder / "root"
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w:xz") as file:
        for name, content in (("linux/b.c", b"b"), ("linux/a.h", b"a"), ("linux/README", b"no")):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            file.addfile(entry, io.BytesIO(content))
    contents = {
        "DEBIAN/control": b"Package: known\nVersion: 1.0\nArchitecture: all\nMaintainer: n <n@b.org>\nDescription: d\n",
        "usr/src/linux.tar.xz": inner.getvalue(),
        "usr/doc/new/rfc9.txt.gz": gzip.compress(b"nine"),
        "usr/doc/old/rfc10.txt.gz": gzip.compress(b"ten"),
        "usr/doc/dna.fasta": b">x\nAC\nGT\n",
        "usr/doc/poems.json": b'[\n    "one",\n    "two"\n]\n',
    }
    for name, content in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    place = folder / "known_1.0_all.deb"
    subprocess.run(
        ["dpkg-deb", "--build", "--root-owner-group", str(root), str(place)], check=True, capture_output=True
    )
    return place


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"files": ["*.c", "*.h"], "inside": "usr/src/linux.tar.xz"}, b"ba"),
        ({"files": ["*.c", "*.h"], "inside": "usr/src/linux.tar.xz", "order": "name"}, b"ab"),
        ({"files": ["*/rfc*.txt.gz"], "order": "version"}, b"nineten"),
        ({"files": ["*/rfc*.txt.gz"], "order": "name"}, b"nineten"),
        ({"files": ["*.fasta"], "take": "sequence"}, b"ACGT"),
        ({"files": ["*.json"], "lines": '^ {4}"(.*?)",?$'}, b"one\ntwo\n"),
    ],
)
def test_files_of_a_debian_package_are_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: dict[str, Any], expected: bytes
) -> None:
    place = debian_package(tmp_path)
    script = tmp_path / "bin" / "apt-get"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\n[ "$*" = "-q download known=1.0" ] && cp "{place}" .\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    source = {"kind": "debian", "packages": ["known"], "version": "1.0", **rule}
    assert get(card(source, facts=facts(expected)))[0].read_bytes() == expected


@pytest.mark.parametrize(
    ("client", "source", "message"),
    [
        (
            from_debian,
            {"packages": ["known"], "version": "1"},
            "apt-get is not installed; fetch this on Debian",
        ),
        (from_npm, {"package": "known", "version": "1"}, "npm is not installed; fetch this on a machine with Node.js"),
    ],
)
def test_missing_client_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: Any, source: dict[str, Any], message: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refusal, match=re.escape(message)):
        client(source, tmp_path)


def test_a_client_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, line in (
        ("apt-get", "E: Version '1' for 'known' was not found"),
        ("dpkg-deb", ""),
        ("npm", "npm error 404"),
    ):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{line}" >&2\necho "W: more" >&2\nexit 1\n')
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(Refusal, match=r"known=1 cannot be downloaded \(Version '1' for 'known' was not found\); it"):
        from_debian({"packages": ["known"], "version": "1", "needs": "more"}, tmp_path)
    with pytest.raises(Refusal, match=r"known@1 cannot be downloaded \(404\); check that the version still exists"):
        from_npm({"package": "known", "version": "1"}, tmp_path)
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(Refusal, match=r"known==1 cannot be downloaded \(no reason given\)"):
        from_package_index({"package": "known", "version": "1"}, tmp_path)
