"""What an estimator is: a class with `rows`, `estimate` and `interval`.

The passes over a log go on for all estimators at once. So an estimator first says what it wants to
be added up along the rows, and with which weights (`rows`), then makes its value of the sums. Other
packages add theirs by an entry point of the group `steadytd.estimators` (docs/evaluate_methods.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from steadytd.evaluation.intervals import Estimate, Interval
from steadytd.evaluation.scores import RowSums

if TYPE_CHECKING:
    from steadytd.evaluation.evidence import Evidence


class Estimator(ABC):
    """An estimator of a target's value."""

    name: str
    summary: str

    @property
    def label(self) -> str:
        """The name with its numbers, as it is asked for."""
        return self.name

    def rows(self, log: Evidence, target: int) -> RowSums | None:
        """What is to be added up along the rows, with weights from `log.equations`."""
        return None

    @abstractmethod
    def estimate(self, log: Evidence, target: int) -> Estimate:
        """The value of a target with its influences; `log.sums[label, target]` are the sums."""

    def interval(self, found: Estimate, level: float = 0.95) -> Interval:
        """The interval of an estimate: the sandwich over units."""
        return found.interval(level)
