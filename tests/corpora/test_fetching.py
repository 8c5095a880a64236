"""A fetched corpus is what its card describes, whatever the server does; nothing of a package is
run.
"""

import gc
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
import zipfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import local_server
import pytest
from fetched import CONTENT, END, card, facts, get, left, refusal_of, url
from local_server import Server, refuse, stall_after
from packaging.licenses import canonicalize_license_expression
from rows import Row, each_row, parquet_of, write_files
from workbench import CHECKOUT, Call, first_fast, full_disk, heed_signals, started, wait_until

from harness.common import cache, registry
from harness.common.cards import Addressed, Packaged, Yours
from harness.common.errors import OK, UNMEASURED, Refusal
from harness.corpora import card_of, fetch
from harness.corpora.fetch import join_files

OTHER = CONTENT[::-1]


def test_cards_are_complete() -> None:
    sources: dict[str, tuple[object, object]] = {}
    for name in registry.names("data"):
        card = card_of(name)
        source, licence = card.source, card.licence
        assert card.about, name
        assert card.language or isinstance(source, Yours), name
        assert not isinstance(source, Packaged) or card.facts.sha256, name
        if isinstance(source, Addressed | Packaged):
            text = source, card.facts.sha256
            assert sources.setdefault(source.file, text) == text, "one file has two sources"
            assert licence, name
            assert card.special_tokens == [END]
        if re.fullmatch(r"[A-Z][A-Za-z0-9.+-]+( (WITH|AND|OR) [A-Za-z0-9.+-]+)*", licence):
            assert canonicalize_license_expression(licence) == licence


# One file


@pytest.fixture
def known(server: Server, tmp_path: Path) -> str:
    """The arguments of a command for a card of what the server has."""
    source = {"kind": "url", "url": f"{server.address}/known.txt", "file": "known.txt"}
    card = {"source": source, "facts": facts()}
    write_files(tmp_path, {"data/known.yaml": json.dumps(card)})
    return f"known --config-dir {tmp_path}"


def test_corpus_is_fetched_verified_and_found(
    call: Call, server: Server, known: str, cache_folder: Path
) -> None:
    place = cache_folder / "corpora" / "yours" / "known" / "known.txt"
    fetch, verify, path = (f"corpora {name} {known}" for name in ("fetch", "verify", "path"))

    server.script[:] = [refuse(404)]
    assert call(fetch).code == UNMEASURED
    assert call(fetch).code == OK
    assert call(fetch) == (OK, "", f"known is at {place}, as its card says\n")
    assert len(server.requests) == 2
    assert (place.read_bytes(), left(cache_folder)) == (CONTENT, [])
    verified = call(verify)
    assert verified.code == OK
    assert f"sha256  {facts()['sha256']}  as the card says" in verified.out
    assert call(path) == (OK, f"{place}\n", "")

    place.write_bytes(OTHER)
    for command in (verify, path):
        refused = call(command)
        assert refused.code == UNMEASURED
        assert "or damaged; get it with python -m harness.corpora fetch known" in refused.err

    cache.seal(place.parent, None, {place.name: facts()["sha256"]})  # as if the disk had changed it
    damaged = call(verify)
    assert damaged.code == UNMEASURED
    assert "is damaged, though its times are unchanged" in damaged.err

    place.write_bytes(b"")
    assert call(fetch).code == OK
    assert place.read_bytes() == CONTENT


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
    digest = hashlib.sha256(server.content).hexdigest()
    monkeypatch.setenv("HF_ENDPOINT", server.address)
    monkeypatch.setenv("HF_TOKEN", "secret")
    source: dict[str, Any] = {"kind": "hugging_face", "repository": "a/b", "revision": "main"}
    source |= {"paths": ["c/1.parquet", "2.parquet"], "column": "text", "separator": END}

    wrong = card({**source, "sha256": [digest, "0" * 64]}, facts={})
    assert f"has sha256 {digest}, its card says 000" in refusal_of(wrong, cache_folder)
    large = card({**source, "download": 2 * len(server.content) - 1}, facts={})
    assert "2.parquet is longer than its card says" in refusal_of(large, cache_folder)

    place, messages = get(card({**source, "sha256": [digest, None]}, facts={}))
    assert place.read_text() == f"one{END}二{END}" * 2
    assert messages[0] == "fetching c/1.parquet, 2.parquet of a/b"
    assert "Bearer secret" in {headers.get("authorization") for headers in server.requests}
    gc.collect()  # else what the client left is collected, and warned of, in another test

    cache.remove("corpora", "known")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    sentence = refusal_of(card(source), cache_folder)
    assert re.search(r"needs huggingface_hub, .* pip install 'bpe-harness\[data\]'", sentence)


