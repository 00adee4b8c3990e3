"""Shares of discounted visits by place: those of a target beside those of the log.

From sampled whole episodes: a row at step t is gamma_1 ... gamma_t of a visit by the log, and
omega(s) = x(s).omega of a visit by the target (`Judged.omega`). Both are summed by place and
divided by their total; where the log has no episodes, every row is a visit of its own. A target
that acts like the log has the same shares. (omega is linear in the features: what is estimated
below 0 is 0 here.)

A place is a state where features tell few states apart, else a cell in the plane of the first two
principal directions of the features, each divided by its standard deviation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.evaluation.rows import RowTable
from steadytd.features import FeatureMap

FEW_STATES = 40  # distinct feature vectors up to which places are states
CELLS = (22, 14)  # of the plane, along the first and the second direction
MOST_FOR_DIRECTIONS = 2000  # rows of the sample that the directions are computed from
ENDS = (0.005, 0.995)  # quantiles between which cells lie; rows beyond are in the outermost cells


class Visits(NamedTuple):
    """Shares of visits by place, each summing to 1.

    `names` of states, or `points` [places, 2] of cells, whose directions hold `explained` of the
    features' variance.
    """

    log: Floats
    targets: dict[str, Floats]
    names: tuple[str, ...] = ()
    points: Floats = np.empty((0, 2))
    explained: tuple[float, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """Of a frame: target, state, x, y, log, visits."""
        return [
            {
                "target": target,
                "state": self.names[i] if self.names else None,
                "x": None if self.names else float(self.points[i, 0]),
                "y": None if self.names else float(self.points[i, 1]),
                "log": float(self.log[i]),
                "visits": float(share[i]),
            }
            for target, share in self.targets.items()
            for i in range(len(self.log))
        ]

    def to_dict(self) -> dict[str, Any]:
        """For JSON: shares in the order of the places, which are states or points of cells."""
        return {
            "states": list(self.names),
            "points": self.points.tolist(),
            "explained": list(self.explained),
            "log": self.log.tolist(),
            "targets": {name: share.tolist() for name, share in self.targets.items()},
        }


def visits(
    table: RowTable | None, omegas: Mapping[str, Floats], features: FeatureMap, continuing: bool,
    named: Sequence[str] = (),
) -> Visits | None:  # fmt: skip
    """The shares of all targets whose omega is known; None where no whole episode was sampled.

    `named` are the features' names, where columns of the log were named.
    """
    known = {name: omega for name, omega in omegas.items() if np.isfinite(omega).all()}
    if table is None or not known:
        return None
    X = table.X[: len(table)]
    weight = table.weight * (1.0 if continuing else table.discounted)
    place, found = _states(X, features, named) or _cells(X)

    def shares(values: Floats) -> Floats:
        total = np.maximum(np.bincount(place, weights=values, minlength=place.max() + 1), 0.0)
        return np.asarray(total / max(float(total.sum()), 1e-300))

    targets = {name: shares(X @ omega * table.weight) for name, omega in known.items()}
    return found._replace(log=shares(weight), targets=targets)


def _states(
    X: Floats, features: FeatureMap, names: Sequence[str] = ()
) -> tuple[Longs, Visits] | None:
    """The row's state, where the features are one per state, or tell few states apart."""
    distinct, place = np.unique(X[:, : features.n_features], axis=0, return_inverse=True)
    named = list(names) if names and features.states else features.states
    if named is None and len(distinct) > FEW_STATES:
        return None
    names = tuple(_name(i, x, named) for i, x in enumerate(distinct))
    return place.reshape(-1), Visits(np.empty(0), {}, names)


def _name(number: int, x: Floats, named: Sequence[str] | None) -> str:
    """A state's observation, or its features where they are few, or a number."""
    if named is not None:
        active = np.flatnonzero(x)
        return named[active[0]] if len(active) else "not known"
    return f"x = {', '.join(f'{v:.3g}' for v in x)}" if len(x) <= 3 else f"state {number + 1}"


def _cells(X: Floats) -> tuple[Longs, Visits]:
    """The row's cell; cells without rows are left out."""
    Z, explained = _directions(X)
    columns, centres = [], []
    for values, cells in zip(Z.T, CELLS, strict=False):
        low, high = np.quantile(values, ENDS)
        width = max(float(high - low), 1e-12) / cells
        column = np.clip(((values - low) / width).astype(np.int64), 0, cells - 1)
        columns.append(column)
        centres.append(low + (column + 0.5) * width)
    if len(columns) == 1:
        columns.append(np.zeros_like(columns[0]))
        centres.append(np.zeros(len(X)))
    code = columns[0] * CELLS[1] + columns[1]
    _, first, place = np.unique(code, return_index=True, return_inverse=True)
    points = np.stack(centres, axis=1)[first]
    return place.reshape(-1), Visits(np.empty(0), {}, (), points, explained)


def _directions(X: Floats) -> tuple[Floats, tuple[float, ...]]:
    """The first two principal components, and the share of variance that each holds."""
    spread = X.std(axis=0)
    varied = spread > 1e-9 * max(float(spread.max()), 1e-300)
    Y = (X[:, varied] - X[:, varied].mean(axis=0)) / spread[varied]
    some = Y[:: -(-len(Y) // MOST_FOR_DIRECTIONS)]
    _, strength, directions = np.linalg.svd(some, full_matrices=False)
    chosen = directions[:2]
    signs = np.sign(chosen[np.arange(len(chosen)), np.abs(chosen).argmax(axis=1)])
    total = max(float((strength**2).sum()), 1e-300)
    held = tuple((strength[: len(chosen)] ** 2 / total).tolist())
    return np.asarray(Y @ (chosen * signs[:, None]).T), held
