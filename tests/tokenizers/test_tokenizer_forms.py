"""A tokenizer goes from any form to any other and stays what it is; what a form cannot hold is refused and said."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest
from exploring import examples
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers_made import PATTERNS, SPECIALS, TEXT, learned, replayed, spelled_twice

from harness.common.errors import UNMEASURED, USAGE, Refusal
from harness.tokenizer import Tokenizer, load, main, save
from harness.tokenizers import folder as tokenizer_folder
from harness.tokenizers import tiktoken
from harness.tokenizers.folder import FILES
from harness.tokenizers.forms import TokenizerFile, convert, read_tokenizer
from harness.tokenizers.learned import Learned, json_text
from harness.tokenizers.pre_tokenizer import from_ruby, to_ruby
from variants.contract import GPT2_PATTERN, Merge, vocab_of

HELLO = [(b"h", b"e"), (b"l", b"l"), (b"he", b"ll"), (b"hell", b"o")]
BLANKS = [(b" ", b" "), (b"  ", b"  "), (b"\n", b" ")]


def put(folder: Path, one: Learned) -> Path:
    tokenizer_folder.write(folder, one, None, {})
    return folder


def model_of(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((path / "tokenizer.json").read_bytes())
    return content


def changed(tmp_path: Path, **changes: Any) -> Path:
    """A tokenizer.json of ours with some of its parts put otherwise; `a__b` is the part b of a."""
    put(tmp_path / "ours", learned("gpt2", SPECIALS))
    content = model_of(tmp_path / "ours")
    for name, value in changes.items():
        *keys, last = name.split("__")
        part = content
        for key in keys:
            part = part[key]
        part[last] = value
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(content))
    return path


# What is written


def test_a_rank_is_an_id(tmp_path: Path) -> None:
    save(tmp_path, HELLO, ["<|e|>"], "gpt2", GPT2_PATTERN)
    lines = (tmp_path / "ranks.tiktoken").read_text().splitlines()
    assert len(lines) == 256 + len(HELLO)
    assert lines[255:] == [
        "/w== 255",
        *(f"{base64.b64encode(b''.join(merge)).decode()} {257 + number}" for number, merge in enumerate(HELLO)),
    ]


def test_saving_into_a_folder_that_holds_a_tokenizer_needs_leave(tmp_path: Path) -> None:
    save(tmp_path, HELLO, [], "gpt2", GPT2_PATTERN, data_name="tale", variant="mine")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(
        Refusal,
        match=r"has a tokenizer already \(260 tokens of tale by mine: vocab.json, merges.txt, .*overwrite=true",
    ):
        save(tmp_path, HELLO[:1], [], "gpt2", GPT2_PATTERN)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    save(tmp_path, HELLO[:1], [], "gpt2", GPT2_PATTERN, overwrite=True)
    assert load(tmp_path).merges == HELLO[:1]


@pytest.mark.parametrize("name", FILES)
def test_any_file_of_a_tokenizer_is_one(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"{")
    with pytest.raises(Refusal, match=rf"has a tokenizer already \({name}\)") as refused:
        save(tmp_path, HELLO, [], "gpt2", GPT2_PATTERN)
    assert refused.value.exit_code == USAGE


def test_what_the_new_tokenizer_lacks_does_not_stay_behind(tmp_path: Path) -> None:
    put(tmp_path, learned())
    said = save(tmp_path, HELLO, ["a"], "gpt2", GPT2_PATTERN, overwrite=True)
    assert "tokenizer.json was left out" in said[-1]
    assert not (tmp_path / "tokenizer.json").exists()


# tiktoken's ranks


def by_result(word: bytes, ids: dict[bytes, int]) -> list[bytes]:
    """What tiktoken does with a pre-token, plainly: at once if it is a token, else by the rank of what two become."""
    if word in ids:
        return [word]
    tokens = [word[place : place + 1] for place in range(len(word))]
    while True:
        found = [
            (ids[b"".join(pair)], place)
            for place, pair in enumerate(zip(tokens, tokens[1:], strict=False))
            if b"".join(pair) in ids
        ]
        if not found:
            return tokens
        place = min(found)[1]
        tokens[place : place + 2] = [tokens[place] + tokens[place + 1]]


def test_a_token_that_two_pairs_spell_is_found_and_no_ranks_are_written(tmp_path: Path) -> None:
    one = spelled_twice()
    assert [*tiktoken.spelled_otherwise(one)] == [(b"abc", "'abc' (merge 'ab'+'c', its bytes come down to 'a'+'bc')")]
    (said,) = tokenizer_folder.write(tmp_path, one, None, {})
    assert said.startswith("ranks.tiktoken was left out: tiktoken merges by the rank of the result")
    assert "'abc'" in said
    assert not (tmp_path / "ranks.tiktoken").exists()
    with pytest.raises(Refusal, match=r"tiktoken cannot hold this tokenizer: .*'abc'"):
        main_raising("convert", str(tmp_path), "--to", "tiktoken")
    assert Tokenizer(*one).encode("abc") == [97, 256]
    assert by_result(b"abc", one.token_ids()) == [b"abc"]


def main_raising(*arguments: str) -> None:
    from harness import tokenizer

    options = tokenizer._parser().parse_args(arguments)
    options.do(options)


def test_a_token_that_no_two_neighbours_make_is_found_as_well() -> None:
    """Its bytes come down to three: tiktoken makes it of a whole pre-token all the same."""
    merges = [(b"a", b"b"), (b"b", b"c"), (b"c", b"d"), (b"bc", b"d"), (b"a", b"bcd")]
    assert replayed(b"abcd", merges) == [b"ab", b"cd"]
    one = Learned(vocab_of(merges), merges, {}, None)
    assert b"abcd" in dict(tiktoken.spelled_otherwise(one))


@st.composite
def merge_lists(draw: st.DrawFn) -> list[Merge]:
    """Merges in which every part is a byte or was made before, and no two make the same; not as training makes them."""
    tokens, merges = [b"a", b"b", b"c"], list[Merge]()
    for _ in range(draw(st.integers(1, 8))):
        left, right = draw(st.sampled_from(tokens)), draw(st.sampled_from(tokens))
        if left + right not in tokens:
            merges.append((left, right))
            tokens.append(left + right)
    return merges


@given(merges=merge_lists(), words=st.lists(st.text("abc", min_size=1, max_size=14).map(str.encode), max_size=20))
@examples(80)
def test_the_two_ways_to_merge_agree_exactly_where_no_token_is_spelled_otherwise(
    merges: list[Merge], words: list[bytes]
) -> None:
    one = Learned(vocab_of(merges), merges, {}, None)
    ids, tokenizer = one.token_ids(), Tokenizer(*one)
    found = [token for token, _ in tiktoken.spelled_otherwise(one)]
    wanted = [b"".join(each) for rank, each in enumerate(merges) if replayed(b"".join(each), merges[:rank]) != [*each]]
    assert found == wanted
    if found:
        assert [tokenizer.vocab[number] for number in tokenizer.encode(found[0])] != by_result(found[0], ids)
    else:
        for word in [*words, *ids]:
            assert [tokenizer.vocab[number] for number in tokenizer.encode(word)] == by_result(word, ids)


@given(merges=merge_lists())
@example(  # cccccc is made from cccc, whose rank is higher than its own
    merges=[(b"c", b"c"), (b"c", b"cc"), (b"ccc", b"ccc"), (b"a", b"a"), (b"cc", b"cc")]
)
def test_ranks_from_elsewhere_are_encoded_as_tiktoken_does(merges: list[Merge]) -> None:
    """Whatever two pairs spell, and with tokens that only whole pre-tokens are."""
    ids = {token: number for number, token in vocab_of(merges).items()}
    one = tiktoken.of_ranks(ids, {}, None)
    tokenizer, chance = Tokenizer(*one), random.Random(len(merges))
    words = [bytes(chance.choices(b"abc", k=chance.randint(1, 12))) for _ in range(30)]
    for word in [*words, *ids]:
        assert [tokenizer.vocab[number] for number in tokenizer.encode(word)] == by_result(word, ids)
    again = tiktoken.read_ranks_text(tiktoken.ranks_text(one), {}, None)
    assert again == one


def test_ids_that_are_not_in_the_order_of_merges_make_no_ranks() -> None:
    vocab = vocab_of(HELLO)
    vocab[256], vocab[257] = vocab[257], vocab[256]
    with pytest.raises(ValueError, match="not in the order of its merges"):
        tiktoken.ranks_text(Learned(vocab, HELLO, {}, None))


@pytest.mark.parametrize(
    ("content", "specials", "answer"),
    [
        (b"YQ== 0\n", {}, "byte 0 has no rank"),
        (b"YQ==\n", {}, "line 1 is not a token in base64 and its rank"),
        (None, {"<|e|>": 5}, r"special token '<\|e\|>' has the id 5 of"),
        (None, {"<|e|>": 500, "<|f|>": 500}, "two special tokens have the same id"),
    ],
)
def test_ranks_that_are_not_of_one_piece_are_refused(
    tmp_path: Path, content: bytes | None, specials: dict[str, int], answer: str
) -> None:
    path = tmp_path / "some.tiktoken"
    path.write_bytes(tiktoken.ranks_text(learned()) if content is None else content)
    with pytest.raises(Refusal, match=answer):
        read_tokenizer(path, None, specials)


def test_ranks_need_a_pattern_and_the_ids_of_special_tokens(tmp_path: Path) -> None:
    path = tmp_path / "some.tiktoken"
    path.write_bytes(tiktoken.ranks_text(learned()))
    with pytest.raises(Refusal, match="lacks its pattern"):
        load(path)
    with pytest.raises(Refusal, match=r"lacks the ids of special tokens; give each as <\|e\|>=ID"):
        load(path, pattern=GPT2_PATTERN, special_tokens=["<|e|>"])
    assert load(path, pattern=GPT2_PATTERN, special_tokens={"<|e|>": 999}).encode("<|e|>") == [999]


# tokenizer.json from elsewhere


def test_gpt2s_own_pre_tokenizer_and_a_removing_split_are_understood(tmp_path: Path) -> None:
    plain = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    assert load(changed(tmp_path, pre_tokenizer=plain)).pattern == GPT2_PATTERN
    split = {"type": "Split", "pattern": {"Regex": "(?m:.)"}, "behavior": "Removed", "invert": True}
    one = {"type": "Sequence", "pretokenizers": [split, {**plain, "use_regex": False}]}
    assert load(changed(tmp_path / "b", pre_tokenizer=one)).pattern == "(?s:.)"


def test_merges_as_lines_and_a_special_token_that_the_vocabulary_lacks_are_read(tmp_path: Path) -> None:
    path = changed(tmp_path)
    content = json.loads(path.read_bytes())
    content["model"]["merges"] = [" ".join(pair) for pair in content["model"]["merges"]]
    for text in SPECIALS:
        del content["model"]["vocab"][text]
    path.write_bytes(json_text(content))
    assert read_tokenizer(path).learned == learned("gpt2", SPECIALS)


def test_with_ignore_merges_a_pre_token_that_is_a_token_is_that_token(tmp_path: Path) -> None:
    path = changed(tmp_path)
    content = json.loads(path.read_bytes())
    content["model"]["vocab"]["qqq"] = 5000
    path.write_bytes(json_text(content))
    assert load(path).encode("qqq") == [113, 113, 113]
    content["model"]["ignore_merges"] = True
    path.write_bytes(json_text(content))
    one = load(path)
    assert (one.encode("qqq"), one.encode("qqqq"), one.decode([5000])) == ([5000], [113] * 4, b"qqq")
    put(tmp_path / "again", read_tokenizer(path).learned)
    assert load(tmp_path / "again").encode("qqq") == [5000]
    with pytest.raises(Refusal, match=r"gpt2 cannot hold this tokenizer: it takes whole pre-tokens .* such as 'qqq'"):
        main_raising("convert", str(path), "--to", "gpt2", "--output", str(tmp_path / "c"))
    assert not (tmp_path / "c").exists()


SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False}
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}


def sequence(*steps: Any) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": list(steps)}


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({"normalizer": {"type": "NFC"}}, "it changes the text first .normalizer NFC."),
        ({"model__byte_fallback": True}, "its byte_fallback is true; ours has none"),
        ({"model__dropout": 0.1}, "its dropout is 0.1; ours has none"),
        ({"model__type": "WordPiece"}, "its model is WordPiece"),
        ({"model__vocab": []}, "does not map tokens to ids"),
        ({"model__merges": [["x", "yz"]]}, "it gives no id to 'xyz'"),
        ({"pre_tokenizer": None}, "its pre-tokenizer is null; the last one must be ByteLevel"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "its pre-tokenizer is Whitespace"),
        ({"pre_tokenizer": {"type": "ByteLevel"}}, "puts a blank before the text"),
        ({"pre_tokenizer": sequence({**SPLIT, "pattern": {"String": "a"}}, BYTE_LEVEL)}, "is not a Split by a Regex"),
        (
            {"pre_tokenizer": sequence({**SPLIT, "pattern": {"Regex": "a"}, "behavior": "Removed"}, BYTE_LEVEL)},
            "ours keeps every match",
        ),
        (
            {"pre_tokenizer": sequence({**SPLIT, "pattern": {"Regex": "a"}}, {**BYTE_LEVEL, "use_regex": True})},
            "it splits by 2 patterns",
        ),
        ({"added_tokens": [{"id": 256, "content": "<|e|>", "lstrip": True}]}, "has lstrip, which ours cannot have"),
        ({"added_tokens": [{"id": 999, "content": "<|e|>"}]}, "it gives two ids to '<|e|>'"),
        ({"added_tokens": [{}]}, "its added_tokens lack content or id"),
    ],
)
def test_what_would_encode_otherwise_is_refused_with_its_name(
    tmp_path: Path, changes: dict[str, Any], answer: str
) -> None:
    path = changed(tmp_path, **changes)
    with pytest.raises(Refusal, match=rf"tokenizer\.json cannot be used: .*{answer.replace('|', '.')}") as refused:
        load(path)
    assert refused.value.exit_code == UNMEASURED


@pytest.mark.parametrize(
    "pattern", [*filter(None, PATTERNS.values()), r"a$|^b|\Z|[$^\]]\$|(?i:x)|(?s:.)", "[^]$]|[]^]"]
)
def test_a_pattern_goes_to_ruby_and_back(pattern: str) -> None:
    there = to_ruby(pattern)
    assert to_ruby(from_ruby(there)) == there


def test_what_lies_in_a_folder_is_told_apart(tmp_path: Path) -> None:
    one = learned("gpt2", SPECIALS)
    put(tmp_path, one)
    assert read_tokenizer(tmp_path).form == "what manifest.json describes"
    (tmp_path / "manifest.json").unlink()
    assert read_tokenizer(tmp_path).form == "tokenizer.json"
    assert read_tokenizer(tmp_path, GPT2_PATTERN, SPECIALS).form == "vocab.json and merges.txt"
    for name in ("vocab.json", "merges.txt", "tokenizer.json"):
        (tmp_path / name).unlink()
    assert read_tokenizer(tmp_path, GPT2_PATTERN, one.special_tokens).form == "ranks"
    (tmp_path / "more.tiktoken").write_bytes(b"")
    with pytest.raises(Refusal, match="has 2 files of ranks; name one"):
        load(tmp_path)
    with pytest.raises(Refusal, match=r"is not a tokenizer; name a folder with vocab.json and merges.txt"):
        load(__file__)


def test_what_tiktoken_lacks_is_said() -> None:
    pytest.importorskip("tiktoken", reason="tiktoken is not installed; pip install tiktoken")
    with pytest.raises(Refusal, match=r"tiktoken has no encoding 'cl1000'; there are: .*cl100k_base"):
        load("tiktoken:cl1000")
    with pytest.raises(Refusal, match="contains the pattern and the special tokens"):
        load("tiktoken:cl100k_base", pattern=None)


def test_an_encoding_of_tiktoken_is_read_with_its_pattern_and_special_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    tiktoken = pytest.importorskip("tiktoken", reason="tiktoken is not installed; pip install tiktoken")
    one = learned("gpt4", ("<|endoftext|>",))
    theirs = tiktoken.Encoding(
        "cl100k_base", pat_str=one.pattern, mergeable_ranks=one.token_ids(), special_tokens=one.special_tokens
    )
    monkeypatch.setattr(tiktoken, "get_encoding", lambda _: theirs)
    assert read_tokenizer("tiktoken:cl100k_base")[:2] == (one, "an encoding of tiktoken")
    assert load("tiktoken:cl100k_base").encode(TEXT) == theirs.encode(TEXT, allowed_special="all")

    def unreachable(_: str) -> None:
        raise OSError("no network")

    monkeypatch.setattr(tiktoken, "get_encoding", unreachable)
    with pytest.raises(
        Refusal, match=r"cannot get the ranks of cl100k_base here .OSError.; set TIKTOKEN_CACHE_DIR"
    ) as refused:
        load("tiktoken:cl100k_base")
    assert refused.value.exit_code == UNMEASURED


# Conversion


FORMS = ["ours", "gpt2", "huggingface", "tiktoken"]


@pytest.mark.parametrize("specials", [(), SPECIALS], ids=["plain", "special"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_form_is_made_from_every_other(tmp_path: Path, pattern: str, specials: tuple[str, ...]) -> None:
    """Through each pair of forms the tokenizer stays what it is; another test has the ids of every engine."""
    one = TokenizerFile(learned(pattern, specials), "here")
    for first in FORMS:
        convert(one, first, tmp_path / first, pattern, overwrite=False)
        for then in FORMS:
            convert(read(tmp_path / first, first, one.learned), then, tmp_path / first / "then" / then, pattern, False)
            result = read(tmp_path / first / "then" / then, then, one.learned).learned
            # tokenizer.json has GPT-4's pattern in Llama 3's spelling; GPT-2's files have none, and it is passed.
            respelled = pattern == "gpt4" and then != "gpt2" and "huggingface" in (first, then)
            spelling = PATTERNS["llama3"] if respelled else one.learned.pattern
            assert result == one.learned._replace(pattern=spelling)


def read(folder: Path, form: str, one: Learned) -> TokenizerFile:
    """What a folder of this form holds; GPT-2's two files lack pattern and special tokens."""
    return read_tokenizer(folder, *((one.pattern, list(one.special_tokens)) if form == "gpt2" else ()))


