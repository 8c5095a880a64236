"""A card from anywhere is read within bounds."""

from __future__ import annotations

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from harness.common.errors import Refusal
from harness.common.registry import _read, conf_folder


def test_aliases_that_stand_for_more_than_memory_holds_are_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    card = tmp_path / "bomb.yaml"
    card.write_text("\n".join(lines))
    with pytest.raises(Refusal, match="more than 10 aliases"):
        _read(card)


@pytest.mark.parametrize("path", sorted(conf_folder().rglob("*.yaml")), ids=lambda path: path.stem)
def test_a_card_is_read_as_hydra_reads_it(path: Path) -> None:
    assert _read(path) == OmegaConf.to_container(OmegaConf.load(path))
