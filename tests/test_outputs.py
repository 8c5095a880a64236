"""Where a command may write: over nothing that it reads, and over nothing that somebody else makes
at the same time.
"""

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from rows import Row, each_row, write_files
from workbench import Call, contents, damage, ran

from harness.__main__ import main
from harness.common.errors import OK, UNMEASURED, USAGE
from harness.tokenizer import train

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture(autouse=True)
def folder(here: Path) -> None:
    names = ("repeats.jsonl", "other.jsonl", "new/records.jsonl")
    files = dict.fromkeys(names, (FIXTURES / "records" / "repeats.jsonl").read_text())
    texts = {"text.txt": "low low lower newest\n", "other.txt": "low low\n"}
    rows = {"rows.jsonl": '{"text": "low low lower"}\n', "seeds.txt": '"low"\n'}
    write_files(here, {**files, **texts, **rows})
    shutil.copytree(FIXTURES / "command_rows" / "folder" / "gate_pass", here / "gate_pass")
    train(here / "text.txt", 262).save("saved")


def refused(command: str, call: Call) -> str:
    """The sentence of a command that is refused, and changes nothing."""
    before = contents(Path())
    ended = call(command)
    assert ended.code in (USAGE, UNMEASURED), ended
    assert ended.out == ""
    assert len(ended.err.splitlines()) == 1
    assert contents(Path()) == before
    return ended.err


