"""Refusals and exit codes: every command answers bad input with one sentence and a documented exit
code.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

OK = 0
USAGE = 2
REGRESSION = 20
MISMATCH = 21
UNMEASURED = 22
INCONCLUSIVE = 23
INTERRUPTED = 130


class Refusal(Exception):
    """A request that cannot be carried out; the message is one sentence that says what to do
    instead. It writes settings as `override` does; `settings` are those of them that a command may
    have as options.
    """

    def __init__(
        self,
        message: str,
        exit_code: int = USAGE,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.settings = settings or {}

    def with_options(self, option: Callable[[str, object], str]) -> Refusal:
        """The same in the words of a command, which writes a setting and its value as `option`
        does.

        >>> refusal = Refusal("leave out seeds= or set min_count=2", settings={"seeds": "", "min_count": 2})
        >>> print(refusal.with_options(lambda name, value: f"--{name} {value}".strip()))
        leave out --seeds or set --min_count 2
        """
        message = str(self)
        for name, value in self.settings.items():
            message = message.replace(override(name, value), option(name, value))
        return Refusal(message, self.exit_code)


def override(name: str, value: object) -> str:
    """A setting as `python -m harness` takes it; a list is quoted for the shell.

    >>> print(override("min_count", 2), override("special_tokens", ["<s>"]))
    min_count=2 'special_tokens=["<s>"]'
    """
    if isinstance(value, list):
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return shlex.quote(f"{name}={text}")
    return f"{name}={value}"


def reason(error: OSError) -> str:
    """The cause of an error, in the system's words or else the library's.

    >>> reason(OSError("no range")), reason(FileNotFoundError(2, "", "x"))
    ('no range', 'No such file or directory')
    """
    return os.strerror(error.errno) if error.errno else str(error)


TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
}
"""The types of msgspec in words."""


def wrong_value(error: object) -> tuple[str, str]:
    """Return what msgspec found wrong, with types in words, and the key of the value; the key is
    empty for the whole.

    >>> wrong_value("Expected `int | null`, got `str` - at `$.data.bytes`")
    ('expected a whole number or null, got text', 'data.bytes')
    """
    what, _, path = str(error).partition(" - at `$")
    what = re.sub(r"(?<=Expected )`.*?`|(?<=, got )`.*?`", _in_words, what)
    what = re.sub("^[A-Z](?=[a-z])", lambda letter: letter[0].lower(), what)
    return what, path.strip("`.")


def _in_words(types: re.Match[str]) -> str:
    names = types[0].strip("`").split(" | ")
    return " or ".join(TYPES.get(name, name) for name in names)


def extra(module: str, what: str, group: str = "data") -> Any:
    """Import a module of the extra `group`. Raises Refusal, with the command that installs it, if
    it is missing.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        pip = "python -m pip install"
        advice = f"run {pip} 'bpe-harness[{group}]', in a checkout {pip} -e '.[{group}]'"
        raise Refusal(
            f"{what} needs {module}, which is not installed; {advice}", UNMEASURED
        ) from error
