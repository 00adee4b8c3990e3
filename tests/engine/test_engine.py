"""The engine's promises: divergence, errors, feature tables, recording points, your own laws."""

from __future__ import annotations

import numpy as np
import pytest

import steadytd as st
from steadytd.base.arrays import Floats, Longs
from steadytd.engine.block import SEGMENT, Block, Goal
from steadytd.engine.facts import named
from steadytd.engine.law import LAM, accumulating_trace
from steadytd.engine.learner import Learner
from steadytd.engine.reference import ReferenceLearner
from steadytd.engine.rows import Rows, dense_rows, sparse_rows
from steadytd.engine.schedule import step_factors
from steadytd.streams.finite import FiniteStream
from tests.support.cases import RandomStream, assert_same_bits, example, off_policy_problem

STEPS = SEGMENT + 1000  # so that a check for divergence falls between


def goal_of(stream: RandomStream, rows: Rows | None = None) -> Goal:
    rng = np.random.default_rng(30)
    n = len(stream.Phi)
    return Goal(rows or stream.rows, rng.dirichlet(np.ones(n)), rng.normal(size=n))


def error_of(goal: Goal, stream: RandomStream, w: Floats) -> float:
    """sqrt(sum weight (Phi w - target)^2), scaled so that no square overflows."""
    difference = stream.Phi @ w - goal.target
    scale = float(np.abs(difference).max())
    return scale * float(np.sqrt(goal.weight @ (difference / scale) ** 2))


def weights_by_step(learner: Learner, stream: RandomStream) -> Floats:
    """All vectors of the learner, interpreted, after 0, 1, ... steps: [step, vector, feature]."""
    reference = ReferenceLearner(learner, stream.w0)
    row, row_next, facts = stream.transitions
    history = [np.stack(list(reference.vectors.values()))]
    for e in stream.events:
        reference.update(stream.Phi[row[e]], stream.Phi[row_next[e]], named(facts[e]))
        history.append(np.stack(list(reference.vectors.values())))
    return np.stack(history)


def all_steps(block: Block, stream: RandomStream, points: Longs, goal: Goal) -> Floats:
    first = block.learners[0]
    factor = step_factors(0, len(stream.events), float(first["power"]), float(first["delay"]))
    return block.advance(stream.events, factor, stream.transitions, stream.rows, points, goal)


