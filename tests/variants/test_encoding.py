"""The compiled encoder gives the ids of the plain one, however a text is divided, and reads nothing
beyond it.
"""

import random
from array import array
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from exploring import seeds
from random_tokenizers import case_of, random_content, random_learned
from sanitizers import classes_in, lines_of, sanitized
from scanned_texts import PATHS
from tokenizers_made import PATTERNS, SPECIALS, TEXT, learned, learned_in_stages, of_merges
from workbench import written

from harness.common.errors import Refusal
from harness.tokenizers.encoding import PlainEncoder, compiled_encoder
from harness.tokenizers.learned import BYTES, Learned
from harness.tokenizers.model import Tokenizer
from variants.encoding import encoder
from variants.native import built


def random_cases(seed: int, number: int) -> Iterator[tuple[Learned, list[bytes], list[list[int]]]]:
    """Tokenizers with texts, and what the plain encoder makes of these."""
    dice = random.Random(seed)
    for _ in range(number):
        one = random_learned(dice)
        texts = [random_content(dice, [*one.special_tokens]) for _ in range(dice.randint(1, 4))]
        yield one, texts, list(map(PlainEncoder(one).encode, texts))


@pytest.mark.parametrize("seed", seeds(6))
def test_random_tokenizers_encode_random_texts_alike(seed: int) -> None:
    for one, texts, expected in random_cases(seed, 4):
        assert list(map(compiled_encoder(one).encode, texts)) == expected
        together = Tokenizer(one).encode_batch(texts, threads=3)
        assert [ids.tolist() for ids in together] == expected

        ordinary = list(map(PlainEncoder(one, False).encode, texts))
        assert list(map(compiled_encoder(one, False).encode, texts)) == ordinary


def expect_plain_ids(one: Learned, texts: Iterable[str], native: Any = None) -> None:
    native, plain = native or compiled_encoder(one), PlainEncoder(one)
    for text in texts:
        assert native.encode(text) == plain.encode(text)


@pytest.mark.parametrize("first", ["gpt2", "document"])
def test_superwords_encode_as_by_the_plain_encoder(first: str) -> None:
    """By their words and then by the rest, if the first stage leaves words apart; pieces may be
    long.
    """
    text = "It's a test, a test of  the tests.\tA test is a test of the test at the end.\n" * 3
    one = learned_in_stages(text, [first, "superbpe"], 60)
    dice, contents = random.Random(3), []
    words = [*text.split(" "), "", "é", "一二", " the", "of", "testing", "\n", "x" * 30]
    for length in [5, 50, 5000] * 10:
        some = words[: dice.randint(9, len(words))]
        contents.append(" ".join(dice.choices(some, k=length)))
    expect_plain_ids(one, contents)


def test_long_word_that_no_place_cuts_encodes_as_by_the_plain_encoder() -> None:
    dice = random.Random(8)
    texts = ["".join(dice.choices("abc", k=length)) for length in (400, 45, 300, 3000)]
    expect_plain_ids(learned_in_stages(texts[0], ["bytes"], 60), texts)


