"""A study's figures, part three: every configuration of every learner as a dot.

All dots of a learner are one path of the SVG (points of a line with gaps between them, drawn with
round ends), so ten thousand configurations take a few hundred kilobytes. In a page they are dots,
drawn as pixels, each with its settings.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from steadytd.report.figures import data_of, styled
from steadytd.report.palette import SHADE, SOFT
from steadytd.report.study.axes import LEAST, Shelf, least_note, shelf
from steadytd.report.study.figures import heading, shades
from steadytd.studies.analysis.reading import Chapter
from steadytd.studies.analysis.tables import short

if TYPE_CHECKING:
    import polars as pl

TALL, BAND = 340.0, 46.0
REACH = 20.0  # errors beyond this multiple of the error at w0 go to a shelf of their own
MOST_TOLD = 20_000  # configurations whose settings a page can hold
GOLDEN = 0.6180339887498949  # multiples of it, modulo 1, are spread evenly


def overview_chart(chapter: Chapter, what: str) -> Any:
    """One column per learner, the best first; what diverged lies on a shelf at the top."""
    import altair as alt
    import polars as pl

    names = [*(b.algorithm for b in chapter.best), *chapter.failed]
    table = chapter.configurations
    frame = shelf(table["error"].to_list(), chapter.start, REACH, TALL, 2.0 * BAND)
    scale = frame.scale()
    width = float(np.clip(60 * len(names), 420, 1100))
    x_scale = alt.Scale(domain=[-0.5, len(names) - 0.5], nice=False)
    rows: list[dict[str, Any]] = []
    counts = []
    for i, name in enumerate(names):
        own = table.filter(pl.col("algorithm") == name).sort("error", "run")
        rows += _dots(own, name, i, frame, len(table) <= MOST_TOLD)
        lost = int((own["diverged_share"] > 0.0).sum())
        share = f"{lost / max(len(own), 1):.0%}"
        counts.append({"x": i, "y": frame.place(2.0 * BAND), "text": share})
    colour, _ = shades(names)
    x = alt.X("x:Q", title=None, scale=x_scale, axis=alt.Axis(
        values=list(range(len(names))), labelExpr=f"{json.dumps(names)}[datum.value]", grid=False,
        ticks=False, labelAngle=-35, labelFontSize=12, labelOverlap=False))  # fmt: skip
    y = alt.Y("y:Q", title=what, scale=scale, axis=frame.axis("off the scale", "overflowed"))
    size = 2.2 if len(table) > 3000 else 3.4 if len(table) > 600 else 4.5
    dots = (
        alt.Chart(data_of(rows))
        .mark_line(
            strokeCap="round", strokeWidth=size, opacity=0.75, invalid="break-paths-filter-domains"
        )
        .encode(x=x, y=y, color=colour, order="order:Q", tooltip=_says())
        .properties(name="dots")
    )
    best = [
        {
            "x": names.index(b.algorithm),
            "y": min(max(b.grid.value, LEAST), frame.clip),
            "learner": b.algorithm,
        }
        for b in chapter.best
    ]
    marked = alt.Chart(data_of(best or [{}]))
    ring = marked.mark_point(shape="diamond", filled=True, size=120, stroke="white",
                             strokeWidth=1.5, opacity=1)  # fmt: skip
    number = alt.Chart(data_of(counts))
    room = alt.ExprRef(f"width > {24 * len(names)} ? 1 : 0")  # in a narrow page they would touch
    layers = [
        *_shelves(frame, scale, chapter.start),
        dots,
        ring.encode(x=x, y=y, color=colour),
        number.mark_text(dy=-8, fontSize=10, color=SOFT, opacity=room).encode(
            x=x, y=alt.Y("y:Q", scale=scale), text="text:N"
        ),
    ]
    title = heading(
        f"{chapter.label}: all {len(table):,} configurations",
        [
            "a dot is one configuration, its error the mean over the seeds; diamond: the best one"
            + least_note(table["error"]),
            "above the columns: how many of them have a run that overflowed; "
            f"dashed: the error at w0, {chapter.start:.4g}",
        ],
    )
    chart = alt.layer(*layers).properties(width=width, height=TALL + 2 * BAND, title=title)
    return styled(chart.properties(usermeta={"toggle": "learner", "above": 22, "dots": 5.0 * size}))


def _says() -> list[Any]:
    import altair as alt

    return [
        "learner:N",
        alt.Tooltip("settings:N"),
        alt.Tooltip("error:Q", format=".4~g"),
        alt.Tooltip("diverged:N", title="seeds that overflowed"),
    ]


def _dots(
    own: pl.DataFrame, name: str, column: int, frame: Shelf, told: bool
) -> list[dict[str, Any]]:
    """Point, gap, point, gap; on the shelves the height is the share of diverged seeds."""
    rows: list[dict[str, Any]] = []
    noise = np.random.default_rng(column).random((len(own), 2))
    every = own.select("error", "diverged_share", "run").iter_rows()
    for i, (error, share, run) in enumerate(every):
        x = column + 0.76 * ((i * GOLDEN + 0.5) % 1.0 - 0.5)  # the best one in the middle
        if share > 0.0:
            x = column + 0.76 * (noise[i, 0] - 0.5)
            y = frame.place(BAND * (1.1 + 0.66 * share + 0.14 * noise[i, 1]))
        elif error > frame.clip:
            x = column + 0.76 * (noise[i, 0] - 0.5)
            y = frame.place(BAND * (0.15 + 0.7 * noise[i, 1]))
        else:
            y = max(error, LEAST)
        point = {"learner": name, "x": round(x, 4), "y": float(f"{y:.5g}")}
        said: dict[str, Any] = {"error": None if np.isinf(error) else float(f"{error:.4g}")}
        if told:
            said["settings"] = settings(run) or "no grid"
        said["diverged"] = f"{share:.0%}" if share > 0.0 else None
        rows += [{**point, **said, "order": 2 * i}, {"learner": name, "order": 2 * i + 1}]
    return rows


def settings(run: str) -> str:
    """The hyper-parameters of a configuration, for reading.

    >>> settings("target_td:alpha=0.00390625,lam=0.9,target=soft")
    'alpha 2⁻⁸, lam 0.9, target soft'
    """
    parts = [part.partition("=") for part in run.partition(":")[2].split(",") if part]
    return ", ".join(f"{key} {short(text)}" for key, _, text in parts)


def _shelves(frame: Shelf, scale: Any, start: float) -> list[Any]:
    import altair as alt

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
