"""The pictures of an evaluation.

Every picture is a panel of the same width. A wide page shows two side by side, a narrow one shows
them one below the other, and their letters stay legible on both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from steadytd.base.numbers import number
from steadytd.evaluation.calibration import ERROR, LogCalibration
from steadytd.evaluation.result import Evaluation
from steadytd.evaluation.rule import sampling_error
from steadytd.evaluation.visits import Visits
from steadytd.learners import names as laws
from steadytd.report.evaluation.text import ranked, telling
from steadytd.report.figures import alt, dotted, edge_signs, intervals, marks, says, styled
from steadytd.report.palette import GOOD, HUES, INK, PALE, SHADE, SOFT, look

DRAWN = 6  # targets that have panels of their own
WIDTH = 420
LOG, TARGET, BEHAVIOR = PALE, HUES[2], SOFT
Rows = list[dict[str, Any]]


def _of_target(frame: Any, name: str) -> Any:
    """The rows of one target; a frame without rows may have no columns either."""
    return frame.filter(frame["target"] == name) if len(frame) else frame


def _framed(layers: Sequence[Any], title: str, height: int, toggle: str = "") -> Any:
    """Layers as one panel; everything, names and legend included, fits into its width.

    The series of the field `toggle` can be switched off in a page.
    """
    heading = alt.TitleParams(title, anchor="start", frame="bounds", fontSize=13, limit=WIDTH - 30)
    fit = alt.AutoSizeParams(type="fit", contains="padding")
    chart = alt.layer(*layers).properties(width=WIDTH, height=height, title=heading, autosize=fit)
    return styled(chart.properties(usermeta={"toggle": toggle}) if toggle else chart)


# Decisions: every target's difference to the policy that made the log

KINDS = {
    "solved": ("solved", "circle"),
    "online": ("online, step by step", "square"),
    "sampling": ("importance sampling", "triangle-up"),
    "action": ("values of actions", "triangle-down"),
}
REACH = 2.0  # times the recommended intervals' span: how far an axis looks beyond it
DECISIONS = {"better": GOOD, "worse": SHADE, "not decided": INK, "not trusted": PALE}
ARROWS = (("low", "left", 9), ("high", "right", -9))


def decisions_chart(e: Evaluation) -> Any:
    """The difference of each target to the policy that made the log, the best first.

    The axis is chosen for those that are trusted; the others are grey, and cut where it ends.
    """
    named = set(telling(e))
    shown = [d for d in ranked(e) if d.target in named]
    rows: Rows = []
    for d in shown:
        decision = "not decided" if d.decision == "undecided" else d.decision
        ends = {"at": d.difference, "lo": d.lo, "hi": d.hi}
        known = {k: x if math.isfinite(x) else None for k, x in ends.items()}
        label = decision if d.trusted else "not trusted"
        rows.append({"target": d.target, "decision": label, **known})
    trusted = [r for r in rows if r["decision"] != "not trusted"]
    low, high = _domain(trusted or rows, rows, [0.0])
    scale = alt.Scale(domain=[low, high], nice=False)
    title = "difference to the policy that made the log"
    x = alt.X("at:Q", title=title, scale=scale, axis=alt.Axis(tickCount=6))
    order = [row["target"] for row in rows]
    y = alt.Y("target:N", sort=order, title=None, axis=alt.Axis(labelLimit=130, grid=False))
    here = [name for name in DECISIONS if name in {row["decision"] for row in rows}]
    colours = alt.Scale(domain=here, range=[DECISIONS[name] for name in here])
    colour = alt.Color("decision:N", scale=colours, legend=alt.Legend(title=None, orient="bottom"))
    tooltip = says("target", "decision", at="difference", lo="95 % from", hi="to")
    places = {"x": x, "y": y, "color": dotted(colour), "tooltip": tooltip}
    inside = [row for row in rows if row["at"] is not None and low <= row["at"] <= high]
    layers = [
        marks("rule", [{"at": 0.0}], {"x": x}, strokeDash=[5, 4], color=SOFT),
        intervals(rows, places, strokeWidth=3, clip=True),
        marks("point", inside, places, shape="diamond", size=150, filled=True, opacity=1),
    ]
    for edge, side in ((low, "left"), (high, "right")):
        cut = [{**r, "at": edge} for r in rows if _beyond(r, edge, side)]
        arrow = {"shape": f"triangle-{side}", "size": 60, "filled": True, "opacity": 1}
        layers.append(marks("point", cut, places, clip=False, **arrow))
    asked = "Better or worse than the policy that made the log?"
    return _framed(layers, asked, 120 + 26 * len(order), "decision")


def forest_chart(e: Evaluation) -> Any | None:
    """The differences of all segments with their joint intervals, against no difference."""
    segments = () if e.segments is None else e.segments.rows
    rows: Rows = []
    for r in segments:
        ends = {"at": r.difference, "lo": r.difference_lo, "hi": r.difference_hi}
        known = {k: v if math.isfinite(v) else None for k, v in ends.items()}
        label = r.decision if r.trusted else "not trusted"
        if known["at"] is not None:
            sure = "yes" if r.trusted else "no"
            rows.append({**known, "segment": r.segment, "target": r.target, "sure": sure,
                         "decision": label})  # fmt: skip
    if e.segments is None or not rows:
        return None
    title = "difference to the policy that made the log"
    colours = alt.Scale(domain=["yes", "no"], range=[GOOD, SOFT])
    places = {
        "x": alt.X("at:Q", title=title, scale=alt.Scale(zero=True)),
        "y": alt.Y("segment:N", title=None, sort=None, axis=alt.Axis(labelLimit=130, grid=False)),
        "color": alt.Color("sure:N", legend=None, scale=colours),
        "tooltip": says("segment", "target", "decision", at="difference", lo="from", hi="to"),
    }
    if len(e.targets) > 1:
        places["yOffset"] = alt.YOffset("target:N", sort=None)
    layers = [
        marks("rule", [{"at": 0.0}], {"x": places["x"]}, strokeDash=[5, 4], color=BEHAVIOR),
        intervals(rows, places, strokeWidth=3),
        marks("point", rows, places, shape="diamond", size=110, filled=True, opacity=1),
    ]
    heading = f"{e.reward_name} by {e.segments.column}, joint 95 % intervals".strip()
    return _framed(layers, heading, 90 + 22 * len(segments))


def _beyond(row: dict[str, Any], edge: float, side: str) -> bool:
    """Whether an interval goes on beyond an end of the axis."""
    if row["lo"] is None or row["hi"] is None:
        return False
    return bool(row["lo"] < edge) if side == "left" else bool(row["hi"] > edge)


def _domain(best: Rows, every: Rows, levels: Sequence[float]) -> tuple[float, float]:
    """What an axis shows: the best rows' intervals, and whatever is not far from them."""
    ends = ("at", "lo", "hi")
    found = [r[k] for r in best for k in ends if r[k] is not None]
    found = found or [r["at"] for r in every if r["at"] is not None] or [0.0]
    low, high = min(*found, *levels[:1]), max(*found, *levels[:1])
    span = max(high - low, 1e-3 * max(abs(low), abs(high)), 1e-9)
    near = [r[k] for r in every for k in ends if r[k] is not None]
    near = [x for x in (*near, *levels) if low - REACH * span <= x <= high + REACH * span]
    low, high = min(near, default=low), max(near, default=high)
    pad = 0.06 * max(high - low, span)
    return low - pad, high + pad


