"""Texts out of packages: downloaded by pip, APT or npm and read where they lie; nothing is installed, built or run.

A card's source says which files of a package become one corpus: `files` are patterns (`*.py`; `*` also matches
slashes), `order` is `archive`, `name` or `version` (the file's own name, numbers by their value), `take` says what of a
file is text and `lines` which of its lines are, and `separator` ends each file.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import gzip
import hashlib
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import cache_folder, placing
from harness.common.units import one_line
from harness.corpora.files import Damaged

Source = Mapping[str, Any]
ERRORS = ("ERROR:", "E:", "npm error", "npm ERR!")
"""How the clients mark their errors."""


# Downloading


def from_package_index(source: Source, folder: Path) -> None:
    """Download a wheel or a source distribution, as `form` says, with pip."""
    requirement = f"{source['package']}=={source['version']}"
    options = ["--no-deps", "--ignore-requires-python", "--disable-pip-version-check", "--dest", str(folder)]
    if source.get("form", "wheel") == "wheel":
        command = [sys.executable, "-m", "pip", "download", "--only-binary=:all:", *options, requirement]
    else:
        command = [sys.executable, "-m", __name__, str(folder), "download", "--no-binary=:all:", *options, requirement]
    run(command, requirement, "check that the version still exists (python -m pip index versions NAME)", folder)


def pip_without_building(folder: Path, arguments: list[str]) -> None:
    """Run pip in this process and end it when pip starts another.

    `pip download` of a source distribution builds the package's metadata, which runs the package's own code. When pip
    tries to, the archive has been downloaded, and nothing else is needed.
    """
    starts = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty"}
    with tempfile.TemporaryDirectory(dir=folder) as inner:
        tempfile.tempdir = inner  # where pip keeps what it downloads

        def forbid(event: str, _: Any) -> None:
            if event not in starts:
                return
            for archive in (
                path for kind in ("tar.gz", "zip", "tar.bz2", "tar.xz") for path in Path(inner).glob(f"*/*.{kind}")
            ):
                archive.replace(folder / archive.name)
                shutil.rmtree(inner)
                os._exit(0)
            raise PermissionError(
                "nothing is run for a download"
            )  # pip also asks other programs for what it can do without

        sys.addaudithook(forbid)
        sys.argv = ["pip", *arguments]
        runpy.run_module("pip", run_name="__main__", alter_sys=True)


def from_debian(source: Source, folder: Path) -> None:
    """Download Debian packages with apt-get; `needs` names the package source that must be configured."""
    requirements = [f"{package}={source['version']}" for package in source["packages"]]
    advice = f"a point release replaces versions (apt-cache policy {source['packages'][0]} shows yours)"
    if "needs" in source:
        advice = f"it needs {source['needs']}, and {advice}"
    require("apt-get", "dpkg-deb", where="Debian or Ubuntu")
    run(["apt-get", "-q", "download", *requirements], " ".join(requirements), advice, folder)


def from_npm(source: Source, folder: Path) -> None:
    """Download a package of the npm registry with npm."""
    package = f"{source['package']}@{source['version']}"
    require("npm", where="a machine with Node.js")
    command = ["npm", "pack", "--ignore-scripts", "--loglevel=error", "--pack-destination", str(folder), package]
    run(command, package, f"check that the version still exists (npm view {source['package']} versions)", folder)


CLIENTS: dict[str, Callable[[Source, Path], None]] = {
    "package_index": from_package_index,
    "debian": from_debian,
    "npm": from_npm,
}


def require(*programs: str, where: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            raise Refusal(f"{program} is not installed; fetch this on {where}, or set data.path=FILE", UNMEASURED)


def run(command: Sequence[str], requirement: str, advice: str, folder: Path) -> None:
    """Run a client in `folder`. Raises Refusal with the client's last error."""
    # A client shows its own progress on a terminal.
    progress = sys.stderr if sys.stderr.isatty() else subprocess.DEVNULL
    done = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=progress,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    if done.returncode:
        raise Refusal(f"{requirement} cannot be downloaded ({last_error(done.stderr)}); {advice}", UNMEASURED)


