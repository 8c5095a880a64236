"""Encoding is as defined, however a text comes and however long it is, in bounded memory; any bytes
come back, and an unknown id is named with its place.
"""

import hashlib
import json
import os
import random
from array import array
from collections.abc import Callable
from functools import partial
from itertools import chain, count, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import regex
from exploring import examples
from hypothesis import example, given
from hypothesis import strategies as st
from pattern_family import all_slots, spelling
from rows import json_beside, write_files
from tokenizers_made import PATTERNS, SPECIALS, TEXT, isolated, learned, replayed
from workbench import ran

from harness.common.errors import Refusal
from harness.corpora import formats
from harness.tokenizers import encoding
from harness.tokenizers.encoding import (
    PlainDecoder,
    PlainEncoder,
    compiled_encoder,
    encoder_of,
    streamed,
)
from harness.tokenizers.learned import Learned
from harness.tokenizers.model import Tokenizer
from variants.native import built

ONE = Tokenizer(learned("gpt2", SPECIALS))
CHANCE = random.Random(0)
STRANGE = {
    "leaves letters out": r"\d+",
    "matches nothing at all": r"x*",
    "from the end": r"(?r)\w+",
    **{str(slots): spelling(slots, CHANCE) for slots in CHANCE.sample(all_slots(), 12)},
}
ENCODERS = [(PlainEncoder, name) for name in [*PATTERNS, *STRANGE]]
COMPILED = [(compiled_encoder, name) for name in PATTERNS]
SOME = [*SPECIALS, *"aA1é一.!/ \n\t\u00a0", "<|e|", "<|", "the", " the", "\r\n", "'ll", "123", " !"]
texts = st.lists(st.sampled_from(SOME) | st.text(max_size=3)).map("".join)


def defined_ids(one: Learned, text: str) -> list[int]:
    """Cut at the longest special tokens, then by the pattern; every merge in turn in what lies
    between.
    """
    ids = one.token_ids()
    specials = sorted(one.special_tokens, key=len, reverse=True)
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
    st.integers(1, 24),
)
@example(content=b"x <|e|>x y", cut_at=[8], whole=True, window=24)
@example(content="é一".encode(), cut_at=[1, 3], whole=False, window=24)
@examples(60)
@pytest.mark.parametrize(("kind", "pattern"), [*ENCODERS, *COMPILED])
def test_any_text_in_any_parts_has_defined_ids(
    kind: Callable[..., Any],
    pattern: str,
    content: bytes,
    cut_at: list[int],
    whole: bool,
    window: int,
) -> None:
    one = learned(pattern if pattern in PATTERNS else "gpt2", SPECIALS)
    one = one._replace(pattern=STRANGE.get(pattern, one.pattern))
    encoder = kind(one)
    text = os.fsdecode(content)
    expected = defined_ids(one, text)
    assert encoder.encode(content) == encoder.encode(text) == expected
    assert Tokenizer(one).decode(expected) == content

    source = text.encode(errors="surrogateescape") if whole else content
    places = [0, *sorted(place for place in cut_at if place < len(source)), len(source)]
    parts = [source[start:stop] for start, stop in pairwise(places)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "WINDOW", window)
        for threads in (1, 2):
            assert [*chain.from_iterable(streamed(encoder, parts, threads))] == expected
    ids, ends = encoder.encode_batch([text, content], 2)
    assert ([*memoryview(ids)], ends) == (expected * 2, [len(expected), 2 * len(expected)])

    # Special tokens of strangers can be ordinary text.
    without = kind(one._replace(special_tokens={})).encode(text)
    assert kind(one, False).encode(text) == without
    assert Tokenizer(one).encode_to_numpy(text, special_tokens=False).tolist() == without


def test_invalid_texts_and_ids_are_refused() -> None:
    tokenizer = Tokenizer(learned("gpt2", (), 1))
    with pytest.raises(TypeError, match="a text is str or bytes, not int"):
        tokenizer.encode(5)  # type: ignore[arg-type]
    with pytest.raises(UnicodeEncodeError, match="position 1: surrogates not allowed"):
        list(tokenizer.encode_iterable(["a", "b\ud800"]))
    with pytest.raises(UnicodeDecodeError, match="in position 1: invalid start byte"):
        tokenizer.decode_text([97, 255])
    assert tokenizer.decode_text([97, 255], errors="replace") == "a\ufffd"


@pytest.mark.parametrize(
    "pattern", [name for name in PATTERNS if name not in ("document", "bytes")]
)
def test_parts_are_read_only_as_they_are_needed(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "WINDOW", 1000)
    encoder = encoder_of(learned(pattern, SPECIALS))
    parts = count()
    ids = chain.from_iterable(streamed(encoder, (b"the cat's mat\n" for _ in parts)))
    assert list(islice(ids, 50)) == encoder.encode("the cat's mat\n" * 50)[:50]
    assert next(parts) < 200


# Cost

