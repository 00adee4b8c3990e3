"""Figures: one description in Altair, saved as SVG, PNG and PDF and embedded in pages."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.base.files import cached_arrays, write_whole
from steadytd.base.identity import digest
from steadytd.base.wording import visible
from steadytd.report.palette import DASHES, Look, looks
from steadytd.report.palette import HUES as COLOURS

__all__ = ["COLOURS", "FORMATS", "Curve", "learning_curves", "save_figure", "save_figures"]

FORMATS = ("svg", "png", "pdf")
SHARPNESS = 1.5  # pixels per point of a PNG
POINTS = 250  # per curve: more cannot be told apart on paper
FLOOR = 1e-16  # the least error shown on a logarithmic axis
THOUSANDS = (
    "datum.value >= 1e6 ? format(datum.value / 1e6, '~g') + 'M' : "
    "datum.value >= 1000 ? format(datum.value / 1000, ',') + 'k' : datum.value"
)
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")
FONT = "DejaVu Sans, Helvetica, Arial, sans-serif"


@dataclass(frozen=True)
class Curve:
    """One curve: its legend, its errors [run, point], and where its mean likely lies.

    `likely` are steps, lower and upper ends, drawn as thin lines. `learner` is the name that
    decides the colour; without it the label is.
    """

    label: str
    errors: Floats
    likely: tuple[Longs, Floats, Floats] | None = None
    learner: str = ""


def learning_curves(
    title: str,
    subtitle: str,
    steps: Longs,
    curves: Sequence[Curve],
    *,
    log: bool,
    best: float | None = None,
    domain: tuple[float, float] | None = None,
) -> Any:
    """Error over steps: a line for the mean of the runs, a band from least to largest."""
    import altair as alt

    rows = curve_rows(steps, curves, FLOOR if log else 0.0)
    scale = alt.Scale(type="log" if log else "linear", domain=domain or alt.Undefined, nice=False)
    colour, dash = channels("label", looks({c.label: c.learner or c.label for c in curves}))
    x = alt.X(
        "step:Q",
        title="step",
        scale=alt.Scale(domain=[0, int(steps[-1])], nice=False),
        axis=alt.Axis(labelExpr=THOUSANDS, grid=False, tickCount=6),
    )
    axis = tick_axis(log, *domain) if domain else alt.Axis(format="~g", tickCount=7)
    y = alt.Y("mean:Q", title="error (RMSE)", scale=scale, axis=axis)
    base = alt.Chart(as_text(rows))
    band = base.mark_area(opacity=0.18, clip=True).encode(
        x=x, y=alt.Y("low:Q", scale=scale, title="error (RMSE)"), y2="high:Q", color=colour
    )
    line = base.mark_line(strokeWidth=2, clip=True).encode(
        x=x, y=y, color=colour, strokeDash=dash, tooltip=curve_tooltip("label")
    )
    layers = [band, line]
    if domain:
        layers += edge_signs(rows, domain, ["label"], x=x, y=y, color=colour)
    ends = [
        {"label": curve.label, "step": int(step), "end": max(float(end), FLOOR), "side": side}
        for curve in curves
        for side, values in enumerate(curve.likely[1:] if curve.likely else ())
        for step, end in zip(curve.likely[0] if curve.likely else (), values, strict=True)
        if np.isfinite(end)
    ]
    if ends:
        thin = alt.Chart(as_text(ends)).mark_line(strokeWidth=0.8, strokeDash=[3, 2], clip=True)
        y_end = alt.Y("end:Q", scale=scale, title="error (RMSE)")
        layers.append(thin.encode(x=x, y=y_end, color=colour, detail="side:N"))
    if best is not None:
        rule = {"best": best, "text": f"best possible: {best:.4g}", "step": 0}
        mark = alt.Chart(alt.InlineData(values=[rule]))
        layers += [
            mark.mark_rule(strokeDash=[2, 3], color="#444444").encode(y=alt.Y("best:Q")),
            mark.mark_text(align="left", dy=10, dx=6, fontSize=11, color="#444444").encode(
                x="step:Q", y="best:Q", text="text:N"
            ),
        ]
    heading = alt.TitleParams(title, subtitle=subtitle, anchor="start", offset=12)
    size = {"width": 620, "height": 360, "title": heading}
    return styled(alt.layer(*layers).properties(**size, usermeta={"toggle": "label"}))


def channels(field: str, found: Mapping[str, Look], columns: int = 3) -> tuple[Any, Any]:
    """Colour and dash of a field's series, with one legend for both."""
    import altair as alt

    labels = list(found)
    legend = alt.Legend(
        title=None, orient="bottom", columns=columns, labelLimit=320, symbolType="stroke",
        symbolOpacity=1, symbolSize=500, symbolStrokeWidth=3,
    )  # fmt: skip
    colours = alt.Scale(domain=labels, range=[look.colour for look in found.values()])
    dashes = alt.Scale(domain=labels, range=[list(look.dash) for look in found.values()])
    return (
        alt.Color(f"{field}:N", sort=labels, scale=colours, legend=legend),
        alt.StrokeDash(f"{field}:N", sort=labels, scale=dashes, legend=legend),
    )


