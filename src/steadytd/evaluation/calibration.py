"""Are the logged probabilities right? Logged probabilities against the actions that were taken.

With mu the logged and m the true probabilities of the policy that made the log, the mean over rows
of 1{a_t = a}/mu(a_t|s_t) has the expectation E[m(a|s)/mu(a|s)], over states in which m(a|s) > 0. If
the logged ones are right that is the share of rows in whose state the action is possible: 1, or
less where the policy never takes it in some states. Hence

* a mean *above* 1 is always wrong, also where rows are weighted with any f(s) >= 0 (every feature
  scaled to the range from 0 to 1, and 1 less that): wherever logged and true distribution differ,
  some action is logged with too small a probability;
* a mean *below* 1 says that the action is impossible in some states, or that the logged
  probabilities are too large. Only the whole distribution mu(.|s) can tell which.

Where mu(.|s) is logged for all actions, the mean is compared with the share of rows with
mu(a|s) > 0; actions of logged probability p happen with frequency p, in every bin of p; and the sum
over rows of (1{a_t = a} - mu(a|s)) x(s) has mean 0 for every action and feature.

Limits are by Student's t over blocks of units, 99.9 % for all comparisons together (Bonferroni).
Where mu(.|s) is logged, the variance under right probabilities is known. The larger of it and of
the variance between blocks is used: a rare action may be absent by chance, and then no blocks
differ. A deviation below 1 % is no finding: probabilities are logged with few digits.
"""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.base.random import PROJECTIONS, uniforms
from steadytd.evaluation.intervals import Interval, mean_interval
from steadytd.evaluation.rows import BLOCKS, Division, RowTable

ERROR = 0.001  # probability of a false alarm among all comparisons of a log
MATTERS = 0.01  # relative to what is expected: smaller deviations come from rounding
FEW_ROWS = 30  # of an action or a bin: with fewer no comparison is made

MOST_ACTIONS = 64
BINS = 10  # of probability, equally wide
MOMENTS = 48  # sums by action and feature, about
MOST_FUNCTIONS = 32  # of the state: where there are more features, neighbours are summed

State = Literal["fine", "above", "below", "few"]


