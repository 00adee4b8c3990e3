"""An unknown behaviour policy, estimated from the log itself: cross-fitted and checked.

The probability of the logged action in a row comes from a classifier that was fitted without the
row's episode. Episodes are dealt to folds by a hash of their number, so any row's fold is known
without having seen the rows before it, and parts of a log agree with the whole.
"""

from __future__ import annotations

import copy
import importlib
import json
import warnings
from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats, Longs
from steadytd.base.errors import InputError, users_own
from steadytd.base.numbers import whole
from steadytd.base.random import dealt
from steadytd.evaluation.behavior.calibration import Calibration, calibrate
from steadytd.evaluation.behavior.frequencies import Frequencies, come_again
from steadytd.evaluation.behavior.sample import distinct, numbered, sample_rows_of
from steadytd.logs.log import Log, LogBatch

SAMPLE = 100_000
FLOOR = 1e-3
BLOCK = 1000  # rows that are kept together where there are too few episodes to deal out

Map = Callable[[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True)
class Behavior:
    """A fitted behaviour policy: one classifier per fold, and how well they are calibrated."""

    models: tuple[Any, ...]
    actions: NDArray[Any]
    calibration: Calibration
    block: int  # 0: whole episodes are dealt to folds, else blocks of so many rows
    seed: int
    floor: float
    features: Map | None
    converged: bool
    settings: str  # what was asked for, in text

    def folds_of(self, episode: Longs, rows: Longs) -> Longs:
        """The fold of each row: that of the one classifier that has not seen its episode."""
        return dealt(rows // self.block if self.block else episode, len(self.models), self.seed)

    def policy(self, obs: NDArray[Any], fold: Longs) -> Floats:
        """Probabilities of all `actions`, [n, K], each row by the classifier of its fold."""
        inputs = obs if self.features is None else self.features(obs)
        found = np.zeros((len(obs), len(self.actions)))
        for k, model in enumerate(self.models):
            mine = np.flatnonzero(fold == k)
            if len(mine):
                columns = np.searchsorted(self.actions, model.classes_)
                with users_own(f"the classifier's predict_proba, given {len(mine)} rows,"):
                    predicted = np.asarray(model.predict_proba(inputs[mine]), dtype=np.float64)
                if predicted.shape != (len(mine), len(columns)):
                    raise InputError(
                        f"predict_proba must return one column per action, ({len(mine)}, "
                        f"{len(columns)}), got the shape {predicted.shape}."
                    )
                if not (np.isfinite(predicted).all() and (predicted >= 0).all()):
                    raise InputError(
                        "the classifier's predict_proba returned negative or undefined numbers."
                    )
                found[np.ix_(mine, columns)] = predicted
        return found

    def probability(self, batch: LogBatch) -> tuple[Floats, int]:
        """The probability of each logged action, at least `floor`, and how many were raised."""
        assert batch.action is not None
        n = len(batch)
        policy = self.policy(batch.obs[:n], self.folds_of(batch.episode, batch.rows))
        taken = numbered(batch.action, self.actions)
        own = np.where(taken >= 0, policy[np.arange(n), taken], 0.0)
        low = own < self.floor
        return np.minimum(np.where(low, self.floor, own), 1.0), int(low.sum())


def estimate_behavior(
    log: Log,
    classifier: Any = None,
    folds: int = 5,
    seed: int = 0,
    *,
    features: Map | None = None,
    sample_rows: int = SAMPLE,
    floor: float = FLOOR,
) -> Behavior:
    """Fit the behaviour policy on at most `sample_rows` random rows of the log (one pass).

    `classifier` has `fit` and `predict_proba`, and is copied, not changed. By default actions are
    counted at each observation where observations come again (`frequencies`), else it is
    multinomial logistic regression on standardised observations, or on `features(obs)` if given.
    """
    folds, sample_rows = whole("folds", folds, 2), whole("sample_rows", sample_rows, 2)
    _check(classifier, floor)
    log.schema.require_actions(log.files[0], "the behaviour policy is to be estimated")
    obs, action, episode, rows = sample_rows_of(log, sample_rows, seed)
    actions = distinct(action, log)
    taken = np.searchsorted(actions, action)
    few = len(np.unique(episode)) < 2 * folds
    block = max(1, min(BLOCK, len(rows) // (4 * folds))) if few else 0
    fold = dealt(rows // block if block else episode, folds, seed)
    inputs = obs if features is None else features(obs)
    if classifier is None and features is None and come_again(obs):
        classifier = Frequencies()
    models, converged = [], True
    for k in range(folds):
        others = fold != k if (fold != k).any() else np.ones(len(fold), dtype=np.bool_)
        model, reached = _fit(classifier, inputs[others], actions[taken[others]], seed)
        models.append(model)
        converged &= reached
    name = "logistic" if classifier is None else " ".join(repr(classifier).split())
    name = "frequencies" if isinstance(classifier, Frequencies) else name
    asked = [name, folds, seed, sample_rows, floor, getattr(features, "__qualname__", None)]
    fitted = Behavior(
        tuple(models), actions, _NOTHING, block, seed, floor, features, converged, json.dumps(asked)
    )
    predicted = fitted.policy(obs, fold)
    return replace(fitted, calibration=calibrate(np.minimum(predicted, 1.0), taken, floor))


_NOTHING = Calibration(0, 0.0, True, 0.0, 0.0, 0, ())


@dataclass(repr=False)
class EstimatedLog(Log):
    """A log whose batches carry estimated behaviour probabilities."""

    behavior: Behavior | None = None
    floored: int | None = None  # rows raised to the floor in the last complete pass

    @property
    def has_behavior(self) -> bool:
        """Estimated, but there."""
        return True

    @property
    def calibration(self) -> dict[str, Any]:
        """How far the estimate can be trusted, in plain numbers."""
        assert self.behavior is not None
        b = self.behavior
        more = {"converged": b.converged, "folds": len(b.models), "actions": len(b.actions)}
        more["counted"] = all(isinstance(model, Frequencies | _Constant) for model in b.models)
        return {**b.calibration.to_dict(), **more, "floor": b.floor, "settings": b.settings}

    def batches(self, columns: Collection[str] | None = None) -> Generator[LogBatch, None, None]:
        """The log's batches with `behavior_prob` filled in."""
        if columns is not None and "behavior_prob" not in columns:
            yield from super().batches(columns)
            return
        assert self.behavior is not None
        floored = 0
        for batch in super().batches(_read_for(columns)):
            probability, low = self.behavior.probability(batch)
            floored += low
            action = batch.action if columns is None or "action" in columns else None
            yield replace(batch, behavior_prob=probability, action=action)
        self.floored = floored

    def reads(self) -> tuple[object, ...]:
        """That of the log, and the fitted behaviour policy."""
        return *super().reads(), self.behavior

    def read_contents(self, columns: Collection[str] | None = None) -> str:
        """A hash of what `batches(columns)` reads."""
        return super().read_contents(_read_for(columns))


def _read_for(columns: Collection[str] | None) -> Collection[str] | None:
    """What the log itself is asked for: estimating needs the actions in place of the column."""
    if columns is not None and "behavior_prob" not in columns:
        return columns
    wanted = {"action", "target_prob", "probs"} if columns is None else {*columns, "action"}
    return wanted - {"behavior_prob"}


def with_estimated_behavior(log: Log, fitted: Behavior | None = None) -> EstimatedLog:
    """The same log with `behavior_prob` as fitted by `estimate_behavior`, by default just now."""
    fitted = estimate_behavior(log) if fitted is None else fitted
    given = {f.name: getattr(log, f.name) for f in fields(Log)}
    given.update(behavior_estimated=True, left_out=None)
    return EstimatedLog(**given, behavior=fitted)


def _check(classifier: Any, floor: float) -> None:
    if not 0.0 < floor < 1.0:
        raise InputError(f"floor must lie between 0 and 1, got {floor}.")
    if classifier is None:
        return
    for method in ("fit", "predict_proba"):
        if not callable(getattr(classifier, method, None)):
            raise InputError(
                f"a classifier for the behaviour policy needs a method {method}, "
                f"{type(classifier).__name__} has none; LogisticRegression is one that fits."
            )


class _Constant:
    """What is fitted where only one action was ever taken."""

    def __init__(self, action: Any) -> None:
        self.classes_ = np.array([action])

    def predict_proba(self, inputs: NDArray[Any]) -> Floats:
        return np.ones((len(inputs), 1))


def _fit(classifier: Any, inputs: NDArray[Any], taken: NDArray[Any], seed: int) -> tuple[Any, bool]:
    """A fitted copy of the classifier, and whether it converged."""
    if (taken == taken[0]).all():
        return _Constant(taken[0]), True
    model = _fresh(classifier, seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with users_own("the classifier's fit"):
            model.fit(inputs, taken)
    if not hasattr(model, "classes_"):
        raise InputError(
            f"a fitted classifier needs the attribute classes_, {type(model).__name__} has none."
        )
    return model, not any("onverge" in str(warning.message) for warning in caught)


def _fresh(classifier: Any, seed: int) -> Any:
    if classifier is None:
        try:
            linear = importlib.import_module("sklearn.linear_model")
            pipeline = importlib.import_module("sklearn.pipeline")
            scaling = importlib.import_module("sklearn.preprocessing")
        except ImportError as error:
            raise InputError(
                "estimating the behaviour policy needs the package scikit-learn: "
                "pip install 'steadytd[sklearn]', or log behavior_prob."
            ) from error
        logistic = linear.LogisticRegression(max_iter=1000, random_state=seed)
        return pipeline.make_pipeline(scaling.StandardScaler(), logistic)
    if hasattr(classifier, "get_params"):
        return importlib.import_module("sklearn.base").clone(classifier)
    return copy.deepcopy(classifier)
