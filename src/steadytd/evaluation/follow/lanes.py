"""The usual online learners at lam = 0 for all targets at once.

In the general engine a block of lanes shares the ratio rho, so every target would be a block of one
lane, and one lane is slow: its inner products are chains of additions. Here a lane is a learner for
one target, and eight lanes stand side by side in one vector. Many laws are one update,

    w += alpha m (r + gamma' w.x' - (1 + eta) w.x) x,      m = rho, or rho F,

with m from the pass that makes the sums; others have a second vector, as TDC has. Which of them a
law is, if any, is seen by following it for a few steps. Tests hold the lanes against the engine;
they differ by rounding, since inner products are added up in another order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, Ints, Longs, on_cache_line
from steadytd.base.jit import compiled_disjoint, inner_disjoint
from steadytd.engine.facts import fact_table, named
from steadytd.engine.learner import Learner
from steadytd.engine.reference import ReferenceLearner
from steadytd.engine.step.vectors import LANES, eight, put, same, spread
from steadytd.evaluation.collect.plan import TD, System
from steadytd.evaluation.estimate.closed_form import own_numbers, with_trial_numbers

TRIAL_STEPS, TRIAL_FEATURES = 40, 3
AHEAD = 32  # rows whose multiples are put side by side at a time
SAME = 1e-9  # relative difference up to which two ways to follow a learner are the same


class Shape(NamedTuple):
    """Which of the two updates a learner is, and its parameter that is eta or the ratio."""

    corrected: bool
    param: str = ""  # "": eta = 0

    def number(self, learner: Learner) -> float:
        """1 + eta, or the ratio of a learner with a correction."""
        value = float(learner.values[self.param]) if self.param else 0.0
        return value if self.corrected else 1.0 + value


@lru_cache(maxsize=4096)
def lane_shape(learner: Learner, system: System | None) -> Shape | None:
    """How a learner is a lane; None for those that the general engine has to follow.

    `system` is that of its fixed point, whose weights of rows are m.
    """
    constant = not learner.averaged and learner.schedule[0] == 0.0
    traced = learner.traced or (system or TD).lam != 0.0
    if learner.law.block is not None or traced or not constant:
        return None
    tried = with_trial_numbers(learner).replace(alpha=1e-3)
    names = list(own_numbers(tried))
    shapes = [Shape(False), *(Shape(False, n) for n in names), *(Shape(True, n) for n in names)]
    try:
        wanted = _followed(tried)
    except (ArithmeticError, TypeError, ValueError):  # in plain Python; compiled it may work
        return None
    for shape in shapes:
        apart = np.abs(_as_lane(shape, shape.number(tried), system or TD) - wanted).max(axis=1)
        if (apart <= SAME * np.abs(wanted).max(axis=1)).all():
            return shape
    return None


class _Step(NamedTuple):
    """One transition of the trial."""

    x: Floats
    x_next: Floats
    facts: dict[str, float]


def _trial() -> Iterator[_Step]:
    """A few transitions, with ends of episodes, ratios of 0 and ratios up to 1000."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(TRIAL_STEPS + 1, TRIAL_FEATURES))
    for t in range(TRIAL_STEPS):
        mu = 10.0 ** rng.uniform(-3.0, 0.0)
        pi = rng.random() * (t % 5 != 3)
        (facts,) = fact_table(
            reward=rng.normal(), gamma_next=rng.uniform(0.5, 1.0) * (t % 7 != 6),
            rho=pi / mu, pi=pi, mu=mu, peak_min=0.3, peak_max=0.9,
        )  # fmt: skip
        yield _Step(X[t], X[t + 1], named(facts))


def _followed(learner: Learner) -> Floats:
    """The weights after every step of the trial, by the law itself."""
    running, found = ReferenceLearner(learner, np.ones(TRIAL_FEATURES)), []
    for step in _trial():
        running.update(*step)
        found.append(running.vectors["w"])
    return np.array(found)


