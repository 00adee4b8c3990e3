"""`evaluate`: what target policies are worth, from a log of another policy, in one pass."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from steadytd.base.errors import InputError, unknown
from steadytd.base.numbers import one_seed, whole
from steadytd.base.parallel import single_threaded
from steadytd.engine.law import Law
from steadytd.engine.learner import Learner
from steadytd.evaluation.collect.plan import TD, Plan, blocks_for
from steadytd.evaluation.collect.statistics import units
from steadytd.evaluation.estimate.bootstrap import resamples
from steadytd.evaluation.estimate.estimators import Estimator, Where
from steadytd.evaluation.estimate.overlap import histogram, overlap
from steadytd.evaluation.estimate.requests import Request, requests
from steadytd.evaluation.estimate.stability import assess, path
from steadytd.evaluation.follow.local import Passed, Progress, follow
from steadytd.evaluation.follow.pilot import PILOT_ROWS
from steadytd.evaluation.judge.log_findings import LogFacts, about_log
from steadytd.evaluation.judge.recommend import recommend
from steadytd.evaluation.judge.target_findings import about_target
from steadytd.evaluation.judge.values import Given, Judged, judge
from steadytd.evaluation.result import Evaluation
from steadytd.features import FeatureMap, feature_map
from steadytd.logs.columns import ColumnMap
from steadytd.logs.decode.rows import Policy
from steadytd.logs.log import Log, open_log

SAMPLE = 20_000  # observations that the feature map is fitted on
PART_ROWS = 1_000_000  # of a part, about, where a cluster takes them
MOST_PARTS = 64
BATCH_BYTES = 40e6  # of a batch's features
ENGINES = ("local", "dask")


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
    a map, or a scikit-learn transformer. `learners` are names or text forms of learners, also
    `pdis`, `snpdis` and `dr`; numbers that are not given (alpha, eta, ratio) are chosen from the
    data. `behavior` is a function for the behaviour policy's probability, or "estimate", or a
    scikit-learn classifier to estimate it with; without it the log must have a `behavior_prob`.
    `value_at` says where: at the episodes' first states (default), or over all logged states
    (default for a log of one endless episode). `engine="dask"` spreads the sums over a cluster (at
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
    asked = requests(learners)
    log = _opened(source, discount, targets, columns, behavior, batch_rows, seed)
    if not log.targets:
        raise InputError(
            "the log has no target policy; give it a column target_prob_<name>, or targets=..."
        )
    fitted = _fitted(features, log, seed)
    log = _in_batches(log, fitted)
    plan = _plan(log, asked, fitted)
    usual = int(np.clip(plan.rows // PART_ROWS, 1, MOST_PARTS)) if engine == "dask" else 1
    number = usual if parts is None else parts
    pieces = log.parts(number) if number > 1 else [log]
    if engine == "dask":
        from steadytd.evaluation.follow.cluster import Cluster, spread

        passed = spread(pieces, fitted, plan, asked, seed, progress, Cluster(address, checkpoint))
    else:
        passed = follow(pieces, fitted, plan, asked, threads, seed, progress)
    settings = {
        "discount": discount,
        "features": str(fitted.spec),
        "n_features": fitted.n_features,
        "learners": [one.label for one in asked],
        "engine": engine,
        "parts": len(pieces),
        "blocks": plan.blocks,
        "seed": seed,
    }
    return conclude(log, fitted, plan, asked, passed, How(value_at, seed, threads), settings)


def _opened(
    source: Any,
    discount: float | None,
    targets: Sequence[str] | Mapping[str, Policy] | None,
    columns: ColumnMap | None,
    behavior: Any,
    batch_rows: int,
    seed: int,
) -> Log:
    """The log, with estimated behaviour where that is asked for, and only there."""
    estimating = behavior == "estimate" or hasattr(behavior, "predict_proba")
    known = None if estimating else behavior
    if isinstance(source, Log):
        for name, given in (("targets", targets), ("columns", columns), ("behavior", known)):
            if given is not None:
                raise InputError(f"{name} of an open log cannot be changed; give it to open_log.")
        log = source
    else:
        log = open_log(
            source, discount=discount, targets=targets, columns=columns, behavior=known,
            batch_rows=batch_rows,
        )  # fmt: skip
    if not estimating:
        require_behavior(log)
    else:
        from steadytd.evaluation.behavior.behavior import with_estimated_behavior

        classifier = None if behavior == "estimate" else behavior
        log = with_estimated_behavior(log, classifier=classifier, seed=seed)
    return log


def require_behavior(log: Log) -> None:
    """Complain if the behaviour policy's probabilities are not known."""
    if log.has_behavior:
        return
    close = difflib.get_close_matches("behavior_prob", log.source.schemas[0].names, n=1)
    hint = f" Is it '{close[0]}'?" if close else ""
    name = close[0] if close else "its_name"
    raise InputError(
        f"{log.files[0]}: there is no column 'behavior_prob' with the probability of the logged "
        f"action.{hint} Name it with columns={{'behavior_prob': '{name}'}} (on the command line "
        f'--map behavior_prob={name}), or estimate it from the log with behavior="estimate" '
        "(--estimate-behavior)."
    )


