"""The snapshot: the counts of work that every variant is known to do on the gate's corpora, committed with the code.

Counts are bound to a phase where the trainer tells it: `update/pair_updates`. They are equal on every machine, so any
difference is a change of the algorithm, of its parameters or of a corpus, and is acknowledged by writing it anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import write_whole
from harness.common.units import count_text

SCHEMA = 1
Tallies = dict[str, int]


@dataclass
class Snapshot:
    """Counts by variant and corpus, and what each corpus was."""

    corpora: dict[str, dict[str, Any]] = field(default_factory=dict)
    counters: dict[str, dict[str, Tallies]] = field(default_factory=dict)

    def of(self, variant: str, corpus: str) -> Tallies | None:
        return self.counters.get(variant, {}).get(corpus)


def read_snapshot(path: Path) -> Snapshot | None:
    """The snapshot in a file; None if there is no file. Raises Refusal if it is none."""
    try:
        content = json.loads(path.read_text())
        if content.get("schema") != SCHEMA:
            raise ValueError(f"not of schema {SCHEMA}")
        return Snapshot(checked(content["corpora"]), checked(content["counters"]))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refusal(f"cannot read {path} ({error.strerror})", UNMEASURED) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refusal(f"{path} is no snapshot of counts ({error}); --accept writes a new one", UNMEASURED) from error


def checked(content: Any) -> dict[str, Any]:
    if not isinstance(content, dict) or not all(isinstance(part, dict) for part in content.values()):
        raise ValueError("not a mapping of mappings")
    return content


def write_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write it whole or not at all, one line for each variant and corpus, so that a change is a line of a diff."""
    lines = ["{", f' "schema": {SCHEMA},', ' "corpora": {', _entries(snapshot.corpora, "  "), " },", ' "counters": {']
    variants = [
        f"  {json.dumps(name)}: {{\n{_entries(snapshot.counters[name], '   ')}\n  }}"
        for name in sorted(snapshot.counters)
    ]
    content = "\n".join([*lines, ",\n".join(variants), " }", "}"]) + "\n"
    json.loads(content)
    write_whole(path, content.encode(), "--set work.counters=FILE names another place", UNMEASURED)


def _entries(entries: Mapping[str, Mapping[str, Any]], indent: str) -> str:
    return ",\n".join(
        f"{indent}{json.dumps(name)}: {json.dumps(entries[name], sort_keys=True)}" for name in sorted(entries)
    )


def accept(
    before: Snapshot | None,
    corpora: Mapping[str, dict[str, Any]],
    measured: Mapping[tuple[str, str], Tallies],
    gone: set[str],
) -> Snapshot:
    """The snapshot with what was measured in place of what it said of that, and without what is `gone`."""
    known = before or Snapshot()
    counters = {name: dict(entries) for name, entries in known.counters.items() if name not in gone}
    for (variant, corpus), tallies in measured.items():
        if tallies:
            counters.setdefault(variant, {})[corpus] = tallies
        elif variant in counters:
            counters[variant].pop(corpus, None)
    counters = {name: entries for name, entries in counters.items() if entries}
    used = {corpus for entries in counters.values() for corpus in entries}
    return Snapshot({name: said for name, said in {**known.corpora, **corpora}.items() if name in used}, counters)


def changes(before: Snapshot, after: Snapshot) -> list[str]:
    """What is different, a line for each tally of each variant on each corpus."""
    lines = []
    for variant in sorted({*before.counters, *after.counters}):
        if variant not in after.counters:
            lines.append(f"{variant}: gone")
            continue
        if variant not in before.counters:
            lines.append(f"{variant}: new, {', '.join(sorted(after.counters[variant]))}")
            continue
        for corpus in sorted({*before.counters[variant], *after.counters[variant]}):
            old, new = before.of(variant, corpus) or {}, after.of(variant, corpus) or {}
            for tally in sorted({*old, *new}):
                if old.get(tally) != new.get(tally):
                    lines.append(f"{variant} on {corpus}: {tally} {change(old.get(tally), new.get(tally))}")
    return lines


def change(before: int | None, after: int | None) -> str:
    """
    >>> change(1000, 1100), change(None, 5), change(0, 5)
    ('1,000 -> 1,100 (+10.0 %)', 'none -> 5', '0 -> 5')
    """
    sides = " -> ".join("none" if number is None else count_text(number) for number in (before, after))
    return f"{sides} ({100 * (after / before - 1):+.1f} %)" if before and after is not None else sides
