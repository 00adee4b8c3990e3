"""Cut-off episodes: every law goes on as after a termination, however the cut is told."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import steadytd as st
from steadytd.base.arrays import Bools, Floats
from steadytd.engine.active import make_block
from steadytd.engine.block import Block, Transitions
from steadytd.engine.facts import columns, fact_table, named
from steadytd.engine.law import arguments
from steadytd.engine.learner import Learner
from steadytd.engine.reference import ReferenceLearner
from steadytd.engine.rows import dense_rows
from steadytd.engine.schedule import step_factors
from tests.support.cases import CASES, assert_same_bits, cases_of, is_quick
from tests.support.scope import everything
from tests.support.slow_law import remembering

PEAKS = 0.3, 0.95


def with_schedule(case: Learner, average: int) -> Learner:
    return case.replace(power=0.5, delay=30.0, average=average) if "power" in case.values else case


PLAIN = [with_schedule(case, 0) for case in [*CASES, *filter(is_quick, cases_of(remembering))]]
LAST = {case.name: case for case in PLAIN[:: 1 if everything() else -1]}  # or the first of a law
AVERAGED = [with_schedule(case, 1) for case in LAST.values()]
LEARNERS = list(dict.fromkeys([*PLAIN, *AVERAGED]))
# Averaging is one piece of the loop for all laws: one law shows it, the others in `make test-all`.
SHOWN = {"td"}
every_learner = pytest.mark.parametrize(
    "learner",
    [
        pytest.param(x, marks=pytest.mark.slow if x.averaged and x.name not in SHOWN else ())
        for x in LEARNERS
    ],
    ids=str,
)


@dataclass(frozen=True)
class Episodes:
    """Steps of consecutive episodes; `last` are the last ones, cut off where gamma_next > 0."""

    x: Floats
    x_next: Floats
    facts: Floats
    last: Bools

    @staticmethod
    def drawn(lengths: list[int], ending: float, seed: int = 0, features: int = 3) -> Episodes:
        """Random episodes; a share `ending` of them terminates."""
        rng, n = np.random.default_rng(seed), sum(lengths)
        last = np.zeros(n, dtype=np.bool_)
        last[np.cumsum(lengths) - 1] = True
        ends = last & (rng.random(n) < ending)
        mu, pi = rng.uniform(0.3, 0.9, n), rng.uniform(0.3, 0.7, n) * (rng.random(n) < 0.9)
        gamma_next = np.where(ends, 0.0, rng.uniform(0.6, 0.95, n))
        facts = fact_table(
            reward=rng.normal(size=n), gamma_next=gamma_next,
            gamma_carried=np.where(last, 0.0, gamma_next), rho=pi / mu, pi=pi, mu=mu,
            interest=rng.uniform(0.5, 1.5, n), peak_min=PEAKS[0], peak_max=PEAKS[1],
        )  # fmt: skip
        return Episodes(rng.normal(size=(n, features)), rng.normal(size=(n, features)), facts, last)

    def slow(self, learner: Learner) -> ReferenceLearner:
        """The learner without the compiler, with trace vectors at lam = 0, too."""
        result = ReferenceLearner(learner, np.zeros(self.x.shape[1]), traced=True)
        begins = np.append(True, self.last[:-1])
        for x, x_next, facts, first in zip(self.x, self.x_next, self.facts, begins, strict=True):
            if first:
                result.cut()
            result.update(x, x_next, named(facts))
        return result

    def told_after(self, size: int) -> Floats:
        """The facts if a cut at the end of every `size` steps were not known yet."""
        facts = self.facts.copy()
        facts[size - 1 :: size, 2] = facts[size - 1 :: size, 1]
        return facts

    def fast(self, learner: Learner, size: int, told_after: bool = False) -> Block:
        """The learner in the engine, `size` steps at a time."""
        n = len(self.x)
        rows, row = dense_rows(np.concatenate([self.x, self.x_next])), np.arange(n, dtype=np.int32)
        facts = self.told_after(size) if told_after else self.facts
        transitions = Transitions(row, row + np.int32(n), facts)
        block = make_block([learner], np.zeros(self.x.shape[1]))
        for lo in range(0, n, size):
            events = row[lo : lo + size]
            factor = step_factors(lo, len(events), *learner.schedule)
            block.advance(events, factor, transitions, rows)
            if told_after and self.last[events[-1]]:
                block.cut()
        return block


CUT = Episodes.drawn([5] * 30, ending=0.0)
MIXED = Episodes.drawn(np.random.default_rng(1).integers(1, 9, 30).tolist(), ending=0.4, seed=2)


def test_the_columns_of_the_facts() -> None:
    assert columns(CUT.facts, "gamma_next", "gamma_carried").tobytes() == (
        np.ascontiguousarray(CUT.facts[:, 1:3]).tobytes()
    )
    assert (CUT.facts[CUT.last, 1] > 0.0).all() and (CUT.facts[CUT.last, 2] == 0.0).all()
    assert 0.2 < (MIXED.facts[MIXED.last, 1] == 0.0).mean() < 0.6


@pytest.mark.parametrize(
    "episodes", [pytest.param(CUT, marks=pytest.mark.slow), MIXED], ids=["cut", "mixed"]
)
@every_learner
def test_every_law_follows_the_slow_loop(learner: Learner, episodes: Episodes) -> None:
    """Bit for bit in any division, told with the step or after it, and 1e-10 from plain NumPy."""
    slow = episodes.slow(learner)
    whole = episodes.fast(learner, len(episodes.x))
    if learner.law.block is None:
        np.testing.assert_allclose(whole.reported[:, 0], slow.reported, rtol=1e-10, atol=1e-12)
        assert np.abs(slow.reported).max() > 1e-3
    else:
        A = whole.V[1 : 1 + len(slow.b), :, 0].T
        np.testing.assert_allclose(A, slow.A, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(whole.V[0, :, 0], slow.b, rtol=1e-10, atol=1e-12)
    for size in (1, 5, 64):
        for told_after in (False, True):
            assert_same_bits(episodes.fast(learner, size, told_after).state, whole.state)


@every_learner
def test_every_online_learner_ends_episodes(learner: Learner) -> None:
    if learner.law.average_reward:  # whose stream has no discount: `tests/mdp/test_average_reward`
        return
    online = learner.start(MIXED.x.shape[1])
    for i, last in enumerate(MIXED.last):
        facts = named(MIXED.facts[i])
        online.update(
            MIXED.x[i], facts["reward"], MIXED.x_next[i], gamma=facts["gamma_next"],
            pi=facts["pi"], mu=facts["mu"], interest=facts["interest"], peaks=PEAKS,
        )  # fmt: skip
        if last:
            online.end_episode()
    assert_same_bits(online.w, MIXED.fast(learner, len(MIXED.x)).reported[:, 0])


@pytest.mark.parametrize("learner", PLAIN, ids=str)
def test_a_cut_matters_to_whom_it_should(learner: Learner) -> None:
    """Laws that carry the discount differ if the cut is not told; the others do not ask for it."""
    law = learner.law
    moving = learner.traced or any(f is not None for f in law.memory.values())
    asked = arguments(law.update)
    first = "gamma" in asked and "lam" not in asked  # whether a step is an episode's first
    by_feature = bool(law.each) and (learner.values.get("lam", 0.0) != 0.0 or first)
    moving = moving or by_feature
    carrying = "gamma" in law.asked and moving
    leaking = Episodes(CUT.x, CUT.x_next, CUT.told_after(5), CUT.last)
    told, leaked = (one.fast(learner, 300).reported[:, 0] for one in (CUT, leaking))
    assert (np.abs(told - leaked).max() > 1e-6) == carrying


def test_learners_are_all_there() -> None:
    assert {learner.name for learner in LEARNERS} == {*st.learners(), "remembering"}
    assert {x.name for x in LEARNERS if x.averaged} == {
        x.name for x in LEARNERS if "average" in x.values
    }
