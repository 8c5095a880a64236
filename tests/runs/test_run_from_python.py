"""`from harness import run`: keywords beside strings, and a list of records that is a frame and a
table as well.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from measured import measured

from harness import run
from harness.common.errors import Refusal
from harness.records.schema import PHASES
from harness.results.frame import Records
from harness.runs.compose import compose, overrides_of

pytestmark = pytest.mark.usefixtures("measured_once")

REPOSITORY = Path(__file__).parents[2]


def composed(**settings: Any) -> dict[str, Any]:
    (one,) = compose(overrides_of(settings))
    return asdict(one.values)


def test_values_arrive_unchanged_with_an_underscore_for_each_dot() -> None:
    special_tokens = ("<|a,b|>", "it's", 'say "x"', "[", "${HOME}", "ö")
    config = composed(
        special_tokens=special_tokens,
        data_path=["a, b.txt", "c.txt"],
        pattern_regex="'a'|(?:b,c)=[d]",
    )
    assert config["special_tokens"] == list(special_tokens)
    assert config["data"]["path"] == "['a, b.txt',c.txt]"
    assert config["pattern"]["regex"] == "'a'|(?:b,c)=[d]"
    config = composed(variants=["heap", "naive"], limits_wall=1.5, interpreter="/a b/it's", seed=-1)
    assert (config["variants"], config["seed"]) == (["heap", "naive"], -1)
    assert (config["limits"]["wall"], config["interpreter"]) == (1.5, "/a b/it's")
    given: dict[str, Any] = {
        "data.path": Path("a b.txt"),
        "limits_memory": "2GB",
        "variant_params_push": "grown",
    }
    config = composed(experiment="ladder", special_tokens=[], rerun=True, save=None, **given)
    assert (config["data"]["path"], config["limits"]["memory"]) == ("a b.txt", "2GB")
    assert (config["rerun"], config["save"], config["special_tokens"]) == (True, None, [])
    assert config["variant"]["params"]["push"] == "grown"
    assert len(config["variants"]) > 2


def test_invalid_settings_are_refused() -> None:
    with pytest.raises(
        Refusal, match=re.escape("unknown override 'limits.wal'; did you mean limits.wall?")
    ):
        composed(limits_wal=3)
    with pytest.raises(Refusal, match="cannot split special_tokens="):
        composed(special_tokens=["'\""])


def test_records_print_as_the_table_and_those_of_counters_stand_apart() -> None:
    caption, _, table = str(Records([measured("heap", 1.5)])).partition("variant")
    assert "stdlib: 1,000,000 bytes" in caption
    assert "1.50 s" in table
    assert "run_key" not in table
    assert str(Records()) == "no records"
    counter, trainer = measured("serial", 1.0, cell="count", variant=None), measured("heap", 1.0)
    records = Records([counter, trainer])
    assert (list(records), records.counters, records.everything) == (
        [trainer],
        [counter],
        [counter, trainer],
    )


def test_every_column_of_the_frame_is_documented() -> None:
    page = (
        (REPOSITORY / "docs" / "reference" / "records.md")
        .read_text()
        .partition("## As a data frame")[2]
    )
    documented = {
        name
        for row in re.findall(r"^\|([^|]*)\|", page, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }
    frame = Records([measured("heap", {"read": 1.0, "update": 2.0}, tallies={"own": 5})]).frame()
    unsaid = {
        name for name in frame.columns if name not in documented and frame[name].dtype != "Int64"
    }
    assert unsaid == set()
    assert documented <= set(frame.columns)
    assert frame["own"].tolist() == [5]


def test_a_run_by_keywords_is_a_frame_and_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a text").write_text("the cat sat on the mat, the cat sat on the hat. " * 9)
    records = run(
        "variants=[heap,naive]", data_path="a text", vocab_size=264, repeat=2, special_tokens=[]
    )
    frame = records.frame()
    assert sorted(zip(frame["variant"], frame["block"], strict=True)) == [
        (name, block) for name in ("heap", "naive") for block in (0, 1)
    ]
    phases = [f"{name}_seconds" for name in PHASES if f"{name}_seconds" in frame]
    assert frame[phases].sum(axis=1).to_numpy() == pytest.approx(frame["total_seconds"].to_numpy())
    shown = records._repr_html_()
    assert all(name in shown for name in ("<style>", "heap", "naive", "update"))
    assert "<body" not in shown
