"""Traces at the cost of the active features: the loop of `layouts.active` against the plain one.

All laws run without the compiler on short streams; some structures (one trace, a second vector, two
traces, a vector that shrinks) run compiled on long ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.engine import active
from steadytd.engine.active import MANY, ActiveBlock, fits, is_active, make_block
from steadytd.engine.block import Block, Goal, Transitions
from steadytd.engine.facts import fact_table
from steadytd.engine.law import Param
from steadytd.engine.learner import Learner
from steadytd.engine.rows import sparse_rows
from tests.support.cases import STEPS_OF_A_LAW, assert_same_bits
from tests.support.draws import examples
from tests.support.helpers import random_problem
from tests.support.hordes import not_compiled
from tests.support.sparse_streams import SparseStream

CLOSE = 1e-11  # largest difference to the plain loop, relative to a vector's largest entry
TRACED = [case for case in STEPS_OF_A_LAW if case.traced]
ACTIVE = [case for case in TRACED if fits(case)]
# Each is compiled; what the others have beside, all laws show without the compiler.
STRUCTURES = (
    "td:alpha=0.01",
    pytest.param("htd:alpha=0.01,ratio=2", marks=pytest.mark.slow),
    pytest.param("tdc:alpha=0.01,ratio=2", marks=pytest.mark.slow),
    pytest.param("tdrc:alpha=0.01,ratio=2,reg=0.5", marks=pytest.mark.slow),
)


def lanes_of(case: Learner, *alphas: float, lams: tuple[float, ...] = (0.9, 1.0, 0.3)) -> Any:
    """Learners of one law with several step sizes and, where it has one, several lam."""
    others = [{"lam": lam} for lam in lams] if "lam" in case.values else [{}]
    return [case.replace(alpha=a, **other) for a in alphas for other in others]


def difference(block: ActiveBlock, plain: Block) -> float:
    """The largest difference of a vector, relative to its largest entry in the lane."""
    worst = 0.0
    for name, other in zip(plain.law.vectors, plain.V, strict=True):
        scale = np.abs(other).max(axis=0)
        off = np.abs(block.vector(name) - other).max(axis=0)
        worst = max(worst, float((off / np.where(scale, scale, 1)).max()))
    return worst


def both(stream: SparseStream, lanes: list[Learner]) -> tuple[ActiveBlock, Block]:
    block, plain = ActiveBlock(lanes, stream.w0), Block(lanes, stream.w0)
    stream.feed(block), stream.feed(plain)
    assert (plain.diverged == -1).all()
    assert (block.diverged == -1).all()
    assert np.abs(plain.V[0] - stream.w0[:, None]).max(axis=0).min() > 0.0
    return block, plain


def test_every_law_with_traces_takes_this_path_but_those_that_cannot() -> None:
    """n-step TD forgets steps, which a factor cannot; the others all do."""
    assert {case.name for case in TRACED} - {case.name for case in ACTIVE} == {"nstep_td"}
    assert len(ACTIVE) > 20


@pytest.mark.parametrize("largest", [3.0, 1000.0])
@pytest.mark.parametrize("case", ACTIVE, ids=str)
def test_equals_the_plain_loop(
    case: Learner, largest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uncompiled: rho = 0 and 1000, ends, cuts, lam = gamma = 1."""
    monkeypatch.setattr(active, "kernel", not_compiled)
    stream = SparseStream(seed=1, steps=examples(150, 300), largest=largest)
    lanes = lanes_of(case, 0.01 if largest < 10 else 1e-6)
    block, plain = ActiveBlock(lanes, stream.w0), stream.feed(Block(lanes, stream.w0))
    stream.feed(block)
    assert (block.diverged == -1).all()
    assert difference(block, plain) < CLOSE
    memory = block.own.M[0, : len(plain.M), block.own.rank].T
    np.testing.assert_allclose(memory, plain.M, rtol=1e-9, atol=1e-12)
    assert_same_bits(block.carry, plain.carry)


@pytest.mark.parametrize("text", STRUCTURES)
@pytest.mark.parametrize("largest", [3.0, 1000.0])
def test_compiled_equals_the_plain_loop(text: str, largest: float) -> None:
    alphas = (0.01, 0.001) if largest < 10 else (1e-7, 1e-8)
    for seed in (1, 2):
        stream = SparseStream(seed, 9_000, d=150, active=4, largest=largest)
        assert difference(*both(stream, lanes_of(st.learner(text), *alphas))) < CLOSE


