"""Paths that mean another file in the process that counts: the text that was read is proved."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from workbench import TEXT, first_fast, ran

from harness.records.file import read_records


@pytest.mark.parametrize("way", first_fast(["redirected", "substituted", "linked"]))
def test_stream_is_the_text_that_is_counted_and_proved(tmp_path: Path, way: str) -> None:
    reader, writer = os.pipe()
    os.write(writer, TEXT.encode())
    os.close(writer)
    text = tmp_path / "plain.txt"
    text.write_text(TEXT)
    link = tmp_path / "link"
    link.symlink_to("/dev/stdin")

    path = {"redirected": "/dev/stdin", "substituted": f"/dev/fd/{reader}", "linked": link}[way]
    with text.open("rb") as file:
        stdin: Any = {"redirected": file}.get(way, reader)
        overrides = (f"data.path={path}", "vocab_size=262", "results=results")
        done = ran(tmp_path, "-m", "harness", *overrides, stdin=stdin, pass_fds=[reader])
    os.close(reader)

    assert done.returncode == 0
    record = read_records([tmp_path / "results"])[-1]
    assert record["data"]["sha256"] == hashlib.sha256(TEXT.encode()).hexdigest()
    assert (record["merges"], record["identity"]["kind"]) == (5, "identical")
