"""From what was measured to the record: the keys that people script against, nothing else, no path of this machine."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.measure import interpreters
from harness.measure.disturbance import clock_cost_seconds
from harness.measure.process import PACKAGES, Answer
from harness.proof import WRONG
from harness.records.file import Record
from harness.records.schema import BY_ITSELF
from harness.runs.cells import Reading, TrainCell
from harness.runs.outcome import Counted, CountRun, Trained
from harness.runs.store import manifest_of
from harness.worker.calling import OWN
from harness.worker.merges_bytes import merges_sha256
from variants.contract import COUNTING_PHASES, TRAINING_PHASES

# Only where a trainer has it.
OPTIONAL_PHASE = "copy"
# The folders of an absolute path, up to its last name.
FOLDERS = re.compile(r"(?<![\w.~>/:])/(?:[^\s/'\":]+/)+")


def train_record(trained: Trained, common: Record) -> Record:
    """The record of a trainer in one block; the counter's time in that block is part of its total."""
    cell, answer, counted = trained.cell, trained.answer, trained.counted
    reading = cell.reading
    mismatch = trained.identity is not None and trained.identity.kind == WRONG
    reads_itself = by_itself(trained.cell, trained.answer)
    return {
        "run_key": cell.key(),
        "cell": "train",
        "status": "mismatch" if mismatch else answer["status"],
        "reason": trained.identity.reason if mismatch else without_paths(answer["reason"], reading),
        "variant": cell.variant.name,
        "family": cell.variant.family,
        "params": dict(cell.variant.params),
        "counting": BY_ITSELF if reads_itself else cell.count.counter.name,
        "counting_chosen": cell.counting_chosen and not reads_itself,
        "threads": cell.count.threads,
        "data": corpus_facts(reading, manifest_at(counted.words), counted.answer.get("documents")),
        **how_read(reading),
        "tie_break": trained.tie_break or OWN,
        "min_count": cell.min_count,
        "vocab_size": cell.vocab_size,
        **cell.extension.record(),
        "tokens": trained.tokens,
        "merges": len(trained.merges) if trained.merges is not None and answer["status"] == "ok" else None,
        "merges_sha256": merges_sha256(trained.merges) if trained.merges is not None else None,
        "identity": None if trained.identity is None else asdict(trained.identity),
        "feeding": answer.get("feeding"),
        "takes_threads": answer.get("takes_threads"),
        **times_of(trained),
        "curve": answer.get("curve"),
        "tallies": answer.get("tallies"),
        "instructions": answer.get("instructions"),
        **memory(answer),
        **what_was_seen(answer),
        "limits": answer.get("limits"),
        "merges_done": answer.get("merges_done"),
        "last_phase": answer.get("last_phase"),
        "stderr_tail": without_paths(answer.get("stderr_tail", ""), reading),
        "extrapolated": with_counting(answer.get("extrapolated"), counting_of(trained).get("total") or 0.0),
        "interpreter": interpreters.interpreter(cell.interpreter).label,
        **circumstances(trained),
        **common,
    }


def times_of(trained: Trained) -> Record:
    """The seconds of counter and trainer together, by phase, and their CPU time."""
    answer, counting = trained.answer, counting_of(trained)
    own = answer.get("seconds") or {}
    counted_by = own if by_itself(trained.cell, answer) else counting.get("seconds") or {}
    seconds: dict[str, float | None] = {phase: counted_by.get(phase) for phase in COUNTING_PHASES}
    seconds |= {phase: own.get(phase) for phase in TRAINING_PHASES if phase != OPTIONAL_PHASE or phase in own}
    total = (answer.get("total") or 0.0) + (counting.get("total") or 0.0)
    measured = "total" in answer
    seconds["other"] = total - sum(filter(None, seconds.values())) if measured else None
    seconds["total"] = total if measured and answer["status"] == "ok" else None
    return {"seconds": seconds, "cpu_seconds": added(answer.get("cpu_seconds"), counting.get("cpu_seconds"))}


def counting_of(trained: Trained) -> Answer:
    """The counter's answer; none beside a trainer that reads the file, or beside merges that were not timed."""
    answer = trained.answer
    apart = not by_itself(trained.cell, answer) and ("total" in answer or answer["status"] != "ok")
    return trained.counted.answer if apart else {}


def by_itself(cell: TrainCell, answer: Answer) -> bool:
    """Whether a trainer reads the file; of one that was ended without an answer its card tells."""
    return bool(answer.get("from_file")) or "from_file" in cell.variant.tags


