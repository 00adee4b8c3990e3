"""SwiftTD: true online TD(λ) with learned step sizes, a bound on each step, and short traces.

Background: Three ideas in one. Every feature learns its own step size (β, with the traces h and p
that this needs). No step may correct more than a share `bound` of its error: where the step sizes
of the active features add up to more, the step is scaled down and their step sizes decay. And
traces are cut where they are below `cut` times the feature's step size, so that a step costs as
much as there are features with a trace. Made for streams with many features of which few matter.

Update, with β_k = log(α_k / α). First traces fade, and where |z_k| is then at most
cut × last_k, z_k, p_k, z̄_k and dw_k become 0::

    (z, p, z̄) ← ρ γ λ (z, p, z̄)

Then, for the active features, with E = sum of α_k x_k² and scale = bound / max(E, bound)::

    last_k = scale α_k,    f_k = ρ last_k x_k
    if scale < 1:  h_k = h'_k = z̄_k = 0,  β_k ← β_k + x_k² log decay
    z_k ← z_k + f_k (1 - zᵀx)
    p_k ← p_k + ρ h'_k x_k
    z̄_k ← z̄_k + f_k (1 - zᵀx - z̄_k x_k)
    g_k = h_k - h'_k x_k (z_k - f_k) - h_k f_k x_k

At last, where there is a trace (m = wᵀx' of the step before, with the weights before it)::

    δ = r + γ' wᵀx' - m,    e = dwᵀx
    dw_k = δ z_k - f_k e,    w_k ← w_k + dw_k
    β_k ← β_k + meta (δ - e) p_k / α_k, within log(least / α) and log(bound / α)
    h'_k = h_k,    h_k ← g_k + δ z̄_k - f_k e

Fixed point: no closed form: the step sizes change with the data, and traces are cut. While the step
sizes stay as they are and nothing is cut, the mean update of w is that of td, to first order in the
step sizes, each feature's times its α_k. So its fixed point is A_λ w = b_λ, TD's. Made for
on-policy prediction; off-policy it may diverge where TD does.

Parameters: alpha > 0 (the first step size of every feature), meta >= 0 (default 0.001), bound > 0
(default 0.1), decay in (0, 1] (default 0.999), cut >= 0 (default 1e-5), least > 0 (default 1e-10),
lam in [0, 1].

Example::

    steadytd run collision swift_td:alpha=0.01,lam=0.9 --steps 20000 --seeds 10

Reference: Javed, Sharifnassab & Sutton (2024), "SwiftTD: a fast and robust algorithm for temporal
difference learning"; equal to the class SwiftTD of its package swifttd 0.2.2 (there in single
precision).

Differs from the paper: 1. ratios, as in true online TD(λ), and discounts that may change. 2. β is
counted from log α, so that it starts at zero and a schedule applies to all features. 3. |z_k| is
compared with the cut, not z_k: the same where features are not negative. 4. m is wᵀx on an
episode's first step.

Reduces to: true_online_td at meta = 0 and cut = 0, where the bound is never reached and λ > 0.
"""

from __future__ import annotations

import math

from steadytd.engine.elementary import exp, log
from steadytd.engine.law import LAM, Entries, Param, Total, law
from steadytd.learners.tidbd import META


def fade(
    z: float, p: float, z_bar: float, dw: float, last: float, rho: float, gamma: float, lam:
    float, cut: float,
) -> tuple[float, float, float, float]:  # fmt: skip
    """The new entries of z, p, z_bar and dw."""
    kept = rho * gamma * lam
    if abs(kept * z) <= cut * last:
        return 0.0, 0.0, 0.0, 0.0
    return kept * z, kept * p, kept * z_bar, dw


def correction(beta: float, x: float, alpha: float) -> float:
    """What feature k adds to the share of its error that a step corrects."""
    return alpha * exp(beta) * x * x


def along(z: float, x: float) -> float:
    """What feature k adds to z.x."""
    return z * x


def change(dw: float, x: float) -> float:
    """What feature k adds to dw.x."""
    return dw * x


def meet(
    beta: float, z: float, p: float, z_bar: float, h: float, h_old: float, x: float, rate: float,
    met: float, rho: float, alpha: float, bound: float, decay: float,
) -> tuple[float, float, float, float, float, float, float, float]:  # fmt: skip
    """The new entries of beta, z, p, z_bar, h, h_old, g and last."""
    scale = bound / max(rate, bound)
    last = scale * alpha * exp(beta)
    fresh = rho * last * x
    if scale < 1.0:
        h, h_old, z_bar = 0.0, 0.0, 0.0
        beta += x * x * log(decay)
    z += fresh * (1.0 - met)
    p += rho * h_old * x
    z_bar += fresh * (1.0 - met - z_bar * x)
    g = h - h_old * x * (z - fresh) - h * fresh * x
    return beta, z, p, z_bar, h, h_old, g, last


def learn(
    w: float, beta: float, h: float, h_old: float, z: float, p: float, z_bar: float, g: float,
    last: float, x: float, delta: float, moved: float, rho: float, alpha: float, meta: float,
    bound: float, least: float,
) -> tuple[float, float, float, float, float, float]:  # fmt: skip
    """The new entries of w, beta, h, h_old, g and dw."""
    if z == 0.0 and x == 0.0:
        return w, beta, h, h_old, g, 0.0
    fresh = rho * last * x
    dw = delta * z - fresh * moved
    beta += meta / (alpha * exp(beta)) * (delta - moved) * p
    if alpha * exp(beta) > bound:
        beta = log(bound / alpha)
    elif alpha * exp(beta) < least:
        beta = log(least / alpha)
    new = g + delta * z_bar - fresh * moved
    return w + dw, beta, new, h, new, dw


def positive(doc: str, default: float, high: float = math.inf) -> Param:
    """A hyper-parameter that is above 0."""
    return Param(doc, default=default, low=0.0, high=high, above=True)


@law(
    params={
        "meta": Param(META.doc, default=1e-3, low=0.0),
        "bound": positive("largest share of an error that a step corrects", 0.1),
        "decay": positive("factor of step sizes where the bound is reached", 0.999, high=1.0),
        "cut": Param("traces below this times the step size are cut", default=1e-5, low=0.0),
        "least": positive("least step size of a feature", 1e-10),
        "lam": LAM,
    },
    memory={"v": None},
    writes={"delta": "number", "v": "value"},
    each=[
        Entries(fade, ("z", "p", "z_bar", "dw"), over="z"),
        Total(correction, "rate"),
        Total(along, "met"),
        Total(change, "moved"),
        Entries(meet, ("beta", "z", "p", "z_bar", "h", "h_old", "g", "last"), over="x"),
        Entries(learn, ("w", "beta", "h", "h_old", "g", "dw"), over="z"),
    ],
    adapts="td",
)
def swift_td(
    reward: float, gamma: float, gamma_next: float, w_x: float, w_x_next: float, v: float
) -> tuple[float, float]:
    """The TD error with m for the value of x, and the next m."""
    return reward + gamma_next * w_x_next - (v if gamma > 0.0 else w_x), w_x_next
