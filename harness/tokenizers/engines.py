"""The tokenizers of other engines: opened from our files, or read."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.common.errors import UNMEASURED, Refusal, extra
from harness.common.units import one_line
from harness.common.values import one_of
from harness.tokenizers.forms import RANKS, TOKENIZER_JSON, of_ranks, tokenizer_json
from harness.tokenizers.learned import Learned


@contextlib.contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """Turn whatever an engine raises into a Refusal of one line that begins with `what`.

    Engines in Rust panic, which is not an Exception.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        why = one_line(str(error))[:300] or type(error).__name__
        raise Refusal(f"{what}: {why}", UNMEASURED) from error


def load_tokenizers(path: Path) -> Any:
    """The `tokenizers.Tokenizer` of a file. Raises Refusal if tokenizers is missing or does not
    load it.
    """
    tokenizers = extra("tokenizers", TOKENIZER_JSON, "engines")
    with engine_errors("tokenizers does not load it"):
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
        tokenizer.encode("a")  # 1.0 compiles a pattern when it first meets a text
    return tokenizer


def as_tokenizers(learned: Learned) -> Any:
    """The `tokenizers.Tokenizer` of a tokenizer, of whichever version is installed. Raises Refusal
    if it cannot be.
    """
    with tempfile.TemporaryDirectory(prefix="bpe-harness-") as folder:
        path = Path(folder, TOKENIZER_JSON)
        path.write_bytes(tokenizer_json(learned))  # tokenizers 1.0 loads from files only
        return load_tokenizers(path)


def as_tiktoken(ranks: Mapping[bytes, int], learned: Learned) -> Any:
    """The `tiktoken.Encoding` of ranks, with a tokenizer's pattern and special tokens. Raises
    Refusal if tiktoken is missing or cannot use them.
    """
    tiktoken = extra("tiktoken", RANKS, "engines")
    with engine_errors("tiktoken does not load it"):
        encoding = tiktoken.Encoding(
            "ours",
            pat_str="(?s:.+)" if learned.pattern is None else learned.pattern,  # it must have one
            mergeable_ranks=dict(ranks),
            special_tokens=learned.special_tokens,
        )
        encoding.encode("a")
    return encoding


def of_tiktoken(name: str) -> Learned:
    """An encoding of the tiktoken package, whose ranks may have to be in that package's own
    cache.
    """
    tiktoken = extra("tiktoken", f"tiktoken:{name}", "engines")
    one_of("encoding of tiktoken", name, tiktoken.list_encoding_names())
    advice = "set TIKTOKEN_CACHE_DIR to a folder that has them, or pass a file of ranks"
    with engine_errors(f"tiktoken cannot get the ranks of {name} here; {advice}"):
        encoding = tiktoken.get_encoding(name)
    return of_ranks(encoding._mergeable_ranks, encoding._special_tokens, encoding._pat_str)
