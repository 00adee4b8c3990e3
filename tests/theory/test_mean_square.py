"""Second moments at a constant step size, against the slow recursion and against runs."""

from __future__ import annotations

import numpy as np
import pytest

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.engine.facts import fact_table, named
from steadytd.engine.learner import Learner
from steadytd.theory.certificate import Certificate
from steadytd.theory.exact import mean_square
from steadytd.theory.reading import affine_step, closes
from steadytd.theory.recommend import candidates
from tests.support.commands import call
from tests.support.draws import examples, seeds
from tests.support.helpers import random_problem
from tests.support.made import with_features
from tests.support.realised import drawn


def transitions(p: st.Problem, name: str) -> list[tuple[int, int, float, Floats, Floats]]:
    """s, s', probability given s, and A_e, c_e of the step y <- y + alpha (c_e - A_e y)."""
    m, X, found = p.moments(), p.Phi @ p.moments().row_space, []
    for s, a, t in np.argwhere(m.mu[:, :, None] * m.P > 0.0):
        rho, gamma = m.pi[s, a] / m.mu[s, a], m.gamma[s, a, t]
        penalty = 0.6 if name == "perturbed_td" else 0.0
        A = rho * np.outer(X[s], (1.0 + penalty) * X[s] - gamma * X[t])
        c = rho * m.r[s, a, t] * X[s]
        if name == "tdc":  # ratio 2
            correction, own = rho * gamma * np.outer(X[t], X[s]), np.outer(X[s], X[s])
            A = np.block([[A, correction], [2.0 * A, 2.0 * own]])
            c = np.concatenate([c, 2.0 * c])
        found.append((int(s), int(t), float(m.mu[s, a] * m.P[s, a, t]), A, c))
    return found


def second_moments(p: st.Problem, alpha: float, steps: int) -> tuple[Floats, Floats]:
    """E[w w'] and E[w] after n steps of TD from the stationary distribution: one by one."""
    n, d = p.n_states, p.n_features
    S, m, events = np.zeros((n, d, d)), np.zeros((n, d)), transitions(p, "td")
    for _ in range(steps):
        S_next, m_next = np.zeros_like(S), np.zeros_like(m)
        for s, t, chance, A, c in events:
            B, e = np.eye(d) - alpha * A, alpha * c
            cross = np.outer(B @ m[s], e)
            S_next[t] += chance * (B @ S[s] @ B.T + cross + cross.T + p.d_mu[s] * np.outer(e, e))
            m_next[t] += chance * (B @ m[s] + p.d_mu[s] * e)
        S, m = S_next, m_next
    return S.sum(axis=0), m.sum(axis=0)


@seeds(2, 40)
def test_largest_steps_are_those_of_the_law_itself(seeds: range) -> None:
    """Just below it the law's mean step contracts, just above not; second moments: linear only.

    By the law's own steps at that step size, and not by its closed form: that of implicit_td holds
    for small steps alone, and its table had TD's limit. Targets that never take the first actions
    had hidden that its steps are not linear in alpha.
    """
    seen = set()
    for seed in seeds:
        p = one_action(seed)
        c = Certificate(p)
        for row in c.learners:
            learner = c.resolved(row["learner"], **row["params"])
            if not closes(learner):
                continue
            if row["stable"] and row["largest_alpha"] is not None:
                seen.add(row["learner"])
                limit = row["largest_alpha"]
                radii = [mean_radius(p, learner.replace(alpha=a * limit)) for a in (0.99, 1.01)]
                assert radii[0] < 1.0 < radii[1]
            if c.mean_square(learner) is not None:
                one, half = (steps(p, learner.replace(alpha=a)) for a in (1.0, 0.5))
                for (_, B), (_, B2) in zip(one, half, strict=True):
                    assert np.eye(len(B)) + B == pytest.approx(2.0 * B2, abs=1e-6)
    assert {"td", "tdc", "gtd2"} <= seen
    assert "implicit_td" not in seen


def mean_radius(p: st.Problem, learner: Learner) -> float:
    """The spectral radius of the mean step on the row space."""
    basis = learner.law.basis(p.moments().row_space)
    step = np.sum([chance * B for chance, B in steps(p, learner)], axis=0)
    return float(np.abs(np.linalg.eigvals(basis.T @ step @ basis)).max())


