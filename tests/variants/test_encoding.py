"""The compiled encoder gives the ids of the plain one, however a text is divided, and reads nothing
beyond it.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from random_tokenizers import case_of, random_content, random_learned
from sanitizers import sanitized
from tokenizers_made import PATTERNS, SPECIALS, TEXT, learned, of_merges

from harness.common.errors import Refusal
from harness.tokenizers.encoding import CompiledEncoder
from harness.tokenizers.learned import Learned
from harness.tokenizers.model import Tokenizer
from harness.tokenizers.plain import PlainEncoder
from variants import encoding
from variants.contract import Unavailable
from variants.counting.character_classes import character_classes
from variants.native import built

PATHS = built("_scanner").supported_paths()


def random_cases(seed: int, number: int) -> Iterator[tuple[Learned, list[bytes]]]:
    dice = random.Random(seed)
    for _ in range(number):
        one = random_learned(dice)
        yield one, [random_content(dice, [*one.special_tokens]) for _ in range(dice.randint(1, 4))]


@pytest.mark.parametrize("seed", range(8))
def test_random_tokenizers_encode_random_texts_alike(seed: int) -> None:
    for one, texts in random_cases(seed, 6):
        plain, fast = PlainEncoder(one), CompiledEncoder(one)
        expected = [plain.encode(text) for text in texts]
        assert [fast.encode(text) for text in texts] == expected
        assert [ids.tolist() for ids in Tokenizer(one).encode_batch(texts, threads=3)] == expected
        assert [PlainEncoder(one, False).encode(text) for text in texts] == [
            CompiledEncoder(one, False).encode(text) for text in texts
        ]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_path_and_any_number_of_threads_gives_the_same_ids(path: str, pattern: str) -> None:
    one = learned(pattern, SPECIALS)
    text = (TEXT * 4000).encode()
    native = encoding.encoder(
        one.token_ids(),
        one.merges,
        one.special_tokens,
        one.pattern,
        max(one.vocab),
        instructions=path,
    )
    once = PlainEncoder(one).encode(TEXT + " ")
    if pattern not in ("document", "bytes", "line", "superbpe"):
        assert native.encode((TEXT + " ") * 20) == once * 20
    alone, _ = native.encode_batch([text], 1)
    for threads in (2, 5):
        for content in (text, text.decode()):
            ids, ends = native.encode_batch([content], threads)
            assert ends == [len(ids)]
            assert bytes(ids) == bytes(alone)


@pytest.mark.parametrize("pattern", ["gpt2", "document"])
@pytest.mark.parametrize("letters", ["é", "é 法律", "é 👩 b\udcc3\udca9\udcff", "法" * 999])
def test_strings_of_every_width_encode_as_their_bytes(letters: str, pattern: str) -> None:
    tokenizer = Tokenizer(learned(pattern, SPECIALS))
    line = letters + TEXT[:5] + "a" * 20 + "<|e|>"
    text = line * (600_000 // len(line))
    content = text.encode(errors="surrogateescape")
    expected = tokenizer.encode_to_numpy(content).tolist()
    assert expected == tokenizer.encode(text)
    for threads in (1, 2, 3):
        assert tokenizer.encode_to_numpy(text, threads=threads).tolist() == expected
    with pytest.raises(Refusal, match=f"character {len(text)} of the text is a lone surrogate"):
        tokenizer.encode_to_numpy(text + "\ud800", threads=2)
    assert tokenizer.encode_to_numpy(text).tolist() == expected


def test_several_threads_of_python_may_encode_at_once() -> None:
    tokenizer, texts = Tokenizer(learned("gpt2", SPECIALS)), [TEXT * number for number in range(60)]
    expected = [tokenizer.encode(text) for text in texts]
    with ThreadPoolExecutor(4) as executor:
        assert list(executor.map(tokenizer.encode, texts)) == expected
        arrays = executor.map(tokenizer.encode_to_numpy, texts)
        assert [array.tolist() for array in arrays] == expected


def test_what_cannot_be_compiled_is_told_and_encoded_plainly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    strange = learned("gpt2", SPECIALS)._replace(pattern=r"\\w+|\\W+")
    disordered = of_merges(("b", "c"), ("a", "bc"), ("a", "b"), ("ab", "c"))
    cases: list[tuple[Tokenizer, str]] = [
        (Tokenizer(strange), "its pattern is not one that the compiled scanner knows"),
        (disordered, "its merges are not in the order in which they were made"),
    ]
    (tmp_path / "text").write_text(TEXT)
    for number, (one, why) in enumerate(cases):
        assert one.why_plain == why
        ids = one.encode_file(tmp_path / "text", tmp_path / f"{number}.npy")
        assert ids.tolist() == one.encode(TEXT) == PlainEncoder(one.learned).encode(TEXT)
        told = capsys.readouterr().err
        assert told.startswith("encoded in plain Python: ")
        assert told.count(why) == 1
    with pytest.raises(Unavailable, match="its pattern"):
        CompiledEncoder(strange)


def test_tokens_without_merges_are_taken_whole() -> None:
    vocab = {**dict(enumerate(bytes((byte,)) for byte in range(256))), 300: b"qqq", 70_000: b" xyz"}
    one = Learned(vocab, [], {}, PATTERNS["gpt2"], ignore_merges=True)
    for text, ids in (("qqq", [300]), ("qq xyz", [113, 113, 70_000]), ("xyz", list(b"xyz"))):
        assert CompiledEncoder(one).encode(text) == PlainEncoder(one).encode(text) == ids


def test_a_huge_id_takes_no_more_memory_than_its_digits() -> None:
    vocab = {**dict(enumerate(bytes((byte,)) for byte in range(256))), 2**31 - 1: b"<|far|>"}
    one = Tokenizer(Learned(vocab, [], {"<|far|>": 2**31 - 1}, PATTERNS["gpt2"]))
    assert one.encode("a<|far|>") == [97, 2**31 - 1]
    assert one.encode_to_numpy("a<|far|>").tolist() == [97, 2**31 - 1]
    with pytest.raises(Refusal, match="id 4294967296 takes more than four bytes"):
        Tokenizer(Learned({**vocab, 2**32: b"<|x|>"}, [], {"<|x|>": 2**32}, PATTERNS["gpt2"]))


def encoded_by_driver(program: Path, folder: Path, cases: list[Any], seed: int) -> list[list[int]]:
    dice, file, tables = random.Random(seed), folder / "cases", folder / "classes"
    tables.write_bytes(b"".join(character_classes()))
    file.write_text("\n".join(case_of(one, texts, dice) for one, texts in cases))
    ended = subprocess.run([program, tables, file], capture_output=True, text=True)
    assert (ended.stderr, ended.returncode) == ("", 0)
    return [list(map(int, line.split())) for line in ended.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("sanitizers", ["address,undefined", "thread"])
def test_sanitizers_report_nothing(tmp_path: Path, sanitizers: str) -> None:
    program = sanitized("encoder_driver.cpp", sanitizers, tmp_path)
    cases = list(random_cases(99, 150))
    expected = [PlainEncoder(one).encode(text) for one, texts in cases for text in texts]
    assert encoded_by_driver(program, tmp_path, cases, 7) == expected
