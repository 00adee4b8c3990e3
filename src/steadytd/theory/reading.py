"""What one step of a learner does, read off its law by calling the law's own functions.

A law is a few functions of inner products and of the facts of a transition. Three things follow
from them without a closed form:

- without traces and memory a step is an affine map of the vectors, y <- B y + c (`affine_step`);
  its mean over all transitions is the mean update E[change of y] = alpha (g - M y) (`derived`);
- a memory moves by F <- m F + c (`memory_parts`);
- a trace moves by z <- decay z + scale x (`trace_parts`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.base.errors import InputError
from steadytd.engine.facts import CARRIED, STEP_FACTS, fact_table
from steadytd.engine.law import Function, Law, Value, arguments, call
from steadytd.engine.learner import Learner
from steadytd.mdp.moments import Expectation, Moments

ALPHA = 2.0**-40  # scales without rounding, and leaves nothing of terms in alpha squared
SQUARES = ("x_x", "x_x_next", "x_next_x_next")

Part = tuple[str, str]  # a vector, and what it gets a multiple of


class Steps(NamedTuple):
    """Transitions (s, a, s') that mu can make, with their facts, one row each."""

    s: Longs
    a: Longs
    s_next: Longs
    facts: Floats
    p: Floats  # p(s'|s, a)

    @staticmethod
    def of(m: Moments, states: Floats) -> Steps:
        """Those from the states whose weight is positive."""
        s, a, s_next, p = m.transitions(states)
        pi, mu, (low, high) = m.pi[s, a], m.mu[s, a], m.peaks
        facts = fact_table(
            reward=m.r[s, a, s_next], gamma_next=m.gamma[s, a, s_next], rho=pi / mu, pi=pi, mu=mu,
            interest=m.interest[s], peak_min=low, peak_max=high,
        )  # fmt: skip
        return Steps(s, a, s_next, facts, p)


def can_be_read(law: Law, values: Mapping[str, Value]) -> bool:
    """Whether a step depends on its transition and on the vectors alone, and on no map of them.

    Whether it is affine in the vectors is not checked here.
    """
    past = law.traced(values) or law.remembered or set(arguments(law.update)) & set(CARRIED)
    return not (past or law.maps or law.each or law.settled or law.block)


def closes(learner: Learner) -> bool:
    """Whether a step is an affine map of the vectors, always the same one at a transition."""
    can = can_be_read(learner.law, learner.values)
    return can and not (learner.schedule[0] or learner.averaged)


def multiples(law: Law, scope: Mapping[str, Any]) -> dict[Part, float]:
    """What the update returns, by vector and part; a memory that it sets has the part ""."""
    returned = call(law.update, scope)
    rows = returned if len(law.writes) > 1 else (returned,)
    found: dict[Part, float] = {}
    for (target, parts), row in zip(law.writes.items(), rows, strict=True):
        if target in law.remembered:
            found[target, ""] = row
        else:
            values = row if len(parts) > 1 else (row,)
            found |= {(target, part): m for part, m in zip(parts, values, strict=True)}
    return found


class AffineStep(NamedTuple):
    """What a step adds to a vector: multiples of x, x' and vectors, affine in inner products.

    What it adds to a scalar is a multiple of "1".
    """

    constant: dict[Part, float]
    slopes: dict[tuple[Part, Part], float]  # and by which inner product: of a vector with x or x',
    # or of a scalar with "1", which is the scalar itself


def read_step(
    law: Law, values: Mapping[str, Value], facts: Mapping[str, float], squares: Mapping[str, float]
) -> AffineStep:
    """A step at one transition; `squares` are x.x, x.x' and x'.x'.

    A step adds to each vector multiples of x, of x' and of vectors. The multiples of x and x' are
    affine in the inner products of the vectors with x and x' and in scalars, the others constant.
    So the law is called once with all of these 0, and once with each of them 1. A trace is a
    multiple of x.
    """
    scope: dict[str, Any] = {**facts, **dict.fromkeys((*CARRIED, *law.scalars), 0.0), **values}
    scale = {z: call(f, defaultdict(float, scope))[1] for z, f in law.traces.items()}
    times = {"x": 1.0, "x_next": 1.0, **scale}
    base = {"x": "x", "x_next": "x_next", **dict.fromkeys(scale, "x"), "1": "1"}
    for name, (a, b) in law.products.items():
        if a in base and b in base:
            scope[name] = times[a] * times[b] * squares[f"{base[a]}_{base[b]}"]
    found = AffineStep(defaultdict(float), defaultdict(float))
    constant = multiples(law, defaultdict(float, scope))
    for (target, part), multiple in constant.items():
        found.constant[target, base.get(part, part)] += times.get(part, 1.0) * float(multiple)
    ones: dict[Part, dict[str, float]] = {(name, "1"): {name: 1.0} for name in law.scalars}
    for own in law.vectors:
        ones[own, "x"] = {f"{own}_x": 1.0} | {f"{own}_{z}": s for z, s in scale.items()}
        ones[own, "x_next"] = {f"{own}_x_next": 1.0}
    for own_product, products in ones.items():
        if law.asked.isdisjoint(products):
            continue
        for (target, part), multiple in multiples(
            law, defaultdict(float, scope | products)
        ).items():
            slope = float(multiple) - float(constant[target, part])
            if slope and part not in base:
                raise InputError(
                    f"{law.name} has no closed-form expectation: it is not affine in its vectors."
                )
            if slope:
                found.slopes[(target, base[part]), own_product] += times.get(part, 1.0) * slope
    return found


def affine_step(
    learner: Learner, x: Floats, x_next: Floats, facts: Mapping[str, float]
) -> tuple[Floats, Floats]:
    """B and c of the step y <- B y + c at one transition."""
    law, d = learner.law, len(x)
    products = (float(x @ x), float(x @ x_next), float(x_next @ x_next))
    step = read_step(law, learner.values, facts, dict(zip(SQUARES, products, strict=True)))
    along = {"x": x, "x_next": x_next, "1": np.ones(1)}
    place = law.places(d)
    B = np.eye(len(law.vectors) * d + len(law.scalars))
    c = np.zeros(len(B))
    for (target, part), multiple in step.constant.items():
        if part in along:
            c[place[target]] += multiple * along[part]
        else:
            B[place[target], place[part]] += multiple * np.eye(d)
    for ((target, part), (own, direction)), slope in step.slopes.items():
        B[place[target], place[own]] += slope * np.outer(along[part], along[direction])
    return B, c


def derived(law: Law, m: Moments, values: Mapping[str, Value]) -> Expectation:
    """M and g of E[change of y] = alpha (g - M y), for small alpha: the mean over all transitions.

    For a law whose steps can be read. Transitions with the same facts, as far as the law uses
    them, are read once.
    """
    m.require_array(f"the closed form of {law.name}, which is read off the law,")
    s, a, t, facts, p = Steps.of(m, m.d)
    products = m.Phi @ m.Phi.T
    squares = np.stack([products[s, s], products[s, t], products[t, t]], axis=1)
    inner = {n for n, pair in law.products.items() if not set(pair) & set(law.vectors)}
    used = [name in law.asked for name in STEP_FACTS] + [bool(inner & law.asked)] * len(SQUARES)
    rows, kind = np.unique(np.hstack([facts, squares]) * used, axis=0, return_inverse=True)
    steps = []
    for row in rows:
        known = dict(zip((*STEP_FACTS, *SQUARES), row.tolist(), strict=True))
        steps.append(read_step(law, {**values, "alpha": ALPHA}, known, known))
    often, n, d = m.d[s] * m.mu[s, a] * p / ALPHA, len(m.d), m.n_features
    at, table = {"x": s, "x_next": t, "1": 0 * s}, {"x": m.Phi, "x_next": m.Phi, "1": np.eye(n, 1)}
    place = law.places(d)
    size = len(law.vectors) * d + len(law.scalars)
    M, g = np.zeros((size, size)), np.zeros(size)
    for target, part in dict.fromkeys(key for step in steps for key in step.constant):
        each = np.array([step.constant[target, part] for step in steps])
        mean = often * each[kind.reshape(-1)]
        if part in at:
            g[place[target]] += table[part].T @ np.bincount(at[part], mean, n)
        else:
            M[place[target], place[part]] -= mean.sum() * np.eye(d)
    for key in dict.fromkeys(key for step in steps for key in step.slopes):
        (target, part), (own, direction) = key
        mean = often * np.array([step.slopes[key] for step in steps])[kind.reshape(-1)]
        flow = np.bincount(at[part] * n + at[direction], mean, n * n).reshape(n, n)
        M[place[target], place[own]] -= table[part].T @ flow @ table[direction]
    return Expectation(M=M, g=g)


# Memory and traces


def clocks_of(law: Law) -> dict[str, Function]:
    """The memory that depends on nothing but itself and hyper-parameters: it counts steps."""
    moving = {name: f for name, f in law.memory.items() if f is not None}
    return {n: f for n, f in moving.items() if set(arguments(f)) <= {n, *law.params}}


def memory_parts(learner: Learner, name: str, facts: Mapping[str, float]) -> tuple[float, float]:
    """m and c of F <- m F + c, with the learner's other memory at 1 or as `facts` say."""
    function = learner.law.memory[name]
    assert function is not None
    scope = _scope(learner, facts)
    zero, one = (call(function, {**scope, name: F}) for F in (0.0, 1.0))
    return one - zero, zero


def trace_parts(learner: Learner, name: str, facts: Mapping[str, float]) -> tuple[float, float]:
    """decay and scale of z <- decay z + scale x, with the learner's memory at 1."""
    decay, scale = call(learner.law.traces[name], _scope(learner, facts))
    return decay, scale


def _scope(learner: Learner, facts: Mapping[str, float]) -> dict[str, Any]:
    """What a memory or trace may ask for; inner products with a trace are of second order."""
    law = learner.law
    numbers = {k: np.nan if isinstance(v, str) else v for k, v in learner.values.items()}
    ones = dict.fromkeys(law.memory, 1.0)
    return {**dict.fromkeys(law.products, 0.0), **numbers, **ones, **facts}
