"""Learners that solve a system: against the equations, in the limit, and where A is singular."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.engine import second_order
from steadytd.engine.active import make_block
from steadytd.engine.law import LAM, accumulating_trace
from steadytd.engine.second_order import SecondOrderBlock, solve, solved
from steadytd.learners.lstd import expectation
from steadytd.learners.perturbed_lstd import path
from tests.support.cases import assert_same_bits, is_quick, off_policy_problem
from tests.support.draws import examples
from tests.support.helpers import random_problem
from tests.support.references import REFERENCES, Step, steps_of

STEPS, SEED = 700, 5
ALL = (
    "lstd",
    "lstd:lam=0.6",
    "lstd:ridge=0.7",
    "lstd:lam=0.6,ridge=0.7,form=recursive",
    "lstd:ridge=0.001,form=recursive",
    "lsetd",
    "lsetd:lam=0.6",
    "lsetd:beta=0.3",
    "lsetd:lam=0.6,beta=0.3,ridge=2,form=recursive",
    "lsetd:ridge=0.7,form=recursive",
    "perturbed_lstd:eta=0.7",
    "perturbed_lstd:eta=0.2,lam=0.6",
)
TEXTS = [text for text in ALL if is_quick(st.learner(text))]


@pytest.fixture(scope="module")
def problem() -> st.Problem:
    """Ends of episodes, rho = 0, changing discounts, interest, two target policies."""
    return off_policy_problem(10, policies=2)


@pytest.fixture(scope="module")
def together(problem: st.Problem) -> st.Result:
    beside = ["td:alpha=0.01", "etd:alpha=0.01,lam=0.6"]
    return st.run(problem, [*TEXTS, *beside], steps=STEPS, seeds=[SEED, 6], points=8, threads=1)


@pytest.mark.parametrize("text", TEXTS)
def test_weights_and_errors_are_those_of_the_equations(
    problem: st.Problem, together: st.Result, text: str
) -> None:
    """Equal up to rounding, which the condition numbers (below 1e4) may multiply."""
    number = TEXTS.index(text)
    learner = together.learners[number]
    assert str(learner) == text
    streams = [steps_of(problem, policy, STEPS, SEED) for policy in range(2)]
    for i, point in enumerate(together.steps.tolist()[1:], start=1):
        expected = [
            REFERENCES[text.partition(":")[0]](steps[:point], problem.w0, learner.values)
            for steps in streams
        ]
        error = problem.error(np.array(expected))
        np.testing.assert_allclose(together.errors[number, 0, i], error, rtol=1e-9)
    np.testing.assert_allclose(together.final_weights[number, 0], expected, rtol=1e-9)
    assert (together.first_divergence == -1).all()


def test_before_any_data_the_weights_are_w0(problem: st.Problem) -> None:
    for text in TEXTS:
        assert_same_bits(st.learner(text).start(3, problem.w0).w, problem.w0)


@pytest.mark.parametrize("text", ["lsetd:lam=0.6", "lstd:lam=0.6,ridge=0.7,form=recursive"])
def test_chunks_and_points_do_not_matter(problem: st.Problem, text: str) -> None:
    """9,000 steps are more than one chunk of the stream, and recording only reads."""
    few = st.run(problem, text, steps=9000, seeds=1, points=2)
    many = st.run(problem, text, steps=9000, seeds=1, points=41)
    assert_same_bits(many.final_weights, few.final_weights)


def test_recursive_is_batch() -> None:
    """With the same ridge, at every step; with so small a one that no digit of C is left, too."""
    problem = off_policy_problem(3)
    for name in ("lstd", "lsetd"):
        for ridge in (1.0, 1e-13, 1e-3, 1e-6)[: examples(2, 4)]:
            batch = st.learner(name, ridge=ridge, lam=0.4)
            pair = [batch, batch.replace(form="recursive")]
            found = st.run(problem, pair, steps=300, seeds=2, points=301)
            assert found.errors.shape[-1] == 301
            np.testing.assert_allclose(found.errors[0], found.errors[1], rtol=1e-7)
            assert ridge == 1e-13 or (found.errors[0] != found.errors[1]).any()


def test_recursive_needs_no_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = off_policy_problem(3)
    expected = st.run(problem, "lstd:ridge=0.001", steps=300, seeds=1, points=301)

    def refuse(*_: object) -> Floats:
        raise AssertionError("solved")

    monkeypatch.setattr(second_order, "solve", refuse)
    text = "lstd:ridge=0.001,form=recursive"
    found = st.run(problem, text, steps=300, seeds=1, points=301)
    np.testing.assert_allclose(found.errors, expected.errors, rtol=1e-9)


def test_a_step_that_makes_the_inverse_infinite() -> None:
    """x = 1 leads to 2 undiscounted: A goes to -1, and with a ridge of 1 the matrix is singular."""
    online = st.learner("lstd:ridge=1,form=recursive").start(1, [3.0])
    batch = st.learner("lstd:ridge=1").start(1, [3.0])
    for x_next, reward in ((2.0, 1.0), (0.5, 1.0), (3.0, -2.0)):
        for one in (online, batch):
            one.update([1.0], reward, [x_next], rho=1.0, gamma=1.0)
        assert np.isfinite(online.w).all()
        assert_same_bits(online.w, batch.w)
    np.testing.assert_allclose(online.w, (1.0 + 1.0 - 2.0 + 3.0) / (1.0 - 1.0 + 0.5 - 2.0))


def test_fixed_point_is_that_of_the_learners_with_steps() -> None:
    for seed in range(3):
        c = st.certify(off_policy_problem(seed))
        for direct, stepping in (
            ("lstd", "td"),
            ("lstd", "tdc"),
            ("lstd:lam=0.6", "tdc:lam=0.6"),
            ("lsetd:lam=0.6", "etd:lam=0.6"),
            ("lsetd:beta=0.3", "etd_beta:beta=0.3"),
            ("perturbed_lstd:eta=0.7", "perturbed_td:eta=0.7"),
            ("perturbed_lstd:eta=0.7,lam=0.6", "perturbed_td:eta=0.7,lam=0.6,penalty=outside"),
        ):
            expected = c.fixed_point(stepping)
            np.testing.assert_allclose(c.fixed_point(direct), expected, rtol=1e-8)
            np.testing.assert_allclose(c.mean_weights(direct, 1), expected, rtol=1e-8)
            assert c.is_stable(direct)


def test_the_limit_is_the_fixed_point() -> None:
    """30 seeds of 20,000 steps: the mean within 4 standard errors, and those are small.

    The bias of a ratio of sums is of order 1/steps, far below the standard error.
    """
    problem = off_policy_problem(6, states=4, actions=2, features=2)
    c = st.certify(problem)
    texts = ["lstd", "lstd:lam=0.6", "lsetd:lam=0.6", "lsetd:beta=0.3", "perturbed_lstd:eta=0.7"]
    found = st.run(problem, texts, steps=20_000, seeds=30, points=2)
    for text in texts:
        w = found.weights(text)
        error = w.std(axis=0, ddof=1) / np.sqrt(len(w))
        assert error.max() < 0.02 * np.abs(w).max()
        assert (np.abs(w.mean(axis=0) - c.fixed_point(text)) < 4.0 * error).all()


def test_path_is_that_of_the_certificate() -> None:
    """On three_state within 4 standard errors of 30 seeds; theta2theta has no rewards, hence 0."""
    etas = [0.0, 0.2, 0.55, 0.7, 1.0, 3.0]
    learners = [st.learner("perturbed_lstd", eta=eta) for eta in etas]
    problem = st.problem("three_state")
    found = st.run(problem, learners, steps=20_000, seeds=30, points=2)
    exact = st.certify(problem).path(etas)
    for learner, row in zip(learners, exact.iter_rows(named=True), strict=True):
        values = found.weights(learner) @ problem.Phi.T
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        expected = np.array([row[f"value_{s}"] for s in range(3)])
        assert (np.abs(values.mean(axis=0) - expected) < 4.0 * error).all()
        assert error.max() < 0.01 * np.abs(expected).max()
    zero = st.run("theta2theta", learners, steps=5000, seeds=2, points=2)
    assert np.abs(zero.final_weights).max() < 1e-12


def test_one_pass_serves_every_eta() -> None:
    problem = off_policy_problem(3)
    etas = np.linspace(0.0, 2.0, 9)
    learners = [st.learner("perturbed_lstd", eta=eta, lam=0.5) for eta in etas]
    block = make_block(learners, problem.w0)
    assert isinstance(block, SecondOrderBlock)
    assert block.V.shape == (8, 3, 1)  # b, A, G and w0 of one pass
    assert block.reported.shape == (3, 9)
    found = st.run(problem, learners, steps=400, seeds=[7], points=2)
    running = learners[4].start(3, problem.w0)
    for t in steps_of(problem, 0, 400, seed=7):
        running.update(t.x, t.reward, t.x_next, rho=t.rho, gamma=t.gamma_next)
    assert_same_bits(path(running, etas), found.final_weights[:, 0, 0])
    assert_same_bits(path(running, 1.0)[0], running.w)
    with pytest.raises(st.InputError, match=r"eta \(penalty\) must be >= 0, or auto, got -1\."):
        path(running, [-1.0])
    with pytest.raises(st.InputError, match="needs a running perturbed_lstd, got lstd"):
        path(st.learner("lstd").start(3), etas)


def test_learners_with_equal_traces_share_their_sums() -> None:
    texts = ["lstd:lam=0.5", "lstd:lam=0.5,ridge=3", "lstd:lam=0.25"]
    block = make_block([st.learner(text) for text in texts], np.zeros(3))
    assert block.V.shape[2] == 2
    recursive = [st.learner(f"lstd:ridge={r},form=recursive") for r in (1, 2)]
    assert make_block(recursive, np.zeros(3)).V.shape[2] == 2


@pytest.mark.parametrize(
    "texts",
    [
        ["lstd:lam=0.5", "lstd:lam=0.5,ridge=3", "lstd:lam=0.25"],
        ["lstd:ridge=1,form=recursive", "lstd:ridge=2,form=recursive"],
        ["lsetd:lam=0.5,ridge=1,form=recursive", "lsetd:lam=0.7,ridge=1,form=recursive"],
        ["lsetd:beta=0.2", "lsetd:beta=0.4", "lsetd"],
        ["perturbed_lstd:eta=1,lam=0.5", "perturbed_lstd:eta=1,lam=0.25"],
    ],
    ids=lambda texts: texts[0],
)
def test_a_neighbour_in_the_block_does_not_matter(texts: list[str]) -> None:
    problem = off_policy_problem(11)
    found = st.run(problem, texts, steps=300, seeds=2, points=5)
    for i, text in enumerate(texts):
        alone = st.run(problem, text, steps=300, seeds=2, points=5)
        assert_same_bits(alone.errors[0], found.errors[i])
        assert_same_bits(alone.final_weights[0], found.final_weights[i])


def test_an_equation_is_made_of_the_facts_of_a_step() -> None:
    @solved(params={"lam": LAM}, traces={"z": accumulating_trace}, expectation=expectation)
    def own(reward: float, w_x: float) -> tuple[float, float, float]:
        return reward - w_x, 1.0, 0.0

    with pytest.raises(st.InputError, match="unknown fact of a step in own: 'w_x'"):
        st.learner(own).start(2)


def test_fewer_directions_than_features_are_safe() -> None:
    """Baird's 8 features of 7 states: the true values, 0, and w0 where no state can tell."""
    problem = st.problem("baird")
    texts = ["lstd", "lstd:lam=0.5", "perturbed_lstd:eta=1", "lsetd:beta=0.5"]
    safe = ["lstd:ridge=1e-6", "lstd:ridge=1e-6,form=recursive"]
    found = st.run(problem, [*texts, *safe], steps=2000, seeds=3, points=60)
    assert np.isfinite(found.errors).all()
    assert np.isfinite(found.final_weights).all()
    assert found.errors[: len(texts), :, -1].max() < 1e-8
    assert found.errors[len(texts) :, :, -1].max() < 1e-3
    Q = problem.moments().row_space
    outside = found.final_weights - found.final_weights @ Q @ Q.T
    unseen = problem.w0 - Q @ Q.T @ problem.w0
    assert np.abs(unseen).max() > 0.1
    np.testing.assert_allclose(outside[: len(texts)] - unseen, 0.0, atol=1e-8)
    np.testing.assert_allclose(outside[len(texts) :] - unseen, 0.0, atol=1e-3)
    c = st.certify(problem)
    np.testing.assert_allclose(c.mean_weights("lstd", 1), unseen, atol=1e-9)
    assert all(c.is_stable(text) for text in texts)