@pytest.mark.slow
@pytest.mark.parametrize("case", ACTIVE, ids=str)
def test_equals_the_plain_loop_for_long(case: Learner) -> None:
    """100,000 steps, all laws compiled, ratios up to 3 and up to 1000."""
    for seed, largest, alpha in ((1, 3.0, 0.003), (2, 1000.0, 1e-8)):
        stream = SparseStream(seed, 100_000, d=300, active=5, largest=largest)
        assert difference(*both(stream, lanes_of(case, alpha))) < CLOSE


@pytest.mark.parametrize("text", STRUCTURES)
def test_alone_is_in_a_crowd(text: str) -> None:
    """Other groups turn their rings at other steps, and one of the lanes diverges."""
    stream = SparseStream(seed=3, steps=5_000, d=150, active=4)
    lams = (0.9, 1.0, 0.3, 0.95, 0.05, 0.8, 0.99)
    lanes = [
        *lanes_of(st.learner(text), 0.01, 0.002, lams=lams),
        st.learner(text).replace(alpha=50, lam=1),
    ]
    crowd = ActiveBlock(lanes, stream.w0)
    stream.feed(crowd)
    assert crowd.first_divergence[-1] > 0
    assert (crowd.first_divergence[:-1] == -1).all()
    assert np.isnan(crowd.w[:, -1]).all()
    for i, learner in enumerate(lanes):
        alone = ActiveBlock([learner], stream.w0)
        stream.feed(alone)
        assert alone.diverged[0] == crowd.first_divergence[i]
        for v in learner.law.vectors if i < len(lanes) - 1 else ():
            assert_same_bits(alone.vector(v)[:, 0], crowd.vector(v)[:, i])


@pytest.mark.parametrize("text", STRUCTURES[:2])
def test_chunks_do_not_matter(text: str) -> None:
    stream = SparseStream(seed=4, steps=3_000, d=150, active=4)
    lanes = lanes_of(st.learner(text), 0.01)
    whole, chunked = ActiveBlock(lanes, stream.w0), ActiveBlock(lanes, stream.w0)
    stream.feed(whole)
    ends = [*np.sort(np.random.default_rng(0).integers(0, 2_700, 9)), *range(2_700, 3_001)]
    for begin, end in zip([0, *ends], ends, strict=False):
        stream.feed(chunked, int(begin), int(end))
    for name, array in whole.saved.items():
        if array.size:
            assert_same_bits(chunked.saved[name], array)


@pytest.mark.parametrize("text", STRUCTURES)
def test_divergence_is_found_at_its_step(text: str) -> None:
    """Where the plain loop leaves the finite range, or the few steps earlier in which the weights
    grow by five digits: so much larger are the numbers that are kept.
    """
    stream = SparseStream(seed=5, steps=3000, d=150, active=4)
    case = st.learner(text, lam=0.9)
    lanes = [case, *(case.replace(alpha=alpha) for alpha in (5, 20, 100))]
    block, plain = ActiveBlock(lanes, stream.w0), stream.feed(Block(lanes, stream.w0))
    stream.feed(block)
    assert (plain.diverged[1:] > 10).all()
    assert block.diverged[0] == plain.diverged[0] == -1
    assert np.abs(plain.diverged - block.diverged).max() <= 5


@pytest.mark.slow
@pytest.mark.parametrize("pull", [2e-3, 0.3, 1.0, 2.5])
def test_a_vector_that_shrinks(pull: float) -> None:
    """w <- (1 - pull) w + ...: far beyond the range of numbers, to 0 at once, changing its sign."""
    stream = SparseStream(seed=6, steps=3000, d=150, active=4)
    ridge = st.learner("ridge_td", alpha=0.01, ridge=min(pull, 1.5) * 100, lam=0.9)
    assert difference(*both(stream, [ridge, ridge.replace(lam=0.3)])) < CLOSE


