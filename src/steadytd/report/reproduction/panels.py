"""A panel of the supplement, as the authors drew it and logarithmic beside it."""

from __future__ import annotations

from typing import Any

from steadytd.base.arrays import Longs
from steadytd.report.figures import (
    THOUSANDS,
    Curve,
    as_text,
    channels,
    curve_rows,
    curve_tooltip,
    edge_signs,
    styled,
    tick_axis,
)
from steadytd.report.palette import looks

LOWEST = 1e-14  # the lower end of a logarithmic axis: rounding errors of the weights lie below
HIGHEST = 1e8  # the upper end in a panel: higher up nothing is left but what diverges


def panel(title: str, steps: Longs, curves: list[Curve], axis: tuple[float, float]) -> Any:
    """Error over steps on the authors' linear axis, and on a logarithmic one."""
    import altair as alt

    every = curve_rows(steps, curves, floor=LOWEST)
    rows = [{name: row[name] for name in ("label", "step", "mean")} for row in every]
    finite = [row["mean"] for row in rows]
    high = min(HIGHEST, 2.0 * max(finite))
    low = max(LOWEST, min(finite))
    cut = [{**row, "mean": min(row["mean"], 5.0 * axis[1])} for row in rows]  # still above it
    return styled(
        alt.hconcat(
            _half(curves, cut, "as in the supplement", axis, log=False),
            _half(curves, rows, "on a logarithmic axis", (low / 1.5, high), log=True),
            title=alt.TitleParams(title, anchor="start", offset=8),
            usermeta={"toggle": "label"},
        )
    )


def _half(
    curves: list[Curve],
    rows: list[dict[str, Any]],
    title: str,
    domain: tuple[float, float],
    log: bool,
) -> Any:
    import altair as alt

    colour, dash = channels("label", looks({c.label: c.learner for c in curves}))
    axis = tick_axis(True, *domain) if log else alt.Axis(tickCount=6)
    scale = alt.Scale(type="log" if log else "linear", domain=list(domain), nice=False)
    steps = alt.Axis(labelExpr=THOUSANDS, grid=False, tickCount=5)
    x = alt.X("step:Q", title="step", axis=steps)
    y = alt.Y("mean:Q", title="error (RMSE)", scale=scale, axis=axis)
    line = alt.Chart(as_text(rows)).mark_line(strokeWidth=2, clip=True)
    said = curve_tooltip("label")[:3]
    layers = [line.encode(x=x, y=y, color=colour, strokeDash=dash, tooltip=said)]
    layers += edge_signs(rows, domain, ["label"], x=x, y=y, color=colour)
    heading = alt.TitleParams(title, fontSize=12)
    return alt.layer(*layers).properties(width=360, height=240, title=heading)