def shapes(field: str, found: Mapping[str, Look]) -> Any:
    """Shapes of dots: where lines of one hue differ in their dashes, dots differ in these."""
    import altair as alt

    drawn = [SHAPES[DASHES.index(look.dash)] for look in found.values()]
    scale = alt.Scale(domain=list(found), range=drawn)
    return alt.Shape(f"{field}:N", sort=list(found), scale=scale, legend=None)


def dotted(colour: Any) -> Any:
    """The colour of a series of dots: so is its legend."""
    legend = colour["legend"]  # `colour.legend` would be a setter
    legend.symbolType, legend.symbolSize = "circle", 90
    return colour


def curve_tooltip(field: str, low: str = "least", high: str = "largest") -> list[Any]:
    """What a point of a curve says."""
    import altair as alt

    ends = {"mean": "mean", "low": low, "high": high}
    return [
        alt.Tooltip(f"{field}:N", title="learner"),
        alt.Tooltip("step:Q", format=","),
        *(alt.Tooltip(f"{key}:Q", title=text, format=".4~g") for key, text in ends.items()),
    ]


def edge_signs(
    rows: Sequence[dict[str, Any]], ends: tuple[float, float], line: Sequence[str], **channels: Any
) -> list[Any]:
    """Layers with a small triangle wherever a line leaves the picture at its top or bottom.

    `ends` are those of the axis, `line` the fields that tell lines apart, and `channels` are the
    lines' x, y and colour.
    """
    import altair as alt

    y = channels["y"]["shorthand"].partition(":")[0]
    lines: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        lines.setdefault(tuple(row[name] for name in line), []).append(row)
    layers = []
    for side, shape, inward in ((1.0, "triangle-up", 6), (-1.0, "triangle-down", -6)):
        end = max(side * ends[0], side * ends[1])
        signs = []
        for points in lines.values():
            out = [side * row[y] > end for row in points]
            crossings = [
                i for i in range(len(out)) if out[i] and not all(out[max(i - 1, 0) : i + 2])
            ]
            at = crossings or ([0] if out[0] else [])  # all of it may lie outside
            told = {y: side * end, "on": f"{'above' if side > 0.0 else 'below'} the picture"}
            signs += [{**points[i], **told} for i in sorted({*at[:1], *at[-1:]})]
        if signs:
            mark = alt.Chart(data_of(signs)).mark_point(
                shape=shape, size=70, filled=True, opacity=1, yOffset=inward, clip=True
            )
            layers.append(mark.encode(**channels, tooltip=alt.Tooltip("on:N", title="goes on")))
    return layers


def styled(chart: Any) -> Any:
    """The look that all figures share."""
    return chart.configure(
        font=FONT,
        background="white",
        padding=14,
        title={"fontSize": 16, "subtitleFontSize": 12, "subtitleColor": "#555555"},
        axis={"labelFontSize": 11, "titleFontSize": 12, "gridColor": "#e6e6e6"},
        legend={"labelFontSize": 12},
        view={"stroke": "#cccccc"},
    )


def save_figure(chart: Any, directory: Path, name: str, keep: bool = False) -> str:
    """Write NAME.svg, NAME.png and NAME.pdf; return the SVG."""
    save_figures({name: chart}, directory, keep)
    return (directory / f"{name}.svg").read_text(encoding="utf-8")


def save_figures(charts: Mapping[str, Any], directory: Path, keep: bool = False) -> None:
    """Write NAME.svg, NAME.png and NAME.pdf of each chart or description.

    With `keep`, a description that was drawn before is not drawn again.
    """
    for name, chart in charts.items():
        text = json.dumps(described(chart))
        for kind, content in (_drawn_once(text) if keep else drawn(text)).items():
            write_whole(directory / f"{name}.{kind}", content)


def _drawn_once(text: str) -> dict[str, bytes]:
    """The files of a description, kept for the next time that they are asked for."""
    identity = digest(text, metadata.version("vl-convert-python"), SHARPNESS)
    found = cached_arrays(
        "figure", identity, lambda: {k: np.frombuffer(x, np.uint8) for k, x in drawn(text).items()}
    )
    return {kind: content.tobytes() for kind, content in found.items()}


