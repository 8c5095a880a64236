"""A tokenizer in a folder: the files of every form or of one, and a manifest, written and read; and
the objects of other engines.

vocab.json and merges.txt do not contain the pattern, the special tokens or the training data; the
manifest does. It is written last and holds the digests of the other files, so that a file of
another tokenizer among them is noticed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import starmap
from operator import index
from pathlib import Path
from types import EllipsisType
from typing import Any, Literal, SupportsIndex

import msgspec
from msgspec.structs import replace

from harness.common.errors import UNMEASURED, Refusal, extra, reason
from harness.common.files import (
    check_output,
    exchange,
    exists_already,
    folder_for,
    path_named,
    place,
    readable,
    real_path,
    sync,
    sync_names,
    temporary_folder,
    writing,
)
from harness.common.units import one_line
from harness.common.values import one_of, read_json, special_texts
from harness.tokenizers import forms
from harness.tokenizers.forms import (
    CONFIG,
    MANIFEST,
    MERGES,
    RANKS,
    TOKENIZER_JSON,
    VOCAB,
    Value,
    json_text,
)
from harness.tokenizers.learned import (
    NOTHING_AROUND,
    Around,
    Id,
    Learned,
    others,
    pattern_name,
    pattern_named,
    put_together,
    shadowed,
    spelled,
    surrounded,
)
from harness.worker.exchange import merges_sha256
from variants.counting.patterns import slots_of

NEW_IDS = "new_ids.json"
"""The new id of each old one that is left; only in the folder of a pruned tokenizer."""
FILES = (VOCAB, MERGES, TOKENIZER_JSON, CONFIG, RANKS, NEW_IDS, MANIFEST)
FILES_OF = {
    "ours": (VOCAB, MERGES, TOKENIZER_JSON, CONFIG, RANKS, MANIFEST),
    "gpt2": (VOCAB, MERGES),
    "huggingface": (TOKENIZER_JSON, CONFIG),
    "tiktoken": (RANKS, MANIFEST),
}
"""The files of each form, in the order in which they are written."""
HAS_ONE = "has a tokenizer already"
OF_TIKTOKEN = "tiktoken:"
RANKS_ENDING = ".tiktoken"
Pattern = str | EllipsisType | None
Specials = Sequence[str] | Mapping[str, int] | None


# Writing


def save(
    folder: Path,
    learned: Learned,
    origin: Mapping[str, Any],
    *,
    overwrite: bool = False,
    form: str = "ours",
    new_ids: Mapping[int, int] | None = None,
) -> list[str]:
    """Write a tokenizer in every form or in one, whole or not at all; `origin` goes into the
    manifest as it is.

    Returns a sentence for each thing that a form cannot express; of all forms one that would give
    other ids is left out. Raises Refusal if the one form cannot hold the tokenizer, if the folder
    cannot be written, or has these files and `overwrite` is false.
    """
    check_free(folder, overwrite=overwrite)
    if form == "gpt2":
        forms.check_one_id(learned, VOCAB)
        if learned.ignore_merges:
            raise Refusal(
                f"{VOCAB} cannot hold this tokenizer: it takes whole pre-tokens that no merges make"
            )

    contents, notes = dict[str, bytes](), list[str]()
    if new_ids is not None:
        contents[NEW_IDS] = json_text(new_ids)
    for name in FILES_OF[form]:
        if name == CONFIG and TOKENIZER_JSON not in contents:
            continue
        try:
            if name == MANIFEST:
                contents[name] = manifest(learned, origin, contents)
            else:
                contents[name] = _CONTENTS[name](learned)
        except Refusal as error:
            if form != "ours":
                raise
            notes.append(str(error))

    if form != "huggingface" and (names := learned.around.names()):
        what = ", ".join(names)
        notes.append(f"only {TOKENIZER_JSON} applies its {what}; other ids are those of the text")
    if RANKS in contents and (pair := shadowed(learned.special_tokens)):
        notes.append(
            f"special token {pair[1]!r} begins with {pair[0]!r}: tiktoken may take the shorter one; compare with check"
        )
    if RANKS in contents and learned.pattern is not None and slots_of(learned.pattern) is None:
        notes.append(
            "tiktoken reads a pattern of your own by its rules, and it leaves out what the pattern does not match; "
            "run check"
        )
    if form == "gpt2":
        notes.append(
            f"these files lack the pattern and the special tokens: the pattern is {learned.pattern!r}"
        )

    with new_folder(folder, overwrite=overwrite) as part:
        for name, content in contents.items():
            (part / name).write_bytes(content)
    return notes


_CONTENTS: Mapping[str, Callable[[Learned], bytes]] = {
    VOCAB: lambda learned: json_text(forms.spelled_ids(learned)),
    MERGES: lambda learned: forms.merges_text(learned.merges),
    TOKENIZER_JSON: forms.tokenizer_json,
    CONFIG: forms.config_json,
    RANKS: forms.ranks_text,
}


def manifest(learned: Learned, origin: Mapping[str, Any], contents: Mapping[str, bytes]) -> bytes:
    """What the other files do not contain, and their digests."""
    files = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    facts = _Manifest(
        schema=1,
        vocab_size=len(learned.vocab),
        merges=len(learned.merges),
        merges_sha256=merges_sha256(learned.merges),
        special_tokens=list(starmap(_SpecialToken, learned.special_tokens.items())),
        pattern=_Pattern(learned.pattern, pattern_name(learned.pattern)),
        ignore_merges=learned.ignore_merges,
        around=learned.around,
        files=files,
    )
    return json_text({**msgspec.to_builtins(facts), **origin})


def check_free(folder: Path, inputs: Sequence[Path] = (), *, overwrite: bool) -> None:
    """Refuse a folder with an input, and one that has a tokenizer unless it may be overwritten."""
    check_output(folder, inputs, names=FILES)
    present = [name for name in FILES if (folder / name).exists()]
    if present and not overwrite:
        raise exists_already(folder, f"{HAS_ONE} ({', '.join(present)})")


def check_place(folder: Path, inputs: Sequence[Path] = (), *, overwrite: bool) -> None:
    """Raises Refusal, before anything is trained, for a folder that is not free or cannot be
    written.
    """
    check_free(folder, inputs, overwrite=overwrite)
    with aside_of_tokenizer(folder):
        pass


@contextlib.contextmanager
def aside_of_tokenizer(folder: Path) -> Iterator[tuple[Path, Path]]:
    """The real path of a folder, and a temporary folder whose files can be moved there. Raises
    Refusal if something there cannot be written.
    """
    with writing(f"a tokenizer to {folder}", "choose another folder"):
        target = real_path(folder)
        beside = target.parent if can_be_exchanged(target) else target
        with folder_for(beside), temporary_folder(beside) as temporary:
            yield target, temporary


@contextlib.contextmanager
def new_folder(folder: Path, *, overwrite: bool) -> Iterator[Path]:
    """An empty folder whose files take the place of a tokenizer at the end.

    It is exchanged for `folder` in one step, so that this always holds one tokenizer whole. Where
    other files are in `folder`, or it cannot be exchanged, its files are replaced one by one, the
    manifest last; if one cannot be, all are put back. Raises Refusal if that cannot be written.
    """
    with aside_of_tokenizer(folder) as (target, temporary):
        part = temporary / "new"
        part.mkdir()
        yield part

        sync(*part.iterdir(), part)
        replace_tokenizer(part, target, overwrite)
        sync_names(target)
        sync_names(temporary.parent)


def replace_tokenizer(part: Path, folder: Path, overwrite: bool) -> None:
    """Put the files of `part` into `folder`: all, or none and those of before."""
    if can_be_exchanged(folder):
        try:
            part.rename(folder)  # which is missing, or empty
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            if not overwrite:
                raise exists_already(folder, HAS_ONE) from error
            exchange(part, folder)
        return

    names = {path.name for path in part.iterdir()}
    steps = [(folder / name, part / name if name in names else None) for name in FILES]
    place(steps, replace=overwrite)


def can_be_exchanged(folder: Path) -> bool:
    """Whether a folder is missing, or holds a tokenizer alone and is not where somebody works."""
    if not folder.exists():
        return True
    others = {path.name for path in folder.iterdir()}.difference(FILES)
    is_held = folder.is_mount() or folder == Path.cwd()
    return not others and not is_held and os.access(folder.parent, os.W_OK)


# Reading


class _SpecialToken(msgspec.Struct):
    text: str
    id: Id


class _Pattern(msgspec.Struct):
    regex: str | None
    name: str | None = None


class _Manifest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What the other files do not contain, and their digests."""

    schema: Literal[1]
    vocab_size: int
    merges: int
    merges_sha256: str
    special_tokens: list[_SpecialToken]
    pattern: _Pattern
    ignore_merges: bool = False
    around: Around = NOTHING_AROUND
    files: dict[str, str]


