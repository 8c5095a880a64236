"""The generated parts of pages: what exists, as the code and the cards say it.

python docs/hooks/generated_parts.py NAME [ARGUMENT...] prints one; stored_tables.py keeps those in
pages current.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import itertools
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
from msgspec.structs import asdict

from harness.__main__ import SHORT, usage
from harness.common import registry
from harness.records.schema import KINDS
from variants.contract import TieBreak

REPOSITORY = Path(__file__).resolve().parent.parent.parent
GRID, EXTERNAL = "cpp", "external"
"""Tags of variants: the presets of one program, and those of other projects, which a page of their
own lists.
"""
HEADINGS = {"about": "what it is", "params": "parameters", "facts.bytes": "bytes"}
PROGRAM = re.compile(r'prog="python -m (harness\.[\w.]+)"')
SUBCOMMANDS = re.compile(r"^  (?!-)\S+\n((?:    .*\n)+)", re.MULTILINE)
"""What help lists below a metavar such as COMMAND."""


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


# Configuration


def variants(tag: str = "") -> str:
    """The variants of a tag; of none, all that have no table elsewhere."""
    described = {}
    for name, card in registry.variants().items():
        if tag in card.tags or not (tag or {GRID, EXTERNAL} & {*card.tags}):
            described[name] = asdict(card)
    return cards_table(described, ["about", "part"] if tag else ["about", "params", "part", "tags"])


def cards(group: str, *columns: str) -> str:
    """A group's cards with some of their keys, such as facts.bytes."""
    return cards_table(registry.cards(group), columns)


def cards_table(described: Mapping[str, Mapping[str, Any]], columns: Sequence[str]) -> str:
    rows = []
    for name, card in described.items():
        rows.append([code(name), *(in_words(card, column) for column in columns)])
    header = [HEADINGS.get(column, column) for column in columns]
    return table(["name", *header], rows)


def in_words(card: Any, column: str) -> str:
    """Return the value of a card's key as a page shows it; nothing if the card lacks it."""
    for key in column.split("."):
        card = (card or {}).get(key)
    if isinstance(card, Mapping):
        texts = []
        for name, value in card.items():
            text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            texts.append(code(f"{name}={text}"))
        return ", ".join(texts)
    if isinstance(card, list | tuple):
        return ", ".join(card)
    if column == "regex":
        return code(card or "")
    return f"{card:,}" if isinstance(card, int) else str(card or "")


def experiments() -> str:
    """Each experiment's command and what it shows: the comments that its file begins with."""
    rows = []
    for name in registry.cards("experiment"):
        lines = (registry.conf_folder() / f"experiment/{name}.yaml").read_text().splitlines()
        comments = itertools.takewhile(lambda line: line.startswith("#"), lines)
        command, *shows = [line.lstrip("# ") for line in comments]
        rows.append((code(command), " ".join(shows)))
    return table(("command", "what it shows"), rows)


def defaults() -> str:
    settings = (registry.conf_folder() / "config.yaml").read_text().partition("\nhydra:")[0]
    return f"```yaml\n{settings.rstrip()}\n```"


# Commands and records


def commands() -> str:
    """The help of every command, and of those below it, without the usage: it is laid out otherwise
    by each Python.
    """
    parts = [f"## python -m harness\n\n```text\n{SHORT.read_text()}```"]
    parts.append(f"`--help all`:\n\n```text\n{usage()}\n```")
    modules = {}
    for path in (REPOSITORY / "harness").rglob("*.py"):
        for program in PROGRAM.findall(path.read_text()):
            modules[program] = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
    for program, module in sorted(modules.items()):
        text = help_of(module)
        parts.append(f"## python -m {program}\n\n```text\n{text}\n```")
        listed = SUBCOMMANDS.search(text)
        for name in re.findall(r"^    (\w+)  ", listed[1] if listed else "", re.MULTILINE):
            parts.append(f"### {program} {name}\n\n```text\n{help_of(module, name)}\n```")
    return "\n\n".join(parts)


def help_of(module: str, *arguments: str) -> str:
    shape = mock.patch.dict(os.environ, {"COLUMNS": "80", "NO_COLOR": "1"})
    with (
        contextlib.redirect_stdout(io.StringIO()) as printed,
        shape,
        contextlib.suppress(SystemExit),
    ):
        importlib.import_module(module).main([*arguments, "--help"])
    return printed.getvalue().partition("\n\n")[2].rstrip()


def record_keys() -> str:
    """Every kind of line with its keys, from the schema."""
    _, definitions = msgspec.json.schema_components(KINDS, ref_template="{name}")
    parts = []
    for kind in KINDS:
        rows = keys_of(definitions[kind.__name__], definitions)
        keys = table(("key", "type", "always there", "meaning"), rows)
        parts.append(f"### `{kind.__struct_config__.tag}`\n\n{inspect.getdoc(kind)}\n\n{keys}")
    return "\n\n".join(parts)


def keys_of(schema: Any, definitions: Any, above: str = "") -> Iterator[tuple[str, ...]]:
    """The keys of a line or of a mapping in it, each followed by those within it."""
    for name, value in schema["properties"].items():
        options = [option for option in value.get("anyOf", [value]) if option.get("type") != "null"]
        inner = definitions.get(options[0].get("$ref"), options[0])
        always = "yes" if name in schema.get("required", ()) else ""
        kind = inner.get("type") or " or ".join(code(str(each)) for each in inner.get("enum", ()))
        yield code(above + name), kind, always, value.get("description", "")
        if "properties" in inner:
            yield from keys_of(inner, definitions, f"{above}{name}.")


# Explanation


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
    """Each rule with its description, which follows it in the contract."""
    described = re.compile(r'^    [A-Z_]+ = "(\w+)"\n    """(.*?)"""', re.MULTILINE | re.DOTALL)
    rows = described.findall(inspect.getsource(TieBreak))
    texts = [(code(name), " ".join(about.split())) for name, about in rows]
    return table(("tie_break", "which of several equally frequent pairs is merged"), texts)


def main(arguments: Sequence[str]) -> int:
    """Print the part of that name."""
    part: Callable[..., str] = globals()[arguments[0].replace("-", "_")]
    sys.stdout.write(part(*arguments[1:]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
