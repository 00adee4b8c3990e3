"""Records as JSON and arrays: how an evaluation is kept in a file, without pickle.

Known are texts, numbers, lists, tuples, dictionaries, arrays, feature maps, and objects of this
room's classes, by their attributes; reading makes nothing else, and runs no code of the file's.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from steadytd.base.errors import InputError
from steadytd.base.files import reading_arrays, write_arrays
from steadytd.features import FeatureMap, feature_map_from

Arrays = dict[str, NDArray[Any]]
OURS = ("steadytd.evaluation.", "steadytd.base.finding")
KEPT = "__kept__"  # of a class: cached properties that could not be computed again


def encode(value: object, arrays: Arrays) -> Any:
    """The value for JSON; its arrays go to `arrays`."""
    if isinstance(value, np.ndarray | csr_array):
        return _array(value, arrays)
    if isinstance(value, FeatureMap):
        prefix = f"map_{len(arrays)}_"
        arrays.update({prefix + key: np.asarray(a) for key, a in value.save_arrays().items()})
        return {"features": prefix}
    if type(value).__module__.startswith(OURS):
        return _record(value, arrays)
    if isinstance(value, Mapping):
        pairs = [[encode(k, arrays), encode(v, arrays)] for k, v in value.items()]
        return {"dictionary": pairs}
    if isinstance(value, tuple | list):
        parts = [encode(one, arrays) for one in value]
        return parts if isinstance(value, list) else {"tuple": parts}
    plain = value.item() if isinstance(value, np.generic) else value
    return None if callable(plain) else plain


def _array(value: Any, arrays: Arrays) -> dict[str, Any]:
    """An array by its name; a sparse one by those of its three arrays."""
    parts = [value] if isinstance(value, np.ndarray) else [value.data, value.indices, value.indptr]
    names = [f"array_{len(arrays) + i}" for i in range(len(parts))]
    arrays.update(zip(names, parts, strict=True))
    return {"array": names, "shape": value.shape}


def _record(value: Any, arrays: Arrays) -> dict[str, Any]:
    """Its class, its fields (or attributes), and what it could not compute again."""
    kind = type(value)
    names = getattr(value, "_fields", None) or getattr(kind, "__dataclass_fields__", vars(value))
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
        parts = [arrays[name] for name in found["array"]]
        shape = tuple(found["shape"])
        return csr_array(tuple(parts), shape=shape) if len(parts) > 1 else parts[0]
    if "features" in found:
        prefix = found["features"]
        own = {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}
        return feature_map_from(own)
    if "dictionary" in found:
        return {decode(k, arrays): decode(v, arrays) for k, v in found["dictionary"]}
    return tuple(decode(found["tuple"], arrays)) if "tuple" in found else _made(found, arrays)


def _made(found: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Any:
    kind = _kind(found["record"])
    parts, kept = (
        {name: decode(value, arrays) for name, value in found[of].items()}
        for of in ("parts", "kept")
    )
    if issubclass(kind, tuple) or dataclasses.is_dataclass(kind):
        made: Any = kind(**parts)
    else:
        made = kind.__new__(kind)
        kept |= parts
    for name, value in kept.items():
        vars(made)[name] = value
    return made


def _kind(written: str) -> type:
    """A class of this room."""
    module, _, name = written.partition(":")
    ours = module.startswith(OURS)
    found = getattr(importlib.import_module(module), name, None) if ours else None
    if isinstance(found, type) and found.__module__ == module:
        return found
    raise InputError(f"'{written}' is not a record of an evaluation")


def save_record(path: Path, value: object, compressed: bool = True) -> Path:
    """Write a value to a NumPy archive."""
    arrays: Arrays = {}
    content = json.dumps(encode(value, arrays))
    return write_arrays(path, {"content": np.array(content), **arrays}, compressed=compressed)


def load_record(path: Path, what: str) -> Any:
    """What `save_record` wrote; `what` it is, for messages."""
    with reading_arrays(path, what) as file:
        arrays = {name: file[name] for name in file.files}
        return decode(json.loads(str(arrays.pop("content"))), arrays)
