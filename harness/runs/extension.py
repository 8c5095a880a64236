"""What a trainer continues from and may not merge: `extend=`, `inherited=`, `seeds=`, `veto=`, `protected=`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import regex

from harness.common import files, registry
from harness.common.errors import Refusal
from harness.common.registry import EXTENDS, VariantCard, one_of, split_list
from harness.common.units import count_text
from harness.worker.calling import OWN
from harness.worker.exchange import merges_sha256, packed
from variants import vetoes
from variants.contract import Merge, TieBreak, Veto
from variants.extending import INHERITING, check_inherited

if TYPE_CHECKING:
    from harness.tokenizers.learned import Learned


@dataclass(frozen=True)
class Extension:
    """The merges that are inherited, in their order, how, and the veto by its name."""

    name: str | None = None
    merges: tuple[Merge, ...] = ()
    inheriting: str = "kept"
    veto: str = "none"
    learned: Learned | None = field(default=None, compare=False, repr=False)
    """The tokenizer that is extended, where its ids are to stay and the file says them."""
    seeds: str | None = None
    """The tokens that the merges are made of, as a list or a file's name."""

    @property
    def sha256(self) -> str | None:
        return None if self.name is None else merges_sha256(self.merges)

    def key(self) -> list[Any]:
        """What decides the merges."""
        return [self.sha256, self.inheriting, self.veto]

    def keywords(self) -> dict[str, Any]:
        """Keyword arguments of a replay."""
        veto: Veto | None = vetoes.named(self.veto)
        return {"inherited": self.merges, "inheriting": self.inheriting, "veto": veto}

    def job(self) -> dict[str, Any]:
        """What a measured process gets: where the merges are, and the rest by name."""
        path = files.cache_folder("inherited") / f"{merges_sha256(self.merges)}.packed"
        if not path.exists():
            with files.placing(path) as temporary:
                temporary.write_bytes(packed(list(self.merges)))
        return {"merges": str(path.absolute()), "inheriting": self.inheriting, "veto": self.veto}

    def record(self) -> dict[str, Any]:
        """What a record says of it."""
        extends = self.name is not None
        return {
            "extend": self.sha256,
            "extend_name": self.name,
            "extend_merges": len(self.merges) if extends else None,
            "inherited": self.inheriting if extends else None,
            "seeds": self.seeds,
            "veto": self.veto if self.veto != "none" else None,
        }


def extension_of(
    config: Mapping[str, Any],
    variants: Sequence[VariantCard],
    num_merges: int,
    special_tokens: Sequence[str],
    pattern: str | None,
) -> Extension | None:
    """What a configuration wants, None if nothing. Raises Refusal for what cannot be inherited."""
    veto, seeds, path = veto_of(config), config["seeds"], config["extend"]
    if path is None and seeds == "none" and veto == "none":
        return None
    one_of("inherited", config["inherited"], list(INHERITING))
    if seeds != "none" and (path is not None or config["inherited"] != "kept"):
        raise Refusal("seeds= are kept and stand first; leave out extend= and inherited=met, or seeds=")
    if seeds != "none":
        what, name = f"seeds={seeds}", seeds if seeds.startswith("[") else Path(seeds).name
        extension = Extension("seeds", seed_merges(config, pattern), "kept", veto, seeds=name)
    elif path is not None:
        what, extension = f"extend={path}", extended(Path(path), config["inherited"], special_tokens, veto)
    else:
        what, extension = f"veto={veto}", Extension(veto=veto)
    number = len(extension.merges)
    if num_merges < number:
        raise Refusal(
            f"{what}: {count_text(number)} merges, and vocab_size leaves room for {count_text(num_merges)}; set "
            f"vocab_size={256 + len(special_tokens) + number} or more"
        )
    try:
        check_inherited(extension.merges, extension.inheriting, num_merges)
    except ValueError as error:
        raise Refusal(f"{what}: {error}") from error
    require_extending(variants, what.partition("=")[0])
    return extension


