"""An evaluation in rows: the tables that the terminal and the page share."""

from __future__ import annotations

import math
from typing import Any

from steadytd.base.numbers import number, rounded
from steadytd.evaluation.quantiles import ReturnLevel
from steadytd.evaluation.result import Evaluation
from steadytd.evaluation.sensitivity import MOST, Sensitivity
from steadytd.report.evaluation.words import estimate_text, interval_text, penalties

LEVEL = ">95\N{NO-BREAK SPACE}%\N{NO-BREAK SPACE}interval"  # heading that stays on one line
LOGGED = "(as logged)"  # the policy that made the log, in tables of policies
OFF_BY = (1.1, 1.25, 1.5)  # factors for which the range of values is shown

POLICY_COLUMNS = {
    "policy": "policy", "value": ">value", "interval": LEVEL,
    "difference": ">difference", "difference_interval": LEVEL,
    "trust": "trusted",
}  # fmt: skip


def policy_rows(e: Evaluation) -> list[dict[str, str]]:
    """The policy that made the log, then every target: value, and the difference to it."""
    own = e.behavior
    rows = [
        {
            "policy": LOGGED,
            "value": estimate_text(own.value, own.lo, own.hi),
            "interval": interval_text(own.lo, own.hi),
            "difference": "",
            "difference_interval": "",
            "trust": "",
        }
    ]
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


def value_rows(e: Evaluation, *, recommended_only: bool = False) -> list[dict[str, Any]]:
    """The values table, one row per target and learner.

    `value` is the fixed point, to which the interval belongs; `reached` is where an online learner
    ended.
    """
    rows = []
    for v in e.values.iter_rows(named=True):
        if recommended_only and not v["recommended"]:
            continue
        lo, hi, ended = v["lo"], v["hi"], v["diverged"] is None
        fixed = v["fixed_point"] if v["fixed_point"] is not None else v["value"]
        online = v["kind"] == "online" and ended
        rows.append(
            {
                "target": v["target"],
                "learner": v["learner"],
                "kind": v["kind"],
                "value": estimate_text(fixed, lo, hi) if ended else "overflowed",
                "interval": interval_text(lo, hi),
                "reached": estimate_text(v["value"], lo, hi) if online else "",
                "choices": choices(v),
                "penalty": choices(v, ("eta",)) if v["eta"] else "",
                "remark": _remark(v),
                "recommended": v["recommended"],
            }
        )
    return rows


def choices(row: dict[str, Any], names: tuple[str, ...] = ("eta", "ratio", "alpha")) -> str:
    """The numbers that were chosen from the data or given."""
    shown = {name: row[name] for name in names if row[name] is not None}
    return ", ".join(f"{name} {value:.3g}" for name, value in shown.items())


def _remark(v: dict[str, Any]) -> str:
    if v["kind"] == "sampling":
        return "sampling"
    if v["kind"] == "solved":
        return "solved"
    if v["kind"] == "action":
        return "does not settle" if v["stable"] is False else "by action"
    if v["stable"] is False:
        return "unstable here"
    return "online"


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


def stability_rows(e: Evaluation) -> list[dict[str, Any]]:
    """What the data say about plain TD and its penalty."""
    return [penalties(s) for s in e.stability.iter_rows(named=True)]


def calibration_rows(e: Evaluation) -> list[dict[str, Any]]:
    """Where behaviour is estimated: of what was predicted with this chance, how much happened?"""
    bins = e.log.behavior_numbers.get("bins") or []
    return [
        {
            "range": f"{b['low']:.1f} to {b['high']:.1f}",
            "pairs": f"{b['pairs']:,}",
            "predicted": f"{b['predicted']:.1%}",
            "happened": f"{b['happened']:.1%}",
            "fine": b["fine"],
        }
        for b in bins
        if b["pairs"]
    ]


def sensitivity_rows(e: Evaluation) -> list[dict[str, Any]]:
    """How wrong the ratios would have to be, and what values they would allow."""
    return [_sensitivity(e.sensitivity(name)) for name in e.targets]


def _sensitivity(s: Sensitivity) -> dict[str, Any]:
    ranges = {b.Lambda: interval_text(b.lo, b.hi) for b in s.curve}
    return {
        "target": s.target,
        "turns": turns(s),
        "ranges": [ranges.get(factor, "not known") for factor in OFF_BY],
    }


def turns(s: Sensitivity) -> str:
    """The factor at which target and behaviour change places."""
    if s.alike:
        return "no difference"
    if math.isnan(s.Lambda):
        return "not known"
    if math.isinf(s.Lambda):
        return f"more than {MOST:.0f}"
    return f"{s.Lambda:.3g}" if s.sharp else f"at least {s.Lambda:.3g}"


def spread_rows(e: Evaluation) -> list[dict[str, Any]]:
    """What a return may be beside its mean: quantiles, and the mean of the worst tenth."""
    rows = []
    for name in e.targets:
        s = e.probabilities.spreads[name]
        shown = [_level(row) for row in s.rows]
        rows.append({"target": name, "levels": shown, "text": s.text})
    return rows


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


def recommended_first(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Within each target the recommended learner comes first."""
    places = {target: i for i, target in enumerate(dict.fromkeys(row["target"] for row in rows))}
    return sorted(rows, key=lambda row: (places[row["target"]], not row["recommended"]))