@pytest.mark.parametrize("link", [os.symlink, os.link])
@each_row(__file__, "outputs.toml")
def test_no_input_is_an_output(row: Row, link: Any, call: Call) -> None:
    path = Path(row.get("side") or row["output"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    link(Path(row["input"]).absolute(), path)
    sentence = refused(row["run"].format(**row), call)
    assert " an input of this command; choose another " in sentence
    assert "overwrite" not in sentence


@pytest.mark.parametrize(
    "command",
    [
        "tokenizer encode saved --data rows.json --output rows.json",
        "tokenizer encode saved --data corpus.bin.json --output corpus.bin",
        "tokenizer encode saved --data corpus.bin.json --output corpus.bin --overwrite",
        "tokenizer train saved/merges.txt --vocab-size 262 --save saved",
        "tokenizer convert saved --to gpt2 --output saved --overwrite",
        "tokenizer train . --vocab-size 262 --save new/tokenizer",
        "tokenizer encode saved --data texts --output texts/deep/ids.npy",
        "variant=heap data.path=texts vocab_size=262 results=texts/results",
        "corpora counts texts --table texts/words",
    ],
)
def test_no_message_advises_to_replace_an_input(command: str, call: Call) -> None:
    rows = dict.fromkeys(("rows.json", "corpus.bin.json"), '{"text": "low low"}\n')
    write_files(Path(), {**rows, "texts/a.txt": "low low"})
    assert "replace" not in refused(command, call)


@pytest.mark.parametrize(
    "output", ["/dev/full", "/dev/stdout", "/dev/null", "/proc/self/fd/1", "pipe", "saved"]
)
def test_an_output_is_a_plain_file(output: str, call: Call) -> None:
    os.mkfifo("pipe")
    for command in (
        "corpora counts text.txt --table {}",
        "replay saved/merges.txt --data text.txt --certificate {}",
        "variant=heap data.path=text.txt vocab_size=262 certificate={} overwrite=true",
        "table repeats.jsonl --format csv --output {}",
    ):
        sentence = refused(command.format(output), call)
        assert "not a file); choose another place" in sentence, command
    if output != "saved":
        for command in (
            "tokenizer train text.txt --vocab-size 262 --save {} --overwrite",
            "variant=heap data.path=text.txt vocab_size=262 save={}",
            "variant=heap data.path=text.txt vocab_size=262 results={}",
        ):
            assert output in refused(command.format(output), call)


@pytest.mark.parametrize(
    ("command", "written"),
    [
        ("tokenizer train text.txt --vocab-size 262 --save new/mine", "new/mine"),
        ("tokenizer encode saved --data text.txt --output ids.npy", "ids.npy"),
        ("tokenizer cut saved --vocab-size 258,260 --output cut", "cut/258"),
        ("records merge repeats.jsonl --output merged", "merged/records.jsonl"),
        ("records export repeats.jsonl --output all.csv", "all.csv"),
    ],
)
def test_what_was_written_is_whole_if_nobody_can_be_told(command: str, written: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = ran(Path(), "-m", "harness", *command.split(), stdout=full)
    assert done.returncode == UNMEASURED
    assert "; every file that it has written is whole\n" in done.stderr
    assert Path(written).exists()


def test_an_output_by_a_link_is_what_the_link_names(call: Call) -> None:
    Path("elsewhere").mkdir()
    Path("ids.bin").symlink_to("elsewhere/mine.bin")
    assert call("tokenizer encode saved --data text.txt --output ids.bin").code == OK
    assert Path("ids.bin").is_symlink()
    assert {path.name for path in Path("elsewhere").iterdir()} == {"mine.bin", "mine.bin.json"}
    assert call("tokenizer decode saved ids.bin").out == Path("text.txt").read_text()


@pytest.mark.parametrize("how", ["empty", "zeros", "half", "removed", "older"])
def test_a_file_that_a_power_cut_changed_is_named(how: str, call: Call) -> None:
    """Each file of each output by itself, which may also be the one of an earlier output."""
    Path("earlier.txt").write_text("newest newest\n")
    for folder, text in (("now", "text.txt"), ("earlier", "earlier.txt")):
        for command in (
            f"tokenizer train {text} --vocab-size 258 --save {folder}/tokenizer",
            f"tokenizer encode {folder}/tokenizer --data {text} --output {folder}/ids.bin",
            f"corpora counts {text} --parquet {folder}/words.parquet",
        ):
            assert main(command.split()) == OK

    readers = {
        "tokenizer": "tokenizer encode now/tokenizer newest",
        "ids": "tokenizer decode now/tokenizer now/ids.bin",
        "words": "variant=heap data=words data.path=now/words.parquet vocab_size=258",
    }
    for name, content in contents(Path("now")).items():
        path = Path("now", name)
        if path.name == "tokenizer_config.json" or (how, path.name) in READ_WITHOUT:
            continue
        if how == "older":
            shutil.copy(Path("earlier", name), path)
        else:
            damage(path, how)
        reader = readers[re.split("[./]", name)[0]]
        assert path.name in refused(reader, call)
        path.write_bytes(content)


READ_WITHOUT = [("removed", "manifest.json"), ("older", "words.parquet")]
"""What the other files say as well, and a whole output of its own. Only transformers reads the
configuration.
"""


@pytest.mark.parametrize(
    "command",
    [
        "tokenizer train text.txt --vocab-size 262 --save new/mine",
        "tokenizer train text.txt --vocab-size 262 --save empty",
        "tokenizer train text.txt --vocab-size 262 --save texts",
        "tokenizer encode saved --data text.txt --output new/ids.npy",
        "tokenizer encode saved --data text.txt --output new/ids.bin",
        "replay saved/merges.txt --data text.txt --certificate new/certificate",
    ],
)
def test_of_two_commands_at_once_one_is_told_that_the_output_exists(command: str) -> None:
    Path("empty").mkdir()
    write_files(Path(), {"texts/README": "mine"})
    done = ran(Path(), "-c", TOGETHER, *command.split())
    assert done.stdout.splitlines()[-1] == "[0, 2]", done.stderr
    assert " already" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(Path().rglob(".bpe-*"))


TOGETHER = """
import os, sys
from harness.__main__ import main
from harness.common import files
from harness.tokenizers import folder

ready, ready_end = os.pipe()
go, go_end = os.pipe()
children = []
for _ in range(2):
    child = os.fork()
    if child == 0:
        def wait(*given, old=files.sync):
            if not waited:
                waited.append(True)
                os.write(ready_end, b".")
                os.read(go, 1)
            old(*given)
        waited = []
        files.sync = folder.sync = wait
        os._exit(main(sys.argv[1:]))
    children.append(child)
for _ in children:
    os.read(ready, 1)
os.write(go_end, b"..")
print(sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""
"""Two processes that write one output; both have looked before either has put it in place."""
