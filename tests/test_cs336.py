"""CS336: a student's train_bpe is measured as it is, ours is called as the assignment has it, and one
command prints the figures to hand in.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from harness import run
from harness.cs336 import AssignmentTokenizer
from harness.tokenizer import train
from variants import naive
from variants.contract import Corpus, vocab_of
from variants.counting.pretokenize import serial

CHECKOUT = Path(__file__).parent.parent
PAGE = CHECKOUT / "docs/how-to/cs336.md"
END = "<|endoftext|>"
TEXT = f"low lower lowest, newest widest: the lowest of the newest.{END}Ein Test, größer 🙃.\n" * 4
STUDENT = r'''
"""A train_bpe as students write it: plain, with a pool of processes, and no word about a meter."""

import collections
import multiprocessing

import regex

PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


def count(text):
    return collections.Counter(match.group() for match in regex.finditer(PATTERN, text))


def train_bpe(input_path, vocab_size, special_tokens, *, best=max, **kwargs):
    assert not kwargs
    with open(input_path, encoding="utf-8") as file:
        text = file.read()
    with multiprocessing.Pool(2) as pool:
        parts = pool.map(count, regex.split("|".join(map(regex.escape, special_tokens)), text))
    counts = sum(parts, collections.Counter())
    words = [[[bytes([byte]) for byte in word.encode()], number] for word, number in counts.items()]
    merges = []
    while len(merges) < vocab_size - 256 - len(special_tokens):
        pairs = collections.Counter()
        for tokens, number in words:
            for pair in zip(tokens, tokens[1:]):
                pairs[pair] += number
        if not pairs:
            break
        most = max(pairs.values())
        left, right = best(pair for pair in pairs if pairs[pair] == most)
        merges.append((left, right))
        for tokens, _ in words:
            place = 0
            while place < len(tokens) - 1:
                if tokens[place : place + 2] == [left, right]:
                    tokens[place : place + 2] = [left + right]
                place += 1
    tokens = [token.encode() for token in special_tokens] + [bytes([byte]) for byte in range(256)]
    return dict(enumerate(tokens + [left + right for left, right in merges])), merges


def other_ties(input_path, vocab_size, special_tokens):
    return train_bpe(input_path, vocab_size, special_tokens, best=min)


def merges_alone(input_path, vocab_size, special_tokens):
    return train_bpe(input_path, vocab_size, special_tokens)[1]


def without_special(input_path, vocab_size, special_tokens):
    vocab, merges = train_bpe(input_path, vocab_size, special_tokens)
    return {**vocab, 0: b"other"}, merges


def with_gap(input_path, vocab_size, special_tokens):
    vocab, merges = train_bpe(input_path, vocab_size, special_tokens)
    return {number + (number > 7): token for number, token in vocab.items()}, merges


class Tokenizer:
    """Right, because it is ours, but for one text."""

    def __init__(self, vocab, merges, special_tokens=None):
        from harness.cs336 import AssignmentTokenizer

        self.encode = AssignmentTokenizer(vocab, merges, special_tokens).encode


class Forgetful(Tokenizer):
    def __init__(self, vocab, merges, special_tokens=None):
        super().__init__(vocab, merges, special_tokens)
        encode = self.encode
        self.encode = lambda text: encode(text)[1:]
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my_bpe.py").write_text(STUDENT)
    (tmp_path / "text.txt").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def adapters() -> ModuleType:
    """The adapters.py that the page shows."""
    (source,) = re.findall(
        r"<!-- file: adapters.py -->\n```python\n(.*?)^```", PAGE.read_text(), re.M | re.S
    )
    module = ModuleType("adapters")
    exec(source, module.__dict__)
    return module


def test_functions_of_students_are_trainers_and_their_vocabulary_is_checked(folder: Path) -> None:
    names = ("train_bpe", "other_ties", "merges_alone", "without_special", "with_gap")
    targets = ["variants.flat_file:train_bpe", *(f"my_bpe:{name}" for name in names)]
    how = {"data_path": "text.txt", "vocab_size": 290, "results": str(folder / "results")}
    found = {}
    for record in run(variants=targets, **how):
        reason = record["reason"] if record["status"] == "error" else record["status"]
        found[record["variant"]] = reason
    assert found == {
        "variants.flat_file:train_bpe": "ok",
        "my_bpe:train_bpe": "ok",
        "my_bpe:other_ties": "mismatch",
        "my_bpe:merges_alone": "it returned list, not the tuple (vocab, merges)",
        "my_bpe:without_special": "its vocab lacks the token b'<|endoftext|>'",
        "my_bpe:with_gap": "its vocab has other ids than 0 to 289",
    }

    (record,) = run("pattern=gpt4", variants="my_bpe:train_bpe", **how)
    assert "takes no pattern, so it runs with the default only" in record["reason"]


def test_ours_is_called_and_answers_as_the_assignment_has_it(
    folder: Path, adapters: ModuleType
) -> None:
    path = folder / "text.txt"
    vocab, merges = adapters.run_train_bpe(path, 290, [END])
    assert (vocab, merges) == adapters.run_train_bpe(
        input_path=str(path), vocab_size=290, special_tokens=[END], num_processes=4
    )
    assert merges == naive.train(serial(Corpus(str(path), (END,))), 33)
    assert (vocab, len(vocab)) == (vocab_of(merges, [END]), 290)
    assert (type(vocab), type(merges)) == (dict, list)
    assert {tuple(map(type, merge)) for merge in merges} == {(bytes, bytes)}


@pytest.mark.parametrize(
    "text",
    ["", "s", "🙃", "The lowest, isn't it?", f"Größe {END}{END} 🙃{END}\n\n  low", " \t\n "],
)
def test_a_text_is_the_same_after_encoding_and_decoding(adapters: ModuleType, text: str) -> None:
    learned = train([TEXT], 300)
    tokenizer = adapters.get_tokenizer(learned.vocab, learned.merges, [END])
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert list(tokenizer.encode_iterable(re.findall(".", text, re.S))) == ids
    assert [tokenizer.decode([number]) for number in ids].count(END) == text.count(END)


def test_special_tokens_may_overlap_be_new_or_absent(adapters: ModuleType, tmp_path: Path) -> None:
    learned = train([TEXT], 300, special_tokens=[])
    double = adapters.get_tokenizer(learned.vocab, learned.merges, [END, END * 2])
    assert double.encode(f"low{END * 3}")[-2:] == [301, 300]
    plain = adapters.get_tokenizer(learned.vocab, learned.merges)
    assert len(plain.encode(END)) > 1
    assert plain.decode([0xF0, 0x9F]) == "\ufffd"

    learned.save(tmp_path / "saved")
    files = tmp_path / "saved/vocab.json", tmp_path / "saved/merges.txt"
    read = AssignmentTokenizer.from_files(*files, special_tokens=["<|pad|>"])
    assert read.encode(f"{TEXT}<|pad|>") == [*learned.encode(TEXT), 300]


def hand_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness.cs336", *arguments, "vocab_size=290"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
    )


def test_one_command_prints_what_to_hand_in(folder: Path) -> None:
    mine = (
        "my_bpe:train_bpe",
        "--tokenizer",
        "my_bpe:Tokenizer",
        "save=saved",
        "data.path=text.txt",
    )
    done = hand_in(folder, *mine)
    assert done.returncode == 0, done.stderr
    sentences = [
        r"my_bpe:train_bpe on text\.txt \(.*B\): all 33 merges are right \(identical\)\.",
        r"Training took .*s and .* MB of memory\.",
        r"The share of pre-tokenization is unknown: .* meter\.lap\(\"count\"\) .*",
        r"Longest token: 'gr\\xc3\\xb6\\xc3\\x9fer' \(8 bytes\)\.",
        r"5 documents with \d+ bytes: \d\.\d\d bytes per token \(\d\.\d\d to \d\.\d\d\)\.",
        r"Encoding .*B took .*s, .*B/s: the Pile \(825 GB\) would take .*\.",
    ]
    assert re.fullmatch("\n".join(sentences) + "\n", done.stdout), done.stdout
    assert (folder / "saved/vocab.json").is_file()

    done = hand_in(folder, "variants.flat_file:train_bpe", "data.path=text.txt")
    assert re.search(r"^Pre-tokenization took .* % of that time\.$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ("my_bpe:other_ties data.path=text.txt", 21, "my_bpe:other_ties: mismatch"),
        ("my_bpe:merges_alone data.path=text.txt", 22, "not the tuple (vocab, merges)"),
        ("my_bpe:train_bpe --tokenizer my_bpe:Forgetful data.path=text.txt", 21, "gives wrong ids for document 1"),
        ("my_bpe:train_bpe special_tokens=[] data.path=text.txt", 2, "text.txt has no documents"),
        ("heap data=zipf_tinystories", 2, "zipf_tinystories has no documents to encode; pass a text"),
    ],
)  # fmt: skip
def test_what_cannot_be_handed_in_ends_with_a_sentence(
    folder: Path, arguments: str, code: int, sentence: str
) -> None:
    done = hand_in(folder, *arguments.split())
    assert (done.returncode, done.stdout) == (code, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
