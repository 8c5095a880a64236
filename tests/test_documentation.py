"""The pages of docs/ say what is there: what is generated is whole, what is shown works.

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
from typing import Any, NamedTuple

import pytest
import site_pages
import stored_tables
import yaml
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
RUN = ("sh", "python")


def text(path: Path) -> str:
    return path.read_text()


def named(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix().removeprefix("docs/")


def mkdocs_yml() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(text(REPOSITORY / "mkdocs.yml"))
    return content


@pytest.mark.parametrize("path", [path for path in PAGES if "docs/hooks/" in text(path)], ids=named)
def test_the_generated_parts_of_a_page_are_current(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)
    assert stored_tables.main([str(path), "--check"]) == 0


def test_the_configuration_page_names_every_card() -> None:
    page = text(DOCS / "reference/configuration.md")
    for group in ("variant", "data", "pattern", "measure"):
        assert [name for name in registry.cards(group) if f"`{name}`" not in page] == []
    assert [name for name in registry.counters() if f"`{name}`" not in page] == []
    assert [name for name in registry.cards("experiment") if f"experiment={name}" not in page] == []


def test_the_commands_page_holds_the_help_of_every_command() -> None:
    page = text(DOCS / "reference/commands.md")
    headings = set(re.findall(r"^## python -m (\S+)", page, re.MULTILINE))
    with_options = {
        ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__main__")
        for path in REPOSITORY.glob("harness/**/*.py")
        if 'if __name__ == "__main__":' in text(path) and "Parser(" in text(path)
    }
    assert with_options
    assert with_options <= headings
    assert "--relative-to" in page
    assert "### harness.corpora fetch\n" in page


def test_the_page_of_exit_codes_says_what_the_code_says() -> None:
    rows = re.findall(
        r"^\| (\d+) \| `([A-Z]+)` \|", text(DOCS / "reference/commands.md"), re.MULTILINE
    )
    codes = {name: code for name, code in vars(errors).items() if isinstance(code, int)}
    assert {name: int(code) for code, name in rows} == codes


def test_links_lead_to_pages_of_code_and_keep_their_words_if_nothing_is_there() -> None:
    published = {"docs/a.md", "variants/heap.py", "results/README.md"}
    text = "[a](../variants/heap.py#x) [b](a.md) [c](https://example.org) [d](#e) [f](gone.py)\n"
    fenced = "```python\nx[0](../variants/heap.py)\n```\n"
    led = text.replace("heap.py#x", "heap.py.md#x")
    assert site_pages.with_links(text + fenced, "docs/page.md", published) == led + fenced
    words = led.replace("[f](gone.py)", "f")
    assert site_pages.with_links(text, "results/page.md", published) == words.replace(
        "[b](a.md)", "b"
    )


def test_a_page_of_code_holds_any_fence_and_comes_late_in_a_search() -> None:
    page = site_pages.code_page("a/b.hpp", "/** ```sh``` */\n")
    assert page.startswith("---\nsearch:\n  boost: 0.5\n---\n# b.hpp\n")
    assert "````cpp\n/** ```sh``` */\n````" in page


def test_an_executed_notebook_is_published_in_place_of_its_text(tmp_path: Path) -> None:
    executed, pages = tmp_path / "executed", tmp_path / "pages"
    site_pages.write_pages(pages, executed)
    published = pages / "notebooks/series.md"
    assert "# From naive to flat" in published.read_text()
    assert "jupytext" not in published.read_text()

    (executed / "series_files").mkdir(parents=True)
    (executed / "series_files/one.png").write_bytes(b"a chart")
    (executed / "series.md").write_text("ran ![png](series_files/one.png)")
    site_pages.write_pages(pages, executed)
    assert published.read_text() == "ran ![png](series_files/one.png)"
    assert (pages / "notebooks/series_files/one.png").is_file()


@pytest.mark.parametrize(
    "checks", [OF_A_PAGE, pytest.param(trainer_checks(), marks=pytest.mark.slow)], ids=["", "all"]
)
def test_the_page_of_flat_holds_a_program_that_conforms(checks: list[Check]) -> None:
    (source,) = re.findall(
        r"<!-- model -->\n```python\n(.*?)^```", text(DOCS / "explanation/flat.md"), re.M | re.S
    )
    model = ModuleType("model")
    exec(source, model.__dict__)
    passing(checks, model.train)


def test_nothing_is_fetched_from_elsewhere() -> None:
    configuration = mkdocs_yml()
    assert configuration["theme"]["font"] is False
    assert configuration["strict"] is True
    assert not re.search(r"https?://", (DOCS / "assets/extra.css").read_text())


def test_every_page_is_in_the_navigation() -> None:
    def leaves(node: Any) -> list[str]:
        if isinstance(node, str):
            return [node]
        return [
            leaf
            for each in (node.values() if isinstance(node, dict) else node)
            for leaf in leaves(each)
        ]

    others = [*site_pages.FIRST, "results/README.md", "results/board/README.md"]
    pages = [f"docs/{named(path)}" for path in PAGES]
    assert sorted(leaves(mkdocs_yml()["nav"])) == sorted([*pages, *others])


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_asks_nobody_for_anything(tmp_path: Path) -> None:
    if importlib.util.find_spec("material") is None and "CI" not in os.environ:
        pytest.skip(
            "the site is built with what .venv/bin/python -m pip install -e '.[docs]' installs"
        )
    site_pages.write_pages(REPOSITORY / "build/pages", tmp_path)
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    pages = {
        path.relative_to(tmp_path / "site").as_posix(): path.read_text()
        for path in (tmp_path / "site").rglob("*.html")
    }
    assert {f"docs/{named(path)}".replace(".md", ".html") for path in PAGES} <= set(pages)
    fetched = re.compile(r'<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)="(?:https?:)?//')
    assert [name for name, page in pages.items() if fetched.search(page)] == []
    assert "check_conformance" in pages["docs/reference/records.html"]
    assert "psi_cpu_seconds" in pages["docs/reference/records.html"]
    assert "One thread makes the merges" in pages["variants/native/flat.hpp.html"]


def test_each_documented_prevention_or_detection_has_its_test() -> None:
    page = (REPOSITORY / "docs" / "explanation" / "measuring.md").read_text()
    named = set(re.findall(r"`(test_\w+)`", page))
    there = {
        name
        for path in (REPOSITORY / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    assert len(named) > 10
    assert named - there == set()


class Block(NamedTuple):
    """A block of code of a page, with its mark and the mark's argument."""

    mark: str | None
    argument: str | None
    language: str
    code: str


