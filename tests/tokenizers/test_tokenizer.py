"""What was learned is kept whole or not at all, read by others, loaded again, and encodes as it was trained."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from tokenizers_made import replayed

from harness.common.errors import UNMEASURED, Refusal
from harness.common.registry import definition
from harness.tokenizer import Tokenizer, load, main, save
from harness.tokenizers.folder import check_free
from harness.tokenizers.learned import read_spelling, spelled
from harness.worker.merges_bytes import merges_sha256
from variants.contract import GPT2_PATTERN, Merge, WordCounts, vocab_of

MERGES = [(b"t", b"h"), (b"th", b"e"), (b" ", b"the"), (b"\xc3", b"\xa9"), (b"\x00", b"\xff"), (b"a", b"a")]
SPECIALS = ["<|e|>", "<|e|>x", "é"]
# Of these tokens, é is spelled like a byte, so there is no tokenizer.json.
WRITTEN = ["manifest.json", "merges.txt", "ranks.tiktoken", "vocab.json"]
SAVED = {
    "tie_break": "greatest_bytes",
    "min_count": 1,
    "data_name": "tale",
    "data_sha256": "ab" * 32,
    "variant": "mine",
}
PATTERNS = {
    "gpt2": GPT2_PATTERN,
    "line": r"[^\n]*\n|[^\n]+",
    "leaves letters out": r"\d+",
    "matches nothing at all": r"x*",
    "from the end": r"(?r)\w+",
    "raw bytes": None,
}

words = st.dictionaries(st.binary(min_size=1, max_size=12), st.integers(1, 9), max_size=8) | st.dictionaries(
    st.text("ab\x00ÿ", min_size=1, max_size=12).map(lambda text: text.encode("latin-1")), st.integers(1, 9), max_size=8
)


def made(
    merges: Sequence[Merge] = MERGES, specials: Sequence[str] = (), pattern: str | None = GPT2_PATTERN
) -> Tokenizer:
    numbered = {text: number for number, text in enumerate(specials, 256)}
    return Tokenizer(vocab_of(merges, specials), merges, numbered, pattern)


def kept(
    folder: Path, merges: Sequence[Merge] = MERGES, specials: Sequence[str] = SPECIALS, overwrite: bool = False
) -> list[str]:
    further: dict[str, Any] = {**SAVED, "overwrite": overwrite}
    return save(folder, merges, specials, "gpt2", GPT2_PATTERN, vocab_size_asked=300, **further)


def train(word_counts: dict[bytes, int]) -> list[Merge]:
    merges: list[Merge] = definition()(WordCounts.from_items(word_counts.items()), 60)
    return merges


# Encoding


@given(word_counts=words)
def test_a_training_word_is_encoded_as_training_left_it(word_counts: dict[bytes, int]) -> None:
    merges = train(word_counts)
    tokenizer = made(merges, pattern=None)
    for word in word_counts:
        assert [tokenizer.vocab[number] for number in tokenizer.encode(word)] == replayed(word, merges)


@given(word_counts=words, text=st.text(st.sampled_from("ab the's\n\x00é") | st.characters(codec="utf-8")))
def test_encoding_is_replaying_the_merges_in_every_pre_token(word_counts: dict[bytes, int], text: str) -> None:
    merges = [*MERGES, *(merge for merge in train(word_counts) if merge not in MERGES)]
    ids = {token: number for number, token in vocab_of(merges).items()}
    expected = [ids[token] for piece in regex.findall(GPT2_PATTERN, text) for token in replayed(piece.encode(), merges)]
    assert made(merges).encode(text) == expected


@given(content=st.binary(max_size=80) | st.text(max_size=40).map(str.encode))
@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=list(PATTERNS))
def test_any_bytes_come_back(pattern: str | None, content: bytes) -> None:
    tokenizer = made(specials=SPECIALS, pattern=pattern)
    assert tokenizer.decode(tokenizer.encode(content)) == content


@given(parts=st.lists(st.sampled_from([*SPECIALS, "the", " ", "<|e|", "\r\n", "一二"]) | st.text(max_size=5)))
@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=list(PATTERNS))
def test_any_text_with_special_tokens_comes_back(pattern: str | None, parts: list[str]) -> None:
    tokenizer = made(specials=SPECIALS, pattern=pattern)
    text = "".join(parts)
    assert tokenizer.decode_text(tokenizer.encode(text)) == text
    assert tokenizer.encode(text) == tokenizer.encode(text.encode())


def test_every_byte_has_a_token() -> None:
    assert made([]).encode(bytes(range(256))) == list(range(256))


@pytest.mark.parametrize(
    ("merges", "specials", "pattern", "text", "ids"),
    [
        pytest.param([], SPECIALS, GPT2_PATTERN, "<|e|>x<|e|>y", [257, 256, 121], id="the longest special"),
        pytest.param(
            [(b"a", b"b"), (b"ab", b"c")], ["ab"], GPT2_PATTERN, "abab c", [256, 256, 32, 99], id="special ab"
        ),
        pytest.param([(b"a", b"b"), (b"b", b"1")], [], r"\d+", "ab1b1", [256, 49, 98, 49], id="between matches"),
        pytest.param([(b"a", b"a"), (b"aa", b"a")], [], None, "aaaaa", [256, 257], id="from the left"),
        pytest.param([(b"a", b"a")], [], None, "a" * 1001, [256] * 500 + [97], id="a long piece"),
    ],
)
def test_a_text_is_encoded_as_defined(
    merges: list[Merge], specials: list[str], pattern: str | None, text: str, ids: list[int]
) -> None:
    assert made(merges, specials, pattern).encode(text) == ids
    assert made(merges, specials, pattern).decode(ids) == text.encode()


def test_a_text_that_has_no_utf8_is_refused() -> None:
    with pytest.raises(Refusal, match="character 1 of the text is a lone surrogate"):
        made().encode("a\ud800")


def test_bytes_in_an_argument_that_are_no_utf8_are_taken_as_they_are() -> None:
    assert made([]).encode(os.fsdecode(b"a\xff")) == [97, 255]


def test_unknown_ids_are_refused() -> None:
    for number in (999, -1):
        with pytest.raises(Refusal, match=f"no token {number}; the ids of this tokenizer are 0 to 256"):
            made([(b"a", b"b")]).decode([97, number])


def test_ids_that_make_no_text_are_refused_or_replaced() -> None:
    with pytest.raises(Refusal, match="not UTF-8 at byte 1"):
        made().decode_text([97, 255])
    assert made().decode_text([97, 255], errors="replace") == "a\ufffd"


# Files


def test_the_files_are_gpt2s(tmp_path: Path) -> None:
    kept(tmp_path, [(b" ", b"t"), (b"\xff", b"\x00"), (b" t", b"h")], ["<|e|>"])
    assert (tmp_path / "merges.txt").read_bytes() == "#version: 0.2\nĠ t\nÿ Ā\nĠt h\n".encode()
    ids = json.loads((tmp_path / "vocab.json").read_bytes())
    assert list(ids.values()) == list(range(260))
    assert [ids[token] for token in ("a", "Ġ", "ÿ", "Ń", "<|e|>", "Ġt", "ÿĀ", "Ġth")] == [
        97,
        32,
        255,
        173,
        *range(256, 260),
    ]


def test_the_manifest_says_where_a_tokenizer_comes_from(tmp_path: Path) -> None:
    kept(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_bytes())
    files = {name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in WRITTEN[1:]}
    assert manifest == {
        "schema": 1,
        "vocab_size": 256 + 3 + len(MERGES),
        "vocab_size_asked": 300,
        "merges": len(MERGES),
        "merges_sha256": merges_sha256(MERGES),
        "special_tokens": [{"text": "<|e|>", "id": 256}, {"text": "<|e|>x", "id": 257}, {"text": "é", "id": 258}],
        "pattern": {"name": "gpt2", "regex": GPT2_PATTERN},
        "tie_break": "greatest_bytes",
        "min_count": 1,
        "variant": "mine",
        "data": {"name": "tale", "sha256": "ab" * 32},
        "files": files,
    }


@given(word_counts=words, specials=st.lists(st.text(min_size=1, max_size=3), unique=True, max_size=3))
def test_what_was_saved_is_loaded(
    tmp_path_factory: pytest.TempPathFactory, word_counts: dict[bytes, int], specials: list[str]
) -> None:
    folder, merges = tmp_path_factory.mktemp("saved"), train(word_counts)
    kept(folder, merges, specials)
    loaded = load(folder)
    assert loaded.vocab == vocab_of(merges, specials)
    assert loaded.merges == merges
    assert loaded.special_tokens == {text: number for number, text in enumerate(specials, 256)}
    assert loaded.pattern == GPT2_PATTERN


def test_no_merges_and_raw_bytes_can_be_saved(tmp_path: Path) -> None:
    assert save(tmp_path, [], [], "bytes", None) == []
    assert (tmp_path / "merges.txt").read_bytes() == b"#version: 0.2\n"
    assert load(tmp_path).encode(b"\xff\x00") == [255, 0]
    assert load(tmp_path).pattern is None


def test_spelling_uses_256_visible_characters() -> None:
    characters = [spelled(bytes((byte,))) for byte in range(256)]
    assert len(set(characters)) == 256
    assert all(len(character) == 1 and character.isprintable() and character != " " for character in characters)
    assert characters[0x20] == "Ġ"
    assert characters[0x0A] == "Ċ"
    assert read_spelling("".join(characters)) == bytes(range(256))


@pytest.mark.parametrize("special", ["a", "Ġthe", "th"])
def test_a_special_token_spelled_like_another_stands_in_the_manifest_only(tmp_path: Path, special: str) -> None:
    said = kept(tmp_path, MERGES, [special])
    assert said == [
        f"special token {special!r} is spelled like another token, so it is in manifest.json only, not in vocab.json",
        f"tokenizer.json was left out: special token {special!r} is spelled like another token, and tokenizer.json "
        "gives one spelling one id",
    ]
    assert not (tmp_path / "tokenizer.json").exists()
    assert 256 not in json.loads((tmp_path / "vocab.json").read_bytes()).values()
    loaded = load(tmp_path)
    assert loaded.encode(special) == [256]
    assert loaded.decode([256]) == special.encode()


def test_a_merge_that_looks_like_a_header_is_told_of_and_loaded(tmp_path: Path) -> None:
    merges = [(b"#version"[:length], b"#versions"[length : length + 1]) for length in range(1, 9)]
    assert merges[-1] == (b"#version", b"s")
    said = kept(tmp_path, merges, [])
    assert ["for a header" in sentence for sentence in said] == [True]
    assert load(tmp_path).merges == merges


@pytest.mark.parametrize(
    ("merges", "specials", "answer"),
    [
        ([(b"a", b"b"), (b"ab", b"c"), (b"b", b"c"), (b"a", b"bc")], [], "two merges make the same token"),
        ([(b"a", b"bc")], [], "merge 1 joins 'bc', which nothing makes"),
        ([], ["x", "x"], "or repeated one; name each once"),
        ([], [""], "contain an empty or repeated one"),
        ([], ["\ud800"], "is not UTF-8"),
    ],
)
def test_what_could_not_be_loaded_is_not_saved(
    tmp_path: Path, merges: list[Merge], specials: list[str], answer: str
) -> None:
    with pytest.raises(Refusal, match=answer):
        kept(tmp_path, merges, specials)
    assert list(tmp_path.iterdir()) == []


# Whole or not at all


class Killed(BaseException):
    """What happens to a process that is not asked."""


@pytest.mark.parametrize("survivors", range(len(WRITTEN)))
def test_saving_that_is_cut_short_is_never_taken_for_a_tokenizer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survivors: int
) -> None:
    kept(tmp_path, MERGES)
    replace = os.replace
    replaced: list[Any] = []

    def cut_short(source: Any, target: Any) -> None:
        if len(replaced) == survivors:
            raise Killed
        replaced.append(target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", cut_short)
    with pytest.raises(Killed):
        kept(tmp_path, MERGES[:2], overwrite=True)
    monkeypatch.undo()
    if survivors == 0:
        assert load(tmp_path).merges == MERGES
    else:
        with pytest.raises(
            Refusal, match=r"vocab\.json cannot be used: it is not the file that manifest\.json describes"
        ):
            load(tmp_path)
    kept(tmp_path, MERGES[:2], overwrite=True)
    assert load(tmp_path).merges == MERGES[:2]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(WRITTEN)


def test_a_full_disk_leaves_the_old_tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(tmp_path, MERGES)

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Refusal, match=r"cannot write a tokenizer to .* \(No space left on device\)") as refused:
        kept(tmp_path, MERGES[:2], overwrite=True)
    assert refused.value.exit_code == UNMEASURED
    assert load(tmp_path).merges == MERGES
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(WRITTEN)


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(Refusal, match="choose another folder"):
        kept(tmp_path / "file" / "below")
    with pytest.raises(Refusal, match=r"File name too long.*; choose another folder"):
        check_free(tmp_path / ("x" * 300), overwrite=False)
    (tmp_path / "merges.txt").mkdir()
    with pytest.raises(Refusal, match="is a folder"):
        kept(tmp_path, overwrite=True)


# Loading what is damaged or from elsewhere


@pytest.mark.parametrize("name", ["vocab.json", "merges.txt"])
def test_a_changed_or_missing_file_is_refused(tmp_path: Path, name: str) -> None:
    kept(tmp_path)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes() + b" ")
    with pytest.raises(Refusal, match=f"{name} cannot be used: it is not the file that manifest.json describes"):
        load(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(Refusal, match=f"{name} .No such file or directory.; python -m harness save=FOLDER writes"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("manifest", "answer"),
    [
        (b"{", "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (b"\xff", "it is not JSON"),
        (b"[]", "it is not a JSON object"),
        (b'{"schema": 2}', "its schema is 2, this program reads 1"),
        (b'{"schema": 1}', "it lacks digests, special tokens or a pattern"),
        (b'{"schema": 1, "files": [], "special_tokens": 5}', "it lacks digests, special tokens or a pattern"),
    ],
)
def test_a_damaged_manifest_is_refused(tmp_path: Path, manifest: bytes, answer: str) -> None:
    kept(tmp_path)
    (tmp_path / "manifest.json").write_bytes(manifest)
    with pytest.raises(Refusal, match=f"manifest.json cannot be used: {answer}"):
        load(tmp_path)


def elsewhere(folder: Path) -> Path:
    """GPT-2's own order of ids: bytes by their characters, merges, the special token last; and no manifest."""
    characters = sorted(spelled(bytes((byte,))) for byte in range(256))
    tokens = [*characters, "th", "the", "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({token: number for number, token in enumerate(tokens)}))
    (folder / "merges.txt").write_text("#version: 0.2\nt h\nth e\n")
    return folder


def test_a_folder_from_elsewhere_keeps_its_own_ids(tmp_path: Path) -> None:
    tokenizer = load(elsewhere(tmp_path), pattern=GPT2_PATTERN, special_tokens=["<|endoftext|>"])
    assert tokenizer.encode("the !<|endoftext|>") == [257, ord("Ġ") - 256 + 188, 0, 258]
    assert tokenizer.decode(range(259)) == b"".join(tokenizer.vocab[number] for number in range(259))


def test_a_folder_without_manifest_needs_its_pattern_and_special_tokens(tmp_path: Path) -> None:
    elsewhere(tmp_path)
    with pytest.raises(Refusal, match=r"has no manifest\.json; give the pattern and the special tokens"):
        load(tmp_path)
    with pytest.raises(Refusal, match=r"'<\|endoftext\|>' is not a byte, no merge makes it, and it is not a special"):
        load(tmp_path, pattern=GPT2_PATTERN)
    with pytest.raises(Refusal, match=r"no special token '<\|e\|>'; name those that it has"):
        load(tmp_path, pattern=GPT2_PATTERN, special_tokens=["<|e|>"])
    with pytest.raises(Refusal, match="is not a regular expression"):
        load(tmp_path, pattern="(", special_tokens=["<|endoftext|>"])


def test_a_manifest_is_not_overruled(tmp_path: Path) -> None:
    kept(tmp_path)
    with pytest.raises(Refusal, match="contains the pattern and the special tokens; leave them out"):
        load(tmp_path, pattern=None)


@pytest.mark.parametrize(
    ("name", "old", "new", "answer"),
    [
        ("merges.txt", "t h", "t  h", "line 2 is not a merge: 't  h'"),
        ("merges.txt", "t h", "th", "line 2 is not a merge: 'th'"),
        ("merges.txt", "t h", "t h\r", "line 2 is not a merge"),
        ("merges.txt", "t h", "t 一", "line 2 is not a merge: 't 一'"),
        ("merges.txt", "t h\n", "", "merge 1 joins 'th', which nothing makes"),
        ("merges.txt", "th e", "th i", "it gives no id to 'thi'"),
        ("vocab.json", '"the"', '"thi"', "it gives no id to 'the'"),
        ("vocab.json", "258", "257", "it gives one id to two tokens"),
        ("vocab.json", "258", "258.0", "it does not map tokens to ids"),
        ("vocab.json", "{", "[", "it is not JSON"),
    ],
)
def test_files_that_do_not_fit_each_other_are_refused(
    tmp_path: Path, name: str, old: str, new: str, answer: str
) -> None:
    file = elsewhere(tmp_path) / name
    file.write_bytes(file.read_bytes().replace(old.encode(), new.encode(), 1))
    with pytest.raises(Refusal, match=answer):
        load(tmp_path, pattern=GPT2_PATTERN, special_tokens=["<|endoftext|>"])


# The command


def command(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "harness.tokenizer", *arguments], input=given, capture_output=True)


def test_the_command_encodes_and_decodes_any_bytes(tmp_path: Path) -> None:
    kept(tmp_path)
    content = b"the \xff\x00\r\n<|e|>"
    encoded = command("encode", str(tmp_path), "-", given=content)
    assert (encoded.returncode, encoded.stderr) == (0, b"")
    assert encoded.stdout.decode().split() == [str(number) for number in load(tmp_path).encode(content)]
    assert command("decode", str(tmp_path), "-", given=encoded.stdout).stdout == content


def test_the_command_reads_a_folder_from_elsewhere(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    named = ["encode", str(elsewhere(tmp_path)), "the<|endoftext|>", "--special-token", "<|endoftext|>", "--pattern"]
    for pattern in ("gpt2", "bytes", r"\w+"):
        assert main([*named, pattern]) == 0
    assert capfd.readouterr().out == "257 258\n" * 3
