"""What training continues from, and what it may not merge: `extend`, `inherited`, `seeds`, `veto`,
`protected`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import regex

from harness.common import cache, files
from harness.common.errors import UNMEASURED, USAGE, Refusal, override, reason
from harness.common.units import count_text
from harness.common.values import one_of, split_list
from harness.tokenizers.learned import Learned, pattern_name
from harness.worker.calling import OWN
from harness.worker.exchange import Extending, merges_sha256, packed
from variants import vetoes
from variants.contract import Corpus, Merge, TieBreak
from variants.extending import INHERITING, check_inherited

NONE = "none"
Tokens = str | Sequence[str]
"""Tokens in a list, or as a text: `[a,b]`, a file's name, or `none`."""


class ExtensionSettings(NamedTuple):
    """What was asked for."""

    extend: str | None = None
    inherited: str = "kept"
    seeds: Tokens = NONE
    veto: str = NONE
    protected: Tokens = NONE

    @property
    def setting(self) -> str:
        """The setting that decides most; none if training is from bytes alone, and may merge
        whatever it finds.
        """
        if self.seeds != NONE:
            return "seeds"
        if self.extend is not None:
            return "extend"
        return "" if self.veto == self.protected == NONE else "veto"


@dataclass(frozen=True)
class Extension:
    """The merges that are inherited, in their order, how, and the veto by its name."""

    name: str | None = None
    merges: tuple[Merge, ...] = ()
    inheriting: str = "kept"
    veto: str = NONE
    learned: Learned | None = field(default=None, compare=False, repr=False)
    """The tokenizer that is extended, if its ids are to stay and the file contains them."""
    seeds: str | None = None  # the tokens that the merges are made of, as a list or a file's name

    @property
    def sha256(self) -> str | None:
        return None if self.name is None else merges_sha256(self.merges)

    def keywords(self) -> dict[str, Any]:
        """The arguments that a trainer or a replay of its merges needs."""
        return {
            "inherited": self.merges,
            "inheriting": self.inheriting,
            "veto": vetoes.named(self.veto),
        }

    def job(self) -> Extending:
        """What a measured process gets: where the merges are, and the rest by name."""

        def write(folder: Path) -> None:
            (folder / "merges").write_bytes(packed(list(self.merges)))

        path = cache.kept("inherited", merges_sha256(self.merges), write).path / "merges"
        return Extending(str(path.absolute()), self.inheriting, self.veto)

    def record(self) -> dict[str, Any]:
        """What a record says of it."""
        veto = {} if self.veto == NONE else {"veto": self.veto}
        if self.name is None:
            return veto
        merges = {
            "extend": self.sha256,
            "extend_name": self.name,
            "extend_merges": len(self.merges),
        }
        return {**merges, "inherited": self.inheriting, "seeds": self.seeds, **veto}

    def origin(self) -> dict[str, int]:
        """What a manifest says of merges that were kept, all and first."""
        is_first = self.inheriting == "kept" and self.merges
        return {"inherited_merges": len(self.merges)} if is_first else {}


def extension_of(
    settings: ExtensionSettings, corpus: Corpus, num_merges: int, tie_break: str
) -> Extension | None:
    """What training continues from and may not merge; None for nothing of the kind.

    Raises Refusal for what cannot be inherited.
    """
    one_of("inherited", settings.inherited, INHERITING)
    if not settings.setting:
        return None

    veto, seeds, path = veto_of(settings), settings.seeds, settings.extend
    if seeds != NONE and (path is not None or settings.inherited != "kept"):
        raise Refusal(
            "seeds= are kept and come first; leave out extend= and inherited=met, or seeds=",
            settings={"seeds": "", "extend": "", "inherited": "met"},
        )
    if seeds != NONE:
        merges = seed_merges(seeds, corpus.pattern, tie_break)
        text = seeds if isinstance(seeds, str) else json.dumps(seeds, ensure_ascii=False)
        setting = ("seeds", text)
        name = text if text.startswith("[") else Path(text).name
        extension = Extension("seeds", merges, "kept", veto, seeds=name)
    elif path is not None:
        setting = ("extend", path)
        extension = extended(
            files.path_named(path), settings.inherited, corpus.special_tokens, veto
        )
    else:
        setting = ("veto", veto)
        extension = Extension(veto=veto)

    check_vocabulary_room(setting, extension, num_merges, 256 + len(corpus.special_tokens))
    return extension


def check_vocabulary_room(
    setting: tuple[str, str], extension: Extension, num_merges: int, least: int
) -> None:
    """Refuse inherited merges for which the vocabulary has no room, or that make no sense."""
    number, what = len(extension.merges), override(*setting)
    if num_merges < number:
        why = f"{what}: its {count_text(number)} merges do not fit into {least + num_merges} tokens"
        settings = dict([setting, ("vocab_size", least + number)])
        raise Refusal(f"{why}; set vocab_size={least + number} or more", settings=settings)
    try:
        check_inherited(extension.merges, extension.inheriting, num_merges)
    except ValueError as error:
        raise Refusal(f"{what}: {error}", settings=dict([setting])) from error


