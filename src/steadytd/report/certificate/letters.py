"""Thresholds and bounds in the picture of the path: lines with letters above the frame."""

from __future__ import annotations

from string import ascii_lowercase
from typing import Any

import numpy as np

from steadytd.base.wording import figures
from steadytd.report.figures import data_of
from steadytd.report.palette import PALE, SOFT
from steadytd.theory.certificate import Certificate

NEAR = 0.028  # of the axis: marks that are closer share a place
LETTER = 0.03  # the same for the width of a letter, where the chart is narrow


def marked(c: Certificate, top: float) -> list[tuple[str, str, float]]:
    """Letter, name and place of the pole, the thresholds and the bounds, from left to right."""
    named = {
        "Hurwitz": c.eta_hurwitz,
        "positive definite": c.eta_pd,
        **{name.replace("_", " "): value for name, value in c.bounds.items()},
    }
    if c.poles:
        named["pole"] = c.poles[-1]
    places = sorted((value, name) for name, value in named.items() if 0.0 < value <= top)
    return [(letter, name, v) for letter, (v, name) in zip(ascii_lowercase, places, strict=False)]


def keys(c: Certificate, top: float) -> list[str]:
    """What the letters mean, in lines that fit."""
    texts = [f"{letter}: {name} {figures(value)}" for letter, name, value in marked(c, top)]
    return ["; ".join(texts[i : i + 4]) for i in range(0, len(texts), 4)]


def marks(c: Certificate, top: float, x_scale: Any) -> list[Any]:
    """Vertical lines for the pole, thresholds and bounds, with their letters above the frame."""
    import altair as alt

    groups: list[dict[str, Any]] = []
    for letter, name, value in marked(c, top):
        near = groups and np.sqrt(value / top) - np.sqrt(groups[-1]["eta"] / top) < NEAR
        if near:
            groups[-1]["text"] += letter
            groups[-1]["names"] += f", {name}"
        else:
            groups.append({"eta": value, "text": letter, "names": name})
    if not groups:
        return []
    at = alt.X("eta:Q", scale=x_scale)
    says = [alt.Tooltip("names:N", title=" "), alt.Tooltip("eta:Q", format=".4~g")]
    rule = alt.Chart(data_of(groups)).mark_rule(color=PALE, strokeWidth=1.5)
    layers = [rule.encode(x=at, tooltip=says)]
    for row, some in enumerate(_rows_of_letters(groups, top)):
        text = alt.Chart(data_of(some)).mark_text(
            dy=-8 - 13 * row, fontSize=12, color=SOFT, fontWeight="bold"
        )
        layers.append(text.encode(x=at, text="text:N", y=alt.value(0), tooltip=says))
    return layers


def _rows_of_letters(groups: list[dict[str, Any]], top: float) -> list[list[dict[str, Any]]]:
    """Groups that would touch on a narrow screen stand in different rows, the lowest first."""
    rows: list[list[dict[str, Any]]] = []
    for one in groups:
        for row in rows:
            apart = np.sqrt(one["eta"] / top) - np.sqrt(row[-1]["eta"] / top)
            if apart > LETTER * (len(one["text"]) + len(row[-1]["text"])) / 2.0:
                row.append(one)
                break
        else:
            rows.append([one])
    return rows
