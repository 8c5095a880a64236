"""Your own trainers and counters, named `package.module:function`: checks of such a name that import
nothing; and the answer to a name that does not exist.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from harness.common.errors import Refusal
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
    name = re.escape(target.partition(":")[2].partition(".")[0])
    text = "" if source.suffix != ".py" else source.read_text(errors="replace")
    return source.suffix != ".py" or re.search(rf"\b{name}\b|{DYNAMIC}", text) is not None


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
