"""Holds a measured error against exact theory and against the paper, and says why they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from steadytd.base.arrays import Floats
from steadytd.base.json import plain
from steadytd.base.wording import interval
from steadytd.engine.learner import Learner
from steadytd.learners import learner as make_learner
from steadytd.mdp.problem import Problem
from steadytd.reproduction.paper import Claim, Figure
from steadytd.runs.result import Result, standard_error
from steadytd.theory.dynamics import (
    best_error,
    decay_rates,
    fixed_point,
    follow_on_growth,
    mean_weights,
)
from steadytd.theory.exact import exact_error

ZERO = 1e-6  # errors below this count as zero: all three problems start above 1
STANDARD_ERRORS = 4.0  # how far the mean of the runs may be from theory: 1 false alarm in 10,000
PAPER_TOLERANCE = 0.01  # relative; the paper gives three digits and no spread
SINGLE_RUN_TOLERANCE = 0.1  # relative; one run has no standard error


@dataclass(frozen=True)
class Theory:
    """What theory says of a learner after n steps.

    The expected error lies in [low, high]: exact bounds where the moments close, otherwise both
    are the error of the mean dynamics (`exact` is then false).
    """

    low: float
    high: float
    exact: bool
    mean_dynamics: float
    fixed_point: float
    slowest_rate: float
    best: float
    variance_growth: float | None

    @property
    def stable(self) -> bool:
        """Whether the mean update leads to the fixed point."""
        return self.slowest_rate > 0.0


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    figure: int
    problem: str
    learner: str
    label: str
    quantity: str
    steps: int
    runs: int
    paper: float | None
    paper_says: str
    theory: float
    theory_low: float
    theory_high: float
    theory_exact: bool
    mean_dynamics: float
    fixed_point_error: float
    stable: bool
    measured: float
    stderr: float | None
    agrees: bool
    because: str
    note: str

    def to_dict(self) -> dict[str, Any]:
        """The row for JSON: a number that is not finite becomes null."""
        row: dict[str, Any] = plain(asdict(self))
        return row


def predict(problem: Problem, learner: Learner, steps: int) -> Theory:
    """Fixed point, stability, and the expected error after n steps."""
    averaged = float(problem.error(mean_weights(problem, learner, steps)))
    exact = exact_error(problem, learner, steps)
    bounds = sorted(exact[:2]) if exact else [averaged, averaged]
    return Theory(
        low=bounds[0],
        high=bounds[1],
        exact=exact is not None,
        mean_dynamics=averaged,
        fixed_point=float(problem.error(fixed_point(problem, learner))),
        slowest_rate=float(decay_rates(problem, learner).real.min()),
        best=best_error(problem),
        variance_growth=follow_on_growth(problem) if "F" in learner.law.memory else None,
    )


def judge(figure: Figure, claim: Claim, result: Result, theories: Mapping[str, Theory]) -> Row:
    """The table's row for one curve of one figure."""
    learner = make_learner(claim.learner)
    theory = theories[str(learner)]
    errors = _errors(result, learner)
    measured, stderr = float(errors[:, -1].mean()), standard_error(errors[:, -1])
    because = [
        *_against_theory(theory, measured, stderr),
        *_against_number(claim, measured),
        *_against_statement(figure, claim, result, theory),
    ]
    return Row(
        figure=figure.number,
        problem=figure.problem,
        learner=str(learner),
        label=claim.label,
        quantity="final_error",
        steps=figure.steps,
        runs=len(errors),
        paper=claim.number,
        paper_says=claim.says,
        theory=theory.low,
        theory_low=theory.low,
        theory_high=theory.high,
        theory_exact=theory.exact,
        mean_dynamics=theory.mean_dynamics,
        fixed_point_error=theory.fixed_point,
        stable=theory.stable,
        measured=measured,
        stderr=stderr,
        agrees=not because,
        because=" ".join(because),
        note=_note(learner, theory, figure),
    )


def _errors(result: Result, learner: Learner) -> Floats:
    found: Floats = result.errors[[str(x) for x in result.learners].index(str(learner))]
    return found


