"""Whether two learners are one and the same update on a problem.

Different laws may give the same numbers where a problem leaves no room for the difference: Tree
Backup is V-trace where pi is deterministic, perturbed TD is TD at eta = 0. Both learners take the
same steps along the problem's transitions, from start weights and with rewards drawn at random, so
that neither hides a difference; they are the same if their weights agree to rounding all the way.
"""

from __future__ import annotations

import numpy as np

from steadytd.base.arrays import Floats, Ints
from steadytd.engine.block import Transitions, make_block
from steadytd.engine.learner import Learner
from steadytd.engine.rows import Rows, sparse_rows
from steadytd.engine.schedule import step_factors
from steadytd.mdp.problem import Problem
from steadytd.streams.finite import FiniteStream

PIECES, STEPS = 40, 25  # the weights are compared after each piece of so many steps
ROUNDING = 1e-9


def same_update(problem: Problem, one: Learner, other: Learner) -> bool:
    """Whether two learners change their weights alike on every target policy of a problem.

    >>> from steadytd import learner, problem
    >>> td, at_zero = learner("td:alpha=0.01"), learner("perturbed_td:alpha=0.01,eta=0")
    >>> same_update(problem("baird"), td, at_zero)
    True
    """
    stream = FiniteStream(problem)
    rng = np.random.default_rng(0)
    w0 = rng.normal(size=problem.n_features)
    events, _ = stream.take(stream.begin(0), PIECES * STEPS)
    rows = sparse_rows(problem.Phi)
    for transitions, active in zip(stream.transitions, stream.active, strict=True):
        facts = transitions.facts.copy()
        facts[:, 0] = rng.normal(size=len(facts))
        own = events if active is None else events[active[events]]
        changed = Transitions(transitions.row, transitions.row_next, facts)
        a, b = (_way(x, w0, own, changed, rows) for x in (one, other))
        if not np.allclose(a, b, rtol=ROUNDING, atol=ROUNDING * np.abs(a).max(initial=1.0)):
            return False
    return True


def _way(learner: Learner, w0: Floats, events: Ints, seen: Transitions, rows: Rows) -> Floats:
    """The weights after each piece, up to the piece before they leave the finite range."""
    block = make_block([learner], w0)
    found = []
    with np.errstate(all="ignore"):
        for piece in np.array_split(events, PIECES):
            factor = step_factors(block.step, len(piece), *learner.schedule)
            block.advance(np.ascontiguousarray(piece), factor, seen, rows)
            found.append(block.shown[:, 0].copy())
    return np.nan_to_num(np.array(found), nan=0.0)
