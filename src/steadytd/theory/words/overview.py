"""Every registered learner on one problem, side by side."""

from __future__ import annotations

from typing import Any

from steadytd.base.errors import InputError
from steadytd.engine.law import AUTO, Law
from steadytd.learners import algorithm, names
from steadytd.theory.analysis import Analysis
from steadytd.theory.choose import LARGE_RANK


def overview(c: Analysis) -> list[dict[str, Any]]:
    """Name, parameters, stability, variance, error of the fixed point, largest step size if known.

    With "auto" where it is offered, and for large problems only the learners that are compared:
    the others' matrices are several times as large as the problem. A learner without closed form
    on this problem (COP-TD and its kin where states are inactive) is left out.
    """
    rows = []
    for law in map(algorithm, names()) if c.pencil.rank <= LARGE_RANK else compared():
        if law.action_values or undecided(law):
            continue
        learner = c.resolved(law, **automatic(law))
        try:
            c.expectation(learner)
        except InputError:
            continue
        unknown = law.block is not None or law.first_order  # the mean of large steps is another
        row: dict[str, Any] = {
            "learner": law.name,
            "params": {k: v for k, v in learner.values.items() if k in law.params},
            "stable": c.is_stable(learner),
            "finite_variance": c.variance(learner).finite,
            "variance_growth": c.variance(learner).growth,
            "largest_alpha": None if unknown else c.largest_alpha(learner),
        }
        try:
            w = c.fixed_point(learner)
        except InputError:
            row |= {"error": None, "values": None}
        else:
            values = c.moments.Phi @ w
            row |= {"error": c.error(w), "values": values.tolist()}
        rows.append(row)
    return rows


def compared() -> list[Law]:
    """The registered laws that the certificate compares and may recommend, in their order."""
    laws = [law for law in map(algorithm, names()) if law.standing.place]
    return sorted(laws, key=lambda law: law.standing.place)


def undecided(law: Law) -> bool:
    """Whether a law has a hyper-parameter that nobody but the user can choose."""
    return any(param.default is None and not param.auto for param in law.params.values())


def automatic(law: Law) -> dict[str, object]:
    """The hyper-parameters of a law that offer "auto", set to it."""
    return {name: AUTO for name, param in law.params.items() if param.auto}
