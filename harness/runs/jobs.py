"""From a cell to the job of a process, and from its answer to lines of records."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import structs

from harness.common.registry import CounterCard
from harness.measure.machine import interpreter, python
from harness.measure.process import Answer, measure
from harness.proof import WRONG, Identity
from harness.proof.prove import words_fault
from harness.records.schema import BY_ITSELF, Cell, Data, Measurement, Proof
from harness.runs.cells import Block, CountCell, Manifest, Reading, TrainCell
from harness.worker import exchange
from harness.worker.calling import OWN
from harness.worker.exchange import COUNT, TRAIN, Job
from variants.contract import COUNTING_PHASES, TRAINING_PHASES, Merge, WordCounts

SHARED = {*Answer.__struct_fields__}.intersection(Measurement.__struct_fields__)
"""The figures that an answer and a measurement have in common."""
SUMS = ("cpu_seconds", "system_seconds", "cpu_wait_seconds")
"""Those that are of the trainer and its counter together."""


def count_job(cell: CountCell, card: CounterCard) -> Job:
    """The job of a process that counts, or reads the text otherwise; it gets no corpus if the words
    came with their counts.
    """
    corpus = None if cell.reading.file.table else cell.reading.corpus
    return Job(COUNT, card.target, dict(card.params), cell.threads, corpus)


def train_job(cell: TrainCell, words: Path) -> Job:
    """The job of a process that trains: where the words with their counts are, and which merges are
    wanted.
    """
    return replace(
        count_job(cell.count, cell.variant),
        kind=TRAIN,
        interpreter=cell.interpreter,
        words=str(words),
        num_merges=cell.num_merges,
        tie_break=cell.tie_break,
        min_count=cell.min_count,
        extending=None if cell.extension is None else cell.extension.job(),
    )


COUNT_WORDS = "count_words"
"""The function by which the module of a trainer that reads the text shows its words."""


def words_verdict(cell: TrainCell, right: WordCounts, output: Path, is_tie: bool) -> str | None:
    """How the words of a trainer of wrong merges differ, if its module can count them; else how to
    compare them, unless it only broke a tie otherwise.
    """
    module = cell.variant.target.partition(":")[0]
    card = CounterCard(cell.variant.name, f"{module}:{COUNT_WORDS}")
    answer = measure(count_job(cell.count, card), output, cell.count.limits)
    if answer.status != "ok" and is_tie:
        return None
    if answer.status != "ok":
        advice = "compare them with python -m harness.corpora counts FILE > words.txt"
        return f"it reads the text itself, so perhaps its words differ: {advice}"

    words = exchange.read_words(output / "words")[0]
    return words_fault(words, right) or f"its words are right, as its {COUNT_WORDS} counts them"


class Counted(NamedTuple):
    """A counter's answer, and the manifest of its words if it counted any."""

    answer: Answer
    words: Manifest | None = None


@dataclass
class Trained:
    """A trainer's answer in one block, its merges and their identity; the merges go once they are
    recorded.
    """

    cell: TrainCell
    block: Block
    started: str
    answer: Answer
    counted: Counted
    merges: Sequence[Merge] | None = None
    merges_sha256: str | None = None
    tokens: int | None = None  # how many tokens are left of the text; None unless tokens=true
    # whether its merges are the defined ones; None if they were not judged
    identity: Identity | None = None

    @property
    def tie_break(self) -> str | None:
        """How ties were broken; None if a trainer's own way is not one of the contract's."""
        if self.cell.tie_break != OWN:
            return self.cell.tie_break
        return None if self.answer.tie_break is None else self.answer.tie_break.value


UNNAMED: Any = {"run": "", "cell": 0}  # until the log names them


def train_lines(trained: Trained) -> tuple[Cell, Measurement, Proof | None]:
    """What is recorded of a trainer in one block; the counter's time in that block is part of its
    total.
    """
    cell, answer, identity = trained.cell, trained.answer, trained.identity
    answers = [answer] if cell_reads_corpus(cell, answer) else [answer, trained.counted.answer]
    is_whole = trained.merges is not None and answer.status == "ok"
    measurement = structs.replace(
        measurement_of(answers, trained.block, trained.started, cell.reading),
        merges_sha256=trained.merges_sha256,
        merges=len(trained.merges or ()) if is_whole else None,
    )

    proof = None
    if identity is not None and trained.merges_sha256 is not None:
        digest, tokens = trained.merges_sha256, trained.tokens
        proof = Proof(**UNNAMED, merges_sha256=digest, identity=identity, tokens=tokens)
        if identity.kind == WRONG:
            measurement = structs.replace(measurement, status="mismatch", reason=identity.reason)
    return trained_cell(trained), measurement, proof


def trained_cell(trained: Trained) -> Cell:
    """What the measurements of a trainer share: the counter's cell, but for what it adds.

    How it was fed is its module's word; that its merges are meant to be others is the card's.
    """
    cell, answer = trained.cell, trained.answer
    reads_text = cell_reads_corpus(cell, answer)
    by_design = {"by_design": cell.variant.by_design or None}
    feeding: Any = answer.feeding and {**answer.feeding, **by_design}

    return structs.replace(
        counted_cell(cell.count, trained.counted),
        role="train",
        run_key=cell.key,
        variant=cell.variant.name,
        family=cell.variant.family,
        params=dict(cell.variant.params),
        counting=BY_ITSELF if reads_text else cell.count.counter.name,
        counting_chosen=cell.counting_chosen and not reads_text,
        takes_threads=answer.takes_threads,
        words_sha256=None,
        tie_break=trained.tie_break or OWN,
        min_count=cell.min_count,
        vocab_size=cell.vocab_size,
        feeding=feeding,
        source_sha256=answer.source_sha256,
        interpreter=interpreter(cell.interpreter).label,
        gate=dict(cell.gate) or None,
        **({} if cell.extension is None else cell.extension.record()),
    )


