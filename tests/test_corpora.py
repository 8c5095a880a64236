"""From a card to one plain file: found or refused, verified, cut; and the cache where such files are kept."""

from __future__ import annotations

import hashlib
import os
import sysconfig
import time
from pathlib import Path
from typing import Any

import pytest
from exploring import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from harness.common import files, registry, units
from harness.common.errors import UNMEASURED, Refusal
from harness.corpora import CorpusFile, prepare
from harness.corpora import files as corpus_files
from harness.corpora.cards import NEEDED
from harness.corpora.files import bounds, character_start
from harness.corpora.packages import INSTALLED, WITHOUT_SOURCE, site_packages, source_files, standard_library
from variants.contract import Corpus, Meter
from variants.counting.pretokenize import serial

END = "<|endoftext|>"
TEXT = f"one{END}two 二{END}{END}three\r\n{END}four"


def card(path: Path | str | None = None, **further: Any) -> dict[str, Any]:
    """A card for a file of one's own, or with `source` and `facts` for a known one."""
    fields = {"name": "known", "bytes": None, "skip": None, "documents": None, "facts": {}, "source": {"kind": "path"}}
    return {**fields, "path": None if path is None else str(path), **further}


def url(**further: Any) -> dict[str, Any]:
    return {"source": {"kind": "url", "file": "known.txt", "url": "https://moon.invalid/known.txt"}, **further}


def refusal_of(asked: dict[str, Any]) -> str:
    with pytest.raises(Refusal) as refused:
        prepare(asked, [END])
    assert "\n" not in str(refused.value)
    assert refused.value.exit_code == UNMEASURED
    return str(refused.value)


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "a book, (中文).txt"
    path.write_bytes(TEXT.encode())
    return path


def sliced(book: Path, special_tokens: tuple[str, ...] = (END,), **asked: Any) -> str:
    return prepare(card(book, **asked), special_tokens).path.read_bytes().decode()


# ---- finding


def test_a_file_of_ones_own_is_named_after_itself(book: Path) -> None:
    digest = hashlib.sha256(TEXT.encode()).hexdigest()
    assert prepare(card(book), [END]) == CorpusFile(book.name, book, len(TEXT.encode()), digest)