def extended(path: Path, inheriting: str, special_tokens: Sequence[str], veto: str) -> Extension:
    """The merges of a file or folder; with their ids if it says them and all are kept."""
    from harness.tokenizers.forms import read_merges_file
    from harness.tokenizers.model import load  # late, as few runs extend

    with_ids = path.suffix == ".json" or any((path / name).is_file() for name in ("manifest.json", "tokenizer.json"))
    if inheriting != "kept" or not with_ids:
        return Extension(path.name, tuple(read_merges_file(path).merges), inheriting, veto)
    learned = load(path).learned
    if set(learned.special_tokens) != set(special_tokens):
        tokens = ",".join(map(repr, learned.special_tokens))
        raise Refusal(f"extend={path} has other special tokens, and every id is to stay; set special_tokens=[{tokens}]")
    return Extension(path.name, tuple(learned.merges), inheriting, veto, learned)


def veto_of(config: Mapping[str, Any]) -> str:
    """The name of the veto, protected tokens included."""
    name = config["veto"]
    names = [part.strip() for part in name.strip("[]").split(",")]
    try:
        if config["protected"] != "none":
            tokens = vetoes.protected(tokens_in("protected", config["protected"])).protected
            names.append("protected:" + ".".join(map(bytes.hex, tokens)))
        names = [each for each in names if each not in ("", "none", "protected:")]
        name = f"[{','.join(names)}]" if len(names) > 1 else "".join(names) or "none"
        vetoes.named(name)
    except ValueError as error:
        raise Refusal(str(error)) from error
    except (ImportError, AttributeError) as error:
        raise Refusal(f"veto={name}: {error}") from error
    return name


def tokens_in(setting: str, value: str) -> list[bytes]:
    """The tokens in `[a,"\\n"]`, or in a file that has a JSON string on each line."""
    if value.startswith("["):
        place = f"{setting}="
        written = ['"' + re.sub(r'(?<!\\)"', r'\\"', token) + '"' for token in split_list(value, setting)]
    else:
        place = f"{setting}={value}: "
        try:
            written = Path(value).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "not UTF-8"
            raise Refusal(f"cannot read {setting}={value} ({why}); pass a file or write a list [A,B]") from error
    tokens = []
    for line in filter(str.strip, written):
        try:
            token = json.loads(line, strict=False)
            tokens.append(token.encode())
        except (ValueError, AttributeError) as error:
            raise Refusal(f'{place}{line} is not a JSON string such as "mov"; write \\\\ for a backslash') from error
    return tokens


def seed_merges(config: Mapping[str, Any], pattern: str | None) -> tuple[Merge, ...]:
    """The merges of the seeds. Raises Refusal for a seed that no text can give."""
    from variants.seeds import seeds  # late, as few runs have some

    value, name = config["seeds"], config["pattern"]["name"]
    if config["tie_break"] == OWN:
        raise Refusal(f"seeds= need a tie-break; set tie_break={next(iter(TieBreak)).value}")
    tokens = tokens_in("seeds", value)
    for seed in map(bytes.decode, tokens):
        pieces = [seed] if pattern is None else [match.group() for match in regex.finditer(pattern, seed)]
        if seed and pieces != [seed]:
            parts = ", ".join(map(repr, pieces)) or "nothing"
            raise Refusal(f"the seed {seed!r} is cut by pattern={name} ({parts}), so no text gives it; leave it out")
    try:
        return tuple(seeds(tokens, TieBreak(config["tie_break"])))
    except ValueError as error:
        raise Refusal(f"seeds={value}: {error}") from error


def require_extending(variants: Sequence[VariantCard], setting: str) -> None:
    """Refuse variants of the registry that cannot extend; a trainer named by its target reports that itself."""
    cards = registry.variants()
    unable = [card.name for card in variants if card.name in cards and EXTENDS not in card.tags]
    if unable:
        able = ", ".join(name for name, card in cards.items() if EXTENDS in card.tags)
        raise Refusal(f"variant={unable[0]} does not support {setting}=; these do: {able}")
