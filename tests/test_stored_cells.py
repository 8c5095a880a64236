"""Each stored table has the cells that the commands on its page plan."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from shown import commands
from workbench import CHECKOUT

from harness import corpora
from harness.common import registry
from harness.common.cards import DataCard
from harness.corpora.files import CorpusFile
from harness.measure.process import Answer
from harness.records.file import read_records
from harness.records.schema import Cell
from harness.results.selection import latest
from harness.runs.cells import Block
from harness.runs.jobs import Counted, Trained, trained_cell
from harness.runs.plan import planned
from harness.worker.calling import OWN

PAGES = [*CHECKOUT.glob("docs/explanation/*.md"), *CHECKOUT.glob("results/*/*.md")]
STORED = re.compile(r" results=(results/[\w/]+)(?: |$)")
Key = tuple[Any, ...]
ANSWER = Answer("ok")


def experiments() -> dict[str, list[list[str]]]:
    """The overrides of the experiments on the pages, by the folder of their records."""
    found: dict[str, list[list[str]]] = {}
    for page in PAGES:
        for command in "\n".join(commands(page)).replace("\\\n", " ").splitlines():
            place = STORED.search(command)
            # superbpe is two commands in one, and a plan shows the second
            is_plain = "experiment=" in command and not re.search(r"\$|=superbpe", command)
            if place and is_plain and list((CHECKOUT / place[1]).glob("records.jsonl*")):
                overrides = shlex.split(command)[3:]
                found.setdefault(place[1], []).append(overrides)
    return found


COMMANDS = experiments()


def key(cell: Cell) -> Key:
    """What must be the same; of parameters, those that the variant still has."""
    existing = registry.variants()[str(cell.variant)].params
    kept = {name: value for name, value in cell.params.items() if name in existing}
    name = str(cell.data.name).partition("(")[0]
    name = name if name in registry.cards("data") else "file"
    words = cell.counting, cell.threads, cell.pattern, cell.min_count
    params = json.dumps(kept, sort_keys=True)
    return cell.variant, params, name, cell.vocab_size, *words, cell.tie_break


def stand_in(card: DataCard, *_: Any) -> CorpusFile:
    """A corpus that nobody has to fetch or make, for a plan needs no more than its name."""
    return CorpusFile(card.name, Path("text"), 1, "0" * 64, corpora.is_table(card))


def test_every_folder_of_an_experiment_is_compared() -> None:
    assert {"results/readme/ladder", "results/series", "results/peers"} <= COMMANDS.keys()


def folder_of(name: str) -> Any:
    """The folder, as a slow test if many cells are planned for it."""
    return pytest.param(name, marks=[] if "readme" in name else [pytest.mark.slow])


@pytest.mark.parametrize("folder", list(map(folder_of, COMMANDS)))
def test_a_stored_table_has_the_cells_that_its_commands_plan(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpora, "prepare", stand_in)
    expected: set[Key] = set()
    for overrides in COMMANDS[folder]:
        given = [one for one in overrides if not one.startswith("data.path=")]
        if given != overrides and not any(one.startswith("data=") for one in given):
            given.append("data=file")
        for cell in planned(given).cells:
            trained = Trained(cell, Block(0), "", ANSWER, Counted(ANSWER))
            expected.add(key(trained_cell(trained)))

    records = latest(read_records([CHECKOUT / folder]))
    stored = {key(record.cell) for record in records if record.trains}
    if any(cell[-1] == OWN for cell in expected):  # each trainer's own is in the records
        stored, expected = ({cell[:-1] for cell in cells} for cells in (stored, expected))
    assert stored <= expected
    for missing in expected - stored:  # a trainer that is measured only where it is installed
        assert registry.OUTSIDE in registry.variants()[missing[0]].tags, missing
