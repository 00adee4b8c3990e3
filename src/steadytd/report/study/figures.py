"""A study's figures: learning curves, the best configurations, every configuration, sensitivity.

Runs that overflowed have no error. Where configurations are drawn they lie on a shelf above the
axis of errors, and so do errors that are off its scale.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from steadytd.base.errors import listed
from steadytd.base.numbers import count, number, percent
from steadytd.report.figures import (
    DECADES,
    LEAST,
    Axis,
    alt,
    channels,
    chosen_points,
    data_of,
    dotted,
    error_axis,
    heading,
    interval_ends,
    interval_note,
    least_note,
    shapes,
    styled,
    tick_axis,
)
from steadytd.report.figures import curves_chart as error_over_steps
from steadytd.report.palette import INK, PALE, RAMP, SHADE, SOFT, look
from steadytd.studies.analysis.penalty import plain_and_penalised
from steadytd.studies.analysis.reading import Chapter
from steadytd.studies.analysis.tables import axes_of, half_width, power_of_two, short

if TYPE_CHECKING:
    import polars as pl

LINES = 12  # more cannot be told apart


def shades(names: Sequence[str]) -> Any:
    """The colours of learners whose names stand beside their marks: there is no legend."""
    colour, _ = channels("learner", {name: look(name) for name in names})
    colour.legend = None
    return colour


# Learning curves


def curves_shown(chapter: Chapter) -> list[str]:
    """The learners whose curves are drawn: the best, and always one without and with a penalty."""
    names = [b.algorithm for b in chapter.best]
    always = [name for pair in plain_and_penalised(chapter) for name in pair if name in names]
    first = [n for n in names if n not in always][: LINES - len(always)]
    return [name for name in names if name in first or name in always]


def curves_drawn(chapter: Chapter, chosen: Iterable[str] | None = None) -> list[str]:
    """Those of them, or of the chosen ones, of which no run overflowed."""
    names = curves_shown(chapter) if chosen is None else [x for x in chosen if x in chapter.curves]
    return [n for n in names if np.isfinite(chapter.curves[n]).all()]


def curves_chart(chapter: Chapter, what: str, lines: Mapping[str, str] | None = None) -> Any | None:
    """Error over steps of the best configurations: mean and 95 % band over the seeds.

    `lines` are the learners that are drawn, each with its name in the picture.
    """
    names = curves_drawn(chapter, lines)
    if not names:
        return None
    shown = lines or {name: name for name in names}
    early = chapter.task.per_decade > 0  # then steps are drawn on a logarithmic axis, from 1 on
    chosen = chosen_points(chapter.points, first=1 if early else 0)
    curves = {name: chapter.curves[name][:, chosen] for name in names}
    means = {name: found.mean(axis=0) for name, found in curves.items()}
    axis = error_axis(np.concatenate(list(means.values())))
    rows: list[dict[str, Any]] = []
    for name, errors in curves.items():
        many = len(errors) > 1
        half = np.array([half_width(x) if many else 0.0 for x in errors.T])
        low, high = interval_ends(means[name], half, axis.log)
        band = np.maximum(np.stack([low, means[name], high]), LEAST)
        for step, (a, b, c) in zip(chapter.points[chosen], band.T.tolist(), strict=True):
            place = {"learner": shown[name], "step": int(step)}
            rows.append({**place, "low": a, "mean": b, "high": c})
    seeds = len(next(iter(chapter.curves.values())))
    seen = count(seeds, "fresh seed" if chapter.fresh else "seed")
    note = f"mean over {seen}, {interval_note(axis.log)}"
    note += least_note(float(mean.min()) for mean in means.values())
    return styled(
        error_over_steps(
            rows,
            {shown[name]: look(name) for name in names},
            axis,
            heading(f"{chapter.label}: each learner at its best", note),
            what=what,
            band=("95 % from", "to"),
            log_steps=early,
            size=(620, 380),
        )
    )


# The best configurations


def best_chart(chapter: Chapter, what: str, reference: str | None) -> Any | None:
    """Left: error at the best configuration, on the grid and on fresh seeds. Right: differences."""
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
    axis = error_axis(
        np.array([r[k] for r in rows for k in ("grid", "mean", "low", "high") if r[k]])
    )
    if axis.log:
        axis = axis._replace(low=max(axis.low, 1e-2 * min(r["mean"] for r in rows)))
    colour, scale = shades(names), axis.scale()
    x = alt.X("mean:Q", scale=scale, title=what, axis=tick_axis(axis))
    titles = {"mean": "error", "low": "95 % from", "high": "to", "grid": "on the grid"}
    layers = _with_intervals(rows, names, x, colour, titles)
    if chapter.fresh:
        hollow = alt.Chart(data_of(rows)).mark_point(filled=False, size=70, strokeWidth=1.4)
        layers.append(
            hollow.encode(x=alt.X("grid:Q", scale=scale), y=_by_name(names), color=colour)
        )
    sides = [(layers, "error and 95 % interval")]
    if reference is not None and len(names) > 1:
        differences = [
            {"learner": p.learner, "mean": p.difference, "low": p.low, "high": p.high}
            for p in chapter.against(reference)
            if p.low is not None and p.learner in names
        ] or [{"learner": names[0]}]
        zero = alt.Chart(data_of([{"zero": 0.0}])).mark_rule(color=INK).encode(x="zero:Q")
        x = alt.X("mean:Q", title="difference of the errors", axis=alt.Axis(tickCount=5),
                  scale=alt.Scale(zero=True))  # fmt: skip
        titles = {"mean": f"minus {reference}", "low": "95 % from", "high": "to"}
        title = f"paired difference to {reference}, 95 % interval"
        sides.append(([zero, *_with_intervals(differences, names, x, colour, titles)], title))
    parts = [
        alt.layer(*found).properties(
            width=320,
            height=24 * len(names) + 10,
            title=alt.TitleParams(title, fontSize=12, color=SOFT, anchor="start"),
        )
        for found, title in sides
    ]
    note = "filled: fresh seeds; hollow: the grid, where the configuration was chosen"
    title = heading(
        f"{chapter.label}: best configurations compared",
        note if chapter.fresh else "on the grid's seeds: there is no whole rerun on fresh ones",
    )
    whole = alt.hconcat(*parts, spacing=24).properties(title=title)
    return styled(whole.properties(usermeta={"toggle": "learner"}))


def _by_name(names: Sequence[str]) -> Any:
    return alt.Y("learner:N", sort=list(names), title=None, scale=alt.Scale(domain=list(names)),
                 axis=alt.Axis(labelFontSize=12, grid=True))  # fmt: skip


def _with_intervals(
    rows: Sequence[dict[str, Any]], names: Sequence[str], x: Any, colour: Any, titles: Any
) -> list[Any]:
    """A dot for each learner's number, and a rule from the lower to the upper end."""
    numbers = (alt.Tooltip(f"{k}:Q", title=v, format=".4~g") for k, v in titles.items())
    says = ["learner:N", *numbers]
    base = alt.Chart(data_of(rows)).encode(y=_by_name(names), color=colour, tooltip=says)
    low = alt.X("low:Q", scale=x["scale"])
    return [
        base.mark_rule(strokeWidth=2, clip=True).encode(x=low, x2="high:Q"),
        base.mark_point(filled=True, size=70, opacity=1).encode(x=x),
    ]


