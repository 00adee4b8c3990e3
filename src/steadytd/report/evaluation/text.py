"""An evaluation in sentences and rows: what terminal, notebook and page say in the same words."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

from steadytd.base.finding import Finding
from steadytd.base.numbers import count, interval, number, rounded
from steadytd.evaluation.checks import serious_first
from steadytd.evaluation.decide import Decision
from steadytd.evaluation.quantiles import ReturnLevel
from steadytd.evaluation.result import Evaluation
from steadytd.evaluation.sensitivity import MOST, Sensitivity

NAMED = 30  # targets that have a line or a dot of their own
LEVEL = ">95\N{NO-BREAK SPACE}%\N{NO-BREAK SPACE}interval"  # heading that stays on one line
LOGGED = "(as logged)"  # the policy that made the log, in tables of policies
OFF_BY = (1.1, 1.25)  # factors for which the range of values is shown
POLICY_COLUMNS = {
    "policy": "policy", "value": ">value", "interval": LEVEL,
    "difference": ">difference", "difference_interval": LEVEL,
    "trust": "trusted",
}  # fmt: skip
REMARKS = {"sampling": "sampling", "solved": "solved", "action": "by action", "online": "online"}
Row = dict[str, Any]


class Verdict(NamedTuple):
    """One target's sentence, and how it is coloured."""

    target: str
    grade: Literal["good", "worse", "care", "bad"]
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


def size_text(e: Evaluation) -> str:
    """How much was logged."""
    return f"{count(e.log.rows, 'row')}, {count(e.log.episodes, 'episode')}"


# Sentences


def decision_lines(e: Evaluation) -> list[Verdict]:
    """One decision per target: good or worse where it can be relied on, bad where it cannot."""
    reward = f"{e.reward_name}: " if e.reward else ""
    lines = [_decision(e, d) for d in e.decisions]
    return [line._replace(text=f"{reward}{line.text}") for line in lines]


def _decision(e: Evaluation, d: Decision) -> Verdict:
    if d.trusted:
        grades: Any = {"better": "good", "worse": "worse", "undecided": "care"}
        return Verdict(d.target, grades[d.decision], d.headline)
    reasons = [w for w in e.warnings if w.level == "warning" and w.target in ("", d.target)]
    first = serious_first(reasons)[0]
    more = len(d.reasons) - 1
    others = f" ({more} more warning{'s' if more > 1 else ''})" if more else ""
    reason = f"{first.text} {first.remedy}{others}".strip()
    return Verdict(d.target, "bad", f"No decision about {d.target}. {reason}")


def decision_texts(e: Evaluation) -> list[str]:
    """The decision about every target, and which is best, in the words that come first."""
    lines = [line.text for line in decision_lines(e)]
    return [*lines, e.best.text] if len(e.targets) > 1 else lines


def log_next(e: Evaluation) -> str:
    """What to log next about the open decision that needs least; nothing where none is known."""
    advice = [e.log_next(name) for name in e.targets]
    if all(one.episodes == 0 for one in advice):
        return "nothing more is needed for these decisions."
    wanted = [one for one in advice if one.text and one.episodes != 0]
    needs = [one.episodes or one.now_needed or math.inf for one in wanted]
    return wanted[needs.index(min(needs))].text if wanted else ""


def closing_lines(e: Evaluation) -> list[tuple[str, str]]:
    """What stands below the table of policies: a heading and a sentence each."""
    lines = [("Read as", " ".join(e.log.notes))] if e.log.notes else []
    lines.append(("Assumed", f"{'; '.join(e.assumptions)}."))
    for found in serious_first(e.warnings)[:1]:  # a warning before a note
        about_target = f"{found.target}: " if found.target else ""
        lines.append((found.code, f"{about_target}{found.text} {found.remedy}".strip()))
    wanted = log_next(e)
    return [*lines, ("To log next", wanted)] if wanted else lines


def findings_by_level(e: Evaluation) -> tuple[list[Finding], list[Finding]]:
    """The warnings and the notes, the most serious first."""
    found = serious_first(e.warnings)
    warnings = [w for w in found if w.level == "warning"]
    return warnings, [w for w in found if w.level != "warning"]