def test_a_file_name_that_is_not_utf_8_can_be_written_down(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9.txt")
    path.write_bytes(b"x")
    corpus = prepare(card(path), [])
    assert corpus.name == "caf\ufffd.txt"
    assert corpus.path == path


def test_a_known_corpus_keeps_its_name_wherever_it_lies(book: Path) -> None:
    assert prepare(card(book, **url()), [END]).name == "known"


def test_a_missing_corpus_says_where_it_is_expected_and_how_to_get_it(cache_folder: Path) -> None:
    assert refusal_of(card(**url())) == (
        f"data=known: no file at {cache_folder}/corpora/known.txt; get it with python -m harness.corpora fetch known, "
        "or set data.path=FILE where you have it"
    )


def test_a_corpus_in_the_cache_is_found(cache_folder: Path) -> None:
    (cache_folder / "corpora").mkdir(parents=True)
    (cache_folder / "corpora" / "known.txt").write_text("here")
    assert prepare(card(**url()), [END]).bytes == 4


@pytest.mark.parametrize(
    "name", [name for name, card in registry.cards("data").items() if card["source"]["kind"] in NEEDED]
)
def test_a_run_on_what_is_not_here_yet_answers_with_the_command_that_gets_it(name: str, cache_folder: Path) -> None:
    source = registry.cards("data")[name]["source"]
    sentence = refusal_of(card(name=name, source=source))
    assert sentence.startswith(f"data={name}: no file at {cache_folder}/corpora/{source['file']}; ")
    assert f"python -m harness.corpora fetch {name}, or set data.path=FILE" in sentence


def test_the_card_for_any_file_wants_its_path() -> None:
    with pytest.raises(Refusal, match=r"data=file needs data\.path=FILE"):
        prepare(card(name="file"), [])


def test_what_is_no_readable_file_is_refused(tmp_path: Path, book: Path) -> None:
    (tmp_path / "lost").symlink_to("nowhere")
    (tmp_path / "circle").symlink_to("circle")
    os.mkfifo(tmp_path / "pipe")
    assert "there is no file" in refusal_of(card(tmp_path / "nonesuch"))
    assert "there is no file" in refusal_of(card(tmp_path / "lost"))
    assert "cannot read" in refusal_of(card(tmp_path / "circle"))
    assert "cannot read" in refusal_of(card(f"{book}/inside"))
    assert "cannot read" in refusal_of(card(tmp_path / ("x" * 5000)))
    assert "is not a plain file" in refusal_of(card(tmp_path / "pipe"))
    assert "is not a plain file" in refusal_of(card("/dev/null"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(book: Path) -> None:
    book.chmod(0)
    assert "cannot read" in refusal_of(card(book))


# ---- verifying


def test_a_checksum_holds_wherever_the_file_lies(book: Path) -> None:
    facts = {"bytes": len(TEXT.encode()), "sha256": hashlib.sha256(TEXT.encode()).hexdigest()}
    assert prepare(card(book, facts=facts), [END]).sha256 == facts["sha256"]
    wrong = refusal_of(card(book, facts={"sha256": "0" * 64}))
    assert f"has sha256 {facts['sha256']}, its card says {'0' * 64}" in wrong
    assert "use it as a file of its own with data=file" in wrong


@pytest.mark.parametrize(
    "change", ["in place", "in place, its time set back", "appended", "replaced", "cut off", "gone"]
)
def test_whatever_happens_to_a_file_is_noticed(book: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    monkeypatch.setattr(corpus_files, "SECONDS_TO_SETTLE", -1)
    corpus = prepare(card(book), [END])
    assert corpus.is_unchanged()
    status = book.stat()
    time.sleep(0.02)  # longer than the kernel's clock stands still
    if change in ("appended", "cut off"):
        os.truncate(book, len(TEXT.encode()) + (1 if change == "appended" else -1))
    elif change == "replaced":
        (book.parent / "other").write_text(TEXT.replace("one", "two"))
        (book.parent / "other").replace(book)
    elif change == "gone":
        book.unlink()
    else:
        with book.open("r+b") as file:
            file.write(b"two")
        if change.endswith("back"):
            os.utime(book, ns=(status.st_atime_ns, status.st_mtime_ns))
            assert book.stat().st_mtime_ns == status.st_mtime_ns
    assert not corpus.is_unchanged()


# ---- cutting


def test_without_a_slice_the_file_itself_is_used(book: Path) -> None:
    assert prepare(card(book), [END]).path == book


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"bytes": "1"}, "o"),
        ({"bytes": "16"}, f"one{END}"),
        ({"bytes": "35"}, f"one{END}two 二"),
        ({"bytes": "36"}, f"one{END}two 二{END}"),
        ({"bytes": "1MB"}, TEXT),
        ({"skip": "0"}, TEXT),
        ({"skip": "1"}, f"two 二{END}{END}three\r\n{END}four"),
        ({"skip": "16"}, f"two 二{END}{END}three\r\n{END}four"),
        ({"skip": "10"}, f"two 二{END}{END}three\r\n{END}four"),
        ({"skip": "17"}, f"{END}three\r\n{END}four"),
        ({"skip": "56"}, "four"),
        ({"skip": "69"}, "four"),
        ({"skip": "36", "bytes": "20"}, f"{END}three\r\n"),
        ({"skip": "1", "bytes": "25"}, f"two 二{END}"),
        ({"documents": 1}, f"one{END}"),
        ({"documents": 2}, f"one{END}two 二{END}"),
        ({"documents": 3}, f"one{END}two 二{END}{END}three\r\n{END}"),
        ({"documents": 9}, TEXT),
        ({"skip": "1", "documents": 1}, f"two 二{END}"),
        ({"bytes": "37", "documents": 1}, f"one{END}"),
        ({"bytes": "22"}, f"one{END}two "),
        ({"bytes": "60"}, f"one{END}two 二{END}{END}three\r\n"),
    ],
)
def test_slice_starts_with_a_document_and_ends_within_the_bytes(book: Path, asked: dict[str, Any], text: str) -> None:
    assert sliced(book, **asked) == text


