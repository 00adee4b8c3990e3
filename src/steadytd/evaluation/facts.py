"""The facts that checks read: numbers of the log, of a target, and of a learner, by name.

`checks.CHECKS` says which number is compared with which limit; here stands what the numbers are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Longs
from steadytd.base.errors import InputError, visible
from steadytd.base.numbers import count, number, whole
from steadytd.evaluation.assumed import contradictions, missing_episodes
from steadytd.evaluation.behavior import EstimatedLog
from steadytd.evaluation.calibration import LogCalibration
from steadytd.evaluation.evidence import Evidence
from steadytd.evaluation.intervals import correlation, effective_number
from steadytd.evaluation.overlap import RatioSums
from steadytd.evaluation.recurring import recurring, unused_values
from steadytd.evaluation.rows import rewards_of
from steadytd.evaluation.rule import (
    FEW_VALUES,
    FEWEST_STRETCHES,
    LoggedReturns,
    Selection,
    cross_fitting,
    paired,
)
from steadytd.evaluation.sample import ROW, EpisodeSample
from steadytd.evaluation.values import REFERENCE, TargetValues, Value
from steadytd.logs.log import Log

FEWEST_EPISODES, FEWEST_ROWS = 20, 1000  # rows are counted where values are means over them
MOST_REWARD = 1e30  # as in logs: larger rewards cannot be added up
ROUNDED_RATIO = 0.01  # mean ratios closer to 1 may be due to rounded probabilities
TINY = 1e-6  # of the size of values: smaller differences do not matter
CLOSE = 0.005  # of its fixed point: as near as an online learner has to come


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
                f"horizon={horizon!r} needs reward_range=(lo, hi): both are needed to bound the "
                "return of an episode."
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


def check_stated(
    log: Log,
    ratios: RatioSums,
    weights: Mapping[str, float] | None,
    stated: Stated | None,
    episodes: bool,
) -> None:
    """Refuse a log that contradicts what is stated; `ratios` have its extremes."""
    if stated is None:
        return
    (least, most), longest = ratios.reward_range, ratios.extent[1]
    if episodes and stated.horizon is not None and longest > stated.horizon:
        raise InputError(
            f"horizon={stated.horizon} is the most steps that an episode can have, but the log has "
            f"an episode of {longest:.0f} steps; give a larger one."
        )
    if stated.lo <= least and most <= stated.hi:
        return
    for batch in replace(log).batches(columns=()):
        [reward] = rewards_of(batch, () if weights is None else (weights,))
        out = np.flatnonzero((reward < stated.lo) | (reward > stated.hi))
        if len(out):
            i = int(out[0])
            raise InputError(
                f"{log.where(int(batch.rows[i]))} (counted from 0): reward "
                f"{reward[i]:.10g} lies outside reward_range=({stated.lo:g}, {stated.hi:g}); "
                "give the range of all rewards that a step can give, or correct the log."
            )


@dataclass(frozen=True)
class LogFacts:
    """What is known of the log as a whole."""

    rows: int
    episodes: int
    units: int  # that intervals treat as independent: as given, episodes, or stretches of rows
    truncated: int
    discount_left: float  # mean over truncated episodes
    left_out: int
    continuing: bool  # values are means over all states
    divided: bool  # units are stretches of rows, not episodes
    behavior_estimated: bool
    behavior_numbers: dict[str, Any]
    rewards: tuple[float, float] = (float("-inf"), float("inf"))  # the least and the largest logged
    largest_discount: float = 1.0
    longest: int = 0  # steps of the longest episode
    stated: Stated | None = None
    nothing_hidden: bool = False  # stated: the policy looked at the logged observations only
    unit: str | None = None  # the column of units
    effective_units: float = math.nan  # (sum n_u)^2 / sum n_u^2, n_u the starts of unit u
    recurring: dict[str, Any] = field(default_factory=dict)  # of an unused column, see `recurring`
    learned_folds: int = 0  # the target is made of policies learned on so many folds
    assumed: dict[str, Any] = field(default_factory=dict)  # what contradicts it, see `assumed`
    notes: tuple[str, ...] = ()  # what was assumed of the table
    obs_names: tuple[str, ...] = ()  # of the numbers of an observation, where columns were named
    actions: tuple[str, ...] = ()  # by their numbers, where they are named
    average: bool = False  # values are rewards per step

    def action(self, number: float) -> str:
        """The name of an action, or its number."""
        named = self.actions and number == int(number)
        return visible(self.actions[int(number)]) if named else f"{number:g}"


def of_log(
    f: LogFacts, calibration: LogCalibration, features: Sequence[str] = ()
) -> dict[str, Any]:
    """The facts of the log as a whole; `calibration` is that of its probabilities.

    `features` are the features' names, where columns of the log were named.
    """
    few = f.continuing and f.rows < FEWEST_ROWS
    numbers = f.behavior_numbers
    counted = bool(numbers.get("counted")) and bool(numbers.get("calibrated"))
    return {
        "units": 0 if few else FEWEST_EPISODES if f.continuing else f.episodes,
        "size": count(f.rows, "row") if f.continuing else count(f.episodes, "episode"),
        "least": f"{FEWEST_ROWS if f.continuing else FEWEST_EPISODES:,}",
        "left_out": f.left_out,
        "left_out_share": f.left_out / max(f.rows + f.left_out, 1),
        "estimated": float(f.behavior_estimated),
        "estimated_unstated": float(f.behavior_estimated and not (f.nothing_hidden and counted)),
        "calibration_failures": float(not calibration.fine),
        "calibration_worst": "" if calibration.fine else _worst(calibration, f, features),
        "missing_actions": len(calibration.missing) if calibration.fine else 0,
        "missing_names": ", ".join(f.action(a.action or 0.0) for a in calibration.missing[:5]),
        "truncated": f.truncated,
        "episodes": f.episodes,
        "discount_left": 0.0 if f.continuing else f.discount_left,
        "continuing": float(f.continuing and not f.average),
        "average": float(f.average),
        "independent": independent(f),
        "unit_name": f.unit,
        "unit_count": f.units,
        "effective_units": f.effective_units,
        **f.recurring,
        **f.assumed,
        **({"time_limit": 0.0, "step_unseen": ""} if _known_end(f) else {}),
    }


def _known_end(f: LogFacts) -> bool:
    """Whether the horizon is stated, and episodes end there."""
    return f.stated is not None and f.stated.horizon == f.longest


def independent(f: LogFacts) -> str:
    """What is taken for independent."""
    if f.unit is not None:
        return f"units ({visible(f.unit)})"
    return f"{count(f.units, 'stretch', 'stretches')} of rows" if f.divided else "episodes"


def _worst(c: LogCalibration, f: LogFacts, features: Sequence[str]) -> str:
    """What of the logged probabilities is wrong, in a few words."""
    if c.off:
        a = max(c.off, key=lambda a: abs(a.mean - a.expected) / max(a.hi - a.lo, 1e-300))
        which = "" if a.action is None else f" over rows with action {f.action(a.action)}"
        limit = "should be" if c.whole else "cannot exceed"
        mean, expected = number(a.mean, 3), number(a.expected, 3)
        return f"the mean of 1/behavior_prob{which} is {mean} and {limit} {expected}"
    if c.bins_off:
        b = max(c.bins_off, key=lambda b: abs(b.happened - b.said) * math.sqrt(b.pairs))
        return (
            f"actions logged with probability {b.lo:g} to {b.hi:g} were taken with frequency "
            f"{number(b.happened, 2)}"
        )
    if c.features is not None and not c.features.fine:
        action = f.action(c.features.action)
        return f"action {action} depends on features that its probability ignores"
    assert c.leaning is not None
    size = "large" if c.leaning.large else "small"
    feature = c.leaning.feature
    named = features and feature is not None
    which = "a group of features" if feature is None else f"feature {feature}"
    which = f"'{visible(features[feature or 0])}'" if named else which
    return f"action {f.action(c.leaning.action)} is taken too often where {which} is {size}"


class LogColumns(NamedTuple):
    """What is read of the log's other columns, once for all rewards."""

    unused: dict[str, Longs]
    missing: dict[str, Any]  # numbers of episodes

    @staticmethod
    def of(log: Log, sample: EpisodeSample) -> LogColumns:
        """Those of a log, in the rows that end sampled episodes."""
        return LogColumns(unused_values(log, sample.outcomes[:, ROW]), missing_episodes(log))


