"""A data set, from its card to one verified file in the cache.

Downloads stay in a folder of their own until the corpus is complete and is what its card describes;
then it is renamed into place. So a file in place is complete, an interrupted fetch resumes, and a
wrong file is never put there.

Packages are downloaded by pip, APT or npm and read where they lie; nothing is installed, built or
run. In a card's source `files` are patterns of those that become one corpus (`*` also matches
slashes), `order` is `archive`, `name` or `version` (the file's own name, numbers by their value),
`lines` takes the first group of a pattern from each line that it matches, followed by `line_end` (a
newline by default), and `inside` names a tar file whose files are taken instead.
"""

from __future__ import annotations

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
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from harness.common import files
from harness.common.console import Advance, bar, say
from harness.common.errors import UNMEASURED, Refusal, reason
from harness.common.units import one_line
from harness.corpora.cards import FETCHED, Card, check_facts, difference, fetched_place
from harness.corpora.files import BLOCK_BYTES, Damaged, fresh_digest_of, remember
from harness.corpora.local import documents_in, is_compressed

Source = Mapping[str, Any]
# status codes after which another attempt may succeed
TEMPORARY = {408, 416, 425, 429, 500, 502, 503, 504}
HINTS = {
    401: "it needs a login; for Hugging Face set HF_TOKEN",
    404: "put its new address on the card",
}
SECONDS_WITHOUT_A_BYTE = 30.0
FRUITLESS_ATTEMPTS = 5  # how many attempts in a row may bring no byte
SECONDS_BETWEEN_ATTEMPTS = 2.0


def fetch(card: Card) -> Path:
    """Return the file of a card, fetched if missing. Raises Refusal if that fails or it differs
    from the card.
    """
    name, kind = card["name"], card["source"]["kind"]
    if kind not in FETCHED:
        raise Refusal(
            f"nothing is fetched for {name}; python -m harness.corpora path {name} prints its place"
        )
    place = fetched_place(card)
    with files.cache_lock(files.cache_folder("downloads") / f"{name}.lock") as lock:
        # one process at a time fetches it; the lock ends with its process
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            fetch_into(place, card)
        facts = {"sha256": check_facts(name, place, card), "bytes": place.stat().st_size}
    missing = ", ".join(
        f"{fact} {value}" for fact, value in facts.items() if fact not in card["facts"]
    )
    say(
        f"{name} is at {place}"
        + (f"; its card does not say: {missing}" if missing else ", as its card says")
    )
    return place


def fetch_into(place: Path, card: Card) -> None:
    """Fetch a file, verify it, put it at `place`."""
    folder = files.cache_folder("downloads", card["name"])
    if not any(folder.iterdir()):
        files.check_room(
            folder, card["facts"].get("bytes", 0) + card["source"].get("download", 0), card["name"]
        )
    try:
        made = (
            from_packages(card, folder)
            if card["source"]["kind"] in ADVICE
            else from_addresses(card, folder)
        )
        say(f"checking {made.name}")
        digest = fresh_digest_of(made)
        if wrong := difference(card, {"bytes": made.stat().st_size, "sha256": digest}):
            advice = "it was discarded, and if the next fetch ends so too, its source has changed"
            raise Damaged(f"what was fetched for {card['name']} {wrong}; {advice}", UNMEASURED)
    except Damaged:
        shutil.rmtree(folder)  # so that the next call starts afresh
        raise
    made.replace(place)
    remember(place, digest)
    shutil.rmtree(folder)


# Over HTTP, resumed as many times as the connection breaks


