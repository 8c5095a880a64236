"""The gate's card: it sets what differs, and refuses what is not a key."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.common.errors import Refusal
from harness.gate.card import Stage, read_gate_card, stored_card


def test_card_of_ones_own_sets_only_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("time: {max_seconds: 5}\n")
    usual, card = (
        read_gate_card("usual"),
        read_gate_card(str(path), ["time.confirm.max_slowdown=0.04"]),
    )
    # as documented
    assert (usual.time.triage, usual.time.confirm) == (Stage(30, 0.015), Stage(90, 0.025))
    assert (card.time.max_seconds, card.time.confirm) == (5, Stage(90, 0.04))
    assert card.corpora == usual.corpora


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("time.triage.blocks=0", "Expected `int` >= 1 for `time.triage.blocks`; conf/gate/usual"),
        ("tiers=[speed]", r"Invalid enum value 'speed' for `tiers\[0\]`; conf/gate/usual"),
        ("time.blocks=3", "unknown key 'time.blocks'; conf/gate/usual.yaml explains every key"),
        ("teirs=[time]", "unknown key 'teirs'; did you mean tiers"),
        ("corpora.letters.say=[]", r"unknown field `say` .*; did you mean overrides\? conf/gate"),
        ("time.must_see=0.1", "time.must_see is now time.max_missed_slowdown; rename it"),
        ("work.instructions.most=1", "work.instructions.most is now instructions.max_increase"),
        ("build=[", "while parsing a flow node"),
    ],
)
def test_impossible_card_is_refused(override: str, message: str) -> None:
    with pytest.raises(Refusal, match=message) as refusal:
        read_gate_card("usual", [override])
    assert refusal.value.exit_code == 2


def test_stored_card_of_an_older_version_counts() -> None:
    time = {"must_see": 0.2, "confirm": {"blocks": 9, "most": 0.3}, "self_test": {"a": 1}}
    corpora = {"book": {"say": ["vocab_size=300"]}}
    old = {"name": "old", "time": time, "known_wrong": {"a": "b"}, "corpora": corpora}
    card = stored_card(old)
    assert (card.time.max_missed_slowdown, card.time.confirm) == (0.2, Stage(9, 0.3))
    assert card.known_wrong == {"a": "b"}
    assert card.corpora["book"].overrides == ("vocab_size=300",)
    with pytest.raises(Refusal, match="the stored card is not a gate card") as refusal:
        stored_card({"time": 3})
    assert refusal.value.exit_code == 22
