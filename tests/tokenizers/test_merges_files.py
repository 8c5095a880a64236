"""Files of merges of every form give the same merges; a broken one is refused with the line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from harness.common.errors import USAGE, Refusal
from harness.proof.checks import TrainerCall
from harness.tokenizers.forms import merges_text, ranks_text, read_merges_file
from harness.tokenizers.learned import spelled, trained
from variants.contract import Merge, TieBreak

SPELLED = "t h\nth e\n"
MERGES = [(b"t", b"h"), (b"th", b"e")]


def written(folder: Path, content: str | bytes, name: str = "merges") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def ranks_of(merges: list[Merge]) -> str:
    return ranks_text(trained(merges, [], None)).decode()


def minbpe_text(merges: list[Merge], special_tokens: str = "0\n") -> str:
    ids = {token: rank for rank, token in enumerate(bytes((byte,)) for byte in range(256))}
    lines = []
    for left, right in merges:
        lines.append(f"{ids[left]} {ids[right]}\n")
        ids[left + right] = len(ids)
    return f"minbpe v1\npattern\n{special_tokens}{''.join(lines)}"


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (SPELLED, "GPT-2's merges.txt"),
        (f"#version: 0.2\n{SPELLED}".replace("\n", "\r\n"), "GPT-2's merges.txt"),
        ("\ufeff" + SPELLED + "\n\n", "GPT-2's merges.txt"),
        ("74 68\n7468 65\n", "hexadecimal lines"),
        (json.dumps({"model": {"type": "BPE", "merges": ["t h", "th e"]}}), "tokenizer.json"),
        (json.dumps({"model": {"merges": [["t", "h"], ["th", "e"]]}}), "tokenizer.json"),
        (ranks_of(MERGES), "tiktoken's ranks"),
        (minbpe_text(MERGES), "minbpe's .model"),
        (minbpe_text(MERGES, "1\n<|endoftext|> 300\n"), "minbpe's .model"),
        ("{ x\n", "GPT-2's merges.txt"),
        ("", "GPT-2's merges.txt"),
        ("#version: 0.2", "GPT-2's merges.txt"),
    ],
)
def test_the_content_decides_the_form(tmp_path: Path, content: str, form: str) -> None:
    merges = {"{ x\n": [(b"{", b"x")], "": [], "#version: 0.2": []}.get(content, MERGES)
    assert read_merges_file(written(tmp_path, content)) == (merges, form)


def test_a_folder_is_read_by_what_it_holds(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"holds none of merges.txt, tokenizer.json; pass a file of merges"):
        read_merges_file(tmp_path)
    written(tmp_path, json.dumps({"model": {"merges": ["a b"]}}), "tokenizer.json")
    assert read_merges_file(tmp_path).merges == [(b"a", b"b")]
    written(tmp_path, SPELLED, "merges.txt")
    assert read_merges_file(tmp_path).merges == MERGES


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    some.dictionaries(
        some.lists(some.sampled_from([0, 10, 32, 97, 98, 173, 255]), min_size=1, max_size=12).map(bytes),
        some.integers(1, 5),
        max_size=6,
    ),
    some.sampled_from(TieBreak),
)
def test_merges_come_back_from_every_form(
    tmp_path_factory: pytest.TempPathFactory, words: dict[bytes, int], tie_break: TieBreak
) -> None:
    folder = tmp_path_factory.mktemp("forms")
    merges = TrainerCall(words, 60, tie_break).defined()
    pairs = [[spelled(left), spelled(right)] for left, right in merges]
    for content in (
        merges_text(merges),
        "".join(f"{left.hex()} {right.hex()}\n" for left, right in merges),
        json.dumps({"model": {"type": "BPE", "merges": pairs}}),
        ranks_of(merges),
        minbpe_text(merges),
    ):
        assert read_merges_file(written(folder, content)).merges == merges


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("t h\nthe\n", "line 2 is not a merge: 'the'"),
        ("#version: 0.2\nt h\n\nth e\n", "line 3 is not a merge: ''"),
        ("▁ t\n", "line 1 is not a merge"),
        (b"\xff\xfe\x00t h", "line 1 is not a merge"),
        ("74 68\n7468 6\n", "line 2 is not two tokens in hexadecimal digits: '7468 6'"),
        (json.dumps({"model": {"type": "Unigram", "merges": []}}), "its model is Unigram"),
        (json.dumps({"model": {"vocab": {}}}), "its model has no merges"),
        (json.dumps({"model": {"merges": {"a": "b"}}}), "Expected `array | null`, got `object` - at `$.model.merges`"),
        (json.dumps({"model": {"merges": ["a b c"]}}), "merge 1 is not a pair of tokens: 'a b c'"),
        (json.dumps({"model": {"merges": [["a", ""]]}}), "merge 1 is not a pair of tokens: ('a', '')"),
        (json.dumps({"model": {"merges": ["▁ t"]}}), "'▁' is not a byte; only byte-level"),
        (json.dumps({"model": {"merges": [], "end_of_word_suffix": "</w>"}}), "its end_of_word_suffix is '</w>'"),
        ("dGg= 0\n", "byte 0 has no rank"),
        (ranks_of(MERGES) + "dGhl 258\n", "two lines have the same token or the same rank"),
        (ranks_of(MERGES) + "YWI= 257\n", "two lines have the same token or the same rank"),
        (ranks_of(MERGES) + "not a rank\n", "line 259 is not a token in base64 and its rank"),
        (ranks_of(MERGES) + "YWJj 300\n", "b'abc' of rank 300 is not joined from two tokens of lower rank"),
        (minbpe_text(MERGES) + "97 900\n", "line 6 is not two ids of earlier tokens: '97 900'"),
        ("minbpe v1\npattern\nmany\n", "line 3 is not a number of special tokens"),
    ],
)
def test_broken_files_are_refused_with_the_line(tmp_path: Path, content: str | bytes, why: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(
        Refusal, match=rf"^{re.escape(str(path))}, read as .*: .*{re.escape(why)}.*; it can be"
    ) as refused:
        read_merges_file(path)
    assert refused.value.exit_code == USAGE
