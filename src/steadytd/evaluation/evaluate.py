"""`evaluate`: what target policies are worth, from a log of another policy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from steadytd.base.errors import InputError, unknown
from steadytd.base.numbers import count, duration, one_seed, whole
from steadytd.base.parallel import single_threaded
from steadytd.engine.law import Law
from steadytd.engine.learner import Learner
from steadytd.evaluation.average import check_average, require_endless
from steadytd.evaluation.behavior import check_hidden, estimated, opened
from steadytd.evaluation.calibration import LogCalibration, calibrate
from steadytd.evaluation.checks import findings
from steadytd.evaluation.curve import Curve
from steadytd.evaluation.decide import LoggedValue, Side, compared
from steadytd.evaluation.estimators import FEW, GRID, OWN, ActionEstimator, Drl, grid
from steadytd.evaluation.evidence import Evidence
from steadytd.evaluation.facts import (
    LogColumns,
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
from steadytd.evaluation.result import Evaluation, recommend
from steadytd.evaluation.rows import ENOUGH_EPISODES, Division, Rewards, Where
from steadytd.evaluation.rule import sampling_error, select
from steadytd.evaluation.second_pass import begun, gather, joined, second_curves
from steadytd.evaluation.segments import Parting, by_segment, joint
from steadytd.evaluation.sensitivity import sensitivity
from steadytd.evaluation.stability import Stability, assess, path_rows, pencil
from steadytd.evaluation.sums import TD
from steadytd.evaluation.values import Line, lines, needed, table
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
    several = _rewards(rewards, reward_range, horizon)
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
    log = log.with_rewards([one.weights for one in several if one.weights])

    def passes(work: Work, kept: Path | None) -> LocalPasses | ClusterPasses:
        if engine == "dask":
            return ClusterPasses(work, progress, address, kept)
        return LocalPasses(work, threads, progress)

    every = partial(
        _every, rewards=several, features=features, behavior=behavior,
        usual=learners is None and not average_reward,
        value_at="average" if average_reward else value_at, parts=parts, passes=passes,
        settings={"discount": discount, "average_reward": average_reward,
                  "learned_on": learned_on is not None, "engine": engine, "seed": seed,
                  "nothing_hidden": nothing_hidden},
    )  # fmt: skip
    kept = None if checkpoint is None else Path(checkpoint)
    found = every(log, with_drl(asked), kept)
    if parting is not None:
        parted = by_segment(log, parting, partial(every, asked=with_drl([])), kept)
        for name, e in found.items():
            own = {segment: one[name] for segment, one in parted.items()}
            found[name] = replace(e, segments=joint(log.targets, parting, own))
    main, *others = found
    return replace(found[main], others={name: found[name] for name in others})


class Reward(NamedTuple):
    """A reward: its columns with their weights (None: the log's own), and what is stated of it."""

    name: str
    weights: Mapping[str, float] | None
    stated: Stated | None


def _rewards(rewards: object, given: Any, horizon: int | None) -> list[Reward]:
    """All rewards; of one with a minus the stated range is that of its column."""
    weights = {} if rewards is None else reward_weights(rewards)
    names = list(weights) or [""]
    if len(names) > 1 and given is not None and not isinstance(given, Mapping):
        raise InputError(
            "with several rewards, reward_range must be a dictionary from their names to ranges, "
            f"such as {{'{names[0]}': (0, 1)}}, got {given!r}."
        )
    ranges = given if isinstance(given, Mapping) else {names[0]: given}
    for name in ranges:
        if name not in names:
            raise unknown("reward in reward_range", name, names)
    found = []
    for name in names:
        stated = stated_range(ranges.get(name), horizon)
        if stated is not None and reward_name(name, weights.get(name, {})) != name:
            stated = stated._replace(lo=-stated.hi, hi=-stated.lo)
        found.append(Reward(name, weights.get(name), stated))
    return found


def _every(
    log: Log,
    asked: list[Request],
    checkpoint: Path | None,
    *,
    rewards: Sequence[Reward],
    features: object,
    behavior: Any,
    usual: bool,
    value_at: str,
    parts: int | None,
    passes: Callable[[Work, Path | None], LocalPasses | ClusterPasses],
    settings: dict[str, Any],
) -> dict[str, Evaluation]:
    """The evaluation of one log with every reward, in two passes."""
    seed = settings["seed"]
    log = estimated(log, behavior, seed)
    sample = log.sample(SAMPLE, seed)
    seen = Observed.of(sample, log.rows if log.rows is not None else len(sample))
    chosen = automatic(seen) if features == "auto" else None
    made = feature_map(features if chosen is None else chosen.spec, seed)
    fitted = made if made.fitted else made.fit(sample)
    second = feature_map(second_map(fitted, seen), seed).fit(sample)
    asked = _with_action_values(asked, log, fitted, usual)
    most = max(int(BATCH_BYTES / (8 * fitted.most_active)), FEWEST_ROWS)
    log = replace(log, batch_rows=min(log.batch_rows, most))
    own = tuple(one.weights for one in rewards if one.weights is not None)
    plan = _plan(log, asked, fitted, value_at, seed, own)
    if parts is None:
        many = int(np.clip(plan.division.rows // PART_ROWS, 1, MOST_PARTS))
        parts = many if settings["engine"] == "dask" else 1
    pieces = log.parts(parts) if parts > 1 else [log]
    settings = {
        **settings,
        "features": str(fitted.spec),
        "features_reason": "as requested" if chosen is None else chosen.reason,
        "n_features": fitted.n_features,
        "learners": [one.label for one in asked],
        "parts": len(pieces),
        "unit": log.unit,
    }
    announce(plan)
    work = Work(pieces, plan, asked)
    return conclude(log, work, passes(work, checkpoint), second, rewards, settings)


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


def _plan(
    log: Log, asked: list[Request], features: FeatureMap, value_at: str, seed: int, rewards: Rewards
) -> Plan:
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
        log.n_actions if log.schema.behavior.whole else 0, rewards,
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
    rewards: Sequence[Reward],
    settings: dict[str, Any],
) -> dict[str, Evaluation]:
    """Make both passes, and draw conclusions from them."""
    passes.run()
    plan, first, T = work.plan, passes.first, len(work.plan.targets)
    ended: dict[int, list[Followed]] = {}
    for one in passes.online:
        ended.setdefault(one.stream, []).append(one)
    logs, listed, stabilities = begun(plan, first), [], []
    for log_of, (_, weights, stated) in zip(logs, rewards, strict=True):
        e = log_of.equations
        check_stated(log, log_of.first.ratios, weights, stated, plan.where == "start")
        found = [assess(e, t, target, plan.seed) for t, target in enumerate(plan.targets)]
        stabilities.append(found)
        listed.append([
            lines(e, plan, t, work.asked, ended.get(log_of.reward * T + t, []), found[t])
            for t in range(T)
        ])  # fmt: skip
    episodes = plan.where == "start"
    gather(logs, [[needed(one, episodes) for one in some] for some in listed], passes.sweep)
    unbiased = first.ratios.whole_steps and not log.behavior_estimated  # whatever the features
    seconds = [{}] * len(logs) if unbiased else second_curves(logs, first, second)
    settings |= {"second_features": None if unbiased else second.spec}
    calibrated, columns = calibrate(first.probabilities), LogColumns.of(log, first.sample)
    return {
        reward.name: _answer(
            log, columns, calibrated, reward, settings, logs[i], listed[i], stabilities[i],
            seconds[i],
        )
        for i, reward in enumerate(rewards)
    }  # fmt: skip


def _answer(
    log: Log,
    columns: LogColumns,
    calibrated: LogCalibration,
    reward: Reward,
    settings: dict[str, Any],
    whole: Evidence,
    listed: list[list[Line]],
    stabilities: list[Stability],
    second: Mapping[int, Curve],
) -> Evaluation:
    """The evaluation of one reward from what both passes have found."""
    plan, first, e, stated = whole.plan, whole.first, whole.equations, reward.stated
    evidence = joined(whole)
    facts = log_facts(evidence, log, columns, stated, settings["nothing_hidden"])
    returns = logged_returns(whole, facts)
    results = []
    for t, some in enumerate(listed):
        selection = select(whole.curves[t], returns, second.get(t))
        about = overlap(first.ratios, t, plan.targets[t]), stabilities[t]
        results.append(table(evidence, t, some, about, selection))
    named = plan.features.names(facts.obs_names) if facts.obs_names else []
    if facts.behavior_estimated:
        reason = "the probabilities are estimates: see behavior_estimated"
        calibrated = LogCalibration(0, False, reason=reason)
    general = findings("log", of_log(facts, calibrated, named))
    warnings, recommended, sides = list(general), {}, []
    turning = []
    for t, result in enumerate(results):
        name, about_it = result.name, of_target(result, facts, returns)
        found = findings("target", about_it, name)
        recommended[name] = recommend(result, [*general, *found])
        sides.append(
            Side(name, result.selection, recommended[name].warnings, result.overlap.as_logged)
        )
        decision = compared(sides[-1], None, returns)
        turning.append(sensitivity(whole, t, result.selection.value, decision, facts.continuing))
        found += findings("target", turning[-1].facts, name)
        for v in result.values:
            found += findings("learner", of_learner(v, result.unsettled), name)
        warnings += found
    valued = whole.behavior()
    reach = sampling_error(valued.influence, facts.divided)
    pencils = [pencil(e, t) for t in range(len(listed))]
    return Evaluation(
        log=facts,
        features=plan.features,
        results=tuple(results),
        warnings=warnings,
        recommended=recommended,
        behavior=LoggedValue(valued.value, valued.value - reach, valued.value + reach),
        sides=sides,
        data=returns,
        paths=None if plan.average else partial(path_rows, pencils, e.start_mean, stabilities),
        histogram_rows=histogram(first.ratios, plan.targets),
        settings={
            **settings,
            "reward": reward.weights,
            "reward_range": None if stated is None else [stated.lo, stated.hi],
            "horizon": None if stated is None else stated.horizon,
        },
        calibration=calibrated,
        turning=turning,
        spreads=[
            spreads(first.sample.outcomes, t, one.name, facts.continuing)
            for t, one in enumerate(results)
        ],
        advice=[log_next(whole, t, side, returns, log.schema) for t, side in enumerate(sides)],
        places=visits(
            whole.sampled,
            {one.name: one.omega for one in results},
            plan.features,
            facts.continuing,
            named,
        ),
        reward=reward.name,
    )
