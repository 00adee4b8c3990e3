"""Values with their intervals as pictures: a dot and a bar for every target or learner."""

from __future__ import annotations

import math
from typing import Any, Literal

from steadytd.base.numbers import number
from steadytd.evaluation.result import Evaluation
from steadytd.learners import names as laws
from steadytd.report.evaluation.panels import BEHAVIOR, data, framed, of_target, says
from steadytd.report.evaluation.words import telling
from steadytd.report.palette import INK, SOFT, look

KINDS = {
    "solved": ("solved", "circle"),
    "online": ("online, step by step", "square"),
    "sampling": ("importance sampling", "triangle-up"),
    "action": ("values of actions", "triangle-down"),
}
MARKED, QUIET = INK, SOFT
REACH = 2.0  # times the recommended intervals' span: how far the values' axis looks beyond it


def targets_chart(e: Evaluation) -> Any:
    """The recommended values of the targets, against that of the policy that made the log."""
    named = set(telling(e))
    found = (v for v in e.values.iter_rows(named=True) if v["recommended"])
    rows = [_point(v) for v in found if v["target"] in named]
    logged = e.behavior.value  # shown in any case: it is what they are compared with
    beside = {"lo": None, "hi": None, "at": logged, "recommended": True}
    domain = _domain([*rows, beside] if math.isfinite(logged) else rows, logged)
    return _panel(rows, "target", "What each policy is worth", logged, domain)


def values_chart(e: Evaluation, name: str) -> Any:
    """The values of all learners for one target."""
    rows = [_point(v) for v in of_target(e.values, name).iter_rows(named=True)]
    domain = _domain(rows, e.behavior.value)
    return _panel(rows, "learner", f"{name}: all learners", e.behavior.value, domain)


def _point(v: dict[str, Any]) -> dict[str, Any]:
    """A row of the picture: the dot is at the fixed point, to which the interval belongs."""
    at = v["fixed_point"] if v["fixed_point"] is not None else v["value"]
    ended = v["value"] if v["kind"] == "online" and v["value"] != at else None
    row = {"at": at, "lo": v["lo"], "hi": v["hi"], "ended": ended}
    clean = {k: x if x is not None and math.isfinite(x) else None for k, x in row.items()}
    names = ("target", "learner", "recommended")
    return {**clean, **{n: v[n] for n in names}, "kind": KINDS[v["kind"]][0]}


def _placed(row: dict[str, Any], domain: tuple[float, float]) -> dict[str, Any]:
    """The row with the edge at which it is shown, and its number, where it lies beyond the axis."""
    low, high = domain
    at = row["at"]
    if at is None or low <= at <= high:
        return {**row, "beyond": "", "edge": low}
    return {**row, "beyond": number(at), "edge": low if at < low else high}


def _domain(rows: list[dict[str, Any]], behavior: float) -> tuple[float, float]:
    """What the axis shows: the recommended intervals, and whatever is not far from them."""
    ends = ("at", "lo", "hi")
    best = [r[k] for r in rows if r["recommended"] for k in ends if r[k] is not None]
    if not best:
        best = [r["at"] for r in rows if r["at"] is not None] or [0.0]
    low, high = min(best), max(best)
    span = max(high - low, 1e-3 * max(abs(low), abs(high)), 1e-9)
    every = [r[k] for r in rows for k in ends if r[k] is not None]
    every += [behavior] * math.isfinite(behavior)
    near = [x for x in every if low - REACH * span <= x <= high + REACH * span]
    low, high = min(near, default=low), max(near, default=high)
    pad = 0.06 * max(high - low, span)
    return low - pad, high + pad


