"""A file that is written whole or not at all: what stood there before stays until all of the new one is there."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import io
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from harness.common.errors import UNMEASURED, USAGE, Refusal
from harness.common.units import bytes_text

ELSEWHERE = "choose another place with --output"


def write_whole(path: Path, content: bytes, instead: str = ELSEWHERE, exit_code: int = USAGE) -> None:
    """Write a file and the folders it lies in. Raises Refusal, with what to do instead, if that is not possible."""
    with whole_file(path, instead, exit_code) as part:
        part.write_bytes(content)


@contextlib.contextmanager
def whole_file(path: Path, instead: str = ELSEWHERE, exit_code: int = USAGE) -> Iterator[Path]:
    """Where to write what will stand at `path` once the block has ended well. Raises Refusal as `write_whole` does."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield part
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise Refusal(f"cannot write {path} ({error.strerror or error}); {instead}", exit_code) from error


USUAL_RESULTS = ("results", "local")


def make_results_folder(folder: Path) -> None:
    """Make the folder. The usual one is made to be ignored by git: somebody's repository stays as it is.

    What is named by its user is his, and may be meant to be kept. Raises OSError as `mkdir` does.
    """
    usual = next((each for each in (folder, *folder.parents) if each.parts[-2:] == USUAL_RESULTS), None)
    is_new = usual is not None and not usual.exists()
    folder.mkdir(parents=True, exist_ok=True)
    if usual is not None and is_new:
        (usual / ".gitignore").write_text("*\n")


# The folder where corpora, their digests, and their counts are kept between runs.
#
# One variable moves it: BPE_HARNESS_CACHE. Everything in it can be made again; deleting it costs time only. Files and
# folders appear in it whole, by being renamed, so that concurrent runs do not meet half of one.

CACHE_VARIABLE = "BPE_HARNESS_CACHE"


READ_AT_ONCE = 1 << 17


def readable(path: Path) -> BinaryIO:
    """A file, or a pipe that somebody writes to: one to which nobody does would be waited for, or seem to be empty."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        file = io.BufferedReader(io.FileIO(descriptor), READ_AT_ONCE)
    except OSError:  # it is a folder
        os.close(descriptor)
        raise
    mode = os.fstat(descriptor).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        file.close()
        raise OSError("it is neither a file nor a pipe")
    os.set_blocking(descriptor, True)
    if stat.S_ISFIFO(mode) and not file.peek(1):
        file.close()
        raise OSError("it is a pipe, and nobody has written to it")
    return file


def read_whole(path: Path) -> bytes:
    """All of a file or pipe that a user has named. Raises OSError as `readable` does."""
    with readable(path) as file:
        return file.read()


def cache_folder(*parts: str) -> Path:
    """A folder below the cache, made if need be."""
    base = os.environ.get(CACHE_VARIABLE) or os.path.join(  # noqa: PTH118
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),  # noqa: PTH111
        "bpe-harness",
    )
    path = Path(base).joinpath(*parts)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cache_unusable(path, error) from error
    return path


def cache_unusable(path: Path, error: OSError) -> Refusal:
    why = error.strerror
    return Refusal(
        f"cannot use the cache {path} ({why}); set {CACHE_VARIABLE} to a folder that can be written and has room",
        UNMEASURED,
    )


@contextlib.contextmanager
def placing(path: Path) -> Iterator[Path]:
    """A temporary name beside `path`, renamed to it when the block ends well and removed when it does not.

    Its folder bears a lock of the kernel meanwhile. One without was left by a process that was killed.
    """
    try:
        temporary = Path(tempfile.mkdtemp(prefix=".", dir=path.parent)) / path.name
        held = os.open(temporary.parent, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise cache_unusable(path.parent, error) from error
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(held, fcntl.LOCK_SH)
        yield temporary
        temporary.replace(path)
    except OSError as error:
        if path.is_dir():  # another run has placed the same folder in the meantime
            return
        raise cache_unusable(path, error) from error
    finally:
        os.close(held)
        shutil.rmtree(temporary.parent)


# Whether a disk has room, asked before anything is written.


def check_room(folder: Path, needed: int, what: str) -> None:
    """Raises Refusal if `folder` has fewer than `needed` bytes free."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise Refusal(
            f"{what} needs {bytes_text(needed)} in {folder}, and {bytes_text(free)} are free; make room, or set "
            f"{CACHE_VARIABLE} to a folder that has it",
            UNMEASURED,
        )


# Folders for as long as a command runs. One whose command was killed is removed by the next.

TEMPORARY = "bpe-harness-"
OWNER = ".owner"


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is removed at the end, whatever was left in it; if this process is killed, by the next command."""
    remove_abandoned()
    made = Path(tempfile.mkdtemp(prefix=f".{TEMPORARY}"))
    owner = os.open(made / OWNER, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(owner, fcntl.LOCK_EX)
        folder = made.with_name(made.name[1:])
        made.rename(folder)  # now that it has an owner
        try:
            yield folder
        finally:
            remove_tree(folder)
    finally:
        os.close(owner)


@functools.cache
def remove_abandoned() -> None:
    """Remove the folders whose owners are gone: the kernel has dropped their locks. Once a command will do."""
    for owner in Path(tempfile.gettempdir()).glob(f"{TEMPORARY}*/{OWNER}"):
        with contextlib.suppress(OSError):  # another user's, or just being removed
            descriptor = os.open(owner, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(owner.parent)
            finally:
                os.close(descriptor)


def remove_tree(top: Path) -> None:
    """Remove a folder whatever is in it: locked folders, links, thousands of folders in each other.

    Folders are moved up to the top before they are emptied, so that no path is longer than the system takes.
    """
    try:
        if not stat.S_ISDIR(top.lstat().st_mode):
            top.unlink()
            return
    except FileNotFoundError:
        return
    number = 0
    folders = [top]
    while folders:
        folder = folders.pop()
        with contextlib.suppress(OSError):
            folder.chmod(0o700)
        for entry in list(os.scandir(folder)):
            if entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    os.chmod(entry.path, 0o700)  # noqa: PTH101 - moving a folder takes the right to write in it
                while (moved := top / f".removing-{number}").exists() or moved.is_symlink():
                    number += 1
                os.replace(entry.path, moved)  # noqa: PTH105
                folders.append(moved)
            else:
                os.unlink(entry.path)  # noqa: PTH108
        if folder != top:
            folder.rmdir()
    top.rmdir()
