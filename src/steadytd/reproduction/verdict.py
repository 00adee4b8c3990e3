"""Two verdicts per curve: measured against theory, and measured against what the paper says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.files import cached_arrays
from steadytd.base.identity import digest, modules
from steadytd.base.json import plain
from steadytd.base.numbers import count, interval, number, with_error
from steadytd.engine.learner import Learner
from steadytd.learners import learner as make_learner
from steadytd.mdp.problem import Problem
from steadytd.reproduction.paper import AS_DEFINED, NO_RATIO, WITH_PI, Claim, Figure
from steadytd.reproduction.statements import Evidence, Spread
from steadytd.runs.result import Result, standard_error
from steadytd.theory.dynamics import best_error, decay_rates, fixed_point, mean_weights
from steadytd.theory.exact import exact_error
from steadytd.theory.variance import variance

ZERO = 1e-6  # errors below this count as zero: all three problems start above 1
STANDARD_ERRORS = 4.0  # how far the mean of the runs may be from theory: of 10 runs, 1 in 300 is
SINGLE_RUN_TOLERANCE = 0.1  # relative; one run has no standard error

Kind = Literal["exact", "mean dynamics", "many runs"]


@dataclass(frozen=True)
class Theory:
    """What theory says of a learner after n steps.

    The mean error of the runs is expected in [low, high]. `kind` says what these are: "exact",
    bounds of the expected error where the moments close; "mean dynamics", the error of the mean
    weights; "many runs", where 99 of 100 means of as many runs as are shown lie (`spread`).
    """

    low: float
    high: float
    kind: Kind
    mean_dynamics: float
    fixed_point: float
    slowest_rate: float
    best: float
    growth: float  # of the second moment of what is carried over, in one step
    spread: Spread | None = None

    @property
    def stable(self) -> bool:
        """Whether the mean update leads to the fixed point."""
        return self.slowest_rate > 0.0

    def seen(self, spread: Spread | None) -> Theory:
        """With what many runs say, where the moments do not close."""
        if spread is None or self.kind == "exact":
            return replace(self, spread=spread)
        low, high = spread.likely(spread.means[:, -1])
        return replace(self, low=low, high=high, kind="many runs", spread=spread)


@dataclass(frozen=True)
class Row:
    """One line of the table. `agrees_paper` is None where the paper says nothing."""

    figure: int | None
    name: str
    problem: str
    learner: str
    label: str
    quantity: str
    steps: int
    runs: int
    paper: float | None
    paper_says: str | None
    theory: float
    theory_low: float
    theory_high: float
    theory_exact: bool
    theory_kind: Kind
    single_low: float | None
    single_high: float | None
    mean_dynamics: float
    fixed_point_error: float
    stable: bool
    measured: float
    stderr: float | None
    agrees_theory: bool
    agrees_paper: bool | None
    agrees: bool
    because: str
    note: str

    def to_dict(self) -> dict[str, Any]:
        """The row for JSON: a number that is not finite becomes null."""
        row: dict[str, Any] = plain(asdict(self))
        return row


def predict(problem: Problem, learner: Learner, steps: int) -> Theory:
    """Fixed point, stability, and where the mean error of the runs should be after n steps."""
    averaged = float(problem.error(mean_weights(problem, learner, steps)))
    exact = exact_bounds(problem, learner, steps)
    low, high = averaged, averaged
    kind: Kind = "mean dynamics"
    if exact is not None:
        (low, high), kind = exact, "exact"
    return Theory(
        low=low,
        high=high,
        kind=kind,
        mean_dynamics=averaged,
        fixed_point=float(problem.error(fixed_point(problem, learner))),
        slowest_rate=float(decay_rates(problem, learner).real.min()),
        best=best_error(problem),
        growth=variance(problem, learner).growth,
    )


def exact_bounds(problem: Problem, learner: Learner, steps: int) -> tuple[float, float] | None:
    """Where the expected error lies, if the moments close; kept, since powers take seconds."""

    def make() -> dict[str, Floats]:
        exact = exact_error(problem, learner, steps)
        return {"bounds": np.array([] if exact is None else sorted(exact[:2]))}

    identity = digest(modules("steadytd.theory.exact"), problem, learner, steps)
    bounds = cached_arrays(f"exact.{problem.name}.{learner.name}", identity, make)["bounds"]
    return (float(bounds[0]), float(bounds[1])) if len(bounds) else None


def judge(figure: Figure, claim: Claim, result: Result, theories: Mapping[str, Theory]) -> Row:
    """The table's row for one curve of one figure."""
    learner = make_learner(claim.learner)
    theory = theories[str(learner)]
    errors = _errors(result, learner)
    measured, stderr = float(errors[:, -1].mean()), standard_error(errors[:, -1])
    off_theory = _against_theory(theory, measured, stderr)
    off_paper = _against_paper(figure, claim, result, theory)
    spread = theory.spread
    single = None if spread is None else spread.likely(spread.single[:, -1])
    return Row(
        figure=figure.number,
        name=figure.name,
        problem=figure.problem,
        learner=str(learner),
        label=claim.label,
        quantity="final_error",
        steps=figure.steps,
        runs=len(errors),
        paper=claim.says.number if claim.says else None,
        paper_says=claim.says.text if claim.says else None,
        theory=theory.low if spread is None else float(np.median(spread.means[:, -1])),
        theory_low=theory.low,
        theory_high=theory.high,
        theory_exact=theory.kind == "exact",
        theory_kind=theory.kind,
        single_low=single[0] if single else None,
        single_high=single[1] if single else None,
        mean_dynamics=theory.mean_dynamics,
        fixed_point_error=theory.fixed_point,
        stable=theory.stable,
        measured=measured,
        stderr=stderr,
        agrees_theory=not off_theory,
        agrees_paper=None if claim.says is None else not off_paper,
        agrees=not (off_theory or off_paper),
        because=" ".join(filter(None, (off_theory, off_paper))),
        note=_note(claim, learner, theory, figure),
    )


