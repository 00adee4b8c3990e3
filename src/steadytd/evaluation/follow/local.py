"""Both passes over a log on one machine: sums and online learners side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain

import numpy as np

from steadytd.base.errors import InputError
from steadytd.base.parallel import single_threaded
from steadytd.evaluation.follow.online import Followed, Followers, Peaks
from steadytd.evaluation.follow.pilot import PILOT_ROWS, chosen
from steadytd.evaluation.passes import (
    FirstPass,
    Plan,
    first_pass,
    merge_sums,
    part_sums,
    read,
    read_tables,
)
from steadytd.evaluation.requests import Request
from steadytd.evaluation.rows import RowTable, tables
from steadytd.evaluation.scores import RowSums, Units
from steadytd.logs.log import Log

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Work:
    """The log's parts in order, and what is asked of them."""

    parts: Sequence[Log]
    plan: Plan
    asked: Sequence[Request]

    @property
    def online(self) -> list[Request]:
        """The learners that are followed along the log."""
        return [one for one in self.asked if one.kind == "online"]


@dataclass
class LocalPasses:
    """The passes on threads of this machine; `first` and `online` are what the first one found."""

    work: Work
    threads: int | None = None
    progress: Progress | None = None
    first: FirstPass = field(init=False)
    online: list[Followed] = field(init=False)
    _done: int = 0
    _tables: list[list[RowTable]] = field(default_factory=list)

    @property
    def _shares(self) -> int:
        return self.threads or os.cpu_count() or 1

    @single_threaded
    def run(self) -> None:
        """Make the first pass."""
        plan, followers = self.work.plan, first_followers(self.work)
        kept = plan.keeps(self.work.parts[0].n_obs)

        def also(table: RowTable) -> Sequence[Callable[[], None]]:
            self._tell(len(table), kept)
            return followers.works(table, self._shares)

        with ThreadPoolExecutor(self._shares) as pool:
            own = pool if self._shares > 1 else None
            found = [first_pass(part, plan, also, own, kept) for part in self.work.parts]
        self._tables = [one.tables for one in found] if kept else []
        self.first = reduce(FirstPass.merged, found)
        if not self.first.ratios.n_rows:
            raise InputError("the log has no row that can be learned from.")
        self.online = followers.outcomes()

    def sweep(self, programs: Sequence[RowSums], units: Units) -> None:
        """Make the second pass: over the tables that were kept, else over the log once more."""
        with ThreadPoolExecutor(self._shares) as pool:
            own = pool if self._shares > 1 else None
            for tables in self._tables or map(self._read, self.work.parts):
                found = part_sums(tables, programs, units, own, self._shares)
                merge_sums(programs, found)

    def _read(self, part: Log) -> Iterator[RowTable]:
        for table in read_tables(part, self.work.plan):
            self._tell(len(table), False)
            yield table

    def _tell(self, rows: int, kept: bool) -> None:
        """Say how far it is: a log that is read twice is half done after the first time."""
        self._done += rows * (2 if kept else 1)
        total = self.work.plan.division.rows
        if self.progress is not None:
            self.progress(min(self._done // 2, total), total)


def follow_online(work: Work, followers: Followers, go_on: Callable[[], None]) -> None:
    """Lead the online learners to the end of the log, without the sums: the same bits."""
    for part in work.parts:
        for table in read_tables(part, work.plan):
            for advance in followers.works(table):
                advance()
            go_on()


def first_followers(work: Work) -> Followers:
    """The online learners before the first row, with automatic numbers from the first rows."""
    plan, learners, online = work.plan, [], work.online
    if online:
        few = (replace(part, batch_rows=PILOT_ROWS) for part in work.parts)
        learners = chosen(chain(*(tables(read(part), plan.division) for part in few)), plan, online)
    averaging = [one.auto_alpha for one in online]
    rows = plan.division.rows
    return Followers(learners, averaging, _peaks(work), plan.features.n_features, rows)


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
