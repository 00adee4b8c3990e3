"""Every cure against brute force: eigenvalues on grids, simulated mean iterations, enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.linalg

import steadytd as st
from steadytd.mdp.moments import Expectation
from steadytd.theory.certificate import Certificate
from steadytd.theory.cure import Cure, Setting
from steadytd.theory.cures import (
    cures_of,
    law_cure,
    nstep_td,
    partially_fitted,
    slow_target_td,
    truncated_etd,
)
from steadytd.theory.variance import noise
from tests.support.cured import CURED, Formulas, certificate
from tests.support.draws import examples
from tests.support.helpers import random_problem
from tests.support.realised import KINDS, drawn, realised

NAMES = {
    "perturbed_td", "td", "nstep_td", "partially_fitted", "target_td", "ridge_td", "etd_beta",
    "truncated_etd", "tdc", "gtd2", "tdrc",
}  # fmt: skip


def test_without_discount_every_cure_is_compared() -> None:
    """What regularises a target then changes nothing, and that is no division by zero."""
    for seed in range(examples(2, 4)):
        p = random_problem(seed, states=4, actions=2, features=1 + seed % 2, gamma=0.0)
        c = Certificate(p)
        error = c.error(c.fixed_point("td"))
        found = c.recommended(cures=True)
        assert found is not None
        assert found.numbers["error"] <= 1.06 * error  # 5 % are equally good
        assert not any(t.unstable for t in c.treatments if t.name == "target_td")


def amounts(t: Cure) -> list[float]:
    """Amounts of a cure, dense where something may happen."""
    low = t.low
    if t.whole:
        return [low + k for k in (*range(16), 19, 24, 33, 60)]
    ends = [e for interval in t.unstable for e in interval if np.isfinite(e)]
    top = t.high if t.high <= 1.0 else 2.0 * max([1.0, *ends])
    near = [e + s * 1e-5 * (1.0 + e) for e in ends for s in (-1.0, 1.0)]
    grid = [*np.linspace(low, top, 40), *near, low + 1e-3]
    return [float(a) for a in grid if low <= a <= top and not (t.open_below and a == low)]


def said_stable(t: Cure, a: float) -> bool:
    return not any(lo <= a <= hi for lo, hi in t.unstable)


QUICK = ("chain",)
REST = (pytest.param(n, marks=pytest.mark.slow) for n in CURED if n not in QUICK)


@pytest.mark.parametrize("name", [*QUICK, *REST])
def test_the_sets_are_those_of_the_eigenvalues(name: str) -> None:
    """And the errors along them are those of the formulas."""
    c = certificate(name)
    f = Formulas(c)
    assert {t.name for t in c.treatments} == NAMES
    for t in c.treatments:
        verdicts = []
        for a in amounts(t):
            slowest = f.slowest(t, a)
            size = np.abs(f.system(t, a)[0]).max()
            if abs(slowest) > 1e-8 * size:
                verdicts.append(slowest > 0.0)
                assert said_stable(t, a) is (slowest > 0.0), (t.title, a)
            if t.weights(a) is not None and abs(slowest) > 1e-4 * size:
                error = f.error(c, t, a)
                assert t.error(a) == pytest.approx(error, rel=1e-6, abs=1e-9), (t.title, a)
        assert len(verdicts) > 10
        row = t.row
        if t.best is not None:
            assert f.slowest(t, t.best) > 0.0
            assert row["error"] == pytest.approx(f.error(c, t, t.best), rel=1e-6, abs=1e-8)


def test_sets_with_gaps_were_seen() -> None:
    """None of them need be monotone."""
    chain = {t.title: t for t in certificate("chain").treatments}
    assert chain["perturbed_td"].smallest == 0.0
    assert chain["perturbed_td"].row["stable_from"] > 0.1
    three = {t.title: t for t in certificate("three_state").treatments}
    assert three["nstep_td"].row["unstable"] == [[1.0, 1.0], [3.0, 3.0]]
    assert (three["nstep_td"].row["smallest"], three["nstep_td"].row["stable_from"]) == (2.0, 4.0)
    assert three["tdrc"].row["stable_from"] is None
    fitted = three["partially_fitted (alpha 1.57)"]
    assert fitted.row["smallest"] is None
    assert repr(fitted) == "<cure partially_fitted (alpha 1.57): t, no stable value>"
    assert repr(three["nstep_td"]) == "<cure nstep_td: n, stable from 4, best 2>"
    assert repr(three["tdrc"]) == "<cure tdrc: reg, best 0>"


@pytest.mark.parametrize(
    ("name", "lam", "n", "radius"),
    [
        ("theta2theta", 0.4444, 1, 1.08),
        ("baird", 0.9242, 12, 0.99),
        ("three_state", 0.6856, 3, 2**0.5),
    ],
)
def test_the_known_facts(name: str, lam: float, n: int, radius: float) -> None:
    """Unstable up to this lam and this n; the spectral radius of fitted iteration."""
    problem = st.problem(name)
    pencil = Certificate(problem).pencil
    fitted = np.abs(1.0 - np.linalg.eigvals(np.linalg.solve(pencil.G, pencil.A0))).max()
    assert fitted == pytest.approx(radius, abs=1e-3)
    steps, partially = nstep_td(problem, 0), partially_fitted(problem, 0)
    assert steps.unstable[-1][1] == n
    assert (partially.unstable[-1][1] == float("inf")) is (radius > 1.0)
    c = Certificate(st.problem(name))
    assert not c.is_stable("td", lam=lam - 1e-3)
    assert c.is_stable("td", lam=lam + 1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_from_some_number_on_all_are_stable(kind: str) -> None:
    """The theorem's numbers for n-step TD and truncated ETD: definite from there on."""
    for seed in range(3):
        problem = drawn(kind, seed)
        for cure in (nstep_td(problem, 0), truncated_etd(problem, 0)):
            start = cure.certain
            assert start is not None
            for n in (start, start + 1.0, start + 2.0, 2.0 * start + 5.0):
                M = cure.system(n).M
                assert np.linalg.eigvalsh(M + M.T).min() > 0.0