def _fitted(features: Any, log: Log, seed: int) -> FeatureMap:
    made = feature_map(features, seed)
    return made if made.fitted else made.fit(log.sample(SAMPLE, seed))


def _in_batches(log: Log, features: FeatureMap) -> Log:
    """The log in batches whose features take no more than `BATCH_BYTES`, but for the pilot's."""
    most = max(int(BATCH_BYTES / (8 * features.n_features)), PILOT_ROWS)
    return replace(log, batch_rows=min(log.batch_rows, most))


def _plan(log: Log, asked: list[Request], features: FeatureMap) -> Plan:
    systems = [TD, *(one.system for one in asked if one.system is not None)]
    distinct = tuple(dict.fromkeys(systems))
    rows = log.rows
    if rows is None:  # a CSV does not say; it is read twice
        rows = sum(len(batch) for batch in log.batches(columns=())) + int(log.left_out or 0)
    blocks = blocks_for(len(log.targets), len(distinct), features.n_features)
    return Plan(tuple(log.targets), features.n_features, rows, distinct, blocks)


class How(NamedTuple):
    """How the values are found from the sums."""

    value_at: str
    seed: int
    threads: int | None


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
    value_at, seed, threads = how
    u = units(passed.statistics)
    where: Where = "states" if value_at == "states" else "start"
    if value_at == "auto" and u.episodes <= 1:
        where = "states"
    e = Estimator(u, where)
    counts = resamples(e.n_units, e.rank, seed)
    truncated, left = u.counts[:, 2:].sum(axis=0)
    facts = LogFacts(
        rows=u.rows,
        episodes=u.episodes,
        units=e.n_units,
        truncated=int(truncated),
        discount_left=float(left / truncated) if truncated else 0.0,
        left_out=passed.left_out,
        continuing=where == "states",
        divided=bool(u.continues[1:].any()),
        behavior_estimated=bool(getattr(log, "behavior_estimated", False)),
        behavior_numbers=_calibration(log),
    )

    given = Given(e, plan, asked, passed.outcomes, counts)

    def one(t: int) -> tuple[Judged, list[dict[str, Any]]]:
        stability = assess(e, t, plan.targets[t], counts)
        covered = overlap(u, t, plan.targets[t])
        j = judge(given, t, covered, stability)
        return j, path(e, t, plan.targets[t], stability)

    _ = e.kept, e.start, e.starts, e.start_mean  # once, before several threads ask for them
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        judged, paths = zip(*pool.map(one, range(len(plan.targets))), strict=True)
    warnings = about_log(facts)
    recommended = {}
    for j in judged:
        warnings += about_target(j, facts)
        recommended[j.name] = recommend(j, facts, warnings)
    return Evaluation(
        log=facts,
        features=features,
        judged=judged,
        warnings=warnings,
        recommended=recommended,
        path_rows=[row for rows in paths for row in rows],
        histogram_rows=histogram(u, plan.targets),
        settings=settings,
    )


def _calibration(log: Any) -> dict[str, Any]:
    summary = getattr(log, "calibration", None)
    if summary is None:
        return {}
    if isinstance(summary, Mapping):
        return dict(summary)
    return dict(summary.to_dict()) if hasattr(summary, "to_dict") else {}
