"""Words counted in parts: the parts of a text together have its words, whatever it holds and wherever it is cut."""

from __future__ import annotations

import importlib
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, BinaryIO

import pytest
import zstandard
from exploring import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from scanned_texts import COMPILED, random_content
from workbench import cells

from harness.common.errors import Refusal
from harness.corpora import local
from harness.corpora.formats import texts_of
from harness.corpora.parts import counted as counted_module
from harness.corpora.parts import engine, shards
from harness.corpora.parts.dividing import HowRead, Part, divided
from harness.corpora.parts.places import Member, local_state, members, unreadable
from harness.corpora.parts.scratch import prepared, removed, scratch_at
from harness.corpora.parts.tasks import LOG, assembled, count_part, merge_partition
from harness.corpora.parts.workers import Workers
from harness.worker import word_store
from variants.contract import GPT2_PATTERN, Corpus, InvalidText, WordCounts
from variants.counting import parts as counting_of_parts
from variants.counting.parts import ends_a_part, safe_place
from variants.counting.pretokenize import serial

END = "<|endoftext|>"
OWN_PATTERN = r"\w+|\W"  # none that is compiled in
PATTERNS = [*COMPILED, OWN_PATTERN]
MOST_PARTS = 30
"""Of a random text: each has files of its own."""
parquet: Any = importlib.import_module("pyarrow.parquet")  # without types of its own
pyarrow: Any = importlib.import_module("pyarrow")


def how(**other: Any) -> HowRead:
    usual: dict[str, Any] = {"special_tokens": (END,), "pattern": GPT2_PATTERN, "errors": "strict", "partial": False}
    return HowRead(**{**usual, "separator": END, "column": "text", "partitions": 3, **other})


def member(path: Path) -> Member:
    return Member(str(path), path.stat().st_size, local_state(path))


def counted(parts: list[Part], folder: Any, place: Path) -> dict[bytes, int]:
    """What the two tasks come to, by nobody's engine."""
    keys = []
    for part in parts:
        outcome = count_part(part, str(folder))
        assert outcome.failed is None
        keys.append(outcome.key)
    for partition in range(parts[0].how.partitions):
        assert merge_partition(partition, keys, str(folder), "merged") is None
    assembled("text", scratch_at(str(folder)) / "merged", parts[0].how.partitions, place)
    word_counts, told = word_store.read(place)
    assert told == word_store.facts(word_counts)
    return dict(word_counts)


def new_folder(folder: Path) -> Path:
    made = folder / str(len(list(folder.iterdir())))
    made.mkdir()
    return made


quick = examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(seed=st.integers(0, 2**32), pattern=st.sampled_from(PATTERNS), errors=st.sampled_from(["strict", "replace"]))
@quick
def test_the_parts_of_a_text_have_its_words(tmp_path: Path, seed: int, pattern: str | None, errors: str) -> None:
    chance = random.Random(seed)
    content, special_tokens = random_content(chance)
    folder = new_folder(tmp_path)
    text = folder / "text.txt"
    text.write_bytes(content)
    read = how(special_tokens=special_tokens, pattern=pattern, errors=errors, partial=True)
    least = 1 + len(content) // MOST_PARTS
    parts = divided([member(text)], read, chance.randint(least, least + 200), None)
    want = definition(read.corpus(str(text)))
    if isinstance(want, InvalidText):
        failed = [outcome.failed for part in parts if (outcome := count_part(part, str(folder))).failed]
        assert any(f"{text}: invalid UTF-8 at byte {want.offset}" in str(sentence) for sentence in failed)
    else:
        assert counted(parts, folder, folder / "words") == want


def definition(corpus: Corpus) -> dict[bytes, int] | InvalidText:
    try:
        return dict(serial(corpus))
    except InvalidText as error:
        return error


@given(seed=st.integers(0, 2**32), target=st.integers(0, 400))
@quick
def test_a_safe_place_depends_on_its_target_alone(seed: int, target: int) -> None:
    content, special_tokens = random_content(random.Random(seed))
    corpus = Corpus("", special_tokens)
    place = safe_place(corpus, lambda start, length: content[start : start + length], len(content), target)
    assert min(target, len(content)) <= place <= len(content)
    if target <= place < len(content):
        again = safe_place(corpus, lambda start, length: content[start : start + length], len(content), place)
        assert again == place


