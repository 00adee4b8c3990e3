"""Are the logged probabilities right? What was done against what they say.

With mu the logged and m the true probabilities of the policy that made the log, the mean over rows
of 1{a_t = a}/mu(a_t|s_t) has the expectation E[m(a|s)/mu(a|s)], over states in which m(a|s) > 0. If
the logged ones are right that is the share of rows in whose state the action is possible: 1, or
less where the policy never takes it in some states. Hence

* a mean *above* 1 is always wrong, also where rows are weighted with any f(s) >= 0 (every feature
  moved to the range from 0 to 1, and 1 less that): wherever logged and true distribution differ,
  some action is logged with too small a probability;
* a mean *below* 1 says that the action is impossible in some states, or that the logged
  probabilities are too large. Only the whole distribution mu(.|s) can tell which.

Where mu(.|s) is logged for all actions, the mean is held against the share of rows with mu(a|s) >
0; actions of logged probability p happen with frequency p, in every bin of p; and the sum over rows
of (1{a_t = a} - mu(a|s)) x(s) has mean 0 for every action and feature.

Limits are by Student's t over units, 99.9 % for all comparisons together (Bonferroni). Where
mu(.|s) is logged, the variance that right probabilities would have is known: the larger of it and
of that between units counts. (By chance a rare action may not happen, and then no units differ.)
A deviation below 1 % is no finding: probabilities are logged with few digits.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.evaluation.collect.actions import BINS, MOST_ACTIONS, ProbabilitySums
from steadytd.evaluation.estimate.bootstrap import NONE, Interval, student

ERROR = 0.001  # chance of a false alarm among all comparisons of a log
MATTERS = 0.01  # of what is expected: smaller deviations come from rounding
FEW_ROWS = 30  # of an action or a bin: with fewer Student's t says nothing

State = Literal["fine", "above", "below", "few"]


@dataclass(frozen=True)
class ActionCalibration:
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

    The largest standardised sum of (1{a_t = a} - mu(a|s)) x(s) over actions and features; `feature`
    is None where features were mixed. `p_value` is corrected for their number; `effect` is the
    deviation of one row, in standard deviations.
    """

    action: int
    feature: int | None
    tested: int
    statistic: float
    p_value: float
    effect: float
    fine: bool


@dataclass(frozen=True)
class Leaning:
    """Where states of some kind count more: the largest excess of the mean of 1{a_t = a}/mu over 1.

    Rows are weighted with a feature, moved to the range from 0 to 1 (`large`), or with 1 less that;
    `feature` is None where features were added up. `p_value` is corrected for all that were tried.
    """

    action: float
    feature: int | None
    large: bool
    tested: int
    mean: float
    p_value: float
    fine: bool


class Mixed(NamedTuple):
    """Whether features were mixed: for `ByFeature`, and for `Leaning`."""

    moments: bool
    functions: bool


UNMIXED = Mixed(moments=False, functions=False)


@dataclass(frozen=True)
class LogCalibration:
    """What the logged probabilities were held against; `reason` says what could not be."""

    comparisons: int
    whole: bool  # the probabilities of all actions are logged
    actions: tuple[ActionCalibration, ...] = ()
    bins: tuple[ByBin, ...] = ()
    features: ByFeature | None = None
    leaning: Leaning | None = None  # where only the logged action's probability is
    reason: str = ""

    @property
    def off(self) -> list[ActionCalibration]:
        """What shows that probabilities are wrong."""
        wrong = {"above", "below"} if self.whole else {"above"}
        return [a for a in self.actions if a.state in wrong]

    @property
    def missing(self) -> list[ActionCalibration]:
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
        told = any(one is not None and not one.fine for one in (self.features, self.leaning))
        return not (self.off or self.bins_off or told)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "fine": self.fine}


def calibrate(sums: ProbabilitySums, rows: Floats, mixed: Mixed = UNMIXED) -> LogCalibration:
    """The comparisons that the sums by unit allow; `rows` [units]."""
    whole = sums.possible.shape[1] > 0
    reason = _reason(sums)
    if reason or len(rows) < 2:
        return LogCalibration(0, whole, reason=reason or "the log has only one unit")
    bins = sums.bins.reshape(len(rows), 4, BINS) if whole else np.zeros((len(rows), 4, 0))
    used = np.flatnonzero(bins[:, 0].sum(axis=0))
    comparisons = len(sums.actions) + 1 + len(used) + 1
    tail = ERROR / 2.0 / comparisons
    by_action = _by_action(sums, rows, tail)
    by_bin = tuple(_by_bin(int(b), bins[:, :, b], tail) for b in used)
    told = _by_feature(sums, rows, mixed.moments, 2.0 * tail) if whole else None
    leaning = None if whole else _leaning(sums, rows, mixed.functions, 2.0 * tail)
    return LogCalibration(comparisons, whole, by_action, by_bin, told, leaning)


def _reason(sums: ProbabilitySums) -> str:
    if not sums.unusable and len(sums.actions) <= MOST_ACTIONS:
        return ""
    return f"actions are not single numbers, or there are more than {MOST_ACTIONS} different ones"


