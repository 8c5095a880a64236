"""The generated parts of pages: what exists, as the code and the cards say it.

python docs/hooks/generated_parts.py NAME [ARGUMENT...] prints one; stored_tables.py keeps those in
pages current.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import itertools
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

from harness.__main__ import SHORT, usage
from harness.common import registry
from harness.common.configuration import keys_beside
from harness.proof import cases, counter_checks
from harness.results.charts import KINDS
from variants.contract import TieBreak

REPOSITORY = Path(__file__).resolve().parent.parent.parent
GRID = "cpp"
"""The tag of the variants that are presets of one program: so many that they have a table of their
own.
"""
PROGRAM = re.compile(r'prog="python -m (harness(?:\.\w+)*)"')


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; what would end a cell is escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |"
        for row in lines
    )


def code(text: Any) -> str:
    """Text as inline code, whatever marks it holds; nothing for nothing."""
    text = str(text)
    if not text:
        return ""
    marks = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    blank = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{marks}{blank}{text}{blank}{marks}"


def value(something: Any) -> str:
    """A value as it is written on the command line."""
    if something is None:
        return "null"
    return str(something).lower() if isinstance(something, bool) else str(something)


def parameters(params: Mapping[str, Any]) -> str:
    return ", ".join(code(f"{name}={value(default)}") for name, default in params.items())


# Configuration


def variants(tag: str = "") -> str:
    """The variants of a tag with what they are and their parameters; of none, those that are no
    points of a grid.
    """
    listed = [card for card in registry.variants().values() if "external" not in card.tags]
    if tag:
        rows = [
            (code(card.name), card.about, str(card.part or ""))
            for card in listed
            if tag in card.tags
        ]
        return table(("name", "what it is", "part"), rows)
    whole = []
    for card in listed:
        if GRID not in card.tags:
            about = f"{card.about}; {parameters(card.params)}" if card.params else card.about
            whole.append((code(card.name), about, str(card.part or ""), ", ".join(card.tags)))
    return table(("name", "what it is; its parameters with their defaults", "part", "tags"), whole)


def counters() -> str:
    rows = [
        (code(card.name), card.about, parameters(card.params))
        for card in registry.counters().values()
    ]
    return table(("name", "what it is", "parameters"), rows)


def data_sets() -> str:
    """Every data set, as its card tells it; sizes where the card knows them."""
    rows = []
    for name, card in registry.cards("data").items():
        size = (card.get("facts") or {}).get("bytes")
        texts = (card["about"], card.get("language", ""), card.get("licence", ""))
        rows.append(
            (code(name), *texts, f"{size:,}" if size else "", str(card.get("vocab_size", "")))
        )
    return table(("name", "what it is", "language", "licence", "bytes", "vocab_size"), rows)


def patterns() -> str:
    rows = [
        (code(name), code(card.get("regex") or ""))
        for name, card in registry.cards("pattern").items()
    ]
    return table(("name", "regular expression"), rows)


def cards(group: str) -> str:
    """A group's files: the name, what the card says of itself, and what it sets."""
    rows = []
    for name, card in registry.cards(group).items():
        settings = {key: each for key, each in card.items() if key not in ("name", "about")}
        rows.append((code(name), str(card.get("about", "")), parameters(settings)))
    return table(("name", "what it is", "sets"), rows)


def experiments() -> str:
    """Each experiment's command and what it shows, which are the comments that its file begins
    with.
    """
    rows = []
    for name in registry.cards("experiment"):
        lines = (registry.conf_folder() / "experiment" / f"{name}.yaml").read_text().splitlines()
        command, *shows = [
            line.lstrip("# ") for line in itertools.takewhile(lambda line: line[:1] == "#", lines)
        ]
        rows.append((code(command), " ".join(shows)))
    return table(("command", "what it shows"), rows)


def defaults() -> str:
    """The file of all settings, with its comments."""
    settings, _, _ = (registry.conf_folder() / "config.yaml").read_text().partition("\nhydra:")
    return f"```yaml\n{settings.rstrip()}\n```"


def keys(section: str) -> str:
    """The overrides below a key."""
    return ", ".join(code(key) for key in keys_beside(f"{section}.x"))


def variant_parameters(name: str) -> str:
    """A variant's parameters with what its module's docstring says of each."""
    card = registry.variants()[name]
    text = inspect.getdoc(importlib.import_module(card.target.partition(":")[0])) or ""
    descriptions = {
        found[1]: " ".join(found[2].split())
        for found in re.finditer(
            r"^- `(\w+)`: (.*?)(?=^- |\n\n|\Z)", text, re.MULTILINE | re.DOTALL
        )
    }
    return table(
        ("parameter", "what it does"),
        [(code(each), descriptions.get(each, "")) for each in card.params],
    )


def file(path: str) -> str:
    """A file of configuration as it is."""
    return f"```yaml\n{(REPOSITORY / path).read_text().rstrip()}\n```"


def pictures() -> str:
    """Every kind of picture with what it shows."""
    return table(
        ("--kind", "what it shows"), [(code(name), shows) for name, (shows, _) in KINDS.items()]
    )


# Commands