def mixed_files(folder: Path) -> list[Path]:
    """Text, Parquet and JSON Lines, packed or not, as one text would be with a special token behind every document."""
    rows = ["the cat sat", f"on the mat{END}", "", " low lower\n", "é日本 7 "] * 20
    (folder / "a.txt").write_text("".join(f"one {row} two\n" for row in rows))
    parquet.write_table(pyarrow.table({"text": rows}), folder / "b.parquet", row_group_size=7)
    lines = "".join(json.dumps({"text": row, "more": 1}) + "\n" for row in reversed(rows))
    (folder / "c.jsonl.zst").write_bytes(zstandard.compress(lines.encode()))
    (folder / "cc.jsonl").write_text(lines + "\n" + lines.rstrip())
    (folder / "d.txt").write_text("no end of a line")
    return sorted(folder.iterdir())


def test_files_of_all_kinds_are_counted_as_the_one_text_that_a_run_makes_of_them(tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    mixed_files(texts)
    parts = divided(members(str(texts)), how(), 100, None)
    assert Counter(Path(part.member.place).name for part in parts)["c.jsonl.zst"] == 1
    assert {Path(part.member.place).name for part in parts if not part.is_whole} == {"a.txt", "b.parquet", "cc.jsonl"}
    card = {"path": str(texts)}
    _, whole, _ = local.local_corpus(card, [END])
    folder = new_folder(tmp_path)
    assert counted(parts, folder, tmp_path / "words") == dict(serial(Corpus(str(whole))))
    table = serial(Corpus(str(whole)))
    assert word_store.read(tmp_path / "words")[1]["sha256"] == word_store.digest(table)


def one_part(folder: Path, content: bytes = b"low low lower", **other: Any) -> Part:
    text = folder / "text.txt"
    text.write_bytes(content)
    (part,) = divided([member(text)], how(**other), 1 << 20, None)
    return part


def test_a_part_that_is_there_is_not_counted_again(tmp_path: Path) -> None:
    part = one_part(tmp_path)
    assert [count_part(part, str(tmp_path)).made for _ in range(3)] == [True, False, False]
    assert (tmp_path / LOG).read_text().count("\n") == 1


@pytest.mark.parametrize("other", [{"pattern": OWN_PATTERN}, {"special_tokens": ("a",)}, {"partitions": 4}])
def test_shards_are_named_by_all_that_they_depend_on(tmp_path: Path, other: dict[str, Any]) -> None:
    assert one_part(tmp_path).key != one_part(tmp_path, **other).key


def test_shards_of_a_text_that_was_changed_are_others(tmp_path: Path) -> None:
    before = one_part(tmp_path)
    after = one_part(tmp_path, b"low low lowes")
    os.utime(tmp_path / "text.txt", ns=(1, 1))
    assert before.key != member(tmp_path / "text.txt").state
    assert one_part(tmp_path).key != divided([member(tmp_path / "text.txt")], how(), 1, None)[0].key
    assert "was changed while it was counted" in str(count_part(after, str(tmp_path)).failed)


def test_a_damaged_shard_is_noticed_and_made_anew(tmp_path: Path) -> None:
    part = one_part(tmp_path)
    count_part(part, str(tmp_path))
    path = shards.place_of(tmp_path, part.key)
    whole = path.read_bytes()
    path.write_bytes(whole[:9] + bytes([whole[9] ^ 1]) + whole[10:])
    said = [merge_partition(each, [part.key], str(tmp_path), "merged") for each in range(part.how.partitions)]
    assert sum(f"{path} is damaged; run the same command again" in str(sentence) for sentence in said) == 1
    assert count_part(part, str(tmp_path)).made
    path.write_bytes(whole[:-5])
    assert count_part(part, str(tmp_path)).made
    assert path.read_bytes() == whole


def test_what_a_killed_worker_left_is_removed_by_the_next(tmp_path: Path) -> None:
    part = one_part(tmp_path)
    left = tmp_path / f".{part.key}-abc"
    left.write_bytes(b"half")
    assert count_part(part, str(tmp_path)).made
    assert not left.exists()


def test_every_word_is_in_the_partition_of_its_hash(tmp_path: Path) -> None:
    words = {f"word{number}".encode(): number + 1 for number in range(1000)}
    shards.write(tmp_path, "key", WordCounts.from_items(words.items()), 7)
    found = [dict(shards.read(tmp_path, "key").shard(partition)) for partition in range(7)]
    assert [sorted(each, key=lambda word: (fnv(word), word)) for each in found] == [list(each) for each in found]
    assert Counter({word: count for each in found for word, count in each.items()}) == Counter(words)
    for partition, each in enumerate(found):
        assert {fnv(word) % 7 for word in each} == {partition}


def fnv(word: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in word:
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return value ^ value >> 32


def test_a_disk_that_is_full_ends_all_with_a_sentence_on_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(counting_of_parts, "write_runs", full)
    outcome = count_part(one_part(tmp_path), str(tmp_path))
    assert outcome.ends_all
    assert f"{tmp_path} cannot take the shards of the words (No space left on device)" in str(outcome.failed)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text.txt"]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.txt", b"low \xff low", "a.txt: invalid UTF-8 at byte 4"),
        ("a.jsonl", b'{"text": "low"}\n{"text": 7}\n', "a.jsonl, line 2: column 'text' holds int"),
        ("a.txt.gz", b"no gzip", "a.txt.gz is damaged or not a gz file"),
        ("a.parquet", b"PAR1 not", "a.parquet is damaged or not a Parquet file"),
    ],
)
def test_a_part_that_cannot_be_read_is_named_with_its_place(
    tmp_path: Path, name: str, content: bytes, sentence: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    (part,) = divided([member(path)], how(), 1 << 20, None)
    outcome = count_part(part, str(tmp_path))
    assert sentence in str(outcome.failed)
    assert not outcome.ends_all


@pytest.mark.parametrize("first", range(0, 60, 7))
def test_rows_between_bytes_are_each_row_once(tmp_path: Path, first: int) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "low"}\n\n{"text": "lower"}\r\n{"text": "new"}')
    bounds = [0, first, min(60, first + 3), 60]
    found = [texts_of(path, "text", lambda _: None, between) for between in zip(bounds, bounds[1:], strict=False)]
    assert [text for each in found for text in each] == ["low", "lower", "new"]


