"""GTD(0): gradient descent on the norm of the expected TD update.

Background: The first of the gradient-TD methods, and the simplest proof that linear cost and
off-policy stability go together. Of historical interest: gtd2 and tdc descend a better norm.

Update (β = ratio α)::

    δ = r + γ' wᵀx' - wᵀx
    h ← h + β (ρ δ x - h)
    w ← w + α ρ (hᵀx) (x - γ' x')

Fixed point: A w = b and h = 0, the same as TD's. w descends along ‖b - A w‖², the norm of the
expected update, which ignores the geometry of the features: stable for every ratio > 0 where A is
non-singular, and usually the slowest of the gradient methods.

Parameters: alpha > 0, ratio > 0 (beta/alpha, default 10).

Example::

    steadytd run baird gtd:alpha=0.001,ratio=1 --steps 100000 --seeds 10

Reference: Sutton, Szepesvari & Maei (2008), "A convergent O(n) algorithm for off-policy
temporal-difference learning with linear function approximation".

Differs from the paper: nothing.

Reduces to: nothing simpler; gtd2 replaces h by a least-squares estimate.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from steadytd.engine.law import RATIO, law
from steadytd.mdp.moments import Expectation, Moments


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """M = [[0, -A'], [ratio A, ratio I]], g = (0, ratio b)."""
    A, b, ratio = m.A(), m.b(), values["ratio"]
    M = np.block([[np.zeros_like(A), -A.T], [ratio * A, ratio * m.share * np.eye(len(b))]])
    return Expectation(M=M, g=np.concatenate([np.zeros_like(b), ratio * b]))


@law(
    params={"ratio": RATIO},
    writes={"w": ("x", "x_next"), "h": ("x", "h")},
    expectation=expectation,
)
def gtd(
    reward: float,
    rho: float,
    gamma_next: float,
    w_x: float,
    w_x_next: float,
    h_x: float,
    alpha: float,
    ratio: float,
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The multiples of (x, x') to add to w and of (x, h) to add to h."""
    delta = reward + gamma_next * w_x_next - w_x
    beta = ratio * alpha
    w = alpha * rho * h_x, -alpha * rho * gamma_next * h_x
    h = beta * rho * delta, -beta
    return w, h