def test_solution_of_near_singular_systems() -> None:
    A, b = np.array([[2.0, 0.0], [0.0, 1e-13]]), np.array([2.0, 1.0])
    np.testing.assert_allclose(solve(A, b), [1.0, 0.0])
    np.testing.assert_allclose(solve(1e300 * A, 1e300 * b), [1.0, 0.0])
    np.testing.assert_allclose(solve(A + 1e-8 * np.eye(2), b), [1.0, 1e8], rtol=1e-4)
    assert solve(np.zeros((2, 2)), b).tolist() == [0.0, 0.0]
    np.testing.assert_allclose(solve(np.ones((2, 2)), np.ones(2)), [0.5, 0.5])


def test_sums_that_overflow_are_reported_as_divergence() -> None:
    calm, online = (st.learner("lsetd").start(1) for _ in range(2))
    for rho in (1e200, 1e200):
        online.update([1.0], 1.0, [1.0], rho=rho, gamma=0.9)
    calm.update([1.0], 1.0, [1.0], rho=1e200, gamma=0.9)
    assert [one.diverged for one in (calm, online)] == [False, True]
    assert calm.w.tolist() == [pytest.approx(10.0)]
    assert online.w.tolist() == [np.inf]


@pytest.mark.parametrize("cut", [1, 20])
@pytest.mark.parametrize("text", TEXTS[1::2])
def test_online_learner_saves_and_loads(
    problem: st.Problem, tmp_path: Path, text: str, cut: int
) -> None:
    """After one step the weights still depend on w0, which must be saved with the rest."""
    steps = steps_of(problem, 1, 40, SEED)

    def feed(online: st.OnlineLearner, some: list[Step]) -> Floats:
        return np.array(
            [
                online.update(t.x, t.reward, t.x_next, t.rho, t.gamma_next, interest=t.interest)
                for t in some
            ]
        )

    online, half = (st.learner(text).start(3, problem.w0) for _ in range(2))
    deltas = feed(online, steps)
    feed(half, steps[:cut])
    other = st.load_learner(half.save(tmp_path / "half.npz"))
    assert other.step == cut
    assert_same_bits(other.w, half.w)
    used = st.learner(text).start(3)
    assert not np.array_equal(used.w, half.w)
    used.restore({name: getattr(half.block, name) for name in half.block.saved}, cut)
    assert_same_bits(used.w, half.w)
    assert_same_bits(feed(other, steps[cut:]), deltas[cut:])
    assert_same_bits(other.w, online.w)
    assert other.predict(steps[0].x) == pytest.approx(float(online.w @ steps[0].x))
    assert not np.array_equal(half.w, online.w)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("lstd", "lstd"),
        ("lstd:", "lstd"),
        ("lstd:lam=0.5", "lstd:lam=0.5"),
        ("lstd:form=batch,ridge=0", "lstd"),
        ("lsetd:beta=gamma", "lsetd"),
        ("lsetd:beta=0.5,form=recursive,ridge=1e-6", "lsetd:beta=0.5,ridge=1e-6,form=recursive"),
        ("perturbed_lstd:eta=auto", "perturbed_lstd:eta=auto"),
    ],
)
def test_text_without_a_step_size(text: str, plain: str) -> None:
    made = st.learner(text)
    assert str(made) == plain
    assert st.learner(str(made)) == made
    assert not {"alpha", "power", "delay", "average"} & set(made.values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lstd:ridge=-1", r"lstd: ridge \(added to the diagonal of A\) must be >= 0, got -1\."),
        ("lstd:form=fast", "unknown form of lstd: 'fast'. Known: batch, recursive."),
        ("lstd:form=recursive", r"lstd with recursive: ridge .* must be > 0, got 0\."),
        ("lstd:alpha=0.1", "unknown parameter of lstd: 'alpha'"),
        ("lsetd:beta=delta", "lsetd: beta must be a number or gamma, got 'delta'."),
        ("lsetd:beta=2", "must be >= 0 and <= 1, or gamma, got 2."),
        ("perturbed_lstd", r"perturbed_lstd needs eta \(penalty, >= 0, or auto\)"),
        ("perturbed_lstd:eta=1,average=1", "unknown parameter of perturbed_lstd: 'average'"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(st.InputError, match=message):
        st.learner(text)


def test_certificate_compares_with_the_learners_with_steps() -> None:
    rows = {row["learner"]: row for row in st.certify("three_state").learners}
    for name, same in (("lstd", "tdc"), ("lsetd", "etd"), ("perturbed_lstd", "perturbed_td")):
        assert rows[name]["stable"]
        assert rows[name]["largest_alpha"] is None
        assert rows[name]["error"] == pytest.approx(rows[same]["error"], rel=1e-6)


def test_reductions() -> None:
    """On a problem whose states are all of interest 1."""
    for pair in (
        ["perturbed_lstd:eta=0,lam=0.5", "lstd:lam=0.5"],
        ["lsetd:beta=0,lam=0.5", "lstd:lam=0.5"],
        ["lsetd:lam=1", "lstd:lam=1"],
    ):
        found = st.run(random_problem(4), pair, steps=500, seeds=2, points=5)
        np.testing.assert_allclose(found.errors[0], found.errors[1], rtol=1e-9)
