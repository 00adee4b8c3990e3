"""One pass over the log on one machine: sums and online learners side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from steadytd.core.arrays import Floats
from steadytd.evaluate.accumulate import Accumulator
from steadytd.evaluate.lanes import CORRECTED, WEIGHTED, side_by_side
from steadytd.evaluate.online import (
    Lane,
    Member,
    Outcome,
    SideBySide,
    Table,
    lanes_by_target,
)
from steadytd.evaluate.pilot import members
from steadytd.evaluate.plan import Plan
from steadytd.evaluate.requests import Request
from steadytd.evaluate.statistics import Statistics, merged
from steadytd.features import FeatureMap
from steadytd.streams.log import Log, LogBatch

WANTED = ("behavior_prob", "target_prob")  # of a batch: actions are not needed

Progress = Callable[[int, int], None]


@dataclass
class Passed:
    """What a pass leaves behind: the sums, and the online learners as they ended."""

    statistics: Statistics
    outcomes: list[Outcome]
    left_out: int


def features_of(batch: LogBatch, features: FeatureMap) -> Floats:
    """The features of a batch's observations, and a last row of zeros."""
    X = np.empty((len(batch.obs) + 1, features.n_features))
    features(batch.obs, out=X[:-1])
    X[-1] = 0.0
    return X


def read(part: Log) -> Iterator[LogBatch]:
    """The batches of a part, without the columns that nobody needs."""
    return part.batches(columns=WANTED)


def follow(
    parts: Sequence[Log],
    features: FeatureMap,
    plan: Plan,
    asked: Sequence[Request],
    threads: int | None,
    seed: int,
    progress: Progress | None,
) -> Passed:
    """Go through all parts in order."""
    from threadpoolctl import threadpool_limits

    workers = threads or os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool, threadpool_limits(limits=1, user_api="blas"):
        return _Pass(parts, features, plan, asked, seed, progress).run(pool)


class _Pass:
    def __init__(
        self,
        parts: Sequence[Log],
        features: FeatureMap,
        plan: Plan,
        asked: Sequence[Request],
        seed: int,
        progress: Progress | None,
    ) -> None:
        self.parts, self.features, self.plan = parts, features, plan
        self.asked, self.seed, self.progress = asked, seed, progress
        self.members: list[Member] = []
        self.groups: list[SideBySide] = []
        self.lanes: list[Lane] = []
        self.begun = False
        self.peaks = (1.0, 1.0)

    def run(self, pool: ThreadPoolExecutor) -> Passed:
        sums: list[Statistics] = []
        done = 0
        for part in self.parts:
            accumulator = Accumulator(self.plan)
            waiting: list[Future[None]] = []
            discount_before = 0.0
            for batch in read(part):
                X = features_of(batch, self.features)
                if not self.begun:
                    self._begin(batch, X[:-1])
                for future in waiting:  # every chain of work takes the batches in order
                    future.result()
                waiting = self._submit(pool, accumulator, batch, X, discount_before)
                discount_before = float(batch.discount[-1])
                done += len(batch)
                if self.progress is not None:
                    self.progress(done, self.plan.rows)
            for future in waiting:
                future.result()
            if accumulator.pieces:
                sums.append(accumulator.statistics())
        left_out = sum(int(part.left_out or 0) for part in self.parts)
        return Passed(merged(sums), self._outcomes(), left_out)

    def _submit(
        self,
        pool: ThreadPoolExecutor,
        accumulator: Accumulator,
        batch: LogBatch,
        X: Floats,
        discount_before: float,
    ) -> list[Future[None]]:
        prepared = accumulator.prepare(batch)
        futures = [pool.submit(accumulator.add_rows, prepared, X[:-1])]
        for group in self.groups:
            futures.append(pool.submit(group.advance, prepared, X, self.plan.rows))
        if self.lanes:
            table = Table.of(batch, X, discount_before)
            for target, lanes in lanes_by_target(self.lanes).items():
                futures.append(pool.submit(self._advance, table, batch, target, lanes))
        return futures

    def _advance(self, table: Table, batch: LogBatch, target: int, lanes: list[Lane]) -> None:
        facts = table.facts(batch, target, self.peaks)
        for lane in lanes:
            lane.advance(table, facts, self.plan.rows)

    def _begin(self, batch: LogBatch, X: Floats) -> None:
        """Choose the automatic numbers of the online learners from the first rows of the log."""
        self.begun = True
        self.members = members(batch, X, self.plan, self.asked, self.seed)
        d = self.plan.features
        for kind in (WEIGHTED, CORRECTED):
            some = [m for m in self.members if m.learner.name in kind and side_by_side(m.learner)]
            if some:
                self.groups.append(SideBySide(some, d))
        rest = [m for m in self.members if not side_by_side(m.learner)]
        self.lanes = [Lane(m.learner, m.target, d, m.averaging) for m in rest]
        assert batch.behavior_prob is not None
        peaks = np.maximum(batch.target_prob, batch.behavior_prob)
        self.peaks = float(peaks.min()), float(peaks.max())

    def _outcomes(self) -> list[Outcome]:
        """Where the online learners have ended, in the order in which they were asked for."""
        found = [o for group in self.groups for o in group.outcomes()]
        found += [lane.outcome() for lane in self.lanes]
        by = {(o.target, o.learner): o for o in found}
        return [by[m.target, m.learner] for m in self.members]
