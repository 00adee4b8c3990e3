"""The switches of `make test-portable` do what they say."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tests.support.portable import core_types, jittered, require_core_type


def test_jitter_moves_results_a_little_and_always_alike() -> None:
    A = np.diag([0.0, 1.0, 2.0])
    moved = jittered("eigvals", np.linalg.eigvals, 1)(A)
    assert 0.0 < abs(moved[0]) <= 2e-15 and moved == pytest.approx([0, 1, 2], abs=2e-15)
    solve = jittered("solve", np.linalg.solve, 1)
    b = np.arange(1.0, 4.0)
    found = solve(np.eye(3), b)
    assert found.tolist() != b.tolist() and found == pytest.approx(b, rel=2e-15)
    assert found.tolist() == solve(np.eye(3), b).tolist()
    assert jittered("lstsq", np.linalg.lstsq, 1)(np.eye(3), b, rcond=None)[2] == 3  # a count


def test_a_core_type_that_openblas_does_not_have_is_noticed() -> None:
    if not core_types():
        pytest.skip("these NumPy and SciPy work without OpenBLAS")
    with pytest.raises(SystemExit, match="has no effect: OpenBLAS works for"):
        require_core_type("Elbrus")
    one = "from tests.support import portable; portable.prepare()"
    subprocess.run(
        [sys.executable, "-c", one], env={"OPENBLAS_CORETYPE": "Nehalem"}, check=True, timeout=60
    )
