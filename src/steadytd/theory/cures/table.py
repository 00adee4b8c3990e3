"""All cures of one problem, what each can do, and which come first.

First is the one whose best amount has the least error of the fixed point. Errors
within 5 % are equal; among equals the fastest at equal noise counts (`Cure.efficiency`), and cures
whose second moments are not finite, or whose noise is more than 1000 times that without cure (it
takes a million times as many steps to average it out), count only if no other is there. A target
that moves infinitely slowly has no rate and never counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from steadytd.base.parallel import single_threaded
from steadytd.mdp.kept import kept
from steadytd.mdp.problem import Problem
from steadytd.theory.analysis import CLOSE, SOME, zeroed
from steadytd.theory.cures import (
    nstep_td,
    partially_fitted,
    target_td,
    truncated_etd,
)
from steadytd.theory.cures.best import best, grid
from steadytd.theory.cures.cure import UNBOUNDED, Cure, Setting
from steadytd.theory.cures.laws import law_cures
from steadytd.theory.cures.search import StableSet, stable_set
from steadytd.theory.mean_square import MeanSquare, mean_square

LOUD = 1000.0  # times the noise without cure: no error is worth more
FILES = (nstep_td.cure, partially_fitted.cure, target_td.cure, target_td.slow, truncated_etd.cure)


@dataclass(frozen=True, eq=False)
class Treatment:
    """A cure on a problem: which amounts are stable, and which one to take."""

    cure: Cure
    found: StableSet
    best: float | None

    @property
    def title(self) -> str:
        """The cure's name and what else was fixed."""
        fixed = ", ".join(
            v if isinstance(v, str) else f"{k} {v:.3g}" for k, v in self.cure.settings.items()
        )
        return f"{self.cure.name} ({fixed})" if fixed else self.cure.name

    @property
    def error(self) -> float | None:
        """The error of the fixed point at the best amount."""
        if self.best is None:
            return None
        return zeroed(self.cure.error(self.best), self.cure.setting.scale)

    @property
    def finite(self) -> bool | None:
        """Whether what is carried from step to step has a finite second moment there."""
        return None if self.best is None else self.cure.is_finite(self.best)

    @property
    def loud(self) -> bool:
        """Whether the noise of its updates there is beyond use."""
        noise = None if self.best is None else self.cure.scatter(self.best)
        return noise is not None and not noise <= LOUD * self.cure.setting.scatter

    @property
    def rate(self) -> float | None:
        """How much of the slowest mode a step takes away there, at the largest step size."""
        return None if self.best is None or not self.cure.comparable else self.cure.rate(self.best)

    @cached_property
    def moments(self) -> MeanSquare | None:
        """The second moments of the learner at the best amount, where they are known."""
        if self.best is None or self.cure.learner is None:
            return None
        setting = self.cure.setting
        return mean_square(setting.problem, self.cure.learner(self.best), setting.policy)

    @cached_property
    def row(self) -> dict[str, Any]:
        """The row of the frame."""
        cure, found, take = self.cure, self.found, self.best
        alpha = None if take is None or not cure.comparable else cure.largest_alpha(take)
        return {
            "cure": cure.name,
            "settings": self.title.removeprefix(cure.name).strip(" ()"),
            "amount": cure.amount,
            "smallest": found.first(cure),
            "stable_from": found.stable_from(cure),
            "unstable": [list(interval) for interval in found.unstable],
            "exact": found.exact,
            "best": take,
            "error": self.error,
            "rate": self.rate,
            "largest_alpha": alpha,
            "mean_square_alpha": None if self.moments is None else self.moments.largest_alpha,
            "finite_variance": self.finite,
            "noise": None if take is None else cure.scatter(take),
        }

    @cached_property
    def path(self) -> list[dict[str, Any]]:
        """Amount, error of the fixed point (None at a pole) and stability, to be drawn."""
        amounts = sorted({*grid(self.cure, self.found).tolist(), *([self.best] * bool(self.best))})
        rows = []
        for amount in amounts:
            error = self.cure.error(amount)
            stable = self.cure.stable(amount)
            shown = None if error == UNBOUNDED else error
            rows.append({"amount": amount, "error": shown, "stable": stable})
        return rows


@kept(16)
@single_threaded
def treatments(problem: Problem, policy: int = 0) -> tuple[Treatment, ...]:
    """Every cure on this problem; a file here takes the place of a law's own of the same name."""
    return tuple(
        Treatment(cure, found, best(cure, found))
        for cure in _cures(Setting(problem, policy))
        for found in (stable_set(cure),)
    )


def _cures(setting: Setting) -> Iterator[Cure]:
    own = [make(setting) for make in FILES]
    here = {cure.name for cure in own}
    yield from (cure for cure in law_cures(setting) if cure.name not in here)
    yield from own


def equals(found: tuple[Treatment, ...]) -> list[Treatment]:
    """The cures of least error, the fastest at equal noise first. See above."""
    possible = [t for t in found if t.best is not None and t.cure.comparable]
    finite = [t for t in possible if t.finite] or possible
    calm = [t for t in finite if not t.loud] or finite
    if not calm:
        return []
    slack = CLOSE * min(t.error or 0.0 for t in calm) + SOME * calm[0].cure.setting.scale
    equal = [t for t in calm if (t.error or 0.0) <= slack]
    speeds = [t.cure.efficiency(t.best or 0.0) for t in equal]
    places = np.argsort([-round(x / max(*speeds, SOME), 6) for x in speeds], kind="stable")
    return [equal[i] for i in places]
