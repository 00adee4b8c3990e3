"""What is said about the health of predictions: a frame, and a sentence for each that is ill."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from steadytd.base.finding import Finding
from steadytd.hordes.health import GROWS, LONG, RECENT, Health
from steadytd.hordes.prediction import HordePrediction

if TYPE_CHECKING:
    import polars as pl


def health_frame(predictions: Sequence[HordePrediction], health: Health, step: int) -> pl.DataFrame:
    """One row per prediction."""
    import polars as pl

    recent, long = health.numbers.means
    gone = health.numbers.diverged >= 0
    with np.errstate(all="ignore"):
        grows = _grows(health, step)
    return pl.DataFrame(
        {
            "prediction": np.arange(len(predictions)),
            "learner": [str(p.learner) for p in predictions],
            "cumulant": [p.cumulant for p in predictions],
            "policy": pl.Series([p.policy for p in predictions], dtype=pl.Int64),
            "discount": pl.Series([p.discount for p in predictions], dtype=pl.Float64),
            "error": np.where(gone, np.inf, long),
            "recent_error": np.where(gone, np.inf, recent),
            "limit": health.limit,
            "rupee": np.where(gone, np.inf, health.rupee),
            "growing": grows,
            "diverged_at": pl.Series(
                [int(n) if n >= 0 else None for n in health.numbers.diverged], dtype=pl.Int64
            ),
        }
    )


def _grows(health: Health, step: int) -> np.ndarray:
    recent, long = health.numbers.means
    gone = health.numbers.diverged >= 0
    times = np.where(np.isinf(health.rupee), 1.0, GROWS)  # so large that any growth is too much
    above = recent > np.maximum(times * long, health.numbers.scale[0])
    return np.asarray((step > 2 * RECENT) & ~gone & above)


def _large(health: Health, step: int) -> np.ndarray:
    """Above what values within the returns can have; without a cumulant nothing is known of them.

    That a prediction has diverged, or grows, says it all.
    """
    recent, limit, gone = health.numbers.means[0], health.limit, health.numbers.diverged >= 0
    large = (recent > limit) & (limit > 0.0) & ~gone & ~_grows(health, step)
    return np.asarray((step > 2 * RECENT) & large)


def warnings_of(predictions: Sequence[HordePrediction], health: Health, step: int) -> list[Finding]:
    """A sentence for each prediction that has diverged, or whose error grows or is too large."""
    numbers = health.numbers
    found = []
    for i in np.flatnonzero(numbers.diverged >= 0).tolist():
        at = int(numbers.diverged[i])
        found.append(Finding(
            code="prediction_diverged", target=str(i), level="warning",
            text=f"Prediction {i} ({predictions[i]}) has diverged: its TD error was not a finite "
            f"number at step {at}, the first time. The other predictions are not touched by it.",
            remedy="Give it a smaller step size, or a learner that is stable off-policy.",
            numbers={"prediction": i, "step": at},
        ))  # fmt: skip
    with np.errstate(all="ignore"):
        growing = np.flatnonzero(_grows(health, step)).tolist()
        large = np.flatnonzero(_large(health, step)).tolist()
    for i in growing:
        recent, long = numbers.means[:, i].tolist()
        found.append(Finding(
            code="prediction_grows", target=str(i), level="warning",
            text=f"The unsigned error of prediction {i} ({predictions[i]}) grows: it is "
            f"{recent:.3g} over about the last {RECENT} steps and {long:.3g} over about the last "
            f"{min(LONG, step)}.",
            remedy="If it goes on, give it a smaller step size, or a learner that is stable "
            "off-policy.",
            numbers={"prediction": i, "recent": recent, "long": long},
        ))  # fmt: skip
    for i in large:
        recent, limit = float(numbers.means[0, i]), float(health.limit[i])
        largest, _, steps = numbers.scale[:, i].tolist()
        found.append(Finding(
            code="prediction_large", target=str(i), level="warning",
            text=f"The unsigned error of prediction {i} ({predictions[i]}) is {recent:.3g} over "
            f"about the last {RECENT} steps. Values within the range of its returns have at most "
            f"{limit:.3g} (cumulants up to {largest:.3g}, {steps:.3g} discounted steps).",
            remedy="Give it a smaller step size, a learner that is stable off-policy, or start "
            "weights of the right size.",
            numbers={"prediction": i, "recent": recent, "limit": limit},
        ))  # fmt: skip
    return found
