"""The generated parts of pages: what exists, as the code and the cards say it.

python docs/hooks/generated_parts.py NAME [ARGUMENT...] prints one; stored_tables.py keeps those in
pages current.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import io
import itertools
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
from msgspec.structs import asdict

from harness import proof
from harness.__main__ import SHORT
from harness.common import registry
from harness.records import schema
from variants.contract import TieBreak

REPOSITORY = Path(__file__).resolve().parent.parent.parent
ELSEWHERE = {"cpp", "external"}  # tags of variants that have a table or a page of their own
HEADINGS = {"about": "what it is", "params": "parameters", "facts.bytes": "bytes"}
PROGRAM = re.compile(r'prog="python -m (harness\.[\w.]+)"')
SUBCOMMANDS = re.compile(r"^  (?!-)\S+\n((?:    .*\n)+)", re.MULTILINE)
"""What help lists below a metavar such as COMMAND."""
HELP_OPTION = re.compile(r"^  -h, --help .*\n", re.MULTILINE)
SENTENCE_END = re.compile(r"(?<=\.) (?=[A-Z(])")
TIE_BREAK = re.compile(r'^    [A-Z_]+ = "(\w+)"\n    """(.*?)"""', re.MULTILINE | re.DOTALL)
"""A rule with its description, which follows it in the contract."""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; what would end a cell is escaped."""
    lines = []
    for row in [header, ["---"] * len(header), *rows]:
        escaped = [cell.replace("|", "\\|").replace("\n", " ") for cell in row]
        lines.append(f"| {' | '.join(escaped)} |")
    return "\n".join(lines)


def code(text: str) -> str:
    """Return text as inline code; nothing for nothing."""
    return f"`{text}`" if text else ""


def cards(group: str, *columns: str) -> str:
    """The cards of a group, or the variants of a tag, with some of their keys, such as facts.bytes.

    The group `variant` is without those that have a table elsewhere.
    """
    described: dict[str, Any] = registry.cards(group)
    if group == "variant" or not described:
        described = {}
        for name, card in registry.variants().items():
            if group in card.tags or (group == "variant" and ELSEWHERE.isdisjoint(card.tags)):
                described[name] = asdict(card)

    rows = []
    for name, card in described.items():
        rows.append([code(name), *(in_words(card, column) for column in columns)])
    return table(["name", *(HEADINGS.get(column, column) for column in columns)], rows)


def in_words(card: Any, column: str) -> str:
    """Return the value of a card's key as a page shows it; nothing if the card lacks it."""
    for key in column.split("."):
        card = (card or {}).get(key)
    if isinstance(card, Mapping):
        settings = []
        for name, value in card.items():
            text = json.dumps(value).strip('"')
            settings.append(code(f"{name}={text}"))
        return ", ".join(settings)
    if isinstance(card, list | tuple):
        return ", ".join(card)
    if column == "regex":
        return code(card)
    return f"{card:,}" if isinstance(card, int) else str(card or "")


def experiments() -> str:
    """Each experiment's command, which leads to its file, and the first sentence of the comments
    that its file begins with.
    """
    rows = []
    for name in registry.cards("experiment"):
        lines = (registry.conf_folder() / f"experiment/{name}.yaml").read_text().splitlines()
        comments = itertools.takewhile(lambda line: line.startswith("#"), lines)
        command, *shows = [line.lstrip("# ") for line in comments]
        linked = f"[{code(command)}](../../conf/experiment/{name}.yaml)"
        rows.append((linked, SENTENCE_END.split(" ".join(shows))[0]))
    return table(("command", "what it shows"), rows)


def defaults() -> str:
    settings = (registry.conf_folder() / "config.yaml").read_text().partition("\nhydra:")[0]
    return f"```yaml\n{settings.rstrip()}\n```"


