"""`evaluate`: what target policies are worth, from a log of another policy."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from steadytd.base.errors import InputError, unknown
from steadytd.base.numbers import count, duration, one_seed, whole
from steadytd.base.parallel import single_threaded
from steadytd.engine.law import Law
from steadytd.engine.learner import Learner
from steadytd.evaluation.average import check_average, require_endless
from steadytd.evaluation.behavior import EstimatedLog, check_hidden, estimated, opened
from steadytd.evaluation.calibration import LogCalibration, calibrate
from steadytd.evaluation.checks import findings
from steadytd.evaluation.decide import LoggedValue, Side, compared
from steadytd.evaluation.estimators import FEW, GRID, OWN, ActionEstimator, Drl, grid
from steadytd.evaluation.facts import (
    Stated,
    check_stated,
    log_facts,
    logged_returns,
    of_learner,
    of_log,
    of_target,
    stated_range,
)
from steadytd.evaluation.follow.engines import ClusterPasses, LocalPasses, Progress, Work
from steadytd.evaluation.follow.online import Followed
from steadytd.evaluation.next_log import log_next
from steadytd.evaluation.overlap import histogram, overlap
from steadytd.evaluation.passes import ActionPlan, Plan
from steadytd.evaluation.quantiles import spreads
from steadytd.evaluation.requests import Request, requests, with_drl
from steadytd.evaluation.result import Evaluation, Probabilities, recommend
from steadytd.evaluation.rows import ENOUGH_EPISODES, Division, Where
from steadytd.evaluation.rule import sampling_error, select
from steadytd.evaluation.second_pass import gather, joined, second_curves
from steadytd.evaluation.segments import Parting, segments
from steadytd.evaluation.sensitivity import sensitivity
from steadytd.evaluation.stability import assess, path_rows, pencil
from steadytd.evaluation.sums import TD
from steadytd.evaluation.values import lines, needed, table
from steadytd.evaluation.visits import visits
from steadytd.features import FeatureMap, feature_map
from steadytd.features.auto import Observed, automatic, second_map
from steadytd.logs.columns import ColumnMap
from steadytd.logs.log import Log
from steadytd.logs.policies import Policy
from steadytd.logs.rewards import reward_name, reward_weights
from steadytd.logs.selection import require_disjoint

SAMPLE = 20_000  # observations that the feature map is fitted on
PART_ROWS = 1_000_000  # of a part, about, where a cluster takes them
MOST_PARTS = 64
BATCH_BYTES, FEWEST_ROWS = 32e6, 2048  # of a batch's features
WORTH_SAYING = 5.0  # seconds that are announced
ENGINES = ("local", "dask")


def evaluate(
    source: Any,
    *,
    discount: float | None = None,
    average_reward: bool = False,
    targets: Sequence[str] | Mapping[str, Policy] | None = None,
    features: object = "auto",
    learners: Sequence[str | Law | Learner] | str | None = None,
    columns: ColumnMap | None = None,
    behavior: Any = None,
    unit: str | None = None,
    obs: Sequence[str] | None = None,
    rewards: Mapping[str, Any] | None = None,
    by: str | None = None,
    learned_on: Any = None,
    value_at: Literal["auto", "start", "states"] = "auto",
    reward_range: tuple[float, float] | Mapping[str, tuple[float, float]] | None = None,
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

    `source` is what `open_log` takes, or an open log. With `average_reward` values are rewards per
    step in the long run, in place of discounted returns, of a log that never ends. `features` is
    the text form of a feature map, a map, or a scikit-learn transformer; "auto" chooses by the
    observations. `targets` are names of the log's targets (default: all), or a dictionary of
    columns, fitted models with `predict_proba` and `classes_`, and functions of observations that
    return the probabilities of all actions. `obs` names columns of any kind that are the
    observation. `learners` are names or text forms of learners, also `drl`, `snpdis`, `pdis` and
    `mis`, and where the probabilities of all actions are known `lstdq`, `fqe` and `drl_q`. Numbers
    that are not given (alpha, eta, ratio, lam) are chosen. `behavior` is such a function for the
    policy that made the log, or "estimate", or a classifier to estimate it with; without it it must
    have a `behavior_prob`. `unit` is a column that says which episodes belong together (those of
    one user); without it episodes are taken as independent. `rewards` are columns with a direction,
    {"revenue": "+", "churn": "-"}, or weighted sums of columns, {"profit": {"revenue": 1.0, "cost":
    -0.5}}: one evaluation each, in `e.rewards`. `by` is a column that is constant in an episode:
    `e.segments` has values and decisions for each of its values. `learned_on` is the log or frame
    that targets were learned on: units (or episodes) that are in both are refused. `value_at` says
    where: at the episodes' first states (default), or over all logged states (default for a log of
    one endless episode). `reward_range` are the least and the largest reward that a step can give,
    in the log or not (of several rewards: a dictionary by name): with it intervals hold outcomes
    that were too rare to be logged; and with `horizon`, the most steps of an episode, also outcomes
    that last. `nothing_hidden` states that the policy that made the log looked at nothing but the
    logged observations: only then can answers with estimated probabilities be trusted.
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
            raise InputError(f"{name} must be a string or a path, got {given!r}.")
    if average_reward:
        check_average(discount, learners, value_at, reward_range, horizon)
        discount = 1.0
    several = {"": None} if rewards is None else reward_weights(rewards)
    stated = _stated(reward_range, horizon, several)
    check_hidden(nothing_hidden, behavior)
    asked = [] if average_reward else requests(learners)
    log = opened(source, discount, targets, columns, behavior, batch_rows, unit, obs, rewards, by)
    if not log.targets:
        raise InputError(
            "the log has no target policy; give it a column target_prob_<name>, or targets=..."
        )
    if learned_on is not None:
        require_disjoint(log, learned_on)
    if average_reward:
        require_endless(log)
    parting = None if by is None else Parting.of(log, by)
    single = partial(
        _single, settings={
            "discount": discount, "average_reward": average_reward,
            "learned_on": learned_on is not None,
        },
        features=features, behavior=behavior, usual=learners is None and not average_reward,
        value_at="average" if average_reward else value_at,
        nothing_hidden=nothing_hidden, engine=engine, address=address, parts=parts,
        threads=threads, seed=seed, progress=progress,
    )  # fmt: skip
    found = {}
    for i, (name, weights) in enumerate(several.items()):
        mine = log if weights is None else log.with_reward(weights)
        kept = None if checkpoint is None else Path(checkpoint) / (f"reward-{i}" if i else "")
        single = partial(single, stated=stated[name], reward=weights)
        e = single(mine, asked=with_drl(asked), checkpoint=kept)
        if parting is not None:
            only = partial(single, asked=with_drl([]))
            e = replace(e, segments=segments(mine, parting, only, kept))
        found[name] = replace(e, reward=name)
    main, *others = found
    return replace(found[main], others={name: found[name] for name in others})


def _stated(
    given: Any, horizon: int | None, several: Mapping[str, Mapping[str, float] | None]
) -> dict[str, Stated | None]:
    """What is stated of every reward; of one with a minus the range is that of its column."""
    if len(several) > 1 and given is not None and not isinstance(given, Mapping):
        raise InputError(
            "with several rewards, reward_range must be a dictionary from their names to ranges, "
            f"such as {{'{next(iter(several))}': (0, 1)}}, got {given!r}."
        )
    ranges = given if isinstance(given, Mapping) else {next(iter(several)): given}
    for name in ranges:
        if name not in several:
            raise unknown("reward in reward_range", name, several)
    found = {name: stated_range(ranges.get(name), horizon) for name in several}
    for name, weights in several.items():
        one = found[name]
        if one is not None and weights is not None and reward_name(name, weights) != name:
            found[name] = one._replace(lo=-one.hi, hi=-one.lo)
    return found


def _single(
    log: Log,
    asked: list[Request],
    stated: Stated | None,
    checkpoint: str | Path | None,
    *,
    reward: Mapping[str, float] | None,
    settings: dict[str, Any],
    features: object,
    behavior: Any,
    usual: bool,
    value_at: str,
    nothing_hidden: bool,
    engine: str,
    address: str | None,
    parts: int | None,
    threads: int | None,
    seed: int,
    progress: Progress | None,
) -> Evaluation:
    """The evaluation of one log with one reward."""
    log = estimated(log, behavior, seed)
    sample = log.sample(SAMPLE, seed)
    seen = Observed.of(sample, log.rows if log.rows is not None else len(sample))
    chosen = automatic(seen) if features == "auto" else None
    made = feature_map(features if chosen is None else chosen.spec, seed)
    fitted = made if made.fitted else made.fit(sample)
    second = feature_map(second_map(fitted, seen), seed).fit(sample)
    asked = _with_action_values(asked, log, fitted, usual)
    log = _in_batches(log, fitted)
    plan = _plan(log, asked, fitted, value_at, seed)
    number = int(np.clip(plan.division.rows // PART_ROWS, 1, MOST_PARTS)) if engine == "dask" else 1
    number = number if parts is None else parts
    pieces = log.parts(number) if number > 1 else [log]
    work = Work(pieces, plan, asked)
    passes: LocalPasses | ClusterPasses = LocalPasses(work, threads, progress)
    if engine == "dask":
        passes = ClusterPasses(work, progress, address, checkpoint)
    announce(plan)
    passes.run()
    settings = {
        **settings,
        "features": str(fitted.spec),
        "features_reason": "as requested" if chosen is None else chosen.reason,
        "second_features": second.spec,
        "n_features": fitted.n_features,
        "learners": [one.label for one in asked],
        "engine": engine,
        "parts": len(pieces),
        "seed": seed,
        "reward_range": None if stated is None else [stated.lo, stated.hi],
        "horizon": None if stated is None else stated.horizon,
        "nothing_hidden": nothing_hidden,
        "unit": log.unit,
        "reward": reward,
    }
    check_stated(log, passes.first.ratios.extent, stated, plan.where == "start")
    return conclude(log, work, passes, second, stated, nothing_hidden, settings)


def expected_seconds(rows: int, features: int, targets: int) -> float:
    """About how long both passes take on one core: reading, and sums over pairs of features.

    >>> round(expected_seconds(10_000_000, 17, 4)), round(expected_seconds(100_000, 301, 2))
    (17, 10)
    """
    return rows * (1.2e-6 + 3.5e-10 * features**2 * (targets + 1))


def announce(plan: Plan) -> None:
    """Say beforehand how long a large log takes, where a person watches."""
    rows, d, targets = plan.division.rows, plan.features.n_features, len(plan.targets)
    seconds = expected_seconds(rows, d, targets)
    if seconds > WORTH_SAYING and (sys.stderr.isatty() or "ipykernel" in sys.modules):
        size = f"{count(rows, 'row')}, {count(d, 'feature')}, {count(targets, 'target')}"
        print(f"{size}: about {duration(seconds)} of processor time", file=sys.stderr)


def _in_batches(log: Log, features: FeatureMap) -> Log:
    """The log in batches whose features take no more than `BATCH_BYTES`."""
    most = max(int(BATCH_BYTES / (8 * features.most_active)), FEWEST_ROWS)
    return replace(log, batch_rows=min(log.batch_rows, most))


def _plan(log: Log, asked: list[Request], features: FeatureMap, value_at: str, seed: int) -> Plan:
    lams = [one.estimator.lam for one in asked if isinstance(one.estimator, Drl)]
    systems = dict.fromkeys([TD, *(one.system for one in asked if one.system is not None)])
    rows = log.rows
    if rows is None:  # a CSV does not say; it is read twice
        rows = sum(len(batch) for batch in log.batches(columns=())) + int(log.left_out or 0)
    average = value_at == "average"
    episodes = 0 if average else _episodes(log)
    states = value_at == "states" or (value_at == "auto" and episodes < 2)
    units = 0 if log.unit_values is None else len(log.unit_values)
    division = Division(rows, not units and episodes < ENOUGH_EPISODES, units)
    where: Where = "average" if average else "states" if states else "start"
    by_action = None
    if any(one.kind == "action" for one in asked):
        places = tuple(t for t, name in enumerate(log.targets) if name in log.whole)
        by_action = ActionPlan(places, log.n_actions)
    return Plan(
        tuple(log.targets), features, division,
        where, tuple(systems),
        GRID[:-1] if average else grid(lam for lam in lams if lam is not None), seed, by_action,
        log.n_actions if log.schema.behavior.whole else 0,
    )  # fmt: skip


def _episodes(log: Log) -> int:
    """How many episodes there are, up to 20: the log is read until as many have begun."""
    begun = 0
    for batch in replace(log).batches(columns=()):
        begun += int(batch.first.sum())
        if begun >= ENOUGH_EPISODES:
            break
    return begun


def _with_action_values(
    asked: list[Request], log: Log, features: FeatureMap, usual: bool
) -> list[Request]:
    """The learners asked for, checked; the usual ones that value actions where they are cheap."""
    exact = [one.label for one in asked if one.learner and one.learner.law.needs_policies]
    if exact and log.schema.densities:
        raise InputError(
            f"{exact[0]} needs probabilities of actions, not only their ratio, and actions that "
            f"are fractions or lists (column '{log.schema.columns['action']}') have densities; "
            f"number the actions 0, 1, 2, ... if they are discrete, or leave {exact[0]} out."
        )
    if "keep_prob" in log.schema.columns:
        online = [one.label for one in asked if one.kind == "online"]
        if online and not usual:
            raise InputError(
                f"{online[0]} learns step by step from the rows as they are stored, but column "
                f"'{log.schema.columns['keep_prob']}' says that others were dropped; leave it out."
            )
        asked = [one for one in asked if one.kind != "online"]
    names = [one.label for one in asked if one.kind == "action"]
    lacking = [name for name in log.targets if name not in log.whole]
    if names and lacking:
        raise InputError(
            f"{names[0]} needs the target's probabilities of all actions, and those of "
            f"'{lacking[0]}' are not known; add a column target_probs_{lacking[0]} (a list), give "
            f"the target as a function of observations that returns them, or leave {names[0]} out."
        )
    if usual and log.whole and not lacking and features.n_features * log.n_actions <= FEW:
        usual_ones = [k for k, v in OWN.items() if issubclass(v, ActionEstimator) and v.usual]
        return [*asked, *requests(usual_ones)]
    return asked


@single_threaded
def conclude(
    log: Log,
    work: Work,
    passes: LocalPasses | ClusterPasses,
    second: FeatureMap,
    stated: Stated | None,
    nothing_hidden: bool,
    settings: dict[str, Any],
) -> Evaluation:
    """Solve the equations, make the second pass, and draw conclusions from both."""
    plan, first = work.plan, passes.first
    e, targets = first.equations(plan), range(len(plan.targets))
    ended: dict[int, list[Followed]] = {t: [] for t in targets}
    for one in passes.online:
        ended[one.target].append(one)
    stabilities = [assess(e, t, plan.targets[t], plan.seed) for t in targets]
    asked = {t: lines(e, plan, t, work.asked, ended[t], stabilities[t]) for t in targets}
    estimators = {t: needed(asked[t], plan.where == "start") for t in targets}
    whole = gather(plan, first, e, estimators, passes.sweep)
    second_of = second_curves(whole, second)
    evidence = joined(whole)
    estimate = log.calibration if isinstance(log, EstimatedLog) else None
    facts = log_facts(evidence, log, estimate, stated, nothing_hidden)
    returns = logged_returns(whole, facts)
    results = []
    for t in targets:
        selection = select(whole.curves[t], returns, second_of.get(t))
        about = overlap(first.ratios, t, plan.targets[t]), stabilities[t]
        results.append(table(evidence, t, asked[t], about, selection))
    named = plan.features.names(facts.obs_names) if facts.obs_names else []
    calibrated = calibrate(first.probabilities)
    if facts.behavior_estimated:
        reason = "the probabilities are estimates: see behavior_estimated"
        calibrated = LogCalibration(0, False, reason=reason)
    general = findings("log", of_log(facts, calibrated, named))
    warnings, recommended, sides = list(general), {}, []
    probabilities = Probabilities(calibrated, {}, {})
    for t, result in enumerate(results):
        name, about_it = result.name, of_target(result, facts, returns)
        found = findings("target", about_it, name)
        recommended[name] = recommend(result, [*general, *found])
        sides.append(
            Side(name, result.selection, recommended[name].warnings, result.overlap.as_logged)
        )
        decision = compared(sides[-1], None, returns)
        turning = sensitivity(whole, t, result.selection.value, decision, facts.continuing)
        probabilities.sensitivity[name] = turning
        probabilities.spreads[name] = spreads(first.sample.outcomes, t, name, facts.continuing)
        found += findings("target", turning.facts, name)
        for v in result.values:
            found += findings("learner", of_learner(v, result.unsettled), name)
        warnings += found
    valued = whole.behavior()
    reach = sampling_error(valued.influence, facts.divided)
    return Evaluation(
        log=facts,
        features=plan.features,
        results=tuple(results),
        warnings=warnings,
        recommended=recommended,
        behavior=LoggedValue(valued.value, valued.value - reach, valued.value + reach),
        sides=sides,
        data=returns,
        paths=None
        if plan.average
        else partial(path_rows, [pencil(e, t) for t in targets], e.start_mean, stabilities),
        histogram_rows=histogram(first.ratios, plan.targets),
        settings=settings,
        probabilities=probabilities,
        advice=[log_next(whole, t, side, returns, log.schema) for t, side in enumerate(sides)],
        places=visits(
            whole.sampled,
            {one.name: one.omega for one in results},
            plan.features,
            facts.continuing,
            named,
        ),
    )
