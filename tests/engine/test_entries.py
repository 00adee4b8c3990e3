"""Laws with a step size of their own for every feature: functions of entries, on every path.

The contract, the references and the browser have tests of their own, which these laws pass, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError
from steadytd.engine import active
from steadytd.engine.active import MANY, ActiveBlock, is_active, make_block, programs
from steadytd.engine.block import Block
from steadytd.engine.elementary import exp, log
from steadytd.engine.facts import named
from steadytd.engine.law import Entries, Law, Total, arguments
from steadytd.engine.learner import Learner
from steadytd.engine.reference import ReferenceLearner
from steadytd.learners import algorithm, names
from steadytd.theory.reading import Steps
from steadytd.theory.recommend import adaptive
from tests.support.cases import assert_same_bits, example, off_policy_problem
from tests.support.hordes import not_compiled
from tests.support.sparse_streams import SparseStream
from tests.support.swift import CASES, GIVEN, LEAST, NAMES, by_the_package, stream

LAWS = [law for law in map(algorithm, names()) if law.each]
LISTED = [law for law in LAWS if all(getattr(one, "over", "x") for one in law.each)]
SINGLE = 1e-5  # relative: 400 steps in single precision


def by_name(laws: list[Law]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("law", laws, ids=lambda law: str(law.name))


# ---- exp and log


NUMBERS = [
    *np.random.default_rng(0).uniform(-700, 700, 2000),
    *np.random.default_rng(1).normal(size=2000),
    0.0, -0.0, 1.0, 709.7, 800.0, -800.0, math.inf, -math.inf,
]  # fmt: skip


def test_exp_and_log_are_right_to_two_units_of_the_last_place() -> None:
    x = np.array(NUMBERS)
    with np.errstate(over="ignore"):
        np.testing.assert_array_max_ulp(np.array([exp(v) for v in NUMBERS]), np.exp(x), 3)
    y = np.exp(x[np.abs(x) < 700])
    np.testing.assert_array_max_ulp(np.array([log(v) for v in y.tolist()]), np.log(y), 4)
    assert (exp(0.0), log(1.0), log(0.0), log(math.inf)) == (1.0, 0.0, -math.inf, math.inf)
    assert math.isnan(exp(math.nan))
    assert math.isnan(log(-1.0))


def test_exp_and_log_have_the_same_bits_compiled() -> None:
    for function in (exp, log):
        compiled = njit(error_model="numpy")(function)
        given = [abs(x) if function is log else x for x in NUMBERS]
        found = np.array([compiled(x) for x in given])
        assert_same_bits(found, np.array([function(x) for x in given]))


# ---- Paths


def lanes_of(law: Law, *alphas: float) -> list[Learner]:
    return [example(law, alpha=a, lam=lam) for a in alphas for lam in (0.0, 0.6, 0.95)]


def test_there_are_four() -> None:
    assert [law.name for law in LAWS] == ["autostep", "swift_td", "tidbd", "wis_td"]
    assert [law.name for law in LISTED] == ["swift_td", "tidbd", "wis_td"]
    for law in LAWS:  # autostep divides all step sizes in a step that would overshoot
        assert len(programs(law)) == 1 + (law in LISTED)


@by_name(LISTED)
def test_lists_of_active_features_give_the_bits_of_the_plain_loop(
    law: Law, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uncompiled: ratios of 0 and 1000, ends, cuts."""
    monkeypatch.setattr(active, "kernel", not_compiled)
    for largest in (3.0, 1000.0):
        steps = SparseStream(seed=1, steps=200, largest=largest)
        lanes = lanes_of(law, 0.01, 1e-3)
        block, plain = ActiveBlock(lanes, steps.w0), Block(lanes, steps.w0)
        steps.feed(block), steps.feed(plain)
        for i, name in enumerate(law.vectors):
            assert_same_bits(block.vector(name), plain.V[i])


@pytest.mark.parametrize("name", ["swift_td"])
def test_compiled_alone_is_in_a_crowd(name: str) -> None:
    """And one of the lanes diverges, at the step of the plain loop."""
    steps = SparseStream(seed=3, steps=3000, d=150, active=4)
    steps.w0[:] = 0.0
    law = algorithm(name)
    wild = example(law, alpha=50.0, bound=1e290, decay=1.0, meta=0.0, lam=0.9)
    lanes = [*lanes_of(law, 0.01, 0.002), wild]
    crowd, plain = ActiveBlock(lanes, steps.w0), Block(lanes, steps.w0)
    steps.feed(crowd), steps.feed(plain)
    assert crowd.first_divergence[-1] == plain.first_divergence[-1] > 0
    assert (crowd.first_divergence[:-1] == -1).all()
    for i, learner in enumerate(lanes[:-1]):
        alone = ActiveBlock([learner], steps.w0)
        steps.feed(alone)
        assert_same_bits(alone.w[:, 0], crowd.w[:, i])
        assert_same_bits(plain.w[:, i], crowd.w[:, i])


