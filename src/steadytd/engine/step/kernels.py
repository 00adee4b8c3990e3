"""Compiled helpers that know nothing of laws: random numbers, walks, errors, entries of vectors.

The random stream is specified in `docs/streams.md`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytd.base import random
from steadytd.base.arrays import ZERO, Floats, Ints, Longs
from steadytd.base.jit import compiled, inner

HUGE = 1e140  # beyond this a square may overflow, and the error is computed with a scale
mix = compiled(random.mix)


@compiled
def uniform(key: np.uint64, n: int) -> float:
    """The n-th number in [0, 1) of the stream `key`: SplitMix64's output n, its upper 53 bits."""
    word = mix(key + (np.uint64(n) + np.uint64(1)) * random.GOLDEN) >> random.S11
    return float(np.int64(word)) * 2.0**-53  # signed: one instruction


class Successors(NamedTuple):
    """The transitions out of every state: where they begin, a guide to them, and where they lead.

    Those of state s begin at `first[s]` and are `many[s]`, with their cumulative probabilities.
    """

    first: Ints
    many: Floats
    guide: Ints
    cumulative: Floats
    row_next: Ints


@compiled
def walk(key: np.uint64, step: int, state: int, successors: Successors, events: Ints) -> int:
    """Fill `events` with the transitions of steps `step`, `step + 1`, ...; return the last state.

    A transition is drawn by inversion: the first one out of `state` whose cumulative probability
    exceeds the step's uniform number. `guide` only says where in the list to start looking.
    """
    first, many, guide, cumulative, row_next = successors
    at = np.uintp(state)  # unsigned: nothing has to ask whether a place is counted from the end
    for i in range(len(events)):
        u = uniform(key, step + i + 1)
        e = np.uintp(guide[np.uintp(first[at] + np.int64(u * many[at]))])
        while u >= cumulative[e]:
            e += np.uintp(1)
        events[i] = e
        at = np.uintp(row_next[e])
    return int(at)


@compiled
def row_dot(
    feature: Ints,
    value: Floats,
    p: int,
    last_p: int,
    shift_p: int,
    q: int,
    last_q: int,
    shift_q: int,
) -> float:
    """An inner product of two rows of a feature table: walk along both, in order."""
    total = 0.0
    while p < last_p and q < last_q:
        k_p, k_q = feature[p - shift_p], feature[q - shift_q]
        if k_p == k_q:
            total += value[p] * value[q]
        p += k_p <= k_q
        q += k_q <= k_p
    return total


@inner
def copy(source: Floats, destination: Floats) -> None:
    """Copy one flat array into another."""
    for i in range(len(source)):
        destination[i] = source[i]


@inner
def leaves_finite_range(V: Floats, diverged: Longs) -> bool:
    """Whether a lane that has not diverged yet now holds a number that is not finite."""
    poison = _poison(V)
    found = False
    for j in range(len(diverged)):
        found |= poison[j] != 0.0 and diverged[j] < 0
    return found


@inner
def mark_diverged(V: Floats, diverged: Longs, step: int) -> None:
    """Note `step` for every lane that is not finite and was not noted before."""
    poison = _poison(V)
    for j in range(len(diverged)):
        if poison[j] != 0.0 and diverged[j] < 0:
            diverged[j] = step


@inner
def _poison(V: Floats) -> Floats:
    """0 for a lane of finite numbers, NaN otherwise: 0 * inf and 0 * NaN are NaN."""
    result = np.zeros(V.shape[2])
    for v in range(V.shape[0]):
        for k in range(V.shape[1]):
            for j in range(V.shape[2]):
                result[j] += V[v, k, j] * 0.0
    return result


class GoalRows(NamedTuple):
    """What an error is measured against: feature rows, their weights, and what they should give."""

    first: Longs
    length: Longs
    offset: Longs
    feature: Ints
    value: Floats
    weight: Floats
    target: Floats


@inner
def measure(w: Floats, goal: GoalRows, begin: int, end: int, diverged: Longs, out: Floats) -> None:
    """out[j] = sqrt(sum_i weight_i (row_i . w_j - target_i)^2), for i from `begin` up to `end`.

    Infinite for a diverged lane, and for one whose values row_i . w_j overflow.
    """
    weight, lanes = goal.weight, w.shape[1]
    total = np.zeros(lanes)
    largest = np.zeros(lanes)
    difference = np.empty(lanes)
    for i in range(begin, end):
        if weight[i] != 0.0:
            _difference(w, goal, i, (ZERO, lanes), difference)
            for j in range(lanes):
                total[j] += weight[i] * (difference[j] * difference[j])
                largest[j] = max(largest[j], abs(difference[j]))
    for j in range(lanes):
        if diverged[j] >= 0:
            out[j] = np.inf
        elif largest[j] < HUGE:
            out[j] = np.sqrt(total[j])
        else:
            out[j] = 0.0
            for i in range(begin, end):
                if weight[i] != 0.0:
                    _difference(w, goal, i, (j, j + 1), difference)
                    out[j] += weight[i] * (difference[0] / largest[j]) ** 2
            out[j] = largest[j] * np.sqrt(out[j])
        if np.isnan(out[j]):
            out[j] = np.inf


@compiled
def measure_all(w: Floats, goal: GoalRows, ends: Longs, diverged: Longs, out: Floats) -> None:
    """out[i] = the i-th error: that of the rows from ends[i - 1] (or 0) up to ends[i]."""
    begin = ZERO
    for i in range(len(ends)):
        measure(w, goal, begin, ends[i], diverged, out[i])
        begin = ends[i]


@inner
def _difference(w: Floats, goal: GoalRows, i: int, lanes: tuple[int, int], out: Floats) -> None:
    """out = row_i . w_j - target_i, for the lanes j from the first up to the last."""
    first, feature, value = goal.first[i], goal.feature, goal.value
    low, count = lanes[0], lanes[1] - lanes[0]
    for j in range(count):
        out[j] = 0.0
    for q in range(first, first + goal.length[i]):
        k = feature[q - goal.offset[i]]
        for j in range(count):
            out[j] += w[k, low + j] * value[q]
    for j in range(count):
        out[j] -= goal.target[i]


class StoredVector(NamedTuple):
    """A vector at active features: what its entries are made of; see `layouts.active`."""

    number: int  # of the vector in V
    V: NDArray[Any]
    Z: Floats
    row_of: NDArray[np.uint8]
    A: Floats
    I: Floats  # noqa: E741
    S: Floats
    begins: Longs
    group_of: Longs
    pairs: Longs  # [n, 2]: row of A and S, number of the trace
    factor: Floats


@compiled
def entry(own: StoredVector, b: int, k: int, j: int) -> float:
    """Entry k of a vector in lane j of block b: B (V + Z (A[s] + S I[s]))."""
    total = np.float64(own.V[b, k, own.number, j])
    count, g = own.begins[b + 1] - own.begins[b], own.group_of[b, j]
    for n in range(len(own.pairs)):
        p, z = own.pairs[n]
        cell = own.begins[b] * own.V.shape[1] + k * count + g
        s = own.row_of[cell]
        total += own.Z[z, cell] * (own.A[b, p, s, j] + own.S[b, p, j] * own.I[b, z, s, g])
    return float(own.factor[b, j] * total)


@compiled
def entries(own: StoredVector, b: int, j: int, features: Ints, out: Floats) -> None:
    """out[i, l] = entry features[i] of a vector in lane j + l of block b."""
    for i in range(out.shape[0]):
        for lane in range(out.shape[1]):
            out[i, lane] = entry(own, b, features[i], j + lane)
