"""instances=N draws texts that nobody knows before the seed, and the same ones again."""

from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import pytest
from fetched import END
from workbench import cells

from harness import run
from harness.corpora import CorpusFile
from harness.runs.resume import ImportedFiles

DOCUMENTS = [f"low{number} lower {number * 7919 % 1000} newest\n" for number in range(400)]
DATE = "20261127"
pytestmark = pytest.mark.usefixtures("measured_once")


@pytest.fixture(autouse=True)
def book(here: Path) -> Path:
    """A text of documents in the current folder."""
    (here / "book.txt").write_text(END.join(DOCUMENTS))
    return here / "book.txt"


def drawn(*overrides: str, number: int = 5) -> list[CorpusFile]:
    planned = cells("data.path=book.txt", f"instances={number}", "vocab_size=300", *overrides)
    return [cell.reading.file for cell in planned]


def test_instances_are_corpora_of_records_and_an_interrupted_run_draws_them_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    how = ["data.path=book.txt", "vocab_size=265", "results=r", "instances=4"]
    before = f"{datetime.now(UTC):%Y%m%d}"
    with mock.patch.object(ImportedFiles, "forget"):  # as in a run that does not reach its end
        records = run(*how, "seed=today")
    date = records[0]["data"]["name"].rpartition("-")[2]
    assert before <= date <= f"{datetime.now(UTC):%Y%m%d}"
    assert f"seed={date}" in records[0]["overrides"]

    names = [f"book.txt-{kind}-{date}" for kind in ("slice1", "shuffle2", "slice3", "shuffle4")]
    assert [record["data"]["name"] for record in records] == names
    assert len({record["data"]["sha256"] for record in records}) == 4
    recipe = {"instance": "slice", "of": "book.txt", "drawn_by": int(date), "number": 3}
    assert records[2]["data"]["generated"] == recipe

    path = tmp_path / "r" / "records.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines) if '"measurement"' in line[:30])
    path.write_text("".join(lines[:last]))
    again = run(*how, f"seed={date}")
    assert [record["data"] for record in again] == [record["data"] for record in records]
    assert "continuing the run of" in capsys.readouterr().err


def test_a_date_draws_the_same_again_and_another_date_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = [file.sha256 for file in drawn(f"seed={DATE}")]
    assert not any(file.sha256 in first for file in drawn("seed=20261128"))
    monkeypatch.setenv("BPE_HARNESS_CACHE", str(tmp_path / "cache of another machine"))
    assert [file.sha256 for file in drawn(f"seed={DATE}", number=4)] == first[:4]


def test_one_word_has_slices_only(book: Path) -> None:
    book.write_text("ACGT" * 500)
    names = [str(corpus.name) for corpus in drawn(f"seed={DATE}", "data.bytes=4kB")]
    assert [name.split("-")[1] for name in names] == [f"slice{number}" for number in range(1, 6)]


@pytest.mark.parametrize("end", [END, "\n"])
def test_slices_and_shuffles_are_of_the_documents_or_the_lines_of_the_text(
    book: Path, end: str
) -> None:
    documents = [document.rstrip() for document in DOCUMENTS]
    whole = end.join(documents)
    book.write_text(whole)
    corpora = drawn(f"seed={DATE}", "data.bytes=4kB")
    assert ["slice" in corpus.name for corpus in corpora] == [True, False, True, False, True]

    for corpus in corpora:
        text = corpus.path.read_text()
        if "slice" in corpus.name:
            assert text in whole
            assert text.startswith("low")
            assert 3600 - len(END) <= len(text) <= 4000
        else:
            *shuffled, last = text.split(end)
            assert last == ""
            assert set(shuffled) <= set(documents)
            assert shuffled != sorted(shuffled, key=documents.index)
