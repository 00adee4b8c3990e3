"""Random unstable problems: six states, three features redrawn until TD is unstable.

The action *on* leads from state s to s + 1 and from the last state to itself; *jump* leads to each
state equally often. The behaviour policy jumps three times out of four, the target policy goes on
nine times out of ten. Leaving the states 0 to 5 is rewarded with 1, -1, 0.5, -0.5, 0.25 and 0.1.
The discount is 0.95.

A family: every seed draws its own features, uniform in [-1, 1], again and again until the mean
update of TD (lam = 0) has an eigenvalue that leads away from its fixed point. Nothing else depends
on the seed.

Named fact: TD is unstable on every instance; perturbed TD with eta = 4 is stable on the first 200;
d_mu(0) = 1/8.

Source: made for this library, to compare cures on problems that need one.
"""

from __future__ import annotations

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError
from steadytd.base.numbers import one_seed
from steadytd.base.random import PROBLEM, uniforms
from steadytd.mdp.problem import Problem

FAMILY = True
STATES, FEATURES, ATTEMPTS = 6, 3, 1000
ON, JUMP = 0, 1
REWARDS = (1.0, -1.0, 0.5, -0.5, 0.25, 0.1)
GROWS = 2e-3  # an eigenvalue of A below -GROWS counts as unstable


def make(seed: int = 0) -> Problem:
    """Instance `seed` of the family: the features are drawn from it."""
    base = _with(np.zeros((STATES, FEATURES)))
    m = base.moments()
    flow = m.d[:, None] * (np.eye(STATES) - m.P_gamma)
    numbers = uniforms(one_seed(seed), PROBLEM, ATTEMPTS * STATES * FEATURES)
    drawn = 2.0 * np.asarray(numbers).reshape(ATTEMPTS, STATES, FEATURES) - 1.0
    for Phi in drawn:
        if np.linalg.eigvals(Phi.T @ flow @ Phi).real.min() < -GROWS:
            return _with(np.ascontiguousarray(Phi))
    raise InputError(f"unstable_mdp: seed {seed} draws no unstable features; use another seed.")


def _with(Phi: Floats) -> Problem:
    """The problem with these features."""
    P = np.full((STATES, 2, STATES), 1.0 / STATES)
    P[:, ON] = np.eye(STATES)[[1, 2, 3, 4, 5, 5]]
    return Problem(
        name="unstable_mdp",
        doc=__doc__ or "",
        P=P,
        r=np.broadcast_to(np.array(REWARDS)[:, None, None], P.shape).copy(),
        gamma=np.full(P.shape, 0.95),
        mu=np.tile([0.25, 0.75], (STATES, 1)),
        pi=np.tile([0.9, 0.1], (STATES, 1)),
        Phi=Phi,
        w0=np.zeros(FEATURES),
        start=np.full(STATES, 1.0 / STATES),
    )
