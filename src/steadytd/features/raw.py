"""`raw`: the observations themselves, standardised, and a constant.

    x = (1, (o_1 - mean_1) / std_1, (o_2 - mean_2) / std_2, ...)

Columns that are constant in the sample are left out: the constant feature replaces them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from numpy.typing import NDArray

from steadytd.base.arrays import Floats, read_only
from steadytd.features.base import ArrayMap, State
from steadytd.features.observations import scaling, standard


class Raw(ArrayMap):
    """Standardised observations and a constant 1.

    >>> f = Raw().fit([[0.0, 5.0], [2.0, 5.0]])
    >>> f([[0.0, 5.0], [3.0, 5.0]]).tolist()
    [[1.0, -1.0], [1.0, 2.0]]
    """

    kind = "raw"
    form = "raw"
    constant = 0
    arrays: ClassVar[Mapping[str, str]] = {"columns": "m", "mean": "m", "scale": "m"}

    def names(self, obs: Sequence[str]) -> list[str]:
        """The constant, and the observations.

        >>> Raw().fit([[0.0, 5.0], [2.0, 5.0]]).names(["basket", "age"])
        ['1', 'basket']
        """
        return ["1", *(obs[i] for i in self.state["columns"].tolist())]

    def _learn(self, sample: NDArray[Any]) -> State:
        return standard(sample)

    def _size(self, state: State) -> int:
        return 1 + len(state["columns"])

    def _apply(self, obs: NDArray[Any], out: Floats) -> None:
        from steadytd.features.kernels import standardize

        s = self.state
        standardize(read_only(obs), scaling(s["columns"], s["mean"], s["scale"]), out)
