"""Other engines that encode: each opens a folder of ours and gives a function from a text to ids.

A package announces one of its own by an entry point in the group `harness.engines`, whose value is
`package.module:function`: called with a folder that holds vocab.json, merges.txt, tokenizer.json, ranks.tiktoken (where
the tokenizer can be said in it) and manifest.json, it returns a function from str to ids; if the first function has a
true attribute `takes_bytes`, from bytes that are not UTF-8 as well. It raises what it likes where it cannot.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.common.errors import UNMEASURED, Refusal
from harness.common.registry import resolve
from harness.tokenizers import huggingface, ranks
from harness.tokenizers.folder import MANIFEST, Manifest
from harness.tokenizers.merges_files import read_ranks
from variants.contract import Unavailable

ENTRY_POINTS = "harness.engines"
ANYTHING = "(?s:.+)"
"""What stands for no pattern where an engine must have one."""

Encode = Callable[[Any], Sequence[int]]
Engine = Callable[[Path], Encode]


def open_tokenizers(folder: Path) -> Encode:
    """Hugging Face's tokenizers, from tokenizer.json, without what a template would add."""
    tokenizers = installed("tokenizers")
    opened = tokenizers.Tokenizer.from_file(str(there(folder / huggingface.FILE)))
    opened.no_truncation()
    opened.no_padding()
    return lambda text: list(opened.encode(text, add_special_tokens=False).ids)


def open_tiktoken(folder: Path) -> Encode:
    """tiktoken, from the ranks with the manifest's pattern and special tokens."""
    tiktoken = installed("tiktoken")
    told = Manifest(folder / MANIFEST)
    encoding = tiktoken.Encoding(
        "ours",
        pat_str=ANYTHING if told.pattern is None else told.pattern,
        mergeable_ranks=read_ranks(there(folder / ranks.FILE).read_bytes()),
        special_tokens=told.special_tokens,
    )
    return lambda text: list(encoding.encode(text, allowed_special="all"))


def open_gigatoken(folder: Path) -> Encode:
    """gigatoken, from tokenizer.json; it has its own code for some patterns and refuses the others.

    It takes any bytes, but splits those that are not UTF-8 by rules of its own, so it is given text as the others are.
    """
    opened = installed("gigatoken").Tokenizer(there(folder / huggingface.FILE))
    return lambda text: [int(number) for number in opened.encode(text)]


OURS = {"tokenizers": open_tokenizers, "tiktoken": open_tiktoken, "gigatoken": open_gigatoken}


def engines() -> dict[str, Engine]:
    """Every engine by name, those of other packages last."""
    announced = importlib.metadata.entry_points(group=ENTRY_POINTS)
    return {**OURS, **{entry.name: resolve(entry.value) for entry in announced if entry.name not in OURS}}


def version_of(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def installed(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise Unavailable(f"it is not installed; run python -m pip install {module}") from error


def there(path: Path) -> Path:
    if not path.is_file():
        raise Refusal(f"there is no {path.name}", UNMEASURED)
    return path