def log_facts(
    evidence: Evidence, log: Log, columns: LogColumns, stated: Stated | None, hidden: bool
) -> LogFacts:
    """From the passes; `columns` are further ones of the log."""
    ratios, sample = evidence.first.ratios, evidence.first.sample
    truncated, left = ratios.cut.tolist()
    behavior = log.calibration if isinstance(log, EstimatedLog) else None
    discount, longest = ratios.extent.tolist()
    return LogFacts(
        rows=ratios.n_rows,
        episodes=ratios.n_episodes,
        units=evidence.n_units,
        truncated=int(truncated),
        discount_left=float(left / truncated) if truncated else 0.0,
        left_out=evidence.first.left_out,
        continuing=evidence.equations.where != "start",
        average=evidence.plan.average,
        divided=evidence.stretches,
        behavior_estimated=behavior is not None,
        behavior_numbers=behavior or {},
        rewards=ratios.reward_range,
        largest_discount=discount,
        longest=int(longest),
        stated=stated,
        nothing_hidden=hidden,
        unit=log.unit,
        learned_folds=log.learned_folds,
        effective_units=math.nan if log.unit is None else effective_number(evidence.starts),
        recurring=recurring(columns.unused, sample.outcomes),
        assumed={}
        if evidence.stretches
        else columns.missing | contradictions(log, sample.outcomes, sample.rows, evidence.sampled),
        notes=log.notes,
        obs_names=log.schema.obs_names,
        actions=tuple(map(str, log.schema.actions)),
    )


