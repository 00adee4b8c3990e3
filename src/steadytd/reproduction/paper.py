"""What the paper reports: its four figures, and what it says of each learner in them.

Numbers and statements are the paper's own (Section VI); nothing here is a result of ours. Learners
and step sizes are those of the text, or of the authors' notebooks where the text is silent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Statement = Literal["diverges", "converges to zero", "converges", "converges slowly", "oscillates",
                    "worse than perturbed TD", "not close"]  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """One curve: the learner, its name in the legend, and what the paper says about its end."""

    learner: str
    label: str
    says: Statement
    number: float | None = None


@dataclass(frozen=True)
class Figure:
    """One figure of the paper."""

    number: int
    problem: str
    title: str
    steps: int
    claims: tuple[Claim, ...]
    best_error: float | None = None


RUNS = 10
TDC_LABEL, PUBLISHED_LABEL = "TDC", "TDC as published (pi for rho)"

FIGURES = (
    Figure(
        number=1,
        problem="theta2theta",
        title="theta to 2 theta",
        steps=10_000,
        claims=(
            Claim("td:alpha=0.01", "off-policy TD", "diverges"),
            Claim("perturbed_td:alpha=0.01,eta=1", "perturbed TD, eta 1", "converges to zero"),
            Claim("etd:alpha=0.01", "emphatic TD", "converges to zero"),
            Claim("tdc:alpha=0.01,ratio=10", TDC_LABEL, "converges to zero"),
            Claim("tdc_as_published:alpha=0.01,ratio=10", PUBLISHED_LABEL, "converges to zero"),
        ),
    ),
    Figure(
        number=2,
        problem="baird",
        title="Baird's counterexample",
        steps=1_000_000,
        claims=(
            Claim("td:alpha=0.0001", "off-policy TD", "diverges"),
            Claim("perturbed_td:alpha=0.0001,eta=1", "perturbed TD, eta 1", "converges to zero"),
            Claim("etd:alpha=0.0001", "emphatic TD", "oscillates"),
            Claim("tdc:alpha=0.0001,ratio=10", TDC_LABEL, "converges slowly"),
            Claim("tdc_as_published:alpha=0.0001,ratio=10", PUBLISHED_LABEL, "converges slowly"),
        ),
    ),
    Figure(
        number=3,
        problem="three_state",
        title="the three-state chain",
        steps=1_000_000,
        best_error=2.548,
        claims=(
            Claim("td:alpha=0.0001", "off-policy TD", "diverges"),
            Claim("perturbed_td:alpha=0.0001,eta=0.5", "perturbed TD, eta 0.5", "converges", 2.97),
            Claim("etd:alpha=0.0001", "emphatic TD", "worse than perturbed TD"),
            Claim("tdc:alpha=0.0001,ratio=10", TDC_LABEL, "worse than perturbed TD"),
            Claim(
                "tdc_as_published:alpha=0.0001,ratio=10",
                PUBLISHED_LABEL,
                "worse than perturbed TD",
            ),
        ),
    ),
    Figure(
        number=4,
        problem="three_state",
        title="the three-state chain, three penalties",
        steps=1_000_000,
        best_error=2.548,
        claims=(
            Claim("perturbed_td:alpha=0.0001,eta=0.4", "eta 0.4", "diverges"),
            Claim("perturbed_td:alpha=0.0001,eta=0.5", "eta 0.5", "converges", 2.97),
            Claim("perturbed_td:alpha=0.0001,eta=0.6", "eta 0.6", "not close"),
        ),
    ),
)
