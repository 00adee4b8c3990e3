"""All learners' values for one target, with intervals, and how they compare.

`lines` and `needed` say, before the second pass, which estimators a target needs: one for every
requested learner, and the basic ones that findings rest on. `table` makes values of their sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.engine.learner import Learner
from steadytd.evaluation.action_equations import Support
from steadytd.evaluation.closed_form import mean_matrix
from steadytd.evaluation.curve import Curve
from steadytd.evaluation.equations import LSTD, Equations, Form
from steadytd.evaluation.estimators import Drl, Estimator, Fqe, Pdis, Snpdis, Solved
from steadytd.evaluation.evidence import Evidence
from steadytd.evaluation.follow.online import Followed, with_numbers
from steadytd.evaluation.intervals import NONE, SAME, Estimate, Interval, student
from steadytd.evaluation.overlap import Overlap
from steadytd.evaluation.passes import Plan
from steadytd.evaluation.requests import Kind, Request
from steadytd.evaluation.rows import GROUPS
from steadytd.evaluation.rule import Selection
from steadytd.evaluation.stability import EIGENVALUE_RANK, Stability, pencil

CHECKED = 0.99  # level of the intervals of differences: few false alarms among many comparisons
REFERENCE, SELECTED, DOUBLY_ROBUST = Solved.name, Drl.name, Drl(1.0).label
NAN = float("nan")


@dataclass(frozen=True)
class Value:
    """One row of the results.

    `lo` and `hi` are the 95 % interval of the learner's fixed point (of the estimate itself for
    importance sampling), around `fixed_point`; an online learner's `value` is where it ended.
    `stable` says whether the learner leads to its fixed point (None: it has none, or not known).
    `lam` is that of `drl`.
    """

    target: str
    learner: str
    value: float
    lo: float
    hi: float
    stable: bool | None
    eta: float | None
    kind: Kind
    alpha: float | None = None
    ratio: float | None = None
    fixed_point: float | None = None
    diverged: int | None = None
    lam: float | None = None
    recommended: bool = False

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return dict(vars(self))

    @property
    def interval(self) -> Interval:
        """The two limits."""
        return Interval(self.lo, self.hi)


@dataclass(frozen=True)
class Difference:
    """How far the fixed points of two learners are apart, with a 99 % interval."""

    target: str
    learner: str
    other: str
    difference: float
    lo: float
    hi: float
    stderr: float

    @property
    def agree(self) -> bool | None:
        """Whether the difference may be 0; None where there is no interval."""
        known = math.isfinite(self.lo) and math.isfinite(self.hi)
        return self.lo <= 0.0 <= self.hi if known else None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "agree": self.agree}


@dataclass
class TargetValues:
    """What the learners say of one target.

    `selection` is the estimate that the rule selects, `curve` DRL(lam) for every lam, and `omega`
    the weights of the marginal ratio x(s).omega. `reference` is the value of TD's fixed point with
    its interval, and `unsettled` the spectral radius of iterations (`fqe`) that have not settled.
    """

    name: str
    overlap: Overlap
    stability: Stability
    values: list[Value]
    differences: list[Difference] = field(repr=False)
    weights: dict[str, Floats] = field(repr=False)
    selection: Selection
    curve: Curve = field(repr=False)
    reference: tuple[float, Interval]
    forms: dict[str, Form] = field(repr=False)  # of the learners' fixed points
    without_penalty: dict[str, float]  # their values at eta = 0
    omega: Floats = field(repr=False)
    support: Support | None  # of the target's actions, where their probabilities are known
    unsettled: dict[str, float]

    def row(self, learner: str) -> Value:
        """The row of a learner."""
        return next(v for v in self.values if v.learner == learner)

    @property
    def solved(self) -> list[str]:
        """The solved learners whose numbers are the usual or automatic ones, the best first.

        That is the reference, then those of its system (a penalty aside), then the others.
        """
        usual = [v.learner for v in self.values if v.kind == "solved" and ":" not in v.learner]

        def rank(name: str) -> int:
            return 0 if name == REFERENCE else 1 + (self.forms[name].system != LSTD.system)

        return sorted(usual, key=rank)


@dataclass(frozen=True)
class Line:
    """A requested learner: its row without an interval, and its estimator if it has one.

    An online learner's estimator is that of its fixed point; `weights` are where it ended.
    """

    row: Value
    estimator: Estimator | None
    weights: Floats | None = None

    @property
    def form(self) -> Form | None:
        """The form of a solved fixed point."""
        return self.estimator.form if isinstance(self.estimator, Solved) else None


def lines(
    e: Equations,
    plan: Plan,
    target: int,
    requested: Sequence[Request],
    ended: Sequence[Followed],
    stability: Stability,
) -> list[Line]:
    """The requested learners with their numbers; `ended` are the online ones, in order."""
    online = iter(ended)
    result = []
    for one in requested:
        row = Value(stability.target, one.label, NAN, NAN, NAN, None, None, one.kind)
        if one.learner is None:
            result.append(Line(row, one.estimator))
            continue
        lane = next(online) if one.kind == "online" else None
        learner = lane.learner if lane is not None else with_numbers(one.learner, stability)
        eta, form = _number(learner, one.penalty or "eta"), None
        if one.system is not None:
            penalty = eta or 0.0 if one.penalty else 0.0
            form = Form(plan.systems.index(one.system), penalty, _ridge(learner))
        row = replace(
            row,
            eta=eta,
            ratio=_number(learner, "ratio"),
            stable=True if lane is None else _stable(e, target, one, learner, form),
        )
        if lane is not None:
            value = float(e.start_mean @ lane.weights) if lane.diverged is None else NAN
            alpha = _number(learner, "alpha")
            row = replace(row, value=value, alpha=alpha, diverged=lane.diverged)
        solved = None if form is None else Solved(form)
        result.append(Line(row, solved, None if lane is None else lane.weights))
    return result


def _number(learner: Learner, name: str) -> float | None:
    return float(learner.values[name]) if name in learner.values else None


def _ridge(learner: Learner) -> float:
    return float(learner.values.get("ridge", 0.0)) if learner.law.block is not None else 0.0


def _stable(
    e: Equations, target: int, one: Request, learner: Learner, form: Form | None
) -> bool | None:
    """Whether the mean update of an online learner leads to its fixed point, by the log's sums."""
    if one.fixed_point is None or form is None or e.rank > EIGENVALUE_RANK:
        return None
    M = mean_matrix(learner, one.fixed_point.decays)
    if M is None:
        return None
    p = pencil(e, target)
    A = e.sums.matrix(e.sums.column(target, form.system), np.ones(GROUPS))
    return M.stable(p.Q.T @ A @ p.Q / float(e.rows.sum()), p.G)


