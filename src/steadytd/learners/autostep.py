"""Autostep as TD(λ): learned step sizes for every feature, without tuning of the meta step size.

Background: The meta step size of tidbd depends on the scale of rewards and features. Autostep
divides every change of a log step size by the largest that was recently seen for that feature (v),
so that one meta step size (0.01) serves all scales. And no step may overshoot: where the step sizes
of the active features add up to more than 1, all step sizes are divided by that.

Update, for every feature k, with β_k = log(α_k / α)::

    δ = r + γ' wᵀx' - wᵀx
    z_k ← ρ (γ λ z_k + x_k)
    c_k = ρ δ x_k h_k
    v_k ← max(|c_k|, v_k + α_k x_k z_k (|c_k| - v_k) / τ)
    β_k ← β_k + meta c_k / v_k    where v_k > 0
    M = max(1, sum of α_k x_k z_k);    β_k ← β_k - log M
    w_k ← w_k + α_k δ z_k
    h_k ← h_k max(1 - α_k x_k z_k, 0) + α_k δ z_k

Fixed point: no closed form: the step sizes change with the data. While they stay as they are, the
mean update of w is that of td, each feature's times its α_k: its fixed point is A_λ w = b_λ,
TD's, whatever the step sizes. On-policy it leads there for all of them. Off-policy, where TD
diverges, so may this.

Parameters: alpha > 0 (the first step size of every feature), meta >= 0 (default 0.01), tau > 0
(default 10000), lam in [0, 1].

Example::

    steadytd run collision autostep:alpha=0.1,lam=0.5 --steps 20000 --seeds 10

Reference: Mahmood, Sutton, Degris & Pilarski (2012), "Tuning-free step-size adaptation".

Differs from the paper: 1. the paper's is for supervised learning; here δ is the TD error, and one
factor x of every x² is the trace. (Kearney et al. 2019 differentiate through x' too.) 2. ratios, in
the trace and before δ x h. 3. β is counted from log α, and 1 - α x z is not below 0 with traces.

Reduces to: td at meta = 0 while M = 1; the paper's Autostep where γ = λ = 0 and ρ = 1.
"""

from __future__ import annotations

from steadytd.engine.elementary import exp, log
from steadytd.engine.law import LAM, Entries, Param, Total, law
from steadytd.learners.tidbd import META


def trace(z: float, x: float, rho: float, gamma: float, lam: float) -> float:
    """The new entry of z."""
    return rho * gamma * lam * z + rho * x


def adapt(
    beta: float, v: float, z: float, h: float, x: float, delta: float, rho: float, alpha: float,
    meta: float, tau: float,
) -> tuple[float, float]:  # fmt: skip
    """The new entries of beta and v."""
    c = rho * delta * x * h
    v = max(abs(c), v + alpha * exp(beta) * x * z * (abs(c) - v) / tau)
    return beta + (meta * c / v if v > 0.0 else 0.0), v


def effective(beta: float, z: float, x: float, alpha: float) -> float:
    """What feature k adds to the share of the error that a step takes away."""
    return alpha * exp(beta) * x * z


def shrink(beta: float, rate: float) -> float:
    """The new entry of beta: beta - log M."""
    return beta - log(max(rate, 1.0))


def learn(
    w: float, h: float, beta: float, z: float, x: float, delta: float, alpha: float
) -> tuple[float, float]:
    """The new entries of w and h."""
    own = alpha * exp(beta)
    return w + own * delta * z, h * max(1.0 - own * x * z, 0.0) + own * delta * z


@law(
    params={
        "meta": META,
        "tau": Param("steps over which v forgets", default=1e4, low=0.0, above=True),
        "lam": LAM,
    },
    writes={"delta": "number"},
    each=[
        Entries(trace, ("z",), over="z"),
        Entries(adapt, ("beta", "v"), over="x"),
        Total(effective, "rate"),
        Entries(shrink, ("beta",)),
        Entries(learn, ("w", "h"), over="z"),
    ],
    adapts="td",
)
def autostep(reward: float, gamma_next: float, w_x: float, w_x_next: float) -> float:
    """The TD error; the other functions say what becomes of every feature."""
    return reward + gamma_next * w_x_next - w_x
