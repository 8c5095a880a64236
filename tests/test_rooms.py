"""The picture of the rooms is what the imports say, and the walks through them are counted right."""

from __future__ import annotations

import graphlib
import os
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
import rooms
import walks
from workbench import CHECKOUT

pytestmark = pytest.mark.xdist_group("sources")  # all of them are parsed once
PAGE = CHECKOUT / "docs/explanation/house.md"
IMPORT = re.compile(r"^\s*(?:from|import) (harness|variants)\b\.?(\w*)(?: import (\w+))?", re.MULTILINE)


def arrows_drawn(picture: str) -> dict[str, set[str]]:
    """What a reader of the picture sees: where arrows lead, and what stands in a box after "Also from"."""
    seen: dict[str, set[str]] = {}
    for box, content in re.findall(r'<g class="room[^"]*" id="room-(\w+)">(.*?)</g>', picture):
        text = " ".join(re.findall(r"<text x[^>]*>([^<]*)</text>", content))
        _, _, also = text.partition("Also from: ")
        seen[box] = set(filter(None, also.split(", ")))
    for start, end in re.findall(r'data-from="(\w+)" data-to="(\w+)"', picture):
        seen[start].add(end)
    return seen


def house(folder: Path, **sources: str) -> Path:
    """A checkout with these rooms, each with a line of code."""
    for room, source in sources.items():
        (folder / "harness" / room).mkdir(parents=True)
        (folder / "harness" / room / "__init__.py").write_text(
            f'"""About {room}: this.\n\nIn: a. Out: b.\n"""\n{source}\n'
        )
    return folder


def test_the_picture_is_what_the_imports_say() -> None:
    """Held against a reading of the lines that begin with `import` or `from`, which knows nothing of syntax."""
    there = {path.parent.name for path in (CHECKOUT / "harness").glob("*/__init__.py")}
    told: dict[str, set[str]] = {box: set() for box in (*there, "commands", "variants")}
    for path in (CHECKOUT / "harness").rglob("*.py"):
        own = path.relative_to(CHECKOUT).parts[1]
        own = own if own in there and (path.name != "__main__.py" or own == "worker") else "commands"
        for package, below, name in IMPORT.findall(path.read_text()):
            other = "variants" if package == "variants" else below or name
            told[own].add(other if other in there or other == "variants" else "commands")
    assert len(there) > 5
    assert arrows_drawn(rooms.picture()) == {box: others - {box} for box, others in told.items()}


def test_another_import_is_another_arrow(tmp_path: Path) -> None:
    before = house(tmp_path / "before", low="", high="import harness.low")
    after = house(tmp_path / "after", low="", high="import harness.low\nfrom variants import contract")
    assert arrows_drawn(rooms.picture(before))["high"] == {"low"}
    assert arrows_drawn(rooms.picture(after))["high"] == {"low", "variants"}


def test_an_import_for_type_checkers_is_one_too_and_a_circle_cannot_be_drawn(tmp_path: Path) -> None:
    only_types = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from harness import high"
    circle = house(tmp_path, low=only_types, high="from harness.low import what")
    with pytest.raises(graphlib.CycleError):
        rooms.picture(circle)


def test_an_arrow_that_passes_a_floor_goes_between_the_boxes_there(tmp_path: Path) -> None:
    sources = {"low": "", "middle": "import harness.low", "aside": "", "high": "import harness.middle, harness.aside"}
    picture = rooms.picture(house(tmp_path, **sources))
    boxes = {
        name: (float(x), float(width))
        for name, x, width in re.findall(r'id="room-(\w+)"><rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', picture)
    }
    assert arrows_drawn(picture)["high"] == {"middle", "aside"}
    (curve,) = re.findall(r'data-from="high" data-to="aside" d="([^"]+)"', picture)
    passes = [float(across) for across in re.findall(r" ([\d.]+),[\d.]+ V", curve)]
    left, width = boxes["middle"]
    assert len(passes) == 1
    assert not left <= passes[0] <= left + width


def test_a_room_that_does_not_say_what_it_is_for_is_named(tmp_path: Path) -> None:
    folder = house(tmp_path, silent="")
    (folder / "harness" / "silent" / "__init__.py").write_text('"""A room."""\n')
    with pytest.raises(ValueError, match=r"harness/silent/__init__\.py does not say"):
        rooms.picture(folder)


def test_every_room_has_a_row_and_what_stands_there_is_its_docstring() -> None:
    table = rooms.table()
    assert table.count("\n") == len(rooms.rooms()) + 1
    for room in rooms.rooms():
        purpose, comes_in, goes_out = rooms.said(room)
        assert f" | {purpose.rstrip('.')} | {comes_in.rstrip('.')} | {goes_out.rstrip('.')} |" in table


# The walks


def module(name: str, source: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, made)
    exec(source, made.__dict__)
    return made


def test_a_crossing_is_a_call_from_one_module_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    module("house.low", "def lowest(): return 1\ndef low(): return lowest()", monkeypatch)
    module("house.unused", "def unused(): return 1", monkeypatch)
    calls = "def high():\n    low(); low()\n    functools.reduce(add, [1, 2])\ndef add(a, b): return low()"
    high = module("house.high", f"import functools\nfrom house.low import low\n{calls}", monkeypatch).high
    assert walks.watched(high, "house") == walks.Walk(crossings=3, modules=2)
    assert walks.watched(high, "another") == walks.Walk(0, 0)


def test_a_call_by_way_of_a_library_is_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    low = "import contextlib\n@contextlib.contextmanager\ndef low():\n    yield"
    module("house.low", low, monkeypatch)
    high = module("house.high", "from house.low import low\ndef high():\n    with low(): pass", monkeypatch).high
    assert walks.watched(high, "house") == walks.Walk(crossings=2, modules=2)  # it is entered and left


@pytest.mark.slow
@pytest.mark.parametrize("name", walks.COMMANDS)
def test_the_page_says_what_the_walks_count(name: str) -> None:
    """Within a tenth: another release of Python or of a library calls some functions once more or less.

    It is the shortest of three: on a busy machine what waits looks around more often.
    """
    (row,) = re.findall(rf"^\| {name} \| \d+ \| (\d+) \| \d+ \| (\d+) \|$", PAGE.read_text(), re.MULTILINE)
    told = walks.Walk(*map(int, row))
    counted = min((walks.walk(name) for _ in range(3)), key=lambda walk: walk.crossings)
    assert counted.crossings == pytest.approx(told.crossings, rel=0.1)
    assert counted.modules == pytest.approx(told.modules, rel=0.1)


def test_a_test_of_a_group_bears_its_name_where_several_processes_share_the_tests(
    request: pytest.FixtureRequest,
) -> None:
    """Else each of them would make what the group is to make once, and nobody would notice."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        assert request.node.nodeid.endswith("@sources")
