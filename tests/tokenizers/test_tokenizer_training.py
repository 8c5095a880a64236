"""Any source gives the merges of the definition, those of transformers in its place; cuts equal
shorter training.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas
import pytest
import regex
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers_made import PATTERNS, SPECIALS, TEXT, learned, of_merges

from harness.common.errors import Refusal
from harness.common.registry import definition
from harness.tokenizer import Tokenizer, train, train_new_from_iterator
from harness.tokenizers.learned import Learned, cut
from variants.contract import GPT2_PATTERN, Corpus, TieBreak, WordCounts, vocab_of
from variants.counting import parts
from variants.counting.parts import DIVIDERS, count_documents
from variants.counting.pretokenize import split_documents

OWN = r"\w+|\W"
PARTS = [*SPECIALS, "<|e", "|>", " the", "'ll", "\n", "  ", "1", "é", "一", DIVIDERS[0]]


def words_of(
    texts: list[str], pattern: str | None, specials: tuple[str, ...] = SPECIALS
) -> Counter[bytes]:
    """Every document by itself, by the definition."""
    words: Counter[bytes] = Counter()
    for text in texts:
        for stretch, _ in split_documents([text.encode()], specials):
            words.update(
                [stretch]
                if pattern is None
                else map(str.encode, regex.findall(pattern, stretch.decode()))
            )
    return words


some_texts = st.lists(st.lists(st.sampled_from(PARTS), max_size=8).map("".join), max_size=12)


@pytest.mark.parametrize("pattern", [*PATTERNS, OWN])
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=some_texts, threads=st.sampled_from([1, 3]))
def test_documents_count_apart(
    texts: list[str], pattern: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PIECE_BYTES", 20)
    expression = PATTERNS.get(pattern, pattern)
    corpus = Corpus("documents", SPECIALS, expression)
    batches = [[text.encode() for text in texts[:3]], [text.encode() for text in texts[3:]]]
    assert dict(count_documents(batches, corpus, 20_000_000, threads=threads)) == words_of(
        texts, expression
    )


def test_tables_spill_and_are_summed() -> None:
    corpus = Corpus("documents", (), PATTERNS["gpt2"])
    texts = [f"w{number % 997} x{number}" for number in range(20_000)]
    counted = count_documents([[text.encode() for text in texts]], corpus, 100_000, threads=2)
    assert dict(counted) == words_of(texts, corpus.pattern, ())


TEXTS = [TEXT, "the end"]
COUNTS = words_of(TEXTS, PATTERNS["gpt4"])
SOURCES: dict[str, Any] = {
    "paths": lambda folder: [folder / "0.txt", folder / "1.txt"],
    "pattern": lambda folder: str(folder / "*.txt"),
    "documents": lambda _: iter(TEXTS),
    "bytes": lambda _: [text.encode() for text in TEXTS],
    "batches": lambda _: ([text] for text in TEXTS),
    "counts": lambda _: COUNTS,
    "counts of texts": lambda _: {word.decode(): count for word, count in COUNTS.items()},
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_merges_of_the_definition(tmp_path: Path, source: str) -> None:
    for number, text in enumerate(TEXTS):
        (tmp_path / f"{number}.txt").write_text(text)
    tie_break = "huggingface" if source == "counts of texts" else "greatest_bytes"
    options: dict[str, Any] = {"special_tokens": SPECIALS, "tie_break": tie_break, "min_count": 2}
    tokenizer = train(SOURCES[source](tmp_path), 330, pattern="gpt4", **options)
    words = WordCounts.from_items(COUNTS.items())
    assert tokenizer.merges == definition()(
        words, 330 - 259, tie_break=TieBreak(tie_break), min_count=2
    )
    assert tokenizer.special_tokens == {text: number for number, text in enumerate(SPECIALS, 256)}
    assert tokenizer.huggingface().encode(TEXT).ids == tokenizer.encode(TEXT)
    assert tokenizer.tiktoken().encode(TEXT, allowed_special="all") == tokenizer.encode(TEXT)


FRAME: Any = pandas.DataFrame({"text": ["low low"], "id": [1]})


def failing() -> Iterator[str]:
    yield from ("a", "b")
    raise RuntimeError("gone")


BAD = json.loads(Path(__file__).with_name("bad_training.json").read_text(encoding="utf-8"))
"""A source, options, what is raised, and its message; below those that JSON cannot hold."""
BAD += [
    (["a"] * 70 + ["\ud800"], {}, "Refusal", "item 71: .* position 0: surrogates not allowed; fix"),
    ([b"a", b"b\xff"], {}, "Refusal", "item 2: .* position 1: .*, or pass bytes with errors='rep"),
    (failing, {}, "Refusal", "item 3: the iterable raised RuntimeError: gone"),
    ([Path("\ud800")], {}, "Refusal", r"'.ud800' is not the name of a file"),
    ("x" * 300, {}, "Refusal", r"is not the name of a file .File name too long."),
    (FRAME, {}, "TypeError", r"source is a DataFrame, not texts; .* such as frame\['text'\]"),
    ([FRAME], {}, "TypeError", "item 1 is a DataFrame, not texts"),
    ({"a": 1}, {"protected": [b"a"]}, "TypeError", "protected is .b'a'., not a list of texts"),
    (["a"], {"special_tokens": [b"<s>"]}, "TypeError", "special token b'<s>' is bytes, not str"),
    (["a"], {"special_tokens": {"<s>"}}, "TypeError", "special tokens are .'<s>'., not a list"),
    (["a"], {"veto": max}, "TypeError", "veto is .*, not a name such as bytes:16"),
]


@pytest.mark.parametrize(("source", "options", "error", "answer"), BAD)
def test_a_bad_source_or_option_is_refused_with_its_place(
    source: Any, options: dict[str, Any], error: str, answer: str
) -> None:
    with pytest.raises({"Refusal": Refusal, "TypeError": TypeError}[error], match=answer):
        train(source() if callable(source) else source, **{"vocab_size": 300, **options})


def test_a_size_of_another_type_is_named() -> None:
    with pytest.raises(TypeError, match="vocab_size is float, not int"):
        train(["low"], 300).cut(cast(int, 260.0))
    assert train(["low"], 300, tie_break=TieBreak.RAW_BYTES).origin["tie_break"] == "raw_bytes"


def test_texts_of_a_data_frame_are_asked_for() -> None:
    tokenizer = train(FRAME["text"], cast(int, np.int64(259)))
    assert tokenizer.merges == train(["low low"], 259).merges
    for encode in (tokenizer.encode_batch, tokenizer.encode_iterable):
        with pytest.raises(TypeError, match="texts is a DataFrame"):
            encode(FRAME)
    with pytest.raises(TypeError, match=r"texts is one text, not a list; pass \['low'\]"):
        tokenizer.encode_batch("low")


def test_invalid_bytes_are_replaced_in_each_document() -> None:
    replaced = train([b"a\xff\xfe", b"\xe4\xb8"], 300, errors="replace")
    assert replaced.merges == train(["a\ufffd\ufffd", "\ufffd"], 300).merges
    texts = train(["a\ud800\ud801", "\udfff"], 300, errors="replace")
    assert texts.merges == replaced.merges
    assert train([b"\xff\xff\xff"], 258, pattern=None).merges == [(b"\xff", b"\xff")]


# Cuts


@pytest.mark.parametrize("size", [256 + 3, 300, 459])
def test_a_cut_equals_training_to_its_size(tmp_path: Path, size: int) -> None:
    (tmp_path / "text").write_text(TEXT)
    whole, short = (
        train(tmp_path / "text", number, special_tokens=SPECIALS) for number in (459, size)
    )
    whole.cut(size).save(tmp_path / "cut")
    short.save(tmp_path / "short")
    for file in (tmp_path / "short").iterdir():
        same = file.read_bytes() == (tmp_path / "cut" / file.name).read_bytes()
        assert same or file.name == "manifest.json"
    assert json.loads((tmp_path / "cut/manifest.json").read_bytes())["cut_from"] == {
        "vocab_size": 459,
        "merges": 200,
    }


def test_ids_close_up() -> None:
    merges = learned().merges[:143]
    last = Learned({**vocab_of(merges), 399: b"<e>"}, merges, {"<e>": 399}, PATTERNS["gpt2"])
    smaller = cut(last, 300)
    assert (smaller.special_tokens, len(smaller.merges), max(smaller.vocab)) == (
        {"<e>": 299},
        43,
        299,
    )


def test_an_impossible_cut_is_refused() -> None:
    extra = learned()._replace(vocab={**learned().vocab, 900: b"qqq"})
    with pytest.raises(
        Refusal, match="cannot cut: 1 of its tokens come from no merge, such as 'qqq'"
    ):
        cut(extra, 300)
    twice = of_merges(("a", "b"), ("ab", "c"), ("b", "c"), ("a", "bc"))
    assert twice.cut(258).merges == [(b"a", b"b"), (b"ab", b"c")]
    inherited = Tokenizer(learned(), {"inherited_merges": 100})
    assert len(inherited.cut(356).merges) == 100
    with pytest.raises(
        Refusal, match=r"first 100 merges were inherited.* first_stage/, or cut to 356 or more"
    ):
        inherited.cut(355)


# In place of `train_new_from_iterator`: what transformers trains is trained here with the same
# files

OLD = {"GPT-2": GPT2_PATTERN, "Llama 3": PATTERNS["llama3"], "Qwen 2": PATTERNS["qwen2"]}
NORMALIZERS: dict[str, Any] = {
    "NFC": {"type": "NFC"},
    "several": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}]},
    "Replace": {"type": "Replace", "pattern": {"Regex": "[b ]+"}, "content": " "},
    "Prepend": {"type": "Prepend", "prepend": " e"},
}


def old_tokenizer(name: str) -> Any:
    pytest.importorskip(
        "tokenizers.trainers", reason="it needs trainers; pip install transformers 'tokenizers<1'"
    )
    transformers = pytest.importorskip(
        "transformers", reason="transformers is not installed; pip install transformers"
    )
    from tokenizers.processors import TemplateProcessing

    plain = Tokenizer(learned("gpt2", SPECIALS)._replace(pattern=OLD[name])).huggingface()
    if name == "Llama 3":
        special_tokens = [("<|e|>", plain.token_to_id("<|e|>"))]
        plain.post_processor = TemplateProcessing(single="<|e|> $A", special_tokens=special_tokens)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain, eos_token="<|endoftext|>", bos_token="<|e|>"
    )


@pytest.mark.parametrize("name", OLD)
def test_all_files_are_those_of_transformers(tmp_path: Path, name: str) -> None:
    old = old_tokenizer(name)
    theirs = old.train_new_from_iterator([TEXT], 300, show_progress=False)
    ours = train_new_from_iterator(old, [TEXT], 300, show_progress=False)
    assert type(ours) is type(theirs)
    for name, tokenizer in (("ours", ours), ("theirs", theirs)):
        tokenizer.save_pretrained(tmp_path / name)
    mine, other = (
        {path.name: path.read_text() for path in (tmp_path / name).iterdir()}
        for name in ("ours", "theirs")
    )
    assert mine == other


LETTERS = ["ab ", "abcé ", "abcdefgh 12'\n", TEXT]
KEYWORDS: dict[str, list[Any]] = {
    "max_token_length": [0, 1, 2, 3, 4, 5, 8, 16],
    "min_frequency": [0, 1, 2, 4],
    "initial_alphabet": [["a", "é"], list("xyz")],
    "new_special_tokens": [["<x>"]],
    "special_tokens_map": [{"<|endoftext|>": "<eot>"}],
}


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed > 12)) for seed in range(210)]
)
def test_random_corpora_give_the_same_file(seed: int) -> None:
    chance = random.Random(seed)
    old = old_tokenizer(chance.choice(list(OLD)))
    letters = chance.choice(LETTERS)
    texts = [
        "".join(chance.choices(letters, k=chance.randint(0, 200)))
        for _ in range(chance.randint(1, 30))
    ]
    source: list[Any] = chance.choice((texts, [texts[:5], texts[5:]]))
    keywords = {
        name: chance.choice(values) for name, values in KEYWORDS.items() if chance.random() < 0.4
    }
    size = chance.choice([100, 259, 280, 300, 400, 600])
    theirs = old.train_new_from_iterator(iter(source), size, show_progress=False, **keywords)
    ours = train_new_from_iterator(old, iter(source), size, **keywords)
    assert ours.backend_tokenizer.to_str() == theirs.backend_tokenizer.to_str()


@pytest.mark.parametrize("prefix", [False, True])
@pytest.mark.parametrize("normalizer", [None, *NORMALIZERS])
def test_documents_are_changed_as_their_tokenizer_changes_them(
    normalizer: str | None, prefix: bool
) -> None:
    import tokenizers

    content = json.loads(old_tokenizer("GPT-2").backend_tokenizer.to_str())
    content["normalizer"] = None if normalizer is None else NORMALIZERS[normalizer]
    content["pre_tokenizer"] = {**content["pre_tokenizer"], "add_prefix_space": prefix}
    old = tokenizers.Tokenizer.from_str(json.dumps(content))
    chance = random.Random(f"{normalizer}{prefix}")
    letters = ["a", "b", "e", "\u0301", "\u0323", "É", " ", "\n", "\u1112\u1161\u11ab", "½", "ﬁ"]
    documents = ["", *("".join(chance.choices(letters, k=12)) for _ in range(300))]

    transformers = pytest.importorskip("transformers")
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=old)
    theirs = wrapped.train_new_from_iterator(documents, 400, show_progress=False)
    batches = [documents[:100], [document.encode() for document in documents[100:]]]
    ours = train_new_from_iterator(old, batches, 400)
    assert ours.to_str() == theirs.backend_tokenizer.to_str()


def unread() -> Any:
    pytest.fail("it was read")
    yield ""


@pytest.mark.parametrize(
    ("changes", "keywords", "answer"),
    [
        ({"pre_tokenizer": {"type": "Whitespace"}}, {}, "its pre-tokenizer is Whitespace"),
        ({"pre_tokenizer": {"type": "UnicodeScripts"}}, {}, "its pre-tokenizer is UnicodeScripts"),
        (
            {"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}},
            {},
            "its model is WordLevel",
        ),
        ({}, {"limit_alphabet": 40}, "limit_alphabet is not supported here"),
    ],
)
def test_what_would_differ_is_refused_before_anything_is_read(
    changes: dict[str, Any], keywords: dict[str, Any], answer: str
) -> None:
    import tokenizers

    content = {
        **json.loads(old_tokenizer("GPT-2").backend_tokenizer.to_str()),
        "added_tokens": [],
        **changes,
    }
    with pytest.raises(Refusal, match=answer):
        train_new_from_iterator(
            tokenizers.Tokenizer.from_str(json.dumps(content)), unread(), 300, **keywords
        )


def test_a_tokenizer_of_tokenizers_gives_one_of_tokenizers() -> None:
    old = old_tokenizer("GPT-2").backend_tokenizer
    new = train_new_from_iterator(old, [TEXT], 300)
    assert (type(new), new.get_vocab_size()) == (type(old), 300)
    with pytest.raises(Refusal, match="Tokenizer is not a fast tokenizer of transformers"):
        train_new_from_iterator(Tokenizer(learned()), unread(), 300)
    with pytest.raises(TypeError, match="new_special_tokens is '<x>', not a list; pass"):
        train_new_from_iterator(old, unread(), 300, new_special_tokens="<x>")
