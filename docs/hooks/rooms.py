"""The rooms of `harness/` and what they import, read from the source; and the picture of them.

Who may import whom is held by tests/test_layers.py. Here is who does.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import itertools
import textwrap
from collections.abc import Iterator, Mapping, Sequence, Set
from html import escape
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parent.parent.parent
COMMANDS = "commands"
"""What lies at the root of `harness/`, and each `__main__` of a room: what a user calls."""
ALGORITHMS = "variants"
"""The folder beside `harness/` that every room may import the contract from."""
MEASURED_PROCESS = "worker"
"""The one room whose `__main__` is a part of it and no command."""

Imports = Mapping[str, Set[str]]
"""Every box of the picture with the boxes that it imports from."""


class Said(NamedTuple):
    """What a room's docstring says: what it is for, what comes in, what goes out."""

    purpose: str
    comes_in: str
    goes_out: str


# What the source says


def rooms(repository: Path = REPOSITORY) -> list[str]:
    """The folders of `harness/` that are packages."""
    return sorted(path.parent.name for path in (repository / "harness").glob("*/__init__.py"))


def imports(repository: Path = REPOSITORY) -> dict[str, set[str]]:
    """Who imports from whom: rooms, the commands above them, the algorithms beside."""
    there = rooms(repository)
    drawn: dict[str, set[str]] = {box: set() for box in [COMMANDS, *there, ALGORITHMS]}
    for path in sorted((repository / "harness").rglob("*.py")):
        parts = path.relative_to(repository).parts
        own = parts[1] if len(parts) > 2 else COMMANDS
        if path.name == "__main__.py" and own != MEASURED_PROCESS:
            own = COMMANDS
        for module in imported(path.read_text()):
            first, _, rest = module.partition(".")
            if first == ALGORITHMS:
                drawn[own].add(ALGORITHMS)
            elif first == "harness":
                drawn[own].add(rest.partition(".")[0] if rest.partition(".")[0] in there else COMMANDS)
    return {box: others - {box} for box, others in drawn.items()}


@functools.cache
def imported(source: str) -> tuple[str, ...]:
    """Every module that a file imports anywhere in it, for type checkers only too; `from a import b` is `a.b`."""
    modules: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules += [f"{node.module}.{alias.name}" for alias in node.names]
    return tuple(modules)


def said(room: str, repository: Path = REPOSITORY) -> Said:
    """What the docstring of a room says of it. Raises ValueError if it does not say all three."""
    text = ast.get_docstring(ast.parse((repository / "harness" / room / "__init__.py").read_text())) or ""
    purpose, _, _ = text.partition("\n\n")
    _, marked, exchanged = text.partition("\n\nIn: ")
    comes_in, out, goes_out = " ".join(exchanged.split()).partition(" Out: ")
    if not (purpose and marked and out):
        raise ValueError(f"harness/{room}/__init__.py does not say what the room is for, what comes In: and goes Out:")
    return Said(" ".join(purpose.split()), comes_in, first_sentence(goes_out))


def first_sentence(text: str) -> str:
    """The text up to its first full stop.

    >>> first_sentence("A file. It is read once.")
    'A file.'
    """
    return text.partition(". ")[0].rstrip(".") + "."


# Which arrows are drawn, and on which floor a box stands


def reached(imports: Imports) -> dict[str, set[str]]:
    """Every box with all that it imports from, straight or through others.

    >>> sorted(reached({"a": {"b"}, "b": {"c"}, "c": set()})["a"])
    ['b', 'c']
    """
    below: dict[str, set[str]] = {}
    for box in graphlib.TopologicalSorter(imports).static_order():
        below[box] = set(imports[box]).union(*(below[other] for other in imports[box]))
    return below


def arrows(imports: Imports) -> dict[str, set[str]]:
    """The imports that no other implies: without those from what an imported box imports from anyway.

    >>> arrows({"a": {"b", "c"}, "b": {"c"}, "c": set()})
    {'a': {'b'}, 'b': {'c'}, 'c': set()}
    """
    below = reached(imports)
    return {
        box: {other for other in others if not any(other in below[between] for between in others)}
        for box, others in imports.items()
    }


