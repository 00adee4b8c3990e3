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
from steadytd.base.parallel import single_threaded
from steadytd.evaluation.collect.accumulate import Accumulator
from steadytd.evaluation.collect.checks import Checked, Checks
from steadytd.evaluation.collect.plan import Plan
from steadytd.evaluation.collect.room import Room
from steadytd.evaluation.collect.rows.active import active_rows
from steadytd.evaluation.collect.statistics import Statistics, merged
from steadytd.evaluation.estimate.requests import Request
from steadytd.evaluation.follow.online import Followed, Followers, Peaks, Table
from steadytd.evaluation.follow.pilot import PILOT_ROWS, chosen, first_rows
from steadytd.features import FeatureMap
from steadytd.logs.log import Log, LogBatch

AHEAD = 3  # batches under way at most,
AHEAD_BYTES = 64e6  # and bytes of their features, but never fewer than one batch
WANTED = ("behavior_prob", "target_prob")  # of a batch, beside what checks and the Q-form need

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Work:
    """The log's parts in order, and what is asked of them."""

    parts: Sequence[Log]
    features: FeatureMap
    plan: Plan
    asked: Sequence[Request]
    seed: int

    @property
    def online(self) -> list[Request]:
        """The learners that are followed along the log."""
        return [one for one in self.asked if one.kind == "online"]


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
    actions = ("action",) if part.schema.numeric_actions else ()
    return (*WANTED, *actions, *(("probs",) if part.schema.whole else ()))


def read(part: Log) -> Iterator[LogBatch]:
    """The batches of a part, without the columns that nobody needs."""
    return part.batches(columns=wanted(part))


@single_threaded
def follow(work: Work, threads: int | None, progress: Progress | None) -> Passed:
    """Go through all parts in order."""
    threads = threads or os.cpu_count() or 1
    plan, followers = work.plan, first_followers(work)
    rooms: deque[Room] = deque()
    sums: list[Statistics] = []
    checked: list[Checked] = []
    done = 0
    with _Chains(threads) as chains:
        for part in work.parts:
            accumulator, checks = Accumulator(plan, threads), Checks(plan)
            for batch in read(part):
                if not rooms:  # they take turns: one for each batch under way, one for the next
                    size = 8 * len(batch.obs) * plan.features
                    rooms.extend(Room() for _ in range(int(np.clip(AHEAD_BYTES // size, 1, AHEAD))))
                    rooms.append(Room())
                rooms.rotate()
                X = features_of(batch, work.features, rooms[0])
                prepared = accumulator.prepare(batch, rooms[0])
                works = accumulator.works(prepared, X)
                works.append(partial(checks.add, batch, prepared, X))
                if work.online:
                    table = Table.of(batch, X, plan.keeps_rows)
                    works += followers.works(table, batch, threads)
                chains.submit(works, len(rooms) - 1)
                done += len(batch)
                if progress is not None:
                    progress(done, plan.rows)
            chains.finish()
            if accumulator.pieces:
                sums.append(accumulator.statistics())
                checked.append(checks.found())
        if not sums:
            raise InputError("the log has no row that can be learned from.")
        left_out = sum(int(part.left_out or 0) for part in work.parts)
        return Passed(merged(sums), followers.outcomes(), left_out, Checked.merged(checked))


def follow_online(work: Work, go_on: Callable[[], None]) -> Followers:
    """The online learners at the end of the log, without the sums: the same bits."""
    followers, room = first_followers(work), Room()
    for part in work.parts:
        for batch in read(part):
            table = Table.of(batch, features_of(batch, work.features, room), work.plan.keeps_rows)
            for advance in followers.works(table, batch, shares=1):
                advance()
            go_on()
    return followers


def first_followers(work: Work) -> Followers:
    """The online learners before the first row, with automatic numbers from the first rows."""
    plan, learners, online = work.plan, [], work.online
    if online:
        few = (replace(part, batch_rows=PILOT_ROWS) for part in work.parts)
        pilot = first_rows((batch for part in few for batch in read(part)), PILOT_ROWS)
        if pilot is not None:
            rows = work.features.rows if plan.keeps_rows else None
            X = active_rows(rows(pilot.obs)) if rows else features_of(pilot, work.features, Room())
            learners = chosen(pilot, X, plan, online, work.seed)
    averaging = [one.auto_alpha for one in online]
    return Followers(learners, averaging, _peaks(work), plan.features, plan.rows)


def _peaks(work: Work) -> list[Peaks]:
    """The extremes over all rows, by a pass of its own if a law asks for them."""
    targets = len(work.plan.targets)
    if not any(one.learner and one.learner.law.needs_peaks for one in work.online):
        return [(1.0, 1.0)] * targets
    low, high = np.full(targets, np.inf), np.full(targets, -np.inf)
    for part in work.parts:
        for batch in read(replace(part)):
            assert batch.behavior_prob is not None
            taken = batch.behavior_prob > 0.0
            peak = np.maximum(batch.target_prob, batch.behavior_prob)[:, taken]
            low = np.minimum(low, peak.min(axis=1, initial=np.inf))
            high = np.maximum(high, peak.max(axis=1, initial=-np.inf))
    return list(zip(low.tolist(), high.tolist(), strict=True))


class _Chains:
    """Chains of work that go on side by side: the i-th work on each batch, in order.

    A chain is a thread of its own. None waits for the others, up to `AHEAD` batches. With one of
    the `threads` the work is done when it is given.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.pools: list[ThreadPoolExecutor] = []
        self.waiting: deque[list[Future[None]]] = deque()

    def __enter__(self) -> _Chains:
        return self

    def __exit__(self, *_: object) -> None:
        for pool in self.pools:
            pool.shutdown(cancel_futures=True)

    def submit(self, works: Sequence[Callable[[], None]], ahead: int) -> None:
        """Give every chain its work on the next batch; then wait until few are under way."""
        if self.threads == 1:
            for work in works:
                work()
            return
        self.pools += [ThreadPoolExecutor(1) for _ in works[len(self.pools) :]]
        self.waiting.append(
            [pool.submit(work) for pool, work in zip(self.pools, works, strict=True)]
        )
        self.finish(ahead)

    def finish(self, ahead: int = 0) -> None:
        """Wait until the works of at most so many batches are under way."""
        while len(self.waiting) > ahead:
            for future in self.waiting.popleft():
                future.result()
