"""Trainers that read a text, most of them of others: they make our merges wherever they can
(peers.toml), and have the defects that results/peers/README.md describes (peer_cases.toml).
Refusals are rows of refusals.toml.
"""

import contextlib
import hashlib
import importlib
import json
import re
import sys
import threading
from collections.abc import Iterable
from itertools import repeat
from pathlib import Path

import pytest
from exploring import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from present import present
from rows import Row, each_row, rows_beside
from workbench import corpus_of, first_fast, wait_until

from harness.common import registry
from harness.proof import IDENTICAL, UP_TO_TIES, WRONG
from harness.proof.cases import merges_from
from harness.proof.compiled_replay import Replay
from harness.proof.counter_checks import FILE_CASES
from harness.proof.prove import prove
from harness.tokenizers.learned import read_spelling
from variants import heap, minbpe, naive_extending, peers
from variants.contract import (
    GPT2_LINES_PATTERN,
    GPT2_PATTERN,
    Corpus,
    Merge,
    TieBreak,
    Unavailable,
)
from variants.counting.pretokenize import serial
from variants.peers import flashbpe, rustbpe

PATTERNS = registry.patterns()
CARDS = registry.variants()
PEERS = [card.name for card in registry.select(["peer"])]
ROWS = rows_beside(__file__, "peers.toml")
LISTED: list[Row] = [row.values[0] for row in ROWS]


def agree(row: Row, corpus: Corpus) -> None:
    """Compare a trainer's merges with ours; without a rule for ties each choice is compared with
    the true counts.
    """
    words, rule = serial(corpus), TieBreak(row.get("ties", "greatest_bytes"))
    params = dict(row.get("params", {}))
    rules: Row = {"tie_break": rule, "min_count": params.get("min_count", 1)}
    if "tie_break" in params:
        params["tie_break"] = rule
    if "inherited" in row:
        params["inherited"] = rules["inherited"] = merges_from(row["inherited"])
    want = (naive_extending if "inherited" in row else heap).train(words, 30, **rules)
    num_merges = len(want) if "never_ends" in row else 30

    merges = present(row["name"])(corpus, num_merges, **params) if num_merges else []
    if "ties" in row:
        assert merges == want
    else:
        assert prove(Replay(words, merges, num_merges), None).kind in (IDENTICAL, UP_TO_TIES)


@pytest.mark.parametrize("row", first_fast(row for row in LISTED if "pattern" not in row))
def test_merges_of_the_worked_files_are_right(row: Row, tmp_path: Path) -> None:
    checked = 0
    for call in (case.call for case in FILE_CASES if not isinstance(case.want, int)):
        how = call.special_tokens, call.pattern, call.errors
        corpus = corpus_of(tmp_path, call.content, *how, partial=True)
        with contextlib.suppress(Unavailable):  # it knows no such pattern, or no special tokens
            agree(row, corpus)
            checked += 1
    assert checked > 5


some_documents = st.lists(st.text("ab 1\n\r'st\u00e9\u4e00\u3000\x00", max_size=12), max_size=8)


@pytest.mark.parametrize("row", ROWS)
@examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some_documents)
def test_random_documents_merge_right(row: Row, tmp_path: Path, documents: list[str]) -> None:
    pattern = PATTERNS[row.get("pattern", "gpt2")]
    tokens = row.get("special_tokens", ["<|e|>"])
    agree(row, corpus_of(tmp_path, "".join(tokens).join(documents), tuple(tokens), pattern))


@pytest.mark.parametrize("row", [row for row in LISTED if "any_pattern" in row])
def test_text_is_split_by_the_pattern_and_replaced_where_it_cannot_be_decoded(
    row: Row, tmp_path: Path
) -> None:
    text = "I'LL don't 12345  一一 the\tthe\r\n\n the The the<|e|> été the!!\n" * 2
    for pattern in ("gpt4", "o200k", "line", "document"):
        agree(row, corpus_of(tmp_path, text, ("<|e|>",), PATTERNS[pattern]))
    agree(row, corpus_of(tmp_path, b"bad \xff bad \xe4\xb8 bad", (), errors="replace"))


@each_row(__file__, "peer_cases.toml")
def test_case_shows_what_a_trainer_does(row: Row, tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, row["text"])
    train = present(row["name"])
    if "error" in row:
        with pytest.raises(ValueError, match=row["error"]):
            train(corpus, row["num_merges"])
        return

    merges = train(corpus, row["num_merges"])
    expected = [*merges_from(row["merges"])]
    assert merges[: len(expected)] == expected
    if "wrong_at" in row:
        found = prove(Replay(serial(corpus), merges, row["num_merges"]), None)
        assert (found.kind, found.merge) == (WRONG, row["wrong_at"])
        assert row["reason"] in str(found.reason)


