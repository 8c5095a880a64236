"""The suite itself under test: every mistake that we know of is made here, and the check meant for it sees it.

The wrong trainers and word counters are in sabotaged.py, ill_mannered.py and sabotaged_counters.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import ill_mannered
import pytest
import sabotaged
import sabotaged_counters
from checked import passing, quick_ones, together

from harness.conformance import check_trainer, check_word_counter, trainer_checks
from harness.proof.checks import CheckFailed, CheckSkipped
from harness.proof.counter import counter_checks
from harness.proof.counterexamples import WrongWords
from harness.proof.differential import CS336_FOLDER
from variants.contract import TieBreak

TRAINER_CHECKS = {check.name: check for check in trainer_checks()}
RAW_BYTES_CHECKS = {check.name: check for check in trainer_checks([TieBreak.RAW_BYTES])}
COUNTER_CHECKS = {check.name: check for check in counter_checks()}

CAUGHT_TRAINERS: list[tuple[Callable[..., Any], str]] = [
    # The sixteen that the suite was first tried on.
    (sabotaged.ties_to_the_smallest, "check_worked_example[C13]"),
    (sabotaged.ties_by_id, "check_worked_example[byte_after_token]"),
    (sabotaged.ties_by_concatenation, "check_worked_example[left_prefix]"),
    (sabotaged.ties_to_the_first_seen, "check_word_order_is_irrelevant"),
    (sabotaged.non_overlapping_count, "check_worked_example[C01]"),
    (sabotaged.right_to_left, "check_worked_example[C03]"),
    (sabotaged.counts_in_int32, "check_worked_example[C17]"),
    (ill_mannered.changes_its_input, "check_leaves_input_alone"),
    (ill_mannered.one_merge_too_many, "check_stops_at_num_merges"),
    (sabotaged.heap_without_refresh, "check_worked_example[C20]"),
    (sabotaged.heap_dropping_stale_entries, "check_worked_example[C20]"),
    (sabotaged.nul_as_truth_value, "check_worked_example[C08]"),
    (sabotaged.dead_neighbour, "check_worked_example[C05]"),
    (sabotaged.inverted_key_without_terminator, "check_worked_example[left_prefix]"),
    (sabotaged.index_dropped_too_early, "check_worked_example[C07]"),
    (ill_mannered.missing_lap, "check_reports_phases"),
    # The same mistakes, seen by other checks, and further ones.
    (sabotaged.index_dropped_at_the_first_of_two, "check_worked_example[stands_twice]"),
    (sabotaged.nul_as_truth_value, "check_worked_example[C09]"),
    (sabotaged.dead_neighbour, "check_worked_example[C02]"),
    (sabotaged.dead_neighbour, "check_worked_example[caca]"),
    (sabotaged.inverted_key_without_terminator, "check_worked_example[right_prefix]"),
    (sabotaged.right_to_left, "check_worked_example[C04]"),
    (sabotaged.right_to_left, "check_searched_words"),
    (sabotaged.right_to_left, "check_long_word[two_letters_3000_bytes]"),
    (sabotaged.non_overlapping_count, "check_equals_definition[0]"),
    (sabotaged.heap_dropping_stale_entries, "check_equals_definition[0]"),
    (sabotaged.ties_by_signed_bytes, "check_worked_example[C15]"),
    (sabotaged.ties_by_remapped_characters, "check_worked_example[C14]"),
    (sabotaged.ignores_tie_break, "check_worked_example[smallest_first]"),
    (sabotaged.ignores_tie_break, "check_equals_definition[smallest_bytes-0]"),
    (sabotaged.huggingface_with_raw_byte_ids, "check_worked_example[huggingface_blank]"),
    (sabotaged.raw_ids_compared_as_bytes, "check_worked_example[raw_ids_not_bytes]"),
    (sabotaged.counts_in_int32, "check_counts_scale"),
    (sabotaged.counts_in_uint32, "check_worked_example[past_2_to_32]"),
    (sabotaged.counts_in_float, "check_worked_example[past_2_to_53]"),
    (sabotaged.counts_in_int32, "check_worked_example[sum_above_32_bits]"),
    (sabotaged.leaves_out_pairs_that_occur_once, "check_worked_example[C10]"),
    (sabotaged.loses_pairs_in_parallel_maximum, "check_worked_example[eleven_pairs]"),
    (sabotaged.loses_pairs_in_parallel_maximum, "check_worked_example[last_pair_greatest]"),
    (sabotaged.token_length_in_one_byte, "check_worked_example[run_of_600]"),
    (ill_mannered.repeats_a_dead_pair_at_exhaustion, "check_worked_example[C10]"),
    (ill_mannered.raises_at_exhaustion, "check_worked_example[C12]"),
    (ill_mannered.one_merge_too_few, "check_stops_at_num_merges"),
    (ill_mannered.merges_before_it_asks_whether_to, "check_returns_nothing_when_nothing_is_asked"),
    (ill_mannered.leaves_rare_words_out_when_few_merges_are_asked, "check_prefix_property"),
    (ill_mannered.ignores_min_count, "check_worked_example[min_count_2]"),
    (ill_mannered.min_count_must_be_passed, "check_worked_example[min_count_is_reached]"),
    (ill_mannered.min_count_must_be_passed, "check_min_count[0]"),
    (ill_mannered.replaces_a_column_of_its_input, "check_leaves_input_alone"),
    (ill_mannered.every_second_call_breaks_ties_otherwise, "check_is_repeatable"),
    (ill_mannered.keeps_its_merges_from_call_to_call, "check_is_repeatable"),
    (ill_mannered.every_997th_call_is_wrong, "check_a_thousand_calls"),
    (ill_mannered.breaks_ties_otherwise_after_1000_merges, "check_1500_merges_with_many_ties"),
    (ill_mannered.sees_65536_words, "check_70000_words"),
    (ill_mannered.leaves_out_what_begins_with_c0, "check_every_byte_first_and_last"),
    (ill_mannered.returns_bytearrays, "check_returns_pairs_of_bytes"),
    (ill_mannered.returns_a_generator, "check_worked_example[C12]"),
    (ill_mannered.loses_words_when_threads_do_not_divide_them, "check_width_is_irrelevant"),
    (ill_mannered.invents_a_phase, "check_reports_phases"),
    (ill_mannered.adds_up_the_time_of_its_threads, "check_reports_phases"),
    (ill_mannered.follows_a_copy, "check_follows_its_merges"),
    (ill_mannered.follows_when_all_is_over, "check_follows_its_merges"),
    (ill_mannered.tallies_by_chance, "check_tallies_are_deterministic"),
    (ill_mannered.tallies_by_the_order_of_words, "check_tallies_are_deterministic"),
    (ill_mannered.leaves_a_gap_when_told_to_stop, "check_stops_when_told"),
]

CAUGHT_COUNTERS: list[tuple[Callable[..., Any], str]] = [
    (sabotaged_counters.translates_line_ends, "check_worked_file[F01]"),
    (sabotaged_counters.no_special_tokens_split_everywhere, "check_worked_file[F02]"),
    (sabotaged_counters.always_cuts_at_endoftext, "check_worked_file[F03]"),
    (sabotaged_counters.shortest_special_token_wins, "check_worked_file[F05]"),
    (sabotaged_counters.cuts_at_any_special_token, "check_worked_file[F06]"),
    (sabotaged_counters.cuts_at_any_special_token, "check_worked_file[F07]"),
    (sabotaged_counters.cuts_at_any_special_token, "check_worked_file[self_overlap_repeated]"),
    (sabotaged_counters.cuts_at_any_special_token, "check_worked_file[overlap_repeated]"),
    (sabotaged_counters.counts_special_tokens, "check_worked_file[F08]"),
    (sabotaged_counters.strips_documents, "check_worked_file[F09]"),
    (sabotaged_counters.drops_invalid_bytes, "check_worked_file[F11]"),
    (sabotaged_counters.drops_chunks_with_invalid_bytes, "check_worked_file[invalid_before_special]"),
    (sabotaged_counters.names_the_offset_in_the_document, "check_worked_file[first_of_two_invalid]"),
    (sabotaged_counters.names_a_later_offset, "check_worked_file[first_of_two_invalid]"),
    (sabotaged_counters.names_the_offset_in_the_block, "check_names_the_offset_far_into_a_file"),
    (sabotaged_counters.names_the_offset_in_the_block, "check_large_file_equals_definition"),
    (sabotaged_counters.replaces_every_bad_byte, "check_replacing_is_decoding_first"),
    (sabotaged_counters.raises_on_an_empty_file, "check_worked_file[F12_empty]"),
    (sabotaged_counters.normalises, "check_worked_file[F13]"),
    (sabotaged_counters.cuts_anywhere, "check_worked_file[F14]"),
    (sabotaged_counters.cuts_anywhere, "check_equals_definition[1]"),
    (sabotaged_counters.contractions_in_either_case, "check_worked_file[F15]"),
    (sabotaged_counters.cuts_behind_newlines, "check_worked_file[cut_at_newline]"),
    (sabotaged_counters.forgets_the_last_document, "check_worked_file[special_across_4096]"),
    (sabotaged_counters.joins_documents, "check_worked_file[F04]"),
    (sabotaged_counters.special_tokens_are_patterns, "check_worked_file[special_is_no_pattern]"),
    (sabotaged_counters.takes_a_byte_order_mark_off, "check_worked_file[byte_order_mark]"),
    (sabotaged_counters.knows_ascii_blanks_only, "check_worked_file[blanks_of_unicode]"),
    (sabotaged_counters.knows_ascii_digits_only, "check_worked_file[numbers]"),
    (sabotaged_counters.always_takes_the_same_pattern, "check_worked_file[lines]"),
    (sabotaged_counters.lists_words_once_for_each_document, "check_words_are_distinct"),
    (sabotaged_counters.keeps_its_words_from_call_to_call, "check_keeps_nothing_from_call_to_call"),
    (sabotaged_counters.reports_a_phase_of_training, "check_reports_counting_phases"),
    (sabotaged_counters.returns_a_dict, "check_worked_file[F12_empty]"),
    (sabotaged_counters.counts_nothing, "check_knows_newer_characters"),
]


def named(caught: list[tuple[Callable[..., Any], str]], *modules: ModuleType) -> list[Any]:
    names = {id(subject): name for module in modules for name, subject in vars(module).items()}
    return [
        pytest.param(subject, check, id=f"{names[id(subject)]}-{check}", marks=together(TRAINER_CHECKS.get(check)))
        for subject, check in caught
    ]


@functools.cache
def failure_of(trainer: Callable[..., Any], check: str) -> CheckFailed:
    with pytest.raises(CheckFailed) as failure:
        TRAINER_CHECKS[check](trainer)
    return failure.value


@pytest.mark.parametrize(("trainer", "check"), named(CAUGHT_TRAINERS, sabotaged, ill_mannered))
def test_a_sabotaged_trainer_is_caught_by_the_check_meant_for_it(trainer: Callable[..., Any], check: str) -> None:
    assert failure_of(trainer, check)


@pytest.mark.parametrize(("counter", "check"), named(CAUGHT_COUNTERS, sabotaged_counters))
def test_a_sabotaged_counter_is_caught_by_the_check_meant_for_it(counter: Callable[..., Any], check: str) -> None:
    with pytest.raises(CheckFailed):
        COUNTER_CHECKS[check](counter)


def test_the_trainer_without_sabotage_passes() -> None:
    passing(quick_ones(trainer_checks()), sabotaged.honest)


@pytest.mark.slow
def test_the_trainer_without_sabotage_passes_whatever_begins_late() -> None:
    check_trainer(sabotaged.honest)


def test_the_counter_without_sabotage_passes() -> None:
    passing(quick_ones(counter_checks()), sabotaged_counters.honest)


@pytest.mark.slow
def test_the_counter_without_sabotage_passes_with_large_files_too() -> None:
    check_word_counter(sabotaged_counters.honest)


def test_counter_with_older_unicode_tables_is_skipped_with_the_characters_named() -> None:
    with pytest.raises(CheckSkipped, match=r"its Unicode tables differ .* \d+ characters newer .* \(U\+[0-9A-F]+, "):
        COUNTER_CHECKS["check_knows_newer_characters"](sabotaged_counters.has_older_tables_of_unicode)


def test_every_kind_of_check_has_caught_something() -> None:
    """A check that nothing ever failed may be one that nothing can fail."""
    kinds = {name.partition("[")[0] for name in [*TRAINER_CHECKS, *COUNTER_CHECKS]}
    caught = {name.partition("[")[0] for _, name in CAUGHT_TRAINERS + CAUGHT_COUNTERS}
    assert kinds - caught == {"check_equals_cs336"}, "tested below, because it needs files"


def test_every_worked_file_of_the_definition_fails_a_counter_that_counts_nothing() -> None:
    outcomes = check_word_counter(sabotaged_counters.counts_nothing, on_fail="collect", widths=[1])
    passed = [outcome.check for outcome in outcomes if outcome.status == "passed"]
    assert passed == [
        "check_worked_file[F12_empty]",
        "check_worked_file[F12_only_special]",
        "check_words_are_distinct",
    ]


def test_the_words_of_an_example_are_checked_under_a_tie_break_of_ones_own() -> None:
    with pytest.raises(CheckFailed, match="first difference at merge 1"):
        RAW_BYTES_CHECKS["check_words_of_example[C01]"](sabotaged.non_overlapping_count)


def test_a_failure_names_the_first_difference_the_reason_and_the_words() -> None:
    with pytest.raises(CheckFailed) as failure:
        TRAINER_CHECKS["check_worked_example[C03]"](sabotaged.right_to_left)
    first, why, words = str(failure.value).splitlines()
    assert first == "first difference at merge 3: got (b'a', b'aaaa'), want (b'aaaa', b'a')"
    assert why == "a run is replaced from the left"
    assert words == "word counts: {b'aaaaa': 1}"


@pytest.mark.xdist_group("searched words")
def test_searched_words_shrink_to_the_smallest() -> None:
    failure = failure_of(sabotaged.right_to_left, "check_searched_words")
    assert isinstance(failure.shown_by, WrongWords)
    assert failure.shown_by.smallest(sabotaged.right_to_left).words == {b"aaa": 1}


def test_the_merges_of_cs336_are_compared_where_they_are_present(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = TRAINER_CHECKS["check_equals_cs336"]
    (tmp_path / "corpus.en").write_bytes(b" aaa xy<|endoftext|> aaa xy xy")
    (tmp_path / "train-bpe-reference-merges.txt").write_text("a a\nx y\n\u0120 xy\n", encoding="utf-8")
    monkeypatch.setenv(CS336_FOLDER, str(tmp_path))
    check(sabotaged.honest)
    with pytest.raises(CheckFailed, match="first difference at merge 1"):
        check(sabotaged.non_overlapping_count)
