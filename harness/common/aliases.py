"""YAML that is larger than it looks: a few lines of aliases of aliases stand for more than any memory holds."""

from __future__ import annotations

MOST_ALIASES = 10


def refuse_many_aliases(content: str) -> None:
    """Raise ValueError for YAML whose aliases could stand for more than any memory holds; a card needs none."""
    if "*" not in content:
        return
    import yaml  # only here: it takes its time, and no card of ours comes so far

    if sum(isinstance(event, yaml.AliasEvent) for event in yaml.parse(content)) > MOST_ALIASES:
        raise ValueError(f"it has more than {MOST_ALIASES} aliases, and a card needs none")
