"""What a user gives: names of trainers and counters, `package.module:function`, with checks that
import nothing; lists, numbers, sizes; JSON that somebody else wrote; and the answer to a name that
does not exist.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import re
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from decimal import Decimal
from operator import index
from pathlib import Path
from typing import Any

import msgspec

from harness.common.errors import Refusal, wrong_value
from harness.common.units import did_you_mean

# an unknown name is answered with at most so many existing ones, else with the closest
MOST_NAMES = 50
DYNAMIC = r"import \*|__getattr__|globals\(|setattr\("
TOP_LEVEL = re.compile(r"^(?:(?:async )?def|class|from|\w+ *=).*", re.MULTILINE)
"""The lines of a module that name its functions, its own and others'."""


def check_target(target: str) -> None:
    """Raise Refusal for a module that does not exist, or a function whose name its file lacks;
    nothing is imported.
    """
    module, _, function = target.partition(":")
    if module.endswith(".py") and (meant := own_target(target)):
        raise Refusal(f"{target!r} names a file, not a module; did you mean {meant}?")
    package, folders = module.partition(".")[0], [str(Path.cwd()), *sys.path]
    if package in sys.modules:
        return
    spec = importlib.machinery.PathFinder.find_spec(package, folders)
    spec = spec or importlib.util.find_spec(package)  # an editable install has a finder of its own
    if spec is None:
        raise not_importable(target, "no such module in this folder or environment")

    if package != module or spec.origin is None:
        return
    source = Path(spec.origin)
    if not may_define(source, target):
        names = re.findall(r"\w+", " ".join(TOP_LEVEL.findall(source.read_text(errors="replace"))))
        meant = did_you_mean(function, names, f"{module}:")
        raise Refusal(f"{target!r} is not in {source};{meant or ' name a function of it'}")


def may_define(source: Path, target: str) -> bool:
    """Whether a file may have the function of a target: it spells the name, or makes names that it
    does not spell.
    """
    if source.suffix != ".py":
        return True
    name = re.escape(target.partition(":")[2].partition(".")[0])
    return re.search(rf"\b{name}\b|{DYNAMIC}", source.read_text(errors="replace")) is not None


def own_target(name: str) -> str | None:
    """The target in a file of the current folder that a name seems to mean, as `mine:train` for
    `mine`, `mine.py` and `mine.py:train`; None if there is no such file.
    """
    module, _, function = name.partition(":")
    module = module.removesuffix(".py")
    is_ours = module.isidentifier() and Path(f"{module}.py").is_file()
    return f"{module}:{function or 'train'}" if is_ours else None


def not_importable(target: str, reason: str) -> Refusal:
    """The answer to a target that cannot be imported, with the most similar name if its module
    can.
    """
    module, _, function = target.partition(":")
    meant = ""
    if module in sys.modules:
        meant = did_you_mean(function, vars(sys.modules[module]), f"{module}:")
    return Refusal(
        f"cannot import {target!r} ({reason});{meant} a target is written package.module:function"
    )


def unknown_text(kind: str, name: str, existing: Iterable[str]) -> str:
    """The answer to a name that does not exist: the closest one, then all there are, unless these
    fill the screen.
    """
    existing = list(existing)
    meant = did_you_mean(name, existing)
    if kind in ("variant", "target") and (target := own_target(name)):
        meant = f" did you mean {target}?"
    if len(existing) > MOST_NAMES:
        return f"unknown {kind} {name!r};{meant} python -m harness --help all has all {len(existing)} names"
    return f"unknown {kind} {name!r};{meant} there are: {', '.join(existing) or 'none'}"


# Values


# One of several: in quotes of either kind, or without a comma and not starting with a quote.
LISTED = re.compile(r"""\s*(?:'([^']*)'|"([^"]*)"|((?!['"\s])[^,]*?|))\s*(,|\Z)""")


def split_list(value: str, name: str) -> list[str]:
    """The texts in `[a,b]`, `['a,b','c']` or plain `a`; `name` is for the Refusal of an invalid
    list.
    """
    if not (value.startswith("[") and value.endswith("]")):
        return [value]
    inner = value[1:-1]
    if not inner.strip():
        return []

    texts: list[str] = []
    position, more = 0, ","
    while more:
        match = LISTED.match(inner, position)
        if match is None or (match[3] or "").count("[") != (match[3] or "").count("]"):
            advice = "write [A,B], and quote texts with a comma, a quote or a single bracket"
            raise Refusal(f"cannot split {name}={value}; {advice}")
        texts.append(next(text for text in match.groups() if text is not None))
        position, more = match.end(), match[4]
    return texts


