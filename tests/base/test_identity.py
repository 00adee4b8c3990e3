"""What a result depends on: every change is seen, and nothing else."""

from __future__ import annotations

import ast
import functools
import gc
import inspect
import math
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import steadytd as st
from steadytd.base import source
from steadytd.base.identity import digest, modules
from steadytd.base.source import UnreadableError, closure
from steadytd.mdp.problem import ARRAYS, LATER, TEXTS
from tests.support.draws import thinned
from tests.support.other_code import changed

GAIN = 2.0
library = ModuleType("library")
vars(library).update(gain=2.0, inner=ModuleType("inner"))
vars(library.inner)["gain"] = 2.0


def plain(x: float) -> float:
    return x * GAIN


def nested(x: float) -> float:
    def inside(y: float) -> float:
        return y * GAIN

    return inside(x)


def through_module(x: float) -> float:
    return float(x * library.gain)


def through_inner_module(x: float) -> float:
    return float(x * library.inner.gain)


def in_comprehension(x: float) -> float:
    return sum(x * GAIN for _ in range(3))


def closing(gain: object) -> Callable[[float], object]:
    def function(x: float) -> object:
        return x, gain

    return function


def even(n: int) -> bool:
    return n == 0 or odd(n - 1)


def odd(n: int) -> bool:
    return n != 0 and even(n - 1)


def altered(function: Any, **changes: Any) -> Any:
    """The function with other globals, everything else the same."""
    new = FunctionType(
        function.__code__, {**function.__globals__, **changes}, function.__name__,
        function.__defaults__, function.__closure__,
    )  # fmt: skip
    new.__module__ = function.__module__
    return new


class Scaled:
    def __init__(self, gain: float) -> None:
        self.gain = gain

    def __call__(self, x: float) -> float:
        return x * self.gain

    def times(self, x: float) -> float:
        return x * self.gain

    @cached_property
    def slow(self) -> float:
        return self.gain**2


class Slotted:
    __slots__ = ("gain",)

    def __init__(self, gain: float) -> None:
        self.gain = gain


@dataclass(frozen=True)
class Data:
    gain: float
    more: dict[str, float] = field(default_factory=dict)


class Named(NamedTuple):
    gain: float


@functools.cache
def remembered(x: float) -> float:
    return x * GAIN


def array(last: float, dtype: str = "f8") -> Any:
    return np.r_[np.zeros(2000), last, np.zeros(2000)].astype(dtype)


DIFFERENT: dict[str, tuple[Any, Any]] = {
    "last bit": (0.5, np.nextafter(0.5, 1.0)),
    "float and int": (1.0, 1),
    "bool and int": (True, 1),
    "sign of zero": (0.0, -0.0),
    "text and bytes": ("a", b"a"),
    "order of a list": ([1, 2], [2, 1]),
    "list and tuple": ([1], (1,)),
    "nesting": ([[1], [2]], [[1, 2], []]),
    "order of a dict": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "set": ({1, 2}, {1, 3}),
    "middle of a long array": (array(1.0), array(2.0)),
    "type of an array": (array(1.0), array(1.0, "f4")),
    "shape of an array": (np.zeros((2, 3)), np.zeros((3, 2))),
    "array of objects": (np.array([1, "a"], object), np.array([1, "b"], object)),
    "global": (plain, altered(plain, GAIN=3.0)),
    "global of a nested function": (nested, altered(nested, GAIN=3.0)),
    "global in a comprehension": (in_comprehension, altered(in_comprehension, GAIN=3.0)),
    "closure": (closing(1.0), closing(2.0)),
    "function in a closure": (closing(plain), closing(altered(plain, GAIN=3.0))),
    "array in a closure": (closing(array(1.0)), closing(array(2.0))),
    "default": (lambda x, y=1: x, lambda x, y=2: x),
    "keyword default": (lambda *, y=1: y, lambda *, y=2: y),
    "constant": (lambda x: x + 1, lambda x: x + 2),
    "operation": (lambda x: x + 1, lambda x: x - 1),
    "library function": (lambda x: 1 + math.sin(x), lambda x: 1 + math.cos(x)),
    "bound method": (Scaled(1.0).times, Scaled(2.0).times),
    "callable object": (Scaled(1.0), Scaled(2.0)),
    "slots": (Slotted(1.0), Slotted(2.0)),
    "partial": (partial(plain, 1.0), partial(plain, 2.0)),
    "function of a partial": (partial(plain), partial(altered(plain, GAIN=3.0))),
    "dataclass": (Data(1.0), Data(2.0)),
    "dict in a dataclass": (Data(1.0, {"a": 1.0}), Data(1.0, {"a": 2.0})),
    "named tuple": (Named(1.0), Named(2.0)),
    "kind": (Named(1.0), (1.0,)),
    "builtin": (len, sum),
    "bound builtin": ([1].count, [2].count),
    "ufunc": (np.exp, np.log),
    "library class": (np.float32, np.float64),
    "calling each other": (even, altered(even, odd=lambda n: True)),
    "random numbers": (np.random.default_rng(0), np.random.default_rng(1)),
}


