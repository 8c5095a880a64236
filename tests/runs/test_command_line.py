"""Hydra's door: any text gets through as it is, and whatever is wrong is answered with one
sentence.
"""

from __future__ import annotations

import copy
import importlib.metadata
import itertools
import re
import shlex
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from exploring import examples
from hydra.core.config_store import ConfigStore
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from omegaconf import OmegaConf
from workbench import CHECKOUT, cases_beside, cells, first_fast

from harness import __main__
from harness.__main__ import usage
from harness.common import registry
from harness.common.configuration import HarnessConfig
from harness.common.errors import USAGE, Refusal
from harness.runs.compose import compose, quoted
from harness.runs.plan import planned

NASTY = [
    *(" ,()[]{}'\"\\$~=:-+#%\n\té😀a"),
    *(
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
    ),
]
SUBCOMMANDS = {
    "tokenizer": ("train", "encode", "decode", "convert", "cut", "check", "stats", "unused"),
    "corpora": ("list", "fetch", "info", "verify", "path", "cache", "counts"),
    "records": ("merge", "check", "export"),
}
MEANT_IN_QUOTES = ("'", '"', "\\", "${", "$", "}", ",", "a")
any_text = st.lists(st.sampled_from(NASTY), min_size=1, max_size=8).map("".join) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1
)


def composed(*arguments: str) -> dict[str, Any]:
    """The one configuration that the arguments enumerate."""
    (found,) = compose(arguments)
    return asdict(found.values)


def refusal_of(*arguments: str) -> str:
    """The sentence with which the arguments are refused, when composed or when planned."""
    with pytest.raises(Refusal) as refused:
        planned(arguments)
    assert refused.value.exit_code == USAGE
    assert "\n" not in str(refused.value)
    return str(refused.value)


# ---- values that are taken as they are


