"""What the paper reports: its four figures, and what it says of each learner in them.

Numbers and statements are the paper's own (Section VI); nothing here is a result of ours. Learners
and step sizes are those of the text, or of the authors' notebooks where the text is silent. The
paper's TDC curves were made without an importance ratio; TDC with pi (the last notebooks) and TDC
as defined stand beside them, and of those the paper says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from steadytd.reproduction.statements import (
    DIVERGES,
    NOT_CLOSE,
    OSCILLATES,
    SLOWLY,
    TO_ZERO,
    WORSE,
    Statement,
    text_number,
)


@dataclass(frozen=True)
class Claim:
    """One curve: the learner, its name in the legend, and what the paper says about it, if so."""

    learner: str
    label: str
    says: Statement | None = None


@dataclass(frozen=True)
class Figure:
    """One figure of the paper, or one panel of its supplement."""

    name: str  # "Figure 1", "Supplement 2a"
    problem: str
    title: str
    steps: int
    claims: tuple[Claim, ...]
    number: int | None = None  # of a figure of the paper
    axis: tuple[float, float] | None = None  # the linear axis of a panel of the supplement

    @property
    def file_name(self) -> str:
        """The name of its picture."""
        return self.name.lower().replace(" ", "_")


RUNS = 10
TD, ETD = "off-policy TD", "emphatic TD"
NO_RATIO = "TDC, no ratio (paper)"
WITH_PI = "TDC, pi (notebooks)"
AS_DEFINED = "TDC, rho (as defined)"


def tdc(alpha: float, says: Statement, h0: int = 0) -> tuple[Claim, ...]:
    """The three forms of TDC; what the paper says belongs to the first, which made its curves."""
    start = f",h0={h0}" if h0 else ""
    return (
        Claim(f"tdc_as_published:alpha={alpha},ratio=10", NO_RATIO, says),
        Claim(f"tdc_as_published:alpha={alpha},ratio=10{start},weight=pi", WITH_PI),
        Claim(f"tdc:alpha={alpha},ratio=10", AS_DEFINED),
    )


FIGURES = (
    Figure(
        name="Figure 1",
        number=1,
        problem="theta2theta",
        title="theta to 2 theta",
        steps=10_000,
        claims=(
            Claim("td:alpha=0.01", TD, DIVERGES),
            Claim("perturbed_td:alpha=0.01,eta=1", "perturbed TD, eta 1", TO_ZERO),
            Claim("etd:alpha=0.01", ETD, TO_ZERO),
            *tdc(0.01, TO_ZERO),
        ),
    ),
    Figure(
        name="Figure 2",
        number=2,
        problem="baird",
        title="Baird's counterexample",
        steps=1_000_000,
        claims=(
            Claim("td:alpha=0.0001", TD, DIVERGES),
            Claim("perturbed_td:alpha=0.0001,eta=1", "perturbed TD, eta 1", TO_ZERO),
            Claim("etd:alpha=0.0001", ETD, OSCILLATES),
            *tdc(0.0001, SLOWLY, h0=1),
        ),
    ),
    Figure(
        name="Figure 3",
        number=3,
        problem="three_state",
        title="the three-state chain",
        steps=1_000_000,
        claims=(
            Claim("td:alpha=0.0001", TD, DIVERGES),
            Claim("perturbed_td:alpha=0.0001,eta=0.5", "perturbed TD, eta 0.5", text_number(2.97)),
            Claim("etd:alpha=0.0001", ETD, WORSE),
            *tdc(0.0001, WORSE),
        ),
    ),
    Figure(
        name="Figure 4",
        number=4,
        problem="three_state",
        title="the three-state chain, three penalties",
        steps=1_000_000,
        claims=(
            Claim("perturbed_td:alpha=0.0001,eta=0.4", "eta 0.4", DIVERGES),
            Claim("perturbed_td:alpha=0.0001,eta=0.5", "eta 0.5", text_number(2.97)),
            Claim("perturbed_td:alpha=0.0001,eta=0.6", "eta 0.6", NOT_CLOSE),
        ),
    ),
)
