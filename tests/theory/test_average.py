"""The certificate of average reward, against NumPy on drawn chains, and the claims it derives.

`docs/average_reward.md` derives the theorems that are tried here. Nothing of the package is used on
the other side: P, d, Phi and r are drawn, and M is written out.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import scipy.linalg

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.mdp.stationary import closed_classes
from steadytd.problems._common import realise
from steadytd.theory.average import AverageCertificate
from steadytd.theory.certificate import Certificate
from steadytd.theory.closed_form import numbers_of, stated
from steadytd.theory.dynamics import decay_rates, expectation
from tests.support.cases import CASES, endless, kind_of, off_policy_problem

RATIOS = (1e-3, 0.1, 1.0, 10.0, 1e3)
FAST = 1e9


class Chain(NamedTuple):
    """What pi does, how often mu is where, rewards and features."""

    P: Floats
    d: Floats
    r: Floats
    Phi: Floats

    @property
    def kappa(self) -> float:
        return float(((self.d @ self.P) / self.d).max())

    def M(self, eta: float, ratio: float) -> Floats:
        step, D = np.eye(len(self.d)) - self.P, np.diag(self.d)
        values = self.Phi.T @ D @ (step + eta * np.eye(len(self.d))) @ self.Phi
        left = np.vstack([values, ratio * self.d @ step @ self.Phi])
        return np.column_stack([left, np.append(self.Phi.T @ self.d, ratio)])

    def g(self, ratio: float) -> Floats:
        return np.append(self.Phi.T @ (self.d * self.r), ratio * self.d @ self.r)

    def slowest(self, eta: float, ratio: float) -> float:
        return float(np.linalg.eigvals(self.M(eta, ratio)).real.min())

    @property
    def problem(self) -> st.Problem:
        """pi follows the chain, mu jumps so that its distribution is d."""
        P, mu, pi = realise(self.P, self.d, 0.9 / self.kappa)
        reward = np.repeat(self.r[:, None], 2, axis=1)
        return st.Problem(name="drawn", P=P, r=reward, gamma=1.0, mu=mu, pi=pi, Phi=self.Phi,
                          average_reward=True)  # fmt: skip


def drawn(seed: int, *, states: int = 0, features: int = 0) -> Chain:
    rng = np.random.default_rng(seed)
    n = states or int(rng.integers(2, 7))
    k = features or int(rng.integers(1, n + 1))
    P = rng.dirichlet(np.full(n, 0.5), size=n)
    return Chain(P, rng.dirichlet(np.ones(n)), rng.normal(size=n), rng.normal(size=(n, k)))


# One weight on 0 -> 0, 1 -> 2 -> 0: no ratio helps, a penalty does.
NEEDED = Chain(
    np.eye(3)[[0, 2, 0]], np.array([0.32, 0.64, 0.04]), np.array([1.0, 0.0, 2.0]),
    np.array([[-2.0], [2.0], [3.0]]),
)  # fmt: skip


def thresholds(chain: Chain) -> tuple[float, float]:
    """Of a fast rate, and of every ratio: the least eta of a positive definite matrix."""
    P, d, _, Phi = chain
    n, D = len(d), np.diag(d)
    G = Phi.T @ D @ Phi
    fast = Phi.T @ D @ (np.eye(n) - np.outer(np.ones(n), d)) @ (np.eye(n) - P) @ Phi
    q = Phi.T @ (2.0 * d - d @ P)
    every = Phi.T @ D @ (np.eye(n) - P) @ Phi - np.outer(q, q) / 4.0
    return tuple(
        -float(scipy.linalg.eigh((A + A.T) / 2.0, G, eigvals_only=True)[0]) for A in (fast, every)
    )  # type: ignore[return-value]


# The theorems, by brute force


def test_the_centred_form_is_that_of_the_centred_values() -> None:
    """<v, (I - 1d')(I - P) v>_D = <u, (I - P) u>_D with u = v - d'v."""
    rng = np.random.default_rng(0)
    for seed in range(200):
        P, d, _, _ = drawn(seed)
        v = rng.normal(size=len(d))
        u, step = v - d @ v, np.eye(len(d)) - P
        flow = step @ v
        assert v @ (d * (flow - d @ flow)) == pytest.approx(u @ (d * (step @ u)), abs=1e-12)


def test_with_a_fast_rate_the_theorem_carries_over() -> None:
    """Above the exact threshold, so above sqrt(kappa) - 1, M is stable for a ratio of 1e9."""
    tight = 0
    for seed in range(400):
        chain = drawn(seed)
        fast, _ = thresholds(chain)
        assert fast <= np.sqrt(chain.kappa) - 1.0 + 1e-9
        eta = max(fast, 0.0) + 1e-3
        assert chain.slowest(eta, FAST) > -1e-6  # 1e9 times rounding
        tight += fast > 0.0
    assert tight > 50


def test_above_the_second_threshold_every_ratio_is_stable() -> None:
    """That of a fast rate is not enough for a slow one; the bound without features is."""
    unstable = 0
    for seed in range(400):
        chain = drawn(seed)
        fast, every = thresholds(chain)
        k = chain.kappa
        assert fast - 1e-9 <= every <= max(0.5, k / 2.0 + np.sqrt(k) - 1.0) + 1e-9
        for ratio in RATIOS:
            assert chain.slowest(max(every, 0.0) + 1e-6, ratio) > 0.0
            unstable += chain.slowest(max(fast, 0.0) + 1e-3, ratio) < -1e-9
    assert unstable > 10


def test_with_a_weight_per_state_the_rate_is_a_discounted_value() -> None:
    """d'v = 0, and rate = (1 - g) d'(I - g P)^-1 r with g = 1/(1 + eta); stable for every eta."""
    for seed in range(100):
        chain = drawn(seed, states=4)._replace(Phi=np.eye(4))
        P, d, r, _ = chain
        for eta in (0.01, 0.3, 2.0):
            y = np.linalg.solve(chain.M(eta, 0.7), chain.g(0.7))
            g = 1.0 / (1.0 + eta)
            assert d @ y[:4] == pytest.approx(0.0, abs=1e-11)
            normalised = (1.0 - g) * d @ np.linalg.solve(np.eye(4) - g * P, r)
            assert y[4] == pytest.approx(normalised, abs=1e-11)
            assert all(chain.slowest(eta, ratio) > 0.0 for ratio in RATIOS)


def test_there_the_bias_of_the_rate_goes_to_zero_with_eta() -> None:
    """Like eta d'v, with v the differential values of mean 0 under pi."""
    for seed in range(20):
        P, d, r, _ = drawn(seed, states=4)
        d_pi = scipy.linalg.null_space((P - np.eye(4)).T)[:, 0]
        d_pi /= d_pi.sum()
        v = np.linalg.solve(np.eye(4) - P + d_pi, r - d_pi @ r)
        eta = 1e-6
        rate = eta * d @ np.linalg.solve((1.0 + eta) * np.eye(4) - P, r)
        assert rate - d_pi @ r == pytest.approx(eta * d @ v, rel=1e-3, abs=1e-10)


def test_if_the_rate_were_penalised_too_constants_would_leave_it_open() -> None:
    chain = drawn(1, states=4)._replace(Phi=np.eye(4))
    M = chain.M(0.5, 2.0)
    M[4, :4] += 2.0 * 0.5 * chain.d
    assert np.linalg.matrix_rank(M) == 4 and np.linalg.matrix_rank(chain.M(0.5, 2.0)) == 5


# The certificate's numbers


@pytest.mark.parametrize("seed", range(6))
def test_the_certificate_has_these_numbers(seed: int) -> None:
    chain = drawn(seed, states=4, features=2)
    c = AverageCertificate(chain.problem)
    fast, every = thresholds(chain)
    assert c.eta_fast == pytest.approx(fast, abs=1e-9)
    assert c.eta_every == pytest.approx(every, abs=1e-9)
    k = chain.kappa
    assert c.bounds["fast"] == pytest.approx(np.sqrt(k) - 1.0)
    assert c.bounds["every"] == pytest.approx(max(0.5, k / 2.0 + np.sqrt(k) - 1.0))
    for eta, ratio in ((0.0, 0.2), (0.4, 3.0)):
        learner = st.learner("perturbed_differential_td", alpha=1, eta=eta, ratio=ratio)
        e = expectation(c.problem, learner)
        np.testing.assert_allclose(e.M, chain.M(eta, ratio), atol=1e-12)
        np.testing.assert_allclose(e.g, chain.g(ratio), atol=1e-12)
        y = np.linalg.solve(e.M, e.g)
        np.testing.assert_allclose(c.fixed_point(learner), y[:2], rtol=1e-8)
        assert c.fixed_rate(learner) == pytest.approx(y[2], rel=1e-8)
        assert c.is_stable(learner) == (chain.slowest(eta, ratio) > 0.0)
    row = c.path([0.4]).row(0, named=True)
    assert row["rate"] == pytest.approx(y[2], rel=1e-8)
    assert row["error"] == pytest.approx(c.problem.error(y[:2]), rel=1e-8)
    assert row["stable"] == (chain.slowest(0.4, 1.0) > 0.0)


def stable_etas(chain: Chain, ratio: float, etas: Floats) -> list[bool]:
    return [chain.slowest(float(eta), ratio) > 0.0 for eta in etas]


def test_where_no_ratio_helps_the_penalty_does() -> None:
    """The unstable penalties, and the ratios, by a scan."""
    assert len(closed_classes(NEEDED.P)) == 1
    c = AverageCertificate(NEEDED.problem)
    assert not any(NEEDED.slowest(0.0, r) > 0.0 for r in np.geomspace(1e-4, 1e6, 200))
    assert c.ratios.stable_from is None and c.ratios.best is None
    ((low, high),) = c.penalties.unstable
    etas = np.linspace(0.0, 2.0, 401)
    inside = [not low <= eta <= high for eta in etas]
    assert stable_etas(NEEDED, 1.0, etas) == inside
    assert low == 0.0 and c.penalties.stable_from == high < c.eta_every
    assert c.is_stable("perturbed_differential_td", eta="auto")


@pytest.mark.parametrize("case", [x for x in CASES if kind_of(x) == "endless"], ids=str)
def test_what_is_read_off_a_law_with_a_scalar_is_its_closed_form(case: st.Learner) -> None:
    if case.traced:
        return
    p = endless(off_policy_problem(2, states=4, actions=2, features=3))
    read = stated(replace(case.law, expectation=None), p.moments(), numbers_of(case))
    given = stated(case.law, p.moments(), numbers_of(case))
    np.testing.assert_allclose(read.M, given.M, atol=1e-12)
    np.testing.assert_allclose(read.g, given.g, atol=1e-12)


@pytest.mark.parametrize("name", ["differential_td", "differential_gtd2"])
def test_a_constant_that_stays_does_not_count(name: str) -> None:
    """Features with a constant: rates, values and rate are those without its mode."""
    plain = drawn(5, states=5, features=2)
    p = plain._replace(Phi=np.column_stack([plain.Phi, np.ones(5)])).problem
    c = AverageCertificate(p)
    assert c.spans_constants and not AverageCertificate(plain.problem).spans_constants
    learner = st.learner(name, alpha=1.0)
    e = expectation(p, learner)
    raw = np.linalg.eigvals(e.M)
    hidden = np.abs(raw) < 1e-10
    assert hidden.sum() == len(learner.law.vectors)
    kept, found = raw[~hidden], decay_rates(p, learner)
    assert found.real.min() == pytest.approx(kept.real.min(), rel=1e-6)
    assert c.is_stable(learner) == bool((kept.real > 0.0).all())
    assert c.largest_alpha(learner) == pytest.approx(
        (2 * kept.real / np.abs(kept) ** 2).min() if c.is_stable(learner) else 0.0, rel=1e-6
    )
    w = c.fixed_point(learner)
    left = e.M @ np.linalg.lstsq(e.M, e.g)[0] - e.g
    assert np.abs(left).max() < 1e-10
    assert c.error(w) == pytest.approx(c.error(w + np.array([0.0, 0.0, 7.0])), rel=1e-9)


@pytest.mark.parametrize("name", ["differential_td", "perturbed_differential_td"])
def test_the_learning_curve_is_the_mean_of_runs(name: str) -> None:
    """Mean squares of 400 runs, at three steps: within 5 standard errors of the exact ones."""
    p = endless(off_policy_problem(2, states=4, actions=2, features=2))
    given = {"eta": 0.5} if name != "differential_td" else {}
    learner = st.learner(name, alpha=0.05, ratio=0.5, **given)
    curve = st.certify(p).learning_curve(learner, steps=300)
    assert curve.runs == 0
    errors = st.run(p, learner, steps=300, seeds=400, points=4).errors[0] ** 2
    mean, stderr = errors.mean(axis=0), errors.std(axis=0) / 20.0
    exact = np.interp([100, 200, 300], curve.step, curve.error) ** 2
    assert (np.abs(mean[1:] - exact) < 5.0 * stderr[1:] + 0.002 * exact).all()


def test_the_spread_is_that_of_long_runs() -> None:
    """Around the fixed point, without a constant: of 600 runs of 2,000 steps, 5 standard errors."""
    p = endless(off_policy_problem(2, states=4, actions=2, features=2))
    learner = st.learner("perturbed_differential_td", alpha=0.05, eta=0.5)
    c = st.certify(p)
    found = c.mean_square(learner)
    assert found is not None
    r = st.run(p, learner, steps=2000, seeds=600, points=2)
    seen = p.Phi - p.d_mu @ p.Phi
    away = (r.final_weights[0] - c.fixed_point(learner)) @ seen.T
    squares = away**2 @ p.d_mu
    stderr = squares.std() / np.sqrt(len(squares))
    assert abs(squares.mean() - found.spread(0.05) ** 2) < 5.0 * stderr


# What it says


def test_the_sentences_are_true() -> None:
    c = AverageCertificate(NEEDED.problem)
    said = {f.code: f for f in c.advice}
    slowest = NEEDED.slowest(0.0, 1.0)
    assert f"grows at rate {-slowest:.4g} per unit of alpha" in said["td_unstable"].text
    assert "Over all ratios: no ratio is stable." in said["td_unstable"].text
    ((_, high),) = c.penalties.unstable
    fast, every = thresholds(NEEDED)
    text = said["penalty"].text
    assert f"unstable eta from 0 to {high:.4g}, all others are stable." in text
    assert f"every eta above {fast:.4g} is; with any ratio, every eta above {every:.4g}." in text
    y = np.linalg.solve(NEEDED.M(c.best_eta, 1.0), NEEDED.g(1.0))
    assert f"the learned rate is {y[1]:.4g}, and the true one is 1." in said["bias"].text
    assert said["recommended"].numbers["learner"] in ("perturbed_differential_td",
                                                      "differential_gtd2")  # fmt: skip
    assert c.about(high / 2.0)[0].code == "eta_unstable" and not c.about(high * 1.1)


def test_a_stable_problem_is_said_to_be_so() -> None:
    c = st.certify("queue")
    said = {f.code: f.text for f in c.advice}
    learner = st.learner("differential_td", alpha=1.0)
    error, rate = c.error(c.fixed_point(learner)), AverageCertificate(c.problem).fixed_rate(learner)
    assert "is stable with ratio = 1. Over all ratios: every ratio is stable." in said["td_stable"]
    assert f"has the rate {rate:.4g}, and the true one is -0.6104." in said["td_stable"]
    assert f"have the error {error:.4g}, the best linear fit 0.8427." in said["td_stable"]
    assert said.keys() == {"td_stable", "penalty", "bias", "recommended"}


def test_everything_is_in_the_document_and_files_give_the_same(tmp_path: Path) -> None:
    c = st.certify(NEEDED.problem)
    found = c.to_dict([0.1], cures=True)
    assert found["average_reward"] and found["rate"] == pytest.approx(1.0)
    assert found["path"][0]["stable"] and not found["td_stable"]
    assert {row["learner"] for row in found["learners"]} == {
        x.name for x in CASES if kind_of(x) == "endless"
    }
    again = st.load_certificate(c.save(tmp_path / "c.npz"))
    assert again.to_dict([0.1], cures=True) == found
    assert not {"eta_pd", "eta_hurwitz", "poles"} & found.keys()


def test_what_is_about_discounts_is_refused() -> None:
    with pytest.raises(st.InputError, match="asks for the average reward, and this is about disc"):
        Certificate(st.problem("queue"))


def test_the_table_of_discounted_learners_has_none_of_these() -> None:
    names = {row["learner"] for row in st.certify("three_state").learners}
    assert not names & {x.name for x in CASES if kind_of(x) == "endless"}