def logged_returns(evidence: Evidence, f: LogFacts) -> LoggedReturns:
    """What the rule knows of the log."""
    rows = evidence.sampled
    return LoggedReturns(
        own=evidence.own,
        starts=evidence.starts,
        rewards=f.rewards,
        reward_values=FEW_VALUES + 1 if rows is None else len(np.unique(rows.reward)),
        stated=None if f.stated is None else f.stated[:2],
        horizon=None if f.stated is None else f.stated.horizon,
        discount=f.largest_discount,
        own_at_cuts=evidence.own_at_cuts,
        one_step=f.longest <= 1 and not f.average,
        continuing=f.continuing,
        stretches=f.divided,
        by_column=f.unit is not None,
        inflation=cross_fitting(f.learned_folds),
        average=f.average,
    )


def of_target(values: TargetValues, f: LogFacts, log: LoggedReturns) -> dict[str, Any]:
    """The facts of one target."""
    o, s, support = values.overlap, values.stability, values.support
    off = o.rho_mean_lo > 1.0 or o.rho_mean_hi < 1.0  # not where the limits are NaN
    distance = abs(o.rho_mean - 1.0)
    facts = {
        **vars(o),
        "ratio_deviation": distance if off and distance >= ROUNDED_RATIO else 0.0,
        # where no ratio is above 0 nothing moves, and TD cannot be unstable
        "td_unstable": float(o.rho_max > 0.0 and not s.td_stable and not f.average),
        "td_word": "unstable" if s.slowest < 0.0 else "not stable",
        "eta_pd": max(0.0, s.eta_pd),
        **_selection(values.selection, f, log),
        **_penalty(values),
        **_disagreement(values),
    }
    if support is not None:
        facts["unseen_share"] = support.share
        facts["unseen_actions"] = ", ".join(map(f.action, support.unseen))
        facts["next_probs_missing"] = support.left_out
    return facts


