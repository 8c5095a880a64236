"""Files: opening them safely, writing them whole or not at all, and temporary folders."""

from __future__ import annotations

import atexit
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
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.common.errors import UNMEASURED, Refusal, reason
from harness.common.printing import print_stderr

ELSEWHERE = "choose another place with --output"
OVERWRITE = "overwrite=true or --overwrite"
# how long an empty temporary folder is left alone: its command may not have locked it yet
JUST_STARTED_SECONDS = 60
CURRENT_FOLDER, NO_REPLACE, EXCHANGE = -100, 1, 2  # AT_FDCWD and flags of renameat2, of Linux
# "/dev/stdin" may be followed by nothing, and each of them is compared with a path that ends in a /
OF_PROCESS = ("/dev/stdin/", "/dev/fd/", "/proc/")
UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)


def path_named(name: str | os.PathLike[str]) -> Path:
    """Return the path of a name. Raises Refusal for an invalid name: with a NUL or a lone
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


def readable(path: Path) -> Path:
    """Return the path of a file to read. Raises OSError for a named pipe, which may have no writer;
    one that a shell opens for this process, as <(...), has.
    """
    if path.is_fifo() and not is_stream(path):
        raise OSError("it is a named pipe")
    return path


def is_stream(path: Path) -> bool:
    """Whether a path means another file, or nothing, in another process: /dev/stdin, /dev/fd/N and
    what is below /proc.
    """
    if not os.path.exists(path):  # noqa: PTH110
        return False
    forms = os.path.abspath(path), os.path.realpath(path)  # noqa: PTH100
    return any(f"{form}/".startswith(OF_PROCESS) for form in forms)


def open_safely(path: Path, flags: int, *, of_anybody: bool = False) -> int:
    """Open a lock or a file of records, although another user may have created something there.

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
    """Open a file to lock it or to append to it; create it if missing. Raises as `open_safely`."""
    return io.FileIO(open_safely(path, os.O_RDWR | os.O_APPEND | os.O_CREAT), "a+")


# Writing


def sync(*paths: Path) -> None:
    """Sync these files and folders to disk."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno != errno.EINVAL:  # a file system without it
                raise
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def folder_for(what: Path) -> Iterator[None]:
    """Create a folder and its parents; at the end remove new ones that are still empty."""
    missing = [path for path in (what, *what.parents) if not path.exists()]
    what.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        for path in missing:
            with contextlib.suppress(OSError):  # it holds what was written
                path.rmdir()


Step = tuple[Path, Path | None]
"""A path, and the new file or folder that is renamed to it; None removes what is there."""


def place(steps: Sequence[Step], *, replace: bool = True) -> None:
    """Take these steps in order; if one fails, undo those before it.

    Raises Refusal for a path that exists, unless `replace` is true.
    """
    spare = next(part.parent for _, part in steps if part is not None)
    with contextlib.ExitStack() as undo:
        for path, part in steps:
            is_there = os.path.lexists(path)
            if is_there and not replace:
                raise exists_already(path)
            if part is None:
                if is_there:
                    old = spare / f"{path.name}.old"
                    path.rename(old)
                    undo.callback(old.rename, path)
            elif is_there:
                exchange(part, path)
                undo.callback(exchange, part, path)
            else:
                put_new(part, path, replace=replace)
                undo.callback(remove_tree, path)
        undo.pop_all()


def put_new(part: Path, path: Path, *, replace: bool) -> None:
    """Rename to a path that was free. Raises Refusal if it no longer is, unless `replace` is true."""
    if replace:
        part.rename(path)
        return
    try:
        rename(part, path, NO_REPLACE)
    except FileExistsError as error:
        raise exists_already(path) from error
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        part.rename(path)


def exists_already(path: Path, what: str = "exists already") -> Refusal:
    return Refusal(f"{path} {what}; replace it with {OVERWRITE}, or choose another place")


def rename(source: Path, target: Path, flag: int) -> None:
    """Rename by renameat2: with NO_REPLACE to a new name alone, with EXCHANGE both ways.

    Raises OSError, with an error of UNSUPPORTED if the system or its file system has no such thing.
    """
    import ctypes  # late, as few commands need it

    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    names = (CURRENT_FOLDER, os.fsencode(source), CURRENT_FOLDER, os.fsencode(target))
    if call is None or call(*names, flag) != 0:
        number = errno.ENOSYS if call is None else ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(target))


def exchange(new: Path, old: Path) -> None:
    """Exchange the names of two files or folders; atomically if the system supports it."""
    shutil.copymode(old, new)
    try:
        rename(new, old, EXCHANGE)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        aside = new.with_name(f"{new.name}.old")
        old.rename(aside)
        try:
            new.rename(old)
        except BaseException:
            aside.rename(old)
            raise
        aside.rename(new)


def sync_names(folder: Path) -> None:
    """Sync the names in a folder; print a note if that fails, since the files are in place."""
    try:
        sync(folder)
    except OSError as error:
        print_stderr(f"{folder}: the disk has not confirmed the new names ({reason(error)})")


def copy_tree(source: Path, target: Path) -> None:
    """Copy a folder recursively. Raises the first OSError; shutil.copytree raises a list."""
    for path in (source, *source.rglob("*")):
        copied = target / path.relative_to(source)
        if path.is_dir():
            copied.mkdir(parents=True, exist_ok=True)
        else:
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copied)


def make_results_folder(folder: Path) -> None:
    """Create the folder; results/local with a .gitignore, so git ignores it. Raises
    OSError as `mkdir`.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        if path.parts[-2:] == ("results", "local"):
            (path / ".gitignore").write_text("*\n")


