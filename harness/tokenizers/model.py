"""A tokenizer at work: encode, decode, save, cut. Any bytes decode to themselves."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from harness.common.errors import Refusal
from harness.common.files import path_named
from harness.common.printing import print_stderr
from harness.common.units import count_text
from harness.common.values import at_least, one_of
from harness.corpora import Source, documents, named_inputs
from harness.tokenizers import folder as folders
from harness.tokenizers import forms, learned
from harness.tokenizers.encoding import (
    PLACES,
    PlainDecoder,
    PlainEncoder,
    Separator,
    as_bytes,
    decoder_of,
    encoder_of,
    outputs_of_ids,
    refuse_frame,
    streamed,
    write_ids,
)
from harness.tokenizers.learned import Learned, check_ids, pattern_name, pattern_named
from harness.tokenizers.pre_tokenizer import compiled_pattern
from variants.contract import GPT2_PATTERN, Merge

if TYPE_CHECKING:
    import numpy as np

Progress = Callable[[int], None]


class Tokenizer:
    """A tokenizer at work; `learned` is what it consists of, `origin` what the manifest says about
    the training.

    >>> tokenizer = Tokenizer(learned.trained([(b"l", b"o"), (b"lo", b"w")], ["<|e|>"], None))
    >>> tokenizer
    <Tokenizer: 259 tokens, 2 merges, special tokens ['<|e|>'], pattern bytes>
    >>> tokenizer.encode("low<|e|>lot"), tokenizer.decode([258, 256])
    ([258, 256, 257, 116], b'low<|e|>')
    """

    def __init__(self, learned: Learned, origin: Mapping[str, Any] | None = None) -> None:
        self.learned = learned
        self.vocab, self.merges, self.special_tokens, self.pattern, self.ignore_merges, _ = learned
        self.origin = dict(origin or {})
        compiled_pattern(self.pattern)
        try:
            check_ids(learned)
        except ValueError as error:
            raise Refusal(f"the vocabulary cannot be used: {error}; pass it whole") from error
        self._encoders: dict[bool, PlainEncoder] = {}
        self._decoder: PlainDecoder | None = None

    @classmethod
    def from_vocab(
        cls,
        vocab: Mapping[int, bytes],
        merges: Iterable[Merge],
        special_tokens: Iterable[str] | None = None,
        *,
        pattern: str | None = GPT2_PATTERN,
    ) -> Tokenizer:
        """The tokenizer of a vocabulary and its merges, as a trainer returns them.

        A special token that is not in the vocabulary gets the next id, and a token that no merge
        makes is never used. Raises TypeError for other types, and Refusal for merges and tokens
        that do not fit each other.
        """
        try:
            return cls(
                learned.of_vocab(vocab, merges, special_tokens or (), pattern_named(pattern))
            )
        except ValueError as error:
            raise Refusal(f"vocab and merges cannot be used: {error}; pass both whole") from error

    @property
    def vocab_size(self) -> int:
        """The number of tokens, special ones included."""
        return len(self.vocab)

    def __len__(self) -> int:
        return len(self.vocab)

    def __repr__(self) -> str:
        pattern = pattern_name(self.pattern) or repr(self.pattern)
        special = f"special tokens {[*self.special_tokens]}"
        size, merges = count_text(len(self)), count_text(len(self.merges))
        return f"<Tokenizer: {size} tokens, {merges} merges, {special}, pattern {pattern}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Tokenizer, (self.learned, self.origin)

    def encoder(self, special_tokens: bool = True) -> PlainEncoder:
        """The compiled encoder, or the plain one if it cannot be compiled; see `why_plain`."""
        if special_tokens not in self._encoders:
            self._encoders[special_tokens] = encoder_of(self.learned, special_tokens)
        return self._encoders[special_tokens]

    @property
    def why_plain(self) -> str:
        """Why it encodes in plain Python, some hundred times slower; nothing if it is compiled."""
        return getattr(self.encoder(), "why_plain", "")

    def encode(self, text: str | bytes, *, special_tokens: bool = True) -> list[int]:
        """The ids of a text, or of any bytes. Raises UnicodeEncodeError for a text with lone
        surrogates.

        With `special_tokens=False`, as for text of strangers, `<|endoftext|>` is ordinary text.
        """
        return self.encoder(special_tokens).encode(text)

    def encode_to_numpy(
        self, text: str | bytes, *, threads: int = 1, special_tokens: bool = True
    ) -> np.ndarray[Any, Any]:
        """The same as an array: uint16 if all ids of the vocabulary fit, else uint32."""
        import numpy as np  # late: it is slow to import, and decoding needs none

        at_least("threads", threads)
        ids, _ = self.encoder(special_tokens).encode_batch([text], threads)
        return np.asarray(ids)

    def encode_batch(
        self, texts: Iterable[str | bytes], *, threads: int = 1, special_tokens: bool = True
    ) -> list[np.ndarray[Any, Any]]:
        """The ids of each of some texts as an array; no token spans two of them."""
        import numpy as np

        at_least("threads", threads)
        refuse_frame(texts, "texts")
        if isinstance(texts, str | bytes):
            raise TypeError(f"texts is one text, not a list; pass [{texts[:40]!r}]")
        ids, ends = self.encoder(special_tokens).encode_batch(list(texts), threads)
        array = np.asarray(ids)
        return [array[start:end] for start, end in pairwise([0, *ends])]

    def encode_iterable(
        self, texts: Iterable[str | bytes], *, special_tokens: bool = True
    ) -> Iterator[int]:
        """The ids of a text that comes in parts, one by one: those of the parts joined, wherever
        they are divided.

        Memory is bounded by the longest document, and if the encoder is compiled, with every
        pattern but `document` and `bytes` by a window of a million bytes.
        """
        refuse_frame(texts, "texts")
        encoder = self.encoder(special_tokens)
        return chain.from_iterable(streamed(encoder, map(as_bytes, texts)))

    def encode_file(
        self,
        source: Source,
        output: Path | str,
        *,
        settings: Sequence[str] = (),
        threads: int = 1,
        separator: str | bool = False,
        separate: str | None = None,
        special_tokens: bool = True,
        inputs: Sequence[Path] = (),
        overwrite: bool = False,
        progress: bool = False,
    ) -> np.ndarray[Any, Any]:
        """Write the ids of texts: uint16 if all ids of the vocabulary fit, else uint32.

        `source` is what `train` reads: a data set, files, a folder, a pattern, `-`; a row is a
        document, and so is a file without rows. `settings` are those of --set, such as
        `data.column=body`. `output` is a NumPy array (.npy), or the bare numbers (.bin) with their
        dtype, their count, their digest and the place of each document in the .bin.json beside
        them. `separator` is the special token that comes after, before or between documents, as
        `separate` says (by default after); True for the only one.

        The file is written as ids come, whole or not at all, and the array is mapped from it;
        memory is bounded as in `encode_iterable`. Raises Refusal if a file cannot be read or
        written, is the source or one of the other `inputs`, or exists unless `overwrite` is true.
        """
        outputs = outputs_of_ids(path_named(output))
        at_least("threads", threads)
        mark = self.separator(separator, separate)

        with documents(source, settings, progress=progress) as found:
            array = write_ids(
                self.encoder(special_tokens),
                self.learned,
                found,
                outputs,
                [*inputs, *named_inputs(source, settings)],
                threads=threads,
                separator=mark,
                overwrite=overwrite,
            )
            if self.why_plain:
                print_stderr(f"encoded in plain Python: {self.why_plain}")
        return array

    def separator(self, token: str | bool, place: str | None) -> Separator:
        """A special token, or the only one for True, as what separates documents. Raises Refusal if
        it is unknown, or for True if there are several or it is for padding.
        """
        if not token:
            if place is not None:
                raise Refusal(
                    f"separate={place} needs a special token; pass separator=TOKEN",
                    settings={"separate": place, "separator": "TOKEN"},
                )
            return Separator()

        place = place or PLACES[0]
        one_of("separate", place, PLACES)
        texts = [*self.special_tokens]
        if not texts:
            raise Refusal("this tokenizer has no special token; leave the separator out")
        if token is True and (len(texts) > 1 or "pad" in texts[0].lower()):
            raise Refusal(
                f"which special token separates documents is not clear: {texts}; pass separator=TOKEN",
                settings={"separator": "TOKEN"},
            )
        text = texts[0] if token is True else str(token)
        one_of("special token", text, texts)
        return Separator(self.special_tokens[text], place)

    def decode(self, ids: Iterable[int]) -> bytes:
        """The bytes of some ids, as an iterable or an array. Raises Refusal, with its place, for an
        id that is not in the vocabulary.
        """
        return self._decoded(ids, 0)

    def decode_stream(
        self, ids: Iterable[int], errors: Literal["strict", "replace"] = "replace"
    ) -> Iterator[str]:
        """The text of ids that come one by one; the bytes of half a character wait for the others.

        Raises Refusal, when it gets there, for an id that is not in the vocabulary, and
        UnicodeDecodeError for bytes that are not UTF-8 if `errors` is `strict`.
        """
        tokens = (self._decoded([number], place) for place, number in enumerate(ids))
        return codecs.iterdecode(tokens, "utf-8", errors)

    def _decoded(self, ids: Iterable[int], start: int) -> bytes:
        """The bytes of ids, of which the first is at place `start`."""
        if self._decoder is None:
            self._decoder = decoder_of(self.learned)
        try:
            return self._decoder.decode(ids)
        except (KeyError, TypeError) as error:
            why = str(error)
            if isinstance(error, KeyError):
                place, number = error.args
                why = f"ids[{start + place}] is {number}"
            raise Refusal(f"{why}; the ids of this tokenizer are 0 to {max(self.vocab)}") from error

    def decode_text(
        self, ids: Iterable[int], errors: Literal["strict", "replace"] = "strict"
    ) -> str:
        """The text of some ids. Raises UnicodeDecodeError if their bytes are not UTF-8, unless
        errors is `replace`.
        """
        return self.decode(ids).decode(errors=errors)

    def save(self, folder: Path | str, *, overwrite: bool = False) -> list[str]:
        """Write every form into a folder, whole or not at all; returns notes about what a form
        cannot express.

        Raises Refusal if the folder has a tokenizer, unless `overwrite` is true, or cannot be
        written.
        """
        return folders.save(path_named(folder), self.learned, self.origin, overwrite=overwrite)

    def huggingface(self) -> Any:
        """The same as a `tokenizers.Tokenizer`, of whichever version is installed. Raises Refusal
        if it cannot be.
        """
        return folders.as_tokenizers(self.learned)

    def tiktoken(self) -> Any:
        """The same as a `tiktoken.Encoding`. Raises Refusal if tiktoken would give other ids."""
        forms.ranks_text(self.learned)
        encoding = folders.as_tiktoken(self.learned.token_ids(), self.learned)

        for text, number in self.special_tokens.items():
            if encoding.encode(text, allowed_special="all") != [number]:
                raise Refusal(
                    f"special token {text!r} cannot be used: "
                    "tiktoken takes a shorter special token that it begins with; leave one out"
                )
        return encoding

    def cut(self, vocab_size: int) -> Tokenizer:
        """The tokenizer that training to a smaller size gives. Raises Refusal as `learned.cut`
        does.
        """
        if "pruned_from" in self.origin:
            raise Refusal("no training gives a cut of a pruned tokenizer; cut first, then prune")
        smaller = learned.with_fewer_merges(self.learned, vocab_size)
        inherited = self.origin.get("inherited_merges", 0)
        if len(smaller.merges) < inherited:
            least = count_text(len(self) - len(self.merges) + inherited)
            raise Refusal(
                f"its first {count_text(inherited)} merges were inherited, and a cut into them was never trained; "
                f"cut what it extends, for SuperBPE in first_stage/, or cut to {least} or more"
            )
        source = {"cut_from": {"vocab_size": len(self), "merges": len(self.merges)}}
        return Tokenizer(smaller, {**self.origin, **source})


def load(
    path: Path | str, *, pattern: folders.Pattern = ..., special_tokens: folders.Specials = None
) -> Tokenizer:
    """The tokenizer in a folder or a file: saved here, a tokenizer.json, vocab.json with
    merges.txt, tiktoken's ranks.

    `tiktoken:NAME` is an encoding of the tiktoken package. vocab.json with merges.txt, and ranks,
    lack their pattern and special tokens; pass `pattern`, as to `train`, and, if there are any,
    `special_tokens`: their texts, or for ranks a mapping from text to id. Of several forms in a
    folder the most complete is read: what the manifest describes, tokenizer.json, vocab.json with
    merges.txt. Raises Refusal, with what to do, for a file that is missing, damaged, of no form, or
    does not fit the others.
    """
    return Tokenizer(*folders.read_tokenizer(path, pattern, special_tokens))
