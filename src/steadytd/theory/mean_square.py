"""Up to which constant step size do second moments stay bounded, and how far do values spread?

A learner without trace vectors and memory changes its vectors y at a transition e by an affine map.
With its fixed point y* and z = y - y*, z <- B_e z + n_e. As in `exact`, the moments of z, kept
apart by the present state, follow a linear recursion, exactly:

    m(t) <- sum p_e (B_e m(s) + n_e d(s)),
    S(t) <- sum p_e (B_e S(s) B_e' + B_e m(s) n_e' + n_e m(s)' B_e' + n_e n_e' d(s)).

The map K: S -> sum p_e B_e S(s) B_e' keeps positive semidefinite matrices so. Hence its spectral
radius is below 1 exactly if X = K X + I has a positive definite solution (apply the eigenvector of
the dual map to both sides): one linear system decides for a step size. If it is below 1, the
stationary S follows from another, and with it the root mean square distance of the values from
those of the fixed point, their *spread*.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy.linalg

from steadytd.base.arrays import Floats, repeated
from steadytd.base.parallel import single_threaded
from steadytd.engine.facts import named
from steadytd.engine.learner import Learner
from steadytd.mdp.cached import cached
from steadytd.mdp.problem import Problem
from steadytd.streams.finite import FiniteStream
from steadytd.theory import dynamics
from steadytd.theory.exact import affine_step, closes, symmetric_squares
from steadytd.theory.thresholds import real_ones, solution

LARGEST = 900  # unknowns of a linear system
SMALLEST = 1e-4  # of the mean's largest step size: where the search begins
GRID, HALVINGS = 9, 16  # step sizes looked at, then halvings of the gap where the verdict changes
CROSSED = 90  # unknowns up to which the step sizes where the verdict can change are computed,
FINE = 41  # and beyond it the number of step sizes looked at
HIDDEN = 7e13  # 1/64 of the largest X that rounding leaves: one above it may be chance
LINEAR = 1e-9  # relative difference below which a step is linear in alpha


@cached(64)
@single_threaded
def mean_square(problem: Problem, learner: Learner, policy: int = 0) -> MeanSquare | None:
    """The second moments of a learner; its own alpha does not matter. None where unknown.

    They are known for a linear learner without trace vectors, memory or averaging, with constant
    step size, if the linear system is not too large.
    """
    if not closes(learner) or learner.law.action_values:
        return None
    rank = len(problem.moments(policy).row_space.T) * len(learner.law.vectors)
    states = int((problem.d_mu > 0.0).sum())
    if states * rank * (rank + 1) // 2 > LARGEST:
        return None
    found = MeanSquare(problem, learner, policy)
    if not found.linear:
        return None
    return None if found.lost else found


class MeanSquare:
    """What the second moments of one learner on one problem do, for every constant step size."""

    def __init__(self, problem: Problem, learner: Learner, policy: int) -> None:
        # the problem keeps this: holding the problem as well, both would wait for Python's
        # collector, which counts objects and not the megabytes of `_powers`
        stream, m = FiniteStream(problem), problem.moments(policy)
        self.error_weights = problem.error_weights(policy)
        lasting = np.flatnonzero(problem.d_mu[stream.s] > 0.0)
        states = np.flatnonzero(problem.d_mu > 0.0)
        self.frequency = problem.d_mu[states]
        self.s = np.searchsorted(states, stream.s[lasting])
        self.t = np.searchsorted(states, stream.s_next[lasting])
        self.p = stream.probability[lasting]
        Q = m.row_space
        basis = repeated(Q, len(learner.law.vectors))
        self.values = m.Phi @ Q
        self.rank, size = Q.shape[1], basis.shape[1]
        facts, active = stream.transitions[policy].facts, problem.active_in(policy)
        unit = learner.replace(alpha=1.0)
        half = learner.replace(alpha=0.5)
        self.A, self.c = np.zeros((len(self.p), size, size)), np.zeros((len(self.p), size))
        self.linear, looked = True, 0
        for k, e in enumerate(lasting):
            s, t = stream.s[e], stream.s_next[e]
            if not active[s]:
                continue
            known = named(facts[e])
            B, c = affine_step(unit, m.Phi[s], m.Phi[t], known)
            self.A[k], self.c[k] = basis.T @ (np.eye(len(B)) - B) @ basis, basis.T @ c
            if looked < 2 and (np.eye(len(B)) != B).any():  # an idle step tells nothing
                looked += 1
                B2, c2 = affine_step(half, m.Phi[s], m.Phi[t], known)
                apart = np.abs(B2 - (np.eye(len(B)) + B) / 2.0).max() + np.abs(c2 - c / 2.0).max()
                self.linear &= bool(apart <= LINEAR * (1.0 + np.abs(B).max() + np.abs(c).max()))
        mean = dynamics.reduced(problem, unit, policy)
        self.end = np.linalg.lstsq(mean.M, mean.g, rcond=1e-12)[0]
        self.noise = self.c - self.A @ self.end
        self.mean_alpha = dynamics.largest_alpha(problem, learner, policy) if self.linear else 0.0

    @cached_property
    def largest_alpha(self) -> float:
        """Up to this constant step size the second moments stay bounded.

        0 where they are not at small ones, since the mean update is unstable. At larger ones they
        still may be: what `bounded` says of one step size takes the order of states into account.
        """
        mean = self.mean_alpha
        if mean == 0.0:
            return 0.0
        grid = self._looks(mean)
        first = next((i for i, a in enumerate(grid) if not self.bounded(float(a))), None)
        if first is None:
            return float(mean)
        low, high = 0.0 if first == 0 else float(grid[first - 1]), float(grid[first])
        for _ in range(HALVINGS):
            middle = (low + high) / 2.0
            low, high = (middle, high) if self.bounded(middle) else (low, middle)
        return low

    def _looks(self, mean: float) -> Floats:
        """Step sizes to look at: one between any two neighbours where the verdict can change.

        A map that keeps matrices positive has its spectral radius among its eigenvalues. So the
        verdict changes only where 1 - K_0 - alpha K_1 - alpha^2 K_2 is singular: eigenvalues again.
        Large step sizes can be bounded where smaller ones are not; a few looks would miss that.
        """
        zeroth, first, second = self._powers
        if len(zeroth) > CROSSED:
            return np.asarray(mean * np.geomspace(SMALLEST, 1.0, FINE))
        one, none = np.eye(len(zeroth)), np.zeros_like(zeroth)
        left = np.block([[none, one], [one - zeroth, -first]])
        found = np.asarray(
            scipy.linalg.eigvals(left, scipy.linalg.block_diag(one, second)), dtype=np.complex128
        )
        ends = [x for x in real_ones(found) if SMALLEST * mean < x < mean]
        ends = sorted([SMALLEST * mean, *ends, mean])
        between = [(a + b) / 2.0 for a, b in pairwise(ends)]
        return np.unique([*between, *(mean * np.geomspace(SMALLEST, 1.0, GRID))])

    @property
    def lost(self) -> bool:
        """Whether rounding hides the verdict: then it is chance, or right by luck.

        Of a stable mean some step size is small enough, and X is about 1 / (1 - radius).
        """
        if self.mean_alpha == 0.0:
            return False
        X = self._sizes(self.largest_alpha / 2.0)
        return X is None or self.largest_alpha == 0.0 or float(np.abs(X).max()) > HIDDEN

    def bounded(self, alpha: float) -> bool:
        """Whether the second moments stay bounded at this step size: X = K X + I is positive."""
        X = self._sizes(alpha)
        return X is not None and bool(np.linalg.eigvalsh(X).min() > 0.5)

    def spread(self, alpha: float) -> float:
        """How far the values are from those of the fixed point: the root of the mean square.

        In the steady state and in the norm of the error; infinite where it is not bounded.
        """
        if not self.bounded(alpha):
            return float("inf")
        d, s, t, p = self.frequency, self.s, self.t, self.p
        B, n = np.eye(self.A.shape[1]) - alpha * self.A, alpha * self.noise
        states, size = len(d), B.shape[1]
        step = np.zeros((states, states, size, size))
        np.add.at(step, (t, s), p[:, None, None] * B)
        pushed = np.zeros((states, size))
        np.add.at(pushed, t, (p * d[s])[:, None] * n)
        flat = np.eye(states * size) - step.transpose(0, 2, 1, 3).reshape(states * size, -1)
        m = solution(flat, pushed.reshape(-1)).reshape(states, size)
        cross = np.einsum("eij,ej,ek->eik", B, m[s], n)
        added = np.zeros((states, size, size))
        own = d[s][:, None, None] * np.einsum("ei,ej->eij", n, n)
        np.add.at(added, t, p[:, None, None] * (cross + cross.swapaxes(1, 2) + own))
        S = self._solve(alpha, added)
        assert S is not None
        w = S.sum(axis=0)[: self.rank, : self.rank]
        squares = np.einsum("si,ij,sj->s", self.values, w, self.values)
        return float(np.sqrt(max(0.0, self.error_weights @ squares)))

    @cached_property
    def _powers(self) -> tuple[Floats, Floats, Floats]:
        """K = K_0 + alpha K_1 + alpha^2 K_2 on the lower triangles of all states' matrices."""
        one, A = np.broadcast_to(np.eye(self.A.shape[1]), self.A.shape), -self.A
        zeroth, second = self._lifted(one), self._lifted(A)
        return zeroth, self._lifted(one + A) - zeroth - second, second

    def _lifted(self, B: Floats) -> Floats:
        """The map S -> sum p_e B_e S(s) B_e'."""
        lifts = symmetric_squares(B) * self.p[:, None, None]
        states, size = len(self.frequency), lifts.shape[1]
        K = np.zeros((states, states, size, size))
        for s, t, lift in zip(self.s, self.t, lifts, strict=True):
            K[t, s] += lift
        return np.asarray(K.transpose(0, 2, 1, 3).reshape(states * size, -1))

    def _sizes(self, alpha: float) -> Floats | None:
        """X = K X + I."""
        n = self.A.shape[1]
        return self._solve(alpha, np.broadcast_to(np.eye(n), (len(self.frequency), n, n)))

    def _solve(self, alpha: float, added: Floats) -> Floats | None:
        """S = K S + added, for symmetric matrices; None where there is no solution."""
        states, n, _ = added.shape
        rows, columns = np.tril_indices(n)
        zeroth, first, second = self._powers
        system = np.eye(len(zeroth)) - zeroth - alpha * first - alpha**2 * second
        try:
            lower = np.linalg.solve(system, added[:, rows, columns].reshape(-1))
        except np.linalg.LinAlgError:
            return None
        found = np.zeros((states, n, n))
        found[:, rows, columns] = lower.reshape(states, -1)
        return found + np.tril(found, -1).swapaxes(1, 2)
