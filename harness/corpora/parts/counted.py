"""The whole way from what data.path names to one table of words, counted in parts by workers."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from harness.common import files
from harness.common.console import say
from harness.common.errors import UNMEASURED, Refusal
from harness.common.progress import bar
from harness.common.registry import at_least
from harness.common.units import bytes_text, count_text, counted_text, parse_bytes
from harness.corpora.cards import counted_otherwise
from harness.corpora.files import CorpusFile
from harness.corpora.formats import COLUMN, kind_of
from harness.corpora.local import name_of, separator_of
from harness.corpora.parts import shards
from harness.corpora.parts.dividing import HowRead, Part, divided
from harness.corpora.parts.engine import Engine, Lost, Task, started
from harness.corpora.parts.places import Member, local_state, members, one_line
from harness.corpora.parts.scratch import prepared, removed, scratch_at
from harness.corpora.parts.tasks import assembled, count_part, merge_partition
from harness.corpora.word_tables import kept_table
from harness.worker import word_store
from variants.contract import Corpus
from variants.counting.parts import ends_a_part, scanned

SHARE_IN_SHARDS = 0.35
"""About what the shards take of a text's bytes, for a word of warning: parts of 64 MB of English take 0.25."""
SMALLEST_PART = 1 << 16
BRIEF_BYTES = 1 << 28
"""What one core counts, or merges the words of, in about a second at most."""
MOST_SHOWN = 5


@dataclass(frozen=True)
class Engaged:
    """What is asked of an engine: counting.params of a counting with one."""

    scheduler: str | None
    workers: int
    part_bytes: int
    partitions: int
    scratch: Any  # a Path, or what lies behind a URL
    keep: bool
    memory: int | None


def engaged(params: Mapping[str, Any], memory: int | None) -> Engaged:
    """The parameters, checked. Raises Refusal for what cannot be meant."""
    workers = params["workers"]
    if workers is not None:
        at_least("counting.params.workers", workers)
    at_least("counting.params.partitions", params["partitions"])
    part_bytes = parse_bytes(params["part"], "counting.params.part")
    if part_bytes < SMALLEST_PART:
        raise Refusal(f"counting.params.part={params['part']} is too small; the least is {bytes_text(SMALLEST_PART)}")
    scratch = params["scratch"]
    return Engaged(
        params["scheduler"],
        workers or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else workers or os.cpu_count() or 1,
        part_bytes,
        params["partitions"],
        files.cache_folder("parts") if scratch is None else scratch_at(scratch),
        bool(params["keep"]),
        memory,
    )


class Text(NamedTuple):
    """The files of a text, how they are read, and what the text is called."""

    name: str
    members: list[Member]
    how: HowRead


def text_of(card: Mapping[str, Any], reading: Corpus, partitions: int, file: CorpusFile | None) -> Text:
    """What a card names: `file` where it is on this machine as one file, else the files where they are.

    Raises Refusal for files whose documents cannot be told apart.
    """
    if file is not None:
        name, found = file.name, [Member(str(file.path), file.bytes, local_state(file.path))]
    else:
        found = members(card["path"])
        name = name_of(card["path"], [each.path() for each in found])
    tables = [member for member in found if kind_of(member.path())]
    if card.get("column") is not None and not tables and file is None:
        raise Refusal(
            f"data.column={card['column']}, but {card['path']} is plain text; columns are in .parquet and .jsonl files"
        )
    separator = ""
    if len(found) > 1 or tables:
        separator = separator_of(card, reading.special_tokens, len(found))
        if separator not in reading.special_tokens or not ends_a_part(separator, reading.special_tokens):
            raise Refusal(
                f"{separator!r} stands between the files, and counting them apart needs a special token there that no "
                "other can overlap; name such a one first in special_tokens"
            )
    return Text(
        name,
        found,
        HowRead(
            tuple(reading.special_tokens),
            reading.pattern,
            reading.errors,
            reading.partial,
            separator,
            card.get("column") or COLUMN,
            partitions,
        ),
    )


def counted_table(
    card: Mapping[str, Any], reading: Corpus, pattern_name: str, asked: Engaged, file: CorpusFile | None, plan: bool
) -> CorpusFile:
    """The table of a text's words: kept from before, or counted now.

    Raises Refusal, with one sentence that says what is left and how to go on, if it cannot be had.
    """
    text = text_of(card, reading, asked.partitions, file)
    parts = divided(text.members, text.how, asked.part_bytes, asked.memory)
    key = hashlib.sha256(" ".join([str(word_store.FORMAT), *sorted(part.key for part in parts)]).encode()).hexdigest()
    place = files.cache_folder("tables") / key
    if plan and not word_store.is_whole(place):
        raise Refusal(
            f"the words of {text.name} are not counted yet ({described(text, parts)}), and a plan counts nothing; run "
            "it without plan=true"
        )
    folder = asked.scratch / key[:32]
    kept_table(place, functools.partial(count, text, parts, asked, folder))
    word_counts, manifest = word_store.read(place)
    table = CorpusFile(text.name, place, len(word_counts.data), manifest["sha256"], table=True, of_text=True)
    if file is not None and (
        wrong := counted_otherwise(replace(table, facts=file.facts), pattern_name, manifest, None)
    ):
        raise Refusal(wrong, UNMEASURED)
    return table


