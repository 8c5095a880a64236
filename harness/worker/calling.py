"""Calls of counters and trainers: the target by its name, its arguments, its meter, the form of its
result.

Standard library only, and Python 3.9's: it runs in the measured process.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import traceback
from array import array
from collections.abc import Mapping
from itertools import chain
from typing import Any, Callable, Optional

from variants.contract import GREATEST_BYTES, PHASES, Merges, Meter, TieBreak, WordCounts

LONGEST_SHOWN = 200
HARNESS = __file__.rpartition(os.sep)[0].rpartition(os.sep)[0] + os.sep
IMPORTING = importlib.__file__.rpartition(os.sep)[0]
OWN = "own"  # in the place of a tie-break: each trainer breaks ties as it does by default


def resolve(target: str) -> Callable[..., Any]:
    """Return the function that `package.module:function` names.

    >>> resolve("variants.contract:Meter.lap").__name__
    'lap'
    """
    module, _, path = target.partition(":")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found  # type: ignore[no-any-return]


Parameters = Optional[Mapping[str, inspect.Parameter]]
"""The parameters of a function by name; None for compiled code that does not show its signature."""


def parameters_of(function: Callable[..., Any]) -> Parameters:
    """Return what a function's signature shows; code of the function's own may run."""
    try:
        return inspect.signature(function).parameters
    except ValueError:
        return None


def arguments_for(
    parameters: Parameters,
    leading: list[Any],
    meter: Meter,
    offered: dict[str, Any],
    params: dict[str, Any],
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a function, by position and by keyword: `leading` and `params`, the
    rest if it takes it.

    The meter goes by its name, or behind `leading` if a function takes any number of arguments. A
    function of `**keywords` gets what every trainer takes, but `threads` only goes to one that
    names it. Compiled code that does not show its signature is taken to keep the contract and
    nothing beyond it.

    >>> offered = {"min_count": 1, "threads": 2}
    >>> plain = parameters_of(lambda words, num_merges, *, min_count: [])
    >>> arguments_for(plain, [{}, 5], Meter(), offered, {})
    ([{}, 5], {'min_count': 1})
    >>> arguments_for(parameters_of(min), [{}, 5], Meter(), offered, {"key": 3})[1]
    {'min_count': 1, 'key': 3}
    """
    is_hidden = parameters is None
    named = parameters or {}
    kinds = {parameter.kind for parameter in named.values()}
    takes_any = is_hidden or inspect.Parameter.VAR_KEYWORD in kinds
    keywords = {
        name: value
        for name, value in offered.items()
        if name in named or (takes_any and name != "threads")
    }
    keywords.update(params)

    if is_hidden or inspect.Parameter.VAR_POSITIONAL in kinds:
        return [*leading, meter], keywords
    if takes_any or "meter" in named:
        keywords["meter"] = meter
    return leading, keywords


def reads_corpus(parameters: Parameters) -> bool:
    """Return whether a trainer reads the text itself: its first parameters are `corpus`,
    `num_merges`, or its first is `input_path`.

    >>> reads_corpus(parameters_of(lambda corpus, num_merges: [])), reads_corpus(None)
    (True, False)
    """
    names = list(parameters or [])
    return names[:2] == ["corpus", "num_merges"] or takes_path(parameters)


def takes_path(parameters: Parameters) -> bool:
    """Return whether a trainer is called as that of CS336: with a path, a size of the vocabulary
    and special tokens.

    >>> takes_path(parameters_of(lambda input_path, vocab_size, special_tokens: ({}, [])))
    True
    """
    return list(parameters or [])[:1] == ["input_path"]


def without_variadic(parameters: Parameters) -> dict[str, inspect.Parameter]:
    """Return the parameters that a function names, so without *args and **kwargs."""
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {
        name: parameter
        for name, parameter in (parameters or {}).items()
        if parameter.kind not in variadic
    }


def own_tie_break(parameters: Parameters) -> str | None:
    """Return the tie-break of a trainer's default; None if that is not one of the contract's.

    >>> own_tie_break(parameters_of(lambda words, tie_break=TieBreak.RAW_BYTES: []))
    'raw_bytes'
    >>> own_tie_break(parameters_of(lambda words: []))
    'greatest_bytes'
    """
    keyword = (parameters or {}).get("tie_break")
    default = (
        GREATEST_BYTES if keyword is None or keyword.default is keyword.empty else keyword.default
    )
    return default.value if isinstance(default, TieBreak) else None


