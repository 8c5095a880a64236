"""Encoding is as defined, however a text comes and however long it is; any bytes come back."""

from __future__ import annotations

import csv
import gzip
import json
import os
import random
import resource
from collections.abc import Sequence
from itertools import chain, count, islice, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import regex
from exploring import examples
from hypothesis import example, given
from hypothesis import strategies as st
from pattern_family import all_slots, spelling
from pyarrow import parquet
from tokenizers_made import PATTERNS, SPECIALS, TEXT, isolated, learned, replayed

from harness.common.errors import UNMEASURED, Refusal
from harness.corpora import local
from harness.tokenizers import streaming
from harness.tokenizers.encoding import CompiledEncoder
from harness.tokenizers.learned import Learned
from harness.tokenizers.model import Tokenizer
from harness.tokenizers.plain import PlainEncoder, last_cut_of

CHANCE = random.Random(0)
SPELLED = {str(slots): spelling(slots, CHANCE) for slots in CHANCE.sample(all_slots(), 12)}
STRANGE = {
    "leaves letters out": r"\d+",
    "matches nothing at all": r"x*",
    "from the end": r"(?r)\w+",
    **SPELLED,
}

SOME = [
    *SPECIALS,
    "<|e|",
    "<|",
    "the",
    " the",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\t",
    "'ll",
    "1",
    "123",
    "é",
    "一",
    ".",
    "!\n",
]
texts = st.lists(st.sampled_from([*SOME, " !", "\u00a0", "/", "A", "a"]) | st.text(max_size=3)).map(
    "".join
)


def defined_ids(one: Learned, text: str) -> list[int]:
    """Cut at the longest special tokens, then by the pattern; every merge in turn in what lies
    between.
    """
    ids, specials = one.token_ids(), sorted(one.special_tokens, key=len, reverse=True)
    found: list[int] = []
    for stretch in regex.split(f"({'|'.join(map(regex.escape, specials))})", text):
        if stretch in one.special_tokens:
            found.append(one.special_tokens[stretch])
            continue
        for piece in [stretch] if one.pattern is None else isolated(one.pattern, stretch):
            found += [ids[token] for token in replayed(os.fsencode(piece), one.merges)]
    return found


ENCODERS = [(PlainEncoder, name) for name in [*PATTERNS, *STRANGE]]
COMPILED = [(CompiledEncoder, name) for name in PATTERNS]


@given(
    texts.map(str.encode) | st.binary(max_size=80),
    st.lists(st.integers(0, 200), max_size=12),
    st.booleans(),
)
@example(content=b"x <|e|>x y", cut_at=[8], whole=True)
@example(content="é一".encode(), cut_at=[1, 3], whole=False)
@examples(60)
@pytest.mark.parametrize(("kind", "pattern"), [*ENCODERS, *COMPILED])
def test_any_text_in_any_parts_has_defined_ids(
    kind: type[CompiledEncoder | PlainEncoder],
    pattern: str,
    content: bytes,
    cut_at: list[int],
    whole: bool,
) -> None:
    one = learned(pattern if pattern in PATTERNS else "gpt2", SPECIALS)
    one = one._replace(pattern=STRANGE.get(pattern, one.pattern))
    encoder, text = kind(one), os.fsdecode(content)
    expected = defined_ids(one, text)
    assert encoder.encode(content) == encoder.encode(text) == expected
    assert Tokenizer(one).decode(expected) == content

    source = text.encode(errors="surrogateescape") if whole else content
    places = [0, *sorted(place for place in cut_at if place < len(source)), len(source)]
    parts = [source[start:stop] for start, stop in pairwise(places)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streaming, "WINDOW", 24)
        assert [*chain.from_iterable(encoder.batches(parts))] == expected
        assert [number for ids in encoder.streamed(parts, 2) for number in ids] == expected
    ids, ends = encoder.together([text, content], 2)
    assert ([*memoryview(ids)], ends) == (expected * 2, [len(expected), 2 * len(expected)])
    one_array = Tokenizer(one).encode_to_numpy(source, threads=2)
    assert one_array.tolist() == Tokenizer(one).encode_to_numpy(source).tolist() == expected


