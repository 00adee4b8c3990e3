"""`monitor`: is a target better, decided while data arrive? Looking after every batch is allowed.

With W the product of the ratios of an episode and g its return, scaled to [0, 1], the paired
difference

    D = (W - 1) g,    E[D] = Delta = (value of the target - value of the behaviour) / range,

is at least -1, however large W is. For numbers m_i in [-1, 1] and l_i in [0, 1/2), both chosen
before D_i is seen, Fan's inequality exp(l x - psi(l) x^2) <= 1 + l x for x >= -2, where

    psi(l) = (-log(1 - 2 l) - 2 l) / 4,

makes the product of exp(l_i (D_i - Delta) - psi(l_i) (D_i - m_i)^2) a supermartingale. Ville's
inequality then gives, at all times at once, with probability 1 - a,

    Delta >= ( sum l_i D_i - log(1/a) - sum psi(l_i) (D_i - m_i)^2 ) / sum l_i.

The largest of these bounds so far holds too. The upper bound is the same with 1 - g in the place of
g. Here m_i is the mean so far and l_i = min(sqrt(2 log(1/a) / (v_i i log(1 + i))), 1/4) with the
variance so far v_i (Waudby-Smith and Ramdas, 2024, "Estimating means of bounded random variables by
betting", theorem 2).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError, listed
from steadytd.base.files import disk_error, write_whole
from steadytd.base.numbers import about, count, interval, percent, rounded, whole
from steadytd.evaluation.behavior import require_behavior
from steadytd.evaluation.decide import Verdict
from steadytd.evaluation.facts import stated_range
from steadytd.evaluation.rows import Division, RowTable, recursion, tables
from steadytd.logs.columns import ColumnMap
from steadytd.logs.log import Log, open_log
from steadytd.logs.policies import Policy

if TYPE_CHECKING:
    import polars as pl

FORMAT = 1  # of the saved file
LARGEST_BET = 0.25  # of l: half of what the inequality allows
FIRST_VARIANCE = 0.25  # before the first episode: that of a fair coin
ROUNDING = 1e-9  # by which a return may leave its range
MOST_AHEAD = 10_000_000  # episodes up to which a decision is predicted


@dataclass(frozen=True)
class LowerBound:
    """A lower bound of the mean of numbers D >= -1 that holds at all times at once.

    The sums are those of the module's text; `lower` is the largest bound so far.
    """

    n: int = 0
    total: float = 0.0  # of D
    squares: float = 0.0  # of D - m
    bets: float = 0.0
    gain: float = 0.0  # of l D
    cost: float = 0.0  # of psi(l) (D - m)^2
    lower: float = -1.0

    def add(self, D: Floats, log_level: float) -> LowerBound:
        """With more numbers; `log_level` is log(1/a)."""
        if not len(D):
            return self
        i = self.n + np.arange(1, len(D) + 1)
        totals = self.total + np.cumsum(D)
        before = np.append(self.total, totals[:-1]) / np.maximum(i - 1, 1)
        squares = (D - np.clip(before, -1.0, 1.0)) ** 2
        spread = self.squares + np.cumsum(squares)
        variance = (FIRST_VARIANCE + np.append(self.squares, spread[:-1])) / i
        bet = bets(i, variance, log_level)
        sums = np.cumsum([bet, bet * D, psi(bet) * squares], axis=1)
        taken, gain, cost = sums + np.array([[self.bets], [self.gain], [self.cost]])
        bound = (gain - cost - log_level) / taken
        return LowerBound(
            self.n + len(D), float(totals[-1]), float(spread[-1]), float(taken[-1]),
            float(gain[-1]), float(cost[-1]), max(self.lower, float(bound.max())),
        )  # fmt: skip

    def more(self, log_level: float) -> int | None:
        """How many more numbers lift the bound above 0, if mean and variance stay as they are."""
        mean, variance = self.total / max(self.n, 1), self.squares / max(self.n, 1)
        if self.n < 2 or mean <= 0.0:
            return None
        size, before, net = max(self.n, 100), self.n, self.gain - self.cost - log_level
        while before < MOST_AHEAD:
            bet = bets(np.arange(before + 1, before + size + 1), variance, log_level)
            nets = net + np.cumsum(bet * mean - psi(bet) * variance)
            if (nets > 0.0).any():
                return before - self.n + int((nets > 0.0).argmax()) + 1
            before, size, net = before + size, 2 * size, float(nets[-1])
        return None


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
    `more` episodes like these would decide in about one of two cases; None: no number is known.
    """

    target: str
    episodes: int
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
        after = f"after {count(self.episodes, 'episode')}"
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
            return f"{go_on} How many more episodes would decide is not known."
        return f"{go_on} With {about(self.more, 'more episode')} the chance of a decision is even."

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "text": self.text}


