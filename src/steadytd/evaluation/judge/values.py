"""All learners' values for one target, with intervals, and how they compare."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.engine.learner import Learner
from steadytd.evaluation.collect.plan import Plan
from steadytd.evaluation.estimate.baselines import (
    CORRECTED,
    DOUBLY_ROBUST,
    REFERENCE,
    baselines,
    estimate,
)
from steadytd.evaluation.estimate.bootstrap import NONE, Interval, student
from steadytd.evaluation.estimate.closed_form import mean_matrix
from steadytd.evaluation.estimate.estimators import DRL, LSTD, NOT_KNOWN, Estimator, Form, HeldOut
from steadytd.evaluation.estimate.methods.by_action import Answer, Support, answer, support
from steadytd.evaluation.estimate.methods.drl import curve
from steadytd.evaluation.estimate.methods.mis import marginal_weights
from steadytd.evaluation.estimate.methods.row_weights import RowWeights
from steadytd.evaluation.estimate.overlap import Overlap
from steadytd.evaluation.estimate.requests import Kind, Request
from steadytd.evaluation.estimate.sandwich import SAME, Estimate, nothing
from steadytd.evaluation.estimate.stability import EIGENVALUE_RANK, Stability, dense_pencil
from steadytd.evaluation.follow.online import Followed
from steadytd.evaluation.follow.pilot import with_numbers
from steadytd.evaluation.judge.rule import Data, Ruled, ruled
from steadytd.evaluation.judge.stated import Stated
from steadytd.evaluation.judge.unseen import Fewer, Larger, Resting, Tries, larger, resting, tries

CHECKED = 0.99  # level of the intervals of differences: few false alarms among many comparisons


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


class ActionAnswers(NamedTuple):
    """What the estimators say that value actions, by label, and what the log shows of actions."""

    support: Support
    answers: dict[str, Answer]


@dataclass
class Judged:
    """What is known of one target.

    `estimates` has the fixed points of the learners asked for and the `basic` ones, with their
    influences by unit; `curve` has DRL(lam) for every lam of the grid; `omega` the weights of the
    marginal ratio x(s).omega; `behavior` is the policy that made the log; `rule` what the rule of
    trust takes. Units of `curve` and `rule` are not joined where they are stretches of episodes.
    `resting` says how many tries it rests on; None where that is not known, or does not matter.
    `larger` are rare rewards that grow where it goes; None where there are none, or all is seen.
    `negative` is the share of the marginal ratio over the log's rows that is below 0, beyond noise.
    """

    name: str
    overlap: Overlap
    stability: Stability
    values: list[Value]
    differences: list[Difference]
    weights: dict[str, Floats]
    basic: dict[str, tuple[float, Interval]] = field(default_factory=dict)
    size: float = 0.0  # root mean square of the reference's value function over the logged states
    held_out: HeldOut = NOT_KNOWN
    forms: dict[str, Form] = field(default_factory=dict)  # of the learners' fixed points
    without_penalty: dict[str, float] = field(default_factory=dict)  # their values at eta = 0
    estimates: dict[str, Estimate] = field(default_factory=dict)
    curve: dict[float, Estimate] = field(default_factory=dict)
    omega: Floats = field(default_factory=lambda: np.empty(0))
    behavior: Estimate = field(default_factory=lambda: nothing(0))
    actions: ActionAnswers | None = None
    resting: Resting | None = None
    larger: Larger | None = None
    negative: float = 0.0
    rule: Ruled = field(kw_only=True)

    def row(self, learner: str) -> Value:
        """The row of a learner."""
        return next(v for v in self.values if v.learner == learner)

    @property
    def reference(self) -> tuple[float, Interval]:
        """What the others are compared with: the value of TD's fixed point, and its interval."""
        return self.basic[REFERENCE.name]

    @property
    def doubly_robust(self) -> tuple[float, Interval]:
        """The same of what does not rest on the features."""
        return self.basic[DOUBLY_ROBUST.name]

    @property
    def solved(self) -> list[str]:
        """The solved learners whose numbers are the usual or automatic ones, the best first.

        That is the reference, then those of its system (a penalty aside), then the others.
        """
        usual = [v.learner for v in self.values if v.kind == "solved" and ":" not in v.learner]

        def rank(name: str) -> int:
            return 0 if name == REFERENCE.name else 1 + (self.forms[name].system != LSTD.system)

        return sorted(usual, key=rank)


