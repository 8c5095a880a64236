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

IN_PYTHON = """
v1 v1_time v2 v2_time v2_time_pypy v3 v3_time v3_bug v3_condition_bug v3_bytes_time v3_step1_result v4_mp v4_mp_time v4
v4_time v4_time2 v4_mp_spawn_time v4_mp_deepcopy_time v5 v5_time v6 v6_time v7 v7_time v7_time2 v7_heapify v7_profile
v7_maxheapc v7_maxheapc_time v7_opt v7_maxheapc_opt v7_maxheapc_opt_time v8 v8_v2 v8_v3 v8_v4 v9 v9_v2 v10 v10_v2 v11
v11_bytes v11_v2 v11_v3 v11_v3_bytes v11_v4 v11_v4_bytes
"""
IN_CPP = """
_hash _max_debug _omp_v1 _omp_v1_hash _omp_v2 _omp_v2_debug _omp_v2_hash _omp_v2_hash2 _omp_v3 _omp_v3_hash
_omp_v3_max_debug _omp_v4 _omp_v4_debug _omp_v5 _omp_v6 _omp_v7 _omp_v8 _opt _opt_absl _emhash8 _opt_emhash8
_opt_emhash8_hash _fine_grained _fine_grained_absl _fine_grained_emhash8 _fine_grained_emhash8_set
_fine_grained_emhash8_set9 _fine_grained_heap _fine_grained_heap_emhash8 _fine_grained_heap_emhash8_set
_fine_grained_heap_emhash8_set9 _fine_grained_heap_opt _fine_grained_heap_emhash8_opt
_fine_grained_heap_emhash8_set_opt _fine_grained_heap_emhash8_set9_opt
"""
FURTHER = ["bpe_train_updater", "bpe_train_step2", "dump_tinystories_step1_results", "dump_openweb_step1_results"]
COLUMNS = {
    *("total", "count", "count_pair", "merge", "max", "update", "copy", "split", "match", "heap_push"),
    *("prepare", "step2", "native"),
}
CONDITIONS = {
    *("data", "threads", "vocab_size", "interpreter", "parallel_max", "chunk_bytes", "schedule", "chunk"),
}

CONF = SERIES.parent.parent.parent / "conf"
README = SERIES.with_name("README.md")


def test_every_claim_is_measured_by_the_experiments_of_the_series() -> None:
    listed = [
        yaml.safe_load((CONF / "experiment" / f"{name}.yaml").read_text())["variants"]
        for name in ("series_python", "series_cpp")
    ]
    listed.append(["multiprocess"])  # its words are counted by processes, so it has a command of its own
    programs = {program["program"]: program for program in PROGRAMS}
    for claim in CLAIMS:
        for name in (claim["slow"], claim["fast"]):
            assert any(programs[name]["variant"] in variants for variants in listed), claim["says"]


def test_every_claim_has_published_figures_that_bear_it_out() -> None:
    programs = {program["program"]: program for program in PROGRAMS}
    for claim in CLAIMS:
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


def test_every_program_of_the_series_is_there_once() -> None:
    expected = [
        *(f"bpe_{name}" for name in IN_PYTHON.split()),
        *(f"bpe_train_updater{name}" for name in IN_CPP.split()),
        *(f"cppstep2 step2{version}" for version in ("", "_v2", "_v3", "_v4", "_v5", "_v6")),
        *FURTHER,
    ]
    assert sorted(program["program"] for program in PROGRAMS) == sorted(expected)


def test_a_program_is_mapped_to_a_variant_that_exists_and_to_parameters_that_it_takes() -> None:
    for program in PROGRAMS:
        assert program.keys() <= {"program", "part", "variant", "params", "counting", "note", "figures", "merges_only"}
        card = registry.variants()[program["variant"]]
        assert "series" in card.tags, program
        assert program.get("params", {}).keys() <= card.params.keys(), program
        assert program.get("counting", "serial") in registry.counters(), program
        assert program.get("note") or program.get("figures"), program


def test_figures_are_seconds_of_known_columns_under_known_conditions() -> None:
    for row in (row for program in PROGRAMS for row in program.get("figures", [])):
        assert row["data"] in ("tinystories", "owt"), row
        measured = row.keys() - CONDITIONS
        assert measured, row
        assert measured <= COLUMNS, row
        assert all(isinstance(seconds, int | float) for column in measured for seconds in row[column]), row
        runs = {len(row[column]) for column in measured}
        assert len(runs - {1}) <= 1, row


def test_every_preset_that_claims_to_be_of_the_series_reproduces_one_of_its_programs() -> None:
    reproduced = {program["variant"] for program in PROGRAMS}
    claiming = {card.name for card in registry.variants().values() if {"cpp", "series"} <= set(card.tags)}
    assert claiming <= reproduced


def test_where_a_total_is_the_sum_of_its_parts_the_figures_add_up() -> None:
    checked = 0
    for program in PROGRAMS:
        for row in program.get("figures", []):
            parts = [row[column] for column in ("update", "max", "copy") if column in row]
            if program["program"].startswith("bpe_train_updater") and len(parts) > 1:
                runs = len(row["total"])
                for total, *rest in zip(row["total"], *(part * (runs // len(part)) for part in parts), strict=True):
                    assert abs(total - sum(rest)) <= max(12, total * 0.03), program["program"]
                    checked += 1
    assert checked > 60