# Values with their intervals: a dot and a bar for every learner


def values_chart(e: Evaluation, name: str) -> Any:
    """The values of all learners for one target."""
    rows = [_point(v) for v in _of_target(e.values, name).iter_rows(named=True)]
    behavior = e.behavior.value
    logged = [behavior] if math.isfinite(behavior) else []
    best = [r for r in rows if r["recommended"]]
    low, high = domain = _domain(best, rows, logged)
    rows = [_placed(row, row["at"], domain) for row in rows]
    order = [row["learner"] for row in sorted(rows, key=lambda row: not row["recommended"])]
    scale = alt.Scale(domain=[low, high], nice=False, zero=False)
    x = alt.X("at:Q", title="value", scale=scale, axis=alt.Axis(tickCount=6))
    y = alt.Y("learner:N", sort=order, title=None, axis=alt.Axis(labelLimit=130, grid=False))
    learners = list(dict.fromkeys(row["learner"] for row in rows))
    shades = alt.Scale(domain=learners, range=[shade(name) for name in learners])
    colour = alt.Color("learner:N", scale=shades, legend=None)
    labels, forms = zip(*KINDS.values(), strict=True)
    shape = alt.Shape("kind:N", scale=alt.Scale(domain=labels, range=forms), legend=None)
    tooltip = says("learner", at="value", lo="95 % from", hi="to", ended="reached online")
    places = {"x": x, "y": y, "tooltip": tooltip}
    has = [r for r in rows if r["at"] is not None]
    inside = [r for r in has if not r["beyond"]]
    best = [r for r in inside if r["recommended"]]
    others = [r for r in inside if not r["recommended"]]
    ended = [
        {**_placed(r, r["ended"], domain), "place": min(max(r["ended"], low), high)}
        for r in rows
        if r["ended"] is not None
    ]
    band = {"x": alt.X("lo:Q", scale=scale, title="value"), "x2": "hi:Q"}
    whole = [r for r in best if r["lo"] is not None]
    level = [{"at": at} for at in logged if low <= at <= high]
    dots = {**places, "color": colour, "shape": shape}
    reached = {**places, "color": colour, "x": alt.X("place:Q", scale=scale, title="value")}
    layers = [
        *([marks("rule", level, {"x": x}, strokeDash=[5, 4], color=BEHAVIOR)] if level else []),
        marks("rect", whole, band, color="#e8eef4", clip=True),
        intervals(has, {**places, "color": colour}, strokeWidth=3, clip=True),
        marks("point", others, dots, size=60, filled=True, opacity=1),
        marks("point", best, places, shape="diamond", size=150, filled=True, fill=INK,
              stroke="white", opacity=1),
        marks("point", ended, reached, size=55, strokeWidth=1.6, opacity=1, clip=False),
    ]  # fmt: skip
    at_edge = {**places, "x": alt.X("edge:Q", scale=scale, title="value")}
    text = {**at_edge, "text": "beyond:N"}
    for end, side, dx in ARROWS:
        edge = low if end == "low" else high
        style = {"align": side, "dx": dx, "dy": -7, "fontSize": 10, "color": SOFT}
        arrow = {"shape": f"triangle-{side}", "size": 60, "filled": True, "opacity": 1}
        beyond = [r for r in has if r["beyond"] and r["edge"] == edge]
        reached_beyond = [r for r in ended if r["beyond"] and r["edge"] == edge]
        layers += [
            marks("text", beyond, text, **style),
            marks("point", beyond, {**at_edge, "color": colour}, clip=False, **arrow),
            marks("text", reached_beyond, text, **style),
        ]
    return _framed(layers, f"{name}: all learners", 120 + 21 * len(order))