def read_tokenizer(
    path: Path | str, pattern: Pattern, special_tokens: Specials
) -> tuple[Learned, dict[str, Any]]:
    """The tokenizer that `model.load` gives, and what its manifest says about the training."""
    file, is_encoding = path_named(path), str(path).startswith(OF_TIKTOKEN)
    if file.is_dir():  # the most complete form
        file /= next(
            (name for name in (MANIFEST, TOKENIZER_JSON) if (file / name).is_file()), VOCAB
        )
    content = b"" if is_encoding else parse(file, bytes)
    is_ranks = file.suffix == RANKS_ENDING or forms.begin_like_ranks(content)
    lacking = file.name == VOCAB or is_ranks
    if not lacking and (pattern is not ... or special_tokens is not None):
        raise Refusal(f"{file} contains the pattern and the special tokens; leave them out")

    if is_encoding:
        return of_tiktoken(str(path).removeprefix(OF_TIKTOKEN)), {}
    if file.name == MANIFEST:
        return _described(file)
    if lacking:
        if pattern is ...:
            advice = "python -m harness.tokenizer convert --to ours takes --pattern and --special-token (so does load)"
            raise Refusal(f"{file} lacks its pattern; {advice}")
        learned = _completed(file, pattern_named(pattern), special_tokens)
        if file.name == VOCAB and (strange := others(learned)):
            why = f"{spelled(strange[0])!r} is not a byte, no merge makes it, and it is not among the special tokens"
            raise Refusal(f"{file} cannot be used: {why}; pass all special tokens")
        return learned, {}

    if file.suffix == ".json" or content.lstrip().startswith(b"{"):
        return with_config(parse(file, forms.read_tokenizer_json), file.with_name(CONFIG)), {}
    known = f"a folder with {VOCAB} and {MERGES}, a {TOKENIZER_JSON}, or a file of tiktoken's ranks"
    raise Refusal(f"{file} is not a tokenizer; pass {known}", UNMEASURED)