def floors(imports: Imports) -> list[list[str]]:
    """The boxes from the highest floor to the lowest: each stands as low as what it imports from lets it.

    >>> floors({"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set()})
    [['a'], ['b', 'c'], ['d']]
    """
    height: dict[str, int] = {}
    for box in graphlib.TopologicalSorter(imports).static_order():
        height[box] = 1 + max((height[other] for other in imports[box]), default=-1)
    return [[box for box in imports if height[box] == floor] for floor in range(max(height.values()), -1, -1)]


# The picture

WIDTH = 960
BOX = 222
GAP = 22
NAME = 22
LINE = 16
BETWEEN_FLOORS = 44
LETTERS = 33
"""So many letters of the small text fit into a line of a box."""
ABOUT = {
    COMMANDS: "What a user calls: python -m harness, harness.table, harness.gate and the others.",
    ALGORITHMS: "The algorithms. The harness imports their contract and their words, and no algorithm.",
}


class Place(NamedTuple):
    """Where a box stands; an arrow that passes a floor has a place of no width there."""

    left: float
    top: float
    width: float
    height: float


def picture(repository: Path = REPOSITORY) -> str:
    """The rooms and arrows as an SVG drawing, in the colours of the page that it stands in."""
    who = imports(repository)
    shown = arrows(who)
    paths = [[box, *lanes, other] for box, other, lanes in passed(floors(who), shown)]
    texts = {box: text_of(box, sorted(who[box] - shown[box]), repository) for box in who}
    rows = ordered(with_lanes(floors(who), paths), paths)
    places = placed(rows, texts)
    height = max(place.top + place.height for place in places.values()) + 1
    drawn = [box_drawn(box, places[box], texts[box]) for box in who]
    drawn += [arrow_drawn(path, places, paths) for path in paths]
    return (
        f'<svg class="rooms" viewBox="0 0 {WIDTH} {height:g}" role="img" '
        'aria-label="The rooms of the harness, and which imports from which">'
        '<defs><marker id="rooms-head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path class="head" d="M0,0.5 L8,4 L0,7.5 z"/></marker></defs>'
        f"{''.join(drawn)}</svg>"
    )


def text_of(box: str, implied: Sequence[str], repository: Path) -> list[str]:
    """The small text of a box: what it is for, and what it imports from that no arrow shows."""
    about = ABOUT[box] if box in ABOUT else said(box, repository).purpose
    also = textwrap.wrap(f"Also from: {', '.join(implied)}", LETTERS) if implied else []
    return [*textwrap.wrap(about, LETTERS), *also]


def passed(floors: Sequence[Sequence[str]], arrows: Imports) -> Iterator[tuple[str, str, list[str]]]:
    """Every arrow: its two boxes, and the names of its places on the floors between them.

    >>> list(passed([["a"], ["b"], ["c"]], {"a": {"c"}, "b": set(), "c": set()}))
    [('a', 'c', ['a to c, past floor 1'])]
    """
    floor = {box: number for number, boxes in enumerate(floors) for box in boxes}
    for box, others in arrows.items():
        for other in sorted(others):
            between = range(floor[box] + 1, floor[other])
            yield box, other, [f"{box} to {other}, past floor {number}" for number in between]


def with_lanes(floors: Sequence[Sequence[str]], paths: Sequence[Sequence[str]]) -> list[list[str]]:
    """The floors with a place for every arrow that passes them."""
    rows = [list(boxes) for boxes in floors]
    for path in paths:
        above = next(number for number, boxes in enumerate(floors) if path[0] in boxes)
        for number, lane in enumerate(path[1:-1], above + 1):
            rows[number].append(lane)
    return rows