def _point(v: dict[str, Any]) -> dict[str, Any]:
    """A row of the picture: the dot is at the fixed point, to which the interval belongs."""
    at = v["fixed_point"] if v["fixed_point"] is not None else v["value"]
    ended = v["value"] if v["kind"] == "online" and v["value"] != at else None
    row = {"at": at, "lo": v["lo"], "hi": v["hi"], "ended": ended}
    clean = {k: x if x is not None and math.isfinite(x) else None for k, x in row.items()}
    names = ("target", "learner", "recommended")
    return {**clean, **{n: v[n] for n in names}, "kind": KINDS[v["kind"]][0]}


def _placed(row: dict[str, Any], at: float | None, domain: tuple[float, float]) -> dict[str, Any]:
    """The row with the edge at which it is shown, and its number, where it lies beyond the axis."""
    low, high = domain
    if at is None or low <= at <= high:
        return {**row, "beyond": "", "edge": low}
    return {**row, "beyond": number(at), "edge": low if at < low else high}


def shade(learner: str) -> str:
    """The colour that a learner has everywhere; grey for estimators that are no learners.

    >>> shade("perturbed_td:eta=1") == look("perturbed_td").colour, shade("drl") == SOFT
    (True, True)
    """
    name = learner.partition(":")[0]
    return look(name).colour if name in laws() else SOFT


def values_words(e: Evaluation) -> str:
    """What the marks of `values_chart` mean."""
    here = set(e.values["kind"])
    shapes = "; ".join(
        f"{shape.partition('-')[0]}{' (down)' if shape.endswith('down') else ''}: {label}"
        for kind, (label, shape) in KINDS.items()
        if kind in here
    )
    online = " Open circle: where an online learner ended." if "online" in here else ""
    return f"Diamond: recommended; {shapes}.{online} A number at the edge lies beyond it."


