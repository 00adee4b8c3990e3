"""What the tests of the evaluation share: features as they are, and slow sums in plain Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from steadytd.base.arrays import Floats
from steadytd.evaluation.estimators import GRID, Drl, Estimator
from steadytd.evaluation.evidence import Evidence
from steadytd.evaluation.follow import engines
from steadytd.evaluation.follow.engines import LocalPasses, Work
from steadytd.evaluation.passes import Plan, first_pass
from steadytd.evaluation.rows import ENOUGH_EPISODES, Division, Where
from steadytd.evaluation.second_pass import begun, gather
from steadytd.evaluation.sums import TD, System
from steadytd.features.base import ArrayMap
from steadytd.logs.log import Log, LogBatch


class Identity(ArrayMap):
    """The observations themselves: for logs whose observations are a problem's features."""

    kind: ClassVar[str] = "identity"
    form: ClassVar[str] = "identity"
    arrays: ClassVar[Mapping[str, str]] = {"size": "k"}

    def _learn(self, sample: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return {"size": np.zeros(sample.shape[1])}

    def _size(self, state: Mapping[str, NDArray[Any]]) -> int:
        return len(state["size"])

    def _apply(self, obs: NDArray[Any], out: Floats) -> None:
        out[:] = obs


def plan_of(log: Log, features: Any = None, **options: Any) -> Plan:
    """A plan for all rows of a log; without `features` they are the observations."""
    rows = list(episodes_of(log))
    division = Division(log.rows or 0, len(rows) < ENOUGH_EPISODES)
    made = Identity().fit(np.zeros((1, log.n_obs))) if features is None else features
    return Plan(tuple(log.targets), made, options.pop("division", division), **options)


def evidence_of(
    log: Log,
    features: Any = None,
    *,
    estimators: tuple[Estimator, ...] = (),
    where: Where = "start",
    systems: tuple[System, ...] = (TD,),
    lams: tuple[float, ...] = GRID,
    parts: int = 1,
    **options: Any,
) -> Evidence:
    """What both passes find in a log, on one thread."""
    plan = plan_of(log, features, where=where, systems=systems, lams=lams, **options)
    passes = LocalPasses(Work(log.parts(parts) if parts > 1 else [log], plan, []), threads=1)
    passes.run()
    [found] = begun(plan, passes.first)
    gather([found], [[[Drl(1.0), *estimators]] * len(plan.targets)], passes.sweep)
    return found


class Step:
    """One transition in plain numbers."""

    def __init__(self, batch: LogBatch, i: int) -> None:
        assert batch.behavior_prob is not None
        self.x = np.asarray(batch.obs[i], dtype=np.float64)
        self.x_next = np.asarray(batch.obs[batch.row_next[i]], dtype=np.float64)
        self.reward, self.discount = float(batch.reward[i]), float(batch.discount[i])
        self.mu = float(batch.behavior_prob[i])
        self.pi = batch.target_prob[:, i]
        self.rho = batch.target_prob[:, i] / batch.behavior_prob[i]
        self.first, self.number = bool(batch.first[i]), int(batch.rows[i])
        moved = self.x - self.discount * self.x_next
        self.v = np.concatenate([moved, [self.reward, 1.0 - self.discount]])


def episodes_of(log: Log) -> list[list[Step]]:
    """The transitions of a log, episode by episode."""
    found: list[list[Step]] = []
    for batch in log.batches():
        for i in range(len(batch)):
            step = Step(batch, i)
            if step.first:
                found.append([])
            found[-1].append(step)
    return found


def slow_system(episodes: list[list[Step]], target: int, system: System) -> Floats:
    """Sums of z (x - gamma' x')', r z and (1 - gamma') z, one transition after the other."""
    d = len(episodes[0][0].x)
    total = np.zeros((d, d + 2))
    for episode in episodes:
        z, F, rho_before, gamma = np.zeros(d), 0.0, 0.0, 0.0
        for step in episode:
            rho = float(step.rho[target])
            decay = gamma if system.beta is None else system.beta * (gamma > 0.0)
            F = decay * rho_before * F + 1.0
            M = system.lam + (1.0 - system.lam) * F if system.emphatic else 1.0
            z = rho * (gamma * system.lam * z + M * step.x)
            total += np.outer(z, step.v)
            rho_before, gamma = rho, step.discount
    return total


def counted_parts(patch: pytest.MonkeyPatch) -> list[Any]:
    """The parts of logs whose sums are computed from now on."""
    read: list[Any] = []

    def counted(part: Any, *rest: Any, **options: Any) -> Any:
        read.append(part)
        return first_pass(part, *rest, **options)

    patch.setattr(engines, "first_pass", counted)
    return read
