"""How well the log covers what a target policy would do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.evaluation.collect.statistics import BINS, Statistics
from steadytd.evaluation.estimate.bootstrap import NONE, Interval, student

ONE = 1e-12  # distance from 1 within which a ratio is 1, up to rounding


@dataclass(frozen=True)
class Overlap:
    """The ratios rho = pi/mu of one target.

    `ess_step` is (sum rho)^2 / sum rho^2 over rows: so many rows of the target's own data would be
    as good. `ess_trajectory` is the same over episodes, with the product of an episode's ratios.
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
    violations: int
    violation_rows: list[int]

    @property
    def as_logged(self) -> bool:
        """Whether every ratio is 1: none is larger, and so is their mean."""
        return max(abs(self.rho_mean - 1.0), abs(self.rho_max - 1.0)) <= ONE

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def overlap(u: Statistics, target: int, name: str) -> Overlap:
    """The overlap of one target, from the sums of units."""
    sums = u.ratios[:, target]
    rho, squared, zeros, _, product, product_squared, _ = sums.sum(axis=0)
    rows, episodes = u.rows, u.episodes
    limits = mean_interval(sums[:, 0], u.counts[:, 0])
    ess_step, ess_trajectory = _effective(rho, squared), _effective(product, product_squared)
    return Overlap(
        target=name,
        rows=rows,
        episodes=episodes,
        ess_step=ess_step,
        ess_step_share=ess_step / rows,
        ess_trajectory=ess_trajectory,
        ess_trajectory_share=ess_trajectory / max(episodes, 1),
        rho_max=float(sums[:, 3].max()),
        rho_max_row=int(u.largest_row[target]),
        rho_mean=float(rho / rows),
        rho_mean_lo=limits.lo,
        rho_mean_hi=limits.hi,
        zero_share=float(zeros / rows),
        product_mean=float(product / max(episodes, 1)),
        violations=int(u.violations[target]),
        violation_rows=[int(r) for r in u.violating[target] if r >= 0],
    )


def mean_interval(totals: Floats, rows: Floats) -> Interval:
    """The 99.9 % interval of a mean over rows, by Student's t over units.

    The error is the root of sum_u (total_u - mean rows_u)^2 n/(n - 1), divided by all rows. So
    high a level is beyond what some hundred resamples can show.
    """
    n = len(totals)
    if n < 2:
        return NONE
    mean = totals.sum() / rows.sum()
    error = np.sqrt(((totals - mean * rows) ** 2).sum() * n / (n - 1.0)) / rows.sum()
    reach = float(student(0.9995, n - 1) * error)
    return Interval(float(mean) - reach, float(mean) + reach)


def _effective(total: float, squares: float) -> float:
    return float(total**2 / squares) if squares > 0.0 else 0.0


def histogram(u: Statistics, targets: tuple[str, ...]) -> list[dict[str, Any]]:
    """Rows by ratio: target, lo, hi, rows. The bin lo = hi = 0 holds the ratios that are 0."""
    half = np.arange(1, BINS + 1) - BINS // 2
    edges = 2.0 ** (half // 2) * np.where(half % 2 == 0, 1.0, 1.5)
    result = []
    for t, name in enumerate(targets):
        for i in np.flatnonzero(u.histogram[t]).tolist():
            lo, hi = (0.0, 0.0) if i == 0 else (float(edges[i - 1]), float(edges[i]))
            number = int(u.histogram[t, i])
            result.append({"target": name, "lo": lo, "hi": hi, "rows": number})
    return result
