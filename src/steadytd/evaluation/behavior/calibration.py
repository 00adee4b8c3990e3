"""Are estimated probabilities right as often as they say? Predictions against what happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from steadytd.base.arrays import Floats, Longs

BINS = 10
ABSOLUTE, RELATIVE = 0.05, 0.25  # a bin may be off by the smaller of the two, and by chance
CHANCE = 3.0  # standard errors


@dataclass(frozen=True)
class Calibration:
    """Held-out predictions of all actions, in ten bins, against the actions that were taken.

    `error` is the expected calibration error, sum_b n_b |mean prediction - frequency| / (2 n) over
    the bins b of all n K pairs of row and action; for two actions it is the usual one. In every
    bin of a `calibrated` estimate the frequency differs from the mean prediction by at most the
    smaller of 0.05 and a quarter of the prediction, and three standard errors more.
    """

    rows: int
    error: float
    calibrated: bool
    log_loss: float  # mean -log(probability of the action taken)
    log_loss_constant: float  # the same for the actions' frequencies, whatever the observation
    floored: int  # rows of the sample whose probability was raised to the floor
    table: tuple[dict[str, float | int | bool], ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {
            "rows": self.rows,
            "calibration_error": self.error,
            "calibrated": self.calibrated,
            "log_loss": self.log_loss,
            "log_loss_constant": self.log_loss_constant,
            "floored": self.floored,
            "bins": [dict(row) for row in self.table],
        }


def calibrate(predicted: Floats, taken: Longs, floor: float) -> Calibration:
    """Compare predictions [n, K] with the numbers [n] of the actions taken (-1: none of the K)."""
    n, K = predicted.shape
    happened = taken[:, None] == np.arange(K)
    number = np.minimum((predicted * BINS).astype(np.int64), BINS - 1).ravel()
    count = np.bincount(number, minlength=BINS)
    some = np.maximum(count, 1)
    mean = np.bincount(number, predicted.ravel(), minlength=BINS) / some
    frequency = np.bincount(number, happened.ravel(), minlength=BINS) / some
    spread = (predicted * (1.0 - predicted)).ravel()
    deviation = np.sqrt(np.bincount(number, spread, minlength=BINS)) / some
    gap = np.abs(mean - frequency)
    # one event more or less is chance in any bin, also where every prediction is 0 or 1
    allowed = np.minimum(ABSOLUTE, RELATIVE * mean) + CHANCE * deviation + 1.0 / some
    fine = (gap <= allowed) | (count == 0)
    own = np.where(taken >= 0, predicted[np.arange(n), taken], 0.0)
    shares = np.bincount(taken[taken >= 0], minlength=K) / n
    shares = shares[shares > 0]
    table = tuple(
        {
            "low": b / BINS,
            "high": (b + 1) / BINS,
            "pairs": int(count[b]),
            "predicted": float(mean[b]),
            "happened": float(frequency[b]),
            "fine": bool(fine[b]),
        }
        for b in range(BINS)
    )
    return Calibration(
        rows=n,
        error=float((count * gap).sum() / (2.0 * n)),
        calibrated=bool(fine.all()),
        log_loss=float(-np.log(np.maximum(own, floor)).mean()),
        log_loss_constant=float(-(shares * np.log(shares)).sum()),
        floored=int((own < floor).sum()),
        table=table,
    )
