"""The recipes of the page on encoding write what other trainers read: each file is read here by its
published layout.
"""

import json
import struct
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest
from shown import blocks_after
from tokenizers_made import PATTERNS, TEXT, learned
from workbench import CHECKOUT, ran

from harness.tokenizer import Tokenizer
from harness.tokenizers.learned import BYTES, Learned

PAGE = CHECKOUT / "docs/how-to/encode.md"
DOCUMENTS = [TEXT, "the", "", *(f"the cat {number}" for number in range(200)), TEXT * 3]
END = "<|endoftext|>"
OURS = learned("gpt2", (END,))
FAR = Learned({**dict(enumerate(BYTES)), 65_536: END.encode()}, [], {END: 65_536}, PATTERNS["gpt2"])


def read_megatron(index: bytes, numbers: bytes) -> list[list[int]]:
    """A magic text, the version, a code of the dtype, both counts; lengths, places in bytes, and
    the sequences with which documents start.
    """
    magic, version, code, sequences, documents = struct.unpack_from("<9sQBQQ", index)
    assert (magic, version, documents) == (b"MMIDIDX\x00\x00", 1, sequences + 1)
    parts = [
        ("lengths", "<i4", sequences),
        ("places", "<i8", sequences),
        ("starts", "<i8", documents),
    ]
    (found,) = np.frombuffer(index, parts, offset=34)
    assert found["starts"].tolist() == [*range(documents)]

    kind = {8: "<u2", 4: "<i4"}[code]
    pairs = zip(found["lengths"].tolist(), found["places"].tolist(), strict=True)
    return [np.frombuffer(numbers, kind, length, offset=place).tolist() for length, place in pairs]


@pytest.mark.parametrize(("one", "dtype"), [(OURS, "<u2"), (FAR, "<u4")], ids=["two", "four"])
def test_other_trainers_read_our_ids(tmp_path: Path, one: Learned, dtype: str) -> None:
    tokenizer = Tokenizer(one)
    rows = [json.dumps({"text": document}) for document in DOCUMENTS]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))
    tokenizer.encode_file(tmp_path / "rows.jsonl", tmp_path / "ids.bin", separator=END)
    documents = [tokenizer.encode(document + END) for document in DOCUMENTS]
    ids = [*chain.from_iterable(documents)]

    (code,) = blocks_after(PAGE, "## Read ids, and write files.*?```python\n")
    done = ran(tmp_path, "-W", "error", "-c", code)
    assert np.memmap(tmp_path / "ids.bin", dtype, mode="r").tolist() == ids  # nanoGPT
    index, numbers = (tmp_path / "ids.idx").read_bytes(), (tmp_path / "ids.bin").read_bytes()
    assert read_megatron(index, numbers) == documents

    # datatrove: where each document ends, in tokens, as numbers of eight bytes
    ends = np.fromfile(tmp_path / "ids.ds.index", "<u8").tolist()
    joined = np.fromfile(tmp_path / "ids.ds", dtype).tolist()
    assert [joined[start:end] for start, end in pairwise([0, *ends])] == documents

    # llm.c, which has no more than 65,536 tokens: 256 numbers of four bytes, the first three a magic
    # number, the version and the count
    content = (tmp_path / "train_000000.bin").read_bytes()
    if dtype == "<u4":
        assert "Cannot cast" in done.stderr
        assert len(content) <= 1024
        return
    assert not done.stderr
    header = np.frombuffer(content[:1024], "<i4").tolist()
    assert header == [20240520, 1, len(ids), *[0] * 253]
    assert np.frombuffer(content[1024:], dtype).tolist() == ids
