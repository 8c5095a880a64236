"""Any source gives the merges of the definition; cuts equal shorter training; unused tokens and figures are found."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import regex
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers_made import PATTERNS, SPECIALS, TEXT, learned

from harness.common.errors import Refusal
from harness.common.registry import definition
from harness.tokenizer import Tokenizer, train
from harness.tokenizers.check import figures_of, figures_sheet, unused
from harness.tokenizers.learned import Learned, cut, trained
from variants.contract import Corpus, TieBreak, WordCounts, vocab_of
from variants.counting import documents
from variants.counting.documents import DIVIDERS, count_documents
from variants.counting.pretokenize import split_documents

OWN = r"\w+|\W"
PARTS = [*SPECIALS, "<|e", "|>", " the", "'ll", "\n", "  ", "1", "é", "一", DIVIDERS[0]]


def words_of(texts: list[str], pattern: str | None, specials: tuple[str, ...] = SPECIALS) -> Counter[bytes]:
    """Every document by itself, by the definition."""
    words: Counter[bytes] = Counter()
    for text in texts:
        for stretch, _ in split_documents([text.encode()], specials):
            words.update([stretch] if pattern is None else map(str.encode, regex.findall(pattern, stretch.decode())))
    return words


some_texts = st.lists(st.lists(st.sampled_from(PARTS), max_size=8).map("".join), max_size=12)


@pytest.mark.parametrize("pattern", [*PATTERNS, OWN])
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=some_texts, threads=st.sampled_from([1, 3]))
def test_documents_are_counted_one_by_one(
    texts: list[str], pattern: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "PIECE_BYTES", 20)
    expression = PATTERNS.get(pattern, pattern)
    corpus = Corpus("documents", SPECIALS, expression)
    batches = [[text.encode() for text in texts[:3]], [text.encode() for text in texts[3:]]]
    assert dict(count_documents(batches, corpus, 20_000_000, threads=threads)) == words_of(texts, expression)


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
    assert tokenizer.merges == definition()(words, 330 - 259, tie_break=TieBreak(tie_break), min_count=2)
    assert tokenizer.special_tokens == {text: number for number, text in enumerate(SPECIALS, 256)}
    assert tokenizer.huggingface().encode(TEXT).ids == tokenizer.encode(TEXT)
    assert tokenizer.tiktoken().encode(TEXT, allowed_special="all") == tokenizer.encode(TEXT)


def failing() -> Iterator[str]:
    yield from ("a", "b")
    raise RuntimeError("gone")


@pytest.mark.parametrize(
    ("source", "options", "error", "answer"),
    [
        (["a", None], {}, TypeError, "item 2 is NoneType, not str or bytes"),
        (["a", ["b", 5]], {}, TypeError, "item 2, element 2 is int"),
        ([{"text": "a"}], {}, TypeError, r"item 1 is dict, not str or bytes; pass its texts, such as \(row\['text'\]"),
        (["a"] * 70 + ["\ud800"], {}, Refusal, "item 71: .* position 0: surrogates not allowed; fix it"),
        ([b"a", b"b\xff"], {}, Refusal, "item 2: .* position 1: .*, or pass bytes with errors='replace'"),
        (failing, {}, Refusal, "item 3: the iterable raised RuntimeError: gone"),
        (["ab c"], {"pattern": r"\w+"}, Refusal, "the pattern leaves out ' '"),
        (["a"], {"pattern": "("}, Refusal, "pattern '\\(' is not a regular expression"),
        (["README.md"], {}, Refusal, "is a file, but strings in a list are documents; pass pathlib.Path objects"),
        ("nowhere.txt", {}, Refusal, "nowhere.txt not found"),
        (5, {}, TypeError, "source is int; pass paths, documents, or a mapping of counts"),
        ({"a": 1.5}, {}, TypeError, "the mapping has str 'a': float, not a word"),
        ({"a": -1}, {}, Refusal, "has the negative count -1"),
        (["a"], {"vocab_size": 256}, Refusal, "has no room for 256 bytes and 1 special token"),
        (["a"], {"vocab_size": "32k"}, TypeError, "vocab_size is str, not int"),
        (["a"], {"tie_break": "greatest"}, Refusal, "did you mean greatest_bytes"),
        (["a"], {"special_tokens": ["x", "x"]}, Refusal, "pass each once"),
        (["a"], {"threads": 0}, Refusal, "threads=0 is not possible"),
    ],
)
def test_a_bad_source_is_refused_with_its_place(
    source: Any, options: dict[str, Any], error: type[Exception], answer: str
) -> None:
    with pytest.raises(error, match=answer):
        train(source() if callable(source) else source, **{"vocab_size": 300, **options})


def test_invalid_bytes_are_replaced_in_each_document() -> None:
    replaced = train([b"a\xff\xfe", b"\xe4\xb8"], 300, errors="replace")
    assert replaced.merges == train(["a\ufffd\ufffd", "\ufffd"], 300).merges
    assert train([b"\xff\xff\xff"], 258, pattern=None).merges == [(b"\xff", b"\xff")]


# Cuts


@pytest.mark.parametrize("size", [256 + 3, 300, 459])
def test_a_cut_equals_training_to_its_size(tmp_path: Path, size: int) -> None:
    (tmp_path / "text").write_text(TEXT)
    whole, short = (train(tmp_path / "text", number, special_tokens=SPECIALS) for number in (459, size))
    whole.cut(size).save(tmp_path / "cut")
    short.save(tmp_path / "short")
    for file in (tmp_path / "short").iterdir():
        same = file.read_bytes() == (tmp_path / "cut" / file.name).read_bytes()
        assert same or file.name == "manifest.json"
    assert json.loads((tmp_path / "cut/manifest.json").read_bytes())["cut_from"] == {"vocab_size": 459, "merges": 200}


def test_ids_close_up() -> None:
    merges = learned().merges[:143]
    last = Learned({**vocab_of(merges), 399: b"<e>"}, merges, {"<e>": 399}, PATTERNS["gpt2"])
    smaller = cut(last, 300)
    assert (smaller.special_tokens, len(smaller.merges), max(smaller.vocab)) == ({"<e>": 299}, 43, 299)


def test_an_impossible_cut_is_refused() -> None:
    extra = learned()._replace(vocab={**learned().vocab, 900: b"qqq"})
    with pytest.raises(Refusal, match="no merge makes 1 of its tokens, such as 'qqq'"):
        cut(extra, 300)
    twice = of_merges(("a", "b"), ("ab", "c"), ("b", "c"), ("a", "bc"))
    assert twice.cut(258).merges == [(b"a", b"b"), (b"ab", b"c")]
    inherited = Tokenizer(learned(), {"inherited_merges": 100})
    assert len(inherited.cut(356).merges) == 100
    with pytest.raises(Refusal, match=r"first 100 merges were inherited.* first_stage/, or cut to 356 or more"):
        inherited.cut(355)


# Unused tokens


def of_merges(*merges: tuple[str, str], **options: Any) -> Tokenizer:
    pairs = [(left.encode("latin-1"), right.encode("latin-1")) for left, right in merges]
    vocab = dict(enumerate(dict.fromkeys(vocab_of(pairs).values())))
    return Tokenizer(Learned(vocab, pairs, {}, PATTERNS["gpt2"], **options))


@pytest.mark.parametrize(
    ("merges", "dead"),
    [
        ([("b", "b"), ("b", "bb")], ["bbb"]),
        ([("a", "b"), ("b", "c"), ("a", "bc")], ["abc"]),
        ([("b", "c"), ("a", "bc"), ("a", "b")], []),
        ([("a", "a"), ("aa", "aa"), ("a", "aa")], ["aaa"]),
    ],
)
def test_dead_tokens_are_found(merges: list[tuple[str, str]], dead: list[str]) -> None:
    found = unused(of_merges(*merges))
    assert [(finding.token.decode(), finding.kind) for finding in found] == [(token, "dead") for token in dead]
    assert unused(of_merges(*merges, ignore_merges=True)) == []  # as whole pre-tokens they are met


def test_tokens_are_classed_the_worst_first() -> None:
    merges = ("t", "h"), ("th", "e"), ("x", "y"), ("a", " "), ("\xe4", "\xb8"), ("a", "b"), ("b", "c"), ("a", "bc")
    tokenizer = of_merges(*merges)
    found = unused(tokenizer, [b"the ", b"the ab", " 中".encode()])
    assert [finding.token for finding in found] == [b"abc", b"a ", b"\xe4\xb8", b"th", b"xy", b"bc"]
    assert [finding.kind for finding in found] == ["dead", "cut", "part", "unused", "unused", "unused"]
    assert [finding.kind for finding in unused(tokenizer)] == ["dead", "cut", "part"]


# Figures of a text


def test_the_figures_are_those_of_the_text() -> None:
    one = Tokenizer(trained([(b" ", b"t"), (b"h", b"e"), (b" t", b"he")], ["<|e|>"], PATTERNS["gpt2"]))
    # a, " the" twice, the special token, the line end, t, he, " ", c, a, t
    figures = figures_of("mine", one, "tale", [b"a the th", b"e<|e|>\n", b"", b"the cat"])
    assert figures == ("mine", "tale", 22, 5, 11, 8, 260, b" the".hex())
    sheet = figures_sheet([figures_of("mine", one, "nothing", [])])
    assert [column.cells[0] for column in sheet.columns[4:6]] == ["-", "-"]
