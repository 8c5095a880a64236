"""Whether a trainer that was named by its target is there: looked for and not run, before anything else is done."""

from __future__ import annotations

import contextlib
import importlib.util
import re
from collections.abc import Sequence
from importlib.machinery import SOURCE_SUFFIXES, ModuleSpec
from pathlib import Path

from harness.common.registry import VariantCard, not_importable
from harness.gate.sides import Side, package_of
from harness.measure.source_digest import located

MADE_OTHERWISE = re.compile(r"import +\*|__getattr__|globals\(|setattr\(|exec\(")
"""By which a module has names that do not stand in it."""


def refuse_mistyped(cards: Sequence[VariantCard], side: Side) -> None:
    """Raise Refusal for the first of those named by a target of which a side has no module, or no such function."""
    for card in cards:
        if card.name == card.target and (missing := what_is_missing(card.target, side)):
            raise not_importable(card.target, missing)


def what_is_missing(target: str, side: Side) -> str | None:
    """What a target names that is certainly not there; None where only an import could tell."""
    module, _, path = target.partition(":")
    found = module_of(module, side)
    if found is None:
        return f"there is no module {module}"
    name = path.partition(".")[0]
    if found.origin is None or not found.origin.endswith(tuple(SOURCE_SUFFIXES)):
        return None
    source = Path(found.origin).read_text(errors="replace")
    if re.search(rf"\b{re.escape(name)}\b", source) or MADE_OTHERWISE.search(source):
        return None
    return f"{module} has no {name}"


def module_of(module: str, side: Side) -> ModuleSpec | None:
    """Where a side has a module, or where this process would find it: by a finder that an installed package brought."""
    found = located(module, tuple(side.places), {})
    if found is None and side.interpreter is None:
        package = package_of(module)
        with contextlib.suppress(ImportError, ValueError):
            found = located(module, (), {package: importlib.util.find_spec(package)})
    return found
