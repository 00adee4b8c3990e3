"""Compiled helpers of the scaled loop: what happens to its state between steps; see `state`."""

from __future__ import annotations

import numpy as np

from steadytd.base.arrays import Floats, Ints, Longs
from steadytd.base.jit import compiled, inner
from steadytd.engine.step.state import (
    ALIVE,
    FEW,
    GONE,
    HIGH,
    LARGE,
    LISTED,
    LOW,
    ROW,
    SMALL,
    FeaturePlaces,
    Late,
    Outline,
    Scaled,
    Span,
    Undo,
)


@compiled
def outside(C: Floats, late: Floats) -> int:
    """Set C to 1 where it is out of its range or no number, `late` to what it was; how many.

    `late` is 1 for the other lanes.
    """
    many = 0
    for j in range(len(C)):
        out = (C[j] < LOW) | (C[j] > HIGH) | (C[j] != C[j])
        late[j] = C[j] if out else 1.0
        C[j] = 1.0 if out else C[j]
        many += out
    return many


@compiled
def fold(A: Floats, I: Floats, S: Floats, lanes: Late, first: int, last: int) -> None:  # noqa: E741
    """A += S I in the rows `first` to `last`, and S = 0, for the late lanes; open the next row."""
    late, moved, many = lanes
    for j in range(len(S)):
        moved[j] = S[j] if late[j] != 1.0 else 0.0
        S[j] = 0.0 if late[j] != 1.0 else S[j]
        A[last + 1, j] = 0.0
    if many * FEW >= len(S):
        for s in range(first, last + 1):
            for j in range(len(S)):
                A[s, j] += moved[j] * I[s, j]
    else:
        for j in range(len(S)):
            if late[j] != 1.0:
                for s in range(first, last + 1):
                    A[s, j] += moved[j] * I[s, j]


@compiled
def decay(I: Floats, lanes: Late, first: int, last: int) -> int:  # noqa: E741
    """I *= C for the late lanes; open the next row; the first row that still matters."""
    late, _, many = lanes
    for j in range(len(late)):
        I[last + 1, j] = 1.0
    if many * FEW >= len(late):
        for s in range(first, last + 1):
            for j in range(len(late)):
                moved = I[s, j] * late[j]
                I[s, j] = moved if abs(moved) >= GONE else 0.0
    else:
        for j in range(len(late)):
            if late[j] != 1.0:
                for s in range(first, last + 1):
                    moved = I[s, j] * late[j]
                    I[s, j] = moved if abs(moved) >= GONE else 0.0
    while first <= last and not I[first].any():
        first += 1
    return first


@compiled
def begin_stretch(own: Scaled, log: Undo, span: Span, table: FeaturePlaces) -> None:
    """Note everything that the steps of a stretch may change."""
    log.counts[0] += 1
    log.counts[1] = 0
    _copy_small(own, log.small, own.counts[ROW] + 1)
    for t in range(span.begin, span.end):
        for rows in (span.row, span.row_next):
            i = rows[span.event[t]]
            if log.row[i] == log.counts[0]:
                continue
            log.row[i] = log.counts[0]
            for q in range(table.first[i], table.first[i] + table.length[i]):
                k = table.feature[q - table.offset[i]]
                if log.serial[k] != log.counts[0]:  # a call for those only: it moves all of `own`
                    _note(own, log, k)


@compiled
def go_back(own: Scaled, log: Undo) -> None:
    """Undo the stretch."""
    for i in range(log.counts[1]):
        k = log.feature[i]
        own.at[k] = log.at[i]
        _copy(log.T[i], own.T[k], own.T.shape[1])
    _copy_small(log.small, own, log.small.counts[ROW] + 1)


@inner
def _note(own: Scaled, log: Undo, k: int) -> None:
    """Note a feature that was not noted in this stretch."""
    i = log.counts[1]
    log.serial[k], log.counts[1] = log.counts[0], i + 1
    log.at[i], log.feature[i] = own.at[k], k
    _copy(own.T[k], log.T[i], own.T.shape[1])


@inner
def _copy_small(source: Scaled, target: Scaled, rows: int) -> None:
    """Copy all that has no features, and of the history the rows that are in use."""
    for p in range(len(source.A)):
        _copy(source.A[p], target.A[p], rows)
    for z in range(len(source.I)):
        _copy(source.I[z], target.I[z], rows)
    _copy(source.S, target.S, len(source.S))
    _copy(source.C, target.C, len(source.C))
    _copy(source.B, target.B, len(source.B))
    _copy(source.P, target.P, len(source.P))
    _copy(source.M, target.M, len(source.M))
    for i in range(len(source.carry)):
        target.carry[i] = source.carry[i]
    for i in range(len(source.counts)):
        target.counts[i] = source.counts[i]


@inner
def _copy(source: Floats, target: Floats, rows: int) -> None:
    for i in range(rows):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@compiled