def of_module(function: Callable[..., Any], name: str) -> Callable[..., Any] | None:
    """Return the function of that name in another function's module; None if it has none."""
    hook = getattr(sys.modules.get(getattr(function, "__module__", "")), name, None)
    return hook if callable(hook) else None


def where_raised(error: BaseException) -> str:
    """Return where in the target's own code an error was raised, without folders; empty if not in
    its code.
    """
    frames = own_frames(error)
    if not frames:
        return ""
    frame = frames[-1]
    return f" ({frame.filename.rpartition(os.sep)[2]}:{frame.lineno}, in {frame.name})"


def own_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the frames of an error that are neither the harness's nor Python's importing."""
    frames = traceback.extract_tb(error.__traceback__)
    return [frame for frame in frames if not frame.filename.startswith(("<", HARNESS, IMPORTING))]


def expect_known_phases(seconds: dict[str, float]) -> None:
    """Raise ValueError if a trainer or a counter reports a phase that does not exist."""
    unknown = [phase for phase in seconds if phase not in PHASES]
    if unknown:
        raise ValueError(f"it reports the phase {unknown[0]!r}; phases are {', '.join(PHASES)}")


def expect_merges(merges: Any) -> None:
    """Raise ValueError unless a trainer has returned Merges, or a plain list of plain pairs of
    plain bytes.

    What makes its merges when it is read would do its work after the clock.
    """
    if type(merges) is Merges:
        if type(merges.ids) is not array or merges.ids.typecode != "I" or len(merges.ids) % 2:
            raise ValueError("the ids of its Merges are not pairs in an array of type I")
        return
    if type(merges) is not list:
        raise ValueError(f"it returned {type(merges).__name__}, not a list of merges")
    # All at once if everything is right: this is done after every run.
    if (
        set(map(type, merges)) <= {tuple, list}
        and set(map(len, merges)) <= {2}
        and set(map(type, chain.from_iterable(merges))) <= {bytes}
    ):
        return
    for number, merge in enumerate(merges, 1):
        if type(merge) not in (tuple, list) or list(map(type, merge)) != [bytes, bytes]:
            what = f"{type(merge).__name__} {shortened(repr(merge))}"
            raise ValueError(
                f"merge {number} is {what}; only a plain tuple of two plain bytes is a merge"
            )


def vocabulary_and_merges(returned: Any) -> tuple[dict[Any, Any], Any]:
    """Return both halves of what a trainer of CS336 has returned. Raises ValueError for anything
    else.
    """
    if type(returned) is not tuple or len(returned) != 2 or type(returned[0]) is not dict:
        raise ValueError(f"it returned {type(returned).__name__}, not the tuple (vocab, merges)")
    return returned


def expect_vocabulary(vocab: dict[Any, Any], merges: Any, special_tokens: list[str]) -> None:
    """Raise ValueError unless a vocabulary numbers the bytes, the special tokens and what the
    merges make, in any order.
    """
    tokens = {bytes((byte,)) for byte in range(256)}
    tokens.update(token.encode() for token in special_tokens)
    tokens.update(left + right for left, right in merges)
    size = 256 + len(special_tokens) + len(merges)

    if set(vocab) != set(range(size)):
        raise ValueError(f"its vocab has other ids than 0 to {size - 1}")
    missing = tokens.difference(vocab.values())
    if missing:
        raise ValueError(f"its vocab lacks the token {shortened(repr(min(missing)))}")


def expect_word_counts(word_counts: Any) -> None:
    """Raise ValueError unless a counter has returned word counts, their columns there and not yet
    to be made.
    """
    if type(word_counts) is not WordCounts:
        raise ValueError(f"it returned {type(word_counts).__name__}, not WordCounts")
    for column in (word_counts.data, word_counts.offsets, word_counts.counts):
        if type(column) is not memoryview:
            raise ValueError(
                f"a column of its word counts is {type(column).__name__}, not memoryview"
            )


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


class StoppableMeter(Meter):
    """A meter that can stop a native trainer: `has_polled` once it was called, `refused` once it
    answered stop.
    """

    stopping = False
    has_polled = False
    refused = False

    def progress(self, done: int) -> bool:
        self.has_polled = True
        self.refused = self.refused or self.stopping
        super().progress(int(done))
        return not self.stopping
