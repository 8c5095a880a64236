"""The merges that a command is asked to compare: those in a file, or those that a variant comes to on the words."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from harness import registry
from harness.calling import OWN
from harness.counted_words import only_cell
from harness.errors import UNMEASURED, Refusal
from harness.merges_files import read_merges_file
from harness.schedule import Run
from harness.settings import settings_of
from harness.words_asked import WordsAsked
from variants.contract import Merge

BYTES = 256


class MergesAsked(NamedTuple):
    """Merges, what they were called, and how they came about, for people."""

    name: str
    merges: list[Merge]
    origin: str


def is_variant(name: str) -> bool:
    """Whether it names a variant by its card or its target; else it must be a file of merges that is there."""
    if name in registry.variants():
        return True
    if Path(name).exists():
        return False
    if ":" in name:
        return True
    raise Refusal(
        f"{registry.unknown('variant', name, registry.variants())}; a function of your own is written "
        "package.module:function, and there is no file of merges of that name"
    )


def merges_in_file(name: str) -> MergesAsked:
    read = read_merges_file(Path(name))
    return MergesAsked(name, read.merges, read.form)


def merges_of_variant(name: str, words: WordsAsked, own: Sequence[str], num_merges: int | None) -> MergesAsked:
    """Train a variant on the words, in a process of its own as any measured one.

    `own` are overrides of its own; `num_merges` is the number to ask for where vocab_size is not said. Where tie_break
    is not said either, it is the one that is the trainer's own by default. Raises Refusal if it comes to no merges.
    """
    card = registry.variants().get(name)
    said = [*words.said, *own]
    keys = {override.partition("=")[0] for override in said}
    if "tie_break" not in keys:
        said.append(f"tie_break={OWN}")
    if "vocab_size" not in keys and num_merges is not None:
        said.append(f"vocab_size={BYTES + len(words.reading.special_tokens) + num_merges}")
    cell, config = only_cell(
        [*said, f"variant._target_={name}" if card is None else f"variant={name}", "measure=proof"]
    )
    if cell.reading.key() != words.reading.key():
        raise Refusal(f"{' '.join(own)} reads the data set in another way; say it for both")
    with tempfile.TemporaryDirectory(prefix="bpe-harness-") as folder:
        run = Run([cell], settings_of(config), Path(folder))
        run.measure_all()
    (trained,) = run.trained
    if trained.answer["status"] != "ok" or trained.merges is None:
        raise Refusal(f"{name} came to no merges ({trained.answer['reason']})", UNMEASURED)
    return MergesAsked(
        name, trained.merges, f"trained with tie_break={trained.tie_break}, vocab_size={cell.vocab_size}"
    )
