"""The recipes of the page on encoding write what other trainers read: each file is read here by its
published layout.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from tokenizers_made import PATTERNS, TEXT, learned

from harness.tokenizer import Tokenizer
from harness.tokenizers.learned import BYTES, Learned

PAGE = Path(__file__).parents[2] / "docs/how-to/encode.md"
DOCUMENTS = [TEXT, "the", "", *(f"the cat {number}" for number in range(200)), TEXT * 3]
END = "<|endoftext|>"


class Encoded(NamedTuple):
    """A folder in which the page's recipes have run, the dtype, and the ids of each document."""

    folder: Path
    dtype: np.dtype[Any]
    ids: list[list[int]]


@pytest.fixture(scope="module", params=[2, 4])
def encoded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Encoded:
    one = Tokenizer(learned("gpt2", (END,)))
    if request.param == 4:
        vocab = {**dict(enumerate(BYTES)), 65_536: END.encode()}
        one = Tokenizer(Learned(vocab, [], {END: 65_536}, PATTERNS["gpt2"]))
    folder = tmp_path_factory.mktemp("recipes")
    rows = [json.dumps({"text": document}) + "\n" for document in DOCUMENTS]
    (folder / "rows.jsonl").write_text("".join(rows))
    one.encode_file(folder / "rows.jsonl", folder / "ids.bin", separator=END)

    section = PAGE.read_text().partition("## Read ids, and write files")[2]
    code = re.findall(r"```python\n(.*?)```", section, re.DOTALL)[0]
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    # llm.c, which is last, has no more than 65,536 tokens
    assert ("Cannot cast" in done.stderr) if request.param == 4 else not done.stderr
    ids = [[*one.encode(document), one.special_tokens[END]] for document in DOCUMENTS]
    return Encoded(folder, np.dtype(f"<u{request.param}"), ids)


def joined(documents: Sequence[Sequence[int]]) -> list[int]:
    return [number for document in documents for number in document]


def test_nanogpt_maps_the_bare_numbers(
    encoded: Encoded,
) -> None:
    folder, dtype, ids = encoded
    assert np.memmap(folder / "ids.bin", dtype, mode="r").tolist() == joined(ids)


def test_shards_of_several_processes_are_joined(tmp_path: Path) -> None:
    one = Tokenizer(learned("gpt2", (END,)))
    for name, documents in (("a", DOCUMENTS[:9]), ("b", DOCUMENTS[9:]), ("all", DOCUMENTS)):
        rows = [json.dumps({"text": document}) + "\n" for document in documents]
        (tmp_path / f"{name}.jsonl").write_text("".join(rows))
        one.encode_file(tmp_path / f"{name}.jsonl", tmp_path / f"{name}.bin", separator=True)
    parts = [(tmp_path / name).read_bytes() for name in ("a.bin", "b.bin")]
    assert b"".join(parts) == (tmp_path / "all.bin").read_bytes()


def test_llm_c_finds_its_header(encoded: Encoded) -> None:
    """256 numbers of four bytes, the first three a magic number, the version and the count."""
    folder, dtype, ids = encoded
    if dtype.itemsize == 4:
        assert not (folder / "train_000000.bin").stat().st_size > 1024
        return
    content = (folder / "train_000000.bin").read_bytes()
    header = np.frombuffer(content[:1024], "<i4")
    assert header[:3].tolist() == [20240520, 1, len(joined(ids))]
    assert not header[3:].any()
    assert np.frombuffer(content[1024:], "<u2").tolist() == joined(ids)


def test_megatron_finds_each_document(encoded: Encoded) -> None:
    """A magic text, the version, a code of the dtype, both counts; lengths, places in bytes, and
    the sequences with which documents start.
    """
    folder, dtype, ids = encoded
    index, numbers = (folder / "ids.idx").read_bytes(), (folder / "ids.bin").read_bytes()
    assert index[:9] == b"MMIDIDX\x00\x00"
    assert int.from_bytes(index[9:17], "little") == 1
    kind: np.dtype[Any] = np.dtype({8: "<u2", 4: "<i4"}[index[17]])
    assert kind.itemsize == dtype.itemsize
    sequences, documents = np.frombuffer(index, "<u8", 2, offset=18).tolist()
    assert (sequences, documents) == (len(ids), len(ids) + 1)

    offset = 34
    lengths = np.frombuffer(index, "<i4", sequences, offset=offset)
    offset += lengths.nbytes
    places = np.frombuffer(index, "<i8", sequences, offset=offset)
    offset += places.nbytes
    starts = np.frombuffer(index, "<i8", documents, offset=offset)
    assert len(index) == offset + starts.nbytes
    assert starts.tolist() == [*range(documents)]

    pairs = zip(lengths.tolist(), places.tolist(), strict=True)
    read = [np.frombuffer(numbers, kind, length, offset=place).tolist() for length, place in pairs]
    assert read == ids


def test_datatrove_finds_each_document(
    encoded: Encoded,
) -> None:
    """The index holds where each document ends, in tokens, as numbers of eight bytes."""
    folder, dtype, ids = encoded
    ends = np.fromfile(folder / "ids.ds.index", "<u8").tolist()
    numbers = np.fromfile(folder / "ids.ds", dtype)
    parts = zip([0, *ends], ends, strict=False)
    assert [numbers[start:end].tolist() for start, end in parts] == ids
