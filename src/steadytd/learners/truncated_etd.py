"""Truncated emphatic TD: ETD whose follow-on trace looks back n steps only.

Background: ETD's follow-on trace is a product of all past ratios, and its variance may be infinite.
A few ratios are usually enough for stability: with n of them the trace is a sum of at most n + 1
products, so its variance is finite, and the bias against ETD shrinks geometrically with n.

Update (Fₜ^(0) = i; the trace after n ratios is used)::

    Fₜ^(j) = iₜ + γₜ ρₜ₋₁ Fₜ₋₁^(j-1),   j = 1, …, n
    δ      = r + γ' wᵀx' - wᵀx
    w      ← w + α ρ F^(n) δ x

Fixed point: Φᵀ diag(fₙ) (I - P_γ) Φ w = Φᵀ diag(fₙ) r_π, with fₙ = Σ_{k=0..n}
(P_γᵀ)ᵏ (d i). As n grows it becomes ETD(0)'s, whose matrix is positive definite: if the
interest is positive, all n from some n on are stable.

Parameters: alpha > 0, n a whole number from 0 to 1000 (ratios in the trace, default 4).

Example::

    steadytd run three_state truncated_etd:alpha=0.0001,n=4 --steps 100000 --seeds 10

Reference: Zhang & Whiteson (2022), "Truncated emphatic temporal difference methods for prediction
and control".

Differs from the paper: 1. discounts and interest of every state, where theirs are constant. 2. no
projection on a ball.

Reduces to: td at n = 0 (up to the interest); etd at λ = 0 where no episode is longer than n + 1.
"""

from __future__ import annotations

from collections.abc import Mapping

from steadytd.base.arrays import Floats
from steadytd.engine.law import Param, Window, law
from steadytd.learners.etd import follow_on
from steadytd.mdp.moments import Expectation, Moments

RATIOS = Param("ratios in the follow-on trace", default=4.0, low=0.0, high=1000.0, whole=True)


def followed(m: Moments, ratios: int) -> Floats:
    """f_n = sum_{k=0..n} (P_gamma')^k (d i)."""
    flow = total = m.d * m.interest
    for _ in range(ratios):
        flow = flow @ m.P_gamma
        total = total + flow
    return total


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """TD's with f_n in place of d."""
    return m.emphatic(followed(m, int(values["n"])), lam=0.0)


@law(
    params={"n": RATIOS},
    memory={"F": follow_on},
    windows={"F": Window("n", more=1)},
    writes={"w": "x"},
    idle_at_rho_zero=True,
    expectation=expectation,
)
def truncated_etd(
    reward: float,
    rho: float,
    gamma_next: float,
    w_x: float,
    w_x_next: float,
    F: float,
    alpha: float,
) -> float:
    """w += alpha rho F delta x."""
    delta = reward + gamma_next * w_x_next - w_x
    return alpha * rho * F * delta
