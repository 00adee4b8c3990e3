"""TIDBD(λ): TD(λ) that learns a step size for every feature.

Background: One step size for all features is a compromise: a feature that matters should learn
fast, one that is noise should hardly learn. TIDBD raises the step size of a feature where its
present change agrees with its recent ones (h is their trace), and lowers it where they disagree. It
needs a meta step size, which is easier to choose than the step sizes were, and two more vectors.

Update, for every feature k, with β_k = log(α_k / α)::

    δ = r + γ' wᵀx' - wᵀx
    β_k ← β_k + meta ρ δ x_k h_k
    α_k = α exp(β_k)
    z_k ← ρ (γ λ z_k + x_k)
    w_k ← w_k + α_k δ z_k
    h_k ← h_k max(1 - α_k x_k z_k, 0) + α_k δ z_k

Fixed point: no closed form: the step sizes change with the data. While they stay as they are, the
mean update of w is that of td, each feature's times its α_k: its fixed point is A_λ w = b_λ,
TD's, whatever the step sizes. On-policy it leads there for all of them. Off-policy, where TD
diverges, so may this.

Parameters: alpha > 0 (the first step size of every feature), meta >= 0 (default 0.01), lam in
[0, 1].

Example::

    steadytd run collision tidbd:alpha=0.01,meta=0.01,lam=0.5 --steps 20000 --seeds 10

Reference: Kearney, Veeriah, Travnik, Pilarski & Sutton (2019), "Learning feature relevance through
step size adaptation in temporal-difference learning", with the semi-gradient.

Differs from the paper: 1. ratios, in the trace and before δ x h. 2. β is counted from log α, so
that it starts at zero and a schedule of step sizes applies to all features.

Reduces to: td at meta = 0.
"""

from __future__ import annotations

from steadytd.engine.elementary import exp
from steadytd.engine.law import LAM, Entries, Param, law

META = Param("meta step size", default=0.01, low=0.0)


def learn(
    w: float, beta: float, z: float, h: float, x: float, delta: float, rho: float, gamma: float,
    alpha: float, meta: float, lam: float,
) -> tuple[float, float, float, float]:  # fmt: skip
    """The new entries of w, beta, z and h."""
    beta += meta * rho * delta * x * h
    own = alpha * exp(beta)
    z = rho * gamma * lam * z + rho * x
    w += own * delta * z
    h = h * max(1.0 - own * x * z, 0.0) + own * delta * z
    return w, beta, z, h


@law(
    params={"meta": META, "lam": LAM},
    writes={"delta": "number"},
    each=[Entries(learn, ("w", "beta", "z", "h"), over="z")],
    adapts="td",
)
def tidbd(reward: float, gamma_next: float, w_x: float, w_x_next: float) -> float:
    """The TD error; `learn` says what becomes of every feature."""
    return reward + gamma_next * w_x_next - w_x
