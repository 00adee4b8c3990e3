"""Perturbed LSTD(λ): the fixed points of perturbed TD for every penalty η, from one pass.

Background: How large should the penalty be? Without a model the certificate cannot say. This
learner shows the whole path η → w(η) from the data of one stream. Where the values change only
slowly with η, no pole is near, and perturbed_td can be run with that penalty at O(d).

Update::

    z    = ρ (γ λ z + x)
    A    ← A + z (x - γ' x')ᵀ
    G    ← G + ρ x xᵀ
    b    ← b + r z
    w(η) = the solution of (A + η G) w = b

A, G and b do not depend on η: learners that differ in η alone share one set of sums in a run,
and `path` solves them for any number of penalties afterwards. Near-singular A + η G (a pole of
the path, or too little data): the solution closest to w₀, by a pseudo-inverse where the condition
number exceeds 1e10.

Fixed point: (A_λ + η G) w = b_λ, that of perturbed_td (with traces: of penalty=outside). A
direct solution needs no stability, so every η is possible, also those at which perturbed_td
diverges; the bias is the same.

Parameters: eta >= 0 or auto (chosen by the certificate where the model is known), lam in [0, 1].

Example::

    steadytd run three_state perturbed_lstd:eta=0.5 --steps 20000 --seeds 10 --points 50

Reference: ours; the system is that of Diddigi, Kamanchi & Bhatnagar, "A convergent off-policy
temporal difference algorithm", with sums in place of expectations.

Differs from the paper: 1. the paper has no direct solution and no traces.

Reduces to: lstd at η = 0.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError
from steadytd.engine.law import LAM, Value, accumulating_trace, law
from steadytd.engine.learner import OnlineLearner
from steadytd.engine.second_order import SecondOrderBlock
from steadytd.learners.perturbed_td import ETA, outside_expectation
from steadytd.mdp.moments import Expectation, Moments


class PerturbedBlock(SecondOrderBlock):
    """Sums G as well, and solves A + eta G."""

    matrix = "G"

    def system(
        self, A: Floats, other: Floats, b: Floats, w0: Floats, values: Mapping[str, Value]
    ) -> tuple[Floats, Floats]:
        """(A + eta G) w = b, for w - w0."""
        penalty = float(values["eta"]) * other
        return A + penalty, b - penalty @ w0


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """P (w* - w) with the fixed point w* of perturbed_td (outside) and P as in lstd."""
    return m.direct(outside_expectation(m, values))


@law(
    params={"eta": ETA, "lam": LAM},
    traces={"z": accumulating_trace},
    writes={"w": "z"},
    idle_at_rho_zero=True,
    expectation=expectation,
    block=PerturbedBlock,
)
def perturbed_lstd(reward: float, gamma_next: float) -> tuple[float, float, float]:
    """w.x - gamma' w.x' = r: the right-hand side and the multiples of x and x'."""
    return reward, 1.0, -gamma_next


def path(running: OnlineLearner, etas: ArrayLike) -> Floats:
    """The weights [penalties, d] of a running perturbed_lstd for other penalties than its own.

    >>> import steadytd as st
    >>> a = st.learner("perturbed_lstd:eta=0").start(n_features=1)
    >>> _ = a.update([1], reward=1.0, x_next=[1], rho=1.0, gamma=0.5)
    >>> path(a, [0.0, 0.5, 1.5]).tolist()
    [[2.0], [1.0], [0.5]]
    """
    block = running.block
    if not isinstance(block, PerturbedBlock):
        raise InputError(f"a path over eta needs a running perturbed_lstd, got {running.learner}.")
    penalties = [ETA.check("perturbed_lstd", "eta", eta) for eta in np.atleast_1d(etas).tolist()]
    return np.stack([block.weights(0, {"eta": eta}) for eta in penalties])
