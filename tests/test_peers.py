"""Outside trainers: identical merges wherever they answer, a sentence wherever they have no answer, known defects."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from workbench import wait_until

from harness import registry
from harness.file_cases import FILE_CASES, FileCase
from variants import heap, peers
from variants.contract import GPT2_PATTERN, Corpus, Merge, TieBreak, Unavailable, WordCounts
from variants.counting.pretokenize import serial
from variants.peers import any_other_computes, gigatoken, huggingface, installed, rustbpe, wait_for_other_threads
from variants.peers.rustbpe import merges_of

REQUIRED = set(os.environ.get("BPE_HARNESS_REQUIRE", "").split(","))
PATTERNS = {name: fields["regex"] for name, fields in registry.cards("pattern").items()}
RULES = {
    "flat_file": list(TieBreak),
    "peer_huggingface": [TieBreak.HUGGINGFACE],
    "peer_gigatoken": [TieBreak.HUGGINGFACE, TieBreak.RAW_BYTES, TieBreak.SMALLEST_BYTES],
    "peer_rustbpe": [TieBreak.RAW_BYTES],
}
PEERS = [name for name in RULES if name.startswith("peer_")]
UNDER_EACH = [pytest.param(name, rule, id=f"{name}-{rule.value}") for name, rules in RULES.items() for rule in rules]


def trainer(name: str) -> Callable[..., list[Merge]]:
    """The variant, if it is here; whoever sets up a machine may say that it must be."""
    train = registry.resolve(registry.variants()[name].target)
    try:
        train(Corpus(__file__), 0, tie_break=RULES[name][0])
    except Unavailable as reason:
        if {name, *registry.variants()[name].tags} & REQUIRED:
            pytest.fail(f"{name} must run here (BPE_HARNESS_REQUIRE) and does not: {reason}")
        pytest.skip(str(reason))
    return train


def expected(corpus: Corpus, num_merges: int, rule: TieBreak) -> list[Merge]:
    return heap.train(serial(corpus), num_merges, tie_break=rule)


def agree(train: Callable[..., list[Merge]], corpus: Corpus, rule: TieBreak, num_merges: int = 30) -> None:
    """Hold a trainer against ours, for as many merges as there are: what a peer does beyond is another test's."""
    want = expected(corpus, num_merges, rule)
    assert train(corpus, len(want), tie_break=rule) == want


@pytest.mark.parametrize(("name", "rule"), UNDER_EACH)
@pytest.mark.parametrize("case", [case for case in FILE_CASES if case.invalid_at is None], ids=lambda case: case.name)
def test_merges_of_the_worked_files_are_identical(name: str, rule: TieBreak, case: FileCase, tmp_path: Path) -> None:
    train = trainer(name)
    path = tmp_path / "text.txt"
    path.write_bytes(case.content)
    corpus = Corpus(str(path), case.special_tokens, case.pattern, case.errors, partial=True)
    try:
        agree(train, corpus, rule)
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize(("name", "rule"), UNDER_EACH)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text("ab 1\n'st\u00e9\u4e00\u3000\x00", max_size=12), max_size=8))
def test_merges_of_random_documents_are_identical(
    name: str, rule: TieBreak, tmp_path: Path, documents: list[str]
) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes("<|e|>".join(documents).encode())
    agree(trainer(name), Corpus(str(path), ("<|e|>",)), rule)


