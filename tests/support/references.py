"""Every learner's equations a second time, in plain NumPy, and streams for them.

They come from the published equations, not from the laws, and they see the problem's arrays, not
the engine's tables. Where a learner has a clever form, its reference takes the plain one: sums of
products of ratios over the past steps, and linear systems that are solved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.engine.law import Value
from steadytd.streams.finite import FiniteStream


class Step(NamedTuple):
    """One step as the equations name it; `gamma` and `*_1` belong to the previous transition."""

    x: Floats
    x_next: Floats
    reward: float
    gamma: float
    gamma_next: float
    rho: float
    rho_1: float
    pi: float
    pi_1: float
    mu: float
    mu_1: float
    interest: float
    peaks: tuple[float, float]


Params = Mapping[str, Value]
Reference = Callable[[Sequence[Step], Floats, Params], Floats]


def number(params: Params, name: str) -> float:
    return float(params[name])


def error(s: Step, w: Floats) -> float:
    """The TD error."""
    return float(s.reward + s.gamma_next * (w @ s.x_next) - w @ s.x)


def solution(system: Floats, right: Floats) -> Floats:
    """The solution of a linear system."""
    return np.asarray(np.linalg.solve(system, right), dtype=np.float64)


def td(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    alpha, lam = number(params, "alpha"), number(params, "lam")
    z = np.zeros_like(w)
    for s in steps:
        z = s.rho * (s.gamma * lam * z + s.x)
        w = w + alpha * error(s, w) * z
    return w


def perturbed_td(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    alpha, lam, eta = (number(params, name) for name in ("alpha", "lam", "eta"))
    z = np.zeros_like(w)
    for s in steps:
        bootstrap = s.reward + s.gamma_next * (w @ s.x_next)
        if params["penalty"] == "scaled":
            z = s.rho * (s.gamma * lam / (1 + eta) * z + s.x)
            w = w + alpha * (bootstrap - (1 + eta) * (w @ s.x)) * z
        else:
            z = s.rho * (s.gamma * lam * z + s.x)
            w = w + alpha * ((bootstrap - w @ s.x) * z - eta * s.rho * (w @ s.x) * s.x)
    return w


def etd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    alpha, lam = number(params, "alpha"), number(params, "lam")
    z, F = np.zeros_like(w), 0.0
    for s in steps:
        F = s.gamma * s.rho_1 * F + s.interest
        M = lam * s.interest + (1 - lam) * F
        z = s.rho * (s.gamma * lam * z + M * s.x)
        w = w + alpha * error(s, w) * z
    return w


def gtd2(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    alpha, lam = number(params, "alpha"), number(params, "lam")
    beta = number(params, "ratio") * alpha
    z, h = np.zeros_like(w), np.zeros_like(w)
    for s in steps:
        z = s.rho * (s.gamma * lam * z + s.x)
        delta = error(s, w)
        w, h = (
            w + alpha * ((h @ s.x) * s.x - s.gamma_next * (1 - lam) * (h @ z) * s.x_next),
            h + beta * (delta * z - (h @ s.x) * s.x),
        )
    return w


def tdc(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    return tdrc(steps, w, {**params, "reg": 0.0})


def tdc_as_published(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """At lam = 0 the notebooks' lines: no weight at all, or pi(s, a) on every term."""
    alpha, lam = number(params, "alpha"), number(params, "lam")
    beta = number(params, "ratio") * alpha
    z, h = np.zeros_like(w), number(params, "h0") * w
    for s in steps:
        weight = s.pi if params["weight"] == "pi" else 1.0
        z = weight * (s.gamma * lam * z + s.x)
        delta = error(s, w)
        w, h = (
            w + alpha * (delta * z - s.gamma_next * (1 - lam) * (h @ z) * s.x_next),
            h + beta * (delta * z - weight * (h @ s.x) * s.x),
        )
    return w


