"""Checks what a user feeds a Horde, and turns it into the arrays that the compiled loops take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from steadytd.base.arrays import Floats, Ints, Longs, read_only
from steadytd.base.errors import InputError
from steadytd.base.jit import compiled, inner
from steadytd.base.numbers import count
from steadytd.engine.facts import numbers
from steadytd.engine.learner import two_peaks
from steadytd.hordes.prediction import HordePrediction

Features = Any  # dense, (indices, values) or a SciPy sparse matrix
Bounds = tuple[float, float]
ANY, NOT_NEGATIVE, UNIT = (-np.inf, np.inf), (0.0, np.inf), (0.0, 1.0)


class ActiveFeatures(NamedTuple):
    """The active features of some steps: those of step t are first[t] to first[t + 1]."""

    first: Longs
    feature: Ints
    value: NDArray[Any]

    def part(self, begin: int, end: int) -> ActiveFeatures:
        """Steps `begin` to `end`."""
        low, high = self.first[begin], self.first[end]
        first = self.first[begin : end + 1] - low
        return ActiveFeatures(first, self.feature[low:high], self.value[low:high])

    def read_only(self) -> ActiveFeatures:
        """The same, as the compiled loops take it."""
        return ActiveFeatures(read_only(self.first), read_only(self.feature), read_only(self.value))

    @property
    def steps(self) -> int:
        """The number of steps."""
        return len(self.first) - 1


class FactTables(NamedTuple):
    """The facts of some steps by column, in the order in which the compiled loops take them."""

    cumulants: Floats  # [steps, cumulants]
    discounts: Floats  # [steps, discounts], constant ones first
    rhos: Floats  # [steps, policies + 1], the last column of ones
    pis: Floats
    mus: Floats
    peaks_min: Floats
    peaks_max: Floats
    interests: Floats  # [steps]
    carries: Floats  # [steps], 0 where an episode is cut off after the step

    def part(self, begin: int, end: int) -> FactTables:
        """Steps `begin` to `end`."""
        return FactTables(*(read_only(table[begin:end]) for table in self))


class LiveSteps(NamedTuple):
    """Some steps: the features before and after each, and its facts."""

    x: ActiveFeatures
    x_next: ActiveFeatures
    tables: FactTables

    def part(self, begin: int, end: int) -> LiveSteps:
        """Steps `begin` to `end`."""
        x, x_next = self.x.part(begin, end), self.x_next.part(begin, end)
        return LiveSteps(x, x_next, self.tables.part(begin, end))

    def arguments(self, factors: Floats) -> tuple[NDArray[Any], ...]:
        """The arguments of the compiled loops."""
        dots = np.empty((self.x.steps, 3))
        x, x_next = self.x.read_only(), self.x_next.read_only()
        products(x, x_next, dots)
        return *self.tables, read_only(factors), read_only(dots), *x, *x_next


@compiled
def products(x: ActiveFeatures, x_next: ActiveFeatures, out: Floats) -> None:
    """out[t] = x.x, x.x_next, x_next.x_next of each step."""
    for t in range(len(out)):
        out[t, 0], out[t, 1], out[t, 2] = _dot(x, x, t), _dot(x, x_next, t), _dot(x_next, x_next, t)


@inner
def _dot(a: ActiveFeatures, b: ActiveFeatures, t: int) -> float:
    """An inner product of the features of step t, which are in ascending order."""
    total, p, q = 0.0, a.first[t], b.first[t]
    while p < a.first[t + 1] and q < b.first[t + 1]:
        k_p, k_q = a.feature[p], b.feature[q]
        if k_p == k_q:
            total += np.float64(a.value[p]) * np.float64(b.value[q])
        p += k_p <= k_q
        q += k_q <= k_p
    return total


class Inputs:
    """What the predictions of a Horde need of a step: how many columns, and which of them."""

    def __init__(self, n_features: int, predictions: Sequence[HordePrediction], dtype: str) -> None:
        self.n_features, self.dtype = n_features, dtype
        self.cumulants = 1 + max(p.cumulant for p in predictions)
        self.policies = 1 + max(-1 if p.policy is None else p.policy for p in predictions)
        constants = [p.discount for p in predictions if p.discount is not None]
        self.constants = {value: i for i, value in enumerate(dict.fromkeys(constants))}
        columns = [-1 if p.discount_column is None else p.discount_column for p in predictions]
        self.columns = 1 + max(columns)
        off_policy = [p.learner for p in predictions if p.policy is not None]
        self.needs_ratio = next((str(x) for x in off_policy if x.law.needs_ratio), "")
        self.needs_policies = next((str(x) for x in off_policy if x.law.needs_policies), "")

    def discount_column(self, prediction: HordePrediction) -> int:
        """The column of a prediction's discount; constant discounts come first."""
        if prediction.discount is not None:
            return self.constants[prediction.discount]
        return len(self.constants) + int(prediction.discount_column or 0)

    def policy_column(self, prediction: HordePrediction) -> int:
        """The column of a prediction's ratio; that of the behaviour policy comes last."""
        return self.policies if prediction.policy is None else prediction.policy

    def steps(
        self,
        x: Features,
        x_next: Features,
        cumulants: ArrayLike,
        rhos: ArrayLike | None,
        discounts: ArrayLike | None,
        *,
        pi: ArrayLike | None,
        mu: ArrayLike | None,
        interest: ArrayLike,
        peaks: tuple[float, float] | None,
        terminated: ArrayLike,
        truncated: ArrayLike = False,
    ) -> LiveSteps:
        """Some steps, checked; the arguments are those of `Horde.update_many`."""
        before, after = self.features("x", x), self.features("x_next", x_next)
        n = before.steps
        if after.steps != n:
            raise InputError(
                f"x and x_next must have the same number of steps, got {n} and {after.steps}."
            )
        ratios, pis, mus = self._ratios(n, rhos, pi, mu)
        discount = self._discounts(n, discounts)
        discount[_flags("terminated", terminated, n)] = 0.0
        carries = np.where(_flags("truncated", truncated, n), 0.0, 1.0)
        weights = _broadcast("interest", numbers("interest", interest, *NOT_NEGATIVE), (n,))
        low = high = pis if pi is None else np.maximum(pis, mus)  # NaN if pi is not known
        if peaks is not None:
            low, high = (np.full_like(ratios, peak) for peak in two_peaks(peaks))
        table = _table("cumulants", cumulants, n, self.cumulants)
        tables = table, discount, ratios, pis, mus, low, high, weights, carries
        return LiveSteps(before, after, FactTables(*map(read_only, tables)))

    def _discounts(self, n: int, discounts: ArrayLike | None) -> Floats:
        """The discounts of n steps [steps, discounts], the constant ones first."""
        found = np.empty((n, len(self.constants) + self.columns))
        found[:, : len(self.constants)] = list(self.constants)
        if self.columns:
            if discounts is None:
                raise InputError(
                    "discounts are missing: some predictions have a discount_column; pass "
                    f"discounts=... with {count(self.columns, 'column')}."
                )
            found[:, len(self.constants) :] = _table("discounts", discounts, n, self.columns, UNIT)
        elif discounts is not None:
            raise InputError(
                "discounts were given, but every prediction has a constant discount of its own; "
                "omit discounts, or make predictions with discount_column=..."
            )
        return found

    def _ratios(
        self, n: int, rhos: ArrayLike | None, pi: ArrayLike | None, mu: ArrayLike | None
    ) -> tuple[Floats, Floats, Floats]:
        """rho, pi and mu [steps, policies + 1]; the last column is the behaviour policy."""
        shape = n, self.policies + 1
        ratios, pis, mus = np.ones(shape), np.full(shape, np.nan), np.full(shape, np.nan)
        if not self.policies:
            return ratios, pis, mus
        if (pi is None) != (mu is None):
            raise InputError("give both pi and mu (probabilities of the action taken), or neither.")
        if pi is not None and mu is not None:
            pis[:, :-1] = _table("pi", pi, n, self.policies, UNIT)
            taken = numbers("mu", mu, *UNIT)
            taken = taken.reshape(-1, 1) if taken.ndim < 2 and taken.size == n else taken
            mus[:, :-1] = _broadcast("mu", taken, (n, self.policies))
            if not (mus[:, :-1] > 0.0).all():
                raise InputError(
                    "mu must be > 0: it is the probability of an action that was taken."
                )
            ratios[:, :-1] = pis[:, :-1] / mus[:, :-1]
        elif self.needs_policies:
            raise InputError(
                f"{self.needs_policies} needs pi and mu, the probabilities of the action taken; "
                "pass pi=... (one column per policy) and mu=..."
            )
        if rhos is not None:
            given = _table("rhos", rhos, n, self.policies, NOT_NEGATIVE)
            if pi is None:
                ratios[:, :-1] = given
            elif not np.allclose(given, ratios[:, :-1], rtol=1e-6):
                raise InputError("rhos must be pi/mu; give rhos, or pi and mu.")
        elif pi is None and self.needs_ratio:
            raise InputError(
                f"rhos are missing: {self.needs_ratio} needs the importance ratio pi/mu of the "
                f"action taken under each policy; pass rhos=... with "
                f"{count(self.policies, 'column')}, or pi=... and mu=..."
            )
        return ratios, pis, mus

    def features(self, name: str, x: Features) -> ActiveFeatures:
        """The active features of some steps: dense [n, d], (indices, values), or SciPy's."""
        if isinstance(x, tuple):
            matrix = self._from_pair(name, x)
        else:
            given = x if hasattr(x, "tocsr") else np.atleast_2d(numbers(name, x))
            if given.ndim != 2 or given.shape[1] != self.n_features:
                raise InputError(
                    f"{name} must have {self.n_features} features (a vector, or a row for each "
                    f"step), or be a pair (indices, values); got shape {given.shape}."
                )
            matrix = csr_array(given, copy=True)
            matrix.sum_duplicates()
            matrix.data = numbers(name, matrix.data)
        matrix.eliminate_zeros()
        values = matrix.data
        if self.dtype == "float32":
            with np.errstate(over="ignore"):
                values = values.astype(np.float32)
            if not np.isfinite(values).all():
                raise InputError(
                    f"features must fit into float32, got {np.abs(matrix.data).max():g}; use "
                    'another unit, or dtype="float64".'
                )
        first, feature = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
        return ActiveFeatures(first, feature, values).read_only()

    def _from_pair(self, name: str, pair: tuple[Any, ...]) -> csr_array:
        """Indices [active] or [n, active], and as many values (None: all are 1)."""
        if len(pair) != 2:
            raise InputError(f"{name} must be a pair (indices, values), got {len(pair)} items.")
        indices = np.atleast_2d(np.asarray(pair[0]))
        if indices.size and indices.dtype.kind not in "iu":
            raise InputError(f"the indices of {name} must be whole numbers, got {indices.dtype}.")
        if indices.ndim != 2:
            raise InputError(
                f"the indices of {name} must be a vector, or a row for each step, got shape "
                f"{indices.shape}."
            )
        wrong = indices[(indices < 0) | (indices >= self.n_features)]
        if wrong.size:
            raise InputError(
                f"the indices of {name} must be from 0 to {self.n_features - 1}, got {wrong[0]}."
            )
        values = np.ones(indices.size) if pair[1] is None else numbers(name, pair[1]).reshape(-1)
        if values.size != indices.size:
            raise InputError(
                f"{name} has {indices.size} indices and {values.size} values; give one value for "
                "each index, or None where all are 1."
            )
        n, active = indices.shape
        parts = values.copy(), indices.reshape(-1).astype(np.int32), active * np.arange(n + 1)
        matrix = csr_array(parts, shape=(n, self.n_features))
        matrix.sum_duplicates()
        if matrix.nnz < indices.size:
            raise InputError(f"an index of {name} occurs twice in one step; add its values up.")
        return matrix


