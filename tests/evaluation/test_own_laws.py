"""A user's own law gets from an evaluation everything that a built-in one gets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import steadytd as st
from steadytd.engine.law import LAM
from steadytd.engine.learner import Learner
from steadytd.evaluation.requests import requests
from steadytd.mdp.moments import Expectation
from tests.support.draws import thinned
from tests.support.evaluate_helpers import Identity
from tests.support.helpers import random_problem
from tests.support.log_helpers import log_table
from tests.support.logged_worlds import tabular
from tests.support.own_laws import OWN

SAME = ("value", "lo", "hi", "stable", "eta", "alpha", "ratio", "fixed_point", "diverged", "kind")


def problem_of(kind: str) -> st.Problem:
    if kind == "unstable":
        p = st.problem("baird")
        return st.Problem(name="paid", P=p.P, r=1.0, gamma=p.gamma, mu=p.mu, pi=p.pi, Phi=p.Phi)
    return random_problem(7, states=6, actions=3, features=4, policies=2)


@pytest.mark.parametrize("kind", thinned(["random", "unstable"], 2))
def test_copies_under_other_names_give_the_same_rows(kind: str) -> None:
    """Automatic numbers, interval, stability, and the weights."""
    table = log_table(problem_of(kind), episodes=60, length=12, seed=2)
    asked = [law for name in OWN for law in (name, OWN[name])]
    e = st.evaluate(table, features=Identity(), learners=asked, seed=3)
    rows = {(v["target"], v["learner"]): v for v in e.values.to_dicts()}
    for target in e.targets:
        for name, law in OWN.items():
            built_in, own = rows[target, name], rows[target, law.name]
            for field in SAME:
                if isinstance(built_in[field], float):
                    np.testing.assert_allclose(own[field], built_in[field], rtol=1e-9)
                else:
                    assert own[field] == built_in[field], (name, field)
            assert built_in["stable"] is not None
            np.testing.assert_allclose(
                e.value_function(target, law.name).weights,
                e.value_function(target, name).weights,
                rtol=1e-9,
            )
    if kind == "unstable":
        assert not rows["pi", "my_td"]["stable"] and rows["pi", "my_perturbed_td"]["stable"]
        assert rows["pi", "my_perturbed_td"]["eta"] > 0.0


def test_a_law_that_declares_nothing_is_followed_as_it_is() -> None:
    """No closed form, since it has a trace: a value and no interval."""
    table = log_table(problem_of("random"), episodes=40, length=8, seed=0)
    bare = replace(OWN["td"], name="bare", expectation=None)
    own = Learner(bare, {"alpha": 0.01, "length": 0.5})
    e = st.evaluate(table, features=Identity(), learners=["td:alpha=0.01,lam=0.5", own])
    td, found = e.values.to_dicts()[:2]
    assert found["value"] == td["value"]
    assert np.isnan(found["lo"]) and found["fixed_point"] is None and found["stable"] is None
    about = {w.code for w in e.warnings if w.numbers.get("learner") == str(own)}
    assert "no_interval" in about


def test_a_law_without_a_trace_need_not_declare_anything() -> None:
    """Its closed form is read off it: interval, stability and fixed point are those of td."""
    table = log_table(problem_of("random"), episodes=40, length=8, seed=0)
    bare = replace(OWN["td"], name="bare", expectation=None)
    e = st.evaluate(
        table, features=Identity(), learners=["td:alpha=0.01", Learner(bare, {"alpha": 0.01})]
    )
    td, found = e.values.to_dicts()[:2]
    for name in ("value", "lo", "hi", "fixed_point", "stable"):
        assert found[name] == td[name]


def test_a_solved_law_that_declares_nothing_is_solved_along_the_log() -> None:
    quiet = replace(OWN["lstd"], name="quiet", expectation=None)
    table = log_table(problem_of("random"), episodes=40, length=8, seed=0)
    e = st.evaluate(table, features=Identity(), learners=["lstd", quiet])
    rows: dict[Any, Any] = {(v["target"], v["learner"]): v for v in e.values.to_dicts()}
    for target in e.targets:
        value = rows[target, "quiet"]["value"]
        np.testing.assert_allclose(value, rows[target, "lstd"]["value"], rtol=1e-8)
        assert rows[target, "quiet"]["alpha"] is None


def test_names_and_numbers_that_an_evaluation_cannot_take() -> None:
    named = replace(OWN["td"], name="drl")
    with pytest.raises(st.InputError, match=r"cannot be named drl: .* rename"):
        requests([named])
    with pytest.raises(st.InputError, match=r"cannot be named lstd: .* rename"):
        requests([replace(OWN["td"], name="lstd")])
    tuned = replace(OWN["td"], name="tuned", params={"length": replace(LAM, auto=True)})
    with pytest.raises(st.InputError, match="eta and ratio, not length; give length a number"):
        requests([tuned])


def test_solved_learners_stand_in_for_sampling_by_what_they_solve() -> None:
    """The reference, then those of its system, own or built in, then others; not by name."""
    table = log_table(problem_of("random"), episodes=60, length=12, seed=2)
    asked: list[str | st.Law] = [
        "drl:lam=1",
        "tdc",
        "lsetd",
        "perturbed_lstd:eta=2",
        "perturbed_lstd",
        OWN["lstd"],
    ]
    e = st.evaluate(table, features=Identity(), learners=asked)
    assert e.results[0].solved == ["perturbed_lstd", "my_lstd", "lsetd"]
    e = st.evaluate(table, features=Identity(), learners=[*asked, "lstd"])
    assert e.results[0].solved == ["lstd", "perturbed_lstd", "my_lstd", "lsetd"]
    e = st.evaluate(tabular(0.3).log(1), learners=["drl:lam=1", "tdc", "lsetd"])
    assert e.recommended["pi"].learner == "drl"
    assert e.value_function("pi").learner == "lsetd"


def test_names_say_nothing_where_the_equations_are_known() -> None:
    """A law with parameters lam and eta that are neither a trace nor a penalty: td's step size."""

    @st.law(
        writes={"w": "x"},
        params={
            "lam": st.Param("no trace", default=0.9, low=0.0, high=1.0),
            "eta": st.Param("no penalty", default=2.0, low=0.0),
        },
        expectation=lambda m, values: Expectation(M=m.A(), g=m.b()),
    )
    def misnamed(
        reward: float, rho: float, gamma_next: float, w_x: float, w_x_next: float, alpha: float,
        lam: float, eta: float,
    ) -> float:  # fmt: skip
        return alpha * rho * (reward + gamma_next * w_x_next - w_x) + 0.0 * lam * eta

    e = st.evaluate(tabular(0.5, episodes=30).log(1), learners=[misnamed, "td"])
    own, td, _ = e.values["alpha"]
    assert own == td > 0.0