def _errors(result: Result, learner: Learner) -> Floats:
    found: Floats = result.errors[[str(x) for x in result.learners].index(str(learner))]
    return found


def _against_theory(theory: Theory, measured: float, stderr: float | None) -> str:
    """Empty if the mean of the runs is where theory expects it; else how far off it is."""
    if max(theory.high, measured) < ZERO:
        return ""
    expected = interval(theory.low, theory.high)
    if theory.spread is not None:
        inside = theory.low <= measured <= theory.high
        return "" if inside else (
            f"99 of 100 such means lie in {expected}; this one is {number(measured)}."
        )  # fmt: skip
    slack = SINGLE_RUN_TOLERANCE * theory.high if stderr is None else STANDARD_ERRORS * stderr
    if theory.low - slack <= measured <= theory.high + slack:
        return ""
    return (
        f"theory expects {expected}; the runs are at {with_error(measured, stderr)}, more than "
        f"{number(slack)} away."
    )


def _against_paper(figure: Figure, claim: Claim, result: Result, theory: Theory) -> str:
    """Empty if the runs show what the paper says of this learner; else what they show instead."""
    if claim.says is None:
        return ""
    perturbed = next(c for c in figure.claims if c.learner.startswith("perturbed_td"))
    evidence = Evidence(
        steps=result.steps,
        errors=_errors(result, make_learner(claim.learner)),
        stable=theory.stable,
        best=theory.best,
        rival=float(_errors(result, make_learner(perturbed.learner))[:, -1].mean()),
        spread=theory.spread,
    )
    if claim.says.holds(evidence):
        return ""
    return f"the paper: {claim.says.text}; here the runs end at {number(evidence.end)}."


WHICH = {
    NO_RATIO: "No importance ratio, so it learns the value of the behaviour policy.",
    WITH_PI: "Weighted by pi where rho = pi/mu is meant. The paper's figures do not show it.",
    AS_DEFINED: "The paper's figures do not show it.",
}


def _note(claim: Claim, learner: Learner, theory: Theory, figure: Figure) -> str:
    """What a reader should know about this learner here, from the numbers."""
    notes = [WHICH[claim.label]] if claim.label in WHICH else []
    if learner.values.get("h0", 0.0) == 1.0:
        notes.append("Its second vector starts at w0.")
    time = 1.0 / (float(learner["alpha"]) * abs(theory.slowest_rate))
    if theory.spread is not None:
        runs = interval(*theory.spread.likely(theory.spread.single[:, -1]))
        notes.append(
            "Its follow-on trace has infinite variance (a step multiplies the second moment by up "
            f"to {number(theory.growth, 2)}), so a few runs do not show the mean. 99 of 100 "
            f"single runs end in {runs}. The mean update alone would end at "
            f"{number(theory.mean_dynamics)}."
        )
    elif not theory.stable:
        notes.append(
            f"Unstable: a mode of the mean update grows e-fold every {count(time, 'step')}, "
            f"away from the fixed point (error {number(theory.fixed_point)})."
        )
    elif time > figure.steps / 5.0:
        notes.append(
            f"Stable but slow: its slowest mode shrinks e-fold in {count(time, 'step')}; "
            f"the fixed point has error {number(theory.fixed_point)}."
        )
    elif theory.fixed_point > 1.5 * theory.best + ZERO:
        notes.append(
            f"Its fixed point has error {number(theory.fixed_point)}, "
            f"the best linear fit {number(theory.best)}."
        )
    return " ".join(notes)