def _panel(
    given: list[dict[str, Any]],
    names: str,
    title: str,
    behavior: float,
    domain: tuple[float, float],
) -> Any:
    import altair as alt

    rows = [_placed(row, domain) for row in given]
    order = [row[names] for row in sorted(rows, key=lambda row: not row["recommended"])]
    scale = alt.Scale(domain=list(domain), nice=False, zero=False)
    x = alt.X("at:Q", title="value", scale=scale, axis=alt.Axis(tickCount=6))
    y = alt.Y(f"{names}:N", sort=order, title=None, axis=alt.Axis(labelLimit=130, grid=False))
    learners = list(dict.fromkeys(row["learner"] for row in rows))
    shades = alt.Scale(domain=learners, range=[shade(name) for name in learners])
    colour = alt.Color("learner:N", scale=shades, legend=None)
    shapes = alt.Scale(domain=[a for a, _ in KINDS.values()], range=[b for _, b in KINDS.values()])
    shape = alt.Shape("kind:N", scale=shapes, legend=None)
    told = says(
        names, *(["learner"] if names != "learner" else []), at="value", lo="95 % from", hi="to",
        ended="reached online",
    )  # fmt: skip
    has = [r for r in rows if r["at"] is not None]
    inside = [r for r in has if not r["beyond"]]
    best = [r for r in inside if r["recommended"]]
    layers = []
    if names == "learner":
        band = alt.Chart(data([r for r in best if r["lo"] is not None]))
        layers.append(
            band.mark_rect(color="#e8eef4", clip=True).encode(
                x=alt.X("lo:Q", scale=scale, title="value"), x2="hi:Q"
            )
        )
    bars = alt.Chart(data([r for r in has if r["lo"] is not None]))
    layers.append(
        bars.mark_rule(strokeWidth=3, clip=True).encode(
            x=alt.X("lo:Q", scale=scale, title="value"),
            x2="hi:Q",
            y=y,
            color=colour,
            tooltip=told,
        )
    )
    dots = alt.Chart(data([r for r in inside if not r["recommended"]]))
    layers.append(
        dots.mark_point(size=60, filled=True, opacity=1).encode(
            x=x, y=y, color=colour, shape=shape, tooltip=told
        )
    )
    marked = alt.Chart(data(best)).encode(x=x, y=y, tooltip=told)
    layers.append(
        marked.mark_point(
            shape="diamond", size=150, filled=True, fill=MARKED, stroke="white", opacity=1
        )
    )
    ended = [
        {**_placed({**r, "at": r["ended"]}, domain), "at": r["at"],
         "place": min(max(r["ended"], domain[0]), domain[1])}
        for r in rows
        if r["ended"] is not None
    ]  # fmt: skip
    layers.append(
        alt.Chart(data(ended))
        .mark_point(size=55, strokeWidth=1.6, opacity=1, clip=False)
        .encode(x=alt.X("place:Q", scale=scale, title="value"), y=y, color=colour, tooltip=told)
    )
    beyond = [r for r in has if r["beyond"]]
    sides: list[tuple[int, str, Literal["left", "right"], int]] = [
        (0, "triangle-left", "left", 9),
        (1, "triangle-right", "right", -9),
    ]
    for side, arrow, align, dx in sides:
        for given_rows, solid in ((beyond, True), ([r for r in ended if r["beyond"]], False)):
            there = [r for r in given_rows if r["edge"] == domain[side]]
            outside = alt.Chart(data(there)).encode(
                x=alt.X("edge:Q", scale=scale, title="value"), y=y, tooltip=told
            )
            layers.append(
                outside.mark_text(align=align, dx=dx, dy=-7, fontSize=10, color=QUIET).encode(
                    text="beyond:N"
                )
            )
            if solid:
                point = outside.mark_point(shape=arrow, size=60, filled=True, opacity=1, clip=False)
                layers.append(point.encode(color=colour))
    if domain[0] <= behavior <= domain[1]:
        own = alt.Chart(data([{"at": behavior}]))
        layers.insert(0, own.mark_rule(strokeDash=[5, 4], color=BEHAVIOR).encode(x=x))
    tall = (120 if names == "learner" else 90) + 21 * len(order)
    return framed(layers, title, tall)


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