def leaves(own: Scaled, plan: Outline, log: Undo, diverged: Longs, step: int) -> bool:
    """Whether a lane that has not diverged yet now holds a number that is not finite.

    With a `step` from 0 on, this step is noted for every such lane. What a stretch changed are the
    listed features, those that it noted, and numbers per lane.
    """
    lanes = own.T.shape[2]
    poison, entry = np.zeros(lanes), np.empty(lanes)
    for numbers in (own.S, own.C, own.B):
        for i in range(len(numbers)):
            _spoil(poison, numbers[i])
    for p in range(len(own.A)):
        for s in range(own.counts[ROW] + 1):
            _spoil(poison, own.A[p, s])
    for v in range(len(own.B)):
        for i in range(own.counts[LISTED] + log.counts[1]):
            noted = i - own.counts[LISTED]
            k = log.feature[noted] if noted >= 0 else own.listed[i]
            if noted < 0 or own.at[k] < 0:
                vector_entry(own, plan, v, k, entry)
                _spoil(poison, entry)
    found = False
    for j in range(lanes):
        gone = poison[j] != 0.0 and diverged[j] < 0
        found |= gone
        if gone and step >= 0:
            diverged[j] = step
    return found


@inner
def _spoil(poison: Floats, numbers: Floats) -> None:
    """0 * inf and 0 * NaN are NaN."""
    for j in range(len(poison)):
        poison[j] += numbers[j] * 0.0


@compiled
def settle(own: Scaled, plan: Outline) -> None:
    """Fold the whole history into V and Z, drop what is gone, and take the products anew."""
    row, lanes = own.counts[ROW], own.T.shape[2]
    for p in range(len(plan.pairs)):
        z = plan.pairs[p, 1]
        for s in range(own.counts[ALIVE + z], row + 1):
            for j in range(lanes):
                own.A[p, s, j] += own.S[p, j] * own.I[z, s, j]
    own.S[:] = 0.0
    for z in range(len(own.C)):
        for s in range(own.counts[ALIVE + z], row + 1):
            for j in range(lanes):
                moved = own.I[z, s, j] * own.C[z, j]
                own.I[z, s, j] = moved if abs(moved) >= GONE else 0.0
    own.C[:] = 1.0
    own.P[:] = 0.0
    features = own.listed[: own.counts[LISTED]]
    features.sort()  # the order of sums must not depend on other lanes
    kept = 0
    for k in features:
        alive = _settle_feature(own, plan, k)
        own.at[k] = 0 if alive else -1
        own.listed[kept] = k
        kept += alive
    for i in range(len(plan.products)):
        if plan.products[i, 0] == 1:
            for j in range(lanes):
                own.P[i, j] *= own.B[plan.products[i, 1], j]
    own.counts[:] = 0
    own.counts[LISTED] = kept
    own.A[:, 0] = 0.0
    own.I[:, 0] = 1.0


@inner
def _settle_feature(own: Scaled, plan: Outline, k: int) -> bool:
    """The same for one feature; whether a trace of it is left."""
    s, lanes = own.at[k], own.T.shape[2]
    for p in range(len(plan.pairs)):
        v, z = plan.pairs[p, 0], plan.pairs[p, 1]
        for j in range(lanes):
            own.T[k, v, j] += own.T[k, len(own.B) + z, j] * own.A[p, s, j]
    alive = 0
    for z in range(len(own.C)):
        for j in range(lanes):
            own.T[k, len(own.B) + z, j] *= own.I[z, s, j]
            alive |= own.T[k, len(own.B) + z, j] != 0.0
    for i in range(len(plan.products)):
        left, z = plan.products[i, 1], plan.products[i, 2]
        other = own.T[k, left] if plan.products[i, 0] == 1 else own.T[k, len(own.B) + left]
        for j in range(lanes):
            own.P[i, j] += other[j] * own.T[k, len(own.B) + z, j]
    return alive != 0


@compiled
def rescale(own: Scaled, plan: Outline) -> None:
    """B = 1 in lanes where it has left its range, by way of all features."""
    for v in range(len(own.B)):
        for j in range(own.T.shape[2]):
            b = own.B[v, j]
            if not (SMALL <= abs(b) <= LARGE):
                own.B[v, j] = 1.0
                for k in range(len(own.T)):
                    own.T[k, v, j] *= b
                for p in range(len(plan.pairs)):
                    if plan.pairs[p, 0] == v:
                        own.S[p, j] *= b
                        for s in range(own.counts[ROW] + 1):
                            own.A[p, s, j] *= b


@compiled
def vector_entry(own: Scaled, plan: Outline, v: int, k: int, out: Floats) -> None:
    """out[j] = entry k of vector v."""
    s = own.at[k]
    for j in range(len(out)):
        out[j] = own.T[k, v, j]
    if s >= 0:
        for p in range(len(plan.pairs)):
            if plan.pairs[p, 0] == v:
                z = plan.pairs[p, 1]
                for j in range(len(out)):
                    by = own.A[p, s, j] + own.S[p, j] * own.I[z, s, j]
                    out[j] += own.T[k, len(own.B) + z, j] * by
    for j in range(len(out)):
        out[j] *= own.B[v, j]


@compiled
def trace_entries(own: Scaled, z: int, out: Floats) -> None:
    """out[k, j] = entry k of trace z, for the listed features; the others are 0."""
    for i in range(own.counts[LISTED]):
        k = own.listed[i]
        for j in range(out.shape[1]):
            out[k, j] = own.T[k, len(own.B) + z, j] * (own.I[z, own.at[k], j] * own.C[z, j])


@compiled
def vector_entries(own: Scaled, plan: Outline, v: int, features: Ints, out: Floats) -> None:
    """out[i, j] = entry features[i] of vector v."""
    for i in range(len(features)):
        vector_entry(own, plan, v, features[i], out[i])
