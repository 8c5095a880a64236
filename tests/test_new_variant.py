"""A new variant is whole from its first moment: its file, card and test pass all that a variant has
to pass.
"""

from pathlib import Path

import pytest
import yaml
from planted_faults import copied
from workbench import Call, ran

from harness.common import errors, registry

STAGE, CARD, TEST = PLACES = [
    "variants/my_stage.py",
    "conf/variant/my_stage.yaml",
    "tests/variants/test_my_stage.py",
]


@pytest.mark.slow
def test_three_files_pass_everything(tmp_path: Path) -> None:
    checkout = copied(tmp_path)

    def python(command: str) -> str:
        variables = {"PYTHONPATH": str(checkout), "BPE_HARNESS_CACHE": str(checkout / "cache")}
        ended = ran(checkout, *command.split(), variables=variables)
        assert ended.returncode == errors.OK, ended.stdout + ended.stderr
        return ended.stdout

    assert python("-m harness.new_variant my_stage").splitlines()[:3] == PLACES
    card = yaml.safe_load((checkout / CARD).read_text())
    assert list(card) == list(yaml.safe_load((checkout / "conf/variant/heap.yaml").read_text()))
    python(f"-m ruff check {STAGE} {TEST}")
    python(f"-m ruff format --check {STAGE} {TEST}")
    python(f"-m pytest -q -p no:cacheprovider {TEST} {STAGE}")
    python(f"-m mypy --follow-imports=silent --cache-dir cache {STAGE} {TEST}")


def test_an_installed_package_is_not_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    registry.variants()  # are read once, and other tests need them
    monkeypatch.setattr(registry, "conf_folder", lambda: tmp_path / "conf")
    refused = call("new_variant my_stage")
    assert refused.code == errors.UNMEASURED
    assert "not a checkout; a trainer of your own needs no place in it" in refused.err