def drawn(text: str) -> dict[str, bytes]:
    """The files of a description, by their endings."""
    import vl_convert

    svg = vl_convert.vegalite_to_svg(text)
    png = vl_convert.svg_to_png(svg, scale=SHARPNESS)
    return {"svg": svg.encode(), "png": png, "pdf": vl_convert.svg_to_pdf(svg)}


def described(chart: Any) -> dict[str, Any]:
    """The description of a chart in Vega-Lite; a description is one already."""
    return chart if isinstance(chart, dict) else dict(drawable(chart.to_dict(validate=False)))


def descriptions(charts: Mapping[Any, Any]) -> dict[Any, dict[str, Any]]:
    """The descriptions of those charts that there are."""
    return {key: described(chart) for key, chart in charts.items() if chart is not None}


def drawable(part: Any) -> Any:
    r"""A part of a figure's description; the engine that draws ends the process at a control code.

    >>> drawable({"title": ["a\x00b", 3]})
    {'title': ['a\\x00b', 3]}
    """
    if isinstance(part, dict):
        return {drawable(key): drawable(value) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return [drawable(value) for value in part]
    if not isinstance(part, str) or part.replace("\n", "").isprintable():  # long tables at once
        return part
    return visible(part, lines=True)


def data_of(rows: Sequence[dict[str, Any]]) -> Any:
    """Rows inside a figure's description; a tuple, since Altair copies lists at every step."""
    import altair as alt

    return alt.InlineData(values=tuple(rows))


def as_text(rows: Sequence[dict[str, Any]]) -> Any:
    """Rows as one CSV text: of a list Altair checks every entry, which takes half a second."""
    import altair as alt

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names := list(rows[0]))
    writer.writerows([_short(row[name]) for name in names] for row in rows)
    return alt.InlineData(values=text.getvalue(), format=alt.CsvDataFormat(type="csv"))


def _short(value: Any) -> Any:
    """Five digits are more than a picture shows."""
    return f"{value:.5g}" if isinstance(value, float) else value


def tick_axis(log: bool, low: float, high: float, **more: Any) -> Any:
    """An axis with round numbers: 0.001 and 1000 as they are, 1e-6 in short."""
    import altair as alt

    small = "datum.value != 0 && (abs(datum.value) < 0.0009 || abs(datum.value) > 99999)"
    label = f"replace(format(datum.value, ({small}) ? '~e' : '~g'), 'e+', 'e')"
    return alt.Axis(values=ticks(log, low, high), labelExpr=label, **more)


def ticks(log: bool, low: float, high: float) -> list[float]:
    """A handful of round numbers between two ends.

    >>> ticks(True, 0.08, 2.0), ticks(False, 0.1, 0.5)
    ([0.1, 0.2, 0.5, 1.0, 2.0], [0.1, 0.2, 0.3, 0.4, 0.5])
    >>> ticks(True, 0.08, 0.9)
    [0.1, 0.2, 0.3, 0.5, 0.7]
    """
    if not log:
        step = 10.0 ** np.floor(np.log10((high - low) / 2.0))
        step *= next(k for k in (1.0, 2.0, 5.0, 10.0) if (high - low) / (k * step) <= 6.0)
        first = np.ceil(low / step - 1e-9)
        return [
            float(f"{k * step:.9g}") for k in np.arange(first, np.floor(high / step + 1e-9) + 1)
        ]
    decades = np.log10(high / low)
    factors: tuple[float, ...] = (1.0, 2.0, 5.0) if decades < 2.5 else (1.0,)
    factors = (1.0, 2.0, 3.0, 5.0, 7.0) if decades < 1.3 else factors
    stride = max(1, int(np.ceil(decades / 7.0)))
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    found = [f * 10.0**p for p in powers if p % stride == 0 for f in factors]
    return [float(f"{v:.9g}") for v in found if low <= v * (1 + 1e-9) and v <= high * (1 + 1e-9)]


def curve_rows(steps: Longs, curves: Sequence[Curve], floor: float) -> list[dict[str, Any]]:
    """Mean and range over the runs at a few hundred points; points that diverged are left out."""
    chosen = np.unique(np.rint(np.linspace(0, len(steps) - 1, POINTS)).astype(int))
    rows: list[dict[str, Any]] = []
    for curve in curves:
        errors = curve.errors[:, chosen]
        ends = np.maximum([errors.mean(axis=0), errors.min(axis=0), errors.max(axis=0)], floor)
        finite = np.isfinite(errors).all(axis=0)
        for step, values in zip(steps[chosen][finite], ends.T[finite].tolist(), strict=True):
            named = dict(zip(("mean", "low", "high"), values, strict=True))
            rows.append({"label": curve.label, "step": float(step), **named})
    return rows
