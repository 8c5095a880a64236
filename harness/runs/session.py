"""One start of a run: the machine for it alone, its log, its words, and what it finds out once."""

from __future__ import annotations

import contextlib
import datetime
import functools
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import structs

from harness.common import cache, registry
from harness.common.files import check_output, check_writable, copy_tree, remove_tree
from harness.common.progress import Display
from harness.measure.machine import environment, host, python
from harness.measure.quiet import timing
from harness.proof import PROVED, WRONG, Identity
from harness.proof.prove import certificate, check_plain, write_certificate
from harness.records.file import RunLog
from harness.records.lines import ELSEWHERE, FILE_NAME
from harness.records.schema import Cell, Measurement, Proof, Run
from harness.runs.cells import Block, Manifest, Plan, Reading, Task, TrainCell
from harness.runs.jobs import Trained
from harness.runs.overrides import Settings
from harness.runs.resume import ImportedFiles, open_log
from harness.worker import exchange
from variants.contract import TieBreak, WordCounts

# Tokenizers, with save=FOLDER, and certificates: where each goes, and writing it. What writes tokenizers
# is imported late, as few runs save any.


class Outputs(NamedTuple):
    """Where the tokenizer and the certificate of each cell go, by the cell's key; nowhere unless
    the command says so.
    """

    tokenizers: Mapping[str, Path]
    certificates: Mapping[str, Path]


NOWHERE = Outputs({}, {})


def outputs_of(plan: Plan) -> Outputs:
    """The outputs of a run. Raises Refusal if one would replace an input, or could not be checked
    by others.
    """
    cells, settings = plan.cells, plan.settings
    folders = places(cells, settings.save)
    if folders:
        from harness.tokenizers.folder import FILES
        from harness.tokenizers.learned import check_spellings

        for cell in cells:
            check_spellings(cell.reading.corpus.special_tokens)
            check_output(folders[cell.key], plan.inputs, names=FILES)

    certificates = places(cells, settings.certificate, ".certificate.gz")
    if certificates:
        for cell in cells:
            check_plain(cell.extension is None)
            check_output(certificates[cell.key], plan.inputs)
    return Outputs(folders, certificates)


def check_free(outputs: Outputs, overwrite: bool) -> None:
    """Raise Refusal if an output cannot be written, or exists and may not be overwritten."""
    for folder in outputs.tokenizers.values():
        from harness.tokenizers.folder import check_place

        check_place(folder, overwrite=overwrite)
    for path in outputs.certificates.values():
        check_writable(path, overwrite=overwrite)


def places(cells: Sequence[TrainCell], name: str | None, suffix: str = "") -> dict[str, Path]:
    """Where something of each cell goes, by the cell's key: to the path of this name; of several
    cells below it, to one named after the variant, with the corpus, the size and the cell's key if
    names are equal; nowhere without a name.
    """
    if name is None:
        return {}
    if len(cells) == 1:
        return {cells[0].key: Path(name)}

    found = {}
    for number in (1, 3, 4):
        for cell in cells:
            facts = (cell.variant.name, cell.reading.file.name, str(cell.vocab_size), cell.key[:8])
            own = folder_name("-".join(facts[:number]))
            found[cell.key] = Path(name, f"{own}{suffix}")
        if len({*found.values()}) == len(found):
            break
    return found


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
    cell, identity = trained.cell, trained.identity
    if trained.merges is None or identity is None or identity.kind not in PROVED:
        return [f"no certificate {path}: the merges of {cell.label} are not proved"]
    if identity.tie_break is None:
        label = cell.label
        return [f"no certificate {path}: none of our tie-breaks makes all choices of {label}"]

    tie_break = TieBreak(identity.tie_break)
    content = certificate(words, trained.merges, tie_break, cell.min_count, cell.num_merges)
    write_certificate(path, content, overwrite=overwrite)
    return [f"wrote {path}"]


# The session

UNTIMED: dict[str, Any] = {
    **dict.fromkeys(("cpu_seconds", "system_seconds", "cpu_wait_seconds", "cpu_wait_unknown")),
    "seconds": {},
}
"""What records hold where no times are measured."""


