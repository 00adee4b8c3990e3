"""Estimators that are solved from the equations: learners' fixed points, and marginal ratios.

A learner's fixed point is (A + eta G + ridge I) w = b, J = phi0.w / n, phi0 the sum of x at the n
starts. With M = A + eta G + ridge I and M' beta = phi0, unit u moves J by

    psi_u = (beta.(b_u - M_u w) + phi0_u.w - J n_u) / n,

where n_u is the number of starts and M_u has its share of the ridge.

`mis`, marginal importance sampling with linear ratios, is J = beta.b / n with A' beta = phi0:
omega(s) = x(s).beta estimates how often, discounted, the target visits s, per row of the log at s.
With the features of both sides the same, J is lstd's number, found from the ratios: the gain is
omega itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from steadytd.evaluation.equations import LSTD, Form
from steadytd.evaluation.estimators.base import Estimator
from steadytd.evaluation.intervals import Estimate, mean_of, nothing
from steadytd.evaluation.scores import RowSums, SolvedSums

if TYPE_CHECKING:
    from steadytd.evaluation.evidence import Evidence


class Solved(Estimator):
    """The fixed point of a form; `lstd` is that of TD."""

    name = "lstd"
    summary = "the fixed point of TD, which rests on the features"

    def __init__(self, form: Form = LSTD) -> None:
        self.form = form

    @property
    def label(self) -> str:
        """The form: learners of the same form share their sums."""
        return str(tuple(self.form))

    def rows(self, log: Evidence, target: int) -> RowSums | None:
        """Sums with w and beta of the form."""
        pair = log.equations.solution(target, self.form)
        if pair is None:
            return None
        return SolvedSums(target, pair, log.units, log.plan.systems[self.form.system])

    def estimate(self, log: Evidence, target: int) -> Estimate:
        """The value with its influences."""
        pair, sums = log.equations.solution(target, self.form), log.sums.get((self.label, target))
        if pair is None or sums is None:
            return nothing(log.n_units)
        with np.errstate(over="ignore", invalid="ignore"):
            residual = sums.errors - self.form.eta * sums.squares
            residual = residual - self.form.ridge * (pair.w @ pair.beta) / log.n_units
            return mean_of(sums.start + residual, log.starts)


class Mis(Estimator):
    """Marginal importance sampling; its influences are lstd's, the same function of the sums."""

    name = "mis"
    summary = "marginal importance sampling with linear ratios"

    def estimate(self, log: Evidence, target: int) -> Estimate:
        """beta.b / n."""
        e, reference = log.equations, Solved()
        pair = e.solution(target)
        if pair is None:
            return nothing(log.n_units)
        n = float(log.starts.sum())
        value = float(pair.beta @ e.sums.b[:, e.sums.column(target)].sum(axis=0)) / n
        return replace(reference.estimate(log, target), value=value)
