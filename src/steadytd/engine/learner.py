"""A learner: a law with its hyper-parameters filled in. Immutable, hashable, printable."""

from __future__ import annotations

from numpy.typing import ArrayLike

from steadytd.engine.online import OnlineLearner
from steadytd.engine.settings import Settings, parse_params, plain, variant_names

__all__ = ["Learner", "parse_params", "plain", "variant_names"]


class Learner(Settings):
    """A law and its hyper-parameters, checked; see `Settings`, which is all that a block needs.

    `str(learner)` is its text form: the name, then every hyper-parameter that has no default or
    differs from it. Two learners are equal when their laws and hyper-parameters are.
    """

    __slots__ = ()

    def start(self, n_features: int, w0: ArrayLike | None = None) -> OnlineLearner:
        """A running learner for a live stream, its weights at `w0` (zero by default)."""
        return OnlineLearner(self, n_features, w0)
