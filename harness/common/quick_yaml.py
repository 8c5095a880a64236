"""YAML read in a tenth of the time: OmegaConf's loader, its rules all kept, over libyaml's parser where PyYAML has it.

Hydra reads every file of a configuration anew for each point of a sweep; Python's own parser took most of that time.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import yaml
from omegaconf import _utils
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from harness.common.aliases import refuse_many_aliases
from harness.common.errors import Refusal

Loaders = Callable[[], Any]
"""What OmegaConf asks for the class of a loader."""


def quicker(loaders: Loaders) -> Loaders:
    """The same with libyaml's parser; as it was where PyYAML was built without."""
    return _over_libyaml(loaders) if yaml.__with_libyaml__ else loaders


@functools.cache
def _over_libyaml(loaders: Loaders) -> Loaders:
    from yaml._yaml import CParser  # only there where PyYAML was built with libyaml

    ordinary = loaders()
    if issubclass(ordinary, CParser):  # asked for within itself
        return loaders

    def begin(loader: Any, stream: Any) -> None:
        CParser.__init__(loader, harmless(stream))
        SafeConstructor.__init__(loader)
        Resolver.__init__(loader)

    quick = type("QuickLoader", (CParser, ordinary), {"__init__": begin})
    return lambda: quick


def harmless(stream: Any) -> str:
    """The text of a stream. Raises Refusal for one that has many aliases, of each of which OmegaConf makes a copy."""
    content = stream if isinstance(stream, str | bytes) else stream.read()
    text = content.decode() if isinstance(content, bytes) else content
    try:
        if "&" in text:
            refuse_many_aliases(text)
    except ValueError as error:
        raise Refusal(f"{getattr(stream, 'name', 'a configuration')} is not read: {error}") from error
    return str(text)


def read_yaml(text: str) -> Any:
    """What a YAML text holds, read by the rules that Hydra reads it by."""
    return yaml.load(text, Loader=quicker(_utils.get_yaml_loader)())


@contextlib.contextmanager
def quick_yaml() -> Iterator[None]:
    """Let OmegaConf, and so Hydra, read with it for a while; an OmegaConf without this joint reads as ever."""
    before: Loaders | None = getattr(_utils, "get_yaml_loader", None)
    if before is None:
        yield
        return
    _utils.get_yaml_loader = quicker(before)
    try:
        yield
    finally:
        _utils.get_yaml_loader = before
