"""A cure: a mean update with a parameter, for some values of which it is stable.

At the value a of the parameter the mean update is w <- w + alpha (g(a) - M(a) w), or an iteration
with the matrix I - M(a). A penalty is a cure, so are a trace decay, a ridge, a number of steps: all
have the same three questions, answered here. All matrices live on the row space of the features of
the states that mu visits.

**For which values is it stable?** A set, which need not be monotone. Where M(a) = M_0 + a M_1, an
eigenvalue crosses the imaginary axis only where M(a) or its bialternate sum is singular. Both are
linear in a, so those values are eigenvalues, and one test between neighbouring values decides: the
set is exact, unless rounding scatters eigenvalues that coincide. Otherwise it is found by a scan,
which may miss a very short interval. Whole numbers are tested one by one, up to where a theorem
takes over.

**Which values are safe?** Unstable values, and the poles, where M(a) is singular, are *trouble*. A
value is *clear* if

1. the mean update is stable;
2. no trouble lies within a tenth of the value, nor within a fiftieth of the largest troublesome one
   (so a very small value, with its very small tenth, cannot hide beside a crossing);
3. moving it by one per cent, up or down, moves the predictions by at most a tenth of their norm.

A whole number is clear if it is stable. For a penalty at lam = 0 the resolvent identity
Phi w(e) - Phi w(eta) = (eta - e) Phi (K + e)^-1 w(eta), with K = G^-1 A_0, and
|(K + e)^-1| <= 1/(e - eta_pd) show that **every eta >= eta_pd/0.89 is clear**: one per cent down
moves the values by at most 0.01 eta/(0.99 eta - eta_pd) <= 0.1 of their norm.

**Which value is best?** For "auto" of a penalty the clear one of least error (`least_error`). For
the table of cures errors within 5 % are equal, and the noise of the updates counts (`best`).
A value is on a *knife edge* if halving or doubling it multiplies the error by more than ten, to
more than a tenth of the true values' norm. Then the error counts that it has when it is off by a
factor of two.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.linalg

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError, visible
from steadytd.base.numbers import number
from steadytd.base.parallel import single_threaded
from steadytd.engine.law import Value
from steadytd.engine.learner import Learner
from steadytd.mdp.cached import cached
from steadytd.mdp.moments import Expectation, Moments
from steadytd.mdp.problem import Problem
from steadytd.mdp.scales import ROUNDING, SAME, Complexes, rates_of, slowest, tall_triangle, zeroed
from steadytd.theory.exact import MeanSquare
from steadytd.theory.thresholds import (
    LARGEST_EXACT,
    Eigen,
    Interval,
    Line,
    Pencil,
    bounds,
    real_ones,
    sign_changes,
    unstable_intervals,
)

CLOSE = 1.05  # errors within 5 % are equally good
ENOUGH = 0.9  # of the best rate: the rest costs a much larger parameter
UNBOUNDED = float("inf")
# what is clear
MARGIN = 0.1  # of the value: the distance kept from all trouble
FLOOR = 0.02  # of the largest troublesome value: the least such distance
NUDGE = 0.01  # of the value: so far it is moved to see how steep the fixed point is
STEEP = 0.1  # of the predictions' norm: a nudge must not move them farther
TENFOLD = 10.0  # by so much halving or doubling multiplies the error on a knife edge,
MATTERS = 0.1  # and to more than this share of the true values' norm
# the search for unstable values
SCAN, COARSE = 200, 64  # values in a scan; of matrices beyond the largest exact ones
SAFETY = 24  # values looked at beside the exact crossings
EACH = 64  # whole numbers looked at one by one where no theorem takes over,
GROWTH = 1.1  # then by this factor
HUGE = 1e9  # crossings that are so many times the scale of the cure, or so small, are rounding
# the search for the least error
PENALTIES = np.linspace(0.0, 1.0, 241) ** 2  # tried, as shares of the largest: dense near 0
DOUBLINGS = 30  # of the largest penalty, should none up to it be clear
BESIDE = 1.0 + 1e-5  # times the end of an unstable interval: just outside
VALUES = 121  # tried of other cures
COMPARED = 24  # equally good values whose rate and noise are compared


class Setting:
    """A problem and one of its target policies: how errors, values and noise are measured."""

    def __init__(self, problem: Problem, policy: int = 0) -> None:
        # not the problem itself: it keeps settings, and both would wait for Python's collector
        self.name, self.states = problem.name, problem.error_weights(policy)
        self.m: Moments = problem.moments(policy)
        self.rank = int(self.m.row_space.shape[1])

    @staticmethod
    @cached(16)
    def of(problem: Problem, policy: int = 0) -> Setting:
        """The setting of one problem and target policy."""
        return Setting(problem, policy)

    @cached_property
    def size(self) -> float:
        """The norm of the true values, in which errors are measured."""
        return self.error(np.zeros(self.m.n_features))

    @property
    def scale(self) -> float:
        """The size of the values and of the rewards, next to which errors may be rounding."""
        return self.size + self.m.reward_size

    @cached_property
    def measured(self) -> Floats:
        """The matrix that makes of (w, -1) numbers with the root mean square error of w."""
        known = np.hstack([self.m.compared, self.m.v_pi[:, None]])
        return tall_triangle(np.sqrt(self.states)[:, None] * known)

    @cached_property
    def weighted(self) -> Floats:
        """The matrix that makes of w numbers with the size of its values."""
        return tall_triangle(np.sqrt(self.m.d)[:, None] * self.m.compared)

    @cached_property
    def squares(self) -> tuple[Floats, Any]:
        """E[rho^2 | s], and sum_a pi^2/mu p gamma^2: how squared weights go on to the next step."""
        m = self.m
        squares = np.divide(m.pi**2, m.mu, out=np.zeros_like(m.pi), where=m.mu > 0.0)
        return squares.sum(axis=1), m.flow(
            squares, np.square(m.gamma[:1, :1] if m.sparse else m.gamma)
        )

    @property
    def td_noise(self) -> float:
        """The noise of updates that are multiplied by rho alone, as TD's are."""
        return float(np.sqrt(self.m.d @ self.squares[0] / self.m.d.sum()))

    def error(self, w: Floats) -> float:
        """The error of weights."""
        return float(np.linalg.norm(self.measured @ np.append(w, -1.0)))

    def norm(self, w: Floats) -> float:
        """The size of the values of weights."""
        return float(np.linalg.norm(self.weighted @ w))


