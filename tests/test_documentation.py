"""The pages of docs/ say what there is, and what they show works.

Every command and every program that a page shows runs, in the page's order, in a copy of the
checkout. Before a block of code a page may say `<!-- file: PATH -->`, which writes it there, or
`<!-- not run: REASON -->`. `<!-- printed -->` says that the block before printed this one. What is
a model or a program has a test of its own.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
import site_pages
import tomllib
from checked import passing
from planted_faults import copied

from harness.common import errors, registry
from harness.conformance import trainer_checks
from harness.proof.checks import Check

REPOSITORY = Path(__file__).parent.parent
DOCS = REPOSITORY / "docs"
OF_A_PAGE = [
    check for check in trainer_checks() if check.group in ("worked examples", "properties")
]
PAGES = sorted(DOCS.rglob("*.md"))
SHOWN = [REPOSITORY / "README.md", *PAGES]
BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>file|not run|model|program|printed)(?:: (?P<argument>[^>]+))? -->\n)?"
    r"^```(?P<language>\w+)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
REASONS = {
    "installs system packages",
    "sets up an environment",
    "needs a scheduler",
    "needs root",
    "needs valgrind, takes minutes",
    "needs .[distributed]",
    "downloads",
    "shows what there is",
    "takes minutes",
    "takes hours",
}
"""Why a command that is shown is not run; one of these, so that none is left out for any other."""
SHELLS = {
    "sh": ("bash", "-euo", "pipefail", "-c"),
    "python": (sys.executable, "-W", "error", "-c"),
}


def named(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix().removeprefix("docs/")


def test_the_configuration_page_names_every_card() -> None:
    page = (DOCS / "reference/configuration.md").read_text()
    for group in ("variant", "data", "pattern", "measure", "counting", "experiment"):
        shown = "experiment={}" if group == "experiment" else "`{}`"
        assert [name for name in registry.cards(group) if shown.format(name) not in page] == []


def test_the_commands_page_holds_the_help_and_the_exit_codes_of_every_command() -> None:
    page = (DOCS / "reference/commands.md").read_text()
    headings = set(re.findall(r"^## python -m (\S+)", page, re.MULTILINE))
    with_options = set()
    for path in REPOSITORY.glob("harness/**/*.py"):
        if 'if __name__ == "__main__":' in path.read_text() and "Parser(" in path.read_text():
            module = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
            with_options.add(module.removesuffix(".__main__"))
    assert with_options
    assert with_options <= headings
    assert "### harness.corpora fetch\n" in page

    codes = {name: str(code) for name, code in vars(errors).items() if isinstance(code, int)}
    rows = re.findall(r"^\| (\d+) \| `([A-Z]+)` \|", page, re.MULTILINE)
    assert {name: code for code, name in rows} == codes


def test_pages_of_the_site_lead_to_pages_of_code_and_to_the_executed_notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = "[a](../a/b.hpp#x) [r](../README.md) [c](https://example.org) [d](#e) [f](gone.py)\n"
    fenced = "```python\nx[0](../a/b.hpp)\n```\n"
    code = "/** ```sh``` */\n"
    files = dict.fromkeys([*site_pages.FIRST, *site_pages.OTHERS, "docs/assets/a.css"], "")
    files |= {"docs/page.md": links + fenced, "results/a/README.md": links, "a/b.hpp": code}
    files["results/a/README.md"] = files["results/a/README.md"].replace("../a/", "../../a/")
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    monkeypatch.setattr(site_pages, "REPOSITORY", tmp_path)
    pages, executed = tmp_path / "pages", tmp_path / "executed"

    site_pages.write_pages(pages, executed)
    led = links.replace("b.hpp#x", "b.hpp.md#x")
    assert (pages / "docs/page.md").read_text() == led + fenced
    words = led.replace("../a/", "../../a/").replace("[f](gone.py)", "f")
    assert (pages / "results/a/README.md").read_text() == words
    page_of_code = (pages / "a/b.hpp.md").read_text()
    assert page_of_code.startswith("---\nsearch:\n  boost: 0.5\n---\n# b.hpp\n")
    assert f"````cpp\n{code}````" in page_of_code

    (executed / "series_files").mkdir(parents=True)
    (executed / "series_files/one.png").write_bytes(b"a chart")
    (executed / "series.md").write_text("ran ![png](series_files/one.png)")
    site_pages.write_pages(pages, executed)
    assert (pages / "notebooks/series.md").read_text() == "ran ![png](series_files/one.png)"
    assert (pages / "notebooks/series_files/one.png").is_file()


@pytest.mark.parametrize(
    "checks", [OF_A_PAGE, pytest.param(trainer_checks(), marks=pytest.mark.slow)], ids=["", "all"]
)
def test_the_page_of_flat_holds_a_program_that_conforms(checks: list[Check]) -> None:
    (source,) = [
        block.code for block in blocks(DOCS / "explanation/flat.md") if block.mark == "model"
    ]
    model = ModuleType("model")
    exec(source, model.__dict__)
    passing(checks, model.train)


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_asks_nobody_for_anything(tmp_path: Path) -> None:
    if importlib.util.find_spec("material") is None and "CI" not in os.environ:
        pytest.skip(
            "the site is built with what .venv/bin/python -m pip install -e '.[docs]' installs"
        )
    site_pages.write_pages(REPOSITORY / "build/pages", tmp_path / "not executed")
    site = tmp_path / "site"
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    pages = {path.relative_to(site).as_posix(): path.read_text() for path in site.rglob("*.html")}
    assert {f"docs/{named(page)}".replace(".md", ".html") for page in PAGES} <= set(pages)
    fetched = re.compile(r'<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)="(?:https?:)?//')
    assert [name for name, page in pages.items() if fetched.search(page)] == []
    assert "http" not in (site / "docs/assets/extra.css").read_text()
    assert "check_conformance" in pages["docs/reference/records.html"]
    assert "psi_cpu_seconds" in pages["docs/reference/records.html"]
    assert "One thread makes the merges" in pages["variants/native/flat.hpp.html"]


def test_each_documented_prevention_or_detection_has_its_test() -> None:
    page = (DOCS / "explanation/measuring.md").read_text()
    named = set(re.findall(r"`(test_\w+)`", page))
    sources = "".join(path.read_text() for path in (REPOSITORY / "tests").rglob("test_*.py"))
    assert len(named) > 10
    assert [name for name in named if f"def {name}(" not in sources] == []


class Block(NamedTuple):
    """A block of code of a page, with its mark and the mark's argument."""

    mark: str | None
    argument: str | None
    language: str
    code: str


