"""A tokenizer is saved whole or not at all, and goes from any form to any other; what a form cannot
hold is refused.
"""

import itertools
import multiprocessing
import os
import random
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exploring import examples
from hypothesis import example, given
from hypothesis import strategies as st
from rows import json_beside
from tokenizers_made import PATTERNS, TEXT, learned
from workbench import contents, first_fast

from harness.common.errors import Refusal
from harness.common.files import exchange
from harness.common.registry import definition
from harness.tokenizer import Tokenizer, load
from harness.tokenizers import folder as folder_module
from harness.tokenizers.folder import FILES_OF, save
from harness.tokenizers.forms import ROLES, of_ranks, ranks_text, read_ranks, roles_of
from harness.tokenizers.learned import BYTES, Learned, spelled, trained, with_end
from variants.contract import GPT2_PATTERN, Merge, WordCounts, vocab_of

SAVED = FILES_OF["ours"]
STORED = Path(__file__).with_name("saved")
"""A tokenizer as it was saved."""
MERGES = [(b" ", b"t"), (b"\xff", b"\x00"), (b" t", b"h")]
MINE = trained(MERGES, ["<|e|>"], GPT2_PATTERN)
OTHER = trained(MERGES[:1], [], GPT2_PATTERN)

words = st.text("ab\x00ÿ", min_size=1, max_size=12).map(
    lambda text: text.encode("latin-1")
) | st.binary(min_size=1)


def test_files_are_written_and_read_as_ever(tmp_path: Path) -> None:
    assert save(tmp_path, MINE, {"variant": "mine"}) == []
    assert contents(tmp_path) == contents(STORED)
    assert load(STORED).learned == MINE
    assert load(STORED).origin == {"variant": "mine"}


OWN = [r"a$|\Ab|\Z|[$^\]]\$|(?i:x)|(?s:.)", "[^]$]|[]^]"]
"""Patterns which Ruby's expressions, in tokenizer.json, spell otherwise."""


@given(
    word_counts=st.dictionaries(words, st.integers(1, 9), max_size=8),
    specials=st.lists(st.text(min_size=1, max_size=3), unique=True, max_size=3),
    forms=st.lists(st.sampled_from([*FILES_OF]), min_size=2, max_size=4),
)
@example(word_counts={b" the": 2}, specials=["\u0120the"], forms=["ours", "huggingface", "gpt2"])
@examples(20)
@pytest.mark.parametrize("pattern", [*PATTERNS, *OWN])
def test_a_tokenizer_stays_what_it_is_from_form_to_form(
    tmp_path_factory: pytest.TempPathFactory,
    pattern: str,
    word_counts: dict[bytes, int],
    specials: list[str],
    forms: list[str],
) -> None:
    merges = definition()(WordCounts.from_items(word_counts.items()), 40)
    one = trained(merges, specials, PATTERNS.get(pattern, pattern))
    alike = {*specials} & {*map(spelled, one.token_ids())}

    for form in forms:
        folder = tmp_path_factory.mktemp(form)
        if alike and form in ("gpt2", "huggingface"):
            with pytest.raises(Refusal, match="is spelled like another token, and a spelling"):
                save(folder, one, {}, form=form)
            assert contents(folder) == {}
            continue

        save(folder, one, {}, form=form)
        if form == "gpt2":
            again = load(folder, pattern=one.pattern, special_tokens=specials).learned
        else:
            again = load(folder).learned
        if form == "huggingface" and one.pattern == PATTERNS["gpt4"]:
            one = one._replace(pattern=PATTERNS["llama3"])  # tokenizer.json has that spelling
        assert again == one


def test_a_tokenizer_is_made_of_a_vocabulary_and_merges() -> None:
    """As the constructor of CS336's assignment takes them; GPT-2's vocabulary has its special token
    too.
    """
    vocab = {**dict(enumerate(BYTES)), 300: b"th", 7000: b"<|e|>"}
    merges: list[Any] = [(b"t", b"h")]
    tokenizer = Tokenizer.from_vocab(vocab, merges, ["<|endoftext|>", "<|e|>"])
    assert tokenizer.encode("the<|e|><|endoftext|>") == [300, 101, 7000, 7001]

    with pytest.raises(Refusal, match="it gives no id to 'the'; pass both whole"):
        Tokenizer.from_vocab(vocab, [*merges, (b"th", b"e")])
    with pytest.raises(Refusal, match="it gives two ids to one token"):
        Tokenizer.from_vocab({**vocab, 301: b"th"}, merges)
    with pytest.raises(TypeError, match=r"vocab maps 'th' to 301, not an id .int. to a token"):
        Tokenizer.from_vocab({**vocab, "th": 301}, merges)  # type: ignore[dict-item]
    merges.append(("t", "h"))
    with pytest.raises(TypeError, match=r"merge 2 is .'t', 'h'., not a pair of tokens"):
        Tokenizer.from_vocab(vocab, merges)


