"""GEM-ETD: emphatic TD whose emphasis is learned by gradient descent instead of sampled.

Background: The emphasis of ETD obeys a Bellman equation that runs backwards in time. So it can be
learned like a value function, by a gradient method, instead of being sampled as a product of
ratios.

Update (β = ratio α; m(s) = mᵀx is the learned emphasis)::

    e = 1 + γ' ρ m(s) - m(s')
    k ← k + β (e - kᵀx') x'
    m ← m + β (kᵀx') (x' - γ' ρ x)
    δ = r + γ' wᵀx' - wᵀx
    w ← w + α m(s) ρ δ x

Fixed point: (G - Φᵀ P_γᵀ D Φ) m = Φᵀ d and k = 0, then
Φᵀ D diag(m(s)) (I - P_γ) Φ w = Φᵀ D diag(m(s)) r_π: ETD(0)'s fixed point where the
features can represent f/d, at a fraction of ETD's variance. m is learned by GTD2's scheme on the
Bellman equation of the emphasis, backwards in time, which is stable where its matrix is
non-singular. That says nothing about w: where the features cannot represent f/d, m(s) may be
negative and w's update unstable. With the defaults it is on theta2theta and three_state, and stable
on baird.

Parameters: alpha > 0, ratio > 0 (beta/alpha, default 10).

Example::

    steadytd run baird gem_etd:alpha=0.001,ratio=1 --steps 100000 --seeds 10

Reference: Zhang et al. (2020), "Provably convergent two-timescale off-policy actor-critic with
function approximation", gradient emphasis learning (GEM).

Differs from the paper: 1. interest is 1. 2. no ridge term on the emphasis. 3. m and k share one
step size; m starts at 0.

Reduces to: etd at λ = 0 where m(s) equals the sampled emphasis.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from steadytd.engine.law import RATIO, law
from steadytd.mdp.moments import Expectation, Moments


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """The emphasis' own linear system; w's with m at its fixed point."""
    m.require_everywhere("gem_etd")
    ratio = values["ratio"]
    backward = m.G - m.Phi.T @ m.P_gamma.T @ (m.d[:, None] * m.Phi)
    target = m.Phi.T @ m.d
    emphasis = m.Phi @ m.least_squares(backward, target)
    e = m.emphatic(m.d * emphasis, lam=0.0)
    zero = np.zeros_like(m.G)
    M = np.block(
        [
            [e.M, zero, zero],
            [zero, zero, -ratio * backward.T],
            [zero, ratio * backward, ratio * m.G],
        ]
    )
    return Expectation(M=M, g=np.concatenate([e.g, np.zeros_like(target), ratio * target]))


@law(
    params={"ratio": RATIO},
    writes={"w": "x", "m": ("x_next", "x"), "k": "x_next"},
    expectation=expectation,
    settled=("m",),
)
def gem_etd(
    reward: float,
    rho: float,
    gamma_next: float,
    w_x: float,
    w_x_next: float,
    m_x: float,
    m_x_next: float,
    k_x_next: float,
    alpha: float,
    ratio: float,
) -> tuple[float, tuple[float, float], float]:
    """The multiples of x for w, of (x', x) for m, and of x' for k."""
    delta = reward + gamma_next * w_x_next - w_x
    beta = ratio * alpha
    e = 1 + gamma_next * rho * m_x - m_x_next
    m = beta * k_x_next, -beta * gamma_next * rho * k_x_next
    k = beta * (e - k_x_next)
    return alpha * m_x * rho * delta, m, k
