"""What a gate says in the end: findings, one for everything it looked at, and the exit code that follows from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.common import errors
from harness.common.errors import Refusal
from harness.gate.card import TIERS

PASS, MISMATCH, DRIFT, REGRESSION = "pass", "mismatch", "drift", "regression"
UNMEASURED, INCONCLUSIVE, ABSENT = "unmeasured", "inconclusive", "absent"
STATES = (MISMATCH, DRIFT, REGRESSION, UNMEASURED, INCONCLUSIVE, ABSENT, PASS)
"""The gravest first. `absent` is what cannot be here, or has nothing to be held against: neither good nor bad."""
CODES = {
    MISMATCH: errors.MISMATCH,
    DRIFT: errors.MISMATCH,
    REGRESSION: errors.REGRESSION,
    UNMEASURED: errors.UNMEASURED,
    INCONCLUSIVE: errors.INCONCLUSIVE,
}
TREATED = {"pass": errors.OK, "fail": errors.REGRESSION, "neutral": errors.INCONCLUSIVE}
ALL = "all"
"""In the place of a variant: the finding is about a whole tier."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: of which variant and corpus, in which phase, by how much it changed."""

    tier: str
    state: str
    variant: str
    message: str
    corpus: str | None = None
    phase: str | None = None
    metric: str | None = None
    before: float | None = None
    after: float | None = None
    share: float | None = None
    details: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Verdict:
    """All findings, the gravest first."""

    findings: Sequence[Finding]

    def state(self, tier: str | None = None) -> str:
        """The gravest state of a tier, or of all; absent if nothing else was found."""
        states = {finding.state for finding in self.findings if tier in (None, finding.tier)}
        order = (*(state for state in STATES if state not in (ABSENT, PASS)), PASS, ABSENT)
        return next((state for state in order if state in states), ABSENT)

    def exit_code(self, treat_inconclusive: str = "neutral", advisory: bool = False) -> int:
        """What the command ends with; nothing measured is never 0, unless nobody wants to fail by this at all.

        >>> Verdict([]).exit_code(), Verdict([]).exit_code(advisory=True)
        (22, 0)
        """
        if treat_inconclusive not in TREATED:
            raise Refusal(f"--treat-inconclusive {treat_inconclusive}: it is one of {', '.join(TREATED)}")
        state = self.state()
        if advisory or state == PASS:
            return errors.OK
        if state == ABSENT:
            return errors.UNMEASURED
        return TREATED[treat_inconclusive] if state == INCONCLUSIVE else CODES[state]

    def tiers(self) -> list[str]:
        found = {finding.tier for finding in self.findings}
        return [tier for tier in TIERS if tier in found]

    def numbers(self, tier: str) -> Counter[str]:
        """How many findings of a tier are of each state."""
        return Counter(finding.state for finding in self.findings if finding.tier == tier)


def verdict_of(findings: Sequence[Finding]) -> Verdict:
    """The findings in order: the gravest first, within that as they came."""
    return Verdict(sorted(findings, key=lambda finding: STATES.index(finding.state)))
