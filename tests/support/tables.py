"""Sessions of a shop as a data scientist has them, with known means, and policies for them."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats

pd: Any = importlib.import_module("pandas")

ACTIONS = ("banner", "coupon", "none")
SEGMENTS = {"new": 0.5, "old": 0.35, "vip": 0.15}


class Rule:
    """A model whose probabilities are the same in all rows."""

    def __init__(self, classes: list[str], probs: list[float]) -> None:
        self.classes_, self.probs = np.array(classes), np.array(probs)

    def predict_proba(self, rows: Any) -> Floats:
        """As they were given."""
        return np.tile(self.probs, (len(rows), 1))


def contexts(rng: np.random.Generator, n: int, users: int) -> Any:
    """What is known of sessions before an action."""
    start, seconds = pd.Timestamp("2026-01-01"), rng.integers(0, 90 * 86400, size=n)
    return pd.DataFrame(
        {
            "user_id": [f"u{u}" for u in rng.integers(users, size=n)],
            "segment": pd.Categorical(rng.choice(list(SEGMENTS), p=[*SEGMENTS.values()], size=n)),
            "basket": rng.gamma(2.0, 10.0, size=n),
            "member": rng.random(n) < 0.4,
            "when": start + pd.to_timedelta(seconds, unit="s"),
        }
    )


def _rank(frame: Any) -> Floats:
    ranks = {"new": 0.0, "old": 1.0, "vip": 2.0}
    return np.array([ranks[one] for one in frame["segment"]])


def mean_rewards(frame: Any) -> Floats:
    """The expected revenue of every action [n, 3]."""
    s, b = _rank(frame), frame["basket"].to_numpy() / 20.0
    m = frame["member"].to_numpy().astype(float)
    return np.stack([1 + 0.5 * s, 0.5 + b - 0.3 * m, 0.8 + 0.2 * s * m], axis=1)


def behavior(frame: Any) -> Floats:
    """The probabilities of the policy that makes the log [n, 3]."""
    s = _rank(frame)
    odds = np.exp(np.stack([0.3 * s, np.full(len(s), 0.2), -0.1 * s], axis=1))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def sessions(seed: int, n: int, users: int = 4000, missing: float = 0.02) -> Any:
    """A log of n sessions; 2 % of the baskets are missing. The policy `rule` likes coupons."""
    rng = np.random.default_rng(seed)
    frame = contexts(rng, n, users)
    probs = behavior(frame)
    taken = (rng.random(n)[:, None] > probs.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    own = 0.5 * rng.normal(size=users)[[int(u[1:]) for u in frame["user_id"]]]
    logged = frame.assign(
        action=np.array(ACTIONS)[taken],
        propensity_score=probs[np.arange(n), taken],
        revenue=mean_rewards(frame)[np.arange(n), taken] + own + rng.normal(size=n),
        rule=np.where(taken == 1, 0.8, 0.1),
    )
    logged.loc[rng.random(n) < missing, "basket"] = np.nan
    return logged


def pipeline(seed: int, noise: float) -> Any:
    """A policy learned elsewhere: a scikit-learn pipeline on the segment and the basket."""
    compose, impute, linear, pipelines, preprocessing = (
        importlib.import_module(f"sklearn.{name}")
        for name in ("compose", "impute", "linear_model", "pipeline", "preprocessing")
    )
    rng = np.random.default_rng(seed)
    frame = contexts(rng, 3000, 100)
    scores = mean_rewards(frame) + noise * rng.normal(size=(3000, 3))
    best: NDArray[Any] = np.array(ACTIONS)[scores.argmax(axis=1)]
    basket = pipelines.make_pipeline(impute.SimpleImputer(), preprocessing.StandardScaler())
    columns = compose.make_column_transformer(
        (preprocessing.OneHotEncoder(handle_unknown="ignore"), ["segment"]), (basket, ["basket"])
    )
    model = pipelines.make_pipeline(columns, linear.LogisticRegression(max_iter=500))
    return model.fit(frame[["segment", "basket"]], best)
