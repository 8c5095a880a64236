"""Who may import whom and how code is laid out: the architecture, read from the source."""

from __future__ import annotations

import ast
import collections
import functools
import graphlib
import re
import sys
import tokenize
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.common import registry

pytestmark = pytest.mark.xdist_group("sources")  # all of them are parsed once
REPOSITORY = Path(__file__).parent.parent
STANDARD = set(sys.stdlib_module_names)
LONGEST_FILE = 500
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
ROOMS = (
    "worker",
    "common",
    "measure",
    "corpora",
    "tokenizers",
    "proof",
    "records",
    "runs",
    "results",
    "gate",
)
"""The rooms of `harness`, the lowest floor first: each imports from those before it only."""
TOKENS = {
    "worker": 5_940,
    "common": 11_660,
    "measure": 10_020,
    "corpora": 19_470,
    "tokenizers": 19_960,
    "proof": 19_600,
    "records": 6_600,
    "runs": 17_840,
    "results": 24_130,
    "gate": 11_400,
    "commands": 14_150,
    "tests": 168_500,
}
"""Code tokens of each room, of the commands at the root, and of the tests: what a reader carries.

Comments, docstrings and blank lines are free.
"""
SLACK = 1.08
UNBROKEN, PACKED, TYPES_TWICE = 0.08, 0.05, 2
"""Maximum shares of long bodies without a paragraph and of functions with three comprehensions
or more, and how many names of types may be defined in more than one module.
"""
LONG_BODY = 15
LONGEST_STAGE = 150
PARTS = ("variants.counting.parts", "variants.counting.patterns", "variants.encoding")
"""No variants and no counters: where a text may be cut, the words between two cuts, what a pattern
consists of, and the compiled encoder.
"""


def sources(pattern: str) -> list[Path]:
    found = sorted(REPOSITORY.glob(pattern))
    assert found, f"nothing is called {pattern}"
    return found


def named(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


@functools.cache
def parsed(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text())))


@functools.cache
def imported(path: Path) -> list[str]:
    """Every module that a file imports anywhere in it; `from a import b` is `a.b`, which may be a
    module or a name.
    """
    modules: list[str] = []
    for node in parsed(path):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{named(path)} imports relatively"
            modules += [f"{node.module}.{alias.name}" for alias in node.names]
    return modules


def packages(path: Path) -> set[str]:
    return {module.partition(".")[0] for module in imported(path)}


def worker_modules() -> list[Path]:
    """The measured process's own half of `harness`: the worker and all that it imports there."""
    reached = [REPOSITORY / "harness" / "worker" / "__main__.py"]
    for path in reached:  # grows while it is read
        for module in imported(path):
            parts = module.split(".")
            if parts[0] != "harness":
                continue
            candidates = [
                REPOSITORY.joinpath(*parts[:length]).with_suffix(".py") for length in (2, 3, 4)
            ]
            reached += [
                candidate
                for candidate in candidates
                if candidate.is_file() and candidate not in reached
            ]
    return reached


def test_the_rooms_are_those_that_have_a_floor_and_few() -> None:
    found = {path.parent.name for path in sources("harness/*/__init__.py")}
    assert found == set(ROOMS)
    assert len(ROOMS) <= 10
    page = (REPOSITORY / "CONTRIBUTING.md").read_text()
    assert re.findall(r"^\| \[`(\w+)/`\]", page, re.MULTILINE) == list(reversed(ROOMS))


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_it_is_for(room: str) -> None:
    doc = (
        ast.get_docstring(ast.parse((REPOSITORY / "harness" / room / "__init__.py").read_text()))
        or ""
    )
    assert re.search(r"^In: .*Out: ", doc, re.MULTILINE | re.DOTALL), (
        f"{room} does not say what comes in and goes out"
    )


def python_of(room: str) -> list[Path]:
    """The Python files of a room, of the commands, or of the tests."""
    pattern = {"commands": "harness/*.py", "tests": "tests/**/*.py"}.get(
        room, f"harness/{room}/**/*.py"
    )
    return sources(pattern)


def code_tokens(path: Path) -> int:
    """The tokens of a file without comments, docstrings and ends of lines."""
    docstrings = {
        node.value.lineno
        for node in parsed(path)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }

    count = 0
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            is_docstring = token.type == tokenize.STRING and token.start[0] in docstrings
            if token.type not in LAYOUT and not is_docstring:
                count += 1
    return count


def functions(path: Path) -> list[tuple[ast.FunctionDef | ast.AsyncFunctionDef, list[str]]]:
    """The functions of a file, each with the lines of its body without the docstring."""
    lines = path.read_text().splitlines()
    found = []
    for node in parsed(path):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        body = node.body[1:] if ast.get_docstring(node) else node.body
        if body:
            found.append((node, lines[body[0].lineno - 1 : node.end_lineno]))
    return found


@pytest.mark.parametrize("room", [*ROOMS, "commands", "tests"])
def test_a_room_keeps_to_its_tokens(room: str) -> None:
    count = sum(code_tokens(path) for path in python_of(room))
    advice = "take some away, or say in the commit why the room may grow"
    assert count <= TOKENS[room] * SLACK, f"{room} has {count:,} code tokens; {advice}"


def test_long_bodies_have_paragraphs() -> None:
    bodies = [body for path in sources("harness/**/*.py") for _, body in functions(path)]
    long = [body for body in bodies if len(body) >= LONG_BODY]
    unbroken = [
        body for body in long if all(line.strip() and line.lstrip()[0] != "#" for line in body)
    ]
    assert len(unbroken) <= UNBROKEN * len(long), f"{len(unbroken)} of {len(long)}"