def one_action(seed: int) -> st.Problem:
    """A drawn problem whose target takes one action in each state, in state 0 the last one."""
    p = random_problem(seed, states=3, actions=2, features=2)
    pi = np.eye(2)[[1, *np.random.default_rng(seed).integers(0, 2, size=2)]]
    return st.Problem(name="one", P=p.P, r=p.r, gamma=p.gamma, mu=p.mu, pi=pi, Phi=p.Phi)


def steps(p: st.Problem, learner: Learner) -> list[tuple[float, Floats]]:
    """Every transition's chance, and the matrix by which the law multiplies its vectors there."""
    m, found = p.moments(), []
    for s, a, t in np.argwhere(m.mu[:, :, None] * m.P > 0.0):
        (row,) = fact_table(
            reward=0.0, gamma_next=m.gamma[s, a, t], rho=m.pi[s, a] / m.mu[s, a], pi=m.pi[s, a],
            mu=m.mu[s, a], peak_min=np.minimum(m.pi[s], m.mu[s]).max(),
            peak_max=np.maximum(m.pi[s], m.mu[s]).max(),
        )  # fmt: skip
        B, _ = affine_step(learner, p.Phi[s], p.Phi[t], named(row))
        found.append((float(p.d_mu[s] * m.mu[s, a] * m.P[s, a, t]), B))
    return found


def test_an_unstable_mean_may_be_bounded_at_larger_steps() -> None:
    """The limit counts from 0 on: 0 says "not at small step sizes", and no more than that."""
    seen = set()
    for seed in range(300):
        rng = np.random.default_rng(seed)
        mu, pi = (np.stack([x, 1.0 - x], axis=1) for x in rng.uniform(0.1, 0.9, size=(2, 2)))
        P = np.zeros((2, 2, 2))
        P[0, 0, 1] = P[1, 0, 0] = P[0, 1, 0] = P[1, 1, 1] = 1.0
        p = st.Problem(name="x", P=P, r=rng.normal(size=(2, 2)), gamma=0.99, mu=mu, pi=pi,
                       Phi=rng.uniform(0.5, 3.0, size=(2, 1)))  # fmt: skip
        if p.moments().A()[0, 0] >= 0.0:
            continue
        c = Certificate(p)
        found = c.mean_square("td")
        assert found is not None and found.largest_alpha == 0.0
        for alpha in 0.5 ** np.arange(12):
            K = np.zeros((2, 2))
            for s, t, chance, A, _ in transitions(p, "td"):
                K[t, s] += chance * float(1.0 - alpha * A[0, 0]) ** 2
            bounded = bool(np.abs(np.linalg.eigvals(K)).max() < 1.0)
            assert found.bounded(float(alpha)) == bounded
            seen.add(bounded)
    assert seen == {True, False}


def test_a_limit_that_is_lost_in_rounding_is_not_known() -> None:
    """Never 0 where the mean is stable: some step size is small enough."""
    for seed in range(examples(4, 12)):
        p = random_problem(seed, states=5, actions=2, features=4, gamma=0.9)
        scales = 10.0 ** np.random.default_rng(seed).integers(-8, 9, size=4)
        c = Certificate(st.Problem(name="s", P=p.P, r=p.r, gamma=0.9, mu=p.mu, pi=p.pi,
                                   Phi=p.Phi * scales))  # fmt: skip
        for name in ("td", "tdc"):
            found = c.mean_square(name)
            assert found is None or not c.is_stable(name) or found.largest_alpha > 0.0
        assert "infinitely many" not in c.advice[-1].text


def test_the_stationary_spread_is_where_the_recursion_ends() -> None:
    p = random_problem(7, states=3, actions=2, features=2, gamma=0.5)
    found = mean_square(p, st.learner("td:alpha=1"))
    assert found is not None
    alpha = 0.5 * found.largest_alpha
    S, m = second_moments(p, alpha, 400)
    X, Q = p.Phi @ p.moments().row_space, p.moments().row_space
    end = Q.T @ Certificate(p).fixed_point("td")
    around = S - np.outer(m, end) - np.outer(end, m) + np.outer(end, end)
    squares = np.einsum("si,ij,sj->s", X, around, X)
    expected = float(np.sqrt(p.error_weights() @ squares))
    assert expected > 0.05
    assert found.spread(alpha) == pytest.approx(expected, rel=1e-6)
    assert found.spread(1.01 * found.largest_alpha) == float("inf")