@pytest.mark.parametrize("skip", ["70", "73", "1MB"])
def test_a_skip_that_leaves_nothing_is_refused(book: Path, skip: str) -> None:
    sentence = refusal_of(card(book, skip=skip))
    assert sentence.startswith(
        f"data.skip={units.parse_bytes(skip, '')} leaves nothing of {book.name}: no document begins"
    )
    assert list(files.cache_folder("slices").iterdir()) == []


def test_less_than_a_character_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("二")
    assert "data.bytes=2 is less than one character of text" in refusal_of(card(tmp_path / "text", bytes="2"))


@given(st.lists(st.sampled_from(["a", "二", " ", "\n", END]), max_size=30).map("".join), st.integers(1, 120))
@examples(300)
def test_a_slice_and_what_is_skipped_for_it_never_overlap(text: str, place: int) -> None:
    content = text.encode()
    assert bounds(content, [END], 0, place, None)[1] <= place
    start, _ = bounds(content, [END], place, None, None)
    if END not in text:
        assert start == character_start(content, min(place, len(content)))
    else:
        assert start >= min(place, len(content))
        assert start == len(content) or content[:start].endswith(END.encode())


def test_a_slice_of_what_changes_meanwhile_is_not_kept(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CorpusFile, "is_unchanged", lambda _: False)
    assert "was changed while it was read; run the same again" in refusal_of(card(book, bytes="40"))
    assert list(files.cache_folder("slices").iterdir()) == []


def test_without_special_tokens_slices_end_with_characters(book: Path) -> None:
    place = TEXT.encode().index("二".encode())
    for extra in (0, 1, 2):
        assert sliced(book, (), bytes=str(place + extra)) == TEXT.encode()[:place].decode()
        assert sliced(book, (), skip=str(place + extra)).startswith("二" if extra < 3 else END)
    assert sliced(book, (), skip=str(place + 3)).startswith(END)
    assert sliced(book, (), documents=1) == TEXT


