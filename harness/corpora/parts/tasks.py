"""The two tasks that whoever counts a text in parts has to run somewhere: count a part, merge a partition.

Both are plain functions of plain values; what they leave lies in a folder that all who run them see, and they return
names alone. Either may be run any number of times, anywhere, and killed at any moment.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from harness.common.errors import UNMEASURED, Refusal
from harness.corpora.local import append, documents_in, made_of
from harness.corpora.parts import shards
from harness.corpora.parts.dividing import Part
from harness.corpora.parts.places import one_line, unreadable
from harness.corpora.parts.scratch import on_disk, placing, removed, scratch_at
from harness.corpora.word_tables import Columns, check_sum, positions_in
from harness.worker import word_store
from variants.contract import InvalidText, LeftOut, Unavailable, WordCounts
from variants.counting import parts as counting

COLUMNS = [name for name, _ in word_store.COLUMNS]
FACTS = "facts.json"
LOG = "made.log"


class Outcome(NamedTuple):
    """What became of a part: its shards lie under `key`, or there is a sentence on why not.

    `made` is false where they were there; `ends_all` tells that no other part would fare better.
    """

    key: str
    made: bool = False
    failed: str | None = None
    ends_all: bool = False


def count_part(part: Part, folder: str) -> Outcome:
    """Count a part and leave its words as shards in `folder`, unless they are there.

    Never raises for what a text or a disk can be: the outcome has the sentence, with the path and the offset.
    """
    place = scratch_at(folder)
    try:
        if shards.is_whole(place, part.key):
            return Outcome(part.key)
        try:
            word_counts = words_of(part)
            if not part.member.is_unchanged():
                return Outcome(part.key, failed=f"{part} was changed while it was counted; run the same again")
        except (InvalidText, LeftOut) as error:
            sentence = str(error).replace(f"at byte {error.offset}", f"at byte {error.offset}{of_what(part)}", 1)
            return Outcome(part.key, failed=sentence)
        except Refusal as error:
            return Outcome(part.key, failed=str(error))
        except Unavailable as error:
            return Outcome(part.key, failed=str(error), ends_all=True)
        except Exception as error:  # whatever the libraries of all the services raise
            return Outcome(part.key, failed=unreadable(str(part), error))
        made = shards.write(place, part.key, word_counts, part.how.partitions)
        note(place, part, made)
        return Outcome(part.key, made=made)
    except OSError as error:
        return Outcome(part.key, failed=no_room(place, error), ends_all=True)


def of_what(part: Part) -> str:
    """What an offset in a part is an offset of, where it is not the file as it lies there."""
    if part.is_plain or part.is_whole:
        return made_of(part.member.path())
    return f" of the texts in its bytes {part.first} to {part.last}"


def note(folder: Any, part: Part, made: bool) -> None:
    """A line on what was counted to its end, for whoever wants to know what was counted twice."""
    if not isinstance(folder, Path):
        return  # nothing can be appended to what is behind a URL
    with (folder / LOG).open("a") as log:
        log.write(f"{part.key} {part.size} {'made' if made else 'again'} {os.getpid()}\n")


def no_room(folder: Any, error: OSError) -> str:
    return (
        f"{folder} cannot take the shards of the words ({error.strerror or one_line(error)}); make room or set "
        "counting.params.scratch=FOLDER with some, and run the same command again: it goes on from the shards that "
        "are there"
    )


def words_of(part: Part) -> WordCounts:
    """The words of a part. Raises what a counter raises, and what the reader of its file does."""
    path, corpus = part.member.path(), part.how.corpus(part.member.place)
    if not part.is_plain:

        def write_rows(text: BinaryIO) -> None:
            end = part.how.separator.encode()
            for document in documents_in(path, part.how.column, lambda _: None, part.between):
                append(text, document, end)

        return counting.count_written(corpus, write_rows, part.memory)
    if isinstance(path, Path):
        with path.open("rb", buffering=0) as file:
            start, stop = bounds(part, lambda start, length: os.pread(file.fileno(), length, start))
        return counting.count_between(corpus, start, stop, part.memory) if start < stop else nothing()
    start, stop = bounds(part, path.read_range)

    def write_range(text: BinaryIO) -> None:
        with path.open_at(start) as file:
            for block in blocks(file, stop - start):
                text.write(block)

    return counting.count_written(corpus, write_range, part.memory, start) if start < stop else nothing()


def bounds(part: Part, read: counting.Read) -> tuple[int, int]:
    """Where the range of a part begins and ends."""
    corpus = part.how.corpus(part.member.place)
    start, stop = (counting.safe_place(corpus, read, part.member.size, target) for target in (part.first, part.last))
    return start, stop


def blocks(file: BinaryIO, length: int) -> Iterator[bytes]:
    while length:
        block = file.read(min(length, 1 << 20))
        if not block:
            raise EOFError("it ends early")
        length -= len(block)
        yield block


def nothing() -> WordCounts:
    return WordCounts.from_columns([], [])


def merge_partition(partition: int, keys: Sequence[str], folder: str, name: str) -> str | None:
    """Merge the shards of one partition, of all parts, into three columns below `folder`/`name`.

    All shards are read from front to back at once, so the memory that it takes does not grow with them. Returns a
    sentence if that is not possible: None is success.
    """
    scratch = scratch_at(folder)
    place = scratch / name / str(partition)
    try:
        if isinstance(place, Path):
            place.parent.mkdir(exist_ok=True)
        if (place / FACTS).exists():
            return None
        runs = [shards.read(scratch, key).shard(partition) for key in keys]
        with placing(place, last=FACTS) as temporary:
            with contextlib.ExitStack() as opened:
                counting.merge_runs(runs, *(opened.enter_context((temporary / each).open("wb")) for each in COLUMNS))
            (temporary / FACTS).write_text(json.dumps(facts_of(temporary)))
    except (shards.Broken, FileNotFoundError) as error:
        if isinstance(error, shards.Broken):
            error.path.unlink(missing_ok=True)
        return f"{one_line(error)}; run the same command again, it makes what is missing anew"
    except OSError as error:
        return no_room(scratch, error)
    return None


def facts_of(partition: Path) -> dict[str, Any]:
    """What is known of merged words: each partition tells, so that nobody has to look through all of them."""
    word_counts = word_store.mapped(partition)
    return {
        "words": word_store.facts(word_counts),
        "checksums": word_store.checksums(word_counts),
        "positions": positions_in(partition),
    }


def assembled(name: str, folder: Any, partitions: int, place: Path) -> None:
    """Make a word store of the merged partitions, one behind the other, in the new folder `place`.

    Raises Refusal if one is not as it was written, or if a pair's count could pass what 64 bits hold.
    """
    told = []
    with Columns(place) as columns:
        for merged in (folder / str(partition) for partition in range(partitions)):
            with on_disk(merged, [*COLUMNS, FACTS]) as here:
                told.append(json.loads((here / FACTS).read_text()))
                if word_store.checksums(word_store.mapped(here)) != told[-1]["checksums"]:
                    removed(merged)
                    raise Refusal(f"{merged} is damaged; run the same command again, it is made anew", UNMEASURED)
                columns.append_columns(here)
    check_sum(name, sum(each["positions"] for each in told))
    word_store.finish(place, word_store.joined_facts([each["words"] for each in told]))
