"""A study's figures, part one: learning curves, and the best configurations side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.report.figures import (
    POINTS,
    THOUSANDS,
    channels,
    curve_tooltip,
    data_of,
    styled,
    tick_axis,
)
from steadytd.report.palette import INK, SOFT, look
from steadytd.report.study.axes import (
    LEAST,
    error_axis,
    error_scale,
    interval_ends,
    interval_note,
    least_note,
    share_of,
    spread,
    value_at,
)
from steadytd.studies.analysis.penalty import plain_and_penalised
from steadytd.studies.analysis.reading import Chapter
from steadytd.studies.analysis.tables import half_width

LINES = 12  # more cannot be told apart
WIDE, TALL = 620, 380
GAP = 15.0  # pixels between two labels


def heading(title: str, subtitle: str | list[str]) -> Any:
    """A title over a smaller line or two."""
    import altair as alt

    return alt.TitleParams(title, subtitle=subtitle, anchor="start", offset=12)


def always(chapter: Chapter) -> list[str]:
    """Drawn even if twelve others are better: a learner without and with a penalty."""
    return [name for pair in plain_and_penalised(chapter) for name in pair]


def curves_shown(chapter: Chapter) -> list[str]:
    """The learners whose curves are drawn: the best, and those of `always`."""
    names = [b.algorithm for b in chapter.best]
    wanted = [name for name in always(chapter) if name in names]
    first = [n for n in names if n not in wanted][: LINES - len(wanted)]
    return [name for name in names if name in first or name in wanted]


def curves_drawn(chapter: Chapter) -> list[str]:
    """Those of them of which no run overflowed."""
    return [n for n in curves_shown(chapter) if np.isfinite(chapter.curves[n]).all()]


def curves_chart(chapter: Chapter, what: str) -> Any | None:
    """Error over steps of the best configurations: mean and 95 % band over the seeds."""
    import altair as alt

    names = curves_drawn(chapter)
    if not names:
        return None
    early = chapter.task.per_decade > 0  # then steps are drawn on a logarithmic axis, from 1 on
    first = 1 if early else 0
    chosen = np.unique(np.linspace(first, len(chapter.points) - 1, POINTS).astype(int))
    curves = {name: chapter.curves[name][:, chosen] for name in names}
    steps = chapter.points[chosen]
    log, low, high = error_axis(np.concatenate([found.mean(axis=0) for found in curves.values()]))
    bands = {name: _band(found, log) for name, found in curves.items()}
    rows = [
        {"learner": n, "step": int(t), "low": a, "mean": b, "high": c}
        for n, band in bands.items()
        for t, (a, b, c) in zip(steps, np.maximum(band.T, LEAST).tolist(), strict=True)
    ]
    y_scale = alt.Scale(type="log" if log else "linear", domain=[low, high], nice=False)
    x_scale = alt.Scale(
        type="log" if early else "linear", domain=[int(steps[0]), int(steps[-1])], nice=False
    )
    marks = alt.Axis(labelExpr=THOUSANDS, grid=False, tickCount=6)
    if early:
        decades = range(1 + int(np.log10(steps[-1])))
        marks = alt.Axis(labelExpr=THOUSANDS, grid=False, values=[10**k for k in decades])
    x = alt.X("step:Q", title="step", scale=x_scale, axis=marks)
    y_axis = tick_axis(log, low, high)
    y = alt.Y("mean:Q", title=what, scale=y_scale, axis=y_axis)
    colour, dash = shades(names)
    base = alt.Chart(data_of(rows))
    band = base.mark_area(opacity=0.16, clip=True).encode(
        x=x, y=alt.Y("low:Q", scale=y_scale), y2="high:Q", color=colour
    )
    says = curve_tooltip("learner", "95 % from", "to")
    line = base.mark_line(strokeWidth=2, clip=True).encode(
        x=x, y=y, color=colour, strokeDash=dash, tooltip=says
    )
    ends = {name: float(max(bands[name][1, -1], LEAST)) for name in names}
    layers = [
        band,
        line,
        *_labels(ends, (int(steps[0]), int(steps[-1])), (log, low, high), colour, x_scale, y_scale),
    ]
    seeds = len(next(iter(chapter.curves.values())))
    where = "fresh seeds" if chapter.fresh else "the grid's seeds"
    note = f"mean over {seeds} {where}, {interval_note(log)}"
    note += least_note(band[1].min() for band in bands.values())
    title = heading(f"{chapter.label}: each learner at its best", note)
    size = {"width": WIDE, "height": TALL, "title": title}
    return styled(alt.layer(*layers).properties(**size, usermeta={"toggle": "learner"}))


def shades(names: Sequence[str]) -> tuple[Any, Any]:
    """Colour and dash of learners; no legend, since their names stand beside them."""
    colour, dash = channels("learner", {name: look(name) for name in names})
    colour.legend, dash.legend = None, None
    return colour, dash


def _band(errors: Floats, log: bool) -> Floats:
    """Low, mean, high [3, points]."""
    mean = errors.mean(axis=0)
    half = np.array([half_width(column) for column in errors.T]) if len(errors) > 1 else 0.0 * mean
    low, high = interval_ends(mean, half, log)
    return np.stack([low, mean, high])


def _labels(
    ends: Mapping[str, float],
    span: tuple[int, int],
    axis: tuple[bool, float, float],
    colour: Any,
    x_scale: Any,
    y_scale: Any,
) -> list[Any]:
    """The learners' names at the ends of their lines, moved apart, each tied to its line."""
    import altair as alt

    log, low, high = axis
    ordered = sorted(ends, key=lambda name: -ends[name])
    share = [share_of(ends[name], log, low, high) for name in ordered]
    places = spread([TALL * (1.0 - s) for s in share], GAP, float(TALL))
    rows = [
        {
            "learner": name,
            "x": span[1],
            "x1": value_at(1.0 + 18.0 / WIDE, span[0] > 0, *span),
            "x2": value_at(1.0 + 23.0 / WIDE, span[0] > 0, *span),
            "y": min(max(ends[name], low), high),
            "y1": value_at(1.0 - place / TALL, log, low, high),
        }
        for name, place in zip(ordered, places, strict=True)
    ]
    base = alt.Chart(data_of(rows)).encode(color=colour)
    y1 = alt.Y("y1:Q", scale=y_scale)
    x, x1, x2 = (alt.X(f"{k}:Q", scale=x_scale) for k in ("x", "x1", "x2"))
    tie = base.mark_rule(strokeWidth=1, opacity=0.6).encode(
        x=x, x2="x1:Q", y=alt.Y("y:Q", scale=y_scale), y2="y1:Q"
    )
    text = base.mark_text(align="left", baseline="middle", fontSize=12).encode(
        x=x2, y=y1, text="learner:N"
    )
    anchor = base.mark_point(opacity=0).encode(x=x1, y=y1)
    layers = {"paper_ties": tie, "paper_anchors": anchor, "paper_names": text}
    return [layer.properties(name=name) for name, layer in layers.items()]


