"""Streams on which SwiftTD is compared with the authors' package, and what the package gave."""

from __future__ import annotations

from typing import Any

import numpy as np

from steadytd.base.arrays import Floats

STEPS = 400
# how many features, binary or not, and the settings; in some the bound is reached often
NAMES = ("lam", "alpha", "gamma", "cut", "bound", "decay", "meta")
CASES: tuple[tuple[int, bool, tuple[float, ...]], ...] = (
    (6, True, (0.9, 0.01, 0.9, 1e-3, 0.5, 0.99, 1e-3)),
    (8, False, (0.95, 0.05, 0.95, 1e-5, 0.3, 0.9, 1e-2)),
    (5, False, (0.0, 0.05, 0.95, 1e-5, 0.3, 0.9, 1e-2)),
    (10, False, (0.8, 1e-3, 0.98, 1e-2, 1.0, 0.999, 3e-2)),
    (8, True, (0.9, 0.1, 0.9, 1e-2, 0.1, 0.99, 1e-4)),
)
LEAST = 1e-10
# the weights after all steps, as the package 0.2.2 gives them (single precision)
GIVEN: tuple[tuple[float, ...], ...] = (
    (0.498656, -0.2736965, 0.04721972, -0.2048057, 0.886538, 0.6977168),
    (-6.626255, -5.634311, -6.324026, -5.469697, -7.754527, -8.102181, -8.81359, -7.615779),
    (-0.8976192, -0.7334778, -0.30421, -2.075592, -0.2516316),
    (7.670313, 8.488227, 8.752809, -0.917366, 11.67454, 6.581977, 4.738616, 2.88565, 5.79032,
     3.694405),
    (3.656709, 4.53147, 4.707482, 2.969495, 4.13232, 3.662187, 1.902825, 4.570923),
)  # fmt: skip


def stream(case: int) -> tuple[Floats, Floats]:
    """Features [STEPS + 1, d], none negative, and the reward of every transition."""
    d, binary, _ = CASES[case]
    rng = np.random.default_rng(case)
    x = (rng.random((STEPS + 1, d)) < 0.3).astype(np.float64)
    if not binary:
        x = x * rng.random((STEPS + 1, d)).round(3)
    reward = x[:-1] @ rng.normal(size=d) + 0.1 * rng.normal(size=STEPS)
    return x, np.asarray(reward.round(4))


def by_the_package(case: int, package: Any) -> list[float]:
    """The weights that the authors' class gives."""
    d, _, settings = CASES[case]
    x, reward = stream(case)
    learner = package.SwiftTD(d, *settings, LEAST)
    for features, before in zip(x, [0.0, *reward], strict=True):
        learner.step([(k, float(v)) for k, v in enumerate(features) if v], float(before))
    return [learner.predict([(k, 1.0)]) for k in range(d)]
