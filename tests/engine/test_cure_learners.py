"""The learners behind the cures: their copies, their windows, and how often they move."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import steadytd as st
from steadytd.base.errors import InputError
from steadytd.engine.block import Block
from steadytd.engine.facts import fact_table, named
from steadytd.engine.law import LAM, Param, Window, law
from steadytd.engine.learner import Learner
from steadytd.engine.reference import ReferenceLearner
from steadytd.learners import algorithm
from steadytd.theory.variance import variance
from tests.support.cases import RandomStream, assert_same_bits

STEPS = 300
ALPHA = 0.03


@pytest.fixture(scope="module")
def stream() -> RandomStream:
    """All interests are 1; episodes are seldom longer than 30 steps."""
    made = RandomStream(seed=20, steps=STEPS)
    made.transitions.facts[:, 6] = 1.0
    return made


def test_per_etd_uses_truncated_etds_emphasis(stream: RandomStream) -> None:
    per, truncated = (
        Block([st.learner(text, alpha=1e-9)], stream.w0)
        for text in ("per_etd:b=5", "truncated_etd:n=4")
    )
    for t in range(STEPS):
        for block in (per, truncated):
            block.advance(stream.events[t : t + 1], np.ones(1), stream.transitions, stream.rows)
        if t % 5 == 4:
            assert per.M[1, 0] == pytest.approx(truncated.M[0, 0], rel=1e-12)


def test_a_hard_copy_is_exact(stream: RandomStream) -> None:
    """After a step that copies, v is what w was before it, bit for bit."""
    block = Block([st.learner("target_td:copy=hard,t=7", alpha=ALPHA)], stream.w0)
    for t in range(100):
        before = block.V[0].copy()
        old = block.V[1].copy()
        block.advance(stream.events[t : t + 1], np.ones(1), stream.transitions, stream.rows)
        assert_same_bits(block.V[1], before if t % 7 == 0 else old)


def test_a_slow_copy_starts_at_the_weights(stream: RandomStream) -> None:
    block = Block([st.learner("target_td", alpha=ALPHA)], stream.w0)
    assert_same_bits(block.V[1, :, 0], stream.w0)


def test_lanes_of_different_windows_do_not_share_a_block() -> None:
    problem = st.problem("three_state")
    learners: list[Learner] = [st.learner(f"nstep_td:alpha=0.01,n={n}") for n in (1, 2, 5, 2)]
    learners[3] = learners[3].replace(alpha=0.02)
    together = st.run(problem, learners, steps=200, seeds=1, points=2)
    for i, one in enumerate(learners):
        alone = st.run(problem, one, steps=200, seeds=1, points=2)
        assert_same_bits(together.final_weights[i], alone.final_weights[0])


def test_a_window_is_saved(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    steps = [(rng.normal(size=3), rng.normal(), rng.normal(size=3)) for _ in range(12)]
    for text in ("nstep_td:alpha=0.1,n=4", "truncated_etd:alpha=0.1,n=3"):
        whole, half = (st.learner(text).start(n_features=3) for _ in range(2))
        for x, r, x_next in steps:
            whole.update(x, r, x_next, rho=1.3, gamma=0.9)
        for x, r, x_next in steps[:6]:
            half.update(x, r, x_next, rho=1.3, gamma=0.9)
        loaded = st.load_learner(half.save(tmp_path / "half.npz"))
        for x, r, x_next in steps[6:]:
            loaded.update(x, r, x_next, rho=1.3, gamma=0.9)
        assert_same_bits(loaded.w, whole.w)


def whole_trace(rho: float, gamma: float) -> tuple[float, float]:
    return rho * gamma, rho


@pytest.mark.parametrize("param", [LAM, Param("steps", default=0.0, low=0.0, whole=True)])
def test_a_window_is_a_whole_number_from_one_on(param: Param) -> None:
    with pytest.raises(
        InputError, match="the window of z must be a whole hyper-parameter, at least 1"
    ):

        @law(params={"n": param}, traces={"z": whole_trace}, windows={"z": Window("n")},
             writes={"w": "z"})  # fmt: skip
        def own(reward: float, alpha: float) -> float:
            return alpha * reward


@pytest.mark.parametrize("every", ["n", "k"])
def test_every_names_a_whole_number_from_one_on(every: str) -> None:
    with pytest.raises(InputError, match="every must name a hyper-parameter that is a whole"):

        @law(params={"n": Param("steps", low=0.0, whole=True)}, every=every, writes={"w": "x"})
        def own(reward: float, alpha: float) -> float:
            return alpha * reward


def test_laws_move_as_often_as_they_say() -> None:
    """In the first step, or in the last of every so many."""
    rng, seldom = np.random.default_rng(0), set()
    for name in st.learners():
        given = {k: 0.5 for k, p in algorithm(name).params.items() if p.default is None}
        learner = st.learner(name, **given) if "alpha" not in algorithm(name).all_params else (
            st.learner(name, alpha=0.1, **given))  # fmt: skip
        if learner.law.block is not None or not learner.law.of_discounted_states:
            continue
        one, moved = ReferenceLearner(learner, np.ones(3)), []
        for _ in range(2 * learner.every):
            (row,) = fact_table(reward=1.0, gamma_next=0.9, rho=1.3, pi=0.65, mu=0.5, peak_min=0.6,
                                peak_max=0.7)  # fmt: skip
            before = {vector: value.copy() for vector, value in one.vectors.items()}
            one.update(rng.normal(size=3), rng.normal(size=3), named(row))
            moved.append(any((one.vectors[v] != before[v]).any() for v in before))
        assert moved == 2 * [*[False] * (learner.every - 1), True], name
        seldom |= {name} if learner.every > 1 else set()
    assert seldom == {"per_etd"}


def test_a_window_of_something_unknown() -> None:
    with pytest.raises(InputError, match="unknown trace or memory in windows of law own: 'y'"):

        @law(params={"n": Param("n", low=1.0, whole=True)}, traces={"z": whole_trace},
             windows={"y": Window("n")}, writes={"w": "z"})  # fmt: skip
        def own(reward: float, alpha: float) -> float:
            return alpha * reward


@pytest.mark.parametrize("text", ["truncated_etd:n=9", "per_etd:b=9", "nstep_td:n=9"])
def test_what_forgets_has_a_finite_variance(text: str) -> None:
    """ETD's and TD(1)'s have not, on the same problem."""
    problem = st.problem("baird")
    assert variance(problem, st.learner(text, alpha=1e-3)).finite
    assert not variance(problem, st.learner("etd", alpha=1e-3)).finite
