"""The paper's figures, and the supplement's panels as the authors drew them beside ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from steadytd.learners import learner as make_learner
from steadytd.report.figures import (
    THOUSANDS,
    Curve,
    as_text,
    channels,
    curve_rows,
    curve_tooltip,
    learning_curves,
    styled,
    tick_axis,
)
from steadytd.report.palette import looks
from steadytd.reproduction.paper import Figure
from steadytd.reproduction.reproduce import Reproduction
from steadytd.reproduction.statements import LIKELY
from steadytd.reproduction.verdict import ZERO
from steadytd.theory.dynamics import best_error

LOWEST = 1e-14  # the lower end of a logarithmic axis: rounding errors of the weights lie below
HIGHEST = 1e8  # the upper end in a panel: higher up nothing is left but what diverges


def figure_chart(figure: Figure, done: Reproduction) -> Any:
    """One figure of the paper."""
    result = done.results[figure.problem]
    curves = _curves(figure, done)
    unstable = [row for row in done.rows if row.name == figure.name and not row.stable]
    finite = np.concatenate([c.errors[np.isfinite(c.errors)] for c in curves])
    best = best_error(result.task)
    high = 2.0 * float(finite.max())
    low = max(LOWEST, min(float(finite.min()), best if best > ZERO else np.inf))
    low /= (high / low) ** 0.05  # room below the lowest curve
    notes = [f"mean and range of {len(result.seeds)} runs"]
    if best <= ZERO:
        notes.append("the best possible error is 0")
    if any(curve.likely for curve in curves):
        share = f"{100 * (LIKELY[1] - LIKELY[0]):.0f} of 100"
        notes.append(f"thin lines: {share} such means lie between them")
    return learning_curves(
        f"{figure.name}: {figure.title}",
        "; ".join(notes),
        result.steps,
        curves,
        log=bool(unstable),
        best=best if best > ZERO else None,
        domain=(low, high) if unstable else None,
    )


def _curves(figure: Figure, done: Reproduction) -> list[Curve]:
    """The curves of a figure; with the likely range of the mean where theory gives one."""
    result, theories = done.results[figure.problem], done.theories[figure.problem]
    texts = [str(x) for x in result.learners]
    curves = []
    for claim in figure.claims:
        text = str(make_learner(claim.learner))
        spread = theories[text].spread
        likely = None
        if spread is not None:
            low, high = np.quantile(spread.means, LIKELY, axis=0, method="nearest")
            likely = spread.steps, low, high
        name = text.partition(":")[0]
        curves.append(Curve(claim.label, result.errors[texts.index(text)], likely, name))
    return curves


def panel_chart(panel: Figure, done: Reproduction) -> Any:
    """One panel of the supplement: on the authors' linear axis, and beside it logarithmic."""
    import altair as alt

    result, curves = done.results[panel.problem], _curves(panel, done)
    assert panel.axis is not None
    every = curve_rows(result.steps, curves, floor=LOWEST)
    rows = [{name: row[name] for name in ("label", "step", "mean")} for row in every]
    finite = [row["mean"] for row in rows]
    high = min(HIGHEST, 2.0 * max(finite))
    low = max(LOWEST, min(finite))
    top = panel.axis[1]
    cut = [{**row, "mean": min(row["mean"], 5.0 * top)} for row in rows]  # still above the panel
    return styled(
        alt.hconcat(
            _panel_half(curves, cut, "as in the supplement", panel.axis, log=False),
            _panel_half(curves, rows, "on a logarithmic axis", (low / 1.5, high), log=True),
            title=alt.TitleParams(f"{panel.name}: {panel.title}", anchor="start", offset=8),
            usermeta={"toggle": "label"},
        )
    )


def _panel_half(
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
    return (
        alt.Chart(as_text(rows))
        .mark_line(strokeWidth=2, clip=True)
        .encode(
            x=alt.X("step:Q", title="step",
                    axis=alt.Axis(labelExpr=THOUSANDS, grid=False, tickCount=5)),
            y=alt.Y("mean:Q", title="error (RMSE)", scale=scale, axis=axis),
            color=colour,
            strokeDash=dash,
            tooltip=curve_tooltip("label")[:3],
        )
        .properties(width=360, height=240, title=alt.TitleParams(title, fontSize=12))
    )  # fmt: skip
