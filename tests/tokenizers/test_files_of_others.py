"""Files of every form are read, whoever wrote them; whatever is wrong with one, one sentence says
it. What a tokenizer.json does around a text is carried through every door, with the ids of a cut.
"""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from mutated import mutated_json
from rows import Row, each_row, json_beside, write_files
from tokenizers_made import PATTERNS, SPECIALS, TEXT, changed, isolated, learned
from workbench import Call

from harness.common.errors import Refusal
from harness.tokenizer import Tokenizer, load, train
from harness.tokenizers.folder import FILES_OF, save
from harness.tokenizers.forms import ranks_text, read_merges_file
from harness.tokenizers.learned import Around, spelled, trained
from harness.tokenizers.prune import prune

# Tokenizers

BROKEN = json_beside(__file__, "broken_tokenizers.json")
"""The file that is loaded, what of a good tokenizer is changed (a whole file, or one text for
another), the options of `load`, and the answer."""
DEEP = {"pattern": "(" * 4000 + ")" * 4000}
BROKEN.append(
    ["ranks.tiktoken", {}, DEEP, "^pattern '.{80}' is not a regular expression: .{0,90}$"]
)


def broken(folder: Path, name: str, changes: dict[str, Any]) -> Path:
    if name == "tokenizer.json":
        return changed(folder, **changes)
    save(folder, learned("gpt2", SPECIALS), {})
    for file, change in changes.items():
        path = folder / file
        if isinstance(change, list):
            old, new = change
            change = path.read_text(encoding="utf-8").replace(old, new, 1)
        path.unlink()
        if change is not None:
            path.write_text(change, encoding="utf-8", newline="")
    return folder / name


@pytest.mark.parametrize(("name", "changes", "options", "answer"), BROKEN)
def test_broken_files_are_refused_with_a_sentence(
    tmp_path: Path, name: str, changes: dict[str, Any], options: dict[str, Any], answer: str
) -> None:
    path = broken(tmp_path, name, changes)
    with pytest.raises(Refusal, match=answer) as refused:
        load(path, **options)
    assert "\n" not in str(refused.value)


def test_files_of_gpt2_are_read_with_their_own_ids() -> None:
    one = load(Path(__file__).with_name("gpt2"), pattern="gpt2", special_tokens=["<|endoftext|>"])
    assert one.encode("the !<|endoftext|>") == [257, 220, 0, 258]


LETTERS = "aBqsS'123٣½²e\u0301\u200b\u200c\u212a\x00$x \n\r\u3000!?.中ア・イー\u3099\u309b\u3040"


