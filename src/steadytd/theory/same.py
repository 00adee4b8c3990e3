"""Are two learners the same update on this problem?

Laws that differ in general may coincide where the policies are special: ABTD at zeta = 0.75 is
V-trace on High-Variance Rooms, Tree Backup is V-trace on Collision. No experiment can then tell
them apart, and a report should say why.

A law sees a transition only through its facts (discount, ratio, probabilities, interest; those of
the step before, too) and through inner products. So both learners are run, interpreted, over short
walks through the problem's own facts with *random* features, rewards and start weights. Every fact
that can follow another does so in some walk. The same weights throughout, up to rounding, mean the
same function of the inner products: with random reals a chance agreement has probability zero.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from steadytd.base.arrays import Bools, Floats, Ints
from steadytd.engine.active import make_block
from steadytd.engine.block import Transitions
from steadytd.engine.facts import STEP_FACTS, named
from steadytd.engine.learner import Learner
from steadytd.engine.reference import ReferenceLearner
from steadytd.engine.rows import sparse_rows
from steadytd.mdp.problem import Problem
from steadytd.streams.finite import FiniteStream

SAME = 1e-9  # relative difference of weights that is rounding
FEATURES = 3  # random ones, in place of the problem's
AFTER = 3  # steps of a walk after the pair that it is about: a trace may show its difference later
SOLVED_STEPS = 500  # of the problem's stream, for learners that solve
PAIRS = 300  # pairs of facts looked at, at most; every fact is the first of a pair before


def same_update(problem: Problem, one: Learner, other: Learner) -> bool:
    """Whether both learners change w alike at every transition that the problem can make.

    Step sizes belong to the update: give both learners the same alpha. Learners that solve a system
    are the same if they solve the same one. A learner that averages its weights or values actions
    is the same as another only if it is equal to it.

    >>> import steadytd as st
    >>> tree = st.learner("tree_backup:alpha=0.1,lam=0.5")
    >>> clipped = st.learner("vtrace:alpha=0.1,lam=0.5")
    >>> [same_update(st.problem(name), tree, clipped) for name in ("collision", "rooms")]
    [True, False]
    """
    for learner in (one, other):
        learner.require_numbers("a comparison of updates")
    if one == other:
        return True
    if any(x.averaged or x.law.action_values for x in (one, other)):
        return False
    solved = [x.law.block is not None for x in (one, other)]
    if any(solved) and not all(solved):
        return False
    stream = FiniteStream.of(problem)
    if all(solved):
        return all(_solve_alike(stream, k, (one, other)) for k in range(problem.n_policies))
    return all(_same(stream, policy, (one, other)) for policy in range(problem.n_policies))


def _solve_alike(stream: FiniteStream, policy: int, learners: tuple[Learner, Learner]) -> bool:
    """Whether two learners that solve find the same weights, with random features and rewards."""
    rng = np.random.default_rng(0)
    row, row_next, facts = stream.transitions[policy]
    seen = facts.copy()
    seen[:, STEP_FACTS.index("reward")] = rng.normal(size=len(seen))
    states = int(max(row.max(), row_next.max())) + 1
    d = max(1, min(FEATURES, states - 1))  # with one per state, every weighting solves alike
    rows = sparse_rows(rng.normal(size=(states, d)))
    events, _ = stream.take(stream.begin(0), SOLVED_STEPS)
    active = stream.active[policy]
    own = events if active is None else events[active[events]]
    w0 = rng.normal(size=d)
    found = []
    for learner in learners:
        block = make_block([learner], w0)
        block.advance(own, np.ones(len(own)), Transitions(row, row_next, seen), rows)
        found.append(block.reported[:, 0])
    one, other = found
    return bool(np.abs(one - other).max() <= SAME * (1.0 + np.abs(one).max()))


def _same(stream: FiniteStream, policy: int, learners: tuple[Learner, Learner]) -> bool:
    rng = np.random.default_rng(0)
    facts = stream.transitions[policy].facts
    active = stream.active[policy]
    usable = np.ones(len(facts), dtype=bool) if active is None else active
    for pair in _pairs(stream, facts, usable, rng):
        walk = _walk(stream, facts, usable, pair, rng)
        if not _agree(learners, facts[walk], rng):
            return False
    return True


def _pairs(
    stream: FiniteStream, facts: Floats, usable: Bools, rng: Generator
) -> list[tuple[int, int]]:
    """Transitions that follow each other, one pair for every two kinds of facts that can."""
    _, kind = np.unique(np.round(facts[:, 1:], 12), axis=0, return_inverse=True)
    firsts = rng.permutation(np.flatnonzero(usable))
    # which state comes after, and of what kind the step to it was, is all that matters of a first
    _, different = np.unique(
        np.stack([kind[firsts], stream.s_next[firsts]]), axis=1, return_index=True
    )
    firsts = firsts[rng.permutation(different)]
    _, once = np.unique(kind[firsts], return_index=True)
    seconds: dict[int, Ints] = {}
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for i in (*firsts[once], *firsts):
        state = int(stream.s_next[i])
        if state not in seconds:
            following = _following(stream, int(i), usable)
            seconds[state] = following[np.unique(kind[following], return_index=True)[1]]
        for j in seconds[state]:
            found.setdefault((int(kind[i]), int(kind[j])), (int(i), int(j)))
        if len(found) >= max(PAIRS, len(once)):
            break
    return list(found.values())


def _following(stream: FiniteStream, i: int, usable: Bools) -> Ints:
    """The transitions that may come after the i-th in which the learner updates."""
    begin, end = stream.first[stream.s_next[i]], stream.first[stream.s_next[i] + 1]
    return np.asarray(np.arange(begin, end)[usable[begin:end]])


def _walk(
    stream: FiniteStream, facts: Floats, usable: Bools, pair: tuple[int, int], rng: Generator
) -> list[int]:
    """The pair, then a few steps, by actions that pi takes too where there are some."""
    walk = list(pair)
    for _ in range(AFTER):
        following = _following(stream, walk[-1], usable)
        taken = following[facts[following, STEP_FACTS.index("rho")] > 0.0]
        choices = taken if len(taken) else following
        if not len(choices):
            break
        walk.append(int(rng.choice(choices)))
    return walk


def _agree(learners: tuple[Learner, Learner], facts: Floats, rng: Generator) -> bool:
    """Whether both have the same w after every step of a walk."""
    x = rng.normal(size=(len(facts) + 1, FEATURES))
    w0, rewards = rng.normal(size=FEATURES), rng.normal(size=len(facts))
    pair = [ReferenceLearner(learner, w0) for learner in learners]
    for t, row in enumerate(facts):
        known = named(row) | {"reward": rewards[t]}
        for learner in pair:
            learner.update(x[t], x[t + 1], known)
        one, other = (learner.vectors["w"] for learner in pair)
        if np.abs(one - other).max() > SAME * (1.0 + np.abs(one).max()):
            return False
    return True
