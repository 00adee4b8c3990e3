"""Differential TD(λ): values and the reward rate of a stream without end and without discount.

Background: Where a stream never ends, the reward per step that a policy earns in the long run, its
*rate*, says how good it is, and no discount has to be chosen. The differential value of a state is
how much more than the rate is earned from there on. Both are learned from one error: what a step
gives beyond the present rate and values. Off-policy nothing guarantees that it is stable.

Update (ρ = π(s, a) / μ(s, a)); r̄ is a number beside the vector w::

    δ = r - r̄ + wᵀx' - wᵀx
    z = ρ (λ z + x)
    w ← w + α δ z
    r̄ ← r̄ + ratio α ρ δ

Fixed point: A_λ w + c r̄ = b_λ and dᵀ(I - P)Φ w + r̄ = dᵀr_π, with d = d_μ,
A_λ = Φᵀ D (I - λ P)⁻¹ (I - P) Φ, b_λ = Φᵀ D (I - λ P)⁻¹ r_π and c = Φᵀd / (1 - λ). It does not
depend on ratio; its stability does. With a weight per state, r̄ is the rate and w the differential
values up to a constant; with features off-policy both have an error (docs/average_reward.md).

Parameters: alpha > 0, ratio > 0 (the step size of r̄ / α), lam in [0, 1]: without
discount the mean of a trace is finite below 1 only.

Example::

    steadytd run access_control differential_td:alpha=0.01,ratio=0.1 --steps 100000 --seeds 10

Reference: Wan, Naik & Sutton (2021), "Learning and planning in average-reward Markov decision
processes"; Zhang, Wan, Sutton & Whiteson (2021), "Average-reward off-policy policy evaluation with
function approximation", who show that it can diverge.

Differs from the paper: 1. traces of w are ours; r̄ has none, as without them.

Reduces to: td without discount on the features (x, √ratio) and next features (x', 0), at λ = 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from steadytd.engine.law import LAM, RATIO, Role, accumulating_trace, law
from steadytd.mdp.moments import Expectation, Moments

RATE_RATIO = replace(RATIO, doc="step size of the reward rate / alpha", default=1.0)


def with_rate(m: Moments, values: Mapping[str, float], eta: float) -> Expectation:
    """M and g for (w, rate), where the penalty eta counts in the update of w alone."""
    ratio, scale = values["ratio"], 1.0 / (1.0 + eta)
    steps = m.Phi - m.ahead
    columns = np.column_stack([steps + eta * m.Phi, np.ones(len(m.d)), m.r_pi])
    first = (m.Phi * m.d[:, None]).T @ m.collected(columns, values["lam"], scale)
    M = np.vstack([first[:, :-1], ratio * np.append(m.d @ steps, 1.0)])
    return Expectation(M=M, g=np.append(first[:, -1], ratio * (m.d @ m.r_pi)))


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """M = [[A_lam, c], [ratio d'(I - P) Phi, ratio]], g = (b_lam, ratio d'r)."""
    return with_rate(m, values, 0.0)


@law(
    params={"ratio": replace(RATE_RATIO, cure=True), "lam": replace(LAM, cure=True)},
    traces={"z": accumulating_trace},
    writes={"w": "z", "rate": "1"},
    expectation=expectation,
    average_reward=True,
    role=Role(1),
)
def differential_td(
    reward: float,
    rho: float,
    gamma_next: float,
    w_x: float,
    w_x_next: float,
    rate: float,
    alpha: float,
    ratio: float,
) -> tuple[float, float]:
    """The multiple of z to add to w, and what to add to the rate."""
    delta = reward - rate + gamma_next * w_x_next - w_x
    return alpha * delta, ratio * alpha * rho * delta
