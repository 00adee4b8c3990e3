"""What is private to Numba: there, with its effect, in one module, and not needed for the results.

If the first tests fail after an update of Numba, `base/numba_internals` has to follow. Until then
everything still works, but slower.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba import njit, types

import steadytd
from steadytd.base import jit, numba_internals
from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError
from steadytd.engine.active import ActiveBlock
from steadytd.engine.block import Block
from steadytd.engine.step import driver, kernels
from steadytd.engine.step.compile import kernel
from steadytd.learners import learner
from tests.support.cases import RandomStream

SOURCE = Path(steadytd.__file__).parent
ROOT = Path(__file__).parents[2]
PUBLIC = {"numba": {"njit", "types"}, "numba.extending": {"overload"}}
PRIVATE = {  # attributes of Numba's objects that no other module may touch
    "_cache", "_reduce", "_rebuild", "call_conv", "codegen", "fndesc", "get_dummy_value",
    "get_pointer_to_function", "has_dynamic_globals", "library", "magic_tuple", "make_array",
    "noalias", "overloads", "target_context", "targetctx", "targetoptions",
}  # fmt: skip


@pytest.mark.parametrize("part", numba_internals.NEEDED)
def test_this_numba_has_every_part(part: str) -> None:
    assert numba_internals.there(part) and numba_internals.used(part)


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
    assert place is not None
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


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("compiler.Flags.noalias", "noalias"),
        ("compiler.CompileResult", "cache"),
        ("callconv.CPUCallConv.call_function", "address"),
        ("codegen.JITCodeLibrary", "address"),
        ("base.BaseContext.make_array", "vectors"),
    ],
)
def test_a_part_that_is_gone_is_noticed(
    name: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(f"numba.core.{name}")
    numba_internals._say_missing.cache_clear()
    with pytest.warns(UserWarning, match=rf"\({part}\): results stay right"):
        assert not numba_internals.used(part)


def test_a_module_that_is_gone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba.core.serialize", None)
    assert not numba_internals.there("cache")


def test_parts_are_switched_off_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(numba_internals.WITHOUT, "noalias, vectors")
    assert [part for part in numba_internals.NEEDED if numba_internals.used(part)] == [
        "cache", "address",
    ]  # fmt: skip
    assert numba_internals.disjoint() == {}
    monkeypatch.setenv(numba_internals.WITHOUT, "noalais")
    with pytest.raises(InputError, match="'noalais'; did you mean 'noalias'"):
        numba_internals.used("noalias")


def test_the_switch_is_part_of_the_name_of_kept_code(monkeypatch: pytest.MonkeyPatch) -> None:
    function: Any = jit.compiled(kernels.uniform.py_func)  # type: ignore[attr-defined]
    marks = []
    for without in ("", "vectors", "noalias"):
        monkeypatch.setenv(numba_internals.WITHOUT, without)
        marks.append(vars(function)["_cache"]._mark((types.int64,), "processor"))
    assert len(set(marks)) == 3


def test_without_an_address_the_loop_itself_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    class Loop:
        def compile(self, kinds: object) -> None:
            assert kinds == driver.ENTRY

    monkeypatch.setenv(numba_internals.WITHOUT, "address")
    assert driver.address(Loop()) is None


def weights(*learners: str) -> list[bytes]:
    """What a plain and a scaled loop make of a stream."""
    stream = RandomStream(seed=3, steps=300)
    found = []
    for text in learners:
        for kind in (Block, ActiveBlock)[: 1 + ("lam" in text)]:
            block = kind([learner(text)], stream.w0)
            block.advance(stream.events, np.ones(300), stream.transitions, stream.rows)
            found.append(block.w.tobytes())
    return found


@pytest.mark.slow
def test_loops_give_the_same_bits_without_any_part(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = "tdc:alpha=0.01,ratio=2", "td:alpha=0.001,lam=0.8"
    usual = weights(*texts)
    kernel.cache_clear()
    monkeypatch.setenv(numba_internals.WITHOUT, "all")
    assert weights(*texts) == usual and len(usual) == 3
    loop = Block([learner(texts[0])], np.zeros(2)).kernel
    assert loop.loop is loop.enter  # not by its address
    kernel.cache_clear()


PROCESS = """
import numpy as np
from steadytd.evaluation.collect import vectors
from steadytd.evaluation.collect.products import Across, Eightfold, multiply

assert vectors.eight is vectors.PLAIN.eight
rng = np.random.default_rng(0)
U, V, C = rng.normal(size=8 * 9), rng.normal(size=(9, 12)), np.zeros(8 * 12)
multiply(Eightfold(9, 0, 8), U, Across(0, 12, 12), V.reshape(-1), C, 0)
right = V.T @ U.reshape(9, 8)
np.testing.assert_allclose(C.reshape(12, 8), right, rtol=1e-13, atol=1e-13)
"""


@pytest.mark.slow
def test_sums_over_a_log_are_the_same_without_vectors(tmp_path: Path) -> None:
    env = {**os.environ, "STEADYTD_CACHE_DIR": str(tmp_path), numba_internals.WITHOUT: "vectors"}
    subprocess.run([sys.executable, "-c", PROCESS], env=env, check=True)
