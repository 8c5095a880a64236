"""The command of a row measures that row: what it composes to is the cell that the record was made of."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from workbench import first_fast

from harness.common import registry
from harness.runs.cells import cells_of
from harness.runs.command_line import compose
from harness.runs.reproduction import command_of, overrides_of

TEXT = "the cat sat on the mat<|endoftext|>low lower lowest<|endoftext|>newest widest\n" * 20

Record = dict[str, Any]


def cell_record(*said: str) -> Record:
    """What a record says of the one cell that these overrides compose to."""
    composed = compose(said)
    assert composed is not None
    ((cell,),) = [cells_of(each.config, each.said) for each in composed]
    reading = cell.reading
    return {
        "cell": "train",
        "variant": cell.variant.name,
        "params": dict(cell.variant.params),
        "counting": cell.count.counter.name,
        "counting_chosen": cell.counting_chosen,
        "threads": cell.threads,
        "data": {
            "name": reading.file.name,
            "sha256": reading.file.sha256,
            "bytes": reading.file.bytes,
            "skip": reading.file.skip,
            "generated": reading.file.parameters,
        },
        "pattern": None if reading.file.table else reading.pattern_name,
        "pattern_partial": reading.corpus.partial,
        "special_tokens": list(reading.corpus.special_tokens),
        "errors": None if reading.file.table else reading.corpus.errors,
        "tie_break": cell.tie_break,
        "min_count": cell.min_count,
        "vocab_size": cell.vocab_size,
        "limits": {"wall_seconds": cell.limits.wall_seconds},
    }


def some_variants_parameter() -> tuple[str, str, str]:
    """A variant, a parameter of it that is a text, and the value that it has by default."""
    return next(
        (card.name, name, value)
        for card in registry.variants().values()
        for name, value in card.params.items()
        if isinstance(value, str)
    )


@pytest.mark.parametrize(
    "said",
    first_fast(
        [
            ("data.skip=30", "data.documents=3", "tie_break=huggingface", "min_count=2"),
            ("special_tokens=['<|a,b|>',\"it's\"]", "errors=replace", "limits.wall=7.5"),
            (),
            ("data.bytes=400", "threads=2", "vocab_size=300"),
            ("pattern=line", "counting=serial"),
            ("pattern.regex=\\w+| [^']", "pattern.partial=true"),
            ("special_tokens=[]", "counting=native"),
        ],
        2,
        of_one=True,
    ),
    ids=" ".join,
)
def test_the_command_of_a_row_composes_to_its_cell(
    said: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my text, of 'cats'.txt").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    record = cell_record("data.path=my text, of 'cats'.txt", *said)
    program, *overrides = shlex.split(command_of(record).removeprefix("python -m "))
    assert program == "harness"
    assert cell_record(*overrides) == record


def test_what_is_as_usual_is_not_said() -> None:
    record = cell_record("data=ties")
    assert overrides_of(record) == [f"variant={record['variant']}", "data=ties"]


def test_a_counter_that_is_not_its_cards_is_said_whoever_chose_it() -> None:
    """The card may have named another when the record was made."""
    record = {"variant": "heap", "counting": "serial", "counting_chosen": False, "data": {"name": "ties"}}
    assert "counting=serial" in overrides_of(record)


def test_parameters_that_are_not_the_cards_are_said() -> None:
    variant, name, value = some_variants_parameter()
    record = {"variant": variant, "params": {name: "other one"}, "data": {"name": "ties"}}
    assert f"variant.params.{name}='other one'" in overrides_of(record)
    assert not any(name in said for said in overrides_of({**record, "params": {name: value}}))


def test_of_a_generated_set_the_parameters_that_are_not_the_cards_are_said() -> None:
    record = cell_record("data=ties", "data.source.letters=3", "vocab_size=260")
    assert overrides_of(record)[1:] == ["data=ties", "data.source.letters=3", "vocab_size=260"]
    assert cell_record(*overrides_of(record)) == record


def test_a_trainer_of_ones_own_is_named_by_its_target() -> None:
    assert overrides_of({"variant": "my_package.my_module:train", "data": {"name": "book.txt"}}) == [
        "variant._target_=my_package.my_module:train",
        "data.path=book.txt",
    ]


def test_a_slice_of_an_older_record_is_found_again_by_its_length() -> None:
    """Records that do not say where a slice begins: a corpus shorter than its card says was cut."""
    sliced = {"variant": "heap", "data": {"name": "owt", "bytes": 1_000_000}}
    assert "data.bytes=1000000" in overrides_of(sliced)
    whole = registry.cards("data")["owt"]["facts"]["bytes"]
    assert not any("bytes" in said for said in overrides_of({**sliced, "data": {"name": "owt", "bytes": whole}}))


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("CPython 3.11.7", []),
        ("CPython 3.12.1", ["interpreter=python3.12"]),
        ("PyPy 3.10.14", ["interpreter=pypy3"]),
        ("PyPy 3.10.14 (opt/pypy/bin)", ["interpreter=opt/pypy/bin"]),
    ],
)
def test_another_python_is_named(label: str, said: list[str]) -> None:
    record = {"variant": "heap", "interpreter": label, "environment": {"python": "CPython 3.11.7"}}
    assert [override for override in overrides_of(record) if override.startswith("interpreter")] == said


def test_how_often_and_under_which_limits_is_said() -> None:
    record = {
        "variant": "heap",
        "data": {"name": "ties"},
        "measure": "paired",
        "repeat": 3,
        "limits": {"wall_seconds": 60.0, "memory_bytes": 2_000_000_000},
        "affinity": [0, 1],
    }
    said = ["measure=paired", "repeat=3", "limits.wall=60", "affinity=[0,1]"]
    assert overrides_of(record)[2:] == said
    assert overrides_of({**record, "repeat": 10})[2:] == ["measure=paired", *said[2:]]
    assert "limits.memory=2000000000" in overrides_of({**record, "status": "out_of_memory"})


def test_a_counter_alone_is_measured_with_the_default_trainer() -> None:
    record = {"cell": "count", "counting": "native", "threads": 2, "repeat": 3, "data": {"name": "book.txt"}}
    assert command_of(record) == "python -m harness counting=native data.path=book.txt threads=2 repeat=3"
    assert command_of({**record, "counting": "wc -w"}) == "wc -w book.txt"
