"""Hydra's door: the command line made safe for it, its answers made sentences, and nothing else done inside it.

Hydra only enumerates. Its task function adds what was composed to a list; when it has returned, the rest begins.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

import hydra
import hydra.errors
from hydra._internal import hydra as hydra_application
from hydra._internal.hydra import Hydra
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus
from hydra.errors import HydraException
from hydra.plugins.sweeper import Sweeper
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from harness.common import configuration, registry
from harness.common.choices import split_list
from harness.common.errors import Refusal
from harness.common.quick_yaml import quick_yaml

# Values that are text, not Hydra's language: quoted before it parses.
LITERAL = ("data.path", "data.column", "data.separator", "extend", "save", "results", "pattern.regex")
# Hydra's own options: those that ask it for information, so that nothing is enumerated, and the others.
ASKING = {"-c", "--cfg", "-i", "--info", "--hydra-help", "--shell-completion", "-sc"}
OPTIONS = {"-m", "--multirun", "--run", "-r", "-p", "--package", "--resolve", "--config-dir", "-cd", *ASKING}
# What completion is installed for: Hydra's script calls the command that it finds in sys.argv[0].
PROGRAM = "bpe-harness"
HELP = "python -m harness --help shows what can be said"
GROUPS = ("variant", "data", "counting", "pattern", "measure", "experiment")


class Composed(NamedTuple):
    """One configuration as Hydra composed it, and the keys that the command line set."""

    config: dict[str, Any]
    said: list[str]


def compose(arguments: Sequence[str]) -> list[Composed] | None:
    """Every configuration that the arguments enumerate; None if Hydra was asked for information and has given it.

    Raises Refusal, with one sentence, for what Hydra does not understand.
    """
    for argument in arguments:
        check_names(argument)
    arguments = prepared(arguments)
    composed: list[Composed] = []

    def add(config: DictConfig) -> None:
        said = [override.lstrip("+~").partition("=")[0] for override in HydraConfig.get().overrides.task]
        composed.append(Composed(OmegaConf.to_container(config, resolve=True), said))  # type: ignore[arg-type]

    with (
        tempfile.TemporaryDirectory() as folder,
        as_hydra_needs_it([PROGRAM, *arguments, *out_of_the_way(folder)]),
        without_asking_for_the_mode(arguments),
    ):
        configuration.register(arguments)
        configured = hydra.main(version_base="1.3", config_path=str(registry.conf_folder()), config_name="config")
        enumerate_with = configured(add)
        try:
            enumerate_with()
        except (HydraException, OmegaConfBaseException, ValueError, TypeError) as error:
            raise Refusal(sentence(error, chosen_data(arguments))) from error
    if not composed and not ASKING.intersection(argument.partition("=")[0] for argument in arguments):
        raise Refusal(f"there is nothing to measure, no name matches; {HELP}")
    return composed or None


def out_of_the_way(folder: str) -> list[str]:
    """Hydra writes folders and a copy of the sweep; we keep records of our own, so these go where they vanish."""
    return [f"hydra.run.dir={quoted(folder)}", f"hydra.sweep.dir={quoted(folder)}"]


def prepared(arguments: Sequence[str]) -> list[str]:
    """The arguments, options first, with literal values quoted, `data=file` understood, and any parameter let in."""
    values = [argument for argument in arguments if "=" in argument and not argument.startswith("-")]
    options = [argument for argument in arguments if argument not in values]
    said = dict(argument.lstrip("+").partition("=")[::2] for argument in values)
    if "data.path" in said and "data" not in said and not chooses_data(said.get("experiment", "")):
        values.insert(0, "data=file")
    return [*options, "--", *map(prepared_value, values)]


def chooses_data(experiments: str) -> bool:
    """Whether one of these experiments says which data card it is about."""
    cards = registry.cards("experiment")
    chosen = [cards[name] for name in map(str.strip, experiments.strip("[]").split(",")) if name in cards]
    defaults = [default for card in chosen for default in card.get("defaults", [])]
    return any(isinstance(default, dict) and "override /data" in default for default in defaults)


def prepared_value(argument: str) -> str:
    key, _, value = argument.partition("=")
    name = key.lstrip("+")
    if name in LITERAL and value != "null":
        return f"{key}={quoted(value)}"
    if name == "special_tokens":
        return f"{key}=[{','.join(map(quoted, listed(value)))}]"
    if key.partition(".")[0] == "vocab_size_at_most":
        return f"++{argument}"  # its keys are data sets, of which the configuration names none
    if key.startswith(("variant.params.", "counting.params.")):
        if "{" in value and value[0] not in "'\"[{":  # a command with places in braces, which Hydra takes for a mapping
            return f"++{key}={quoted(value)}"
        return f"++{argument}"  # whether the variant takes it is our question, and our answer names what it takes
    return argument


def quoted(text: str) -> str:
    """`text` as a quoted value that Hydra and OmegaConf take for exactly this text.

    Both read backslashes as escapes only before a quote or an interpolation, so only those are doubled.

    >>> print(quoted("it's ${HOME}"))
    'it\\'s \\${HOME}'
    """
    text = re.sub(r"(\\*)\$\{", lambda found: found[1] * 2 + r"\${", text)
    return "'" + re.sub(r"(\\*)('|\Z)", lambda found: found[1] * 2 + (r"\'" if found[2] else ""), text) + "'"


def listed(value: str) -> list[str]:
    """The special tokens in `[a,b]`, `['a,b','c']` or plain `a`. Raises Refusal where it cannot tell.

    >>> listed("['<|a|>', b]"), listed("<|endoftext|>"), listed("[]")
    (['<|a|>', 'b'], ['<|endoftext|>'], [])
    """
    if value == "null":
        raise Refusal("special_tokens=null is none of the possibilities; set special_tokens=[] for no special tokens")
    return split_list(value, "special_tokens")


def check_names(argument: str) -> None:
    """Answer a name that does not exist with those that do, before Hydra answers at length."""
    if argument.startswith("-") and argument.partition("=")[0] not in OPTIONS:
        raise Refusal(f"there is no option {argument}; {HELP}")
    if argument.startswith("~"):
        raise Refusal(f"{argument}: nothing can be taken away; give it another value")
    key, equals, value = argument.partition("=")
    if key in ("variant.params", "counting.params"):
        raise Refusal(f"{key} is said one by one, as {key}.NAME=VALUE")
    if key in GROUPS and key != "experiment" and value.startswith("["):
        several = "variants=[A,B]" if key == "variant" else f"-m {key}=A,B"
        raise Refusal(f"{key} is one name; for several use {several}")
    if key not in GROUPS or not equals or re.search(r"[(\[{}'\"]", value):
        return
    for name in map(str.strip, value.split(",")):
        if not (registry.variant(name) if key == "variant" else name in registry.cards(key)):
            raise Refusal(_unknown(key, name))


def existing(group: str) -> list[str]:
    """The names that there are in a group of configuration."""
    return list(registry.variants() if group == "variant" else registry.cards(group))


def _unknown(group: str, name: str) -> str:
    if group == "data" and registry.looks_like_a_file(name):
        return f"there is no data set {name!r}; for a file say data.path={name}"
    if group == "variant" and ":" in name:
        return f"there is no variant {name!r}; for a trainer of yours say variants=[{name}]"
    return registry.unknown(group, name, existing(group))


def chosen_data(arguments: Sequence[str]) -> str:
    """The data set that is named last."""
    named = [argument.partition("=")[2] for argument in arguments if argument.lstrip("+").startswith("data=")]
    return named[-1] if named else ""


def sentence(error: BaseException, data: str = "") -> str:
    """What Hydra or OmegaConf complained of in a run on this data set, in one line."""
    lines = [line.strip() for line in f"{error}\n{error.__cause__ or ''}".splitlines()]
    told = [line for line in lines if line and not line.startswith(("full_key:", "object_type", "reference_type"))]
    said = ": ".join(line.rstrip(":") for line in told[:2]) or type(error).__name__
    if (match := re.search(r"Could not find '(\w+)/([^']+)'", said)) and match[1] in GROUPS:
        return _unknown(match[1], match[2])
    if match := re.search(r"Could not override '([^']+)'", said):
        return registry.unknown("override", match[1], configuration.keys_beside(match[1], data))
    if match := re.search(r"Error parsing override '(.*)': missing EQUAL", said):
        said = f"{match[1]!r} is not of the form NAME=VALUE"
        if group := next((group for group in GROUPS if match[1] in existing(group)), None):
            return f"{said}; did you mean {group}={match[1]}?"
    elif match := re.match(r"LexerNoViableAltException: (.*?)(: \^)?$", said):
        said = f"{match[1]!r} cannot be read; put quotes round a value with special characters"
    elif match := re.match(r"Error merging override (\S+): Value .* could not be converted to (Integer|Float)", said):
        said = f"{match[1]} is no {'whole number' if match[2] == 'Integer' else 'number'}"
    elif match := re.search(r"Ambiguous value for argument '([^=]+)=", said):
        said = f"{match[1]} is given several values; use -m for a sweep over them, or [A,B] where a list is meant"
    return f"{said.rstrip('.')}; {HELP}"


@contextlib.contextmanager
def as_hydra_needs_it(argv: list[str]) -> Iterator[None]:
    """Hydra reads sys.argv, ends the program unless told to raise its errors, and needs help with Python 3.14."""
    before = sys.argv, os.environ.get("HYDRA_FULL_ERROR")
    sys.argv = argv
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        with (
            lenient_help(),
            without_migration_warnings(),
            quick_yaml(),
            # It copies all that was stored to keep it from changes that it does not make, once or twice a time.
            replaced(ConfigStore, "__deepcopy__", lambda store, _: store),
            replaced(argparse.ArgumentParser, "error", refuse),
            # It composes every point beforehand, so that none is launched in vain; ours only go on a list.
            replaced(Sweeper, "validate_batch_is_legal", lambda *_: None),
            # The job that is no sweep's copies the configuration five times, and has a folder and logs.
            replaced(hydra_application, "run_job", run_job),
        ):
            yield
    finally:
        sys.argv = before[0]
        if before[1] is None:
            del os.environ["HYDRA_FULL_ERROR"]
        else:
            os.environ["HYDRA_FULL_ERROR"] = before[1]


def run_job(task_function: Callable[[DictConfig], None], config: DictConfig, **_: Any) -> JobReturn:
    """In place of Hydra's own: hand over what was composed, and nothing else."""
    HydraConfig.instance().set_config(config)
    with open_dict(config):
        del config["hydra"]
    task_function(config)
    return JobReturn(status=JobStatus.COMPLETED)


