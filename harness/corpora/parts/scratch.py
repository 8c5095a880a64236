"""Where shards lie meanwhile: a folder on disk, a plain `Path`, or one behind a URL, for workers that share no disk.

What is put behind a URL is whole or absent there, as object stores promise; elsewhere its checksums tell.
"""

from __future__ import annotations

import contextlib
import mmap
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.common import files
from harness.common.errors import Refusal
from harness.common.files import remove_tree
from harness.corpora.parts.places import filesystem, is_url, one_line, state_behind
from variants.counting.parts import spill_folder

BYTES_AT_ONCE = 1 << 24


@contextlib.contextmanager
def as_on_disk() -> Iterator[None]:
    """What any service's library raises becomes an OSError."""
    try:
        yield
    except (OSError, Refusal):
        raise
    except Exception as error:
        raise OSError(one_line(error)) from error


@dataclass(frozen=True)
class Bucket:
    """A folder behind a URL, or what lies in it: as much of a `Path` as shards take."""

    url: str

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> Bucket:
        return Bucket(f"{self.url.rstrip('/')}/{name}")

    @property
    def name(self) -> str:
        return self.url.rstrip("/").rpartition("/")[2]

    def size(self) -> int:
        with as_on_disk():
            return int(state_behind(self.url).partition(" ")[0])

    def exists(self) -> bool:
        try:
            return self.size() >= 0
        except FileNotFoundError:
            return False

    def put(self, path: Path) -> None:
        system, place = filesystem(self.url)
        with as_on_disk():
            system.put_file(str(path), place)

    def read(self, start: int, stop: int) -> bytes:
        system, place = filesystem(self.url)
        with as_on_disk():
            return bytes(system.cat_file(place, start=start, end=stop))

    def fetched(self, start: int, stop: int) -> memoryview:
        """The bytes between, mapped from a file that is gone with the last who looks at it."""
        with tempfile.TemporaryFile(dir=spill_folder()) as file:
            for place in range(start, stop, BYTES_AT_ONCE):
                file.write(self.read(place, min(stop, place + BYTES_AT_ONCE)))
            file.flush()
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    def unlink(self, missing_ok: bool = False) -> None:
        system, place = filesystem(self.url)
        with as_on_disk(), contextlib.suppress(*[FileNotFoundError] * missing_ok):
            system.rm_file(place)

    def remove_tree(self) -> None:
        system, place = filesystem(self.url)
        with as_on_disk(), contextlib.suppress(FileNotFoundError):
            system.rm(place, recursive=True)


def scratch_at(place: str) -> Any:
    return Bucket(place) if is_url(place) else Path(place).absolute()


def prepared(scratch: Any) -> int | None:
    """Make the folder; returns how much it can take, if it says so. Raises OSError if nothing can be written there."""
    if isinstance(scratch, Path):
        scratch.mkdir(parents=True, exist_ok=True)
        files.hold(scratch)
        return shutil.disk_usage(scratch).free
    with tempfile.NamedTemporaryFile(dir=spill_folder()) as empty:
        (scratch / "begun").put(Path(empty.name))
    return None


def removed(scratch: Any) -> None:
    if isinstance(scratch, Path):
        remove_tree(scratch)
    else:
        scratch.remove_tree()


@contextlib.contextmanager
def placing(folder: Any, last: str) -> Iterator[Path]:
    """A new folder on disk for files that appear in `folder` when the block ends, `last` the last of them."""
    above = folder.parent if isinstance(folder, Path) else spill_folder()
    temporary = Path(tempfile.mkdtemp(prefix=".", dir=above))
    try:
        yield temporary
        if isinstance(folder, Path):
            try:
                temporary.rename(folder)
            except OSError:
                if not folder.is_dir():  # or another has made the same meanwhile
                    raise
        else:
            for path in sorted(temporary.iterdir(), key=lambda path: path.name == last):
                (folder / path.name).put(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def on_disk(folder: Any, names: list[str]) -> Iterator[Path]:
    """A folder with these files of `folder`: itself, or a copy for as long as the block lasts."""
    if isinstance(folder, Path):
        yield folder
        return
    with tempfile.TemporaryDirectory(dir=spill_folder()) as copy:
        for name in names:
            system, place = filesystem((folder / name).url)
            with as_on_disk():
                system.get_file(place, str(Path(copy, name)))
        yield Path(copy)
