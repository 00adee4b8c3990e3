"""The estimators of the evaluation itself, beside the learners: a registry of their names.

The reference and those by sampling are found from the sums of every pass, whether or not somebody
asks for them, since the findings rest on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from steadytd.evaluation.estimate.estimators import DRL, LSTD, MIS, PDIS, SNPDIS, Estimator, Form
from steadytd.evaluation.estimate.methods.drl import drl
from steadytd.evaluation.estimate.methods.mis import mis
from steadytd.evaluation.estimate.methods.pdis import pdis
from steadytd.evaluation.estimate.methods.snpdis import snpdis
from steadytd.evaluation.estimate.methods.solved import solved
from steadytd.evaluation.estimate.sandwich import Estimate

METHODS: dict[str, Callable[[Estimator, int, Form], Estimate]] = {
    "solved": solved, "pdis": pdis, "snpdis": snpdis, "mis": mis, "drl": drl,
}  # fmt: skip


def estimate(e: Estimator, target: int, form: Form) -> Estimate:
    """The value of a target by a form, with its influences."""
    return METHODS[form.kind](e, target, form)


@dataclass(frozen=True)
class Baseline:
    """An estimator: how it is computed, and what its value rests on."""

    name: str
    form: Form
    summary: str
    past_cuts: bool = True  # goes on with the features' values where an episode is cut off
    continuing: bool = False  # values logs without episodes too


REFERENCE = Baseline("lstd", LSTD, "the fixed point of TD, which rests on the features", True, True)
MARGINAL = Baseline("mis", MIS, "marginal importance sampling with linear ratios", True, True)
CORRECTED = Baseline(
    "drl", DRL, "LSTD's values, corrected by temporal differences with ratios", True, True
)
DOUBLY_ROBUST = Baseline(
    "drl:lam=1", DRL._replace(lam=1.0), "the same with products of ratios over whole episodes"
)
SAMPLING = (
    Baseline("pdis", PDIS, "per-decision importance sampling", past_cuts=False),
    Baseline("snpdis", SNPDIS, "self-normalised per-decision importance sampling", past_cuts=False),
    DOUBLY_ROBUST,
)  # the best one last
BY_SAMPLING = {one.name: one for one in SAMPLING}
NAMED = {one.name: one for one in (CORRECTED, *SAMPLING[1::-1], MARGINAL)}
DEFAULT = tuple(NAMED)[:3]  # what an evaluation adds where no learner is named
RENAMED = {"dr": "drl:lam=1"}


def baselines(episodes: bool) -> tuple[Baseline, ...]:
    """Those that a log allows."""
    return tuple(one for one in (REFERENCE, *SAMPLING) if episodes or one.continuing)
