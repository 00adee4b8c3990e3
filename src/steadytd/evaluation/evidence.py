"""What the two passes know of a log: the equations, and sums by unit for every estimator."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.evaluation.curve import Curve, summed
from steadytd.evaluation.equations import Equations
from steadytd.evaluation.intervals import Estimate, mean_of
from steadytd.evaluation.passes import FirstPass, Plan
from steadytd.evaluation.rows import RowTable
from steadytd.evaluation.scores import Units
from steadytd.evaluation.sums import full

NOISE = 2.0  # standard errors of omega that are taken for noise
SAMPLE_ROWS, SAMPLE_BYTES = 10_000, 32e6  # of the rows that are looked at one by one


@dataclass(eq=False)
class Evidence:
    """What estimators of one reward are made from: `sums[label, target]` are what they asked for.

    Sums are by unit, without units that have no rows. `through_weights[target, label]` is what each
    unit does to DRL(lam) through w, where episodes are cut off.
    """

    plan: Plan
    first: FirstPass
    equations: Equations
    units: Units
    reward: int = 0
    sums: dict[tuple[str, int], Any] = field(default_factory=dict)
    curves: dict[int, Curve] = field(default_factory=dict)
    returns: dict[int, Any] = field(default_factory=dict)
    through_weights: dict[tuple[int, str], Floats] = field(default_factory=dict)
    own: Floats = field(default_factory=lambda: np.empty(0))  # the behaviour's scores
    own_at_cuts: float = 0.0
    starts: Floats = field(default_factory=lambda: np.empty(0))
    rows: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def n_units(self) -> int:
        """How many units there are."""
        return len(self.rows)

    @property
    def stretches(self) -> bool:
        """Whether units are stretches of rows, not whole episodes."""
        return self.plan.division.stretches

    @property
    def any_cut(self) -> bool:
        """Whether an episode is cut off."""
        return bool(self.first.ratios.cut[0] > 0.0)

    def behavior(self) -> Estimate:
        """The value of the policy that made the log: what it earned, and V where it is cut off."""
        found = mean_of(self.own, self.starts)
        return self.through(found, self.equations.behavior, "drl:lam=1")

    def through(self, found: Estimate, target: int, label: str) -> Estimate:
        """The estimate with what each unit does to it through w, where episodes are cut off."""
        moved = self.through_weights.get((target, label))
        return found if moved is None else replace(found, influence=found.influence + moved)

    def with_units(self, unit: Longs) -> Evidence:
        """The evidence of longer units; `unit` is the number of the new one of each."""

        def longer(sums: Any) -> Any:
            own = vars(sums).items()
            by_unit = {k: summed(v, unit) for k, v in own if v.shape[-1:] == (self.n_units,)}
            return SimpleNamespace(**{**dict(own), **by_unit})

        return replace(
            self,
            sums={key: longer(one) for key, one in self.sums.items()},
            curves={t: one.joined(unit) for t, one in self.curves.items()},
            returns={t: longer(one) for t, one in self.returns.items()},
            through_weights={k: summed(v, unit) for k, v in self.through_weights.items()},
            own=summed(self.own, unit),
            starts=summed(self.starts, unit),
            rows=summed(self.rows, unit),
        )

    @cached_property
    def sampled(self) -> RowTable | None:
        """Rows of whole episodes with their features as an array; None where there are none."""
        d = self.equations.features
        most = int(min(SAMPLE_ROWS, SAMPLE_BYTES / (16.0 * d)))
        table = self.first.sample.fewer(most)
        if table is None:
            return None
        made = table.with_features(self.plan.features, self.plan.average)
        return replace(made, X=full(made.X))

    def negative(self, target: int) -> float:
        """Of the marginal ratio over the sampled rows, the share that is negative beyond its noise.

            sum max(-omega - 2 s, 0) / sum |omega|,     s^2 = (K - 1) / K sum_k (omega_k - mean)^2

        with omega_k from all folds but k of K. 0 if not known.
        """
        pair, held = self.equations.solution(target), self.equations.cross_fitted(target)
        betas = [one.beta for one in held if one is not None]
        rows = self.sampled
        if rows is None or pair is None or len(betas) < len(held):
            return 0.0
        X, B = rows.X[: len(rows)], np.stack(betas)
        omega, apart = X @ pair.beta, X @ (B - B.mean(axis=0)).T
        noise = np.sqrt((1.0 - 1.0 / len(B)) * (apart**2).sum(axis=1))
        beyond = np.maximum(-omega - NOISE * noise, 0.0)
        return float(beyond.sum() / max(float(np.abs(omega).sum()), 1e-300))