def grouped(found: list[Finding]) -> list[Row]:
    """Findings of one code and one remedy together: code, remedy, items of target and text."""
    groups: dict[tuple[str, str], Row] = {}
    for one in found:
        empty: Row = {"code": one.code, "remedy": one.remedy, "items": []}
        group = groups.setdefault((one.code, one.remedy), empty)
        group["items"].append({"target": one.target, "text": one.text})
    return list(groups.values())


def stability_verdicts(e: Evaluation) -> list[Verdict]:
    """One line per target about plain TD on this log."""
    shares = e.stability["td_stable_share"]
    return [_stability(row, share) for row, share in zip(stability_rows(e), shares, strict=True)]


def _stability(row: Row, share: float | None) -> Verdict:
    known = "" if row["interval"] == "none" else f" (95 % interval {row['interval']})"
    enough = (
        f"every penalty above {row['threshold']}{known} makes it stable. Automatic choice: "
        f"{row['eta']}."
    )
    if not row["stable"]:
        return Verdict(row["target"], "bad", f"plain TD is {row['word']} on this log; {enough}")
    if share is not None and share < 0.95:
        text = f"plain TD is stable on this log, but only in {row['share']} of its resamples; "
        return Verdict(row["target"], "care", text + enough)
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


# Rows


def policy_rows(e: Evaluation) -> list[dict[str, str]]:
    """The policy that made the log, then every target: value, and the difference to it."""
    own = e.behavior
    first = (LOGGED, estimate_text(*own), interval_text(own.lo, own.hi), "", "", "")
    rows = [dict(zip(POLICY_COLUMNS, first, strict=True))]
    for d in e.decisions:
        r = e.recommended[d.target]
        rows.append(
            {
                "policy": d.target,
                "value": estimate_text(r.value, r.lo, r.hi),
                "interval": interval_text(r.lo, r.hi),
                "difference": "the same" if d.same else estimate_text(d.difference, d.lo, d.hi),
                "difference_interval": "" if d.same else interval_text(d.lo, d.hi),
                "trust": "yes" if d.trusted else "no",
            }
        )
    return rows


def value_rows(e: Evaluation, *, recommended_only: bool = False) -> list[Row]:
    """The values table, one row per target and learner.

    `value` is the fixed point, to which the interval belongs; `reached` is where an online learner
    ended.
    """
    rows = e.values.iter_rows(named=True)
    return [_value(v) for v in rows if v["recommended"] or not recommended_only]


def recommended_first(rows: list[Row]) -> list[Row]:
    """Within each target the recommended learner comes first."""
    places = {target: i for i, target in enumerate(dict.fromkeys(row["target"] for row in rows))}
    return sorted(rows, key=lambda row: (places[row["target"]], not row["recommended"]))


def _value(v: Row) -> Row:
    lo, hi, ended = v["lo"], v["hi"], v["diverged"] is None
    fixed = v["fixed_point"] if v["fixed_point"] is not None else v["value"]
    online = v["kind"] == "online" and ended
    unstable = (
        {"action": "does not settle", "online": "unstable here"} if v["stable"] is False else {}
    )
    return {
        "target": v["target"],
        "learner": v["learner"],
        "value": estimate_text(fixed, lo, hi) if ended else "overflowed",
        "interval": interval_text(lo, hi),
        "reached": estimate_text(v["value"], lo, hi) if online else "",
        "choices": _choices(v, ("eta", "ratio", "alpha")),
        "penalty": _choices(v, ("eta",)) if v["eta"] else "",
        "remark": (REMARKS | unstable)[v["kind"]],
        "recommended": v["recommended"],
    }


def _choices(row: Row, names: tuple[str, ...]) -> str:
    """The numbers that were chosen from the data or given."""
    shown = {name: row[name] for name in names if row[name] is not None}
    return ", ".join(f"{name} {value:.3g}" for name, value in shown.items())


