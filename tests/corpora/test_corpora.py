"""From a card to one plain file: found or refused, verified, cut; the cards, and python -m
harness.corpora.
"""

from __future__ import annotations

import hashlib
import os
import re
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from exploring import examples
from fetched import CONTENT, END, facts, prepared, refusal, url
from hypothesis import given
from hypothesis import strategies as st
from local_server import Server, refuse
from packaging.licenses import canonicalize_license_expression

from harness.common import registry
from harness.common.errors import OK, UNMEASURED, USAGE
from harness.corpora import CorpusFile, files
from harness.corpora import __main__ as command
from harness.corpora import files as corpus_files
from harness.corpora.cards import FETCHED, YOURS, cards, standard_library
from harness.corpora.files import bounds, character_start
from harness.corpora.packages import ORDER

TEXT = f"one{END}two 二{END}{END}three\r\n{END}four"
DIGEST = hashlib.sha256(TEXT.encode()).hexdigest()


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "a book, (中文).txt"
    path.write_bytes(TEXT.encode())
    return path


def test_checksum_holds_wherever_the_file_is(book: Path, cache_folder: Path) -> None:
    assert prepared(book) == CorpusFile(book.name, book, len(TEXT.encode()), DIGEST)
    source = {"kind": "url", "file": "known.txt", "url": "https://moon.invalid/known.txt"}
    assert prepared(book, name="known", source=source).name == book.name
    facts = {"bytes": len(TEXT.encode()), "sha256": DIGEST}
    assert prepared(book, name="known", source=source, facts=facts).name == "known"
    (cache_folder / "corpora").mkdir(parents=True)
    (cache_folder / "corpora" / "known.txt").write_text("here")
    assert prepared(None, source=source).bytes == 4
    assert prepared(book, facts=facts).sha256 == DIGEST
    wrong = refusal(book, facts={"sha256": "0" * 64})
    assert (
        f"has sha256 {DIGEST}, its card says {'0' * 64}; it is another file or damaged; remove it"
        in wrong
    )


def test_unreadable_path_is_refused(tmp_path: Path, book: Path) -> None:
    (tmp_path / "lost").symlink_to("nowhere")
    (tmp_path / "circle").symlink_to("circle")
    os.mkfifo(tmp_path / "pipe")
    assert "lost not found; pass a file that exists" in refusal(tmp_path / "lost")
    assert "cannot read" in refusal(tmp_path / "circle")
    assert "is not a plain file" in refusal(tmp_path / "pipe")
    if os.geteuid():  # root may read everything
        book.chmod(0)
        assert "cannot read" in refusal(book)


def rewrite(path: Path) -> None:
    """Change the content but not the size or the time of the change."""
    status = path.stat()
    with path.open("r+b") as file:
        file.write(b"two")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize(
    "change", [rewrite, lambda path: os.truncate(path, len(TEXT.encode()) + 1), Path.unlink]
)
def test_changed_file_is_noticed(
    book: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object]
) -> None:
    monkeypatch.setattr(corpus_files, "SECONDS_TO_SETTLE", -1)
    corpus = prepared(book)
    assert corpus.is_unchanged()
    time.sleep(0.02)  # longer than a tick of the kernel's clock
    change(book)
    assert not corpus.is_unchanged()


def test_slice_of_a_changing_file_is_not_kept(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CorpusFile, "is_unchanged", lambda _: False)
    assert "was changed while it was read; run the same again" in refusal(book, bytes="40")