def _as_lane(shape: Shape, number: float, system: System) -> Floats:
    """The same by the update of a lane."""
    w, h, alpha, found = np.ones(TRIAL_FEATURES), np.zeros(TRIAL_FEATURES), 1e-3, []
    F = rho_before = gamma = 0.0
    for x, x_next, facts in _trial():
        rho, reward, gamma_next = facts["rho"], facts["reward"], facts["gamma_next"]
        decay = gamma if system.beta is None else system.beta * (gamma > 0.0)
        F = decay * rho_before * F + 1.0
        m = rho * F if system.emphatic else rho
        if shape.corrected:
            delta, h_x = m * (reward + gamma_next * w @ x_next - w @ x), h @ x
            w = w + alpha * (delta * x - m * gamma_next * h_x * x_next)
            h = h + number * alpha * (delta - h_x) * x
        else:
            w = w + alpha * m * (reward + gamma_next * w @ x_next - number * w @ x) * x
        found.append(w)
        rho_before, gamma = rho, gamma_next
    return np.array(found)


class LaneRows(NamedTuple):
    """The rows lo..hi of a batch with features X, and the multiples of all lanes."""

    lo: int
    hi: int
    X: Floats
    row_next: Ints
    discount: Floats
    reward: Floats
    weight: Floats  # [n, columns]


class Looks(NamedTuple):
    """When weights are looked at: every `gap` rows of the log; from `begin` rows on they are kept.

    `before` is the number of rows before this batch.
    """

    gap: int
    begin: int
    before: int


class Flat(NamedTuple):
    """The memory of eight lanes, W, H and the sum of snapshots as vectors."""

    alpha: Floats
    penalty: Floats  # 1 + eta
    ratio: Floats  # 0: without a correction, H stays 0
    column: Longs  # where a lane's multiples stand among the rows' weights
    W: Floats
    H: Floats
    total: Floats


class Lanes:
    """At most eight lanes: their weights W [d, 8], for those with a correction also H.

    Lanes without a learner have alpha = 0.
    """

    def __init__(self, lanes: Sequence[tuple[Learner, Shape, int]], d: int) -> None:
        """A lane is a learner, its shape, and the column of its multiples."""
        self.corrected = any(shape.corrected for _, shape, _ in lanes)
        self.W, self.H, self.total = (on_cache_line((d, LANES)) for _ in range(3))
        self.diverged = np.full(LANES, -1, dtype=np.int64)  # after so many rows
        self.alpha, self.ratio = on_cache_line((LANES,)), on_cache_line((LANES,))
        self.penalty, self.column = on_cache_line((LANES,)), np.zeros(LANES, dtype=np.int64)
        self.penalty[:] = 1.0
        for j, (learner, shape, column) in enumerate(lanes):
            self.alpha[j], self.column[j] = float(learner.values["alpha"]), column
            (self.ratio if shape.corrected else self.penalty)[j] = shape.number(learner)

    def _flat(self) -> Flat:
        memory = (a.reshape(-1) for a in (self.W, self.H, self.total))
        return Flat(self.alpha, self.penalty, self.ratio, self.column, *memory)

    def advance(self, rows: LaneRows, looks: Looks) -> None:
        """Take some rows of a batch; snapshots of the weights are added to `total` on the way."""
        advance(rows, looks, self.corrected, self._flat(), self.diverged)

    def stop_diverged(self, step: int) -> None:
        """Lanes whose weights are not finite stay at 0 from now on."""
        stop(step, self._flat(), self.diverged)


@compiled_disjoint
def advance(rows: LaneRows, looks: Looks, corrected: bool, lanes: Flat, diverged: Longs) -> None:
    """Rows lo..hi, in stretches that end where the weights are looked at."""
    lo = rows.lo
    while lo < rows.hi:
        hi = min(rows.hi, lo + looks.gap - (looks.before + lo) % looks.gap)
        stretch = LaneRows(
            lo, hi, rows.X, rows.row_next, rows.discount, rows.reward, rows.weight
        )  # fmt: skip
        if corrected:
            with_correction(stretch, lanes)
        else:
            weighted(stretch, lanes)
        taken = looks.before + hi
        if taken % looks.gap == 0:
            stop(taken, lanes, diverged)
            if taken >= looks.begin:
                for k in range(len(lanes.W)):
                    lanes.total[k] += lanes.W[k]
        lo = hi


@inner_disjoint
def stop(taken: int, lanes: Flat, diverged: Longs) -> None:
    """Lanes whose weights are not finite stay at 0 from now on."""
    for k in range(len(lanes.W)):
        if not np.isfinite(lanes.W[k]):
            j = k % LANES
            diverged[j], lanes.alpha[j] = taken, 0.0
            for i in range(j, len(lanes.W), LANES):
                lanes.W[i] = lanes.H[i] = 0.0