@pytest.mark.parametrize("pattern", ["gpt4", "o200k", "line", "document"])
@pytest.mark.parametrize("name", ["flat_file", "peer_huggingface", "peer_rustbpe"])
def test_a_peer_that_takes_patterns_splits_as_they_say(name: str, pattern: str, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text(
        "I'LL don't 12345  \u4e00\u4e00 the\tthe\r\n\n the The the<|e|> \u00e9t\u00e9 the!!\n" * 2, "utf-8", newline=""
    )
    agree(trainer(name), Corpus(str(path), ("<|e|>",), PATTERNS[pattern]), RULES[name][0])


@pytest.mark.parametrize("name", ["peer_huggingface", "peer_rustbpe"])
def test_what_cannot_be_decoded_is_replaced_as_for_everybody(name: str, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"bad \xff bad \xe4\xb8 bad")
    agree(trainer(name), Corpus(str(path), (), errors="replace"), RULES[name][0])


def test_a_least_count_ends_hugging_faces_merges_where_it_ends_ours(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("low lower lowest low low newest newest widest")
    corpus = Corpus(str(path))
    want = heap.train(serial(corpus), 30, tie_break=TieBreak.HUGGINGFACE, min_count=3)
    assert 0 < len(want) < len(expected(corpus, 30, TieBreak.HUGGINGFACE))
    assert trainer("peer_huggingface")(corpus, 30, min_count=3) == want


def test_gigatoken_goes_on_when_no_pair_is_left(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"aaaa bc bc")
    made = trainer("peer_gigatoken")(Corpus(str(path)), 10)
    want = expected(Corpus(str(path)), 10, TieBreak.HUGGINGFACE)
    assert made[: len(want)] == want
    assert len(made) > len(want)


# What has no answer.


@pytest.mark.parametrize(
    ("train", "corpus", "asked", "said"),
    [
        (huggingface.train, {}, {"tie_break": TieBreak.GREATEST_BYTES}, "say tie_break=huggingface"),
        (rustbpe.train, {}, {"tie_break": TieBreak.HUGGINGFACE}, "say tie_break=raw_bytes"),
        (
            gigatoken.train,
            {},
            {"tie_break": TieBreak.GREATEST_BYTES},
            "say tie_break=huggingface or raw_bytes or smallest_bytes",
        ),
        (rustbpe.train, {}, {"min_count": 2}, "leave out min_count=2"),
        (gigatoken.train, {}, {"min_count": 2}, "leave out min_count=2"),
        (huggingface.train, {"pattern": None}, {}, "say another pattern than bytes"),
        (rustbpe.train, {"pattern": None}, {}, "say another pattern than bytes"),
        (gigatoken.train, {"pattern": r"\S+"}, {}, "GPT-2's pattern only"),
        (gigatoken.train, {"errors": "replace"}, {}, "leave out errors=replace"),
        (gigatoken.train, {"special_tokens": ("<a>", "<b>")}, {}, "not 2"),
    ],
)
def test_what_a_peer_cannot_be_asked_is_told(
    train: Callable[..., Any], corpus: dict[str, Any], asked: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((huggingface, "tokenizers"), (gigatoken, "gigatoken"), (rustbpe, "rustbpe")):
        monkeypatch.setattr(module, name, object())  # refused before the package is looked at
    with pytest.raises(Unavailable, match=said):
        train(Corpus(__file__, **corpus), 5, **asked)


@pytest.mark.parametrize(
    ("module", "name"), [(huggingface, "tokenizers"), (gigatoken, "gigatoken"), (rustbpe, "rustbpe")]
)
def test_an_absent_package_is_named_with_the_command_that_installs_it(
    module: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, None)
    with pytest.raises(Unavailable, match=r"is not installed; python -m pip install -e '\.\[peers\]' installs it"):
        module.train(Corpus(__file__), 5)


def test_what_is_not_installed_is_nothing_and_no_error() -> None:
    assert installed("there_is_no_such_package") is None
    assert installed("json") is not None


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the system does not tell what threads do")
def test_a_thread_that_computes_is_seen_until_it_has_ended() -> None:
    stop = threading.Event()

    def compute() -> None:
        while not stop.is_set():
            hashlib.pbkdf2_hmac("sha256", b"", b"", 100_000)  # without the interpreter's lock

    thread = threading.Thread(target=compute)
    thread.start()
    try:
        wait_until(any_other_computes, "the thread that computes")
    finally:
        stop.set()
        thread.join()
    wait_until(lambda: not any_other_computes(), "the end of all computing")


def test_what_a_package_leaves_to_other_threads_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([True, True, False])
    monkeypatch.setattr(peers, "any_other_computes", lambda: next(looks))
    wait_for_other_threads()
    assert list(looks) == []


# Its own words for its merges.


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.binary(min_size=1, max_size=12), st.integers(1, 9)), min_size=1, max_size=8))
def test_merges_are_found_again_in_tokens(words: list[tuple[bytes, int]]) -> None:
    merges = heap.train(WordCounts.from_items(words), 40, tie_break=TieBreak.RAW_BYTES)
    tokens = [bytes((byte,)) for byte in range(256)] + [left + right for left, right in merges]
    assert merges_of(tokens) == merges


def test_each_peer_has_a_card_that_only_it_answers_to() -> None:
    assert [card.name for card in registry.select(["peer"])] == sorted(PEERS)
    assert {card.family for card in registry.select(["peer"])} == {"huggingface", "gigatoken", "rustbpe"}
    assert PATTERNS["gpt2"] == GPT2_PATTERN
