"""The one table of fields that everything reads."""

from typing import Any

import pytest
from measured import changed, measured
from rows import rows_beside

from harness.records.file import Record
from harness.results.fields import FIELD, FIELDS, WORK, cell_of
from harness.results.frame import names_of_benchmarks
from harness.results.ratios import against
from harness.results.rows import rows
from harness.results.tables import fields_of
from harness.results.writing import differing_columns

ROWS = rows_beside(__file__, "fields.toml")
GATED = {"tier": "time", "corpus": "text", "comparison": "heap", "side": "base"}
PLAIN = measured("heap", 1.0, counting_chosen=True)


def another(name: str, value: Any) -> Record:
    """A record that is another in one field."""
    outer, _, inner = {"data": "data.name"}.get(name, name).partition(".")
    return changed(PLAIN, **{outer: {**(PLAIN[outer] or GATED), inner: value} if inner else value})


def test_every_field_that_names_a_cell_has_a_row() -> None:
    assert [row.id for row in ROWS] == [field.name for field in FIELDS if field.names_cell]


@pytest.mark.parametrize("row", ROWS)
def test_field_that_names_a_cell_is_known_to_all_who_read_records(row: dict[str, Any]) -> None:
    field, other = FIELD[row["title"]], another(row["title"], row["value"])
    assert cell_of(other) != cell_of(PLAIN)
    if field.name == "cell":
        return

    both = rows([PLAIN, other])
    assert len(both) == 2
    names = names_of_benchmarks(both)
    assert (names[0] != names[1]) != field.name.startswith("gate.")
    contradicting = rows([PLAIN, changed(other, merges_sha256="77" * 32)])
    assert bool(contradicting[0].disputed) != field.decides_merges
    assert (both[0].question != both[1].question) == (
        field in WORK or field.name in ("data", "data.sha256")
    )

    assert field.name in fields_of(both)
    if field.title:
        assert both[1].texts[field.name] in differing_columns(both)[field.title].cells
    if field in WORK:
        pair = against(rows([PLAIN, changed(other, variant="naive")]), "heap")
        assert [each.base for each in pair] == [each.row for each in pair], "each is a task"
