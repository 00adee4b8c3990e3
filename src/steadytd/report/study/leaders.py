"""The sentence and the picture with which the page of a study of several problems begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from steadytd.base.wording import listed
from steadytd.report.figures import channels, data_of, dotted, shapes, styled, tick_axis
from steadytd.report.palette import PALE, look
from steadytd.report.study.axes import error_axis, error_scale
from steadytd.report.study.figures import heading
from steadytd.studies.analysis.reading import Chapter

MOST_NAMED = 3  # learners of a tie
LEAST, MOST = 1e-4, 10.0  # shares of the error at w0 beyond which dots lie at the edge


def leaders_words(chapters: Sequence[Chapter], what: str) -> str:
    """Who has the least error on which problem; learners that cannot be told apart share it."""
    places: dict[str, list[str]] = {}
    for chapter in chapters:
        group = chapter.groups[0] if chapter.groups else []
        first = next((b for b in chapter.best if b.algorithm in group), None)
        known = first is not None and np.isfinite(first.measured.value)
        names = group if len(group) <= MOST_NAMED else [*group[:MOST_NAMED], "others"]
        places.setdefault(listed(names) if known else "no learner", []).append(chapter.label)
    said = "; ".join(f"{names} on {listed(labels)}" for names, labels in places.items())
    return f"Least {what}: {said}."


def leaders_chart(chapters: Sequence[Chapter], what: str) -> Any | None:
    """The error of every learner at its best, as a share of that at w0: one line per problem."""
    import altair as alt

    rows: list[dict[str, Any]] = [
        {
            "problem": chapter.label,
            "learner": b.algorithm,
            "share": b.measured.value / chapter.start,
            "drawn": float(np.clip(b.measured.value / chapter.start, LEAST, MOST)),
            "error": b.measured.value,
            "settings": b.shown,
        }
        for chapter in chapters
        for b in chapter.best
        if np.isfinite(b.measured.value) and chapter.start > 0.0
    ]
    if not rows:
        return None
    names = list(dict.fromkeys(row["learner"] for row in rows))
    log, low, high = error_axis(np.array([row["drawn"] for row in rows]))
    scale = error_scale(log, low, high)
    found = {name: look(name) for name in names}
    colour, _ = channels("learner", found, columns=5)
    x = alt.X(
        "drawn:Q", scale=scale, title=f"{what}, of that at w0", axis=tick_axis(log, low, high)
    )
    order = [chapter.label for chapter in chapters]
    y = alt.Y("problem:N", sort=order, title=None, axis=alt.Axis(grid=True, labelLimit=230))
    says = ["problem:N", "learner:N", "settings:N", alt.Tooltip("error:Q", format=".4~g"),
            alt.Tooltip("share:Q", title="of that at w0", format=".3~g")]  # fmt: skip
    dots = alt.Chart(data_of(rows)).mark_point(filled=True, size=95, opacity=0.95)
    one = alt.Chart(data_of([{"one": 1.0}])).mark_rule(color=PALE, strokeDash=[4, 3], clip=True)
    layers = [
        dots.encode(x=x, y=y, color=dotted(colour), shape=shapes("learner", found), tooltip=says),
        one.encode(x=alt.X("one:Q", scale=scale)),
    ]
    notes = ["left is better; dashed: no better than w0"]
    if any(row["share"] != row["drawn"] for row in rows):
        notes.append(f"less than {LEAST:g} and more than {MOST:g} are drawn as that")
    title = heading("Each learner at its best, on every problem", notes)
    size = {"width": 620, "height": 42 * len(order) + 40, "title": title}
    return styled(alt.layer(*layers).properties(**size, usermeta={"toggle": "learner"}))
