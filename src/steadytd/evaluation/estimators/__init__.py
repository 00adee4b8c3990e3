"""Estimators of a target's value: one class per method; the registry names them."""

from __future__ import annotations

import math
from functools import cache

from steadytd.base.errors import InputError
from steadytd.base.registry import plugins
from steadytd.engine.learner import parse_params
from steadytd.evaluation.estimators.action_values import LAM, ActionEstimator, DrlQ, Fqe, Lstdq
from steadytd.evaluation.estimators.base import Estimator
from steadytd.evaluation.estimators.drl import Drl
from steadytd.evaluation.estimators.importance_sampling import Pdis, Snpdis
from steadytd.evaluation.estimators.solved import Mis, Solved

GROUP = "steadytd.estimators"
OWN: dict[str, type[Estimator]] = {
    one.name: one for one in (Drl, Snpdis, Pdis, Mis, Lstdq, Fqe, DrlQ)
}
DEFAULT = ("drl", "snpdis", "pdis")  # what an evaluation adds where no learner is named
RENAMED = {"dr": "drl:lam=1"}


@cache
def registered() -> dict[str, type[Estimator]]:
    """All estimators by name: the library's own, and those of other packages."""

    def check(name: str, found: object) -> type[Estimator]:
        if not (isinstance(found, type) and issubclass(found, Estimator)):
            raise ValueError("it must be a class derived from steadytd's Estimator")
        if getattr(found, "name", None) != name:
            raise ValueError(f"its name is '{getattr(found, 'name', None)}', not '{name}'")
        return found

    more = plugins(GROUP, {*OWN, *RENAMED, Solved.name}, check)
    return {**OWN, **{name: one for name, one in more.items() if isinstance(one, type)}}


def named(text: str) -> Estimator | None:
    """The estimator of a text such as `drl:lam=1`; None if the name is not one's.

    >>> named("drl_q:lam=0.5").label, named("lstdq").label, named("lstd")
    ('drl_q:lam=0.5', 'lstdq', None)
    """
    name, _, rest = (part.strip() for part in text.partition(":"))
    if name in RENAMED:
        raise InputError(
            f"{name} is now {RENAMED[name]}; plain drl chooses lam from the data. Ask for one of "
            "the two."
        )
    kind = registered().get(name)
    if kind is None:
        return None
    given = dict(parse_params(name, rest))
    if not given:
        return kind()
    wrong = [key for key in given if key != "lam" or kind not in (Drl, DrlQ)]
    if wrong:
        raise InputError(f"{name} has no parameter '{wrong[0]}'; only drl and drl_q have one, lam.")
    return Drl(_lam(name, given["lam"])) if kind is Drl else DrlQ(_lam(name, given["lam"]))


def _lam(name: str, given: object) -> float:
    try:
        lam = float(str(given))
    except ValueError:
        lam = math.nan
    if not 0.0 <= lam <= 1.0:
        raise InputError(f"{name}: lam must be a number from 0 to 1, got {given}; try lam={LAM}.")
    return lam


__all__ = ["ActionEstimator", "Estimator", "named", "registered"]