@dataclass
class Monitor:
    """Decisions about targets while data arrive: `add` a batch, then look as often as you like.

    `lo` and `hi` are the least and the largest return of an episode, `horizon` is the most steps
    of one. `looks` has the last look at every target, `history` those after each batch.
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
        options: Any = {"targets": targets, "columns": columns, "behavior": behavior}
        log = source if isinstance(source, Log) else open_log(
            source, discount=self.discount, **options
        )  # fmt: skip
        require_behavior(log)
        if not log.targets:
            raise InputError("the batch has no target policy; give it a column target_prob_<name>.")
        if self.targets and sorted(log.targets) != sorted(self.targets):
            raise InputError(
                f"the batch has the targets {listed(log.targets)}, but those monitored are "
                f"{listed(self.targets)}; name them by targets=, or begin a new monitor."
            )
        log = replace(log, hashing=True)
        W, G = self._episodes(log)
        assert log.contents is not None
        if log.contents in self.batches:
            raise InputError("this batch was added before; add each batch once.")
        if not self.targets:
            self.targets = list(log.targets)
            self.lower, self.upper = ([LowerBound()] * len(self.targets) for _ in range(2))
        g = (G - self.lo) / (self.hi - self.lo)
        order = [log.targets.index(name) for name in self.targets]
        both = [
            (low.add((w - 1.0) * g, self.log_level), up.add((w - 1.0) * (1.0 - g), self.log_level))
            for w, low, up in zip(W[order], self.lower, self.upper, strict=True)
        ]
        self.lower, self.upper = [low for low, _ in both], [up for _, up in both]
        self.batches.append(log.contents)
        self.past += [{"batch": len(self.batches), **asdict(look)} for look in self.looks]
        return self.looks

    def _episodes(self, log: Log) -> tuple[Floats, Floats]:
        """The product of ratios [targets, episodes] and the return of every episode, checked."""
        carry = np.zeros(len(log.targets))
        products, returns = [], []
        columns = ("behavior_prob", "target_prob")
        for rows in tables(log.batches(columns=columns), Division(log.rows or 0)):
            self._check(log, rows)
            begins = np.where(rows.first, rows.rho, 0.0)
            product = recursion(np.where(rows.first, 0.0, rows.rho), begins, carry)
            products.append(product[:, rows.last])
            returns.append(rows.returned[rows.last])
        G = np.concatenate(returns)
        if G.min() < self.lo - ROUNDING or G.max() > self.hi + ROUNDING:
            raise InputError(
                f"a return is outside {self.lo:g} to {self.hi:g}, which range, horizon and "
                f"discount {self.discount:g} allow; the batch has another discount."
            )
        return np.concatenate(products, axis=1), np.clip(G, self.lo, self.hi)

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
    def log_level(self) -> float:
        """log(1/a) of one bound: two for each target share 1 - level."""
        return float(np.log(2.0 * len(self.targets) / (1.0 - self.level)))

    @property
    def looks(self) -> list[Look]:
        """The last look at every target."""
        found = []
        for name, low, up in zip(self.targets, self.lower, self.upper, strict=True):
            decision: Verdict = "undecided"
            if low.lower <= -up.lower:
                decision = (
                    "better" if low.lower > 0.0 else "worse" if up.lower > 0.0 else "undecided"
                )
            size, mean = self.hi - self.lo, (low.total - up.total) / (2.0 * low.n)
            toward = low if mean > 0.0 else up
            more = toward.more(self.log_level) if decision == "undecided" else 0
            found.append(
                Look(name, low.n, mean * size, low.lower * size, -up.lower * size, decision, more,
                     self.level)
            )  # fmt: skip
        return found

    @property
    def history(self) -> pl.DataFrame:
        """The looks after each batch: batch, target, episodes, difference, lo, hi, decision."""
        import polars as pl

        return pl.DataFrame(self.past, infer_schema_length=None)

    def __str__(self) -> str:
        return "\n".join(look.text for look in self.looks) or "No batch has been added."

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
) -> Monitor:
    """Begin to monitor whether targets are better than the policy that makes the data.

    `reward_range` are the least and the largest reward that a step can give, `horizon` is the most
    steps of an episode (1: one decision each). Decisions hold with probability `level` at all looks
    and for all targets together, however often one looks and whenever one stops.

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
    if faults or stated is None:
        raise InputError("; ".join(faults) + ".")
    steps = whole("horizon", horizon, 1)
    weight = float(steps if discount == 1.0 else (1.0 - discount**steps) / (1.0 - discount))
    lo, hi = min(stated.lo, stated.lo * weight), max(stated.hi, stated.hi * weight)
    pair = (stated.lo, stated.hi)
    return Monitor(discount, lo, hi, pair, steps, level, [], [], [], [], [])


def load_monitor(path: str | Path) -> Monitor:
    """A monitor that was saved."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        if found.pop("format") != FORMAT:
            raise ValueError
        for name in ("lower", "upper"):
            found[name] = [LowerBound(**bound) for bound in found[name]]
        found["reward_range"] = tuple(found["reward_range"])
        return Monitor(**found)
    except OSError as error:
        raise InputError(f"cannot read '{path}': {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(
            f"'{path}' is not a saved monitor of this version; begin a new one."
        ) from None
