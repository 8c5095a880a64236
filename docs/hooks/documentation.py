"""What MkDocs does beside rendering: files that pages link to become pages of the site.

Pages link to source code by its path in the repository, which works there as well.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

import outside_files

REPOSITORY = Path(__file__).resolve().parent.parent.parent
DOCTEST = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """Add a page for every file outside docs/ that a page links to."""
    from mkdocs.structure.files import File, InclusionLevel

    # MkDocs finds modules next to a hook only while it imports the hook; griffe imports its
    # extension later.
    sys.path.append(str(Path(__file__).parent))
    docs = Path(config["docs_dir"])
    pages = [
        path
        for path in sorted(docs.rglob("*.md"))
        if files.get_file_from_path(path.relative_to(docs).as_posix())
    ]
    for path in outside_files.reached_from(
        {page: page.read_text() for page in pages}, REPOSITORY, docs
    ):
        uri = outside_files.uri_of(path)
        if outside_files.is_picture(path):
            added = File.generated(config, uri, content=(REPOSITORY / path).read_bytes())
        else:
            content = outside_files.page_of(REPOSITORY, path)
            added = File.generated(
                config, uri, content=content, inclusion=InclusionLevel.NOT_IN_NAV
            )
        files.append(added)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Lead links to where the files are on the site."""
    uri = page.file.src_uri
    docs = Path(config["docs_dir"]).relative_to(REPOSITORY).as_posix()
    published = {file.src_uri for file in files}
    outside = outside_files.path_of(uri)
    source = outside or f"{docs}/{uri}"

    def lead(target: str) -> str | None:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        there = (
            path.removeprefix(f"{docs}/")
            if path.startswith(f"{docs}/")
            else outside_files.uri_of(path)
        )
        return (
            posixpath.relpath(there, posixpath.dirname(uri) or ".") if there in published else None
        )

    if outside is not None:
        # a search finds pages that explain before sources that name
        page.meta["search"] = {"boost": 0.5}
    return outside_files.with_brackets(
        outside_files.with_links(markdown, lead, strict=outside is None)
    )


def fenced(text: str) -> str:
    """A docstring with a fence round each of its doctests, which Markdown would take for prose."""
    return DOCTEST.sub(lambda doctest: f"```pycon\n{doctest[0]}\n```", text)