def test_a_bad_row_behind_a_cut_is_named_from_where_its_part_begins(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "low"}\n' * 5 + '{"text": 7}\n')
    parts = sorted(divided([member(path)], how(), 50, None), key=lambda part: part.first)
    said = [count_part(part, str(tmp_path)).failed for part in parts]
    assert said[0] is None
    assert f"{path}, line 3 from byte 46 on: column 'text' holds int" in str(said[1])


def test_a_file_that_only_one_machine_sees_is_named_with_the_machine_that_does_not(tmp_path: Path) -> None:
    part = one_part(tmp_path)
    (tmp_path / "text.txt").unlink()
    assert f"there is nothing at {tmp_path / 'text.txt'} on " in str(count_part(part, str(tmp_path)).failed)


def test_a_token_that_another_may_overlap_ends_no_part() -> None:
    assert ends_a_part(END, (END, "<|pad|>"))
    assert not ends_a_part("ab", ("ab", "bc"))


def test_more_files_than_can_be_mapped_are_refused(tmp_path: Path) -> None:
    few = [Member(str(tmp_path / str(number)), 1, "") for number in range(20_001)]
    with pytest.raises(Refusal, match="20001 files, more than 20000; join them"):
        divided(few, how(), 1, None)


# Behind URLs


@pytest.fixture
def memory() -> Iterator[Any]:
    """A file system of fsspec's that is in this process, with files of all kinds."""
    fsspec = pytest.importorskip("fsspec", reason="pip install -e '.[distributed]' has it")
    system = fsspec.filesystem("memory")
    yield system
    system.rm("/texts", recursive=True)


