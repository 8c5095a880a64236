"""Hydra's door: any text gets through as it is, what is meant is composed, and whatever is wrong is
answered with one sentence.
"""

import itertools
import shlex
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from exploring import examples
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from rows import Row, each_row
from workbench import Call, cells, first_fast

from harness import __main__
from harness.common import registry
from harness.measure.process import WorkerLimits
from harness.runs import plan
from harness.runs.overrides import (
    LimitsConfig,
    compose,
    overrides_of,
    quoted,
)

MEANT_IN_QUOTES = ("'", '"', "\\", "${", "$", "}", ",", "a")
NASTY = (
    *" ,()[]{}'\"\\$~=:-+#%\n\té😀a",
    "\\\\",
    "${",
    "中文",
    "null",
    "true",
    "1e3",
    "???",
    "glob(*)",
    "${oc.env:HOME}",
    "\\'",
    "\\${",
    "*",
)
any_text = st.lists(st.sampled_from(NASTY), min_size=1, max_size=8).map("".join) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1
)


def picked(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Of a configuration the values that are wanted."""
    return {
        key: picked(found[key], value) if isinstance(value, dict) else found[key]
        for key, value in wanted.items()
    }


@each_row(__file__, "overrides.toml")
def test_overrides_mean_what_people_write(row: Row) -> None:
    overrides = [*shlex.split(row.get("given", "")), *overrides_of(row.get("settings", {}))]
    found = compose(overrides)
    pairs = zip(found, row["meant"], strict=True)
    assert [picked(msgspec.to_builtins(config), meant) for config, meant in pairs] == row["meant"]


@given(any_text.filter(lambda text: text != "null"))
@example("-rf ~/a,b (c)='d'\\${HOME}\\")
@example("\\'")
@example("".join(map("".join, itertools.product(MEANT_IN_QUOTES, repeat=2))))
@examples(3, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_reaches_the_configuration_unchanged(text: str) -> None:
    names = ("data.path", "save", "results", "pattern.regex")
    texts = f"[{quoted(text)},{quoted('a')}]"
    special_token = f"<{text.replace(',', ';')}>"  # a comma has to be quoted
    (config,) = compose(
        [
            *(f"{name}={text}" for name in names),
            f"special_tokens={special_token}",
            f"variant.params.texts={texts}",
        ]
    )
    assert [config.data.path, config.save, config.results, config.pattern.regex] == [text] * 4
    assert config.special_tokens == [special_token]
    assert config.variant.params["texts"] == [text, "a"]
    assert config.data.name == "file"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", first_fast(sorted(registry.cards("experiment"), key="ladder".__ne__))
)
def test_every_experiment_composes_into_cells(name: str, book: str) -> None:
    assert cells(f"experiment={name}", "data=file", book)


HELPS = (
    "",
    "all",
    *__main__.COMMANDS,
    *map("tokenizer {}".format, (*__main__.OF_TOKENIZERS, "check")),
    *map("corpora {}".format, ("list", "fetch", "info", "verify", "path", "cache", "counts")),
    *map("records {}".format, ("merge", "check", "export")),
)


@pytest.mark.parametrize("command", HELPS)
def test_help_has_80_columns(command: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    lines = call(f"{command} --help").out.splitlines()
    assert max(map(len, lines)) <= 80
    if command not in ("", "all"):
        name, *_ = command.split()
        assert lines[0].startswith(f"usage: python -m harness.{name} ")


def test_help_is_short_and_names_every_command_and_help_all_every_name(call: Call) -> None:
    short = call("variant=naive --help").out
    assert len(short.splitlines()) <= 20
    assert [name for name in __main__.COMMANDS if name not in short] == []

    everything = call("--help all").out
    names = registry.variants().keys() - registry.presets().keys()
    for group in ("data", "counting", "pattern", "experiment"):
        names |= {*registry.names(group)}
    assert [name for name in names if name not in everything] == []


@pytest.mark.slow
def test_keys_tell_apart_what_differs_and_nothing_else(book: str) -> None:
    def key(*overrides: str) -> str:
        (cell,) = cells(book, "variant=naive", *overrides)
        return cell.key

    assert key("seed=5") == key("limits.memory=3GB") == key()
    different = [
        "threads=2",
        "vocab_size=300",
        "tie_break=raw_bytes",
        "min_count=2",
        "errors=replace",
        "special_tokens=[]",
        "pattern=bytes",
        "pattern.partial=true",
        "variants=incremental",
        "limits.wall=5",
        "data.bytes=11B",
        "counting=serial",
        "counting.params.smallest_range=7",
        "counting._target_=builtins:len",
        "counting._target_=builtins:max",
    ]
    assert len({key(), *map(key, different)}) == 1 + len(different)


def test_memory_is_limited_by_what_is_free_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "available_memory", lambda: 10 * 10**9 + 5)
    assert plan.worker_limits(LimitsConfig()).memory_bytes == 8 * 10**9
    assert plan.worker_limits(LimitsConfig(2.5, "2GB")) == WorkerLimits(2.5, 2 * 10**9)


def test_word_of_a_card_is_about_its_parameters() -> None:
    variant = ("variant=peer_turbobpe", "data=ties")
    (as_on_the_card,) = cells(*variant)
    (changed,) = cells(*variant, "variant.params.batch_size=1")
    assert as_on_the_card.variant.by_design
    assert not changed.variant.by_design
