"""Online learners on the log's stream: lanes of the engine's blocks, as in a run.

Hyper-parameters that are not given are chosen from the first rows of the log.

Learners of one law for one target share the facts of every row, so they stand in one block. Nothing
here depends on how the log is divided into batches and parts. A truncated episode bootstraps, and
then another one begins: its last row carries a discount of 0 on (`engine.facts` has the rule).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.sparse.linalg import norm

from steadytd.base.arrays import Floats, read_only
from steadytd.engine.block import Transitions
from steadytd.engine.facts import fact_table
from steadytd.engine.learner import Learner, LiveBlock
from steadytd.engine.rows import Rows, dense_rows, sparse_rows
from steadytd.engine.schedule import factors
from steadytd.evaluation.closed_form import fixed_point
from steadytd.evaluation.equations import Equations
from steadytd.evaluation.passes import Plan
from steadytd.evaluation.requests import Request
from steadytd.evaluation.rows import ENOUGH_EPISODES, Division, RowTable, joined
from steadytd.evaluation.stability import Stability, assess
from steadytd.evaluation.sums import ETD, TD
from steadytd.runs.lanes import Lane, grouped

SNAPSHOTS = 200  # of the weights over the last half of the rows, whose mean is reported
PILOT_ROWS = 20_000  # of the beginning of the log, from which hyper-parameters are chosen

Peaks = tuple[float, float]  # the least and the largest max(pi, mu)


@dataclass(frozen=True)
class Followed:
    """Where an online learner has ended for one target; `diverged` is a step, or None."""

    learner: Learner
    stream: int  # number of the reward times the number of targets, plus that of the target
    weights: Floats
    diverged: int | None


def engine_rows(rows: RowTable) -> Rows:
    """The features of a table as the engine takes them."""
    made = (sparse_rows if issparse(rows.X) else dense_rows)(rows.X)
    return Rows(*(read_only(one) for one in made))


def transitions(rows: RowTable, target: int, peaks: Peaks) -> Transitions:
    """What happens in every row for one target: step i goes from row i to row_next[i]."""
    facts = fact_table(
        reward=rows.reward, gamma_next=rows.discount,
        gamma_carried=np.where(rows.last, 0.0, rows.discount), rho=rows.rho[target],
        pi=rows.target_prob[target], mu=rows.behavior_prob,
        peak_min=peaks[0], peak_max=peaks[1],
    )  # fmt: skip
    events, row_next = np.arange(len(rows), dtype=np.int32), rows.row_next.astype(np.int32)
    return Transitions(*(read_only(one) for one in (events, row_next, facts)))


class TargetBlock:
    """Learners of one law for one target: a block, and the sums of its snapshots."""

    def __init__(self, lanes: Sequence[Lane], averaging: list[bool], d: int, rows: int) -> None:
        self.lanes, self.averaging, self.rows = lanes, averaging, rows
        self.gap = max(1, rows // (2 * SNAPSHOTS))  # rows of the log between two snapshots
        self.live = LiveBlock([lane.learner for lane in lanes], np.zeros(d))
        self.total = np.zeros((d, len(lanes)))

    def advance(self, features: Rows, transitions: Transitions) -> None:
        """Go over a table."""
        block, events = self.live.block, transitions.row
        if (block.first_divergence >= 0).all():
            return
        before, after = block.step, block.step + len(events)
        factor = read_only(factors(before, len(events), *block.learners[0].schedule))
        snapshots = self._snapshots(before, after)
        for end in dict.fromkeys([*snapshots, after]):
            part = slice(block.step - before, end - before)
            block.advance(events[part], factor[part], transitions, features)
            if end in snapshots:
                with np.errstate(over="ignore", invalid="ignore"):  # see `outcomes`
                    self.total += block.w

    def _snapshots(self, before: int, after: int) -> range:
        """The steps up to `after` at which snapshots are taken, all in the last half."""
        first = max(before, self.rows // 2) // self.gap + 1
        return range(first * self.gap, (after if any(self.averaging) else 0) + 1, self.gap)

    def outcomes(self) -> Iterator[tuple[int, Followed]]:
        """Where the lanes have ended, by their numbers.

        A learner that has diverged has no weights: NaN. So has one whose weights are finite after
        the last step, but too large for a mean.
        """
        block = self.live.block
        shown, taken = block.reported, len(self._snapshots(0, block.step))
        for j, (learner, stream, number) in enumerate(self.lanes):
            mean = taken and self.averaging[j]
            w = np.array(self.total[:, j] / taken if mean else shown[:, j])
            diverged = int(block.first_divergence[j])
            if diverged < 0 and np.isfinite(w).all():
                yield number, Followed(learner, stream, w, None)
            else:
                step = diverged if diverged >= 0 else block.step
                yield number, Followed(learner, stream, np.full_like(w, np.nan), step)

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes, by name: the block's state, its step, and the sums of snapshots."""
        return {**self.live.state, "step": np.array(self.live.block.step), "total": self.total}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over a saved state."""
        self.live.restore(state, int(state["step"]), self.lanes[0].learner.name)
        self.total[...] = state["total"]


class Followers:
    """All online learners of an evaluation, on their way through the log.

    `learners` are those of each stream (all targets with the first reward, then with the next),
    `averaging` says which report the mean of snapshots, and `peaks` are the extremes of max(pi, mu)
    for each target.
    """

    def __init__(
        self,
        learners: Sequence[Sequence[Learner]],
        averaging: Sequence[bool],
        peaks: Sequence[Peaks],
        features: int,
        rows: int,
    ) -> None:
        self.peaks, n = peaks, len(averaging)
        lanes = [
            Lane(learner, stream, stream * n + i)
            for stream, some in enumerate(learners)
            for i, learner in enumerate(some)
        ]
        self.by_stream: dict[int, list[TargetBlock]] = {}
        for some in grouped(lanes, features):
            means = [averaging[lane.number % n] for lane in some]
            block = TargetBlock(some, means, features, rows)
            self.by_stream.setdefault(some[0].policy, []).append(block)

    @property
    def blocks(self) -> Iterator[TargetBlock]:
        """Those of the first stream, then of the next."""
        return chain(*self.by_stream.values())

    def works(self, rows: RowTable, shares: int = 1) -> list[Callable[[], None]]:
        """What is to be done with a table, as works that share nothing: some streams each."""
        if not self.by_stream:
            return []
        streams, features = list(self.by_stream), engine_rows(rows)
        some = [streams[i::shares] for i in range(min(shares, len(streams)))]
        return [partial(self._advance, rows, features, one) for one in some]

    def _advance(self, rows: RowTable, features: Rows, streams: Sequence[int]) -> None:
        for stream in streams:
            reward, target = divmod(stream, len(self.peaks))
            steps = transitions(rows.of_reward(reward), target, self.peaks[target])
            for block in self.by_stream[stream]:
                block.advance(features, steps)

    def outcomes(self) -> list[Followed]:
        """Where they have ended: those of the first stream, in order, then of the next."""
        found = {number: one for block in self.blocks for number, one in block.outcomes()}
        return [found[number] for number in sorted(found)]

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes, by name."""
        states = enumerate(block.state for block in self.blocks)
        return {f"{i}.{name}": array for i, own in states for name, array in own.items()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over a saved state."""
        for i, block in enumerate(self.blocks):
            block.restore({name: state[f"{i}.{name}"] for name in block.state})


def chosen(
    tables: Iterable[RowTable], plan: Plan, online: Sequence[Request]
) -> list[list[Learner]]:
    """The online learners of every stream, with their numbers from the first rows of tables."""
    rows = first_rows(tables, PILOT_ROWS)
    if rows is None:
        return []
    rows = rows.with_features(plan.features)
    automatic = any(one.automatic for one in online)
    found: list[Stability | None] = [None] * (len(plan.targets) * plan.n_rewards)
    if automatic:
        found = [one for r in range(plan.n_rewards) for one in _stability(rows.of_reward(r), plan)]
    norms = row_norms(rows)
    result: list[list[Learner]] = [[] for _ in found]
    for stream, stability in enumerate(found):
        for one in online:
            assert one.learner is not None
            learner = with_numbers(one.learner, stability)
            if one.auto_alpha:
                target = stream % len(plan.targets)
                learner = learner.replace(alpha=safe_alpha(norms, rows, target, learner))
            result[stream].append(learner)
    return result


def _stability(rows: RowTable, plan: Plan) -> list[Stability | None]:
    """The stability of every target on the pilot's rows."""
    numbers = rows.number - rows.number[0]  # with gaps where rows were left out
    division = Division(int(numbers[-1]) + 1, bool(rows.first.sum() < ENOUGH_EPISODES))
    group = division.group(division.unit(numbers, rows.episode))
    e = Equations(replace(plan, rewards=()).new_sums(plan.features, (TD,)), "states", division)
    e.sums.add(replace(rows, group=group))
    return [assess(e, t, name, plan.seed) for t, name in enumerate(plan.targets)]


def safe_alpha(
    norms: tuple[Floats, Floats], rows: RowTable, target: int, learner: Learner
) -> float:
    """Half the inverse of the largest step that one of the pilot's rows asks for.

    A step moves w.x by about alpha rho (1 + eta) |x| max(|x|, |x - gamma' x'|) w.x; for a learner
    with a second vector by alpha ratio |x|^2 as well, and ETD multiplies by the follow-on trace F.
    The 99.9 % quantile stands for the largest.
    """
    x, moved = norms
    rho, fixed = rows.rho[target], fixed_point(learner)
    names = ("eta", "lam") if fixed is None else (fixed.penalty, fixed.decays.lam)
    eta, lam = (float(learner.values.get(name, 0.0)) for name in names)
    if "F" in learner.law.memory or (fixed and fixed.system.emphatic):
        rho = ETD.weights(rho, rows.gamma, np.zeros(2))
    steps = rho * x * np.maximum((1.0 + eta) * x, moved)
    steps = steps / max(1.0 - lam * float(rows.discount.max(initial=0.0)), 0.05)
    if "ratio" in learner.values and len(learner.law.vectors) > 1:
        steps = np.maximum(steps, float(learner.values["ratio"]) * x**2)
    largest = float(np.quantile(steps, 0.999))
    return float(f"{0.5 / largest:.2g}") if largest > 0.0 else 1.0


def row_norms(rows: RowTable) -> tuple[Floats, Floats]:
    """|x| and |x - gamma' x'| of every row."""
    x, x_next, by = rows.X[: len(rows)], rows.X[rows.row_next], rows.discount[:, None]
    if issparse(rows.X):
        return np.asarray(norm(x, axis=1)), np.asarray(norm(x - x_next.multiply(by), axis=1))
    return np.linalg.norm(x, axis=1), np.linalg.norm(x - by * x_next, axis=1)


def with_numbers(learner: Learner, found: Stability | None) -> Learner:
    """The learner with its automatic numbers as the data ask for."""
    if found is None:
        return learner
    equations = fixed_point(learner)
    penalty = equations.penalty if equations is not None else ""
    numbers = {"eta": found.eta, "ratio": found.ratio, penalty: found.eta}
    return learner.replace(**{name: numbers[name] for name in learner.automatic})


def first_rows(tables: Iterable[RowTable], n: int) -> RowTable | None:
    """The first n rows of tables as one, however they are divided; None if there are none."""
    found: list[RowTable] = []
    for table in tables:
        found.append(table)
        if sum(map(len, found)) >= n:
            break
    return joined(found, np.arange(min(n, sum(map(len, found))))) if found else None
