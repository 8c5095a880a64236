"""Measuring, recording and judging. From Python: `from harness import run`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.results.frame import Records

__all__ = ["__version__", "read", "run"]


def __getattr__(name: str) -> str:
    """`__version__`, looked up on first use: a measured process imports this package and never
    needs it.
    """
    if name == "__version__":
        from importlib.metadata import version

        return version("bpe-harness")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def run(*overrides: str, **settings: Any) -> Records:
    """Measure what the overrides and settings say, as `python -m harness` would, and return the
    trainers' records.

    `run(variants=["naive", "heap"], data_path="book.txt", vocab_size=10_000)` is the same as
    `run("variants=naive,heap", "data.path=book.txt", "vocab_size=10000")`: a keyword is the
    override's name with an underscore for each dot, its value a text, a number, True, False, None
    or a list. What comes back is a list of records with `frame()` for pandas and the counters' own
    records in `counters`; a notebook shows it as the table. A record is a read-only mapping of the
    keys of docs/reference/records.md. Raises harness.common.errors.Refusal
    where the command would end with a sentence; a variant that fails is a record with its status.
    """
    # Imported late: the measured process imports this package too, and must stay small.
    from harness.results.frame import Records
    from harness.runs.overrides import overrides_of
    from harness.runs.run import run_command

    records: list[Any] = []
    run_command([*overrides, *overrides_of(settings)], lambda measured, _: records.extend(measured))
    return Records(records)


def read(*paths: str) -> Records:
    """The records in files, or in folders of results, as `run` returns them: `frame()` is a pandas
    data frame.

    Raises harness.common.errors.Refusal for a file that cannot be read.
    """
    from harness.records.file import read_records
    from harness.results.frame import Records

    return Records(read_records(paths))