# How far the learners are apart

CAP = 10.0  # standard errors apart: beyond, a difference looks no stronger
LEVELS = {"not known": PALE, "agree": GOOD, "apart": SHADE}


def agreement_chart(e: Evaluation, name: str) -> Any | None:
    """How far a target's learners are apart, pair by pair; None where there is no pair."""
    rows = _of_target(e.agreement, name).to_dicts()
    if not rows:
        return None
    compared = [learner for row in rows for learner in (row["other"], row["learner"])]
    order = [x for x in dict.fromkeys([*e.values["learner"], *compared]) if x in compared]
    cells = [_cell(row, order) for row in rows]
    bare = {"labelLimit": 110, "grid": False}
    places = {
        "x": alt.X("other:N", sort=order, title=None, axis=alt.Axis(labelAngle=-40, **bare)),
        "y": alt.Y("learner:N", sort=order, title=None, axis=alt.Axis(**bare)),
    }
    tooltip = says("learner", "other", "level", difference="difference", stderr="standard error")
    box = {
        **places,
        "color": alt.Color("colour:N", scale=None),
        "fillOpacity": alt.FillOpacity("strength:Q", scale=None),
        "tooltip": tooltip,
    }
    text = {**places, "text": "text:N", "color": alt.Color("ink:N", scale=None)}
    layers = [marks("rect", cells, box, stroke="white"), marks("text", cells, text, fontSize=10)]
    return _framed(layers, f"{name}: row minus column", 150 + 21 * len(order))


def _cell(row: dict[str, Any], order: list[str]) -> dict[str, Any]:
    """A pair of learners; the matrix has a lower triangle only."""
    learner, other, difference = row["learner"], row["other"], row["difference"]
    if order.index(learner) < order.index(other):
        learner, other, difference = other, learner, -difference
    known, error = row["agree"] is not None, row["stderr"]
    sure = min(abs(difference) / error, CAP) if known and error else 0.0
    level = "not known" if not known else "agree" if row["agree"] else "apart"
    apart = level == "apart"
    return {
        "learner": learner,
        "other": other,
        "text": short(difference),
        "level": level,
        "difference": difference,
        "stderr": error,
        "colour": LEVELS[level],
        "strength": 0.2 + 0.7 * sure / CAP if apart else 0.25,
        "ink": "white" if apart and sure > 0.75 * CAP else INK,
    }


def short(value: float) -> str:
    """A number for a small box.

    >>> short(-234.5), short(0.0617), short(2.3e7), short(float("nan"))
    ('-230', '0.062', '2e7', 'none')
    """
    if not math.isfinite(value):
        return "none"
    if value != 0.0 and not 1e-3 <= abs(value) < 1e5:
        return re.sub(r"e([+-])0*", lambda sign: "e" + sign[1].strip("+"), f"{value:.0e}")
    return f"{float(f'{value:.2g}'):g}"


# The ratios pi/mu

TAIL, FLOOR = 0.01, -8.0  # share of the least ratios, and power of two, that share a bar


def overlap_chart(e: Evaluation, name: str) -> Any:
    """How often each ratio pi/mu occurs; ratios of 0 apart. All targets have the same axis."""
    counts = {
        n: [c for c in e.histogram_rows if c["target"] == n] for n in (*telling(e, DRAWN), name)
    }
    low, high = _ratio_range(list(counts.values()))
    gap = 0.06 * (high - low)
    total = max(sum(c["rows"] for c in counts[name]), 1)
    shares: dict[tuple[float, float], float] = {}
    for c in counts[name]:
        zero = (low - 3 * gap, low - 2 * gap)
        ends = zero if c["hi"] == 0.0 else _bar(c["lo"], c["hi"], low)
        shares[ends] = shares.get(ends, 0.0) + c["rows"] / total
    rows = [
        {
            "x": x,
            "x2": x2,
            "share": share,
            "kind": "ratio 0" if x < low else "ratio",
            "ratios": "0" if x < low else f"{2.0**x:.3g} to {2.0**x2:.3g}",
        }
        for (x, x2), share in shares.items()
    ]
    domain = [low - 3.6 * gap, high + gap / 2]
    axis = _ratio_axis(domain[1], low - 2.5 * gap, any(x < low for x, _ in shares))
    x = alt.X("x:Q", title="ratio pi/mu", scale=alt.Scale(domain=domain, nice=False), axis=axis)
    colours = alt.Scale(domain=["ratio", "ratio 0"], range=[TARGET, SHADE])
    percent = alt.Tooltip("share:Q", title="share of rows", format=".2~%")
    places = {
        "x": x,
        "x2": "x2:Q",
        "y": alt.Y("share:Q", title="share of rows", axis=alt.Axis(format="~%", tickCount=4)),
        "y2": alt.datum(0.0),
        "color": alt.Color("kind:N", scale=colours, legend=None),
        "tooltip": [alt.Tooltip("ratios:N", title="ratio"), percent],
    }
    layers = [
        marks("rect", rows, places, stroke="white", strokeWidth=0.5),
        marks("rule", [{"x": 0.0}], {"x": x}, strokeDash=[3, 3], color=SOFT),
    ]
    return _framed(layers, f"{name}: how often each ratio occurs", 240)


