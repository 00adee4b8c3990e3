"""How far an evaluation's learners are apart, as a picture."""

from __future__ import annotations

import math
import re
from typing import Any

from steadytd.evaluation.result import Evaluation
from steadytd.report.evaluation.panels import data, framed, of_target, says
from steadytd.report.palette import GOOD, INK, PALE, SHADE

CAP = 10.0  # standard errors apart: beyond, a difference looks no stronger
COLOURS = {"not known": PALE, "agree": GOOD, "apart": SHADE}


def agreement_chart(e: Evaluation, name: str) -> Any | None:
    """How far a target's learners are apart, pair by pair; None where there is no pair."""
    rows = of_target(e.agreement, name).to_dicts()
    order = list(dict.fromkeys([*e.values["learner"], *frame_names(rows)]))
    return _matrix(name, rows, order) if rows else None


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
        known = r["agree"] is not None
        sure = min(abs(r["difference"]) / error, CAP) if known and error else 0.0
        level = "not known" if not known else "agree" if r["agree"] else "apart"
        cells.append(
            {
                "learner": r["learner"],
                "other": r["other"],
                "text": short(r["difference"]),
                "level": level,
                "difference": r["difference"],
                "stderr": error,
                "colour": COLOURS[level],
                "strength": 0.2 + 0.7 * sure / CAP if level == "apart" else 0.25,
                "ink": "white" if level == "apart" and sure > 0.75 * CAP else INK,
            }
        )
    x = alt.X(
        "other:N", sort=order, title=None, axis=alt.Axis(labelAngle=-40, labelLimit=110, grid=False)
    )
    y = alt.Y("learner:N", sort=order, title=None, axis=alt.Axis(labelLimit=110, grid=False))
    base = alt.Chart(data(cells)).encode(x=x, y=y)
    told = says("learner", "other", "level", difference="difference", stderr="standard error")
    box = base.mark_rect(stroke="white").encode(
        color=alt.Color("colour:N", scale=None),
        fillOpacity=alt.FillOpacity("strength:Q", scale=None),
        tooltip=told,
    )
    text = base.mark_text(fontSize=10).encode(text="text:N", color=alt.Color("ink:N", scale=None))
    return framed([box, text], f"{name}: row minus column", 150 + 21 * len(order))


def short(value: float) -> str:
    """A number for a small box.

    >>> short(-234.5), short(0.0617), short(2.3e7), short(float("nan"))
    ('-230', '0.062', '2e7', 'none')
    """
    if not math.isfinite(value):
        return "none"
    if value != 0.0 and not 1e-3 <= abs(value) < 1e5:
        return re.sub(r"e([+-])0*", lambda sign: "e" + sign[1].strip("+"), f"{value:.0e}")
    return f"{float(f'{value:.2g}'):g}"


def _below(row: dict[str, Any], order: list[str]) -> dict[str, Any]:
    """The pair in the order of the rows, so that the matrix has a lower triangle only."""
    if order.index(row["learner"]) > order.index(row["other"]):
        return row
    swapped = {"learner": row["other"], "other": row["learner"]}
    return {**row, **swapped, "difference": -row["difference"]}
