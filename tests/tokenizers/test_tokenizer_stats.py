"""What tokenizers do with texts is counted, and shown side by side as a table and a picture."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers_made import SPECIALS, TEXT, learned

from harness.common.errors import OK, USAGE
from harness.results.charts import tokenizers
from harness.results.drawing import draw_chart
from harness.tokenizer import Tokenizer, main
from harness.tokenizers.folder import write
from harness.tokenizers.statistics import Figures, figures_of, sheet
from variants.contract import vocab_of

MERGES = [(b" ", b"t"), (b"h", b"e"), (b" t", b"he")]


def tokenizer() -> Tokenizer:
    return Tokenizer(vocab_of(MERGES, ["<|e|>"]), MERGES, {"<|e|>": 256})


def figures(blocks: Sequence[bytes]) -> Figures:
    return figures_of("mine", tokenizer(), "tale", blocks)


def test_the_figures_are_those_of_the_text() -> None:
    found = figures([b"a the the<|e|>\n", b"the cat"])
    # a, " the" twice, the special token, the line end, t, he, " ", c, a, t
    assert (found.size, found.words, found.tokens, found.special) == (22, 5, 11, 1)
    assert found.bytes_per_token == 2
    assert found.tokens_per_word == 11 / 5
    assert (found.used, found.vocabulary) == (8, 260)
    assert found.longest[:2] == (b" the", b"he")


def test_a_text_of_nothing_has_no_ratios() -> None:
    found = figures([])
    assert (found.bytes_per_token, found.tokens_per_word, found.longest) == (None, None, ())
    assert [column.cells[0] for column in sheet([found]).columns[4:6]] == ["-", "-"]
    assert json.dumps(found.record())
    draw_chart(tokenizers([found]))


@given(content=st.text("ab \n\t").map(str.encode), places=st.lists(st.integers(0, 40)))
def test_words_are_counted_across_blocks(content: bytes, places: list[int]) -> None:
    bounds = [0, *sorted(place for place in places if place <= len(content)), len(content)]
    found = figures([content[start:stop] for start, stop in zip(bounds, bounds[1:], strict=False)])
    assert (found.words, found.size) == (len(content.split()), len(content))


def made(folder: Path) -> list[str]:
    for name, pattern in (("one", "gpt2"), ("two", "line")):
        write(folder / name, learned(pattern, SPECIALS), pattern, {})
    (folder / "tale.txt").write_text(TEXT)
    (folder / "other.txt").write_text("the theme is the cat\n" * 9)
    (folder / "empty $x$ 一.txt").write_bytes(b"")
    data = [part for name in ("tale.txt", "other.txt") for part in ("--data", str(folder / name))]
    return ["stats", str(folder / "one"), str(folder / "two"), *data]


def test_the_command_shows_tokenizers_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = made(tmp_path)
    assert main(command) == OK
    shown = capsys.readouterr().out
    assert all(heading in shown for heading in ("bytes per token", "tokens per word", "used", "longest"))
    assert main([*command, "--format", "csv"]) == OK
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["text"], row["tokenizer"]) for row in rows] == [
        ("tale.txt", "one"), ("tale.txt", "two"), ("other.txt", "one"), ("other.txt", "two")
    ]  # fmt: skip
    assert float(rows[0]["bytes_per_token"]) == len(TEXT.encode()) / int(rows[0]["tokens"])
    assert main([*command, "--format", "markdown", "--output", str(tmp_path / "table.md")]) == OK
    assert (tmp_path / "table.md").read_text().count("\n|") == 5
    assert main([*command, "--format", "json"]) == OK
    assert len(json.loads(capsys.readouterr().out)) == 4


@pytest.mark.parametrize("ending", ["svg", pytest.param("png", marks=pytest.mark.slow)])
def test_the_command_draws_a_picture(tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*made(tmp_path), "--data", str(tmp_path / "empty $x$ 一.txt")]
    assert main([*command, "--picture", str(tmp_path / f"a.{ending}")]) == OK
    assert (tmp_path / f"a.{ending}").stat().st_size > 1000
    if ending == "svg":
        picture = (tmp_path / "a.svg").read_text()
        assert all(said in picture for said in ("bytes per token", "share of the vocabulary used", "tale.txt", "$x$"))
    assert main([*command, "--picture", str(tmp_path / "a.gif")]) == USAGE
    assert "name a file that ends in .svg or .png" in capsys.readouterr().err