def last_error(stderr: str) -> str:
    """The last error that a client named, without its mark.

    >>> last_error("W: old lists\\nE: Unable to locate package doc-rfc\\n")
    'Unable to locate package doc-rfc'
    """
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    line = ([line for line in lines if line.startswith(ERRORS)] or lines or ["no reason given"])[-1]
    for mark in ERRORS:
        line = line.removeprefix(mark)
    return one_line(line).rstrip(".")


# Reading archives


class Member(NamedTuple):
    """A file in a package: its path there, and its bytes, to be read before the next member is."""

    name: str
    content: IO[bytes]


def members(archive: Path, inside: str | None = None) -> Iterator[Member]:
    """The files of a wheel, a source distribution, an npm package or a Debian package, in their order there.

    `inside` names a tar file among them, whose files are given instead. Raises Refusal for a damaged archive.
    """
    try:
        with contextlib.closing(outer_members(archive)) as listed:
            if inside is None:
                yield from listed
                return
            for member in listed:
                if member.name == inside:
                    yield from tar_members(member.content)
                    return
    except (OSError, EOFError, zlib.error, tarfile.TarError, zipfile.BadZipFile, subprocess.SubprocessError) as error:
        raise Damaged(f"{archive} is damaged ({error}); fetch it again") from error
    raise Refusal(f"{inside} not found in {archive.name}; the card is for another version", UNMEASURED)


def outer_members(archive: Path) -> Generator[Member, None, None]:
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as opened:
            for entry in opened.infolist():
                if not entry.is_dir():
                    with opened.open(entry) as content:
                        yield Member(entry.filename, content)
    elif archive.suffix == ".deb":
        yield from debian_members(archive)
    else:
        with archive.open("rb") as file:
            yield from tar_members(file)


def tar_members(file: IO[bytes]) -> Iterator[Member]:
    """The plain files of a tar stream, compressed or not; links and devices are left out."""
    with tarfile.open(fileobj=file, mode="r|*") as opened:
        for entry in opened:
            content = opened.extractfile(entry) if entry.isreg() else None
            if content is not None:
                yield Member(entry.name.removeprefix("./"), content)


def debian_members(archive: Path) -> Iterator[Member]:
    """The files of a Debian package, from dpkg-deb, which needs no rights."""
    command = ["dpkg-deb", "--fsys-tarfile", str(archive)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        complete = False
        try:
            yield from tar_members(process.stdout)
            while process.stdout.read(1 << 20):  # the padding; dpkg-deb would fail if nobody read it
                pass
            complete = True
        finally:
            if not complete:
                process.kill()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command[0])


# Joining files


@dataclass(frozen=True)
class Rule:
    """How files become one corpus; the module's docstring describes each key."""

    files: tuple[str, ...]
    order: str = "archive"
    take: str = "whole"
    lines: str | None = None
    separator: str = ""

    @classmethod
    def of(cls, source: Source) -> Rule:
        optional = {key: source[key] for key in ("order", "take", "lines", "separator") if key in source}
        return cls(tuple(source["files"]), **optional)

    def selects(self, name: str) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.files)


def by_version(name: str) -> list[tuple[bool, int, str]]:
    """A key that sorts numbers within file names by their value, whatever their folders.

    >>> sorted(["new/rfc10.txt", "old/rfc9.txt"], key=by_version)
    ['old/rfc9.txt', 'new/rfc10.txt']
    """
    parts = re.findall(r"\d+|\D+", name.rpartition("/")[2])
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]


def sequence(content: bytes) -> bytes:
    """The letters of a FASTA file, without headers and newlines.

    >>> sequence(b">seq one\\nACG\\nT\\n")
    b'ACGT'
    """
    return b"".join(line.strip() for line in content.splitlines() if not line.startswith(b">"))


