"""The sums over weighted features and traces, for few features: eight weights at a time.

A product of matrices as long and thin as here is slow in BLAS, which first copies them. This one
goes down the rows chunk by chunk. The traces of four features are made in registers for eight
weights (targets and systems) at a time, and written to a memory that stays in the first cache;
there they meet the columns of (x - gamma' x', r, 1 - gamma'), four to six at a time, whose sums
are in registers too. So nearly all the time the processor multiplies and adds. The loops take
arrays, not the tuples that hold them: Numba counts references to what it takes out of a tuple.

What needs no weight goes the same way: features meet those columns and each other eight at a time.
Features that are left over stand in an eight together with the behaviour's products (ratios of 1)
and with a 1 that makes the sums of x. Where a feature is 1 everywhere, 1 - gamma' is a column
already.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple, Protocol

import numpy as np

from steadytd.base.arrays import LANES, ZERO, Floats, Longs, on_cache_line
from steadytd.base.jit import compiled_disjoint
from steadytd.evaluation.collect.loops.tiles import Across, Eightfold, multiply, tiled
from steadytd.evaluation.collect.loops.traces import (
    CHUNK,
    DEEP,
    LONG,
    Here,
    bound,
    fill,
    product,
    put_beside,
    stopped,
    trace,
    without_ratio,
)
from steadytd.evaluation.collect.plan import Plan
from steadytd.evaluation.collect.scan import LARGEST, Weighted


def up(n: int, step: int) -> int:
    """The next multiple of `step`.

    >>> up(17, 8), up(16, 8)
    (24, 16)
    """
    return -(-n // step) * step


class Totals(Protocol):
    """The sums of a block over features; see `statistics.Statistics`."""

    systems: Floats  # of z (x - gamma' x', r)'
    mass: Floats  # of z (1 - gamma')
    behavior: Floats
    weighted: Floats  # of c v', where v = (x - gamma' x', r, 1 - gamma')
    G: Floats  # of x x'
    x: Floats


class Eights(NamedTuple):
    """Which eights a share of the sums has."""

    begin: int  # the first weight,
    end: int  # and that beyond the last, both multiples of 8
    lam: Floats  # of every weight's system
    decay: Floats  # lam of each of eight products of ratios, one eight after the other
    ratio: Longs  # where the ratios of each eight stand in a row,
    packed: bool  # of weights, or else of ratios
    full: int  # features in eights that are full
    of_x: int  # columns of x
    plain: Floats  # lam of the behaviour's products, one after the other,
    lams: int  # of which so many are meant,
    beside: Longs  # and the features beside them; d: a 1


class Memory(NamedTuple):
    """What a chunk is made in, the traces of the row before it, and the sums."""

    V: Floats  # [CHUNK, across]: x - gamma' x', r, 1 - gamma', 0 ...
    Z: Floats  # [CHUNK, wide]: x, 0 ...
    U: Floats  # [DEEP, CHUNK, 8]: traces of some features, or products of ratios
    state: Floats  # [groups, features up to a multiple of DEEP, 8], then those of products [., 8]
    C: Floats  # [groups * d + eights of products + plain eights, across, 8]: sums of U V'
    S: Floats  # [eights of features + plain eights, across + of_x, 8]: sums of x V' and x x'


class Duty(NamedTuple):
    """The groups of eight weights of a share, and whether it has products, and what is plain."""

    groups: range
    products: bool
    plain: bool

    def weights(self, plan: Plan) -> Longs:
        """The weights that are meant: the last eight may have fewer."""
        return np.arange(self.groups.start * LANES, min(self.groups.stop * LANES, plan.columns - 1))


class Share(NamedTuple):
    """A part of the sums, which shares no memory with others: a thread of its own may make it."""

    duty: Duty
    eights: Eights
    memory: Memory

    @staticmethod
    def of(plan: Plan, duty: Duty) -> Share:
        """The sums of a part."""
        d, T, lams = plan.features, len(plan.targets), np.array(plan.lams)
        lam = np.zeros(up(plan.columns - 1, LANES))
        lam[: plan.columns - 1] = np.repeat([s.lam for s in plan.systems], T)
        decay, ratio = _products(plan) if duty.products else (np.empty(0), np.empty(0, np.int64))
        full = d - d % LANES if duty.plain else 0
        beside = np.arange(full, d + 1) if duty.plain else np.empty(0, np.int64)
        plain = up(len(lams) + len(beside), LANES) if duty.plain else 0
        across, of_x, groups = across_of(plan), tiled(d), len(duty.groups)
        eights = groups * d + (len(decay) + plain) // LANES
        memory = Memory(
            V=on_cache_line((CHUNK, across)),
            Z=on_cache_line((CHUNK, max(of_x, up(d, DEEP)))),
            U=on_cache_line((DEEP * LONG,)),
            state=on_cache_line((len(lam) * up(d, DEEP) + len(decay) + plain,)),
            C=on_cache_line((eights * across * LANES,)),
            S=on_cache_line(((full // LANES * (across + of_x) + plain // LANES * of_x) * LANES,)),
        )
        lanes = np.zeros(plain)
        lanes[: len(lams) if duty.plain else 0] = lams if duty.plain else 0.0
        begin, end = duty.groups.start * LANES, duty.groups.stop * LANES
        kinds = Eights(begin, end, lam, decay, ratio, packed(plan), full, of_x, lanes, len(lams),
                       beside)  # fmt: skip
        return Share(duty, kinds, memory)

    def add(self, lo: int, hi: int, rows: Weighted, plan: Plan, to: Totals) -> None:
        """Add the sums over rows lo..hi, which follow those of the last call."""
        self.memory.C[:] = self.memory.S[:] = 0.0
        add(lo, hi, rows, self.eights, self.memory)
        n, weights = plan.features + 1, self.duty.weights(plan)
        if len(weights):
            k, t = np.divmod(weights, len(plan.targets))
            traced = self._traced(plan)[: len(weights)]
            to.systems[t, k] += traced[..., :n]
            to.mass[t, k] += traced[..., n]
        if self.duty.products:
            to.weighted[:-1] += self._products(plan)
        if self.duty.plain:
            own, along, G, x = self._plain(plan)
            to.behavior += own[:, :n]
            to.weighted[-1] += along
            to.G += G
            to.x += x

    @property
    def _sums(self) -> Floats:
        """Sums of U V' [eights, across, 8]."""
        return self.memory.C.reshape(-1, self.memory.V.shape[1], LANES)

    def _traced(self, plan: Plan) -> Floats:
        """Sums of z v' [weights, d, d + 2]."""
        d, groups = plan.features, len(self.duty.groups)
        found = self._sums[: groups * d].reshape(groups, d, -1, LANES).transpose(0, 3, 1, 2)
        return whole(found, plan).reshape(-1, d, d + 2)

    def _products(self, plan: Plan) -> Floats:
        """Sums of c v' of all targets [targets, lams, d + 2]."""
        T, L, n = len(plan.targets), len(plan.lams), plan.features + 2
        begin, each = len(self.duty.groups) * plan.features, T if packed(plan) else up(T, LANES)
        found = self._sums[begin : begin + len(self.eights.ratio)].swapaxes(1, 2)
        by_lam = whole(found, plan).reshape(-1, n)[: L * each].reshape(L, each, n)
        return by_lam[:, :T].swapaxes(0, 1)

    def _plain(self, plan: Plan) -> tuple[Floats, Floats, Floats, Floats]:
        """Sums of x v' [d, d + 2], the behaviour's of c v' [lams, d + 2], of x x' and of x."""
        d, L, of_x, full = plan.features, len(plan.lams), self.eights.of_x, self.eights.full
        across, S = self.memory.V.shape[1], self.memory.S.reshape(-1, LANES)
        lanes = len(self.eights.plain)
        last = len(S) - lanes // LANES * of_x
        by_eights = S[:last].reshape(-1, across + of_x, LANES).swapaxes(1, 2)
        upper = by_eights.reshape(full, across + of_x)
        rest = S[last:].reshape(-1, of_x, LANES).swapaxes(1, 2).reshape(lanes, of_x)[:, :d]
        plain = whole(self._sums[-(lanes // LANES) :].swapaxes(1, 2), plan).reshape(lanes, -1)
        G = np.empty((d, d))
        for k in range(0, full, LANES):
            G[k : k + LANES, k:] = upper[k : k + LANES, across : across + d - k]
            G[k:, k : k + LANES] = G[k : k + LANES, k:].T
        G[full:] = rest[L : L + d - full]
        own = np.concatenate([whole(upper[:, :across], plan), plain[L : L + d - full]])
        return own, plain[:L], G, rest[L + d - full].copy()


def whole(sums: Floats, plan: Plan) -> Floats:
    """A copy of the sums with v [..., across], with all d + 2 columns of v."""
    found: Floats = sums[..., : plan.features + 2].copy()
    if plan.constant is not None:
        last = sums[..., plan.constant, None]
        found = np.concatenate([sums[..., : plan.features + 1], last], axis=-1)
    return found


def packed(plan: Plan) -> bool:
    """Whether the first weights are the ratios of all targets, once for every lam."""
    first = plan.systems[: len(plan.lams)]
    return len(first) == len(plan.lams) and not any(system.emphatic for system in first)


def across_of(plan: Plan) -> int:
    """Columns that meet the traces: x - gamma' x', r, and 1 - gamma' if no feature is 1."""
    return tiled(plan.features + 1 + (plan.constant is None))


def _products(plan: Plan) -> tuple[Floats, Longs]:
    """lam of every lane of the products of ratios, and where each eight of them begins."""
    T, lams = len(plan.targets), np.array(plan.lams)
    if packed(plan):
        decay = np.zeros(up(T * len(lams), LANES))
        decay[: T * len(lams)] = np.repeat(lams, T)
        return decay, np.arange(0, len(decay), LANES)
    return np.repeat(lams, up(T, LANES)), np.tile(np.arange(0, T, LANES), len(lams))


def shares(plan: Plan, number: int) -> list[Share]:
    """All sums in so many shares, or fewer: each number is of one share only.

    So their number changes no bit. The behaviour's weights are 1: its sums are made beside G,
    without a trace, in the first share.
    """
    groups = up(plan.columns - 1, LANES) // LANES
    number = max(min(number, groups), 1)
    ends = [groups * i // number for i in range(number + 1)]
    return [
        Share.of(plan, Duty(range(lo, hi), hi == groups, lo == 0))
        for lo, hi in itertools.pairwise(ends)
    ]


@compiled_disjoint
def add(lo: int, hi: int, rows: Weighted, eights: Eights, memory: Memory) -> None:
    """C += sum_i U[i] V[i] over rows lo..hi for all traces; S += sum_i x V' and x x'."""
    d, across, wide = rows.X.shape[1], memory.V.shape[1], memory.Z.shape[1]
    V, Z, U, state = memory.V.reshape(-1), memory.Z.reshape(-1), memory.U, memory.state
    C, S, each, deep = memory.C, memory.S, across * LANES, -(-d // DEEP) * DEEP
    lam, weight, gamma, first = eights.lam, rows.weight, rows.gamma, rows.first
    decay, plain, of_v = eights.decay, eights.plain, Across(0, across, across)
    of_x = eights.of_x * LANES
    ratios, number = (weight, rows.columns) if eights.packed else (rows.rho, rows.ratios)
    for row in range(lo, hi, CHUNK):
        n, at = min(CHUNK, hi - row), ZERO
        size = fill(n, row, rows, memory.V, memory.Z)
        for k in range(0, eights.full, LANES):
            multiply(Eightfold(n, k, wide), Z, of_v, V, S, at)
            multiply(Eightfold(n, k, wide), Z, Across(k, d - k, wide), Z, S, at + each)
            at += each + of_x
        to = ZERO
        for g in range(eights.begin, eights.end, LANES):
            here = Here(n, row, rows.columns, g, g, wide, 0, g * deep)
            small = bound(here, size, weight, gamma, lam, state, d) < LARGEST / 2.0
            for k in range(0, d, DEEP):
                here = Here(n, row, rows.columns, g, g, wide, k, g * deep + k * LANES)
                if small:
                    trace(here, Z, weight, gamma, lam, state, U)
                else:
                    stopped(here, Z, weight, gamma, lam, state, U)
                for j in range(min(DEEP, d - k)):
                    multiply(Eightfold(n, j * LONG, LANES), U, of_v, V, C, to)
                    to += each
        own = len(lam) * deep
        for e in range(0, len(decay), LANES):
            here = Here(n, row, number, eights.ratio[e // LANES], e, wide, 0, own + e)
            product(here, (first, rows.every), ratios, gamma, decay, state, U)
            multiply(Eightfold(n, 0, LANES), U, of_v, V, C, to)
            to += each
        own += len(decay)
        for e in range(0, len(plain), LANES):
            here = Here(n, row, 0, 0, e, wide, 0, own + e)
            without_ratio(here, (first, rows.every), gamma, plain, state, U)
            put_beside(here, eights.lams, eights.beside, d, Z, U)
            multiply(Eightfold(n, 0, LANES), U, of_v, V, C, to)
            multiply(Eightfold(n, 0, LANES), U, Across(0, d, wide), Z, S, at)
            to, at = to + each, at + of_x