def gq(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """TDC's form on pairs (x' is the expectation under pi); rho belongs to the trace's past."""
    alpha, lam = number(params, "alpha"), number(params, "lam")
    beta = number(params, "ratio") * alpha
    z, h = np.zeros_like(w), np.zeros_like(w)
    for s in steps:
        z = s.rho * s.gamma * lam * z + s.x
        delta = error(s, w)
        w, h = (
            w + alpha * (delta * z - s.gamma_next * (1 - lam) * (h @ z) * s.x_next),
            h + beta * (delta * z - (h @ s.x) * s.x),
        )
    return w


def tdrc(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    alpha, lam, reg = (number(params, name) for name in ("alpha", "lam", "reg"))
    beta = number(params, "ratio") * alpha
    z, h = np.zeros_like(w), np.zeros_like(w)
    for s in steps:
        z = s.rho * (s.gamma * lam * z + s.x)
        delta = error(s, w)
        w, h = (
            w + alpha * (delta * z - s.gamma_next * (1 - lam) * (h @ z) * s.x_next),
            h + beta * (delta * z - (h @ s.x) * s.x - reg * h),
        )
    return w


def gtd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    alpha = number(params, "alpha")
    beta = number(params, "ratio") * alpha
    h = np.zeros_like(w)
    for s in steps:
        delta = error(s, w)
        w, h = (
            w + alpha * s.rho * (s.x - s.gamma_next * s.x_next) * (h @ s.x),
            h + beta * (s.rho * delta * s.x - h),
        )
    return w


def htd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    alpha, lam = number(params, "alpha"), number(params, "lam")
    beta = number(params, "ratio") * alpha
    z, z_b, h = np.zeros_like(w), np.zeros_like(w), np.zeros_like(w)
    for s in steps:
        z = s.rho * (s.gamma * lam * z + s.x)
        z_b = s.gamma * lam * z_b + s.x
        delta = error(s, w)
        forward = s.x - s.gamma_next * s.x_next
        w, h = (
            w + alpha * (delta * z + forward * ((z - z_b) @ h)),
            h + beta * (delta * z - forward * (z_b @ h)),
        )
    return w


def pgtd2(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    alpha, lam = number(params, "alpha"), number(params, "lam")
    beta = number(params, "ratio") * alpha
    z, h = np.zeros_like(w), np.zeros_like(w)

    def slopes(s: Step, w: Floats, h: Floats) -> tuple[Floats, Floats]:
        delta = error(s, w)
        for_w = (h @ s.x) * s.x - s.gamma_next * (1 - lam) * (h @ z) * s.x_next
        return for_w, delta * z - (h @ s.x) * s.x

    for s in steps:
        z = s.rho * (s.gamma * lam * z + s.x)
        for_w, for_h = slopes(s, w, h)
        for_w, for_h = slopes(s, w + alpha * for_w, h + beta * for_h)
        w, h = w + alpha * for_w, h + beta * for_h
    return w


def rotd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """As matrices: y = (h; w) down M' u with soft thresholds, u = (u; v) up M y - q in its box."""
    alpha, c, l1, radius = (number(params, name) for name in ("alpha", "c", "l1", "radius"))
    d = len(w)
    y, dual = np.concatenate([np.zeros(d), w]), np.zeros(2 * d)
    for s in steps:
        forward = s.rho * (s.x - s.gamma_next * s.x_next)
        M = np.block(
            [
                [c * np.outer(s.x, s.x), c * np.outer(s.x, forward)],
                [s.rho * s.gamma_next * np.outer(s.x_next, s.x), np.outer(s.x, forward)],
            ]
        )
        q = s.rho * s.reward * np.concatenate([c * s.x, s.x])
        lower, higher = y - alpha * M.T @ dual, dual + alpha * (M @ y - q)
        y = np.sign(lower) * np.maximum(np.abs(lower) - alpha * l1, 0.0)
        dual = np.clip(higher, -radius, radius)
    return y[d:]


def etd_beta(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    return perturbed_etd(steps, w, {**params, "eta": 0.0})


def perturbed_etd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    alpha, lam, beta, eta = (number(params, name) for name in ("alpha", "lam", "beta", "eta"))
    z, F = np.zeros_like(w), 0.0
    for s in steps:
        if s.gamma == 0.0:
            F = 0.0
        F = beta * s.rho_1 * F + s.interest
        M = lam * s.interest + (1 - lam) * F
        z = s.rho * (s.gamma * lam / (1 + eta) * z + M * s.x)
        w = w + alpha * (s.reward + s.gamma_next * (w @ s.x_next) - (1 + eta) * (w @ s.x)) * z
    return w


def cut(steps: Sequence[Step], w: Floats, alpha: float, keep: Callable[[Step], float]) -> Floats:
    """z = gamma keep z + x, w += alpha rho delta z: the methods that differ in what they keep."""
    z = np.zeros_like(w)
    for s in steps:
        z = s.gamma * keep(s) * z + s.x
        w = w + alpha * s.rho * error(s, w) * z
    return w


def tree_backup(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    lam = number(params, "lam")
    return cut(steps, w, number(params, "alpha"), lambda s: lam * s.pi_1)


def vtrace(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    lam = number(params, "lam")
    return cut(steps, w, number(params, "alpha"), lambda s: lam * min(1.0, s.rho_1))


def abtd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    zeta = number(params, "zeta")

    def keep(s: Step) -> float:
        if s.mu_1 == 0.0:  # the very first step
            return 0.0
        psi_0, psi_max = 1 / s.peaks[1], 1 / s.peaks[0]
        psi = 2 * zeta * psi_0 + max(0.0, 2 * zeta - 1) * (psi_max - 2 * psi_0)
        return min(psi, 1 / max(s.pi_1, s.mu_1)) * s.pi_1

    return cut(steps, w, number(params, "alpha"), keep)


def cop_td(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """With the ratio c(s) = 1 + u.(x - m), whose mean is 1 when m is the mean of x."""
    alpha, beta = number(params, "alpha"), number(params, "beta")
    a = number(params, "ratio") * alpha
    u, m, F, c_1 = np.zeros_like(w), np.zeros_like(w), 0.0, 0.0
    for s in steps:
        F = s.rho_1 * (beta * F + (1 - beta) * c_1)
        centred = s.x - m
        c = 1 + float(u @ centred)
        delta = error(s, w)
        w = w + alpha * c * s.rho * delta * s.x
        u, m, c_1 = u + a * (F - c) * centred, m + a * centred, c
    return w


def discounted_cop_td(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    alpha, g = number(params, "alpha"), number(params, "g")
    a = number(params, "ratio") * alpha
    c = np.zeros_like(w)
    for s in steps:
        delta = error(s, w)
        w, c = (
            w + alpha * (c @ s.x) * s.rho * delta * s.x,
            c + a * (g * s.rho * (c @ s.x) + (1 - g) - c @ s.x_next) * s.x_next,
        )
    return w


def gem_etd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """GTD2 on the emphasis m, whose equation runs backwards: m(s') = 1 + gamma' rho m(s)."""
    alpha = number(params, "alpha")
    beta = number(params, "ratio") * alpha
    m, k = np.zeros_like(w), np.zeros_like(w)
    for s in steps:
        delta = error(s, w)
        missing = 1 + s.gamma_next * s.rho * (m @ s.x) - m @ s.x_next
        w, m, k = (
            w + alpha * (m @ s.x) * s.rho * delta * s.x,
            m + beta * (k @ s.x_next) * (s.x_next - s.gamma_next * s.rho * s.x),
            k + beta * (missing - k @ s.x_next) * s.x_next,
        )
    return w


def solved(
    steps: Sequence[Step], w0: Floats, lam: float, emphasis: Sequence[float], eta: float
) -> tuple[Floats, Floats]:
    """The sums A + eta G and b with the trace z = rho (gamma lam z + emphasis x)."""
    z, A, b = np.zeros_like(w0), np.zeros((len(w0), len(w0))), np.zeros_like(w0)
    for s, M in zip(steps, emphasis, strict=True):
        z = s.rho * (s.gamma * lam * z + M * s.x)
        A = A + np.outer(z, s.x - s.gamma_next * s.x_next) + eta * s.rho * np.outer(s.x, s.x)
        b = b + s.reward * z
    return A, b


def lstd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    A, b = solved(steps, w, number(params, "lam"), [1.0] * len(steps), eta=0.0)
    ridge = number(params, "ridge")
    return solution(A + ridge * np.eye(len(w)), b + ridge * w)


def lsetd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    lam, ridge = number(params, "lam"), number(params, "ridge")
    F, emphasis = 0.0, []
    for s in steps:
        beta = s.gamma if params["beta"] == "gamma" else number(params, "beta")
        F = beta * s.rho_1 * F * (s.gamma > 0.0) + s.interest
        emphasis.append(lam * s.interest + (1 - lam) * F)
    A, b = solved(steps, w, lam, emphasis, eta=0.0)
    return solution(A + ridge * np.eye(len(w)), b + ridge * w)


def perturbed_lstd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    emphasis = [1.0] * len(steps)
    A, b = solved(steps, w, number(params, "lam"), emphasis, number(params, "eta"))
    return solution(A, b)


def ridge_td(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """w += alpha (delta z - ridge w)."""
    alpha, lam, ridge = (number(params, name) for name in ("alpha", "lam", "ridge"))
    z = np.zeros_like(w)
    for s in steps:
        z = s.rho * (s.gamma * lam * z + s.x)
        w = w + alpha * (error(s, w) * z - ridge * w)
    return w


def nstep_td(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """A sum of the last n states, each with its product of ratios and discounts."""
    alpha, n = number(params, "alpha"), int(params["n"])
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
    alpha, ridge = number(params, "alpha"), number(params, "ridge")
    v = number(params, "v0") * w
    for i, s in enumerate(steps):
        if params["copy"] == "hard" and i % int(params["t"]) == 0:
            v = w.copy()
        delta = s.reward + s.gamma_next * (v @ s.x_next) - w @ s.x
        old, w = w, w + alpha * (s.rho * delta * s.x - ridge * w)
        if params["copy"] == "slow":
            v = v + number(params, "ratio") * alpha * (old - v)
    return w


def truncated_etd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """A follow-on trace as a sum over the last n ratios."""
    alpha, n = number(params, "alpha"), int(params["n"])
    for t, s in enumerate(steps):
        w = w + alpha * s.rho * emphasis(steps, t, n) * error(s, w) * s.x
    return w


def per_etd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """The same with n = b - 1, in every b-th step only."""
    alpha, b = number(params, "alpha"), int(params["b"])
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


def implicit_td(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """Solves w' = w + alpha (r + gamma' w.x' - w'.x) z for the new w', unless x.z < 0."""
    alpha, lam = number(params, "alpha"), number(params, "lam")
    z = np.zeros_like(w)
    for s in steps:
        z = s.rho * (s.gamma * lam * z + s.x)
        target = s.reward + s.gamma_next * (w @ s.x_next)
        if z @ s.x >= 0.0:
            w = solution(np.eye(len(w)) + alpha * np.outer(z, s.x), w + alpha * target * z)
        else:
            w = w + alpha * (target - w @ s.x) * z
    return w


def implicit_tdc(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """Solves both implicit equations as linear systems."""
    alpha = number(params, "alpha")
    beta = number(params, "ratio") * alpha
    h, identity = np.zeros_like(w), np.eye(len(w))
    for s in steps:
        target = s.reward + s.gamma_next * (w @ s.x_next)
        known = alpha * s.rho * (target * s.x - s.gamma_next * (h @ s.x) * s.x_next)
        second = h + beta * s.rho * error(s, w) * s.x
        w = solution(identity + alpha * s.rho * np.outer(s.x, s.x), w + known)
        h = solution(identity + beta * np.outer(s.x, s.x), second)
    return w


def true_online_td(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """True online ETD with M = 1."""
    return dutch(steps, w, params, emphatic=False)


def true_online_etd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """The form that keeps D, the last change of w times the next features."""
    return dutch(steps, w, params, emphatic=True)


def dutch(steps: Sequence[Step], w: Floats, params: Params, emphatic: bool) -> Floats:
    """e = rho gamma lam e + s x; change = delta e + D (e - rho alpha M x); D = change.x'."""
    alpha, lam = number(params, "alpha"), number(params, "lam")
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
    alpha, lam = number(params, "alpha"), number(params, "lam")
    beta = number(params, "ratio") * alpha
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


def tidbd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """The semi-gradient form; log step sizes as they are, not relative to the first one."""
    alpha, meta, lam = (number(params, name) for name in ("alpha", "meta", "lam"))
    z, h = np.zeros_like(w), np.zeros_like(w)
    beta = np.full_like(w, np.log(alpha))
    for s in steps:
        delta = error(s, w)
        beta = beta + meta * s.rho * delta * s.x * h
        own = np.exp(beta)
        z = s.rho * (s.gamma * lam * z + s.x)
        w = w + own * delta * z
        h = h * np.maximum(1 - own * s.x * z, 0) + own * delta * z
    return w


def autostep(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """The table of the paper with x z for x^2, step sizes as they are."""
    alpha, meta, lam, tau = (number(params, name) for name in ("alpha", "meta", "lam", "tau"))
    z, h, v, own = np.zeros_like(w), np.zeros_like(w), np.zeros_like(w), np.full_like(w, alpha)
    for s in steps:
        delta = error(s, w)
        z = s.rho * (s.gamma * lam * z + s.x)
        size = np.abs(s.rho * delta * s.x * h)
        v = np.maximum(size, v + own * s.x * z * (size - v) / tau)
        own = own * np.exp(meta * s.rho * delta * s.x * h / np.where(v > 0, v, 1))
        own = own / max(float(own @ (s.x * z)), 1.0)
        w = w + own * delta * z
        h = h * np.maximum(1 - own * s.x * z, 0) + own * delta * z
    return w


def wis_td(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """As in the paper, with two corrections of w and usage as it is."""
    alpha, eta, lam = (number(params, name) for name in ("alpha", "eta", "lam"))
    u, v, e, d = np.full_like(w, 1 / alpha), np.zeros_like(w), np.zeros_like(w), np.zeros_like(w)
    w_1 = w
    for s in steps:
        fade, square = s.gamma * lam, s.x * s.x
        before = float((w_1 if fade > 0 else w) @ s.x)
        u = u - eta * square * u + s.rho * square + (s.rho - 1) * fade * (1 - eta * square) * v
        v = s.rho * fade * (1 - eta * square) * v + s.rho * square
        x = s.x / np.where(u == 0, np.inf, u)
        e = s.rho * x + fade * s.rho * (e - s.rho * (s.x @ e) * x)
        provisional = fade * (d - s.rho * (s.x @ d) * x)
        next_value = float(w @ s.x_next)
        w_1, w = w, (
            w + s.rho * (before - w @ s.x) * x
            + (s.reward + s.gamma_next * next_value - before) * e
            + (s.rho - 1) * provisional
        )  # fmt: skip
        d = s.rho * provisional + (s.reward + next_value - before) * e
    return w


def swift_td(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """In the order of the authors' package: a step ends with what came before the next features."""
    names = ("alpha", "meta", "lam", "bound", "decay", "cut", "least")
    alpha, meta, lam, bound, decay, cut, least = (number(params, name) for name in names)
    z, p, z_bar, dw, last, h, h_old, h_temp = (np.zeros_like(w) for _ in range(8))
    beta, value = np.full_like(w, np.log(alpha)), 0.0
    for s in steps:
        fade = s.rho * s.gamma * lam
        z, p, z_bar = fade * z, fade * p, fade * z_bar
        kept = np.abs(z) > cut * last
        z, p, z_bar, dw = (np.where(kept, old, 0) for old in (z, p, z_bar, dw))
        value = value if s.gamma > 0 else float(w @ s.x)
        on, x = s.x != 0, s.x
        scale = bound / max(float(np.exp(beta) @ (x * x)), bound)
        met, moved = float(z @ x), float(dw @ x)
        last = np.where(on, scale * np.exp(beta), last)
        fresh = s.rho * last * x
        if scale < 1:
            h, h_old, z_bar = (np.where(on, 0, old) for old in (h, h_old, z_bar))
            beta = beta + np.log(decay) * x * x
        z = z + fresh * (1 - met)
        p = p + s.rho * h_old * x
        z_bar = z_bar + fresh * (1 - met - z_bar * x)
        h_temp = np.where(on, h - h_old * x * (z - fresh) - h * fresh * x, h)
        next_value = float(w @ s.x_next)
        delta = s.reward + s.gamma_next * next_value - value
        value, listed = next_value, kept | on
        dw = np.where(listed, delta * z - fresh * moved, 0)
        w = w + dw
        adapted = beta + meta / np.exp(beta) * (delta - moved) * p
        beta = np.where(listed, np.clip(adapted, np.log(least), np.log(bound)), beta)
        h_old = np.where(listed, h, h_old)
        h = np.where(listed, h_temp + delta * z_bar - fresh * moved, h)
    return w


def differential_td(steps: Sequence[Step], w: Floats, params: Params, eta: float = 0.0) -> Floats:
    alpha, lam, ratio = (number(params, name) for name in ("alpha", "lam", "ratio"))
    z, rate, started = np.zeros_like(w), 0.0, 0.0
    for s in steps:
        z = s.rho * (started * lam / (1 + eta) * z + s.x)
        surprise = error(s, w) - rate
        w, rate = (
            w + alpha * (surprise - eta * (w @ s.x)) * z,
            rate + ratio * alpha * s.rho * surprise,
        )
        started = 1.0
    return w


def perturbed_differential_td(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    return differential_td(steps, w, params, eta=number(params, "eta"))


def differential_gtd2(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """GTD2 on the features (x, 1), which are (x', 0) after the step."""
    alpha, beta = number(params, "alpha"), number(params, "alpha") * number(params, "ratio")
    both, h = np.append(w, 0.0), np.zeros(len(w) + 1)
    for s in steps:
        x, after = np.append(s.x, 1.0), np.append(s.gamma_next * s.x_next, 0.0)
        delta = s.reward + both @ after - both @ x
        both, h = (
            both + alpha * (h @ x) * (x - s.rho * after),
            h + beta * (s.rho * delta - h @ x) * x,
        )
    return np.asarray(both[:-1])


def ctdc(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    alpha, ratio, center = (number(params, name) for name in ("alpha", "ratio", "center"))
    h, omega = np.zeros_like(w), 0.0
    for s in steps:
        centred = s.rho * error(s, w) - omega
        w, h, omega = (
            w + alpha * (centred * s.x - s.gamma_next * s.rho * (h @ s.x) * s.x_next),
            h + ratio * alpha * (centred - h @ s.x) * s.x,
            omega + center * alpha * centred,
        )
    return w


REFERENCES: dict[str, Reference] = {
    one.__name__: one
    for one in (
        td, perturbed_td, etd, gtd2, tdc, tdc_as_published, gq, tdrc, gtd, htd, pgtd2, rotd,
        etd_beta, perturbed_etd, tree_backup, vtrace, abtd, cop_td, discounted_cop_td, gem_etd,
        lstd, lsetd, perturbed_lstd, ridge_td, nstep_td, target_td, truncated_etd, per_etd,
        implicit_td, implicit_tdc, true_online_td, true_online_etd, true_online_gtd, tidbd,
        autostep, wis_td, swift_td, differential_td, perturbed_differential_td, differential_gtd2,
        ctdc,
    )
}  # fmt: skip


def steps_of(
    problem: st.Problem, policy: int, count: int, seed: int, Psi: Floats | None = None
) -> list[Step]:
    """The stream of a seed for one target policy, from the problem's own arrays.

    With `Psi` for pairs of states and actions: x = Psi[s, a], and x' its expectation under pi.
    """
    stream, m = FiniteStream(problem), problem.moments(policy)
    events, _ = stream.take(stream.begin(seed), count)
    triples = zip(stream.s[events], stream.a[events], stream.s_next[events], strict=True)
    steps = []
    gamma = rho_1 = pi_1 = mu_1 = 0.0  # the first step begins an episode: nothing is before it
    for s, a, t in triples:
        step = Step(
            x=m.Phi[s] if Psi is None else Psi[s, a],
            x_next=m.Phi[t] if Psi is None else m.pi[t] @ Psi[t],
            reward=float(m.r[s, a, t]), gamma=gamma, gamma_next=float(m.gamma[s, a, t]),
            rho=float(m.pi[s, a] / m.mu[s, a]), rho_1=rho_1, pi=float(m.pi[s, a]), pi_1=pi_1,
            mu=float(m.mu[s, a]), mu_1=mu_1, interest=float(m.interest[s]), peaks=m.peaks,
        )  # fmt: skip
        steps.append(step)
        gamma, rho_1, pi_1, mu_1 = step.gamma_next, step.rho, step.pi, step.mu
    return steps
