"""Are the logged probabilities right? What was done against what they say.

With mu the logged and m the true probabilities of the policy that made the log, the mean over rows
of 1{a_t = a}/mu(a_t|s_t) has the expectation E[m(a|s)/mu(a|s)], over states in which m(a|s) > 0. If
the logged ones are right that is the share of rows in whose state the action is possible: 1, or
less where the policy never takes it in some states. Hence

* a mean *above* 1 is always wrong;
* a mean *below* 1 says that the action is impossible in some states, or that the logged
  probabilities are too large. Only the whole distribution mu(.|s) can tell which.

Where mu(.|s) is logged for all actions, the mean is held against the share of rows with mu(a|s) >
0; actions of logged probability p happen with frequency p, in every bin of p; and the sum over rows
of (1{a_t = a} - mu(a|s)) x(s) has mean 0 for every action and feature (Hotelling's T^2 over units).

Limits are by Student's t over units, 99.9 % for all comparisons together (Bonferroni). A deviation
below 1 % is no finding: probabilities are logged with few digits.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.random import PROJECTIONS, uniforms
from steadytd.evaluation.collect.actions import BINS, MOST_ACTIONS, ActionSums
from steadytd.evaluation.estimate.bootstrap import NONE, Interval

ERROR = 0.001  # chance of a false alarm among all comparisons of a log
MATTERS = 0.01  # of what is expected: smaller deviations come from rounding
FEW_ROWS = 30  # of an action or a bin: with fewer Student's t says nothing

State = Literal["fine", "above", "below", "few"]


@dataclass(frozen=True)
class ByAction:
    """The mean of 1{a_t = a}/mu over all rows; `action` None: of 1/mu, all actions together."""

    action: float | None
    rows: int
    mean: float
    lo: float
    hi: float
    expected: float
    state: State


@dataclass(frozen=True)
class ByBin:
    """Pairs of row and action whose logged probability lies in lo..hi: said and happened."""

    lo: float
    hi: float
    pairs: int
    said: float
    happened: float
    happened_lo: float
    happened_hi: float
    state: State


@dataclass(frozen=True)
class ByFeature:
    """Whether what happens beyond the logged probabilities can be told from the features.

    `effect` is the deviation of one row, in standard deviations: sqrt(T^2 / rows).
    """

    statistic: float  # Hotelling's, as an F
    degrees: int
    units: int
    p_value: float
    effect: float
    fine: bool


@dataclass(frozen=True)
class LogCalibration:
    """What the logged probabilities were held against; `reason` says what could not be."""

    comparisons: int
    whole: bool  # the probabilities of all actions are logged
    actions: tuple[ByAction, ...] = ()
    bins: tuple[ByBin, ...] = ()
    features: ByFeature | None = None
    reason: str = ""

    @property
    def off(self) -> list[ByAction]:
        """What shows that probabilities are wrong."""
        wrong = {"above", "below"} if self.whole else {"above"}
        return [a for a in self.actions if a.state in wrong]

    @property
    def missing(self) -> list[ByAction]:
        """Actions that are impossible in some states, or whose probabilities are too large."""
        found = [a for a in self.actions if a.state == "below" and a.action is not None]
        return [] if self.whole else found

    @property
    def bins_off(self) -> list[ByBin]:
        """Bins in which another share happened than the probabilities say."""
        return [b for b in self.bins if b.state in ("above", "below")]

    @property
    def fine(self) -> bool:
        """Nothing shows that the probabilities are wrong."""
        told = self.features is not None and not self.features.fine
        return not (self.off or self.bins_off or told)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "fine": self.fine}


def calibrate(sums: ActionSums, rows: Floats) -> LogCalibration:
    """The comparisons that the sums by unit allow; `rows` [units]."""
    whole = sums.possible.shape[1] > 0
    reason = _reason(sums)
    if reason or len(rows) < 2:
        return LogCalibration(0, whole, reason=reason or "the log has only one unit")
    bins = sums.bins.reshape(len(rows), 3, BINS) if whole else np.zeros((len(rows), 3, 0))
    used = np.flatnonzero(bins[:, 0].sum(axis=0))
    comparisons = len(sums.actions) + 1 + len(used) + int(whole)
    tail = ERROR / 2.0 / comparisons
    by_action = _by_action(sums, rows, tail)
    by_bin = tuple(_by_bin(int(b), bins[:, :, b], tail) for b in used)
    told = _by_feature(sums, rows, 2.0 * tail) if whole else None
    return LogCalibration(comparisons, whole, by_action, by_bin, told)


def _reason(sums: ActionSums) -> str:
    if not sums.unusable and len(sums.actions) <= MOST_ACTIONS:
        return ""
    return f"actions are not single numbers, or there are more than {MOST_ACTIONS} different ones"


def _by_action(sums: ActionSums, rows: Floats, tail: float) -> tuple[ByAction, ...]:
    whole = sums.possible.shape[1] > 0
    found = []
    for k, action in enumerate(sums.actions.tolist()):
        possible = rows
        if whole:
            known = action == int(action) and 0 <= action < sums.possible.shape[1]
            possible = sums.possible[:, int(action)] if known else np.zeros(len(rows))
        found.append(_action(action, sums.taken[:, k], possible, rows, tail))
    possible = sums.possible.sum(axis=1) if whole else len(sums.actions) * rows
    return (*found, _action(None, sums.taken.sum(axis=1), possible, rows, tail))


def _action(
    action: float | None, taken: Floats, possible: Floats, rows: Floats, tail: float
) -> ByAction:
    count, mean = int(taken[:, 0].sum()), float(taken[:, 1].sum() / rows.sum())
    expected = float(possible.sum() / rows.sum())
    beyond = mean_interval(taken[:, 1] - possible, rows, tail)
    state = _state(mean - expected, beyond, expected, count)
    return ByAction(
        action, count, mean, expected + beyond.lo, expected + beyond.hi, expected, state
    )


def _by_bin(b: int, sums: Floats, tail: float) -> ByBin:
    pairs, said, happened = sums.sum(axis=0)
    beyond = mean_interval(sums[:, 2] - sums[:, 1], sums[:, 0], tail)
    mean = float(said / pairs)
    return ByBin(
        lo=b / BINS,
        hi=(b + 1) / BINS,
        pairs=int(pairs),
        said=mean,
        happened=float(happened / pairs),
        happened_lo=mean + beyond.lo,
        happened_hi=mean + beyond.hi,
        state=_state(float((happened - said) / pairs), beyond, mean, int(said)),
    )


def _state(apart: float, beyond: Interval, expected: float, count: int) -> State:
    """Where the interval of a deviation lies; `count` events should have happened, or did."""
    if count < FEW_ROWS or not np.isfinite(beyond.lo):
        return "few"
    if abs(apart) < MATTERS * max(expected, MATTERS) or beyond.lo <= 0.0 <= beyond.hi:
        return "fine"
    return "above" if apart > 0.0 else "below"


def mean_interval(totals: Floats, sizes: Floats, tail: float) -> Interval:
    """The interval of sum(totals)/sum(sizes) over units, `tail` on either side, by Student's t."""
    from scipy.stats import t

    n = len(totals)
    if n < 2 or sizes.sum() <= 0.0:
        return NONE
    mean = totals.sum() / sizes.sum()
    error = np.sqrt(((totals - mean * sizes) ** 2).sum() * n / (n - 1.0)) / sizes.sum()
    reach = float(t.ppf(1.0 - tail, n - 1) * error)
    return Interval(float(mean) - reach, float(mean) + reach)


