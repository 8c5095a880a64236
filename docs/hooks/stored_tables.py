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
    """Return what is stale: the page, and its charts. Write them anew if `write`, and nothing if a
    command fails.
    """
    content = page.read_text()
    fresh = BLOCK.sub(
        lambda block: f"{block[1]}\n{output_of(block['command']).strip()}\n\n{block[4]}", content
    )
    stale = [str(page)] if fresh != content else []
    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder, "fresh.svg")
        for command, path in charts(page, fresh):
            output_of(command.replace(f"--output {path}", f"--output {drawn}"))
            if not same_picture(path, drawn):
                stale.append(str(path))
                if write:
                    path.write_text(drawn.read_text())
    if write:
        page.write_text(fresh)
    return stale


def charts(page: Path, content: str) -> Iterator[tuple[str, Path]]:
    """Yield the commands of the charts that the page shows, and the files that they write."""
    shown = {(page.parent / link).resolve() for link in SHOWN.findall(content)}
    for found in CHART.finditer(content):
        if Path(found["path"]).resolve() in shown:
            yield found["command"], Path(found["path"])


def same_picture(one: Path, other: Path) -> bool:
    """Return whether two SVGs exist and have the same words, and marks within half a point of each
    other.
    """
    if not (one.exists() and other.exists()):
        return False
    (words, places), (other_words, other_places) = map(content_of, (one, other))
    return words == other_words and all(
        abs(ours - theirs) <= 0.5 for ours, theirs in zip(places, other_places, strict=True)
    )


def content_of(svg: Path) -> tuple[list[str], list[float]]:
    """Return the texts with the letters of paths, and the coordinates of paths and markers."""
    text = svg.read_text()
    marks = re.findall(r' (d="[^"]*")', text) + re.findall(r'<use [^>]*(x="[^"]*" y="[^"]*")', text)
    places = re.findall(r"-?\d+(?:\.\d+)?", " ".join(marks))
    shape = re.sub(r"-?\d+(?:\.\d+)?", "0", " ".join(marks))
    return [*re.findall(r">([^<>]*\S[^<>]*)<", text), shape], list(map(float, places))


def output_of(command: str) -> str:
    """Return what a command prints; end with its exit code if it fails. A table may show merges
    that are wrong.
    """
    first, *arguments = shlex.split(command)
    if first == "-m":
        module = importlib.import_module(arguments.pop(0))
        if hasattr(module, "__path__"):
            module = importlib.import_module(f"{module.__name__}.__main__")
        call = module.main
    else:
        call = runpy.run_path(first)["main"]
    with contextlib.redirect_stdout(io.StringIO()) as output:
        code = call(arguments)
    if code not in (OK, MISMATCH):
        sys.stderr.write(f"python {command} ended with {code}\n")
        raise SystemExit(code)
    return output.getvalue()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
