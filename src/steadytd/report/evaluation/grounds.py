"""What a decision rests on, as pictures: the value over lam, and the logged probabilities."""

from __future__ import annotations

import math
from typing import Any

from steadytd.evaluation.calibration import ERROR, LogCalibration
from steadytd.evaluation.result import Evaluation
from steadytd.evaluation.rule import sampling_error
from steadytd.report.evaluation.panels import BEHAVIOR, TARGET, data, framed, says
from steadytd.report.palette import GOOD, INK, PALE, SHADE, SOFT

MOST_OF_IT = 5.0  # times what is drawn: an interval that is wider is cut
MOST_ACTIONS = 14  # that are drawn: those furthest from what is expected
ALL_TOGETHER = f"{100.0 * (1.0 - ERROR):g} % for all, from"  # the level of the intervals
MAY_BE_RIGHT = "below 1, which may be right"  # where the action is impossible in some states
STATES = {"fine": "as said", "few": "too few rows", "above": "off", "below": "off"}
SHADES = {"as said": GOOD, "too few rows": PALE, MAY_BE_RIGHT: SOFT, "off": SHADE}


def lam_chart(e: Evaluation, name: str) -> Any | None:
    """DRL(lam) with its interval over lam, the chosen one marked; None where there is none."""
    import altair as alt

    selection, behavior = e.results[e.place(name)].selection, e.behavior.value
    rows: list[dict[str, Any]] = []
    for c in selection.candidates:
        reach = sampling_error(c.influence, c.stretches)
        if math.isfinite(c.value) and math.isfinite(reach):
            low, high = c.value - reach, c.value + reach
            rows.append({"lam": f"{c.lam:g}", "value": c.value, "lo": low, "hi": high})
    if not rows:
        return None
    best: list[dict[str, Any]] = [
        {**row, "value": selection.value, "lo": selection.lo, "hi": selection.hi}
        for row in rows
        if row["lam"] == f"{selection.lam:g}"
    ]
    base = alt.Chart(data(rows))
    x = alt.X("lam:O", sort=[r["lam"] for r in rows], title="lam", axis=alt.Axis(labelAngle=0))
    scale = alt.Scale(zero=False, domain=_visible(rows, best, behavior), nice=False)
    y = alt.Y("value:Q", title="value", scale=scale, axis=alt.Axis(tickCount=6))
    ends = {"x": x, "y": alt.Y("lo:Q", scale=scale, title="value"), "y2": "hi:Q"}
    told = says("lam", value="value", lo="95 % from", hi="to")
    layers = [
        base.mark_rule(strokeWidth=3, color=TARGET, clip=True).encode(**ends, tooltip=told),
        base.mark_line(color=TARGET, strokeWidth=1, strokeDash=[3, 3], clip=True).encode(x=x, y=y),
        base.mark_point(filled=True, size=60, opacity=1, color=TARGET, clip=True).encode(
            x=x, y=y, tooltip=told
        ),
    ]
    layers.append(alt.Chart(data(best)).mark_rule(color=INK, clip=True).encode(**ends))
    layers.append(
        alt.Chart(data(best))
        .mark_point(shape="diamond", filled=True, size=150, fill=INK)
        .encode(x=x, y=y, opacity=alt.value(1), tooltip=told)
    )
    if math.isfinite(behavior):
        own = alt.Chart(data([{"value": behavior}]))
        layers.append(own.mark_rule(strokeDash=[5, 4], color=BEHAVIOR).encode(y=y))
    return framed(layers, f"{name}: value over lam", 300)


