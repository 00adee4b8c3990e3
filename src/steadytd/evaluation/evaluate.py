"""`evaluate`: what target policies are worth, from a log of another policy, in one pass."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from steadytd.base.errors import InputError, unknown
from steadytd.base.numbers import one_seed, whole
from steadytd.base.parallel import single_threaded
from steadytd.engine.law import Law
from steadytd.engine.learner import Learner
from steadytd.evaluation.behavior.opened import check_hidden, opened
from steadytd.evaluation.collect.plan import ActionPlan, Plan, Where, blocks_for
from steadytd.evaluation.collect.rows.table import table_fits
from steadytd.evaluation.collect.statistics import halved, units
from steadytd.evaluation.estimate.baselines import estimate
from steadytd.evaluation.estimate.bootstrap import resamples
from steadytd.evaluation.estimate.estimators import LSTD, Estimator
from steadytd.evaluation.estimate.methods.behavior import behavior_estimate
from steadytd.evaluation.estimate.methods.by_action import BY_ACTION, FEW, numbers_per_block
from steadytd.evaluation.estimate.methods.drl import at, needed
from steadytd.evaluation.estimate.methods.row_weights import RowWeights
from steadytd.evaluation.estimate.overlap import histogram, overlap
from steadytd.evaluation.estimate.requests import Request, requests, with_drl
from steadytd.evaluation.estimate.sandwich import neighbours
from steadytd.evaluation.estimate.sparse.estimator import estimator
from steadytd.evaluation.estimate.stability import OverEta, Resampled, assess, path, path_rows
from steadytd.evaluation.follow.local import Passed, Progress, Work, follow
from steadytd.evaluation.follow.online import Followed
from steadytd.evaluation.follow.pilot import PILOT_ROWS
from steadytd.evaluation.judge.decide import Counted, LoggedValue, Side, compared
from steadytd.evaluation.judge.log_findings import LogFacts, about_log
from steadytd.evaluation.judge.probability_findings import about_probabilities, about_sensitivity
from steadytd.evaluation.judge.recommend import recommend
from steadytd.evaluation.judge.rule import noise
from steadytd.evaluation.judge.silence import silence
from steadytd.evaluation.judge.stated import Stated, check_stated, stated_range
from steadytd.evaluation.judge.target_findings import about_target
from steadytd.evaluation.judge.values import Given, Judged, judge, tries_of
from steadytd.evaluation.probabilities import Asked, Probabilities, calibration, examine
from steadytd.evaluation.result import Evaluation
from steadytd.evaluation.visits import visits
from steadytd.features import FeatureMap, feature_map
from steadytd.logs.columns import ColumnMap
from steadytd.logs.log import Log
from steadytd.logs.policies import Policy

SAMPLE = 20_000  # observations that the feature map is fitted on
PART_ROWS = 1_000_000  # of a part, about, where a cluster takes them
MOST_PARTS = 64
BATCH_BYTES = 40e6  # of a batch's features,
SPARSE_BATCH_BYTES, FEWEST_ROWS = 6e6, 500  # and of those that are nearly all 0
FIRST_LOOK = 4096  # rows
ENGINES = ("local", "dask")
WIDE = 64  # features from which on targets share threads: with fewer they wait for Python's lock
MANY = 10_000  # sampled episodes from which on they do so where those are sorted
FEWEST_UNITS = 10  # stretches of episodes that are left however they are correlated


def evaluate(
    source: Any,
    *,
    discount: float | None = None,
    targets: Sequence[str] | Mapping[str, Policy] | None = None,
    features: object = "raw",
    learners: Sequence[str | Law | Learner] | str | None = None,
    columns: ColumnMap | None = None,
    behavior: Any = None,
    value_at: Literal["auto", "start", "states"] = "auto",
    reward_range: tuple[float, float] | None = None,
    horizon: int | None = None,
    nothing_hidden: bool = False,
    engine: str = "local",
    address: str | None = None,
    checkpoint: str | Path | None = None,
    parts: int | None = None,
    threads: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    batch_rows: int = 65_536,
) -> Evaluation:
    """Evaluate target policies from a log; see `docs/evaluate.md`.

    `source` is what `open_log` takes, or an open log. `features` is the text form of a feature map,
    a map, or a scikit-learn transformer. `targets` are names of the log's targets (default: all),
    or functions of observations that return the probabilities of all actions. `learners` are names
    or text forms of learners, also `drl`, `snpdis`, `pdis` and `mis`, and where the probabilities
    of all actions are known `lstdq`, `fqe` and `drl_q`; numbers that are not given (alpha, eta,
    ratio, drl's lam) are chosen from the data. `behavior` is such a function for the behaviour
    policy, or "estimate", or a scikit-learn classifier to estimate it with; without it the log must
    have a `behavior_prob`.
    `value_at` says where: at the episodes' first states (default), or over all logged states
    (default for a log of one endless episode). `reward_range` are the least and the largest reward
    that a step can give, in the log or not: with it intervals hold outcomes that were too rare to
    be logged; and with `horizon`, the most steps of an episode, also outcomes that last.
    `nothing_hidden` states that the policy that made the log looked at nothing but the logged
    observations: only then can answers with estimated probabilities be trusted.
    `engine="dask"` spreads the sums over a cluster (at
    `address`, or threads here), one task per part, kept in the directory `checkpoint`.
    `progress(done, total)` is called with rows.
    """
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    if value_at not in ("auto", "start", "states"):
        raise unknown("place for values (value_at)", value_at, ("auto", "start", "states"))
    threads = None if threads is None else whole("threads", threads, 1)
    parts = None if parts is None else whole("parts", parts, 1)
    seed = one_seed(seed)
    if progress is not None and not callable(progress):
        raise InputError(f"progress must be a function (done, total), got {progress!r}.")
    for name, given in (("checkpoint", checkpoint), ("address", address)):
        if given is not None and not isinstance(given, str | Path):
            raise InputError(f"{name} must be a text or a path, got {given!r}.")
    stated = stated_range(reward_range, horizon)
    check_hidden(nothing_hidden, behavior)
    asked = with_drl(requests(learners))
    log = opened(source, discount, targets, columns, behavior, batch_rows, seed)
    if not log.targets:
        raise InputError(
            "the log has no target policy; give it a column target_prob_<name>, or targets=..."
        )
    fitted = _fitted(features, log, seed)
    asked = _with_action_values(asked, log, fitted, usual=learners is None)
    plan = _plan(_in_batches(log, fitted), asked, fitted, value_at)
    log = _in_batches(log, fitted, plan.keeps_rows)
    plan = replace(plan, seed=seed, behavior_whole=log.schema.behavior.whole)
    usual = int(np.clip(plan.rows // PART_ROWS, 1, MOST_PARTS)) if engine == "dask" else 1
    number = usual if parts is None else parts
    pieces = log.parts(number) if number > 1 else [log]
    work = Work(pieces, fitted, plan, asked, seed)
    if engine == "dask":
        from steadytd.evaluation.follow.cluster import spread

        passed = spread(work, progress, address, checkpoint)
    else:
        passed = follow(work, threads, progress)
    settings = {
        "discount": discount,
        "features": str(fitted.spec),
        "n_features": fitted.n_features,
        "learners": [one.label for one in asked],
        "engine": engine,
        "parts": len(pieces),
        "blocks": plan.blocks,
        "seed": seed,
        "reward_range": None if stated is None else [stated.lo, stated.hi],
        "horizon": horizon,
        "nothing_hidden": nothing_hidden,
    }
    check_stated(log, passed.statistics.extent, stated, plan.where == "start")
    return conclude(
        log, fitted, plan, asked, passed, How(seed, threads, stated, nothing_hidden), settings
    )


def _fitted(features: Any, log: Log, seed: int) -> FeatureMap:
    made = feature_map(features, seed)
    return made if made.fitted else made.fit(log.sample(SAMPLE, seed))


def _in_batches(log: Log, features: FeatureMap, keeps_rows: bool = False) -> Log:
    """The log in batches whose features take no more than `BATCH_BYTES`, but for the pilot's.

    Where rows are kept the features of a batch stay in the cache, and the pilot's are sparse.
    """
    size = 8 * features.n_features
    most = max(int(BATCH_BYTES / size), PILOT_ROWS)
    if keeps_rows:
        most = max(int(SPARSE_BATCH_BYTES / size), FEWEST_ROWS)
    return replace(log, batch_rows=min(log.batch_rows, most))


def _plan(log: Log, asked: list[Request], features: FeatureMap, value_at: str) -> Plan:
    corrected = [one.form.lam for one in asked if one.form is not None]
    systems, lams = needed(lam for lam in corrected if lam is not None)
    distinct = tuple(dict.fromkeys([*systems, *(o.system for o in asked if o.system is not None)]))
    rows = log.rows
    if rows is None:  # a CSV does not say; it is read twice
        rows = sum(len(batch) for batch in log.batches(columns=())) + int(log.left_out or 0)
    d, by_action = features.n_features, _action_plan(log, asked)
    further = numbers_per_block(by_action, d)
    plan = Plan(
        tuple(log.targets), d, rows, distinct, lams=lams, where=_where(log, value_at),
        by_action=by_action, constant=features.constant,
    )  # fmt: skip
    plan = replace(plan, keeps_rows=table_fits(plan, features.most_active))
    blocks = blocks_for(len(log.targets), len(distinct), plan.summed, len(lams), further)
    return replace(plan, blocks=blocks)


def _where(log: Log, value_at: str) -> Where:
    """Where values are asked for: "auto" reads on until a second episode begins.

    Most logs show it in their first rows, so these are looked at before whole batches are read.
    """
    if value_at != "auto":
        return "states" if value_at == "states" else "start"
    parts = [replace(log)]
    if log.rows is None or log.rows > FIRST_LOOK:
        rows = min(FIRST_LOOK, log.batch_rows)
        parts.insert(0, replace(log, end=log.begin + FIRST_LOOK, batch_rows=rows))
    for part in parts:
        begun = 0
        for batch in part.batches(columns=()):
            begun += int(batch.first.sum())
            if begun > 1:
                return "start"
    return "states"


def _with_action_values(
    asked: list[Request], log: Log, features: FeatureMap, usual: bool
) -> list[Request]:
    """The learners asked for, checked; the usual ones that value actions where they are cheap."""
    exact = [one.label for one in asked if one.learner and one.learner.law.needs_policies]
    if exact and log.schema.densities:
        raise InputError(
            f"{exact[0]} needs probabilities of actions, not only their ratio, and actions that "
            f"are fractions or lists (column '{log.schema.columns.action}') have densities; "
            f"number the actions 0, 1, 2, ... if they are discrete, or leave {exact[0]} out."
        )
    names = [one.label for one in asked if one.kind == "action"]
    lacking = [name for name in log.targets if name not in log.whole]
    if names and lacking:
        raise InputError(
            f"{names[0]} needs the target's probabilities of all actions, and those of "
            f"'{lacking[0]}' are not known; add a column target_probs_{lacking[0]} (a list), give "
            f"the target as a function of observations that returns them, or leave {names[0]} out."
        )
    if usual and log.whole and features.n_features * log.n_actions <= FEW:
        return [*asked, *requests([one.name for one in BY_ACTION.values() if one.usual])]
    return asked


def _action_plan(log: Log, asked: list[Request]) -> ActionPlan | None:
    mine = [one for one in asked if one.kind == "action"]
    if not mine:
        return None
    places = tuple(t for t, name in enumerate(log.targets) if name in log.whole)
    lams = dict.fromkeys(one.lam for one in mine if one.lam is not None)
    return ActionPlan(places, log.n_actions, tuple(lams))


class How(NamedTuple):
    """How the values are found from the sums."""

    seed: int
    threads: int | None
    stated: Stated | None = None
    nothing_hidden: bool = False


def in_units(e: Estimator, plan: Plan) -> Estimator:
    """The estimator, with stretches of episodes joined until they are independent of each other.

    Neighbours are joined while the influences of `lstd` in neighbouring stretches are correlated by
    more than 1/sqrt(k) for one of the targets, k being the number of stretches.
    """
    while e.units.continues[1:].any() and e.n_units >= 2 * FEWEST_UNITS:
        found = [estimate(e, t, LSTD).influence for t in range(len(plan.targets))]
        if max(map(neighbours, found)) <= 1.0 / np.sqrt(e.n_units):
            break
        e = replace(e, units=halved(e.units), _held={})
    return e


@single_threaded
def conclude(
    log: Log,
    features: FeatureMap,
    plan: Plan,
    asked: list[Request],
    passed: Passed,
    how: How,
    settings: dict[str, Any],
) -> Evaluation:
    """Estimates, intervals and findings from the sums of a pass."""
    seed, threads, stated, nothing_hidden = how
    whole = estimator(units(passed.statistics), plan.where, plan.systems, plan.lams)
    e = in_units(whole, plan)
    u = e.units
    drawn = Resampled.of(e, resamples(e.n_units, e.rank, seed))
    estimated = bool(getattr(log, "behavior_estimated", False))
    facts = LogFacts.of(e, passed.left_out, _calibration(log) if estimated else None, stated)
    facts = replace(facts, nothing_hidden=nothing_hidden)
    valued = behavior_estimate(whole)
    own = at(whole, whole.behavior, 1.0)
    sample = passed.checked.sample
    outcomes: dict[int, list[Followed]] = {}
    for followed in passed.outcomes:
        outcomes.setdefault(followed.target, []).append(followed)
    rows = RowWeights(sample, whole)
    given = Given(e, whole, plan, asked, outcomes, valued, own, rows, stated)

    def one(t: int) -> tuple[Judged, OverEta]:
        stability = assess(e, t, plan.targets[t], drawn)
        covered = overlap(u, t, plan.targets[t])
        j = judge(given, t, covered, stability)
        return j, path(e, t, stability)

    _ = e.kept, e.start_mean  # once, before several threads ask for them
    workers = (threads or os.cpu_count() or 1) if e.rank >= WIDE else 1
    with ThreadPoolExecutor(workers) as pool:
        judged, paths = zip(*pool.map(one, range(len(plan.targets))), strict=True)
    calibrated = calibration(passed.checked, passed.statistics, u, facts)
    general = [*about_log(facts), *about_probabilities(calibrated)]
    warnings, recommended = list(general), {}
    for j in judged:
        own_findings = about_target(j, facts)
        warnings += own_findings
        recommended[j.name] = recommend(j, [*general, *own_findings])
    about = Asked.of(sample, e, facts)
    data = Counted(u.rows, "rows") if facts.continuing else Counted(u.episodes, "episodes")
    sides = [
        Side(j.name, j.rule, recommended[j.name].warnings, j.overlap.as_logged) for j in judged
    ]
    decisions = [compared(side, None, data) for side in sides]
    if len(sample.outcomes) >= MANY:
        workers = threads or os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        looked = pool.map(partial(examine, about), range(len(judged)), sides, decisions)
    sensitivities, returns = zip(*looked, strict=True)
    warnings += [finding for s in sensitivities for finding in about_sensitivity(s)]
    missing = {
        d.target: silence(j.rule, d, tries_of(given, t, j.overlap.rho_max, j.rule.estimate), stated)
        for t, (j, d) in enumerate(zip(judged, decisions, strict=True))
    }
    return Evaluation(
        log=facts,
        features=features,
        judged=judged,
        warnings=warnings,
        recommended=recommended,
        behavior=LoggedValue(
            valued.value, *noise(valued.influence, facts.divided).reach.around(valued.value)
        ),
        sides=sides,
        data=data,
        paths=partial(path_rows, paths),
        histogram_rows=histogram(u, plan.targets),
        settings=settings,
        probabilities=Probabilities(
            calibrated,
            dict(zip(recommended, sensitivities, strict=True)),
            dict(zip(recommended, returns, strict=True)),
        ),
        missing=missing,
        places=visits(
            passed.checked.sample, {j.name: j.omega for j in judged}, features, facts.continuing
        ),
    )


def _calibration(log: Any) -> dict[str, Any]:
    summary: Any = getattr(log, "calibration", None)
    found = summary.to_dict() if hasattr(summary, "to_dict") else summary
    return dict(found) if isinstance(found, Mapping) else {}
