"""Choosing `eta` and `ratio` when a learner says "auto" and the model is known.

`eta` is the penalty whose fixed point has the least error among those that are clear of every pole
and every crossing (`margin.py`), up to the theorem's bound (or 1): more than the bound is never
needed and only pulls the values to zero. Where that penalty is on a knife edge (halving or doubling
it multiplies the error by more than ten, to more than a tenth of the values' norm), it is the one
whose error is least when eta is off by a factor of two.

`ratio` adds no bias, so it is chosen for speed: the smallest power of two that is at least twice
the stabilising ratio and reaches nine tenths of the rate at which the slowest mode can decay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError
from steadytd.base.parallel import single_threaded
from steadytd.engine.learner import Learner
from steadytd.mdp.kept import kept
from steadytd.mdp.problem import Problem
from steadytd.theory import dynamics
from steadytd.theory.margin import PenaltyPath, path_of
from steadytd.theory.thresholds import LARGEST_EXACT, Pencil, bounds, real_ones

GRID = np.linspace(0.0, 1.0, 241) ** 2  # penalties tried, as shares of the largest: dense near 0
BESIDE = 1.0 + 1e-5  # times the end of an unstable interval: just outside
ZOOM, ZOOMS = 17, 8  # then so many between the neighbours of the best, so many times
DOUBLINGS = 30  # of the largest penalty, should none up to it be clear
TENFOLD = 10.0  # by so much halving or doubling eta multiplies the error on a knife edge,
MATTERS = 0.1  # and to more than this share of the values' norm
FLAT = 1e-9  # relative difference of errors below which they are equal
RATIOS = 2.0 ** np.arange(-6, 11)
LARGE_RANK = 60  # from here on only every fourth ratio is tried: eigenvalues take their time
ENOUGH = 0.9  # of the best rate: the rest costs a much larger second step size


def resolve(problem: Problem, learner: Learner, policy: int = 0) -> Learner:
    """The learner with every "auto" replaced by the number that the model asks for."""
    chosen = learner
    for name in learner.automatic:
        if name == "eta":
            chosen = chosen.replace(eta=best_penalty(problem, chosen.replace(eta=0.0), policy))
        elif name == "ratio":
            chosen = chosen.replace(ratio=best_ratio(problem, chosen.replace(ratio=1.0), policy))
        else:
            raise InputError(f"{learner.name}: {name}=auto is not offered; give a number.")
    return chosen


def best_penalty(
    problem: Problem, learner: Learner, policy: int = 0, *, clear: bool = True
) -> float:
    """The clear eta with the least error of the learner's fixed point."""
    return least_penalty(problem, path_of(problem, learner, policy), policy, clear=clear)


def least_penalty(
    problem: Problem, path: PenaltyPath, policy: int = 0, *, clear: bool = True
) -> float:
    """The clear eta with the least error on a path of fixed points, kept off a knife edge.

    If the error does not depend on eta (no rewards), the bound sqrt(gamma_max c_max) - 1 is taken
    where it is clear, as it is without traces as far as we have seen, and else twice the largest
    troublesome penalty: a penalty outside the trace may need more than that bound.

    On a knife edge the clear penalty is taken that has the least error when it is off by a factor
    of two (`PenaltyErrors.off`). With `clear=False` every stable eta counts, however close to a
    pole, a crossing or a knife edge: what the rules cost is the difference of the two errors.
    """
    found = _least_penalty(problem, path, policy, clear, off=False)
    if clear and errors_of(problem, path, policy).knife_edge(found):
        return _least_penalty(problem, path, policy, clear, off=True)
    return found


def knife_edge(problem: Problem, path: PenaltyPath, policy: int = 0) -> float | None:
    """The clear penalty of least error, if it is on a knife edge; else None."""
    eta = _least_penalty(problem, path, policy, True, off=False)
    return eta if errors_of(problem, path, policy).knife_edge(eta) else None