@each_row(__file__, "tokenizer_json.toml")
def test_a_tokenizer_json_means_here_what_hugging_face_means(row: Row, tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    path = changed(tmp_path, **row["changes"])
    theirs = tokenizers.Tokenizer.from_file(str(path))
    ours = load(path)
    if "pattern" in row:
        assert ours.pattern == PATTERNS[row["pattern"]]

    chance = random.Random(7)
    for _ in range(300):
        text = "".join(chance.choices(chance.sample(LETTERS, 8), k=chance.randint(1, 30)))
        pieces = [piece for piece, _ in theirs.pre_tokenizer.pre_tokenize_str(text)]
        assert [
            spelled(piece.encode()) for piece in isolated(ours.pattern or "(?s:.+)", text)
        ] == pieces
        assert ours.encode(text) == theirs.encode(text).ids

    notes = ours.save(tmp_path / "again")
    assert notes == row.get("notes", notes)
    assert load(tmp_path / "again").learned == ours.learned


# Merges

MERGES = [(b"t", b"h"), (b"th", b"e")]
LISTS = json_beside(__file__, "merges.json")
"""Contents with their form, or with what is wrong with them."""


def written(folder: Path, content: str) -> Path:
    """A file with a content, in which RANKS are those of MERGES and DEEP is a deep list."""
    ranks = ranks_text(trained(MERGES, [], None)).decode()
    content = content.replace("RANKS", ranks).replace("DEEP", "[" * 50_000)
    path = folder / "merges"
    path.write_bytes(content.encode(errors="surrogateescape"))
    return path


@pytest.mark.parametrize(("content", "form"), LISTS["read"])
def test_the_content_decides_the_form(tmp_path: Path, content: str, form: str) -> None:
    assert read_merges_file(written(tmp_path, content)) == (MERGES, form)


@pytest.mark.parametrize(("content", "why"), LISTS["refused"])
def test_broken_files_are_refused_with_the_line(tmp_path: Path, content: str, why: str) -> None:
    path = written(tmp_path, content)
    refused = rf"^{re.escape(str(path))}, read as .*: .*{re.escape(why)}.*; it can be"
    with pytest.raises(Refusal, match=refused):
        read_merges_file(path)


# What a tokenizer.json does around a text

AROUND = json_beside(__file__, "around.json")
PARTS: dict[str, dict[str, Any]] = AROUND["carried"]
"""Parts of a tokenizer.json by what they are."""


@pytest.mark.parametrize("name", PARTS)
def test_what_is_around_a_text_is_carried(tmp_path: Path, name: str) -> None:
    path = changed(tmp_path, **PARTS[name])
    original = json.loads(path.read_text())
    tokenizer = load(path)
    tokenizer.save(tmp_path / "saved")
    tokenizer.huggingface().save(str(tmp_path / "opened.json"))
    for saved in ("saved/tokenizer.json", "opened.json"):
        assert json.loads((tmp_path / saved).read_text()) == original

    assert load(tmp_path / "saved").learned == tokenizer.learned  # from the manifest
    assert tokenizer.encode(TEXT) == Tokenizer(learned("gpt2", SPECIALS)).encode(TEXT)


@pytest.mark.parametrize("name", PARTS)
def test_the_ids_around_a_text_are_moved(tmp_path: Path, name: str) -> None:
    around = load(changed(tmp_path, **PARTS[name])).learned.around
    moved = around.moved(lambda number: number + 5000)
    before, after = (json.dumps(msgspec.to_builtins(one)) for one in (around, moved))
    assert after == re.sub(r"\b25[678]\b", r"5\g<0>", before)


DOORS: dict[str, Callable[[Path], Tokenizer]] = {
    "cut": lambda path: load(path).cut(300),
    "extend": lambda path: train([TEXT], 470, special_tokens=SPECIALS, extend=path),
    "prune": lambda path: prune(load(path), lambda: [[TEXT.encode()]], 2).tokenizer,
}


@pytest.mark.parametrize("door", DOORS)
def test_added_tokens_that_are_not_special_are_decoded_after_every_door(
    tmp_path: Path, door: str
) -> None:
    """`tokenizers` drops special tokens when it decodes."""
    path = changed(tmp_path, **PARTS["added tokens that are not special"])
    opened = DOORS[door](path).huggingface()
    ids = opened.encode("<|e|>the cat<|endoftext|><|e|>x").ids
    assert opened.decode(ids) == "<|e|>the cat<|e|>x"


def test_a_cut_that_leaves_out_what_is_added_is_refused(tmp_path: Path) -> None:
    tokenizer = load(changed(tmp_path, **PARTS["padding"], padding__pad_id=300))
    assert tokenizer.cut(302).learned.around.padding is not None
    with pytest.raises(Refusal, match="padding adds the token of id 300, which the cut leaves out"):
        tokenizer.cut(280)


def test_a_note_says_which_files_lack_it(tmp_path: Path) -> None:
    one = load(changed(tmp_path, **PARTS["all"])).learned
    note = save(tmp_path / "saved", one, {}, form="tiktoken")[0]
    assert note.startswith("only tokenizer.json applies its post_processor, truncation, padding;")


# Mutated files and odd arrays of ids: one sentence, in bounded memory

MUCH_AROUND = msgspec.convert(AROUND["of a manifest"], Around)
JUNK = [b"", b"\xff", b"-1", b" ", b"\n\n", b"[" * 9999]


def mutated_bytes(content: bytes, chance: random.Random) -> bytes:
    """The content with some bytes replaced by others, or cut, or doubled."""
    start = chance.randrange(len(content))
    stop = start + chance.randint(1, 30)
    return content[:start] + chance.choice([*JUNK, content[start:stop] * 2]) + content[stop:]


@pytest.mark.parametrize("seed", range(200))
def test_a_mutated_tokenizer_is_loaded_or_refused(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    save(tmp_path, learned("gpt2", SPECIALS, merges=20)._replace(around=MUCH_AROUND), {})
    names = FILES_OF["ours"]
    path = tmp_path / names[seed % len(names)]
    if path.suffix == ".json" and chance.random() < 0.5:
        path.write_text(mutated_json(path.read_bytes(), chance))
    else:
        path.write_bytes(mutated_bytes(path.read_bytes(), chance))
    options: dict[str, Any] = {}
    if path.name not in ("manifest.json", "tokenizer.json"):
        options = {"pattern": None, "special_tokens": ["<|e|>"]}
    if path.name == "merges.txt":
        path = tmp_path / "vocab.json"

    try:
        tokenizer = load(path, **options)
        tokenizer.save(tmp_path / "again")
    except Refusal as refusal:
        sentence = str(refusal)
    else:
        sentence = ""
        ids = tokenizer.encode(TEXT)
        assert tokenizer.decode(ids) == TEXT.encode()
        assert load(tmp_path / "again").encode(TEXT) == ids
    assert "\n" not in sentence


@each_row(__file__, "arrays.toml")
def test_an_array_that_is_not_ids_is_refused(row: Row, tmp_path: Path, call: Call) -> None:
    save(tmp_path, learned(), {})
    write_files(tmp_path, row["files"])
    path = tmp_path / next(iter(row["files"]))
    refused = f"{path} is {row['refused']}; pass one that encode --output wrote\n"
    assert call("tokenizer decode", tmp_path, path) == (22, "", refused)


@pytest.mark.parametrize("ids", [[1.5], [999], np.array([[104]])])
def test_what_is_not_an_id_is_not_decoded(ids: Any) -> None:
    with pytest.raises(Refusal, match="the ids of this tokenizer are 0 to 258"):
        train({"low": 5}, 259).decode(ids)
