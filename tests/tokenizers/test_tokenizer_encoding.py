"""Encoding is as defined, however a text comes and however long it is; any bytes come back."""

from __future__ import annotations

import json
import os
import random
from itertools import count, islice, pairwise
from pathlib import Path

import numpy as np
import pytest
import regex
from exploring import examples
from hypothesis import example, given
from hypothesis import strategies as st
from pattern_family import all_slots, spelling
from tokenizers_made import PATTERNS, SPECIALS, TEXT, isolated, learned, merged, replayed

from harness.common.errors import UNMEASURED, Refusal
from harness.tokenizer import main
from harness.tokenizers import model
from harness.tokenizers.learned import Learned, join
from harness.tokenizers.model import Tokenizer, last_cut_of
from variants.contract import Pair

CHANCE = random.Random(0)
CUTTABLE = [
    *(pattern for name, pattern in PATTERNS.items() if name not in ("document", "bytes")),
    *(spelling(slots, CHANCE) for slots in CHANCE.sample(all_slots(), 12)),
]
STRANGE = {
    "leaves letters out": r"\d+",
    "matches nothing at all": r"x*",
    "from the end": r"(?r)\w+",
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


@given(
    texts.map(str.encode) | st.binary(max_size=80),
    st.lists(st.integers(0, 200), max_size=12),
    st.booleans(),
)
@example(content=b"x <|e|>x y", cut_at=[8], whole=True)
@example(content="é一".encode(), cut_at=[1, 3], whole=False)
@examples(60)
@pytest.mark.parametrize("pattern", [*PATTERNS, *STRANGE])
def test_any_text_in_any_parts_has_defined_ids(
    pattern: str, content: bytes, cut_at: list[int], whole: bool
) -> None:
    one = learned(pattern if pattern in PATTERNS else "gpt2", SPECIALS)
    one = one._replace(pattern=STRANGE.get(pattern, one.pattern))
    tokenizer, text = Tokenizer(one), os.fsdecode(content)
    expected = defined_ids(one, text)
    assert tokenizer.encode(content) == tokenizer.encode(text) == expected
    assert tokenizer.decode(expected) == content
    source: str | bytes = text if whole else content
    places = [0, *sorted(place for place in cut_at if place < len(source)), len(source)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model, "WINDOW", 24)
        assert (
            list(tokenizer.encode_iterable(source[start:stop] for start, stop in pairwise(places)))
            == expected
        )


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


def test_every_command_that_encodes_can_take_special_tokens_as_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, folder, array = tmp_path / "t.txt", str(tmp_path / "saved"), tmp_path / "ids.npy"
    text.write_text("the <|endoftext|> end")
    Tokenizer(learned("gpt2", SPECIALS)).save(folder)
    ordinary = Tokenizer(learned("gpt2", SPECIALS)).encode(text.read_text(), special_tokens=False)

    assert main(["encode", folder, text.read_text(), "--no-special-tokens"]) == 0
    assert capsys.readouterr().out.split() == list(map(str, ordinary))
    for_file = ["--data", str(text), "--output", str(array), "--no-special-tokens"]
    assert main(["encode", folder, *for_file]) == 0
    assert np.load(array).tolist() == ordinary
    capsys.readouterr()

    options = ["--data", str(text), "--format", "json"]
    assert main(["stats", folder, *options, "--no-special-tokens"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["tokens"] == len(ordinary)
    assert main(["unused", folder, *options]) == 0
    assert main(["unused", folder, *options, "--no-special-tokens"]) == 0
    outputs = capsys.readouterr().out.split("]\n[")
    assert outputs[0].count("unused") > outputs[1].count("unused")


def test_invalid_texts_and_ids_are_refused() -> None:
    tokenizer = Tokenizer(learned("gpt2", (), 1))
    with pytest.raises(TypeError, match="a text is str or bytes, not int"):
        tokenizer.encode(5)  # type: ignore[arg-type]
    with pytest.raises(Refusal, match="character 1 of the text is a lone surrogate"):
        list(tokenizer.encode_iterable(["a", "b\ud800"]))
    for number in (999, -1):
        with pytest.raises(
            Refusal, match=f"token {number} not found; the ids of this tokenizer are 0 to 256"
        ):
            tokenizer.decode([97, number])
    with pytest.raises(Refusal, match="not UTF-8 at byte 1"):
        tokenizer.decode_text([97, 255])
    assert tokenizer.decode_text([97, 255], errors="replace") == "a\ufffd"


@given(
    merges=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), unique=True, max_size=10),
    made=st.lists(st.integers(0, 5), min_size=10, max_size=10),
    tokens=st.lists(st.integers(0, 3), max_size=60),
)
def test_tokens_merge_as_by_looking_at_every_pair(
    merges: list[Pair], made: list[int], tokens: list[int]
) -> None:
    """Any lists, those too that no training makes: a merge may make a pair that comes before it."""
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    assert join(tokens, ranks.get, made) == merged(tokens, ranks.get, made)


# Parts


@pytest.mark.parametrize("pattern", CUTTABLE)
@given(text=texts)
@examples(50)
def test_safe_cuts_leave_the_pre_tokens(pattern: str, text: str) -> None:
    last_cut = last_cut_of(pattern)
    assert last_cut is not None
    expected = regex.findall(pattern, text)
    for last in range(len(text) + 1):
        if found := last_cut.search(text, 1, last):
            cut = found.start()
            assert (
                regex.findall(pattern, text[:cut]) + regex.findall(pattern, text[cut:]) == expected
            )


def test_unknown_patterns_are_not_cut() -> None:
    assert last_cut_of(PATTERNS["line"]) is model.AFTER_LINE_END
    for pattern in (
        None,
        PATTERNS["document"],
        r"\w+ \w+|.",
        r" ?\p{L}+|\s+(?=a)",
        r"(?r)\s+",
        r"x| ?\p{L}+",
    ):
        assert last_cut_of(pattern) is None


def test_parts_are_read_only_as_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "WINDOW", 1000)
    one, parts = Tokenizer(learned("gpt2", SPECIALS)), count()
    ids = one.encode_iterable("the cat's mat " for _ in parts)
    assert list(islice(ids, 50)) == one.encode("the cat's mat " * 50)[:50]
    assert next(parts) < 200