def test_a_bound_that_holds_once_need_not_hold_again() -> None:
    """||P_gamma^n||^2 <= q_n is below 1 at n = 5, not at 6 and 7, and then for ever."""
    problem = drawn("sparse", 62)
    m = problem.moments()
    inner, d = m.P_gamma[np.ix_(m.visited, m.visited)], m.d[m.visited]
    powers = [np.linalg.matrix_power(inner, n) for n in range(1, 40)]
    below = [P.sum(axis=1).max() * (d @ P / d).max() < 1.0 for P in powers]
    assert below == [False] * 4 + [True] + [False] * 2 + [True] * 32
    assert nstep_td(problem, 0).certain == 8.0


def test_complex_pairs_are_not_missed() -> None:
    """One pair becomes stable at 1, another unstable at 1.01: crossings without a pole."""

    def system(a: float) -> Expectation:
        pairs = [np.array([[x, 1.0], [-1.0, x]]) for x in (a - 1.0, 1.01 - a)]
        return Expectation(M=scipy.linalg.block_diag(*pairs), g=np.zeros(4))

    setting = Setting(st.problem("theta2theta"))
    found = Cure(name="made", amount="a", setting=setting, system=system)
    assert found.exact
    assert np.ravel(found.unstable) == pytest.approx([0.0, 1.0, 1.01, np.inf], abs=1e-9)


def test_two_vectors_are_scanned_above_rank_20() -> None:
    """As the theory page says: their matrices have twice as many rows, and 40 is the limit."""
    problem = random_problem(0, states=24, actions=2, features=21)
    found = {
        law: law_cure(problem, st.learner(law, alpha=1.0, **{name: 1.0}), name).exact
        for law, name in (("tdc", "ratio"), ("tdrc", "reg"), ("ridge_td", "ridge"))
    }
    assert found == {"tdc": False, "tdrc": False, "ridge_td": True}


@pytest.mark.slow
def test_partially_fitted_iteration_does_what_is_said() -> None:
    """t steps toward a fixed target, then a copy: simulated, with 300 copies."""
    seen = set()
    for name in CURED:
        c = certificate(name)
        f = Formulas(c)
        (t,) = [t for t in c.treatments if t.name == "partially_fitted"]
        alpha, end = t.settings["alpha"], np.linalg.solve(f.A, f.b)
        for inner in range(1, 9):
            slowest = f.slowest(t, inner)
            if abs(slowest) < 0.02:
                continue
            one = np.eye(len(end))  # of w - end: target and weights, then the copy
            round_ = one
            for _ in range(inner):
                round_ = round_ + alpha * (f.C - f.G @ round_)
            distance = float(np.abs(np.linalg.matrix_power(round_, 300).sum(axis=1)).max())
            assert (distance < 0.1) is said_stable(t, inner)
            assert (distance < 0.1) or distance > 2.0
            seen.add(distance < 0.1)
    assert seen == {True, False}


def slow_copy(f: Formulas, ratio: float) -> float:
    """The least real part of an eigenvalue of target_td's mean update without a ridge."""
    follow = ratio * np.eye(f.k)
    return float(np.linalg.eigvals(np.block([[f.G, -f.C], [-follow, follow]])).real.min())


