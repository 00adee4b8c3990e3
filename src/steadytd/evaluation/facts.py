"""The facts that checks read: numbers of the log, of a target, and of a learner, by name.

`checks.CHECKS` says which number is compared with which limit; here stands what the numbers are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.errors import InputError
from steadytd.base.numbers import count, whole

FEWEST_ROWS = 1000  # of a log without episodes
MOST_REWARD = 1e30  # as in logs: larger rewards cannot be added up


class Stated(NamedTuple):
    """What a user states of the world: the rewards' range, and the most steps of an episode."""

    lo: float
    hi: float
    horizon: int | None = None


def stated_range(reward_range: object, horizon: object) -> Stated | None:
    """What is stated, checked.

    >>> stated_range((-1, 2.5), None)
    Stated(lo=-1.0, hi=2.5, horizon=None)
    """
    if reward_range is None:
        if horizon is not None:
            raise InputError(
                f"horizon={horizon!r} needs reward_range=(lo, hi): only both together bound what "
                "an episode can give."
            )
        return None
    pair = list(reward_range) if isinstance(reward_range, Sequence | np.ndarray) else []
    numbers = [float(x) for x in pair if not isinstance(x, bool) and isinstance(x, Real)]
    if len(pair) != 2 or len(numbers) != 2 or not all(abs(x) <= MOST_REWARD for x in numbers):
        raise InputError(
            "reward_range must be two finite numbers (lo, hi), the least and the largest reward "
            f"of a step, between -{MOST_REWARD:g} and {MOST_REWARD:g}, got {reward_range!r}."
        )
    lo, hi = numbers
    if lo > hi:
        raise InputError(f"reward_range must be (lo, hi) with lo <= hi, got {reward_range!r}.")
    return Stated(lo, hi, None if horizon is None else whole("horizon", horizon, 1))


@dataclass(frozen=True)
class LogFacts:
    """What is known of the log as a whole."""

    rows: int
    episodes: int
    units: int  # that intervals treat as independent: episodes, or stretches of rows
    truncated: int
    discount_left: float  # mean over truncated episodes
    left_out: int
    continuing: bool  # values are means over all states
    divided: bool  # units are stretches of rows, since there are too few episodes
    behavior_estimated: bool
    behavior_numbers: dict[str, Any]
    rewards: tuple[float, float] = (float("-inf"), float("inf"))  # the least and the largest logged
    largest_discount: float = 1.0
    longest: int = 0  # steps of the longest episode
    stated: Stated | None = None
    nothing_hidden: bool = False  # stated: the policy looked at the logged observations only

    @property
    def allowed(self) -> tuple[float, float]:
        """Between these every value lies if rewards stay within those logged, or stated.

        Rewards of one sign, discounted, add up to no less than one of them. All together are at
        most 1 / (1 - discount) times the largest: without end where the discount is 1.
        """
        low, high = self.rewards if self.stated is None else self.stated[:2]
        steps = 1.0 / max(1.0 - self.largest_discount, 1e-300)
        return (low * steps if low < 0.0 else low), (high * steps if high > 0.0 else high)

    @property
    def unit(self) -> str:
        """What a unit is."""
        return "stretch of rows" if self.divided else "episode"


def of_log(f: LogFacts, calibration: Any) -> dict[str, Any]:
    """The facts of the log as a whole; `calibration` is that of its probabilities."""
    few = f.continuing and f.rows < FEWEST_ROWS
    numbers = f.behavior_numbers
    counted = bool(numbers.get("counted")) and bool(numbers.get("calibrated"))
    return {
        "units": 0 if few else f.rows if f.continuing else f.episodes,
        "size": count(f.rows, "row") if f.continuing else count(f.episodes, "episode"),
        "least": f"{FEWEST_ROWS:,}" if f.continuing else "20",
        "left_out": f.left_out,
        "left_out_share": f.left_out / max(f.rows + f.left_out, 1),
        "estimated": float(f.behavior_estimated),
        "estimated_unstated": float(f.behavior_estimated and not (f.nothing_hidden and counted)),
        "calibration_failures": float(not calibration.fine),
        "calibration_worst": "" if calibration.fine else _worst(calibration),
        "missing_actions": len(calibration.missing) if calibration.fine else 0,
        "missing_names": ", ".join(f"{a.action:g}" for a in calibration.missing[:5]),
        "truncated": f.truncated,
        "episodes": f.episodes,
        "discount_left": 0.0 if f.continuing else f.discount_left,
        "continuing": float(f.continuing),
        "stretches": count(f.units, "stretch", "stretches") if f.divided else "",
    }


def _worst(c: Any) -> str:
    """What of the logged probabilities is wrong, in a few words."""
    if c.off:
        a = max(c.off, key=lambda a: abs(a.mean - a.expected) / max(a.hi - a.lo, 1e-300))
        which = "" if a.action is None else f" over rows with action {a.action:g}"
        limit = f"should be {a.expected:.3g}" if c.whole else f"cannot exceed {a.expected:g}"
        return f"the mean of 1/behavior_prob{which} is {a.mean:.3g} and {limit}"
    if c.bins_off:
        b = max(c.bins_off, key=lambda b: abs(b.happened - b.said) * math.sqrt(b.pairs))
        return (
            f"actions logged with probability {b.lo:g} to {b.hi:g} were taken {b.happened:.0%} of "
            "the time"
        )
    if c.features is not None and not c.features.fine:
        return f"action {c.features.action} depends on features that its probability ignores"
    place = "some" if c.leaning.feature is None else f"feature {c.leaning.feature}"
    where = f"{place} is {'large' if c.leaning.large else 'small'}"
    where = where if c.leaning.feature is not None else "some features are unusual"
    return f"action {c.leaning.action:g} is taken too often where {where}"


def of_overlap(o: Any) -> dict[str, Any]:
    """The facts of a target's ratios."""
    known = bool(np.isfinite([o.rho_mean_lo, o.rho_mean_hi]).all())
    off = known and not o.rho_mean_lo <= 1.0 <= o.rho_mean_hi and abs(o.rho_mean - 1.0) >= 0.01
    return {
        "violations": o.violations,
        "rho_mean": o.rho_mean,
        "ratio_deviation": abs(o.rho_mean - 1.0) if off else 0.0,
        "rows": o.rows,
        "ess_step": o.ess_step,
        "ess_step_share": o.ess_step_share,
    }


def of_stability(s: Any, moves: bool) -> dict[str, Any]:
    """The facts of plain TD on the log; `moves`: some ratio is above 0."""
    return {
        "td_unstable": float(moves and not s.td_stable),
        "td_word": "unstable" if s.slowest < 0.0 else "not stable",
        "eta_pd": max(0.0, s.eta_pd),
    }