class Given(NamedTuple):
    """What the judgement of every target rests on; `whole` has units that are not joined."""

    estimator: Estimator
    whole: Estimator
    plan: Plan
    asked: list[Request]
    outcomes: dict[int, list[Followed]]  # of the online learners, by target
    behavior: Estimate
    own: Estimate  # the behaviour's own scores, with what `behavior` has of w left out
    rows: RowWeights
    stated: Stated | None


def judge(given: Given, target: int, overlap: Overlap, stability: Stability) -> Judged:
    """The values of all learners for one target."""
    e, whole, plan, asked, outcomes, behavior, *_ = given
    found_curve = curve(whole, target)
    rule, tried, grown = _ruled(given, target, overlap.rho_max, found_curve)
    online = iter(outcomes.get(target, []))
    rows: list[Value] = []
    forms: dict[str, Form] = {}
    weights: dict[str, Floats] = {}
    by_action = [one for one in asked if one.kind == "action"]
    for one in asked:
        if one.kind == "action":
            continue
        lane = next(online) if one.kind == "online" else None
        row, form = _row(e, target, plan, one, lane, stability)
        rows.append(row)
        if form == DRL:
            form = form._replace(lam=rule.lam)
            row = replace(row, **_by_rule(rule))
            rows[-1] = row
        if form is not None:
            forms[row.learner] = form
        if lane is not None:
            weights[row.learner] = lane.weights
        elif form is not None and form.kind == "solved":
            weights[row.learner] = e.weights(target, form)
    basic = {one.name: one.form for one in baselines(episodes=e.where == "start")}
    plain = {name: form._replace(eta=0.0) for name, form in forms.items() if form.eta}
    wanted = dict.fromkeys([*forms.values(), *basic.values(), *plain.values()])
    known = {}
    if e is whole and not e.any_cut:
        known = {DRL._replace(lam=lam): one for lam, one in found_curve.items()}
    found = {form: known.get(form) or estimate(e, target, form) for form in wanted}
    for i, row in enumerate(rows):
        form = forms.get(row.learner)
        if form is not None and row.learner != CORRECTED.name:
            rows[i] = _finished(row, found[form])
    listed = list(forms.items()) + [(n, f) for n, f in basic.items() if n not in forms]
    differences = _differences(overlap.target, [(n, f, found[f]) for n, f in listed], e.n_units)
    actions = None
    if plan.by_action is not None and target in plan.by_action.targets:
        found_by_action = {
            one.label: answer((one.name, one.lam), e.units, plan, target, e.where)
            for one in by_action
        }
        place = plan.by_action.targets.index(target)
        actions = ActionAnswers(support(e.units, place), found_by_action)
        rows += [_action_row(overlap.target, name, a) for name, a in found_by_action.items()]
    order = [one.label for one in asked]
    rows.sort(key=lambda row: order.index(row.learner))
    return Judged(
        overlap.target, overlap, stability, rows, differences, weights,
        {name: (found[form].value, found[form].interval()) for name, form in basic.items()},
        _size(e, target), e.held_out(target), forms,
        {name: found[form].value for name, form in plain.items()},
        {name: found[form] for name, form in listed},
        found_curve, marginal_weights(e, target), behavior, actions, tried, grown,
        given.rows.negative(target), rule=rule,
    )  # fmt: skip


def _ruled(
    given: Given, target: int, largest: float, found: dict[float, Estimate]
) -> tuple[Ruled, Resting | None, Larger | None]:
    """What the rule takes of a curve, and what it may miss, where it matters."""
    whole, rows, stated = given.whole, given.rows, given.stated
    least, most = whole.units.extent[:2].tolist()
    divided = bool(whole.units.continues[1:].any())
    data = Data(whole.starts, divided, (least, most))
    if not divided:
        data = data._replace(past=partial(rows.beyond, target), own_past=rows.own_beyond)
    if stated is not None:
        data = data._replace(tries=partial(tries_of, given, target, largest))
    rule = ruled(found, given.own, data)
    if stated is not None or divided:
        return rule, None, None
    grown = larger(rows, target, rule.lam, rule.rare)
    if rule.rare:
        return rule, None, grown
    episodes = rule.weighing.weights * whole.n_starts / whole.n_units
    return rule, resting(rows, target, rule.lam, episodes), grown


def tries_of(given: Given, target: int, largest: float, one: Estimate) -> Tries | None:
    """The rows that say what was not seen of a target, whose largest ratio is `largest`.

    Without sampled rows their weights are taken to be at most that times the largest mean weight of
    a unit.
    """
    e = given.whole
    share = e.starts / e.n_starts
    means = np.nan if one.masses is None else one.masses[share > 0.0] / share[share > 0.0]
    steps = 1.0 / max(1.0 - float(e.units.extent[2]), 1e-300) if e.where == "states" else 1.0
    rows = float(e.units.counts[:, 0].sum())
    fewer = Fewer(steps * largest * float(np.max(means)), rows, e.n_starts)
    return tries(given.rows, target, one.lam or 0.0, given.stated, fewer)