def test_files_behind_a_url_are_counted_as_those_here(tmp_path: Path, memory: Any) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    for path in mixed_files(texts):
        memory.pipe_file(f"/texts/{path.name}", path.read_bytes())
    memory.pipe_file("/texts/.hidden", b"not this")
    found = members("memory://texts/")
    assert [each.place for each in found] == [f"memory:///texts/{each.name}" for each in sorted(texts.iterdir())]
    assert [each.place for each in members("memory://texts/*.txt")] == [
        "memory:///texts/a.txt",
        "memory:///texts/d.txt",
    ]
    there = counted(divided(found, how(), 100, None), new_folder(tmp_path), tmp_path / "there")
    here = counted(divided(members(str(texts)), how(), 1 << 20, None), new_folder(tmp_path), tmp_path / "here")
    assert there == here


def test_shards_may_lie_behind_a_url(tmp_path: Path, memory: Any) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    mixed_files(texts)
    parts, scratch = divided(members(str(texts)), how(), 300, None), "memory:///texts/scratch"
    assert prepared(scratch_at(scratch)) is None
    there = counted(parts, scratch, tmp_path / "there")
    assert there == counted(parts, new_folder(tmp_path), tmp_path / "here")
    assert not count_part(parts[0], scratch).made
    (scratch_at(scratch) / "merged" / "0").remove_tree()
    shard = shards.place_of(scratch_at(scratch), parts[0].key)
    whole = shard.read(0, shard.size())
    memory.pipe_file(shard.url, bytes([whole[0] ^ 1]) + whole[1:])
    said = merge_partition(0, [part.key for part in parts], scratch, "merged")
    assert said == f"{shard} is damaged; run the same command again, it makes what is missing anew"
    memory.pipe_file(shard.url, whole[:-1])
    assert count_part(parts[0], scratch).made
    assert shard.read(0, shard.size()) == whole
    removed(scratch_at(scratch))
    assert not memory.exists("/texts/scratch")


def test_a_file_behind_a_url_that_was_changed_is_noticed(tmp_path: Path, memory: Any) -> None:
    memory.pipe_file("/texts/a.txt", b"low low lower")
    (part,) = divided(members("memory://texts/a.txt"), how(), 100, None)
    memory.pipe_file("/texts/a.txt", b"low low lowes")
    assert "was changed while it was counted" in str(count_part(part, str(tmp_path)).failed)


def test_a_server_that_sends_more_than_a_range_is_refused(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.pipe_file("/texts/a.txt", b"low low lower")
    (found,) = members("memory://texts/a.txt")
    monkeypatch.setattr(type(memory), "cat_file", lambda *_, **__: b"all of it, whatever was asked for")
    with pytest.raises(OSError, match=r"of bytes 2 to 5 it sends 33; set counting\.params\.part above the file's size"):
        found.path().read_range(2, 3)


def test_without_an_engine_a_url_is_answered_with_the_one_that_takes_it() -> None:
    with pytest.raises(
        Refusal, match=r"s3://bucket/a\.txt is not on this machine; counting=dask counts it where it is"
    ):
        local.members_of("s3://bucket/a.txt")


def test_refused_credentials_are_a_sentence() -> None:
    sentence = unreadable("s3://bucket/a.txt", PermissionError("Access Denied"))
    assert sentence.startswith("s3://bucket/a.txt may not be read with these credentials (PermissionError: Access D")


# What is asked of an engine


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("counting.params.part=1kB", "counting.params.part=1kB is too small; the least is 65.5 kB"),
        ("counting.params.partitions=0", "counting.params.partitions=0"),
        ("counting.params.shards=1", "counting=dask takes no parameter 'shards'; there are: scheduler, workers, part"),
        ("plan=true", "the words of text.txt are not counted yet .*and a plan counts nothing"),
        ("data.column=a", "columns are in .parquet and .jsonl files"),
    ],
)
def test_what_an_engine_cannot_do_is_refused(tmp_path: Path, argument: str, sentence: str) -> None:
    text = tmp_path / "text.txt"
    text.write_text("low")
    with pytest.raises(Refusal, match=sentence):
        cells("counting=dask", f"data.path={text}", argument)


