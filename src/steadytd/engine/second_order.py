"""Laws that are solved, not followed: sums over the stream, and weights from them when asked.

Every step of such a law is one linear equation for w, weighted by the trace z. The law's function
returns it as three numbers `(target, on_x, on_x_next)`, which mean

    (on_x x + on_x_next x_next) . w = target,

and a block sums A += z (on_x x + on_x_next x_next)' and b += target z. The traces and the memory
are those of the law, moved on by the same loop as everywhere. Learners that differ only in what is
not needed for the sums share them. Nothing is solved but at recording points and where weights are
asked for.

*Near-singular systems.* Of all solutions of A w = b the one closest to w0 is taken, so that the
weights are w0 before any data and keep w0's part in directions that no feature has shown yet. A is
factorised; where its condition number exceeds 1/CUTOFF, its pseudo-inverse is used instead, which
takes singular values below CUTOFF times the largest for zero. A `ridge` is added to the diagonal
and pulls towards w0: (A + ridge I) w = b + ridge w0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from steadytd.base.arrays import Floats, Ints, Longs
from steadytd.base.numbers import require_room
from steadytd.engine.block import NO_GOAL, Block, Goal, Transitions
from steadytd.engine.law import Function, Law, Param, Value, law
from steadytd.engine.rows import Rows
from steadytd.engine.settings import Settings
from steadytd.engine.step.layouts.sums import Sums, sums_program
from steadytd.engine.step.program import Program, lane_params

CUTOFF = 1e-10  # relative: sums over 10^6 steps are not more exact than that
ACCURATE = 1e-11  # relative residual up to which the recursive inverse is trusted

RIDGE = Param("added to the diagonal of A", default=0.0, low=0.0)
START = Param("added to the diagonal of A; the inverse starts at 1/ridge", low=0.0, above=True)


class SecondOrderBlock(Block):
    """Learners of one law that is solved: V holds b, A', one more matrix, and w0.

    A is transposed because a step with traces changes few of its columns, but each as a whole. The
    lanes of the arrays are the *different* sums; `group[i]` is the lane of learner i.
    """

    matrix: ClassVar[str] = ""  # beside A: "G" (the sum of rho x x') or "C" (the inverse of A)

    def __init__(self, learners: Sequence[Settings], w0: Floats) -> None:
        self.learners = list(learners)
        self.law = learners[0].law
        names = self.deciding
        keys = [tuple(x.values[name] for name in names) for x in learners]
        lanes = {key: lane for lane, key in enumerate(dict.fromkeys(keys))}
        self.group = np.array([lanes[key] for key in keys])
        d = len(w0)
        rows = 1 + d * (2 if self.matrix else 1) + 1
        require_room(
            f"the sums of {self.law.name} for {d:,} features", 16.0 * rows * d * len(lanes),
            "use fewer features, or a learner with a step size",
        )  # fmt: skip
        self._allocate(rows, d, len(lanes), len(self.law.memory) + (self.matrix == "C"))
        self.V[-1] = w0[:, None]
        chosen = [learners[keys.index(key)].values for key in lanes]
        params = [[_number(values[p]) for values in chosen] for p in lane_params(self.law)]
        self.params = np.array(params, dtype=np.float64)
        self._solved: Floats | None = None

    @classmethod
    def program(cls, law: Law, traced: bool, averaged: bool) -> Program:
        """What one step of such a block does."""
        return sums_program(law, traced, cls.matrix)

    @classmethod
    def source(cls, law: Law, traced: bool, averaged: bool) -> str:
        """The source of the module that sums for `law`; see `layouts.sums`."""
        path = f"solved, {'with' if traced else 'without'} trace vectors"
        return Sums(cls.program(law, traced, averaged)).source(path)

    @property
    def deciding(self) -> list[str]:
        """The hyper-parameters that the sums depend on."""
        return [name for name in self.law.params if name in self.law.asked]

    @property
    def w(self) -> Floats:
        """The present weights [d, lanes]."""
        return self.reported

    @property
    def reported(self) -> Floats:
        """The weights [d, lanes], solved when first asked for after a step."""
        if self._solved is None:
            solved = [self.weights(i, one.values) for i, one in enumerate(self.learners)]
            self._solved = np.stack(solved, axis=1)
        return self._solved

    @property
    def first_divergence(self) -> Longs:
        """The step after which each learner's sums left the finite range, or -1."""
        return np.asarray(self.diverged[self.group])

    def resume(self, step: int) -> None:
        """Go on from `step`, the state's arrays having been filled."""
        self.step = step
        self._solved = None

    def advance(
        self,
        events: Ints,
        factor: Floats,
        transitions: Transitions,
        rows: Rows,
        points: Longs | None = None,
        goal: Goal = NO_GOAL,
    ) -> Floats:
        """As `Block.advance`, with the systems solved at `points`."""
        ends = [] if points is None else (points - self.step).tolist()
        errors = np.empty((len(ends), len(goal.bounds), len(self.learners)))
        begin = 0
        for i, end in enumerate([*ends, len(events)]):
            if end > begin:
                super().advance(events[begin:end], factor[begin:end], transitions, rows)
                self._solved = None
            if i < len(ends):
                errors[i] = goal.measured(self.reported, self.first_divergence)
            begin = end
        return errors[:, 0] if goal.ends is None else errors

    def weights(self, i: int, values: Mapping[str, Value]) -> Floats:
        """The weights of learner `i`, were its hyper-parameters those (see `deciding`)."""
        lane = int(self.group[i])
        sums = np.ascontiguousarray(self.V[:, :, lane])
        d = sums.shape[1]
        b, A, other, w0 = sums[0], sums[1 : 1 + d].T, sums[1 + d : -1], sums[-1]
        if self.diverged[lane] >= 0:
            return np.full(d, np.inf)
        with np.errstate(all="ignore"):
            A, b = self.system(A, other, b - A @ w0, w0, values)
            return np.asarray(w0 + self.solve(A, b, other, lane))

    def system(
        self, A: Floats, other: Floats, b: Floats, w0: Floats, values: Mapping[str, Value]
    ) -> tuple[Floats, Floats]:
        """The system for w - w0, from the sums; `b` is that of A (w - w0) = b."""
        return A + float(values["ridge"]) * np.eye(len(b)), b

    def solve(self, A: Floats, b: Floats, other: Floats, lane: int) -> Floats:
        """The solution of least norm of A w = b."""
        return solve(A, b)