def _bar(lo: float, hi: float, low: float) -> tuple[float, float]:
    """Where a bin is drawn; what lies below `low`, an edge, is in the bin that begins there.

    Edges are powers of two and 1.5 times those.
    """
    half = math.log2(1.5)
    if math.log2(lo) < low:
        return low, low + (half if low == round(low) else 1.0 - half)
    return math.log2(lo), math.log2(hi)


def _ratio_range(counts: list[Rows]) -> tuple[float, float]:
    """Powers of two between which all but the tails of every target's ratios lie."""
    lows, highs = [-1.0], [1.0]
    for rows in counts:
        bins = sorted((c["lo"], c["hi"], c["rows"]) for c in rows if c["hi"] > 0.0)
        if bins:
            below = np.cumsum([n for *_, n in bins]) / sum(n for *_, n in bins)
            lows.append(max(math.log2(bins[int(np.searchsorted(below, TAIL))][0]), FLOOR))
            highs.append(math.log2(bins[-1][1]))
    return min(lows), max(highs)


def _ratio_axis(high: float, zero: float, zeros: bool) -> Any:
    """Powers of two; ratios of 0 have their tick at `zero`."""
    first, last = math.ceil(zero), math.floor(high)
    step = max(1, round((last - first) / 6))
    ticks = [float(t) for t in range(first, last + 1) if t % step == 0 and t > zero + step / 2]
    label = (  # halfway to the next tick at most: pages keep five digits of a tick
        f"datum.value < {zero + 0.25} ? '0' : "
        "(datum.value < 0 ? '1/' : '') + format(pow(2, abs(datum.value)), ',')"
    )
    values = [zero, *ticks] if zeros else ticks
    return alt.Axis(values=values, labelExpr=label, grid=False, labelOverlap=True)


# The value over the penalty


def path_chart(e: Evaluation, name: str) -> Any:
    """The value over the penalty: the unstable range shaded, the chosen penalty marked."""
    rows = _of_target(e.path, name).to_dicts()
    (s,) = _of_target(e.stability, name).to_dicts()
    top = rows[-1]["eta"]
    low, high = _path_range(rows)
    scale = alt.Scale(type="sqrt", domain=[0.0, top], nice=False)
    axis = alt.Axis(grid=False, tickCount=5, format="~g", labelOverlap=True)
    x = alt.X("eta:Q", title="eta", scale=scale, axis=axis)
    y_scale = alt.Scale(domain=[low, high], nice=False, zero=False)
    y = alt.Y("value:Q", title="value", scale=y_scale)
    span = {"x": alt.X("lo:Q", scale=scale, title="eta"), "x2": "hi:Q"}
    layers = [
        marks("rect", _spans(rows, False), span, opacity=0.16, color=SHADE),
        marks("rect", _spans(rows, None), span, opacity=0.12, color=PALE),
    ]
    if 0.0 < s["eta_pd"] < top:
        ends = {"eta": s["eta_pd"], "lo": s["eta_pd_lo"], "hi": s["eta_pd_hi"]}
        ends = {k: min(max(v, 0.0), top) for k, v in ends.items() if math.isfinite(v)}
        if len(ends) == 3:
            layers.append(marks("rect", [ends], span, opacity=0.25, color=PALE))
        layers.append(marks("rule", [ends], {"x": x}, color=SOFT))
    drawn = [
        {**r, "branch": str(r["stable"])}  # a pole lies where stability changes
        for r in rows
        if r["value"] is not None and math.isfinite(r["value"])
    ]
    line = {"x": x, "y": y, "detail": "branch:N", "tooltip": says(eta="eta", value="value")}
    layers.append(marks("line", drawn, line, clip=True, strokeWidth=2.2, color=TARGET))
    layers.append(marks("rule", drawn[:1], {"y": y}, strokeDash=[5, 4], color=SOFT, clip=True))
    layers += edge_signs(drawn, (low, high), ["branch"], x=x, y=y, color=alt.value(TARGET))
    chosen = [r for r in drawn if r["eta"] == s["eta"] and low <= r["value"] <= high]
    dot = {"size": 100, "filled": True, "stroke": "white", "opacity": 1, "clip": False}
    layers.append(marks("point", chosen[:1], {"x": x, "y": y}, color=GOOD, **dot))
    return _framed(layers, f"{name}: value over the penalty eta", 240)


