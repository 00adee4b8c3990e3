"""Estimated behaviour policies: right where the truth is known, flagged where they are not."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from steadytd import InputError
from steadytd.evaluation.behavior import (
    EstimatedLog,
    Frequencies,
    calibrate,
    estimate_behavior,
    with_estimated_behavior,
)
from steadytd.logs.log import Log, open_log
from tests.support.log_helpers import fixed_lists, identity_of

W = np.array([[1.0, 0.0, -1.0], [0.0, 0.7, -0.7]])


def softmax(scores: NDArray[Any]) -> NDArray[Any]:
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def logistic_table(
    episodes: int = 400, length: int = 25, seed: int = 0, labels: tuple[int, ...] = (0, 1, 2)
) -> tuple[Any, NDArray[Any]]:
    """A log whose actions are drawn from softmax(obs W), and the true probabilities [n, 3]."""
    rng = np.random.default_rng(seed)
    n = episodes * length
    obs = rng.normal(size=(n, 2)) * [2.0, 0.5] + [3.0, -1.0]
    truth = softmax((obs - [3.0, -1.0]) @ W)
    action = (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    table = pa.table(
        {
            "episode_id": np.arange(n) // length,
            "t": np.arange(n) % length,
            "obs": fixed_lists(obs),
            "action": np.array(labels)[action],
            "reward": np.zeros(n),
            "terminated": np.arange(n) % length == length - 1,
            "target_prob_even": np.full(n, 1 / 3),
        }
    )
    return table, truth


def logistic_log(**given: Any) -> tuple[Log, NDArray[Any]]:
    table, truth = logistic_table(**given)
    return open_log(table, discount=0.9, batch_rows=999), truth


def estimated(log: Log) -> NDArray[Any]:
    found = [batch.behavior_prob for batch in log.batches()]
    return np.concatenate([p for p in found if p is not None])


def test_a_logistic_policy_is_found_within_sampling_error() -> None:
    table, truth = logistic_table()
    log = open_log(table, discount=0.9)
    fitted = estimate_behavior(log)
    [batch] = log.batches()
    predicted = fitted.policy(batch.obs, fitted.folds_of(batch.episode, batch.rows))
    divergence = (truth * np.log(truth / predicted)).sum(axis=1).mean()
    # maximum likelihood with 6 free parameters on 8,000 rows: the mean divergence is about
    # 6 / (2 * 8000), and 6 times that is beyond any luck (a chi-square of 6 degrees at 36)
    assert 0.0 < divergence < 6 * 6 / 16_000
    assert fitted.converged
    c = fitted.calibration
    assert c.calibrated and c.rows == 10_000 and c.floored == 0
    assert c.calibration_error < 0.02
    entropy = -(truth * np.log(truth)).sum(axis=1).mean()
    assert abs(c.log_loss - entropy) < 0.02  # 3 standard errors of a mean of 10,000
    assert c.log_loss_constant > c.log_loss + 0.1


def test_the_wrapped_log_is_filled_marked_and_otherwise_the_same() -> None:
    log, truth = logistic_log(episodes=80, labels=(-5, 7, 30))
    assert not log.has_behavior
    wrapped = with_estimated_behavior(log, estimate_behavior(log, seed=3))
    assert isinstance(wrapped, Log) and wrapped.has_behavior and wrapped.behavior_estimated
    assert not log.behavior_estimated
    assert wrapped.rows == log.rows and wrapped.targets == log.targets
    plain, filled = list(log.batches()), list(wrapped.batches())
    taken = np.concatenate([b.action for b in plain if b.action is not None])
    place = np.searchsorted([-5, 7, 30], taken)
    own = truth[np.arange(len(place)), place]
    assert np.abs(estimated(wrapped) - own).mean() < 0.05
    for a, b in zip(plain, filled, strict=True):
        assert a.behavior_prob is None and b.behavior_prob is not None
        np.testing.assert_array_equal(a.obs, b.obs)
        np.testing.assert_array_equal(a.target_prob, b.target_prob)
        assert a.action is not None and b.action is not None
        np.testing.assert_array_equal(a.action, b.action)
    assert wrapped.floored == 0 and wrapped.left_out == log.left_out == 0
    assert wrapped.calibration["calibrated"] is True
    assert len(wrapped.calibration["bins"]) == 10
    some = next(wrapped.batches(columns={"behavior_prob"}))
    assert some.behavior_prob is not None and some.action is None and len(some.target_prob) == 0
    assert next(wrapped.batches(columns={"target_prob"})).behavior_prob is None
    others = (log, with_estimated_behavior(log, estimate_behavior(log, seed=4)))
    assert len({identity_of(one) for one in (*others, wrapped)}) == 3
    assert identity_of(with_estimated_behavior(log, estimate_behavior(log, seed=3))) == identity_of(
        wrapped
    )


@pytest.mark.slow
def test_parts_agree_with_the_whole_and_travel() -> None:
    log, _ = logistic_log(episodes=6000, length=25)  # long enough for three stretches
    wrapped = with_estimated_behavior(log, estimate_behavior(log, sample_rows=5000))
    parts = pickle.loads(pickle.dumps(wrapped.parts(2)))
    assert len(parts) == 2 and all(isinstance(part, EstimatedLog) for part in parts)
    again = np.concatenate([estimated(part) for part in parts])
    np.testing.assert_allclose(again, estimated(wrapped), rtol=1e-12)  # BLAS sums by shape
    assert wrapped.calibration["rows"] == 5000


class Spy:
    """Remembers the episodes that it was fitted on, which the first observation names."""

    classes_ = np.array([0, 1, 2])

    def fit(self, inputs: NDArray[Any], taken: NDArray[Any]) -> None:
        self.seen = set(inputs[:, 0].tolist())

    def predict_proba(self, inputs: NDArray[Any]) -> NDArray[Any]:
        assert not self.seen & set(inputs[:, 0].tolist())
        assert len(self.seen) > 200
        return np.full((len(inputs), 3), 1 / 3)


def test_no_row_is_predicted_by_a_classifier_that_saw_its_episode() -> None:
    table, _ = logistic_table(episodes=300, length=5)
    named = np.stack([table["episode_id"].to_numpy(), np.zeros(1500)], axis=1)
    table = table.set_column(2, "obs", fixed_lists(named))
    log = open_log(table, discount=0.9, batch_rows=100)
    wrapped = with_estimated_behavior(log, estimate_behavior(log, Spy(), folds=6))
    assert set(estimated(wrapped).tolist()) == {1 / 3}
    assert wrapped.behavior is not None and len(wrapped.behavior.models) == 6


def test_one_long_episode_is_dealt_out_in_blocks() -> None:
    log, _ = logistic_log(episodes=1, length=4000)
    wrapped = with_estimated_behavior(log)
    assert wrapped.behavior is not None and wrapped.behavior.block == 200
    assert wrapped.calibration["calibrated"]
    assert len(estimated(wrapped)) == 4000


class Sharpened:
    """Logistic regression that is far too sure of itself."""

    def fit(self, inputs: NDArray[Any], taken: NDArray[Any]) -> None:
        from sklearn.linear_model import LogisticRegression

        self.inner = LogisticRegression(max_iter=500).fit(inputs, taken)
        self.classes_ = self.inner.classes_

    def predict_proba(self, inputs: NDArray[Any]) -> NDArray[Any]:
        p = self.inner.predict_proba(inputs) ** 4
        return np.asarray(p / p.sum(axis=1, keepdims=True))


def test_a_badly_calibrated_classifier_is_flagged_and_floored() -> None:
    log, _ = logistic_log()
    wrapped = with_estimated_behavior(log, estimate_behavior(log, Sharpened()))
    c = wrapped.calibration
    assert c["calibrated"] is False
    assert c["calibration_error"] > 0.1
    assert c["log_loss"] > c["log_loss_constant"] - 0.2
    values = estimated(wrapped)
    assert values.min() == 1e-3
    assert wrapped.floored == c["floored"] == int((values == 1e-3).sum()) > 20
    assert any(not row["fine"] for row in c["bins"])


def counted_log(rng: np.random.Generator, states: int, rows: int) -> Log:
    """One step per episode; states 0, 1, ... are pairs of numbers."""
    s, action = rng.integers(states, size=rows), rng.integers(3, size=rows)
    table = pa.table(
        {
            "episode_id": np.arange(rows), "t": np.zeros(rows, dtype=int),
            "obs": fixed_lists(np.stack([s / 7.0, -s], axis=1)), "action": action,
            "reward": np.zeros(rows), "terminated": np.ones(rows, dtype=bool),
            "target_prob_even": np.full(rows, 1 / 3),
        }
    )  # fmt: skip
    return open_log(table, discount=0.9)


def test_frequencies_are_counts() -> None:
    rng = np.random.default_rng(4)
    obs = rng.integers(3, size=(60, 2)) / 7.0
    action = rng.choice([5, 8, 9], size=60, p=[0.2, 0.5, 0.3])
    model = Frequencies().fit(obs, action)
    every = np.array([(action == a).mean() for a in (5, 8, 9)])
    asked = np.vstack([obs[::-1], [[9.0, 9.0]], np.where(obs == 0.0, -0.0, obs)])
    for x, p in zip(asked, model.predict_proba(asked), strict=True):
        here = (obs == x).all(axis=1)
        count = np.array([(here & (action == a)).sum() for a in (5, 8, 9)])
        np.testing.assert_allclose(p, (count + every) / (here.sum() + 1), rtol=1e-13)
    assert model.classes_.tolist() == [5, 8, 9]


def test_actions_are_counted_where_observations_repeat() -> None:
    """30 rows per observation are enough, whatever the folds; a feature map is not passed over."""
    rng = np.random.default_rng(0)
    few, many = counted_log(rng, 5, 5 * 30), counted_log(rng, 1000, 5 * 30)
    fitted = estimate_behavior(few)
    assert all(isinstance(model, Frequencies) for model in fitted.models)
    assert json.loads(fitted.settings)[0] == "frequencies"
    for others in (estimate_behavior(many), estimate_behavior(few, features=lambda x: x)):
        assert json.loads(others.settings)[0] == "logistic"


def test_a_users_classifier_and_feature_map() -> None:
    from sklearn.ensemble import RandomForestClassifier

    log, _ = logistic_log(episodes=100)
    forest = RandomForestClassifier(n_estimators=20, min_samples_leaf=50, random_state=0)
    fitted = estimate_behavior(log, forest, folds=3)
    assert not hasattr(forest, "classes_")  # the user's own object is left as it was
    assert fitted.calibration.log_loss < fitted.calibration.log_loss_constant - 0.1
    blind = estimate_behavior(log, features=lambda obs: np.zeros((len(obs), 1)))
    assert blind.calibration.calibrated  # calibrated, though it knows nothing
    loss = blind.calibration.log_loss
    assert loss == pytest.approx(blind.calibration.log_loss_constant, abs=0.01)


class Late:
    """A classifier that is fine on the sample that it is fitted with, and on nothing else."""

    def __init__(self, late: Any = None) -> None:
        self.late, self.asked = late, 0

    def fit(self, inputs: Any, taken: Any) -> Late:
        self.classes_ = np.unique(taken)
        return self

    def predict_proba(self, inputs: Any) -> Any:
        self.asked += 1
        if self.asked > 1 and self.late is None:
            raise KeyError("late")
        share = 1.0 / len(self.classes_) if self.asked == 1 else self.late
        return np.full((len(inputs), len(self.classes_)), share)


@pytest.mark.parametrize(
    ("late", "words"),
    [
        (None, r"predict_proba, given \d+ rows, failed: KeyError"),
        (np.nan, "returned negative or undefined"),
        (-0.1, "returned negative or undefined"),
    ],
)
def test_a_classifier_that_fails_after_its_sample(late: Any, words: str) -> None:
    log, _ = logistic_log(episodes=40)
    wrapped = with_estimated_behavior(log, estimate_behavior(log, Late(late), folds=2))
    with pytest.raises(InputError, match=words):
        estimated(wrapped)


def test_one_action_only_and_actions_not_in_the_sample() -> None:
    log, _ = logistic_log(episodes=20, labels=(4, 4, 4))
    wrapped = with_estimated_behavior(log)
    assert set(estimated(wrapped).tolist()) == {1.0}
    table, _ = logistic_table(episodes=40)
    rare = table["action"].to_numpy().copy()
    rare[-1] = 99  # seen by the classifiers of other folds only, or by none
    log = open_log(table.set_column(3, "action", pa.array(rare)), discount=0.9)
    values = estimated(with_estimated_behavior(log))
    assert values[-1] == 1e-3


def test_calibration_of_known_numbers() -> None:
    predicted = np.repeat([[0.85, 0.15]], 1000, axis=0)
    right = np.repeat([0, 1], [850, 150])
    c = calibrate(predicted, right, 1e-3)
    assert c.calibrated and c.calibration_error == pytest.approx(0.0, abs=1e-12)
    assert c.log_loss == pytest.approx(-(0.85 * np.log(0.85) + 0.15 * np.log(0.15)))
    assert c.log_loss == pytest.approx(c.log_loss_constant)
    wrong = np.repeat([0, 1], [600, 400])
    c = calibrate(predicted, wrong, 1e-3)
    assert not c.calibrated and c.calibration_error == pytest.approx(0.25)
    assert [row["pairs"] for row in c.bins] == [0, 1000, 0, 0, 0, 0, 0, 0, 1000, 0]
    assert c.bins[1]["happened"] == 0.4 and c.bins[8]["predicted"] == pytest.approx(0.85)
    few = calibrate(predicted[:10], np.repeat([0, 1], [6, 4]), 1e-3)
    assert few.calibrated  # 6 of 10 where 8.5 are expected: within three standard errors
    sure = calibrate(np.repeat([[1.0, 0.0]], 100, axis=0), np.repeat([0, 1], [95, 5]), 1e-3)
    assert not sure.calibrated and sure.floored == 5


def test_small_probabilities_count_by_their_ratio() -> None:
    """0.01 predicted where 0.03 happens is a small gap, but ratios are wrong by a factor three."""
    predicted = np.repeat([[0.99, 0.01]], 100_000, axis=0)
    c = calibrate(predicted, np.repeat([0, 1], [97_000, 3_000]), 1e-3)
    assert not c.calibrated and c.calibration_error == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"folds": 1}, "folds must be a whole number >= 2, got 1"),
        ({"floor": 0.0}, "floor must lie between 0 and 1"),
        ({"sample_rows": 1}, "sample_rows must be a whole number >= 2, got 1"),
        ({"classifier": object()}, "needs a method fit, object has none"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], words: str) -> None:
    log, _ = logistic_log(episodes=5)
    with pytest.raises(InputError, match=words):
        estimate_behavior(log, **arguments)


def test_actions_that_are_not_discrete() -> None:
    table, _ = logistic_table(episodes=5)
    n = len(table)
    for column, words in [
        (pa.array(np.linspace(0, 1, n)), r"discrete actions \(whole numbers\), got 0.008"),
        (fixed_lists(np.zeros((n, 2))), "single discrete actions, got lists of 2 numbers"),
    ]:
        spoilt = open_log(table.set_column(3, "action", column), discount=0.9)
        with pytest.raises(InputError, match=words):
            estimate_behavior(spoilt)


@pytest.mark.slow
def test_scikit_learn_missing_is_said_plainly() -> None:
    code = (
        "import sys; sys.modules['sklearn'] = None; sys.modules['sklearn.linear_model'] = None\n"
        "from tests.evaluation.test_behavior import logistic_log, estimate_behavior\n"
        "try: estimate_behavior(logistic_log(episodes=5)[0])\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("InputError estimating the behaviour policy needs the package")