def _by_action(sums: ProbabilitySums, rows: Floats, tail: float) -> tuple[ActionCalibration, ...]:
    A = sums.possible.shape[1] // 2
    # where mu(.|s) is not known, every action may be possible, and no variance is known
    known = sums.possible.reshape(len(rows), 2, A)
    found = []
    for k, action in enumerate(sums.actions.tolist()):
        possible = np.stack([rows, np.zeros(len(rows))], axis=1)
        if A:
            listed = action == int(action) and 0 <= action < A
            possible = known[:, :, int(action)] if listed else 0.0 * possible
        found.append(_action(action, sums.taken[:, k], possible, rows, tail))
    all_of = known.sum(axis=2)
    if not A:
        all_of = np.stack([len(sums.actions) * rows, np.zeros(len(rows))], axis=1)
    return (*found, _action(None, sums.taken.sum(axis=1), all_of, rows, tail))


def _action(
    action: float | None, taken: Floats, possible: Floats, rows: Floats, tail: float
) -> ActionCalibration:
    """`possible` [units, 2]: rows in which it is, and the variance of 1{a_t = a}/mu."""
    count, mean = int(taken[:, 0].sum()), float(taken[:, 1].sum() / rows.sum())
    expected = float(possible[:, 0].sum() / rows.sum())
    beyond = mean_interval(taken[:, 1] - possible[:, 0], rows, tail, float(possible[:, 1].sum()))
    state = _state(mean - expected, beyond, expected, count)
    return ActionCalibration(
        action, count, mean, expected + beyond.lo, expected + beyond.hi, expected, state
    )


def _by_bin(b: int, sums: Floats, tail: float) -> ByBin:
    pairs, said, happened, variance = sums.sum(axis=0)
    beyond = mean_interval(sums[:, 2] - sums[:, 1], sums[:, 0], tail, float(variance))
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


def mean_interval(totals: Floats, sizes: Floats, tail: float, least: float = 0.0) -> Interval:
    """The interval of sum(totals)/sum(sizes) over units, `tail` on either side, by Student's t.

    The variance of sum(totals) is at least `least`.
    """
    n = len(totals)
    if n < 2 or sizes.sum() <= 0.0:
        return NONE
    mean = totals.sum() / sizes.sum()
    seen = ((totals - mean * sizes) ** 2).sum() * n / (n - 1.0)
    error = np.sqrt(max(float(seen), least)) / sizes.sum()
    reach = student(1.0 - tail, n - 1) * error
    return Interval(float(mean) - reach, float(mean) + reach)


def _leaning(sums: ProbabilitySums, rows: Floats, mixed: bool, chance: float) -> Leaning | None:
    """One-sided: sum (1{a_t = a}/mu - 1) f <= 0 in the mean; f and 1 - f for every feature."""
    from scipy.special import stdtr

    low, high = sums.span
    moves = np.flatnonzero(high - low > 1e-12 * np.maximum(np.abs(low), np.abs(high)))
    often = np.flatnonzero(sums.taken[:, :, 0].sum(axis=0) >= FEW_ROWS)
    if not len(moves) or not len(often):
        return None
    low, wide = low[moves], (high - low)[moves]
    once = sums.taken[:, often, 1][:, :, None]
    f = (sums.plain[:, moves] - low * rows[:, None])[:, None, :] / wide
    above = (sums.leaning[:, often][:, :, moves] - low * once) / wide
    n = rows[:, None, None]
    y = np.stack([above - f, once - above - (n - f)])  # [2, units, actions, features]
    total, error = y.sum(axis=1), np.sqrt((y**2).sum(axis=1))
    z = np.divide(total, error, out=np.zeros_like(total), where=error > 0.0)
    worst = np.unravel_index(int(np.argmax(z)), z.shape)
    side, action, feature = (int(i) for i in worst)
    p_value = float(min(1.0, z.size * stdtr(len(rows) - 1, -z[worst])))
    weight = float(f[:, 0, feature].sum())
    mean = 1.0 + float(total[worst]) / (rows.sum() - weight if side else weight)
    fine = p_value >= chance or mean - 1.0 < MATTERS
    return Leaning(
        float(sums.actions[often[action]]), None if mixed else int(moves[feature]), side == 0,
        z.size, mean, p_value, fine,
    )  # fmt: skip


def _by_feature(sums: ProbabilitySums, rows: Floats, mixed: bool, chance: float) -> ByFeature:
    """The moment that is furthest from 0."""
    from scipy.stats import t

    units, A = len(rows), sums.possible.shape[1] // 2
    found, expected = sums.moments.reshape(units, 2, -1).swapaxes(0, 1)
    total = found.sum(axis=0)
    seen = ((found - total / rows.sum() * rows[:, None]) ** 2).sum(axis=0) * units / (units - 1.0)
    error = np.sqrt(np.maximum(seen, expected.sum(axis=0)))
    z = np.divide(total, error, out=np.zeros_like(total), where=error > 0.0)
    worst = int(np.argmax(np.abs(z)))
    action, feature = divmod(worst, len(z) // A)
    tested = int((error > 0.0).sum())
    p_value = float(min(1.0, 2.0 * tested * t.sf(abs(z[worst]), units - 1)))
    effect = float(abs(z[worst]) / np.sqrt(rows.sum()))
    fine = p_value >= chance or effect < MATTERS
    return ByFeature(
        action, None if mixed else feature, tested, float(z[worst]), p_value, effect, fine
    )