def blocks(page: Path) -> list[Block]:
    return [Block(*found.groups()) for found in BLOCK.finditer(page.read_text())]


def is_run(block: Block) -> bool:
    return block.mark is None and block.language in SHELLS


def packages_that_a_page_does_not_need(page: Path) -> list[str]:
    """The modules of all extras but those of which the page says that it needs them."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    needed = re.findall(r"needs `?'?\.\[(\w+)\]", page.read_text())
    modules: dict[bool, set[str]] = {True: set(), False: set()}
    for extra, requirements in project["optional-dependencies"].items():
        for requirement in requirements if extra not in ("test", "docs", "notebook") else ():
            name = re.split(r"[^\w-]", requirement)[0]
            modules[extra in needed].add(name.lower().replace("-", "_"))
    return sorted(modules[False] - modules[True] - {"bpe_harness"})


def test_every_mark_precedes_a_block_and_what_is_not_run_has_a_reason() -> None:
    for page in SHOWN:
        found = blocks(page)
        marks = re.findall(
            r"^<!-- (?:file|not run|model|program|printed)\b.*-->$", page.read_text(), re.MULTILINE
        )
        assert len(marks) == sum(block.mark is not None for block in found), page
        assert {block.argument for block in found if block.mark == "not run"} <= REASONS, page


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in SHOWN if any(map(is_run, blocks(page)))], ids=named
)
def test_what_a_page_shows_runs(page: Path, tmp_path: Path) -> None:
    checkout = copied(tmp_path)
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nsys.modules.update(dict.fromkeys("
        f"{packages_that_a_page_does_not_need(page)}))\n"
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    printed = ""
    for block in blocks(page):
        if block.mark == "printed":
            assert block.code in printed
        if block.mark == "file":
            file = checkout / str(block.argument)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.code)
        if is_run(block):
            done = subprocess.run(
                [*SHELLS[block.language], block.code],
                cwd=checkout,
                env={**os.environ, "PATH": path, "PYTHONPATH": str(tmp_path)},
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, f"{block.code}\n{done.stdout}\n{done.stderr}"
            printed = done.stdout
    shutil.rmtree(checkout)