@given(
    st.lists(
        st.sampled_from(["a", "二", "😀", " ", "\n", END, "<|endof", "text|>"]), max_size=30
    ).map("".join),
    st.integers(0, 120),
    st.none() | st.integers(1, 120),
    st.none() | st.integers(1, 4),
    st.sampled_from([[END], []]),
)
@examples(400)
def test_slice_of_text_is_text_within_its_bounds(
    text: str, skip: int, length: int | None, documents: int | None, tokens: list[str]
) -> None:
    content, end = text.encode(), END.encode()
    start, stop = bounds(content, tokens, skip, length, documents)
    assert 0 <= start <= stop <= len(content)
    content[start:stop].decode()
    if length is not None:
        assert stop - start <= length
        if documents is None and stop < len(content):
            assert length - max(length // 10, len(END) - 1) <= stop - start
    if END not in text or not tokens:
        assert start == character_start(content, min(skip, len(content)))
    else:
        assert start >= min(skip, len(content))
        assert start in (0, len(content)) or content[:start].endswith(end)
    if documents is not None and tokens:  # as many as a counter finds
        slices = content[start:], content[start:stop]
        there, here = (sum(bool(part.strip()) for part in each.split(end)) for each in slices)
        assert here <= min(documents, there)
        assert here == min(documents, there) or length is not None


def test_standard_library_is_a_document_for_each_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "lib"
    modules = {"b.py": "b = 1\n", "a/z.py": "# ä\r\n", "a.py": "", "Z.py": "Z", "a-b/c.py": "c"}
    folders = (
        "test",
        "a/tests",
        "site-packages",
        "dist-packages",
        "a/__pycache__",
        "idlelib/idle_test",
    )
    for name in [*modules, *(f"{folder}/x.py" for folder in folders), "readme.txt"]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(modules.get(name, "left out").encode())
    (root / "latin.py").write_bytes(b"# \xe4\n")
    (root / "lost.py").symlink_to("nowhere")
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"stdlib": str(root)})
    first = standard_library()
    in_order = ["Z.py", "a-b/c.py", "a.py", "a/z.py", "b.py"]
    assert first.read_bytes() == "".join(modules[name] + END for name in in_order).encode()
    standard_library.cache_clear()
    assert standard_library() == first
    (root / "b.py").write_text("b = 22\n")
    standard_library.cache_clear()
    assert standard_library() != first


def test_cards_are_complete() -> None:
    sources: dict[str, tuple[object, object]] = {}
    for name, card in cards().items():
        source, licence = card["source"], card["licence"]
        assert card["about"], name
        assert card["language"] or source["kind"] in YOURS, name
        if source["kind"] in FETCHED:
            text = (source, card["facts"].get("sha256"))
            assert sources.setdefault(source["file"], text) == text, (
                "cards with one file have one source"
            )
            assert source["file"] == Path(source["file"]).name
            assert licence, name
            assert registry.cards("data")[name]["special_tokens"] == [END]
        if "files" in source:
            assert source.get("order", "archive") in ORDER, name
            assert card["facts"]["sha256"], name
        if re.fullmatch(r"[A-Z][A-Za-z0-9.+-]+( (WITH|AND|OR) [A-Za-z0-9.+-]+)*", licence):
            assert canonicalize_license_expression(licence) == licence


def test_incomplete_card_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    card = tmp_path / "data" / "mine.yaml"
    card.parent.mkdir()
    card.write_text("source: {}")
    folder = ["--config-dir", str(tmp_path)]
    assert [ran(capsys, name, "stdlib", *folder)[0] for name in ("info", "path")] == [OK, OK]
    for arguments in (["list"], ["info", "mine"], ["fetch", "mine"]):
        code, shown, sentence = ran(capsys, *arguments, *folder)
        assert (code, shown) == (USAGE, "")
        assert sentence.startswith(f"{card}: source: object missing required field `kind`")


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = command.main(arguments)
    return code, *capsys.readouterr()


def test_corpus_is_fetched_verified_and_found(
    capsys: pytest.CaptureFixture[str],
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    cache_folder: Path,
) -> None:
    monkeypatch.setattr(command, "card_of", lambda _: url(server))
    place = cache_folder / "corpora" / "known.txt"
    server.script[:] = [refuse(404)]
    assert ran(capsys, "fetch", "known")[0] == UNMEASURED
    assert ran(capsys, "fetch", "known")[0] == OK
    code, shown, _ = ran(capsys, "verify", "known")
    assert code == OK
    assert f"sha256  {facts()['sha256']}  as the card says" in shown
    assert ran(capsys, "path", "known") == (OK, f"{place}\n", "")
    place.write_bytes(CONTENT[::-1])
    os.utime(place, (0, 0))
    code, _, message = ran(capsys, "verify", "known")
    assert code == UNMEASURED
    assert f"its card says {facts()['sha256']}" in message
    assert ran(capsys, "path", "known")[0] == UNMEASURED
    files.remember(place, facts()["sha256"])  # as if the disk had changed it
    code, _, message = ran(capsys, "verify", "known")
    assert (code, "is damaged, though its times are unchanged" in message) == (UNMEASURED, True)
