"""`monitor`: is a target better, decided while data arrive? Looking after every batch is allowed.

With W the product of the ratios of an episode and g its return, scaled to [0, 1], the difference

    D = (W - 1) g,    Delta = (value of the target - value of the behaviour) / range

is at least -1, however large W is. Of an independent unit (a user; without a column of units every
episode) at most K episodes count. With X = sum D / K and N = (their number) / K

    Y(d) = X - d N >= -2  for d in [-1, 1],    E[Y(Delta)] = 0.

For l_i in [0, 1/2) chosen before unit i is seen, Fan's inequality exp(l y - psi(l) y^2) <= 1 + l y
for y >= -2, where psi(l) = (-log(1 - 2 l) - 2 l) / 4, makes the exponential of

    q(d) = sum l_i Y_i(d) - sum psi(l_i) Y_i(d)^2

a supermartingale for d = Delta. Ville's inequality: at all times at once, with probability 1 - a,
q(Delta) < log(1/a). As q is a parabola that opens downwards, q(-1) >= log(1/a) excludes all d from
-1 to the larger root of q(d) = log(1/a): a lower bound. The largest so far holds too. The upper
bound is the same with 1 - g in the place of g. With m_i the ratio of sums so far, and v_i the mean
square of Y(m_i) so far, l_i = min(sqrt(2 log(1/a) / (v_i i log(1 + i))), 1/4) (after Waudby-Smith
and Ramdas, 2024, "Estimating means of bounded random variables by betting").
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.base.display import Displayable
from steadytd.base.errors import InputError, listed, visible
from steadytd.base.files import disk_error, write_whole
from steadytd.base.numbers import about, count, interval, percent, rounded, whole
from steadytd.evaluation.behavior import require_behavior
from steadytd.evaluation.decide import Verdict
from steadytd.evaluation.facts import stated_range
from steadytd.evaluation.returning import Returning
from steadytd.evaluation.rows import Division, RowTable, recursion, tables
from steadytd.logs.columns import ColumnMap
from steadytd.logs.log import Log, open_log
from steadytd.logs.policies import Policy

if TYPE_CHECKING:
    import polars as pl

FORMAT = 2  # of the saved file
LARGEST_BET = 0.25  # of l: half of what the inequality allows
FIRST_VARIANCE = 0.25  # before the first unit: that of a fair coin
ROUNDING = 1e-9  # by which a return may leave its range
MOST_AHEAD = 10_000_000  # episodes up to which a decision is predicted


@dataclass(frozen=True)
class LowerBound:
    """A lower bound of Delta that holds at all times at once; `lower` is the largest so far.

    The sums are those of the module's text.
    """

    n: int = 0
    total: float = 0.0  # of X
    count: float = 0.0  # of N
    squares: float = 0.0  # of Y(m)
    gain: float = 0.0  # of l X
    stake: float = 0.0  # of l N
    xx: float = 0.0  # of psi(l) X^2
    xn: float = 0.0  # of psi(l) X N
    nn: float = 0.0  # of psi(l) N^2
    lower: float = -1.0

    def add(self, X: Floats, N: Floats, log_level: float) -> LowerBound:
        """With more units; `log_level` is log(1/a)."""
        if not len(X):
            return self
        i = self.n + np.arange(1, len(X) + 1)
        totals, counts = self.total + np.cumsum(X), self.count + np.cumsum(N)
        before = np.append(self.total, totals[:-1])
        m = before / np.maximum(np.append(self.count, counts[:-1]), np.finfo(float).tiny)
        squares = (X - np.clip(m, -1.0, 1.0) * N) ** 2
        spread = self.squares + np.cumsum(squares)
        bet = bets(i, (FIRST_VARIANCE + np.append(self.squares, spread[:-1])) / i, log_level)
        fan = psi(bet)
        sums = np.cumsum([bet * X, bet * N, fan * X * X, fan * X * N, fan * N * N], axis=1)
        sums += np.array([[self.gain], [self.stake], [self.xx], [self.xn], [self.nn]])
        bound = larger_root(sums, log_level)
        lower = max(self.lower, float(bound.max()))
        total, count, square = (float(x[-1]) for x in (totals, counts, spread))
        gain, stake, xx, xn, nn = sums[:, -1].tolist()
        n = self.n + len(X)
        return LowerBound(n, total, count, square, gain, stake, xx, xn, nn, lower)

    def more(self, log_level: float) -> int | None:
        """How many more units lift the bound above 0, if mean and variance stay as they are."""
        mean, variance = self.total / max(self.n, 1), self.squares / max(self.n, 1)
        if self.n < 2 or mean <= 0.0:
            return None
        size, before, net = max(self.n, 100), self.n, self.gain - self.xx - log_level
        while before < MOST_AHEAD:
            bet = bets(np.arange(before + 1, before + size + 1), variance, log_level)
            nets = net + np.cumsum(bet * mean - psi(bet) * (variance + mean**2))
            if (nets > 0.0).any():
                return before - self.n + int((nets > 0.0).argmax()) + 1
            before, size, net = before + size, 2 * size, float(nets[-1])
        return None


def larger_root(sums: Floats, log_level: float) -> Floats:
    """Of q(d) = a - b d - c d^2 = log_level, where q(-1) is not below; elsewhere -1.

    `sums` [5, n] are those of l X, l N, psi X^2, psi X N and psi N^2.
    """
    gain, stake, xx, xn, c = sums
    a, b = gain - xx - log_level, stake - 2.0 * xn
    root = 2.0 * a / (b + np.sqrt(np.maximum(b * b + 4.0 * a * c, 0.0)))
    return np.where((b > 0.0) & (a + b - c >= 0.0), np.clip(root, -1.0, 1.0), -1.0)


def bets(i: Any, variance: Any, log_level: float) -> Any:
    """l_i, given the variance of what came before."""
    floor = np.maximum(variance, np.finfo(float).tiny)
    return np.minimum(np.sqrt(2.0 * log_level / (floor * i * np.log1p(i))), LARGEST_BET)


def psi(bet: Any) -> Any:
    """(-log(1 - 2 l) - 2 l) / 4."""
    return (-np.log1p(-2.0 * bet) - 2.0 * bet) / 4.0


@dataclass(frozen=True)
class Look:
    """What is known of one target after some batches.

    `lo` and `hi` hold at all looks at once, with the level of the monitor for all targets together.
    `more` units (without a column of units: episodes) like these would decide in about one of two
    cases; None: no number is known.
    """

    target: str
    episodes: int
    units: int | None  # that are complete; None: there is no column of units
    difference: float
    lo: float
    hi: float
    decision: Verdict
    more: int | None
    level: float

    @property
    def contradiction(self) -> bool:
        """Whether the bounds exclude every value."""
        return self.lo > self.hi

    @property
    def text(self) -> str:
        """The same as a sentence or two."""
        if self.contradiction:
            return (
                f"Stop: the bounds for {self.target} contradict each other. The difference has "
                "changed over time, or logged probabilities are wrong."
            )
        each = "episode" if self.units is None else "unit"
        whose = "" if self.units is None else f" of {count(self.units, 'unit')}"
        after = f"after {count(self.episodes, 'episode')}{whose}"
        limits = (
            f"({percent(self.level)} interval, valid at every look: {interval(self.lo, self.hi)})"
        )
        by = rounded(abs(self.difference), (self.hi - self.lo) / 2.0)
        if self.decision != "undecided":
            return (
                f"Stop: {self.target} is {self.decision} than the policy that made the log by {by} "
                f"{limits}, {after}."
            )
        sign = "-" if self.difference < 0.0 and by.strip("0.") else ""
        go_on = f"Go on: {after}, {self.target} differs by {sign}{by} {limits}."
        if self.more is None:
            return f"{go_on} How many more {each}s would decide is not known."
        return f"{go_on} With {about(self.more, f'more {each}')} the chance of a decision is even."

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "text": self.text}


@dataclass(repr=False)
class Monitor(Displayable):
    """Decisions about targets while data arrive: `add` a batch, then look as often as you like.

    `lo` and `hi` are the least and the largest return of an episode, `horizon` is the most steps
    of one. `looks` has the last look at every target, `history` those after each batch. `units`
    knows which episodes belong together; None: every episode is a unit.
    """

    discount: float
    lo: float
    hi: float
    reward_range: tuple[float, float]
    horizon: int
    level: float
    targets: list[str]
    lower: list[LowerBound]  # of the difference, for each target
    upper: list[LowerBound]  # of minus the difference
    batches: list[str]  # a hash of each
    past: list[dict[str, Any]]  # rows of `history`
    units: Returning | None = None

    def add(
        self,
        source: Any,
        *,
        targets: Sequence[str] | Mapping[str, Policy] | None = None,
        columns: ColumnMap | None = None,
        behavior: Policy | None = None,
    ) -> list[Look]:
        """Add a batch of whole episodes, given as for `open_log`; returns the looks after it.

        Episodes must be new and independent of all before. A batch that is refused changes nothing.
        """
        options: Any = {"targets": targets, "columns": columns, "behavior": behavior,
                        "unit": self.unit}  # fmt: skip
        log = source if isinstance(source, Log) else open_log(
            source, discount=self.discount, **options
        )  # fmt: skip
        require_behavior(log)
        if "keep_prob" in log.schema.columns:
            raise InputError(
                "episodes that were stored with a probability cannot be monitored: column "
                f"'{log.schema.columns['keep_prob']}'. Evaluate them with st.evaluate."
            )
        if not log.targets:
            raise InputError("the batch has no target policy; give it a column target_prob_<name>.")
        if self.targets and sorted(log.targets) != sorted(self.targets):
            raise InputError(
                f"the batch has the targets {listed(log.targets)}, but those monitored are "
                f"{listed(self.targets)}; name them by targets=, or begin a new monitor."
            )
        if log.unit != self.unit:
            raise InputError(
                f"the batch has the column of units {log.unit!r}, but the monitor began with "
                f"{self.unit!r}."
            )
        log = replace(log, hashing=True)
        W, G, unit = self._episodes(log)
        assert log.contents is not None
        if log.contents in self.batches:
            raise InputError("this batch was added before; add each batch once.")
        names = [] if self.units is None else log.unit_values.to_pylist()
        if self.units is not None:
            self.units.check(names)
        if not self.targets:
            self.targets = list(log.targets)
            self.lower, self.upper = ([LowerBound()] * len(self.targets) for _ in range(2))
        g = (G - self.lo) / (self.hi - self.lo)
        w = W[[log.targets.index(name) for name in self.targets]] - 1.0
        X, N = np.concatenate([w * g, w * (1.0 - g)]), np.ones(len(g))
        if self.units is not None:
            N, X = self.units.add(names, unit, X, len(self.batches))
        both = zip(self.lower + self.upper, X, strict=True)
        bounds = [bound.add(x, N, self.log_level) for bound, x in both]
        self.lower, self.upper = bounds[: len(self.targets)], bounds[len(self.targets) :]
        self.batches.append(log.contents)
        self.past += [{"batch": len(self.batches), **asdict(look)} for look in self.looks]
        return self.looks

    def _episodes(self, log: Log) -> tuple[Floats, Floats, Longs]:
        """Of every episode, checked: products of ratios [targets, episodes], return and unit."""
        carry = np.zeros(len(log.targets))
        products, returns, units = [], [], []
        columns = ("behavior_prob", "target_prob")
        for rows in tables(log.batches(columns=columns), Division(log.rows or 0)):
            self._check(log, rows)
            begins = np.where(rows.first, rows.rho, 0.0)
            product = recursion(np.where(rows.first, 0.0, rows.rho), begins, carry)
            products.append(product[:, rows.last])
            returns.append(rows.returned[rows.last])
            units.append(rows.unit[rows.last])
        G = np.concatenate(returns)
        if G.min() < self.lo - ROUNDING or G.max() > self.hi + ROUNDING:
            raise InputError(
                f"a return is outside {self.lo:g} to {self.hi:g}, which range, horizon and "
                f"discount {self.discount:g} allow; the batch has another discount."
            )
        W, unit = np.concatenate(products, axis=1), np.concatenate(units)
        return W, np.clip(G, self.lo, self.hi), unit

    def _check(self, log: Log, rows: RowTable) -> None:
        """Rewards are in their range, and episodes are whole."""
        least, most = self.reward_range
        for wrong, what in (
            ((rows.reward < least) | (rows.reward > most),
             f"a reward is outside the stated range {least:g} to {most:g}; state a range that "
             "holds for all rewards, and begin a new monitor"),
            (rows.step >= self.horizon,
             f"an episode has more steps than the stated horizon {self.horizon}; begin a new "
             "monitor with a larger one"),
            (rows.cut & (rows.step < self.horizon - 1),
             "an episode ends here that has not terminated and is shorter than the horizon; add "
             "it in a later batch, when it is whole"),
        ):  # fmt: skip
            if wrong.any():
                raise InputError(f"{log.where(int(rows.number[wrong.argmax()]))}: {what}.")

    @property
    def unit(self) -> str | None:
        """The column of units; None: there is none."""
        return None if self.units is None else self.units.column

    @property
    def unit_episodes(self) -> int | None:
        """The most episodes of a unit that count."""
        return None if self.units is None else self.units.episodes

    @property
    def unit_batches(self) -> int | None:
        """For how many batches a unit counts."""
        return None if self.units is None else self.units.batches

    @property
    def log_level(self) -> float:
        """log(1/a) of one bound: two for each target share 1 - level."""
        return float(np.log(2.0 * len(self.targets) / (1.0 - self.level)))

    @property
    def looks(self) -> list[Look]:
        """The last look at every target; none before a unit is complete."""
        found = []
        most = self.unit_episodes or 1
        for name, low, up in zip(self.targets, self.lower, self.upper, strict=True):
            if not low.count:
                continue
            decision: Verdict = "undecided"
            if low.lower <= -up.lower:
                decision = (
                    "better" if low.lower > 0.0 else "worse" if up.lower > 0.0 else "undecided"
                )
            size, mean = self.hi - self.lo, (low.total - up.total) / (2.0 * low.count)
            toward = low if mean > 0.0 else up
            more = toward.more(self.log_level) if decision == "undecided" else 0
            found.append(
                Look(name, round(low.count * most), None if self.units is None else low.n,
                     mean * size, low.lower * size, -up.lower * size, decision, more, self.level)
            )  # fmt: skip
        return found

    @property
    def history(self) -> pl.DataFrame:
        """The looks after each batch: batch, target, episodes, difference, lo, hi, decision."""
        import polars as pl

        return pl.DataFrame(self.past, infer_schema_length=None)

    @property
    def sentences(self) -> list[str]:
        """What is known of every target, and which units and episodes do not count (yet)."""
        found = [look.text for look in self.looks]
        if not self.batches:
            return ["No batch has been added."]
        if self.units is not None and (open_ones := len(self.units.sums)):
            found.append(f"Not complete yet: {count(open_ones, 'unit')}.")
        if self.units is not None and self.units.left_out:
            lasts = count(self.unit_batches or 1, "batch", "batches")
            found.append(
                f"Left out: {count(self.units.left_out, 'episode')} beyond the first "
                f"{self.unit_episodes} of a unit, or later than {lasts} from its first one on."
            )
        return found

    @property
    def assumed(self) -> str:
        """What the bounds take for granted."""
        if self.units is None:
            return "Assumed: episodes are independent, and each is in one batch only."
        return f"Assumed: units ({visible(self.units.column)}) are independent."

    def __repr__(self) -> str:
        known = ", ".join(f"{look.target} {look.decision}" for look in self.looks[:3])
        return visible(f"<monitor of {known or 'nothing yet'}; {count(len(self.batches), 'look')}>")

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"looks": [look.to_dict() for look in self.looks], "history": self.past}

    def save(self, path: str | Path) -> Path:
        """Save it as JSON, so that a later process can go on with `load_monitor`."""
        place = Path(path)
        try:
            return write_whole(place, json.dumps({"format": FORMAT, **asdict(self)}, indent=1))
        except OSError as error:
            raise disk_error(error, place) from None


def monitor(
    *,
    reward_range: tuple[float, float],
    discount: float = 1.0,
    horizon: int = 1,
    level: float = 0.95,
    unit: str | None = None,
    unit_episodes: int | None = None,
    unit_batches: int | None = None,
) -> Monitor:
    """Begin to monitor whether targets are better than the policy that makes the data.

    `reward_range` are the least and the largest reward that a step can give, `horizon` is the most
    steps of an episode (1: one decision each). Decisions hold with probability `level` at all looks
    and for all targets together, however often one looks and whenever one stops.

    `unit` is a column that says which episodes belong together (those of one user). The first
    `unit_episodes` of each count. A unit that comes back in a later batch is refused, unless
    `unit_batches` says for how many batches, from its first one on, a unit counts.

    >>> m = monitor(reward_range=(0, 1))
    >>> print(m)
    No batch has been added.
    """
    stated = stated_range(reward_range, horizon)
    faults = []
    if stated is None or stated.lo == stated.hi:
        faults.append(f"reward_range must be (lo, hi) with lo < hi, got {reward_range!r}")
    if not 0.0 <= discount <= 1.0:
        faults.append(f"discount must be in [0, 1], got {discount!r}")
    if not 0.5 <= level < 1.0:
        faults.append(f"level must be in [0.5, 1), for instance 0.95, got {level!r}")
    if unit is None and (unit_episodes, unit_batches) != (None, None):
        faults.append("unit_episodes and unit_batches need unit, the column of units")
    if unit is not None and (not isinstance(unit, str) or unit_episodes is None):
        faults.append(
            "unit must be the name of a column, and needs unit_episodes, the most episodes of a "
            f"unit that count, got {unit!r} and {unit_episodes!r}"
        )
    if faults or stated is None:
        raise InputError("; ".join(faults) + ".")
    units = None
    if unit is not None:
        batches = None if unit_batches is None else whole("unit_batches", unit_batches, 1)
        units = Returning(unit, whole("unit_episodes", unit_episodes, 1), batches)
    steps = whole("horizon", horizon, 1)
    weight = float(steps if discount == 1.0 else (1.0 - discount**steps) / (1.0 - discount))
    lo, hi = min(stated.lo, stated.lo * weight), max(stated.hi, stated.hi * weight)
    pair = (stated.lo, stated.hi)
    return Monitor(discount, lo, hi, pair, steps, level, [], [], [], [], [], units)


def load_monitor(path: str | Path) -> Monitor:
    """A monitor that was saved."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        if found.pop("format") != FORMAT:
            raise ValueError
        for name in ("lower", "upper"):
            found[name] = [LowerBound(**bound) for bound in found[name]]
        found["reward_range"] = tuple(found["reward_range"])
        found["units"] = found["units"] and Returning(**found["units"])
        return Monitor(**found)
    except OSError as error:
        raise InputError(f"cannot read '{path}': {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(
            f"'{path}' is not a saved monitor of this version; begin a new one."
        ) from None
