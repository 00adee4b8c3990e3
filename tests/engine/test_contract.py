"""The contract of every learner. A new file in `learners/` is tested here without another word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.engine.active import make_block
from steadytd.engine.block import Block, Goal
from steadytd.engine.facts import STEP_FACTS, named
from steadytd.engine.law import arguments
from steadytd.engine.learner import Learner
from steadytd.engine.reference import ReferenceLearner
from steadytd.engine.rows import dense_rows
from steadytd.engine.schedule import step_factors
from steadytd.engine.settings import Settings
from steadytd.learners import algorithm, names
from steadytd.mdp.action_values import Task
from steadytd.mdp.moments import Expectation
from steadytd.streams.finite import FiniteStream
from steadytd.theory.closed_form import SAME, MeanStep, compare
from tests.support.cases import (
    CASES,
    CLOSED,
    STEPS_OF_A_LAW,
    RandomStream,
    assert_same_bits,
    endless,
    kind_of,
    off_policy_problem,
    task_for,
    varied,
)
from tests.support.draws import examples, thinned

STEPS = 250
LONG = 9000  # steps of more than one chunk of the stream

every_case = pytest.mark.parametrize("case", CASES, ids=str)
every_law = pytest.mark.parametrize("case", STEPS_OF_A_LAW, ids=str)
every_closed_form = pytest.mark.parametrize("case", CLOSED, ids=str)
without_traces = pytest.mark.parametrize(
    "case", [case for case in STEPS_OF_A_LAW if not case.traced], ids=str
)


def closed_form(case: Learner, problem: Task) -> Expectation:
    """The law's own expectation: every registered learner states one."""
    assert case.law.expectation is not None, f"{case.name} states no closed form"
    expectation: Expectation = case.law.expectation(problem.moments(), case.values)
    return expectation


def lanes_of(case: Learner) -> list[Learner]:
    """Learners that may share a block: the case with two step sizes, if it has step sizes."""
    if "alpha" not in case.values:
        return [case]
    alpha = float(case["alpha"])
    return [case.replace(alpha=alpha * factor) for factor in (1.0, 0.01)]


def factors(case: Settings, first: int, count: int) -> Floats:
    return step_factors(first, count, *case.schedule)


def advance(block: Block, stream: RandomStream, begin: int, end: int) -> None:
    case = block.learners[0]
    block.advance(
        stream.events[begin:end],
        factors(case, begin, end - begin),
        stream.transitions,
        stream.rows,
    )


def interpreted(learner: Learner, stream: RandomStream) -> ReferenceLearner:
    """The learner after the whole stream, without the compiler."""
    reference = ReferenceLearner(learner, stream.w0)
    row, row_next, facts = stream.transitions
    for e in stream.events:
        reference.update(stream.Phi[row[e]], stream.Phi[row_next[e]], named(facts[e]))
    return reference


def test_every_learner_is_covered() -> None:
    folder = Path(st.__file__).parent / "learners"
    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert {case.name for case in CASES} == set(names()) == files


def test_every_learner_states_a_closed_form() -> None:
    """But a copy every t steps: one step of it has no mean of its own (see target_td).

    And learned step sizes: then the law says which law it adapts.
    """
    without = [case for case in STEPS_OF_A_LAW if case not in CLOSED and not case.law.adapts]
    assert [(case.name, case.values["copy"]) for case in without] == [("target_td", "hard")]
    for case in STEPS_OF_A_LAW:
        assert bool(case.law.adapts) == bool(case.law.each)
        assert not case.law.adapts or algorithm(case.law.adapts).expectation is not None


@every_closed_form
@settings(deadline=None, derandomize=True, max_examples=examples(1, 8))
@given(seed=some.integers(0, 10_000), sparse=some.booleans())
def test_mean_of_one_step_is_the_closed_form(case: Learner, seed: int, sparse: bool) -> None:
    problem = task_for(
        case, off_policy_problem(seed, states=3, actions=2, features=2, sparse=sparse)
    )
    assert compare(case, problem, seed).difference <= SAME