def _table(name: str, values: ArrayLike, n: int, columns: int, bounds: Bounds = ANY) -> Floats:
    """Numbers [n, columns]; further columns are left out, missing ones are an error."""
    array = numbers(name, values, *bounds)
    array = array[None] if array.ndim <= 1 and n == 1 else array
    array = array.reshape(n, 1) if array.shape == (n,) and columns == 1 else array
    if array.ndim != 2 or len(array) != n or array.shape[1] < columns:
        steps = f" for each of {n} steps" if n != 1 else ""
        raise InputError(
            f"{name} must have {count(columns, 'number')}{steps}, one per column that the "
            f"predictions name; got shape {np.shape(values)}."
        )
    return np.ascontiguousarray(array[:, :columns])


def _broadcast(name: str, array: Floats, shape: tuple[int, ...]) -> Floats:
    """Numbers of a shape; one number stands for all steps, one column for all policies."""
    try:
        return np.array(np.broadcast_to(array, shape))
    except ValueError:
        raise InputError(
            f"{name} must be one number, or one for each step (shape {shape}), got shape "
            f"{array.shape}."
        ) from None


def _flags(name: str, values: ArrayLike, n: int) -> NDArray[np.bool_]:
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        array = np.empty((1, 1))
    if array.dtype != np.bool_ or array.shape not in ((), (n,)):
        raise InputError(
            f"{name} must be True or False for each step, got {array.dtype} of shape {array.shape}."
        )
    return np.broadcast_to(array, (n,))
