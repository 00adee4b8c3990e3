"""Which penalties keep clear of trouble: of every pole, every crossing, every steep stretch.

Penalties without a stable mean update are *trouble*: the intervals between crossings, and the
poles, where M(eta) is singular. A penalty is *clear* if

1. the mean update is stable;
2. no trouble lies within a tenth of eta, nor within a fiftieth of the largest troublesome penalty
   (so a very small eta, with its very small tenth, cannot hide beside a crossing);
3. moving eta by one per cent, up or down, moves the values by at most a tenth of their norm.

Negative penalties are no trouble, since nobody can use them, and so 3 says nothing about eta = 0.

At lam = 0 the resolvent identity Phi w(e) - Phi w(eta) = (eta - e) Phi (K + e)^-1 w(eta), with
K = G^-1 A_0, and |(K + e)^-1| <= 1/(e - eta_pd) show that **every eta >= eta_pd/0.89 is clear**:
one per cent down moves the values by at most 0.01 eta/(0.99 eta - eta_pd) <= 0.1 of their norm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.engine.learner import Learner
from steadytd.mdp.kept import kept
from steadytd.mdp.moments import Moments
from steadytd.mdp.problem import Problem
from steadytd.mdp.scales import slowest
from steadytd.theory import dynamics
from steadytd.theory.thresholds import Interval, Pencil

MARGIN = 0.1  # of eta: the distance kept from all trouble
FLOOR = 0.02  # of the largest troublesome penalty: the least such distance
NUDGE = 0.01  # of eta: so far it is moved to see how steep w(eta) is
STEEP = 0.1  # of the values' norm: a nudge must not move them farther
SAME = 1e-9  # relative difference below which two matrices are the same
PROBE = 0.7  # the penalty at which a law's own matrix is compared with A_lam + eta G
SCAN = 64  # penalties looked at where the crossings are no eigenvalues (scaled traces)


@dataclass(frozen=True, eq=False)
class PenaltyPath:
    """M(eta) w = g(eta) on the row space, for every penalty, and the penalties that are trouble."""

    moments: Moments
    pencil: Pencil  # of the same traces, for its coordinates
    system: Callable[[float], tuple[Floats, Floats]]
    poles: list[float]
    unstable: list[Interval]
    definite: float = float("inf")  # M(eta) is positive definite for all larger eta

    @cached_property
    def largest(self) -> float:
        """The largest troublesome penalty, or 0."""
        return max([0.0, *self.poles, *(high for _, high in self.unstable)])

    def weights(self, eta: float) -> Floats | None:
        """w(eta) in the original coordinates; None at a pole."""
        M, g = self.system(eta)
        try:
            return np.asarray(self.pencil.Q @ np.linalg.solve(M, g))
        except np.linalg.LinAlgError:
            return None

    def is_stable(self, eta: float) -> bool:
        """Whether all eigenvalues of M(eta) have a positive real part."""
        if eta > self.definite + 1e-9 * (1.0 + abs(self.definite)):
            return True
        return self.slowest(eta) > 0.0

    def slowest(self, eta: float) -> float:
        """The least real part of an eigenvalue of M(eta), 0 up to rounding."""
        return slowest(self.system(eta)[0], self.pencil.sizes, float(np.abs(self.pencil.G).max()))

    def reach(self, eta: float) -> float:
        """How far from eta there must be no trouble."""
        return max(MARGIN * eta, FLOOR * self.largest)

    def near(self, eta: float, trouble: Interval) -> bool:
        """Whether some of the trouble is within reach."""
        low, high = trouble
        return low <= eta + self.reach(eta) and eta - self.reach(eta) <= high

    def steepness(self, eta: float) -> float:
        """By what share of their norm a nudge of eta moves the values, at most."""
        here, *there = (self.weights(eta * f) for f in (1.0, 1.0 - NUDGE, 1.0 + NUDGE))
        if here is None or any(w is None for w in there):
            return float("inf")
        moved = max(self._norm(w - here) for w in there if w is not None)
        size = self._norm(here)
        return moved / size if size > 0.0 else float("inf") if moved > 0.0 else 0.0

    def _norm(self, w: Floats) -> float:
        return float(np.sqrt(self.moments.d @ (self.moments.Phi @ w) ** 2))

    def is_clear(self, eta: float) -> bool:
        """Whether nothing speaks against this penalty but perhaps its error."""
        trouble = [*self.unstable, *((p, p) for p in self.poles)]
        if any(self.near(eta, t) for t in trouble) or self.steepness(eta) > STEEP:
            return False
        around = (max(0.0, eta - self.reach(eta)), eta, eta + self.reach(eta))
        return all(self.is_stable(e) for e in around)  # a scan may have missed a short interval

    @property
    def edges(self) -> list[float]:
        """Where clear penalties may begin or end: just out of reach of each trouble."""
        hair = 1e-9 * (1.0 + self.largest)
        trouble = [*self.unstable, *((p, p) for p in self.poles)]
        above = [self.edge_above(high) + hair for _, high in trouble]
        below = [min(low - FLOOR * self.largest, low / (1.0 + MARGIN)) - hair for low, _ in trouble]
        return [e for e in (*above, *below) if e >= 0.0]

    def edge_above(self, high: float) -> float:
        """From here on trouble that ends at `high` is out of reach."""
        return max(high + FLOOR * self.largest, high / (1.0 - MARGIN))


@kept(64)
def path_of(problem: Problem, learner: Learner, policy: int = 0) -> PenaltyPath:
    """The path of a perturbed learner; its own eta does not matter.

    M(eta) = A_lam + eta G has crossings that are known. Where the law's own M is another (scaled
    traces), they are searched for by a scan below ||P_gamma|| - 1; above it scaled traces are
    stable.
    """
    m = problem.moments(policy)
    pencil = Pencil.of(m) if not learner.traced else Pencil.of(m, float(learner["lam"]))
    if learner.law.block is None and not _adds_penalty(problem, learner, policy, pencil):
        return _scanned(problem, learner, policy, pencil)
    return _path(m, pencil) if learner.traced else penalty_path(problem, policy)


@kept(64)
def penalty_path(problem: Problem, policy: int = 0) -> PenaltyPath:
    """The path of A_0 + eta G, without traces."""
    m = problem.moments(policy)
    return _path(m, Pencil.of(m))


def _adds_penalty(problem: Problem, learner: Learner, policy: int, pencil: Pencil) -> bool:
    """Whether M(eta) is the pencil's A_0 + eta G and g its b, seen at one penalty."""
    M, g = _system(problem, learner.replace(eta=PROBE), policy, pencil)
    A = pencil.A(PROBE)
    far, apart = np.abs(M - A).max(), np.abs(g - pencil.b).max()
    size = np.abs(A).max(), np.abs(pencil.b).max()
    return bool(far <= SAME * size[0] and apart <= SAME * size[1])


