"""How well the log covers what a target policy would do: its ratios, added up along the rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.evaluation.intervals import mean_interval
from steadytd.evaluation.rows import BLOCKS, LARGEST, Division, RowTable

BINS = 62  # of rho: 0, then bins that begin at 2^e and 1.5 2^e, the middle one at 1
HALVES = np.arange(1, BINS + 1) - BINS // 2
EDGES = 2.0 ** (HALVES // 2) * np.where(HALVES % 2 == 0, 1.0, 1.5)
HORIZON = 1000  # steps of an episode with their own normaliser in snpdis
ONE = 1e-12  # distance from 1 within which a ratio is 1, up to rounding


@dataclass
class RatioSums:
    """Sums over rows that need no features; those of several parts of a log are merged.

    ============== ================ ===========================================================
    `episodes`     [2]              episodes, and the sum of their weights
    `cut`          [2]              episodes that were cut off, and the discount left there
    `extent`       [2]              largest discount, longest episode
    `rewards`      [R, 2]           minus the least, and the largest of each reward
    `last`         [1]              the largest number of an episode
    `rows`         [2, blocks]      rows, and the sum of their weights
    `rho`          [T, blocks]      weighted sums of ratios
    `totals`       [T, 4]           of (w rho)^2, of rho = 0, of products over episodes, squared
    `largest`      [T, 2]           the largest ratio, and the number of its row
    `histogram`    [T, bins]        rows by ratio
    `by_step`      [T, 2, horizon]  of snpdis: products at step t, and those of episodes that ended
                                    after t steps
    `earned`       [R, T, horizon]  discounted products times the reward at step t
    ============== ================ ===========================================================
    """

    episodes: Floats
    cut: Floats
    extent: Floats
    rewards: Floats
    last: Floats
    rows: Floats
    rho: Floats
    totals: Floats
    largest: Floats
    histogram: Floats
    by_step: Floats
    earned: Floats

    @staticmethod
    def of(targets: int, rewards: int = 1) -> RatioSums:
        """No rows yet."""
        return RatioSums(
            np.zeros(2), np.zeros(2), np.zeros(2), np.full((rewards, 2), -np.inf),
            np.zeros(1), np.zeros((2, BLOCKS)), np.zeros((targets, BLOCKS)), np.zeros((targets, 4)),
            np.tile([0.0, -1.0], (targets, 1)), np.zeros((targets, BINS)),
            np.zeros((targets, 2, HORIZON)), np.zeros((rewards, targets, HORIZON)),
        )  # fmt: skip

    def add(self, table: RowTable, division: Division, products: Floats) -> None:
        """Add a table; `products` [T, n] are w rho_0 ... rho_t of every row, w its weight."""
        self.episodes += table.first.sum(), table.first @ table.weight
        left = (table.discounted * table.discount)[table.cut]
        self.cut += len(left), left.sum()
        self.extent = np.maximum(self.extent, [table.discount.max(), table.step.max() + 1.0])
        extremes = np.stack([(-table.rewards).max(axis=1), table.rewards.max(axis=1)], axis=1)
        self.rewards = np.maximum(self.rewards, extremes)
        self.last = np.maximum(self.last, table.episode[-1])
        block = division.block(table.unit)
        for i, weights in enumerate((None, table.weight)):
            self.rows[i] += np.bincount(block, weights, BLOCKS)
        for t, rho in enumerate(table.rho):
            weighted = rho * table.weight
            self.rho[t] += np.bincount(block, weighted, BLOCKS)
            bins = np.clip(np.searchsorted(EDGES, rho, side="right"), 1, BINS - 1)
            self.histogram[t] += np.bincount(np.where(rho == 0.0, 0, bins), minlength=BINS)
            ends = products[t][table.last]
            self.totals[t] += weighted @ weighted, (rho == 0.0).sum(), ends.sum(), ends @ ends
            self._add_steps(t, table, products[t])
            largest = int(rho.argmax())
            if rho[largest] > self.largest[t, 0]:
                self.largest[t] = rho[largest], table.number[largest]

    def _add_steps(self, t: int, table: RowTable, product: Floats) -> None:
        """The sums by step; rewards beyond the horizon are added to its last step."""
        step = np.minimum(table.step, HORIZON - 1)
        for r, earned in enumerate(table.discounted * product * table.rewards):
            self.earned[r, t] += np.bincount(step, earned, HORIZON)
        inside = table.step < HORIZON
        self.by_step[t, 0] += np.bincount(table.step[inside], product[inside], HORIZON)
        ended = table.last & (table.step + 1 < HORIZON)
        self.by_step[t, 1] += np.bincount(table.step[ended] + 1, product[ended], HORIZON)

    def merge(self, other: RatioSums) -> None:
        """Add the sums of the next part of the log."""
        larger = other.largest[:, 0] > self.largest[:, 0]
        self.largest[larger] = other.largest[larger]
        for name in ("extent", "rewards", "last"):
            setattr(self, name, np.maximum(getattr(self, name), getattr(other, name)))
        for name in ("episodes", "cut", "rows", "rho", "totals", "histogram", "by_step", "earned"):
            own = getattr(self, name)
            own += getattr(other, name)

    def of_reward(self, r: int) -> RatioSums:
        """The sums of one reward."""
        return replace(self, rewards=self.rewards[r : r + 1], earned=self.earned[r : r + 1])

    @property
    def whole_steps(self) -> bool:
        """Whether every episode has one step, and none is cut off."""
        return bool(self.extent[1] <= 1.0 and not self.cut[0])

    @property
    def reward_range(self) -> tuple[float, float]:
        """The least and the largest value of the first reward."""
        return -float(self.rewards[0, 0]), float(self.rewards[0, 1])

    @property
    def n_rows(self) -> int:
        """Number of transitions."""
        return int(self.rows[0].sum())

    @property
    def n_episodes(self) -> int:
        """Number of episodes."""
        return int(self.episodes[0])

    def step_means(self, target: int) -> tuple[Floats, Floats]:
        """Of snpdis: N_t / D_t and 1 / D_t by step; 0 where no product is above 1e-100."""
        end = min(int(self.extent[1]) + 1, HORIZON)
        N, (D, ended) = self.earned[0, target, :end], self.by_step[target, :, :end]
        D = D + np.cumsum(ended)
        inverse = np.divide(1.0, D, out=np.zeros_like(D), where=D > 1.0 / LARGEST)
        return N * inverse, inverse


@dataclass(frozen=True)
class Overlap:
    """The ratios rho = pi/mu of one target.

    `ess_step` is (sum rho)^2 / sum rho^2 over rows, the effective sample size: so many rows of the
    target's own would be as good. `ess_trajectory` is that of episodes, with products of ratios.
    `rho_mean` should be 1, and so should `product_mean`, the mean product of an episode's ratios:
    where it is far below 1, the episodes that matter most to the target are not in the log.
    """

    target: str
    rows: int
    episodes: int
    ess_step: float
    ess_step_share: float
    ess_trajectory: float
    ess_trajectory_share: float
    rho_max: float
    rho_max_row: int
    rho_mean: float
    rho_mean_lo: float
    rho_mean_hi: float
    zero_share: float
    product_mean: float

    @property
    def as_logged(self) -> bool:
        """Whether every ratio is 1: none is larger, and so is their mean."""
        return max(abs(self.rho_mean - 1.0), abs(self.rho_max - 1.0)) <= ONE

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def overlap(s: RatioSums, target: int, name: str) -> Overlap:
    """The overlap of one target."""
    squared, zeros, product, product_squared = s.totals[target].tolist()
    rho, rows, episodes = float(s.rho[target].sum()), s.n_rows, s.n_episodes
    used, weight = s.rows[0] > 0.0, float(s.rows[1].sum())
    limits = mean_interval(s.rho[target][used], s.rows[1][used], 0.0005)
    ess_step, ess_trajectory = _effective(rho, squared), _effective(product, product_squared)
    return Overlap(
        target=name,
        rows=rows,
        episodes=episodes,
        ess_step=ess_step,
        ess_step_share=ess_step / rows,
        ess_trajectory=ess_trajectory,
        ess_trajectory_share=ess_trajectory / max(episodes, 1),
        rho_max=float(s.largest[target, 0]),
        rho_max_row=int(s.largest[target, 1]),
        rho_mean=rho / weight,
        rho_mean_lo=limits.lo,
        rho_mean_hi=limits.hi,
        zero_share=zeros / rows,
        product_mean=product / max(float(s.episodes[1]), 1e-300),
    )


def _effective(total: float, squares: float) -> float:
    return float(total**2 / squares) if squares > 0.0 else 0.0


def histogram(s: RatioSums, targets: tuple[str, ...]) -> list[dict[str, Any]]:
    """Rows by ratio: target, lo, hi, rows. The bin lo = hi = 0 holds the ratios that are 0."""
    result = []
    for t, name in enumerate(targets):
        for i in np.flatnonzero(s.histogram[t]).tolist():
            lo, hi = (0.0, 0.0) if i == 0 else (float(EDGES[i - 1]), float(EDGES[i]))
            rows = int(s.histogram[t, i])
            result.append({"target": name, "lo": lo, "hi": hi, "rows": rows})
    return result
