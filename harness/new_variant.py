"""python -m harness.new_variant: a new stage in this checkout, its file, its card and its test, ready to be edited.

    python -m harness.new_variant my_stage --about "naive that drops words that have become one token"

The stage starts as the definition under another name, so it conforms from the first moment, and
`python -m harness.conformance NAME` judges every edit after that.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import json
import keyword
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

from harness.common import registry
from harness.common.console import Parser, tell
from harness.common.errors import OK, UNMEASURED, Refusal, guarded

TEMPLATES = {"variants/{}.py": "stage.py", "conf/variant/{}.yaml": "card.yaml", "tests/variants/test_{}.py": "test.py"}
NEXT = """\

edit the first, then:
python -m harness.conformance {name}
python -m pytest tests/variants/test_{name}.py
python -m harness variants={name},heap"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = Parser(
        prog="python -m harness.new_variant",
        description="Write variants/NAME.py, conf/variant/NAME.yaml and tests/variants/test_NAME.py into this "
        "checkout: a stage that is the definition until it is edited, and passes conformance, ruff and mypy.",
        epilog="exit code: 0; 2 if the name cannot be used; 22 if this is no checkout or cannot be written.",
    )
    parser.add_argument(
        "name", metavar="NAME", help="of the variant and its module: small letters, digits, underscores"
    )
    about = "what it changes against the stage before"
    parser.add_argument("--about", default=about, help="one line for the card and the file (default: one to be edited)")
    options = parser.parse_args(arguments)
    return guarded(lambda: _new_variant(options), kept="nothing was written")


def _new_variant(options: argparse.Namespace) -> int:
    root = _checkout()
    files = _files(options.name, _checked(options.about))
    _check_name(options.name, [root / path for path in files])
    write(root, files)
    tell("\n".join([*(os.path.relpath(root / path) for path in files), NEXT.format(name=options.name)]))
    return OK


def _checkout() -> Path:
    """The folder of this checkout. Raises Refusal for an installed package."""
    root = registry.conf_folder().parent
    if not all((root / name).is_file() for name in ("pyproject.toml", "variants/contract.py", "tests/conftest.py")):
        raise Refusal(
            "this is an installed package, not a checkout; a trainer of your own needs no place in it: "
            "python -m harness variants=package.module:function",
            UNMEASURED,
        )
    return root


def _check_name(name: str, places: Sequence[Path]) -> None:
    if not re.fullmatch("[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise Refusal(f"{name!r} cannot be a module's name; use small letters, digits and underscores, a letter first")
    cards = registry.variants()
    if name in {*cards, "all"}.union(*(card.tags for card in cards.values())):
        raise Refusal(f"{name!r} is a variant or a tag already; choose another name")
    for path in (*places, places[0].with_suffix("")):
        if path.exists():
            raise Refusal(f"{path} exists already; choose another name")


def _checked(about: str) -> str:
    about = about.strip().rstrip(".")
    if not about or not about.isprintable() or '"""' in about or "\\" in about:
        raise Refusal(f"--about {about!r} is not one line of text without backslashes and triple quotes")
    return about


def _files(name: str, about: str) -> dict[str, str]:
    """The content of each file by its path; the stage's body is that of the definition."""
    definition = next(card for card in registry.variants().values() if {"definition", "series"} <= set(card.tags))
    body = Path(inspect.getfile(registry.resolve(definition.target))).read_text("utf-8").partition('"""\n')[2]
    values = {
        "name": name,
        "title": name.replace("_", " ").capitalize(),
        "about": about,
        "about_as_yaml": json.dumps(about, ensure_ascii=False),  # YAML reads JSON's strings
        "family": definition.family,
        "body": body,
    }
    folder = Path(__file__).parent / "templates"
    templates = {path: (folder / f"{template}.txt").read_text("utf-8") for path, template in TEMPLATES.items()}
    return {path.format(name): Template(text).substitute(values) for path, text in templates.items()}


def write(root: Path, files: Mapping[str, str]) -> None:
    """Write all files or none; one that appeared in the meantime is not overwritten."""
    with contextlib.ExitStack() as undo:
        for place, content in files.items():
            try:
                with (root / place).open("x", encoding="utf-8") as file:
                    undo.callback((root / place).unlink)
                    file.write(content)
            except OSError as error:
                message = f"cannot write {root / place} ({error.strerror}); nothing was written"
                raise Refusal(message, UNMEASURED) from error
        undo.pop_all()


if __name__ == "__main__":
    sys.exit(main())
