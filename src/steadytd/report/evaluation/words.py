"""An evaluation in words and rows: what the terminal and the page share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from steadytd.base.finding import Finding
from steadytd.base.wording import beside, decimals, figures
from steadytd.evaluation.judge.decide import Decision, percent
from steadytd.evaluation.judge.recommend import Recommendation
from steadytd.evaluation.judge.target_findings import RATIO_AS_MEAN
from steadytd.evaluation.result import Evaluation

MOST_UNSEEN = 6  # sentences about what was not seen that are shown

Grade = Literal["good", "worse", "care", "bad"]

# What a warning means for the value, after "do not trust it:" or "with care:".
REASONS = {
    "no_support": "the target takes actions that the behaviour policy cannot have logged",
    "ratios_off": "the mean ratio pi/mu is not 1: probabilities are wrong, or actions are missing",
    "probabilities_off": "the logged probabilities are wrong: actions are taken more or less often "
    "than they say",
    "no_end": "with discount 1 the sum of rewards has no end, as far as the log shows",
    "no_variation": "everything in the log says the same, so that chance cannot be seen in it",
    "low_overlap": "the log shows too little of what this policy would do",
    "bias_grows": "what the features miss seems to grow with time, beyond any bound",
    "beyond_log": "the target goes to where the log hardly was: what comes there is extrapolated",
    "few_rows": "it rests on too few tries to show what is rare",
    "larger_unseen": "rare rewards grow where this policy goes, so that larger ones may be missing",
    "few_episodes": "the log is too small",
    "rows_left_out": "too many rows had to be left out",
    "stretches_alike": "the log is too short for how slowly it forgets",
    "value_range": "no policy can have such a value with rewards like those logged or stated",
    "cut_off": "much of the value lies beyond the ends of cut-off episodes and is unchecked",
    "behavior_estimated": "the behaviour policy's probabilities are only estimates",
    "actions_unseen": "the target takes actions that the log never shows",
}
STATED = (
    "This holds if the policy that made the log looked at nothing but the logged observations, as "
    "is stated: its probabilities are estimates."
)
# These leave the value usable under a condition that a person can judge.
CONDITIONAL = {"behavior_estimated", "cut_off", "few_rows", "larger_unseen"}


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
        return beside(value, width)
    digits = min(1 - math.floor(math.log10(width / 2)), 5 - math.floor(math.log10(size)))
    return decimals(value, digits, width)


def limits(lo: float | None, hi: float | None) -> str:
    """An interval for reading.

    >>> limits(18.9427, 19.8941), limits(9.999999, 10.000001), limits(None, 1.0)
    ('18.94 to 19.89', '10.0000 to 10.0000', 'none')
    """
    if lo is None or hi is None or not (math.isfinite(lo) and math.isfinite(hi)):
        return "none"
    size = max(abs(lo), abs(hi))
    return f"{number(lo, hi - lo, size)} to {number(hi, hi - lo, size)}"


def decision(d: Decision) -> str:
    """The decision about one target, or why there is none: the first of its warnings."""
    if d.trusted:
        return d.text
    first, *others = d.reasons
    more = f" (and {len(others)} more warnings)" if len(others) > 1 else ""
    more = " (and one more warning)" if len(others) == 1 else more
    width = d.hi - d.lo
    found = "no interval"
    if math.isfinite(width):
        level = f"{percent(d.level)} % interval {limits(d.lo, d.hi)}"
        found = f"a difference of {number(d.difference, width)} ({level})"
    return (
        f"No decision about {d.target}: {REASONS.get(first, first)}{more}. The log gives {found}; "
        "do not rely on this."
    )


def decision_lines(e: Evaluation) -> list[Verdict]:
    """One decision per target: good or worse where it can be relied on, bad where it cannot."""
    grades: dict[str, Grade] = {"better": "good", "worse": "worse", "undecided": "care"}
    return [
        Verdict(d.target, grades[d.decision] if d.trusted else "bad", decision(d))
        for d in e.decisions
    ]


def _because(codes: tuple[str, ...]) -> str:
    return "; ".join(REASONS.get(code, code) for code in codes)


def verdicts(e: Evaluation) -> list[Verdict]:
    """One line per target, in the evaluation's order."""
    return [_verdict(e.recommended[name], *worth(e, name)) for name in e.targets]


