"""What an evaluation says about the log's probabilities and returns, beside the values."""

from __future__ import annotations

from dataclasses import dataclass

from steadytd.evaluation.calibration import LogCalibration, calibrate
from steadytd.evaluation.decide import Decision
from steadytd.evaluation.evidence import Evidence
from steadytd.evaluation.facts import LogFacts
from steadytd.evaluation.quantiles import Spreads, spreads
from steadytd.evaluation.sensitivity import Question, Sensitivity, answer, ranges, rows_of


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
    found, sharp = ranges(outcomes, target, rows)
    question = Question(d.target, value, value - d.difference, d.decision != "undecided")
    said = answer(question, found, sharp and not f.continuing, len(rows.reward))
    return said, spreads(outcomes, target, d.target, f.continuing)
