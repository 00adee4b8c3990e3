"""Which cure wins on how many drawn problems, beside what the certificate says before any run.

    python docs/cure_wins.py RESULTS/cures

Reads the grid of studies/cures.toml, one run for each setting and instance of the family, and adds
what a study of a family cannot say: runs with eta=auto and ratio=auto, and of the learner that the
certificate recommends, each chosen for its instance and run on the same stream. They take some
minutes and are kept in RESULTS/cures. A study whose runs are too short for an unstable mode to show
is refused (`require_long_runs`). The result is written to docs/results/cures_wins.json, from which
`write_results.py` makes the page.
"""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import steadytd as st
from steadytd.studies.analysis.reading import instances
from steadytd.studies.spec import Spec, Task
from steadytd.theory.dynamics import decay_rates, fixed_point, is_stable

FAMILY = "unstable_mdp"
LONG_ENOUGH = 5.0  # time constants that an unstable mode of TD has: it grows by e^5 = 148
AUTO = {"perturbed_td (eta=auto)": "perturbed_td:alpha={},eta=auto",
        "tdc (ratio=auto)": "tdc:alpha={},ratio=auto"}  # fmt: skip
CHOICE, OF_CURES = "the certificate's choice", "the certificate's choice of all cures"
CLOSE = 1.25  # a measured error within a quarter of the predicted one agrees with it
COLUMNS = ["problem", "run", "seed", "diverged", "final_value"]


class Horizon(NamedTuple):
    """How long the runs on a problem are beside the mode of TD that matters most."""

    problem: str
    stable: bool
    rate: float  # of the mode that grows fastest or, if TD is stable, decays slowest; median
    steps: int
    smallest: float  # time constants of that mode in a run, at the smallest step size
    largest: float  # and at the largest


def horizons(spec: Spec, seeds: int) -> list[Horizon]:
    """Of every problem of a study, in a family the median over the first seeds."""
    return [_horizon(task, seeds) for task in spec.tasks]


def _horizon(task: Task, seeds: int) -> Horizon:
    td = st.learner("td", alpha=1.0)
    slowest = [decay_rates(p, td).real.min() for p in instances(task, range(seeds))]
    alphas = sorted({float(x["alpha"]) for x in task.learners})
    rate = float(np.median(slowest))
    ends = (task.steps * alpha * abs(rate) for alpha in (alphas[0], alphas[-1]))
    return Horizon(task.label, rate > 0.0, abs(rate), task.steps, *ends)


def require_long_runs(found: list[Horizon]) -> None:
    """Complain about runs in which what is unstable still looks like learning."""
    for h in found:
        if not h.stable and h.smallest < LONG_ENOUGH:
            raise SystemExit(
                f"{h.problem}: at the smallest step size {h.steps:,} steps are {h.smallest:.2g} "
                f"time constants of TD's unstable mode, and {LONG_ENOUGH:g} are needed; take "
                f"{h.steps * LONG_ENOUGH / h.smallest:,.0f} steps, or leave out small step sizes."
            )


def chosen(directory: Path, spec: Spec) -> pl.DataFrame:
    """Final errors of what is chosen for its instance, by row, run and seed; see the text above."""
    path = directory / "chosen.json"
    known: dict[str, list[dict[str, Any]]] = json.loads(path.read_text()) if path.exists() else {}
    task = next(t for t in spec.tasks if t.label == FAMILY)
    alphas = sorted({float(x["alpha"]) for x in task.learners})
    for seed in range(spec.file.seeds):
        if str(seed) not in known:
            known[str(seed)] = _chosen(task, seed, alphas)
            path.write_text(json.dumps(known))
    rows = [{"seed": int(seed), **row} for seed, found in known.items() for row in found]
    return pl.DataFrame(rows, infer_schema_length=None)


def _chosen(task: Task, seed: int, alphas: list[float]) -> list[dict[str, Any]]:
    p = task.instance(seed)
    c = st.certify(p)
    rows = [(name, text.format(a)) for name, text in AUTO.items() for a in alphas]
    rows += [(CHOICE, _text(c.recommended())), (OF_CURES, _text(c.recommended(cures=True)))]
    texts = list(dict.fromkeys(text for _, text in rows))
    r = st.run(p, texts, steps=task.steps, seeds=[seed], points=2)
    last = np.where(r.first_divergence[:, 0] < 0, r.errors[:, 0, -1], np.inf)
    errors = {text: float(error) for text, error in zip(texts, last, strict=True)}
    numbers = {text: str(c.resolved(text)) for text in texts}
    return [
        {"learner": name, "run": text, "numbers": numbers[text], "error": errors[text]}
        for name, text in rows
    ]


def _text(found: st.Finding | None) -> str:
    """The recommended learner, as the command line takes it."""
    assert found is not None
    n = found.numbers
    step = {} if n["instead_of"] else {"alpha": n["alpha"]}
    return str(st.learner(n["learner"], **step, **n["params"]))


