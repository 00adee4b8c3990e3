"""Logs for the recipes of docs/recipes.md, from three small simulators whose truth is known.

    python examples/recipes.py [results] [--rows 4000]

Writes requests.csv, sessions.csv and ward.csv. The functions that end in `_truth` have the answers.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl

MODELS = ("large", "medium", "small")
COST = np.array([0.5, 0.2, 0.05])
QUALITY = {"code": np.array([0.9, 0.6, 0.3]), "chat": np.array([0.8, 0.78, 0.7])}


def requests(rows: int, rng: np.random.Generator) -> pl.DataFrame:
    """One answer each; the large model is not allowed in one of three requests.

    The router takes every allowed model alike. The rule sends chat to the small model, and code to
    the largest that is allowed, each with probability 0.9.
    """
    kind = rng.choice(["code", "chat"], rows)
    allowed = np.column_stack([rng.random(rows) < 2 / 3, np.ones((rows, 2), dtype=bool)])
    router = allowed / allowed.sum(axis=1, keepdims=True)
    best = np.where(kind == "chat", 2, np.where(allowed[:, 0], 0, 1))
    rule = 0.1 * router
    rule[np.arange(rows), best] += 0.9
    action = (rng.random(rows)[:, None] > router.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    i = np.arange(rows)
    good = np.array([QUALITY[k][a] for k, a in zip(kind, action, strict=True)])
    return pl.DataFrame({
        "kind": kind, "tokens": rng.integers(50, 2000, rows), "model": np.array(MODELS)[action],
        "allowed": ["|".join(np.array(MODELS)[row]) for row in allowed],
        "quality": (rng.random(rows) < good).astype(float), "cost": COST[action],
        "probability": router[i, action], "rule": rule[i, action],
    })  # fmt: skip


def requests_truth() -> dict[str, float]:
    """By enumeration: how much the rule changes quality and cost."""
    apart = {"quality": 0.0, "cost": 0.0}
    for kind, good in QUALITY.items():
        for large, chance in ((True, 1 / 3), (False, 1 / 6)):
            router = np.array([large, 1.0, 1.0]) / (2.0 + large)
            rule = 0.1 * router
            rule[2 if kind == "chat" else 0 if large else 1] += 0.9
            apart["quality"] += chance * float((rule - router) @ good)
            apart["cost"] += chance * float((rule - router) @ COST)
    return apart


LIFT = {"new": 0.25, "regular": 0.0}  # of a coupon, on the chance of an order


def sessions(rows: int, rng: np.random.Generator) -> pl.DataFrame:
    """Users with about ten sessions each; a coupon brings new users to order, and costs."""
    users = rows // 10
    user = rng.integers(0, users, rows)
    segment = np.where(rng.random(users) < 0.4, "new", "regular")[user]
    taste = rng.normal(0.0, 0.1, users)[user]  # what sessions of a user have in common
    coupon = rng.random(rows) < 0.5
    order = 0.3 + taste + np.array([LIFT[s] for s in segment]) * coupon
    target = np.where(segment == "new", 0.9, 0.1)
    return pl.DataFrame({
        "user_id": user, "segment": segment, "shown": np.where(coupon, "coupon", "banner"),
        "orders": (rng.random(rows) < order).astype(float), "spent": 0.05 * coupon,
        "probability": 0.5, "to_new": np.where(coupon, target, 1.0 - target),
    })  # fmt: skip


def sessions_truth() -> dict[str, float]:
    """Per session: 0.4 of the users are new, and get 0.4 more coupons; the others 0.4 fewer."""
    return {
        "orders": 0.4 * 0.4 * LIFT["new"] - 0.6 * 0.4 * LIFT["regular"],
        "spent": 0.05 * (0.4 * 0.4 - 0.6 * 0.4),
    }


DAYS = 6
DOSES = np.array([0.2, 0.5])  # of the high dose: the doctors, and the new rule


def ward(rows: int, rng: np.random.Generator) -> pl.DataFrame:
    """Patients with a severity of 0 to 2; a high dose heals faster. After six days logging stops.

    A day pays minus the severity; at severity 0 a patient goes home. The doctors give the high dose
    with probability 0.2, the new rule with 0.5.
    """
    found, patients = [], rows // 3
    for patient in range(patients):
        severity = int(rng.integers(1, 3))
        for day in range(DAYS):
            high = bool(rng.random() < DOSES[0])
            after = severity - int(rng.random() < (0.5 if high else 0.2))
            chances = np.where(high, DOSES, 1.0 - DOSES)
            found.append((patient, day, severity, "high" if high else "low", -float(severity),
                          after, after == 0, day == DAYS - 1 and after > 0, *chances))  # fmt: skip
            severity = after
            if not severity:
                break
    names = [
        "patient",
        "day",
        "severity",
        "dose",
        "reward",
        "after",
        "home",
        "stops",
        "probability",
        "rule",
    ]
    return pl.DataFrame(found, schema=names, orient="row")


def ward_truth(discount: float) -> float:
    """V(1) = -1 + discount (1 - p) V(1), V(2) = -2 + discount (p V(1) + (1 - p) V(2))."""
    values = []
    for high in DOSES:
        p = 0.2 + 0.3 * high
        one = -1.0 / (1.0 - discount * (1.0 - p))
        two = (-2.0 + discount * p * one) / (1.0 - discount * (1.0 - p))
        values.append((one + two) / 2.0)
    return float(values[1] - values[0])


def main() -> None:
    """Write the three logs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, nargs="?", default=Path("results"))
    parser.add_argument("--rows", type=int, default=4000)
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    for seed, make in enumerate((requests, sessions, ward)):
        path = options.directory / f"{make.__name__}.csv"
        make(options.rows, np.random.default_rng(seed)).write_csv(path)
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