def counted_cell(cell: CountCell, counted: Counted) -> Cell:
    """What the measurements of a counter share: how the corpus was read, and what it holds."""
    file, corpus, answer = cell.reading.file, cell.reading.corpus, counted.answer
    words = counted.words or {}
    limits: Any = cell.limits._asdict()
    # a given table was not split by any pattern
    was_read = not file.table or file.of_text
    data = Data(
        name=file.name,
        sha256=file.sha256,
        bytes=file.bytes,
        skip=file.skip,
        documents=None if counted.words is None else (answer.tallies or {}).get("documents"),
        pre_tokens=words.get("pre_tokens"),
        words=words.get("words"),
        generated=None if file.parameters is None else dict(file.parameters),
    )
    return Cell(
        **UNNAMED,
        role="count",
        run_key=cell.key,
        params=dict(cell.counter.params),
        counting=cell.counter.name,
        threads=cell.threads,
        takes_threads=answer.takes_threads,
        data=data,
        pattern=cell.reading.pattern_name if was_read else None,
        pattern_partial=corpus.partial if was_read else None,
        special_tokens=list(corpus.special_tokens),
        errors=corpus.errors if was_read else None,
        words_sha256=words.get("sha256"),
        source_sha256=answer.source_sha256,
        interpreter=python(),
        limits=limits,
    )


def measurement_of(
    answers: Sequence[Answer], block: Block, started: str, reading: Reading
) -> Measurement:
    """What was seen of a process: the first answer; the times are the sums of all, those of
    counting are the last one's.
    """
    answer = answers[0]
    figures: dict[str, Any] = {name: getattr(answer, name) for name in SHARED}
    for name in SUMS:
        figures[name] = sum_of(answers, name)
    for each in answers:
        if each.cpu_wait_unknown is not None:
            figures.update(cpu_wait_unknown=each.cpu_wait_unknown, cpu_wait_seconds=None)

    seconds = dict[str, float]()
    for phases, each in ((COUNTING_PHASES, answers[-1]), (TRAINING_PHASES, answer)):
        seconds |= {name: took for name, took in each.seconds.items() if name in phases}
    if answer.total is not None:
        total = sum_of(answers, "total") or 0.0
        seconds["other"] = total - sum(seconds.values())
        if answer.status == "ok":
            seconds["total"] = total

    figures.update(
        block=block.number,
        warm_up=block.warm_up,
        started=started,
        seconds=seconds,
        reason=without_paths(answer.reason, reading),
        stderr_tail=without_paths(answer.stderr_tail, reading),
    )
    return Measurement(**UNNAMED, **figures)


def sum_of(answers: Sequence[Answer], name: str) -> float | None:
    """The sum of one figure where it was measured; None if it was nowhere."""
    figures = [getattr(answer, name) for answer in answers]
    measured = [figure for figure in figures if figure is not None]
    return sum(measured) if measured else None


def cell_reads_corpus(cell: TrainCell, answer: Answer) -> bool:
    """Whether a trainer reads the file; of one that ended without an answer its card says so."""
    return answer.from_file or "from_file" in cell.variant.tags


def without_paths(text: str | None, reading: Reading) -> str | None:
    """The text with the corpus by its name, and other absolute paths by their last names."""
    return redact_paths(text.replace(str(reading.file.path), reading.file.name)) if text else text


# Overrides as records keep them


def redacted_override(override: str) -> str:
    """An override as records keep it: of a path only the last name.

    >>> redacted_override("data.path=[/home/me/a.txt,'../b c.txt']"), redacted_override("+save=~/mine")
    ("data.path=[a.txt,'b c.txt']", '+save=mine')
    >>> redacted_override("data.path=s3://b/a/*.txt"), redacted_override("params.c='/opt/t {text} -o {x}'")
    ('data.path=s3://b/a/*.txt', "params.c='t {text} -o {x}'")
    >>> redacted_override("seeds=[a/b]"), redacted_override("pattern.regex=/a/b/c")
    ('seeds=[a/b]', 'pattern.regex=/a/b/c')
    """
    key, equals, value = override.partition("=")
    if key in ("pattern.regex", "special_tokens") or (
        key in ("seeds", "protected") and value.startswith("[")
    ):
        return override  # tokens, not paths
    return f"{key}{equals}{redact_paths(value, relative=True)}"


PATH = re.compile(r"[^][{}(),'\"=\s]+")


def redact_paths(text: str, *, relative: bool = False) -> str:
    """The text with the last name alone of each absolute path, or of each path if `relative`; URLs
    stay.

    >>> redact_paths("cannot read /home/me/a.txt of https://example.org/a/b"), redact_paths("[../a,b c]", relative=True)
    ('cannot read a.txt of https://example.org/a/b', '[a,b c]')
    """

    def last_name(match: re.Match[str]) -> str:
        path = match[0]
        if "://" in path or not (relative or re.match("/.*/", path)):
            return path
        return path.rstrip("/").rpartition("/")[2]

    return PATH.sub(last_name, text)
