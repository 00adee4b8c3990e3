"""Learning curves of a run: the mean over its seeds, with a band, one line per learner."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import stdtrit

from steadytd.report.figures import (
    POINTS,
    THOUSANDS,
    as_text,
    channels,
    curve_tooltip,
    edge_signs,
    tick_axis,
)
from steadytd.report.palette import looks
from steadytd.report.run.words import labels
from steadytd.report.study.axes import (
    LEAST,
    error_axis,
    interval_ends,
    interval_note,
    least_note,
)
from steadytd.runs.result import Result, standard_errors

WIDE, TALL = 620, 360
REACH = 1e4  # times the error at the start: what grows further leaves the picture at its top


def run_chart(r: Result) -> Any:
    """Error over steps; a line ends where a run of it overflows, with a sign at the top.

    The band is the 95 % interval of the mean (with one seed there is none).
    """
    import altair as alt

    names = labels(r)
    chosen = np.unique(np.linspace(0, len(r.steps) - 1, POINTS).astype(int))
    points = _rows(r, names, chosen)
    rows = [{**p, "mean": max(p["mean"], LEAST)} for p in points if np.isfinite(p["mean"])]
    top = REACH * max(row["mean"] for row in rows if row["step"] == 0)
    means = np.array([row["mean"] for row in rows])
    log, low, high = error_axis(means[means <= top])
    ends = interval_ends(means, np.array([row.pop("half") for row in rows]), log)
    for row, below, above in zip(rows, *map(np.ndarray.tolist, ends), strict=True):
        inside = row["mean"] <= high  # what is out of the picture has no band in it
        row["low"] = max(below, low) if inside else row["mean"]
        row["high"] = min(above, high) if inside else row["mean"]
    laws = [learner.name for learner in r.learners]
    found = looks(dict(zip(names, laws, strict=True)))
    colour, dash = channels("learner", found, columns=1 if len(names) < 5 else 2)
    scale = alt.Scale(type="log" if log else "linear", domain=[low, high], nice=False)
    x = alt.X("step:Q", title="step", axis=alt.Axis(labelExpr=THOUSANDS, grid=False, tickCount=6),
              scale=alt.Scale(domain=[0, int(r.steps[-1])], nice=False))  # fmt: skip
    y = alt.Y("mean:Q", title="error (RMSE)", scale=scale, axis=tick_axis(log, low, high))
    base = alt.Chart(as_text(rows))
    band = base.mark_area(opacity=0.16, clip=True).encode(
        x=x, y=alt.Y("low:Q", scale=scale, title="error (RMSE)"), y2="high:Q", color=colour
    )
    line = base.mark_line(strokeWidth=2, clip=True).encode(
        x=x, y=y, color=colour, strokeDash=dash, tooltip=curve_tooltip("learner", "low", "high")
    )
    many = len(r.seeds) > 1
    note = f"mean of {len(r.seeds)} runs, {interval_note(log)}" if many else "one run"
    note += least_note(p["mean"] for p in points)
    heading = alt.TitleParams(r.problem.name, subtitle=note, anchor="start", offset=12)
    layers = [band, line] if many else [line]
    layers += edge_signs(points, (max(low, LEAST), high), ["learner"], x=x, y=y, color=colour)
    return alt.layer(*layers).properties(
        width=WIDE, height=TALL, title=heading, usermeta={"toggle": "learner"}
    )


def _rows(r: Result, names: list[str], chosen: Any) -> list[dict[str, Any]]:
    """The points of all lines: learner, step, mean, half the width of its interval.

    The last one of a line of which a run overflows is infinite.
    """
    seeds = len(r.seeds)
    quantile = float(stdtrit(seeds - 1, 0.975)) if seeds > 1 else 0.0
    rows: list[dict[str, Any]] = []
    for name, errors in zip(names, r.errors, strict=True):
        shown = np.ascontiguousarray(errors[:, chosen].T)  # [point, seed]
        finite = np.isfinite(shown).all(axis=1)
        last = len(finite) if finite.all() else int(np.argmin(finite))
        spread = standard_errors(shown[:last])
        for i, values, stderr in zip(chosen[:last], shown[:last], spread, strict=True):
            mean = float((values / seeds).sum())
            point = {"mean": mean, "half": quantile * (stderr or 0.0)}
            rows.append({"learner": name, "step": int(r.steps[i]), **point})
        if last < len(finite):
            rows.append({"learner": name, "step": int(r.steps[chosen[last]]), "mean": np.inf})
    return rows
