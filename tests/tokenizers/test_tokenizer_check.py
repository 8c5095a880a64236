"""Other engines give our ids, or the first difference is shown; texts have their figures."""

import importlib
from pathlib import Path
from typing import Any

import pytest
from tokenizers_made import PATTERNS, SPECIALS, TEXT, changed, learned
from workbench import Call

from harness.common.errors import MISMATCH, OK, UNMEASURED
from harness.measure.machine import version
from harness.tokenizer import Tokenizer, main
from harness.tokenizers import check as checking
from harness.tokenizers.check import Figures, Opened, check_engines, figures_of, mixed_parts
from harness.tokenizers.learned import trained

HERE = [("here", [TEXT.encode()])]
PAGE = Path(__file__).parents[2] / "docs/how-to/huggingface.md"


def documented(engine: str) -> dict[str, str]:
    """The outcome of each pattern that the page has for the installed version of an engine."""
    _, _, table = PAGE.read_text().partition("| pattern |")
    heading, _, *rows = table.partition("\n\n")[0].splitlines()
    installed = f" {engine} {version(engine).partition('.')[0]}."
    cells = enumerate(heading.split("|"), 2)
    (place,) = [number for number, cell in cells if cell.startswith(installed)]
    return {row.split("|")[1].strip(" `"): row.split("|")[place].strip() for row in rows}


def open_transformers(folder: Path, _: object) -> Opened:
    transformers = importlib.import_module("transformers")
    loaded = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    return Opened(lambda text: loaded.encode(text, add_special_tokens=False), loaded.decode)


@pytest.mark.parametrize("engine", [*checking.ENGINES, "transformers"])
def test_an_engine_gives_our_ids_or_does_not_load_as_documented(
    tmp_path: Path, engine: str
) -> None:
    if engine == "transformers":
        pytest.importorskip("tokenizers.trainers", reason="transformers needs tokenizers<1")
    pytest.importorskip(engine)
    opening = {**checking.ENGINES, "transformers": open_transformers}[engine]
    outcomes = {}
    for pattern in PATTERNS:
        one = Tokenizer(learned(pattern, SPECIALS))
        (verdict,), _ = check_engines(one, tmp_path, HERE, {engine: opening})
        assert verdict.differing == 0
        outcomes[pattern] = "equal" if verdict.texts else "does not load"
    assert outcomes == documented(engine)


def test_the_file_that_people_load_is_checked(tmp_path: Path) -> None:
    other = changed(tmp_path, pre_tokenizer__use_regex=False)
    ours = Tokenizer(learned("gpt2", SPECIALS))
    for source in (other, other.parent):
        verdicts, _ = check_engines(ours, source, HERE, checking.ENGINES)
        differing = {verdict.engine: verdict.differing for verdict in verdicts if verdict.texts}
        assert (differing["tokenizers"], differing["tiktoken"]) == (1, 0)


def test_each_engine_is_compared_with_ours(tmp_path: Path) -> None:
    one = Tokenizer(learned())
    text = "一the cat's mat, the mat"
    engines: dict[str, checking.Engine] = {
        "same": lambda *_: Opened(one.encode, one.decode_text),
        "long": lambda *_: Opened(lambda text: [*one.encode(text), 0], one.decode_text),
        "other": lambda *_: Opened(
            lambda text: one.encode(text.replace("mat", "hat")), one.decode_text
        ),
        "lossy": lambda *_: Opened(one.encode, lambda ids: one.decode_text(ids).replace("一", "")),
    }
    verdicts, _ = check_engines(one, tmp_path, [("tale", [b"the\xff", text.encode()])], engines)
    assert [verdict.differing for verdict in verdicts] == [0, 2, 1, 1]

    same, _, other, lossy = verdicts
    ids = len(one.encode("the\ufffd") + one.encode(text))
    assert (same.texts, same.ids, same.bytes) == (2, ids, 6 + len(text.encode()))
    assert same.notes == []
    assert other.notes[:2] == ["other differs first at", '  tale, byte 17, after "一the cat\'s "']
    assert [note[:14] for note in other.notes[2:]] == ["    ours:   'm", "    theirs: 'h"]
    assert lossy.notes[0] == "lossy decodes otherwise, first in tale"
    assert [note[13:15] for note in lossy.notes[1:]] == ["一t", "th"]


@pytest.mark.parametrize(
    ("engine", "code", "answer"),
    [
        (lambda *_: Opened(lambda _: [1], str), MISMATCH, "theirs differs first at"),
        (lambda *_: 1 / 0, UNMEASURED, "theirs was not tried: division by zero"),
        (
            lambda *_: Opened(lambda _: [1 // 0], str),
            UNMEASURED,
            "theirs gave up on mixed text from byte 0",
        ),
    ],
)
def test_the_exit_code_tells_a_difference_from_a_failure(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: Call,
    engine: Any,
    code: int,
    answer: str,
) -> None:
    monkeypatch.setattr(checking, "ENGINES", {"theirs": engine})
    Tokenizer(learned()).save(tmp_path)
    checked = call("tokenizer check --size 1kB", tmp_path)
    assert checked.code == code
    assert answer in checked.out


@pytest.mark.slow
@pytest.mark.parametrize("specials", [(), SPECIALS], ids=["plain", "special"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_mixed_text_has_the_same_ids_everywhere(
    tmp_path: Path, pattern: str, specials: tuple[str, ...]
) -> None:
    Tokenizer(learned(pattern, specials)).save(tmp_path)
    assert main(["check", str(tmp_path), "--size", "1MB"]) == OK


def test_mixed_text_has_its_size_and_all_kinds_of_pieces() -> None:
    size = 8 * 2**16 - 5
    text = b"".join(mixed_parts(size, SPECIALS))
    assert len(text) == size
    for piece in ("<|e|>x", "<|endoftext|", "\r\n", "\u3000", "'LL", "ก", "א"):
        assert piece.encode() in text


def test_the_figures_are_those_of_the_text() -> None:
    merges = [(b" ", b"t"), (b"h", b"e"), (b" t", b"he")]
    one = Tokenizer(trained(merges, ["<|e|>"], PATTERNS["gpt2"]))
    # a, " the" twice, the special token, the line end, t, he, " ", c, a, t
    figures = figures_of("mine", one, "tale", [b"a the th", b"e<|e|>\n", b"", b"the cat"])
    assert figures == Figures("mine", "tale", 22, 5, 11, 8, 260, b" the".hex())
