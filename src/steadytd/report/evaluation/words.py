"""An evaluation in words and rows: what the terminal and the page share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from steadytd.base.finding import Finding
from steadytd.base.wording import figures
from steadytd.evaluation.estimate.baselines import BY_SAMPLING, CORRECTED
from steadytd.evaluation.judge.recommend import Recommendation
from steadytd.evaluation.result import Evaluation

Grade = Literal["good", "care", "bad"]

# What a warning means for the value, after "do not trust it:" or "with care:".
REASONS = {
    "no_support": "the target takes actions that the behaviour policy cannot have logged",
    "ratios_off": "the mean ratio pi/mu is not 1: probabilities are wrong, or actions are missing",
    "probabilities_off": "the logged probabilities are wrong: actions are taken more or less often "
    "than they say",
    "low_overlap": "the log shows too little of what this policy would do",
    "few_episodes": "the log is too small",
    "rows_left_out": "too many rows had to be left out",
    "learners_disagree": "learners that should agree do not",
    "value_range": "no policy can have such a value with rewards like those logged",
    "features_poor": "the features are poor: too few for its value, too many for the log, or the "
    "value too small to be seen",
    "bias_unchecked": "the log cannot check whether the features can represent its value",
    "cut_off": "much of the value lies beyond the ends of cut-off episodes and is unchecked",
    "behavior_estimated": "the behaviour policy's probabilities are only estimates",
    "not_converged": "the learner had not arrived at its fixed point when the log ended",
    "no_interval": "this learner has no interval, so nothing says how far off it may be",
    "actions_unseen": "the target takes actions that the log never shows",
    "second_opinion": "values of actions are a second opinion, and no other learner was asked for",
    "bias_dominates": "its penalty moves the value by more than a quarter of lstd's interval",
}
MOST_ROWS = 0.5  # of the rows count: then only whole episodes are unlike the target's
WHOLE_EPISODES = "too few whole episodes are like this policy's to check the learners with them"
MANY_FEATURES = "the log has too few rows for so many features"
# These leave the value usable under a condition that a person can judge.
CONDITIONAL = {"bias_unchecked", "behavior_estimated", "cut_off"}
# Sampling does not rest on the features, only its continuation after a cut does.
NOT_FOR_SAMPLING = {"features_poor"}


@dataclass(frozen=True)
class Verdict:
    """One target's line: how far to trust it, and the sentence."""

    target: str
    grade: Grade
    text: str


def number(value: float | None, width: float = float("nan"), size: float = 0.0) -> str:
    """A number with as many digits as an interval of this width deserves, at most six.

    `size` is that of the largest number beside it, which is to have as many decimals.

    >>> number(19.29484, 0.95), number(1234567.8, 30.0), number(18.4611, 1e-8), number(None)
    ('19.29', '1234568', '18.4611', 'none')
    """
    if value is None or not math.isfinite(value):
        return "none"
    size = max(abs(value), size)
    if not width > 0.0 or math.isinf(width) or not 1e-4 <= size < 1e9:
        return figures(value)
    digits = min(1 - math.floor(math.log10(width / 2)), 5 - math.floor(math.log10(size)))
    return f"{value:.{max(digits, 0)}f}"


def limits(lo: float | None, hi: float | None) -> str:
    """An interval for reading.

    >>> limits(18.9427, 19.8941), limits(9.999999, 10.000001), limits(None, 1.0)
    ('18.94 to 19.89', '10.0000 to 10.0000', 'none')
    """
    if lo is None or hi is None or not (math.isfinite(lo) and math.isfinite(hi)):
        return "none"
    size = max(abs(lo), abs(hi))
    return f"{number(lo, hi - lo, size)} to {number(hi, hi - lo, size)}"


def verdicts(e: Evaluation) -> list[Verdict]:
    """One line per target, in the evaluation's order.

    Where much of the episodes' weight is still to come when they are cut off, every learner goes on
    with a value that no row of the log can check: a condition even where no warning applies.
    """
    cut = any(one.code == "truncated_returns" for one in e.warnings)
    return [_verdict(e.recommended[name], _reasons(e.warnings, name), cut) for name in e.targets]


def _reasons(found: list[Finding], target: str) -> dict[str, str]:
    """What every warning means for this target."""
    said = dict(REASONS)
    for one in found:
        if one.code == "low_overlap" and one.target == target:
            if "rank" in one.numbers:
                said[one.code] = MANY_FEATURES
            elif one.numbers.get("ess_step_share", 0.0) >= MOST_ROWS:
                said[one.code] = WHOLE_EPISODES
    return said