def special_texts(special_tokens: Iterable[str]) -> tuple[str, ...]:
    """The special tokens of a list. Raises TypeError for anything without an order, such as a str
    or a set, or for a token that is not a str, and Refusal for a token that is empty, repeated, or
    not UTF-8.
    """
    is_list = isinstance(special_tokens, Iterable)
    if not is_list or isinstance(special_tokens, str | bytes | Mapping | Set):
        advice = "pass a list, such as ['<s>']"
        raise TypeError(f"special tokens are {special_tokens!r}, not a list; {advice}")
    texts = tuple(special_tokens)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"special token {text!r} is {type(text).__name__}, not str")
    if not all(texts) or len(set(texts)) < len(texts):
        raise Refusal(f"special tokens {[*texts]} contain an empty or repeated one; pass each once")
    if any("\ud800" <= character <= "\udfff" for text in texts for character in text):
        raise Refusal(f"special tokens {[*texts]} contain one that is not UTF-8; leave it out")
    return texts


BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_json(content: bytes, kind: Any) -> Any:
    """Decode JSON as a type or struct. Raises ValueError, which names the field that does not fit."""
    try:
        return msgspec.json.decode(content.removeprefix(BYTE_ORDER_MARK), type=kind)
    except msgspec.ValidationError as error:
        what, key = wrong_value(error)
        raise ValueError(f"{what} (in {key})" if key else what) from error
    except RecursionError as error:
        raise ValueError("its JSON is nested too deeply") from error


# Checks of a user's values


def whole_number(name: str, value: int) -> int:
    """A number of NumPy's as well. Raises TypeError for what is not one."""
    if not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {type(value).__name__}, not int")
    return index(value)


def at_least(name: str, value: int, least: int = 1) -> None:
    if whole_number(name, value) < least:
        what = f"{name}={value} is not possible; it is a number of {least} or more"
        raise Refusal(what, settings={name: value})


def one_of(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise Refusal(unknown_text(name, str(value), allowed))


SIZE = re.compile(
    r"\s*(\d[\d_]{0,30}(?:\.\d+)?(?:e\d{1,2})?)\s*(?:([kmgt])(i(?=b))?)?b?\s*", re.IGNORECASE
)


def parse_number(text: str) -> int | None:
    """A whole number as people write it, or None.

    >>> [parse_number(text) for text in ("10k", "1e4", "32_000", "64MB", "1.5 GiB", "half")]
    [10000, 10000, 32000, 64000000, 1610612736, None]
    """
    match = SIZE.fullmatch(text)
    if match is None:
        return None
    number = Decimal(match[1]) * (1024 if match[3] else 1000) ** " KMGT".index(
        (match[2] or " ").upper()
    )
    return int(number) if number == int(number) else None


def parse_value(text: str, name: str) -> Any:
    """A number, a truth value, null, a list or a text, as YAML writes them."""
    try:
        return msgspec.yaml.decode(text.encode())
    except (ValueError, TypeError, RecursionError) as error:
        raise Refusal(f"{name}={text[:80]} is not a value; quote it") from error


def parse_bytes(text: str | int, name: str, smallest: int = 1) -> int:
    """A size in bytes, at least `smallest`. Raises Refusal, which calls it `name`."""
    size = parse_number(str(text))
    if size is None:
        raise Refusal(
            f"{name}={text} is not a size; write a number with or without a unit, as 64MB, 2GB or 1GiB"
        )
    if size < smallest:
        raise Refusal(f"{name}={text} is nothing; write a size of at least one byte")
    return size


def parse_vocab_size(text: str) -> int:
    """A number such as 32k, 1e4 or 50_257."""
    size = parse_number(text)
    if size is None:
        raise Refusal(f"--vocab-size {text!r} is not a number; write it like 32k or 32000")
    return size


def first_difference(ours: Sequence[object], theirs: Sequence[object]) -> int:
    """How many items are equal before the first difference."""
    for place, (mine, other) in enumerate(zip(ours, theirs, strict=False)):
        if mine != other:
            return place
    return min(len(ours), len(theirs))
