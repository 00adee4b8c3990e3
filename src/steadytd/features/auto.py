"""Features that choose themselves by the observations, and a second map that checks them.

Few distinct observations are states: `onehot`. Others get a standardised polynomial of degree 2
where it has at most about a hundred features, else radial basis functions by the number of rows.
A second map of another kind misses other things than the first: how far the answers of both lie
apart shows how much the features matter. The pairs were chosen on worlds of known value
(docs/decisions/0018-trust.md).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytd.base.numbers import count
from steadytd.features.base import FeatureMap

MOST_STATES = 1000  # distinct observations that `onehot` is chosen for,
ROWS_PER_STATE = 10  # if there are so many rows for each
MOST_POLY = 100  # features of poly:2, about: 12 numbers in an observation
MOST_CENTRES, ROWS_PER_CENTRE = 100, 50
FEW_STATES = 8  # distinct observations that are too few for radial basis functions


class Choice(NamedTuple):
    """The text form of a feature map, and why it was chosen."""

    spec: str
    reason: str


class Observed(NamedTuple):
    """What a choice rests on: distinct observations of the sample, their numbers, and the rows."""

    distinct: int
    numbers: int
    rows: int

    @staticmethod
    def of(obs: NDArray[Any], rows: int) -> Observed:
        """From a sample of observations of a log with so many rows."""
        few = obs[: 2 * MOST_STATES + 1]  # where these are too many already, nobody sorts them all
        distinct = len(np.unique(few, axis=0))
        if distinct <= MOST_STATES and len(obs) > len(few):
            distinct = len(np.unique(obs, axis=0))
        return Observed(distinct, obs.shape[1], rows)

    @property
    def states(self) -> bool:
        """Whether the observations are few enough to be states."""
        return self.distinct <= MOST_STATES and self.rows >= ROWS_PER_STATE * self.distinct

    @property
    def centres(self) -> int:
        """How many radial basis functions the rows can carry."""
        most = min(MOST_CENTRES, self.rows // ROWS_PER_CENTRE, self.distinct // 2)
        return max(most, 1)

    @property
    def poly_features(self) -> int:
        """How many features poly:2 has."""
        return (self.numbers + 1) * (self.numbers + 2) // 2


def automatic(seen: Observed) -> Choice:
    """The features that suit the observations.

    >>> automatic(Observed(distinct=12, numbers=1, rows=5000)).spec
    'onehot'
    >>> automatic(Observed(distinct=5000, numbers=4, rows=5000)).reason
    'poly:2, because 4 numbers have only 15 products of degree at most 2'
    """
    if seen.states:
        what = count(seen.distinct, "distinct observation")
        return Choice("onehot", f"onehot, because {count(seen.rows, 'row')} hold only {what}")
    if seen.poly_features <= MOST_POLY:
        size = f"{count(seen.numbers, 'number')} have only {seen.poly_features} products"
        return Choice("poly:2", f"poly:2, because {size} of degree at most 2")
    spec = f"rbf:{seen.centres}"
    size = f"{count(seen.numbers, 'number')} have too many products of degree 2"
    rows = count(seen.rows, "row")
    return Choice(spec, f"{spec}, because {size}; {rows} allow this number of centres")


def second_map(first: FeatureMap, seen: Observed) -> str:
    """The text form of the map that checks `first`: another description of the same states.

    For features of the user's own it is the automatic choice, or its second where they are equal.
    """
    rbf = f"rbf:{seen.centres}"
    if first.kind == "raw":
        return "onehot" if seen.states else rbf
    chosen = automatic(seen).spec
    if first.spec != chosen and first.kind != chosen.partition(":")[0]:
        return chosen
    if first.kind == "onehot":
        return "poly:2" if seen.distinct <= FEW_STATES else rbf
    return rbf if first.kind == "poly" else "poly:1"