def worth(e: Evaluation, target: str) -> tuple[float, float | None]:
    """What the recommended learner says: the value that its interval is about, and what it reached.

    The interval of an online learner is that of its fixed point; None: it is not online.
    """
    r = e.recommended[target]
    v = e.judged[e.place(target)].row(r.learner)
    if v.kind != "online":
        return r.value, None
    return (r.value if v.fixed_point is None else v.fixed_point), r.value


def _verdict(r: Recommendation, at: float, reached: float | None) -> Verdict:
    if not math.isfinite(at):
        return Verdict(r.target, "bad", "do not trust anything here: no learner found a value.")
    value = number(at, r.hi - r.lo)
    known = limits(r.lo, r.hi)
    interval = "no interval" if known == "none" else f"95 % interval {known}"
    if reached is not None and math.isfinite(reached):
        interval += f"; this is the fixed point, reached was {number(reached, r.hi - r.lo)}"
    if not set(r.warnings) <= CONDITIONAL:
        text = f"do not trust {value} ({interval}, by {r.learner}): {_because(r.warnings)}."
        return Verdict(r.target, "bad", text)
    if r.warnings:
        text = f"{value} ({interval}), by {r.learner}; {_if(r.warnings)}."
        return Verdict(r.target, "care", text)
    return Verdict(r.target, "good", f"{value} ({interval}), by {r.learner}.")


def _if(codes: tuple[str, ...]) -> str:
    """The condition under which a value can be used."""
    said = {
        "behavior_estimated": "trust it only if the estimated behaviour probabilities are right",
        "cut_off": "trust it only if the values of the states in which episodes are cut off are "
        "right; much depends on them, and the log cannot check them",
        "few_rows": "trust it only if nothing rare can happen that the log does not show; it rests "
        "on few tries",
        "larger_unseen": "trust it only if there are no larger rewards than those logged",
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
        "word": "stable" if s["td_stable"] else "unstable" if s["slowest"] < 0.0 else "not stable",
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
            f"plain off-policy TD is {row['word']} on this log. Every penalty above "
            f"{row['threshold']}{known} makes it stable, {RATIO_AS_MEAN}; eta = {row['eta']} is "
            "the automatic choice."
        )
        return Verdict(row["target"], "bad", text)
    if share is not None and share < 0.95:
        text = (
            f"plain off-policy TD is stable on this log, but only in {row['share']} of its "
            f"resamples. From {row['threshold']}{known} on every penalty makes it stable, "
            f"{RATIO_AS_MEAN}; eta = {row['eta']} is the automatic choice."
        )
        return Verdict(row["target"], "care", text)
    text = "plain off-policy TD is stable on this log; no penalty is needed for that."
    return Verdict(row["target"], "good", text)


def by_level(e: Evaluation) -> tuple[list[Finding], list[Finding]]:
    """The warnings and the notes."""
    warnings = [w for w in e.warnings if w.level == "warning"]
    return warnings, [w for w in e.warnings if w.level != "warning"]


def decision_texts(e: Evaluation) -> list[str]:
    """The decision about every target, and which is best, in the words that come first."""
    lines = [line.text for line in decision_lines(e)]
    return [*lines, e.best.text] if len(e.targets) > 1 else lines


def unseen_texts(e: Evaluation) -> list[str]:
    """What trusted answers rest on that no log can show."""
    found = list(dict.fromkeys(u.text for u in e.missing.values() if u.text))
    if e.log.behavior_estimated and any(r.trusted for r in e.recommended.values()):
        found.insert(0, STATED)
    return found


def conditions(e: Evaluation) -> list[str]:
    """Under which condition a target's value can be used, where there is one."""
    return [f"{line.target}: {line.text}" for line in verdicts(e) if line.grade == "care"]


def warning_texts(e: Evaluation) -> list[str]:
    """Conditions and warnings, each with its remedy."""
    warnings, _ = by_level(e)
    return [*conditions(e), *map(str, warnings)]


def grouped(found: list[Finding]) -> list[dict[str, Any]]:
    """Findings of one code and one remedy together: code, remedy, items of target and text."""
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    for one in found:
        empty: dict[str, Any] = {"code": one.code, "remedy": one.remedy, "items": []}
        group = groups.setdefault((one.code, one.remedy), empty)
        group["items"].append({"target": one.target, "text": one.text})
    return list(groups.values())
