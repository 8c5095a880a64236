"""Train a tokenizer from files, documents, or counts; as a function, without a benchmark."""

from __future__ import annotations

import importlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import islice
from typing import Any

from harness.common import registry
from harness.common.errors import UNMEASURED, Refusal
from harness.common.progress import bar
from harness.common.units import counted_text
from harness.common.values import at_least, one_of, read_json, special_texts, whole_number
from harness.corpora import text
from harness.tokenizers.encoding import refuse_frame
from harness.tokenizers.extension import Extension, ExtensionSettings, Tokens, extension_of
from harness.tokenizers.forms import TokenizerJson
from harness.tokenizers.learned import (
    BYTES,
    check_spellings,
    pattern_named,
    spelled,
    trained,
)
from harness.tokenizers.model import Tokenizer
from harness.tokenizers.pre_tokenizer import pattern_and_prefix
from variants import flat
from variants.contract import Corpus, LeftOut, Merge, Meter, TieBreak, Unavailable, WordCounts

Source = (
    str
    | os.PathLike[str]
    | Iterable[str | bytes | Iterable[str | bytes] | os.PathLike[str]]
    | Mapping[Any, int]
)
Counted = tuple[WordCounts, dict[str, str | None]]
# bytes that the tables of words of documents may take before they spill to disk
TABLE_MEMORY = 200_000_000
ITEMS_AT_ONCE, LARGE_CHUNK = 64, 1 << 19  # items are taken one by one if so many bytes came at once


def train(
    source: Source,
    vocab_size: int,
    *,
    pattern: str | None = "gpt2",
    special_tokens: Iterable[str] = ("<|endoftext|>",),
    tie_break: str | TieBreak = TieBreak.GREATEST_BYTES,
    min_count: int = 1,
    extend: str | os.PathLike[str] | None = None,
    inherited: str = "kept",
    seeds: Tokens = "none",
    veto: str = "none",
    protected: Tokens = "none",
    threads: int = 1,
    errors: str = "strict",
    settings: Sequence[str] = (),
    progress: bool = False,
) -> Tokenizer:
    """Train a tokenizer of `vocab_size` tokens, special ones included, or of fewer if no pair is
    left.

    `source` is a path (whatever data.path takes) or several `pathlib.Path`s; an iterable of
    documents (str or bytes) or of batches of them, which are never joined; or a mapping from words
    to counts. `pattern` is a name in conf/pattern, a regular expression, or None for raw bytes;
    `errors` is `strict` or `replace`, for bytes that are not UTF-8; `settings` say how files are
    read, such as `["data.column=body", "data.bytes=1MB"]`.

    As for `python -m harness`, training goes on from the merges of `extend`, a tokenizer or a file
    of merges, or from `seeds`, a list of tokens; `veto` names merges that are not made, such as
    `characters:16`, and `protected` lists tokens that are not merged further. Raises Refusal or
    TypeError, with the item's number, for a source that cannot be trained on.
    """
    texts = special_texts(special_tokens)
    corpus = Corpus("documents", texts, pattern_named(pattern), errors)
    vocab_size = whole_number("vocab_size", vocab_size)
    num_merges = merges_for(vocab_size, corpus)
    tie_break = tie_break.value if isinstance(tie_break, TieBreak) else tie_break
    at_least("min_count", min_count)
    at_least("threads", threads)
    one_of("errors", errors, ["strict", "replace"])
    one_of("tie_break", tie_break, [rule.value for rule in TieBreak])
    path = None if extend is None else os.fspath(extend)
    wanted = ExtensionSettings(path, inherited, seeds, veto, protected)
    extension = extension_of(wanted, corpus, num_merges, tie_break) or Extension()

    words, data = counted(source, corpus, threads, progress, settings)
    options = {"tie_break": TieBreak(tie_break), "min_count": min_count, "threads": threads}
    merges = learn_merges(words, num_merges, progress, **options, **extension.keywords())
    origin = {"vocab_size_asked": vocab_size, "tie_break": tie_break, "min_count": min_count}
    origin |= {"variant": "flat", "data": data, **extension.origin()}
    learned = trained(merges, corpus.special_tokens, corpus.pattern, extension.learned)
    return Tokenizer(learned, origin)


