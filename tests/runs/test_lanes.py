"""Lanes on a stream: inactive steps, families, several error measures."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

import steadytd as st
from steadytd.engine.facts import named
from steadytd.engine.reference import ReferenceLearner
from steadytd.runs.lanes import RunSetup, grouped, lanes_of, run_seed
from steadytd.runs.measures import goal
from steadytd.runs.run import recording_points
from steadytd.streams.finite import FiniteStream
from tests.support.helpers import random_problem

LEARNERS = [
    "td:alpha=0.1",
    "td:alpha=0.1,lam=0.9",
    "tdc:alpha=0.05,ratio=0.5,lam=0.5",
    "etd:alpha=0.01,lam=0.9",
    "perturbed_td:alpha=0.1,eta=0.5,power=0.6,delay=10",
]


def reference_errors(
    problem: st.Problem, text: str, seed: int, points: list[int]
) -> tuple[np.ndarray, int]:
    """A learner's mean error over the policies, step by step in plain Python, and its divergence.

    It looks at every step of the stream and lets a learner update only where its policy is active.
    """
    stream = FiniteStream(problem)
    events, _ = stream.take(stream.begin(seed), points[-1])
    active = np.broadcast_to(problem.active, (problem.n_policies, problem.n_states))
    learners = [ReferenceLearner(st.learner(text), problem.w0) for _ in active]
    errors, first = [], -1
    for t in range(points[-1] + 1):
        if t in points:
            w = np.stack([learner.vectors["w"] for learner in learners])
            with np.errstate(over="ignore", invalid="ignore"):
                error = problem.error(w if problem.pi.ndim == 3 else w[0])
            errors.append(float(error) if first < 0 else np.inf)
        if t == points[-1]:
            break
        for k, learner in enumerate(learners):
            row, row_next, facts = (part[events[t]] for part in stream.transitions[k])
            if active[k, stream.s[events[t]]]:
                learner.step = t
                x, x_next = problem.Phi[row], problem.Phi[row_next]
                learner.update(x, x_next, named(facts))
                vectors = np.concatenate(list(learner.vectors.values()))
                if first < 0 and not np.isfinite(vectors).all():
                    first = t + 1
    return np.array(errors), first


@pytest.mark.parametrize("text", LEARNERS)
def test_learners_skip_the_steps_in_which_their_policy_is_inactive(text: str) -> None:
    problem = st.problem("rooms")
    result = st.run(problem, [text], steps=600, seeds=[4], points=7)
    points = recording_points(600, 7).tolist()
    expected, first = reference_errors(problem, text, 4, points)
    assert first == -1
    assert expected[-1] != pytest.approx(expected[0], rel=1e-3)  # something was learned
    np.testing.assert_allclose(result.errors[0, 0], expected, rtol=1e-10)


def test_divergence_is_reported_in_steps_of_the_stream() -> None:
    problem = st.problem("high_variance_rooms")
    text = "tdc:alpha=1,ratio=256,lam=0.9"
    result = st.run(problem, [text, "td:alpha=0.01"], steps=3000, seeds=[1], points=4)
    expected, first = reference_errors(problem, text, 1, [0, 1000, 2000, 3000])
    assert 0 < first < 3000
    assert result.first_divergence[0, 0] == first
    assert result.first_divergence[1, 0] == -1
    assert np.isinf(result.errors[0, 0]).tolist() == np.isinf(expected).tolist()


def test_an_inactive_problem_does_not_depend_on_the_size_of_chunks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = st.run("rooms", LEARNERS, steps=2000, seeds=2, points=9)
    monkeypatch.setattr(sys.modules["steadytd.runs.lanes"], "CHUNK", 77)
    parts = st.run("rooms", LEARNERS, steps=2000, seeds=2, points=9)
    np.testing.assert_array_equal(whole.errors, parts.errors)
    np.testing.assert_array_equal(whole.final_weights, parts.final_weights)


def test_each_seed_of_a_family_draws_its_own_instance() -> None:
    learners = ["td:alpha=0.03", "etd:alpha=0.004,lam=0.5"]
    family = st.run("collision", learners, steps=500, seeds=[0, 7], points=6)
    for i, seed in enumerate([0, 7]):
        problem = st.problem("collision", seed=seed)
        alone = st.run(problem, learners, steps=500, seeds=[seed], points=6)
        np.testing.assert_array_equal(family.errors[:, i], alone.errors[:, 0])
    assert not np.array_equal(st.problem("collision", seed=7).Phi, st.problem("collision").Phi)
    one = st.run(st.problem("collision"), learners, steps=500, seeds=[7], points=6)
    assert not np.array_equal(one.errors[:, 0], family.errors[:, 1])


def test_auto_needs_one_instance() -> None:
    with pytest.raises(st.InputError, match=r"its own instance of collision.*seed=0"):
        st.run("collision", ["perturbed_td:alpha=0.1,eta=auto"], steps=10)


def explicit_projected_bellman_error(problem: st.Problem, policy: int, w: np.ndarray) -> float:
    """|| Pi (T v - v) ||_d with the projection written out, d over the active states."""
    m = problem.moments(policy)
    active = np.broadcast_to(problem.active, (problem.n_policies, problem.n_states))[policy]
    d = problem.d_mu * active / problem.d_mu[active].sum()
    Phi, D = problem.Phi, np.diag(d)
    projection = Phi @ np.linalg.pinv(Phi.T @ D @ Phi) @ Phi.T @ D
    v = Phi @ w
    residual = projection @ (m.r_pi + m.P_gamma @ v - v)
    return float(np.sqrt(residual @ D @ residual))


@pytest.mark.parametrize("name", ["baird", "three_state", "rooms", "random"])
def test_projected_bellman_error_is_the_norm_of_the_projected_residual(name: str) -> None:
    problem = random_problem(3, policies=2) if name == "random" else st.problem(name)
    points = recording_points(300, 4)
    setup = RunSetup(problem, points, ("projected_bellman", "value"))
    learners = [st.learner("td:alpha=0.02"), st.learner("lstd")]
    groups = grouped(lanes_of(learners, problem.n_policies), problem.n_features)
    outcome = run_seed(setup, 5, groups, threading.Event(), lambda updates: None)
    for column, number in enumerate(outcome.numbers):
        policy, w = number % problem.n_policies, outcome.weights[column]
        bellman = explicit_projected_bellman_error(problem, policy, w)
        assert outcome.errors[-1, 0, column] == pytest.approx(bellman, rel=1e-7, abs=1e-9)
        weights = problem.error_weights(policy)
        value = np.sqrt(weights @ (problem.Phi @ w - problem.targets[policy]) ** 2)
        assert outcome.errors[-1, 1, column] == pytest.approx(value, rel=1e-10)


def test_an_unknown_measure_is_named() -> None:
    with pytest.raises(st.InputError, match="did you mean 'value'"):
        goal(st.problem("baird"), 0, ["valu"])
