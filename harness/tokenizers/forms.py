"""From any form of a tokenizer to any other."""

from __future__ import annotations

from pathlib import Path

from harness.common.errors import Refusal
from harness.common.units import count_text, token_text
from harness.tokenizers import huggingface, ranks
from harness.tokenizers.folder import (
    FILES,
    MANIFEST,
    MERGES,
    VOCAB,
    check_free,
    gpt2_contents,
    manifest,
    manifest_in,
    place,
    read_described,
    write,
)
from harness.tokenizers.learned import Learned
from harness.tokenizers.reading import Found

FORMS = {
    "ours": "ours: every file that save=FOLDER writes",
    "gpt2": "gpt2: vocab.json and merges.txt",
    "huggingface": "huggingface: tokenizer.json",
    "tiktoken": "tiktoken: ranks.tiktoken, with pattern and special tokens in manifest.json",
}


def convert(found: Found, form: str, folder: Path, pattern_name: str | None, overwrite: bool) -> list[str]:
    """Write a tokenizer in a form; returns what was written and what there is to say about it.

    A manifest that describes the same tokenizer stays as it is. Raises Refusal, before anything is written, if the form
    cannot hold the tokenizer or if a file lies in its place.
    """
    learned = found.learned
    files = {
        "ours": FILES,
        "gpt2": (VOCAB, MERGES),
        "huggingface": (huggingface.FILE,),
        "tiktoken": (ranks.FILE, MANIFEST),
    }[form]
    if form == "tiktoken" and _describes(folder, learned):
        files = (ranks.FILE,)
    check_free(folder, overwrite, files, how="--overwrite")
    if form == "ours":
        said = write(folder, learned, pattern_name, {"data": {"name": None, "sha256": None}, "read_from": found.form})
    else:
        contents, said = _contents(learned, form)
        if MANIFEST in files:
            contents[MANIFEST] = manifest(learned, pattern_name, {"read_from": found.form}, contents)
        place(folder, contents, ())
    written = ", ".join(name for name in files if (folder / name).exists())
    return [f"wrote {folder}: {written} ({count_text(len(learned.vocab))} tokens)", *said]


def _contents(learned: Learned, form: str) -> tuple[dict[str, bytes], list[str]]:
    try:
        if form == "huggingface":
            return {huggingface.FILE: huggingface.tokenizer_json(learned)}, []
        if form == "tiktoken":
            return {ranks.FILE: ranks.ranks_text(learned)}, []
    except ValueError as error:
        raise Refusal(f"{form} cannot hold this tokenizer: {error}") from error
    if learned.ignore_merges:
        made = {left + right for left, right in learned.merges}
        unmade = next((token for token in learned.token_ids() if len(token) > 1 and token not in made), None)
        example = f", such as {token_text(unmade)}" if unmade is not None else ""
        raise Refusal(f"gpt2 cannot hold this tokenizer: it takes whole pre-tokens that no merges make{example}")
    contents, said = gpt2_contents(learned)
    lines = [f"pattern and special tokens stand in no file of this form: the pattern is {learned.pattern!r}"]
    return contents, [*said, *lines]


def _describes(folder: Path, learned: Learned) -> bool:
    """Whether a manifest in the folder already says the pattern and the special tokens of this tokenizer."""
    told = manifest_in(folder)
    return told is not None and read_described(told) == learned
