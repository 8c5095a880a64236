"""A tokenizer at work in plain Python: encode by merge rank, decode, save, cut.

Encoding splits at special tokens, the longest first, then by the pattern, and merges each pre-token
by rank. Any bytes decode to themselves. Text goes through in windows, so memory stays bounded, and
encoded pre-tokens are cached.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import regex

from harness.common.errors import UNMEASURED, Refusal, reason
from harness.common.files import whole_file
from harness.common.units import count_text, counted_text
from harness.tokenizers import folder as folders
from harness.tokenizers import forms, learned
from harness.tokenizers.learned import BYTES, Learned, join, pattern_name
from variants.contract import GPT2_PATTERN, Merge, Pair
from variants.counting import patterns

if TYPE_CHECKING:
    import numpy as np

Progress = Callable[[int], None]
WORDS_CACHED = 1 << 17
LONGEST_CACHED = 64
# characters that are encoded at a time; a document without a safe cut is encoded whole
WINDOW = 1 << 20
BLOCK = 1 << 20
NO_SPECIAL = re.compile("(?!)")
AFTER_LINE_END, BEFORE_BLANK = regex.compile(r"(?r)(?<=\n)"), regex.compile(r"(?r)(?<=\S)(?= )")


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
        try:
            self._compiled = None if self.pattern is None else regex.compile(self.pattern)
        except (regex.error, ValueError, RecursionError, OverflowError, MemoryError) as error:
            raise Refusal(
                f"pattern {self.pattern!r} is not a regular expression: {error}"
            ) from error
        self._cut = last_cut_of(self.pattern)
        ids = learned.token_ids()
        self._byte_ids = [ids[byte] for byte in BYTES]
        self._ranks: dict[Pair, int] = {}
        for rank, (left, right) in enumerate(self.merges):
            self._ranks.setdefault((ids[left], ids[right]), rank)
        self._made = [ids[left + right] for left, right in self.merges]
        self._whole = ids if self.ignore_merges else {}
        longest_first = sorted(self.special_tokens, key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, longest_first)) or NO_SPECIAL)
        self._longest_special = max(map(len, longest_first), default=0)
        self._cache: dict[str, list[int]] = {}

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
            return cls(learned.of_vocab(vocab, merges, special_tokens or (), pattern))
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
        special = (
            f"special tokens {list(self.special_tokens)}"
            if self.special_tokens
            else "no special tokens"
        )
        size, merges = count_text(len(self)), count_text(len(self.merges))
        return f"<Tokenizer: {size} tokens, {merges} merges, {special}, pattern {pattern}>"

    def encode(self, text: str | bytes, *, special_tokens: bool = True) -> list[int]:
        """The ids of a text, or of any bytes. Raises Refusal for a text with lone surrogates.

        With `special_tokens=False`, as for text of strangers, `<|endoftext|>` is ordinary text.
        """
        return list(self.encode_iterable([text], special_tokens=special_tokens))

    def encode_iterable(
        self, texts: Iterable[str | bytes], *, special_tokens: bool = True
    ) -> Iterator[int]:
        """The ids of a text that comes in parts, one by one: those of the parts joined, wherever
        they are divided.

        Memory is bounded by the longest document, and with every pattern here but `document` and
        `bytes` by a window of a million characters. Raises Refusal, when it gets there, for a part
        with lone surrogates.
        """
        return chain.from_iterable(self._batches(joined(texts), special_tokens))

    def encode_file(
        self,
        path: Path | str,
        output: Path | str,
        *,
        special_tokens: bool = True,
        on_progress: Progress = lambda _: None,
    ) -> np.ndarray[Any, Any]:
        """Write the ids of a file's bytes as a NumPy array (.npy): uint16 if all ids fit, else
        uint32.

        The file is written as ids come, whole or not at all, and the array is mapped from it;
        memory is bounded as in `encode_iterable`. `on_progress` gets the bytes read so far. Raises
        Refusal if a file cannot be read or written.
        """
        import numpy as np  # only here: nothing else about a tokenizer needs it

        dtype = np.dtype("uint16" if max(self.vocab) < 1 << 16 else "uint32")
        header = {
            "descr": np.lib.format.dtype_to_descr(dtype),
            "fortran_order": False,
            "shape": (0,),
        }
        with (
            whole_file(Path(output), "choose another place for the ids", UNMEASURED) as part,
            part.open("wb") as file,
        ):
            np.lib.format.write_array_header_1_0(file, header)
            start, number = file.tell(), 0
            texts = joined(blocks_of(Path(path), on_progress))
            for ids in self._batches(texts, special_tokens):
                file.write(np.array(ids, dtype).tobytes())
                number += len(ids)
            file.seek(0)
            np.lib.format.write_array_header_1_0(file, {**header, "shape": (number,)})
            assert file.tell() == start  # NumPy leaves room in its header for a length that grows
        return np.load(output, mmap_mode="r") if number else np.empty(0, dtype)

    def decode(self, ids: Iterable[int]) -> bytes:
        """The bytes of some ids. Raises Refusal for an id that is not in the vocabulary."""
        try:
            return b"".join([self.vocab[number] for number in ids])
        except (KeyError, TypeError) as error:
            why = f"token {error} not found" if isinstance(error, KeyError) else f"{error}"
            raise Refusal(f"{why}; the ids of this tokenizer are 0 to {max(self.vocab)}") from error

    def decode_text(
        self, ids: Iterable[int], errors: Literal["strict", "replace"] = "strict"
    ) -> str:
        """The text of some ids. Raises Refusal if their bytes are not UTF-8, unless errors is
        `replace`.
        """
        try:
            return self.decode(ids).decode(errors=errors)
        except UnicodeDecodeError as error:
            advice = "set errors='replace', or take the bytes"
            raise Refusal(
                f"the bytes of these ids are not UTF-8 at byte {error.start}; {advice}"
            ) from error

    def save(self, folder: Path | str, *, overwrite: bool = False) -> list[str]:
        """Write every form into a folder, whole or not at all; returns notes about what a form
        cannot express.

        Raises Refusal if the folder has a tokenizer, unless `overwrite` is true, or cannot be
        written.
        """
        return folders.save(Path(folder), self.learned, self.origin, overwrite=overwrite)

    def huggingface(self) -> Any:
        """The same as a `tokenizers.Tokenizer`, of whichever version is installed. Raises Refusal
        if it cannot be.
        """
        return forms.as_tokenizers(self.learned)

    def tiktoken(self) -> Any:
        """The same as a `tiktoken.Encoding`. Raises Refusal if tiktoken would give other ids."""
        forms.ranks_text(self.learned)
        encoding = forms.as_tiktoken(self.learned.token_ids(), self.learned)

        for text, number in self.special_tokens.items():
            if encoding.encode(text, allowed_special="all") != [number]:
                why = "tiktoken takes a shorter special token that it begins with"
                raise Refusal(f"special token {text!r} cannot be used: {why}; leave one out")
        return encoding

    def cut(self, vocab_size: int) -> Tokenizer:
        """The tokenizer that training to a smaller size gives. Raises Refusal as `learned.cut`
        does.
        """
        smaller = learned.cut(self.learned, vocab_size)
        inherited = self.origin.get("inherited_merges", 0)
        if len(smaller.merges) < inherited:
            least = count_text(len(self) - len(self.merges) + inherited)
            why = f"its first {count_text(inherited)} merges were inherited, and a cut into them was never trained"
            raise Refusal(
                f"{why}; cut what it extends, for SuperBPE in first_stage/, or cut to {least} or more"
            )
        source = {"cut_from": {"vocab_size": len(self), "merges": len(self.merges)}}
        return Tokenizer(smaller, {**self.origin, **source})

    def _batches(self, texts: Iterable[str], special_tokens: bool) -> Iterator[list[int]]:
        """The ids of the texts joined. What later text could change waits for it."""
        specials, longest = self._special, self._longest_special
        if not special_tokens:
            specials, longest = NO_SPECIAL, 0
        waiting, enough = "", WINDOW
        for text in chain(texts, [None]):
            waiting += text or ""
            if text is not None and len(waiting) < enough:
                continue
            # A special token that begins behind `sure` could still become a longer one.
            start, end = 0, len(waiting)
            sure = end if text is None else end - max(longest - 1, 0)
            for special in specials.finditer(waiting):
                if special.start() >= sure:
                    break
                yield self._plain(waiting[start : special.start()])
                yield [self.special_tokens[special[0]]]
                start = special.end()
            if text is not None:
                cut = None if self._cut is None else self._cut.search(waiting, start + 1, sure)
                end = start if cut is None else cut.start()
            yield self._plain(waiting[start:end])
            waiting = waiting[end:]
            # If nothing could be cut, looking after each part would cost the square of the length.
            enough = max(WINDOW, 2 * len(waiting))

    def _plain(self, stretch: str) -> list[int]:
        """The ids of text without special tokens."""
        ids: list[int] = []
        for piece in self.pieces(stretch):
            ids += self._cache.get(piece) or self._merged(piece)
        return ids

    def pieces(self, stretch: str) -> Sequence[str]:
        """The pre-tokens, and between them what the pattern passes over, so that nothing is
        lost.
        """
        if self._compiled is None:
            return [stretch]
        # findall gives matches in order
        if not (self._compiled.groups or self._compiled.flags & regex.REVERSE):
            matches: list[str] = self._compiled.findall(stretch)
            if sum(map(len, matches)) == len(stretch):
                return matches
        # Sorted, because a pattern may say (?r) and be matched from the end.
        spans = sorted(match.span() for match in self._compiled.finditer(stretch))
        pieces, end = [], 0
        for start, stop in [*spans, (len(stretch), len(stretch))]:
            pieces += [stretch[end:start], stretch[start:stop]]
            end = stop
        return pieces

    def _merged(self, piece: str) -> list[int]:
        """The ids of one pre-token, cached if it is short; those that come first recur most."""
        content = piece.encode(errors="surrogateescape")
        if content in self._whole:
            ids = [self._whole[content]]
        else:
            ids = join([self._byte_ids[byte] for byte in content], self._ranks.get, self._made)
        if len(piece) <= LONGEST_CACHED and len(self._cache) < WORDS_CACHED:
            self._cache[piece] = ids
        return ids


def load(
    path: Path | str, *, pattern: folders.Pattern = ..., special_tokens: folders.Specials = None
) -> Tokenizer:
    """The tokenizer in a folder or a file: saved here, a tokenizer.json, vocab.json with
    merges.txt, tiktoken's ranks.

    `tiktoken:NAME` is an encoding of the tiktoken package. vocab.json with merges.txt, and ranks,
    lack their pattern and special tokens; pass `pattern` (a regular expression, or None for raw
    bytes) and, if there are any, `special_tokens`: their texts, or for ranks a mapping from text to
    id. Of several forms in a folder the most complete is read: what the manifest describes,
    tokenizer.json, vocab.json with merges.txt. Raises Refusal, with what to do, for a file that is
    missing, damaged, of no form, or does not fit the others.
    """
    return Tokenizer(*folders.read_tokenizer(path, pattern, special_tokens))


def last_cut_of(pattern: str | None) -> regex.Pattern[str] | None:
    r"""What finds the last place to cut a text at, if this pattern splits it; None if no safe cut
    is known.

    A cut after a line end is safe if no match goes past one. A cut before a blank that follows no
    white space is safe for the family of GPT-2's pattern: each alternative takes white space at its
    very beginning, or nothing but white space, or line ends at its end, so no match has the blank
    in its middle; and what looks ahead for white space, `\s+(?!\S)` and `\s+$`, sees the character
    before the blank.
    """
    slots = patterns.slots_of(pattern)
    if slots is not None and (slots.lines or slots.split in (patterns.LINE, patterns.SUPERBPE)):
        return AFTER_LINE_END
    return BEFORE_BLANK if slots is not None and slots.split == patterns.FAMILY else None


def ids_in_array(path: Path) -> np.ndarray[Any, Any]:
    """The ids in a .npy file, mapped. Raises Refusal for a file that is not a list of whole
    numbers.
    """
    import numpy as np

    what = "pass one that encode --output wrote"
    try:
        with np.errstate(over="raise"):
            array = np.lib.format.open_memmap(path, mode="r")
    except OSError as error:
        raise Refusal(f"cannot read {path} ({reason(error)}); {what}", UNMEASURED) from error
    except Exception as error:  # whatever NumPy raises for a header
        raise Refusal(f"{path} is not an array of ids; {what}") from error
    if array.ndim != 1 or array.dtype.kind not in "iu":
        kind = f"an array of {array.dtype} with {counted_text(array.ndim, 'dimension')}"
        raise Refusal(f"{path} is {kind}, not a list of ids; {what}")
    return array


# Text: bytes that are not UTF-8 are lone surrogates in it, as in Python's own arguments


def _bytes(text: str | bytes) -> bytes:
    if isinstance(text, bytes | bytearray | memoryview):
        return bytes(text)
    if not isinstance(text, str):
        raise TypeError(f"a text is str or bytes, not {type(text).__name__}")
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise Refusal(
            f"character {error.start} of the text is a lone surrogate, not UTF-8; remove it"
        ) from error


def joined(parts: Iterable[str | bytes]) -> Iterator[str]:
    """The parts as texts, in windows; a character whose bytes are divided between two is put
    together.
    """
    windows = (
        part[start : start + WINDOW]
        for part in map(_bytes, parts)
        for start in range(0, len(part), WINDOW)
    )
    return codecs.iterdecode(windows, "utf-8", "surrogateescape")


def blocks_of(path: Path, on_progress: Progress = lambda _: None) -> Iterator[bytes]:
    """A file in blocks. Raises Refusal if it cannot be read."""
    done = 0
    try:
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                yield block
                done += len(block)
                on_progress(done)
    except OSError as error:
        raise Refusal(
            f"cannot read {path} ({reason(error)}); pass a file that can be read", UNMEASURED
        ) from error