@given(texts)
@example("x <|e|>x y<|endoftext|>")
@pytest.mark.parametrize("pattern", ["gpt2", "llama3", "bytes"])
def test_special_tokens_of_strangers_can_be_ordinary_text(pattern: str, text: str) -> None:
    """As `encode_ordinary` of tiktoken, which agrees with the same tokenizer without them."""
    tokenizer = Tokenizer(learned(pattern, SPECIALS))
    plain = tokenizer.learned._replace(special_tokens={})
    ids = tokenizer.encode(text, special_tokens=False)
    assert ids == Tokenizer(plain).encode(text) == tokenizer.tiktoken().encode_ordinary(text)
    assert not {*ids} & {*tokenizer.special_tokens.values()}
    assert list(tokenizer.encode_iterable(text, special_tokens=False)) == ids


def test_invalid_texts_and_ids_are_refused() -> None:
    tokenizer = Tokenizer(learned("gpt2", (), 1))
    with pytest.raises(TypeError, match="a text is str or bytes, not int"):
        tokenizer.encode(5)  # type: ignore[arg-type]
    with pytest.raises(Refusal, match="character 1 of the text is a lone surrogate"):
        list(tokenizer.encode_iterable(["a", "b\ud800"]))
    with pytest.raises(Refusal, match="not UTF-8 at byte 1"):
        tokenizer.decode_text([97, 255])
    assert tokenizer.decode_text([97, 255], errors="replace") == "a\ufffd"


# Parts


CUTTABLE = {**PATTERNS, **SPELLED}
for whole in ("document", "bytes"):
    del CUTTABLE[whole]


@pytest.mark.parametrize("pattern", CUTTABLE)
@given(text=texts)
@examples(50)
def test_safe_cuts_leave_the_pre_tokens(pattern: str, text: str) -> None:
    last_cut, expression = last_cut_of(CUTTABLE[pattern]), CUTTABLE[pattern]
    assert last_cut is not None
    expected = regex.findall(expression, text)
    for last in range(len(text) + 1):
        if found := last_cut.search(text, 1, last):
            parts = text[: found.start()], text[found.start() :]
            assert [
                token for part in parts for token in regex.findall(expression, part)
            ] == expected


@pytest.mark.parametrize("kind", [PlainEncoder, CompiledEncoder])
@pytest.mark.parametrize("pattern", [name for name in CUTTABLE if name in PATTERNS])
def test_parts_are_read_only_as_they_are_needed(
    kind: type[CompiledEncoder | PlainEncoder], pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "WINDOW", 1000)
    encoder, parts = kind(learned(pattern, SPECIALS)), count()
    ids = chain.from_iterable(encoder.batches(b"the cat's mat\n" for _ in parts))
    assert list(islice(ids, 50)) == encoder.encode("the cat's mat\n" * 50)[:50]
    assert next(parts) < 200


# Files


@pytest.mark.parametrize("block", [1, 7, 1 << 20])
@pytest.mark.parametrize("name", ["ids.npy", "ids.bin"])
def test_a_file_is_encoded_as_its_bytes(
    tmp_path: Path, block: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "BLOCK_BYTES", block)
    monkeypatch.setattr(streaming, "WINDOW", 100)
    content = TEXT.encode() + b"\xff\xfe the \xe4\xb8" + TEXT[:50].encode()
    (tmp_path / "text").write_bytes(content)
    one = Tokenizer(learned("gpt2", SPECIALS))
    ids = one.encode_file(tmp_path / "text", tmp_path / name)
    assert isinstance(ids, np.memmap)
    assert ids.dtype == np.uint16
    assert ids.tolist() == one.encode(content)
    if name == "ids.npy":
        assert np.load(tmp_path / name).tolist() == ids.tolist()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["ids.npy", "text"]
        return
    assert np.fromfile(tmp_path / name, np.uint16).tolist() == ids.tolist()
    assert json.loads((tmp_path / "ids.json").read_text()) == {
        "documents": [0],
        "dtype": "uint16",
        "count": len(ids),
        "tokenizer_sha256": one.learned.sha256(),
    }


def test_large_ids_and_empty_files_make_arrays(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"<|far|>a")
    vocab = {**dict(enumerate(bytes((byte,)) for byte in range(256))), 65_536: b"<|far|>"}
    one = Tokenizer(Learned(vocab, [], {"<|far|>": 65_536}, PATTERNS["gpt2"]))
    ids = one.encode_file(tmp_path / "text", tmp_path / "ids.npy")
    assert (ids.dtype, ids.tolist()) == (np.uint32, [65_536, 97])
    ordinary = one.encode_to_numpy("a<|far|>", special_tokens=False)
    assert (ordinary.dtype, ordinary.tolist()) == (np.uint32, list(b"a<|far|>"))

    (tmp_path / "text").write_bytes(b"")
    for name in ("empty.npy", "empty.bin"):
        assert one.encode_file(tmp_path / "text", tmp_path / name).shape == (0,)
    assert np.load(tmp_path / "empty.npy").shape == (0,)
    assert (tmp_path / "empty.bin").read_bytes() == b""