def measured(directory: Path, spec: Spec) -> pl.DataFrame:
    """The final error of every row on every instance, infinite where a run overflowed.

    A learner of the grid is shown at its one setting with the least median over all instances, and
    so is the step size of the rows with "auto".
    """
    grid = pl.read_parquet(directory / "grid" / "*.parquet", columns=COLUMNS)
    final = pl.when(pl.col("diverged").is_null()).then("final_value").otherwise(float("inf"))
    rows = grid.filter(pl.col("problem") == FAMILY).select(
        pl.col("run").str.split(":").list[0].alias("learner"), "run",
        pl.col("run").alias("numbers"), "seed", final.alias("error"),
    )  # fmt: skip
    more = chosen(directory, spec).select(rows.columns)
    rows = pl.concat([rows, more.cast(dict(rows.schema))])
    single = pl.col("learner").is_in([CHOICE, OF_CURES])
    medians = rows.filter(~single).group_by("learner", "run").agg(pl.col("error").median())
    best = medians.sort("error", "run").group_by("learner", maintain_order=True).first()
    taken = rows.filter(single | pl.col("run").is_in(best["run"].to_list()))
    return taken.sort("learner", "seed")


def predicted(found: pl.DataFrame, steps: int) -> pl.DataFrame:
    """Beside every run what theory says: stable, variance finite, error of the fixed point.

    `long`: it has five time constants or more of the mode that grows fastest or decays slowest.
    """
    problems = {seed: st.problem(FAMILY, seed=seed) for seed in found["seed"].unique()}
    certificates = {seed: st.certify(p) for seed, p in problems.items()}
    rows = []
    for numbers, seed in found.select("numbers", "seed").iter_rows():
        p, learner = problems[seed], st.learner(numbers)
        stable = is_stable(p, learner)
        alpha = float(learner.values.get("alpha", np.inf))  # a direct solver is there at once
        c = certificates[seed]
        rows.append({
            "stable": stable,
            "long": bool(alpha * abs(decay_rates(p, learner).real.min()) * steps >= LONG_ENOUGH),
            "finite": c.variance(learner).finite,
            "predicted": c.error(fixed_point(p, learner)) if stable else None,
            "zero": c.error(np.zeros(p.n_features)),
        })  # fmt: skip
    return pl.concat([found, pl.DataFrame(rows, infer_schema_length=None)], how="horizontal")


def wins(directory: Path, quick: bool = False) -> dict[str, Any]:
    """All that the page says; `quick` takes a study with short runs, to see that it works."""
    spec = st.study(directory / "study.toml").spec
    lengths = horizons(spec, spec.file.seeds)
    if not quick:
        require_long_runs(lengths)
    steps = next(t.steps for t in spec.tasks if t.label == FAMILY)
    found = predicted(measured(directory, spec), steps)
    names = found["learner"].unique().sort().to_list()
    errors = found["error"].to_numpy().reshape(len(names), -1)
    least = errors.min(axis=0)
    rows = []
    for i, name in enumerate(names):
        part = found.filter(pl.col("learner") == name)
        rows.append({
            "learner": name,
            "run": part["run"][0] if part["run"].n_unique() == 1 else "",
            "wins": int((errors.argmin(axis=0) == i).sum()),
            "within_a_tenth": int((errors[i] <= 1.1 * least).sum()),
            "median_error": float(np.median(errors[i])),
            "median_ratio": float(np.median(errors[i] / least)),
            "overflowed": int(np.isinf(errors[i]).sum()),
            "stable": int(part["stable"].sum()),
            "long": int(part["long"].sum()),
            "finite": int(part["finite"].sum()),
            "predicted": part["predicted"].median(),
        })  # fmt: skip
    td = pl.read_parquet(directory / "grid" / f"{FAMILY}-td-*.parquet", columns=COLUMNS)
    plain = td.filter(~pl.col("run").str.contains("lam=")).group_by("run").agg(
        pl.col("final_value").fill_nan(float("inf")).median()
    )  # fmt: skip
    return {
        "instances": errors.shape[1],
        "steps": steps,
        "horizons": [h._asdict() for h in lengths],
        "zero": float(np.median(found["zero"].to_numpy())),
        "td": float(plain["final_value"].min()),
        "rows": sorted(rows, key=lambda row: (row["median_ratio"], row["learner"])),
        "chosen": _counts(found.filter(pl.col("learner") == CHOICE)),
        "chosen_of_cures": _counts(found.filter(pl.col("learner") == OF_CURES)),
        "right": _right(found),
    }


def _counts(part: pl.DataFrame) -> dict[str, int]:
    """How often the certificate took which learner."""
    laws = part["run"].str.split(":").list[0].value_counts(sort=True)
    return dict(laws.iter_rows())


def _right(found: pl.DataFrame) -> dict[str, list[int]]:
    """Where the certificate is right, as counts of runs: [agree, all]."""
    near = pl.col("error").is_between(pl.col("predicted") / CLOSE, pl.col("predicted") * CLOSE)
    calm = pl.col("stable") & pl.col("finite")
    cases = {
        "unstable": (~pl.col("stable") & pl.col("long"), pl.col("error") > pl.col("zero")),
        "unstable_slow": (~pl.col("stable") & ~pl.col("long"), pl.col("error") > pl.col("zero")),
        "stable": (calm & pl.col("long"), near),
        "stable_slow": (calm & ~pl.col("long"), near),
        "infinite": (pl.col("stable") & ~pl.col("finite"), near),
    }
    return {
        name: [found.filter(which & agrees).height, found.filter(which).height]
        for name, (which, agrees) in cases.items()
    }


if __name__ == "__main__":
    given = Path(sys.argv[1])
    text = json.dumps(wins(given, quick="--quick" in sys.argv), indent=1)
    (Path(__file__).parent / "results" / "cures_wins.json").write_text(text + "\n")
    print("docs/results/cures_wins.json")