def blocks(page: Path) -> list[Block]:
    return [Block(*found.groups()) for found in BLOCK.finditer(text(page))]


def shown(page: Path) -> bool:
    return any(block.language in RUN for block in blocks(page))


def test_every_mark_precedes_a_block_and_what_is_not_run_has_a_reason() -> None:
    for page in SHOWN:
        found = blocks(page)
        marks = re.findall(
            r"^<!-- (?:file|not run|model|program|printed)\b.*-->$", text(page), re.MULTILINE
        )
        assert len(marks) == sum(block.mark is not None for block in found), page
        assert {block.argument for block in found if block.mark == "not run"} <= REASONS, page


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in SHOWN if shown(page)], ids=named)
def test_what_a_page_shows_runs(page: Path, tmp_path: Path) -> None:
    checkout = copied(tmp_path)
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    }
    printed = ""
    for block in blocks(page):
        if block.mark == "printed":
            assert block.code in printed
        if block.mark == "file":
            assert block.argument is not None
            (checkout / block.argument).parent.mkdir(parents=True, exist_ok=True)
            (checkout / block.argument).write_text(block.code)
        if block.mark is not None or block.language not in RUN:
            continue
        command = (
            ["bash", "-euo", "pipefail", "-c"]
            if block.language == "sh"
            else [sys.executable, "-W", "error", "-c"]
        )
        done = subprocess.run(
            [*command, block.code], cwd=checkout, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, (
            f"{block.code}\nended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        printed = done.stdout
    shutil.rmtree(checkout)