def merges_for(vocab_size: int, corpus: Corpus) -> int:
    """The number of merges. Raises Refusal for a size, a pattern or special tokens that no
    tokenizer can have.
    """
    Tokenizer(trained([], corpus.special_tokens, corpus.pattern))
    check_spellings(corpus.special_tokens)
    least = len(BYTES) + len(corpus.special_tokens)
    if vocab_size < least:
        special = counted_text(len(corpus.special_tokens), "special token")
        raise Refusal(
            f"vocab_size={vocab_size} has no room for 256 bytes and {special}; set {least} or more",
            settings={"vocab_size": vocab_size},
        )
    return vocab_size - least


def learn_merges(
    words: WordCounts, num_merges: int, progress: bool = False, **options: Any
) -> list[Merge]:
    """The merges of the fastest trainer. Raises Refusal if it cannot train on these words."""
    with showing("training", num_merges, "merges", progress) as meter:
        return list(flat.train(words, num_merges, meter, **options))


class Reporting(Meter):
    """Passes progress on."""

    def __init__(self, show: Callable[[int], None]) -> None:
        super().__init__()
        self.show = show

    def progress(self, done: int) -> bool:
        self.show(done)
        return True


@contextmanager
def showing(label: str, total: int, unit: str, progress: bool) -> Iterator[Meter]:
    """A meter, with a progress bar if `progress` is true. What counters and trainers raise becomes
    a Refusal.
    """
    with bar(label, total, unit) if progress else nullcontext(lambda _: None) as show:
        try:
            yield Reporting(show)
        except LeftOut as error:
            raise Refusal(
                f"the pattern leaves out {error.text!r}; fix the pattern", UNMEASURED
            ) from error
        except Unavailable as error:
            raise Refusal(str(error), UNMEASURED) from error
        except ValueError as error:
            raise Refusal(str(error)) from error


def counted(
    source: Source, corpus: Corpus, threads: int, progress: bool, settings: Sequence[str] = ()
) -> Counted:
    """The words of any source, and the name and digest of the data for the manifest."""
    if (paths := paths_in(source)) is not None:
        return counted_file(paths, corpus, threads, progress, settings)
    if settings:
        raise Refusal(f"{settings[0]} is about files, and the source is none; leave it out")
    if isinstance(source, Mapping):
        words = count_items(source)
    elif isinstance(source, Iterable):
        words = count_iterable(source, corpus, threads, progress)
    else:
        raise TypeError(
            f"source is {type(source).__name__}; pass paths, documents, or a mapping of counts"
        )
    return words, {"name": None, "sha256": None}


def count_iterable(
    source: Iterable[Any],
    corpus: Corpus,
    threads: int,
    progress: bool = False,
    change: Callable[[bytes], bytes] | None = None,
) -> WordCounts:
    """The words of an iterable of documents or batches, each changed before it is counted."""
    from variants.counting import parts  # late: counting a file does without

    refuse_frame(source, "source")
    documents = documents_of(source, corpus)
    if change is not None:
        documents = (list(map(change, batch)) for batch in documents)
    with showing("counting", 0, "bytes", progress) as meter:
        return parts.count_documents(documents, corpus, TABLE_MEMORY, meter, threads=threads)


def paths_in(source: Any) -> list[str] | None:
    """The paths that a source names; None if it is documents."""
    if isinstance(source, str | os.PathLike):
        return [os.fspath(source)]
    first = source[0] if isinstance(source, list | tuple) and source else None
    if isinstance(first, os.PathLike):
        return list(map(os.fspath, source))
    if isinstance(first, str) and len(first) < 256 and os.path.isfile(first):  # noqa: PTH113
        raise Refusal(
            f"{first!r} is a file, but strings in a list are documents; pass pathlib.Path objects"
        )
    return None


