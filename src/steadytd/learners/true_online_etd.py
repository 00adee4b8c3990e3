"""True online ETD(λ): emphatic TD with a trace that makes every step exact.

Background: What true_online_td is to td, this is to etd: stable in the mean for every pair of
policies, with ETD's variance, and smoother at large step sizes.

Update (v = wᵀx' of the step before, with the weights before that step)::

    F = γ ρₜ₋₁ F + i
    M = λ i + (1 - λ) F
    z = ρ γ λ z + ρ α M (1 - ρ γ λ xᵀz) x
    δ = r + γ' wᵀx' - wᵀx
    w ← w + δ z + (wᵀx - v) (z - ρ α M x)

Fixed point: ETD(λ)'s, to first order in α.

Parameters: alpha > 0, lam in [0, 1].

Example::

    steadytd run three_state true_online_etd:alpha=0.0001,lam=0.5 --steps 100000 --seeds 10

Reference: Sutton, Mahmood & White (2016), "An emphatic approach to the problem of off-policy
temporal-difference learning", and Sutton's public code for true online ETD(lam).

Differs from the paper: 1. (wᵀx - v) counts only where the trace holds an earlier state; the
x' of a step must be the x of the next one, as on every stream without gaps.

Reduces to: etd at λ = 0; true_online_td where M = 1.
"""

from __future__ import annotations

from steadytd.engine.law import LAM, law
from steadytd.learners.etd import expectation, follow_on


def emphatic_dutch_trace(
    rho: float, gamma: float, lam: float, F: float, interest: float, alpha: float, z_x: float
) -> tuple[float, float]:
    """z <- rho gamma lam z + rho alpha M (1 - rho gamma lam x.z) x, with the old z in x.z."""
    decay = rho * gamma * lam
    M = lam * interest + (1 - lam) * F
    return decay, rho * alpha * M * (1 - decay * z_x)


@law(
    params={"lam": LAM},
    traces={"z": emphatic_dutch_trace},
    memory={"F": follow_on, "v": None},
    writes={"w": ("z", "x"), "v": "value"},
    expectation=expectation,
    first_order=True,
)
def true_online_etd(
    reward: float,
    rho: float,
    gamma: float,
    gamma_next: float,
    interest: float,
    w_x: float,
    w_x_next: float,
    F: float,
    v: float,
    alpha: float,
    lam: float,
) -> tuple[tuple[float, float], float]:
    """The multiples of (z, x) to add to w, and the new v."""
    delta = reward + gamma_next * w_x_next - w_x
    moved = w_x - v if gamma * lam > 0.0 else 0.0
    M = lam * interest + (1 - lam) * F
    return (delta + moved, -moved * rho * alpha * M), w_x_next
