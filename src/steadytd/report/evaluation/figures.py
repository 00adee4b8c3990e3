"""The ratios pi/mu of an evaluation, and the value over the penalty, as pictures."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from steadytd.evaluation.result import Evaluation
from steadytd.report.evaluation.panels import DRAWN, TARGET, data, framed, of_target, says
from steadytd.report.evaluation.words import telling
from steadytd.report.figures import edge_signs
from steadytd.report.palette import GOOD, PALE, SHADE, SOFT

TAIL, FLOOR = 0.01, -8.0  # share of the least ratios, and power of two, that share a bar


def overlap_chart(e: Evaluation, name: str) -> Any:
    """How often each ratio pi/mu occurs; ratios of 0 apart. All targets have the same axis."""
    shown = telling(e, DRAWN)
    counts = {n: [c for c in e.histogram_rows if c["target"] == n] for n in (*shown, name)}
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
    return _histogram(rows, name, (low - 3.6 * gap, high + gap / 2), low - 2.5 * gap)


def _bar(lo: float, hi: float, low: float) -> tuple[float, float]:
    """Where a bin is drawn; what lies below `low`, an edge, is in the bin that begins there.

    Edges are powers of two and 1.5 times those.
    """
    half = math.log2(1.5)
    if math.log2(lo) < low:
        return low, low + (half if low == round(low) else 1.0 - half)
    return math.log2(lo), math.log2(hi)


def _ratio_range(counts: list[list[dict[str, Any]]]) -> tuple[float, float]:
    """Powers of two between which all but the tails of every target's ratios lie."""
    lows, highs = [-1.0], [1.0]
    for rows in counts:
        bins = sorted((c["lo"], c["hi"], c["rows"]) for c in rows if c["hi"] > 0.0)
        if bins:
            below = np.cumsum([n for *_, n in bins]) / sum(n for *_, n in bins)
            lows.append(max(math.log2(bins[int(np.searchsorted(below, TAIL))][0]), FLOOR))
            highs.append(math.log2(bins[-1][1]))
    return min(lows), max(highs)


def _histogram(
    rows: list[dict[str, Any]], name: str, domain: tuple[float, float], zero: float
) -> Any:
    import altair as alt

    first, last = math.ceil(zero), math.floor(domain[1])
    step = max(1, round((last - first) / 6))
    whole = range(first, last + 1)
    ticks = [float(t) for t in whole if t % step == 0 and t > zero + step / 2]
    if any(row["kind"] == "ratio 0" for row in rows):
        ticks.insert(0, zero)
    label = (  # halfway to the next tick at most: pages keep five digits of a tick
        f"datum.value < {zero + 0.25} ? '0' : "
        "(datum.value < 0 ? '1/' : '') + format(pow(2, abs(datum.value)), ',')"
    )
    x = alt.X(
        "x:Q",
        title="ratio pi/mu",
        scale=alt.Scale(domain=list(domain), nice=False),
        axis=alt.Axis(values=ticks, labelExpr=label, grid=False, labelOverlap=True),
    )
    y = alt.Y("share:Q", title="share of rows", axis=alt.Axis(format="~%", tickCount=4))
    colour = alt.Color(
        "kind:N",
        scale=alt.Scale(domain=["ratio", "ratio 0"], range=[TARGET, SHADE]),
        legend=None,
    )
    bars = alt.Chart(data(rows)).mark_rect(stroke="white", strokeWidth=0.5)
    one = alt.Chart(data([{"x": 0.0}])).mark_rule(strokeDash=[3, 3], color=SOFT)
    told = [
        alt.Tooltip("ratios:N", title="ratio"),
        alt.Tooltip("share:Q", title="share of rows", format=".2~%"),
    ]
    boxes = bars.encode(x=x, x2="x2:Q", y=y, y2=alt.datum(0.0), color=colour, tooltip=told)
    return framed([boxes, one.encode(x=x)], f"{name}: how often each ratio occurs", 240)


def path_chart(e: Evaluation, name: str) -> Any:
    """The value over the penalty: the unstable range shaded, the chosen penalty marked."""
    import altair as alt

    rows = of_target(e.path, name).to_dicts()
    (s,) = of_target(e.stability, name).to_dicts()
    top = rows[-1]["eta"]
    x_scale = alt.Scale(type="sqrt", domain=[0.0, top], nice=False)
    y_scale = alt.Scale(domain=list(_visible(rows)), nice=False, zero=False)
    x = alt.X(
        "eta:Q",
        title="eta",
        scale=x_scale,
        axis=alt.Axis(grid=False, tickCount=5, format="~g", labelOverlap=True),
    )
    y = alt.Y("value:Q", title="value", scale=y_scale)
    layers = []
    for stable, colour, opacity in ((False, SHADE, 0.16), (None, PALE, 0.12)):
        spans = _spans(rows, stable)
        layers.append(
            alt.Chart(data(spans))
            .mark_rect(opacity=opacity, color=colour)
            .encode(x=alt.X("lo:Q", scale=x_scale, title="eta"), x2="hi:Q")
        )
    if s["eta_pd"] > 0.0 and s["eta_pd"] < top:
        ends = {"eta": s["eta_pd"], "lo": s["eta_pd_lo"], "hi": s["eta_pd_hi"]}
        ends = {k: min(max(v, 0.0), top) for k, v in ends.items() if math.isfinite(v)}
        threshold = alt.Chart(data([ends]))
        if len(ends) == 3:
            layers.append(
                threshold.mark_rect(opacity=0.25, color=PALE).encode(
                    x=alt.X("lo:Q", scale=x_scale, title="eta"), x2="hi:Q"
                )
            )
        layers.append(threshold.mark_rule(color=SOFT).encode(x=x))
    drawn = [
        {**r, "branch": str(r["stable"])}  # a pole lies where stability changes
        for r in rows
        if r["value"] is not None and math.isfinite(r["value"])
    ]
    layers.append(
        alt.Chart(data(drawn))
        .mark_line(clip=True, strokeWidth=2.2, color=TARGET)
        .encode(x=x, y=y, detail="branch:N", tooltip=says(eta="eta", value="value"))
    )
    solved = alt.Chart(data(drawn[:1]))
    layers.append(solved.mark_rule(strokeDash=[5, 4], color=SOFT, clip=True).encode(y=y))
    low, high = y_scale.domain
    signs = {"x": x, "y": y, "color": alt.value(TARGET)}
    layers += edge_signs(drawn, (low, high), ["branch"], **signs)
    chosen = [r for r in drawn if r["eta"] == s["eta"] and low <= r["value"] <= high]
    layers.append(
        alt.Chart(data(chosen[:1]))
        .mark_point(size=100, filled=True, color=GOOD, stroke="white", opacity=1, clip=False)
        .encode(x=x, y=y)
    )
    return framed(layers, f"{name}: value over the penalty eta", 240)


def _visible(rows: list[dict[str, Any]]) -> tuple[float, float]:
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


def _spans(rows: list[dict[str, Any]], stable: bool | None) -> list[dict[str, float]]:
    """The stretches of eta in which stability is `stable`, ending halfway to the next point."""
    spans: list[dict[str, float]] = []
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