def _verdict(r: Recommendation, said: dict[str, str], cut: bool) -> Verdict:
    if not math.isfinite(r.value):
        return Verdict(r.target, "bad", "do not trust anything here: no learner found a value.")
    value = number(r.value, r.hi - r.lo)
    known = limits(r.lo, r.hi)
    interval = "no interval" if known == "none" else f"95 % interval {known}"
    codes = list(dict.fromkeys(r.warnings))
    soft = CONDITIONAL | (
        NOT_FOR_SAMPLING if r.learner in {*BY_SAMPLING, CORRECTED.name} else set()
    )
    if not set(codes) <= soft:
        reasons = "; ".join(said.get(code, code) for code in codes)
        text = f"do not trust {value} ({interval}, by {r.learner}): {reasons}."
        return Verdict(r.target, "bad", text)
    conditions = [*codes, "truncated_returns"] if cut and "cut_off" not in codes else codes
    if conditions:
        text = f"{value} ({interval}), by {r.learner}; {_if(conditions)}."
        return Verdict(r.target, "care", text)
    return Verdict(r.target, "good", f"{value} ({interval}), by {r.learner}.")


def _if(codes: list[str]) -> str:
    """The condition under which a value can be used."""
    said = {
        "bias_unchecked": "trust it only if the features can represent the value, which the log "
        "cannot check well",
        "behavior_estimated": "trust it only if the estimated behaviour probabilities are right",
        "cut_off": "trust it only if the values of the states in which episodes are cut off are "
        "right; much depends on them, and the log cannot check them",
        "truncated_returns": "trust it only if the values of the states in which episodes are cut "
        "off are right, which the log cannot check",
        "features_poor": "the features are poor, so the other learners may be wrong; this one does "
        "not rest on them",
    }
    return "; ".join(said[code] for code in codes)


def stability_verdicts(e: Evaluation) -> list[Verdict]:
    """One line per target about plain TD on this log."""
    rows = [(penalties(raw), raw) for raw in e.stability.to_dicts()]
    return [_stability(row, raw) for row, raw in rows]


def penalties(s: dict[str, Any]) -> dict[str, Any]:
    """A row of `Evaluation.stability` for reading."""
    lo, hi = s["eta_pd_lo"], s["eta_pd_hi"]
    known = not (lo is None or hi is None or math.isnan(lo) or math.isnan(hi))
    known_limits = limits(max(lo, 0.0), hi) if known and hi > 0.0 else "0" if known else "none"
    return {
        "target": s["target"],
        "stable": s["td_stable"],
        "share": "unknown" if s["td_stable_share"] is None else f"{s['td_stable_share']:.0%}",
        "threshold": figures(s["eta_pd"]) if s["eta_pd"] > 0.0 else "0",
        "interval": known_limits,  # below 0 no penalty is needed
        "eta": figures(s["eta"]),
        "ratio": f"{s['ratio']:g}",
    }


def _stability(row: dict[str, Any], raw: dict[str, Any]) -> Verdict:
    known = "" if row["interval"] == "none" else f" (95 % interval {row['interval']})"
    share = raw["td_stable_share"]
    if not row["stable"]:
        text = (
            "plain off-policy TD is unstable on this log. Every penalty above "
            f"{row['threshold']}{known} makes it stable; eta = {row['eta']} is the automatic "
            "choice."
        )
        return Verdict(row["target"], "bad", text)
    if share is not None and share < 0.95:
        text = (
            f"plain off-policy TD is stable on this log, but only in {row['share']} of its "
            f"resamples. From {row['threshold']}{known} on every penalty makes it stable; "
            f"eta = {row['eta']} is the automatic choice."
        )
        return Verdict(row["target"], "care", text)
    text = "plain off-policy TD is stable on this log; no penalty is needed for that."
    return Verdict(row["target"], "good", text)


def by_level(e: Evaluation) -> tuple[list[Finding], list[Finding]]:
    """The warnings and the notes."""
    warnings = [w for w in e.warnings if w.level == "warning"]
    return warnings, [w for w in e.warnings if w.level != "warning"]


def grouped(found: list[Finding]) -> list[dict[str, Any]]:
    """Findings of one code together: code, remedy, items of target and text."""
    groups: dict[str, dict[str, Any]] = {}
    for one in found:
        group = groups.setdefault(one.code, {"code": one.code, "remedy": one.remedy, "items": []})
        group["items"].append({"target": one.target, "text": one.text})
    return list(groups.values())
