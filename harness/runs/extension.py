"""What a trainer goes on from, and what it may not merge: `extend=`, `inherited=` and `veto=`, read and checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.common import files, registry
from harness.common.errors import Refusal
from harness.common.registry import VariantCard, one_of
from harness.common.units import count_text
from harness.tokenizers.forms import read_tokenizer
from harness.tokenizers.learned import Learned
from harness.tokenizers.merges_file import read_merges_file
from harness.worker.merges_bytes import merges_sha256, merges_to_bytes
from variants import vetoes
from variants.contract import Merge, Veto
from variants.extending import INHERITING, check_inherited

EXTENDS = "extends"
"""The tag of variants that can go on from merges."""


@dataclass(frozen=True)
class Extension:
    """The merges that are inherited, in their order, how, and the veto by its name; nothing of all that by default."""

    name: str | None = None
    merges: tuple[Merge, ...] = ()
    inheriting: str = "kept"
    veto: str = "none"
    learned: Learned | None = field(default=None, compare=False, repr=False)
    """The tokenizer that is extended, where its ids are to stay and the file says them."""

    @property
    def is_asked(self) -> bool:
        return self.name is not None or self.veto != "none"

    @property
    def sha256(self) -> str | None:
        return None if self.name is None else merges_sha256(self.merges)

    def key(self) -> list[Any]:
        """Names what is asked; nothing where nothing is."""
        return [self.sha256, self.inheriting, self.veto] if self.is_asked else []

    def digest(self) -> str:
        """The same in a few letters, for the name of a file."""
        return hashlib.sha256(json.dumps(self.key()).encode()).hexdigest()[:16] if self.is_asked else ""

    def keywords(self) -> dict[str, Any]:
        """What a replay is told."""
        veto: Veto | None = vetoes.named(self.veto)
        return {"inherited": self.merges, "inheriting": self.inheriting, "veto": veto} if self.is_asked else {}

    def job(self) -> dict[str, Any] | None:
        """What a measured process is told: where the merges are, and the rest by name; None if nothing is asked."""
        if not self.is_asked:
            return None
        path = files.cache_folder("inherited") / f"{merges_sha256(self.merges)}.merges"
        if not path.exists():
            with files.placing(path) as temporary:
                temporary.write_bytes(merges_to_bytes(self.merges))
        return {"merges": str(path.absolute()), "inheriting": self.inheriting, "veto": self.veto}

    def record(self) -> dict[str, Any]:
        """What a record says of it."""
        extends = self.name is not None
        return {
            "extend": self.sha256,
            "extend_name": self.name,
            "extend_merges": len(self.merges) if extends else None,
            "inherited": self.inheriting if extends else None,
            "veto": self.veto if self.veto != "none" else None,
        }


NOTHING = Extension()
"""Training as ever: from bytes, and any pair may be merged."""


def extension_of(config: Mapping[str, Any], num_merges: int, special_tokens: Sequence[str]) -> Extension:
    """What a configuration asks for. Raises Refusal for what cannot be inherited."""
    one_of("inherited", config["inherited"], list(INHERITING))
    try:
        vetoes.named(config["veto"])
    except (ValueError, ImportError, AttributeError) as error:
        raise Refusal(str(error) if isinstance(error, ValueError) else f"veto={config['veto']}: {error}") from error
    if config["extend"] is None:
        return Extension(veto=config["veto"])
    path, inheriting = Path(config["extend"]), config["inherited"]
    learned = tokenizer_at(path) if inheriting == "kept" else None
    merges = read_merges_file(path).merges if learned is None else learned.merges
    if num_merges < len(merges):
        size = 256 + len(special_tokens) + len(merges)
        raise Refusal(
            f"extend={path} has {count_text(len(merges))} merges, and vocab_size leaves room for "
            f"{count_text(max(num_merges, 0))}; set vocab_size={size} or more"
        )
    try:
        check_inherited(merges, inheriting, num_merges)
    except ValueError as error:
        raise Refusal(f"extend={path}: {error}") from error
    if learned is not None and set(learned.special_tokens) != set(special_tokens):
        listed = ",".join(repr(token) for token in learned.special_tokens)
        raise Refusal(f"extend={path} has other special tokens, and every id is to stay; set special_tokens=[{listed}]")
    return Extension(path.name, tuple(merges), inheriting, config["veto"], learned)


def tokenizer_at(path: Path) -> Learned | None:
    """The tokenizer with its ids, if the file or folder says them; None for merges alone."""
    whole = path.is_dir() and any((path / name).is_file() for name in ("manifest.json", "tokenizer.json"))
    return read_tokenizer(path).learned if whole or path.suffix == ".json" else None


def refuse_those_that_cannot(variants: Sequence[VariantCard], extension: Extension) -> None:
    """Refuse variants of the registry that cannot extend; what is named by its target says so itself."""
    if not extension.is_asked:
        return
    listed = registry.variants()
    able = [name for name, card in listed.items() if EXTENDS in card.tags]
    unable = [card.name for card in variants if card.name in listed and EXTENDS not in card.tags]
    if unable:
        setting = "extend" if extension.name is not None else "veto"
        raise Refusal(f"variant={unable[0]} does not support {setting}=; these do: {', '.join(able)}")
