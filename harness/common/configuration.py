"""The options of the command line: names and types, checked by Hydra when it composes.

The groups are cards, whose structs are checked before and after.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import fields
from omegaconf import DictConfig, OmegaConf

from harness.common import registry


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

    variant: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    counting: dict[str, Any] = field(default_factory=dict)
    pattern: dict[str, Any] = field(default_factory=dict)
    measure: dict[str, Any] = field(default_factory=dict)
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
    instances: int = 0
    save: str | None = None
    certificate: str | None = None
    results: str = "results/local"
    plan: bool = False
    profile: str = "none"
    tokens: bool = False
    rerun: bool = False
    overwrite: bool = False
    concurrent: bool = False


def dotted_keys() -> list[str]:
    """Every override of a section: data.path, limits.wall ..."""
    keys = []
    for section in (*registry.KINDS, "limits", "first_stage"):
        keys += keys_beside(f"{section}.")
    return keys


def keys_beside(key: str) -> list[str]:
    """The existing overrides beside an unknown `key`.

    >>> keys_beside("limits.wal")
    ['limits.wall', 'limits.memory']
    """
    schema = OmegaConf.structured(HarnessConfig)
    above, _, _ = key.rpartition(".")
    kind = registry.KINDS.get(above.partition(".")[0])
    if kind is not None:
        names = [f"{above}.{field.encode_name}" for field in fields(kind)]
        return names if above in registry.KINDS else []

    section = OmegaConf.select(schema, above) if above else schema
    if not isinstance(section, DictConfig):
        return [str(name) for name in schema]
    return [f"{above}.{name!s}" if above else str(name) for name in section]