# Who leads on which problem

MOST_NAMED = 3  # learners of a tie
SHARES = (1e-4, 10.0)  # of the error at w0, beyond which dots lie at the edge


def leaders_text(chapters: Sequence[Chapter], what: str) -> str:
    """Who has the least error on which problem; learners that cannot be told apart share it."""
    places: dict[str, list[str]] = {}
    for chapter in chapters:
        group = chapter.groups[0] if chapter.groups else []
        first = next((b for b in chapter.best if b.algorithm in group), None)
        known = first is not None and np.isfinite(first.measured.value)
        names = group if len(group) <= MOST_NAMED else [*group[:MOST_NAMED], "others"]
        places.setdefault(listed(names) if known else "no learner", []).append(chapter.label)
    found = "; ".join(f"{names} on {listed(labels)}" for names, labels in places.items())
    return f"Least {what}: {found}."


def leaders_chart(chapters: Sequence[Chapter], what: str) -> Any | None:
    """The error of every learner at its best, as a share of that at w0: one line per problem."""
    rows: list[dict[str, Any]] = [
        {
            "problem": chapter.label,
            "learner": b.algorithm,
            "share": b.measured.value / chapter.start,
            "drawn": float(np.clip(b.measured.value / chapter.start, *SHARES)),
            "error": b.measured.value,
            "settings": b.settings,
        }
        for chapter in chapters
        for b in chapter.best
        if np.isfinite(b.measured.value) and chapter.start > 0.0
    ]
    if not rows:
        return None
    axis = error_axis(np.array([row["drawn"] for row in rows]))
    found = {name: look(name) for name in dict.fromkeys(row["learner"] for row in rows)}
    colour, _ = channels("learner", found, columns=5)
    order = list(dict.fromkeys(row["problem"] for row in rows))
    x = alt.X("drawn:Q", scale=axis.scale(), title="share of the error at w0",
              axis=tick_axis(axis))  # fmt: skip
    y = alt.Y("problem:N", sort=order, title=None,
              axis=alt.Axis(labelFontSize=12, grid=True, labelLimit=230))  # fmt: skip
    says = ["problem:N", "learner:N", "settings:N", alt.Tooltip("error:Q", format=".4~g"),
            alt.Tooltip("share:Q", title="of that at w0", format=".3~g")]  # fmt: skip
    dots = alt.Chart(data_of(rows)).mark_point(filled=True, size=95, opacity=0.95)
    one = alt.Chart(data_of([{"one": 1.0}])).mark_rule(color=PALE, strokeDash=[4, 3], clip=True)
    layers = [
        dots.encode(x=x, y=y, color=dotted(colour), shape=shapes("learner", found), tooltip=says),
        one.encode(x=alt.X("one:Q", scale=axis.scale())),
    ]
    notes = ["left is better; dashed: no better than w0"]
    if any(row["share"] != row["drawn"] for row in rows):
        notes.append(f"shares below {SHARES[0]:g} and above {SHARES[1]:g} are drawn at the edge")
    title = heading("Each learner at its best, on every problem", notes)
    size = {"width": 620, "height": 42 * len(order) + 40, "title": title}
    return styled(alt.layer(*layers).properties(**size, usermeta={"toggle": "learner"}))


