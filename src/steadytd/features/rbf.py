"""`rbf:N`: N Gaussian bumps where the observations are, and a constant.

    x = (1, exp(-|z - c_1|^2 / 2 h^2), ..., exp(-|z - c_N|^2 / 2 h^2))      z = (o - mean) / std

The centres c are observations of the sample, drawn one after the other with probability in
proportion to the squared distance from those already drawn (the k-means++ rule: it spreads them out
but rarely picks a lone outlier). The width h is the median, over the centres, of the distance to
the 2m-th nearest other centre, m being the number of varying columns: neighbouring bumps overlap.
The bumps are not normalised: far from the sample they vanish and the constant remains, instead of
the nearest centre's value being carried on for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats, read_only
from steadytd.base.errors import InputError
from steadytd.features.base import MOST, ArrayMap, State, too_many
from steadytd.features.observations import Scaling, standard

ENOUGH = 20_000  # observations among which centres are drawn
BLOCK = 256  # rows whose distances stay in the cache until they are exponentiated


class Rbf(ArrayMap):
    """Gaussian bumps at observations of the sample, and a constant 1.

    >>> f = Rbf((2,)).fit([[-1.0], [1.0]])
    >>> f([[1.0]]).round(3).tolist()[0][0], f([[1.0]]).max()
    (1.0, np.float64(1.0))
    """

    kind = "rbf"
    form = "rbf:N"
    constant = 0
    arrays: ClassVar[Mapping[str, str]] = {
        "columns": "m",
        "mean": "m",
        "scale": "m",
        "centres": "mn",
        "width": "",
    }

    def _learn(self, sample: NDArray[Any]) -> State:
        (count,) = self.numbers
        if count >= MOST:
            raise too_many(self.spec, count + 1, MOST, f"use fewer than {MOST:,d} centres")
        scaled = standard(sample)
        every = len(sample) // ENOUGH + 1
        z = (sample[::every, scaled["columns"]] - scaled["mean"]) / scaled["scale"]
        centers = self._centers(z, count)
        return {**scaled, "centres": centers.T.copy(), "width": np.array(_width(centers))}

    def _centers(self, z: Floats, count: int) -> Floats:
        from steadytd.engine.step.kernels import mix, uniform

        key = np.uint64(mix(np.uint64(self.seed)))
        chosen = np.empty((count, z.shape[1]))
        distance = np.ones(len(z))
        for i in range(count):
            total = np.cumsum(distance)
            if not total[-1] > 0.0:
                raise InputError(
                    f"{self.spec} needs {count} different observations for its centres, the sample "
                    f"has {i}; use rbf:{i}, or onehot for finitely many states."
                )
            at = np.searchsorted(total, uniform(key, i) * total[-1], side="right")
            chosen[i] = z[min(int(at), int(np.flatnonzero(distance)[-1]))]
            apart = ((z - chosen[i]) ** 2).sum(axis=1)
            distance = apart if i == 0 else np.minimum(distance, apart)
        return chosen

    def _size(self, state: State) -> int:
        return 1 + int(state["centres"].shape[1])

    def _apply(self, obs: NDArray[Any], out: Floats) -> None:
        from steadytd.features.kernels import minus_squared_distance

        s = self.state
        shrink = np.sqrt(0.5) / float(s["width"])
        with np.errstate(under="ignore", over="ignore"):
            centers = read_only(s["centres"] * shrink)
            by = Scaling(s["columns"], s["mean"], read_only(shrink / s["scale"]))
            for begin in range(0, len(obs), BLOCK):
                part = out[begin : begin + BLOCK]
                given = read_only(obs[begin : begin + BLOCK])
                minus_squared_distance(given, by, centers, part)
                np.exp(part, out=part)


def _width(centers: Floats) -> float:
    """The median distance from a centre to its 2m-th nearest neighbour."""
    count, m = centers.shape
    if count == 1 or m == 0:
        return 1.0
    near = min(2 * m, count - 1)
    rank = np.empty(count)
    for i, center in enumerate(centers):
        squared = ((centers - center) ** 2).sum(axis=1)
        rank[i] = np.sqrt(np.partition(squared, near)[near])
    return float(np.median(rank))