def best_chart(chapter: Chapter, what: str, reference: str | None) -> Any | None:
    """Left: error at the best configuration, on the grid and on fresh seeds. Right: differences."""
    import altair as alt

    shown = [b for b in chapter.best if np.isfinite(b.measured.value)]
    if not shown:
        return None
    names = [b.algorithm for b in shown]
    rows: list[dict[str, Any]] = []
    for b in shown:
        values = np.array(list(chapter.errors[b.algorithm].values()))
        half = half_width(values) if len(values) > 1 else 0.0
        rows.append(
            {
                "learner": b.algorithm,
                "grid": b.grid.value if b.fresh and np.isfinite(b.grid.value) else None,
                "mean": b.measured.value,
                "low": max(b.measured.value - half, LEAST),
                "high": b.measured.value + half,
            }
        )
    values = np.array([r[k] for r in rows for k in ("grid", "mean", "low", "high") if r[k]])
    log, low, high = error_axis(values)
    low = max(low, 1e-2 * min(r["mean"] for r in rows)) if log else low
    scale = error_scale(log, low, high)
    colour, _ = shades(names)
    y = alt.Y("learner:N", sort=names, title=None, axis=alt.Axis(labelFontSize=12, grid=True))
    base = alt.Chart(data_of(rows))
    ends = tick_axis(log, low, high)
    x = alt.X("mean:Q", scale=scale, title=what, axis=ends)
    says = _says({"mean": "error", "low": "95 % from", "high": "to", "grid": "on the grid"})
    bar = base.mark_rule(strokeWidth=2, clip=True).encode(
        x=alt.X("low:Q", scale=scale), x2="high:Q", y=y, color=colour, tooltip=says
    )
    dot = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=x, y=y, color=colour, tooltip=says
    )
    layers = [bar, dot]
    if chapter.fresh:
        hollow = base.mark_point(filled=False, size=70, strokeWidth=1.4).encode(
            x=alt.X("grid:Q", scale=scale), y=y, color=colour, tooltip=says
        )
        layers.append(hollow)
    tall = 24 * len(names) + 10
    side = alt.TitleParams("error and 95 % interval", fontSize=12, color=SOFT, anchor="start")
    parts = [alt.layer(*layers).properties(width=330, height=tall, title=side)]
    if reference is not None and len(names) > 1:
        parts.append(_differences(chapter, names, reference, colour, tall))
    note = "filled: fresh seeds; hollow: the grid, where the configuration was chosen"
    title = heading(
        f"{chapter.label}: best configurations compared",
        note if chapter.fresh else "on the grid's seeds: there is no whole rerun on fresh ones",
    )
    whole = alt.hconcat(*parts, spacing=24).properties(title=title)
    return styled(whole.properties(usermeta={"toggle": "learner"}))