def basic(episodes: bool) -> dict[str, Estimator]:
    """The estimators that findings rest on, by name: those that a log allows."""
    sampling = {"pdis": Pdis(), "snpdis": Snpdis(), DOUBLY_ROBUST: Drl(1.0)} if episodes else {}
    return {REFERENCE: Solved(), **sampling}


def needed(some: Sequence[Line], episodes: bool) -> list[Estimator]:
    """All estimators that the values of a target need."""
    requested = [line.estimator for line in some if line.estimator]
    plain = [Solved(form._replace(eta=0.0)) for line in some if (form := line.form) and form.eta]
    return [*basic(episodes).values(), *requested, *plain]


def table(
    log: Evidence,
    target: int,
    some: Sequence[Line],
    about: tuple[Overlap, Stability],
    selection: Selection,
) -> TargetValues:
    """The values of all learners for one target; that of `drl` is selected by the rule."""
    e, (overlap, stability) = log.equations, about
    estimates: dict[str, Estimate] = {}  # by the estimator's label

    def estimate(one: Estimator) -> Estimate:
        if one.label not in estimates:
            with np.errstate(all="ignore"):
                estimates[one.label] = one.estimate(log, target)
        return estimates[one.label]

    rows = []
    weights: dict[str, Floats] = {}
    forms: dict[str, Form] = {}
    unsettled: dict[str, float] = {}
    listed: dict[str, Estimator] = {}  # that are compared with each other
    for line in some:
        row, one, s = line.row, line.estimator, selection
        if row.learner == SELECTED:
            one = Drl(s.lam)
            row = replace(row, value=s.value, fixed_point=s.value, lo=s.lo, hi=s.hi, lam=s.lam)
        elif one is not None:
            row = _finished(row, one, estimate(one))
        if isinstance(one, Fqe):
            row, radius = _iterated(log, target, one, row)
            unsettled |= {} if radius is None else {row.learner: radius}
        if line.form is not None:
            forms[row.learner] = line.form
            weights[row.learner] = e.weights(target, line.form)
        if line.weights is not None:
            weights[row.learner] = line.weights
        rows.append(row)
        if one is not None and row.kind != "action":
            listed[row.learner] = one
    for name, one in basic(e.where == "start").items():
        listed.setdefault(name, one)
    reference, pair, by_action = Solved(), e.solution(target), log.first.by_action
    support = None
    if by_action is not None and target in by_action.places:
        support = by_action.support(by_action.places.index(target))
    return TargetValues(
        name=overlap.target,
        overlap=overlap,
        stability=stability,
        values=rows,
        differences=_differences(
            overlap.target,
            [(name, one.label, estimate(one)) for name, one in listed.items()],
            log.n_units,
        ),
        weights=weights,
        selection=selection,
        curve=log.curves[target],
        reference=(estimate(reference).value, reference.interval(estimate(reference))),
        forms=forms,
        without_penalty={
            name: estimate(Solved(form._replace(eta=0.0))).value
            for name, form in forms.items()
            if form.eta
        },
        omega=np.full(e.features, np.nan) if pair is None else pair.beta,
        support=support,
        unsettled=unsettled,
    )


