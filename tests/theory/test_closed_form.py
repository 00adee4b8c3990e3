"""Closed forms of laws: right ones pass, wrong ones are refused, and those that are read off."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

import steadytd as st
from steadytd.base.arrays import repeated
from steadytd.engine.law import Law
from steadytd.theory import closed_form as subject
from steadytd.theory.closed_form import SAME, closed_form, compare, drawn_task, numbers_of, stated
from steadytd.theory.reading import can_be_read
from tests.support.cases import CASES, off_policy_problem
from tests.support.evaluate_helpers import Identity
from tests.support.helpers import random_problem
from tests.support.log_helpers import log_table
from tests.support.own_laws import OWN

STEPPING = ("td", "perturbed_td", "etd", "tdc", "gtd2")
Form = Callable[[st.Moments, Mapping[str, float]], st.Expectation]


def given(law: Law) -> Form:
    assert law.expectation is not None
    return law.expectation


@pytest.mark.parametrize("name", STEPPING)
def test_the_closed_form_of_a_law_of_ones_own_is_right(name: str) -> None:
    """With and without traces, memory and second vectors."""
    found = st.check(OWN[name])
    assert found.passed and found.problems == 3 and found.difference <= SAME
    assert str(found) == found.text
    assert found.text.startswith(f"the closed form of {found.law} is right on 3 drawn problems")


WRONG: dict[str, Callable[[st.Moments, st.Expectation], st.Expectation]] = {
    "M is transposed": lambda m, e: st.Expectation(e.M.T, e.g),
    "M is off by a millionth": lambda m, e: st.Expectation(e.M * (1.0 + 1e-6), e.g),
    "g is off by a millionth": lambda m, e: st.Expectation(e.M, e.g * (1.0 + 1e-6)),
    "g has the other sign": lambda m, e: st.Expectation(e.M, -e.g),
    "M is G": lambda m, e: st.Expectation(repeated(m.G, len(e.g) // len(m.G)), e.g),
}


@pytest.mark.parametrize("how", WRONG)
@pytest.mark.parametrize("name", STEPPING)
def test_a_wrong_closed_form_is_found(name: str, how: str) -> None:
    law = OWN[name]

    def wrong(m: st.Moments, values: Mapping[str, float]) -> st.Expectation:
        return WRONG[how](m, given(law)(m, values))

    found = st.check(replace(law, name="mine", expectation=wrong))
    assert not found.passed and found.difference > SAME
    assert found.text.startswith("the closed form of mine is wrong. On drawn problem ")
    assert "Correct it, or leave it out" in found.text


def test_a_parameter_that_the_closed_form_forgets_is_found() -> None:
    """Also one whose default makes no difference: numbers are drawn."""
    eta = st.Param("penalty", default=0.0, low=0.0)

    @st.law(writes={"w": "x"}, params={"eta": eta},
            expectation=lambda m, values: st.Expectation(m.A(), m.b()))  # fmt: skip
    def mine(reward: float, rho: float, gamma_next: float, w_x: float, w_x_next: float,
             alpha: float, eta: float) -> float:  # fmt: skip
        return alpha * rho * (reward + gamma_next * w_x_next - (1.0 + eta) * w_x)

    assert not st.check(mine).passed


def test_the_two_numbers_of_a_comparison_are_what_they_are_called() -> None:
    """By the law: b - A w, with A from the problem; by the closed form: what it says."""
    law = replace(OWN["perturbed_td"], expectation=lambda m, v: st.Expectation(m.G, 2.0 * m.b()))
    learner = st.learner(law, alpha=0.1, strength=0.0)
    task = drawn_task(law, 1)
    m, y = task.moments(), np.random.default_rng(7).normal(size=3)
    found = compare(learner, task, 7)
    np.testing.assert_allclose(found.by_law, m.b() - m.A() @ y, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(found.by_form, 2.0 * m.b() - m.G @ y, rtol=1e-9, atol=1e-10)
    assert found.vector == "w"


def test_the_vector_that_differs_is_named() -> None:
    def wrong(m: st.Moments, values: Mapping[str, float]) -> st.Expectation:
        e = given(OWN["tdc"])(m, values)
        return st.Expectation(e.M, e.g + np.repeat([0.0, 1.0], m.n_features))

    text = st.check(replace(OWN["tdc"], expectation=wrong)).text
    assert "the mean change of h over alpha is [" in text


def stable_lie(m: st.Moments, values: Mapping[str, float]) -> st.Expectation:
    """Of TD, which grows without bound on Baird's problem."""
    return st.Expectation(M=m.G, g=m.b())


