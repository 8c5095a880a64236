"""The pre-tokenizer of a tokenizer.json as one regular expression of ours.

Hugging Face splits a text by several steps, each within the pieces of the one before. Steps that find characters of one
class (numbers, a script) become alternatives of one expression, in which the last step sees no character beyond its
piece. Anything else that is not one expression is refused by name.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import regex

from harness.common import registry
from harness.common.errors import Refusal
from harness.tokenizers.learned import read_json
from variants.contract import GPT2_PATTERN

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False}
SPLIT_LIKE_OURS = ({"behavior": "Isolated", "invert": False}, {"behavior": "Removed", "invert": True})
CLASS = r"\\[pP](?:\{\^?\w+\}|\w)"
SET = r"(?P<set>\[\^?\]?(?:\\.|(?&set)|[^\]\[\\])*\])"
RUN = regex.compile(rf"(?P<of>{CLASS}|{SET})(?P<most>\+?|\{{1,\d+\}})")
"""A step that finds runs of one class: all, or so many characters at a time."""
PART = regex.compile(
    rf"{CLASS}|\\x\{{\w+\}}|\\x\w\w|\\u\w{{4}}|\\.|\(\?[a-z-]*:|\(\?<?[=!]|\(\?[a-z-]+\)|{SET}"
    r"|(?:[?*+]|\{\d+(?:,\d*)?\})[?+]?|.",
    regex.DOTALL,
)
"""The parts of an expression: a class, a set with the sets in it, the opening of a group, a quantifier, a character."""
QUANTIFIER = regex.compile(r"(?:[?*+]|\{\d+(?:,\d*)?\})[?+]?")
NOT_IN_PIECES = regex.compile(r"[$^]|\\[bBAZzGKX0-9]|\($|\(\?<|\(\?[a-z-]+\)")
"""What would see beyond a piece, or number its groups."""


@lru_cache
def own_spellings() -> dict[str, dict[str, Any]]:
    """The pre-tokenizers of patterns whose own text not every engine loads; Llama 3's matches what GPT-4's does."""
    cards = registry.cards("pattern")
    return {
        GPT2_PATTERN: {**BYTE_LEVEL, "use_regex": True},
        cards["gpt4"]["regex"]: {**SPLIT, "pattern": {"Regex": cards["llama3"]["regex"]}},
        cards["line"]["regex"]: {**SPLIT, "pattern": {"String": "\n"}, "behavior": "MergedWithPrevious"},
    }


def pattern_in_file(path: str) -> str | None:
    """The pattern of a tokenizer.json. Raises Refusal."""
    try:
        file = read_json(Path(path).read_bytes())
    except OSError as error:
        raise Refusal(f"pattern={path}: {error.strerror}") from error
    except ValueError as error:
        raise Refusal(f"pattern={path}: {error}") from error
    if "pre_tokenizer" not in file:
        raise Refusal(f"pattern={path} has no pre_tokenizer; pass a tokenizer.json as Hugging Face writes it")
    try:
        return pattern_of(file["pre_tokenizer"])
    except ValueError as error:
        raise Refusal(f"pattern={path} is not one pattern of ours: {error}") from error


def pattern_of(pre_tokenizer: Any) -> str | None:
    """What splits the text, as one pattern of ours; None if nothing does. Raises ValueError with what it cannot say."""
    steps = _steps(pre_tokenizer)
    last = steps[-1] if steps else None
    if last is None or type_of(last) != "ByteLevel":
        raise ValueError(f"its pre-tokenizer is {type_of(last)}; the last one must be ByteLevel")
    if last.get("add_prefix_space", True):
        raise ValueError("it puts a blank before the text (add_prefix_space); ours never does")
    patterns = [_split(step) for step in steps[:-1]]
    if len(steps) + last.get("use_regex", True) > 2 and any(step.get("invert") for step in steps):
        raise ValueError("it drops text between two of its steps (invert); ours keeps all text")
    if last.get("use_regex", True):
        patterns.append(GPT2_PATTERN)
    return joined(patterns) if patterns else None


def _steps(pre_tokenizer: Any) -> list[Any]:
    if isinstance(pre_tokenizer, Mapping) and pre_tokenizer.get("type") == "Sequence":
        return [step for each in pre_tokenizer.get("pretokenizers") or [] for step in _steps(each)]
    return [] if pre_tokenizer is None else [pre_tokenizer]


def _split(step: Any) -> str:
    line = registry.cards("pattern")["line"]["regex"]
    if step == own_spellings()[line]:
        return str(line)
    if type_of(step) == "Digits":
        return r"\p{N}" if step.get("individual_digits") else r"\p{N}+"
    pattern = step.get("pattern") if type_of(step) == "Split" else None
    if not isinstance(pattern, Mapping) or not isinstance(pattern.get("Regex"), str):
        raise ValueError(f"its pre-tokenizer {type_of(step)} is not a Split by a Regex")
    how = {key: step.get(key, False) for key in ("behavior", "invert")}
    if how not in SPLIT_LIKE_OURS:
        raise ValueError(f"its Split is {json.dumps(how)}; ours keeps every match as a pre-token")
    if regex.search(r"(?<!\\)\{\d+(?:,\d*)?\}\+", pattern["Regex"]):
        raise ValueError("its Split repeats what it repeats ({1,3}+), which is one possessive quantifier in ours")
    expression = from_ruby(pattern["Regex"])
    # Sets of sets, which Oniguruma always reads, are of version 1 in `regex`.
    nested = any("&&" in part or regex.search(r"(?<!\\)\[", part[1:]) for part in _parts(expression) if part[0] == "[")
    return f"(?V1){expression}" if nested else expression


def type_of(part: Any) -> str:
    return str(part.get("type")) if isinstance(part, Mapping) else json.dumps(part)


# --------------------
# Several steps as one expression.


def joined(patterns: Sequence[str]) -> str:
    """One expression that splits any text as these do one after another. Raises ValueError if there is none."""
    *runs, last = (pattern.removeprefix("(?V1)") for pattern in patterns)
    if not runs:
        return patterns[0]
    if runs == [r"\p{N}"] and last == GPT2_PATTERN:
        return str(registry.cards("pattern")["starcoder2"]["regex"])
    steps = [_class_and_most(run, len(patterns)) for run in runs]
    members = [_members(f"[{inner}]") for inner, _ in steps]
    if len(set().union(*members)) < sum(map(len, members)):
        raise ValueError("it splits by classes one after another that have characters in common")
    if regex.fullmatch(last, "") is not None:
        raise ValueError(f"it splits by {last!r} last, which matches nothing at all")
    alternatives = []
    for run, (inner, most), inside in zip(runs, steps, members, strict=True):
        if most is not None:
            _check_whole(last, run, most, inside)
        alternatives.append(run if most is not None else _within(last, f"[{inner}]"))
    expression = "|".join([*alternatives, _within(last, f"[^{''.join(inner for inner, _ in steps)}]")])
    nested = "&&" in expression or any(pattern.startswith("(?V1)") for pattern in patterns)
    return f"(?V1){expression}" if nested else expression


def _class_and_most(pattern: str, number: int) -> tuple[str, int | None]:
    """The class of a step that finds runs of one, as in a set, and its longest run; None for any."""
    run = RUN.fullmatch(pattern)
    inner = "" if run is None else run["of"][1:-1] if run["of"][0] == "[" else run["of"]
    if run is None or regex.match(r"\^|.*(?:&&|--|\|\||~~|(?<!\\)\[)", inner):
        raise ValueError(
            f"it splits by {number} patterns one after another, and {pattern!r} is not one class of characters"
        )
    return inner, None if run["most"] == "+" else int(run["most"][3:-1] or 1)


def _within(pattern: str, region: str) -> str:
    """The expression within pieces that end where a character is not of `region`; what it leaves out is a word."""
    text = ""
    for part in _parts(pattern):
        if NOT_IN_PIECES.match(part):
            raise ValueError(f"it splits by several patterns one after another, the last with {part}")
        if part[0] in "(|)" or QUANTIFIER.fullmatch(part) or (len(part) == 1 and regex.fullmatch(region, part)):
            text += part
        else:
            text += f"(?:(?-i:(?={region})){part})"
    return f"{text}|(?:(?!{text}){region})+"


def _parts(pattern: str) -> list[str]:
    return [part.group() for part in PART.finditer(pattern)]


def _members(of: str) -> list[str]:
    return regex.findall(f"(?V1){of}", "".join(map(chr, (*range(0xD800), *range(0xE000, sys.maxunicode + 1)))))


def _check_whole(pattern: str, run: str, most: int, characters: Sequence[str]) -> None:
    """Refuse a pattern that splits what a run with a bound finds: then the run would be no word."""
    chance = random.Random(0)
    texts = [character * most for character in characters]
    texts += ["".join(chance.choices(characters, k=most)) for _ in range(2000)]
    compiled = regex.compile(f"(?V1){pattern}")
    for text in texts:
        found = compiled.search(text)
        if found is not None and found.group() != text:
            raise ValueError(f"it splits by {run!r}, and what that finds once more by {pattern!r}")


# --------------------
# Dialects: our patterns are written for Python's `regex`, tokenizers 0.x compiles them with Oniguruma's Ruby.
# What only one of them knows goes through unchanged; `check` compares the ids.

_RUBY_PART = regex.compile(
    r"\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|\(\?[a-z]+(?:-[a-z]+)?[:)]|[$^]|.", regex.DOTALL
)
"""An escape, a class, a group with flags, an anchor, or any other character of a pattern."""

_TO_RUBY = {"$": r"\Z", "^": r"\A", r"\Z": r"\z"}
_FROM_RUBY = {"$": "(?m:$)", "^": "(?m:^)", r"\Z": "$", r"\z": r"\Z", r"\h": "[0-9a-fA-F]"}


def to_ruby(pattern: str) -> str:
    r"""The pattern for Oniguruma: there the dot that matches a line's end is (?m:.), and $ ends any line.

    >>> print(to_ruby(r"(?s:.+)$|[$^]\$"))
    (?m:.+)\Z|[$^]\$
    """
    return _rewritten(pattern, _TO_RUBY, {"s": "m"})


def from_ruby(pattern: str) -> str:
    r"""The reverse.

    >>> print(from_ruby(r"(?m:.+)\z|(?i:'s|$)"))
    (?s:.+)\Z|(?i:'s|(?m:$))
    """
    return _rewritten(pattern, _FROM_RUBY, {"m": "s"})


def _rewritten(pattern: str, signs: Mapping[str, str], flags: Mapping[str, str]) -> str:
    def part(match: regex.Match[str]) -> str:
        text = match[0]
        if text.startswith("(?"):
            return "".join(flags.get(letter, letter) for letter in text)
        return signs.get(text, text)

    return _RUBY_PART.sub(part, pattern)