def _by_rule(rule: Ruled) -> dict[str, Any]:
    """The numbers of the row of plain `drl`."""
    lo, hi = rule.interval if rule.known else NONE
    return {"value": rule.value, "fixed_point": rule.value, "lo": lo, "hi": hi, "lam": rule.lam}


def _action_row(target: str, learner: str, a: Answer) -> Value:
    return Value(
        target, learner, a.value, *a.interval, a.stable, None, "action",
        fixed_point=a.fixed_point, diverged=a.diverged,
    )  # fmt: skip


def _differences(
    target: str, listed: list[tuple[str, Form, Estimate]], units: int
) -> list[Difference]:
    """Paired over units; the same number up to rounding is no difference."""
    pairs = [
        (one, other) for i, one in enumerate(listed) for other in listed[:i] if one[1] != other[1]
    ]
    if units < 2 or not pairs:
        return []
    t, rows = student(0.5 + CHECKED / 2.0, units - 1), []
    with np.errstate(over="ignore", invalid="ignore"):
        apart = np.array([a[2].influence - b[2].influence for a, b in pairs])
        errors = np.sqrt((apart**2).sum(axis=1) * units / (units - 1.0)).tolist()
    for ((name, _, a), (other, _, b)), error in zip(pairs, errors, strict=True):
        value, reach = a.value - b.value, t * error + SAME * max(abs(a.value), abs(b.value))
        known = math.isfinite(value) and math.isfinite(error)
        limits = Interval(value - reach, value + reach) if known else NONE
        rows.append(Difference(target, name, other, value, *limits, error))
    return rows


def _size(e: Estimator, target: int) -> float:
    """sqrt(w' G w / rows) for lstd's weights w."""
    w = e.weights(target, LSTD)
    square = float(e.squares(w, w).sum()) / max(float(e.units.counts[:, 0].sum()), 1.0)
    return float(np.sqrt(max(square, 0.0)))


def _finished(row: Value, found: Estimate) -> Value:
    limits = found.interval()
    changed: dict[str, Any] = {"lo": limits.lo, "hi": limits.hi, "fixed_point": found.value}
    if row.kind != "online" or (row.diverged is None and np.isnan(row.value)):
        changed["value"] = found.value
    return replace(row, **changed, lam=found.lam)


def _row(
    e: Estimator, target: int, plan: Plan, one: Request, lane: Followed | None, s: Stability
) -> tuple[Value, Form | None]:
    """A row without its interval, and the form of the learner's fixed point."""
    nan = float("nan")
    if one.learner is None:
        return Value(s.target, one.label, nan, nan, nan, None, None, "sampling"), one.form
    learner = lane.learner if lane is not None else with_numbers(one.learner, s)
    eta, ratio = _number(learner, one.penalty or "eta"), _number(learner, "ratio")
    fixed = None
    if one.system is not None:
        penalty = eta or 0.0 if one.penalty else 0.0
        fixed = Form("solved", plan.systems.index(one.system), penalty, _ridge(learner))
    value, diverged, alpha = nan, None, None
    if lane is not None:
        diverged, alpha = lane.diverged, _number(learner, "alpha")
        value = float(e.start_mean @ lane.weights) if diverged is None else nan
    stable = True if one.kind == "solved" else _stable(e, target, one, learner, fixed)
    row = Value(
        s.target, one.label, value, nan, nan, stable, eta, one.kind, alpha, ratio, None, diverged
    )
    return row, fixed


def _number(learner: Learner, name: str) -> float | None:
    return float(learner.values[name]) if name in learner.values else None


def _ridge(learner: Learner) -> float:
    return float(learner.values.get("ridge", 0.0)) if learner.law.block is not None else 0.0


def _stable(
    e: Estimator, target: int, one: Request, learner: Learner, form: Form | None
) -> bool | None:
    """Whether the mean update of an online learner leads to its fixed point, by the log's sums."""
    if one.fixed_point is None or form is None or e.rank > EIGENVALUE_RANK:
        return None
    M = mean_matrix(learner, one.fixed_point.decays)
    if M is None:
        return None
    p = dense_pencil(e, target)
    rows = float(e.units.counts[:, 0].sum())
    A = p.Q.T @ e.total(target, form.system)[0] @ p.Q / rows
    return M.stable(A, p.G)
