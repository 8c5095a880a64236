"""Write the pages of the site into a folder that is laid out as the repository; any builder takes it.

python docs/hooks/site_pages.py

Pages of docs/ are followed by the files that they link to: code becomes a page beside its place, so
that `variants/heap.py` is `variants/heap.py.md`. An executed notebook in build/notebook replaces its
text.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
NOTEBOOK = "notebooks/series.md"
FIRST = ("README.md", "CHANGELOG.md", NOTEBOOK)
PICTURES = (".svg", ".png")
LANGUAGES = {"hpp": "cpp", "jsonl": "json", "pyi": "python"}
FENCED = r"^(?P<fence>```+|~~~+).*?^(?P=fence)[ \t]*$"
LINK = re.compile(
    rf"{FENCED}|(?P<text>!?\[(?:[^\[\]]|\[[^\]]*\])*\])\((?P<target>[^)\s]+)\)",
    re.MULTILINE | re.DOTALL,
)
"""A link, or fenced code, which has none."""


def write_pages(folder: Path, executed: Path) -> None:
    """Write every page, picture and asset below `folder`, which is removed first."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(REPOSITORY / "docs/assets", folder / "docs/assets")
    contents = site_files()
    published = set(contents)
    if (executed / "series.md").is_file():
        contents[NOTEBOOK] = (executed / "series.md").read_text()
        shutil.copytree(executed / "series_files", folder / "notebooks/series_files")
        published.update(
            f"notebooks/{path.relative_to(executed)}" for path in executed.rglob("*.png")
        )

    for path, content in contents.items():
        page = folder / path
        if path.endswith(PICTURES):
            page.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(REPOSITORY / path, page)
            continue
        if not path.endswith(".md"):
            page = page.with_name(f"{page.name}.md")
            content = code_page(path, content)
        elif not path.startswith("docs/"):
            content = re.sub(r"\A---\n.*?^---\n", "", content, flags=re.MULTILINE | re.DOTALL)
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(with_links(content, path, published))


def site_files() -> dict[str, str]:
    """Return the files of the site with their texts, by their paths in the repository.

    A page of docs/ brings every file that it links to, any other page other pages and pictures.
    """
    pages = sorted((REPOSITORY / "docs").rglob("*.md"))
    waiting = [*FIRST, *(page.relative_to(REPOSITORY).as_posix() for page in pages)]
    contents: dict[str, str] = {}
    while waiting:
        path = waiting.pop()
        if path in contents:
            continue
        contents[path] = "" if path.endswith(".png") else (REPOSITORY / path).read_text()
        if not path.endswith(".md"):
            continue
        for link in LINK.finditer(contents[path]):
            linked = path_of(link, path)
            is_page = linked.endswith((".md", *PICTURES))
            if (is_page or path.startswith("docs/")) and (REPOSITORY / linked).is_file():
                waiting.append(linked)
    return contents


def path_of(link: re.Match[str], page: str) -> str:
    """Return the path in the repository that a link of a page leads to; a folder for an address."""
    target = (link["target"] or "").partition("#")[0]
    if re.match(r"[a-z]+:", target):
        return "."
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), target))


def code_page(path: str, content: str) -> str:
    """Return a page that shows a file of code; a search finds pages that explain before it."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", content)), default=0))
    ending = path.rpartition(".")[2]
    head = f"---\nsearch:\n  boost: 0.5\n---\n# {posixpath.basename(path)}\n\n`{path}`"
    return f"{head}\n\n{fence}{LANGUAGES.get(ending, ending)}\n{content.rstrip()}\n{fence}\n"


def with_links(markdown: str, page: str, published: set[str]) -> str:
    """Return the page with links to code led to its pages.

    A page outside docs/ keeps the words only of a link to a file that is not published; in docs/
    the builder complains.
    """

    def led(link: re.Match[str]) -> str:
        target, mark, anchor = (link["target"] or "").partition("#")
        path = path_of(link, page)
        if not target or path == "." or (path in published and path.endswith((".md", *PICTURES))):
            return link[0]
        if path in published:
            return f"{link['text']}({target}.md{mark}{anchor})"
        return link[0] if page.startswith("docs/") else link["text"].lstrip("!")[1:-1]

    return LINK.sub(led, markdown)


if __name__ == "__main__":
    write_pages(REPOSITORY / "build/pages", REPOSITORY / "build/notebook")