def ordered(rows: Sequence[Sequence[str]], paths: Sequence[Sequence[str]]) -> list[list[str]]:
    """Each floor in the order of what its arrows come from, so that few of them cross.

    >>> ordered([["a", "b"], ["c", "d"]], [["a", "d"], ["b", "c"]])
    [['a', 'b'], ['d', 'c']]
    """
    steps = [step for path in paths for step in itertools.pairwise(path)]
    sorted_rows: list[list[str]] = []
    place: dict[str, float] = {}
    for row in rows:
        above = {item: [place[start] for start, end in steps if end == item] for item in row}
        middle = {item: sum(starts) / len(starts) if starts else 0.5 for item, starts in above.items()}
        sorted_rows.append(sorted(row, key=middle.__getitem__))
        place |= {item: (number + 0.5) / len(row) for number, item in enumerate(sorted_rows[-1])}
    return sorted_rows


def placed(rows: Sequence[Sequence[str]], texts: Mapping[str, Sequence[str]]) -> dict[str, Place]:
    """Where everything stands: each floor in the middle, its boxes as high as the fullest needs."""
    places = {}
    top = 1.0
    for row in rows:
        height = NAME + 14 + LINE * max(len(texts[box]) for box in row if box in texts)
        width = sum(BOX for box in row if box in texts) + GAP * (len(row) - 1)
        left = (WIDTH - width) / 2
        for item in row:
            places[item] = Place(left, top, BOX if item in texts else 0, height)
            left += places[item].width + GAP
        top += height + BETWEEN_FLOORS
    return places


def box_drawn(box: str, place: Place, text: Sequence[str]) -> str:
    name = box if box == COMMANDS else f"{box}/"
    left, top = place.left + 12, place.top + NAME
    lines = "".join(
        f'<text x="{left:g}" y="{top + LINE * number:g}">{escape(line)}</text>' for number, line in enumerate(text, 1)
    )
    kind = "room outside" if box in ABOUT else "room"
    return (
        f'<g class="{kind}" id="room-{box}"><rect x="{place.left:g}" y="{place.top:g}" width="{place.width:g}" '
        f'height="{place.height:g}" rx="6"/><text class="name" x="{left:g}" y="{top:g}">{name}</text>{lines}</g>'
    )


def arrow_drawn(path: Sequence[str], places: Mapping[str, Place], paths: Sequence[Sequence[str]]) -> str:
    """An arrow down from a box to what it imports from, past the floors between."""
    leaving = sorted((other for other in paths if other[0] == path[0]), key=lambda other: places[other[1]].left)
    arriving = sorted((other for other in paths if other[-1] == path[-1]), key=lambda other: places[other[-2]].left)
    start, end = places[path[0]], places[path[-1]]
    across, down = shared(start, leaving.index(path), len(leaving)), start.top + start.height
    curve = f"M{across:g},{down:g}"
    for lane in path[1:-1]:
        place = places[lane]
        curve += f" {bend(across, down, place.left, place.top)} V{place.top + place.height:g}"
        across, down = place.left, place.top + place.height
    curve += " " + bend(across, down, shared(end, arriving.index(path), len(arriving)), end.top)
    return f'<path class="arrow" data-from="{path[0]}" data-to="{path[-1]}" d="{curve}" marker-end="url(#rooms-head)"/>'


def shared(place: Place, number: int, arrows: int) -> float:
    """Where on a side of a box the arrow of that number stands, of so many."""
    return place.left + place.width * (number + 1) / (arrows + 1)


def bend(across: float, down: float, to: float, end: float) -> str:
    half = (down + end) / 2
    return f"C{across:g},{half:g} {to:g},{half:g} {to:g},{end:g}"


# What the page shows


def drawn_for_a_page() -> str:
    """The picture as a part of a page."""
    return f'<div class="rooms">{picture()}</div>'


def table() -> str:
    """A row for each room, from the highest floor to the lowest: what it is for, what comes in, what goes out."""
    listed = [box for boxes in floors(imports()) for box in boxes if box not in ABOUT]
    rows = []
    for room in listed:
        purpose, comes_in, goes_out = said(room)
        cells = [f"[`{room}/`](../../harness/{room}/__init__.py)", purpose, comes_in, goes_out]
        rows.append(f"| {' | '.join(cell.rstrip('.') for cell in cells)} |")
    return "\n".join(["| room | what it is for | what comes in | what goes out |", "|---|---|---|---|", *rows])
