"""A cure: a mean update that depends on an amount, and for some amounts is stable.

At amount a the mean update is w <- w + alpha (g(a) - M(a) w), or an iteration with the matrix
I - M(a). All matrices live on the row space of the features of the visited states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from steadytd.base.arrays import Floats, repeated
from steadytd.base.errors import InputError
from steadytd.engine.law import Value
from steadytd.engine.learner import Learner
from steadytd.mdp.moments import Expectation, Moments
from steadytd.mdp.problem import Problem
from steadytd.mdp.scales import ROUNDING, Rates, rates_of
from steadytd.theory.choose import MATTERS, TENFOLD

SAME = 1e-9  # relative difference below which two matrices are the same
UNBOUNDED = float("inf")

System = Callable[[float], Expectation]


class Setting:
    """A problem and one of its target policies, with its matrices on the row space."""

    def __init__(self, problem: Problem, policy: int = 0) -> None:
        self.problem, self.policy = problem, policy
        self.m: Moments = problem.moments(policy)
        self.Q: Floats = self.m.row_space
        self._bases: dict[int, Floats] = {}

    def within(self, M: Floats) -> Floats:
        """A matrix over the features, or over several vectors of them, on the row space."""
        basis = self._basis(len(M) // len(self.Q))
        return np.asarray(basis.T @ M @ basis) if M.ndim == 2 else np.asarray(basis.T @ M)

    def _basis(self, vectors: int) -> Floats:
        """Q for every vector of a learner."""
        if vectors not in self._bases:
            self._bases[vectors] = repeated(self.Q, vectors)
        return self._bases[vectors]

    @cached_property
    def A(self) -> Floats:
        """Phi' D (I - P_gamma) Phi."""
        return self.within(self.m.A())

    @cached_property
    def G(self) -> Floats:
        """Phi' D Phi."""
        return self.within(self.m.G)

    @cached_property
    def b(self) -> Floats:
        """Phi' D r_pi."""
        return self.within(self.m.b())

    @property
    def rank(self) -> int:
        """Dimension of the row space."""
        return int(self.Q.shape[1])

    @property
    def identity(self) -> Floats:
        """I in the steps in which the learner updates, on average: the matrix of a ridge."""
        return np.asarray(self.m.share * np.eye(self.rank))

    @cached_property
    def size(self) -> float:
        """The norm of the true values, in which errors are measured."""
        return self.error(np.zeros(self.rank))

    @property
    def scale(self) -> float:
        """The size of the values and of the rewards, next to which errors may be rounding."""
        return self.size + self.m.reward_size

    @cached_property
    def squares(self) -> tuple[Floats, Floats]:
        """E[rho^2 | s], and sum_a pi^2/mu p gamma^2: how squared weights go on to the next step."""
        m = self.m
        squares = np.divide(m.pi**2, m.mu, out=np.zeros_like(m.pi), where=m.mu > 0.0)
        ahead = np.einsum("sa,sat,sat->st", squares, m.P, m.gamma**2)
        return squares.sum(axis=1), np.asarray(ahead)

    @property
    def scatter(self) -> float:
        """The noise of updates that are multiplied by rho alone."""
        return float(np.sqrt(self.m.d @ self.squares[0] / self.m.d.sum()))

    def error(self, w: Floats) -> float:
        """The error of weights on the row space."""
        difference = self.m.Phi @ (self.Q @ w) - self.m.v_pi
        return float(np.sqrt(self.problem.error_weights(self.policy) @ difference**2))

    def norm(self, w: Floats) -> float:
        """The size of the values of weights on the row space."""
        return float(np.sqrt(self.m.d @ (self.m.Phi @ (self.Q @ w)) ** 2))