@pytest.mark.parametrize("case", thinned(CLOSED, 2), ids=str)
def test_fixed_point_is_where_the_mean_dynamics_end(case: Learner) -> None:
    """On that of 15 random problems on which the mean update is the most stable.

    The mean update vanishes at the solution of M y = g for every law. It also leads there from
    elsewhere, if the law is linear in all its vectors and not one that circles (see rotd).
    """

    def stability(problem: Task) -> float:
        rates = np.linalg.eigvals(closed_form(case, problem).M)
        return float(rates.real.min() / np.abs(rates).max())

    problem = max(
        (
            task_for(case, off_policy_problem(seed, states=3, actions=2, features=2))
            for seed in range(15)
        ),
        key=stability,
    )
    M, g = closed_form(case, problem)
    end: Floats = np.linalg.solve(M, g).astype(np.float64)
    step = MeanStep(case, problem)
    assert np.abs(end).max() > 0.01
    np.testing.assert_allclose(step(end), 0.0, atol=1e-10 * (np.abs(M) @ np.abs(end)).max())
    if case.law.settled or stability(problem) < 0.05:
        return
    mean, rates = step.expectation(), np.linalg.eigvals(M)
    size = rates.real.min() / np.abs(rates).max() ** 2
    y = np.ones(len(g))
    for _ in range(20_000):
        change = size * (mean.g - mean.M @ y)
        y = y + change
        if np.abs(change).max() < 1e-16:
            break
    # What is left is the last change over step times rate, at most 1e-16 / 0.05^2.
    np.testing.assert_allclose(y, end, rtol=1e-8, atol=1e-10)


def test_simulation_ends_at_the_fixed_point() -> None:
    """100 seeds with steps like 1/t: the mean of the weights within 4 of its standard errors.

    The bias left after 30,000 steps is far below those. The standard errors are at most 1.3 % of
    the largest weight, and the two fixed points of perturbed TD (its own and plain TD's) lie more
    than 50 of them apart, so the test can tell.
    """
    problem = off_policy_problem(6, states=4, actions=2, features=2)
    texts = (
        "td:alpha=0.3",
        "perturbed_td:alpha=0.3,eta=0.7",
        "perturbed_td:alpha=0.3,eta=0.7,lam=0.6,penalty=outside",
        "tdc:alpha=0.2,ratio=1,lam=0.6",
        "gtd2:alpha=0.2,ratio=1",
        "etd:alpha=0.05,lam=0.6",
        "tdc_as_published:alpha=0.3,ratio=1",
        "tdc_as_published:alpha=0.3,ratio=1,weight=pi",
    )
    learners = [st.learner(text, power=1.0, delay=300.0) for text in texts]
    found = st.run(problem, learners, steps=30_000, seeds=100, points=2)
    points, errors = [], []
    for learner in learners:
        M, g = closed_form(learner, problem)
        assert np.linalg.eigvals(M).real.min() > 0.1
        w = found.weights(learner)
        points.append(np.linalg.solve(M, g)[:2])
        errors.append(w.std(axis=0, ddof=1) / np.sqrt(len(w)))
        assert errors[-1].max() < 0.014 * np.abs(points[0]).max()
        assert (np.abs(w.mean(axis=0) - points[-1]) < 4.0 * errors[-1]).all()
    assert (np.abs(points[1] - points[0]) > 50.0 * errors[1]).any()


