"""Two stages in one command: what the first has learned, the second goes on from, and one table shows both.

`first_stage.pattern=NAME` asks for it, which an experiment does. The first stage is the same run with that pattern, its
own size and no veto; its tokenizer is what `extend=` would name for the second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from harness.common.errors import OK, Refusal
from harness.records.file import Record
from harness.runs.cells import of_card_unless_said
from harness.runs.command_line import Composed, compose
from harness.runs.running import Show, plan_of, run_plan

OF_THE_SECOND = ("vocab_size", "pattern", "extend", "inherited", "veto", "save", "plan")
"""What is said of the second stage, or of the command, and not of the first."""
NAME = "first_stage"
"""Of the folder with the first stage's tokenizer, inside that of `save=` if there is one."""


def has_stages(composed: Sequence[Composed]) -> bool:
    return any(each.config["first_stage"]["pattern"] is not None for each in composed)


def run_stages(
    arguments: Sequence[str], composed: Sequence[Composed], folder: Path, show: Show, console: Console
) -> int:
    """Run the first stage, then the second on top of it, and show the records of both. Returns the exit code."""
    if len(composed) > 1:
        raise Refusal("two stages are one run after the other; name one data set and one value of everything")
    config = composed[0].config
    if config["extend"] is not None or config["seeds"] != "none":
        raise Refusal(
            "the second stage extends the first; leave out extend= and seeds=, or set first_stage.pattern=null"
        )
    if config["plan"]:
        raise Refusal("the second stage is planned when the first is there; leave out plan=true")
    first_records: list[Record] = []
    first = made_of(first_arguments(arguments, config, place_of(config, folder)))
    code = run_plan(plan_of(first, arguments), folder / "1", lambda records, _: first_records.extend(records), console)
    if code != OK:
        show(first_records, ["the first stage failed, so there is no second"])
        return code
    learned = learned_at(place_of(config, folder))
    second = made_of([*arguments, f"extend={learned}", "first_stage.pattern=null"])
    return run_plan(
        plan_of(second, arguments),
        folder / "2",
        lambda records, notes: show([*first_records, *records], notes),
        console,
    )


def made_of(arguments: Sequence[str]) -> list[Composed]:
    composed = compose(arguments)
    assert composed is not None, "the same arguments asked for no information before"
    return composed


def place_of(config: Mapping[str, Any], folder: Path) -> Path:
    """Where the first stage's tokenizer is written."""
    return (folder if config["save"] is None else Path(config["save"])) / NAME


def first_arguments(arguments: Sequence[str], config: Mapping[str, Any], place: Path) -> list[str]:
    """The command line of the first stage: half as large as the whole, if nothing is said of its size."""
    stage = config["first_stage"]
    special_tokens = of_card_unless_said(config, "special_tokens")
    size = stage["vocab_size"] or max(of_card_unless_said(config, "vocab_size") // 2, 256 + len(special_tokens))
    keys = [(argument, argument.lstrip("+").partition("=")[0].partition(".")[0]) for argument in arguments]
    kept = [argument for argument, key in keys if key not in (*OF_THE_SECOND, "first_stage")]
    own = [f"pattern={stage['pattern']}", f"vocab_size={size}", f"save={place}"]
    return [*kept, *own, "inherited=kept", "veto=none", "first_stage.pattern=null"]


def learned_at(place: Path) -> Path:
    """The tokenizer that the first stage has saved; of several variants, which come to the same, the first."""
    saved = [place, *sorted(each for each in place.iterdir() if each.is_dir())]
    return next(each for each in saved if (each / "merges.txt").is_file())