# Temporary folders: the next command removes those of killed commands

TEMPORARY = "bpe-harness-tmp-"


@contextlib.contextmanager
def temporary_folder(parent: Path | None = None) -> Iterator[Path]:
    """A folder that is removed at the end, whatever is in it; or by a later command, if this
    process is killed. One in a `parent` is hidden.
    """
    where = Path(tempfile.gettempdir()) if parent is None else parent
    prefix = TEMPORARY if parent is None else f".{TEMPORARY}"
    remove_abandoned(where, prefix)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=where))
    with contextlib.ExitStack() as opened:
        opened.callback(remove_if_possible, folder)
        lock = open_safely(folder, os.O_DIRECTORY)
        opened.callback(os.close, lock)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def folder_of_process(parent: Path | None = None) -> Path:
    """A temporary folder that is removed when this process ends."""
    opened = contextlib.ExitStack()
    atexit.register(opened.close)
    return opened.enter_context(temporary_folder(parent))


def remove_if_possible(folder: Path) -> None:
    """Remove a folder, or leave that to a later command."""
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        remove_tree(folder)


@functools.cache
def remove_abandoned(where: Path, prefix: str) -> None:
    """Remove the folders that no process has locked; once per process."""
    try:
        found = list(where.glob(f"{prefix}*"))
    except OSError:  # writing there reports it
        return
    for folder in found:
        # another user's, locked, just being removed, or not a folder
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
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
    """Remove a file, or a folder recursively."""
    if top.is_symlink() or not top.is_dir():
        top.unlink(missing_ok=True)
        return
    try:
        shutil.rmtree(top)
    # folders without permission, or nested too deeply for Python
    except (OSError, RecursionError):
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*command, top], check=command[0] == "rm", stderr=subprocess.DEVNULL)


# Outputs: never over an input, and over another file only with the option to overwrite


STREAMS, SHARED_MEMORY = ("/dev/", "/proc/"), "/dev/shm/"