def test_converting_in_place_adds_a_form_and_leaves_the_rest(tmp_path: Path) -> None:
    put(tmp_path, learned("gpt2", SPECIALS))
    for name in ("tokenizer.json", "ranks.tiktoken"):
        (tmp_path / name).unlink()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    main_raising("convert", str(tmp_path), "--to", "huggingface")
    main_raising("convert", str(tmp_path), "--to", "tiktoken")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    with pytest.raises(Refusal, match=r"has a tokenizer already .*tokenizer.json\); use --overwrite"):
        main_raising("convert", str(tmp_path), "--to", "huggingface")
    main_raising("convert", str(tmp_path), "--to", "huggingface", "--overwrite")


def test_ranks_are_converted_with_the_ids_that_are_said(tmp_path: Path) -> None:
    one = learned("gpt4", ("<|endoftext|>",))
    (tmp_path / "x.tiktoken").write_bytes(tiktoken.ranks_text(one))
    said = ["--pattern", "gpt4", "--special-token", "<|endoftext|>=256"]
    assert main(["convert", str(tmp_path / "x.tiktoken"), "--to", "ours", "--output", str(tmp_path / "y"), *said]) == 0
    assert read_tokenizer(tmp_path / "y").learned == one
    assert json.loads((tmp_path / "y" / "manifest.json").read_bytes())["pattern"]["name"] == "gpt4"
