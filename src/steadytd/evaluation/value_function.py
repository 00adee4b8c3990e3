"""A value function with its feature map: predicts on new observations, saved without pickle."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError
from steadytd.evaluation.records import load_record, save_record
from steadytd.features import FeatureMap


@dataclass(frozen=True)
class ValueFunction:
    """v(obs) = w . features(obs), as one learner found it for one target."""

    target: str
    learner: str
    weights: Floats
    features: FeatureMap

    def predict(self, obs: ArrayLike) -> Floats:
        """The values [n] of observations [n, k], or [1] of a single one."""
        given = np.atleast_2d(np.asarray(obs))
        return np.asarray(self.features(given) @ self.weights)

    def save(self, path: str | Path) -> Path:
        """Write weights and feature map to a NumPy archive."""
        return save_record(Path(path), self, compressed=False)


def load_value_function(path: str | Path) -> ValueFunction:
    """Read a value function that `save` wrote."""
    found = load_record(Path(path), "value function")
    if not isinstance(found, ValueFunction):
        raise InputError(
            f"'{path}' is not a saved value function (it holds a {type(found).__name__})."
        )
    if found.weights.shape != (found.features.n_features,) or not np.isfinite(found.weights).all():
        raise InputError(
            f"'{path}' is damaged: it needs {found.features.n_features} finite weights, "
            f"got an array of shape {found.weights.shape}."
        )
    return found
