"""The studies in results/: they print the tables of their pages, and judge published programs by
records alone.
"""

import math
import random
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from measured import records_of, stored
from rows import Row, each_row
from workbench import CHECKOUT, first_fast, ran

from harness.common import registry
from harness.common.comparison import differ, interval

RESULTS = CHECKOUT / "results"


def script(name: str) -> Any:
    return SimpleNamespace(**runpy.run_path(str(RESULTS / name)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    ["aa_study/study.py", "gate_self_test/self_test.py", "gate_self_test/self_test.py --cards"],
)
def test_study_prints_the_tables_of_its_page(line: str) -> None:
    """The gate's: no false alarm in 800 comparisons, and +5 % found in 100 of 100. A page of the
    documentation has a table of the study of A/A.
    """
    command = line.split()
    printed = ran(RESULTS, *command).stdout
    page = (RESULTS / command[0]).with_name("README.md").read_text()
    measuring = (CHECKOUT / "docs/explanation/measuring.md").read_text()
    tables = printed.rstrip().split("\n\n")
    assert "| " in printed
    assert [table for table in tables if table not in page] == []
    assert any(table in measuring for table in tables) == line.startswith("aa_study")


@pytest.mark.parametrize("blocks", first_fast([6, 3, 10, 30]))
def test_study_has_the_rule_of_the_harness(blocks: int) -> None:
    study, draw = script("aa_study/study.py"), random.Random(blocks)
    for _ in range(200):
        first, second = ([draw.lognormvariate(0, 0.02) for _ in range(blocks)] for _ in range(2))
        ratios = [math.log(later / earlier) for earlier, later in zip(first, second, strict=True)]
        low, high = interval(ratios)
        known = low is not None and high is not None and differ(math.exp(low), math.exp(high))
        assert study.paired_apart(first, second) == known


# The published programs

PUBLISHED = script("published/published.py")
CLAIMS: list[dict[str, Any]] = PUBLISHED.read("claims.yaml")["claims"]
PROGRAMS: list[dict[str, Any]] = PUBLISHED.read("series.yaml")["programs"]


@each_row(__file__, "claims.toml")
def test_claims_are_judged_by_records(
    row: Row, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(tmp_path / "records.jsonl", records_of(row["mine"]))
    part = ["--part", str(row["part"])] if "part" in row else []
    assert PUBLISHED.main([str(tmp_path), *part]) == row.get("exit", 0)
    out = capsys.readouterr().out
    assert [text for text in row.get("out", []) if text not in out] == []
    assert [text for text in row.get("lacks", []) if text in out] == []


def test_every_claim_is_measured_by_an_experiment_and_borne_out_by_published_figures() -> None:
    variants: set[str] = set()
    for name in ("series_python", "series_cpp", "issue_1400", "ladder", "board"):
        card = yaml.safe_load((RESULTS.parent / f"conf/experiment/{name}.yaml").read_text())
        variants.update(variant.name for variant in registry.select(card["variants"]))

    programs = {program["program"]: program for program in PROGRAMS}
    for claim in CLAIMS:
        for side in ("slow", "fast"):
            name = claim[side]
            assert programs.get(name, {"variant": name})["variant"] in variants, claim["says"]
        theirs = PUBLISHED.judge(claim, programs, []).theirs
        has_source = claim[side] in programs and claim["quantity"] != "memory"
        assert (theirs is not None) == has_source, claim["says"]
        assert theirs is None or theirs >= claim["factor"] >= 1, claim["says"]


def test_every_program_is_a_variant_that_exists_with_parameters_that_it_takes() -> None:
    known = {"program", "part", "variant", "params", "threads", "counting", "note", "figures"}
    known.add("merges_only")
    for program in PROGRAMS:
        assert program.keys() <= known
        card = registry.variants()[program["variant"]]
        assert {"series", "peer"} & set(card.tags), program
        assert program.get("params", {}).keys() <= card.params.keys(), program
        assert program.get("counting", "serial") in registry.counters(), program
        assert program.get("note") or program.get("figures"), program

    mapped = {program["variant"] for program in PROGRAMS}
    for card in registry.variants().values():
        assert not {"cpp", "series"} <= set(card.tags) or card.name in mapped
