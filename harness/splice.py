"""Make the tables and pictures of a page anew, by the commands it names.

A table stands between `<!-- BEGIN NAME: python -m harness.table ... -->` and `<!-- END NAME -->`; harness.published and
harness.gate are the other commands that may stand there. A picture is any SVG that the page both shows and names as the
`--output` of a `python -m harness.plot` on one line. With --check nothing is written, and the exit code is 21 if the
page is not what its commands print or a picture not what they draw.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from harness import plot, published, table
from harness.common.errors import MISMATCH, OK, WHOLE_FILES, Refusal, guarded
from harness.common.files import readable, write_whole
from harness.common.streams import Parser, say
from harness.gate import __main__ as gate
from harness.results.charts.files import alike

BLOCK = re.compile(
    r"(<!-- BEGIN (?P<name>\w+): python -m harness\.(?P<command>table|published|gate)(?P<arguments>.*?) -->\n)"
    r".*?(<!-- END (?P=name) -->)",
    re.S,
)

PICTURE = re.compile(r"python -m harness\.plot (?P<arguments>[^`\n]*--output (?P<path>[^\s`]+\.svg))")

COMMANDS = {"table": table.main, "published": published.main, "gate": gate.main}


def spliced(page: str) -> str:
    """The page with every block filled in anew. Raises Refusal if a block's command fails."""
    return BLOCK.sub(
        lambda block: block[1] + "\n" + printed(block["command"], block["arguments"]) + "\n" + block[5], page
    )


def printed(command: str, arguments: str) -> str:
    """What a command of COMMANDS prints for these arguments."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        code = COMMANDS[command](shlex.split(arguments))
    if code != OK:
        raise Refusal(f"python -m harness.{command}{arguments} ended with {code}", code)
    return output.getvalue()


def pictures(page: Path, content: str) -> list[tuple[str, Path]]:
    """The commands of the pictures that a page shows, and where they draw."""
    shown = {(page.parent / link).resolve() for link in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", content)}
    named = [(found["arguments"], Path(found["path"])) for found in PICTURE.finditer(content)]
    return [(arguments, path) for arguments, path in named if path.resolve() in shown]


def drawn(arguments: str, path: Path, output: Path) -> None:
    """Draw a picture of a page, into another file than it says. Raises Refusal if its command fails."""
    line = [str(output) if word == str(path) else word for word in shlex.split(arguments)]
    with contextlib.redirect_stdout(io.StringIO()):
        code = plot.main(line)
    if code != OK:
        raise Refusal(f"python -m harness.plot {arguments} ended with {code}", code)


def stale_pictures(page: Path, content: str) -> list[Path]:
    """The pictures of a page that are not what their commands draw."""
    stale = []
    with tempfile.TemporaryDirectory() as folder:
        for arguments, path in pictures(page, content):
            drawn(arguments, path, Path(folder, "fresh.svg"))
            if not path.exists() or not alike(path, Path(folder, "fresh.svg")):
                stale.append(path)
    return stale


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = Parser(prog="python -m harness.splice", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("page", type=Path, help="a Markdown file")
    parser.add_argument("--check", action="store_true", help="write nothing; 21 if the page is stale")
    arguments = parser.parse_args(argv)
    return guarded(lambda: (checked if arguments.check else mended)(arguments.page), WHOLE_FILES)


def text_of(page: Path) -> str:
    try:
        with io.TextIOWrapper(readable(page), encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise Refusal(f"cannot read {page} ({error.strerror or error})") from error


def checked(page: Path) -> int:
    """Whether a page and its pictures are what their commands make."""
    before = text_of(page)
    after = spliced(before)
    stale = [*([page] if before != after else []), *stale_pictures(page, after)]
    if stale:
        verb = "is" if len(stale) == 1 else "are"
        say(f"{', '.join(map(str, stale))} {verb} stale; python -m harness.splice {page} mends it")
    return MISMATCH if stale else OK


def mended(page: Path) -> int:
    """Make a page and its pictures anew."""
    before = text_of(page)
    after = spliced(before)
    for words, path in pictures(page, after):
        drawn(words, path, path)
    if before != after:
        write_whole(page, after.encode(), "it is as it was")
    return OK


if __name__ == "__main__":
    sys.exit(main())
