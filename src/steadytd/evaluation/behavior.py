"""An unknown behaviour policy, estimated from the log itself: cross-fitted and checked.

The probability of the logged action in a row comes from a classifier that was fitted without the
row's unit (its episode, or all episodes of one user). Units are dealt to folds by a hash of their
number, so any row's fold is known without reading the rows before it, and parts of a log agree with
the whole.
"""

from __future__ import annotations

import copy
import difflib
import importlib
import json
import warnings
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats, Longs
from steadytd.base.errors import InputError, users_own
from steadytd.base.numbers import whole
from steadytd.base.random import BEHAVIOR, Reservoir, dealt
from steadytd.logs.columns import ColumnMap
from steadytd.logs.log import Log, LogBatch, open_log
from steadytd.logs.policies import Policy

SAMPLE = 100_000  # rows that the classifiers are fitted on, at most
FLOOR = 1e-3  # smallest estimated probability of a logged action
MOST_ACTIONS = 1000
ROWS_PER_OBSERVATION = 30.0  # on average, from which on actions are counted at each observation
BLOCK = 1000  # consecutive rows in one fold where there are too few units to deal out

BINS = 10
ABSOLUTE, RELATIVE = 0.05, 0.25  # tolerated error of a bin: the smaller one, plus chance
CHANCE = 3.0  # standard errors

