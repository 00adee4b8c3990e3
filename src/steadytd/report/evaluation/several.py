"""Several answers in one: rewards, one below the other, and segments with their forest plot."""

from __future__ import annotations

import math
from typing import Any

from steadytd.evaluation.result import Evaluation
from steadytd.evaluation.segments import SegmentValue
from steadytd.report.evaluation.figures import BEHAVIOR, WIDTH
from steadytd.report.evaluation.text import LEVEL, estimate_text, interval_text
from steadytd.report.figures import alt, intervals, marks, says, styled
from steadytd.report.palette import GOOD, SOFT

SEGMENT_COLUMNS = {
    "segment": "segment", "target": "target", "units": ">units", "value": ">value",
    "difference": ">difference", "interval": LEVEL.replace("interval", "joint interval"),
    "decision": "decision",
}  # fmt: skip
ROW = 22  # pixels of a segment in the plot


def answers(e: Evaluation) -> list[Evaluation]:
    """The evaluation of every reward; itself where it has one."""
    return list(e.rewards.values()) or [e]


def segment_rows(e: Evaluation) -> list[dict[str, str]]:
    """One row per segment and target."""
    if e.segments is None:
        return []
    many = len(e.targets) > 1
    return [
        {
            "segment": r.segment,
            "target": r.target if many else "",
            "units": f"{r.units:,}",
            "value": estimate_text(r.value, r.lo, r.hi),
            "difference": estimate_text(r.difference, r.difference_lo, r.difference_hi),
            "interval": interval_text(r.difference_lo, r.difference_hi),
            "decision": r.decision if r.trusted else f"not trusted: {', '.join(r.reasons)}",
        }
        for r in e.segments.rows
    ]


def segment_table(e: Evaluation) -> tuple[str, dict[str, str], list[dict[str, str]]]:
    """Title, columns and rows; of one target without its name."""
    columns = {k: v for k, v in SEGMENT_COLUMNS.items() if k != "target" or len(e.targets) > 1}
    name = "" if e.segments is None else e.segments.column
    return f"{e.reward_name} by {name}".strip(), columns, segment_rows(e)


def forest_chart(e: Evaluation) -> Any | None:
    """The differences of all segments with their joint intervals, against no difference."""
    if e.segments is None:
        return None
    rows = [_dot(r) for r in e.segments.rows]
    if not any(row["at"] is not None for row in rows):
        return None
    title = "difference to the policy that made the log"
    x = alt.X("at:Q", title=title, scale=alt.Scale(zero=True))
    y = alt.Y("segment:N", title=None, sort=None, axis=alt.Axis(labelLimit=130, grid=False))
    tip = says("segment", "target", "decision", at="difference", lo="from", hi="to")
    trust = alt.Color("sure:N", legend=None, scale=alt.Scale(domain=["yes", "no"],
                      range=[GOOD, SOFT]))  # fmt: skip
    places = {"x": x, "y": y, "color": trust, "tooltip": tip}
    if len(e.targets) > 1:
        places["yOffset"] = alt.YOffset("target:N", sort=None)
    known = [row for row in rows if row["at"] is not None]
    layers = [
        marks("rule", [{"at": 0.0}], {"x": x}, strokeDash=[5, 4], color=BEHAVIOR),
        intervals(known, places, strokeWidth=3),
        marks("point", known, places, shape="diamond", size=110, filled=True, opacity=1),
    ]
    heading = f"{e.reward_name} by {e.segments.column}, joint 95 % intervals".strip()
    height = 90 + ROW * len(rows)
    fit = alt.AutoSizeParams(type="fit", contains="padding")
    title_of = alt.TitleParams(heading, anchor="start", frame="bounds", fontSize=13)
    chart = alt.layer(*layers).properties(width=WIDTH, height=height, title=title_of, autosize=fit)
    return styled(chart)


def _dot(r: SegmentValue) -> dict[str, Any]:
    numbers = {"at": r.difference, "lo": r.difference_lo, "hi": r.difference_hi}
    clean = {k: v if math.isfinite(v) else None for k, v in numbers.items()}
    sure = "yes" if r.trusted else "no"
    return {**clean, "segment": r.segment, "target": r.target, "sure": sure,
            "decision": r.decision if r.trusted else "not trusted"}  # fmt: skip
