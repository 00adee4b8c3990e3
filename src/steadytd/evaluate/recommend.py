"""Which learner's value to use for a target, and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from steadytd.evaluate.findings import Finding, LogFacts
from steadytd.evaluate.judge import Judged
from steadytd.evaluate.target_findings import checkable, features_poor

AS_SHARP = 1.5  # times lstd's interval: up to here dr is preferred, since it trusts no features
BY_SAMPLING = ("dr", "snpdis", "pdis")
SOLVED = ("lstd", "perturbed_lstd", "lsetd")


@dataclass(frozen=True)
class Recommendation:
    """The learner to use for a target, its value, and why; `trusted` if no warning applies."""

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


def recommend(j: Judged, f: LogFacts, findings: list[Finding]) -> Recommendation:
    """dr where it is as sharp as lstd or the features are poor; otherwise lstd."""
    preferred, reason = _choice(j, f)
    usable = [v for v in j.values if np.isfinite(v.value)]
    with_limits = [v for v in usable if np.isfinite([v.lo, v.hi]).all()] or usable or j.values
    order = [preferred, *(BY_SAMPLING if preferred == "dr" else ()), *SOLVED]
    for kind in ("solved", "online", "sampling"):  # those without a penalty first
        order += [v.learner for v in with_limits if v.kind == kind and not v.eta]
    names = {v.learner for v in with_limits}
    chosen = next((name for name in order if name in names), with_limits[0].learner)
    if chosen != preferred:
        reason = f"{preferred} would be preferred but was not asked for; of the others, {chosen}"
    row = j.row(chosen)
    codes = tuple(x.code for x in findings if x.level == "warning" and x.target in ("", j.name))
    return Recommendation(
        j.name, chosen, row.value, row.lo, row.hi, reason, not codes, codes
    )  # fmt: skip


def _choice(j: Judged, f: LogFacts) -> tuple[str, str]:
    if not checkable(j, f):
        return "lstd", "the ratios of whole episodes are too uneven for dr, and lstd adds no bias"
    lstd, dr = j.basic["lstd"][1].width, j.basic["dr"][1].width
    if features_poor(j, f) is not None:
        return "dr", "the features are poor for lstd, and dr does not rest on them"
    if dr <= AS_SHARP * lstd:
        return "dr", "dr is about as sharp as lstd and does not rest on the features"
    return "lstd", "lstd is sharper than dr, agrees with it, and adds no bias of its own"
