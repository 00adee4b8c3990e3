"""`onehot`: one feature for each different observation of the sample: finitely many states.

    x_i = 1 if the observation is the i-th known one, else 0

in ascending order of the observations, column by column. An observation that the sample did not
contain has no feature: its row is zero, hence its value is 0 and nothing is learned from it. So a
long log need not be refused; `unknown` returns which rows it concerns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steadytd.base.arrays import Bools, Floats, Ints, read_only
from steadytd.engine.rows import Rows
from steadytd.features.base import MOST, ArrayMap, State, too_many


class OneHot(ArrayMap):
    """A feature per state.

    >>> f = OneHot().fit([[3], [1], [3]])
    >>> f([[1], [3], [2]]).tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    """

    kind = "onehot"
    form = "onehot"
    arrays: ClassVar[Mapping[str, str]] = {"known": "nk"}
    is_sparse = True

    def _learn(self, sample: NDArray[Any]) -> State:
        return {"known": np.unique(sample.astype(np.float64) + 0.0, axis=0)}  # + 0.0: -0 is 0

    def _size(self, state: State) -> int:
        size = len(state["known"])
        if size > MOST:
            remedy = "onehot is for a finite set of states; otherwise use rbf:N or tiles:NxM"
            raise too_many(self.spec, size, MOST, remedy)
        return size

    @property
    def states(self) -> list[str]:
        """The observation that each feature stands for.

        >>> OneHot().fit([[3, 0.5], [1, 0]]).states
        ['1, 0', '3, 0.5']
        """
        return [", ".join(f"{value:g}" for value in row) for row in self.state["known"]]

    def names(self, obs: Sequence[str]) -> list[str]:
        """The observation of each state; of levels (`segment=new`) those that are 1.

        >>> OneHot().fit([[1, 3], [0, 2]]).names(["segment=new", "size"])
        ['size=2', 'segment=new, size=3']
        """

        def name(row: list[float]) -> str:
            pairs = zip(obs, row, strict=True)
            said = [
                one if "=" in one else f"{one}={x:g}" for one, x in pairs if x or "=" not in one
            ]
            return ", ".join(said) or "none"

        return [name(row) for row in self.state["known"].tolist()]

    @property
    def most_active(self) -> int:
        """One feature of an observation is 1."""
        return 1

    def unknown(self, obs: ArrayLike) -> Bools:
        """Which observations were not in the sample."""
        return ~self._find(self._given(obs))[1]

    def rows(self, obs: ArrayLike) -> Rows:
        """A feature table of the active features alone; an unknown observation has none."""
        at, found = self._find(self._given(obs))
        length = found.astype(np.int64)
        first = np.cumsum(length) - length
        feature = np.ascontiguousarray(at[found])
        return Rows(first, length, np.zeros_like(first), feature, np.ones(len(feature)))

    sparse = rows

    def _apply(self, obs: NDArray[Any], out: Floats) -> None:
        at, found = self._find(obs)
        out[:] = 0.0
        out[np.flatnonzero(found), at[found]] = 1.0

    def _find(self, obs: NDArray[Any]) -> tuple[Ints, Bools]:
        from steadytd.features.kernels import find_rows

        at: Ints = np.empty(len(obs), dtype=np.int32)
        found: Bools = np.empty(len(obs), dtype=np.bool_)
        find_rows(read_only(obs), self.state["known"], at, found)
        return at, found
