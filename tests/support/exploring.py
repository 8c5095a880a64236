"""How many random examples, or seeds of our own, a test looks at: a share of what is thorough, so that
everybody's run stays short.

`--hypothesis-profile` says which share (tests/conftest.py registers the profiles): `quick` is what
everybody runs, `thorough` what .ci/run adds, `explore` what a scheduled workflow does, with new
examples each time.
"""

import os
from typing import Any

import pytest
from hypothesis import settings

THOROUGH = 100
LEAST = 5
PROFILES = {"quick": 25, "thorough": THOROUGH, "explore": 2000}


def register_profiles() -> None:
    """Where the environment variable CI is set, examples are the same each time: a commit is not to
    fail by chance.
    """
    for name, number in PROFILES.items():
        same = bool(os.environ.get("CI")) and name != "explore"
        settings.register_profile(
            name, max_examples=number, deadline=None, derandomize=same, print_blob=True
        )
    settings.load_profile("quick")


def examples(number: int, **others: Any) -> settings:
    """Settings for a test for which `number` examples are thorough."""
    assert settings.default is not None
    share = number * settings.default.max_examples // THOROUGH
    return settings(max_examples=max(share, min(number, LEAST)), **others)


def seeds(number: int, fast: int = 1) -> list[Any]:
    """Seeds for a test for which `number` are thorough. The first are run always, the others with the
    slow tests; `explore` takes twenty times as many, from EXPLORE_SEED on.
    """
    assert settings.default is not None
    first = int(os.environ.get("EXPLORE_SEED", "0"))
    share = max(number * settings.default.max_examples // THOROUGH, number)
    parameters = []
    for seed in range(first, first + share):
        marks = [pytest.mark.hypothesis]
        if seed >= first + fast:
            marks.append(pytest.mark.slow)
        parameters.append(pytest.param(seed, marks=marks))
    return parameters