def test_a_first_document_too_long_is_cut_at_a_character(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("二" * 10 + END + "x")
    assert sliced(path, bytes="20") == "二" * 6


@pytest.mark.parametrize(
    ("documents", "size"),
    [
        ([95_000, 205_001], 300_000),  # the second document does not end in time: the slice ends with a line
        ([95_000, 190_000, 90_000], 285_000),
        ([400_000], 300_000),
        ([100_000] * 4, 300_000),
    ],
)
def test_slice_gives_the_bytes_that_were_requested(tmp_path: Path, documents: list[int], size: int) -> None:
    lines = "a line of ten words, which is not very long, really\n" * 8000
    (tmp_path / "book").write_text("".join(lines[: length - len(END)] + END for length in documents))
    text = sliced(tmp_path / "book", bytes="300kB")
    assert 270_000 <= len(text) <= 300_000
    assert text.endswith(END) if size < 300_000 or len(documents) == 4 else text.endswith("really\n")
    assert size - len(text) < 60


@given(
    st.lists(st.sampled_from(["a", "二", "😀", " ", END, "<|endof", "text|>"]), max_size=30).map("".join),
    st.integers(0, 120),
    st.none() | st.integers(1, 120),
    st.none() | st.integers(1, 4),
)
@examples(300)
def test_a_slice_of_text_is_text_within_its_bounds(
    text: str, skip: int, length: int | None, documents: int | None
) -> None:
    content = text.encode()
    start, stop = bounds(content, [END], skip, length, documents)
    assert 0 <= start <= stop <= len(content)
    content[start:stop].decode()
    if length is not None and documents is None:
        assert stop == len(content) or length - max(length // 10, len(END) - 1) <= stop - start <= length
    if END.encode() in content[skip:]:
        assert start == 0 if skip == 0 else content[:start].endswith(END.encode()) and start >= skip
    if documents is not None:
        parts = content[start:stop].split(END.encode())
        assert sum(bool(part.strip()) for part in parts) <= documents


@given(st.lists(st.sampled_from(["a", " ", "\n", END]), max_size=30).map("".join), st.integers(1, 5))
@examples(100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_as_many_documents_as_the_counts_will_say(tmp_path: Path, text: str, documents: int) -> None:
    path = tmp_path / "documents.txt"
    path.write_text(text)
    whole, part = Meter(), Meter()
    serial(Corpus(str(path)), whole)
    serial(Corpus(str(prepare(card(path, documents=documents), [END]).path)), part)
    assert part.tallies["documents"] == min(documents, whole.tallies["documents"])


def test_a_slice_is_made_once_and_depends_on_all_it_was_asked_with(book: Path) -> None:
    paths = [
        prepare(card(book, **asked), special_tokens).path
        for asked, special_tokens in (
            ({"bytes": "37"}, [END]),
            ({"bytes": "37B"}, [END]),
            ({"bytes": "37"}, []),
            ({"bytes": "36"}, [END]),
            ({"bytes": "37", "skip": "2"}, [END]),
            ({"bytes": "37", "documents": 1}, [END]),
        )
    ]
    assert paths[0] == paths[1]
    assert len(set(paths)) == 5


@pytest.mark.parametrize(
    ("asked", "told"),
    [({"documents": 0}, "1 or more"), ({"documents": -1}, "1 or more"), ({"bytes": "x"}, "not a size")],
)
def test_a_slice_of_nothing_is_refused(book: Path, asked: dict[str, Any], told: str) -> None:
    with pytest.raises(Refusal, match=told):
        prepare(card(book, **asked), [END])


def test_an_empty_file_has_an_empty_slice(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    assert sliced(tmp_path / "empty.txt", bytes="10", documents=1) == ""


# ---- the standard library


def test_the_standard_library_is_its_modules_one_document_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "lib"
    modules = {"b.py": "b = 1\n", "a/z.py": "# ä\r\n", "a.py": "", "Z.py": "Z", "a-b/c.py": "c"}
    left_out = [
        "test/t.py",
        "a/tests/t.py",
        "site-packages/s.py",
        "dist-packages/d.py",
        "a/__pycache__/p.py",
        "idlelib/idle_test/i.py",
    ]
    for name in [*modules, *left_out, "readme.txt"]:
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


def test_what_is_installed_for_this_python_is_a_corpus_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one/__init__.py", "one/tests/test_it.py", "one/data.txt", "two.py"):
        (tmp_path / "site-packages" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site-packages" / name).write_text(name)
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"purelib": str(tmp_path / "site-packages")})
    assert site_packages().read_text() == f"one/__init__.py{END}two.py{END}"


def test_the_default_corpus_is_the_first_4_mb_of_this_pythons_library() -> None:
    stdlib = registry.cards("data")["stdlib"]
    corpus = prepare({**card(), **stdlib, "path": None}, [END])
    content = corpus.path.read_bytes()
    whole = standard_library().read_bytes()
    assert whole.startswith(content)
    assert content.endswith(END.encode())
    next_end = whole.index(END.encode(), len(content)) + len(END)
    assert len(content) <= 4_000_000 < next_end
    root = Path(sysconfig.get_paths()["stdlib"])
    parts = {
        part for path in source_files(root, WITHOUT_SOURCE | INSTALLED) for part in path.relative_to(root).parts[:-1]
    }
    assert not parts & {"test", "tests", "site-packages"}
    content.decode()


# ---- the cache


def test_the_variable_moves_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(files.CACHE_VARIABLE, str(tmp_path / "here"))
    assert files.cache_folder("a", "b") == tmp_path / "here" / "a" / "b"
    monkeypatch.delenv(files.CACHE_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert files.cache_folder("a") == tmp_path / "xdg" / "bpe-harness" / "a"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert files.cache_folder("a") == tmp_path / "home" / ".cache" / "bpe-harness" / "a"
    assert files.cache_folder("a").is_dir()


def test_a_cache_that_cannot_be_made_is_refused(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(files.CACHE_VARIABLE, str(book))
    with pytest.raises(Refusal, match=rf"cannot use the cache .*; set {files.CACHE_VARIABLE} to a folder") as refused:
        files.cache_folder("corpora")
    assert refused.value.exit_code == UNMEASURED


def test_a_folder_that_another_run_has_placed_stays(tmp_path: Path) -> None:
    with files.placing(tmp_path / "kept") as temporary:
        temporary.mkdir()
        (temporary / "mine").touch()
        (tmp_path / "kept").mkdir()
        (tmp_path / "kept" / "theirs").touch()
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["theirs"]
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