def test_two_merges_cannot_make_one_token() -> None:
    merges = [(b"a", b"b"), (b"ab", b"c"), (b"b", b"c"), (b"a", b"bc")]
    with pytest.raises(Refusal, match="two merges make the same token"):
        trained(merges, [], GPT2_PATTERN)


# Whole or not at all


def save_in_turns(folder: Path, saved: Any) -> None:
    for one in itertools.cycle([OTHER, MINE]):
        save(folder, one, {}, overwrite=True)
        saved.set()


@pytest.mark.parametrize("kills", first_fast([4, 40]))
def test_a_killed_save_leaves_one_tokenizer_whole(tmp_path: Path, kills: int) -> None:
    chance = random.Random(kills)
    folder = tmp_path / "tokenizer"
    processes = multiprocessing.get_context("fork")

    for _ in range(kills):
        saved = processes.Event()
        saving = processes.Process(target=save_in_turns, args=[folder, saved])
        saving.start()
        assert saved.wait(60)
        time.sleep(chance.random() * 0.03)
        saving.kill()
        saving.join()
        assert load(folder).learned in (MINE, OTHER)
        assert {*contents(folder)} == {*SAVED}


def test_a_save_is_on_disk_before_it_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = list[str]()

    def note(descriptor: int) -> None:
        steps.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)

    def note_exchange(part: Path, path: Path) -> None:
        steps.append("exchanged")
        exchange(part, path)

    save(tmp_path / "tokenizer", OTHER, {})
    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(folder_module, "exchange", note_exchange)
    save(tmp_path / "tokenizer", MINE, {}, overwrite=True)
    assert {*steps[:-3]} == {"new", *SAVED}
    assert steps[-3:] == ["exchanged", "tokenizer", tmp_path.name]


def test_a_folder_that_cannot_be_exchanged_is_saved_into(here: Path) -> None:
    save(here, MINE, {})
    for form in ("gpt2", "tiktoken"):
        save(Path(), OTHER, {}, overwrite=True, form=form)
        assert {*os.listdir()} == {*FILES_OF[form]}  # noqa: PTH208 - by no path


# Which special token is for what


ROLES_OF = json_beside(__file__, "roles.json")
"""Special tokens, the end token that is named, and the roles of all."""


@pytest.mark.parametrize(("special_tokens", "eos", "expected"), ROLES_OF)
def test_transformers_knows_the_end_token(
    tmp_path: Path, special_tokens: list[str], eos: str | None, expected: dict[str, str]
) -> None:
    transformers = pytest.importorskip("transformers")
    one = with_end(trained(MERGES, special_tokens, GPT2_PATTERN), eos)
    save(tmp_path / "saved", one, {})
    assert load(tmp_path / "saved").learned == one

    theirs = transformers.AutoTokenizer.from_pretrained(str(tmp_path / "saved"))
    for role in ROLES:
        assert getattr(theirs, role) == expected.get(role)

    # Converted, by whichever form it is read, and saved by them.
    theirs.save_pretrained(str(tmp_path / "theirs"))
    (tmp_path / "saved/manifest.json").unlink()
    for folder in (tmp_path / "saved", tmp_path / "theirs"):
        again = load(folder / "tokenizer.json")
        assert roles_of(again.learned) == expected


def test_a_chat_template_may_be_added_to_the_configuration(tmp_path: Path) -> None:
    save(tmp_path, MINE, {})
    (tmp_path / "tokenizer_config.json").write_text('{"chat_template": "x"}')
    assert load(tmp_path).learned == MINE
    (tmp_path / "manifest.json").unlink()
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": 5, "bos_token": ["x"]}')
    assert load(tmp_path).learned == MINE
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(Refusal, match=r"tokenizer_config\.json cannot be used: Input data was"):
        load(tmp_path)


# What tiktoken gives


