"""The keys of a data card with their defaults, for Hydra and for whoever composes no configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class DataConfig:
    """A corpus: conf/data/NAME.yaml; its facts are those of the whole file, counted with its
    special tokens.
    """

    name: str = "???"  # of Hydra: it must be set
    about: str = ""
    language: str = ""
    licence: str = ""
    path: Any = None
    column: str | None = None
    bytes: str | None = None
    skip: str | None = None
    documents: int | None = None
    vocab_size: int = 10_000
    special_tokens: list[str] = field(default_factory=lambda: ["<|endoftext|>"])
    source: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
