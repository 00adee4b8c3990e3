"""Which learner's value to use for a target, and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from steadytd.base.finding import Finding
from steadytd.evaluation.estimate.baselines import BY_SAMPLING, CORRECTED, DOUBLY_ROBUST, REFERENCE
from steadytd.evaluation.judge.log_findings import LogFacts
from steadytd.evaluation.judge.target_findings import (
    MATTERS,
    SHARP,
    by_sampling,
    checkable,
    features_poor,
    form_name,
    moved,
)
from steadytd.evaluation.judge.values import Judged, Value

ONLY = "second_opinion"  # values of actions alone
OWN = {"not_converged", "no_interval", "diverged"}  # findings about one learner


@dataclass(frozen=True)
class Recommendation:
    """The learner to use for a target, its value, and why.

    `warnings` are those that concern it, also what is but a note about other learners. It is
    `trusted` if there are none, or if the features are poor and it does not rest on them.
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


def recommend(j: Judged, f: LogFacts, findings: list[Finding]) -> Recommendation:
    """drl, unless it is far wider than lstd or the log's episodes do not allow it.

    lstd may not be chosen because it *agrees* with drl: where features are poor but the difference
    is within chance, that would be a short interval at the wrong place. Nor may the trust in drl
    depend on whether the difference was noticed.
    """
    preferred, reason = _choice(j, f)
    usable = [v for v in j.values if np.isfinite(v.value)]
    with_limits = [v for v in usable if np.isfinite([v.lo, v.hi]).all()] or usable or j.values
    unbiased = by_sampling(j, f)
    order = [preferred, *(unbiased if preferred == DOUBLY_ROBUST.name else ()), *j.solved]
    for kind in ("solved", "online", "sampling", "action"):  # those without a penalty first
        order += [v.learner for v in with_limits if v.kind == kind and not v.eta]
    names = {v.learner for v in with_limits}
    labels = {form_name(v): v.learner for v in with_limits} | {name: name for name in names}
    chosen = next((labels[name] for name in order if name in labels), with_limits[0].learner)
    if form_name(j.row(chosen)) != preferred:
        asked = any(preferred in (v.learner, form_name(v)) for v in j.values)
        why = "has no value with an interval" if asked else "was not asked for"
        reason = f"{preferred} would be preferred but {why}; of the others, {chosen}"
    row = j.row(chosen)
    concern = [x for x in findings if x.level == "warning" and x.target in ("", j.name)]
    concern = [x for x in concern if x.code != "value_range" or x.numbers["learner"] == chosen]
    if (
        form_name(row) in BY_SAMPLING and not f.behavior_estimated
    ):  # else the ratios may be the reason
        concern = [x for x in concern if x.code != "bias_unchecked" and not _of_features(x)]
    codes = (*(x.code for x in concern), *_own(j, row, findings))
    harmless = {"features_poor"} if chosen in unbiased else set()
    return Recommendation(
        j.name, chosen, row.value, row.lo, row.hi, reason, set(codes) <= harmless, codes
    )  # fmt: skip


def _own(j: Judged, row: Value, findings: list[Finding]) -> list[str]:
    """What is a note for the evaluation, but a warning about the one learner that is used."""
    about = [x for x in findings if x.target == j.name and x.numbers.get("learner") == row.learner]
    codes = [x.code for x in about if x.code in OWN]
    codes += [x.code for x in findings if x.target == j.name and x.code == ONLY]
    return [*codes, "bias_dominates"] if moved(j, row, MATTERS) else codes


def _of_features(x: Finding) -> bool:
    """A disagreement in which at least one learner trusts the features."""
    pair = {x.numbers.get("learner"), x.numbers.get("other")}
    return x.code == "learners_disagree" and not pair <= {*BY_SAMPLING, CORRECTED.name}


def _choice(j: Judged, f: LogFacts) -> tuple[str, str]:
    lstd, drl = REFERENCE.name, DOUBLY_ROBUST.name
    own = f"{lstd} adds no bias of its own"
    if f.continuing:
        return lstd, f"there is no rule yet for {drl} without episodes, and {own}"
    if not checkable(j, f):
        return lstd, f"too few whole episodes are like the target's for {drl}, and {own}"
    if features_poor(j, f) is not None:
        return drl, f"the features are poor for {lstd}, and {drl} does not rest on them"
    if j.doubly_robust[1].width <= SHARP * j.reference[1].width:
        return drl, f"{drl} does not rest on the features, and is not much wider than {lstd}"
    if not np.isfinite(j.doubly_robust[1].width):
        return lstd, f"{drl} has no interval, and {own}"
    return lstd, f"{lstd} is far sharper than {drl}, and adds no bias of its own"
