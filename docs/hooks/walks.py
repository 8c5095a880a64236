"""How far one has to walk in `harness/` to follow what it does: calls from module to module, counted.

    python docs/hooks/walks.py                 the checkout that this file lies in
    python docs/hooks/walks.py CHECKOUT        another one, of another commit for instance
    python docs/hooks/walks.py --write         this one, and what is counted goes into the page "How it is built"
    python docs/hooks/walks.py --pairs         this one, and the functions that are called most often across modules

Each walk runs in a process of its own. A crossing is a call of a function from a function of another module of
`harness`, straight or through a library; a module is touched where one of its functions runs. What the measured
processes do is not in it.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent.parent
BUILT = REPOSITORY / "docs/explanation/house.md"
"""The page "How it is built"."""
SMALL_FILE = "the cat sat on the mat. the cat sat on the hat. low lower lowest newest widest\n" * 3
RECORDS = "tests/records/repeats.jsonl"
"""A few records, which were there before the rooms were."""
SMALL_CARD = {
    "like": "usual",
    "corpora": {
        "letters": {"say": ["data=random_text", "data.source.bytes=2000", "vocab_size=290"]},
        **{corpus: {"say": []} for corpus in ("ties", "runs", "smallest_ids", "smallest_characters")},
    },
    "limits": {"wall": 300},
}
"""A gate that looks at one small corpus."""
RUN, PICTURE, PAGE, GATE = "a run", "records to a picture", "records to the page", "a gate run"
COMMANDS: dict[str, tuple[str, list[str]]] = {
    RUN: ("harness", ["data.path=text.txt", "vocab_size=270", "results=results"]),
    PICTURE: ("harness.plot", ["{records}", "--kind", "ladder", "--output", "ladder.svg"]),
    PAGE: ("harness.report", ["{records}", "--output", "page.html"]),
    GATE: ("harness.gate", ["heap", "--accept", "--card", "card.yaml", "--output", "gate"]),
}


MOST_PAIRS = 60


@dataclass(frozen=True)
class Walk:
    """How many calls went from one module to another, and how many modules took part."""

    crossings: int
    modules: int
    pairs: Mapping[str, int] = field(default_factory=dict, kw_only=True, compare=False)
    """How often each function called each of another module."""


class Watched:
    """What `sys.setprofile` tells of one process."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.crossings: Counter[str] = Counter()
        self.modules: set[str] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        # The bodies of modules and classes are no calls that anybody reads on his way.
        if event != "call" or not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            return
        module = self.named(frame)
        if module is None:
            return
        self.modules.add(module)
        caller = self.caller(frame)
        if caller is not None and self.named(caller) != module:
            names = [f"{self.named(each)}.{each.f_code.co_qualname}" for each in (caller, frame)]
            self.crossings[" -> ".join(names)] += 1

    def caller(self, frame: FrameType) -> FrameType | None:
        """The frame that called, straight or through libraries; None where it was in no module of the package."""
        above = frame.f_back
        while above is not None and self.named(above) is None:
            above = above.f_back
        return above

    def named(self, frame: FrameType) -> str | None:
        """The module that a frame is of, if it is one of the package."""
        name = frame.f_globals.get("__name__") or ""
        return name if name.partition(".")[0] == self.package else None


def watched(do: Callable[[], Any], package: str) -> Walk:
    """Do it, and count the calls between the modules of a package."""
    watch = Watched(package)
    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        do()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return Walk(watch.crossings.total(), len(watch.modules), pairs=watch.crossings)


def here(name: str) -> None:
    """Make one walk in this process, in an empty folder, and write what was counted into `walk.json` there."""
    module, arguments = COMMANDS[name]
    if hasattr(importlib.import_module(module), "__path__"):
        module += ".__main__"
    main = importlib.import_module(module).main
    codes: list[int] = []
    walk = watched(lambda: codes.append(main(arguments_of(arguments))), "harness")
    Path("walk.json").write_text(json.dumps({"code": codes[0], "walk": vars(walk)}))


def arguments_of(arguments: Sequence[str]) -> list[str]:
    return [argument.format(records=Path(os.environ["CHECKOUT"], RECORDS)) for argument in arguments]


def walk(name: str, checkout: Path = REPOSITORY) -> Walk:
    """Make one walk through a checkout in a process of its own. Raises RuntimeError if the command fails."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "text.txt").write_text(SMALL_FILE)
        (place / "card.yaml").write_text(json.dumps(SMALL_CARD))
        environment = {
            **os.environ,
            "PYTHONPATH": f"{checkout}{os.pathsep}{Path(__file__).parent}",
            "BPE_HARNESS_CACHE": str(place / "cache"),
            "CHECKOUT": str(checkout),
        }
        program = f"import walks; walks.here({name!r})"
        ended = subprocess.run(
            [sys.executable, "-c", program], cwd=place, env=environment, capture_output=True, text=True
        )
        counted: dict[str, Any] = (
            json.loads((place / "walk.json").read_text()) if ended.returncode == 0 else {"code": ended.returncode}
        )
        if counted["code"] != 0:
            raise RuntimeError(f"{name} in {checkout} ended with {counted['code']}: {ended.stdout}{ended.stderr}")
    return Walk(**counted["walk"])


def with_counts(page: str, counts: Mapping[str, Walk]) -> str:
    """The page with these counts in its table, beside those of before.

    >>> with_counts("| a run | 9 | 8 | 7 | 6 |", {"a run": Walk(5, 4)})
    '| a run | 9 | 5 | 7 | 4 |'
    """
    for name, walked in counts.items():
        page = row_of(name).sub(rf"\g<1>{walked.crossings}\g<2>{walked.modules} |", page)
    return page


def row_of(name: str) -> re.Pattern[str]:
    """The row of a walk in the page's table, up to each of its two counts."""
    return re.compile(rf"^(\| {re.escape(name)} \| \d+ \| )\d+( \| \d+ \| )\d+ \|$", re.MULTILINE)


def main(arguments: Sequence[str]) -> None:
    checkout = Path(arguments[0]).resolve() if arguments and not arguments[0].startswith("--") else REPOSITORY
    counts = {}
    for name in COMMANDS:
        counts[name] = walk(name, checkout)
        print(f"{name}: {counts[name].crossings} crossings, {counts[name].modules} modules")  # noqa: T201
        if arguments == ["--pairs"]:
            for pair, times in Counter(counts[name].pairs).most_common(MOST_PAIRS):
                print(f"{times:6} {pair}")  # noqa: T201
    if arguments == ["--write"]:
        BUILT.write_text(with_counts(BUILT.read_text(), counts))


if __name__ == "__main__":
    main(sys.argv[1:])
