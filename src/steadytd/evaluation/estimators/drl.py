"""DRL(lam): V(s_0) corrected by temporal differences, from marginal ratios to products of ratios.

Along an episode, with V(s) = x(s).w and omega(s) = x(s).beta (`mis`) from the *other* folds,

    U_0 = (1 - lam) omega(s_0) + lam,   U_t = (1 - lam) omega(s_t) + lam gamma_t rho_{t-1} U_{t-1},
    score = V(s_0) + sum_t U_t rho_t (r_t + gamma_{t+1} V(s_{t+1}) - V(s_t)).

Without episodes every row is a start:

    U_t = (1 - lam) omega(s_t) + lam (gamma_t rho_{t-1} U_{t-1} + 1).

J is the sum of the scores over the number of starts. lam = 0 is double reinforcement learning
(Kallus and Uehara, 2020), lam = 1 corrects by products of ratios over whole episodes. Bias of poor
features falls with lam, variance rises.

Where episodes are cut off J rests on w too, since nothing corrects V there. So unit u moves J
through w as well, by

    eta.(b_u - A_u w) / n,      A' eta = sum x_start - sum U rho (x - gamma' x').
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from steadytd.evaluation.estimators.base import Estimator
from steadytd.evaluation.intervals import Estimate, mean_of, nothing

if TYPE_CHECKING:
    from steadytd.evaluation.evidence import Evidence

GRID = (0.0, 0.5, 0.8, 0.95, 1.0)  # among these the rule of the interval chooses lam


class Drl(Estimator):
    """DRL(lam); without a lam it is the selected estimate, which the rule of the interval makes."""

    name = "drl"
    summary = "LSTD's values, corrected by temporal differences with ratios"

    def __init__(self, lam: float | None = None) -> None:
        self.lam = lam

    @property
    def label(self) -> str:
        """The name, and lam where it is given."""
        return self.name if self.lam is None else f"{self.name}:lam={self.lam:g}"

    def estimate(self, log: Evidence, target: int) -> Estimate:
        """DRL(lam), with what each unit does to it through w where episodes are cut off."""
        if self.lam is None:
            return nothing(log.n_units)
        return log.through(on_curve(log, target, self.lam), target, self.label)


def on_curve(log: Evidence, target: int, lam: float) -> Estimate:
    """DRL(lam) as it stands on the curve of a target."""
    curve = log.curves[target]
    scores = curve.scores[curve.lams.index(lam)]
    return replace(mean_of(scores, curve.starts), lam=lam)


def grid(lams: Iterable[float] = ()) -> tuple[float, ...]:
    """All lam of a curve: those that are chosen among, and others that were asked for.

    >>> grid([0.9])
    (0.0, 0.5, 0.8, 0.9, 0.95, 1.0)
    """
    return tuple(sorted({*GRID, *lams}))
