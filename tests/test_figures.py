"""Figures within sentences are those of the records and tables that the sentences speak of."""

import re
import statistics
from typing import Any

import pytest
import yaml
from rows import each_row
from workbench import CHECKOUT

from harness.common.units import seconds_text
from harness.measure import quiet, witness
from harness.records.file import read_records
from harness.results.rows import rows


def table(name: str, header: str, number: int = 0) -> list[list[str]]:
    """The cells of one of a page's tables whose header begins so."""
    content = (CHECKOUT / "results" / name / "README.md").read_text()
    found = re.findall(rf"(?m)^\| {re.escape(header)}.*\n\|[-:| ]+\n((?:\|.*\n)+)", content)
    return [line.strip("| ").split(" | ") for line in found[number].splitlines()]


def superwords(folder: str, size: int, threads: int = 1) -> dict[str, float]:
    """What the second stage took on a text of that size."""
    for row in rows(read_records([CHECKOUT / "results/superbpe" / folder])):
        how = row.values["pattern"], row.values["threads"]
        if abs(row.values["data.bytes"] / size - 1) < 0.01 and how == ("superbpe", threads):
            memory = (row.peak_rss_bytes or 0) / size
            return {"cpu": row.cpu_seconds or 0, "total": row.total or 0, "memory": memory}
    raise AssertionError(f"{folder} has no text of {size} bytes")


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    """What sentences quote, by the names in figures.toml."""
    gate = {}
    for beside, runs, *found in table("gate_self_test", "beside it | runs | of"):
        gate[f"{runs} beside {beside}"] = found
    series = yaml.safe_load((CHECKOUT / "results/published/series.yaml").read_text())["programs"]
    (program,) = [program for program in series if program["program"] == "bpe_v3_time"]
    (published,) = [each for each in program["figures"] if each.get("merge") == [31883]]

    scale = rows(read_records([CHECKOUT / "results/scale"]))

    return {
        "scale": {row.name: seconds_text(row.total or 0) for row in scale},
        "mixed": superwords("sizes", 1_000_000_000),
        "large": superwords("large", 4_000_000_000),
        "one": superwords("threads", 300_000_000),
        "two": superwords("threads", 300_000_000, 2),
        "gate": gate,
        "limit": gate["A/A beside nothing"][2].split()[-1].strip("%)"),
        "published": published,
        "touched": quiet.TOUCHED_FOR_A_BYTE,
        "least_mib": quiet.LEAST_TOUCHED >> 20,
        "most_gib": quiet.MOST_TOUCHED >> 30,
        "wake": witness.SECONDS_TO_WAKE * 1000,
        "notice": witness.SECONDS_TO_NOTICE * 1000,
    }


@each_row(__file__, "figures.toml")
def test_a_sentence_quotes_the_figures(row: dict[str, str], figures: dict[str, Any]) -> None:
    page = " ".join((CHECKOUT / row["page"]).read_text().split())
    assert row["sentence"].format(**figures) in page


def test_comparisons_in_sentences_hold(figures: dict[str, Any]) -> None:
    ladder = rows(read_records([CHECKOUT / "results/readme/ladder"]))
    totals = {row.name: row.total or 0 for row in ladder}
    assert totals["naive"] > 1000 * totals["flat"]

    training = table("training", "source | trainer")
    ratios = [float(row[3]) for row in training if row[1].startswith("tokenizers")]
    assert min(ratios) >= 20
    assert max(ratios) >= 40
    (streamed,) = [row[4] for row in training if row[0] == "documents, repeated to 1 GB"]
    assert int(streamed.removesuffix(" MB")) < 100

    engines = ("gigatoken", "tiktoken", "tokenizers")
    encoding = table("encode", "text | tokens | engine")
    times = [float(row[6]) for row in encoding if row[2].startswith(engines)]
    assert min(times) > 1
    intel = table("encode", "text | tokens | engine", 1)
    times = [float(row[6]) for row in intel if row[2].startswith("gigatoken 0")]
    assert min(times) < 1 < statistics.median(times)

    first, *others = table("board", "variant | sotu")
    assert first == ["flat_file", *["1"] * (len(first) - 1)]
    assert "1" not in [cell for row in others for cell in row]
    for runs, (_, found, *_) in figures["gate"].items():
        assert found == "0" or not runs.startswith(("A/A", "+1%"))
