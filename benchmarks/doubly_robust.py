"""Side by side on logs of one step: steadytd, a doubly robust estimate in NumPy, and skdr-eval.

    python benchmarks/doubly_robust.py [--logs 100] [--rows 2000] [--quick]

skdr-eval is measured if it is installed (pip install skdr-eval==0.12.*): its evaluation in one
call, and its parts put together by hand. Set OMP_NUM_THREADS=1: on busy cores it took three times
as long with threads. All value the same deterministic policy in the same logs, whose value
is known. The code of each is what a user writes to get an interval, and its lines are counted.

Below the table are the terms of steadytd's intervals, as in `steadytd/evaluation/rule.py`.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import steadytd as st
from steadytd.evaluation.intervals import effective_number, standard_error
from steadytd.evaluation.rule import sampling_error

skdr_eval: Any = None
if importlib.util.find_spec("skdr_eval") is not None:
    skdr_eval = importlib.import_module("skdr_eval")

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


def evaluated(log: dict[str, Any]) -> st.Evaluation:
    """The evaluation by steadytd."""
    a, mu = log["a"], log["mu"]
    frame = pl.DataFrame({
        "x": log["x"][:, 0], "z": log["x"][:, 1], "reward": log["y"], "action": a,
        "behavior_prob": mu[np.arange(len(a)), a], "new": (a == log["target"]).astype(float),
    })  # fmt: skip
    return st.evaluate(frame, obs=["x", "z"], discount=1.0, targets={"new": "new"})


def with_steadytd(log: dict[str, Any]) -> tuple[float, float]:
    """The interval of a value, 95 %."""
    found = evaluated(log).recommended["new"]
    return found.lo, found.hi


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
    """One call. It estimates the behaviour's probabilities: it takes none."""
    frame = pl.DataFrame({
        "arrival_ts": np.arange(len(log["y"])), "cli_x": log["x"][:, 0], "cli_z": log["x"][:, 1],
        "y": log["y"], "action": [f"op_{k}" for k in log["a"]],
        **{f"op_{k}_elig": True for k in range(ACTIONS)},
    })  # fmt: skip
    found = skdr_eval.evaluate_sklearn_models(
        frame, {"new": Policy()}, fit_models=False, policy_train="all", ci_bootstrap=True,
        y_col="y", estimators=("DR",),
    )  # fmt: skip
    return tuple(found.report.loc[0, ["ci_lower", "ci_upper"]])


class Policy:
    """The target as that call takes policies: a model of rows of context and one-hot action."""

    def fit(self, X: Any, y: Any) -> Policy:
        """Nothing to learn."""
        return self

    def predict(self, X: Any) -> Any:
        """Actions have probabilities in proportion to 1 / prediction: 1e-9 is as good as 0."""
        best = (np.column_stack([np.ones(len(X)), X[:, :2]]) @ TARGET).argmax(axis=1)
        return np.where(X[:, -ACTIONS:].argmax(axis=1) == best, 1.0, 1e9)


def with_skdr_parts(log: dict[str, Any]) -> tuple[float, float]:
    """Probabilities as logged, an outcome model of the context alone, and weights as they are."""
    a, y, mu, target = log["a"], log["y"], log["mu"], np.eye(ACTIONS)[log["target"]]
    q, _ = skdr_eval.fit_outcome_crossfit(log["x"], y)
    eligible, clips = np.ones_like(mu), (np.inf,)
    found = skdr_eval.dr_value_with_clip(mu, target, y, q, a, eligible, clip_grid=clips)["DR"]
    half = 1.96 * found.SE_if
    return found.V_hat - half, found.V_hat + half


def lines(*functions: Callable[..., Any]) -> int:
    """Lines of code, without the signature and its text."""
    texts = [inspect.getsource(function).split('"""')[-1] for function in functions]
    return sum(bool(line.strip()) for text in texts for line in text.splitlines())


def print_terms(logs: list[dict[str, Any]]) -> None:
    """What the intervals of steadytd consist of: means of half widths."""
    chosen = [evaluated(log).results[0].selection for log in logs]
    influences = [s.candidate.influence for s in chosen]
    normal = np.array([1.96 * standard_error(e) for e in influences])
    student = np.array([sampling_error(e) for e in influences])
    sampling = np.array([s.sampling for s in chosen])
    half = np.array([(s.hi - s.lo) / 2 for s in chosen])
    deciding = np.median([effective_number(e**2) for e in influences])
    print(f"\nsteadytd: half the width is {half.mean():.3f}, the sum of")
    print(f"  {normal.mean():.3f} 1.96 standard errors")
    print(f"  {(student - normal).mean():.3f} Student's t: {deciding:.0f} units decide the error")
    print(
        f"  {(sampling - student).mean():.3f} rare outcomes, in {(sampling > student).sum()} logs"
    )
    print(f"  {(half - sampling).mean():.3f} limits of the rewards")


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
    methods: dict[str, tuple[Callable[..., Any], ...]] = {
        "steadytd": (with_steadytd, evaluated),
        "NumPy": (with_numpy,),
    }
    if skdr_eval is not None:
        methods["skdr-eval, one call"] = (with_skdr, Policy.predict)
        methods["skdr-eval, its parts"] = (with_skdr_parts,)
    print(f"{logs} logs of {rows:,} rows; the true value is {truth:.3f}")
    print("| | lines | seconds | mean width | median width | mean middle | holds the truth |")
    print("|---|---|---|---|---|---|---|")
    for name, (method, *others) in methods.items():
        method(drawn(rows, np.random.default_rng(logs)))  # compiles, imports
        seconds, found = 0.0, []
        for seed in range(logs):
            log, begin = drawn(rows, np.random.default_rng(seed)), time.perf_counter()
            found.append(method(log))
            seconds += (time.perf_counter() - begin) / logs
        lo, hi = np.array(found).T
        held, width = ((lo <= truth) & (truth <= hi)).sum(), hi - lo
        print(
            f"| {name} | {lines(method, *others)} | {seconds:.3f} | {width.mean():.2f} "
            f"| {np.median(width):.2f} | {(lo + hi).mean() / 2:.2f} | {held} of {logs} |"
        )
    print_terms([drawn(rows, np.random.default_rng(seed)) for seed in range(logs)])


if __name__ == "__main__":
    main()
