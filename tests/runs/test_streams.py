"""Paths that mean another file in the process that counts: nothing is kept or proved but of the text
that was read.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from workbench import CHECKOUT, TEXT, cell_of, ran, reading_of, run_of, unruly_counter

from harness.common.errors import Refusal
from harness.corpora.local import members_of
from harness.records.file import Record, read_records
from harness.worker import exchange
from variants.contract import WordCounts


def trained_on(folder: Path, path: str, **process: Any) -> Record:
    """The record of heap on a stream, by the command."""
    overrides = ("variant=heap", f"data.path={path}", "vocab_size=262", "results=results")
    assert ran(folder, "-m", "harness", *overrides, **process).returncode == 0
    return read_records([folder / "results"])[-1]


@pytest.mark.parametrize("way", ["redirected", "piped", "substituted", "linked"])
def test_stream_is_the_text_that_is_counted_and_proved(tmp_path: Path, way: str) -> None:
    text = tmp_path / "plain.txt"
    text.write_text(TEXT)
    if way == "redirected":
        with text.open("rb") as file:
            record = trained_on(tmp_path, "/dev/stdin", stdin=file)
    elif way == "piped":
        record = trained_on(tmp_path, "/proc/self/fd/0", input=TEXT)
    elif way == "substituted":
        reader, writer = os.pipe()
        os.write(writer, TEXT.encode())
        os.close(writer)
        record = trained_on(tmp_path, f"/dev/fd/{reader}", pass_fds=[reader])
        os.close(reader)
    else:
        (tmp_path / "link").symlink_to("/dev/stdin")
        record = trained_on(tmp_path, "link", input=TEXT)
    assert record["data"]["sha256"] == hashlib.sha256(TEXT.encode()).hexdigest()
    assert (record["merges"], record["identity"]["kind"]) == (5, "identical")


def test_folder_of_streams_is_refused() -> None:
    with pytest.raises(Refusal, match="is not a folder of texts"):
        members_of("/proc/self")


def test_words_of_another_file_are_neither_kept_nor_proved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT / "tests/support"))
    reading = reading_of(tmp_path)
    cell = cell_of(reading, counter=unruly_counter("counter_of_another_file"))
    counted, trained = run_of(tmp_path, [cell]).records()
    assert reading.file.path.read_text() == TEXT
    assert (counted["status"], trained["status"]) == ("error", "error")
    assert "text.txt was changed while it was read" in counted["reason"]
    assert reading.words() is None


def test_words_kept_by_an_earlier_version_are_counted_again(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    exchange.write_words(reading.folder, WordCounts.from_items([]))
    manifest = reading.folder / exchange.MANIFEST
    manifest.write_text(manifest.read_text().replace(f'"format": {exchange.FORMAT}', '"format": 3'))
    assert reading.words() is None
