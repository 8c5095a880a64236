"""The published programs: each has a variant that exists, and their claims are judged by records and nothing else."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml
from measured import measured, stored

from harness.common import registry

SERIES = Path(__file__).parents[2] / "results" / "published" / "series.yaml"
SCRIPT = runpy.run_path(str(SERIES.with_name("published.py")))
CLAIMS: list[dict[str, Any]] = yaml.safe_load(SERIES.with_name("claims.yaml").read_text())["claims"]
PROGRAMS: list[dict[str, Any]] = yaml.safe_load(SERIES.read_text())["programs"]


def test_every_claim_is_measured_by_an_experiment_and_borne_out_by_published_figures() -> None:
    folder = SERIES.parents[2] / "conf" / "experiment"
    cards = [yaml.safe_load((folder / f"{name}.yaml").read_text()) for name in ("series_python", "series_cpp")]
    variants = {"multiprocess", *(variant for card in cards for variant in card["variants"])}
    programs = {program["program"]: program for program in PROGRAMS}
    for claim in CLAIMS:
        assert {programs[claim[side]]["variant"] for side in ("slow", "fast")} <= variants, claim["says"]
        assert SCRIPT["judge"](claim, programs, [])["theirs"] >= claim["factor"] > 1, claim["says"]


def judged(tmp_path: Path, *records: dict[str, Any]) -> int:
    """The exit code for a file of these records."""
    stored(tmp_path / "records.jsonl", records)
    code: int = SCRIPT["main"]([str(tmp_path)])
    return code


def test_a_claim_holds_if_our_ratio_reaches_its_factor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Counting all pairs again is to take five times as long as updating the counts."""
    assert judged(tmp_path, measured("naive", 5.0), measured("incremental", 1.0)) == 0
    out = capsys.readouterr().out
    assert "| counting all pairs again, against updating counts | merge | 13.7 | 5 | 5 | held |" in out
    assert "held by naive 5 s of merge (2026-11-21T11:20:00+00:00), incremental 1 s of merge" in out
    assert "| bpe_v1_time | naive | tinystories | 1,619 | 5 | 173 | - | 453 | 5 |" in out
    assert judged(tmp_path, measured("naive", 4.9), measured("incremental", 1.0)) == 20
    assert "| 4.9 | 5 | refuted |" in capsys.readouterr().out


@pytest.mark.parametrize("other", [{"vocab_size": 2000}, {"host": "another"}, {"data": "other"}])
def test_rows_of_two_tasks_judge_nothing(tmp_path: Path, other: dict[str, Any]) -> None:
    assert judged(tmp_path, measured("naive", 8.0), measured("incremental", 1.0, **other)) == 22


def test_a_program_is_its_variant_with_its_parameters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fast, slow = measured("incremental", 1.0), measured("multiprocess", 2.0, params={"parallel_max": 2, "pool": "kept"})
    assert judged(tmp_path, fast, slow) == 0
    assert judged(tmp_path, fast, {**slow, "params": {"parallel_max": 1, "pool": "kept"}}) == 22
    assert (
        "| the maximum by processes, against one scan | merge | 7.42 | - | 1.5 | not measured |"
        in capsys.readouterr().out
    )


def test_a_program_is_mapped_to_a_variant_that_exists_and_to_parameters_that_it_takes() -> None:
    for program in PROGRAMS:
        assert program.keys() <= {"program", "part", "variant", "params", "counting", "note", "figures", "merges_only"}
        card = registry.variants()[program["variant"]]
        assert "series" in card.tags, program
        assert program.get("params", {}).keys() <= card.params.keys(), program
        assert program.get("counting", "serial") in registry.counters(), program
        assert program.get("note") or program.get("figures"), program
    claiming = {card.name for card in registry.variants().values() if {"cpp", "series"} <= set(card.tags)}
    assert claiming <= {program["variant"] for program in PROGRAMS}
