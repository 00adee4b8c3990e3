"""What a pass collects beside the sums: to check the logged probabilities, and sampled episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats, Longs
from steadytd.evaluation.collect.accumulate import BlockSums, Prepared
from steadytd.evaluation.collect.actions import Actions, LoggedActions, ProbabilitySums
from steadytd.evaluation.collect.outcomes import EpisodeSteps, Outcomes, Sampled
from steadytd.evaluation.collect.plan import Plan
from steadytd.evaluation.collect.statistics import Statistics
from steadytd.logs.log import LogBatch


class Checked(NamedTuple):
    """Sums by action, and episodes."""

    actions: ProbabilitySums
    sample: Sampled

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays by name, for a file."""
        named = {**self.actions._asdict(), **self.sample._asdict()}
        return {f"checked_{name}": np.asarray(array) for name, array in named.items()}

    @staticmethod
    def of(arrays: Mapping[str, NDArray[Any]]) -> Checked:
        """What `arrays` has named."""
        sums, sample = (
            {name: arrays[f"checked_{name}"] for name in kind._fields}
            for kind in (ProbabilitySums, Sampled)
        )
        numbers = {"unusable": int(sums.pop("unusable"))}, {"bound": float(sample.pop("bound"))}
        made: Any = ProbabilitySums, Sampled
        return Checked(made[0](**sums, **numbers[0]), made[1](**sample, **numbers[1]))

    @staticmethod
    def merged(parts: Sequence[Checked]) -> Checked:
        """That of several parts of a log, in its order."""
        actions, samples = zip(*parts, strict=True)
        return Checked(ProbabilitySums.merged(actions), Sampled.merged(samples))


class Checks:
    """Goes over the batches of a part of a log, after `Accumulator.prepare`."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.actions, self.outcomes = plan, Actions(), Outcomes(plan)
        self.pieces: list[BlockSums] = []

    def add(self, batch: LogBatch, p: Prepared, X: Floats) -> None:
        """The rows of a prepared batch with features X."""
        stretches = []
        for lo, hi, piece in p.stretches:
            if not self.pieces or self.pieces[-1] is not piece:
                self.pieces.append(piece)
            stretches.append((lo, hi, len(self.pieces) - 1))
        probs = batch.probs if self.plan.behavior_whole else None
        whole = None if probs is None else probs[: p.n, -1]
        self.actions.add(LoggedActions(batch.action, p.behavior, whole, X[: p.n]), stretches)
        rho = p.rho.array[:, : len(p.target)]  # the last column is the behaviour's
        steps = EpisodeSteps(p.first, p.reward, p.discount, rho, batch.episode, p.row_next, X)
        self.outcomes.add(steps, batch.action)

    def found(self) -> Checked:
        """All that was collected. The pass is over: nothing can be added."""
        return Checked(self.actions.sums(), self.outcomes.sample())


def unit_of_pieces(pieces: Statistics, units: Statistics) -> Longs:
    """The unit that every piece was counted in: units are made of consecutive pieces."""
    ends = np.cumsum(units.counts[:, 0])
    return np.searchsorted(ends, np.cumsum(pieces.counts[:, 0]))


def by_unit(sums: Floats, unit: Longs) -> Floats:
    """Sums of pieces, added up by unit."""
    starts = np.flatnonzero(np.append(True, unit[1:] != unit[:-1]))
    return np.asarray(np.add.reduceat(sums, starts, axis=0))