def from_addresses(card: Card, folder: Path) -> Path:
    """One or several files over HTTP: unpacked if they are compressed; their texts only, if they
    have rows.
    """
    source = card["source"]
    urls, headers = addresses_of(source)
    paths = [
        folder / f"{number:03}-{Path(urllib.parse.urlsplit(url).path).name}"
        for number, url in enumerate(urls)
    ]
    for url, path, digest in zip(
        urls, paths, source.get("sha256") or [None] * len(paths), strict=True
    ):
        if path.exists():
            continue
        say(f"fetching {url}")
        with bar(path.name, 0, "bytes") as show:
            Download(url, path, show, headers).run()
        if digest is not None and (actual := fresh_digest_of(path)) != digest:
            path.unlink()
            raise Refusal(
                f"{url} has sha256 {actual}, not {digest} as on its card; it was discarded",
                UNMEASURED,
            )
    if "column" not in source and not is_compressed(paths[0]):
        return paths[0]
    whole, separator = folder.joinpath(source["file"]), source.get("separator", "").encode()
    say(f"unpacking {whole.name}")
    with whole.open("wb") as text, bar(whole.name, card["facts"].get("bytes", 0), "bytes") as show:
        for path in paths:
            with path.open("rb") as file:
                for document in documents_in(path, file, source.get("column")):
                    for block in document:
                        text.write(block)
                        show(text.tell())
                    text.write(separator)
    return whole


def addresses_of(source: Source) -> tuple[list[str], dict[str, str]]:
    """The addresses of a source, its `url` or files of a dataset of Hugging Face, and headers for
    their host.
    """
    if source["kind"] == "url":
        return [source["url"]], {}
    host = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    token = os.environ.get("HF_TOKEN")
    base = f"{host}/datasets/{source['repository']}/resolve/{source['revision']}"
    return [f"{base}/{path}" for path in source["paths"]], {
        "Authorization": f"Bearer {token}"
    } if token else {}


