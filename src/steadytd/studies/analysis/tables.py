"""The tables of a study: the best configuration of each learner, paired differences, a ranking.

A learner's best configuration was chosen on the grid's seeds, so its error there is too good. Its
error on fresh seeds is not; the difference is the selection bias. Two learners are compared on the
seeds that they share: a seed is a stream (and, in a family, an instance), so the differences
x_i - y_i of the errors vary less than the errors do. Their mean has the interval

    mean +- t(0.975, n - 1) sd / sqrt(n).

Whether two learners differ is decided by the p-value of the paired t test, adjusted by Holm's
method for *all* pairs of learners of the problem. So at most one time in twenty any pair is called
different that is not, also beside a learner that was picked because it came first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Floats

if TYPE_CHECKING:
    import polars as pl

LEVEL = 0.95
ROUNDING = 1e-12  # a mean difference below this share of the errors is rounding
SOLVED = 1e-9  # and so is one below this share of the error at w0: all solvers end at some 1e-11
FACTS = ("problem", "run", "algorithm")
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Mean(NamedTuple):
    """A mean over seeds: infinite if a seed overflowed, without standard error then or for one."""

    value: float
    stderr: float | None
    seeds: int
    diverged: int


class Paired(NamedTuple):
    """The mean difference of a learner's error to a reference's, over their common seeds.

    `p` is the p-value, adjusted for the number of `comparisons`. `verdict` is "better" or "worse"
    (p below 0.05, or fewer or more overflowed seeds), "same" (cannot be told apart), "identical"
    (the same update on this problem) or "unknown" (one seed, or equally many overflowed).
    """

    learner: str
    reference: str
    difference: float | None
    low: float | None
    high: float | None
    seeds: int
    p: float | None
    comparisons: int
    verdict: str


@dataclass(frozen=True)
class Best:
    """The best configuration of one learner on one problem, and how its whole grid fared.

    `measured` is on fresh seeds if there are any. `never_diverged` and `useful` count
    configurations: without an overflowed seed, and with a mean error below that of w0.
    """

    algorithm: str
    run: str
    params: Mapping[str, float | str]
    grid: Mean
    measured: Mean
    final: Mean
    fresh: bool
    configurations: int
    never_diverged: int
    useful: int
    edges: tuple[tuple[str, str], ...]
    outcomes: tuple[str, ...] = ()  # a word for every seed; see `runs.outcome`

    @property
    def bias(self) -> float | None:
        """How much too good the grid's value is: fresh minus grid."""
        found = self.measured.value - self.grid.value
        return found if self.fresh and np.isfinite(found) else None

    @property
    def bias_stderr(self) -> float | None:
        """The standard error of `bias`: the two sets of seeds are independent."""
        one, other = self.grid.stderr, self.measured.stderr
        if self.bias is None or one is None or other is None:
            return None
        return float(np.hypot(one, other))

    @property
    def shown(self) -> str:
        """Its hyper-parameters that were varied, for reading."""
        return ", ".join(f"{k} {short(v)}" for k, v in self.params.items()) or "no grid"


@lru_cache(maxsize=4096)  # a grid has few values
def short(value: float | str) -> str:
    """A hyper-parameter for reading; powers of two as such. A text may be that of a number.

    >>> short(0.03125), short(0.9), short(1.0), short("scaled"), short(2.0**-18), short("0.0")
    ('2⁻⁵', '0.9', '1', 'scaled', '2⁻¹⁸', '0')
    """
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return str(value)
    fraction, exponent = np.frexp(value)
    if value > 0.0 and fraction == 0.5 and not 0.25 <= value <= 8.0:
        return power_of_two(int(exponent) - 1)
    return f"{value:g}"


def power_of_two(exponent: int) -> str:
    """2 to a whole power, for reading.

    >>> power_of_two(-12)
    '2⁻¹²'
    """
    return f"2{str(exponent).translate(SUPERSCRIPTS)}"


def mean_of(errors: Floats) -> Mean:
    """Mean and standard error over the seeds."""
    overflowed = int((~np.isfinite(errors)).sum())
    if overflowed or not len(errors):
        return Mean(float("inf"), None, len(errors), overflowed)
    spread = float(errors.std(ddof=1) / np.sqrt(len(errors))) if len(errors) > 1 else None
    return Mean(float(errors.mean()), spread, len(errors), 0)


def half_width(differences: Floats) -> float:
    """Half the 95 % interval of a mean, by Student's t."""
    from scipy.special import stdtrit

    n = len(differences)
    quantile = float(stdtrit(n - 1, 0.5 + LEVEL / 2.0))
    return quantile * float(differences.std(ddof=1)) / float(np.sqrt(n))


