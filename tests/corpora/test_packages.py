"""Files of packages become a corpus, and nothing of a package is run."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fetched import card, facts, get, left
from local_server import Server

from harness.common.errors import Refusal
from harness.corpora import fetch
from harness.corpora.fetch import download, join

NOTHING: Any = lambda _: None  # noqa: E731


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


# Downloading


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
    source = {"kind": "package_index", "package": "known", "version": "1.0", "form": form, "files": list(files)}
    return card(source, facts={})


def test_files_of_packages_are_joined_and_nothing_is_built(index: Server, cache_folder: Path, tmp_path: Path) -> None:
    content = wheel({"b.py": b"b", "a/z.py": b"z", "a.txt": b"no", "a/a.py": b"a"})
    place, _ = get(package(index, "known-1.0-py3-none-any.whl", content, "*.py"))
    assert (place.read_bytes(), left(cache_folder)) == (b"bza", [])
    place.unlink()
    setup = f"import setuptools\nopen({str(tmp_path / 'mark')!r}, 'w').close()\nsetuptools.setup(name='known')\n"
    names = {"setup.py": setup.encode(), "PKG-INFO": b"", "b/neg.txt": b"bad\n", "b/pos.txt": b"good\n"}
    content = tar({f"known-1.0/{name}": content for name, content in names.items()}, "w:gz")
    place, _ = get(package(index, "known-1.0.tar.gz", content, "*/b/*.txt"))
    assert (place.read_bytes(), left(cache_folder)) == (b"bad\ngood\n", [])
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    ("kind", "source", "command", "sentence"),
    [
        ("package_index", {"package": "known"}, ["pip", "--only-binary=:all:", "known==1"], r"known 1 .*E: b\); check"),
        ("package_index", {"package": "a", "form": "source"}, [fetch.__name__, "a==1"], r"\(E: b\); check"),
        ("debian", {"packages": ["a", "b"]}, ["apt-get", "a=1", "b=1"], r"a, b 1 .*\(E: b\); it needs Debian"),
        ("npm", {"package": "known"}, ["npm", "--ignore-scripts", "known@1"], r"\(E: b\); .*npm view"),
    ],
)
def test_failure_of_a_client_is_quoted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    source: dict[str, Any],
    command: list[str],
    sentence: str,
) -> None:
    def run(arguments: list[str], **_: Any) -> Any:
        assert set(command) <= set(arguments)
        return subprocess.CompletedProcess(arguments, 1, "", "E:\n b\n")

    monkeypatch.setattr(subprocess, "run", run)
    for program, expected in ((str, sentence), (lambda _: None, "is not installed; fetch this where it is")):
        monkeypatch.setattr(shutil, "which", program)
        with pytest.raises(Refusal, match=expected):
            download({"kind": kind, "version": "1", **source}, tmp_path)


# Joining


CONTENTS = {
    "usr/src/linux.tar.xz": tar({"linux/b.c": b"b", "linux/a.h": b"a", "linux/README": b"no"}, "w:xz"),
    "usr/doc/new/rfc9.txt.gz": gzip.compress(b"nine"),
    "usr/doc/old/rfc10.txt.gz": gzip.compress(b"ten"),
    "usr/doc/dna.fasta": b">x\nAC\nGT\n",
    "usr/doc/poems.json": b'[\n    "one",\n    "two"\n]\n',
}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"files": ["*.c", "*.h"], "inside": "usr/src/linux.tar.xz"}, b"ba"),
        ({"files": ["*.c", "*.h"], "inside": "usr/src/linux.tar.xz", "order": "name"}, b"ab"),
        ({"files": ["*/rfc*.txt.gz"], "order": "version"}, b"nineten"),
        ({"files": ["*/rfc*.txt.gz"], "order": "name"}, b"nineten"),
        ({"files": ["*.fasta"], "lines": "^([A-Z]+)$", "line_end": ""}, b"ACGT"),
        ({"files": ["*.json"], "lines": '^ {4}"(.*?)",?$'}, b"one\ntwo\n"),
        ({"files": ["*.py", "*.c"]}, "no file matches *.py or *.c; the card is for another version"),
        ({"files": ["*"], "inside": "usr/src/other.tar"}, "no file matches *; the card is for another version"),
    ],
)
def test_files_are_joined_by_the_card(tmp_path: Path, rule: dict[str, Any], expected: bytes | str) -> None:
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "known.tar").write_bytes(tar(CONTENTS, "w"))
    if isinstance(expected, str):
        with pytest.raises(Refusal) as refused:
            join(tmp_path / "packages", rule, tmp_path / "text", NOTHING)
        assert str(refused.value).startswith(expected)
    else:
        join(tmp_path / "packages", rule, tmp_path / "text", NOTHING)
        assert (tmp_path / "text").read_bytes() == expected


def test_damaged_archive_is_refused(tmp_path: Path) -> None:
    for name, content in (("a.tar", tar(CONTENTS, "w")[:700]), ("a.whl", wheel(CONTENTS)[:-9]), ("a.tgz", b"no")):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_bytes(content)
        with pytest.raises(Refusal, match=r" is damaged \(.*; fetch it again"):
            join(tmp_path / name, {"files": ["*"]}, tmp_path / "text", NOTHING)
        assert not (tmp_path / "text").exists()


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="no dpkg-deb here")
def test_debian_package_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    control = b"Package: known\nVersion: 1.0\nArchitecture: all\nMaintainer: n <n@b.org>\nDescription: d\n"
    for name, content in {"DEBIAN/control": control, **CONTENTS}.items():
        (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / name).write_bytes(content)
    place, script = tmp_path / "known_1.0_all.deb", tmp_path / "bin" / "apt-get"
    build = ["dpkg-deb", "--build", "--root-owner-group", str(tmp_path / "root"), str(place)]
    subprocess.run(build, check=True, capture_output=True)
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\n[ "$*" = "-q download known=1.0" ] && cp "{place}" .\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    rule = {"files": ["*.c", "*.h"], "inside": "usr/src/linux.tar.xz"}
    source = {"kind": "debian", "packages": ["known"], "version": "1.0", **rule}
    assert get(card(source, facts=facts(b"ba")))[0].read_bytes() == b"ba"
