"""Hard streams with sparse features."""

from __future__ import annotations

import numpy as np

from steadytd.base.arrays import Floats, Ints
from steadytd.engine.block import Block, Transitions
from steadytd.engine.facts import fact_table
from steadytd.engine.rows import Rows, sparse_rows
from steadytd.engine.schedule import step_factors


class SparseStream:
    """Random sparse rows and transitions: a fifth have rho = 0, a few have rho up to `largest`.

    Some end an episode, some cut it off; the other discounts are 1 or less. Rows have from no
    active feature to twice `active`.
    """

    def __init__(
        self, seed: int, steps: int, d: int = 40, active: int = 3, largest: float = 3.0
    ) -> None:
        rng = np.random.default_rng(seed)
        states, count = 30, 200
        matrix = np.zeros((states, d))
        for x in matrix[1:]:
            some = rng.choice(d, rng.integers(1, 2 * active + 1), replace=False)
            x[some] = rng.uniform(-1.0, 1.0, len(some))
        self.d = d
        self.rows: Rows = sparse_rows(matrix)
        mu = rng.uniform(0.5, 1.0, count)
        rho = np.where(rng.random(count) < 0.2, 0.0, rng.uniform(0.3, 1.6, count))
        rho[:3] = largest
        gamma = np.where(rng.random(count) < 0.3, 1.0, rng.uniform(0.6, 1.0, count))
        gamma[rng.random(count) < 0.04] = 0.0
        row, row_next = rng.integers(states, size=(2, count)).astype(np.int32)
        facts = fact_table(
            reward=rng.normal(size=count), gamma_next=gamma, rho=rho, pi=np.minimum(rho * mu, 1.0),
            mu=mu, interest=rng.uniform(0.2, 2.0, count), peak_min=0.5, peak_max=1.0,
            gamma_carried=np.where(rng.random(count) < 0.04, 0.0, gamma),
        )  # fmt: skip
        self.transitions = Transitions(row, row_next, facts)
        self.events: Ints = rng.integers(count, size=steps).astype(np.int32)
        self.w0: Floats = rng.normal(size=d)

    def feed(self, block: Block, begin: int = 0, end: int | None = None) -> Block:
        """Let a block take some of the steps."""
        events = self.events[begin:end]
        factor = step_factors(begin, len(events), *block.learners[0].schedule)
        block.advance(events, factor, self.transitions, self.rows)
        return block
