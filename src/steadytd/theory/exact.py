"""The exact expected error of a learner after n steps on a finite problem's stream.

Mean dynamics average the update over the stationary distribution and so neglect that consecutive
transitions are correlated: they err by a term of order alpha. Here nothing is neglected. A learner
without trace vectors and memory changes its vectors y at a transition e by an affine map,
y <- B_e y + c_e. So the moments of y, kept apart by the present state,

    p(s) = P(s_t = s),   m(s) = E[y 1{s_t = s}],   S(s) = E[y y' 1{s_t = s}],

follow a linear recursion, and n steps of it are a power of one matrix. They give the mean weights
and the root-mean-square error exactly, and with them an interval for the expected error:

    || E[v_hat] - v ||  <=  E || v_hat - v ||  <=  sqrt(E || v_hat - v ||^2)

by Jensen's inequality on both sides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, Longs, repeated
from steadytd.base.errors import InputError
from steadytd.engine.facts import CARRIED, STEP_FACTS, fact_table, named
from steadytd.engine.law import Function, Law, Value, arguments, call
from steadytd.engine.learner import Learner
from steadytd.mdp.moments import Expectation, Moments
from steadytd.mdp.problem import Problem

ALPHA = 2.0**-40  # scales without rounding, and leaves nothing of terms in alpha squared
SQUARES = ("x_x", "x_x_next", "x_next_x_next")


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
    Q = problem.moments().row_space
    basis = repeated(Q, len(learner.law.vectors))
    size = basis.shape[1]
    step = _moment_step(problem, learner, basis)
    start = np.concatenate([Q.T @ vector for vector in learner.first_vectors(problem.w0)])
    moments = np.outer(_features(start), problem.start).reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        moments = _power_times(step, steps, moments).reshape(-1, problem.n_states).sum(axis=1)
    rank = Q.shape[1]
    mean = moments[1 : 1 + rank]
    second = np.zeros((size, size))
    second[np.tril_indices(size)] = moments[1 + size :]
    second += np.tril(second, -1).T
    values = problem.moments().Phi @ Q
    spread = np.einsum("si,ij,sj->s", values, second[:rank, :rank], values)
    squares = spread - 2.0 * problem.v_pi * (values @ mean) + problem.v_pi**2
    square = float(problem.error_weights() @ squares)
    root = float(np.sqrt(max(0.0, square))) if np.isfinite(square) else float("inf")
    weights = Q @ mean + (problem.w0 - Q @ (Q.T @ problem.w0))
    of_mean = float(problem.error(weights))
    return ExactError(of_mean if np.isfinite(of_mean) else float("inf"), root, weights)


def closes(learner: Learner) -> bool:
    """Whether a step is an affine map of the vectors, always the same one at a transition."""
    can = can_be_read(learner.law, learner.values)
    return can and not (learner.schedule[0] or learner.averaged)


def can_be_read(law: Law, values: Mapping[str, Value]) -> bool:
    """Whether a step depends on its transition and on the vectors alone, and on no map of them.

    Whether it is affine in the vectors, too, is not asked here.
    """
    past = law.traced(values) or law.memory or set(arguments(law.update)) & set(CARRIED)
    return not (past or law.maps or law.settled or law.block)


class Steps(NamedTuple):
    """Transitions (s, a, s') that mu can make, with their facts, one row each."""

    s: Longs
    a: Longs
    s_next: Longs
    facts: Floats

    @staticmethod
    def of(m: Moments, states: Floats) -> Steps:
        """Those from the states whose weight is positive."""
        s, a, s_next = np.nonzero(states[:, None, None] * m.mu[:, :, None] * m.P)
        pi, mu, (low, high) = m.pi[s, a], m.mu[s, a], m.peaks
        facts = fact_table(
            reward=m.r[s, a, s_next], gamma_next=m.gamma[s, a, s_next], rho=pi / mu, pi=pi, mu=mu,
            interest=m.interest[s], peak_min=low, peak_max=high,
        )  # fmt: skip
        return Steps(s, a, s_next, facts)


def clocks_of(law: Law) -> dict[str, Function]:
    """The memory that asks for nothing but itself and hyper-parameters: it counts steps."""
    moving = {name: f for name, f in law.memory.items() if f is not None}
    return {n: f for n, f in moving.items() if set(arguments(f)) <= {n, *law.params}}


class AffineStep(NamedTuple):
    """What a step adds to a vector: multiples of x, x' and vectors, affine in inner products."""

    constant: dict[tuple[str, str], float]  # by vector and part
    slopes: dict[tuple[str, str, str, str], float]  # and by what its inner product is of


def read_step(
    law: Law, values: Mapping[str, Value], facts: Mapping[str, float], squares: Mapping[str, float]
) -> AffineStep:
    """A step at one transition, read off the law itself; `squares` are x.x, x.x' and x'.x'.

    A step adds to each vector multiples of x, of x' and of vectors. The multiples of x and x' are
    affine in the inner products of the vectors with x and x', the others constant. So the law is
    asked once with all those products 0, and once with each of them 1. A trace is a multiple of x.
    """
    scope: dict[str, Any] = {**facts, **dict.fromkeys(CARRIED, 0.0), **values}
    scale = {z: call(f, defaultdict(float, scope))[1] for z, f in law.traces.items()}
    times = {"x": 1.0, "x_next": 1.0, **scale}
    base = {"x": "x", "x_next": "x_next", **dict.fromkeys(scale, "x")}
    for name, (a, b) in law.products.items():
        if a in base and b in base:
            scope[name] = times[a] * times[b] * squares[f"{base[a]}_{base[b]}"]
    found = AffineStep(defaultdict(float), defaultdict(float))
    constant = _multiples(law, scope)
    for (target, part), multiple in constant.items():
        found.constant[target, base.get(part, part)] += times.get(part, 1.0) * multiple
    for own in law.vectors:
        for direction, ends in (("x", {"x": 1.0, **scale}), ("x_next", {"x_next": 1.0})):
            asked = {f"{own}_{end}": product for end, product in ends.items()}
            if law.asked.isdisjoint(asked):
                continue
            for (target, part), multiple in _multiples(law, scope | asked).items():
                slope = multiple - constant[target, part]
                if slope and part not in base:
                    raise InputError(
                        f"{law.name} has no closed-form expectation: it is not affine in its "
                        "vectors."
                    )
                if slope:
                    found.slopes[target, base[part], own, direction] += times[part] * slope
    return found


def affine_step(
    learner: Learner, x: Floats, x_next: Floats, facts: Mapping[str, float]
) -> tuple[Floats, Floats]:
    """B and c of the step y <- B y + c at one transition."""
    law, d = learner.law, len(x)
    products = (float(x @ x), float(x @ x_next), float(x_next @ x_next))
    constant, slopes = read_step(
        law, learner.values, facts, dict(zip(SQUARES, products, strict=True))
    )
    along = {"x": x, "x_next": x_next}
    place = {name: slice(i * d, (i + 1) * d) for i, name in enumerate(law.vectors)}
    B, c = np.eye(len(place) * d), np.zeros(len(place) * d)
    for (target, part), multiple in constant.items():
        if part in along:
            c[place[target]] += multiple * along[part]
        else:
            B[place[target], place[part]] += multiple * np.eye(d)
    for (target, part, own, direction), slope in slopes.items():
        B[place[target], place[own]] += slope * np.outer(along[part], along[direction])
    return B, c


def derived(law: Law, m: Moments, values: Mapping[str, Value]) -> Expectation:
    """M and g of E[change of y] = alpha (g - M y), for small alpha: the mean over all transitions.

    For a law whose steps can be read. Transitions with the same facts, as far as the law asks for
    them, are read once.
    """
    transitions = Steps.of(m, m.d)
    s, a, t = transitions[:3]
    products = m.Phi @ m.Phi.T
    squares = np.stack([products[s, s], products[s, t], products[t, t]], axis=1)
    inner = {n for n, pair in law.products.items() if not set(pair) & set(law.vectors)}
    told = [name in law.asked for name in STEP_FACTS] + [bool(inner & law.asked)] * len(SQUARES)
    rows, kind = np.unique(
        np.hstack([transitions.facts, squares]) * told, axis=0, return_inverse=True
    )
    names, known = (*STEP_FACTS, *SQUARES), {**values, "alpha": ALPHA}
    steps = []
    for row in rows:
        seen = dict(zip(names, row.tolist(), strict=True))
        steps.append(read_step(law, known, seen, seen))
    often, n, d = m.d[s] * m.mu[s, a] * m.P[s, a, t] / ALPHA, len(m.d), m.n_features
    at = {"x": s, "x_next": t}
    M = {(v, u): np.zeros((d, d)) for v in law.vectors for u in law.vectors}
    g = {v: np.zeros(d) for v in law.vectors}
    for key in dict.fromkeys(key for step in steps for key in step.constant):
        target, part = key
        mean = often * np.array([step.constant[key] for step in steps])[kind.reshape(-1)]
        if part in at:
            g[target] += m.Phi.T @ np.bincount(at[part], mean, n)
        else:
            M[target, part] -= mean.sum() * np.eye(d)
    for name in dict.fromkeys(name for step in steps for name in step.slopes):
        target, part, own, direction = name
        mean = often * np.array([step.slopes[name] for step in steps])[kind.reshape(-1)]
        flow = np.bincount(at[part] * n + at[direction], mean, n * n).reshape(n, n)
        M[target, own] -= m.Phi.T @ flow @ m.Phi
    blocks = [[M[v, u] for u in law.vectors] for v in law.vectors]
    return Expectation(M=np.block(blocks), g=np.concatenate(list(g.values())))


def _multiples(law: Law, scope: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """What the law returns, by vector and part; inner products that are not given are 0."""
    found = call(law.update, defaultdict(float, scope))
    rows = found if len(law.writes) > 1 else (found,)
    return {
        (target, part): float(multiple)
        for (target, parts), row in zip(law.writes.items(), rows, strict=True)
        for part, multiple in zip(parts, row if len(parts) > 1 else (row,), strict=True)
    }


def _features(y: Floats) -> Floats:
    """(1, y, lower triangle of y y'): what the recursion is linear in."""
    return np.concatenate([[1.0], y, np.outer(y, y)[np.tril_indices(len(y))]])


def _moment_step(problem: Problem, learner: Learner, basis: Floats) -> Floats:
    """The matrix that takes (p, m, S) of all states one step further."""
    size = basis.shape[1]
    rows, columns = np.tril_indices(size)
    n, S = 1 + size + len(rows), problem.n_states
    m = problem.moments()
    result = np.zeros((n, S, n, S))
    for s, a, s_next, row in zip(*Steps.of(m, np.ones(S)), strict=True):
        if problem.active[s]:
            B, c = affine_step(learner, m.Phi[s], m.Phi[s_next], named(row))
            B, c = basis.T @ B @ basis, basis.T @ c
        else:
            B, c = np.eye(size), np.zeros(size)
        lift = np.zeros((n, n))
        lift[0, 0] = 1.0
        lift[1 : 1 + size, 0] = c
        lift[1 : 1 + size, 1 : 1 + size] = B
        lift[1 + size :, 0] = c[rows] * c[columns]
        lift[1 + size :, 1 : 1 + size] = c[rows, None] * B[columns] + B[rows] * c[columns, None]
        (lift[1 + size :, 1 + size :],) = symmetric_squares(B[None])
        result[:, s_next, :, s] += m.mu[s, a] * m.P[s, a, s_next] * lift
    return result.reshape(n * S, n * S)


def symmetric_squares(B: Floats) -> Floats:
    """The maps S -> B_e S B_e' on the lower triangles of symmetric matrices, for every e."""
    n = B.shape[1]
    rows, columns = np.tril_indices(n)
    both = B[:, rows][:, :, :, None] * B[:, columns][:, :, None, :]
    both = both + both.swapaxes(2, 3)
    both[:, :, np.arange(n), np.arange(n)] /= 2.0
    return np.asarray(both[:, :, rows, columns])


def _power_times(matrix: Floats, exponent: int, vector: Floats) -> Floats:
    """matrix^exponent vector, by squaring; only as many squarings as the exponent has digits."""
    while True:
        if exponent & 1:
            vector = matrix @ vector
        exponent >>= 1
        if not exponent:
            return vector
        matrix = matrix @ matrix
