"""The equations of a log with one feature map, and their solutions from all groups or from some."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import diags_array, eye_array

from steadytd.base.arrays import Floats, Longs
from steadytd.evaluation.rows import FOLDS, GROUPS, Division, Where
from steadytd.evaluation.sums import Pair, Sums, solve
from steadytd.theory.thresholds import Pencil


class Form(NamedTuple):
    """A solved learner: (A + eta G + ridge I) w = b of the system with this number."""

    system: int = 0
    eta: float = 0.0
    ridge: float = 0.0


LSTD = Form()


@dataclass(eq=False)
class Equations:
    """The sums of a log by group, and what is solved from them.

    The value is the mean of x.w over the episodes' first states (`start`), or over all logged
    states (`states`) where the log is one endless episode, or the last weight (`average`). The
    target behind the last one is the behaviour policy, with ratios of 1; it has no system but TD's.
    """

    sums: Sums
    where: Where
    division: Division
    pencils: dict[int, Pencil] = field(default_factory=dict, repr=False)  # found so far
    _solved: dict[tuple[int, Form], Pair | None] = field(default_factory=dict, repr=False)
    _cross_fitted: dict[int, list[Pair | None]] = field(default_factory=dict, repr=False)
    _grams: dict[bytes, Any] = field(default_factory=dict, repr=False)

    @property
    def behavior(self) -> int:
        """The number of the behaviour policy among the targets."""
        return self.sums.targets

    @property
    def features(self) -> int:
        """How many features there are."""
        return self.sums.features

    @cached_property
    def kept(self) -> Longs:
        """The numbers of the features that are independent in the log, in ascending order."""
        return self.sums.independent()

    @property
    def rank(self) -> int:
        """How many features are linearly independent."""
        return len(self.kept)

    @property
    def rows(self) -> Floats:
        """How many rows each group has."""
        return np.asarray(self.sums.counts[:, 0])

    @property
    def starts(self) -> Floats:
        """How many states the value is a mean over, by group."""
        return np.asarray(self.sums.counts[:, 1 if self.where == "start" else 0])

    @property
    def start(self) -> Floats:
        """Sums of the features there [groups, d]; of an average reward those of the last one."""
        if self.where == "average":
            return np.where(np.arange(self.features) == self.features - 1, self.sums.x, 0.0)
        return self.sums.x_start if self.where == "start" else self.sums.x

    @property
    def start_mean(self) -> Floats:
        """The mean of all features where the value is asked for [d]."""
        return np.asarray(self.start.sum(axis=0) / self.starts.sum())

    @property
    def groups(self) -> Longs:
        """The groups that have rows."""
        return np.flatnonzero(self.rows > 0.0)

    def solution(self, target: int, form: Form = LSTD) -> Pair | None:
        """w and beta of a form from all groups; None where there are none."""
        if (target, form) not in self._solved:
            self._solved[target, form] = self.solve(target, form, np.ones(GROUPS))
        return self._solved[target, form]

    def solve(self, target: int, form: Form, use: Floats, phi: Floats | None = None) -> Pair | None:
        """w and beta from groups that count as often as `use` says; M' beta = phi (phi0)."""
        column = self.sums.column(target, form.system)
        A, G = self.sums.matrix(column, use), self._gram(use)
        if self.where == "average":
            A = A + self.one_row
        if form.eta or form.ridge:
            A = A + form.eta * G + form.ridge * eye_array(self.features)
        return solve(A, G, use @ self.sums.b[:, column], use @ self.start if phi is None else phi)

    @cached_property
    def one_row(self) -> Any:
        """The mean of x x' over all rows, without the feature whose weight is the average reward.

        As a penalty it gives the weight 0 to what a part of the log does not show, and values the
        mean 0, which are known up to a constant.
        """
        kept = diags_array((np.arange(self.features) < self.features - 1).astype(np.float64))
        return kept @ self._gram(np.ones(GROUPS)) @ kept / float(self.rows.sum())

    def _gram(self, use: Floats) -> Any:
        """The sum of x x', made once for all targets."""
        key = use.tobytes()
        if key not in self._grams:
            self._grams[key] = self.sums.gram(use)
        return self._grams[key]

    @cached_property
    def other_folds(self) -> list[Floats]:
        """For every fold the groups of all others (its own where it is the only one)."""
        fold, found = self.division.fold(np.arange(GROUPS)), []
        for f in range(FOLDS):
            others = (fold != f) & (self.rows > 0.0)
            found.append((others if others.any() else fold == f).astype(np.float64))
        return found

    def cross_fitted(self, target: int) -> list[Pair | None]:
        """For every fold w and beta of lstd from the others."""
        if target not in self._cross_fitted:
            found = [self.solve(target, LSTD, use) for use in self.other_folds]
            self._cross_fitted[target] = found
        return self._cross_fitted[target]

    def weights(self, target: int, form: Form) -> Floats:
        """The weights w [d] of a form, from the whole log; NaN where there are none."""
        pair = self.solution(target, form)
        return np.full(self.features, np.nan) if pair is None else pair.w