class TestDivergence:
    """Step sizes far too large, beside lanes that stay finite."""

    ALPHAS = (0.01, 30.0, 0.02, 300.0, 100.0)

    @pytest.mark.parametrize("name", ["td", "tdc"])
    @pytest.mark.parametrize("lam", [0.0, 0.6])
    def test_the_first_step_that_is_not_finite(self, name: str, lam: float) -> None:
        stream = RandomStream(seed=31, steps=400)
        goal = goal_of(stream)
        lanes = [st.learner(name, alpha=alpha, lam=lam) for alpha in self.ALPHAS]
        block = Block(lanes, stream.w0)
        points = np.arange(401)
        errors = all_steps(block, stream, points, goal)
        firsts = []
        for lane, learner in enumerate(lanes):
            history = weights_by_step(learner, stream)
            finite = np.isfinite(history).all(axis=(1, 2))
            first = -1 if finite.all() else int(np.argmin(finite))
            firsts.append(first)
            assert block.diverged[lane] == first
            assert not np.isnan(errors[:, lane]).any()
            if first >= 0:
                assert np.isinf(errors[first:, lane]).all()
            alone = Block([learner], stream.w0)
            assert_same_bits(all_steps(alone, stream, points, goal)[:, 0], errors[:, lane])
            assert alone.diverged[0] == first
            if first < 0:  # which NaN it is does not matter
                assert_same_bits(alone.V[..., 0], block.V[..., lane])
                assert_same_bits(history[-1], block.V[..., lane])
        assert firsts[0] == firsts[2] == -1
        gone = [first for first in firsts if first > 0]
        assert len(set(gone)) == 3

    def test_points_do_not_change_what_is_found(self) -> None:
        """The step is found by going back to the last stop, wherever the stops are."""
        stream = RandomStream(seed=31, steps=STEPS)
        lanes = [st.learner("td", alpha=alpha) for alpha in (*self.ALPHAS, 3.0)]
        found = []
        for points in (np.arange(STEPS + 1), np.array([], dtype=np.int64), np.array([5, STEPS])):
            block = Block(lanes, stream.w0)
            all_steps(block, stream, points, goal_of(stream))
            found.append(block.diverged.tolist())
            assert np.isfinite(block.V[..., [0, 2]]).all()
        assert found[0] == found[1] == found[2]
        assert sum(0 < first < SEGMENT for first in found[0]) == 3
        assert max(found[0]) > SEGMENT

    @pytest.mark.parametrize("chunk", [1, 7, 400])
    def test_chunks_do_not_change_what_is_found(self, chunk: int) -> None:
        stream = RandomStream(seed=31, steps=STEPS)
        lanes = [st.learner("td", alpha=alpha) for alpha in (*self.ALPHAS, 3.0)]
        whole, chunked = Block(lanes, stream.w0), Block(lanes, stream.w0)
        all_steps(whole, stream, np.array([0]), goal_of(stream))
        for begin in range(0, STEPS, chunk):
            events = stream.events[begin : begin + chunk]
            chunked.advance(events, np.ones(len(events)), stream.transitions, stream.rows)
        assert chunked.diverged.tolist() == whole.diverged.tolist()
        assert max(whole.diverged) > SEGMENT
        assert_same_bits(chunked.V[..., [0, 2]], whole.V[..., [0, 2]])

    def test_a_run_reports_it(self) -> None:
        """Result: infinite from the point of divergence on, and the other learners as if alone."""
        problem = off_policy_problem(32)
        wild, tame = st.learner("td:alpha=40"), st.learner("td:alpha=0.01")
        both = st.run(problem, [wild, tame], steps=3000, seeds=3, points=101)
        assert (both.first_divergence[0] > 0).all()
        assert (both.first_divergence[1] == -1).all()
        for seed in range(3):
            gone = both.steps >= both.first_divergence[0, seed]
            assert gone.any()
            assert not gone.all()
            assert np.isinf(both.errors[0, seed, gone]).all()
            assert not np.isnan(both.errors[0, seed]).any()
        alone = st.run(problem, tame, steps=3000, seeds=3, points=101)
        assert_same_bits(alone.errors[0], both.errors[1])
        assert both.summary["diverged"].to_list() == [3, 0]


class TestStepSizes:
    """alpha_t = alpha / (1 + t/delay)^power, t the number of updates made before."""

    def test_follow_their_formula(self) -> None:
        """One feature, no discount: w += alpha_t (r - w), in a few roundings a step."""
        alpha, power, delay = 0.5, 0.7, 3.0
        online = st.learner("td", alpha=alpha, power=power, delay=delay).start(1)
        w = 0.0
        for t in range(50):
            online.update([1.0], 1.0 + t % 3, [0.0], rho=1.0, gamma=0.0)
            w += alpha / (1 + t / delay) ** power * (1.0 + t % 3 - w)
            np.testing.assert_allclose(online.w, w, rtol=1e-13)

    def test_go_on_from_chunk_to_chunk(self) -> None:
        """A run of several chunks of the stream is one block that takes all steps at once."""
        problem, steps = off_policy_problem(44), 20_000
        learner = st.learner("etd:alpha=0.01,lam=0.3,power=0.8,delay=100")
        found = st.run(problem, learner, steps=steps, seeds=[9], points=2)
        stream = FiniteStream(problem)
        events, _ = stream.take(stream.begin(9), steps)
        block = Block([learner], problem.w0)
        factor = step_factors(0, steps, 0.8, 100.0)
        block.advance(events, factor, stream.transitions[0], sparse_rows(problem.Phi))
        assert_same_bits(block.V[0, :, 0], found.final_weights[0, 0, 0])


