"""The paper's figures, and the supplement's panels as the authors drew them beside ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from steadytd.learners import learner as make_learner
from steadytd.report.figures import Curve, learning_curves
from steadytd.report.reproduction.panels import LOWEST, panel
from steadytd.reproduction.paper import Figure
from steadytd.reproduction.reproduce import Reproduction
from steadytd.reproduction.statements import LIKELY
from steadytd.reproduction.verdict import ZERO
from steadytd.theory.dynamics import best_error


def figure_chart(figure: Figure, done: Reproduction) -> Any:
    """A figure of the paper, or a panel of its supplement."""
    if figure.axis is not None:
        steps = done.results[figure.problem].steps
        return panel(f"{figure.name}: {figure.title}", steps, _curves(figure, done), figure.axis)
    result = done.results[figure.problem]
    curves = _curves(figure, done)
    unstable = [row for row in done.rows if row.name == figure.name and not row.stable]
    finite = np.concatenate([c.errors[np.isfinite(c.errors)] for c in curves])
    best = best_error(result.task)
    high = 2.0 * float(finite.max())
    low = max(LOWEST, min(float(finite.min()), best if best > ZERO else np.inf))
    low /= (high / low) ** 0.05  # room below the lowest curve
    notes = [f"mean and range of {len(result.seeds)} runs"]
    if best <= ZERO:
        notes.append("the best possible error is 0")
    if any(curve.likely for curve in curves):
        share = f"{100 * (LIKELY[1] - LIKELY[0]):.0f} of 100"
        notes.append(f"thin lines: {share} such means lie between them")
    return learning_curves(
        f"{figure.name}: {figure.title}",
        "; ".join(notes),
        result.steps,
        curves,
        log=bool(unstable),
        best=best if best > ZERO else None,
        domain=(low, high) if unstable else None,
    )


def _curves(figure: Figure, done: Reproduction) -> list[Curve]:
    """The curves of a figure; with the likely range of the mean where theory gives one."""
    result, theories = done.results[figure.problem], done.theories[figure.problem]
    texts = [str(x) for x in result.learners]
    curves = []
    for claim in figure.claims:
        text = str(make_learner(claim.learner))
        spread = theories[text].spread
        likely = None
        if spread is not None:
            low, high = np.quantile(spread.means, LIKELY, axis=0, method="nearest")
            likely = spread.steps, low, high
        name = text.partition(":")[0]
        curves.append(Curve(claim.label, result.errors[texts.index(text)], likely, name))
    return curves
