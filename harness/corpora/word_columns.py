"""Word counts written as they come, block by block, and what every table given as input must hold."""

from __future__ import annotations

import shutil
from operator import mul
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np

from harness.common.errors import UNMEASURED, Refusal
from harness.corpora.generators.tables import WordBlock
from harness.corpora.generators.words import word_hashes
from harness.worker import word_store
from variants.contract import LARGEST_COUNT

WORDS_AT_ONCE = 1 << 16


class Columns:
    """The columns of a word store being written into a new folder, without the manifest."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.files: list[BinaryIO] = [(folder / column).open("wb") for column, _ in word_store.COLUMNS]
        self.stop = 0
        self.words = 0
        self.files[1].write(np.zeros(1, dtype=np.int64).tobytes())

    def __enter__(self) -> Columns:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self.files:
            file.close()

    def append(self, block: WordBlock) -> None:
        stops = self.stop + np.cumsum(block.lengths, dtype=np.int64)
        for file, column in zip(self.files, (block.data, stops, block.counts), strict=True):
            file.write(np.ascontiguousarray(column).data)
        self.stop = int(stops[-1]) if len(stops) else self.stop
        self.words += len(stops)

    def append_columns(self, folder: Path) -> None:
        """Take the words of other columns, which lie in a folder, as they come; they are never in memory."""
        data, offsets, counts = (folder / column for column, _ in word_store.COLUMNS)
        for path, file in ((data, self.files[0]), (counts, self.files[2])):
            with path.open("rb") as column:
                shutil.copyfileobj(column, file, 1 << 22)
        with offsets.open("rb") as column:
            column.seek(8)  # the first is 0
            while block := column.read(8 * WORDS_AT_ONCE):
                self.files[1].write((np.frombuffer(block, dtype=np.int64) + self.stop).data)
        self.stop += data.stat().st_size
        self.words += counts.stat().st_size // 8


class GivenTable:
    """A table from elsewhere on its way into a word store: counts of 0 are dropped, repeated words are summed."""

    def __init__(self, name: str, columns: Columns) -> None:
        self.name = name
        self.columns = columns
        self.hashes: list[np.ndarray] = []

    def append(self, block: WordBlock) -> None:
        """Take words whose lengths and counts have been found to be possible."""
        kept = block.counts > 0
        block = WordBlock(block.data[np.repeat(kept, block.lengths)], block.lengths[kept], block.counts[kept])
        self.hashes.append(word_hashes(block.data, block.lengths))
        self.columns.append(block)

    def repeated(self) -> np.ndarray:
        """The places of all words that may stand in the table more than once: another has the same hash."""
        hashes = np.concatenate([np.empty(0, dtype=np.uint64), *self.hashes])
        order = np.argsort(hashes, kind="stable")
        same = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
        return np.unique(np.concatenate([order[same], order[same + 1]]))


def summed(table: GivenTable, folder: Path) -> Path:
    """The folder of the table's columns in which no word stands twice: a word's first place has the sum."""
    written = table.columns.folder
    repeated = table.repeated()
    if not len(repeated):
        return written
    data, offsets, counts = mapped(written)
    first: dict[bytes, int] = {}
    sums: dict[int, int] = {}
    dropped = np.zeros(len(counts), dtype=bool)
    for place in repeated.tolist():
        found = first.setdefault(data[offsets[place] : offsets[place + 1]].tobytes(), place)
        sums[found] = sums.get(found, 0) + int(counts[place])
        dropped[place] = found != place
    check_sum(table.name, max(sums.values()))
    counts[list(sums)] = list(sums.values())
    with Columns(folder) as columns:
        for start in range(0, len(counts), WORDS_AT_ONCE):
            part = slice(start, start + WORDS_AT_ONCE)
            bounds = offsets[start : start + WORDS_AT_ONCE + 1]
            lengths, kept = np.diff(bounds), ~dropped[part]
            content = data[bounds[0] : bounds[-1]]
            columns.append(WordBlock(content[np.repeat(kept, lengths)], lengths[kept], counts[part][kept]))
    return folder


def mapped(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The columns as arrays: of the counts a copy that may be changed, the others where they lie."""
    sizes = {column: (folder / column).stat().st_size for column, _ in word_store.COLUMNS}
    data, offsets, counts = (
        np.asarray(word_store.map_column(folder / column, format, sizes[column]))
        for column, format in word_store.COLUMNS
    )
    return data, offsets, counts.copy()


def check_positions(name: str, folder: Path) -> None:
    """Refuse a table in which a pair's count could pass what 64 bits hold."""
    check_sum(name, positions_in(folder))


def positions_in(folder: Path) -> int:
    """The adjacent positions of all words by weight."""
    _, offsets, counts = mapped(folder)
    total = 0
    for start in range(0, len(counts), WORDS_AT_ONCE):
        further = np.diff(offsets[start : start + WORDS_AT_ONCE + 1]) - 1
        total += sum(map(mul, counts[start : start + WORDS_AT_ONCE].tolist(), further.tolist()))
    return total


def check_sum(name: str, total: int) -> None:
    if total > LARGEST_COUNT:
        raise Refusal(
            f"{name}: its words hold {total} adjacent positions by weight, more than 2**63 - 1; divide the counts",
            UNMEASURED,
        )