@pytest.mark.parametrize("number", first_fast([signal.SIGINT, signal.SIGKILL]))
def test_interrupted_fetch_leaves_nothing_in_place(
    server: Server, known: str, cache_folder: Path, call: Call, number: signal.Signals
) -> None:
    server.script[:] = [stall_after(20_000)]
    command = f"corpora fetch {known}"
    with started(CHECKOUT, "-m", "harness", *command.split(), preexec_fn=heed_signals) as process:
        wait_until(lambda: len(server.requests) == 1, "a request")
        process.send_signal(number)
        _, stderr = process.communicate(timeout=60)

    assert process.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL)
    assert "Traceback" not in stderr
    assert not any((cache_folder / "corpora").rglob("known.txt"))
    assert call(command).code == OK


def test_full_disk_is_reported(
    server: Server, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with full_disk(20_000):
        sentence = refusal_of(url(server), cache_folder)
    assert "(File too large); set BPE_HARNESS_CACHE to a folder" in sentence
    assert get(url(server))[0].read_bytes() == CONTENT
    cache.remove("corpora", "known")

    free = shutil.disk_usage(CHECKOUT)._replace(free=len(CONTENT) - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    assert "known needs " in refusal_of(url(server), cache_folder)
    assert len(server.requests) == 2


def test_two_fetches_of_one_corpus_are_one(server: Server) -> None:
    messages = list[str]()
    with mock.patch.object(fetch, "print_stderr", messages.append), ThreadPoolExecutor(4) as pool:
        list(pool.map(fetch.fetch, [url(server)] * 4))
    assert len(server.requests) == 1
    assert sum(line.startswith("known is at") for line in messages) == 4


# Servers


@each_row(__file__, "downloads.toml")
def test_a_download_arrives_whole_or_fails_in_a_sentence(
    server: Server, cache_folder: Path, row: Row
) -> None:
    for step in row.get("script", []):
        ((name, argument),) = step.items()
        behaviour = getattr(local_server, name)
        server.script.append(behaviour if argument is True else behaviour(argument))
    data = url(server, row.get("name", "known.txt"), row.get("source"))
    if "refused" in row:
        assert row["refused"] in refusal_of(data, cache_folder)
        server.script[:] = []
    if "source" not in row:
        assert get(url(server))[0].read_bytes() == CONTENT


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


@each_row(__file__, "clients.toml")
def test_failure_of_a_client_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: Row
) -> None:
    source: Any = card({"version": "1", "files": ["*"], **row["source"]}).source

    def run(arguments: list[str], **_: Any) -> Any:
        assert set(row["command"]) <= set(arguments)
        return subprocess.CompletedProcess(arguments, 1, "", "E:\n b\n")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(shutil, "which", lambda name: name if row.get("installed", True) else None)
    with pytest.raises(Refusal, match=re.escape(row["refused"])):
        fetch.download_packages(source, tmp_path)


PACKAGE = {"kind": "npm", "package": "known", "version": "1", "files": ["*"]}


def joined(folder: Path, archive: str, content: bytes, **rule: Any) -> str:
    """What a card takes of an archive."""
    (folder / "packages").mkdir()
    (folder / "packages" / archive).write_bytes(content)
    source: Any = card({**PACKAGE, **rule}).source
    join_files([folder / "packages" / archive], source, folder / "text", 0)
    return (folder / "text").read_text()


@each_row(__file__, "packages.toml")
def test_files_are_joined_by_the_card(tmp_path: Path, row: Row) -> None:
    package = tmp_path, "known.tar", tar(CONTENTS, "w")
    if "text" in row:
        assert joined(*package, **row["rule"]) == row["text"]
        return
    with pytest.raises(Refusal, match=re.escape(row["refused"])):
        joined(*package, **row["rule"])


def damaged_archives() -> dict[str, tuple[str, bytes]]:
    """Archives that are no archives, end early, or need what their libraries lack."""
    stored = wheel({"a.txt": b"text" * 99})
    sparse = tarfile.TarInfo("a")
    sparse.pax_headers = {"GNU.sparse.map": "one"}
    return {
        "no archive": ("a.tgz", b"no"),
        "cut tar": ("a.tar", tar(CONTENTS, "w")[:700]),
        "cut gzip": ("a.tgz", tar(CONTENTS, "w:gz")[:90]),
        "cut xz": ("a.tar.xz", tar(CONTENTS, "w:xz")[:150]),
        "cut zip": ("a.whl", stored[:-9]),
        "flipped xz": ("a.tar.xz", tar(CONTENTS, "w:xz").replace(b"\xfd7zXZ\0", b"\xfd7zXZ\0\1")),
        "flipped text": ("a.whl", stored.replace(b"texttext", b"textText", 1)),
        "password": ("a.whl", stored.replace(b"\x14\0\0\0", b"\x14\0\1\0")),
        "sparse map": ("a.tar", sparse.tobuf(tarfile.PAX_FORMAT) + b"x" * 1024),
        "inner gzip": ("a.whl", wheel({"a.gz": gzip.compress(b"text")[:-3]})),
        "no package": ("a.deb", b"no"),
    }


@pytest.fixture
def archives(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bytes]]:
    """What the client of packages downloads, one after another."""
    waiting: list[tuple[str, bytes]] = []

    def write(_: object, folder: Path) -> None:
        file, content = waiting.pop(0)
        (folder / file).write_bytes(content)

    monkeypatch.setattr(fetch, "download_packages", write)
    return waiting


