"""One pass over the log on one machine: sums and online learners side by side."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError
from steadytd.evaluation.collect.accumulate import Accumulator, Prepared
from steadytd.evaluation.collect.checks import Checked, Checks
from steadytd.evaluation.collect.plan import Plan
from steadytd.evaluation.collect.room import Room
from steadytd.evaluation.collect.rows.active import active_rows
from steadytd.evaluation.collect.statistics import Statistics, merged
from steadytd.evaluation.estimate.requests import Request
from steadytd.evaluation.follow.lanes import lane_shape
from steadytd.evaluation.follow.online import (
    Followed,
    Follower,
    Member,
    SideBySide,
    Table,
    lanes_by_target,
    side_by_side,
)
from steadytd.evaluation.follow.pilot import PILOT_ROWS, first_rows, members
from steadytd.features import FeatureMap
from steadytd.logs.log import Log, LogBatch

AHEAD = 3  # batches under way at most,
AHEAD_BYTES = 64e6  # and bytes of their features, but never fewer than one batch
WANTED = ("behavior_prob", "target_prob")  # of a batch, beside what checks and the Q-form need

Progress = Callable[[int, int], None]
Peaks = tuple[float, float]


@dataclass
class Passed:
    """What a pass leaves behind: the sums, and the online learners as they ended."""

    statistics: Statistics
    outcomes: list[Followed]
    left_out: int
    checked: Checked


def features_of(batch: LogBatch, features: FeatureMap, room: Room) -> Floats:
    """The features of a batch's observations; they stand in `room`."""
    X: Floats = room.array("X", (len(batch.obs), features.n_features))
    features.fill(batch.obs, X)
    return X


def wanted(part: Log) -> tuple[str, ...]:
    """The optional fields of a batch that are needed: actions where they are single numbers."""
    actions = ("action",) if part.meaning.numeric_actions else ()
    return (*WANTED, *actions, *(("probs",) if part.meaning.policies_known else ()))


def read(part: Log) -> Iterator[LogBatch]:
    """The batches of a part, without the columns that nobody needs."""
    return part.batches(columns=wanted(part))


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

    the_pass = _Pass(parts, features, plan, asked, seed, progress)
    with (
        _Chains(threads or os.cpu_count() or 1) as chains,
        threadpool_limits(limits=1, user_api="blas"),
    ):
        sums = list(the_pass.run(chains))
        if not sums:
            raise InputError("the log has no row that can be learned from.")
        checked = Checked.merged(the_pass.checked)
        return Passed(merged(sums), the_pass.outcomes(), the_pass.left_out(), checked)


def follow_online(
    parts: Sequence[Log],
    features: FeatureMap,
    plan: Plan,
    asked: Sequence[Request],
    seed: int,
    progress: Progress | None,
) -> list[Followed]:
    """Where the online learners end, without the sums: the same bits as from `follow`."""
    from threadpoolctl import threadpool_limits

    the_pass = _Pass(parts, features, plan, asked, seed, progress, sums=False)
    with _Chains(threads=1) as chains, threadpool_limits(limits=1, user_api="blas"):
        the_pass.run(chains)
    return the_pass.outcomes()


def first_members(
    parts: Sequence[Log],
    features: FeatureMap,
    plan: Plan,
    asked: Sequence[Request],
    seed: int,
) -> list[Member]:
    """The online learners with their numbers, from the first rows of the log."""
    few = (replace(part, batch_rows=PILOT_ROWS) for part in parts)
    pilot = first_rows((batch for part in few for batch in read(part)), PILOT_ROWS)
    if pilot is None:
        return []
    if plan.keeps_rows:
        return members(pilot, active_rows(features.rows(pilot.obs)), plan, asked, seed)
    return members(pilot, features_of(pilot, features, Room()), plan, asked, seed)


def peaks_of(parts: Sequence[Log], targets: int) -> list[Peaks]:
    """The least and the largest max(pi, mu) of all rows for each target: a pass of its own."""
    low, high = np.full(targets, np.inf), np.full(targets, -np.inf)
    for part in parts:
        for batch in read(replace(part)):
            assert batch.behavior_prob is not None
            taken = batch.behavior_prob > 0.0
            peak = np.maximum(batch.target_prob, batch.behavior_prob)[:, taken]
            low = np.minimum(low, peak.min(axis=1, initial=np.inf))
            high = np.maximum(high, peak.max(axis=1, initial=-np.inf))
    return list(zip(low.tolist(), high.tolist(), strict=True))