@st.composite
def merge_lists(draw: st.DrawFn) -> list[Merge]:
    """Merges in which every part is a byte or was made before, and no two make the same; not as
    training makes them.
    """
    tokens = [b"a", b"b", b"c"]
    merges = list[Merge]()
    for _ in range(draw(st.integers(1, 8))):
        left = draw(st.sampled_from(tokens))
        right = draw(st.sampled_from(tokens))
        if left + right not in tokens:
            merges.append((left, right))
            tokens.append(left + right)
    return merges


@given(merges=merge_lists())
# abc is learned from (ab, c), but its own bytes become (a, bc)
@example([(b"b", b"c"), (b"a", b"b"), (b"ab", b"c")])
# abcd becomes three tokens
@example([(b"a", b"b"), (b"b", b"c"), (b"c", b"d"), (b"bc", b"d"), (b"a", b"bcd")])
# cccccc is made from cccc, whose rank is higher than its own
@example([(b"c", b"c"), (b"c", b"cc"), (b"ccc", b"ccc"), (b"a", b"a"), (b"cc", b"cc")])
@examples(80)
def test_ranks_are_written_exactly_if_tiktoken_gives_the_same_ids(merges: list[Merge]) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    one = Learned(vocab_of(merges), merges, {}, None)
    ids = one.token_ids()
    theirs = tiktoken.Encoding("", pat_str=".+", mergeable_ranks=ids, special_tokens={})
    chance = random.Random(len(merges))
    texts = [token.decode() for token in ids if token.isalpha()]
    for _ in range(30):
        texts.append("".join(chance.choices("abc", k=chance.randint(1, 12))))

    def gives_the_same(tokenizer: Any) -> bool:
        return [tokenizer.encode(text) for text in texts] == [theirs.encode(text) for text in texts]

    tokenizer = Tokenizer(one)
    if gives_the_same(tokenizer):
        assert gives_the_same(tokenizer.tiktoken())
    else:
        with pytest.raises(Refusal, match="tokens that its merges never make, such as '"):
            tokenizer.tiktoken()

    # Read from ranks, whatever two pairs spell, and with tokens that only whole pre-tokens are:
    again = of_ranks(ids, {}, None)
    assert gives_the_same(Tokenizer(again))
    assert of_ranks(read_ranks(ranks_text(again)), {}, None) == again
    if again.ignore_merges:
        with pytest.raises(Refusal, match="it takes whole pre-tokens that no merges make"):
            save(Path("gpt2"), again, {}, form="gpt2")


def test_special_tokens_that_tiktoken_cannot_give_are_refused() -> None:
    """It tries those that begin one another in its own order."""
    spaces = tuple(" " * length for length in range(2, 32))
    with pytest.raises(Refusal, match="tiktoken takes a shorter special token"):
        Tokenizer(learned("gpt2", spaces)).tiktoken()


def test_an_encoding_of_tiktoken_is_read_with_its_pattern_and_special_tokens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    one = learned("gpt4", ("<|endoftext|>",))
    theirs = Tokenizer(one).tiktoken()
    monkeypatch.setattr(tiktoken, "get_encoding", lambda _: theirs)
    loaded = load("tiktoken:cl100k_base")
    assert loaded.learned == one
    assert loaded.encode(TEXT) == theirs.encode(TEXT, allowed_special="all")

    def unreachable(_: str) -> None:
        raise OSError("no network")

    monkeypatch.setattr(tiktoken, "get_encoding", unreachable)
    refused = r"cannot get the ranks of cl100k_base here; set TIKTOKEN_CACHE_DIR.*: no network"
    with pytest.raises(Refusal, match=refused):
        load("tiktoken:cl100k_base")


def test_the_content_decides_whether_a_file_is_ranks_or_a_tokenizer_json(tmp_path: Path) -> None:
    """Llama 3's ranks are called tokenizer.model, Kimi's tiktoken.model."""
    save(tmp_path / "saved", MINE, {})
    options: Any = {"pattern": "gpt2", "special_tokens": {"<|e|>": np.int64(256)}}
    for name in ("tokenizer.model", "ranks.tiktoken", "ranks.txt"):
        shutil.copy(tmp_path / "saved/ranks.tiktoken", tmp_path / name)
        assert load(tmp_path / name, **options).learned == MINE

    shutil.copy(tmp_path / "saved/tokenizer.json", tmp_path / "other.model")
    assert load(tmp_path / "other.model").learned == MINE