def _visible(
    rows: list[dict[str, Any]], best: list[dict[str, Any]], behavior: float
) -> list[float]:
    """All values, and of the intervals what is not far beyond them and the narrower half.

    The interval of the one that is used is shown whole, unless nothing else could be seen then.
    """
    every = [*rows, *best]
    widths = sorted(r["hi"] - r["lo"] for r in every)
    reach = 1.5 * max(widths[len(widths) // 2], 1e-9)
    known = [r["value"] for r in every] + [behavior] * math.isfinite(behavior)
    low = min(*known, max(min(r["lo"] for r in every), min(known) - reach))
    high = max(*known, min(max(r["hi"] for r in every), max(known) + reach))
    for used in best:
        if used["hi"] - used["lo"] <= MOST_OF_IT * (high - low):
            low, high = min(low, used["lo"]), max(high, used["hi"])
    pad = 0.06 * max(high - low, 1e-9)
    return [low - pad, high + pad]


def calibration_chart(c: LogCalibration) -> Any | None:
    """Said against happened by bin, or the mean of 1{a}/mu by action; None: nothing was checked."""
    if any(b.pairs for b in c.bins):
        return _bins(c)
    return _actions(c) if c.actions else None


def _colour(rows: list[dict[str, Any]]) -> Any:
    import altair as alt

    legend = alt.Legend(title=None, orient="bottom")
    present = [state for state in SHADES if state in {row["state"] for row in rows}]
    scale = alt.Scale(domain=present, range=[SHADES[state] for state in present])
    return alt.Color("state:N", scale=scale, legend=legend)


def _bins(c: LogCalibration) -> Any:
    import altair as alt

    rows = [
        {
            "said": b.said,
            "happened": b.happened,
            "lo": max(b.happened_lo, 0.0),
            "hi": min(b.happened_hi, 1.0),
            "state": STATES[b.state],
        }
        for b in c.bins
        if b.pairs
    ]
    scale, percent = alt.Scale(domain=[0, 1]), alt.Axis(format="~%", tickCount=5)
    x = alt.X("said:Q", title="logged probability of an action", scale=scale, axis=percent)
    y = alt.Y("happened:Q", title="how often it was taken", scale=scale, axis=percent)
    base = alt.Chart(data(rows))
    told = says("state", said="said", happened="happened", lo=ALL_TOGETHER, hi="to")
    right = alt.Chart(data([{"said": v, "happened": v} for v in (0.0, 1.0)]))
    layers = [
        right.mark_line(strokeDash=[4, 4], color=SOFT, strokeWidth=1).encode(x=x, y=y),
        base.mark_rule(strokeWidth=3).encode(
            x=x, y=alt.Y("lo:Q", scale=scale, title="how often it was taken"), y2="hi:Q",
            color=_colour(rows), tooltip=told,
        ),
        base.mark_point(filled=True, size=60, opacity=1).encode(
            x=x, y=y, color=_colour(rows), tooltip=told
        ),
    ]  # fmt: skip
    return framed(layers, "What the log says, and what was done", 330, "state")


def _actions(c: LogCalibration) -> Any:
    import altair as alt

    shown = sorted(c.actions, key=lambda a: -abs(a.mean - a.expected))[:MOST_ACTIONS]
    shown = [a for a in c.actions if a in shown and a.expected > 0.0]
    rows: list[dict[str, Any]] = [
        {
            "action": "all actions" if a.action is None else f"action {a.action:g}",
            "mean": a.mean / a.expected,
            "lo": a.lo / a.expected,
            "hi": a.hi / a.expected,
            "state": MAY_BE_RIGHT if a.state == "below" and not c.whole else STATES[a.state],
        }
        for a in shown
    ]
    scale = alt.Scale(zero=False)
    x = alt.X("mean:Q", title="how often it was done / logged probability", scale=scale)
    order = [r["action"] for r in rows]
    y = alt.Y("action:N", sort=order, title=None, axis=alt.Axis(grid=False, labelLimit=110))
    base = alt.Chart(data(rows))
    bars = alt.Chart(data([r for r in rows if math.isfinite(r["lo"])]))
    told = says("action", "state", mean="mean", lo=ALL_TOGETHER, hi="to")
    layers = [
        alt.Chart(data([{"mean": 1.0}])).mark_rule(strokeDash=[4, 4], color=SOFT).encode(x=x),
        bars.mark_rule(strokeWidth=3).encode(
            x=alt.X("lo:Q", scale=scale, title="how often it was done / logged probability"),
            x2="hi:Q", y=y, color=_colour(rows), tooltip=told,
        ),
        base.mark_point(filled=True, size=60, opacity=1).encode(
            x=x, y=y, color=_colour(rows), tooltip=told
        ),
    ]  # fmt: skip
    title = "What the log says, and what was done"
    return framed(layers, title, 130 + 20 * len(rows), "state")


def calibration_words(c: LogCalibration) -> str:
    """What to know when looking at it."""
    if any(b.pairs for b in c.bins):
        return "Right probabilities lie on the dashed line."
    if not c.actions:
        return f"The logged probabilities could not be checked: {c.reason or 'no rows'}."
    if c.whole:
        return "Divided by what is expected: right probabilities give 1."
    return "Right probabilities give 1, or less for an action that is impossible in some states."
