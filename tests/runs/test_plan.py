"""From overrides to cells: which variants with which parameters, and what is refused before
measuring.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from workbench import cell_of, cells, reading_of

from harness.__main__ import main
from harness.common import registry
from harness.common.cards import PatternCard
from harness.common.configuration import LimitsConfig
from harness.common.errors import OK, Refusal
from harness.common.registry import parse_bytes
from harness.measure.process import WorkerLimits
from harness.runs import plan
from harness.runs.compose import compose
from harness.runs.plan import limits_of, pattern_of, planned, settings_of
from harness.runs.saving import folder_names
from variants.contract import GPT2_PATTERN

# ---- which variants, which counter


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["variant=heap", "variants=[naive]"], {"naive": {}}),
        (["variants=[definition,heap,naive]"], {"naive": {}, "naive_extending": {}, "heap": {}}),
        # A parameter goes to those that take it, also if it is another's default; any goes to other
        # packages' trainers.
        (
            ["variants=[naive,heap]", "variant.params.push=grown"],
            {"naive": {}, "heap": {"push": "grown"}},
        ),
        (
            ["variants=[heap,heap_opt]", "variant.params.push=all"],
            {"heap": {}, "heap_opt": {"push": "all"}},
        ),
        (
            ["variant=seg_status", "variant.params.compress_threshold=1"],
            {"seg_status": {"compress_threshold": 1}},
        ),
    ],
)
def test_variants_are_selected_with_their_parameters(
    book: str, arguments: list[str], found: dict[str, Any]
) -> None:
    cards = [cell.variant for cell in cells(book, *arguments)]
    usual = registry.variants()
    assert [(card.name, dict(card.params)) for card in cards] == [
        (name, {**usual[name].params, **changed}) for name, changed in found.items()
    ]


def test_a_trainer_of_ones_own_has_the_parameters_of_the_command_line(book: str) -> None:
    given = ["variant.params.push=all", "variant.params.tree.leaf=2"]
    (cell,) = cells(book, "variant._target_=builtins:len", *given)
    assert (cell.variant.name, dict(cell.variant.params)) == (
        "builtins:len",
        {"push": "all", "tree": {"leaf": 2}},
    )


@pytest.mark.parametrize(
    ("arguments", "counter", "chosen", "params"),
    [
        (["variant=naive"], "native", False, {}),
        (["variant=naive", "counting=processes"], "processes", True, {}),
        (
            ["variant=multiprocess", "counting.params.smallest_range=7"],
            "processes",
            False,
            {"smallest_range": 7},
        ),
        (
            ["counting=processes", "counting.params.smallest_range=7"],
            "processes",
            True,
            {"smallest_range": 7},
        ),
        (["counting._target_=builtins:len"], "builtins:len", True, {}),
    ],
)
def test_the_counter_is_the_variants_own_unless_one_is_chosen(
    book: str, arguments: list[str], counter: str, chosen: bool, params: dict[str, Any]
) -> None:
    (cell,) = cells(book, *arguments)
    usual = registry.counters()[counter].params if counter in registry.counters() else {}
    assert (cell.count.counter.name, cell.counting_chosen) == (counter, chosen)
    assert dict(cell.count.counter.params) == {**usual, **params}


# ---- what is meant


def test_vocab_size_is_the_final_size_and_by_default_the_cards(book: str) -> None:
    smallest, default = (
        cells(book, "vocab_size=258", "special_tokens=[a,b]"),
        cells(book, "special_tokens=[]"),
    )
    assert [cell.num_merges for cell in (*smallest, *default)] == [0, 10_000 - 256]
    bounded = cells(
        "-m", book, "vocab_size=270,280,400", "vocab_size_at_most={file: 280}", "threads=1,all"
    )
    assert {cell.vocab_size for cell in bounded} == {270, 280}


def test_a_pattern_is_named_by_its_card_or_by_itself() -> None:
    assert registry.cards("pattern")["gpt2"]["regex"] == GPT2_PATTERN
    for name, expression, named in [
        ("gpt2", GPT2_PATTERN, "gpt2"),
        ("gpt2", None, "bytes"),
        ("gpt2", r"\w+", r"\w+"),
        ("words", r"\w+", "words"),
    ]:
        assert pattern_of(PatternCard(name, expression)) == (named, expression)


def test_a_preset_says_how_often_unless_the_command_does() -> None:
    for arguments, how in (
        ([], ("quick", "time", 0, 1)),
        (["measure=careful", "repeat=40"], ("careful", "time", 1, 40)),
        (["measure=proof"], ("proof", "proof", 0, 1)),
        (["measure=paired", "measure.warm_up=0"], ("paired", "time", 0, 10)),
    ):
        settings = settings_of(compose(arguments)[0])
        assert (settings.measure, settings.kind, settings.warm_up, settings.repeat) == how


def test_memory_is_limited_by_what_is_free_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "available_memory", lambda: 10 * 10**9 + 5)
    assert limits_of(LimitsConfig()).memory_bytes == 8 * 10**9
    assert limits_of(LimitsConfig(2.5, "2GB")) == WorkerLimits(2.5, 2 * 10**9)


def test_keys_tell_apart_what_differs_and_nothing_else(book: str) -> None:

    def key(*overrides: str) -> str:
        (cell,) = cells(book, "variant=naive", *overrides)
        return cell.key

    assert key("seed=5") == key("limits.memory=3GB") == key()
    mine = "counting._target_=builtins:len"
    keys = [
        *(key(), key("threads=2"), key("vocab_size=300"), key("tie_break=raw_bytes")),
        *(key("min_count=2"), key("errors=replace"), key("special_tokens=[]")),
        *(key("variants=incremental"), key("pattern=bytes"), key("pattern.partial=true")),
        *(key("limits.wall=5"), key(mine), key(mine, "counting.params.x=1")),
        key("data.bytes=11B"),
    ]
    assert len({*keys}) == len(keys)


def test_a_broken_card_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "variant").mkdir()
    monkeypatch.setattr(registry, "conf_folder", lambda: tmp_path)
    for content, message in {
        "name: [": "broken.yaml is not a mapping in YAML",
        "- a\n- b\n": "broken.yaml is not a mapping in YAML",
        "name: other\n_target_: a:b\n": "broken.yaml: name: 'other' is not the file's; write broken",
        "name: broken\n": "broken.yaml: object missing required field `_target_`",
    }.items():
        (tmp_path / "variant" / "broken.yaml").write_text(content)
        with pytest.raises(Refusal, match=message):
            registry.variants.__wrapped__()


def test_a_target_that_is_no_function_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_on_import.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    for target, message in {
        "nonesuch:train": "cannot import 'nonesuch:train'",
        "variants.naive:Vocabulary.nonesuch": "cannot import",
        "not a target": "package.module:function",
        "broken_on_import:train": "ZeroDivisionError",
        "variants.contract:GPT2_PATTERN": "is str, not a function",
    }.items():
        with pytest.raises(Refusal, match=message):
            registry.resolve(target)


def test_sizes_as_people_write_them() -> None:
    sizes = {
        "64 mb": 64 * 10**6,
        " 1.5GiB ": 3 * 2**29,
        "0.001MB": 1000,
        "9007199254740993": 9007199254740993,
    }
    for text, size in sizes.items():
        assert parse_bytes(text, "data.bytes") == size
    for wrong in ("", "-1", "1,000", "1TBB", "nan", "9" * 5000):
        with pytest.raises(Refusal, match="is not a size; write a number"):
            parse_bytes(wrong, "data.bytes")


# ---- threads that nobody uses


@pytest.mark.parametrize(
    ("variant", "counting", "threads"),
    [("heap", "serial", [1]), ("heap", "native", [1, 2]), ("flat", "serial", [1, 2])],
)
def test_trainer_and_counter_without_threads_are_planned_once(
    book: str, variant: str, counting: str, threads: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = planned(["-m", book, f"variant={variant}", f"counting={counting}", "threads=1,2"])
    assert [cell.count.threads for cell in sweep.cells] == threads
    note = "heap and counting=serial take no threads: not measured again with threads=2\n"
    assert capsys.readouterr().err == ("" if threads == [1, 2] else note)


def test_requested_threads_are_planned_even_if_nobody_uses_them(book: str) -> None:
    (cell,) = planned([book, "variant=heap", "counting=serial", "threads=2"]).cells
    assert cell.count.threads == 2


# ---- plan=true


def test_a_plan_has_a_line_for_each_trainer(book: str, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = ["-m", "variant=heap,naive", "vocab_size=270,280", "counting=serial"]
    for arguments, part in (
        (sweep, "heap on book.txt (17 bytes), 13 merges, counting=serial, threads=1"),
        (sweep, "4 cells in 2 tasks, 1 block; nothing was run (plan=true)"),
        (["measure=paired", "repeat=2"], "2 blocks after 1 of warm-up; nothing"),
        (["measure=precise"], "6 to 20 blocks after 1 of warm-up"),
    ):
        assert main([book, "plan=true", *arguments]) == OK
        assert part in capsys.readouterr().out


def test_folders_of_tokenizers_have_names_of_their_own(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    one, two = cell_of(reading), cell_of(reading, num_merges=20)
    other = cell_of(reading, min_count=2)
    assert list(folder_names([one]).values()) == ["heap"]
    assert list(folder_names([one, two]).values()) == ["heap-text.txt-267", "heap-text.txt-277"]
    assert list(folder_names([one, other]).values()) == [
        f"heap-text.txt-267-{cell.key[:8]}" for cell in (one, other)
    ]


def test_word_of_a_card_is_about_its_parameters() -> None:
    (as_on_the_card,) = cells("variant=peer_turbobpe", "data=ties")
    (changed,) = cells("variant=peer_turbobpe", "data=ties", "variant.params.batch_size=1")
    assert as_on_the_card.variant.by_design
    assert not changed.variant.by_design


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        ("a/x.txt,b/x.txt", ["a/x.txt", "b/x.txt"]),
        ("a/x.txt,b/x.txt,a/b/x.txt", ["a/x.txt", "HERE/b/x.txt", "a/b/x.txt"]),
        ("a/x.txt,a/y.txt", ["x.txt", "y.txt"]),
    ],
)
def test_files_of_one_name_have_the_shortest_names_that_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: str, names: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a/x.txt", "a/y.txt", "b/x.txt", "a/b/x.txt"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(name)
    found = planned(["-m", f"data.path={paths}", "vocab_size=257"]).cells
    expected = [name.replace("HERE", tmp_path.name) for name in names]
    assert [cell.reading.file.name for cell in found] == expected