def _completed(
    path: Path, pattern: Any, special_tokens: Specials, ignore_merges: bool = False
) -> Learned:
    """What vocab.json, with merges.txt, or ranks make with pattern and special tokens."""
    is_gpt2 = path.name == VOCAB
    ids: Mapping[Any, int] = parse(
        path, partial(read_json, kind=dict[str, Id]) if is_gpt2 else forms.read_ranks
    )
    given: Any = special_tokens or ()
    known = given if isinstance(given, Mapping) else ids
    special_ids = dict[str, Any]()
    for text in special_texts([*given] if known is given else given):
        if text not in known:
            advice = "pass those that it has" if is_gpt2 else "give each its id, TOKEN=ID"
            raise Refusal(f"{path} has no special token {text!r}; {advice}")
        number = known[text]  # NumPy's, too
        special_ids[text] = index(number) if isinstance(number, SupportsIndex) else number

    if not is_gpt2:
        return parse(path, lambda _: forms.of_ranks(ids, special_ids, pattern))
    merges = parse(path.parent / MERGES, forms.read_merges)
    return parse(path, lambda _: put_together(ids, merges, special_ids, pattern, ignore_merges))


def _described(path: Path) -> tuple[Learned, dict[str, Any]]:
    """What a manifest describes. Raises Refusal if it is damaged, or a file is not the one that it
    describes.
    """
    about: _Manifest = parse(path, partial(read_json, kind=_Manifest))
    check_files(path, about.files)
    name = VOCAB if VOCAB in about.files else RANKS
    special_tokens = {token.text: token.id for token in about.special_tokens}
    learned_alone = _completed(
        path.parent / name, about.pattern.regex, special_tokens, about.ignore_merges
    )
    learned = parse(path, lambda _: surrounded(learned_alone, about.around))
    origin = parse(path, partial(read_json, kind=dict[str, Any]))
    for key in _Manifest.__struct_fields__:
        origin.pop(key, None)
    return learned, origin


