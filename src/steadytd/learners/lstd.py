"""LSTD(λ): the TD fixed point of the data so far, solved directly. No step size.

Background: TD follows its mean update step by step and may diverge. The mean update is linear, so
the point where it is zero can be computed: average its matrix and vector over the data and solve.
There is no step size to choose, nothing diverges, and every transition counts fully. The cost is
d² numbers, and d³ operations for a solution. Where A has an eigenvalue near zero, the estimate
has a large variance.

Update::

    z = ρ (γ λ z + x)
    A ← A + z (x - γ' x')ᵀ
    b ← b + r z
    w = the solution of (A + ridge I) w = b + ridge w₀

`form=batch` (the default) solves when weights are asked for. `form=recursive` keeps the inverse by
Sherman-Morrison from I / ridge on, C ← C - (C z)(vᵀ C) / (1 + vᵀ C z) with v = x - γ' x': the same
weights up to rounding, at O(d²) per step, which suits a live stream that asks after every step.

Near-singular A: the solution closest to w₀ is taken, by a pseudo-inverse where the condition number
exceeds 1e10 (singular values below 1e-10 of the largest count as zero). Where a step makes the
recursive form's matrix nearly singular, it solves as the batch form does.

Fixed point: td's, A_λ w = b_λ, approached almost surely and, unlike by td, whether A_λ is
positive definite or not. It makes the projected Bellman error zero.

Parameters: lam in [0, 1], ridge >= 0 (in steps of a unit feature; > 0 for form=recursive), form
batch or recursive.

Example::

    steadytd run three_state lstd td:alpha=0.001 --steps 20000 --seeds 10 --points 50

Reference: Bradtke & Barto (1996), "Linear least-squares algorithms for temporal difference
learning" (on-policy, lam = 0, both forms); Yu (2010), "Convergence of least squares temporal
difference methods under general conditions" (off-policy, with traces).

Differs from the paper: 1. a ridge pulls towards w₀, not 0. 2. A need not be invertible (above).

Reduces to: the mean reward of each state, for λ = 0, discount 0 and a feature per state.
"""

from __future__ import annotations

from collections.abc import Mapping

from steadytd.engine.law import LAM, accumulating_trace
from steadytd.engine.second_order import solved
from steadytd.learners import td
from steadytd.mdp.moments import Expectation, Moments


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """P (w* - w) with td's fixed point w* and P the projection onto the row space."""
    return m.direct(td.expectation(m, values))


@solved(params={"lam": LAM}, traces={"z": accumulating_trace}, expectation=expectation)
def lstd(reward: float, gamma_next: float) -> tuple[float, float, float]:
    """w.x - gamma' w.x' = r: the right-hand side and the multiples of x and x'."""
    return reward, 1.0, -gamma_next
