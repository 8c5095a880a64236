"""`from harness import run`: a list of records that is a frame and a table as well."""

import re
from pathlib import Path

import pytest
from measured import measured
from workbench import CHECKOUT

from harness import run
from harness.records.schema import PHASES
from harness.results.frame import Records


def test_records_print_as_the_table_and_those_of_counters_stand_apart() -> None:
    counter = measured("serial", 1.0, cell="count", variant=None)
    trainer = measured("heap", 1.5)
    records = Records([counter, trainer])
    assert (list(records), records.counters) == ([trainer], [counter])
    assert records.everything == [counter, trainer]

    caption, _, table = str(records).partition("variant")
    assert "stdlib: 1,000,000 bytes" in caption
    assert "1.50 s" in table
    assert "run_key" not in table
    assert str(Records()) == "no records"


def test_every_column_of_the_frame_is_documented() -> None:
    page = (CHECKOUT / "docs/reference/records.md").read_text().partition("## As a data frame")[2]
    columns = re.findall(r"^\|([^|]*)\|", page, re.MULTILINE)
    documented = set(re.findall(r"`(\w+)`", " ".join(columns)))
    frame = Records([measured("heap", {"read": 1.0, "update": 2.0}, tallies={"own": 5})]).frame()
    assert frame["own"].tolist() == [5]
    assert documented <= set(frame.columns)
    assert set(frame.select_dtypes(exclude="Int64")) <= documented


@pytest.mark.usefixtures("measured_once")
def test_a_run_by_keywords_is_a_frame_and_a_table(here: Path) -> None:
    (here / "a text").write_text("the cat sat on the mat, the cat sat on the hat. " * 9)
    records = run("variants=[heap,naive]", data_path="a text", vocab_size=264, repeat=2)

    frame = records.frame()
    assert sorted(frame["variant"]) == ["heap", "heap", "naive", "naive"]
    assert sorted(frame["block"]) == [0, 0, 1, 1]
    phases = frame.filter([f"{name}_seconds" for name in PHASES])
    assert phases.sum(axis=1).to_numpy() == pytest.approx(frame["total_seconds"].to_numpy())
    assert "naive" in records._repr_html_()
