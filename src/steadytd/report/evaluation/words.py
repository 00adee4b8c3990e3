"""An evaluation in sentences: what terminal, notebook and page say first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from steadytd.base.finding import Finding
from steadytd.base.numbers import about, interval, number, rounded
from steadytd.evaluation.checks import serious_first
from steadytd.evaluation.decide import Decision
from steadytd.evaluation.result import Evaluation

NAMED = 30  # targets that have a line or a dot of their own

Grade = Literal["good", "worse", "care", "bad"]


@dataclass(frozen=True)
class Verdict:
    """One target's sentence, and how it is coloured."""

    target: str
    grade: Grade
    text: str


def estimate_text(value: float | None, lo: float, hi: float) -> str:
    """A value to the digits that its interval leaves.

    >>> estimate_text(19.29484, 18.8, 19.75), estimate_text(None, 0.0, 1.0)
    ('19.3', 'none')
    """
    if value is None or not math.isfinite(value):
        return "none"
    return rounded(value, (hi - lo) / 2.0)


def interval_text(lo: float | None, hi: float | None) -> str:
    """An interval for reading; "none" where an end is not known."""
    if lo is None or hi is None or not (math.isfinite(lo) and math.isfinite(hi)):
        return "none"
    return interval(lo, hi)


def decision_lines(e: Evaluation) -> list[Verdict]:
    """One decision per target: good or worse where it can be relied on, bad where it cannot."""
    grades: dict[str, Grade] = {"better": "good", "worse": "worse", "undecided": "care"}
    return [
        Verdict(d.target, grades[d.decision], d.headline)
        if d.trusted
        else Verdict(d.target, "bad", f"No decision about {d.target}. {_first_reason(e, d)}")
        for d in e.decisions
    ]


def _first_reason(e: Evaluation, d: Decision) -> str:
    """The most serious reason not to trust a decision, and how many more there are."""
    concern = [w for w in e.warnings if w.level == "warning" and w.target in ("", d.target)]
    first = serious_first(concern)[0]
    more = len(d.reasons) - 1
    others = f" ({more} more warning{'s' if more > 1 else ''})" if more else ""
    return f"{first.text} {first.remedy}{others}".strip()


def decision_texts(e: Evaluation) -> list[str]:
    """The decision about every target, and which is best, in the words that come first."""
    lines = [line.text for line in decision_lines(e)]
    return [*lines, e.best.text] if len(e.targets) > 1 else lines


def most_serious(e: Evaluation) -> Finding | None:
    """The finding to know first: a warning before a note."""
    return next(iter(serious_first(e.warnings)), None)


def log_next(e: Evaluation) -> str:
    """What to log next, in one sentence; nothing where a warning has its remedy."""
    open_ones = [d for d in e.decisions if d.trusted and d.decision == "undecided" and not d.same]
    known = [d for d in open_ones if d.episodes_needed]
    if known:
        d = min(known, key=lambda d: d.episodes_needed or 0)
        more = f"{about(d.episodes_needed or 0)} more {d.counted} like these"
        return f"{more} would give an even chance to decide about {d.target}."
    if open_ones:
        return (
            f"more {open_ones[0].counted} alone may not decide {open_ones[0].target}: use richer "
            "features, or log a policy closer to it."
        )
    if not all(d.trusted for d in e.decisions):
        return ""
    return "nothing more is needed for these decisions."


def findings_by_level(e: Evaluation) -> tuple[list[Finding], list[Finding]]:
    """The warnings and the notes, the most serious first."""
    found = serious_first(e.warnings)
    warnings = [w for w in found if w.level == "warning"]
    return warnings, [w for w in found if w.level != "warning"]


def grouped(found: list[Finding]) -> list[dict[str, Any]]:
    """Findings of one code and one remedy together: code, remedy, items of target and text."""
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    for one in found:
        empty: dict[str, Any] = {"code": one.code, "remedy": one.remedy, "items": []}
        group = groups.setdefault((one.code, one.remedy), empty)
        group["items"].append({"target": one.target, "text": one.text})
    return list(groups.values())


def stability_verdicts(e: Evaluation) -> list[Verdict]:
    """One line per target about plain TD on this log."""
    return [_stability(penalties(raw), raw) for raw in e.stability.to_dicts()]


def penalties(s: dict[str, Any]) -> dict[str, Any]:
    """A row of `Evaluation.stability` for reading."""
    lo, hi = s["eta_pd_lo"], s["eta_pd_hi"]
    known = not (lo is None or hi is None or math.isnan(lo) or math.isnan(hi))
    limits = interval_text(max(lo, 0.0), hi) if known and hi > 0.0 else "0" if known else "none"
    return {
        "target": s["target"],
        "stable": s["td_stable"],
        "word": "stable" if s["td_stable"] else "unstable" if s["slowest"] < 0.0 else "not stable",
        "share": "unknown" if s["td_stable_share"] is None else f"{s['td_stable_share']:.0%}",
        "threshold": number(s["eta_pd"]) if s["eta_pd"] > 0.0 else "0",
        "interval": limits,  # below 0 no penalty is needed
        "eta": number(s["eta"]),
        "ratio": f"{s['ratio']:g}",
    }


def _stability(row: dict[str, Any], raw: dict[str, Any]) -> Verdict:
    known = "" if row["interval"] == "none" else f" (95 % interval {row['interval']})"
    share = raw["td_stable_share"]
    enough = f"every penalty above {row['threshold']}{known} makes it stable"
    if not row["stable"]:
        text = f"plain TD is {row['word']} on this log; {enough}. Automatic choice: {row['eta']}."
        return Verdict(row["target"], "bad", text)
    if share is not None and share < 0.95:
        text = (
            f"plain TD is stable on this log, but only in {row['share']} of its resamples; "
            f"{enough}. Automatic choice: {row['eta']}."
        )
        return Verdict(row["target"], "care", text)
    return Verdict(row["target"], "good", "plain TD is stable on this log, without any penalty.")


def telling(e: Evaluation, most: int = NAMED) -> list[str]:
    """All targets, in order; of more than `most` the best and then the most doubtful ones.

    The best: trusted ones first, then by the difference to the policy that made the log. The most
    doubtful: those that are not trusted first, then by how wide the difference's interval is.
    """
    if len(e.targets) <= most:
        return e.targets
    best = [d.target for d in sorted(e.decisions, key=_worse)][: most - most // 2]
    doubtful = [d.target for d in sorted(e.decisions, key=_surer) if d.target not in best]
    return best + doubtful[: most // 2]


def _worse(d: Decision) -> tuple[bool, float]:
    return not d.trusted, -d.difference if math.isfinite(d.difference) else math.inf


def _surer(d: Decision) -> tuple[bool, float]:
    width = d.hi - d.lo
    return d.trusted, -width if math.isfinite(width) else -math.inf


def selection_text(e: Evaluation, most: int, what: str) -> str:
    """Which of many targets are shown; nothing where that is all."""
    if len(e.targets) <= most:
        return ""
    return (
        f"{what} of {most} of {len(e.targets):,} targets: the {most - most // 2} best, trusted "
        f"ones first, and the {most // 2} most doubtful."
    )


def closing_lines(e: Evaluation) -> list[tuple[str, str]]:
    """What stands below the table of policies: a heading and a sentence each."""
    found = most_serious(e)
    lines = [("Assumed", f"{'; '.join(e.assumptions)}.")]
    if found is not None:
        about_target = f"{found.target}: " if found.target else ""
        lines.append((found.code, f"{about_target}{found.text} {found.remedy}".strip()))
    wanted = log_next(e)
    return [*lines, ("To log next", wanted)] if wanted else lines
