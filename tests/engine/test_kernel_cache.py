"""Compiled kernels on disk, found again by the next process, never stale; and their driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.engine.block import Block
from steadytd.engine.law import Law
from steadytd.engine.step import driver
from steadytd.engine.step.compile import kernel
from tests.support.cases import RandomStream

GAIN = 0.5


def helper(number: float, gain: float = 2.0) -> float:
    return number * gain


def with_global(reward: float, alpha: float) -> float:
    return alpha * reward * GAIN


def with_helper(reward: float, alpha: float) -> float:
    return helper(alpha * reward)


def with_closure(gain: float) -> Callable[..., float]:
    def update(reward: float, alpha: float) -> float:
        return alpha * reward * gain

    return update


def law_of(function: Callable[..., float]) -> Law:
    return st.law(writes={"w": "x"}, name="own")(function)


def place(function: Callable[..., float]) -> str:
    """The name under which a kernel is kept: different names cannot be mistaken."""
    return str(kernel(law_of(function), False).enter.__module__)


def one_step(function: Callable[..., float]) -> Floats:
    """The weights after a step from zero with alpha = 1, reward 8 and the features (1, 0)."""
    online = st.learner(law_of(function), alpha=1.0).start(2)
    online.update([1.0, 0.0], 8.0, [0.0, 1.0], gamma=0.9)
    return online.w


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "kernels"
    monkeypatch.setenv("STEADYTD_CACHE_DIR", str(directory))
    return directory


def altered(function: Any, **changes: Any) -> Any:
    """The function with other globals, everything else the same."""
    copy = FunctionType(
        function.__code__,
        {**function.__globals__, **changes},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__module__ = function.__module__
    return copy


def test_the_same_function_has_the_same_place() -> None:
    for function in (with_global, with_helper, with_closure(1)):
        assert place(function) == place(altered(function))
    assert place(with_closure(1.0)) == place(with_closure(1.0))


def test_another_path_or_law_has_another_place() -> None:
    td, etd = (st.learner(name, alpha=1).law for name in ("td", "etd"))
    assert (
        len({kernel(x, traced).enter.__module__ for x in (td, etd) for traced in (False, True)})
        == 4
    )


def test_whatever_a_law_uses_counts() -> None:
    """The rest is in base/test_identity.py."""
    assert place(with_global) != place(altered(with_global, GAIN=np.nextafter(0.5, 1.0)))
    assert place(with_helper) != place(altered(with_helper, helper=lambda number: number))


def test_another_closure_is_another_kernel() -> None:
    assert place(with_closure(0.5)) != place(with_closure(0.25))
    assert one_step(with_closure(0.5)).tolist() == [4.0, 0.0]
    assert one_step(with_closure(0.25)).tolist() == [2.0, 0.0]


def test_an_unwritable_directory_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file where the directory should be: not even root can write below it."""
    obstacle = tmp_path / "file"
    obstacle.write_text("in the way")
    monkeypatch.setenv("STEADYTD_CACHE_DIR", str(obstacle / "kernels"))
    assert one_step(with_global).tolist() == [4.0, 0.0]
    assert obstacle.read_text() == "in the way"


def test_a_law_without_a_module_runs() -> None:
    """As in an interactive session of some tools: compiled, but not kept."""
    scope: dict[str, Any] = {"__name__": "nowhere_to_be_found"}
    exec("def update(reward, alpha):\n    return alpha * reward\n", scope)
    assert one_step(scope["update"]).tolist() == [8.0, 0.0]


def advanced(text: str, events_of: type = np.int32) -> None:
    """Some steps of a learner."""
    stream = RandomStream(seed=3, steps=300)
    block = Block([st.learner(text)], stream.w0)
    events: Any = stream.events.astype(events_of)
    block.advance(events, np.ones(300), stream.transitions, stream.rows)


def test_a_new_law_does_not_compile_the_driver_again() -> None:
    advanced("td:alpha=0.01")
    before = len(driver.run.signatures)  # type: ignore[attr-defined]
    advanced("tdc:alpha=0.01,ratio=1")
    assert len(driver.run.signatures) == before  # type: ignore[attr-defined]


def test_machine_code_is_entered_with_its_own_types_only() -> None:
    """Another type of array would be read as something that it is not."""
    with pytest.raises(Exception, match=r"AssertionError|Tuple"):
        advanced("td:alpha=0.01", np.int64)


PROCESS = """
import json
import steadytd as st
from steadytd.engine.block import Block

learner = st.learner("td", alpha=0.01)
found = st.run("three_state", learner, steps=20, points=3)
stats = Block([learner], found.problem.w0).kernel.enter.stats
print(json.dumps({
    "weights": found.final_weights.tolist(),
    "hits": sum(stats.cache_hits.values()),
    "misses": sum(stats.cache_misses.values()),
}))
"""


@pytest.mark.slow  # another one, of a smaller function, is in base/test_jit.py
def test_the_next_process_compiles_nothing(own_cache: Path) -> None:
    def process() -> tuple[dict[str, Any], dict[str, int]]:
        done = subprocess.run(
            [sys.executable, "-c", PROCESS],
            env={**os.environ, "STEADYTD_CACHE_DIR": str(own_cache)},
            capture_output=True,
            text=True,
            check=True,
        )
        files = {str(p): p.stat().st_mtime_ns for p in own_cache.rglob("*") if p.is_file()}
        return json.loads(done.stdout), files

    first, files = process()
    assert (first["hits"], first["misses"]) == (0, 1)
    assert any(name.endswith(".nbc") for name in files)
    second, files_after = process()
    assert (second["hits"], second["misses"]) == (1, 0)
    assert second["weights"] == first["weights"]
    assert files_after == files