@dataclass(frozen=True, eq=False)
class Cure:
    """One cure on one problem, for every amount.

    `certain`: all amounts from there on are stable, by a theorem (None: none is known).
    `finite` says whether what the cure carries from step to step has a finite second moment; its
    verdict changes at most once along the amounts. None: at most a bounded number of ratios is
    carried. `noise` is that of `variance.noise`; None: that of rho alone.
    `chosen` is the amount that "auto" takes, where that is offered for the error's sake.
    `learner` makes the learner of an amount, if there is one.
    `comparable`: its rate is per step of the size alpha, like that of the others.
    """

    name: str
    amount: str
    setting: Setting
    system: System
    low: float = 0.0
    high: float = UNBOUNDED
    open_below: bool = False
    whole: bool = False
    settings: Mapping[str, Value] = field(default_factory=dict)
    certain: float | None = None
    finite: Callable[[float], bool] | None = None
    noise: Callable[[float], float | None] | None = None
    chosen: float | None = None
    learner: Callable[[float], Learner] | None = None
    comparable: bool = True
    _kept: dict[float, tuple[Rates, Floats | None]] = field(default_factory=dict)

    def _at(self, amount: float) -> tuple[Rates, Floats | None]:
        """The eigenvalues of M(a), and the fixed point on the row space (None at a pole)."""
        if amount not in self._kept:
            try:
                M, g = self.system(amount)
            except InputError:  # the mean update has no finite mean at this amount
                return Rates(np.array([-1.0 + 0j]), np.ones(1)), None
            try:
                w = np.asarray(np.linalg.solve(M, g)[: self.setting.rank])
            except np.linalg.LinAlgError:
                w = None
            self._kept[amount] = rates_of(M), w
        return self._kept[amount]

    def stable(self, amount: float) -> bool:
        """Whether the mean update at this amount leads to its fixed point for small steps."""
        modes, _ = self._at(amount)
        return bool((modes.real > 0.0).all())

    def rate(self, amount: float) -> float:
        """How much of the slowest mode a step can take away: its rate times the largest step."""
        modes, _ = self._at(amount)
        if not self.stable(amount):
            return 0.0
        return float(modes.real.min() * self.largest_alpha(amount))

    def largest_alpha(self, amount: float) -> float:
        """Below this constant step size the mean update contracts: min 2 Re(l)/|l|^2."""
        every = 1 if self.learner is None else self.learner(amount).every
        modes = self._at(amount)[0].values * every / self.setting.m.share
        return float((2.0 * modes.real / np.abs(modes) ** 2).min()) if self.stable(amount) else 0.0

    def is_finite(self, amount: float) -> bool:
        """Whether what is carried from step to step has a finite second moment."""
        return self.finite is None or self.finite(amount)

    def scatter(self, amount: float) -> float | None:
        """The noise of the updates (`variance.noise`), None if it is not known."""
        return self.setting.scatter if self.noise is None else self.noise(amount)

    def efficiency(self, amount: float) -> float:
        """rate / noise^2: how fast it is at equal spread. 0 where the noise is not known.

        At step size alpha modes decay at alpha times their rates, and the stationary variance is
        of the order alpha noise^2.
        """
        noise = self.scatter(amount)
        return 0.0 if noise is None else self.rate(amount) / noise**2

    def off(self, amount: float) -> float:
        """The worst error if the amount is off by a factor of two, where that is stable."""
        beside = (a for a in (amount / 2.0, 2.0 * amount) if self.low < a <= self.high)
        errors = (self.error(a) for a in beside if not self.whole and self.stable(a))
        return max(self.error(amount), *errors, 0.0)

    def knife_edge(self, amount: float) -> bool:
        """Whether halving or doubling the amount multiplies the error by ten, and it matters."""
        return self.off(amount) > max(TENFOLD * self.error(amount), MATTERS * self.setting.size)

    def weights(self, amount: float) -> Floats | None:
        """The fixed point on the row space; None at a pole."""
        return self._at(amount)[1]

    def error(self, amount: float) -> float:
        """The error of the fixed point; infinite at a pole."""
        w = self.weights(amount)
        return UNBOUNDED if w is None else self.setting.error(w)

    @cached_property
    def line(self) -> tuple[Floats, Floats] | None:
        """M_0 and M_1 where M(a) = M_0 + a M_1 on the whole range, seen at four amounts."""
        if self.whole or self.high < UNBOUNDED:
            return None
        one, two, four, five = (self.system(self.low + x).M for x in (1.0, 2.0, 4.0, 5.0))
        slope = two - one
        there = one + 3.0 * slope, five - slope
        size = SAME * max(np.abs(x).max() for x in (one, four))
        if all(np.abs(four - x).max() <= size for x in there):
            return np.asarray(one - (1.0 + self.low) * slope), np.asarray(slope)
        return None


class Iteration(Cure):
    """A cure whose matrix is that of an iteration, w <- w + g - M w, of `amount` steps each."""

    def stable(self, amount: float) -> bool:
        """Whether the spectral radius of I - M is below 1."""
        return bool(np.abs(1.0 - self._at(amount)[0].values).max() < 1.0 - ROUNDING)

    def rate(self, amount: float) -> float:
        """How much of the slowest mode one of the steps takes away."""
        radius = float(np.abs(1.0 - self._at(amount)[0].values).max())
        return max(0.0, 1.0 - float(radius ** (1.0 / amount)))

    def largest_alpha(self, amount: float) -> float:
        """The step size is part of the cure."""
        return float(self.settings["alpha"])