def overlap_rows(e: Evaluation) -> list[dict[str, str]]:
    """Overlap in words and shares."""
    return [
        {
            "target": o["target"],
            "rows": f"{o['ess_step']:,.0f} ({o['ess_step_share']:.0%})",
            "episodes": f"{o['ess_trajectory']:,.1f} ({o['ess_trajectory_share']:.1%})",
            "largest": f"{o['rho_max']:.3g}",
            "row": f"{o['rho_max_row']:,}" if o["rho_max_row"] >= 0 else "none",
            "zeros": f"{o['zero_share']:.1%}",
            "mean": f"{o['rho_mean']:.3f}",
            "violations": f"{o['violations']:,}" if o["violations"] else "none",
        }
        for o in e.overlap.iter_rows(named=True)
    ]


def stability_rows(e: Evaluation) -> list[Row]:
    """What the data say about plain TD and its penalty."""
    rows = []
    for s in e.stability.iter_rows(named=True):
        lo, hi = s["eta_pd_lo"], s["eta_pd_hi"]
        known = not (lo is None or hi is None or math.isnan(lo) or math.isnan(hi))
        limits = interval_text(max(lo, 0.0), hi) if known and hi > 0.0 else "0" if known else "none"
        share, unstable = s["td_stable_share"], "unstable" if s["slowest"] < 0.0 else "not stable"
        rows.append(
            {
                "target": s["target"],
                "stable": s["td_stable"],
                "word": "stable" if s["td_stable"] else unstable,
                "share": "unknown" if share is None else f"{share:.0%}",
                "threshold": number(s["eta_pd"]) if s["eta_pd"] > 0.0 else "0",
                "interval": limits,  # below 0 no penalty is needed
                "eta": number(s["eta"]),
                "ratio": f"{s['ratio']:g}",
            }
        )
    return rows


def calibration_rows(e: Evaluation) -> list[Row]:
    """Where behaviour is estimated: of what was predicted with this chance, how much happened?"""
    return [
        {
            "range": f"{b['low']:.1f} to {b['high']:.1f}",
            "pairs": f"{b['pairs']:,}",
            "predicted": f"{b['predicted']:.1%}",
            "happened": f"{b['happened']:.1%}",
            "fine": b["fine"],
        }
        for b in e.log.behavior_numbers.get("bins") or []
        if b["pairs"]
    ]


def sensitivity_rows(e: Evaluation) -> list[Row]:
    """How wrong the ratios would have to be, and what values they would allow."""
    rows = []
    for name in e.targets:
        s = e.sensitivity(name)
        ranges = {b.Lambda: interval_text(b.lo, b.hi) for b in s.curve}
        shown = [ranges.get(factor, "not known") for factor in OFF_BY]
        rows.append({"target": name, "turns": turns(s), "ranges": shown})
    return rows


def turns(s: Sensitivity) -> str:
    """The factor at which target and behaviour change places."""
    if s.alike:
        return "no difference"
    if math.isnan(s.Lambda):
        return "not known"
    if math.isinf(s.Lambda):
        return f"more than {MOST:.0f}"
    return f"{s.Lambda:.3g}" if s.sharp else f"at least {s.Lambda:.3g}"


def spread_rows(e: Evaluation) -> list[Row]:
    """What a return may be beside its mean: quantiles, and the mean of the worst tenth."""
    found = {name: e.probabilities.spreads[name] for name in e.targets}
    return [
        {"target": name, "levels": [_level(row) for row in s.rows], "text": s.text}
        for name, s in found.items()
    ]


def _level(row: ReturnLevel) -> tuple[str, str]:
    if not math.isfinite(row.value):
        return "not known", ""
    if math.isfinite(row.lo) and math.isfinite(row.hi):
        return estimate_text(row.value, row.lo, row.hi), interval_text(row.lo, row.hi)
    for known, word in ((row.lo, "from"), (row.hi, "up to")):  # the other end is not in the log
        if math.isfinite(known):
            reach = abs(row.value - known)
            return rounded(row.value, reach), f"{word} {rounded(known, reach)}"
    return number(row.value), ""


def spread_names(e: Evaluation) -> list[str]:
    """The columns of `spread_rows`; none where no target has any."""
    rows = next((s.rows for s in e.probabilities.spreads.values() if s.rows), ())
    said = {"quantile": "{:.0%}", "cvar": "worst {:.0%}, mean"}
    return [said[row.what].format(row.level) for row in rows]
