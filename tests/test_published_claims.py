"""Each published program has its variant, and claims are judged by records and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.common.errors import OK, REGRESSION, UNMEASURED, Refusal
from harness.common.sheet import sheet_to_markdown
from harness.results import published
from harness.results.published import claims, programs, sheets
from harness.table import main

PROGRAMS = """
programs:
  - program: scans
    part: 2
    variant: slow_one
    params: {parallel_max: 8}
    figures: [{data: tinystories, count: [3]}, {data: owt, max: [60, 50, 70]}]
  - {program: heaps, part: 9, variant: fast_one, figures: [{data: owt, max: [6, 5, 7]}]}
"""
CLAIMS = """
claims:
- says: a heap against a scan
  quantity: max
  slow: scans
  fast: heaps
  factor: 4
  because: a heap looks at few pairs
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Published figures and claims of two programs, in the place of the real ones."""
    monkeypatch.setattr(published, "FOLDER", tmp_path)
    (tmp_path / "series.yaml").write_text(PROGRAMS)
    (tmp_path / "claims.yaml").write_text(CLAIMS)
    return tmp_path


def record(variant: str, seconds_of_max: float, **others: Any) -> dict[str, Any]:
    seconds = {"read": 0.1, "count": 1.0, "init": 0.5, "max": seconds_of_max, "update": 2.0, "other": 0.0}
    known = {
        "schema": 1,
        "run_key": f"key-{variant}",
        "cell": "train",
        "status": "ok",
        "reason": None,
        "variant": variant,
        "params": {"parallel_max": 2},
        "counting": "serial",
        "threads": 1,
        "data": {"name": "text", "sha256": "0" * 64, "bytes": 1, "documents": 1, "pre_tokens": 1, "words": 1},
        "vocab_size": 1000,
        "pattern": "gpt2",
        "special_tokens": [],
        "merges": 744,
        "merges_sha256": "0" * 64,
        "proof": {"state": "confirmed", "by": ["another"]},
        "seconds": {**seconds, "total": sum(seconds.values())},
        "tallies": {},
        "host": "one",
        "started": "2026-01-01T09:00:00+00:00",
        "block": 0,
        "run_id": "2026-01-01T09:00:00+00:00",
    }
    return {**known, **others}


def verdict(*records: dict[str, Any]) -> tuple[str, int]:
    (_, judged), code = sheets(records)
    return judged.columns[-1].cells[0], code


@pytest.mark.usefixtures("folder")
def test_a_claim_holds_if_our_ratio_reaches_its_factor() -> None:
    assert verdict(record("slow_one", 8.0), record("fast_one", 2.0)) == ("held", OK)
    assert verdict(record("slow_one", 7.9), record("fast_one", 2.0)) == ("refuted", REGRESSION)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "other",
    [
        {"vocab_size": 2000},
        {"host": "another"},
        {"data": {"name": "text", "sha256": "1" * 64}},
        {"status": "timeout", "seconds": None},
    ],
)
def test_unlike_rows_judge_nothing(other: dict[str, Any]) -> None:
    assert verdict(record("slow_one", 8.0), record("fast_one", 2.0, **other)) == ("not measured", UNMEASURED)


@pytest.mark.usefixtures("folder")
def test_a_program_is_its_variant_with_its_parameters() -> None:
    other = record("slow_one", 8.0, params={"parallel_max": 1})
    assert verdict(other, record("fast_one", 2.0)) == ("not measured", UNMEASURED)


@pytest.mark.usefixtures("folder")
def test_theirs_stand_beside_ours_and_the_explanation_names_the_records() -> None:
    (beside, judged), _ = sheets([record("slow_one", 8.0), record("fast_one", 2.0)])
    table = {column.heading: list(column.cells) for column in beside.columns}
    assert table["program"] == ["scans", "heaps"]
    assert table["theirs on"] == ["owt", "owt"]
    assert table["max, theirs"] == ["60", "6"]
    assert table["max, ours"] == ["8", "2"]
    text = sheet_to_markdown(judged)
    assert "10.0" in text
    assert "4.00" in text
    assert "key-slow_one" in text
    assert "key-fast_one" in text
    assert "a heap looks at few pairs" in text


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("series.yaml", PROGRAMS.replace("variant: slow_one", "")),
        ("series.yaml", "programs: 5"),
        ("claims.yaml", CLAIMS.replace("slow: scans", "slow: nobody")),
        ("claims.yaml", CLAIMS.replace("factor: 4", "")),
        ("claims.yaml", "- [unclosed"),
    ],
)
def test_a_file_that_cannot_be_understood_is_named(folder: Path, name: str, content: str) -> None:
    (folder / name).write_text(content)
    with pytest.raises(Refusal, match=name):
        sheets([record("slow_one", 8.0)])


def test_a_missing_file_is_named(folder: Path) -> None:
    (folder / "series.yaml").unlink()
    with pytest.raises(Refusal, match=r"series\.yaml"):
        programs()


@pytest.mark.usefixtures("folder")
def test_the_command_prints_it_and_ends_with_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.dumps(record("slow_one", 8.0)), json.dumps(record("fast_one", 4.0))]
    (tmp_path / "records.jsonl").write_text("\n".join(lines))
    assert main([str(tmp_path), "--against", "published"]) == REGRESSION
    assert "refuted" in capsys.readouterr().out
    assert main([str(tmp_path), "--against", "published", "--format", "markdown"]) == REGRESSION
    assert "| refuted |" in capsys.readouterr().out
    assert main([str(tmp_path), "--against", "published", "--format", "csv"]) == 2


def test_every_claim_names_programs_and_has_published_figures_that_bear_it_out() -> None:
    found = claims(programs())
    assert found
    for claim in found:
        assert claim.published is not None, claim.says
        assert claim.published >= claim.factor > 1, claim.says
