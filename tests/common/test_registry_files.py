"""A card from anywhere is read within bounds."""

from __future__ import annotations

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from harness.common.registry import _read, conf_folder


@pytest.mark.parametrize("path", sorted(conf_folder().rglob("*.yaml")), ids=lambda path: path.stem)
def test_a_card_is_read_as_hydra_reads_it(path: Path) -> None:
    assert _read(path) == OmegaConf.to_container(OmegaConf.load(path))
