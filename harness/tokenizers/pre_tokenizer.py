"""The pre-tokenizer of a tokenizer.json as one regular expression of ours, and back.

Hugging Face splits a text by several steps, each within the pieces of the one before. The sequences
that are in use are known as one expression; anything else is refused by name.

Our patterns are written for Python's `regex`; tokenizers 0.x compiles them with Oniguruma's Ruby.
Parts that both read alike stay, a table spells some others as explicit classes, and the rest is
refused by name. Characters that are newer than the tables of Oniguruma stay different.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import regex

from harness.common import registry
from harness.common.errors import UNMEASURED, Refusal, reason
from harness.common.files import readable
from harness.common.values import read_json
from variants.contract import GPT2_PATTERN

BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": False,
}
SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False}
LIKE_OURS = (("Isolated", False), ("Removed", True))
"""The behavior of a Split, and whether it is inverted, by which every match is a pre-token."""
AT_LINE_ENDS = {**SPLIT, "behavior": "MergedWithPrevious", "pattern": {"String": "\n"}}
SEQUENCES = Path(__file__).with_name("sequences.json")
SAMPLE = "".join(map(chr, range(1, 1 << 9)))


class PreTokenizer(msgspec.Struct):
    """A pre-tokenizer or normalizer of any type; the fields are those of the types that ours can be."""

    type: str
    pretokenizers: list[PreTokenizer] = []
    add_prefix_space: bool = True
    use_regex: bool = True
    individual_digits: bool = False
    pattern: dict[str, str] | None = None
    behavior: str = "Removed"
    invert: bool = False


NO_STEPS = PreTokenizer("null")


def pre_tokenizer_of(pattern: str | None) -> dict[str, Any]:
    """What splits as a pattern does. Raises ValueError for a pattern that it cannot say.

    Some have other spellings, because not every engine loads their own text; Llama 3's matches what
    GPT-4's does.
    """
    if pattern == GPT2_PATTERN:
        return {**BYTE_LEVEL, "use_regex": True}
    known, steps = registry.patterns(), [BYTE_LEVEL]
    if pattern == known["line"]:
        steps.insert(0, AT_LINE_ENDS)
    elif pattern is not None:
        check_matches(pattern)
        spelling = known["llama3"] if pattern == known["gpt4"] else to_ruby(pattern)
        steps.insert(0, {**SPLIT, "pattern": {"Regex": spelling}})
    return {"type": "Sequence", "pretokenizers": steps}


class _File(msgspec.Struct):
    pre_tokenizer: PreTokenizer | None = None


def pattern_in_file(path: str) -> str | None:
    """The pattern of a tokenizer.json. Raises Refusal."""
    try:
        file: _File = read_json(readable(Path(path)).read_bytes(), _File)
        return pattern_of(file.pre_tokenizer)
    except (OSError, ValueError) as error:
        why = reason(error) if isinstance(error, OSError) else error
        raise Refusal(
            f"pattern={path}: {why}; pass another", UNMEASURED, {"pattern": path}
        ) from error


def pattern_of(pre_tokenizer: PreTokenizer | None) -> str | None:
    """What splits the text, as one pattern of ours; None if nothing does. Raises ValueError with
    what it cannot say.
    """
    pattern, prefix = pattern_and_prefix(pre_tokenizer)
    if prefix:
        raise ValueError("it puts a space before the text (add_prefix_space); ours never does")
    return pattern


def pattern_and_prefix(pre_tokenizer: PreTokenizer | None) -> tuple[str | None, bool]:
    """The pattern, and whether a space comes before a text that does not begin with one. Raises
    ValueError as `pattern_of`.
    """
    *steps, last = _steps(pre_tokenizer or NO_STEPS) or [NO_STEPS]
    if last.type != "ByteLevel":
        raise ValueError(f"its pre-tokenizer is {last.type}; the last one must be ByteLevel")
    if last.add_prefix_space and steps:
        raise ValueError("it puts a space before each piece (add_prefix_space); ours never does")

    patterns = list(map(_split, steps))
    if last.use_regex:
        patterns.append(GPT2_PATTERN)
    if len(patterns) > 1 and any(step.invert for step in steps):
        raise ValueError("it drops text between two of its steps (invert); ours keeps all text")
    return joined(patterns), last.add_prefix_space


def _steps(pre_tokenizer: PreTokenizer) -> list[PreTokenizer]:
    """The steps of sequences within each other, in order."""
    if pre_tokenizer.type != "Sequence":
        return [pre_tokenizer]
    return [step for part in pre_tokenizer.pretokenizers for step in _steps(part)]


def _split(step: PreTokenizer) -> str:
    if step == msgspec.convert(AT_LINE_ENDS, PreTokenizer):
        return str(registry.patterns()["line"])
    if step.type == "Digits":
        return r"\p{N}" if step.individual_digits else r"\p{N}+"
    if step.type != "Split" or step.pattern is None or "Regex" not in step.pattern:
        raise ValueError(f"its pre-tokenizer {step.type} is not a Split by a Regex")
    if (step.behavior, step.invert) not in LIKE_OURS:
        how = f"{step.behavior}, with invert {json.dumps(step.invert)}"
        raise ValueError(f"its Split is {how}; ours keeps every match as a pre-token")

    expression = from_ruby(step.pattern["Regex"])
    check_matches(expression)
    return expression


def compiled_pattern(pattern: str | None) -> regex.Pattern[str] | None:
    """A pattern as `regex` has it. Raises Refusal if it is not a regular expression."""
    if pattern is None:
        return None
    try:
        return regex.compile(pattern)
    except (regex.error, ValueError, RecursionError, OverflowError, MemoryError) as error:
        raise Refusal(f"pattern {pattern[:80]!r} is not a regular expression: {error}") from error


def check_matches(pattern: str) -> None:
    """Raises ValueError if nothing is matched where something else is matched next: Hugging Face's
    engine goes on behind that place.
    """
    compiled = compiled_pattern(pattern)
    spans = [match.span() for match in compiled.finditer(SAMPLE)] if compiled else []
    for (start, end), (following, _) in pairwise(spans):
        if start == end == following:
            raise ValueError(
                f"its pattern has an empty alternative before {SAMPLE[end]!r}, which tokenizers reads differently"
            )


# Several steps as one expression, by a table: numbers before GPT-2's pattern or Llama 3's, and
# DeepSeek V3's. In that one the last step is there twice: on kana and Chinese, and on pieces that
# end before one of these or a number.


def joined(patterns: list[str]) -> str | None:
    """One expression that splits any text as these do one after another; None for none. Raises
    ValueError if the sequence is unknown.
    """
    if len(patterns) < 2:
        return patterns[0] if patterns else None
    steps = [pattern.replace("\r", r"\r").replace("\n", r"\n") for pattern in patterns]
    expression: str | None = json.loads(SEQUENCES.read_bytes()).get("\n".join(steps))
    if expression is None:
        raise ValueError(
            f"it splits by {len(patterns)} patterns one after another; that is one expression only for numbers before "
            f"GPT-2's pattern or Llama 3's, and for DeepSeek V3's three, not for {patterns[0]!r} before {patterns[1]!r}"
        )
    return expression


# Two dialects of regular expressions: what of one means the same in the other

WORD = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}"
JOINERS, NUMBERS, HEXADECIMAL = "\u200c\u200d", "²³¹¼½¾", "0-9a-fA-F"


class Dialect(NamedTuple):
    """Who reads the rest differently, and how parts outside of sets and members of sets are spelled
    in the other dialect.
    """

    reader: str
    parts: Mapping[str, str]
    members: Mapping[str, str]


def with_negations(classes: Mapping[str, str]) -> dict[str, str]:
    r"""The members of classes such as \w, and of \W; a hyphen behind a class would begin a range."""
    members = {"-": r"\-"}
    for name, positive in classes.items():
        negated = name.replace("[:", "[:^") if name.startswith("[") else name.upper()
        members |= {name: positive, negated: f"[^{positive}]"}
    return members


FROM_RUBY = Dialect(
    "ours",
    parts={
        "$": "(?m:$)",
        "^": "(?m:^)",
        r"\Z": "$",
        r"\z": r"\Z",
        r"\A": r"\A",
        "(?m:": "(?s:",
        r"\w": f"[{WORD}{NUMBERS}]",
        r"\W": f"[^{WORD}{NUMBERS}]",
        r"\h": f"[{HEXADECIMAL}]",
        r"\H": f"[^{HEXADECIMAL}]",
    },
    members=with_negations(
        {
            r"\w": WORD,
            r"\h": HEXADECIMAL,
            "[:word:]": WORD,
            "[:alnum:]": r"\p{Alphabetic}\p{Nd}",
            "[:digit:]": r"\p{Nd}",
            "[:punct:]": r"\p{P}\p{S}",
        }
    ),
)
TO_RUBY = Dialect(
    "tokenizers",
    parts={
        "$": r"\Z",
        "^": r"\A",
        r"\Z": r"\z",
        r"\A": r"\A",
        "(?s:": "(?m:",
        "(?m:$)": "$",
        "(?m:^)": "^",
        r"\w": f"[{WORD}{JOINERS}]",
        r"\W": f"[^{WORD}{JOINERS}]",
    },
    members=with_negations(
        {
            r"\w": WORD + JOINERS,
            "[:word:]": WORD + JOINERS,
            "[:alnum:]": r"\p{Alphabetic}0-9",
            "[:digit:]": "0-9",
            "[:punct:]": r"[\p{P}\p{S}&&[^\p{Alphabetic}]]",
        }
    ),
)
OPERATORS = ("--", "||", "~~")
"""What joins two sets in version 1 of `regex`, and is literal in Oniguruma."""

ESCAPE = r"\\[pP]\{[^{}]*\}|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\."
POSIX = r"\[:\^?\w+:\]"
SET = rf"(?<set>\[\^?\]?(?:{ESCAPE}|{POSIX}|(?&set)|[^\]\\])*\])"
ONE = r"(?:\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[^a-zA-Z]|\\[nrtfva]|[^\\\]\[])"
MEMBER = regex.compile(rf"{POSIX}|{ONE}-{ONE}|{ESCAPE}|.", regex.S)
# Both find the same letters for these without regard to case, if no two are a ligature such as ß.
ANY_CASE = r"\(\?i:(?:(?!(?i:s[st]|f[fl]))[a-hj-zA-HJ-Z0-9' |]|\[[a-hj-zA-HJ-Z]+\])*\)"
GROUP = r"\((?:\?(?:<?[=!]|[^():=!]*?[:>)])?)?"
COUNTED_TWICE = r"\{[\d,]+\}\+|\{\d+\}\?"
PART = regex.compile(rf"{SET}|{ANY_CASE}|\(\?m:[$^]\)|{GROUP}|{COUNTED_TWICE}|{ESCAPE}|.", regex.S)
SAME_ESCAPE = (
    r"\\[dDsSnrtvfa]|\\[^a-zA-Z0-9]|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}"
    r"|\\[pP]\{\^?(?!(?i:word|xdigit|is\w+|in\w+)\})\w+\}"
)
SAME = regex.compile(rf"{ANY_CASE}|\((?:\?(?:<?[=!]|[:>]))?|{SAME_ESCAPE}|[^\\(\[]", regex.S)
SAME_MEMBER = regex.compile(rf"{POSIX}|{ONE}-{ONE}|{SAME_ESCAPE}|[^\\]", regex.S)
NESTED = regex.compile(r"(?<!\\)\[\^?\]?(?:\\.|[^\]\[\\])*?(?:&&|\[)")
"""A set with another in it, or what two have in common."""


def to_ruby(pattern: str) -> str:
    r"""The pattern as Oniguruma reads it. Raises ValueError for what it cannot say.

    >>> print(to_ruby(r"(?s:.+)$|[$^]\$|\w"))
    (?m:.+)\Z|[$^]\$|[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}‌‍]
    """
    expression = pattern.removeprefix("(?V1)")
    return _translated(expression, TO_RUBY, is_nested=expression != pattern)


def from_ruby(pattern: str) -> str:
    r"""A pattern of Oniguruma as `regex` reads it. Raises ValueError for what it cannot say.

    >>> print(from_ruby(r"(?m:.+)\z|(?i:'s|t)$|[\h]"))
    (?s:.+)\Z|(?i:'s|t)(?m:$)|[0-9a-fA-F]
    """
    expression = _translated(pattern, FROM_RUBY, is_nested=True)
    # Sets of sets, which Oniguruma always reads, are of version 1 in `regex`.
    return f"(?V1){expression}" if NESTED.search(expression) else expression


def _translated(pattern: str, dialect: Dialect, is_nested: bool) -> str:
    written = []
    for match in PART.finditer(pattern):
        part = match[0]
        if match["set"]:
            written.append(_set(part, dialect, is_nested))
        elif part in dialect.parts or SAME.fullmatch(part):
            written.append(dialect.parts.get(part, part))
        else:
            raise _differs(part, dialect)
    return "".join(written)


def _set(text: str, dialect: Dialect, is_nested: bool) -> str:
    for operator in OPERATORS if is_nested else (*OPERATORS, "&&"):
        if operator in text:
            raise _differs(f"{operator} in a set", dialect)

    members = []
    for member in MEMBER.findall(text[1:-1]):
        is_known = member in dialect.members or SAME_MEMBER.fullmatch(member)
        if not is_known or (member == "[" and not is_nested):
            raise _differs(f"{member} in a set", dialect)
        members.append(dialect.members.get(member, member))
    return f"[{''.join(members)}]"


def _differs(what: str, dialect: Dialect) -> ValueError:
    return ValueError(f"its pattern has {what}, which {dialect.reader} reads differently")
