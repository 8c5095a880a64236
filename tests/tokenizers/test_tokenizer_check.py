"""Other engines give our ids, or the first difference is shown; unused tokens and figures of texts
are found.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tokenizers_made import PATTERNS, SPECIALS, TEXT, learned, of_merges

from harness.common.errors import MISMATCH, OK, UNMEASURED
from harness.measure.machine import version
from harness.tokenizer import Tokenizer, load, main
from harness.tokenizers import check as checking
from harness.tokenizers.check import check, figures_of, figures_sheet, unused
from harness.tokenizers.folder import save
from harness.tokenizers.learned import trained
from harness.tokenizers.mixed import mixed_parts


def put(folder: Path, pattern: str = "gpt2", specials: Sequence[str] = SPECIALS) -> Path:
    save(folder, learned(pattern, specials), {})
    return folder


# The engines


def documented() -> dict[tuple[str, str, str], str]:
    """The outcome in docs/how-to/huggingface.md of each pattern, engine and version."""
    page = (Path(__file__).parents[2] / "docs/how-to/huggingface.md").read_text()
    table_of_page = re.search(r"^\| pattern \|.*?\n\n", page, re.MULTILINE | re.DOTALL)
    assert table_of_page is not None
    heading, _, *rows = table_of_page[0].strip().split("\n")
    engines = [cell.split() for cell in heading.strip("| ").split(" | ")[1:]]
    table: dict[tuple[str, str, str], str] = {}
    for row in rows:
        pattern, *cells = row.strip("| ").split(" | ")
        for (engine, release), cell in zip(engines, cells, strict=True):
            table[pattern.strip("`"), engine, release] = cell
    return table


def open_transformers(folder: Path, _: object) -> checking.Encode:
    transformers = importlib.import_module("transformers")
    loaded = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    return lambda text: loaded.encode(text, add_special_tokens=False)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("engine", [*checking.ENGINES, "transformers"])
def test_an_engine_gives_our_ids_or_does_not_load_as_documented(
    tmp_path: Path, engine: str, pattern: str
) -> None:
    if engine == "transformers":
        pytest.importorskip("tokenizers.trainers", reason="transformers needs tokenizers<1")
    pytest.importorskip(engine, reason=f"{engine} is not installed; pip install {engine}")
    major = version(engine).partition(".")[0]
    outcomes = {
        outcome
        for (name, of, version), outcome in documented().items()
        if (name, of) == (pattern, engine) and version.partition(".")[0] == major
    }
    folder = put(tmp_path, pattern)
    opening = {**checking.ENGINES, "transformers": open_transformers}
    (verdict,), _ = check(load(folder), folder, [("here", TEXT)], {engine: opening[engine]})
    assert outcomes == {"equal" if verdict.texts else "does not load"}
    assert verdict.differing == 0


# Comparing


def test_each_engine_is_compared_with_ours(tmp_path: Path) -> None:
    one, text = Tokenizer(learned()), "一the cat's mat, the mat"
    engines: dict[str, checking.Engine] = {
        "same": lambda *_: one.encode,
        "short": lambda *_: lambda text: one.encode(text)[:-1],
        "long": lambda *_: lambda text: [*one.encode(text), 0],
        "other": lambda *_: lambda text: one.encode(text.replace("mat", "hat")),
    }
    parts = [("tale", "the\udcff"), ("tale", text)]
    (same, short, long, other), _ = check(one, tmp_path, parts, engines)
    assert (same.texts, same.differing, same.notes) == (2, 0, [])
    assert (same.ids, same.bytes) == (
        len(one.encode("the\ufffd")) + len(one.encode(text)),
        6 + len(text.encode()),
    )
    assert (short.differing, long.differing, other.differing) == (2, 2, 1)
    assert other.notes[:2] == ["other differs first at", '  tale, byte 17, after "一the cat\'s "']
    assert [note[:14] for note in other.notes[2:]] == ["    ours:   'm", "    theirs: 'h"]


def test_mixed_text_is_always_the_same_and_comes_back() -> None:
    size = 8 * 2**16 - 5
    text = b"".join(mixed_parts(size, SPECIALS))
    assert (len(text), text) == (size, b"".join(mixed_parts(size, SPECIALS)))
    assert all(
        piece.encode() in text
        for piece in ("<|e|>x", "<|endoftext|", "\r\n", "\u3000", "'LL", "ก", "א")
    )
    one = Tokenizer(learned("o200k", SPECIALS))
    assert one.decode(one.encode(text[-70_000:])) == text[-70_000:]  # random bytes are among them


# The command


def test_the_command_checks_the_files_that_engines_load(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tokenizers", reason="tokenizers is not installed; pip install tokenizers")
    put(tmp_path)
    assert main(["check", str(tmp_path), "--size", "1kB"]) == OK
    content = json.loads((tmp_path / "tokenizer.json").read_bytes())
    content["pre_tokenizer"]["use_regex"] = False
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    assert main(["check", str(tmp_path), "--size", "1kB"]) == UNMEASURED
    assert "tokenizer.json cannot be used: it is not the file that" in capsys.readouterr().err
    manifest = json.loads((tmp_path / "manifest.json").read_bytes())
    digest = hashlib.sha256((tmp_path / "tokenizer.json").read_bytes()).hexdigest()
    manifest["files"]["tokenizer.json"] = digest
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert main(["check", str(tmp_path), "--size", "1kB"]) == MISMATCH


def test_every_engine_is_tried_on_a_file_of_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tokenizers", reason="tokenizers is not installed; pip install tokenizers")
    pytest.importorskip("tiktoken", reason="tiktoken is not installed; pip install tiktoken")
    put(tmp_path / "ours")
    content = json.loads((tmp_path / "ours" / "tokenizer.json").read_bytes())
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(content, indent=3))
    assert main(["check", str(path), "--size", "1kB"]) == OK
    assert "tiktoken was not tried" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("engines", "code", "answers"),
    [
        (
            {"theirs": lambda *_: lambda text: [ord(text[0])]},
            MISMATCH,
            ["theirs differs first at", "ours:"],
        ),
        ({"absent": lambda *_: 1 / 0}, UNMEASURED, ["absent was not tried: division by zero"]),
        (
            {"weak": lambda *_: lambda _: 1 / 0},
            UNMEASURED,
            ["weak gave up on mixed text from byte 0"],
        ),
    ],
)
def test_the_exit_code_tells_a_difference_from_a_failure(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    engines: dict[str, Any],
    code: int,
    answers: list[str],
) -> None:
    put(tmp_path)
    monkeypatch.setattr(checking, "ENGINES", engines)
    assert main(["check", str(tmp_path), "--size", "1kB"]) == code
    output = "".join(capsys.readouterr())
    assert all(answer in output for answer in answers)


@pytest.mark.slow
@pytest.mark.parametrize("specials", [(), SPECIALS], ids=["plain", "special"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_mixed_text_has_the_same_ids_everywhere(
    tmp_path: Path, pattern: str, specials: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(put(tmp_path, pattern, specials)), "--size", "1MB"]) == OK, (
        capsys.readouterr().out
    )


# Unused tokens, and figures of a text


@pytest.mark.parametrize(
    ("merges", "dead"),
    [
        ([("b", "b"), ("b", "bb")], ["bbb"]),
        ([("a", "b"), ("b", "c"), ("a", "bc")], ["abc"]),
        ([("b", "c"), ("a", "bc"), ("a", "b")], []),
        ([("a", "a"), ("aa", "aa"), ("a", "aa")], ["aaa"]),
    ],
)
def test_dead_tokens_are_found(merges: list[tuple[str, str]], dead: list[str]) -> None:
    found = unused(of_merges(*merges))
    assert [(finding.token.decode(), finding.kind) for finding in found] == [
        (token, "dead") for token in dead
    ]
    assert unused(of_merges(*merges, ignore_merges=True)) == []  # as whole pre-tokens they are met


def test_tokens_are_classed_the_worst_first() -> None:
    merges = (
        ("t", "h"),
        ("th", "e"),
        ("x", "y"),
        ("a", " "),
        ("\xe4", "\xb8"),
        ("a", "b"),
        ("b", "c"),
        ("a", "bc"),
    )
    tokenizer = of_merges(*merges)
    found = unused(tokenizer, [b"the ", b"the ab", " 中".encode()])
    assert [finding.token for finding in found] == [b"abc", b"a ", b"\xe4\xb8", b"th", b"xy", b"bc"]
    assert [finding.kind for finding in found] == [
        "dead",
        "cut",
        "part",
        "unused",
        "unused",
        "unused",
    ]
    assert [finding.kind for finding in unused(tokenizer)] == ["dead", "cut", "part"]


def test_the_figures_are_those_of_the_text() -> None:
    one = Tokenizer(
        trained([(b" ", b"t"), (b"h", b"e"), (b" t", b"he")], ["<|e|>"], PATTERNS["gpt2"])
    )
    # a, " the" twice, the special token, the line end, t, he, " ", c, a, t
    figures = figures_of("mine", one, "tale", [b"a the th", b"e<|e|>\n", b"", b"the cat"])
    assert figures == ("mine", "tale", 22, 5, 11, 8, 260, b" the".hex())
    sheet = figures_sheet([figures_of("mine", one, "nothing", [])])
    assert [column.cells[0] for column in sheet.columns[4:6]] == ["-", "-"]