@given(any_text.filter(lambda text: text != "null"))
@example("-rf ~/a,b (c)='d'\\${HOME}\\")
@example("\\'")
@example("".join(map("".join, itertools.product(MEANT_IN_QUOTES, repeat=2))))
@examples(3, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_reaches_the_configuration_unchanged(text: str) -> None:
    arguments = [f"{name}={text}" for name in ("data.path", "save", "results", "pattern.regex")]
    config = composed(
        *arguments,
        f"special_tokens=<{text}>",
        f"variant.params.texts=[{quoted(text)},{quoted('a')}]",
    )
    assert [
        config["data"]["path"],
        config["save"],
        config["results"],
        config["pattern"]["regex"],
    ] == [text] * 4
    assert config["special_tokens"] == [f"<{text}>"]
    assert config["variant"]["params"]["texts"] == [text, "a"]
    assert config["data"]["name"] == "file"


def test_quoted_text_is_read_back_by_hydra_in_a_sweep() -> None:
    found = [
        asdict(each.values)
        for each in compose(
            ["-m", "data.path='a,b.txt'", "save=x,y", "threads=1,2", "special_tokens=a,b"]
        )
    ]
    assert [
        (each["data"]["path"], each["save"], each["threads"], each["special_tokens"])
        for each in found
    ] == [("a,b.txt", "x,y", threads, ["a,b"]) for threads in (1, 2)]


@pytest.mark.parametrize(
    ("path", "paths"),
    [
        ("a.txt,b.txt", ["a.txt", "b.txt"]),
        ("texts,'b c.txt'", ["texts", "b c.txt"]),
        ("[a.txt,b.txt]", ["[a.txt,b.txt]"]),
        ("a.txt", ["a.txt"]),
    ],
)
def test_a_sweep_goes_over_files_and_folders(path: str, paths: list[str]) -> None:
    found = compose(["-m", f"data.path={path}", "threads=1,2"])
    assert [config.values.data["path"] for config in found] == [
        path for path in paths for _ in (1, 2)
    ]


def test_an_existing_file_with_a_comma_is_one_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a,b.txt").touch()
    assert composed("-m", "data.path=a,b.txt")["data"]["path"] == "a,b.txt"


def test_a_file_that_was_meant_is_named_as_a_shell_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a [b].txt").touch()
    for argument in ("a [b].txt", "data=a [b].txt"):
        assert "'data.path=a [b].txt'" in refusal_of(argument)
    Path("stdlib").touch()
    assert composed("data=stdlib")["data"]["name"] == "stdlib"


def test_variant_takes_what_variants_takes(book: str) -> None:
    for several in ("heap,builtins:len", "heap,naive", "builtins:len"):
        swept = cells("-m", book, f"variant={several}")
        assert [cell.key for cell in swept] == [
            cell.key for cell in cells(book, f"variants={several}")
        ]
    one = cells(book, "variant=builtins:len")
    assert [cell.variant.name for cell in one] == ["builtins:len"]


def test_a_trainer_of_ones_own_is_looked_up_before_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = Path("mine_here.py")
    mine.write_text("from heapq import merge\ndef train(): ...\nraise SystemExit('imported')\n")
    for key in ("variant", "variants", "variant._target_", "counting._target_"):
        for name, meant in (("trian", "train"), ("mrege", "merge")):
            answer = refusal_of(f"{key}=mine_here:{name}")
            place = f"'mine_here:{name}' is not in {tmp_path}/mine_here.py"
            assert answer == f"{place}; did you mean mine_here:{meant}?"
    for name in ("mine_here", "mine_here.py", "mine_here.py:train"):
        assert "; did you mean mine_here:train?" in refusal_of(f"variants={name}")
        assert refusal_of(name).endswith("; did you mean variants=mine_here:train?")
    mine.write_text("from elsewhere import *\n")
    assert registry.select(["mine_here:trian"])


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ("tran x", "did you mean bpe-harness tokenizer train?"),
        ("encode x", "did you mean bpe-harness tokenizer encode?"),
        ("tabel", "did you mean bpe-harness table?"),
        ("corpora lst", "unknown command 'lst'; did you mean list? there are: list, fetch, info,"),
        ("tokenizer decoed x", "unknown command 'decoed'; did you mean decode?"),
        ("table --format hyprfine", "unknown --format 'hyprfine'; did you mean hyperfine?"),
        ("corpora counts text.txt --least 3", "did you mean --min-count?"),
        ("table --compare old new --unlike", "did you mean --allow-different?"),
        ("parity en=en.txt --vocab-size 300 --save mine --together 2", "mean --warmup-merges?"),
    ],
)
def test_the_command_or_the_option_that_was_meant_is_named(
    command: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code: object = None
    try:
        code = __main__.main(command.split())
    except SystemExit as ended:
        code = ended.code
    assert (code, meant in capsys.readouterr().err) == (USAGE, True)


def test_texts_are_called_by_their_own_names(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(f"low {folder}")
        (tmp_path / folder / "b.txt").write_text(f"lower {folder}")
    found = cells("-m", f"data.path={tmp_path}/one/*.txt,{tmp_path}/two/*.txt,{tmp_path}/two/a.txt")
    assert [cell.reading.file.name for cell in found] == ["one/*.txt", "two/*.txt", "a.txt"]
    assert cells("data=stdlib", f"data.path={tmp_path}/one/a.txt")[0].reading.file.name == "a.txt"


def test_overrides_mean_what_people_write() -> None:
    assert composed("data.path=${oc.env:SECRET}")["data"]["path"] == "${oc.env:SECRET}"
    assert composed("save=null", "pattern.regex=null")["save"] is None
    for names in ("naive,heap", "[naive, heap]"):
        assert composed(f"variants={names}")["variants"] == ["naive", "heap"]
    for size in ("10k", "1e4", "10_000", "0.01M"):
        assert composed(f"vocab_size={size}")["vocab_size"] == 10_000
    for own, name in (
        ("+tokens=true", "file"),
        ("data=owt", "owt"),
        ("experiment=issue_1400", "file"),
    ):
        assert composed(own, "data.path=book.txt")["data"]["name"] == name


def test_special_tokens_as_people_write_them() -> None:
    for text, tokens in {
        "[ ]": [],
        "<|endoftext|>": ["<|endoftext|>"],
        "[ <|a|> , '<|b|>' ]": ["<|a|>", "<|b|>"],
        """['a,b',"it's",c"d]""": ["a,b", "it's", 'c"d'],
        "[[PAD],[CLS]]": ["[PAD]", "[CLS]"],
        "['[']": ["["],
        "[' ']": [" "],
        "a,b": ["a,b"],
    }.items():
        assert composed(f"special_tokens={text}")["special_tokens"] == tokens
    for text in ("[PAD],[CLS]", "['a' b]", "[']"):
        assert "write [A,B]" in refusal_of(f"special_tokens={text}")


# ---- options, sweeps, names


@pytest.mark.parametrize("group", ["variant", "data", "counting", "pattern"])
def test_every_card_fits_the_schema_and_is_named_as_its_file(group: str) -> None:
    schema = OmegaConf.structured(HarnessConfig)[group]
    for name, card in registry.cards(group).items():
        assert OmegaConf.merge(schema, card).name == name


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", first_fast(sorted(registry.cards("experiment"), key="ladder".__ne__))
)
def test_every_experiment_composes_into_cells(name: str, book: str) -> None:
    assert cells(f"experiment={name}", "data=file", book)


@pytest.mark.parametrize(("arguments", "message"), cases_beside(__file__, "refused.txt"))
def test_invalid_arguments_are_refused_in_one_sentence(
    arguments: str, message: str, book: str
) -> None:
    given = shlex.split(arguments)
    own = [] if any(argument.startswith("data") for argument in given) else [book]
    assert message in refusal_of(*own, *given)


# ---- the whole command


@pytest.mark.slow
def test_an_experiment_may_be_a_sweep_by_itself() -> None:
    swept = cells("experiment=frontier")
    assert {cell.tie_break for cell in swept} == {"huggingface", "raw_bytes"}
    assert {cell.tie_break for cell in cells("experiment=frontier", "tie_break=huggingface")} == {
        "huggingface"
    }


def test_help_is_short_and_help_all_has_every_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["variant=naive", "--help"]) == 0
    assert len(capsys.readouterr().out.splitlines()) <= 20
    assert __main__.main(["--help", "all"]) == 0
    everything = capsys.readouterr().out
    assert max(map(len, everything.splitlines())) <= 80
    names = [
        name
        for group in ("data", "counting", "pattern", "experiment")
        for name in registry.cards(group)
    ]
    names += registry.variants().keys() - registry.presets().keys()
    assert [name for name in names if name not in everything] == []