@dataclass
class Download:
    """One file, fetched to `path`; what has arrived lies beside it, with the mark (ETag or date) of
    its version.
    """

    url: str
    path: Path
    show: Advance
    headers: Mapping[str, str]  # for the host of the address only, not for where it redirects

    def __post_init__(self) -> None:
        self.part, self.mark = (
            self.path.with_name(f"{self.path.name}.{end}") for end in ("part", "version")
        )

    def length(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def discard(self) -> None:
        self.part.unlink(missing_ok=True)
        self.mark.unlink(missing_ok=True)

    def run(self) -> None:
        """Fetch the file, resuming an interrupted call. Raises Refusal, keeping what has arrived,
        if that fails.
        """
        most, fruitless = self.length(), 0
        while True:
            try:
                self.attempt()
                break
            except (OSError, http.client.HTTPException) as error:
                fruitless = 0 if self.length() > most else fruitless + 1
                most = max(most, self.length())
                if fruitless >= FRUITLESS_ATTEMPTS or is_final(error, most):
                    raise self.refusal(error) from error
                time.sleep(SECONDS_BETWEEN_ATTEMPTS * fruitless)
        self.part.replace(self.path)
        self.mark.unlink(missing_ok=True)

    def attempt(self) -> None:
        """Fetch the rest of the file, or all of it. Raises OSError or HTTPException if it does not
        arrive.
        """
        if not self.url.startswith(("http://", "https://")):  # urllib would open local files, too
            raise http.client.InvalidURL("an address starts with https://")
        request = urllib.request.Request(self.url, headers={"User-Agent": "bpe-harness"})
        for name, value in self.headers.items():
            request.add_unredirected_header(name, value)
        if self.length() and self.mark.exists():
            request.add_header("Range", f"bytes={self.length()}-")
            request.add_header("If-Range", self.mark.read_text())
        try:
            with urllib.request.urlopen(request, timeout=SECONDS_WITHOUT_A_BYTE) as response:
                self.receive(response)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416:  # there are not so many bytes
                self.discard()
            raise

    def receive(self, response: Any) -> None:
        """Append what the server sends to the part, or replace it. Raises ConnectionError if it
        ends early.
        """
        length = self.length()
        if response.status != 206:
            # before its mark is replaced: a mark must never be beside bytes of another version
            self.discard()
            length, tag = 0, response.headers.get("ETag")
            # A weak tag does not identify a version.
            version = (
                tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified")
            )
            if version is not None:
                files.write_whole(self.mark, version.encode())
        elif not re.match(rf"bytes {length}-", response.headers.get("Content-Range") or ""):
            self.discard()
            raise ConnectionError("the server sent another range than was requested")
        rest = response.headers.get("Content-Length")
        total = length + int(rest) if rest is not None else None
        with self.part.open("ab") as part:
            while block := response.read1(BLOCK_BYTES):
                length += len(block)
                try:
                    part.write(block)
                    part.flush()
                except OSError as error:
                    raise files.cache_unusable(self.part, error) from error
                self.show(length, total)
        if total is not None and length != total:
            raise ConnectionError(f"the connection ended after {length} of {total} bytes")

    def refusal(self, error: Exception) -> Refusal:
        """One sentence on why the file cannot be fetched."""
        code, cause = getattr(error, "code", 0), getattr(error, "reason", error)
        why = (
            reason(cause)
            if isinstance(cause, OSError)
            else one_line(str(cause)) or type(cause).__name__
        )
        hint = HINTS.get(
            code, "run the same command again to resume, or get it elsewhere and set data.path=FILE"
        )
        return Refusal(
            f"{self.url} cannot be fetched ({f'{code} ' if code else ''}{why}); {hint}", UNMEASURED
        )


def is_final(error: Exception, arrived: int) -> bool:
    """Whether another attempt would end in the same way; a server that has sent something will be
    there again.
    """
    if isinstance(error, urllib.error.HTTPError):
        return error.code not in TEMPORARY
    return isinstance(error, http.client.InvalidURL) or (
        isinstance(error, urllib.error.URLError) and not arrived
    )


# Out of packages

ADVICE = {
    "package_index": "check that the version exists (python -m pip index versions NAME)",
    "debian": "it needs Debian or Ubuntu, and point releases replace versions",
    "npm": "check that the version exists (npm view NAME versions)",
}
"""The kinds of source that a package client downloads, and what to do if it fails."""
STARTS = {
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.fork",
    "os.forkpty",
}
"""The events of Python before it starts another program."""


def from_packages(card: Card, folder: Path) -> Path:
    """Download the packages of a card unless they are there, and join their files; returns the new
    file.
    """
    source = card["source"]
    whole, archives = folder.joinpath(source["file"]), folder / "packages"
    if not archives.exists():
        with files.placing(archives) as partial:
            partial.mkdir()
            download(source, partial)
    say(f"joining {', '.join(source['files'])}")
    with bar(source["file"], card["facts"].get("bytes", 0), "bytes") as show:
        join(archives, source, whole, show)
    return whole


def download(source: Source, folder: Path) -> None:
    """Run a package client in `folder`. Raises Refusal with the end of what the client reports."""
    command = client_command(source, folder)
    what = f"{', '.join(source.get('packages') or [source['package']])} {source['version']}"
    say(f"fetching {what}")
    if shutil.which(command[0]) is None:
        raise Refusal(
            f"{command[0]} is not installed; fetch this where it is, or set data.path=FILE",
            UNMEASURED,
        )
    # A client shows its own progress on a terminal.
    progress = sys.stderr if sys.stderr.isatty() else subprocess.DEVNULL
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    done = subprocess.run(
        command, cwd=folder, stdin=null, stdout=progress, stderr=pipe, text=True, errors="replace"
    )
    if done.returncode:
        why = one_line(done.stderr)[-300:] or "no reason given"
        raise Refusal(f"{what} cannot be downloaded ({why}); {ADVICE[source['kind']]}", UNMEASURED)


def client_command(source: Source, folder: Path) -> list[str]:
    version = source["version"]
    if source["kind"] == "debian":
        return [
            "apt-get",
            "-q",
            "download",
            *(f"{package}={version}" for package in source["packages"]),
        ]
    if source["kind"] == "npm":
        options = ["--ignore-scripts", "--loglevel=error", "--pack-destination", str(folder)]
        return ["npm", "pack", *options, f"{source['package']}@{version}"]
    of_form = ["pip", "download", "--only-binary=:all:"]
    if source.get("form") == "source":
        of_form = [__name__, str(folder), "download", "--no-binary=:all:"]
    options = [
        "--no-deps",
        "--ignore-requires-python",
        "--disable-pip-version-check",
        "--dest",
        str(folder),
    ]
    return [sys.executable, "-m", *of_form, *options, f"{source['package']}=={version}"]


def pip_without_building(folder: Path, arguments: list[str]) -> None:
    """Run pip in this process and end it when pip starts another.

    `pip download` of a source distribution builds the package's metadata, which runs the package's
    own code. When pip tries to, the archive has been downloaded, and nothing else is needed.
    """
    tempfile.tempdir = inner = tempfile.mkdtemp(dir=folder)  # where pip keeps what it downloads

    def forbid(event: str, _: Any) -> None:
        if event in STARTS:
            for archive in Path(inner).glob("*/*"):
                if archive.name.endswith((".tar.gz", ".zip", ".tar.bz2", ".tar.xz")):
                    archive.replace(folder / archive.name)
                    shutil.rmtree(inner)
                    os._exit(0)
            # pip also asks other programs for what it can do without
            raise PermissionError("nothing is run for a download")

    sys.addaudithook(forbid)
    sys.argv = ["pip", *arguments]
    runpy.run_module("pip", run_name="__main__", alter_sys=True)


Member = tuple[str, IO[bytes]]
"""A file in a package: its path there, and its bytes, to be read before the next member is."""


def members(archive: Path, inside: str | None = None) -> Iterator[Member]:
    """The files of a wheel, a source distribution, an npm or Debian package, or of the tar file
    `inside` in it.

    They come in their order there. Raises Refusal for a damaged archive.
    """
    try:
        for name, content in outer_members(archive):
            if inside is None:
                yield name, content
            elif name == inside:
                yield from tar_members(content)
    except (
        OSError,
        EOFError,
        zlib.error,
        tarfile.TarError,
        zipfile.BadZipFile,
        subprocess.SubprocessError,
    ) as error:
        raise Damaged(f"{archive} is damaged ({error}); fetch it again", UNMEASURED) from error


def outer_members(archive: Path) -> Iterator[Member]:
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as opened:
            for entry in opened.infolist():
                with opened.open(entry) as content:
                    yield entry.filename, content
    elif archive.suffix == ".deb":
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


def join(archives: Path, source: Source, place: Path, show: Callable[[int], None]) -> None:
    """Write the corpus that a source describes. Raises Refusal if it selects no file."""
    pieces: list[tuple[str, int, int]] = []
    with (
        files.placing(place) as part,
        part.open("wb") as target,
        tempfile.TemporaryFile(dir=place.parent) as spool,
    ):
        for archive in sorted(archives.iterdir()):
            for name, content in members(archive, source.get("inside")):
                if any(fnmatch.fnmatchcase(name, pattern) for pattern in source["files"]):
                    start = spool.tell()
                    spool.write(text_of(name, content, source))
                    pieces.append((name, start, spool.tell()))
                    show(spool.tell())
        if not pieces:
            patterns = " or ".join(source["files"])
            raise Refusal(
                f"no file matches {patterns}; the card is for another version", UNMEASURED
            )
        key = ORDER[source.get("order", "archive")]
        for _, start, stop in sorted(pieces, key=lambda piece: key(piece[0])):
            spool.seek(start)
            target.write(spool.read(stop - start))


def text_of(name: str, content: IO[bytes], source: Source) -> bytes:
    """What the source takes of a file."""
    text = gzip.decompress(content.read()) if name.endswith(".gz") else content.read()
    if "lines" not in source:
        return text
    end = source.get("line_end", "\n").encode()
    return b"".join(
        match[1] + end for match in re.finditer(source["lines"].encode(), text, re.MULTILINE)
    )


def by_version(name: str) -> list[tuple[bool, int, str]]:
    """A key that sorts numbers within file names by their value, whatever their folders.

    >>> sorted(["new/rfc10.txt", "old/rfc9.txt"], key=by_version)
    ['old/rfc9.txt', 'new/rfc10.txt']
    """
    parts = re.findall(r"\d+|\D+", name.rpartition("/")[2])
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]


ORDER: dict[str, Callable[[str], Any]] = {
    "archive": lambda _: 0,
    "name": lambda name: name,
    "version": by_version,
}


if __name__ == "__main__":
    pip_without_building(Path(sys.argv[1]), sys.argv[2:])
