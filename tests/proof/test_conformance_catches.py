"""The suite itself under test: every mistake that we know of is made here, and the check meant for
it sees it.

The wrong trainers and word counters are in sabotaged.py, ill_mannered.py and sabotaged_counters.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import ill_mannered
import pytest
import sabotaged
import sabotaged_counters
from checked import passing, quick_ones, together
from workbench import first_fast

from harness.conformance import counter_checks, trainer_checks
from harness.proof.checks import Check, CheckFailed, outcome_of
from harness.proof.trainer_checks import extension_checks
from variants.contract import TieBreak

TRAINER_CHECKS = {check.name: check for check in trainer_checks()}
COUNTER_CHECKS = {check.name: check for check in counter_checks()}
EXTENSION_CHECKS = {check.name: check for check in extension_checks(list(TieBreak))}

# The checks that must fail each trainer and each counter; [NAME] is a worked example.
CAUGHT_TRAINERS = {
    "ties_to_the_smallest": "[C13]",
    "ties_by_id": "[byte_after_token]",
    "ties_by_concatenation": "[left_prefix]",
    "ties_to_the_first_seen": "[C13]",
    "non_overlapping_count": "[C01] check_equals_definition[0]",
    "right_to_left": "[C03] [C04] check_3000_letters",
    "counts_in_int32": "[C17] [sum_above_32_bits]",
    "heap_without_refresh": "[C20]",
    "heap_dropping_stale_entries": "[C20] check_equals_definition[0]",
    "nul_as_truth_value": "[C08] [C09]",
    "dead_neighbour": "[C05] [C02] [caca]",
    "inverted_key_without_terminator": "[left_prefix] [right_prefix]",
    "index_dropped_too_early": "[C07]",
    "index_dropped_at_the_first_of_two": "[occurs_twice]",
    "ties_by_signed_bytes": "[C15]",
    "ties_by_remapped_characters": "[C14]",
    "ignores_tie_break": "[smallest_first] check_equals_definition[40]",
    "huggingface_with_raw_byte_ids": "[huggingface_blank]",
    "raw_ids_compared_as_bytes": "[raw_ids_not_bytes]",
    "counts_in_uint32": "[past_2_to_32]",
    "counts_in_float": "[past_2_to_53]",
    "leaves_out_pairs_that_occur_once": "[C10]",
    "loses_pairs_in_parallel_maximum": "[eleven_pairs] [last_pair_greatest]",
    "token_length_in_one_byte": "check_run_of_70000",
    "changes_its_input": "check_leaves_input_alone",
    "one_merge_too_many": "check_stops_at_num_merges",
    "missing_lap": "check_reports_phases",
    "raises_at_exhaustion": "[C12]",
    "one_merge_too_few": "check_stops_at_num_merges",
    "merges_before_it_asks_whether_to": "check_stops_at_num_merges",
    "leaves_rare_words_out_when_few_merges_are_wanted": "check_stops_at_num_merges",
    "ignores_min_count": "[min_count_2]",
    "min_count_must_be_passed": "[min_count_is_reached] check_equals_definition[6]",
    "replaces_a_column_of_its_input": "check_leaves_input_alone",
    "every_second_call_breaks_ties_otherwise": "check_a_thousand_calls",
    "keeps_its_merges_from_call_to_call": "check_stops_at_num_merges",
    "every_997th_call_is_wrong": "check_a_thousand_calls",
    "breaks_ties_otherwise_after_1000_merges": "check_1100_merges_with_many_ties",
    "sees_65536_words": "check_70000_words",
    "leaves_out_what_begins_with_c0": "check_every_byte_first_and_last",
    "returns_bytearrays": "[C01]",
    "returns_a_generator": "[C12]",
    "loses_words_when_threads_do_not_divide_them": "check_width_is_irrelevant",
    "invents_a_phase": "check_reports_phases",
    "adds_up_the_time_of_its_threads": "check_reports_phases",
    "follows_a_copy": "check_follows_its_merges",
    "follows_when_all_is_over": "check_follows_its_merges",
    "tallies_by_chance": "check_tallies_are_deterministic",
    "tallies_by_the_order_of_words": "check_tallies_are_deterministic",
    "leaves_a_gap_when_told_to_stop": "check_stops_when_progress_is_refused",
}
CAUGHT_COUNTERS = {
    "translates_line_ends": "[F01]",
    "no_special_tokens_split_everywhere": "[F02]",
    "always_cuts_at_endoftext": "[F03]",
    "shortest_special_token_wins": "[F05]",
    "cuts_at_any_special_token": "[F06] [F07] [self_overlap_repeated] [overlap_repeated]",
    "counts_special_tokens": "[F08]",
    "strips_documents": "[F09]",
    "drops_invalid_bytes": "[F11]",
    "names_the_offset_in_the_document": "[first_of_two_invalid]",
    "names_the_offset_in_the_block": "check_names_the_offset_far_into_a_file check_large_file_equals_definition",
    "replaces_every_bad_byte": "[replaced]",
    "raises_on_an_empty_file": "[F12_empty]",
    "normalises": "[F13]",
    "cuts_anywhere": "[F14] check_equals_definition[1]",
    "contractions_in_either_case": "[F15]",
    "cuts_behind_newlines": "[cut_at_newline]",
    "forgets_the_last_document": "[special_across_4096]",
    "joins_documents": "[F04]",
    "special_tokens_are_patterns": "[special_is_not_a_pattern]",
    "takes_a_byte_order_mark_off": "[byte_order_mark]",
    "knows_ascii_blanks_only": "[blanks_of_unicode]",
    "knows_ascii_digits_only": "[numbers]",
    "always_takes_the_same_pattern": "[lines]",
    "lists_words_once_for_each_document": "check_equals_definition[1]",
    "keeps_its_words_from_call_to_call": "check_calls_are_independent",
    "reports_a_phase_of_training": "check_reports_counting_phases",
    "returns_a_dict": "[F12_empty]",
    "counts_nothing": "[F02]",
}
CAUGHT_EXTENDERS = {
    "veto_forgotten_for_the_second_occurrence": "[veto_again]",
    "no_veto": "[veto_colon] [veto_and_min_count] check_extends_as_defined[1]",
    "veto_applied_to_inherited": "[veto_spares_inherited]",
    "spells_a_token_twice": "[spelled_once]",
    "dropped_merge_kept": "[met_never_met] [dropped_ones_have_no_id]",
    "used_up_merge_dropped": "[met_used_up]",
    "kept_merge_dropped": "[kept_never_met]",
    "inherited_in_another_order": "[ids_in_the_order_of_the_list]",
    "runs_counted_without_overlap": "[kept_long_run]",
    "refuses_nothing": "check_refuses_to_inherit",
    "inherits_in_one_thread_only": "check_extends_at_any_width",
}


def cases(
    caught: Mapping[str, str], example: str, checks: Mapping[str, Check], *modules: object
) -> list[Any]:
    subjects = {name: subject for module in modules for name, subject in vars(module).items()}
    return [
        pytest.param(
            subjects[subject], checks[name], id=f"{subject}-{name}", marks=together(checks[name])
        )
        for subject, names in caught.items()
        for name in re.sub(r"(?<!\w)\[", f"{example}[", names).split()
    ]


TRAINERS = cases(CAUGHT_TRAINERS, "check_worked_example", TRAINER_CHECKS, sabotaged, ill_mannered)
COUNTERS = cases(CAUGHT_COUNTERS, "check_worked_file", COUNTER_CHECKS, sabotaged_counters)
EXTENDERS = cases(CAUGHT_EXTENDERS, "check_extends", EXTENSION_CHECKS, sabotaged)


@pytest.mark.parametrize(("subject", "check"), [*TRAINERS, *COUNTERS, *EXTENDERS])
def test_sabotage_is_caught_by_the_check_meant_for_it(
    subject: Callable[..., Any], check: Check
) -> None:
    with pytest.raises(CheckFailed):
        check(subject)


@pytest.mark.parametrize("quick", first_fast([True, False]))
def test_honest_subjects_pass(quick: bool) -> None:
    passing(quick_ones(trainer_checks(), quick), sabotaged.honest)
    passing(quick_ones(counter_checks(), quick), sabotaged_counters.honest)
    assert passing(list(EXTENSION_CHECKS.values()), sabotaged.honest_extender) == [
        "check_extends_at_any_width"
    ]


def test_every_kind_of_check_has_caught_something() -> None:
    """A check that nothing ever failed may be one that nothing can fail."""
    kinds = {
        name.partition("[")[0] for name in [*TRAINER_CHECKS, *COUNTER_CHECKS, *EXTENSION_CHECKS]
    }
    caught = {case.values[1].name.partition("[")[0] for case in TRAINERS + COUNTERS + EXTENDERS}
    assert kinds == caught


def test_words_of_an_example_are_checked_under_another_tie_break() -> None:
    checks = {check.name: check for check in trainer_checks([TieBreak.RAW_BYTES])}
    with pytest.raises(CheckFailed, match="first difference at merge 1"):
        checks["check_worked_example[C01]"](sabotaged.non_overlapping_count)


def test_failure_shows_the_first_difference_the_reason_and_the_words() -> None:
    outcome = outcome_of(TRAINER_CHECKS["check_worked_example[C03]"], sabotaged.right_to_left)
    assert outcome.message.splitlines() == [
        "first difference at merge 3: got (b'a', b'aaaa'), want (b'aaaa', b'a')",
        "a run is replaced from the left",
        "word counts: {b'aaaaa': 1}",
        "called for 23 merges, tie_break=greatest_bytes",
    ]
