"""The rule: which lam of DRL(lam) is used, how wide its interval is, and what it must rest on.

The interval of a target's value is the sum of three terms around J(lam):

    J(lam) -+ [ S(lam) + B(lam) + T(lam) ],     clipped to the values that rewards allow

    S = max( t se, R )                    sampling error
        se = sqrt( n/(n-1) sum e_u^2 )    e_u: influences of n units; t: Student's quantile with
                                          Satterthwaite's degrees of freedom 2 k / (1 - k / n),
                                          k = (sum e^2)^2 / sum e^4, at most n - 1
                                          (k - 1 where units are stretches of rows)
        R  = log(2/alpha) w r / n         rule of three: what n episodes do not show has, at level
                                          1 - alpha/2, a probability below log(2/alpha) / n = 3.7/n
    B = max( |J(lam) - J2(lam)|, |J(lam) - J(lam')| for supported lam' > lam )       bias
    T = 1/2 min( |value beyond the cut-offs|, C(lam) sd(returns) )                   truncation

J2 is DRL(lam) with a second feature map on the same units. What the features miss moves J(lam) for
lam < 1, and moves it differently with another map or another lam; DRL(1) without cut-offs has no
such bias, so where it is supported it checks the others. If two descriptions of the state and all
supported lam agree, no description is known that would give another answer.

In R, r is the range of rewards and w the weight of an episode (1 on average). With a stated range
(and horizon: r times the discounted steps) w is the largest weight of a logged episode: the missing
outcome may lie where the target goes most. With the logged range it is so only if rewards have few
values. Rewards with more values show their tail; then w = sum W_u^2 / n, the weight where the
target goes on average. C(lam) is the discounted weight that is left where episodes are cut off; V
alone stands for what comes there, and half of its part of the value is taken for error.

A lam is *supported* if the weights W_u = sum U rho (1 - gamma') of units (their mean is 1 in truth,
less at most C) have n_eff = (sum W)^2 / sum W^2 >= 60, their mean is 1 within 2.5 standard errors,
units differ in their scores, and something checks the bias: a second map, a higher supported lam,
or lam = 1. Of the supported lam the one with the shortest interval is selected. A target whose
ratio of visits is negative for more than a tenth of its mass goes where the log hardly was.

Where a column of the log says which episodes belong together, a unit has many episodes: e_u and W_u
are sums over all of them, and an outcome may be missing for whole units (w / n is a unit's share).

Logs of one step use lam = 1 alone, and rewards per step all others (`average`). With logged
probabilities one step is unbiased whatever the features (w is that of other folds), so no second
map is made, and B is 0. In a log without episodes units are stretches of rows: se is the largest
over stretches of 1, 2, 4, ... units while 25 are left, and R and T are 0.

Constants (all that there are):

    LEVEL              0.95             of an interval; Bonferroni makes it higher for decisions
    LAMS               .5 .8 .95 1      from low variance to no bias
    EFFECTIVE_UNITS    60               below, the normal approximation of a weighted mean is poor
    WEIGHT_ERRORS      2.5              standard errors of the mean weight: 1 % of right logs fail
    NEGATIVE           0.1              of omega's mass: beyond it the target is extrapolated
    FEW_VALUES         10               distinct rewards that do not show how far others can go
    TRUNCATION_ERROR   0.5              of the value beyond cut-offs that may be wrong
    FEWEST_STRETCHES   25               independent stretches that a standard error needs

What they give on worlds of known value: docs/decisions/0018-trust.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.evaluation.curve import Curve
from steadytd.evaluation.intervals import SAME, effective_number, standard_error, student

LEVEL = 0.95
LAMS = (0.5, 0.8, 0.95, 1.0)
EFFECTIVE_UNITS = 60.0
WEIGHT_ERRORS = 2.5
NEGATIVE = 0.1
FEW_VALUES = 10
TRUNCATION_ERROR = 0.5
FEWEST_STRETCHES = 25


@dataclass(frozen=True)
class LoggedReturns:
    """What the rule knows of the log, for all targets alike.

    `own` are the behaviour's scores by unit: returns, with V where episodes are cut off;
    `own_at_cuts` is the mean per start of that V, discounted. `reward_values` counts the distinct
    rewards that were logged, as far as 11.
    """

    own: Floats = field(repr=False)  # [units]
    starts: Floats = field(repr=False)  # [units]
    rewards: tuple[float, float]  # least and largest reward logged
    reward_values: int = FEW_VALUES + 1
    stated: tuple[float, float] | None = None  # the range of rewards that the user states
    horizon: int | None = None  # the most steps of an episode that the user states
    discount: float = 1.0  # the largest of the log
    own_at_cuts: float = 0.0
    one_step: bool = False
    continuing: bool = False  # values are means over all rows
    stretches: bool = False  # units are stretches of rows, not whole episodes
    by_column: bool = False  # the log has a column of units: a unit may have many episodes
    inflation: float = 1.0  # of standard errors, where policies were learned from the same units
    average: bool = False  # values are rewards per step

    @property
    def range(self) -> tuple[float, float]:
        """Least and largest reward: as stated, else as logged."""
        return self.rewards if self.stated is None else self.stated

    @property
    def value(self) -> float:
        """What the policy that made the log is worth."""
        return float(self.own.sum() / self.starts.sum())

    @cached_property
    def influence(self) -> Floats:
        """What each unit moves that value by."""
        return np.asarray((self.own - self.value * self.starts) / self.starts.sum())

    @property
    def spread(self) -> float:
        """The standard deviation of returns."""
        return standard_error(self.influence) * math.sqrt(float(self.starts.sum()))

    @property
    def longest(self) -> float:
        """The most discounted steps of an episode."""
        if self.one_step or self.average:
            return 1.0
        steps = math.inf if self.horizon is None else float(self.horizon)
        if self.discount >= 1.0:
            return steps
        return float((1.0 - self.discount**steps) / (1.0 - self.discount))

    @property
    def allowed(self) -> tuple[float, float]:
        """The least and the largest value that rewards of the range can add up to.

        An episode has from 1 to `longest` discounted steps; without episodes it has `longest`.
        """
        (low, high), longest = self.range, self.longest
        fewest = longest if self.continuing else 1.0
        least = low * (longest if low < 0.0 else fewest)
        largest = high * (longest if high > 0.0 else fewest)
        return least, largest


@dataclass(frozen=True)
class Candidate:
    """DRL at one lam: its value, the terms of its interval, and what it rests on."""

    lam: float
    value: float
    influence: Floats = field(repr=False)
    weights: Floats = field(repr=False)  # W_u
    bias: float
    truncation: float
    rare: float  # w r / n, the rule of three without its factor log(2 / alpha)
    at_cuts: float  # the part of the value that lies beyond cut-offs
    cut: float
    effective: float  # n_eff of the weights
    weight: float  # their mean
    weight_error: float
    checked: bool  # something checks the bias
    stretches: bool
    inflation: float

    @property
    def unbiased(self) -> bool:
        """DRL(1) without cut-offs: where its checks differ from it, chance alone has made it so."""
        return self.lam == 1.0 and self.cut == 0.0

    def sampling(self, level: float = LEVEL) -> float:
        """S: how far chance can move the value."""
        error = self.inflation * sampling_error(self.influence, self.stretches, level)
        return max(error, rule_of_three(level) * self.rare)

    def half_width(self, level: float = LEVEL) -> float:
        """S + B + T."""
        return self.sampling(level) + self.bias + self.truncation

    @cached_property
    def failures(self) -> tuple[str, ...]:
        """Why the log does not support this lam; empty where it does."""
        if not math.isfinite(self.value):
            return ("no_value",)
        off = WEIGHT_ERRORS * self.weight_error
        tests = {
            "few_effective": self.effective >= EFFECTIVE_UNITS,
            "weights_off": 1.0 - off - self.cut <= self.weight <= 1.0 + off,
            "same_scores": self.sampling() > SAME * abs(self.value),
            "unchecked_bias": self.checked,
        }
        return tuple(name for name, fine in tests.items() if not fine)


@dataclass(frozen=True)
class Selection:
    """The selected estimate of a target, with all candidates in ascending order of lam."""

    lam: float
    value: float
    lo: float
    hi: float
    sampling: float
    bias: float
    truncation: float
    failures: tuple[str, ...]  # reasons not to trust it
    candidates: tuple[Candidate, ...] = field(repr=False)
    negative: float = 0.0  # share of omega's mass

    @property
    def supported(self) -> bool:
        """The log supports the selected lam, and the target stays where the log was."""
        return not self.failures

    @property
    def candidate(self) -> Candidate:
        """The candidate that was selected."""
        return next(c for c in self.candidates if c.lam == self.lam)

    @property
    def usable(self) -> tuple[Candidate, ...]:
        """The supported candidates; the selected one if there is none."""
        return tuple(c for c in self.candidates if not c.failures) or (self.candidate,)


def select(
    curve: Curve,
    log: LoggedReturns,
    second: Curve | None = None,
) -> Selection:
    """The selected estimate of a target from its curve, checked by that of a second feature map."""
    candidates: tuple[Candidate, ...] = ()
    for lam in reversed((1.0,) if log.one_step else LAMS[:-1] if log.average else LAMS):
        higher = [c for c in candidates if not c.failures]
        candidates = (_candidate(curve, lam, log, second, higher), *candidates)
    supported = [c for c in candidates if not c.failures]
    if supported:
        chosen = min(supported, key=Candidate.half_width)
    else:
        chosen = max(candidates, key=lambda c: (math.isfinite(c.value), c.effective))
    failures = chosen.failures + (("beyond_log",) if curve.negative > NEGATIVE else ())
    lo, hi = clipped(chosen.value, chosen.half_width(), log)
    return Selection(
        chosen.lam, min(max(chosen.value, lo), hi), lo, hi, chosen.sampling(), chosen.bias,
        chosen.truncation, failures, candidates, curve.negative,
    )  # fmt: skip


def _candidate(
    curve: Curve, lam: float, log: LoggedReturns, second: Curve | None, higher: list[Candidate]
) -> Candidate:
    """DRL(lam); its bias is bounded by the second map and by the supported `higher` lam."""
    i, n = curve.lams.index(lam), float(curve.starts.sum())
    value, weights = float(curve.values[i]), curve.weights[i]
    cut, at_cuts = float(curve.cut[i]), float(curve.value_at_cuts[i])
    mean = float(weights.sum() / n)
    others = [c.value for c in higher] + ([] if second is None else [float(second.values[i])])
    apart = [abs(value - other) for other in others if math.isfinite(value - other)]
    return Candidate(
        lam=lam,
        value=value,
        influence=curve.influences[i],
        weights=weights,
        bias=max(apart, default=0.0),
        truncation=0.0 if log.continuing else truncation_error(at_cuts, cut, log),
        rare=rare_outcome(weights, log),
        at_cuts=at_cuts,
        cut=cut,
        effective=effective_number(weights),
        weight=mean,
        weight_error=standard_error((weights - mean * curve.starts) / n),
        checked=bool(apart) or lam == 1.0,
        stretches=log.stretches,
        inflation=log.inflation,
    )


def sampling_error(influence: Floats, stretches: bool = False, level: float = LEVEL) -> float:
    """t se; of stretches of rows the largest over longer and longer ones.

    With normal influences of 200 units t is close to 1.97, that of 199 degrees of freedom:

    >>> e = np.random.default_rng(0).standard_normal(200) / 200
    >>> round(sampling_error(e) / standard_error(e), 2)
    1.97
    """
    n, k = len(influence), effective_number(influence**2)
    degrees = 2.0 * k * n / (n - k) if k < n else math.inf
    if stretches:  # neighbours may still be alike, and then fewer decide
        degrees = k - 1.0
    t = student(0.5 + level / 2.0, max(min(degrees, n - 1.0), 1.0))
    found = t * standard_error(influence)
    if stretches and len(influence) >= 2 * FEWEST_STRETCHES:
        return max(found, sampling_error(paired(influence), stretches, level))
    return found


def cross_fitting(folds: int) -> float:
    """How much larger a standard error is where policies were learned on the other folds.

    Errors of two folds are correlated, since the policy of each has seen the other. The procedure
    that is least stable takes one of two actions by the sign of a sum over K - 1 folds: with s_k
    the normal sum of fold k, the correlation of s_k sign(S - s_k) for two k is

        rho = E (2 phi(R))^2 = (2 / pi) / sqrt(1 + 2 (K - 2)),   R normal with variance K - 2,

    and the variance of the mean over folds is 1 + (K - 1) rho times that of independent ones.

    >>> cross_fitting(0), round(cross_fitting(5), 2)
    (1.0, 1.4)
    """
    if folds < 2:
        return 1.0
    return math.sqrt(1.0 + (folds - 1.0) * (2.0 / math.pi) / math.sqrt(2.0 * folds - 3.0))


def paired(influence: Floats) -> Floats:
    """Neighbouring units joined: stretches of twice the length.

    >>> paired(np.array([1.0, 2.0, 3.0, 4.0, 5.0])).tolist()
    [3.0, 12.0]
    """
    if len(influence) % 2:
        influence = np.append(influence[:-2], influence[-2] + influence[-1])
    return np.asarray(influence[::2] + influence[1::2])


def rule_of_three(level: float = LEVEL) -> float:
    """How often an outcome can be expected in a log that does not show it: log(2 / alpha).

    >>> round(rule_of_three(), 1)
    3.7
    """
    return math.log(2.0 / (1.0 - level))


def rare_outcome(weights: Floats, log: LoggedReturns) -> float:
    """w r / n, of the weights of a value or of the difference of two; 0 where units are stretches.

    Half of 100 episodes with the weight 2, rewards from 0 to 3:

    >>> w, n = np.repeat([0.0, 2.0], 50), np.ones(100)
    >>> round(rare_outcome(w, LoggedReturns(n, n, (0.0, 3.0))), 6)
    0.06
    """
    if log.stretches or log.average:
        return 0.0
    n, (low, high) = float(log.starts.sum()), log.range
    steps = 1.0 if log.horizon is None else log.longest
    if log.stated is not None or log.reward_values <= FEW_VALUES:
        w = float(np.abs(weights).max(initial=0.0))
    else:
        w = float(weights @ weights) / n
    return steps * (high - low) * w / n


def truncation_error(at_cuts: float, cut: float, log: LoggedReturns) -> float:
    """T, of a value (`at_cuts` beyond cut-offs) or of the difference of two."""
    return TRUNCATION_ERROR * min(abs(at_cuts), cut * log.spread)


def clipped(value: float, half_width: float, log: LoggedReturns) -> tuple[float, float]:
    """The interval within what rewards allow; one that lies outside shrinks to the nearest end."""
    least, largest = log.allowed
    lo, hi = value - half_width, value + half_width
    return min(max(lo, least), largest), max(min(hi, largest), least)
