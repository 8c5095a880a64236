"""A tokenizer is saved whole or not at all, and goes from any form to any other; what a form cannot
hold is refused.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import regex
from exploring import examples
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers_made import PATTERNS, SPECIALS, TEXT, changed, learned, merged, split
from workbench import CHECKOUT

from harness.common.errors import Refusal
from harness.common.files import exchange
from harness.common.registry import definition
from harness.tokenizer import Tokenizer, load
from harness.tokenizers import folder as folder_module
from harness.tokenizers.folder import FILES, FILES_OF, save
from harness.tokenizers.forms import RANKS, of_ranks, ranks_text, read_ranks, why_not
from harness.tokenizers.learned import Learned, spelled, trained
from harness.worker.exchange import merges_sha256
from variants.contract import GPT2_PATTERN, Merge, WordCounts, vocab_of

MERGES = [
    (b"t", b"h"),
    (b"th", b"e"),
    (b" ", b"the"),
    (b"\xc3", b"\xa9"),
    (b"\x00", b"\xff"),
    (b"a", b"a"),
]
SPELLED_ALIKE = ["<|e|>", "<|e|>x", "é"]
# Of these tokens, é is spelled like a byte, so there is no tokenizer.json.
WRITTEN = ["manifest.json", "merges.txt", "ranks.tiktoken", "vocab.json"]

words = st.text("ab\x00ÿ", min_size=1, max_size=12).map(
    lambda text: text.encode("latin-1")
) | st.binary(min_size=1)


def saved(
    folder: Path,
    merges: Sequence[Merge] = MERGES,
    specials: Sequence[str] = SPELLED_ALIKE,
    overwrite: bool = False,
) -> list[str]:
    return save(
        folder, trained(merges, specials, GPT2_PATTERN), {"variant": "mine"}, overwrite=overwrite
    )


# Files


def test_the_files_are_those_of_gpt2_and_the_manifest_has_the_origin(tmp_path: Path) -> None:
    merges = [(b" ", b"t"), (b"\xff", b"\x00"), (b" t", b"h")]
    saved(tmp_path, merges, ["<|e|>"])
    assert (tmp_path / "merges.txt").read_bytes() == "#version: 0.2\nĠ t\nÿ Ā\nĠt h\n".encode()
    ids = json.loads((tmp_path / "vocab.json").read_bytes())
    assert list(ids.values()) == list(range(260))
    tokens = ("a", "Ġ", "ÿ", "Ń", "<|e|>", "Ġt", "ÿĀ", "Ġth")
    assert [ids[token] for token in tokens] == [97, 32, 255, 173, *range(256, 260)]
    ranks = (tmp_path / "ranks.tiktoken").read_text().splitlines()
    assert ranks[255:] == ["/w== 255", "IHQ= 257", "/wA= 258", "IHRo 259"]
    assert json.loads((tmp_path / "manifest.json").read_bytes()) == {
        "schema": 1,
        "vocab_size": 260,
        "merges": 3,
        "merges_sha256": merges_sha256(merges),
        "special_tokens": [{"text": "<|e|>", "id": 256}],
        "pattern": {"name": "gpt2", "regex": GPT2_PATTERN},
        "variant": "mine",
        "files": {
            name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in FILES[:4]
        },
    }


@given(
    word_counts=st.dictionaries(words, st.integers(1, 9), max_size=8),
    specials=st.lists(st.text(min_size=1, max_size=3), unique=True, max_size=3),
)
def test_a_saved_tokenizer_is_loaded_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, word_counts: dict[bytes, int], specials: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("saved")
    merges = definition()(WordCounts.from_items(word_counts.items()), 40)
    saved(folder, merges, specials)
    assert load(folder).learned == trained(merges, specials, GPT2_PATTERN)


def test_what_a_form_cannot_hold_is_noted_and_loaded(tmp_path: Path) -> None:
    assert saved(tmp_path, MERGES, ["Ġthe"]) == [
        "tokenizer.json cannot hold this tokenizer: special token 'Ġthe' is spelled like another token, and a spelling "
        "has one id there",
    ]
    assert not (tmp_path / "tokenizer.json").exists()
    assert load(tmp_path).encode("Ġthe") == [256]
    with pytest.raises(Refusal, match=r"vocab.json cannot hold .* 'Ġthe' is spelled like another"):
        save(tmp_path / "alone", load(tmp_path).learned, {}, form="gpt2")
    assert not (tmp_path / "alone").exists()


@pytest.mark.parametrize(
    ("merges", "specials", "answer"),
    [
        (
            [(b"a", b"b"), (b"ab", b"c"), (b"b", b"c"), (b"a", b"bc")],
            [],
            "two merges make the same token",
        ),
        ([(b"a", b"bc")], [], "merge 1 joins 'bc', which nothing makes"),
        ([], ["x", "x"], "or repeated one; pass each once"),
        ([], [""], "contain an empty or repeated one"),
        ([], ["\ud800"], "contain one that is not UTF-8"),
    ],
)
def test_the_impossible_is_not_saved(
    tmp_path: Path, merges: list[Merge], specials: list[str], answer: str
) -> None:
    with pytest.raises(Refusal, match=answer):
        saved(tmp_path, merges, specials)
    assert list(tmp_path.iterdir()) == []


def test_a_tokenizer_is_made_of_a_vocabulary_and_merges() -> None:
    """As the constructor of CS336's assignment takes them; GPT-2's vocabulary has its special token
    too.
    """
    vocab = {**dict(enumerate(map(bytes, zip(range(256))))), 300: b"th", 7000: b"<|e|>"}
    tokenizer = Tokenizer.from_vocab(vocab, [(b"t", b"h")], ["<|endoftext|>", "<|e|>"])
    assert tokenizer.encode("the<|e|><|endoftext|>") == [300, 101, 7000, 7001]
    plain = Tokenizer.from_vocab(vocab, [(b"t", b"h")])
    assert plain.encode("th<|e|>") == [300, *b"<|e|>"]
    assert plain.pattern == GPT2_PATTERN


@pytest.mark.parametrize(
    ("vocab", "merges", "specials", "error", "answer"),
    [
        ({256: b"th"}, [(b"t", b"h"), (b"th", b"e")], [], Refusal, "it gives no id to 'the'; pass"),
        ({256: b"the"}, [(b"th", b"e")], [], Refusal, "merge 1 joins 'th', which nothing makes"),
        ({256: b"a"}, [], [], Refusal, "it gives two ids to one token"),
        ({}, [], "<s>", TypeError, "special tokens are '<s>', not a list"),
        ({"th": 256}, [], [], TypeError, "vocab maps 'th' to 256, not an id .int. to a token"),
        ({}, [("t", "h")], [], TypeError, "merge 1 is .'t', 'h'., not a pair of tokens"),
    ],
)
def test_a_vocabulary_that_does_not_fit_its_merges_is_refused(
    vocab: Any, merges: Any, specials: Any, error: type[Exception], answer: str
) -> None:
    whole = {**dict(enumerate(map(bytes, zip(range(256))))), **vocab}
    with pytest.raises(error, match=answer):
        Tokenizer.from_vocab(whole, merges, specials)


def test_special_tokens_that_begin_one_another_are_noted(tmp_path: Path) -> None:
    """tiktoken tries them in an order of its own, so that it may take a shorter one."""
    tokenizer = Tokenizer(learned("gpt2", tuple(" " * length for length in range(2, 32))))
    (note,) = tokenizer.save(tmp_path)
    assert regex.fullmatch("special token '   ' begins with '  ': tiktoken may take .*", note)
    with pytest.raises(Refusal, match="tiktoken takes a shorter special token"):
        tokenizer.tiktoken()


# Whole or not at all


SAVE_IN_TURNS = """
import itertools, sys
from pathlib import Path
from harness.tokenizers.folder import save
from harness.tokenizers.learned import trained

