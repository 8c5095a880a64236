"""profile=cprofile runs each trainer once more under it, and names the files that it left."""

import re
from pathlib import Path

import pytest
from workbench import Call

from harness.records.file import read_records


@pytest.mark.slow
@pytest.mark.usefixtures("measured_once")
def test_cprofile_leaves_a_table_of_the_functions_of_each_trainer(
    book: str, here: Path, call: Call
) -> None:
    (here / "mine.py").write_text("from variants.heap import train\nother = train\n")
    variants = "variants=naive,mine:train,mine:other"
    ended = call(f"{variants} vocab_size=270 profile=cprofile repeat=2", book)
    assert ended.code == 0
    named = re.findall(r"^profile of (\S+) on \S+: ([^,\n]*)", ended.out, re.M)
    tables = {variant: Path(name) for variant, name in named}
    assert len(set(tables.values())) == 3

    naive = tables["naive"].read_text()
    assert re.search(r" \d+\.\d+ +naive\.py:\d+\(train\)$", naive, re.M)
    assert str(here) not in naive
    assert tables["naive"].with_suffix(".prof").stat().st_size > 0
    assert "heapq" in tables["mine:train"].read_text()
    assert sum(record.trains for record in read_records(["results/local"])) == 6
