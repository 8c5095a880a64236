"""The machine and the software a record was made with; what cannot be known is recorded as unavailable.

No environment variables but the hash seed, no host name and no path go into a record. `host` is a digest of what makes
two machines comparable: processor, cores, memory, kernel.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from harness.builds import builds
from harness.machine import UNAVAILABLE, machine

# What the project's own metadata names, and what those bring with them that counts, composes or computes.
FURTHER_PACKAGES = ("Cython", "omegaconf", "antlr4-python3-runtime")
CHECKOUT = Path(__file__).resolve().parent.parent
# A change in any of these is a change of what is measured.
MEASURED = ("variants", "harness", "conf", "pyproject.toml")


def environment() -> dict[str, Any]:
    """Everything about this machine and software that a comparison may want to know."""
    return {
        **machine(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "python_compiler": platform.python_compiler(),
        "python_flags": python_flags(),
        "python_build": python_build(),
        "native": builds(CHECKOUT / "variants"),
        "hash_seed": hash_seed(),
        "packages": packages(),
        **checkout_state(),
    }


def host(known: dict[str, Any]) -> str:
    """A short digest: equal for two records that were made on machines of one kind."""
    parts = [known[name] for name in ("cpu", "cores", "cores_usable", "memory_bytes", "kernel", "architecture")]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:8]


def python_flags() -> str:
    """What Python itself was configured with, places left out."""
    return without_places((sysconfig.get_config_var("CONFIG_ARGS") or "").replace("'", ""))


def python_build() -> dict[str, Any]:
    """How Python itself was compiled: optimised by profile and at link time or not, for debugging, without its lock."""
    configured = sysconfig.get_config_var("CONFIG_ARGS") or ""
    return {
        "cflags": without_places(sysconfig.get_config_var("CFLAGS") or "") or UNAVAILABLE,
        "optimized": "--enable-optimizations" in configured,
        "lto": bool(sysconfig.get_config_var("LTOFLAGS")) or "--with-lto" in configured,
        "debug": bool(sysconfig.get_config_var("Py_DEBUG")),
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    }


def without_places(flags: str) -> str:
    """
    >>> without_places("-O3  -I/somewhere/include -Wall")
    '-O3 -Wall'
    """
    return " ".join(flag for flag in flags.split() if "/" not in flag)


def hash_seed() -> str:
    """What the hashes of texts begin with: random, or the number that PYTHONHASHSEED fixes for every process."""
    said = os.environ.get("PYTHONHASHSEED", "")
    return said if said.isdigit() and not sys.flags.ignore_environment else "random"


def packages() -> dict[str, str]:
    """The versions of what the project is declared to need and of outside trainers; of what is absent, that it is."""
    return {name: version(name) for name in sorted({*declared(), *FURTHER_PACKAGES}, key=str.casefold)}


def declared() -> list[str]:
    """The names of the project's own requirements, of its extras only the one with outside trainers."""
    try:
        required = importlib.metadata.requires("bpe-harness") or []
    except importlib.metadata.PackageNotFoundError:
        required = ["regex", "hydra-core", "numpy", "pandas"]
    plain = [line for line in required if "extra ==" not in line or re.search("""extra == ['"]peers['"]""", line)]
    return [name[0] for line in plain if (name := re.match(r"[\w.-]+", line))]


def version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return UNAVAILABLE


def checkout_state() -> dict[str, Any]:
    """The commit the code is at and whether it was changed since; unavailable outside a checkout."""
    try:
        if not os.path.samefile(git("rev-parse", "--show-toplevel"), CHECKOUT):  # noqa: PTH121
            return {"commit": UNAVAILABLE, "dirty": UNAVAILABLE}  # installed somewhere inside another project's
        commit = git("rev-parse", "--short=12", "HEAD")
        return {"commit": commit, "dirty": bool(git("status", "--porcelain", "--", *MEASURED))}
    except (OSError, subprocess.CalledProcessError):
        return {"commit": UNAVAILABLE, "dirty": UNAVAILABLE}


def git(*arguments: str) -> str:
    command = ["git", "-C", str(CHECKOUT), *arguments]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
