"""Perturbed differential TD(λ): the paper's penalty where there is no discount. Our own.

Background: Perturbed TD at discount γ is TD at discount γ/(1 + η). Without discount, γ = 1, the
penalty η is all the discount there is, so the theorem's condition holds for η large enough, if the
rate is learned fast. The rate itself is not penalised: if it were, both updates would say the same
wherever the features span constants, and would leave the rate open.

Update (ρ = π(s, a) / μ(s, a))::

    δ = r - r̄ + wᵀx' - wᵀx
    z = ρ (λ / (1 + η) z + x)
    w ← w + α (δ - η wᵀx) z
    r̄ ← r̄ + ratio α ρ δ

Fixed point: at λ = 0, Φᵀ D ((1 + η) I - P) Φ w + Φᵀd r̄ = Φᵀ D r_π and
dᵀ(I - P)Φ w + r̄ = dᵀr_π. With a weight per state r̄ = η dᵀ((1 + η) I - P)⁻¹ r_π and dᵀv = 0: the
rate is the normalised value from d_μ at discount 1/(1 + η), and its bias is of the order of η.
With features it is stable for every η > √κ - 1 if ratio is large enough, κ = max_j (dᵀP)_j / d_j,
and for every ratio above another threshold (docs/average_reward.md).

Parameters: alpha > 0, eta >= 0 (the penalty) or auto, ratio > 0 (the step size of r̄ / α), lam in
[0, 1].

Example::

    steadytd run queue perturbed_differential_td:alpha=0.01,eta=0.1 --steps 100000 --seeds 10

Reference: ours, after Diddigi, Kamanchi & Bhatnagar, "A convergent off-policy temporal difference
algorithm", and Wan, Naik & Sutton (2021).

Differs from the paper: 1. the paper has a discount and no rate.

Reduces to: differential_td at η = 0.
"""

from __future__ import annotations

from collections.abc import Mapping

from steadytd.engine.law import LAM, Role, law
from steadytd.learners.differential_td import RATE_RATIO, with_rate
from steadytd.learners.perturbed_td import ETA, scaled_trace
from steadytd.mdp.moments import Expectation, Moments


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """M = [[Phi'D C ((1 + eta) I - P) Phi, Phi'D C 1], [ratio d'(I - P) Phi, ratio]].

    Here C = (I - lam P/(1 + eta))^-1, and g = (Phi'D C r, ratio d'r).
    """
    return with_rate(m, values, values["eta"])


@law(
    params={"eta": ETA, "ratio": RATE_RATIO, "lam": LAM},
    traces={"z": scaled_trace},
    writes={"w": "z", "rate": "1"},
    expectation=expectation,
    average_reward=True,
    role=Role(3),
)
def perturbed_differential_td(
    reward: float,
    rho: float,
    gamma_next: float,
    w_x: float,
    w_x_next: float,
    rate: float,
    alpha: float,
    eta: float,
    ratio: float,
) -> tuple[float, float]:
    """The multiple of z to add to w, and what to add to the rate."""
    delta = reward - rate + gamma_next * w_x_next - w_x
    return alpha * (delta - eta * w_x), ratio * alpha * rho * delta