one, two = (trained([(b"t", b"h"), (b"th", b"e")][:number], [], "[a-z]+") for number in (1, 2))
for learned in itertools.cycle([one, two]):
    save(Path(sys.argv[1]), learned, {}, overwrite=True)
    print("saved", flush=True)
"""


def save_until_killed(folder: Path, chance: random.Random) -> None:
    """Save two tokenizers in turns, until a kill somewhere."""
    command = [sys.executable, "-c", SAVE_IN_TURNS, str(folder)]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE) as saving:
        assert saving.stdout is not None
        for _ in range(chance.randint(1, 4)):
            saving.stdout.readline()
        time.sleep(chance.random() * 0.01)
        saving.kill()


@pytest.mark.parametrize("kills", [4, pytest.param(40, marks=pytest.mark.slow)])
def test_a_killed_save_leaves_one_tokenizer_whole(tmp_path: Path, kills: int) -> None:
    chance, folder = random.Random(kills), tmp_path / "tokenizer"
    for _ in range(kills):
        save_until_killed(folder, chance)
        assert load(folder).merges in ([(b"t", b"h")], [(b"t", b"h"), (b"th", b"e")])
        assert {path.name for path in folder.iterdir()} == {*FILES}


def test_a_save_is_on_disk_before_it_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    def exchanged(new: Path, old: Path) -> None:
        synced.append("exchanged")
        exchange(new, old)

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(folder_module, "exchange", exchanged)
    saved(tmp_path / "tokenizer", MERGES)
    at = synced.index("exchanged")
    assert {*synced[:at]} == {"new", *WRITTEN}
    assert synced[at + 1 :] == [tmp_path.name]


def test_other_files_in_the_folder_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the folder is the current one, which cannot be exchanged."""
    model = tmp_path / "model"
    model.mkdir()
    (model / "model.safetensors").write_bytes(b"weights")
    for merges in (MERGES, MERGES[:2]):
        saved(model, merges, overwrite=True)
        assert load(model).merges == merges
        assert (model / "model.safetensors").read_bytes() == b"weights"
    monkeypatch.chdir(tmp_path / "model")
    (model / "model.safetensors").unlink()
    saved(Path(), MERGES, overwrite=True)
    assert load(Path.cwd()).merges == MERGES
    assert sorted(os.listdir()) == WRITTEN  # noqa: PTH208 - of the current folder, by no path