# Axes with a shelf


@dataclass(frozen=True)
class Shelf:
    """A vertical axis of errors with room above it, in pixels, for runs that have no error."""

    axis: Axis
    height: float
    room: float

    @property
    def clip(self) -> float:
        """The largest error on the axis."""
        return self.axis.high

    def place(self, pixels: float) -> float:
        """The value that lies so many pixels above the clip line."""
        return self.axis.at(1.0 + pixels / self.height)

    def encoded(self, what: str, *shelves: str) -> Any:
        """Altair's y; in place of numbers, the room above has the shelves' names."""
        style = {"labelFontSize": 11, "labelOverlap": "greedy", "labelSeparation": 1}
        axis = tick_axis(self.axis, **style)
        label = str(axis.labelExpr)
        high = self.room / max(len(shelves), 1)
        for i, name in enumerate(shelves):
            here = f"datum.value > {self.place((i + 0.01) * high)}"
            label = f"{here} ? {json.dumps(name)} : {label}"
            axis.values.append(self.place((i + 0.5) * high))
        axis.labelExpr = label
        axis.gridOpacity = alt.ExprRef(f"datum.value > {self.clip * (1 + 1e-9)} ? 0 : 1")
        return alt.Y("y:Q", title=what, axis=axis, scale=self.scale())

    def scale(self) -> Any:
        """Altair's scale."""
        return self.axis._replace(high=self.place(self.room)).scale()


def shelf(errors: Sequence[float], start: float, reach: float, height: float, room: float) -> Shelf:
    """An axis for these errors that reaches `reach` times the error at w0, if need be."""
    found = np.array([e for e in errors if np.isfinite(e)] or [start or 1.0])
    low = max(LEAST, float(found.min()))
    clip = max(min(float(found.max()), reach * start), 1.5 * low, 1.05 * start)
    log = clip > DECADES * low
    bottom = low / (clip / low) ** 0.06 if log else max(0.0, low - 0.08 * (clip - low))
    return Shelf(Axis(log, bottom, clip), height, room)


# Every configuration

BAND = 46.0  # pixels of a shelf
FAR = 20.0  # errors beyond this multiple of the error at w0 go to a shelf of their own
MOST_TOLD = 20_000  # configurations whose settings a page can hold
GOLDEN = 0.6180339887498949  # multiples of it, modulo 1, are spread evenly