# Files


@pytest.mark.parametrize("block", [1, 7, 1 << 20])
def test_a_file_is_encoded_as_its_bytes(
    tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "BLOCK", block)
    monkeypatch.setattr(model, "WINDOW", 100)
    content = TEXT.encode() + b"\xff\xfe the \xe4\xb8" + TEXT[:50].encode()
    (tmp_path / "text").write_bytes(content)
    one = Tokenizer(learned("gpt2", SPECIALS))
    done: list[int] = []
    ids = one.encode_file(tmp_path / "text", tmp_path / "ids.npy", on_progress=done.append)
    assert isinstance(ids, np.memmap)
    assert ids.dtype == np.uint16
    assert ids.tolist() == np.load(tmp_path / "ids.npy").tolist() == one.encode(content)
    assert done[-1] == len(content)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ids.npy", "text"]


def test_large_ids_and_empty_files_make_arrays(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"<|far|>a")
    vocab = {**dict(enumerate(bytes((byte,)) for byte in range(256))), 65_536: b"<|far|>"}
    one = Tokenizer(Learned(vocab, [], {"<|far|>": 65_536}, PATTERNS["gpt2"]))
    ids = one.encode_file(tmp_path / "text", tmp_path / "ids.npy")
    assert (ids.dtype, ids.tolist()) == (np.uint32, [65_536, 97])
    (tmp_path / "text").write_bytes(b"")
    assert one.encode_file(tmp_path / "text", tmp_path / "ids.npy").shape == (0,)
    assert np.load(tmp_path / "ids.npy").shape == (0,)


def test_a_file_that_cannot_be_read_or_written_leaves_nothing(tmp_path: Path) -> None:
    one = Tokenizer(learned())
    with pytest.raises(Refusal, match=r"cannot read .*nowhere .No such file") as refused:
        one.encode_file(tmp_path / "nowhere", tmp_path / "ids.npy")
    assert refused.value.exit_code == UNMEASURED
    (tmp_path / "text").write_bytes(b"a")
    with pytest.raises(Refusal, match="choose another place for the ids"):
        one.encode_file(tmp_path / "text", tmp_path / "text" / "ids.npy")
    assert [path.name for path in tmp_path.iterdir()] == ["text"]