# Each with the random problem, of sixty, on which its mean update is the most stable.
MORE_ENDS = {
    "gtd:alpha=0.05,ratio=5": 46,
    "tdrc:alpha=0.2,ratio=1,reg=0.5": 46,
    "htd:alpha=0.2,ratio=1,lam=0.6": 46,
    "pgtd2:alpha=0.1,ratio=1": 45,
    "etd_beta:alpha=0.1,beta=0.4,lam=0.3": 45,
    "perturbed_etd:alpha=0.1,eta=0.5,beta=0.4": 45,
    "tree_backup:alpha=0.3,lam=0.6": 46,
    "vtrace:alpha=0.3,lam=0.6": 46,
    "abtd:alpha=0.3,zeta=0.5": 46,
    "cop_td:alpha=0.2,ratio=1": 46,
    "discounted_cop_td:alpha=0.2,ratio=1,g=0.5": 45,
    "gem_etd:alpha=0.1,ratio=1": 45,
}


@pytest.mark.parametrize("text", thinned(MORE_ENDS, 4))
def test_simulation_of_the_family_ends_at_the_fixed_point(text: str) -> None:
    """As above: within 4 standard errors, which are at most 3 % of the largest weight."""
    problem = off_policy_problem(MORE_ENDS[text], states=4, actions=2, features=2)
    learner = st.learner(text, power=1.0, delay=300.0)
    M, g = closed_form(learner, problem)
    assert np.linalg.eigvals(M).real.min() > 0.1
    end = np.linalg.solve(M, g)[:2]
    w = st.run(problem, learner, steps=30_000, seeds=100, points=2).weights(learner)
    error = w.std(axis=0, ddof=1) / np.sqrt(len(w))
    assert error.max() < 0.03 * np.abs(end).max()
    assert (np.abs(w.mean(axis=0) - end) < 4.0 * error).all()