def paired(
    learner: str, reference: str, errors: Mapping[str, Mapping[int, float]], zero: float = 0.0
) -> Paired:
    """Compare two learners on the seeds that both have; `errors` is by learner, then seed.

    A mean difference of at most `zero` counts as none.
    """
    from scipy.special import stdtr

    seeds = sorted(errors[learner].keys() & errors[reference].keys())
    own, other = (np.array([errors[name][s] for s in seeds]) for name in (learner, reference))
    n, lost, others = len(seeds), *(int((~np.isfinite(e)).sum()) for e in (own, other))
    if lost or others:
        verdict = "unknown" if lost == others else "worse" if lost > others else "better"
        return Paired(learner, reference, None, None, None, n, None, 1, verdict)
    difference = own - other
    if n < 2:
        only = float(difference[0]) if seeds else None
        return Paired(learner, reference, only, None, None, n, None, 1, "unknown")
    mean, half = float(difference.mean()), half_width(difference)
    noise = float(difference.std(ddof=1) / np.sqrt(n))
    if abs(mean) <= max(zero, ROUNDING * float(np.abs(np.append(own, other)).max())):
        p = 1.0
    else:
        p = 2.0 * float(stdtr(n - 1, -abs(mean) / noise)) if noise > 0.0 else 0.0
    found = Paired(learner, reference, mean, mean - half, mean + half, n, p, 1, "")
    return found._replace(verdict=_verdict(found))


def _verdict(pair: Paired) -> str:
    if pair.p is None or pair.difference is None:
        return pair.verdict
    if pair.p >= 1.0 - LEVEL:
        return "same"
    return "better" if pair.difference < 0.0 else "worse"


def holm(p: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values: the k-th smallest of m times m - k + 1, none below one before it.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p, kind="stable")
    steps = np.asarray(p, dtype=np.float64)[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return [float(x) for x in adjusted]


def compare(
    errors: Mapping[str, Mapping[int, float]],
    same: Collection[frozenset[str]] = (),
    zero: float = 0.0,
) -> dict[tuple[str, str], Paired]:
    """Every learner beside every other, adjusted for all these comparisons.

    Pairs in `same` are the same update; they are not compared and not counted.
    """
    found = [paired(a, b, errors, zero) for a, b in combinations(errors, 2)]
    found = [
        x._replace(p=None, verdict="identical") if frozenset(x[:2]) in same else x for x in found
    ]
    tested = [x for x in found if x.p is not None]
    p = dict(zip((x[:2] for x in tested), holm([x.p or 0.0 for x in tested]), strict=True))
    pairs = {}
    for alone in found:
        pair = alone._replace(p=p.get(alone[:2]), comparisons=len(tested))
        pair = pair._replace(verdict=_verdict(pair))
        pairs[pair.learner, pair.reference] = pair
        pairs[pair.reference, pair.learner] = _turned(pair)
    return pairs


def _turned(pair: Paired) -> Paired:
    """The same comparison from the other side."""
    difference, low, high = (None if v is None else -v for v in pair[2:5])
    other = {"better": "worse", "worse": "better"}.get(pair.verdict, pair.verdict)
    return pair._replace(
        learner=pair.reference, reference=pair.learner,
        difference=difference, low=high, high=low, verdict=other,
    )  # fmt: skip


def ranking(order: Sequence[str], pairs: Mapping[tuple[str, str], Paired]) -> list[list[str]]:
    """Learners, best first, in groups: a group's members do not differ from its first one."""
    groups: list[list[str]] = []
    for name in order:
        tied = bool(groups) and pairs[name, groups[-1][0]].verdict != "worse"
        if tied:
            groups[-1].append(name)
        else:
            groups.append([name])
    return groups


def axes_of(configurations: pl.DataFrame) -> dict[str, list[Any]]:
    """The hyper-parameters that vary within one learner's grid, with their values in order."""
    names = [name for name in configurations.columns if name not in FACTS]
    values = {n: configurations[n].drop_nulls().unique().sort().to_list() for n in names}
    return {name: found for name, found in values.items() if len(found) > 1}


def at_the_edge(
    axes: Mapping[str, Sequence[Any]], params: Mapping[str, Any]
) -> tuple[tuple[str, str], ...]:
    """Parameters whose best value is the first or last of three or more; 0 is no edge.

    >>> at_the_edge({"alpha": [0.1, 0.2, 0.4], "lam": [0.0, 0.5, 0.9]}, {"alpha": 0.4, "lam": 0.0})
    (('alpha', 'largest'),)
    """
    return tuple(
        (name, side)
        for name, values in axes.items()
        if len(values) > 2 and not isinstance(params.get(name, ""), str)
        for side, end in (("smallest", values[0]), ("largest", values[-1]))
        if params[name] == end != 0.0
    )
