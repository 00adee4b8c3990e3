"""The second pass: scores of all rows with the weights that the first one has given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from steadytd.base.arrays import Bools
from steadytd.evaluation.curve import Curve
from steadytd.evaluation.equations import LSTD, Equations
from steadytd.evaluation.estimators import Drl, DrlQ, Estimator, Solved
from steadytd.evaluation.evidence import Evidence
from steadytd.evaluation.intervals import correlation
from steadytd.evaluation.passes import FirstPass, Plan
from steadytd.evaluation.rows import FOLDS, GROUPS
from steadytd.evaluation.scores import (
    ActionSums,
    ActionValue,
    CurveSums,
    Gradient,
    RowSums,
    SampledReturns,
    SolvedSums,
    Units,
    add_rows,
)
from steadytd.evaluation.sums import TD, Pair
from steadytd.features import FeatureMap

MOST_UNITS = 20_000  # more units are joined, neighbours together
SCORE_BYTES = 200e6  # of the scores of all targets
FEWEST_UNITS = 200
FEWEST_JOINED = 10  # stretches that are left however they are correlated
SECOND_OPERATIONS, FEWEST_SECOND = 4e9, 5000  # of the second map: about a second, but some rows

Sweep = Callable[[Sequence[RowSums], Units], None]
Wanted = Sequence[Sequence[Estimator]]  # of every target


def units_of(plan: Plan, first: FirstPass) -> Units:
    """The units of a log: as many as the scores of all targets leave memory for."""
    division = plan.division
    episodes = int(first.ratios.last[0]) + 1
    before = division.n_stretches if division.stretches else division.units or episodes
    size = 8.0 * len(plan.targets) * (2 * len(plan.lams) + 12)
    most = int(np.clip(SCORE_BYTES / size, FEWEST_UNITS, MOST_UNITS))
    return Units(min(before, most), before, plan.where != "start", plan.average)


def begun(plan: Plan, first: FirstPass) -> list[Evidence]:
    """What the first pass knows of every reward."""
    own, units = map(first.of_reward, range(plan.n_rewards)), units_of(plan, first)
    return [Evidence(plan, one, one.equations(plan), units, r) for r, one in enumerate(own)]


def gather(logs: Sequence[Evidence], estimators: Sequence[Wanted], sweep: Sweep) -> None:
    """The second pass: all that the estimators of all rewards and targets ask for, in one sweep.

    Where episodes are cut off, what units do through w needs another one.
    """
    asked = list(zip(logs, estimators, strict=True))
    programs = [_programs(log, some) for log, some in asked]
    gradients = [_gradients(log, some) for log, some in asked]
    _sweep(logs, programs, gradients, sweep=sweep)
    used = [_take(log, own) for log, own in zip(logs, programs, strict=True)]
    moved = [_through_weights(log, own) for log, own in zip(logs, gradients, strict=True)]
    if any(moved):
        _sweep(logs, moved, sweep=sweep)
    for log, own, mine in zip(logs, moved, used, strict=True):
        n = float(log.starts.sum())
        log.through_weights = {k: one.sum_errors[mine] / n for k, one in own.items()}


def _sweep(logs: Sequence[Evidence], *programs: Sequence[Mapping[Any, Any]], sweep: Sweep) -> None:
    """Let programs add up the rows: several for each reward."""
    found = [(log, one) for some in programs for log, own in zip(logs, some, strict=True)
             for one in own.values()]  # fmt: skip
    for log, one in found:
        one.reward = log.reward
    sweep([one for _, one in found], logs[0].units)


def _programs(log: Evidence, estimators: Wanted) -> dict[tuple[str, int], RowSums]:
    """What the estimators of every target want to be added up, by label and target."""
    plan, e, units = log.plan, log.equations, log.units
    programs: dict[tuple[str, int], RowSums] = {}
    for t, some in enumerate(estimators):
        pairs = _all(e.cross_fitted(t))
        if pairs is not None:
            programs["curve", t] = CurveSums(t, pairs, plan.lams, units)
        means = log.first.ratios.step_means(t)
        programs["returns", t] = SampledReturns(t, *means, units, e.features)
        for one in (Solved(), *some):
            if (one.label, t) not in programs and (made := one.rows(log, t)) is not None:
                programs[one.label, t] = made
    b = e.behavior
    own, lams = _all(e.cross_fitted(b)), (1.0,)
    if plan.average:  # with ratios of 1 a fit to the same rows does no harm
        own, lams = _all([e.solution(b)] * FOLDS), (0.0,)
    zero = [Pair(np.zeros(e.features), np.zeros(e.features))] * FOLDS
    programs["curve", b] = CurveSums(None, own or zero, lams, units)
    return programs


def _take(log: Evidence, programs: Mapping[tuple[str, int], RowSums]) -> Bools:
    """Let the evidence have what its programs have added up; the units that have rows."""
    used: Bools = programs["returns", 0].arrays()["sum_rows"] > 0.0
    for (label, t), program in programs.items():
        if label == "returns":
            log.returns[t] = _sums(program, used)
        elif label != "curve":
            log.sums[label, t] = _sums(program, used)
    log.rows, log.starts = log.returns[0].rows, log.returns[0].starts
    for t in range(len(log.plan.targets)):
        made = programs.get(("curve", t))
        log.curves[t] = _curve(log, None if made is None else _sums(made, used), t)
    mine = _sums(programs["curve", log.equations.behavior], used)
    log.own = mine.scores[0]
    log.own_at_cuts = float(mine.at_cuts[0]) / float(log.starts.sum())
    return used


def second_curves(
    logs: Sequence[Evidence], first: FirstPass, features: FeatureMap
) -> list[dict[int, Curve]]:
    """The curves of all rewards and targets with a second feature map, from sampled episodes.

    Of a large log these are a part. Then a curve is the first one, moved by the difference of both
    maps on the same rows.
    """
    plan, d = logs[0].plan, features.n_features
    most = SECOND_OPERATIONS / (2.0 * d * d * (len(plan.targets) + 2))
    table = first.sample.fewer(int(max(most, FEWEST_SECOND)))
    if table is None:
        return [{} for _ in logs]
    own, other = (table.with_features(one, plan.average) for one in (plan.features, features))
    sums = plan.new_sums(features, (TD,))
    sums.add(other)
    result = []
    for log in logs:
        second = Equations(sums.of_reward(log.reward), plan.where, plan.division)
        found = {}
        for t, curve in log.curves.items():
            values = []
            for e, rows in ((log.equations, own), (second, other)):
                pairs = _all(e.cross_fitted(t))
                if pairs is not None:
                    program = CurveSums(t, pairs, plan.lams, log.units)
                    program.reward = log.reward
                    add_rows(rows, [program], log.units)
                    values.append(program.sum_scores.sum(axis=1) / second.starts.sum())
            if len(values) == 2:
                apart = (values[1] - values[0])[:, None]
                found[t] = replace(curve, scores=curve.scores + apart * curve.starts)
        result.append(found)
    return result


def _all(pairs: list[Pair | None]) -> list[Pair] | None:
    found = [pair for pair in pairs if pair is not None]
    return found if len(found) == len(pairs) else None


def _sums(program: RowSums, used: Any) -> SimpleNamespace:
    """The sums of a program by their names, those by unit without units that have no rows."""
    n = len(used)
    return SimpleNamespace(**{
        name.removeprefix("sum_"): value[..., used] if value.shape[-1:] == (n,) else value
        for name, value in program.arrays().items()
    })  # fmt: skip


def _curve(log: Evidence, sums: Any, target: int) -> Curve:
    lams, n, starts = log.plan.lams, float(log.starts.sum()), log.starts
    if sums is None:
        none = np.full((len(lams), log.n_units), np.nan)
        nan = np.full(len(lams), np.nan)
        return Curve(lams, none, none, nan, nan, starts, nan, 0.0)
    return Curve(
        lams, sums.scores, sums.weights, sums.cut / n, sums.at_cuts / n, starts, sums.largest,
        log.negative(target),
    )  # fmt: skip


def _gradients(log: Evidence, estimators: Wanted) -> dict[tuple[int, str], Gradient]:
    """How J depends on w, of the behaviour and of every DRL(lam) asked for; none without cuts."""
    e = log.equations
    own = e.solution(e.behavior)
    if not log.any_cut or own is None or log.plan.average:
        return {}
    found = {(e.behavior, Drl(1.0).label): Gradient(None, own, 1.0)}
    for t, some in enumerate(estimators) if e.where == "start" else ():
        pair = e.solution(t)
        if pair is None:
            continue
        for one in some:
            if isinstance(one, Drl) and one.lam:
                found[t, one.label] = Gradient(t, pair, one.lam)
            elif isinstance(one, DrlQ):
                found[t, one.label] = Gradient(t, pair, one.lam, one.equations(log, t)[1])
    return found


def _through_weights(
    log: Evidence, gradients: Mapping[tuple[int, str], Gradient]
) -> dict[tuple[int, str], SolvedSums | ActionSums]:
    """What gives eta.(b_u - A_u w), A' eta = sum x_start - the gradient, of every unit."""
    e, ones, by_action = log.equations, np.ones(GROUPS), log.first.by_action
    programs: dict[tuple[int, str], SolvedSums | ActionSums] = {}
    for (t, label), one in gradients.items():
        if one.place is not None and by_action is not None:
            start = by_action.start[:, one.place].sum(axis=0) - one.sum_gradient.ravel()
            theta, eta = by_action.solve(one.place, ones, start)
            value = ActionValue(one.place, theta[None])
            programs[t, label] = ActionSums(value, eta, log.units)
            continue
        pair = e.solve(t, LSTD, ones, e.start.sum(axis=0) - one.sum_gradient[0])
        if pair is not None:
            programs[t, label] = SolvedSums(one.target, pair, log.units)
    return programs


def joined(log: Evidence) -> Evidence:
    """The evidence with stretches joined until they are independent of each other.

    Neighbours are joined while the influences of `lstd` in neighbouring stretches are correlated by
    more than 1/sqrt(k) for one of the targets, k being the number of stretches.
    """
    reference = Solved()
    while log.stretches and log.n_units >= 2 * FEWEST_JOINED:
        found = [reference.estimate(log, t).influence for t in range(len(log.plan.targets))]
        if max(map(correlation, found)) <= 1.0 / np.sqrt(log.n_units):
            break
        log = log.with_units(np.arange(log.n_units) // 2)
    return log
