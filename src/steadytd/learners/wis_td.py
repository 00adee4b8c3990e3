"""WIS-TD(λ): off-policy TD(λ) with weighted importance sampling, at the cost of TD(λ).

Background: Importance sampling weighs every return by its ratio and divides by their number;
*weighted* importance sampling divides by the sum of the ratios, which has far less variance. With
features that sum is a matrix. WIS-TD(λ) keeps its diagonal only, the *usage* u of every feature,
and its inverse is that feature's step size: large while a feature is new, then like 1/n, or with
η > 0 at least about η. Two vectors (v and d) take back, when the next ratio is known, what was
learned before it. Off-policy it is not safe: it bootstraps as TD does.

Update, for every feature k (m = wᵀx' of the step before, with the weights before that step)::

    u_k ← (1 - η x_k²) u_k + ρ x_k² + (ρ - 1) γ λ (1 - η x_k²) v_k,    α_k = 1 / u_k
    v_k ← ρ γ λ (1 - η x_k²) v_k + ρ x_k²
    z_k ← ρ γ λ z_k + ρ (1 - ρ γ λ zᵀx) α_k x_k
    b_k = γ λ (d_k - ρ α_k x_k dᵀx)
    w_k ← w_k + (r + γ' wᵀx' - m) z_k - ρ (wᵀx - m) α_k x_k + (ρ - 1) b_k
    d_k ← ρ b_k + (r + wᵀx' - m) z_k

Fixed point: no closed form: the step sizes change with the data. While they stay as they are, the
mean update of w is that of td, to first order in the step sizes, each feature's times its α_k. So
its fixed point is A_λ w = b_λ, TD's, and off-policy it may diverge where TD does.

Parameters: alpha > 0 (the first step size of every feature: usage starts at 1/α), eta in [0, 1]
(default 0: step sizes fall like 1/n), lam in [0, 1].

Example::

    steadytd run collision wis_td:alpha=0.5,eta=0.01,lam=0.9 --steps 20000 --seeds 10

Reference: Mahmood & Sutton (2015), "Off-policy learning based on weighted importance sampling with
linear computational complexity".

Differs from the paper: 1. usage is counted from 1/α, so that it starts at zero. 2. m is wᵀx where
the trace holds no earlier state; the x' of a step must be the x of the next one, as on every stream
without gaps.

Reduces to: true_online_td where π = μ, all features are 0 or 1 and eta = alpha. With episodes of
one step, one feature for every state, eta = 0 and large alpha it is the average of the rewards,
weighted by their ratios.
"""

from __future__ import annotations

from steadytd.engine.law import LAM, Entries, Param, law


def learn(
    w: float, u: float, v: float, z: float, d: float, x: float, z_x: float, d_x: float, ahead:
    float, moved: float, undiscounted: float, rho: float, gamma: float, alpha: float, eta: float,
    lam: float,
) -> tuple[float, float, float, float, float]:  # fmt: skip
    """The new entries of w, u (less 1 / alpha), v, z and d."""
    fade, square = gamma * lam, x * x
    left = 1.0 - eta * square
    usage = left * (1.0 / alpha + u) + rho * square + (rho - 1.0) * fade * left * v
    own = 1.0 / usage if usage != 0.0 else 0.0
    v = rho * fade * left * v + rho * square
    z = rho * fade * z + rho * (1.0 - rho * fade * z_x) * own * x
    back = fade * (d - rho * own * x * d_x)
    w += ahead * z - rho * moved * own * x + (rho - 1.0) * back
    d = rho * back + undiscounted * z
    return w, usage - 1.0 / alpha, v, z, d


@law(
    params={"eta": Param("recency weight", default=0.0, low=0.0, high=1.0), "lam": LAM},
    memory={"last": None},
    writes={"ahead": "number", "moved": "number", "undiscounted": "number", "last": "value"},
    each=[Entries(learn, ("w", "u", "v", "z", "d"), over="z")],
    adapts="td",
)
def wis_td(
    reward: float, gamma: float, gamma_next: float, w_x: float, w_x_next: float, last: float, lam:
    float,
) -> tuple[float, float, float, float]:  # fmt: skip
    """The target less m, wᵀx less m, the target without discount less m, and the next m."""
    before = last if gamma * lam > 0.0 else w_x
    return (
        reward + gamma_next * w_x_next - before, w_x - before, reward + w_x_next - before, w_x_next,
    )  # fmt: skip
