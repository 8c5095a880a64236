"""Where the tokenizers of a run go with `save=FOLDER`; each is written whole or not at all, and never wrong merges."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from harness.proof import WRONG
from harness.runs.cells import Settings, TrainCell
from harness.runs.jobs import Trained
from harness.tokenizers import folder as tokenizer_folder
from harness.tokenizers import learned
from harness.tokenizers.forms import MANIFEST


def output_folders(cells: Sequence[TrainCell], settings: Settings, *, resumed: bool) -> dict[str, Path]:
    """Where the tokenizer of each cell goes, by the cell's key.

    Raises Refusal if that cannot be written, or holds what this run has not saved.
    """
    assert settings.save is not None
    folders = {cells[0].key: settings.save}
    if len(cells) > 1:
        folders = {key: settings.save / name for key, name in folder_names(cells).items()}
    for folder in folders.values():
        if not (resumed and (folder / MANIFEST).is_file()):
            tokenizer_folder.check_free(folder, settings.overwrite)
    tokenizer_folder.check_writable(settings.save)
    return folders


def folder_names(cells: Sequence[TrainCell]) -> dict[str, str]:
    """A folder's name for each cell: the variant, with the corpus, the size and the cell's key if names are equal."""
    facts = [(cell.variant.name, cell.reading.file.name, str(cell.vocab_size), cell.key[:8]) for cell in cells]
    for number in (1, 3, 4):
        names = [folder_name("-".join(fact[:number])) for fact in facts]
        if len(set(names)) == len(names):
            break
    return {cell.key: name for cell, name in zip(cells, names, strict=True)}


def folder_name(text: str) -> str:
    """The name of one folder: names of variants and corpora may hold anything.

    >>> folder_name("my.package:train-owt"), folder_name("../../etc"), folder_name("..")
    ('my.package.train-owt', '.._.._etc', '_')
    """
    name = re.sub(r"[/\\\x00-\x1f\x7f]", "_", text.replace(":", "."))
    return name if name.strip(".") else "_"


def save_tokenizer(trained: Trained, folder: Path, *, overwrite: bool) -> list[str]:
    """Write the tokenizer of a trainer that succeeded; returns notes about it. Wrong merges are not written."""
    if trained.identity is not None and trained.identity.kind == WRONG:
        return []
    assert trained.merges is not None
    cell, corpus, file = trained.cell, trained.cell.reading.corpus, trained.cell.reading.file
    extended = None if cell.extension is None else cell.extension.learned
    origin = {
        "vocab_size_asked": cell.vocab_size,
        "tie_break": trained.tie_break or cell.tie_break,
        "min_count": cell.min_count,
        "variant": cell.variant.name,
        "data": {"name": file.name, "sha256": file.sha256},
        **({} if extended is None else {"inherited_merges": len(extended.merges)}),
    }
    tokenizer = learned.trained(trained.merges, corpus.special_tokens, corpus.pattern, extended)
    notes = tokenizer_folder.save(folder, tokenizer, origin, overwrite=overwrite)
    written = ", ".join(name for name in tokenizer_folder.FILES if (folder / name).exists())
    return [f"saved {folder}: {written}", *notes]
