"""Figures: one description in Altair, saved as SVG, PNG and PDF and embedded in pages.

All figures are put together from the same parts: `marks` (one layer), `intervals` (dots with their
intervals), `says` (a tooltip), `channels` (colour and dash of series), axes of errors, and
`curves_chart`, the chart of error over steps. `styled` gives them one look.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.base.errors import visible
from steadytd.base.files import cached_arrays, write_whole
from steadytd.base.identity import digest
from steadytd.report.palette import DASHES, Look
from steadytd.report.palette import HUES as COLOURS

if TYPE_CHECKING:
    import altair as alt
else:

    class _Altair:
        """Altair, loaded when something is drawn: text on the terminal does without it."""

        def __getattr__(self, name: str) -> Any:
            import altair

            return getattr(altair, name)

    alt = _Altair()

__all__ = ["COLOURS", "FORMATS", "alt", "curves_chart", "save_figures"]

FORMATS = ("svg", "png", "pdf")
SHARPNESS = 1.5  # pixels per point of a PNG
POINTS = 250  # per curve: more cannot be told apart on paper
DECADES = 5.0  # a ratio beyond which an axis is logarithmic
LEAST = 1e-12  # errors below are drawn as this
UNITS = ((1e6, "million steps"), (1e3, "thousand steps"), (1.0, "step"))  # of an axis of steps
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")
FONT = "DejaVu Sans, Helvetica, Arial, sans-serif"
RMSE = "error (RMSE)"


class Axis(NamedTuple):
    """An axis of errors: whether it is logarithmic, and its ends."""

    log: bool
    low: float
    high: float

    def scale(self) -> Any:
        """Altair's scale."""
        ends = {"domain": [self.low, self.high], "nice": False}
        return alt.Scale(type="log", **ends) if self.log else alt.Scale(zero=False, **ends)

    def at(self, share: float) -> float:
        """The value at a place of the axis: its ends are at 0 and 1, and it goes on beyond them."""
        if self.log:
            return float(self.low * (self.high / self.low) ** share)
        return self.low + share * (self.high - self.low)


def error_axis(values: Floats) -> Axis:
    """An axis for these errors, logarithmic if they differ by more than a factor of five."""
    found = np.maximum(values[np.isfinite(values)], LEAST)
    low, high = float(found.min()), float(found.max())
    if high > DECADES * low:
        room = (high / low) ** 0.04
        return Axis(True, low / room, high * room)
    room = 0.06 * (high - low) or 0.05 * high
    return Axis(False, max(0.0, low - room), high + room)


def chosen_points(steps: Longs, first: int = 0) -> Longs:
    """The places of the recording points that are drawn."""
    return np.unique(np.linspace(first, len(steps) - 1, POINTS).astype(int))


def curves_chart(
    rows: Sequence[dict[str, Any]],
    found: Mapping[str, Look],
    axis: Axis,
    title: Any,
    *,
    what: str = RMSE,
    band: tuple[str, str] | None = None,
    log_steps: bool = False,
    points: Sequence[dict[str, Any]] | None = None,
    layers: Sequence[Any] = (),
    size: tuple[int, int] = (620, 360),
) -> Any:
    """Error over steps, one line per learner, from rows of learner, step, mean, low and high.

    A band reaches from low to high, whose names in the tooltip are `band`; without it there is
    none. A sign marks where a line leaves the picture, by `points` (default: the rows).
    """
    x = step_axis([row["step"] for row in rows], log_steps)
    y = alt.Y("mean:Q", title=what, scale=axis.scale(), axis=tick_axis(axis))
    colour, dash = channels("learner", found, columns=1 if len(found) < 5 else 3)
    drawn = []
    if band:
        bottom = alt.Y("low:Q", scale=axis.scale(), title=what)
        area = {"x": x, "y": bottom, "y2": "high:Q", "color": colour}
        drawn.append(marks("area", rows, area, opacity=0.17, clip=True))
    ends = {"low": band[0], "high": band[1]} if band else {}
    step = alt.Tooltip("step:Q", format=",")
    tooltip = [*says("learner"), step, *says(mean="mean", **ends)]
    line = {"x": x, "y": y, "color": colour, "strokeDash": dash, "tooltip": tooltip}
    drawn.append(marks("line", rows, line, strokeWidth=2, clip=True))
    drawn += edge_signs(points or rows, axis[1:], ["learner"], x=x, y=y, color=colour)
    drawn += [layer.encode(x=x, color=colour) for layer in layers]
    return alt.layer(*drawn).properties(
        width=size[0], height=size[1], title=title, usermeta={"toggle": "learner"}
    )


def step_axis(steps: Sequence[int], log: bool) -> Any:
    """An axis of steps; its numbers are of one kind, and its title says which."""
    most = max(steps)
    unit, title = (
        (1.0, "step") if log else next(u for u in UNITS if most >= 2.0 * u[0] or u[0] == 1)
    )
    scale = alt.Scale(type="log" if log else "linear", domain=[min(steps), most], nice=False)
    decades = [10**k for k in range(1 + int(np.log10(most)))] if log else alt.Undefined
    label = (
        f"format(datum.value / {unit:.0f}, ',.10~g')" if unit > 1 else "format(datum.value, ',')"
    )
    axis = alt.Axis(labelExpr=label, grid=False, tickCount=6, values=decades)
    return alt.X("step:Q", title=title, scale=scale, axis=axis)


