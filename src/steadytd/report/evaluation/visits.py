"""Where the visits of a target lie and where the log's do, as a picture."""

from __future__ import annotations

import math
from typing import Any

from steadytd.evaluation.result import Evaluation
from steadytd.evaluation.visits import Visits
from steadytd.report.evaluation.panels import LOG, TARGET, data, framed, says
from steadytd.report.palette import SHADE

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
    import altair as alt

    mine = v.targets[name]
    order = sorted(range(len(v.names)), key=lambda i: -max(v.log[i], mine[i]))[:MOST_STATES]
    rows = [
        {"state": v.names[i], "share": float(share[i]), "whose": whose}
        for i in order
        for whose, share in (("the log", v.log), ("the target", mine))
    ]
    x = alt.X(
        "share:Q",
        title="share of discounted visits",
        axis=alt.Axis(format="~%", tickCount=5),
        scale=alt.Scale(zero=True),
    )
    y = alt.Y(
        "state:N",
        sort=[v.names[i] for i in order],
        title=None,
        axis=alt.Axis(grid=False, labelLimit=130),
    )
    colour = alt.Color(
        "whose:N",
        scale=alt.Scale(domain=["the log", "the target"], range=[LOG, TARGET]),
        legend=alt.Legend(title=None, orient="bottom", symbolType="square"),
    )
    layers = [
        alt.Chart(data([r for r in rows if r["whose"] == whose]))
        .mark_bar(size=size)
        .encode(x=x, y=y, color=colour, tooltip=says("state", "whose", share="share of visits"))
        for whose, size in (("the log", 13), ("the target", 5))
    ]
    return framed(
        layers, f"Where {name} goes, and where the log went", 110 + 18 * len(order), "whose"
    )


def _plane(v: Visits, name: str) -> Any:
    import altair as alt

    rows = []
    for (x, y), log, mine in zip(v.points.tolist(), v.log, v.targets[name], strict=True):
        ratio = math.log2(max(mine, 1e-300) / max(log, 1e-300))
        rows.append(
            {
                "x": x,
                "y": y,
                "share": float(max(log, mine)),
                "ratio": min(max(ratio, -FURTHEST), FURTHEST),
                "times": 2.0 ** min(ratio, 60.0),
            }
        )
    rows.sort(key=lambda r: r["ratio"] or 0.0)  # what the log lacks is drawn last
    said = [f"{share:.0%}" for share in v.explained]
    titles = [
        f"{which} direction ({share} of variance)"
        for which, share in zip(("first", "second"), [*said, "0%"][:2], strict=True)
    ]
    bare = alt.Axis(grid=False, labels=False, ticks=False)
    scale = alt.Scale(
        domain=[-FURTHEST, 0.0, FURTHEST],
        range=[TARGET, "#dfe3e8", SHADE],
        clamp=True,
        interpolate="lab",
    )
    legend = alt.Legend(
        title="visits by the target, per visit by the log",
        orient="bottom",
        direction="horizontal",
        gradientLength=230,
        gradientThickness=10,
        titleLimit=380,
        titleFontWeight="normal",
        values=[-3, -2, -1, 0, 1, 2, 3],
        labelExpr="(datum.value < 0 ? '1/' : '') + pow(2, abs(datum.value))",
    )
    shown = alt.Chart(data(rows)).mark_circle(opacity=0.9, stroke="white", strokeWidth=0.4)
    dots = shown.encode(
        x=alt.X("x:Q", title=titles[0], axis=bare, scale=alt.Scale(zero=False, padding=10)),
        y=alt.Y("y:Q", title=titles[1], axis=bare, scale=alt.Scale(zero=False, padding=10)),
        size=alt.Size("share:Q", scale=alt.Scale(range=[6, 330], zero=True), legend=None),
        color=alt.Color("ratio:Q", scale=scale, legend=legend),
        tooltip=says(share="share of visits", times="by the target, per visit by the log"),
    )
    return framed([dots], f"Where {name} goes, against the log", 360)