@pytest.mark.parametrize("name", damaged_archives())
def test_damaged_archive_is_discarded_and_fetched_again(
    cache_folder: Path, archives: list[tuple[str, bytes]], name: str
) -> None:
    archives += [damaged_archives()[name], ("a.tar", tar({"a.txt": CONTENT}, "w"))]
    package = card(PACKAGE)
    sentence = refusal_of(package, cache_folder)
    assert re.search(r" is damaged \(.*\); fetch it again$", sentence), sentence
    assert left(cache_folder) == []
    assert get(package)[0].read_bytes() == CONTENT


def test_package_that_unpacks_to_more_than_its_card_says_is_refused(
    cache_folder: Path, archives: list[tuple[str, bytes]]
) -> None:
    archives.append(("a.tar", tar({"a.txt": CONTENT, "b.txt": b"more"}, "w")))
    sentence = refusal_of(card(PACKAGE), cache_folder)
    assert "known.txt is longer than its card says (108000 bytes" in sentence


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="no dpkg-deb here")
def test_debian_package_is_read(tmp_path: Path) -> None:
    control = (
        "Package: known\nVersion: 1.0\nArchitecture: all\nMaintainer: n <n@b.org>\nDescription: d\n"
    )
    root, package = tmp_path / "root", tmp_path / "known.deb"
    write_files(root, {"DEBIAN/control": control, "usr/b.c": "b", "usr/README": "no"})
    command = ["dpkg-deb", "--build", "--root-owner-group", str(root), str(package)]
    subprocess.run(command, check=True, capture_output=True)
    assert joined(tmp_path, "known.deb", package.read_bytes(), files=["*.c"]) == "b"