def test_a_file_of_another_tokenizer_is_named(tmp_path: Path) -> None:
    saved(tmp_path / "mine", [(b"t", b"h")])
    save(tmp_path / "other", trained([(b"o", b"f")], [], GPT2_PATTERN), {})
    for name in FILES[:4]:
        folder = tmp_path / f"with {name}"
        shutil.copytree(tmp_path / "mine", folder)
        shutil.copy(tmp_path / "other" / name, folder)
        refused = rf"{name} cannot be used: it is not the file that manifest\.json describes; move"
        with pytest.raises(Refusal, match=refused):
            load(folder)
    (folder / RANKS).unlink()
    with pytest.raises(Refusal, match=rf"cannot read .*{RANKS} \(No such file"):
        load(folder)


def test_one_form_takes_the_place_of_every_file_of_another_tokenizer(tmp_path: Path) -> None:
    saved(tmp_path, MERGES)
    other = trained([(b"o", b"f")], [], GPT2_PATTERN)
    for form, names in FILES_OF.items():
        with pytest.raises(Refusal, match="has a tokenizer already"):
            save(tmp_path, other, {}, form=form)
        save(tmp_path, other, {}, form=form, overwrite=True)
        assert {path.name for path in tmp_path.iterdir()} == {*names}


@pytest.mark.parametrize("survivors", range(len(WRITTEN)))
def test_an_interrupted_save_is_never_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survivors: int
) -> None:
    """Where the files are replaced one by one."""
    saved(tmp_path, MERGES)
    (tmp_path / "notes.txt").touch()
    replace, left = os.replace, iter(range(survivors))

    def cut_short(source: Any, target: Any) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", cut_short)
    with pytest.raises(KeyboardInterrupt):
        saved(tmp_path, MERGES[:2], overwrite=True)
    monkeypatch.undo()
    if survivors == 0:
        assert load(tmp_path).merges == MERGES
    else:
        with pytest.raises(
            Refusal,
            match=r"vocab\.json cannot be used: it is not the file that manifest\.json desc",
        ):
            load(tmp_path)
    saved(tmp_path, MERGES[:2], overwrite=True)
    assert load(tmp_path).merges == MERGES[:2]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*WRITTEN, "notes.txt"])


