"""Tokenizers of a run, with save=FOLDER, and certificates: where each goes, and writing it.

What writes them is imported late, as few runs save any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.common.files import check_output, check_writable
from harness.proof import PROVED, WRONG
from harness.records.lines import ELSEWHERE, FILE_NAME
from harness.runs.cells import Plan, Reading, TrainCell
from harness.runs.jobs import Trained
from variants.contract import TieBreak, WordCounts


class Outputs(NamedTuple):
    """Where the tokenizer and the certificate of each cell go, by the cell's key; nowhere unless
    the command says so.
    """

    tokenizers: Mapping[str, Path]
    certificates: Mapping[str, Path]


def outputs_of(plan: Plan) -> Outputs:
    """The outputs of a run. Raises Refusal if one would replace an input, or could not be checked
    by others.
    """
    cells, settings = plan.cells, plan.settings
    check_output(settings.results, plan.inputs, names=[FILE_NAME], instead=ELSEWHERE)
    folders: dict[str, Path] = {}
    if settings.save is not None:
        from harness.tokenizers.folder import FILES
        from harness.tokenizers.learned import check_spellings

        folders = places(cells, settings.save)
        for cell in cells:
            check_spellings(cell.reading.corpus.special_tokens)
            check_output(folders[cell.key], plan.inputs, names=FILES)

    certificates: dict[str, Path] = {}
    if settings.certificate is not None:
        from harness.proof.certificate import check_plain

        certificates = places(cells, settings.certificate, ".certificate.gz")
        for cell in cells:
            check_plain(cell.extension is None)
            check_output(certificates[cell.key], plan.inputs)
    return Outputs(folders, certificates)


def places(cells: Sequence[TrainCell], path: Path, suffix: str = "") -> dict[str, Path]:
    """Where something of each cell goes, by the cell's key: to `path`, or if there are several
    below it.
    """
    if len(cells) == 1:
        return {cells[0].key: path}
    return {key: path / f"{name}{suffix}" for key, name in folder_names(cells).items()}


def check_free_outputs(outputs: Outputs, overwrite: bool) -> None:
    """Raise Refusal if an output cannot be written, or exists and may not be overwritten."""
    for folder in outputs.tokenizers.values():
        from harness.tokenizers.folder import check_place

        check_place(folder, overwrite=overwrite)
    for path in outputs.certificates.values():
        check_output(path, overwrite=overwrite)
        check_writable(path, "choose another file")


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
        notes += save_certificate(trained, words, outputs.certificates[cell.key], overwrite)
    return notes


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


def save_certificate(trained: Trained, words: WordCounts, path: Path, overwrite: bool) -> list[str]:
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
    certificate.write(path, content, overwrite=overwrite)
    return [f"wrote {path}"]