ORDER: dict[str, Callable[[str], Any]] = {"name": lambda name: name, "version": by_version}
TAKE: dict[str, Callable[[bytes], bytes]] = {"whole": lambda content: content, "sequence": sequence}


def matching_lines(content: bytes, pattern: str) -> bytes:
    r"""The first group of the pattern in each line that matches, a line each.

    >>> matching_lines(b'[\n  "one",\n  "two"\n]', '^ *"(.*)",?$')
    b'one\ntwo\n'
    """
    return b"".join(match[1] + b"\n" for match in re.finditer(pattern.encode(), content, re.MULTILINE))


def join(members: Iterable[Member], rule: Rule, place: Path, show: Callable[[int], None]) -> None:
    """Write the corpus that the rule makes of these files. Raises Refusal if it selects none of them."""
    with placing(place) as temporary:
        pieces: list[tuple[str, int, int]] = []
        spool = temporary if rule.order == "archive" else temporary.with_name("in order of the archive")
        with spool.open("wb") as file:
            for member in members:
                if rule.selects(member.name):
                    start = file.tell()
                    file.write(text_of(member, rule) + rule.separator.encode())
                    pieces.append((member.name, start, file.tell()))
                    show(file.tell())
        if not pieces:
            patterns = " or ".join(rule.files)
            raise Refusal(f"no file matches {patterns}; the card is for another version", UNMEASURED)
        if spool == temporary:
            return
        with spool.open("rb") as source, temporary.open("wb") as target:
            for _, start, stop in sorted(pieces, key=lambda piece: ORDER[rule.order](piece[0])):
                source.seek(start)
                target.write(source.read(stop - start))


def text_of(member: Member, rule: Rule) -> bytes:
    """What the rule takes of a file."""
    packed = member.name.endswith(".gz")
    source = cast("IO[bytes]", gzip.GzipFile(fileobj=member.content)) if packed else member.content
    try:
        plain = source.read()
    except (OSError, EOFError, zlib.error) as error:
        if not packed:
            raise
        raise Refusal(
            f"{member.name} cannot be unpacked ({error}); the package is damaged at its source", UNMEASURED
        ) from error
    text = TAKE[rule.take](plain)
    return text if rule.lines is None else matching_lines(text, rule.lines)


# The running Python's own files

WITHOUT_SOURCE = {"test", "tests", "idle_test", "idlelib_test", "__pycache__"}
INSTALLED = {"site-packages", "dist-packages"}


@functools.cache
def standard_library() -> Path:
    """The running Python's own modules as one file, a document each, made again when they change."""
    return python_files("stdlib", Path(sysconfig.get_paths()["stdlib"]), WITHOUT_SOURCE | INSTALLED)


@functools.cache
def site_packages() -> Path:
    """The modules installed for the running Python, in the same way."""
    return python_files("site_packages", Path(sysconfig.get_paths()["purelib"]), WITHOUT_SOURCE)


def python_files(name: str, root: Path, excluded: set[str]) -> Path:
    paths = sorted(source_files(root, excluded), key=lambda path: path.relative_to(root).as_posix())
    listing = [(path.relative_to(root).as_posix(), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    key = hashlib.sha256(json.dumps(listing).encode(errors="surrogateescape")).hexdigest()[:16]
    corpus = cache_folder("corpora") / f"{name}-{sys.version_info.major}.{sys.version_info.minor}-{key}.txt"
    if not corpus.exists():
        with placing(corpus) as temporary, temporary.open("wb") as file:
            for path in paths:
                with contextlib.suppress(UnicodeDecodeError):
                    file.write(path.read_bytes().decode().encode() + b"<|endoftext|>")
    return corpus


def source_files(root: Path, excluded: set[str]) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in excluded]
        paths = (Path(folder, name) for name in names if name.endswith(".py"))
        yield from (path for path in paths if path.is_file())  # a link may lead nowhere


if __name__ == "__main__":
    pip_without_building(Path(sys.argv[1]), sys.argv[2:])