def overview_chart(chapter: Chapter, what: str) -> Any:
    """One column per learner, the best first; what overflowed lies on a shelf at the top."""
    import polars as pl

    names = [*(b.algorithm for b in chapter.best), *chapter.failed]
    table = chapter.configurations
    frame = shelf(table["error"].to_list(), chapter.start, FAR, 340.0, 2.0 * BAND)
    rows: list[dict[str, Any]] = []
    counts = []
    for i, name in enumerate(names):
        own = table.filter(pl.col("algorithm") == name).sort("error", "run")
        rows += _dots(own, name, i, frame, len(table) <= MOST_TOLD)
        lost = float((own["diverged_share"] > 0.0).mean() or 0.0)  # type: ignore[arg-type]
        counts.append({"x": i, "y": frame.place(frame.room), "text": f"{lost:.0%}"})
    colour = shades(names)
    x = alt.X(
        "x:Q",
        title=None,
        scale=alt.Scale(domain=[-0.5, len(names) - 0.5], nice=False),
        axis=alt.Axis(
            values=list(range(len(names))), labelExpr=f"{json.dumps(names)}[datum.value]",
            grid=False, ticks=False, labelAngle=-35, labelFontSize=12, labelOverlap=False,
        ),
    )  # fmt: skip
    y = frame.encoded(what, "off the scale", "overflowed")
    size = 11 if len(table) > 3000 else 17 if len(table) > 600 else 22
    says = ["learner:N", "settings:N", alt.Tooltip("error:Q", format=".4~g"),
            alt.Tooltip("diverged:N", title="seeds that overflowed")]  # fmt: skip
    dots = alt.Chart(data_of(rows)).mark_circle(size=size, opacity=0.75, aria=False)
    best = [
        {
            "x": names.index(b.algorithm),
            "y": min(max(b.grid.value, LEAST), frame.clip),
            "learner": b.algorithm,
        }
        for b in chapter.best
    ]
    diamond = alt.Chart(data_of(best or [{}])).mark_point(
        shape="diamond", filled=True, size=120, stroke="white", strokeWidth=1.5, opacity=1
    )
    room = alt.ExprRef(f"width > {24 * len(names)} ? 1 : 0")  # in a narrow page they would touch
    shares = alt.Chart(data_of(counts)).mark_text(dy=-8, fontSize=10, color=SOFT, opacity=room)
    layers = [
        *_shelves(frame, chapter.start),
        dots.encode(x=x, y=y, color=colour, tooltip=says),
        diamond.encode(x=x, y=y, color=colour),
        shares.encode(x=x, y=alt.Y("y:Q", scale=frame.scale()), text="text:N"),
    ]
    title = heading(
        f"{chapter.label}: all {len(table):,} configurations",
        [
            "a dot is one configuration, its error the mean over the seeds; diamond: the best one"
            + least_note(table["error"]),
            "above the columns: the share of them with a run that overflowed; "
            f"dashed: the error at w0, {number(chapter.start)}",
        ],
    )
    width = float(np.clip(60 * len(names), 420, 1100))
    chart = alt.layer(*layers).properties(width=width, height=340 + frame.room, title=title)
    return styled(chart.properties(usermeta={"toggle": "learner", "above": 22}))


def _dots(
    own: pl.DataFrame, name: str, column: int, frame: Shelf, told: bool
) -> list[dict[str, Any]]:
    """A dot for each configuration; on the shelves the height is the share of diverged seeds."""
    rows: list[dict[str, Any]] = []
    noise = np.random.default_rng(column).random((len(own), 2))
    every = own.select("error", "diverged_share", "run").iter_rows()
    for i, (error, share, run) in enumerate(every):
        x = column + 0.76 * ((i * GOLDEN + 0.5) % 1.0 - 0.5)  # the best one in the middle
        y = max(error, LEAST)
        if share > 0.0:
            y = frame.place(BAND * (1.1 + 0.66 * share + 0.14 * noise[i, 1]))
        elif error > frame.clip:
            y = frame.place(BAND * (0.15 + 0.7 * noise[i, 1]))
        if y > frame.clip:
            x = column + 0.76 * (noise[i, 0] - 0.5)
        row = {"learner": name, "x": round(x, 4), "y": float(f"{y:.5g}"),
               "error": None if np.isinf(error) else float(f"{error:.4g}"),
               "diverged": percent(share) if share > 0.0 else None}  # fmt: skip
        rows.append(row | ({"settings": settings(run) or "no grid"} if told else {}))
    return rows


