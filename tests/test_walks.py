"""The walks through the packages of the harness are counted right."""

from __future__ import annotations

import os
import re
import sys
from types import ModuleType

import pytest
import walks
from workbench import CHECKOUT

pytestmark = pytest.mark.xdist_group("sources")  # all of them are parsed once
PAGE = CHECKOUT / "docs/explanation/house.md"


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