def test_a_full_disk_leaves_the_old_tokenizer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(tmp_path, MERGES)

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        Refusal, match=r"cannot write a tokenizer to .* \(No space left on device\)"
    ):
        saved(tmp_path, MERGES[:2], overwrite=True)
    assert load(tmp_path).merges == MERGES
    assert sorted(path.name for path in tmp_path.iterdir()) == WRITTEN
    with pytest.raises(Refusal, match="choose another folder"):
        saved(tmp_path / "merges.txt" / "below")


# Forms
OWN = {"own": r"a$|\Ab|\Z|[$^\]]\$|(?i:x)|(?s:.)", "sets": "[^]$]|[]^]"}
"""Which Ruby's expressions, in tokenizer.json, spell otherwise."""


@pytest.mark.parametrize("pattern", [*PATTERNS, *OWN])
def test_every_form_is_made_from_every_other(tmp_path: Path, pattern: str) -> None:
    """Through each pair of forms the tokenizer stays what it is; another test has the ids of every
    engine.
    """
    one = learned("gpt2" if pattern in OWN else pattern, SPECIALS, 80)
    one = one._replace(pattern=OWN.get(pattern, one.pattern))

    def through(start: Learned, form: str, folder: Path) -> Learned:
        save(folder, start, {}, form=form)
        lacking: dict[str, Any] = (
            {"pattern": start.pattern, "special_tokens": SPECIALS} if form == "gpt2" else {}
        )
        return load(folder, **lacking).learned

    for first in FILES_OF:
        middle = through(one, first, tmp_path / first)
        for then in FILES_OF:
            result = through(middle, then, tmp_path / first / then)
            # tokenizer.json has GPT-4's pattern in Llama 3's spelling.
            respelled = pattern == "gpt4" and "huggingface" in (first, then)
            assert result == one._replace(pattern=PATTERNS["llama3"] if respelled else one.pattern)


# tiktoken's ranks


def by_result(word: bytes, ids: dict[bytes, int], vocab: dict[int, bytes]) -> list[bytes]:
    """What tiktoken does with a pre-token, plainly: at once if it is a token, else by the rank of
    what two become.
    """
    return (
        [word] if word in ids else merged(split(word), lambda pair: ids.get(b"".join(pair)), vocab)
    )


@pytest.mark.parametrize(
    ("merges", "order", "why"),
    [
        # "abc" is learned from (ab, c), but its own bytes come down to (a, bc): no training does
        # this, others may
        (
            [(b"b", b"c"), (b"a", b"b"), (b"ab", b"c")],
            1,
            "tiktoken merges by .* its merges never make, such as 'abc'",
        ),
        (
            [(b"h", b"e"), (b"l", b"l")],
            -1,
            "the ids of its tokens are not in the order of its merges",
        ),
    ],
)
def test_no_ranks_are_written_if_tiktoken_would_give_other_ids(
    tmp_path: Path, merges: list[Merge], order: int, why: str
) -> None:
    one = Learned(vocab_of(merges[::order]), merges, {}, None)
    (note,) = save(tmp_path, one, {})
    assert regex.fullmatch(rf"ranks\.tiktoken cannot hold this tokenizer: {why}.*", note)
    assert not (tmp_path / "ranks.tiktoken").exists()
    with pytest.raises(Refusal, match=rf"ranks\.tiktoken cannot hold this tokenizer: {why}"):
        save(tmp_path, one, {}, overwrite=True, form="tiktoken")


@st.composite
def merge_lists(draw: st.DrawFn) -> list[Merge]:
    """Merges in which every part is a byte or was made before, and no two make the same; not as
    training makes them.
    """
    tokens, merges = [b"a", b"b", b"c"], list[Merge]()
    for _ in range(draw(st.integers(1, 8))):
        left, right = draw(st.sampled_from(tokens)), draw(st.sampled_from(tokens))
        if left + right not in tokens:
            merges.append((left, right))
            tokens.append(left + right)
    return merges


