"""Files that are written whole or not at all, and temporary folders."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import io
import os
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from harness.common.errors import UNMEASURED, Refusal, reason

ELSEWHERE = "choose another place with --output"
# how long an empty temporary folder is left alone: its command may not have locked it yet
JUST_STARTED_SECONDS = 60
CURRENT_FOLDER, BOTH_WAYS = -100, 2  # AT_FDCWD and RENAME_EXCHANGE, of Linux


def path_named(name: str | os.PathLike[str]) -> Path:
    """The path of a name. Raises Refusal for a name that no file can have: with a NUL or a lone
    surrogate, or too long.
    """
    try:
        os.lstat(name)
    except (OSError, ValueError) as error:
        if getattr(error, "errno", errno.ENAMETOOLONG) == errno.ENAMETOOLONG:
            what = f"{os.fspath(name)[:80]!a} is not the name of a file"
            raise Refusal(f"{what} ({error.args[-1]}); pass another") from error
    return Path(name)


# Opening


def open_safely(path: Path, flags: int, *, of_anybody: bool = False) -> int:
    """Open a lock, or a file of records, whose name somebody else may have taken first.

    Raises OSError, and never waits, for a link, a named pipe, or anything else that is not a file;
    in a folder like /tmp also for a file of another user, unless it may be `of_anybody`. With
    O_DIRECTORY the same for a folder.
    """
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError("it is a link") from error
        raise

    opened, folder = os.fstat(descriptor), path.parent.stat()
    is_shared = folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH
    wrong = None
    if not stat.S_ISREG(opened.st_mode) and not flags & os.O_DIRECTORY:
        wrong = "it is not a file"
    elif is_shared and not of_anybody and opened.st_uid != os.geteuid():
        wrong = "it belongs to another user"
    if wrong is not None:
        os.close(descriptor)
        raise OSError(wrong)
    return descriptor


def open_appending(path: Path) -> io.FileIO:
    """Open a file to lock it or to append to it, made if it is missing. Raises as `open_safely`."""
    return io.FileIO(open_safely(path, os.O_RDWR | os.O_APPEND | os.O_CREAT), "a+")


# Writing


def sync(*paths: Path) -> None:
    """Wait until the disk has the content of these files, and the names in these folders."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno != errno.EINVAL:  # a file system that offers no such thing
                raise
        finally:
            os.close(descriptor)


def write_whole(path: Path, content: bytes, instead: str = ELSEWHERE) -> None:
    """Write a file and its folders. Raises Refusal, with what to do instead, if that is not
    possible.
    """
    with whole_file(path, instead) as part:
        part.write_bytes(content)


@contextlib.contextmanager
def folder_for(what: Path) -> Iterator[None]:
    """Make a folder and those above it; at the end remove those that are new and still empty."""
    missing = [path for path in (what, *what.parents) if not path.exists()]
    what.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        for path in missing:
            with contextlib.suppress(OSError):  # it holds what was written
                path.rmdir()


@contextlib.contextmanager
def whole_file(path: Path, instead: str = ELSEWHERE, *, lasting: bool = True) -> Iterator[Path]:
    """A name for a file or folder, renamed to `path` if the block succeeds. Raises Refusal as
    `write_whole` does.

    The name is in a hidden folder beside `path`; one that stays there was left by a killed process.
    What is `lasting` is on disk before this returns.
    """
    try:
        with folder_for(path.parent):
            folder = Path(tempfile.mkdtemp(prefix=".", dir=path.parent))
            try:
                part = folder / path.name
                yield part

                if lasting:
                    sync(part, *part.rglob("*"))
                put_in_place(part, path)
                if lasting:
                    sync(path.parent)
            finally:
                shutil.rmtree(folder)
    except OSError as error:
        raise Refusal(f"cannot write {path} ({reason(error)}); {instead}", UNMEASURED) from error


def put_in_place(part: Path, path: Path) -> None:
    """Rename; of a folder that another run has made in the meantime, the other one stays."""
    try:
        part.replace(path)
    except OSError:
        if not (part.is_dir() and path.is_dir()):
            raise


def copy_tree(source: Path, target: Path) -> None:
    """Copy a folder with everything in it. Raises the first OSError, where shutil.copytree raises a
    list of them.
    """
    for path in (source, *source.rglob("*")):
        copied = target / path.relative_to(source)
        if path.is_dir():
            copied.mkdir(parents=True, exist_ok=True)
        else:
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copied)


def exchange(new: Path, old: Path) -> None:
    """Put a folder in the place of another, which takes its name: in one step where the system can."""
    import ctypes  # late, as few commands need it

    if not old.exists():
        new.rename(old)
        return

    shutil.copymode(old, new)
    swap = getattr(ctypes.CDLL(None), "renameat2", None)
    names = (CURRENT_FOLDER, bytes(new), CURRENT_FOLDER, bytes(old))
    if swap is None or swap(*names, BOTH_WAYS) != 0:
        old.rename(new.with_name(f"{new.name}.old"))
        new.rename(old)


def make_results_folder(folder: Path) -> None:
    """Make the folder; results/local with a .gitignore, to leave a repository as it is. Raises
    OSError as `mkdir`.
    """
    default = next(
        (path for path in (folder, *folder.parents) if path.parts[-2:] == ("results", "local")),
        None,
    )
    is_new = default is not None and not default.exists()
    folder.mkdir(parents=True, exist_ok=True)
    if default is not None and is_new:
        (default / ".gitignore").write_text("*\n")


# Temporary folders: one whose command was killed is removed by the next command

TEMPORARY = "bpe-harness-tmp-"


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is removed at the end, whatever is in it; or by a later command, if this
    process is killed.
    """
    remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=TEMPORARY))
    lock = open_safely(folder, os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
    finally:
        remove_tree(folder)
        os.close(lock)


@functools.cache
def remove_abandoned() -> None:
    """Remove the folders that no process has locked; once per process."""
    for folder in Path(tempfile.gettempdir()).glob(f"{TEMPORARY}*"):
        # another user's, locked, just being removed, or not a folder
        with contextlib.suppress(OSError):
            is_young = time.time() - folder.stat().st_mtime < JUST_STARTED_SECONDS
            if is_young and not any(folder.iterdir()):
                continue
            lock = open_safely(folder, os.O_DIRECTORY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(folder)
            finally:
                os.close(lock)


def remove_tree(top: Path) -> None:
    """Remove a file or a folder, whatever is in it."""
    if top.is_symlink() or not top.is_dir():
        top.unlink(missing_ok=True)
        return
    try:
        shutil.rmtree(top)
    # folders that nobody may enter, or thousands within each other
    except (OSError, RecursionError):
        subprocess.run(["chmod", "-R", "u+rwx", top], check=False)
        subprocess.run(["rm", "-rf", top], check=True)