def _path_range(rows: Rows) -> tuple[float, float]:
    """Nearly all of the stable part, and lstd: near a pole a value has no bounds."""
    found = [r["value"] for r in rows if r["stable"] is not False and r["value"] is not None]
    finite = np.array([v for v in found if math.isfinite(v)] or [0.0, 1.0])
    low, high = np.quantile(finite, [0.05, 0.95]).tolist()
    first = rows[0]["value"]
    if first is not None and math.isfinite(first):
        near = abs(first - (low + high) / 2) < 20 * max(high - low, 1e-9)
        low, high = (min(low, first), max(high, first)) if near else (low, high)
    pad = 0.12 * max(high - low, 1e-3 * max(abs(low), abs(high)), 1e-9)
    return low - pad, high + pad


def _spans(rows: Rows, stable: bool | None) -> Rows:
    """The stretches of eta in which stability is `stable`, ending halfway to the next point."""
    spans: Rows = []
    etas = [r["eta"] for r in rows]
    edges = [etas[0], *((a + b) / 2 for a, b in pairwise(etas)), etas[-1]]
    for i, row in enumerate(rows):
        if row["stable"] is not stable:
            continue
        if spans and spans[-1]["hi"] == edges[i]:
            spans[-1]["hi"] = edges[i + 1]
        else:
            spans.append({"lo": edges[i], "hi": edges[i + 1]})
    return spans


# The value over lam

MOST_OF_IT = 5.0  # times what is drawn: an interval that is wider is cut


def lam_chart(e: Evaluation, name: str) -> Any | None:
    """DRL(lam) with its interval over lam, the chosen one marked; None where there is none."""
    selection, behavior = e.results[e.place(name)].selection, e.behavior.value
    rows: Rows = []
    for c in selection.candidates:
        reach = sampling_error(c.influence, c.stretches)
        if math.isfinite(c.value) and math.isfinite(reach):
            low, high = c.value - reach, c.value + reach
            rows.append({"lam": f"{c.lam:g}", "value": c.value, "lo": low, "hi": high})
    if not rows:
        return None
    best: Rows = [
        {**row, "value": selection.value, "lo": selection.lo, "hi": selection.hi}
        for row in rows
        if row["lam"] == f"{selection.lam:g}"
    ]
    scale = alt.Scale(zero=False, domain=_lam_range(rows, best, behavior), nice=False)
    order = [r["lam"] for r in rows]
    places = {
        "x": alt.X("lam:O", sort=order, title="lam", axis=alt.Axis(labelAngle=0)),
        "y": alt.Y("value:Q", title="value", scale=scale, axis=alt.Axis(tickCount=6)),
    }
    told = {**places, "tooltip": says("lam", value="value", lo="95 % from", hi="to")}
    line = {"strokeWidth": 1, "strokeDash": [3, 3]}
    diamond = {**told, "opacity": alt.value(1)}
    layers = [
        intervals(rows, told, "y", strokeWidth=3, color=TARGET, clip=True),
        marks("line", rows, places, color=TARGET, clip=True, **line),
        marks("point", rows, told, filled=True, size=60, opacity=1, color=TARGET, clip=True),
        intervals(best, places, "y", color=INK, clip=True),
        marks("point", best, diamond, shape="diamond", filled=True, size=150, fill=INK),
    ]
    if math.isfinite(behavior):
        own = {"y": places["y"]}
        layers.append(marks("rule", [{"value": behavior}], own, strokeDash=[5, 4], color=BEHAVIOR))
    return _framed(layers, f"{name}: value over lam", 300)