class TestAverage:
    """average=1: what is shown and measured is the mean of the weights after every step so far."""

    @pytest.mark.parametrize("lam", [0.0, 0.6])
    def test_is_the_mean_of_the_history(self, lam: float) -> None:
        stream = RandomStream(seed=45, steps=300)
        goal = goal_of(stream)
        last = st.learner("td", alpha=0.02, lam=lam)
        block = Block([last.replace(average=1, alpha=0.01), last.replace(average=1)], stream.w0)
        points = np.array([0, 1, 150, 300])
        errors = all_steps(block, stream, points, goal)
        history = weights_by_step(last, stream)[:, 0]
        assert_same_bits(block.V[0, :, 1], history[-1])
        means = [history[1 : n + 1].mean(axis=0) if n else stream.w0 for n in points]
        # a running mean of 300 numbers, a rounding or two each
        np.testing.assert_allclose(block.reported[:, 1], means[-1], rtol=1e-12, atol=1e-13)
        expected = [error_of(goal, stream, mean) for mean in means]
        np.testing.assert_allclose(errors[:, 1], expected, rtol=1e-11)

    def test_of_a_run_and_of_the_interpreter(self) -> None:
        problem, learner = off_policy_problem(46), st.learner("td:alpha=0.01,lam=0.6,average=1")
        found = st.run(problem, learner, steps=200, seeds=[1], points=2)
        stream = FiniteStream(problem)
        events, _ = stream.take(stream.begin(1), 200)
        reference = ReferenceLearner(learner, problem.w0)
        for e in events:
            facts = named(stream.transitions[0].facts[e])
            reference.update(problem.Phi[stream.s[e]], problem.Phi[stream.s_next[e]], facts)
        assert_same_bits(found.final_weights[0, 0, 0], reference.average)


class TestErrors:
    """The error that the kernel measures."""

    @pytest.mark.parametrize("scale", [1.0, 1e139, 1e141, 1e200, 1e300, 1e-200])
    def test_equals_the_problem_s_error(self, scale: float) -> None:
        """Relative 1e-12: a sum over five states of squares, whose order of summation differs."""
        problem = off_policy_problem(33)
        rng = np.random.default_rng(34)
        learner = st.learner("td:alpha=0.1")
        values = problem.v_pi if problem.v_pi.ndim == 1 else problem.v_pi[0]
        goal = Goal(sparse_rows(problem.Phi), problem.error_weights(), values)
        for _ in range(5):
            w = scale * rng.normal(size=problem.n_features)
            block = Block([learner, learner.replace(alpha=0.2)], w)
            errors = block.advance(
                np.zeros(0, np.int32),
                np.ones(0),
                RandomStream(seed=34, steps=1).transitions,
                goal.rows,
                np.array([0]),
                goal,
            )
            assert errors.shape == (1, 2)
            np.testing.assert_allclose(errors[0], problem.error(w), rtol=1e-12)

    def test_in_a_run(self) -> None:
        problem = off_policy_problem(35, policies=2)
        learners = [st.learner("td:alpha=0.02"), st.learner("etd:alpha=0.005,lam=0.5")]
        found = st.run(problem, learners, steps=500, seeds=2, points=3)
        for i in range(2):
            expected = problem.error(found.final_weights[i])
            np.testing.assert_allclose(found.errors[i, :, -1], expected, rtol=1e-12)
            start = problem.error(np.stack([problem.w0, problem.w0]))
            np.testing.assert_allclose(found.errors[i, :, 0], start, rtol=1e-12)

    def test_an_overflowing_value_is_infinite_not_nan(self) -> None:
        """Finite weights whose values w.x overflow, with either sign: the error is beyond range."""
        stream = RandomStream(seed=36, steps=1)
        rows = sparse_rows(np.array([[2.0, 2.0], [2.0, 0.0]]))
        goal = Goal(rows, np.array([0.5, 0.5]), np.zeros(2))
        for w0 in ([1.7e308, 1.7e308], [1.7e308, -1.7e308], [1.0, 1.7e308]):
            block = Block([st.learner("td:alpha=0.1")], np.array(w0))
            errors = block.advance(
                np.zeros(0, np.int32), np.ones(0), stream.transitions, rows, np.array([0]), goal
            )
            assert np.isposinf(errors).all()
            assert block.diverged[0] == -1

    def test_states_without_weight_do_not_count(self) -> None:
        stream = RandomStream(seed=37, steps=1)
        goal = goal_of(stream)
        weight = goal.weight.copy()
        weight[2] = 0.0
        target = goal.target.copy()
        target[2] = np.inf
        block = Block([st.learner("td:alpha=0.1")], stream.w0)
        errors = block.advance(
            stream.events[:0], np.ones(0), stream.transitions, stream.rows, np.array([0]),
            Goal(goal.rows, weight, target),
        )  # fmt: skip
        kept = weight > 0.0
        expected = np.sqrt(weight[kept] @ (stream.Phi @ stream.w0 - target)[kept] ** 2)
        np.testing.assert_allclose(errors, expected, rtol=1e-12)


