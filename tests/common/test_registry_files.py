"""A card from anywhere is read within bounds."""

from __future__ import annotations

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from harness.common.registry import conf_folder, read_card


@pytest.mark.parametrize("path", sorted(conf_folder().rglob("*.yaml")), ids=lambda path: path.stem)
def test_a_card_is_read_as_hydra_reads_it(path: Path) -> None:
    assert read_card(path) == OmegaConf.to_container(OmegaConf.load(path))
