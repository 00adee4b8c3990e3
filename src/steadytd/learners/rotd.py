"""RO-TD: regularised off-policy TD, a saddle point with an ℓ₁ penalty on the weights.

Background: When only a few of many features matter, an ℓ₁ penalty should find them. RO-TD writes
TDC's equations as a saddle point, adds the penalty, and takes proximal steps. Four vectors,
averaged weights, slow: it is here because the paper names it as the other penalised method.

Update, for the primal vectors w, h and the dual vectors u, v (c weighs the first block; soft is
soft-thresholding, clip keeps every entry within the radius)::

    δ = r + γ' wᵀx' - wᵀx
    w ← soft(w - α ρ (c uᵀx + vᵀx) (x - γ' x'), α l1)
    h ← soft(h - α (c uᵀx + ρ γ' vᵀx') x, α l1)
    u ← clip(u + α c (hᵀx - ρ δ) x)
    v ← clip(v + α (ρ γ' (hᵀx) x' - ρ δ x))

Fixed point: A w = b, h = u = v = 0 at l1 = 0; with l1 > 0 a sparse approximation of it, for which
there is no closed form. The mean update turns around the saddle point without approaching it, so
the certificate calls it unstable: the *average* of the weights converges, at the rate 1/√T.
Use it with average=1.

Parameters: alpha > 0, l1 >= 0 (default 0), c > 0 (default 1), radius > 0 (default 10).

Example::

    steadytd run three_state rotd:alpha=0.01,l1=0.001,average=1 --steps 100000 --seeds 10

Reference: Liu, Mahadevan & Liu (2012), "Regularized off-policy TD-learning".

Differs from the paper: 1. the dual set is a box. 2. the importance ratio, which the paper leaves to
sub-sampling, weighs the terms that belong to the target policy.

Reduces to: a saddle-point form of tdc at l1 = 0.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from steadytd.base.errors import InputError
from steadytd.engine.law import Param, law
from steadytd.mdp.moments import Expectation, Moments


def soft(value: float, alpha: float, l1: float) -> float:
    """Move a number towards 0 by alpha l1, and stop there."""
    return max(value - alpha * l1, 0.0) + min(value + alpha * l1, 0.0)


def clip(value: float, radius: float) -> float:
    """Keep a number within [-radius, radius]."""
    return min(max(value, -radius), radius)


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """The saddle point's linear system, for vectors inside the box and l1 = 0."""
    if values["l1"] > 0.0:
        raise InputError("rotd has no closed form with l1 > 0; use l1 = 0 for the theory.")
    A, b, G, c = m.A(), m.b(), m.G, values["c"]
    C = G - A
    zero = np.zeros_like(A)
    M = np.block(
        [
            [zero, zero, c * A.T, A.T],
            [zero, zero, c * G, C],
            [-c * A, -c * G, zero, zero],
            [-A, -C.T, zero, zero],
        ]
    )
    return Expectation(M=M, g=np.concatenate([0 * b, 0 * b, -c * b, -b]))


@law(
    params={
        "l1": Param("l1 penalty", default=0.0, low=0.0),
        "c": Param("weight of the first block", default=1.0, low=0.0, above=True),
        "radius": Param("bound on the dual vectors", default=10.0, low=0.0, above=True),
    },
    writes={"w": ("x", "x_next"), "h": "x", "u": "x", "v": ("x_next", "x")},
    maps={"w": soft, "h": soft, "u": clip, "v": clip},
    expectation=expectation,
)
def rotd(
    reward: float,
    rho: float,
    gamma_next: float,
    w_x: float,
    w_x_next: float,
    h_x: float,
    u_x: float,
    v_x: float,
    v_x_next: float,
    alpha: float,
    c: float,
) -> tuple[tuple[float, float], float, float, tuple[float, float]]:
    """The multiples for w, h, u and v, before the maps."""
    delta = reward + gamma_next * w_x_next - w_x
    down = alpha * rho * (c * u_x + v_x)
    w = -down, gamma_next * down
    h = -alpha * (c * u_x + rho * gamma_next * v_x_next)
    u = alpha * c * (h_x - rho * delta)
    v = alpha * rho * gamma_next * h_x, -alpha * rho * delta
    return w, h, u, v
