"""What an evaluation says about the log's probabilities and returns, beside the values."""

from __future__ import annotations

from dataclasses import dataclass

from steadytd.evaluation.calibration import LogCalibration, calibrate
from steadytd.evaluation.decide import Decision
from steadytd.evaluation.evidence import Evidence
from steadytd.evaluation.facts import LogFacts
from steadytd.evaluation.quantiles import Spreads, spreads
from steadytd.evaluation.sensitivity import Sensitivity, extremes, rows_of, sensitivity


@dataclass(frozen=True)
class Probabilities:
    """Calibration of the logged probabilities; by target, sensitivity and the returns' spread."""

    calibration: LogCalibration
    sensitivity: dict[str, Sensitivity]
    spreads: dict[str, Spreads]


def calibration(log: Evidence, f: LogFacts) -> LogCalibration:
    """Of the logged probabilities; estimated ones have a calibration of their own."""
    if f.behavior_estimated:
        reason = "the probabilities are estimates: see behavior_estimated"
        return LogCalibration(0, False, reason=reason)
    return calibrate(log.first.probabilities)


def examine(
    log: Evidence, f: LogFacts, target: int, value: float, d: Decision
) -> tuple[Sensitivity, Spreads]:
    """Sensitivity of the decision about one target of this value, and spread of its returns."""
    e, outcomes = log.equations, log.first.sample.outcomes
    rows = rows_of(log.sampled, e.kept, e.start_mean, target)
    extreme, sharp = extremes(outcomes, target, rows)
    decided, sharp = d.decision != "undecided", sharp and not f.continuing
    found = sensitivity(d.target, value, d.difference, decided, extreme, sharp)
    return found, spreads(outcomes, target, d.target, f.continuing)
