"""What the logged probabilities show of themselves, and how much depends on them."""

from __future__ import annotations

import math

import numpy as np

from steadytd.base.finding import Finding
from steadytd.base.wording import count
from steadytd.evaluation.calibration import (
    ActionCalibration,
    ByBin,
    Leaning,
    LogCalibration,
)
from steadytd.evaluation.judge.log_findings import LogFacts
from steadytd.evaluation.judge.values import Judged
from steadytd.evaluation.sensitivity import Sensitivity

ALIKE = 1.001  # up to this factor, target and behaviour are worth the same


def about_probabilities(c: LogCalibration) -> list[Finding]:
    """Findings that concern every target: wrong probabilities, missing actions."""
    found = [_off(c), _missing(c)]
    return [one for one in found if one is not None]


def _off(c: LogCalibration) -> Finding | None:
    if c.fine:
        return None
    said = []
    if c.off:
        worst = max(c.off, key=lambda a: abs(a.mean - a.expected) / max(a.hi - a.lo, 1e-300))
        said.append(_of_action(worst, c))
    if c.bins_off:
        worst_bin = max(c.bins_off, key=lambda b: abs(b.happened - b.said) * np.sqrt(b.pairs))
        said.append(_of_bin(worst_bin))
    if c.features is not None and not c.features.fine:
        said.append(
            "what is done beyond the logged probabilities can be told from the features (action "
            f"{c.features.action}, p = {c.features.p_value:.1g}), and it should not"
        )
    if c.leaning is not None and not c.leaning.fine:
        said.append(_of_leaning(c.leaning))
    return Finding(
        "probabilities_off", "", "warning",
        f"{'; '.join(said)}. The logged probabilities are wrong, and with them every ratio "
        f"(99.9 % level for all {c.comparisons} comparisons).",
        "Correct behavior_prob: it must be the probability with which the policy that made the "
        "log took the logged action.",
        c.to_dict(),
    )  # fmt: skip


def _of_action(a: ActionCalibration, c: LogCalibration) -> str:
    what = "1" if a.action is None else f"1{{action = {a.action:g}}}"
    limit = f"it should be {a.expected:.3g}" if c.whole else f"it cannot exceed {a.expected:g}"
    return (
        f"the mean over all rows of {what}/behavior_prob is {a.mean:.3g} (interval {a.lo:.3g} to "
        f"{a.hi:.3g}), {limit}"
    )


def _of_leaning(x: Leaning) -> str:
    what = "a group of features" if x.feature is None else f"feature {x.feature}"
    size = "larger" if x.large else "smaller"
    return (
        f"the mean of 1{{action = {x.action:g}}}/behavior_prob over rows that count more the "
        f"{size} {what} is, is {x.mean:.3g}, and it cannot exceed 1 (p = {x.p_value:.1g})"
    )


def _of_bin(b: ByBin) -> str:
    return (
        f"of {b.pairs} actions with a logged probability from {b.lo:g} to {b.hi:g}, {b.said:.1%} "
        f"should have been taken, and {b.happened:.1%} were"
    )


def _missing(c: LogCalibration) -> Finding | None:
    if not c.missing or not c.fine:
        return None
    least = min(c.missing, key=lambda a: a.mean)
    names = ", ".join(f"{a.action:g}" for a in c.missing[:5])
    more = f" and {len(c.missing) - 5} more" if len(c.missing) > 5 else ""
    return Finding(
        "actions_missing", "", "note",
        f"action {names}{more}: the mean over all rows of 1{{action = {least.action:g}}}"
        f"/behavior_prob is {least.mean:.3g} (interval {least.lo:.3g} to {least.hi:.3g}) and not "
        "1. Either the policy that made the log never, or seldom, takes such an action in "
        "some states, or its logged probability is too large; the log cannot tell which.",
        "Nothing is to be done if the targets do not take these actions there. A column "
        "behavior_probs with the probabilities of all actions would tell.",
        {"actions": [a.action for a in c.missing], "means": [a.mean for a in c.missing]},
    )  # fmt: skip


def about_sensitivity(s: Sensitivity) -> list[Finding]:
    """How wrong the ratios would have to be, where that is known and there is something to turn."""
    if not s.Lambda > ALIKE:
        return []
    numbers = {"Lambda": s.Lambda, "sharp": s.sharp, "value": s.value, "behavior": s.behavior}
    return [Finding("sensitivity", s.target, "note", s.text, "", numbers)]


def no_support(j: Judged, f: LogFacts) -> Finding | None:
    """Rows that cannot have been logged."""
    o = j.overlap
    if not o.violations:
        return None
    rows = ", ".join(map(str, o.violation_rows[:5]))
    return Finding(
        "no_support", j.name, "warning",
        f"in {count(o.violations, 'row')} the target's probability is above 0 and that of the "
        f"behaviour policy is 0 (the first: {rows}): such actions cannot have been logged; they "
        "count with ratio 0.",
        "Correct the probabilities.",
        {"violations": o.violations, "rows": o.violation_rows},
    )  # fmt: skip


def ratios_off(j: Judged, f: LogFacts) -> Finding | None:
    """The mean ratio is not 1."""
    o = j.overlap
    known = bool(np.isfinite([o.rho_mean_lo, o.rho_mean_hi]).all())
    if not known or o.rho_mean_lo <= 1.0 <= o.rho_mean_hi or abs(o.rho_mean - 1.0) < 0.01:
        return None
    mean, lo, hi = _apart_from_one(o.rho_mean, o.rho_mean_lo, o.rho_mean_hi)
    whose = "estimated" if f.behavior_estimated else "logged"
    why, remedy = f"the {whose} probabilities are not right", "Log behavior_prob."
    if not f.behavior_estimated:
        remedy = "Check behavior_prob and the target's probabilities."
    if o.rho_mean < 1.0:  # actions that are not there can only make it smaller
        why = f"the target takes actions that the log never shows, or {why}"
        remedy += " See whether the target stays with actions of the behaviour policy."
    return Finding(
        "ratios_off", j.name, "warning",
        f"the mean ratio pi/mu is {mean} (99.9 % interval {lo} to {hi}), it should be 1: {why}.",
        remedy,
        {"rho_mean": o.rho_mean, "lo": o.rho_mean_lo, "hi": o.rho_mean_hi},
    )  # fmt: skip


def _apart_from_one(*numbers: float) -> list[str]:
    """With three digits, or as many as show in two of them that none is 1.

    >>> _apart_from_one(1.03, 1.0004, 1.06), _apart_from_one(0.8, 0.7, 0.9)
    (['1.03000', '1.00040', '1.06000'], ['0.800', '0.700', '0.900'])
    """
    off = min(abs(x - 1.0) for x in numbers)
    digits = max(3, 1 - math.floor(math.log10(off) + 1e-9)) if off > 0.0 else 3
    return [f"{x:.{min(digits, 12)}f}" for x in numbers]
