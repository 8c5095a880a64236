"""python -m harness.new_variant: a new stage in this checkout, its file, its card and its test,
ready to be edited.

    python -m harness.new_variant my_stage

The stage starts as the definition under another name, so it conforms from the first moment, and
`python -m harness.conformance NAME` judges every edit after that.
"""

from __future__ import annotations

import inspect
import keyword
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from string import Template

from harness.common import registry
from harness.common.command import Parser, exit_code_of
from harness.common.errors import OK, UNMEASURED, Refusal
from harness.common.files import write_output
from harness.common.printing import print_stdout

TEMPLATES = {
    "variants/{}.py": "stage.py.txt",
    "conf/variant/{}.yaml": "card.yaml.txt",
    "tests/variants/test_{}.py": "test.py.txt",
}
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
        epilog="exit code: 0; 2 if the name cannot be used; 22 if this is not a checkout or cannot be written.",
    )
    parser.add_argument(
        "name", metavar="NAME", help="name it in lowercase letters, digits and underscores"
    )
    options = parser.parse_args(arguments)
    return exit_code_of(lambda: _new_variant(options.name))


def _new_variant(name: str) -> int:
    root, cards = registry.conf_folder().parent, registry.variants().values()
    if not (root / "tests" / "conftest.py").is_file():
        advice = "a trainer of your own needs no place in it: python -m harness variants=package.module:function"
        raise Refusal(f"this is an installed package, not a checkout; {advice}", UNMEASURED)
    if not re.fullmatch("[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise Refusal(
            f"{name!r} cannot be a module's name; use small letters, digits and underscores, a letter first"
        )
    if name in {"all"}.union(*((card.name, *card.tags) for card in cards)):
        raise Refusal(f"{name!r} is a variant or a tag already; choose another name")

    paths = [root / path.format(name) for path in TEMPLATES]
    for path in [*paths, root / "variants" / name]:
        if path.exists():
            raise Refusal(f"{path} exists already; choose another name")

    definition = next(card for card in cards if {"definition", "series"} <= set(card.tags))
    source = inspect.getsource(sys.modules[registry.resolve(definition.target).__module__])
    values = {
        "name": name,
        "title": name.replace("_", " ").capitalize(),
        "family": definition.family,
    }

    # the definition's, from the end of its docstring on
    values["body"] = source.partition('"""\n')[2]
    for path, template in zip(paths, TEMPLATES.values(), strict=True):
        text = (Path(__file__).parent / "templates" / template).read_text("utf-8")
        content = Template(text).substitute(values).encode()
        write_output(path, content, overwrite=False, instead="make its folder writable")
    print_stdout("\n".join([*map(os.path.relpath, paths), NEXT.format(name=name)]))
    return OK


if __name__ == "__main__":
    sys.exit(main())