@by_name(LISTED)
def test_the_path_is_a_matter_of_the_number_of_features(law: Law) -> None:
    one = example(law)
    assert is_active(one, MANY)
    assert isinstance(make_block([one], np.zeros(MANY)), ActiveBlock)
    assert not isinstance(make_block([one], np.zeros(MANY - 1)), ActiveBlock)
    assert not is_active(one.replace(average=1), MANY)


@by_name(LISTED)
def test_what_is_not_listed_does_not_change(law: Law) -> None:
    """The promise of `over`: where x and the listed vector are 0, functions change nothing."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        learner = example(law, lam=0.6)
        reference = ReferenceLearner(learner, rng.normal(size=3))
        for name in law.vectors:
            reference.vectors[name] = rng.normal(size=3)
        x = rng.normal(size=3)
        for name in {law.listed, "dw", "v", "d"} & set(law.vectors):  # 0 where the trace is
            reference.vectors[name][1] = 0.0
        x[1] = 0.0
        scope = {**learner.values, "gamma": 0.9, "reward": 1.0, "rho": 0.7}
        scope |= {n: rng.normal() for n in (*law.numbers, *law.totals, *law.products)}
        for one in (one for one in law.each if isinstance(one, Entries) and one.over != "x"):
            own = {name: float(reference.vectors[name][1]) for name in law.vectors}
            asked = {**scope, **own, "x": 0.0}
            returned = one.function(*(asked[name] for name in arguments(one.function)))
            new = returned if len(one.writes) > 1 else (returned,)
            pairs = {n: (v, own[n]) for n, v in zip(one.writes, new, strict=True)}
            changed = {
                n for n, (v, old) in pairs.items() if not math.isclose(v, old, rel_tol=1e-12)
            }
            assert not changed - {"p", "z_bar"}, changed  # which fade to 0 with the trace


def test_lists_grow_and_shrink_with_the_traces() -> None:
    """A feature with a trace above the cut is listed, and no other; an episode's end empties it."""
    online = st.learner("swift_td:alpha=0.1,lam=0.9,cut=0.2").start(5)
    eye = np.eye(5)

    def count() -> float:
        return float(online.block.M[-1, 0])

    online.update(eye[0], 1.0, eye[1], gamma=0.9, rho=1.0)
    assert count() == 1
    online.update(eye[1], 1.0, eye[1], gamma=0.9, rho=1.0)
    assert count() == 2
    for _ in range(8):  # 0.81^8 < 0.2
        online.update(eye[1], 1.0, eye[1], gamma=0.9, rho=1.0)
    assert count() == 1
    online.update(eye[1], 1.0, eye[2], gamma=0.0, rho=1.0)
    online.update(eye[2], 1.0, eye[3], gamma=0.9, rho=1.0)
    assert count() == 1


def test_in_a_horde_as_alone() -> None:
    """Every prediction has the bits of an online learner on the same features."""
    d, steps = 30, 80
    rng = np.random.default_rng(0)
    texts = ["swift_td:alpha=0.05,lam=0.9,bound=0.5", "tidbd:alpha=0.05,lam=0.5",
             "wis_td:alpha=0.1,lam=0.9", "autostep:alpha=0.1,lam=0.3"]  # fmt: skip
    horde = st.horde(d, [st.prediction(text, cumulant=0, policy=0, discount=0.9) for text in texts])
    alone = [st.learner(text).start(d) for text in texts]
    X = (rng.random((steps + 1, d)) < 0.2).astype(float)
    for t in range(steps):
        reward, rho = rng.normal(), float(rng.choice([0.0, 0.5, 2.0]))
        horde.update(X[t], X[t + 1], [reward], [rho])
        for one in alone:
            one.update(X[t], reward, X[t + 1], gamma=0.9, rho=rho)
    np.testing.assert_array_equal(horde.w, np.stack([one.w for one in alone]))
    assert np.abs(horde.w).max(axis=1).min() > 0.1


# ---- What the learners are