@pytest.mark.parametrize("name", __main__.COMMANDS)
def test_each_command_is_one_of_bpe_harness_with_help_of_80_columns(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (CHECKOUT / "harness" / f"{name}.py").exists() or (
        CHECKOUT / "harness" / name / "__main__.py"
    ).exists()
    monkeypatch.setenv("COLUMNS", "200")
    __main__.main(["--help"])
    assert re.search(rf"\b{name}\b", capsys.readouterr().out)
    for subcommand in ([], *([each] for each in SUBCOMMANDS.get(name, ()))):
        with pytest.raises(SystemExit):
            __main__.main([name, *subcommand, "--help"])
        shown = capsys.readouterr().out
        assert shown.startswith(f"usage: python -m harness.{name} ")
        assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.slow
def test_a_sweep_a_list_and_a_glob_are_the_same_cells(book: str) -> None:
    sweep = cells("-m", book, "variant=naive,heap,flat")
    assert {each.key for each in sweep} == {
        each.key for each in cells(book, "variants=[naive,heap,flat]")
    }
    cython = cells("-m", book, "variant=glob(cython_*)")
    assert {each.key for each in cython} == {each.key for each in cells(book, "variants=cython")}
    everything = cells(book, "variants=all")
    assert len(everything) == len(registry.variants())
    assert {each.key for each in cells("-m", book, "variant=glob(*)")} == {
        each.key for each in everything
    }


# ---- trainers of other packages


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A trainer that another package announces by an entry point."""
    theirs = importlib.metadata.EntryPoint(
        "theirs", "their_package.bpe:train", registry.ENTRY_POINTS
    )
    entry_points = importlib.metadata.entry_points

    def with_theirs(**selection: str) -> Any:
        return (
            [theirs] if selection == {"group": registry.ENTRY_POINTS} else entry_points(**selection)
        )

    monkeypatch.setattr(importlib.metadata, "entry_points", with_theirs)
    monkeypatch.setattr(ConfigStore.instance(), "repo", copy.deepcopy(ConfigStore.instance().repo))
    registry.variants.cache_clear()
    yield "theirs"
    registry.variants.cache_clear()


def test_an_announced_trainer_is_a_variant_like_others(announced: str, book: str) -> None:
    assert composed(f"variant={announced}")["variant"]["_target_"] == "their_package.bpe:train"
    found = compose(["-m", book, "variant=glob(*, exclude=[c*,e*,f*,h*,i*,m*,p*,s*])"])
    assert {each.variant.name for each in found} == {
        "naive",
        "naive_extending",
        announced,
    }
    assert announced in usage()
    assert f"did you mean {announced}?" in refusal_of(f"variant={announced}x")
    (cell,) = cells(book, f"variant={announced}", "variant.params.depth=3")
    assert (cell.variant.name, dict(cell.variant.params)) == (announced, {"depth": 3})
