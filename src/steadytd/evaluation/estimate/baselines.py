"""The estimators of the evaluation itself, beside the learners: one to compare with, and sampling.

They are found from the sums of every pass, whether or not somebody asks for them, since the
findings rest on them.
"""

from __future__ import annotations

from dataclasses import dataclass

from steadytd.evaluation.estimate.estimators import DR, LSTD, PDIS, SNPDIS, Form


@dataclass(frozen=True)
class Baseline:
    """An estimator: how it is computed, and what its value rests on."""

    name: str
    form: Form
    summary: str
    past_cuts: bool = True  # goes on with the features' values where an episode is cut off


REFERENCE = Baseline("lstd", LSTD, "the fixed point of TD, which rests on the features")
DOUBLY_ROBUST = Baseline(
    "dr", DR, "doubly robust: LSTD's values, corrected by per-decision importance sampling"
)
SAMPLING = (
    Baseline("pdis", PDIS, "per-decision importance sampling", past_cuts=False),
    Baseline("snpdis", SNPDIS, "self-normalised per-decision importance sampling", past_cuts=False),
    DOUBLY_ROBUST,
)  # they need episodes and do not rest on the features; the best one last
BY_SAMPLING = {one.name: one for one in SAMPLING}


def baselines(episodes: bool) -> tuple[Baseline, ...]:
    """Those that a log allows: without episodes only the reference."""
    return (REFERENCE, *SAMPLING) if episodes else (REFERENCE,)
