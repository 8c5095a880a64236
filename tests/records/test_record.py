"""Records are appended whole or not at all, read back line by line, and hold what people script against."""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import regex
from workbench import CHECKOUT, NAIVE, SUPPORT, TEXT, cell_of, reading_of, run_of, unruly

from harness.measure import machine
from harness.runs.jobs import without_paths
from variants.contract import GPT2_PATTERN, WordCounts
from variants.naive import train

pytestmark = pytest.mark.xdist_group("record")  # the run that most look at is made once
KEYS = """
run_key status reason variant params counting threads data pattern special_tokens tie_break vocab_size merges
merges_sha256 identity seconds curve cpu_seconds tallies instructions peak_rss_bytes peak_private_bytes
limits merges_done last_phase stderr_tail extrapolated interpreter block repeat started host
environment cell witness disturbance laps clock_cost_seconds page_cache"""
DISTURBANCES = {"psi_cpu_seconds", "psi_memory_seconds", "psi_io_seconds", "steal_seconds"}
KEYS_THAT_STAY = set(re.findall(r"\w+", KEYS))


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The records of a run with a good trainer, one that fails, one that is stopped, and two wrong ones."""
    folder = tmp_path_factory.mktemp("run with blanks")
    reading = reading_of(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BPE_HARNESS_CACHE", str(folder / "cache"))
        patch.setenv("PYTHONPATH", str(SUPPORT))
        patch.setenv("UNRULY_SECRET", "an-environment-variable")
        trainers = [NAIVE, *map(unruly, ["takes_two", "raises_a_path", "returns_one_too_few", "raises", "prints"])]
        return run_of(folder, [cell_of(reading, trainer) for trainer in trainers]).records()


def trained(records: list[dict[str, Any]], variant: str) -> dict[str, Any]:
    (found,) = (record for record in records if record["cell"] == "train" and record["variant"] == variant)
    return found


# The content of a record.


def test_every_key_that_people_script_against_is_there(records: list[dict[str, Any]]) -> None:
    for each in records:
        if each["cell"] == "train":
            assert each.keys() >= KEYS_THAT_STAY
            assert each["data"].keys() >= {"name", "sha256", "bytes", "documents", "pre_tokens", "words"}
            phases = {"read", "count", "convert", "init", "max", "update", "other", "total"}
            assert each["seconds"].keys() == phases


def test_the_phases_add_up_to_the_total(records: list[dict[str, Any]]) -> None:
    measured = [each["seconds"] for each in records if each["status"] == "ok"]
    assert len(measured) >= 4
    for seconds in measured:
        parts = [part for phase, part in seconds.items() if phase != "total" and part is not None]
        assert sum(parts) == pytest.approx(seconds["total"], abs=1e-9)
        assert min(parts) >= 0


def test_a_record_says_how_far_its_times_can_be_trusted(records: list[dict[str, Any]]) -> None:
    for each in (records[0], trained(records, "naive")):
        assert each["witness"].keys() == {
            *("wall_seconds", "cpu_seconds", "system_seconds", "import_cpu_seconds", "whole_process")
        }
        assert each["disturbance"].keys() >= DISTURBANCES
        assert 0 < each["clock_cost_seconds"] < 1e-4
    assert trained(records, "naive")["laps"] == 2 * 10 + 1
    assert trained(records, "raises")["disturbance"] is None


def test_what_was_not_measured_is_null_and_not_zero(records: list[dict[str, Any]]) -> None:
    failed = trained(records, "raises")
    assert (failed["status"], failed["merges"], failed["tallies"]) == ("error", None, None)
    assert failed["seconds"]["total"] is None
    assert failed["seconds"]["update"] is None
    assert trained(records, "takes_two")["seconds"]["update"] is None  # it has no meter to tell


def test_a_mismatch_says_where_and_why(records: list[dict[str, Any]]) -> None:
    wrong = trained(records, "returns_one_too_few")
    assert wrong["status"] == "mismatch"
    assert wrong["reason"] == wrong["identity"]["reason"]
    assert wrong["reason"].startswith("it ended after 9 merges, with pairs left that occur ")
    assert (wrong["identity"]["merge"], wrong["identity"]["got"]) == (10, None)


def test_a_record_names_no_place_host_or_variable_of_this_machine(
    records: list[dict[str, Any]], tmp_path: Path
) -> None:
    text = json.dumps(records, ensure_ascii=False)
    reasons = json.dumps([{name: each[name] for name in ("reason", "stderr_tail")} for each in records])
    assert "missing.bin" in reasons
    assert "in raises" in reasons
    for private in (str(CHECKOUT), str(tmp_path.parent), sys.prefix, os.uname().nodename, "an-environment-variable"):
        assert not re.search(rf"(?<!\w){re.escape(private)}(?!\w)", text)
    assert not re.search(r"(?<![\w.~>/])/(?:[\w.-]+/)+", reasons)


def test_the_digest_of_the_merges_can_be_made_by_anyone(records: list[dict[str, Any]]) -> None:
    words = WordCounts.from_items((found.group().encode(), 1) for found in regex.finditer(GPT2_PATTERN, TEXT))
    digest = hashlib.sha256()
    for left, right in train(words, 10):
        for token in (left, right):
            digest.update(struct.pack("<Q", len(token)))
            digest.update(token)
    assert trained(records, "naive")["merges_sha256"] == digest.hexdigest()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/elsewhere/deep/down/book.txt: gone", "book.txt: gone"),
        ('File "/opt/odd/module.py", line 3', 'File "module.py", line 3'),
        (f"{CHECKOUT}/variants/heap.py failed", "./variants/heap.py failed"),
        (f"{sys.prefix}/lib/thing.py", "<python>/lib/thing.py"),
        (f"there is no {sys.prefix}.", "there is no <python>."),
        ("see https://example.org/a/b and and/or 1/2/3", "see https://example.org/a/b and and/or 1/2/3"),
        (None, None),
    ],
)
def test_places_become_names(tmp_path: Path, text: str | None, expected: str | None) -> None:
    assert without_paths(text, reading_of(tmp_path)) == expected


@pytest.mark.parametrize("prefix", ["v", "variants/heap"])
def test_a_place_is_no_part_of_a_longer_name(prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", f"{CHECKOUT}/{prefix}")
    folder = tmp_path / "a folder, with (odd) = 名字"
    folder.mkdir()
    reading = reading_of(folder, name="my text.txt")
    text = f"{CHECKOUT}/variants/heap.py, {CHECKOUT}/variants/heap-old, {CHECKOUT}/{prefix}/lib, {reading.file.path}: x"
    kept = "./variants/heap.py, ./variants/heap-old, <python>/lib, my text.txt: x"
    assert without_paths(text, reading) == kept


def test_the_commit_of_a_project_that_we_are_only_installed_in_is_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
    for command in (["init", "--quiet"], [*identity, "commit", "--quiet", "--allow-empty", "--message=theirs"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    monkeypatch.setattr(machine, "CHECKOUT", tmp_path)
    assert len(machine.checkout_state()["commit"]) == 12
    (tmp_path / "site-packages").mkdir()
    monkeypatch.setattr(machine, "CHECKOUT", tmp_path / "site-packages")
    assert machine.checkout_state() == {"commit": "unavailable", "dirty": "unavailable"}
