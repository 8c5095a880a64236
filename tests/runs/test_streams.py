"""Paths that mean another file in the process that counts: the text that was read is proved."""

import hashlib
import os
from pathlib import Path

import pytest
from workbench import TEXT, first_fast, ran, written

from harness.records.file import read_records


@pytest.mark.parametrize("path", first_fast(["/dev/stdin", "/dev/fd/{}", "link"]))
def test_stream_is_the_text_that_is_counted_and_proved(tmp_path: Path, path: str) -> None:
    """A file that a shell redirects, a pipe that it opens as <(...), and a link to a pipe."""
    (tmp_path / "link").symlink_to("/dev/stdin")
    reader, writer = os.pipe()
    os.write(writer, TEXT.encode())
    os.close(writer)
    with written(tmp_path, TEXT).open("rb") as file:
        overrides = (f"data.path={path.format(reader)}", "vocab_size=262", "results=results")
        stdin = file if path == "/dev/stdin" else reader
        done = ran(tmp_path, "-m", "harness", *overrides, stdin=stdin, pass_fds=[reader])
    os.close(reader)

    assert done.returncode == 0
    record = read_records([tmp_path / "results"])[-1]
    assert record["data"]["sha256"] == hashlib.sha256(TEXT.encode()).hexdigest()
    assert (record["merges"], record["identity"]["kind"]) == (5, "identical")