@dataclass(frozen=True, eq=False, repr=False)
class Cure:
    """One cure on one problem, for every value of its parameter, which is called `amount`.

    `system` gives M and g. Where these are A_0 + a G and b of a pencil, `pencil` is that, and for
    features of very different sizes `sizes` are those of its coordinates.
    `certain`: all values from there on are stable, by a theorem (None: none is known).
    `finite` says whether what the cure carries from step to step has a finite second moment; its
    verdict changes at most once along the values. None: at most a bounded number of ratios is
    carried. `own_noise` is that of `variance.noise`; None: that of rho alone.
    `chosen` is what "auto" selects, where that is offered; then it is the best value.
    `learner` makes the learner for a value, if there is one; `second_moments` are then its.
    `comparable`: its rate is per step of the size alpha, like that of the others.
    """

    name: str
    amount: str
    setting: Setting
    system: Callable[[float], Expectation]
    low: float = 0.0
    high: float = UNBOUNDED
    open_below: bool = False
    whole: bool = False
    settings: Mapping[str, Value] = field(default_factory=dict)
    pencil: Pencil | None = None
    sizes: Floats | None = None
    certain: float | None = None
    finite: Callable[[float], bool] | None = None
    own_noise: Callable[[float], float | None] | None = None
    chosen: Callable[[Cure], float] | None = None
    learner: Callable[[float], Learner] | None = None
    second_moments: Callable[[float], MeanSquare | None] | None = None
    comparable: bool = True

    def __repr__(self) -> str:
        start, best = self.stable_from, self.best
        found = "no stable value" if best is None else f"best {number(best)}"
        if start is not None:
            found = f"stable from {number(start)}, {found}"
        return visible(f"<cure {self.title}: {self.amount}, {found}>")

    @property
    def title(self) -> str:
        """The cure's name and what else was fixed."""
        fixed = ", ".join(
            v if isinstance(v, str) else f"{k} {v:.3g}" for k, v in self.settings.items()
        )
        return f"{self.name} ({fixed})" if fixed else self.name

    # At one value

    @cached(64)
    def at(self, a: float) -> Expectation:
        """M and g at this value."""
        return self.system(a)

    @cached(4096)
    def slowest(self, a: float) -> float:
        """The least real part of an eigenvalue of M(a), 0 up to rounding: stable if above 0."""
        if self.pencil is not None and a > self.pencil.eta_pd + SAME * (
            1 + abs(self.pencil.eta_pd)
        ):
            return UNBOUNDED
        try:
            M = self.at(a).M
        except InputError:  # the mean update has no finite mean at this value
            return -1.0
        # the matrix of a learner is what G and C leave: they may cancel
        G = Pencil.of(self.setting.m).G
        size = 0.0 if self.learner is None else float(np.abs(G).max())
        return slowest(M, self.sizes, size)

    def stable(self, a: float) -> bool:
        """Whether the mean update at this value leads to its fixed point for small steps."""
        return self.slowest(a) > 0.0

    @cached(4096)
    def weights(self, a: float) -> Floats | None:
        """The fixed point; None at a pole."""
        try:
            M, g = self.at(a)
            y = np.linalg.solve(M, g)[: self.setting.rank]
        except (InputError, np.linalg.LinAlgError):
            return None
        Q = self.setting.m.row_space
        return np.asarray(Q @ (y if self.sizes is None else y / self.sizes[: len(y)]))

    @cached(4096)
    def error(self, a: float) -> float:
        """The error of the fixed point; infinite at a pole."""
        w = self.weights(a)
        return UNBOUNDED if w is None else self.setting.error(w)

    def off_by_two(self, a: float) -> float:
        """The worst error if the value is off by a factor of two, where that is stable."""
        beside = (x for x in (a / 2.0, 2.0 * a) if self.low < x <= self.high and not self.whole)
        return max(self.error(a), *(self.error(x) for x in beside if self.stable(x)), 0.0)

    def on_knife_edge(self, a: float) -> bool:
        """Whether halving or doubling multiplies the error by more than ten, and it matters."""
        return self.off_by_two(a) > max(TENFOLD * self.error(a), MATTERS * self.setting.size)

    @cached(4096)
    def rates(self, a: float) -> Complexes:
        """The eigenvalues of M(a), at which the modes decay."""
        return rates_of(self.at(a).M, self.sizes).values

    def largest_alpha(self, a: float) -> float:
        """Below this constant step size the mean update contracts: `min 2 Re(l) / |l|^2`."""
        if not self.stable(a):
            return 0.0
        every = 1 if self.learner is None else self.learner(a).every
        rates = self.rates(a) * every / self.setting.m.share
        return float((2.0 * rates.real / np.abs(rates) ** 2).min())

    def rate(self, a: float) -> float:
        """How much of the slowest mode a step can take away: its rate times the largest step."""
        return float(self.rates(a).real.min()) * self.largest_alpha(a) if self.stable(a) else 0.0

    def has_finite_variance(self, a: float) -> bool:
        """Whether what is carried from step to step has a finite second moment."""
        return self.finite is None or self.finite(a)

    def noise(self, a: float) -> float | None:
        """The noise of the updates (`variance.noise`), None if it is not known."""
        return self.setting.td_noise if self.own_noise is None else self.own_noise(a)

    def efficiency(self, a: float) -> float:
        """rate / noise^2: how fast it is at equal spread. 0 where the noise is not known.

        At step size alpha modes decay at alpha times their rates, and the stationary variance is
        of the order alpha noise^2.
        """
        noise = self.noise(a)
        return 0.0 if noise is None else self.rate(a) / noise**2

    # The stable set

    @cached_property
    def _line(self) -> Line | None:
        """M_0 and M_1 where M(a) = M_0 + a M_1 on the whole range, seen at four values."""
        if self.whole or self.high < UNBOUNDED:
            return None
        one, two, four, five = (self.system(self.low + x).M for x in (1.0, 2.0, 4.0, 5.0))
        slope = two - one
        size = SAME * max(np.abs(x).max() for x in (one, four))
        if all(np.abs(four - x).max() <= size for x in (one + 3.0 * slope, five - slope)):
            return Line(np.asarray(one - (1.0 + self.low) * slope), np.asarray(slope))
        return None

    @cached_property
    def scale(self) -> float:
        """A value whose part of the mean update is large beside the rest."""
        plain = 4.0 * max(1.0, self.setting.m.operator_norm)
        if self._line is None:
            return plain
        rest, part = (float(np.linalg.norm(M, 2)) for M in self._line[:2])
        # without discount a target does not matter, nor does then what regularises it
        return 4.0 * rest / part if part > ROUNDING * rest else plain

    @cached_property
    def _stable_set(self) -> tuple[list[Interval], list[float], bool]:
        """The unstable intervals, the poles that are known, and whether these are all of them."""
        if self.pencil is not None:
            poles = [p for p in self.pencil.poles if p >= 0.0]
            return self.pencil.unstable_from(0.0), poles, self.pencil.exact
        if self.whole:
            all_seen = len(self.looks) == self.looks[-1] - self.looks[0] + 1
            return _unstable_whole_numbers(self.stable, self.looks), [], all_seen
        if self._line is not None and len(self._line.M0) <= LARGEST_EXACT:
            return self._on_line(self._line)
        return self._by_scan(), [], self.certain is not None and self.certain <= self.low

    def _on_line(self, line: Line) -> tuple[list[Interval], list[float], bool]:
        scattered = Eigen.of(line.M0, line.M1).poles
        least, most = self.low + self.scale / HUGE, self.low + self.scale * HUGE
        poles = sorted(p for p in scattered if least < p < most)
        end = max([self.low + self.scale, *poles])
        even = np.linspace(self.low, 1.2 * end, SAFETY)[1:].tolist()
        between = [(a + b) / 2.0 for a, b in pairwise([self.low, *poles])]
        found = line.crossings(scattered, (least, most), self.slowest, [*even, *between])
        unstable = unstable_intervals(self.slowest, [self.low, *found.values, UNBOUNDED], SAME)
        return unstable, poles, not found.blurred

    def _by_scan(self) -> list[Interval]:
        """Between the changes that a scan finds, up to where a theorem takes over."""
        end = self.high if self.certain is None else max(self.certain, self.low)
        unbounded = end == UNBOUNDED
        end = self.low + self.scale if unbounded else end
        if end <= self.low:
            return []
        inside = 0.5 * (self.low + min(self.high, self.low + 1.0))
        large = len(self.system(inside).M) > LARGEST_EXACT
        share = np.linspace(0.0, 1.0, COARSE if large else SCAN)
        grid = self.low + (end - self.low) * (share if self.high < UNBOUNDED else share**2)
        changes = sign_changes(self.slowest, grid[1:] if self.open_below else grid)
        ends = [self.low, *changes, UNBOUNDED if unbounded else end]
        return unstable_intervals(self.slowest, ends, 0.0)

    @cached_property
    def looks(self) -> list[int]:
        """Whole numbers to look at: all that no theorem covers, or the first ones, then fewer."""
        first = int(self.low)
        if self.certain is not None:
            return list(range(first, int(self.certain) + 1))
        last = int(self.high)
        looks = list(range(first, min(first + EACH, last) + 1))
        while looks[-1] < last:
            looks.append(min(int(np.ceil(looks[-1] * GROWTH)), last))
        return looks

    @property
    def unstable(self) -> list[Interval]:
        """The values that are not stable; of whole numbers, both ends are in it."""
        return self._stable_set[0]

    @property
    def poles(self) -> list[float]:
        """The values at which M(a) is singular, as far as they are known."""
        return self._stable_set[1]

    @property
    def exact(self) -> bool:
        """Whether no unstable values can have been missed."""
        return self._stable_set[2]

    @property
    def smallest(self) -> float | None:
        """The smallest stabilising value: every larger one that is close enough is stable."""
        found = self.low
        for lo, hi in self.unstable:
            if lo <= found:
                found = hi + 1.0 if self.whole else hi
        return found if self._inside(found) else None

    @property
    def stable_from(self) -> float | None:
        """From here on every value is stable; None: never."""
        if not self.unstable:
            return self.low
        end = self.unstable[-1][1]
        return (end + 1.0 if self.whole else end) if self._inside(end) else None

    def _inside(self, end: float) -> bool:
        """Whether values above the end of an unstable interval are left."""
        return not self.unstable or end < (UNBOUNDED if self.whole else self.high)

    # Clear values

    @cached_property
    def trouble(self) -> list[Interval]:
        """What a value must keep clear of: unstable intervals and poles."""
        return [*self.unstable, *((p, p) for p in self.poles)]

    @property
    def _ends(self) -> list[float]:
        return [end for interval in self.trouble for end in interval if end < UNBOUNDED]

    @cached_property
    def largest_trouble(self) -> float:
        """The largest troublesome value, or 0."""
        return max([0.0, *(high for _, high in self.trouble if high < UNBOUNDED)])

    def reach(self, a: float) -> float:
        """How far from a value there must be no trouble."""
        return max(MARGIN * a, FLOOR * self.largest_trouble)

    def is_near(self, a: float, trouble: Interval) -> bool:
        """Whether some of the trouble is within reach."""
        low, high = trouble
        return low <= a + self.reach(a) and a - self.reach(a) <= high

    def is_clear(self, a: float) -> bool:
        """Whether nothing speaks against this value but perhaps its error."""
        if self.whole:
            return self.stable(a)
        if any(self.is_near(a, t) for t in self.trouble) or not self.stable(a):
            return False
        if not self.exact:  # a scan may have missed a short interval
            around = max(self.low, a - self.reach(a)), min(a + self.reach(a), self.high)
            if not all(self.stable(x) for x in around if x > self.low or not self.open_below):
                return False
        return self.steepness(a) <= STEEP

    def steepness(self, a: float) -> float:
        """By what share of their norm a nudge of the value moves the predictions, at most."""
        here, *there = (
            self.weights(min(a * f, self.high)) for f in (1.0, 1.0 - NUDGE, 1.0 + NUDGE)
        )
        if here is None or any(w is None for w in there):
            return UNBOUNDED
        moved = max(self.setting.norm(w - here) for w in there if w is not None)
        size = self.setting.norm(here)
        return moved / size if size > 0.0 else UNBOUNDED if moved > 0.0 else 0.0

    def edge_above(self, high: float) -> float:
        """From here on trouble that ends at `high` is out of reach."""
        return max(high + FLOOR * self.largest_trouble, high / (1.0 - MARGIN))

    @property
    def edges(self) -> list[float]:
        """Where clear values may begin or end: just out of reach of each end of trouble."""
        hair, floor = SAME * (1.0 + self.largest_trouble), FLOOR * self.largest_trouble
        above = [self.edge_above(end) + hair for end in self._ends]
        below = [min(end - floor, end / (1.0 + MARGIN)) - hair for end in self._ends]
        return [e for e in (*above, *below) if e >= self.low]

    # The least error

    @cached_property
    def turns(self) -> list[float]:
        """Where the error may be least: all penalties at which it has slope 0, and its last ones.

        The square of the error is rational in eta. With w = A^-1 b, p = A^-1 G w, q = A'^-1 W p, W
        the features' squares and V their products with v_pi, its slope is 2 (V'p - b'q). That is 0
        where the matrix of these equations, which is linear in eta, is singular. The last ones are
        those where stability ends.
        """
        ends = [e for low, high in self.unstable for e in (low / BESIDE, high * BESIDE)]
        m, size, pencil = self.setting.m, self.setting.size, self.pencil
        if pencil is None or pencil.rank > LARGEST_EXACT or not size:
            return ends
        states = self.setting.states
        X, A, G, b = m.Phi @ pencil.Q, pencil.A0, pencil.G, pencil.b[:, None] / size
        W, V = X.T * states @ X, X.T @ (states * m.v_pi)[:, None] / size
        o, none = np.zeros_like(A), np.zeros_like(b)
        slope = np.block([[A, o, o, -b], [-G, A, o, none], [o, -W, A.T, none],
                          [none.T, -V.T, b.T, np.zeros((1, 1))]])  # fmt: skip
        with np.errstate(divide="ignore", invalid="ignore"):
            part = scipy.linalg.block_diag(G, G, G, [0.0])
            found = -np.asarray(scipy.linalg.eigvals(slope, part), dtype=np.complex128)
        return ends + real_ones(found)

    def automatic(self, *, clear: bool = True) -> float:
        """The clear value of least error, kept off a knife edge: what "auto" takes of a penalty.

        If the error does not depend on it (no rewards), the bound sqrt(gamma_max c_max) - 1 is
        taken where it is clear, as it is without traces as far as we have seen, and else twice the
        largest troublesome value: a penalty outside the trace may need more than that bound.

        On a knife edge the clear value is taken that has the least error when it is off by a factor
        of two. With `clear=False` every stable value counts, however close to a pole, a crossing or
        a knife edge: what the rules cost is the difference of the two errors.
        """
        found = self._least_error(clear=clear, off=False)
        return (
            self._least_error(clear=clear, off=True)
            if clear and self.on_knife_edge(found)
            else found
        )

    @property
    def knife_edge(self) -> float | None:
        """The clear value of least error, if it is on a knife edge; else None."""
        found = self._least_error(clear=True, off=False)
        return found if self.on_knife_edge(found) else None

    @cached(4)
    @single_threaded
    def _least_error(self, *, clear: bool, off: bool) -> float:
        """The penalty of least error up to the theorem's bound, or 1.

        More is never needed and only pulls the values to zero.
        """
        error = self.off_by_two if off else self.error
        allowed = self.is_clear if clear else self.stable
        known = bounds(self.setting.m)
        limit = max(1.0, known["paper"])
        for _ in range(DOUBLINGS):
            more = (e for e in (*self.edges, *self.turns) if 0.0 <= e <= limit)
            grid = np.array(sorted({*(PENALTIES * limit), *more}))
            found = _least(error, allowed, grid)
            if found is not None:
                break
            limit *= 2.0
        else:
            raise InputError(
                f"every {self.amount} up to {limit / 2.0:g} is too close to an unstable one on "
                f"{self.setting.name}; use another learner."
            )
        some = [error(eta) for eta in grid[::20] if allowed(eta)]
        if some and max(some) - min(some) <= SAME * self.setting.scale:
            calm = max(0.0, known["sqrt_kappa"])
            return calm if allowed(calm) else 2.0 * self.largest_trouble
        for _ in range(8):
            i = int(np.searchsorted(grid, found))
            closer = np.linspace(grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)], 17)
            grid = np.array(sorted({*closer.tolist(), found}))
            better = _least(error, allowed, grid)
            found = found if better is None else better
        return found

    @cached_property
    def best(self) -> float | None:
        """What "auto" takes, or else the best compromise of error and noise; None: none is stable.

        Among the clear values with finite second moments, if there are any, the errors within 5 %
        of the least are equally good. Of these it is the smallest that reaches nine tenths of the
        best rate at equal noise (`efficiency`).
        """
        if self.chosen is not None:
            return self.chosen(self)
        values = [float(a) for a in self.values]
        clear = [a for a in values if self.is_clear(a)] or [a for a in values if self.stable(a)]
        clear = self._with_finite_variance(clear)
        if not clear:
            return None
        if not self.whole:
            clear = self._with_finite_variance(self._denser(clear))
        edge = self.on_knife_edge(min(clear, key=self.error))
        counted = self.off_by_two if edge else self.error
        slack = CLOSE * min(map(counted, clear)) + SAME * self.setting.scale
        good = [a for a in clear if counted(a) <= slack]
        places = np.unique(np.linspace(0, len(good) - 1, COMPARED).astype(int))
        speeds: dict[float, float] = {good[i]: self.efficiency(good[i]) for i in places}
        enough = ENOUGH * max(speeds.values())
        return min(a for a, speed in speeds.items() if speed >= enough)

    @property
    def values(self) -> Floats:
        """The values that are tried and drawn: dense near the lower end, with the first clear."""
        if self.whole:
            top = max(float(self.looks[-1]), self.low + 10.0)
            steps = np.geomspace(1.0, top - self.low + 1.0, VALUES)
            return np.unique(np.rint(steps + self.low - 1.0))
        top, share = self.high, np.linspace(0.0, 1.0, VALUES)
        if top == UNBOUNDED:
            chosen = 0.0 if self.chosen is None else self.chosen(self)
            far = 4.0 * max([0.0, *self._ends])
            top, share = max(self.low + self.scale, far, chosen), share**2
        even = self.low + (top - self.low) * share
        values = np.unique([*even, *(e for e in self.edges if self.low < e < top)])
        return values[1:] if self.open_below else values

    def _denser(self, clear: list[float]) -> list[float]:
        """More clear values around the one of least error, which may lie between two of them."""
        for _ in range(5):
            i = int(np.argmin([self.error(a) for a in clear]))
            ends = clear[max(i - 1, 0)], clear[min(i + 1, len(clear) - 1)]
            between = np.linspace(*ends, 9)[1:-1].tolist()
            clear = sorted({*clear, *(a for a in between if self.is_clear(a))})
        return clear

    def _with_finite_variance(self, values: list[float]) -> list[float]:
        """Those with finite second moments, if any: the verdict changes at most once along them."""
        if not values:
            return []
        first = self.has_finite_variance(values[0])
        if first is self.has_finite_variance(values[-1]):
            return values
        change = bisect_left(values, True, key=lambda a: self.has_finite_variance(a) is not first)
        return values[:change] if first else values[change:]

    # What it comes to

    @property
    def best_error(self) -> float | None:
        """The error of the fixed point at the best value."""
        return None if self.best is None else zeroed(self.error(self.best), self.setting.scale)

    @cached_property
    def moments(self) -> MeanSquare | None:
        """The second moments of the learner at the best value, where they are known."""
        if self.best is None or self.second_moments is None:
            return None
        return self.second_moments(self.best)

    @cached_property
    def row(self) -> dict[str, Any]:
        """The row of the frame."""
        best = self.best
        compared = best is not None and self.comparable
        return {
            "cure": self.name,
            "settings": self.title.removeprefix(self.name).strip(" ()"),
            "amount": self.amount,
            "smallest": self.smallest,
            "stable_from": self.stable_from,
            "unstable": [list(interval) for interval in self.unstable],
            "exact": self.exact,
            "best": best,
            "error": self.best_error,
            "rate": self.rate(best) if best is not None and compared else None,
            "largest_alpha": self.largest_alpha(best) if best is not None and compared else None,
            "mean_square_alpha": None if self.moments is None else self.moments.largest_alpha,
            "finite_variance": None if best is None else self.has_finite_variance(best),
            "noise": None if best is None else self.noise(best),
        }

    @cached_property
    def path(self) -> list[dict[str, Any]]:
        """Amount, error of the fixed point (None at a pole) and stability, to be drawn."""
        values = sorted({*self.values.tolist(), *([self.best] if self.best else [])})
        errors = (None if self.error(a) == UNBOUNDED else self.error(a) for a in values)
        return [
            {"amount": a, "error": error, "stable": self.stable(a)}
            for a, error in zip(values, errors, strict=True)
        ]


