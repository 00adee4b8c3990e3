"""Problems made for one finding each: rewards where there were none, states that are left."""

from __future__ import annotations

import numpy as np

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.theory.variance import variance
from tests.support.realised import realised


def with_rewards() -> st.Problem:
    """theta2theta with rewards (-0.8, 0.2): V = (1, 2), which is representable, with w = 1."""
    p = st.problem("theta2theta")
    return st.Problem(
        name="rewarded", P=p.P, r=[[-0.8, -0.8], [0.2, 0.2]], gamma=0.9, mu=p.mu, pi=p.pi, Phi=p.Phi
    )


def absorbing(Phi: list[list[float]]) -> st.Problem:
    """0 -> 1 or 2, 1 -> 2, and 2 for ever."""
    P = np.zeros((3, 2, 3))
    P[0, 0, 1] = P[0, 1, 2] = P[1, :, 2] = P[2, :, 2] = 1.0
    return st.Problem(
        name="absorbing", P=P, r=1.0, gamma=0.9, mu=np.full((3, 2), 0.5),
        pi=np.tile([1.0, 0.0], (3, 1)), Phi=Phi, start=[1.0, 0.0, 0.0],
    )  # fmt: skip


def neutral(rewards: float = 1.0) -> st.Problem:
    """TD's mean update neither grows nor decays: w to 2w with gamma 5/6, so that A_0 is 0."""
    P = np.zeros((2, 2, 2))
    P[:, 0, 0] = P[:, 1, 1] = 1.0
    return st.Problem(
        name="neutral", P=P, r=rewards, gamma=5.0 / 6.0, mu=np.full((2, 2), 0.5),
        pi=np.tile([0.0, 1.0], (2, 1)), Phi=[[1.0], [2.0]], w0=[1.0],
    )  # fmt: skip


def two_modes() -> st.Problem:
    """TD is unstable, eta in (0.119, 0.338) is stable, and there both signs are right: V = Phi 1.

    The chain is 0 -> 0, 1 -> 2, 2 -> 0.
    """
    P = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    Phi = np.array([[3.0, -2.0], [-1.0, 1.0], [0.0, 3.0]])
    V = Phi.sum(axis=1)
    r = np.repeat((V - 0.95 * P @ V)[:, None], 2, axis=1)
    return realised(P, [0.16, 0.83, 0.01], Phi, 0.95, r)


def unstable() -> st.Problem:
    """Plain TD diverges here with standardised observations and a constant, found by search."""
    after = [[2, 2], [6, 2], [3, 4], [3, 3], [1, 4], [2, 5], [2, 6]]
    first = np.array([0.02, 0.98, 0.98, 0.02, 0.98, 0.02, 0.02])
    obs = np.array([[1, 3], [4, -1], [5, 1], [5, 2], [2, 3], [5, -2], [1, -2]], dtype=np.float64)
    P = np.full((7, 2, 7), 0.05 / 7)
    for s in range(7):
        for a in range(2):
            P[s, a, after[s][a]] += 0.95

    def made(start: Floats, Phi: Floats) -> st.Problem:
        pi = np.stack([first, 1 - first], axis=1)
        r = np.tile(np.arange(7.0)[:, None], 2)
        return st.Problem(
            name="unstable", P=P, r=r, gamma=0.99, mu=np.full((7, 2), 0.5), pi=pi, Phi=Phi,
            start=start,
        )  # fmt: skip

    d = made(np.full(7, 1 / 7), obs).d_mu
    centred = obs - d @ obs
    return made(d, np.column_stack([np.ones(7), centred / np.sqrt(d @ centred**2)]))


def doubled(p: st.Problem, apart: float, seed: int = 0) -> st.Problem:
    """The problem with a copy of its first feature that differs from it by `apart`."""
    noise = np.random.default_rng(seed).normal(size=p.n_states)
    return with_features(p, np.column_stack([p.Phi, p.Phi[:, 0] * (1.0 + apart * noise)]))


def with_features(p: st.Problem, Phi: Floats) -> st.Problem:
    """The same problem with other features, from zero weights."""
    return st.Problem(
        name=p.name, P=p.P, r=p.r, gamma=p.gamma, mu=p.mu, pi=p.pi, Phi=Phi, start=p.start,
        interest=p.interest, active=p.active,
    )  # fmt: skip


def in_units(p: st.Problem, unit: float) -> st.Problem:
    """The same problem with rewards in other units."""
    return st.Problem(
        name=p.name, P=p.P, r=p.r * unit, gamma=p.gamma, mu=p.mu, pi=p.pi, Phi=p.Phi,
        start=p.start, interest=p.interest, active=p.active,
    )  # fmt: skip


def of_interest(p: st.Problem, seed: int) -> st.Problem:
    """The problem with states of different interest, some of none, and rewards if it has none."""
    rng = np.random.default_rng(seed + 99)
    interest = rng.choice([0.0, 0.3, 1.0, 2.0], size=p.n_states)
    interest[np.argmax(p.d_mu)] += 1.0
    r = p.r if np.any(p.r) else rng.normal(size=np.shape(p.r))
    return st.Problem(name="of interest", P=p.P, r=r, gamma=p.gamma, mu=p.mu, pi=p.pi, Phi=p.Phi,
                   interest=interest)  # fmt: skip


def follow_on_growth(p: st.Problem) -> float:
    """By what factor a step multiplies the second moment of ETD's follow-on trace."""
    return variance(p, st.learner("etd:alpha=1")).growth
