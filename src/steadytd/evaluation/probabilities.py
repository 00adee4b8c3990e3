"""What an evaluation says about the log's probabilities and returns, beside the values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from steadytd.evaluation.collect.checks import Checked, by_unit, unit_of_pieces
from steadytd.evaluation.collect.outcomes import RETURN, Sampled
from steadytd.evaluation.collect.statistics import Statistics
from steadytd.evaluation.estimate.calibration import LogCalibration, calibrate
from steadytd.evaluation.estimate.estimators import Estimator
from steadytd.evaluation.estimate.quantiles import Spreads, spreads
from steadytd.evaluation.estimate.sensitivity import (
    EpisodeRows,
    Question,
    Sensitivity,
    answer,
    on_policy,
    ranges,
    rows_of,
)
from steadytd.evaluation.judge.log_findings import MUCH_LEFT, LogFacts
from steadytd.evaluation.judge.recommend import Recommendation


@dataclass(frozen=True)
class Probabilities:
    """Calibration of the logged probabilities; by target, sensitivity and the returns' spread."""

    calibration: LogCalibration
    sensitivity: dict[str, Sensitivity]
    spreads: dict[str, Spreads]


def calibration(
    checked: Checked, pieces: Statistics, units: Statistics, f: LogFacts
) -> LogCalibration:
    """Of the logged probabilities; estimated ones have a calibration of their own."""
    if f.behavior_estimated:
        reason = "the probabilities are estimates: see behavior_estimated"
        return LogCalibration(0, False, reason=reason)
    a, unit = checked.actions, unit_of_pieces(pieces, units)
    summed = a._replace(
        taken=by_unit(a.taken, unit),
        possible=by_unit(a.possible, unit),
        bins=by_unit(a.bins, unit),
        moments=by_unit(a.moments, unit),
    )
    mixed = a.moments.shape[1] < a.possible.shape[1] * units.x.shape[1]
    return calibrate(summed, units.counts[:, 0], mixed)


class Asked(NamedTuple):
    """What sensitivity and spread of all targets are found from."""

    sample: Sampled
    estimator: Estimator
    facts: LogFacts


def examine(asked: Asked, target: int, r: Recommendation) -> tuple[Sensitivity, Spreads]:
    """Sensitivity and spread of one target."""
    sample, e, f = asked
    rows = rows_of(sample, target, e.kept, e.start_mean)
    found, sharp = ranges(sample, target, rows)
    sharp = sharp and not f.continuing
    if sharp and found is not None:
        behavior, value = float(sample.outcomes[:, RETURN].mean()), found(1.0, False)
    else:
        behavior, value = _behavior(sample, rows, f), r.value
    question = Question(r.target, value, r.lo, r.hi, behavior)
    said = answer(question, found, sharp, len(rows.reward))
    return said, spreads(sample, target, r.target, f.continuing)


def _behavior(sample: Sampled, rows: EpisodeRows, f: LogFacts) -> float:
    """The mean return of the logged episodes; by the features where returns are cut, or endless."""
    cut = f.truncated > 0 and f.discount_left > MUCH_LEFT
    if f.continuing or cut or not len(sample.outcomes):
        return on_policy(rows)
    return float(sample.outcomes[:, RETURN].mean())