class Iteration(Cure):
    """A cure whose matrix is that of an iteration, w <- w + g - M w, of `amount` steps each."""

    def radius(self, a: float) -> float:
        """The spectral radius of I - M."""
        return float(np.abs(1.0 - self.rates(a)).max())

    def slowest(self, a: float) -> float:
        """How far the spectral radius is below 1, 0 up to rounding."""
        return zeroed(1.0 - self.radius(a), 1.0, ROUNDING)

    def rate(self, a: float) -> float:
        """How much of the slowest mode one of the steps takes away."""
        return max(0.0, 1.0 - float(self.radius(a) ** (1.0 / a)))

    def largest_alpha(self, a: float) -> float:
        """The step size is part of the cure."""
        return float(self.settings["alpha"])


def _least(
    error: Callable[[float], float], allowed: Callable[[float], bool], values: Floats
) -> float | None:
    """The allowed value with the least error (the first of equals), or None."""
    errors = np.array([error(float(a)) for a in values])
    order = np.argsort(errors, kind="stable")
    return next((float(values[i]) for i in order if allowed(float(values[i]))), None)


def _unstable_whole_numbers(
    stable: Callable[[float], bool], looks: Sequence[int]
) -> list[Interval]:
    """The unstable ones, with both ends, from a look at some in ascending order."""
    found: list[Interval] = []
    start = None if stable(looks[0]) else looks[0]
    for a, b in pairwise(looks):
        if stable(a) is stable(b):
            continue
        first = a + bisect_left(range(a, b), True, key=lambda n: stable(n) is stable(b))
        if start is None:
            start = first
        else:
            found.append((float(start), float(first - 1)))
            start = None
    return found if start is None else [*found, (float(start), UNBOUNDED)]