def counted_file(
    paths: list[str],
    corpus: Corpus,
    threads: int,
    progress: bool,
    settings: Sequence[str] = (),
) -> Counted:
    source = paths if len(paths) > 1 else paths[0]
    file = text(source, settings, corpus.special_tokens, corpus.errors)
    reading = Corpus(str(file.path), corpus.special_tokens, corpus.pattern, corpus.errors)
    counter = registry.default_counter()
    with showing(f"counting {file.name}", file.bytes, "bytes", progress) as meter:
        try:
            words = registry.resolve(counter.target)(
                reading, meter, **{**counter.params, "threads": threads}
            )
        except LeftOut:
            raise
        except ValueError as error:
            sentence = file.located(str(error), getattr(error, "offset", 0))
            raise Refusal(sentence, UNMEASURED, {"errors": "replace"}) from error
    file.check_unchanged()
    return words, {"name": file.name, "sha256": file.sha256}


def documents_of(source: Iterable[Any], corpus: Corpus) -> Iterator[list[bytes]]:
    """The documents of an iterable of documents or batches, some at a time as UTF-8. Raises with an
    item's number.
    """
    items, number, at_once = iter(source), 0, 1
    while True:
        chunk: list[Any] = []
        try:
            chunk.extend(islice(items, at_once))
        except Exception as error:
            name = f"item {number + len(chunk) + 1}"
            raise Refusal(f"{name}: the iterable raised {type(error).__name__}: {error}") from error
        if not chunk:
            return
        documents = encoded(chunk, "item", number + 1, corpus)
        yield documents
        number += len(chunk)
        at_once = 1 if sum(map(len, documents)) > LARGE_CHUNK else min(2 * at_once, ITEMS_AT_ONCE)


def encoded(items: Iterable[Any], kind: str, first: int, corpus: Corpus) -> list[bytes]:
    """Documents, or batches of them, as UTF-8."""
    items = list(items)
    with suppress(TypeError, UnicodeEncodeError):  # something is not a str, or is reported below
        return list(map(str.encode, items))
    documents = []
    for number, each in enumerate(items, first):
        item = each.as_py() if hasattr(each, "as_py") else each  # of an array of Arrow
        name = f"{kind} {number}"
        if isinstance(item, str | bytes | Mapping | os.PathLike) or not isinstance(item, Iterable):
            documents.append(encoded_document(item, name, corpus))
        else:
            refuse_frame(item, name)
            documents += encoded(item, f"{name}, element", 1, corpus)
    return documents


def encoded_document(item: Any, name: str, corpus: Corpus) -> bytes:
    if not isinstance(item, str | bytes):
        raise TypeError(
            f"{name} is {type(item).__name__}, not str or bytes; pass texts, such as (row['text'] for row in rows)"
        )
    if isinstance(item, bytes) and corpus.pattern is None:
        return item
    try:
        text = item.decode(errors=corpus.errors) if isinstance(item, bytes) else item
        if corpus.errors == "replace":
            text = re.sub("[\ud800-\udfff]", "\ufffd", text)
        return text.encode()
    except UnicodeError as error:
        raise Refusal(f"{name}: {error}; fix it, or pass bytes with errors='replace'") from error


def count_items(counts: Mapping[Any, Any]) -> WordCounts:
    """The words of a mapping. Raises TypeError for what is not a word with its count, and Refusal
    for a word that is not UTF-8.
    """
    items = []
    for word, count in counts.items():
        is_count = hasattr(count, "__index__") and not isinstance(count, bool)
        if not isinstance(word, str | bytes) or not is_count:
            raise TypeError(
                f"the mapping has {type(word).__name__} {str(word)[:40]!r}: {type(count).__name__}, "
                "not a word (str or bytes) with its count (int); pass texts, such as (row['text'] for row in rows)"
            )
        try:
            items.append((word.encode() if isinstance(word, str) else word, int(count)))
        except UnicodeEncodeError as error:
            raise Refusal(f"word {word[:40]!a} is not UTF-8; leave it out") from error
    with showing("counting", 0, "words", False):
        return WordCounts.from_items(items)


# `train_new_from_iterator` of transformers for byte-level BPE tokenizers: the same tokenizer.json,
# trained here.

UNSUPPORTED = ("limit_alphabet", "continuing_subword_prefix", "end_of_word_suffix")