def _system(
    problem: Problem, learner: Learner, policy: int, pencil: Pencil
) -> tuple[Floats, Floats]:
    """The law's own M and g in the pencil's coordinates."""
    e = dynamics.reduced(problem, learner, policy)
    if pencil.sizes is None:
        return e
    return e.M / np.outer(pencil.sizes, pencil.sizes), e.g / pencil.sizes


def _path(m: Moments, pencil: Pencil) -> PenaltyPath:
    return PenaltyPath(
        moments=m,
        pencil=pencil,
        system=lambda eta: (pencil.A(eta), pencil.b),
        poles=[p for p in pencil.poles if p >= 0.0],
        unstable=pencil.unstable_from(0.0),
        definite=pencil.eta_pd,
    )


def _scanned(problem: Problem, learner: Learner, policy: int, pencil: Pencil) -> PenaltyPath:
    m = problem.moments(policy)

    def system(eta: float) -> tuple[Floats, Floats]:
        return _system(problem, learner.replace(eta=float(eta)), policy, pencil)

    path = PenaltyPath(moments=m, pencil=pencil, system=system, poles=[], unstable=[])
    end = m.operator_norm - 1.0
    unstable: list[Interval] = []
    if end > 0.0:
        from scipy.optimize import brentq

        grid = end * np.linspace(0.0, 1.0, SCAN) ** 2
        rates = [path.slowest(eta) for eta in grid]
        start = 0.0 if rates[0] <= 0.0 else None
        for i in range(SCAN - 1):
            if (rates[i] <= 0.0) is (rates[i + 1] <= 0.0):
                continue
            change = float(brentq(path.slowest, grid[i], grid[i + 1], xtol=1e-12))
            if start is None:
                start = change
            else:
                unstable.append((start, change))
                start = None
        if start is not None:  # rounding at the very end
            unstable.append((start, end))
    return replace(path, unstable=unstable)