def settings(run: str) -> str:
    """The hyper-parameters of a configuration, for reading.

    >>> settings("target_td:alpha=0.00390625,lam=0.9,target=soft")
    'alpha 2⁻⁸, lam 0.9, target soft'
    """
    parts = [part.partition("=") for part in run.partition(":")[2].split(",") if part]
    return ", ".join(f"{key} {short(text)}" for key, _, text in parts)


def _shelves(frame: Shelf, start: float) -> list[Any]:
    scale = frame.scale()
    bands = [
        {"y": frame.clip, "y2": frame.place(BAND), "shade": 0.05},
        {"y": frame.place(BAND), "y2": frame.place(2 * BAND), "shade": 0.12},
    ]
    rect = alt.Chart(data_of(bands)).mark_rect(color=SHADE).encode(
        y=alt.Y("y:Q", scale=scale), y2="y2:Q",
        opacity=alt.Opacity("shade:Q", scale=None, legend=None),
    )  # fmt: skip
    rule = alt.Chart(data_of([{"y": start}])).mark_rule(strokeDash=[4, 3], color=SOFT)
    return [rect, rule.encode(y=alt.Y("y:Q", scale=scale))]


# Sensitivity to the hyper-parameters

TALL, SQUARE = 165, 6  # pixels of a panel, and of a row of squares above it
REACH = 2.0  # the axis ends at this multiple of the error at w0


def grid_axes(chapter: Chapter, algorithm: str) -> tuple[str | None, list[str]]:
    """The parameter along x (alpha, or else the longest axis of numbers), and the others."""
    axes = axes_of(_own(chapter, algorithm))
    numeric = [n for n, v in axes.items() if not isinstance(v[0], str)]
    along = "alpha" if "alpha" in axes else max(numeric, key=lambda n: len(axes[n]), default=None)
    return along, [name for name in axes if name != along]