def interval_ends(mean: Floats, half: Floats, log: bool) -> tuple[Floats, Floats]:
    """The ends of a mean's interval of this half width; on a logarithmic axis of its logarithm.

    An error is positive. Where runs scatter much, the plain interval would reach below zero.

    >>> interval_ends(np.array([2.0]), np.array([3.0]), log=False)
    (array([-1.]), array([5.]))
    >>> [round(float(end[0]), 3) for end in interval_ends(np.ones(1), np.full(1, 0.1), log=True)]
    [0.905, 1.105]
    """
    if not log:
        return mean - half, mean + half
    factor = np.exp(np.divide(half, mean, out=np.zeros_like(half), where=mean > 0.0))
    with np.errstate(over="ignore"):  # just before a run overflows the upper end may be infinite
        return mean / factor, mean * factor


def interval_note(log: bool) -> str:
    """What a band is."""
    return f"band: 95 % interval of the mean{', of its logarithm' if log else ''}"


def least_note(errors: Iterable[float]) -> str:
    """What a caption says where errors are too small to be drawn.

    >>> least_note([1e-13, 1.0]), least_note([1e-12, 1.0])
    ('; errors below 1e-12 are drawn as 1e-12', '')
    """
    return f"; errors below {LEAST:g} are drawn as {LEAST:g}" if min(errors) < LEAST else ""


def heading(title: str, subtitle: str | list[str]) -> Any:
    """A title over a smaller line or more."""
    return alt.TitleParams(title, subtitle=subtitle, anchor="start", offset=12)


def channels(field: str, found: Mapping[str, Look], columns: int = 3) -> tuple[Any, Any]:
    """Colour and dash of a field's series, with one legend for both."""
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
    drawn = [SHAPES[DASHES.index(look.dash)] for look in found.values()]
    scale = alt.Scale(domain=list(found), range=drawn)
    return alt.Shape(f"{field}:N", sort=list(found), scale=scale, legend=None)


def dotted(colour: Any) -> Any:
    """The colour of a series of dots: so is its legend."""
    legend = colour["legend"]  # `colour.legend` would be a setter
    legend.symbolType, legend.symbolSize = "circle", 90
    return colour


def edge_signs(
    rows: Sequence[dict[str, Any]], ends: tuple[float, float], line: Sequence[str], **channels: Any
) -> list[Any]:
    """Layers with a small triangle wherever a line leaves the picture at its top or bottom.

    `ends` are those of the axis, `line` the fields that tell lines apart, and `channels` are the
    lines' x, y and colour.
    """
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
            places = {**channels, "tooltip": alt.Tooltip("on:N", title="goes on")}
            style = {"shape": shape, "yOffset": inward, "clip": True}
            layers.append(marks("point", signs, places, size=70, filled=True, opacity=1, **style))
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


def drawn(text: str, kinds: Sequence[str] = FORMATS) -> dict[str, bytes]:
    """The files of a description, by their endings."""
    import vl_convert

    svg = vl_convert.vegalite_to_svg(text)
    make: dict[str, Callable[[], bytes]] = {
        "svg": svg.encode,
        "png": lambda: vl_convert.svg_to_png(svg, scale=SHARPNESS),
        "pdf": lambda: vl_convert.svg_to_pdf(svg),
    }
    return {kind: make[kind]() for kind in kinds}


def described(chart: Any) -> dict[str, Any]:
    """The description of a chart in Vega-Lite; a description is one already."""
    return chart if isinstance(chart, dict) else dict(drawable(chart.to_dict(validate=False)))


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


def data_of(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows inside a figure's description; numbers that are not finite become null.

    A tuple, since Altair copies lists at every step.
    """
    return alt.InlineData(values=tuple({k: _finite(v) for k, v in row.items()} for row in rows))


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def marks(
    kind: str, rows: Sequence[Mapping[str, Any]], places: dict[str, Any], **style: Any
) -> Any:
    """One layer: a mark of some kind for each row, with its channels and its style."""
    chart = alt.Chart(data_of(rows))
    return getattr(chart, f"mark_{kind}")(**style).encode(**places)


def intervals(
    rows: Sequence[Mapping[str, Any]], places: dict[str, Any], along: str = "x", **rule: Any
) -> Any:
    """A rule from `lo` to `hi` of each row that has them, along the axis x or y."""
    axis = places[along]
    low = type(axis)("lo:Q", scale=axis["scale"], title=axis["title"])
    known = [row for row in rows if row["lo"] is not None and math.isfinite(row["lo"])]
    return marks("rule", known, {**places, along: low, f"{along}2": "hi:Q"}, **rule)


def says(*fields: str, **titles: str) -> list[Any]:
    """A tooltip: fields of text by their names, and numbers by their titles."""
    numbers = (alt.Tooltip(f"{k}:Q", title=t, format=".4~g") for k, t in titles.items())
    return [*(alt.Tooltip(f"{name}:N") for name in fields), *numbers]


def tick_axis(axis: Axis, **more: Any) -> Any:
    """An axis with round numbers, all of one kind: 0.001 and 1000, or 1e-6 and 1e0."""
    values = ticks(*axis)
    sizes = [abs(v) for v in values if v]
    short = bool(sizes) and (min(sizes) < 0.0009 or max(sizes) > 99999)
    label = f"replace(format(datum.value, '{'~e' if short else '~g'}'), 'e+', 'e')"
    zero = f"datum.value == 0 ? '0' : {label}"
    return alt.Axis(values=values, labelExpr=label if axis.log else zero, **more)


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
