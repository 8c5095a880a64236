"""Two sets of records are compared where they are alike, and refused with what tells them apart where they are not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.common.errors import UNMEASURED, USAGE, Refusal
from harness.records.file import Record
from harness.records.load import read_records
from harness.results.matches import NAMES, Matching, matched, require_alike
from harness.results.rows import rows

HEAP = next(
    record
    for record in read_records([Path(__file__).parents[1] / "fixtures" / "records" / "forms.jsonl"])
    if record["variant"] == "heap"
)
ELSEWHERE = {"host": "11aa22bb", "environment": {**HEAP["environment"], "cores": 64}}
OTHER_BYTES = {"data": {**HEAP["data"], "sha256": "cd" * 32}}
OTHER_TEXT = {"data": {**HEAP["data"], "sha256": "ef" * 32, "name": "owt", "bytes": 11_920_511_059}}


def changed(**changes: Any) -> Record:
    return {**HEAP, **changes}


def pairing_of(left: Sequence[Record], right: Sequence[Record]) -> Matching:
    return matched(rows(left), rows(right))


def unlike_in(pairing: Matching) -> list[list[str]]:
    return [[difference.condition for difference in pair.differences] for pair in pairing.matches]


def refusal(left: Sequence[Record], right: Sequence[Record], allowed: Sequence[str] = ()) -> Refusal:
    with pytest.raises(Refusal) as refused:
        require_alike(pairing_of(left, right), ("old", "new"), allowed)
    return refused.value


def test_a_set_is_like_itself() -> None:
    both = pairing_of([HEAP, changed(variant="naive"), changed(threads=2)], [changed(threads=2), HEAP])
    assert [(pair.left.name, pair.left.record["threads"]) for pair in both.matches] == [("heap", 1), ("heap", 2)]
    assert unlike_in(both) == [[], []]
    assert [row.name for row in both.only_left] == ["naive"]
    require_alike(both, ("old", "new"))


@pytest.mark.parametrize(
    ("change", "condition", "said"),
    [
        (ELSEWHERE, "host", "(2 cores / 64 cores)"),
        ({"host": "11aa22bb"}, "host", f"({HEAP['host']} / 11aa22bb)"),
        ({"host": None}, "host", f"({HEAP['host']} / not recorded)"),
        (OTHER_BYTES, "corpus", "(stdlib, 3,999,812 bytes, sha256 "),
        (OTHER_TEXT, "corpus", "(stdlib, 3,999,812 bytes / owt, 11,920,511,059 bytes)"),
        ({"interpreter": "CPython 3.14.0"}, "python", "(CPython 3.11.7 / CPython 3.14.0)"),
        ({"pattern": "line"}, "pattern", "(gpt2 / line)"),
        ({"special_tokens": []}, "special_tokens", "(<|endoftext|> / none)"),
        ({"errors": "replace"}, "errors", "(strict / replace)"),
        ({"vocab_size": 32_000}, "vocab_size", "(1,000 / 32,000)"),
        ({"tie_break": "raw_bytes"}, "tie_break", "(greatest_bytes / raw_bytes)"),
        ({"min_count": 5}, "min_count", "(1 / 5)"),
        ({"counting": "native"}, "counting", "(serial / native)"),
        ({"threads": 8}, "threads", "(1 / 8)"),
        ({"params": {**HEAP["params"], "push": "none"}}, "params", "/ push=none)"),
        ({"limits": {"wall_seconds": 60}}, "limits.wall", "/ 60)"),
        ({"concurrent": True}, "concurrent", "/ true)"),
    ],
)
def test_what_is_unlike_is_refused_said_and_allowed_by_its_name(change: Record, condition: str, said: str) -> None:
    here = changed(errors="strict", concurrent=False)
    there = {**here, **change}
    refused = refusal([here], [there])
    assert refused.exit_code == USAGE
    assert str(refused).startswith(f"old and new are unlike in {condition} (")
    assert said in str(refused)
    assert str(refused).endswith(f"; --unlike {condition} compares them all the same")
    require_alike(pairing_of([here], [there]), ("old", "new"), [condition])


def test_every_condition_is_named_and_all_must_be_allowed() -> None:
    there = changed(**ELSEWHERE, **OTHER_BYTES)
    assert "unlike in host (2 cores / 64 cores) and in corpus (" in str(refusal([HEAP], [there]))
    assert "unlike in corpus (" in str(refusal([HEAP], [there], ["host"]))
    require_alike(pairing_of([HEAP], [there]), ("old", "new"), NAMES)


def test_a_cell_that_one_set_has_alone_is_no_fault() -> None:
    both = pairing_of([HEAP, changed(vocab_size=2000)], [HEAP, changed(vocab_size=4000), changed(**OTHER_TEXT)])
    assert unlike_in(both) == [[]]
    assert [row.record["vocab_size"] for row in both.only_left] == [2000]
    assert [row.record["vocab_size"] for row in both.only_right] == [4000, 1000]


def test_a_cell_that_was_measured_elsewhere_is_one_even_beside_cells_that_were_not() -> None:
    at_2000 = changed(vocab_size=2000)
    assert unlike_in(pairing_of([HEAP, at_2000], [HEAP, {**at_2000, **ELSEWHERE}])) == [[], ["host"]]
    assert "unlike in host" in str(refusal([HEAP, at_2000], [HEAP, {**at_2000, **OTHER_BYTES, **ELSEWHERE}]))


def test_the_nearest_rows_are_put_side_by_side() -> None:
    left = [changed(vocab_size=size) for size in (1000, 2000)]
    right = [changed(vocab_size=size, **ELSEWHERE) for size in (2000, 1000)]
    both = pairing_of(left, right)
    assert [pair.right.record["vocab_size"] for pair in both.matches] == [1000, 2000]
    assert unlike_in(both) == [["host"], ["host"]]


def test_sets_without_a_variant_in_common_are_named() -> None:
    refused = refusal([HEAP], [changed(variant="naive")])
    assert str(refused) == "old and new have nothing in common to compare: one has heap, the other naive"
    assert refused.exit_code == UNMEASURED


def test_a_limit_on_memory_counts_where_it_ended_the_row() -> None:
    low, high = ({"memory_bytes": size, "wall_seconds": None} for size in (10**9, 10**10))
    require_alike(pairing_of([changed(limits=low)], [changed(limits=high)]), ("old", "new"))
    ended = {"status": "out_of_memory", "reason": "over limits.memory", "seconds": {}}
    assert "limits.memory" in str(refusal([changed(limits=low, **ended)], [changed(limits=high, **ended)]))


def test_what_was_not_known_when_a_record_was_made_is_unlike_nothing() -> None:
    require_alike(pairing_of([changed(threads=None)], [changed(threads=2)]), ("old", "new"))


def test_merges_may_differ_where_the_question_does() -> None:
    same, other = (pairing_of([HEAP], [changed(**change)]).matches[0] for change in (ELSEWHERE, {"min_count": 2}))
    assert same.same_question
    assert not other.same_question


def test_an_unknown_condition_is_answered_with_those_there_are() -> None:
    with pytest.raises(Refusal, match=r"unknown condition 'hosts'; did you mean host\? there are: host, corpus"):
        require_alike(pairing_of([HEAP], [HEAP]), ("old", "new"), ["hosts"])


SMALL = st.fixed_dictionaries(
    {
        "variant": st.sampled_from(["heap", "naive"]),
        "threads": st.integers(1, 2),
        "vocab_size": st.sampled_from([1000, 2000]),
        "host": st.sampled_from(["here", "there"]),
    }
)


@given(st.lists(SMALL, max_size=6), st.lists(SMALL, max_size=6))
def test_every_row_stands_in_one_place_and_those_alike_stand_together(left: list[Record], right: list[Record]) -> None:
    here, there = (rows([changed(**change) for change in changes]) for changes in (left, right))
    both = matched(here, there)
    for given_rows, placed in (
        (here, [pair.left for pair in both.matches] + list(both.only_left)),
        (there, [pair.right for pair in both.matches] + list(both.only_right)),
    ):
        assert sorted(map(id, placed)) == sorted(map(id, given_rows))
    cells = [{(row.name, *map(row.record.get, SETTINGS)) for row in side} for side in (here, there)]
    alike = {(pair.left.name, *map(pair.left.record.get, SETTINGS)) for pair in both.matches if not pair.differences}
    assert alike == cells[0] & cells[1]


SETTINGS = ("threads", "vocab_size", "host")