class RecursiveBlock(SecondOrderBlock):
    """Keeps the inverse of A + ridge I by Sherman-Morrison: a solution costs O(d^2) at any step.

    Reading the weights refines them twice against the sums, which undoes the rounding errors that
    a small ridge brings in. Where a step makes the matrix all but singular, or the refined weights
    do not solve the system, they are solved from the sums as in the batch form.
    """

    matrix = "C"

    def __init__(self, learners: Sequence[Settings], w0: Floats) -> None:
        super().__init__(learners, w0)
        ridge = self.params[lane_params(self.law).index("ridge")]
        self.V[1 + len(w0) : -1] = np.eye(len(w0))[:, :, None] / ridge

    @property
    def deciding(self) -> list[str]:
        """The hyper-parameters that the sums and the inverse depend on."""
        return [*super().deciding, "ridge"]

    def solve(self, A: Floats, b: Floats, other: Floats, lane: int) -> Floats:
        """C b, refined; or as the batch form does."""
        if self.M[-1, lane] == 0.0:
            w = other @ b
            for _ in range(2):
                w = w + other @ (b - A @ w)
            size = np.abs(A) @ np.abs(w) + np.abs(b)
            if np.abs(b - A @ w).max() <= ACCURATE * size.max():
                return np.asarray(w)
        return solve(A, b)


def solve(A: Floats, b: Floats) -> Floats:
    """The solution of least norm of A w = b (by least squares if there is none); see above."""
    from scipy.linalg import lapack

    scale = float(np.abs(A).max())
    if scale == 0.0:
        return np.zeros_like(b)
    A, b = A / scale, b / scale
    factors, pivots, _ = lapack.dgetrf(A)
    inverse_condition, _ = lapack.dgecon(factors, float(np.abs(A).sum(axis=0).max()))
    if inverse_condition > CUTOFF:
        return np.asarray(lapack.dgetrs(factors, pivots, b)[0])
    return np.asarray(np.linalg.lstsq(A, b, rcond=CUTOFF)[0])


def solved(
    *,
    params: Mapping[str, Param],
    traces: Mapping[str, Function],
    memory: Mapping[str, Function | None] | None = None,
    expectation: Function,
) -> Callable[[Function], Law]:
    """A law that is solved, with a `ridge` and the forms "batch" and "recursive"."""

    def decorate(function: Function) -> Law:
        def form(ridge: Param, block: type[Block], variants: Mapping[str, Law | None]) -> Law:
            return law(
                params={**params, "ridge": ridge},
                traces=traces,
                memory=memory,
                writes={"w": tuple(traces)},
                idle_at_rho_zero=True,
                expectation=expectation,
                block=block,
                variant_param="form" if variants else "",
                variants=variants,
            )(function)

        recursive = form(START, RecursiveBlock, {})
        return form(RIDGE, SecondOrderBlock, {"batch": None, "recursive": recursive})

    return decorate


def _number(value: Value) -> float:
    return float("nan") if isinstance(value, str) else float(value)