def test_a_slow_copy_needs_less_than_fitted_iteration() -> None:
    """0 -> 1 -> 2 -> 1: TD and fitted iteration diverge, a target that follows slowly does not."""
    c = Certificate(
        realised([[0, 1, 0], [0, 0, 1], [0, 1, 0]], np.array([35, 7, 1]) / 43,
                 [[0, -1], [1, -2], [3, -1]], 0.95)
    )  # fmt: skip
    f = Formulas(c)
    modes = np.linalg.eigvals(np.linalg.solve(f.G, f.A))
    assert modes.real.min() > 0.0
    assert np.abs(1.0 - modes).max() > 1.0
    assert not c.td_stable
    copied = partially_fitted(c.problem, 0)
    assert not copied.stable(copied.high)
    assert slow_target_td(c.problem, 0).stable(0.0)
    assert [c.is_stable("target_td", ratio=r) for r in (1e-3, 10.0)] == [True, False]
    assert slow_copy(f, 1e-3) > 0.0 > slow_copy(f, 10.0)


def test_what_the_page_of_target_td_says() -> None:
    """On drawn problems: slow copies by G^-1 A, and none at all where det A < 0."""
    seen = set()
    for kind, seed in itertools.product(("off_policy", "off_policy_wide", "chain"), range(70)):
        c = Certificate(drawn(kind, seed))
        f = Formulas(c)
        modes = np.linalg.eigvals(np.linalg.solve(f.G, f.A))
        if abs(modes.real.min()) < 1e-2:
            continue
        ratio = 1e-4 * float(np.linalg.eigvalsh(f.G)[0])  # slow beside the slowest mode of w
        assert (slow_copy(f, ratio) > 0.0) is bool(modes.real.min() > 0.0)
        if np.linalg.det(f.A) < 0.0:
            assert all(slow_copy(f, r) < 0.0 for r in np.geomspace(1e-6, 1e6, 13))
            copied = partially_fitted(c.problem, 0)
            assert not any(copied.stable(float(t)) for t in (1, 2, 3, 5, 10, 30, 100, 1000))
        fitted = bool(np.abs(1.0 - modes).max() < 1.0)
        seen.add((fitted, bool(modes.real.min() > 0.0), bool(np.linalg.det(f.A) > 0.0)))
    assert {(True, True, True), (False, False, False)} <= seen
    assert (True, False, True) not in seen


@pytest.mark.parametrize("title", ["target_td (ratio 0.1)", "ridge_td", "nstep_td"])
def test_mean_updates_do_what_is_said(title: str) -> None:
    """Small steps along the mean update lead to the fixed point exactly if it is stable."""
    seen = set()
    for name in ("three_state", "chain", "off_policy"):
        c = certificate(name)
        f = Formulas(c)
        (t,) = [t for t in c.treatments if t.title == title]
        for a in amounts(t)[::6]:
            slowest = f.slowest(t, a)
            M, g = f.system(t, a)
            if abs(slowest) < 1e-3 * np.abs(M).max():
                continue
            alpha = 0.02 * abs(slowest) / np.linalg.norm(M, 2) ** 2
            steps = int(12.0 / (alpha * abs(slowest)))
            power = np.linalg.matrix_power(np.eye(len(g)) - alpha * M, steps)
            distance = float(np.abs(power).max())
            assert (distance < 1.0) is said_stable(t, a), (name, a)
            seen.add(distance < 1.0)
    assert seen == {True, False}


def test_rates_and_step_sizes_are_those_of_the_learners() -> None:
    """Of cures that are learners: the certificate's own numbers for the same learner."""
    c = certificate("three_state")
    for t in c.treatments:
        if t.learner is not None and t.best is not None:
            learner = t.learner(t.best)
            assert t.row["largest_alpha"] == pytest.approx(c.largest_alpha(learner))
            assert t.row["error"] == pytest.approx(c.error(c.fixed_point(learner)))
            assert t.row["finite_variance"] is c.variance(learner).finite
            assert c.is_stable(learner)
    rows = {t.title: t.row for t in c.treatments}
    assert rows["perturbed_td"]["best"] == c.penalties.best == c.best_eta
    assert rows["tdc"]["best"] == c.resolved("tdc:ratio=auto")["ratio"]


@pytest.mark.parametrize("name", ["three_state", "chain", "off_policy"])
def test_the_ridges_have_a_largest_step_size_in_the_mean_square(name: str) -> None:
    """Below it second moments of the written-out updates decay, state by state; above they grow."""
    c = certificate(name)
    m, X, k = c.moments, Formulas(c).X, Formulas(c).k
    for title, ratio in (("ridge_td", None), ("target_td (ratio 0.1)", 0.1)):
        (row,) = [t.row for t in c.treatments if t.title == title]
        limit, ridge = row["mean_square_alpha"], row["best"]
        assert 0.0 < limit <= row["largest_alpha"]

        def radius(alpha: float, ridge: float = ridge, ratio: float | None = ratio) -> float:
            size = k if ratio is None else 2 * k
            K = np.zeros((c.problem.n_states, size**2, c.problem.n_states, size**2))
            for s, a, t in np.argwhere(m.mu[:, :, None] * m.P > 0.0):
                rho, B = m.pi[s, a] / m.mu[s, a], np.eye(size)
                B[:k, :k] -= alpha * (rho * np.outer(X[s], X[s]) + ridge * np.eye(k))
                B[:k, -k:] += alpha * rho * m.gamma[s, a, t] * np.outer(X[s], X[t])
                if ratio is not None:
                    B[k:] += alpha * ratio * np.hstack([np.eye(k), -np.eye(k)])
                K[t, :, s] += m.mu[s, a] * m.P[s, a, t] * np.kron(B, B)
            return float(np.abs(np.linalg.eigvals(K.reshape(len(K) * size**2, -1))).max())

        assert radius(0.99 * limit) < 1.0
        assert limit == pytest.approx(row["largest_alpha"]) or radius(1.01 * limit) > 1.0


