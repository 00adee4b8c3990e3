"""What a procedure that learns policies is worth: cross-fitted, so that no row is used twice.

The units are dealt to K folds. For each fold the procedure learns a policy from all other units,
and this policy is evaluated on the fold's rows. In the row of a unit of fold k the target is the
policy of fold k, which has never seen this unit; so the mean score estimates

    J = sum_k (share of fold k) J(policy k),

the mean value of the K policies that were learned, each from (K - 1) / K of the units. It is not
the value of one policy learned from all units, which is usually a little better. Given the other
folds, scores of a fold are independent over its units; but two folds have each taken part in the
policy of the other, so standard errors are larger by a factor (`rule.cross_fitting`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from steadytd.base.errors import InputError, users_own
from steadytd.base.numbers import one_seed, whole
from steadytd.evaluation.evaluate import evaluate
from steadytd.evaluation.result import Evaluation
from steadytd.logs.columns import TARGET
from steadytd.logs.log import open_log
from steadytd.logs.selection import frame_groups, rows_of

NAME = "learned"
COLUMN = TARGET + NAME
PLACE = "(row of the frame)"  # a column of row numbers


def evaluate_learning(
    fit: Callable[[Any], Any],
    log: Any,
    *,
    folds: int = 5,
    unit: str | None = None,
    seed: int = 0,
    **options: Any,
) -> Evaluation:
    """Evaluate a procedure that learns a policy: `fit(frame)` returns what `targets` may hold.

    `log` is a data frame; `fit` receives some of its rows, as the same kind of frame. Options are
    those of `evaluate`. The evaluation has one target, `learned`: the mean of the `folds` policies.
    """
    folds, seed = whole("folds", folds, 2), one_seed(seed)
    if not callable(fit):
        raise InputError(f"fit must be a function from a frame to a policy, got {fit!r}.")
    if "targets" in options:
        raise InputError("evaluate_learning has one target, the learned one; leave out targets.")
    columns = options.pop("columns", None)
    episode = str((columns or {}).get("episode_id", "episode_id"))
    group, values = frame_groups(log, unit, "evaluate_learning", episode)
    if len(values) < folds:
        raise InputError(f"{len(values)} units cannot be dealt to {folds} folds; use fewer folds.")
    fold = (np.random.default_rng(seed).permutation(len(values)) % folds)[group]
    known = inspect.signature(open_log).parameters
    opening = {
        k: options.pop(k) for k in list(options) if k in known and k not in ("behavior", "rewards")
    }
    opening["rewards"] = options.get("rewards")
    opening["columns"] = columns
    if options.get("average_reward"):
        opening.setdefault("discount", 1.0)
    import pyarrow as pa

    table, probability = pa.table(log), np.zeros(len(fold))
    numbered = table.append_column(PLACE, pa.array(np.arange(len(fold))))
    for k in range(folds):
        with users_own(f"fit, without fold {k},"):
            policy = fit(rows_of(log, fold != k))
        opened = open_log(numbered, targets={NAME: policy}, extra={PLACE: "number"}, **opening)
        for batch in opened.batches(("target_prob",)):
            place = batch.extra[PLACE].astype(np.int64)  # in the frame, which may have been sorted
            own = fold[place] == k
            probability[place[own]] = batch.target_prob[0, own]
    if COLUMN in table.schema.names:
        table = table.drop_columns([COLUMN])
    table = table.append_column(COLUMN, pa.array(probability))
    if callable(options.get("behavior")):
        opening["behavior"] = options.pop("behavior")
    opened = open_log(table, targets=[NAME], unit=unit, **opening)
    opened = replace(opened, learned_folds=folds)
    return evaluate(opened, discount=opening.get("discount"), unit=unit, seed=seed, **options)
