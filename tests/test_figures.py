"""Figures within sentences are those of the records and tables that the sentences speak of."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.measure import quiet, witness
from harness.records.file import read_records
from harness.results.rows import rows

CHECKOUT = Path(__file__).parent.parent


def page(name: str) -> str:
    """A page as one line."""
    return " ".join((CHECKOUT / name).read_text().split())


def table(name: str, header: str) -> list[list[str]]:
    """The cells of a page's table whose header begins so."""
    content = (CHECKOUT / name).read_text()
    found = re.search(
        rf"^\| {re.escape(header)}.*\n\|[-:| ]+\n((?:\|.*\n)+)", content, re.MULTILINE
    )
    assert found is not None
    return [line.strip("| ").split(" | ") for line in found[1].splitlines()]


def superwords(folder: str, size: int, threads: int = 1) -> Any:
    """The row of the second stage on a text of that size."""
    for row in rows(read_records([CHECKOUT / "results/superbpe" / folder])):
        values = row.values
        right_size = abs(values["data.bytes"] / size - 1) < 0.01
        if right_size and (values["pattern"], values["threads"]) == ("superbpe", threads):
            return row
    raise AssertionError(f"{folder} has no text of {size} bytes")


def test_the_plain_algorithm_takes_as_many_times_as_long_as_the_readme_says() -> None:
    totals = {
        row.name: row.total or 0 for row in rows(read_records([CHECKOUT / "results/readme/ladder"]))
    }
    assert totals["naive"] > 1000 * totals["flat"]
    assert "`naive`, takes over a thousand times as long as `flat`" in page("README.md")


def test_training_takes_the_share_of_hugging_faces_time_that_pages_say() -> None:
    measured = table("results/training/README.md", "source | trainer")
    ratios = [float(row[3]) for row in measured if row[1].startswith("tokenizers")]
    assert min(ratios) >= 20
    assert max(ratios) >= 40
    assert "takes [a twentieth of Hugging Face's CPU time]" in page("README.md")
    assert "[a twentieth to a fortieth of the CPU seconds]" in page("docs/how-to/huggingface.md")
    (streamed,) = [row[4] for row in measured if row[0] == "documents, repeated to 1 GB"]
    assert int(streamed.removesuffix(" MB")) < 100
    assert "[under 100 MB for 1 GB]" in page("docs/how-to/huggingface.md")


def test_encoding_is_faster_than_the_engines_that_the_readme_names() -> None:
    measured = table("results/encode/README.md", "text | tokens | engine")
    engines = ("gigatoken", "tiktoken", "tokenizers")
    times = [float(row[6]) for row in measured if row[2].startswith(engines)]
    assert times
    assert min(times) > 1
    claim = "On every text that we measured, the first pass is [faster than with gigatoken, tiktoken and"
    assert claim in page("README.md")


def test_flat_file_is_first_on_the_board() -> None:
    first, *others = table("results/board/README.md", "trainer | sotu")
    assert first[0] == "flat_file"
    assert set(first[1:]) == {"× 1"}
    assert "× 1" not in [cell for row in others for cell in row]
    assert "the fastest exact trainer we know of" in page("README.md")


def test_superwords_cost_what_their_page_says() -> None:
    mixed = superwords("sizes", 1_000_000_000)
    large = superwords("large", 4_000_000_000)
    text = page("docs/explanation/family.md")
    assert (
        f"took {mixed.cpu_seconds:.0f} CPU seconds and {mixed.peak_rss_bytes / 1e9:.2f} bytes of "
        "memory for each byte of text"
    ) in text
    assert (
        f"4 GB took {large.cpu_seconds:.0f} CPU seconds and {large.peak_rss_bytes / 4e9:.2f} bytes "
        "for each"
    ) in text

    one, two = (superwords("threads", 300_000_000, threads) for threads in (1, 2))
    assert f"take {two.total:.1f} seconds instead of {one.total:.1f}" in text


def test_the_gate_found_in_its_self_test_what_its_page_says() -> None:
    rates = {}
    for beside, runs, number, slower, rate, *_ in table(
        "results/gate_self_test/README.md", "beside it | runs | of"
    ):
        rates[beside, runs] = (number, slower, rate)
    busy = "none to three busy processes"
    number, false_alarms, rate = rates["nothing", "A/A"]
    under_load, false_alarms_under_load, _ = rates[busy, "A/A"]
    assert (false_alarms, false_alarms_under_load, rates["nothing", "+1% planted"][1]) == ("0",) * 3
    text = page("docs/how-to/gate.md")
    assert (
        f"with itself {number} times on a quiet machine and {under_load} times under load: no false "
        f"alarm, so at most {rate.split()[-1].strip('%)')} % with 95 % confidence"
    ) in text
    planted, found, _ = rates["nothing", "+5% planted"]
    assert (
        f"Of {planted} planted slow-downs of 5 % it found {found} on the quiet machine and "
        f"{rates[busy, '+5% planted'][1]} under load; of 1 %, none."
    ) in text


def test_the_series_is_quoted_as_published() -> None:
    published = yaml.safe_load((CHECKOUT / "results/published/series.yaml").read_text())["programs"]
    (program,) = [program for program in published if program["program"] == "bpe_v3_time"]
    (figures,) = [figures for figures in program["figures"] if figures.get("merge") == [31883]]
    assert (
        f"[{figures['merge'][0]:,} s of merging](../../results/published/README.md), and "
        f"{figures['max'][0]:,} of them"
    ) in page("docs/explanation/algorithms.md")


@pytest.mark.parametrize(
    "sentence",
    [
        f"touches and frees {quiet.LEAST_TOUCHED >> 20} MiB and {quiet.TOUCHED_FOR_A_BYTE} bytes for "
        f"each byte that the process reads, at most {quiet.MOST_TOUCHED >> 30} GiB or a quarter",
        f"Between {witness.SECONDS_TO_WAKE * 1000:.0f} ms and "
        f"{witness.SECONDS_TO_NOTICE * 1000:.0f} ms of difference",
    ],
)
def test_the_limits_of_a_measurement_are_those_of_the_code(sentence: str) -> None:
    assert sentence in page("docs/explanation/measuring.md")
