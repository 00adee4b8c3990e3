"""TD, TDC and GTD2 with a smooth value function V_w(s) instead of a linear one.

Update (x = grad V(s), x' = grad V(s'), both at the present w; beta = ratio alpha)::

    delta = r + gamma' V(s') - V(s)
    psi   = (delta - x.h) Hess V(s) h
    td      w += alpha rho delta x
    tdc     w += alpha rho (delta x - gamma' (x.h) x' - psi)
    gtd2    w += alpha rho ((x - gamma' x') (x.h) - psi)
    h      += beta rho (delta - x.h) x

All right-hand sides use the old vectors. TDC and GTD2 descend the projected Bellman error, the
projection being that onto the tangent space of V at w; psi is what the curvature of V adds.

Reference: Bhatnagar, Precup, Silver, Sutton, Szepesvari & Maei (2009), "Convergent temporal-
difference learning with arbitrary smooth function approximation"; Maei (2011) for rho.

Differs from the paper: 1. rho multiplies the whole update of both vectors, so a step with rho = 0
changes nothing; the linear `tdc` and `gtd2` here leave it off the term (h.x) x, which has the same
mean. 2. The paper projects w onto a compact set to prove convergence; no projection is made here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steadytd.base.arrays import Floats, Ints, Longs
from steadytd.base.errors import InputError, unknown
from steadytd.base.numbers import whole
from steadytd.engine.facts import columns
from steadytd.engine.law import ALPHA, GENERAL, RATIO
from steadytd.engine.schedule import step_factors
from steadytd.mdp import checks
from steadytd.mdp.action_values import require_one_policy
from steadytd.mdp.problem import Problem
from steadytd.problems import problem as make_problem
from steadytd.runs.lanes import CHUNK
from steadytd.runs.run import recording_points
from steadytd.streams.finite import FiniteStream

RULES = ("td", "tdc", "gtd2")
Value = Callable[[Floats, int], Any]
Gradient = Callable[[Floats, int], Any]
HessianVector = Callable[[Floats, int, Floats], Any]
Functions = tuple[Any, ...]
Loop = Callable[..., bool]


@dataclass(frozen=True, eq=False)
class Curves:
    """What `nonlinear` found.

    `weights[i]` are the weights and `errors[i]` the error sqrt(sum_s d_mu(s) (V(s) - v_pi(s))^2)
    after `steps[i]` updates; from a weight or value that is not finite on, the error is infinite
    and the run stops there. `compiled` tells whether Numba could compile the functions.
    """

    steps: Longs
    weights: Floats
    errors: Floats
    compiled: bool

    @property
    def error(self) -> float:
        """The error after the last step."""
        return float(self.errors[-1])

    @property
    def diverged(self) -> bool:
        """Whether the weights or the values left the finite range."""
        return bool(np.isinf(self.errors).any())


def nonlinear(
    rule: str,
    problem: Problem | str,
    *,
    value: Value,
    gradient: Gradient,
    hessian_vector: HessianVector | None = None,
    w0: ArrayLike,
    alpha: float,
    ratio: float = 1.0,
    steps: float,
    seed: int = 0,
    power: float = 0.0,
    delay: float = 1.0,
    points: int = 100,
    compile: bool = True,  # noqa: A002 (the word a user looks for)
) -> Curves:
    """Run "td", "tdc" or "gtd2" with the value function `value(w, s)`, a number.

    `gradient(w, s)` is its gradient in w, `hessian_vector(w, s, h)` its Hessian times h, arrays of
    the length of `w0` ("td" needs no `hessian_vector`). All are plain functions of NumPy arrays
    that change nothing; they are compiled if Numba can, else called as they are. The problem's
    features are not used. The step size at step t is alpha / (1 + t/delay)^power.

    >>> found = nonlinear("td", "three_state", value=lambda w, s: w[0], alpha=0.01, w0=[0.0],
    ...                   gradient=lambda w, s: np.ones(1), steps=10, points=3, compile=False)
    >>> found.steps.tolist(), found.diverged
    ([0, 5, 10], False)
    """
    if rule not in RULES:
        raise unknown("rule of nonlinear:", rule, RULES)
    if hessian_vector is None and rule != "td":
        raise InputError(f"nonlinear: {rule} needs hessian_vector(w, s, h), the Hessian times h.")
    task = make_problem(problem) if isinstance(problem, str) else problem
    require_one_policy(task, "nonlinear")
    where = recording_points(whole("steps", steps, 1), whole("points", points, 2))
    params = {"alpha": ALPHA, "ratio": RATIO, **GENERAL}
    for name, given in (("alpha", alpha), ("ratio", ratio), ("power", power), ("delay", delay)):
        params[name].check("nonlinear", name, given)
    w = checks.array("w0", w0, 1)
    functions: Functions = (value, gradient, hessian_vector or _no_hessian)
    _check_shapes(w, task.n_states, *functions)
    stream = FiniteStream(task)
    facts = columns(stream.transitions[0].facts, "reward", "gamma_next", "rho")
    h = np.zeros_like(w)

    def advance(loop: Loop, functions: Functions, events: Ints, alphas: Floats) -> bool:
        return loop(
            *functions, RULES.index(rule), w, h, float(ratio), stream.s, stream.s_next, facts,
            events, alphas,
        )  # fmt: skip

    loop: Loop = sweep
    is_compiled = False
    if compile:
        # The plain functions have just worked, so whatever fails here is the compiler.
        with contextlib.suppress(Exception):
            made = _compiled(functions)
            advance(_compiled_sweep(), made, np.empty(0, np.int32), np.empty(0))
            loop, functions, is_compiled = _compiled_sweep(), made, True
    weights, errors = np.full((len(where), len(w)), np.nan), np.full(len(where), np.inf)
    position = stream.begin(seed)
    for i, end in enumerate(where.tolist()):
        finite = True
        try:
            while finite and position.step < end:
                before = position.step
                events, position = stream.take(position, min(CHUNK, end - before))
                alphas = alpha * step_factors(before, len(events), power, delay)
                with np.errstate(all="ignore"):
                    finite = advance(loop, functions, events, alphas)
            weights[i], errors[i] = w, _error(w, task, value) if finite else np.inf
        except OverflowError:  # math.exp raises where NumPy and compiled code say infinite
            break
        if np.isinf(errors[i]):
            break
    return Curves(where, weights, errors, is_compiled)


def _error(w: Floats, problem: Problem, value: Value) -> float:
    with np.errstate(all="ignore"):
        found = np.array([float(value(w, s)) for s in range(problem.n_states)])
        error = np.sqrt(problem.error_weights() @ (found - problem.v_pi) ** 2)
    return float(error) if np.isfinite(error) else np.inf


def _check_shapes(
    w: Floats, n_states: int, value: Value, gradient: Gradient, hessian_vector: HessianVector
) -> None:
    """Call each function once per state, so that a wrong shape is an error with a name."""
    for s in range(n_states):
        if np.ndim(value(w.copy(), s)) != 0:
            raise InputError(f"value(w0, {s}) must be a number.")
        named = {
            f"gradient(w0, {s})": gradient(w.copy(), s),
            f"hessian_vector(w0, {s}, w0)": hessian_vector(w.copy(), s, w.copy()),
        }
        for name, found in named.items():
            if np.shape(found) != w.shape:
                raise InputError(
                    f"{name} must be an array of shape {w.shape}, as w0 is, got {np.shape(found)}."
                )


def _no_hessian(w: Floats, s: int, h: Floats) -> Floats:
    """Stands in for the Hessian where the rule does not ask for it."""
    return np.zeros_like(h)


@lru_cache(maxsize=32)
def _compiled(functions: Functions) -> Functions:
    from steadytd.base.jit import uncached

    return tuple(f if hasattr(f, "py_func") else uncached(f) for f in functions)


@cache
def _compiled_sweep() -> Loop:
    from steadytd.base.jit import uncached

    return uncached(sweep)


def sweep(
    value: Any,
    gradient: Any,
    hessian_vector: Any,
    rule: int,
    w: Floats,
    h: Floats,
    ratio: float,
    s: Longs,
    s_next: Longs,
    facts: Floats,
    events: Ints,
    alphas: Floats,
) -> bool:
    """Take the steps `events` in place, while all is finite; `rule` is a place in `RULES`.

    `facts` are reward, next discount and rho of every transition from s to s_next.
    """
    for t in range(len(events)):
        e = events[t]
        reward, gamma_next, rho = facts[e, 0], facts[e, 1], facts[e, 2]
        if rho == 0.0:
            continue
        x = gradient(w, s[e])
        delta = reward + gamma_next * value(w, s_next[e]) - value(w, s[e])
        if rule == 0:
            for k in range(len(w)):
                w[k] += alphas[t] * rho * delta * x[k]
            if not np.isfinite(w).all():
                return False
            continue
        x_next = gradient(w, s_next[e])
        curved = hessian_vector(w, s[e], h)
        x_h = 0.0
        for k in range(len(w)):
            x_h += x[k] * h[k]
        left = delta - x_h
        first = delta if rule == 1 else x_h  # tdc and gtd2 differ in this multiple of x only
        for k in range(len(w)):
            change = first * x[k] - gamma_next * x_h * x_next[k] - left * curved[k]
            w[k] += alphas[t] * rho * change
            h[k] += alphas[t] * ratio * rho * left * x[k]
        if not (np.isfinite(w).all() and np.isfinite(h).all()):
            return False
    return True
