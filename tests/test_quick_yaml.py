"""The quick loader reads what OmegaConf's own reads, and refuses what it refuses."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import hydra
import pytest
import yaml
from omegaconf import OmegaConf, _utils

from harness.common import registry
from harness.common.errors import Refusal
from harness.common.quick_yaml import quick_yaml

FILES = [*registry.conf_folder().rglob("*.yaml"), *Path(hydra.__file__).parent.rglob("conf/**/*.yaml")]
ODD = (
    "{a: 1e3, b: .5, c: 1_000, d: 012, e: yes, f: 2001-01-01, g: .inf, h: ~, i: '${a}', j: 0x1F, k: 1:30, l: [x, 'y']}"
)


def read(text: str) -> Any:
    return OmegaConf.to_container(OmegaConf.create(text))


def test_every_file_of_configuration_is_read_alike() -> None:
    for file in FILES:
        with quick_yaml():
            quick = OmegaConf.load(file)
        assert OmegaConf.to_container(quick) == OmegaConf.to_container(OmegaConf.load(file)), file


def test_numbers_and_dates_are_what_omegaconf_takes_them_for() -> None:
    with quick_yaml():
        quick = read(ODD)
    assert quick == read(ODD)
    assert (quick["a"], quick["f"], quick["g"]) == (1000.0, "2001-01-01", math.inf)


@pytest.mark.parametrize("wrong", ["{a: 1, a: 2}", "a: [", "a: b: c", "\t- x"])
def test_what_omegaconf_refuses_is_refused(wrong: str) -> None:
    with pytest.raises(yaml.YAMLError):
        read(wrong)
    with quick_yaml(), pytest.raises(yaml.YAMLError):
        read(wrong)


def test_what_would_fill_the_memory_is_refused_at_once(tmp_path: Path) -> None:
    """Ten times ten times ten and so on: OmegaConf would copy it all."""
    levels = [f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 10)]
    (tmp_path / "bomb.yaml").write_text("\n".join(["a0: &a0 [x]", *levels]))
    with quick_yaml(), pytest.raises(Refusal, match=r"bomb\.yaml is not read: it has more than 10 aliases"):
        OmegaConf.load(tmp_path / "bomb.yaml")
    with quick_yaml():
        assert read("a: &a [x]\nb: *a\nc: '*'") == {"a": ["x"], "b": ["x"], "c": "*"}


def test_it_is_put_back_as_it_was_and_may_be_asked_for_twice() -> None:
    ordinary = _utils.get_yaml_loader
    with quick_yaml(), quick_yaml():
        assert _utils.get_yaml_loader is not ordinary
        assert read("a: 1") == {"a": 1}
    assert _utils.get_yaml_loader is ordinary


def test_without_libyaml_the_ordinary_loader_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml, "__with_libyaml__", False)
    ordinary = _utils.get_yaml_loader
    with quick_yaml():
        assert _utils.get_yaml_loader is ordinary


def test_with_an_omegaconf_that_has_no_such_joint_all_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(_utils, "get_yaml_loader")
    with quick_yaml():
        assert not hasattr(_utils, "get_yaml_loader")
