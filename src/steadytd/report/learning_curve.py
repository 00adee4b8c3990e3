"""Learning curves known before any run: alone, and beside runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from steadytd.base.files import output_directory, write_whole
from steadytd.report.figures import (
    LEAST,
    Axis,
    alt,
    curves_chart,
    error_axis,
    heading,
    marks,
    says,
    styled,
)
from steadytd.report.live import live
from steadytd.report.pages import page
from steadytd.report.palette import DASHES, INK, SOFT, Look, look
from steadytd.report.text import Line
from steadytd.theory.learning_curve import LearningCurve

LIMIT = "error of its fixed point"


def parts(curve: LearningCurve) -> list[Line]:
    """The curve in words."""
    return [Line(curve.text, head=str(curve.learner))]


def learning_curve_chart(curve: LearningCurve) -> Any:
    """Error, bias and spread over steps, and the error of the fixed point."""
    lines = {"error": curve.error, "bias": curve.bias, "spread": curve.spread}
    if curve.limit is not None:
        lines[LIMIT] = np.full(len(curve.step), curve.limit)
    top = 1e4 * max(float(curve.error[0]), LEAST)  # what grows further leaves the picture
    axis = error_axis(curve.error[curve.error <= top])
    if axis.log:
        shown = np.concatenate([curve.error, curve.bias, curve.spread[-1:]])
        axis = error_axis(shown[(shown <= top) & (shown > 0.0)])
    else:
        axis = axis._replace(low=0.0)
    rows = [
        {"learner": name, "step": int(step), "mean": max(float(value), LEAST)}
        for name, values in lines.items()
        for step, value in zip(curve.step, values, strict=True)
        if step > 0 and np.isfinite(value)
    ]
    own = look(curve.learner.name)
    drawn = {
        "error": Look(own.colour), "bias": Look(INK, DASHES[1]),
        "spread": Look(SOFT, DASHES[2]), LIMIT: Look(SOFT, DASHES[4]),
    }  # fmt: skip
    how = "exact" if not curve.runs else f"estimated from {curve.runs} runs"
    note = [f"{curve.learner}; {how}", "error² = bias² + spread²"]
    looks = {name: drawn[name] for name in lines}
    title = heading(f"{curve.problem}: expected error before any run", note)
    return curves_chart(rows, looks, axis, title, log_steps=True)


def expected_layers(curves: Mapping[str, LearningCurve], axis: Axis) -> list[Any]:
    """Thin lines of expected errors by a learner's label, and shades from there to the bias.

    The mean of infinitely many runs lies in the shade: it is at most their root mean square, and no
    less than the error of their mean.
    """
    rows = [
        {"learner": name, "step": int(step), "expected": float(error), "bias": float(bias)}
        for name, curve in curves.items()
        for step, error, bias in zip(
            curve.step, *np.maximum((curve.error, curve.bias), LEAST), strict=True
        )
        if np.isfinite(error)
    ]
    scale = axis.scale()
    y = alt.Y("expected:Q", scale=scale)
    step = alt.Tooltip("step:Q", format=",")
    told = [*says("learner"), step, *says(expected="expected", bias="bias")]
    shade = marks("area", rows, {"y": y, "y2": "bias:Q"}, opacity=0.1, clip=True)
    line = marks("line", rows, {"y": y, "tooltip": told}, strokeWidth=1, clip=True)
    return [shade, line]


def write_learning_curve(curve: LearningCurve, place: Path) -> Path:
    """The page of a curve."""
    content = page(
        "object.html",
        title=f"Learning curve: {curve.problem}",
        words=[line.text for line in parts(curve)],
        picture=live("curve", styled(learning_curve_chart(curve)), files=False),
    )
    return write_whole(output_directory(place) / "curve.html", content)
