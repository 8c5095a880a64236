"""What lies in a package, read where it lies: nothing of it is unpacked to disk, installed, built or run."""

from __future__ import annotations

import contextlib
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from harness.common.errors import UNMEASURED, Refusal
from harness.corpora.files import Damaged


class Member(NamedTuple):
    """A file in a package: its path there, and its bytes, to be read before the next one is asked for."""

    name: str
    content: IO[bytes]


def members(archive: Path, inside: str | None = None) -> Iterator[Member]:
    """The files of a wheel, a source distribution, an npm package or a Debian package, in their order there.

    `inside` is a tar file among them, whose files are meant instead. Raises Refusal for a damaged archive.
    """
    try:
        with contextlib.closing(outer_members(archive)) as found:
            if inside is None:
                yield from found
                return
            for member in found:
                if member.name == inside:
                    yield from tar_members(member.content)
                    return
    except (OSError, EOFError, zlib.error, tarfile.TarError, zipfile.BadZipFile, subprocess.SubprocessError) as error:
        raise Damaged(f"{archive} is damaged ({error}); fetch it again") from error
    raise Refusal(f"there is no {inside} in {archive.name}; the card is meant for another version", UNMEASURED)


def outer_members(archive: Path) -> Generator[Member, None, None]:
    if archive.suffix in (".whl", ".zip"):
        yield from zip_members(archive)
    elif archive.suffix == ".deb":
        yield from debian_members(archive)
    else:
        with archive.open("rb") as file:
            yield from tar_members(file)


def zip_members(archive: Path) -> Iterator[Member]:
    with zipfile.ZipFile(archive) as opened:
        for entry in opened.infolist():
            if not entry.is_dir():
                with opened.open(entry) as content:
                    yield Member(entry.filename, content)


def tar_members(file: IO[bytes]) -> Iterator[Member]:
    """The plain files of a tar stream, compressed or not; links and devices are none."""
    with tarfile.open(fileobj=file, mode="r|*") as opened:
        for entry in opened:
            content = opened.extractfile(entry) if entry.isreg() else None
            if content is not None:
                yield Member(entry.name.removeprefix("./"), content)


def debian_members(archive: Path) -> Iterator[Member]:
    """The files of a Debian package, as dpkg-deb gives them out, which needs no rights."""
    command = ["dpkg-deb", "--fsys-tarfile", str(archive)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        whole = False
        try:
            yield from tar_members(process.stdout)
            while process.stdout.read(1 << 20):  # what pads the archive; dpkg-deb must not find its reader gone
                pass
            whole = True
        finally:
            if not whole:
                process.kill()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command[0])