Map = Callable[[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True)
class Behavior:
    """A fitted behaviour policy: one classifier per fold, and how well they are calibrated."""

    models: tuple[Any, ...]
    actions: NDArray[Any]
    calibration: Calibration
    block: int  # 0: whole units are dealt to folds, else blocks of so many rows
    seed: int
    floor: float
    features: Map | None
    converged: bool
    settings: str  # the arguments of `estimate_behavior`, as JSON

    def folds_of(self, unit: Longs, rows: Longs) -> Longs:
        """The fold of each row: that of the one classifier fitted without its unit."""
        return dealt(rows // self.block if self.block else unit, len(self.models), self.seed)

    def policy(self, obs: NDArray[Any], fold: Longs) -> Floats:
        """Probabilities of all `actions`, [n, K], each row by the classifier of its fold."""
        inputs = obs if self.features is None else self.features(obs)
        return _predicted(self.models, self.actions, inputs, fold)

    def probability(self, batch: LogBatch) -> tuple[Floats, int]:
        """The probability of each logged action, at least `floor`, and how many were raised."""
        assert batch.action is not None
        n = len(batch)
        policy = self.policy(batch.obs[:n], self.folds_of(_units(batch), batch.rows))
        taken = np.minimum(np.searchsorted(self.actions, batch.action), len(self.actions) - 1)
        known = self.actions[taken] == batch.action
        probability = np.where(known, policy[np.arange(n), taken], 0.0)
        return np.clip(probability, self.floor, 1.0), int((probability < self.floor).sum())


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
    counted at each observation where observations repeat (`Frequencies`), else it is multinomial
    logistic regression on standardised observations, or on `features(obs)` if given.
    """
    folds, sample_rows = whole("folds", folds, 2), whole("sample_rows", sample_rows, 2)
    if not 0.0 < floor < 1.0:
        raise InputError(f"floor must lie between 0 and 1, got {floor}.")
    for method in ("fit", "predict_proba") if classifier is not None else ():
        if not callable(getattr(classifier, method, None)):
            raise InputError(
                f"a classifier for the behaviour policy needs a method {method}, "
                f"{type(classifier).__name__} has none; LogisticRegression is one that fits."
            )
    log.schema.require_actions(log.files[0], "the behaviour policy is to be estimated")
    if "keep_prob" in log.schema.columns:
        raise InputError(
            f"{log.files[0]}: a behaviour policy cannot be estimated from rows that were stored "
            f"with a probability (column '{log.schema.columns['keep_prob']}'): their actions "
            "are not as frequent as under the policy; log behavior_prob."
        )
    sample = Reservoir(sample_rows, seed, BEHAVIOR)
    for batch in log.batches(columns={"action"}):
        assert batch.action is not None
        if batch.action.ndim != 1:
            raise InputError(
                f"{log.files[0]}: a behaviour policy can be estimated for single discrete actions, "
                f"got lists of {batch.action.shape[1]} numbers; log behavior_prob."
            )
        sample.add(batch.obs[: len(batch)], batch.action, _units(batch), batch.rows)
    obs, action, unit, rows = sample.rows()
    actions, taken = np.unique(action, return_inverse=True)
    fractions = actions[actions % 1 != 0]
    if len(actions) > MOST_ACTIONS or len(fractions):
        given = f"{fractions[0]}" if len(fractions) else f"{len(actions)} different ones"
        raise InputError(
            f"{log.files[0]}: a behaviour policy can be estimated for at most {MOST_ACTIONS} "
            f"discrete actions (whole numbers), got {given}; log behavior_prob."
        )
    few = len(np.unique(unit)) < 2 * folds
    block = max(1, min(BLOCK, len(rows) // (4 * folds))) if few else 0
    fold = dealt(rows // block if block else unit, folds, seed)
    inputs = obs if features is None else features(obs)
    if classifier is None and features is None and observations_repeat(obs):
        classifier = Frequencies()
    models, converged = [], True
    for k in range(folds):
        others = fold != k if (fold != k).any() else np.ones(len(fold), dtype=np.bool_)
        model, reached = _fit(classifier, inputs[others], action[others], seed)
        models.append(model)
        converged &= reached
    name = "logistic" if classifier is None else " ".join(repr(classifier).split())
    name = "frequencies" if isinstance(classifier, Frequencies) else name
    settings = [name, folds, seed, sample_rows, floor, getattr(features, "__qualname__", None)]
    predicted = np.minimum(_predicted(models, actions, inputs, fold), 1.0)
    return Behavior(
        tuple(models), actions, calibrate(predicted, taken, floor), block, seed, floor, features,
        converged, json.dumps(settings),
    )  # fmt: skip


def _units(batch: LogBatch) -> Longs:
    """The number of each row's unit: its episode, unless the log has a column of units."""
    return batch.episode if batch.unit is None else batch.unit


def _fit(classifier: Any, inputs: NDArray[Any], taken: NDArray[Any], seed: int) -> tuple[Any, bool]:
    """A fitted copy of the classifier, and whether it converged."""
    if (taken == taken[0]).all():  # its probability is 1, whatever the observation
        return Frequencies().fit(inputs[:1], taken[:1]), True
    if classifier is None:
        model = _logistic_regression(seed)
    elif hasattr(classifier, "get_params"):
        model = importlib.import_module("sklearn.base").clone(classifier)
    else:
        model = copy.deepcopy(classifier)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with users_own("the classifier's fit"):
            model.fit(inputs, taken)
    if not hasattr(model, "classes_"):
        raise InputError(
            f"a fitted classifier needs the attribute classes_, {type(model).__name__} has none."
        )
    return model, not any("onverge" in str(warning.message) for warning in caught)


def _logistic_regression(seed: int) -> Any:
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


def _predicted(
    models: Sequence[Any], actions: NDArray[Any], inputs: NDArray[Any], fold: Longs
) -> Floats:
    """Probabilities of all actions, [n, K], each row by the classifier of its fold."""
    probabilities = np.zeros((len(fold), len(actions)))
    for k, model in enumerate(models):
        rows = np.flatnonzero(fold == k)
        if not len(rows):
            continue
        columns = np.searchsorted(actions, model.classes_)
        with users_own(f"the classifier's predict_proba, given {len(rows)} rows,"):
            predicted = np.asarray(model.predict_proba(inputs[rows]), dtype=np.float64)
        if predicted.shape != (len(rows), len(columns)):
            raise InputError(
                f"predict_proba must return one column per action, ({len(rows)}, {len(columns)}), "
                f"got the shape {predicted.shape}."
            )
        if not (np.isfinite(predicted).all() and (predicted >= 0).all()):
            raise InputError(
                "the classifier's predict_proba returned negative or undefined numbers."
            )
        probabilities[np.ix_(rows, columns)] = predicted
    return probabilities


def observations_repeat(obs: NDArray[Any]) -> bool:
    """Whether observations are few enough to count actions at each of them.

    >>> rare, often = np.arange(60.0)[:, None], np.repeat([[0.0], [1.0]], 30, axis=0)
    >>> observations_repeat(rare), observations_repeat(often)
    (False, True)
    """
    most = len(obs) / ROWS_PER_OBSERVATION
    # where the first rows alone have more distinct observations, the rest need not be sorted
    return all(len(np.unique(x, axis=0)) <= most for x in (obs[: int(2.0 * most) + 1], obs))


class Frequencies:
    """A classifier: frequencies of the actions at an observation, smoothed by those of all rows.

        p(a | s) = (n(s, a) + n(a) / n) / (n(s) + 1)

    An observation that was never seen has the frequencies of all rows.
    """

    def fit(self, obs: NDArray[Any], action: NDArray[Any]) -> Frequencies:
        """Count actions."""
        self.classes_, taken = np.unique(action, return_inverse=True)
        overall = np.bincount(taken) / len(taken)
        distinct, place = np.unique(obs + 0.0, axis=0, return_inverse=True)  # -0 is 0
        count = np.zeros((len(distinct), len(overall)))
        np.add.at(count, (place.reshape(-1), taken), 1.0)
        count += overall
        frequencies = count / count.sum(axis=1, keepdims=True)
        self.frequencies = np.concatenate([frequencies, overall[None]])
        self.places = {row.tobytes(): i for i, row in enumerate(distinct)}
        return self

    def predict_proba(self, obs: NDArray[Any]) -> Floats:
        """The frequencies at each observation."""
        distinct, place = np.unique(obs + 0.0, axis=0, return_inverse=True)
        rows = [self.places.get(row.tobytes(), -1) for row in distinct]
        return np.asarray(self.frequencies[rows][place.reshape(-1)])


@dataclass(frozen=True)
class Calibration:
    """Held-out predictions of all actions, in ten bins, against the actions that were taken.

    `calibration_error` is sum_b n_b |mean prediction - frequency| / (2 n) over the bins b of all
    n K pairs of row and action; for two actions it is the usual expected calibration error. In
    every bin of a `calibrated` estimate the frequency differs from the mean prediction by at most
    the smaller of 0.05 and a quarter of the prediction, and three standard errors more.
    """

    rows: int
    calibration_error: float
    calibrated: bool
    log_loss: float  # mean -log(probability of the action taken)
    log_loss_constant: float  # the same for the actions' frequencies, whatever the observation
    floored: int  # rows of the sample whose probability was raised to the floor
    bins: list[dict[str, float | int | bool]]


def calibrate(predicted: Floats, taken: Longs, floor: float) -> Calibration:
    """Compare predictions [n, K] with the numbers [n] of the actions taken."""
    n, K = predicted.shape
    happened = taken[:, None] == np.arange(K)
    number = np.minimum((predicted * BINS).astype(np.int64), BINS - 1).ravel()
    pairs = np.bincount(number, minlength=BINS)
    least_one = np.maximum(pairs, 1)

    mean, frequency, variance = (
        np.bincount(number, values.ravel(), BINS) / least_one
        for values in (predicted, happened, predicted * (1.0 - predicted))
    )
    deviation = np.sqrt(variance / least_one)
    gap = np.abs(mean - frequency)
    # one event more or less is chance in any bin, also where every prediction is 0 or 1
    allowed = np.minimum(ABSOLUTE, RELATIVE * mean) + CHANCE * deviation + 1.0 / least_one
    fine = (gap <= allowed) | (pairs == 0)
    probability = predicted[np.arange(n), taken]
    overall = np.bincount(taken) / n
    overall = overall[overall > 0]
    edges = np.arange(BINS + 1) / BINS
    names = ("low", "high", "pairs", "predicted", "happened", "fine")
    columns = (edges[:-1], edges[1:], pairs, mean, frequency, fine)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return Calibration(
        rows=n,
        calibration_error=float((pairs * gap).sum() / (2.0 * n)),
        calibrated=bool(fine.all()),
        log_loss=float(-np.log(np.maximum(probability, floor)).mean()),
        log_loss_constant=float(-(overall * np.log(overall)).sum()),
        floored=int((probability < floor).sum()),
        bins=[dict(zip(names, row, strict=True)) for row in rows],
    )


@dataclass(repr=False)
class EstimatedLog(Log):
    """A log whose batches have estimated behaviour probabilities."""

    behavior: Behavior | None = None
    floored: int | None = None  # rows raised to the floor in the last complete pass

    @property
    def has_behavior(self) -> bool:
        """True: the probabilities are estimated."""
        return True

    @property
    def calibration(self) -> dict[str, Any]:
        """How accurate the estimate is, in plain numbers."""
        assert self.behavior is not None
        b = self.behavior
        return {
            **asdict(b.calibration),
            "converged": b.converged,
            "folds": len(b.models),
            "actions": len(b.actions),
            "counted": all(isinstance(model, Frequencies) for model in b.models),
            "floor": b.floor,
            "settings": b.settings,
        }

    def batches(self, columns: Collection[str] | None = None) -> Generator[LogBatch, None, None]:
        """The log's batches with `behavior_prob` filled in."""
        if columns is not None and "behavior_prob" not in columns:
            yield from super().batches(columns)
            return
        assert self.behavior is not None
        floored = 0
        for batch in super().batches(_columns_read(columns)):
            probability, raised = self.behavior.probability(batch)
            floored += raised
            action = batch.action if columns is None or "action" in columns else None
            yield replace(batch, behavior_prob=probability, action=action)
        self.floored = floored

    def reads(self) -> dict[str, object]:
        """That of the log, and the fitted behaviour policy."""
        return {**super().reads(), "behavior": self.behavior}

    def read_contents(self, columns: Collection[str] | None = None) -> str:
        """A hash of what `batches(columns)` reads."""
        return super().read_contents(_columns_read(columns))


def _columns_read(columns: Collection[str] | None) -> Collection[str] | None:
    """The columns read from the log: actions in place of `behavior_prob`."""
    if columns is not None and "behavior_prob" not in columns:
        return columns
    names = {"action", "target_prob", "probs"} if columns is None else {*columns, "action"}
    return names - {"behavior_prob"}


def with_estimated_behavior(log: Log, fitted: Behavior | None = None) -> EstimatedLog:
    """The same log with `behavior_prob` as fitted by `estimate_behavior`, by default just now."""
    fitted = estimate_behavior(log) if fitted is None else fitted
    values = {f.name: getattr(log, f.name) for f in fields(Log)}
    values.update(behavior_estimated=True, left_out=None)
    return EstimatedLog(**values, behavior=fitted)


def opened(
    source: Any,
    discount: float | None,
    targets: Sequence[str] | Mapping[str, Policy] | None,
    columns: ColumnMap | None,
    behavior: Any,
    batch_rows: int,
    unit: str | None = None,
    obs: Sequence[str] | None = None,
    rewards: Mapping[str, Any] | None = None,
    by: str | None = None,
) -> Log:
    """The log, opened; it has behaviour probabilities unless they are to be estimated."""
    estimating = _is_estimate(behavior)
    known = None if estimating else behavior
    if isinstance(source, Log):
        given = {"targets": targets, "columns": columns, "behavior": known, "obs": obs}
        if unit != source.unit:
            given["unit"] = unit
        for name, value in given.items():
            if value is not None:
                raise InputError(f"{name} of an open log cannot be changed; give it to open_log.")
        log = source
    else:
        policy = ["action"] if estimating else [] if callable(known) else ["behavior_prob"]
        log = open_log(
            source, discount=discount, targets=targets, columns=columns, behavior=known,
            unit=unit, obs=obs, rewards=rewards, batch_rows=batch_rows,
            needs=policy if by is None else [*policy, by],
        )  # fmt: skip
    if not estimating:
        require_behavior(log)
    return log


def estimated(log: Log, behavior: Any, seed: int) -> Log:
    """The log with estimated behaviour probabilities, if `behavior` asks for them."""
    if not _is_estimate(behavior):
        return log
    classifier = None if isinstance(behavior, str) else behavior
    return with_estimated_behavior(log, estimate_behavior(log, classifier, seed=seed))


def require_behavior(log: Log) -> None:
    """Refuse a log without probabilities of the behaviour policy."""
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


def check_hidden(nothing_hidden: object, behavior: object) -> None:
    """Refuse a statement about estimated probabilities where none are estimated."""
    if not isinstance(nothing_hidden, bool):
        raise InputError(f"nothing_hidden must be True or False, got {nothing_hidden!r}.")
    if nothing_hidden and not _is_estimate(behavior):
        raise InputError(
            "nothing_hidden says that a policy whose probabilities are estimated looked at nothing "
            'but the logged observations; it needs behavior="estimate" (--estimate-behavior) or a '
            "classifier."
        )


def _is_estimate(behavior: object) -> bool:
    named = isinstance(behavior, str) and behavior == "estimate"
    return named or hasattr(behavior, "predict_proba")