def test_noise_is_that_of_all_trajectories() -> None:
    """The sum of squared products of ratios, over every path of three steps."""
    p = random_problem(2, states=3, actions=2, features=2)
    m = p.moments()
    rho = m.pi / m.mu
    total = np.zeros(4)
    for path in itertools.product(range(3), range(2), range(3), range(2), range(3), range(2)):
        s, a = path[::2], path[1::2]
        chance = m.d[s[0]] * np.prod(m.mu[s, a]) * np.prod(m.P[s[:-1], a[:-1], s[1:]])
        weight, squares = 1.0, 0.0
        for k in range(3):
            weight *= rho[s[k], a[k]] * (m.gamma[s[k - 1], a[k - 1], s[k]] if k else 1.0)
            squares += weight**2
            total[k + 1] += chance * squares
    cure = nstep_td(p, 0)
    assert [cure.noise(n) for n in (1.0, 2.0, 3.0)] == pytest.approx(np.sqrt(total[1:]))
    assert noise(p, st.learner("td:alpha=1")) == pytest.approx(total[1] ** 0.5)
    assert noise(p, st.learner("tdc:alpha=1")) == pytest.approx(total[1] ** 0.5)


def test_noise_of_traces_and_emphasis() -> None:
    """A trace remembers all; the emphasis of all steps is that of ever longer truncated ones."""
    p = random_problem(4, states=4, gamma=0.5, interest=True)
    setting = Setting(p)
    now, ahead = setting.squares
    lam = 0.6
    V = np.linalg.solve(np.eye(4) - lam**2 * ahead, now)
    assert noise(p, st.learner("td:alpha=1,lam=0.6")) == pytest.approx(np.sqrt(setting.m.d @ V))
    assert noise(p, st.learner("perturbed_td:alpha=1,lam=0.6,eta=0.2")) < np.sqrt(setting.m.d @ V)
    found = noise(p, st.learner("etd:alpha=1"))
    assert found == pytest.approx(truncated_etd(p, 0).noise(60.0), rel=1e-6)
    assert found == noise(p, st.learner("etd_beta:alpha=1,beta=0.5"))
    rng = np.random.default_rng(0)
    on_policy = st.Problem(
        name="same", P=p.P, r=0.0, gamma=0.5, mu=p.mu, pi=p.mu, Phi=rng.normal(size=(4, 2))
    )
    assert noise(on_policy, st.learner("td:alpha=1")) == pytest.approx(1.0)
    assert noise(st.problem("baird"), st.learner("td:alpha=1,lam=0.9")) == float("inf")
    assert noise(p, st.learner("etd:alpha=1,lam=0.5")) is None


def test_the_frame() -> None:
    c = certificate("three_state")
    frame = c.cures
    assert frame.columns[:3] == ["cure", "settings", "amount"]
    assert {"stable_from", "unstable", "best", "error"} <= set(frame.columns)
    (eta,) = frame.filter((frame["cure"] == "perturbed_td") & (frame["settings"] == "")).to_dicts()
    assert eta["amount"] == "eta"
    assert eta["stable_from"] == pytest.approx(29 / 70)
    assert eta["error"] == pytest.approx(2.5482, abs=1e-4)
    assert eta["mean_square_alpha"] == pytest.approx(0.268, abs=1e-3)
    shown = c.to_dict(cures=True)
    assert [row["cure"] for row in shown["cures"]] == frame["cure"].to_list()
    assert [x["code"] for x in shown["advice"]].count("recommended") == 1
    assert "cures" not in c.to_dict()
    assert c.to_dict()["advice"][:-1] == shown["advice"][:-1]


@pytest.mark.slow
def test_problems_with_inactive_states() -> None:
    """High-Variance Rooms and Rooms, the last target policy: everything has an answer."""
    for name in ("rooms", "high_variance_rooms"):
        found = cures_of(st.problem(name), 7)
        assert {t.name for t in found} == NAMES
        assert all(t.best is not None for t in found if t.name == "ridge_td")
