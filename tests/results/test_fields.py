"""The one table of fields that everything reads."""

from __future__ import annotations

from typing import Any

import pytest
from measured import changed, measured

from harness.records.file import Record
from harness.results.fields import FIELDS, WORK, Field, cell_of, differences
from harness.results.legend import columns_of
from harness.results.pivot import fields_of
from harness.results.ratios import Ratio, against, incomparable
from harness.results.rows import MEASURED, rows

ANOTHER: dict[str, Any] = {
    "cell": "count",
    "variant": "naive",
    "data.sha256": "cd" * 32,
    "vocab_size": 2000,
    "pattern": "line",
    "special_tokens": ["<s>"],
    "errors": "replace",
    "tie_break": "raw_bytes",
    "min_count": 7,
    "extend": "ef" * 32,
    "inherited": "met",
    "seeds": "[mov]",
    "veto": "superbpe",
    "counting": "native",
    "threads": 8,
    "params": {"push": "grown"},
    "interpreter": "PyPy 3.10.1",
    "host": "11aa22bb",
    "gate.side": "head",
    "gate.tier": "identity",
}
GATED = {"tier": "time", "corpus": "text", "comparison": "heap", "side": "base"}
PLAIN = measured("heap", 1.0)


def another(name: str) -> Record:
    """A record that is another in one field."""
    outer, _, inner = name.partition(".")
    value = ANOTHER[name]
    return changed(PLAIN, **{outer: {**(PLAIN[outer] or GATED), inner: value} if inner else value})


@pytest.mark.parametrize(
    "field", [field for field in FIELDS if field.names_cell], ids=lambda field: field.name
)
def test_a_field_that_names_a_cell_is_known_to_all_who_read_records(field: Field) -> None:
    other = another(field.name)
    assert cell_of(other) != cell_of(PLAIN)
    if field.name == "cell":
        return
    both = rows([PLAIN, other])
    assert len(both) == 2
    contradicting = rows([PLAIN, changed(other, merges_sha256="77" * 32)])
    assert bool(contradicting[0].disputed) != field.decides_merges
    assert (both[0].question != both[1].question) == (field in WORK or field.name == "data.sha256")
    assert field.name in fields_of(both)
    if not field.name.startswith(
        "gate."
    ):  # a record that is not of a gate has neither side nor tier
        assert [difference.field for difference in differences(PLAIN, other)] == [field]
    if field.title:
        assert both[1].texts[field.name] in columns_of(both)[field.title].cells
    if field in WORK:
        assert incomparable(both[1], both[0]) == field.other_work
        pair = against(rows([PLAIN, changed(other, variant="naive")]), "heap")
        assert [each.ratio() for each in pair] == [Ratio(1.0, MEASURED), None]
