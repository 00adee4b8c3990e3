"""Feature maps: from observations to the rows of a feature table.

>>> f = feature_map("poly:2").fit([[0.0], [2.0]])
>>> f([[2.0]]).tolist()
[[1.0, 1.0, 1.0]]
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.errors import InputError, unknown
from steadytd.base.numbers import one_seed
from steadytd.features.base import ArrayMap, FeatureMap
from steadytd.features.fourier import Fourier
from steadytd.features.onehot import OneHot
from steadytd.features.poly import Poly
from steadytd.features.raw import Raw
from steadytd.features.rbf import Rbf
from steadytd.features.tiles import Tiles
from steadytd.features.transformer import Transformer, transformer_from

KINDS: dict[str, type[ArrayMap]] = {
    kind.kind: kind for kind in (Raw, Poly, Rbf, Fourier, Tiles, OneHot)
}
EXAMPLE = {"poly": "poly:2", "rbf": "rbf:300", "fourier": "fourier:3", "tiles": "tiles:8x8"}
NUMBER = re.compile(r"[1-9][0-9]{0,5}")


def feature_map(spec: object, seed: int = 0) -> FeatureMap:
    """A feature map from its text form, from a scikit-learn transformer, or as it is.

    The text forms are `raw`, `poly:K`, `rbf:N`, `fourier:K`, `tiles:NxM` and `onehot`; `seed`
    decides the centres of `rbf`. The map must then be fitted on a sample of observations.
    """
    if isinstance(spec, FeatureMap):
        return spec
    if not isinstance(spec, str):
        if not (hasattr(spec, "fit") and hasattr(spec, "transform")) or isinstance(spec, type):
            raise InputError(
                "features must be a string such as 'rbf:300', or an object with fit and transform, "
                f"got {spec!r}."
            )
        return Transformer(transformer=spec)
    return _from_text(spec, seed)


def _from_text(spec: str, seed: int) -> ArrayMap:
    seed = one_seed(seed)
    kind, colon, rest = spec.strip().partition(":")
    if kind not in KINDS:
        raise unknown("features", kind, KINDS)
    if kind not in EXAMPLE:
        if colon:
            raise InputError(f"features '{kind}' take no number, got '{spec}'; write '{kind}'.")
        return KINDS[kind](seed=seed)
    return KINDS[kind](_numbers(kind, spec, rest), seed)


def _numbers(kind: str, spec: str, text: str) -> tuple[int, ...]:
    """The whole numbers after the colon: one, or two with an x between them."""
    form, example = KINDS[kind].form, EXAMPLE[kind]
    parts = text.split("x")
    if len(parts) != example.count("x", len(kind)) + 1 or not all(map(NUMBER.fullmatch, parts)):
        raise InputError(
            f"features '{kind}' are written {form} with whole numbers from 1 to 999999, "
            f"for instance '{example}', got '{spec}'."
        )
    numbers = tuple(map(int, parts))
    if kind == "tiles" and numbers[1] < 2:
        raise InputError(f"tiles:NxM needs M >= 2 tiles per column, got '{spec}'.")
    return numbers


def feature_map_from(arrays: Mapping[str, NDArray[Any]]) -> FeatureMap:
    """The fitted map that `save_arrays` wrote; its arrays are checked first."""
    spec = str(arrays["spec"]) if "spec" in arrays else ""
    if spec.startswith("sklearn:"):
        for name in ("class", "settings", "attributes", "probe"):
            _require(name in arrays, spec, f"'{name}' is missing")
        return transformer_from(arrays)
    for name in ("spec", "seed", "n_obs"):
        _require(name in arrays, spec, f"'{name}' is missing")
        form = "U" if name == "spec" else "i"
        found = np.asarray(arrays[name])
        _require(found.shape == () and found.dtype.kind == form, spec, f"'{name}' has a wrong form")
    empty, n_obs = _from_text(spec, int(arrays["seed"])), int(arrays["n_obs"])
    state: dict[str, NDArray[Any]] = {}
    sizes = {"k": n_obs}
    for name, axes in empty.arrays.items():
        _require(name in arrays, spec, f"'{name}' is missing")
        array = state[name] = np.asarray(arrays[name])
        wanted = np.int64 if name == "columns" else np.float64
        fits = array.dtype == wanted and array.ndim == len(axes)
        fits = fits and all(
            sizes.setdefault(axis, n) == n for axis, n in zip(axes, array.shape, strict=True)
        )
        _require(fits and bool(np.isfinite(array).all()), spec, f"'{name}' has a wrong form")
    columns = state.get("columns", np.zeros(0))
    _require(bool(((columns >= 0) & (columns < n_obs)).all()), spec, "a column is out of range")
    for name in ("scale", "width"):
        _require(bool((state.get(name, np.ones(1)) > 0).all()), spec, f"'{name}' must be > 0")
    if spec.startswith("rbf"):
        _require(sizes["n"] == empty.numbers[0], spec, "'centres' has a wrong form")
    return empty.with_state(n_obs, state)


def _require(fine: bool, spec: str, what: str) -> None:
    if not fine:
        raise InputError(f"the saved feature map {spec or '(without a name)'} is damaged: {what}.")


__all__ = ["FeatureMap", "feature_map", "feature_map_from"]