def rare_probability(s: Selection, f: LogFacts) -> float:
    """The probability of an outcome that is missing in one of twenty such logs; NaN: not known."""
    effective = s.candidate.effective
    known = not (f.divided or f.average) and effective > 0.0
    return 1.0 - 0.05 ** (1.0 / effective) if known else math.nan


def _selection(s: Selection, f: LogFacts, log: LoggedReturns) -> dict[str, Any]:
    """Of the selected estimate, as the rule has it."""
    chosen, failed = s.candidate, set(s.failures)
    least, largest = log.allowed
    endless = not chosen.weights.any() and chosen.cut > 0.0
    half = s.sampling + s.bias + s.truncation + TINY * abs(chosen.value)
    influence = chosen.influence
    while f.divided and len(influence) >= 2 * FEWEST_STRETCHES:
        influence = paired(influence)
    return {
        "endless": float(endless),
        "unknown": float("no_value" in failed),
        "constant_scores": float("same_scores" in failed),
        "supported": None if endless else float("few_effective" not in failed),
        "weights_off": float("weights_off" in failed and not endless),
        "unchecked": float("unchecked_bias" in failed),
        "effective": chosen.effective,
        "mean_weight": chosen.weight,
        "negative": s.negative,
        "correlation": correlation(influence) if f.divided else None,
        "cut_share": 0.0
        if f.divided or f.average
        else f.discount_left * f.truncated / max(f.episodes, 1),
        "outside": float(chosen.value + half < least or chosen.value - half > largest),
        "value": chosen.value,
        "lowest": least,
        "highest": largest,
        "rare_probability": rare_probability(s, f) if f.stated is None else math.nan,
        "each": "episode" if f.unit is None else "unit",
        "bias": s.bias,
        "bias_share": s.bias / half if half > 0.0 else 0.0,
    }


def _penalty(values: TargetValues) -> dict[str, Any]:
    """How far a penalty moves a learner's value, where that is beyond lstd's interval."""
    half = values.reference[1].width / 2.0
    moved: dict[str, Any] = {"penalty_moved": 0.0}
    for v in values.values:
        plain = values.without_penalty.get(v.learner, math.nan)
        apart = abs((v.fixed_point if v.fixed_point is not None else math.nan) - plain)
        if v.eta and apart > max(half, TINY * abs(plain), moved["penalty_moved"]):
            moved = {"penalty_moved": apart, "penalty": v.eta, "unpenalised": plain,
                     "penalised": v.fixed_point}  # fmt: skip
    return moved


def _disagreement(values: TargetValues) -> dict[str, Any]:
    """The two solved learners without penalty or ridge that lie furthest apart."""
    plain = {
        name for name, form in values.forms.items() if not form.eta and not form.ridge
    } | {REFERENCE}  # fmt: skip
    found: dict[str, Any] = {"disagreement": 0.0}
    size = TINY * abs(values.reference[0])
    for d in values.differences:
        errors = abs(d.difference) / d.stderr if d.stderr > 0.0 else 0.0
        both = {d.learner, d.other} <= plain and abs(d.difference) > size
        if both and d.agree is False and errors > found["disagreement"]:
            found = {"disagreement": errors, "first": d.learner, "second": d.other,
                     "apart": abs(d.difference)}  # fmt: skip
    return found


def of_learner(v: Value, unsettled: Mapping[str, float]) -> dict[str, Any]:
    """The facts of one learner's row."""
    facts: dict[str, Any] = {
        "learner": v.learner,
        "value": v.value,
        "fixed_point": v.fixed_point,
        "unsettled_radius": unsettled.get(v.learner),
    }
    if v.kind == "online":
        facts["diverged"] = v.diverged
        facts["no_interval"] = float(v.diverged is None and v.fixed_point is None)
        if v.diverged is None and v.fixed_point is not None:
            room = max(v.interval.width / 2.0, CLOSE * abs(v.fixed_point))
            facts["distance"] = abs(v.value - v.fixed_point) / room if room > 0.0 else 0.0
    return facts