def train_new_from_iterator(
    old: Any, iterator: Iterable[Any], vocab_size: int, *, threads: int = 1, **keywords: Any
) -> Any:
    """A tokenizer of the class and settings of `old`, trained on documents or batches of them.

    `old` is a byte-level BPE tokenizer of transformers or a `tokenizers.Tokenizer`; the keywords
    are those of transformers (`new_special_tokens`, `special_tokens_map`, `min_frequency` and so
    on). The vocabulary, the merges and the special tokens are those that transformers gives; a
    normalizer and `add_prefix_space` change each document as they do there. Raises Refusal, before
    anything is read, for a tokenizer or a keyword that it cannot reproduce.
    """
    if isinstance(new_tokens := keywords.get("new_special_tokens"), str):
        raise TypeError(f"new_special_tokens is {new_tokens!r}, not a list; pass [{new_tokens!r}]")
    is_plain = type(old).__module__.partition(".")[0] == "tokenizers"
    wrapped = of_transformers(old, is_plain)
    if unsupported := [name for name in UNSUPPORTED if keywords.get(name) is not None]:
        raise Refusal(
            f"{unsupported[0]} is not supported here; leave it out, or use transformers' own training"
        )
    pattern, change = pattern_and_change(wrapped.backend_tokenizer)

    # Trained on nothing, it has everything but the merges: special tokens, the 256 bytes, the class
    # and its settings.
    new = wrapped.train_new_from_iterator([], vocab_size, **{**keywords, "show_progress": False})
    content = json.loads(new.backend_tokenizer.to_str())
    vocab, merges = content["model"]["vocab"], content["model"]["merges"]

    words = count_iterable(iterator, Corpus("documents", (), pattern), threads, change=change)
    longest = keywords.get("max_token_length")
    new_merges = learn_merges(
        words,
        max(0, vocab_size - len(vocab)),
        tie_break=TieBreak.HUGGINGFACE,
        min_count=max(1, keywords.get("min_frequency", 0)),
        threads=threads,
        # below it, and two single bytes, may be merged
        veto=None if longest is None else lambda left, right: 2 < len(left + right) >= longest,
    )

    for left, right in new_merges:
        token = spelled(left + right)
        if token in vocab:
            raise Refusal(
                f"a merge makes the special token {token!r}, which transformers numbers differently"
            )
        vocab[token] = len(vocab)
        merges.append([spelled(left), spelled(right)])
    new._tokenizer = type(new.backend_tokenizer).from_str(json.dumps(content))
    return new.backend_tokenizer if is_plain else new


def of_transformers(old: Any, is_plain: bool) -> Any:
    """A tokenizer of transformers, or of tokenizers in one. Raises Refusal for another one."""
    try:
        importlib.import_module("tokenizers.trainers")  # which 1.0 does not have
        transformers = importlib.import_module("transformers")
    except ImportError as error:
        raise Refusal(
            "train_new_from_iterator needs transformers and tokenizers<1; "
            "run python -m pip install transformers 'tokenizers<1'",
            UNMEASURED,
        ) from error
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=old) if is_plain else old
    if not hasattr(wrapped, "train_new_from_iterator"):
        raise Refusal(
            f"{type(old).__name__} is not a fast tokenizer of transformers or a tokenizers.Tokenizer"
        )
    return wrapped


def pattern_and_change(backend: Any) -> tuple[str | None, Callable[[bytes], bytes] | None]:
    """The pattern of a `tokenizers.Tokenizer`, and how it changes a document before splitting; None
    if it does not. Raises Refusal for what cannot be trained here.
    """
    try:
        file: TokenizerJson = read_json(backend.to_str().encode(), TokenizerJson)
        pattern, prefix = pattern_and_prefix(file.pre_tokenizer)
    except ValueError as error:
        raise Refusal(f"it cannot be trained here: {error}") from error

    def changed(document: bytes) -> bytes:
        text = document.decode()
        if backend.normalizer is not None:
            text = backend.normalizer.normalize_str(text)
        if prefix and text and not text.startswith(" "):
            text = f" {text}"
        return text.encode()

    return pattern, changed if prefix or backend.normalizer is not None else None
