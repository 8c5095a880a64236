"""instances=N draws texts and tables that nobody knows before the seed, and the same ones again."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from workbench import cells

from harness import run, table
from harness.__main__ import main
from harness.common import files
from harness.common.errors import OK, Refusal
from harness.corpora import CorpusFile, instances

END = "<|endoftext|>"
DOCUMENTS = [f"low{number} lower {number * 7919 % 1000} newest\n" for number in range(400)]
DATE = "20261127"
pytestmark = pytest.mark.usefixtures("measured_once")


@pytest.fixture(autouse=True)
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A text of documents in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(instances, "WORDS", 300)
    (tmp_path / "book.txt").write_text(END.join(DOCUMENTS))
    return tmp_path / "book.txt"


def drawn(*overrides: str, number: int = 5) -> list[CorpusFile]:
    planned = cells("data.path=book.txt", f"instances={number}", "vocab_size=300", *overrides)
    return [cell.reading.file for cell in planned]


def digests(corpora: list[CorpusFile]) -> list[str]:
    return [corpus.sha256 for corpus in corpora]


def test_each_instance_is_a_corpus_of_tables_and_records(
    capsys: pytest.CaptureFixture[str],
) -> None:
    how = ["data.path=book.txt", "variants=heap,flat", "vocab_size=290", "results=r"]
    records = run(*how, "instances=5", f"seed={DATE}")
    names = [
        f"book.txt-{kind}-{DATE}" for kind in ["slice1", "shuffle2", "words3", "slice4", "shuffle5"]
    ]
    assert [record["data"]["name"] for record in records[::2]] == names
    assert len({record["data"]["sha256"] for record in records}) == 5
    assert {record["identity"]["kind"] for record in records} == {"identical"}
    recipe = {"instance": "slice", "of": "book.txt", "drawn_by": int(DATE), "number": 4}
    assert records[6]["data"]["generated"] == recipe
    assert records[4]["data"]["generated"]["exponent_denominator"] == 16

    capsys.readouterr()
    assert table.main(["r"]) == OK
    assert re.findall(r"^(\S+): ", capsys.readouterr().out, re.MULTILINE)[:5] == names


def test_a_date_draws_the_same_again_and_another_date_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, other = drawn(f"seed={DATE}"), drawn("seed=20261128")
    assert set(digests(first)).isdisjoint(digests(other))

    monkeypatch.setenv("BPE_HARNESS_CACHE", str(tmp_path / "cache of another machine"))
    assert digests(drawn(f"seed={DATE}")) == digests(first)
    assert digests(drawn(f"seed={DATE}", number=2)) == digests(first)[:2]


def test_slices_and_shuffles_are_of_the_text(book: Path) -> None:
    whole = book.read_text()
    first, shuffled, _, second, _ = drawn(f"seed={DATE}", "data.bytes=4kB")
    for corpus in (first, second):
        text = corpus.path.read_text()
        assert text in whole
        assert 3600 - len(END) <= len(text) <= 4000
        assert text.startswith("low")
    documents = shuffled.path.read_text().split(END)
    assert documents[-1] == ""
    assert set(documents[:-1]) <= set(DOCUMENTS)
    assert documents[:-1] != sorted(documents[:-1], key=DOCUMENTS.index)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("\n".join(DOCUMENTS), "slice shuffle words slice shuffle"),
        ("ACGT" * 500, "slice words slice words slice"),
    ],
)
def test_lines_are_shuffled_if_there_are_hardly_any_documents(
    book: Path, text: str, kinds: str
) -> None:
    book.write_text(text)
    corpora = drawn()
    assert [str(corpus.name).split("-")[1][:-1] for corpus in corpora] == kinds.split()
    for corpus in corpora:
        if "shuffle" in corpus.name:
            assert set(corpus.path.read_text().splitlines()) <= set(text.splitlines())


def test_seed_today_is_the_date_which_the_record_keeps(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = f"{datetime.now(UTC):%Y%m%d}"
    (record,) = run("data.path=book.txt", "vocab_size=270", "instances=1", "seed=today")
    date = record["data"]["name"].rpartition("-")[2]
    assert date in (before, f"{datetime.now(UTC):%Y%m%d}")
    assert f"seed={date}" in record["overrides"]
    assert main(["--cfg", "job", "seed=today"]) == OK
    assert re.search(r"^seed: \d{8}$", capsys.readouterr().out, re.MULTILINE)


def test_interrupted_run_continues_with_the_same_instances(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    how = ["data.path=book.txt", "vocab_size=270", "instances=3", f"seed={DATE}", "results=r"]
    first = run(*how)
    lines = (tmp_path / "r" / "records.jsonl").read_text().splitlines(keepends=True)
    measured = [number for number, line in enumerate(lines) if '"measurement"' in line[:30]]
    (tmp_path / "r" / "records.jsonl").write_text("".join(lines[: measured[-1]]))

    assert [record["data"] for record in run(*how)] == [record["data"] for record in first]
    assert "continuing the run of" in capsys.readouterr().err
    lines = (tmp_path / "r" / "records.jsonl").read_text().splitlines()
    assert sum('"measurement"' in line[:30] for line in lines) == len(measured)


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ("instances=-1", "instances=-1 is not possible"),
        ("instances=x", "instances=x must be a whole number"),
        ("instances=2 seed=tomorrow", "seed=tomorrow must be a whole number, or today alone"),
        ("instances=2 data=zipf_tinystories", "data=zipf_tinystories is a table of words"),
        ("instances=2 counting=dask", "counting=dask counts a whole text; leave out instances="),
        ("instances=2 experiment=superbpe", "two stages are one run after the other"),
        ("instances=2 data.path=short.txt", "short.txt is too short to draw from"),
    ],
)
def test_what_cannot_be_drawn_is_refused(tmp_path: Path, overrides: str, sentence: str) -> None:
    (tmp_path / "short.txt").write_text("a")
    data = [] if "data" in overrides else ["data.path=book.txt"]
    with pytest.raises(Refusal, match=re.escape(sentence)) as refused:
        run(*data, *overrides.split())
    assert "\n" not in str(refused.value)
    assert not any(files.cache_folder("texts").iterdir())
