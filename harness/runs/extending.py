"""What a trainer continues from and may not merge: `extend=`, `inherited=`, `seeds=`, `veto=` and
`protected=`.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import regex

from harness.common import registry
from harness.common.configuration import HarnessConfig
from harness.common.errors import Refusal
from harness.common.registry import EXTENDS, VariantCard, split_list
from harness.common.units import count_text
from harness.runs.cells import Extension
from harness.runs.compose import Config
from harness.worker.calling import OWN
from variants import vetoes
from variants.contract import Merge, TieBreak
from variants.extending import check_inherited


def extension_of(
    config: Config,
    variants: Sequence[VariantCard],
    num_merges: int,
    special_tokens: Sequence[str],
    pattern: str | None,
) -> Extension | None:
    """What a configuration continues from; None for training from bytes alone.

    Raises Refusal for what cannot be inherited, and for a variant that cannot go on from merges.
    """
    values = config.values
    if values.extend is None and {values.seeds, values.veto, values.protected} == {"none"}:
        return None

    veto = veto_of(values)
    if values.seeds != "none":
        if values.extend is not None or values.inherited != "kept":
            raise Refusal(
                "seeds= are kept and stand first; leave out extend= and inherited=met, or seeds="
            )
        setting, value = "seeds", values.seeds
        name = value if value.startswith("[") else Path(value).name
        extension = Extension("seeds", seed_merges(config, pattern), "kept", veto, seeds=name)
    elif values.extend is not None:
        setting, value = "extend", values.extend
        extension = extended(Path(value), values.inherited, special_tokens, veto)
    else:
        setting, value = "veto", veto
        extension = Extension(veto=veto)

    check_room(f"{setting}={value}", extension, num_merges, special_tokens)
    check_able(variants, setting)
    return extension


def check_room(
    what: str, extension: Extension, num_merges: int, special_tokens: Sequence[str]
) -> None:
    """Refuse inherited merges for which the vocabulary has no room, or that make no sense."""
    inherited = len(extension.merges)
    if num_merges < inherited:
        why = f"{count_text(inherited)} merges, and vocab_size leaves room for {count_text(num_merges)}"
        size = 256 + len(special_tokens) + inherited
        raise Refusal(f"{what}: {why}; set vocab_size={size} or more")
    try:
        check_inherited(extension.merges, extension.inheriting, num_merges)
    except ValueError as error:
        raise Refusal(f"{what}: {error}") from error


def check_able(variants: Sequence[VariantCard], setting: str) -> None:
    """Refuse a variant of the registry that cannot go on from merges."""
    cards = registry.variants()
    for variant in variants:
        if variant.name in cards and EXTENDS not in variant.tags:
            able = ", ".join(name for name, card in cards.items() if EXTENDS in card.tags)
            raise Refusal(f"variant={variant.name} does not support {setting}=; these do: {able}")


def extended(path: Path, inheriting: str, special_tokens: Sequence[str], veto: str) -> Extension:
    """The merges of a file or folder; with their ids if it says them and all are kept."""
    from harness.tokenizers.forms import read_merges_file
    from harness.tokenizers.model import load  # late, as few runs extend

    with_ids = path.suffix == ".json" or any(
        (path / name).is_file() for name in ("manifest.json", "tokenizer.json")
    )
    if inheriting != "kept" or not with_ids:
        return Extension(path.name, tuple(read_merges_file(path).merges), inheriting, veto)

    learned = load(path).learned
    if set(learned.special_tokens) != set(special_tokens):
        tokens = json.dumps([*learned.special_tokens], ensure_ascii=False, separators=(",", ":"))
        setting = shlex.quote(f"special_tokens={tokens}")
        raise Refusal(
            f"extend={path} has other special tokens, and every id is to stay; set {setting}"
        )
    return Extension(path.name, tuple(learned.merges), inheriting, veto, learned)


def veto_of(values: HarnessConfig) -> str:
    """The name of the veto, protected tokens included."""
    veto = values.veto
    names = [part.strip() for part in veto.strip("[]").split(",")]
    try:
        if values.protected != "none":
            tokens = vetoes.protected(tokens_in("protected", values.protected)).protected
            names.append("protected:" + ".".join(map(bytes.hex, tokens)))
        names = [name for name in names if name not in ("", "none", "protected:")]
        veto = f"[{','.join(names)}]" if len(names) > 1 else "".join(names) or "none"
        vetoes.named(veto)
    except ValueError as error:
        raise Refusal(str(error)) from error
    except (ImportError, AttributeError) as error:
        raise Refusal(f"veto={veto}: {error}") from error
    return veto


def tokens_in(setting: str, value: str) -> list[bytes]:
    """The tokens in `[a,"\\n"]`, or in a file that has a JSON string on each line."""
    where = f"{setting}="
    if value.startswith("["):
        lines = []
        for token in split_list(value, setting):
            escaped = re.sub(r'(?<!\\)"', r'\\"', token)
            lines.append(f'"{escaped}"')
    else:
        where = f"{setting}={value}: "
        try:
            lines = Path(value).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "not UTF-8"
            advice = "pass a file or write a list [A,B]"
            raise Refusal(f"cannot read {setting}={value} ({why}); {advice}") from error

    tokens = []
    for line in filter(str.strip, lines):
        try:
            tokens.append(json.loads(line, strict=False).encode())
        except (ValueError, AttributeError, RecursionError) as error:
            what = f'{where}{line[:80]} is not a JSON string such as "mov"'
            raise Refusal(f"{what}; write \\\\ for a backslash") from error
    return tokens


def seed_merges(config: Config, pattern: str | None) -> tuple[Merge, ...]:
    """The merges of the seeds. Raises Refusal for a seed that no text can give."""
    from variants.seeds import seeds  # late, as few runs have some

    values = config.values
    if values.tie_break == OWN:
        raise Refusal(f"seeds= need a tie-break; set tie_break={next(iter(TieBreak)).value}")

    tokens = tokens_in("seeds", values.seeds)
    for seed in map(bytes.decode, tokens):
        pieces = [seed]
        if pattern is not None:
            pieces = [match.group() for match in regex.finditer(pattern, seed)]
        if seed and pieces != [seed]:
            parts = ", ".join(map(repr, pieces)) or "nothing"
            what = f"the seed {seed!r} is cut by pattern={config.pattern.name} ({parts})"
            raise Refusal(f"{what}, so no text gives it; leave it out")
    try:
        return tuple(seeds(tokens, TieBreak(values.tie_break)))
    except ValueError as error:
        raise Refusal(f"seeds={values.seeds}: {error}") from error
