"""One command: a plan is measured task by task, recorded and shown; two stages are two such
runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from harness.common import registry
from harness.common.cards import PatternCard
from harness.common.errors import MISMATCH, OK, UNMEASURED, Refusal
from harness.common.files import copy_tree, remove_tree, temporary_folder
from harness.common.printing import print_stderr
from harness.common.units import count_text, counted_text
from harness.common.values import one_of
from harness.proof import BY_DESIGN, PROVED
from harness.runs.cells import Plan
from harness.runs.overrides import Config, compose, dated
from harness.runs.plan import card_default, make_plan, show_plan

if TYPE_CHECKING:
    from harness.records.file import Record

Show = Callable[[Sequence["Record"], Sequence[str]], None]
"""Called with the records of a run, those of its counters among them, and with notes for their
reader.
"""


def run_command(arguments: Sequence[str], show: Show) -> int:
    """Measure what the arguments say, in two stages if they ask for that; returns the exit code."""
    arguments = dated(arguments)
    configs = compose(arguments)
    with temporary_folder() as folder:
        if any(config.first_stage.pattern is not None for config in configs):
            return run_stages(arguments, configs, folder, show)
        return run_plan(make_plan(configs, arguments), folder, show)


def run_plan(plan: Plan, folder: Path, show: Show) -> int:
    """Measure all cells task by task, prove, store and show them; returns the exit code.

    `show` is called only if a counter counted any words; a plan is printed.
    """
    if plan.settings.plan:
        show_plan(plan)
        return OK
    # late: they are slow to import, and a plan needs neither
    from harness.runs.blocks import measure_task, profile_trainers
    from harness.runs.session import session_of

    profiled = True
    with session_of(plan, folder) as session:
        try:
            for task in plan.tasks:
                if len(plan.tasks) > 1:
                    cell, trainers = task.cells[0], counted_text(len(task.cells), "trainer")
                    about = f"{cell.reading.file.name}, vocabulary {count_text(cell.vocab_size)}, {trainers}"
                    print_stderr(
                        f"task {count_text(task.number + 1)} of {count_text(len(plan.tasks))}: {about}"
                    )
                measure_task(task, session)
                profiled = profile_trainers(task, session) and profiled
                remove_tree(session.folder / "words")
        finally:  # neither a full disk nor an interruption costs the table of what was measured
            records = session.log.records()
            counted = any(record.cell.data.words is not None for record in records)
            if counted:
                show(records, [*session.notes, *notes_below_table(records)])
        session.log.finish()
        session.imported.forget()
    if not counted:
        reasons = {str(record.measurement.reason) for record in records if record.trains}
        raise Refusal("; ".join(sorted(reasons)), exit_code(records))
    code = exit_code(records)
    return code if profiled or code != OK else UNMEASURED


def exit_code(records: Sequence[Record]) -> int:
    """MISMATCH before UNMEASURED before OK.

    A variant that cannot run here is a fault only if there is no other. Merges that nothing proves
    are never right: MISMATCH if others of their task differ.
    """
    if any(record.status == "mismatch" for record in records):
        return MISMATCH

    trained, unproved = [record for record in records if record.trains], False
    statuses = {record.status for record in trained}
    lists = defaultdict[Any, set[str | None]](set)
    for record in trained:
        kind = record.identity and record.identity.kind
        if record.status == "ok" and kind != BY_DESIGN:
            unproved |= kind not in PROVED
            lists[record.cell.task, record.cell.tie_break].add(record.measurement.merges_sha256)
    if unproved and any(len(digests) > 1 for digests in lists.values()):
        return MISMATCH

    if unproved or statuses - {"ok", "skipped"} or "ok" not in statuses:
        return UNMEASURED
    return OK


def notes_below_table(records: Sequence[Record]) -> list[str]:
    """Return what is not in the table and changes how to read it."""
    lines = dict[str, None]()
    counters = [record.cell for record in records if not record.trains]
    wide = {cell.counting for cell in counters if cell.takes_threads}

    for record in records:
        cell = record.cell
        if not record.trains and (record.measurement.tallies or {}).get("fell_back_to_regex"):
            slow = f"{cell.data.name} was counted by `regex`, which takes some fifty times as long"
            lines[f"counting={cell.counting} has no compiled form of this pattern: {slow}"] = None
        is_narrow = cell.takes_threads is False and cell.counting not in wide
        if record.trains and is_narrow and (cell.threads or 1) > 1:
            why = "neither the counter nor the trainer takes any"
            lines[f"threads above 1 change nothing for {cell.variant}: {why}"] = None
    return list(lines)


# Two stages. `first_stage.pattern=NAME` asks for them, which an experiment does. The first stage is
# the same run with that pattern, its own size and no veto; the second extends its tokenizer.


def run_stages(
    arguments: Sequence[str], configs: Sequence[Config], folder: Path, show: Show
) -> int:
    """Run the first stage, then the second on top of it, and show the records of both. Returns the
    exit code.
    """
    from harness.tokenizers.folder import check_free, new_folder  # late, as few runs save any

    if len(configs) > 1 or configs[0].instances:
        raise Refusal(
            "two stages are one run after the other; pass one data set and one value of everything"
        )
    config = configs[0]
    if config.extend is not None or config.seeds != "none":
        raise Refusal("the second stage extends the first; leave out extend= and seeds=")
    if config.plan:
        raise Refusal("the second stage is planned when the first is there; leave out plan=true")
    saved = folder / "first_stage"
    beside = None if config.save is None else Path(config.save, "first_stage")
    if beside is not None:
        check_free(beside, overwrite=config.overwrite)
    records: list[Record] = []
    notes = list[str]()

    def hold(measured: Sequence[Record], lines: Sequence[str]) -> None:
        records.extend(measured)
        notes.extend(lines)

    first = make_plan([first_of(config, saved)], arguments)
    try:
        code = run_plan(first, folder / "1", hold)
        if code != OK:
            notes.append("the first stage failed; the second was skipped")
            return code
        # of several variants, whose tokenizers are equal, the first
        extended = min(saved.rglob("merges.txt")).parent
        second = structs.replace(config, extend=str(extended))
        code = run_plan(make_plan([second], arguments), folder / "2", hold)
    finally:
        if records:
            show(records, notes)
    if beside is not None:  # not before the end, so that an interrupted command can go on
        with new_folder(beside, overwrite=config.overwrite) as part:
            copy_tree(extended, part)
    return code


def first_of(config: Config, saved: Path) -> Config:
    """The configuration of the first stage: by default half as large as the whole."""
    stage = config.first_stage
    one_of("first_stage.pattern", str(stage.pattern), registry.names("pattern"))
    smallest = 256 + len(card_default(config, "special_tokens"))
    return structs.replace(
        config,
        pattern=PatternCard(**registry.card("pattern", str(stage.pattern))),
        vocab_size=stage.vocab_size or max(card_default(config, "vocab_size") // 2, smallest),
        save=str(saved),
        overwrite=True,
        certificate=None,
        inherited="kept",
        veto="none",
    )
