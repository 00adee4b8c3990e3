"""Problems of average reward: the rate, differential values, errors up to a constant, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import steadytd as st
from tests.support.cases import endless, off_policy_problem
from tests.support.helpers import rewritten

CHAIN: dict[str, Any] = {
    "name": "mine", "P": [[[0.5, 0.5]], [[1.0, 0.0]]], "r": [[0.0], [3.0]], "gamma": 1.0,
    "mu": [[1.0], [1.0]], "pi": [[1.0], [1.0]], "Phi": [[1.0], [0.0]],
}  # fmt: skip


def test_two_states_by_hand() -> None:
    """d = (2/3, 1/3), so the rate is 1; v1 = 3 - 1 + v0, and the mean is 0."""
    p = st.Problem(**CHAIN, average_reward=True)
    assert p.rate == pytest.approx(1.0, rel=1e-14)
    np.testing.assert_allclose(p.v_pi, [-2.0 / 3.0, 4.0 / 3.0], rtol=1e-13)
    # one weight gives any difference: error 0 at w = -2, with the best constant added
    assert p.error([-2.0]) == pytest.approx(0.0, abs=1e-14)
    assert p.error([0.0]) == pytest.approx(np.sqrt(2.0) * 2.0 / 3.0, rel=1e-13)


@pytest.mark.parametrize("seed", range(5))
def test_rate_and_values_solve_their_equation(seed: int) -> None:
    """The rate as the limit of means over a million steps, by repeated squaring."""
    p = endless(off_policy_problem(seed))
    P, r = np.einsum("sa,sat->st", p.pi, p.P), np.einsum("sa,sat,sat->s", p.pi, p.P, p.r)
    far = np.linalg.matrix_power((P + np.eye(len(P))) / 2.0, 2**20)
    np.testing.assert_allclose(far @ r, p.rate, rtol=1e-9)
    np.testing.assert_allclose(p.v_pi, r - p.rate + P @ p.v_pi, atol=1e-11)
    assert p.d_mu @ p.v_pi == pytest.approx(0.0, abs=1e-12)


def test_the_error_is_that_of_the_best_constant() -> None:
    p, rng = endless(off_policy_problem(3)), np.random.default_rng(0)
    w = rng.normal(size=(4, p.n_features))
    found = np.asarray(p.error(w))
    for one, error in zip(w, found, strict=True):
        apart = p.Phi @ one - p.v_pi
        tried = np.sqrt(p.d_mu @ (apart[:, None] - np.linspace(-5, 5, 20_001)) ** 2)
        assert error == pytest.approx(tried.min(), rel=1e-6)
        assert error <= tried.min() + 1e-12


def test_several_target_policies_have_several_rates() -> None:
    p = endless(off_policy_problem(1, policies=2))
    one, other = np.asarray(p.rate)
    assert one != other
    r = st.run(p, "differential_td:alpha=0.01", steps=50, seeds=1, points=2)
    assert r.errors[0, 0, -1] == pytest.approx(float(p.error(r.final_weights[0, 0])), rel=1e-9)


def test_it_is_saved_and_old_files_are_read(tmp_path: Path) -> None:
    p = st.Problem(**CHAIN, average_reward=True)
    assert st.load_problem(p.save(tmp_path / "mine.npz")).average_reward
    old = rewritten(st.problem("baird").save(tmp_path / "old.npz"), {"average_reward": None})
    assert st.load_problem(old).average_reward is False


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gamma": 0.9}, r"gamma must be 1 with average_reward=True, got 0\.9: an endless stream"),
        ({"gamma": [1.0, 0.0]}, r"gamma\[1\] must be 1 with average_reward=True, got 0:"),
        ({"interest": [1.0, 2.0]}, r"interest\[1\] must be 1 with average_reward=True, got 2:"),
    ],
)
def test_what_it_asks_for(changes: dict[str, object], message: str) -> None:
    with pytest.raises(st.InputError, match=message):
        st.Problem(**{**CHAIN, **changes}, average_reward=True)


def test_the_target_policy_needs_one_rate() -> None:
    stays = np.stack([np.eye(2), np.full((2, 2), 0.5)], axis=1)
    with pytest.raises(st.InputError, match="the target policy's chain has 2 closed classes"):
        st.Problem(
            name="mine", P=stays, r=np.zeros((2, 2)), gamma=1.0, mu=np.full((2, 2), 0.5),
            pi=[[1.0, 0.0]] * 2, Phi=np.eye(2), average_reward=True,
        )  # fmt: skip


def test_learners_and_problems_must_match() -> None:
    with pytest.raises(st.InputError, match="td learns discounted values, and queue asks for the"):
        st.run("queue", "td:alpha=0.1", steps=10)
    with pytest.raises(st.InputError, match="differential_td learns the average reward, and baird"):
        st.run("baird", "differential_td:alpha=0.1", steps=10)
    with pytest.raises(st.InputError, match="average reward, of which action values are not"):
        st.ActionValues(st.problem("queue"))
    with pytest.raises(st.InputError, match="without discount; give discount=1"):
        st.prediction("differential_td:alpha=0.1", cumulant=0, policy=0, discount=0.9)


@pytest.mark.parametrize("features", [3, 400])
def test_online_the_rate_is_shown_and_saved(features: int, tmp_path: Path) -> None:
    """By hand: alpha 0.1, ratio 0.5. First delta 2, then delta 4 - 0.1 + 0 - 0.2 x 0."""
    a = st.learner("differential_td", alpha=0.1, ratio=0.5, lam=0.5).start(features)
    x, y = np.eye(features)[:2]
    a.update(x, 2.0, y, rho=1.0)
    assert a.scalars == {"rate": pytest.approx(0.1)}
    a.update(y, 4.0, y, rho=0.5, gamma=1.0)
    assert a.scalars["rate"] == pytest.approx(0.1 + 0.05 * 0.5 * 3.9)
    assert "Its rate is 0.1975" in str(a)
    assert st.load_learner(a.save(tmp_path / "a.npz")).scalars == a.scalars
    with pytest.raises(st.InputError, match=r"gamma must be 1, or left out, got 0\.9"):
        a.update(x, 1.0, y, rho=1.0, gamma=0.9)


def test_in_a_horde_it_is_the_online_learner() -> None:
    """Up to rounding; a stream that is cut off in the middle, too."""
    rng, text = np.random.default_rng(0), "differential_td:alpha=0.1,ratio=0.5,lam=0.5"
    h = st.horde(6, [st.prediction(text, cumulant=0, policy=0, discount=1.0)])
    a = st.learner(text).start(6)
    for step in range(60):
        (x, y), reward, rho = rng.normal(size=(2, 6)), rng.normal(), rng.uniform(0.0, 2.0)
        h.update(x, y, [reward], [rho])
        a.update(x, reward, y, rho=rho)
        if step == 30:
            h.end_episode()
            a.end_episode()
    np.testing.assert_allclose(h.w[0], a.w, rtol=1e-9)
