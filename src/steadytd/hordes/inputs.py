"""Checks what a user feeds a Horde, and turns it into the tables that the loops take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steadytd.base.arrays import Floats, Longs
from steadytd.base.errors import InputError
from steadytd.engine.online import two_peaks
from steadytd.hordes.facts import ActiveFeatures, FactTables, LiveSteps
from steadytd.hordes.prediction import HordePrediction

Features = Any  # dense, (indices, values) or a SciPy sparse matrix


class GivenFacts(NamedTuple):
    """The facts of some steps as the user gives them, the steps along the first axis."""

    cumulants: ArrayLike
    rhos: ArrayLike | None
    discounts: ArrayLike | None
    pi: ArrayLike | None
    mu: ArrayLike | None
    interest: ArrayLike
    peaks: tuple[float, float] | None
    terminated: ArrayLike
    truncated: ArrayLike


class Inputs:
    """What the predictions of a Horde need of a step: how many columns, and which of them."""

    def __init__(self, n_features: int, predictions: Sequence[HordePrediction], dtype: str) -> None:
        self.n_features, self.dtype = n_features, dtype
        self.cumulants = 1 + max(p.cumulant for p in predictions)
        self.policies = 1 + max(-1 if p.policy is None else p.policy for p in predictions)
        fixed = [p.discount for p in predictions if p.discount is not None]
        self.fixed = {value: i for i, value in enumerate(dict.fromkeys(fixed))}
        self.constant = np.array(list(self.fixed))
        columns = [-1 if p.discount_column is None else p.discount_column for p in predictions]
        self.columns = 1 + max(columns)
        asking = [p for p in predictions if p.policy is not None]
        self.needs_ratio = next((str(p.learner) for p in asking if p.learner.law.needs_ratio), "")
        self.needs_policies = next(
            (str(p.learner) for p in asking if p.learner.law.needs_policies), ""
        )

    def discount_place(self, prediction: HordePrediction) -> int:
        """Where a prediction's discount stands: the constant ones come first."""
        if prediction.discount is not None:
            return self.fixed[prediction.discount]
        return len(self.fixed) + int(prediction.discount_column or 0)

    def policy_place(self, prediction: HordePrediction) -> int:
        """Where a prediction's ratio stands: that of the policy that acts comes last."""
        return self.policies if prediction.policy is None else prediction.policy

    def steps(self, x: Features, x_next: Features, given: GivenFacts) -> LiveSteps:
        """Some steps, checked."""
        before = self.features("x", x)
        after = self.features("x_next", x_next)
        if before.steps != after.steps:
            raise InputError(
                f"x and x_next must have the same number of steps, got {before.steps} and "
                f"{after.steps}."
            )
        return LiveSteps(before, after, self.tables(before.steps, given))

    def tables(self, n: int, given: GivenFacts) -> FactTables:
        """The facts of n steps by column."""
        rhos, pis, mus = self._ratios(n, given)
        discounts = np.empty((n, len(self.fixed) + self.columns))
        discounts[:, : len(self.fixed)] = self.constant
        if self.columns:
            if given.discounts is None:
                raise InputError(
                    "discounts are missing: some predictions have a discount_column; pass "
                    f"discounts=... with {self.columns} column{'s' * (self.columns > 1)}."
                )
            found = _table("discounts", given.discounts, n, self.columns, (0.0, 1.0))
            discounts[:, len(self.fixed) :] = found
        elif given.discounts is not None:
            raise InputError(
                "discounts were given, but every prediction has a discount of its own that is the "
                "same at every step; make predictions with discount_column=..., or leave them out."
            )
        if given.terminated is not False:  # a live step has no time for what is not given
            discounts[_flags("terminated", given.terminated, n)] = 0.0
        carries = interest = np.ones(n)
        if given.truncated is not False:
            carries = np.where(_flags("truncated", given.truncated, n), 0.0, 1.0)
        low = high = pis if given.pi is None else np.maximum(pis, mus)  # else all are NaN
        if given.peaks is not None:
            low, high = (np.full_like(rhos, one) for one in two_peaks(given.peaks))
        if not (isinstance(given.interest, float) and given.interest == 1.0):
            interest = _spread("interest", given.interest, (n,), (0.0, np.inf))
        return FactTables(
            _table("cumulants", given.cumulants, n, self.cumulants), discounts, rhos, pis, mus,
            low, high, interest, carries,
        )  # fmt: skip

    def _ratios(self, n: int, given: GivenFacts) -> tuple[Floats, Floats, Floats]:
        """rho, pi and mu [steps, policies + 1]; the last column is the policy that acts."""
        rhos, pis = np.ones((n, self.policies + 1)), np.full((n, self.policies + 1), np.nan)
        mus = pis if given.pi is None else pis.copy()
        if not self.policies:
            return rhos, pis, mus
        if (given.pi is None) != (given.mu is None):
            raise InputError("give both pi and mu (probabilities of the action taken), or neither.")
        if given.pi is not None and given.mu is not None:
            pis[:, :-1] = _table("pi", given.pi, n, self.policies, (0.0, 1.0))
            mu = numbers("mu", given.mu, (0.0, 1.0))
            mu = mu.reshape(-1, 1) if mu.ndim < 2 and mu.size == n else mu
            mus[:, :-1] = _spread("mu", mu, (n, self.policies))
            if not (mus[:, :-1] > 0.0).all():
                raise InputError(
                    "mu must be > 0: it is the probability of an action that was taken."
                )
            rhos[:, :-1] = pis[:, :-1] / mus[:, :-1]
        elif self.needs_policies:
            raise InputError(
                f"{self.needs_policies} needs pi and mu, the probabilities of the action taken; "
                "pass pi=... (one column per policy) and mu=..."
            )
        if given.rhos is not None:
            found = _table("rhos", given.rhos, n, self.policies, (0.0, np.inf))
            if given.pi is not None and not np.allclose(found, rhos[:, :-1], rtol=1e-6):
                raise InputError("rhos must be pi/mu; give rhos, or pi and mu.")
            if given.pi is None:
                rhos[:, :-1] = found
        elif given.pi is None and self.needs_ratio:
            raise InputError(
                f"rhos are missing: {self.needs_ratio} needs the importance ratio pi/mu of the "
                f"action taken under each policy; pass rhos=... with {self.policies} "
                f"column{'s' * (self.policies > 1)}, or pi=... and mu=..."
            )
        return rhos, pis, mus

    # Features

    def features(self, name: str, x: Features) -> ActiveFeatures:
        """The active features of some steps: dense [n, d], (indices, values), or SciPy's."""
        if hasattr(x, "tocsr"):
            return self._csr(name, x.tocsr())
        if isinstance(x, tuple):
            return self._pairs(name, x)
        dense = numbers(name, x)
        dense = dense[None] if dense.ndim == 1 else dense
        if dense.ndim != 2 or dense.shape[1] != self.n_features:
            raise InputError(
                f"{name} must have {self.n_features} features (a vector, or a row for each step), "
                f"or be a pair (indices, values); got shape {dense.shape}."
            )
        rows, feature = np.nonzero(dense)
        return self._active(rows, feature, dense[rows, feature], len(dense))

    def _csr(self, name: str, matrix: Any) -> ActiveFeatures:
        if matrix.shape[1] != self.n_features:
            raise InputError(
                f"{name} must have {self.n_features} columns, one per feature, got "
                f"{matrix.shape[1]}."
            )
        matrix = matrix.copy() if not matrix.has_canonical_format else matrix
        matrix.sum_duplicates()
        n = matrix.shape[0]
        rows = np.repeat(np.arange(n), np.diff(matrix.indptr))
        return self._active(rows, matrix.indices, numbers(name, matrix.data), n)

    def _pairs(self, name: str, pair: tuple[Any, ...]) -> ActiveFeatures:
        """Indices [active] or [n, active], and as many values (None: all are 1)."""
        if len(pair) != 2:
            raise InputError(f"{name} must be a pair (indices, values), got {len(pair)} things.")
        indices = np.asarray(pair[0])
        if indices.size and indices.dtype.kind not in "iu":
            raise InputError(f"the indices of {name} must be whole numbers, got {indices.dtype}.")
        indices = indices[None] if indices.ndim == 1 else indices
        if indices.ndim != 2:
            raise InputError(
                f"the indices of {name} must be a vector, or a row for each step, got shape "
                f"{indices.shape}."
            )
        n, active = indices.shape
        every = np.arange(0, n * active + 1, active) if active else np.zeros(n + 1, np.int64)
        ordered = _ascending(indices, self.n_features)
        if pair[1] is None and ordered:
            return self._made(every, indices.reshape(-1), np.ones(indices.size))
        values = np.ones(indices.shape) if pair[1] is None else numbers(name, pair[1])
        values = values.reshape(indices.shape) if values.size == indices.size else values
        if values.shape != indices.shape:
            raise InputError(
                f"{name} has {indices.size} indices and {values.size} values; give one value for "
                "each index, or None where all are 1."
            )
        if not ordered and not (indices.min() >= 0 and indices.max() < self.n_features):
            wrong = indices[(indices < 0) | (indices >= self.n_features)][0]
            raise InputError(
                f"the indices of {name} must be from 0 to {self.n_features - 1}, got {wrong}."
            )
        if not ordered:
            order = np.argsort(indices, axis=1, kind="stable")
            indices, values = (np.take_along_axis(a, order, axis=1) for a in (indices, values))
            if (np.diff(indices, axis=1) == 0).any():
                raise InputError(f"an index of {name} stands twice in one step; add its values up.")
        if np.count_nonzero(values) == values.size:
            return self._made(every, indices.reshape(-1), values.reshape(-1))
        rows = np.repeat(np.arange(n), active)
        kept = values.reshape(-1) != 0.0  # as in a dense vector
        return self._active(rows[kept], indices.reshape(-1)[kept], values.reshape(-1)[kept], n)

    def _active(
        self, rows: NDArray[Any], feature: NDArray[Any], value: Floats, n: int
    ) -> ActiveFeatures:
        first = np.zeros(n + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows, minlength=n), out=first[1:])
        return self._made(first, feature, value)

    def _made(self, first: Longs, feature: NDArray[Any], value: Floats) -> ActiveFeatures:
        values = np.ascontiguousarray(value)
        if self.dtype == "float32":
            with np.errstate(over="ignore"):
                values = values.astype(np.float32)
            if not np.isfinite(values).all():
                raise InputError(
                    f"features must fit into float32, got {np.abs(value).max():g}; use another "
                    'unit, or dtype="float64".'
                )
        return ActiveFeatures(first, feature.astype(np.int32), values).read_only()


