"""Tokenizers of a run, with save=FOLDER, and certificates: where each goes, and writing it.

What writes them is imported late, as few runs save any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.proof import PROVED, WRONG
from harness.runs.cells import Reading, Settings, TrainCell
from harness.runs.jobs import Trained
from variants.contract import TieBreak, WordCounts


class Outputs(NamedTuple):
    """Where the tokenizer and the certificate of each cell go, by the cell's key; nowhere unless
    the command says so.
    """

    tokenizers: Mapping[str, Path]
    certificates: Mapping[str, Path]


def outputs_of(cells: Sequence[TrainCell], settings: Settings, attempt: int) -> Outputs:
    """The outputs of a run. Raises Refusal if one cannot be written, or holds what this run has not
    saved.
    """
    folders = output_folders(cells, settings, attempt)
    return Outputs(folders, certificate_files(cells, settings, attempt))


def save_outputs(
    trained: Trained,
    outputs: Outputs,
    words_of: Callable[[Reading], WordCounts | None],
    overwrite: bool,
) -> list[str]:
    """Write what the command wants of a trainer that succeeded; returns notes."""
    cell, notes = trained.cell, []
    if cell.key in outputs.tokenizers:
        notes += save_tokenizer(trained, outputs.tokenizers[cell.key], overwrite)
    if cell.key in outputs.certificates and (words := words_of(cell.reading)) is not None:
        notes += save_certificate(trained, words, outputs.certificates[cell.key])
    return notes


def output_folders(cells: Sequence[TrainCell], settings: Settings, attempt: int) -> dict[str, Path]:
    """Return the folder of each cell's tokenizer by the cell's key; none without save=FOLDER.

    Raises Refusal if that cannot be written, or holds what this run has not saved.
    """
    save = settings.save
    if save is None:
        return {}

    from harness.tokenizers.folder import check_free, check_place
    from harness.tokenizers.forms import MANIFEST
    from harness.tokenizers.learned import check_spellings

    for cell in cells:
        check_spellings(cell.reading.corpus.special_tokens)
    folders = {cells[0].key: save}
    if len(cells) > 1:
        folders = {key: save / name for key, name in folder_names(cells).items()}
    for folder in folders.values():
        if attempt == 1 or not (folder / MANIFEST).is_file():
            check_free(folder, settings.overwrite)
    check_place(save, overwrite=True)
    return folders


def certificate_files(
    cells: Sequence[TrainCell], settings: Settings, attempt: int
) -> dict[str, Path]:
    """Where the certificate of each cell goes, by the cell's key; none without certificate=FILE.

    Raises Refusal if one is there already, or could not be checked by others.
    """
    path = settings.certificate
    if path is None:
        return {}

    from harness.proof import certificate

    paths = {cells[0].key: path}
    if len(cells) > 1:
        names = folder_names(cells)
        paths = {key: path / f"{name}.certificate.gz" for key, name in names.items()}
    for cell in cells:
        may_replace = settings.overwrite or attempt > 1
        certificate.check_writable(paths[cell.key], cell.extension is None, may_replace)
    return paths


def folder_names(cells: Sequence[TrainCell]) -> dict[str, str]:
    """A folder's name for each cell: the variant, with the corpus, the size and the cell's key if
    names are equal.
    """
    facts = [
        (cell.variant.name, cell.reading.file.name, str(cell.vocab_size), cell.key[:8])
        for cell in cells
    ]
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


def save_tokenizer(trained: Trained, folder: Path, overwrite: bool) -> list[str]:
    """Write the tokenizer of a trainer that succeeded, whole or not at all, and never wrong merges;
    returns notes.
    """
    from harness.tokenizers import folder as tokenizer_folder
    from harness.tokenizers import learned

    if trained.merges is None or (trained.identity is not None and trained.identity.kind == WRONG):
        return []
    cell, corpus, file = trained.cell, trained.cell.reading.corpus, trained.cell.reading.file
    extension = cell.extension
    origin = {
        "vocab_size_asked": cell.vocab_size,
        "tie_break": trained.tie_break or cell.tie_break,
        "min_count": cell.min_count,
        "variant": cell.variant.name,
        "data": {"name": file.name, "sha256": file.sha256},
        **({} if extension is None else extension.origin()),
    }
    extended = None if extension is None else extension.learned
    tokenizer = learned.trained(trained.merges, corpus.special_tokens, corpus.pattern, extended)
    notes = tokenizer_folder.save(folder, tokenizer, origin, overwrite=overwrite)
    written = ", ".join(name for name in tokenizer_folder.FILES if (folder / name).exists())
    return [f"saved {folder}: {written}", *notes]


def save_certificate(trained: Trained, words: WordCounts, path: Path) -> list[str]:
    """Write what others need to check merges that were proved; returns notes."""
    from harness.proof import certificate

    cell, identity = trained.cell, trained.identity
    if trained.merges is None or identity is None or identity.kind not in PROVED:
        return [f"no certificate {path}: the merges of {cell.label} are not proved"]
    if identity.tie_break is None:
        label = cell.label
        return [f"no certificate {path}: none of our tie-breaks makes all choices of {label}"]

    tie_break = TieBreak(identity.tie_break)
    content = certificate.certificate(
        words, trained.merges, tie_break, cell.min_count, cell.num_merges
    )
    certificate.write(path, content)
    return [f"wrote {path}"]