class ProbabilitySums:
    """Sums by block of units, action, bin of probability and feature.

    For a row with state s, action a_t and logged probability mu = mu(a_t|s): by action 1 and 1/mu,
    and by action and feature f(s)/mu beside f(s); sums of neighbouring features where there are
    many. Where the whole distribution mu(.|s) is logged, instead of the last: by action 1{mu > 0};
    by bin of mu(a|s) the pairs of row and action, mu(a|s) and 1{a_t = a}; and by action and feature
    (1{a_t = a} - mu(a|s)) x(s), of random projections where x has many; each with its variance if
    mu is right. Actions are numbers; a log with lists, with texts or with more than `MOST_ACTIONS`
    different numbers has no such sums.
    """

    def __init__(self, features: int, actions: int) -> None:
        """`actions` is 0 where the whole distribution is not logged."""
        self.features, self.functions = features, min(features, MOST_FUNCTIONS)
        self.whole = actions > 0
        self.projections = min(features, max(1, MOMENTS // actions)) if actions else 0
        m = 0 if actions else self.functions
        self.known = np.empty(0)  # actions, as they were met
        self.unusable = np.zeros(1)  # rows whose action cannot be counted
        self.rows = np.zeros(BLOCKS)
        self.taken = np.zeros((BLOCKS, MOST_ACTIONS, 2))
        self.weighted = np.zeros((BLOCKS, MOST_ACTIONS, m))  # f/mu
        self.unweighted = np.zeros((BLOCKS, m))  # f
        self.range = np.stack([np.full(m, np.inf), np.full(m, -np.inf)])  # of every f
        self.possible = np.zeros((BLOCKS, 2, actions))
        self.bins = np.zeros((BLOCKS, 4, BINS))
        self.moments = np.zeros((BLOCKS, 2, actions, self.projections))

    @property
    def mixed(self) -> bool:
        """Whether features were summed or projected."""
        return (self.projections if self.whole else self.functions) < self.features

    def add(self, table: RowTable, division: Division) -> None:
        """Add the rows of a table."""
        block = division.block(table.unit)
        self.rows += np.bincount(block, table.weight, BLOCKS)
        code = self._codes(table)
        if code is not None:
            self._add_taken(table, block, code)
        if self.whole:
            self._add_distribution(table, block)

    def _codes(self, table: RowTable) -> Longs | None:
        """The place of every action among the known ones; None where they cannot be counted."""
        if table.action is not None and table.action.ndim == 1 and not self.unusable[0]:
            action = table.action.astype(np.float64, copy=False)
            new = np.unique(action[~np.isin(action, self.known)])
            if len(self.known) + len(new) <= MOST_ACTIONS and not np.isnan(new).any():
                self.known = np.append(self.known, new)
                order = np.argsort(self.known)
                return np.asarray(order[np.searchsorted(self.known, action, sorter=order)])
        self.unusable += len(table)
        return None

    def _add_taken(self, table: RowTable, block: Longs, code: Longs) -> None:
        K, mu = len(self.known), table.behavior_prob
        pair = block * K + code
        inverse = np.divide(table.weight, mu, out=np.zeros(len(mu)), where=mu > 0.0)
        for i, weights in enumerate((None, inverse)):
            self.taken[:, :K, i] += np.bincount(pair, weights, BLOCKS * K).reshape(BLOCKS, K)
        if not self.whole:
            F = self._functions(table.X[: len(table)])
            self.weighted[:, :K] += _sums_by(pair, BLOCKS * K, inverse, F).reshape(BLOCKS, K, -1)
            self.unweighted += _sums_by(block, BLOCKS, table.weight, F)
            self._widen(F.min(axis=0), F.max(axis=0))

    def _widen(self, low: Floats, high: Floats) -> None:
        self.range = np.stack([np.minimum(self.range[0], low), np.maximum(self.range[1], high)])

    def _functions(self, X: Any) -> Floats:
        """The functions of the state: features, or sums of neighbouring features."""
        from scipy.sparse import csr_array

        d, m = self.features, self.functions
        if m < d:
            sizes = np.diff(np.arange(m) * d // m, append=d)
            column = np.repeat(np.arange(m), sizes)
            X = X @ csr_array((np.ones(d), column, np.arange(d + 1)), shape=(d, m))
        return _dense(X)

    def _add_distribution(self, table: RowTable, block: Longs) -> None:
        assert table.probs is not None and table.action is not None
        n, A = len(table), self.possible.shape[2]
        mu = table.probs[:n, -1]
        happened = (table.action[:, None] == np.arange(A)).astype(np.float64)
        possible, variance = mu > 0.0, mu * (1.0 - mu)
        odds = np.divide(1.0 - mu, mu, out=np.zeros_like(mu), where=possible)
        w = table.weight[:, None]
        for i, values in enumerate((possible * w, odds * w**2)):
            self.possible[:, i] += _sums_by(block, BLOCKS, np.ones(n), values)
        number = np.minimum((mu * BINS).astype(np.int64), BINS - 1) + block[:, None] * BINS
        for i, values in enumerate((np.ones_like(mu) * w, mu * w, happened * w, variance * w**2)):
            found = np.bincount(number.ravel(), values.ravel(), BLOCKS * BINS)
            self.bins[:, i] += found.reshape(BLOCKS, BINS)
        X = table.X[:n]
        if self.projections < self.features:
            signs = np.sign(uniforms(0, PROJECTIONS, self.features * self.projections) - 0.5)
            X = X @ signs.reshape(self.features, self.projections)
        X = _dense(X)
        for a in range(A):
            self.moments[:, 0, a] += _sums_by(block, BLOCKS, ((happened - mu) * w)[:, a], X)
            self.moments[:, 1, a] += _sums_by(block, BLOCKS, (variance * w**2)[:, a], X**2)

    def merge(self, other: ProbabilitySums) -> None:
        """Add the sums of the next part of the log."""
        self.unusable += other.unusable
        new = other.known[~np.isin(other.known, self.known)]
        if len(self.known) + len(new) > MOST_ACTIONS:
            self.unusable += 1.0
        else:
            self.known = np.append(self.known, new)
            place = [int(np.flatnonzero(self.known == a)[0]) for a in other.known.tolist()]
            for name in ("taken", "weighted"):
                getattr(self, name)[:, place] += getattr(other, name)[:, : len(place)]
        self._widen(*other.range)
        for name in ("rows", "unweighted", "possible", "bins", "moments"):
            own = getattr(self, name)
            own += getattr(other, name)

    def nonempty(self) -> ProbabilitySums:
        """The sums of the blocks that have rows, with sorted actions."""
        used, order = self.rows > 0.0, np.argsort(self.known)
        found = copy.copy(self)
        for name in ("rows", "taken", "weighted", "unweighted", "possible", "bins", "moments"):
            setattr(found, name, getattr(self, name)[used])
        found.known = self.known[order]
        found.taken, found.weighted = found.taken[:, order], found.weighted[:, order]
        return found


def _dense(X: Any) -> Floats:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X)


def _sums_by(group: Longs, groups: int, weight: Floats, X: Floats) -> Floats:
    """The sums of weight_i x_i over the rows i of every group, [groups, columns of X]."""
    from scipy.sparse import csr_array

    n = len(group)
    return np.asarray(csr_array((weight, group, np.arange(n + 1)), shape=(n, groups)).T @ X)


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
    """Pairs of row and action by logged probability, lo to hi: its mean (`said`), and frequency."""

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
    """Whether the features predict actions better than the logged probabilities do.

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
    """The largest excess over 1 of a mean of 1{a_t = a}/mu that is weighted with a feature.

    The feature is scaled to the range from 0 to 1 (`large`), or is 1 less that; `feature` is None
    where features were summed. `p_value` is corrected for the number of means tested.
    """

    action: float
    feature: int | None
    large: bool
    tested: int
    mean: float
    p_value: float
    fine: bool


@dataclass(frozen=True)
class LogCalibration:
    """The comparisons of the logged probabilities; `reason` says why there are none."""

    comparisons: int
    whole: bool  # the probabilities of all actions are logged
    actions: tuple[ActionCalibration, ...] = ()
    bins: tuple[ByBin, ...] = ()
    features: ByFeature | None = None
    leaning: Leaning | None = None  # where only the probability of the logged action is known
    reason: str = ""

    @property
    def off(self) -> list[ActionCalibration]:
        """Actions whose probabilities are wrong."""
        wrong = {"above", "below"} if self.whole else {"above"}
        return [a for a in self.actions if a.state in wrong]

    @property
    def missing(self) -> list[ActionCalibration]:
        """Actions that are impossible in some states, or whose probabilities are too large."""
        found = [a for a in self.actions if a.state == "below" and a.action is not None]
        return [] if self.whole else found

    @property
    def bins_off(self) -> list[ByBin]:
        """Bins in which the frequency is not the logged probability."""
        return [b for b in self.bins if b.state in ("above", "below")]

    @property
    def fine(self) -> bool:
        """Nothing shows that the probabilities are wrong."""
        by_feature = [one for one in (self.features, self.leaning) if one is not None]
        return not (self.off or self.bins_off) and all(one.fine for one in by_feature)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "fine": self.fine}


def calibrate(sums: ProbabilitySums) -> LogCalibration:
    """The comparisons that the sums by block of units allow."""
    if sums.unusable[0]:
        reason = f"actions are not single numbers, or there are more than {MOST_ACTIONS} of them"
        return LogCalibration(0, sums.whole, reason=reason)
    s = sums.nonempty()
    if len(s.rows) < 2:
        return LogCalibration(0, s.whole, reason="the log has only one unit")
    used = np.flatnonzero(s.bins[:, 0].sum(axis=0))
    comparisons = len(s.known) + 1 + len(used) + 1
    tail = ERROR / 2.0 / comparisons
    by_bin = tuple(_by_bin(int(b), s.bins[:, :, b], tail) for b in used)
    by_feature = _by_feature(s, 2.0 * tail) if s.whole else None
    leaning = None if s.whole else _leaning(s, 2.0 * tail)
    return LogCalibration(comparisons, s.whole, _by_action(s, tail), by_bin, by_feature, leaning)


def _by_action(s: ProbabilitySums, tail: float) -> tuple[ActionCalibration, ...]:
    if s.whole:
        possible, place = s.possible, s.known.astype(np.int64)
    else:  # every action may be possible, and no variance is known
        possible = np.zeros((len(s.rows), 2, len(s.known)))
        possible[:, 0], place = s.rows[:, None], np.arange(len(s.known))
    found = [
        _action(action, s.taken[:, k], possible[:, :, place[k]], s.rows, tail)
        for k, action in enumerate(s.known.tolist())
    ]
    return (*found, _action(None, s.taken.sum(axis=1), possible.sum(axis=2), s.rows, tail))


def _action(
    action: float | None, taken: Floats, possible: Floats, rows: Floats, tail: float
) -> ActionCalibration:
    """`possible` [blocks, 2]: rows in which it is, and the variance of 1{a_t = a}/mu."""
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


def _leaning(s: ProbabilitySums, chance: float) -> Leaning | None:
    """One-sided: sum (1{a_t = a}/mu - 1) f <= 0 in the mean; f and 1 - f for every feature."""
    from scipy.special import stdtr

    rows, (low, high) = s.rows, s.range
    varying = np.flatnonzero(high - low > 1e-12 * np.maximum(np.abs(low), np.abs(high)))
    often = np.flatnonzero(s.taken[:, :, 0].sum(axis=0) >= FEW_ROWS)
    if not len(varying) or not len(often):
        return None
    low, width = low[varying], (high - low)[varying]
    inverse = s.taken[:, often, 1][:, :, None]  # sums of 1/mu
    f = (s.unweighted[:, varying] - low * rows[:, None])[:, None, :] / width
    weighted = (s.weighted[:, often][:, :, varying] - low * inverse) / width
    n = rows[:, None, None]
    y = np.stack([weighted - f, inverse - weighted - (n - f)])  # [2, units, actions, features]
    total, error = y.sum(axis=1), np.sqrt((y**2).sum(axis=1))
    z = np.divide(total, error, out=np.zeros_like(total), where=error > 0.0)
    worst = np.unravel_index(int(np.argmax(z)), z.shape)
    side, action, feature = (int(i) for i in worst)
    p_value = float(min(1.0, z.size * stdtr(len(rows) - 1, -z[worst])))
    weight = float(f[:, 0, feature].sum())
    mean = 1.0 + float(total[worst]) / (rows.sum() - weight if side else weight)
    fine = p_value >= chance or mean - 1.0 < MATTERS
    return Leaning(
        float(s.known[often[action]]), None if s.mixed else int(varying[feature]), side == 0,
        z.size, mean, p_value, fine,
    )  # fmt: skip


def _by_feature(s: ProbabilitySums, chance: float) -> ByFeature:
    """The moment that is furthest from 0."""
    from scipy.special import stdtr

    rows, units, A = s.rows, len(s.rows), s.possible.shape[2]
    found, expected = s.moments.reshape(units, 2, -1).swapaxes(0, 1)
    total = found.sum(axis=0)
    variance = (
        ((found - total / rows.sum() * rows[:, None]) ** 2).sum(axis=0) * units / (units - 1.0)
    )
    error = np.sqrt(np.maximum(variance, expected.sum(axis=0)))
    z = np.divide(total, error, out=np.zeros_like(total), where=error > 0.0)
    worst = int(np.argmax(np.abs(z)))
    action, feature = divmod(worst, len(z) // A)
    tested = int((error > 0.0).sum())
    p_value = float(min(1.0, 2.0 * tested * stdtr(units - 1, -abs(z[worst]))))
    effect = float(abs(z[worst]) / np.sqrt(rows.sum()))
    fine = p_value >= chance or effect < MATTERS
    return ByFeature(
        action, None if s.mixed else feature, tested, float(z[worst]), p_value, effect, fine
    )
