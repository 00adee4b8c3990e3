"""Records as JSON and arrays: how an evaluation is kept in a file, without pickle.

Known are texts, numbers, lists, tuples, dictionaries, arrays, feature maps, and this library's own
named tuples and data classes; reading makes nothing else, and runs no code of the file's.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.errors import InputError
from steadytd.features import FeatureMap, feature_map_from

Arrays = dict[str, NDArray[Any]]
KEPT = "__kept__"  # of a class: cached properties that could not be computed again


def encode(value: object, arrays: Arrays) -> Any:
    """The value for JSON; its arrays go to `arrays`."""
    if isinstance(value, np.ndarray):
        name = f"array_{len(arrays)}"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, FeatureMap):
        prefix = f"map_{len(arrays)}_"
        arrays.update({prefix + key: np.asarray(a) for key, a in value.save_arrays().items()})
        return {"features": prefix}
    if dataclasses.is_dataclass(value) or hasattr(value, "_fields"):
        return _record(value, arrays)
    if isinstance(value, Mapping):
        pairs = [[encode(k, arrays), encode(v, arrays)] for k, v in value.items()]
        return {"dictionary": pairs}
    if isinstance(value, tuple | list):
        parts = [encode(one, arrays) for one in value]
        return parts if isinstance(value, list) else {"tuple": parts}
    plain = value.item() if isinstance(value, np.generic) else value
    return None if callable(plain) else plain


def _record(value: Any, arrays: Arrays) -> dict[str, Any]:
    """A named tuple or a data class: its class, its fields, and what it could not compute again."""
    kind = type(value)
    names = getattr(value, "_fields", None) or [f.name for f in dataclasses.fields(kind)]
    parts = {name: encode(getattr(value, name), arrays) for name in names}
    kept = {name: encode(getattr(value, name), arrays) for name in getattr(kind, KEPT, ())}
    return {"record": f"{kind.__module__}:{kind.__name__}", "parts": parts, "kept": kept}


def decode(found: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """What `encode` was given."""
    if isinstance(found, list):
        return [decode(one, arrays) for one in found]
    if not isinstance(found, dict):
        return found
    if "array" in found:
        return arrays[found["array"]]
    if "features" in found:
        prefix = found["features"]
        own = {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}
        return feature_map_from(own)
    if "dictionary" in found:
        return {decode(k, arrays): decode(v, arrays) for k, v in found["dictionary"]}
    return tuple(decode(found["tuple"], arrays)) if "tuple" in found else _made(found, arrays)


def _made(found: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Any:
    made = _kind(found["record"])(**{k: decode(v, arrays) for k, v in found["parts"].items()})
    for name, value in found["kept"].items():
        vars(made)[name] = decode(value, arrays)
    return made


def _kind(written: str) -> type:
    """A class of this library that holds data and nothing else."""
    module, _, name = written.partition(":")
    ours = module.startswith(("steadytd.evaluation.", "steadytd.base.finding"))
    found = getattr(importlib.import_module(module), name, None) if ours else None
    if isinstance(found, type) and found.__module__ == module:
        named = issubclass(found, tuple) and hasattr(found, "_fields")
        if named or dataclasses.is_dataclass(found):
            return found
    raise InputError(f"'{written}' is not a record of an evaluation")
