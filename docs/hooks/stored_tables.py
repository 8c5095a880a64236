"""Keep the tables and charts of a page what its own commands print.

python docs/hooks/stored_tables.py [--check] PAGE...

A table is between `<!-- BEGIN NAME: python ... -->` and `<!-- END NAME -->`; the command is a
module of `harness` or a script in `results/` or `docs/hooks/`. A chart is any SVG that the page
both shows and names as the `--output` of a `python -m harness.plot` on one line. With --check
nothing is written, and the exit code is 1 if anything is stale.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import runpy
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.common.errors import MISMATCH, OK

BLOCK = re.compile(
    r"(<!-- BEGIN (?P<name>\w+): python (?P<command>(?:-m harness\.\w+|(?:results|docs/hooks)/\S+\.py)"
    r".*?) -->\n).*?(<!-- END (?P=name) -->)",
    re.DOTALL,
)
CHART = re.compile(r"python (?P<command>-m harness\.plot [^`\n]*--output (?P<path>[^\s`]+\.svg))")
SHOWN = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
MARK = re.compile(r' d="[^"]*"|<use [^>]*x="[^"]*" y="[^"]*"')


def main(arguments: Sequence[str]) -> int:
    """Rewrite the pages, or check them; return the exit code."""
    check = "--check" in arguments
    stale: list[str] = []
    for page in [Path(argument) for argument in arguments if argument != "--check"]:
        stale += updated(page, write=not check)
    if stale:
        sys.stderr.write(f"{'stale' if check else 'rewritten'}: {', '.join(stale)}\n")
    return int(check and bool(stale))


def updated(page: Path, *, write: bool) -> list[str]:
    """Return the page and those of its charts that are stale, and rewrite them if `write`; nothing
    is written if a command fails.
    """
    content = page.read_text()
    fresh = {
        page: BLOCK.sub(
            lambda block: f"{block[1]}\n{output_of(block['command']).strip()}\n\n{block[4]}",
            content,
        )
    }
    for command, path in charts(page, content):
        with tempfile.NamedTemporaryFile(suffix=".svg") as drawn:
            output_of(command.replace(f"--output {path}", f"--output {drawn.name}"))
            fresh[path] = Path(drawn.name).read_text()

    stale = []
    for path, text in fresh.items():
        stored = path.read_text() if path.exists() else ""
        if not (stored == text if path == page else same_picture(stored, text)):
            stale.append(str(path))
            if write:
                path.write_text(text)
    return stale


def charts(page: Path, content: str) -> Iterator[tuple[str, Path]]:
    """Yield the commands of the charts that the page shows, and the files that they write."""
    shown = {(page.parent / link).resolve() for link in SHOWN.findall(content)}
    for found in CHART.finditer(content):
        if Path(found["path"]).resolve() in shown:
            yield found["command"], Path(found["path"])


def same_picture(one: str, other: str) -> bool:
    """Return whether two SVGs have the same words, and marks within half a point of each other."""
    texts = [re.findall(r">([^<>]*\S[^<>]*)<", svg) for svg in (one, other)]
    marks = ["".join(MARK.findall(svg)) for svg in (one, other)]
    shapes = [NUMBER.sub("0", mark) for mark in marks]
    if texts[0] != texts[1] or shapes[0] != shapes[1]:
        return False
    pairs = zip(NUMBER.findall(marks[0]), NUMBER.findall(marks[1]), strict=True)
    return all(abs(float(ours) - float(theirs)) <= 0.5 for ours, theirs in pairs)


def output_of(command: str) -> str:
    """Return what a command prints; end with its exit code if it fails. A table may show merges
    that are wrong.
    """
    first, *arguments = shlex.split(command)
    is_module = first == "-m"
    call = (
        importlib.import_module(arguments.pop(0)).main
        if is_module
        else runpy.run_path(first)["main"]
    )
    with contextlib.redirect_stdout(io.StringIO()) as output:
        code = call(arguments)
    if code not in (OK, MISMATCH):
        sys.stderr.write(f"python {command} ended with {code}\n")
        raise SystemExit(code)
    return output.getvalue()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
