"""Any scikit-learn transformer as a feature map.

The features are what `transform` returns; no constant is added. Saving goes without pickle: the
settings and the fitted attributes of a transformer of scikit-learn itself are written as numbers,
texts and arrays. A transformer that holds other objects (a pipeline, a spline) cannot be saved
so, and saving says it. Before anything is written, the transformer is rebuilt from its arrays and
must give the same features as the original.
"""

from __future__ import annotations

import copy
import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats, frozen, read_only
from steadytd.base.errors import InputError, users_own
from steadytd.features.base import FeatureMap

PROBES = 8  # observations of the sample on which a rebuilt transformer is compared


@dataclass(frozen=True, eq=False)
class Transformer(FeatureMap):
    """A scikit-learn transformer; the object given is copied, never changed."""

    kind: ClassVar[str] = "sklearn"
    form: ClassVar[str] = "a scikit-learn transformer"

    transformer: Any = None
    probe: Floats = field(default_factory=lambda: np.zeros((0, 0)), repr=False)

    @property
    def spec(self) -> str:
        """`sklearn:` and the name of the class."""
        return f"sklearn:{type(self.transformer).__name__}"

    def _fit(self, sample: NDArray[Any]) -> Self:
        """A new map with a fitted copy of the transformer."""
        fresh = _unfitted(self.transformer)
        with users_own(f"{self.spec}.fit, given {len(sample)} observations,"):
            fresh.fit(sample)
        probe = frozen(sample[:PROBES])
        size = _transformed(fresh, probe, self.spec).shape[1]
        n_obs = sample.shape[1]
        return replace(self, transformer=fresh, n_obs=n_obs, n_features=size, probe=probe)

    def save_arrays(self) -> dict[str, NDArray[Any]]:
        """Settings and fitted attributes; an error if that is not all there is."""
        self._require_fit()
        arrays = {
            "spec": np.array(self.spec),
            "class": np.array(f"{type(self.transformer).__module__}:{self.spec[8:]}"),
            "probe": np.array(self.probe),
            **_taken_apart(self.transformer, self.spec),
        }
        again = transformer_from(arrays)
        if not np.array_equal(again(self.probe), self(self.probe)):
            raise _cannot_save(self.spec, "the copy made of its arrays gives other features")
        return arrays

    def _apply(self, obs: NDArray[Any], out: Floats) -> None:
        found = _transformed(self.transformer, obs, self.spec)
        if found.shape != out.shape:
            raise InputError(
                f"{self.spec} gave {out.shape[1]} features at first and {found.shape[1]} now; it "
                "must give every observation the same number."
            )
        out[:] = found


def transformer_from(arrays: Mapping[str, NDArray[Any]]) -> Transformer:
    """The map that `save_arrays` took apart. Only classes of scikit-learn are ever loaded."""
    module, _, name = str(arrays["class"]).partition(":")
    if module.split(".")[0] != "sklearn":
        raise InputError(f"a saved transformer must be one of scikit-learn, got '{module}'.")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InputError(f"the saved transformer '{name}' is not available ({error}).") from error
    if not (isinstance(found, type) and hasattr(found, "transform")):
        raise InputError(f"the saved transformer '{name}' is not a transformer.")
    try:
        one: Any = found(**json.loads(str(arrays["settings"])))
        values: dict[str, Any] = json.loads(str(arrays["attributes"]))
        values |= {k[6:]: np.array(a) for k, a in arrays.items() if k.startswith("fitted")}
        for attribute, value in values.items():
            if attribute.startswith("__") or not attribute.isidentifier():
                raise ValueError(f"'{attribute}' is no attribute of a transformer")
            setattr(one, attribute, value)
        probe = frozen(arrays["probe"])
        size = _transformed(one, probe, f"sklearn:{name}").shape[1]
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise InputError(f"the saved transformer '{name}' is damaged: {error}") from error
    return Transformer(transformer=one, n_obs=probe.shape[1], n_features=size, probe=probe)


def _taken_apart(one: Any, spec: str) -> dict[str, NDArray[Any]]:
    """A transformer as two JSON texts and arrays named `fitted...`."""
    if not type(one).__module__.startswith("sklearn."):
        raise _cannot_save(spec, "its class is not part of scikit-learn")
    settings = one.get_params(deep=False)
    fitted = {k: v for k, v in vars(one).items() if k not in settings}
    parts: dict[str, NDArray[Any]] = {}
    plain: dict[str, Any] = {}
    for name, value in fitted.items():
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            parts[f"fitted{name}"] = value
        elif isinstance(value, np.generic) and value.dtype.kind in "biuf":
            plain[name] = value.item()
        else:
            plain[name] = value
    return {
        "settings": np.array(_json(settings, spec)),
        "attributes": np.array(_json(plain, spec)),
        **parts,
    }


def _json(values: dict[str, Any], spec: str) -> str:
    for name, value in values.items():
        try:
            same = json.loads(json.dumps(value)) == value
        except (TypeError, ValueError):
            same = False
        if not same and not isinstance(value, tuple):
            raise _cannot_save(spec, f"'{name}' is {type(value).__name__}, not a number or string")
    return json.dumps(values)


def _cannot_save(spec: str, why: str) -> InputError:
    return InputError(
        f"{spec} cannot be saved without pickle: {why}; use a built-in map such as rbf:300, or "
        "keep the transformer yourself and fit it again."
    )


def _unfitted(transformer: Any) -> Any:
    try:
        from sklearn.base import clone
    except ImportError:
        return copy.deepcopy(transformer)
    return clone(transformer, safe=False)


def _transformed(one: Any, obs: NDArray[Any], spec: str) -> Floats:
    with users_own(f"{spec}.transform, given {len(obs)} observations,"):
        result = one.transform(read_only(obs))
        if hasattr(result, "toarray"):
            result = result.toarray()
        features = np.asarray(result, dtype=np.float64)
    if features.ndim != 2 or len(features) != len(obs) or not np.isfinite(features).all():
        raise InputError(
            f"{spec} must give a finite row of features for each of {len(obs)} observations, "
            f"got an array of shape {features.shape}."
        )
    return features
