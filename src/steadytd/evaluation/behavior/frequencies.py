"""How often each action was taken at an observation: a policy of states that come again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats

TRIES = 30.0  # rows per different observation from which on these are counted


def come_again(obs: NDArray[Any]) -> bool:
    """Whether observations are few enough to count actions at each of them.

    >>> come_again(np.repeat([[0.0], [1.0]], 30, axis=0)), come_again(np.arange(60.0)[:, None])
    (True, False)
    """
    most = len(obs) / TRIES  # different ones; where the first rows have more, nobody sorts them all
    return all(len(np.unique(some, axis=0)) <= most for some in (obs[: int(2.0 * most) + 1], obs))


class Frequencies:
    """A classifier: the shares of the actions at an observation, and once more those of all rows.

        p(a | s) = (n(s, a) + n(a) / n) / (n(s) + 1)

    What was never seen has the shares of all rows.
    """

    def fit(self, obs: NDArray[Any], action: NDArray[Any]) -> Frequencies:
        """Count."""
        self.classes_, taken = np.unique(action, return_inverse=True)
        every = np.bincount(taken) / len(taken)
        found, place = np.unique(obs + 0.0, axis=0, return_inverse=True)  # -0 is 0
        count = np.zeros((len(found), len(every)))
        np.add.at(count, (place.reshape(-1), taken), 1.0)
        count += every
        shares = count / count.sum(axis=1, keepdims=True)
        self.shares = np.concatenate([shares, every[None]])
        self.places = {row.tobytes(): i for i, row in enumerate(found)}
        return self

    def predict_proba(self, obs: NDArray[Any]) -> Floats:
        """The shares at each observation."""
        found, place = np.unique(obs + 0.0, axis=0, return_inverse=True)
        rows = [self.places.get(row.tobytes(), -1) for row in found]
        return np.asarray(self.shares[rows][place.reshape(-1)])
