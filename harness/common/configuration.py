"""The options of the command line and conf/: names and types, checked by Hydra when it composes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING, DictConfig, OmegaConf

from harness.common.data_card import DataConfig


@dataclass
class VariantConfig:
    """A trainer: conf/variant/NAME.yaml."""

    name: str = MISSING
    about: str = ""
    part: int | None = None
    rank: int = 0
    family: str = ""
    tags: list[str] = field(default_factory=list)
    _target_: str = MISSING
    counting: str = "serial"
    by_design: str = ""
    own_words: str = ""
    params: dict[str, Any] = field(default_factory=dict)


@dataclass
class CountingConfig:
    """A word counter: conf/counting/NAME.yaml; `own` means the one that the variant names.

    `memory` limits a table of words, which is then spilled to disk. The workers of an `engine`
    count before anything is measured.
    """

    name: str = MISSING
    about: str = ""
    tags: list[str] = field(default_factory=list)
    _target_: str | None = None
    engine: str | None = None
    memory: str | None = None
    params: dict[str, Any] = field(default_factory=dict)


@dataclass
class PatternConfig:
    """A pre-tokenization pattern: conf/pattern/NAME.yaml; no regex means raw bytes, a partial one
    may skip text.
    """

    name: str = MISSING
    regex: str | None = None
    partial: bool = False


@dataclass
class MeasureConfig:
    """How cells are run: conf/measure/NAME.yaml.

    With a `precision`, the wanted width of ratios, there are from `repeat` to `most` blocks.
    """

    name: str = MISSING
    about: str = ""
    kind: str = "time"
    repeat: int = 1
    warm_up: int = 0
    precision: float | None = None
    most: int = 20


@dataclass
class LimitsConfig:
    """The limits of one measured process: seconds of wall time, memory of its whole group."""

    wall: float | None = None
    memory: str | None = None


@dataclass
class FirstStageConfig:
    """The stage before, where a command has two: its pattern, and its size (None: half of the
    whole).
    """

    pattern: str | None = None
    vocab_size: int | None = None


@dataclass
class HarnessConfig:
    """Everything that `python -m harness` understands."""

    variant: VariantConfig = field(default_factory=VariantConfig)
    data: DataConfig = field(default_factory=DataConfig)
    counting: CountingConfig = field(default_factory=CountingConfig)
    pattern: PatternConfig = field(default_factory=PatternConfig)
    measure: MeasureConfig = field(default_factory=MeasureConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    first_stage: FirstStageConfig = field(default_factory=FirstStageConfig)
    variants: list[str] | None = None
    vocab_size: int | None = None
    vocab_size_at_most: dict[str, int] = field(default_factory=dict)
    special_tokens: list[str] | None = None
    tie_break: str = "greatest_bytes"
    min_count: int = 1
    extend: str | None = None
    inherited: str = "kept"
    seeds: str = "none"
    veto: str = "none"
    protected: str = "none"
    errors: str = "strict"
    threads: Any = 1
    interpreter: str | None = None
    repeat: int | None = None
    seed: int = 0
    save: str | None = None
    results: str = "results/local"
    plan: bool = False
    tokens: bool = False
    rerun: bool = False
    overwrite: bool = False
    concurrent: bool = False


def keys_beside(key: str) -> list[str]:
    """The existing overrides beside an unknown `key`.

    >>> keys_beside("limits.wal")
    ['limits.wall', 'limits.memory']
    """
    schema = OmegaConf.structured(HarnessConfig)
    above, _, _ = key.rpartition(".")
    section = OmegaConf.select(schema, above) if above else schema
    if not isinstance(section, DictConfig):
        return [str(name) for name in schema]
    return [f"{above}.{name!s}" if above else str(name) for name in section]
