"""Many lanes on dense features: the loop with sums in registers gives the bits of the plain one.

All laws run without the compiler on short streams; some structures (one vector, two, traces, an
average, a law that the compiler cannot vectorise) run compiled on longer ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import steadytd as st
from steadytd.base import numba_parts
from steadytd.base.arrays import LANES, Floats
from steadytd.engine import block
from steadytd.engine.block import Block, Goal
from steadytd.engine.law import Law
from steadytd.engine.learner import Learner
from steadytd.engine.loop import driver
from steadytd.engine.loop.compile import kernel, law_functions
from steadytd.engine.loop.wide import GROUP, can_be_wide, wide_source
from steadytd.engine.loop.write import loop_source
from steadytd.engine.rows import Rows, dense_rows, is_dense, sparse_rows
from steadytd.engine.scaled_block import ScaledBlock
from steadytd.engine.schedule import step_factors
from steadytd.runs import lanes as run_lanes
from tests.support.cases import STEPS_OF_A_LAW, RandomStream, off_policy_problem
from tests.support.cases import assert_same_bits as same_bits

WIDE = [case for case in STEPS_OF_A_LAW if can_be_wide(case.law)]
ALWAYS, NEVER = 1, 2**60  # learner-updates that make the wide loop worth while
STRUCTURES = (
    "td:power=0.6,delay=50",
    "tdrc:ratio=2,reg=0.5",
    *(
        pytest.param(text, marks=pytest.mark.slow)
        for text in (
            "tdrc:ratio=2,reg=0.5,average=1",
            "tdc:ratio=2",
            "htd:ratio=2,lam=0.6",
            "etd:lam=0.3",
        )
    ),
)


class DenseStream(RandomStream):
    """As `RandomStream`, with features that are all active."""

    def __init__(self, seed: int, steps: int, d: int = 4) -> None:
        super().__init__(seed, steps)
        rng = np.random.default_rng([seed, d])
        self.Phi = rng.uniform(0.1, 1.0, (7, d)) * rng.choice([-1.0, 1.0], (7, d))
        self.rows = dense_rows(self.Phi)
        self.w0 = rng.normal(size=d)

    def feed(self, lanes: list[Learner], worth: int, cuts: tuple[int, ...] = ()) -> Any:
        """A new block after all steps, in pieces that end at `cuts`, and its errors."""
        found, own = Block(lanes, self.w0), pytest.MonkeyPatch()
        goal = Goal(self.rows, np.ones(7), np.zeros(7))
        errors = []
        with own.context() as patch:
            patch.setattr(block, "WORTH", worth)
            ends = (*cuts, len(self.events))
            for begin, end in zip((0, *cuts), ends, strict=True):
                factor = step_factors(begin, end - begin, *lanes[0].schedule)
                points = np.array([begin + 1, (begin + end) // 2, end])
                events = self.events[begin:end]
                errors.append(
                    found.advance(events, factor, self.transitions, self.rows, points, goal)
                )
        return found, np.concatenate(errors)


def lanes_of(case: Learner, count: int, most: float) -> list[Learner]:
    return [case.replace(alpha=a) for a in np.geomspace(1e-4, most, count)]


def assert_same(one: Block, other: Block) -> None:
    """The whole state to the last bit; of a lane that diverged, when it did."""
    gone = other.diverged >= 0
    assert one.diverged.tolist() == other.diverged.tolist()
    assert one.step == other.step
    assert one.carry.tobytes() == other.carry.tobytes()
    for name in ("V", "Z", "M"):
        for mine, expected in zip(getattr(one, name), getattr(other, name), strict=True):
            same_bits(mine[..., ~gone], expected[..., ~gone])


def without_compiler(law: Law, source: str) -> Callable[..., None]:
    """A generated loop with its driver, as plain Python."""

    def flat(array: Floats, at: int) -> Floats:
        return array.reshape(-1)[at : at + LANES]

    def put(array: Floats, at: int, value: Floats) -> None:
        flat(array, at)[:] = value

    scope: dict[str, Any] = {
        "njit": lambda **_: lambda f: f, "Inner": None, "put": put,
        "eight": lambda array, at: flat(array, at).copy(),
        "same": lambda array, at: np.full(LANES, array[at]), "spread": lambda x: np.full(LANES, x),
        "product": lambda a, b: a * b, "add_product": lambda total, a, b: total + a * b,
        **law_functions(law),
    }  # fmt: skip
    exec(source.replace("from numba import njit", ""), scope)
    run: Any = driver.run
    return lambda *given: run.py_func(scope["enter"], (scope["SCRATCH"], scope["SHOWN"]), *given)


def test_every_law_that_steps_is_wide_but_those_that_cannot_be() -> None:
    left = {case.name for case in STEPS_OF_A_LAW} - {case.name for case in WIDE}
    assert left == {case.name for case in STEPS_OF_A_LAW if case.law.windows}
    assert len(WIDE) > 35


@pytest.mark.parametrize("case", [*WIDE, st.learner("tdrc:alpha=0.1,average=1")], ids=str)
def test_every_law_has_the_bits_of_the_plain_loop(case: Learner) -> None:
    """Both without the compiler: rho = 0, ends, cuts."""
    stream = DenseStream(seed=len(str(case)), steps=25, d=3)
    found = []
    for write in (loop_source, wide_source):
        own = Block(lanes_of(case, GROUP, 0.1), stream.w0)
        own.kernel = without_compiler(case.law, write(case.law, case.traced, case.averaged))
        own.advance(stream.events, np.ones(25), stream.transitions, stream.rows)
        assert (own.V[0] != stream.w0[:, None]).any()
        found.append(own)
    assert_same(found[1], found[0])


def check(case: Learner, seed: int, steps: int, d: int) -> bool:
    """Compiled, a padded block, the loop changed on the way; whether some lanes diverged."""
    stream = DenseStream(seed, steps, d)
    lanes = lanes_of(case, GROUP + 3, 300.0)
    plain, errors = stream.feed(lanes, NEVER)
    assert -1 in plain.diverged
    wide, wide_errors = stream.feed(lanes, ALWAYS)
    assert_same(wide, plain)
    same_bits(wide_errors, errors)
    for count in (GROUP, 1):
        few, _ = stream.feed(lanes[:count], ALWAYS)
        stays = few.diverged < 0
        same_bits(few.V[..., stays], plain.V[..., :count][..., stays])
    mixed, _ = stream.feed(lanes, steps // 3 * len(lanes), cuts=(7, steps // 2))
    assert_same(mixed, plain)
    return bool((plain.diverged >= 0).any())


@pytest.mark.parametrize("text", STRUCTURES)
def test_compiled_has_the_bits_of_the_plain_loop(text: str) -> None:
    for seed, d in ((1, 8), (2, 5), (3, 16), (4, 1)):
        assert check(st.learner(f"{text},alpha=1" if ":" in text else text), seed, 1500, d)


@pytest.mark.slow
@pytest.mark.parametrize("case", WIDE, ids=str)
def test_every_law_compiled(case: Learner) -> None:
    """Some never diverge: implicit steps, and weights that are projected."""
    for seed, d in ((5, 8), (6, 11)):
        check(case, seed, 3000, d)


def test_runs_do_not_depend_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several target policies, on one thread and on two."""
    problem = off_policy_problem(3, policies=3, states=9, features=6)
    learners = st.grid("td", alpha=np.geomspace(1e-3, 20.0, 21).tolist())
    monkeypatch.setattr(run_lanes, "CHUNK", 700)
    found = []
    for worth, threads in ((NEVER, 1), (ALWAYS, 1), (ALWAYS, 2)):
        monkeypatch.setattr(block, "WORTH", worth)
        found.append(st.run(problem, learners, steps=3000, points=11, threads=threads))
    for other in found[1:]:
        assert found[0].curves.equals(other.curves)
        gone = found[0].first_divergence >= 0
        assert found[0].first_divergence.tolist() == other.first_divergence.tolist()
        same_bits(other.final_weights[~gone], found[0].final_weights[~gone])
    assert np.isinf(found[0].curves["error"].to_numpy()).any()


