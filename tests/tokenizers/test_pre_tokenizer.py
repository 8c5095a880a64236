"""The pre-tokenizer of a tokenizer.json becomes one expression that splits as its steps do, or is refused by name."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import regex
from tokenizers_made import PATTERNS, isolated, sequence

from harness.__main__ import main
from harness.records.file import read_records
from harness.tokenizers.pre_tokenizer import BYTE_LEVEL, SPLIT, joined, pattern_of
from variants.contract import GPT2_PATTERN
from variants.counting.patterns import compiled

SIGNS = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CHAINS = {
    "digits, then GPT-2's": [r"\p{N}", GPT2_PATTERN],
    "digits together, then GPT-2's": [r"\p{N}+", GPT2_PATTERN],
    "numbers in threes, then any": [r"\p{N}{1,3}", PATTERNS["llama3"].replace("{1,3}", "+")],
    "numbers, then threes": [r"\p{N}+", PATTERNS["llama3"]],
    "DeepSeek V3's": [r"\p{N}{1,3}", "[一-龥\u3040-\u309f\u30a0-\u30ff]+", SIGNS],
}
PIECES = (
    *("ア・イ", "中", "a", "B", "'s", "'S", "'", "12", "3", "٣٣٣٣", "½", "e\u0301", "\u0301", "\u200b", "\x00", "$x"),
    *(" ", "  ", "\n", "\r\n", " \n ", "\u3000", "!", "?!", "...", " 1", "1 "),
    *("・", "ー", "\u3099", "\u309b", "\u3040"),
)


def split(expression: str) -> dict[str, Any]:
    return {**SPLIT, "pattern": {"Regex": expression}}


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_steps_joined_split_as_one_after_another(chain: list[str]) -> None:
    expression, chance = regex.compile(joined(chain)), random.Random(7)
    for _ in range(300):
        text = "".join(chance.choices(chance.sample(PIECES, 6), k=chance.randint(0, 30)))
        pieces = [text]
        for step in chain:
            pieces = [part for piece in pieces for part in isolated(step, piece)]
        assert [found.group() for found in expression.finditer(text)] == pieces, text


DIGITS = {"type": "Digits", "individual_digits": True}
WHOLE = {**BYTE_LEVEL, "use_regex": True}
READ: list[tuple[list[Any], str | None]] = [
    *(
        ([split(PATTERNS[name]), BYTE_LEVEL], PATTERNS[name])
        for name in ("gpt4", "llama3", "qwen2", "o200k", "nanochat")
    ),
    ([{**split(PATTERNS["gpt4"]), "behavior": "Removed", "invert": True}, BYTE_LEVEL], PATTERNS["gpt4"]),
    ([WHOLE], GPT2_PATTERN),
    ([BYTE_LEVEL], None),
    ([DIGITS, WHOLE], PATTERNS["starcoder2"]),
    ([sequence(split(r"\p{N}")), split(GPT2_PATTERN), BYTE_LEVEL], PATTERNS["starcoder2"]),
]


@pytest.mark.parametrize(("steps", "pattern"), READ)
def test_a_pre_tokenizer_is_read_as_its_pattern(steps: list[Any], pattern: str | None) -> None:
    assert pattern_of(sequence(*steps)) == pattern
    assert compiled(pattern)


def test_sets_within_sets_mean_what_hugging_face_means_by_them() -> None:
    expression = pattern_of(sequence(split(r"\p{Han}+|[\p{L}&&[^\p{Han}]]+|."), BYTE_LEVEL))
    assert regex.findall(expression or "", "中文ABc1") == ["中文", "ABc", "1"]


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([{"type": "Punctuation", "behavior": "Contiguous"}, BYTE_LEVEL], "Punctuation is not a Split"),
        ([{**split("a"), "behavior": "MergedWithNext"}, BYTE_LEVEL], "MergedWithNext"),
        ([split(r"\p{N}{1,3}+"), BYTE_LEVEL], "repeats what it repeats"),
        ([split(r"\s?[a-z]+"), split(GPT2_PATTERN), BYTE_LEVEL], r"2 patterns .* not for '\\\\s\?\[a-z\]\+' before"),
        ([split(r"\p{N}"), split(r"\p{N}"), split(GPT2_PATTERN), BYTE_LEVEL], "3 patterns one after another"),
        ([split(r"\p{N}{1,3}"), split(PATTERNS["qwen2"]), BYTE_LEVEL], "2 patterns one after another"),
        ([{**split(r"\p{N}"), "behavior": "Removed", "invert": True}, split("a"), BYTE_LEVEL], "drops text"),
    ],
)
def test_other_pre_tokenizers_are_refused_by_name(steps: list[Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        pattern_of(sequence(*steps))


def test_a_run_takes_the_pattern_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.txt").write_text("low lower 1234  5 lowest " * 20)
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps({"pre_tokenizer": sequence(split(PATTERNS["qwen2"]), BYTE_LEVEL)}))
    run = [f"data.path={tmp_path / 'text.txt'}", "vocab_size=260", f"results={tmp_path / 'results'}", "counting=native"]
    assert main([*run, f"pattern={file}"]) == 0
    (counted,) = (each for each in read_records([tmp_path / "results"]) if each["cell"] == "count")
    assert "fell_back_to_regex" not in counted["tallies"]
    capsys.readouterr()
    file.write_text("{}")
    assert main([*run, f"pattern={file}"]) == 2
    assert "its pre-tokenizer is null; the last one must be ByteLevel" in capsys.readouterr().err
    assert main([*run, "pattern=missing.json"]) == 2
    assert "pattern=missing.json: No such file or directory" in capsys.readouterr().err
