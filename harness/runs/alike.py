"""Whether many records of one form are sound, told key by key for all of them at once and not one by one.

What is said here is never more than that all are: where one may not be, each is looked at by itself (record_keys.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

from harness.proof import WRONG
from harness.runs.record_keys import (
    CURVE,
    NUMBERS,
    ROUNDING_SECONDS,
    SECONDS,
    are_plain_points,
    are_small,
    needed_within,
    tests_within,
)

Columns = Mapping[str, Sequence[Any]]


def columns_of(mappings: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The values of mappings that all have the same keys, by their keys."""
    return {name: list(map(itemgetter(name), mappings)) for name in mappings[0]}


def all_sound(records: Sequence[Mapping[str, Any]], fresh: Columns) -> bool:
    """Whether nothing is wrong with any of the records, of which `fresh`, by keys, is not known yet."""
    return (
        all(record["status"] == "ok" and (record["variant"] or record["cell"] == "count") for record in records)
        and not any(record.get("extrapolated") for record in records)
        and not any((record.get("identity") or {}).get("kind") == WRONG for record in records)
        and _all_within("", fresh)
        and ("seconds" not in fresh or _all_add_up(fresh["seconds"]))
    )


def _all_within(outer: str, columns: Columns) -> bool:
    tests = tests_within(outer)
    return columns.keys() >= needed_within(outer) and all(
        _all_fit(outer, name, values) for name, values in columns.items() if name in tests
    )


def _all_fit(outer: str, name: str, values: Sequence[Any]) -> bool:
    """Whether all values of one key fit it."""
    test, kinds, null = tests_within(outer)[name]
    types = set(map(type, values))
    if type(None) in types:
        if not null:
            return False
        values = [value for value in values if value is not None]
        types.discard(type(None))
    if not values:
        return True
    if types <= NUMBERS:
        return (types.issubset(kinds) and are_small(values)) or all(map(test, values))
    if types == {dict}:
        values = list({id(value): value for value in values}.values())
        if outer or not (within := tests_within(name)):
            return all(map(test, values))
        names = values[0].keys()
        if not all(map(names.__eq__, map(dict.keys, values))):
            return False
        # What is said of every key of seconds says that they are seconds.
        told = test is SECONDS.fits and names <= within.keys()
        return (told or all(map(test, values))) and _all_within(name, columns_of(values))
    if types == {list}:
        plain = test is CURVE.fits and are_plain_points(list(chain.from_iterable(values)))
        return plain or all(map(test, values))
    return types <= {str, bool} and all(map(test, set(values)))


def _all_add_up(seconds: Sequence[Mapping[str, Any]]) -> bool:
    """Whether each total is certainly the sum of its phases."""
    if not seconds[0].keys() <= tests_within("seconds").keys():
        return False
    return all(
        (total := each.get("total")) is not None
        and abs(sum(filter(None, each.values())) - 2 * total) < ROUNDING_SECONDS / 2
        for each in seconds
    )
