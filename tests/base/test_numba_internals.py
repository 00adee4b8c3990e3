"""What is private to Numba: there, with its effect, and in one module."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import njit, types

import steadytd
from steadytd.base import numba_internals
from steadytd.base.arrays import Floats

SOURCE = Path(steadytd.__file__).parent
ROOT = Path(__file__).parents[2]
PUBLIC = {"numba": {"njit", "types"}}
PRIVATE = {  # attributes of Numba's objects that no other module may touch
    "_cache", "_reduce", "_rebuild", "call_conv", "codegen", "fndesc", "get_dummy_value",
    "get_pointer_to_function", "has_dynamic_globals", "library", "magic_tuple", "make_array",
    "noalias", "overloads", "target_context", "targetctx", "targetoptions",
}  # fmt: skip


def add(a: Floats, b: Floats) -> None:
    for i in range(len(a)):
        a[i] += b[i]


def test_disjoint_arrays_are_not_tested_for_overlap() -> None:
    both = types.Array(types.float64, 1, "C"), types.Array(types.float64, 1, "C")
    found = []
    for options in ({}, numba_internals.disjoint()):
        function: Any = njit(error_model="numpy", **options)(add)
        function.compile(both)
        (text,) = function.inspect_llvm().values()
        found.append(("vector.memcheck" in text, "fadd <" in text))
    assert found == [(True, True), (False, True)]


def test_the_newest_numba_that_is_allowed_is_the_one_tested() -> None:
    """What is private to Numba may change in any version: a new one is let in by a test run."""
    (allowed,) = re.findall(r'"numba>=[\d.]+,<0\.(\d+)"', (ROOT / "pyproject.toml").read_text())
    (pinned,) = re.findall(
        r"^numba==0\.(\d+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE
    )
    assert int(allowed) == int(pinned) + 1
    assert numba.__version__.startswith(f"0.{pinned}.")


def test_machine_code_is_entered_by_its_address() -> None:
    kinds = types.Array(types.float64, 1, "C"), types.Array(types.float64, 1, "C")
    place = numba_internals.address(njit()(add), kinds)
    call = numba_internals.caller(kinds)

    @njit()
    def through(at: int, a: Floats, b: Floats) -> None:
        call(at, (a, b))

    a = np.arange(5.0)
    through(place, a, np.full(5, 0.5))
    assert a.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]


def test_kept_code_survives_packing() -> None:
    function: Any = njit(error_model="numpy")(add)
    kinds = (types.Array(types.float64, 1, "C"),) * 2
    function.compile(kinds)
    (result,) = function.overloads.values()
    packed = numba_internals.pack(kinds, result)
    assert packed is not None
    again = numba_internals.unpack(function.targetctx, packed)
    assert again.signature == result.signature
    assert numba_internals.pack((types.Dispatcher(function),), result) is None  # known by its place


def private_uses(path: Path) -> list[str]:
    """Imports from Numba's inside, and attributes of it."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "numba":
            allowed = PUBLIC.get(node.module or "", set())
            found += [f"{node.module}.{one.name}" for one in node.names if one.name not in allowed]
        elif isinstance(node, ast.Import):
            names = [one.name for one in node.names]
            found += [n for n in names if n.startswith(("numba.", "llvmlite."))]
        elif isinstance(node, ast.Attribute) and node.attr in PRIVATE:
            found.append(node.attr)
        elif isinstance(node, ast.Constant) and node.value in PRIVATE:
            found.append(str(node.value))
    return found


def test_no_other_module_leans_on_numbas_inside() -> None:
    found = {
        str(path.relative_to(SOURCE)): uses
        for path in SOURCE.rglob("*.py")
        if not path.name.startswith("numba_") and (uses := private_uses(path))
    }
    assert found == {"base/identity.py": ["targetoptions"]}  # which does without, if it is gone
    assert len(set(private_uses(SOURCE / "base" / "numba_internals.py"))) > 10
