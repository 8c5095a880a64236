"""The studies in results/: they print the tables of their pages, and judge published programs by
records alone.
"""

from __future__ import annotations

import importlib.util
import math
import random
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from measured import changed, measured, stored

from harness.common import registry
from harness.common.comparison import differ, interval
from harness.records.file import Record

RESULTS = Path(__file__).parents[2] / "results"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(name).stem, RESULTS / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.slow)
        for path in ("aa_study/study.py", "gate_self_test/self_test.py")
    ],
)
def test_a_study_prints_the_tables_of_its_page(path: str) -> None:
    """The gate's: no false alarm in 800 comparisons, and +5 % found in 100 of 100."""
    printed = subprocess.run(
        [sys.executable, str(RESULTS / path)], capture_output=True, text=True, check=True
    ).stdout
    page = (RESULTS / path).with_name("README.md").read_text()
    tables = printed.rstrip().split("\n\n")
    assert len(tables) > 1
    assert [table for table in tables if table not in page] == []


@pytest.mark.slow
def test_the_table_in_the_explanation_is_that_of_the_study() -> None:
    page, study = (
        (RESULTS.parent / "docs/explanation/measuring.md").read_text(),
        script("aa_study/study.py"),
    )
    studies = {
        name: study.read_pairs(RESULTS / f"aa_study/{name}.jsonl") for name in ("quiet", "busy")
    }
    assert "\n".join(study.rules_table(studies, "net")) in page


@pytest.mark.slow
def test_table_of_what_the_cards_see_is_that_of_the_records(
    capsys: pytest.CaptureFixture[str],
) -> None:
    script("gate_self_test/self_test.py").show_cards(RESULTS / "gate_self_test")
    page = (RESULTS.parent / "docs/how-to/gate.md").read_text()
    assert capsys.readouterr().out in page


@pytest.mark.parametrize(("kind", "state"), [("same", "pass"), ("+5%", "regression")])
def test_the_gate_judges_stored_blocks_as_it_did(kind: str, state: str) -> None:
    self_test = script("gate_self_test/self_test.py")
    blocks = self_test.read_blocks(RESULTS / "gate_self_test", "quiet")[:360]
    rule = self_test.read_gate_card("usual").time
    states = {found for found, _ in self_test.runs(rule, blocks, kind)}
    assert states == {state}


@pytest.mark.parametrize("blocks", [3, 6, 10, 30])
def test_the_study_has_the_rule_of_the_harness(blocks: int) -> None:
    study, draw = script("aa_study/study.py"), random.Random(blocks)
    for _ in range(200):
        first, second = ([draw.lognormvariate(0, 0.02) for _ in range(blocks)] for _ in range(2))
        low, high = interval(
            [math.log(later / earlier) for earlier, later in zip(first, second, strict=True)]
        )
        known = low is not None and high is not None and differ(math.exp(low), math.exp(high))
        assert study.paired_apart(first, second) == known


# The published programs: each has a variant that exists, and their claims are judged by records and
# nothing else.

SERIES = RESULTS / "published" / "series.yaml"
SCRIPT = runpy.run_path(str(SERIES.with_name("published.py")))
CLAIMS: list[dict[str, Any]] = yaml.safe_load(SERIES.with_name("claims.yaml").read_text())["claims"]
PROGRAMS: list[dict[str, Any]] = yaml.safe_load(SERIES.read_text())["programs"]


def test_every_claim_is_measured_by_an_experiment_and_borne_out_by_published_figures() -> None:
    folder = SERIES.parents[2] / "conf" / "experiment"
    cards = [
        yaml.safe_load((folder / f"{name}.yaml").read_text())
        for name in ("series_python", "series_cpp")
    ]
    variants = {"multiprocess", *(variant for card in cards for variant in card["variants"])}
    programs = {program["program"]: program for program in PROGRAMS}
    for claim in CLAIMS:
        assert {programs[claim[side]]["variant"] for side in ("slow", "fast")} <= variants, claim[
            "says"
        ]
        assert SCRIPT["judge"](claim, programs, [])["theirs"] >= claim["factor"] > 1, claim["says"]


