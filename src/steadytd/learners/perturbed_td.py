"""Perturbed off-policy TD(λ): the paper's algorithm. A penalty η makes the update stable.

Background: The smallest change to TD that can stop it from diverging: every update also pulls the
value estimate of the present state towards zero. One vector, one more multiplication, no second
time scale. Use it where the certificate says that its bias is small.

Update (Algorithm 1 of the paper; z = ρ x at λ = 0)::

    ρ = π(s, a) / μ(s, a)
    δ = r + γ' wᵀx' - (1 + η) wᵀx
    w ← w + α ρ δ x

With traces, `penalty=scaled` (the default) decays the trace by the discount that the penalty
leaves, z = ρ (γ λ / (1 + η) z + x) and w ← w + α δ z. `penalty=outside` keeps the
usual trace and δ and subtracts the penalty beside them: w ← w + α (δ z - η ρ (wᵀx) x).

Fixed point: (A₀ + η G) w = b₀ at λ = 0, the paper's Φ w = Π T_η Φ w. With
g P = P_γ / (1 + η), scaled: (1 + η) Φᵀ D (I - λ g P)⁻¹ (I - g P) Φ w =
Φᵀ D (I - λ g P)⁻¹ r_π; outside: (A_λ + η G) w = b_λ. It is the TD fixed point of
*another* problem, with discount γ/(1 + η) and reward r/(1 + η): stability is paid for with
bias. Where stability begins at a real eigenvalue, the fixed point has a pole, and the bias grows
without bound towards it; where a complex pair crosses (baird), there is no pole.

Parameters: alpha > 0, eta >= 0 (the penalty) or auto (chosen by the certificate where the model is
known), lam in [0, 1], penalty scaled or outside.

Example::

    steadytd run three_state perturbed_td:alpha=0.0001,eta=0.5 --steps 1000000 --seeds 10

Reference: Diddigi, Kamanchi & Bhatnagar, "A convergent off-policy temporal difference algorithm",
Algorithm 1 (lines 3 to 5).

Differs from the paper: traces are ours (the paper leaves them open); the plain combination, a
trace with γ λ and the penalty inside δ, is not offered because it can diverge for every
large η.

Reduces to: td at η = 0; scaled = outside at λ = 0.
"""

from __future__ import annotations

from collections.abc import Mapping

from steadytd.engine.law import LAM, Param, Role, accumulating_trace, law
from steadytd.mdp.moments import Expectation, Moments

ETA = Param("penalty", low=0.0, auto=True, cure=True)


def scaled_trace(rho: float, gamma: float, lam: float, eta: float) -> tuple[float, float]:
    """z <- rho (gamma lam / (1 + eta) z + x)."""
    return rho * (gamma * lam / (1 + eta)), rho


def scaled_expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """TD(lam)'s with discount gamma/(1 + eta) and reward r/(1 + eta), times 1 + eta."""
    return m.emphatic(m.d, values["lam"], 1 / (1 + values["eta"]))


def outside_expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """E[change of w] = alpha (b_lam - (A_lam + eta G) w)."""
    return Expectation(M=m.A(values["lam"]) + values["eta"] * m.G, g=m.b(values["lam"]))


@law(
    name="perturbed_td",
    params={"eta": ETA, "lam": LAM},
    traces={"z": accumulating_trace},
    writes={"w": ("z", "x")},
    idle_at_rho_zero=True,
    expectation=outside_expectation,
)
def outside(
    reward: float,
    rho: float,
    gamma_next: float,
    w_x: float,
    w_x_next: float,
    alpha: float,
    eta: float,
) -> tuple[float, float]:
    """w += alpha (delta z - eta rho (w.x) x)."""
    delta = reward + gamma_next * w_x_next - w_x
    return alpha * delta, -alpha * eta * rho * w_x


@law(
    params={"eta": ETA, "lam": LAM},
    traces={"z": scaled_trace},
    writes={"w": "z"},
    idle_at_rho_zero=True,
    expectation=scaled_expectation,
    role=Role(3, "perturbed_lstd"),
    variant_param="penalty",
    variants={"scaled": None, "outside": outside},
)
def perturbed_td(
    reward: float, gamma_next: float, w_x: float, w_x_next: float, alpha: float, eta: float
) -> float:
    """w += alpha delta z, where z carries rho."""
    delta = reward + gamma_next * w_x_next - (1 + eta) * w_x
    return alpha * delta