def sensitivity_chart(chapter: Chapter, algorithm: str, what: str) -> Any | None:
    """Error over the step size; None if the learner's grid is a single point.

    There is one panel for each further parameter of the grid, in it one line per value of that
    parameter. All other parameters are at their best for each point of a line. Above the clip line
    each line has a row of squares where runs overflowed, the darker, the more of the seeds.
    """
    own = _own(chapter, algorithm)
    along, others = grid_axes(chapter, algorithm)
    if along is None:
        return None
    seconds: list[str | None] = [*others] or [None]
    longest = max(1 if name is None else own[name].n_unique() for name in seconds)
    every = chapter.configurations["error"].to_list()  # one scale for all learners
    room = max(SQUARE * longest + 8.0, 34.0)  # for the word "overflowed"
    frame = shelf(every, chapter.start, REACH, TALL, room)
    panels = [_panel(chapter.start, own, frame, along, second, what) for second in seconds]
    best = chapter.of(algorithm)
    subtitle = "every configuration overflowed in at least one run"
    if best is not None:
        subtitle = (
            f"best of {best.configurations}: {best.settings}; error on the grid "
            f"{number(best.grid.value)}"
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
    points = envelope(own, along, second)
    values = [] if second is None else points[second].unique().sort().to_list()
    lines = [short(v) for v in values] or [along]
    spots = points[along].to_list()
    power = min(spots) > 0.0 and max(spots) >= 8.0 * min(spots)
    rows = [
        {"x": float(np.log2(row[along])) if power else row[along], "along": short(row[along]),
         "line": lines[values.index(row[second])] if second else along,
         "error": row["error"], "share": row["diverged_share"]}
        for row in points.iter_rows(named=True)
    ]  # fmt: skip
    x = _along(along, sorted({r["x"] for r in rows}), power)
    y, plain_y = frame.encoded(what, "overflowed"), alt.Y("y:Q", scale=frame.scale())
    legend = None if second is None else alt.Legend(
        title=second, symbolType="stroke", symbolStrokeWidth=3, symbolOpacity=1, labelFontSize=11
    )  # fmt: skip
    ramp = alt.Scale(domain=lines, scheme=RAMP)
    colour = alt.Color("line:O", sort=lines, scale=ramp, legend=legend)
    drawn = [row for line in lines for row in _line([r for r in rows if r["line"] == line], frame)]
    says = [alt.Tooltip("line:N", title=second)] if second else []
    says += [alt.Tooltip("along:N", title=along), alt.Tooltip("error:Q", format=".4~g")]
    curve = alt.Chart(data_of(drawn)).mark_line(strokeWidth=1.8, point=alt.OverlayMarkDef(size=14))
    ends = [{"y": start, "dash": 1}, {"y": frame.clip, "dash": 0}]
    dash = alt.StrokeDash("dash:O", legend=None,
                          scale=alt.Scale(domain=[0, 1], range=[[1, 0], [4, 3]]))  # fmt: skip
    layers = [
        alt.Chart(data_of(ends)).mark_rule(color=PALE).encode(y=plain_y, strokeDash=dash),
        curve.encode(x=x, y=y, color=colour, tooltip=says),
    ]
    squares = [
        {**r, "error": None, "y": frame.place(SQUARE * (lines.index(r["line"]) + 1.0))}
        for r in rows
        if r["share"] > 0.0
    ]
    if squares:
        shade = alt.Opacity("share:Q", scale=alt.Scale(domain=[0, 1], range=[0.2, 1]), legend=None)
        mark = alt.Chart(data_of(squares)).mark_square(size=26)
        layers.append(mark.encode(x=x, y=plain_y, color=colour, opacity=shade))
    least = min(rows, key=lambda r: r["error"])
    if least["error"] > frame.clip:
        note = alt.Chart(data_of([{"text": "every error is off the scale"}]))
        mark = note.mark_text(fontSize=11, color=SOFT, align="left")
        layers.append(mark.encode(x=alt.value(12), y=alt.value(TALL * 0.6), text="text:N"))
    else:
        ring = alt.Chart(data_of([{"x": least["x"], "y": max(least["error"], LEAST)}]))
        mark = ring.mark_point(size=130, color=INK, strokeWidth=1.5, filled=False)
        layers.append(mark.encode(x=x, y=y))
    return alt.layer(*layers).properties(width=230, height=TALL + frame.room)


def _along(name: str, spots: Sequence[float], power: bool) -> Any:
    """Altair's x: a handful of the grid's values, powers of two as such."""
    width = (spots[-1] - spots[0]) or 1.0
    scale = alt.Scale(domain=[spots[0] - 0.03 * width, spots[-1] + 0.03 * width], nice=False)
    shown = list(spots[:: -(-len(spots) // 7)])
    labels = power_labels(shown) if power else alt.Undefined
    axis = alt.Axis(values=shown, labelExpr=labels, grid=False, labelFontSize=10, labelAngle=0)
    return alt.X("x:Q", title=name, scale=scale, axis=axis)


def power_labels(exponents: Sequence[float]) -> str:
    """A Vega expression for an axis of exponents: 2⁻⁵ for -5, the number itself in between.

    Looked up by three decimals: the last digit of a number may change on its way to the picture.

    >>> power_labels([5.0, 3.5])
    "({'5.000': '2⁵', '3.500': '11.3'})[format(datum.value, '.3f')]"
    """
    found = []
    for exponent in exponents:
        key = f"{exponent:.3f}".replace("-", "\N{MINUS SIGN}")  # as Vega writes it
        whole = exponent == int(exponent)
        text = power_of_two(int(exponent)) if whole else number(2.0**exponent, 3)
        found.append(f"'{key}': '{text}'")
    return f"({{{', '.join(found)}}})[format(datum.value, '.3f')]"


def _line(rows: Sequence[Mapping[str, Any]], frame: Shelf) -> list[dict[str, Any]]:
    """A line that runs up to the clip line and ends there; a gap where it stays above."""
    above = [not r["error"] <= frame.clip for r in rows]
    drawn = []
    for i, row in enumerate(rows):
        near = any(not above[j] for j in (i - 1, i + 1) if 0 <= j < len(rows))
        y = min(max(row["error"], LEAST), frame.clip) if not above[i] or near else None
        drawn.append({**row, "y": y, "error": None if above[i] else row["error"]})
    return drawn
