"""The learners behind the cures, written out from their equations in plain NumPy.

Where a learner has a clever form, the reference takes the plain one: sums of products of ratios
over the past steps, and linear systems that are solved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.engine.law import Value


class Step(Protocol):
    """One step as the equations name it; `gamma` and `rho_1` belong to the step before."""

    @property
    def x(self) -> Floats: ...
    @property
    def x_next(self) -> Floats: ...
    @property
    def reward(self) -> float: ...
    @property
    def gamma(self) -> float: ...
    @property
    def gamma_next(self) -> float: ...
    @property
    def rho(self) -> float: ...
    @property
    def rho_1(self) -> float: ...
    @property
    def interest(self) -> float: ...


Params = Mapping[str, Value]


def error(s: Step, w: Floats) -> float:
    """The TD error."""
    return float(s.reward + s.gamma_next * (w @ s.x_next) - w @ s.x)


def ridge_td(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """w += alpha (delta z - ridge w)."""
    alpha, lam, ridge = (float(params[name]) for name in ("alpha", "lam", "ridge"))
    z = np.zeros_like(w)
    for s in steps:
        z = s.rho * (s.gamma * lam * z + s.x)
        w = w + alpha * (error(s, w) * z - ridge * w)
    return w


def nstep_td(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """A sum of the last n states, each with its product of ratios and discounts."""
    alpha, n = float(params["alpha"]), int(params["n"])
    for t, s in enumerate(steps):
        z = np.zeros_like(w)
        for k in range(min(n, t + 1)):
            product = s.rho
            for j in range(k):
                product *= steps[t - j].gamma * steps[t - j - 1].rho
            z = z + product * steps[t - k].x
        w = w + alpha * error(s, w) * z
    return w


def target_td(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """A copy v that follows slowly, or is made every t steps."""
    alpha, ridge = float(params["alpha"]), float(params["ridge"])
    v = float(params["v0"]) * w
    for i, s in enumerate(steps):
        if params["copy"] == "hard" and i % int(params["t"]) == 0:
            v = w.copy()
        delta = s.reward + s.gamma_next * (v @ s.x_next) - w @ s.x
        old, w = w, w + alpha * (s.rho * delta * s.x - ridge * w)
        if params["copy"] == "slow":
            v = v + float(params["ratio"]) * alpha * (old - v)
    return w


def truncated_etd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """A follow-on trace as a sum over the last n ratios."""
    alpha, n = float(params["alpha"]), int(params["n"])
    for t, s in enumerate(steps):
        w = w + alpha * s.rho * emphasis(steps, t, n) * error(s, w) * s.x
    return w


def per_etd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """The same with n = b - 1, in every b-th step only."""
    alpha, b = float(params["alpha"]), int(params["b"])
    for t, s in enumerate(steps):
        if t % b == b - 1:
            w = w + alpha * s.rho * emphasis(steps, t, b - 1) * error(s, w) * s.x
    return w


def emphasis(steps: Sequence[Step], t: int, n: int) -> float:
    """F after the last n ratios at step t."""
    F = 0.0
    for s in steps[max(0, t - n) : t + 1]:
        F = s.gamma * s.rho_1 * F + s.interest
    return F


def solved(system: Floats, right: Floats) -> Floats:
    """The solution of a linear system."""
    return np.asarray(np.linalg.solve(system, right), dtype=np.float64)


def implicit_td(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """Solves w' = w + alpha (r + gamma' w.x' - w'.x) z for the new w', unless x.z < 0."""
    alpha, lam = float(params["alpha"]), float(params["lam"])
    z = np.zeros_like(w)
    for s in steps:
        z = s.rho * (s.gamma * lam * z + s.x)
        target = s.reward + s.gamma_next * (w @ s.x_next)
        if z @ s.x >= 0.0:
            w = solved(np.eye(len(w)) + alpha * np.outer(z, s.x), w + alpha * target * z)
        else:
            w = w + alpha * (target - w @ s.x) * z
    return w


def implicit_tdc(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """Solves both implicit equations as linear systems."""
    alpha = float(params["alpha"])
    beta = float(params["ratio"]) * alpha
    h, identity = np.zeros_like(w), np.eye(len(w))
    for s in steps:
        target = s.reward + s.gamma_next * (w @ s.x_next)
        known = alpha * s.rho * (target * s.x - s.gamma_next * (h @ s.x) * s.x_next)
        second = h + beta * s.rho * error(s, w) * s.x
        w = solved(identity + alpha * s.rho * np.outer(s.x, s.x), w + known)
        h = solved(identity + beta * np.outer(s.x, s.x), second)
    return w


def true_online_td(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """True online ETD with M = 1."""
    return dutch(steps, w, params, emphatic=False)


def true_online_etd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """The form that keeps D, the last change of w times the next features."""
    return dutch(steps, w, params, emphatic=True)


def dutch(steps: Sequence[Step], w: Floats, params: Params, emphatic: bool) -> Floats:
    """e = rho gamma lam e + s x; change = delta e + D (e - rho alpha M x); D = change.x'."""
    alpha, lam = float(params["alpha"]), float(params["lam"])
    e, F, D = np.zeros_like(w), 0.0, 0.0
    for s in steps:
        F = s.gamma * s.rho_1 * F + s.interest
        M = lam * s.interest + (1 - lam) * F if emphatic else 1.0
        fresh = s.rho * alpha * M * (1 - s.rho * s.gamma * lam * (s.x @ e))
        e = s.rho * s.gamma * lam * e + fresh * s.x
        change = error(s, w) * e + D * (e - s.rho * alpha * M * s.x)
        w = w + change
        D = float(change @ s.x_next) if s.gamma_next > 0.0 else 0.0
    return w


def true_online_gtd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """Three traces, as in the paper's algorithm; D as above."""
    alpha, lam = float(params["alpha"]), float(params["lam"])
    beta = float(params["ratio"]) * alpha
    z, y, u, h = (np.zeros_like(w) for _ in range(4))
    D = 0.0
    for s in steps:
        decay, decay_1 = s.rho * s.gamma * lam, s.rho_1 * s.gamma * lam
        z = decay * z + s.rho * alpha * (1 - decay * (s.x @ z)) * s.x
        y = decay_1 * y + beta * (1 - decay_1 * (s.x @ y)) * s.x
        u = s.rho * (s.gamma * lam * u + s.x)
        delta = error(s, w)
        change = delta * z + D * (z - alpha * s.rho * s.x)
        change = change - alpha * s.gamma_next * (1 - lam) * (h @ u) * s.x_next
        h = h + s.rho * delta * y - beta * (h @ s.x) * s.x
        w = w + change
        D = float(change @ s.x_next) if s.gamma_next > 0.0 else 0.0
    return w


CURES: dict[str, Callable[[Sequence[Step], Floats, Params], Floats]] = {
    one.__name__: one
    for one in (
        ridge_td, nstep_td, target_td, truncated_etd, per_etd, implicit_td, implicit_tdc,
        true_online_td, true_online_etd, true_online_gtd,
    )
}  # fmt: skip