def extended(path: Path, inheriting: str, special_tokens: Sequence[str], veto: str) -> Extension:
    """The merges of a file or folder; with their ids if it contains them and all are kept."""
    # late: slow to import, and few trainings extend anything
    from harness.tokenizers.forms import read_merges_file
    from harness.tokenizers.model import load

    with_ids = path.suffix == ".json" or any(
        (path / name).is_file() for name in ("manifest.json", "tokenizer.json")
    )
    if inheriting != "kept" or not with_ids:
        return Extension(path.name, tuple(read_merges_file(path).merges), inheriting, veto)

    learned = load(path).learned
    if set(learned.special_tokens) != set(special_tokens):
        tokens = [*learned.special_tokens]
        raise Refusal(
            f"extend={path} has other special tokens, and every id is to stay; "
            f"set {override('special_tokens', tokens)}",
            settings={"extend": path, "special_tokens": tokens},
        )
    return Extension(path.name, tuple(learned.merges), inheriting, veto, learned)


def veto_of(settings: ExtensionSettings) -> str:
    """The name of the veto, protected tokens included. Raises Refusal for one that cannot be used."""
    names = [part.strip() for part in settings.veto.strip("[]").split(",")]
    if settings.protected != NONE:
        try:
            tokens = vetoes.protected(tokens_in("protected", settings.protected)).protected
        except ValueError as error:
            raise Refusal(str(error)) from error
        names.append("protected:" + ".".join(map(bytes.hex, tokens)))

    names = [name for name in names if name not in ("", NONE, "protected:")]
    veto = f"[{','.join(names)}]" if len(names) > 1 else "".join(names) or NONE
    try:
        vetoes.named(veto)
    except ValueError as error:
        raise Refusal(str(error), settings={"veto": veto}) from error
    except Exception as error:  # a module that is being imported may raise anything
        raise Refusal(f"veto={veto}: {error}", settings={"veto": veto}) from error
    return veto


def tokens_in(setting: str, value: Tokens) -> list[bytes]:
    """The tokens of a list, in `[a,"\\n"]`, or in a file that has a JSON string on each line."""
    prefix, exit_code = f"{setting}=", USAGE
    if not isinstance(value, str):
        lines = list(map(json.dumps, value))
    elif value.startswith("["):
        texts = split_list(value, setting)
        lines = ['"' + re.sub(r'(?<!\\)"', r'\\"', token) + '"' for token in texts]
    else:
        prefix, exit_code = f"{setting}={value}: ", UNMEASURED
        try:
            lines = files.readable(files.path_named(value)).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = reason(error) if isinstance(error, OSError) else "not UTF-8"
            what = f"cannot read {setting}={value} ({why}); pass a file or write a list [A,B]"
            raise Refusal(what, exit_code, {setting: value}) from error

    tokens = []
    for line in filter(str.strip, lines):
        try:
            tokens.append(json.loads(line, strict=False).encode())
        except (ValueError, AttributeError, RecursionError) as error:
            what = f'{prefix}{line[:80]} is not a JSON string such as "mov"; write \\\\ for a backslash'
            shown = {setting: value if exit_code == UNMEASURED else ""}
            raise Refusal(what, exit_code, shown) from error
    return tokens


def seed_merges(value: Tokens, pattern: str | None, tie_break: str) -> tuple[Merge, ...]:
    """The merges of the seeds. Raises Refusal for a seed that no text can give."""
    from variants.seeds import seeds  # late, as few trainings have some

    if tie_break == OWN:
        rule = next(iter(TieBreak)).value
        what = f"seeds= need a tie-break; set tie_break={rule}"
        raise Refusal(what, settings={"seeds": "", "tie_break": rule})
    tokens = tokens_in("seeds", value)
    for seed in map(bytes.decode, tokens):
        pieces = [seed]
        if pattern is not None:
            pieces = [match.group() for match in regex.finditer(pattern, seed)]
        if seed and pieces != [seed]:
            parts = ", ".join(map(repr, pieces)) or "nothing"
            name = pattern_name(pattern) or repr(pattern)
            raise Refusal(
                f"the seed {seed!r} is cut by pattern={name} ({parts}), so no text gives it; leave it out",
                settings={"pattern": name},
            )
    try:
        return tuple(seeds(tokens, TieBreak(tie_break)))
    except ValueError as error:
        raise Refusal(f"seeds={value}: {error}", settings={"seeds": value}) from error
