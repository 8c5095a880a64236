"""Your own trainers and counters, named `package.module:function`: checks of such a name that import
nothing.
"""

from __future__ import annotations

import importlib.machinery
import re
import sys
from pathlib import Path

from harness.common.errors import Refusal
from harness.common.units import did_you_mean


def check_target(target: str) -> None:
    """Raise Refusal for a module that does not exist, or a function whose name its file lacks;
    nothing is imported.
    """
    module, _, function = target.partition(":")
    package, places = module.partition(".")[0], [str(Path.cwd()), *sys.path]
    if package in sys.modules:
        return
    spec = importlib.machinery.PathFinder.find_spec(package, places)
    if spec is None:
        raise not_importable(target, "no such module in this folder or environment")

    if package != module or not (spec.origin or "").endswith(".py"):
        return
    source = Path(spec.origin or "").read_text(errors="replace")
    if not re.search(rf"\b{re.escape(function)}\b|import \*|__getattr__", source):
        names = re.findall(r"^(?:def|class) (\w+)|^(\w+) *=", source, re.MULTILINE)
        meant = did_you_mean(function, map("".join, names), f"{module}:")
        raise Refusal(f"{target!r} is not in {spec.origin};{meant or ' name a function of it'}")


def not_importable(target: str, reason: str) -> Refusal:
    """The answer to a target that cannot be imported, with the most similar name if its module
    can.
    """
    module, _, function = target.partition(":")
    meant = (
        did_you_mean(function, vars(sys.modules[module]), f"{module}:")
        if module in sys.modules
        else ""
    )
    return Refusal(
        f"cannot import {target!r} ({reason});{meant} a target is written package.module:function"
    )