def described(text: Text, parts: Sequence[Part]) -> str:
    total = sum(member.size for member in text.members)
    return f"{bytes_text(total)} in {counted_text(len(text.members), 'file')}, {counted_text(len(parts), 'part')}"


def count(text: Text, parts: Sequence[Part], asked: Engaged, folder: Any, place: Path) -> None:
    """Count all parts and merge them into the new folder `place`; `folder` is where shards lie meanwhile."""
    try:
        free = prepared(folder)
    except OSError as error:
        raise Refusal(
            f"cannot use {folder} for the shards of the words ({error.strerror or one_line(error)}); set "
            "counting.params.scratch=FOLDER",
            UNMEASURED,
        ) from error
    missing = [part for part in parts if not shards.is_whole(folder, part.key)]
    announce(text, parts, missing, asked, folder, free)
    try:
        own = folder if isinstance(folder, Path) else files.cache_folder("parts")
        with started(asked.scheduler, asked.workers, own, say) as engine:
            failed = count_parts(engine, text, parts, missing, folder)
            if failed:
                raise Refusal("; ".join([*failed, *what_stays(parts, folder)]), UNMEASURED)
            merge(engine, text, parts, folder)
    except Lost:
        there = sum(shards.is_whole(folder, part.key) for part in parts)
        raise Refusal(
            f"the scheduler {asked.scheduler or 'on this machine'} was lost; {there} of {len(parts)} parts are counted "
            f"and stay in {folder}, run the same command again for the rest",
            UNMEASURED,
        ) from None
    try:
        assembled(text.name, folder / MERGED, text.how.partitions, place)
        if not asked.keep:
            removed(folder)
    except OSError as error:
        why = error.strerror or one_line(error)
        raise Refusal(
            f"cannot make one table in {files.cache_folder('tables')} of the words in {folder} ({why}); "
            "make room or move the cache with BPE_HARNESS_CACHE, and run the same command again: it goes on from there",
            UNMEASURED,
        ) from error


MERGED = "merged"


def announce(
    text: Text, parts: Sequence[Part], missing: Sequence[Part], asked: Engaged, folder: Any, free: int | None
) -> None:
    """Say beforehand what will be read, and what room it takes meanwhile."""
    where = asked.scheduler or f"{counted_text(asked.workers, 'worker')} on this machine"
    found = f", {count_text(len(parts) - len(missing))} of them are there from before" * (len(missing) < len(parts))
    room = "" if free is None else f" ({bytes_text(free)} free)"
    say(
        f"counting {text.name}: {described(text, parts)}{found}; by {where}; shards take up to "
        f"{bytes_text(int(SHARE_IN_SHARDS * sum(part.size for part in parts)))} in {folder}{room}, "
        f"{'kept' if asked.keep else 'removed'} afterwards"
    )


def count_parts(engine: Engine, text: Text, parts: Sequence[Part], missing: Sequence[Part], folder: Any) -> list[str]:
    """Have the missing parts counted; returns sentences on those that cannot be read, the first few of them.

    Raises Refusal at once for what would meet all of them.
    """
    before = sum(part.size for part in parts) - sum(part.size for part in missing)
    tasks = [Task(f"count-{part.key}", (part, str(folder)), part.size, is_brief(part)) for part in missing]
    failed = []
    with bar(f"counting {text.name}", sum(part.size for part in parts), "bytes") as show:
        for _, outcome in engine.run(count_part, tasks, lambda done: show(before + done)):
            if outcome.failed is not None:
                if outcome.ends_all:
                    raise Refusal(outcome.failed, UNMEASURED)
                failed.append(outcome.failed)
    more = len(failed) - MOST_SHOWN
    return [*sorted(failed)[:MOST_SHOWN], *[f"and {more} parts more cannot be read"] * (more > 0)]


def what_stays(parts: Sequence[Part], folder: Any) -> list[str]:
    """A sentence on the parts that are counted, if there are any; without any the folder goes."""
    if any(shards.is_whole(folder, part.key) for part in parts):
        return [f"the other parts are counted and stay in {folder}"]
    removed(folder)
    return []


def is_brief(part: Part) -> bool:
    """Whether the part is counted in about a second, wherever it ends: it is scanned where it lies."""
    here = part.is_plain and isinstance(part.member.path(), Path)
    return here and part.size <= BRIEF_BYTES and scanned(part.how.corpus(part.member.place))


def merge(engine: Engine, text: Text, parts: Sequence[Part], folder: Any) -> None:
    """Have every partition merged."""
    brief = isinstance(folder, Path) and sum(part.size for part in parts) <= text.how.partitions * BRIEF_BYTES
    keys = sorted(part.key for part in parts)
    tasks = [
        Task(f"merge-{folder.name}-{partition}", (partition, keys, str(folder), MERGED), brief=brief)
        for partition in range(text.how.partitions)
    ]
    with bar(f"merging the words of {text.name}", len(tasks), "partitions") as show:
        for _, failed in engine.run(merge_partition, tasks, show):
            if failed is not None:
                raise Refusal(failed, UNMEASURED)
