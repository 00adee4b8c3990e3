"""Which cure wins on how many drawn problems, and what the certificate predicted.

    python docs/cure_wins.py RESULTS/cures

Reads the grid of studies/cures.toml. For every instance of the family and every learner, the least
final error over its settings is taken (all learners have equally many). The certificate's first
choice is computed for every instance, which takes some minutes, and kept in RESULTS/cures. The
result is written to docs/results/cures_wins.json, from which `write_results.py` makes the page.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import steadytd as st
from steadytd.theory.cures.table import equals

FAMILY = "unstable_mdp"
# The certificate's cures by the name of the learner that stands for them here.
STANDS_FOR = {"partially_fitted": "target_td"}


def predicted(directory: Path, seeds: list[int]) -> dict[int, str]:
    """The certificate's first choice for every instance."""
    path = directory / "predicted.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    for seed in seeds:
        if str(seed) not in known:
            best = equals(st.certify(st.problem(FAMILY, seed=seed)).treatments)
            known[str(seed)] = best[0].cure.name if best else ""
            path.write_text(json.dumps(known))
    return {seed: STANDS_FOR.get(known[str(seed)], known[str(seed)]) for seed in seeds}


def least(directory: Path) -> pl.DataFrame:
    """The least final error of every learner on every instance; infinite if it always diverged."""
    found = pl.read_parquet(directory / "grid" / "*.parquet", columns=COLUMNS)
    final = pl.when(pl.col("diverged").is_null()).then("final_value").otherwise(float("inf"))
    return (
        found.filter(pl.col("problem") == FAMILY)
        .with_columns(final.alias("error"), pl.col("run").str.split(":").list[0].alias("learner"))
        .group_by("learner", "seed")
        .agg(pl.col("error").min())
        .sort("learner", "seed")
    )


COLUMNS = ["problem", "run", "seed", "diverged", "final_value"]


def wins(directory: Path) -> dict[str, Any]:
    """All that the page says."""
    found = least(directory)
    names = found["learner"].unique().sort().to_list()
    seeds = found["seed"].unique().sort().to_list()
    errors = found["error"].to_numpy().reshape(len(names), len(seeds))
    order = np.sort(errors, axis=0)
    winner = errors.argmin(axis=0)
    first = predicted(directory, seeds)
    chosen = [first[seed] for seed in seeds]
    at = [errors[names.index(c), i] / order[0, i] for i, c in enumerate(chosen) if c in names]
    rows = [
        {
            "learner": name,
            "wins": int((winner == i).sum()),
            "within_a_tenth": int((errors[i] <= 1.1 * order[0]).sum()),
            "median_ratio": float(np.median(errors[i] / order[0])),
            "always_diverged": int(np.isinf(errors[i]).sum()),
            "predicted": chosen.count(name),
        }
        for i, name in enumerate(names)
    ]
    return {
        "instances": len(seeds),
        "rows": sorted(rows, key=lambda row: (-int(str(row["wins"])), str(row["learner"]))),
        "agree": sum(names[w] == c for w, c in zip(winner, chosen, strict=True)),
        "predicted_median_ratio": float(np.median(at)),
        "predicted_within_a_tenth": int(sum(a <= 1.1 for a in at)),
        "runner_up_median_ratio": float(np.median(order[1] / order[0])),
    }


if __name__ == "__main__":
    text = json.dumps(wins(Path(sys.argv[1])), indent=1)
    (Path(__file__).parent / "results" / "cures_wins.json").write_text(text + "\n")
    print("docs/results/cures_wins.json")
