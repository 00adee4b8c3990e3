"""TDC as the paper's authors ran it: weighted by pi(s, a) where rho = pi/mu is meant.

Background: Not an algorithm that anybody should use. The published figures compare against TDC, and
the code behind them weights the updates by the target policy's probability instead of the ratio. To
reproduce the figures one needs that code's arithmetic; to judge the comparison one needs to know
what it converges to.

Update (beta = ratio alpha)::

    delta = r + gamma' w.x' - w.x
    z     = pi (gamma lam z + x)
    w    += alpha (delta z - gamma' (1 - lam) (h.z) x')
    h    += beta  (delta z - pi (h.x) x)

Fixed point: with c(s) = sum_a mu pi and Q[s, s'] = sum_a mu pi p gamma in the place of 1 and
P_gamma, Phi' D (I - lam Q)^-1 (diag(c) - Q) Phi w = Phi' D (I - lam Q)^-1 r_c and h = 0. That is
*not* a fixed point of the target policy: the weights answer a question that nobody asked. It is
here so that the paper's Figures 1 to 3 can be reproduced and explained, and for nothing else; use
`tdc`.

Parameters: alpha > 0, ratio > 0 (beta/alpha; the notebooks use 10), lam in [0, 1].

Example::

    steadytd run three_state tdc_as_published:alpha=0.0001,ratio=10 --steps 1000000 --seeds 10

Reference: the notebooks published with Diddigi, Kamanchi & Bhatnagar, "A convergent off-policy
temporal difference algorithm".

Differs from the paper: 1. the paper cites TDC, which has rho; the notebooks have pi. 2. traces are
ours, for the sake of one interface.

Reduces to: tdc if mu(s, a) = 1 for the actions taken.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from steadytd.engine.law import LAM, RATIO, Standing, law
from steadytd.mdp.moments import Expectation, Moments


def published_trace(pi: float, gamma: float, lam: float) -> tuple[float, float]:
    """z <- pi (gamma lam z + x)."""
    return pi * gamma * lam, pi


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """TDC's matrices with the weights mu pi in place of pi."""
    lam, ratio = values["lam"], values["ratio"]
    weight = m.mu * m.pi
    c = weight.sum(axis=1)
    Q = np.einsum("sa,sat,sat->st", weight, m.P, m.gamma)
    r_c = np.einsum("sa,sat,sat->s", weight, m.P, m.r)
    collected = (m.Phi * m.d[:, None]).T @ np.linalg.inv(np.eye(len(c)) - lam * Q)
    A = collected @ (c[:, None] * m.Phi - Q @ m.Phi)
    B = (1 - lam) * (collected @ Q @ m.Phi).T
    G = m.weighted(np.diag(c))
    b = collected @ r_c
    M = np.block([[A, B], [ratio * A, ratio * G]])
    return Expectation(M=M, g=np.concatenate([b, ratio * b]))


@law(
    params={"ratio": RATIO, "lam": LAM},
    traces={"z": published_trace},
    writes={"w": ("z", "x_next"), "h": ("z", "x")},
    idle_at_rho_zero=True,
    expectation=expectation,
    standing=Standing(exhibit=True),
)
def tdc_as_published(
    reward: float,
    pi: float,
    gamma_next: float,
    w_x: float,
    w_x_next: float,
    h_x: float,
    h_z: float,
    alpha: float,
    ratio: float,
    lam: float,
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The multiples of (z, x') to add to w and of (z, x) to add to h."""
    delta = reward + gamma_next * w_x_next - w_x
    beta = ratio * alpha
    w = alpha * delta, -alpha * gamma_next * (1 - lam) * h_z
    h = beta * delta, -beta * pi * h_x
    return w, h