def count_record(measured: CountRun, common: Record) -> Record:
    """The record of a word counter in one block."""
    cell, answer, manifest = measured.cell, measured.counted.answer, manifest_at(measured.counted.words)
    own = answer.get("seconds") or {}
    total = answer.get("total")
    seconds: dict[str, float | None] = {phase: own.get(phase) for phase in COUNTING_PHASES}
    seconds["other"] = total - sum(filter(None, seconds.values())) if total is not None else None
    seconds["total"] = total if answer["status"] == "ok" else None
    return {
        "run_key": cell.key(),
        "cell": "count",
        "status": answer["status"],
        "reason": without_paths(answer["reason"], cell.reading),
        "variant": None,
        "params": dict(cell.counter.params),
        "counting": cell.counter.name,
        "threads": cell.threads,
        "data": corpus_facts(cell.reading, manifest, answer.get("documents")),
        **how_read(cell.reading),
        "words_sha256": manifest.get("sha256"),
        "takes_threads": answer.get("takes_threads"),
        "seconds": seconds,
        "cpu_seconds": answer.get("cpu_seconds"),
        "tallies": answer.get("tallies"),
        **memory(answer),
        **what_was_seen(answer),
        "limits": answer.get("limits"),
        "last_phase": answer.get("last_phase"),
        "stderr_tail": without_paths(answer.get("stderr_tail", ""), cell.reading),
        "interpreter": answer.get("interpreter") or interpreters.THIS.label,
        **circumstances(measured),
        **common,
    }


def counted_from(record: Record, words: Path | None) -> Counted:
    """What a counter's record says, as its answer did."""
    seconds = {phase: spent for phase, spent in record["seconds"].items() if phase not in ("other", "total")}
    answer = {name: record[name] for name in ("status", "reason", "cpu_seconds", "takes_threads", "tallies")}
    answer |= {"seconds": seconds, "documents": record["data"].get("documents")}
    if "other" in record["seconds"]:
        answer["total"] = sum(seconds.values()) + record["seconds"]["other"]
    return Counted(answer, words, record["reason"])


def with_counting(extrapolated: Record | None, count_seconds: float) -> Record | None:
    """The extrapolated total of counter and trainer: what was extrapolated is the trainer's part."""
    if extrapolated is None:
        return None
    return {name: value + count_seconds if name.endswith("_seconds") else value for name, value in extrapolated.items()}


def circumstances(measured: CountRun | Trained) -> Record:
    """When it was measured, in which pass over all cells, and whether beside other timed runs."""
    return {
        "block": measured.block.number,
        "warm_up": measured.block.warm_up,
        "concurrent": measured.concurrent,
        "started": measured.started,
    }


def how_read(reading: Reading) -> Record:
    """How the corpus became words; a table of words that was given was not read by any pattern."""
    counted = not reading.file.table or reading.file.of_text
    return {
        "pattern": reading.pattern_name if counted else None,
        "pattern_partial": reading.corpus.partial if counted else None,
        "special_tokens": list(reading.corpus.special_tokens),
        "errors": reading.corpus.errors if counted else None,
    }


def manifest_at(words: Path | None) -> Mapping[str, Any]:
    """What is known of the words; nothing where there are none."""
    return {} if words is None else manifest_of(words)


def corpus_facts(reading: Reading, manifest: Mapping[str, Any], documents: int | None) -> Record:
    return {
        "name": reading.file.name,
        "sha256": reading.file.sha256,
        "bytes": reading.file.bytes,
        "skip": reading.file.skip,
        "documents": documents,
        "pre_tokens": manifest.get("pre_tokens"),
        "words": manifest.get("words"),
        "generated": reading.file.parameters,
    }


def memory(answer: Answer) -> Record:
    """The peak of the process, or of all its processes together where there were several (sampled, PSS)."""
    return {
        "peak_rss_bytes": answer.get("peak_rss_bytes"),
        "peak_private_bytes": answer.get("peak_private_bytes"),
        "memory_is_sampled": answer.get("memory_is_sampled", False),
    }


def what_was_seen(answer: Answer) -> Record:
    """What tells how far the times can be trusted: two witnesses, what disturbed, and what the clock itself cost."""
    return {
        "witness": answer.get("witness"),
        "disturbance": answer.get("disturbance"),
        "laps": answer.get("laps"),
        "clock_cost_seconds": clock_cost_seconds(),
        "affinity": answer.get("affinity"),
        "page_cache": answer.get("page_cache"),
    }


def added(*parts: Any) -> float | None:
    measured = [part for part in parts if part is not None]
    return sum(measured) if measured else None


def without_paths(text: str | None, reading: Reading) -> str | None:
    """Records travel: the places of this machine become short names, and any other path the name of its file."""
    if text is None:
        return None
    places = {
        str(reading.file.path): reading.file.name,
        PACKAGES: ".",
        sys.prefix: "<python>",
        sys.base_prefix: "<python>",
        os.path.expanduser("~"): "~",  # noqa: PTH111
        os.getcwd(): ".",  # noqa: PTH109
    }
    for place in sorted(places, key=len, reverse=True):
        if len(place) > 1:
            whole = re.escape(place) + r"(?![\w-]|\.\w)"  # another folder's name may begin with the place's
            text = places[place].join(re.split(whole, text))
    return FOLDERS.sub("", text)