def _against_theory(theory: Theory, measured: float, stderr: float | None) -> list[str]:
    if max(theory.high, measured) < ZERO:
        return []
    slack = SINGLE_RUN_TOLERANCE * theory.high if stderr is None else STANDARD_ERRORS * stderr
    heavy = theory.variance_growth is not None and theory.variance_growth >= 1.0
    near = measured <= 2.0 * theory.high  # a huge spread over the runs must not excuse a miss
    if theory.low - slack <= measured <= theory.high + slack and (near or not heavy):
        return []
    if heavy:
        return [
            f"the mean update would be at {theory.mean_dynamics:.3g} by now, but the follow-on "
            f"trace has infinite variance here (a step multiplies its second moment by up to "
            f"{theory.variance_growth:.2g}): rare bursts throw single runs far off, and the mean "
            "of a few runs does not show the expectation."
        ]
    return [
        f"theory expects {interval(theory.low, theory.high)}; "
        f"the runs lie more than {STANDARD_ERRORS:g} standard errors away."
    ]


def _against_number(claim: Claim, measured: float) -> list[str]:
    if claim.number is None or abs(measured / claim.number - 1.0) <= PAPER_TOLERANCE:
        return []
    return [f"the paper reports {claim.number:g}, more than {PAPER_TOLERANCE:.0%} away."]


def _against_statement(figure: Figure, claim: Claim, result: Result, theory: Theory) -> list[str]:
    """Empty if the runs show what the paper says of this learner; else what they show instead."""
    errors = _errors(result, make_learner(claim.learner))
    start, middle, end = (float(errors[:, i].mean()) for i in (0, errors.shape[1] // 2, -1))
    spread = float(errors[:, -1].std()) / end if end > 0.0 else 0.0
    perturbed = next(c for c in figure.claims if c.learner.startswith("perturbed_td"))
    rival = float(_errors(result, make_learner(perturbed.learner))[:, -1].mean())
    match claim.says:
        case "diverges":
            shown = end > start and end > middle and not theory.stable
        case "converges to zero":
            if end < ZERO:
                return []
            later = predict(result.task.base, make_learner(claim.learner), 10 * figure.steps)
            return [
                f"the paper's curve ends at zero, but after {figure.steps:,} steps the learner has "
                f"not arrived: {end:.3g}. The authors' notebooks run {10 * figure.steps:,} steps, "
                f"where theory expects {interval(later.low, later.high)}."
            ]
        case "converges":
            shown = theory.stable
        case "converges slowly":
            shown = theory.stable and ZERO < end < start
        case "oscillates":
            shown = end > ZERO and (len(errors) == 1 or spread > 0.3)
        case "not close":
            shown = theory.stable and end > 1.5 * theory.best
        case "worse than perturbed TD":
            shown = end > rival
    return [] if shown else [f"the paper says that it {claim.says}; the runs end at {end:.4g}."]


def _note(learner: Learner, theory: Theory, figure: Figure) -> str:
    """What a reader should know about this learner here, from the numbers."""
    notes = []
    if learner.name == "tdc_as_published":
        notes.append("Weighted by pi where rho = pi/mu is meant, as in the authors' notebooks.")
    time = 1.0 / (float(learner["alpha"]) * abs(theory.slowest_rate))
    if not theory.stable:
        notes.append(
            f"Unstable: a mode of the mean update grows e-fold every {time:,.0f} steps, "
            f"away from the fixed point (error {theory.fixed_point:.3g})."
        )
    elif time > figure.steps / 5.0:
        notes.append(
            f"Stable but slow: its slowest mode shrinks e-fold in {time:,.0f} steps; "
            f"the fixed point has error {theory.fixed_point:.4g}."
        )
    elif theory.fixed_point > 1.5 * theory.best + ZERO:
        notes.append(
            f"Its fixed point has error {theory.fixed_point:.4g}, "
            f"the best linear fit {theory.best:.4g}."
        )
    return " ".join(notes)
