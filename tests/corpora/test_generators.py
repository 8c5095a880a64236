"""Generated sets: the same bytes everywhere, of the shape that their cards promise, made once and kept whole."""

from __future__ import annotations

import collections
import itertools
from fractions import Fraction
from typing import Any

import pytest
from exploring import examples
from fetched import prepared
from hypothesis import given
from hypothesis import strategies as st

from harness.common import registry
from harness.common.errors import Refusal
from harness.corpora import CorpusFile, generators
from harness.corpora.language import zipf_counts
from harness.worker import exchange
from variants.contract import Corpus
from variants.counting.pretokenize import serial

CARDS = {name: card for name, card in registry.cards("data").items() if card["source"]["kind"] == "generator"}
SLOW = ["zipf_owt", "random_text"]


def generated(name: str, **source: Any) -> CorpusFile:
    return prepared(None, (), name, source={**CARDS[name]["source"], **source})


@pytest.mark.parametrize(
    "name", sorted(CARDS.keys() - {*SLOW}) + [pytest.param(name, marks=pytest.mark.slow) for name in SLOW]
)
def test_generator_makes_what_its_card_describes(name: str) -> None:
    made = prepared(None, of=name)
    facts = CARDS[name]["facts"]
    assert (made.sha256, made.bytes) == (facts["sha256"], facts["bytes"])
    assert made.parameters == {key: value for key, value in CARDS[name]["source"].items() if key != "kind"}
    if made.table:
        manifest = exchange.read_words(made.path)[1]
        assert (manifest["words"], manifest["pre_tokens"]) == (facts["words"], facts["pre_tokens"])
    else:
        counts = serial(Corpus(str(made.path)))
        assert (len(counts), sum(counts.values())) == (facts["words"], facts["pre_tokens"])


@given(st.integers(1, 400), st.sampled_from([1, 2, 4, 16]), st.integers(1, 48), st.integers(0, 20))
@examples(60)
def test_counts_are_the_law_rounded_down(words: int, denominator: int, above: int, shift: int) -> None:
    numerator = min(denominator + above, 4 * denominator)
    counts = zipf_counts(words, numerator, denominator, shift).tolist()
    assert len(counts) == words
    for rank, count in enumerate(counts, 1):
        power = Fraction(words + shift, rank + shift) ** numerator
        assert count**denominator <= power < (count + 1) ** denominator


@pytest.mark.parametrize("size", [1, 50, 1_200_000])
def test_random_text_has_its_alphabet_and_lengths(size: int) -> None:
    corpus = generated(
        "random_text", bytes=size, alphabet="aé日", letter_weights=[3, 0, 1], length_weights=[1, 0, 2], document=5
    )
    made = corpus.path.read_bytes()
    assert size - 60 < len(made) <= size
    documents = [document.split(" ")[1:] for document in made.decode().split("<|endoftext|>")]
    assert {len(document) for document in documents[:-1]} <= {5}
    words = collections.Counter(word for document in documents for word in document)
    assert set(words) <= {"".join(letters) for length in (1, 3) for letters in itertools.product("a日", repeat=length)}
    if size > 1_000_000:
        assert words["a"] / words["aaa"] == pytest.approx(1 / 2 / (3 / 4) ** 2, rel=0.02)


def test_tables_of_several_blocks_have_different_words() -> None:
    assert len(set(exchange.read_words(generated("strange_bytes", words=70_000, longest=6).path)[0])) == 70_000
    assert len(serial(Corpus(str(generated("no_repeats", words=70_000).path)))) == 70_000


def test_changed_parameters_are_named_and_have_no_facts() -> None:
    made = generated("zipf_tinystories", words=1000, seed=7)
    assert made.name == "zipf_tinystories(seed=7,words=1000)"
    assert made.parameters is not None
    assert (made.parameters["words"], made.parameters["seed"], made.parameters["shift"]) == (1000, 7, 2)
    assert made.sha256 != CARDS["zipf_tinystories"]["facts"]["sha256"]


@pytest.mark.parametrize(
    ("name", "changed", "message"),
    [
        ("ties", {"letters": 0}, r"data\.source\.letters: expected `int` >= 2; the generator ties takes seed, letters"),
        ("ties", {"letters": 1.5}, r"data\.source\.letters: expected `int`, got `float`; the generator"),
        ("ties", {"seed": -1}, r"data\.source\.seed: expected `int` >= 0; the generator"),
        ("ties", {"length": 3}, r"data\.source: object contains unknown field `length`; the generator ties takes"),
        ("ties", {"generator": "zipf_word"}, r"did you mean zipf_words"),
        ("ties", {"letters": 27}, r"data\.source\.letters: expected `int` <= 26; the generator"),
        ("zipf_tinystories", {"exponent_denominator": 3}, r"denominator: invalid enum value 3; the generator"),
        ("zipf_tinystories", {"exponent_numerator": 1}, r"the exponent 1/8 is not above 1 and at most 4"),
        ("random_text", {"length_weights": [-1, 3]}, r"length_weights must be whole numbers, none below 0"),
        ("random_text", {"letter_weights": [1]}, r"an alphabet of 26 letters cannot have 1 letter_weights"),
        ("no_repeats", {"words": 26**8 + 1}, r"words: expected `int` <= 208827064576; the generator"),
        ("strange_bytes", {"longest": 1}, r"too few words of up to 1 strange bytes"),
        ("distinct_pairs", {"symbols": 257}, r"symbols: expected `int` <= 256; the generator"),
    ],
)
def test_invalid_parameters_are_refused(name: str, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(Refusal, match=message) as refused:
        generated(name, **changed)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["ties", "distinct_pairs"])
def test_set_is_made_once_and_again_if_damaged(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = generated(name)
    with monkeypatch.context() as patch:
        patch.setattr(generators, "made", lambda _: pytest.fail("made a second time"))
        assert generated(name) == first
    file = first.path / "data" if first.table else first.path
    content = file.read_bytes()
    file.write_bytes(bytes((content[0] ^ 1,)) + content[1:])
    if not first.table:  # tables of words are made again by themselves
        with pytest.raises(Refusal, match=f"{file} has sha256 .*; it is another file or damaged; remove it"):
            generated(name)
        file.unlink()
    assert generated(name).sha256 == CARDS[name]["facts"]["sha256"]
    assert file.read_bytes() == content