@without_traces
def test_without_trace_vectors_there_is_nothing_to_decay(case: Learner) -> None:
    """The loop without trace vectors takes z for a multiple of x: the trace must not decay."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        scope: dict[str, Any] = {name: rng.random() for name in STEP_FACTS}
        scope |= {name: rng.random() for name in ("gamma", "rho_prev", "pi_prev", "mu_prev")}
        scope |= {name: rng.random() for name in (*case.law.memory, *case.law.products)}
        scope |= dict(case.values)
        for function in case.law.traces.values():
            decay, scale = function(*(scope[name] for name in arguments(function)))
            assert decay == 0.0
            assert scale > 0.0


@every_law
@pytest.mark.parametrize("schedule", [pytest.param("constant", marks=pytest.mark.slow), "decaying"])
def test_compiled_equals_interpreted(case: Learner, schedule: str) -> None:
    stream = RandomStream(seed=1, steps=STEPS)
    changes = varied(case) if schedule == "decaying" else {}
    lanes = [learner.replace(**changes) for learner in lanes_of(case)]
    block = make_block(lanes, stream.w0)
    advance(block, stream, 0, STEPS)
    assert np.isfinite(block.V).all()
    assert (block.diverged == -1).all()
    for lane, learner in enumerate(lanes):
        reference = interpreted(learner, stream)
        for i, vector in enumerate(reference.vectors.values()):
            assert not np.array_equal(vector, stream.w0 if i == 0 else np.zeros_like(vector))
            assert_same_bits(block.V[i, :, lane], vector)
        for i, (name, value) in enumerate(reference.memory.items()):
            whole = np.array(reference.younger.get(name, [value]))
            assert_same_bits(block.M[i, lane :: len(lanes)], whole)
        if learner.traced:
            for i, (name, trace) in enumerate(reference.traces.items()):
                whole = np.concatenate(reference.younger.get(name, [trace]))
                np.testing.assert_array_equal(block.Z[i, :, lane], whole)
    assert_same_bits(block.carry, np.array(list(reference.carried.values())))


@every_case
def test_chunks_do_not_matter(case: Learner) -> None:
    stream = RandomStream(seed=2, steps=STEPS)
    lanes = [learner.replace(**varied(case)) for learner in lanes_of(case)]
    whole = make_block(lanes, stream.w0)
    advance(whole, stream, 0, STEPS)
    cuts = np.random.default_rng(3).integers(0, STEPS + 1, size=12)
    for ends in (np.arange(1, STEPS + 1), np.append(np.sort(cuts), STEPS)):
        chunked = make_block(lanes, stream.w0)
        begin = 0
        for end in ends.tolist():
            advance(chunked, stream, begin, end)
            begin = end
        assert chunked.step == STEPS
        assert_same_bits(chunked.state, whole.state)


@every_case
def test_inputs_are_untouched(case: Learner) -> None:
    stream = RandomStream(seed=4, steps=STEPS)
    factor = np.array(factors(case, 0, STEPS))
    states = len(stream.Phi)
    goal = Goal(stream.rows, np.full(states, 0.5), np.ones(states), np.array([1, states]))
    points = np.array([0, 7, STEPS])
    assert goal.ends is not None
    given_arrays = (*stream.arrays, factor, points, goal.weight, goal.target, goal.ends)
    before = [array.copy() for array in given_arrays]
    frozen_factor = factors(case, 0, STEPS)
    block = make_block(lanes_of(case), stream.w0)
    block.advance(stream.events, frozen_factor, stream.transitions, stream.rows, points, goal)
    assert block.step == STEPS
    for array, copy in zip(given_arrays, before, strict=True):
        assert_same_bits(array, copy)
    assert_same_bits(frozen_factor, factor)


@without_traces
def test_idle_at_rho_zero_is_true(case: Learner) -> None:
    """With trace vectors no step is skipped, so it shows whether skipping one would change a thing.

    (Nor is one where an update writes memory.)
    """
    rng = np.random.default_rng(5)
    reference = ReferenceLearner(case, rng.normal(size=4), traced=True)
    changed = 0
    for _ in range(50):
        for name in case.law.vectors:
            reference.vectors[name] = rng.normal(size=4)
        before = {name: vector.copy() for name, vector in reference.vectors.items()}
        facts = {name: rng.random() for name in STEP_FACTS} | {"rho": 0.0, "pi": 0.0}
        reference.update(rng.normal(size=4), rng.normal(size=4), facts)
        for name, vector in before.items():
            changed += int((reference.vectors[name] != vector).sum())
    writes_memory = any(name in case.law.writes for name in case.law.memory)  # so no step is idle
    assert (changed == 0 and not writes_memory) == case.law.idle_at_rho_zero


@every_case
def test_a_run_is_the_online_learner(case: Learner) -> None:
    task = task_for(case, off_policy_problem(6))
    steps = 150
    learner = case.replace(**varied(case))
    found = st.run(task, learner, steps=steps, seeds=[11], points=2)
    stream = FiniteStream(task)
    events, _ = stream.take(stream.begin(11), steps)
    online = learner.start(task.n_features, task.w0)
    m = task.base.moments()
    s, a, t = stream.s[events], stream.a[events], stream.s_next[events]
    x, x_next = (task.table[row] for row in task.rows(s, a, t, policy=0))
    for i in range(steps):
        online.update(
            x[i],
            m.r[s[i], a[i], t[i]],
            x_next[i],
            gamma=m.gamma[s[i], a[i], t[i]],
            pi=m.pi[s[i], a[i]],
            mu=m.mu[s[i], a[i]],
            interest=m.interest[s[i]],
            peaks=m.peaks,
        )
    assert online.step == steps
    assert_same_bits(online.w, found.final_weights[0, 0, 0])
    assert not np.array_equal(online.w, task.w0)


@every_case
def test_one_compilation_serves_all(case: Learner) -> None:
    """Lanes, problems, policies, points, live streams, read-only arrays: one signature."""
    problems = off_policy_problem(7), off_policy_problem(8, policies=2), st.problem("three_state")
    for problem, points in zip(problems, (2, 20, 5), strict=True):
        st.run(task_for(case, problem), lanes_of(case), steps=60, seeds=2, points=points)
    online = case.start(2)
    gamma = 1.0 if case.law.average_reward else 0.9
    online.update([1.0, 0.0], 1.0, [0.0, 1.0], gamma=gamma, pi=0.5, mu=0.5)
    stream = RandomStream(seed=9, steps=STEPS)
    block = make_block([case], stream.w0)
    advance(block, stream, 0, STEPS)
    for array in stream.arrays:
        array.flags.writeable = False
    advance(block, stream, 0, STEPS)
    block.advance(stream.events, np.ones(STEPS), stream.transitions, dense_rows(stream.Phi))
    assert len(attribute(block.kernel.enter, "signatures")) == 1


def attribute(thing: object, name: str) -> Any:
    """An attribute that the type of `thing` does not tell of."""
    return getattr(thing, name)


def crowd_of(kinds: list[Learner]) -> list[Learner]:
    """Very many learners: the kinds in turn, then so many of the first that they fill two blocks.

    Learners without a step size have nothing to vary, so each of them is there once.
    """
    single = [kind for kind in kinds if "alpha" not in kind.values]
    kinds = [kind for kind in kinds if "alpha" in kind.values]
    turns = 600 // len(kinds) * len(kinds)
    places = [i % len(kinds) if i < turns else 0 for i in range(1000)]
    many = [kinds[place].replace(alpha=1e-6 * (i + 1)) for i, place in enumerate(places)]
    return [*many[:500], *single, *many[500:]]


class Crowd:
    """A task, learners, and their run on one thread."""

    def __init__(self, kind: str) -> None:
        kinds = [case for case in CASES if kind_of(case) == kind]
        self.task = task_for(kinds[0], off_policy_problem(10))
        self.learners = crowd_of(kinds)
        self.result = self.run(self.learners, threads=1)

    def run(self, learners: list[Learner], threads: int | None = None) -> st.Result:
        return st.run(self.task, learners, steps=LONG, seeds=[3, 4], points=7, threads=threads)


@pytest.fixture(scope="module")
def crowds() -> dict[str, Crowd]:
    return {kind: Crowd(kind) for kind in {kind_of(case) for case in CASES}}


@every_case
def test_alone_or_in_a_crowd(case: Learner, crowds: dict[str, Crowd]) -> None:
    """Two of each kind: one from the middle of a block, one from the end of the last."""
    crowd = crowds[kind_of(case)]
    alike = (case.law, case.traced)
    places = [i for i, x in enumerate(crowd.learners) if (x.law, x.traced) == alike]
    for i in {places[len(places) // 3], places[-1]}:
        alone = crowd.run([crowd.learners[i]])
        assert_same_bits(alone.final_weights[0], crowd.result.final_weights[i])
        assert_same_bits(alone.errors[0], crowd.result.errors[i])


def test_threads_and_repetition_do_not_matter(crowds: dict[str, Crowd]) -> None:
    for crowd in crowds.values():
        for threads in (1, 2):
            again = crowd.run(crowd.learners[::-1], threads)
            assert_same_bits(again.final_weights[::-1], crowd.result.final_weights)
            assert_same_bits(again.errors[::-1], crowd.result.errors)


def test_the_order_of_seeds_does_not_matter_but_seeds_do(crowds: dict[str, Crowd]) -> None:
    crowd = crowds["states"]
    some_of_them = crowd.learners[:50]
    swapped = st.run(crowd.task, some_of_them, steps=LONG, seeds=[4, 3], points=7)
    assert_same_bits(swapped.final_weights[:, ::-1], crowd.result.final_weights[:50])
    weights = crowd.result.final_weights
    assert (weights[:, 0] != weights[:, 1]).any(axis=-1).all()


def test_the_problem_is_untouched(crowds: dict[str, Crowd]) -> None:
    fresh = off_policy_problem.__wrapped__(10)  # not the one that is kept
    for kind, crowd in crowds.items():
        for name in ("P", "r", "gamma", "mu", "pi", "Phi", "w0", "start", "interest"):
            before = fresh if kind != "endless" else endless(fresh)
            assert_same_bits(attribute(crowd.task.base, name), attribute(before, name))