def test_tables_that_begin_anew_forget_every_word() -> None:
    """Words of many ids and long ones lie in an arena, of which a new table knows nothing."""
    one = learned("gpt2", SPECIALS)
    sizes = {"block": 500, "short_words": 40, "long_words": 9, "arena": 9000, "short_bits": 4}
    ids, last = one.token_ids(), max(one.vocab)
    native = encoder(ids, one.merges, one.special_tokens, one.pattern, last, sizes=sizes)
    dice = random.Random(5)
    words = ["".join(dice.choices("qxzv", k=dice.randint(1, 24))) for _ in range(300)]
    expect_plain_ids(one, (" ".join(dice.choices(words, k=200)) for _ in range(20)), native)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_path_and_any_number_of_threads_gives_the_same_ids(
    path: str, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(built("_scanner"), "supported_paths", lambda: [path])
    one = learned(pattern, SPECIALS)
    native = compiled_encoder(one)
    expect_plain_ids(one, [TEXT * 20], native)

    text = TEXT * 4000
    alone, _ = native.encode_batch([text.encode()], 1)
    for threads in (2, 5):
        for content in (text, text.encode()):
            ids, ends = native.encode_batch([content], threads)
            assert ends == [len(ids)]
            assert bytes(ids) == bytes(alone)


@pytest.mark.parametrize("pattern", ["gpt2", "document"])
@pytest.mark.parametrize("letters", ["é", "é 法律", "é 👩 b\udcc3\udca9\udcff", "法" * 999])
def test_strings_of_every_width_encode_as_their_bytes(letters: str, pattern: str) -> None:
    tokenizer = Tokenizer(learned(pattern, SPECIALS))
    line = letters + TEXT[:5] + "a" * 20 + "<|e|>"
    text = line * (600_000 // len(line))
    expected = tokenizer.encode_to_numpy(text.encode(errors="surrogateescape")).tolist()
    assert tokenizer.encode(text) == expected
    with pytest.raises(UnicodeEncodeError, match=f"position {len(text)}: surrogates not allowed"):
        tokenizer.encode_to_numpy(text + "\ud800", threads=2)
    for threads in (1, 2, 3):
        assert tokenizer.encode_to_numpy(text, threads=threads).tolist() == expected


def test_several_threads_of_python_may_encode_at_once() -> None:
    tokenizer, texts = Tokenizer(learned("gpt2", SPECIALS)), [TEXT * number for number in range(60)]
    expected = [tokenizer.encode(text) for text in texts]
    with ThreadPoolExecutor(4) as executor:
        assert list(executor.map(tokenizer.encode, texts)) == expected
        arrays = executor.map(tokenizer.encode_to_numpy, texts)
        assert [ids.tolist() for ids in arrays] == expected


def test_merges_out_of_their_order_are_told_and_encoded_plainly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = of_merges(("b", "c"), ("a", "bc"), ("a", "b"), ("ab", "c"))
    ids = one.encode_file(written(tmp_path, TEXT), tmp_path / "ids.npy")
    assert ids.tolist() == one.encode(TEXT) == PlainEncoder(one.learned).encode(TEXT)
    why = "its merges are not in the order in which they were made"
    assert capsys.readouterr().err == f"encoded in plain Python: {why}\n"


def test_huge_id_takes_no_more_memory_than_its_digits() -> None:
    far = 2**31 - 1
    vocab = {**dict(enumerate(BYTES)), far: b"<|far|>"}
    one = Tokenizer.from_vocab(vocab, [], ["<|far|>"])
    assert one.encode("a<|far|>") == one.encode_to_numpy("a<|far|>").tolist() == [97, far]
    with pytest.raises(Refusal, match="id 4294967296 takes more than four bytes"):
        Tokenizer(one.learned._replace(vocab={**vocab, 2**32: b"far"}))


def test_arrays_of_every_width_are_decoded() -> None:
    decoder = built("_encoder").Decoder(dict(enumerate((b"a", b"bc"))))
    for code in "bBhHiIlLqQ":
        assert decoder.decode(array(code, [1, 0, 1])) == b"bcabc"
        assert decoder.decode(memoryview(array(code, [1, 0, 1]))[::2]) == b"bcbc"
    for value in (1.0, "1"):
        with pytest.raises(TypeError):
            decoder.decode([value])
    with pytest.raises(KeyError, match=str(2**70)):
        decoder.decode([1, 2**70, -1])


@pytest.mark.slow
@pytest.mark.parametrize("sanitizers", ["address,undefined", "thread"])
def test_sanitizers_report_nothing(tmp_path: Path, sanitizers: str) -> None:
    """tests/support/encoder_driver.cpp encodes the same."""
    dice, expected, lines = random.Random(7), list[list[int]](), []
    for one, texts, ids in random_cases(99, 150):
        expected += ids
        lines.append(case_of(one, texts, dice))
    program = sanitized("encoder_driver.cpp", sanitizers, tmp_path)
    cases = written(tmp_path, "\n".join(lines))
    printed = lines_of(program, classes_in(tmp_path), cases)
    assert [list(map(int, line.split())) for line in printed] == expected
