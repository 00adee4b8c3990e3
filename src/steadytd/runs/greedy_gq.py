"""Greedy-GQ(lam): control, that is learning q* from the stream of a behaviour policy.

Update (x = phi(s, a), a* the best action of s' at the present w, x* = phi(s', a*), beta = ratio
alpha, rho = 1/mu(a|s) where a is the best action of s and 0 elsewhere)::

    delta = r + gamma' w.x* - w.x
    z     = rho gamma lam z + x
    w    += alpha (delta z - gamma' (1 - lam) (h.z) x*)
    h    += beta  (delta z - (h.x) x)

It is GQ(lam) whose target policy is greedy, so x* depends on w and the update is not linear in it:
no law of the engine, no closed form, and in general only a stationary point of the projected
Bellman error is promised. With one weight a pair that point is q*.

Reference: Maei, Szepesvari, Bhatnagar & Sutton (2010), "Toward off-policy learning control with
function approximation", for lam = 0; Maei (2011) for traces.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from steadytd.base.arrays import Floats, Ints, Longs
from steadytd.base.errors import InputError
from steadytd.base.numbers import whole
from steadytd.engine.facts import columns
from steadytd.engine.law import ALPHA, GENERAL, LAM, RATIO
from steadytd.engine.schedule import step_factors
from steadytd.mdp.action_values import ActionValues, require_one_policy
from steadytd.mdp.problem import value_error
from steadytd.runs.lanes import CHUNK
from steadytd.runs.run import recording_points
from steadytd.streams.finite import FiniteStream


@dataclass(frozen=True, eq=False)
class Control:
    """What `greedy_gq` found.

    `w` are the weights, `q` [s, a] their action values, `policy` [s] the best action of every
    state; `errors[i]` is the distance of q from q* after `steps[i]` updates, weighted by
    d_mu(s) mu(a|s) and the interest, and infinite once a weight is not finite.
    """

    action_values: ActionValues
    w: Floats
    q: Floats
    policy: Longs
    steps: Longs
    errors: Floats

    @property
    def error(self) -> float:
        """The distance of q from q* after the last step."""
        return float(self.errors[-1])


def greedy_gq(
    action_values: ActionValues,
    *,
    alpha: float,
    ratio: float = 1.0,
    lam: float = 0.0,
    steps: float,
    seed: int = 0,
    power: float = 0.0,
    delay: float = 1.0,
    points: int = 100,
) -> Control:
    """Learn the best policy from a stream of the behaviour policy, which must try every action.

    `pi` of the problem plays no part. The step size at step t is alpha / (1 + t/delay)^power.

    >>> import steadytd as st
    >>> found = greedy_gq(st.ActionValues(st.problem("baird")), alpha=0.1, steps=1000)
    >>> found.error  # rewards are zero, and so were the weights
    0.0
    """
    if not isinstance(action_values, ActionValues):
        raise InputError(
            "greedy_gq learns action values: wrap the problem in st.ActionValues(...)."
        )
    params = {"alpha": ALPHA, "ratio": RATIO, "lam": LAM, **GENERAL}
    given = {"alpha": alpha, "ratio": ratio, "lam": lam, "power": power, "delay": delay}
    for name, value in given.items():
        params[name].check("greedy_gq", name, value)
    where = recording_points(whole("steps", steps, 1), whole("points", points, 2))
    require_one_policy(action_values, "greedy_gq")
    _require_every_action(action_values)
    task, stream = action_values, FiniteStream(action_values)
    goal = task.error_weights()[None], task.q_star.reshape(1, -1)
    facts = columns(stream.transitions[0].facts, "reward", "gamma_next", "mu")
    errors = np.empty(len(where))
    w = np.array(task.w0)
    h, z = np.zeros_like(w), np.zeros_like(w)
    gamma, position = 0.0, stream.begin(seed)
    for i, end in enumerate(where.tolist()):
        while position.step < end:
            before = position.step
            events, position = stream.take(position, min(CHUNK, end - before))
            factor = step_factors(before, len(events), power, delay)
            alphas = np.array(alpha * factor)
            gamma = compiled()(
                w, h, z, gamma, events, alphas, ratio, lam, stream.s, stream.a, stream.s_next,
                facts, task.Psi,
            )  # fmt: skip
        errors[i] = _error(w, task, *goal)
    with np.errstate(all="ignore"):
        q = np.asarray(task.Psi @ w)
    return Control(task, w, q, np.asarray(q.argmax(axis=1)), where, errors)


def _require_every_action(task: ActionValues) -> None:
    never = np.argwhere(task.problem.mu == 0.0)
    if len(never):
        s, a = never[0].tolist()
        raise InputError(
            f"greedy_gq compares all actions, but mu[{s}, {a}] = 0: the value of action {a} in "
            f"state {s} cannot be learned from this stream; give mu[{s}, {a}] > 0."
        )


def _error(w: Floats, task: ActionValues, weights: Floats, target: Floats) -> float:
    if not np.isfinite(w).all():
        return np.inf
    with np.errstate(all="ignore"):
        error = float(value_error(w, task.Phi, target, weights, several=False))
    return error if np.isfinite(error) else np.inf


@cache
def compiled() -> Callable[..., float]:
    """`sweep`, compiled when first used: importing this file must not load the compiler."""
    from steadytd.base import jit

    return jit.compiled(sweep)


def sweep(
    w: Floats,
    h: Floats,
    z: Floats,
    gamma: float,
    events: Ints,
    alphas: Floats,
    ratio: float,
    lam: float,
    s: Longs,
    a: Longs,
    s_next: Longs,
    facts: Floats,
    Psi: Floats,
) -> float:
    """Take the steps `events` in place; return the last discount, which the next trace needs.

    `facts` are reward, next discount and mu of every transition (s, a, s_next).
    """
    actions, d = Psi.shape[1], Psi.shape[2]
    for t in range(len(events)):
        e = events[t]
        reward, gamma_next, mu = facts[e, 0], facts[e, 1], facts[e, 2]
        x = Psi[s[e], a[e]]
        best_here, best_next = 0, 0
        top_here, top_next = -np.inf, -np.inf
        for b in range(actions):
            here, after = 0.0, 0.0
            for k in range(d):
                here += w[k] * Psi[s[e], b, k]
                after += w[k] * Psi[s_next[e], b, k]
            if here > top_here:
                best_here, top_here = b, here
            if after > top_next:
                best_next, top_next = b, after
        x_best = Psi[s_next[e], best_next]
        decay = gamma * lam / mu if best_here == a[e] else 0.0
        w_x, h_x, h_z = 0.0, 0.0, 0.0
        for k in range(d):
            z[k] = decay * z[k] + x[k]
            w_x += w[k] * x[k]
            h_x += h[k] * x[k]
            h_z += h[k] * z[k]
        delta = reward + gamma_next * top_next - w_x
        for k in range(d):
            w[k] += alphas[t] * (delta * z[k] - gamma_next * (1.0 - lam) * h_z * x_best[k])
            h[k] += alphas[t] * ratio * (delta * z[k] - h_x * x[k])
        gamma = gamma_next
    return gamma
