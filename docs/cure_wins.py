"""Which cure wins on how many drawn problems, and what the certificate predicted.

    python docs/cure_wins.py RESULTS/cures

Reads the grid of studies/cures.toml. Every learner has equally many settings, and one run for each
on every instance of the family. Wins are counted in two ways: each learner at its one setting with
the least median final error over all instances, and each at its best setting on the instance. The
second chooses and measures on the same run, which favours learners that scatter; it was counted
first, and the other was added because of that. The certificate's first choice is computed for every
instance, which takes some minutes, and kept in RESULTS/cures. The result is written to
docs/results/cures_wins.json, from which `write_results.py` makes the page.
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
    """Of every learner on every instance the final error, counted in two ways.

    `error` is that of the one setting of a learner with the least median over all instances, and
    `own` that of the best of its settings on that instance. Infinite where a run diverged.
    """
    found = pl.read_parquet(directory / "grid" / "*.parquet", columns=COLUMNS)
    final = pl.when(pl.col("diverged").is_null()).then("final_value").otherwise(float("inf"))
    rows = found.filter(pl.col("problem") == FAMILY).with_columns(
        final.alias("error"), pl.col("run").str.split(":").list[0].alias("learner")
    )
    medians = rows.group_by("learner", "run").agg(pl.col("error").median()).sort("error", "run")
    best = medians.group_by("learner", maintain_order=True).first()["run"].to_list()
    own = rows.group_by("learner", "seed").agg(pl.col("error").min().alias("own"))
    chosen = rows.filter(pl.col("run").is_in(best))
    return chosen.join(own, on=["learner", "seed"]).sort("learner", "seed")


COLUMNS = ["problem", "run", "seed", "diverged", "final_value"]


def wins(directory: Path) -> dict[str, Any]:
    """All that the page says."""
    found = least(directory)
    names = found["learner"].unique().sort().to_list()
    seeds = found["seed"].unique().sort().to_list()
    errors = found["error"].to_numpy().reshape(len(names), len(seeds))
    order = np.sort(errors, axis=0)
    winner = errors.argmin(axis=0)
    own = found["own"].to_numpy().reshape(errors.shape)
    own_winner = own.argmin(axis=0)
    settings = dict(found.select("learner", "run").unique().iter_rows())
    first = predicted(directory, seeds)
    chosen = [first[seed] for seed in seeds]
    at = [errors[names.index(c), i] / order[0, i] for i, c in enumerate(chosen) if c in names]
    rows = [
        {
            "learner": name,
            "run": settings[name],
            "wins": int((winner == i).sum()),
            "wins_at_own_best": int((own_winner == i).sum()),
            "within_a_tenth": int((errors[i] <= 1.1 * order[0]).sum()),
            "median_ratio": float(np.median(errors[i] / order[0])),
            "diverged": int(np.isinf(errors[i]).sum()),
            "predicted": chosen.count(name),
        }
        for i, name in enumerate(names)
    ]
    return {
        "instances": len(seeds),
        "rows": sorted(rows, key=lambda row: (-int(str(row["wins"])), str(row["learner"]))),
        "agree": sum(names[w] == c for w, c in zip(winner, chosen, strict=True)),
        "agree_at_own_best": sum(names[w] == c for w, c in zip(own_winner, chosen, strict=True)),
        "runner_up_median_ratio_at_own_best": float(
            np.median(np.divide(*np.sort(own, axis=0)[1::-1]))
        ),
        "predicted_median_ratio": float(np.median(at)),
        "predicted_within_a_tenth": int(sum(a <= 1.1 for a in at)),
        "runner_up_median_ratio": float(np.median(order[1] / order[0])),
    }


if __name__ == "__main__":
    text = json.dumps(wins(Path(sys.argv[1])), indent=1)
    (Path(__file__).parent / "results" / "cures_wins.json").write_text(text + "\n")
    print("docs/results/cures_wins.json")
