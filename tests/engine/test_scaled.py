"""Traces at the cost of the active features: the scaled loop against the plain one.

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
from steadytd.engine import scaled_block
from steadytd.engine.block import Block, Goal
from steadytd.engine.choose import make_block
from steadytd.engine.law import Param
from steadytd.engine.learner import Learner
from steadytd.engine.scaled_block import MANY, ScaledBlock, active_program, is_scaled
from steadytd.engine.step.program import only_active
from steadytd.engine.step.state import EPOCH
from tests.support.cases import STEPS_OF_A_LAW, assert_same_bits
from tests.support.draws import examples
from tests.support.helpers import random_problem
from tests.support.sparse_streams import SparseStream, without_compiler

CLOSE = 1e-11  # largest difference to the plain loop, relative to a vector's largest entry
TRACED = [case for case in STEPS_OF_A_LAW if case.traced]
SCALED = [case for case in TRACED if only_active(case.law)]
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


def difference(scaled: ScaledBlock, plain: Block) -> float:
    """The largest difference of a vector or trace, relative to its largest entry in the lane."""
    found = [scaled.vector(i) for i in range(len(plain.V))]
    found += [scaled.trace(i) for i in range(len(plain.Z))]
    worst = 0.0
    for one, other in zip(found, (*plain.V, *plain.Z), strict=True):
        scale = np.abs(other).max(axis=0)
        worst = max(
            worst, float((np.abs(one - other).max(axis=0) / np.where(scale, scale, 1)).max())
        )
    return worst


def both(stream: SparseStream, lanes: list[Learner]) -> tuple[ScaledBlock, Block]:
    scaled, plain = ScaledBlock(lanes, stream.w0), Block(lanes, stream.w0)
    stream.feed(scaled), stream.feed(plain)
    assert (plain.diverged == -1).all()
    assert (scaled.diverged == -1).all()
    assert np.abs(plain.V[0] - stream.w0[:, None]).max(axis=0).min() > 0.0
    return scaled, plain


def test_every_law_with_traces_is_scaled_but_those_that_cannot_be() -> None:
    """n-step TD forgets steps, which a factor cannot; the others are all scaled."""
    assert {case.name for case in TRACED} - {case.name for case in SCALED} == {"nstep_td"}
    assert len(SCALED) > 20


@pytest.mark.parametrize("largest", [3.0, 1000.0])
@pytest.mark.parametrize("case", SCALED, ids=str)
def test_equals_the_plain_loop(
    case: Learner, largest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uncompiled, settled every 64 steps: rho = 0 and 1000, ends, cuts, lam = gamma = 1."""
    monkeypatch.setattr(scaled_block, "EPOCH", 64)
    stream = SparseStream(seed=1, steps=examples(150, 300), largest=largest)
    lanes = lanes_of(case, 0.01 if largest < 10 else 1e-6)
    scaled, plain = ScaledBlock(lanes, stream.w0), stream.feed(Block(lanes, stream.w0))
    scaled.kernel = without_compiler(case.law)
    stream.feed(scaled)
    assert (scaled.diverged == -1).all()
    assert scaled.counts[0] > 1
    assert difference(scaled, plain) < CLOSE
    np.testing.assert_allclose(scaled.M, plain.M, rtol=1e-9, atol=1e-12)
    assert_same_bits(scaled.carry, plain.carry)


@pytest.mark.parametrize("text", STRUCTURES)
@pytest.mark.parametrize("largest", [3.0, 1000.0])
def test_compiled_equals_the_plain_loop(text: str, largest: float) -> None:
    alphas = (0.01, 0.001) if largest < 10 else (1e-7, 1e-8)
    for seed in (1, 2):
        stream = SparseStream(seed, 2 * EPOCH + 700, d=150, active=4, largest=largest)
        assert difference(*both(stream, lanes_of(st.learner(text), *alphas))) < CLOSE


@pytest.mark.slow
@pytest.mark.parametrize("case", SCALED, ids=str)
def test_equals_the_plain_loop_for_long(case: Learner) -> None:
    """100,000 steps, all laws compiled, ratios up to 3 and up to 1000."""
    for seed, largest, alpha in ((1, 3.0, 0.003), (2, 1000.0, 1e-8)):
        stream = SparseStream(seed, 100_000, d=300, active=5, largest=largest)
        assert difference(*both(stream, lanes_of(case, alpha))) < CLOSE


