"""Who may import whom and how code is laid out: the architecture, read from the source."""

import ast
import functools
import graphlib
import re
import sys
import tokenize
from pathlib import Path

import pytest
from workbench import CHECKOUT

from harness.common import registry

pytestmark = pytest.mark.xdist_group("sources")  # all of them are parsed once
STANDARD = set(sys.stdlib_module_names)
LAYOUT = ["COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENCODING", "ENDMARKER"]
TOKENS = {
    "worker": 6_081,
    "common": 14_674,
    "measure": 9_540,
    "corpora": 18_767,
    "tokenizers": 21_313,
    "proof": 11_530,
    "records": 5_409,
    "runs": 15_834,
    "results": 19_348,
    "gate": 10_273,
    "commands": 15_019,
    "tests": 120_000,
}
"""Code tokens of each room, of the commands at the root, and of the tests: what a reader carries.

Comments, docstrings and blank lines are free.
"""
ROOMS = tuple(TOKENS)[:-2]
"""The rooms of `harness`, the lowest floor first: each imports from those before it only."""
SLACK = 1.03
LONGEST_FILE, LONGEST_STAGE = 500, 150
PARTS = ("variants.counting.parts", "variants.counting.patterns", "variants.encoding")
"""No variants and no counters: where a text may be cut, the words between two cuts, what a pattern
consists of, and the compiled encoder.
"""


def sources(pattern: str) -> list[Path]:
    found = sorted(CHECKOUT.glob(pattern))
    assert found, f"nothing is called {pattern}"
    return found


def named(path: Path) -> str:
    return path.relative_to(CHECKOUT).as_posix()


@functools.cache
def parsed(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text())))


@functools.cache
def imported(path: Path) -> set[str]:
    """Every module that a file imports anywhere in it; `from a import b` is `a.b`, which may be a
    module or a name.
    """
    modules: set[str] = set()
    for node in parsed(path):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{named(path)} imports relatively"
            modules.update(f"{node.module}.{alias.name}" for alias in node.names)
    return modules


def imported_from(package: str, path: Path) -> set[str]:
    """What a file imports from a package, without the name of that."""
    names = imported(path)
    return {name.split(".")[1] for name in names if name.startswith(f"{package}.")}


def packages(path: Path) -> set[str]:
    return {module.partition(".")[0] for module in imported(path)}


def imported_modules(path: Path) -> set[Path]:
    """The files of `harness` that a file imports: `harness.runs.cells.TrainCell` is in one."""
    found = set()
    for module in imported(path):
        for name in (module, module.rpartition(".")[0]):
            file = CHECKOUT.joinpath(*name.split(".")).with_suffix(".py")
            if name.startswith("harness") and file.is_file():
                found.add(file)
    return found - {path}


def worker_modules() -> list[Path]:
    """The measured process's own half of `harness`: the worker and all that it imports there."""
    reached = [CHECKOUT / "harness" / "worker" / "__main__.py"]
    for path in reached:  # grows while it is read
        reached += sorted(imported_modules(path) - set(reached))
    return reached


def test_the_rooms_are_those_that_have_a_floor_and_say_what_they_are_for() -> None:
    found = {path.parent.name: path for path in sources("harness/*/__init__.py")}
    assert found.keys() == set(ROOMS)
    page = (CHECKOUT / "CONTRIBUTING.md").read_text()
    assert re.findall(r"^\| \[`(\w+)/`\]", page, re.MULTILINE) == list(reversed(ROOMS))
    for room, path in found.items():
        doc = ast.get_docstring(ast.parse(path.read_text())) or ""
        assert re.search(r"(?ms)^In: .*Out: ", doc), f"{room} does not say what comes in and out"


def code_tokens(path: Path) -> int:
    """The tokens of a file without comments, docstrings and ends of lines."""
    docstrings = 0
    for node in parsed(path):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings += isinstance(node.value.value, str)

    with path.open("rb") as file:
        names = [tokenize.tok_name[token.type] for token in tokenize.tokenize(file.readline)]
    return sum(name not in LAYOUT for name in names) - docstrings


@pytest.mark.parametrize("room", TOKENS)
def test_a_room_keeps_to_its_tokens(room: str) -> None:
    folders = {"commands": "harness/*.py", "tests": "tests/**/*.py"}
    paths = sources(folders.get(room, f"harness/{room}/**/*.py"))
    count = sum(map(code_tokens, paths))
    advice = "take some away, or say in the commit why the room may grow"
    assert count <= TOKENS[room] * SLACK, f"{room} has {count:,} code tokens; {advice}"


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_from_lower_floors_only(room: str) -> None:
    higher = {path.stem for path in sources("harness/*.py")} | {*ROOMS[ROOMS.index(room) + 1 :]}
    for path in sources(f"harness/{room}/**/*.py"):
        if path.name != "__main__.py" or room == "worker":  # a command may have a room's name
            assert imported_from("harness", path) & higher == set(), named(path)


def test_no_module_of_the_harness_imports_itself_in_a_circle() -> None:
    """Imports inside functions and for type checkers count."""
    graph = {path: imported_modules(path) for path in sources("harness/**/*.py")}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" imports ".join(map(named, reversed(error.args[1]))))


def test_the_algorithms_do_not_know_who_measures_them() -> None:
    for path in sources("variants/**/*.py"):
        assert "harness" not in packages(path), named(path)
        if path.parent.name == "variants":
            assert packages(path) <= STANDARD | {"variants"}, named(path)


def test_the_contract_imports_nothing_of_ours_but_what_it_shows() -> None:
    shown = {"merges", "tie_breaks", "word_counts"}
    assert imported_from("variants", CHECKOUT / "variants" / "contract.py") == shown
    for name in shown:
        assert packages(CHECKOUT / "variants" / f"{name}.py") <= STANDARD


def test_the_measured_process_imports_the_standard_library_and_the_contract_only() -> None:
    for path in worker_modules():
        assert path.parent == CHECKOUT / "harness" / "worker"
        assert packages(path) <= STANDARD | {"variants", "harness"}, named(path)
        assert imported_from("variants", path) <= {"contract", "vetoes"}, named(path)
    checked_for_an_old_python = "--target=3.9- variants/*.py harness/worker/*.py"
    assert checked_for_an_old_python in (CHECKOUT / ".ci" / "run").read_text()


def test_the_harness_names_no_variant() -> None:
    """Except for the one that tokenizers are trained with: they import what they are about."""
    variants = set(registry.cards("variant"))
    for path in sources("harness/**/*.py"):
        allowed = {"flat"} if path.parent.name == "tokenizers" else set()
        texts = {node.value for node in parsed(path) if isinstance(node, ast.Constant)}
        assert texts & (variants - allowed) == set(), named(path)

        modules = {module for module in imported(path) if not module.startswith(PARTS)}
        stages = {module.split(".")[1] for module in modules if module.startswith("variants")}
        allowed |= {"contract", "words", "vetoes", "extending", "seeds"}
        assert stages <= allowed, named(path)


def test_a_file_is_no_longer_than_a_reader_bears() -> None:
    stages = set()
    for card in registry.variants().values():
        if card.part and "series" in card.tags:
            module = card.target.partition(":")[0]
            stages.add(CHECKOUT.joinpath(*module.split(".")).with_suffix(".py"))
    assert stages

    for path in [*sources("variants/**/*"), *sources("harness/**/*")]:
        # by people, and not by Cython
        if path.suffix in (".py", ".pyx", ".pxd", ".pyi", ".hpp", ".h"):
            longest = LONGEST_STAGE if path in stages else LONGEST_FILE
            assert path.read_text().count("\n") <= longest, named(path)
