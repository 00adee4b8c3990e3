"""Does every single run converge? The Lyapunov exponent of a learner's random product.

A step of a linear learner is y <- B_t y + c_t, where B_t depends on the transition, the step size
and the traces. Two runs on the same data with different first weights differ by the product of all
B_t, whose size changes by the factor exp(n L) in n steps, with one number L for almost all runs:
the *exponent*. If L < 0, runs forget their first weights with probability 1, and where no noise is
left at the fixed point, every run converges to it. If L > 0, almost every run moves away.

Neither of the other two verdicts decides this. By Jensen's inequality L <= log(r) / 2, where r is
the factor of the mean squares, so bounded mean squares suffice. But mean squares can be infinite
because of rare bursts while every run converges: so it is with emphatic TD on theta2theta.

In one dimension, without traces and memory, L = E log|B|, exactly. Otherwise one long product is
followed in the compiled loop, with all rewards 0 so that nothing but the product moves y. Its
growth over equal parts gives an interval by batch means, and more steps are taken until the
interval excludes 0, up to a limit. It states what a run of that length can show, no proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steadytd.base.arrays import Floats, Ints
from steadytd.base.numbers import number
from steadytd.base.parallel import single_threaded
from steadytd.engine.block import Block, Transitions
from steadytd.engine.facts import STEP_FACTS
from steadytd.engine.learner import Learner
from steadytd.engine.rows import sparse_rows
from steadytd.mdp.cached import cached
from steadytd.mdp.problem import Problem
from steadytd.streams.finite import FiniteStream
from steadytd.theory.exact import Maps
from steadytd.theory.reading import closes

CONFIDENCE = 0.99  # of the interval
BATCHES = 32  # equal parts of the product
FIRST, MOST = 200_000, 12_800_000  # steps before the interval is looked at, and in all
SHORT, LONG = 32, 8192  # steps after which the product is scaled back to length 1
CHANGE = 8.0  # of its logarithm, about, in that time
BURN_IN = 256  # such times at the start that do not count: direction and traces settle


@dataclass(frozen=True)
class AlmostSure:
    """The exponent of one learner at its step size, with an interval; exact if that is a point."""

    alpha: float
    exponent: float  # of the natural logarithm, per step
    low: float
    high: float
    steps: int  # of the product that was followed; 0: exact

    @property
    def stable(self) -> bool | None:
        """Whether runs forget where they began; None: the interval does not tell."""
        return True if self.high < 0.0 else False if self.low > 0.0 else None

    @property
    def text(self) -> str:
        """The verdict in a few words."""
        words = {True: "single runs settle", False: "single runs grow", None: "runs undecided"}
        return f"{words[self.stable]} at alpha = {number(self.alpha)}"


@cached(64)
@single_threaded
def almost_sure(problem: Problem, learner: Learner, policy: int = 0) -> AlmostSure | None:
    """The exponent of a learner at its constant step size; None where there is no such product.

    There is none for a learner of action values, for one that is solved, averages, clips its
    weights or keeps copies of them, with a decaying step size, and where a step is not linear.
    """
    law, alpha = learner.law, learner.values.get("alpha")
    known = not (law.action_values or law.block or law.maps or law.settled or learner.averaged)
    if not known or learner.schedule[0] or not isinstance(alpha, float):
        return None
    rank = problem.moments(policy).row_space.shape[1]
    if closes(learner) and rank * len(law.vectors) + len(law.scalars) == 1:
        maps = Maps.of(problem, learner, policy, problem.d_mu)
        often = problem.d_mu[problem.d_mu > 0.0][maps.s] * maps.p
        with np.errstate(divide="ignore"):
            exact = float(often @ np.log(np.abs(maps.B[:, 0, 0])))
        return AlmostSure(alpha, exact, exact, exact, 0)
    return Product(problem, learner, policy).exponent(alpha)


class Product:
    """The product of a learner's steps along one stream, scaled back to length 1 now and then."""

    def __init__(self, problem: Problem, learner: Learner, policy: int) -> None:
        self.stream = FiniteStream.of(problem)
        row, row_next, facts = self.stream.transitions[policy]
        facts = facts.copy()
        facts[:, STEP_FACTS.index("reward")] = 0.0
        self.transitions, self.rows = Transitions(row, row_next, facts), sparse_rows(problem.Phi)
        self.active = self.stream.active[policy]
        self.position = self.stream.begin(0)
        self.Q = problem.moments(policy).row_space
        # one lane shows whether anything but the product moves y, and one whether it is linear
        self.block = Block([learner] * 3, np.zeros(problem.n_features))
        first = np.random.default_rng(0).normal(size=(len(learner.law.vectors), self.Q.shape[1]))
        y = first @ self.Q.T
        self.block.V[:] = (y / np.linalg.norm(y))[:, :, None] * np.array([0.0, 1.0, 2.0])
        self.written = [i for i, f in enumerate(learner.law.memory.values()) if f is None]

    def exponent(self, alpha: float) -> AlmostSure | None:
        """Its growth per step; None if it is not linear, or leaves the finite range."""
        from scipy.special import stdtrit

        length = SHORT
        begun = [self.grown(length) for _ in range(BURN_IN)]
        if not np.isfinite(begun).all():
            return None
        rate = abs(float(np.mean(begun))) / length
        length = int(np.clip(CHANGE / rate if rate else LONG, SHORT, LONG))
        logs, steps = np.zeros(0), FIRST
        while True:
            parts = -(-steps // (length * BATCHES)) * BATCHES
            logs = np.append(logs, [self.grown(length) for _ in range(parts - len(logs))])
            if not np.isfinite(logs).all():
                return None
            batches = logs.reshape(BATCHES, -1).mean(axis=1) / length
            mean = float(batches.mean())
            beside = float(stdtrit(BATCHES - 1, (1.0 + CONFIDENCE) / 2.0) * batches.std(ddof=1))
            beside /= float(np.sqrt(BATCHES))
            if abs(mean) > beside or steps >= MOST:
                return AlmostSure(alpha, mean, mean - beside, mean + beside, parts * length)
            steps *= 2

    def grown(self, steps: int) -> float:
        """By how much the logarithm of its length changes in so many steps; NaN if unknown."""
        events, self.position = self.stream.take(self.position, steps)
        own: Ints = events if self.active is None else events[self.active[events]]
        self.block.advance(own, np.ones(len(own)), self.transitions, self.rows)
        none, y, double = np.moveaxis(self.block.V, -1, 0)
        largest = float(np.abs(y).max())
        if none.any() or not (double / 2.0 == y).all() or not 0.0 < largest < np.inf:
            return float("nan")
        size = largest * float(np.linalg.norm(y / largest))  # the square of `largest` may overflow
        inside: Floats = y @ self.Q @ self.Q.T / size  # rounding may have left the row space
        self.block.V[:] = inside[:, :, None] * np.array([0.0, 1.0, 2.0])
        self.block.M[self.written] /= size
        return float(np.log(size))
