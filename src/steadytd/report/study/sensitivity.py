"""A study's figures, part two: how a learner's error depends on its hyper-parameters.

Along x the step size; one panel for each further parameter of the learner's grid, in it one line
per value of that parameter. All other parameters are at their best for each point of a line. Runs
that diverged have no error: above the clip line each line of the panel has a row of squares, the
darker, the more of the seeds diverged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from steadytd.report.figures import data_of, styled
from steadytd.report.palette import INK, PALE, RAMP, SOFT
from steadytd.report.study.axes import LEAST, Shelf, least_note, power_labels, shelf
from steadytd.report.study.figures import heading
from steadytd.studies.analysis.reading import Chapter
from steadytd.studies.analysis.tables import axes_of, short

if TYPE_CHECKING:
    import polars as pl

WIDE, TALL, ROW = 230, 165, 6
REACH = 2.0  # the axis ends at this multiple of the error at w0
NUMBERS = ("error", "stderr", "diverged_share", "seeds")


def grid_axes(chapter: Chapter, algorithm: str) -> tuple[str | None, list[str]]:
    """The parameter along x (alpha, or else the longest axis of numbers), and the others."""
    own = _own(chapter, algorithm)
    axes = axes_of(own.drop(NUMBERS))
    numeric = [n for n, v in axes.items() if not isinstance(v[0], str)]
    along = "alpha" if "alpha" in axes else max(numeric, key=lambda n: len(axes[n]), default=None)
    return along, [name for name in axes if name != along]


def sensitivity_chart(chapter: Chapter, algorithm: str, what: str) -> Any | None:
    """The panels of one learner; None if its grid is a single point."""
    import altair as alt

    own = _own(chapter, algorithm)
    along, others = grid_axes(chapter, algorithm)
    if along is None:
        return None
    seconds: list[str | None] = [*others] or [None]
    longest = max(1 if name is None else own[name].n_unique() for name in seconds)
    every = chapter.configurations["error"].to_list()  # one scale for all learners
    room = max(ROW * longest + 8.0, 34.0)  # for the word "overflowed"
    frame = shelf(every, chapter.start, REACH, TALL, room)
    panels = [_panel(chapter.start, own, frame, along, second, what) for second in seconds]
    best = chapter.of(algorithm)
    if best is None:
        subtitle = "every configuration overflowed in at least one run"
    else:
        subtitle = (
            f"best of {best.configurations}: {best.shown}; error on the grid {best.grid.value:.4g}"
        )
    subtitle += least_note(own["error"])
    if len(others) > 1:
        subtitle += "; in each panel the other parameters are at their best"
    chart = alt.hconcat(*panels, spacing=18).resolve_scale(color="independent")
    return styled(chart.properties(title=heading(algorithm, subtitle)))


def _own(chapter: Chapter, algorithm: str) -> pl.DataFrame:
    import polars as pl

    return chapter.configurations.filter(pl.col("algorithm") == algorithm)


def envelope(own: pl.DataFrame, along: str, second: str | None) -> pl.DataFrame:
    """For each point of each line the best configuration: least error, then least diverged."""
    keys = [along] if second is None else [second, along]
    ordered = own.drop_nulls(keys).sort("error", "diverged_share")
    return ordered.group_by(keys, maintain_order=True).first().sort(keys)


def _panel(
    start: float, own: pl.DataFrame, frame: Shelf, along: str, second: str | None, what: str
) -> Any:
    import altair as alt

    points = envelope(own, along, second)
    values = [] if second is None else points[second].unique().sort().to_list()
    lines = [short(v) for v in values] or [along]
    spots = points[along].to_list()
    power = min(spots) > 0.0 and max(spots) >= 8.0 * min(spots)
    rows = [
        {**row, "x": float(np.log2(row[along])) if power else row[along],
         "along": short(row[along]),
         "line": lines[values.index(row[second])] if second else along}
        for row in points.iter_rows(named=True)
    ]  # fmt: skip
    x = _x(along, sorted({r["x"] for r in rows}), power)
    scale = frame.scale()
    y = alt.Y("y:Q", scale=scale, axis=frame.axis("overflowed"), title=what)
    ramp = alt.Scale(domain=lines, scheme=RAMP)
    legend = None if second is None else alt.Legend(
        title=second, symbolType="stroke", symbolStrokeWidth=3, symbolOpacity=1, labelFontSize=11
    )  # fmt: skip
    colour = alt.Color("line:O", sort=lines, scale=ramp, legend=legend)
    drawn = [row for line in lines for row in _line([r for r in rows if r["line"] == line], frame)]
    squares = [
        {
            "x": r["x"],
            "line": r["line"],
            "y": frame.place(ROW * (lines.index(r["line"]) + 1.0)),
            "share": r["diverged_share"],
        }
        for r in rows
        if r["diverged_share"] > 0.0
    ]
    layers = [
        *_references(start, frame, scale),
        alt.Chart(data_of(drawn))
        .mark_line(strokeWidth=1.8, point=alt.OverlayMarkDef(size=14))
        .encode(x=x, y=y, color=colour, tooltip=_says(along, second)),
    ]
    if squares:
        shade = alt.Opacity("share:Q", scale=alt.Scale(domain=[0, 1], range=[0.2, 1]), legend=None)
        layers.append(
            alt.Chart(data_of(squares))
            .mark_square(size=26)
            .encode(x=x, y=alt.Y("y:Q", scale=scale), color=colour, opacity=shade)
        )
    least = min(rows, key=lambda r: r["error"])
    if least["error"] > frame.clip:
        layers.append(_note("every error is off the scale"))
    else:
        layers.append(
            alt.Chart(data_of([{"x": least["x"], "y": max(least["error"], LEAST)}]))
            .mark_point(size=130, color=INK, strokeWidth=1.5, filled=False)
            .encode(x=x, y=y)
        )
    return alt.layer(*layers).properties(width=WIDE, height=TALL + frame.room)


def _references(start: float, frame: Shelf, scale: Any) -> list[Any]:
    """The error at w0, and the line above which runs have diverged."""
    import altair as alt

    rows = [{"y": start, "dash": 1}, {"y": frame.clip, "dash": 0}]
    dash = alt.StrokeDash("dash:O", legend=None,
                          scale=alt.Scale(domain=[0, 1], range=[[1, 0], [4, 3]]))  # fmt: skip
    rule = alt.Chart(data_of(rows)).mark_rule(color=PALE)
    return [rule.encode(y=alt.Y("y:Q", scale=scale), strokeDash=dash)]


def _says(along: str, second: str | None) -> list[Any]:
    import altair as alt

    first = [alt.Tooltip("line:N", title=second)] if second else []
    error = alt.Tooltip("error:Q", format=".4~g")
    return [*first, alt.Tooltip("along:N", title=along), error]


def _note(text: str) -> Any:
    import altair as alt

    base = alt.Chart(data_of([{"text": text}]))
    place = {"x": alt.value(12), "y": alt.value(TALL * 0.6)}
    mark = base.mark_text(fontSize=11, color=SOFT, align="left")
    return mark.encode(**place, text="text:N")


def _x(along: str, spots: Sequence[float], power: bool) -> Any:
    import altair as alt

    width = (spots[-1] - spots[0]) or 1.0
    scale = alt.Scale(domain=[spots[0] - 0.03 * width, spots[-1] + 0.03 * width], nice=False)
    stride = -(-len(spots) // 7)
    shown = list(spots[::stride])
    labels = power_labels(shown) if power else alt.Undefined
    axis = alt.Axis(values=shown, labelExpr=labels, grid=False, labelFontSize=10, labelAngle=0)
    return alt.X("x:Q", title=along, scale=scale, axis=axis)


def _line(rows: Sequence[Mapping[str, Any]], frame: Shelf) -> list[dict[str, Any]]:
    """A line that runs up to the clip line and ends there; a gap where it stays above."""
    above = [not r["error"] <= frame.clip for r in rows]
    drawn = []
    for i, row in enumerate(rows):
        near = any(not above[j] for j in (i - 1, i + 1) if 0 <= j < len(rows))
        y = min(max(row["error"], LEAST), frame.clip) if not above[i] or near else None
        said = {"along": row["along"], "error": None if above[i] else row["error"]}
        drawn.append({"x": row["x"], "line": row["line"], "y": y, **said})
    return drawn
