"""How far an evaluation's learners are apart, as a picture."""

from __future__ import annotations

import math
from typing import Any

from steadytd.evaluation.result import Evaluation
from steadytd.report.evaluation.figures import DRAWN, data, heading, more
from steadytd.report.figures import styled

CAP = 10.0  # standard errors apart: beyond, a difference looks no stronger


def agreement_chart(e: Evaluation) -> Any:
    """How far the learners are apart, pair by pair, in standard errors; a panel per target."""
    import altair as alt

    shown = e.targets[:DRAWN]
    frame = e.agreement.to_dicts()
    order = list(dict.fromkeys([*e.values["learner"], *frame_names(frame)]))
    panels = []
    for name in shown:
        rows = [r for r in frame if r["target"] == name]
        if rows:
            panels.append(_matrix(name, rows, order))
    chart = alt.concat(*panels, columns=2, spacing=26).properties(
        title=heading(
            "Disagreement: row minus column" + more(e),
            [
                "green: may be chance (the 99 % interval holds 0); orange: more than chance, "
                "darker: surer;",
                "white: the same fixed point; grey: no interval",
            ],
        )
    )
    return styled(chart)


def frame_names(rows: list[dict[str, Any]]) -> list[str]:
    """Learners that are compared without having been asked for come last."""
    return [name for row in rows for name in (row["other"], row["learner"])]


def _matrix(name: str, rows: list[dict[str, Any]], learners: list[str]) -> Any:
    import altair as alt

    present = set(frame_names(rows))
    order = [learner for learner in learners if learner in present]
    cells = []
    for r in (_below(row, order) for row in rows):
        error = r["stderr"]
        known = r["agree"] is not None and error and math.isfinite(error)
        sure = min(abs(r["difference"]) / error, CAP) if known else 0.0
        level = "not known" if not known else "agree" if r["agree"] else "apart"
        cells.append(
            {
                "learner": r["learner"],
                "other": r["other"],
                "text": short(r["difference"]),
                "colour": _cell_colour(level, sure),
                "ink": "white" if level == "apart" and sure > 0.75 * CAP else "#222222",
            }
        )
    x = alt.X(
        "other:N", sort=order, title=None, axis=alt.Axis(labelAngle=-35, labelLimit=120, grid=False)
    )
    y = alt.Y("learner:N", sort=order, title=None, axis=alt.Axis(labelLimit=140, grid=False))
    base = alt.Chart(data(cells)).encode(x=x, y=y)
    box = base.mark_rect(stroke="white").encode(color=alt.Color("colour:N", scale=None))
    text = base.mark_text(fontSize=10).encode(text="text:N", color=alt.Color("ink:N", scale=None))
    title = alt.TitleParams(name, anchor="start", fontSize=13)
    return alt.layer(box, text).properties(width=alt.Step(38), height=alt.Step(22), title=title)


def short(value: float) -> str:
    """A number for a small box.

    >>> short(-234.5), short(0.0617), short(2.3e7), short(float("nan"))
    ('-230', '0.062', '2e+07', 'none')
    """
    if not math.isfinite(value):
        return "none"
    if value != 0.0 and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.0e}"
    return f"{float(f'{value:.2g}'):g}"


def _below(row: dict[str, Any], order: list[str]) -> dict[str, Any]:
    """The pair in the order of the rows, so that the matrix has a lower triangle only."""
    if order.index(row["learner"]) > order.index(row["other"]):
        return row
    swapped = {"learner": row["other"], "other": row["learner"]}
    return {**row, **swapped, "difference": -row["difference"]}


def _cell_colour(level: str, sure: float) -> str:
    if level == "not known":
        return "#eeeeee"
    if level == "agree":
        return "#cfe9dc"
    share = min(sure / CAP, 1.0)
    ends = ((252, 229, 205), (190, 70, 10))
    mixed = [round(a + share * (b - a)) for a, b in zip(*ends, strict=True)]
    return "#" + "".join(f"{c:02x}" for c in mixed)
