"""Files of the repository that pages of docs/ link to, as pages of the site: code to read, other
papers, pictures.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

FOLDER = "source"
"""Where on the site they are; a path in it is that in the repository, with .md behind it for a
page.
"""
PICTURES = (".svg", ".png")
LANGUAGES = {
    ".py": "python",
    ".pyx": "cython",
    ".pyi": "python",
    ".hpp": "cpp",
    ".cpp": "cpp",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".toml": "toml",
    ".json": "json",
    ".jsonl": "json",
    ".awk": "awk",
    ".sh": "sh",
}
FENCED = r"^(?P<fence>```+|~~~+).*?^(?P=fence)[ \t]*$"
LINK = re.compile(
    rf"{FENCED}|(?P<text>!?\[(?:[^\[\]]|\[[^\]]*\])*\])\((?P<target>[^)\s]+)\)",
    re.MULTILINE | re.DOTALL,
)
"""A link, or fenced code, which has none."""
BRACKET = re.compile(rf"{FENCED}|`[^`\n]+`|\\<", re.MULTILINE | re.DOTALL)


def with_brackets(markdown: str) -> str:
    r"""The page with `&lt;` for each bracket that is escaped as on GitHub: Python's Markdown would
    show the backslash.

    >>> with_brackets(r"tokens \<s\>, code `\<s\>`")
    'tokens &lt;s\\>, code `\\<s\\>`'
    """
    return BRACKET.sub(lambda found: "&lt;" if found[0] == "\\<" else found[0], markdown)


def links(markdown: str) -> Iterator[str]:
    """The targets of a page's links to files, without their anchors; fenced code is left out."""
    for link in LINK.finditer(markdown):
        target = (link["target"] or "").partition("#")[0]
        if target and not is_address(target):
            yield target


def is_address(target: str) -> bool:
    return bool(re.match(r"[a-z]+:", target))


def linked_from(pages: Mapping[Path, str], repository: Path, docs: Path) -> list[str]:
    """The files outside docs/ that pages with these texts link to, by their paths in the
    repository.
    """
    found = set()
    for page, markdown in pages.items():
        for target in links(markdown):
            path = (page.parent / target).resolve()
            if not path.is_relative_to(docs.resolve()) and path.is_file():
                found.add(path.relative_to(repository).as_posix())
    return sorted(found)


def reached_from(pages: Mapping[Path, str], repository: Path, docs: Path) -> list[str]:
    """The files that pages with these texts link to, and the pages and pictures that are reached
    from these.
    """
    reached: dict[str, None] = {}
    new = linked_from(pages, repository, docs)
    while new:
        reached.update(dict.fromkeys(new))
        papers = {
            repository / path: (repository / path).read_text()
            for path in new
            if path.endswith(".md")
        }
        there = linked_from(papers, repository, docs)
        new = [
            path
            for path in there
            if path not in reached and (path.endswith(".md") or is_picture(path))
        ]
    return sorted(reached)


def is_picture(path: str) -> bool:
    return path.endswith(PICTURES)


def uri_of(path: str) -> str:
    """Where a file of the repository is on the site.

    >>> uri_of("variants/heap.py"), uri_of("results/README.md"), uri_of("results/a.svg")
    ('source/variants/heap.py.md', 'source/results/README.md', 'source/results/a.svg')
    """
    return f"{FOLDER}/{path}" if is_picture(path) or path.endswith(".md") else f"{FOLDER}/{path}.md"


def path_of(uri: str) -> str | None:
    """The file of the repository that a page of the site shows; None for a page of docs/.

    >>> path_of("source/variants/heap.py.md"), path_of("source/results/README.md"), path_of("tutorial.md")
    ('variants/heap.py', 'results/README.md', None)
    """
    if not uri.startswith(f"{FOLDER}/"):
        return None
    path = uri.removeprefix(f"{FOLDER}/")
    code = path.removesuffix(".md")
    return code if posixpath.splitext(code)[1] in LANGUAGES else path


def page_of(repository: Path, path: str) -> str:
    """A file as a page: a paper as it is, code in a block with its path above."""
    content = (repository / path).read_text()
    if path.endswith(".md"):
        # What other programs keep at the head of a page is nothing to read.
        return re.sub(r"\A---\n.*?^---\n", "", content, flags=re.MULTILINE | re.DOTALL)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", content)), default=0))
    language = LANGUAGES.get(posixpath.splitext(path)[1], "text")
    return f"# {posixpath.basename(path)}\n\n`{path}`\n\n{fence}{language}\n{content.rstrip()}\n{fence}\n"


def with_links(markdown: str, lead: Callable[[str], str | None], strict: bool) -> str:
    """The page with its links to files led to where these are on the site.

    A link to what is not on the site loses its target where it need not be there, and is left as it
    is, for MkDocs to complain of, where it must (`strict`).
    """

    def led(link: re.Match[str]) -> str:
        target, mark, anchor = (link["target"] or "").partition("#")
        if not target or is_address(target):
            return link[0]
        there = lead(target)
        if there is not None:
            return f"{link['text']}({there}{mark}{anchor})"
        return link[0] if strict else link["text"].lstrip("!")[1:-1]

    return LINK.sub(led, markdown)
