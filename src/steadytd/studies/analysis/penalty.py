"""What perturbed TD adds beside TD, and what it costs: the same grid with and without a penalty."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from steadytd.base.errors import InputError
from steadytd.learners import learner as make_learner
from steadytd.studies.analysis.reading import Chapter
from steadytd.studies.analysis.tables import FACTS, Paired, axes_of, paired, short
from steadytd.studies.analysis.theory import Prediction, instances, predict

if TYPE_CHECKING:
    import polars as pl

PLAIN, PENALISED = "td", "perturbed_td"
NUMBERS = ("error", "stderr", "diverged_share", "seeds")


@dataclass(frozen=True)
class PenaltyRow:
    """One value of eta (None: plain TD): how its configurations fared, and the best of them."""

    eta: float | None
    configurations: int
    never_diverged: int
    useful: int
    error: float
    settings: str
    prediction: Prediction | None


@dataclass(frozen=True)
class Penalty:
    """TD and perturbed TD on one problem.

    The four counts are of step sizes that both have: `*_steady` without divergence and `*_useful`
    with an error below that of w0, each at the best of the other parameters.
    """

    rows: list[PenaltyRow]
    step_sizes: int
    td_steady: int
    perturbed_steady: int
    td_useful: int
    perturbed_useful: int
    difference: Paired | None


@lru_cache(maxsize=16)
def penalty(chapter: Chapter) -> Penalty | None:
    """The comparison, if the study has both learners and perturbed TD has an axis eta."""
    import polars as pl

    table = chapter.configurations
    plain = table.filter(pl.col("algorithm") == PLAIN)
    penalised = table.filter(pl.col("algorithm") == PENALISED)
    if not len(plain) or not len(penalised) or "eta" not in table.columns:
        return None
    seeds = range(max(plain["seeds"].to_list()))
    problems = instances(chapter.task, seeds) if chapter.theory else []
    rows = [_row(chapter, None, plain, problems)]
    for eta in penalised["eta"].drop_nulls().unique().sort():
        rows.append(_row(chapter, eta, penalised.filter(pl.col("eta") == eta), problems))
    shared = sorted(set(plain["alpha"].to_list()) & set(penalised["alpha"].to_list()))
    both = [plain, penalised]
    steady = [_step_sizes(x, shared, pl.col("diverged_share") == 0.0) for x in both]
    useful = [_step_sizes(x, shared, pl.col("error") < chapter.start) for x in both]
    difference = None
    if PLAIN in chapter.errors and PENALISED in chapter.errors:
        difference = paired(PENALISED, PLAIN, chapter.errors)
    counts = (steady[0], steady[1], useful[0], useful[1])
    return Penalty(rows, len(shared), *counts, difference)


def _step_sizes(own: pl.DataFrame, shared: list[float], good: Any) -> int:
    """On how many of the shared step sizes at least one configuration is good."""
    import polars as pl

    return own.filter(good & pl.col("alpha").is_in(shared))["alpha"].n_unique()


def _row(chapter: Chapter, eta: float | None, own: pl.DataFrame, problems: list[Any]) -> PenaltyRow:
    import polars as pl

    best = own.sort("error", "diverged_share").row(0, named=True)
    axes = axes_of(own.drop(NUMBERS))
    shown = ", ".join(f"{k} {short(best[k])}" for k in axes if best[k] is not None)
    return PenaltyRow(
        eta=eta,
        configurations=len(own),
        never_diverged=len(own.filter(pl.col("diverged_share") == 0.0)),
        useful=len(own.filter(pl.col("error") < chapter.start)),
        error=best["error"],
        settings=shown,
        prediction=_prediction(best, problems),
    )


def _prediction(best: dict[str, Any], problems: list[Any]) -> Prediction | None:
    if not problems:
        return None
    known = {k: v for k, v in best.items() if k not in (*FACTS, *NUMBERS) and v is not None}
    try:
        return predict(problems, make_learner(best["algorithm"], **known))
    except InputError:
        return None


def by_lam(chapter: Chapter) -> tuple[list[float], list[tuple[str, list[float | None]]]]:
    """The lams of a study, and for each learner its least grid error at each of them."""
    import polars as pl

    table = chapter.configurations
    if "lam" not in table.columns:
        return [], []
    several = table.filter(pl.col("lam").is_not_null())
    lams = several["lam"].unique().sort().to_list()
    rows = []
    for name in [b.algorithm for b in chapter.best]:
        own = several.filter(pl.col("algorithm") == name)
        if own["lam"].n_unique() > 1:
            at = dict(own.group_by("lam").agg(pl.col("error").min()).iter_rows())
            rows.append((name, [at.get(lam) for lam in lams]))
    return (lams, rows) if rows and len(lams) > 1 else ([], [])
