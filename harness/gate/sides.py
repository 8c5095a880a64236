"""The two sides of a comparison: an interpreter, and the folder from which it imports what is compared.

Both sides run the same measuring half of this package; what differs is the package that the trainer is in. Each side
has a folder with a link to that package, which stands first wherever Python looks, so that no copy elsewhere is taken
for it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.common.errors import UNMEASURED, Refusal
from harness.common.registry import VariantCard
from harness.measure import source_digest
from harness.measure.process import PACKAGES

OURS = ("harness", "variants")
"""What a measured process needs whatever it runs: the worker's half, and the contract."""
WHERE = """
import importlib.util, json, sys
spec = importlib.util.find_spec(sys.argv[1])
places = list(spec.submodule_search_locations or []) if spec else []
print(json.dumps({"folder": places[0] if places else None, "file": spec.origin if spec else None}))
"""


@dataclass(frozen=True)
class Side:
    """`described` is for people and for the evidence; `beside` are folders with what the packages in `place` import."""

    name: str
    described: str
    interpreter: str | None
    place: Path
    beside: tuple[Path, ...] = ()
    frozen: bool = False
    """Nothing may be written in it, so that Python keeps nothing that it compiles there."""

    @property
    def places(self) -> list[str]:
        return [str(self.place), *map(str, self.beside)]

    def untouchable(self) -> list[Path]:
        """The folders of a frozen side that have to stay as they are; what measures is not its own."""
        packages = [each.resolve() for each in self.place.iterdir()] if self.frozen else []
        above = [Path(PACKAGES), *(each.resolve() for each in self.beside)]
        own = [package for package in packages if not set(above) & set(package.parents)]
        return [self.place, *self.beside, *own] if self.frozen else []

    def digest(self, variant: VariantCard) -> str | None:
        """The digest of the code behind a variant on this side; None where it cannot be read."""
        return source_digest.digest_at(variant.target, variant.params, tuple(self.places))


def linked_side(
    name: str,
    described: str,
    interpreter: str | None,
    folder: Path,
    links: dict[str, Path],
    beside: tuple[Path, ...] = (),
) -> Side:
    """A side whose place holds these packages, and ours where they are not among them."""
    place = folder / name
    place.mkdir(parents=True)
    everything = {package: Path(PACKAGES, package) for package in OURS} | links
    for package, lies in everything.items():
        suffix = "" if lies.is_dir() else "".join(lies.suffixes)
        (place / f"{package}{suffix}").symlink_to(lies)
    return Side(name, described, interpreter, place, beside)


def package_of(target: str) -> str:
    """
    >>> package_of("my_package.my_module:train")
    'my_package'
    """
    return target.partition(":")[0].partition(".")[0]


def here(package: str) -> Path | None:
    """Where a top-level package or module lies for who works in the current folder; None if it is nowhere."""
    found = source_digest.located(package, (os.getcwd(), *sys.path, PACKAGES), {})  # noqa: PTH109
    if found is None:
        return None
    folders = list(found.submodule_search_locations or [])
    return Path(folders[0] if folders else str(found.origin)).resolve()


def working_side(name: str, packages: set[str], folder: Path) -> Side:
    """What is imported here and now."""
    links = {package: lies for package in sorted(packages) if (lies := here(package)) is not None}
    beside = tuple(dict.fromkeys(lies.parent for lies in links.values()))
    return linked_side(name, "the working tree", None, folder, links, beside)


def installed_side(name: str, interpreter: str, packages: set[str], folder: Path) -> Side:
    """What an environment has installed, asked of its own interpreter. Raises Refusal if it lacks a package."""
    links = {}
    for package in sorted(packages):
        lies = installed(interpreter, package)
        if lies is None:
            raise Refusal(f"{interpreter} has no package {package}; install it there: {interpreter} -m pip install ...")
        links[package] = lies
    return linked_side(name, f"the environment of {Path(interpreter).name}", interpreter, folder, links)


def installed(interpreter: str, package: str) -> Path | None:
    """Where a package is for an interpreter that looks nowhere but into its own environment."""
    command = [interpreter, "-I", "-c", WHERE, package]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
        found: dict[str, Any] = json.loads(answer.stdout)
    except OSError as error:
        raise Refusal(f"cannot start {interpreter} ({error.strerror}); it is the Python of an environment") from error
    except (subprocess.CalledProcessError, ValueError) as error:
        raise Refusal(f"{interpreter} cannot say where {package} is ({error})", UNMEASURED) from error
    lies = found["folder"] or found["file"]
    return Path(lies) if lies else None