def same_state(one: ScaledBlock, other: ScaledBlock) -> None:
    for name in ScaledBlock.saved:
        if getattr(one, name).size:
            assert_same_bits(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("text", STRUCTURES)
def test_alone_is_in_a_crowd(text: str) -> None:
    """Other lanes open rows and settle at other steps, and one of them diverges."""
    stream = SparseStream(seed=3, steps=EPOCH + 900, d=150, active=4)
    lams = (0.9, 1.0, 0.3, 0.95, 0.05, 0.8, 0.99)
    lanes = [
        *lanes_of(st.learner(text), 0.01, 0.002, lams=lams),
        st.learner(text).replace(alpha=50, lam=1),
    ]
    crowd = ScaledBlock(lanes, stream.w0)
    stream.feed(crowd)
    assert crowd.diverged[-1] > 0
    assert (crowd.diverged[:-1] == -1).all()
    assert np.isnan(crowd.w[:, -1]).all()
    for i, learner in enumerate(lanes):
        alone = ScaledBlock([learner], stream.w0)
        stream.feed(alone)
        assert alone.diverged[0] == crowd.diverged[i]
        for v in range(len(alone.V) if i < len(lanes) - 1 else 0):
            assert_same_bits(alone.vector(v)[:, 0], crowd.vector(v)[:, i])


@pytest.mark.parametrize("text", STRUCTURES[:2])
def test_chunks_do_not_matter(text: str) -> None:
    stream = SparseStream(seed=4, steps=EPOCH + 300, d=150, active=4)
    lanes = lanes_of(st.learner(text), 0.01)
    whole = ScaledBlock(lanes, stream.w0)
    stream.feed(whole)
    ends = [*np.sort(np.random.default_rng(0).integers(0, EPOCH, 9)), EPOCH - 1, EPOCH, EPOCH + 1]
    ends += [EPOCH + i for i in range(2, 301)]
    chunked = ScaledBlock(lanes, stream.w0)
    for begin, end in zip([0, *ends], ends, strict=False):
        stream.feed(chunked, int(begin), int(end))
    same_state(chunked, whole)


@pytest.mark.parametrize("text", STRUCTURES)
def test_divergence_is_found_at_its_step(text: str) -> None:
    """Where the plain loop leaves the finite range, or the few steps earlier in which the weights
    grow by five digits: so much larger are the numbers that are kept.
    """
    stream = SparseStream(seed=5, steps=3000, d=150, active=4)
    case = st.learner(text, lam=0.9)
    lanes = [case, *(case.replace(alpha=alpha) for alpha in (5, 20, 100))]
    scaled, plain = ScaledBlock(lanes, stream.w0), stream.feed(Block(lanes, stream.w0))
    stream.feed(scaled)
    assert (plain.diverged[1:] > 10).all()
    assert scaled.diverged[0] == plain.diverged[0] == -1
    earlier = plain.diverged - scaled.diverged
    assert earlier.min() >= 0
    assert earlier.max() <= 5
    # one step at a time, nothing is repeated
    single = ScaledBlock(lanes, stream.w0)
    for t in range(int(plain.diverged.max()) + 2):
        stream.feed(single, t, t + 1)
    assert_same_bits(single.diverged, scaled.diverged)


@pytest.mark.slow
@pytest.mark.parametrize("pull", [2e-3, 0.3, 1.0, 2.5])
def test_a_vector_that_shrinks(pull: float) -> None:
    """w <- (1 - pull) w + ...: far beyond the range of numbers, to 0 at once, changing its sign."""
    stream = SparseStream(seed=6, steps=3000, d=150, active=4)
    ridge = st.learner("ridge_td", alpha=0.01, ridge=min(pull, 1.5) * 100, lam=0.9)
    scaled, plain = both(stream, [ridge, ridge.replace(lam=0.3)])
    assert difference(scaled, plain) < CLOSE
    assert (np.abs(scaled.B) >= 1e-100).all()


def test_errors_are_those_of_the_plain_loop() -> None:
    stream = SparseStream(seed=7, steps=1500, d=150, active=4)
    n = len(stream.rows.first)
    rng = np.random.default_rng(0)
    goal = Goal(stream.rows, rng.random(n), rng.normal(size=n), np.array([n // 2, n]))
    points = np.array([0, 1, 700, 1500])
    lanes = lanes_of(st.learner("td:alpha=0.01"), 0.01)
    found = [
        block.advance(stream.events, np.ones(1500), stream.transitions, stream.rows, points, goal)
        for block in (ScaledBlock(lanes, stream.w0), Block(lanes, stream.w0))
    ]
    assert found[0].shape == (4, 2, 3)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-11)


def large_problem(seed: int = 1) -> st.Problem:
    return random_problem(seed, features=MANY)


def test_the_path_is_a_matter_of_the_number_of_features() -> None:
    td = st.learner("td:alpha=0.01,lam=0.9")
    w0: Floats = np.zeros(MANY)
    assert isinstance(make_block([td], w0), ScaledBlock)
    assert not isinstance(make_block([td], w0[1:]), ScaledBlock)
    for other in (td.replace(lam=0.0), td.replace(average=1), st.learner("nstep_td:alpha=1,n=3")):
        assert not is_scaled(other, MANY)
        assert not isinstance(make_block([other], w0), ScaledBlock)


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


def test_what_is_carried_along() -> None:
    """h.z needs z.z where h is written along z, and no more."""
    tdc, htd, td = (st.learner(text, alpha=1).law for text in ("tdc", "htd", "td"))
    assert active_program(td).pairs == [("w", "z")]
    assert active_program(td).products == ()
    assert active_program(tdc).pairs == [("w", "z"), ("h", "z")]
    assert active_program(tdc).products == (("h", "z"), ("z", "z"))
    assert set(active_program(htd).products) == {("h", "z"), ("h", "y"), ("z", "z"), ("z", "y")}


def test_multiples_that_all_learners_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """An update of facts alone is computed once; each lane divides it by its own factor."""

    @st.law(
        writes={"w": ("z", "w")}, params={"lam": Param("trace decay", 0.0, low=0.0, high=1.0)},
        traces={"z": lambda rho, gamma, lam: (rho * gamma * lam, rho)},
    )  # fmt: skip
    def shared(reward: float, rho: float) -> tuple[float, float]:
        return 0.01 * reward, -0.001 * rho

    monkeypatch.setattr(scaled_block, "EPOCH", 64)
    stream = SparseStream(seed=3, steps=150)
    lanes = [st.learner(shared, alpha=0.1, lam=lam) for lam in (0.3, 0.6, 0.9)]
    scaled, plain = ScaledBlock(lanes, stream.w0), stream.feed(Block(lanes, stream.w0))
    scaled.kernel = without_compiler(lanes[0].law)
    stream.feed(scaled)
    assert difference(scaled, plain) < CLOSE