@contextlib.contextmanager
def without_asking_for_the_mode(arguments: Sequence[str]) -> Iterator[None]:
    """Hydra composes once only to see whether the configuration is a sweep by itself: here, only an experiment is."""
    if any(argument.startswith(("experiment=", "+experiment=", "hydra", "+hydra", "-c")) for argument in arguments):
        yield
        return
    with replaced(Hydra, "get_mode", lambda *_, **__: None):
        yield


@contextlib.contextmanager
def without_migration_warnings() -> Iterator[None]:
    """Hydra 1.4 warns of what 1.5 will refuse and 1.3 has to be given: which `version_base`, stored in which way."""
    migration: type[Warning] | None = getattr(hydra.errors, "Hydra15MigrationWarning", None)
    with warnings.catch_warnings():
        if migration is not None:
            warnings.simplefilter("ignore", migration)
        yield


@contextlib.contextmanager
def lenient_help() -> Iterator[None]:
    """Python 3.14's argparse examines every help text at once; Hydra 1.3 gives it objects that are not text yet."""
    check: Callable[..., None] | None = getattr(argparse.ArgumentParser, "_check_help", None)
    if check is None:
        yield
        return

    def check_text(parser: argparse.ArgumentParser, action: argparse.Action) -> None:
        if isinstance(action.help, str):
            check(parser, action)

    with replaced(argparse.ArgumentParser, "_check_help", check_text):
        yield


def refuse(_: argparse.ArgumentParser, message: str) -> NoReturn:
    """In place of argparse's answer, which is a screen of options."""
    raise Refusal(f"{message}; {HELP}")


@contextlib.contextmanager
def replaced(kind: type | ModuleType, name: str, method: Callable[..., Any]) -> Iterator[None]:
    """Another method of a class, or function of a module, for a while.

    Hydra makes its own parsers and sweepers, so there is no other way.
    """
    before = vars(kind).get(name)
    setattr(kind, name, method)
    try:
        yield
    finally:
        if before is None:
            delattr(kind, name)
        else:
            setattr(kind, name, before)
