"""Which learner's value to use for a target, and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from steadytd.base.finding import Finding
from steadytd.evaluation.judge.values import Judged
from steadytd.evaluation.values import SELECTED


@dataclass(frozen=True)
class Recommendation:
    """The learner to use for a target, its value, and why.

    `warnings` are the codes of those that concern it; it is `trusted` if there are none.
    """

    target: str
    learner: str
    value: float
    lo: float
    hi: float
    reason: str
    trusted: bool
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "warnings": list(self.warnings)}


def recommend(j: Judged, findings: list[Finding]) -> Recommendation:
    """drl by the rule of trust, wherever it has a value with an interval."""
    chosen, reason = _choice(j)
    row = j.row(chosen)
    concern = [x for x in findings if x.level == "warning" and x.target in ("", j.name)]
    codes = tuple(dict.fromkeys(x.code for x in concern))
    return Recommendation(j.name, chosen, row.value, row.lo, row.hi, reason, not codes, codes)


def _choice(j: Judged) -> tuple[str, str]:
    drl, rule = SELECTED, j.rule
    if rule.known:
        if rule.carried:
            return drl, f"of all lam that the log carries, {rule.lam:g} has the shortest interval"
        return drl, f"the log carries no lam; this is {drl} at lam = {rule.lam:g}"
    usable = [v for v in j.values if np.isfinite(v.value)]
    with_limits = [v for v in usable if np.isfinite([v.lo, v.hi]).all()] or usable or j.values
    names = {v.learner for v in with_limits}
    order = [name for name in j.solved if name in names]
    for kind in ("solved", "online", "sampling", "action"):  # those without a penalty first
        order += [v.learner for v in with_limits if v.kind == kind and not v.eta]
    found = order[0] if order else with_limits[0].learner
    return found, f"{drl} has no value with an interval; of the others, {found}"