@pytest.mark.parametrize("case", range(len(CASES)))
def test_swift_td_equals_the_authors_numbers(case: int) -> None:
    np.testing.assert_allclose(ours(case), GIVEN[case], rtol=SINGLE, atol=SINGLE)


@pytest.mark.parametrize("case", range(len(CASES)))
def test_swift_td_equals_the_authors_package(case: int) -> None:
    package = pytest.importorskip("swifttd")
    np.testing.assert_allclose(ours(case), by_the_package(case, package), rtol=SINGLE, atol=SINGLE)


def ours(case: int) -> Floats:
    d, _, settings = CASES[case]
    given = dict(zip(NAMES, settings, strict=True))
    gamma = given.pop("gamma")
    learner = st.learner("swift_td", **given, least=LEAST).start(d)
    x, reward = stream(case)
    for t, r in enumerate(reward.tolist()):
        learner.update(x[t], r, x[t + 1], gamma=gamma, rho=1.0)
    return learner.w


REDUCTIONS: dict[str, tuple[str, str, float]] = {
    "tidbd without a meta step size": ("tidbd:meta=0", "td", 1e-12),
    "autostep without one, in small steps": ("autostep:meta=0", "td", 1e-12),
    "swift_td without one, without cuts and bound": (
        "swift_td:meta=0,cut=0,bound=1e9", "true_online_td", 1e-10
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REDUCTIONS)
def test_reductions(what: str) -> None:
    """Off-policy, with ends and cuts: a few roundings a step."""
    own, other, tolerance = REDUCTIONS[what]
    problem = off_policy_problem(11)
    for lam in (0.5, 0.9, *([0.0] if other == "td" else [])):
        learners = [st.learner(text, alpha=0.001, lam=lam) for text in (own, other)]
        w = st.run(problem, learners, steps=400, seeds=2, points=2).final_weights
        np.testing.assert_allclose(w[0], w[1], rtol=tolerance, atol=tolerance)
        assert np.abs(w[0] - problem.w0).max() > 0.01


def test_wis_td_is_true_online_td_on_policy_with_binary_features() -> None:
    """Usage stays at 1 / alpha where eta = alpha, x is 0 or 1 and rho = 1."""
    rng = np.random.default_rng(0)
    d = 5
    own, other = (
        st.learner(text).start(d)
        for text in ("wis_td:alpha=0.1,eta=0.1,lam=0.8", "true_online_td:alpha=0.1,lam=0.8")
    )
    X = (rng.random((300, d)) < 0.4).astype(float)
    for t in range(299):
        reward, gamma = rng.normal(), float(rng.choice([0.0, 0.9]))
        for one in (own, other):
            one.update(X[t], reward, X[t + 1], gamma=gamma, rho=1.0)
    np.testing.assert_allclose(own.w, other.w, rtol=1e-10, atol=1e-12)
    assert np.abs(own.w).max() > 0.5


def test_wis_td_is_the_weighted_average_of_rewards() -> None:
    """Episodes of one step, one feature a state, eta = 0, usage that starts at 1e-9."""
    rng = np.random.default_rng(1)
    one = st.learner("wis_td:alpha=1e9,lam=0.7").start(2)
    sums, weights = np.zeros(2), np.zeros(2)
    for _ in range(40):
        s, reward, rho = int(rng.integers(2)), rng.normal(), float(rng.choice([0.0, 0.5, 1.7]))
        one.update(np.eye(2)[s], reward, np.zeros(2), gamma=0.0, rho=rho)
        sums[s] += rho * reward
        weights[s] += rho
    np.testing.assert_allclose(one.w, sums / weights, rtol=1e-8)


def test_autostep_is_the_papers_for_supervised_learning() -> None:
    """Targets, not bootstrapping: the table of the paper, written out."""
    rng = np.random.default_rng(2)
    d, meta, tau = 4, 0.05, 100.0
    one = st.learner(f"autostep:alpha=0.3,meta={meta},tau={tau}").start(d)
    w, h, v, own = np.zeros(d), np.zeros(d), np.zeros(d), np.full(d, 0.3)
    for _ in range(200):
        x = rng.normal(size=d)
        y = x[0] - 2 * x[1] + 0.1 * rng.normal()
        one.update(x, y, np.zeros(d), gamma=0.0, rho=1.0)
        delta = y - w @ x
        size = np.abs(delta * x * h)
        v = np.maximum(size, v + own * x**2 * (size - v) / tau)
        own = own * np.exp(meta * delta * x * h / np.where(v > 0, v, 1.0))
        own = own / max(own @ x**2, 1.0)
        w = w + own * delta * x
        h = h * (1 - own * x**2) + own * delta * x
    np.testing.assert_allclose(one.w, w, rtol=1e-9)
    np.testing.assert_allclose(w[:2], [1.0, -2.0], atol=0.2)


@pytest.mark.parametrize("name", ["tidbd", "autostep"])
def test_frozen_step_sizes_give_td_times_each(name: str) -> None:
    """What the certificate says: E[change of w] = D (b - A w), by enumeration."""
    problem = off_policy_problem(5)
    m, rng = problem.moments(), np.random.default_rng(0)
    beta, w = rng.normal(size=problem.n_features), rng.normal(size=problem.n_features)
    alpha = 1e-4
    s, a, t, facts, p = Steps.of(m, m.d)
    mean = np.zeros_like(w)
    for i, chance in enumerate(m.d[s] * m.mu[s, a] * p):
        one = ReferenceLearner(st.learner(name, alpha=alpha, meta=0.0), w)
        one.vectors["beta"] = beta.copy()
        one.update(m.Phi[s[i]], m.Phi[t[i]], named(facts[i]))
        mean += chance * (one.vectors["w"] - w)
    np.testing.assert_allclose(mean, alpha * np.exp(beta) * (m.b() - m.A() @ w), rtol=1e-9)


@by_name(LAWS)
def test_the_certificate_says_why_there_is_no_closed_form(law: Law) -> None:
    c = st.certify("three_state")
    text = f"{law.name} has no closed form. It learns a step size for every feature. "
    for ask in (c.fixed_point, c.is_stable):
        with pytest.raises(InputError) as refused:
            ask(example(law))
        assert str(refused.value).startswith(text)
    assert "update is that of td with a step size per feature" in str(refused.value)
    assert f" {law.name}" in adaptive()
    assert c.learning_curve(example(law), steps=10).runs == 200  # estimated, not exact
    assert law.name not in {row["learner"] for row in c.learners}


# ---- What the language refuses


def learn(w: float, z: float, x: float, delta: float) -> tuple[float, float]:
    return w + delta * (z + x), 0.5 * z + x


def number(reward: float) -> float:
    return reward


def refused(message: str, function: Callable[..., Any] = number, **options: Any) -> None:
    given: dict[str, Any] = {
        "writes": {"delta": "number"},
        "each": [Entries(learn, ("w", "z"), "z")],
    }
    with pytest.raises(InputError, match=message):
        st.law(**{**given, **options}, name="mine")(function)


def test_what_cannot_be_said_is_refused() -> None:
    refused("all that changes vectors must be there", writes={"delta": "number", "h": "x"})
    refused("no step is idle", idle_at_rho_zero=True)
    refused("first vector", each=[Entries(learn, ("v", "z"), "z")])
    refused("vector in over of law mine", each=[Entries(learn, ("w", "z"), "h")])
    refused("over must name the same vector", each=[
        Entries(learn, ("w", "z"), "z"), Entries(lambda w, delta: w, ("w",), "w"),
    ])  # fmt: skip
    refused("two functions", each=[Entries(learn, ("w", "z")), Entries(learn, ("w", "z"))])
    refused("argument of law mine: 'delta'", writes={"gain": "number"})
    refused("names two things", each=[Entries(learn, ("w", "z")), Total(lambda w: w, "delta")])
    refused("needs each", writes={"w": "x", "delta": "number"}, each=[])
    refused("a sum is not known yet: 'share'|'share'", each=[
        Entries(lambda w, share: w + share, ("w",)), Total(lambda w: w, "share"),
    ])  # fmt: skip


def test_a_law_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sign updates with a per-feature momentum, over all features: written out in NumPy."""

    def momentum(w: float, g: float, x: float, push: float) -> tuple[float, float]:
        g = 0.5 * g + push * x
        return w + g, g

    @st.law(writes={"push": "number"}, each=[Entries(momentum, ("w", "g"))])
    def own(reward: float, w_x: float, alpha: float) -> float:
        return alpha * (reward - w_x)

    online = st.learner(own, alpha=0.1).start(3, [1.0, 2.0, 3.0])
    w, g = np.array([1.0, 2.0, 3.0]), np.zeros(3)
    for x in np.random.default_rng(0).normal(size=(20, 3)):
        online.update(x, 1.0, x, gamma=0.0)
        g = 0.5 * g + 0.1 * (1.0 - w @ x) * x
        w = w + g
    np.testing.assert_allclose(online.w, w, rtol=1e-12)
