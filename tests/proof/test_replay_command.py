"""The judge takes the settings of the training from what it judges, and says what it was told
otherwise.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.common.errors import MISMATCH, OK, UNMEASURED, USAGE
from harness.replay import main
from harness.tokenizer import main as tokenizer
from variants.contract import GPT2_LINES_PATTERN, Corpus
from variants.counting.pretokenize import serial
from variants.heap import train

TEXT = "a.\n\nb.\n\nc.\n\nd.\n\nI 1234567 1234567 1234567\n<|end|>low low lower lowest  \n" * 2


@pytest.fixture(autouse=True)
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("text.txt")
    path.write_text(TEXT)
    return path


def save(*options: str) -> None:
    """A tokenizer in `saved`."""
    command = ["train", "text.txt", "--save", "saved", "--overwrite", "--vocab-size", "275"]
    assert tokenizer([*command, *options]) == OK


def judged(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    """The exit code, and the lines of both outputs."""
    capsys.readouterr()
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, (captured.out + captured.err).splitlines()


@pytest.mark.parametrize("file", ["", "manifest.json", "merges.txt", "tokenizer.json"])
@pytest.mark.parametrize(
    "options",
    [
        ("--pattern", "gpt4"),
        ("--pattern", r"[^\W\d]+|\s|[\S\d]"),
        ("--special-token", "<|end|>"),
        ("--min-count", "3"),
    ],
)
def test_saved_tokenizer_is_right_as_it_is(
    capsys: pytest.CaptureFixture[str], options: tuple[str, str], file: str
) -> None:
    save(*options)
    if file == "manifest.json":
        file = "merges.txt"
    code, lines = judged(capsys, f"saved/{file}", "--data", "text.txt")
    assert (code, lines[0][:5]) == (OK, "right"), lines


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("pattern=gpt2", "saved/manifest.json says: pattern gpt4, not gpt2"),
        ("special_tokens=[]", "saved/manifest.json says: special tokens <|end|>, not none"),
        ("min_count=9", "saved/manifest.json says: min_count 2, not 9"),
    ],
)
def test_override_that_contradicts_is_named(
    capsys: pytest.CaptureFixture[str], override: str, line: str
) -> None:
    save("--pattern", "gpt4", "--special-token", "<|end|>", "--min-count", "2")
    code, lines = judged(capsys, "saved", "--data", "text.txt", override)
    assert (code == MISMATCH) == (lines[0] == "WRONG")
    assert line in lines


def test_wrong_merges_of_another_text_name_it(capsys: pytest.CaptureFixture[str]) -> None:
    save()
    Path("other.txt").write_text("xyz " * 9)
    code, lines = judged(capsys, "saved", "--data", "other.txt")
    assert (code, lines[0]) == (MISMATCH, "WRONG")
    says = next(
        line for line in lines if line.startswith("saved/manifest.json says: data text.txt")
    )
    assert ", not other.txt (sha256 " in says


def test_merges_that_are_wrong_as_saved_say_that_nothing_differs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    save()
    code, lines = judged(capsys, "saved", "--data", "text.txt", "tie_break=raw_bytes")
    assert (code, lines[0]) == (MISMATCH, "WRONG")
    same = "saved/manifest.json says the same pattern, special tokens, min_count and data"
    assert same in lines


def test_damaged_folder_is_judged_by_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    save("--pattern", "gpt4")
    with Path("saved/merges.txt").open("a") as file:
        file.write("q q\n")
    code, lines = judged(capsys, "saved", "--data", "text.txt")
    assert code == MISMATCH
    assert any("is not the file that manifest.json describes" in line for line in lines)


def test_extended_tokenizer_is_right_without_extend(capsys: pytest.CaptureFixture[str]) -> None:
    from harness.__main__ import main as harness

    save("--pattern", "gpt4", "--special-token", "<|end|>")
    Path("other.txt").write_text("other words, wholly other words, \n" * 5)
    arguments = ["variant=flat", "data.path=other.txt", "extend=saved", "vocab_size=285"]
    arguments += ["pattern=gpt4", "special_tokens=['<|end|>']", "save=larger", "results=results"]
    assert harness(arguments) == OK
    code, lines = judged(capsys, "larger", "--data", "other.txt")
    assert (code, lines[0][:5]) == (OK, "right"), lines


def test_pattern_that_fits_a_list_is_named(capsys: pytest.CaptureFixture[str], text: Path) -> None:
    text.write_text("a  \n\n  b \n\n\n  c\n" * 9)
    merges = train(serial(Corpus(str(text), (), GPT2_LINES_PATTERN)), 5)
    lines = [b" ".join(token.hex().encode() for token in merge) for merge in merges]
    Path("lines.txt").write_bytes(b"\n".join(lines) + b"\n")
    code, shown = judged(capsys, "lines.txt", "--data", "text.txt")
    assert (code, shown[0]) == (MISMATCH, "WRONG")
    assert any("right with pattern=gpt2_lines" in line for line in shown)


@pytest.mark.parametrize(
    ("content", "mark"), [("l ow</w>", "</w>"), ("a ##b", "##"), ("\u2581 t", "\u2581")]
)
def test_list_of_words_is_refused_by_name(
    capsys: pytest.CaptureFixture[str], content: str, mark: str
) -> None:
    Path("codes.txt").write_text(f"#version: 0.2\n{content}\n")
    code, (sentence,) = judged(capsys, "codes.txt", "--data", "text.txt")
    assert code == UNMEASURED
    assert mark in sentence
    assert "not of bytes; pass a file of byte-level merges" in sentence


def test_bytes_that_look_like_a_mark_are_judged(capsys: pytest.CaptureFixture[str]) -> None:
    Path("html.txt").write_text("</w> ## </w> ## " * 9)
    Path("marks.txt").write_text("< /\n")
    assert judged(capsys, "marks.txt", "--data", "html.txt", "vocab_size=258")[0] == OK


def test_rounds_of_a_list_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    Path("list.txt").write_text("t h\ni n\nth e\ne n\nin g\n")
    _, lines = judged(capsys, "list.txt", "--data", "text.txt")
    assert "rounds in which no merge waits for another: 3" in lines


def test_merges_without_a_text_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    save()
    code, (sentence,) = judged(capsys, "saved/merges.txt")
    assert code == USAGE
    assert sentence.startswith("pass --data FILE, the text that saved/merges.txt was learned from")
    assert sentence.endswith("saved/manifest.json names text.txt")
    shutil.copy("saved/merges.txt", "alone.txt")
    assert judged(capsys, "alone.txt")[0] == USAGE