@inner_disjoint
def weighted(rows: LaneRows, lanes: Flat) -> None:
    """w += alpha m (r + gamma' w.x' - penalty w.x) x."""
    lo, hi, X, row_next, discount, reward, weight = rows
    W, column, m, x, d = lanes.W, lanes.column, np.zeros(AHEAD * LANES), X.reshape(-1), X.shape[1]
    a, p = eight(lanes.alpha, 0), eight(lanes.penalty, 0)
    for i in range(lo, hi):
        if (i - lo) % AHEAD == 0:
            gather(i, min(i + AHEAD, hi), weight, column, m)
        at, after = d * i, d * np.int64(row_next[i])
        w_x, w_next, v_x, v_next = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
        for k in range(0, d - 1, 2):  # two sums each: additions to one wait for each other
            w, v = eight(W, LANES * k), eight(W, LANES * k + LANES)
            w_x, v_x = w_x + w * same(x, at + k), v_x + v * same(x, at + k + 1)
            w_next = w_next + w * same(x, after + k)
            v_next = v_next + v * same(x, after + k + 1)
        if d % 2:
            w = eight(W, LANES * (d - 1))
            w_x, w_next = w_x + w * same(x, at + d - 1), w_next + w * same(x, after + d - 1)
        ahead = same(reward, i) + same(discount, i) * (w_next + v_next)
        by = a * eight(m, (i - lo) % AHEAD * LANES) * (ahead - p * (w_x + v_x))
        for k in range(d):
            put(W, LANES * k, eight(W, LANES * k) + by * same(x, at + k))


@inner_disjoint
def with_correction(rows: LaneRows, lanes: Flat) -> None:
    """w += alpha (delta x - m gamma' (h.x) x'); h += ratio alpha (delta - h.x) x.

    delta = m (r + gamma' w.x' - penalty w.x). With a ratio of 0 that is `weighted`.
    """
    lo, hi, X, row_next, discount, reward, weight = rows
    W, H, column, d = lanes.W, lanes.H, lanes.column, X.shape[1]
    m, x = np.zeros(AHEAD * LANES), X.reshape(-1)
    a, p = eight(lanes.alpha, 0), eight(lanes.penalty, 0)
    q = a * eight(lanes.ratio, 0)
    for i in range(lo, hi):
        if (i - lo) % AHEAD == 0:
            gather(i, min(i + AHEAD, hi), weight, column, m)
        at, after = d * i, d * np.int64(row_next[i])
        w_x, w_next, v_x, v_next = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
        h_x, g_x = spread(0.0), spread(0.0)
        for k in range(0, d - 1, 2):  # two sums each: additions to one wait for each other
            w, v = eight(W, LANES * k), eight(W, LANES * k + LANES)
            x0, x1 = same(x, at + k), same(x, at + k + 1)
            w_x, v_x = w_x + w * x0, v_x + v * x1
            h_x, g_x = h_x + eight(H, LANES * k) * x0, g_x + eight(H, LANES * k + LANES) * x1
            w_next = w_next + w * same(x, after + k)
            v_next = v_next + v * same(x, after + k + 1)
        if d % 2:
            w, x0 = eight(W, LANES * (d - 1)), same(x, at + d - 1)
            w_x, w_next = w_x + w * x0, w_next + w * same(x, after + d - 1)
            h_x = h_x + eight(H, LANES * (d - 1)) * x0
        rho, g, h_x = eight(m, (i - lo) % AHEAD * LANES), same(discount, i), h_x + g_x
        delta = rho * (same(reward, i) + g * (w_next + v_next) - p * (w_x + v_x))
        by, by_next, by_h = a * delta, a * rho * g * h_x, q * (delta - h_x)
        for k in range(d):
            x0, w = same(x, at + k), eight(W, LANES * k)
            put(W, LANES * k, w + by * x0 - by_next * same(x, after + k))
            put(H, LANES * k, eight(H, LANES * k) + by_h * x0)


@inner_disjoint
def gather(lo: int, hi: int, weight: Floats, column: Longs, m: Floats) -> None:
    """The multiples of some rows, side by side: well ahead, since eight numbers wait for eight."""
    for i in range(lo, hi):
        for j in range(LANES):
            m[(i - lo) * LANES + j] = weight[i, column[j]]
