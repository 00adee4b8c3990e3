"""A gate for pipelines: is what is required of a target shown by the log?

With a margin m >= 0 and the interval [lo, hi] of the difference to the policy that made the log,

    better:NAME      is met where lo > m,    and refuted where hi < m
    not-worse:NAME   is met where lo > -m,   and refuted where hi < -m

Whatever is not trusted is neither.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from steadytd.base.errors import InputError, unknown
from steadytd.base.numbers import interval, number
from steadytd.evaluation.decide import Decision

Outcome = Literal["met", "worse", "undecided", "not trusted"]
EXIT_CODES: dict[Outcome, int] = {"met": 0, "worse": 3, "undecided": 4, "not trusted": 5}
KINDS = ("better", "not-worse")


@dataclass(frozen=True)
class Requirement:
    """What a target has to be, against the policy that made the log."""

    kind: str
    target: str
    margin: float = 0.0

    @staticmethod
    def of(text: str, margin: float = 0.0) -> Requirement:
        """From its text form, `better:NAME` or `not-worse:NAME`.

        >>> Requirement.of("not-worse:new", 0.02)
        Requirement(kind='not-worse', target='new', margin=0.02)
        """
        kind, colon, target = text.partition(":")
        if not (colon and target):
            raise InputError(f"a requirement must be better:NAME or not-worse:NAME, got '{text}'.")
        if kind not in KINDS:
            raise unknown("requirement", kind, KINDS)
        if not (math.isfinite(margin) and margin >= 0.0):
            raise InputError(f"margin must be a finite number >= 0, got {margin!r}.")
        return Requirement(kind, target, float(margin))

    @property
    def least(self) -> float:
        """The difference must be above this."""
        return self.margin if self.kind == "better" else -self.margin

    def judge(self, decision: Decision) -> Gate:
        """Whether a decision about the target meets it."""
        outcome: Outcome = "undecided"
        if not decision.trusted:
            outcome = "not trusted"
        elif decision.lo > self.least:
            outcome = "met"
        elif decision.hi < self.least:
            outcome = "worse"
        return Gate(
            f"{self.kind}:{self.target}", self.margin, outcome, EXIT_CODES[outcome],
            decision.difference, decision.lo, decision.hi, list(decision.reasons),
        )  # fmt: skip


@dataclass(frozen=True)
class Gate:
    """Whether a requirement is met, for a pipeline: `outcome` and its `exit_code`."""

    required: str
    margin: float
    outcome: Outcome
    exit_code: int
    difference: float
    lo: float
    hi: float
    reasons: list[str]

    @property
    def text(self) -> str:
        """The same as a sentence."""
        margin = f" with margin {number(self.margin)}" if self.margin else ""
        what = f"Required {self.required}{margin}"
        if self.outcome == "not trusted":
            return f"{what}: not trusted ({', '.join(self.reasons)})."
        says = {"met": "met", "worse": "not met", "undecided": "cannot be told"}[self.outcome]
        return f"{what}: {says}; the difference is in {interval(self.lo, self.hi)}."

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "text": self.text}