def test_few_functions_are_packed_with_comprehensions() -> None:
    found = [node for path in sources("harness/**/*.py") for node, _ in functions(path)]
    packed = []
    for function in found:
        comprehensions = [node for node in ast.walk(function) if isinstance(node, COMPREHENSIONS)]
        if len(comprehensions) >= 3:
            packed.append(function.name)
    assert len(packed) <= PACKED * len(found), f"{len(packed)} of {len(found)}: {packed}"


def test_few_types_share_a_name() -> None:
    modules: dict[str, set[str]] = collections.defaultdict(set)
    for path in [*sources("harness/**/*.py"), *sources("variants/**/*.py")]:
        for node in parsed(path):
            if isinstance(node, ast.ClassDef):
                modules[node.name].add(named(path))
    twice = {name: places for name, places in modules.items() if len(places) > 1}
    assert len(twice) <= TYPES_TWICE, twice


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_from_lower_floors_only(room: str) -> None:
    lower = ROOMS[: ROOMS.index(room) + 1]
    for path in sources(f"harness/{room}/**/*.py"):
        if path.name != "__main__.py" or room == "worker":  # a command may have a room's name
            ours = {module for module in imported(path) if module.partition(".")[0] == "harness"}
            higher = {module for module in ours if module.split(".")[1] not in lower}
            assert higher == set(), f"{named(path)} imports from a higher floor, or a command"


def test_no_module_of_the_harness_imports_itself_in_a_circle() -> None:
    """Imports inside functions and for type checkers count."""
    paths = {
        path: ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
        for path in sources("harness/**/*.py")
    }
    modules = {name.removesuffix(".__init__"): path for path, name in paths.items()}
    graph = {
        name: {target for module in imported(path) if (target := longest_module(module, modules))}
        - {name}
        for name, path in modules.items()
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def longest_module(name: str, modules: Mapping[str, Path]) -> str | None:
    """The module that an imported name lies in: `harness.runs.cells.TrainCell` in
    `harness.runs.cells`.
    """
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name or None


def test_the_algorithms_do_not_know_who_measures_them() -> None:
    assert [
        named(path) for path in sources("variants/**/*.py") if "harness" in packages(path)
    ] == []


def test_the_contract_imports_nothing_of_ours_but_what_it_shows() -> None:
    shown = ("merges", "tie_breaks", "word_counts")
    ours = {
        name
        for name in imported(REPOSITORY / "variants" / "contract.py")
        if name.startswith("variants")
    }
    assert {".".join(name.split(".")[:2]) for name in ours} == {
        f"variants.{each}" for each in shown
    }
    for name in shown:
        assert packages(REPOSITORY / "variants" / f"{name}.py") <= STANDARD


@pytest.mark.parametrize("path", sources("variants/*.py"), ids=named)
def test_a_stage_imports_the_standard_library_and_other_stages_only(path: Path) -> None:
    assert packages(path) <= STANDARD | {"variants"}


@pytest.mark.parametrize("path", worker_modules(), ids=named)
def test_the_measured_process_imports_the_standard_library_and_the_contract_only(
    path: Path,
) -> None:
    assert packages(path) <= STANDARD | {"variants", "harness"}
    ours = {module for module in imported(path) if module.startswith("variants")}
    plain = ("variants.contract.", "variants.vetoes")
    assert {module for module in ours if not module.startswith(plain)} == set()


def test_the_measured_process_is_checked_for_an_old_python() -> None:
    checked = (REPOSITORY / ".ci" / "run").read_text()
    assert {path.parent for path in worker_modules()} == {REPOSITORY / "harness" / "worker"}
    assert "--target=3.9- variants/*.py harness/worker/*.py" in checked


def test_the_harness_names_no_variant() -> None:
    """Except for the one that tokenizers are trained with: they import what they are about."""
    variants = set(registry.cards("variant"))
    for path in sources("harness/**/*.py"):
        allowed = {"flat"} if path.parent.name == "tokenizers" else set()
        names = variants - allowed
        assert (
            names & {node.value for node in parsed(path) if isinstance(node, ast.Constant)} == set()
        ), path
        modules = {module for module in imported(path) if not module.startswith(PARTS)}
        stages = {module.split(".")[1] for module in modules if module.startswith("variants")}
        if path == REPOSITORY / "harness" / "parity.py":  # the command of that program
            stages -= {"parity"}
        assert stages <= {"contract", "words", "vetoes", "extending", "seeds", *allowed}, path


def test_a_file_is_no_longer_than_a_reader_bears() -> None:
    written = {".py", ".pyx", ".pxd", ".pyi", ".hpp", ".h"}  # by people, and not by Cython
    paths = [
        path
        for part in ("variants", "harness")
        for path in sources(f"{part}/**/*")
        if path.suffix in written
    ]
    assert [path for path in paths if path.read_text().count("\n") > LONGEST_FILE] == []


@pytest.mark.parametrize(
    "target",
    sorted(
        {
            card.target
            for card in registry.variants().values()
            if card.part and "series" in card.tags
        }
    ),
)
def test_a_stage_of_the_series_stays_short(target: str) -> None:
    path = REPOSITORY.joinpath(*target.partition(":")[0].split(".")).with_suffix(".py")
    assert path.read_text().count("\n") <= LONGEST_STAGE
