"""Fuzz the readers of what others wrote, guided by coverage: needs the package `atheris`.

    python tests/support/fuzzed_doors.py record FOLDER -max_total_time=600

FOLDER keeps the inputs that reached new code, and `crash-...` in the working folder is what a reader
did not refuse in a sentence. Such an input becomes a row of that reader's tests.
"""

import io
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["harness"]):
    from harness.common import registry
    from harness.common.errors import Refusal
    from harness.proof.outside import check_certificate
    from harness.proof.prove import digest_line
    from harness.records.lines import decoded_line
    from harness.tokenizer import train
    from harness.tokenizers import forms
    from harness.tokenizers.folder import parse

CHECKOUT = Path(__file__).parents[2]
FOLDER = Path(tempfile.mkdtemp())
FILE = FOLDER / "given"


def as_file(read: Callable[[Path], object]) -> Callable[[bytes], None]:
    """A reader of files as one of bytes, which may refuse them."""

    def read_bytes(content: bytes) -> None:
        FILE.write_bytes(content)
        try:
            read(FILE)
        except Refusal as refusal:
            if "\n" in str(refusal):
                raise

    return read_bytes


def certificate(content: bytes) -> None:
    """A table and a certificate of it, parted by a byte of zero; their digests are right."""
    table, _, body = content.partition(b"\0")
    digest = digest_line(table)[len("sha256 ") :]
    body = b"bpe-certificate 1\ntable %d %s%s" % (len(table), digest, body)
    claims = FILE.with_suffix(".certificate")
    FILE.write_bytes(table)
    claims.write_bytes(body + digest_line(body))
    with redirect_stdout(io.StringIO()):
        try:
            check_certificate.check(str(FILE), str(claims))
        except SystemExit as ended:
            if ended.code not in (0, 1, 2):
                raise


DOORS: dict[str, Callable[[bytes], object]] = {
    "tokenizer_json": as_file(lambda path: parse(path, forms.read_tokenizer_json)),
    "merges": as_file(forms.read_merges_file),
    "ranks": as_file(lambda path: parse(path, forms.from_ranks)),
    "card": as_file(lambda path: registry.checked_card("data", path)),
    "experiment": as_file(lambda path: registry.checked_card("experiment", path)),
    "record": decoded_line,
    "certificate": certificate,
}


def seeds(door: str) -> list[bytes]:
    """Sound inputs of a door, from which others are made."""
    if door in ("card", "experiment"):
        group = "data" if door == "card" else door
        return [path.read_bytes() for path in CHECKOUT.glob(f"conf/{group}/*.yaml")]
    if door == "record":
        stored = CHECKOUT / "results" / "readme" / "ladder" / "records.jsonl"
        return stored.read_bytes().splitlines()[:40]
    if door == "certificate":
        table = b"3 6c6f77\n2 6c6f776572\n"
        body = b"tie_break %s\nmin_count 1\nwanted 2\n108 111\n256 119\n"
        rules = (b"greatest_bytes", b"smallest_bytes", b"huggingface", b"raw_bytes")
        return [table + b"\0" + body % rule for rule in rules]

    text = FOLDER / "text"
    text.write_text("low low lower newest widest\n")
    train(text, 270).save(FOLDER / "saved")
    return [path.read_bytes() for path in (FOLDER / "saved").iterdir()]


def main() -> None:
    """Fuzz the door that the first argument names, from the seeds that it writes to the folder that
    the second does; the others are libFuzzer's own.
    """
    door = sys.argv.pop(1)
    for number, content in enumerate(seeds(door)):
        Path(sys.argv[1], f"seed-{number}").write_bytes(content)

    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the checker writes to it
    atheris.Setup(sys.argv, DOORS[door])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
