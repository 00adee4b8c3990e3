"""What all feature maps share: fit once on a sample, then turn observations into features.

A map is immutable, `fit` returns a new one. What an `ArrayMap` learned from the sample are named
arrays (`state`), and `save_arrays` writes nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steadytd.base.arrays import Floats, frozen
from steadytd.base.errors import InputError
from steadytd.engine.rows import Rows, dense_rows
from steadytd.features.observations import observations

State = Mapping[str, NDArray[Any]]
MOST = 10_000  # features of a dense map: d x d sums of that size take 800 MB


@dataclass(frozen=True, eq=False)
class FeatureMap(ABC):
    """A map from observations [n, n_obs] to features [n, n_features].

    `numbers` are those of the text form (`tiles:8x4` has 8 and 4), `seed` decides whatever a map
    draws at random. Before `fit`, `n_features` is 0 and the map cannot be called.
    """

    kind: ClassVar[str]
    form: ClassVar[str]  # how the text form is written, for messages
    is_sparse: ClassVar[bool] = False  # few features are active: `rows` is smaller than a call
    constant: ClassVar[int | None] = None  # a feature that is 1, exactly, for every observation

    numbers: tuple[int, ...] = ()
    seed: int = 0
    n_obs: int = 0
    n_features: int = 0

    @property
    def spec(self) -> str:
        """The text form, for instance `rbf:300`."""
        return self.kind + ":" * bool(self.numbers) + "x".join(map(str, self.numbers))

    @property
    def most_active(self) -> int:
        """How many features of one observation may differ from 0."""
        return self.n_features

    @property
    def fitted(self) -> bool:
        """Whether the map is fitted."""
        return self.n_features > 0

    @property
    def states(self) -> list[str] | None:
        """The observation that each feature stands for, where a feature stands for a state."""
        return None

    def names(self, obs: Sequence[str]) -> list[str]:
        """What the features are called, where `obs` names the numbers of an observation."""
        return [f"feature {i}" for i in range(self.n_features)]

    def __str__(self) -> str:
        return self.spec

    def fit(self, obs: ArrayLike) -> Self:
        """A new map, fitted on the observations [n, k]."""
        sample = observations(obs)
        if not len(sample):
            raise InputError(f"{self.spec} needs at least one observation to be fitted on, got 0.")
        return self._fit(sample)

    def __call__(self, obs: ArrayLike, out: Floats | None = None) -> Floats:
        """The features [n, n_features] of observations [n, n_obs], written to `out` if given."""
        given = self._given(obs)
        shape = (len(given), self.n_features)
        if out is None:
            out = np.empty(shape)
        elif out.shape != shape or out.dtype != np.float64 or not out.flags.c_contiguous:
            raise InputError(
                f"out must be a contiguous float64 array of shape {shape}, "
                f"got {out.dtype} of shape {out.shape}."
            )
        self._apply(given, out)
        return out

    def fill(self, obs: NDArray[Any], out: Floats) -> None:
        """Write the features of observations that are known to be right: a log has checked them."""
        assert obs.shape[1] == self.n_obs
        self._apply(obs, out)

    def rows(self, obs: ArrayLike) -> Rows:
        """The same as a feature table for the engine, in the form that suits the map."""
        return dense_rows(self(obs))

    @abstractmethod
    def save_arrays(self) -> dict[str, NDArray[Any]]:
        """All that `feature_map_from` needs to make this map again: plain arrays and texts."""

    def _given(self, obs: ArrayLike) -> NDArray[Any]:
        self._require_fit()
        given = observations(obs)
        if given.shape[1] != self.n_obs:
            raise InputError(
                f"{self.spec} was fitted on observations of {self.n_obs} numbers, "
                f"got {given.shape[1]} numbers each."
            )
        return given

    def _require_fit(self) -> None:
        if not self.fitted:
            raise InputError(f"the feature map {self.spec} is not fitted yet; call fit(sample).")

    @abstractmethod
    def _fit(self, sample: NDArray[Any]) -> Self:
        """A new map, fitted on checked observations."""

    @abstractmethod
    def _apply(self, obs: NDArray[Any], out: Floats) -> None:
        """Write the features of checked observations."""


@dataclass(frozen=True, eq=False)
class ArrayMap(FeatureMap):
    """A map that its text form, its seed and the fitted arrays describe completely."""

    arrays: ClassVar[Mapping[str, str]]  # the axes of each array of `state`, one letter per axis

    state: State = field(default_factory=dict, repr=False)

    def with_state(self, n_obs: int, state: State) -> Self:
        """The map with given arrays in place of fitted ones."""
        arrays = {name: frozen(array, array.dtype.type) for name, array in state.items()}
        size = self._size(arrays)
        return replace(self, n_obs=n_obs, n_features=size, state=MappingProxyType(arrays))

    def save_arrays(self) -> dict[str, NDArray[Any]]:
        """All that `feature_map_from` needs to make this map again: plain arrays and texts."""
        self._require_fit()
        about = {"spec": self.spec, "seed": self.seed, "n_obs": self.n_obs}
        return {**{name: np.array(value) for name, value in about.items()}, **self.state}

    def _fit(self, sample: NDArray[Any]) -> Self:
        return self.with_state(sample.shape[1], self._learn(sample))

    @abstractmethod
    def _learn(self, sample: NDArray[Any]) -> State:
        """The arrays that the sample decides."""

    @abstractmethod
    def _size(self, state: State) -> int:
        """The number of features, given the arrays."""


def too_many(spec: str, count: int, most: int, remedy: str) -> InputError:
    """An error for a map with more features than can be afforded."""
    number = f"{count:,d}" if count < 10**15 else f"{count:.1e}"
    return InputError(f"{spec} would have {number} features, more than {most:,d}; {remedy}.")
