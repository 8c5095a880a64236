"""What is told of a file that is read as it is, though its reader may have meant something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.__main__ import main
from harness.common.errors import OK
from harness.corpora.files import hints

pytestmark = pytest.mark.usefixtures("measured_once")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("text.txt", b"plain text, \xe4\xb8\x80", ""),
        ("text.txt", b"", ""),
        ("mark.txt", b"\xef\xbb\xbfplain", "starts with a byte order mark"),
        ("wide.txt", "plain text".encode("utf-16-le"), "may be UTF-16; iconv"),
        ("rows.CSV", b"id,text\n1,low", "is read as plain text, with its headings"),
    ],
)
def test_probable_mistakes_are_reported(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    sentences = hints(tmp_path / name, name)
    assert [message in sentence for sentence in sentences] == [True] * bool(message)


def test_a_run_reports_them_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "book.csv").write_text("low lower lowest newer " * 100)
    arguments = ["-m", "variants=[heap,naive]", "data.path=book.csv", "data.bytes=200,300", "vocab_size=260"]
    assert main([*arguments, "measure=proof"]) == OK
    assert capsys.readouterr().out.count("read as plain text") == 1