def judged(tmp_path: Path, *records: Record) -> int:
    """The exit code for a file of these records."""
    stored(tmp_path / "records.jsonl", records)
    code: int = SCRIPT["main"]([str(tmp_path)])
    return code


def test_a_claim_holds_if_our_ratio_reaches_its_factor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counting all pairs again is to take five times as long as updating the counts."""
    assert judged(tmp_path, measured("naive", 5.0), measured("incremental", 1.0)) == 0
    out = capsys.readouterr().out
    assert (
        "| counting all pairs again, against updating counts | merge | 13.7 | 5 | 5 | held |" in out
    )
    assert "held by naive 5.00 s of merge (2026-11-21T11:20), incremental 1.00 s of merge" in out
    assert (
        "| bpe_v1_time | naive | tinystories | 27 min | 5.00 s | 173 s | - | 453 s | 5.00 s |"
        in out
    )
    assert judged(tmp_path, measured("naive", 4.9), measured("incremental", 1.0)) == 20
    assert "| 4.9 | 5 | refuted |" in capsys.readouterr().out


def test_a_claim_with_a_stated_reason_is_refuted_here_without_failing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scan = measured("cpp_omp_v3", 1.0, seconds={"max": 1.0})
    threads = measured("cpp_omp_v7", 1.0, seconds={"max": 7.0})
    stored(tmp_path / "records.jsonl", [scan, threads])
    assert SCRIPT["main"]([str(tmp_path), "--part", "6"]) == 0
    assert "| 0.143 | 2 | refuted here |" in capsys.readouterr().out


def test_a_part_shows_its_programs_and_the_claims_about_its_idea(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(tmp_path / "records.jsonl", [measured("naive", 5.0), measured("incremental", 1.0)])
    assert SCRIPT["main"]([str(tmp_path), "--part", "1"]) == 0
    first = capsys.readouterr().out
    assert "bpe_v1_time" in first
    assert "counting all pairs again" not in first
    assert SCRIPT["main"]([str(tmp_path), "--part", "2"]) == 0
    second = capsys.readouterr().out
    assert "bpe_v1_time" not in second
    assert (
        "| counting all pairs again, against updating counts | merge | 13.7 | 5 | 5 | held |"
        in second
    )


@pytest.mark.parametrize("other", [{"vocab_size": 2000}, {"host": "another"}, {"data": "other"}])
def test_rows_of_two_tasks_judge_nothing(tmp_path: Path, other: dict[str, Any]) -> None:
    assert judged(tmp_path, measured("naive", 8.0), measured("incremental", 1.0, **other)) == 22


def test_a_program_is_its_variant_with_its_parameters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fast, slow = (
        measured("incremental", 1.0),
        measured("multiprocess", 2.0, params={"parallel_max": 2, "pool": "kept"}),
    )
    assert judged(tmp_path, fast, slow) == 0
    assert judged(tmp_path, fast, changed(slow, params={"parallel_max": 1, "pool": "kept"})) == 22
    assert (
        "| the maximum by processes, against one scan | merge | 7.42 | - | 1.5 | not measured |"
        in capsys.readouterr().out
    )


def test_a_program_is_mapped_to_a_variant_that_exists_and_to_parameters_that_it_takes() -> None:
    for program in PROGRAMS:
        assert program.keys() <= {
            "program",
            "part",
            "variant",
            "params",
            "counting",
            "note",
            "figures",
            "merges_only",
        }
        card = registry.variants()[program["variant"]]
        assert "series" in card.tags, program
        assert program.get("params", {}).keys() <= card.params.keys(), program
        assert program.get("counting", "serial") in registry.counters(), program
        assert program.get("note") or program.get("figures"), program
    claiming = {
        card.name for card in registry.variants().values() if {"cpp", "series"} <= set(card.tags)
    }
    assert claiming <= {program["variant"] for program in PROGRAMS}