# Packages called otherwise than here


def merges_otherwise(way: str, given: Iterable[str], num_merges: int, *special: str) -> list[Merge]:
    """The merges of a tokenizer of Hugging Face that is trained in another way."""
    implementations = pytest.importorskip(
        "tokenizers.implementations", reason="it needs trainers; pip install 'tokenizers<1'"
    )
    tokenizer = implementations.ByteLevelBPETokenizer()
    tokenizer.add_special_tokens([*special])
    size = 256 + len(special) + num_merges
    how = {"vocab_size": size, "min_frequency": 0, "show_progress": False}

    getattr(tokenizer, way)(given, special_tokens=[*special], **how)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return [(read_spelling(left), read_spelling(right)) for left, right in merges]


def test_hugging_face_cuts_files_into_lines_and_counts_special_tokens_as_text(
    tmp_path: Path,
) -> None:
    lines = corpus_of(tmp_path, "a  \n  b\n" * 3, (), GPT2_LINES_PATTERN)
    want = heap.train(serial(lines), 4, tie_break=TieBreak.HUGGINGFACE)
    assert merges_otherwise("train", [lines.path], 4) == want
    text = "ab<|endoftext|>" * 2
    assert (b"<", b"|") in merges_otherwise("train_from_iterator", [text], 3, "<|endoftext|>")


def test_sentencepiece_leaves_out_lines_of_over_4192_bytes_by_default(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, "xy" * 3000 + "\n" + "ab ab \u4e00\u4e8c cd ce cf\n" * 9)
    merges = present("peer_sentencepiece")(corpus, 40)
    assert (b"x", b"y") in merges
    assert ("\u4e00".encode(), "\u4e8c".encode()) in merges  # characters, and no bytes

    sentencepiece, model = sys.modules["sentencepiece"], tmp_path / "model"
    sentencepiece.SentencePieceTrainer.train(
        input=corpus.path, model_prefix=model, model_type="bpe", vocab_size=40, hard_vocab_limit=False, minloglevel=2
    )  # fmt: skip
    pieces = model.with_suffix(".vocab").read_text()
    assert "ab" in pieces
    assert "x" not in pieces


@pytest.mark.slow
def test_no_merge_is_made_of_a_pair_that_occurs_two_thousand_million_times() -> None:
    forks = [learner for learner in (rustbpe, flashbpe) if learner.PEER.package is not None]
    library = pytest.importorskip("tokenizers", reason="it needs trainers; pip install tokenizers")
    piece = "a" * 2**16
    for pieces, merges in ((2, ["aa"]), (2**31 // (len(piece) - 1) + 1, [])):
        learned = library.Tokenizer(library.models.BPE())  # each piece is a word
        trainer = library.trainers.BpeTrainer(vocab_size=2, show_progress=False)
        learned.train_from_iterator(repeat(piece, pieces), trainer)
        assert learned.get_vocab().keys() == {"a", *merges}

        for learner in forks:
            tokenizer = learner.PEER.package.Tokenizer()
            tokenizer.train_from_iterator(repeat(piece, pieces), 257, pattern="(?s:.+)")
            ranks = tokenizer.get_mergeable_ranks()
            assert [bytes(token).decode() for token, rank in ranks if rank >= 256] == merges


# What adapters share


@pytest.mark.parametrize("name", PEERS)
def test_peer_says_how_it_is_fed_or_how_it_is_installed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = importlib.import_module(name.replace("peer_", "variants.peers."))
    assert all(adapter.feeding(Corpus(__file__), **CARDS[name].params))
    monkeypatch.setattr(adapter.PEER, "package", None)
    installs = "is not installed; python -m pip install -e '.[peers]' installs it"
    with pytest.raises(Unavailable, match=re.escape(installs)):
        adapter.train(Corpus(__file__), 5)


def test_each_adapter_has_a_card() -> None:
    files = Path(peers.__file__).parent.glob("[!_]*.py")
    assert sorted(f"peer_{file.stem}" for file in files) == sorted(PEERS)
    assert all(minbpe.feeding(Corpus(__file__)))
    assert (PATTERNS["gpt2"], PATTERNS["gpt2_lines"]) == (GPT2_PATTERN, GPT2_LINES_PATTERN)


@pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="the system does not tell what threads do"
)
def test_threads_that_a_package_leaves_computing_are_waited_for() -> None:
    stop = threading.Event()

    def compute() -> None:
        while not stop.is_set():
            hashlib.pbkdf2_hmac("sha256", b"", b"", 100_000)  # without the interpreter's lock

    threading.Thread(target=compute, daemon=True).start()
    wait_until(peers.any_other_computes, "the thread that computes")
    threading.Timer(0.1, stop.set).start()
    peers.wait_for_other_threads()
    assert stop.is_set()
