"""An online learner in words and as a picture of its weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from steadytd.base.wording import count, figures
from steadytd.engine.online import OnlineLearner
from steadytd.report.figures import as_text
from steadytd.report.palette import look

WIDE, TALL = 620, 240
BARS = 60  # features beyond which weights are drawn as a line


def online_words(a: OnlineLearner) -> list[str]:
    """What it is, how far it came, and whether it overflowed."""
    first = f"{a.learner}: {count(a.step, 'update')} on {count(a.n_features, 'feature')}."
    if a.diverged:
        at = int(a.block.diverged[0])
        return [first, f"It overflowed at update {at:,}: a weight left the finite range."]
    low, high = float(a.w.min()), float(a.w.max())
    return [first, f"Its weights lie between {figures(low)} and {figures(high)}."]


def online_chart(a: OnlineLearner) -> Any:
    """The weights by feature, in the learner's colour."""
    import altair as alt

    finite = np.where(np.isfinite(a.w), a.w, 0.0)
    rows = [{"feature": i, "weight": float(w)} for i, w in enumerate(finite)]
    base = alt.Chart(as_text(rows)).encode(
        x=alt.X("feature:O" if len(rows) <= BARS else "feature:Q", title="feature"),
        y=alt.Y("weight:Q", title="weight"),
        tooltip=["feature:Q", "weight:Q"],
    )
    colour = look(a.learner.name).colour
    drawn = base.mark_bar(color=colour) if len(rows) <= BARS else base.mark_line(color=colour)
    title = alt.TitleParams(str(a.learner), subtitle=count(a.step, "update"), anchor="start")
    return drawn.properties(width=WIDE, height=TALL, title=title)
