"""python -m harness.new_variant: a new stage in this checkout, its file, its card and its test, ready to be edited.

    python -m harness.new_variant my_stage --about "naive that drops words that have become one token"

The stage begins as the definition under another name, so it conforms from the first moment, and every edit after that
can be judged by `python -m harness.conformance NAME`.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import keyword
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.common import registry
from harness.common.console import Parser, tell
from harness.common.errors import OK, UNMEASURED, Refusal, guarded

NAME = re.compile(r"[a-z][a-z0-9_]*")
ABOUT = "what it changes against the stage before"
STAGE = '''\
"""{title}: {about}.

Until its body is edited it is the definition, which counts every pair again before every merge.
"""
'''
CARD = """\
name: {name}
about: {about_as_yaml}
part: null
family: {family}
tags: [python]
_target_: variants.{name}:train
params: {{}}
"""
TEST = '''\
"""{title} computes what is defined, and is proved beside another family."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import run
from harness.conformance import parametrize_with_checks
from variants import {name}


@parametrize_with_checks([{name}.train])
def test_it_computes_what_is_defined(trainer: Callable[..., Any], check: Callable[..., None]) -> None:
    check(trainer)


def test_its_merges_are_proved_in_a_run(tmp_path: Path) -> None:
    book = tmp_path / "book.txt"
    book.write_text("the cat sat on the mat. the cat sat on the hat.\\n")
    records = run("variant={name}", f"data.path={{book}}", "vocab_size=270", f"results={{tmp_path}}", "concurrent=true")
    (trained,) = [record for record in records if record["cell"] == "train"]
    assert trained["identity"]["kind"] == "identical"
'''
NEXT = """\
python -m harness.conformance {name}
python -m pytest tests/test_{name}.py
python -m harness variants={name},heap"""


def parser() -> argparse.ArgumentParser:
    made = Parser(
        prog="python -m harness.new_variant",
        description="Write variants/NAME.py, conf/variant/NAME.yaml and tests/test_NAME.py into this checkout: a stage "
        "that is the definition until it is edited, and passes conformance, ruff and mypy.",
        epilog="exit code: 0; 2 if the name cannot be used; 22 if this is no checkout or cannot be written.",
    )
    made.add_argument(
        "name", metavar="NAME", help="of the variant and of its module: small letters, digits, underscores"
    )
    made.add_argument(
        "--about", default=ABOUT, help="one line for the card and the file (default: a line to be edited)"
    )
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return guarded(lambda: command(parser().parse_args(argv)), kept="nothing was written")


def command(asked: argparse.Namespace) -> int:
    root = checkout()
    files = files_of(asked.name, checked_about(asked.about))
    check_name(asked.name, [root / path for path in files])
    write(root, files)
    written = [os.path.relpath(root / path) for path in files]
    tell("\n".join([*written, "", "edit the first, then:", NEXT.format(name=asked.name)]))
    return OK


def checkout() -> Path:
    """The folder of this checkout. Raises Refusal for an installed package, which is no place to edit."""
    root = registry.conf_folder().parent
    if not all((root / name).is_file() for name in ("pyproject.toml", "variants/contract.py", "tests/conftest.py")):
        raise Refusal(
            "this is an installed package and no checkout; a trainer of your own needs no place in it: "
            "python -m harness variant._target_=package.module:function",
            UNMEASURED,
        )
    return root


def check_name(name: str, places: Sequence[Path]) -> None:
    """Raise Refusal unless the name can be a module's and is nobody's yet."""
    if not NAME.fullmatch(name) or keyword.iskeyword(name):
        raise Refusal(f"{name!r} cannot be a module's name; use small letters, digits and underscores, a letter first")
    listed = registry.variants()
    tags = {tag for card in listed.values() for tag in card.tags}
    if name in {*listed, *tags, "all"}:
        raise Refusal(f"{name!r} is a variant or a tag already; choose another name")
    taken = [path for path in [*places, places[0].with_suffix("")] if path.exists()]
    if taken:
        raise Refusal(f"{taken[0]} is there already; choose another name")


def checked_about(about: str) -> str:
    about = about.strip().rstrip(".")
    if not about or not about.isprintable() or '"""' in about or "\\" in about:
        raise Refusal(f"--about {about!r} is not one line of text without backslashes and threefold quotes")
    return about


def files_of(name: str, about: str) -> dict[str, str]:
    """The three files by their places."""
    definition = next(card for card in registry.variants().values() if {"definition", "series"} <= set(card.tags))
    said = {
        "name": name,
        "title": name.replace("_", " ").capitalize(),
        "about": about,
        "about_as_yaml": json.dumps(about, ensure_ascii=False),  # YAML reads JSON's strings
        "family": definition.family,
    }
    return {
        f"variants/{name}.py": STAGE.format(**said) + body_of_the_definition(),
        f"conf/variant/{name}.yaml": CARD.format(**said),
        f"tests/test_{name}.py": TEST.format(**said),
    }


def body_of_the_definition() -> str:
    """The source of the definition's module, without what it says of itself."""
    module = inspect.getmodule(registry.definition())
    assert module is not None, "the definition is a function of a module"
    source = inspect.getsource(module)
    described = ast.parse(source).body[0]
    return "".join(source.splitlines(keepends=True)[described.end_lineno :])


def write(root: Path, files: Mapping[str, str]) -> None:
    """Write all of them, or none: a name that appears in the meantime is not overwritten."""
    written: list[Path] = []
    try:
        for place, content in files.items():
            with (root / place).open("x", encoding="utf-8") as file:
                written.append(root / place)
                file.write(content)
    except BaseException as error:
        for path in written:
            path.unlink()
        if isinstance(error, OSError):
            raise Refusal(f"cannot write {root / place} ({error.strerror}); nothing was written", UNMEASURED) from error
        raise


if __name__ == "__main__":
    sys.exit(main())