def _finished(row: Value, one: Estimator, found: Estimate) -> Value:
    limits = one.interval(found)
    changed: dict[str, Any] = {"lo": limits.lo, "hi": limits.hi, "fixed_point": found.value}
    if row.kind != "online" or (row.diverged is None and np.isnan(row.value)):
        changed["value"] = found.value
    return replace(row, **changed, lam=found.lam)


def _iterated(log: Evidence, target: int, one: Fqe, row: Value) -> tuple[Value, float | None]:
    """The row of an iteration; its spectral radius where it has not settled."""
    with np.errstate(all="ignore"):
        fitted = one.fitted(log, target)
    row = replace(
        row,
        stable=fitted.stable,
        diverged=None if np.isfinite(fitted.value) else fitted.iterations,
        fixed_point=one.lstdq_value(log, target),
    )
    return row, None if fitted.settled and fitted.radius < 1.0 else fitted.radius


def _differences(
    target: str, listed: list[tuple[str, str, Estimate]], units: int
) -> list[Difference]:
    """Paired over units; the same number up to rounding is no difference."""
    pairs = [
        (one, other) for i, one in enumerate(listed) for other in listed[:i] if one[1] != other[1]
    ]
    if units < 2 or not pairs:
        return []
    t, rows = student(0.5 + CHECKED / 2.0, units - 1), []
    for (name, _, a), (other, _, b) in pairs:
        with np.errstate(over="ignore", invalid="ignore"):
            apart = a.minus(b)
        error = apart.stderr
        reach = t * error + SAME * max(abs(a.value), abs(b.value))
        known = math.isfinite(apart.value) and math.isfinite(error)
        limits = Interval(apart.value - reach, apart.value + reach) if known else NONE
        rows.append(Difference(target, name, other, apart.value, *limits, error))
    return rows
