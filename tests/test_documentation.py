"""The pages of docs/ say what there is, and what they show works.

Every command and every program that a page shows runs, in the page's order, in a copy of the
checkout. Before a block of code a page may say `<!-- file: PATH -->`, which writes it there, or
`<!-- not run: REASON -->`. `<!-- printed -->` says that the block before printed this one. What is
a model or a program has a test of its own.
"""

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
from checked import passing, quick_ones
from planted_faults import copied
from rows import write_files
from shown import blocks_after
from workbench import CHECKOUT, first_fast, ran

from harness.common import errors
from harness.conformance import trainer_checks

DOCS = CHECKOUT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
SHOWN = [CHECKOUT / "README.md", *PAGES]
BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>file|not run|model|program|printed)(?:: (?P<argument>[^>]+))? -->\n)?"
    r"^```(?P<language>\w+)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
REASONS = {
    "installs system packages",
    "sets up an environment",
    "needs a scheduler",
    "needs .[distributed]",
    "downloads",
    "shows what there is",
    "takes minutes",
    "needs your trainer",
}
"""Why a command that is shown is not run; one of these, so that none is left out for any other."""
TRAINERS = [
    ("docs/explanation/flat.md", "<!-- model -->\n```python\n"),
    ("notebooks/series.md", "%%writefile my_stage.py\n"),
    ("notebooks/series.md", "<summary>One solution</summary>\n\n```\n"),
]
"""Pages that hold a trainer, and what is before it."""
SHELLS = {
    "sh": ("bash", "-euo", "pipefail", "-c"),
    "python": (sys.executable, "-W", "error", "-c"),
}


def named(path: Path) -> str:
    return path.relative_to(CHECKOUT).as_posix().removeprefix("docs/")


def test_the_commands_page_has_every_exit_code() -> None:
    page = (DOCS / "reference/commands.md").read_text()
    rows = re.findall(r"^\| (\d+) \| `([A-Z]+)` \|", page, re.MULTILINE)
    codes = {name: code for name, code in vars(errors).items() if isinstance(code, int)}
    assert {name: int(code) for code, name in rows} == codes


def test_pages_of_the_site_lead_to_pages_of_code_and_to_the_executed_notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = "[a](../a/b.hpp#x) [r](../README.md) [c](https://example.org) [d](#e) [f](gone.py)\n"
    deeper = links.replace("../a/", "../../a/")
    fenced = "```python\nx[0](../a/b.hpp)\n```\n"
    code = "/** ```sh``` */\n"
    files = dict.fromkeys([*site_pages.FIRST, *site_pages.OTHERS, "docs/assets/a.css"], "")
    files |= {"docs/page.md": links + fenced, "results/a/README.md": deeper, "a/b.hpp": code}
    files["executed/series.md"] = "ran ![png](series_files/one.png)"
    write_files(tmp_path, {**files, "executed/series_files/one.png": "a chart"})
    monkeypatch.setattr(site_pages, "REPOSITORY", tmp_path)

    pages = tmp_path / "pages"
    site_pages.write_pages(pages, tmp_path / "executed")
    shown = {path.relative_to(pages).as_posix(): path.read_text() for path in pages.rglob("*.*")}
    led = links.replace("b.hpp#x", "b.hpp.md#x")
    assert shown["docs/page.md"] == led + fenced
    led = deeper.replace("b.hpp#x", "b.hpp.md#x")
    assert shown["results/a/README.md"] == led.replace("[f](gone.py)", "f")
    assert shown["a/b.hpp.md"].startswith("---\nsearch:\n  boost: 0.5\n---\n# b.hpp\n")
    assert f"````cpp\n{code}````" in shown["a/b.hpp.md"]
    assert shown["notebooks/series.md"] == files["executed/series.md"]
    assert shown["notebooks/series_files/one.png"] == "a chart"


@pytest.mark.parametrize("quick", first_fast([True, False]))
@pytest.mark.parametrize(("page", "before"), TRAINERS)
def test_a_trainer_on_a_page_conforms(page: str, before: str, quick: bool) -> None:
    (source,) = blocks_after(CHECKOUT / page, before)
    model = ModuleType("model")
    exec(source, model.__dict__)
    passing(quick_ones(trainer_checks(), quick), model.train)


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_asks_nobody_for_anything(tmp_path: Path) -> None:
    if importlib.util.find_spec("material") is None and "CI" not in os.environ:
        pytest.skip("the site is built with what pip install -e '.[docs]' installs")
    site_pages.write_pages(CHECKOUT / "build/pages", tmp_path / "not executed")
    site = tmp_path / "site"
    built = ran(CHECKOUT, *["-m", "mkdocs", "build", "--strict", "--site-dir"], str(site))
    assert built.returncode == 0, built.stderr

    pages = {path.relative_to(site).as_posix(): path.read_text() for path in site.rglob("*.html")}
    assert {f"docs/{named(page)}".replace(".md", ".html") for page in PAGES} <= set(pages)
    fetched = re.compile(r'<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)="(?:https?:)?//')
    assert [name for name, page in pages.items() if fetched.search(page)] == []
    assert "http" not in (site / "docs/assets/extra.css").read_text()
    assert "check_conformance" in pages["docs/reference/records.html"]
    assert "psi_cpu_seconds" in pages["docs/reference/records.html"]
    assert "One thread makes the merges" in pages["variants/native/flat.hpp.html"]


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


def packages_that_a_page_does_not_need(page: Path) -> set[str]:
    """The modules of all extras but those of which the page says that it needs them."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    needed = re.findall(r"needs `?'?\.\[(\w+)\]", page.read_text())
    modules: dict[bool, set[str]] = {True: {"bpe_harness"}, False: set()}
    for extra, requirements in project["optional-dependencies"].items():
        if extra not in ("test", "docs", "notebook"):
            names = {re.split(r"[^\w-]", requirement)[0] for requirement in requirements}
            modules[extra in needed] |= {name.lower().replace("-", "_") for name in names}
    return modules[False] - modules[True]


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
    absent = sorted(packages_that_a_page_does_not_need(page))
    hidden = f"import sys\nsys.modules.update(dict.fromkeys({absent}))\n"
    (tmp_path / "sitecustomize.py").write_text(hidden)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(tmp_path)}

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
                env=environment,
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, f"{block.code}\n{done.stdout}\n{done.stderr}"
            printed = done.stdout
    shutil.rmtree(checkout)
