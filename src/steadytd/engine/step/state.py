"""What the scaled loop works on: the arrays of a block, and what is needed to go back a stretch.

`docs/engine.md` derives the form. A trace and what is written along it are kept scaled,

    z_k = Z_k I[s] C,      v_k = B (V_k + Z_k (A[s] + S I[s])),      s = at[k],

with numbers per lane: C and S for the present, I and A for every *row* s of the history. The row
of a feature is the one that was open when the feature was last active. A new row is opened where
some lane's C has left its range, and for that lane what happened so far is folded into the rows:
A += S I, I *= C, S = 0, C = 1. A lane that is not late has the same numbers in the old and in the
new row, so it does not notice. Every EPOCH steps all is folded into V and Z themselves.
"""

from __future__ import annotations

from typing import NamedTuple

from steadytd.base.arrays import Floats, Ints, Longs

EPOCH = 4096  # steps after which everything is settled; a history has at most so many rows more
LOW, HIGH = 2.0**-13, 4.0  # the range of C: S I cancels by at most HIGH / LOW, fifteen bits
GONE = 2.0**-80  # a trace that decayed by that much changes nothing beside the newest
SMALL, LARGE = 1e-100, 1e100  # the range of B
FEW = 4  # with less than a fourth of the lanes late, they are moved one by one
ROW, LISTED, ALIVE = 0, 1, 2  # places in `counts`


class Scaled(NamedTuple):
    """The state of a block in scaled form, all arrays with the lanes last.

    A feature has its V and its Z side by side: one place in memory to go to, not several.
    `counts` holds the open row, the number of listed features, and for each trace the first row
    that still matters. `listed` are the features with a row, `at` their rows (-1: none, Z is 0).
    """

    T: Floats  # [feature, vector or trace]: V, then Z
    A: Floats  # [pair of a vector and a trace it is written along, row]
    I: Floats  # [trace, row]  # noqa: E741
    S: Floats  # [pair]
    C: Floats  # [trace]
    B: Floats  # [vector]
    P: Floats  # [inner product that is carried along]
    M: Floats
    carry: Floats
    at: Ints
    listed: Ints
    counts: Longs


class Outline(NamedTuple):
    """Which vectors, traces and products a law has: numbers of rows in the arrays of `Scaled`.

    `pairs` is (vector, trace); `products` is (1 for a vector or 0 for a trace, its number, trace).
    """

    pairs: Longs
    products: Longs


class Undo(NamedTuple):
    """What the features of a stretch of steps were like before it, to go back there."""

    T: Floats
    at: Ints
    feature: Ints
    serial: Longs  # [feature]: the stretch that last noted it
    row: Longs  # [row of the feature table]: the same
    counts: Longs  # the present stretch, and how many features it noted
    small: Scaled  # copies of everything that has no features (T is empty)


class Late(NamedTuple):
    """The lanes whose C has left its range: what it was (1: not late), room, and how many."""

    late: Floats
    moved: Floats
    many: int


class FeaturePlaces(NamedTuple):
    """Where the features of a row stand; see `engine.rows`."""

    first: Longs
    length: Longs
    offset: Longs
    feature: Ints


class Span(NamedTuple):
    """Some steps: the events from `begin` up to `end`, and the rows that they lead from and to."""

    event: Ints
    row: Ints
    row_next: Ints
    begin: int
    end: int