class _Chains:
    """Chains of work that go on side by side, each taking the batches in order.

    A chain is a thread of its own: the sums, the online learners. None waits for the others, up to
    `AHEAD` batches. With one of the `threads` the work is done when it is given.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.pools: dict[object, ThreadPoolExecutor] = {}
        self.waiting: deque[list[Future[None]]] = deque()

    def __enter__(self) -> _Chains:
        return self

    def __exit__(self, *_: object) -> None:
        for pool in self.pools.values():
            pool.shutdown(cancel_futures=True)

    def submit(self, works: dict[object, Callable[[], None]], ahead: int) -> None:
        """Give every chain its work on the next batch; then wait until few are under way."""
        if self.threads == 1:
            for work in works.values():
                work()
            return
        futures = []
        for chain, work in works.items():
            if chain not in self.pools:
                self.pools[chain] = ThreadPoolExecutor(1)
            futures.append(self.pools[chain].submit(work))
        self.waiting.append(futures)
        while len(self.waiting) > ahead:
            self._finish()

    def finish(self) -> None:
        """Wait for all work."""
        while self.waiting:
            self._finish()

    def _finish(self) -> None:
        for future in self.waiting.popleft():
            future.result()


class _Pass:
    def __init__(
        self,
        parts: Sequence[Log],
        features: FeatureMap,
        plan: Plan,
        asked: Sequence[Request],
        seed: int,
        progress: Progress | None,
        sums: bool = True,
    ) -> None:
        self.sums = sums
        self.parts, self.features, self.plan = parts, features, plan
        self.asked = [one for one in asked if one.kind == "online"]
        self.general = any(
            one.learner and lane_shape(one.learner, one.system) is None for one in self.asked
        )
        self.seed, self.progress = seed, progress
        self.members: list[Member] = []
        self.groups: list[SideBySide] = []
        self.lanes: list[Follower] = []
        self.begun = False
        self.peaks: list[Peaks] = []
        self.rooms: deque[Room] = deque()
        self.checked: list[Checked] = []

    def run(self, chains: _Chains) -> list[Statistics]:
        """Go over all batches; the sums of each part, if they are wanted."""
        sums: list[Statistics] = []
        done = 0
        for part in self.parts:
            accumulator, checks = Accumulator(self.plan, chains.threads), Checks(self.plan)
            for batch in read(part):
                room = self._room(batch)
                X = features_of(batch, self.features, room)
                if not self.begun and self.general:
                    self._begin()
                works = self._works(accumulator, checks, batch, X, room)
                chains.submit(works, len(self.rooms) - 1)
                done += len(batch)
                if self.progress is not None:
                    self.progress(done, self.plan.rows)
            chains.finish()
            if self.sums and accumulator.pieces:
                sums.append(accumulator.statistics())
                self.checked.append(checks.found())
        return sums

    def left_out(self) -> int:
        """The number of rows that could not be learned from."""
        return sum(int(part.left_out or 0) for part in self.parts)

    def _room(self, batch: LogBatch) -> Room:
        """The rooms take turns: one for each batch under way, and one for the next."""
        if not self.rooms:
            size = 8 * len(batch.obs) * self.plan.features
            ahead = int(np.clip(AHEAD_BYTES // size, 1, AHEAD))
            self.rooms.extend(Room() for _ in range(ahead + 1))
        self.rooms.rotate()
        return self.rooms[0]

    def _works(
        self, accumulator: Accumulator, checks: Checks, batch: LogBatch, X: Floats, room: Room
    ) -> dict[object, Callable[[], None]]:
        """The work of every chain on a batch."""
        prepared = accumulator.prepare(batch, room)
        works: dict[object, Callable[[], None]] = {}
        if self.sums:
            sums = accumulator.works(prepared, X)
            works.update({("sums", i): work for i, work in enumerate(sums)})
            works["checks"] = partial(checks.add, batch, prepared, X)
        if self.asked:
            works["side by side"] = partial(self._side_by_side, prepared, X)
        if self.lanes:
            table = Table.of(batch, X)
            for target, lanes in lanes_by_target(self.lanes).items():
                works[target] = partial(self._advance, table, batch, target, lanes)
        return works

    def _side_by_side(self, prepared: Prepared, X: Floats) -> None:
        if not self.begun:  # while the sums go on
            self._begin()
        for group in self.groups:
            group.advance(prepared, X, self.plan.rows)

    def _advance(self, table: Table, batch: LogBatch, target: int, lanes: list[Follower]) -> None:
        facts = table.facts(batch, target, self.peaks[target])
        for lane in lanes:
            lane.advance(table, facts, self.plan.rows)

    def _begin(self) -> None:
        """Make the online learners, with automatic numbers from the first rows of the log."""
        self.begun = True
        self.members = first_members(self.parts, self.features, self.plan, self.asked, self.seed)
        d, T = self.plan.features, len(self.plan.targets)
        self.groups = side_by_side(self.members, d)
        rest = [m for m in self.members if m.shape is None]
        self.lanes = [Follower(m.learner, m.target, d, m.averaging) for m in rest]
        asked = any(m.learner.law.needs_peaks for m in rest)
        self.peaks = peaks_of(self.parts, T) if asked else [(1.0, 1.0)] * T

    def outcomes(self) -> list[Followed]:
        """Where the online learners have ended, in the order in which they were asked for."""
        found = [o for group in self.groups for o in group.outcomes()]
        found += [lane.outcome() for lane in self.lanes]
        by = {(o.target, o.learner): o for o in found}
        return [by[m.target, m.learner] for m in self.members]
