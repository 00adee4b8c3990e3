"""The two passes over a log: sums by group of units, then scores by unit.

The first pass adds up the equations, what is known of ratios and probabilities, and a sample of
episodes. Weights are solved from it. The second pass makes the scores of all rows with them. The
tables of a log that fits into memory are kept between the passes; a larger log is read again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats
from steadytd.evaluation.action_equations import ActionEquations
from steadytd.evaluation.calibration import ProbabilitySums
from steadytd.evaluation.equations import Equations
from steadytd.evaluation.overlap import RatioSums
from steadytd.evaluation.rows import (
    Division,
    Rewards,
    RowTable,
    Where,
    is_sparse,
    recursion,
    tables,
)
from steadytd.evaluation.sample import EpisodeSample
from steadytd.evaluation.scores import RowSums, Units, add_rows
from steadytd.evaluation.sums import TD, Sums, System
from steadytd.features import FeatureMap
from steadytd.logs.log import Log, LogBatch

KEPT_BYTES = 160e6  # of tables that stay in memory between the passes
SAMPLE_ROWS, SAMPLE_BYTES = 100_000, 32e6  # of sampled whole episodes
WANTED = ("behavior_prob", "target_prob")  # of a batch, beside what the checks and q need


@dataclass(frozen=True)
class ActionPlan:
    """The targets known as a whole, by their places among all, and the number of actions."""

    places: tuple[int, ...]
    actions: int


@dataclass(frozen=True)
class Plan:
    """Everything that decides the passes over a log, but for the log itself."""

    targets: tuple[str, ...]
    features: FeatureMap
    division: Division
    where: Where = "start"
    systems: tuple[System, ...] = (TD,)
    lams: tuple[float, ...] = (0.0, 0.5, 0.8, 0.95, 1.0)
    seed: int = 0
    by_action: ActionPlan | None = None
    behavior_actions: int = 0  # how many, where the behaviour's whole distribution is logged
    rewards: Rewards = ()  # made of further columns; without them it is the log's own

    @property
    def n_rewards(self) -> int:
        """How many rewards there are."""
        return max(len(self.rewards), 1)

    @property
    def average(self) -> bool:
        """Whether values are rewards per step."""
        return self.where == "average"

    def row_bytes(self, n_obs: int) -> float:
        """How much memory a row of a table takes, about."""
        features = self.features
        active = 1.5 * features.most_active if is_sparse(features) else features.n_features
        probabilities = 0 if self.by_action is None else 2 * self.by_action.actions
        seen = (1 + self.average) * (active + n_obs)  # next states are not shared
        others = seen + 12 + 2 * self.n_rewards
        return 8.0 * (others + len(self.targets) * (1 + probabilities))

    def keeps(self, n_obs: int) -> bool:
        """Whether all tables of the log stay in memory."""
        return self.division.rows * self.row_bytes(n_obs) <= KEPT_BYTES

    def new_sums(self, features: FeatureMap, systems: Sequence[System]) -> Sums:
        """Empty sums for a feature map."""
        d, T, sparse = features.n_features + self.average, len(self.targets), is_sparse(features)
        return Sums(d, T, systems, sparse, self.n_rewards)


def wanted(part: Log) -> tuple[str, ...]:
    """The optional fields of a batch that are needed: actions where they are single numbers."""
    actions = ("action",) if part.schema.numeric_actions else ()
    return (*WANTED, *actions, *(("probs",) if part.schema.whole else ()))


def read(part: Log) -> Iterator[LogBatch]:
    """The batches of a part, without the columns that nobody needs."""
    return part.batches(columns=wanted(part))


def read_rows(part: Log, plan: Plan) -> Iterator[RowTable]:
    """The tables of a part without features."""
    return tables(read(part), plan.division, plan.rewards)


def read_tables(part: Log, plan: Plan) -> Iterator[RowTable]:
    """The tables of a part with their features."""
    for table in read_rows(part, plan):
        yield table.with_features(plan.features, plan.average)


@dataclass
class FirstPass:
    """What the first pass makes of a log or a part of it."""

    sums: Sums
    ratios: RatioSums
    probabilities: ProbabilitySums
    sample: EpisodeSample
    by_action: ActionEquations | None
    left_out: int = 0
    tables: list[RowTable] = field(default_factory=list)  # where they are kept

    @staticmethod
    def of(plan: Plan, n_obs: int) -> FirstPass:
        """Nothing yet."""
        T, d, R = len(plan.targets), plan.features.n_features + plan.average, plan.n_rewards
        by_action = None
        if plan.by_action is not None:
            own = plan.by_action
            by_action = ActionEquations(own.places, own.actions, d, plan.where, R)
        rows = int(min(SAMPLE_ROWS, SAMPLE_BYTES / (8.0 * (2 * n_obs + 14 + T + 2 * R))))
        return FirstPass(
            plan.new_sums(plan.features, plan.systems),
            RatioSums.of(T, R),
            ProbabilitySums(d, plan.behavior_actions),
            EpisodeSample(plan.seed, T, rows, plan.division.rows, plan.average, R),
            by_action,
        )

    def add_ratios(self, table: RowTable, plan: Plan, products: Floats) -> None:
        """Add what needs no features; `products` [T, n] are w rho_0 ... rho_t."""
        self.ratios.add(table, plan.division, products)
        self.sample.add(table, products)

    def add_actions(self, table: RowTable, plan: Plan) -> None:
        """Add what is known of actions."""
        self.probabilities.add(table, plan.division)
        if self.by_action is not None:
            self.by_action.add(table)

    def equations(self, plan: Plan) -> Equations:
        """The equations of all rows."""
        return Equations(self.sums, plan.where, plan.division)

    def of_reward(self, r: int) -> FirstPass:
        """What the pass makes of one of the rewards."""
        return replace(
            self,
            sums=self.sums.of_reward(r),
            ratios=self.ratios.of_reward(r),
            sample=self.sample.of_reward(r),
            by_action=None if self.by_action is None else self.by_action.of_reward(r),
        )

    def merged(self, other: FirstPass) -> FirstPass:
        """Both parts of the log, in this order."""
        self.sums.merge(other.sums)
        self.ratios.merge(other.ratios)
        self.probabilities.merge(other.probabilities)
        self.sample.merge(other.sample)
        if self.by_action is not None and other.by_action is not None:
            self.by_action.merge(other.by_action)
        self.left_out += other.left_out
        return self


def first_pass(
    part: Log,
    plan: Plan,
    also: Callable[[RowTable], Sequence[Callable[[], None]]] = lambda table: (),
    pool: ThreadPoolExecutor | None = None,
    keep: bool = False,
) -> FirstPass:
    """Go over a part of a log; what `also` makes of every table is done side by side.

    With `keep` the tables stay in memory.
    """
    found = FirstPass.of(plan, part.n_obs)
    carry = np.ones(len(plan.targets))
    for table in read_tables(part, plan):
        decay = np.where(table.first, 0.0, table.rho)
        products = recursion(decay, table.rho * table.first * table.weight, carry)
        own: list[Callable[[], None]] = [
            partial(found.sums.add, table),
            partial(found.add_ratios, table, plan, products),
            partial(found.add_actions, table, plan),
        ]
        side_by_side([*own, *also(table)], pool)
        if keep:
            found.tables.append(table)
    found.left_out = int(part.left_out or 0)
    return found


def side_by_side(works: Sequence[Callable[[], None]], pool: ThreadPoolExecutor | None) -> None:
    """Do works that share nothing; all are done at the end."""
    if pool is None:
        for work in works:
            work()
    else:
        for future in [pool.submit(work) for work in works]:
            future.result()


def part_sums(
    tables: Iterable[RowTable],
    programs: Sequence[RowSums],
    units: Units,
    pool: ThreadPoolExecutor | None = None,
    shares: int = 1,
) -> dict[str, NDArray[Any]]:
    """The second pass of a part: what copies of all programs add up, in shares side by side."""
    copies = copy.deepcopy(list(programs))
    for one in copies:
        vars(one).update({name: np.zeros_like(sums) for name, sums in one.arrays().items()})
    some = [copies[i::shares] for i in range(min(shares, len(copies)))]
    for table in tables:
        side_by_side([partial(add_rows, table, one, units) for one in some], pool)
    return {f"{i}/{k}": v for i, one in enumerate(copies) for k, v in one.arrays().items()}


def merge_sums(programs: Sequence[RowSums], found: dict[str, NDArray[Any]]) -> None:
    """Add the sums of a part to those of the programs."""
    for i, one in enumerate(programs):
        one.merge({name: found[f"{i}/{name}"] for name in one.arrays()})