@pytest.mark.parametrize("pair", DIFFERENT.values(), ids=DIFFERENT)
def test_a_change_is_seen(pair: tuple[Any, Any]) -> None:
    one, other = pair
    assert digest(one) == digest(one)
    assert digest(one) != digest(other)
    assert digest(closing(one)) != digest(closing(other))  # also deep inside


@pytest.mark.parametrize("function", [through_module, through_inner_module])
def test_what_a_function_takes_from_a_module_counts(
    function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = digest(function)
    monkeypatch.setitem(vars(library), "unused", 1)
    assert digest(function) == before
    monkeypatch.setitem(vars(library), "gain", 3.0)
    monkeypatch.setitem(vars(library.inner), "gain", 3.0)
    assert digest(function) != before


def test_a_module_imported_when_the_function_runs_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_gain.py").write_text("gain = 2.0\n")

    def late(x: float) -> float:
        from own_gain import gain  # type: ignore[import-not-found]

        return float(x * gain)

    before = digest(late)
    monkeypatch.setattr(sys.modules["own_gain"], "gain", 3.0)
    assert digest(late) != before


def test_the_body_of_a_class_counts() -> None:
    def made(gain: float) -> Any:
        class Policy:
            def __call__(self, x: float) -> float:
                return x * gain

            @property
            def twice(self) -> float:
                return 2.0

        return Policy()

    assert digest(made(1.0)) == digest(made(1.0)) != digest(made(2.0))


def test_what_is_only_kept_to_save_time_does_not_count() -> None:
    one = Scaled(2.0)
    before = digest(one), digest(remembered)
    assert one.slow == 4.0 and remembered(1.0) == 2.0
    assert (digest(one), digest(remembered)) == before
    problem = st.problem("three_state")
    known = digest(problem)
    assert problem.v_pi.shape == (3,) and digest(problem) == known


def test_cycles_end() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    again: list[Any] = [1]
    again.append(again)
    assert digest(loop) == digest(again) != digest([1, [1]])
    assert digest(even) != digest(odd)


def test_many_paths_to_one_value_cost_no_time() -> None:
    """A chain of pairs, each twice the one before: 2^60 paths."""
    value: Any = (1.0,)
    for _ in range(60):
        value = (value, value)
    assert digest(value) == digest(value)


UNREADABLE: dict[str, tuple[Any, str]] = {
    "lock": (closing(threading.Lock()), "the state of a lock cannot be read"),
    "generator": (closing(i for i in range(3)), "the state of a generator cannot be read"),
    "open": (lambda x: len(open(x).read()), "calls open"),  # noqa: PTH123, SIM115
    "eval": (lambda x: 1 + eval(x), "calls eval"),
    "inside": (partial(closing(threading.Event())), "the state of a lock cannot be read"),
}


@pytest.mark.parametrize("case", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_seen_through_is_refused(case: tuple[Any, str]) -> None:
    value, message = case
    with pytest.raises(UnreadableError, match=message):
        digest(value)


def test_another_process_finds_the_same() -> None:
    """Hashes of texts and places in memory differ from process to process."""
    code = "from tests.base.test_identity import DIFFERENT, digest\n" \
           "print([[digest(x) for x in pair] for pair in DIFFERENT.values()])"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert eval(done.stdout) == [[digest(x) for x in pair] for pair in DIFFERENT.values()]


def test_learners_and_problems() -> None:
    td = st.learner("td", alpha=0.1)
    others = [
        st.learner("td", alpha=0.2), st.learner("td", alpha=0.1, lam=0.5),
        st.learner("etd", alpha=0.1), st.learner("perturbed_td", alpha=0.1, eta=1),
        st.learner("perturbed_td", alpha=0.1, eta=1, penalty="outside"),
    ]  # fmt: skip
    assert len({digest(x) for x in (td, *others)}) == 6
    assert digest(td) == digest(st.learner("td:alpha=0.1"))
    given = vars(st.problem("three_state"))
    known = inspect.signature(st.Problem).parameters
    assert {*ARRAYS, *LATER, *TEXTS} == set(
        known
    )  # nothing that a problem is made from is left out
    arguments = {name: given[name] for name in (*ARRAYS, *LATER)}
    one = st.Problem(name="a", **arguments)
    assert digest(one) == digest(st.Problem(name="b", **arguments))
    for name in ("r", "w0", "interest", "start"):
        other = np.array(arguments[name], dtype=np.float64)
        other.flat[:2] = [0.25, 0.75] if name == "start" else other.flat[:2] + 0.5
        other = other / other.sum() if name == "start" else other
        assert digest(st.Problem(name="a", **{**arguments, name: other})) != digest(one), name


def test_modules_are_those_that_are_imported() -> None:
    """Late imports and modules named in `from package import module` included."""
    lanes = closure("steadytd.runs.lanes")
    for name in ("engine.schedule", "engine.rows", "mdp.moments", "mdp.problem", "streams.finite"):
        assert f"steadytd.{name}" in lanes, name
    assert "steadytd.engine.step.kernels" in closure(
        "steadytd.engine.step.compile"
    )  # a late import
    assert not [name for name in lanes if name.startswith(("steadytd.report", "steadytd.cli"))]
    assert "steadytd" not in lanes


LOADED = """
import sys, types, importlib
root = types.ModuleType("steadytd")
root.__path__ = [sys.argv[1]]
sys.modules["steadytd"] = root  # in place of the top level, which imports everything
importlib.import_module(sys.argv[2])
print(*(name for name, m in sys.modules.items() if not hasattr(m, "__path__")))
"""


@pytest.mark.parametrize(
    "name", thinned(["steadytd.evaluation.follow.engines", "steadytd.runs.lanes"], 2)
)
def test_all_modules_that_python_loads_are_in_the_list(name: str) -> None:
    root = str(Path(st.__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", LOADED, root, name], capture_output=True, text=True, check=True
    )
    loaded = {one for one in done.stdout.split() if one.startswith("steadytd.")}
    assert name in loaded and loaded <= set(closure(name))


@pytest.mark.parametrize("every", [15, pytest.param(1, marks=pytest.mark.slow)])
def test_every_module_of_the_list_counts_and_no_other(every: int) -> None:
    name = "steadytd.runs.lanes"
    before = modules(name)
    for module in sorted(closure(name))[::every]:
        with changed(module):
            assert modules(name) != before, module
    with changed("steadytd.evaluation.evaluate"):
        assert modules(name) == before
    assert modules(name) == before


def test_versions_count(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.metadata

    before = modules("steadytd.engine.step.kernels")
    with changed(), monkeypatch.context() as patch:
        patch.setattr(importlib.metadata, "version", lambda name: "0.0")
        assert modules("steadytd.engine.step.kernels") != before


def test_threads_may_ask_at_the_same_time() -> None:
    """Python's parser may not be left by one thread for another while it makes its objects.

    That happens where the garbage collector runs Python code in between; here it always does.
    """
    wrong: list[SystemError] = []
    text = source.text_of("steadytd.base.identity")

    def give_way(*_: object) -> None:
        time.sleep(1e-5)

    def ask(depth: int) -> None:
        if depth:  # it shows where threads stand at different depths
            return ask(depth - 1)
        for _ in range(15):
            try:
                source.parsed(text)
            except SystemError as error:
                wrong.append(error)
        return None

    before = gc.get_threshold()
    gc.callbacks.append(give_way)
    gc.set_threshold(20)
    try:
        threads = [threading.Thread(target=ask, args=(10 * i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(give_way)
    assert wrong == []


def test_a_text_is_read_again_where_another_thread_disturbed_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python 3.11 counts the depth of trees for all threads together, and may find it wrong."""
    faults = iter([SystemError("AST constructor recursion depth mismatch")] * 3)

    def disturbed(text: str) -> ast.Module:
        for fault in faults:
            raise fault
        return ast.parse(text)

    monkeypatch.setattr(source, "ast", SimpleNamespace(parse=disturbed))
    assert ast.unparse(source.parsed("x = 1")) == "x = 1"
