"""A value function with its feature map: predicts on new observations, saved without pickle."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError
from steadytd.base.files import reading_arrays, write_arrays
from steadytd.features import FeatureMap, feature_map_from

PREFIX = "features_"


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
        about = json.dumps({"target": self.target, "learner": self.learner})
        arrays = {PREFIX + name: array for name, array in self.features.save_arrays().items()}
        content = {"about": np.array(about), "weights": self.weights, **arrays}
        return write_arrays(Path(path), content)


def load_value_function(path: str | Path) -> ValueFunction:
    """Read a value function that `save` wrote."""
    source = Path(path)
    with reading_arrays(source, "value function") as file:
        about = json.loads(str(file["about"]))
        weights = np.array(file["weights"], dtype=np.float64)
        prefixed = [name for name in file.files if name.startswith(PREFIX)]
        arrays = {name.removeprefix(PREFIX): file[name] for name in prefixed}
        target, learner = str(about["target"]), str(about["learner"])
    features = feature_map_from(arrays)
    if weights.shape != (features.n_features,) or not np.isfinite(weights).all():
        raise InputError(
            f"'{source}' is damaged: it needs {features.n_features} finite weights, "
            f"got an array of shape {weights.shape}."
        )
    return ValueFunction(target, learner, weights, features)