def commands() -> str:
    """The help of every command and subcommand; what a command says of a subcommand stands there
    alone.
    """
    parts = [("## python -m harness", SHORT.read_text())]
    modules = {}
    for path in (REPOSITORY / "harness").rglob("*.py"):
        for program in PROGRAM.findall(path.read_text()):
            modules[program] = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
    for program, module in sorted(modules.items()):
        text = help_of(module)
        parts.append((f"## python -m {program}", text))
        listed = SUBCOMMANDS.search(text)
        for name in re.findall(r"^    (\w+)  ", listed[1] if listed else "", re.MULTILINE):
            options = help_of(module, name).partition("\n\n")[2]
            parts.append((f"### {program} {name}", options))
    return "\n\n".join(f"{title}\n\n```text\n{text.rstrip()}\n```" for title, text in parts)


def help_of(module: str, *arguments: str) -> str:
    """Return a command's help without --help, and without its usage, which each Python lays out its
    own way.
    """
    printed = io.StringIO()
    with (
        contextlib.redirect_stdout(printed),
        mock.patch.dict(os.environ, {"COLUMNS": "80", "NO_COLOR": "1"}),
        contextlib.suppress(SystemExit),
    ):
        importlib.import_module(module).main([*arguments, "--help"])
    text = printed.getvalue().partition("\n\n")[2]
    return re.sub(r"^options:\n(?=\n|\Z)", "", HELP_OPTION.sub("", text), flags=re.MULTILINE)


def record_keys() -> str:
    """Every kind of line with its keys, from the schema."""
    _, definitions = msgspec.json.schema_components(schema.KINDS, ref_template="{name}")
    parts = []
    for kind in schema.KINDS:
        parts.append(f"### `{kind.__struct_config__.tag}`\n\n{inspect.getdoc(kind)}")
        rows = list(keys_of(kind.__name__, definitions, meanings()))
        if rows:
            parts.append(table(("key", "type", "meaning"), rows))
    return "\n\n".join(parts)


def meanings() -> dict[tuple[str, str], str]:
    """What each key means, by its class and its name: the docstring below it in the schema."""
    found = {}
    for kind in ast.parse(inspect.getsource(schema) + inspect.getsource(proof)).body:
        if not isinstance(kind, ast.ClassDef):
            continue
        for key, below in itertools.pairwise(kind.body):
            if isinstance(key, ast.AnnAssign) and isinstance(below, ast.Expr):
                text = " ".join(ast.literal_eval(below.value).split()).removesuffix(".")
                found[kind.name, ast.unparse(key.target)] = text[0].lower() + text[1:]
    return found


def keys_of(
    kind: str, definitions: Any, meaning: Mapping[tuple[str, str], str], above: str = ""
) -> Iterator[tuple[str, ...]]:
    """The keys of a line or of a mapping in it, each followed by those within it."""
    described = definitions[kind]
    for name, value in described["properties"].items():
        if not above and name in ("kind", "run"):  # every line has them
            continue
        options = [option for option in value.get("anyOf", [value]) if option.get("type") != "null"]
        of_key = options[0].get("$ref", "")
        inner = definitions.get(of_key, options[0])
        types = inner.get("type") or " or ".join(code(str(each)) for each in inner.get("enum", ()))
        if name in described.get("required", ()):
            types += ", always"
        yield code(above + name), types, meaning[kind, name]
        if "properties" in inner:
            yield from keys_of(of_key, definitions, meaning, f"{above}{name}.")


def families() -> str:
    """The byte-level classes of transformers, and what the test of them found."""
    rows = []
    for line in (REPOSITORY / "tests/tokenizers/families.txt").read_text("utf-8").splitlines():
        name, models, trained, loaded = line.split("\t")
        reason = trained.removeprefix("it cannot be trained here: ").partition(";")[0]
        rows.append((code(name), models, reason, loaded))
    header = ("class", "models, among others", "trained here", "loaded, converted, cut, encoded")
    return table(header, rows)


def tie_breaks() -> str:
    rows = []
    for name, about in TIE_BREAK.findall(inspect.getsource(TieBreak)):
        rows.append((code(name), " ".join(about.split())))
    return table(("tie_break", "which of several equally frequent pairs is merged"), rows)


def main(arguments: Sequence[str]) -> int:
    """Print the part of that name."""
    sys.stdout.write(globals()[arguments[0].replace("-", "_")](*arguments[1:]) + "\n")
    return 0


if __name__ == "__main__":
    main(sys.argv[1:])
