"""Problems with hostile arrays are refused or right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

import steadytd as st
from tests.support.fuzz import EVERY_SIZE, HOSTILE, one_of, tried

NAMES = ("P", "r", "gamma", "mu", "pi", "Phi", "w0", "start", "interest", "active")


def drawn(rng: Generator) -> dict[str, Any]:
    S, A, d = (int(n) for n in rng.integers([1, 1, 1], [5, 4, 5]))
    return {
        "P": rng.dirichlet(np.ones(S), size=(S, A)), "r": rng.normal(size=(S, A)),
        "gamma": rng.uniform(0.0, 0.99), "mu": rng.dirichlet(np.ones(A), size=S),
        "pi": rng.dirichlet(np.ones(A), size=S), "Phi": rng.normal(size=(S, d)),
        "w0": rng.normal(size=d), "start": rng.dirichlet(np.ones(S)),
        "interest": rng.uniform(0.1, 1.0, size=S), "active": np.ones(S),
    }  # fmt: skip


def spoilt(rng: Generator, value: Any) -> Any:
    """Another value, shape, type or entry."""
    array = np.array(value, dtype=np.float64)
    kind = int(rng.integers(7))
    if kind == 1 and array.size:
        array.flat[int(rng.integers(array.size))] = one_of(rng, HOSTILE[:9])
        return array
    if kind in (2, 3):
        return array.T if kind == 2 else array[..., None]
    if kind == 4:
        return array * 10.0 ** rng.uniform(-320.0, 308.0)
    if kind == 5:
        return array.astype(one_of(rng, [str, object, complex, np.float32, bool]))
    if kind == 6 and array.ndim:
        return array[: len(array) // 2]
    return one_of(rng, HOSTILE)


def case(rng: Generator) -> None:
    given = drawn(rng)
    for name in rng.choice(NAMES, size=int(rng.integers(0, 3)), replace=False):
        with np.errstate(all="ignore"):
            given[name] = spoilt(rng, given[name])
    p = st.Problem(name="x", **given)
    assert np.isfinite(p.v_pi).all()
    assert p.d_mu.sum() == pytest.approx(1.0)
    assert np.isfinite(p.error(p.w0))


@pytest.mark.parametrize("many", EVERY_SIZE)
def test_problems(many: bool) -> None:
    tried(case, 1750, 1, many=many)