class Session:
    """One start of a run: the log that it continues, a folder for its processes, and what is found
    out once.
    """

    def __init__(
        self, settings: Settings, log: RunLog, folder: Path, outputs: Outputs = NOWHERE
    ) -> None:
        self.settings, self.log, self.folder = settings, log, folder
        self.timed = settings.measure.kind == "time"
        # a resumed run has written some of its outputs
        self.overwrite = settings.overwrite or log.attempt > 1
        can_resume = log.store is not None and log.run.question is None
        key = cache.key_of(log.run.run, log.run.plan) if can_resume else None
        self.imported = ImportedFiles(key)

        self.notes = list[str]()
        self.display = Display()
        self.numbers = itertools.count()  # of the processes; threads may share it
        self.outputs = outputs
        self.right_words, self.manifests = dict[str, Manifest](), dict[str, Manifest]()
        """By the key of a reading, the manifest of its words, kept here where no trainer can reach it."""
        self.judged: dict[tuple[Any, ...], tuple[Identity, int | None]] = {}

    @functools.cached_property
    def run(self) -> Run:
        """The line of the run; read for the first record, because looking at every module takes a
        while.
        """
        measure = self.settings.measure
        return structs.replace(
            self.log.run,
            repeat=measure.repeat,
            measure=measure.name,
            host=host(),
            environment=environment(),
        )

    def next_folder(self) -> Path:
        return self.folder / str(next(self.numbers))

    def words_folder(self, reading: Reading) -> Path:
        """Where trainers get the words of a reading: in the run's own folder, not in the cache."""
        return self.folder / "words" / reading.key

    def take_words(self, reading: Reading, counted: Path, manifest: Manifest) -> None:
        """Copy words to where trainers get them, unless those there still have their seal."""
        if self.words(reading) is None:
            folder = self.words_folder(reading)
            remove_tree(folder)
            copy_tree(counted, folder)
            self.manifests[reading.key] = manifest

    def give(self, reading: Reading) -> None:
        """Count the words of a reading once, by the counter that is the definition."""
        if reading.key in self.manifests or reading.file.table:
            return
        words = registry.definition_counter()(reading.corpus)
        reading.file.check_unchanged()
        self.manifests[reading.key] = exchange.write_words(self.words_folder(reading), words)

    def words(self, reading: Reading) -> WordCounts | None:
        """The words of a reading as they were counted; None if they have been changed or removed
        since.
        """
        manifest = self.manifests.get(reading.key, {})
        with contextlib.suppress(exchange.BrokenWords):
            words = exchange.read_words(self.words_folder(reading))[0]
            if exchange.seal(words) == manifest.get("seal"):
                return words
        return None

    def save(self, trained: Trained) -> None:
        """Write what the command wants of a trainer that succeeded."""
        key = trained.cell.key
        if key in self.outputs.tokenizers:
            self.notes += save_tokenizer(trained, self.outputs.tokenizers[key], self.overwrite)
        words = self.words(trained.cell.reading) if key in self.outputs.certificates else None
        if words is not None:
            path = self.outputs.certificates[key]
            self.notes += save_certificate(trained, words, path, self.overwrite)

    def add(
        self,
        task: Task,
        cell: Cell,
        measurement: Measurement,
        proof: Proof | None = None,
        place: int = 0,
        closes: Block | None = None,
    ) -> None:
        """Put on disk what is recorded of one measurement."""
        self.log.run = self.run
        cell = structs.replace(cell, task=task.number, place=place)
        if not self.timed:
            measurement = structs.replace(measurement, **UNTIMED)
        self.log.add(cell, measurement, proof, closes)


@contextlib.contextmanager
def session_of(plan: Plan, folder: Path) -> Iterator[Session]:
    """The machine for this run alone, and its log. Raises Refusal if its results cannot be
    written.
    """
    settings = plan.settings
    check_output(Path(settings.results), plan.inputs, names=[FILE_NAME], instead=ELSEWHERE)
    outputs = outputs_of(plan)
    with contextlib.ExitStack() as opened:
        if settings.measure.kind == "time" and not settings.concurrent:
            opened.enter_context(timing())
        log = open_log(plan, f"{host()} {python()}", now(), opened)
        session = Session(settings, log, folder, outputs)
        check_free(outputs, session.overwrite)
        yield session


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds")