class TestTables:
    """Dense and sparse feature tables."""

    @pytest.mark.parametrize("text", ["td:alpha=0.02", "tdc:alpha=0.02,lam=0.6"])
    def test_dense_equals_sparse(self, text: str) -> None:
        """The entries that only a dense table has are zeros: adding them changes no bit."""
        stream = RandomStream(seed=38, steps=300)
        assert (stream.Phi == 0.0).any()
        results = []
        for rows in (sparse_rows(stream.Phi), dense_rows(stream.Phi)):
            block = Block([st.learner(text)], stream.w0)
            goal = goal_of(stream, rows)
            points = np.array([0, 100, 300])
            errors = block.advance(
                stream.events, np.ones(300), stream.transitions, rows, points, goal
            )
            results.append((block.V, errors))
        assert_same_bits(results[0][0], results[1][0])
        assert_same_bits(results[0][1], results[1][1])

    def test_a_row_without_features(self) -> None:
        """Its value is 0 whatever the weights, and nothing is learned in it."""
        Phi = np.array([[0.0, 0.0], [1.0, 2.0]])
        learner = st.learner("td:alpha=0.1")
        online = learner.start(2, [1.0, 1.0])
        assert online.update(Phi[0], 5.0, Phi[1], rho=1.0, gamma=0.5) == 5.0 + 0.5 * 3.0
        assert online.w.tolist() == [1.0, 1.0]
        assert online.update(Phi[1], 5.0, Phi[0], rho=1.0, gamma=0.5) == 5.0 - 3.0
        np.testing.assert_allclose(online.w, [1.2, 1.4], rtol=1e-15)


class TestPoints:
    """Errors are those after so many updates."""

    def test_first_last_and_between(self) -> None:
        stream = RandomStream(seed=39, steps=STEPS)
        goal = goal_of(stream)
        learner = st.learner("perturbed_td:alpha=0.02,eta=0.7,lam=0.6")
        history = weights_by_step(learner, stream)[:, 0]
        points = np.array([0, 1, 2, 17, SEGMENT - 1, SEGMENT, SEGMENT + 1, STEPS - 1, STEPS])
        errors = all_steps(Block([learner], stream.w0), stream, points, goal)
        expected = [error_of(goal, stream, history[point]) for point in points]
        assert len(set(expected)) > 6
        np.testing.assert_allclose(errors[:, 0], expected, rtol=1e-12)

    def test_in_a_run(self) -> None:
        """Across the chunks of a stream, a longer run's points agree with shorter runs' ends."""
        problem, learner = off_policy_problem(40), st.learner("td:alpha=0.001")
        whole = st.run(problem, learner, steps=20_000, points=5)
        assert whole.steps.tolist() == [0, 5000, 10_000, 15_000, 20_000]
        for i, steps in enumerate(whole.steps.tolist()[1:], start=1):
            part = st.run(problem, learner, steps=steps, points=2)
            assert part.errors[0, 0, -1] == whole.errors[0, 0, i]
        assert len(set(whole.errors[0, 0].tolist())) == 5


class TestSeveralPolicies:
    """Each target policy is a lane of its own on the one stream."""

    def test_equal_one_problem_each(self) -> None:
        """The same stream, so bit for bit; the error is the mean over the policies."""
        both = off_policy_problem(41, policies=2)
        learners = [example(st.learner(name, alpha=1).law) for name in ("td", "etd", "tdc")]
        learners += [learner.replace(lam=0.5) for learner in learners]
        found = st.run(both, learners, steps=500, seeds=2, points=4)
        gamma = np.asarray(both.gamma)
        singles = [
            st.run(
                st.Problem(
                    name=f"policy_{k}", P=both.P, r=both.r[k], gamma=gamma[k], mu=both.mu,
                    pi=both.pi[k], Phi=both.Phi, w0=both.w0, start=both.start,
                    interest=both.interest[k],
                ),
                learners, steps=500, seeds=2, points=4,
            )
            for k in range(2)
        ]  # fmt: skip
        for k, single in enumerate(singles):
            assert_same_bits(found.final_weights[:, :, k], single.final_weights[:, :, 0])
        assert (found.final_weights[:, :, 0] != found.final_weights[:, :, 1]).all()
        mean = (singles[0].errors + singles[1].errors) / 2
        np.testing.assert_allclose(found.errors, mean, rtol=1e-14)


