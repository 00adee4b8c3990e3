"""Parameters at the end of their range, and what the learners' own texts say about stability."""

from __future__ import annotations

import re

import numpy as np
import pytest

import steadytd as st
from steadytd.learners import algorithm
from steadytd.problems import names
from steadytd.theory.certificate import Certificate


@pytest.mark.parametrize(
    "learner", ["etd_beta:beta=1", "lsetd:beta=1", "perturbed_etd:beta=1,eta=1"]
)
def test_beta_one_needs_episodes_that_end(learner: str) -> None:
    c = Certificate(st.problem("three_state"))
    message = (
        "the mean of the follow-on trace is not finite at beta = 1: under pi episodes do not end"
    )
    with pytest.raises(st.InputError, match=message):
        c.fixed_point(learner)
    walk = Certificate(st.problem("random_walk"))  # discount 1 until it ends
    plain = {"lsetd:beta=1": "etd", "etd_beta:beta=1": "etd"}.get(learner)
    if plain is not None:
        expected = walk.problem.Phi @ walk.fixed_point(plain)
        assert walk.problem.Phi @ walk.fixed_point(learner) == pytest.approx(expected, rel=1e-8)
    assert np.isfinite(walk.fixed_point(learner)).all()


def test_discounted_cop_td_needs_a_discount() -> None:
    rule = re.escape("g (discount of the ratio) must be >= 0 and <= 0.999, got 1.")
    with pytest.raises(st.InputError, match=rule):
        st.learner("discounted_cop_td:alpha=0.1,g=1")


@pytest.mark.parametrize("period", [1, 2, 3])
def test_per_etd_has_a_closed_form_where_its_last_steps_see_all_states(period: int) -> None:
    """Drawn rings of two states each: the states at every b-th step, followed from the first."""
    rng, n = np.random.default_rng(period), 2 * period
    P = np.zeros((n, 2, n))
    for s in range(n):
        there = (s // 2 * 2 + 2) % n
        P[s, :, there : there + 2] = rng.dirichlet([1.0, 1.0], size=2)
    mu, pi = rng.dirichlet([1.0, 1.0], size=(2, n))
    p = st.Problem(
        name="ring", P=P, r=1.0, gamma=0.9, mu=mu, pi=pi, Phi=np.eye(n), start=np.eye(n)[0]
    )
    chain, c, known = np.einsum("sa,sat->st", mu, P), Certificate(p), []
    for b in (1, 2, 3, 4, 6):
        steps = [np.linalg.matrix_power(chain, b * k + b - 1)[0] for k in range(50, 56)]
        known.append(bool(np.allclose(np.mean(steps, axis=0), p.d_mu, atol=1e-6)))
        if known[-1]:
            assert np.isfinite(c.fixed_point(f"per_etd:b={b}")).all()
        else:
            with pytest.raises(st.InputError, match=f"b = {b} where .* chain has period {period}:"):
                c.fixed_point(f"per_etd:b={b}")
    assert known == {1: [True] * 5, 2: [True, False, True, False, False],
                     3: [True, True, False, True, False]}[period]  # fmt: skip
    assert ("per_etd" in {row["learner"] for row in c.learners}) == (period != 2)  # by default 4


@pytest.mark.parametrize("learner", ["cop_td", "gem_etd"])
def test_the_pages_say_where_the_mean_update_is_unstable(learner: str) -> None:
    """`unstable on a, b and c, and stable on d`, with the defaults: so it is."""
    text = " ".join(algorithm(learner).doc.split())
    found = re.search(
        r"[Ww]ith the defaults (?:the mean update is unstable|it is) on ([^.]*?), and stable "
        r"on ([^.]*)\.",
        text,
    )
    assert found is not None
    known = set(names())
    unstable, stable = (
        {w for w in re.findall(r"\w+", part) if w in known} for part in found.groups()
    )
    assert unstable
    assert stable
    for name in unstable | stable:
        assert Certificate(st.problem(name)).is_stable(learner) is (name in stable)
    if learner == "cop_td":
        assert {"baird8", "boyan", "nonmonotone", "random_walk"} <= unstable


def test_td_is_stable_without_a_definite_matrix() -> None:
    """What td's text says of nonmonotone, and of kolter."""
    c = Certificate(st.problem("nonmonotone"))
    assert np.linalg.eigvalsh(c.A() + c.A().T).min() < 0.0
    assert np.linalg.eigvals(c.A()).real.min() > 0.0
    assert c.is_stable("td")
    c = Certificate(st.problem("kolter"))
    assert c.error(c.fixed_point("td")) == pytest.approx(2.7, abs=0.05)
    assert c.best_error == pytest.approx(0.0004, abs=1e-4)
