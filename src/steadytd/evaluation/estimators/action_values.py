"""Estimators that value actions, q(s, a) = x(s).theta_a; they need all probabilities of a target.

`lstdq`   A theta = b (`action_equations`), J the mean of sum_a pi(a|s) x(s).theta_a over the
          starts. It rests on the features, and not on the behaviour's probabilities. Unit u moves J
          by (beta.(b_u - A_u theta) + phi_u.theta - J n_u) / n, A' beta = phi.
`fqe`     fitted Q evaluation, theta_{k+1} = G^-1 (b + C theta_k) with A = G - C, from theta_0 = 0.
          Where it settles, it is where `lstdq` is. It settles from every start if and only if the
          spectral radius of G^-1 C is below 1; with few features that is not so in general.
`drl_q`   DRL(lam) with values of actions: omega as in `drl`, V(s) the mean of q(s, .), and
          r + gamma' V(s') - q(s, a) for the temporal difference. Where q is right the errors have
          mean 0 given state and action, so wrong ratios do no harm; where ratios are right, a wrong
          q does none.

None of them is recommended while another learner has an answer: how far their intervals can be
trusted has not been measured yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from steadytd.evaluation.action_equations import ActionEquations
from steadytd.evaluation.estimators.base import Estimator
from steadytd.evaluation.intervals import NONE, Estimate, Interval, mean_of, nothing
from steadytd.evaluation.rows import GROUPS
from steadytd.evaluation.scores import ActionSums, ActionValue, CurveSums, RowSums

if TYPE_CHECKING:
    from steadytd.evaluation.evidence import Evidence

FEW = 200  # features times actions, up to which the usual ones are found without being asked for
LAM = 0.9
MOST = 10_000  # regressions of fqe
SETTLED = 1e-10  # relative change of the weights in one of them
GONE = 1e100


class ActionEstimator(Estimator):
    """What they share: the equations, and the target's place among those known as a whole."""

    usual = True  # is found without being asked for, where features are few

    def equations(self, log: Evidence, target: int) -> tuple[ActionEquations, int]:
        """The equations of action values, and the place of a target among them."""
        found = log.first.by_action
        assert found is not None
        return found, found.places.index(target)


class Lstdq(ActionEstimator):
    """LSTD for values of actions."""

    name = "lstdq"
    summary = "LSTD for values of actions; it needs no ratios"

    def rows(self, log: Evidence, target: int) -> RowSums | None:
        """Sums with theta and beta of all units."""
        equations, place = self.equations(log, target)
        theta, beta = equations.solve(place, np.ones(GROUPS))
        return ActionSums(ActionValue(place, theta[None]), beta, log.units)

    def estimate(self, log: Evidence, target: int) -> Estimate:
        """The value with its influences."""
        sums = log.sums["lstdq", target]
        return mean_of(sums.start + sums.errors, log.starts)


class Fitted(NamedTuple):
    """Where the iteration of `fqe` ended; the value is NaN where it has diverged."""

    value: float
    radius: float  # the spectral radius of G^-1 C
    iterations: int
    settled: bool

    @property
    def stable(self) -> bool:
        """Whether the iteration settles from every start, by the certificate of the sums."""
        return self.radius < 1.0


class Fqe(ActionEstimator):
    """Fitted Q evaluation; its interval is that of `lstdq` where it settles."""

    name = "fqe"
    summary = "fitted Q evaluation, iterated until it settles"
    usual = False

    def rows(self, log: Evidence, target: int) -> RowSums | None:
        """Those of lstdq."""
        return Lstdq().rows(log, target)

    def fitted(self, log: Evidence, target: int) -> Fitted:
        """Iterate until weights settle, grow beyond all bounds, or 10,000 regressions are done."""
        s, w = self.equations(log, target)
        kept, total = s.independent(w, np.ones(GROUPS)), s.systems[:, w].sum(axis=0)
        A, b = total[np.ix_(kept, kept)], total[kept, -1]
        G = block_diag(*s.G[:, w].sum(axis=0))[np.ix_(kept, kept)]
        M, g = np.eye(len(kept)) - np.linalg.solve(G, A), np.linalg.solve(G, b)
        radius = float(np.abs(np.linalg.eigvals(M)).max(initial=0.0))
        start = s.start[:, w].sum(axis=0)[kept] / s.starts.sum()
        theta = np.zeros(len(kept))
        for k in range(1, MOST + 1):
            after = g + M @ theta
            change, size = np.linalg.norm(after - theta), np.linalg.norm(after)
            theta = after
            if not size < GONE:
                return Fitted(float("nan"), radius, k, False)
            if change <= SETTLED * size:
                return Fitted(float(start @ theta), radius, k, True)
        ended = float(start @ theta) if radius < 1.0 else float("nan")
        return Fitted(ended, radius, MOST, False)

    def lstdq_value(self, log: Evidence, target: int) -> float:
        """The value of the fixed point, which is lstdq's."""
        sums = log.sums[self.label, target]
        return float(sums.start.sum() / log.starts.sum())

    def estimate(self, log: Evidence, target: int) -> Estimate:
        """Where it ends, with the influences of lstdq; they mean something if it settles."""
        with np.errstate(all="ignore"):
            fitted, sums = self.fitted(log, target), log.sums[self.label, target]
            found = mean_of(sums.start + sums.errors, log.starts)
        known = fitted.stable and fitted.settled
        influence = found.influence if known else np.full(log.n_units, np.nan)
        return Estimate(fitted.value, influence)

    def interval(self, found: Estimate, level: float = 0.95) -> Interval:
        """That of lstdq, around the value; none where the iteration does not settle."""
        return found.interval(level) if np.isfinite(found.influence).all() else NONE


class DrlQ(ActionEstimator):
    """DRL(lam) with values of actions."""

    name = "drl_q"
    summary = "doubly robust: lstdq's values, corrected by ratios"

    def __init__(self, lam: float = LAM) -> None:
        self.lam, self._label = lam, f"{self.name}:lam={lam:g}"

    @property
    def label(self) -> str:
        """The name with lam."""
        return self._label

    def rows(self, log: Evidence, target: int) -> RowSums | None:
        """The recursion of `drl`, with omega and theta of the other folds."""
        equations, place = self.equations(log, target)
        pairs = log.equations.cross_fitted(target)
        thetas = [equations.solve(place, use).theta for use in log.equations.other_folds]
        known = [pair for pair in pairs if pair is not None]
        if len(known) < len(pairs) or log.units.number < 2:
            return None
        value = ActionValue(place, np.array(thetas))
        return CurveSums(target, known, (self.lam,), log.units, value)

    def estimate(self, log: Evidence, target: int) -> Estimate:
        """The mean score over starts."""
        sums = log.sums.get((self.label, target))
        if sums is None:
            return nothing(log.n_units)
        return log.through(mean_of(sums.scores[0], log.starts), target, self.label)
