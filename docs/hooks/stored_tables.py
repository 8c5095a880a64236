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
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.common.errors import MISMATCH, OK

BLOCK = re.compile(
    r"(<!-- BEGIN (?P<name>\w+): python "
    r"(?P<command>-m harness\.\w+|(?:results|docs/hooks)/\S+\.py)(?P<arguments>.*?) -->\n)"
    r".*?(<!-- END (?P=name) -->)",
    re.DOTALL,
)
CHART = re.compile(
    r"python (?P<command>-m harness\.plot) (?P<arguments>[^`\n]*--output (?P<path>[^\s`]+\.svg))"
)


def main(arguments: Sequence[str]) -> int:
    """Rewrite the pages, or check them; return the exit code."""
    pages = [Path(argument) for argument in arguments if argument != "--check"]
    check = "--check" in arguments
    stale = [
        str(path) for page in pages for path in (stale_files(page) if check else rewritten(page))
    ]
    if stale:
        sys.stderr.write(f"{'stale' if check else 'rewritten'}: {', '.join(stale)}\n")
    return int(check and bool(stale))


def stale_files(page: Path) -> list[Path]:
    """Return the page if a table of it is stale, and its stale charts."""
    content = page.read_text()
    fresh = filled(content)
    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder, "fresh.svg")
        stale = [path for words, path in charts(page, fresh) if is_stale(words, path, drawn)]
    return [*([page] if fresh != content else []), *stale]


def rewritten(page: Path) -> list[Path]:
    """Rewrite the page and its charts if they are stale; nothing if a command fails."""
    stale = stale_files(page)
    content = filled(page.read_text())
    for words, path in charts(page, content):
        if path in stale:
            output_of(words)
    page.write_text(content)
    return stale


def filled(content: str) -> str:
    """Return the page with the output of each command in its block."""

    def block(found: re.Match[str]) -> str:
        words = [*shlex.split(found["command"]), *shlex.split(found["arguments"])]
        return f"{found[1]}\n{output_of(words).strip()}\n\n{found[5]}"

    return BLOCK.sub(block, content)


def charts(page: Path, content: str) -> list[tuple[list[str], Path]]:
    """Return the commands of the charts that the page shows, and the files they write."""
    shown = {
        (page.parent / link).resolve() for link in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", content)
    }
    named = [
        (shlex.split(f"{found[1]} {found[2]}"), Path(found["path"]))
        for found in CHART.finditer(content)
    ]
    return [(words, path) for words, path in named if path.resolve() in shown]


def is_stale(words: Sequence[str], path: Path, drawn: Path) -> bool:
    output_of([str(drawn) if word == str(path) else word for word in words])
    return not same_picture(path, drawn)


def same_picture(one: Path, other: Path) -> bool:
    """Whether two SVGs exist and have the same words, and marks within half a point of each
    other.
    """
    if not (one.exists() and other.exists()):
        return False
    words, places = zip(*(_content(path.read_text()) for path in (one, other)), strict=True)
    if words[0] != words[1] or len(places[0]) != len(places[1]):
        return False
    return all(abs(ours - theirs) <= 0.5 for ours, theirs in zip(*places, strict=True))


def _content(svg: str) -> tuple[list[str], list[float]]:
    """The texts of an SVG with the letters of its paths, and the coordinates of paths and
    markers.
    """
    marks = " ".join(
        re.findall(r' (d="[^"]*")', svg) + re.findall(r'<use [^>]*(x="[^"]*" y="[^"]*")', svg)
    )
    texts = [*re.findall(r">([^<>]*\S[^<>]*)<", svg), *re.findall("[A-Za-z]", marks)]
    return texts, list(map(float, re.findall(r"-?\d+(?:\.\d+)?", marks)))


def output_of(words: Sequence[str]) -> str:
    """Return what a command prints; end with its exit code if it fails. A table may show merges
    that are wrong.
    """
    call, arguments = entry_point(words)
    with contextlib.redirect_stdout(io.StringIO()) as output:
        code = call(arguments)
    if code not in (OK, MISMATCH):
        sys.stderr.write(f"python {shlex.join(words)} ended with {code}\n")
        raise SystemExit(code)
    return output.getvalue()


def entry_point(words: Sequence[str]) -> tuple[Callable[[Sequence[str]], int], Sequence[str]]:
    """Return the `main` of a module or script, and the arguments for it."""
    if words[0] != "-m":
        return runpy.run_path(words[0])["main"], words[1:]
    module = importlib.import_module(words[1])
    if hasattr(module, "__path__"):
        module = importlib.import_module(f"{words[1]}.__main__")
    return module.main, words[2:]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