def _lam_range(rows: Rows, best: Rows, behavior: float) -> list[float]:
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


# The logged probabilities

MOST_ACTIONS = 14  # that are drawn: those furthest from what is expected
ALL_TOGETHER = f"{100.0 * (1.0 - ERROR):g} % for all, from"  # the level of the intervals
MAY_BE_RIGHT = "below 1, which may be right"  # where the action is impossible in some states
STATES = {"fine": "as said", "few": "too few rows", "above": "off", "below": "off"}
SHADES = {"as said": GOOD, "too few rows": PALE, MAY_BE_RIGHT: SOFT, "off": SHADE}


def calibration_chart(c: LogCalibration) -> Any | None:
    """Said against happened by bin, or the mean of 1{a}/mu by action; None: nothing was checked."""
    if any(b.pairs for b in c.bins):
        return _bins(c)
    return _actions(c) if c.actions else None


def _calibration(expected: Any, rows: Rows, places: dict[str, Any], along: str, height: int) -> Any:
    """Dots with intervals, coloured by their state, over the line of what is expected."""
    present = [state for state in SHADES if state in {row["state"] for row in rows}]
    scale = alt.Scale(domain=present, range=[SHADES[state] for state in present])
    legend = alt.Legend(title=None, orient="bottom")
    found = {**places, "color": alt.Color("state:N", scale=scale, legend=legend)}
    layers = [
        expected,
        intervals(rows, found, along, strokeWidth=3),
        marks("point", rows, found, filled=True, size=60, opacity=1),
    ]
    return _framed(layers, "What the log says, and what was done", height, "state")


def _bins(c: LogCalibration) -> Any:
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
    axis = {"scale": alt.Scale(domain=[0, 1]), "axis": alt.Axis(format="~%", tickCount=5)}
    x = alt.X("said:Q", title="logged probability of an action", **axis)
    y = alt.Y("happened:Q", title="how often it was taken", **axis)
    tooltip = says("state", said="said", happened="happened", lo=ALL_TOGETHER, hi="to")
    ends = [{"said": v, "happened": v} for v in (0.0, 1.0)]
    right = marks("line", ends, {"x": x, "y": y}, strokeDash=[4, 4], color=SOFT, strokeWidth=1)
    return _calibration(right, rows, {"x": x, "y": y, "tooltip": tooltip}, "y", 330)


def _actions(c: LogCalibration) -> Any:
    shown = sorted(c.actions, key=lambda a: -abs(a.mean - a.expected))[:MOST_ACTIONS]
    rows: Rows = [
        {
            "action": "all actions" if a.action is None else f"action {a.action:g}",
            "mean": a.mean / a.expected,
            "lo": a.lo / a.expected,
            "hi": a.hi / a.expected,
            "state": MAY_BE_RIGHT if a.state == "below" and not c.whole else STATES[a.state],
        }
        for a in c.actions
        if a in shown and a.expected > 0.0
    ]
    title = "how often it was done / logged probability"
    x = alt.X("mean:Q", title=title, scale=alt.Scale(zero=False))
    order = [r["action"] for r in rows]
    y = alt.Y("action:N", sort=order, title=None, axis=alt.Axis(grid=False, labelLimit=110))
    tooltip = says("action", "state", mean="mean", lo=ALL_TOGETHER, hi="to")
    one = marks("rule", [{"mean": 1.0}], {"x": x}, strokeDash=[4, 4], color=SOFT)
    return _calibration(one, rows, {"x": x, "y": y, "tooltip": tooltip}, "x", 130 + 20 * len(rows))


def calibration_words(c: LogCalibration) -> str:
    """What to know when looking at it."""
    if any(b.pairs for b in c.bins):
        return "Right probabilities lie on the dashed line."
    if not c.actions:
        return f"The logged probabilities could not be checked: {c.reason or 'no rows'}."
    if c.whole:
        return "Divided by what is expected: right probabilities give 1."
    return "Right probabilities give 1, or less for an action that is impossible in some states."


# Where the visits of a target lie, and where the log's do

MOST_STATES = 14  # that are drawn: those with the largest shares
FURTHEST = 3.0  # powers of two: beyond, colours do not change