def check_output(
    path: Path,
    inputs: Iterable[Path] = (),
    *,
    overwrite: bool | None = None,
    names: Sequence[str] = (),
    instead: str = "choose another place",
) -> None:
    """Raise Refusal if a command may not write this file, or this folder with files of these `names`.

    `inputs` are the files that the command reads, and the folders that it reads recursively. An
    input, under any name, is always refused, and so is a path in such a folder, or anything but a
    plain file or a folder. An existing file is refused if `overwrite` is False; None means that the
    command has no such option and replaces its earlier output.
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
    """Return the files of these names and the files directly in these folders; skip other values."""
    paths = [Path(name) for name in names if isinstance(name, str | Path)]
    inside = [path for folder in paths if os.path.isdir(folder) for path in folder.iterdir()]  # noqa: PTH112
    return [*inside, *(path for path in paths if not os.path.isdir(path))]  # noqa: PTH112


def wrong_kind(path: Path, target: Path, wants_folder: bool) -> str | None:
    """Return why a path is not a plain file, or not a folder; None if it is one, or missing."""
    for name in (os.path.abspath(path), str(target)):  # noqa: PTH100 - links stay
        if name.startswith(STREAMS) and not name.startswith(SHARED_MEMORY):
            return "it is a device or a stream, not a file"

    is_right = target.is_dir() if wants_folder else target.is_file()
    if is_right or not target.exists():
        return None
    return f"it is not a {'folder' if wants_folder else 'file'}"


def real_path(path: Path) -> Path:
    """Return the path with all links resolved; a link to itself stays."""
    return Path(os.path.realpath(path))


def followed(path: Path) -> Path:
    """Return the target of a link, or the path itself."""
    return real_path(path) if path.is_symlink() else path


def identity(path: Path) -> tuple[int, int] | None:
    """Return the device and the inode of a file or a folder, equal for all its names; None without
    one.
    """
    try:
        status = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


@contextlib.contextmanager
def output_files(
    paths: Sequence[Path],
    inputs: Iterable[Path] = (),
    *,
    overwrite: bool | None = None,
    instead: str = ELSEWHERE,
) -> Iterator[Path]:
    """Yield a folder for files that are moved to these paths if the block succeeds, all or none,
    and synced. The paths are in one folder. The second file describes the first, so the old one is
    removed first.

    Raises Refusal as `check_output` does, or if a file cannot be written.
    """
    read = list(inputs)
    for path in paths:
        check_output(path, read, overwrite=overwrite)
    targets = list(map(followed, paths))
    beside = targets[0].parent
    outdated: list[Step] = [(target, None) for target in targets[1:]]
    with folder_aside(targets[0], instead) as folder:
        yield folder

        sync(*folder.rglob("*"))
        steps = [*outdated, *((target, folder / target.name) for target in targets)]
        place(steps, replace=overwrite is not False)
        sync_names(beside)


@contextlib.contextmanager
def folder_aside(path: Path, instead: str) -> Iterator[Path]:
    """Yield a temporary folder beside a path. Raises Refusal if something there cannot be written,
    by the block or before it.
    """
    beside = path.parent
    with writing(path, instead), folder_for(beside), temporary_folder(beside) as folder:
        yield folder


@contextlib.contextmanager
def writing(what: object, instead: str) -> Iterator[None]:
    """Raise Refusal, with what to do instead, for an OSError of a block that writes this."""
    try:
        yield
    except OSError as error:
        raise Refusal(f"cannot write {what} ({reason(error)}); {instead}", UNMEASURED) from error


@contextlib.contextmanager
def output_file(path: Path, inputs: Iterable[Path] = (), **how: Any) -> Iterator[Path]:
    """Yield a name for a file or folder that is moved to `path`, as `output_files`."""
    with output_files([path], inputs, **how) as folder:
        yield folder / followed(path).name


def check_writable(path: Path, inputs: Iterable[Path] = (), *, overwrite: bool) -> None:
    """Raise Refusal, before the work, if `output_file` would."""
    check_output(path, inputs, overwrite=overwrite)
    with folder_aside(followed(path), "choose another file"):
        pass


def write_output(path: Path, content: bytes, **how: Any) -> None:
    """Write a file whole or not at all, as `output_files`."""
    with output_file(path, **how) as part:
        part.write_bytes(content)