ENCODE_FILE = """
import sys
from collections.abc import Callable
from harness.tokenizer import main, train

main(["encode", "saved", "--data", "text.txt", "--output", "ids.npy"])
print({"hydra", "omegaconf", "pandas"} & {*sys.modules})
"""
ENCODE_LINES = """
import resource
from itertools import chain, repeat
from harness.tokenizers.model import load

lines = [f"the cat {number} sat on the mat\\n" for number in range(3000)]
tokenizer = load("saved")
for times in (5, 80):
    parts = chain.from_iterable(repeat(lines, times))
    count = sum(1 for _ in tokenizer.encode_iterable(parts))
    print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def printed(folder: Path, code: str) -> list[str]:
    """The lines that a process prints in a folder with a tokenizer and a text."""
    ONE.save(folder / "saved")
    (folder / "text.txt").write_text(TEXT)
    return ran(folder, "-c", code, check=True).stdout.splitlines()


def test_encoding_a_file_composes_no_configuration(tmp_path: Path) -> None:
    assert printed(tmp_path, ENCODE_FILE)[-1] == "set()"
    assert (tmp_path / "ids.npy").exists()


def test_an_iterable_is_encoded_in_bounded_memory(tmp_path: Path) -> None:
    """As the test of CS336's `encode_iterable`, with a text that is sixteen times as long."""
    short, long = (line.split() for line in printed(tmp_path, ENCODE_LINES))
    assert int(long[0]) == 16 * int(short[0])
    assert int(long[1]) - int(short[1]) < 3 * 1024


# Files


@pytest.mark.parametrize("block", [1, 7, 1 << 20])
def test_a_file_is_encoded_as_its_bytes(
    tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "BLOCK_BYTES", block)
    monkeypatch.setattr(encoding, "WINDOW", 100)
    content = TEXT.encode() + b"\xff\xfe the \xe4\xb8" + TEXT[:50].encode()
    (tmp_path / "text").write_bytes(content)
    expected = ONE.encode(content)
    for name in ("ids.npy", "ids.bin"):
        ids = ONE.encode_file(tmp_path / "text", tmp_path / name)
        assert (type(ids), ids.dtype) == (np.memmap, np.uint16)
        assert ids.tolist() == expected

    assert np.load(tmp_path / "ids.npy").tolist() == expected
    assert json.loads((tmp_path / "ids.bin.json").read_text()) == {
        "documents": [0],
        "dtype": "uint16",
        "count": len(expected),
        "sha256": hashlib.sha256((tmp_path / "ids.bin").read_bytes()).hexdigest(),
        "tokenizer_sha256": ONE.learned.sha256(),
    }


@pytest.mark.parametrize("place", [None, "after", "before", "between"])
@pytest.mark.parametrize("threads", [1, 3])
def test_rows_and_files_are_documents(tmp_path: Path, place: str | None, threads: int) -> None:
    documents = [TEXT, "the", "", "cat's", TEXT * 3, "le chat"]
    write_files(tmp_path, {f"files/{number}.txt": text for number, text in enumerate(documents)})
    rows = [json.dumps({"text": document}) for document in documents]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))

    end = [ONE.special_tokens["<|e|>"]]
    before, after, between = (end * (place == name) for name in ("before", "after", "between"))
    expected, places = list[int](), list[int]()
    for document in documents:
        expected += between if places else []
        places.append(len(expected))
        expected += [*before, *ONE.encode(document), *after]

    separator = "<|e|>" if place else False
    for name in ("rows.jsonl", "files"):
        output = tmp_path / f"{name}.bin"
        ids = ONE.encode_file(
            tmp_path / name, output, threads=threads, separator=separator, separate=place
        )
        assert ids.tolist() == expected
        assert json.loads(Path(f"{output}.json").read_text())["documents"] == places


SEPARATORS = json_beside(__file__, "separators.json")
"""Special tokens, a separator, its place, and the answer."""


@pytest.mark.parametrize(("special_tokens", "separator", "place", "answer"), SEPARATORS)
def test_a_separator_that_is_not_clear_is_refused(
    special_tokens: list[str], separator: Any, place: str | None, answer: str
) -> None:
    one = Tokenizer(learned("gpt2", tuple(special_tokens)))
    with pytest.raises(Refusal, match=answer):
        one.separator(separator, place)


# Decoding

LAST = max(ONE.vocab)
NUMBERS = [*range(250), *range(60_000, 60_040), *range(2**31, 2**31 + 30)]
SPARSE = {number: CHANCE.randbytes(CHANCE.randint(0, 40)) for number in NUMBERS}
DECODERS = [built("_encoder").Decoder(SPARSE), PlainDecoder(SPARSE)]


@given(
    ids=st.lists(st.sampled_from(NUMBERS), max_size=30),
    unknown=st.sampled_from([-1, 251, 2**31 - 1, 2**63 - 1]),
)
@examples(60)
@pytest.mark.parametrize(
    "container", [list, iter, partial(array, "q"), partial(np.array, dtype=">i8")]
)
@pytest.mark.parametrize("decoder", DECODERS, ids=["compiled", "plain"])
def test_ids_are_decoded_as_by_the_vocabulary(
    decoder: PlainDecoder, container: Any, ids: list[int], unknown: int
) -> None:
    assert decoder.decode(container(ids)) == b"".join(SPARSE[number] for number in ids)
    with pytest.raises(KeyError) as raised:
        decoder.decode(container([*ids, unknown, 0]))
    assert raised.value.args == (len(ids), unknown)


@given(content=st.text(max_size=12) | st.sampled_from([TEXT, "中é👩"]))
@examples(60)
def test_a_stream_gives_the_same_text_character_by_character(content: str) -> None:
    ids = ONE.encode(content)
    parts = list(ONE.decode_stream(iter(ids), errors="strict"))
    assert "".join(parts) == ONE.decode_text(ids) == content
    assert len(parts) <= len(ids)


def test_a_stream_waits_for_the_bytes_of_a_character() -> None:
    first, second = "é".encode()
    assert [*ONE.decode_stream([97, first, second, first])] == ["a", "é", "\ufffd"]
    stream = ONE.decode_stream([97, first, LAST + 1])
    assert next(stream) == "a"
    with pytest.raises(Refusal, match=rf"ids\[2\] is {LAST + 1}; the ids of this tokenizer are 0"):
        next(stream)