def with_config(learned: Learned, config: Path) -> Learned:
    """The tokenizer with the roles of special tokens that the file beside it names, if there is
    one.
    """
    if not config.is_file():
        return learned
    roles = parse(config, partial(forms.read_roles, learned=learned))
    return learned._replace(around=replace(learned.around, roles=roles))


def check_files(manifest: Path, digests: Mapping[str, str]) -> None:
    """Raises Refusal if a file beside a manifest is missing, or is not the one that it describes."""
    # People add a chat template to tokenizer_config.json, which decides no ids.
    for name in FILES:
        file = manifest.with_name(name)
        if name in (MANIFEST, CONFIG) or (name not in digests and not file.exists()):
            continue
        if hashlib.sha256(parse(file, bytes)).hexdigest() != digests.get(name):
            raise Refusal(
                f"{file} cannot be used: it is not the file that {MANIFEST} describes; "
                "move the files that you mean into another folder",
                UNMEASURED,
            )


def parse(path: Path, reader: Callable[[bytes], Value]) -> Value:
    """What a reader makes of a file. Raises Refusal, with the reader's reason, if it cannot be
    used.
    """
    try:
        return reader(readable(path).read_bytes())
    except OSError as error:
        advice = "python -m harness.tokenizer train or save=FOLDER writes a tokenizer"
        raise Refusal(f"cannot read {path} ({reason(error)}); {advice}", UNMEASURED) from error
    except ValueError as error:
        is_manifest = path.name == MANIFEST
        advice = (
            "remove it to load the files beside it" if is_manifest else "pass another tokenizer"
        )
        raise Refusal(f"{path} cannot be used: {error}; {advice}", UNMEASURED) from error


# The tokenizers of other engines: opened from our files, or read


@contextlib.contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """Turn whatever an engine raises into a Refusal of one line that begins with `what`.

    Engines in Rust panic, which is not an Exception.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        why = one_line(str(error))[:300] or type(error).__name__
        raise Refusal(f"{what}: {why}", UNMEASURED) from error


def load_tokenizers(path: Path) -> Any:
    """The `tokenizers.Tokenizer` of a file. Raises Refusal if tokenizers is missing or does not
    load it.
    """
    tokenizers = extra("tokenizers", TOKENIZER_JSON, "engines")
    with engine_errors("tokenizers does not load it"):
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
        tokenizer.encode("a")  # 1.0 compiles a pattern when it first meets a text
    return tokenizer


def as_tokenizers(learned: Learned) -> Any:
    """The `tokenizers.Tokenizer` of a tokenizer, of whichever version is installed. Raises Refusal
    if it cannot be.
    """
    with tempfile.TemporaryDirectory(prefix="bpe-harness-") as folder:
        path = Path(folder, TOKENIZER_JSON)
        path.write_bytes(forms.tokenizer_json(learned))  # tokenizers 1.0 loads from files only
        return load_tokenizers(path)


def as_tiktoken(ranks: Mapping[bytes, int], learned: Learned) -> Any:
    """The `tiktoken.Encoding` of ranks, with a tokenizer's pattern and special tokens. Raises
    Refusal if tiktoken is missing or cannot use them.
    """
    tiktoken = extra("tiktoken", RANKS, "engines")
    with engine_errors("tiktoken does not load it"):
        encoding = tiktoken.Encoding(
            "ours",
            pat_str="(?s:.+)" if learned.pattern is None else learned.pattern,  # it must have one
            mergeable_ranks=dict(ranks),
            special_tokens=learned.special_tokens,
        )
        encoding.encode("a")
    return encoding


def of_tiktoken(name: str) -> Learned:
    """An encoding of the tiktoken package, whose ranks may have to be in that package's own
    cache.
    """
    tiktoken = extra("tiktoken", f"tiktoken:{name}", "engines")
    one_of("encoding of tiktoken", name, tiktoken.list_encoding_names())
    advice = "set TIKTOKEN_CACHE_DIR to a folder that has them, or pass a file of ranks"
    with engine_errors(f"tiktoken cannot get the ranks of {name} here; {advice}"):
        encoding = tiktoken.get_encoding(name)
    return forms.of_ranks(encoding._mergeable_ranks, encoding._special_tokens, encoding._pat_str)
