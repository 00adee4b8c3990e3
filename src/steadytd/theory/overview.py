"""Every registered learner on one problem, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steadytd.base.errors import InputError
from steadytd.engine.law import AUTO, Law
from steadytd.learners import algorithm, names
from steadytd.theory.choose import LARGE_RANK

if TYPE_CHECKING:
    from steadytd.theory.certificate import Certificate

CORE = ("td", "perturbed_td", "tdc", "etd")


def overview(certificate: Certificate) -> list[dict[str, Any]]:
    """Name, parameters, stability, error of the fixed point, largest step size (if any).

    With "auto" where it is offered, and for large problems only the learners that most would use:
    the others' matrices are several times as large as the problem. A learner without closed form
    on this problem (COP-TD and its kin where states are inactive) is left out.
    """
    rows = []
    for name in names() if certificate.pencil.rank <= LARGE_RANK else CORE:
        law = algorithm(name)
        if law.expectation is None or law.action_values or undecided(law):
            continue
        learner = certificate.resolved(law, **automatic(law))
        try:
            certificate.expectation(learner)
        except InputError:
            continue
        row: dict[str, Any] = {
            "learner": name,
            "params": {k: v for k, v in learner.values.items() if k in law.params},
            "stable": certificate.is_stable(learner),
            "largest_alpha": certificate.largest_alpha(learner) if law.block is None else None,
        }
        try:
            w = certificate.fixed_point(learner)
        except InputError:
            row |= {"error": None, "values": None}
        else:
            values = certificate.problem.Phi @ w
            row |= {"error": certificate.error(w), "values": values.tolist()}
        rows.append(row)
    return rows


def undecided(law: Law) -> bool:
    """Whether a law has a hyper-parameter that nobody but the user can choose."""
    return any(param.default is None and not param.auto for param in law.params.values())


def automatic(law: Law) -> dict[str, object]:
    """The hyper-parameters of a law that offer "auto", set to it."""
    return {name: AUTO for name, param in law.params.items() if param.auto}