def discounted_count(gamma: float, rho_prev: float, count: float, interest: float) -> float:
    """A memory: count <- gamma min(rho_prev, 1) count + interest."""
    return gamma * min(rho_prev, 1.0) * count + interest


def plain_trace(gamma: float, lam: float) -> tuple[float, float]:
    """z_b <- gamma lam z_b + x."""
    return gamma * lam, 1.0


@st.law(
    params={"lam": LAM, "pull": st.Param("how fast the vectors meet", default=0.05, low=0.0)},
    memory={"count": discounted_count},
    traces={"z": accumulating_trace, "zb": plain_trace},
    writes={"w": ("z", "w", "h"), "h": ("x", "zb", "x_next", "w", "h")},
)
def entangled(
    reward: float, gamma_next: float, rho: float, count: float, w_x: float, w_x_next: float,
    h_zb: float, alpha: float, pull: float,
) -> tuple[tuple[float, float, float], tuple[float, float, float, float, float]]:  # fmt: skip
    """Two vectors that write to each other and to themselves, two traces and a memory."""
    delta = reward + gamma_next * w_x_next - w_x
    w = alpha * delta, -pull, pull
    h = alpha * rho * count, alpha * (delta - h_zb), -0.1 * alpha * gamma_next, pull, -2 * pull
    return w, h


# Registered laws run without traces, too; this one takes seconds to compile each way.
own_lams = pytest.mark.parametrize("lam", [pytest.param(0.0, marks=pytest.mark.slow), 0.7])


class TestOwnLaw:
    """A law that is not in the library."""

    @own_lams
    def test_equals_the_interpreter(self, lam: float) -> None:
        stream = RandomStream(seed=42, steps=200)
        learner = st.learner(entangled, alpha=0.02, lam=lam)
        block = Block([learner], stream.w0)
        all_steps(block, stream, np.array([0]), goal_of(stream))
        history = weights_by_step(learner, stream)
        assert np.abs(history[-1]).max() < 1e3
        assert_same_bits(block.V[..., 0], history[-1])

    @own_lams
    def test_equals_its_equations(self, lam: float) -> None:
        """Written out here: every right-hand side has the old vectors."""
        stream = RandomStream(seed=42, steps=200)
        alpha, pull = 0.02, 0.05
        w, h = stream.w0, np.zeros_like(stream.w0)
        z, zb, count, gamma, rho_prev = 0.0 * w, 0.0 * w, 0.0, 0.0, 0.0
        for e in stream.events:
            x = stream.Phi[stream.transitions.row[e]]
            x_next = stream.Phi[stream.transitions.row_next[e]]
            facts = named(stream.transitions.facts[e])
            reward, gamma_next, rho = facts["reward"], facts["gamma_next"], facts["rho"]
            count = gamma * min(rho_prev, 1.0) * count + facts["interest"]
            z, zb = rho * (gamma * lam * z + x), gamma * lam * zb + x
            delta = reward + gamma_next * w @ x_next - w @ x
            w, h = (
                w + alpha * delta * z - pull * w + pull * h,
                h + alpha * rho * count * x + alpha * (delta - h @ zb) * zb
                - 0.1 * alpha * gamma_next * x_next + pull * w - 2 * pull * h,
            )  # fmt: skip
            gamma, rho_prev = facts["gamma_carried"], rho
        block = Block([st.learner(entangled, alpha=alpha, lam=lam)], stream.w0)
        all_steps(block, stream, np.array([0]), goal_of(stream))
        # 200 steps of some twenty roundings each; the pull forgets them
        np.testing.assert_allclose(block.V[0, :, 0], w, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(block.V[1, :, 0], h, rtol=1e-10, atol=1e-12)

    def test_runs_beside_registered_ones(self) -> None:
        problem = off_policy_problem(43)
        own, td = st.learner(entangled, alpha=0.02, lam=0.7), st.learner("td:alpha=0.02")
        both = st.run(problem, [own, td], steps=300, seeds=2, points=3)
        for i, learner in enumerate((own, td)):
            alone = st.run(problem, learner, steps=300, seeds=2, points=3)
            assert_same_bits(alone.final_weights[0], both.final_weights[i])
        assert both.summary["learner"].to_list() == [
            "entangled:alpha=0.02,lam=0.7",
            "td:alpha=0.02",
        ]