@given(merges=merge_lists())
# abcd comes down to three
@example([(b"a", b"b"), (b"b", b"c"), (b"c", b"d"), (b"bc", b"d"), (b"a", b"bcd")])
# cccccc is made from cccc, whose rank is higher than its own
@example([(b"c", b"c"), (b"c", b"cc"), (b"ccc", b"ccc"), (b"a", b"a"), (b"cc", b"cc")])
@examples(80)
def test_ranks_are_written_exactly_if_tiktoken_gives_the_same_ids(merges: list[Merge]) -> None:
    one = Learned(vocab_of(merges), merges, {}, None)
    ids, chance = one.token_ids(), random.Random(len(merges))
    words = [bytes(chance.choices(b"abc", k=chance.randint(1, 12))) for _ in range(30)]

    def differ(learned: Learned) -> bool:
        tokenizer = Tokenizer(learned)
        return any(
            [tokenizer.vocab[number] for number in tokenizer.encode(word)]
            != by_result(word, ids, one.vocab)
            for word in [*words, *ids]
        )

    assert (why_not(one) is not None) == differ(one)
    # Read from ranks, whatever two pairs spell, and with tokens that only whole pre-tokens are:
    again = of_ranks(ids, {}, None)
    assert not differ(again)
    assert of_ranks(read_ranks(ranks_text(again)), {}, None) == again


# tokenizer.json of other programs


def test_the_spellings_of_other_programs_are_understood(tmp_path: Path) -> None:
    one = learned("gpt2", SPECIALS)
    vocab = {spelled(token): number for token, number in one.token_ids().items()}
    merges = [" ".join(map(spelled, merge)) for merge in one.merges]
    assert load(changed(tmp_path, model__merges=merges, model__vocab=vocab)).learned == one


def test_with_ignore_merges_a_pre_token_that_is_a_token_is_that_token(tmp_path: Path) -> None:
    assert load(changed(tmp_path, model__vocab__qqq=5000)).encode("qqq") == [113, 113, 113]
    path = changed(tmp_path, model__vocab__qqq=5000, model__ignore_merges=True)
    one = load(path)
    assert (one.encode("qqq"), one.encode("qqqq"), one.decode([5000])) == (
        [5000],
        [113] * 4,
        b"qqq",
    )
    one.save(tmp_path / "again")
    assert load(tmp_path / "again").encode("qqq") == [5000]
    with pytest.raises(
        Refusal, match="cannot hold this tokenizer: it takes whole pre-tokens that no merges make"
    ):
        save(tmp_path / "c", one.learned, {}, form="gpt2")
    assert not (tmp_path / "c").exists()


# Which form a folder has


def test_the_most_complete_form_of_a_folder_is_read(tmp_path: Path) -> None:
    one = learned("gpt2", SPECIALS)
    save(tmp_path, one, {"variant": "mine"})
    assert load(tmp_path).origin == {"variant": "mine"}
    (tmp_path / "manifest.json").unlink()
    assert load(tmp_path).origin == {}
    (tmp_path / "tokenizer.json").unlink()
    assert load(tmp_path, pattern=GPT2_PATTERN, special_tokens=SPECIALS).learned == one
    ranks = tmp_path / "ranks.tiktoken"
    special_ids = {text: np.int64(number) for text, number in one.special_tokens.items()}
    assert load(ranks, pattern="gpt2", special_tokens=cast(Any, special_ids)).learned == one
    with pytest.raises(
        Refusal, match=r"is not a tokenizer; pass a folder with vocab.json and merges.txt"
    ):
        load(__file__)


def test_an_encoding_of_tiktoken_is_read_with_its_pattern_and_special_tokens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tiktoken = pytest.importorskip(
        "tiktoken", reason="tiktoken is not installed; pip install tiktoken"
    )
    with pytest.raises(
        Refusal, match=r"tiktoken has no encoding 'cl1000'; there are: .*cl100k_base"
    ):
        load("tiktoken:cl1000")
    with pytest.raises(Refusal, match="contains the pattern and the special tokens"):
        load("tiktoken:cl100k_base", pattern=None)
    one = learned("gpt4", ("<|endoftext|>",))
    theirs = Tokenizer(one).tiktoken()
    monkeypatch.setattr(tiktoken, "get_encoding", lambda _: theirs)
    assert load("tiktoken:cl100k_base").learned == one
    assert load("tiktoken:cl100k_base").encode(TEXT) == theirs.encode(TEXT, allowed_special="all")

    def unreachable(_: str) -> None:
        raise OSError("no network")

    monkeypatch.setattr(tiktoken, "get_encoding", unreachable)
    with pytest.raises(
        Refusal, match=r"cannot get the ranks of cl100k_base here .OSError.; set TIKTOKEN_CACHE_DIR"
    ):
        load("tiktoken:cl100k_base")
