"""The text column of Parquet files as one plain file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from harness import cache
from harness.corpora.extras import extra
from harness.corpora.unpacking import Damaged
from harness.errors import UNMEASURED, Refusal


def join_texts(paths: Sequence[Path], column: str, separator: str, place: Path) -> None:
    """Write the texts of a column, `separator` behind each. Raises Refusal for a damaged file or an unknown column."""
    with cache.placing(place) as temporary, temporary.open("wb") as plain:
        for path in paths:
            for text in parquet_texts(path, column):
                plain.write((text + separator).encode())


def parquet_texts(path: Path, column: str) -> Iterator[str]:
    """The texts of one column, in order; one that is missing is empty."""
    parquet = extra("pyarrow.parquet", path.name)
    try:
        with parquet.ParquetFile(path) as file:
            if column not in file.schema_arrow.names:
                known = ", ".join(file.schema_arrow.names)
                raise Refusal(f"{path.name} has no column {column!r}; there are: {known}", UNMEASURED)
            for batch in file.iter_batches(columns=[column]):
                for text in batch.column(0):
                    yield text.as_py() or ""
    except (OSError, ValueError) as error:  # pyarrow's own errors are kinds of these
        raise Damaged(path, error) from error
