"""The tables of a study: the best configuration of each learner, paired differences, a ranking.

A learner's best configuration was chosen on the grid's seeds, so its error there is too good. Its
error on fresh seeds is not; the difference is the selection bias. Two learners are compared on the
seeds that they share: a seed is a stream (and, in a family, an instance), so the differences
x_i - y_i of the errors vary less than the errors do. Their mean has the interval

    mean +- t(0.975, n - 1) sd / sqrt(n).

Whether two learners differ is decided by the p-value of the paired t test, adjusted by Holm's
method for *all* pairs of learners of the problem. So at most one time in twenty any pair is called
different that is not, also beside a learner that was picked because it came first.

The mean error over a run hides how soon it became small, so there are step counts, too (`reaches`).
The error is known at the recording points: "by step N" means that at N it is below a share of the
error at w0, and that at the recording point before N, `after`, it was not yet.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, Longs

if TYPE_CHECKING:
    import polars as pl

LEVEL = 0.95
ROUNDING = 1e-12  # a mean difference below this share of the errors is rounding
SOLVED = 1e-9  # and so is one below this share of the error at w0: all solvers end at some 1e-11
FACTS = ("problem", "run", "algorithm")
NUMBERS = ("error", "stderr", "diverged_share", "seeds")  # of a configuration, beside its settings
LEVELS = {"a tenth": 0.1, "a hundredth": 0.01, "a millionth": 1e-6}  # of the error at w0
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
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    seeds: int = 0
    p: float | None = None
    comparisons: int = 1
    verdict: str = "unknown"


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
    def settings(self) -> str:
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
    found, n = Paired(learner, reference, seeds=len(seeds)), len(seeds)
    lost, others = (int((~np.isfinite(e)).sum()) for e in (own, other))
    if lost != others:
        return found._replace(verdict="worse" if lost > others else "better")
    if lost or not n:
        return found
    difference = own - other
    mean = float(difference.mean())
    if n == 1:
        return found._replace(difference=mean)
    half, noise = half_width(difference), float(difference.std(ddof=1) / np.sqrt(n))
    if abs(mean) <= max(zero, ROUNDING * float(np.abs([own, other]).max())):
        p = 1.0
    else:
        p = 2.0 * float(stdtr(n - 1, -abs(mean) / noise)) if noise > 0.0 else 0.0
    return found._replace(
        difference=mean, low=mean - half, high=mean + half, p=p, verdict=_verdict(mean, p)
    )


def _verdict(difference: float | None, p: float) -> str:
    if p >= 1.0 - LEVEL:
        return "same"
    return "better" if (difference or 0.0) < 0.0 else "worse"


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

    Pairs in `same` are the same update; they are not tested and not counted.
    """
    found = {pair: paired(*pair, errors, zero) for pair in permutations(errors, 2)}
    raw = {frozenset(pair): found[pair].p for pair in combinations(errors, 2)}
    tested = {pair: p for pair, p in raw.items() if p is not None and pair not in same}
    adjusted = dict(zip(tested, holm(list(tested.values())), strict=True))
    for pair, x in found.items():
        p, verdict = adjusted.get(frozenset(pair)), x.verdict
        if p is not None:
            verdict = _verdict(x.difference, p)
        elif frozenset(pair) in same:
            verdict = "identical"
        found[pair] = x._replace(p=p, comparisons=len(tested), verdict=verdict)
    return found


def ranking(order: Sequence[str], pairs: Mapping[tuple[str, str], Paired]) -> list[list[str]]:
    """Learners, best first, in groups: a group's members do not differ from its first one."""
    groups: list[list[str]] = []
    for name in order:
        if groups and pairs[name, groups[-1][0]].verdict != "worse":
            groups[-1].append(name)
        else:
            groups.append([name])
    return groups


def axes_of(configurations: pl.DataFrame) -> dict[str, list[Any]]:
    """The hyper-parameters that vary within one learner's grid, with their values in order."""
    names = [name for name in configurations.columns if name not in (*FACTS, *NUMBERS)]
    values = {n: configurations[n].drop_nulls().unique().sort().to_list() for n in names}
    return {name: found for name, found in values.items() if len(found) > 1}


def tally(configurations: pl.DataFrame, start: float) -> dict[str, int]:
    """How many configurations there are, never diverged, and have an error below that of w0."""
    return {
        "configurations": len(configurations),
        "never_diverged": int((configurations["diverged_share"] == 0.0).sum()),
        "useful": int((configurations["error"] < start).sum()),
    }


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


class Reach(NamedTuple):
    """The median of the first recording points with an error below `share` times that at w0.

    `reached` of the `seeds` were below it at some recording point. `step` is the first recording
    point by which at least half were, None if fewer ever were.
    """

    share: float
    after: int | None
    step: int | None
    reached: int
    seeds: int


def reaches(points: Longs, errors: Floats) -> list[Reach]:
    """One for each level; `errors` is [seeds, points], the first point is w0's."""
    found = []
    for share in LEVELS.values():
        below = errors < share * errors[:, :1]
        first = np.sort(np.where(below.any(axis=1), below.argmax(axis=1), len(points)))
        half = int(first[(len(first) - 1) // 2])
        after, step = points[half - 1 : half + 1].tolist() if half < len(points) else (None, None)
        found.append(Reach(share, after, step, int((first < len(points)).sum()), len(first)))
    return found


def reach_text(found: Reach, steps: int) -> str:
    """A step count for a table.

    >>> reach_text(Reach(0.1, 90, 100, 10, 10), 500)
    '100'
    >>> reach_text(Reach(0.1, None, None, 3, 9), 500)
    'not in 500 (3 of 9 seeds)'
    """
    text = f"not in {steps:,}" if found.step is None else f"{found.step:,}"
    partly = 0 < found.reached < found.seeds
    return f"{text} ({found.reached} of {found.seeds} seeds)" if partly else text


def resolution(every: int, per_decade: int) -> str:
    """Where the error is recorded, in words.

    >>> resolution(5000, 20), resolution(100, 0)
    ('at 20 steps per decade and every 5,000 steps', 'every 100 steps')
    """
    text = f"every {every:,} steps" if every > 1 else "at every step"
    return f"at {per_decade} steps per decade and {text}" if per_decade else text