@dataclass(frozen=True, eq=False)
class PenaltyErrors:
    """The errors of the fixed points on a path, with the weights of states in them."""

    path: PenaltyPath
    states: Floats

    @cached_property
    def size(self) -> float:
        """The norm of the true values, in which errors are measured."""
        return float(np.sqrt(self.states @ self.path.moments.v_pi**2))

    @property
    def scale(self) -> float:
        """The size of the values and of the rewards, next to which errors may be rounding."""
        return self.size + self.path.moments.reward_size

    def at(self, eta: float) -> float:
        """The error at a penalty; infinite at a pole."""
        w = self.path.weights(eta)
        if w is None:
            return float("inf")
        difference = self.path.moments.Phi @ w - self.path.moments.v_pi
        return float(np.sqrt(self.states @ difference**2))

    @cached_property
    def turns(self) -> list[float]:
        """Where the error may be least: all penalties at which it has slope 0, and its last ones.

        The square of the error is rational in eta. With w = A^-1 b, p = A^-1 G w, q = A'^-1 W p, W
        the features' squares and V their products with v_pi, its slope is 2 (V'p - b'q). That is 0
        where the matrix of these equations, which is linear in eta, is singular. The last ones are
        those where stability ends.
        """
        ends = [e for low, high in self.path.unstable for e in (low / BESIDE, high * BESIDE)]
        path, m, pencil = self.path, self.path.moments, self.path.pencil
        if path.definite == float("inf") or pencil.rank > LARGEST_EXACT or not self.size:
            return ends
        X, A, G, b = m.Phi @ pencil.Q, pencil.A0, pencil.G, pencil.b[:, None] / self.size
        W, V = X.T * self.states @ X, X.T @ (self.states * m.v_pi)[:, None] / self.size
        o, none = np.zeros_like(A), np.zeros_like(b)
        slope = np.block([[A, o, o, -b], [-G, A, o, none], [o, -W, A.T, none],
                          [none.T, -V.T, b.T, np.zeros((1, 1))]])  # fmt: skip
        with np.errstate(divide="ignore", invalid="ignore"):
            part = scipy.linalg.block_diag(G, G, G, [0.0])
            found = -np.asarray(scipy.linalg.eigvals(slope, part), dtype=np.complex128)
        return ends + real_ones(found)

    def beside(self, eta: float) -> list[float]:
        """The errors at half and at twice the penalty, as far as those are stable."""
        return [self.at(e) for e in (eta / 2.0, 2.0 * eta) if self.path.is_stable(e)]

    def off(self, eta: float) -> float:
        """The worst error if eta is off by a factor of two, either way, or not at all."""
        return max(self.at(eta), *self.beside(eta), 0.0)

    def knife_edge(self, eta: float) -> bool:
        """Whether halving or doubling eta multiplies the error by more than ten.

        And makes it larger than a tenth of the values: below that nobody needs to care.
        """
        return self.off(eta) > max(TENFOLD * self.at(eta), MATTERS * self.size)


@kept(64)
def errors_of(problem: Problem, path: PenaltyPath, policy: int = 0) -> PenaltyErrors:
    """The errors along a path (kept with it)."""
    return PenaltyErrors(path, problem.error_weights(policy))


@kept(256)
@single_threaded
def _least_penalty(
    problem: Problem, path: PenaltyPath, policy: int, clear: bool, off: bool
) -> float:
    errors = errors_of(problem, path, policy)
    error = errors.off if off else errors.at
    allowed = path.is_clear if clear else path.is_stable
    m = problem.moments(policy)
    calm, limit = max(0.0, bounds(m)["sqrt_kappa"]), max(1.0, bounds(m)["paper"])
    for _ in range(DOUBLINGS):
        more = (e for e in (*path.edges, *errors.turns) if 0.0 <= e <= limit)
        grid = np.array(sorted({*(GRID * limit), *more}))
        found = _least(error, allowed, grid)
        if found is not None:
            break
        limit *= 2.0
    else:
        raise InputError(
            f"every eta up to {limit / 2.0:g} is too close to an unstable one on {problem.name}; "
            "use another learner."
        )
    some = [error(eta) for eta in grid[::20] if allowed(eta)]
    if some and max(some) - min(some) <= FLAT * errors.scale:
        return calm if allowed(calm) else 2.0 * path.largest
    for _ in range(ZOOMS):
        i = int(np.searchsorted(grid, found))
        grid = np.linspace(grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)], ZOOM)
        grid = np.array(sorted({*grid.tolist(), found}))
        closer = _least(error, allowed, grid)
        found = found if closer is None else closer
    return found


def _least(
    error: Callable[[float], float], allowed: Callable[[float], bool], etas: Floats
) -> float | None:
    """The allowed eta with the least error (the first of equals), or None."""
    errors = np.array([error(float(eta)) for eta in etas])
    order = np.argsort(errors, kind="stable")
    return next((float(etas[i]) for i in order if allowed(float(etas[i]))), None)


def stabilising_ratio(problem: Problem, learner: Learner, policy: int = 0) -> float:
    """max(0, -lambda_min(G^-1 sym A_lam)): TDC with a larger ratio is stable on one time scale."""
    lam = float(learner.values.get("lam", 0.0))
    return max(0.0, Pencil.of(problem.moments(policy), lam).eta_pd)


@kept(256)
@single_threaded
def best_ratio(problem: Problem, learner: Learner, policy: int = 0) -> float:
    """The smallest power of two, at least twice the stabilising ratio, that is fast enough."""
    least = 2.0 * stabilising_ratio(problem, learner, policy)
    tried = RATIOS if len(problem.moments(policy).row_space.T) <= LARGE_RANK else RATIOS[::4]
    candidates = [float(r) for r in tried if r >= least] or [float(2.0 ** np.ceil(np.log2(least)))]
    rates = [
        float(dynamics.decay_rates(problem, learner.replace(ratio=r), policy).real.min())
        for r in candidates
    ]
    if max(rates) <= 0.0:  # rounding: such a ratio is stable
        return candidates[int(np.argmax(rates))]
    enough = ENOUGH * max(rates)
    return next(r for r, rate in zip(candidates, rates, strict=True) if rate >= enough)
