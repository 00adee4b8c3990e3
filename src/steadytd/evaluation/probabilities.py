"""What an evaluation says about the log's probabilities and returns, beside the values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from steadytd.evaluation.collect.checks import Checked, by_unit, unit_of_pieces
from steadytd.evaluation.collect.outcomes import Sampled
from steadytd.evaluation.collect.statistics import Statistics
from steadytd.evaluation.estimate.calibration import LogCalibration, Mixed, calibrate
from steadytd.evaluation.estimate.estimators import Estimator
from steadytd.evaluation.estimate.quantiles import Spreads, spreads
from steadytd.evaluation.estimate.sensitivity import (
    EpisodeRows,
    Question,
    Sensitivity,
    answer,
    ranges,
    rows_of,
)
from steadytd.evaluation.judge.decide import Decision, Side
from steadytd.evaluation.judge.log_findings import LogFacts


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
        leaning=by_unit(a.leaning, unit),
        plain=by_unit(a.plain, unit),
        possible=by_unit(a.possible, unit),
        bins=by_unit(a.bins, unit),
        moments=by_unit(a.moments, unit),
    )
    mixed = a.moments.shape[1] < a.possible.shape[1] * units.x.shape[1]
    return calibrate(summed, units.counts[:, 0], Mixed(mixed, a.plain.shape[1] < units.x.shape[1]))


class Asked(NamedTuple):
    """What sensitivity and spread of all targets are found from."""

    sample: Sampled
    rows: Callable[[int], EpisodeRows]  # of a target
    facts: LogFacts

    @staticmethod
    def of(sample: Sampled, e: Estimator, facts: LogFacts) -> Asked:
        """The rows have the features that are independent in the log."""
        return Asked(sample, rows_of(sample, e.kept, e.start_mean), facts)


def examine(asked: Asked, target: int, side: Side, d: Decision) -> tuple[Sensitivity, Spreads]:
    """Sensitivity of the decision about one target, and spread of its returns."""
    sample, rows_for, f = asked
    rows = rows_for(target)
    found, sharp = ranges(sample, target, rows)
    question = Question(
        side.name, side.rule.value, side.rule.value - d.difference, d.decision != "undecided"
    )
    said = answer(question, found, sharp and not f.continuing, len(rows.reward))
    return said, spreads(sample, target, side.name, f.continuing)
