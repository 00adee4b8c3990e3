"""`poly:K`: all monomials of the standardised observations up to total degree K.

    1, z_1, z_2, ..., z_1^2, z_1 z_2, ..., z_m^K      with z = (o - mean) / std

in order of degree: (m + K)! / (m! K!) of them for m varying columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats, Longs, read_only
from steadytd.base.errors import InputError
from steadytd.features.base import MOST, ArrayMap, State, too_many
from steadytd.features.observations import scaling, standard


class Poly(ArrayMap):
    """Monomials up to a total degree.

    >>> f = Poly((2,)).fit([[-1.0, -1.0], [1.0, 1.0]])
    >>> f([[2.0, 3.0]]).tolist()
    [[1.0, 2.0, 3.0, 4.0, 6.0, 9.0]]
    """

    kind = "poly"
    form = "poly:K"
    constant = 0
    arrays: ClassVar[Mapping[str, str]] = {"columns": "m", "mean": "m", "scale": "m"}

    def names(self, obs: Sequence[str]) -> list[str]:
        """Products of names.

        >>> Poly((2,)).fit([[-1.0, -1.0], [1.0, 1.0]]).names(["a", "b"])
        ['1', 'a', 'b', 'a a', 'a b', 'b b']
        """
        columns, found = self.state["columns"].tolist(), ["1"]
        parent, variable = monomials(len(columns), *self.numbers)
        for i, j in zip(parent[1:].tolist(), variable[1:].tolist(), strict=True):
            own = obs[columns[j]]
            found.append(f"{found[i]} {own}" if i else own)
        return found

    def _learn(self, sample: NDArray[Any]) -> State:
        return standard(sample)

    def _size(self, state: State) -> int:
        m, (degree,) = len(state["columns"]), self.numbers
        size = math.comb(m + degree, degree)
        if size > MOST:
            fits = max(k for k in range(min(degree, MOST)) if math.comb(m + k, k) <= MOST)
            remedy = f"poly:{fits} is the largest that fits {m} columns"
            raise too_many(self.spec, size, MOST, remedy)
        return size

    def _apply(self, obs: NDArray[Any], out: Floats) -> None:
        from steadytd.features.kernels import multiply_up

        s = self.state
        parent, variable = map(read_only, monomials(len(s["columns"]), *self.numbers))
        by = scaling(s["columns"], s["mean"], s["scale"])
        multiply_up(read_only(obs), by, parent, variable, out)
        with np.errstate(all="ignore"):
            fine = np.isfinite(out.sum()) or np.isfinite(out).all()
        if not fine:
            row = int(np.flatnonzero(~np.isfinite(out).all(axis=1))[0])
            raise InputError(
                f"{self.spec} overflows at observation {row}, which lies far outside the sample "
                f"that the map was fitted on: {obs[row].tolist()}."
            )


@lru_cache(maxsize=64)
def monomials(m: int, degree: int) -> tuple[Longs, Longs]:
    """How each monomial comes from an earlier one: `parent` times the variable `variable`."""
    names = [
        term
        for total in range(degree + 1)
        for term in combinations_with_replacement(range(m), total)
    ]
    number = {term: q for q, term in enumerate(names)}
    parent = np.array([number[term[:-1]] for term in names], dtype=np.int64)
    variable = np.array([term[-1] if term else 0 for term in names], dtype=np.int64)
    return parent, variable
