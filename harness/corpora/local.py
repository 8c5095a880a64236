"""What data.path names: a file, several, a folder, a pattern of names, standard input; and the one plain file of it.

An existing file or folder wins over every other reading of the same text, so that a file may be called `[a].txt`.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.common.choices import split_list
from harness.common.errors import UNMEASURED, Refusal
from harness.corpora import standard_input
from harness.corpora.assembled import Recipe, assemble
from harness.corpora.compressed import READERS
from harness.corpora.files import Part, check_readable
from harness.corpora.tables import COLUMN, kind_of

STANDARD_INPUT = "-"


def local_corpus(card: Mapping[str, Any], special_tokens: Sequence[str]) -> tuple[str, Path, tuple[Part, ...]]:
    """The name of what data.path names, one plain file of it, and of which parts that is made.

    A single plain file is used in place. Anything else is made into one, kept until something about it changes: every
    document (a file, or a row of Parquet or JSON Lines) is followed by the separator unless it ends with it, so that
    the words of the corpus are those of its documents taken together. Empty documents leave nothing.
    """
    path = card["path"]
    if path == STANDARD_INPUT:
        return "stdin", *standard_input.spooled()
    members = members_of(path)
    if not members:
        raise Refusal("data.path=[] names no file; set data.path=[A,B]")
    for member in members:
        check_readable(member)
    tables = [member for member in members if kind_of(member)]
    column = card.get("column")
    if column is not None and not tables:
        raise Refusal(f"data.column={column}, but {path} is plain text; columns are in .parquet and .jsonl files")
    if len(members) == 1 and not tables and members[0].suffix.lower() not in READERS:
        return name_of(path, members), members[0], ()
    several = len(members) > 1 or bool(tables)
    separator = separator_of(card, special_tokens, len(members)) if several else ""
    recipe = Recipe(tuple(members), separator, column or COLUMN)
    return name_of(path, members), *assemble(recipe, name_of(path, members))


def members_of(path: Any) -> list[Path]:
    """The files that `path` names, in order; those of a folder or pattern are sorted by their path.

    In a folder, all plain files at any depth count except hidden ones and those in hidden folders; links to folders
    are not followed. A pattern is of the shell's kind, `**` standing for folders at any depth.
    """
    if isinstance(path, list):
        return [member for each in path for member in members_of(each)]
    text = str(path)
    if not text:
        raise Refusal("data.path is empty; set data.path=FILE")
    if text == STANDARD_INPUT:
        raise Refusal("standard input is a corpus of its own; set data.path=- alone, or ./- for a file called so")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text) and not os.path.lexists(text):
        raise Refusal(f"{text} is not on this machine; counting=dask counts it where it is, or fetch it first")
    if os.path.isdir(text):  # noqa: PTH112 - a name with a byte of 0 is an error to pathlib
        return files_below(Path(text))
    if is_list(text):
        return [member for each in split_list(text, "data.path") for member in members_of(each)]
    return matching(text) if re.search(r"[*?[]", text) and not os.path.lexists(text) else [Path(text)]


def files_below(folder: Path) -> list[Path]:
    def fail(error: OSError) -> None:
        raise Refusal(f"cannot read {error.filename} ({error.strerror})", UNMEASURED) from error

    found = []
    for place, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = (Path(place, name) for name in names if not name.startswith("."))
        found += [path for path in paths if path.is_file()]
    if not found:
        raise Refusal(f"there are no files in {folder}; set data.path=FILE with one that exists", UNMEASURED)
    return sorted(found, key=lambda path: path.relative_to(folder).as_posix())


def matching(pattern: str) -> list[Path]:
    found = sorted(path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path))  # noqa: PTH113, PTH207
    if not found:
        raise Refusal(f"there is no file {pattern}, and none that matches it as a pattern", UNMEASURED)
    return [Path(path) for path in found]


def separator_of(card: Mapping[str, Any], special_tokens: Sequence[str], number: int) -> str:
    separator = card.get("separator")
    if separator is not None:
        try:
            separator.encode()
        except UnicodeEncodeError as error:
            raise Refusal(f"data.separator={separator!r} is not UTF-8; write it in a UTF-8 terminal") from error
        return str(separator)
    if special_tokens:
        return special_tokens[0]
    what = f"these {number} files" if number > 1 else "its rows"
    raise Refusal(
        f"{what} are joined by the first special token, and special_tokens=[] names none; name one, or set "
        "data.separator=TEXT (which may be empty)"
    )


def name_of(path: Any, members: Sequence[Path]) -> str:
    """A short name for records, without folders; a file's name need not be UTF-8, but a record is.

    >>> name_of("texts/*.txt", [Path("texts/a.txt"), Path("texts/b.txt")])
    '*.txt'
    >>> name_of("[texts/a.txt,b.txt]", [Path("texts/a.txt"), Path("b.txt")])
    'a.txt+1'
    """
    if len(members) == 1:
        name = members[0].name
    elif isinstance(path, list) or is_list(path):
        name = f"{members[0].name}+{len(members) - 1}"
    else:
        name = Path(path).resolve().name
    return os.fsencode(name or "/").decode(errors="replace")


def is_list(text: str) -> bool:
    return text.startswith("[") and text.endswith("]") and not os.path.lexists(text)
