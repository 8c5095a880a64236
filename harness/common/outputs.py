"""Where a command may write: over nothing that it reads, and over nothing else unless it is told to.

Every door that writes a file or a folder of the user asks `check_output`: before it works for long,
and again when it writes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.common.errors import UNMEASURED, Refusal, reason
from harness.common.files import (
    ELSEWHERE,
    exists_already,
    folder_for,
    path_named,
    temporary_folder,
    whole_files,
)

STREAMS, SHARED_MEMORY = ("/dev/", "/proc/"), "/dev/shm/"


def check_output(
    path: Path,
    inputs: Iterable[Path] = (),
    *,
    overwrite: bool | None = None,
    names: Sequence[str] = (),
    instead: str = "choose another place",
) -> None:
    """Raise Refusal if a file, or a folder that gets files of these `names`, may not be written.

    `inputs` are the files that the command reads, and the folders that it reads whole. An input by
    any name and a place in such a folder are refused whatever `overwrite` is; so is what is not a
    plain file, or folder. A file that exists is refused if `overwrite` is False; it is None for a
    command without that option, which replaces what it wrote before.
    """
    target = real_path(path_named(path))
    wrong = wrong_kind(path, target, wants_folder=bool(names))
    if wrong is not None:
        raise Refusal(f"cannot write {path} ({wrong}); {instead}", UNMEASURED)

    read = {identity(place): place for place in inputs}
    read.pop(None, None)
    for output in (target, *(target / name for name in names)):
        if (found := read.get(identity(output))) is not None:
            same = "" if real_path(found) == output else f"the same file as {found}, "
            name = path if output == target else path / output.name
            raise Refusal(f"{name} is {same}an input of this command; {instead}")
    for folder in target.parents:
        is_hidden = any(part.startswith(".") for part in target.relative_to(folder).parts)
        whole = read.get(identity(folder))
        if whole is not None and folder.is_dir() and not is_hidden:
            why = f"is in {whole}, and this command reads every file there"
            raise Refusal(f"{path} {why}; {instead}")

    if overwrite is False and not names and os.path.lexists(target):
        raise exists_already(path)


def files_at(*names: Any) -> list[Path]:
    """The files of these names, and those in folders of which a command reads some; what is not a
    name is passed over.
    """
    paths = [Path(name) for name in names if isinstance(name, str | Path)]
    inside = [path for folder in paths if os.path.isdir(folder) for path in folder.iterdir()]  # noqa: PTH112
    return [*inside, *(path for path in paths if not os.path.isdir(path))]  # noqa: PTH112


def wrong_kind(path: Path, target: Path, wants_folder: bool) -> str | None:
    """What a path is instead of a plain file, or of a folder; None if it is one, or missing."""
    for name in (os.path.abspath(path), str(target)):  # noqa: PTH100 - links stay
        if name.startswith(STREAMS) and not name.startswith(SHARED_MEMORY):
            return "it is a device or a stream, not a file"
    if wants_folder:
        return None if target.is_dir() or not target.exists() else "it is not a folder"
    if target.is_dir():
        return "it is a folder, not a file"
    return (
        None if target.is_file() or not target.exists() else "it is a pipe or a device, not a file"
    )


def real_path(path: Path) -> Path:
    """The path with links followed; a link to itself stays."""
    return Path(os.path.realpath(path))


def followed(path: Path) -> Path:
    """What a link names, or the path itself."""
    return real_path(path) if path.is_symlink() else path


def identity(path: Path) -> tuple[int, int] | None:
    """The device and the inode of a file or a folder, which all of its names share."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def check_writable(path: Path, instead: str = ELSEWHERE) -> None:
    """Raise Refusal if nothing can be written beside `path`."""
    try:
        with folder_for(path.parent), temporary_folder(path.parent):
            pass
    except OSError as error:
        raise Refusal(f"cannot write {path} ({reason(error)}); {instead}", UNMEASURED) from error


@contextlib.contextmanager
def output_files(
    paths: Sequence[Path],
    inputs: Iterable[Path] = (),
    *,
    overwrite: bool | None = None,
    instead: str = ELSEWHERE,
) -> Iterator[Path]:
    """A folder for files that go to these paths, as `whole_files`. Raises Refusal as `check_output`
    does.
    """
    places = list(inputs)
    for path in paths:
        check_output(path, places, overwrite=overwrite)
    replace = overwrite is not False
    with whole_files(list(map(followed, paths)), instead, replace=replace) as folder:
        yield folder


@contextlib.contextmanager
def output_file(path: Path, inputs: Iterable[Path] = (), **how: Any) -> Iterator[Path]:
    """A name for a file that goes to `path` if the block succeeds, as `output_files`."""
    with output_files([path], inputs, **how) as folder:
        yield folder / followed(path).name


def write_output(path: Path, content: bytes, **how: Any) -> None:
    """Write a file whole, as `output_files`."""
    with output_file(path, **how) as part:
        part.write_bytes(content)
