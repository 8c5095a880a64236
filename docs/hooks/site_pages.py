"""Write the pages of the site into build/pages, laid out as the repository; any builder takes it.

python docs/hooks/site_pages.py

A file that a page of docs/ links to becomes a page beside its place: `variants/heap.py` is
`variants/heap.py.md`. An executed notebook in build/notebook replaces its text.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
NOTEBOOK = "notebooks/series.md"
FIRST = ("README.md", "CHANGELOG.md", NOTEBOOK)
OTHERS = ("CONTRIBUTING.md", "SECURITY.md", "results/README.md")
SHOWN_AS_THEY_ARE = (".md", ".svg", ".png")
LANGUAGES = {"hpp": "cpp", "jsonl": "json", "pyi": "python"}
FENCED = r"^(?P<fence>```+|~~~+).*?^(?P=fence)[ \t]*$"
LINK = re.compile(
    rf"{FENCED}|(?P<text>!?\[(?:[^\[\]]|\[[^\]]*\])*\])\((?P<target>[^)\s:#]+)(?P<anchor>#[^)\s]*)?\)",
    re.MULTILINE | re.DOTALL,
)
"""A link to a file of the repository, or fenced code, which has none."""


def write_pages(folder: Path, executed: Path) -> None:
    """Write every page, picture and asset below `folder`, which is removed first."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(REPOSITORY / "docs/assets", folder / "docs/assets")

    files = site_files()
    for path in files:
        content = (REPOSITORY / path).read_text()
        page = folder / path
        if not path.endswith(SHOWN_AS_THEY_ARE):
            page = page.with_name(f"{page.name}.md")
            content = code_page(path, content)
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(with_links(content, path, files))

    if executed.is_dir():
        shutil.copytree(executed, folder / "notebooks", dirs_exist_ok=True)
        content = (executed / "series.md").read_text()
        (folder / NOTEBOOK).write_text(with_links(content, NOTEBOOK, files))


def site_files() -> set[str]:
    """Return the paths of the pages, of their charts, and of what pages of docs/ link to."""
    files = {*FIRST, *OTHERS}
    for pattern in ("docs/**/*.md", "results/*/README.md", "results/*/*.svg"):
        files.update(path.relative_to(REPOSITORY).as_posix() for path in REPOSITORY.glob(pattern))
    for page in [path for path in files if path.startswith("docs/")]:
        for link in LINK.finditer((REPOSITORY / page).read_text()):
            linked = path_of(link, page)
            if (REPOSITORY / linked).is_file():
                files.add(linked)
    return files


def path_of(link: re.Match[str], page: str) -> str:
    """Return the path in the repository that a link of a page leads to; a folder for no link."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link["target"] or ""))


def code_page(path: str, content: str) -> str:
    """Return a page that shows a file of code; a search finds pages that explain before it."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", content)), default=0))
    ending = path.rpartition(".")[2]
    head = f"---\nsearch:\n  boost: 0.5\n---\n# {posixpath.basename(path)}\n\n`{path}`"
    return f"{head}\n\n{fence}{LANGUAGES.get(ending, ending)}\n{content.rstrip()}\n{fence}\n"


def with_links(markdown: str, page: str, files: set[str]) -> str:
    """Return the page with links to code led to its pages.

    A page outside docs/ keeps the words only of a link to a file that is not published; in docs/
    the builder complains.
    """

    def led(link: re.Match[str]) -> str:
        if not link["target"] or link["target"].endswith(SHOWN_AS_THEY_ARE):
            return link[0]
        if path_of(link, page) in files:
            return f"{link['text']}({link['target']}.md{link['anchor'] or ''})"
        return link[0] if page.startswith("docs/") else link["text"].strip("[]")

    return LINK.sub(led, markdown)


if __name__ == "__main__":
    write_pages(REPOSITORY / "build/pages", REPOSITORY / "build/notebook")
