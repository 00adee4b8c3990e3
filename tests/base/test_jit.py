from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

SOURCE = """
from typing import NamedTuple
from steadytd.base.jit import compiled

class NAME(NamedTuple):
    a: float

@compiled
def double(x):
    return FACTOR * x.a
"""


def module(path: Path, name: str, factor: float, date: int) -> ModuleType:
    path.write_text(SOURCE.replace("NAME", name).replace("FACTOR", str(factor)))
    os.utime(path, (date, date))
    spec = importlib.util.spec_from_file_location("steadytd_test_jit", path)
    assert spec is not None and spec.loader is not None
    made = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        spec.loader.exec_module(made)
    finally:
        sys.dont_write_bytecode = before
    return made


def test_a_class_of_arguments_may_be_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Numba kept on disk for the older source is compiled again, not opened."""
    monkeypatch.setitem(sys.modules, "steadytd_test_jit", ModuleType("steadytd_test_jit"))
    path = tmp_path / "case.py"
    older = module(path, "Older", 2.0, 1_000_000)
    assert older.double(older.Older(3.0)) == 6.0
    again = module(path, "Older", 2.0, 1_000_000)
    assert again.double(again.Older(3.0)) == 6.0
    assert sum(again.double.stats.cache_hits.values()) == 1
    newer = module(path, "Newer", 4.0, 2_000_000)
    assert newer.double(newer.Newer(3.0)) == 12.0
    assert sum(newer.double.stats.cache_hits.values()) == 0
