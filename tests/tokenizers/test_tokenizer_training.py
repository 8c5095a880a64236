"""Any source gives the merges of the definition, those of transformers in its place; cuts equal
shorter training.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest
import regex
from exploring import seeds
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rows import json_beside
from tokenizers_made import PATTERNS, SPECIALS, TEXT, changed, learned, of_merges
from workbench import contents, first_fast, ran

from harness.__main__ import main as harness
from harness.common.errors import Refusal
from harness.common.registry import definition
from harness.tokenizer import Tokenizer, load, main, train, train_new_from_iterator
from harness.tokenizers import training
from variants.contract import Merge, TieBreak, WordCounts
from variants.counting import parts
from variants.counting.parts import DIVIDERS
from variants.counting.pretokenize import split_documents

OWN = r"\w+|\W"
PARTS = [*SPECIALS, "<|e", "|>", " the", "'ll", "\n", "  ", "1", "é", "一", DIVIDERS[0]]
some_texts = st.lists(st.lists(st.sampled_from(PARTS), max_size=8).map("".join), max_size=12)


def words_of(texts: Iterable[str], pattern: str | None) -> Counter[bytes]:
    """The words of each document, by the definition."""
    words: Counter[bytes] = Counter()
    for text in texts:
        for stretch, _ in split_documents([text.encode()], SPECIALS):
            if pattern is None:
                words[stretch] += 1
            else:
                words.update(map(str.encode, regex.findall(pattern, stretch.decode())))
    return words


def merges_of(words: Counter[bytes], number: int, **options: Any) -> list[Merge]:
    return list(definition()(WordCounts.from_items(words.items()), number, **options))


@pytest.mark.parametrize("pattern", [*PATTERNS, OWN])
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=some_texts, threads=st.sampled_from([1, 3]))
def test_no_word_spans_two_documents(
    texts: list[str], pattern: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PIECE_BYTES", 20)
    expression = PATTERNS.get(pattern, pattern)
    batches = [texts[:3], texts[3:]]
    options: dict[str, Any] = {"special_tokens": SPECIALS, "pattern": expression}
    tokenizer = train(batches, 600, threads=threads, **options)
    assert tokenizer.merges == merges_of(words_of(texts, expression), 600 - 259)


def test_tables_spill_and_are_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"w{number % 997} x{number}" for number in range(20_000)]
    expected = train(words_of(texts, PATTERNS["gpt2"]), 600).merges
    monkeypatch.setattr(training, "TABLE_MEMORY", 100_000)
    assert train(texts, 600, threads=2).merges == expected


@pytest.mark.parametrize("tie_break", ["huggingface", TieBreak.RAW_BYTES])
def test_every_source_gives_the_merges_of_the_definition(
    tmp_path: Path, tie_break: str | TieBreak
) -> None:
    texts = [TEXT, "the end"]
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.txt").write_text(text)
    words = words_of(texts, PATTERNS["gpt4"])
    sources: list[Any] = [
        [tmp_path / "0.txt", tmp_path / "1.txt"],
        str(tmp_path / "*.txt"),
        pyarrow.array(texts),
        iter([pyarrow.chunked_array([texts])]),
        iter(texts),
        [text.encode() for text in texts],
        ([text] for text in texts),
        words,
        {word.decode(): count for word, count in words.items()},
    ]

    options: dict[str, Any] = {"tie_break": tie_break, "min_count": 2}
    expected = merges_of(words, 330 - 259, tie_break=TieBreak(tie_break), min_count=2)
    for source in sources:
        tokenizer = train(source, 330, pattern="gpt4", special_tokens=SPECIALS, **options)
        assert tokenizer.merges == expected
        assert tokenizer.special_tokens == dict(zip(SPECIALS, range(256, 259)))
        assert tokenizer.origin["tie_break"] == TieBreak(tie_break).value


def failing() -> Iterator[str]:
    yield from ("a", "b")
    raise RuntimeError("gone")


BAD = json_beside(__file__, "bad_training.json")
"""A source, options, what is raised, and its message; below those that JSON cannot hold."""
BAD += [
    [[b"a", b"b\xff"], {}, "Refusal", "item 2: .* position 1: .*, or pass bytes with errors='rep"],
    [failing(), {}, "Refusal", "item 3: the iterable raised RuntimeError: gone"],
]


@pytest.mark.parametrize(("source", "options", "error", "answer"), BAD)
def test_a_bad_source_or_option_is_refused_with_its_place(
    source: Any, options: dict[str, Any], error: str, answer: str
) -> None:
    with pytest.raises({"Refusal": Refusal, "TypeError": TypeError}[error], match=answer):
        train(source, **{"vocab_size": 300, **options})


def test_texts_of_a_data_frame_are_asked_for() -> None:
    frame: Any = pandas.DataFrame({"text": ["low low"], "id": [1]})
    size: Any = np.int64(259)
    tokenizer = train(frame["text"], size)
    assert tokenizer.merges == train(["low low"], 259).merges

    for source in (frame, [frame]):
        with pytest.raises(TypeError, match=r"is a DataFrame, not texts; .* such as frame\['text"):
            train(source, 300)
    for encode in (tokenizer.encode_batch, tokenizer.encode_iterable):
        with pytest.raises(TypeError, match="texts is a DataFrame"):
            encode(frame)
    with pytest.raises(TypeError, match=r"texts is one text, not a list; pass \['low'\]"):
        tokenizer.encode_batch("low")


def test_invalid_bytes_are_replaced_in_each_document() -> None:
    expected = train(["a\ufffd\ufffd", "\ufffd"], 300).merges
    assert train([b"a\xff\xfe", b"\xe4\xb8"], 300, errors="replace").merges == expected
    assert train(["a\ud800\ud801", "\udfff"], 300, errors="replace").merges == expected
    assert train([b"\xff\xff\xff"], 258, pattern=None).merges == [(b"\xff", b"\xff")]


# Extending


@pytest.mark.slow
def test_command_and_function_extend_as_a_run_does(here: Path) -> None:
    (here / "t.txt").write_text("of the one: of the two; by the way of the world, one two.\n" * 9)
    Path("seeds").write_text('" the"\n" of"\n')
    train(Path("t.txt"), 270, pattern="line").save("first")

    cases: list[dict[str, Any]] = [
        {"extend": "first", "veto": "superbpe"},
        {"extend": "first/merges.txt", "inherited": "met"},
        {"seeds": "seeds", "protected": "[' the',o]"},
    ]
    for how in cases:
        run = ["variant=naive_extending", "data.path=t.txt", "vocab_size=290", "measure=proof"]
        given = [f"{name}={value}" for name, value in how.items()]
        assert harness([*run, "save=run", "overwrite=true", *given]) == 0
        expected = load("run")
        options = ["--vocab-size", "290", "--save", "saved", "--overwrite"]
        assert main(["train", "t.txt", *options, *(f"--{option}" for option in given)]) == 0

        saved = load("saved")
        assert saved.learned == expected.learned
        inherited = "inherited_merges"
        assert saved.origin.get(inherited) == expected.origin.get(inherited)

    seeded = train(Path("t.txt"), 290, seeds=[" the", " of"], protected=[" the", "o"])
    assert seeded.learned == expected.learned


# Cuts


@pytest.mark.parametrize("size", [259, 300, 459])
def test_a_cut_equals_training_to_its_size(size: int) -> None:
    whole = train([TEXT], 459, special_tokens=SPECIALS)
    short = whole.cut(size)
    assert short.learned == train([TEXT], size, special_tokens=SPECIALS).learned
    assert short.origin["cut_from"] == {"vocab_size": 459, "merges": 200}


def test_an_impossible_cut_is_refused() -> None:
    extra = learned()._replace(vocab={**learned().vocab, 900: b"qqq"})
    with pytest.raises(Refusal, match="cut: 1 of its tokens come from no merge, such as 'qqq'"):
        Tokenizer(extra).cut(300)
    twice = of_merges(("a", "b"), ("ab", "c"), ("b", "c"), ("a", "bc"))
    assert twice.cut(258).merges == [(b"a", b"b"), (b"ab", b"c")]

    inherited = Tokenizer(learned(), {"inherited_merges": 100})
    assert len(inherited.cut(356).merges) == 100
    with pytest.raises(Refusal, match=r"first 100 merges were inherited.* or cut to 356 or more"):
        inherited.cut(355)


# In place of `train_new_from_iterator` of transformers

OLD = json_beside(__file__, "old_tokenizers.json")
"""Parts of a tokenizer, texts and keywords to choose from, and what is refused."""


def some_of(choices: dict[str, list[Any]], chance: random.Random) -> dict[str, Any]:
    return {
        name: chance.choice(values) for name, values in choices.items() if chance.random() < 0.4
    }


@pytest.mark.parametrize("seed", seeds(70, fast=24))
def test_transformers_trains_the_same_files(tmp_path: Path, seed: int) -> None:
    transformers = pytest.importorskip("transformers")
    chance = random.Random(seed)
    path = changed(tmp_path, **some_of(OLD["parts"], chance))
    old = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(path), eos_token="<|endoftext|>", bos_token="<|e|>"
    )
    letters = chance.choice([*OLD["letters"], TEXT])
    documents = []
    for _ in range(chance.randint(1, 30)):
        documents.append("".join(chance.choices(letters, k=chance.randint(0, 200))))
    source: Any = chance.choice([documents, [documents[:5], documents[5:]]])
    keywords = some_of(OLD["keywords"], chance)
    size = chance.choice([100, 259, 280, 300, 400, 600])

    theirs = old.train_new_from_iterator(iter(source), size, show_progress=False, **keywords)
    try:
        ours = train_new_from_iterator(old, iter(source), size, show_progress=False, **keywords)
    except Refusal as refused:
        if "the pattern leaves out " not in str(refused):
            raise
        return
    assert type(ours) is type(theirs)
    ours.save_pretrained(tmp_path / "saved")
    saved = contents(tmp_path / "saved")
    theirs.save_pretrained(tmp_path / "saved")
    assert saved == contents(tmp_path / "saved")


def unread() -> Any:
    pytest.fail("it was read")
    yield ""


@pytest.mark.parametrize(("changes", "keywords", "answer"), OLD["refused"])
def test_what_would_differ_is_refused_before_anything_is_read(
    tmp_path: Path, changes: dict[str, Any], keywords: dict[str, Any], answer: str
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    old = tokenizers.Tokenizer.from_file(str(changed(tmp_path, **changes)))
    with pytest.raises(Refusal, match=answer):
        train_new_from_iterator(old, unread(), 300, **keywords)


def test_a_tokenizer_of_tokenizers_gives_one_of_tokenizers() -> None:
    old = Tokenizer(learned("gpt2", SPECIALS)).huggingface()
    new = train_new_from_iterator(old, [TEXT.encode()], 300)
    assert (type(new), new.get_vocab_size()) == (type(old), 300)
    with pytest.raises(Refusal, match="Tokenizer is not a fast tokenizer of transformers"):
        train_new_from_iterator(Tokenizer(learned()), unread(), 300)
    with pytest.raises(TypeError, match="new_special_tokens is '<x>', not a list; pass"):
        train_new_from_iterator(old, unread(), 300, new_special_tokens="<x>")


PLAIN_RUN = """
import sys
from harness.__main__ import main

main(["variants=naive", "data.path=text.txt", "vocab_size=260", "results=results", sys.argv[1]])
print([name for name in sys.modules if name.startswith("harness.tokenizers")])
"""


@pytest.mark.parametrize("plan", first_fast(["true", "false"]))
def test_a_plain_run_needs_nothing_of_tokenizers(tmp_path: Path, plan: str) -> None:
    (tmp_path / "text.txt").write_text("low lower lowest " * 20)
    done = ran(tmp_path, "-c", PLAIN_RUN, f"plan={plan}", check=True)
    assert done.stdout.splitlines()[-1] == "[]"