def test_errors_are_those_of_the_plain_loop() -> None:
    stream = SparseStream(seed=7, steps=1500, d=150, active=4)
    n = len(stream.rows.first)
    rng = np.random.default_rng(0)
    goal = Goal(stream.rows, rng.random(n), rng.normal(size=n), np.array([n // 2, n]))
    points = np.array([0, 1, 700, 1500])
    lanes = lanes_of(st.learner("td:alpha=0.01"), 0.01, 0.002)
    found = [
        block.advance(stream.events, np.ones(1500), stream.transitions, stream.rows, points, goal)
        for block in (ActiveBlock(lanes, stream.w0), Block(lanes, stream.w0))
    ]
    assert found[0].shape == (4, 2, 6)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-11)


def test_features_that_come_back_while_their_row_is_settled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All features are listed, some die away in a sweep, and they are active before it ends."""
    monkeypatch.setattr(active, "kernel", not_compiled)
    d = 20
    rows = sparse_rows(np.eye(d))
    facts = fact_table(reward=1.0, gamma_next=1.0, rho=1.0, pi=1.0, mu=1.0, peak_min=1.0,
                       peak_max=1.0)  # fmt: skip
    order = np.random.default_rng(0).integers(d, size=2_000).astype(np.int32)
    lanes = [st.learner("td:alpha=0.1", lam=lam) for lam in (0.2, 0.6)]
    blocks = [kind(lanes, np.zeros(d)) for kind in (ActiveBlock, Block)]
    for block in blocks:
        for t in range(len(order) - 1):
            steps = Transitions(order[t : t + 1], order[t + 1 : t + 2], facts)
            block.advance(np.zeros(1, dtype=np.int32), np.ones(1), steps, rows)
    assert difference(*blocks) < CLOSE  # type: ignore[arg-type]


def large_problem(seed: int = 1) -> st.Problem:
    return random_problem(seed, features=MANY)


def test_the_path_is_a_matter_of_the_number_of_features() -> None:
    td = st.learner("td:alpha=0.01,lam=0.9")
    w0: Floats = np.zeros(MANY)
    assert isinstance(make_block([td], w0), ActiveBlock)
    assert not isinstance(make_block([td], w0[1:]), ActiveBlock)
    for other in (td.replace(lam=0.0), td.replace(average=1), st.learner("nstep_td:alpha=1,n=3")):
        assert not is_active(other, MANY)
        assert not isinstance(make_block([other], w0), ActiveBlock)


def test_threads_and_neighbours_do_not_matter() -> None:
    problem = large_problem()
    lanes = [st.learner("td", alpha=1e-4 * a, lam=lam) for a in range(1, 30) for lam in (0.5, 0.9)]
    one = st.run(problem, lanes, steps=600, seeds=2, points=3, threads=1)
    two = st.run(problem, lanes, steps=600, seeds=2, points=3, threads=2)
    assert_same_bits(one.final_weights, two.final_weights)
    assert_same_bits(one.errors, two.errors)
    for i in (0, 31, 57):
        alone = st.run(problem, lanes[i], steps=600, seeds=2, points=3)
        assert_same_bits(alone.final_weights[0], one.final_weights[i])


def test_a_saved_learner_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    stream = SparseStream(seed=8, steps=60, d=MANY, active=4)
    learner = st.learner("td:alpha=0.01,lam=0.9")
    whole, half = learner.start(MANY, stream.w0), learner.start(MANY, stream.w0)
    for begin, end, online in ((0, 60, whole), (0, 25, half)):
        stream.feed(online.block, begin, end)
    read = st.load_learner(half.save(tmp_path / "half.npz"))
    stream.feed(read.block, 25, 60)
    assert_same_bits(read.w, whole.w)
    assert read.step == 60


def test_multiples_that_all_learners_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """An update of facts alone is computed once; each lane divides it by its own factor."""

    @st.law(
        writes={"w": ("z", "w")}, params={"lam": Param("trace decay", 0.0, low=0.0, high=1.0)},
        traces={"z": lambda rho, gamma, lam: (rho * gamma * lam, rho)},
    )  # fmt: skip
    def shared(reward: float, rho: float) -> tuple[float, float]:
        return 0.01 * reward, -0.001 * rho

    monkeypatch.setattr(active, "kernel", not_compiled)
    stream = SparseStream(seed=3, steps=150)
    lanes = [st.learner(shared, alpha=0.1, lam=lam) for lam in (0.3, 0.6, 0.9)]
    block, plain = ActiveBlock(lanes, stream.w0), stream.feed(Block(lanes, stream.w0))
    stream.feed(block)
    assert difference(block, plain) < CLOSE