def test_which_loop_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the shape and the amount of work decide; few lanes and sparse rows stay as they are."""
    stream = DenseStream(seed=1, steps=1)
    td = st.learner("td:alpha=0.1")
    wide = kernel(td.law, False, False, wide_source)

    def taken(lanes: int, steps: int, rows: Rows = stream.rows, kind: Any = Block) -> bool:
        return kind([td] * lanes, stream.w0)._kernel(steps, rows) is wide

    assert taken(64, 2**14) and taken(17, 2**16)
    assert not taken(64, 2**14 - 1)
    assert not taken(GROUP - 1, 2**30)
    assert taken(64, 2**14, sparse_rows(stream.Phi))  # dense, though not said to be
    some = stream.Phi.copy()
    some[2, 1] = 0.0
    assert not taken(64, 2**14, sparse_rows(some))
    assert not taken(64, 2**14, sparse_rows(np.zeros((0, 4))))
    windowed = Block([st.learner("nstep_td:alpha=0.1,n=3")] * 64, stream.w0)
    assert windowed._kernel(2**20, stream.rows) is windowed.kernel
    monkeypatch.setenv(numba_parts.WITHOUT, "vectors")
    assert not taken(64, 2**14)


def test_dense_tables() -> None:
    Phi = np.arange(1.0, 13.0).reshape(4, 3)
    assert is_dense(dense_rows(Phi), 3) and is_dense(sparse_rows(Phi), 3)
    assert not is_dense(dense_rows(Phi), 4)
    swapped = sparse_rows(Phi)._replace(feature=np.tile([1, 0, 2], 4).astype(np.int32))
    assert not is_dense(swapped, 3)
    Phi[1, 1] = 0.0
    assert is_dense(dense_rows(Phi), 3) and not is_dense(sparse_rows(Phi), 3)
    assert ScaledBlock.advance is not Block.advance  # it keeps its own loop