def rows_in_every_form(folder: Path, rows: Sequence[str]) -> list[Path]:
    """The same documents as JSON Lines, CSV, Parquet, and files in a folder."""
    paths = [folder / "a.jsonl.gz", folder / "a.csv", folder / "a.parquet", folder / "files"]
    lines = "".join(json.dumps({"text": row}) + "\n" for row in rows)
    paths[0].write_bytes(gzip.compress(lines.encode()))
    with paths[1].open("w", newline="") as file:
        csv.writer(file).writerows([["text"], *([row] for row in rows)])
    parquet.write_table(pa.table({"text": list(rows)}), paths[2])
    paths[3].mkdir()
    for number, row in enumerate(rows):
        (paths[3] / f"{number}.txt").write_text(row)
    return paths


@pytest.mark.parametrize("separator", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_every_source_of_documents_is_read_as_train_reads_it(
    tmp_path: Path, separator: bool, threads: int
) -> None:
    rows = [TEXT, "the", "", "cat's", TEXT * 3, "le chat"]
    one = Tokenizer(learned("gpt2", SPECIALS))
    between = [one.special_tokens["<|endoftext|>"]] if separator else []
    expected, places = list[int](), list[int]()
    for row in rows:
        expected += between if places else []
        places.append(len(expected))
        expected += one.encode(row)

    for path in rows_in_every_form(tmp_path, rows):
        output = tmp_path / f"{path.name}.bin"
        ids = one.encode_file(path, output, threads=threads, separator=separator)
        assert ids.tolist() == expected
        assert json.loads(output.with_suffix(".json").read_text())["documents"] == places


def test_a_column_and_a_slice_are_chosen_by_settings(tmp_path: Path) -> None:
    one, path = Tokenizer(learned("gpt2", SPECIALS)), tmp_path / "a.jsonl"
    path.write_text('{"text": "the cat", "body": "naïve"}\n')
    output = tmp_path / "ids.npy"
    column = one.encode_file(path, output, settings=["data.column=body"])
    assert column.tolist() == one.encode("naïve")

    (tmp_path / "t.txt").write_text("one line\nanother line\n")
    first = one.encode_file(tmp_path / "t.txt", output, settings=["data.bytes=9"], overwrite=True)
    assert first.tolist() == one.encode("one line\n")
    with pytest.raises(Refusal, match="'pattern=gpt4' is not a setting of a text"):
        one.encode_file(path, output, settings=["pattern=gpt4"], overwrite=True)


def test_an_output_that_exists_is_refused_and_unchanged(tmp_path: Path) -> None:
    one = Tokenizer(learned("gpt2", SPECIALS))
    (tmp_path / "text").write_text("the cat")
    for name in ("ids.npy", "ids.json"):
        (tmp_path / name).write_text("precious")
    for name, exists in (("ids.npy", "ids.npy"), ("ids.bin", "ids.json")):
        with pytest.raises(Refusal, match=f"{exists} exists already; replace it with overwrite"):
            one.encode_file(tmp_path / "text", tmp_path / name)
    assert (tmp_path / "ids.npy").read_text() == "precious"
    for name in ("ids.npy", "ids.bin"):
        ids = one.encode_file(tmp_path / "text", tmp_path / name, overwrite=True)
        assert ids.tolist() == one.encode("the cat")
    with pytest.raises(Refusal, match=r"ids.txt is neither .npy nor .bin"):
        one.encode_file(tmp_path / "text", tmp_path / "ids.txt")
    bare = Tokenizer(learned("gpt2", ()))
    with pytest.raises(Refusal, match="has no special token; leave the separator out"):
        bare.encode_file(tmp_path / "text", tmp_path / "new.npy", separator=True)


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    """A limit of the size of files stands for it: the kernel refuses the same call."""
    one = Tokenizer(learned("gpt2", SPECIALS))
    (tmp_path / "text").write_text(TEXT * 100)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for name in ("ids.npy", "ids.bin"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
        try:
            with pytest.raises(
                Refusal, match=r"cannot write .*ids.*choose another place"
            ) as refused:
                one.encode_file(tmp_path / "text", tmp_path / name)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert refused.value.exit_code == UNMEASURED
        assert [path.name for path in tmp_path.iterdir()] == ["text"]
