"""First and second moments of a learner's vectors on a finite problem's stream, exactly.

Mean dynamics average the update over the stationary distribution and so neglect that consecutive
transitions are correlated: they err by a term of order alpha. Here nothing is neglected. A learner
without trace vectors and memory changes its vectors y at a transition e by an affine map,
y <- B_e y + c_e. So the moments of y, separated by the present state,

    p(s) = P(s_t = s),   m(s) = E[y 1{s_t = s}],   S(s) = E[y y' 1{s_t = s}],

follow a linear recursion (`Maps.recursion`).

**After n steps** (`exact_error`). A power of its matrix gives the mean weights and the
root-mean-square error exactly, and with them an interval for the expected error:

    || E[v_hat] - v ||  <=  E || v_hat - v ||  <=  sqrt(E || v_hat - v ||^2)

by Jensen's inequality on both sides.

**In the long run** (`MeanSquare`). Up to which constant step size do second moments stay bounded,
and how far do the values spread? With the fixed point y* and z = y - y*, z <- B_e z + n_e, so

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
from typing import NamedTuple

import numpy as np
import scipy.linalg

from steadytd.base.arrays import Floats, Longs
from steadytd.base.parallel import single_threaded
from steadytd.engine.facts import named
from steadytd.engine.learner import Learner
from steadytd.mdp.cached import cached
from steadytd.mdp.problem import Problem
from steadytd.theory import dynamics
from steadytd.theory.reading import Steps, affine_step, closes
from steadytd.theory.thresholds import real_ones, solution

LARGEST = 900  # unknowns of a linear system
SMALLEST = 1e-4  # of the mean's largest step size: where the search begins
GRID, HALVINGS = 9, 16  # step sizes tried, then halvings of the gap where the verdict changes
CROSSED = 90  # unknowns up to which the step sizes where the verdict can change are computed,
FINE = 41  # and beyond it the number of step sizes tried
INSIDE = 1e-7  # relative part of a matrix outside a space that is rounding
STRONG = 0.03  # of the strongest direction outside a space: these are added to it at once
HIDDEN = 7e13  # 1/64 of the largest X that rounding leaves: one above it may be chance
LINEAR = 1e-9  # relative difference below which a step is linear in alpha


class Maps(NamedTuple):
    """y <- B y + c on the row space, at every transition from s to t with probability p."""

    n_states: int
    s: Longs
    t: Longs
    p: Floats
    B: Floats
    c: Floats

    @staticmethod
    def of(problem: Problem, learner: Learner, policy: int, states: Floats) -> Maps:
        """Of the transitions from the states of positive weight; these are numbered anew."""
        m, active = problem.moments(policy), problem.active_in(policy)
        basis = learner.law.basis(m.row_space)
        s, a, t, facts, p = Steps.of(m, states)
        size = basis.shape[1]
        B, c = np.tile(np.eye(size), (len(s), 1, 1)), np.zeros((len(s), size))
        for e in np.flatnonzero(active[s]):
            step, pushed = affine_step(learner, m.Phi[s[e]], m.Phi[t[e]], named(facts[e]))
            B[e], c[e] = basis.T @ step @ basis, basis.T @ pushed
        place = np.flatnonzero(states > 0.0)
        s_place, t_place = np.searchsorted(place, s), np.searchsorted(place, t)
        return Maps(len(place), s_place, t_place, m.mu[s, a] * p, B, c)

    def recursion(self) -> Floats:
        """The matrix that takes (p, m, lower triangle of S) of all states one step further.

        [state, moment, state before, moment before].
        """
        return self.summed(self.lift())

    def lift(self) -> Floats:
        """What every transition makes of (1, y, lower triangle of y y'), as matrices."""
        B, c, k = self.B, self.c, self.c.shape[1]
        rows, columns = np.tril_indices(k)
        n = 1 + k + len(rows)
        lift = np.zeros((len(c), n, n))
        lift[:, 0, 0] = 1.0
        lift[:, 1 : 1 + k, 0] = c
        lift[:, 1 : 1 + k, 1 : 1 + k] = B
        lift[:, 1 + k :, 0] = c[:, rows] * c[:, columns]
        lift[:, 1 + k :, 1 : 1 + k] = (
            c[:, rows, None] * B[:, columns] + B[:, rows] * c[:, columns, None]
        )
        lift[:, 1 + k :, 1 + k :] = _symmetric_squares(B)
        return lift

    def squared(self, B: Floats) -> Floats:
        """The map S -> sum p_e B_e S(s) B_e' on the lower triangles of all states' matrices."""
        K = self.summed(_symmetric_squares(B))
        return K.reshape(len(K) * K.shape[1], -1)

    def squared_powers(self, A: Floats, S: Floats) -> Floats:
        """What the parts of S -> sum p_e B_e S(s) B_e' of order 0, 1 and 2 in alpha make of S.

        B_e = I - alpha A_e; S is [.., state, i, j], symmetric, and so are the three results.
        """
        before = S[..., self.s, :, :]
        moved = A @ before
        parts = np.stack([before, -(moved + moved.swapaxes(-1, -2)), moved @ A.swapaxes(-1, -2)])
        arrive = np.zeros((self.n_states, len(self.p)))
        arrive[self.t, np.arange(len(self.p))] = self.p
        flat = arrive @ parts.reshape(*parts.shape[:-2], -1)
        return np.asarray(flat.reshape(*flat.shape[:-1], *S.shape[-2:]))

    def summed(self, lift: Floats) -> Floats:
        """sum p_e lift_e, [state, .., state before, ..]."""
        n = lift.shape[1]
        found = np.zeros((self.n_states, n, self.n_states, n))
        for s, t, p, one in zip(self.s, self.t, self.p, lift, strict=True):
            found[t, :, s] += p * one
        return found


def _symmetric_squares(B: Floats) -> Floats:
    """The maps S -> B_e S B_e' on the lower triangles of symmetric matrices, for every e."""
    n = B.shape[1]
    rows, columns = np.tril_indices(n)
    both = B[:, rows][:, :, :, None] * B[:, columns][:, :, None, :]
    both = both + both.swapaxes(2, 3)
    both[:, :, np.arange(n), np.arange(n)] /= 2.0
    return np.asarray(both[:, :, rows, columns])


def _symmetric(lower: Floats, n: int) -> Floats:
    """Symmetric matrices from their lower triangles [.., n (n + 1)/2]."""
    found = np.zeros((*lower.shape[:-1], n, n))
    found[..., *np.tril_indices(n)] = lower
    return found + np.tril(found, -1).swapaxes(-1, -2)


def _balanced(A: Floats, rank: int) -> Floats:
    """Units for the vectors after w, powers of two, in which they act on w as w acts on them."""
    size = np.ones(A.shape[1])
    for first in range(rank, len(size), rank):
        own = slice(first, first + rank)
        there, back = (
            float(np.abs(a).max(initial=0.0)) for a in (A[:, own, :rank], A[:, :rank, own])
        )
        if there > 0.0 and back > 0.0:
            size[own] = 2.0 ** np.rint(np.log2(there / back) / 2.0)
    return size


class ExactError(NamedTuple):
    """The exact bounds of the expected error after n steps, and the exact mean weights."""

    of_mean: float
    root_mean_square: float
    mean_weights: Floats


def exact_error(problem: Problem, learner: Learner, steps: int) -> ExactError | None:
    """The expected error after `steps` steps from w0 and the problem's start distribution.

    None where the moments do not close: with trace vectors, with memory (ETD), with maps or
    products of its own vectors, for a direct solution (LSTD), with a decaying step size, with
    averaging, or with several target policies.
    """
    if not closes(learner) or problem.n_policies > 1:
        return None
    m, S = problem.moments(), problem.n_states
    Q, rank = m.row_space, m.row_space.shape[1]
    step = Maps.of(problem, learner, 0, np.ones(S)).recursion()
    y = learner.law.basis(Q).T @ learner.first_y(problem.w0)
    first = np.concatenate([[1.0], y, np.outer(y, y)[np.tril_indices(len(y))]])
    start = np.outer(problem.start, first).reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        power = np.linalg.matrix_power(step.reshape(len(start), -1), steps)
        moments = (power @ start).reshape(S, -1).sum(axis=0)
    mean, second = moments[1 : 1 + rank], _symmetric(moments[1 + len(y) :], len(y))
    values = m.compared @ Q
    spread = np.einsum("si,ij,sj->s", values, second[:rank, :rank], values)
    squares = spread - 2.0 * problem.v_pi * (values @ mean) + problem.v_pi**2
    square = float(problem.error_weights() @ squares)
    root = float(np.sqrt(max(0.0, square))) if np.isfinite(square) else float("inf")
    weights = Q @ mean + (problem.w0 - Q @ (Q.T @ problem.w0))
    of_mean = float(problem.error(weights))
    return ExactError(of_mean if np.isfinite(of_mean) else float("inf"), root, weights)


@cached(64)
@single_threaded
def mean_square(problem: Problem, learner: Learner, policy: int = 0) -> MeanSquare | None:
    """The second moments of a learner; its own alpha does not matter. None where unknown.

    They are known for a linear learner without trace vectors, memory or averaging, with constant
    step size, if the linear system is not too large.
    """
    if not closes(learner) or learner.law.action_values:
        return None
    rank = learner.law.basis(problem.moments(policy).row_space).shape[1]
    states = int((problem.d_mu > 0.0).sum())
    if states * rank * (rank + 1) // 2 > LARGEST:
        return None
    found = MeanSquare(problem, learner, policy)
    return found if found.linear and not found.lost else None


class Powers(NamedTuple):
    """K = zeroth + alpha first + alpha^2 second, on matrices X(s) as coordinates, and I in them."""

    zeroth: Floats
    first: Floats
    second: Floats
    one: Floats
    space: Floats | None  # rows: matrices whose multiples are added; None: their lower triangles


class MeanSquare:
    """What the second moments of one learner on one problem do, for every constant step size."""

    def __init__(self, problem: Problem, learner: Learner, policy: int) -> None:
        # the problem keeps this: holding the problem as well, both would wait for Python's
        # collector, which counts objects and not the megabytes of `_powers`
        m = problem.moments(policy)
        self.error_weights = problem.error_weights(policy)
        self.frequency = problem.d_mu[problem.d_mu > 0.0]
        self.values = m.compared @ m.row_space
        unit, half = (
            Maps.of(problem, learner.replace(alpha=a), policy, problem.d_mu) for a in (1.0, 0.5)
        )
        self.maps = unit
        self.identity = np.eye(unit.B.shape[1])
        size = _balanced(self.identity - unit.B, self.values.shape[1])
        self.A, self.c = (self.identity - unit.B) * size / size[:, None], unit.c / size
        apart = np.abs(half.B - (self.identity + unit.B) / 2.0).max(axis=(1, 2))
        apart += np.abs(half.c - unit.c / 2.0).max(axis=1)
        most = 1.0 + np.abs(unit.B).max(axis=(1, 2)) + np.abs(unit.c).max(axis=1)
        self.linear = bool((apart <= LINEAR * most).all())
        mean = dynamics.reduced(problem, learner.replace(alpha=1.0), policy)
        end = np.linalg.lstsq(mean.M, mean.g, rcond=1e-12)[0]
        self.noise = self.c - self.A @ (end / size)
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
        grid = self._tried(mean)
        first = next((i for i, a in enumerate(grid) if not self.bounded(float(a))), None)
        if first is None:
            return float(mean)
        low, high = 0.0 if first == 0 else float(grid[first - 1]), float(grid[first])
        for _ in range(HALVINGS):
            middle = (low + high) / 2.0
            low, high = (middle, high) if self.bounded(middle) else (low, middle)
        return low

    def _tried(self, mean: float) -> Floats:
        """Step sizes to try: one between any two neighbours where the verdict can change.

        A map that keeps matrices positive has its spectral radius among its eigenvalues. So the
        verdict changes only where 1 - K_0 - alpha K_1 - alpha^2 K_2 is singular: eigenvalues again.
        Large step sizes can be bounded where smaller ones are not; a coarse grid would miss that.
        """
        zeroth, first, second = self._powers[:3]
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
        if not self.noise.any():
            return 0.0
        around = self.maps._replace(B=self.identity - alpha * self.A, c=alpha * self.noise)
        step, d, k = around.recursion(), self.frequency, len(self.identity)
        mean, square = slice(1, 1 + k), slice(1 + k, None)
        system = np.eye(len(d) * k) - step[:, mean, :, mean].reshape(len(d) * k, -1)
        m = solution(system, (step[:, mean, :, 0] @ d).reshape(-1)).reshape(len(d), k)
        added = step[:, square, :, 0] @ d + np.tensordot(step[:, square, :, mean], m, axes=2)
        system = np.eye(added.size) - step[:, square, :, square].reshape(added.size, -1)
        lower: Floats = np.asarray(np.linalg.solve(system, added.reshape(-1)))
        S = _symmetric(lower.reshape(added.shape), k)
        rank = self.values.shape[1]
        w = S.sum(axis=0)[:rank, :rank]
        squares = np.einsum("si,ij,sj->s", self.values, w, self.values)
        return float(np.sqrt(max(0.0, self.error_weights @ squares)))

    @cached_property
    def _powers(self) -> Powers:
        """K on the least space with I that it does not leave at any step size, if that is small.

        Symmetries of a problem make it so: on Baird's problem 24 unknowns stand for TDC's 735. It
        decides as well as the whole, since K^n I grows as fast as K^n. Directions that are far
        outside of what is there come first: a weak one is known less exactly.
        """
        k = len(self.identity)
        if len(self.frequency) * k * (k + 1) // 2 <= CROSSED:
            return self._all_powers
        one = np.broadcast_to(self.identity, self._shape).reshape(1, -1)
        size = float(np.linalg.norm(one))
        space = new = one / size
        outside = np.zeros((0, one.size))
        while len(space) <= CROSSED:
            images = self._images(new).reshape(-1, one.size)
            lengths = np.linalg.norm(images, axis=1, keepdims=True)
            outside = np.vstack([outside, images / np.where(lengths > 0.0, lengths, 1.0)])
            for _ in range(2):  # the second time for what rounding left
                outside = outside - outside @ space.T @ space
            outside = outside[np.linalg.norm(outside, axis=1) > INSIDE]
            if not len(outside):
                zeroth, first, second = (self._images(space) @ space.T).swapaxes(-1, -2)
                return Powers(zeroth, first, second, size * np.eye(len(space))[0], space)
            _, strength, directions = np.linalg.svd(outside, full_matrices=False)
            new = directions[strength > STRONG * strength[0]]
            space = np.vstack([space, new])
        return self._all_powers

    def _images(self, S: Floats) -> Floats:
        return self.maps.squared_powers(self.A, S.reshape(-1, *self._shape)).reshape(3, *S.shape)

    @property
    def _shape(self) -> tuple[int, int, int]:
        return len(self.frequency), *self.identity.shape

    @property
    def _all_powers(self) -> Powers:
        """K on the lower triangles of all states' matrices."""
        one, A = np.broadcast_to(self.identity, self.A.shape), -self.A
        zeroth, second = self.maps.squared(one), self.maps.squared(A)
        first = self.maps.squared(one + A) - zeroth - second
        lower = self.identity[np.tril_indices(len(self.identity))]
        return Powers(zeroth, first, second, np.tile(lower, len(self.frequency)), None)

    def _sizes(self, alpha: float) -> Floats | None:
        """X = K X + I, or None without a solution."""
        zeroth, first, second, one, space = self._powers
        system = np.eye(len(zeroth)) - zeroth - alpha * first - alpha**2 * second
        try:
            found = np.asarray(np.linalg.solve(system, one))
        except np.linalg.LinAlgError:
            return None
        if space is None:
            return _symmetric(found.reshape(len(self.frequency), -1), len(self.identity))
        return np.asarray((found @ space).reshape(self._shape))