def _ascending(indices: NDArray[Any], features: int) -> bool:
    """Whether each row of indices is in ascending order, none twice, from 0 to features - 1."""
    if not indices.size:
        return True
    one = len(indices) == 1  # a live step has no time for the minimum of one number
    low = indices[0, 0] if one else indices[:, 0].min()
    high = indices[0, -1] if one else indices[:, -1].max()
    return bool(low >= 0 and high < features and (indices[:, 1:] > indices[:, :-1]).all())


def numbers(
    name: str, values: ArrayLike, bounds: tuple[float, float] = (-np.inf, np.inf)
) -> Floats:
    """An array of finite numbers within bounds, as doubles."""
    if getattr(getattr(values, "dtype", None), "kind", "") in ("c", "m", "M"):
        raise InputError(f"{name} must be numbers, got {values.dtype}.")  # type: ignore[union-attr]
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must be numbers ({error}).") from None
    low, high = bounds
    if array.size and not (-np.inf < array.min() >= low and np.inf > array.max() <= high):
        fine = np.isfinite(array) & (array >= low) & (array <= high)
        rule = f"from {low:g} to {high:g}" if high < np.inf else "finite numbers"
        rule += f" >= {low:g}" if low > -np.inf and high == np.inf else ""
        where = np.argwhere(~fine)[0].tolist()
        raise InputError(f"{name} must be {rule}, got {array[~fine][0]:g} at {where}.")
    return array


def _table(
    name: str, values: ArrayLike, n: int, columns: int,
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> Floats:  # fmt: skip
    """Numbers [n, columns]; a table with more columns is cut, one with fewer is an error."""
    array = numbers(name, values, bounds)
    array = array[None] if array.ndim <= 1 and n == 1 else array
    array = array.reshape(n, 1) if array.shape == (n,) and columns == 1 else array
    if array.ndim != 2 or len(array) != n or array.shape[1] < columns:
        steps = f" for each of {n} steps" if n != 1 else ""
        raise InputError(
            f"{name} must have {columns} number{'s' * (columns > 1)}{steps}, one per column that "
            f"the predictions name; got shape {np.shape(values)}."
        )
    return np.ascontiguousarray(array[:, :columns])


def _spread(
    name: str, values: ArrayLike, shape: tuple[int, ...],
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> Floats:  # fmt: skip
    """Numbers of a shape; one number stands for all steps, one column for all policies."""
    array = numbers(name, values, bounds)
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