def liar() -> Law:
    @st.law(writes={"w": "x"}, expectation=stable_lie, name="liar")
    def td(reward: float, rho: float, gamma_next: float, w_x: float, w_x_next: float,
           alpha: float) -> float:  # fmt: skip
        return alpha * rho * (reward + gamma_next * w_x_next - w_x)

    return td


def test_a_wrong_closed_form_is_refused_wherever_it_would_be_used() -> None:
    learner = st.learner(liar(), alpha=0.01)
    c, said = st.certify("baird"), "the closed form of liar is wrong"
    for use in (c.is_stable, c.fixed_point, c.expectation, c.largest_alpha, c.mean_square):
        with pytest.raises(st.InputError, match=said):
            use(learner)
    with pytest.raises(st.InputError, match=said):
        st.run("baird", [learner], steps=10)
    with pytest.raises(st.InputError, match=said):
        st.evaluate(log_table(random_problem(0), episodes=5, length=8, seed=0),
                    features=Identity(), learners=[learner])  # fmt: skip


def test_a_law_is_checked_once_and_the_librarys_own_never(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    check = subject.check

    def counted(law: Law) -> st.LawCheck:
        checked.append(law.name)
        return check(law)

    monkeypatch.setattr(subject, "check", counted)
    own = replace(OWN["td"], name="counted")
    c = st.certify("three_state")
    for length in (0.0, 0.5):
        c.is_stable(st.learner(own, alpha=0.1, length=length))
    st.run("three_state", [st.learner(own, alpha=0.1), "td:alpha=0.1"], steps=10)
    c.is_stable("td:alpha=0.1")
    assert checked == ["counted"]


# Read off the law

READ = [
    case for case in CASES
    if can_be_read(case.law, case.values) and not case.law.action_values
]  # fmt: skip


@pytest.mark.parametrize("case", READ, ids=str)
def test_what_is_read_off_a_law_is_its_closed_form(case: st.Learner) -> None:
    """Rounding apart: both are sums over the same transitions, in another order."""
    silent = replace(case.law, expectation=None)
    for seed in (0, 1):
        p = off_policy_problem(seed, states=4, actions=2, features=3)
        M, g = given(case.law)(p.moments(), numbers_of(case))
        read = stated(silent, p.moments(), numbers_of(case))
        np.testing.assert_allclose(read.M, M, atol=1e-10 * np.abs(M).max())
        np.testing.assert_allclose(read.g, g, atol=1e-10 * np.abs(g).max())
    assert st.check(silent).passed or case.law.traces  # of which lam = 0 alone can be read


def test_many_laws_are_read() -> None:
    assert {"gtd", "gtd2", "implicit_tdc", "perturbed_td", "td", "tdc", "tdrc"} <= {
        case.name for case in READ
    }


@st.law(params={"ceiling": st.Param("largest ratio", low=0.0, above=True)}, writes={"w": "x"})
def clipped_td(reward: float, rho: float, gamma_next: float, w_x: float, w_x_next: float,
               alpha: float, ceiling: float) -> float:  # fmt: skip
    """TD with clipped ratios."""
    return alpha * min(rho, ceiling) * (reward + gamma_next * w_x_next - w_x)


def test_a_law_of_ten_lines_has_a_certificate() -> None:
    """Counts min(pi, ceiling mu) stand for pi, by hand; states that are not active included."""
    for p in (st.problem("three_state"), st.problem("baird"), st.problem("rooms")):
        learner = st.learner(clipped_td, alpha=0.01, ceiling=1.3)
        m = p.moments()
        counts = np.minimum(m.pi, 1.3 * m.mu)
        flow = np.diag(counts.sum(axis=1)) - np.einsum("sa,sat,sat->st", counts, m.P, m.gamma)
        weighted = m.Phi.T * m.d
        M, g = weighted @ flow @ m.Phi, weighted @ np.einsum("sa,sat,sat->s", counts, m.P, m.r)
        e = closed_form(learner.law, m, numbers_of(learner))
        np.testing.assert_allclose(e.M, M, atol=1e-12 * np.abs(M).max())
        np.testing.assert_allclose(e.g, g, atol=1e-12 * max(1.0, np.abs(g).max()))
    c = st.certify("three_state")
    verdicts = [c.is_stable(st.learner(clipped_td, alpha=1, ceiling=x)) for x in (1, 2, 3, 4)]
    assert verdicts == [True, True, False, False]
    assert c.mean_square(st.learner(clipped_td, alpha=1, ceiling=1)) is not None
    r = st.run("three_state", [st.learner(clipped_td, alpha=1e-3, ceiling=4)], steps=3000)
    assert r.outcomes in ([["growing"]], [["not settled"]])


def test_steps_that_divide_by_the_length_of_x_are_read() -> None:
    """w <- w + alpha delta x / (x.x): affine in w, with another weight for each state."""

    @st.law(writes={"w": "x"})
    def normalised(reward: float, rho: float, gamma_next: float, w_x: float, w_x_next: float,
                   x_x: float, alpha: float) -> float:  # fmt: skip
        return alpha * rho * (reward + gamma_next * w_x_next - w_x) / x_x

    m = off_policy_problem(3).moments()
    weight = m.Phi.T * (m.d / (m.Phi**2).sum(axis=1))
    e = closed_form(normalised, m, {})
    np.testing.assert_allclose(e.M, weight @ (np.eye(len(m.d)) - m.P_gamma) @ m.Phi, atol=1e-12)
    np.testing.assert_allclose(e.g, weight @ m.r_pi, atol=1e-12)


@st.law(writes={"w": "x"})
def bounded(reward: float, gamma_next: float, w_x: float, w_x_next: float, alpha: float) -> float:
    """TD errors are cut at 100: no drawn vector of size 1 shows it."""
    return alpha * max(-100.0, min(100.0, reward + gamma_next * w_x_next - w_x))


@st.law(writes={"w": "x"})
def by_length(reward: float, w_x: float, w_w: float, alpha: float) -> float:
    """Divides by the length of w."""
    return alpha * (reward - w_x) / (1.0 + math.sqrt(w_w))


@st.law(writes={"w": ("x", "w")})
def decaying(reward: float, w_x: float, alpha: float) -> tuple[float, float]:
    """The multiple of w itself depends on w."""
    return alpha * reward, -alpha * w_x * w_x


def cut(value: float) -> float:
    return min(max(value, -1.0), 1.0)


@st.law(writes={"w": "x"}, maps={"w": cut})
def in_a_box(reward: float, w_x: float, alpha: float) -> float:
    """Weights stay between -1 and 1."""
    return alpha * (reward - w_x)


@st.law(writes={"w": "x"}, memory={"n": lambda n: 0.9 * n + 0.1})
def remembering(reward: float, w_x: float, alpha: float, n: float) -> float:
    """With a number of its own."""
    return alpha * n * (reward - w_x)


@pytest.mark.parametrize("law", [bounded, by_length, decaying, in_a_box, remembering],
                         ids=lambda law: law.name)  # fmt: skip
def test_what_has_no_closed_form_has_no_certificate_but_runs(law: Law) -> None:
    learner = st.learner(law, alpha=0.01)
    with pytest.raises(st.InputError, match=f"{law.name} has no closed-form expectation"):
        st.certify("three_state").is_stable(learner)
    assert np.isfinite(st.run("three_state", [learner], steps=50).errors).all()
    if law in (bounded, by_length):
        with pytest.raises(st.InputError, match=r"it is not affine in its vectors\. On drawn"):
            st.certify("three_state").is_stable(learner)


def test_an_expectation_of_a_law_that_is_not_affine_is_wrong() -> None:
    """A box of size 1 is left by vectors of size 1; one of size 10 is not (as rotd's)."""
    td = replace(bounded, expectation=lambda m, v: st.Expectation(m.A(), m.b()))
    boxed = replace(in_a_box, expectation=lambda m, v: st.Expectation(m.G, m.b()))
    assert not st.check(td).passed and not st.check(boxed).passed
    assert st.check("rotd").passed


@pytest.mark.parametrize("given_form", [False, True])
def test_steps_that_are_not_proportional_to_alpha(given_form: bool) -> None:
    """Their closed form is one for small steps, and the law must say so."""

    def implicit(reward: float, w_x: float, x_x: float, alpha: float) -> float:
        return alpha / (1.0 + alpha * x_x) * (reward - w_x)

    form = mean_of_rewards if given_form else None
    law = st.law(writes={"w": "x"}, expectation=form)(implicit)
    text = st.check(law).text
    assert ("is wrong: " if form else "has no closed-form expectation: ") in text
    assert "its steps are not proportional to alpha." in text
    assert "Give the law first_order=True" in text
    declared = replace(law, first_order=True)
    assert st.check(declared).passed
    assert st.certify("three_state").is_stable(st.learner(declared, alpha=0.1))


def mean_of_rewards(m: st.Moments, values: Mapping[str, float]) -> st.Expectation:
    """Of a regression of rewards on features, under mu."""
    rewards = np.einsum("sa,sat,sat->s", m.mu, m.P, m.r)
    return st.Expectation(M=m.G, g=m.Phi.T @ (m.d * rewards))


def test_a_solver_cannot_be_checked_and_keeps_its_certificate() -> None:
    with pytest.raises(st.InputError, match="my_lstd cannot be checked: it solves a system"):
        st.check(OWN["lstd"])
    c = st.certify("three_state")
    np.testing.assert_allclose(c.fixed_point(st.learner(OWN["lstd"])), c.fixed_point("lstd"))


def test_a_memory_that_is_not_linear_in_its_past_cannot_be_checked() -> None:
    def root(n: float, rho: float) -> float:
        return 0.5 * math.sqrt(1.0 + n * n) + rho

    law = replace(remembering, memory={"n": root},
                  expectation=lambda m, v: st.Expectation(m.G, m.b()))  # fmt: skip
    with pytest.raises(st.InputError, match=r"remembering cannot be enumerated: it is not linear"):
        st.check(law)


def test_a_memory_that_counts_cannot_be_checked() -> None:
    """It never begins again: no mean of a step, and no end of the search for one."""
    law = replace(remembering, memory={"n": lambda n: n + 1.0}, expectation=mean_of_rewards)
    with pytest.raises(st.InputError, match=r"cannot be enumerated: its memory does not begin"):
        st.check(law)
    assert st.certify("three_state").is_stable(st.learner(law, alpha=0.1))


def test_a_form_that_declines_some_settings_is_checked_at_the_others() -> None:
    def without_traces(m: st.Moments, values: Mapping[str, float]) -> st.Expectation:
        if values["length"] > 0.0:
            raise st.InputError("only for length = 0.")
        return given(OWN["td"])(m, values)

    found = st.check(replace(OWN["td"], expectation=without_traces))
    assert found.passed and found.problems == 1


def test_check_takes_a_name_and_a_learner() -> None:
    assert st.check("tdc") == st.check("tdc:alpha=0.1") == st.check(st.learner("tdc:alpha=0.1"))
    with pytest.raises(st.InputError, match="unknown learner 'tdd'; did you mean 'td'"):
        st.check("tdd")
