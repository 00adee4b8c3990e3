"""TD(λ) with a ridge: every step also shrinks all weights.

Background: The oldest cure of all, weight decay. It differs from the paper's penalty in what it
shrinks: perturbed TD pulls the *value of the present state* towards zero, A + η G, a ridge pulls
*every weight* towards zero, A + ridge I, also those that the present state does not use. A ridge
depends on the scale and the choice of the features; the penalty does not.

Update::

    δ = r + γ' wᵀx' - wᵀx
    z = ρ (γ λ z + x)
    w ← w + α (δ z - ridge w)

Fixed point: (A_λ + ridge I) w = b_λ. Stable exactly if the ridge exceeds the largest real part
of an eigenvalue of -A_λ, so some amount always is enough. Stability is paid for with bias, and
where it begins at a real eigenvalue the fixed point has a pole, as perturbed TD's has.

Parameters: alpha > 0, ridge >= 0, lam in [0, 1].

Example::

    steadytd run three_state ridge_td:alpha=0.0001,ridge=0.5 --steps 100000 --seeds 10

Reference: the standard remedy; compared with a target network's by Zhang, Yao & Whiteson (2021),
"Breaking the deadly triad with a target network".

Differs from the paper: nothing.

Reduces to: td at ridge = 0.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from steadytd.engine.law import LAM, Param, accumulating_trace, law
from steadytd.mdp.moments import Expectation, Moments

RIDGE = Param("shrinks all weights at every step", low=0.0, cure=True)


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """E[change of w] = alpha (b_lam - (A_lam + ridge I) w)."""
    lam, shrink = values["lam"], values["ridge"] * m.share
    return Expectation(M=m.A(lam) + shrink * np.eye(m.n_features), g=m.b(lam))


@law(
    params={"ridge": RIDGE, "lam": LAM},
    traces={"z": accumulating_trace},
    writes={"w": ("z", "w")},
    expectation=expectation,
)
def ridge_td(
    reward: float, gamma_next: float, w_x: float, w_x_next: float, alpha: float, ridge: float
) -> tuple[float, float]:
    """The multiples of z and of w to add to w."""
    delta = reward + gamma_next * w_x_next - w_x
    return alpha * delta, -alpha * ridge