def visits_chart(e: Evaluation, name: str) -> Any | None:
    """Bars by state, or a plane of cells; None where nothing is known."""
    v = e.places
    if v is None or name not in v.targets:
        return None
    return _bars(v, name) if v.names else _plane(v, name)


def visits_words(e: Evaluation, name: str) -> str:
    """What to know when looking at it."""
    v = e.places
    if v is None or name not in v.targets:
        return (
            "No picture of visits: no whole episode is small enough to be kept as a sample, or the "
            "equations for the visits have no solution."
        )
    unseen = "States that the log does not have cannot be shown."
    if v.names:
        some = f"The {MOST_STATES} of {len(v.names)} states with most visits. "
        return (some if len(v.names) > MOST_STATES else "") + unseen
    return (
        "A dot holds states that are alike in the features (in their first two principal "
        f"directions); the larger, the more visits. {unseen}"
    )


def _bars(v: Visits, name: str) -> Any:
    mine = v.targets[name]
    order = sorted(range(len(v.names)), key=lambda i: -max(v.log[i], mine[i]))[:MOST_STATES]
    percent = alt.Axis(format="~%", tickCount=5)
    names = [v.names[i] for i in order]
    colours = alt.Scale(domain=["the log", "the target"], range=[LOG, TARGET])
    legend = alt.Legend(title=None, orient="bottom", symbolType="square")
    places = {
        "x": alt.X("share:Q", title="share of discounted visits", axis=percent,
                   scale=alt.Scale(zero=True)),
        "y": alt.Y("state:N", sort=names, title=None, axis=alt.Axis(grid=False, labelLimit=130)),
        "color": alt.Color("whose:N", scale=colours, legend=legend),
        "tooltip": says("state", "whose", share="share of visits"),
    }  # fmt: skip
    layers = []
    for whose, shares, size in (("the log", v.log, 13), ("the target", mine, 5)):
        rows = [{"state": v.names[i], "share": float(shares[i]), "whose": whose} for i in order]
        layers.append(marks("bar", rows, places, size=size))
    title = f"Where {name} goes, and where the log went"
    return _framed(layers, title, 110 + 18 * len(order), "whose")


def _plane(v: Visits, name: str) -> Any:
    rows: Rows = []
    for (x, y), log, mine in zip(v.points.tolist(), v.log, v.targets[name], strict=True):
        ratio = math.log2(max(mine, 1e-300) / max(log, 1e-300))
        clipped = min(max(ratio, -FURTHEST), FURTHEST)
        times = 2.0 ** min(ratio, 60.0)
        rows.append(
            {"x": x, "y": y, "share": float(max(log, mine)), "ratio": clipped, "times": times}
        )
    rows.sort(key=lambda r: r["ratio"])  # what the log lacks is drawn last
    shares = [*(f"{share:.0%}" for share in v.explained), "0%"]
    colours = alt.Scale(domain=[-FURTHEST, 0.0, FURTHEST], range=[TARGET, "#dfe3e8", SHADE],
                        clamp=True, interpolate="lab")  # fmt: skip
    legend = alt.Legend(
        title="visits by the target, per visit by the log", titleLimit=380,
        titleFontWeight="normal", orient="bottom", direction="horizontal", gradientLength=230,
        gradientThickness=10, values=[-3, -2, -1, 0, 1, 2, 3],
        labelExpr="(datum.value < 0 ? '1/' : '') + pow(2, abs(datum.value))",
    )  # fmt: skip
    bare = {"axis": alt.Axis(grid=False, labels=False, ticks=False),
            "scale": alt.Scale(zero=False, padding=10)}  # fmt: skip
    places = {
        "x": alt.X("x:Q", title=f"first direction ({shares[0]} of variance)", **bare),
        "y": alt.Y("y:Q", title=f"second direction ({shares[1]} of variance)", **bare),
        "size": alt.Size("share:Q", scale=alt.Scale(range=[6, 330], zero=True), legend=None),
        "color": alt.Color("ratio:Q", scale=colours, legend=legend),
        "tooltip": says(share="share of visits", times="by the target, per visit by the log"),
    }
    dots = marks("circle", rows, places, opacity=0.9, stroke="white", strokeWidth=0.4)
    return _framed([dots], f"Where {name} goes, against the log", 360)
