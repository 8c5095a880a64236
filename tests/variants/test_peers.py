"""Outside trainers: identical merges wherever they answer, a sentence wherever they have no answer,
known defects.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exploring import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from workbench import corpus_of, wait_until

from harness.common import registry
from harness.proof import IDENTICAL, UP_TO_TIES
from harness.proof.counter_checks import FILE_CASES
from harness.proof.prove import identity_of
from harness.proof.true_counts import replay
from variants import heap, minbpe, naive_extending
from variants.contract import (
    GPT2_LINES_PATTERN,
    GPT2_PATTERN,
    Corpus,
    Merge,
    TieBreak,
    Unavailable,
    WordCounts,
)
from variants.counting.pretokenize import serial
from variants.peers import any_other_computes, merges_of, wait_for_other_threads

REQUIRED = set(os.environ.get("BPE_HARNESS_REQUIRE", "").split(","))
PATTERNS = {name: fields["regex"] for name, fields in registry.cards("pattern").items()}
RULES = {
    "flat_file": list(TieBreak),
    "minbpe": list(TieBreak),
    "peer_huggingface": [TieBreak.HUGGINGFACE],
    "peer_gigatoken": [TieBreak.HUGGINGFACE, TieBreak.RAW_BYTES, TieBreak.SMALLEST_BYTES],
    "peer_rustbpe": [TieBreak.RAW_BYTES],
    "peer_bpeasy": [TieBreak.RAW_BYTES],
    "peer_ffbpe": [TieBreak.RAW_BYTES, TieBreak.HUGGINGFACE, TieBreak.GREATEST_BYTES],
    "peer_flashbpe": [TieBreak.HUGGINGFACE],
    "peer_bpe_continue": [TieBreak.RAW_BYTES, TieBreak.HUGGINGFACE],
}
FIRST_MET: dict[str, dict[str, Any]] = {
    "minbpe": {},
    "peer_tiktoken": {},
    "peer_minibperust": {},
    "peer_tinybpe": {},
    "peer_turbobpe": {"batch_size": 1},
}
"""Those that take the first of several equally frequent pairs, with the parameters under which they
do.
"""
PEERS = {
    card.name: importlib.import_module(card.target.partition(":")[0])
    for card in registry.select(["peer"])
}
TAKING_TEXT = [
    "minbpe",
    "peer_huggingface",
    "peer_rustbpe",
    "peer_bpeasy",
    "peer_ffbpe",
    "peer_flashbpe",
    "peer_bpe_continue",
]
some_documents = st.lists(st.text("ab 1\n'st\u00e9\u4e00\u3000\x00", max_size=12), max_size=8)
few = examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
UNDER_EACH = [
    *(
        pytest.param(name, rule, id=f"{name}-{rule.value}")
        for name, rules in RULES.items()
        for rule in rules
    ),
    *(pytest.param(name, None, id=f"{name}-first") for name in FIRST_MET),
]


def trainer(name: str) -> Callable[..., list[Merge]]:
    """The variant, if it is here; whoever sets up a machine may say that it must be."""
    if reason := why_not_here(name):
        if {name, *registry.variants()[name].tags} & REQUIRED:
            pytest.fail(f"{name} must run here (BPE_HARNESS_REQUIRE) and does not: {reason}")
        pytest.skip(reason)
    return registry.resolve(registry.variants()[name].target)


@functools.cache
def why_not_here(name: str) -> str:
    try:
        registry.resolve(registry.variants()[name].target)(Corpus(str(Path(__file__))), 100)
    except Unavailable as reason:
        return str(reason)
    return ""


def expected(corpus: Corpus, num_merges: int, rule: TieBreak) -> list[Merge]:
    return heap.train(serial(corpus), num_merges, tie_break=rule)


def agree(name: str, corpus: Corpus, rule: TieBreak | None, num_merges: int = 30) -> None:
    """Compare a trainer with ours, for as many merges as there are: what a peer does beyond is
    another test's.

    Without a rule the trainer takes the first of equals: every choice is compared with the true
    counts.
    """
    if rule is not None:
        want = expected(corpus, num_merges, rule)
        assert trainer(name)(corpus, len(want), tie_break=rule) == want
    else:
        words = serial(corpus)
        most = len(heap.train(words, num_merges))
        merges = trainer(name)(corpus, most, **FIRST_MET[name]) if most else []
        assert identity_of(replay(words, merges), most).kind in (IDENTICAL, UP_TO_TIES)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        UNDER_EACH[0],
        *(
            pytest.param(*each.values, id=each.id, marks=pytest.mark.slow)
            for each in UNDER_EACH[1:]
        ),
    ],
)
def test_merges_of_the_worked_files_are_right(
    name: str, rule: TieBreak | None, tmp_path: Path
) -> None:
    trainer(name)
    checked = 0
    for case in (case for case in FILE_CASES if not isinstance(case.want, int)):
        call = case.call
        corpus = corpus_of(
            tmp_path, call.content, call.special_tokens, call.pattern, call.errors, partial=True
        )
        with contextlib.suppress(Unavailable):  # it knows no such pattern, or no special tokens
            agree(name, corpus, rule)
            checked += 1
    assert checked > 5


@pytest.mark.parametrize(("name", "rule"), UNDER_EACH)
@few
@given(some_documents)
def test_random_documents_merge_right(
    name: str, rule: TieBreak | None, tmp_path: Path, documents: list[str]
) -> None:
    agree(name, corpus_of(tmp_path, "<|e|>".join(documents), ("<|e|>",)), rule)


@pytest.mark.parametrize("name", ["flat_file", *TAKING_TEXT])
def test_text_is_split_by_the_pattern_and_replaced_where_it_cannot_be_decoded(
    name: str, tmp_path: Path
) -> None:
    text = (
        "I'LL don't 12345  \u4e00\u4e00 the\tthe\r\n\n the The the<|e|> \u00e9t\u00e9 the!!\n" * 2
    )
    for pattern in ("gpt4", "o200k", "line", "document"):
        agree(name, corpus_of(tmp_path, text, ("<|e|>",), PATTERNS[pattern]), RULES[name][0])
    agree(
        name,
        corpus_of(tmp_path, b"bad \xff bad \xe4\xb8 bad", (), errors="replace"),
        RULES[name][0],
    )


def test_a_least_count_ends_hugging_faces_merges_where_it_ends_ours(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, "low lower lowest low low newest newest widest")
    want = heap.train(serial(corpus), 30, tie_break=TieBreak.HUGGINGFACE, min_count=3)
    assert 0 < len(want) < len(expected(corpus, 30, TieBreak.HUGGINGFACE))
    assert trainer("peer_huggingface")(corpus, 30, min_count=3) == want


# Ties broken by no rule of ours.


def test_ties_go_to_the_pair_that_comes_first_in_the_text(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, "zbacab")
    assert minbpe.train(corpus, 2) == [(b"z", b"b"), (b"zb", b"a")]
    assert minbpe.train(corpus, 2, tie_break=TieBreak.RAW_BYTES) == [(b"a", b"b"), (b"a", b"c")]


def test_sentencepiece_merges_characters(tmp_path: Path) -> None:
    merges = trainer("peer_sentencepiece")(
        corpus_of(tmp_path, "\u4e00\u4e8c \u4e00\u4e8c \u4e00\u4e8c\nlow low lower\n" * 5), 100
    )
    assert ("\u4e00".encode(), "\u4e8c".encode()) in merges
    assert merges[0] in [(b"l", b"o"), (b"o", b"w"), (b" ", b"l")]


def test_bpe_continue_extends_as_defined(tmp_path: Path) -> None:
    train = trainer("peer_bpe_continue")
    for other in ("new lowlands", "bbc wide est est", "low lower lowest newest"):
        learned = heap.train(serial(corpus_of(tmp_path, other)), 6)
        corpus = corpus_of(tmp_path, "low lower lowest newest newest widest: low")
        want = naive_extending.train(
            serial(corpus), len(learned) + 9, tie_break=TieBreak.RAW_BYTES, inherited=learned
        )
        assert train(corpus, len(want), inherited=learned) == want
        with pytest.raises(Unavailable, match="set inherited=kept"):
            train(corpus, len(want), inherited=learned, inheriting="met")


@few
@given(st.text("ab 1\n\r'st\u00e9\u4e00\u3000\x00", max_size=60))
def test_gigabpe_makes_the_merges_of_its_lines(tmp_path: Path, text: str) -> None:
    corpus = corpus_of(tmp_path, text, (), PATTERNS["gpt2_lines"])
    want = expected(corpus, 30, TieBreak.HUGGINGFACE)
    assert trainer("peer_gigabpe")(corpus, len(want)) == want


# What has no answer.


@pytest.mark.parametrize(
    ("peer", "corpus", "options", "message"),
    [
        ("huggingface", {}, {"tie_break": TieBreak.GREATEST_BYTES}, "set tie_break=huggingface"),
        (
            "gigatoken",
            {},
            {"tie_break": TieBreak.GREATEST_BYTES},
            "=huggingface or raw_bytes or smallest_bytes",
        ),
        ("tiktoken", {}, {"tie_break": TieBreak.RAW_BYTES}, "set tie_break=own"),
        ("rustbpe", {}, {"min_count": 2}, "leave out min_count=2"),
        ("huggingface", {"pattern": None}, {}, "choose another pattern than bytes"),
        ("gigatoken", {"pattern": r"\S+"}, {}, "GPT-2's pattern only"),
        ("gigatoken", {"errors": "replace"}, {}, "leave out errors=replace"),
        ("gigatoken", {"special_tokens": ("<a>", "<b>")}, {}, "not 2"),
        ("gigabpe", {"pattern": None}, {}, "set pattern=gpt2 or pattern=gpt2_lines"),
    ],
)
def test_unsupported_settings_of_a_peer_are_refused(
    peer: str,
    corpus: dict[str, Any],
    options: dict[str, Any],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = PEERS[f"peer_{peer}"]
    monkeypatch.setattr(module.PEER, "package", object())  # refused before the package is looked at
    with pytest.raises(Unavailable, match=message):
        module.train(Corpus(__file__, **corpus), 5, **options)


@pytest.mark.parametrize("module", PEERS.values(), ids=PEERS)
def test_an_absent_package_is_named_with_what_installs_it(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module.PEER, "package", None)
    with pytest.raises(
        Unavailable, match=r"is not installed; python -m pip install -e '\.\[peers\]' installs it"
    ):
        module.train(Corpus(__file__), 5)


@pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="the system does not tell what threads do"
)
def test_threads_that_a_package_leaves_computing_are_waited_for() -> None:
    stop = threading.Event()

    def compute() -> None:
        while not stop.is_set():
            hashlib.pbkdf2_hmac("sha256", b"", b"", 100_000)  # without the interpreter's lock

    thread = threading.Thread(target=compute)
    thread.start()
    try:
        wait_until(any_other_computes, "the thread that computes")
        threading.Timer(0.1, stop.set).start()
        wait_for_other_threads()
        assert stop.is_set()
    finally:
        stop.set()
        thread.join()


# Its own words for its merges.


@examples(50)
@given(
    st.lists(
        st.tuples(st.binary(min_size=1, max_size=12), st.integers(1, 9)), min_size=1, max_size=8
    )
)
def test_merges_are_found_again_in_tokens(words: list[tuple[bytes, int]]) -> None:
    merges = heap.train(WordCounts.from_items(words), 40, tie_break=TieBreak.RAW_BYTES)
    tokens = [bytes((byte,)) for byte in range(256)] + [left + right for left, right in merges]
    assert merges_of(tokens) == merges


def test_each_peer_has_a_card_and_says_how_it_is_fed() -> None:
    files = Path(next(iter(PEERS.values())).__file__ or "").parent.glob("[!_]*.py")
    assert sorted(f"peer_{file.stem}" for file in files) == sorted(PEERS)
    for card in [*registry.select(["peer"]), registry.variants()["minbpe"]]:
        feeding = importlib.import_module(card.target.partition(":")[0]).feeding(
            Corpus(__file__), **card.params
        )
        assert all(feeding)


def test_the_patterns_that_adapters_know_are_those_of_the_cards() -> None:
    assert PATTERNS["gpt2_lines"] == GPT2_LINES_PATTERN
    assert PATTERNS["gpt2"] == GPT2_PATTERN