LEARNERS = ("td:alpha=1", "perturbed_td:alpha=1,eta=0.6", "tdc:alpha=1,ratio=2")


@pytest.mark.parametrize("kind", ["constant", "wide", "off_policy", "chain"])
@pytest.mark.parametrize("text", LEARNERS)
def test_the_limit_is_the_spectral_radius(text: str, kind: str) -> None:
    """Against the eigenvalues of the whole map on matrices."""
    p, learner = drawn(kind, 1), st.learner(text)
    found = mean_square(p, learner)
    assert found is not None
    limit, mean = found.largest_alpha, Certificate(p).largest_alpha(learner)
    assert limit <= mean
    events = transitions(p, learner.name)
    n, k = p.n_states, len(events[0][-1])

    def radius(alpha: float) -> float:
        K = np.zeros((n, n, k * k, k * k))
        for s, t, chance, A, _ in events:
            B = np.eye(k) - alpha * A
            K[t, s] += chance * np.kron(B, B)
        whole = K.transpose(0, 2, 1, 3).reshape(n * k * k, -1)
        return float(np.abs(np.linalg.eigvals(whole)).max())

    if limit > 0.0:
        assert radius(0.5 * limit) < 1.0
        assert limit > 0.999 * mean or radius(0.999 * limit) < 1.0 < radius(1.001 * limit)
    else:
        assert mean == 0.0 or radius(1e-4 * mean) >= 1.0


@pytest.mark.parametrize(("seed", "ratio"), [(182, 0.125), (373, 0.5)])
def test_a_hole_among_step_sizes_is_not_missed(seed: int, ratio: float) -> None:
    """Second moments that are bounded, then not, then again: the limit is the first change."""
    rng = np.random.default_rng(seed)
    P = np.full((3, 1, 3), 0.02 / 3.0)
    P[np.arange(3), 0, rng.permutation(3)] += 0.98
    mu, r = np.ones((3, 1)), rng.normal(size=(3, 1))
    Phi = rng.normal(size=(3, 2))
    p = st.Problem(name="x", P=P, r=r, gamma=0.99, mu=mu, pi=mu, Phi=Phi)
    found = mean_square(p, st.learner("tdc", alpha=1.0, ratio=ratio))
    assert found is not None
    limit, sizes = found.largest_alpha, found.mean_alpha * np.geomspace(1e-3, 1.0, 300)
    zeroth, first, second = found._powers[:3]
    radii = [np.abs(np.linalg.eigvals(zeroth + a * first + a * a * second)).max() for a in sizes]
    small = [radius < 1.0 for radius in radii]
    changes = [i for i in range(299) if small[i] != small[i + 1]]
    assert len(changes) >= 3 and sizes[changes[0]] <= limit <= sizes[changes[0] + 1]


@pytest.mark.parametrize("seed", range(5))
def test_modes_that_decay_slower_than_rounding_have_no_limit(seed: int) -> None:
    p = random_problem(seed, states=4, features=2)
    tiny = with_features(p, 1e-9 * p.Phi)
    one, other = (mean_square(q, st.learner("gtd", alpha=1.0, ratio=0.1)) for q in (p, tiny))
    assert one is not None and other is None


def test_runs_spread_as_said() -> None:
    """400 runs that have long forgotten their start."""
    p = st.problem("three_state")
    text = "perturbed_td:alpha=0.01,eta=0.6"
    found = mean_square(p, st.learner(text))
    assert found is not None
    weights = st.run(p, [text], steps=4000, seeds=400, points=2).weights(text)
    apart = (weights - Certificate(p).fixed_point("perturbed_td", eta=0.6)) @ p.Phi.T
    measured = float(np.sqrt((apart**2 @ p.error_weights()).mean()))
    assert measured == pytest.approx(found.spread(0.01), rel=0.2)


