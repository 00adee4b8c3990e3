"""The estimators that value actions: what they are called, and their answers for one target.

They need the target's probabilities of all actions. None of them is recommended while another
learner has an answer: how far their intervals can be trusted has not been measured yet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.errors import InputError, unknown
from steadytd.engine.learner import parse_params
from steadytd.evaluation.collect.action_sums import shapes
from steadytd.evaluation.collect.plan import ActionPlan, Plan, Where
from steadytd.evaluation.collect.statistics import Statistics
from steadytd.evaluation.estimate.bootstrap import NONE, Interval
from steadytd.evaluation.estimate.methods.drl_q import Corrected, drl_q
from steadytd.evaluation.estimate.methods.fqe import fqe
from steadytd.evaluation.estimate.methods.lstdq import ActionSystem, lstdq

FEW = 200  # features times actions, up to which the usual ones are found without being asked for
LAM = 0.9


@dataclass(frozen=True)
class ByAction:
    """An estimator: what it is, whether it is one of the usual ones, and whether it has a lam."""

    name: str
    summary: str
    usual: bool = True
    has_lam: bool = False


BY_ACTION = {
    one.name: one
    for one in (
        ByAction("lstdq", "LSTD for values of actions; it needs no ratios"),
        ByAction("fqe", "fitted Q evaluation, iterated until it settles", usual=False),
        ByAction("drl_q", "doubly robust: lstdq's values, corrected by ratios", has_lam=True),
    )
}


def parsed(text: str) -> tuple[str, float | None] | None:
    """Name and lam of an estimator of this kind; None if the text is not one's.

    >>> parsed("drl_q:lam=0.5"), parsed("drl_q"), parsed("lstdq"), parsed("lstd")
    (('drl_q', 0.5), ('drl_q', 0.9), ('lstdq', None), None)
    """
    name, _, rest = (part.strip() for part in text.partition(":"))
    one = BY_ACTION.get(name)
    if one is None:
        return None
    given = dict(parse_params(name, rest))
    for key in given:
        if not one.has_lam:
            raise InputError(f"{name} has no parameter '{key}'; only drl and drl_q have one, lam.")
        if key != "lam":
            raise unknown(f"parameter of {name}", key, ["lam"])
    if not one.has_lam:
        return name, None
    return name, _lam(name, given.get("lam", LAM))


def _lam(name: str, given: Any) -> float:
    try:
        lam = float(given)
    except (TypeError, ValueError):
        lam = math.nan
    if not 0.0 <= lam <= 1.0:
        raise InputError(f"{name}: lam must be a number in [0, 1], got {given}; try lam={LAM}.")
    return lam


def numbers_per_block(plan: ActionPlan | None, features: int) -> int:
    """How many numbers the sums of one block hold."""
    return sum(math.prod(shape) for shape in shapes(plan, features).values())


class Answer(NamedTuple):
    """What an estimator says of one target."""

    value: float
    interval: Interval
    fixed_point: float
    stable: bool | None = None
    diverged: int | None = None  # iterations, where they diverge
    radius: float | None = None  # of an iteration: the spectral radius that decides whether it
    settled: bool = True  # settles, and whether it has


class Support(NamedTuple):
    """What the log shows of a target's actions."""

    rows: int  # that the sums hold,
    left_out: int  # and that they do not, since the next probabilities are not known
    unseen: tuple[int, ...]  # actions that the target takes and that no row shows
    share: float  # their probability under the target, the mean over all rows


def support(u: Statistics, place: int) -> Support:
    """What the log shows of the actions of the target with this place among the whole ones."""
    rows, *rest = u.q_counts[:, place].sum(axis=0).tolist()
    seen, chance = np.array(rest).reshape(2, -1)
    missing = np.flatnonzero((seen == 0.0) & (chance > 0.0))
    share = float(chance[missing].sum() / max(u.rows, 1))
    return Support(int(rows), u.rows - int(rows), tuple(missing.tolist()), share)


def answer(
    asked: tuple[str, float | None], u: Statistics, plan: Plan, target: int, where: Where
) -> Answer:
    """The answer of an estimator, named with its lam, for one target."""
    name, lam = asked
    assert plan.by_action is not None
    place = plan.by_action.targets.index(target)
    with np.errstate(all="ignore"):  # of few rows
        if lam is not None:
            at = plan.by_action.lams.index(lam)
            found = drl_q(Corrected(u, target, place, lam, at, where))
            return Answer(found.value, found.interval, found.value)
        s = ActionSystem.of(u, place, where)
        found = lstdq(s)
        if name == "lstdq":
            return Answer(found.value, found.interval, found.value)
        fitted = fqe(s)
    gone = None if np.isfinite(fitted.value) else fitted.iterations
    limits = NONE
    if fitted.stable and fitted.settled:  # the same as lstdq's, up to the last digits
        lo, hi = found.interval
        limits = Interval(fitted.value - (found.value - lo), fitted.value + (hi - found.value))
    stable, radius, settled = fitted.stable, fitted.radius, fitted.settled
    return Answer(fitted.value, limits, found.value, stable, gone, radius, settled)
