"""Side by side on logs of one step: steadytd, a doubly robust estimate in NumPy, and skdr-eval.

    python benchmarks/doubly_robust.py [--logs 100] [--rows 2000] [--quick]

skdr-eval is measured if it is installed (pip install skdr-eval==0.12.*). All three value the same
deterministic policy in the same logs, whose value is known. The code of each is what a user writes
to get an interval, and its lines are counted.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import textwrap
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import steadytd as st

ACTIONS = 3
BEHAVIOR = np.array([[0.3, 0.0, -0.3], [0.6, 0.0, -0.6], [0.0, 0.4, -0.4]])
TARGET = np.array([[0.0, 0.2, 0.0], [-0.5, 0.0, 0.5], [0.5, 0.0, -0.5]])
MEAN = np.array([[1.0, 1.2, 1.1], [-0.3, 0.2, 0.4], [0.3, 0.0, -0.2]])


def drawn(rows: int, rng: np.random.Generator) -> dict[str, Any]:
    """A log: context x, action a, reward y, probabilities of all actions, what the target takes."""
    x = rng.normal(size=(rows, 2))
    X = np.column_stack([np.ones(rows), x])
    mu = np.exp(X @ BEHAVIOR)
    mu /= mu.sum(axis=1, keepdims=True)
    a = (rng.random(rows)[:, None] > mu.cumsum(axis=1)).sum(axis=1).clip(0, ACTIONS - 1)
    means = 5.0 + X @ MEAN + np.sin(X[:, 1:2])
    y = means[np.arange(rows), a] + rng.normal(size=rows)
    return {"x": x, "a": a, "y": y, "mu": mu, "target": (X @ TARGET).argmax(axis=1), "mean": means}


def with_steadytd(log: dict[str, Any]) -> tuple[float, float]:
    """The interval of a value, 95 %."""
    a, mu = log["a"], log["mu"]
    frame = pl.DataFrame({
        "x": log["x"][:, 0], "z": log["x"][:, 1], "reward": log["y"], "action": a,
        "behavior_prob": mu[np.arange(len(a)), a], "new": (a == log["target"]).astype(float),
    })  # fmt: skip
    e = st.evaluate(frame, obs=["x", "z"], discount=1.0, targets={"new": "new"})
    return e.recommended["new"].lo, e.recommended["new"].hi


def with_numpy(log: dict[str, Any]) -> tuple[float, float]:
    """Linear regressions of two folds, and 1.96 standard errors."""
    a, y, target, n = log["a"], log["y"], log["target"], len(log["y"])
    X, scores, i = np.column_stack([np.ones(n), log["x"]]), np.empty(n), np.arange(n)
    for mine in (i % 2 == 0, i % 2 == 1):
        fits = [np.linalg.lstsq(X[~mine & (a == k)], y[~mine & (a == k)])[0] for k in range(3)]
        q = X[mine] @ np.column_stack(fits)
        j, m = np.arange(mine.sum()), mine
        ratio = (a[m] == target[m]) / log["mu"][m, a[m]]
        scores[m] = q[j, target[m]] + ratio * (y[m] - q[j, a[m]])
    half = 1.96 * scores.std() / n**0.5
    return float(scores.mean() - half), float(scores.mean() + half)


def with_skdr(log: dict[str, Any]) -> tuple[float, float]:
    """Its model is the policy: the action with the least prediction is taken."""
    pd, skdr_eval = (importlib.import_module(name) for name in ("pandas", "skdr_eval"))
    frame = pd.DataFrame({
        "arrival_ts": pd.date_range("2024-01-01", periods=len(log["y"]), freq="min"),
        "cli_x": log["x"][:, 0], "cli_z": log["x"][:, 1], "y": log["y"],
        "action": [f"op_{k}" for k in log["a"]], **{f"op_{k}_elig": True for k in range(ACTIONS)},
    })  # fmt: skip
    found = skdr_eval.evaluate_sklearn_models(
        frame, {"new": Policy()}, fit_models=False, policy_train="all", ci_bootstrap=True,
        y_col="y", estimators=("DR",),
    )  # fmt: skip
    row = found.report.iloc[0]
    return float(row["ci_lower"]), float(row["ci_upper"])


class Policy:
    """The target as skdr-eval takes policies: a model of rows of context and one-hot action."""

    def fit(self, X: Any, y: Any) -> Policy:
        """Nothing to learn."""
        return self

    def predict(self, X: Any) -> Any:
        """1 for the action that the target takes; others have a probability of about 1e-9."""
        best = (np.column_stack([np.ones(len(X)), X[:, :2]]) @ TARGET).argmax(axis=1)
        return np.where(X[:, -ACTIONS:].argmax(axis=1) == best, 1.0, 1e9)


def lines(function: Callable[..., Any]) -> int:
    """Lines of code, without the signature and its text."""
    text = textwrap.dedent(inspect.getsource(function)).split('"""')[-1]
    return sum(bool(line.strip()) for line in text.splitlines())


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=100)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    logs, rows = (2, 300) if options.quick else (options.logs, options.rows)
    warnings.simplefilter("ignore")
    large = drawn(1_000_000, np.random.default_rng(10**6))
    truth = float(large["mean"][np.arange(len(large["y"])), large["target"]].mean())
    methods = {"steadytd": with_steadytd, "NumPy": with_numpy}
    if importlib.util.find_spec("skdr_eval") is not None:
        methods["skdr-eval"] = with_skdr
    print(f"{logs} logs of {rows:,} rows; the true value is {truth:.3f}")
    print("| | lines | seconds | width of the interval | holds the truth |")
    print("|---|---|---|---|---|")
    for name, method in methods.items():
        method(drawn(rows, np.random.default_rng(logs)))  # compiles, imports
        begin, found = time.perf_counter(), []
        for seed in range(logs):
            found.append(method(drawn(rows, np.random.default_rng(seed))))
        seconds, (lo, hi) = (time.perf_counter() - begin) / logs, np.array(found).T
        held, width = ((lo <= truth) & (truth <= hi)).mean(), (hi - lo).mean()
        n = lines(method) + (lines(Policy.predict) if name == "skdr-eval" else 0)
        print(f"| {name} | {n} | {seconds:.3f} | {width:.3f} | {100 * held:.0f} % |")


if __name__ == "__main__":
    main()
