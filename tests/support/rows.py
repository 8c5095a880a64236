"""Tables of cases in TOML. A case is a [[row]]. Of a [[table]] each line of `cases` is one: it has the
values of `columns`, of which the last may be missing, and what else the table says.
"""

import io
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import tomllib
from fetched import PACK

from variants.contract import Merge, Unavailable

TESTS = Path(__file__).resolve().parents[1]
Row = dict[str, Any]


def rows_beside(test: str, name: str) -> list[Any]:
    """The rows of a file beside a test, as its parameters; `slow = true` leaves one to the slow
    tests.
    """
    slow = pytest.mark.slow
    return [
        pytest.param(row, id=row["title"], marks=slow if row.get("slow") else ())
        for row in rows_of(Path(test).with_name(name))
    ]


def json_beside(test: str, name: str) -> Any:
    """What a file of JSON beside a test holds."""
    return json.loads(Path(test).with_name(name).read_text(encoding="utf-8"))


def each_row(test: str, name: str) -> pytest.MarkDecorator:
    """The mark of a test that is made with every row of a file beside it."""
    return pytest.mark.parametrize("row", rows_beside(test, name))


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a file, and of its tables. What `every` says, each of them has."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    rows = content.get("row", [])
    for table in content.get("table", []):
        columns, cases = table.pop("columns"), table.pop("cases")
        for case in cases:
            assert len(case) <= len(columns), case
            rows.append({**table, **dict(zip(columns, case, strict=False))})
    return [{**content.get("every", {}), **row} for row in rows]


def answer_of(call: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """What a call returns, or the sentence by which it refuses."""
    try:
        return call(*arguments, **keywords)
    except (ValueError, OSError, Unavailable) as error:
        return str(error)


def abridged(text: str, expected: str) -> str:
    """What is expected, if it is the text: a line `...` is any lines. Else the text, which the row gets
    if the environment has REWRITE, so that a person can review the difference.
    """
    parts = map(re.escape, expected.split("...\n"))
    if re.fullmatch(r"(?:.*\n)*?".join(parts), text):
        return expected

    for path in TESTS.rglob("*.toml") if "REWRITE" in os.environ else ():
        rows = path.read_text(encoding="utf-8")
        path.write_text(rows.replace(f"\n{expected}'''", f"\n{text}'''"), encoding="utf-8")
    return text


def merges_of(lines: Sequence[str]) -> list[Merge]:
    """The merges that a row writes as merges.txt does: "th e"."""
    merges = []
    for line in lines:
        left, right = line.encode().split(b" ")
        merges.append((left, right))
    return merges


def parquet_of(columns: bytes) -> bytes:
    """The Parquet file of a JSON object of columns."""
    from pyarrow import parquet  # late, as few rows need it

    file = io.BytesIO()
    parquet.write_table(pyarrow.table(json.loads(columns)), file, row_group_size=2)
    return file.getvalue()


def arrow_of(columns: bytes, new: Callable[..., Any] = pyarrow.ipc.new_file) -> bytes:
    """The Arrow file, or stream, of a JSON object of columns."""
    file = io.BytesIO()
    table = pyarrow.table(json.loads(columns))
    with new(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=1)
    return file.getvalue()


FORMS: dict[str, Callable[[bytes], bytes]] = {
    **PACK,
    ".gzip": PACK[".gz"],
    ".zstd": PACK[".zst"],
    ".parquet": parquet_of,
    ".arrow": arrow_of,
    ".feather": arrow_of,
    ".stream": partial(arrow_of, new=pyarrow.ipc.new_stream),
}


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    r"""Write files given by name: the ending compresses the content, or makes Parquet of a JSON
    object of columns, unless the name starts with raw:, and \xNN is a byte.
    """
    for name, content in files.items():
        raw = re.sub(rb"\\x(..)", lambda match: bytes.fromhex(match[1].decode()), content.encode())
        if not name.startswith("raw:"):
            for suffix in Path(name).suffixes:
                raw = FORMS.get(suffix, bytes)(raw)
        path = folder / name.removeprefix("raw:")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
