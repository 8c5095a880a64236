"""What tokenizers do with texts is counted, and shown side by side as a table and a chart."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers_made import PATTERNS, SPECIALS, TEXT, learned

from harness.common.errors import OK, USAGE
from harness.tokenizer import Tokenizer, main
from harness.tokenizers.folder import save
from harness.tokenizers.learned import trained
from harness.tokenizers.statistics import Figures, figures_of, sheet

MERGES = [(b" ", b"t"), (b"h", b"e"), (b" t", b"he")]


def figures(blocks: Sequence[bytes]) -> Figures:
    return figures_of("mine", Tokenizer(trained(MERGES, ["<|e|>"], PATTERNS["gpt2"])), "tale", blocks)


def test_the_figures_are_those_of_the_text() -> None:
    row = figures([b"a the the<|e|>\n", b"the cat"])
    # a, " the" twice, the special token, the line end, t, he, " ", c, a, t
    assert (row.bytes, row.words, row.tokens, row.special_tokens) == (22, 5, 11, 1)
    assert (row.bytes_per_token, row.tokens_per_word) == (2, 11 / 5)
    assert (row.used, row.vocabulary) == (8, 260)
    assert row.longest[:2] == [b" the", b"he"]
    nothing = figures([])
    assert (nothing.bytes_per_token, nothing.tokens_per_word, nothing.longest) == (None, None, [])
    assert [column.cells[0] for column in sheet([nothing]).columns[4:6]] == ["-", "-"]


@given(content=st.text("ab \n\t").map(str.encode), places=st.lists(st.integers(0, 40)))
def test_words_are_counted_across_blocks(content: bytes, places: list[int]) -> None:
    bounds = [0, *sorted(place for place in places if place <= len(content)), len(content)]
    row = figures([content[start:stop] for start, stop in zip(bounds, bounds[1:], strict=False)])
    assert (row.words, row.bytes) == (len(content.split()), len(content))


def test_the_command_shows_tokenizers_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, pattern in (("one", "gpt2"), ("two", "line")):
        save(tmp_path / name, learned(pattern, SPECIALS), {})
    for name, text in (("tale.txt", TEXT), ("other.txt", "the theme\n" * 9), ("empty $x$ 一.txt", "")):
        (tmp_path / name).write_text(text)
    command = ["stats", "one", "two", "--data", "tale.txt", "--data", "other.txt"]
    assert main([*command, "--format", "csv"]) == OK
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["text"], row["tokenizer"]) for row in rows] == [
        ("tale.txt", "one"), ("tale.txt", "two"), ("other.txt", "one"), ("other.txt", "two")
    ]  # fmt: skip
    assert float(rows[0]["bytes_per_token"]) == len(TEXT.encode()) / int(rows[0]["tokens"])
    assert main([*command, "--format", "json"]) == OK
    assert len(json.loads(capsys.readouterr().out)) == 4
    drawn = [*command, "--data", "empty $x$ 一.txt", "--picture"]
    assert main([*drawn, "a.svg"]) == OK
    table = capsys.readouterr().out
    assert all(heading in table for heading in ("bytes per token", "used", "longest of one in tale"))
    chart = (tmp_path / "a.svg").read_text()
    assert all(text in chart for text in ("bytes per token", "share of the vocabulary used", "tale.txt", "$x$"))
    assert main([*drawn, "a.gif"]) == USAGE
    assert "name a file that ends in .svg or .png" in capsys.readouterr().err
