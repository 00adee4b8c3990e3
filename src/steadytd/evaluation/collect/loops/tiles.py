"""Products of eight numbers with some columns, added up over rows in registers."""

from __future__ import annotations

from typing import NamedTuple

from steadytd.base.arrays import LANES, Floats
from steadytd.base.jit import compiled_disjoint, inner_disjoint
from steadytd.evaluation.collect.vectors import eight, put, same

NARROW, WIDE = 4, 6  # columns that are multiplied together


def tiled(n: int) -> int:
    """The next number that is a sum of fours, fives and sixes: so many columns are multiplied.

    >>> [tiled(n) for n in (3, 5, 6, 7, 11, 19)]
    [4, 5, 6, 8, 11, 19]
    """
    return max(n + (n == WIDE + 1), NARROW)


class Eightfold(NamedTuple):
    """Eight numbers of each of n rows, from place `first` on and `apart` places apart."""

    n: int
    first: int
    apart: int


class Across(NamedTuple):
    """So many columns, from column `first` on, of rows of `wide` numbers."""

    first: int
    columns: int
    wide: int


@compiled_disjoint
def multiply(of: Eightfold, U: Floats, by: Across, V: Floats, C: Floats, to: int) -> None:
    """C[to + m] += sum_i U[i] V[i, m] over rows, for the columns m of V."""
    m, rest = by.first, by.columns
    while rest > 0:
        tiles = (rest + WIDE - 1) // WIDE
        size = max((rest + tiles - 1) // tiles, NARROW)
        if size == WIDE:
            six(of, U, m, by.wide, V, C, to)
        elif size == NARROW:
            four(of, U, m, by.wide, V, C, to)
        else:
            five(of, U, m, by.wide, V, C, to)
        m, rest, to = m + size, rest - size, to + size * LANES


@inner_disjoint
def six(of: Eightfold, U: Floats, m: int, wide: int, V: Floats, C: Floats, to: int) -> None:
    """The columns m, ..., m + 5: their sums are in twelve of AVX2's sixteen registers."""
    k, a0, a1, a2 = of.first, eight(C, to), eight(C, to + 8), eight(C, to + 16)
    a3, a4, a5 = eight(C, to + 24), eight(C, to + 32), eight(C, to + 40)
    for _ in range(of.n):
        u = eight(U, k)
        a0, a1, a2 = a0 + u * same(V, m), a1 + u * same(V, m + 1), a2 + u * same(V, m + 2)
        a3, a4, a5 = a3 + u * same(V, m + 3), a4 + u * same(V, m + 4), a5 + u * same(V, m + 5)
        k, m = k + of.apart, m + wide
    put(C, to, a0), put(C, to + 8, a1), put(C, to + 16, a2)
    put(C, to + 24, a3), put(C, to + 32, a4), put(C, to + 40, a5)


@inner_disjoint
def five(of: Eightfold, U: Floats, m: int, wide: int, V: Floats, C: Floats, to: int) -> None:
    """The columns m, ..., m + 4."""
    k, a0, a1, a2 = of.first, eight(C, to), eight(C, to + 8), eight(C, to + 16)
    a3, a4 = eight(C, to + 24), eight(C, to + 32)
    for _ in range(of.n):
        u = eight(U, k)
        a0, a1, a2 = a0 + u * same(V, m), a1 + u * same(V, m + 1), a2 + u * same(V, m + 2)
        a3, a4 = a3 + u * same(V, m + 3), a4 + u * same(V, m + 4)
        k, m = k + of.apart, m + wide
    put(C, to, a0), put(C, to + 8, a1), put(C, to + 16, a2)
    put(C, to + 24, a3), put(C, to + 32, a4)


@inner_disjoint
def four(of: Eightfold, U: Floats, m: int, wide: int, V: Floats, C: Floats, to: int) -> None:
    """The columns m, ..., m + 3."""
    k, a0, a1 = of.first, eight(C, to), eight(C, to + 8)
    a2, a3 = eight(C, to + 16), eight(C, to + 24)
    for _ in range(of.n):
        u = eight(U, k)
        a0, a1 = a0 + u * same(V, m), a1 + u * same(V, m + 1)
        a2, a3 = a2 + u * same(V, m + 2), a3 + u * same(V, m + 3)
        k, m = k + of.apart, m + wide
    put(C, to, a0), put(C, to + 8, a1), put(C, to + 16, a2), put(C, to + 24, a3)