def test_files_whose_separator_another_token_overlaps_are_refused(tmp_path: Path) -> None:
    mixed_files(tmp_path)
    with pytest.raises(Refusal, match="'ab' stands between the files, and counting them apart needs a special token"):
        cells("counting=dask", f"data.path={tmp_path}", "special_tokens=[ab,bc]", "vocab_size=300")


def test_workers_that_cannot_be_started_are_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(own: Workers) -> tuple[int, int]:
        failing = [sys.executable, "-S", "-c", "raise SystemExit('no room')"]
        errors = (os.POSIX_SPAWN_DUP2, own.errors.fileno(), 2)
        return os.posix_spawn(sys.executable, failing, os.environ, file_actions=[errors]), os.open(
            os.devnull, os.O_RDWR
        )

    monkeypatch.setattr(Workers, "split_off", start)
    with Workers(2, str(tmp_path), lambda: None) as own:
        own.serve("tcp://127.0.0.1:1")
        os.waitid(os.P_PID, own.process, os.WEXITED | os.WNOWAIT)
        with pytest.raises(Refusal, match=r"workers cannot be started on this machine \(no room\)"):
            own.look_after()


def with_dask(monkeypatch: pytest.MonkeyPatch, command: str) -> list[subprocess.Popen[bytes]]:
    """Have this run by a shell in place of the process that Dask is in, which need not be installed for that.

    Returns those that were started.
    """
    there: list[subprocess.Popen[bytes]] = []

    def start(theirs: Connection, errors: BinaryIO) -> subprocess.Popen[bytes]:
        with theirs:
            there.append(subprocess.Popen(["sh", "-c", command], stderr=errors, pass_fds=[theirs.fileno()]))
        return there[-1]

    monkeypatch.setattr(engine, "start", start)
    monkeypatch.setattr(engine, "check_extra", lambda *_: None)
    return there


def test_what_is_counted_before_workers_have_started_waits_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = with_dask(monkeypatch, "exec sleep 60")
    text = tmp_path / "text.txt"
    text.write_text("low low lower\n" * 20_000)
    (cell,) = cells("counting=dask", f"data.path={text}", "counting.params.part=66kB", "counting.params.workers=2")
    assert dict(word_store.read(cell.count.reading.file.path)[0]) == dict(serial(Corpus(str(text), (END,))))
    assert started[0].returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("echo no room >&2; exit 1", r"Dask cannot be started \(no room\)"),
        (
            "kill -KILL $$",
            "the scheduler on this machine was lost; 0 of 1 parts are counted",
        ),
    ],
)
def test_dask_that_cannot_be_started_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, sentence: str
) -> None:
    with_dask(monkeypatch, command)
    text = tmp_path / "text.txt"
    text.write_text("low")
    with pytest.raises(Refusal, match=sentence):
        cells("counting=dask", f"data.path={text}", "counting.params.workers=1")


def test_a_full_cache_is_a_sentence_on_the_cache_and_the_same_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache_folder: Path
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with_dask(monkeypatch, "exec sleep 60")
    text = tmp_path / "text.txt"
    text.write_text("low low lower")
    asked = ["counting=dask", f"data.path={text}", "counting.params.workers=2"]
    with monkeypatch.context() as now:
        now.setattr(counted_module, "assembled", full)
        with pytest.raises(Refusal, match=rf"one table in {cache_folder}/tables of the words in .* \(No space left"):
            cells(*asked)
    assert list((cache_folder / "tables").iterdir()) == []
    (folder,) = (cache_folder / "parts").iterdir()
    assert sorted(path.name for path in (folder / "merged").iterdir()) == sorted(map(str, range(16)))
    cells(*asked)
    assert list((cache_folder / "parts").iterdir()) == []


def test_without_its_library_the_engine_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = tmp_path / "text.txt"
    text.write_text("low")
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(Refusal, match=r"counting=dask needs dask, which is not installed.*bpe-harness\[distributed\]"):
        cells("counting=dask", f"data.path={text}")