class Seen(Exception):
    """The parser of a command, taken at the moment when it would read its arguments."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__(parser)
        self.parser = parser


def programs() -> dict[str, str]:
    """The commands with options, by the name that they give themselves, each with the module that
    makes its parser.
    """
    found = {}
    for path in sorted((REPOSITORY / "harness").rglob("*.py")):
        module = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
        found.update(dict.fromkeys(PROGRAM.findall(path.read_text()), module))
    return dict(sorted(found.items()))


def parser_of(module: str) -> argparse.ArgumentParser:
    """The parser that a command's `main` reads its arguments with."""

    def seen(parser: argparse.ArgumentParser, *_: Any, **__: Any) -> NoReturn:
        raise Seen(parser)

    # All that reads arguments goes through one of these two.
    with (
        mock.patch.object(argparse.ArgumentParser, "parse_known_args", seen),
        mock.patch.object(argparse.ArgumentParser, "parse_known_intermixed_args", seen),
    ):
        try:
            importlib.import_module(module).main([])
        except Seen as caught:
            return caught.parser
    raise LookupError(f"{module}.main reads no arguments")


def help_of(parser: argparse.ArgumentParser) -> list[str]:
    """What a command takes, as a table, and what the commands below it take; argparse's own text
    varies by Python.
    """
    parts, rows = [parser.description or ""], []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                parts += [f"### {parser.prog.removeprefix('python -m ')} {name}", *help_of(below)]
        elif not isinstance(action, argparse._HelpAction) and action.help != argparse.SUPPRESS:
            about = {**vars(action), "choices": ", ".join(map(str, action.choices or ()))}
            rows.append((code(taken(action)), (action.help or "") % about))
    if rows:
        parts.insert(1, table(("option", "what it does"), rows))
    if parser.epilog:
        parts.insert(2 if rows else 1, f"```text\n{parser.epilog.rstrip()}\n```")
    return parts


def taken(action: argparse.Action) -> str:
    """An option with what it takes, or an argument."""
    metavar = action.metavar or (
        ",".join(map(str, action.choices)) if action.choices else action.dest.upper()
    )
    name = metavar if isinstance(metavar, str) else " ".join(metavar)
    if not action.option_strings:
        return f"[{name}]" if action.nargs in ("?", "*") else name
    return action.option_strings[-1] if action.nargs == 0 else f"{action.option_strings[-1]} {name}"


def commands() -> str:
    """Every command: what it takes, and what each option does."""
    parts = [
        "## python -m harness",
        f"```text\n{SHORT.read_text()}```",
        "`--help all`:",
        f"```text\n{usage()}\n```",
    ]
    for program, module in programs().items():
        parts += [f"## python -m {program}", *help_of(parser_of(module))]
    return "\n\n".join(part for part in parts if part)


# Explanation


def families() -> str:
    """The byte-level classes of transformers, and what the test of them found."""
    lines = (REPOSITORY / "tests/tokenizers/families.txt").read_text(encoding="utf-8").splitlines()
    rows = []
    for line in lines:
        name, models, trained, loaded = line.split("\t")
        reason = trained.removeprefix("it cannot be trained here: ").partition(";")[0]
        rows.append((code(name), models, reason, loaded))
    header = ("class", "models, among others", "trained here", "loaded, converted, cut, encoded")
    return table(header, rows)


def few(texts: Sequence[str], most: int = 6) -> str:
    """The first of some texts, as code."""
    return " ".join([*map(code, texts[:most]), *(["..."] if len(texts) > most else [])]) or "none"


def shown(words: Mapping[bytes, int]) -> str:
    """Words with their weights, the first few of them."""
    return few([f"{short(word)}:{weight}" for word, weight in words.items()])


def short(word: bytes) -> str:
    """Bytes as they are written in Python, without the quotes; long ones cut."""
    text = repr(word)[2:-1]
    return text if len(text) <= 24 else f"{text[:20]}..."


def merge_cases() -> str:
    rows = []
    for case in cases.MERGE_CASES:
        merges = few([f"{short(left)}+{short(right)}" for left, right in case.want])
        rows.append((case.name, shown(case.call.words), merges, case.why))
    return table(("case", "words and weights", "merges", "what it catches"), rows)


def file_word_cases() -> str:
    rows = []
    for case in counter_checks.FILE_CASES:
        found = f"an error at byte {case.want}" if isinstance(case.want, int) else shown(case.want)
        specials = " ".join(map(code, case.call.special_tokens)) or "none"
        rows.append(
            (case.name, code(short(case.call.content)) or "empty", specials, found, case.why)
        )
    return table(("case", "file", "special tokens", "words", "what it catches"), rows)


def tie_breaks() -> str:
    """Each rule with its description, which follows it in the contract."""
    source = inspect.getsource(TieBreak)
    rows = [
        (code(found[1]), " ".join(found[2].split()))
        for found in re.finditer(
            r'^    [A-Z_]+ = "(\w+)"\n    """(.*?)"""', source, re.MULTILINE | re.DOTALL
        )
    ]
    assert [code(each.value) for each in TieBreak] == [name for name, _ in rows]
    return table(("tie_break", "which of several equally frequent pairs is merged"), rows)


GENERATORS: dict[str, Callable[..., str]] = {
    "variants": variants,
    "counters": counters,
    "data-sets": data_sets,
    "patterns": patterns,
    "cards": cards,
    "experiments": experiments,
    "families": families,
    "defaults": defaults,
    "keys": keys,
    "variant-parameters": variant_parameters,
    "file": file,
    "pictures": pictures,
    "commands": commands,
    "merge-cases": merge_cases,
    "file-cases": file_word_cases,
    "tie-breaks": tie_breaks,
}


def main(arguments: Sequence[str]) -> int:
    """Print the part of that name."""
    sys.stdout.write(GENERATORS[arguments[0]](*arguments[1:]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