def _by_feature(sums: ActionSums, rows: Floats, chance: float) -> ByFeature | None:
    """Hotelling's test that the moments have mean 0; at most a quarter as many as units."""
    from scipy.stats import f

    units, A = len(rows), sums.possible.shape[1]
    D = sums.moments.reshape(units, A, -1)[:, :-1].reshape(units, -1)  # all actions add up to 0
    scale = np.sqrt((D**2).mean(axis=0))
    D = D[:, scale > 0.0] / scale[scale > 0.0]
    most = units // 4
    if D.shape[1] > most:
        drawn = uniforms(1, PROJECTIONS, D.shape[1] * most).reshape(-1, most)
        D = D @ np.sign(drawn - 0.5)
    if not D.size:
        return None
    mean = D.mean(axis=0)
    size, V = np.linalg.eigh(np.cov(D, rowvar=False).reshape(D.shape[1], -1))
    used = size > 1e-9 * size.max()
    p = int(used.sum())
    square = float(units * ((V[:, used].T @ mean) ** 2 / size[used]).sum())
    statistic = square * (units - p) / (p * (units - 1.0))
    p_value = float(f.sf(statistic, p, units - p))
    effect = float(np.sqrt(square / rows.sum()))
    fine = p_value >= chance or effect < MATTERS
    return ByFeature(statistic, p, units, p_value, effect, fine)
