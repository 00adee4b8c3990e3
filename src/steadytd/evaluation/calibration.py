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

Limits are by Student's t over blocks of units, 99.9 % for all comparisons together (Bonferroni).
Where mu(.|s) is logged, the variance that right probabilities would have is known: the larger of it
and of that between blocks counts. (By chance a rare action may not happen; then no blocks differ.)
A deviation below 1 % is no finding: probabilities are logged with few digits.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats, Longs
from steadytd.base.jit import compiled
from steadytd.base.random import PROJECTIONS, uniforms
from steadytd.evaluation.intervals import Interval
from steadytd.evaluation.overlap import mean_interval
from steadytd.evaluation.rows import BLOCKS, Division, RowTable

ERROR = 0.001  # chance of a false alarm among all comparisons of a log
MATTERS = 0.01  # of what is expected: smaller deviations come from rounding
FEW_ROWS = 30  # of an action or a bin: with fewer Student's t says nothing

MOST_ACTIONS = 64
BINS = 10  # of probability, equally wide
MOMENTS = 48  # numbers by action and feature, about
MOST_FUNCTIONS = 32  # of the state: more features are added up in groups

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
        self.projections = min(features, max(1, MOMENTS // max(actions, 1))) if actions else 0
        m = 0 if actions else self.functions
        self.known = np.empty(0)  # actions, as they were met
        self.unusable = np.zeros(1)  # rows whose action cannot be counted
        self.rows = np.zeros(BLOCKS)
        self.taken = np.zeros((BLOCKS, MOST_ACTIONS, 2))
        self.leaning = np.zeros((BLOCKS, MOST_ACTIONS, m))
        self.plain = np.zeros((BLOCKS, m))
        self.span = np.stack([np.full(m, np.inf), np.full(m, -np.inf)])
        self.possible = np.zeros((BLOCKS, 2, actions))
        self.bins = np.zeros((BLOCKS, 4, BINS))
        self.moments = np.zeros((BLOCKS, 2, actions, self.projections))

    @property
    def mixed(self) -> bool:
        """Whether features were added up or projected."""
        return (self.projections if self.whole else self.functions) < self.features

    def add(self, table: RowTable, division: Division) -> None:
        """Add the rows of a table."""
        n, block = len(table), division.block(table.unit)
        self.rows += np.bincount(block, minlength=BLOCKS)
        code = self._codes(table)
        if code is not None:
            inverse = np.zeros(n)
            mu = table.behavior_prob
            np.divide(1.0, mu, out=inverse, where=mu > 0.0)
            F = np.empty((n, 0)) if self.whole else self._functions(table.X[:n])
            lean(block, code, inverse, F, self.taken, self.leaning, self.plain, self.span)
        if self.whole:
            self._add_whole(table, block)

    def _functions(self, X: Any) -> Floats:
        """The functions of the state: features, or sums of neighbours."""
        if self.functions == self.features:
            return np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X)
        first = np.arange(MOST_FUNCTIONS) * self.features // MOST_FUNCTIONS
        place = np.searchsorted(first, np.arange(self.features), side="right") - 1
        if not hasattr(X, "toarray"):
            return np.asarray(np.add.reduceat(X, first, axis=1))
        found = np.zeros((X.shape[0], MOST_FUNCTIONS))
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        np.add.at(found, (row, place[X.indices]), X.data)
        return found

    def _codes(self, table: RowTable) -> Longs | None:
        """The place of every action among the known ones; None where they cannot be counted."""
        action = table.action
        usable = action is not None and action.ndim == 1 and len(self.known) <= MOST_ACTIONS
        if action is None or not usable:
            self.unusable += len(table)
            return None
        numbers = action.astype(np.float64, copy=False)
        code = np.empty(len(numbers), dtype=np.int64)
        at = 0
        while (at := place(numbers, self.known, at, code)) < len(numbers):
            if len(self.known) == MOST_ACTIONS:
                self.known = np.full(MOST_ACTIONS + 1, np.nan)
                self.unusable += len(numbers)
                return None
            self.known = np.append(self.known, numbers[at])
        return code

    def _add_whole(self, table: RowTable, block: Longs) -> None:
        assert table.probs is not None and table.action is not None
        n = len(table)
        mu = np.ascontiguousarray(table.probs[:n, -1])
        happened = (table.action[:, None] == np.arange(mu.shape[1])).astype(np.float64)
        some, variance = mu > 0.0, mu * (1.0 - mu)
        inverse = np.divide(1.0 - mu, mu, out=np.zeros_like(mu), where=some)
        for a in range(mu.shape[1]):
            for i, one in enumerate((some, inverse)):
                self.possible[:, i, a] += np.bincount(block, one[:, a], BLOCKS)
        number = np.minimum((mu * BINS).astype(np.int64), BINS - 1) + block[:, None] * BINS
        for i, of in enumerate((np.ones_like(mu), mu, happened, variance)):
            found = np.bincount(number.ravel(), of.ravel(), BLOCKS * BINS)
            self.bins[:, i] += found.reshape(BLOCKS, BINS)
        X = table.X[:n]
        if self.projections < self.features:
            signs = np.sign(uniforms(0, PROJECTIONS, self.features * self.projections) - 0.5)
            X = X @ signs.reshape(self.features, self.projections)
        X = np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X)
        moments(block, happened - mu, variance, X, self.moments)

    def merge(self, other: ProbabilitySums) -> None:
        """Add the sums of the next part of the log."""
        self.unusable += other.unusable
        new = other.known[~np.isin(other.known, self.known)]
        if max(len(self.known), len(other.known), len(self.known) + len(new)) > MOST_ACTIONS:
            self.known, new = np.full(MOST_ACTIONS + 1, np.nan), new[:0]
            self.unusable += 1.0
        else:
            self.known = np.append(self.known, new)
            place = [int(np.flatnonzero(self.known == a)[0]) for a in other.known.tolist()]
            for name in ("taken", "leaning"):
                getattr(self, name)[:, place] += getattr(other, name)[:, : len(place)]
        self.span[0] = np.minimum(self.span[0], other.span[0])
        self.span[1] = np.maximum(self.span[1], other.span[1])
        for name in ("rows", "plain", "possible", "bins", "moments"):
            own = getattr(self, name)
            own += getattr(other, name)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All sums by name, for a file."""
        return {k: v for k, v in vars(self).items() if isinstance(v, np.ndarray)}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """The sums that `arrays` has named."""
        vars(self).update(arrays)


@compiled
def place(action: Floats, known: Floats, at: int, code: Longs) -> int:
    """Find the place of every action from row `at` on; returns the first row that has none."""
    last = 0
    for i in range(at, len(action)):
        if last >= len(known) or known[last] != action[i]:
            last = 0
            while last < len(known) and known[last] != action[i]:
                last += 1
            if last == len(known):
                return i
        code[i] = last
    return len(action)


@compiled
def lean(
    block: Longs, code: Longs, inverse: Floats, F: Floats, taken: Floats, leaning: Floats,
    plain: Floats, span: Floats,
) -> None:  # fmt: skip
    """Add 1, 1/mu and f/mu by action, and f; widen the range of every f."""
    for i in range(len(block)):
        b, a = block[i], code[i]
        taken[b, a, 0] += 1.0
        taken[b, a, 1] += inverse[i]
        for k in range(F.shape[1]):
            f = F[i, k]
            leaning[b, a, k] += inverse[i] * f
            plain[b, k] += f
            span[0, k], span[1, k] = min(span[0, k], f), max(span[1, k], f)


@compiled
def moments(block: Longs, apart: Floats, variance: Floats, X: Floats, sums: Floats) -> None:
    """Add (1{a_t = a} - mu(a|s)) x(s) by action and feature, and its variance."""
    for i in range(len(block)):
        for a in range(apart.shape[1]):
            for k in range(X.shape[1]):
                sums[block[i], 0, a, k] += apart[i, a] * X[i, k]
                sums[block[i], 1, a, k] += variance[i, a] * X[i, k] ** 2


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


class _Blocks(NamedTuple):
    """The sums of the blocks that have rows, of sorted actions."""

    rows: Floats  # [n]
    actions: Floats  # [K]
    taken: Floats  # [n, K, 2]
    leaning: Floats  # [n, K, m]
    plain: Floats  # [n, m]
    span: Floats  # [2, m]
    possible: Floats  # [n, 2, A]
    bins: Floats  # [n, 4, BINS]
    moments: Floats  # [n, 2, A, p]
    mixed: bool

    @staticmethod
    def of(s: ProbabilitySums) -> _Blocks:
        """From all sums."""
        used, order = s.rows > 0.0, np.argsort(s.known)
        by_action = s.taken[used][:, order], s.leaning[used][:, order]
        rest = s.plain[used], s.span, s.possible[used], s.bins[used], s.moments[used]
        return _Blocks(s.rows[used], s.known[order], *by_action, *rest, s.mixed)


def calibrate(sums: ProbabilitySums) -> LogCalibration:
    """The comparisons that the sums by block of units allow."""
    if sums.unusable[0] or len(sums.known) > MOST_ACTIONS:
        reason = f"actions are not single numbers, or there are more than {MOST_ACTIONS} of them"
        return LogCalibration(0, sums.whole, reason=reason)
    s = _Blocks.of(sums)
    if len(s.rows) < 2:
        return LogCalibration(0, sums.whole, reason="the log has only one unit")
    used = np.flatnonzero(s.bins[:, 0].sum(axis=0))
    comparisons = len(s.actions) + 1 + len(used) + 1
    tail = ERROR / 2.0 / comparisons
    by_bin = tuple(_by_bin(int(b), s.bins[:, :, b], tail) for b in used)
    told = _by_feature(s, 2.0 * tail) if sums.whole else None
    leaning = None if sums.whole else _leaning(s, 2.0 * tail)
    return LogCalibration(comparisons, sums.whole, _by_action(s, tail), by_bin, told, leaning)


def _by_action(s: _Blocks, tail: float) -> tuple[ActionCalibration, ...]:
    A, nothing = s.possible.shape[2], np.zeros(len(s.rows))
    # where mu(.|s) is not known, every action may be possible, and no variance is known
    found = []
    for k, action in enumerate(s.actions.tolist()):
        possible = np.stack([s.rows, nothing], axis=1)
        if A:
            listed = action == int(action) and 0 <= action < A
            possible = s.possible[:, :, int(action)] if listed else 0.0 * possible
        found.append(_action(action, s.taken[:, k], possible, s.rows, tail))
    all_of = s.possible.sum(axis=2)
    if not A:
        all_of = np.stack([len(s.actions) * s.rows, nothing], axis=1)
    return (*found, _action(None, s.taken.sum(axis=1), all_of, s.rows, tail))


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


def _leaning(s: _Blocks, chance: float) -> Leaning | None:
    """One-sided: sum (1{a_t = a}/mu - 1) f <= 0 in the mean; f and 1 - f for every feature."""
    from scipy.special import stdtr

    rows, (low, high) = s.rows, s.span
    moves = np.flatnonzero(high - low > 1e-12 * np.maximum(np.abs(low), np.abs(high)))
    often = np.flatnonzero(s.taken[:, :, 0].sum(axis=0) >= FEW_ROWS)
    if not len(moves) or not len(often):
        return None
    low, wide = low[moves], (high - low)[moves]
    once = s.taken[:, often, 1][:, :, None]
    f = (s.plain[:, moves] - low * rows[:, None])[:, None, :] / wide
    above = (s.leaning[:, often][:, :, moves] - low * once) / wide
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
        float(s.actions[often[action]]), None if s.mixed else int(moves[feature]), side == 0,
        z.size, mean, p_value, fine,
    )  # fmt: skip


def _by_feature(s: _Blocks, chance: float) -> ByFeature:
    """The moment that is furthest from 0."""
    from scipy.stats import t

    rows, units, A = s.rows, len(s.rows), s.possible.shape[2]
    found, expected = s.moments.reshape(units, 2, -1).swapaxes(0, 1)
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
        action, None if s.mixed else feature, tested, float(z[worst]), p_value, effect, fine
    )