def _says(fields: Mapping[str, str]) -> list[Any]:
    """A tooltip: the learner, and fields by their titles."""
    import altair as alt

    numbers = (alt.Tooltip(f"{key}:Q", title=text, format=".4~g") for key, text in fields.items())
    return ["learner:N", *numbers]


def _differences(
    chapter: Chapter, names: Sequence[str], reference: str, colour: Any, tall: int
) -> Any:
    import altair as alt

    rows = [
        {"learner": p.learner, "difference": p.difference, "low": p.low, "high": p.high}
        for p in chapter.against(reference)
        if p.low is not None and p.learner in names
    ]
    y = alt.Y("learner:N", sort=list(names), title=None, scale=alt.Scale(domain=list(names)),
              axis=alt.Axis(labelFontSize=12, grid=True))  # fmt: skip
    base = alt.Chart(data_of(rows or [{"learner": names[0]}]))
    x = alt.X("difference:Q", title="difference of the errors",
              axis=alt.Axis(tickCount=5), scale=alt.Scale(zero=True))  # fmt: skip
    zero = alt.Chart(data_of([{"zero": 0.0}])).mark_rule(color=INK)
    says = _says({"difference": f"minus {reference}", "low": "95 % from", "high": "to"})
    layers = [
        zero.encode(x="zero:Q"),
        base.mark_rule(strokeWidth=2).encode(
            x="low:Q", x2="high:Q", y=y, color=colour, tooltip=says
        ),
        base.mark_point(filled=True, size=70, opacity=1).encode(
            x=x, y=y, color=colour, tooltip=says
        ),
    ]
    side = alt.TitleParams(
        f"paired difference to {reference}, 95 % interval", fontSize=12, color=SOFT, anchor="start"
    )
    return alt.layer(*layers).properties(width=300, height=tall, title=side)