def test_where_it_is_not_known() -> None:
    p = st.problem("three_state")
    for text in ("td:alpha=1,lam=0.5", "etd:alpha=1", "lstd", "td:alpha=1,average=1"):
        assert mean_square(p, st.learner(text)) is None
    assert mean_square(st.problem("rooms"), st.learner("tdc:alpha=1")) is None  # too large
    unstable = mean_square(p, st.learner("td:alpha=1"))
    assert unstable is not None
    assert unstable.largest_alpha == 0.0
    assert unstable.spread(1e-4) == float("inf")


def test_the_recommendation_is_the_fastest_with_bounded_second_moments() -> None:
    """Of two with the same fixed point, TD is faster in the mean, but not where runs stay calm."""
    c = st.certify("nonmonotone")
    found = {x.name: x for x in candidates(c)}
    td, perturbed = found["td"], found["perturbed_td"]
    assert td.speed > perturbed.speed
    speeds = {}
    for x in (td, perturbed):
        moments = c.mean_square(x.name, **x.params)
        assert moments is not None
        modes = np.linalg.eigvals(c.expectation(x.name, **x.params).M)
        speeds[x.name] = modes.real.min() * moments.largest_alpha
    assert speeds["perturbed_td"] > speeds["td"]
    assert c.advice[-1].numbers["learner"] == "perturbed_td"
    assert c.advice[-1].numbers["speed"] == pytest.approx(speeds["perturbed_td"], rel=1e-9)


@pytest.mark.parametrize("name", ["three_state", "theta2theta", "kolter"])
def test_every_learner_at_one_step_size(name: str) -> None:
    """The table says of each learner what `mean_square` says of it."""
    c = st.certify(name)
    rows = c.at_alpha(1e-3).to_dicts()
    assert [r["learner"] for r in rows] == [r["learner"] for r in c.learners]
    for row, known in zip(rows, c.learners, strict=True):
        found = c.mean_square(row["learner"], **known["params"])
        assert row["largest_alpha"] == known["largest_alpha"]
        if found is None:
            assert (row["mean_square_alpha"], row["spread"], row["bounded"]) == (None, None, None)
            continue
        assert row["mean_square_alpha"] == found.largest_alpha
        assert row["bounded"] is (found.spread(1e-3) < float("inf"))
        assert (row["spread"] is None) is not row["bounded"]
        if row["bounded"]:
            assert row["spread"] == found.spread(1e-3)
    assert sum(r["bounded"] is not None for r in rows) >= 9


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan"), float("inf")])
def test_a_step_size_is_positive(alpha: float) -> None:
    with pytest.raises(st.InputError, match="alpha must be a positive number"):
        st.certify("three_state").at_alpha(alpha)


def test_the_command_says_none_where_small_steps_are_unbounded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """TD's mean update is unstable here; perturbed TD has a limit."""
    assert call(monkeypatch, "certify", "three_state", "--alpha", "0.01") == 0
    rows = capsys.readouterr().out.partition("Single runs at alpha = 0.01")[2].splitlines()
    cells = {row.split()[0]: row.split()[1:3] for row in rows if len(row.split()) > 2}
    assert cells["td"] == ["unbounded", "none"]
    assert cells["perturbed_td"] == ["bounded", "0.268"]


@pytest.mark.parametrize("text", ["perturbed_td:alpha=1,eta=1.6", "gtd2:alpha=1,ratio=0.01"])
def test_symmetry_leaves_out_nothing_that_decides(text: str) -> None:
    """On Baird's problem a small space stands for all: the same radius at every step size."""
    found = mean_square(st.problem("baird"), st.learner(text))
    assert found is not None
    small, whole = found._powers, found._all_powers
    assert len(small.zeroth) < 30 and len(whole.zeroth) > 190
    for alpha in found.mean_alpha * np.array([1e-3, 0.1, 0.7]):
        radii = [
            np.abs(np.linalg.eigvals(K[0] + alpha * K[1] + alpha**2 * K[2])).max()
            for K in (small[:3], whole[:3])
        ]
        assert radii[0] == pytest.approx(radii[1], rel=1e-7)
